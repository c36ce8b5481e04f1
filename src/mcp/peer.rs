//! The server at the other end, however it is reached: sorts what comes from
//! it, answers what it asks, and remembers how it ended. Knows nothing of
//! pipes or of HTTP.

use super::ask::{self, Answer, Asked, Pause, Question};
use super::cancel::Cancel;
use super::era;
use super::error::printable;
use super::jsonrpc::{self, INVALID_REQUEST, METHOD_NOT_FOUND, Message, PARSE_ERROR};
use super::oversize::IdScan;
use super::pending::{Outcome, Pending, Slot};
use crate::log;
use crate::proc::thread;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// How long it is left open which of several calls asks, so that those that end meanwhile are none of them.
/// A person does not notice, and a call that goes on for longer may be any.
const WHOSE: Duration = Duration::from_millis(500);

/// The `_meta` key that says to which task something belongs (2025-11-25).
const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// How much of a line that is no message is remembered.
const NOISE_BYTES: usize = 200;

/// Takes a notification: its method, and its parameters.
pub type Noticed = Arc<dyn Fn(&str, Value) + Send + Sync>;

/// What a server may cause here. Both run on the thread that reads from the
/// server: they must neither wait nor use the client.
#[derive(Clone)]
pub struct Hooks {
    /// The server says that its tools changed.
    pub tools_changed: Arc<dyn Fn() + Send + Sync>,
    /// The directories that the server is told about when it asks for roots.
    pub roots: Arc<dyn Fn() -> Vec<PathBuf> + Send + Sync>,
    /// What else the server says of itself: the method of a notification, and its parameters.
    pub noticed: Noticed,
    /// Takes what the server asks while no request of ours does. None: nobody
    /// answers questions, and the server is told so from the start.
    pub asked: Option<Asked>,
    /// Hears what the server says besides its answers.
    pub said: Arc<dyn Fn(Said<'_>) + Send + Sync>,
}

/// What a server says besides its answers.
#[derive(Clone, Copy, Debug)]
pub enum Said<'a> {
    /// A line on its standard error, without its end.
    Stderr(&'a str),
}

impl Default for Hooks {
    /// Nothing happens, and there are no roots.
    fn default() -> Hooks {
        Hooks {
            tools_changed: Arc::new(|| {}),
            roots: Arc::new(Vec::new),
            noticed: Arc::new(|_, _| {}),
            asked: None,
            said: Arc::new(|_| {}),
        }
    }
}

/// Limits on what a server sends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Bytes of one message.
    pub message: usize,
    /// Levels of nesting of one result.
    pub depth: usize,
    /// Of streams over HTTP.
    pub streams: Streams,
}

/// How streams over HTTP are kept up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Streams {
    /// How long a server is left alone after a stream's end, unless it says otherwise.
    pub retry: Duration,
    /// How long at most, whatever it says.
    pub retry_most: Duration,
    /// How often the rest of an answer is asked for before it has gone on.
    pub resumes: usize,
    /// How long a server may take to accept a message that needs no answer.
    pub accept: Duration,
    /// A stream that is silent for so long is begun anew: what lies between may have forgotten it.
    pub silence: Duration,
}

/// How a connection ended; both texts continue "the server x".
#[derive(Clone, Debug)]
pub(super) struct Closed {
    /// `exited (exit code 1)`.
    pub what: String,
    /// What it left behind: lines of its output, ready to be appended.
    pub detail: String,
}

impl Closed {
    pub fn reason(&self) -> String {
        format!("{}{}", self.what, self.detail)
    }
}

type CloseListener = Box<dyn FnOnce(String) + Send>;

pub(super) struct Peer {
    /// The server's configured name.
    pub server: String,
    pub limits: Limits,
    pub hooks: Hooks,
    pub pending: Arc<Pending>,
    /// Sends an answer that takes its time.
    late: OnceLock<LateSender>,
    /// What the server has asked and not been told, by the text of its id.
    open: Mutex<HashMap<String, Cancel>>,
    noise: Mutex<Noise>,
    closing: Mutex<Closing>,
}

