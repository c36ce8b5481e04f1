//! The schemas of an OpenAPI document as JSON Schema: the older dialect
//! translated, references turned into `$defs`, which recursion cannot blow up.

use super::document::Document;
use serde_json::{Map, Value, json};
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::rc::Rc;

/// Keywords whose value is a schema.
const ONE: &[&str] = &[
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Keywords whose value is a list of schemas.
const LIST: &[&str] = &["allOf", "anyOf", "oneOf", "prefixItems"];
/// Keywords whose value is an object of schemas.
const MAP: &[&str] = &["dependentSchemas", "patternProperties", "properties"];
/// Keywords that are taken over; others mean nothing to JSON Schema, or only illustrate.
const PLAIN: &[&str] = &[
    "const",
    "contentEncoding",
    "contentMediaType",
    "default",
    "dependentRequired",
    "deprecated",
    "description",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "pattern",
    "required",
    "title",
    "type",
    "uniqueItems",
];

/// Which way values of a schema travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// To the API: without what is only read.
    In,
    /// From it: without what is only written.
    Out,
}

/// A converted schema, and what it refers to.
#[derive(Clone, Debug, Default)]
pub struct Piece {
    /// The schema, its references pointing into `$defs`.
    pub schema: Value,
    /// The references as the document writes them.
    pub refs: BTreeSet<String>,
}

/// A converted schema that others refer to, and its length as text.
type Kept = Rc<(Piece, usize)>;

/// Converts schemas of one document, each component once.
pub struct Schemas<'d> {
    document: &'d Document,
    pieces: RefCell<HashMap<(String, Way), Kept>>,
    names: RefCell<HashMap<String, String>>,
    taken: RefCell<HashSet<String>>,
}

