//! HTTP for MCP servers, on ureq: connections that are kept and can be
//! interrupted one by one, certificates, proxies. Knows nothing of MCP.

use super::error::printable;
use crate::error::{Error, Kind, Result};
use crate::log;
use crate::util::Env;
use std::fmt;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use ureq::config::Config;
use ureq::http::{Request, Uri};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, BodyReader, Proxy};

/// Connections that are kept for the next requests.
const KEPT: usize = 8;

/// Where systems keep the certificates that they trust; the first that exists counts.
const TRUST: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// How a request went wrong before it had an answer.
#[derive(Debug)]
pub enum Failure {
    /// Nothing of it can have reached the server.
    NotSent(String),
    /// It may have.
    Broken(String),
    /// The time was over; it may have.
    TimedOut,
}

impl fmt::Display for Failure {
    /// Continues "the server x at its URL".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::NotSent(why) => write!(f, "cannot be reached: {why}"),
            Failure::Broken(why) => write!(f, "broke the connection: {why}"),
            Failure::TimedOut => f.write_str("did not answer in time"),
        }
    }
}

/// One request.
pub struct Ask<'a> {
    /// The method, in upper case.
    pub method: &'static str,
    /// The whole URL.
    pub url: &'a str,
    /// Names and values.
    pub headers: &'a [(String, String)],
    /// The body, if there is one.
    pub body: Option<&'a [u8]>,
    /// For all of it, the body of the answer included.
    pub timeout: Option<Duration>,
    /// For each wait within it.
    pub silence: Option<Duration>,
    /// For the connection to be made.
    pub dial: Option<Duration>,
}

/// The answer: status and headers, and a body still to be read.
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    headers: ureq::http::HeaderMap,
    /// What follows the head.
    pub body: BufReader<BodyReader<'static>>,
}

impl Reply {
    /// The value of the first header of that name, when it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The media type, lower case and without parameters; empty when there is none.
    pub fn media_type(&self) -> String {
        let whole = self.header("content-type").unwrap_or_default();
        whole.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }

    /// The whole body; `None` when it is over `limit` bytes.
    pub fn read(&mut self, limit: usize) -> io::Result<Option<Vec<u8>>> {
        let mut all = Vec::new();
        loop {
            let part = match self.body.fill_buf() {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                part => part?,
            };
            if part.is_empty() {
                return Ok(Some(all));
            }
            if all.len() + part.len() > limit {
                return Ok(None);
            }
            all.extend_from_slice(part);
            let n = part.len();
            self.body.consume(n);
        }
    }
}

/// Makes requests. Each one that is under way has an agent of its own, because
/// an agent is what ureq can interrupt.
pub struct Web {
    config: Config,
    idle: Mutex<Vec<Agent>>,
    busy: Mutex<Vec<Interrupt>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Web {
    /// For requests to the host of `url`, with the proxy of the environment, and
    /// trusting the authorities in the file `ca` (`transport.caFile`) where it is
    /// not empty, else those of the environment or the system.
    ///
    /// # Errors
    /// `Config` when that is no URL of HTTP, or the file holds no certificate.
    pub fn new(url: &str, env: &Env, ca: &str) -> Result<Arc<Web>> {
        let invalid = || Error::new(Kind::Config, format!("the URL is not valid: {}", shown(url)));
        let url: Uri = url.parse().map_err(|_| invalid())?;
        let secure = match url.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(invalid()),
        };
        let mut builder = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("mcpx/", env!("CARGO_PKG_VERSION")))
            .max_idle_connections(1)
            .max_idle_connections_per_host(1)
            .proxy(proxy(&url, env));
        let roots = match secure {
            true if !ca.is_empty() => Some(named_roots(ca)?),
            true => roots(env),
            false => None,
        };
        if let Some(roots) = roots {
            let roots = RootCerts::Specific(Arc::new(roots));
            builder = builder.tls_config(TlsConfig::builder().root_certs(roots).build());
        }
        Ok(Arc::new(Web { config: builder.build(), idle: Mutex::default(), busy: Mutex::default() }))
    }

    /// A connection for one request, kept from an earlier one if there is any.
    pub fn lease(self: &Arc<Self>) -> Lease {
        let agent = lock(&self.idle).pop().unwrap_or_else(|| Agent::new_with_config(self.config.clone()));
        let interrupt = Interrupt { agent, used: Arc::new(AtomicBool::new(false)) };
        lock(&self.busy).push(interrupt.clone());
        Lease { web: Arc::clone(self), interrupt }
    }

    /// Ends every request that is under way.
    pub fn interrupt_all(&self) {
        let all = std::mem::take(&mut *lock(&self.busy));
        for one in all {
            one.interrupt();
        }
    }
}

