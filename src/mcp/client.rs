//! The client of one MCP server, over whichever transport: requests that are
//! paired, timed and cancelled, and the end. Knows nothing of who
//! shares it.

use super::ask::Asked;
use super::cancel::Cancel;
use super::era::{self, Handshake, ResultType, Stamp};
use super::error::Subject;
use super::jsonrpc::{self, METHOD_NOT_FOUND};
use super::mirror;
use super::peer::Peer;
use super::pending::{Event, Outcome, Slot};
use super::stdio::Stdio;
use super::streamable::{Exchange, Streamable};
use super::subscribe::{self, Watched};
use super::task;
use super::tool::{Tool, ToolList};
use super::writer::Rejected;
use crate::error::{Error, Kind, Result};
use crate::log;
use crate::util::json_words;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// Pages of one list. The largest servers known have some hundred tools; this
/// only ends a server that invents cursors for ever.
const PAGES: usize = 1000;

/// How long a message that could not be written waits for the word that the
/// process has ended, which says why.
const NEWS: Duration = Duration::from_secs(2);

/// How one request is made.
#[derive(Clone)]
pub struct Options<'a> {
    /// How long the answer may take; `None` is for ever.
    pub timeout: Option<Duration>,
    /// The limit as it was given, where some of it had passed before: what is said of a time-out.
    pub given: Option<Duration>,
    /// Tells that the caller has left.
    pub cancel: &'a Cancel,
    /// Asks the server for progress, and takes each report (`{progress, total?,
    /// message?}`) on the caller's thread.
    pub progress: Option<Arc<dyn Fn(Value) + Send + Sync>>,
    /// Takes what the server asks while it works on this.
    pub asked: Option<Asked>,
    /// The directories that the caller works in: what a server of the stateless era is told that asks for
    /// roots. Absent: those of the connection.
    pub roots: Option<&'a dyn Fn() -> Vec<PathBuf>>,
    /// What the caller answers when the server asks, as MCP's `ClientCapabilities`: said to servers
    /// of the stateless era instead of what mcpx itself answers.
    pub capabilities: Option<&'a Value>,
    /// Told once the server carries out the call as a task of its own.
    pub began: Option<Arc<dyn Fn() + Send + Sync>>,
    /// Headers that say arguments again, where the transport has headers.
    pub mirrored: &'a [(String, String)],
}

impl<'a> Options<'a> {
    /// Without time-out and progress.
    pub fn new(cancel: &'a Cancel) -> Options<'a> {
        Options {
            timeout: None,
            given: None,
            cancel,
            progress: None,
            asked: None,
            roots: None,
            capabilities: None,
            began: None,
            mirrored: &[],
        }
    }
    /// With a time-out.
    pub fn timeout(mut self, timeout: Duration) -> Options<'a> {
        self.timeout = Some(timeout);
        self
    }
    /// The same with what is left of the time, of which messages say what there was at first.
    pub fn left(&self, left: Option<Duration>) -> Options<'a> {
        Options { timeout: left, given: self.given.or(self.timeout), ..self.clone() }
    }
    /// The limit as a message says it.
    pub(super) fn limit(&self) -> Duration {
        self.given.or(self.timeout).unwrap_or_default()
    }
}

/// A connection to an MCP server, ready to be used. Clones are the same
/// connection; any number of threads may make requests at once. When the last
/// clone is dropped without [`Client::stop`], a child process is killed.
#[derive(Clone)]
pub struct Client(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub peer: Arc<Peer>,
    pub link: Link,
    pub started: Mutex<Arc<Handshake>>,
    /// What each request says of us; empty unless the server is of the stateless era.
    pub stamp: RwLock<Arc<Stamp>>,
    /// Which of its resources are watched; unused unless the server is of the stateless era.
    pub watched: Mutex<Watched>,
    /// Something here answers `sampling/createMessage`, whoever calls.
    pub model: bool,
    /// The server is told that somebody does.
    pub sampling: bool,
    /// The server may go on with calls as tasks where that is an extension.
    pub tasks: bool,
    /// The level from which on the server is to log, as MCP calls it; empty for none.
    pub log_level: String,
    pub stop_grace: Duration,
    pub kill_grace: Duration,
    pub start_timeout: Duration,
}

pub(super) enum Link {
    Stdio(Stdio),
    Http(Arc<Streamable>),
}

