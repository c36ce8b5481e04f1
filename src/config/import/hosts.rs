//! Where each host's file has its servers, and which of them it has switched
//! off. Knows nothing of where the files are.

use super::block::{self, Words};
use super::{Dialect, Imported};
use serde_json::{Map, Value};
use std::path::Path;

/// The servers of a document.
pub(super) fn servers(dialect: Dialect, value: &Value, dir: &Path) -> Vec<Imported> {
    match dialect {
        Dialect::Common => all(&value["mcpServers"], Words::COMMON, &[]),
        Dialect::ClaudeCode => claude_code(value, dir),
        Dialect::VsCode => {
            let list =
                if value["servers"].is_object() { &value["servers"] } else { &value["mcp"]["servers"] };
            all(list, Words::VSCODE, &[])
        }
        Dialect::Codex => all(&value["mcp_servers"], Words::CODEX, &[]),
        Dialect::OpenCode => all(&value["mcp"], Words::OPENCODE, &[]),
        Dialect::Gemini => gemini(value),
    }
}

/// Every member of an object, as a server; those named in `off` are switched off.
fn all(list: &Value, words: Words, off: &[&str]) -> Vec<Imported> {
    let members = list.as_object().into_iter().flatten();
    members.map(|(name, entry)| one(name, entry, words, off.contains(&name.as_str()))).collect()
}

fn one(name: &str, entry: &Value, words: Words, off: bool) -> Imported {
    let mut notes = Vec::new();
    let mut block = block::convert(entry, words, &mut notes);
    if let (true, Ok(block)) = (off, &mut block) {
        block["enabled"] = false.into();
    }
    if block.as_ref().is_ok_and(|b| b["enabled"] == false) {
        notes.insert(0, "it is switched off there, and stays so".into());
    }
    Imported { name: name.to_owned(), block, notes }
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The user's servers, and those of the project that `dir` is in, which come first.
fn claude_code(value: &Value, dir: &Path) -> Vec<Imported> {
    let empty = Map::new();
    let projects = value["projects"].as_object().unwrap_or(&empty);
    let project = dir.ancestors().find_map(|d| projects.get(d.to_str()?)).unwrap_or(&Value::Null);
    let mut off = texts(&project["disabledMcpServers"]);
    off.extend(texts(&value["disabledMcpServers"]));
    let mut out = all(&project["mcpServers"], Words::COMMON, &off);
    for server in all(&value["mcpServers"], Words::COMMON, &off) {
        if !out.iter().any(|s| s.name == server.name) {
            out.push(server);
        }
    }
    // Those of the project's .mcp.json, which mcpx reads by itself.
    for name in texts(&project["disabledMcpjsonServers"]) {
        if !out.iter().any(|s| s.name == name) {
            let notes = vec!["it is switched off there, and stays so".into()];
            out.push(Imported { name: name.to_owned(), block: Ok(block::off_switch()), notes });
        }
    }
    out
}

/// `mcp.allowed` and `mcp.excluded` are Gemini's switches.
fn gemini(value: &Value) -> Vec<Imported> {
    let names: Vec<&str> =
        value["mcpServers"].as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    let mut off = texts(&value["mcp"]["excluded"]);
    if value["mcp"]["allowed"].is_array() {
        let allowed = texts(&value["mcp"]["allowed"]);
        off.extend(names.into_iter().filter(|name| !allowed.contains(name)));
    }
    all(&value["mcpServers"], Words::GEMINI, &off)
}
