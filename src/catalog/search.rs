//! Finding tools by words. Ranks rows that are already in memory; knows nothing
//! of where they come from.

use super::names;
use super::rows::Row;
use std::collections::HashSet;

/// The tools of one server, as they are searched.
#[derive(Clone, Copy, Debug)]
pub struct Namespace<'a> {
    /// The server's configured name.
    pub server: &'a str,
    /// The identifier that stands for it in a program.
    pub ident: &'a str,
    /// Its tools.
    pub rows: &'a [Row],
}

/// A tool that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The server's configured name.
    pub server: String,
    /// The tool's exact name.
    pub tool: String,
    /// How it is called, on one line, with the namespace's identifier.
    pub signature: String,
    /// The beginning of its description, on one line; may be empty.
    pub description: String,
    /// Higher is better; comparable within one search only.
    pub score: u32,
    /// Every word of the query was found in it; when false, only some were.
    pub all: bool,
    /// Nothing contained what was typed, so these words were searched instead.
    pub near: Option<String>,
}

/// What a match is worth, by where it is: the name before the namespace before the description.
mod worth {
    pub const WHOLE: u32 = 1000;
    pub const WHOLE_PREFIX: u32 = 400;
    pub const WHOLE_INSIDE: u32 = 200;
    pub const NAME_WORD: u32 = 60;
    pub const NAME_PREFIX: u32 = 45;
    pub const NAME_INSIDE: u32 = 35;
    pub const SPACE_WORD: u32 = 30;
    pub const SPACE_PREFIX: u32 = 24;
    pub const SPACE_INSIDE: u32 = 18;
    pub const TEXT_WORD: u32 = 12;
    pub const TEXT_PREFIX: u32 = 9;
    pub const SIGNATURE: u32 = 6;
    pub const TEXT_INSIDE: u32 = 4;
}

/// Words that say nothing about a tool; left out while others remain.
const IDLE: &[&str] =
    &["a", "an", "and", "for", "from", "how", "i", "in", "is", "my", "of", "on", "or", "the", "to", "with"];

