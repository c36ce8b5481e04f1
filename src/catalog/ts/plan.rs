//! Decides, before a schema is converted, which of the schemas that references
//! point at become named types: those that contain themselves, and those that are
//! used more than once. The rest are written where they are used.

use crate::catalog::refs::Refs;
use serde_json::Value;
use std::collections::HashMap;

/// How deep one schema's own nesting is walked; more cannot be read from the wire.
const NESTING: usize = 140;

/// The address of a schema inside its document: the key by which it is known. Used
/// for look-ups only, never for an order, so that the same text always comes out.
pub type Address = *const Value;

/// What is known about a schema that a reference points at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Target {
    /// It gets a name.
    pub named: bool,
    /// Schemas with the same number contain each other with nothing between that
    /// TypeScript could defer (no property, no array): `A = B | string, B = A`.
    pub knot: Option<usize>,
}

/// The targets of one document's references.
#[derive(Debug, Default)]
pub struct Plan {
    targets: HashMap<Address, Target>,
    spelled: HashMap<Address, String>,
}

impl Plan {
    /// Looks through a document from its root, along the references.
    pub fn of<'a>(refs: &Refs<'a>) -> Plan {
        let mut nodes: Vec<&'a Value> = vec![refs.root()];
        let mut index: HashMap<Address, usize> = HashMap::from([(refs.root() as Address, 0)]);
        let mut uses: Vec<usize> = vec![0];
        let mut spelled: HashMap<Address, String> = HashMap::new();
        let (mut edges, mut bare_edges): (Vec<Vec<usize>>, Vec<Vec<usize>>) = (Vec::new(), Vec::new());
        let mut at = 0;
        while at < nodes.len() {
            let (mut all, mut bare) = (Vec::new(), Vec::new());
            let mut found = Vec::new();
            walk(nodes[at], refs, true, NESTING, &mut |found_one| found.push(found_one));
            for Found { target, text, unguarded } in found {
                spelled.entry(target as Address).or_insert_with(|| text.to_owned());
                let i = *index.entry(target as Address).or_insert_with(|| {
                    nodes.push(target);
                    uses.push(0);
                    nodes.len() - 1
                });
                uses[i] += 1;
                all.push(i);
                if unguarded {
                    bare.push(i);
                }
            }
            edges.push(all);
            bare_edges.push(bare);
            at += 1;
        }
        let (cycles, knots) = (components(&edges), components(&bare_edges));
        let targets = nodes.iter().enumerate().map(|(i, node)| {
            let named = cycles[i].is_some() || uses[i] > 1 && is_large(node);
            (*node as Address, Target { named, knot: knots[i] })
        });
        Plan { targets: targets.collect(), spelled }
    }

    /// How a reference to this schema is written, the first one found; a name may be made of it.
    pub fn spelling(&self, schema: Address) -> &str {
        self.spelled.get(&schema).map_or("#", String::as_str)
    }

    /// What is known of the schema at this address; nothing special when no reference points at it.
    pub fn target(&self, schema: Address) -> Target {
        self.targets.get(&schema).copied().unwrap_or_default()
    }
}

/// Worth a name when used twice: more than a word.
fn is_large(schema: &Value) -> bool {
    let Some(map) = schema.as_object() else { return false };
    let structure =
        ["properties", "items", "prefixItems", "anyOf", "oneOf", "allOf", "enum", "patternProperties"];
    structure.iter().any(|k| map.contains_key(*k))
        || map.get("additionalProperties").is_some_and(Value::is_object)
}

/// A reference inside a schema: what it points at, how it is written, and whether
/// nothing that defers stands between the schema and it.
struct Found<'a> {
    target: &'a Value,
    text: &'a str,
    unguarded: bool,
}

/// Calls `found` for each reference inside the schema.
fn walk<'a>(
    schema: &'a Value,
    refs: &Refs<'a>,
    unguarded: bool,
    depth: usize,
    found: &mut dyn FnMut(Found<'a>),
) {
    let Some(map) = schema.as_object() else { return };
    if depth == 0 {
        return;
    }
    for key in REFERENCES {
        let Some(text) = map.get(*key).and_then(Value::as_str) else { continue };
        if let Some(target) = refs.find(text) {
            found(Found { target, text, unguarded });
        }
    }
    for (key, value) in map {
        let unguarded = match key.as_str() {
            "anyOf" | "oneOf" | "allOf" => unguarded,
            "properties"
            | "patternProperties"
            | "additionalProperties"
            | "items"
            | "prefixItems"
            | "additionalItems" => false,
            _ => continue,
        };
        match value {
            Value::Array(list) => {
                list.iter().for_each(|v| walk(v, refs, unguarded, depth - 1, found));
            }
            Value::Object(inner) if matches!(key.as_str(), "properties" | "patternProperties") => {
                inner.values().for_each(|v| walk(v, refs, unguarded, depth - 1, found));
            }
            _ => walk(value, refs, unguarded, depth - 1, found),
        }
    }
}

