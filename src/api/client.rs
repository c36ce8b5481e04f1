//! The blocking client: one connection to a daemon's unix socket, asked one
//! thing at a time. Knows nothing of how a daemon is found or started.

use super::http::{self, Fault, Limits, Method, Reader, Sink};
use super::ops;
use super::uri;
use super::wire::{CallRequest, DaemonInfo, OpenRun, OpenedRun, SETTINGS_HEADER};
use crate::error::{Error, Kind, Result};
use crate::proc;
use crate::settings::Carried;
use serde::de::DeserializeOwned;
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

/// A connection to a daemon. May be shared; requests wait for one another.
pub struct Client {
    link: Mutex<Link>,
    info: DaemonInfo,
    interrupted: Arc<AtomicBool>,
}

/// How the daemon is reached. A daemon over TCP will be a second kind.
struct Link {
    reader: Reader<UnixStream>,
    /// Why the connection can no longer be used.
    broken: bool,
    timeout: Option<Duration>,
    /// Header lines that go with every request, each ended by CR LF.
    headers: String,
}

/// A successful answer.
#[derive(Debug)]
pub struct Reply {
    /// The HTTP status, below 400.
    pub status: u16,
    /// The body, JSON.
    pub body: Vec<u8>,
}

/// Ends a client's request from another thread or a signal's receiver.
pub struct Interrupter {
    stream: UnixStream,
    interrupted: Arc<AtomicBool>,
}

impl Interrupter {
    /// Closes the connection: the request in progress ends with kind
    /// [`Kind::Cancelled`], and the daemon cancels what it was doing for it.
    pub fn interrupt(&self) {
        self.interrupted.store(true, Ordering::SeqCst);
        let _ = self.stream.shutdown(Shutdown::Both);
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
    pub(super) fn over(stream: UnixStream, info: DaemonInfo) -> Client {
        let link = Link { reader: Reader::new(stream), broken: false, timeout: None, headers: String::new() };
        Client { link: Mutex::new(link), info, interrupted: Arc::new(AtomicBool::new(false)) }
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
        let other = Client::connect(self.info.clone())?;
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
        let link = self.link();
        let stream = link.reader.source().try_clone().map_err(|e| {
            Error::new(Kind::Unavailable, format!("duplicating the connection to the daemon: {e}"))
        })?;
        Ok(Interrupter { stream, interrupted: self.interrupted.clone() })
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
            let _ = link.reader.source().shutdown(Shutdown::Both);
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
    /// it. When the connection breaks after the call was sent the error is [`Kind::OutcomeUnknown`].
    pub fn call(&self, call: &CallRequest) -> Result<Box<RawValue>> {
        let body = to_json(call)?;
        let reply = self.exchange(Method::Post, "/v1/call", Some(&body), Kind::OutcomeUnknown)?;
        drop(body);
        unwrap_result(reply.body)
    }

    /// Opens a run that lasts as long as this client.
    pub fn open_run(&self, run: &OpenRun) -> Result<OpenedRun> {
        let reply = self.exchange(Method::Post, "/v1/runs", Some(&to_json(run)?), Kind::Unavailable)?;
        from_json(&reply.body)
    }

    /// A new connection that is a channel of the run: frames, both ways. The
    /// descriptor may be handed to a child.
    pub fn channel(&self, run: &str) -> Result<OwnedFd> {
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
    fn exchange(&self, method: Method, target: &str, body: Option<&[u8]>, broken: Kind) -> Result<Reply> {
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
        let begun = Instant::now();
        let headers = std::mem::take(&mut link.headers);
        let sent = http::write_request(link.reader.source_mut(), method, target, &headers, body);
        link.headers = headers;
        if let Err(e) = &sent
            && !matches!(e.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
        {
            return Err(self.broke(Kind::Unavailable, &e.to_string()));
        }
        // A daemon that refuses a connection says why before it closes it.
        let limits = Limits { idle: timeout, ..Limits::PATIENT };
        let read = match sink {
            Some(sink) => link.reader.stream(&limits, sink),
            None => link.reader.response(&limits),
        };
        let response = match (read, sent) {
            (Ok(response), _) => response,
            (Err(_), Err(e)) => return Err(self.broke(Kind::Unavailable, &e.to_string())),
            (Err(Fault::Closed), Ok(())) if timeout.is_some_and(|t| begun.elapsed() >= t) => {
                let pid = self.info.pid;
                return Err(Error::new(
                    Kind::Timeout,
                    format!("the daemon did not answer within {:?}", timeout.unwrap_or_default()),
                )
                .hint(format!("process {pid} may be stopped or stuck; kill it if it does not recover")));
            }
            (Err(fault), Ok(())) => return Err(self.broke(broken, &fault_text(&fault))),
        };
        link.broken = !response.keep_alive;
        if response.status >= 400 || response.body.starts_with(b"{\"error\":") {
            return Err(reported(response.status, &response.body));
        }
        Ok(Reply { status: response.status, body: response.body })
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

fn fault_text(fault: &Fault) -> String {
    match fault {
        Fault::Closed => "it was closed".into(),
        Fault::Bad(_, what) => (*what).into(),
        Fault::Io(e) => e.to_string(),
    }
}

/// The error in a body, or one made of the status.
fn reported(status: u16, body: &[u8]) -> Error {
    let parsed: Option<Value> = serde_json::from_slice(body).ok();
    match parsed.as_ref().and_then(|v| v.get("error")) {
        Some(error) => Error::from_json(error),
        None => {
            Error::new(Kind::Unavailable, format!("the daemon answered {status} {}", http::reason(status)))
        }
    }
}

fn to_json(value: &impl serde::Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|e| Error::new(Kind::Internal, format!("writing a request: {e}")))
}

fn from_json<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    serde_json::from_slice(body)
        .map_err(|e| Error::new(Kind::Unavailable, format!("reading the daemon's answer: {e}")))
}

/// Takes `{"result":…}` apart without copying a large result.
fn unwrap_result(mut body: Vec<u8>) -> Result<Box<RawValue>> {
    const OPEN: &[u8] = b"{\"result\":";
    if body.starts_with(OPEN) && body.ends_with(b"}") {
        body.truncate(body.len() - 1);
        body.drain(..OPEN.len());
        // The inner text is checked as one value: `1},{"x":2` is none.
        if let Ok(text) = String::from_utf8(body)
            && let Ok(result) = RawValue::from_string(text)
        {
            return Ok(result);
        }
        return Err(Error::new(Kind::Unavailable, "reading the daemon's answer: its result is not JSON"));
    }
    #[derive(serde::Deserialize)]
    struct Called {
        result: Box<RawValue>,
    }
    from_json::<Called>(&body).map(|c| c.result)
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

    #[test]
    fn a_result_that_is_not_one_value_is_refused() {
        assert_eq!(unwrap_result(b"{\"result\":{}}".to_vec()).unwrap().get(), "{}");
        assert_eq!(unwrap_result(b" { \"result\" : 1 }".to_vec()).unwrap().get(), "1");
        for bad in [&b"{\"result\":}"[..], b"{\"result\":1},{\"x\":2}", b"{\"result\":1", b"", b"{}"] {
            assert!(unwrap_result(bad.to_vec()).is_err(), "{:?}", String::from_utf8_lossy(bad));
        }
    }
}
