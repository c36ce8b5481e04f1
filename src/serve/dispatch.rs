//! The protocol's methods: which there are in which era, and what each answers.
//! Knows nothing of framing, and of operations only what their table says.

use super::backend::{Asked, Backend, Out, params};
use super::ears::Ears;
use super::era::{self, Era};
use super::fault::Fault;
use super::headers;
use super::members::Members;
use super::news::{LEVELS, News, Watch};
use super::prompts;
use super::questions::{self, Outcome, Retry};
use super::render;
use super::resources::{self, List};
use super::session::{Request, Session};
use super::tools::{self, PREFIX};
use super::upstreams::{self, Offer};
use crate::catalog::rows::one_line;
use crate::catalog::validate;
use crate::error::{Error, Kind, Result};
use crate::mcp::jsonrpc;
use crate::pool::{Cancel, Progress};
use crate::util::json_words;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// How much of a server's description stands in the instructions.
const ABOUT: usize = 120;

/// A request, and how it is made.
pub struct Ask<'a> {
    /// In which way.
    pub era: Era,
    /// What is asked.
    pub request: &'a Request,
    /// `params._meta`.
    pub meta: Option<Map<String, Value>>,
    /// Pulled when nobody waits for the answer any longer.
    pub cancel: &'a Cancel,
    /// Takes what comes before the answer.
    pub out: &'a Out,
}

impl Ask<'_> {
    /// The parameters, read as what the method takes.
    pub fn params<'de, T: Deserialize<'de>>(&'de self) -> Result<T, Fault> {
        let text = self.request.params.as_deref().map_or("{}", RawValue::get);
        if !text.trim_start().starts_with('{') {
            return Err(Fault::params("params: expected an object"));
        }
        serde_json::from_str(text).map_err(|e| Fault::params(format!("params: {}", json_words(e))))
    }

    /// How an operation is asked for on behalf of this request.
    pub fn asked(&self) -> Asked<'_> {
        Asked { cancel: self.cancel, progress: self.progress() }
    }

    /// Passes progress on, where the host wants it.
    fn progress(&self) -> Option<Progress> {
        let token = self.meta.as_ref()?.get("progressToken")?.clone();
        let (out, cancel) = (self.out.clone(), self.cancel.clone());
        Some(Arc::new(move |report: Value| {
            let Value::Object(mut report) = report else { return };
            report.insert("progressToken".into(), token.clone());
            if !cancel.is_cancelled() {
                out.send(&jsonrpc::notification("notifications/progress", Some(&Value::Object(report))));
            }
        }))
    }

    /// What came of an earlier round of this request, in the stateless era.
    ///
    /// # Errors
    /// A state that is none of ours.
    pub fn resumed(&self, session: &Session) -> Result<Option<Result<Box<RawValue>>>, Fault> {
        if !self.era.is_stateless() {
            return Ok(None);
        }
        match questions::resume(session, self, &self.params::<Retry>()?) {
            Some(Err(error)) if error.kind() == Kind::NotFound => Err(unknown(&error)),
            resumed => Ok(resumed),
        }
    }

    /// A result of mcpx's own.
    pub fn result(&self, mut value: Value) -> String {
        if self.era.is_stateless() {
            value["resultType"] = "complete".into();
            value["_meta"][era::SERVER_KEY] = server_info();
        }
        value.to_string()
    }

    /// A result that a host may keep for a while.
    pub fn listed(&self, session: &Session, mut value: Value) -> String {
        if self.era.is_stateless() {
            value["ttlMs"] = ttl(session).into();
            // Which servers there are depends on who asks.
            value["cacheScope"] = "private".into();
        }
        self.result(value)
    }

    /// A result of another's making that a host may keep for a while: as long as its server says,
    /// and not at all where that says nothing.
    pub fn kept(&self, text: &str) -> String {
        let Some(mut members) = Members::read(text).filter(|_| self.era.is_stateless()) else {
            return self.passed(text);
        };
        if members.text("resultType").is_some_and(|sort| sort != "complete") {
            return text.to_owned();
        }
        members.supply("resultType", &"complete");
        members.supply("ttlMs", &0);
        members.supply("cacheScope", &"private");
        members.to_string()
    }

    /// A result that is JSON text already, and of another's making.
    pub fn passed(&self, text: &str) -> String {
        match (self.era.is_stateless(), text.trim().strip_prefix('{')) {
            // A server of the same era says itself what sort of result it is.
            (true, Some(rest)) if !says(text, "resultType") => {
                let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
                format!("{{\"resultType\":\"complete\"{comma}{rest}")
            }
            _ => text.to_owned(),
        }
    }
}

