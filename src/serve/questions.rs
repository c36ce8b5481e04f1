//! What servers ask in the middle of a call, put to the host: as a request of
//! its own where the host shook hands, as part of the result in the stateless
//! era. Knows nothing of how questions are kept.

use super::backend::{Asked, params};
use super::dispatch::Ask;
use super::era::Era;
use super::session::{Heard, Session};
use super::tasks::{self, Wish};
use super::upstreams::operation;
use crate::error::{Error, Kind, Result};
use crate::log;
use crate::pool::Cancel;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// The method by which a host is asked for a form, or to open a URL.
const METHOD: &str = "elicitation/create";

/// What of a host's capabilities is for questions.
const KINDS: [&str; 3] = ["elicitation", "sampling", "roots"];

/// What came of a call.
pub enum Outcome {
    /// The tool's result.
    Called(Box<RawValue>),
    /// The host is to answer first, and to ask again: a result of the stateless era.
    Asked(Value),
    /// It goes on as this task.
    Begun(Value),
}

/// Answers to earlier questions, as a request of the stateless era brings them.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Retry {
    #[serde(default)]
    pub input_responses: Map<String, Value>,
    request_state: Option<String>,
}

/// Goes on with a call for as long as its server asks and the host answers.
///
/// # Errors
/// Those of the call; `InputRequired` when the host answers no such questions.
pub fn settle(
    session: &Session,
    ask: &Ask<'_>,
    first: Result<Box<RawValue>>,
    wish: Option<&Wish>,
) -> Result<Outcome> {
    let mut outcome = first;
    // With a state they were for an earlier round, and are used up.
    let early = ask.params::<Retry>().ok().filter(|retry| retry.request_state.is_none());
    let mut early = early.map(|retry| retry.input_responses).filter(|answers| !answers.is_empty());
    loop {
        let error = match outcome {
            Ok(result) => {
                return Ok(match wish.and_then(|_| tasks::begun(&result)) {
                    Some(task) => Outcome::Begun(task),
                    None => Outcome::Called(result),
                });
            }
            Err(error) if error.kind() == Kind::InputRequired => error,
            Err(error) => return Err(error),
        };
        let asked = error.raw_value().map(|raw| raw["inputRequired"].clone()).unwrap_or_default();
        let questions = asked["questions"].as_array().cloned().unwrap_or_default();
        let Some(task) = asked["callId"].as_str().filter(|_| !questions.is_empty()) else {
            return Err(error);
        };
        let host = host(session, ask);
        if !questions.iter().all(|question| can(&host, question)) {
            return Err(error);
        }
        if ask.era.is_stateless() {
            // A host that knows what will be asked may answer before.
            if let Some(answers) = early.take()
                && answer_all(session, ask, &questions, &answers)? > 0
            {
                outcome = result(session, ask, task, wish);
                continue;
            }
            let requests = requests(&questions.iter().collect::<Vec<_>>());
            // It changes from round to round: that of an earlier one is no use any more.
            let first = questions[0]["id"].as_str().unwrap_or_default();
            let state = format!("{task}{APART}{first}");
            let result =
                json!({"resultType": "input_required", "inputRequests": requests, "requestState": state});
            return Ok(Outcome::Asked(result));
        }
        let put = put(session, ask, &questions, None);
        if !matches!(put, Ok(true)) {
            abandon(session, task);
            return Err(put.err().unwrap_or_else(|| Error::new(Kind::Cancelled, "the host has gone")));
        }
        outcome = result(session, ask, task, wish);
    }
}

/// Puts questions to a host of the handshake era, one after another, and answers them with what it
/// says; false when it has gone. `related` is said along with each.
///
/// # Errors
/// That the daemon could not be told.
pub fn put(session: &Session, ask: &Ask<'_>, questions: &[Value], related: Option<&Value>) -> Result<bool> {
    for question in questions {
        let id = question["id"].as_str().unwrap_or_default();
        let (method, mut params) = request(question);
        if let Some(related) = related.and_then(Value::as_object) {
            let said = params["_meta"].as_object().cloned().unwrap_or_default();
            params["_meta"] = said.into_iter().chain(related.clone()).collect::<Map<_, _>>().into();
        }
        let answer = match session.ask_host(ask, id, method, &params) {
            Heard::Answer(Ok(answer)) => given(question, &answer).unwrap_or_else(nothing),
            // A host that fails to answer has not declined: nobody was asked.
            Heard::Answer(Err(_)) => nothing(),
            Heard::Settled => continue,
            Heard::Gone => return Ok(false),
        };
        match answer_one(session, ask, id, answer) {
            // Somebody else was quicker.
            Err(error) if error.kind() == Kind::NotFound => {}
            // Asked once more, a host would say the same: its user has seen a form that takes this. The call goes
            // on without an answer, rather than be lost with a question that stays open.
            Err(error) if error.kind() == Kind::Usage => {
                log::warn(format_args!("the host's answer is none: {}", error.message()));
                match answer_one(session, ask, id, nothing()) {
                    Err(error) if error.kind() == Kind::NotFound => {}
                    outcome => outcome?,
                }
            }
            outcome => outcome?,
        }
    }
    Ok(true)
}

