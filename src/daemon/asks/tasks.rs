//! Calls that go on although their caller has been answered: tasks, whose
//! result is collected later. Knows nothing of what they do.

use crate::api::wire::TaskWish;
use crate::catalog::rows::one_line;
use crate::error::{Error, Kind, Result};
use crate::observe::{Bus, Event, kinds};
use crate::pool::Cancel;
use crate::util;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of randomness in a task's id: few, since a person types it.
const ID_BYTES: usize = 3;
/// The same where somebody else is to ask for it by its id alone: whoever knows it may (MCP, "Tasks").
const SECRET_BYTES: usize = 16;
/// So many tasks that somebody wanted work at once; each has a thread. What is wanted beyond that is refused.
const MOST: usize = 512;

/// How much of what a task says of how far it is is kept.
const NOTE: usize = 400;

/// What a task carries out.
pub struct Subject {
    /// The operation.
    pub op: &'static str,
    /// The server that works on it.
    pub server: String,
    /// The tool that was called, or a method.
    pub tool: String,
    /// The session that it belongs to; may be empty.
    pub session: String,
    /// Stops it.
    pub cancel: Cancel,
}

/// One task.
pub struct Task {
    /// Its id; also the id of the call that it was.
    pub id: String,
    op: &'static str,
    /// Whose it is, where somebody wanted it.
    owner: Option<String>,
    /// How long it is kept from its beginning on, where that was said.
    ttl: Option<u64>,
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
    /// When its state was another for the last time.
    updated_at: u64,
    /// It was told to stop: that is what became of it, whatever comes.
    cancelled: bool,
    /// What it says of how far it is.
    note: Option<String>,
    /// What came of it is an error by the tool's own word.
    is_error: bool,
    outcome: Option<Result<Box<RawValue>>>,
    finished: Option<(Instant, u64)>,
}

impl State {
    fn status(&self, asks: bool) -> &'static str {
        match &self.outcome {
            _ if self.cancelled => "cancelled",
            None if asks => "input_required",
            None => "working",
            Some(Ok(_)) => "completed",
            Some(Err(e)) if e.kind() == Kind::Cancelled => "cancelled",
            Some(Err(_)) => "failed",
        }
    }
}

