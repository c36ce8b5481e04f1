//! Servers that mcpx itself is: a declared command-line program, or an HTTP API
//! with an OpenAPI document. Fills in variables and makes the definition of the
//! child that is started for one. What the declaration says in detail is read by that child.

use super::expand::{Into, expand_into};
use super::node::{Item, Node};
use super::values::Fault;
use crate::settings::{self, At, Settings};
use crate::util::{self, Env};
use serde_json::{Map, Value, json};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The variable in which a child gets its declaration, as JSON.
pub const VARIABLE: &str = "MCPX_ADAPTER_DECLARATION";

/// The variable with the digest of an API's declaration.
pub const DIGEST: &str = "MCPX_API_DECLARATION_SHA256";

/// This very binary, also after the file was replaced: for a child the link still leads to what its parent runs.
const OURSELVES: &str = "/proc/self/exe";

/// What the child is told to be.
const ARGUMENTS: [&str; 2] = ["adapter", "serve"];

/// The longest declaration: Linux takes no single variable above 128 KiB.
const LONGEST: usize = 120_000;

/// The members that declare a server, with what may be in them.
const KINDS: [(&str, &[&str]); 2] = [
    ("program", &["command", "timeout", "tools"]),
    ("openapi", &["auth", "baseUrl", "document", "exclude", "headers", "include", "pagination", "timeout"]),
];

/// The settings that the child goes by; the files in which they stand may be out of its sight.
const HANDED_OVER: [&dyn settings::Declared; 6] = [
    &settings::ADAPTERS_TIMEOUT,
    &settings::ADAPTERS_MAX_OUTPUT,
    &settings::ADAPTERS_MAX_DOCUMENT,
    &settings::ADAPTERS_MAX_SCHEMA,
    &settings::TRANSPORT_CA_FILE,
    &settings::MCP_MAX_MESSAGE,
];

/// What a child is told of the settings, on top of its definition.
pub fn settings_for(own: &[(String, String)], settings: &Settings) -> Vec<(String, String)> {
    if !own.iter().any(|(name, _)| name == VARIABLE) {
        return Vec::new();
    }
    let each = HANDED_OVER.iter().filter_map(|setting| {
        let value = settings.explain(setting.key())?.value.text();
        Some((setting.env_names().into_iter().next()?, value))
    });
    each.collect()
}

/// Whether a variable is meant for the child alone, and not for the program that it runs.
pub fn is_for_child(name: &str) -> bool {
    name == VARIABLE || name == DIGEST || HANDED_OVER.iter().any(|s| s.env_names().iter().any(|n| n == name))
}

/// A declaration as it is written.
pub(super) struct Declared {
    kind: &'static str,
    value: Value,
    /// Where it is.
    pub at: At,
}

/// A declaration that can be handed to a child.
pub(super) struct Ready {
    pub command: String,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    /// It depends on the directory of its file.
    pub relative: bool,
}

impl Declared {
    /// Whether a member of an `"mcpx"` block declares a server.
    pub fn is(key: &str) -> bool {
        KINDS.iter().any(|(kind, _)| *kind == key)
    }

    /// Reads such a member.
    pub fn read(key: &str, node: &Node) -> Result<Declared, Fault> {
        let Some((kind, known)) = KINDS.iter().find(|(kind, _)| *kind == key) else {
            return Err((node.at, format!("mcpx.{key}: declares no server")));
        };
        let Item::Object(members) = &node.item else {
            return Err((node.at, format!("mcpx.{kind}: expected an object, got {}", node.shape())));
        };
        for (name, member) in members {
            if !known.contains(&name.as_ref()) {
                let near = util::did_you_mean(name, known.iter().copied());
                let near = near.map(|n| format!("; {n}")).unwrap_or_default();
                return Err((member.at, format!("mcpx.{kind}: unknown key \"{name}\"{near}")));
            }
        }
        Ok(Declared { kind, value: node.to_value(), at: node.at })
    }

    /// The path or URL of an API's document, or of a program with a slash in it.
    fn target(&self) -> Option<&str> {
        self.value[if self.kind == "openapi" { "document" } else { "command" }].as_str()
    }

    /// The document's file, when it is one.
    pub fn document(&self, place: &Path, env: &Env) -> Option<PathBuf> {
        let text = self.target().filter(|_| self.kind == "openapi")?;
        let text = expand_into(text, env, Into::Text).ok()?;
        (!is_url(&text)).then(|| place.join(text))
    }