/// Questions as the stateless era asks them, by their keys.
pub fn requests(questions: &[&Value]) -> Map<String, Value> {
    let one = |question: &&Value| {
        let (method, params) = request(question);
        Some((key(question)?.to_owned(), json!({"method": method, "params": params})))
    };
    questions.iter().filter_map(one).collect()
}

/// Between the task and the first question of a round, in the state that a host brings back.
const APART: char = '.';

/// The task of a state that mcpx gave out.
fn task_of(state: &str) -> Option<&str> {
    let (task, question) = state.split_once(APART)?;
    let digits = question.strip_prefix("q-")?;
    (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit())).then_some(task)
}

/// Takes up a request that the host was asked about, with its answers.
///
/// # Errors
/// `NotFound` for a state that is not one of ours, or no longer.
pub fn resume(
    session: &Session,
    ask: &Ask<'_>,
    retry: &Retry,
    wish: Option<&Wish>,
) -> Option<Result<Box<RawValue>>> {
    let state = retry.request_state.as_deref()?;
    Some(take_up(session, ask, (state, &retry.input_responses), wish))
}

fn take_up(
    session: &Session,
    ask: &Ask<'_>,
    (state, answers): (&str, &Map<String, Value>),
    wish: Option<&Wish>,
) -> Result<Box<RawValue>> {
    let task = task_of(state)
        .ok_or_else(|| Error::new(Kind::NotFound, "params.requestState is none that mcpx gave out"))?;
    let row = session.backend.perform(operation("task")?, &params(&json!({"id": task}))?, &ask.asked())?;
    let row: Value = serde_json::from_str(row.get()).unwrap_or_default();
    let questions = row["questions"].as_array().map(Vec::as_slice).unwrap_or_default();
    answer_all(session, ask, questions, answers)?;
    result(session, ask, task, wish)
}

/// Answers the questions that there is an answer to; how many.
///
/// # Errors
/// That the daemon could not be told.
pub fn answer_all(
    session: &Session,
    ask: &Ask<'_>,
    questions: &[Value],
    answers: &Map<String, Value>,
) -> Result<usize> {
    let mut answered = 0;
    for question in questions {
        let answer = key(question).and_then(|key| answers.get(key));
        // What does not fit is asked again; what was not asked is of no interest.
        let Some(given) = answer.and_then(|answer| given(question, answer)) else { continue };
        let id = question["id"].as_str().unwrap_or_default();
        match answer_one(session, ask, id, given) {
            // What somebody else answered is answered.
            Err(error) if !matches!(error.kind(), Kind::NotFound | Kind::Usage) => return Err(error),
            _ => answered += 1,
        }
    }
    Ok(answered)
}

/// What the host can do.
pub fn host(session: &Session, ask: &Ask<'_>) -> Value {
    match &ask.era {
        Era::Handshake(_) => session.host().capabilities,
        Era::Stateless(envelope) => envelope.capabilities.clone(),
    }
}

/// What a server is told that it may ask for in the course of this request: what the host said for
/// it. With a handshake forms are always among that, as others can answer them (`mcpx elicit`).
pub fn offered(session: &Session, ask: &Ask<'_>) -> Value {
    let said = host(session, ask);
    let mut out: Map<String, Value> = KINDS
        .iter()
        .filter_map(|kind| Some(((*kind).to_owned(), said.get(kind)?.clone())))
        .filter(|(_, value)| value.is_object())
        .collect();
    if !ask.era.is_stateless() {
        out.insert("elicitation".into(), json!({"form": {}, "url": {}}));
    }
    Value::Object(out)
}

/// What the server calls a question, or mcpx does.
fn key(question: &Value) -> Option<&str> {
    question["key"].as_str().or_else(|| question["id"].as_str())
}

/// The request that a question is to a host.
fn request(question: &Value) -> (&str, Value) {
    match question["method"].as_str() {
        Some(method) => (method, question["params"].clone()),
        None => (METHOD, form(question)),
    }
}

/// A host's answer to a question, as the operation takes it; none when it is no answer to such a question.
fn given(question: &Value, answer: &Value) -> Option<Value> {
    if question["method"].is_string() {
        return answer.is_object().then(|| json!({"action": "accept", "result": answer}));
    }
    let action = answer["action"].as_str().filter(|a| matches!(*a, "accept" | "decline" | "cancel"))?;
    let mut given = json!({"action": action});
    // To a URL there is nothing to say but that it was opened, and some hosts say an empty form.
    if answer["content"].is_object() && question["mode"] != "url" {
        given["content"] = answer["content"].clone();
    }
    Some(given)
}

