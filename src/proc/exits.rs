//! Tells when processes end that are not our children, without looking again and
//! again: Linux gives out a descriptor for a process. Knows nothing of why that matters.

use super::sys::{alive, check};
use super::thread;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// How many ends one look takes at most.
const BATCH: usize = 32;

type Listener = Box<dyn FnOnce() + Send>;

/// All processes that are watched, and the one thread that waits for them.
struct Watcher {
    epoll: OwnedFd,
    watched: Mutex<HashMap<u64, (OwnedFd, Listener)>>,
    serial: AtomicU64,
}

/// Ends the watch when it is dropped.
#[derive(Debug)]
#[must_use]
pub struct ExitWatch(u64);

/// Calls `f` once when the process with this pid and start time ends, at once when
/// it has ended already. `None` where the system has no such thing (Linux before
/// 5.3, or no descriptor is left): look at [`alive`] from time to time there.
pub fn on_exit(pid: u32, start_ticks: u64, f: impl FnOnce() + Send + 'static) -> Option<ExitWatch> {
    let watcher = watcher()?;
    // SAFETY: pidfd_open takes two integers and returns a new descriptor, close-on-exec by itself.
    let fd = unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        (fd >= 0).then(|| OwnedFd::from_raw_fd(fd as i32))?
    };
    // Only now is it certain whose end the descriptor tells: before, the number could change hands.
    if !alive(pid, start_ticks) {
        f();
        return Some(ExitWatch(0));
    }
    let token = watcher.serial.fetch_add(1, Ordering::Relaxed);
    let raw = fd.as_raw_fd();
    watcher.lock().insert(token, (fd, Box::new(f)));
    let events = (libc::EPOLLIN | libc::EPOLLONESHOT) as u32;
    let mut event = libc::epoll_event { events, u64: token };
    // SAFETY: both descriptors are open (the map holds the second), and `event` is one epoll_event.
    let added = check(unsafe {
        libc::epoll_ctl(watcher.epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, raw, &raw mut event)
    });
    match added {
        Ok(_) => Some(ExitWatch(token)),
        Err(_) => {
            watcher.lock().remove(&token);
            None
        }
    }
}

impl Drop for ExitWatch {
    fn drop(&mut self) {
        if let Some(Some(watcher)) = WATCHER.get() {
            // The closed descriptor leaves the set by itself.
            let forgotten = watcher.lock().remove(&self.0);
            drop(forgotten);
        }
    }
}

static WATCHER: OnceLock<Option<Watcher>> = OnceLock::new();

fn watcher() -> Option<&'static Watcher> {
    static STARTED: OnceLock<bool> = OnceLock::new();
    let watcher = WATCHER
        .get_or_init(|| {
            // SAFETY: epoll_create1 takes a flag and returns a new descriptor, which is nobody else's yet.
            let epoll = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })
                .map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
            Some(Watcher { epoll: epoll.ok()?, watched: Mutex::default(), serial: AtomicU64::new(1) })
        })
        .as_ref()?;
    // Its life is the process's, as that of the set is.
    STARTED.get_or_init(|| thread::spawn("exits", || watcher.serve()).is_ok()).then_some(watcher)
}

impl Watcher {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, (OwnedFd, Listener)>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self) {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; BATCH];
        loop {
            // SAFETY: the pointer and the length are those of one array, which epoll_wait fills.
            let outcome = check(unsafe {
                libc::epoll_wait(self.epoll.as_raw_fd(), events.as_mut_ptr(), BATCH as i32, -1)
            });
            match outcome {
                Ok(count) => {
                    for event in &events[..count as usize] {
                        let token = event.u64;
                        let ended = self.lock().remove(&token);
                        if let Some((_, listener)) = ended {
                            listener();
                        }
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Io, Spawn, spawn, start_ticks};
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn an_end_is_told_once_and_a_dropped_watch_tells_nothing() {
        let sleeper = || {
            let args = vec!["-c".into(), "cat".into()];
            spawn(Spawn { program: "/bin/sh".into(), args, stdin: Io::Piped, ..Spawn::default() }).unwrap()
        };
        let (one, two) = (sleeper(), sleeper());
        let ticks = |pid| start_ticks(pid).unwrap();
        let (send, receive) = mpsc::channel();
        let tell = |what: u8| {
            let send = send.clone();
            move || send.send(what).unwrap()
        };
        let first = on_exit(one.pid(), ticks(one.pid()), tell(1)).expect("this kernel has pidfds");
        let second = on_exit(two.pid(), ticks(two.pid()), tell(2)).unwrap();
        let gone = on_exit(one.pid(), 1, tell(3)).unwrap();
        assert_eq!(receive.recv_timeout(LONG), Ok(3), "that process has ended long ago");
        drop(second);
        drop(two.take_stdin());
        two.wait();
        drop(one.take_stdin());
        assert_eq!(receive.recv_timeout(LONG), Ok(1));
        drop((first, gone, send));
        assert!(receive.try_recv().is_err());
    }
}
