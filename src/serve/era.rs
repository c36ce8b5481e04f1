//! The two eras of the protocol: revisions that begin with `initialize`, and the
//! stateless one in which every request brings along what it needs. Knows
//! nothing of methods.

use super::fault::{Fault, UNSUPPORTED_VERSION};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// The revisions that begin with `initialize`, newest first.
pub const HANDSHAKE: [&str; 5] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07"];
/// The stateless revisions.
pub const STATELESS: [&str; 1] = ["2026-07-28"];
/// What a missing version header stands for (MCP, transports).
pub const UNSAID: &str = "2025-03-26";

/// `_meta`: the revision that a request is made in.
pub const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
/// `_meta`: what the host can do.
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
/// `_meta`: the lowest level of log messages that the host wants.
const LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";
/// `_meta`: who answers.
pub const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";
/// The extension that tasks are in the stateless era.
pub const TASKS_KEY: &str = "io.modelcontextprotocol/tasks";
/// `_meta`: the request that a notification belongs to.
pub const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";

/// How a request is made.
#[derive(Clone, Debug)]
pub enum Era {
    /// After `initialize`, in this revision.
    Handshake(&'static str),
    /// By itself.
    Stateless(Envelope),
}

/// What a stateless request says of its host.
#[derive(Clone, Debug, Default)]
pub struct Envelope {
    /// What the host can do.
    pub capabilities: Value,
    /// The lowest level of log messages that it wants; none without one.
    pub level: Option<String>,
}

impl Era {
    /// Whether it is the stateless one.
    pub fn is_stateless(&self) -> bool {
        matches!(self, Era::Stateless(_))
    }
}

/// The revision to go on with when a host asks for one in `initialize`: that, or the newest.
pub fn negotiate(asked: &str) -> &'static str {
    HANDSHAKE.into_iter().find(|r| *r == asked).unwrap_or(HANDSHAKE[0])
}

/// The `_meta` of a request's parameters, when it is an object.
pub fn meta(params: Option<&RawValue>) -> Option<Map<String, Value>> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow, rename = "_meta")]
        meta: Option<&'a RawValue>,
    }
    let params: Params<'_> = serde_json::from_str(params?.get()).ok()?;
    serde_json::from_str(params.meta?.get()).ok()
}

/// The revision that `_meta` claims; what it claims makes a request a stateless one.
pub fn claimed(meta: Option<&Map<String, Value>>) -> Option<&str> {
    meta?.get(VERSION_KEY)?.as_str()
}

/// Whether a request wants to hear what servers log for it.
pub fn wants_log(meta: Option<&Map<String, Value>>) -> bool {
    meta.is_some_and(|meta| meta.contains_key(LEVEL_KEY))
}

/// Reads what a stateless request must bring along.
pub fn envelope(meta: Option<&Map<String, Value>>) -> Result<Envelope, Fault> {
    let missing = |key: &str| Fault::params(format!("params._meta.{key} is missing"));
    let meta = meta.ok_or_else(|| missing(&format!("[\"{VERSION_KEY}\"]")))?;
    let Some(version) = meta.get(VERSION_KEY).and_then(Value::as_str) else {
        return Err(missing(&format!("[\"{VERSION_KEY}\"]")));
    };
    if !STATELESS.contains(&version) {
        return Err(unsupported(version));
    }
    let capabilities = meta
        .get(CAPABILITIES_KEY)
        .filter(|c| c.is_object())
        .ok_or_else(|| missing(&format!("[\"{CAPABILITIES_KEY}\"]")))?;
    let level = meta.get(LEVEL_KEY).and_then(Value::as_str).map(str::to_owned);
    Ok(Envelope { capabilities: capabilities.clone(), level })
}

/// The revision is not spoken here.
pub fn unsupported(asked: &str) -> Fault {
    Fault::new(UNSUPPORTED_VERSION, format!("the protocol revision \"{asked}\" is not supported"))
        .data(json!({"supported": STATELESS, "requested": asked}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(params: &Value) -> Result<Envelope, Fault> {
        let raw = serde_json::value::to_raw_value(params).unwrap();
        envelope(meta(Some(&raw)).as_ref())
    }

    #[test]
    fn a_stateless_request_brings_its_envelope() {
        let whole = json!({"_meta": {VERSION_KEY: "2026-07-28", CAPABILITIES_KEY: {"elicitation": {}}, LEVEL_KEY: "info"}});
        let envelope = of(&whole).unwrap();
        assert_eq!(envelope.capabilities, json!({"elicitation": {}}));
        assert_eq!(envelope.level.as_deref(), Some("info"));
        for (params, code) in [
            (json!({}), -32602),
            (json!({"_meta": 1}), -32602),
            (json!({"_meta": {}}), -32602),
            (json!({"_meta": {VERSION_KEY: "2026-07-28"}}), -32602),
            (json!({"_meta": {VERSION_KEY: "2026-07-28", CAPABILITIES_KEY: []}}), -32602),
            (json!({"_meta": {VERSION_KEY: "2099-01-01", CAPABILITIES_KEY: {}}}), UNSUPPORTED_VERSION),
        ] {
            assert_eq!(of(&params).unwrap_err().code, code, "{params}");
        }
        let fault = unsupported("v9");
        assert_eq!(fault.data.unwrap(), json!({"supported": ["2026-07-28"], "requested": "v9"}));
    }

    #[test]
    fn an_unknown_revision_is_answered_with_the_newest() {
        assert_eq!(negotiate("2024-11-05"), "2024-11-05");
        for other in ["2026-07-28", "1.0", ""] {
            assert_eq!(negotiate(other), "2025-11-25");
        }
    }
}
