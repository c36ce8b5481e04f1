//! Types as text: on one line, or over several with what is said about them.

use super::text;
use super::ty::{Object, Prop, Ty};

/// An object type that would make a line longer than this is broken into lines.
const WIDTH: usize = 100;

/// How descriptions of properties appear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Docs {
    /// Not at all; everything is on one line.
    None,
    /// As `//` comments behind, or above, the property: fewest tokens.
    Line,
    /// As `/** */` comments above the property, which editors show.
    Block,
}

/// How types are written.
#[derive(Clone, Copy, Debug)]
pub struct Style<'s> {
    /// What stands before each named type, `demo.`.
    pub prefix: &'s str,
    /// How descriptions appear.
    pub docs: Docs,
}

/// How tightly a type must hold together where it stands.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Binding {
    Union,
    Intersection,
    Postfix,
}

impl Style<'_> {
    /// The type on one line, without descriptions.
    pub fn flat(&self, ty: &Ty) -> String {
        let mut out = String::new();
        self.flat_into(ty, Binding::Union, &mut out);
        out
    }

    /// The type as this style wants it, its first line continuing one that is
    /// indented by `indent` spaces.
    pub fn write(&self, ty: &Ty, indent: usize, out: &mut String) {
        self.write_bound(ty, Binding::Union, indent, out);
    }

    fn flat_into(&self, ty: &Ty, binding: Binding, out: &mut String) {
        match ty {
            Ty::Union(list) => self.flat_list(list, Binding::Union, binding, out),
            Ty::Intersection(list) => self.flat_list(list, Binding::Intersection, binding, out),
            Ty::Array(item) => {
                self.flat_into(item, Binding::Postfix, out);
                out.push_str("[]");
            }
            Ty::Tuple(members, rest) => {
                out.push('[');
                for (i, (member, optional)) in members.iter().enumerate() {
                    out.push_str(if i > 0 { ", " } else { "" });
                    self.flat_into(member, if *optional { Binding::Postfix } else { Binding::Union }, out);
                    out.push_str(if *optional { "?" } else { "" });
                }
                if let Some(rest) = rest {
                    out.push_str(if members.is_empty() { "..." } else { ", ..." });
                    self.flat_into(rest, Binding::Postfix, out);
                    out.push_str("[]");
                }
                out.push(']');
            }
            Ty::Object(object) => self.flat_object(object, out),
            _ => self.word_into(ty, out),
        }
    }

    fn word_into(&self, ty: &Ty, out: &mut String) {
        match ty {
            Ty::Any => out.push_str("any"),
            Ty::Why(why) => out.push_str(&format!("unknown /* {} */", text::comment(why))),
            Ty::Never => out.push_str("never"),
            Ty::Undefined => out.push_str("undefined"),
            Ty::Null => out.push_str("null"),
            Ty::Boolean => out.push_str("boolean"),
            Ty::Number => out.push_str("number"),
            Ty::String => out.push_str("string"),
            Ty::Literal(text) => out.push_str(text),
            Ty::Ref(name) => {
                out.push_str(self.prefix);
                out.push_str(name);
            }
            _ => out.push_str("unknown"),
        }
    }

    fn flat_list(&self, list: &[Ty], own: Binding, wanted: Binding, out: &mut String) {
        let parentheses = own < wanted;
        out.push_str(if parentheses { "(" } else { "" });
        for (i, t) in list.iter().enumerate() {
            if i > 0 {
                out.push_str(separator(own));
            }
            self.flat_into(t, next(own), out);
        }
        out.push_str(if parentheses { ")" } else { "" });
    }

    fn flat_object(&self, object: &Object, out: &mut String) {
        match (&object.index, object.props.as_slice()) {
            (None, []) => return out.push_str("{}"),
            // A type that names itself inside `Record<…>` is circular to TypeScript.
            (Some(index), []) if !index.has_ref() => {
                out.push_str("Record<string, ");
                self.flat_into(index, Binding::Union, out);
                return out.push('>');
            }
            _ => {}
        }
        out.push_str("{ ");
        for (i, prop) in object.props.iter().enumerate() {
            out.push_str(if i > 0 { "; " } else { "" });
            out.push_str(&key(prop));
            self.flat_into(&prop.ty, Binding::Union, out);
        }
        if let Some(index) = &object.index {
            out.push_str(if object.props.is_empty() { "" } else { "; " });
            out.push_str("[key: string]: ");
            self.flat_into(index, Binding::Union, out);
        }
        out.push_str(" }");
    }

    fn write_bound(&self, ty: &Ty, binding: Binding, indent: usize, out: &mut String) {
        if !self.wants_lines(ty, indent) {
            return self.flat_into(ty, binding, out);
        }
        match ty {
            Ty::Object(object) => self.write_object(object, indent, out),
            Ty::Array(item) => {
                self.write_bound(item, Binding::Postfix, indent, out);
                out.push_str("[]");
            }
            Ty::Union(list) => self.write_list(list, Binding::Union, binding, indent, out),
            Ty::Intersection(list) => self.write_list(list, Binding::Intersection, binding, indent, out),
            Ty::Tuple(members, rest) => {
                out.push('[');
                for (i, (member, optional)) in members.iter().enumerate() {
                    out.push_str(if i > 0 { ", " } else { "" });
                    let binding = if *optional { Binding::Postfix } else { Binding::Union };
                    self.write_bound(member, binding, indent, out);
                    out.push_str(if *optional { "?" } else { "" });
                }
                if let Some(rest) = rest {
                    out.push_str(if members.is_empty() { "..." } else { ", ..." });
                    self.write_bound(rest, Binding::Postfix, indent, out);
                    out.push_str("[]");
                }
                out.push(']');
            }
            _ => self.flat_into(ty, binding, out),
        }
    }

    fn write_list(&self, list: &[Ty], own: Binding, wanted: Binding, indent: usize, out: &mut String) {
        let parentheses = own < wanted;
        out.push_str(if parentheses { "(" } else { "" });
        for (i, t) in list.iter().enumerate() {
            if i > 0 {
                out.push_str(separator(own));
            }
            self.write_bound(t, next(own), indent, out);
        }
        out.push_str(if parentheses { ")" } else { "" });
    }

    fn write_object(&self, object: &Object, indent: usize, out: &mut String) {
        let inner = " ".repeat(indent + 2);
        out.push_str("{\n");
        for prop in &object.props {
            self.write_property(prop, indent + 2, &inner, out);
        }
        if let Some(index) = &object.index {
            out.push_str(&format!("{inner}[key: string]: "));
            self.write_bound(index, Binding::Union, indent + 2, out);
            out.push_str(";\n");
        }
        out.push_str(&" ".repeat(indent));
        out.push('}');
    }

    fn write_property(&self, prop: &Prop, indent: usize, inner: &str, out: &mut String) {
        let lines = self.wants_lines(&prop.ty, indent);
        let doc = if self.docs == Docs::None { "" } else { prop.doc.as_str() };
        match self.docs {
            Docs::Block if !doc.is_empty() => out.push_str(&format!("{inner}/** {doc} */\n")),
            Docs::Line if !doc.is_empty() && lines => out.push_str(&format!("{inner}// {doc}\n")),
            _ => {}
        }
        out.push_str(inner);
        out.push_str(&key(prop));
        self.write_bound(&prop.ty, Binding::Union, indent, out);
        out.push(';');
        if self.docs == Docs::Line && !doc.is_empty() && !lines {
            out.push_str(&format!(" // {doc}"));
        }
        out.push('\n');
    }

    /// Whether the type is better written over several lines.
    fn wants_lines(&self, ty: &Ty, indent: usize) -> bool {
        if self.docs == Docs::None {
            return false;
        }
        let (mut documented, mut breakable) = (false, false);
        ty.visit(&mut |t| {
            if let Ty::Object(object) = t {
                breakable |= !object.props.is_empty();
                documented |= object.props.iter().any(|p| !p.doc.is_empty());
            }
        });
        documented || breakable && indent + self.flat(ty).chars().count() > WIDTH
    }
}

