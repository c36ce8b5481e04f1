//! What a schema says for people: its description, and the limits that a type
//! cannot express, as one line for a comment.

use super::text;
use crate::catalog::refs::Refs;
use serde_json::{Map, Value};

/// How long a default, an example or a pattern may be, in characters.
const LONGEST: usize = 80;

/// The description of a schema, with its limits in parentheses; safe in a comment, may be empty.
pub fn line(schema: &Value) -> String {
    let Some(map) = schema.as_object() else { return String::new() };
    with_limits(description(map), limits_of(map))
}

/// The same for a property, whose description may stand behind a reference (looked
/// up when `behind`), and whose limits may stand in the only branch that is not null.
pub fn property(schema: &Value, refs: &Refs<'_>, behind: bool) -> String {
    let Some(map) = schema.as_object() else { return String::new() };
    let reference = map.get("$ref").filter(|_| behind).and_then(Value::as_str);
    let target = reference.and_then(|r| refs.find(r)).and_then(Value::as_object);
    let behind = target.map_or("", description);
    let own = description(map);
    let mut limits = limits_of(map);
    if let Some(branch) = only_branch(map) {
        limits.extend(limits_of(branch));
    }
    if let Some(target) = target.filter(|t| !t.contains_key("properties")) {
        limits.extend(limits_of(target));
    }
    let mut text = if own.is_empty() { behind.to_owned() } else { own.to_owned() };
    if let Some(item) = map.get("items").and_then(Value::as_object).filter(|i| !i.contains_key("properties"))
    {
        let each = with_limits(description(item), limits_of(item));
        if !each.is_empty() {
            text = if text.is_empty() { format!("each: {each}") } else { format!("{text} Each: {each}") };
        }
    }
    with_limits(&text, limits)
}

fn description(map: &Map<String, Value>) -> &str {
    map.get("description").and_then(Value::as_str).unwrap_or_default()
}

fn with_limits(description: &str, mut limits: Vec<String>) -> String {
    let mut out = text::comment(description);
    let mut seen = std::collections::HashSet::new();
    limits.retain(|l| seen.insert(l.clone()));
    if !limits.is_empty() {
        let limits = text::comment(&limits.join(", "));
        if out.is_empty() {
            return limits;
        }
        out.push_str(&format!(" ({limits})"));
    }
    out
}

/// The one branch of `anyOf` or `oneOf` beside `null`.
fn only_branch(map: &Map<String, Value>) -> Option<&Map<String, Value>> {
    let branches = ["anyOf", "oneOf"].iter().find_map(|k| map.get(*k)?.as_array())?;
    let mut real = branches.iter().filter(|b| b.get("type").is_none_or(|t| t != "null"));
    match (real.next(), real.next()) {
        (Some(Value::Object(only)), None) => Some(only),
        _ => None,
    }
}

fn limits_of(map: &Map<String, Value>) -> Vec<String> {
    let mut out = Vec::new();
    if map.get("deprecated") == Some(&Value::Bool(true)) {
        out.push("deprecated".to_owned());
    }
    if map.get("type").is_some_and(|t| t == "integer") {
        out.push("integer".to_owned());
    }
    if let Some(format) = map.get("format").and_then(Value::as_str) {
        out.push(short(format));
    }
    if let Some(kind) = ["contentMediaType", "contentEncoding"].iter().find_map(|k| map.get(*k)?.as_str()) {
        out.push(short(kind));
    }
    // A tuple's type says how many there are.
    let tuple = map.contains_key("prefixItems") || map.get("items").is_some_and(Value::is_array);
    let exclusive = |key: &str| map.get(key) == Some(&Value::Bool(true));
    for (key, word) in [
        ("minimum", if exclusive("exclusiveMinimum") { "above" } else { "min" }),
        ("exclusiveMinimum", "above"),
        ("maximum", if exclusive("exclusiveMaximum") { "below" } else { "max" }),
        ("exclusiveMaximum", "below"),
        ("multipleOf", "multiple of"),
        ("minLength", "min length"),
        ("maxLength", "max length"),
        ("minItems", "min items"),
        ("maxItems", "max items"),
    ] {
        let Some(Value::Number(n)) = map.get(key) else { continue };
        // Generators write JavaScript's safe integers as limits of every integer, and zero as the
        // least length of everything.
        let idle = n.as_f64().is_some_and(|f| f.abs() >= 9_007_199_254_740_991.0)
            || key.starts_with("min") && key != "minimum" && n.as_u64() == Some(0);
        if !(idle || tuple && key.ends_with("Items")) {
            out.push(format!("{word} {}", text::number(n)));
        }
    }
    if map.get("uniqueItems") == Some(&Value::Bool(true)) {
        out.push("unique".to_owned());
    }
    if let Some(pattern) = map.get("pattern").and_then(Value::as_str).filter(|p| p.chars().count() <= LONGEST)
    {
        out.push(format!("pattern {pattern}"));
    }
    if let Some(default) = map.get("default").filter(|d| !d.is_null()) {
        out.extend(json(default).map(|d| format!("default {d}")));
    } else if let Some(Value::Array(examples)) = map.get("examples") {
        out.extend(examples.first().and_then(json).map(|e| format!("e.g. {e}")));
    }
    out
}

fn short(text: &str) -> String {
    crate::catalog::rows::cut(text, LONGEST)
}

/// A value as JSON when that is short.
fn json(value: &Value) -> Option<String> {
    let small = match value {
        Value::Array(list) => list.len() <= 8,
        Value::Object(map) => map.len() <= 4,
        Value::String(s) => s.len() <= LONGEST,
        _ => true,
    };
    let text = small.then(|| value.to_string())?;
    (text.chars().count() <= LONGEST).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn limits_follow_the_description() {
        for (schema, expected) in [
            (
                json!({"description": "How\nmany.", "type": "integer", "minimum": 1, "maximum": 9, "default": 3}),
                "How many. (integer, min 1, max 9, default 3)",
            ),
            (json!({"type": "string", "format": "uri"}), "uri"),
            (
                json!({"type": "integer", "minimum": -9007199254740991i64, "maximum": 9007199254740991i64}),
                "integer",
            ),
            (
                json!({"anyOf": [{"type": "string", "minLength": 2}, {"type": "null"}], "default": null}),
                "min length 2",
            ),
            (json!({"items": {"type": "string", "description": "A path."}}), "each: A path."),
            (json!({"$ref": "#/$defs/x"}), "Behind."),
            (json!({"pattern": "^*/$", "description": "P"}), "P (pattern ^*\\/$)"),
            (json!({"description": 7}), ""),
            (json!({"exclusiveMinimum": 0, "maximum": 1, "exclusiveMaximum": true}), "above 0, below 1"),
        ] {
            let root = json!({"$defs": {"x": {"description": "Behind."}}});
            assert_eq!(property(&schema, &Refs::new(&root), true), expected, "{schema}");
        }
    }
}
