//! The daemon's part in the log: where it is, when its files roll, what must not
//! get into it, and the operations that read and write it. Knows nothing of how
//! records are kept.

use super::answers::{json_of, one_or_many};
use super::consumers::Consumers;
use super::hooks::Hooks;
use super::log_stream::{self, Wish};
use super::logfile::LogFile;
use super::router::{Asker, Body, Done, Response};
use super::runs::Run;
use super::state::{Current, Daemon, VERSION};
use crate::api::info;
use crate::api::wire::CallRequest;
use crate::config::secrets;
use crate::error::{Error, Kind, Result};
use crate::log::{self, Level};
use crate::observe::log::stats::{self, About};
use crate::observe::log::{
    Entry, Ids, Journal, MOST, Query, Redactor, Rolling, Snapshot, Upto, chain, dir, newest, parse_when,
    unreadable,
};
use crate::observe::{Bus, Event, Heard, Metrics, declared, kinds};
use crate::paths::Dirs;
use crate::proc;
use crate::script::LogRecord;
use crate::settings::{self, Settings};
use crate::util::{self, Env};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// How long a daemon that stops waits for its last records to be written.
const LAST_RECORDS: Duration = Duration::from_secs(1);

/// So many records are answered with where nobody says how many.
const LIMIT: usize = 100;

/// How much of what somebody else says at once is recorded.
const SAID: Upto = Upto(8192);

/// So many records are taken from one request.
const AT_ONCE: usize = 1000;

/// Where what the daemon says goes.
pub struct Logs {
    /// Plain lines, for who asks why a daemon did not start; none in the foreground.
    pub file: Option<Arc<LogFile>>,
    /// The log.
    pub journal: Arc<Journal>,
    /// The figures.
    pub metrics: Arc<Metrics>,
    /// The declared hooks.
    pub hooks: Arc<Hooks>,
    /// The declared consumers.
    pub consumers: Consumers,
}

impl Logs {
    /// A log that is not written yet, of this bus.
    pub fn new(dirs: &Dirs, bus: &Arc<Bus>, settings: &Settings) -> Logs {
        let journal = Journal::new(dir(dirs), bus.daemon().to_owned(), rolling(settings));
        let (metrics, hooks) = (Arc::new(Metrics::default()), Hooks::new());
        let (into, counted, looking) = (journal.clone(), metrics.clone(), hooks.clone());
        bus.set_tap(Box::new(move |heard| {
            if let Heard::Event(event, extra) = &heard {
                counted.count(event);
                looking.hear(event, extra.as_ref());
            }
            into.hear(heard);
        }));
        Logs { file: None, journal, metrics, hooks, consumers: Consumers::default() }
    }

    /// Begins to write. In the background plain lines go to a file as well.
    pub fn start(self, dirs: &Dirs, key: &str, detached: bool) -> Logs {
        // Without a log the daemon serves all the same.
        let file = detached.then(|| LogFile::open(&info::log_path(dirs, key)).ok()).flatten().map(Arc::new);
        if let Err(e) = self.journal.start(proc::thread::spawn) {
            log::warn(format_args!("nothing is logged: {e}"));
        }
        let (plain, journal) = (file.clone(), self.journal.clone());
        let line = move |level: Level, message: &str| {
            if let Some(file) = &plain {
                file.line(level, &journal.hide(message));
            }
            journal.entry(Entry::new(level, "daemon", message));
        };
        let panicked = line.clone();
        log::set_sink(Box::new(line));
        if detached {
            // Standard error leads nowhere: a panic is told to the log.
            std::panic::set_hook(Box::new(move |panic| {
                panicked(Level::Error, &log::one_line(&format!("a bug in mcpx: {panic}")));
            }));
        }
        Logs { file, ..self }
    }

    /// Begins to write records alone: what else is said is the command's own. Where the log
    /// cannot be written nothing is recorded, as a command needs no log to do its work.
    pub fn record_only(self, _: &Dirs, _: &str, _: bool) -> Logs {
        if let Err(e) = self.journal.start(proc::thread::spawn) {
            log::debug(format_args!("nothing is logged: {e}"));
        }
        self
    }

    /// Writes what is left.
    pub fn close(&self) {
        self.journal.close(LAST_RECORDS);
    }
}

/// Has the log and the hooks follow what is in force from now on.
pub fn configure(logs: &Logs, bus: &Bus, current: &Current, env: &Env) {
    bus.set_detailed(current.settings.get(&settings::LOGGING_ARGUMENTS));
    logs.journal.configure(rolling(&current.settings), redactor(current, env));
    logs.hooks.configure(&current.settings);
}

