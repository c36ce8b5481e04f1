//! Generates the client that scripts call tools with: one module with the
//! namespaces' names, named by its content. Makes texts and paths; writes nothing.

use crate::catalog::ts::is_js_global;
use crate::error::KINDS;
use crate::util::digest;
use serde_json::{Map, Value};
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const LINK: &str = include_str!("client/link.mjs");
const TOOLS: &str = include_str!("client/tools.mjs");
const ARTIFACT: &str = include_str!("client/artifact.mjs");
const CONSOLE: &str = include_str!("client/console.mjs");
const LAUNCHER: &str = include_str!("client/launcher.mjs");
const PYTHON: &str = include_str!("client/mcpx.py");

/// Tells bun that a file is JavaScript as it stands, which saves it a pass over
/// the text: half a millisecond for the client. To the others it is a comment.
const READY: &str = "// @bun\n";

/// A file for [`READY`]: bun then reads it byte by byte, not as UTF-8, so every
/// character beyond ASCII stands as an escape, which strings and identifiers allow alike.
pub(super) fn ready(text: &str) -> String {
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
const BUILD: u64 = fnv(LINK.as_bytes())
    ^ fnv(TOOLS.as_bytes()).rotate_left(1)
    ^ fnv(LAUNCHER.as_bytes()).rotate_left(2)
    ^ fnv(CONSOLE.as_bytes()).rotate_left(3)
    ^ fnv(ARTIFACT.as_bytes()).rotate_left(4);

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
    let mut text = format!("{LINK}\n{TOOLS}\n{ARTIFACT}\n");
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
    let mut text = format!("{LINK}\n{TOOLS}\n{ARTIFACT}\n{CONSOLE}\n{LAUNCHER}\n");
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
pub(super) fn quoted(text: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<Namespace> {
        names.iter().map(|n| Namespace { name: (*n).into(), ident: n.replace('-', "_") }).collect()
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
    fn urls_keep_every_byte_of_a_path() {
        assert_eq!(file_url(Path::new("/a b/ü%#?.ts")), "file:///a%20b/%C3%BC%25%23%3F.ts");
    }
}
