//! The blocking client: one connection to a daemon, over its unix socket or
//! HTTP, asked one thing at a time. Knows nothing of how a daemon is found or started.

use super::bridge;
use super::http::{self, Fault, Limits, Method, Reader, Sink};
use super::ops;
use super::remote::{Remote, Watch};
use super::reply::{Reply, Reports, called, from_json, lacks_route, reported};
use super::uri;
use super::wire::{CallRequest, DaemonInfo, OpenRun, OpenedRun, SETTINGS_HEADER};
use crate::error::{Error, Kind, Result};
use crate::mcp::http::{Failure, Interrupt};
use crate::proc;
use crate::settings::{Carried, Secret};
use serde_json::Value;
use serde_json::value::RawValue;
use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long an answer that waits for no server may take to begin. A daemon
/// answers such a thing within milliseconds; one that does not is stuck, or stopped.
const QUICK: Duration = Duration::from_secs(20);
/// How long the word that a run is over may take: whoever says it is about to leave.
const FAREWELL: Duration = Duration::from_secs(2);

/// A connection to a daemon. May be shared; requests wait for one another.
pub struct Client {
    link: Mutex<Link>,
    info: DaemonInfo,
    interrupted: Arc<AtomicBool>,
    /// The connection broke before the daemon had a whole request.
    unsent: AtomicBool,
    /// The daemon was started for it.
    started: AtomicBool,
    /// The runs that were opened over HTTP, where no connection ends them.
    runs: Mutex<Vec<FarRun>>,
}

struct Link {
    wire: Wire,
    /// Why the connection can no longer be used.
    broken: bool,
    timeout: Option<Duration>,
    /// Header lines that go with every request, each ended by CR LF.
    headers: String,
}

/// How the daemon is reached.
enum Wire {
    Socket(Reader<UnixStream>),
    Http(Remote),
}

/// A run at a daemon that sees no connection of ours; told now and then that it goes on.
struct FarRun {
    id: String,
    token: Secret,
    _pulse: Option<Watch>,
}

/// A status, a body, and whether the connection can serve again.
type Answered = (u16, Vec<u8>, bool);

/// Ends a client's request from another thread or a signal's receiver.
pub struct Interrupter {
    wire: Ending,
    interrupted: Arc<AtomicBool>,
}

enum Ending {
    Socket(UnixStream),
    Http(Interrupt),
}

impl Interrupter {
    /// Closes the connection: the request in progress ends with kind
    /// [`Kind::Cancelled`], and the daemon cancels what it was doing for it.
    pub fn interrupt(&self) {
        self.interrupted.store(true, Ordering::SeqCst);
        match &self.wire {
            Ending::Socket(stream) => drop(stream.shutdown(Shutdown::Both)),
            Ending::Http(request) => request.clone().interrupt(),
        }
    }
}

/// Connects to a unix socket of this user.
pub(super) fn dial(socket: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(socket)?;
    // The socket's mode keeps others from us; this keeps us from others.
    if proc::peer_uid(&stream)? != proc::uid() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the socket is served by another user"));
    }
    Ok(stream)
}

impl Client {
    /// Over a connection that is there.
    pub fn over(stream: UnixStream, info: DaemonInfo) -> Client {
        Client::of(Wire::Socket(Reader::new(stream)), info)
    }

    /// A daemon at an HTTP address. Nothing is sent before it is asked something.
    pub fn remote(remote: Remote) -> Client {
        let info = DaemonInfo { schema: 1, endpoint: remote.endpoint().to_owned(), ..Default::default() };
        Client::of(Wire::Http(remote), info)
    }

    fn of(wire: Wire, info: DaemonInfo) -> Client {
        Client {
            link: Mutex::new(Link { wire, broken: false, timeout: None, headers: String::new() }),
            info,
            interrupted: Arc::new(AtomicBool::new(false)),
            unsent: AtomicBool::new(false),
            started: AtomicBool::new(false),
            runs: Mutex::default(),
        }
    }

