//! Starting a server, or connecting to one: the handshake, and saying why it
//! failed. Knows nothing of what the connection is for.

use super::cancel::Cancel;
use super::client::{Client, Handshake, Inner, Link, Options, raw};
use super::error::{printable, quote_stderr, seconds};
use super::jsonrpc;
use super::oauth::Access;
use super::peer::{Hooks, Limits, Peer};
use super::stdio::{Program, Stdio};
use super::streamable::Streamable;
use crate::config::inherit::inherited;
use crate::config::{ServerDef, Transport};
use crate::error::{Error, Kind, Result};
use crate::paths::Dirs;
use crate::proc;
use crate::settings::{self, Settings};
use crate::util::Env;
use serde_json::json;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The revisions of the protocol that begin with `initialize`, newest first; the first is what we ask for.
const REVISIONS: [&str; 5] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07"];

const START_TIMEOUT_HINT: &str =
    "give it longer with pool.startTimeout, or with startTimeout in the server's \"mcpx\" block";
const NOISE_HINT: &str =
    "an MCP server writes only messages to its stdout: check the command and its arguments";

/// What it takes to reach a server.
pub struct Connect<'a> {
    /// The server's definition.
    pub def: &'a ServerDef,
    /// The complete environment that a child inherits; the definition's variables come on top.
    pub env: &'a Env,
    /// Time-outs and limits.
    pub settings: &'a Settings,
    /// What the server may cause here.
    pub hooks: Hooks,
}

/// Access that has to be granted, unless the definition says how it is had, or that none is.
fn access(
    def: &ServerDef,
    url: &str,
    headers: &[(String, String)],
    env: &Env,
    settings: &Settings,
) -> Option<Access> {
    let own = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    if own || def.options.oauth.off {
        return None;
    }
    // Without a directory of its own there is nowhere to keep a login.
    let state = Dirs::from_env(env, proc::uid()).ok()?.state;
    Some(Access::new(&def.name, url, &def.options.oauth, env, &state, settings))
}

impl Client {
    /// Starts or connects to a server and initializes it, within its start
    /// time-out. On failure nothing that was started is left, and the error
    /// ([`Kind::Unavailable`], [`Kind::Timeout`], [`Kind::Cancelled`] or
    /// [`Kind::Refused`]) says why with the server's last words.
    pub fn start(connect: Connect, cancel: &Cancel) -> Result<Client> {
        let Connect { def, env, settings, hooks } = connect;
        let start_timeout =
            def.options.start_timeout.unwrap_or_else(|| settings.get(&settings::POOL_START_TIMEOUT));
        let deadline = Instant::now() + start_timeout;
        let limit = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let limits = Limits {
            message: limit(settings.get(&settings::MCP_MAX_MESSAGE)),
            depth: limit(settings.get(&settings::MCP_MAX_DEPTH).unsigned_abs()),
        };
        let kill_grace = settings.get(&settings::POOL_KILL_GRACE);
        let peer = Peer::new(&def.name, limits, hooks);
        let link = match &def.transport {
            Transport::Stdio { command, args, env: own, cwd } => {
                let mut env = match &def.options.inherit_env {
                    Some(patterns) => inherited(patterns, env),
                    None => env.clone(),
                };
                for (name, value) in own {
                    env.set(name, value);
                }
                let stderr_tail = limit(settings.get(&settings::POOL_STDERR_TAIL));
                let cwd = cwd.as_deref();
                let program = Program { command, args, env, cwd, stderr_tail, kill_grace };
                Link::Stdio(Stdio::start(program, &peer)?)
            }
            Transport::Http { url, headers } => {
                let access = access(def, url, headers, env, settings);
                Link::Http(Streamable::new(url, headers, env, &peer, access)?)
            }
        };
        let client = Client(Arc::new(Inner {
            peer,
            link,
            started: Mutex::default(),
            stop_grace: settings.get(&settings::POOL_STOP_GRACE),
            kill_grace,
            start_timeout,
        }));
        match client.initialize(deadline, cancel) {
            Ok(()) => Ok(client),
            Err(e) => {
                let e = client.explain_start(e);
                client.0.end(Duration::ZERO, "was stopped");
                Err(e)
            }
        }
    }

