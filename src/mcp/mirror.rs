//! What of a request goes along in headers (MCP 2026-07-28): its method, what
//! it is about, and the arguments that a tool's schema marks with
//! `x-mcp-header`. Knows nothing of how headers travel.

use crate::util::base64;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::HashSet;

/// The mark in a tool's schema.
const MARK: &str = "x-mcp-header";

/// `Mcp-Method`, and `Mcp-Name` where the method has one.
pub(super) fn of_request(method: &str, params: Option<&RawValue>) -> Vec<(String, String)> {
    #[derive(Deserialize)]
    struct About<'a> {
        #[serde(borrow)]
        name: Option<Cow<'a, str>>,
        #[serde(borrow)]
        uri: Option<Cow<'a, str>>,
        #[serde(borrow, rename = "taskId")]
        task: Option<Cow<'a, str>>,
    }
    let mut all = vec![("Mcp-Method".to_owned(), method.to_owned())];
    let about = || params.and_then(|p| serde_json::from_str::<About>(p.get()).ok());
    let name = match method {
        "tools/call" | "prompts/get" => about().and_then(|a| a.name),
        "resources/read" => about().and_then(|a| a.uri),
        "tasks/get" | "tasks/update" | "tasks/cancel" => about().and_then(|a| a.task),
        _ => None,
    };
    if let Some(name) = name {
        all.push(("Mcp-Name".to_owned(), encoded(&name)));
    }
    all
}

/// The headers of a call of the tool with this input schema. Arguments that
/// are null or absent have none.
pub(crate) fn of_call(schema: &Value, arguments: &RawValue) -> Vec<(String, String)> {
    let mut marks = Vec::new();
    collect(schema, &mut Vec::new(), &mut marks);
    if marks.is_empty() {
        return Vec::new();
    }
    let Ok(arguments) = serde_json::from_str::<Value>(arguments.get()) else { return Vec::new() };
    let value_at = |path: &[&str]| path.iter().try_fold(&arguments, |value, key| value.get(key));
    let header = |(path, name): &(Vec<&str>, &Value)| {
        let text = match value_at(path)? {
            Value::String(text) => text.clone(),
            Value::Bool(on) => on.to_string(),
            Value::Number(number) => number.to_string(),
            _ => return None,
        };
        Some((format!("Mcp-Param-{}", name.as_str()?), encoded(&text)))
    };
    marks.iter().filter_map(header).collect()
}

/// Why a tool with this input schema is not to be offered, when its marks break the rules.
pub(super) fn fault(schema: &Value) -> Option<String> {
    let mut marks = Vec::new();
    collect(schema, &mut Vec::new(), &mut marks);
    if count(schema) != marks.len() {
        return Some(format!("{MARK} is on something that is not reached by properties alone"));
    }
    let mut seen = HashSet::new();
    marks.iter().find_map(|(path, name)| {
        let at = path.join(".");
        let Some(name) = name.as_str() else { return Some(format!("{at}: {MARK} is no text")) };
        if name.is_empty() || !name.bytes().all(is_token) {
            return Some(format!("{at}: {MARK} \"{}\" cannot be a header's name", name.escape_debug()));
        }
        if !seen.insert(name.to_ascii_lowercase()) {
            return Some(format!("{at}: {MARK} \"{name}\" is given twice"));
        }
        let mut of = schema;
        for key in path {
            of = &of["properties"][*key];
        }
        let is_plain = |kind: &Value| matches!(kind.as_str(), Some("string" | "integer" | "boolean"));
        (!is_plain(&of["type"])).then(|| format!("{at}: {MARK} is on a {} value", of["type"]))
    })
}

/// The marks that are reached by `properties` alone, with the way to each.
fn collect<'a>(schema: &'a Value, path: &mut Vec<&'a str>, marks: &mut Vec<(Vec<&'a str>, &'a Value)>) {
    let Some(schema) = schema.as_object() else { return };
    if let Some(mark) = schema.get(MARK)
        && !path.is_empty()
    {
        marks.push((path.clone(), mark));
    }
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    for (key, inner) in properties {
        path.push(key);
        collect(inner, path, marks);
        path.pop();
    }
}

/// How many marks there are anywhere. What stands for a value, and not for a schema, is passed over.
fn count(schema: &Value) -> usize {
    let in_all = |map: &Map<String, Value>| map.values().map(count).sum::<usize>();
    match schema {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| match key.as_str() {
                MARK => 1,
                "const" | "default" | "enum" | "examples" => 0,
                // Their keys are names.
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
                    value.as_object().map_or(0, in_all)
                }
                _ => count(value),
            })
            .sum(),
        _ => 0,
    }
}

