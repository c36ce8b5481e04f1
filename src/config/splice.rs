//! Changes single members in the text of a JSON document with comments, and
//! leaves every other byte as it is. Takes only texts that `jsonc` has
//! accepted; knows nothing of files.

use super::render::{Style, key_text, value_text};
use serde_json::Value;

/// One member of an object, as byte positions in the text.
pub(super) struct Member {
    /// Its key, unescaped.
    pub key: String,
    /// Where the key's opening quote is.
    pub start: usize,
    /// Where the value begins and ends.
    pub value: (usize, usize),
    /// Where the comma behind it is.
    pub comma: Option<usize>,
}

/// An object: the positions of its brackets, and its members.
pub(super) struct Object {
    pub open: usize,
    pub close: usize,
    pub members: Vec<Member>,
}

/// Skips white space and comments from `at` on.
fn blank(text: &str, mut at: usize) -> usize {
    loop {
        let rest = &text[at..];
        let trimmed = rest.trim_start_matches([' ', '\t', '\r', '\n', '\u{feff}']);
        at += rest.len() - trimmed.len();
        if trimmed.starts_with("//") {
            at += trimmed.find('\n').unwrap_or(trimmed.len());
        } else if trimmed.starts_with("/*") {
            at += trimmed.find("*/").map_or(trimmed.len(), |i| i + 2);
        } else {
            return at;
        }
    }
}

/// Where the text that begins at `at` ends.
fn string_end(text: &str, at: usize) -> usize {
    let mut escaped = false;
    for (i, b) in text.bytes().enumerate().skip(at + 1) {
        match b {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return i + 1,
            _ => {}
        }
    }
    text.len()
}

