//! A person's login: asks the issuer for a code by way of a browser, takes the
//! code on a port of this machine (or as a person pastes it), and trades it for
//! tokens. Knows nothing of terminals.

use super::super::cancel::Cancel;
use super::challenge::{self, Challenge};
use super::discover::{Found, discover};
use super::fetch::Fetch;
use super::grant::{self, Failed, Grant};
use super::register::{self, Known};
use super::store::{Client, Record, Store};
use super::{refused, url};
use crate::config::{ServerDef, Transport};
use crate::error::{Error, Kind, Result};
use crate::proc;
use crate::settings::{self, Settings};
use crate::util::{self, Env, base64, uri};
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

/// The path that a login ends at.
const CALLBACK: &str = "/callback";
/// What a browser sends of a request's head is read up to this.
const HEAD: u64 = 32 * 1024;
/// How long a browser that connected may take to say what it wants; it says so at once.
const SPEAK: Duration = Duration::from_secs(5);
/// How often a wait looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(200);

/// The way to a person.
pub trait Browser {
    /// Shows the address where access is granted.
    fn open(&self, url: &str) -> Result<()>;
    /// What the person pasted, if pasting is the way: the address that the browser ended at, or the code alone.
    fn pasted(&self) -> Option<Result<String>>;
}

/// What is needed for a login.
pub struct Login<'a> {
    /// The server.
    pub def: &'a ServerDef,
    /// The settings.
    pub settings: &'a Settings,
    /// Proxies and certificates.
    pub env: &'a Env,
    /// Where tokens are kept.
    pub state: &'a Path,
    /// The way to the person.
    pub browser: &'a dyn Browser,
}

/// What a login came to.
#[derive(Debug)]
pub enum LoggedIn {
    /// There are tokens now.
    Yes(Box<Record>),
    /// The server serves without.
    NotNeeded,
}

/// Logs in.
///
/// # Errors
/// `Usage` for a server without a URL; `Refused` when the issuer or the person says no, or when something is not
/// as it must be; `Timeout`, `Cancelled`, `Unavailable`.
pub fn login(login: &Login<'_>, cancel: &Cancel) -> Result<LoggedIn> {
    let server = login.def.name.as_str();
    let Transport::Http { url, .. } = &login.def.transport else {
        return Err(Error::new(Kind::Usage, format!("the server {server} is a program, and needs no login"))
            .server(server));
    };
    let ca = login.settings.get(&settings::TRANSPORT_CA_FILE);
    let fetch = Fetch {
        server,
        env: login.env,
        ca: &ca,
        timeout: login.settings.get(&settings::OAUTH_TIMEOUT),
        cancel,
    };
    let store = Store::new(login.state, server, url);
    let mut record = store.load();
    let Some(challenge) = ask_what_is_wanted(&fetch, url, &record)? else { return Ok(LoggedIn::NotNeeded) };
    let found = discover(&fetch, url, challenge.resource_metadata.as_deref())?;
    check(server, &found)?;
    if record.issuer.as_ref() != Some(&found.issuer.issuer) {
        // What one issuer gave is nothing to another, and must not be shown to it.
        record =
            Record { server: record.server, url: record.url, wanted: record.wanted, ..Record::default() };
    }
    let scope = scope(login.def.options.oauth.scope.as_deref(), &challenge, &record, &found);
    let callback = Callback::listen(login.settings, record.client.as_ref())?;
    let known = Known {
        options: &login.def.options.oauth,
        document: &login.settings.get(&settings::OAUTH_CLIENT_METADATA_URL),
    };
    let client = register::client(
        &fetch,
        &found.issuer,
        &known,
        record.client.as_ref(),
        &callback.redirect,
        scope.as_deref(),
    )?;
    let verifier = util::random_hex(32)?;
    let state = util::random_hex(16)?;
    let address = address(&found, &client, &callback.redirect, &state, &verifier, scope.as_deref());
    login.browser.open(&address)?;
    let patience = login.settings.get(&settings::OAUTH_LOGIN_TIMEOUT);
    let answered = callback.wait(server, patience, login.browser, cancel, &state)?;
    let code = answered.code(server, &found)?;
    let grant = Grant::Code { code: &code, redirect: &callback.redirect, verifier: &verifier };
    let resource = found.resource.as_deref();
    let tokens =
        grant::ask(&fetch, &found.issuer.token_endpoint, &client, &grant, resource, scope.as_deref())
            .map_err(|failed| match failed {
                Failed::Worthless(why) => refused(server, format_args!("no token was given: {why}")),
                Failed::Other(error) => error,
            })?;
    // The secret of a client that the configuration names stays there.
    let secret = client.secret.filter(|_| login.def.options.oauth.client_id.is_none());
    record.client = Some(Client { secret, ..client });
    record.issuer = Some(found.issuer.issuer);
    record.resource = found.resource;
    record.token_endpoint = Some(found.issuer.token_endpoint);
    record.revocation_endpoint = found.issuer.revocation_endpoint;
    record.tokens = Some(tokens);
    record.wanted = None;
    let _lock = store.lock(fetch.timeout)?;
    store.save(&record)?;
    Ok(LoggedIn::Yes(Box::new(record)))
}

