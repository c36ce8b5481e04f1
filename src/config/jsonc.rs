//! Reads JSON with comments, trailing commas and a byte-order mark, and keeps
//! the line of every value. Knows nothing of what the document means.

use super::node::{Document, Item, Node, Tree};
use crate::error::{Error, Kind, Result};
use crate::settings::At;
use serde_json::Number;
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

/// How deep a document may be nested: deeper than any real one, and shallow
/// enough for the smallest thread's stack.
const MAX_DEPTH: usize = 64;

/// From how many members on an object's keys are looked up in a hash table:
/// below that a look at each is faster.
const HASHED: usize = 16;

/// Parses a document.
///
/// # Errors
/// `Config`: `path:line:column: what is wrong`, then the line and a caret under the place.
pub fn parse(text: &str, path: &Path) -> Result<Document> {
    let Tree { root, duplicates } = tree(text, path)?;
    Ok(Document { value: root.to_value(), lines: root.lines(), duplicates })
}

/// As [`parse`], without a copy of every text.
pub(super) fn tree<'a>(text: &'a str, path: &Path) -> Result<Tree<'a>> {
    let mut parser =
        Parser { text, bytes: text.as_bytes(), at: 0, line: 1, counted: (0, 0), duplicates: Vec::new() };
    if text.starts_with('\u{feff}') {
        parser.at = 3;
        parser.counted = (3, 0);
    }
    match parser.document() {
        Ok(root) => Ok(Tree { root, duplicates: parser.duplicates }),
        Err(fault) => Err(show(text, path, &fault)),
    }
}

/// What is wrong, and at which byte.
struct Fault {
    at: usize,
    what: String,
}

/// The fault as an error that shows the line.
fn show(text: &str, path: &Path, fault: &Fault) -> Error {
    let at = fault.at.min(text.len());
    let start = text[..at].rfind('\n').map_or(0, |i| i + 1);
    let end = text[at..].find('\n').map_or(text.len(), |i| at + i);
    let number = text[..start].matches('\n').count() + 1;
    let before = text[start..at].trim_start_matches('\u{feff}');
    let column = before.chars().count() + 1;
    let shown = text[start..end].trim_start_matches('\u{feff}').trim_end_matches('\r');
    // A minified file has one endless line: show a window of it around the place.
    let skip = column.saturating_sub(WINDOW / 2 + 1);
    let window: String = shown.chars().skip(skip).take(WINDOW).map(plain).collect();
    let pad: String = before.chars().skip(skip).map(|_| ' ').collect();
    let gutter = format!("{number} | ");
    let message = format!(
        "{}:{number}:{column}: {}\n  {gutter}{window}\n  {}{pad}^",
        path.display(),
        fault.what,
        " ".repeat(gutter.len())
    );
    Error::new(Kind::Config, message)
}

/// How many characters of a line are shown.
const WINDOW: usize = 100;

/// A character that takes one column and does nothing to a terminal.
fn plain(c: char) -> char {
    if c.is_control() { ' ' } else { c }
}

struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    line: u32,
    /// A byte of the current line, and how many characters of the line come before it.
    counted: (usize, u32),
    duplicates: Vec<(String, At)>,
}

type Parsed<T> = std::result::Result<T, Fault>;

impl<'a> Parser<'a> {
    fn fail<T>(&self, what: impl Into<String>) -> Parsed<T> {
        Err(Fault { at: self.at, what: what.into() })
    }

    /// Where the next byte is. Each character is counted once, however many places a line has.
    fn place(&mut self) -> At {
        let (from, before) = self.counted;
        let column = before + self.text[from..self.at].chars().count() as u32;
        self.counted = (self.at, column);
        At { line: self.line, column: column + 1 }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn document(&mut self) -> Parsed<Node<'a>> {
        self.blank()?;
        if self.peek().is_none() {
            return self.fail("the file is empty; the least is {}");
        }
        let out = self.value(0)?;
        self.blank()?;
        match self.peek() {
            None => Ok(out),
            Some(_) => self.fail("expected the end of the file"),
        }
    }

