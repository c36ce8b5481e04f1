//! One JSON Schema document (draft-07 to 2020-12) into a type and the named types
//! that it needs. Never fails: what cannot be said in TypeScript, or is not
//! understood, is `unknown`, so that a correct call always compiles.

use super::doc;
use super::plan::{Address, Plan, REFERENCES};
use super::ty::{Object, Prop, Ty, intersection, literal, union};
use crate::catalog::names;
use crate::catalog::refs::Refs;
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet, VecDeque};

/// How many schemas may be nested in one type; deeper ones are `unknown`. Far more
/// than is readable, and few enough for the daemon's threads of 256 KiB of stack.
const DEPTH: usize = 24;

/// From this much nesting on, a reference becomes a named type even when it is used
/// only once: a chain of them would otherwise end in `unknown`.
const INLINE: usize = 16;

/// How many schemas one document may have; all beyond are `unknown`. The largest
/// real one that we know of has some 3,000.
const WORK: usize = 100_000;

/// How many times a definition that is a union of itself is unfolded into itself.
const UNFOLD: usize = 4;

/// A named type.
#[derive(Clone, Debug, PartialEq)]
pub struct Def {
    /// Its name, unique in its list.
    pub name: String,
    /// What it stands for.
    pub ty: Ty,
    /// What is said about it, one line; may be empty.
    pub doc: String,
}

/// A converted document.
#[derive(Clone, Debug)]
pub struct Converted {
    /// The type of the document's root.
    pub ty: Ty,
    /// The named types, in order of first use.
    pub defs: Vec<Def>,
}

/// Converts a document. `hint` names the root's own type where it needs a name.
pub fn convert(root: &Value, hint: &str) -> Converted {
    let refs = Refs::new(root);
    let plan = Plan::of(&refs);
    let mut c = Converter {
        refs,
        plan,
        hint,
        named: HashMap::new(),
        taken: HashSet::new(),
        waiting: VecDeque::new(),
        unfolding: Vec::new(),
        knot: None,
        work: WORK,
    };
    let ty = settled(c.schema(root, DEPTH, false));
    let mut defs = Vec::new();
    while let Some((name, schema)) = c.waiting.pop_front() {
        c.knot = c.plan.target(schema).knot;
        c.unfolding = vec![schema];
        let ty = settled(c.inside(schema, DEPTH, false));
        defs.push(Def { name, ty, doc: doc::line(schema) });
    }
    let mut out = Converted { ty, defs };
    super::tame::tame(&mut out);
    out
}

/// A type that stands alone.
fn settled(ty: Ty) -> Ty {
    if ty == Ty::Hole { Ty::Unknown } else { ty }
}

struct Converter<'a> {
    refs: Refs<'a>,
    plan: Plan,
    hint: &'a str,
    named: HashMap<Address, String>,
    taken: HashSet<String>,
    /// Named types whose bodies are still to be converted.
    waiting: VecDeque<(String, &'a Value)>,
    /// The definitions whose bodies are being written into one another (see [`super::plan::Target::knot`]).
    unfolding: Vec<Address>,
    knot: Option<usize>,
    work: usize,
}

impl<'a> Converter<'a> {
    /// The type at a place where a schema stands. `guarded` says that TypeScript
    /// resolves the place lazily, so that a type may name itself there.
    fn schema(&mut self, schema: &'a Value, depth: usize, guarded: bool) -> Ty {
        if self.plan.target(schema).named {
            return self.reference(schema, depth, guarded);
        }
        self.inside(schema, depth, guarded)
    }

    /// The type of a schema where a name for it does not do.
    fn inside(&mut self, schema: &'a Value, depth: usize, guarded: bool) -> Ty {
        let map = match schema {
            Value::Bool(false) => return Ty::Never,
            Value::Object(map) => map,
            _ => return Ty::Unknown,
        };
        if depth == 0 || self.work == 0 {
            return Ty::Unknown;
        }
        self.work -= 1;
        let ty = self.combined(map, depth, guarded);
        if map.get("nullable") == Some(&Value::Bool(true)) && !ty.is_unknown() {
            return union(vec![ty, Ty::Null]);
        }
        ty
    }

