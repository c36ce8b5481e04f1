//! The servers as configuration: listing them, and changing them in the files
//! that this daemon serves. Knows nothing of what runs.

use super::answers::json_of;
use super::events::Event;
use super::router::{Asker, Done, Origin};
use super::selection::{Chosen, selection};
use super::state::{Current, Daemon};
use crate::api::servers::rows;
use crate::config::servers::{self, Change, How};
use crate::error::{Error, Kind, Result};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::PathBuf;

/// What is to be written.
#[derive(Deserialize)]
pub struct Put {
    name: String,
    definition: Value,
    file: Option<PathBuf>,
}

/// What is to be removed.
#[derive(Deserialize)]
pub struct Delete {
    name: String,
    file: Option<PathBuf>,
}

/// Every configured server.
pub fn list(daemon: &Daemon, chosen: Chosen, asker: &Asker<'_>) -> Result<Done> {
    let selection = selection(chosen.said(), asker);
    json_of(&json!({"servers": rows(&daemon.current().config, &selection, false)}))
}

/// Adds or replaces a server.
pub fn put(daemon: &Daemon, wanted: &Put, asker: &Asker<'_>) -> Result<Done> {
    refuse_tcp(asker)?;
    let path = file(&daemon.current(), &wanted.name, wanted.file.as_ref())?;
    let change =
        servers::put(&path, &wanted.name, &wanted.definition, How { replace: true, private: false })?;
    let verb = match (change.changed, change.there) {
        (false, _) => "unchanged",
        (true, true) => "replaced",
        (true, false) => "added",
    };
    followed(daemon, &wanted.name, &change, verb)
}

/// Removes a server.
pub fn delete(daemon: &Daemon, wanted: &Delete, asker: &Asker<'_>) -> Result<Done> {
    refuse_tcp(asker)?;
    let path = file(&daemon.current(), &wanted.name, wanted.file.as_ref())?;
    match servers::remove(&path, &wanted.name)? {
        Some(change) => followed(daemon, &wanted.name, &change, "removed"),
        None => {
            let message = format!("{} has no server \"{}\"", path.display(), wanted.name);
            Err(Error::new(Kind::NotFound, message).server(&wanted.name))
        }
    }
}

/// A definition is a program that will be started as this user. The token of the TCP endpoint
/// is handed to scripts, those in a sandbox among them, and must not be a way out of it.
fn refuse_tcp(asker: &Asker<'_>) -> Result<()> {
    match asker.origin {
        Origin::Unix(_) => Ok(()),
        _ => Err(Error::new(Kind::Refused, "servers are changed on the unix socket only")
            .hint("or by mcpx servers, or in the configuration file")),
    }
}

/// The file to change: the one that was named, else the one that has the server, else the nearest of mcpx's own.
fn file(current: &Current, name: &str, named: Option<&PathBuf>) -> Result<PathBuf> {
    let sources = || current.config.sources.iter().map(|s| &s.path);
    if let Some(named) = named {
        let real = named.canonicalize().unwrap_or_else(|_| named.clone());
        return sources().find(|s| **s == real).cloned().ok_or_else(|| {
            let all = sources().map(|s| s.display().to_string()).collect::<Vec<_>>().join(", ");
            let message = format!("{} is no configuration file of this daemon", named.display());
            Error::new(Kind::NotFound, message).hint(format!("it serves {all}"))
        });
    }
    let has = |path: &&PathBuf| servers::block(path, name).is_ok_and(|block| block.is_some());
    let own = |path: &&PathBuf| path.file_name().is_none_or(|n| n != ".mcp.json");
    let found = sources().find(has).or_else(|| sources().find(own)).or_else(|| sources().next());
    found.cloned().ok_or_else(|| {
        Error::new(Kind::Config, "this daemon serves no configuration file that could be changed")
            .hint("mcpx init writes one")
    })
}

/// Has the daemon follow the change, and answers.
fn followed(daemon: &Daemon, name: &str, change: &Change, verb: &str) -> Result<Done> {
    daemon.ask(Event::Reload)?;
    let current = daemon.current();
    let mut out = json!({"server": name, "path": change.path, "change": verb});
    let problem = current.config.server(name).and_then(|def| def.problem.as_ref());
    if let Some(problem) = current.problem.as_ref().or(problem) {
        out["problem"] = problem.to_json();
    }
    json_of(&out)
}
