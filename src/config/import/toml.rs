//! Reads TOML as far as a host's configuration uses it: tables, dotted keys,
//! all kinds of text, numbers, booleans, lists, inline tables. Dates become
//! texts. Knows nothing of what the tables mean.

use serde_json::{Map, Number, Value};

/// How deep lists and inline tables may be nested.
const MAX_DEPTH: usize = 100;

/// Reads a document; the message of a fault begins with its line.
pub(in crate::config) fn parse(text: &str) -> Result<Map<String, Value>, String> {
    let mut reader = Reader { text, at: 0, depth: 0 };
    let mut root = Map::new();
    // Where the keys that come belong: below the last header.
    let mut header: Vec<String> = Vec::new();
    reader.document(&mut root, &mut header).map_err(|what| {
        let line = text[..reader.at.min(text.len())].matches('\n').count() + 1;
        format!("line {line}: {what}")
    })?;
    Ok(root)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }
    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }
    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }
    fn take(&mut self, wanted: &str) -> bool {
        let found = self.rest().starts_with(wanted);
        if found {
            self.at += wanted.len();
        }
        found
    }
    fn want(&mut self, wanted: &str) -> Result<(), String> {
        if self.take(wanted) { Ok(()) } else { Err(format!("expected {wanted}")) }
    }
    fn blanks(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.at += 1;
        }
    }
    /// Blanks, line ends and comments.
    fn space(&mut self) {
        loop {
            match self.peek() {
                Some(' ' | '\t' | '\r' | '\n') => self.at += 1,
                Some('#') => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
                Some('\u{feff}') if self.at == 0 => self.at += '\u{feff}'.len_utf8(),
                _ => return,
            }
        }
    }
    /// The rest of a line, which must be empty.
    fn line_end(&mut self) -> Result<(), String> {
        self.blanks();
        match self.peek() {
            None | Some('\n' | '#') => Ok(()),
            Some('\r') if self.rest().starts_with("\r\n") => Ok(()),
            Some(c) => Err(format!("did not expect {c:?} here")),
        }
    }

    fn document(&mut self, root: &mut Map<String, Value>, header: &mut Vec<String>) -> Result<(), String> {
        loop {
            self.space();
            if self.peek().is_none() {
                return Ok(());
            }
            if self.take("[[") {
                *header = self.key()?;
                self.want("]]")?;
                let (last, above) = header.split_last().ok_or("an empty header")?;
                let list = table(root, above)?.entry(last.as_str()).or_insert_with(|| Value::Array(vec![]));
                let list = list.as_array_mut().ok_or_else(|| format!("{last} is no list of tables"))?;
                list.push(Value::Object(Map::new()));
            } else if self.take("[") {
                *header = self.key()?;
                self.want("]")?;
                table(root, header)?;
            } else {
                let key = self.key()?;
                self.want("=")?;
                self.blanks();
                let value = self.value()?;
                put(table(root, header)?, &key, value)?;
            }
            self.line_end()?;
        }
    }

    /// A dotted key, blanks around it included.
    fn key(&mut self) -> Result<Vec<String>, String> {
        let mut parts = Vec::new();
        loop {
            self.blanks();
            parts.push(match self.peek() {
                Some('"') => {
                    self.at += 1;
                    self.basic(false)?
                }
                Some('\'') => {
                    self.at += 1;
                    self.literal(false)?
                }
                _ => {
                    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                    let length = self.rest().find(|c| !bare(c)).unwrap_or(self.rest().len());
                    if length == 0 {
                        return Err("expected a key".into());
                    }
                    let part = self.rest()[..length].to_owned();
                    self.at += length;
                    part
                }
            });
            self.blanks();
            if !self.take(".") {
                return Ok(parts);
            }
        }
    }

    fn value(&mut self) -> Result<Value, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("is nested deeper than {MAX_DEPTH}"));
        }
        let value = match self.peek() {
            _ if self.take("\"\"\"") => self.basic(true)?.into(),
            _ if self.take("'''") => self.literal(true)?.into(),
            _ if self.take("\"") => self.basic(false)?.into(),
            _ if self.take("'") => self.literal(false)?.into(),
            _ if self.take("[") => self.list()?,
            _ if self.take("{") => self.inline()?,
            _ => self.word()?,
        };
        self.depth -= 1;
        Ok(value)
    }

    fn list(&mut self) -> Result<Value, String> {
        let mut all = Vec::new();
        loop {
            self.space();
            if self.take("]") {
                return Ok(all.into());
            }
            all.push(self.value()?);
            self.space();
            if !self.take(",") {
                self.want("]")?;
                return Ok(all.into());
            }
        }
    }

    fn inline(&mut self) -> Result<Value, String> {
        let mut all = Map::new();
        loop {
            self.space();
            if self.take("}") {
                return Ok(all.into());
            }
            let key = self.key()?;
            self.want("=")?;
            self.blanks();
            let value = self.value()?;
            put(&mut all, &key, value)?;
            self.space();
            if !self.take(",") {
                self.want("}")?;
                return Ok(all.into());
            }
        }
    }

    /// A number, a boolean, or a date, which stays a text.
    fn word(&mut self) -> Result<Value, String> {
        let end = |c: char| matches!(c, ',' | ']' | '}' | '#' | '\n' | '\r');
        let length = self.rest().find(end).unwrap_or(self.rest().len());
        let word = self.rest()[..length].trim_end();
        if word.is_empty() {
            return Err("expected a value".into());
        }
        self.at += word.len();
        let plain = word.replace('_', "");
        let digits = plain.trim_start_matches(['+', '-']);
        let radix = |prefix: &str, radix: u32| {
            digits.strip_prefix(prefix).and_then(|d| i64::from_str_radix(d, radix).ok()).map(Value::from)
        };
        let number = match word {
            "true" => return Ok(true.into()),
            "false" => return Ok(false.into()),
            _ => radix("0x", 16)
                .or_else(|| radix("0o", 8))
                .or_else(|| radix("0b", 2))
                .or_else(|| plain.parse::<i64>().ok().map(Value::from))
                .or_else(|| Number::from_f64(plain.parse().ok()?).map(Value::from)),
        };
        match number {
            Some(number) => Ok(number),
            // A date has its year first and dashes or colons in it.
            None if word.starts_with(|c: char| c.is_ascii_digit()) && word.contains(['-', ':']) => {
                Ok(word.into())
            }
            None => Err(format!("{word:?} is no value; a text needs quotes")),
        }
    }

    /// A text between single quotes, the first taken already.
    fn literal(&mut self, long: bool) -> Result<String, String> {
        let quote = if long { "'''" } else { "'" };
        if long && !self.take("\r\n") {
            self.take("\n");
        }
        let end = self.rest().find(quote).ok_or_else(|| format!("a {quote} is never closed"))?;
        // Up to two quotes may stand before the closing three.
        let more =
            if long { self.rest()[end + 3..].bytes().take(2).take_while(|b| *b == b'\'').count() } else { 0 };
        let text = self.rest()[..end + more].to_owned();
        if !long && text.contains('\n') {
            return Err("a ' is never closed".into());
        }
        self.at += end + more + quote.len();
        Ok(text)
    }

    /// A text between double quotes, the first taken already.
    fn basic(&mut self, long: bool) -> Result<String, String> {
        if long && !self.take("\r\n") {
            self.take("\n");
        }
        let mut out = String::new();
        loop {
            if long && self.rest().starts_with("\"\"\"") {
                self.at += 3;
                while self.take("\"") {
                    out.push('"');
                }
                return Ok(out);
            }
            match self.next().ok_or("a \" is never closed")? {
                '"' if !long => return Ok(out),
                '\n' if !long => return Err("a \" is never closed".into()),
                '\\' => self.escape(long, &mut out)?,
                c => out.push(c),
            }
        }
    }

    fn escape(&mut self, long: bool, out: &mut String) -> Result<(), String> {
        let c = self.next().ok_or("a text ends in a backslash")?;
        let mut code = |digits: usize| {
            let hex = self.rest().get(..digits).ok_or("an escape is cut short")?;
            self.at += digits;
            let code = u32::from_str_radix(hex, 16).ok().and_then(char::from_u32);
            code.ok_or_else(|| format!("{hex} is no character"))
        };
        out.push(match c {
            'b' => '\u{8}',
            't' => '\t',
            'n' => '\n',
            'f' => '\u{c}',
            'r' => '\r',
            'e' => '\u{1b}',
            '"' | '\\' => c,
            'x' => code(2)?,
            'u' => code(4)?,
            'U' => code(8)?,
            // A backslash at the end of a line joins it with the next.
            ' ' | '\t' | '\r' | '\n' if long => {
                while self.peek().is_some_and(char::is_whitespace) {
                    self.next();
                }
                return Ok(());
            }
            c => return Err(format!("\\{c} is no escape")),
        });
        Ok(())
    }
}

