//! Carries out calls of tools, and lets one go on as a task when its server
//! asks what only somebody else can answer. Knows nothing of how a call arrived.

use super::answers::json_of;
use super::asks::tasks::{Subject, Task, Waited};
use super::asks::{self, About};
use super::callers::{caller_of, limits};
use super::detached::{Early, detachable};
use super::references::{self, Called};
use super::router::{Asker, Done, Origin, Response};
use super::runs;
use super::selection::selection;
use super::state::Daemon;
use crate::api::wire::CallRequest;
use crate::catalog::{ServerSchema, Tool};
use crate::error::{Error, Kind, Result};
use crate::mcp::{Asked, Question};
use crate::pool::{Call, Caller, Cancel, Permit};
use crate::settings;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Carries out a call. A caller that can be answered early, or says that it wants to
/// know, is answered when the server asks something, and the call goes on as a task.
pub fn call(daemon: &Arc<Daemon>, mut call: CallRequest, asker: &Asker<'_>) -> Result<Done> {
    let (inner, wish) = (daemon.clone(), call.task.take());
    detachable(daemon, asker, wish, move |asker| perform(&inner, call, asker))
}

/// `202`, with what the server asks.
pub(super) fn asked(error: &Error) -> Response {
    let body = error.raw_value().map(Value::to_string).unwrap_or_default();
    Response::json(Kind::InputRequired.row().status, body.into_bytes())
}

