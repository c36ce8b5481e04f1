//! Calls that a server carries out as tasks, of revision 2025-11-25 and as the
//! extension of the stateless era: begins one, asks how it fares, and collects its
//! result. Knows nothing of the tasks that mcpx itself makes of calls.

use super::ask::Inner;
use super::cancel::{Cancel, CancelGuard};
use super::client::{Client, Link, Options, raw};
use super::error::{Subject, printable};
use crate::error::{Error, Kind, Result};
use crate::util::json_words;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// The extension that tasks are in the stateless era.
pub(super) const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// How long a server is left alone between two questions when it does not say.
const INTERVAL: Duration = Duration::from_secs(1);
/// The shortest that it may say: no busy loop.
const LEAST: Duration = Duration::from_millis(20);
/// The longest: a task that is over is not left lying.
const MOST: Duration = Duration::from_secs(10);
/// How long the word that a task is not wanted any more may take.
const FAREWELL: Duration = Duration::from_secs(2);
/// How many characters of what a server says of its task are handed on.
const SAID: usize = 500;

/// A task, as far as it matters here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Task {
    task_id: String,
    #[serde(flatten)]
    state: State,
}

/// How a task fares.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct State {
    status: String,
    #[serde(default)]
    status_message: Option<String>,
    /// Milliseconds; the stateless era says so in the name.
    #[serde(default, alias = "pollIntervalMs")]
    poll_interval: Option<u64>,
}

/// `CreateTaskResult` of 2025-11-25.
#[derive(Deserialize)]
struct Created {
    task: Task,
}

/// What else there is to a task of the stateless era, whose state holds its result.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fruit<'a> {
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<Value>,
    #[serde(borrow, default)]
    input_requests: BTreeMap<String, Inner<'a>>,
}

/// One who waits for a task.
struct Waiter<'a> {
    client: &'a Client,
    subject: &'a Subject<'a>,
    options: &'a Options<'a>,
    deadline: Option<Instant>,
    id: Value,
    woken: Receiver<()>,
    _guard: CancelGuard,
    told: Option<String>,
    turn: u64,
    /// Questions about it that came to nothing, in a row.
    failures: usize,
    interval: Duration,
}

impl<'a> Waiter<'a> {
    fn new(
        client: &'a Client,
        subject: &'a Subject<'a>,
        options: &'a Options<'a>,
        deadline: Option<Instant>,
        task: &Task,
    ) -> Waiter<'a> {
        if let Some(began) = &options.began {
            began();
        }
        let (wake, woken) = mpsc::channel();
        let guard = options.cancel.on_cancel(move || {
            let _ = wake.send(());
        });
        let id = json!(task.task_id);
        let (told, turn, failures, interval) = (None, 0, 0, INTERVAL);
        Waiter {
            client,
            subject,
            options,
            deadline,
            id,
            woken,
            _guard: guard,
            told,
            turn,
            failures,
            interval,
        }
    }

    /// Hands on what the server says of its task.
    fn tell(&mut self, state: &State) {
        self.turn += 1;
        let interval = state.poll_interval.map_or(INTERVAL, Duration::from_millis);
        self.interval = interval.clamp(LEAST, MOST);
        if state.status_message != self.told {
            self.told.clone_from(&state.status_message);
            if let (Some(progress), Some(text)) = (&self.options.progress, &self.told) {
                progress(json!({"progress": self.turn, "message": printable(text, SAID)}));
            }
        }
    }

    /// Leaves the server alone for a while.
    fn pause(&self) -> Result<()> {
        let left = self.left();
        let cancelled =
            self.woken.recv_timeout(left.map_or(self.interval, |left| left.min(self.interval))).is_ok();
        if !cancelled && left.is_none_or(|left| left > self.interval) {
            return Ok(());
        }
        self.drop_task();
        Err(match cancelled {
            true => self.subject.cancelled(),
            false => self.subject.timed_out(self.options.limit(), true),
        })
    }

    fn left(&self) -> Option<Duration> {
        self.deadline.map(|d| d.saturating_duration_since(Instant::now()))
    }

    /// Asks about the task. Over HTTP a question that comes to nothing is asked again, a few times: it changes
    /// nothing, and the server goes on with the task meanwhile.
    fn ask(&mut self, method: &str, more: Option<(&str, Value)>) -> Result<Box<RawValue>> {
        let mut params = json!({"taskId": self.id});
        if let Some((name, value)) = more {
            params[name] = value;
        }
        let params = raw(&params)?;
        loop {
            let options = Options { mirrored: &[], ..self.options.left(self.left()) };
            let e = match self.client.request(method, Some(params.clone()), options) {
                Ok(result) => {
                    self.failures = 0;
                    return Ok(result);
                }
                Err(e) => e,
            };
            match e.kind() {
                Kind::Unavailable | Kind::Busy if self.may_try_again() => {
                    self.failures += 1;
                    self.pause()?;
                }
                // Whatever becomes of the connection now, the server may be at work: the call is never sent again.
                Kind::Unavailable | Kind::Busy => {
                    return Err(self.subject.broken(&format!("has lost the task: {}", e.message()), true));
                }
                Kind::Cancelled => {
                    self.drop_task();
                    return Err(e);
                }
                Kind::Timeout => {
                    self.drop_task();
                    return Err(self.subject.timed_out(self.options.limit(), true));
                }
                _ => return Err(e),
            }
        }
    }

    fn may_try_again(&self) -> bool {
        let resumes = self.client.0.peer.limits.streams.resumes;
        matches!(self.client.0.link, Link::Http(_)) && !self.client.is_closed() && self.failures < resumes
    }

    fn unreadable(&self, e: serde_json::Error) -> Error {
        self.subject.unfit(&format!("answered tasks/get with something else ({})", json_words(e)))
    }

    /// Tells the server that nobody wants its task any more.
    fn drop_task(&self) {
        let Ok(params) = raw(&json!({"taskId": self.id})) else { return };
        let nobody = Cancel::new();
        let options = Options::new(&nobody).timeout(FAREWELL);
        let _: Result<Box<RawValue>> = self.client.request("tasks/cancel", Some(params), options);
    }
}

