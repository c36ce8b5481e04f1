//! The protocol's methods: which there are in which era, and what each answers.
//! Knows nothing of framing, and of operations only what their table says.

use super::backend::{Asked, Out};
use super::calls;
use super::era::{self, Era};
use super::fault::Fault;
use super::greeting;
use super::listening;
use super::members::Members;
use super::news::LEVELS;
use super::prompts;
use super::questions::{self, Retry};
use super::resources::{self, List};
use super::session::{Request, Session};
use super::tasks::{self, Wish};
use crate::catalog::rows::one_line;
use crate::error::{Error, Kind, Result};
use crate::mcp::jsonrpc;
use crate::pool::{Cancel, Progress};
use crate::util::json_words;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// How much of what a host sent is said again.
const ECHO: usize = 120;

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

    /// What the host says along with the request, for an operation that takes it (`meta`).
    pub fn meta(&self) -> Option<Value> {
        self.meta.clone().filter(|meta| !meta.is_empty()).map(Value::Object)
    }

    /// Adds that to an operation's parameters.
    pub fn add_meta(&self, given: &mut Value) {
        if let Some(meta) = self.meta() {
            given["meta"] = meta;
        }
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
    pub fn resumed(
        &self,
        session: &Session,
        wish: Option<&Wish>,
    ) -> Result<Option<Result<Box<RawValue>>>, Fault> {
        if !self.era.is_stateless() {
            return Ok(None);
        }
        match questions::resume(session, self, &self.params::<Retry>()?, wish) {
            Some(Err(error)) if error.kind() == Kind::NotFound => Err(unknown(&error)),
            resumed => Ok(resumed),
        }
    }

    /// A result of mcpx's own.
    pub fn result(&self, mut value: Value) -> String {
        if self.era.is_stateless() {
            value["resultType"] = "complete".into();
            value["_meta"][era::SERVER_KEY] = greeting::server_info();
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
        ("server/discover", Era::Stateless(_)) => Ok(greeting::discover(session, ask)),
        ("subscriptions/listen", Era::Stateless(_)) => listening::listen(session, ask),
        ("initialize", Era::Handshake(_)) => greeting::initialize(session, ask),
        ("ping", Era::Handshake(_)) => Ok(ask.result(json!({}))),
        ("tools/list", _) => calls::list(session, ask),
        ("tools/call", _) => calls::call(session, ask),
        (method, era) if method.starts_with(tasks::METHODS) && tasks::are_known(era) => {
            tasks::request(session, ask)
        }
        (method, _) => Err(Fault::method(&one_line(method, ECHO))),
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
            Err(Fault::params(format!("params.cursor: \"{}\" was not given out", one_line(&cursor, ECHO))))
        }
        None => Ok(()),
    }
}

/// What mcpx did not find, as a wrong parameter.
pub fn unknown(error: &Error) -> Fault {
    let hint = error.hint_text().map(|h| format!("; {h}")).unwrap_or_default();
    Fault::params(format!("{}{hint}", error.message()))
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
