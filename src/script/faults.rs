//! Collects what is wrong, so that all of it is told at once. Knows nothing of
//! what is looked at.

use crate::error::{Error, Result};

/// Faults found so far.
#[derive(Debug, Default)]
pub struct Faults(Vec<Error>);

impl Faults {
    /// Adds one.
    pub fn add(&mut self, error: Error) {
        self.0.push(error);
    }

    /// Keeps a fault, and gives what is none.
    pub fn keep<T>(&mut self, outcome: Result<T>) -> Option<T> {
        outcome.map_err(|e| self.add(e)).ok()
    }

    /// Fails when there were any: with the one, or with all of them under the kind of the first.
    pub fn check(self) -> Result<()> {
        let mut all = self.0.into_iter();
        let Some(first) = all.next() else { return Ok(()) };
        let rest: Vec<Error> = all.collect();
        if rest.is_empty() {
            return Err(first);
        }
        let one = |e: &Error| match e.hint_text() {
            Some(hint) => format!("{} ({hint})", e.message()),
            None => e.message().to_owned(),
        };
        let mut message = one(&first);
        for e in &rest {
            message.push_str("\nand ");
            message.push_str(&one(e));
        }
        Err(Error::new(first.kind(), message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    #[test]
    fn one_stays_as_it_is_and_several_are_told_together() {
        assert!(Faults::default().check().is_ok());
        let mut faults = Faults::default();
        assert_eq!(faults.keep(Ok(1)), Some(1));
        assert_eq!(faults.keep::<()>(Err(Error::new(Kind::Usage, "a").hint("do b"))), None);
        let mut two = Faults(faults.0.clone());
        assert_eq!(faults.check().unwrap_err().hint_text(), Some("do b"));
        two.add(Error::new(Kind::Config, "c"));
        let e = two.check().unwrap_err();
        assert_eq!((e.kind(), e.message(), e.hint_text()), (Kind::Usage, "a (do b)\nand c", None));
    }
}
