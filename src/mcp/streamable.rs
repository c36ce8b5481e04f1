//! An MCP server at a URL, over streamable HTTP (revisions 2025-03-26 to
//! 2025-11-25): each message is a POST, answered by JSON or by an event stream;
//! a session goes along in headers; a GET stream carries what the server says
//! of itself. Knows nothing of who asks.

use super::cancel::{Cancel, CancelGuard};
use super::era;
use super::error::{Subject, printable, seconds};
use super::http::{self, Ask, Failure, Interrupt, Lease, Reply, Web};
use super::mirror;
use super::oauth::Access;
use super::peer::Peer;
use super::pending::{Event, Outcome, Slot};
use super::sse::{Events, Next};
use crate::error::{Error, Kind, Result};
use crate::log;
use crate::proc::thread;
use crate::util::Env;
use serde_json::{Map, Value};
use std::io::BufRead;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Redirects that one message follows; a sound server needs one, for a slash.
const REDIRECTS: usize = 3;

/// How often one message asks for another token: once for one that has ended, and as often for more scopes.
const GRANTS: usize = 3;

/// How many characters of an answer that is none a message repeats.
const QUOTED: usize = 200;

/// With less than this left there is no time for another attempt.
const TOO_SHORT: Duration = Duration::from_millis(5);

/// Answers that are read to their end only to keep the connection, at the same time.
const DRAINS: usize = 2;

mod listen;
mod older;

pub(super) struct Streamable {
    peer: Arc<Peer>,
    url: String,
    headers: Vec<(String, String)>,
    web: Arc<Web>,
    /// Access that has to be granted; none where the definition has a header for it, or wants none.
    access: Option<Access>,
    session: Mutex<Session>,
    /// Held while a lost session is begun again, so that one caller does it for all.
    renewing: Mutex<()>,
    /// Given when the connection is no longer wanted.
    closing: Cancel,
    drains: AtomicUsize,
    /// Something has answered there, whatever it was.
    reached: AtomicBool,
    /// What refused the greeting may be a server of the older transport.
    older: AtomicBool,
    /// Where messages go, once it is known to be one.
    endpoint: Mutex<Option<String>>,
}

#[derive(Clone, Debug, Default)]
struct Session {
    /// Counts the sessions, to tell whether one was renewed meanwhile.
    number: u64,
    id: Option<String>,
    protocol: Option<String>,
    /// The token of one request; what is kept has none.
    token: Option<String>,
}

impl Session {
    fn is_stateless(&self) -> bool {
        self.protocol.as_deref().is_some_and(era::is_stateless)
    }
}

/// How long a message and its answer may take.
#[derive(Clone, Copy)]
struct Limit {
    /// All of it.
    whole: Option<Duration>,
    /// Without a word.
    silence: Option<Duration>,
}

impl Limit {
    fn of(whole: Option<Duration>) -> Limit {
        Limit { whole, silence: None }
    }
}

/// How far an exchange came.
pub(super) enum Exchange {
    /// It is over.
    Over(Event),
    /// The server does not know the session of this number; it has done nothing.
    SessionLost(u64),
}

/// Hands progress to the caller until `until`, and tells when the request is over.
pub(super) type Tick<'a> = &'a mut dyn FnMut(Instant) -> Option<Event>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn over(outcome: Outcome) -> Result<Exchange> {
    Ok(Exchange::Over(Event::Done(outcome)))
}

impl Streamable {
    /// Prepares to talk to a server; nothing is sent yet.
    pub fn new(
        url: &str,
        headers: &[(String, String)],
        env: &Env,
        ca: &str,
        peer: &Arc<Peer>,
        access: Option<Access>,
    ) -> Result<Arc<Streamable>> {
        let server = &peer.server;
        let web = Web::new(url, env, ca).map_err(|e| {
            let error = Error::new(e.kind(), format!("the server {server}: {}", e.message())).server(server);
            e.hint_text().map_or(error.clone(), |hint| error.hint(hint))
        })?;
        // These are what the protocol is made of.
        let ours =
            ["content-type", "accept", "mcp-session-id", "mcp-protocol-version", "content-length", "host"];
        let headers = headers.iter().filter(|(name, _)| !ours.contains(&name.to_ascii_lowercase().as_str()));
        let http = Arc::new(Streamable {
            peer: Arc::clone(peer),
            url: url.to_owned(),
            headers: headers.cloned().collect(),
            web,
            access,
            session: Mutex::default(),
            renewing: Mutex::default(),
            closing: Cancel::new(),
            drains: AtomicUsize::new(0),
            reached: AtomicBool::new(false),
            older: AtomicBool::new(false),
            endpoint: Mutex::default(),
        });
        let late = Arc::downgrade(&http);
        peer.send_late_through(move |line| {
            if let Some(http) = late.upgrade() {
                http.notify_later(line);
            }
        });
        Ok(http)
    }

