//! The architecture, as absences: what a layer must not name, and where the
//! things may stand that are allowed in one place only.

use std::path::{Path, PathBuf};

/// The layers from the top. Each names only those below it; the last row's may name each other.
const LAYERS: [&[&str]; 16] = [
    &["cli"],
    &["plugin"],
    &["serve"],
    &["daemon"],
    &["api"],
    &["script"],
    &["pool"],
    &["catalog"],
    &["adapters"],
    &["mcp"],
    &["proc"],
    &["config"],
    &["artifacts"],
    &["observe"],
    &["settings"],
    &["error", "log", "paths", "util"],
];

/// A source file of the library.
pub struct Source {
    /// Relative to `src`.
    pub path: PathBuf,
    pub text: String,
    /// The text without comments and without what strings hold.
    code: String,
    /// The code without the items under `#[cfg(test)]`.
    shipped: String,
    /// A parent declares it under `#[cfg(test)]`.
    only_tests: bool,
}

impl Source {
    /// The layer it belongs to; none for the crate's roots.
    fn layer(&self) -> Option<String> {
        let first = self.path.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
        let name = first.strip_suffix(".rs").unwrap_or(&first);
        (name != "lib" && name != "main").then(|| name.to_owned())
    }
    fn below(&self, dir: &str) -> bool {
        self.path.starts_with(dir) || self.path == Path::new(&format!("{dir}.rs"))
    }
    /// The directory that its submodules are in.
    fn home(&self) -> PathBuf {
        let name = self.path.file_stem().unwrap();
        let dir = self.path.parent().unwrap();
        if name == "mod" || name == "lib" { dir.to_owned() } else { dir.join(name) }
    }
    /// The code without what only tests see; none of it when a file is only for tests.
    pub fn shipped(&self) -> &str {
        if self.only_tests { "" } else { &self.shipped }
    }
    fn line_of(&self, at: usize) -> usize {
        self.code[..at].matches('\n').count() + 1
    }
}

