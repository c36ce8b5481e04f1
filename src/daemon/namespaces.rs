//! The servers as namespaces: their rows, their schemas, and reading these again.
//! Knows nothing of calls.

use super::answers::{json_of, one_or_many};
use super::router::{Asker, Done};
use super::selection::{Chosen, selection};
use super::state::{Current, Daemon};
use crate::api::wire::{NamespaceRow, SelectedProfiles};
use crate::catalog::ServerSchema;
use crate::config::{Selection, ServerDef};
use crate::error::{Error, Kind, Result};
use crate::pool::{Namespace, STILL_STARTING};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

#[derive(Deserialize)]
pub(super) struct Fresh {
    #[serde(default)]
    fresh: bool,
    #[serde(default)]
    known: bool,
    #[serde(rename = "waitMs")]
    wait_ms: Option<u64>,
    #[serde(flatten)]
    chosen: Chosen,
}

#[derive(Deserialize)]
pub(super) struct Wanted {
    #[serde(default, deserialize_with = "one_or_many")]
    server: Vec<String>,
    #[serde(default)]
    fresh: bool,
    #[serde(rename = "waitMs")]
    wait_ms: Option<u64>,
    #[serde(flatten)]
    chosen: Chosen,
}

#[derive(Deserialize)]
pub(super) struct Refreshed {
    servers: Option<Vec<String>>,
    selection: Option<SelectedProfiles>,
}

/// The servers, each as a row.
pub(super) fn list(daemon: &Arc<Daemon>, asked: Fresh, asker: &Asker<'_>) -> Result<Done> {
    let Fresh { fresh, known, wait_ms, chosen } = asked;
    let selection = selection(chosen.said(), asker);
    if known {
        return json_of(&json!({"namespaces": known_rows(daemon, &selection)}));
    }
    let wait = wait_ms.map(Duration::from_millis);
    let all = daemon.pool.namespaces_of(fresh, wait, &|server| selection.takes(server));
    json_of(&json!({"namespaces": rows(daemon, &all)}))
}

fn rows(daemon: &Daemon, namespaces: &[Namespace]) -> Vec<NamespaceRow> {
    let current = daemon.current();
    namespaces.iter().map(|(server, schema)| row(&current, server, schema)).collect()
}

/// The same without asking any server: what is not known yet is said to be so.
fn known_rows(daemon: &Daemon, selection: &Selection) -> Vec<NamespaceRow> {
    let current = daemon.current();
    let servers = current.config.servers.iter().filter(|server| selection.takes(server));
    let of = |server: &Arc<ServerDef>| {
        let schema = match (daemon.pool.known(&server.name), &server.problem) {
            (Some(schema), _) => Ok(schema),
            (None, Some(problem)) => Err(problem.clone()),
            (None, None) => Err(Error::new(Kind::Unavailable, "its tools are not known yet")),
        };
        let mut row = row(&current, server, &schema);
        if row.state == "failed" && server.problem.is_none() {
            (row.state, row.error) = ("unknown".into(), None);
        }
        row
    };
    servers.map(of).collect()
}

fn row(current: &Current, server: &ServerDef, schema: &Result<Arc<ServerSchema>>) -> NamespaceRow {
    let ident = current.names.iter().find(|n| n.name == server.name).map(|n| n.ident.clone());
    let mut row = NamespaceRow {
        name: server.name.clone(),
        ident: ident.unwrap_or_else(|| server.name.clone()),
        description: server.description.clone(),
        source: Some(server.source.as_path().to_owned()),
        ..NamespaceRow::default()
    };
    match schema {
        _ if !server.enabled => row.state = "disabled".into(),
        Ok(schema) => {
            row.state = "ready".into();
            row.tools = Some(schema.tools.len());
            row.fetched_at = Some(schema.fetched_at);
            row.description = row.description.or_else(|| crate::catalog::rows::about_server(schema));
        }
        Err(error) => {
            let starting = error.hint_text() == Some(STILL_STARTING);
            row.state = if starting { "starting" } else { "failed" }.into();
            row.error = Some(error.to_json());
        }
    }
    row
}

