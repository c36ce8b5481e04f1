//! Changes the servers of a configuration file: adds, removes, switches. Knows
//! nothing of daemons, or of which file is meant.

use super::edit::Edit;
use super::jsonc;
use super::node::Item;
pub use super::secrets::masked;
use super::server::{self, Block, Place};
use crate::error::{Error, Kind, Result};
use crate::util::Env;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The file, links followed.
    pub path: PathBuf,
    /// It did not exist before.
    pub new_file: bool,
    /// The server was in it before.
    pub there: bool,
    /// Its text is another than before.
    pub changed: bool,
}

/// How a server is to be written.
#[derive(Clone, Copy, Debug, Default)]
pub struct How {
    /// Over one of the same name.
    pub replace: bool,
    /// A new file is closed to others, as it is in any case when a secret comes into it.
    pub private: bool,
}

/// What the file as it is says of a server: its block, unexpanded.
///
/// # Errors
/// As [`Edit::open`].
pub fn block(path: &Path, name: &str) -> Result<Option<Value>> {
    let edit = Edit::open(path)?;
    Ok(edit.get(&[member(&edit), name]))
}

/// The blocks of all servers that a file mentions, unexpanded.
///
/// # Errors
/// As [`Edit::open`].
pub fn blocks(path: &Path) -> Result<Map<String, Value>> {
    let edit = Edit::open(path)?;
    match edit.get(&[member(&edit)]) {
        Some(Value::Object(blocks)) => Ok(blocks),
        _ => Ok(Map::new()),
    }
}

/// Adds a server, or replaces it.
///
/// # Errors
/// `Usage` when the definition cannot be used, whatever its variables stand for,
/// or when the file has the server and is not to replace it; as [`Edit`].
pub fn put(path: &Path, name: &str, block: &Value, how: How) -> Result<Change> {
    write(path, name, block, block, how)
}

/// The same for a block of another host's, in which placeholders may be left
/// that mcpx does not fill in: until somebody does, that server shows them as its problem.
///
/// # Errors
/// As [`put`], placeholders aside.
pub fn put_foreign(path: &Path, name: &str, block: &Value, how: How) -> Result<Change> {
    write(path, name, block, &without_placeholders(block), how)
}

/// Whether [`put_foreign`] would take a block.
///
/// # Errors
/// As [`put_foreign`], the file's own aside.
pub fn check_foreign(path: &Path, name: &str, block: &Value) -> Result<()> {
    check_name(name)?;
    check(name, &without_placeholders(block), path)
}

/// A block with a stand-in for every placeholder.
fn without_placeholders(block: &Value) -> Value {
    match block {
        Value::String(text) => {
            let mut out = text.clone();
            while let Some((start, length)) = out.find("${").and_then(|s| Some((s, out[s..].find('}')?))) {
                out.replace_range(start..=start + length, STAND_IN);
            }
            out.into()
        }
        Value::Array(list) => list.iter().map(without_placeholders).collect(),
        Value::Object(members) => {
            members.iter().map(|(k, v)| (k.clone(), without_placeholders(v))).collect::<Map<_, _>>().into()
        }
        other => other.clone(),
    }
}

/// Writes a block, when `checked` could be used.
fn write(path: &Path, name: &str, block: &Value, checked: &Value, how: How) -> Result<Change> {
    check_name(name)?;
    let mut edit = Edit::open(path)?;
    let place = [member(&edit), name];
    let there = edit.get(&place).is_some();
    if there && !how.replace {
        let message = format!("{} has a server \"{name}\" already", edit.path().display());
        return Err(Error::new(Kind::Usage, message).server(name).hint("--force replaces it"));
    }
    check(name, checked, edit.path())?;
    if how.private || masked(block) != *block {
        edit.make_private();
    }
    edit.set(&place, block.clone())?;
    save(edit, there)
}

/// Removes a server from a file; `None` when it is not in it.
///
/// # Errors
/// As [`Edit`].
pub fn remove(path: &Path, name: &str) -> Result<Option<Change>> {
    let mut edit = Edit::open(path)?;
    let place = [member(&edit), name];
    match edit.remove(&place)? {
        true => save(edit, true).map(Some),
        false => Ok(None),
    }
}

