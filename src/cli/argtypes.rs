//! What a tool's schema makes of a text typed for one of its arguments: which names
//! there are, and whether the text is a number, a list's element, or itself.

use super::args::usage;
use crate::error::{Error, Kind, Result};
use crate::util::did_you_mean;
use serde_json::Value;
use serde_json::value::RawValue;

/// How far `$ref` and unions in a schema are followed, so that a recursive one ends.
const SCHEMA_DEPTH: usize = 24;

/// The text as a JSON string.
pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// What a property's schema takes, as far as text on a command line needs to know.
#[derive(Debug, Default)]
struct Accepts<'a> {
    /// Nothing is said, so anything goes.
    anything: bool,
    string: bool,
    integer: bool,
    number: bool,
    boolean: bool,
    null: bool,
    object: bool,
    /// An array, and the schema of its items.
    array: Option<Option<&'a Value>>,
    literals: Vec<&'a Value>,
}

/// The schema of a property of the arguments object.
pub(super) fn property<'a>(schema: &'a Value, key: &str) -> Option<&'a Value> {
    fn find<'a>(schema: &'a Value, root: &'a Value, key: &str, depth: usize) -> Option<&'a Value> {
        if depth > SCHEMA_DEPTH {
            return None;
        }
        if let Some(found) = schema.get("properties").and_then(|p| p.get(key)) {
            return Some(found);
        }
        if let Some(target) = schema.get("$ref").and_then(Value::as_str).and_then(|r| refer(root, r)) {
            return find(target, root, key, depth + 1);
        }
        ["allOf", "anyOf", "oneOf"]
            .iter()
            .filter_map(|word| schema.get(*word)?.as_array())
            .flatten()
            .find_map(|s| find(s, root, key, depth + 1))
    }
    find(schema, schema, key, 0).or_else(|| schema.get("additionalProperties").filter(|s| s.is_object()))
}

/// The names of a tool's arguments, where its schema plainly lists them: other ones would hardly be
/// meant, although JSON Schema lets them pass unless it says otherwise.
pub(super) fn all_declared(schema: &Value) -> Option<Vec<&str>> {
    const OPENING: [&str; 9] = [
        "$ref",
        "allOf",
        "anyOf",
        "oneOf",
        "if",
        "dependentSchemas",
        "patternProperties",
        "propertyNames",
        "not",
    ];
    let properties = schema.get("properties")?.as_object().filter(|p| !p.is_empty())?;
    let open = OPENING.iter().any(|word| schema.get(*word).is_some())
        || schema.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false));
    (!open).then(|| properties.keys().map(String::as_str).collect())
}

/// A pair whose name the tool does not have.
pub(super) fn undeclared(key: &str, declared: &[&str]) -> Error {
    let e = usage(format!("the tool has no argument {key:?}"));
    let near = did_you_mean(key, declared.iter().copied());
    let near = near.unwrap_or_else(|| format!("it takes {}", declared.join(", ")));
    e.hint(format!("{near}; {key}:=<json> sends it all the same"))
}

/// What a reference within the document points to (RFC 6901, percent-decoding left out as nobody writes it).
fn refer<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    root.pointer(reference.strip_prefix('#')?)
}

fn accepts<'a>(schema: &'a Value, root: &'a Value, depth: usize, into: &mut Accepts<'a>) {
    if depth > SCHEMA_DEPTH {
        into.anything = true;
        return;
    }
    if let Some(target) = schema.get("$ref").and_then(Value::as_str).and_then(|r| refer(root, r)) {
        return accepts(target, root, depth + 1, into);
    }
    if let Some(literals) = schema.get("enum").and_then(Value::as_array) {
        into.literals.extend(literals);
        return;
    }
    if let Some(literal) = schema.get("const") {
        into.literals.push(literal);
        return;
    }
    let types: Vec<&str> = match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    for t in &types {
        match *t {
            "string" => into.string = true,
            "integer" => into.integer = true,
            "number" => into.number = true,
            "boolean" => into.boolean = true,
            "null" => into.null = true,
            "object" => into.object = true,
            "array" => into.array = Some(schema.get("items").filter(|i| i.is_object())),
            _ => into.anything = true,
        }
    }
    if !types.is_empty() {
        return;
    }
    for word in ["anyOf", "oneOf", "allOf"] {
        if let Some(branches) = schema.get(word).and_then(Value::as_array)
            && !branches.is_empty()
        {
            // Of allOf, the branches that say nothing about the type do not make it anything.
            let all = word == "allOf";
            for branch in branches {
                let mut one = Accepts::default();
                accepts(branch, root, depth + 1, &mut one);
                if all && one.anything {
                    continue;
                }
                into.anything |= one.anything;
                into.string |= one.string;
                into.integer |= one.integer;
                into.number |= one.number;
                into.boolean |= one.boolean;
                into.null |= one.null;
                into.object |= one.object;
                into.array = into.array.or(one.array);
                into.literals.extend(one.literals);
            }
            return;
        }
    }
    if schema.get("properties").is_some() {
        into.object = true;
    } else if schema.get("items").is_some() {
        into.array = Some(schema.get("items").filter(|i| i.is_object()));
    } else {
        into.anything = true;
    }
}

/// The JSON for a typed text, and whether it is one element of the array that the property is.
pub(super) fn convert(key: &str, text: &str, schema: &Value, root: &Value) -> Result<(String, bool)> {
    let mut takes = Accepts::default();
    accepts(schema, root, 0, &mut takes);
    if takes.anything || takes.string || takes.literals.iter().any(|l| l.as_str() == Some(text)) {
        return Ok((quoted(text), false));
    }
    if let Some(literal) = takes.literals.iter().find(|l| !l.is_string() && l.to_string() == text) {
        return Ok((literal.to_string(), false));
    }
    let json = serde_json::from_str::<&RawValue>(text).ok().map(RawValue::get);
    let first = json.and_then(|j| j.bytes().next());
    let is_number = matches!(first, Some(b'-' | b'0'..=b'9'));
    let is_integer = is_number && text.trim().bytes().all(|b| b == b'-' || b.is_ascii_digit());
    let fits = match first {
        Some(b'-' | b'0'..=b'9') => takes.number || takes.integer && is_integer,
        Some(b't' | b'f') => takes.boolean,
        Some(b'n') => takes.null,
        Some(b'{') => takes.object,
        Some(b'[') => takes.array.is_some(),
        _ => false,
    };
    if let (true, Some(json)) = (fits, json) {
        return Ok((json.to_owned(), false));
    }
    if let Some(items) = takes.array {
        let (json, _) = match items {
            Some(items) => convert(key, text, items, root)?,
            None => (quoted(text), false),
        };
        return Ok((json, true));
    }
    let wanted: Vec<&str> = [
        (takes.integer && !takes.number, "an integer"),
        (takes.number, "a number"),
        (takes.boolean, "true or false"),
        (takes.object, "a JSON object"),
        (takes.null, "null"),
    ]
    .iter()
    .filter(|(is, _)| *is)
    .map(|(_, word)| *word)
    .collect();
    if wanted.is_empty() {
        // Only literals, and none of these: the check against the whole schema says which there are.
        return Ok((quoted(text), false));
    }
    Err(Error::new(Kind::Usage, format!("the argument {key} takes {}, not {text:?}", wanted.join(" or ")))
        .hint(format!("{key}:=<json> sends any JSON as it is")))
}
