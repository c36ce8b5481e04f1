//! Text that cannot break out of where it is put: string literals, property
//! names and comments of TypeScript, from whatever a server sent.

use crate::catalog::names::is_member;
use crate::catalog::rows::is_unseen;

/// A string literal. Quotes, line ends (U+2028 and U+2029 too) and everything that
/// steers a terminal or turns the direction of text are written as escapes.
pub fn literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_unseen(c) => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A number literal: a whole number without `.0`.
pub fn number(n: &serde_json::Number) -> String {
    match n.as_f64() {
        Some(f) if n.is_f64() && f.fract() == 0.0 && f.abs() < 1e15 => format!("{}", f as i64),
        _ => n.to_string(),
    }
}

/// A property's name, in quotes where it needs them.
pub fn property(name: &str) -> String {
    if is_member(name) { name.to_owned() } else { literal(name) }
}

/// A method's name: `new(…)` alone would be a constructor.
pub fn method(name: &str) -> String {
    if name == "new" { literal(name) } else { property(name) }
}

/// The text as one line for a `//` comment or the inside of a `/* */` one.
pub fn comment(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split(|c: char| c.is_whitespace() || is_unseen(c)).filter(|w| !w.is_empty()) {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    defused(&out)
}

/// The lines of a text for a `/** */` comment: without space at their ends, without
/// control characters, no two empty ones in a row.
pub fn comment_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let plain = text.replace("\r\n", "\n");
    for line in plain.split(['\n', '\r', '\u{2028}', '\u{2029}', '\u{b}', '\u{c}', '\u{85}']) {
        let seen: String =
            line.chars().map(|c| if c == '\t' { ' ' } else { c }).filter(|c| !is_unseen(*c)).collect();
        let line = defused(seen.trim_end());
        if !(line.is_empty() && lines.last().is_none_or(String::is_empty)) {
            lines.push(line);
        }
    }
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// Without the end of a comment, and without words that order the compiler about (`@ts-ignore`).
fn defused(text: &str) -> String {
    text.replace("*/", "*\\/").replace("@ts-", "@ ts-")
}

/// A doc comment of these lines, each line of it (the last one too) with this
/// indentation before and a line end after it; nothing when there are no lines.
pub fn doc(lines: &[String], indent: &str, out: &mut String) {
    match lines {
        [] => {}
        [line] => {
            out.push_str(&format!("{indent}/** {line} */\n"));
        }
        _ => {
            out.push_str(&format!("{indent}/**\n"));
            for line in lines {
                out.push_str(format!("{indent} * {line}").trim_end());
                out.push('\n');
            }
            out.push_str(&format!("{indent} */\n"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_hold_anything() {
        assert_eq!(literal("a\"b\\c\nd\u{2028}e\u{1b}"), r#""a\"b\\c\nd\u2028e\u001b""#);
        assert_eq!(literal("`${x}` größe 😀"), "\"`${x}` größe 😀\"");
        assert_eq!(number(&serde_json::Number::from_f64(1.0).unwrap()), "1");
        assert_eq!(number(&serde_json::Number::from_f64(-2.5e30).unwrap()), "-2.5e+30");
        assert_eq!(property("a-b"), "\"a-b\"");
        assert_eq!((property("class"), method("new")), ("class".into(), "\"new\"".into()));
        assert_eq!((property(""), property("1x")), ("\"\"".into(), "\"1x\"".into()));
    }

    #[test]
    fn comments_cannot_be_closed_from_inside() {
        assert_eq!(comment("a */ b\n c\u{2028}d **/"), "a *\\/ b c d **\\/");
        assert_eq!(comment("@ts-ignore"), "@ ts-ignore");
        assert_eq!(comment_lines("one \r\n\r\n\n\ttwo*/\r3\n\n"), ["one", "", " two*\\/", "3"]);
        assert!(comment_lines(" \n\t\n").is_empty());
        let mut out = String::new();
        doc(&comment_lines("a\n\nb"), "  ", &mut out);
        assert_eq!(out, "  /**\n   * a\n   *\n   * b\n   */\n");
    }

    #[test]
    fn a_removed_character_cannot_make_a_comment_end() {
        // Dropping what is unseen must not join a star and a slash.
        assert_eq!(comment_lines("a *\u{200b}/ b"), ["a *\\/ b"]);
        assert_eq!(comment("a *\u{200b}/ b"), "a * / b");
    }
}
