//! `mcpx stop`: stops daemons.

use super::super::command::{Command, Flag, Group, Rest, example};
use super::super::cx::Cx;
use super::super::progress::Progress;
use crate::api::{self, Client};
use crate::error::{Error, Kind, Result};
use crate::proc;
use crate::settings;
use serde_json::json;
use std::time::{Duration, Instant};

/// The command.
pub static COMMAND: Command = Command {
    name: "stop",
    group: Group::Daemon,
    words: "",
    count: (0, 0),
    rest: Rest::Mixed,
    summary: "Stop the daemon and every server that it runs",
    about: "Waits until it is gone. Calls in flight are cancelled.",
    flags: &[Flag::switch("all", "Stop every daemon of yours, not only that of this configuration")],
    settings: &["pool.stopGrace", "pool.killGrace"],
    examples: &[
        example("mcpx stop", "the daemon of this configuration"),
        example("mcpx stop --all", "every daemon of yours"),
    ],
    run,
};

/// How long a daemon may take beyond what its servers are given to stop in.
const MARGIN: Duration = Duration::from_secs(5);
/// Between two looks at whether a process is gone.
const LOOK: Duration = Duration::from_millis(2);

fn run(cx: &mut Cx) -> Result<u8> {
    let progress = Progress::start("waiting for the daemon to stop its servers");
    let mut stopped: Vec<Gone> = Vec::new();
    let mut failure = None;
    if cx.inv.has("all") {
        for (info, live, _) in api::daemons(&cx.dirs()?) {
            // A daemon has two names for a while after its configuration changed.
            if !live || stopped.iter().any(|gone| gone.pid == info.pid) {
                continue;
            }
            let (pid, ticks) = (info.pid, info.start_ticks);
            match Client::connect(info).and_then(|c| stop(cx, &c, Duration::ZERO)) {
                Ok(gone) => stopped.push(gone),
                // It left by itself in the meantime.
                Err(_) if !proc::alive(pid, ticks) => {}
                Err(e) => failure = Some(e),
            }
        }
    } else if let (Some(client), _) = cx.running_anyhow().map_err(point_at_all)? {
        stopped.push(stop(cx, &client, Duration::ZERO)?);
    }
    drop(progress);
    if let Some(e) = failure {
        return Err(e);
    }
    if cx.json() {
        let keys: Vec<_> = stopped.iter().map(|g| json!({"key": g.key, "pid": g.pid})).collect();
        cx.out.json(&json!({"ok": true, "stopped": keys}))?;
    } else if stopped.is_empty() {
        cx.out.line("no daemon is running")?;
    } else {
        for gone in &stopped {
            cx.out.line(&format!("stopped the daemon {} (pid {})", gone.key, gone.pid))?;
        }
    }
    Ok(0)
}

/// A configuration that cannot be read names no daemon.
fn point_at_all(e: Error) -> Error {
    if e.kind() != Kind::Config {
        return e;
    }
    let hint = e.hint_text().map(|h| format!("{h}\n")).unwrap_or_default();
    e.hint(format!("{hint}mcpx stop --all reads no configuration"))
}

/// A daemon that was stopped.
pub struct Gone {
    /// Its key.
    pub key: String,
    /// Its process.
    pub pid: u32,
}

/// Asks a daemon to stop, once its calls have ended or `drain` is over, and waits until its process is gone, or, where it is on another machine, until nobody answers.
pub fn stop(cx: &Cx, client: &Client, drain: Duration) -> Result<Gone> {
    // A daemon that was named by its socket is known by what it says of itself.
    let health = client.json("GET", "/v1/health", None)?;
    let pid = health["pid"].as_u64().and_then(|p| u32::try_from(p).ok()).unwrap_or(client.info().pid);
    let key = health["key"].as_str().unwrap_or(&client.info().key).to_owned();
    let ticks = proc::start_ticks(pid).unwrap_or(0);
    let mut limit = MARGIN + drain;
    if let Ok(world) = cx.world() {
        limit +=
            world.settings.get(&settings::POOL_STOP_GRACE) + world.settings.get(&settings::POOL_KILL_GRACE);
    }
    let drain = u64::try_from(drain.as_millis()).unwrap_or(u64::MAX);
    client.json("POST", "/v1/shutdown", Some(&json!({"drainMs": drain})))?;
    let deadline = Instant::now() + limit;
    let there = || match client.is_remote() {
        true => {
            client.another().is_ok_and(|c| c.json("GET", "/v1/health", None).is_ok_and(|h| h["pid"] == pid))
        }
        false => proc::alive(pid, ticks),
    };
    while there() {
        if Instant::now() >= deadline {
            return Err(Error::new(
                Kind::Timeout,
                format!("the daemon (pid {pid}) did not stop within {limit:?}"),
            )
            .hint(format!("its servers may be stuck; kill -9 {pid} ends it and them")));
        }
        // Nobody but its parent is told when a process ends.
        std::thread::sleep(LOOK);
    }
    Ok(Gone { key, pid })
}
