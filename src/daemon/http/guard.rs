//! Who may ask over TCP: the token, the host and the origin of a request.
//! Knows nothing of the listener.

use crate::api::http::Headers;
use crate::api::page;
use crate::error::{Error, Kind};
use std::net::{IpAddr, SocketAddr};

/// Whose token a request brought.
pub enum Who<T> {
    /// The daemon's own.
    Owner,
    /// That of the page, which may only look.
    Looker,
    /// Another's.
    Other(T),
}

/// What a request must bring.
pub struct Guard {
    token: String,
    /// The token of the page.
    page: String,
    /// The names under which this listener may be addressed.
    hosts: Vec<String>,
    /// It is reached from other machines, under whatever address they have for it.
    wide: bool,
}

impl Guard {
    /// For a listener on that address.
    pub fn new(address: SocketAddr, token: String) -> Guard {
        let port = address.port();
        let mut hosts = vec![address.to_string()];
        if address.ip().is_loopback() {
            hosts.extend([format!("localhost:{port}"), format!("127.0.0.1:{port}"), format!("[::1]:{port}")]);
        }
        Guard { page: page::token(&token), token, hosts, wide: !address.ip().is_loopback() }
    }

    /// Whether a request that says this host means us. A page in a browser that was led here by a
    /// name it controls says that name; it cannot make the browser say an address.
    fn is_ours(&self, host: &str, further: &[String]) -> bool {
        let bare = host
            .rsplit_once(':')
            .map_or(host, |(name, port)| if port.bytes().all(|b| b.is_ascii_digit()) { name } else { host });
        let address = bare.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let named = |known: &String| known.eq_ignore_ascii_case(host) || known.eq_ignore_ascii_case(bare);
        self.hosts.iter().any(|h| h.eq_ignore_ascii_case(host))
            || further.iter().any(named)
            || self.wide && address.is_ok()
    }

    /// Lets a request in, or says why not and with which status. `further` are names that are ours as
    /// well, `other` gives what another token than the daemon's own belongs to.
    pub fn check<T>(
        &self,
        further: &[String],
        headers: &Headers,
        other: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Who<T>, (Error, u16)> {
        self.check_place(further, headers)?;
        let given = headers.all("authorization").collect::<Vec<&str>>();
        let token = match &given[..] {
            [value] => bearer(value),
            _ => None,
        };
        let is = |token: &str, known: &String| same(token.as_bytes(), known.as_bytes());
        let whose = match token {
            Some(token) if is(token, &self.token) => Some(Who::Owner),
            Some(token) if is(token, &self.page) => Some(Who::Looker),
            Some(token) => other(token).map(Who::Other),
            None => None,
        };
        whose.ok_or_else(|| {
            let error = Error::new(Kind::Refused, "the bearer token is missing or wrong");
            let hint = "send Authorization: Bearer <token>; the daemon's info file has the token";
            (error.hint(hint), 401)
        })
    }

    /// What every request must fulfil, also one that needs no token: it means us, it is no page's of
    /// another place, and it is told where its body ends.
    pub fn check_place(&self, further: &[String], headers: &Headers) -> Result<(), (Error, u16)> {
        let header = |name| headers.all(name).collect::<Vec<&str>>();
        let refuse = |what: &str, status| Err((Error::new(Kind::Refused, what), status));
        match &header("host")[..] {
            [host] if self.is_ours(host, further) => {}
            _ => {
                let error = Error::new(Kind::Refused, "the Host header does not name this daemon");
                return Err((error.hint("transport.hosts lists the names that it answers to"), 403));
            }
        }
        // Programs send none, and neither does our own page for what it reads (Fetch, 3.2): any other
        // page has no business here.
        if !header("origin").is_empty() {
            return refuse("requests from web pages are not served", 403);
        }
        // tiny_http takes a length that it cannot read for none, and the body for another request.
        match &header("content-length")[..] {
            [] => {}
            [length] if !length.is_empty() && length.bytes().all(|b| b.is_ascii_digit()) => {
                if !header("transfer-encoding").is_empty() {
                    return refuse("both Content-Length and Transfer-Encoding", 400);
                }
            }
            _ => return refuse("Content-Length is not one number", 400),
        }
        Ok(())
    }
}

/// The token in an Authorization header.
fn bearer(value: &str) -> Option<&str> {
    let (scheme, given) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| given.trim())
}

