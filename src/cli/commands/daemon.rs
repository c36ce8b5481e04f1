//! `mcpx daemon`: be the daemon.

use super::super::args::usage;
use super::super::command::{Command, Flag, Group, Rest, example};
use super::super::cx::Cx;
use super::super::out::note;
use crate::daemon::{self, Options};
use crate::error::{Error, Kind, Result};
use std::io;
use std::path::{Path, PathBuf};

/// The command.
pub static COMMAND: Command = Command {
    name: "daemon",
    group: Group::Daemon,
    words: "",
    count: (0, 0),
    rest: Rest::Mixed,
    summary: "Be the daemon of this configuration, in the foreground",
    about: "Commands start a daemon by themselves; this is for a service manager, or to watch one. It stays until it \
            is stopped: mcpx stop, Ctrl-C or SIGTERM, which are each a way to end it well: the exit code is 0.",
    flags: &[
        Flag::switch(
            "detached",
            "As a command starts it: tell on standard output when ready, leave when idle",
        ),
        Flag::value(
            "dir",
            "DIRECTORY",
            "Search the configuration from here instead of the working directory",
        ),
    ],
    settings: &["autostart.idleExit", "transport.listen", "transport.tcp", "logging.level"],
    examples: &[
        example("mcpx daemon", "until Ctrl-C"),
        example("mcpx daemon --dir /srv/project --no-transport-tcp", "for another directory, without TCP"),
    ],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    let detached = cx.inv.has("detached");
    let here = cx.inv.value("dir").map_or(Path::new("."), Path::new);
    let dir = std::path::absolute(here).map_err(|e| {
        Error::new(Kind::Unavailable, format!("finding the directory {}: {e}", here.display()))
    })?;
    if !dir.is_dir() {
        let what = if dir.exists() { "is not a directory" } else { "does not exist" };
        return Err(usage(format!("--dir: {} {what}", dir.display()))
            .hint("it names the directory whose configuration is served"));
    }
    daemon::run(Options {
        explicit: cx.env.text("MCPX_CONFIG").map(PathBuf::from),
        dir,
        // It outlives a script that starts it, whose token and socket are not for it.
        env: crate::api::without_run(&cx.env),
        dirs: cx.dirs()?,
        flags: cx.inv.settings.clone(),
        detached,
        inline: false,
        ready: detached.then(|| Box::new(io::stdout()) as Box<dyn io::Write + Send>),
        mcp: Some(crate::serve::endpoint()),
        lasting: None,
        notice: if detached { Box::new(|_| {}) } else { Box::new(note) },
    })?;
    Ok(0)
}
