//! Calls that go on although their caller has been answered: tasks, whose
//! result is collected later. Knows nothing of what they do.

use crate::error::{Error, Kind, Result};
use crate::observe::{Bus, Event, kinds};
use crate::pool::Cancel;
use crate::util;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One task.
pub struct Task {
    /// Its id; also the id of the call that it was.
    pub id: String,
    /// The server that works on it.
    pub server: String,
    /// The tool that was called.
    pub tool: String,
    /// The session that it belongs to; may be empty.
    pub session: String,
    created_at: u64,
    cancel: Cancel,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Counts the questions that it was held up by.
    asked: u64,
    outcome: Option<Result<Box<RawValue>>>,
    finished: Option<(Instant, u64)>,
}

/// What waiting for a task came to.
pub enum Waited {
    /// It is over.
    Finished(Result<Box<RawValue>>),
    /// Its server asks something.
    Asked,
    /// Neither, so far.
    Working,
}

/// All tasks.
pub struct Tasks {
    all: Mutex<BTreeMap<String, Arc<Task>>>,
    /// Sessions that are over but for a task.
    leaving: Mutex<HashSet<String>>,
    bus: Arc<Bus>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Task {
    /// The words are MCP's own: working, input_required, completed, failed, cancelled.
    pub fn row(&self, open_questions: usize) -> Value {
        let state = lock(&self.state);
        let status = match &state.outcome {
            None if open_questions > 0 => "input_required",
            None => "working",
            Some(Ok(_)) => "completed",
            Some(Err(e)) if e.kind() == Kind::Cancelled => "cancelled",
            Some(Err(_)) => "failed",
        };
        let mut row = json!({"id": self.id, "server": self.server, "tool": self.tool, "status": status,
            "createdAt": self.created_at});
        if !self.session.is_empty() {
            row["session"] = json!(self.session);
        }
        if let Some((_, at)) = state.finished {
            row["finishedAt"] = json!(at);
        }
        if let Some(Err(e)) = &state.outcome {
            row["message"] = json!(e.message());
        }
        row
    }

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        lock(&self.state).outcome.is_some()
    }

    /// Has it stop, if it has not, and waits until it has or for so long; its server is told.
    /// Whether there was anything to stop.
    pub fn cancel(&self, limit: Duration) -> bool {
        // Without the lock: what hears of the cancellation may want it.
        if self.is_over() {
            return false;
        }
        self.cancel.cancel();
        let state = lock(&self.state);
        drop(self.changed.wait_timeout_while(state, limit, |state| state.outcome.is_none()));
        true
    }

    /// Notes that its server asks something.
    pub fn asks(&self) {
        lock(&self.state).asked += 1;
        self.changed.notify_all();
    }

    /// Waits until it is over, or asks something, or for so long. `open` tells
    /// whether it waits for an answer already.
    pub fn wait(
        self: &Arc<Self>,
        limit: Option<Duration>,
        cancel: &Cancel,
        open: &dyn Fn() -> bool,
    ) -> Waited {
        let deadline = limit.map(|limit| Instant::now() + limit);
        let waiting = Arc::downgrade(self);
        let _guard = cancel.on_cancel(move || {
            if let Some(task) = waiting.upgrade() {
                // Under the lock, so that a waiter is either before its look or asleep.
                drop(lock(&task.state));
                task.changed.notify_all();
            }
        });
        loop {
            // Outside the lock: the broker has one of its own.
            let asks = open();
            let state = lock(&self.state);
            if let Some(outcome) = &state.outcome {
                return Waited::Finished(outcome.clone());
            }
            if asks {
                return Waited::Asked;
            }
            if cancel.is_cancelled() || deadline.is_some_and(|d| d <= Instant::now()) {
                return Waited::Working;
            }
            let asked = state.asked;
            let left = deadline.map(|d| d.saturating_duration_since(Instant::now()));
            let same =
                |state: &mut State| state.outcome.is_none() && state.asked == asked && !cancel.is_cancelled();
            match left {
                None => drop(self.changed.wait_while(state, same)),
                Some(left) => drop(self.changed.wait_timeout_while(state, left, same)),
            }
        }
    }
}

impl Tasks {
    /// None.
    pub fn new(bus: Arc<Bus>) -> Tasks {
        Tasks { all: Mutex::default(), leaving: Mutex::default(), bus }
    }

