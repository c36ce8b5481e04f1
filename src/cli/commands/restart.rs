//! `mcpx restart`: stops servers, which start anew when they are needed, or hands over to a new daemon.

use super::super::command::{Command, Flag, Group, Rest, example};
use super::super::cx::Cx;
use super::super::progress::Progress;
use super::super::schemas;
use crate::api::Client;
use crate::error::{Error, Kind, Result};
use crate::settings;
use serde_json::json;

/// The command.
pub static COMMAND: Command = Command {
    name: "restart",
    group: Group::Daemon,
    words: "[<namespace>]",
    count: (0, 1),
    rest: Rest::Mixed,
    summary: "Stop servers, so that the next call starts them anew",
    about: "All of them, or those of one namespace or session. With --daemon the daemon itself is replaced by a new \
            one of this binary's version: it is not found any more from then on, lets calls in flight end for \
            daemon.drainTimeout, and stops; the new one starts with the daemon's flags that are given here. A daemon of \
            a newer version is left alone.",
    flags: &[
        Flag::switch("daemon", "Replace the daemon too"),
        Flag::switch("force", "With --daemon: replace one of a newer version as well"),
        Flag::value("session", "KEY", "Only what belongs to this session"),
    ],
    settings: &["daemon.drainTimeout"],
    examples: &[
        example("mcpx restart demo", "one server"),
        example("mcpx restart --session work", "what one session owns"),
        example("mcpx restart --daemon", "everything, the daemon included"),
    ],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    let wanted = cx.inv.words()?;
    let session = cx.inv.text("session")?;
    let replace = cx.inv.has("daemon");
    if replace && (session.is_some() || !wanted.is_empty()) {
        return Err(super::super::args::usage(
            "--daemon restarts everything; it takes no namespace and no session",
        ));
    }
    let world = cx.catalog()?;
    let server = match wanted.is_empty() {
        true => None,
        false => schemas::select(world, &wanted)?.first().map(|n| n.def.name.clone()),
    };
    let running = cx.running()?;
    if replace {
        let progress = Progress::start("replacing the daemon");
        if let Some(client) = running {
            if client.is_remote() {
                return Err(super::super::args::usage(format!(
                    "the daemon at {} is not of this machine, and could be stopped but not started from here",
                    client.info().endpoint
                ))
                .hint("run mcpx restart --daemon where it runs"));
            }
            refuse_older(cx, &client)?;
            let drain = cx.world()?.settings.get(&settings::DAEMON_DRAIN_TIMEOUT);
            super::stop::stop(cx, &client, drain)?;
        }
        let client = cx.daemon(&progress)?;
        let info = client.info().clone();
        drop((progress, client));
        if cx.json() {
            cx.out.json(
                &json!({"ok": true, "daemon": {"key": info.key, "pid": info.pid, "version": info.version}}),
            )?;
        } else {
            cx.out.line(&format!("a new daemon runs (pid {}, version {})", info.pid, info.version))?;
        }
        return Ok(0);
    }
    let count = match running {
        // Without a daemon there is no session.
        None if session.is_some() => super::session::running(cx, session.unwrap_or_default()).map(|_| 0)?,
        None => 0,
        Some(client) => {
            let mut body = serde_json::Map::new();
            if let Some(server) = server {
                body.insert("server".into(), server.into());
            }
            if let Some(session) = session {
                body.insert("session".into(), session.into());
            }
            let answer = client.json("POST", "/v1/restart", Some(&body.into()))?;
            answer["restarted"].as_u64().unwrap_or(0)
        }
    };
    if cx.json() {
        cx.out.json(&json!({"ok": true, "restarted": count}))?;
    } else {
        let text = match count {
            0 => "nothing was running".to_owned(),
            1 => "stopped 1 server; the next call starts it anew".to_owned(),
            n => format!("stopped {n} servers; the next call starts each anew"),
        };
        cx.out.line(&text)?;
    }
    Ok(0)
}

/// A daemon is not replaced by an older one: whoever has the newer mcpx would have it replaced again.
fn refuse_older(cx: &Cx, client: &Client) -> Result<()> {
    let health = client.json("GET", "/v1/health", None)?;
    let theirs = health["version"].as_str().unwrap_or_default();
    if cx.inv.has("force") || !is_newer(theirs, VERSION) {
        return Ok(());
    }
    Err(Error::new(
        Kind::Refused,
        format!("the daemon is version {theirs}, newer than this mcpx ({VERSION}), and stays as it is"),
    )
    .hint("use the mcpx of that version, or --force"))
}

/// Whether version `a` is later than `b`, by their numbers.
fn is_newer(a: &str, b: &str) -> bool {
    let numbers = |version: &str| -> Vec<u64> {
        let release = version.split(['-', '+']).next().unwrap_or_default();
        release.split('.').map(|n| n.parse().unwrap_or(0)).collect()
    };
    numbers(a) > numbers(b)
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[cfg(test)]
mod tests {
    use super::is_newer;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert!(is_newer("0.10.0", "0.9.9") && is_newer("1.0.0", "0.99.0") && is_newer("1.0.1", "1.0"));
        assert!(!is_newer("0.1.0", "0.1.0") && !is_newer("0.9.0", "0.10.0") && !is_newer("", "0.1.0"));
        assert!(!is_newer("1.0.0-rc.1", "1.0.0"));
    }
}
