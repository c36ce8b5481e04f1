//! Tools as hosts list and call them: those of mcpx, and those of the servers
//! under names of mcpx's own. Knows nothing of eras but what their requests say.

use super::backend::{Backend, params};
use super::dispatch::{Ask, first_page, unknown};
use super::ears::Ears;
use super::fault::Fault;
use super::headers;
use super::members::Members;
use super::questions::{self, Outcome};
use super::render;
use super::resources;
use super::session::Session;
use super::tasks::{self, Wish};
use super::tools::{self, Derived, PREFIX};
use super::upstreams::{self, Offer};
use super::uris;
use crate::api::ops::{Id, Operation};
use crate::catalog::validate;
use crate::error::{Error, Kind, Result};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// `tools/list`.
///
/// # Errors
/// A cursor; or that the daemon could not be asked.
pub fn list(session: &Session, ask: &Ask<'_>) -> Result<String, Fault> {
    first_page(ask)?;
    let mut all: Vec<Value> = Vec::new();
    if session.options.code {
        for tool in tools::offered(&session.options.tools) {
            let mut listed = tool.listed.clone();
            if tasks::may_be(tool.op) {
                tasks::mark(ask, &mut listed);
            }
            all.push(listed);
        }
    }
    if session.options.passthrough {
        let theirs = session.upstreams.list(Offer::Tools, &*session.backend, &session.options, &ask.asked());
        let mut theirs = theirs.map_err(|e| Fault::of(&e))?;
        theirs.iter_mut().for_each(|tool| tasks::mark(ask, tool));
        if !ask.era.is_stateless() {
            theirs.iter_mut().for_each(upstreams::fit_handshake);
        }
        all.extend(theirs);
    }
    Ok(ask.listed(session, json!({"tools": all})))
}

/// `tools/call`.
///
/// # Errors
/// What is wrong with the request. How a tool fails is part of the result.
pub fn call(session: &Session, ask: &Ask<'_>) -> Result<String, Fault> {
    #[derive(Deserialize)]
    struct Params<'a> {
        name: String,
        #[serde(borrow)]
        arguments: Option<&'a RawValue>,
    }
    let call: Params<'_> = ask.params()?;
    if call.arguments.is_some_and(|a| !a.get().trim_start().starts_with('{')) {
        return Err(Fault::params("params.arguments: expected an object"));
    }
    let own = session.options.code && call.name.starts_with(PREFIX);
    if own {
        let tool = tools::find(&session.options.tools, &call.name).map_err(Fault::params)?;
        let wish = tasks::wish(session, ask, tasks::may_be(tool.op))?;
        let server = called_server(tool.op, call.arguments);
        let outcome = match ask.resumed(session, wish.as_ref())? {
            Some(outcome) => outcome,
            None => own_tool(session, ask, tool, call.arguments, wish.as_ref())?,
        };
        let settled = questions::settle(session, ask, outcome, wish.as_ref());
        // Only of a call it is the tool's own error; anything else is this tool's, for the model to read.
        if let Err(error) = &settled
            && tool.op.id != Id::Call
        {
            return Ok(ask.passed(&render::failure(error)));
        }
        return called(session, ask, server.as_deref(), settled);
    }
    if !session.options.passthrough {
        return Err(Fault::params(missing(session, &call.name)));
    }
    let wish = tasks::wish(session, ask, true)?;
    let backend: &dyn Backend = &*session.backend;
    let found = session.upstreams.find(Offer::Tools, &call.name, backend, &session.options, &ask.asked());
    let target = match found {
        Ok(target) => target,
        Err(error) if error.kind() == Kind::NotFound => return Err(unknown(&error)),
        Err(error) => return Ok(ask.passed(&render::failure(&error))),
    };
    let server = Some(target.server.as_str());
    if let Some(outcome) = ask.resumed(session, wish.as_ref())? {
        return called(session, ask, server, questions::settle(session, ask, outcome, wish.as_ref()));
    }
    if let (Some(given), Some(schema)) = (&ask.request.mirrored, &target.marked) {
        headers::check_arguments(given, schema, call.arguments)?;
    }
    let work = || {
        let more = upstreams::Extras {
            input: questions::offered(session, ask),
            meta: ask.meta(),
            task: wish.as_ref().map(Wish::param),
        };
        let first = upstreams::call(backend, &target, call.arguments, &more, &ask.asked());
        questions::settle(session, ask, first, wish.as_ref())
    };
    called(session, ask, server, Ears::at_work(session, ask, &target.server, work))
}