    /// A call becomes a task; `cancel` stops it.
    pub fn begin(&self, server: &str, tool: &str, session: &str, cancel: Cancel) -> Result<Arc<Task>> {
        let task = Arc::new(Task {
            id: format!("t-{}", util::random_hex(3)?),
            server: server.to_owned(),
            tool: tool.to_owned(),
            session: session.to_owned(),
            created_at: util::now_ms(),
            cancel,
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        lock(&self.all).insert(task.id.clone(), task.clone());
        self.publish(&task, "working");
        Ok(task)
    }

    /// A task is over. Returns the session that can end now, if one waited for this.
    pub fn finish(&self, task: &Arc<Task>, outcome: Result<Box<RawValue>>) -> Option<String> {
        let status = match &outcome {
            Ok(_) => "completed",
            Err(e) if e.kind() == Kind::Cancelled => "cancelled",
            Err(_) => "failed",
        };
        {
            let mut state = lock(&task.state);
            state.outcome = Some(outcome);
            state.finished = Some((Instant::now(), util::now_ms()));
        }
        task.changed.notify_all();
        self.publish(task, status);
        if self.holds(&task.session) {
            return None;
        }
        lock(&self.leaving).take(&task.session)
    }

    fn publish(&self, task: &Task, status: &str) {
        let data = json!({"task": task.id, "tool": task.tool, "status": status});
        self.bus.publish(Event::new(&kinds::TASK_CHANGED, data).server(&task.server).session(&task.session));
    }

    /// The session is over; false when a task needs it for a while, after which [`Tasks::finish`] tells.
    pub fn may_end(&self, session: &str) -> bool {
        if !self.holds(session) {
            return true;
        }
        lock(&self.leaving).insert(session.to_owned());
        // It may have become free between the two looks.
        !self.holds(session) && lock(&self.leaving).remove(session)
    }

    fn holds(&self, session: &str) -> bool {
        !session.is_empty() && lock(&self.all).values().any(|t| t.session == session && !t.is_over())
    }

    /// All, oldest first.
    pub fn list(&self) -> Vec<Arc<Task>> {
        let mut all: Vec<Arc<Task>> = lock(&self.all).values().cloned().collect();
        all.sort_by_key(|task| task.created_at);
        all
    }

    /// The task of that id.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn get(&self, id: &str) -> Result<Arc<Task>> {
        let task = lock(&self.all).get(id).cloned();
        // Looks at the others, once the lock is free again.
        task.ok_or_else(|| {
            let error = Error::new(Kind::NotFound, format!("there is no task \"{id}\""));
            match util::did_you_mean(id, self.list().iter().map(|t| t.id.as_str())) {
                Some(near) => error.hint(near),
                None => error.hint("`mcpx task list` lists them; results are kept for elicit.keep"),
            }
        })
    }

    /// Forgets what has been over for so long.
    pub fn forget(&self, keep: Duration) {
        lock(&self.all)
            .retain(|_, task| lock(&task.state).finished.is_none_or(|(at, _)| at.elapsed() < keep));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.into()).unwrap()
    }

    #[test]
    fn a_task_is_waited_for_and_its_session_kept() {
        let tasks = Tasks::new(Bus::new(8));
        let task = tasks.begin("s", "t", "work", Cancel::new()).unwrap();
        let never = Cancel::new();
        assert!(matches!(task.wait(Some(Duration::ZERO), &never, &|| false), Waited::Working));
        assert!(matches!(task.wait(None, &never, &|| true), Waited::Asked));
        assert!(!tasks.may_end("work") && tasks.may_end("another"));
        assert_eq!(task.row(1)["status"], "input_required");
        assert_eq!(tasks.finish(&task, Ok(raw("1"))).as_deref(), Some("work"));
        assert!(tasks.may_end("work"));
        let Waited::Finished(Ok(result)) = task.wait(None, &never, &|| true) else { panic!() };
        assert_eq!((result.get(), task.row(0)["status"].as_str()), ("1", Some("completed")));
        assert!(tasks.get(&task.id).is_ok());
        tasks.forget(Duration::ZERO);
        assert_eq!(tasks.get(&task.id).err().unwrap().kind(), Kind::NotFound);
    }

    #[test]
    fn who_waits_may_leave() {
        let tasks = Tasks::new(Bus::new(8));
        let task = tasks.begin("s", "t", "", Cancel::new()).unwrap();
        let cancel = Cancel::new();
        let (inside, other) = (cancel.clone(), task.clone());
        let waiting = crate::proc::thread::spawn("wait", move || {
            assert!(matches!(other.wait(None, &inside, &|| false), Waited::Working));
        });
        cancel.cancel();
        waiting.unwrap().join().unwrap();
    }
}
