//! `mcpx daemons`: every daemon of the user's, live or stale.

use super::super::args::usage;
use super::super::command::{Command, Group, Rest, example};
use super::super::cx::Cx;
use super::super::table::{Cell, Table, Tone};
use super::status::since;
use crate::api::wire::DaemonInfo;
use crate::api::{self, Client, info};
use crate::error::Result;
use crate::paths::Dirs;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

/// How long a daemon may take to say how it is; one that is stopped must not stop the listing.
const PATIENCE: Duration = Duration::from_secs(2);

/// The command.
pub static COMMAND: Command = Command {
    name: "daemons",
    group: Group::Daemon,
    words: "[prune]",
    count: (0, 1),
    rest: Rest::Mixed,
    summary: "List your daemons, live and stale",
    about: "prune removes what stale ones left behind, and nothing else.",
    flags: &[],
    settings: &[],
    examples: &[
        example("mcpx daemons", "which daemon serves which configuration"),
        example("mcpx daemons prune", "remove the files of those that are gone"),
    ],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    let dirs = cx.dirs()?;
    let found = api::daemons(&dirs);
    match cx.inv.words()?.first() {
        None => list(cx, &found),
        Some(&"prune") => prune(cx, &dirs),
        Some(other) => {
            Err(usage(format!("mcpx daemons does not know {other:?}")).hint("did you mean \"prune\"?"))
        }
    }
}

/// What a live daemon says of itself now.
fn health(info: &DaemonInfo) -> Option<Value> {
    let client = Client::connect(info.clone()).ok()?;
    client.set_timeout(Some(PATIENCE));
    client.json("GET", "/v1/health", None).ok()
}

fn list(cx: &mut Cx, found: &[(DaemonInfo, bool, String)]) -> Result<u8> {
    let health: Vec<Option<Value>> =
        found.iter().map(|(info, live, _)| live.then(|| health(info)).flatten()).collect();
    if cx.json() {
        let row = |((info, live, why), health): (&(DaemonInfo, bool, String), &Option<Value>)| {
            let mut row = json!({
                "key": info.key, "configPath": info.config_path, "sources": info.sources, "pid": info.pid,
                "version": info.version, "startedAt": info.started_at, "servers": info.servers,
                "socket": info.socket, "endpoint": info.endpoint, "live": live, "why": why,
            });
            if *live {
                row["answers"] = health.is_some().into();
            }
            if let Some(health) = health {
                row["sessions"] = health["sessions"].clone();
            }
            row
        };
        let rows: Vec<Value> = found.iter().zip(&health).map(row).collect();
        cx.out.json(&json!({"ok": true, "daemons": rows}))?;
        return Ok(0);
    }
    if found.is_empty() {
        cx.out.line("there is no daemon; the next command that needs one starts it")?;
        return Ok(0);
    }
    let mut table = Table::new(&["KEY", "STATE", "PID", "VERSION", "UP", "SERVERS", "SESSIONS", "CONFIG"]);
    for ((info, live, why), health) in found.iter().zip(&health) {
        let state = match (live, health) {
            (true, Some(_)) => "live".to_owned(),
            (true, None) => "live, but does not answer".to_owned(),
            (false, _) => format!("stale: {why}"),
        };
        let sessions = health.as_ref().and_then(|h| h["sessions"].as_u64());
        table.row(vec![
            Cell::new(&info.key),
            Cell::new(state).tone(if health.is_some() { Tone::Plain } else { Tone::Bad }),
            Cell::number(info.pid),
            Cell::new(&info.version),
            Cell::number(if *live { since(info.started_at) } else { "-".into() }),
            Cell::number(info.servers.len()),
            Cell::number(sessions.map_or_else(|| "-".to_owned(), |n| n.to_string())),
            Cell::new(info.config_path.to_string_lossy()),
        ]);
    }
    let text = table.render(cx.width(), cx.color());
    cx.out.text(&text)?;
    Ok(0)
}

fn prune(cx: &mut Cx, dirs: &Dirs) -> Result<u8> {
    let removed: Vec<PathBuf> = keys(dirs).iter().flat_map(|key| info::clear(dirs, key, None)).collect();
    if cx.json() {
        cx.out.json(&json!({"ok": true, "removed": removed}))?;
    } else if removed.is_empty() {
        cx.out.line("nothing is stale")?;
    } else {
        for path in &removed {
            cx.out.line(&format!("removed {}", path.display()))?;
        }
    }
    Ok(0)
}

/// Removes the files of every daemon that is gone; returns their paths.
pub fn clear_stale(dirs: &Dirs, found: &[(DaemonInfo, bool, String)]) -> Vec<PathBuf> {
    let stale = found.iter().filter(|(_, live, _)| !live);
    stale.flat_map(|(d, ..)| info::clear(dirs, &d.key, Some((d.pid, d.start_ticks)))).collect()
}

/// The keys that some file of a daemon is named by, its names before an edit among them.
fn keys(dirs: &Dirs) -> BTreeSet<String> {
    let all = [&dirs.state, &dirs.runtime].into_iter().filter_map(|dir| std::fs::read_dir(dir).ok());
    let names = all.flatten().flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let key = |name: String| {
        let rest = name.strip_prefix("daemon-")?;
        let (key, kind) = rest.split_once('.')?;
        ["json", "sock", "lock"].contains(&kind).then(|| key.to_owned())
    };
    names.filter_map(key).collect()
}
