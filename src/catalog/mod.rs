//! What servers offer, without a running server: their tools' schemas, the
//! cache of them on disk, names, search, and TypeScript made from JSON Schema.
//! Knows nothing of how a server is reached.

pub mod budget;
pub mod cache;
pub mod names;
pub mod refs;
pub mod rows;
pub mod search;
pub mod ts;
pub mod validate;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool as `tools/list` describes it (MCP's own field names; unknown fields are dropped).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// The exact name, unique within its server.
    pub name: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The arguments' JSON Schema; `{}` when the server sent none.
    #[serde(default)]
    pub input_schema: Value,
    /// The structured result's JSON Schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Hints such as `readOnlyHint`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Value>,
}

impl Tool {
    /// A tool of which nothing but the name is known.
    pub fn named(name: &str) -> Tool {
        Tool {
            name: name.to_owned(),
            title: None,
            description: None,
            input_schema: Value::Object(serde_json::Map::new()),
            output_schema: None,
            annotations: None,
        }
    }
}

/// All that one server offers, as it was read at one time.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerSchema {
    /// The server's configured name.
    pub server: String,
    /// The digest of the definition it was read under.
    pub digest: String,
    /// When it was read, milliseconds since 1970.
    pub fetched_at: u64,
    /// The protocol revision that was negotiated.
    pub protocol: String,
    /// `serverInfo` as the server gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_info: Option<Value>,
    /// The server's instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Its tools, in its own order.
    pub tools: Vec<Tool>,
}