/// Switches a server on or off: where the file has its block, in the member
/// that says so already; else by a block that does nothing but switch it.
///
/// # Errors
/// As [`Edit`].
pub fn switch(path: &Path, name: &str, on: bool) -> Result<Change> {
    check_name(name)?;
    let mut edit = Edit::open(path)?;
    let place = [member(&edit), name];
    let Some(block) = edit.get(&place) else {
        edit.set(&place, json!({"enabled": on}))?;
        return save(edit, false);
    };
    let at = |key: &[&'static str]| [&place[..], key].concat();
    if block["mcpx"].get("enabled").is_some() {
        edit.set(&at(&["mcpx", "enabled"]), on.into())?;
    } else if block.get("disabled").is_some() {
        edit.set(&at(&["disabled"]), (!on).into())?;
        // Both may be there, as long as they agree.
        if block.get("enabled").is_some() {
            edit.set(&at(&["enabled"]), on.into())?;
        }
    } else if block.get("enabled").is_some() || !on {
        edit.set(&at(&["enabled"]), on.into())?;
    }
    save(edit, true)
}

/// Changes members of a server's `mcpx` block: in the file's own block, or, where the server is
/// defined in a file further away, in a block that does nothing but change it.
///
/// # Errors
/// `Usage` when a value cannot be used; as [`Edit`].
pub fn adjust(path: &Path, name: &str, members: &Map<String, Value>) -> Result<Change> {
    check_name(name)?;
    let mut edit = Edit::open(path)?;
    let place = [member(&edit), name];
    let block = edit.get(&place);
    // The values alone are checked: what else is wrong with the block is not this change's.
    check(name, &json!({"command": "x", "mcpx": members}), edit.path())?;
    match &block {
        None => drop(edit.set(&place, json!({"mcpx": members}))?),
        Some(_) => {
            for (key, value) in members {
                edit.set(&[place[0], name, "mcpx", key], value.clone())?;
            }
        }
    }
    save(edit, block.is_some())
}

fn save(edit: Edit, there: bool) -> Result<Change> {
    let (path, new_file) = (edit.path().to_owned(), !edit.exists());
    Ok(Change { path, new_file, there, changed: edit.save()? })
}

/// The member that holds a file's servers, as loading sees it.
fn member(edit: &Edit) -> &'static str {
    match edit.get(&["mcpServers"]).is_none() && edit.get(&["servers"]).is_some() {
        true => "servers",
        false => "mcpServers",
    }
}

fn check_name(name: &str) -> Result<()> {
    if name.trim().is_empty() || name.trim() != name || name.chars().any(char::is_control) {
        let message = format!("\"{}\" cannot be a server's name", name.escape_debug());
        return Err(Error::new(Kind::Usage, message));
    }
    Ok(())
}

/// Stands for a variable that is not set: fits wherever a text may stand, an address included.
const STAND_IN: &str = "http://x";