impl Client {
    /// Makes a request and returns its result, as the server sent it.
    ///
    /// Errors: [`Kind::Tool`] (or [`Kind::Usage`] for wrong parameters) with the
    /// JSON-RPC error object as `raw`; [`Kind::Timeout`] and [`Kind::Cancelled`],
    /// of which the server is told; [`Kind::TooLarge`]; [`Kind::Unavailable`]
    /// when the connection is gone, but [`Kind::OutcomeUnknown`] when a
    /// `tools/call` had been sent on it. Nothing is ever sent a second time, but
    /// where the server answers that it needs input before it begins.
    pub fn request(
        &self,
        method: &str,
        params: Option<Box<RawValue>>,
        options: Options,
    ) -> Result<Box<RawValue>> {
        let mut stamp = self.stamp();
        if let Some(own) = options.capabilities.filter(|_| !stamp.is_empty()) {
            let mut own = own.clone();
            if self.0.model {
                own["sampling"] = json!({});
            }
            // Whatever the caller has of its own: here it is mcpx that waits for tasks.
            own["extensions"] = self.extensions();
            // Where it has no roots of its own, they are those of its directory.
            if !own["roots"].is_object() {
                own["roots"] = json!({});
            }
            stamp = Arc::new(era::stamp(&own, &self.0.log_level)?);
        }
        let mut deadline = options.timeout.and_then(|t| Instant::now().checked_add(t));
        if stamp.is_empty() {
            return self.send(method, params.as_deref(), deadline, &stamp, &options);
        }
        if let Some(on) = subscribe::watching(method) {
            let (server, params) = (self.0.peer.server.as_str(), params.as_deref());
            let subject = Subject { server, method, params, mirrored: &[] };
            return self.watch(on, &subject, &stamp, deadline, &options);
        }
        let (mut again, mut round) = (None, 0);
        loop {
            let params = again.as_deref().or(params.as_deref());
            let result = self.send(method, params, deadline, &stamp, &options)?;
            let (server, mirrored) = (self.0.peer.server.as_str(), options.mirrored);
            let subject = Subject { server, method, params, mirrored };
            match era::result_type(&result) {
                ResultType::Complete => return Ok(result),
                ResultType::InputRequired => {
                    let supplied = self.supply(&subject, &result, round, &options)?;
                    deadline = deadline.map(|d| d + supplied.paused);
                    again = Some(supplied.params);
                    round += 1;
                }
                ResultType::Task if method == "tools/call" && self.0.tasks => {
                    return self.await_task(&result, &subject, deadline, &options);
                }
                ResultType::Task => return Err(subject.unfit("began a task, which nobody had offered")),
                ResultType::Other(word) => {
                    return Err(subject.unfit(&format!("gave a result of the unknown type \"{word}\"")));
                }
            }
        }
    }

    /// Sends one request and waits for its result, whatever its type.
    pub(super) fn send(
        &self,
        method: &str,
        params: Option<&RawValue>,
        deadline: Option<Instant>,
        stamp: &Stamp,
        options: &Options,
    ) -> Result<Box<RawValue>> {
        let inner = &*self.0;
        let peer = &inner.peer;
        let subject = Subject { server: &peer.server, method, params, mirrored: options.mirrored };
        if let Link::Stdio(stdio) = &inner.link {
            stdio.drain(peer);
        }
        let task = params.filter(|_| method == "tasks/result").and_then(task::named);
        let waiting = peer.pending.open_for(options.progress.is_some(), options.asked.clone(), task);
        let slot = &waiting.slot;
        // Looked at after the place was taken: whoever closes later finds it.
        if let Some(closed) = peer.closed() {
            return Err(subject.broken(&closed.reason(), false));
        }
        let line = jsonrpc::request(slot.id, method, params, options.progress.is_some(), stamp);
        let cancelled = Arc::clone(slot);
        let _guard = options.cancel.on_cancel(move || cancelled.finish(Outcome::Cancelled));
        let event = match &inner.link {
            Link::Stdio(stdio) => match stdio.send(line, Some(slot)) {
                Ok(()) => {
                    stdio.help(peer, slot, deadline);
                    follow_patiently(slot, deadline, options)
                }
                // The reader is about to find out why.
                Err(Rejected::Gone) => match follow(slot, Some(Instant::now() + NEWS), options) {
                    Event::TimedOut => Event::Done(Outcome::Broken("takes no more messages".into())),
                    event => event,
                },
                Err(Rejected::Full) => {
                    return Err(Error::new(
                        Kind::Busy,
                        format!("the server {} does not read what is sent to it", peer.server),
                    )
                    .server(&peer.server));
                }
            },
            Link::Http(http) => self.exchange(http, &subject, &line, slot, deadline, options)?,
        };
        let Event::Done(outcome) = event else {
            let sent = inner.give_up(&subject, slot, "timed out");
            return Err(subject.timed_out(options.limit(), sent));
        };
        match outcome {
            Outcome::Result(result) => Ok(result),
            Outcome::Error(object) => Err(subject.refused(object)),
            Outcome::TooLarge(which) => Err(subject.too_large(&which)),
            Outcome::Broken(reason) => Err(subject.broken(&reason, slot.sent.load(Ordering::Acquire))),
            Outcome::Cancelled => {
                inner.give_up(&subject, slot, "the caller left");
                Err(subject.cancelled())
            }
        }
    }

