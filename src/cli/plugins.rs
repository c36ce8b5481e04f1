//! Programs that are commands: an executable `mcpx-NAME` in `plugins` below mcpx's
//! configuration directory, in a directory of `commands.dirs`, or on PATH is `mcpx NAME`. A command of
//! mcpx's own is never replaced by one. Knows nothing of what they do.

use super::args::usage;
use super::commands::COMMANDS;
use crate::api;
use crate::config::{self, LoadOptions};
use crate::error::Result;
use crate::paths::Dirs;
use crate::proc;
use crate::script::env::plugin_env;
use crate::settings::{self, Settings};
use crate::util::Env;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// What their names begin with.
const PREFIX: &str = "mcpx-";

/// The directories that are looked through, first come first served.
fn places(env: &Env, dirs: Option<&Dirs>, cwd: &Path) -> Vec<PathBuf> {
    let own = dirs.and_then(|dirs| dirs.config.as_ref()).map(|config| config.join("plugins"));
    let further = dirs.map(|dirs| configured(env, dirs, cwd)).unwrap_or_default();
    let path = env.get("PATH").map(|path| std::env::split_paths(path).collect::<Vec<_>>());
    own.into_iter().chain(further).chain(path.unwrap_or_default()).map(|dir| cwd.join(dir)).collect()
}

/// The directories that the settings name; none where the configuration cannot be read, which others report.
fn configured(env: &Env, dirs: &Dirs, cwd: &Path) -> Vec<PathBuf> {
    let explicit = env.get("MCPX_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from);
    let options = LoadOptions { explicit, dir: cwd, env, dirs, uid: proc::uid() };
    let settings = config::load(&options).and_then(|config| Settings::resolve(config.settings_layers(env)));
    settings
        .map(|s| s.get(&settings::COMMANDS_DIRS))
        .unwrap_or_default()
        .into_iter()
        .map(PathBuf::from)
        .collect()
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