pub fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found: Vec<Source> = Vec::new();
    let mut only_tests: Vec<PathBuf> = Vec::new();
    let mut dirs = vec![root.clone()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let code = strip(&text);
                let (shipped, tests) = without_tests(&code);
                let path = path.strip_prefix(&root).unwrap().to_owned();
                let source = Source { path, text, code, shipped, only_tests: false };
                only_tests.extend(tests.iter().map(|name| source.home().join(name)));
                found.push(source);
            }
        }
    }
    for source in &mut found {
        let whole = source.path.with_extension("");
        // A `#[path]` hides the name of the file; such files are called after what they test.
        source.only_tests = only_tests.iter().any(|module| whole.starts_with(module))
            || whole.to_string_lossy().ends_with("_tests");
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Blanks the items that follow `#[cfg(test)]`, and names the modules among them that are files.
fn without_tests(code: &str) -> (String, Vec<String>) {
    const MARK: &str = "#[cfg(test)]";
    let mut out = code.to_owned();
    let mut modules = Vec::new();
    let mut at = 0;
    while let Some(start) = out[at..].find(MARK).map(|n| at + n) {
        let mut depth = 0;
        let mut end = out.len();
        for (offset, c) in out[start + MARK.len()..].char_indices() {
            depth += i32::from(matches!(c, '{' | '[' | '(')) - i32::from(matches!(c, '}' | ']' | ')'));
            // An item ends with its block or a semicolon, a field or variant with a comma.
            if depth < 0 || depth == 0 && matches!(c, '}' | ';' | ',') {
                end = start + MARK.len() + offset + 1;
                break;
            }
        }
        let item = &out[start + MARK.len()..end];
        if let Some(name) = item.split("mod ").nth(1).and_then(|rest| rest.trim().strip_suffix(';')) {
            modules.push(name.to_owned());
        }
        let blank: String = out[start..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
        out.replace_range(start..end, &blank);
        at = start + blank.len();
    }
    (out, modules)
}

/// Blanks comments and the contents of strings and characters; lines stay where they are.
fn strip(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    let blank = |out: &mut Vec<u8>, from: usize, to: usize| {
        for byte in &mut out[from..to] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    };
    let find = |from: usize, what: &str| {
        let rest = bytes.get(from..).unwrap_or_default();
        rest.windows(what.len()).position(|w| w == what.as_bytes()).map_or(bytes.len(), |n| from + n)
    };
    while at < bytes.len() {
        let rest = &bytes[at..];
        let joined = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
        let end = if rest.starts_with(b"//") {
            let end = find(at, "\n");
            blank(&mut out, at, end);
            end
        } else if rest.starts_with(b"/*") {
            let end = (find(at, "*/") + 2).min(bytes.len());
            blank(&mut out, at, end);
            end
        } else if let Some(hashes) = raw_string(rest).filter(|_| !joined || bytes[at - 1] == b'b') {
            let from = at + hashes + 2;
            let end = find(from, &format!("\"{}", "#".repeat(hashes)));
            blank(&mut out, from, end);
            (end + hashes + 1).min(bytes.len())
        } else if rest[0] == b'"' {
            let mut end = at + 1;
            while end < bytes.len() && bytes[end] != b'"' {
                end += if bytes[end] == b'\\' { 2 } else { 1 };
            }
            let end = end.min(bytes.len());
            blank(&mut out, at + 1, end);
            end + 1
        } else if rest.starts_with(b"'\\") {
            let end = find(at + 3, "'");
            blank(&mut out, at + 1, end);
            end + 1
        } else if rest[0] == b'\'' && text[at + 1..].chars().nth(1) == Some('\'') {
            let end = find(at + 2, "'");
            blank(&mut out, at + 1, end);
            end + 1
        } else {
            at + 1
        };
        at = end;
        while at < bytes.len() && !text.is_char_boundary(at) {
            at += 1;
        }
    }
    // A blanked character of several bytes leaves as many spaces, so this is UTF-8 still.
    String::from_utf8(out).unwrap()
}

/// The number of hashes when a raw string begins here.
fn raw_string(rest: &[u8]) -> Option<usize> {
    if rest.first() != Some(&b'r') {
        return None;
    }
    let hashes = rest[1..].iter().take_while(|b| **b == b'#').count();
    (rest.get(1 + hashes) == Some(&b'"')).then_some(hashes)
}

/// Every module of this crate that the code names by an absolute path, with the place.
fn named(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        if at > 0 && (code.as_bytes()[at - 1].is_ascii_alphanumeric() || code.as_bytes()[at - 1] == b'_') {
            continue;
        }
        let rest = &code[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            let mut depth = 0;
            let mut name = String::new();
            for c in group.chars() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => {
                        found.push((at, std::mem::take(&mut name)));
                        continue;
                    }
                    _ => {}
                }
                name.push(c);
            }
            found.push((at, name));
        } else {
            found.push((at, rest.to_owned()));
        }
    }
    found
        .into_iter()
        .map(|(at, text)| {
            (at, text.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>())
        })
        .filter(|(_, name)| !name.is_empty())
        .collect()
}

fn rank(layer: &str) -> Option<usize> {
    LAYERS.iter().position(|row| row.contains(&layer))
}

fn assert_none(what: &str, problems: &[String]) {
    assert!(problems.is_empty(), "{what}:\n{}", problems.join("\n"));
}

#[test]
fn every_module_is_in_a_layer_and_names_only_those_below_it() {
    let mut problems = Vec::new();
    for source in sources() {
        let Some(layer) = source.layer() else { continue };
        let Some(own) = rank(&layer) else {
            problems.push(format!("src/{}: no layer is called {layer}", source.path.display()));
            continue;
        };
        for (at, name) in named(&source.code) {
            if rank(&name).is_some_and(|other| other < own) {
                problems.push(format!(
                    "src/{}:{}: {layer} names {name}, which is above it",
                    source.path.display(),
                    source.line_of(at)
                ));
            }
        }
    }
    assert_none("arrows point down only", &problems);
}

#[test]
fn every_module_opens_by_saying_what_it_is() {
    let silent: Vec<String> = sources()
        .iter()
        .filter(|s| !s.text.starts_with("//! "))
        .map(|s| format!("src/{}", s.path.display()))
        .collect();
    assert_none("these modules do not begin with a `//!` line", &silent);
}

