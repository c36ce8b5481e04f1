//! A small strict HTTP/1.1: reads requests and responses from a stream, writes
//! them to one. Bounded in size and time, indifferent to how the bytes arrive.
//! Knows nothing of routes, sockets' names or JSON.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// The longest single line of a head, in bytes. Nothing that mcpx sends comes
/// near; the head as a whole has its own, configurable limit.
const MAX_LINE: usize = 16 * 1024;
/// The most header lines in one head.
const MAX_HEADERS: usize = 100;
/// The longest line that gives a chunk's size, extensions included.
const MAX_CHUNK_LINE: usize = 256;
/// What a sender of a body must keep up, on average, after the first
/// [`Limits::head_timeout`]: enough for any local client, too much for one that trickles.
const MIN_BODY_RATE: u64 = 64 * 1024;
/// How much is read at once while a head is awaited.
const FIRST_READ: usize = 4 * 1024;
/// A body's buffer starts no larger than this, whatever length was announced.
const BODY_START: u64 = 1024 * 1024;

/// A stream whose reads can be bounded in time.
pub trait Source: Read {
    /// Bounds each following read; none means for ever.
    fn bound(&mut self, timeout: Option<Duration>) -> io::Result<()>;
}

impl Source for UnixStream {
    fn bound(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        // A zero duration is an error to the standard library; the shortest one is not.
        self.set_read_timeout(timeout.map(|t| t.max(Duration::from_micros(1))))
    }
}

/// Bytes in memory never wait.
impl Source for &[u8] {
    fn bound(&mut self, _: Option<Duration>) -> io::Result<()> {
        Ok(())
    }
}

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
    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
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

/// How the end of a body is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length(u64),
    Chunked,
    /// Until the stream ends; only in responses.
    Rest,
}

/// Reads messages from a stream, one after another; what was sent ahead waits
/// in its buffer for the next.
pub struct Reader<S> {
    source: S,
    buffer: Vec<u8>,
    start: usize,
    /// The bound that the source has now, so that it is set only when it changes.
    bound: Option<Option<Duration>>,
}

impl<S: Source> Reader<S> {
    /// A reader with an empty buffer.
    pub fn new(source: S) -> Reader<S> {
        Reader { source, buffer: Vec::new(), start: 0, bound: None }
    }
    /// The stream.
    pub fn source(&self) -> &S {
        &self.source
    }
    /// The stream, for writing.
    pub fn source_mut(&mut self) -> &mut S {
        &mut self.source
    }
    /// What was read ahead of the current message.
    pub fn buffered(&self) -> &[u8] {
        &self.buffer[self.start..]
    }
    /// Gives up the stream and what was read ahead.
    pub fn into_parts(mut self) -> (S, Vec<u8>) {
        self.buffer.drain(..self.start);
        (self.source, self.buffer)
    }

    /// The next request. `go_on` is called when the peer waits for leave to
    /// send its body (`Expect: 100-continue`).
    pub fn request(
        &mut self,
        limits: &Limits,
        go_on: impl FnOnce(&mut S) -> io::Result<()>,
    ) -> Result<Request, Fault> {
        let end = self.head(limits)?;
        let text = head_text(&self.buffer[self.start..end])?;
        let mut lines = text.split("\r\n");
        let (method, target, minor) = request_line(lines.next().unwrap_or_default())?;
        let headers = header_lines(lines)?;
        self.start = end;
        if minor == 1 && headers.all("host").count() != 1 {
            return Err(Fault::Bad(400, "a request carries exactly one Host header"));
        }
        let framing = framing(&headers, minor)?.unwrap_or(Framing::Length(0));
        if let Framing::Length(n) = framing
            && n > limits.body
        {
            return Err(Fault::Bad(413, "the body is larger than transport.maxBody"));
        }
        match headers.get("expect") {
            None => {}
            Some(v) if !v.eq_ignore_ascii_case("100-continue") => {
                return Err(Fault::Bad(417, "the only expectation understood is 100-continue"));
            }
            Some(_) if framing == Framing::Length(0) => {}
            Some(_) => go_on(&mut self.source)?,
        }
        let body = self.body(framing, limits)?;
        let keep_alive = keeps(&headers, minor);
        Ok(Request { method, target, headers, body, keep_alive })
    }

