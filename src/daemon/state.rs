//! What all threads of the daemon share. Knows nothing of connections' bytes.

use super::artifacts::Artifacts;
use super::asks::tasks::Tasks;
use super::asks::{self, Questions};
use super::events::Event;
use super::exec::Slots;
use super::mcp_endpoint::Endpoint;
use super::offers::Watches;
use super::peers::Peers;
use super::places::{Place, Places};
use super::recording::Logs;
use super::runs::Runs;
use super::sessions::Sessions;
use crate::api::http::Limits;
use crate::api::wire::{DaemonInfo, NamespaceName};
use crate::catalog::names;
use crate::config::Config;
use crate::error::{Error, Kind, Result};
use crate::paths::Dirs;
use crate::pool::Pool;
use crate::proc;
use crate::settings::{self, Settings};
use crate::util::{self, Env};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// mcpx's version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How long a request for something that the main loop does waits for it: a
/// reload takes milliseconds, and the main loop never waits for a server.
const MAIN_LOOP_PATIENCE: Duration = Duration::from_secs(10);

/// Between two looks for the place of a connection that was ended.
const LOOK: Duration = Duration::from_millis(1);
/// So many looks there are: its thread needs one, on a machine that is not overwhelmed.
const LOOKS: u32 = 1000;
/// After so many looks in vain another connection is ended.
const EVERY: u32 = 10;

/// What all threads share.
pub struct Daemon {
    /// The servers.
    pub pool: Arc<Pool>,
    /// The open runs.
    pub runs: Runs,
    /// The programs that run for others.
    pub exec: Slots,
    /// The sessions that outlast a run.
    pub sessions: Sessions,
    /// What servers ask.
    pub questions: Arc<Questions>,
    /// The calls that go on without their callers.
    pub tasks: Tasks,
    /// What is kept of scripts and tools.
    pub artifacts: Artifacts,
    /// The connections of the unix socket.
    pub peers: Arc<Peers>,
    /// How many connections may be open.
    pub places: Arc<Places>,
    /// Who wants to be told of which resource.
    pub watches: Watches,
    /// Where what it says goes.
    pub logs: Logs,
    /// Who serves `/mcp`, if anybody does.
    pub mcp: Option<Arc<dyn Endpoint>>,
    /// This process.
    pub origin: Origin,
    /// Who is being served, and when that was last so.
    pub activity: Activity,
    events: Sender<Event>,
    current: RwLock<Arc<Current>>,
    taken: Mutex<Option<Value>>,
    stopping: AtomicBool,
}

/// What does not change while the daemon runs.
pub struct Origin {
    /// The process.
    pub pid: u32,
    /// When it started, in ticks since boot; 0 where there is no /proc.
    pub start_ticks: u64,
    /// When it started, milliseconds since 1970.
    pub started_at: u64,
    /// When it started.
    pub started: Instant,
    /// A command started it.
    pub detached: bool,
    /// Where state is kept.
    pub dirs: Dirs,
    /// Where that is kept which outlasts it: another place for a daemon inside a command.
    pub lasting: Dirs,
    /// The environment.
    pub env: Env,
}

/// What is replaced as a whole when the configuration changes.
pub struct Current {
    /// The configuration in use.
    pub config: Config,
    /// The settings in use.
    pub settings: Settings,
    /// Every server's two names, in the configuration's order.
    pub names: Vec<NamespaceName>,
    /// The unix socket.
    pub socket: PathBuf,
    /// `http://127.0.0.1:PORT`, or empty.
    pub endpoint: String,
    /// The bearer token, or empty.
    pub token: String,
    /// What a peer may send.
    pub limits: Limits,
    /// How long a write may make no progress.
    pub write_timeout: Option<Duration>,
    /// Settings whose value in the configuration needs a restart of the daemon to be in force.
    pub restart: Vec<&'static str>,
    /// Why the configuration on disk is not the one in use.
    pub problem: Option<Error>,
}

