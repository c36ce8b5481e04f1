//! TypeScript types as values, and the rules by which unions and intersections of
//! them are made simple. Knows nothing of JSON Schema.

use super::text;

/// A type.
#[derive(Clone, Debug, PartialEq)]
pub enum Ty {
    /// A place that a definition would fill with itself (`A = A | string`); unions
    /// and intersections leave it out, and alone it says nothing.
    Hole,
    /// Anything, unchecked.
    Any,
    /// Anything.
    Unknown,
    /// Anything, and why it is not known better.
    Why(String),
    /// Nothing.
    Never,
    /// `undefined`, only in index signatures.
    Undefined,
    /// `null`.
    Null,
    /// `boolean`.
    Boolean,
    /// `number`.
    Number,
    /// `string`.
    String,
    /// A literal, as TypeScript writes it.
    Literal(String),
    /// A named type.
    Ref(String),
    /// An array.
    Array(Box<Ty>),
    /// A tuple: members with whether they may be missing, and what follows them.
    Tuple(Vec<(Ty, bool)>, Option<Box<Ty>>),
    /// An object.
    Object(Object),
    /// One of these.
    Union(Vec<Ty>),
    /// All of these.
    Intersection(Vec<Ty>),
}

/// An object's properties, and the type of all others where there may be others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object {
    /// In the schema's order.
    pub props: Vec<Prop>,
    /// The index signature; its type admits every property's.
    pub index: Option<Box<Ty>>,
}

/// A property.
#[derive(Clone, Debug, PartialEq)]
pub struct Prop {
    /// The exact name.
    pub name: String,
    /// It may be missing.
    pub optional: bool,
    /// Its type.
    pub ty: Ty,
    /// What is said about it, one line, safe in a comment; may be empty.
    pub doc: String,
}

impl Ty {
    /// An object of which nothing is known.
    pub fn open() -> Ty {
        Ty::Object(Object { props: Vec::new(), index: Some(Box::new(Ty::Unknown)) })
    }

    /// Nothing is said by it.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Ty::Unknown | Ty::Any | Ty::Why(_))
    }

    /// Whether a named type occurs in it.
    pub fn has_ref(&self) -> bool {
        let mut found = false;
        self.visit(&mut |t| found |= matches!(t, Ty::Ref(_)));
        found
    }

    /// Calls `f` for this type and every type in it.
    pub fn visit<'t>(&'t self, f: &mut dyn FnMut(&'t Ty)) {
        f(self);
        match self {
            Ty::Array(t) => t.visit(f),
            Ty::Tuple(members, rest) => {
                members.iter().for_each(|(t, _)| t.visit(f));
                rest.iter().for_each(|t| t.visit(f));
            }
            Ty::Object(o) => {
                o.props.iter().for_each(|p| p.ty.visit(f));
                o.index.iter().for_each(|t| t.visit(f));
            }
            Ty::Union(list) | Ty::Intersection(list) => list.iter().for_each(|t| t.visit(f)),
            _ => {}
        }
    }

    /// Calls `f` for every type in it, the inner ones first, then for itself.
    pub fn visit_mut(&mut self, f: &mut dyn FnMut(&mut Ty)) {
        match self {
            Ty::Array(t) => t.visit_mut(f),
            Ty::Tuple(members, rest) => {
                members.iter_mut().for_each(|(t, _)| t.visit_mut(f));
                rest.iter_mut().for_each(|t| t.visit_mut(f));
            }
            Ty::Object(o) => {
                o.props.iter_mut().for_each(|p| p.ty.visit_mut(f));
                o.index.iter_mut().for_each(|t| t.visit_mut(f));
            }
            Ty::Union(list) | Ty::Intersection(list) => list.iter_mut().for_each(|t| t.visit_mut(f)),
            _ => {}
        }
        f(self);
    }

    /// The primitive types that cover it, as bits; `None` when it is more than primitives.
    fn kinds(&self) -> Option<u8> {
        match self {
            Ty::Null => Some(1),
            Ty::Boolean => Some(2),
            Ty::Number => Some(4),
            Ty::String => Some(8),
            Ty::Literal(text) => Some(match text.as_bytes().first() {
                Some(b'"') => 8,
                Some(b't' | b'f') => 2,
                _ => 4,
            }),
            Ty::Union(list) => list.iter().try_fold(0, |bits, t| Some(bits | t.kinds()?)),
            _ => None,
        }
    }

    /// Made of whole primitive types, without literals.
    fn is_plain_primitive(&self) -> bool {
        match self {
            Ty::Null | Ty::Boolean | Ty::Number | Ty::String => true,
            Ty::Union(list) => list.iter().all(Ty::is_plain_primitive),
            _ => false,
        }
    }
}

