//! Authorisation for HTTP servers: OAuth 2.1 as MCP profiles it (specification
//! 2025-11-25 and 2026-07-28, "Authorization"). Finds out who grants access,
//! registers, lets a person log in, keeps and renews tokens. Knows nothing of
//! what the tokens are used for.
//!
//! A daemon has nobody to ask: it renews what it has, or asks in its own name
//! where the configuration says so, and otherwise says which command logs in.

mod access;
mod challenge;
mod discover;
mod fetch;
mod grant;
mod login;
mod logout;
mod register;
mod store;
mod url;

pub use access::Access;
pub use login::{Browser, LoggedIn, Login, login};
pub use logout::forget;
pub use store::{Record, Store};

use crate::error::{Error, Kind};

/// An error of authorisation for this server.
fn refused(server: &str, what: impl std::fmt::Display) -> Error {
    Error::new(Kind::Refused, format!("authorisation for the server {server}: {what}")).server(server)
}

/// The error of a server that wants a login which nobody has made yet.
fn wants_login(server: &str, why: &str) -> Error {
    refused(server, why).hint(format!(
        "log in with `mcpx auth login {server}`, or give it a header, such as \"Authorization\", under \"headers\" in its definition"
    ))
}
