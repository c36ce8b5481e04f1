//! What speaks no MCP as an MCP server: command-line programs with declared
//! arguments, and HTTP APIs that an OpenAPI document describes. Each is a list of
//! tools and a way to call them. Knows nothing of sessions or of streams.

mod fetch;
pub mod openapi;
pub mod program;
mod result;
pub mod run;
mod template;

use crate::error::{Error, Kind, Result};
use crate::mcp::{Cancel, Tool};
use crate::util::{self, Env};
use serde_json::{Map, Value};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub use crate::config::declared::VARIABLE;
pub use openapi::Api;
pub use program::Program;

/// What something is that mcpx makes a server of.
pub trait Adapter: Send + Sync {
    /// What it calls itself.
    fn name(&self) -> &str;
    /// What it offers.
    fn tools(&self) -> &[Tool];
    /// Calls a tool with arguments that its schema lets through. The result is
    /// MCP's `CallToolResult`; what goes wrong in the tool is a result too.
    fn call(&self, tool: &str, arguments: &Map<String, Value>, cancel: &Cancel) -> Value;
}

/// What applies to every call of an adapter, unless its declaration says otherwise.
#[derive(Clone, Debug)]
pub struct Limits {
    /// How many bytes of output, or of an answer's body, are taken.
    pub output: usize,
    /// How large an API's document may be, in bytes.
    pub document: usize,
    /// How large the schemas of one operation may get, in bytes.
    pub schema: usize,
    /// How long a call may take; zero is no limit.
    pub timeout: Duration,
    /// The file of authorities to trust, or empty.
    pub ca: String,
}

/// Reads what a configuration declares, as the launcher handed it over.
///
/// # Errors
/// `Config` when the declaration cannot be used; `Unavailable` when an API's
/// document cannot be had.
pub fn declared(text: &str, env: &Env, cwd: &Path, limits: &Limits) -> Result<Arc<dyn Adapter>> {
    let broken = |what: &str| {
        let hint = "the daemon sets it for the servers that a configuration declares";
        Error::new(Kind::Usage, format!("{VARIABLE} {what}")).hint(hint)
    };
    let value: Value = serde_json::from_str(text).map_err(|e| broken(&format!("is not JSON: {e}")))?;
    let server = value["server"].as_str().unwrap_or("adapter");
    match (value.get("program"), value.get("openapi")) {
        (Some(program), None) => Ok(Arc::new(Program::read(server, program, env, cwd, limits)?)),
        (None, Some(api)) => Ok(Arc::new(Api::read(server, api, env, limits)?)),
        _ => Err(broken("declares neither a program nor an API")),
    }
}

/// A fault of a declaration, with the place in it.
fn fault(server: &str, place: &str, what: impl std::fmt::Display) -> Error {
    Error::new(Kind::Config, format!("server \"{server}\": mcpx.{place}: {what}")).server(server)
}

/// Refuses members that a declaration does not know.
fn known(server: &str, place: &str, members: &Map<String, Value>, names: &[&str]) -> Result<()> {
    if let Some(key) = members.keys().find(|key| !names.contains(&key.as_str())) {
        let near = util::did_you_mean(key, names.iter().copied());
        let near = near.map(|n| format!("; {n}")).unwrap_or_default();
        return Err(fault(server, place, format!("unknown key \"{key}\"{near}")));
    }
    Ok(())
}

/// A duration as settings write them.
fn duration(server: &str, place: &str, value: &Value) -> Result<Duration> {
    use crate::settings::{self, Declared, FromVal};
    let read =
        settings::ADAPTERS_TIMEOUT.kind().parse_json(value).map_err(|what| fault(server, place, what))?;
    Duration::from_val(&read).ok_or_else(|| fault(server, place, "expected a duration such as \"30s\""))
}