    /// The response to a request that was sent; interim (1xx) ones are skipped, except `101`.
    pub fn response(&mut self, limits: &Limits) -> Result<Response, Fault> {
        loop {
            let end = self.head(limits)?;
            let text = head_text(&self.buffer[self.start..end])?;
            let mut lines = text.split("\r\n");
            let (status, minor) = status_line(lines.next().unwrap_or_default())?;
            let headers = header_lines(lines)?;
            self.start = end;
            if status == 101 {
                return Ok(Response { status, headers, body: Vec::new(), keep_alive: true });
            }
            if (100..200).contains(&status) {
                continue;
            }
            let framing = match status {
                204 | 304 => Framing::Length(0),
                _ => framing(&headers, minor)?.unwrap_or(Framing::Rest),
            };
            let body = self.body(framing, limits)?;
            let keep_alive = keeps(&headers, minor) && framing != Framing::Rest;
            return Ok(Response { status, headers, body, keep_alive });
        }
    }

    /// Waits for a whole head; answers where it ends in the buffer.
    fn head(&mut self, limits: &Limits) -> Result<usize, Fault> {
        if self.start == self.buffer.len() {
            self.buffer.clear();
            self.start = 0;
            if self.buffer.capacity() > 4 * FIRST_READ {
                self.buffer = Vec::new();
            }
        }
        // One empty line before a request is forgiven, as RFC 9112 (2.2) asks.
        let mut forgiven = false;
        // Counted from `start`, which moves when the buffer is filled.
        let mut scanned = 0usize;
        let mut deadline: Option<Instant> = None;
        loop {
            if !forgiven && self.buffered().starts_with(b"\r\n") {
                self.start += 2;
                scanned = 0;
                forgiven = true;
            }
            let pending = self.buffered();
            let from = scanned.saturating_sub(3);
            let end = find(&pending[from..], b"\r\n\r\n").map(|at| from + at + 4);
            scanned = pending.len();
            if end.unwrap_or(scanned) > limits.head {
                return Err(Fault::Bad(431, "the head is larger than transport.maxHeader"));
            }
            if let Some(end) = end {
                return Ok(self.start + end);
            }
            let begun = scanned > 0;
            let wait = if begun {
                match (deadline, limits.head_timeout) {
                    (_, None) => None,
                    (Some(at), _) => Some(left(at)?),
                    (None, Some(t)) => {
                        deadline = Some(Instant::now() + t);
                        Some(t)
                    }
                }
            } else {
                limits.idle
            };
            self.set_bound(wait)?;
            match self.fill() {
                Ok(0) if begun => {
                    return Err(Fault::Io(io::Error::new(ErrorKind::UnexpectedEof, "inside a head")));
                }
                Ok(0) => return Err(Fault::Closed),
                Ok(_) => {}
                Err(e) if is_timeout(&e) && !begun => return Err(Fault::Closed),
                Err(e) => return Err(e.into()),
            }
        }
    }

    fn body(&mut self, framing: Framing, limits: &Limits) -> Result<Vec<u8>, Fault> {
        match framing {
            Framing::Length(0) => Ok(Vec::new()),
            Framing::Length(n) => {
                let mut pace = Pace::new(limits);
                let mut body = Vec::with_capacity(n.min(BODY_START) as usize);
                self.exactly(n, &mut body, &mut pace)?;
                Ok(body)
            }
            Framing::Chunked => self.chunks(limits),
            Framing::Rest => {
                let mut body = self.buffer.split_off(self.start);
                self.start = self.buffer.len();
                let mut pace = Pace::new(limits);
                let room = limits.body.saturating_sub(body.len() as u64).saturating_add(1);
                Paced { reader: self, pace: &mut pace }.take(room).read_to_end(&mut body)?;
                if body.len() as u64 > limits.body {
                    return Err(Fault::Bad(413, "the body is larger than the limit"));
                }
                Ok(body)
            }
        }
    }

    /// Appends exactly `n` more bytes to `body`.
    fn exactly(&mut self, n: u64, body: &mut Vec<u8>, pace: &mut Pace) -> Result<(), Fault> {
        let ahead = (self.buffer.len() - self.start).min(usize::try_from(n).unwrap_or(usize::MAX));
        body.extend_from_slice(&self.buffer[self.start..self.start + ahead]);
        self.start += ahead;
        let missing = n - ahead as u64;
        if missing == 0 {
            return Ok(());
        }
        let got = Paced { reader: self, pace }.take(missing).read_to_end(body);
        match got {
            Ok(got) if got as u64 == missing => Ok(()),
            Ok(_) => Err(Fault::Io(io::Error::new(ErrorKind::UnexpectedEof, "inside a body"))),
            Err(e) => Err(e.into()),
        }
    }