/// What the server wants of a token; none when it wants none.
fn ask_what_is_wanted(fetch: &Fetch<'_>, url: &str, record: &Record) -> Result<Option<Challenge>> {
    let hello = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "mcpx", "version": env!("CARGO_PKG_VERSION")},
        },
    });
    let accept = [("Accept".to_owned(), "application/json, text/event-stream".to_owned())];
    let answer = fetch.json(url, &hello, &accept)?;
    let wanted = record.wanted.clone().unwrap_or_default();
    if !matches!(answer.status, 401 | 403) && record.wanted.is_none() && record.tokens.is_none() {
        return Ok(None);
    }
    let said = challenge::parse(answer.challenge.as_deref().unwrap_or_default());
    Ok(Some(Challenge {
        resource_metadata: said.resource_metadata.or(wanted.resource_metadata),
        // What was missing at a call is what the login is for; the greeting may ask for less.
        scope: wanted.scope.or(said.scope),
        error: None,
    }))
}

/// Refuses an issuer whose grants could be stolen on the way.
fn check(server: &str, found: &Found) -> Result<()> {
    let issuer = &found.issuer;
    if issuer.authorization_endpoint.is_empty() {
        return Err(refused(server, format_args!("{} grants no access to persons", issuer.issuer)).hint(
            "it may do so to programs: \"mcpx\": {\"oauth\": {\"grant\": \"client_credentials\", …}}",
        ));
    }
    let methods = issuer.code_challenge_methods_supported.as_deref().unwrap_or_default();
    if !issuer.assumed && !methods.iter().any(|method| method == "S256") {
        let what = format!("{} does not bind its codes to who asked for them (PKCE, S256)", issuer.issuer);
        return Err(refused(server, what));
    }
    match url::Url::parse(&issuer.authorization_endpoint) {
        Some(at) if at.is_private() => Ok(()),
        _ => Err(refused(server, format_args!("{} is not https", issuer.authorization_endpoint))),
    }
}

/// The scopes to ask for: what the configuration says or what was missing, on top of what was
/// granted; else all that the server has; else none, and the issuer decides.
fn scope(own: Option<&str>, challenge: &Challenge, record: &Record, found: &Found) -> Option<String> {
    let granted = record.tokens.as_ref().and_then(|tokens| tokens.scope.as_deref());
    let all = found.scopes.as_ref().map(|scopes| scopes.join(" "));
    let wanted = challenge.scope.as_deref();
    let asked = match (own, wanted) {
        (None, None) => all,
        (own, wanted) => grant::union(own, wanted),
    };
    let scope = grant::union(granted, asked.as_deref());
    // A refresh token is what spares the next login; some issuers give it for this scope alone.
    let offline = found.issuer.scopes_supported.iter().flatten().any(|scope| scope == "offline_access");
    match offline && scope.is_some() {
        true => grant::union(scope.as_deref(), Some("offline_access")),
        false => scope,
    }
}

/// The address where access is granted.
fn address(
    found: &Found,
    client: &Client,
    redirect: &str,
    state: &str,
    verifier: &str,
    scope: Option<&str>,
) -> String {
    let bound = base64::encode_url(&util::sha256(verifier.as_bytes()));
    let mut pairs = vec![
        ("response_type", "code"),
        ("client_id", client.id.as_str()),
        ("redirect_uri", redirect),
        ("state", state),
        ("code_challenge", bound.as_str()),
        ("code_challenge_method", "S256"),
    ];
    pairs.extend(scope.map(|scope| ("scope", scope)));
    pairs.extend(found.resource.as_deref().map(|resource| ("resource", resource)));
    // OpenID Connect, 11: without it some issuers give no refresh token for offline_access.
    if scope.is_some_and(|scope| scope.split(' ').any(|s| s == "offline_access")) {
        pairs.push(("prompt", "consent"));
    }
    let endpoint = &found.issuer.authorization_endpoint;
    let joint = if endpoint.contains('?') { '&' } else { '?' };
    format!("{endpoint}{joint}{}", url::form(&pairs))
}

/// A port of this machine where a login ends.
struct Callback {
    listener: TcpListener,
    redirect: String,
}

/// What a login ended with.
#[derive(Debug, Default)]
struct Answered {
    code: Option<String>,
    state: Option<String>,
    issuer: Option<String>,
    error: Option<String>,
}

