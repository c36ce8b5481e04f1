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

/// Writes a JSON response, head and body at once. `headers` are whole lines, each ended by CR LF.
pub fn write_response(
    out: &mut impl Write,
    status: u16,
    headers: &str,
    keep_alive: bool,
    body: &[&[u8]],
) -> io::Result<()> {
    use std::fmt::Write as _;
    let length: usize = body.iter().map(|p| p.len()).sum();
    let mut head = String::with_capacity(160 + headers.len());
    let _ = write!(
        head,
        "HTTP/1.1 {status} {}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{headers}",
        reason(status)
    );
    if !keep_alive {
        head.push_str("Connection: close\r\n");
    }
    head.push_str("\r\n");
    match body {
        [one] => write_parts(out, &[head.as_bytes(), one]),
        many => {
            let mut parts = Vec::with_capacity(many.len() + 1);
            parts.push(head.as_bytes());
            parts.extend_from_slice(many);
            write_parts(out, &parts)
        }
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
