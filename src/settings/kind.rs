//! The kinds of value that a setting can have: reading one from text or from
//! JSON, and writing it back. Messages name no setting; the caller adds it.

use super::units::{bytes_text, duration_text, parse_bytes, parse_duration};
use serde_json::{Map, Value};
use std::fmt;
use std::time::Duration;

/// One allowed value of an enumeration, and what it means. A value that ends
/// in `<x>` stands for every text that begins with the part before it.
pub type Choice = (&'static str, &'static str);

/// What values a setting takes, and how they are written.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// `true` or `false`.
    Bool,
    /// A whole number within a range, both ends included.
    Int(i64, i64),
    /// A duration within a range, both ends included. `0` is taken besides
    /// when it has a meaning of its own, which the text gives.
    Duration(Duration, Duration, Option<&'static str>),
    /// A size in bytes within a range, both ends included.
    Bytes(u64, u64),
    /// One of a few words.
    Enum(&'static [Choice]),
    /// Any text.
    Text,
    /// The path of one file or directory; a relative one is taken from the
    /// directory of the file that says it. `~/` is the home directory.
    Path,
    /// Texts: a JSON array, or words separated by commas.
    List,
    /// Paths: a JSON array, or a text separated by colons. `null` or `-`
    /// stands for what was inherited.
    Paths,
    /// A JSON object.
    Json,
    /// Text, or the name of a file or directory that holds it (see `load_source`).
    Source,
    /// A text that is never shown.
    Secret,
}

/// A text that is never shown: `Debug` and `Display` print stars.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }
    /// The secret itself; never print, log or put it into argv.
    pub fn reveal(&self) -> &str {
        &self.0
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Secret {
    /// Stars, or nothing when the secret is empty: whether one is set may be known.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "" } else { "********" })
    }
}

/// A value, after its kind's validation.
#[derive(Clone, Debug, PartialEq)]
pub enum Val {
    /// Of [`Kind::Bool`].
    Bool(bool),
    /// Of [`Kind::Int`].
    Int(i64),
    /// Of [`Kind::Duration`].
    Duration(Duration),
    /// Of [`Kind::Bytes`].
    Bytes(u64),
    /// Of [`Kind::Enum`], [`Kind::Text`], [`Kind::Path`] and [`Kind::Source`].
    Text(String),
    /// Of [`Kind::List`].
    List(Vec<String>),
    /// Of [`Kind::Paths`].
    Paths(Vec<String>),
    /// Of [`Kind::Json`].
    Json(Value),
    /// Of [`Kind::Secret`].
    Secret(Secret),
}

/// The element of a [`Kind::Paths`] that stands for what was inherited.
pub(super) const SPLICE: &str = "-";

impl Kind {
    /// The kind in a few words, for documentation and messages.
    pub fn describe(&self) -> String {
        match self {
            Kind::Bool => "true or false".into(),
            Kind::Int(min, max) => format!("whole number, {min} to {max}"),
            Kind::Duration(min, max, zero) => {
                let zero = zero.map(|z| format!(", or 0: {z}")).unwrap_or_default();
                format!("duration, {} to {}{zero}", duration_text(*min), duration_text(*max))
            }
            Kind::Bytes(min, max) => format!("size, {} to {}", bytes_text(*min), bytes_text(*max)),
            Kind::Enum(choices) => words(choices),
            Kind::Text => "text".into(),
            Kind::Path => "path".into(),
            Kind::List => "list, separated by commas".into(),
            Kind::Paths => "list of paths, separated by colons; - stands for what was inherited".into(),
            Kind::Json => "JSON object".into(),
            Kind::Source => "text, file or directory".into(),
            Kind::Secret => "secret text".into(),
        }
    }

    /// Reads a value as it is written in a variable, a flag, or a JSON string.
    pub fn parse_text(&self, text: &str) -> Result<Val, String> {
        let trimmed = text.trim();
        match self {
            Kind::Bool => match trimmed.to_ascii_lowercase().as_str() {
                "true" | "1" | "yes" | "on" => Ok(Val::Bool(true)),
                "false" | "0" | "no" | "off" => Ok(Val::Bool(false)),
                "" => Err("is empty; write true or false".into()),
                _ => Err(format!("\"{trimmed}\" is neither true nor false")),
            },
            Kind::Int(min, max) => {
                let wrong = || format!("\"{trimmed}\" is not a whole number from {min} to {max}");
                in_range(trimmed.parse::<i64>().map_err(|_| wrong())?, *min, *max).map(Val::Int)
            }
            Kind::Duration(min, max, zero) => {
                let read = parse_duration(trimmed)?;
                if read.is_zero() && zero.is_some() || (*min..=*max).contains(&read) {
                    return Ok(Val::Duration(read));
                }
                Err(format!(
                    "must be from {} to {}{}, not {}",
                    duration_text(*min),
                    duration_text(*max),
                    zero.map(|z| format!(" (or 0: {z})")).unwrap_or_default(),
                    duration_text(read)
                ))
            }
            Kind::Bytes(min, max) => {
                let read = parse_bytes(trimmed)?;
                if (*min..=*max).contains(&read) {
                    return Ok(Val::Bytes(read));
                }
                let (min, max, read) = (bytes_text(*min), bytes_text(*max), bytes_text(read));
                Err(format!("must be from {min} to {max}, not {read}"))
            }
            Kind::Enum(choices) => match choices.iter().find(|(word, _)| chosen(word, trimmed)) {
                Some(_) => Ok(Val::Text(trimmed.to_owned())),
                None => {
                    let near = crate::util::did_you_mean(trimmed, choices.iter().map(|(word, _)| *word));
                    let near = near.map(|n| format!(" ({n})")).unwrap_or_default();
                    Err(format!("\"{trimmed}\" is not one of {}{near}", words(choices)))
                }
            },
            Kind::Text | Kind::Path | Kind::Source if text.contains('\0') => {
                Err("must not contain a NUL character".into())
            }
            Kind::Text | Kind::Path | Kind::Source => Ok(Val::Text(text.to_owned())),
            Kind::Secret if text.contains(['\0', '\n', '\r']) => {
                Err("must be one line, without control characters".into())
            }
            // Taken word for word it would be a secret that everybody knows who knows the file's form.
            Kind::Secret if text.contains("${") => Err(
                "variables are not filled in here; leave it out, and set the setting's own variable in the environment"
                    .into(),
            ),
            Kind::Secret => Ok(Val::Secret(Secret::new(text))),
            Kind::List if trimmed.is_empty() => Ok(Val::List(Vec::new())),
            Kind::Paths if trimmed.is_empty() => Ok(Val::Paths(Vec::new())),
            Kind::List | Kind::Paths if trimmed.starts_with('[') => self.parse_json(&json(trimmed)?),
            Kind::List => elements(trimmed.split(',').map(str::trim)).map(Val::List),
            Kind::Paths => elements(trimmed.split(':')).map(Val::Paths),
            Kind::Json => self.parse_json(&json(trimmed)?),
        }
    }

    /// Reads a value as it is written in a configuration file.
    pub fn parse_json(&self, value: &Value) -> Result<Val, String> {
        match (self, value) {
            (Kind::Bool, Value::Bool(b)) => Ok(Val::Bool(*b)),
            (Kind::Int(min, max), Value::Number(n)) => match n.as_i64() {
                Some(i) => in_range(i, *min, *max).map(Val::Int),
                None => Err(format!("{n} is not a whole number from {min} to {max}")),
            },
            // A bare number has no unit: 0 needs none, and a size counts bytes.
            (Kind::Duration(..) | Kind::Bytes(..), Value::Number(n)) => self.parse_text(&n.to_string()),
            (Kind::List | Kind::Paths, Value::Array(list)) => {
                let splice = matches!(self, Kind::Paths);
                let mut out = Vec::with_capacity(list.len());
                for (i, element) in list.iter().enumerate() {
                    match element {
                        Value::String(s) => out.push(s.as_str()),
                        Value::Null if splice => out.push(SPLICE),
                        other => {
                            return Err(format!("element {} is {}, not a text", i + 1, shape(other)));
                        }
                    }
                }
                let list = elements(out.into_iter())?;
                Ok(if splice { Val::Paths(list) } else { Val::List(list) })
            }
            (Kind::Json, Value::Object(_)) => Ok(Val::Json(value.clone())),
            (Kind::Json, _) => Err(format!("expected a JSON object, got {}", shape(value))),
            (_, Value::String(text)) => self.parse_text(text),
            _ => Err(format!("expected {}, got {}", self.describe(), shape(value))),
        }
    }
}

fn in_range(i: i64, min: i64, max: i64) -> Result<i64, String> {
    if (min..=max).contains(&i) { Ok(i) } else { Err(format!("must be from {min} to {max}, not {i}")) }
}

/// Whether `text` is the choice `word`, or begins as `word:<x>` wants and goes on.
fn chosen(word: &str, text: &str) -> bool {
    match word.strip_suffix("<x>") {
        Some(prefix) => text.len() > prefix.len() && text.starts_with(prefix),
        None => word == text,
    }
}

fn words(choices: &[Choice]) -> String {
    choices.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ")
}

fn elements<'a>(parts: impl Iterator<Item = &'a str>) -> Result<Vec<String>, String> {
    let mut out = Vec::new();
    for (i, part) in parts.enumerate() {
        if part.is_empty() {
            return Err(format!("element {} is empty", i + 1));
        }
        out.push(part.to_owned());
    }
    Ok(out)
}