/// The table at a path, made where it is not there; of a list of tables the last.
fn table<'m>(
    root: &'m mut Map<String, Value>,
    path: &[String],
) -> Result<&'m mut Map<String, Value>, String> {
    let mut at = root;
    for key in path {
        let next = at.entry(key.as_str()).or_insert_with(|| Value::Object(Map::new()));
        let next = match next {
            Value::Array(list) => list.last_mut().ok_or_else(|| format!("{key} is an empty list"))?,
            other => other,
        };
        at = next.as_object_mut().ok_or_else(|| format!("{key} is a value already, and no table"))?;
    }
    Ok(at)
}

fn put(table_at: &mut Map<String, Value>, key: &[String], value: Value) -> Result<(), String> {
    let (last, above) = key.split_last().ok_or("an empty key")?;
    let at = table(table_at, above)?;
    if at.contains_key(last) {
        return Err(format!("{last} is given twice"));
    }
    at.insert(last.clone(), value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_codex_configuration_is_read() {
        let text = r#"
# Codex
model = "o3"            # a comment
notify = ["a", 'b',]

[mcp_servers.files]
command = "npx"
args = [
  "-y", # yes
  "C:\\x",
]
env = { "A" = "1", B.c = 'two' }
startup_timeout_sec = 20
tool_timeout_sec = 1.5
enabled = false

[mcp_servers."odd name".env]
KEY = """
long
 \
   text"""
RAW = '''a'b'''

[projects."/home/u/p"]
trust_level = "trusted"
when = 2026-01-02T03:04:05Z

[[list]]
a = 0x1F
[[list]]
a = 1_000
b = -2.5e3
"#;
        let read = Value::Object(parse(text).unwrap());
        assert_eq!(
            read,
            json!({
                "model": "o3",
                "notify": ["a", "b"],
                "mcp_servers": {
                    "files": {
                        "command": "npx", "args": ["-y", "C:\\x"], "env": {"A": "1", "B": {"c": "two"}},
                        "startup_timeout_sec": 20, "tool_timeout_sec": 1.5, "enabled": false,
                    },
                    "odd name": {"env": {"KEY": "long\n text", "RAW": "a'b"}},
                },
                "projects": {"/home/u/p": {"trust_level": "trusted", "when": "2026-01-02T03:04:05Z"}},
                "list": [{"a": 31}, {"a": 1000, "b": -2500.0}],
            })
        );
        assert_eq!(Value::Object(parse("\u{feff}a = \"\\u00e9\\n\"\r\n").unwrap()), json!({"a": "é\n"}));
        assert!(parse("").unwrap().is_empty());
    }

    #[test]
    fn a_fault_names_its_line() {
        for (text, part) in [
            ("a = 1\nb = ", "line 2: expected a value"),
            ("a = 1\na = 2", "line 2: a is given twice"),
            ("a = \"x", "line 1: a \" is never closed"),
            ("a = yes", "is no value"),
            ("[a\n", "expected ]"),
            ("a = 1 2", "is no value"),
            ("a = \"x\" y", "did not expect 'y'"),
            ("a = \"\\q\"", "is no escape"),
            ("a = [1, 2", "expected ]"),
            ("= 1", "expected a key"),
            ("a = 1\n[a]", "is a value already"),
            ("a = '''x", "never closed"),
            (&format!("a = {}", "[".repeat(200)), "deeper"),
        ] {
            let message = parse(text).unwrap_err();
            assert!(message.contains(part), "{text:?}: {message}");
        }
    }
}
