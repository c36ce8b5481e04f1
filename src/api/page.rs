//! The page for a browser: where it is, what it may ask, and the token that lets
//! it ask that and no more. Knows nothing of what it shows.

use super::http::Method;
use super::ops::{self, Id};
use crate::util;

/// Where the page is.
pub const PATH: &str = "/ui";

/// What the page asks. None of it changes anything, starts a server, or shows a secret.
/// Events are waited for; nothing else here waits.
pub static READS: &[Id] = &[Id::Events, Id::Health, Id::Servers, Id::Session, Id::Sessions, Id::Status];

/// Whether this is the page itself.
pub fn is_page(method: Method, path: &str) -> bool {
    method == Method::Get && path == PATH
}

/// Whether the page's token permits that.
pub fn permits(method: Method, path: &str) -> bool {
    is_page(method, path) || ops::route(method, path).is_ok_and(|(op, _)| READS.contains(&op.id))
}

/// The page's token, which follows from the daemon's own but does not lead back to it: addresses
/// are kept in histories and shown in lists of processes, where the daemon's own must not be.
pub fn token(own: &str) -> String {
    util::digest([b"mcpx page".as_slice(), own.as_bytes()], 64)
}

/// The page's address with its token, in the fragment, which a browser never sends.
pub fn address(endpoint: &str, own: &str) -> String {
    format!("{}{PATH}#token={}", endpoint.trim_end_matches('/'), token(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_only_reads() {
        for id in READS {
            let op = ops::all().find(|op| op.id == *id);
            assert!(op.is_some_and(|op| !op.mutates && op.method == Method::Get), "{id:?}");
        }
        assert!(permits(Method::Get, "/ui") && permits(Method::Get, "/v1/sessions/a"));
        for (method, path) in [
            (Method::Post, "/ui"),
            (Method::Post, "/v1/call"),
            (Method::Post, "/v1/sessions"),
            (Method::Get, "/v1/namespaces"),
            (Method::Get, "/v1/settings"),
            (Method::Get, "/mcp"),
        ] {
            assert!(!permits(method, path), "{} {path}", method.word());
        }
    }

    #[test]
    fn the_token_in_the_address_is_not_the_daemons() {
        let address = address("http://127.0.0.1:1/", "secret");
        assert!(address.starts_with("http://127.0.0.1:1/ui#token=") && !address.contains("secret"));
        assert_ne!(token("secret"), token("secret2"));
    }
}