/// The server whose tool an operation calls.
fn called_server(op: &Operation, arguments: Option<&RawValue>) -> Option<String> {
    #[derive(Deserialize)]
    struct Given {
        server: String,
    }
    let given = arguments.filter(|_| op.id == Id::Call)?;
    serde_json::from_str::<Given>(given.get()).ok().map(|given| given.server)
}

/// What came of a call, as its answer.
fn called(
    session: &Session,
    ask: &Ask<'_>,
    server: Option<&str>,
    outcome: Result<Outcome>,
) -> Result<String, Fault> {
    match outcome {
        Ok(Outcome::Asked(asked)) => Ok(asked.to_string()),
        Ok(Outcome::Begun(task)) => Ok(tasks::created(session, ask, &task)),
        Ok(Outcome::Called(result)) => answered(session, ask, server, Ok(result)),
        Err(error) => answered(session, ask, server, Err(error)),
    }
}

/// What a tool came to, as the result of its call.
///
/// # Errors
/// What a server answered by the protocol's own means goes on in the same way.
pub fn answered(
    session: &Session,
    ask: &Ask<'_>,
    server: Option<&str>,
    outcome: Result<Box<RawValue>>,
) -> Result<String, Fault> {
    match outcome {
        Ok(result) => {
            let linked = server.and_then(|server| resources::linked(session, server, result.get()));
            Ok(ask.passed(linked.as_deref().unwrap_or(result.get())))
        }
        Err(error) if error.raw_value().is_some_and(|raw| raw.get("code").is_some()) => {
            Err(Fault::of(&error))
        }
        Err(error) => Ok(ask.passed(&render::failure(&error))),
    }
}

fn missing(session: &Session, name: &str) -> String {
    match tools::find(&session.options.tools, name) {
        Err(message) => message,
        Ok(_) => format!("there is no tool \"{name}\""),
    }
}

/// Carries out a tool that is an operation; the outer error is one of the protocol, the inner of the tool.
fn own_tool(
    session: &Session,
    ask: &Ask<'_>,
    tool: &Derived,
    arguments: Option<&RawValue>,
    wish: Option<&Wish>,
) -> Result<Result<Box<RawValue>>, Fault> {
    let name = &tool.name;
    let text = arguments.map_or("{}", RawValue::get);
    let given: Value =
        serde_json::from_str(text).map_err(|e| Fault::params(format!("params.arguments: {e}")))?;
    if let Err(what) = validate::arguments(&tool.input, &given) {
        return Ok(Err(Error::new(Kind::Usage, format!("calling {name}: {what}"))));
    }
    // Who calls, and which servers there are for it, is not for the model to say.
    let supplied = given.as_object().and_then(|g| {
        g.keys()
            .find(|key| tool.op.params.iter().any(|p| p.field.name == **key && tools::is_supplied(&p.field)))
    });
    if let Some(key) = supplied {
        return Ok(Err(Error::new(Kind::Usage, format!("calling {name}: {key} is given by the session"))));
    }
    let mut given = Members::read(text).unwrap_or_default();
    // Where servers' own offers pass too, a model may have a URI from there.
    if tool.op.id == Id::ReadResource
        && let Some((server, own)) = given.text("uri").as_deref().and_then(uris::unwrap)
    {
        given.set("server", &server);
        given.set("uri", &own);
    }
    if tool.op.params.iter().any(|p| p.field.name == "input") {
        given.set("input", &questions::offered(session, ask));
    }
    if tool.op.params.iter().any(|p| p.field.name == "meta")
        && let Some(meta) = ask.meta()
    {
        given.set("meta", &meta);
    }
    if let Some(wish) = wish {
        given.set("task", &wish.param());
    }
    let given = params(&given).map_err(|e| Fault::of(&e))?;
    let answer = session.backend.perform(tool.op, &given, &ask.asked());
    Ok(answer.and_then(|answer| match wish.and_then(|_| tasks::begun(&answer)) {
        Some(_) => Ok(answer),
        None => render::result(tool.op, answer),
    }))
}
