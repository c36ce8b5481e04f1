//! Leases running servers to callers: which instance a call reaches, when one
//! is started, who waits for it, and when it ends. Knows nothing of scripts,
//! of HTTP routes, or of how a server is reached (`connect` alone does).
//!
//! A call goes server → key → instance → lease → request:
//! `scope` turns the caller into a key, `core` holds one server's table of
//! instances by key, `instance` is the state machine with its line of callers,
//! `call` is the path of one call, `schema` what is known of the tools, and
//! `manage` everything that ends instances.
//!
//! What never happens:
//! - no lock is held while something is sent, started, stopped or read from disk;
//!   two locks are never held at once, but for a ticket's under its instance's;
//! - no `tools/call` that may have reached a server is sent a second time;
//! - no two callers share an instance unless their keys are equal, and a scope
//!   that can't be resolved gives a key of its own;
//! - no key has two processes at a time: a successor waits for its predecessor's end;
//! - no caller waits without an end: starts, lines and calls all have one, and
//!   a caller who leaves frees the place;
//! - no failing server is started in a tight loop, and none holds up another.

mod ask;
mod call;
mod connect;
mod core;
mod git;
mod instance;
mod manage;
mod schema;
mod scope;
mod server;
mod start;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod ticket;

pub use self::ask::Request;
pub use self::connect::{About, Asked, Cancel, Connector, Hooks, Options, Progress, Upstream};
pub use self::git::GitEnv;
pub use self::manage::InstanceStatus;
pub use self::schema::{Namespace, STILL_STARTING};
pub use self::scope::Scope;

use self::core::Shared;
use self::manage::Ended;
use self::scope::Places;
use self::server::{Server, Servers};
use crate::catalog::cache::Cache;
use crate::catalog::{ServerSchema, Tool};
use crate::config::ServerDef;
use crate::error::Result;
use crate::log;
use crate::observe::Bus;
use crate::observe::log::Trace;
use crate::settings::{self, Settings};
use crate::util::Env;
use serde_json::Value;
use serde_json::value::RawValue;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Who is calling: what a scope is resolved from.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// The session key that calls are leased under; empty when there is none.
    pub session: String,
    /// The session that the host assigned.
    pub session_id: Option<String>,
    /// The session that spawned this one.
    pub parent_session_id: Option<String>,
    /// `session` was minted for this run alone.
    pub ephemeral: bool,
    /// The caller's working directory, absolute.
    pub cwd: Option<PathBuf>,
    /// What the caller's environment tells git of its repository.
    pub git: GitEnv,
    /// The caller's process.
    pub pid: Option<u32>,
    /// The run that the call belongs to.
    pub run: Option<String>,
    /// Ids that the caller's host gave, for the log.
    pub trace: Trace,
}

/// One call of a tool.
pub struct Call<'a> {
    /// The server's configured name, or its identifier.
    pub server: &'a str,
    /// The tool's name, or its identifier.
    pub tool: &'a str,
    /// The arguments, a JSON object; absent means `{}`.
    pub arguments: Option<Box<RawValue>>,
    /// How long the caller is ready to wait, starting and queueing included.
    /// Absent: the server's `callTimeout`, else `pool.callTimeout`, counted from when the call is sent. Zero: no limit.
    pub timeout: Option<Duration>,
    /// Instead of the server's `callTimeout` and of `pool.callTimeout`, where `timeout` is absent. Zero: no limit.
    pub call_timeout: Option<Duration>,
    /// Whether the arguments are checked against the tool's schema. Absent: as `mcp.validateArguments` says.
    pub validate: Option<bool>,
    /// May refuse the tool that was found, before anything is sent.
    pub permit: Option<&'a Permit<'a>>,
    /// Pulled when the caller goes away.
    pub cancel: &'a Cancel,
    /// Who wants to hear of progress.
    pub progress: Option<Progress>,
    /// Who takes what the server asks meanwhile.
    pub asked: Option<Asked>,
    /// What of that the caller answers itself, as MCP's `ClientCapabilities`.
    pub capabilities: Option<&'a Value>,
    /// MCP's `_meta` of the request, as far as it is the caller's to say.
    pub meta: Option<&'a Value>,
    /// Told once the server carries it out as a task of its own.
    pub began: Option<Arc<dyn Fn() + Send + Sync>>,
}

