//! The daemon: boot, listeners, router, following the configuration, shutdown.
//! Never names the command line; prints nothing.

mod answers;
mod artifacts;
mod asks;
mod call_stream;
mod callers;
mod calling;
mod channel;
mod child;
mod consumers;
mod detached;
mod discover;
mod events;
mod exec;
mod exec_hooks;
mod exec_stream;
mod feed;
mod follow;
mod hooks;
mod http;
mod inline;
mod intake;
mod left;
mod log_stream;
mod logfile;
pub mod mcp_endpoint;
mod names;
mod namespaces;
mod offers;
mod peers;
mod places;
mod recording;
mod references;
mod router;
mod runs;
mod selection;
mod servers;
mod sessions;
mod state;
mod status;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod ui;
mod unix;
pub mod unusable;

pub use self::inline::Inline;

use self::events::{Event, Life};
use self::follow::Watched;
pub use self::hooks::rows as declared_rows;
pub use self::left::guard;
use self::names::Names;
use self::peers::Peers;
use self::recording::Logs;
pub use self::recording::lost;
use self::state::{Current, Daemon, Origin, VERSION};
use crate::catalog::cache::Cache;
use crate::config::{self, LoadOptions, ServerDef, Transport};
use crate::error::Result;
use crate::log;
use crate::observe::{Event as Happened, kinds};
use crate::paths::{self, Dirs};
use crate::pool::{Pool, PoolConfig};
use crate::proc::{self, signals};
use crate::settings::{self, FlagValue};
use crate::util::Env;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

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
    /// The state directory of what outlasts the daemon, the log and the artifacts; that of `dirs` when absent.
    pub lasting: Option<PathBuf>,
    /// The settings that its command line gave.
    pub flags: Vec<FlagValue>,
    /// A command started it (`--detached`): it leaves when it was idle for `autostart.idleExit`.
    pub detached: bool,
    /// It lives inside a command: without TCP, and with the command's own log and limits.
    pub inline: bool,
    /// Where its word goes, one line of JSON: `{"ready":{"key","pid","socket","endpoint"}}`
    /// once it answers, or `{"error":{…}}`. A command that started it reads it; in the foreground there is none.
    pub ready: Option<Box<dyn Write + Send>>,
    /// Told what a person in front of it wants to know; nothing when detached.
    pub notice: Box<dyn Fn(&str) + Send + Sync>,
    /// Who serves `/mcp`.
    pub mcp: Option<Arc<dyn mcp_endpoint::Endpoint>>,
}

/// Runs a daemon until it is told to stop, or was idle for long enough. An
/// error that keeps it from starting is returned, and has been written to `ready`.
pub fn run(mut options: Options) -> Result<()> {
    let mut ready = options.ready.take();
    let mut word = |value: Value| {
        if let Some(mut out) = ready.take() {
            // Whoever started us may have left; that is no reason to stop.
            let _ = out.write_all(format!("{value}\n").as_bytes()).and_then(|()| out.flush());
        }
    };
    // Before there are threads.
    proc::memory::share_heaps();
    let (send, events) = mpsc::channel();
    // First, so that a signal during the start leaves no files behind.
    let booted = listen_to_signals(send.clone())
        .map_err(|e| events::no_thread("signal handling", &e))
        .and_then(|()| boot(options, send, Logs::start, Pool::new));
    let life = match booted {
        Ok(life) => life,
        Err(error) => {
            log::error(&error);
            word(json!({"error": error.to_json()}));
            return Err(error);
        }
    };
    let dirs = &life.daemon.origin.dirs;
    left::sweep(dirs);
    inline::sweep(dirs);
    let record = left::keep(dirs, &life.daemon.origin.env);
    let current = life.daemon.current();
    word(json!({"ready": {
        "key": current.config.key,
        "pid": life.daemon.origin.pid,
        "socket": current.socket,
        "endpoint": current.endpoint,
    }}));
    // Whoever waits for the word goes on meanwhile; nothing that they ask for is started before this.
    let has_children = |server: &Arc<ServerDef>| matches!(server.transport, Transport::Stdio { .. });
    if current.config.servers.iter().any(has_children) || recording::starts_something(&current.settings) {
        record.post_guard();
    }
    drop(current);
    life.run(&events);
    drop(record);
    Ok(())
}

