//! The names by which a program and a person reach servers and tools: JavaScript
//! identifiers for exact names, and the way back from what was typed to what was
//! meant. Knows nothing of configuration; callers pass the names.

use super::Tool;
use crate::error::{Error, Kind, Result};
use crate::util::{did_you_mean, nearest};
use std::collections::{HashMap, HashSet};

/// Words that JavaScript's strict mode does not accept as a binding, sorted.
pub const RESERVED: &[&str] = &[
    "Infinity",
    "NaN",
    "arguments",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "debugger",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "eval",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "function",
    "if",
    "implements",
    "import",
    "in",
    "instanceof",
    "interface",
    "let",
    "new",
    "null",
    "package",
    "private",
    "protected",
    "public",
    "return",
    "static",
    "super",
    "switch",
    "this",
    "throw",
    "true",
    "try",
    "typeof",
    "undefined",
    "var",
    "void",
    "while",
    "with",
    "yield",
];

/// What the generated client exports of its own; sorted.
pub const CLIENT_NAMES: &[&str] = &["ToolError", "args", "artifact", "emit", "log", "paths", "tools"];

/// Properties that JavaScript itself asks objects for, and calls: `await x` calls
/// `x.then`, `JSON.stringify(x)` calls `x.toJSON`. No namespace or tool is reached by
/// these; they get a `_` after them.
/// The same holds for what the client itself puts there: a server's resources and prompts.
pub const ASKED_FOR: &[&str] = &["then", "toJSON", "$resources", "$prompts"];

/// The name as a JavaScript binding: letters, digits, `_` and `$` stay, all else
/// becomes `_`; a leading digit gets `_` before it, and a reserved word or a name
/// of the client's own gets `_` after it. Never empty.
pub fn ident(name: &str) -> String {
    let mut out = member(name);
    if RESERVED.binary_search(&out.as_str()).is_ok() || CLIENT_NAMES.binary_search(&out.as_str()).is_ok() {
        out.push('_');
    }
    out
}

/// The name as a JavaScript property that needs no quotes: like [`ident`], but
/// reserved words stay as they are (`demo.delete(…)` is JavaScript), and only
/// [`ASKED_FOR`] get a `_` after them.
pub fn member(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 1);
    for c in name.chars() {
        let kept = if continues(c) { c } else { '_' };
        if out.is_empty() && !starts(kept) {
            out.push('_');
        }
        out.push(kept);
    }
    if out.is_empty() || ASKED_FOR.contains(&out.as_str()) {
        out.push('_');
    }
    out
}

/// Whether the text is an identifier as it stands (reserved words included).
pub fn is_member(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(starts) && chars.all(continues)
}

/// One [`ident`] for each name, in the list's order, no two alike. A name that is
/// its own identifier keeps it; of the others the first takes the plain form and
/// the next ones `_2`, `_3`, ….
pub fn unique_idents<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    unique(names, ident)
}

/// The same for [`member`]: how the tools of one server are called in a program.
pub fn unique_members<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    unique(names, member)
}

fn unique<'a>(names: impl IntoIterator<Item = &'a str>, form: fn(&str) -> String) -> Vec<String> {
    let names: Vec<&str> = names.into_iter().collect();
    let forms: Vec<String> = names.iter().map(|n| form(n)).collect();
    let mut taken = HashSet::with_capacity(names.len());
    let mut out = vec![String::new(); names.len()];
    // Names that need no change come first: a program that uses an exact name
    // must reach that very tool, whatever stands before it in the list.
    for (i, plain) in forms.iter().enumerate() {
        if plain == names[i] && taken.insert(plain.clone()) {
            out[i].clone_from(plain);
        }
    }
    let mut next: HashMap<&str, usize> = HashMap::new();
    for (i, plain) in forms.iter().enumerate() {
        if !out[i].is_empty() {
            continue;
        }
        let serial = next.entry(plain).or_insert(1);
        loop {
            let candidate = if *serial == 1 { plain.clone() } else { format!("{plain}_{serial}") };
            *serial += 1;
            if taken.insert(candidate.clone()) {
                out[i] = candidate;
                break;
            }
        }
    }
    out
}

