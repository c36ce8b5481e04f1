//! Generates the file that a script is started on, which embeds inline code or
//! imports a file. Makes texts and paths; writes nothing.

use super::around::Around;
use super::imports;
use super::launcher::{Content, Generated, file_url, quoted, ready};
use super::runtimes::{JsKind, Version, strips_types};
use super::scan::{Scan, scan};
use crate::util::digest;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
/// circles for as long as a module awaits what never comes, and in deno, which would
/// show this very line for what never comes in the script.
const AWAIT: &str = "const ended = ";
const AWAITED: &str = "if (!globalThis.Bun && !globalThis.Deno) await ended;\n";

/// How hooks get at indirect eval from within the entry, against which their imports are resolved.
const EVALUATE: &str = "const evaluate = eval;\n";

/// The launcher's last arguments: how to evaluate, and the options; nothing when there are none.
fn options(inline: bool, export: Option<&str>, around: &Around) -> String {
    let mut fields = Vec::new();
    fields.extend(inline.then(|| "inline: true".to_owned()));
    fields.extend(export.map(|name| format!("name: {}", quoted(name))));
    fields.extend((!around.is_empty()).then(|| format!("around: {}", around.literal())));
    let evaluate = if around.is_empty() { "undefined" } else { "(text) => [evaluate(text)]" };
    match fields.is_empty() {
        true => String::new(),
        false => format!(", {evaluate}, {{ {} }}", fields.join(", ")),
    }
}

/// The entry for a file: imports the client, then the file, of which it calls `export` or what is exported as default.
pub fn file_entry(cache: &Path, client: &Path, file: &Path, export: Option<&str>, around: &Around) -> Entry {
    let options = options(false, export, around);
    let parts = [client.as_os_str().as_bytes(), file.as_os_str().as_bytes(), options.as_bytes()];
    let key = digest(parts, 16);
    let path = cache.join("run").join(format!("{key}.mjs"));
    let text = format!(
        "import {{ launcher }} from {};\n{}{AWAIT}launcher.run(() => import({}), {}, {}{options});\n{AWAITED}",
        quoted(&file_url(client)),
        if around.is_empty() { "" } else { EVALUATE },
        quoted(&file_url(file)),
        quoted(&file.to_string_lossy()),
        quoted(&path.to_string_lossy()),
    );
    Entry { files: vec![Generated { path: path.clone(), content: Content::Text(ready(&text)) }], path }
}

/// Inline code, looked through once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inline {
    code: Arc<str>,
    scan: Scan,
}