    /// Connects to a daemon whose info file is known.
    pub fn connect(info: DaemonInfo) -> Result<Client> {
        match dial(&info.socket) {
            Ok(stream) => Ok(Client::over(stream, info)),
            Err(e) => Err(Error::new(
                Kind::Unavailable,
                format!("connecting to the daemon at {}: {e}", info.socket.display()),
            )),
        }
    }

    /// A second connection to the same daemon, for asking at the same time.
    pub fn another(&self) -> Result<Client> {
        let remote = match &self.link().wire {
            Wire::Http(remote) => Some(remote.another()),
            Wire::Socket(_) => None,
        };
        let other = remote.map_or_else(|| Client::connect(self.info.clone()), |r| Ok(Client::remote(r)))?;
        other.link().headers = self.link().headers.clone();
        Ok(other)
    }

    /// Has these settings of the caller's travel with every request from now on.
    pub fn carry(&self, carried: &Carried) {
        let line = carried.text().map(|text| format!("{SETTINGS_HEADER}: {text}\r\n"));
        self.link().headers = line.unwrap_or_default();
    }

    fn link(&self) -> std::sync::MutexGuard<'_, Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It is reached over HTTP: it may see other files and other processes than we do.
    pub fn is_remote(&self) -> bool {
        matches!(self.link().wire, Wire::Http(_))
    }

    /// Notes that the daemon was started for this client.
    pub(super) fn was_started(&self) {
        self.started.store(true, Ordering::Relaxed);
    }

    /// The daemon was started for this client, as it was asked to be.
    pub fn is_first(&self) -> bool {
        self.started.load(Ordering::Relaxed)
    }

    /// The connection broke before the daemon had a whole request of ours, so that
    /// nothing came of it: asking another connection is no repetition.
    pub fn lost_unsent(&self) -> bool {
        self.unsent.load(Ordering::SeqCst)
    }

    /// What the daemon's info file said; only `socket` is known of a daemon that was named by its socket.
    pub fn info(&self) -> &DaemonInfo {
        &self.info
    }

    /// Bounds how long an answer may take to begin. Without it what waits for no server has
    /// 20 seconds, and what does has no limit but those that the daemon keeps.
    pub fn set_timeout(&self, timeout: Option<Duration>) {
        self.link().timeout = timeout;
    }

    /// A handle that ends this client's requests, for Ctrl-C.
    pub fn shutdown_handle(&self) -> Result<Interrupter> {
        let wire = match &self.link().wire {
            Wire::Http(remote) => Ending::Http(remote.interrupter()),
            Wire::Socket(reader) => Ending::Socket(reader.source().try_clone().map_err(|e| {
                Error::new(Kind::Unavailable, format!("duplicating the connection to the daemon: {e}"))
            })?),
        };
        Ok(Interrupter { wire, interrupted: self.interrupted.clone() })
    }

    /// Asks and waits for the answer. `method` is an upper-case word, `path` a
    /// path with its query, `body` JSON. An error that the daemon reports is an `Err`.
    pub fn request(&self, method: &str, path: &str, body: Option<&[u8]>) -> Result<Reply> {
        let method = Method::from_word(method)
            .ok_or_else(|| Error::new(Kind::Internal, format!("{method} is not a method")))?;
        self.exchange(method, path, body, Kind::Unavailable)
    }

    /// Asks for something that comes in pieces: each goes to `sink` as it arrives. An answer that
    /// comes at once is returned instead, as by [`Client::request`]; else the reply's body is empty.
    /// When the sink fails the connection is closed, and so the daemon stops.
    pub fn stream(&self, method: &str, path: &str, body: Option<&[u8]>, sink: Sink<'_>) -> Result<Reply> {
        let method = Method::from_word(method)
            .ok_or_else(|| Error::new(Kind::Internal, format!("{method} is not a method")))?;
        let mut link = self.link();
        let outcome = self.exchange_on(&mut link, method, path, body, Kind::Unavailable, Some(sink));
        if outcome.is_err() && link.broken {
            match &link.wire {
                Wire::Socket(reader) => drop(reader.source().shutdown(Shutdown::Both)),
                Wire::Http(remote) => remote.interrupter().interrupt(),
            }
        }
        outcome
    }

