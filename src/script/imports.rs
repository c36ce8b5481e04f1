//! Turns the static imports of inline code into dynamic ones that stand before
//! it, so that code with imports may still `return`. Reads what a scan found;
//! knows nothing of runtimes.

use super::scan::{Import, scan};
use serde_json::Value;
use std::fmt::Write;

/// The names that an import binds.
#[derive(Default)]
struct Names {
    /// Of the whole module.
    all: Option<String>,
    /// What the module calls it, and what it is called here.
    each: Vec<(String, String)>,
}

/// The code with blanks for its imports, and the one line of JavaScript that does what they do, in their order.
/// `$mcpx` in it is a function that checks a module for names. Nothing when the code has no imports, or cannot do
/// without being a module: because it exports, or uses `import.meta`.
///
/// What differs from a static import: a name keeps the value that it has once its module has been loaded.
pub fn hoisted(code: &str) -> Option<(String, String)> {
    let found = scan(code);
    if !found.module || found.fixed || found.imports.is_empty() {
        return None;
    }
    let mut before = String::new();
    for import in &found.imports {
        before.push_str(&dynamic(code, import)?);
    }
    let mut rest = code.as_bytes().to_vec();
    for import in &found.imports {
        for byte in &mut rest[import.whole.clone()] {
            // Lines stay lines.
            if *byte != b'\n' && *byte != b'\r' {
                *byte = b' ';
            }
        }
    }
    Some((before, String::from_utf8(rest).ok()?))
}

/// The static imports of code on one line, and the code with blanks in their places; none when it is to stay a module.
pub fn parted(code: &str) -> (String, String) {
    let Some((_, rest)) = hoisted(code) else { return (String::new(), code.to_owned()) };
    let line = |import: &Import| {
        let text = without_comments(&code[import.whole.clone()]).replace(['\n', '\r'], " ");
        format!("{};", text.trim_end_matches(';'))
    };
    (scan(code).imports.iter().map(line).collect(), rest)
}

/// An import as statements; nothing when it has a form that is not known. One of types alone is empty.
fn dynamic(code: &str, import: &Import) -> Option<String> {
    let clause = without_comments(&code[import.clause.clone()]);
    let specifier = &code[import.specifier.clone()];
    // A text in single quotes is one in double quotes unless it has either, or escapes.
    let inside = &specifier[1..specifier.len() - 1];
    if inside.contains(['"', '\\', '\'']) {
        return None;
    }
    let specifier = Value::from(inside).to_string();
    let with = match &import.with {
        Some(range) => format!(",{{with:{}}}", without_comments(&code[range.clone()]).replace('\n', " ")),
        None => String::new(),
    };
    let module = format!("await import({specifier}{with})");
    let clause = clause.trim();
    if clause.is_empty() {
        return Some(format!("{module};"));
    }
    if is_of_types(clause) {
        return Some(String::new());
    }
    let names = names(clause)?;
    let wanted = Value::from_iter(names.each.iter().map(|(name, _)| Value::from(name.as_str())));
    let line = 1 + code[..import.whole.start].matches('\n').count();
    let checked = format!("$mcpx({module},{specifier},{wanted},{line})");
    let pattern = |names: &Names| {
        let mut out = String::from("{");
        for (name, local) in &names.each {
            let _ = write!(out, "{}:{local},", Value::from(name.as_str()));
        }
        out + "}"
    };
    Some(match &names.all {
        None => format!("const{}={checked};", pattern(&names)),
        Some(all) if names.each.is_empty() => format!("const {all}={checked};"),
        Some(all) => format!("const {all}={checked},{}={all};", pattern(&names)),
    })
}

/// `type …`, but not a default import that is called `type`.
fn is_of_types(clause: &str) -> bool {
    let Some(rest) = clause.strip_prefix("type") else { return false };
    let rest = rest.trim_start();
    !(rest.is_empty() || rest.starts_with(',')) && clause.as_bytes().get(4).is_some_and(|c| !is_word(*c))
}

