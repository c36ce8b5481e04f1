//! Writes JSON values in the style of the document that they go into: its
//! indentation, its line ends, and whether it has trailing commas.

use super::splice;
use serde_json::Value;

/// A list of plain values up to this many characters stays on one line; longer ones are hard to read.
const SHORT: usize = 80;

/// How a document is laid out.
pub(super) struct Style {
    /// One level of indentation.
    pub unit: String,
    /// What ends a line.
    pub newline: &'static str,
    /// Whether a last member has a comma.
    commas: bool,
}

impl Style {
    /// The style of a text; where it shows none, two spaces and no trailing commas.
    pub fn of(text: &str) -> Style {
        let newline = match text.find('\n') {
            Some(at) if text[..at].ends_with('\r') => "\r\n",
            _ => "\n",
        };
        let root = splice::root(text);
        let members = root.as_ref().map(|r| r.members.as_slice()).unwrap_or_default();
        let unit = members.first().and_then(|m| {
            let line = &text[text[..m.start].rfind('\n')? + 1..];
            let lead = &line[..line.len() - line.trim_start_matches([' ', '\t']).len()];
            (!lead.is_empty()).then(|| lead.to_owned())
        });
        let commas = members.last().is_some_and(|m| m.comma.is_some());
        Style { unit: unit.unwrap_or_else(|| "  ".into()), newline, commas }
    }
    /// The comma behind a last member, where the document has such.
    pub fn trailing(&self) -> &'static str {
        if self.commas { "," } else { "" }
    }
}

/// A key in its quotes.
pub(super) fn key_text(key: &str) -> String {
    Value::from(key).to_string()
}

/// A value as text. `lead` is the indentation of the line that it begins on,
/// or `None` where everything is to stay on one line.
pub(super) fn value_text(value: &Value, lead: Option<&str>, style: &Style) -> String {
    let plain = |v: &Value| !matches!(v, Value::Array(_) | Value::Object(_));
    match (value, lead) {
        (Value::Array(list), Some(lead)) if !list.is_empty() => {
            let flat = value_text(value, None, style);
            if list.iter().all(plain) && flat.chars().count() <= SHORT {
                return flat;
            }
            let deeper = format!("{lead}{}", style.unit);
            let each = list.iter().map(|v| value_text(v, Some(&deeper), style));
            wrapped('[', each, ']', lead, style)
        }
        (Value::Object(map), Some(lead)) if !map.is_empty() => {
            let deeper = format!("{lead}{}", style.unit);
            let each =
                map.iter().map(|(k, v)| format!("{}: {}", key_text(k), value_text(v, Some(&deeper), style)));
            wrapped('{', each, '}', lead, style)
        }
        (Value::Array(list), _) => {
            let each: Vec<String> = list.iter().map(|v| value_text(v, None, style)).collect();
            format!("[{}]", each.join(", "))
        }
        (Value::Object(map), None) if !map.is_empty() => {
            let each: Vec<String> =
                map.iter().map(|(k, v)| format!("{}: {}", key_text(k), value_text(v, None, style))).collect();
            format!("{{ {} }}", each.join(", "))
        }
        (plain, _) => plain.to_string(),
    }
}

/// One part a line, between brackets.
fn wrapped(
    open: char,
    parts: impl Iterator<Item = String>,
    close: char,
    lead: &str,
    style: &Style,
) -> String {
    let (nl, unit) = (style.newline, &style.unit);
    let parts: Vec<String> = parts.map(|p| format!("{nl}{lead}{unit}{p}")).collect();
    format!("{open}{}{}{nl}{lead}{close}", parts.join(","), style.trailing())
}