/// RFC 9110, 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// A value as a header takes it: what would not survive there goes as base64.
fn encoded(value: &str) -> String {
    let plain = value.bytes().all(|b| (0x20..0x7f).contains(&b))
        && value.trim() == value
        && !(value.starts_with("=?base64?") && value.ends_with("?="));
    if plain { value.to_owned() } else { format!("=?base64?{}?=", base64::encode(value.as_bytes())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn raw(json: &Value) -> Box<RawValue> {
        serde_json::value::to_raw_value(json).unwrap()
    }

    fn marked(property: Value) -> Value {
        json!({"type": "object", "properties": {"p": property}})
    }

    #[test]
    fn methods_and_names_go_along() {
        let params = raw(&json!({"name": "a b", "uri": "file:///ü", "arguments": {"name": "no"}}));
        let of = |method| of_request(method, Some(&params)).into_iter().map(|(_, v)| v).collect::<Vec<_>>();
        assert_eq!(of("tools/call"), ["tools/call", "a b"]);
        assert_eq!(of("prompts/get"), ["prompts/get", "a b"]);
        assert_eq!(of("resources/read"), ["resources/read", "=?base64?ZmlsZTovLy/DvA==?="]);
        assert_eq!(of("tools/list"), ["tools/list"]);
        assert_eq!(of_request("tools/list", None).len(), 1);
    }

    #[test]
    fn marked_arguments_become_headers() {
        let schema = json!({"properties": {
            "a": {"type": "string", MARK: "A"}, "n": {"type": "integer", MARK: "N"},
            "b": {"type": "boolean", MARK: "B"}, "none": {"type": "string", MARK: "None"},
            "o": {"type": "object", "properties": {"deep": {"type": "string", MARK: "Deep"}}},
            "plain": {"type": "string"}}});
        let arguments =
            json!({"a": " x", "n": 42, "b": false, "none": null, "o": {"deep": ""}, "plain": "p"});
        let mut headers = of_call(&schema, &raw(&arguments));
        headers.sort();
        let expected = [
            ("Mcp-Param-A", "=?base64?IHg=?="),
            ("Mcp-Param-B", "false"),
            ("Mcp-Param-Deep", ""),
            ("Mcp-Param-N", "42"),
        ];
        assert_eq!(headers, expected.map(|(n, v)| (n.to_owned(), v.to_owned())));
        assert!(of_call(&json!({"properties": {"a": {}}}), &raw(&arguments)).is_empty());
    }

    #[test]
    fn what_breaks_the_rules_is_named() {
        for good in [
            json!({}),
            marked(json!({"type": "integer", MARK: "Region-1"})),
            marked(json!({"type": "string", "default": {MARK: 1}})),
            json!({"properties": {MARK: {"type": "string"}}}),
        ] {
            assert_eq!(fault(&good), None, "{good}");
        }
        let twice =
            json!({"properties": {"a": {"type": "string", MARK: "X"}, "b": {"type": "string", MARK: "x"}}});
        for bad in [
            marked(json!({"type": "string", MARK: ""})),
            marked(json!({"type": "string", MARK: "a b"})),
            marked(json!({"type": "string", MARK: "a:b"})),
            marked(json!({"type": "string", MARK: "é"})),
            marked(json!({"type": "string", MARK: "a\t1"})),
            marked(json!({"type": "string", MARK: 7})),
            marked(json!({"type": "number", MARK: "A"})),
            marked(json!({"type": "object", MARK: "A"})),
            marked(json!({"type": ["string", "null"], MARK: "A"})),
            marked(json!({"type": "array", "items": {"type": "string", MARK: "A"}})),
            marked(json!({"anyOf": [{"type": "string", MARK: "A"}]})),
            json!({MARK: "A", "type": "object"}),
            twice,
        ] {
            assert!(fault(&bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn values_survive_in_a_header() {
        for plain in ["", "us west 1", "a=b;c"] {
            assert_eq!(encoded(plain), plain);
        }
        assert_eq!(encoded("line1\r\nline2"), "=?base64?bGluZTENCmxpbmUy?=");
        assert_eq!(encoded("\tx"), "=?base64?CXg=?=");
        assert_eq!(encoded("=?base64?eA==?="), "=?base64?PT9iYXNlNjQ/ZUE9PT89?=");
        assert_eq!(base64::encode(b"a"), "YQ==");
    }
}