    /// The same with JSON values.
    pub fn json(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        let text = body.map(to_json).transpose()?;
        let reply = self.request(method, path, text.as_deref())?;
        from_json(&reply.body)
    }

    /// Calls a tool; the answer is the tool's result exactly as its server sent
    /// it. When the server asks something the error is [`Kind::InputRequired`], with what
    /// it asks as `raw`, and the call goes on as a task. When the connection breaks after the call was sent the error is
    /// [`Kind::OutcomeUnknown`].
    pub fn call(&self, call: &CallRequest) -> Result<Box<RawValue>> {
        self.call_telling(call, None)
    }

    /// The same. What the server reports of its progress goes to `report`: MCP's `{progress, total?, message?}`.
    pub fn call_telling(
        &self,
        call: &CallRequest,
        report: Option<&mut dyn FnMut(&Value)>,
    ) -> Result<Box<RawValue>> {
        let body = to_json(call)?;
        let mut link = self.link();
        let before = link.headers.len();
        link.headers.push_str("X-Mcpx-Input: report\r\n");
        let (target, broken) = ("/v1/call", Kind::OutcomeUnknown);
        let reply = match report {
            None => self.exchange_on(&mut link, Method::Post, target, Some(&body), broken, None),
            Some(report) => {
                link.headers.push_str("X-Mcpx-Progress: report\r\n");
                let mut reports = Reports::to(report);
                let mut sink = |chunk: &[u8]| {
                    reports.take(chunk);
                    Ok(())
                };
                let reply =
                    self.exchange_on(&mut link, Method::Post, target, Some(&body), broken, Some(&mut sink));
                reply.and_then(|reply| reports.finish(reply))
            }
        };
        link.headers.truncate(before);
        drop((body, link));
        called(reply?)
    }

    /// The result of a call that went on as a task, once it is there; errors as those of [`Client::call`].
    pub fn task_result(&self, task: &str) -> Result<Box<RawValue>> {
        let target = format!("/v1/tasks/{}/result", uri::encode(task, false));
        called(self.exchange(Method::Get, &target, None, Kind::Unavailable)?)
    }

    /// Opens a run that lasts as long as this client.
    pub fn open_run(&self, run: &OpenRun) -> Result<OpenedRun> {
        let reply = self.exchange(Method::Post, "/v1/runs", Some(&to_json(run)?), Kind::Unavailable)?;
        let opened: OpenedRun = from_json(&reply.body)?;
        if let Wire::Http(remote) = &self.link().wire {
            // With the run's own token: that it is used is what keeps the run.
            let token = Secret::new(&*opened.token);
            let pulse = remote.with_token(token.clone()).watch(|| {});
            self.far_runs().push(FarRun { id: opened.run.clone(), token, _pulse: pulse });
        }
        Ok(opened)
    }

    fn far_runs(&self) -> std::sync::MutexGuard<'_, Vec<FarRun>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new connection that is a channel of the run: frames, both ways. The
    /// descriptor may be handed to a child.
    pub fn channel(&self, run: &str) -> Result<OwnedFd> {
        if let Some(far) = self.far_runs().iter().find(|far| far.id == run)
            && let Wire::Http(remote) = &self.link().wire
        {
            return bridge::open(remote.with_token(far.token.clone()));
        }
        let fail =
            |what: String| Error::new(Kind::Unavailable, format!("opening a channel to the daemon: {what}"));
        let stream = dial(&self.info.socket).map_err(|e| fail(e.to_string()))?;
        let mut reader = Reader::new(stream);
        let target = format!("/v1/channel?run={}", uri::encode(run, false));
        let headers = format!("Connection: Upgrade\r\nUpgrade: mcpx-channel\r\n{}", self.link().headers);
        http::write_request(reader.source_mut(), Method::Get, &target, &headers, None)
            .map_err(|e| fail(e.to_string()))?;
        let response = reader.response(&Limits::PATIENT).map_err(|f| fail(fault_text(&f)))?;
        if response.status != 101 {
            return Err(reported(response.status, &response.body));
        }
        match reader.into_parts() {
            // The daemon speaks on a channel only when spoken to.
            (stream, ahead) if ahead.is_empty() => Ok(stream.into()),
            _ => Err(fail("the daemon spoke out of turn".into())),
        }
    }