/// Ends one request, from any thread.
#[derive(Clone)]
pub struct Interrupt {
    agent: Agent,
    used: Arc<AtomicBool>,
}

impl Interrupt {
    /// The request that is under way ends with an error.
    pub fn interrupt(self) {
        self.used.store(true, Ordering::Release);
        self.agent.shutdown();
    }
}

/// The right to make one request at a time. Read the answer's body to its end,
/// or drop it, before dropping this.
pub struct Lease {
    web: Arc<Web>,
    interrupt: Interrupt,
}

impl Lease {
    /// What ends the requests of this lease.
    pub fn interrupter(&self) -> Interrupt {
        self.interrupt.clone()
    }

    /// Sends a request and waits for the head of the answer. Follows no redirect, repeats nothing.
    pub fn send(&self, ask: &Ask) -> std::result::Result<Reply, Failure> {
        let mut builder = Request::builder().method(ask.method).uri(ask.url);
        for (name, value) in ask.headers {
            builder = builder.header(name, value);
        }
        let unfit = |e: ureq::http::Error| Failure::NotSent(format!("a header or the URL is invalid: {e}"));
        let agent = &self.interrupt.agent;
        let (timeout, silence, dial) = (ask.timeout, ask.silence, ask.dial);
        // Zero would mean none to ureq.
        if timeout.is_some_and(|t| t.is_zero()) {
            return Err(Failure::NotSent("the time was over before it could be sent".into()));
        }
        let answer = match ask.body {
            Some(body) => {
                let request = builder.body(body).map_err(unfit)?;
                let configured = agent.configure_request(request);
                agent.run(
                    configured
                        .timeout_global(timeout)
                        .timeout_per_read(silence)
                        .timeout_connect(dial)
                        .build(),
                )
            }
            None => {
                let request = builder.body(()).map_err(unfit)?;
                let configured = agent.configure_request(request);
                agent.run(
                    configured
                        .timeout_global(timeout)
                        .timeout_per_read(silence)
                        .timeout_connect(dial)
                        .build(),
                )
            }
        };
        let (head, body) = answer.map_err(failure)?.into_parts();
        // Our own limits are counted where the body is read.
        let reader = body.into_with_config().limit(u64::MAX).reader();
        Ok(Reply {
            status: head.status.as_u16(),
            headers: head.headers,
            body: BufReader::with_capacity(16 * 1024, reader),
        })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        lock(&self.web.busy).retain(|other| !Arc::ptr_eq(&other.used, &self.interrupt.used));
        let mut idle = lock(&self.web.idle);
        if !self.interrupt.used.load(Ordering::Acquire) && idle.len() < KEPT {
            idle.push(self.interrupt.agent.clone());
        }
    }
}