    fn chunks(&mut self, limits: &Limits) -> Result<Vec<u8>, Fault> {
        const MALFORMED: Fault = Fault::Bad(400, "a chunk is malformed");
        let mut pace = Pace::new(limits);
        let mut body = Vec::new();
        loop {
            let line = self.line(MAX_CHUNK_LINE, &mut pace)?;
            let digits = line.split(';').next().unwrap_or_default().trim_end_matches([' ', '\t']);
            if digits.is_empty() || digits.len() > 15 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
                return Err(MALFORMED);
            }
            let size = u64::from_str_radix(digits, 16).map_err(|_| MALFORMED)?;
            if size == 0 {
                break;
            }
            if size > limits.body.saturating_sub(body.len() as u64) {
                return Err(Fault::Bad(413, "the body is larger than transport.maxBody"));
            }
            self.exactly(size, &mut body, &mut pace)?;
            if !self.line(2, &mut pace)?.is_empty() {
                return Err(MALFORMED);
            }
        }
        // Trailers are read and dropped.
        let mut trailers = 0;
        loop {
            let line = self.line(MAX_LINE, &mut pace)?;
            if line.is_empty() {
                return Ok(body);
            }
            trailers += line.len();
            if trailers > limits.head {
                return Err(Fault::Bad(431, "the trailers are larger than transport.maxHeader"));
            }
        }
    }

    /// The next line, without its CR LF; at most `max` bytes with it.
    fn line(&mut self, max: usize, pace: &mut Pace) -> Result<String, Fault> {
        loop {
            let pending = &self.buffer[self.start..];
            if let Some(at) = find(&pending[..pending.len().min(max)], b"\r\n") {
                let line = std::str::from_utf8(&pending[..at])
                    .map_err(|_| Fault::Bad(400, "a line is not UTF-8"))?
                    .to_owned();
                self.start += at + 2;
                return Ok(line);
            }
            if pending.len() >= max {
                return Err(Fault::Bad(400, "a chunk is malformed"));
            }
            let wait = pace.wait()?;
            self.set_bound(wait)?;
            match self.fill() {
                Ok(0) => return Err(Fault::Io(io::Error::new(ErrorKind::UnexpectedEof, "inside a body"))),
                Ok(n) => pace.received += n as u64,
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// Reads once into the buffer.
    fn fill(&mut self) -> io::Result<usize> {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        let filled = self.buffer.len();
        self.buffer.resize(filled + FIRST_READ, 0);
        let outcome = loop {
            match self.source.read(&mut self.buffer[filled..]) {
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.buffer.truncate(filled + outcome.as_ref().map_or(0, |n| *n));
        outcome
    }

    fn set_bound(&mut self, wait: Option<Duration>) -> io::Result<()> {
        if self.bound != Some(wait) {
            self.source.bound(wait)?;
            self.bound = Some(wait);
        }
        Ok(())
    }
}

/// Decides how long the next part of a body may take: the allowance, and more
/// for each byte that came.
struct Pace {
    begun: Option<Instant>,
    allowance: Option<Duration>,
    received: u64,
}

impl Pace {
    fn new(limits: &Limits) -> Pace {
        Pace { begun: None, allowance: limits.head_timeout, received: 0 }
    }
    fn wait(&mut self) -> io::Result<Option<Duration>> {
        let Some(allowance) = self.allowance else { return Ok(None) };
        let begun = *self.begun.get_or_insert_with(Instant::now);
        let earned = Duration::from_millis(self.received.saturating_mul(1000) / MIN_BODY_RATE);
        left(begun + allowance + earned).map(Some)
    }
}

/// The source of a reader past its buffer, kept to a pace.
struct Paced<'a, S> {
    reader: &'a mut Reader<S>,
    pace: &'a mut Pace,
}

impl<S: Source> Read for Paced<'_, S> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let wait = self.pace.wait()?;
        self.reader.set_bound(wait)?;
        let n = self.reader.source.read(buf)?;
        self.pace.received += n as u64;
        Ok(n)
    }
}

fn left(deadline: Instant) -> io::Result<Duration> {
    match deadline.checked_duration_since(Instant::now()) {
        Some(left) if !left.is_zero() => Ok(left),
        _ => Err(io::Error::from(ErrorKind::TimedOut)),
    }
}

/// A read or write that its bound ended.
pub fn is_timeout(e: &io::Error) -> bool {
    matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|w| w == needle)
}

