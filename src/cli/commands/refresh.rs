//! `mcpx refresh`: reads the servers' tools again.

use super::super::command::{Command, Group, MANY, Rest, example};
use super::super::cx::{Cx, no_servers};
use super::super::progress::Progress;
use super::super::schemas;
use crate::api::wire::SelectedProfiles;
use crate::error::Result;
use crate::settings;
use serde_json::json;

/// The command.
pub static COMMAND: Command = Command {
    name: "refresh",
    group: Group::Daemon,
    words: "[<namespace>…]",
    count: (0, MANY),
    rest: Rest::Mixed,
    summary: "Read the servers' tools again, past the cache",
    about: "All of them, or those named. Afterwards ls, search, tools and types know the new ones.",
    flags: &[],
    settings: &["pool.startTimeout", "catalog.concurrency"],
    examples: &[example("mcpx refresh", "every server"), example("mcpx refresh demo", "one server")],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    let wanted = cx.inv.words()?;
    let world = cx.catalog()?;
    if world.config.servers.is_empty() {
        return Err(no_servers(world, "there is nothing to refresh"));
    }
    let names: Vec<String> = schemas::select(world, &wanted)?.iter().map(|n| n.def.name.clone()).collect();
    let body = match wanted.is_empty() {
        true => json!({"selection": SelectedProfiles::from(&cx.world()?.selection)}),
        false => json!({"servers": names}),
    };
    let progress = Progress::start("reading the servers' tools");
    let answer = cx.daemon(&progress)?.json("POST", "/v1/refresh", Some(&body))?;
    drop(progress);
    let mut rows = schemas::namespace_rows(&answer)?;
    schemas::count_tokens(cx.world()?, &mut rows);
    if !wanted.is_empty() {
        rows.retain(|r| names.contains(&r.name));
    }
    // A namespace that was named and cannot be read is a failure; among all of them it is a row.
    let failed = rows.iter().find_map(|r| r.error.as_ref()).filter(|_| !wanted.is_empty());
    let exit = failed.map_or(0, |e| crate::error::Error::from_json(e).exit_code());
    if cx.json() {
        let mut body = json!({"ok": exit == 0, "namespaces": rows});
        if let Some(e) = failed {
            body["error"] = e.clone();
        }
        cx.out.json(&body)?;
    } else {
        let describe = usize::try_from(world.settings.get(&settings::CATALOG_DESCRIBE)).unwrap_or(usize::MAX);
        super::ls::show(cx, &rows, describe)?;
    }
    Ok(exit)
}