/// No answer.
fn nothing() -> Value {
    json!({"action": "cancel"})
}

/// Whether a host answers such a question.
pub fn can(host: &Value, question: &Value) -> bool {
    if let Some(method) = question["method"].as_str() {
        let kind = method.split('/').next().unwrap_or_default();
        return host.get(kind).is_some_and(Value::is_object);
    }
    let Some(elicitation) = host.get("elicitation").and_then(Value::as_object) else { return false };
    match question["mode"].as_str() {
        Some("url") => elicitation.contains_key("url"),
        // Hosts before 2025-11-25 know forms only, and say no more than that.
        _ => elicitation.is_empty() || elicitation.contains_key("form") || !elicitation.contains_key("url"),
    }
}

/// The question as MCP asks it.
fn form(question: &Value) -> Value {
    let mut out = json!({"message": question["message"]});
    if question["mode"] == "url" {
        out["mode"] = "url".into();
        out["url"] = question["url"].clone();
        out["elicitationId"] = match &question["elicitationId"] {
            Value::Null => question["id"].clone(),
            id => id.clone(),
        };
    } else {
        out["requestedSchema"] = question["schema"].clone();
    }
    out
}

fn answer_one(session: &Session, ask: &Ask<'_>, id: &str, mut given: Value) -> Result<()> {
    given["id"] = id.into();
    let op = operation("answerQuestion")?;
    match session.backend.perform(op, &params(&given)?, &ask.asked()) {
        // What is no answer to such a request at all is a refusal.
        Err(error) if error.kind() == Kind::Usage && given.get("result").is_some() => {
            let declined = json!({"id": id, "action": "decline"});
            session.backend.perform(op, &params(&declined)?, &ask.asked()).map(drop)
        }
        outcome => outcome.map(drop),
    }
}

/// What came of a call that went on; a host that knows tasks waits no longer than for a call.
fn result(session: &Session, ask: &Ask<'_>, task: &str, wish: Option<&Wish>) -> Result<Box<RawValue>> {
    let perform =
        |op: &str, given: Value| session.backend.perform(operation(op)?, &params(&given)?, &ask.asked());
    let given = match wish {
        Some(wish) => json!({"id": task, "waitMs": wish.after()}),
        None => json!({"id": task}),
    };
    let outcome = perform("taskResult", given);
    match &outcome {
        Err(_) if ask.cancel.is_cancelled() => abandon(session, task),
        // The call may have run into a limit of its own.
        Err(error) if wish.is_some() && error.kind() == Kind::Timeout => {
            let row = perform("task", json!({"id": task}))?;
            let state: Value = serde_json::from_str(row.get()).unwrap_or_default();
            if state["status"] == "working" {
                return params(&json!({"task": state}));
            }
        }
        Err(_) | Ok(_) => {}
    }
    outcome
}

/// Nobody waits for a task any more: its server is told, and its questions are taken back.
fn abandon(session: &Session, task: &str) {
    let asked = Asked { cancel: &Cancel::new(), progress: None };
    let cancel = || session.backend.perform(operation("cancelTask")?, &params(&json!({"id": task}))?, &asked);
    if let Err(e) = cancel() {
        crate::log::debug(format_args!("cancelling {task}: {}", e.message()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_asked_only_what_it_answers() {
        let (form, url) = (json!({"mode": "form"}), json!({"mode": "url"}));
        for (host, takes_form, takes_url) in [
            (json!({}), false, false),
            (json!({"elicitation": {}}), true, false),
            (json!({"elicitation": {"form": {}}}), true, false),
            (json!({"elicitation": {"form": {}, "url": {}}}), true, true),
            (json!({"elicitation": {"url": {}}}), false, true),
        ] {
            assert_eq!((can(&host, &form), can(&host, &url)), (takes_form, takes_url), "{host}");
        }
        let (sampling, roots) =
            (json!({"method": "sampling/createMessage"}), json!({"method": "roots/list"}));
        let host = json!({"sampling": {}, "roots": true});
        assert_eq!((can(&host, &sampling), can(&host, &roots)), (true, false));
    }

    #[test]
    fn only_a_state_that_was_given_out_names_a_task() {
        assert_eq!(task_of("t-abc.q-0f9a"), Some("t-abc"));
        for other in ["t-abc", "t-abc.", "t-abc.q-", "t-abc.q-0f9a-TAMPERED", "t-abc.x-1", ""] {
            assert_eq!(task_of(other), None, "{other}");
        }
    }
}