    fn combined(&mut self, map: &'a Map<String, Value>, depth: usize, guarded: bool) -> Ty {
        let reference = REFERENCES.iter().find_map(|k| map.get(*k)?.as_str());
        let mut parts = Vec::new();
        if let Some(text) = reference {
            parts.push(match self.refs.find(text) {
                Some(target) => self.reference(target, depth, guarded),
                None => Ty::Why(format!("$ref {text}")),
            });
            if self.refs.old_draft() {
                return parts.remove(0);
            }
        }
        if let Some(value) = map.get("const") {
            parts.push(constant(value, DEPTH));
        } else if let Some(Value::Array(values)) = map.get("enum") {
            parts.push(union(values.iter().map(|v| constant(v, DEPTH)).collect()));
        } else {
            parts.push(self.by_type(map, depth));
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(Value::Array(branches)) = map.get(key).filter(|b| **b != Value::Array(Vec::new())) {
                let branches = branches.iter().map(|b| self.schema(b, depth - 1, guarded)).collect();
                parts.push(union(branches));
            }
        }
        if let Some(Value::Array(all)) = map.get("allOf") {
            parts.extend(all.iter().map(|part| self.schema(part, depth - 1, guarded)).collect::<Vec<_>>());
        }
        let nothing = match map.get("not") {
            Some(Value::Bool(denied)) => *denied,
            Some(Value::Object(denied)) => denied.is_empty(),
            _ => false,
        };
        if nothing {
            return Ty::Never;
        }
        intersection(parts)
    }

    /// What a reference to `target` becomes.
    fn reference(&mut self, target: &'a Value, depth: usize, guarded: bool) -> Ty {
        let address: Address = target;
        let known = self.plan.target(address);
        if !known.named && depth > DEPTH - INLINE {
            return self.inside(target, depth - 1, guarded);
        }
        if !guarded && known.knot.is_some() && known.knot == self.knot {
            if self.unfolding.contains(&address) || self.unfolding.len() >= UNFOLD {
                return Ty::Hole;
            }
            self.unfolding.push(address);
            let ty = self.inside(target, depth.saturating_sub(1), false);
            self.unfolding.pop();
            return ty;
        }
        if let Some(name) = self.named.get(&address) {
            return Ty::Ref(name.clone());
        }
        let is_root = std::ptr::eq(target, self.refs.root());
        let base = if is_root { self.hint.to_owned() } else { type_name(self.plan.spelling(address)) };
        let mut name = base.clone();
        let mut serial = 2;
        while !self.taken.insert(name.clone()) {
            name = format!("{base}_{serial}");
            serial += 1;
        }
        self.named.insert(address, name.clone());
        self.waiting.push_back((name.clone(), target));
        Ty::Ref(name)
    }

    /// What `type` and the keywords that go with single types say.
    fn by_type(&mut self, map: &'a Map<String, Value>, depth: usize) -> Ty {
        match map.get("type") {
            Some(Value::String(word)) => self.of_type(word, map, depth),
            Some(Value::Array(words)) if !words.is_empty() => {
                let mut parts = Vec::with_capacity(words.len());
                for word in words {
                    let Some(word) = word.as_str() else { return Ty::Unknown };
                    parts.push(self.of_type(word, map, depth));
                }
                union(parts)
            }
            // A schema without a type that speaks of properties means an object, of items an array.
            _ if ["properties", "required", "additionalProperties", "patternProperties"]
                .iter()
                .any(|k| map.contains_key(*k)) =>
            {
                self.object(map, depth)
            }
            _ if map.contains_key("items") || map.contains_key("prefixItems") => self.array(map, depth),
            _ => Ty::Unknown,
        }
    }

    fn of_type(&mut self, word: &str, map: &'a Map<String, Value>, depth: usize) -> Ty {
        match word {
            "string" => Ty::String,
            "number" | "integer" => Ty::Number,
            "boolean" => Ty::Boolean,
            "null" => Ty::Null,
            "object" => self.object(map, depth),
            "array" => self.array(map, depth),
            _ => Ty::Unknown,
        }
    }

