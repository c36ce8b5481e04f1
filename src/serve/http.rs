//! mcpx as an MCP server over streamable HTTP, at `/mcp` of the daemon: sessions
//! for the revisions that have them, none for the stateless one. Knows nothing
//! of listeners, tokens or hosts.

use super::address::Wanted;
use super::backend::{self, Asked, Backend, Out, nowhere};
use super::era;
use super::fault::Fault;
use super::headers::{self, VERSION};
use super::hearing::Hearing;
use super::members::Members;
use super::session::{Incoming, Reply, Request, Session};
use super::streams::{self, First, Stream, Streams};
use super::upstreams::Upstreams;
use crate::api::http::{Chunked, Method};
use crate::api::ops::{Id, Operation};
use crate::daemon::mcp_endpoint::{Desk, Endpoint, HttpRequest, Response, Seat};
use crate::error::Result;
use crate::pool::Cancel;
use crate::proc::thread;
use crate::settings;
use crate::util;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The header of a session.
const SESSION: &str = "mcp-session-id";
/// The media type of a stream.
const EVENTS: &str = "text/event-stream";
/// So many bytes of randomness make a session's id: whoever knows it is in the session.
const ID_BYTES: usize = 16;

/// Who serves `/mcp` in the daemon.
pub fn endpoint() -> Arc<dyn Endpoint> {
    Arc::new(Hosts::default())
}

/// All hosts.
#[derive(Default)]
struct Hosts {
    sessions: Mutex<HashMap<String, Arc<Hosted>>>,
    /// Those who want to hear news.
    hearing: Arc<Hearing>,
    upstreams: Arc<Upstreams>,
}

/// A session and its seat.
struct Hosted {
    session: Arc<Session>,
    seat: Arc<Seat>,
    /// So many bytes of a stream are kept for a host that lost its connection.
    room: u64,
    /// Streams that can be taken up again, and how many there have been.
    streams: Streams,
    serial: AtomicU64,
    /// What belongs to no request.
    general: Arc<Stream>,
}

/// The name of the stream of what belongs to no request.
const GENERAL: &str = "g";

impl Hosted {
    fn new(session: Arc<Session>, seat: Arc<Seat>, room: u64) -> Hosted {
        let general = Stream::unread(Some(GENERAL.to_owned()), room);
        Hosted { session, seat, room, streams: Streams::default(), serial: AtomicU64::new(1), general }
    }

    /// A stream for a request. Only a host that has a session can come back to one.
    fn stream(&self) -> Arc<Stream> {
        let name = self.session.host().revision.map(|_| self.serial.fetch_add(1, Ordering::Relaxed));
        Stream::new(name.map(|n| n.to_string()), self.room)
    }

    /// Keeps a stream for a host that has a session.
    fn keep(&self, stream: &Arc<Stream>) {
        if self.session.host().revision.is_some() {
            self.streams.add(stream.clone());
        }
    }

    /// Ends the session, and the stream of what belongs to no request.
    fn end(&self) {
        self.session.end();
        self.general.finish(Reply { line: None, status: 202 });
    }
}

/// The daemon, asked from a seat.
struct AtSeat {
    seat: Arc<Seat>,
    hearing: Arc<Hearing>,
    /// It has no session but for one request, whose task then is anybody's who knows its id.
    passing: bool,
}

impl Backend for AtSeat {
    fn perform(&self, op: &'static Operation, params: &RawValue, asked: &Asked<'_>) -> Result<Box<RawValue>> {
        // A program works with the very servers that the conversation's other calls do.
        let within = match (op.id, Members::read(params.get())) {
            (Id::Exec, Some(mut given)) => {
                given.supply("session", &self.seat.session());
                Some(backend::params(&given)?)
            }
            _ => None,
        };
        let params = within.as_deref().unwrap_or(params);
        self.seat.perform(op, params, asked.cancel, asked.progress.clone())
    }

    fn session(&self) -> Option<String> {
        Some(self.seat.session().to_owned())
    }

    fn binding(&self) -> String {
        if self.passing { String::new() } else { self.seat.session().to_owned() }
    }