    /// One request over HTTP; a lost session is begun again, once.
    fn exchange(
        &self,
        http: &Arc<Streamable>,
        subject: &Subject,
        line: &[u8],
        slot: &Arc<Slot>,
        deadline: Option<Instant>,
        options: &Options,
    ) -> Result<Event> {
        let mut renewed = false;
        loop {
            let mut tick = |until| match follow(slot, Some(until), options) {
                Event::TimedOut => None,
                event => Some(event),
            };
            match http.exchange(subject, line, slot, deadline, options.cancel, &mut tick)? {
                Exchange::Over(event) => return Ok(event),
                // The server knows nothing of the session, so nothing was done.
                Exchange::SessionLost(lost) if !renewed && !is_greeting(subject.method) => {
                    renewed = true;
                    let limit = Instant::now() + self.0.start_timeout;
                    let limit = deadline.map_or(limit, |d| d.min(limit));
                    http.renew(lost, || self.greet(self.era(), limit, options.cancel))?;
                }
                Exchange::SessionLost(_) => {
                    return Ok(Event::Done(Outcome::Broken(
                        "does not know the session it has just begun".into(),
                    )));
                }
            }
        }
    }

    /// All tools, from all pages. A tool that cannot be read is left out and
    /// logged; a server without tools has none.
    pub fn list_tools(&self, options: &Options) -> Result<ToolList> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Page<'a> {
            #[serde(borrow, default)]
            tools: Vec<&'a RawValue>,
            #[serde(default)]
            next_cursor: Option<String>,
            #[serde(default)]
            ttl_ms: Option<Value>,
            #[serde(default)]
            cache_scope: Option<Value>,
        }
        let server = &self.0.peer.server;
        let bad = |what: String| {
            Error::new(Kind::Unavailable, format!("{server} answered tools/list with {what}")).server(server)
        };
        let deadline = options.timeout.and_then(|t| Instant::now().checked_add(t));
        let (mut list, mut names, mut seen) = (ToolList::default(), HashSet::new(), HashSet::new());
        let mut params = None;
        // Of those tools a client that sends headers cannot know which to send.
        let headers = matches!(self.0.link, Link::Http(_)) && !self.stamp().is_empty();
        for _ in 0..PAGES {
            let timeout = deadline.map(|d| d.saturating_duration_since(Instant::now()));
            let result = match self.request("tools/list", params, options.left(timeout)) {
                Err(e) if list.tools.is_empty() && is_unknown_method(&e) => return Ok(list),
                other => other?,
            };
            let page: Page = serde_json::from_str(result.get())
                .map_err(|e| bad(format!("something else: {}", json_words(e))))?;
            for text in page.tools {
                match serde_json::from_str::<Tool>(text.get()) {
                    Ok(tool) if headers && mirror::fault(&tool.input_schema).is_some() => {
                        let why = mirror::fault(&tool.input_schema).unwrap_or_default();
                        log::warn(format_args!("{server} lists {}, which is left out: {why}", tool.name));
                    }
                    Ok(tool) if !names.insert(tool.name.clone()) => {
                        log::warn(format_args!("{server} lists the tool {} twice", tool.name));
                    }
                    Ok(tool) => list.tools.push(tool),
                    Err(e) => log::warn(format_args!("{server} lists a tool that cannot be read: {e}")),
                }
            }
            let said = page.ttl_ms.as_ref().and_then(Value::as_u64);
            list.ttl_ms = [list.ttl_ms, said].into_iter().flatten().min();
            list.private |= page.cache_scope.is_some_and(|scope| scope == "private");
            // Some servers end with an empty cursor instead of none.
            let Some(cursor) = page.next_cursor.filter(|c| !c.is_empty()) else { return Ok(list) };
            params = Some(raw(&json!({ "cursor": cursor }))?);
            if !seen.insert(cursor) {
                return Err(bad("a cursor that it had given before; the list would never end".into()));
            }
        }
        Err(bad(format!("more than {PAGES} pages")))
    }

    /// Asks whether the server is there.
    pub fn ping(&self, timeout: Duration) -> Result<()> {
        let method = if self.stamp().is_empty() { "ping" } else { "server/discover" };
        self.request(method, None, Options::new(&Cancel::new()).timeout(timeout)).map(drop)
    }

    pub(super) fn stamp(&self) -> Arc<Stamp> {
        Arc::clone(&self.0.stamp.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn started(&self) -> Arc<Handshake> {
        Arc::clone(&self.0.started.lock().unwrap_or_else(PoisonError::into_inner))
    }
    /// `serverInfo`, as the server gave it.
    pub fn server_info(&self) -> Option<Value> {
        self.started().server_info.clone()
    }
    /// `capabilities`, as the server gave them.
    pub fn capabilities(&self) -> Value {
        self.started().capabilities.clone()
    }
    /// The negotiated revision of the protocol.
    pub fn protocol(&self) -> String {
        self.started().protocol_version.clone()
    }
    /// The server's instructions.
    pub fn instructions(&self) -> Option<String> {
        self.started().instructions.as_ref().and_then(Value::as_str).map(str::to_owned)
    }
    /// The process id of a server that is a child.
    pub fn pid(&self) -> Option<u32> {
        match &self.0.link {
            Link::Stdio(stdio) => Some(stdio.pid()),
            Link::Http(_) => None,
        }
    }
    /// The latest of what a child wrote to its standard error; empty for others.
    pub fn stderr_tail(&self) -> String {
        match &self.0.link {
            Link::Stdio(stdio) => stdio.stderr().text(),
            Link::Http(_) => String::new(),
        }
    }
    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.0.peer.closed().is_some()
    }
    /// Why it has ended, with a child's last words; continues "the server x".
    pub fn closed_reason(&self) -> Option<String> {
        self.0.peer.closed().map(|closed| closed.reason())
    }
    /// Runs `listener` with [`Client::closed_reason`] once the connection has
    /// ended (at once when it has), on whichever thread notices.
    pub fn on_close(&self, listener: Box<dyn FnOnce(String) + Send>) {
        self.0.peer.on_close(listener);
    }

    /// Ends the connection. Requests under way fail; a child's input is closed,
    /// it gets `pool.stopGrace` to leave and `pool.killGrace` after SIGTERM.
    pub fn stop(&self) {
        self.0.end(self.0.stop_grace, "was stopped");
    }
}

