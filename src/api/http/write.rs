//! Writes messages, each in as few system calls as the stream takes. Reads nothing.

use super::Method;
use std::io::{self, ErrorKind, IoSlice, Write};

/// Writes all of the parts, in as few system calls as the stream takes.
pub fn write_parts(out: &mut impl Write, parts: &[&[u8]]) -> io::Result<()> {
    let mut slices: Vec<IoSlice<'_>> =
        parts.iter().filter(|p| !p.is_empty()).map(|p| IoSlice::new(p)).collect();
    let mut rest = &mut slices[..];
    while !rest.is_empty() {
        match out.write_vectored(rest) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(n) => IoSlice::advance_slices(&mut rest, n),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Writes a request, head and body at once. `headers` are whole lines, each ended by CR LF.
pub fn write_request(
    out: &mut impl Write,
    method: Method,
    target: &str,
    headers: &str,
    body: Option<&[u8]>,
) -> io::Result<()> {
    use std::fmt::Write as _;
    let mut head = String::with_capacity(160 + target.len() + headers.len());
    let _ = write!(head, "{} {target} HTTP/1.1\r\nHost: mcpx\r\n{headers}", method.word());
    if let Some(body) = body {
        let _ = write!(head, "Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    }
    head.push_str("\r\n");
    write_parts(out, &[head.as_bytes(), body.unwrap_or_default()])
}

/// What stands before a response's body.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// The status.
    pub status: u16,
    /// The body's media type; none for a response that has no body.
    pub media: Option<&'a str>,
    /// More header lines, each ended by CR LF.
    pub headers: &'a str,
    /// The connection is kept for another request.
    pub keep_alive: bool,
}

/// The media type of most bodies.
pub const JSON: &str = "application/json";

/// The media type of JSON objects on lines of their own.
pub const LINES: &str = "application/x-ndjson";

impl Head<'_> {
    /// A head before JSON.
    pub fn json(status: u16, keep_alive: bool) -> Head<'static> {
        Head { status, media: Some(JSON), headers: "", keep_alive }
    }

    fn write(&self, out: &mut String) {
        use std::fmt::Write as _;
        let _ = write!(out, "HTTP/1.1 {} {}\r\n", self.status, reason(self.status));
        if let Some(media) = self.media {
            let _ = write!(out, "Content-Type: {media}\r\n");
        }
        out.push_str(self.headers);
        if !self.keep_alive {
            out.push_str("Connection: close\r\n");
        }
    }
}

/// Writes a response, head and body at once.
pub fn write_response(out: &mut impl Write, head: Head<'_>, body: &[&[u8]]) -> io::Result<()> {
    use std::fmt::Write as _;
    let length: usize = body.iter().map(|p| p.len()).sum();
    let mut text = String::with_capacity(192 + head.headers.len());
    head.write(&mut text);
    // RFC 9110 (8.6): a 204 has no length either.
    if head.status != 204 {
        let _ = write!(text, "Content-Length: {length}\r\n");
    }
    text.push_str("\r\n");
    match body {
        [one] => write_parts(out, &[text.as_bytes(), one]),
        many => {
            let mut parts = Vec::with_capacity(many.len() + 1);
            parts.push(text.as_bytes());
            parts.extend_from_slice(many);
            write_parts(out, &parts)
        }
    }
}

/// A body whose length nobody knows yet: every write is a chunk, sent at once
/// (RFC 9112, 7.1). To a peer that speaks HTTP/1.0 the bytes go as they are, and
/// the end of the connection is theirs.
pub struct Chunked<'a> {
    out: &'a mut dyn Write,
    framed: bool,
}

impl<'a> Chunked<'a> {
    /// Writes the head. `framed` is false for a peer that knows no chunks; its
    /// connection must be closed afterwards.
    pub fn begin(out: &'a mut dyn Write, head: Head<'_>, framed: bool) -> io::Result<Chunked<'a>> {
        let mut text = String::with_capacity(192 + head.headers.len());
        Head { keep_alive: head.keep_alive && framed, ..head }.write(&mut text);
        text.push_str(if framed { "Transfer-Encoding: chunked\r\n\r\n" } else { "\r\n" });
        out.write_all(text.as_bytes())?;
        out.flush()?;
        Ok(Chunked { out, framed })
    }

    /// Sends one chunk; an empty one sends nothing, since it would be the end.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        if self.framed {
            let size = format!("{:x}\r\n", bytes.len());
            write_parts(&mut self.out, &[size.as_bytes(), bytes, b"\r\n"])?;
        } else {
            self.out.write_all(bytes)?;
        }
        self.out.flush()
    }

    /// Says that the body will never be whole, to a peer whose connection cannot be closed
    /// (tiny_http keeps it): what follows is no chunk, and every reader takes it for a fault.
    pub fn break_off(self) {
        if self.framed {
            let _ = self.out.write_all(b"broken off\r\n");
            let _ = self.out.flush();
        }
    }

    /// Says that the body is whole. Without it the peer knows that it is not.
    pub fn end(self) -> io::Result<()> {
        if self.framed {
            self.out.write_all(b"0\r\n\r\n")?;
        }
        self.out.flush()
    }
}

/// The phrase that goes with a status.
pub fn reason(status: u16) -> &'static str {
    match status {
        101 => "Switching Protocols",
        200 => "OK",
        202 => "Accepted",
        204 => "No Content",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        414 => "URI Too Long",
        417 => "Expectation Failed",
        422 => "Unprocessable Content",
        426 => "Upgrade Required",
        431 => "Request Header Fields Too Large",
        499 => "Client Closed Request",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "Unknown",
    }
}
