//! A stand-in for `mcp::Cancel` until that is there: a flag with listeners.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

type Listener = Box<dyn FnOnce() + Send>;

/// Pulled when somebody no longer wants an answer. Clones are the same one.
#[derive(Clone, Default)]
pub struct Cancel(Arc<Inner>);

#[derive(Default)]
struct Inner {
    pulled: AtomicBool,
    listeners: Mutex<(u64, BTreeMap<u64, Listener>)>,
}

/// Takes its listener back when dropped.
pub struct Guard(Arc<Inner>, u64);

impl Cancel {
    /// One that nobody pulled yet.
    pub fn new() -> Cancel {
        Cancel::default()
    }
    /// Pulls it.
    pub fn cancel(&self) {
        self.0.pulled.store(true, Ordering::SeqCst);
        let taken = {
            let mut listeners = self.0.listeners.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut listeners.1)
        };
        taken.into_values().for_each(|f| f());
    }
    /// Whether it was pulled.
    pub fn is_cancelled(&self) -> bool {
        self.0.pulled.load(Ordering::SeqCst)
    }
    /// Calls `f` once when it is pulled, at once when it was.
    pub fn on_cancel(&self, f: impl FnOnce() + Send + 'static) -> Guard {
        let mut listeners = self.0.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        let id = listeners.0;
        if self.is_cancelled() {
            drop(listeners);
            f();
        } else {
            listeners.0 += 1;
            listeners.1.insert(id, Box::new(f));
        }
        Guard(self.0.clone(), id)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.listeners.lock().unwrap_or_else(PoisonError::into_inner).1.remove(&self.1);
    }
}
