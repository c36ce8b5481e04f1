//! Sets of places, of which each stands in many: a place is a number, and a set
//! is a few numbers, or a bit for each place there is. So thousands of sessions
//! that use hundreds of tools take kilobytes. Knows nothing of what a place is.

use std::collections::HashMap;

/// Places by their keys, numbered in the order in which they come.
#[derive(Default)]
pub(super) struct Names {
    numbers: HashMap<Vec<u8>, u32>,
    keys: Vec<Vec<u8>>,
}

impl Names {
    /// The number of a place.
    pub fn number(&mut self, key: &[u8]) -> u32 {
        if let Some(number) = self.numbers.get(key) {
            return *number;
        }
        let number = u32::try_from(self.keys.len()).unwrap_or(u32::MAX);
        self.numbers.insert(key.to_owned(), number);
        self.keys.push(key.to_owned());
        number
    }

    /// The key of a number.
    pub fn key(&self, number: u32) -> &[u8] {
        self.keys.get(number as usize).map_or(&[], Vec::as_slice)
    }

    /// What numbers of other names are among these.
    pub fn taken_in(&mut self, other: &Names) -> Vec<u32> {
        other.keys.iter().map(|key| self.number(key)).collect()
    }
}

/// A set of numbers, in whichever form is smaller.
pub(super) enum Set {
    /// In order.
    Few(Vec<u32>),
    /// A bit each.
    Many(Vec<u64>),
}

impl Default for Set {
    fn default() -> Set {
        Set::Few(Vec::new())
    }
}

/// A word has so many places in it.
const BITS: u32 = u64::BITS;

impl Set {
    /// Adds a number.
    pub fn insert(&mut self, number: u32) {
        match self {
            Set::Few(numbers) => {
                let Err(at) = numbers.binary_search(&number) else { return };
                numbers.insert(at, number);
                // So many bits as the largest needs take less room than the numbers.
                let words = (numbers.last().copied().unwrap_or(0) / BITS + 1) as usize;
                if numbers.len() > words * 2 {
                    let mut bits = vec![0; words];
                    numbers.iter().for_each(|n| bits[(n / BITS) as usize] |= 1 << (n % BITS));
                    *self = Set::Many(bits);
                }
            }
            Set::Many(bits) => {
                let word = (number / BITS) as usize;
                if word >= bits.len() {
                    bits.resize(word + 1, 0);
                }
                bits[word] |= 1 << (number % BITS);
            }
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Set::Few(numbers) => numbers.len(),
            Set::Many(bits) => bits.iter().map(|word| word.count_ones() as usize).sum(),
        }
    }

    /// The numbers, in order.
    pub fn numbers(&self) -> Vec<u32> {
        match self {
            Set::Few(numbers) => numbers.clone(),
            Set::Many(bits) => {
                let words = (0_u32..).zip(bits);
                words
                    .flat_map(|(n, word)| {
                        (0..BITS).filter(move |b| word >> b & 1 == 1).map(move |b| n * BITS + b)
                    })
                    .collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_the_same_in_both_its_forms_and_small_in_each() {
        let (mut few, mut many) = (Set::default(), Set::default());
        for n in [70_000, 3, 3, 64] {
            few.insert(n);
        }
        assert!(matches!(&few, Set::Few(numbers) if numbers.len() == 3));
        assert_eq!((few.len(), few.numbers()), (3, vec![3, 64, 70_000]));
        for n in (0..444).rev().chain(100..200) {
            many.insert(n);
        }
        assert!(matches!(&many, Set::Many(bits) if bits.len() == 7));
        assert_eq!((many.len(), many.numbers()), (444, (0..444).collect::<Vec<_>>()));
    }

    #[test]
    fn names_are_numbered_once() {
        let (mut a, mut b) = (Names::default(), Names::default());
        assert_eq!([a.number(b"x"), a.number(b"y"), a.number(b"x")], [0, 1, 0]);
        assert_eq!([b.number(b"z"), b.number(b"y")], [0, 1]);
        assert_eq!(a.taken_in(&b), [2, 1]);
        assert_eq!((a.key(2), a.key(9)), (&b"z"[..], &b""[..]));
    }
}
