//! Calls of a host's that go on as tasks: with `task` in their parameters and
//! `tasks/*` in revision 2025-11-25, as the tasks extension in the stateless era.
//! Knows nothing of how tasks are kept: those are the daemon's.

use super::backend::params;
use super::calls::answered;
use super::dispatch::{Ask, first_page, tagged};
use super::era::{Era, TASKS_KEY};
use super::fault::{Fault, MISSING_CAPABILITY};
use super::members::Members;
use super::questions::{self, Retry};
use super::render;
use super::session::Session;
use super::upstreams::operation;
use crate::api::ops::{Id, Operation};
use crate::error::{Error, Kind, Result};
use crate::mcp::jsonrpc::{self, INVALID_REQUEST};
use crate::pool::Cancel;
use crate::util::iso8601;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// What the methods begin with.
pub const METHODS: &str = "tasks/";
/// The revision that has tasks of its own; those before know none.
const REVISION: &str = "2025-11-25";
/// `_meta`: the task that something belongs to (2025-11-25).
const RELATED_KEY: &str = "io.modelcontextprotocol/related-task";
/// How often a host is asked to look: seldom enough to cost nothing, and a task takes longer than that.
const POLL: Duration = Duration::from_secs(1);
/// The shortest time for which a task is kept: a host that wants less could not fetch its result.
const SHORTEST: Duration = Duration::from_secs(60);

/// A call that is to be a task, as the operation takes it.
#[derive(Clone, Debug)]
pub struct Wish {
    /// How long its answer is waited for before.
    after: u64,
    ttl: u64,
    owner: String,
}

impl Wish {
    /// The operation's parameter.
    pub fn param(&self) -> Value {
        json!({"afterMs": self.after, "ttlMs": self.ttl, "owner": self.owner})
    }

    /// How long an answer is waited for before it is a task, in milliseconds.
    pub fn after(&self) -> u64 {
        self.after
    }
}

/// Whether there are tasks in that era.
pub fn are_known(era: &Era) -> bool {
    match era {
        Era::Handshake(revision) => *revision == REVISION,
        Era::Stateless(_) => true,
    }
}

/// What of tasks a host is told in the handshake.
pub fn capability(revision: &str) -> Option<Value> {
    let all = json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
    (revision == REVISION).then_some(all)
}

/// Whether an operation may take long enough for a task.
pub fn may_be(op: &Operation) -> bool {
    matches!(op.id, Id::Call | Id::Exec)
}

/// Says in a tool's entry whether it can be called as a task. A tool that its own server carries
/// out as a task only is called by mcpx as that, whatever a host does.
pub fn mark(ask: &Ask<'_>, tool: &mut Value) {
    let Some(tool) = tool.as_object_mut() else { return };
    match &ask.era {
        Era::Handshake(REVISION) => {
            let execution = tool.entry("execution").or_insert_with(|| json!({}));
            if execution.is_object() {
                execution["taskSupport"] = "optional".into();
            }
        }
        // Others have no such member.
        _ => drop(tool.remove("execution")),
    }
}

/// Whether the host of a stateless request knows the extension.
fn is_declared(ask: &Ask<'_>) -> bool {
    match &ask.era {
        Era::Stateless(envelope) => envelope.capabilities["extensions"][TASKS_KEY].is_object(),
        Era::Handshake(_) => false,
    }
}

/// How a call is to be a task; none when it is not.
///
/// # Errors
/// A `task` that is none; a tool that is never one.
pub fn wish(session: &Session, ask: &Ask<'_>, can: bool) -> Result<Option<Wish>, Fault> {
    let owner = session.backend.binding();
    let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let most = ms(session.options.task_ttl);
    match &ask.era {
        Era::Stateless(_) if can && is_declared(ask) => {
            Ok(Some(Wish { after: ms(session.options.task_after), ttl: most, owner }))
        }
        Era::Handshake(REVISION) => {
            #[derive(Deserialize)]
            struct Params {
                task: Option<Value>,
            }
            let Some(task) = ask.params::<Params>()?.task else { return Ok(None) };
            if !can {
                return Err(Fault::new(jsonrpc::METHOD_NOT_FOUND, "this tool is not carried out as a task"));
            }
            let wrong = || Fault::params("params.task: {\"ttl\"?: milliseconds, not negative}");
            let ttl = match &task["ttl"] {
                _ if !task.is_object() => return Err(wrong()),
                Value::Null => most,
                // What is beyond a u64 is beyond what is kept, too.
                ttl => match ttl.as_f64().filter(|ms| *ms >= 0.0) {
                    Some(ms) => ms as u64,
                    None => return Err(wrong()),
                },
            };
            Ok(Some(Wish { after: 0, ttl: ttl.min(most).max(ms(SHORTEST).min(most)), owner }))
        }
        _ => Ok(None),
    }
}

