//! `mcpx servers remove`, `enable` and `disable`.

use super::super::super::args::usage;
use super::super::super::cx::{Cx, World};
use super::super::super::out::note;
use super::{afterwards, announce, explicit, find, listener, target};
use crate::config::servers;
use crate::error::Result;
use serde_json::json;
use std::path::PathBuf;

/// Removes a server from the nearest file that has it, or from the one that was chosen.
pub fn remove(cx: &mut Cx, typed: &str) -> Result<u8> {
    let world = cx.world()?;
    let name = find(world, typed)?;
    let path = chosen(cx, world, &name)?;
    let client = listener(cx);
    let Some(change) = servers::remove(&path, &name)? else {
        let def = world.config.server(&name);
        let place = def.map(|d| format!("{}:{} has it", d.source.display(), d.line)).unwrap_or_default();
        return Err(usage(format!("{} has no server \"{name}\"", path.display())).server(&name).hint(place));
    };
    let told = announce(client);
    let after = afterwards(cx)?;
    if let Some(def) = after.server(&name) {
        note(&format!(
            "{}:{} has a server of that name too, which counts now",
            def.source.display(),
            def.line
        ));
    }
    for def in after.servers.iter().filter(|d| d.alias_of.as_deref() == Some(name.as_str())) {
        note(&format!("\"{}\" was an alias of it, and cannot be used any more", def.name));
    }
    report(cx, &name, &change.path, "removed", told)
}

/// Changes which tools of a server are offered, its profiles and its description.
pub fn adjust(cx: &mut Cx, typed: &str) -> Result<u8> {
    let world = cx.world()?;
    let name = find(world, typed)?;
    let mut members = super::add::offered(cx)?;
    if let Some(text) = cx.inv.text("description")? {
        members.insert("description".into(), text.into());
    }
    if members.is_empty() {
        return Err(usage("mcpx servers adjust needs a flag that says what to change")
            .hint("--tools, --exclude-tools, --extra-include-tools, --profile, --description"));
    }
    let path = chosen(cx, world, &name)?;
    let client = listener(cx);
    let change = servers::adjust(&path, &name, &members)?;
    let told = announce(client);
    let after = afterwards(cx)?;
    if let Some(problem) = after.server(&name).and_then(|def| def.problem.as_ref()) {
        note(&format!("it cannot be used as yet: {}", problem.message()));
    }
    let verb = if change.changed { "adjusted" } else { "already adjusted like that" };
    report(cx, &name, &change.path, verb, told)
}

/// Switches a server on or off.
pub fn switch(cx: &mut Cx, typed: &str, on: bool) -> Result<u8> {
    let world = cx.world()?;
    let name = find(world, typed)?;
    let path = chosen(cx, world, &name)?;
    let client = listener(cx);
    let change = servers::switch(&path, &name, on)?;
    let told = announce(client);
    if let Some(def) = afterwards(cx)?.server(&name).filter(|d| d.enabled != on) {
        let word = if def.enabled { "on" } else { "off" };
        note(&format!("a nearer file keeps it {word}"));
    }
    let verb = match (change.changed, on) {
        (false, true) => "already enabled",
        (false, false) => "already disabled",
        (true, true) => "enabled",
        (true, false) => "disabled",
    };
    report(cx, &name, &change.path, verb, told)
}

/// The file to change: the one that was chosen, else the nearest that mentions the server.
fn chosen(cx: &Cx, world: &World, name: &str) -> Result<PathBuf> {
    if cx.inv.has("project") || cx.inv.has("user") || explicit(cx, world).is_some() {
        return target(cx, world);
    }
    for source in &world.config.sources {
        if servers::block(&source.path, name)?.is_some() {
            return Ok(source.path.clone());
        }
    }
    target(cx, world)
}

fn report(cx: &mut Cx, name: &str, path: &std::path::Path, verb: &str, told: bool) -> Result<u8> {
    if cx.json() {
        let change = if verb.starts_with("already") { "unchanged" } else { verb };
        cx.out
            .json(&json!({"ok": true, "server": name, "path": path, "change": change, "reloaded": told}))?;
    } else if verb.starts_with("already") {
        cx.out.line(&format!("{name} is {verb} in {}", path.display()))?;
    } else {
        cx.out.line(&format!("{verb} {name} in {}", path.display()))?;
    }
    Ok(0)
}
