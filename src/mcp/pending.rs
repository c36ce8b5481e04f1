//! Who waits for which answer. Answers are paired by id; each is given out
//! once, and one that nobody waits for is refused. Knows nothing of how a
//! message travels.

use super::ask::Asked;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Progress that its caller has not taken yet; older reports are dropped, as
/// each one replaces those before it.
const PROGRESS_KEPT: usize = 64;

/// How a request ended.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The server's result, as it sent it.
    Result(Box<RawValue>),
    /// The server's JSON-RPC error object.
    Error(Value),
    /// The answer came, but is over a limit; says which.
    TooLarge(String),
    /// The connection is gone; says why.
    Broken(String),
    /// The caller left.
    Cancelled,
}

/// What happens to a waiting caller.
pub(super) enum Event {
    Progress(Value),
    Done(Outcome),
    TimedOut,
}

/// One request that waits for its answer.
pub(super) struct Slot {
    /// Its id, and its progress token.
    pub id: u64,
    /// Whether the whole message has gone out, so that the server may act on it.
    pub sent: AtomicBool,
    wants_progress: bool,
    /// Takes what the server asks while it works on this.
    pub asked: Option<Asked>,
    /// The server's task that this waits for.
    task: Option<String>,
    state: Mutex<State>,
    wake: Condvar,
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slot").field("id", &self.id).field("state", &self.state).finish()
    }
}

#[derive(Debug, Default)]
struct State {
    progress: VecDeque<Value>,
    outcome: Option<Outcome>,
    /// Questions that are open, since when, and how long there were some before.
    questions: usize,
    since: Option<Instant>,
    paused: Duration,
}

impl Slot {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the request, unless it has ended: the first outcome counts.
    pub fn finish(&self, outcome: Outcome) {
        let mut state = self.state();
        if state.outcome.is_none() {
            state.outcome = Some(outcome);
            drop(state);
            self.wake.notify_one();
        }
    }

    /// Whether there is something for the caller, or a question is open.
    pub fn has_news(&self) -> bool {
        let state = self.state();
        state.outcome.is_some() || !state.progress.is_empty() || state.questions > 0
    }

    fn report(&self, progress: Value) {
        if !self.wants_progress {
            return;
        }
        let mut state = self.state();
        if state.progress.len() == PROGRESS_KEPT {
            state.progress.pop_front();
        }
        state.progress.push_back(progress);
        drop(state);
        self.wake.notify_one();
    }

    /// The server asks something: the time until the answer is not the server's.
    pub fn pause(&self) {
        let mut state = self.state();
        state.questions += 1;
        state.since.get_or_insert_with(Instant::now);
        drop(state);
        self.wake.notify_one();
    }

    /// The server has its answer.
    pub fn resume(&self) {
        let mut state = self.state();
        state.questions = state.questions.saturating_sub(1);
        if state.questions == 0
            && let Some(since) = state.since.take()
        {
            state.paused += since.elapsed();
        }
        drop(state);
        self.wake.notify_one();
    }

    /// How much later than it was set a deadline is, for questions that were
    /// asked meanwhile; nothing while one is open.
    pub fn paused(&self) -> Option<Duration> {
        let state = self.state();
        (state.questions == 0).then_some(state.paused)
    }

    /// Waits as [`Slot::wait`] does, but counts no time in which the server waits for an answer.
    pub fn wait_patiently(&self, deadline: Option<Instant>) -> Event {
        let Some(deadline) = deadline else { return self.wait(None) };
        let mut until = Some(deadline);
        loop {
            match (self.wait_until(until, true), self.paused()) {
                (Some(event), _) if !matches!(event, Event::TimedOut) => return event,
                (_, None) => until = None,
                (Some(_), Some(paused)) if deadline + paused <= Instant::now() => return Event::TimedOut,
                (_, Some(paused)) => until = Some(deadline + paused),
            }
        }
    }

    /// Waits for the next thing to happen; for its one caller only. Progress
    /// comes before the outcome, so that none is lost.
    pub fn wait(&self, deadline: Option<Instant>) -> Event {
        loop {
            if let Some(event) = self.wait_until(deadline, false) {
                return event;
            }
        }
    }