impl Inline {
    /// Takes the code as it was typed or read.
    pub fn new(code: &Arc<str>) -> Inline {
        // One text for all that hold it: it may be large.
        let code = code.strip_prefix('\u{feff}').map_or_else(|| code.clone(), Arc::from);
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

    /// Whether it imports the client.
    fn imports_client(&self) -> bool {
        self.scan.specifiers.iter().any(|(_, s)| s == "mcpx")
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

/// What the entry for inline code depends on, besides the code.
pub struct Scene<'a> {
    /// The cache directory.
    pub cache: &'a Path,
    /// The client.
    pub client: &'a Generated,
    /// The caller's directory.
    pub cwd: &'a Path,
    /// What runs it.
    pub kind: JsKind,
    /// Its version, where that is known.
    pub version: Option<Version>,
    /// The export to call.
    pub export: Option<&'a str>,
    /// What runs around it.
    pub around: &'a Around,
}

/// The entry for inline code.
pub fn inline_entry(inline: &Inline, scene: &Scene) -> Entry {
    let &Scene { cache, client: Generated { path: client, content }, cwd, kind, version, export, around } =
        scene;
    let mut code = inline.anchored(cwd, client);
    let with_imports;
    let (module, around) = match export.is_none().then(|| imports::hoisted(&code)).flatten() {
        Some((before, rest)) => {
            code = rest;
            with_imports = around.with_imports(&before);
            (false, &with_imports)
        }
        None => (inline.is_module(), around),
    };
    let packages = if inline.bare() { package_dirs(cwd) } else { Vec::new() };
    // deno and bun read TypeScript as quickly as JavaScript. node does not, and
    // may not read it at all, so it tries JavaScript first.
    let suffixes: &[&str] = match kind {
        _ if !module => &[],
        JsKind::Deno | JsKind::Bun => &[".code.ts"],
        JsKind::Node if version.is_none_or(strips_types) => &[".code.mjs", ".code.mts"],
        JsKind::Node => &[".code.mjs"],
    };
    let mut parts = vec![client.as_os_str().as_bytes(), code.as_bytes()];
    parts.extend(suffixes.iter().map(|s| s.as_bytes()));
    // A second file costs bun more than a millisecond, and the others nothing.
    let merged = match content {
        Content::Client(namespaces)
            if kind == JsKind::Bun && suffixes.is_empty() && !inline.imports_client() =>
        {
            Some(namespaces)
        }
        _ => None,
    };
    parts.extend(merged.map(|_| &b"merged"[..]));
    let options = match module {
        true => options(true, export, around),
        false if around.is_empty() => String::new(),
        false => format!(", {}", around.literal()),
    };
    parts.push(options.as_bytes());
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
            "{EVALUATE}{AWAIT}launcher.exec({}, {here}, (text) => [evaluate(text)]{options});\n{AWAITED}",
            quoted(&code)
        ),
        ways => {
            let ways = ways.join(", ");
            let name = quoted(&format!("{key}.code."));
            let evaluate = if around.is_empty() { "" } else { EVALUATE };
            format!(
                "{evaluate}{AWAIT}launcher.run(launcher.first({ways}), {name}, {here}{options});\n{AWAITED}"
            )
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
    use super::super::launcher::Namespace;
    use super::*;

    fn made(path: &str) -> Generated {
        let demo = Namespace { name: "demo".into(), ident: "demo".into() };
        Generated { path: path.into(), content: Content::Client(vec![demo]) }
    }

    fn entry(code: &str, kind: JsKind, version: Option<Version>) -> (Entry, String) {
        let e = inline_entry(
            &Inline::new(&(*code).into()),
            &Scene {
                cache: Path::new("/c"),
                client: &made("/c/client.mjs"),
                cwd: Path::new("/w d"),
                kind,
                version,
                export: None,
                around: &Around::default(),
            },
        );
        let text = e.files.last().unwrap().content.text().unwrap();
        (e, text)
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
        assert!(text.contains(".code.ts\")") && text.contains(", undefined, { inline: true });\n"), "{text}");
        let (e, text) = entry("import 'mcpx'\nexport {}", JsKind::Node, Some(Version::new(22, 6, 0)));
        assert_eq!(e.files.len(), 3);
        assert!(
            text.contains(".code.mts")
                && e.files[1].content.text().unwrap() == "import 'file:///c/client.mjs'\nexport {}"
        );
        assert_eq!(entry("export {}", JsKind::Node, Some(Version::new(20, 0, 0))).0.files.len(), 2);
        let (e, text) = entry("import { b } from './b.ts'; return b", JsKind::Bun, None);
        assert_eq!(e.files.len(), 1, "imports alone make no file of their own");
        assert!(text.contains("{\"imports\":\"const{\\\"b\\\":b,}=$mcpx(await import("), "{text}");
        assert!(text.contains("launcher.start"), "merged");
        let (_, text) = entry("import { demo } from 'mcpx'; return demo", JsKind::Bun, None);
        assert!(!text.contains("launcher.start"), "what is imported by name is a module");
    }

    #[test]
    fn packages_are_found_from_the_callers_directory() {
        let dir = std::env::temp_dir().join(format!("mcpx-launcher-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("a/node_modules")).unwrap();
        std::fs::create_dir_all(dir.join("node_modules")).unwrap();
        std::fs::write(dir.join("deno.json"), "{}").unwrap();
        let of = |code: &str| {
            inline_entry(
                &Inline::new(&(*code).into()),
                &Scene {
                    cache: Path::new("/c"),
                    client: &made("/c/m"),
                    cwd: &dir.join("a"),
                    kind: JsKind::Bun,
                    version: None,
                    export: None,
                    around: &Around::default(),
                },
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
    fn a_path_loses_its_dots() {
        assert_eq!(normal(Path::new("/a/./b/../c")), Path::new("/a/c"));
    }
}