/// Everything up to the point where the daemon can be found.
fn boot(
    options: Options,
    send: Sender<Event>,
    start_logs: impl FnOnce(Logs, &Dirs, &str, bool) -> Logs,
    pool: impl FnOnce(PoolConfig) -> Arc<Pool>,
) -> Result<Life> {
    let Options { explicit, dir, env, dirs, lasting, flags, detached, inline, notice, mcp, .. } = options;
    let uid = proc::uid();
    paths::ensure_private(&dirs.state, uid)?;
    let lasting = Dirs { state: lasting.unwrap_or_else(|| dirs.state.clone()), ..dirs.clone() };
    // Relative names would move with the working directory, which is `/` from here on.
    let explicit = explicit.map(|path| dir.join(path));
    let load = LoadOptions { explicit, dir: &dir, env: &env, dirs: &dirs, uid };
    let (config, watched) = load_and_watch(&load)?;
    let settings = events::settings_of(&config, &env, &flags, &[], detached)?;
    events::set_level(&settings);
    let pool = pool(PoolConfig {
        servers: config.servers.clone(),
        settings: settings.clone(),
        env: env.clone(),
        cache: Cache::new(&dirs.cache),
    });
    let bus = pool.bus().clone();
    let logs = start_logs(Logs::new(&lasting, &bus, &settings), &dirs, &config.key, detached);
    // More connections than the system's modest default; without it the daemon only refuses earlier.
    if !inline {
        let _ = proc::raise_nofile();
    }
    let patience = settings.get(&settings::AUTOSTART_TIMEOUT);
    let bound = if inline { None } else { http::Bound::new(&settings)? };
    let peers = Peers::new().map_err(|e| events::no_thread("watch over its clients", &e))?;
    let origin = Origin::new(detached, dirs, lasting, env);
    // A daemon inside a command is nobody else's to find.
    let chosen = if inline { String::new() } else { settings.get(&settings::DAEMON_SOCKET) };
    let mut names = Names::take(&origin.dirs, &config.key, &chosen, patience)?;
    let booted = settings.clone();
    let mut current = Current::new(config, settings);
    current.socket.clone_from(&names.socket);
    if let Some(bound) = &bound {
        current.endpoint.clone_from(&bound.endpoint);
        current.token.clone_from(&bound.token);
    }
    recording::configure(&logs, &bus, &current, &origin.env);
    let outcome = Daemon::new(pool, peers, logs, mcp, origin, current, send).and_then(|daemon| {
        let tcp = bound.map(|bound| http::Tcp::start(&daemon, bound)).transpose()?;
        names.listen(&daemon)?;
        names.publish(&daemon.current().info(&daemon.origin))?;
        Ok((daemon, tcp))
    });
    let (daemon, tcp) = match outcome {
        Ok(parts) => parts,
        Err(error) => {
            names.give_back();
            return Err(error);
        }
    };
    let current = daemon.current();
    if !inline {
        log::info(format_args!(
            "mcpx {VERSION} is ready: process {}, {} servers, {}",
            daemon.origin.pid,
            current.config.servers.len(),
            current.socket.display()
        ));
        current.config.warnings.iter().for_each(log::warn);
    }
    daemon.pool.bus().publish(Happened::new(
        &kinds::DAEMON_STARTED,
        json!({"pid": daemon.origin.pid, "version": VERSION, "key": current.config.key}),
    ));
    match inline {
        true => recording::left_out(&current.settings).into_iter().for_each(&notice),
        false => notice(&format!("serving {} on {}", describe(&current), current.socket.display())),
    }
    Ok(Life {
        daemon,
        names,
        earlier: Vec::new(),
        tcp,
        watched,
        dir,
        flags,
        booted,
        overrides: Vec::new(),
        again: false,
        quiet: inline,
        trimmed: false,
        drain: Duration::ZERO,
    })
}

fn describe(current: &Current) -> String {
    let servers = current.config.servers.len();
    let plural = if servers == 1 { "" } else { "s" };
    match current.config.path() {
        Some(path) => format!("{servers} server{plural} of {}", path.display()),
        None => "no server, as there is no configuration".into(),
    }
}

/// The configuration, and the state of its files from before they were read.
fn load_and_watch(options: &LoadOptions<'_>) -> Result<(config::Config, Watched)> {
    let config = config::load(options)?;
    let watched = Watched::all(&config);
    // Which files contribute is known only after reading them, so they are read
    // again now that they are watched: an edit in between is not missed.
    Ok((config::reload(&config.sources, options)?, watched))
}

fn listen_to_signals(send: Sender<Event>) -> io::Result<()> {
    let signals = signals::install(&[libc::SIGTERM, libc::SIGINT, libc::SIGHUP])?;
    proc::thread::spawn("signals", move || while send.send(Event::Signal(signals.recv())).is_ok() {})
        .map(drop)
}