    /// Whether anything has answered at the URL.
    pub fn was_reached(&self) -> bool {
        self.reached.load(Ordering::Relaxed)
    }

    /// Whether what refused the greeting may be a server of the older transport.
    pub fn may_be_older(&self) -> bool {
        self.older.load(Ordering::Relaxed) && self.endpoint().is_none()
    }

    /// Whether the server is of the stateless era.
    pub fn is_stateless(&self) -> bool {
        lock(&self.session).is_stateless()
    }

    /// Begins as if nothing had been said yet.
    pub fn forget_session(&self) {
        let mut session = lock(&self.session);
        *session = Session { number: session.number, ..Session::default() };
    }

    /// The negotiated revision, which goes along from now on.
    pub fn set_protocol(&self, protocol: &str) {
        lock(&self.session).protocol = Some(protocol.to_owned());
    }

    /// The token to send along.
    fn token(&self, cancel: &Cancel) -> Option<String> {
        self.access.as_ref()?.bearer(cancel)
    }

    /// What goes along with a request that is made now.
    fn along(&self, cancel: &Cancel) -> Session {
        let session = lock(&self.session).clone();
        Session { token: self.token(cancel), ..session }
    }

    fn headers(&self, session: &Session, accept: &str, last_event: Option<&str>) -> Vec<(String, String)> {
        let mut all = self.headers.clone();
        let mut add = |name: &str, value: &str| all.push((name.to_owned(), value.to_owned()));
        if let Some(token) = &session.token {
            add("Authorization", &format!("Bearer {token}"));
        }
        add("Accept", accept);
        if let Some(id) = &session.id {
            add("Mcp-Session-Id", id);
        }
        if let Some(protocol) = &session.protocol {
            add("MCP-Protocol-Version", protocol);
        }
        if let Some(id) = last_event {
            add("Last-Event-ID", id);
        }
        all
    }

    fn post(
        &self,
        lease: &Lease,
        session: &Session,
        url: &str,
        line: &[u8],
        said: &[(String, String)],
        limit: Limit,
    ) -> Result<Reply, Failure> {
        let mut headers = self.headers(session, "application/json, text/event-stream", None);
        headers.extend_from_slice(said);
        headers.push(("Content-Type".into(), "application/json".into()));
        let (method, body) = ("POST", Some(line.trim_ascii_end()));
        let Limit { whole: timeout, silence } = limit;
        lease.send(&Ask { method, url, headers: &headers, body, timeout, silence, dial: None })
    }

    /// Sends a request and reads until it is answered.
    pub fn exchange(
        self: &Arc<Self>,
        subject: &Subject,
        line: &[u8],
        slot: &Slot,
        deadline: Option<Instant>,
        cancel: &Cancel,
        tick: Tick,
    ) -> Result<Exchange> {
        if let Some(endpoint) = self.endpoint() {
            return self.exchange_older(&endpoint, line, slot, deadline, tick);
        }
        let mut session = self.along(cancel);
        let lease = self.web.lease();
        let _guard = interrupt_on(cancel, lease.interrupter());
        let mut url = self.url.clone();
        let mut said = Vec::new();
        if session.is_stateless() {
            said = mirror::of_request(subject.method, subject.params);
            said.extend_from_slice(subject.mirrored);
        }
        let (mut redirects, mut grants) = (0, 0);
        while redirects <= REDIRECTS {
            let sent = self.post(&lease, &session, &url, line, &said, Limit::of(left(deadline)));
            // Set before anybody can hear of a failure: only a certain "not sent" takes it back.
            slot.sent.store(!matches!(sent, Err(Failure::NotSent(_))), Ordering::Release);
            let mut reply = match sent {
                Ok(reply) => reply,
                Err(failure) => return Ok(Exchange::Over(self.failed(failure, tick))),
            };
            self.reached.store(true, Ordering::Relaxed);
            match reply.status {
                200..=299 => {
                    if subject.method == "initialize" {
                        lock(&self.session).id = reply.header("mcp-session-id").map(str::to_owned);
                    }
                    return self.answered(lease, reply, slot.id, deadline, cancel, tick);
                }
                301 | 302 | 303 | 307 | 308 => {
                    let location = reply.header("location").unwrap_or_default().to_owned();
                    let Some(next) = http::same_origin(&url, &location) else {
                        return Err(self.misplaced(&location));
                    };
                    url = next;
                    redirects += 1;
                    drop(reply);
                }
                status if grants < GRANTS && self.may_be_granted(status, &reply) => {
                    grants += 1;
                    let challenge = reply.header("www-authenticate").map(str::to_owned);
                    drop(reply);
                    // It was refused before anything was done with it.
                    slot.sent.store(false, Ordering::Release);
                    if let Some(access) = &self.access {
                        access.refused(status, challenge.as_deref(), session.token.as_deref(), cancel)?;
                    }
                    session.token = self.token(cancel);
                }
                status => return self.refused(subject, status, &mut reply, &session),
            }
        }
        Err(self.unusable(Kind::Unavailable, format!("redirected more than {REDIRECTS} times")))
    }

