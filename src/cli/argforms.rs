//! Turns the words after a tool's name into its arguments object: JSON, a file,
//! standard input, and `key=value` or `key:=json` pairs. Values are written
//! into the object as they were typed, so no number loses a digit. Knows
//! nothing of servers; the tool's schema is handed in.

use super::args::{usage, utf8};
use super::argtypes::{all_declared, convert, property, quoted, undeclared};
use super::whole::{STDIN, whole};
use crate::error::{Error, Result};
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::ffi::OsString;
use std::fmt;
use std::io::Read;

/// How much of a line is shown around a mistake in it.
const SHOWN: usize = 60;

/// The arguments as typed.
#[derive(Debug, Default)]
pub struct Forms {
    /// The object that the pairs are laid over.
    whole: Option<Whole>,
    pairs: Vec<Pair>,
}

#[derive(Debug)]
enum Whole {
    Inline(Box<RawValue>),
    File(OsString),
    Stdin,
}

#[derive(Debug)]
struct Pair {
    key: String,
    value: PairValue,
}

#[derive(Debug)]
enum PairValue {
    /// `key=value`: text, or what the schema makes of it.
    Text(String),
    /// `key:=json`, known to be JSON.
    Json(String),
}

impl Forms {
    /// Reads the words after the tool's name.
    pub fn parse(words: &[OsString]) -> Result<Forms> {
        let mut forms = Forms::default();
        for (i, word) in words.iter().enumerate() {
            let whole = if word == "-" {
                Whole::Stdin
            } else if let Some(file) = strip_at(word) {
                if file.is_empty() {
                    return Err(usage("@ names no file").hint("@<file> reads the arguments from a file"));
                }
                Whole::File(file)
            } else {
                let text = utf8(word, "an argument")?;
                let looks_json = text.trim_start().starts_with(['{', '[', '"']);
                match (looks_json, text.split_once('=')) {
                    (false, Some((key, value))) => {
                        forms.pairs.push(pair(key, value)?);
                        continue;
                    }
                    (true, _) => Whole::Inline(object(text, "the arguments")?),
                    (false, None) => {
                        return Err(usage(format!("the argument {text:?} is neither JSON nor key=value"))
                            .hint(
                                "arguments are one JSON object, key=value and key:=json pairs, @file, or - for standard input",
                            ));
                    }
                }
            };
            if i > 0 {
                return Err(usage("a whole arguments object must be the first argument, and the only one")
                    .hint("key=value and key:=json pairs may follow it"));
            }
            forms.whole = Some(whole);
        }
        Ok(forms)
    }

    /// Whether the tool's schema decides what some value means.
    pub fn need_schema(&self) -> bool {
        self.pairs.iter().any(|p| matches!(p.value, PairValue::Text(_)))
    }

    /// The arguments object, or `None` when none were given. `schema` is the tool's input schema;
    /// of a file or of standard input no more than `most` bytes are taken.
    pub fn build(
        &self,
        schema: Option<&Value>,
        stdin: &mut dyn Read,
        most: u64,
    ) -> Result<Option<Box<RawValue>>> {
        let base = match &self.whole {
            None if self.pairs.is_empty() => return Ok(None),
            None => None,
            Some(Whole::Inline(object)) => Some(object.clone()),
            Some(Whole::File(path)) => {
                let shown = path.to_string_lossy();
                let mut file = std::fs::File::open(path)
                    .map_err(|e| Error::unreadable(format!("the arguments from {shown}"), &e))?;
                let bytes = whole(&mut file, most, &format!("the file {shown}"))?;
                Some(object(text_of(&bytes, &format!("the file {shown}"))?, &format!("the file {shown}"))?)
            }
            Some(Whole::Stdin) => {
                let bytes = whole(stdin, most, STDIN)?;
                Some(object(text_of(&bytes, STDIN)?, STDIN)?)
            }
        };
        if self.pairs.is_empty() {
            return Ok(base);
        }
        let mut fields = Fields::default();
        if let Some(base) = &base {
            for (key, value) in members(base)? {
                fields.set(key, value.get().to_owned());
            }
        }
        let base_fields = fields.0.len();
        for p in &self.pairs {
            self.add(&mut fields, base_fields, p, schema)?;
        }
        Ok(Some(fields.into_json()?))
    }

