//! `mcpx daemons`: every daemon of the user's, live or stale.

use super::super::args::usage;
use super::super::command::{Command, Group, Rest, example};
use super::super::cx::Cx;
use super::super::table::{Cell, Table, Tone};
use super::status::since;
use crate::api::wire::DaemonInfo;
use crate::api::{self, info};
use crate::error::Result;
use crate::paths::Dirs;
use serde_json::{Value, json};
use std::path::PathBuf;

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
        Some(&"prune") => prune(cx, &dirs, &found),
        Some(other) => {
            Err(usage(format!("mcpx daemons does not know {other:?}")).hint("did you mean \"prune\"?"))
        }
    }
}

fn list(cx: &mut Cx, found: &[(DaemonInfo, bool, String)]) -> Result<u8> {
    if cx.json() {
        let rows: Vec<Value> = found
            .iter()
            .map(|(info, live, why)| {
                json!({
                    "key": info.key, "configPath": info.config_path, "sources": info.sources, "pid": info.pid,
                    "version": info.version, "startedAt": info.started_at, "servers": info.servers,
                    "socket": info.socket, "endpoint": info.endpoint, "live": live, "why": why,
                })
            })
            .collect();
        cx.out.json(&json!({"ok": true, "daemons": rows}))?;
        return Ok(0);
    }
    if found.is_empty() {
        cx.out.line("there is no daemon; the next command that needs one starts it")?;
        return Ok(0);
    }
    let mut table = Table::new(&["KEY", "STATE", "PID", "VERSION", "UP", "SERVERS", "CONFIG"]);
    for (info, live, why) in found {
        let state = if *live { "live".to_owned() } else { format!("stale: {why}") };
        table.row(vec![
            Cell::new(&info.key),
            Cell::new(state).tone(if *live { Tone::Plain } else { Tone::Bad }),
            Cell::number(info.pid),
            Cell::new(&info.version),
            Cell::number(if *live { since(info.started_at) } else { "-".into() }),
            Cell::number(info.servers.len()),
            Cell::new(info.config_path.to_string_lossy()),
        ]);
    }
    let text = table.render(cx.width(), cx.color());
    cx.out.text(&text)?;
    Ok(0)
}

fn prune(cx: &mut Cx, dirs: &Dirs, found: &[(DaemonInfo, bool, String)]) -> Result<u8> {
    let removed = clear_stale(dirs, found);
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
    stale.flat_map(|(d, ..)| info::remove_stale(dirs, &d.key, (d.pid, d.start_ticks))).collect()
}