    fn object(&mut self, map: &'a Map<String, Value>, depth: usize) -> Ty {
        let required: Vec<&str> = match map.get("required") {
            Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let wanted: HashSet<&str> = required.iter().copied().collect();
        let mut props = Vec::new();
        let declared = map.get("properties").and_then(Value::as_object);
        for (name, schema) in declared.into_iter().flatten() {
            let ty = settled(self.schema(schema, depth - 1, true));
            let optional = !wanted.contains(name.as_str());
            // Every object has these from its prototype: left out, they are not what the schema says.
            let ty = if optional && INHERITED.contains(&name.as_str()) { Ty::Unknown } else { ty };
            // What is said of a named type stands with it, once.
            let behind = !matches!(ty, Ty::Ref(_));
            let doc = doc::property(schema, &self.refs, behind);
            props.push(Prop { name: name.clone(), optional, ty, doc });
        }
        let mut seen: HashSet<&str> = HashSet::new();
        for name in required {
            if declared.is_none_or(|d| !d.contains_key(name)) && seen.insert(name) {
                let name = name.to_owned();
                props.push(Prop { name, optional: false, ty: Ty::Unknown, doc: String::new() });
            }
        }
        let index = self.others(map, &props, depth);
        Ty::Object(Object { props, index: index.map(Box::new) })
    }

    /// The index signature: what properties that are not declared may hold.
    fn others(&mut self, map: &'a Map<String, Value>, props: &[Prop], depth: usize) -> Option<Ty> {
        let mut parts: Vec<Ty> = Vec::new();
        if let Some(Value::Object(patterns)) = map.get("patternProperties") {
            for schema in patterns.values() {
                parts.push(settled(self.schema(schema, depth - 1, true)));
            }
        }
        match map.get("additionalProperties") {
            Some(Value::Bool(true)) => parts.push(Ty::Unknown),
            Some(schema @ Value::Object(_)) => parts.push(settled(self.schema(schema, depth - 1, true))),
            Some(Value::Bool(false)) if parts.is_empty() => {
                return props.is_empty().then_some(Ty::Never);
            }
            // Nothing said: JSON Schema lets any other property pass, but a declared
            // list without them tells a mistyped name; only where there is no list is it open.
            _ if parts.is_empty() => return props.is_empty().then_some(Ty::Unknown),
            _ => {}
        }
        let mut index = union(parts);
        if index.is_unknown() {
            return Some(Ty::Unknown);
        }
        // TypeScript wants the signature to admit every declared property as well.
        if !props.is_empty() {
            let mut parts = vec![index];
            parts.extend(props.iter().map(|p| p.ty.clone()));
            if props.iter().any(|p| p.optional) {
                parts.push(Ty::Undefined);
            }
            index = union(parts);
        }
        let mut size = 0;
        index.visit(&mut |_| size += 1);
        // Past some size the copy of all property types helps nobody.
        if size > 12 && !props.is_empty() { Some(Ty::Unknown) } else { Some(index) }
    }

    fn array(&mut self, map: &'a Map<String, Value>, depth: usize) -> Ty {
        let items = map.get("items");
        let (tuple, rest) = match (map.get("prefixItems"), items) {
            (_, Some(Value::Array(tuple))) => (tuple.as_slice(), map.get("additionalItems")),
            (Some(Value::Array(tuple)), rest) if self.refs.has_prefix_items() => (tuple.as_slice(), rest),
            (_, rest) => (&[][..], rest),
        };
        if tuple.is_empty() {
            let item = rest.map_or(Ty::Unknown, |item| settled(self.schema(item, depth - 1, true)));
            return Ty::Array(Box::new(item));
        }
        let count = |key: &str| map.get(key).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
        // Strictly, members beyond `minItems` may be missing. Authors who give no
        // `minItems` at all mean the whole tuple.
        let least = count("minItems").unwrap_or(tuple.len());
        let members: Vec<(Ty, bool)> = tuple
            .iter()
            .enumerate()
            .map(|(i, item)| (settled(self.schema(item, depth - 1, true)), i >= least))
            .collect();
        let full = count("maxItems").is_some_and(|most| most <= members.len());
        let rest = match rest {
            _ if full => None,
            Some(Value::Bool(false)) => None,
            Some(rest) => Some(settled(self.schema(rest, depth - 1, true))),
            None => Some(Ty::Unknown),
        };
        Ty::Tuple(members, rest.map(Box::new))
    }
}

/// The type that admits exactly this value.
fn constant(value: &Value, depth: usize) -> Ty {
    if depth == 0 {
        return Ty::Unknown;
    }
    match value {
        Value::Array(list) => Ty::Tuple(list.iter().map(|v| (constant(v, depth - 1), false)).collect(), None),
        Value::Object(map) if map.is_empty() => {
            Ty::Object(Object { props: Vec::new(), index: Some(Box::new(Ty::Never)) })
        }
        Value::Object(map) => {
            let prop = |(name, v): (&String, &Value)| Prop {
                name: name.clone(),
                optional: false,
                ty: constant(v, depth - 1),
                doc: String::new(),
            };
            Ty::Object(Object { props: map.iter().map(prop).collect(), index: None })
        }
        _ => literal(value).unwrap_or(Ty::Unknown),
    }
}

/// What objects inherit in JavaScript.
const INHERITED: &[&str] = &[
    "constructor",
    "hasOwnProperty",
    "isPrototypeOf",
    "propertyIsEnumerable",
    "toLocaleString",
    "toString",
    "valueOf",
];

/// Words of JSON Schema's own that say nothing about what a pointer means.
const STRUCTURE: &[&str] = &[
    "",
    "#",
    "$defs",
    "definitions",
    "properties",
    "items",
    "prefixItems",
    "additionalProperties",
    "anyOf",
    "oneOf",
    "allOf",
    "patternProperties",
    "schemas",
    "components",
    "additionalItems",
];

/// A type's name from how a reference is spelled: its last telling part, in Pascal case.
fn type_name(spelled: &str) -> String {
    let telling = spelled
        .rsplit(['/', '#'])
        .find(|part| !STRUCTURE.contains(part) && !part.bytes().all(|b| b.is_ascii_digit()));
    let part = telling.unwrap_or_default().replace("~1", "/").replace("~0", "~");
    pascal(part.strip_suffix(".json").unwrap_or(&part))
}

/// `tree_node` → `TreeNode`; never empty, never a word that a type must not be called.
pub fn pascal(text: &str) -> String {
    let mut out = String::new();
    for word in text.split(|c: char| !c.is_alphanumeric() && c != '$').filter(|w| !w.is_empty()) {
        let mut chars = word.chars();
        out.extend(chars.next().into_iter().flat_map(char::to_uppercase));
        out.push_str(chars.as_str());
    }
    let mut out = if out.is_empty() { "Type".to_owned() } else { names::member(&out) };
    if RESERVED_TYPES.binary_search(&out.as_str()).is_ok() {
        out.push('_');
    }
    out
}

/// Names that the declarations use themselves, which a type inside must not hide; sorted.
const RESERVED_TYPES: &[&str] = &[
    "Array",
    "CallOptions",
    "OptionalTool",
    "Promise",
    "Record",
    "Tool",
    "ToolError",
    "ToolPromise",
    "ToolResult",
    "Tools",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_types_come_from_references() {
        assert!(RESERVED_TYPES.is_sorted());
        for (spelled, name) in [
            ("#/$defs/tree_node", "TreeNode"),
            ("#/definitions/Foo[int]", "FooInt"),
            ("#/properties/node/items", "Node"),
            ("#/properties/list/items/anyOf/0", "List"),
            ("#anchor", "Anchor"),
            ("https://example.com/user.json", "User"),
            ("#/$defs/__schema0", "Schema0"),
            ("#/$defs/1st", "_1st"),
            ("#/$defs/größe", "Größe"),
            ("#/$defs/promise", "Promise_"),
            ("#/$defs/a~1b", "AB"),
            ("#", "Type"),
            ("#/$defs/😀", "Type"),
        ] {
            assert_eq!(type_name(spelled), name, "{spelled}");
        }
    }
}
