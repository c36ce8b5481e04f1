//! The two eras of the protocol: revisions that begin with `initialize`, and
//! the stateless one (2026-07-28), in which each request says everything about
//! its client. Knows nothing of how a message travels.

use crate::config::Transport;
use crate::error::{Error, Kind, Result};
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

/// The revisions that begin with `initialize`, newest first; the first is what we ask for.
pub(super) const REVISIONS: [&str; 5] =
    ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07"];

/// The stateless revision.
pub(super) const STATELESS: &str = "2026-07-28";

/// MCP 2026-07-28: the server does not speak this revision; `data.supported` lists what it does.
pub(super) const UNSUPPORTED_VERSION: i64 = -32022;

/// The `_meta` key under which servers of the stateless era name themselves.
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// The `_meta` key that says to which `subscriptions/listen` a notification belongs.
pub(super) const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// How a server is greeted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Era {
    /// `initialize`, asking for this revision.
    Initialize(&'static str),
    /// `server/discover`, and no state.
    Stateless,
}

impl Era {
    /// The request that begins it.
    pub fn greeting(self) -> &'static str {
        match self {
            Era::Initialize(_) => "initialize",
            Era::Stateless => "server/discover",
        }
    }
}

/// Whether this revision is stateless.
pub(crate) fn is_stateless(revision: &str) -> bool {
    revision == STATELESS
}

/// The eras to try, in order: one that is `wanted` alone; else the one that is
/// `remembered` first; else, of a server that nobody knows yet, the stateless
/// one first where asking costs one round trip (HTTP), and last where it may
/// upset an older server and cost a second process (stdio).
///
/// # Errors
/// `Config` when `wanted` is neither `auto` nor a revision.
pub(super) fn order(wanted: &str, remembered: Option<&str>, transport: &Transport) -> Result<Vec<Era>> {
    let initialize = Era::Initialize(REVISIONS[0]);
    if wanted == STATELESS {
        return Ok(vec![Era::Stateless]);
    }
    if let Some(known) = REVISIONS.iter().find(|known| **known == wanted) {
        return Ok(vec![Era::Initialize(known)]);
    }
    if wanted != "auto" {
        return Err(Error::new(Kind::Config, format!("unknown MCP revision \"{wanted}\""))
            .hint(format!("it is auto, {STATELESS}, {}", REVISIONS.join(", "))));
    }
    let stateless_first = match remembered {
        Some(revision) => is_stateless(revision),
        None => matches!(transport, Transport::Http { .. }),
    };
    Ok(if stateless_first { vec![Era::Stateless, initialize] } else { vec![initialize, Era::Stateless] })
}

/// What goes along in the `_meta` of each request of the stateless era.
pub(super) type Stamp = Vec<(&'static str, Box<RawValue>)>;

/// The stamp of a client with these capabilities.
/// `log_level`: the level from which on the server is to log; may be empty.
pub(super) fn stamp(capabilities: &Value, log_level: &str) -> Result<Stamp> {
    let mut entries = vec![
        ("io.modelcontextprotocol/protocolVersion", json!(STATELESS)),
        ("io.modelcontextprotocol/clientCapabilities", capabilities.clone()),
        ("io.modelcontextprotocol/clientInfo", client_info()),
    ];
    if !log_level.is_empty() {
        entries.push(("io.modelcontextprotocol/logLevel", json!(log_level)));
    }
    let raw = |(key, value): (&'static str, Value)| to_raw_value(&value).map(|raw| (key, raw));
    let all = entries.into_iter().map(raw).collect::<std::result::Result<_, _>>();
    all.map_err(|e| Error::new(Kind::Internal, format!("writing the client's metadata: {e}")))
}

/// Who we are.
pub(super) fn client_info() -> Value {
    json!({ "name": "mcpx", "version": env!("CARGO_PKG_VERSION") })
}

/// What the server said of itself.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Handshake {
    #[serde(default)]
    pub protocol_version: String,
    #[serde(default)]
    pub capabilities: Value,
    #[serde(default)]
    pub server_info: Option<Value>,
    #[serde(default)]
    pub instructions: Option<Value>,
    #[serde(default)]
    supported_versions: Vec<String>,
    #[serde(default, rename = "_meta")]
    meta: Option<Value>,
}

impl Handshake {
    /// The answer to `server/discover`; none when it is no such answer, or
    /// one of a server that does not speak the stateless revision.
    pub fn discovered(result: &RawValue) -> Option<Handshake> {
        let said: Handshake = serde_json::from_str(result.get()).ok()?;
        if !said.supported_versions.iter().any(|v| v == STATELESS) {
            return None;
        }
        let named = said.meta.as_ref().and_then(|meta| meta.get(SERVER_INFO)).cloned();
        let server_info = said.server_info.or(named);
        Some(Handshake { protocol_version: STATELESS.to_owned(), server_info, meta: None, ..said })
    }

    /// Which changes the server offers to tell of, as `subscriptions/listen` names them.
    pub fn changes(&self) -> Value {
        let mut wanted = json!({});
        for (capability, key) in [
            ("tools", "toolsListChanged"),
            ("prompts", "promptsListChanged"),
            ("resources", "resourcesListChanged"),
        ] {
            if self.capabilities[capability]["listChanged"] == true {
                wanted[key] = json!(true);
            }
        }
        wanted
    }
}

/// Whether a refusal of a greeting means that the server is of the other era,
/// or may be, rather than that something is wrong with it.
pub(super) fn is_other_era(e: &Error) -> bool {
    // It answered, with a JSON-RPC error of whatever sort.
    matches!(e.kind(), Kind::Tool | Kind::Usage)
}

/// Whether a server that refused a revision says that it speaks the stateless one.
pub(super) fn offers_stateless(e: &Error) -> bool {
    let Some(raw) = e.raw_value() else { return false };
    raw["code"] == UNSUPPORTED_VERSION
        && raw["data"]["supported"].as_array().is_some_and(|all| all.iter().any(|v| v == STATELESS))
}

/// How an answer of the stateless era is meant.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ResultType {
    /// The result itself.
    Complete,
    /// The server wants to know something first.
    InputRequired,
    /// The server goes on with it as a task.
    Task,
    /// A word that we do not know.
    Other(String),
}