/// The literal of a JSON value that has one: a string, a number, a boolean, null.
pub fn literal(value: &serde_json::Value) -> Option<Ty> {
    use serde_json::Value;
    Some(match value {
        Value::Null => Ty::Null,
        Value::Bool(b) => Ty::Literal(b.to_string()),
        Value::Number(n) => Ty::Literal(text::number(n)),
        Value::String(s) => Ty::Literal(text::literal(s)),
        _ => return None,
    })
}

/// The union of these types: flat, each once, in order of first appearance.
pub fn union(parts: Vec<Ty>) -> Ty {
    let mut seen = std::collections::HashSet::new();
    let mut list: Vec<Ty> = Vec::with_capacity(parts.len());
    let (mut holes, mut why) = (0, None);
    for part in parts {
        let members = match part {
            Ty::Union(members) => members,
            one => vec![one],
        };
        for t in members {
            match t {
                Ty::Hole => holes += 1,
                Ty::Never => {}
                Ty::Any | Ty::Unknown => return Ty::Unknown,
                Ty::Why(text) => why = why.or(Some(text)),
                // Enums can have tens of thousands of members; only the rest is compared one by one.
                Ty::Literal(text) => {
                    if seen.insert(text.clone()) {
                        list.push(Ty::Literal(text));
                    }
                }
                t if list.iter().filter(|l| !matches!(l, Ty::Literal(_))).any(|l| *l == t) => {}
                t => list.push(t),
            }
        }
    }
    if let Some(text) = why {
        return if list.is_empty() { Ty::Why(text) } else { Ty::Unknown };
    }
    if seen.contains("true") && seen.contains("false") && !list.contains(&Ty::Boolean) {
        let both = |t: &Ty| matches!(t, Ty::Literal(l) if l == "true" || l == "false");
        let at = list.iter().position(both).unwrap_or(0);
        list[at] = Ty::Boolean;
        list.retain(|t| !both(t));
    }
    match list.len() {
        0 if holes > 0 => Ty::Hole,
        0 => Ty::Never,
        1 => list.remove(0),
        _ => Ty::Union(list),
    }
}

/// The intersection of these types: flat, each once, plain objects merged into one.
pub fn intersection(parts: Vec<Ty>) -> Ty {
    let mut list: Vec<Ty> = Vec::with_capacity(parts.len());
    let (mut holes, mut why) = (0, None);
    for part in parts {
        let members = match part {
            Ty::Intersection(members) => members,
            one => vec![one],
        };
        for t in members {
            match t {
                Ty::Hole => holes += 1,
                Ty::Never => return Ty::Never,
                Ty::Any | Ty::Unknown => {}
                Ty::Why(text) => why = why.or(Some(text)),
                t if list.contains(&t) => {}
                t => list.push(t),
            }
        }
    }
    // `string & ("a" | "b")` is `"a" | "b"`.
    let mut i = 0;
    while i < list.len() {
        let covered = list[i].is_plain_primitive()
            && list.iter().enumerate().any(|(j, other)| {
                let within = |a: u8, b: u8| a & !b == 0;
                j != i && matches!((other.kinds(), list[i].kinds()), (Some(a), Some(b)) if within(a, b))
            });
        if covered {
            list.remove(i);
        } else {
            i += 1;
        }
    }
    // "An object" adds nothing to what is known to be one.
    let open = Ty::open();
    if list.len() > 1 && list.iter().any(|t| *t != open && t.kinds().is_none()) {
        list.retain(|t| *t != open);
    }
    let mut merged: Vec<Ty> = Vec::with_capacity(list.len());
    for t in list {
        match (merged.iter().position(mergeable), t) {
            (Some(at), Ty::Object(more)) if is_mergeable(&more) => {
                if let Ty::Object(object) = &mut merged[at] {
                    merge(object, more);
                }
            }
            (_, t) => merged.push(t),
        }
    }
    match merged.len() {
        0 if why.is_some() => Ty::Why(why.unwrap_or_default()),
        0 if holes > 0 => Ty::Hole,
        0 => Ty::Unknown,
        1 => merged.remove(0),
        _ => Ty::Intersection(merged),
    }
}

