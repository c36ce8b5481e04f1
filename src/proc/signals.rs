//! Receives signals as ordinary values: the handler writes the number into a
//! pipe and does nothing else. Knows nothing of what a signal should cause.

use super::sys::{check, poll_readable, set_nonblocking};
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

/// The pipe's ends live as long as the process: a handler may run at any time.
static PIPE: OnceLock<(PipeReader, PipeWriter)> = OnceLock::new();
static WRITE_END: AtomicI32 = AtomicI32::new(-1);

/// Receives the signals that were given to [`install`].
#[derive(Clone, Copy, Debug)]
pub struct Signals(&'static PipeReader);

extern "C" fn handler(signal: libc::c_int) {
    // SAFETY: `__errno_location` is this thread's errno; write is
    // async-signal-safe, reads one byte of a local, and the descriptor is never closed.
    unsafe {
        let errno = *libc::__errno_location();
        let byte = signal as u8;
        // A full pipe means that signals are waiting already: this one may go.
        libc::write(WRITE_END.load(Ordering::Relaxed), (&raw const byte).cast(), 1);
        *libc::__errno_location() = errno;
    }
}

/// From now on these signals are delivered to the returned value instead of
/// ending the process. May be called again to add signals; all values of this
/// process share one queue, and each signal goes to one receiver.
pub fn install(signals: &[i32]) -> io::Result<Signals> {
    let pipe = match PIPE.get() {
        Some(pipe) => pipe,
        None => {
            let (reader, writer) = io::pipe()?;
            set_nonblocking(&writer)?;
            // Should another thread have been quicker, its pipe stays and ours is closed.
            PIPE.get_or_init(|| (reader, writer))
        }
    };
    WRITE_END.store(pipe.1.as_raw_fd(), Ordering::Relaxed);
    for &signal in signals {
        // SAFETY: an all-zero sigaction is valid (no flags, empty mask), and
        // the handler is async-signal-safe.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as *const () as libc::sighandler_t;
            action.sa_flags = libc::SA_RESTART;
            check(libc::sigaction(signal, &raw const action, std::ptr::null_mut()))?;
        }
    }
    Ok(Signals(&pipe.0))
}

/// Whether whoever started this process wants it to ignore the signal, as
/// nohup(1) does with SIGHUP and a shell with SIGINT for a job behind `&`.
pub fn ignored(signal: i32) -> bool {
    // SAFETY: an all-zero sigaction is valid, and the call only writes the present one into it.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}

impl Signals {
    /// Waits for the next signal.
    pub fn recv(&self) -> i32 {
        let mut byte = [0];
        loop {
            // The write end is never closed, so neither an end nor a failure is possible.
            if let Ok(1) = (&mut &*self.0).read(&mut byte) {
                return i32::from(byte[0]);
            }
        }
    }
    /// Waits at most so long; zero looks without waiting.
    pub fn recv_timeout(&self, timeout: Duration) -> Option<i32> {
        match poll_readable(&[self.0.as_fd()], Some(timeout)) {
            Ok(ready) if ready[0] => Some(self.recv()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ignored_signal_is_told_from_others() {
        assert!(ignored(libc::SIGPIPE), "std ignores it");
        assert!(!ignored(libc::SIGURG));
        assert!(!ignored(0), "what is no signal is not ignored");
    }

    #[test]
    fn a_signal_arrives_as_a_value() {
        let signals = install(&[libc::SIGUSR2]).unwrap();
        assert_eq!(signals.recv_timeout(Duration::ZERO), None);
        crate::proc::kill(std::process::id(), libc::SIGUSR2).unwrap();
        assert_eq!(signals.recv_timeout(Duration::from_secs(10)), Some(libc::SIGUSR2));
        crate::proc::kill(std::process::id(), libc::SIGUSR2).unwrap();
        assert_eq!(signals.recv(), libc::SIGUSR2);
    }
}