/// Splits `namespace.tool` into the server's exact name and what is left for the
/// tool. Names with dots win over shorter ones; after exact names come
/// identifiers, then spellings that differ in case and punctuation alone.
/// Fails with [`Kind::Usage`] when a part is missing, [`Kind::NotFound`] when no server fits.
pub fn split_target(target: &str, servers: &[&str]) -> Result<(String, String)> {
    let dots: Vec<usize> = target.char_indices().filter(|&(_, c)| c == '.').map(|(i, _)| i).collect();
    let found = |at: usize, server: &str| Ok((server.to_owned(), target[at + 1..].to_owned()));
    let usable = || dots.iter().rev().copied().filter(|&at| at > 0 && at + 1 < target.len());
    for at in usable() {
        if let Some(server) = servers.iter().find(|s| **s == &target[..at]) {
            return found(at, server);
        }
    }
    for at in usable() {
        if let Ok(server) = find_server(&target[..at], servers) {
            return found(at, server);
        }
    }
    if let Ok(server) = find_server(target.trim_end_matches('.'), servers) {
        return Err(Error::new(Kind::Usage, format!("\"{target}\" names a namespace but no tool"))
            .hint(format!("write {server}.<tool>; `mcpx tools {server}` lists its tools"))
            .server(server));
    }
    match usable().next_back() {
        // The last of the reversed list: the first dot, before which a namespace without dots would stand.
        Some(at) => Err(no_server(&target[..at], servers)),
        None => {
            let error = Error::new(Kind::Usage, format!("\"{target}\" has no namespace"));
            Err(match suggestion(target, servers.iter().copied()) {
                Some(near) => error.hint(format!("write <namespace>.<tool>; {near}")),
                None => error.hint("write <namespace>.<tool>; `mcpx search <words>` finds one"),
            })
        }
    }
}

/// The server that a person or a program meant: its exact name, else its
/// identifier, else the only one that differs in case and punctuation alone.
/// Fails with [`Kind::NotFound`] and the nearest names.
pub fn find_server<'a>(wanted: &str, servers: &[&'a str]) -> Result<&'a str> {
    if let Some(exact) = servers.iter().find(|s| **s == wanted) {
        return Ok(exact);
    }
    let idents = unique_idents(servers.iter().copied());
    if let Some(i) = idents.iter().position(|i| i == wanted) {
        return Ok(servers[i]);
    }
    only_tolerant(wanted, servers.iter().copied())
        .map(|i| servers[i])
        .ok_or_else(|| no_server(wanted, servers))
}

fn no_server(wanted: &str, servers: &[&str]) -> Error {
    let error = Error::new(Kind::NotFound, format!("there is no namespace \"{wanted}\""));
    match suggestion(wanted, servers.iter().copied()) {
        Some(near) => error.hint(format!("{near} `mcpx ls` shows them all")),
        None => error.hint("`mcpx ls` shows the namespaces"),
    }
}

/// The tool that was meant: by its exact name, else its identifier, else the only
/// one that differs in case and punctuation alone. `server` is named in the error.
/// Fails with [`Kind::NotFound`], the nearest names, and how to list them.
pub fn find_tool<'a>(tools: &'a [Tool], wanted: &str, server: &str) -> Result<&'a Tool> {
    find_named(tools.iter().map(|t| t.name.as_str()), wanted, server).map(|at| &tools[at])
}

/// As [`find_tool`], by the names of a server's tools alone: where in them it is.
pub fn find_named<'a>(
    tools: impl Iterator<Item = &'a str> + Clone,
    wanted: &str,
    server: &str,
) -> Result<usize> {
    let names = || tools.clone();
    if let Some(exact) = names().position(|name| name == wanted) {
        return Ok(exact);
    }
    for forms in [unique_members(names()), unique_idents(names())] {
        if let Some(at) = forms.iter().position(|f| f == wanted) {
            return Ok(at);
        }
    }
    if let Some(at) = only_tolerant(wanted, names()) {
        return Ok(at);
    }
    let all = format!("`mcpx tools {server}` lists them");
    let hint = match suggestion(wanted, names()) {
        Some(near) => format!("{near} {all}"),
        None => all,
    };
    Err(Error::new(Kind::NotFound, format!("namespace \"{server}\" has no tool \"{wanted}\""))
        .hint(hint)
        .server(server)
        .tool(wanted))
}

