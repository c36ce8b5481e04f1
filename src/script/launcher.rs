//! Generates what a script is started on: the client module with the
//! namespaces' names, and the entry that embeds inline code or imports a file.
//! Both are named by their content. Makes texts and paths; writes nothing.

use super::runtimes::{JsKind, Version, strips_types};
use super::scan::{Scan, scan};
use crate::catalog::ts::is_js_global;
use crate::error::KINDS;
use crate::util::digest;
use serde_json::{Map, Value};
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const LINK: &str = include_str!("client/link.mjs");
const TOOLS: &str = include_str!("client/tools.mjs");
const LAUNCHER: &str = include_str!("client/launcher.mjs");
const PYTHON: &str = include_str!("client/mcpx.py");

/// Tells bun that a file is JavaScript as it stands, which saves it a pass over
/// the text: half a millisecond for the client. To the others it is a comment.
const READY: &str = "// @bun\n";

/// A file for [`READY`]: bun then reads it byte by byte, not as UTF-8, so every
/// character beyond ASCII stands as an escape, which strings and identifiers allow alike.
fn ready(text: &str) -> String {
    let mut out = String::with_capacity(READY.len() + text.len());
    out.push_str(READY);
    for c in text.chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        }
    }
    out
}

/// Tells a cached client of one build from that of another.
const BUILD: u64 =
    fnv(LINK.as_bytes()) ^ fnv(TOOLS.as_bytes()).rotate_left(1) ^ fnv(LAUNCHER.as_bytes()).rotate_left(2);

/// FNV-1a: good enough to notice a change, and the compiler can compute it.
const fn fnv(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    let mut i = 0;
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0100_0000_01b3);
        i += 1;
    }
    hash
}

/// A namespace: the server's configured name, and the identifier that stands for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// The server's configured name.
    pub name: String,
    /// The identifier that stands for it in a program.
    pub ident: String,
}

/// The client as a module of its own: `tools` is its default export, and every namespace an export.
pub fn client_module(namespaces: &[Namespace]) -> String {
    let mut text = format!("{LINK}\n{TOOLS}\n");
    push_exports(&mut text, namespaces);
    text
}

/// The client for programs in Python, as a module of its own.
pub fn python_module() -> String {
    let exits: Map<String, Value> = KINDS.iter().map(|row| (row.word.into(), row.exit.into())).collect();
    PYTHON.replacen("_EXITS = {}  # mcpx fills this in", &format!("_EXITS = {}", Value::Object(exits)), 1)
}

/// The client for programs in Python: where it is kept, in a directory that holds nothing else.
pub fn python_client(cache: &Path) -> Generated {
    let text = python_module();
    let key = digest([text.as_bytes()], 16);
    Generated { path: cache.join("client").join(key).join("mcpx.py"), content: Content::Text(text) }
}

/// The same without exports and comments, to stand in front of code in one file.
fn merged_client(namespaces: &[Namespace]) -> String {
    let mut text = String::new();
    for line in running_client(namespaces).lines() {
        let code = line.trim_start();
        let comment = ["//", "/**", "* ", "*/"].iter().any(|mark| code.starts_with(mark));
        if comment || line.starts_with("export default ") || line.starts_with("export {") {
            continue;
        }
        text.push_str(line.strip_prefix("export ").unwrap_or(line));
        text.push('\n');
    }
    text
}

/// The client that mcpx runs scripts with: it also makes the namespaces global, and starts the script.
fn running_client(namespaces: &[Namespace]) -> String {
    let mut text = format!("{LINK}\n{TOOLS}\n{LAUNCHER}\n");
    let exits: Map<String, Value> = KINDS.iter().map(|row| (row.word.into(), row.exit.into())).collect();
    let _ = writeln!(text, "const EXITS = {};", Value::Object(exits));
    push_exports(&mut text, namespaces);
    let bare = namespaces.iter().filter(|n| !is_js_global(&n.ident));
    let pairs: Vec<[&str; 2]> = bare.map(|n| [n.ident.as_str(), n.name.as_str()]).collect();
    let _ =
        writeln!(text, "launcher.start({});", Value::from_iter(pairs.iter().map(|p| Value::from(&p[..]))));
    ready(&text)
}

fn push_exports(text: &mut String, namespaces: &[Namespace]) {
    for (i, Namespace { name, ident }) in namespaces.iter().enumerate() {
        // Under another name inside, because `log` or `env` may be a namespace's.
        let _ = writeln!(
            text,
            "const namespace{i} = tools[{}];\nexport {{ namespace{i} as {ident} }};",
            quoted(name)
        );
    }
}

/// A text as a JavaScript (and JSON) literal.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// A file that has to be there before the script starts; its name is that of its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// Where it is.
    pub path: PathBuf,
    /// What is in it.
    pub content: Content,
}