/// The head without its last empty line.
fn head_text(head: &[u8]) -> Result<&str, Fault> {
    let text =
        std::str::from_utf8(&head[..head.len() - 4]).map_err(|_| Fault::Bad(400, "the head is not UTF-8"))?;
    // A lone CR or LF is how one message is smuggled inside another.
    let bytes = text.as_bytes();
    for (i, b) in bytes.iter().enumerate() {
        let paired = match b {
            b'\r' => bytes.get(i + 1) == Some(&b'\n'),
            b'\n' => i > 0 && bytes[i - 1] == b'\r',
            b'\t' => true,
            _ => *b >= 0x20 && *b != 0x7f,
        };
        if !paired {
            return Err(Fault::Bad(400, "the head has a control character"));
        }
    }
    Ok(text)
}

fn request_line(line: &str) -> Result<(Method, String, u8), Fault> {
    if line.len() > MAX_LINE {
        return Err(Fault::Bad(414, "the request's target is too long"));
    }
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(Fault::Bad(400, "the request line is not three words"));
    };
    let minor = minor_version(version)?;
    if method.is_empty() || !method.bytes().all(is_token) {
        return Err(Fault::Bad(400, "the method is not a word"));
    }
    let method = Method::from_word(method).ok_or(Fault::Bad(501, "no such method"))?;
    if !target.starts_with('/') || !target.is_ascii() {
        return Err(Fault::Bad(400, "the target is not a path"));
    }
    Ok((method, target.to_owned(), minor))
}

fn status_line(line: &str) -> Result<(u16, u8), Fault> {
    let mut words = line.splitn(3, ' ');
    let minor = minor_version(words.next().unwrap_or_default())?;
    let status = words
        .next()
        .filter(|w| w.len() == 3 && w.bytes().all(|b| b.is_ascii_digit()))
        .and_then(|w| w.parse().ok())
        .ok_or(Fault::Bad(502, "the status is not a number"))?;
    Ok((status, minor))
}

fn minor_version(word: &str) -> Result<u8, Fault> {
    match word {
        "HTTP/1.1" => Ok(1),
        "HTTP/1.0" => Ok(0),
        w if w.starts_with("HTTP/") => Err(Fault::Bad(505, "only HTTP/1.1 and HTTP/1.0 are spoken")),
        _ => Err(Fault::Bad(400, "the version is not HTTP's")),
    }
}

fn header_lines<'a>(lines: impl Iterator<Item = &'a str>) -> Result<Headers, Fault> {
    let mut headers = Vec::new();
    for line in lines {
        if line.len() > MAX_LINE || headers.len() == MAX_HEADERS {
            return Err(Fault::Bad(431, "a header line is too long, or there are too many"));
        }
        // This also refuses a continuation line, and a space before the colon.
        let (name, value) = line
            .split_once(':')
            .filter(|(name, _)| !name.is_empty() && name.bytes().all(is_token))
            .ok_or(Fault::Bad(400, "a header line is malformed"))?;
        headers.push((name.to_ascii_lowercase(), value.trim_matches([' ', '\t']).to_owned()));
    }
    Ok(Headers(headers))
}

fn framing(headers: &Headers, minor: u8) -> Result<Option<Framing>, Fault> {
    let mut lengths = headers.all("content-length");
    let mut encodings = headers.all("transfer-encoding");
    match (lengths.next(), encodings.next()) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(Fault::Bad(400, "both Content-Length and Transfer-Encoding")),
        (Some(length), None) => {
            if lengths.next().is_some()
                || length.is_empty()
                || length.len() > 18
                || !length.bytes().all(|b| b.is_ascii_digit())
            {
                return Err(Fault::Bad(400, "Content-Length is not one number"));
            }
            let n = length.parse().map_err(|_| Fault::Bad(400, "Content-Length is not one number"))?;
            Ok(Some(Framing::Length(n)))
        }
        (None, Some(encoding)) => {
            if minor == 0 || encodings.next().is_some() {
                return Err(Fault::Bad(400, "Transfer-Encoding is not one word of HTTP/1.1"));
            }
            if !encoding.eq_ignore_ascii_case("chunked") {
                return Err(Fault::Bad(501, "the only transfer encoding understood is chunked"));
            }
            Ok(Some(Framing::Chunked))
        }
    }
}

fn keeps(headers: &Headers, minor: u8) -> bool {
    if minor == 0 {
        headers.has_token("connection", "keep-alive")
    } else {
        !headers.has_token("connection", "close")
    }
}

fn is_token(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b)
}

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

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
