//! Where the lock is, whether it alone is to answer, and what the servers
//! themselves say at this moment. Knows nothing of how a difference is shown.

use super::cx::{Cx, World};
use super::out::note;
use super::progress::Progress;
use super::schemas;
use crate::catalog::ServerSchema;
use crate::catalog::cache::Cache;
use crate::catalog::lock::{FILE, Lock};
use crate::config::ServerDef;
use crate::error::{Error, Kind, Result};
use crate::settings::{CATALOG_FROZEN, CATALOG_LOCK};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The lock's file: what `catalog.lock` says, else the one beside the nearest configuration.
pub fn path(world: &World) -> PathBuf {
    let said = world.settings.get(&CATALOG_LOCK);
    if !said.is_empty() {
        return world.cwd.join(said);
    }
    // The nearest layer is the last.
    world.config.layers.last().map_or(world.cwd.as_path(), |layer| layer.base()).join(FILE)
}

/// Whether the lock alone is to answer.
pub fn frozen(world: &World) -> bool {
    world.settings.get(&CATALOG_FROZEN)
}

/// There is no lock where one is needed.
pub fn missing(path: &Path) -> Error {
    Error::new(Kind::Unreadable, format!("there is no lock {}", path.display()))
        .hint("mcpx lock writes it, from the servers that are configured here")
}

/// The lock that alone is to answer; `None` where the servers may.
pub fn alone(world: &World) -> Result<Option<Lock>> {
    if !frozen(world) {
        return Ok(None);
    }
    let path = path(world);
    Lock::read(&path)?.map(Some).ok_or_else(|| missing(&path))
}

/// What stands in for servers that could not be asked. A lock that cannot be read is none, which is said.
pub fn instead(world: &World) -> Option<Lock> {
    Lock::read(&path(world)).unwrap_or_else(|e| {
        note(&format!("{}; {}", e.message(), e.hint_text().unwrap_or_default()));
        None
    })
}

fn unstored(def: &ServerDef) -> Error {
    Error::new(Kind::Unavailable, format!("the tools of {} were read, and are not in the cache", def.name))
        .server(&def.name)
        .hint("is the cache directory writable? mcpx doctor says")
}

/// Asks the servers anew, all or those named, past every cache and without tool filters.
pub fn ask(cx: &Cx, wanted: &[String]) -> Result<Vec<(String, Result<ServerSchema>)>> {
    let world = cx.world()?;
    let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
    let mut out: Vec<(String, Result<ServerSchema>)> = Vec::new();
    let mut askable = Vec::new();
    for n in schemas::select(world, &wanted)? {
        match schemas::unusable(world, n.def) {
            Some(e) => out.push((n.def.name.clone(), Err(e))),
            None => askable.push(n.def),
        }
    }
    if askable.is_empty() {
        return Ok(out);
    }
    let names: Vec<&str> = askable.iter().map(|def| def.name.as_str()).collect();
    let progress = Progress::start("reading the servers' tools");
    let answer = cx.daemon(&progress)?.json("POST", "/v1/refresh", Some(&json!({"servers": names})))?;
    drop(progress);
    let rows = schemas::namespace_rows(&answer)?;
    let cache = Cache::new(&world.dirs.cache);
    for def in askable {
        let failed = rows.iter().find(|r| r.name == def.name).and_then(|r| r.error.as_ref());
        let outcome = match failed {
            Some(e) => Err(Error::from_json(e)),
            // The daemon has just stored the whole of it there; its own answer is filtered.
            None => match cache.load(&def.name, &def.digest, Duration::MAX) {
                Some(schema) => Ok(schema),
                None => Err(unstored(def)),
            },
        };
        out.push((def.name.clone(), outcome));
    }
    Ok(out)
}
