//! A place in a line: one caller parks on it, and whoever runs the line answers
//! it. Knows nothing of what the line is for.
//!
//! A ticket is answered at most once, and never after its owner left: so a
//! place that is granted is always taken, or the granter is told that it is not.

use super::connect::Cancel;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// One caller's place in a line that hands out `T`.
pub(super) struct Ticket<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

enum State<T> {
    Waiting,
    Answered(T),
    /// The owner took the answer, or left without one.
    Closed,
}

/// How a wait ended without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unanswered {
    Cancelled,
    TimedOut,
}

impl<T: Send + 'static> Ticket<T> {
    pub fn new() -> Arc<Ticket<T>> {
        Arc::new(Ticket { state: Mutex::new(State::Waiting), changed: Condvar::new() })
    }

    /// Answers the ticket; gives the answer back when its owner has left.
    pub fn answer(&self, answer: T) -> Result<(), T> {
        let mut state = self.lock();
        if !matches!(*state, State::Waiting) {
            return Err(answer);
        }
        *state = State::Answered(answer);
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Waits for the answer. Without one by `deadline`, or when `cancel` is
    /// pulled, the ticket is closed: from then on it can't be answered.
    pub fn wait(self: &Arc<Self>, deadline: Option<Instant>, cancel: &Cancel) -> Result<T, Unanswered> {
        let wake = self.clone();
        // Taking the lock before telling keeps the wake-up from falling between the check and the wait.
        let _guard = cancel.on_cancel(move || {
            drop(wake.lock());
            wake.changed.notify_all();
        });
        let mut state = self.lock();
        loop {
            match std::mem::replace(&mut *state, State::Closed) {
                State::Answered(answer) => return Ok(answer),
                other => *state = other,
            }
            let now = Instant::now();
            let over = if cancel.is_cancelled() {
                Some(Unanswered::Cancelled)
            } else if deadline.is_some_and(|d| d <= now) {
                Some(Unanswered::TimedOut)
            } else {
                None
            };
            if let Some(why) = over {
                *state = State::Closed;
                return Err(why);
            }
            state = match deadline {
                Some(d) => {
                    self.changed.wait_timeout(state, d - now).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn an_answer_reaches_the_one_who_waits() {
        let ticket = Ticket::new();
        let other = ticket.clone();
        let waiting = std::thread::spawn(move || other.wait(None, &Cancel::new()));
        ticket.answer(7).unwrap();
        assert_eq!(waiting.join().unwrap(), Ok(7));
        assert_eq!(ticket.answer(8), Err(8), "it was taken already");
    }

    #[test]
    fn who_left_gets_nothing() {
        let ticket = Ticket::<u8>::new();
        let past = Instant::now();
        assert_eq!(ticket.wait(Some(past), &Cancel::new()), Err(Unanswered::TimedOut));
        assert_eq!(ticket.answer(1), Err(1));

        let ticket = Ticket::<u8>::new();
        let cancel = Cancel::new();
        let (other, its) = (ticket.clone(), cancel.clone());
        let waiting =
            std::thread::spawn(move || other.wait(Some(Instant::now() + Duration::from_secs(60)), &its));
        cancel.cancel();
        assert_eq!(waiting.join().unwrap(), Err(Unanswered::Cancelled));
        assert_eq!(ticket.answer(1), Err(1));
    }
}
