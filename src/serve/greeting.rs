//! The first words between a host and mcpx: revision, capabilities, what
//! there is. Knows nothing of what is done with it.

use super::backend::{Asked, params};
use super::dispatch::Ask;
use super::era::{self, TASKS_KEY};
use super::fault::Fault;
use super::session::Session;
use super::tasks;
use super::upstreams;
use crate::catalog::rows::one_line;
use crate::error::{Error, Kind, Result};
use serde::Deserialize;
use serde_json::{Value, json};

/// How much of a server's description stands in the instructions.
const ABOUT: usize = 120;

/// What is said of mcpx itself.
pub fn server_info() -> Value {
    json!({"name": "mcpx", "title": "mcpx", "version": env!("CARGO_PKG_VERSION")})
}

fn capabilities(session: &Session, revision: Option<&str>) -> Value {
    let mut out = json!({"tools": {"listChanged": true}});
    // What the servers have is not known before they are asked; empty lists are no lie.
    if session.options.passthrough {
        out["resources"] = json!({"subscribe": true, "listChanged": true});
        out["prompts"] = json!({"listChanged": true});
        out["completions"] = json!({});
        out["logging"] = json!({});
    }
    match revision {
        Some(revision) => {
            if let Some(tasks) = tasks::capability(revision) {
                out["tasks"] = tasks;
            }
        }
        None => out["extensions"] = json!({TASKS_KEY: {}}),
    }
    out
}

/// `initialize`.
///
/// # Errors
/// Parameters that are none.
pub fn initialize(session: &Session, ask: &Ask<'_>) -> Result<String, Fault> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        protocol_version: String,
        #[serde(default)]
        capabilities: Value,
    }
    let given: Params = ask.params()?;
    let revision = era::negotiate(&given.protocol_version);
    session.know(|host| {
        host.revision = Some(revision);
        host.capabilities = given.capabilities;
    });
    let mut result = json!({
        "protocolVersion": revision,
        "capabilities": capabilities(session, Some(revision)),
        "serverInfo": server_info(),
    });
    add_instructions(session, ask, &mut result);
    Ok(ask.result(result))
}

/// `server/discover`.
pub fn discover(session: &Session, ask: &Ask<'_>) -> String {
    let mut result = json!({
        "supportedVersions": era::STATELESS,
        "capabilities": capabilities(session, None),
    });
    add_instructions(session, ask, &mut result);
    ask.listed(session, result)
}

fn add_instructions(session: &Session, ask: &Ask<'_>, result: &mut Value) {
    let text = match session.options.instructions.is_empty() {
        false => session.options.instructions.clone(),
        true => instructions(session, ask),
    };
    if !text.is_empty() {
        result["instructions"] = text.into();
    }
}

/// What mcpx is and which servers there are, for a model. Starts no server.
fn instructions(session: &Session, ask: &Ask<'_>) -> String {
    let mut out = String::new();
    if session.options.code {
        out.push_str(
            "mcpx reaches the MCP servers of this machine. Find tools with mcpx_search or mcpx_discover, read their \
             types with mcpx_types, then call one with mcpx_call, or run a program over several with mcpx_exec. \
             Resources: mcpx_resources, mcpx_read_resource; prompts: mcpx_prompts, mcpx_get_prompt.",
        );
    }
    let known = operation(session, "servers", &json!({}), ask).unwrap_or_default();
    let names: Vec<String> = known["servers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|row| row["enabled"] == true && row["selected"] == true && row.get("error").is_none())
        .map(|row| {
            let name = row["ident"].as_str().unwrap_or_default();
            match row["description"].as_str() {
                Some(about) => format!("\n- {name}: {}", one_line(about, ABOUT)),
                None => format!("\n- {name}"),
            }
        })
        .collect();
    if !names.is_empty() {
        out.push_str(if out.is_empty() { "The tools of these servers:" } else { " Servers:" });
        out.push_str(&names.concat());
    }
    out
}

/// An operation of the table with a parsed answer.
fn operation(session: &Session, name: &str, given: &Value, ask: &Ask<'_>) -> Result<Value> {
    let op = upstreams::operation(name)?;
    let answer =
        session.backend.perform(op, &params(given)?, &Asked { cancel: ask.cancel, progress: None })?;
    serde_json::from_str(answer.get()).map_err(|e| Error::new(Kind::Internal, format!("reading {name}: {e}")))
}