    /// Whether what the server refuses could be had with another token (RFC 6750, 3.1).
    fn may_be_granted(&self, status: u16, reply: &Reply) -> bool {
        let header = reply.header("www-authenticate").unwrap_or_default().to_ascii_lowercase();
        self.access.is_some() && (status == 401 || status == 403 && header.contains("insufficient_scope"))
    }

    fn unusable(&self, kind: Kind, what: String) -> Error {
        let server = &self.peer.server;
        Error::new(kind, format!("the server {server} at {} {what}", http::shown(&self.url))).server(server)
    }

    fn misplaced(&self, location: &str) -> Error {
        let location = printable(&http::shown(location), 200);
        self.unusable(Kind::Unavailable, format!("redirects to {location}, which is another origin"))
            .hint("if that is where it lives now, write that URL into the configuration")
    }

    /// No answer at all.
    fn failed(&self, failure: Failure, tick: Tick) -> Event {
        // Whoever interrupted the request has said why.
        if let Some(event) = tick(Instant::now()) {
            return event;
        }
        let shown = http::shown(&self.url);
        Event::Done(Outcome::Broken(match failure {
            Failure::TimedOut => return Event::TimedOut,
            failure => format!("at {shown} {failure}"),
        }))
    }

    /// An answer with an error's status.
    fn refused(
        &self,
        subject: &Subject,
        status: u16,
        reply: &mut Reply,
        session: &Session,
    ) -> Result<Exchange> {
        let retry_after = reply.header("retry-after").map(|after| printable(after, 40));
        let body = reply.read(self.peer.limits.message.min(1 << 20)).ok().flatten().unwrap_or_default();
        let text = String::from_utf8_lossy(&body);
        // One real server answers 400 for a session it does not know.
        let about_session = text.to_ascii_lowercase().contains("session");
        if session.id.is_some() && (status == 404 || status == 400 && about_session) {
            return Ok(Exchange::SessionLost(session.number));
        }
        let object = serde_json::from_slice::<Map<String, Value>>(&body).ok();
        let error = object.and_then(|mut object| object.remove("error"));
        if let Some(error) = error.filter(|e| e.get("code").is_some_and(Value::is_i64)) {
            return over(Outcome::Error(error));
        }
        let said = format!("answered HTTP {}", http::describe(status, &text));
        if subject.method == "initialize" && matches!(status, 400 | 404 | 405 | 406 | 410 | 415) {
            self.older.store(true, Ordering::Relaxed);
        }
        let e = match status {
            401 | 403 => self.unusable(Kind::Refused, said).hint(
                "it wants authorisation: give it a header, such as \"Authorization\", under \"headers\" in its definition",
            ),
            429 | 503 => {
                let e = self.unusable(Kind::Busy, said);
                match retry_after {
                    Some(after) => e.hint(format!("it asks to be left alone for {after} (Retry-After)")),
                    None => e,
                }
            }
            404 | 405 | 406 | 410 | 415 if matches!(subject.method, "initialize" | "server/discover") => self
                .unusable(Kind::Unavailable, said)
                .hint("is this the URL of its MCP endpoint?"),
            // It may have begun to work on it.
            500.. => return over(Outcome::Broken(format!("at {} {said}", http::shown(&self.url)))),
            _ => self.unusable(Kind::Unavailable, said),
        };
        Err(e)
    }