fn json(text: &str) -> Result<Value, String> {
    if text.is_empty() {
        return Err("is empty; write a JSON object such as {}".into());
    }
    serde_json::from_str(text).map_err(|e| format!("is not valid JSON: {e}"))
}

/// A list as it is typed in a flag; as JSON where an element has the separator in it.
fn joined(list: &[String], separator: char) -> String {
    let simple = |e: &String| !e.contains(separator) && !e.starts_with('[') && e.trim() == e;
    if list.iter().all(simple) {
        return list.join(separator.encode_utf8(&mut [0; 4]));
    }
    Value::from(list.to_vec()).to_string()
}

/// What a JSON value is, in words: `a list`, `a number`.
pub(crate) fn shape(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

impl Val {
    /// The value as a person would type it in a flag; a secret is stars.
    pub fn text(&self) -> String {
        match self {
            Val::Bool(b) => b.to_string(),
            Val::Int(i) => i.to_string(),
            Val::Duration(d) => duration_text(*d),
            Val::Bytes(b) => bytes_text(*b),
            Val::Text(t) => t.clone(),
            Val::List(l) => joined(l, ','),
            Val::Paths(l) => joined(l, ':'),
            Val::Json(v) => v.to_string(),
            Val::Secret(s) => s.to_string(),
        }
    }
    /// The value as JSON, in the syntax of a configuration file; a secret is stars.
    pub fn to_json(&self) -> Value {
        match self {
            Val::Bool(b) => (*b).into(),
            Val::Int(i) => (*i).into(),
            Val::List(l) | Val::Paths(l) => l.clone().into(),
            Val::Json(v) => v.clone(),
            other => other.text().into(),
        }
    }
}

/// What `Settings::get` can give: the Rust type behind a kind.
pub trait FromVal: Sized {
    /// The value, when it is of this type.
    fn from_val(val: &Val) -> Option<Self>;
}

macro_rules! from_val {
    ($($type:ty, $variant:ident);* $(;)?) => {$(
        impl FromVal for $type {
            fn from_val(val: &Val) -> Option<$type> {
                match val {
                    Val::$variant(v) => Some(v.clone()),
                    _ => None,
                }
            }
        }
    )*};
}
from_val! {
    bool, Bool; i64, Int; Duration, Duration; u64, Bytes; String, Text;
    Value, Json; Secret, Secret;
}

impl FromVal for Vec<String> {
    fn from_val(val: &Val) -> Option<Self> {
        match val {
            Val::List(list) | Val::Paths(list) => Some(list.clone()),
            _ => None,
        }
    }
}

impl FromVal for Map<String, Value> {
    fn from_val(val: &Val) -> Option<Self> {
        match val {
            Val::Json(Value::Object(map)) => Some(map.clone()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const SEC: Kind = Kind::Duration(Duration::from_secs(1), Duration::from_secs(60), None);
    const COLOR: Kind = Kind::Enum(&[("auto", ""), ("never", ""), ("named:<x>", "")]);

    #[test]
    fn each_kind_reads_text_and_json_alike() {
        let zero = Kind::Duration(Duration::from_secs(1), Duration::from_secs(60), Some("never"));
        for (kind, text, json, canonical) in [
            (Kind::Bool, "on", json!(true), "true"),
            (Kind::Int(1, 9), "7", json!(7), "7"),
            (SEC, "30s", json!("30s"), "30s"),
            (zero, "0", json!(0), "0"),
            (Kind::Bytes(0, 1 << 20), "64KiB", json!(65536), "64KiB"),
            (COLOR, "never", json!("never"), "never"),
            (COLOR, "named:a b", json!("named:a b"), "named:a b"),
            (Kind::Text, " a ", json!(" a "), " a "),
            (Kind::List, "a, b", json!(["a", "b"]), "a,b"),
            (Kind::List, "[\"a,x\"]", json!(["a,x"]), "[\"a,x\"]"),
            (Kind::List, "", json!([]), ""),
            (Kind::Paths, "/a:-", json!(["/a", null]), "/a:-"),
            (Kind::Json, "{\"a\":1}", json!({"a":1}), "{\"a\":1}"),
            (Kind::Secret, "abc", json!("abc"), "********"),
        ] {
            let read = kind.parse_text(text).unwrap();
            assert_eq!(read, kind.parse_json(&json).unwrap(), "{text}");
            assert_eq!(read.text(), canonical);
            if !matches!(kind, Kind::Secret) {
                assert_eq!(kind.parse_text(canonical).unwrap(), read);
                assert_eq!(kind.parse_json(&read.to_json()).unwrap(), read);
            }
        }
    }

    #[test]
    fn each_kind_refuses_what_it_cannot_be() {
        for (kind, json, part) in [
            (Kind::Bool, json!("maybe"), "neither true nor false"),
            (Kind::Bool, json!(""), "empty"),
            (Kind::Bool, json!(1), "got a number"),
            (Kind::Int(1, 9), json!(0), "from 1 to 9, not 0"),
            (Kind::Int(1, 9), json!(1.5), "not a whole number"),
            (Kind::Int(1, 9), json!(18446744073709551615u64), "not a whole number"),
            (Kind::Int(1, 9), json!("99999999999999999999"), "not a whole number"),
            (Kind::Int(1, 9), json!(""), "not a whole number"),
            (Kind::Int(1, 9), json!(null), "got null"),
            (SEC, json!(30), "no unit"),
            (SEC, json!("2m"), "from 1s to 1m, not 2m"),
            (SEC, json!("0"), "from 1s to 1m, not 0"),
            (SEC, json!(["1s"]), "got a list"),
            (Kind::Bytes(1, 1024), json!("1MB"), "from 1B to 1KiB, not 1MB"),
            (Kind::Bytes(1, 1024), json!(-1), "negative"),
            (Kind::Bytes(1, 1024), json!({}), "got an object"),
            (COLOR, json!("nevr"), "did you mean \"never\"?"),
            (COLOR, json!("named:"), "is not one of auto, never"),
            (COLOR, json!(false), "got true or false"),
            (Kind::Text, json!("a\u{0}b"), "NUL"),
            (Kind::Text, json!(3), "got a number"),
            (Kind::List, json!(["a", 1]), "element 2 is a number"),
            (Kind::List, json!(["a", null]), "element 2 is null"),
            (Kind::List, json!("a,,b"), "element 2 is empty"),
            (Kind::List, json!("[\"a\""), "not valid JSON"),
            (Kind::Paths, json!(["", "a"]), "element 1 is empty"),
            (Kind::Json, json!([]), "expected a JSON object, got a list"),
            (Kind::Json, json!("{}"), "expected a JSON object, got a text"),
            (Kind::Secret, json!("a\nb"), "one line"),
            (Kind::Secret, json!("${TOKEN}"), "not filled in"),
            (Kind::Secret, json!(5), "got a number"),
        ] {
            let message = kind.parse_json(&json).unwrap_err();
            assert!(message.contains(part), "{kind:?} {json}: {message}");
        }
        assert!(Kind::Json.parse_text("").unwrap_err().contains("empty"));
        assert!(Kind::Json.parse_text("[1]").unwrap_err().contains("got a list"));
        assert!(Kind::Json.parse_text("{a}").unwrap_err().contains("not valid JSON"));
    }

    #[test]
    fn a_secret_never_shows() {
        let val = Kind::Secret.parse_text("hunter2").unwrap();
        for shown in [format!("{val:?}"), val.text(), val.to_json().to_string()] {
            assert!(!shown.contains("hunter2"), "{shown}");
        }
        assert_eq!(Secret::from_val(&val).unwrap().reveal(), "hunter2");
    }
}