fn perform(daemon: &Arc<Daemon>, call: CallRequest, asker: &Asker<'_>) -> Result<Box<RawValue>> {
    let run = call.context.run.as_deref().and_then(|id| daemon.runs.get(id).ok());
    let selection = match (call.context.selection.clone(), run) {
        (None, Some(run)) => run.selection.clone(),
        (said, _) => selection(said, asker),
    };
    if !selection.all
        && let Some(refused) = selection.refuses(&*daemon.pool.definition(&call.server)?)
    {
        return Err(refused);
    }
    // What the request brings along comes first, then what its run did.
    let of_run = call.context.run.as_deref().filter(|_| !matches!(asker.origin, Origin::Channel(_)));
    let of_run = of_run.and_then(|id| daemon.runs.get(id).ok()).map(|run| run.carried()).unwrap_or_default();
    let limit = &settings::POOL_CALL_TIMEOUT;
    let call_timeout = asker.carried.get(limit).or_else(|| of_run.get(limit));
    let check = &settings::MCP_VALIDATE_ARGUMENTS;
    let validate = asker.carried.get(check).or_else(|| of_run.get(check));
    let way = &settings::ARTIFACTS_RESULTS;
    let way = asker.carried.get(way).or_else(|| of_run.get(way));
    let from = &settings::ARTIFACTS_RESULTS_FROM;
    let from = asker.carried.get(from).or_else(|| of_run.get(from));
    let limits = limits(daemon, &call.context, asker);
    let current = daemon.current();
    let permit = |schema: &ServerSchema, tool: &Tool| {
        let names = current.names.iter().find(|n| n.name == schema.server);
        runs::check(&limits, names.map_or(schema.server.as_str(), |n| &n.ident), schema, tool)
    };
    let meta = passed_meta(call.meta);
    let (caller, own) = caller_of(daemon, call.context, asker);
    let asking = Asking::new(daemon, ("call", &call.server, &call.tool), &caller, asker, call.input.clone());
    let outcome = daemon.pool.call(
        Call {
            server: &call.server,
            tool: &call.tool,
            arguments: call.arguments,
            timeout: call.timeout_ms.map(Duration::from_millis),
            call_timeout,
            validate,
            permit: (!limits.is_empty()).then_some(&permit as &Permit<'_>),
            cancel: asker.cancel,
            progress: asker.progress.clone(),
            asked: Some(asking.handler()),
            capabilities: call.input.as_ref(),
            meta: meta.as_ref(),
            began: Some(asking.listed()),
        },
        &caller,
    );
    asking.over(daemon, &outcome);
    if own {
        daemon.pool.end_session(&caller.session);
    }
    if way.unwrap_or_else(|| current.settings.get(&settings::ARTIFACTS_RESULTS)) == "inline" {
        return outcome;
    }
    let from = from.unwrap_or_else(|| current.settings.get(&settings::ARTIFACTS_RESULTS_FROM));
    let called =
        Called { tool: &call.tool, run: caller.run.clone(), session: (!own).then(|| caller.session.clone()) };
    outcome.map(|result| references::replaced(daemon, result, &called, from))
}

/// What of a caller's `_meta` its server gets: all that is not about the connection between the two of them, which is
/// another than that between the server and mcpx.
pub(super) fn passed_meta(given: Option<Value>) -> Option<Value> {
    const OURS: &str = "io.modelcontextprotocol/";
    let Some(Value::Object(mut meta)) = given else { return None };
    meta.retain(|key, _| key != "progressToken" && !key.starts_with(OURS));
    (!meta.is_empty()).then_some(Value::Object(meta))
}

/// What a call needs should its server ask something.
pub(super) struct Asking {
    daemon: std::sync::Weak<Daemon>,
    tool: String,
    session: String,
    run: Option<String>,
    cancel: Cancel,
    early: Option<Arc<Early>>,
    /// What the caller answers itself, as MCP's `ClientCapabilities`.
    input: Option<Value>,
    /// What was asked.
    questions: Mutex<Vec<String>>,
}

impl Asking {
    /// Of a call, or of another operation, where a method stands for the tool.
    pub fn new(
        daemon: &Arc<Daemon>,
        (op, server, tool): (&'static str, &str, &str),
        caller: &Caller,
        asker: &Asker<'_>,
        input: Option<Value>,
    ) -> Arc<Asking> {
        if let Some(early) = &asker.early {
            early.enter(
                daemon,
                Subject {
                    op,
                    server: server.to_owned(),
                    tool: tool.to_owned(),
                    session: caller.session.clone(),
                    cancel: asker.cancel.clone(),
                },
            );
        }
        Arc::new(Asking {
            daemon: Arc::downgrade(daemon),
            tool: tool.to_owned(),
            session: caller.session.clone(),
            run: caller.run.clone(),
            cancel: asker.cancel.clone(),
            early: asker.early.clone(),
            input,
            questions: Mutex::default(),
        })
    }

    /// Takes what is asked.
    pub fn handler(self: &Arc<Self>) -> Asked {
        let asking = self.clone();
        Arc::new(move |question| asking.ask(question))
    }

    /// Lists the call as a task from now on, since that is what it is at its server.
    fn listed(self: &Arc<Self>) -> Arc<dyn Fn() + Send + Sync> {
        let asking = self.clone();
        Arc::new(move || {
            if let Some(daemon) = asking.daemon.upgrade() {
                let _ = asking.task(&daemon);
            }
        })
    }

    fn ask(&self, question: Question) {
        // Dropped with the daemon gone, it is refused.
        let Some(daemon) = self.daemon.upgrade() else { return };
        let about = About {
            tool: Some(self.tool.clone()),
            session: self.session.clone(),
            run: self.run.clone(),
            task: None,
        };
        // Only a caller that is told of it at once can answer what nobody else can.
        let hosted = self.early.is_some() && self.answers(&question.method);
        if question.method == asks::sampling::METHOD && !hosted {
            return asks::sampling::begin(&daemon, question, about, Some(&self.cancel));
        }
        let settings = daemon.current().settings.clone();
        let about = || About { task: self.task(&daemon).map(|task| task.id.clone()), ..about };
        let more = question.more;
        let taken = daemon.questions.take(question, about, &settings, Some(&self.tool), hosted);
        if let Some(id) = taken.as_ref().and_then(|row| row["id"].as_str()) {
            self.questions.lock().unwrap_or_else(PoisonError::into_inner).push(id.to_owned());
        }
        // Those that are asked at once are told of at once.
        let task = self.early.as_ref().and_then(|early| early.begun());
        let Some(task) = task.filter(|_| !more) else { return };
        let open = daemon.questions.list(Some(&task.id));
        if open.is_empty() {
            return;
        }
        daemon.tasks.asks(&task);
        if let Some(early) = &self.early {
            early.tell(&asks::input_required(&task, &open, daemon.origin.is_inside()));
        }
    }

    /// Whether the caller said that it answers such requests itself.
    fn answers(&self, method: &str) -> bool {
        let capability = match method {
            asks::sampling::METHOD => "sampling",
            "roots/list" => "roots",
            _ => return false,
        };
        self.input.as_ref().is_some_and(|input| input[capability].is_object())
    }

    /// The task that this call becomes when its caller is answered early.
    fn task(&self, daemon: &Daemon) -> Option<Arc<Task>> {
        // Without a task a question is still a question.
        self.early.as_ref()?.task(daemon).ok().flatten()
    }

    /// The call is over, and nothing that was asked for it is of use any more.
    pub fn over(&self, daemon: &Daemon, outcome: &Result<Box<RawValue>>) {
        let asked = std::mem::take(&mut *self.questions.lock().unwrap_or_else(PoisonError::into_inner));
        asked.iter().for_each(|id| daemon.questions.withdraw(id));
        let Some(task) = self.early.as_ref().and_then(|early| early.over()) else { return };
        if let Some(session) = daemon.tasks.finish(&task, outcome.clone()) {
            daemon.pool.end_session(&session);
        }
    }
}

#[derive(Deserialize)]
pub struct OfId {
    id: String,
}

#[derive(Deserialize)]
pub struct Answered {
    id: String,
    action: String,
    content: Option<Value>,
    result: Option<Value>,
}

#[derive(Deserialize)]
pub struct Awaited {
    id: String,
    #[serde(rename = "waitMs")]
    wait_ms: Option<u64>,
    /// Questions are no reason to come back.
    #[serde(default, rename = "untilOver")]
    until_over: bool,
}

/// Every open question.
pub fn questions(daemon: &Daemon) -> Result<Done> {
    json_of(&serde_json::json!({"questions": daemon.questions.list(None)}))
}

/// One open question.
pub fn question(daemon: &Daemon, wanted: &OfId) -> Result<Done> {
    json_of(&daemon.questions.get(&wanted.id)?)
}

/// Answers a question.
pub fn answer(daemon: &Daemon, answered: Answered) -> Result<Done> {
    let row = daemon.questions.answer(&answered.id, &answered.action, answered.content, answered.result)?;
    // A task that waits for nothing more goes on.
    if let Some(task) = row["task"].as_str().and_then(|id| daemon.tasks.get(id).ok())
        && daemon.questions.list(Some(&task.id)).is_empty()
    {
        daemon.tasks.goes_on(&task);
    }
    json_of(&row)
}

/// Every task.
pub fn tasks(daemon: &Daemon) -> Result<Done> {
    let rows: Vec<Value> = daemon.tasks.list().iter().map(|task| row(daemon, task)).collect();
    json_of(&serde_json::json!({"tasks": rows}))
}

/// One task, with the questions that it waits for.
pub fn task(daemon: &Daemon, wanted: &OfId) -> Result<Done> {
    let task = daemon.tasks.get(&wanted.id)?;
    let mut row = row(daemon, &task);
    let questions = daemon.questions.list(Some(&task.id));
    if !questions.is_empty() {
        row["questions"] = questions.into();
    }
    json_of(&row)
}

fn row(daemon: &Daemon, task: &Arc<Task>) -> Value {
    task.row(daemon.questions.list(Some(&task.id)).len())
}

/// The result of a task's call, once it is there.
pub fn result(daemon: &Daemon, wanted: &Awaited, asker: &Asker<'_>) -> Result<Done> {
    let task = daemon.tasks.get(&wanted.id)?;
    let open = || !wanted.until_over && !daemon.questions.list(Some(&task.id)).is_empty();
    match task.wait(wanted.wait_ms.map(Duration::from_millis), asker.cancel, &open) {
        Waited::Finished(outcome) => outcome.map(Done::Tool),
        Waited::Asked => {
            let open = daemon.questions.list(Some(&task.id));
            let error = asks::input_required(&task, &open, daemon.origin.is_inside());
            Ok(Done::Response(asked(&error)))
        }
        Waited::Working => Err(Error::new(Kind::Timeout, format!("task {} is not over yet", task.id))
            .server(&task.server)
            .tool(&task.tool)
            .hint("it goes on; ask again")),
    }
}

/// How long the answer to a cancellation waits for the task's end, so that it tells what became of it.
const STOPPING: Duration = Duration::from_secs(2);

/// Has a task stop. `stopped` says whether there was anything to stop.
pub fn cancel(daemon: &Daemon, wanted: &OfId) -> Result<Done> {
    let task = daemon.tasks.get(&wanted.id)?;
    let stopped = task.cancel(STOPPING);
    let mut row = row(daemon, &task);
    row["stopped"] = stopped.into();
    json_of(&row)
}