/// Has hooks and consumers run: not before there is a record of the daemon's processes. A daemon of
/// one command (`brief`) is over too soon for a consumer.
pub fn attach(daemon: &Arc<Daemon>, brief: bool) {
    daemon.logs.hooks.attach(daemon);
    if brief {
        return;
    }
    daemon.logs.consumers.configure(daemon, &daemon.current().settings);
}

/// What a daemon of one command has to say of what it leaves out; `None` when that is nothing.
pub fn left_out(settings: &Settings) -> Option<&'static str> {
    let any = !declared::consumers(settings).is_empty();
    any.then_some("event consumers do not run with --no-daemon; hooks and the log do")
}

/// Whether something is declared that the daemon starts by itself.
pub fn starts_something(settings: &Settings) -> bool {
    !declared::hooks(settings).is_empty() || !declared::consumers(settings).is_empty()
}

fn rolling(settings: &Settings) -> Rolling {
    let count = |n: i64| u64::try_from(n).unwrap_or(0);
    Rolling {
        size: settings.get(&settings::LOGGING_MAX_SIZE),
        lines: count(settings.get(&settings::LOGGING_MAX_LINES)),
        age: u64::try_from(settings.get(&settings::LOGGING_MAX_AGE).as_millis()).unwrap_or(u64::MAX),
        keep: usize::try_from(settings.get(&settings::LOGGING_KEEP)).unwrap_or(1),
    }
}

/// Hides the tokens, every value of the environment, of a server's variables or of its headers whose
/// name says that it is secret, and what looks like a secret in arguments and addresses.
fn redactor(current: &Current, env: &Env) -> Redactor {
    let token = current.settings.get(&settings::TRANSPORT_BEARER_TOKEN);
    let own = [current.token.as_str(), token.reveal()];
    let servers = current.config.servers.iter().flat_map(|s| secrets::of_definition(&s.transport));
    Redactor::new(own.into_iter().chain(secrets::of_env(env)).chain(servers))
}

/// What is asked for: the parameters that the log and the statistics share.
#[derive(Deserialize)]
pub struct Wanted {
    since: Option<String>,
    until: Option<String>,
    level: Option<String>,
    #[serde(default, deserialize_with = "one_or_many")]
    event: Vec<String>,
    #[serde(default, deserialize_with = "one_or_many")]
    source: Vec<String>,
    #[serde(default, deserialize_with = "one_or_many")]
    server: Vec<String>,
    #[serde(default, deserialize_with = "one_or_many")]
    tool: Vec<String>,
    #[serde(default, deserialize_with = "one_or_many")]
    session: Vec<String>,
    #[serde(default, deserialize_with = "one_or_many")]
    run: Vec<String>,
    #[serde(default)]
    grep: String,
    #[serde(default)]
    id: String,
    limit: Option<usize>,
    #[serde(default)]
    about: String,
    #[serde(default)]
    lines: bool,
    #[serde(default)]
    follow: bool,
}

impl Wanted {
    fn query(self) -> Result<Query> {
        let now = util::now_ms();
        let usage = |what: &str, why: String| Error::new(Kind::Usage, format!("{what}: {why}"));
        let time = |what: &str, text: Option<String>, otherwise: u64| match text {
            Some(text) => parse_when(&text, now).map_err(|why| usage(what, why)),
            None => Ok(otherwise),
        };
        let level = match self.level.as_deref() {
            None => Level::Trace,
            Some(word) => Level::from_word(word).ok_or_else(|| {
                usage("level", format!("\"{word}\" is not one of trace, debug, info, warn, error"))
            })?,
        };
        let query = Query {
            since: time("since", self.since, 0)?,
            until: time("until", self.until, u64::MAX)?,
            level,
            events: self.event,
            sources: self.source,
            servers: self.server,
            tools: self.tool,
            sessions: self.session,
            runs: self.run,
            grep: self.grep,
            id: self.id,
        };
        match query.unknown_event() {
            None => Ok(query),
            Some(word) => {
                let error = usage("event", format!("there is no event \"{word}\""));
                Err(match util::did_you_mean(word, Query::known_events()) {
                    Some(near) => error.hint(near),
                    None => error,
                })
            }
        }
    }
}

impl Daemon {
    fn log_files(&self) -> Result<Arc<Snapshot>> {
        let dir = self.logs.journal.dir();
        Snapshot::take(dir).map(Arc::new).map_err(|e| unreadable(dir, &e))
    }
}

