//! What the servers offer, as a model or a person reads it: TypeScript, and tools
//! found by words. Knows nothing of how schemas are read.

use super::answers::{json_of, one_or_many};
use super::namespaces::{Named, each_schema};
use super::router::{Asker, Done};
use super::selection::{Chosen, selection};
use super::state::{Current, Daemon};
use crate::catalog::rows::{self, Row};
use crate::catalog::{search as find, ts};
use crate::error::Result;
use crate::settings;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Whose types are wanted.
#[derive(Deserialize)]
pub struct OfServers {
    #[serde(default, deserialize_with = "one_or_many")]
    server: Vec<String>,
    #[serde(default)]
    brief: bool,
    #[serde(rename = "waitMs")]
    wait_ms: Option<u64>,
    #[serde(flatten)]
    chosen: Chosen,
}

/// What is searched for.
#[derive(Deserialize)]
pub struct Sought {
    query: String,
    limit: Option<u64>,
    #[serde(rename = "waitMs")]
    wait_ms: Option<u64>,
    #[serde(flatten)]
    chosen: Chosen,
}

/// The servers' declarations.
pub fn types(daemon: &Arc<Daemon>, wanted: OfServers, asker: &Asker<'_>) -> Result<Done> {
    let all = known(daemon, &wanted.server, wanted.wait_ms, wanted.chosen, asker);
    let current = daemon.current();
    let types: Vec<Value> = all
        .iter()
        .filter_map(|(name, schema)| {
            let ident = ident(&current, name);
            let typescript = ts::namespace(schema.as_ref().ok()?, &ident, wanted.brief);
            Some(json!({"server": name, "ident": ident, "typescript": typescript}))
        })
        .collect();
    json_of(&json!({"types": types, "errors": errors(&all)}))
}

/// The tools that fit the words.
pub fn search(daemon: &Arc<Daemon>, wanted: Sought, asker: &Asker<'_>) -> Result<Done> {
    let all = known(daemon, &[], wanted.wait_ms, wanted.chosen, asker);
    let current = daemon.current();
    let offered: Vec<(&str, String, Vec<Row>)> = all
        .iter()
        .filter_map(|(name, schema)| {
            Some((name.as_str(), ident(&current, name), rows::rows(schema.as_ref().ok()?)))
        })
        .collect();
    let namespaces: Vec<find::Namespace<'_>> =
        offered.iter().map(|(server, ident, rows)| find::Namespace { server, ident, rows }).collect();
    let limit =
        wanted.limit.unwrap_or(u64::try_from(current.settings.get(&settings::SEARCH_LIMIT)).unwrap_or(0));
    let hits = find::search(&wanted.query, &namespaces, usize::try_from(limit).unwrap_or(usize::MAX));
    let near = hits.iter().find_map(|hit| hit.near.clone());
    let hits: Vec<Value> = hits
        .into_iter()
        .map(|hit| {
            json!({
                "server": hit.server, "tool": hit.tool, "signature": hit.signature,
                "description": hit.description, "all": hit.all,
            })
        })
        .collect();
    let mut out = json!({"hits": hits, "errors": errors(&all)});
    if let Some(near) = near {
        out["near"] = near.into();
    }
    json_of(&out)
}

/// The schemas of the servers; without a word on it a listing waits for `catalog.wait`.
fn known(
    daemon: &Arc<Daemon>,
    servers: &[String],
    wait_ms: Option<u64>,
    chosen: Chosen,
    asker: &Asker<'_>,
) -> Vec<Named> {
    let wait =
        wait_ms.map_or_else(|| daemon.current().settings.get(&settings::CATALOG_WAIT), Duration::from_millis);
    each_schema(daemon, servers, false, Some(wait), &selection(chosen.said(), asker))
}

fn ident(current: &Current, server: &str) -> String {
    let names = current.names.iter().find(|n| n.name == server);
    names.map_or_else(|| server.to_owned(), |n| n.ident.clone())
}

fn errors(all: &[Named]) -> Vec<Value> {
    let failed = all.iter().filter_map(|(name, schema)| Some((name, schema.as_ref().err()?)));
    failed.map(|(name, error)| json!({"server": name, "error": error.to_json()})).collect()
}