    fn add(&self, fields: &mut Fields, base: usize, p: &Pair, schema: Option<&Value>) -> Result<()> {
        let typed_before = fields.0.iter().skip(base).any(|f| f.key == p.key)
            || fields.0.iter().take(base).any(|f| f.key == p.key && f.overlaid);
        let (json, is_element) = match &p.value {
            PairValue::Json(json) => (json.clone(), false),
            PairValue::Text(text) => match schema.and_then(|s| property(s, &p.key)) {
                Some(property) => convert(&p.key, text, property, schema.unwrap_or(&Value::Null))?,
                None => {
                    if let Some(declared) = schema.and_then(all_declared) {
                        return Err(undeclared(&p.key, &declared));
                    }
                    (quoted(text), false)
                }
            },
        };
        match (typed_before, is_element) {
            (false, false) => fields.set(p.key.clone(), json),
            (false, true) => fields.set(p.key.clone(), format!("[{json}]")),
            (true, true) => fields.append(&p.key, &json),
            (true, false) => {
                return Err(usage(format!("the argument {} is given twice", p.key)));
            }
        }
        Ok(())
    }
}

/// The members of an object under construction, in order, each as JSON text.
#[derive(Default)]
struct Fields(Vec<Field>);

struct Field {
    key: String,
    json: String,
    /// A pair has replaced what the whole object said.
    overlaid: bool,
}

impl Fields {
    fn set(&mut self, key: String, json: String) {
        match self.0.iter_mut().find(|f| f.key == key) {
            Some(f) => {
                f.json = json;
                f.overlaid = true;
            }
            None => self.0.push(Field { key, json, overlaid: false }),
        }
    }
    /// Adds an element to the array that the field is.
    fn append(&mut self, key: &str, json: &str) {
        if let Some(f) = self.0.iter_mut().find(|f| f.key == key)
            && f.json.trim_end().ends_with(']')
        {
            let open = f.json.trim_end().len() - 1;
            f.json.truncate(open);
            if f.json.trim_end() != "[" {
                f.json.push(',');
            }
            f.json.push_str(json);
            f.json.push(']');
        }
    }
    fn into_json(self) -> Result<Box<RawValue>> {
        let mut text = String::from("{");
        for (i, f) in self.0.iter().enumerate() {
            if i > 0 {
                text.push(',');
            }
            text.push_str(&quoted(&f.key));
            text.push(':');
            text.push_str(&f.json);
        }
        text.push('}');
        RawValue::from_string(text).map_err(|e| super::internal(format!("building the arguments: {e}")))
    }
}

fn strip_at(word: &OsString) -> Option<OsString> {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let rest = word.as_bytes().strip_prefix(b"@")?;
    Some(OsString::from_vec(rest.to_vec()))
}

/// Splits at the first `=`: `:=` is the JSON form only when it is that very `=`.
fn pair(key: &str, value: &str) -> Result<Pair> {
    let (key, value) = match key.strip_suffix(':') {
        Some(key) => (key, PairValue::Json(check(value, &format!("the value of {key}"))?)),
        None => (key, PairValue::Text(value.to_owned())),
    };
    if key.is_empty() {
        return Err(usage("an argument has an empty name before its =")
            .hint("write key=value, or key:=json for anything that is not text"));
    }
    Ok(Pair { key: key.to_owned(), value })
}

fn text_of<'a>(bytes: &'a [u8], what: &str) -> Result<&'a str> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    std::str::from_utf8(bytes).map_err(|e| usage(format!("{what} is not UTF-8 at byte {}", e.valid_up_to())))
}

/// The text as a JSON object, kept as it is.
fn object(text: &str, what: &str) -> Result<Box<RawValue>> {
    let raw: Box<RawValue> = serde_json::from_str(text).map_err(|e| not_json(text, what, &e))?;
    let found = match raw.get().as_bytes().first() {
        Some(b'{') => return Ok(raw),
        Some(b'[') => "an array",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    };
    Err(usage(format!("{what} must be a JSON object, not {found}")))
}

/// The text as any JSON value, kept as it is.
fn check(text: &str, what: &str) -> Result<String> {
    serde_json::from_str::<&RawValue>(text).map(|raw| raw.get().to_owned()).map_err(|e| {
        let e = not_json(text, what, &e);
        match e.hint_text() {
            Some(_) => e,
            None => e.hint("key:=json takes JSON; key=value takes text as it is"),
        }
    })
}