/// What is generated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A file.
    Text(String),
    /// A symbolic link.
    Link(PathBuf),
    /// The client for these namespaces, built only when it has to be written.
    Client(Vec<Namespace>),
    /// The client and an entry behind it, in one file.
    Merged(Vec<Namespace>, String),
}

impl Content {
    /// The bytes of a file.
    pub fn text(&self) -> Option<String> {
        match self {
            Content::Text(text) => Some(text.clone()),
            Content::Link(_) => None,
            Content::Client(namespaces) => Some(running_client(namespaces)),
            Content::Merged(namespaces, entry) => Some(ready(&(merged_client(namespaces) + entry))),
        }
    }
}

/// The client of these namespaces: where it is kept under the cache directory.
pub fn client(cache: &Path, namespaces: &[Namespace]) -> Generated {
    let build = BUILD.to_be_bytes();
    let names = namespaces.iter().flat_map(|n| [n.name.as_bytes(), n.ident.as_bytes()]);
    let key = digest(std::iter::once(&build[..]).chain(names), 16);
    Generated {
        path: cache.join("client").join(key).join("mcpx-client.mjs"),
        content: Content::Client(namespaces.to_vec()),
    }
}

/// What a script is started on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The file that the runtime is given.
    pub path: PathBuf,
    /// The files that it needs, itself last.
    pub files: Vec<Generated>,
}

/// Inline code as a program of its own.
pub fn bare_entry(cache: &Path, client: &Path, inline: &Inline, cwd: &Path, kind: JsKind) -> Entry {
    let code = inline.anchored(cwd, client);
    let suffix = if kind == JsKind::Node { "mjs" } else { "ts" };
    let key = digest([b"bare", code.as_bytes()], 16);
    let path = cache.join("run").join(format!("{key}.{suffix}"));
    Entry { files: vec![Generated { path: path.clone(), content: Content::Text(code) }], path }
}

/// How an entry starts the script, and awaits it except in bun, which turns in
/// circles for as long as a module awaits what never comes.
const AWAIT: &str = "const ended = ";
const AWAITED: &str = "if (!globalThis.Bun) await ended;\n";

/// An argument of the launcher's `run` that is there only when an export is named.
fn export_argument(export: Option<&str>) -> String {
    export.map_or(String::new(), |name| format!(", {}", quoted(name)))
}

/// The entry for a file: imports the client, then the file, of which it calls `export` or what is exported as default.
pub fn file_entry(cache: &Path, client: &Path, file: &Path, export: Option<&str>) -> Entry {
    let mut parts = vec![client.as_os_str().as_bytes(), file.as_os_str().as_bytes()];
    parts.extend(export.map(str::as_bytes));
    let key = digest(parts, 16);
    let path = cache.join("run").join(format!("{key}.mjs"));
    let text = format!(
        "import {{ launcher }} from {};\n{AWAIT}launcher.run(() => import({}), {}, {}, false{});\n{AWAITED}",
        quoted(&file_url(client)),
        quoted(&file_url(file)),
        quoted(&file.to_string_lossy()),
        quoted(&path.to_string_lossy()),
        export_argument(export),
    );
    Entry { files: vec![Generated { path: path.clone(), content: Content::Text(ready(&text)) }], path }
}

/// Inline code, looked through once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inline {
    code: String,
    scan: Scan,
}

impl Inline {
    /// Takes the code as it was typed or read.
    pub fn new(code: &str) -> Inline {
        let code = code.strip_prefix('\u{feff}').unwrap_or(code).to_owned();
        Inline { scan: scan(&code), code }
    }
    /// Whether it imports or exports statically.
    pub fn is_module(&self) -> bool {
        self.scan.module
    }
    /// Whether it imports anything.
    pub fn imports(&self) -> bool {
        !self.scan.specifiers.is_empty()
    }

    /// The code with its relative imports taken from `cwd`, and `mcpx` from the client.
    fn anchored(&self, cwd: &Path, client: &Path) -> String {
        let mut out = String::with_capacity(self.code.len() + 64);
        let mut from = 0;
        for (range, text) in &self.scan.specifiers {
            let absolute = if text == "mcpx" {
                file_url(client)
            } else if text.starts_with("./") || text.starts_with("../") {
                let trailing = if text.ends_with('/') { "/" } else { "" };
                format!("{}{trailing}", file_url(&normal(&cwd.join(text))))
            } else {
                continue;
            };
            out.push_str(&self.code[from..range.start]);
            out.push_str(&absolute);
            from = range.end;
        }
        out.push_str(&self.code[from..]);
        out
    }

    /// Whether it imports something that a package directory has to provide.
    fn bare(&self) -> bool {
        self.scan.specifiers.iter().any(|(_, s)| {
            s != "mcpx"
                && !s.starts_with(['.', '/'])
                && !s.split('/').next().unwrap_or_default().contains(':')
        })
    }
}