/// Reads `resultType`; absent is `complete`.
pub(super) fn result_type(result: &RawValue) -> ResultType {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Typed {
        result_type: Option<String>,
    }
    // Most results are found out without being read.
    if !result.get().contains("\"resultType\"") {
        return ResultType::Complete;
    }
    let typed = serde_json::from_str::<Typed>(result.get()).ok().and_then(|t| t.result_type);
    match typed.as_deref() {
        None | Some("complete") => ResultType::Complete,
        Some("input_required") => ResultType::InputRequired,
        Some("task") => ResultType::Task,
        Some(other) => ResultType::Other(other.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &Value) -> Box<RawValue> {
        to_raw_value(json).unwrap()
    }

    #[test]
    fn the_order_follows_the_wish_then_memory_then_the_transport() {
        let http = Transport::Http { url: "http://h/".into(), headers: vec![] };
        let stdio = Transport::Stdio { command: "x".into(), args: vec![], env: vec![], cwd: None };
        let (new, old) = (Era::Stateless, Era::Initialize("2025-11-25"));
        assert_eq!(order("auto", None, &http).unwrap(), [new, old]);
        assert_eq!(order("auto", None, &stdio).unwrap(), [old, new]);
        assert_eq!(order("auto", Some("2026-07-28"), &stdio).unwrap(), [new, old]);
        assert_eq!(order("auto", Some("2025-06-18"), &http).unwrap(), [old, new]);
        assert_eq!(order("2026-07-28", Some("2025-06-18"), &http).unwrap(), [new]);
        assert_eq!(order("2024-11-05", None, &http).unwrap(), [Era::Initialize("2024-11-05")]);
        assert_eq!(order("2027-01-01", None, &http).unwrap_err().kind(), Kind::Config);
    }

    #[test]
    fn an_answer_to_discover_is_told_from_any_other() {
        let said = json!({"supportedVersions": ["2025-11-25", "2026-07-28"], "instructions": "be brief",
            "capabilities": {"tools": {"listChanged": true}, "resources": {}},
            "_meta": {SERVER_INFO: {"name": "x"}}});
        let said = Handshake::discovered(&raw(&said)).unwrap();
        assert_eq!(said.protocol_version, STATELESS);
        assert_eq!(said.server_info.as_ref().unwrap()["name"], "x");
        assert_eq!(said.changes(), json!({"toolsListChanged": true}));
        for other in [json!({}), json!([]), json!({"supportedVersions": ["2025-11-25"]}), json!("x")] {
            assert!(Handshake::discovered(&raw(&other)).is_none(), "{other}");
        }
    }

    #[test]
    fn a_result_is_complete_unless_it_says_otherwise() {
        let of = |json: Value| result_type(&raw(&json));
        assert_eq!(of(json!({"content": []})), ResultType::Complete);
        assert_eq!(of(json!({"resultType": "complete"})), ResultType::Complete);
        assert_eq!(of(json!({"text": "\"resultType\":\"input_required\""})), ResultType::Complete);
        assert_eq!(of(json!({"inner": {"resultType": "input_required"}})), ResultType::Complete);
        assert_eq!(of(json!({"resultType": "input_required"})), ResultType::InputRequired);
        assert_eq!(of(json!({"resultType": "task"})), ResultType::Task);
        assert_eq!(of(json!({"resultType": "later"})), ResultType::Other("later".into()));
    }
}