    fn catch_up(&self) {
        self.hearing.catch_up();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Endpoint for Hosts {
    fn answer(&self, desk: &Desk<'_>, request: &HttpRequest<'_>, query: &str) -> Response {
        match request.method {
            Method::Post => self.post(desk, request.body, query),
            Method::Get => self.stream(desk),
            Method::Delete => self.delete(desk),
            _ => {
                let mut response = refuse(405, &Fault::request("/mcp takes POST, GET and DELETE"));
                response.headers.push_str("Allow: GET, POST, DELETE\r\n");
                response
            }
        }
    }
}

/// A response that is a JSON-RPC message.
fn message(status: u16, line: Vec<u8>) -> Response {
    Response::json(status, line)
}

fn refuse(status: u16, fault: &Fault) -> Response {
    message(status, fault.answer(None))
}

/// A response without a body.
fn empty(status: u16) -> Response {
    Response { media: None, ..Response::json(status, Vec::new()) }
}

impl Hosts {
    /// A session at a seat of its own.
    fn seated(&self, desk: &Desk<'_>, query: &str, lasting: bool) -> Result<Hosted> {
        let wanted = Wanted::read(desk, query)?;
        let passing = !lasting && wanted.session.is_none();
        let seat = Arc::new(desk.seat(wanted.session, wanted.selection)?);
        let backend = Arc::new(AtSeat { seat: seat.clone(), hearing: self.hearing.clone(), passing });
        // Plain names mean what they do among the servers of one session only.
        let upstreams = if wanted.options.plain { Arc::default() } else { self.upstreams.clone() };
        let session = Arc::new(Session::new(wanted.options, backend, upstreams));
        Ok(Hosted::new(session, seat, desk.settings().get(&settings::SERVE_HISTORY)))
    }

    /// The session that a request names.
    fn of(&self, desk: &Desk<'_>) -> std::result::Result<(String, Arc<Hosted>), Box<Response>> {
        let Some(id) = desk.headers().get(SESSION) else {
            let fault = Fault::request("the header Mcp-Session-Id is missing: begin with initialize");
            return Err(Box::new(refuse(400, &fault)));
        };
        let hosted = lock(&self.sessions).get(id).cloned();
        let hosted = hosted.filter(|hosted| desk.may_use(&hosted.seat));
        if let Some(hosted) = hosted.filter(|hosted| hosted.seat.is_open()) {
            return Ok((id.to_owned(), hosted));
        }
        lock(&self.sessions).retain(|_, hosted| hosted.seat.is_open_still());
        Err(Box::new(refuse(
            404,
            &Fault::request("there is no such session, or no longer: begin with initialize"),
        )))
    }

    fn post(&self, desk: &Desk<'_>, body: &[u8], query: &str) -> Response {
        if let Some(media) = desk.headers().get("content-type") {
            let essence = media.split(';').next().unwrap_or_default().trim();
            if !essence.eq_ignore_ascii_case("application/json") {
                return refuse(415, &Fault::request("the body is to be application/json"));
            }
        }
        let version = desk.headers().get(VERSION);
        // Read as by a host of which nothing is known: what a session permits is looked at afterwards.
        let first = peek(body);
        let stateless = version.is_some_and(|v| era::STATELESS.contains(&v))
            || first.as_ref().is_some_and(|r| {
                r.method == "server/discover"
                    || era::claimed(era::meta(r.params.as_deref()).as_ref()).is_some()
            });
        match first {
            Some(request) if stateless => self.stateless(desk, request, query),
            None if stateless => self.stateless_other(desk, body, query),
            Some(request) if request.method == "initialize" => self.begin(desk, &request, query),
            _ => self.in_session(desk, body, version),
        }
    }

    /// One request that brings everything along.
    fn stateless(&self, desk: &Desk<'_>, mut request: Request, query: &str) -> Response {
        if let Err(fault) = headers::check(desk.headers(), &request) {
            return message(fault.status(), fault.answer(Some(&request.id)));
        }
        let hosted = match self.seated(desk, query, false) {
            Ok(hosted) => hosted,
            Err(error) => return message(400, Fault::of(&error).answer(Some(&request.id))),
        };
        request.mirrored = Some(headers::mirrored(desk.headers()));
        // Only what may say something before its answer needs to hear of anything.
        let meta = era::meta(request.params.as_deref());
        if request.method == "subscriptions/listen" || era::wants_log(meta.as_ref()) {
            self.hearing.add(desk, &hosted.session);
        }
        let cancel = desk.cancel().clone();
        // Whoever asked ends it by leaving, and the daemon by stopping.
        let (stopped, session) = (cancel.clone(), Arc::downgrade(&hosted.session));
        let guard = hosted.seat.on_end(move || match session.upgrade() {
            Some(session) => session.end(),
            None => stopped.cancel(),
        });
        let seat = hosted.seat.clone();
        carry_out(desk, &hosted, request, cancel, move |_| {
            drop(guard);
            seat.leave();
        })
    }

    /// What is no request: a notification, or no message at all.
    fn stateless_other(&self, desk: &Desk<'_>, body: &[u8], query: &str) -> Response {
        match self.seated(desk, query, false) {
            Ok(hosted) => {
                let bad = hosted.session.read(body).into_iter().find_map(|incoming| match incoming {
                    Incoming::Bad(line) => Some(line),
                    _ => None,
                });
                hosted.seat.leave();
                bad.map_or_else(|| empty(202), |line| message(400, line))
            }
            Err(error) => refuse(400, &Fault::of(&error)),
        }
    }

    /// `initialize`: begins a session.
    fn begin(&self, desk: &Desk<'_>, request: &Request, query: &str) -> Response {
        let hosted = match self.seated(desk, query, true) {
            Ok(hosted) => Arc::new(hosted),
            Err(error) => return message(400, Fault::of(&error).answer(Some(&request.id))),
        };
        let reply = hosted.session.answer(request, desk.cancel(), &nowhere());
        let begun = hosted.session.host().revision.is_some();
        let id = match util::random_hex(ID_BYTES) {
            Ok(id) if begun => id,
            _ => {
                hosted.seat.leave();
                return message(reply.status, reply.line.unwrap_or_default());
            }
        };
        hosted.session.ears.set_general(Some(hosted.general.clone()));
        self.hearing.add(desk, &hosted.session);
        let mut sessions = lock(&self.sessions);
        sessions.retain(|_, hosted| hosted.seat.is_open_still());
        sessions.insert(id.clone(), hosted);
        drop(sessions);
        let mut response = message(200, reply.line.unwrap_or_default());
        response.headers.push_str(&format!("Mcp-Session-Id: {id}\r\n"));
        response
    }

    /// Anything else of a host that has a session.
    fn in_session(&self, desk: &Desk<'_>, body: &[u8], version: Option<&str>) -> Response {
        if let Some(version) = version.filter(|v| !era::HANDSHAKE.contains(v)) {
            return refuse(400, &era::unsupported(version));
        }
        // What is no JSON is that for everybody.
        if desk.headers().get(SESSION).is_none()
            && let Err(e) = serde_json::from_slice::<serde::de::IgnoredAny>(body)
        {
            return refuse(400, &Fault::not_json(format!("the message is not JSON: {e}")));
        }
        let (_, hosted) = match self.of(desk) {
            Ok(found) => found,
            Err(response) => return *response,
        };
        let session = &hosted.session;
        let mut requests = Vec::new();
        for incoming in session.read(body) {
            match incoming {
                Incoming::Request(request) => requests.push(request),
                Incoming::Notification { method, params } => session.notice(&method, params.as_deref()),
                Incoming::Bad(line) => return message(400, line),
            }
        }
        // Only the revision with batches has more than one.
        match requests.len() {
            0 => empty(202),
            1 => self.one(desk, &hosted, requests.remove(0)),
            _ => many(&hosted, requests),
        }
    }

    fn one(&self, desk: &Desk<'_>, hosted: &Arc<Hosted>, request: Request) -> Response {
        // A disconnect is no cancellation in this era; a notification is.
        let cancel = match hosted.session.enter(&request) {
            Ok(flight) => flight.keep(),
            Err(fault) => return message(200, fault.answer(Some(&request.id))),
        };
        let (inside, id) = (hosted.clone(), request.id.clone());
        carry_out(desk, hosted, request, cancel, move |_| inside.session.left(&id))
    }

    /// The stream of what belongs to no request.
    fn stream(&self, desk: &Desk<'_>) -> Response {
        if !desk.headers().all("accept").any(|a| a.contains(EVENTS) || a.contains("*/*")) {
            let mut response =
                refuse(405, &Fault::request("GET /mcp is for a stream: Accept: text/event-stream"));
            response.headers.push_str("Allow: POST, DELETE\r\n");
            return response;
        }
        let (_, hosted) = match self.of(desk) {
            Ok(found) => found,
            Err(response) => return *response,
        };
        let heartbeat = desk.settings().get(&settings::EVENTS_HEARTBEAT);
        let last = desk.headers().get("last-event-id").and_then(streams::parse);
        let (stream, after) = match last {
            Some((name, n)) if name != GENERAL => match hosted.streams.find(name) {
                Some(stream) => (stream, n),
                None => {
                    let what = "what came after that event is not kept any more (serve.history)";
                    return refuse(400, &Fault::request(what));
                }
            },
            // What came before a host listened for the first time is still news to it.
            _ if !hosted.general.was_read() => (hosted.general.clone(), 0),
            last => (hosted.general.clone(), last.map_or_else(|| hosted.general.last(), |(_, n)| n)),
        };
        let cancel = desk.cancel().clone();
        events(move |out| {
            let ended = hosted.clone();
            let _guard = hosted.seat.on_end(move || ended.end());
            out.send(b": here\n\n")?;
            // A second one takes over from the first, which ends.
            stream.pour(out, after, heartbeat, || !cancel.is_cancelled() && hosted.seat.is_open())
        })
    }

    fn delete(&self, desk: &Desk<'_>) -> Response {
        match self.of(desk) {
            Ok((id, hosted)) => {
                lock(&self.sessions).remove(&id);
                hosted.end();
                hosted.seat.leave();
                empty(204)
            }
            Err(response) => *response,
        }
    }
}

/// The answers to a batch, one event each.
fn many(hosted: &Arc<Hosted>, requests: Vec<Request>) -> Response {
    let session = hosted.session.clone();
    Response::stream(
        EVENTS,
        Box::new(move |out: &mut Chunked<'_>| {
            for request in requests {
                let line = match session.enter(&request) {
                    Ok(flight) => session.answer(&request, &flight.cancel, &nowhere()).line,
                    Err(fault) => Some(fault.answer(Some(&request.id))),
                };
                if let Some(line) = line {
                    out.send(&Stream::unread(None, 0).event(0, &line))?;
                }
            }
            Ok(())
        }),
    )
}

/// A stream is never kept by others.
const NO_CACHE: &str = "Cache-Control: no-cache, no-transform\r\nX-Accel-Buffering: no\r\n";

/// The request in a body, when it is one alone.
fn peek(body: &[u8]) -> Option<Request> {
    let mut found = None;
    let mut count = 0;
    let whole = crate::mcp::jsonrpc::read(body, |m| {
        count += 1;
        if let crate::mcp::jsonrpc::Message::Request { id, method, params } = m {
            found = Some(Request {
                id: id.to_owned(),
                method: method.into_owned(),
                params: params.map(ToOwned::to_owned),
                mirrored: None,
            });
        }
    });
    let named = |r: &Request| matches!(r.id.get().as_bytes().first(), Some(b'"' | b'-' | b'0'..=b'9'));
    let batch = body.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'[');
    found.filter(|r| whole && count == 1 && !batch && named(r))
}