fn failure(e: ureq::Error) -> Failure {
    use io::ErrorKind as K;
    use ureq::{Error as E, Timeout as T};
    // rustls comes wrapped in more than one way, and says this in the handshake only.
    let text = e.to_string();
    if let Some((_, why)) = text.split_once("invalid peer certificate: ") {
        return Failure::NotSent(format!(
            "its certificate is not trusted: {why} (transport.caFile, SSL_CERT_FILE or NODE_EXTRA_CA_CERTS may name a file of authorities)"
        ));
    }
    match e {
        E::Timeout(T::Resolve | T::Connect) => Failure::NotSent("the connection was not made in time".into()),
        E::Timeout(_) => Failure::TimedOut,
        E::HostNotFound => Failure::NotSent("its host name is not known".into()),
        E::BadUri(_) | E::InvalidProxyUrl | E::ConnectionFailed | E::ConnectProxyFailed(_) | E::Tls(_) => {
            Failure::NotSent(e.to_string())
        }
        E::Io(e) => match e.kind() {
            K::ConnectionRefused
            | K::HostUnreachable
            | K::NetworkUnreachable
            | K::NetworkDown
            | K::AddrNotAvailable => Failure::NotSent(e.to_string()),
            _ => Failure::Broken(e.to_string()),
        },
        e => Failure::Broken(e.to_string()),
    }
}

/// The proxy for this URL: `https_proxy` or `http_proxy` by its scheme, else
/// `all_proxy`, in either case; none for this machine and for what `no_proxy` lists.
fn proxy(url: &Uri, env: &Env) -> Option<Proxy> {
    let either = |name: &str| env.text(name).or_else(|| env.text(&name.to_uppercase()));
    let host = url.host()?.trim_matches(['[', ']']).to_ascii_lowercase();
    let is_here = host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    let listed = either("no_proxy").unwrap_or_default().split(',').map(str::trim).any(|entry| {
        let suffix = entry.trim_start_matches('*').trim_start_matches('.').to_ascii_lowercase();
        match suffix.is_empty() {
            true => entry == "*",
            false => host == suffix || host.ends_with(&format!(".{suffix}")),
        }
    });
    if is_here || listed {
        return None;
    }
    let chosen = if url.scheme_str() == Some("https") { "https_proxy" } else { "http_proxy" };
    let address = either(chosen).or_else(|| either("all_proxy"))?;
    match Proxy::new(address) {
        Ok(proxy) => Some(proxy),
        Err(e) => {
            log::warn(format_args!("{chosen} is not used: {e}"));
            None
        }
    }
}

/// The certificates to trust: `SSL_CERT_FILE`, else the system's, and
/// `NODE_EXTRA_CA_CERTS` on top. `None` when the system has none: then those
/// that are compiled in serve.
fn roots(env: &Env) -> Option<Vec<Certificate<'static>>> {
    let named = env.text("SSL_CERT_FILE").map(PathBuf::from);
    let system = named.or_else(|| TRUST.iter().map(PathBuf::from).find(|path| path.is_file()))?;
    let extra = env.text("NODE_EXTRA_CA_CERTS").map(PathBuf::from);
    let mut roots = Vec::new();
    for path in [Some(system), extra].into_iter().flatten() {
        match certificates(&path) {
            Ok(found) => roots.extend(found),
            Err(e) => log::warn(format_args!("the certificates in {} are not used: {e}", path.display())),
        }
    }
    (!roots.is_empty()).then_some(roots)
}

/// The certificates of a file that was named for mcpx alone: a mistake in it must
/// not end in trusting somebody else.
fn named_roots(path: &str) -> Result<Vec<Certificate<'static>>> {
    let fail = |what: String| {
        Error::new(Kind::Config, format!("the authorities in {path}: {what}"))
            .hint("transport.caFile names a file of certificates in PEM")
    };
    let found = certificates(Path::new(path)).map_err(|e| fail(e.to_string()))?;
    if found.is_empty() { Err(fail("there is no certificate in it".into())) } else { Ok(found) }
}

fn certificates(path: &Path) -> io::Result<Vec<Certificate<'static>>> {
    let text = std::fs::read(path)?;
    let certificate = |item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(certificate),
        _ => None,
    };
    Ok(parse_pem(&text).filter_map(certificate).collect())
}