/// The keywords that hold a reference to another schema.
pub const REFERENCES: &[&str] = &["$ref", "$dynamicRef", "$recursiveRef"];

/// For each node the number of the cycle it is part of (Tarjan's strongly connected
/// components, with a stack of its own since chains of references may be long); `None` outside cycles.
fn components(edges: &[Vec<usize>]) -> Vec<Option<usize>> {
    const NEW: usize = usize::MAX;
    let n = edges.len();
    let (mut order, mut low) = (vec![NEW; n], vec![0; n]);
    let (mut open, mut stack) = (vec![false; n], Vec::new());
    let mut out = vec![None; n];
    let (mut clock, mut number) = (0, 0);
    for start in 0..n {
        if order[start] != NEW {
            continue;
        }
        let mut path: Vec<(usize, usize)> = vec![(start, 0)];
        while let Some((node, next)) = path.last_mut() {
            let v = *node;
            if *next == 0 {
                order[v] = clock;
                low[v] = clock;
                clock += 1;
                stack.push(v);
                open[v] = true;
            }
            if let Some(&w) = edges[v].get(*next) {
                *next += 1;
                if order[w] == NEW {
                    path.push((w, 0));
                } else if open[w] {
                    low[v] = low[v].min(order[w]);
                }
                continue;
            }
            path.pop();
            if let Some((up, _)) = path.last() {
                low[*up] = low[*up].min(low[v]);
            }
            if low[v] == order[v] {
                let from = stack.iter().rposition(|w| *w == v).unwrap_or(0);
                let members = stack.split_off(from);
                let cyclic = members.len() > 1 || edges[v].contains(&v);
                for w in members {
                    open[w] = false;
                    out[w] = cyclic.then_some(number);
                }
                number += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn cycles_are_found() {
        assert_eq!(
            components(&[vec![1], vec![2], vec![1]]).iter().map(Option::is_some).collect::<Vec<_>>(),
            [false, true, true]
        );
        assert_eq!(
            components(&[vec![0], vec![]]).iter().map(Option::is_some).collect::<Vec<_>>(),
            [true, false]
        );
        let two = components(&[vec![1], vec![0], vec![3, 0], vec![2]]);
        assert!(two[0] == two[1] && two[2] == two[3] && two[0] != two[2]);
    }

    #[test]
    fn what_recurs_or_is_used_twice_is_named() {
        let doc = json!({
            "properties": {
                "a": {"$ref": "#/$defs/once"}, "b": {"$ref": "#/$defs/twice"}, "c": {"$ref": "#/$defs/twice"},
                "d": {"$ref": "#/$defs/tree"}, "e": {"$ref": "#/$defs/word"}, "f": {"$ref": "#/$defs/word"},
                "g": {"$ref": "#/$defs/knot"},
            },
            "$defs": {
                "once": {"properties": {"x": {}}}, "twice": {"properties": {"x": {}}}, "word": {"type": "string"},
                "tree": {"properties": {"kids": {"items": {"$ref": "#/$defs/tree"}}}},
                "knot": {"anyOf": [{"$ref": "#/$defs/knot"}, {"type": "string"}]},
            },
        });
        let plan = Plan::of(&Refs::new(&doc));
        let target = |name: &str| plan.target(&doc["$defs"][name] as Address);
        assert!(!target("once").named && target("twice").named && !target("word").named);
        assert!(target("tree").named && target("tree").knot.is_none());
        assert!(target("knot").named && target("knot").knot.is_some());
    }

    #[test]
    fn a_long_chain_of_references_needs_no_stack() {
        let n = 20_000;
        let mut defs = serde_json::Map::new();
        for i in 0..n {
            defs.insert(
                format!("d{i}"),
                json!({"properties": {"x": {"$ref": format!("#/$defs/d{}", (i + 1) % n)}}}),
            );
        }
        let doc = json!({"$ref": "#/$defs/d0", "$defs": defs});
        assert!(Plan::of(&Refs::new(&doc)).target(&doc["$defs"]["d7"] as Address).named);
    }
}
