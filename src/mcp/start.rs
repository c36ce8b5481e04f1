//! Starting a server, or connecting to one: the handshake, and saying why it
//! failed. Knows nothing of what the connection is for.

use super::ask;
use super::cancel::Cancel;
use super::client::{Client, Inner, Link, Options, raw};
use super::era::{self, Era, Handshake, REVISIONS, STATELESS};
use super::error::{printable, quote_stderr, seconds};
use super::jsonrpc;
use super::oauth::Access;
use super::peer::{Hooks, Limits, Peer, Streams};
use super::stdio::{Program, Stdio};
use super::streamable::Streamable;
use super::task;
use crate::config::declared::settings_for;
use crate::config::inherit::inherited;
use crate::config::{ServerDef, Transport, secrets};
use crate::error::{Error, Kind, Result};
use crate::log;
use crate::observe::log::Redactor;
use crate::paths::Dirs;
use crate::proc;
use crate::settings::{self, Settings};
use crate::util::Env;
use crate::util::json_words;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// How long a server that nobody knows yet may think about a greeting that it
/// may not know, before it is greeted in the other way.
const PROBE: Duration = Duration::from_secs(5);

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
    /// The revision that it spoke the last time.
    pub remembered: Option<&'a str>,
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

impl Connect<'_> {
    /// The connection, as yet without a word said.
    fn client(&self, start_timeout: Duration) -> Result<Client> {
        let Connect { def, env, settings, .. } = self;
        let limit = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let limits = Limits {
            message: limit(settings.get(&settings::MCP_MAX_MESSAGE)),
            depth: limit(settings.get(&settings::MCP_MAX_DEPTH).unsigned_abs()),
            streams: Streams {
                retry: settings.get(&settings::UPSTREAM_RETRY),
                retry_most: settings.get(&settings::UPSTREAM_RETRY_MOST),
                resumes: limit(settings.get(&settings::UPSTREAM_RESUMES).unsigned_abs()),
                accept: settings.get(&settings::UPSTREAM_ACCEPT_TIMEOUT),
                silence: settings.get(&settings::UPSTREAM_SILENCE),
            },
        };
        let kill_grace = settings.get(&settings::POOL_KILL_GRACE);
        let peer = Peer::new(&def.name, limits, self.hooks.clone());
        let link = match &def.transport {
            Transport::Stdio { command, args, env: own, cwd } => {
                let mut env = match &def.options.inherit_env {
                    Some(patterns) => inherited(patterns, env),
                    None => Env::clone(env),
                };
                for (name, value) in own {
                    env.set(name, value);
                }
                for (name, value) in settings_for(own, settings) {
                    env.set(name, value);
                }
                let stderr_tail = limit(settings.get(&settings::POOL_STDERR_TAIL));
                let cwd = cwd.as_deref();
                let secrets = secrets::of_definition(&def.transport).into_iter().chain(secrets::of_env(&env));
                let redactor = Redactor::new(secrets);
                let program = Program { command, args, env, cwd, stderr_tail, redactor, kill_grace };
                Link::Stdio(Stdio::start(program, &peer)?)
            }
            Transport::Http { url, headers } => {
                let access = access(def, url, headers, env, settings);
                let ca = settings.get(&settings::TRANSPORT_CA_FILE);
                Link::Http(Streamable::new(url, headers, env, &ca, &peer, access)?)
            }
        };
        Ok(Client(Arc::new(Inner {
            peer,
            link,
            started: Mutex::default(),
            stamp: RwLock::default(),
            watched: Mutex::default(),
            model: ask::samples_for(settings, &def.name).is_ok(),
            sampling: ask::samples_for(settings, &def.name).is_ok()
                || ask::hosts_may_sample(settings, &def.name),
            tasks: settings.get(&settings::UPSTREAM_TASKS) != "never",
            log_level: Some(settings.get(&settings::UPSTREAM_LOG_LEVEL))
                .filter(|level| level != "off")
                .unwrap_or_default(),
            stop_grace: settings.get(&settings::POOL_STOP_GRACE),
            kill_grace,
            start_timeout,
        })))
    }
}

