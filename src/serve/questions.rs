//! What servers ask in the middle of a call, put to the host: as a request of
//! its own where the host shook hands, as part of the result in the stateless
//! era. Knows nothing of how questions are kept.

use super::backend::params;
use super::dispatch::Ask;
use super::era::Era;
use super::session::{Heard, Session};
use super::upstreams::operation;
use crate::error::{Error, Kind, Result};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// The method by which a host is asked.
const METHOD: &str = "elicitation/create";

/// What came of a call.
pub enum Outcome {
    /// The tool's result.
    Called(Box<RawValue>),
    /// The host is to answer first, and to ask again: a result of the stateless era.
    Asked(Value),
}

/// Answers to earlier questions, as a request of the stateless era brings them.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Retry {
    #[serde(default)]
    input_responses: Map<String, Value>,
    request_state: Option<String>,
}

/// Goes on with a call for as long as its server asks and the host answers.
///
/// # Errors
/// Those of the call; `InputRequired` when the host answers no such questions.
pub fn settle(session: &Session, ask: &Ask<'_>, first: Result<Box<RawValue>>) -> Result<Outcome> {
    let mut outcome = first;
    loop {
        let error = match outcome {
            Ok(result) => return Ok(Outcome::Called(result)),
            Err(error) if error.kind() == Kind::InputRequired => error,
            Err(error) => return Err(error),
        };
        let asked = error.raw_value().map(|raw| raw["inputRequired"].clone()).unwrap_or_default();
        let questions = asked["questions"].as_array().cloned().unwrap_or_default();
        let Some(task) = asked["callId"].as_str().filter(|_| !questions.is_empty()) else {
            return Err(error);
        };
        let host = match &ask.era {
            Era::Handshake(_) => session.host().capabilities,
            Era::Stateless(envelope) => envelope.capabilities.clone(),
        };
        if !questions.iter().all(|question| can(&host, question)) {
            return Err(error);
        }
        if ask.era.is_stateless() {
            let requests: Map<String, Value> = questions
                .iter()
                .filter_map(|q| {
                    Some((q["id"].as_str()?.to_owned(), json!({"method": METHOD, "params": form(q)})))
                })
                .collect();
            let result =
                json!({"resultType": "input_required", "inputRequests": requests, "requestState": task});
            return Ok(Outcome::Asked(result));
        }
        for question in &questions {
            let id = question["id"].as_str().unwrap_or_default();
            let answer = match session.ask_host(ask, id, METHOD, &form(question)) {
                Heard::Answer(Ok(answer)) => answer,
                // A host that fails to answer has not declined: nobody was asked.
                Heard::Answer(Err(_)) => json!({"action": "cancel"}),
                Heard::Settled => continue,
                Heard::Gone => return Err(Error::new(Kind::Cancelled, "the host has gone")),
            };
            match answer_one(session, ask, id, &answer) {
                // Somebody else was quicker.
                Err(error) if error.kind() == Kind::NotFound => {}
                outcome => outcome?,
            }
        }
        outcome = result(session, ask, task);
    }
}

/// Takes up a call that the host was asked about, with its answers.
///
/// # Errors
/// `NotFound` for a state that is not one of ours, or no longer.
pub fn resume(session: &Session, ask: &Ask<'_>, retry: &Retry) -> Option<Result<Box<RawValue>>> {
    let task = retry.request_state.as_deref()?;
    for (id, answer) in &retry.input_responses {
        match answer_one(session, ask, id, answer) {
            // What was not asked is not of interest; what does not fit is asked again.
            Err(error) if !matches!(error.kind(), Kind::NotFound | Kind::Usage) => return Some(Err(error)),
            _ => {}
        }
    }
    Some(result(session, ask, task))
}

/// Whether a host answers such a question.
fn can(host: &Value, question: &Value) -> bool {
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

fn answer_one(session: &Session, ask: &Ask<'_>, id: &str, answer: &Value) -> Result<()> {
    let mut given = json!({"id": id, "action": answer["action"].as_str().unwrap_or("cancel")});
    if answer["content"].is_object() {
        given["content"] = answer["content"].clone();
    }
    session.backend.perform(operation("answerQuestion")?, &params(&given)?, &ask.asked()).map(drop)
}

fn result(session: &Session, ask: &Ask<'_>, task: &str) -> Result<Box<RawValue>> {
    session.backend.perform(operation("taskResult")?, &params(&json!({"id": task}))?, &ask.asked())
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
    }
}