type LateSender = Box<dyn Fn(Vec<u8>) + Send + Sync>;

/// What came and was no message.
#[derive(Debug, Default)]
struct Noise {
    lines: u64,
    first: String,
}

#[derive(Default)]
struct Closing {
    closed: Option<Closed>,
    listeners: Vec<CloseListener>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Peer {
    pub fn new(server: &str, limits: Limits, hooks: Hooks) -> Arc<Peer> {
        Arc::new(Peer {
            server: server.to_owned(),
            limits,
            hooks,
            pending: Arc::default(),
            late: OnceLock::new(),
            open: Mutex::default(),
            noise: Mutex::default(),
            closing: Mutex::default(),
        })
    }

    /// Takes what the server sent as one line or one event. What it asks is
    /// answered through `send`.
    pub fn take(self: &Arc<Self>, text: &[u8], send: impl FnMut(Vec<u8>)) {
        self.take_for(None, text, send);
    }

    /// The same of what stands at the end, without a line break: it may be a part of something.
    pub fn take_rest(self: &Arc<Self>, text: &[u8], send: impl FnMut(Vec<u8>)) {
        if !self.took(None, text, send) {
            self.hear_noise(text);
        }
    }

    /// The same of what came in the answer to one request of ours.
    pub fn take_for(self: &Arc<Self>, request: Option<u64>, text: &[u8], mut send: impl FnMut(Vec<u8>)) {
        if !self.took(request, text, &mut send) {
            self.take_damaged(request, text, send);
        }
    }

    /// Takes it, if it is as it should be.
    fn took(self: &Arc<Self>, request: Option<u64>, text: &[u8], mut send: impl FnMut(Vec<u8>)) -> bool {
        let take = |message: Message<'_>| match message {
            Message::Answer { id, outcome } => self.pair(id, outcome),
            Message::Notification { method, params } => self.notice(&method, params),
            Message::Request { id, method, params } => {
                if let Some(answer) = self.respond(id, &method, params, request) {
                    send(answer);
                }
            }
        };
        text.iter().all(u8::is_ascii_whitespace) || jsonrpc::read(text, take)
    }

    /// Takes what cannot be read as it is. Of text that is no UTF-8 nothing has been taken yet: it is read as
    /// most readers do, with U+FFFD for what is none. A caller whose answer is no JSON does not wait for another.
    fn take_damaged(self: &Arc<Self>, request: Option<u64>, text: &[u8], send: impl FnMut(Vec<u8>)) {
        let repaired = String::from_utf8_lossy(text);
        if matches!(repaired, Cow::Owned(_)) && self.took(request, repaired.as_bytes(), send) {
            let server = &self.server;
            return log::warn(format_args!("{server}: a message that is not UTF-8, read as well as may be"));
        }
        if let Some(error) = complaint(text)
            && let Some(id) = request.or_else(|| self.pending.only())
        {
            self.pending.finish(id, Outcome::Error(error));
            return;
        }
        let id = answer_to(text);
        self.hear_noise(text);
        if let Some(id) = id {
            let shown = printable(repaired.trim(), NOISE_BYTES);
            self.pending.finish(id, Outcome::Broken(format!("answered with what is no JSON: \"{shown}\"")));
        }
    }

    /// How an answer that takes its time is sent; set once.
    pub fn send_late_through(&self, send: impl Fn(Vec<u8>) + Send + Sync + 'static) {
        let _ = self.late.set(Box::new(send));
    }

