//! A daemon at an HTTP address, perhaps on another machine: one request at a
//! time, and a watch over those that take long. Knows nothing of what is asked.

use super::http::{Method, Sink};
use crate::error::{Error, Kind, Result};
use crate::mcp::http::{Ask, Failure, Interrupt, Lease, Web};
use crate::proc;
use crate::settings::Secret;
use crate::util::Env;
use std::io::{self, BufRead};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

/// How often the other side is asked whether it is there still, while an answer is
/// awaited or a run is open. Nothing else would tell of a machine that went away.
const PULSE: Duration = Duration::from_secs(15);
/// How long the answer to that may take.
const ECHO: Duration = Duration::from_secs(5);
/// So many pulses in a row may fail.
const MISSED: usize = 2;

/// How a daemon at an HTTP address is reached.
pub struct Remote {
    web: Arc<Web>,
    lease: Lease,
    /// `https://host:port`, without a slash at its end.
    base: String,
    token: Secret,
    dial: Duration,
}

/// How an endpoint is to be reached.
pub struct Access<'a> {
    /// `http://host:port` or `https://host:port`.
    pub endpoint: &'a str,
    /// What every request carries; may be empty.
    pub token: Secret,
    /// The variables that name a proxy and authorities.
    pub env: &'a Env,
    /// The file of authorities to trust instead, or empty.
    pub ca: &'a str,
    /// How long a connection may take.
    pub dial: Duration,
}

/// Ends what it watches for, or with which it was begun, when dropped.
pub struct Watch {
    /// The other side was found gone.
    gone: Arc<AtomicBool>,
    _end: Sender<()>,
}

impl Watch {
    /// Whether the other side was found gone.
    pub fn found_gone(&self) -> bool {
        self.gone.load(Ordering::SeqCst)
    }
}

impl Remote {
    /// A way to an endpoint. Nothing is sent before it is asked something.
    ///
    /// # Errors
    /// `Config` when it is no such address, or the authorities cannot be read.
    pub fn new(access: Access<'_>) -> Result<Remote> {
        let endpoint = access.endpoint;
        let wrong = |what: &str| {
            Error::new(Kind::Config, format!("daemon.endpoint is \"{}\": {what}", shown(endpoint)))
                .hint("it is http://host:port, https://host:port or unix:///path")
        };
        let authority = endpoint.split_once("://").map(|(_, rest)| rest).unwrap_or_default();
        if authority.contains('@') {
            return Err(wrong("it holds a user's name").hint("the token goes into transport.bearerToken"));
        }
        if authority.is_empty() || authority.contains(['?', '#', ' ']) {
            return Err(wrong("that is no address of a daemon"));
        }
        let web = Web::new(endpoint, access.env, access.ca).map_err(|e| match access.ca.is_empty() {
            true => wrong("that is no address of a daemon"),
            false => e,
        })?;
        Ok(Remote::over(web, endpoint.trim_end_matches('/').to_owned(), access.token, access.dial))
    }

    fn over(web: Arc<Web>, base: String, token: Secret, dial: Duration) -> Remote {
        Remote { lease: web.lease(), web, base, token, dial }
    }

    /// A second way to the same daemon, for asking at the same time.
    pub fn another(&self) -> Remote {
        self.with_token(self.token.clone())
    }

    /// A second way, with another token.
    pub fn with_token(&self, token: Secret) -> Remote {
        Remote::over(self.web.clone(), self.base.clone(), token, self.dial)
    }

    /// Where the daemon is.
    pub fn endpoint(&self) -> &str {
        &self.base
    }

    /// What ends the request that is under way.
    pub fn interrupter(&self) -> Interrupt {
        self.lease.interrupter()
    }