/// Carries out one request: the answer comes as JSON, unless something comes before it or it takes
/// its time, and then as a stream. `done` is called when it is over.
fn carry_out(
    desk: &Desk<'_>,
    hosted: &Hosted,
    request: Request,
    cancel: Cancel,
    done: impl FnOnce(&Reply) + Send + 'static,
) -> Response {
    let (session, stream) = (hosted.session.clone(), hosted.stream());
    let heartbeat = desk.settings().get(&settings::EVENTS_HEARTBEAT);
    let id = request.id.clone();
    let left = cancel.clone();
    let broken = Fault::internal("answering broke off: a bug in mcpx").answer(Some(&id));
    let unfinished = Unfinished(stream.clone(), Some(Reply { line: Some(broken), status: 500 }));
    let out: Out = stream.clone();
    let work = move || {
        let reply = session.answer(&request, &cancel, &out);
        done(&reply);
        unfinished.0.finish(reply);
    };
    if let Err(e) = thread::spawn("mcp", work) {
        return message(503, Fault::internal(format!("starting a thread: {e}")).answer(Some(&id)));
    }
    match stream.first(heartbeat) {
        First::Reply(reply) => match reply.line {
            Some(line) => message(reply.status, line),
            None => empty(reply.status),
        },
        First::Stream => {
            hosted.keep(&stream);
            // An id to come back with; hosts before this revision may not know an event without data.
            let greets = stream.last() == 0 && hosted.session.host().revision == Some(era::HANDSHAKE[0]);
            events(move |out| {
                if greets {
                    out.send(&stream.greeting())?;
                }
                stream.pour(out, 0, heartbeat, || !left.is_cancelled())
            })
        }
    }
}

/// Finishes a stream whatever becomes of the work.
struct Unfinished(Arc<Stream>, Option<Reply>);

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(reply) = self.1.take() {
            self.0.finish(reply);
        }
    }
}

/// A response that is a stream of events.
fn events(pour: impl FnOnce(&mut Chunked<'_>) -> io::Result<()> + Send + 'static) -> Response {
    let mut response = Response::stream(EVENTS, Box::new(pour));
    response.headers.push_str(NO_CACHE);
    response
}