    /// `initialize` and `notifications/initialized`.
    pub(super) fn initialize(&self, deadline: Instant, cancel: &Cancel) -> Result<()> {
        let inner = &*self.0;
        let mut capabilities = json!({});
        if !(inner.peer.hooks.roots)().is_empty() {
            capabilities["roots"] = json!({});
        }
        let params = raw(&json!({
            "protocolVersion": REVISIONS[0],
            "capabilities": capabilities,
            "clientInfo": { "name": "mcpx", "version": env!("CARGO_PKG_VERSION") },
        }))?;
        let options = Options::new(cancel).timeout(deadline.saturating_duration_since(Instant::now()));
        let result = self.request("initialize", Some(params), options)?;
        let unusable = |what: String| {
            Error::new(Kind::Unavailable, format!("the server {} {what}", inner.peer.server))
                .server(&inner.peer.server)
        };
        let said: Handshake = serde_json::from_str(result.get())
            .map_err(|e| unusable(format!("answered initialize with something else: {e}")))?;
        if !REVISIONS.contains(&said.protocol_version.as_str()) {
            return Err(unusable(format!(
                "speaks MCP revision \"{}\", which mcpx does not know (it knows {})",
                printable(&said.protocol_version, 40),
                REVISIONS.join(", ")
            )));
        }
        if let Link::Http(http) = &inner.link {
            http.set_protocol(&said.protocol_version);
        }
        *inner.started.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(said);
        inner.notify(jsonrpc::notification("notifications/initialized", None));
        if let Link::Http(http) = &inner.link {
            http.listen();
        }
        Ok(())
    }

    /// Says of a failed start what the server said, and what could be done.
    fn explain_start(&self, e: Error) -> Error {
        let inner = &*self.0;
        let server = &inner.peer.server;
        let new = |kind, message| Error::new(kind, message).server(server);
        if matches!(e.kind(), Kind::Cancelled) {
            return new(Kind::Cancelled, format!("starting the server {server} was cancelled"));
        }
        let Link::Stdio(stdio) = &inner.link else {
            return match e.kind() {
                Kind::Timeout => new(
                    Kind::Timeout,
                    format!(
                        "the server {server} did not answer initialize within {} (startTimeout)",
                        seconds(inner.start_timeout)
                    ),
                )
                .hint(START_TIMEOUT_HINT),
                Kind::Tool | Kind::Usage => new(Kind::Unavailable, e.message().to_owned()),
                // That it was about initialize is of no use to anybody here.
                Kind::Unavailable => match e.message().strip_prefix("initialize was not ") {
                    Some(rest) => {
                        let why = rest.split_once(": ").map_or(rest, |(_, why)| why);
                        new(Kind::Unavailable, why.to_owned())
                    }
                    None => e,
                },
                _ => e,
            };
        };
        let noise = inner.peer.noise();
        if let Some(closed) = inner.peer.closed() {
            let e = new(
                Kind::Unavailable,
                format!("the server {server} {} before it answered initialize{}", closed.what, closed.detail),
            );
            return if noise.is_empty() { e } else { e.hint(NOISE_HINT) };
        }
        let stderr = quote_stderr(&stdio.stderr().last_lines());
        match e.kind() {
            Kind::Timeout => {
                let message = format!(
                    "the server {server} did not answer initialize within {} (startTimeout){noise}{stderr}",
                    seconds(inner.start_timeout)
                );
                new(Kind::Timeout, message).hint(if noise.is_empty() {
                    START_TIMEOUT_HINT
                } else {
                    NOISE_HINT
                })
            }
            _ => new(Kind::Unavailable, format!("{}{noise}{stderr}", e.message())),
        }
    }
}
