//! All tools of a namespace, converted: what each takes and gives, and the named
//! types that they share. Makes names of types unique across tools.

use super::convert::{Converted, Def, convert, pascal};
use super::text;
use super::ty::{Ty, union};
use crate::catalog::{ServerSchema, Tool, names};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// How many differing types of one name are compared with a new one before it
/// simply gets a number of its own.
const COMPARED: usize = 8;

/// What a tool takes.
#[derive(Clone, Debug, PartialEq)]
pub enum Args {
    /// Nothing.
    None,
    /// An object that may be left out.
    Optional(Ty),
    /// An object.
    Required(Ty),
}

/// A tool in TypeScript's terms.
#[derive(Clone, Debug)]
pub struct Call {
    /// The exact name.
    pub name: String,
    /// The property it is called by.
    pub member: String,
    /// What it takes.
    pub args: Args,
    /// What it gives; [`Ty::Any`] where the server does not say (text arrives as
    /// text, text that is JSON arrives parsed: which of them is not known before).
    pub result: Ty,
    /// The lines of its description, safe in a comment.
    pub doc: Vec<String>,
}

/// A namespace in TypeScript's terms.
#[derive(Clone, Debug)]
pub struct Space {
    /// The named types.
    pub defs: Vec<Def>,
    /// The tools, each exact name once, in the server's order.
    pub calls: Vec<Call>,
}

/// One tool alone, with its named types.
pub fn call(tool: &Tool, member: &str) -> (Call, Vec<Def>) {
    let mut all = Defs::default();
    let call = call_in(tool, member, &mut all);
    (call, all.list)
}

/// All tools of a server.
pub fn space(schema: &ServerSchema) -> Space {
    let mut seen = HashSet::new();
    let tools: Vec<&Tool> = schema.tools.iter().filter(|t| seen.insert(t.name.as_str())).collect();
    let members = names::unique_members(tools.iter().map(|t| t.name.as_str()));
    let mut all = Defs::default();
    let calls = tools.iter().zip(&members).map(|(tool, member)| call_in(tool, member, &mut all)).collect();
    Space { defs: all.list, calls }
}

fn call_in(tool: &Tool, member: &str, all: &mut Defs) -> Call {
    let name = pascal(&tool.name);
    let args = all.adopt(convert(&tool.input_schema, &format!("{name}Args")));
    let args = arguments(args, &tool.input_schema, all);
    let result = match &tool.output_schema {
        Some(schema @ Value::Object(_)) => all.adopt(convert(schema, &format!("{name}Result"))),
        _ => Ty::Any,
    };
    Call { name: tool.name.clone(), member: member.to_owned(), args, result, doc: description(tool, member) }
}

/// Arguments are an object, whatever the schema says.
fn arguments(ty: Ty, schema: &Value, all: &Defs) -> Args {
    let ty = match ty {
        Ty::Union(list) => union(list.into_iter().filter(may_be_object).collect()),
        ty if may_be_object(&ty) => ty,
        _ => Ty::Unknown,
    };
    let declares_none = || {
        let none = schema.get("properties").and_then(Value::as_object).is_some_and(serde_json::Map::is_empty);
        none && schema.get("additionalProperties").is_none()
    };
    match &ty {
        Ty::Never => return Args::None,
        Ty::Object(o) if o.props.is_empty() => {
            let closed = o.index.as_deref().is_none_or(|t| *t == Ty::Never);
            if closed || declares_none() {
                return Args::None;
            }
        }
        _ => {}
    }
    let ty = if ty.is_unknown() { Ty::open() } else { ty };
    if all.admits_empty(&ty, 16) { Args::Optional(ty) } else { Args::Required(ty) }
}

fn may_be_object(ty: &Ty) -> bool {
    !matches!(
        ty,
        Ty::Null
            | Ty::Boolean
            | Ty::Number
            | Ty::String
            | Ty::Literal(_)
            | Ty::Array(_)
            | Ty::Tuple(..)
            | Ty::Undefined
    )
}

fn description(tool: &Tool, member: &str) -> Vec<String> {
    let words = tool.description.as_deref().filter(|d| !d.trim().is_empty()).or(tool.title.as_deref());
    let mut lines = text::comment_lines(words.unwrap_or_default());
    let hint = |key: &str| tool.annotations.as_ref().and_then(|a| a.get(key)).and_then(Value::as_bool);
    let mut notes = Vec::new();
    if names::member(&tool.name) != member {
        notes.push(format!("exact name {}", text::comment(&text::literal(&tool.name))));
    }
    if hint("readOnlyHint") == Some(true) {
        notes.push("read-only".to_owned());
    } else if hint("destructiveHint") == Some(true) {
        notes.push("destructive".to_owned());
    }
    if !notes.is_empty() {
        let note = format!("({})", notes.join(", "));
        match lines.as_mut_slice() {
            [only] => only.push_str(&format!(" {note}")),
            _ => lines.push(note),
        }
    }
    lines
}

/// The named types of a namespace, as they come in tool by tool.
#[derive(Default)]
struct Defs {
    list: Vec<Def>,
    by_name: HashMap<String, usize>,
    serials: HashMap<String, usize>,
}

