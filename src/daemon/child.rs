//! Starting what listens to events: the program, its environment, its directory.
//! Knows nothing of events.

use super::state::Daemon;
use crate::error::{Error, Kind, Result};
use crate::observe::declared::Run;
use crate::proc::{self, Child, Io, Spawn, find_program};
use crate::script::env::VARIABLES;
use crate::util::Env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The daemon's environment without what belongs to some other program, and the directory of the nearest
/// configuration file.
pub fn surroundings(daemon: &Daemon) -> (Env, PathBuf) {
    let current = daemon.current();
    let cwd = current.config_path().parent().filter(|dir| dir.is_dir()).unwrap_or(Path::new("/")).to_owned();
    let mut env = daemon.origin.env.clone();
    VARIABLES.iter().for_each(|variable| env.remove(variable.name));
    (env, cwd)
}

/// Starts it in the directory of the nearest configuration file, in a process group of its own.
/// It gets the daemon's environment without what belongs to some other program, and `own` on top.
///
/// # Errors
/// `Unavailable`, with what could not be started and why.
pub fn start(daemon: &Daemon, run: &Run, own: Vec<(&'static str, OsString)>, stdout: Io) -> Result<Child> {
    let (mut env, cwd) = surroundings(daemon);
    own.into_iter().for_each(|(name, value)| env.set(name, value));
    let (program, args): (PathBuf, Vec<OsString>) = match run {
        Run::Words(words) => {
            let name = words.first().map(String::as_str).unwrap_or_default();
            (find_program(OsStr::new(name), &env, &cwd)?, words.iter().skip(1).map(Into::into).collect())
        }
        Run::Shell(text) => (find_program(OsStr::new("sh"), &env, &cwd)?, vec!["-c".into(), text.into()]),
        Run::Script(script) => {
            let own = proc::own_program().map_err(|e| {
                Error::new(Kind::Unavailable, format!("finding the path of this binary: {e}"))
            })?;
            (own, vec!["run".into(), script.into()])
        }
    };
    proc::spawn(Spawn {
        program,
        args,
        env: env.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
        cwd: Some(cwd),
        stdin: Io::Piped,
        stdout,
        stderr: Io::Piped,
        own_group: true,
        die_with_parent: true,
        ..Spawn::default()
    })
    .map_err(|e| Error::new(Kind::Unavailable, e.to_string()))
}