/// Where the value that begins at `at` ends.
fn value_end(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    match bytes.get(at) {
        Some(b'"') => string_end(text, at),
        Some(b'{' | b'[') => {
            let (mut depth, mut i) = (0usize, at);
            while i < bytes.len() {
                match bytes[i] {
                    b'"' => {
                        i = string_end(text, i);
                        continue;
                    }
                    b'/' => {
                        i = blank(text, i);
                        continue;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => {
                        depth -= 1;
                        if depth == 0 {
                            return i + 1;
                        }
                    }
                    _ => {}
                }
                i += 1;
            }
            text.len()
        }
        _ => {
            let rest = &bytes[at.min(bytes.len())..];
            let plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.');
            at + rest.iter().position(|b| !plain(b)).unwrap_or(rest.len())
        }
    }
}

/// The object whose bracket is at `open`; `None` when there is no object.
fn object(text: &str, open: usize) -> Option<Object> {
    let bytes = text.as_bytes();
    if bytes.get(open) != Some(&b'{') {
        return None;
    }
    let mut members = Vec::new();
    let mut at = blank(text, open + 1);
    while bytes.get(at) == Some(&b'"') {
        let (start, end) = (at, string_end(text, at));
        let key = serde_json::from_str(&text[start..end]).unwrap_or_default();
        let begins = blank(text, blank(text, end) + 1);
        let value = (begins, value_end(text, begins));
        at = blank(text, value.1);
        let comma = (bytes.get(at) == Some(&b',')).then_some(at);
        if comma.is_some() {
            at = blank(text, at + 1);
        }
        members.push(Member { key, start, value, comma });
    }
    Some(Object { open, close: at, members })
}

/// The document's own object.
pub(super) fn root(text: &str) -> Option<Object> {
    object(text, blank(text, 0))
}

/// The member that a path of keys leads to, and the object that it is in. Of a
/// key that is there twice the last counts, as when the document is read.
pub(super) fn find(text: &str, path: &[&str]) -> Option<(Object, usize)> {
    let (last, parents) = path.split_last()?;
    let mut at = root(text)?;
    for key in parents {
        let member = at.members.iter().rev().find(|m| m.key == *key)?;
        at = object(text, member.value.0)?;
    }
    let index = at.members.iter().rposition(|m| m.key == *last)?;
    Some((at, index))
}

/// Sets the value that a path of keys leads to; objects on the way are made.
/// `Err` is how many keys of the path lead to something that is no object.
pub(super) fn set(text: &str, path: &[&str], value: &Value) -> Result<String, usize> {
    let style = Style::of(text);
    let mut parent = root(text).ok_or(0usize)?;
    for (depth, key) in path.iter().enumerate() {
        let found = parent.members.iter().rev().find(|m| m.key == *key);
        let rest = &path[depth + 1..];
        match found {
            None => {
                // What is left of the path becomes nested objects around the value.
                let nested = rest.iter().rev().fold(value.clone(), |inner, key| {
                    Value::Object([((*key).to_owned(), inner)].into_iter().collect())
                });
                return Ok(insert(text, &parent, key, &nested, &style));
            }
            Some(member) if rest.is_empty() => {
                let (from, to) = member.value;
                let lead = indentation(text, member.start);
                let new = value_text(value, lead, &style);
                return Ok(format!("{}{new}{}", &text[..from], &text[to..]));
            }
            Some(member) => parent = object(text, member.value.0).ok_or(depth + 1)?,
        }
    }
    Err(0)
}

/// The white space before `at`, when nothing else is before it on its line.
fn indentation(text: &str, at: usize) -> Option<&str> {
    let start = text[..at].rfind('\n').map_or(0, |i| i + 1);
    let before = text[start..at].trim_start_matches('\u{feff}');
    before.bytes().all(|b| matches!(b, b' ' | b'\t')).then_some(before)
}

/// Behind a comment that follows `at` on its line; `at` itself when none does.
fn behind_comment(text: &str, at: usize) -> usize {
    let line = text[at..].find('\n').map_or(text.len(), |i| at + i);
    let rest = text[at..line].trim_end_matches('\r');
    let trimmed = rest.trim_start_matches([' ', '\t']);
    let begin = at + rest.len() - trimmed.len();
    if trimmed.starts_with("//") {
        return at + rest.len();
    }
    match trimmed.strip_prefix("/*").and_then(|t| t.find("*/")) {
        Some(end) if trimmed[end + 4..].trim().is_empty() => begin + end + 4,
        _ => at,
    }
}

/// Adds a member at the end of an object.
fn insert(text: &str, object: &Object, key: &str, value: &Value, style: &Style) -> String {
    let key = key_text(key);
    let Some(last) = object.members.last() else {
        return first(text, object, &key, value, style);
    };
    let after = last.comma.map_or(last.value.1, |c| c + 1);
    let (comma, trailing) = if last.comma.is_some() { ("", ",") } else { (",", "") };
    match indentation(text, last.start) {
        Some(lead) => {
            // A comment on the last member's line belongs to it.
            let at = behind_comment(text, after);
            let new = value_text(value, Some(lead), style);
            format!(
                "{}{comma}{}{}{lead}{key}: {new}{trailing}{}",
                &text[..after],
                &text[after..at],
                style.newline,
                &text[at..]
            )
        }
        None => {
            let new = value_text(value, None, style);
            format!("{}{comma} {key}: {new}{trailing}{}", &text[..after], &text[after..])
        }
    }
}

/// Adds the first member of an object, which may hold comments.
fn first(text: &str, object: &Object, key: &str, value: &Value, style: &Style) -> String {
    let inner = &text[object.open + 1..object.close];
    let head = &text[..object.open + 1];
    let tail = &text[object.close..];
    // The object's own line says how deep it is.
    let line = text[..object.open].rfind('\n').map_or(0, |i| i + 1);
    let own = text[line..object.open].trim_start_matches('\u{feff}');
    let lead = &own[..own.len() - own.trim_start_matches([' ', '\t']).len()];
    let at_root = own.trim().is_empty();
    // Within an object on one line, what is new stays on that line.
    let one_line = !at_root && own.trim_start().starts_with(['{', '[']);
    if inner.trim().is_empty() {
        if one_line {
            return format!("{head}{key}: {}{tail}", value_text(value, None, style));
        }
        let deeper = format!("{lead}{}", style.unit);
        let new = value_text(value, Some(&deeper), style);
        let (nl, comma) = (style.newline, style.trailing());
        return format!("{head}{nl}{deeper}{key}: {new}{comma}{nl}{lead}{tail}");
    }
    match indentation(text, object.close) {
        // Comments, and the bracket on a line of its own: a new line before it.
        Some(close) => {
            let deeper = format!("{close}{}", style.unit);
            let new = value_text(value, Some(&deeper), style);
            let kept = &inner[..inner.len() - close.len()];
            format!("{head}{kept}{deeper}{key}: {new}{}{}{close}{tail}", style.trailing(), style.newline)
        }
        None => {
            let new = value_text(value, None, style);
            format!("{head}{} {key}: {new} {tail}", inner.trim_end())
        }
    }
}

/// Removes the member of an object, with its comma and the comment behind it
/// on its line. Comments on lines of their own stay.
pub(super) fn remove(text: &str, object: &Object, index: usize) -> String {
    let member = &object.members[index];
    let end = member.comma.map_or(member.value.1, |c| c + 1);
    let mut out = text.to_owned();
    let line_end = behind_comment(text, end);
    let rest = text[line_end..].find('\n').map_or(text.len(), |i| line_end + i);
    let own_line = indentation(text, member.start).is_some() && text[line_end..rest].trim().is_empty();
    let (from, to) = if own_line {
        let from = text[..member.start].rfind('\n').map_or(member.start, |i| i + 1);
        (from, (rest + 1).min(text.len()))
    } else if member.comma.is_some() || index == 0 {
        let rest = &text[end..];
        let behind = rest.trim_start_matches([' ', '\t']);
        let last_on_line = behind.starts_with(['\n', '\r']);
        let before = text[..member.start].trim_end_matches([' ', '\t']).len();
        let gap = if member.comma.is_some() { rest.len() - behind.len() } else { 0 };
        (if last_on_line { before } else { member.start }, end + gap)
    } else {
        let before = &text[..member.start];
        (before.trim_end_matches([' ', '\t']).len(), end)
    };
    out.replace_range(from..to, "");
    // The member before becomes the last one: a comma stays there only where the last had one.
    let previous = index.checked_sub(1).and_then(|i| object.members[i].comma);
    if let (Some(comma), None) = (previous, member.comma) {
        out.remove(comma);
    }
    // Nothing is left: two brackets on two lines say no more than on one.
    if object.members.len() == 1 {
        let close = object.close - (text.len() - out.len());
        if out[object.open + 1..close].trim().is_empty() {
            out.replace_range(object.open + 1..close, "");
        }
    }
    out
}