/// Compares without telling by the time it takes where two texts differ.
fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() || b.is_empty() {
        return false;
    }
    let difference = a.iter().zip(b).fold(0u8, |sum, (x, y)| sum | (x ^ y));
    std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(headers: &[(&str, &str)]) -> u16 {
        check_at("127.0.0.1:80", &[], headers)
    }

    fn check_at(address: &str, further: &[String], headers: &[(&str, &str)]) -> u16 {
        let guard = Guard::new(address.parse().unwrap(), "secret".into());
        let headers = Headers(headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect());
        guard.check(further, &headers, |_| None::<()>).map_or_else(|(_, status)| status, |_| 200)
    }

    #[test]
    fn only_the_token_at_this_host_gets_in() {
        let host = ("host", "127.0.0.1:80");
        let token = ("authorization", "Bearer secret");
        assert_eq!(check(&[host, token]), 200);
        assert_eq!(check(&[("host", "LOCALHOST:80"), ("authorization", "bearer  secret ")]), 200);
        assert_eq!(check(&[host]), 401);
        for wrong in
            ["secret", "Bearer", "Bearer ", "Bearer Secret", "Bearer secret2", "Bearer secre", "Basic secret"]
        {
            assert_eq!(check(&[host, ("authorization", wrong)]), 401, "{wrong}");
        }
        assert_eq!(check(&[host, token, token]), 401);
        for wrong in ["evil.example", "127.0.0.1", "127.0.0.1:81", ""] {
            assert_eq!(check(&[("host", wrong), token]), 403, "{wrong}");
        }
        assert_eq!(check(&[token]), 403);
        assert_eq!(check(&[host, host, token]), 403);
        assert_eq!(check(&[host, token, ("origin", "http://127.0.0.1:80")]), 403);
        assert_eq!(check(&[host, token, ("origin", "null")]), 403);
    }

    #[test]
    fn the_pages_token_is_told_from_the_daemons() {
        let guard = Guard::new("127.0.0.1:80".parse().unwrap(), "secret".into());
        let who = |token: &str| {
            let pairs = [("host", "127.0.0.1:80".into()), ("authorization", format!("Bearer {token}"))];
            let headers = Headers(pairs.map(|(n, v): (&str, String)| (n.to_owned(), v)).into());
            guard.check(&[], &headers, |_| None::<()>)
        };
        assert!(matches!(who("secret"), Ok(Who::Owner)));
        assert!(matches!(who(&page::token("secret")), Ok(Who::Looker)));
        assert!(who(&page::token("other")).is_err());
    }

    #[test]
    fn a_wide_listener_has_addresses_and_the_names_it_was_given() {
        let at = |address: &str, host: &str| {
            let further = ["tools.example".to_owned(), "proxied.example:8443".to_owned()];
            check_at(address, &further, &[("host", host), ("authorization", "Bearer secret")])
        };
        let ours = [
            "10.1.2.3:80",
            "10.1.2.3",
            "[fd00::1]:9",
            "Tools.example:1",
            "tools.example",
            "proxied.example:8443",
        ];
        for host in ours {
            assert_eq!(at("0.0.0.0:80", host), 200, "{host}");
        }
        for host in ["evil.example:80", "proxied.example:80", "10.1.2.3.evil.example:80", "1.2.3:80", ""] {
            assert_eq!(at("0.0.0.0:80", host), 403, "{host}");
        }
        assert_eq!(at("127.0.0.1:80", "10.1.2.3:80"), 403, "on loopback no other address is ours");
        assert_eq!(at("127.0.0.1:80", "tools.example"), 200);
    }

    #[test]
    fn lengths_that_tiny_http_misreads_are_refused() {
        let base = [("host", "127.0.0.1:80"), ("authorization", "Bearer secret")];
        for bad in ["-1", "+1", "", "1,1", "x"] {
            assert_eq!(check(&[base[0], base[1], ("content-length", bad)]), 400, "{bad}");
        }
        assert_eq!(check(&[base[0], base[1], ("content-length", "1")]), 200);
        let both = [base[0], base[1], ("content-length", "1"), ("transfer-encoding", "chunked")];
        assert_eq!(check(&both), 400);
    }

    #[test]
    fn no_token_is_nobodys_token() {
        assert!(!same(b"", b""));
    }
}