/// The longest name, in bytes, for which near ones are looked for: comparing takes
/// time with the product of the lengths, and what is typed is not longer.
const TYPED: usize = 100;

/// The known name that is nearest to a mistyped one, when one is near.
pub fn meant<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if typed.len() > TYPED {
        return None;
    }
    nearest(typed, known.into_iter().filter(|k| k.len() <= TYPED)).first().copied()
}

fn suggestion<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    if typed.len() > TYPED {
        return None;
    }
    did_you_mean(typed, known.into_iter().filter(|k| k.len() <= TYPED))
}

/// The index of the only name that is `wanted` when case and punctuation are left out.
fn only_tolerant<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Option<usize> {
    let key = bare(wanted);
    if key.is_empty() {
        return None;
    }
    let mut hits = names.enumerate().filter(|(_, n)| bare(n) == key);
    let first = hits.next()?.0;
    hits.next().is_none().then_some(first)
}

fn bare(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Where the letters are that may stand in an identifier: the large scripts, as far
/// as Unicode 6 had them. Narrower than today's rule on purpose: the compilers'
/// tables differ in age, and a letter missing here only becomes `_`, while one too
/// many would break every program that imports the client.
const LETTERS: &[(char, char)] = &[
    ('\u{aa}', '\u{aa}'),
    ('\u{b5}', '\u{b5}'),
    ('\u{ba}', '\u{ba}'),
    ('\u{c0}', '\u{24f}'),    // Latin
    ('\u{250}', '\u{2c1}'),   // phonetic
    ('\u{370}', '\u{37e}'),   // Greek
    ('\u{386}', '\u{3ff}'),   // Greek
    ('\u{400}', '\u{481}'),   // Cyrillic
    ('\u{48a}', '\u{527}'),   // Cyrillic
    ('\u{531}', '\u{556}'),   // Armenian
    ('\u{561}', '\u{587}'),   // Armenian
    ('\u{5d0}', '\u{5ea}'),   // Hebrew
    ('\u{620}', '\u{657}'),   // Arabic
    ('\u{66e}', '\u{6d3}'),   // Arabic
    ('\u{900}', '\u{977}'),   // Devanagari
    ('\u{981}', '\u{9f1}'),   // Bengali
    ('\u{a01}', '\u{a75}'),   // Gurmukhi
    ('\u{a81}', '\u{ae3}'),   // Gujarati
    ('\u{b01}', '\u{b71}'),   // Oriya
    ('\u{b82}', '\u{bd7}'),   // Tamil
    ('\u{c05}', '\u{c33}'),   // Telugu
    ('\u{c3d}', '\u{c56}'),   // Telugu
    ('\u{c82}', '\u{cd6}'),   // Kannada
    ('\u{d05}', '\u{d4e}'),   // Malayalam
    ('\u{d82}', '\u{df3}'),   // Sinhala
    ('\u{e01}', '\u{e4d}'),   // Thai
    ('\u{f40}', '\u{f6c}'),   // Tibetan
    ('\u{1000}', '\u{109d}'), // Myanmar
    ('\u{10a0}', '\u{10fa}'), // Georgian
    ('\u{1100}', '\u{11ff}'), // Hangul letters
    ('\u{1200}', '\u{135a}'), // Ethiopic
    ('\u{13a0}', '\u{13f4}'), // Cherokee
    ('\u{1780}', '\u{17c8}'), // Khmer
    ('\u{1820}', '\u{1877}'), // Mongolian
    ('\u{1e00}', '\u{1fff}'), // Latin and Greek with accents
    ('\u{3005}', '\u{3007}'), // Han
    ('\u{3041}', '\u{3096}'), // Hiragana
    ('\u{309d}', '\u{309f}'), // Hiragana
    ('\u{30a1}', '\u{30fa}'), // Katakana
    ('\u{30fc}', '\u{30ff}'), // Katakana
    ('\u{3105}', '\u{312d}'), // Bopomofo
    ('\u{3131}', '\u{318e}'), // Hangul letters
    ('\u{3400}', '\u{4db5}'), // Han
    ('\u{4e00}', '\u{9fcc}'), // Han
    ('\u{a000}', '\u{a48c}'), // Yi
    ('\u{ac00}', '\u{d7a3}'), // Hangul
    ('\u{ff21}', '\u{ff3a}'), // wide Latin
    ('\u{ff41}', '\u{ff5a}'), // wide Latin
    ('\u{ff66}', '\u{ffbe}'), // narrow Katakana
];

/// Letters without case that may begin an identifier, not only stand inside it; one
/// that is missing here only gets a `_` before it.
const START: &[(char, char)] = &[
    ('\u{aa}', '\u{aa}'),
    ('\u{ba}', '\u{ba}'),
    ('\u{5d0}', '\u{5ea}'),   // Hebrew
    ('\u{620}', '\u{64a}'),   // Arabic
    ('\u{671}', '\u{6d3}'),   // Arabic, other languages
    ('\u{904}', '\u{939}'),   // Devanagari
    ('\u{993}', '\u{9a8}'),   // Bengali
    ('\u{a13}', '\u{a28}'),   // Gurmukhi
    ('\u{a93}', '\u{aa8}'),   // Gujarati
    ('\u{c12}', '\u{c28}'),   // Telugu
    ('\u{e01}', '\u{e30}'),   // Thai
    ('\u{10d0}', '\u{10fa}'), // Georgian
    ('\u{1100}', '\u{1159}'), // Hangul letters
    ('\u{3041}', '\u{3096}'), // Hiragana
    ('\u{30a1}', '\u{30fa}'), // Katakana
    ('\u{3105}', '\u{312c}'), // Bopomofo
    ('\u{3400}', '\u{4db5}'), // Han
    ('\u{4e00}', '\u{9fa5}'), // Han
    ('\u{ac00}', '\u{d7a3}'), // Hangul
];

/// Marks and digits that may stand inside an identifier although they are not
/// alphabetic: accents, vowel killers, tone marks.
const INSIDE: &[(char, char)] = &[
    ('\u{300}', '\u{34e}'),
    ('\u{350}', '\u{36f}'),
    ('\u{483}', '\u{487}'),
    ('\u{591}', '\u{5bd}'),
    ('\u{64b}', '\u{669}'),
    ('\u{93c}', '\u{93c}'),
    ('\u{94d}', '\u{94d}'),
    ('\u{966}', '\u{96f}'),
    ('\u{9bc}', '\u{9bc}'),
    ('\u{9cd}', '\u{9cd}'),
    ('\u{a3c}', '\u{a3c}'),
    ('\u{a4d}', '\u{a4d}'),
    ('\u{abc}', '\u{abc}'),
    ('\u{acd}', '\u{acd}'),
    ('\u{b3c}', '\u{b3c}'),
    ('\u{b4d}', '\u{b4d}'),
    ('\u{bcd}', '\u{bcd}'),
    ('\u{c4d}', '\u{c4d}'),
    ('\u{ccd}', '\u{ccd}'),
    ('\u{d4d}', '\u{d4d}'),
    ('\u{dca}', '\u{dca}'),
    ('\u{e47}', '\u{e4e}'),
    ('\u{eca}', '\u{ecb}'),
    ('\u{17c9}', '\u{17d3}'),
    ('\u{3099}', '\u{309a}'),
];

fn within(c: char, ranges: &[(char, char)]) -> bool {
    ranges.iter().any(|&(from, to)| (from..=to).contains(&c))
}

/// Whether an identifier may begin with it.
fn starts(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphabetic() || c == '_' || c == '$';
    }
    // U+0345 is a mark that Unicode calls lower case.
    let cased = (c.is_lowercase() || c.is_uppercase()) && c != '\u{345}';
    continues(c) && (cased || within(c, START))
}