impl Client {
    /// Makes a `tools/call` whose parameters ask for a task, and waits for its result. The time limit holds for all
    /// of it. A server that answers with the result itself is taken at its word.
    ///
    /// Errors as those of [`Client::request`]; [`Kind::OutcomeUnknown`] once the task had begun and the connection breaks.
    pub fn call_as_task(&self, params: Box<RawValue>, options: &Options) -> Result<Box<RawValue>> {
        let deadline = options.timeout.and_then(|limit| Instant::now().checked_add(limit));
        let begun = self.request("tools/call", Some(params.clone()), options.clone())?;
        let Ok(Created { task }) = serde_json::from_str::<Created>(begun.get()) else { return Ok(begun) };
        let subject = Subject {
            server: &self.0.peer.server,
            method: "tools/call",
            params: Some(&params),
            mirrored: options.mirrored,
        };
        let mut waiter = Waiter::new(self, &subject, options, deadline, &task);
        let mut state = task.state;
        loop {
            waiter.tell(&state);
            match state.status.as_str() {
                "working" => {}
                "cancelled" => return Err(subject.unfit("cancelled its task")),
                // Completed or failed, its result says it; input_required, the server asks once somebody waits for that.
                _ => return waiter.ask("tasks/result", None),
            }
            waiter.pause()?;
            let answer = waiter.ask("tasks/get", None)?;
            state = serde_json::from_str(answer.get()).map_err(|e| waiter.unreadable(e))?;
        }
    }

    /// Waits for the result of a call that a server of the stateless era goes on with as a task (the tasks
    /// extension); `begun` is its answer so far. What the task wants to know is asked in the usual way.
    ///
    /// Errors as those of [`Client::request`]; [`Kind::OutcomeUnknown`] when the task is lost.
    pub(super) fn await_task(
        &self,
        begun: &RawValue,
        subject: &Subject,
        deadline: Option<Instant>,
        options: &Options,
    ) -> Result<Box<RawValue>> {
        let task: Task = serde_json::from_str(begun.get())
            .map_err(|e| subject.unfit(&format!("began a task that cannot be read ({})", json_words(e))))?;
        let mut waiter = Waiter::new(self, subject, options, deadline, &task);
        waiter.tell(&task.state);
        let mut answered = HashSet::new();
        loop {
            waiter.pause()?;
            let answer = waiter.ask("tasks/get", None)?;
            let state: State = serde_json::from_str(answer.get()).map_err(|e| waiter.unreadable(e))?;
            let fruit: Fruit = serde_json::from_str(answer.get()).map_err(|e| waiter.unreadable(e))?;
            waiter.tell(&state);
            match (state.status.as_str(), fruit.result, fruit.error) {
                ("completed", Some(result), _) => return Ok(result.to_owned()),
                ("failed", _, Some(error)) => return Err(subject.refused(error)),
                ("cancelled", ..) => return Err(subject.unfit("cancelled its task")),
                ("completed" | "failed", ..) => return Err(subject.unfit("ended its task without a result")),
                _ => {}
            }
            // A question stays in the list until the server has seen to its answer.
            let mut wanted = fruit.input_requests;
            wanted.retain(|key, _| !answered.contains(key));
            if !wanted.is_empty() {
                let began = Instant::now();
                let answers = self.answers(&wanted, subject, options);
                let answers = answers.inspect_err(|_| waiter.drop_task())?;
                waiter.deadline = waiter.deadline.map(|d| d + began.elapsed());
                answered.extend(wanted.into_keys());
                let _ = waiter.ask("tasks/update", Some(("inputResponses", Value::Object(answers))))?;
            }
        }
    }
}

/// The task that a request's parameters name.
pub(super) fn named(params: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Named {
        task_id: String,
    }
    serde_json::from_str::<Named>(params.get()).ok().map(|named| named.task_id)
}

/// Whether a tool can only be called as a task, by what its server lists of it.
pub fn is_task_only(execution: Option<&Value>) -> bool {
    execution.is_some_and(|execution| execution["taskSupport"] == "required")
}

/// Whether a tool may be called as a task and need not.
pub fn may_be_task(execution: Option<&Value>) -> bool {
    execution.is_some_and(|execution| execution["taskSupport"] == "optional")
}
