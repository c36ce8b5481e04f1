//! Ctrl-C and its relatives, while a daemon works for us: whatever is to be
//! done is done once, and the exit code remembers which signal it was.

use crate::error::{Error, Kind, Result};
use crate::proc::{signals, thread};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};

/// SIGHUP, SIGINT and SIGTERM: what a terminal or a supervisor ends a command with.
const SIGNALS: [i32; 3] = [1, 2, 15];

/// What is done when a signal comes; the latest of those who listen decides.
type Stop = Box<dyn Fn() + Send>;

static STOP: Mutex<Option<Stop>> = Mutex::new(None);
/// The first signal that came.
static SEEN: AtomicI32 = AtomicI32::new(0);
/// A signal ends a command that does not look for one: what it makes of its interruption does not count.
static ENDS: AtomicBool = AtomicBool::new(false);
static LISTENS: AtomicBool = AtomicBool::new(false);

/// Listens for the signals that ask us to end.
pub struct Interrupt(());

impl Interrupt {
    /// From now on the first signal calls `stop`; a second one ends the process at once.
    pub fn listen(stop: impl Fn() + Send + 'static) -> Result<Interrupt> {
        *STOP.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(stop));
        if LISTENS.swap(true, Ordering::SeqCst) {
            return Ok(Interrupt(()));
        }
        let fail = |e: std::io::Error| Error::new(Kind::Unavailable, format!("listening for signals: {e}"));
        let received = signals::install(&SIGNALS).map_err(fail)?;
        thread::spawn("signals", move || {
            SEEN.store(received.recv(), Ordering::SeqCst);
            let stop = STOP.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(stop) = stop {
                stop();
            }
            leave(received.recv());
        })
        .map_err(fail)?;
        Ok(Interrupt(()))
    }

    /// The same for a command that does not end by itself when a signal comes: it ends once `stop` is done.
    pub fn ending(stop: impl Fn() + Send + 'static) -> Result<Interrupt> {
        Interrupt::listen(move || {
            ENDS.store(true, Ordering::SeqCst);
            stop();
            leave(SEEN.load(Ordering::SeqCst));
        })
    }

    /// The exit code that a signal asks for, if one came: 128 and its number.
    pub fn exit_code(&self) -> Option<u8> {
        match SEEN.load(Ordering::SeqCst) {
            0 => None,
            n => Some(128u8.saturating_add(u8::try_from(n).unwrap_or(0))),
        }
    }
}

/// The exit code of a command that a signal has ended behind its back.
pub fn ended() -> Option<u8> {
    ENDS.load(Ordering::SeqCst).then(|| Interrupt(()).exit_code()).flatten()
}

/// Ends the process without the main thread's help: it is stuck, and the person insists.
#[allow(clippy::disallowed_methods, reason = "a second signal must end the process even when main hangs")]
fn leave(signal: i32) -> ! {
    std::process::exit(128 + signal)
}