/// An error that shows the line and points at the place.
fn not_json(text: &str, what: &str, e: &serde_json::Error) -> Error {
    let said = e.to_string();
    let said = said.split(" at line ").next().unwrap_or(&said);
    if text.trim().is_empty() {
        return usage(format!("{what} must be JSON, but nothing is there"));
    }
    let mut message = format!("{what} must be JSON: line {}, column {}: {said}", e.line(), e.column());
    if let Some(line) = text.lines().nth(e.line().saturating_sub(1)) {
        let (shown, caret) = around(line, e.column());
        message.push_str(&format!("\n  {shown}\n  {:caret$}^", ""));
    }
    let unquoted = text
        .trim_start()
        .strip_prefix('{')
        .is_some_and(|t| t.trim_start().starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '\''));
    let e = usage(message);
    if unquoted {
        e.hint("names need double quotes, and the shell must not eat them: '{\"key\":\"value\"}'; or write key=value")
    } else {
        e
    }
}

/// The part of a line around a byte column (from 1), and how many characters of it precede the place.
fn around(line: &str, column: usize) -> (String, usize) {
    let at = column.saturating_sub(1).min(line.len());
    let at = (0..=at).rev().find(|i| line.is_char_boundary(*i)).unwrap_or(0);
    let (before, after) = line.split_at(at);
    let skip = before.chars().count().saturating_sub(SHOWN / 2);
    let head: String = before.chars().skip(skip).collect();
    let tail: String = after.chars().take(SHOWN / 2).collect();
    let caret = head.chars().count();
    (format!("{head}{tail}").replace(|c: char| c.is_control(), " "), caret)
}

