//! Which groups a report will show, found out before anything is kept of them: of
//! millions of sessions each costs a few bytes, and only those with most records
//! are counted in full. Knows nothing of what a group is.

use std::cmp::Reverse;
use std::collections::hash_map::RandomState;
use std::collections::{BinaryHeap, HashMap};
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};

/// How many records each group has, by a number of 64 bits that stands for its key.
#[derive(Default)]
pub(super) struct Census {
    counts: HashMap<u64, u32, BuildHasherDefault<Already>>,
}

/// What turns keys into numbers, the same way on every thread.
#[derive(Clone, Default)]
pub(super) struct Numbers(RandomState);

impl Numbers {
    /// The number of a key.
    pub fn of(&self, key: &[u8]) -> u64 {
        self.0.hash_one(key)
    }
}

/// A hash of what is a hash already.
#[derive(Default)]
pub(super) struct Already(u64);

impl Hasher for Already {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.0 = self.0.rotate_left(8) ^ u64::from(*b));
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = n;
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

impl Census {
    /// Counts a record of a group.
    pub fn count(&mut self, number: u64) {
        let count = self.counts.entry(number).or_default();
        *count = count.saturating_add(1);
    }

    /// Adds what another thread counted.
    pub fn merge(&mut self, other: Census) {
        for (number, count) in other.counts {
            let sum = self.counts.entry(number).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    /// Chooses the groups with most records, so many.
    pub fn choose(self, limit: usize) -> Chosen {
        let mut best = BinaryHeap::with_capacity(limit.min(self.counts.len()) + 1);
        for count in self.counts.values() {
            best.push(Reverse(*count));
            if best.len() > limit {
                best.pop();
            }
        }
        let least = best.peek().map_or(u32::MAX, |Reverse(count)| *count);
        let room = best.iter().filter(|Reverse(count)| *count == least).count();
        Chosen { counts: self.counts, least, room }
    }
}

/// The groups that are counted in full.
pub(super) struct Chosen {
    counts: HashMap<u64, u32, BuildHasherDefault<Already>>,
    least: u32,
    /// Of those that have just `least` so many find room: those with the first keys.
    pub room: usize,
}

/// What becomes of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is shown.
    Shown,
    /// It is shown when its key is among the first of those with as many records.
    Tied,
    /// It is not.
    Left,
}

impl Chosen {
    /// What becomes of the group of this number.
    pub fn fate(&self, number: u64) -> Fate {
        match self.counts.get(&number).copied().unwrap_or(0).cmp(&self.least) {
            std::cmp::Ordering::Less => Fate::Left,
            std::cmp::Ordering::Equal => Fate::Tied,
            std::cmp::Ordering::Greater => Fate::Shown,
        }
    }

    /// How many groups there are, shown or not.
    pub fn groups(&self) -> usize {
        self.counts.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_with_most_are_chosen_and_ties_get_what_room_is_left() {
        let mut census = Census::default();
        for (number, times) in [(1, 5), (2, 3), (3, 3), (4, 3), (5, 1)] {
            let mut other = Census::default();
            (0..times).for_each(|_| other.count(number));
            census.merge(other);
        }
        let chosen = census.choose(3);
        assert_eq!((chosen.room, chosen.groups()), (2, 5));
        let fates = [1, 2, 4, 5, 6].map(|n| chosen.fate(n));
        assert_eq!(fates, [Fate::Shown, Fate::Tied, Fate::Tied, Fate::Left, Fate::Left]);
    }
}