/// Answers with the newest records that are wanted, the oldest first: in one document, or one a line.
///
/// # Errors
/// `Usage` for what cannot be asked, `Unreadable` when a file cannot be read.
pub fn records(daemon: &Arc<Daemon>, wanted: Wanted, asker: &Asker<'_>) -> Result<Done> {
    let (lines, follow) = (wanted.lines || wanted.follow, wanted.follow);
    let limit = wanted.limit.unwrap_or(LIMIT);
    if limit > MOST {
        return Err(Error::new(Kind::Usage, format!("limit is at most {MOST}; 0 is no limit")));
    }
    let query = wanted.query()?;
    if lines {
        let heartbeat = daemon.current().settings.get(&settings::EVENTS_HEARTBEAT);
        let wish = Wish { query, limit, follow, heartbeat };
        let response = log_stream::response(daemon, wish, asker.cancel.clone())
            .map_err(|e| unreadable(daemon.logs.journal.dir(), &e))?;
        return Ok(Done::Response(response));
    }
    // One document is made in memory, so not of everything.
    let limit = if limit == 0 { MOST } else { limit };
    let snapshot = daemon.log_files()?;
    let lines = newest(&snapshot, &query, limit, proc::thread::spawn)
        .map_err(|e| unreadable(daemon.logs.journal.dir(), &e))?;
    // As they were written: nothing of them is parsed but to see that they are JSON.
    let records: Vec<Box<RawValue>> =
        lines.into_iter().filter_map(|line| RawValue::from_string(line).ok()).collect();
    json_of(&json!({"records": records}))
}

/// Answers with what an id belongs to.
///
/// # Errors
/// `Unreadable` when a file cannot be read.
pub fn chain_of(daemon: &Daemon, id: &str) -> Result<Done> {
    let snapshot = daemon.log_files()?;
    let tree = chain::chain(&snapshot, id, proc::thread::spawn)
        .map_err(|e| unreadable(daemon.logs.journal.dir(), &e))?;
    json_of(&json!({"tree": tree}))
}

/// Counts.
///
/// # Errors
/// As [`records`].
pub fn statistics(daemon: &Daemon, wanted: Wanted) -> Result<Done> {
    let word = if wanted.about.is_empty() { "calls" } else { &wanted.about };
    let about = About::from_word(word).ok_or_else(|| {
        let words = About::ALL.map(|(_, word)| word);
        let error = Error::new(Kind::Usage, format!("about: \"{word}\" is not one of {}", words.join(", ")));
        match util::did_you_mean(word, words) {
            Some(near) => error.hint(near),
            None => error,
        }
    })?;
    let limit = match wanted.limit.unwrap_or(LIMIT) {
        0 => usize::MAX,
        limit => limit,
    };
    let query = wanted.query()?;
    let snapshot = daemon.log_files()?;
    let spawn: crate::observe::log::Spawn = proc::thread::spawn;
    json_of(
        &stats::report(&snapshot, about, &query, limit, spawn)
            .map_err(|e| unreadable(daemon.logs.journal.dir(), &e))?,
    )
}

/// Records from outside: one, or several under `records`.
#[derive(Deserialize)]
pub struct Given {
    records: Option<Vec<Entry>>,
    #[serde(flatten)]
    one: Entry,
}

/// Takes records of a plugin or a script.
///
/// # Errors
/// `Usage` for too many at once, and for one without a text.
pub fn take(daemon: &Daemon, given: Given) -> Result<Done> {
    let entries = given.records.unwrap_or_else(|| vec![given.one]);
    if entries.len() > AT_ONCE {
        return Err(Error::new(Kind::Usage, format!("at most {AT_ONCE} records are taken at once")));
    }
    if entries.iter().any(|entry| entry.message.is_empty() && entry.event.is_empty()) {
        return Err(Error::new(Kind::Usage, "a record needs a message or an event"));
    }
    for mut entry in entries {
        if entry.source.is_empty() || entry.source == "daemon" {
            entry.source = "plugin".into();
        }
        said(daemon, entry);
    }
    json_of(&json!({"ok": true}))
}

/// Records what somebody else says: not at any length, and not what is secret by its name.
fn said(daemon: &Daemon, mut entry: Entry) {
    entry.message = SAID.cut(&entry.message);
    Redactor::hide_names(&mut entry.data);
    if entry.data.to_string().len() > SAID.0 {
        entry.data = Value::Null;
    }
    daemon.logs.journal.entry(entry);
}

