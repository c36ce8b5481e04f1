//! Reads the values of a server's block, each with the place where it is.
//! Knows nothing of which member holds what.

use super::filter::{Pattern, Patterns};
use super::node::{Item, Node};
use crate::settings::At;

/// A text, and where it is.
#[derive(PartialEq)]
pub(super) struct Said<'a> {
    pub text: &'a str,
    pub at: At,
}

/// What is wrong with a block, and where.
pub(super) type Fault = (At, String);

/// A text.
pub(super) fn said<'a>(field: &str, node: &'a Node) -> Result<Said<'a>, Fault> {
    let at = node.at;
    match &node.item {
        Item::Text(text) if text.contains('\0') => {
            Err((at, format!("{field}: must not contain a NUL character")))
        }
        Item::Text(text) => Ok(Said { text, at }),
        Item::List(_) if field == "command" => {
            Err((at, "command: expected a text, got a list; put what follows into \"args\"".into()))
        }
        _ => Err((at, format!("{field}: expected a text, got {}", node.shape()))),
    }
}

/// `true` or `false`.
pub(super) fn flag(field: &str, node: &Node) -> Result<bool, Fault> {
    match node.item {
        Item::Bool(on) => Ok(on),
        _ => Err((node.at, format!("{field}: expected true or false, got {}", node.shape()))),
    }
}

/// A list of texts.
pub(super) fn texts<'a>(field: &str, node: &'a Node) -> Result<Vec<Said<'a>>, Fault> {
    let Item::List(list) = &node.item else {
        return Err((node.at, format!("{field}: expected a list, got {}", node.shape())));
    };
    let each = list.iter().enumerate();
    // The field is named again only where it is wrong: naming it costs, and few are.
    each.map(|(i, node)| said("", node).or_else(|_| said(&format!("{field}[{i}]"), node))).collect()
}

/// An object of texts.
pub(super) fn pairs<'a>(field: &str, node: &'a Node) -> Result<Vec<(&'a str, Said<'a>)>, Fault> {
    let Item::Object(members) = &node.item else {
        return Err((node.at, format!("{field}: expected an object, got {}", node.shape())));
    };
    let each = members.iter().map(|(key, node)| {
        if key.is_empty() || key.contains(['=', '\0']) {
            return Err((node.at, format!("{field}: \"{}\" cannot be a name", key.escape_debug())));
        }
        let said = said("", node).or_else(|_| said(&format!("{field}.{key}"), node))?;
        Ok((key.as_ref(), said))
    });
    each.collect()
}

/// Reads a list of patterns for tools.
pub(super) fn patterns(field: &str, node: &Node) -> Result<Patterns, Fault> {
    let each = texts(field, node)?.into_iter().enumerate().map(|(i, said)| {
        let fault = |what| (said.at, format!("{field}[{i}]: \"{}\" {what}", said.text));
        Pattern::new(said.text).map_err(fault)
    });
    Ok(Patterns { all: each.collect::<Result<_, Fault>>()?, line: node.at.line, source: None })
}

/// Checks an address: its scheme, and that it names a host.
pub(super) fn check_url(url: &str) -> Result<(), String> {
    let lower = url.to_ascii_lowercase();
    let rest = lower.strip_prefix("http://").or_else(|| lower.strip_prefix("https://"));
    match rest {
        None => Err("must begin with http:// or https://".into()),
        Some(rest) if rest.is_empty() || rest.starts_with(['/', '?', '#', ':']) => {
            Err("names no host".into())
        }
        Some(_) if url.chars().any(|c| c.is_whitespace() || c.is_control()) => {
            Err("must not contain spaces or control characters".into())
        }
        Some(_) => Ok(()),
    }
}

/// Checks a header against RFC 9110 (a name is a token; a value has no control characters).
pub(super) fn check_header(name: &str, value: &str) -> Result<(), String> {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if !name.bytes().all(token) {
        return Err("is no name of a header".into());
    }
    if value.chars().any(|c| c.is_control() && c != '\t') {
        return Err("its value must be one line, without control characters".into());
    }
    Ok(())
}