/// The tools that fit the query, best first, at most `limit`. Those that contain
/// every word come before those that contain some; equal ones stay in the order of
/// the namespaces and of their tools. When nothing fits, the nearest known words
/// are searched instead, and each hit says so. An empty query finds nothing.
pub fn search(query: &str, namespaces: &[Namespace<'_>], limit: usize) -> Vec<Hit> {
    let words = query_words(query);
    if words.is_empty() || limit == 0 {
        return Vec::new();
    }
    let hits = ranked(&bare(query), &words, namespaces, limit, None);
    if !hits.is_empty() {
        return hits;
    }
    let vocabulary: HashSet<String> = namespaces
        .iter()
        .flat_map(|n| n.rows.iter().map(|r| r.name.as_str()).chain([n.server]))
        .flat_map(words_of)
        .collect();
    // Sorted, so that of two equally near words it is always the same one.
    let mut vocabulary: Vec<&str> = vocabulary.iter().map(String::as_str).collect();
    vocabulary.sort_unstable();
    let meant: Vec<String> = words
        .iter()
        .filter_map(|w| names::meant(w, vocabulary.iter().copied().filter(|v| comparable(w, v))))
        .map(str::to_owned)
        .collect();
    if meant.is_empty() {
        return Vec::new();
    }
    let near = meant.join(" ");
    ranked(&bare(&near), &meant, namespaces, limit, Some(&near))
}

/// Whether a word can be near at all: of about the same length, or a part of the
/// other. Spares most of the comparing.
fn comparable(typed: &str, known: &str) -> bool {
    typed.len().abs_diff(known.len()) <= typed.len() / 3 + 2 || known.len() >= 3 && typed.contains(known)
}

struct Found {
    all: bool,
    score: u32,
    length: usize,
    place: (usize, usize),
}

fn ranked(
    whole: &str,
    words: &[String],
    namespaces: &[Namespace<'_>],
    limit: usize,
    near: Option<&str>,
) -> Vec<Hit> {
    let mut found = Vec::new();
    let (mut text, mut name_bare) = (String::new(), String::new());
    let stems: Vec<String> = words.iter().filter_map(|w| stem(w)).collect();
    for (n, namespace) in namespaces.iter().enumerate() {
        let space = [namespace.server.to_lowercase(), namespace.ident.to_lowercase()];
        let space_bare = bare(namespace.server);
        for (r, row) in namespace.rows.iter().enumerate() {
            bare_into(&row.name, &mut name_bare);
            lower_into(&row.name, &mut text);
            let name_end = text.len();
            lower_after(&row.about, &mut text);
            let about_end = text.len();
            lower_after(&row.signature, &mut text);
            // Most rows have nothing of what is looked for: tell those without taking them apart.
            let touched =
                |w: &String| text.contains(w.as_str()) || space.iter().any(|s| s.contains(w.as_str()));
            if !words.iter().chain(&stems).any(touched) && !name_bare.contains(whole) {
                let named = whole.strip_prefix(space_bare.as_str()) == Some(&name_bare);
                if !named {
                    continue;
                }
            }
            let (name, about, signature) =
                (&text[..name_end], &text[name_end..about_end], &text[about_end..]);
            let name_words = words_of(&row.name);
            let mut score = whole_worth(whole, &name_bare, &space_bare);
            let mut count = 0;
            for word in words {
                let best = word_worth(word, name, &name_words, &space, about, signature);
                score += best;
                count += usize::from(best > 0);
            }
            if score > 0 {
                // The whole query inside the name counts as all of its words.
                let all = count == words.len() || score >= worth::WHOLE_INSIDE;
                found.push(Found { all, score, length: row.name.len(), place: (n, r) });
            }
        }
    }
    found.sort_by(|a, b| {
        (b.all, b.score).cmp(&(a.all, a.score)).then_with(|| (a.length, a.place).cmp(&(b.length, b.place)))
    });
    found.truncate(limit);
    let hit = |f: Found| {
        let namespace = &namespaces[f.place.0];
        let row = &namespace.rows[f.place.1];
        Hit {
            server: namespace.server.to_owned(),
            tool: row.name.clone(),
            signature: format!("{}.{}", namespace.ident, row.signature),
            description: row.about.clone(),
            score: f.score,
            all: f.all,
            near: near.map(str::to_owned),
        }
    };
    found.into_iter().map(hit).collect()
}

fn whole_worth(whole: &str, name: &str, space: &str) -> u32 {
    if whole.is_empty() {
        return 0;
    }
    // `files.read` and `files read` name namespace and tool.
    let rest = whole.strip_prefix(space).filter(|_| !space.is_empty());
    if whole == name || rest == Some(name) {
        worth::WHOLE
    } else if name.starts_with(whole) {
        worth::WHOLE_PREFIX
    } else if name.contains(whole) {
        worth::WHOLE_INSIDE
    } else {
        0
    }
}

fn word_worth(
    word: &str,
    name: &str,
    name_words: &[String],
    space: &[String; 2],
    about: &str,
    signature: &str,
) -> u32 {
    let exact = one_worth(word, name, name_words, space, about, signature);
    if exact >= worth::NAME_WORD {
        return exact;
    }
    // A plural is worth a little less than the word itself.
    stem(word).map_or(exact, |stem| {
        exact.max(one_worth(&stem, name, name_words, space, about, signature).saturating_sub(2))
    })
}

/// The singular of what may be a plural: "files" also finds "file", "queries" finds "query".
fn stem(word: &str) -> Option<String> {
    let stem = match word.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => word.strip_suffix('s')?.to_owned(),
    };
    (stem.len() >= 3).then_some(stem)
}

fn one_worth(
    word: &str,
    name: &str,
    name_words: &[String],
    space: &[String; 2],
    about: &str,
    signature: &str,
) -> u32 {
    if name_words.iter().any(|w| w == word) {
        return worth::NAME_WORD;
    }
    if name_words.iter().any(|w| w.starts_with(word)) {
        return worth::NAME_PREFIX;
    }
    if name.contains(word) {
        return worth::NAME_INSIDE;
    }
    if space.iter().any(|s| s == word) {
        return worth::SPACE_WORD;
    }
    if space.iter().any(|s| s.starts_with(word)) {
        return worth::SPACE_PREFIX;
    }
    if space.iter().any(|s| s.contains(word)) {
        return worth::SPACE_INSIDE;
    }
    let mut best = 0;
    for (at, _) in about.match_indices(word) {
        let begins = !about[..at].ends_with(char::is_alphanumeric);
        let ends = !about[at + word.len()..].starts_with(char::is_alphanumeric);
        best = best.max(match (begins, ends) {
            (true, true) => return worth::TEXT_WORD,
            (true, false) => worth::TEXT_PREFIX,
            _ => worth::TEXT_INSIDE,
        });
    }
    if best < worth::SIGNATURE && signature.contains(word) {
        return worth::SIGNATURE;
    }
    best
}

/// The words to look for: of the query's own spelling, without those that say nothing.
fn query_words(query: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in words_of(query) {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    if words.iter().any(|w| !IDLE.contains(&w.as_str())) {
        words.retain(|w| !IDLE.contains(&w.as_str()));
    }
    words
}

/// The lower-case words of a name or a text: parted at whatever is no letter or
/// digit, and where camel case does (`getHTTPServer2` → get, http, server2).
pub fn words_of(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut chars = text.chars().peekable();
    let mut before: Option<char> = None;
    while let Some(c) = chars.next() {
        if !c.is_alphanumeric() {
            if !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
            before = None;
            continue;
        }
        let parts = c.is_uppercase()
            && before
                .is_some_and(|b| !b.is_uppercase() || chars.peek().is_some_and(|next| next.is_lowercase()));
        if parts && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        word.extend(c.to_lowercase());
        before = Some(c);
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

fn bare(text: &str) -> String {
    let mut out = String::new();
    bare_into(text, &mut out);
    out
}

/// Letters and digits alone, in lower case.
fn bare_into(text: &str, out: &mut String) {
    out.clear();
    out.extend(text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase));
}

fn lower_into(text: &str, out: &mut String) {
    out.clear();
    lower_after(text, out);
}

fn lower_after(text: &str, out: &mut String) {
    if text.is_ascii() {
        let from = out.len();
        out.push_str(text);
        out[from..].make_ascii_lowercase();
    } else {
        out.extend(text.chars().flat_map(char::to_lowercase));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, about: &str) -> Row {
        Row {
            name: name.into(),
            about: about.into(),
            signature: format!("{name}(args: {{ path: string }}): any"),
        }
    }

    fn found(query: &str, rows: &[Row]) -> Vec<String> {
        let spaces = [Namespace { server: "files", ident: "files", rows }];
        search(query, &spaces, 10).into_iter().map(|h| h.tool).collect()
    }

    #[test]
    fn names_are_split_into_words() {
        assert_eq!(words_of("getHTTPServer2_fast-mode.x"), ["get", "http", "server2", "fast", "mode", "x"]);
        assert_eq!(words_of("ÄrgerSuche"), ["ärger", "suche"]);
        assert_eq!(words_of("--"), [""; 0]);
    }

    #[test]
    fn exact_then_prefix_then_inside_then_namespace_then_description() {
        let rows = [
            row("describe", "may read things"),
            row("already", ""),
            row("read_text", ""),
            row("read", ""),
            row("spread", ""),
        ];
        assert_eq!(found("read", &rows), ["read", "read_text", "spread", "already", "describe"]);
        let other = [row("x", "")];
        let spaces = [
            Namespace { server: "a", ident: "a", rows: &rows[..1] },
            Namespace { server: "reader", ident: "reader", rows: &other },
        ];
        let hits = search("read", &spaces, 10);
        assert_eq!((hits[0].server.as_str(), hits[1].server.as_str()), ("reader", "a"));
    }

    #[test]
    fn all_words_come_before_some() {
        let rows = [
            row("read", "Reads."),
            row("list", "Lists what a directory holds"),
            row("make", "Makes a directory in a directory"),
            row("scan", "Scans a directory and gives a list"),
        ];
        assert_eq!(found("list a directory", &rows), ["list", "scan", "make"]);
        assert_eq!(found("directories", &rows), ["list", "make", "scan"]);
        assert_eq!(found("lists", &rows)[0], "list");
        let hits =
            search("list directory nonsense", &[Namespace { server: "f", ident: "f", rows: &rows }], 10);
        assert!(hits.iter().all(|h| !h.all) && hits[0].tool == "list");
    }

    #[test]
    fn spelling_does_not_matter() {
        let rows = [row("get-sum", ""), row("getAverage", ""), row("sum", "")];
        assert_eq!(found("getSum", &rows)[0], "get-sum");
        assert_eq!(found("get average", &rows)[0], "getAverage");
        assert_eq!(found("files.get_sum", &rows)[0], "get-sum");
        assert_eq!(found("PATH", &rows).len(), 3, "parameters are searched too");
    }

    #[test]
    fn a_mistyped_word_finds_the_nearest_and_says_so() {
        let rows = [row("screenshot", ""), row("click", "")];
        let spaces = [Namespace { server: "web", ident: "web", rows: &rows }];
        let hits = search("screnshoot", &spaces, 10);
        assert_eq!((hits.len(), hits[0].tool.as_str()), (1, "screenshot"));
        assert_eq!(hits[0].near.as_deref(), Some("screenshot"));
        assert!(search("click", &spaces, 10)[0].near.is_none());
        assert!(search("kubernetes", &spaces, 10).is_empty());
        assert!(search("  - ", &spaces, 10).is_empty());
        assert!(search("click", &spaces, 0).is_empty());
    }

    #[test]
    fn ties_keep_their_order() {
        let rows: Vec<Row> = (0..50).map(|i| row(&format!("t{}", 10 + i), "same words")).collect();
        let names: Vec<String> = rows.iter().map(|r| r.name.clone()).collect();
        assert_eq!(found("same", &rows), names[..10]);
    }

    #[test]
    fn five_thousand_tools_are_searched() {
        let about = "Creates, reads, updates or removes a record of the given collection. ".repeat(5);
        let rows: Vec<Row> = (0..25).map(|i| row(&format!("update_record_{i}"), &about)).collect();
        let spaces: Vec<Namespace<'_>> =
            (0..200).map(|_| Namespace { server: "records", ident: "records", rows: &rows }).collect();
        for (query, found) in [("remove collection", 20), ("zzzzzz", 0), ("updtae", 20)] {
            assert_eq!(search(query, &spaces, 20).len(), found, "{query}");
        }
    }
}
