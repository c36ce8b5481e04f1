//! A daemon inside one command: the same parts, in a private directory that goes
//! with it, without TCP and without signals of its own. Only the log and the artifacts outlast it. Never names the command.

use super::events::Event;
use super::recording::Logs;
use super::state::Daemon;
use super::{Options, boot, left};
use crate::api::wire::DaemonInfo;
use crate::error::{Error, Kind, Result};
use crate::log;
use crate::paths::{self, Dirs};
use crate::pool::Pool;
use crate::proc;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

/// What the directories of such daemons are called; the process and its start follow.
const PREFIX: &str = "inline-";

/// A daemon that ends when this is dropped: its servers are stopped, its directory removed.
pub struct Inline {
    daemon: Arc<Daemon>,
    life: Option<JoinHandle<()>>,
    info: DaemonInfo,
    // Last: what is in it goes first.
    _place: Place,
}

/// The private directory.
struct Place(PathBuf);

impl Drop for Place {
    fn drop(&mut self) {
        if let Err(e) = fs::remove_dir_all(&self.0) {
            log::debug(format_args!("removing {}: {e}", self.0.display()));
        }
        // Others may be at work beside it; then it stays.
        if let Some(parent) = self.0.parent() {
            let _ = fs::remove_dir(parent);
        }
    }
}

impl Inline {
    /// Starts one. Of `options` the directory, the environment, the flags and the
    /// explicit file are used.
    ///
    /// # Errors
    /// What is wrong with the configuration, or `Unavailable` when there is no place for its directory.
    pub fn start(options: Options) -> Result<Inline> {
        let place = place(&options.dirs)?;
        sweep(&options.dirs);
        let lasting = Some(options.dirs.state.clone());
        let dirs = Dirs { state: place.0.clone(), ..options.dirs };
        let record = left::keep(&dirs, &options.env);
        let (send, events) = mpsc::channel();
        let life =
            boot(Options { dirs, lasting, inline: true, ..options }, send, Logs::record_only, Pool::new)?;
        let daemon = life.daemon.clone();
        let info = daemon.current().info(&daemon.origin);
        let thread = proc::thread::spawn("daemon", move || {
            life.run(&events);
            drop(record);
        });
        let thread = thread.map_err(|e| super::events::no_thread("main loop", &e))?;
        Ok(Inline { daemon, life: Some(thread), info, _place: place })
    }

    /// How it is reached.
    pub fn info(&self) -> &DaemonInfo {
        &self.info
    }

    /// Ends it, from any thread: servers are stopped, and clients answered.
    pub fn stopper(&self) -> impl Fn() + Send + 'static {
        let (daemon, place) = (self.daemon.clone(), self._place.0.clone());
        move || {
            daemon.tell(Event::Shutdown("its command was told to end"));
            daemon.pool.shutdown();
            let _ = fs::remove_dir_all(&place);
            if let Some(parent) = place.parent() {
                let _ = fs::remove_dir(parent);
            }
        }
    }
}

impl Drop for Inline {
    fn drop(&mut self) {
        self.daemon.tell(Event::Shutdown("its command is done"));
        if let Some(life) = self.life.take() {
            let _ = life.join();
        }
    }
}

/// A new directory for this process, where sockets are: its path is short.
fn place(dirs: &Dirs) -> Result<Place> {
    let pid = std::process::id();
    let name = format!("{PREFIX}{pid}-{}", proc::start_ticks(pid).unwrap_or(0));
    let path = dirs.runtime.join(name);
    // Somebody else who leaves may remove the parent between its making and ours.
    let mut outcome = Ok(());
    for _ in 0..3 {
        super::names::private(&dirs.runtime)?;
        outcome = paths::ensure_private(&path, proc::uid());
        if outcome.is_ok() {
            return Ok(Place(path));
        }
    }
    let why = outcome.err().map(|e| e.message().to_owned()).unwrap_or_default();
    Err(Error::new(Kind::Unavailable, format!("making room for a daemon of one command: {why}"))
        .hint("set TMPDIR or XDG_RUNTIME_DIR to a directory that mcpx may write to"))
}

/// Removes what commands left that were killed, and ends their servers.
pub fn sweep(dirs: &Dirs) {
    for entry in fs::read_dir(&dirs.runtime).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(owner) = name.to_str().and_then(|n| n.strip_prefix(PREFIX)) else { continue };
        let owner =
            owner.split_once('-').and_then(|(pid, ticks)| Some((pid.parse().ok()?, ticks.parse().ok()?)));
        let Some((pid, ticks)) = owner else { continue };
        if pid == std::process::id() || ticks == 0 || proc::alive(pid, ticks) {
            continue;
        }
        left::sweep_in(&entry.path());
        remove(&entry.path());
    }
}

fn remove(path: &Path) {
    if let Err(e) = fs::remove_dir_all(path) {
        log::debug(format_args!("removing {}: {e}", path.display()));
    }
}