impl Client {
    /// Starts or connects to a server and initializes it, within its start
    /// time-out. On failure nothing that was started is left, and the error
    /// ([`Kind::Unavailable`], [`Kind::Timeout`], [`Kind::Cancelled`] or
    /// [`Kind::Refused`]) says why with the server's last words.
    pub fn start(connect: Connect, cancel: &Cancel) -> Result<Client> {
        let (def, settings) = (connect.def, connect.settings);
        let start_timeout =
            def.options.start_timeout.unwrap_or_else(|| settings.get(&settings::POOL_START_TIMEOUT));
        let deadline = Instant::now() + start_timeout;
        let wanted = def.options.protocol.clone();
        let wanted = wanted.unwrap_or_else(|| settings.get(&settings::UPSTREAM_PROTOCOL));
        let eras =
            era::order(&wanted, connect.remembered, &def.transport).map_err(|e| e.server(&def.name))?;
        let mut client = connect.client(start_timeout)?;
        let mut refused: Option<Error> = None;
        for (at, era) in eras.iter().enumerate() {
            let is_last = at + 1 == eras.len();
            // Some servers stay with the era in which they were first greeted.
            if refused.is_some() && client.pid().is_some() {
                client.0.end(Duration::ZERO, "was stopped");
                client = connect.client(start_timeout)?;
            }
            let limit = match era {
                Era::Stateless if !is_last => deadline.min(Instant::now() + PROBE),
                _ => deadline,
            };
            let Err(e) = client.greet(*era, limit, cancel) else { return Ok(client) };
            if !is_last && client.may_be_of_another_era(*era, &e, connect.remembered) {
                log::debug(format_args!("{} refused {}: {}", def.name, era.greeting(), e.message()));
                refused.get_or_insert(e);
                continue;
            }
            // What both refused is told by the answer to the first greeting.
            let e = match refused.take() {
                Some(first) if era::is_other_era(&e) && *era == Era::Stateless => first,
                _ => e,
            };
            let e = client.explain_start(e, era.greeting());
            client.0.end(Duration::ZERO, "was stopped");
            return Err(e);
        }
        Err(Error::new(Kind::Internal, "no way to greet a server").server(&def.name))
    }

    /// Whether a greeting failed in a way that the other one may not.
    fn may_be_of_another_era(&self, era: Era, e: &Error, remembered: Option<&str>) -> bool {
        // With a process that has ended there is nothing to be tried, unless it was
        // another kind of server the last time.
        let ended = self.pid().is_some() && self.is_closed();
        match (era, e.kind()) {
            (_, Kind::Cancelled | Kind::Config | Kind::Internal) => false,
            (Era::Initialize(_), _) => era::is_other_era(e),
            (Era::Stateless, _) if self.pid().is_some() => !ended || remembered.is_some(),
            // A 401 or 403, and a server that is not there, stay what they are.
            (Era::Stateless, Kind::Refused | Kind::Busy) => false,
            (Era::Stateless, Kind::Timeout) => true,
            (Era::Stateless, _) => matches!(&self.0.link, Link::Http(http) if http.was_reached()),
        }
    }

    /// Begins in one era.
    pub(super) fn greet(&self, era: Era, deadline: Instant, cancel: &Cancel) -> Result<()> {
        match era {
            Era::Initialize(revision) => match (self.initialize(revision, deadline, cancel), &self.0.link) {
                (Err(e), Link::Http(http)) if http.may_be_older() => match http.open_older(deadline) {
                    Ok(()) => self.initialize(revision, deadline, cancel),
                    Err(why) => {
                        log::debug(&why);
                        Err(e)
                    }
                },
                (outcome, _) => outcome,
            },
            Era::Stateless => self.discover(deadline, cancel),
        }
    }

    /// The era in which the server was greeted last.
    pub(super) fn era(&self) -> Era {
        let revision = self.protocol();
        let known = REVISIONS.iter().find(|known| **known == revision);
        match known {
            _ if revision == STATELESS => Era::Stateless,
            known => Era::Initialize(known.unwrap_or(&REVISIONS[0])),
        }
    }

    /// What we offer to do for the server.
    fn capabilities_of_ours(&self) -> Value {
        let hooks = &self.0.peer.hooks;
        let mut capabilities = json!({});
        if !(hooks.roots)().is_empty() {
            capabilities["roots"] = json!({});
        }
        if hooks.asked.is_some() {
            capabilities["elicitation"] = json!({ "form": {}, "url": {} });
        }
        if hooks.asked.is_some() && self.0.sampling {
            capabilities["sampling"] = json!({});
        }
        capabilities
    }

    /// What of the stateless era's extensions we know.
    pub(super) fn extensions(&self) -> Value {
        if self.0.tasks { json!({ task::EXTENSION: {} }) } else { json!({}) }
    }