/// The entry for inline code.
pub fn inline_entry(
    cache: &Path,
    client: &Generated,
    inline: &Inline,
    cwd: &Path,
    kind: JsKind,
    version: Option<Version>,
    export: Option<&str>,
) -> Entry {
    let Generated { path: client, content } = client;
    let code = inline.anchored(cwd, client);
    let packages = if inline.bare() { package_dirs(cwd) } else { Vec::new() };
    // deno and bun read TypeScript as quickly as JavaScript. node does not, and
    // may not read it at all, so it tries JavaScript first.
    let suffixes: &[&str] = match kind {
        _ if !inline.is_module() => &[],
        JsKind::Deno | JsKind::Bun => &[".code.ts"],
        JsKind::Node if version.is_none_or(strips_types) => &[".code.mjs", ".code.mts"],
        JsKind::Node => &[".code.mjs"],
    };
    let mut parts = vec![client.as_os_str().as_bytes(), code.as_bytes()];
    parts.extend(suffixes.iter().map(|s| s.as_bytes()));
    // A second file costs bun more than a millisecond, and the others nothing.
    let merged = match content {
        Content::Client(namespaces) if kind == JsKind::Bun && suffixes.is_empty() => Some(namespaces),
        _ => None,
    };
    parts.extend(merged.map(|_| &b"merged"[..]));
    parts.extend(export.map(str::as_bytes));
    parts.extend(packages.iter().map(|p| p.as_os_str().as_bytes()));
    let key = digest(parts, 16);
    let mut files = Vec::new();
    let mut dir = cache.join("run");
    // Packages are looked for upward from the importing file, so the entry lies
    // under links to the directories that the caller's own files would reach.
    if !packages.is_empty() {
        dir.push(&key);
        for (i, packages) in packages.iter().enumerate() {
            if i > 0 {
                dir.push("in");
            }
            files
                .push(Generated { path: dir.join("node_modules"), content: Content::Link(packages.clone()) });
        }
    }
    let path = dir.join(format!("{key}.mjs"));
    let import = format!("import {{ launcher }} from {};\n", quoted(&file_url(client)));
    let here = quoted(&path.to_string_lossy());
    let mut load = Vec::new();
    for suffix in suffixes {
        let file = dir.join(format!("{key}{suffix}"));
        load.push(format!("() => import({})", quoted(&file_url(&file))));
        files.push(Generated { path: file, content: Content::Text(code.clone()) });
    }
    // What the code imports is resolved against the file that evaluates it; were
    // the call in tail position, bun would take the caller's file.
    let start = match load.as_slice() {
        [] => format!(
            "const evaluate = eval;\n{AWAIT}launcher.exec({}, {here}, (text) => [evaluate(text)]);\n{AWAITED}",
            quoted(&code)
        ),
        ways => {
            let ways = ways.join(", ");
            let name = quoted(&format!("{key}.code."));
            let export = export_argument(export);
            format!("{AWAIT}launcher.run(launcher.first({ways}), {name}, {here}, true{export});\n{AWAITED}")
        }
    };
    let content = match merged {
        Some(namespaces) => Content::Merged(namespaces.clone(), start),
        None => Content::Text(ready(&format!("{import}{start}"))),
    };
    files.push(Generated { path: path.clone(), content });
    Entry { path, files }
}

/// The package directories (`node_modules`) that files in `dir` reach, the outermost first.
fn package_dirs(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        dir.ancestors().map(|d| d.join("node_modules")).filter(|d| d.is_dir()).collect();
    found.reverse();
    found
}

/// The flags with which deno finds a project's import map and packages, which
/// it would otherwise look for beside the entry.
pub fn deno_project_flags(dir: &Path) -> Vec<String> {
    let mut flags = Vec::new();
    let config =
        dir.ancestors().flat_map(|d| [d.join("deno.json"), d.join("deno.jsonc")]).find(|p| p.is_file());
    if let Some(config) = config {
        flags.push(format!("--config={}", config.display()));
    }
    if dir.ancestors().any(|d| d.join("node_modules").is_dir()) {
        flags.push("--node-modules-dir=manual".into());
    }
    flags
}

/// A path as a `file:` URL.
pub fn file_url(path: &Path) -> String {
    let mut url = String::from("file://");
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~@+".contains(&byte) {
            url.push(char::from(byte));
        } else {
            let _ = write!(url, "%{byte:02X}");
        }
    }
    url
}

