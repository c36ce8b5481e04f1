//! A signal from whoever asked for something to whoever is working on it:
//! nobody waits for the answer any more. Knows nothing of what that is.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Tells that the caller has left. Clones are the same signal; it is given at
/// most once and never taken back.
#[derive(Clone, Default)]
pub struct Cancel(Arc<State>);

#[derive(Default)]
struct State {
    cancelled: AtomicBool,
    listeners: Mutex<Listeners>,
}

#[derive(Default)]
struct Listeners {
    next: u64,
    waiting: Vec<(u64, Box<dyn FnOnce() + Send>)>,
}

impl State {
    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cancel {
    /// A signal that has not been given.
    pub fn new() -> Cancel {
        Cancel::default()
    }

    /// Gives the signal: runs every listener, on this thread, once.
    pub fn cancel(&self) {
        let waiting = {
            let mut listeners = self.0.listeners();
            self.0.cancelled.store(true, Ordering::Release);
            std::mem::take(&mut listeners.waiting)
        };
        // Outside the lock: a listener may drop its own guard or ask whether it was cancelled.
        for (_, listener) in waiting {
            listener();
        }
    }

    /// Whether it has been given.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Acquire)
    }

    /// Runs `listener` when the signal is given (at once, when it was already),
    /// unless the guard is dropped first. It runs on the thread that cancels,
    /// so it should only wake somebody.
    #[must_use = "dropping the guard takes the listener off again"]
    pub fn on_cancel(&self, listener: impl FnOnce() + Send + 'static) -> CancelGuard {
        let mut listeners = self.0.listeners();
        let id = listeners.next;
        listeners.next += 1;
        if self.is_cancelled() {
            drop(listeners);
            listener();
        } else {
            listeners.waiting.push((id, Box::new(listener)));
        }
        CancelGuard { state: Arc::clone(&self.0), id }
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancel").field(&self.is_cancelled()).finish()
    }
}

/// Keeps one listener of a [`Cancel`] in place.
pub struct CancelGuard {
    state: Arc<State>,
    id: u64,
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        let removed = {
            let waiting = &mut self.state.listeners().waiting;
            waiting.iter().position(|(id, _)| *id == self.id).map(|at| waiting.swap_remove(at))
        };
        // What it had captured is dropped outside the lock.
        drop(removed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    fn counter() -> (Arc<AtomicU32>, impl FnOnce() + Send + 'static + Clone) {
        let count = Arc::new(AtomicU32::new(0));
        let other = Arc::clone(&count);
        (count, move || {
            other.fetch_add(1, Ordering::Relaxed);
        })
    }

    #[test]
    fn listeners_run_once_and_only_while_guarded() {
        let cancel = Cancel::new();
        let (count, add) = counter();
        let kept = cancel.on_cancel(add.clone());
        drop(cancel.on_cancel(add.clone()));
        assert!(!cancel.is_cancelled());
        cancel.clone().cancel();
        cancel.cancel();
        assert!(cancel.is_cancelled());
        assert_eq!(count.load(Ordering::Relaxed), 1);
        drop(kept);
        drop(cancel.on_cancel(add));
        assert_eq!(count.load(Ordering::Relaxed), 2, "a late listener runs at once");
    }

    #[test]
    fn a_listener_may_use_the_signal_and_its_guard() {
        let cancel = Cancel::new();
        let slot = Arc::new(Mutex::new(None));
        let (inside, held) = (cancel.clone(), Arc::clone(&slot));
        *slot.lock().unwrap() = Some(cancel.on_cancel(move || {
            assert!(inside.is_cancelled());
            drop(held.lock().unwrap().take());
        }));
        cancel.cancel();
        assert!(slot.lock().unwrap().is_none());
    }
}