    /// `server/discover`. Nothing follows, but a request to be told of changes.
    fn discover(&self, deadline: Instant, cancel: &Cancel) -> Result<()> {
        let inner = &*self.0;
        let mut capabilities = self.capabilities_of_ours();
        // Each request has a caller of its own, who is somewhere.
        capabilities["roots"] = json!({});
        capabilities["extensions"] = self.extensions();
        let stamp = Arc::new(era::stamp(&capabilities, &inner.log_level)?);
        if let Link::Http(http) = &inner.link {
            http.set_protocol(STATELESS);
        }
        let options = Options::new(cancel);
        let ask = || self.send("server/discover", None, Some(deadline), &stamp, &options);
        let outcome = match ask() {
            // It says that it does speak this very revision.
            Err(e) if era::offers_stateless(&e) => ask(),
            outcome => outcome,
        };
        let said = outcome.and_then(|result| {
            Handshake::discovered(&result).ok_or_else(|| {
                let what = format!("{} does not speak MCP revision {STATELESS}", inner.peer.server);
                // As if it had refused: the other era is to be tried.
                Error::new(Kind::Tool, what).server(&inner.peer.server)
            })
        });
        let said = match said {
            Ok(said) => said,
            Err(e) => {
                if let Link::Http(http) = &inner.link {
                    http.forget_session();
                }
                return Err(e);
            }
        };
        let changes = said.changes();
        *inner.started.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(said);
        *inner.stamp.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&stamp);
        if changes.as_object().is_some_and(|all| !all.is_empty()) {
            self.listen(changes, &stamp)?;
        }
        Ok(())
    }

    /// `initialize` and `notifications/initialized`.
    fn initialize(&self, revision: &str, deadline: Instant, cancel: &Cancel) -> Result<()> {
        let inner = &*self.0;
        let params = raw(&json!({
            "protocolVersion": revision,
            "capabilities": self.capabilities_of_ours(),
            "clientInfo": era::client_info(),
        }))?;
        let options = Options::new(cancel).timeout(deadline.saturating_duration_since(Instant::now()));
        let result = self.request("initialize", Some(params), options)?;
        let unusable = |what: String| {
            Error::new(Kind::Unavailable, format!("the server {} {what}", inner.peer.server))
                .server(&inner.peer.server)
        };
        let said: Handshake = serde_json::from_str(result.get())
            .map_err(|e| unusable(format!("answered initialize with something else: {}", json_words(e))))?;
        if !REVISIONS.contains(&said.protocol_version.as_str()) {
            return Err(unusable(format!(
                "speaks MCP revision \"{}\", which mcpx does not know (it knows {STATELESS}, {})",
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
        self.set_log_level();
        Ok(())
    }

    /// `logging/setLevel`, where the server declares logging. Nobody waits for the answer, which says nothing.
    fn set_log_level(&self) {
        let inner = &*self.0;
        if inner.log_level.is_empty() || !self.started().capabilities["logging"].is_object() {
            return;
        }
        let Ok(params) = raw(&json!({ "level": inner.log_level })) else { return };
        let id = inner.peer.pending.id();
        let line = jsonrpc::request(id, "logging/setLevel", Some(&params), false, &self.stamp());
        match &inner.link {
            Link::Stdio(stdio) => drop(stdio.send(line, None)),
            Link::Http(http) => http.notify_later(line),
        }
    }

    /// Says of a failed start what the server said, and what could be done.
    fn explain_start(&self, e: Error, greeting: &str) -> Error {
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
                        "the server {server} did not answer {greeting} within {} (startTimeout)",
                        seconds(inner.start_timeout)
                    ),
                )
                .hint(START_TIMEOUT_HINT),
                Kind::Tool | Kind::Usage => new(Kind::Unavailable, e.message().to_owned()),
                // That it was about the greeting is of no use to anybody here.
                Kind::Unavailable => {
                    match e.message().strip_prefix(greeting).and_then(|m| m.strip_prefix(" was not ")) {
                        Some(rest) => {
                            let why = rest.split_once(": ").map_or(rest, |(_, why)| why);
                            new(Kind::Unavailable, why.to_owned())
                        }
                        None => e,
                    }
                }
                _ => e,
            };
        };
        let noise = inner.peer.noise();
        if let Some(closed) = inner.peer.closed() {
            let e = new(
                Kind::Unavailable,
                format!("the server {server} {} before it answered {greeting}{}", closed.what, closed.detail),
            );
            return if noise.is_empty() { e } else { e.hint(NOISE_HINT) };
        }
        let noise = stdio.stderr().hide(&noise);
        let stderr = quote_stderr(&stdio.stderr().last_lines());
        match e.kind() {
            Kind::Timeout => {
                let message = format!(
                    "the server {server} did not answer {greeting} within {} (startTimeout){noise}{stderr}",
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