/// The path without `.` and `..`, by its text alone.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<Namespace> {
        names.iter().map(|n| Namespace { name: (*n).into(), ident: n.replace('-', "_") }).collect()
    }

    fn made(path: &str) -> Generated {
        Generated { path: path.into(), content: Content::Client(names(&["demo"])) }
    }

    fn entry(code: &str, kind: JsKind, version: Option<Version>) -> (Entry, String) {
        let e = inline_entry(
            Path::new("/c"),
            &made("/c/client.mjs"),
            &Inline::new(code),
            Path::new("/w d"),
            kind,
            version,
            None,
        );
        let text = e.files.last().unwrap().content.text().unwrap();
        (e, text)
    }

    #[test]
    fn the_client_is_named_by_its_namespaces_and_exports_each() {
        let a = client(Path::new("/c"), &names(&["demo", "my-server", "fetch"]));
        let b = client(Path::new("/c"), &names(&["demo"]));
        assert_ne!(a.path, b.path);
        let text = a.content.text().unwrap();
        assert!(text.contains("tools[\"my-server\"];\nexport { namespace1 as my_server };"));
        assert!(text.contains("as fetch }"), "imported it may be, but the bare name is taken");
        assert!(text.contains("launcher.start([[\"demo\",\"demo\"],[\"my_server\",\"my-server\"]]);"));
        assert!(text.contains("\"outcome-unknown\":76"));
        let checked_in = client_module(&names(&["demo"]));
        assert!(!checked_in.contains("launcher.start") && checked_in.contains("as demo }"));
    }

    #[test]
    fn inline_code_is_embedded_and_a_module_is_a_file() {
        let (e, text) = entry("demo.echo({text: \"a\\n\u{2028}\"})", JsKind::Node, None);
        assert_eq!(e.files.len(), 1);
        assert!(text.starts_with("// @bun\nimport { launcher } from \"file:///c/client.mjs\";\nconst evaluate = eval;\nconst ended = launcher.exec(\"demo.echo({text: \\\"a\\\\n"), "{text}");
        let (same, _) = entry("demo.echo({text: \"a\\n\u{2028}\"})", JsKind::Deno, None);
        assert_eq!(same.path, e.path);
        let (merged, alone) = entry("1", JsKind::Bun, None);
        assert_eq!((merged.files.len(), alone.matches("import {").count()), (1, 0));
        assert!(
            alone.contains("launcher.start([[\"demo\",\"demo\"]]);")
                && alone.contains("launcher.exec(\"1\", ")
        );
        assert!(!alone.lines().any(|l| l.starts_with("export")), "bun would serve a default export");
        let (_, text) = entry("return \"ü😀\"", JsKind::Bun, None);
        assert!(text.is_ascii() && text.contains("\\\"\\u{fc}\\u{1f600}\\\""), "{text}");
        let (e, text) = entry("import x from './x.ts'\nexport default x", JsKind::Deno, None);
        assert!(e.files[0].path.to_str().unwrap().ends_with(".code.ts"));
        assert_eq!(
            e.files[0].content.text().unwrap(),
            "import x from 'file:///w%20d/x.ts'\nexport default x"
        );
        assert!(text.contains(".code.ts\")") && text.contains(", true);\n"), "{text}");
        let (e, text) = entry("import 'mcpx'", JsKind::Node, Some(Version::new(22, 6, 0)));
        assert_eq!(e.files.len(), 3);
        assert!(
            text.contains(".code.mts")
                && e.files[1].content.text().unwrap() == "import 'file:///c/client.mjs'"
        );
        assert_eq!(entry("import 'a:b'", JsKind::Node, Some(Version::new(20, 0, 0))).0.files.len(), 2);
    }

    #[test]
    fn packages_are_found_from_the_callers_directory() {
        let dir = std::env::temp_dir().join(format!("mcpx-launcher-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("a/node_modules")).unwrap();
        std::fs::create_dir_all(dir.join("node_modules")).unwrap();
        std::fs::write(dir.join("deno.json"), "{}").unwrap();
        let of = |code: &str| {
            inline_entry(
                Path::new("/c"),
                &made("/c/m"),
                &Inline::new(code),
                &dir.join("a"),
                JsKind::Bun,
                None,
                None,
            )
        };
        let e = of("const x = await import('lodash/fp')");
        let links: Vec<_> = e.files.iter().filter(|f| matches!(f.content, Content::Link(_))).collect();
        assert_eq!(links.last().unwrap().content, Content::Link(dir.join("a/node_modules")));
        assert!(e.path.starts_with(links.last().unwrap().path.parent().unwrap()));
        assert_eq!(of("await import('node:fs')").files.len(), 1);
        let flags = deno_project_flags(&dir.join("a"));
        assert_eq!(
            flags,
            [format!("--config={}/deno.json", dir.display()), "--node-modules-dir=manual".into()]
        );
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn urls_keep_every_byte_of_a_path() {
        assert_eq!(file_url(Path::new("/a b/ü%#?.ts")), "file:///a%20b/%C3%BC%25%23%3F.ts");
        assert_eq!(normal(Path::new("/a/./b/../c")), Path::new("/a/c"));
    }
}
