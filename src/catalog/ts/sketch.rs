//! A tool on one line, for listings: what matters of its types, abbreviated where
//! they are long. Reads like TypeScript, and is not meant to be compiled.

use super::space::{Args, call};
use super::text;
use super::ty::{Object, Ty};
use crate::catalog::Tool;

/// How long a signature may become, in bytes; the rest of its properties are then `…`.
const LONGEST: usize = 240;

/// How many levels of objects are shown.
const LEVELS: usize = 2;

/// How many members of a union are shown.
const MEMBERS: usize = 6;

/// How a tool is called, on one line: `demo.add({ a: number; b: number }) -> { sum: number }`.
/// `ident` is the namespace's identifier, or empty for the tool alone; `member` is
/// the tool's own (see [`crate::catalog::names::unique_members`]). The result is
/// left out where the server does not describe it.
pub fn signature(tool: &Tool, ident: &str, member: &str) -> String {
    let (call, _) = call(tool, member);
    let mut out = String::new();
    if !ident.is_empty() {
        out.push_str(ident);
        out.push('.');
    }
    out.push_str(member);
    out.push('(');
    let budget = out.len() + LONGEST;
    match &call.args {
        Args::None => {}
        Args::Optional(Ty::Object(o)) if o.props.is_empty() => out.push_str("{…}?"),
        Args::Optional(ty @ Ty::Object(_)) => sketch(ty, LEVELS, budget, &mut out),
        Args::Optional(ty) => {
            sketch(ty, LEVELS, budget, &mut out);
            out.push('?');
        }
        Args::Required(ty) => sketch(ty, LEVELS, budget, &mut out),
    }
    out.push(')');
    if call.result != Ty::Any {
        out.push_str(" -> ");
        let budget = out.len() + LONGEST / 2;
        sketch(&call.result, LEVELS, budget, &mut out);
    }
    out
}

fn sketch(ty: &Ty, levels: usize, budget: usize, out: &mut String) {
    if out.len() > budget {
        return out.push('…');
    }
    match ty {
        Ty::Object(object) => sketch_object(object, levels, budget, out),
        Ty::Array(item) => {
            let parentheses = matches!(**item, Ty::Union(_) | Ty::Intersection(_));
            out.push_str(if parentheses { "(" } else { "" });
            sketch(item, levels, budget, out);
            out.push_str(if parentheses { ")[]" } else { "[]" });
        }
        Ty::Tuple(members, rest) => {
            out.push('[');
            for (i, (member, optional)) in members.iter().take(MEMBERS).enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                sketch(member, levels, budget, out);
                out.push_str(if *optional { "?" } else { "" });
            }
            out.push_str(if rest.is_some() || members.len() > MEMBERS { ", …]" } else { "]" });
        }
        Ty::Union(list) => {
            for (i, t) in list.iter().take(MEMBERS).enumerate() {
                out.push_str(if i > 0 { " | " } else { "" });
                sketch(t, levels, budget, out);
            }
            out.push_str(if list.len() > MEMBERS { " | …" } else { "" });
        }
        Ty::Intersection(list) => {
            for (i, t) in list.iter().take(MEMBERS).enumerate() {
                out.push_str(if i > 0 { " & " } else { "" });
                let parentheses = matches!(t, Ty::Union(_));
                out.push_str(if parentheses { "(" } else { "" });
                sketch(t, levels, budget, out);
                out.push_str(if parentheses { ")" } else { "" });
            }
        }
        Ty::Any => out.push_str("any"),
        Ty::Never => out.push_str("never"),
        Ty::Undefined => out.push_str("undefined"),
        Ty::Null => out.push_str("null"),
        Ty::Boolean => out.push_str("boolean"),
        Ty::Number => out.push_str("number"),
        Ty::String => out.push_str("string"),
        Ty::Literal(text) if text.chars().count() > 40 => {
            out.extend(text.chars().take(30));
            out.push_str("…\"");
        }
        Ty::Literal(text) => out.push_str(text),
        Ty::Ref(name) => out.push_str(name),
        Ty::Hole | Ty::Unknown | Ty::Why(_) => out.push_str("unknown"),
    }
}

fn sketch_object(object: &Object, levels: usize, budget: usize, out: &mut String) {
    if object.props.is_empty() {
        return match object.index.as_deref() {
            Some(Ty::Never) | None => out.push_str("{}"),
            Some(Ty::Unknown) => out.push_str("{…}"),
            Some(other) => {
                out.push_str("{ [key]: ");
                sketch(other, levels, budget, out);
                out.push_str(" }");
            }
        };
    }
    if levels == 0 {
        return out.push_str("{…}");
    }
    out.push_str("{ ");
    // What must be given comes first, so that it is seen even when the line is cut.
    let required = object.props.iter().filter(|p| !p.optional);
    let optional = object.props.iter().filter(|p| p.optional);
    for (i, prop) in required.chain(optional).enumerate() {
        out.push_str(if i > 0 { "; " } else { "" });
        if out.len() > budget {
            out.push('…');
            break;
        }
        out.push_str(&text::property(&prop.name));
        out.push_str(if prop.optional { "?: " } else { ": " });
        sketch(&prop.ty, levels - 1, budget, out);
    }
    out.push_str(" }");
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn sign(input: Value, output: Option<Value>) -> String {
        let tool = Tool { input_schema: input, output_schema: output, ..Tool::named("t-1") };
        signature(&tool, "demo", "t_1")
    }

    #[test]
    fn a_signature_is_short_and_tells_what_is_required() {
        let text = json!({"type": "string"});
        assert_eq!(sign(json!({"properties": {}}), None), "demo.t_1()");
        assert_eq!(sign(json!({}), None), "demo.t_1({…}?)");
        assert_eq!(
            sign(
                json!({"properties": {"a": text, "b-c": text}, "required": ["b-c"]}),
                Some(json!({"properties": {"n": {"type": "integer"}}, "required": ["n"]}))
            ),
            "demo.t_1({ \"b-c\": string; a?: string }) -> { n: number }"
        );
        assert_eq!(
            sign(json!({"properties": {"x": {"enum": [1, 2, 3, 4, 5, 6, 7]}}}), None),
            "demo.t_1({ x?: 1 | 2 | 3 | 4 | 5 | 6 | … })"
        );
        let many: serde_json::Map<String, Value> =
            (0..500).map(|i| (format!("property{i}"), text.clone())).collect();
        let long = sign(json!({"properties": many}), None);
        assert!(long.len() < 320 && long.ends_with("; … })"), "{long}");
        let tool = Tool::named("x");
        assert_eq!(signature(&tool, "", "x"), "x({…}?)");
    }
}