/// How long a host may keep a list, in milliseconds.
fn ttl(session: &Session) -> u64 {
    u64::try_from(session.options.ttl.as_millis()).unwrap_or(u64::MAX)
}

/// Whether an object has a member of that name; most texts are not parsed for that.
fn says(text: &str, name: &str) -> bool {
    text.contains(&format!("\"{name}\""))
        && serde_json::from_str::<std::collections::HashMap<String, serde::de::IgnoredAny>>(text)
            .is_ok_and(|object| object.contains_key(name))
}

/// Carries out a request; the result is JSON text.
pub fn request(session: &Session, ask: &Ask<'_>) -> Result<String, Fault> {
    if session.options.passthrough
        && let Some(outcome) = offered(session, ask)
    {
        return outcome;
    }
    match (ask.request.method.as_str(), &ask.era) {
        ("server/discover", Era::Stateless(_)) => Ok(discover(session, ask)),
        ("subscriptions/listen", Era::Stateless(_)) => listen(session, ask),
        ("initialize", Era::Handshake(_)) => initialize(session, ask),
        ("ping", Era::Handshake(_)) => Ok(ask.result(json!({}))),
        ("tools/list", _) => list_tools(session, ask),
        ("tools/call", _) => call_tool(session, ask),
        (method, _) => Err(Fault::method(&one_line(method, ABOUT))),
    }
}

/// The methods for what servers offer besides tools; none when it is none of them.
fn offered(session: &Session, ask: &Ask<'_>) -> Option<Result<String, Fault>> {
    Some(match (ask.request.method.as_str(), &ask.era) {
        ("resources/list", _) => resources::list(session, ask, List::Resources),
        ("resources/templates/list", _) => resources::list(session, ask, List::Templates),
        ("resources/read", _) => resources::read(session, ask),
        ("resources/subscribe", Era::Handshake(_)) => resources::subscribe(session, ask, true),
        ("resources/unsubscribe", Era::Handshake(_)) => resources::subscribe(session, ask, false),
        ("prompts/list", _) => prompts::list(session, ask),
        ("prompts/get", _) => prompts::get(session, ask),
        ("completion/complete", _) => prompts::complete(session, ask),
        ("logging/setLevel", Era::Handshake(_)) => set_level(session, ask),
        _ => return None,
    })
}

/// What is said of mcpx itself.
fn server_info() -> Value {
    json!({"name": "mcpx", "title": "mcpx", "version": env!("CARGO_PKG_VERSION")})
}

fn capabilities(session: &Session) -> Value {
    let mut out = json!({"tools": {"listChanged": true}});
    // What the servers have is not known before they are asked; empty lists are no lie.
    if session.options.passthrough {
        out["resources"] = json!({"subscribe": true, "listChanged": true});
        out["prompts"] = json!({"listChanged": true});
        out["completions"] = json!({});
        out["logging"] = json!({});
    }
    out
}

fn initialize(session: &Session, ask: &Ask<'_>) -> Result<String, Fault> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        protocol_version: String,
        #[serde(default)]
        capabilities: Value,
    }
    let given: Params = ask.params()?;
    let revision = era::negotiate(&given.protocol_version);
    session.know(|host| {
        host.revision = Some(revision);
        host.capabilities = given.capabilities;
    });
    let mut result = json!({
        "protocolVersion": revision,
        "capabilities": capabilities(session),
        "serverInfo": server_info(),
    });
    add_instructions(session, ask, &mut result);
    Ok(ask.result(result))
}

