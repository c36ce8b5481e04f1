//! `mcpx search`: ranks the tools of every namespace.

use super::super::command::{Command, Group, MANY, Rest, example};
use super::super::cx::{Cx, no_servers};
use super::super::out::note;
use super::super::schemas;
use super::super::table::fit;
use crate::catalog::search;
use crate::error::Result;
use crate::settings;
use serde_json::{Value, json};

/// The command.
pub static COMMAND: Command = Command {
    name: "search",
    group: Group::Discover,
    words: "<word>…",
    count: (1, MANY),
    rest: Rest::Mixed,
    summary: "Find tools by name and description",
    about: "Ranks exact names first, then names that begin with the words, names that contain them, namespaces, and \
            descriptions; tools that match every word come before those that match some.",
    flags: &[],
    settings: &["search.limit", "catalog.describe", "catalog.wait"],
    examples: &[
        example("mcpx search weather forecast", "tools about both, then about either"),
        example("mcpx --json search --search-limit 3 echo", "the best three, for a program"),
    ],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    let query = cx.inv.words()?.join(" ");
    let world = cx.catalog()?;
    let known = schemas::load_rows(cx, schemas::select(world, &[])?)?;
    let mut failed: Vec<Value> = Vec::new();
    let mut missing = Vec::new();
    let mut offered: Vec<search::Namespace> = Vec::new();
    for k in &known {
        let (server, ident) = (k.namespace.def.name.as_str(), k.namespace.ident.as_str());
        match &k.tools {
            Ok(rows) => offered.push(search::Namespace { server, ident, rows }),
            Err(e) => {
                failed.push(json!({"server": server, "error": e.to_json()}));
                missing.push((server, e));
            }
        }
    }
    if !cx.json() {
        schemas::note_missing(&missing, "searched");
    }
    let limit = usize::try_from(world.settings.get(&settings::SEARCH_LIMIT)).unwrap_or(usize::MAX);
    let describe = usize::try_from(world.settings.get(&settings::CATALOG_DESCRIBE)).unwrap_or(usize::MAX);
    let hits = search::search(&query, &offered, limit);
    if cx.json() {
        let rows: Vec<Value> = hits
            .iter()
            .map(|h| {
                json!({
                    "server": h.server, "tool": h.tool, "signature": h.signature,
                    "description": h.description, "score": h.score, "all": h.all,
                })
            })
            .collect();
        let body = json!({"ok": true, "hits": rows, "errors": failed});
        drop(known);
        cx.out.json(&body)?;
        return Ok(0);
    }
    if hits.is_empty() {
        if world.config.servers.is_empty() {
            return Err(no_servers(world, "there is nothing to search"));
        }
        note(&format!("no tool matches {query:?}"));
        return Ok(0);
    }
    if let Some(near) = hits.iter().find_map(|h| h.near.as_deref()) {
        note(&format!("no tool matches {query:?}; showing {near:?}"));
    }
    let lines: Vec<(String, String)> =
        hits.into_iter().map(|h| (h.signature, fit(&h.description, describe))).collect();
    let text = super::tools::listing(cx, &lines);
    cx.out.text(&text)?;
    Ok(0)
}