    /// What of it makes a server another server: the text as written, and the state of the document.
    pub fn digest_parts(&self, base: &Path, env: &Env) -> Vec<String> {
        let mut parts = vec![self.kind.to_owned(), self.value.to_string()];
        // Not its content: a large document would be read by every command.
        if let Some(meta) = self.document(base, env).and_then(|path| std::fs::metadata(path).ok()) {
            parts.push(format!("{} {}.{} {}", meta.len(), meta.mtime(), meta.mtime_nsec(), meta.ino()));
        }
        parts
    }

    /// Fills in variables and resolves relative paths.
    pub fn ready(&self, server: &str, base: &Path, env: &Env) -> Result<Ready, Fault> {
        let fail = |what: String| (self.at, what);
        let mut relative = false;
        let mut value = self.filled("", &self.value, env).map_err(fail)?;
        let member = if self.kind == "openapi" { "document" } else { "command" };
        let target = value[member].as_str().unwrap_or_default().to_owned();
        if target.trim().is_empty() {
            return Err(fail(format!("mcpx.{}.{member}: is missing", self.kind)));
        }
        let is_path = if self.kind == "openapi" { !is_url(&target) } else { target.contains('/') };
        if is_path {
            relative = !target.starts_with('/');
            value[member] = base.join(&target).to_string_lossy().into();
        }
        let declaration = json!({"server": server, self.kind: value}).to_string();
        if declaration.len() > LONGEST {
            let what = format!(
                "mcpx.{}: is {} bytes long, and at most {LONGEST} can be handed to a program; make two servers of it",
                self.kind,
                declaration.len()
            );
            return Err(fail(what));
        }
        let mut own = vec![(VARIABLE.to_owned(), declaration)];
        if self.kind == "openapi" {
            let parts = self.digest_parts(base, env);
            own.push((DIGEST.to_owned(), util::digest(parts.iter().map(String::as_bytes), 64)));
        }
        let args = ARGUMENTS.map(str::to_owned).to_vec();
        Ok(Ready { command: OURSELVES.to_owned(), args, env: own, relative })
    }

    /// The value with variables filled in where texts are handed on: not in schemas and descriptions.
    fn filled(&self, place: &str, value: &Value, env: &Env) -> Result<Value, String> {
        const PLAIN: &[&str] = &["annotations", "description", "outputSchema", "schema", "title"];
        let inside = |key: &str| if place.is_empty() { key.to_owned() } else { format!("{place}.{key}") };
        Ok(match value {
            Value::Object(members) => {
                let in_tool = self.kind == "program" && place.starts_with("tools.");
                let each = members.iter().map(|(key, value)| {
                    let value = match in_tool && PLAIN.contains(&key.as_str()) {
                        true => value.clone(),
                        false => self.filled(&inside(key), value, env)?,
                    };
                    Ok((key.clone(), value))
                });
                Value::Object(each.collect::<Result<Map<_, _>, String>>()?)
            }
            Value::Array(list) => {
                let each = list.iter().enumerate();
                let each = each.map(|(i, value)| self.filled(&format!("{place}[{i}]"), value, env));
                Value::Array(each.collect::<Result<_, String>>()?)
            }
            Value::String(text) => {
                let template = self.kind == "program" && place.starts_with("tools.");
                let into = if template { Into::Template } else { Into::Text };
                let text = expand_into(text, env, into);
                text.map_err(|what| format!("mcpx.{}.{place}: {what}", self.kind))?.into()
            }
            other => other.clone(),
        })
    }
}

/// Whether a text is an address and not a path.
fn is_url(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    lower.starts_with("http://") || lower.starts_with("https://")
}

/// Masks what a declaration may hold of secrets, for showing it.
pub(super) fn mask(kind: &str, value: &mut Value, mask_text: &dyn Fn(&mut Value)) {
    if kind != "openapi" {
        return;
    }
    fn each(value: &mut Value, mask_text: &dyn Fn(&mut Value)) {
        match value {
            Value::Object(members) => members.values_mut().for_each(|v| each(v, mask_text)),
            Value::Array(list) => list.iter_mut().for_each(|v| each(v, mask_text)),
            Value::String(_) => mask_text(value),
            _ => {}
        }
    }
    for member in ["auth", "headers"] {
        if let Some(secret) = value.get_mut(member) {
            each(secret, mask_text);
        }
    }
}
