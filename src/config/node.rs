//! A parsed document: values that know their line. Converts to plain JSON.

use crate::settings::{self, At, Lines};
use serde_json::{Number, Value};
use std::borrow::Cow;

/// A document, the lines of its values, and what is odd about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The value.
    pub value: Value,
    /// The line of each value, in a tree of the same shape.
    pub lines: Lines,
    /// Keys that an object has twice (the last one counts): the key, and its second place.
    pub duplicates: Vec<(String, At)>,
}

/// A document as it was parsed. Texts are borrowed from the source where they can be.
pub(super) struct Tree<'a> {
    /// The value.
    pub root: Node<'a>,
    /// See [`Document::duplicates`].
    pub duplicates: Vec<(String, At)>,
}

/// A value, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node<'a> {
    /// The value.
    pub item: Item<'a>,
    /// Where its key is, or the value itself where it has none.
    pub at: At,
}

/// What a [`Node`] holds.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Item<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A text.
    Text(Cow<'a, str>),
    /// A list.
    List(Vec<Node<'a>>),
    /// An object, in its order; no key is there twice.
    Object(Vec<(Cow<'a, str>, Node<'a>)>),
}

impl Node<'_> {
    /// The value without its lines.
    pub fn to_value(&self) -> Value {
        match &self.item {
            Item::Null => Value::Null,
            Item::Bool(b) => Value::Bool(*b),
            Item::Number(n) => Value::Number(n.clone()),
            Item::Text(t) => Value::String(t.as_ref().to_owned()),
            Item::List(list) => Value::Array(list.iter().map(Node::to_value).collect()),
            Item::Object(members) => {
                Value::Object(members.iter().map(|(k, v)| (k.as_ref().to_owned(), v.to_value())).collect())
            }
        }
    }
    /// The lines without the value.
    pub fn lines(&self) -> Lines {
        let children = match &self.item {
            Item::List(list) => list.iter().map(Node::lines).collect(),
            Item::Object(members) => members.iter().map(|(_, v)| v.lines()).collect(),
            _ => Vec::new(),
        };
        Lines { at: self.at, children }
    }
    /// What it is, in words: `a list`, `a number`.
    pub fn shape(&self) -> &'static str {
        settings::shape(&match &self.item {
            Item::Text(_) => Value::String(String::new()),
            Item::List(_) => Value::Array(Vec::new()),
            Item::Object(_) => Value::Object(serde_json::Map::new()),
            _ => self.to_value(),
        })
    }
}
