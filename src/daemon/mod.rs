//! The daemon: boot, listeners, router, following the configuration, shutdown.
//! Never names the command line; prints nothing.

use crate::error::{Error, Kind, Result};
use crate::paths::Dirs;
use crate::settings::FlagValue;
use crate::util::Env;
use std::io::Write;
use std::path::PathBuf;

/// What a daemon starts with.
pub struct Options {
    /// The one configuration file to read (`--config`), instead of searching.
    pub explicit: Option<PathBuf>,
    /// The directory that the search begins in (`--dir`), absolute.
    pub dir: PathBuf,
    /// The environment; servers inherit it.
    pub env: Env,
    /// Where state and cache are kept.
    pub dirs: Dirs,
    /// The settings that its command line gave.
    pub flags: Vec<FlagValue>,
    /// A command started it (`--detached`): it leaves when it was idle for `autostart.idleExit`.
    pub detached: bool,
    /// Where its word goes, one line of JSON: `{"ready":{"key","pid","socket","endpoint"}}`
    /// once it answers, or `{"error":{…}}`. A command that started it reads it; in the foreground there is none.
    pub ready: Option<Box<dyn Write + Send>>,
    /// Told what a person in front of it wants to know; nothing when detached.
    pub notice: Box<dyn Fn(&str) + Send + Sync>,
}

/// Runs a daemon until it is told to stop, or was idle for long enough. An
/// error that keeps it from starting is returned, and has been written to `ready`.
pub fn run(options: Options) -> Result<()> {
    let _ = options;
    Err(Error::new(Kind::Internal, "the daemon is not built yet"))
}
