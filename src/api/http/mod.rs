//! A small strict HTTP/1.1: reads requests and responses from a stream, writes
//! them to one. Bounded in size and time, indifferent to how the bytes arrive.
//! Knows nothing of routes, sockets' names or JSON.

mod head;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use self::read::{Divert, Reader, Sink, Source};
pub use self::write::{Chunked, Head, JSON, LINES, reason, write_parts, write_request, write_response};

use std::io::{self, ErrorKind};
use std::time::Duration;

/// What a peer may send, and how long it may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest head, request or status line included, in bytes.
    pub head: usize,
    /// The largest body, in bytes.
    pub body: u64,
    /// How long a connection may be silent before a message begins.
    pub idle: Option<Duration>,
    /// How long a head may take once its first byte is there, and the allowance of a body.
    pub head_timeout: Option<Duration>,
}

impl Limits {
    /// For a peer that is trusted to answer in its own time: only sizes are bounded.
    pub const PATIENT: Limits = Limits { head: 64 * 1024, body: u64::MAX, idle: None, head_timeout: None };
}

/// Why no message could be read.
#[derive(Debug)]
pub enum Fault {
    /// The peer closed, or fell silent, between messages: there is nothing to answer.
    Closed,
    /// The peer broke the protocol or a limit: answer with the status, then close.
    Bad(u16, &'static str),
    /// The stream broke, or ended inside a message.
    Io(io::Error),
}

impl From<io::Error> for Fault {
    fn from(e: io::Error) -> Fault {
        if is_timeout(&e) { Fault::Bad(408, "the message took too long") } else { Fault::Io(e) }
    }
}

/// A request's method; others are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub enum Method {
    Get,
    Post,
    Put,
    Delete,
    Patch,
    Head,
    Options,
}

impl Method {
    /// The method's word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
            Method::Patch => "PATCH",
            Method::Head => "HEAD",
            Method::Options => "OPTIONS",
        }
    }
    /// The method that a word names.
    pub fn from_word(word: &str) -> Option<Method> {
        [Method::Get, Method::Post, Method::Put, Method::Delete, Method::Patch, Method::Head, Method::Options]
            .into_iter()
            .find(|m| m.word() == word)
    }
}

/// The header lines of one message; names are lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers(pub Vec<(String, String)>);

impl Headers {
    /// The value of the first line of that (lower-case) name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }
    /// The values of every line of that (lower-case) name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(n, _)| n == name).map(|(_, v)| v.as_str())
    }
    /// Whether a comma-separated list of that name contains the token.
    pub fn has_token(&self, name: &str, token: &str) -> bool {
        self.all(name).flat_map(|v| v.split(',')).any(|t| t.trim().eq_ignore_ascii_case(token))
    }
}

/// One request, its body included.
#[derive(Debug)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The target as sent: a path that begins with `/`, and perhaps `?query`.
    pub target: String,
    /// The header lines.
    pub headers: Headers,
    /// The body; empty when there is none.
    pub body: Vec<u8>,
    /// The peer wants the connection kept.
    pub keep_alive: bool,
    /// The peer understands a chunked body: it speaks HTTP/1.1.
    pub takes_chunks: bool,
}

/// One response, its body included.
#[derive(Debug)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// The header lines.
    pub headers: Headers,
    /// The body; empty when there is none.
    pub body: Vec<u8>,
    /// The peer keeps the connection.
    pub keep_alive: bool,
}

/// A read or write that its bound ended.
pub fn is_timeout(e: &io::Error) -> bool {
    matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