impl<'d> Schemas<'d> {
    /// For this document.
    pub fn new(document: &'d Document) -> Schemas<'d> {
        Schemas { document, pieces: RefCell::default(), names: RefCell::default(), taken: RefCell::default() }
    }

    /// Converts a schema that stands in the document.
    pub fn convert(&self, schema: &Value, way: Way) -> Piece {
        let mut refs = BTreeSet::new();
        let schema = self.one(schema, way, &mut refs);
        Piece { schema, refs }
    }

    /// Everything that is referred to, for `$defs`, and whether that is all: past
    /// `limit` bytes what is still missing takes any value.
    pub fn definitions(&self, refs: &BTreeSet<String>, way: Way, limit: usize) -> (Map<String, Value>, bool) {
        let mut out = Map::new();
        let mut whole = true;
        let mut room = limit;
        let mut queue: VecDeque<String> = refs.iter().cloned().collect();
        let mut seen: HashSet<String> = refs.iter().cloned().collect();
        // The nearest first, so that what is cut is what lies deepest.
        while let Some(reference) = queue.pop_front() {
            let kept = self.component(&reference, way);
            let (piece, size) = &*kept;
            if *size > room {
                whole = false;
                out.insert(self.name(&reference), json!({}));
                continue;
            }
            room -= size;
            out.insert(self.name(&reference), piece.schema.clone());
            queue.extend(piece.refs.iter().filter(|r| seen.insert((*r).clone())).cloned());
        }
        (out, whole)
    }

    fn component(&self, reference: &str, way: Way) -> Kept {
        let key = (reference.to_owned(), way);
        if let Some(kept) = self.pieces.borrow().get(&key) {
            return Rc::clone(kept);
        }
        let piece = match self.document.find(reference) {
            Some(schema) => self.convert(schema, way),
            None => Piece { schema: json!({}), refs: BTreeSet::new() },
        };
        let size = piece.schema.to_string().len();
        let kept = Rc::new((piece, size));
        self.pieces.borrow_mut().insert(key, Rc::clone(&kept));
        kept
    }

    /// The name under which what a reference means stands in `$defs`.
    fn name(&self, reference: &str) -> String {
        if let Some(name) = self.names.borrow().get(reference) {
            return name.clone();
        }
        let short = reference.strip_prefix("#/components/schemas/").filter(|rest| !rest.contains('/'));
        let safe = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
        let base: String =
            short.unwrap_or(reference).trim_start_matches(['#', '/']).chars().map(safe).collect();
        let mut name = base.clone();
        let mut taken = self.taken.borrow_mut();
        let mut number = 2;
        while !taken.insert(name.clone()) {
            name = format!("{base}_{number}");
            number += 1;
        }
        self.names.borrow_mut().insert(reference.to_owned(), name.clone());
        name
    }

    fn one(&self, schema: &Value, way: Way, refs: &mut BTreeSet<String>) -> Value {
        let Value::Object(given) = schema else {
            return if schema.is_boolean() { schema.clone() } else { json!({}) };
        };
        let mut out = Map::new();
        if let Some(reference) = given.get("$ref").and_then(Value::as_str) {
            // Another document is not fetched: whatever it says, any value may stand there.
            if reference.starts_with("#/") {
                refs.insert(reference.to_owned());
                out.insert("$ref".into(), format!("#/$defs/{}", self.name(reference)).into());
            }
            if let Some(text) = given.get("description") {
                out.insert("description".into(), text.clone());
            }
            return Value::Object(out);
        }
        let hidden = if way == Way::In { "readOnly" } else { "writeOnly" };
        let mut left_out: Vec<&str> = Vec::new();
        for (key, value) in given {
            let key = key.as_str();
            let new = match value {
                _ if ONE.contains(&key) => self.one(value, way, refs),
                Value::Array(list) if LIST.contains(&key) => {
                    list.iter().map(|each| self.one(each, way, refs)).collect()
                }
                Value::Object(members) if MAP.contains(&key) => {
                    let mut kept = Map::new();
                    for (name, each) in members {
                        if key == "properties" && each.get(hidden) == Some(&Value::Bool(true)) {
                            left_out.push(name);
                        } else {
                            kept.insert(name.clone(), self.one(each, way, refs));
                        }
                    }
                    Value::Object(kept)
                }
                _ if PLAIN.contains(&key) => value.clone(),
                _ => continue,
            };
            out.insert(key.to_owned(), new);
        }
        if let Some(Value::Array(required)) = out.get_mut("required") {
            required.retain(|name| name.as_str().is_some_and(|name| !left_out.contains(&name)));
            if required.is_empty() {
                out.remove("required");
            }
        }
        exclusive(&mut out, "exclusiveMinimum", "minimum");
        exclusive(&mut out, "exclusiveMaximum", "maximum");
        if given.get("nullable") == Some(&Value::Bool(true)) {
            return nullable(out);
        }
        Value::Object(out)
    }
}

/// In OpenAPI 3.0 an exclusive bound is a flag beside the bound; in JSON Schema it is the bound.
fn exclusive(schema: &mut Map<String, Value>, flag: &str, bound: &str) {
    match schema.get(flag) {
        Some(Value::Bool(true)) => match schema.remove(bound) {
            Some(limit) => drop(schema.insert(flag.to_owned(), limit)),
            None => drop(schema.remove(flag)),
        },
        Some(Value::Bool(false)) => drop(schema.remove(flag)),
        _ => {}
    }
}

/// OpenAPI 3.0's `nullable`, which JSON Schema has as a type.
fn nullable(mut schema: Map<String, Value>) -> Value {
    match schema.get("type") {
        Some(Value::String(kind)) => {
            let both = json!([kind, "null"]);
            schema.insert("type".into(), both);
            if let Some(Value::Array(values)) = schema.get_mut("enum")
                && !values.contains(&Value::Null)
            {
                values.push(Value::Null);
            }
            Value::Object(schema)
        }
        Some(_) => Value::Object(schema),
        None if schema.is_empty() => Value::Object(schema),
        None => json!({"anyOf": [schema, {"type": "null"}]}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn convert(schema: Value, way: Way) -> Value {
        let document = Document { root: json!({}), url: None };
        Schemas::new(&document).convert(&schema, way).schema
    }

    #[test]
    fn the_older_dialect_is_translated() {
        for (given, wanted) in [
            (
                json!({"type": "string", "nullable": true, "enum": ["a"], "example": "a"}),
                json!({"type": ["string", "null"], "enum": ["a", null]}),
            ),
            (
                json!({"type": "integer", "minimum": 1, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false}),
                json!({"type": "integer", "exclusiveMinimum": 1, "maximum": 9}),
            ),
            (
                json!({"allOf": [{"type": "object"}], "nullable": true, "xml": {}}),
                json!({"anyOf": [{"allOf": [{"type": "object"}]}, {"type": "null"}]}),
            ),
            (
                json!({"type": ["string", "null"], "exclusiveMinimum": 3}),
                json!({"type": ["string", "null"], "exclusiveMinimum": 3}),
            ),
            (
                json!({"additionalProperties": {"nullable": true, "type": "number"}}),
                json!({"additionalProperties": {"type": ["number", "null"]}}),
            ),
        ] {
            assert_eq!(convert(given, Way::In), wanted);
        }
    }

    #[test]
    fn what_travels_only_the_other_way_is_left_out() {
        let schema = json!({"type": "object", "required": ["id", "secret"], "properties": {
            "id": {"type": "integer", "readOnly": true}, "secret": {"type": "string", "writeOnly": true}}});
        let sent = convert(schema.clone(), Way::In);
        assert_eq!(
            sent,
            json!({"type": "object", "required": ["secret"], "properties": {"secret": {"type": "string"}}})
        );
        let received = convert(schema, Way::Out);
        assert_eq!(received["required"], json!(["id"]));
        assert_eq!(received["properties"], json!({"id": {"type": "integer"}}));
    }

    #[test]
    fn recursion_and_size_are_bounded() {
        let tree = json!({"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/components/schemas/Tree"}},
            "other": {"$ref": "#/x y/Tree"}, "far": {"$ref": "other.json#/A"}}});
        let root = json!({"components": {"schemas": {"Tree": tree}}, "x y": {"Tree": {"type": "string", "title": "x".repeat(500)}}});
        let document = Document { root, url: None };
        let schemas = Schemas::new(&document);
        let piece = schemas.convert(&json!({"$ref": "#/components/schemas/Tree"}), Way::In);
        assert_eq!(piece.schema, json!({"$ref": "#/$defs/Tree"}));
        let (all, whole) = schemas.definitions(&piece.refs, Way::In, 10_000);
        assert!(whole && all.len() == 2, "{all:?}");
        assert_eq!(all["Tree"]["properties"]["far"], json!({}));
        assert_eq!(all["Tree"]["properties"]["other"], json!({"$ref": "#/$defs/x_y_Tree"}));
        let (cut, whole) = schemas.definitions(&piece.refs, Way::In, 400);
        assert!(!whole && cut["x_y_Tree"] == json!({}) && cut["Tree"] == all["Tree"]);
    }
}