    /// One request and its response; `broken` is what it means when the
    /// connection breaks after the request was sent.
    pub(super) fn exchange(
        &self,
        method: Method,
        target: &str,
        body: Option<&[u8]>,
        broken: Kind,
    ) -> Result<Reply> {
        self.exchange_on(&mut self.link(), method, target, body, broken, None)
    }

    fn exchange_on(
        &self,
        link: &mut Link,
        method: Method,
        target: &str,
        body: Option<&[u8]>,
        broken: Kind,
        sink: Option<Sink<'_>>,
    ) -> Result<Reply> {
        if link.broken {
            return Err(self.broke(Kind::Unavailable, "it is closed"));
        }
        link.broken = true;
        let waits = ops::route(method, uri::split(target).0).is_ok_and(|(op, _)| op.waits);
        let timeout = link.timeout.or((!waits).then_some(QUICK));
        let headers = std::mem::take(&mut link.headers);
        let outcome = match &mut link.wire {
            Wire::Socket(reader) => {
                let limits = Limits { idle: timeout, ..Limits::PATIENT };
                self.over_socket(reader, (method, target, &headers, body), &limits, broken, sink)
            }
            Wire::Http(remote) => {
                let timeout = (timeout, waits);
                self.over_http(remote, (method, target, &headers, body), timeout, broken, sink)
            }
        };
        link.headers = headers;
        let (status, body, keep) = outcome?;
        link.broken = !keep;
        if status >= 400 || body.starts_with(b"{\"error\":") {
            let error = reported(status, &body);
            let known = ops::route(method, uri::split(target).0).is_ok();
            if let 404 | 405 = status
                && known
                && lacks_route(&error)
            {
                return Err(self.too_old(uri::split(target).0));
            }
            return Err(match (status, &link.wire) {
                (401, Wire::Http(remote)) => error.hint(format!(
                    "set MCPX_TRANSPORT_BEARER_TOKEN (transport.bearerToken) to the token of the daemon at {}",
                    remote.endpoint()
                )),
                _ => error,
            });
        }
        Ok(Reply { status, body })
    }