/// The task that an answer says has begun; none when it is the answer itself.
pub fn begun(answer: &RawValue) -> Option<Value> {
    #[derive(Deserialize)]
    struct Begun {
        task: Value,
    }
    if !answer.get().starts_with("{\"task\":") {
        return None;
    }
    let task = serde_json::from_str::<Begun>(answer.get()).ok()?.task;
    (task["id"].is_string() && task["owner"].is_string()).then_some(task)
}

/// The answer to a call that has become a task.
pub fn created(session: &Session, ask: &Ask<'_>, row: &Value) -> String {
    let task = shown(session, ask, row);
    if !ask.era.is_stateless() {
        return json!({"task": task}).to_string();
    }
    let mut result = task;
    result["resultType"] = "task".into();
    result.to_string()
}

/// Answers `tasks/*`.
///
/// # Errors
/// No such task of this host's; what its era does not have; what the call failed with.
pub fn request(session: &Session, ask: &Ask<'_>) -> Result<String, Fault> {
    let stateless = ask.era.is_stateless();
    let known = match ask.request.method.as_str() {
        "tasks/get" | "tasks/cancel" => true,
        "tasks/update" => stateless,
        "tasks/list" | "tasks/result" => !stateless,
        _ => false,
    };
    if !known {
        return Err(Fault::method(&ask.request.method));
    }
    if stateless && !is_declared(ask) {
        let needed = json!({"requiredCapabilities": {"extensions": {TASKS_KEY: {}}}});
        return Err(Fault::new(
            MISSING_CAPABILITY,
            format!("{} needs the tasks extension", ask.request.method),
        )
        .data(needed));
    }
    if ask.request.method == "tasks/list" {
        return list(session, ask);
    }
    let row = find(session, ask)?;
    match ask.request.method.as_str() {
        "tasks/get" => get(session, ask, &row),
        "tasks/cancel" => cancel(session, ask, &row),
        "tasks/update" => update(session, ask, &row),
        _ => result(session, ask, &row),
    }
}

fn perform(session: &Session, ask: &Ask<'_>, op: &str, given: &Value) -> Result<Box<RawValue>> {
    session.backend.perform(operation(op)?, &params(given)?, &ask.asked())
}

/// An operation's answer, read.
fn asked(session: &Session, ask: &Ask<'_>, op: &str, given: &Value) -> Result<Value> {
    let answer = perform(session, ask, op, given)?;
    serde_json::from_str(answer.get()).map_err(|e| Error::new(Kind::Internal, format!("reading {op}: {e}")))
}

/// Whether a task is this host's.
fn is_ours(session: &Session, row: &Value) -> bool {
    row["owner"].as_str().is_some_and(|owner| owner == session.backend.binding())
}

/// The task that a request names. One of somebody else's is as good as none.
fn find(session: &Session, ask: &Ask<'_>) -> Result<Value, Fault> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        task_id: String,
    }
    let id = ask.params::<Params>()?.task_id;
    look(session, ask, &id)
        .map_err(|e| Fault::of(&e))?
        .ok_or_else(|| Fault::params("params.taskId: there is no such task, or no longer"))
}