    /// An answer with a good status: JSON, or a stream of events.
    fn answered(
        self: &Arc<Self>,
        lease: Lease,
        mut reply: Reply,
        id: u64,
        deadline: Option<Instant>,
        cancel: &Cancel,
        tick: Tick,
    ) -> Result<Exchange> {
        match reply.media_type().as_str() {
            "text/event-stream" => self.stream(lease, reply, id, deadline, cancel, tick),
            "application/json" => {
                let limit = self.peer.limits.message;
                let body = match reply.read(limit) {
                    Ok(Some(body)) => body,
                    Ok(None) => return over(self.too_large()),
                    Err(e) => return Ok(Exchange::Over(self.cut_off(&e, deadline, tick))),
                };
                self.peer.take_for(Some(id), &body, |line| self.notify(line));
                let event = tick(Instant::now()).unwrap_or_else(|| {
                    let said = printable(String::from_utf8_lossy(&body).trim(), QUOTED);
                    Event::Done(Outcome::Broken(format!(
                        "answered with JSON that holds no answer: \"{said}\""
                    )))
                });
                Ok(Exchange::Over(event))
            }
            other => {
                let other = if other.is_empty() { "nothing" } else { other };
                over(Outcome::Broken(format!(
                    "at {} answered with {} instead of JSON or an event stream",
                    http::shown(&self.url),
                    printable(other, 60)
                )))
            }
        }
    }

    fn too_large(&self) -> Outcome {
        Outcome::TooLarge(format!("has more than {} bytes (mcp.maxMessage)", self.peer.limits.message))
    }

    /// The body ended before the answer was there.
    fn cut_off(&self, e: &dyn std::fmt::Display, deadline: Option<Instant>, tick: Tick) -> Event {
        if let Some(event) = tick(Instant::now()) {
            return event;
        }
        // ureq's clock and ours may differ by a little.
        if left(deadline).is_some_and(|left| left < TOO_SHORT) {
            return Event::TimedOut;
        }
        Event::Done(Outcome::Broken(format!(
            "at {} broke the connection before its answer was complete: {e}",
            http::shown(&self.url)
        )))
    }

    /// Reads the events of an answer. A stream that ends too early is taken up
    /// again after its last event, if that had an id: this asks for the rest of
    /// an answer, and sends no request a second time.
    fn stream(
        self: &Arc<Self>,
        mut lease: Lease,
        reply: Reply,
        id: u64,
        deadline: Option<Instant>,
        cancel: &Cancel,
        tick: Tick,
    ) -> Result<Exchange> {
        let limit = self.peer.limits.message;
        let streams = self.peer.limits.streams;
        let (mut last_event, mut retry, mut resumed) = (None, streams.retry, 0);
        let mut events = Events::new(reply.body, limit);
        let mut guard = None;
        loop {
            let end = loop {
                match events.next() {
                    Ok(Next::Event(event)) => {
                        resumed = 0;
                        last_event = event.id.or(last_event);
                        retry = event.retry.unwrap_or(retry).min(streams.retry_most);
                        self.peer.take_for(Some(id), &event.data, |line| self.notify(line));
                        if let Some(event) = tick(Instant::now()) {
                            drop(guard);
                            self.drain(lease, events.into_inner());
                            return Ok(Exchange::Over(event));
                        }
                    }
                    Ok(Next::TooLarge) => return over(self.too_large()),
                    Ok(Next::End) => break "the stream ended".to_owned(),
                    Err(e) => break e.to_string(),
                }
            };
            let out_of_time = left(deadline).is_some_and(|left| left < retry);
            // In the stateless era there is nothing to be taken up again.
            let lost = last_event.is_none() || self.is_stateless();
            if lost || resumed == streams.resumes || out_of_time {
                return Ok(Exchange::Over(self.cut_off(&end, deadline, tick)));
            }
            resumed += 1;
            log::debug(format_args!("{}: {end}; resuming in {}", self.peer.server, seconds(retry)));
            drop(events);
            if let Some(event) = tick(Instant::now() + retry) {
                return Ok(Exchange::Over(event));
            }
            lease = self.web.lease();
            guard.replace(interrupt_on(cancel, lease.interrupter()));
            let reply = match self.get(&lease, last_event.as_deref(), left(deadline), None) {
                Ok(reply) => reply,
                Err(failure) => return Ok(Exchange::Over(self.failed(failure, tick))),
            };
            if reply.status != 200 || reply.media_type() != "text/event-stream" {
                let status = reply.status;
                let end = format!("{end}, and it answered HTTP {status} when asked for the rest");
                return Ok(Exchange::Over(self.cut_off(&end, deadline, tick)));
            }
            events = Events::new(reply.body, limit);
        }
    }