impl Current {
    /// The state for a configuration, as yet without addresses.
    pub fn new(config: Config, settings: Settings) -> Current {
        let idents = names::unique_idents(config.servers.iter().map(|s| s.name.as_str()));
        let names = config.servers.iter().zip(idents);
        let names = names.map(|(server, ident)| NamespaceName { name: server.name.clone(), ident }).collect();
        let wait = |setting| Some(settings.get(setting)).filter(|d: &Duration| !d.is_zero());
        let limits = Limits {
            head: usize::try_from(settings.get(&settings::TRANSPORT_MAX_HEADER)).unwrap_or(usize::MAX),
            body: settings.get(&settings::TRANSPORT_MAX_BODY),
            idle: wait(&settings::TRANSPORT_IDLE_TIMEOUT),
            head_timeout: wait(&settings::TRANSPORT_HEADER_TIMEOUT),
        };
        let write_timeout = wait(&settings::TRANSPORT_WRITE_TIMEOUT);
        Current {
            names,
            limits,
            write_timeout,
            config,
            settings,
            socket: PathBuf::new(),
            endpoint: String::new(),
            token: String::new(),
            restart: Vec::new(),
            problem: None,
        }
    }

    /// The nearest configuration file, or an empty path.
    pub fn config_path(&self) -> &Path {
        self.config.path().unwrap_or(Path::new(""))
    }

    /// What the info file says.
    pub fn info(&self, origin: &Origin) -> DaemonInfo {
        DaemonInfo {
            schema: 1,
            key: self.config.key.clone(),
            pid: origin.pid,
            start_ticks: origin.start_ticks,
            socket: self.socket.clone(),
            endpoint: self.endpoint.clone(),
            token: self.token.clone(),
            config_path: self.config_path().to_owned(),
            sources: self.config.sources.iter().map(|s| s.path.clone()).collect(),
            servers_digest: self.config.servers_digest.clone(),
            version: VERSION.into(),
            started_at: origin.started_at,
            servers: self.config.servers.iter().map(|s| s.name.clone()).collect(),
        }
    }
}

impl Origin {
    /// Whether it lives inside one command (`--no-daemon`) and ends with it.
    pub fn is_inside(&self) -> bool {
        self.dirs.state != self.lasting.state
    }

    /// This process.
    pub fn new(detached: bool, dirs: Dirs, lasting: Dirs, env: Env) -> Origin {
        let pid = std::process::id();
        Origin {
            pid,
            start_ticks: proc::start_ticks(pid).unwrap_or(0),
            started_at: util::now_ms(),
            started: Instant::now(),
            detached,
            dirs,
            lasting,
            env,
        }
    }
    /// Milliseconds since the start.
    pub fn uptime_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// Who is being served, and when that was last so.
#[derive(Debug)]
pub struct Activity {
    since: Instant,
    in_flight: AtomicUsize,
    /// Milliseconds after `since`.
    last: AtomicU64,
    /// Somebody waits for quiet; telling them costs a system call that is saved otherwise.
    awaited: AtomicBool,
    quiet: Mutex<()>,
    becomes_quiet: Condvar,
}

/// A request being served.
pub struct Busy<'a>(&'a Activity);

impl Activity {
    /// Nobody yet.
    pub fn new() -> Activity {
        Activity {
            since: Instant::now(),
            in_flight: AtomicUsize::new(0),
            last: AtomicU64::new(0),
            awaited: AtomicBool::new(false),
            quiet: Mutex::new(()),
            becomes_quiet: Condvar::new(),
        }
    }
    /// Notes a sign of life.
    pub fn touch(&self) {
        let now = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(now, Ordering::Relaxed);
    }
    /// Counts a request until the returned value is dropped.
    pub fn enter(&self) -> Busy<'_> {
        self.in_flight.fetch_add(1, Ordering::AcqRel);
        self.touch();
        Busy(self)
    }
    /// How many requests are being served.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::SeqCst)
    }
    /// Waits until no request is being served, at most so long; whether that came.
    pub fn wait_quiet(&self, patience: Duration) -> bool {
        self.awaited.store(true, Ordering::SeqCst);
        let guard = self.quiet.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = self.becomes_quiet.wait_timeout_while(guard, patience, |()| self.in_flight() > 0);
        !outcome.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
    /// How long nobody was served.
    pub fn idle_for(&self) -> Duration {
        if self.in_flight() > 0 {
            return Duration::ZERO;
        }
        self.since.elapsed().saturating_sub(Duration::from_millis(self.last.load(Ordering::Relaxed)))
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.touch();
        let last = self.0.in_flight.fetch_sub(1, Ordering::SeqCst) == 1;
        if last && self.0.awaited.load(Ordering::SeqCst) {
            // Under the lock, so that a waiter is either before its look or asleep.
            drop(self.0.quiet.lock());
            self.0.becomes_quiet.notify_all();
        }
    }
}

