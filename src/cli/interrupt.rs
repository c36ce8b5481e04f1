//! Ctrl-C and its relatives, while a daemon works for us: whatever is to be
//! done is done once, and the exit code remembers which signal it was.

use crate::error::{Error, Kind, Result};
use crate::proc::{signals, thread};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

/// SIGHUP, SIGINT and SIGTERM: what a terminal or a supervisor ends a command with.
const SIGNALS: [i32; 3] = [1, 2, 15];

/// Listens for the signals that ask us to end.
pub struct Interrupt(Arc<AtomicI32>);

impl Interrupt {
    /// From now on the first signal calls `stop`; a second one ends the process at once.
    pub fn listen(stop: impl Fn() + Send + 'static) -> Result<Interrupt> {
        let fail = |e: std::io::Error| Error::new(Kind::Unavailable, format!("listening for signals: {e}"));
        let received = signals::install(&SIGNALS).map_err(fail)?;
        let seen = Arc::new(AtomicI32::new(0));
        let theirs = Arc::clone(&seen);
        thread::spawn("signals", move || {
            theirs.store(received.recv(), Ordering::SeqCst);
            stop();
            leave(received.recv());
        })
        .map_err(fail)?;
        Ok(Interrupt(seen))
    }
    /// The exit code that a signal asks for, if one came: 128 and its number.
    pub fn exit_code(&self) -> Option<u8> {
        match self.0.load(Ordering::SeqCst) {
            0 => None,
            n => Some(128u8.saturating_add(u8::try_from(n).unwrap_or(0))),
        }
    }
}

/// Ends the process without the main thread's help: it is stuck, and the person insists.
#[allow(clippy::disallowed_methods, reason = "a second signal must end the process even when main hangs")]
fn leave(signal: i32) -> ! {
    std::process::exit(128 + signal)
}