/// Whether a result says of itself that it is an error: a tool's, or a program's run.
fn is_error(result: &RawValue) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Said {
        is_error: Option<bool>,
        ok: Option<bool>,
    }
    let said = serde_json::from_str::<Said>(result.get());
    said.is_ok_and(|said| said.is_error == Some(true) || said.ok == Some(false))
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
        let mut row = json!({"id": self.id, "op": self.op, "server": self.server, "tool": self.tool,
            "status": state.status(open_questions > 0), "createdAt": self.created_at,
            "updatedAt": state.updated_at});
        for (name, text) in [("session", Some(self.session.as_str())), ("owner", self.owner.as_deref())] {
            if let Some(text) = text.filter(|text| !text.is_empty() || name == "owner") {
                row[name] = json!(text);
            }
        }
        if let Some(ttl) = self.ttl {
            row["ttlMs"] = json!(ttl);
        }
        if let Some((_, at)) = state.finished {
            row["finishedAt"] = json!(at);
        }
        if state.is_error {
            row["isError"] = json!(true);
        }
        match (&state.outcome, &state.note) {
            (Some(Err(e)), _) => row["message"] = json!(e.message()),
            (None, Some(note)) if !state.cancelled => row["message"] = json!(note),
            _ => {}
        }
        row
    }

    /// Notes what it says of how far it is.
    pub fn note(&self, text: &str) {
        let mut state = lock(&self.state);
        state.note = Some(one_line(text, NOTE));
        state.updated_at = util::now_ms();
    }

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        lock(&self.state).outcome.is_some()
    }

    /// Has it stop, if it has not, and waits until it has or for so long; its server is told.
    /// Whether there was anything to stop.
    pub fn cancel(&self, limit: Duration) -> bool {
        {
            let mut state = lock(&self.state);
            if state.cancelled || state.outcome.is_some() {
                return false;
            }
            state.cancelled = true;
            state.updated_at = util::now_ms();
        }
        // Without the lock: what hears of the cancellation may want it.
        self.cancel.cancel();
        let state = lock(&self.state);
        drop(self.changed.wait_timeout_while(state, limit, |state| state.outcome.is_none()));
        true
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

    /// Whether another task that somebody wants may begin.
    ///
    /// # Errors
    /// `Busy` when too many work already.
    pub fn has_room(&self) -> Result<()> {
        let wanted = |task: &&Arc<Task>| task.owner.is_some() && !task.is_over();
        if lock(&self.all).values().filter(wanted).count() < MOST {
            return Ok(());
        }
        Err(Error::new(Kind::Busy, format!("{MOST} tasks are at work already"))
            .hint("ask again when some are over; `mcpx task list` shows them"))
    }

    /// A call becomes a task; whoever wanted that says how (`wish`).
    ///
    /// # Errors
    /// Without randomness nobody could name it.
    pub fn begin(&self, subject: Subject, wish: Option<&TaskWish>) -> Result<Arc<Task>> {
        let Subject { op, server, tool, session, cancel } = subject;
        let now = util::now_ms();
        let bytes = if wish.is_some() { SECRET_BYTES } else { ID_BYTES };
        let task = Arc::new(Task {
            id: format!("t-{}", util::random_hex(bytes)?),
            op,
            owner: wish.map(|wish| wish.owner.clone().unwrap_or_default()),
            ttl: wish.and_then(|wish| wish.ttl_ms),
            server,
            tool,
            session,
            created_at: now,
            cancel,
            state: Mutex::new(State { updated_at: now, ..State::default() }),
            changed: Condvar::new(),
        });
        lock(&self.all).insert(task.id.clone(), task.clone());
        self.publish(&task, "working");
        Ok(task)
    }

    /// A task's server asks something.
    pub fn asks(&self, task: &Task) {
        {
            let mut state = lock(&task.state);
            state.asked += 1;
            state.updated_at = util::now_ms();
        }
        task.changed.notify_all();
        self.publish(task, "input_required");
    }

    /// What a task's server asked is answered.
    pub fn goes_on(&self, task: &Task) {
        {
            let mut state = lock(&task.state);
            if state.outcome.is_some() || state.cancelled {
                return;
            }
            state.updated_at = util::now_ms();
        }
        self.publish(task, "working");
    }

    /// Stops the tasks that somebody wanted who is no more.
    pub fn abandon(&self, owner: &str) {
        let theirs = |task: &&Arc<Task>| task.owner.as_deref() == Some(owner) && !task.is_over();
        let all: Vec<Arc<Task>> = lock(&self.all).values().filter(theirs).cloned().collect();
        for task in all {
            let _ = task.cancel(Duration::ZERO);
        }
    }

    /// A task is over. Returns the session that can end now, if one waited for this.
    pub fn finish(&self, task: &Arc<Task>, outcome: Result<Box<RawValue>>) -> Option<String> {
        let is_error = task.owner.is_some() && outcome.as_ref().is_ok_and(|result| is_error(result));
        let status = {
            let mut state = lock(&task.state);
            state.outcome = Some(outcome);
            state.is_error = is_error;
            state.updated_at = util::now_ms();
            state.finished = Some((Instant::now(), state.updated_at));
            state.status(false)
        };
        task.changed.notify_all();
        self.publish(task, status);
        if self.holds(&task.session) {
            return None;
        }
        lock(&self.leaving).take(&task.session)
    }

    fn publish(&self, task: &Task, status: &str) {
        let mut data = json!({"task": task.id, "tool": task.tool, "status": status});
        if let Some(owner) = &task.owner {
            data["owner"] = json!(owner);
        }
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

    /// Forgets what has been over for so long, or what was to be kept no longer than until now.
    pub fn forget(&self, keep: Duration) {
        let now = util::now_ms();
        lock(&self.all).retain(|_, task| match (lock(&task.state).finished, task.ttl) {
            (None, _) => true,
            (Some(_), Some(ttl)) => now < task.created_at.saturating_add(ttl),
            (Some((at, _)), None) => at.elapsed() < keep,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.into()).unwrap()
    }

    fn subject(session: &str) -> Subject {
        let (server, tool) = ("s".into(), "t".into());
        Subject { op: "call", server, tool, session: session.into(), cancel: Cancel::new() }
    }

    #[test]
    fn a_wanted_task_has_an_owner_and_a_time_and_stays_cancelled() {
        let tasks = Tasks::new(Bus::new(8));
        let wish = TaskWish { owner: Some("host".into()), ttl_ms: Some(0), ..TaskWish::default() };
        let task = tasks.begin(subject("host"), Some(&wish)).unwrap();
        assert!(task.id.len() > 30, "{}", task.id);
        task.note("half\nway");
        assert_eq!((&task.row(0)["message"], &task.row(0)["owner"]), (&json!("half way"), &json!("host")));
        tasks.forget(Duration::MAX);
        assert!(tasks.get(&task.id).is_ok(), "what works is kept, however long it takes");
        tasks.abandon("another");
        assert!(!task.cancel.is_cancelled());
        tasks.abandon("host");
        assert!(task.cancel.is_cancelled());
        assert!(!task.cancel(Duration::ZERO), "once is enough");
        tasks.finish(&task, Ok(raw("{\"isError\":true}")));
        assert_eq!((&task.row(0)["status"], &task.row(0)["isError"]), (&json!("cancelled"), &json!(true)));
        tasks.forget(Duration::MAX);
        assert!(tasks.get(&task.id).is_err(), "its time is over");
    }

    #[test]
    fn a_task_is_waited_for_and_its_session_kept() {
        let tasks = Tasks::new(Bus::new(8));
        let task = tasks.begin(subject("work"), None).unwrap();
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
        let task = tasks.begin(subject(""), None).unwrap();
        let cancel = Cancel::new();
        let (inside, other) = (cancel.clone(), task.clone());
        let waiting = crate::proc::thread::spawn("wait", move || {
            assert!(matches!(other.wait(None, &inside, &|| false), Waited::Working));
        });
        cancel.cancel();
        waiting.unwrap().join().unwrap();
    }
}
