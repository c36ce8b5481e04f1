//! Brings a server up and takes it down, each on a thread of its own. However
//! a start or a stop ends, a panic included, its instance hears of it. Knows
//! nothing of who waits.

use super::connect::{Hooks, Said, Upstream};
use super::instance::{End, Instance};
use super::scope::Key;
use crate::config::{ServerDef, Transport};
use crate::error::{Error, Kind};
use crate::log;
use crate::mcp::Noticed;
use crate::observe::log::{Entry, Ids, Upto};
use crate::observe::{Event, kinds};
use crate::proc;
use crate::settings::{CATALOG_CACHE_TTL, Settings};
use serde_json::{Value, json};
use std::sync::Arc;

/// How much of a server's log record goes into the log.
const LOGGED: usize = 1000;

/// Starts the server of a new instance: on its own thread, so that a caller who
/// leaves takes nothing from the others who wait for the same start.
pub(super) fn start(instance: &Arc<Instance>, settings: Settings) {
    let mut attempt = Attempt { instance: instance.clone(), failed: Some(broken()) };
    // With no room for a thread the closure is dropped, and the attempt with it: that fails the start.
    if let Err(e) = proc::thread::spawn("pool-start", move || attempt.run(&settings)) {
        instance.core.warn(format!("starting a thread: {e}"));
    }
}

/// Stops the server of an instance whose end has begun, in the background: it may take both graces.
pub(super) fn stop(instance: &Arc<Instance>, upstream: Arc<dyn Upstream>) {
    let farewell = Arc::new(Farewell { instance: instance.clone(), upstream });
    let other = farewell.clone();
    if proc::thread::spawn("pool-stop", move || other.upstream.stop()).is_err() {
        // No room for a thread: slower for this caller, but nothing is left running.
        farewell.upstream.stop();
    }
}

/// A start that is under way.
struct Attempt {
    instance: Arc<Instance>,
    /// What those who wait are told, unless it succeeds.
    failed: Option<Error>,
}

impl Attempt {
    fn run(&mut self, settings: &Settings) {
        let instance = &self.instance;
        let def = placed(&instance.def, &instance.key);
        let known = instance.core.known(settings.get(&CATALOG_CACHE_TTL));
        let spoken = known.as_ref().map(|known| known.schema.protocol.as_str());
        let connector = instance.core.connector();
        let outcome = connector.connect(&def, settings, hooks(instance), spoken, &instance.start);
        let upstream = match outcome {
            Ok(upstream) => upstream,
            Err(error) => {
                self.failed = Some(error);
                return;
            }
        };
        self.failed = None;
        if let Err(unwanted) = instance.open(upstream.clone()) {
            stop(instance, unwanted);
            return;
        }
        let pid = upstream.pid().map(|pid| format!(", pid {pid}")).unwrap_or_default();
        // For whoever reads the log this is an event, told below.
        log::debug(format_args!("server \"{}\" ({}) runs{pid}", instance.def.name, instance.key.text));
        instance.core.publish(&kinds::SERVER_STARTED, &instance.key, json!({"pid": upstream.pid()}));
        instance.core.compare(&upstream);
        let weak = Arc::downgrade(instance);
        upstream.on_close(Box::new(move |reason| {
            if let Some(instance) = weak.upgrade() {
                instance.retire(End::Crashed(reason), false);
            }
        }));
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let Some(error) = self.failed.take() else { return };
        match self.instance.end() {
            // It was told to end: not a failure of the server's.
            Some(_) => self.instance.finish(None),
            None => {
                self.instance.core.note_failure(&self.instance.key, error.clone());
                self.instance.finish(Some(error));
            }
        }
    }
}

/// A stop that is under way.
struct Farewell {
    instance: Arc<Instance>,
    upstream: Arc<dyn Upstream>,
}

impl Drop for Farewell {
    fn drop(&mut self) {
        self.instance.finish(None);
    }
}

fn broken() -> Error {
    Error::new(Kind::Internal, "starting the server broke off inside mcpx").hint("the daemon's log says more")
}