/// Whether a definition could be used, if the variables that it names were set.
fn check(name: &str, block: &Value, path: &Path) -> Result<()> {
    let text = block.to_string();
    let mut env = Env::default();
    for part in text.split("${").skip(1) {
        let end = part.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(part.len());
        env.set(&part[..end], STAND_IN);
    }
    let tree = jsonc::tree(&text, path)?;
    let path = Arc::new(path.to_owned());
    let base = path.parent().unwrap_or(Path::new("/"));
    let Item::Object(_) = &tree.root.item else {
        let message = format!("server \"{name}\": its definition must be an object");
        return Err(Error::new(Kind::Usage, message).server(name));
    };
    match server::read(name, &tree.root, &Place { path: &path, base, env: &env }) {
        Block::Patch(_) => Ok(()),
        Block::Server(def) => match def.problem {
            None => Ok(()),
            Some(problem) => {
                // The place is one in a text that nobody has written yet.
                let message = problem.message();
                let message = message.find("server \"").map_or(message, |at| &message[at..]);
                Err(Error::new(Kind::Usage, message).server(name).hint("nothing was changed"))
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::secrets::MASK;
    use super::*;
    use crate::config::tests::Scratch;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    const NEW: How = How { replace: false, private: false };
    const OVER: How = How { replace: true, private: false };
    const FILE: &str =
        "{\n  // Ours.\n  \"mcpServers\": {\n    \"a\": { \"command\": \"x\" }, // first\n  },\n}\n";

    #[test]
    fn a_server_is_added_replaced_switched_and_removed_and_comments_stay() {
        let scratch = Scratch::new();
        let path = scratch.file("c.json", FILE);
        let change = put(&path, "b", &json!({"url": "https://h/${X}"}), NEW).unwrap();
        assert!(!change.new_file && !change.there && change.changed);
        assert!(put(&path, "b", &json!({"command": "y"}), NEW).unwrap_err().to_string().contains("--force"));
        assert!(put(&path, "b", &json!({"command": "y"}), OVER).unwrap().there);
        assert_eq!(block(&path, "b").unwrap().unwrap(), json!({"command": "y"}));
        assert!(switch(&path, "b", false).unwrap().changed);
        assert_eq!(block(&path, "b").unwrap().unwrap()["enabled"], false);
        assert!(!switch(&path, "a", true).unwrap().changed, "it is on already");
        assert!(switch(&path, "b", true).unwrap().changed);
        // One of another file is switched by a block of its own.
        assert!(!switch(&path, "far", false).unwrap().there);
        assert_eq!(block(&path, "far").unwrap().unwrap(), json!({"enabled": false}));
        for name in ["b", "far"] {
            assert!(remove(&path, name).unwrap().unwrap().changed);
        }
        assert!(remove(&path, "b").unwrap().is_none());
        assert_eq!(fs::read_to_string(&path).unwrap(), FILE);
    }

    #[test]
    fn the_member_that_says_so_already_is_the_switch() {
        let scratch = Scratch::new();
        for (before, after) in [
            (json!({"command": "x", "disabled": true}), json!({"command": "x", "disabled": false})),
            (
                json!({"command": "x", "mcpx": {"enabled": false}}),
                json!({"command": "x", "mcpx": {"enabled": true}}),
            ),
            (json!({"command": "x", "enabled": false}), json!({"command": "x", "enabled": true})),
        ] {
            let path = scratch.file("c.json", json!({"servers": {"s": before}}).to_string());
            switch(&path, "s", true).unwrap();
            assert_eq!(block(&path, "s").unwrap().unwrap(), after);
        }
    }

    #[test]
    fn what_could_never_work_is_not_written() {
        let scratch = Scratch::new();
        let path = scratch.path("new.json");
        for (name, bad, part) in [
            ("a", json!({"url": "ftp://x"}), "must begin with http"),
            ("a", json!({"command": "x", "mcpx": {"scop": 1}}), "unknown key \"scop\""),
            ("a", json!({"args": []}), "neither"),
            ("a", json!({"url": "http://h", "headers": {"a b": "c"}}), "no name of a header"),
            ("a", json!(["x"]), "must be an object"),
            (" a", json!({"command": "x"}), "cannot be a server's name"),
        ] {
            let e = put(&path, name, &bad, NEW).unwrap_err();
            assert!(e.exit_code() == 2 && e.message().contains(part), "{bad}: {e}");
            assert!(!path.exists());
        }
        let unset = json!({"url": "${NOT_SET}/mcp", "headers": {"A": "Bearer ${ALSO:-${NOT}}"}});
        assert!(put(&path, "a", &unset, NEW).unwrap().new_file);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let plain = scratch.path("plain.json");
        put(&plain, "a", &json!({"command": "x", "env": {"TOKEN": "${TOKEN}"}}), NEW).unwrap();
        assert_ne!(mode(&plain) & 0o044, 0, "nothing in it is secret");
        let secret = scratch.path("secret.json");
        put(&secret, "a", &json!({"command": "x", "env": {"TOKEN": "hunter2"}}), NEW).unwrap();
        assert_eq!(mode(&secret), 0o600);
        let private = scratch.path("private.json");
        put(&private, "a", &json!({"command": "x"}), How { private: true, ..NEW }).unwrap();
        assert_eq!(mode(&private), 0o600);
        let foreign = json!({"url": "${input:base}/x", "headers": {"A": "${input:token}"}});
        assert!(put(&path, "b", &foreign, NEW).unwrap_err().message().contains("${input:"));
        assert!(put_foreign(&path, "b", &foreign, NEW).unwrap().changed);
        assert_eq!(block(&path, "b").unwrap().unwrap(), foreign);
        assert!(check_foreign(&path, "b", &json!({"url": "x"})).is_err());
    }

    #[test]
    fn secrets_are_masked_and_references_to_variables_are_not() {
        let block = json!({
            "command": "x",
            "args": ["--port", "80", "--api-key", "k1", "--token=k2", "--token=${T}", "-v", "https://u:p@h/x?key=k3"],
            "env": {"A": "k4", "B": "${B}", "C": "${C:-k5}", "D": ""},
            "headers": {"Authorization": "Bearer ${T}", "X": "Bearer k6"},
            "url": "https://user:k7@host/path?key=k8&t=${T}",
            "description": "stays",
        });
        let shown = masked(&block);
        let text = shown.to_string();
        for n in 1..=8 {
            assert!(!text.contains(&format!("k{n}")), "k{n}: {text}");
        }
        assert_eq!(shown["args"][1], "80");
        assert_eq!(shown["args"][5], "--token=${T}");
        assert_eq!(shown["env"]["B"], "${B}");
        assert_eq!(shown["headers"]["Authorization"], "Bearer ${T}");
        assert_eq!(shown["url"], format!("https://{MASK}@host/path?key={MASK}&t=${{T}}"));
        assert_eq!(shown["description"], "stays");
    }
}
