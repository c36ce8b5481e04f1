//! Reads a file of variables, as `--env-file` takes one: `KEY=VALUE` lines.
//! Knows nothing of what they are for.

use crate::error::{Error, Kind, Result};
use std::path::Path;

/// The variables of a file's text, in order. Empty lines and those that begin with `#` are
/// skipped, `export ` may stand before a name, and quotes around a value are taken off: within
/// double ones `\\n`, `\\t`, `\\"` and `\\\\` are what they are in a shell's `$'…'`. Nothing is expanded.
///
/// # Errors
/// `Usage` with the file and every line that cannot be read.
pub fn parse(text: &str, path: &Path) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    let mut wrong = Vec::new();
    for (at, line) in text.strip_prefix('\u{feff}').unwrap_or(text).lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let assignment = line.strip_prefix("export ").unwrap_or(line);
        let pair = assignment.split_once('=').map(|(name, value)| (name.trim(), value.trim()));
        match pair {
            Some((name, value)) if is_name(name) => match unquoted(value) {
                Some(value) => found.push((name.to_owned(), value)),
                None => wrong.push(format!("{}:{}: a quote is not closed", path.display(), at + 1)),
            },
            // The line itself may hold a secret, so it is not shown.
            _ => wrong.push(format!("{}:{}: expected KEY=VALUE", path.display(), at + 1)),
        }
    }
    match wrong.is_empty() {
        true => Ok(found),
        false => Err(Error::new(Kind::Usage, wrong.join("\n"))),
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(char::is_whitespace)
}

/// The value without its quotes and without a comment behind it; nothing when a quote stays open.
fn unquoted(value: &str) -> Option<String> {
    let mut chars = value.chars();
    match chars.next() {
        Some('\'') => chars.as_str().split_once('\'').map(|(inside, _)| inside.to_owned()),
        Some('"') => {
            let mut out = String::new();
            loop {
                match chars.next()? {
                    '"' => return Some(out),
                    '\\' => out.push(match chars.next()? {
                        'n' => '\n',
                        't' => '\t',
                        other => other,
                    }),
                    c => out.push(c),
                }
            }
        }
        _ => Some(value.split_once(" #").map_or(value, |(value, _)| value).trim_end().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_people_write_them() {
        let text = "\u{feff}# first\r\nA=1\n\nexport B = two words # and why\nC='a # \\n'\nD=\"x\\ny \\\"q\\\"\"\nE=\nF=a=b\n";
        let pairs = parse(text, Path::new("e")).unwrap();
        let shown: Vec<String> = pairs.iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(shown, ["A=1", "B=two words", "C=a # \\n", "D=x\ny \"q\"", "E=", "F=a=b"]);
        let e = parse("A\nB=1\n=2\nC=\"x\n", Path::new("/e")).unwrap_err();
        assert_eq!(e.exit_code(), 2);
        assert_eq!(
            e.message(),
            "/e:1: expected KEY=VALUE\n/e:3: expected KEY=VALUE\n/e:4: a quote is not closed"
        );
    }
}