/// Refuses a tool of a server, or lets it pass.
pub type Permit<'a> = dyn Fn(&ServerSchema, &Tool) -> Result<()> + 'a;

/// What a pool is made of.
pub struct PoolConfig {
    /// The configured servers.
    pub servers: Vec<Arc<ServerDef>>,
    /// The resolved settings.
    pub settings: Settings,
    /// The environment that servers inherit.
    pub env: Env,
    /// Where schemas are kept.
    pub cache: Cache,
}

/// All servers of one configuration. Share it in an `Arc`; dropping the last one stops what runs.
pub struct Pool {
    shared: Arc<Shared>,
    servers: Mutex<Servers>,
    ended: Ended,
    places: Places,
}

impl Pool {
    /// A pool that starts nothing until it is asked to.
    pub fn new(config: PoolConfig) -> Arc<Pool> {
        let connector = connect::McpConnector { env: config.env };
        Pool::with(config.servers, config.settings, config.cache, Box::new(connector))
    }

    /// A pool over another way to start servers.
    pub(crate) fn with(
        servers: Vec<Arc<ServerDef>>,
        settings: Settings,
        cache: Cache,
        connector: Box<dyn Connector>,
    ) -> Arc<Pool> {
        let history = settings.get(&settings::EVENTS_HISTORY);
        let bus = Bus::new(usize::try_from(history).unwrap_or(usize::MAX));
        let asked = std::sync::OnceLock::new();
        let shared = Arc::new(Shared { connector, cache, warnings: Warnings::default(), asked, bus });
        let servers = Servers::new(servers, settings, &shared, None);
        let (ended, places) = (Ended::default(), Places::default());
        Arc::new(Pool { shared, servers: Mutex::new(servers), ended, places })
    }

    /// Where everything that happens is published.
    pub fn bus(&self) -> &Arc<Bus> {
        &self.shared.bus
    }

    /// Says who takes what servers ask while no call of theirs is under way, and
    /// so that servers may ask at all. Once, before anything is started.
    pub fn on_question(&self, asked: Asked) {
        let _ = self.shared.asked.set(asked);
    }

    /// The server of this name or identifier, whether it can be used or not.
    fn server(&self, name: &str) -> Result<Arc<Server>> {
        self.lock().find(name)
    }

    fn servers_and_settings(&self) -> (Vec<Arc<Server>>, Settings) {
        let servers = self.lock();
        (servers.list.clone(), servers.settings.clone())
    }

    /// The definition of a server, by its name or identifier.
    ///
    /// # Errors
    /// `NotFound` with the nearest names; `Unavailable` after [`Pool::shutdown`].
    pub fn definition(&self, server: &str) -> Result<Arc<ServerDef>> {
        Ok(self.server(server)?.def.clone())
    }

    /// What was found wrong and is worth telling, each once, oldest first.
    pub fn warnings(&self) -> Vec<String> {
        self.shared.warnings.list()
    }

    fn lock(&self) -> MutexGuard<'_, Servers> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shutdown();
    }
}

/// More different warnings than this are a flood, and say nothing new.
const WARNINGS_KEPT: usize = 100;

/// Warnings, each kept once.
#[derive(Default)]
struct Warnings(Mutex<Vec<String>>);

impl Warnings {
    fn add(&self, text: String) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < WARNINGS_KEPT && !kept.contains(&text) {
            kept.push(text.clone());
            drop(kept);
            log::warn(text);
        }
    }

    fn list(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