fn key(prop: &Prop) -> String {
    format!("{}{}: ", text::property(&prop.name), if prop.optional { "?" } else { "" })
}

fn separator(binding: Binding) -> &'static str {
    if binding == Binding::Union { " | " } else { " & " }
}

/// What the members of a list with this binding must have.
fn next(binding: Binding) -> Binding {
    if binding == Binding::Union { Binding::Intersection } else { Binding::Postfix }
}

#[cfg(test)]
mod tests {
    use super::super::convert::convert;
    use super::*;
    use serde_json::{Value, json};

    const FLAT: Style<'_> = Style { prefix: "", docs: Docs::None };

    fn flat(schema: Value) -> String {
        FLAT.flat(&convert(&schema, "Root").ty)
    }

    #[test]
    fn parentheses_stand_where_they_must() {
        for (schema, expected) in [
            (json!({"type": "array", "items": {"type": ["string", "null"]}}), "(string | null)[]"),
            (json!({"type": "array", "items": {"type": "array", "items": {"type": "number"}}}), "number[][]"),
            (json!({"type": "array", "items": {"enum": [-1, "a"]}}), "(-1 | \"a\")[]"),
            (
                json!({"prefixItems": [{"type": "string"}, {"type": ["string", "number"]}], "minItems": 1, "items": {"type": ["string", "null"]}}),
                "[string, (string | number)?, ...(string | null)[]]",
            ),
            (
                json!({"allOf": [{"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}], "additionalProperties": {"type": "string"}}),
                "Record<string, string> & ({ a: unknown } | { b: unknown })",
            ),
            (
                json!({"type": "array", "items": {"allOf": [{"type": "array"}, {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}]}}),
                "(unknown[] & ({ a: unknown } | { b: unknown }))[]",
            ),
        ] {
            assert_eq!(flat(schema.clone()), expected, "{schema}");
        }
    }

    #[test]
    fn long_and_documented_objects_take_several_lines() {
        let schema = json!({"type": "object", "required": ["a"], "properties": {
            "a": {"type": "string", "description": "First."},
            "b": {"type": "array", "items": {"type": "object", "properties": {"c": {"type": "number", "description": "In."}}}, "description": "Many."},
        }});
        let ty = convert(&schema, "Root").ty;
        let mut out = String::new();
        Style { prefix: "", docs: Docs::Line }.write(&ty, 0, &mut out);
        assert_eq!(out, "{\n  a: string; // First.\n  // Many.\n  b?: {\n    c?: number; // In.\n  }[];\n}");
        out.clear();
        Style { prefix: "", docs: Docs::Block }.write(&ty, 0, &mut out);
        assert!(out.starts_with("{\n  /** First. */\n  a: string;\n  /** Many. */\n  b?: {\n"), "{out}");
        assert_eq!(FLAT.flat(&ty), "{ a: string; b?: { c?: number }[] }");
    }
}
