//! Builds MCP's `CallToolResult`. Knows nothing of where the parts come from.

use serde_json::{Value, json};

/// A result that is one text.
pub fn text(text: impl Into<String>) -> Value {
    json!({"content": [{"type": "text", "text": text.into()}]})
}

/// A result that says what went wrong.
pub fn failed(text: impl Into<String>) -> Value {
    json!({"content": [{"type": "text", "text": text.into()}], "isError": true})
}

/// A result with a value, and the text that it was read from.
pub fn structured(text: impl Into<String>, value: Value) -> Value {
    json!({"content": [{"type": "text", "text": text.into()}], "structuredContent": value})
}

/// MCP's structured content is an object: another value becomes its member `result`.
pub fn object(value: Value) -> Value {
    if value.is_object() { value } else { json!({"result": value}) }
}