/// Records what the program of a run says that the daemon itself attends, as a command does for its own.
pub fn script(daemon: &Daemon, run: &Run, record: &LogRecord) {
    let mut data = json!({});
    if let Some(fields) = &record.fields {
        data["fields"] = fields.clone();
    }
    if let Some(source) = &record.source {
        data["source"] = source.as_str().into();
    }
    let (session, trace) = (run.caller.session.clone(), run.caller.trace.clone());
    let ids = Ids { run: run.id.clone(), session, trace, ..Ids::default() };
    let level = Level::from_word(&record.level).unwrap_or(Level::Info);
    let entry =
        Entry { event: "script.log".into(), ids, data, ..Entry::new(level, "script", &record.message) };
    said(daemon, entry);
}

/// Records a call that its daemon cannot record any more: it ended before the call did. For the command
/// that made the call; where the log cannot be written the call is not recorded.
pub fn lost(dirs: &Dirs, settings: &Settings, call: &CallRequest, took: Duration, error: &Error) {
    let ms = took.as_micros() as f64 / 1000.0;
    let bus = Bus::new(1);
    let journal = Journal::new(dir(dirs), bus.daemon().to_owned(), rolling(settings));
    if journal.start(proc::thread::spawn).is_err() {
        return;
    }
    let mut data =
        json!({"tool": call.tool, "ms": ms, "outcome": error.kind().row().word, "call": bus.mint()});
    let mut extra =
        json!({"message": error.message(), "sent": call.arguments.as_deref().map_or(2, |a| a.get().len())});
    let context = &call.context;
    if let Some(run) = &context.run {
        data["run"] = run.as_str().into();
    }
    if !context.trace.is_empty() {
        extra["trace"] = json!(context.trace);
    }
    let session = context.session.as_deref().unwrap_or_default();
    let mut event = Event::new(&kinds::CALL_FINISHED, data).server(&call.server).session(session);
    event.at = util::now_ms();
    journal.hear(Heard::Event(&Arc::new(event), Some(extra)));
    journal.close(LAST_RECORDS);
}

/// The figures as Prometheus reads them (text format 0.0.4).
pub fn metrics(daemon: &Daemon) -> Done {
    let mut text = daemon.logs.metrics.text();
    let counts = daemon.logs.journal.counts();
    let (runs, sessions) = daemon.runs.count();
    let mut instances: std::collections::BTreeMap<(String, &str), (usize, usize, usize)> = Default::default();
    for status in daemon.pool.status() {
        let sum = instances.entry((status.server, status.state)).or_default();
        *sum = (sum.0 + 1, sum.1 + status.in_flight, sum.2 + status.queue);
    }
    let each = |pick: fn(&(usize, usize, usize)) -> usize| {
        let labels = |(server, state): &(String, &'static str)| {
            vec![("server", server.clone()), ("state", (*state).to_owned())]
        };
        instances.iter().map(|(key, sums)| (labels(key), pick(sums) as f64)).collect::<Vec<_>>()
    };
    let one = |n: f64| vec![(Vec::new(), n)];
    let build = vec![(vec![("version", VERSION.to_owned())], 1.0)];
    for (name, kind, help, values) in [
        ("mcpx_build_info", "gauge", "The version, as a label", build),
        ("mcpx_instances", "gauge", "Instances of servers", each(|s| s.0)),
        ("mcpx_calls_in_flight", "gauge", "Calls that instances work on", each(|s| s.1)),
        ("mcpx_calls_waiting", "gauge", "Callers that wait for an instance", each(|s| s.2)),
        ("mcpx_runs", "gauge", "Open runs", one(runs as f64)),
        ("mcpx_sessions", "gauge", "Sessions of open runs", one(sessions as f64)),
        ("mcpx_connections", "gauge", "Connections", one(daemon.places.taken() as f64)),
        ("mcpx_events_total", "counter", "Events on the bus", one(daemon.pool.bus().last() as f64)),
        ("mcpx_log_records_total", "counter", "Records written to the log", one(counts.written as f64)),
        ("mcpx_log_dropped_total", "counter", "Records that the log lost", one(counts.dropped as f64)),
        (
            "mcpx_uptime_seconds",
            "gauge",
            "Since the daemon started",
            one(daemon.origin.uptime_ms() as f64 / 1000.0),
        ),
    ] {
        crate::observe::family(&mut text, name, kind, help, &values);
    }
    let body = Body::Whole(text.into_bytes());
    let media = Some("text/plain; version=0.0.4; charset=utf-8");
    Done::Response(Response { status: 200, media, headers: String::new(), body })
}