    fn pair(&self, id: u64, outcome: Result<&RawValue, &RawValue>) {
        let outcome = match outcome {
            Ok(result) if jsonrpc::deeper_than(result.get(), self.limits.depth) => Outcome::TooLarge(
                format!("is nested deeper than {} levels (mcp.maxDepth)", self.limits.depth),
            ),
            Ok(result) => Outcome::Result(result.to_owned()),
            Err(error) => {
                Outcome::Error(serde_json::from_str(error.get()).unwrap_or_else(|_| error.get().into()))
            }
        };
        if !self.pending.finish(id, outcome) {
            // Late, doubled, or never asked for.
            log::debug(format_args!("{}: an answer with id {id} that nobody waits for", self.server));
        }
    }

    /// An answer that was over the limit on messages, and is gone.
    pub fn overlong(&self, id: Option<u64>, bytes: u64) {
        let outcome = Outcome::TooLarge(format!(
            "has {bytes} bytes, more than the {} that are allowed (mcp.maxMessage)",
            self.limits.message
        ));
        let paired = id.is_some_and(|id| self.pending.finish(id, outcome));
        log::warn(format_args!("{}: dropped a message of {bytes} bytes (mcp.maxMessage)", self.server));
        if !paired {
            self.hear_noise(b"(a message over mcp.maxMessage)");
        }
    }