impl Callback {
    /// Listens, where an earlier registration ended if that can be had.
    fn listen(settings: &Settings, client: Option<&Client>) -> Result<Callback> {
        let configured = u16::try_from(settings.get(&settings::OAUTH_CALLBACK_PORT)).unwrap_or(0);
        let earlier = client
            .and_then(|client| url::Url::parse(&client.redirect)?.origin.rsplit(':').next()?.parse().ok());
        let mut ports = vec![configured];
        if configured == 0 {
            ports.splice(0..0, earlier);
        }
        let mut last = None;
        for port in ports {
            match TcpListener::bind(("127.0.0.1", port)) {
                Ok(listener) => {
                    let port = listener.local_addr().map_or(port, |address| address.port());
                    let redirect = format!("http://127.0.0.1:{port}{CALLBACK}");
                    return Ok(Callback { listener, redirect });
                }
                Err(e) => last = Some((port, e)),
            }
        }
        let why = last.map(|(port, e)| format!("127.0.0.1:{port}: {e}")).unwrap_or_default();
        Err(Error::new(Kind::Unavailable, format!("listening for the end of the login on {why}"))
            .hint("oauth.callbackPort names another port; 0 takes a free one"))
    }

    /// Waits for the browser to come back, or for the person to paste where it would have.
    fn wait(
        &self,
        server: &str,
        patience: Duration,
        browser: &dyn Browser,
        cancel: &Cancel,
        state: &str,
    ) -> Result<Answered> {
        let deadline = Instant::now() + patience;
        loop {
            if cancel.is_cancelled() {
                return Err(Error::new(Kind::Cancelled, "the login was cancelled").server(server));
            }
            if let Some(pasted) = browser.pasted() {
                return Ok(Answered::pasted(&pasted?, state));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let what = format!("nobody logged in to the server {server} in time (oauth.loginTimeout)");
                return Err(Error::new(Kind::Timeout, what).server(server));
            }
            let ready = proc::poll_readable(&[self.listener.as_fd()], Some(left.min(LOOK)));
            if ready.is_ok_and(|ready| ready[0])
                && let Ok((stream, _)) = self.listener.accept()
                && let Some(answered) = take(&stream, state)
            {
                return Ok(answered);
            }
        }
    }
}

/// Reads what a browser asks for. Only the answer to our own question counts:
/// whatever else connects, or guesses, gets a page and changes nothing.
fn take(stream: &TcpStream, state: &str) -> Option<Answered> {
    stream.set_read_timeout(Some(SPEAK)).ok()?;
    stream.set_write_timeout(Some(SPEAK)).ok()?;
    let mut line = String::new();
    let mut reader = BufReader::new(stream.take(HEAD));
    reader.read_line(&mut line).ok()?;
    // The rest of the head is read, so that closing does not reset the browser's connection.
    let mut rest = String::new();
    while reader.read_line(&mut rest).is_ok_and(|n| n > 2) {
        rest.clear();
    }
    let target = line.split(' ').nth(1).filter(|_| line.starts_with("GET "))?;
    let (path, query) = uri::split(target);
    let answered = (path == CALLBACK).then(|| Answered::read(query));
    let ours = answered.filter(|answered| answered.state.as_deref() == Some(state));
    let (status, text) = match &ours {
        None => ("404 Not Found", "This is not the end of a login that mcpx has begun."),
        Some(answered) if answered.code.is_some() => {
            ("200 OK", "Done. You can close this page and go on in the terminal.")
        }
        Some(_) => ("200 OK", "Access was not granted. The terminal says more."),
    };
    let page = format!("<!doctype html><meta charset=utf-8><title>mcpx</title><p>{text}</p>\n");
    let mut out = stream;
    let _ = write!(
        out,
        "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
        page.len()
    );
    ours
}

impl Answered {
    fn read(query: &str) -> Answered {
        let mut answered = Answered::default();
        let mut why = None;
        for (name, value) in uri::query(query).unwrap_or_default() {
            match name.as_str() {
                "code" => answered.code = Some(value),
                "state" => answered.state = Some(value),
                "iss" => answered.issuer = Some(value),
                "error" => answered.error = Some(value),
                "error_description" => why = Some(value),
                _ => {}
            }
        }
        if let (Some(error), Some(why)) = (&mut answered.error, why) {
            error.push_str(": ");
            error.push_str(&why);
        }
        answered
    }

    /// The address that a browser ended at, or a code alone, which a person copied from the very page that we sent them to.
    fn pasted(text: &str, state: &str) -> Answered {
        let text = text.trim();
        match text.split_once('?') {
            Some((_, query)) => Answered::read(query.split('#').next().unwrap_or_default()),
            None => Answered {
                code: Some(text.to_owned()).filter(|code| !code.is_empty()),
                state: Some(state.to_owned()),
                ..Answered::default()
            },
        }
        .of(state)
    }