/// The members of an object in order; of two with one name the last counts.
fn members(object: &RawValue) -> Result<Vec<(String, &RawValue)>> {
    struct Members;
    impl<'de> Visitor<'de> for Members {
        type Value = Vec<(String, &'de RawValue)>;
        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut all = Vec::new();
            while let Some(entry) = map.next_entry()? {
                all.push(entry);
            }
            Ok(all)
        }
    }
    serde_json::Deserializer::from_str(object.get())
        .deserialize_map(Members)
        .map_err(|e| not_json(object.get(), "the arguments", &e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({
            "type": "object",
            "$defs": {"size": {"type": "integer"}, "loop": {"$ref": "#/$defs/loop"}},
            "properties": {
                "text": {"type": "string"}, "n": {"type": "integer"}, "x": {"type": "number"},
                "on": {"type": "boolean"}, "list": {"type": "array", "items": {"type": "integer"}},
                "words": {"type": "array", "items": {"type": "string"}}, "o": {"type": "object"},
                "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                "either": {"type": ["string", "integer"]}, "size": {"$ref": "#/$defs/size"},
                "level": {"enum": ["low", 2, true]}, "any": {}, "loop": {"$ref": "#/$defs/loop"},
                "both": {"allOf": [{"description": "d"}, {"type": "integer"}]}
            },
            "additionalProperties": true
        })
    }
    fn build(words: &[&str]) -> Result<String> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let built =
            Forms::parse(&words)?.build(Some(&schema()), &mut &b" {\"from\":\"stdin\"}\n"[..], u64::MAX)?;
        Ok(built.map_or_else(String::new, |b| b.get().to_owned()))
    }
    fn built(words: &[&str]) -> String {
        build(words).unwrap_or_else(|e| panic!("{words:?}: {e}"))
    }
    fn refused(words: &[&str]) -> String {
        let e = build(words).expect_err("accepted");
        assert_eq!(e.exit_code(), 2);
        e.to_string()
    }

    #[test]
    fn whole_objects_pass_as_they_are() {
        assert_eq!(built(&[]), "");
        assert_eq!(
            built(&["{\"n\": 12345678901234567890123, \"x\":1e400}"]),
            "{\"n\": 12345678901234567890123, \"x\":1e400}"
        );
        assert_eq!(built(&["-"]), "{\"from\":\"stdin\"}");
        assert_eq!(built(&["-", "n=1", "from=here"]), "{\"from\":\"here\",\"n\":1}");
        let file = std::env::temp_dir().join(format!("mcpx-args-{}", std::process::id()));
        std::fs::write(&file, "\u{feff}{\"a\":1}\n").unwrap();
        assert_eq!(built(&[&format!("@{}", file.display())]), "{\"a\":1}");
        std::fs::remove_file(&file).unwrap();
        let e = build(&[&format!("@{}", file.display())]).expect_err("it is gone");
        assert!(
            e.kind() == crate::error::Kind::Unreadable && e.message().ends_with("no such file or directory")
        );
    }

    #[test]
    fn text_stays_text() {
        assert_eq!(built(&["text=12"]), r#"{"text":"12"}"#);
        assert_eq!(built(&["text="]), r#"{"text":""}"#);
        assert_eq!(built(&["text=$HOME `x` a:=b \"q\" \\"]), r#"{"text":"$HOME `x` a:=b \"q\" \\"}"#);
        assert_eq!(built(&["unknown=5", "any=6", "either=7"]), r#"{"unknown":"5","any":"6","either":"7"}"#);
        assert_eq!(built(&["text={\"a\":1}", "text2=@x"]), r#"{"text":"{\"a\":1}","text2":"@x"}"#);
        assert_eq!(built(&["loop=1"]), r#"{"loop":"1"}"#);
    }

    #[test]
    fn a_pair_of_another_name_is_refused_unless_the_schema_is_open() {
        let build = |schema: Value, word: &str| {
            Forms::parse(&[word.into()])?
                .build(Some(&schema), &mut &b""[..], u64::MAX)
                .map(|b| b.unwrap().get().to_owned())
        };
        let closed = json!({"properties": {"text": {"type": "string"}}});
        let e = build(closed.clone(), "txet=1").unwrap_err();
        assert!(e.message().contains("no argument \"txet\""), "{e}");
        assert!(e.hint_text().unwrap().starts_with("did you mean \"text\"?; txet:=<json>"), "{e}");
        assert_eq!(build(closed, "txet:=1").unwrap(), r#"{"txet":1}"#);
        for open in [
            json!({"properties": {"a": {}}, "additionalProperties": {}}),
            json!({"properties": {"a": {}}, "patternProperties": {"^x": {}}}),
            json!({"properties": {}}),
            json!({"type": "object"}),
            json!({"$ref": "#/$defs/x"}),
        ] {
            assert_eq!(build(open.clone(), "b=1").unwrap(), r#"{"b":"1"}"#, "{open}");
        }
    }

    #[test]
    fn the_schema_decides_what_a_value_is() {
        assert_eq!(built(&["n=-12", "x=1.50", "on=true", "o={}"]), r#"{"n":-12,"x":1.50,"on":true,"o":{}}"#);
        assert_eq!(built(&["n=12345678901234567890123"]), r#"{"n":12345678901234567890123}"#);
        assert_eq!(built(&["maybe=null", "size=3", "both=4"]), r#"{"maybe":null,"size":3,"both":4}"#);
        assert_eq!(built(&["level=2"]), r#"{"level":2}"#);
        assert_eq!(built(&["level=low"]), r#"{"level":"low"}"#);
        assert_eq!(built(&["list=1", "list=2"]), r#"{"list":[1,2]}"#);
        assert_eq!(built(&["list=[1,2]", "words=a"]), r#"{"list":[1,2],"words":["a"]}"#);
        assert_eq!(built(&["words:=[]", "n:=\"x\""]), r#"{"words":[],"n":"x"}"#);
        assert!(refused(&["n=abc"]).contains("n takes an integer, not \"abc\""));
        assert!(refused(&["n="]).contains("integer"));
        assert!(refused(&["n=1.5"]).contains("integer"));
        assert!(refused(&["x=+1"]).contains("a number"));
        assert!(refused(&["on=yes"]).contains("true or false"));
        assert!(refused(&["list=a"]).contains("integer"));
        assert!(refused(&["maybe=x"]).contains("an integer or null"));
    }

    #[test]
    fn mistakes_are_shown_where_they_are() {
        let e = refused(&["{\"a\": 1,\n \"b\" 2}"]);
        assert!(e.contains("line 2, column 6") && e.contains("\n   \"b\" 2}\n       ^"), "{e}");
        assert!(refused(&["{text:hi}"]).contains("double quotes"));
        assert!(refused(&["[1]"]).contains("not an array"));
        assert!(refused(&["n:=abc"]).contains("the value of n must be JSON"));
        assert!(refused(&["n:="]).contains("nothing is there"));
        assert!(refused(&["hello"]).contains("neither JSON nor key=value"));
        assert!(refused(&["=x"]).contains("empty name"));
        assert!(refused(&["@"]).contains("names no file"));
        assert!(refused(&["text=a", "text=b"]).contains("given twice"));
        assert!(refused(&["text=a", "{}"]).contains("first"));
        assert!(refused(&["{", "text=a"]).contains("must be JSON"));
        let long = format!("{{\"a\":\"{}\" x}}", "é".repeat(300));
        assert!(refused(&[&long]).lines().all(|l| l.chars().count() < 120));
    }
}