    /// The same over the socket.
    fn over_socket(
        &self,
        reader: &mut Reader<UnixStream>,
        (method, target, headers, body): Request<'_>,
        limits: &Limits,
        broken: Kind,
        sink: Option<Sink<'_>>,
    ) -> Result<Answered> {
        let begun = Instant::now();
        let sent = http::write_request(reader.source_mut(), method, target, headers, body);
        if let Err(e) = &sent
            && !matches!(e.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
        {
            return Err(self.broke(Kind::Unavailable, &e.to_string()));
        }
        // A daemon that refuses a connection says why before it closes it.
        let read = match sink {
            Some(sink) => reader.stream(limits, sink),
            None => reader.response(limits),
        };
        match (read, sent) {
            (Ok(response), _) => Ok((response.status, response.body, response.keep_alive)),
            (Err(_), Err(e)) => {
                self.unsent.store(true, Ordering::SeqCst);
                Err(self.broke(Kind::Unavailable, &e.to_string()))
            }
            (Err(Fault::Closed), Ok(())) if limits.idle.is_some_and(|t| begun.elapsed() >= t) => {
                let pid = self.info.pid;
                Err(too_slow(limits.idle)
                    .hint(format!("process {pid} may be stopped or stuck; kill it if it does not recover")))
            }
            (Err(fault), Ok(())) if unread(&fault) => {
                self.unsent.store(true, Ordering::SeqCst);
                Err(self.broke(Kind::Unavailable, "it was closed before the request was read"))
            }
            (Err(fault), Ok(())) => Err(self.broke(broken, &fault_text(&fault))),
        }
    }

    /// The same over HTTP, to a daemon that may be on another machine.
    fn over_http(
        &self,
        remote: &Remote,
        (method, target, headers, body): Request<'_>,
        (timeout, waits): (Option<Duration>, bool),
        broken: Kind,
        sink: Option<Sink<'_>>,
    ) -> Result<Answered> {
        let interrupt = remote.interrupter();
        // Where no time-out ends the wait, a machine that vanished must.
        let watch =
            (waits && timeout.is_none()).then(|| remote.watch(move || interrupt.interrupt())).flatten();
        let at = remote.endpoint();
        match remote.ask(method, target, headers, body, timeout, sink) {
            Ok((status, body)) => Ok((status, body, true)),
            Err(Failure::NotSent(what)) => {
                self.unsent.store(true, Ordering::SeqCst);
                let error = self.broke(Kind::Unavailable, &what);
                let hint =
                    "daemon.endpoint names it, so no other is tried; unset it to use this directory's own";
                Err(match error.kind() {
                    Kind::Cancelled => error,
                    _ => Error::new(Kind::Unavailable, format!("reaching the daemon at {at}: {what}"))
                        .hint(hint),
                })
            }
            Err(Failure::TimedOut) => Err(too_slow(timeout).hint(format!("is the one at {at} overloaded?"))),
            Err(Failure::Broken(what)) => {
                let gone = watch.is_some_and(|w| w.found_gone());
                let what = if gone { "nothing answers there any more" } else { what.as_str() };
                Err(self.broke(broken, &format!("{what} ({at})")))
            }
        }
    }

    /// The error of a daemon that does not know what this mcpx asks for.
    fn too_old(&self, path: &str) -> Error {
        let theirs = match self.info.version.as_str() {
            "" => "another version".to_owned(),
            version => format!("version {version}"),
        };
        let ours = env!("CARGO_PKG_VERSION");
        Error::new(
            Kind::Unavailable,
            format!("the daemon does not know {path}: it is {theirs}, this mcpx is version {ours}"),
        )
        .hint("`mcpx restart --daemon` replaces it by one of this version")
    }

    fn broke(&self, kind: Kind, what: &str) -> Error {
        if self.interrupted.load(Ordering::SeqCst) {
            return Error::new(Kind::Cancelled, "interrupted");
        }
        let error = Error::new(kind, format!("the connection to the daemon broke: {what}"));
        match kind {
            Kind::OutcomeUnknown => {
                error.hint("the call was sent and may have taken effect; it was not sent again")
            }
            _ => error,
        }
    }
}

impl Client {
    /// Closes the runs that it has opened at a far daemon, which sees no connection end. Dropping it
    /// does the same; this is for who cannot know that it drops the last one before the process ends.
    pub fn leave(&self) {
        let runs = std::mem::take(&mut *self.far_runs());
        let Wire::Http(remote) = &self.link().wire else { return };
        for run in &runs {
            // Not on the connection that may have been interrupted. Should it not arrive, the run ends by its silence.
            let target = format!("/v1/runs/{}", uri::encode(&run.id, false));
            let _ = remote.another().ask(Method::Delete, &target, "", None, Some(FAREWELL), None);
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Method, target, header lines, body.
type Request<'a> = (Method, &'a str, &'a str, Option<&'a [u8]>);

fn too_slow(timeout: Option<Duration>) -> Error {
    let limit = timeout.unwrap_or_default();
    Error::new(Kind::Timeout, format!("the daemon did not answer within {limit:?}"))
}

/// Whether the daemon closed the connection with bytes of the request still unread, so that it
/// cannot have acted on it: Linux says so by a reset, and an orderly end otherwise (unix(7)).
fn unread(fault: &Fault) -> bool {
    cfg!(target_os = "linux") && matches!(fault, Fault::Io(e) if e.kind() == io::ErrorKind::ConnectionReset)
}

fn fault_text(fault: &Fault) -> String {
    match fault {
        Fault::Closed => "it was closed".into(),
        Fault::Bad(_, what) => (*what).into(),
        Fault::Io(e) => e.to_string(),
    }
}

fn to_json(value: &impl serde::Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|e| Error::new(Kind::Internal, format!("writing a request: {e}")))
}

#[cfg(test)]
mod tests {
    use super::super::http::Head;
    use super::*;
    use std::io::Write;
    use std::sync::mpsc;

