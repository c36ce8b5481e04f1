//! A tool, as `tools/list` describes it. Knows nothing of what its schemas mean.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool as `tools/list` describes it (MCP's own field names; fields of no revision are dropped).
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
    /// Pictures that stand for it (since 2025-11-25).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<Value>,
    /// The arguments' JSON Schema; `{}` when the server sent none.
    #[serde(default = "no_schema")]
    pub input_schema: Value,
    /// The structured result's JSON Schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Hints such as `readOnlyHint`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Value>,
    /// How it is carried out, such as `taskSupport` (2025-11-25).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<Value>,
    /// What its server tells those who know it.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}

/// What a server lists of its tools.
#[derive(Clone, Debug, Default)]
pub struct ToolList {
    /// All of them, in its own order.
    pub tools: Vec<Tool>,
    /// How long it says that they stay the same, milliseconds; the shortest of its pages. Said since 2026-07-28.
    pub ttl_ms: Option<u64>,
    /// They are for whoever asked, and nobody else.
    pub private: bool,
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
            icons: None,
            input_schema: no_schema(),
            output_schema: None,
            annotations: None,
            execution: None,
            meta: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_revision_says_of_tools_is_kept_whole() {
        let whole = json!({
            "name": "n", "title": "T", "description": "d", "icons": [{"src": "data:,", "theme": "dark"}],
            "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": true, "x": 1}, "execution": {"taskSupport": "optional"},
            "_meta": {"example.org/k": [1]},
        });
        let tool: Tool = serde_json::from_value(whole.clone()).unwrap();
        assert_eq!(serde_json::to_value(&tool).unwrap(), whole);
        let bare: Tool = serde_json::from_value(json!({"name": "n", "unheard-of": 1})).unwrap();
        assert_eq!(serde_json::to_value(&bare).unwrap(), json!({"name": "n", "inputSchema": {}}));
    }
}