/// Where a thing may stand that is allowed in few places, and what to write elsewhere.
struct Only {
    text: &'static str,
    below: &'static [&'static str],
    /// Unit tests may have it too.
    tests: bool,
}

const ONLY: [Only; 10] = [
    Only { text: "tiny_http", below: &["daemon/http"], tests: false },
    Only { text: "ureq", below: &["api/client", "mcp/http"], tests: false },
    Only { text: "unsafe", below: &["proc"], tests: false },
    Only { text: "println!", below: &["cli"], tests: true },
    Only { text: "print!", below: &["cli"], tests: true },
    Only { text: "eprintln!", below: &["cli"], tests: true },
    Only { text: "eprint!", below: &["cli"], tests: true },
    Only { text: "dbg!", below: &[], tests: false },
    Only { text: "process::exit", below: &["cli"], tests: false },
    Only { text: "todo!", below: &[], tests: false },
];

#[test]
fn what_is_allowed_in_few_places_stands_in_no_other() {
    let mut problems = Vec::new();
    for source in sources() {
        for only in ONLY.iter().filter(|only| !only.below.iter().any(|dir| source.below(dir))) {
            let code = if only.tests { source.shipped() } else { &source.code };
            for (at, _) in code.match_indices(only.text) {
                let whole = |c: Option<char>| !c.is_some_and(|c| c.is_alphanumeric() || c == '_');
                let before = code[..at].chars().next_back();
                let after = code[at + only.text.len()..].chars().next();
                if whole(before) && (only.text.ends_with('!') || whole(after)) {
                    problems.push(format!(
                        "src/{}:{}: {}",
                        source.path.display(),
                        source.line_of(at),
                        only.text
                    ));
                }
            }
        }
    }
    assert_none("allowed elsewhere only", &problems);
}

#[test]
fn a_length_of_time_has_a_name() {
    let mut problems = Vec::new();
    for source in sources() {
        let code = source.shipped();
        for unit in ["from_secs(", "from_millis(", "from_micros("] {
            for (at, _) in code.match_indices(&format!("Duration::{unit}")) {
                let argument = &code[at + "Duration::".len() + unit.len()..];
                // Zero and one are no choice that somebody could want different.
                let digits: String =
                    argument.chars().take_while(|c| c.is_ascii_digit() || *c == '_').collect();
                let start = code[..at].rfind([';', '{', '}']).map_or(0, |n| n + 1);
                let named = ["const ", "static "].iter().any(|word| code[start..at].contains(word));
                if !digits.is_empty() && digits != "0" && digits != "1" && !named {
                    problems.push(format!(
                        "src/{}:{}: {unit}{digits})",
                        source.path.display(),
                        source.line_of(at)
                    ));
                }
            }
        }
    }
    assert_none("a length of time is a setting, or a named constant that says why", &problems);
}

#[test]
fn no_test_is_ignored() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut ignored: Vec<String> = sources()
        .iter()
        .filter(|s| s.code.contains("#[ignore"))
        .map(|s| format!("src/{}", s.path.display()))
        .collect();
    for entry in std::fs::read_dir(root.join("tests/it")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() && strip(&std::fs::read_to_string(&path).unwrap()).contains("#[ignore") {
            ignored.push(path.display().to_string());
        }
    }
    assert_none("a test that does not run proves nothing", &ignored);
}

#[test]
fn the_scanner_sees_code_and_only_code() {
    let code = strip(
        "use crate::a; // crate::b\nlet s = \"crate::c \\\" \"; let r = r#\"crate::\"d\"#; let c = '\"'; crate::e::f();\n/* crate::g */ use crate::{h::{i, j}, k};\nfn x<'a>(y: &'a str) { crate::l(); }",
    );
    let names: Vec<String> = named(&code).into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, ["a", "e", "h", "k", "l"]);
    let (shipped, modules) =
        without_tests("a!();\n#[cfg(test)]\nmod tests;\nb!();\n#[cfg(test)]\nmod inner { fn c() {} }\nd!();");
    assert_eq!(
        (modules, shipped.split_whitespace().collect::<String>()),
        (vec!["tests".to_owned()], "a!();b!();d!();".to_owned())
    );
}