    /// What the server says of itself, or what is to be taken as if it had.
    pub fn notice(&self, method: &str, params: Option<&RawValue>) {
        match method {
            "notifications/progress" => {
                let params: Option<Value> = params.and_then(|p| serde_json::from_str(p.get()).ok());
                let Some(Value::Object(mut report)) = params else { return };
                report.remove("_meta");
                if let Some(id) = report.remove("progressToken").and_then(|token| token.as_u64()) {
                    self.pending.report(id, Value::Object(report));
                }
            }
            "notifications/cancelled" => {
                #[derive(serde::Deserialize)]
                #[serde(rename_all = "camelCase")]
                struct Withdrawn<'a> {
                    #[serde(borrow)]
                    request_id: &'a RawValue,
                }
                let said = params.and_then(|p| serde_json::from_str::<Withdrawn>(p.get()).ok());
                let question = said.and_then(|said| lock(&self.open).remove(said.request_id.get()));
                if let Some(withdrawn) = question {
                    withdrawn.cancel();
                }
            }
            "notifications/subscriptions/acknowledged" => self.acknowledged(params),
            "notifications/tools/list_changed" => self.guarded(|| (self.hooks.tools_changed)()),
            "notifications/message"
            | "notifications/prompts/list_changed"
            | "notifications/resources/list_changed"
            | "notifications/resources/updated"
            | "notifications/elicitation/complete" => {
                let params = params.and_then(|p| serde_json::from_str(p.get()).ok()).unwrap_or_default();
                self.guarded(|| (self.hooks.noticed)(method, params));
            }
            _ => {}
        }
    }

    /// The server will tell of changes: whoever asked for that waits for these words.
    fn acknowledged(&self, params: Option<&RawValue>) {
        let Some(params) = params else { return };
        let said: Value = serde_json::from_str(params.get()).unwrap_or_default();
        if let Some(id) = said["_meta"][era::SUBSCRIPTION_ID].as_u64() {
            self.pending.finish(id, Outcome::Result(params.to_owned()));
        }
    }

    /// A hook that panics must not end the thread that reads.
    fn guarded<T: Default>(&self, hook: impl FnOnce() -> T) -> T {
        catch_unwind(AssertUnwindSafe(hook)).unwrap_or_else(|_| {
            log::error(format_args!("a hook of the server {} panicked", self.server));
            T::default()
        })
    }

    /// Everything that a server asks is answered: some wait for it for ever.
    /// Nothing is returned when the answer takes its time.
    fn respond(
        self: &Arc<Self>,
        id: &RawValue,
        method: &str,
        params: Option<&RawValue>,
        request: Option<u64>,
    ) -> Option<Vec<u8>> {
        match method {
            "ping" => Some(jsonrpc::answer(id, &json!({}))),
            "roots/list" => Some(jsonrpc::answer(id, &self.roots())),
            _ if ask::is_question(method) && self.hooks.asked.is_some() => {
                self.pass_on(id, method, params, request);
                None
            }
            _ => {
                let what = format!("mcpx does not offer {}", printable(method, NOISE_BYTES));
                Some(jsonrpc::refusal(id, METHOD_NOT_FOUND, &what))
            }
        }
    }

    /// `ListRootsResult`.
    pub fn roots(&self) -> Value {
        let roots = self.guarded(|| (self.hooks.roots)());
        self::roots(&roots)
    }

    /// Hands a question to whoever answers it.
    fn pass_on(
        self: &Arc<Self>,
        id: &RawValue,
        method: &str,
        params: Option<&RawValue>,
        request: Option<u64>,
    ) {
        let params: Value = params.and_then(|p| serde_json::from_str(p.get()).ok()).unwrap_or_default();
        let slots = self.pending.asking(request, params["_meta"][RELATED_TASK]["taskId"].as_str());
        let withdrawn = Cancel::new();
        lock(&self.open).insert(id.get().to_owned(), withdrawn.clone());
        // Until it is known whose it is, nobody's time is the server's.
        let pauses: Arc<Mutex<Vec<Pause>>> = Arc::new(Mutex::new(slots.iter().map(Pause::new).collect()));
        let (peer, id, paused) = (Arc::downgrade(self), id.to_owned(), Arc::clone(&pauses));
        let reply = move |answer: Answer| {
            lock(&paused).clear();
            let Some(peer) = peer.upgrade() else { return };
            // The server has taken it back: it expects nothing.
            if lock(&peer.open).remove(id.get()).is_none() {
                return;
            }
            if let Some(late) = peer.late.get() {
                late(ask::line(&id, &answer));
            }
        };
        let question = Question::new(&self.server, method, params, withdrawn, reply);
        if slots.len() < 2 {
            return self.hand_over(&slots, question);
        }
        // Most calls end soon, and the one that waits for an answer does not.
        let peer = Arc::clone(self);
        let waiting = thread::spawn(&format!("whose {}", self.server), move || {
            let left = peer.pending.wait_for_one(&slots, WHOSE);
            lock(&pauses).retain(|pause| left.first().is_some_and(|slot| pause.is_of(slot)));
            if left.len() > 1 {
                let (server, among) = (&peer.server, left.len());
                log::info(format_args!(
                    "{server} asks while it works on {among} calls, and does not say for which"
                ));
            }
            peer.hand_over(&left, question);
        });
        if let Err(e) = waiting {
            // Refused, since it was dropped with the thread.
            log::warn(format_args!("a question of {}: {e}", self.server));
        }
    }

    /// Gives a question to the first of these, else to whoever takes those of no call.
    fn hand_over(&self, slots: &[Arc<Slot>], question: Question) {
        let of_call = slots.first().and_then(|slot| slot.asked.clone());
        // Dropped by a hook that panics, it is refused.
        if let Some(asked) = of_call.or_else(|| self.hooks.asked.clone()) {
            self.guarded(|| asked(question));
        }
    }

    fn hear_noise(&self, text: &[u8]) {
        let mut noise = lock(&self.noise);
        noise.lines += 1;
        if noise.lines == 1 {
            let start = &text[..text.len().min(NOISE_BYTES * 2)];
            noise.first = printable(String::from_utf8_lossy(start).trim(), NOISE_BYTES);
            log::warn(format_args!("{}: no message: {}", self.server, noise.first));
        }
    }

    /// `; its stdout …` when it held lines that are no messages.
    pub fn noise(&self) -> String {
        let noise = lock(&self.noise);
        match noise.lines {
            0 => String::new(),
            1 => format!("; on its stdout is a line that is no MCP message: \"{}\"", noise.first),
            n => {
                format!("; on its stdout are {n} lines that are no MCP messages, first: \"{}\"", noise.first)
            }
        }
    }

    /// How the connection ended, once it has.
    pub fn closed(&self) -> Option<Closed> {
        lock(&self.closing).closed.clone()
    }

    /// Ends the connection: everybody who waits is told. The first reason counts.
    pub fn close(&self, what: &str, detail: &str) {
        let (closed, listeners) = {
            let mut closing = lock(&self.closing);
            if closing.closed.is_some() {
                return;
            }
            let closed = Closed { what: what.to_owned(), detail: detail.to_owned() };
            closing.closed = Some(closed.clone());
            (closed, std::mem::take(&mut closing.listeners))
        };
        let reason = closed.reason();
        log::debug(format_args!("the server {} {reason}", self.server));
        self.pending.break_all(&reason);
        let open = std::mem::take(&mut *lock(&self.open));
        open.into_values().for_each(|withdrawn| withdrawn.cancel());
        for listener in listeners {
            self.guarded(|| listener(reason.clone()));
        }
    }

    /// Runs `listener` with the reason when the connection ends; at once when it has.
    pub fn on_close(&self, listener: CloseListener) {
        let closed = {
            let mut closing = lock(&self.closing);
            match &closing.closed {
                Some(closed) => closed.clone(),
                None => {
                    closing.listeners.push(listener);
                    return;
                }
            }
        };
        listener(closed.reason());
    }
}

