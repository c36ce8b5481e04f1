//! Reaps processes that became our children without our having started them:
//! where this process is the first of its namespace, every orphan does. Knows
//! which children are its own, and leaves their ends to those who wait for them.
//! (Its test is tests/it/orphans.rs: within the test of a library it would reap
//! the children of other tests.)

use super::sys::check;
use std::collections::HashSet;
use std::io;
use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The children that were started here and not reaped yet. Taken around a fork
/// as well, so that no child is ended, and taken for a stray, before it is in it.
static OURS: Mutex<Option<HashSet<u32>>> = Mutex::new(None);

fn ours() -> MutexGuard<'static, Option<HashSet<u32>>> {
    OURS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a child and notes it as one of ours.
pub(super) fn forking(start: impl FnOnce() -> io::Result<Child>) -> io::Result<Child> {
    let mut ours = ours();
    let child = start()?;
    ours.get_or_insert_default().insert(child.id());
    Ok(child)
}

/// A child of ours has been reaped.
pub(super) fn forget(pid: u32) {
    if let Some(ours) = &mut *ours() {
        ours.remove(&pid);
    }
}

/// Reaps what has ended among the children that nobody here started, and returns how many that were.
pub fn reap_strays() -> usize {
    let mut reaped = 0;
    loop {
        let ours = ours();
        // SAFETY: an all-zero siginfo is valid, waitid writes one, and si_pid is set (0: nothing has ended) when it succeeds.
        let ended = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            check(libc::waitid(libc::P_ALL, 0, &raw mut info, flags)).map(|_| info.si_pid())
        };
        let Ok(pid) = ended else { return reaped };
        let known = u32::try_from(pid).is_ok_and(|pid| ours.as_ref().is_some_and(|o| o.contains(&pid)));
        // One of our own is first in line until its waiter has reaped it; the next call goes on.
        if pid <= 0 || known {
            return reaped;
        }
        let mut status = 0;
        // SAFETY: waitpid writes one integer, and this child has ended.
        let outcome = check(unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) });
        if outcome.is_err() {
            return reaped;
        }
        reaped += 1;
    }
}