    /// The same; also returns, with nothing, when a question was opened or closed and `restless`.
    fn wait_until(&self, deadline: Option<Instant>, restless: bool) -> Option<Event> {
        let mut state = self.state();
        let asked = (state.questions, state.paused);
        loop {
            if let Some(progress) = state.progress.pop_front() {
                return Some(Event::Progress(progress));
            }
            if let Some(outcome) = state.outcome.take() {
                return Some(Event::Done(outcome));
            }
            if restless && asked != (state.questions, state.paused) {
                return None;
            }
            state = match deadline {
                None => self.wake.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Some(Event::TimedOut);
                    }
                    self.wake.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

/// All requests that wait for an answer on one connection.
#[derive(Debug, Default)]
pub(super) struct Pending {
    last: AtomicU64,
    answered: AtomicU64,
    slots: Mutex<HashMap<u64, Arc<Slot>>>,
    /// Somebody has left.
    left: Condvar,
}

impl Pending {
    fn slots(&self) -> MutexGuard<'_, HashMap<u64, Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An id for a request whose answer nobody waits for.
    pub fn id(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Makes room for one more answer. Ids are never used twice.
    #[cfg(test)]
    pub fn open(self: &Arc<Self>, wants_progress: bool) -> Waiting {
        self.open_for(wants_progress, None, None)
    }

    /// The same, for a request during which the server may ask something.
    pub fn open_for(
        self: &Arc<Self>,
        wants_progress: bool,
        asked: Option<Asked>,
        task: Option<String>,
    ) -> Waiting {
        let slot = Arc::new(Slot {
            id: self.id(),
            sent: AtomicBool::new(false),
            wants_progress,
            asked,
            task,
            state: Mutex::default(),
            wake: Condvar::new(),
        });
        self.slots().insert(slot.id, Arc::clone(&slot));
        Waiting { pending: Arc::clone(self), slot }
    }

    /// The requests during which a question may have been asked, the latest first: the one of this id, or the
    /// one that waits for this task, else all that take questions. A server that asks over its pipe does not
    /// say which one it works on.
    pub fn asking(&self, id: Option<u64>, task: Option<&str>) -> Vec<Arc<Slot>> {
        let slots = self.slots();
        let exact = id.and_then(|id| slots.get(&id));
        let of_task = || task.and_then(|task| slots.values().find(|slot| slot.task.as_deref() == Some(task)));
        if let Some(found) = exact.or_else(of_task).filter(|slot| slot.asked.is_some()) {
            return vec![found.clone()];
        }
        let mut all: Vec<_> = slots.values().filter(|slot| slot.asked.is_some()).cloned().collect();
        all.sort_by_key(|slot| std::cmp::Reverse(slot.id));
        all
    }

    /// Waits until no more than one of them is left, or for so long; which are.
    pub fn wait_for_one(&self, asked: &[Arc<Slot>], limit: Duration) -> Vec<Arc<Slot>> {
        let deadline = Instant::now() + limit;
        let mut slots = self.slots();
        loop {
            let left: Vec<_> = asked.iter().filter(|slot| slots.contains_key(&slot.id)).cloned().collect();
            let time = deadline.saturating_duration_since(Instant::now());
            if left.len() < 2 || time.is_zero() {
                return left;
            }
            slots = self.left.wait_timeout(slots, time).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Hands over an answer; `false` when nobody waits for that id.
    pub fn finish(&self, id: u64, outcome: Outcome) -> bool {
        let slot = self.slots().remove(&id);
        self.left.notify_all();
        self.answered.fetch_add(1, Ordering::Relaxed);
        slot.map(|slot| slot.finish(outcome)).is_some()
    }

    /// Hands over a report of progress; `false` when nobody waits for that id.
    pub fn report(&self, id: u64, progress: Value) -> bool {
        let slot = self.slots().get(&id).cloned();
        slot.map(|slot| slot.report(progress)).is_some()
    }

    /// Ends all requests that wait.
    pub fn break_all(&self, reason: &str) {
        let slots = std::mem::take(&mut *self.slots());
        for slot in slots.into_values() {
            slot.finish(Outcome::Broken(reason.to_owned()));
        }
    }

    /// How many answers have come.
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// The one that waits, where there is no other.
    pub fn only(&self) -> Option<u64> {
        let slots = self.slots();
        let mut ids = slots.keys();
        ids.next().copied().filter(|_| ids.next().is_none())
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.slots().is_empty()
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.slots().len()
    }
}

/// A place among the waiting; leaving it makes a late answer unwanted.
pub(super) struct Waiting {
    pending: Arc<Pending>,
    /// What is waited on.
    pub slot: Arc<Slot>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.pending.slots().remove(&self.slot.id);
        self.pending.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn result(text: &str) -> Outcome {
        Outcome::Result(RawValue::from_string(format!("\"{text}\"")).unwrap())
    }

    fn done(event: Event) -> String {
        match event {
            Event::Done(Outcome::Result(raw)) => raw.get().trim_matches('"').to_owned(),
            Event::Done(other) => format!("{other:?}"),
            Event::Progress(value) => format!("progress {value}"),
            Event::TimedOut => "timed out".into(),
        }
    }

    #[test]
    fn answers_find_their_callers_in_any_order() {
        let pending = Arc::new(Pending::default());
        let (a, b) = (pending.open(false), pending.open(false));
        assert_ne!(a.slot.id, b.slot.id);
        assert!(pending.finish(b.slot.id, result("2")));
        assert!(pending.finish(a.slot.id, result("1")));
        assert!(!pending.finish(a.slot.id, result("again")), "a duplicate");
        assert!(!pending.finish(999, result("stray")));
        assert_eq!(done(a.slot.wait(None)), "1");
        assert_eq!(done(b.slot.wait(None)), "2");
    }

    #[test]
    fn a_question_is_of_the_request_or_the_task_that_it_names_else_of_whoever_is_left() {
        let pending = Arc::new(Pending::default());
        let asked = || Some(Arc::new(|_| ()) as Asked);
        let ids = |slots: &[Arc<Slot>]| slots.iter().map(|slot| slot.id).collect::<Vec<_>>();
        let first = pending.open_for(false, asked(), Some("t-1".into()));
        let second = pending.open_for(false, asked(), Some("t-2".into()));
        let deaf = pending.open(false);
        let (a, b) = (first.slot.id, second.slot.id);
        assert_eq!(ids(&pending.asking(Some(a), Some("t-2"))), [a]);
        assert_eq!(ids(&pending.asking(None, Some("t-1"))), [a]);
        assert_eq!(ids(&pending.asking(Some(deaf.slot.id), Some("t-3"))), [b, a]);
        let short = Duration::from_millis(1);
        let all = pending.asking(None, None);
        assert_eq!(ids(&pending.wait_for_one(&all, short)), [b, a]);
        let (tell, told) = std::sync::mpsc::channel();
        let inner = pending.clone();
        let wait = move || tell.send(inner.wait_for_one(&all, Duration::from_secs(60))).unwrap();
        crate::proc::thread::spawn("test", wait).unwrap();
        drop(second);
        assert_eq!(ids(&told.recv().unwrap()), [a]);
    }

    #[test]
    fn a_caller_that_leaves_takes_its_place_along() {
        let pending = Arc::new(Pending::default());
        let waiting = pending.open(false);
        let id = waiting.slot.id;
        let soon = Instant::now() + Duration::from_millis(5);
        assert_eq!(done(waiting.slot.wait(Some(soon))), "timed out");
        drop(waiting);
        assert!(!pending.finish(id, result("late")));
        assert_eq!(pending.len(), 0);
    }

    #[test]
    fn progress_comes_first_newest_kept_and_only_when_wanted() {
        let pending = Arc::new(Pending::default());
        let (wanting, other) = (pending.open(true), pending.open(false));
        for n in 0..PROGRESS_KEPT + 3 {
            assert!(pending.report(wanting.slot.id, n.into()));
            assert!(pending.report(other.slot.id, n.into()));
        }
        pending.finish(wanting.slot.id, result("end"));
        assert_eq!(done(wanting.slot.wait(None)), "progress 3");
        for _ in 1..PROGRESS_KEPT {
            assert!(done(wanting.slot.wait(None)).starts_with("progress"));
        }
        assert_eq!(done(wanting.slot.wait(None)), "end");
        pending.break_all("gone");
        assert_eq!(done(other.slot.wait(None)), r#"Broken("gone")"#);
    }
}
