//! The prompts of all servers, and what completes their arguments and those of
//! resources' templates. Knows nothing of what is in them.

use super::backend::{Backend, params};
use super::dispatch::{Ask, first_page, unknown};
use super::ears::Ears;
use super::fault::Fault;
use super::questions::{self, Outcome};
use super::resources;
use super::session::Session;
use super::upstreams::{Offer, Target, operation};
use crate::error::{Kind, Result};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// `prompts/list`.
///
/// # Errors
/// A cursor; or that the daemon could not be asked.
pub fn list(session: &Session, ask: &Ask<'_>) -> Result<String, Fault> {
    first_page(ask)?;
    let items = session.upstreams.list(Offer::Prompts, &*session.backend, &session.options, &ask.asked());
    Ok(ask.listed(session, json!({"prompts": items.map_err(|e| Fault::of(&e))?})))
}

/// The prompt that a host names so.
fn find(session: &Session, ask: &Ask<'_>, name: &str) -> Result<Arc<Target>, Fault> {
    let backend: &dyn Backend = &*session.backend;
    match session.upstreams.find(Offer::Prompts, name, backend, &session.options, &ask.asked()) {
        Ok(target) => Ok(target),
        Err(error) if error.kind() == Kind::NotFound => Err(unknown(&error)),
        Err(error) => Err(Fault::of(&error)),
    }
}

/// `prompts/get`.
///
/// # Errors
/// What the server answers; that there is no such prompt.
pub fn get(session: &Session, ask: &Ask<'_>) -> Result<String, Fault> {
    #[derive(Deserialize)]
    struct Params {
        name: String,
        #[serde(default)]
        arguments: Map<String, Value>,
    }
    let wanted: Params = ask.params()?;
    if let Some(first) = ask.resumed(session, None)? {
        return answered(questions::settle(session, ask, first, None)).map(|text| ask.passed(&text));
    }
    let target = find(session, ask, &wanted.name)?;
    let input = questions::offered(session, ask);
    let mut given =
        json!({"server": target.server, "name": target.name, "arguments": wanted.arguments, "input": input});
    ask.add_meta(&mut given);
    perform(session, ask, "getPrompt", &given)
}

/// What came of a request, as the text of its result.
///
/// # Errors
/// What it failed with.
pub fn answered(outcome: Result<Outcome>) -> Result<String, Fault> {
    match outcome {
        Ok(Outcome::Called(result)) => Ok(result.get().to_owned()),
        Ok(Outcome::Asked(asked) | Outcome::Begun(asked)) => Ok(asked.to_string()),
        Err(error) => Err(Fault::of(&error)),
    }
}

fn perform(session: &Session, ask: &Ask<'_>, op: &str, given: &Value) -> Result<String, Fault> {
    let server = given["server"].as_str().unwrap_or_default();
    let answer = operation(op).and_then(|op| {
        let given = params(given)?;
        Ears::at_work(session, ask, server, || {
            questions::settle(session, ask, session.backend.perform(op, &given, &ask.asked()), None)
        })
    });
    let text = answered(answer)?;
    Ok(ask.passed(&resources::linked(session, server, &text).unwrap_or(text)))
}

/// `completion/complete`.
///
/// # Errors
/// What the server answers; that there is no such prompt or template.
pub fn complete(session: &Session, ask: &Ask<'_>) -> Result<String, Fault> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "ref")]
        reference: Value,
        argument: Value,
        #[serde(default)]
        context: Context,
    }
    #[derive(Default, Deserialize)]
    struct Context {
        #[serde(default)]
        arguments: Map<String, Value>,
    }
    let wanted: Params = ask.params()?;
    let reference = &wanted.reference;
    let (server, reference) = match (reference["type"].as_str(), &reference["name"], &reference["uri"]) {
        (Some("ref/prompt"), Value::String(name), _) => {
            let target = find(session, ask, name)?;
            (target.server.clone(), json!({"type": "ref/prompt", "name": target.name}))
        }
        (Some("ref/resource"), _, Value::String(uri)) => {
            let found = resources::find(session, ask, uri).map_err(|e| Fault::of(&e))?;
            let Some((server, own)) = found.into_iter().next() else {
                return Err(Fault::params(format!("params.ref.uri: no server has {uri}")));
            };
            (server, json!({"type": "ref/resource", "uri": own}))
        }
        _ => {
            return Err(Fault::params(
                "params.ref: {\"type\": \"ref/prompt\", \"name\"} or {\"type\": \"ref/resource\", \"uri\"}",
            ));
        }
    };
    let mut given = json!({"server": server, "ref": reference, "argument": wanted.argument});
    if !wanted.context.arguments.is_empty() {
        given["arguments"] = Value::Object(wanted.context.arguments);
    }
    ask.add_meta(&mut given);
    perform(session, ask, "complete", &given)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Played, ask_in, session_of};
    use super::*;

    #[test]
    fn prompts_are_listed_got_and_completed_under_the_hosts_names() {
        let played = Played::answering("prompts", json!({"prompts": [{"server": "a", "name": "p"}]}))
            .and("getPrompt", json!({"messages": []}))
            .and("complete", json!({"completion": {"values": ["v"]}}));
        let session = session_of(played, |o| (o.code, o.passthrough) = (false, true));
        session.know(|host| host.revision = Some("2025-11-25"));
        let ask = |method: &str, params: Value| ask_in(&session, method, &params);
        assert_eq!(ask("prompts/list", json!({}))["result"], json!({"prompts": [{"name": "a__p"}]}));
        assert_eq!(ask("prompts/list", json!({"cursor": "1"}))["error"]["code"], -32602);
        assert_eq!(ask("prompts/get", json!({"name": "a__p"}))["result"], json!({"messages": []}));
        assert_eq!(ask("prompts/get", json!({"name": "a__x"}))["error"]["code"], -32602);
        let completed = |reference: Value| {
            ask("completion/complete", json!({"ref": reference, "argument": {"name": "n", "value": "v"}}))
        };
        let values = json!({"completion": {"values": ["v"]}});
        assert_eq!(completed(json!({"type": "ref/prompt", "name": "a__p"}))["result"], values);
        assert_eq!(completed(json!({"type": "ref/resource", "uri": "mcpx://a/t://{x}"}))["result"], values);
        assert_eq!(completed(json!({"type": "ref/other"}))["error"]["code"], -32602);
        assert_eq!(completed(json!({"type": "ref/resource", "uri": "t://{x}"}))["error"]["code"], -32602);
    }
}