    fn get(
        &self,
        lease: &Lease,
        last_event: Option<&str>,
        timeout: Option<Duration>,
        silence: Option<Duration>,
    ) -> Result<Reply, Failure> {
        let session = self.along(&self.closing);
        let headers = self.headers(&session, "text/event-stream", last_event);
        lease.send(&Ask {
            method: "GET",
            url: &self.url,
            headers: &headers,
            body: None,
            timeout,
            silence,
            dial: None,
        })
    }

    /// Reads the little that follows an answer, so that its connection can
    /// serve again. Nobody waits for that.
    fn drain(self: &Arc<Self>, lease: Lease, mut rest: impl BufRead + Send + 'static) {
        if self.drains.fetch_add(1, Ordering::Relaxed) >= DRAINS {
            self.drains.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let http = Arc::clone(self);
        let drained = thread::spawn(&format!("end {}", self.peer.server), move || {
            while let Ok(part) = rest.fill_buf() {
                let n = part.len();
                if n == 0 {
                    break;
                }
                rest.consume(n);
            }
            drop(rest);
            drop(lease);
            http.drains.fetch_sub(1, Ordering::Relaxed);
        });
        if drained.is_err() {
            self.drains.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Begins a session anew with `begin`, unless somebody has done so since `lost`.
    pub fn renew(&self, lost: u64, begin: impl FnOnce() -> Result<()>) -> Result<()> {
        let _one_at_a_time = lock(&self.renewing);
        {
            let mut session = lock(&self.session);
            if session.number != lost {
                return Ok(());
            }
            *session = Session { number: lost + 1, ..Session::default() };
        }
        log::info(format_args!("the server {} has lost its session; beginning another", self.peer.server));
        begin()
    }

    /// Sends a notification or an answer, and does not care what comes of it.
    pub fn notify(&self, line: Vec<u8>) {
        let url = self.endpoint().unwrap_or_else(|| self.url.clone());
        let session = self.along(&self.closing);
        let lease = self.web.lease();
        let limit = Limit::of(Some(self.peer.limits.streams.accept));
        match self.post(&lease, &session, &url, &line, &[], limit) {
            Ok(mut reply) => drop(reply.read(64 * 1024)),
            Err(failure) => {
                log::debug(format_args!("{}: a notification failed: {failure:?}", self.peer.server))
            }
        }
    }

    /// The same, on another thread.
    pub fn notify_later(self: &Arc<Self>, line: Vec<u8>) {
        let http = Arc::clone(self);
        let _ = thread::spawn(&format!("tell {}", self.peer.server), move || http.notify(line));
    }

    /// Ends everything that is under way, without a word to the server.
    pub fn abandon(&self) {
        self.closing.cancel();
        self.web.interrupt_all();
    }

    /// Ends everything, and the session with it; the server gets `patience` to hear of that.
    pub fn stop(&self, patience: Duration) {
        self.abandon();
        let session = self.along(&Cancel::new());
        if session.id.is_none() || patience.is_zero() {
            return;
        }
        let headers = self.headers(&session, "application/json, text/event-stream", None);
        let (url, timeout) = (self.url.as_str(), Some(patience));
        let ask =
            Ask { method: "DELETE", url, headers: &headers, body: None, timeout, silence: None, dial: None };
        // 405: the server keeps its sessions as long as it likes.
        if let Err(failure) = self.web.lease().send(&ask) {
            log::debug(format_args!("{}: ending the session failed: {failure:?}", self.peer.server));
        }
    }
}

fn left(deadline: Option<Instant>) -> Option<Duration> {
    deadline.map(|d| d.saturating_duration_since(Instant::now()))
}

fn interrupt_on(cancel: &Cancel, interrupt: Interrupt) -> CancelGuard {
    cancel.on_cancel(move || interrupt.interrupt())
}