fn mergeable(t: &Ty) -> bool {
    matches!(t, Ty::Object(o) if is_mergeable(o))
}

fn is_mergeable(object: &Object) -> bool {
    object.index.as_deref().is_none_or(|t| *t == Ty::Unknown)
}

/// Adds the properties of `more`; one that both have must satisfy both.
fn merge(object: &mut Object, more: Object) {
    let at: std::collections::HashMap<String, usize> =
        object.props.iter().enumerate().map(|(i, p)| (p.name.clone(), i)).collect();
    for prop in more.props {
        let Some(&i) = at.get(&prop.name) else {
            object.props.push(prop);
            continue;
        };
        let mine = &mut object.props[i];
        mine.optional &= prop.optional;
        mine.ty = intersection(vec![std::mem::replace(&mut mine.ty, Ty::Unknown), prop.ty]);
        if mine.doc.is_empty() {
            mine.doc = prop.doc;
        }
    }
    object.index = object.index.take().or(more.index);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lit(text: &str) -> Ty {
        Ty::Literal(text.to_owned())
    }
    fn object(names: &[&str], index: Option<Ty>) -> Ty {
        let prop =
            |n: &&str| Prop { name: n.to_string(), optional: false, ty: Ty::String, doc: String::new() };
        Ty::Object(Object { props: names.iter().map(prop).collect(), index: index.map(Box::new) })
    }

    #[test]
    fn unions_are_flat_and_without_repetition() {
        assert_eq!(union(vec![]), Ty::Never);
        assert_eq!(union(vec![Ty::String, Ty::Never, Ty::String]), Ty::String);
        assert_eq!(
            union(vec![Ty::Union(vec![Ty::Null, lit("1")]), lit("1"), Ty::Null]),
            Ty::Union(vec![Ty::Null, lit("1")])
        );
        assert_eq!(union(vec![Ty::String, Ty::Unknown]), Ty::Unknown);
        assert_eq!(union(vec![lit("true"), Ty::Null, lit("false")]), Ty::Union(vec![Ty::Boolean, Ty::Null]));
        assert_eq!(union(vec![Ty::Hole, Ty::String]), Ty::String);
        assert_eq!(union(vec![Ty::Hole]), Ty::Hole);
        assert_eq!(union(vec![Ty::Why("x".into())]), Ty::Why("x".into()));
    }

    #[test]
    fn intersections_merge_objects_and_drop_what_is_covered() {
        assert_eq!(intersection(vec![]), Ty::Unknown);
        assert_eq!(intersection(vec![Ty::String, Ty::Unknown]), Ty::String);
        assert_eq!(intersection(vec![Ty::String, lit("\"a\"")]), lit("\"a\""));
        assert_eq!(intersection(vec![Ty::String, Ty::Never]), Ty::Never);
        assert_eq!(
            intersection(vec![object(&["a"], None), object(&["a", "b"], None)]),
            object(&["a", "b"], None)
        );
        assert_eq!(intersection(vec![Ty::open(), Ty::Ref("A".into())]), Ty::Ref("A".into()));
        assert_eq!(
            intersection(vec![Ty::open(), Ty::String]),
            Ty::Intersection(vec![Ty::open(), Ty::String])
        );
        let typed = object(&["b"], Some(Ty::Number));
        assert_eq!(
            intersection(vec![object(&["a"], None), typed.clone()]),
            Ty::Intersection(vec![object(&["a"], None), typed])
        );
    }
}