/// The servers that were asked for, by configured name; an unknown one is an error row.
fn wanted(
    current: &Current,
    asked: &[String],
    selection: &Selection,
) -> Vec<Result<String, (String, Error)>> {
    if asked.is_empty() {
        let enabled = current.config.servers.iter().filter(|s| s.enabled && selection.takes(s));
        return enabled.map(|s| Ok(s.name.clone())).collect();
    }
    let one = |name: &String| {
        let known = known(current, name)?;
        match current.config.server(&known).and_then(|server| selection.refuses(server)) {
            Some(refused) => Err(refused),
            None => Ok(known),
        }
    };
    asked.iter().map(|name| one(name).map_err(|e| (name.clone(), e))).collect()
}

/// The configured name that a name or identifier stands for.
pub(super) fn known(current: &Current, name: &str) -> Result<String> {
    let exact = current.names.iter().find(|n| n.name == name);
    if let Some(found) = exact.or_else(|| current.names.iter().find(|n| n.ident == name)) {
        return Ok(found.name.clone());
    }
    let names: Vec<&str> = current.names.iter().map(|n| n.name.as_str()).collect();
    crate::catalog::names::find_server(name, &names).map(str::to_owned)
}

/// What the servers that were asked for offer, whole.
pub(super) fn schemas(daemon: &Arc<Daemon>, asked: Wanted, asker: &Asker<'_>) -> Result<Done> {
    #[derive(Serialize)]
    struct Schemas<'a> {
        schemas: Vec<&'a ServerSchema>,
        errors: Vec<Value>,
    }
    let selection = selection(asked.chosen.said(), asker);
    let wait = asked.wait_ms.map(Duration::from_millis);
    let all = each_schema(daemon, &asked.server, asked.fresh, wait, &selection);
    let mut out = Schemas { schemas: Vec::new(), errors: Vec::new() };
    for (name, outcome) in &all {
        match outcome {
            Ok(schema) => out.schemas.push(schema),
            Err(error) => out.errors.push(json!({"server": name, "error": error.to_json()})),
        }
    }
    json_of(&out)
}

/// A server and what came of asking it.
pub(super) type Named = (String, Result<Arc<ServerSchema>>);

/// The schemas of the servers that were asked for, in that order; several are read at once.
pub(super) fn each_schema(
    daemon: &Arc<Daemon>,
    asked: &[String],
    fresh: bool,
    wait: Option<Duration>,
    selection: &Selection,
) -> Vec<Named> {
    let wanted = wanted(&daemon.current(), asked, selection);
    let names: Vec<String> = wanted.iter().flatten().cloned().collect();
    let mut schemas = daemon.pool.schemas(&names, fresh, wait).into_iter();
    let named = |one| match one {
        Err((name, error)) => Some((name, Err(error))),
        Ok(name) => Some((name, schemas.next()?)),
    };
    wanted.into_iter().filter_map(named).collect()
}

/// Reads the schemas of servers again, though they are known.
pub(super) fn refresh(daemon: &Arc<Daemon>, wanted: Refreshed, asker: &Asker<'_>) -> Result<Done> {
    let selection = selection(wanted.selection, asker);
    let Some(asked) = wanted.servers.filter(|s| !s.is_empty()) else {
        // Somebody wants it tried now, whatever went wrong before.
        daemon.pool.forgive(None);
        let all = daemon.pool.namespaces_of(true, None, &|server| selection.takes(server));
        return json_of(&json!({"namespaces": rows(daemon, &all)}));
    };
    let current = daemon.current();
    let named = asked.iter().map(|name| known(&current, name)).collect::<Result<Vec<_>>>()?;
    daemon.pool.forgive(Some(&named));
    let rows: Vec<NamespaceRow> = each_schema(daemon, &asked, true, None, &selection)
        .iter()
        .filter_map(|(name, schema)| Some(row(&current, current.config.server(name)?, schema)))
        .collect();
    json_of(&json!({"namespaces": rows}))
}
