//! Programs that are commands: an executable `mcpx-NAME` on PATH, or in
//! `plugins` below mcpx's configuration directory, is `mcpx NAME`. A command of
//! mcpx's own is never replaced by one. Knows nothing of what they do.

use super::args::usage;
use super::commands::COMMANDS;
use crate::api;
use crate::error::Result;
use crate::paths::Dirs;
use crate::proc;
use crate::script::env::plugin_env;
use crate::util::Env;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// What their names begin with.
const PREFIX: &str = "mcpx-";

/// The directories that are looked through, first come first served.
fn places(env: &Env, dirs: Option<&Dirs>, cwd: &Path) -> Vec<PathBuf> {
    let own = dirs.and_then(|dirs| dirs.config.as_ref()).map(|config| config.join("plugins"));
    let path = env.get("PATH").map(|path| std::env::split_paths(path).collect::<Vec<_>>());
    own.into_iter().chain(path.unwrap_or_default()).map(|dir| cwd.join(dir)).collect()
}

/// Every one there is, by name, with its program.
pub fn all(env: &Env, dirs: Option<&Dirs>, cwd: &Path) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    for dir in places(env, dirs, cwd) {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let file = entry.file_name();
            let Some(name) = file.to_str().and_then(|file| file.strip_prefix(PREFIX)) else { continue };
            let taken = COMMANDS.iter().any(|command| command.name == name);
            if !taken && is_name(name) && proc::is_program(&entry.path()) {
                found.entry(name.to_owned()).or_insert_with(|| entry.path());
            }
        }
    }
    found
}

/// A name as one types it: it could not be meant for a flag or a path.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('-') && !name.contains(['/', '.'])
}

/// The program of that name, if there is one.
pub fn find(name: &OsStr, env: &Env, dirs: Option<&Dirs>, cwd: &Path) -> Option<PathBuf> {
    let name = name.to_str().filter(|name| is_name(name))?;
    let file = format!("{PREFIX}{name}");
    places(env, dirs, cwd).into_iter().map(|dir| dir.join(&file)).find(|path| proc::is_program(path))
}

/// Becomes the program; returns only when that cannot be done.
///
/// # Errors
/// `Usage`, with the reason.
pub fn become_it(
    program: &Path,
    args: &[OsString],
    env: &Env,
    dirs: Option<&Dirs>,
    cwd: &Path,
) -> Result<u8> {
    // Where the daemon of this directory is, or would be. A configuration that cannot be read is the plugin's to meet.
    let socket = dirs.and_then(|dirs| api::resolve(cwd, env, dirs).ok()).map(|found| found.socket);
    let mut whole = env.clone();
    let session = env.text("MCPX_SESSION_ID").unwrap_or_default();
    for (name, value) in plugin_env(session, &socket.unwrap_or_default()) {
        whole.set(name, value);
    }
    let error = proc::replace(program, args, &whole);
    Err(usage(format!("{} cannot be started: {error}", program.display())))
}