impl Daemon {
    /// Puts the parts together.
    pub fn new(
        pool: Arc<Pool>,
        peers: Arc<Peers>,
        logs: Logs,
        mcp: Option<Arc<dyn Endpoint>>,
        origin: Origin,
        current: Current,
        events: Sender<Event>,
    ) -> Result<Arc<Daemon>> {
        let limit = max_connections(&current.settings);
        let daemon = Arc::new(Daemon {
            runs: Runs::new(pool.bus().clone())?,
            exec: Slots::default(),
            questions: Questions::new(pool.bus().clone()),
            tasks: Tasks::new(pool.bus().clone()),
            artifacts: Artifacts::new(&origin.lasting),
            pool,
            sessions: Sessions::default(),
            peers,
            places: Places::new(limit),
            watches: Watches::default(),
            logs,
            mcp,
            origin,
            activity: Activity::new(),
            events,
            current: RwLock::new(Arc::new(current)),
            taken: Mutex::default(),
            stopping: AtomicBool::new(false),
        });
        daemon.pool.on_question(asks::unattributed(&daemon));
        Ok(daemon)
    }

    /// What is in force now. Never waits for anything but another such look.
    pub fn current(&self) -> Arc<Current> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces what is in force.
    pub fn set_current(&self, current: Current) {
        self.places.set_limit(max_connections(&current.settings));
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(current);
    }

    /// What was last taken over from the configuration while the daemon ran: the `taken` of `reload`.
    pub fn taken(&self) -> Option<Value> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Remembers what was taken over just now.
    pub fn set_taken(&self, taken: Value) {
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner) = Some(taken);
    }

    /// A place for whoever comes; where all are taken, a connection that does nothing gives its own
    /// up. None when all are at work.
    pub fn place(&self) -> Option<Place> {
        if let Some(place) = self.places.take() {
            return Some(place);
        }
        for look in 0..LOOKS {
            // Another newcomer may have got the place that was made, so one is made again.
            if look % EVERY == 0 && !self.peers.evict(|peer| self.runs.is_tied(peer)) {
                return None;
            }
            // The thread of the connection that ended notices at once, and gives its place back.
            std::thread::park_timeout(LOOK);
            if let Some(place) = self.places.take() {
                return Some(place);
            }
        }
        None
    }

    /// The token of the TCP listener is one that the daemon made, not one that somebody configured.
    pub fn has_minted_token(&self) -> bool {
        self.current().settings.get(&settings::TRANSPORT_BEARER_TOKEN).is_empty()
    }

    /// Tells the main loop.
    pub fn tell(&self, event: Event) {
        // The receiver lives as long as the main loop; after that nothing matters any more.
        let _ = self.events.send(event);
    }

    /// Has the main loop do something, and waits for its answer.
    pub fn ask<T>(&self, event: impl FnOnce(Sender<T>) -> Event) -> Result<T> {
        let (send, receive) = mpsc::channel();
        self.tell(event(send));
        receive.recv_timeout(MAIN_LOOP_PATIENCE).map_err(|_| {
            Error::new(Kind::Unavailable, "the daemon is stopping, or too busy").hint("try again")
        })
    }

    /// The daemon has begun to stop.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Begins to stop: connections are no longer kept.
    pub fn set_stopping(&self) {
        self.stopping.store(true, Ordering::SeqCst);
    }

    /// Ends what sessions own.
    pub fn end_sessions(&self, sessions: impl IntoIterator<Item = String>) {
        for session in sessions {
            self.tasks.abandon(&session);
            if self.tasks.may_end(&session) {
                self.pool.end_session(&session);
            }
        }
    }
}

fn max_connections(settings: &Settings) -> usize {
    usize::try_from(settings.get(&settings::TRANSPORT_MAX_CONNECTIONS)).unwrap_or(1).max(1)
}
