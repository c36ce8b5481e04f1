//! A tool, as `tools/list` describes it. Knows nothing of what its schemas mean.

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
    #[serde(default = "no_schema")]
    pub input_schema: Value,
    /// The structured result's JSON Schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Hints such as `readOnlyHint`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Value>,
}

fn no_schema() -> Value {
    Value::Object(serde_json::Map::new())
}

impl Tool {
    /// A tool of which nothing but the name is known.
    pub fn named(name: &str) -> Tool {
        Tool {
            name: name.to_owned(),
            title: None,
            description: None,
            input_schema: no_schema(),
            output_schema: None,
            annotations: None,
        }
    }
}