/// The error of a server that could not read what it was sent, nor whose answer this is (JSON-RPC 2.0, 5).
fn complaint(text: &[u8]) -> Option<Value> {
    #[derive(serde::Deserialize)]
    struct Complaint {
        id: Option<Value>,
        method: Option<Value>,
        error: Option<Value>,
    }
    let said: Complaint = serde_json::from_slice(text).ok()?;
    let code = said.error.as_ref()?.get("code")?.as_i64()?;
    let unread = said.id.is_none() && said.method.is_none() && matches!(code, PARSE_ERROR | INVALID_REQUEST);
    said.error.filter(|_| unread)
}

/// Whose answer a text seems to be that cannot be read as a message.
fn answer_to(text: &[u8]) -> Option<u64> {
    let has = |word: &str| text.windows(word.len()).any(|part| part == word.as_bytes());
    // What a server prints of its requests is none.
    if !text.trim_ascii_start().starts_with(b"{") || has("\"method\"") {
        return None;
    }
    let mut scan = IdScan::default();
    scan.feed(text);
    scan.id().filter(|_| has("\"result\"") || has("\"error\""))
}

/// `ListRootsResult` of these directories.
pub(super) fn roots(of: &[PathBuf]) -> Value {
    let roots: Vec<Value> = of.iter().map(|path| root(path)).collect();
    json!({ "roots": roots })
}

/// A directory as MCP names a root: a file URI (RFC 8089), and the last part of the path.
fn root(path: &Path) -> Value {
    let mut uri = String::from("file://");
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => uri.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => uri.push(char::from(byte)),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    json!({ "uri": uri, "name": name })
}

#[cfg(test)]
mod tests {
    use super::super::pending::Event;
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    fn peer(hooks: Hooks) -> Arc<Peer> {
        let second = Duration::from_secs(1);
        let streams =
            Streams { retry: second, retry_most: second, resumes: 1, accept: second, silence: second };
        Peer::new("s", Limits { message: 1000, depth: 4, streams }, hooks)
    }

    fn answers(peer: &Arc<Peer>, text: &str) -> Vec<Value> {
        let mut sent = Vec::new();
        peer.take(text.as_bytes(), |line| sent.push(serde_json::from_slice(&line).unwrap()));
        sent
    }