    /// One request and its answer: the status, and the whole body. `headers` are
    /// lines that end in CR LF. A body whose length is not known goes to `sink`, if
    /// there is one, as it comes; an error of the sink ends the reading.
    pub fn ask(
        &self,
        method: Method,
        target: &str,
        headers: &str,
        body: Option<&[u8]>,
        timeout: Option<Duration>,
        sink: Option<Sink<'_>>,
    ) -> std::result::Result<(u16, Vec<u8>), Failure> {
        let mut all = vec![("Content-Type".to_owned(), "application/json".to_owned())];
        if !self.token.is_empty() {
            all.push(("Authorization".to_owned(), format!("Bearer {}", self.token.reveal())));
        }
        let lines = headers.lines().filter_map(|line| line.split_once(": "));
        all.extend(lines.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let url = format!("{}{target}", self.base);
        let (dial, method) = (Some(self.dial), method.word());
        // A body is announced by its length; where none is due an empty one would be odd.
        let body = body.or((method == "POST").then_some(&[][..]));
        let mut reply =
            self.lease.send(&Ask { method, url: &url, headers: &all, body, timeout, silence: None, dial })?;
        if let Some(sink) = sink.filter(|_| reply.status < 400 && reply.header("content-length").is_none()) {
            return pieces(&mut reply.body, sink).map(|()| (reply.status, Vec::new()));
        }
        match reply.read(usize::MAX) {
            Ok(body) => Ok((reply.status, body.unwrap_or_default())),
            Err(e) if super::http::is_timeout(&e) => Err(Failure::TimedOut),
            Err(e) => Err(Failure::Broken(e.to_string())),
        }
    }

    /// Looks, every now and then, whether the daemon is there; `gone` is called once it is not.
    pub fn watch(&self, gone: impl FnOnce() + Send + 'static) -> Option<Watch> {
        let (end, ended) = mpsc::channel::<()>();
        let found = Arc::new(AtomicBool::new(false));
        let (other, told) = (self.another(), found.clone());
        let spawned = proc::thread::spawn("pulse", move || {
            let mut missed = 0;
            while ended.recv_timeout(PULSE) == Err(RecvTimeoutError::Timeout) {
                match other.ask(Method::Get, "/v1/health", "", None, Some(ECHO), None) {
                    Ok(_) => missed = 0,
                    Err(_) => missed += 1,
                }
                if missed >= MISSED {
                    told.store(true, Ordering::SeqCst);
                    return gone();
                }
            }
        });
        // Without the thread only a machine that vanishes goes unnoticed.
        spawned.ok().map(|_| Watch { gone: found, _end: end })
    }
}

/// Hands a body over as it comes.
fn pieces(body: &mut impl BufRead, sink: Sink<'_>) -> std::result::Result<(), Failure> {
    let broken = |e: io::Error| Failure::Broken(e.to_string());
    loop {
        let part = match body.fill_buf() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            part => part.map_err(broken)?,
        };
        if part.is_empty() {
            return Ok(());
        }
        let n = part.len();
        sink(part).map_err(broken)?;
        body.consume(n);
    }
}

/// An address without what may be secret in it.
fn shown(endpoint: &str) -> String {
    match (endpoint.split_once("://"), endpoint.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://…@{host}"),
        _ => endpoint.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(endpoint: &str) -> Result<Remote> {
        let env = Env::from_pairs::<&str, &str>([]);
        let token = Secret::default();
        Remote::new(Access { endpoint, token, env: &env, ca: "", dial: Duration::from_secs(1) })
    }

    #[test]
    fn an_address_is_checked_before_it_is_used() {
        assert_eq!(access("http://127.0.0.1:1/").unwrap().endpoint(), "http://127.0.0.1:1");
        assert!(access("https://[::1]:4/prefix").is_ok());
        for wrong in ["127.0.0.1:1", "ftp://h:1", "http://", "http://h:1?x=1", "http://h:1 "] {
            let error = access(wrong).err().unwrap();
            assert!(error.kind() == Kind::Config && error.message().contains("daemon.endpoint"), "{error}");
        }
        let error = access("http://me:secret@h:1").err().unwrap();
        assert!(!error.message().contains("secret") && error.message().contains("h:1"), "{error}");
    }

    #[test]
    fn nobody_there_is_told_from_an_answer_that_did_not_come() {
        use std::io::Read;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let remote = access(&endpoint).unwrap();
        let peer = proc::thread::spawn("peer", move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
        })
        .unwrap();
        let broken = remote.ask(Method::Post, "/v1/call", "", Some(b"{}"), None, None);
        assert!(matches!(broken, Err(Failure::Broken(_))), "{broken:?}");
        peer.join().unwrap();
        let refused = remote.ask(Method::Post, "/v1/call", "", Some(b"{}"), None, None);
        assert!(matches!(refused, Err(Failure::NotSent(_))), "{refused:?}");
    }
}
