//! Calls that a server carries out as tasks (2025-11-25, "Tasks"): begins one,
//! asks how it fares, and collects its result. Knows nothing of the tasks that
//! mcpx itself makes of calls.

use super::cancel::Cancel;
use super::client::{Client, Options, raw};
use super::error::{Subject, printable};
use crate::error::{Error, Kind, Result};
use crate::util::json_words;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::sync::mpsc;
use std::time::{Duration, Instant};

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
    status: String,
    #[serde(default)]
    status_message: Option<String>,
    #[serde(default)]
    poll_interval: Option<u64>,
}

/// `CreateTaskResult`.
#[derive(Deserialize)]
struct Created {
    task: Task,
}

impl Client {
    /// Makes a `tools/call` whose parameters ask for a task, and waits for its result. The time limit holds for all
    /// of it. A server that answers with the result itself is taken at its word.
    ///
    /// Errors as those of [`Client::request`]; [`Kind::OutcomeUnknown`] once the task had begun and the connection breaks.
    pub fn call_as_task(&self, params: Box<RawValue>, options: &Options) -> Result<Box<RawValue>> {
        let deadline = options.timeout.and_then(|limit| Instant::now().checked_add(limit));
        let begun = self.request("tools/call", Some(params.clone()), options.clone())?;
        let Ok(Created { mut task }) = serde_json::from_str::<Created>(begun.get()) else { return Ok(begun) };
        if let Some(began) = &options.began {
            began();
        }
        let subject = Subject {
            server: &self.0.peer.server,
            method: "tools/call",
            params: Some(&params),
            mirrored: options.mirrored,
        };
        // Whatever becomes of the connection now, the server may be at work: the call is never sent again.
        let later = |e: Error| match e.kind() {
            Kind::Unavailable | Kind::Busy => {
                subject.broken(&format!("has lost the task: {}", e.message()), true)
            }
            _ => e,
        };
        let id = raw(&json!({"taskId": task.task_id}))?;
        let (wake, woken) = mpsc::channel();
        let _guard = options.cancel.on_cancel(move || {
            let _ = wake.send(());
        });
        let mut told = None;
        for turn in 1u64.. {
            if task.status_message != told {
                told.clone_from(&task.status_message);
                if let (Some(progress), Some(text)) = (&options.progress, &told) {
                    progress(json!({"progress": turn, "message": printable(text, SAID)}));
                }
            }
            match task.status.as_str() {
                "working" => {}
                "cancelled" => return Err(subject.unfit("cancelled its task")),
                // Completed or failed, its result says it; input_required, the server asks once somebody waits for that.
                _ => break,
            }
            let interval = task.poll_interval.map_or(INTERVAL, Duration::from_millis);
            let interval = interval.clamp(LEAST, MOST);
            let left = deadline.map(|d| d.saturating_duration_since(Instant::now()));
            let cancelled = woken.recv_timeout(left.map_or(interval, |left| left.min(interval))).is_ok();
            if cancelled || left.is_some_and(|left| left <= interval) {
                self.drop_task(&id);
                return Err(match cancelled {
                    true => subject.cancelled(),
                    false => subject.timed_out(options.limit(), true),
                });
            }
            let answer =
                self.request("tasks/get", Some(id.clone()), self.rest(deadline, options)).map_err(later)?;
            task = serde_json::from_str(answer.get()).map_err(|e| {
                subject.unfit(&format!("answered tasks/get with something else ({})", json_words(e)))
            })?;
        }
        let outcome = self.request("tasks/result", Some(id.clone()), self.rest(deadline, options));
        if outcome.as_ref().is_err_and(|e| matches!(e.kind(), Kind::Cancelled | Kind::Timeout)) {
            self.drop_task(&id);
        }
        outcome.map_err(later)
    }

    /// The options for what is left of the time.
    fn rest<'a>(&self, deadline: Option<Instant>, options: &Options<'a>) -> Options<'a> {
        let timeout = deadline.map(|d| d.saturating_duration_since(Instant::now()));
        Options { timeout, mirrored: &[], ..options.clone() }
    }

    /// Tells the server that nobody wants its task any more.
    fn drop_task(&self, id: &RawValue) {
        let nobody = Cancel::new();
        let options = Options::new(&nobody).timeout(FAREWELL);
        let _: Result<Box<RawValue>> = self.request("tasks/cancel", Some(id.to_owned()), options);
    }
}

/// Whether a tool can only be called as a task, by what its server lists of it.
pub fn is_task_only(execution: Option<&Value>) -> bool {
    execution.is_some_and(|execution| execution["taskSupport"] == "required")
}