    /// Skips white space and comments, counting lines.
    fn blank(&mut self) -> Parsed<()> {
        loop {
            match self.peek() {
                Some(b'\n') => {
                    self.line += 1;
                    self.at += 1;
                    self.counted = (self.at, 0);
                }
                Some(b' ' | b'\t' | b'\r') => self.at += 1,
                Some(b'/') if self.bytes.get(self.at + 1) == Some(&b'/') => {
                    let rest = &self.bytes[self.at..];
                    self.at += rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
                }
                Some(b'/') if self.bytes.get(self.at + 1) == Some(&b'*') => {
                    let Some(length) = self.text[self.at + 2..].find("*/") else {
                        return self.fail("this comment is never closed");
                    };
                    let body = &self.bytes[self.at..self.at + 2 + length];
                    self.line += body.iter().filter(|b| **b == b'\n').count() as u32;
                    if let Some(end) = body.iter().rposition(|b| *b == b'\n') {
                        self.counted = (self.at + end + 1, 0);
                    }
                    self.at += length + 4;
                }
                _ => return Ok(()),
            }
        }
    }

    fn value(&mut self, depth: usize) -> Parsed<Node<'a>> {
        let at = self.place();
        let item = match self.peek() {
            Some(b'{' | b'[') if depth >= MAX_DEPTH => {
                return self.fail(format!("nested deeper than {MAX_DEPTH} levels"));
            }
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.list(depth)?,
            Some(b'"') => Item::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => Item::Number(self.number()?),
            Some(b'\'') => return self.fail("texts are written in double quotes"),
            Some(c) if c.is_ascii_alphabetic() => {
                let rest = &self.bytes[self.at..];
                let length = rest.iter().position(|b| !b.is_ascii_alphanumeric()).unwrap_or(rest.len());
                let item = match &rest[..length] {
                    b"true" => Item::Bool(true),
                    b"false" => Item::Bool(false),
                    b"null" => Item::Null,
                    _ => return self.fail("expected a value; texts are written in double quotes"),
                };
                self.at += length;
                item
            }
            Some(_) => return self.fail("expected a value"),
            None => return self.fail("the file ends where a value is expected"),
        };
        Ok(Node { item, at })
    }

    fn object(&mut self, depth: usize) -> Parsed<Item<'a>> {
        let opened = self.at;
        let mut members: Vec<(Cow<'a, str>, Node<'a>)> = Vec::new();
        let mut index: HashMap<Cow<'a, str>, usize> = HashMap::new();
        self.at += 1;
        loop {
            self.blank()?;
            match self.peek() {
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Item::Object(members));
                }
                Some(b'"') => {}
                None => return self.unclosed(opened, "{"),
                Some(b',') => return self.fail("expected a key before the comma"),
                Some(_) => return self.fail("expected a key in double quotes, or }"),
            }
            let at = self.place();
            let key = self.string()?;
            self.blank()?;
            if self.peek() != Some(b':') {
                return self.fail("expected : after the key");
            }
            self.at += 1;
            self.blank()?;
            let node = Node { at, ..self.value(depth + 1)? };
            if members.len() == HASHED {
                index = members.iter().enumerate().map(|(i, (key, _))| (key.clone(), i)).collect();
            }
            let same = if members.len() < HASHED {
                members.iter().position(|(other, _)| *other == key)
            } else {
                index.get(&key).copied()
            };
            match same {
                Some(i) => {
                    self.duplicates.push((key.into_owned(), at));
                    members[i].1 = node;
                }
                None => {
                    if members.len() >= HASHED {
                        index.insert(key.clone(), members.len());
                    }
                    members.push((key, node));
                }
            }
            self.separator(opened, b'}', "{")?;
        }
    }

    fn list(&mut self, depth: usize) -> Parsed<Item<'a>> {
        let opened = self.at;
        let mut list = Vec::new();
        self.at += 1;
        loop {
            self.blank()?;
            match self.peek() {
                Some(b']') => {
                    self.at += 1;
                    return Ok(Item::List(list));
                }
                None => return self.unclosed(opened, "["),
                Some(_) => {}
            }
            list.push(self.value(depth + 1)?);
            self.separator(opened, b']', "[")?;
        }
    }

    /// A comma, or the closing bracket, which is left to the caller.
    fn separator(&mut self, opened: usize, close: u8, open: &str) -> Parsed<()> {
        let end = self.at;
        self.blank()?;
        match self.peek() {
            Some(b',') => self.at += 1,
            Some(c) if c == close => {}
            None => return self.unclosed(opened, open),
            // The comma belongs behind the value, not before what follows it.
            Some(_) => {
                return Err(Fault { at: end, what: format!("expected , or {} here", char::from(close)) });
            }
        }
        Ok(())
    }

    fn unclosed<T>(&self, opened: usize, open: &str) -> Parsed<T> {
        Err(Fault { at: opened, what: format!("this {open} is never closed") })
    }

    fn number(&mut self) -> Parsed<Number> {
        let rest = &self.text[self.at..];
        let length = rest
            .bytes()
            .position(|b| !matches!(b, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'))
            .unwrap_or(rest.len());
        match serde_json::from_str::<Number>(&rest[..length]) {
            Ok(number) => {
                // Serde's quick way of reading a fraction may end at its neighbour.
                let exact = if number.is_f64() { rest[..length].parse().ok() } else { None };
                self.at += length;
                Ok(exact.and_then(Number::from_f64).unwrap_or(number))
            }
            Err(_) => {
                let shown: String = rest[..length].chars().take(WINDOW).collect();
                self.fail(format!("\"{shown}\" is not a number"))
            }
        }
    }

    fn string(&mut self) -> Parsed<Cow<'a, str>> {
        let opened = self.at;
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = &self.bytes[self.at..];
            let Some(plain) = rest.iter().position(|b| matches!(b, b'"' | b'\\' | 0..=0x1f)) else {
                return Err(Fault { at: opened, what: "this text is never closed".into() });
            };
            let piece = &self.text[self.at..self.at + plain];
            self.at += plain;
            match rest[plain] {
                b'"' => {
                    self.at += 1;
                    if out.is_empty() {
                        return Ok(Cow::Borrowed(piece));
                    }
                    out.push_str(piece);
                    return Ok(Cow::Owned(out));
                }
                b'\\' => {
                    out.push_str(piece);
                    self.escape(&mut out)?;
                }
                b'\n' | b'\r' => {
                    return Err(Fault { at: opened, what: "this text is not closed on its line".into() });
                }
                _ => return self.fail("a control character in a text must be written as \\u00XX"),
            }
        }
    }

    fn escape(&mut self, out: &mut String) -> Parsed<()> {
        let plain = match self.bytes.get(self.at + 1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(out),
            _ => return self.fail("unknown escape; a backslash itself is written \\\\"),
        };
        out.push(plain);
        self.at += 2;
        Ok(())
    }

    /// `\uXXXX`, or two of them for a character beyond the basic plane.
    fn unicode(&mut self, out: &mut String) -> Parsed<()> {
        let unit = |at: usize| -> Option<u32> {
            let digits = self.bytes.get(at + 2..at + 6)?;
            if self.bytes.get(at..at + 2)? != b"\\u" || !digits.iter().all(u8::is_ascii_hexdigit) {
                return None;
            }
            u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
        };
        let Some(first) = unit(self.at) else {
            return self.fail("\\u needs four hexadecimal digits");
        };
        let (code, length) = match (first, unit(self.at + 6)) {
            (0xd800..=0xdbff, Some(second @ 0xdc00..=0xdfff)) => {
                (0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00), 12)
            }
            _ => (first, 6),
        };
        match char::from_u32(code) {
            Some(c) => out.push(c),
            None => return self.fail("half of a surrogate pair is not a character"),
        }
        self.at += length;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ok(text: &str) -> Document {
        parse(text, Path::new("f")).unwrap()
    }
    fn fault(text: &str) -> String {
        parse(text, Path::new("f")).unwrap_err().message().to_owned()
    }

    #[test]
    fn comments_trailing_commas_and_a_mark_are_read() {
        let doc = ok(
            "\u{feff}// a\n{ /* b\n */ \"x\": [1, 2.5e3, -0, ], // c\n \"y\": {\"z\": null,},\n}\n/* end */",
        );
        let (value, lines) = (doc.value, doc.lines);
        assert_eq!(value["x"], json!([1, 2500.0, -0.0]));
        assert_eq!(value["y"], json!({"z": null}));
        assert_eq!((lines.at.line, lines.children[0].at.line), (2, 3));
        assert_eq!(lines.children[1].children[0].at.line, 4);
    }

    #[test]
    fn texts_are_unescaped() {
        assert_eq!(
            ok(r#""a\n\"\\\/\u00e9\ud83d\ude00 // no comment""#).value,
            json!("a\n\"\\/é😀 // no comment")
        );
        assert_eq!(ok("\"ü\"").value, json!("ü"));
    }

    #[test]
    fn a_key_given_twice_counts_once_and_is_reported() {
        let doc = ok("{\"a\": 1,\n\"b\": 2,\n\"a\": {\"c\":\n 3}}");
        assert_eq!(doc.value, json!({"a": {"c": 3}, "b": 2}));
        assert_eq!(doc.duplicates, [("a".to_owned(), At { line: 3, column: 1 })]);
        let lines = doc.lines;
        assert_eq!((lines.children[0].at.line, lines.children[1].at.line), (3, 2));
        // Many keys are found by another way than few.
        let many: String = (0..40).map(|i| format!("\"k{}\": {i},\n", i % 30)).collect();
        let doc = parse(&format!("{{{many}}}"), Path::new("f")).map(|d| (d.value, d.duplicates));
        let (value, duplicates) = doc.unwrap();
        assert_eq!(value.as_object().unwrap().len(), 30);
        assert_eq!((&value["k9"], &value["k10"]), (&json!(39), &json!(10)));
        assert_eq!(
            (duplicates.len(), duplicates[0].clone()),
            (10, ("k0".to_owned(), At { line: 31, column: 1 }))
        );
    }

    #[test]
    fn a_fault_shows_its_line_and_place() {
        assert_eq!(
            fault("{\n  \"a\": 1\n  \"b\": 2\n}"),
            "f:2:9: expected , or } here\n  2 |   \"a\": 1\n              ^"
        );
        assert_eq!(
            fault("{\"ü\": x}"),
            "f:1:7: expected a value; texts are written in double quotes\n  1 | {\"ü\": x}\n            ^"
        );
        let long = format!("[{}x]", "1,".repeat(5000));
        let shown = fault(&long);
        assert!(shown.starts_with("f:1:10002: "), "{shown}");
        assert!(shown.lines().all(|l| l.len() < 130), "{shown}");
        let caret = shown.lines().last().unwrap().find('^').unwrap();
        assert_eq!(shown.lines().nth(1).unwrap().as_bytes()[caret], b'x');
    }

    #[test]
    fn each_fault_has_its_own_words() {
        for (text, part) in [
            ("", "f:1:1: the file is empty"),
            (" // only\n", "f:2:1: the file is empty"),
            ("{", "f:1:1: this { is never closed"),
            ("[1,", "f:1:1: this [ is never closed"),
            ("{\"a\"}", "f:1:5: expected : after"),
            ("{\"a\":}", "f:1:6: expected a value"),
            ("{\"a\":", "ends where a value"),
            ("{a: 1}", "f:1:2: expected a key in double quotes"),
            ("{,}", "f:1:2: expected a key before the comma"),
            ("{'a': 1}", "double quotes"),
            ("['a']", "f:1:2: texts are written in double quotes"),
            ("[1 2]", "f:1:3: expected , or ] here"),
            ("[1}", "f:1:3: expected , or ] here"),
            ("[,]", "f:1:2: expected a value"),
            ("{} {}", "f:1:4: expected the end"),
            ("\"abc", "f:1:1: this text is never closed"),
            ("[\"abc\n\"]", "f:1:2: this text is not closed on its line"),
            ("\"a\tb\"", "f:1:3: a control character"),
            ("\"\\x\"", "f:1:2: unknown escape"),
            ("\"\\u12g4\"", "four hexadecimal"),
            ("\"\\ud800\"", "surrogate"),
            ("/* a", "f:1:1: this comment is never closed"),
            ("01", "\"01\" is not a number"),
            ("1.", "is not a number"),
            ("-", "is not a number"),
            ("1e999", "is not a number"),
            ("NaN", "expected a value"),
            ("tru", "expected a value"),
            ("/", "expected a value"),
        ] {
            let message = fault(text);
            assert!(message.contains(part), "{text}: {message}");
        }
        assert!(fault(&"[".repeat(100_000)).contains("nested deeper than 64"));
        assert!(
            parse(&format!("{}{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH)), Path::new("f")).is_ok()
        );
    }
    #[test]
    #[allow(clippy::disallowed_methods, reason = "the stack is what is tested")]
    fn the_deepest_document_fits_the_stack_of_a_small_thread() {
        let text = format!("{}1{}", "{\"a\": ".repeat(MAX_DEPTH), "}".repeat(MAX_DEPTH));
        let small = std::thread::Builder::new().stack_size(256 << 10);
        let parsed = small.spawn(move || {
            let document = parse(&text, Path::new("f")).unwrap();
            (document.value, document.lines)
        });
        assert!(parsed.unwrap().join().unwrap().0["a"]["a"]["a"].is_object());
    }
}