fn discover(session: &Session, ask: &Ask<'_>) -> String {
    let mut result = json!({
        "supportedVersions": era::STATELESS,
        "capabilities": capabilities(session),
    });
    add_instructions(session, ask, &mut result);
    ask.listed(session, result)
}

fn add_instructions(session: &Session, ask: &Ask<'_>, result: &mut Value) {
    let text = match session.options.instructions.is_empty() {
        false => session.options.instructions.clone(),
        true => instructions(session, ask),
    };
    if !text.is_empty() {
        result["instructions"] = text.into();
    }
}

/// What mcpx is and which servers there are, for a model. Starts no server.
fn instructions(session: &Session, ask: &Ask<'_>) -> String {
    let mut out = String::new();
    if session.options.code {
        out.push_str(
            "mcpx reaches the MCP servers of this machine. Find tools with mcpx_search or mcpx_discover, read their \
             types with mcpx_types, then call one with mcpx_call, or run a program over several with mcpx_exec.",
        );
    }
    let known = operation(session, "servers", &json!({}), ask).unwrap_or_default();
    let names: Vec<String> = known["servers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|row| row["enabled"] == true && row["selected"] == true && row.get("error").is_none())
        .map(|row| {
            let name = row["ident"].as_str().unwrap_or_default();
            match row["description"].as_str() {
                Some(about) => format!("\n- {name}: {}", one_line(about, ABOUT)),
                None => format!("\n- {name}"),
            }
        })
        .collect();
    if !names.is_empty() {
        out.push_str(if out.is_empty() { "The tools of these servers:" } else { " Servers:" });
        out.push_str(&names.concat());
    }
    out
}

/// An operation of the table with a parsed answer.
fn operation(session: &Session, name: &str, given: &Value, ask: &Ask<'_>) -> Result<Value> {
    let op = upstreams::operation(name)?;
    let answer =
        session.backend.perform(op, &params(given)?, &Asked { cancel: ask.cancel, progress: None })?;
    serde_json::from_str(answer.get()).map_err(|e| Error::new(Kind::Internal, format!("reading {name}: {e}")))
}

fn set_level(session: &Session, ask: &Ask<'_>) -> Result<String, Fault> {
    #[derive(Deserialize)]
    struct Params {
        level: String,
    }
    let level = ask.params::<Params>()?.level;
    if !LEVELS.contains(&level.as_str()) {
        return Err(Fault::params(format!("params.level: one of {}", LEVELS.join(", "))));
    }
    session.know(|host| host.level = Some(level));
    Ok(ask.result(json!({})))
}

fn listen(session: &Session, ask: &Ask<'_>) -> Result<String, Fault> {
    #[derive(Deserialize)]
    struct Params {
        notifications: Map<String, Value>,
    }
    let wanted = ask.params::<Params>()?.notifications;
    // Only what was asked for and can be had.
    let mut honoured = Map::new();
    for (_, filter) in News::of_lists().iter().filter_map(News::of_list) {
        let can = session.options.passthrough || filter == "toolsListChanged";
        if can && wanted.get(filter) == Some(&Value::Bool(true)) {
            honoured.insert(filter.into(), true.into());
        }
    }
    let uris = wanted.get("resourceSubscriptions").and_then(Value::as_array);
    let uris = uris.filter(|_| session.options.passthrough).into_iter().flatten().filter_map(Value::as_str);
    let watches: Vec<Watch> = uris.filter_map(|uri| resources::watch(session, ask, uri).ok()).collect();
    if !watches.is_empty() {
        let shown: Vec<&str> = watches.iter().map(|watch| watch.shown.as_str()).collect();
        honoured.insert("resourceSubscriptions".into(), json!(shown));
    }
    let tag: Value = serde_json::from_str(ask.request.id.get()).unwrap_or_default();
    let acknowledged = json!({"notifications": honoured, "_meta": tagged(&tag)});
    ask.out.send(&jsonrpc::notification("notifications/subscriptions/acknowledged", Some(&acknowledged)));
    if !honoured.is_empty() {
        let watched = session.listen(ask, Value::Object(honoured), watches);
        // Whoever asked has gone; what was asked of servers for it goes too.
        let cancel = Cancel::new();
        for watch in watched {
            let asked = Asked { cancel: &cancel, progress: None };
            let _ = resources::watching(session, &watch, false, &asked);
        }
    }
    Ok(ask.result(json!({"_meta": tagged(&tag)})))
}

/// `_meta` that says to which request something belongs.
pub fn tagged(tag: &Value) -> Value {
    json!({era::SUBSCRIPTION_KEY: tag})
}

/// Refuses a cursor: everything is on the first page.
pub fn first_page(ask: &Ask<'_>) -> Result<(), Fault> {
    #[derive(Deserialize)]
    struct Params {
        cursor: Option<String>,
    }
    match ask.params::<Params>()?.cursor {
        Some(cursor) => {
            Err(Fault::params(format!("params.cursor: \"{}\" was not given out", one_line(&cursor, ABOUT))))
        }
        None => Ok(()),
    }
}

fn list_tools(session: &Session, ask: &Ask<'_>) -> Result<String, Fault> {
    first_page(ask)?;
    let mut all: Vec<Value> = Vec::new();
    if session.options.code {
        all.extend(tools::offered(&session.options.tools).map(|tool| tool.listed.clone()));
    }
    if session.options.passthrough {
        let theirs = session.upstreams.list(Offer::Tools, &*session.backend, &session.options, &ask.asked());
        let mut theirs = theirs.map_err(|e| Fault::of(&e))?;
        if !ask.era.is_stateless() {
            theirs.iter_mut().for_each(upstreams::fit_handshake);
        }
        all.extend(theirs);
    }
    Ok(ask.listed(session, json!({"tools": all})))
}

fn call_tool(session: &Session, ask: &Ask<'_>) -> Result<String, Fault> {
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
    let resumed = ask.resumed(session)?;
    let own = session.options.code && call.name.starts_with(PREFIX);
    let outcome = match (resumed, own, session.options.passthrough) {
        (Some(outcome), ..) => outcome,
        (None, true, _) => own_tool(session, ask, &call.name, call.arguments)?,
        (None, false, true) => {
            let backend: &dyn Backend = &*session.backend;
            let found =
                session.upstreams.find(Offer::Tools, &call.name, backend, &session.options, &ask.asked());
            let target = match found {
                Ok(target) => target,
                Err(error) if error.kind() == Kind::NotFound => return Err(unknown(&error)),
                Err(error) => return Ok(ask.passed(&render::failure(&error))),
            };
            if let (Some(given), Some(schema)) = (&ask.request.mirrored, &target.marked) {
                headers::check_arguments(given, schema, call.arguments)?;
            }
            let called = || {
                let input = questions::offered(session, ask);
                let first = upstreams::call(backend, &target, call.arguments, &input, &ask.asked());
                questions::settle(session, ask, first)
            };
            return called_result(ask, Ears::at_work(session, ask, &target.server, called));
        }
        (None, false, false) => return Err(Fault::params(missing(session, &call.name))),
    };
    called_result(ask, questions::settle(session, ask, outcome))
}

/// What came of a call, as its answer.
fn called_result(ask: &Ask<'_>, outcome: Result<Outcome>) -> Result<String, Fault> {
    match outcome {
        Ok(Outcome::Called(result)) => Ok(ask.passed(result.get())),
        Ok(Outcome::Asked(asked)) => Ok(asked.to_string()),
        // What a server answered by the protocol's own means goes on in the same way.
        Err(error) if error.raw_value().is_some_and(|raw| raw.get("code").is_some()) => {
            Err(Fault::of(&error))
        }
        Err(error) => Ok(ask.passed(&render::failure(&error))),
    }
}

/// What mcpx did not find, as a wrong parameter.
pub fn unknown(error: &Error) -> Fault {
    let hint = error.hint_text().map(|h| format!("; {h}")).unwrap_or_default();
    Fault::params(format!("{}{hint}", error.message()))
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
    name: &str,
    arguments: Option<&RawValue>,
) -> Result<Result<Box<RawValue>>, Fault> {
    let tool = tools::find(&session.options.tools, name).map_err(Fault::params)?;
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
    if tool.op.params.iter().any(|p| p.field.name == "input") {
        given.set("input", &questions::offered(session, ask));
    }
    let given = params(&given).map_err(|e| Fault::of(&e))?;
    let answer = session.backend.perform(tool.op, &given, &ask.asked());
    Ok(answer.and_then(|answer| render::result(tool.op, answer)))
}

#[cfg(test)]
mod tests {
    use super::super::era::Envelope;
    use super::super::testing::{Played, ask_in, meta, session, session_of};
    use super::*;

    fn ok(session: &Session, method: &str, params: &Value) -> Value {
        let answer = ask_in(session, method, params);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }
    fn fault(session: &Session, method: &str, params: &Value) -> i64 {
        let answer = ask_in(session, method, params);
        answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("{method}: {answer}"))
    }
    fn greeted(session: &Session) {
        ok(session, "initialize", &json!({"protocolVersion": "2025-06-18", "capabilities": {}}));
    }

    #[test]
    fn a_handshake_agrees_on_a_revision_and_tells_of_the_servers() {
        let played = Played::answering(
            "servers",
            json!({"servers": [
                {"name": "a", "ident": "a", "enabled": true, "selected": true, "description": "does\nthings"},
                {"name": "b", "ident": "b", "enabled": false, "selected": true},
                {"name": "c", "ident": "c", "enabled": true, "selected": false},
                {"name": "d", "ident": "d", "enabled": true, "selected": true, "error": {}},
            ]}),
        );
        let session = session(played);
        assert_eq!(fault(&session, "tools/list", &json!({})), -32602, "nothing before initialize");
        let result =
            ok(&session, "initialize", &json!({"protocolVersion": "2025-06-18", "capabilities": {}}));
        assert_eq!(result["protocolVersion"], "2025-06-18");
        assert_eq!(result["serverInfo"]["name"], "mcpx");
        let said = result["instructions"].as_str().unwrap();
        assert!(said.ends_with("Servers:\n- a: does things"), "{said}");
        assert!(result.get("resultType").is_none(), "the handshake era has none");
        assert_eq!(ok(&session, "ping", &json!({})), json!({}));
        assert_eq!(fault(&session, "initialize", &json!({})), -32602);
        assert_eq!(fault(&session, "server/discover", &json!({})), -32602, "without an envelope");
    }

    #[test]
    fn a_stateless_request_needs_no_handshake() {
        let session = session(Played::default());
        let result = ok(&session, "server/discover", &json!({"_meta": meta()}));
        assert_eq!(result["supportedVersions"], json!(["2026-07-28"]));
        assert_eq!(result["resultType"], "complete");
        assert_eq!(result["cacheScope"], "private");
        assert!(result["ttlMs"].is_u64());
        assert_eq!(result["_meta"][era::SERVER_KEY]["name"], "mcpx");
        let listed = ok(&session, "tools/list", &json!({"_meta": meta()}));
        assert!(listed["tools"].as_array().unwrap().len() > 10);
        for gone in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "unknown/method"] {
            assert_eq!(fault(&session, gone, &json!({"_meta": meta()})), -32601, "{gone}");
        }
        let mut other = meta();
        other[era::VERSION_KEY] = "2099-01-01".into();
        assert_eq!(fault(&session, "tools/list", &json!({"_meta": other})), -32022);
    }

    #[test]
    fn a_tool_that_is_an_operation_takes_what_the_table_says() {
        let played =
            Played::answering("setting", json!({"key": "pool.max", "text": "32", "source": "default"}));
        let session = session(played);
        greeted(&session);
        let call = |name: &str, arguments: Value| {
            ok(&session, "tools/call", &json!({"name": name, "arguments": arguments}))
        };
        let result = call("mcpx_settings_get", json!({"key": "pool.max"}));
        assert_eq!(result["content"][0]["text"], "pool.max = 32 (default)");
        assert_eq!(result["structuredContent"]["key"], "pool.max");
        for (name, arguments, part) in [
            ("mcpx_settings_get", json!({}), "key"),
            ("mcpx_settings_get", json!({"key": 1}), "key"),
            ("mcpx_call", json!({"server": "a", "tool": "b", "context": {"session": "x"}}), "context"),
        ] {
            let result = call(name, arguments);
            assert_eq!(result["isError"], true, "{result}");
            assert_eq!(result["_meta"]["mcpx/error"]["kind"], "usage");
            assert!(result["content"][0]["text"].as_str().unwrap().contains(part), "{result}");
        }
        assert_eq!(fault(&session, "tools/call", &json!({"name": "mcpx_nothing"})), -32602);
        assert_eq!(fault(&session, "tools/call", &json!({"name": "demo__echo"})), -32602);
        assert_eq!(fault(&session, "tools/call", &json!({"name": "mcpx_status", "arguments": []})), -32602);
        assert_eq!(fault(&session, "tools/call", &json!([])), -32602);
        assert_eq!(fault(&session, "tools/list", &json!({"cursor": "2"})), -32602);
    }

    #[test]
    fn a_failing_operation_is_a_result_and_a_servers_own_error_is_an_error() {
        let session = session(Played::failing(Error::new(Kind::Unavailable, "it is gone").hint("start it")));
        greeted(&session);
        let result = ok(&session, "tools/call", &json!({"name": "mcpx_status"}));
        assert_eq!(result["isError"], true);
        assert_eq!(result["_meta"]["mcpx/error"]["hint"], "start it");
        let raw = json!({"code": -32042, "message": "see there"});
        let session = super::super::testing::session(Played::failing(Error::new(Kind::Tool, "no").raw(raw)));
        greeted(&session);
        let call = json!({"name": "mcpx_call", "arguments": {"server": "a", "tool": "b"}});
        assert_eq!(fault(&session, "tools/call", &call), -32042);
    }

    #[test]
    fn what_passes_through_is_not_rewritten() {
        let theirs = json!({"content": [], "structuredContent": [1], "_meta": {"k": 1}});
        let played = Played::answering("call", theirs.clone()).and(
            "schemas",
            json!({"schemas": [{"server": "a", "tools": [{"name": "t", "inputSchema": {}}]}]}),
        );
        let session = session_of(played, |o| (o.code, o.passthrough) = (false, true));
        greeted(&session);
        let listed = ok(&session, "tools/list", &json!({}));
        assert_eq!(listed["tools"], json!([{"name": "a__t", "inputSchema": {"type": "object"}}]));
        assert_eq!(ok(&session, "tools/call", &json!({"name": "a__t"})), theirs);
        let result = ok(&session, "tools/call", &json!({"name": "a__t", "_meta": meta()}));
        assert_eq!(result["resultType"], "complete");
        assert_eq!(result["_meta"], theirs["_meta"]);
        assert_eq!(fault(&session, "tools/call", &json!({"name": "mcpx_call"})), -32602);
    }

    #[test]
    fn the_sort_of_a_result_is_added_where_it_is_missing() {
        let session = session(Played::default());
        let cancel = Cancel::new();
        let out = super::super::testing::Heard::out();
        let request = super::super::testing::request("tools/call", &json!({"_meta": meta()}));
        let ask = Ask {
            era: Era::Stateless(Envelope::default()),
            request: &request,
            meta: None,
            cancel: &cancel,
            out: &out,
        };
        assert_eq!(ask.passed("{}"), r#"{"resultType":"complete"}"#);
        assert_eq!(ask.passed(r#" { "a":1}"#), r#"{"resultType":"complete", "a":1}"#);
        let said = r#"{"resultType":"input_required"}"#;
        assert_eq!(ask.passed(said), said);
        let within = r#"{"x":{"resultType":1}}"#;
        assert!(ask.passed(within).starts_with(r#"{"resultType":"complete","x""#));
        drop(session);
    }
}