fn is_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_' || c == b'$' || c >= 0x80
}

/// Reads `a, * as b` or `a, { b, c as d, "e" as f, type G }`.
fn names(clause: &str) -> Option<Names> {
    let mut names = Names::default();
    let (single, braced) = match clause.split_once('{') {
        Some((single, braced)) => (single.trim(), Some(braced.trim().strip_suffix('}')?)),
        None => (clause, None),
    };
    for part in single.split(',').map(str::trim).filter(|p| !p.is_empty()) {
        match part.strip_prefix('*') {
            Some(rest) => names.all = Some(identifier(rest.trim().strip_prefix("as")?.trim())?),
            None => names.each.push(("default".into(), identifier(part)?)),
        }
    }
    for part in braced.unwrap_or_default().split(',').map(str::trim).filter(|p| !p.is_empty()) {
        let words: Vec<&str> = part.split_whitespace().collect();
        match words.as_slice() {
            ["type", name] if *name != "as" => {}
            ["type", _, "as", _] => {}
            [name] => names.each.push(((*name).to_owned(), identifier(name)?)),
            [name, "as", local] => {
                let plain = name.trim_matches(['"', '\'']);
                if plain.len() == name.len() {
                    identifier(name)?;
                }
                names.each.push((plain.to_owned(), identifier(local)?));
            }
            _ => return None,
        }
    }
    Some(names)
}

fn identifier(text: &str) -> Option<String> {
    let ok = !text.is_empty() && text.bytes().all(is_word) && !text.as_bytes()[0].is_ascii_digit();
    ok.then(|| text.to_owned())
}

/// A clause has no texts in which comments could only seem to begin, or is not understood anyway.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("/*").into_iter().chain(rest.find("//")).min() {
        out.push_str(&rest[..at]);
        out.push(' ');
        let end = if rest[at..].starts_with("/*") { "*/" } else { "\n" };
        rest = rest[at..].find(end).map_or("", |i| &rest[at + i + end.len()..]);
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_become_statements_and_lines_stay() {
        for (code, before, rest) in [
            (
                "import { sep } from 'node:path'; return sep",
                "const{\"sep\":sep,}=$mcpx(await import(\"node:path\"),\"node:path\",[\"sep\"],1);",
                "                                 return sep",
            ),
            (
                "import a, { b as c,\n type T, d } from \"x\"\nreturn c",
                "const{\"default\":a,\"b\":c,\"d\":d,}=$mcpx(await import(\"x\"),\"x\",[\"default\",\"b\",\"d\"],1);",
                "                   \n                     \nreturn c",
            ),
            (
                "import * as n from 'x'\nn",
                "const n=$mcpx(await import(\"x\"),\"x\",[],1);",
                "                      \nn",
            ),
            (
                "1;import d, * as n from'x';2",
                "const n=$mcpx(await import(\"x\"),\"x\",[\"default\"],1),{\"default\":d,}=n;",
                "1;                         2",
            ),
            (
                "import 'x'; import type { T } from 'y'; 3",
                "await import(\"x\");",
                "                                        3",
            ),
            (
                "import j from './j.json' with { type: 'json' }\nj",
                "const{\"default\":j,}=$mcpx(await import(\"./j.json\",{with:{ type: 'json' }}),\"./j.json\",[\"default\"],1);",
                "                                              \nj",
            ),
            (
                "import /* all of it */ type from 'x'",
                "const{\"default\":type,}=$mcpx(await import(\"x\"),\"x\",[\"default\"],1);",
                "                                    ",
            ),
        ] {
            assert_eq!(hoisted(code), Some((before.to_owned(), rest.to_owned())), "{code}");
        }
        for code in [
            "return 1",
            "await import('x')",
            "import a from 'x'; export default a",
            "import a from 'x'; import.meta.url",
            "import a from 'x'; import b = require('c')",
            "import a from 'it\\'s'",
            "import defer * as n from 'x'",
        ] {
            assert_eq!(hoisted(code), None, "{code}");
        }
    }
}