    /// An answer to another question is none.
    fn of(self, state: &str) -> Answered {
        match self.state.as_deref() == Some(state) {
            true => self,
            false => Answered {
                error: Some("the pasted address belongs to another login".into()),
                ..Answered::default()
            },
        }
    }

    /// The code, when the issuer that we asked has given it (RFC 9207: compared letter by letter).
    fn code(self, server: &str, found: &Found) -> Result<String> {
        let issuer = &found.issuer;
        match &self.issuer {
            Some(said) if *said != issuer.issuer => {
                let said = super::super::error::printable(said, 200);
                return Err(refused(
                    server,
                    format_args!("the answer comes from {said}, not from {}", issuer.issuer),
                ));
            }
            None if issuer.authorization_response_iss_parameter_supported => {
                return Err(refused(
                    server,
                    format_args!("the answer does not say that it comes from {}", issuer.issuer),
                ));
            }
            _ => {}
        }
        if let Some(error) = self.error {
            let said = super::super::error::printable(&error, 300);
            return Err(refused(server, format_args!("access was not granted: {said}")));
        }
        self.code.ok_or_else(|| refused(server, "the answer holds no code"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::discover::Issuer;
    use super::*;

    fn found(promises: bool) -> Found {
        let issuer = Issuer {
            issuer: "https://as".into(),
            authorization_endpoint: "https://as/authorize?x=1".into(),
            authorization_response_iss_parameter_supported: promises,
            ..Issuer::default()
        };
        Found { issuer, resource: Some("https://h/mcp".into()), scopes: Some(vec!["a".into(), "b".into()]) }
    }

    #[test]
    fn a_code_counts_only_from_the_issuer_that_was_asked() {
        let code = |query: &str, promises| Answered::read(query).code("s", &found(promises));
        assert_eq!(code("code=c&state=s", false).unwrap(), "c");
        assert_eq!(code("code=c&iss=https%3A%2F%2Fas", true).unwrap(), "c");
        for (query, promises, why) in [
            ("code=c", true, "does not say"),
            ("code=c&iss=https%3A%2F%2Fas%2F", true, "comes from https://as/"),
            ("code=c&iss=https%3A%2F%2Fevil", false, "comes from https://evil"),
            ("error=access_denied&error_description=no+way", false, "access_denied: no way"),
            ("state=s", false, "no code"),
        ] {
            let error = code(query, promises).unwrap_err();
            assert!(error.kind() == Kind::Refused && error.message().contains(why), "{query}: {error}");
        }
    }

    #[test]
    fn what_a_person_pastes_is_an_address_or_a_code() {
        let pasted = |text: &str| {
            let answered = Answered::pasted(text, "st");
            (answered.code, answered.error.is_some())
        };
        assert_eq!(pasted(" abc \n"), (Some("abc".into()), false));
        assert_eq!(pasted("http://127.0.0.1:1/callback?code=abc&state=st#x"), (Some("abc".into()), false));
        assert_eq!(pasted("http://127.0.0.1:1/callback?code=abc&state=other"), (None, true));
        assert_eq!(pasted(""), (None, false));
    }

    #[test]
    fn scopes_that_are_asked_for() {
        let ask = |own: Option<&str>, wanted: Option<&str>, granted: Option<&str>, offline| {
            let mut found = found(false);
            if offline {
                found.issuer.scopes_supported = Some(vec!["offline_access".into()]);
            }
            let challenge = Challenge { scope: wanted.map(str::to_owned), ..Challenge::default() };
            let tokens = granted
                .map(|scope| super::super::store::Tokens { scope: Some(scope.into()), ..Default::default() });
            scope(own, &challenge, &Record { tokens, ..Record::default() }, &found)
        };
        assert_eq!(ask(None, None, None, false).as_deref(), Some("a b"));
        assert_eq!(ask(None, Some("c"), None, false).as_deref(), Some("c"));
        assert_eq!(ask(None, Some("c"), Some("a"), false).as_deref(), Some("a c"));
        assert_eq!(ask(Some("x"), None, None, true).as_deref(), Some("x offline_access"));
    }

    #[test]
    fn an_address_is_added_to_what_the_issuer_has() {
        let client = Client { id: "me".into(), ..Client::default() };
        let address = address(&found(false), &client, "http://127.0.0.1:9/callback", "st", "v", None);
        assert!(
            address.starts_with("https://as/authorize?x=1&response_type=code&client_id=me&"),
            "{address}"
        );
        assert!(
            address.contains("&resource=https%3A%2F%2Fh%2Fmcp") && !address.contains("scope="),
            "{address}"
        );
        // RFC 7636, appendix B.
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        let bound = base64::encode_url(&util::sha256(verifier.as_bytes()));
        assert_eq!(bound, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }
}