/// Whether an identifier may go on with it.
fn continues(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric() || c == '_' || c == '$';
    }
    c.is_alphabetic() && within(c, LETTERS) || within(c, INSIDE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(names: &[&str]) -> Vec<Tool> {
        names.iter().map(|n| Tool::named(n)).collect()
    }

    #[test]
    fn the_word_lists_are_sorted_for_binary_search() {
        assert!(RESERVED.is_sorted() && CLIENT_NAMES.is_sorted());
    }

    #[test]
    fn names_become_identifiers() {
        for (name, expected) in [
            ("demo", "demo"),
            ("get-sum", "get_sum"),
            ("a.b c/d", "a_b_c_d"),
            ("1password", "_1password"),
            ("", "_"),
            ("-", "_"),
            ("class", "class_"),
            ("log", "log_"),
            ("then", "then_"),
            ("größe", "größe"),
            ("検索", "検索"),
            ("x😀y", "x_y"),
            ("\u{301}x", "_\u{301}x"),
            ("e\u{301}", "e\u{301}"),
            ("ⓐ", "_"),
            ("$ref", "$ref"),
            ("a\u{200d}b\n", "a_b_"),
        ] {
            assert_eq!(ident(name), expected, "{name:?}");
        }
        assert_eq!((member("delete"), member("toJSON")), ("delete".into(), "toJSON_".into()));
        assert_eq!(ident("delete"), "delete_");
        assert!(is_member("größe") && !is_member("a-b") && !is_member("1x") && !is_member(""));
    }

    #[test]
    fn collisions_are_numbered_in_order_and_never_touch_an_exact_name() {
        assert_eq!(unique_idents(["a-b", "a.b", "a_b", "a b"]), ["a_b_2", "a_b_3", "a_b", "a_b_4"]);
        assert_eq!(unique_idents(["a-b", "a.b", "a_b_2"]), ["a_b", "a_b_3", "a_b_2"]);
        assert_eq!(unique_idents(["x", "x"]), ["x", "x_2"]);
        assert_eq!(unique_members(["new", "new-", "class"]), ["new", "new_", "class"]);
    }

    #[test]
    fn a_target_is_split_at_the_longest_server_name() {
        let servers = ["a", "a.b", "my-server", "Git Hub"];
        let split = |t: &str| split_target(t, &servers).map_err(|e| e.kind());
        let pair = |a: &str, b: &str| Ok((a.to_owned(), b.to_owned()));
        assert_eq!(split("a.x"), pair("a", "x"));
        assert_eq!(split("a.b.c"), pair("a.b", "c"));
        assert_eq!(split("a.c.d"), pair("a", "c.d"));
        assert_eq!(split("a.b"), pair("a", "b"));
        assert_eq!(split("my_server.t"), pair("my-server", "t"));
        assert_eq!(split("github.t.u"), pair("Git Hub", "t.u"));
        assert_eq!(split("a_b.c"), pair("a.b", "c"));
        assert_eq!(split("nope.t"), Err(Kind::NotFound));
        assert_eq!(split("my-server"), Err(Kind::Usage));
        assert_eq!(split("my-server."), Err(Kind::Usage));
        assert_eq!(split("."), Err(Kind::Usage));
        assert_eq!(split(""), Err(Kind::Usage));
        let e = split_target("my-srver.t", &servers).unwrap_err();
        assert!(e.hint_text().unwrap().contains("did you mean \"my-server\"?"), "{e}");
    }

    #[test]
    fn tools_are_found_by_falling_precision() {
        let list = tools(&["getSum", "get-sum", "get_sum", "echo", "delete", "Read File", "log"]);
        let find = |w: &str| find_tool(&list, w, "demo").map(|t| t.name.as_str());
        assert_eq!(find("get-sum").unwrap(), "get-sum");
        assert_eq!(find("get_sum").unwrap(), "get_sum");
        assert_eq!(find("get_sum_2").unwrap(), "get-sum");
        assert_eq!(find("delete").unwrap(), "delete");
        assert_eq!(find("delete_").unwrap(), "delete");
        assert_eq!(find("log_").unwrap(), "log");
        assert_eq!(find("readFile").unwrap(), "Read File");
        assert_eq!(find("ECHO").unwrap(), "echo");
        // Three tools differ from this in punctuation and case alone: which one is not for us to guess.
        let e = find("GETSUM").unwrap_err();
        assert_eq!(e.kind(), Kind::NotFound);
        let e = find("ecko").unwrap_err();
        assert_eq!(e.message(), "namespace \"demo\" has no tool \"ecko\"");
        assert_eq!(e.hint_text(), Some("did you mean \"echo\"? `mcpx tools demo` lists them"));
        assert_eq!(find("zzzzzzzz").unwrap_err().hint_text(), Some("`mcpx tools demo` lists them"));
        assert!(find("--").is_err());
    }
}