/// `500 Internal Server Error: …`, with the start of the body in one line.
pub(crate) fn describe(status: u16, body: &str) -> String {
    const QUOTED: usize = 300;
    let start: String = body.chars().take(4 * QUOTED).collect();
    let text = start.split_whitespace().collect::<Vec<_>>().join(" ");
    let name = ureq::http::StatusCode::from_u16(status).ok().and_then(|s| s.canonical_reason());
    let name = name.map(|name| format!(" {name}")).unwrap_or_default();
    let colon = if text.is_empty() { "" } else { ": " };
    format!("{status}{name}{colon}{}", printable(&text, QUOTED))
}

/// The URL that a redirect points to, if it stays with the same scheme, host and port.
pub(crate) fn same_origin(base: &str, location: &str) -> Option<String> {
    let base: Uri = base.parse().ok()?;
    let origin = |uri: &Uri| {
        let scheme = uri.scheme_str()?.to_ascii_lowercase();
        let port = uri.port_u16().unwrap_or(if scheme == "https" { 443 } else { 80 });
        Some((scheme, uri.host()?.to_ascii_lowercase(), port))
    };
    if location.starts_with('/') && !location.starts_with("//") {
        return Some(format!("{}://{}{location}", base.scheme_str()?, base.authority()?));
    }
    let target: Uri = location.parse().ok()?;
    (origin(&target)? == origin(&base)?).then(|| location.to_owned())
}

/// A URL as it may be shown: without user, query and fragment, which may be secret.
pub(crate) fn shown(url: &str) -> String {
    let plain = url.split(['?', '#']).next().unwrap_or_default();
    match plain.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = authority.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}{path}")
        }
        None => plain.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_stay_with_their_origin() {
        let base = "https://example.com/mcp?x=1";
        assert_eq!(same_origin(base, "/mcp/").as_deref(), Some("https://example.com/mcp/"));
        assert_eq!(
            same_origin(base, "https://EXAMPLE.com:443/v2").as_deref(),
            Some("https://EXAMPLE.com:443/v2")
        );
        for other in
            ["http://example.com/mcp", "https://example.com:8443/", "https://evil.com/", "//evil.com/", "mcp"]
        {
            assert_eq!(same_origin(base, other), None, "{other}");
        }
    }

    #[test]
    fn urls_are_shown_without_what_may_be_secret() {
        assert_eq!(shown("https://me:pw@h.example/p?key=1#f"), "https://h.example/p");
        assert_eq!(shown("http://h:1"), "http://h:1");
    }

    #[test]
    fn the_proxy_follows_scheme_and_exceptions() {
        let env = Env::from_pairs([
            ("HTTPS_PROXY", "http://secure:1"),
            ("http_proxy", "http://plain:2"),
            ("NO_PROXY", "internal.example, .corp,10.0.0.1"),
        ]);
        let host = |url: &str| proxy(&url.parse().unwrap(), &env).map(|p| p.host().to_owned());
        assert_eq!(host("https://example.com/").as_deref(), Some("secure"));
        assert_eq!(host("http://example.com/").as_deref(), Some("plain"));
        for direct in [
            "http://localhost:80/",
            "http://127.0.0.1/",
            "http://[::1]:8/",
            "https://internal.example/",
            "https://a.corp/",
            "http://10.0.0.1/",
        ] {
            assert_eq!(host(direct), None, "{direct}");
        }
        assert_eq!(host("https://notinternal.example/").as_deref(), Some("secure"));
    }

    #[test]
    fn certificates_come_from_the_named_file() {
        let env = Env::from_pairs([("SSL_CERT_FILE", "/no/such/file")]);
        assert!(roots(&env).is_none());
        let trusting = |ca| Web::new("https://example.com/", &env, ca).map(drop);
        assert!(trusting("").is_ok());
        for bad in ["/no/such/file", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")] {
            let error = trusting(bad).unwrap_err();
            assert!(error.kind() == Kind::Config && error.message().contains(bad), "{error}");
        }
        assert!(Web::new("ftp://example.com/", &env, "").is_err());
    }
}