impl Defs {
    /// Takes over the named types of a document, under names that nothing else has
    /// here, or under those of equal types; gives the document's own type under these names.
    fn adopt(&mut self, document: Converted) -> Ty {
        let Converted { mut ty, defs } = document;
        if defs.is_empty() {
            return ty;
        }
        let mut names: HashMap<String, String> =
            defs.iter().map(|d| (d.name.clone(), d.name.clone())).collect();
        let mut tried: HashMap<&str, usize> = HashMap::new();
        let bodies = loop {
            let bodies: Vec<Ty> = defs.iter().map(|d| renamed(d.ty.clone(), &names)).collect();
            let other = |d: &Def, body: &Ty| {
                let known = self.by_name.get(&names[&d.name]).map(|i| &self.list[*i]);
                known.is_some_and(|k| k.ty != *body || k.doc != d.doc)
            };
            let conflicts: Vec<&Def> =
                defs.iter().zip(&bodies).filter(|(d, b)| other(d, b)).map(|(d, _)| d).collect();
            if conflicts.is_empty() {
                break bodies;
            }
            for def in conflicts {
                let tries = tried.entry(&def.name).or_insert(1);
                let fresh = loop {
                    *tries += 1;
                    let candidate = if *tries <= COMPARED {
                        format!("{}_{tries}", def.name)
                    } else {
                        let serial = self.serials.entry(def.name.clone()).or_insert(COMPARED);
                        *serial += 1;
                        format!("{}_{serial}", def.name)
                    };
                    if !names.values().any(|n| *n == candidate) {
                        break candidate;
                    }
                };
                names.insert(def.name.clone(), fresh);
            }
        };
        for (def, body) in defs.iter().zip(bodies) {
            let name = names[&def.name].clone();
            if !self.by_name.contains_key(&name) {
                self.by_name.insert(name.clone(), self.list.len());
                self.list.push(Def { name, ty: body, doc: def.doc.clone() });
            }
        }
        ty = renamed(ty, &names);
        ty
    }

    /// Whether an object without any property is of this type.
    fn admits_empty(&self, ty: &Ty, depth: usize) -> bool {
        if depth == 0 {
            return false;
        }
        match ty {
            Ty::Object(o) => o.props.iter().all(|p| p.optional),
            Ty::Union(list) => list.iter().any(|t| self.admits_empty(t, depth - 1)),
            Ty::Intersection(list) => list.iter().all(|t| self.admits_empty(t, depth - 1)),
            Ty::Ref(name) => {
                self.by_name.get(name).is_some_and(|i| self.admits_empty(&self.list[*i].ty, depth - 1))
            }
            other => other.is_unknown(),
        }
    }
}

fn renamed(mut ty: Ty, names: &HashMap<String, String>) -> Ty {
    ty.visit_mut(&mut |t| {
        if let Ty::Ref(name) = t
            && let Some(new) = names.get(name)
        {
            name.clone_from(new);
        }
    });
    ty
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool(name: &str, schema: Value) -> Tool {
        Tool { input_schema: schema, ..Tool::named(name) }
    }
    fn args(schema: Value) -> Args {
        call(&tool("t", schema), "t").0.args
    }

    #[test]
    fn arguments_are_objects_and_may_be_left_out_when_nothing_is_required() {
        for none in [
            json!({"type": "object", "properties": {}}),
            json!({"type": "object", "additionalProperties": false}),
            json!({"properties": {}, "additionalProperties": false}),
            json!(false),
        ] {
            assert_eq!(args(none.clone()), Args::None, "{none}");
        }
        for open in [json!({}), json!({"type": "object"}), json!(null), json!({"type": "string"}), json!(7)] {
            assert_eq!(args(open.clone()), Args::Optional(Ty::open()), "{open}");
        }
        let a = json!({"properties": {"a": {"type": "string"}}});
        assert!(matches!(args(a.clone()), Args::Optional(_)));
        let mut b = a.clone();
        b["required"] = json!(["a"]);
        assert!(matches!(args(b.clone()), Args::Required(_)));
        assert!(matches!(args(json!({"anyOf": [a, b, {"type": "null"}]})), Args::Optional(_)));
        let looping = json!({"properties": {"kids": {"items": {"$ref": "#"}}}});
        assert_eq!(args(looping), Args::Optional(Ty::Ref("TArgs".into())));
    }

    #[test]
    fn equal_types_are_shared_and_others_are_told_apart() {
        let list = |what: &str| {
            json!({"properties": {"x": {"$ref": "#/$defs/Node"}}, "$defs": {
            "Node": {"properties": {what: {"type": "string"}, "leaf": {"$ref": "#/$defs/Leaf"}, "next": {"$ref": "#/$defs/Node"}}},
            "Leaf": {"properties": {"node": {"$ref": "#/$defs/Node"}}}}})
        };
        let schema = ServerSchema {
            ttl_ms: None,
            private: false,
            server: "s".into(),
            digest: "d".into(),
            fetched_at: 0,
            protocol: String::new(),
            server_info: None,
            capabilities: None,
            instructions: None,
            tools: vec![
                tool("a", list("p")),
                tool("b", list("q")),
                tool("c", list("p")),
                tool("a", list("r")),
            ],
        };
        let space = space(&schema);
        assert_eq!(space.calls.len(), 3, "a name that comes twice is declared once");
        let names: Vec<&str> = space.defs.iter().map(|d| d.name.as_str()).collect();
        assert_eq!(names, ["Node", "Leaf", "Node_2", "Leaf_2"]);
        let refers = |i: usize| {
            let Args::Optional(ty) = &space.calls[i].args else { panic!("required") };
            let mut found = String::new();
            ty.visit(&mut |t| {
                if let Ty::Ref(name) = t {
                    found.clone_from(name);
                }
            });
            found
        };
        assert_eq!((refers(0), refers(1), refers(2)), ("Node".into(), "Node_2".into(), "Node".into()));
    }

    #[test]
    fn what_a_caller_should_know_is_said() {
        let mut t = tool("get-x", json!({}));
        t.description = Some("Gets x. */".into());
        t.annotations = Some(json!({"readOnlyHint": true}));
        assert_eq!(call(&t, "get_x_2").0.doc, ["Gets x. *\\/ (exact name \"get-x\", read-only)"]);
    }
}