impl Inner {
    /// Sends a notification, or an answer; nobody waits for it.
    pub fn notify(&self, line: Vec<u8>) {
        match &self.link {
            Link::Stdio(stdio) => drop(stdio.send(line, None)),
            Link::Http(http) => http.notify(line),
        }
    }

    /// Nobody waits for this answer any more: takes the message back if it is
    /// still here, else tells the server. Returns whether it had been sent.
    fn give_up(&self, subject: &Subject, slot: &Arc<Slot>, reason: &str) -> bool {
        if matches!(&self.link, Link::Stdio(stdio) if stdio.retract(slot)) {
            return false;
        }
        // The protocol forbids to cancel this one.
        let stateless = matches!(&self.link, Link::Http(http) if http.is_stateless());
        // There the end of the exchange has told the server.
        if !is_greeting(subject.method) && !stateless {
            let params = json!({ "requestId": slot.id, "reason": reason });
            let line = jsonrpc::notification("notifications/cancelled", Some(&params));
            match &self.link {
                Link::Stdio(stdio) => drop(stdio.send(line, None)),
                // The caller has waited long enough.
                Link::Http(http) => http.notify_later(line),
            }
        }
        true
    }

    pub fn end(&self, after_eof: Duration, what: &str) {
        self.peer.close(what, "");
        match &self.link {
            Link::Stdio(stdio) => stdio.stop(after_eof, self.kill_grace),
            Link::Http(http) => http.stop(after_eof),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.peer.close("was dropped", "");
        if let Link::Http(http) = &self.link {
            http.abandon();
        }
    }
}

/// Waits for the end of a request, handing on its progress.
fn follow(slot: &Slot, deadline: Option<Instant>, options: &Options) -> Event {
    loop {
        match slot.wait(deadline) {
            Event::Progress(report) => report_progress(options, report),
            event => return event,
        }
    }
}

/// The same, but no time counts in which the server waits for an answer.
fn follow_patiently(slot: &Slot, deadline: Option<Instant>, options: &Options) -> Event {
    loop {
        match slot.wait_patiently(deadline) {
            Event::Progress(report) => report_progress(options, report),
            event => return event,
        }
    }
}

/// Whether a method begins a connection.
fn is_greeting(method: &str) -> bool {
    matches!(method, "initialize" | "server/discover")
}

fn report_progress(options: &Options, report: Value) {
    if let Some(progress) = &options.progress {
        progress(report);
    }
}

fn is_unknown_method(e: &Error) -> bool {
    e.raw_value().and_then(|raw| raw.get("code")).and_then(Value::as_i64) == Some(METHOD_NOT_FOUND)
}

pub(super) fn raw(value: &Value) -> Result<Box<RawValue>> {
    to_raw_value(value).map_err(|e| Error::new(Kind::Internal, format!("writing parameters: {e}")))
}
