//! Counts who is being served: at most so many connections at once. Knows
//! nothing of what they want.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A counting semaphore that never waits: who finds no place is told so.
#[derive(Debug)]
pub struct Places {
    taken: AtomicUsize,
    limit: AtomicUsize,
}

/// A taken place, given back when dropped.
#[derive(Debug)]
pub struct Place(Arc<Places>);

impl Places {
    /// So many places.
    pub fn new(limit: usize) -> Arc<Places> {
        Arc::new(Places { taken: AtomicUsize::new(0), limit: AtomicUsize::new(limit) })
    }
    /// Takes a place; none when all are taken.
    pub fn take(self: &Arc<Places>) -> Option<Place> {
        let limit = self.limit.load(Ordering::Relaxed);
        let more = |taken| (taken < limit).then_some(taken + 1);
        self.taken.fetch_update(Ordering::AcqRel, Ordering::Relaxed, more).ok()?;
        Some(Place(self.clone()))
    }
    /// How many are taken.
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Acquire)
    }
    /// Changes how many there are; those taken stay.
    pub fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_run_out_and_come_back() {
        let places = Places::new(2);
        let a = places.take().unwrap();
        let _b = places.take().unwrap();
        assert!(places.take().is_none());
        drop(a);
        let _c = places.take().unwrap();
        places.set_limit(1);
        assert_eq!(places.taken(), 2);
        assert!(places.take().is_none());
    }
}
