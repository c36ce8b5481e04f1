//! Checks the daemons: those that are gone and left files, and the one of this
//! configuration, its version and how its environment differs from this shell's.

use super::super::commands::daemons::clear_stale;
use super::super::cx::{Cx, World};
use super::{Level, Report};
use crate::api::{self, info};
use crate::paths::Dirs;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

/// Every daemon of the user's.
pub fn all(dirs: &Dirs, fix: bool, report: &mut Report) {
    let found = api::daemons(dirs);
    let stale: Vec<_> = found.iter().filter(|(_, live, _)| !live).collect();
    if fix && !stale.is_empty() {
        let removed = clear_stale(dirs, &found);
        report.fixed.extend(removed.iter().map(|p| format!("removed {}", p.display())));
    }
    for (daemon, _, why) in stale {
        let gone = fix && !info::info_path(dirs, &daemon.key).exists();
        let subject = daemon.key.as_str();
        if gone {
            report.add(Level::Ok, "daemon", subject, "what a daemon that is gone had left is removed");
        } else {
            let what = format!("a daemon is gone and left its files: {why}");
            report.todo(Level::Warning, "daemon", subject, what, "mcpx daemons prune, or mcpx doctor --fix");
        }
    }
    for (daemon, ..) in found.iter().filter(|(_, live, _)| *live) {
        if daemon.version != env!("CARGO_PKG_VERSION") {
            let what = format!(
                "the daemon (pid {}) is mcpx {}, and this is {}",
                daemon.pid,
                daemon.version,
                env!("CARGO_PKG_VERSION")
            );
            report.todo(
                Level::Warning,
                "daemon",
                &daemon.key,
                what,
                "mcpx stop; the next command starts a new one",
            );
        }
        match std::fs::symlink_metadata(&daemon.socket) {
            Ok(meta) if !meta.file_type().is_socket() => {
                let what = format!("{} is no socket", daemon.socket.display());
                report.todo(
                    Level::Error,
                    "daemon",
                    &daemon.key,
                    what,
                    "mcpx stop --all, then remove that file",
                );
            }
            Ok(meta) if meta.mode() & 0o077 != 0 => {
                let what = format!("the socket {} is open to others", daemon.socket.display());
                let todo = format!("chmod 600 {}", daemon.socket.display());
                report.todo(Level::Warning, "daemon", &daemon.key, what, todo);
            }
            Ok(_) => {}
            Err(e) => {
                let what =
                    format!("the socket {} of a live daemon cannot be found: {e}", daemon.socket.display());
                report.todo(
                    Level::Error,
                    "daemon",
                    &daemon.key,
                    what,
                    "mcpx stop --all; the next command starts a new one",
                );
            }
        }
    }
}

/// The daemon of this configuration.
pub fn own(cx: &Cx, world: &World, report: &mut Report) {
    let client = match cx.running() {
        Ok(Some(client)) => client,
        Ok(None) => {
            let what =
                "no daemon is running for this configuration; the next command that needs one starts it";
            return report.add(Level::Info, "daemon", "", what);
        }
        Err(e) => return report.error("daemon", "", &e),
    };
    let daemon = client.info().clone();
    match client.json("GET", "/v1/status", None) {
        Ok(status) => {
            let what = format!(
                "the daemon of this configuration answers (pid {}, mcpx {})",
                daemon.pid, daemon.version
            );
            report.add(Level::Ok, "daemon", &daemon.key, what);
            if let Some(problem) = status["daemon"]["problem"]["message"].as_str() {
                let what = format!("it works with the last good configuration: {problem}");
                report.todo(
                    Level::Error,
                    "daemon",
                    &daemon.key,
                    what,
                    "correct the file; the daemon follows by itself",
                );
            }
        }
        Err(e) => report.error("daemon", &daemon.key, &e),
    }
    environment(cx, world, daemon.pid, report);
}

/// A daemon keeps the environment of the command that started it; servers get that one.
fn environment(cx: &Cx, world: &World, pid: u32, report: &mut Report) {
    let Some(theirs) = environ(pid) else { return };
    let differs = |name: &str| theirs.get(OsStr::new(name)).map(OsString::as_os_str) != cx.env.get(name);
    if differs("PATH") {
        let split = |path: Option<&OsStr>| -> Vec<String> {
            let path = path.unwrap_or_default().to_string_lossy().into_owned();
            path.split(':').map(str::to_owned).collect()
        };
        let (here, there) =
            (split(cx.env.get("PATH")), split(theirs.get(OsStr::new("PATH")).map(OsString::as_os_str)));
        let missing: Vec<&str> = here.iter().filter(|d| !there.contains(d)).map(String::as_str).collect();
        let what = match missing.as_slice() {
            [] => "the daemon's PATH has the same directories in another order, or more".to_owned(),
            some => format!("the daemon's PATH lacks {}", some.join(", ")),
        };
        let level = if missing.is_empty() { Level::Info } else { Level::Warning };
        let todo =
            "mcpx restart gives servers of this shell's PATH only after mcpx stop: the daemon keeps its own";
        report.todo(level, "daemon", "PATH", what, todo);
    }
    // Variables that definitions refer to are filled in where they are read, and the daemon reads them too.
    let text: String =
        super::files(world).filter_map(|p| std::fs::read_to_string(p).ok()).collect::<Vec<_>>().join("\n");
    let mut names: Vec<&str> = text
        .split("${")
        .skip(1)
        .map(|rest| rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default())
        .filter(|name| !name.is_empty() && differs(name))
        .collect();
    names.sort_unstable();
    names.dedup();
    if !names.is_empty() {
        let what = format!(
            "the daemon has other values than this shell of {}, which the configuration uses",
            names.join(", ")
        );
        report.todo(
            Level::Warning,
            "daemon",
            "environment",
            what,
            "mcpx stop; the next command starts one with this shell's",
        );
    }
}

/// The environment that a process of ours was started with.
fn environ(pid: u32) -> Option<BTreeMap<OsString, OsString>> {
    let bytes = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let pairs = bytes.split(|b| *b == 0).filter_map(|pair| {
        let at = pair.iter().position(|b| *b == b'=')?;
        Some((OsString::from_vec(pair[..at].to_vec()), OsString::from_vec(pair[at + 1..].to_vec())))
    });
    Some(pairs.collect())
}