    fn pair() -> (Client, Reader<UnixStream>) {
        let (near, far) = UnixStream::pair().unwrap();
        (Client::over(near, DaemonInfo::default()), Reader::new(far))
    }

    fn wire(status: u16, body: &str) -> Vec<u8> {
        let mut out = Vec::new();
        http::write_response(&mut out, Head::json(status, status < 500), &[body.as_bytes()]).unwrap();
        out
    }

    /// Waits for one request in another thread, and answers with these bytes.
    fn answer(mut far: Reader<UnixStream>, wire: Vec<u8>) -> mpsc::Receiver<Reader<UnixStream>> {
        let (send, receive) = mpsc::channel();
        proc::thread::spawn("peer", move || {
            far.request(&Limits::PATIENT, |_| Ok(())).unwrap();
            far.source_mut().write_all(&wire).unwrap();
            send.send(far).unwrap();
        })
        .unwrap();
        receive
    }

    #[test]
    fn a_result_is_unwrapped_and_a_reported_error_is_an_error() {
        let call = CallRequest {
            server: "s".into(),
            tool: "t".into(),
            arguments: None,
            context: Default::default(),
            timeout_ms: None,
            input: None,
            meta: None,
            task: None,
        };
        let (client, far) = pair();
        let peer = answer(far, wire(200, r#"{"result":{"a": 1.0}}"#));
        assert_eq!(client.call(&call).unwrap().get(), "{\"a\": 1.0}");
        let peer =
            answer(peer.recv().unwrap(), wire(404, r#"{"error":{"kind":"not-found","message":"no"}}"#));
        let error = client.call(&call).unwrap_err();
        assert_eq!((error.kind(), error.message()), (Kind::NotFound, "no"));
        // An error that travels with status 200, as a tool's own does.
        let peer =
            answer(peer.recv().unwrap(), wire(200, r#"{"error":{"kind":"tool","message":"it said no"}}"#));
        assert_eq!(client.call(&call).unwrap_err().kind(), Kind::Tool);
        // The connection breaks after sending: unknown for a call, and then closed.
        let half = wire(200, r#"{"result":{}}"#);
        let peer = answer(peer.recv().unwrap(), half[..half.len() - 3].to_vec());
        let leaving = proc::thread::spawn("leaving", move || drop(peer.recv().unwrap())).unwrap();
        assert_eq!(client.call(&call).unwrap_err().kind(), Kind::OutcomeUnknown);
        assert_eq!(client.call(&call).unwrap_err().kind(), Kind::Unavailable);
        leaving.join().unwrap();
    }

    #[test]
    fn a_refusal_is_read_even_when_the_request_was_not() {
        let (client, mut far) = pair();
        far.source_mut().write_all(&wire(503, r#"{"error":{"kind":"busy","message":"full"}}"#)).unwrap();
        drop(far);
        let error = client.request("GET", "/v1/health", None).unwrap_err();
        assert_eq!((error.kind(), error.message()), (Kind::Busy, "full"));
        let (client, far) = pair();
        drop(far);
        assert_eq!(client.request("GET", "/v1/health", None).unwrap_err().kind(), Kind::Unavailable);
    }

    #[test]
    fn an_interrupted_request_is_cancelled() {
        let (client, mut far) = pair();
        let handle = client.shutdown_handle().unwrap();
        let peer = proc::thread::spawn("peer", move || {
            far.request(&Limits::PATIENT, |_| Ok(())).unwrap();
            handle.interrupt();
            assert!(matches!(far.request(&Limits::PATIENT, |_| Ok(())), Err(Fault::Closed)));
        })
        .unwrap();
        assert_eq!(client.request("GET", "/v1/status", None).unwrap_err().kind(), Kind::Cancelled);
        peer.join().unwrap();
    }

    #[test]
    fn an_answer_that_does_not_come_is_a_timeout() {
        let (client, _far) = pair();
        client.set_timeout(Some(Duration::from_millis(20)));
        assert_eq!(client.request("GET", "/v1/status", None).unwrap_err().kind(), Kind::Timeout);
    }
}