/// The definition as this key's instance is started from it: one that stands
/// for a place runs there, and any other where its file is, unless the definition
/// names a directory itself. Never where the daemon happens to be.
fn placed(def: &Arc<ServerDef>, key: &Key) -> Arc<ServerDef> {
    let home = || Some(def.base().to_owned()).filter(|base| base.is_dir());
    match (&def.transport, key.place.clone().or_else(home)) {
        (Transport::Stdio { command, args, env, cwd: None }, Some(place)) => {
            let (command, args, env) = (command.clone(), args.clone(), env.clone());
            let transport = Transport::Stdio { command, args, env, cwd: Some(place) };
            Arc::new(ServerDef { transport, ..ServerDef::clone(def) })
        }
        _ => def.clone(),
    }
}

fn hooks(instance: &Arc<Instance>) -> Hooks {
    let weak = Arc::downgrade(instance);
    let roots = instance.key.roots();
    Hooks {
        tools_changed: Arc::new(move || {
            let Some(instance) = weak.upgrade() else { return };
            if let Some(upstream) = instance.upstream() {
                instance.core.refresh(upstream);
            }
        }),
        roots: Arc::new(move || roots.clone()),
        noticed: notices(instance),
        asked: instance.core.shared.asked.get().cloned(),
        said: said(instance),
    }
}

/// Hands what a server says to the log, with what it is.
fn said(instance: &Arc<Instance>) -> Arc<dyn Fn(Said<'_>) + Send + Sync> {
    let (bus, key) = (instance.core.shared.bus.clone(), &instance.key);
    let ids = Ids {
        server: instance.def.name.clone(),
        instance: key.text.clone().into_owned(),
        session: key.session.as_deref().unwrap_or_default().to_owned(),
        ..Ids::default()
    };
    Arc::new(move |said| {
        let Said::Stderr(line) = said;
        let (event, ids) = ("server.stderr".to_owned(), ids.clone());
        bus.record(Entry { event, ids, ..Entry::new(log::Level::Info, "server", SAID.cut(line)) });
    })
}

/// How much of what a server says at once is recorded.
const SAID: Upto = Upto(4096);

/// What a server says of itself goes onto the bus, and its log records into the log.
fn notices(instance: &Arc<Instance>) -> Noticed {
    let (server, bus) = (instance.def.name.clone(), instance.core.shared.bus.clone());
    let session = instance.key.session.clone().unwrap_or_default();
    let weak = Arc::downgrade(instance);
    Arc::new(move |method, params| {
        let event = |kind, data| Event::new(kind, data).server(&server).session(&session);
        bus.publish(match method {
            "notifications/resources/updated" => {
                let uri = params["uri"].as_str().unwrap_or_default();
                event(&kinds::RESOURCE_UPDATED, json!({})).uri(uri)
            }
            "notifications/resources/list_changed" => event(&kinds::RESOURCE_LIST_CHANGED, json!({})),
            "notifications/prompts/list_changed" => event(&kinds::PROMPT_LIST_CHANGED, json!({})),
            "notifications/elicitation/complete" => {
                event(&kinds::ELICIT_VISITED, json!({"elicitationId": params["elicitationId"]}))
            }
            _ => {
                record(&server, &params);
                // A record is for those whose requests the server works on, an event each.
                let callers = weak.upgrade().filter(|_| session.is_empty()).map(|i| i.callers());
                let mut callers = callers.unwrap_or_default();
                let last = callers.pop().unwrap_or_else(|| session.clone());
                let logged = |data, whose: &str| {
                    Event::new(&kinds::SERVER_LOGGED, data).server(&server).session(whose)
                };
                callers.iter().for_each(|whose| bus.publish(logged(params.clone(), whose)));
                logged(params, &last)
            }
        });
    })
}

/// A server's log record, at the level that comes nearest to its own (RFC 5424).
fn record(server: &str, params: &Value) {
    let logger = params["logger"].as_str().map(|name| format!(" ({name})")).unwrap_or_default();
    let data = match &params["data"] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let shown: String = data.chars().take(LOGGED).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let text = format_args!("{server}{logger} logs: {shown}");
    match params["level"].as_str() {
        Some("warning") => log::warn(text),
        Some("error" | "critical" | "alert" | "emergency") => log::error(text),
        Some("info" | "notice") => log::info(text),
        _ => log::debug(text),
    }
}