fn look(session: &Session, ask: &Ask<'_>, id: &str) -> Result<Option<Value>> {
    match asked(session, ask, "task", &json!({"id": id})) {
        Ok(row) => Ok(Some(row).filter(|row| is_ours(session, row))),
        Err(error) if error.kind() == Kind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The tasks that a host may be told of, of those that it names.
pub fn named<'a>(session: &Session, ask: &Ask<'_>, ids: impl Iterator<Item = &'a str>) -> Vec<String> {
    let ours = |id: &&str| matches!(look(session, ask, id), Ok(Some(_)));
    if !is_declared(ask) {
        return Vec::new();
    }
    ids.filter(ours).map(str::to_owned).collect()
}

/// A task as its era shows it.
fn shown(session: &Session, ask: &Ask<'_>, row: &Value) -> Value {
    let stateless = ask.era.is_stateless();
    let questions = answerable(session, ask, row);
    let status = match row["status"].as_str().unwrap_or_default() {
        // What the host cannot answer is not the host's to wait for.
        "input_required" if questions.is_empty() => "working",
        // Here a tool that failed is a task that failed; in the stateless era it has done what it does.
        "completed" if row["isError"] == true && !stateless => "failed",
        other => other,
    };
    let time = |key: &str| iso8601(row[key].as_u64().unwrap_or_default());
    let poll = u64::try_from(POLL.as_millis()).unwrap_or(u64::MAX);
    let (ttl, interval) = if stateless { ("ttlMs", "pollIntervalMs") } else { ("ttl", "pollInterval") };
    let mut task = json!({
        "taskId": row["id"],
        "status": status,
        "createdAt": time("createdAt"),
        "lastUpdatedAt": time("updatedAt"),
        ttl: row["ttlMs"],
        interval: poll,
    });
    if let Some(message) = message(row, &questions) {
        task["statusMessage"] = message.into();
    }
    task
}

/// What a task says of itself.
fn message(row: &Value, answerable: &[&Value]) -> Option<String> {
    let asks = row["questions"].as_array().and_then(|all| all.first());
    match asks {
        Some(question) => {
            let text = question["message"].as_str().unwrap_or_default();
            let id = question["id"].as_str().unwrap_or_default();
            Some(match answerable.is_empty() {
                true => format!("{text} (mcpx elicit show {id})"),
                false => text.to_owned(),
            })
        }
        None => row["message"].as_str().map(str::to_owned),
    }
}

/// What a task waits for that this host can answer.
fn answerable<'a>(session: &Session, ask: &Ask<'_>, row: &'a Value) -> Vec<&'a Value> {
    let host = questions::host(session, ask);
    row["questions"].as_array().into_iter().flatten().filter(|q| questions::can(&host, q)).collect()
}

/// Whether nothing more will come of it.
fn is_over(row: &Value) -> bool {
    matches!(row["status"].as_str(), Some("completed" | "failed" | "cancelled"))
}

fn list(session: &Session, ask: &Ask<'_>) -> Result<String, Fault> {
    first_page(ask)?;
    let all = asked(session, ask, "tasks", &json!({})).map_err(|e| Fault::of(&e))?;
    let rows = all["tasks"].as_array().into_iter().flatten().filter(|row| is_ours(session, row));
    let tasks: Vec<Value> = rows.map(|row| shown(session, ask, row)).collect();
    Ok(ask.result(json!({"tasks": tasks})))
}

fn get(session: &Session, ask: &Ask<'_>, row: &Value) -> Result<String, Fault> {
    let task = match ask.era.is_stateless() {
        true => detailed(session, ask, row)?,
        false => shown(session, ask, row),
    };
    Ok(ask.result(task))
}

/// A task of the stateless era, with what it waits for or what came of it.
fn detailed(session: &Session, ask: &Ask<'_>, row: &Value) -> Result<Value, Fault> {
    let mut task = shown(session, ask, row);
    if task["status"] == "input_required" {
        task["inputRequests"] = questions::requests(&answerable(session, ask, row)).into();
    }
    if !is_over(row) || row["status"] == "cancelled" {
        return Ok(task);
    }
    match ended(session, ask, row) {
        Ok(result) => {
            task["status"] = "completed".into();
            task["result"] = serde_json::from_str(&result).unwrap_or_default();
        }
        Err(fault) => {
            task["status"] = "failed".into();
            task["error"] = fault.to_json();
        }
    }
    Ok(task)
}

/// What came of a task, once it is over: just what the call would have been answered with.
fn ended(session: &Session, ask: &Ask<'_>, row: &Value) -> Result<String, Fault> {
    let answer = perform(session, ask, "taskResult", &json!({"id": row["id"], "untilOver": true}));
    let answer = match row["op"].as_str() {
        Some("exec") => answer.and_then(|answer| render::result(operation("exec")?, answer)),
        _ => answer,
    };
    if ask.cancel.is_cancelled() {
        return Err(Fault::request("the request was cancelled"));
    }
    answered(session, ask, row["server"].as_str(), answer)
}

fn cancel(session: &Session, ask: &Ask<'_>, row: &Value) -> Result<String, Fault> {
    let stateless = ask.era.is_stateless();
    if is_over(row) && !stateless {
        let status = row["status"].as_str().unwrap_or_default();
        return Err(Fault::params(format!("params.taskId: the task is over: {status}")));
    }
    let stopped = asked(session, ask, "cancelTask", &json!({"id": row["id"]})).map_err(|e| Fault::of(&e))?;
    match stateless {
        true => Ok(ask.result(json!({}))),
        false => Ok(ask.result(shown(session, ask, &stopped))),
    }
}

fn update(session: &Session, ask: &Ask<'_>, row: &Value) -> Result<String, Fault> {
    let answers = ask.params::<Retry>()?.input_responses;
    let open = row["questions"].as_array().map(Vec::as_slice).unwrap_or_default();
    questions::answer_all(session, ask, open, &answers).map_err(|e| Fault::of(&e))?;
    Ok(ask.result(json!({})))
}

/// `tasks/result`: waits for the end. What the server asks meanwhile is put to the host here.
fn result(session: &Session, ask: &Ask<'_>, row: &Value) -> Result<String, Fault> {
    let id = row["id"].as_str().unwrap_or_default();
    if row["status"] == "cancelled" {
        return Err(Fault::new(INVALID_REQUEST, "the task was cancelled"));
    }
    let related = json!({RELATED_KEY: {"taskId": id}});
    let host = questions::host(session, ask);
    loop {
        match perform(session, ask, "taskResult", &json!({"id": id})) {
            Err(error) if error.kind() == Kind::InputRequired => {
                let all = error.raw_value().map(|raw| raw["inputRequired"]["questions"].clone());
                let all = all.and_then(|all| all.as_array().cloned()).unwrap_or_default();
                // Others answer what this host cannot (`mcpx elicit`).
                if !all.iter().all(|question| questions::can(&host, question)) {
                    break;
                }
                match questions::put(session, ask, &all, Some(&related)) {
                    Ok(true) => {}
                    Ok(false) => return Err(Fault::request("the request was cancelled")),
                    Err(error) => return Err(Fault::of(&error)),
                }
            }
            _ => break,
        }
    }
    let text = ended(session, ask, row)?;
    // It may have been cancelled meanwhile.
    if look(session, ask, id).is_ok_and(|row| row.is_some_and(|row| row["status"] == "cancelled")) {
        return Err(Fault::new(INVALID_REQUEST, "the task was cancelled"));
    }
    Ok(belonging(&text, &related).unwrap_or(text))
}

/// A result that says which task it is of.
fn belonging(result: &str, related: &Value) -> Option<String> {
    let mut members = Members::read(result)?;
    let mut meta: Map<String, Value> =
        members.get("_meta").and_then(|meta| serde_json::from_str(meta.get()).ok()).unwrap_or_default();
    meta.extend(related.as_object().cloned().unwrap_or_default());
    members.set("_meta", &meta);
    Some(members.to_string())
}

/// A task is another than before: what its host is told, as one that listens or in its session.
pub fn told(session: &Session, id: &str, listener: Option<(Era, &Value)>) -> Option<Vec<u8>> {
    // On behalf of nobody in particular: of the host that is told.
    let (cancel, out) = (Cancel::new(), super::backend::nowhere());
    let request = super::session::Request {
        id: to_raw_value(&0).ok()?,
        method: String::new(),
        params: None,
        mirrored: None,
    };
    let (era, tag) = match listener {
        Some((era, tag)) => (era, Some(tag)),
        None => (Era::Handshake(REVISION), None),
    };
    let ask = Ask { era, request: &request, meta: None, cancel: &cancel, out: &out };
    let row = look(session, &ask, id).ok()??;
    // That it has begun is what its call is answered.
    if row["status"] == "working" && row["createdAt"] == row["updatedAt"] {
        return None;
    }
    Some(match tag {
        Some(tag) => {
            let mut task = detailed(session, &ask, &row).ok()?;
            task["_meta"] = tagged(tag);
            jsonrpc::notification("notifications/tasks", Some(&task))
        }
        None => jsonrpc::notification("notifications/tasks/status", Some(&shown(session, &ask, &row))),
    })
}

/// Whether a host with this revision hears of its tasks.
pub fn hears(revision: Option<&str>) -> bool {
    revision == Some(REVISION)
}