    #[test]
    fn whatever_a_server_asks_is_answered() {
        let roots = Arc::new(|| vec![PathBuf::from("/a b/ü%")]);
        let peer = peer(Hooks { roots, ..Hooks::default() });
        assert_eq!(
            answers(&peer, r#"{"jsonrpc":"2.0","id":"p-1","method":"ping"}"#),
            [json!({"jsonrpc": "2.0", "id": "p-1", "result": {}})]
        );
        let answer = answers(&peer, r#"{"id":2,"method":"roots/list"}"#).remove(0);
        assert_eq!(answer["result"]["roots"][0]["uri"], "file:///a%20b/%C3%BC%25");
        assert_eq!(answer["result"]["roots"][0]["name"], "ü%");
        for method in ["sampling/createMessage", "elicitation/create", "tasks/get", "nonsense"] {
            let answer =
                answers(&peer, &format!(r#"{{"id":3,"method":"{method}","params":{{}}}}"#)).remove(0);
            assert_eq!(answer["error"]["code"], METHOD_NOT_FOUND);
            assert_eq!(answer["id"], 3);
        }
        assert!(answers(&peer, r#"{"method":"notifications/whatever"}"#).is_empty());
    }

    #[test]
    fn noise_is_counted_and_the_first_line_kept() {
        let peer = peer(Hooks::default());
        assert_eq!(peer.noise(), "");
        assert!(answers(&peer, "  \r").is_empty());
        assert_eq!(peer.noise(), "", "an empty line is none");
        answers(&peer, "Server running\x1b[0m on stdio");
        assert!(
            peer.noise()
                .ends_with("is a line that is no MCP message: \"Server running\u{fffd}[0m on stdio\"")
        );
        answers(&peer, "{\"half");
        assert!(peer.noise().contains("are 2 lines"));
    }

    #[test]
    fn progress_goes_to_the_request_it_names() {
        let peer = peer(Hooks::default());
        let waiting = peer.pending.open(true);
        let id = waiting.slot.id;
        let note = |token: Value| {
            json!({"method": "notifications/progress",
                   "params": {"progressToken": token, "progress": 1, "total": 2, "_meta": {}}})
            .to_string()
        };
        answers(&peer, &note(json!(id + 1)));
        answers(&peer, &note(json!("x")));
        answers(&peer, &note(json!(id)));
        let Event::Progress(report) = waiting.slot.wait(None) else { panic!() };
        assert_eq!(report, json!({"progress": 1, "total": 2}));
    }

    #[test]
    fn a_result_that_is_too_deep_ends_its_own_request_only() {
        let peer = peer(Hooks::default());
        let (deep, other) = (peer.pending.open(false), peer.pending.open(false));
        answers(&peer, &format!(r#"{{"id":{},"result":[[[[[]]]]]}}"#, deep.slot.id));
        assert!(matches!(deep.slot.wait(None), Event::Done(Outcome::TooLarge(_))));
        answers(&peer, &format!(r#"{{"id":{},"result":[[[[]]]]}}"#, other.slot.id));
        assert!(matches!(other.slot.wait(None), Event::Done(Outcome::Result(_))));
    }

    #[test]
    fn hooks_run_and_may_panic() {
        let count = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&count);
        let peer = peer(Hooks {
            tools_changed: Arc::new(move || {
                counted.fetch_add(1, Ordering::Relaxed);
                std::panic::resume_unwind(Box::new("quietly"));
            }),
            ..Hooks::default()
        });
        for _ in 0..2 {
            answers(&peer, r#"{"method":"notifications/tools/list_changed"}"#);
        }
        assert_eq!(count.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn closing_tells_everybody_once() {
        let peer = peer(Hooks::default());
        let waiting = peer.pending.open(false);
        let heard = Arc::new(Mutex::new(Vec::new()));
        let listen = || {
            let heard = Arc::clone(&heard);
            Box::new(move |reason| lock(&heard).push(reason))
        };
        peer.on_close(listen());
        peer.close("exited (exit code 1)", "; bye");
        peer.close("was stopped", "");
        peer.on_close(listen());
        assert_eq!(*lock(&heard), ["exited (exit code 1); bye", "exited (exit code 1); bye"]);
        assert!(matches!(waiting.slot.wait(None), Event::Done(Outcome::Broken(r)) if r.ends_with("bye")));
        assert_eq!(peer.closed().unwrap().what, "exited (exit code 1)");
    }
}
