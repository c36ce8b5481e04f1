//! Reads whole messages from a stream, within limits of size and time. Knows
//! nothing of what a head may say.

use super::head::{self, Framing, MAX_LINE};
use super::{Fault, Headers, Limits, Method, Request, Response, is_timeout};
use std::io::{self, ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// The longest line that gives a chunk's size, extensions included.
const MAX_CHUNK_LINE: usize = 256;
/// What a sender of a body must keep up, on average, after the first
/// [`Limits::head_timeout`]: enough for any local client, too much for one that trickles.
const MIN_BODY_RATE: u64 = 64 * 1024;
/// How much is read at once while a head is awaited.
const FIRST_READ: usize = 4 * 1024;
/// A body's buffer starts no larger than this, whatever length was announced.
const BODY_START: u64 = 1024 * 1024;

/// A body that goes elsewhere as it arrives is in memory by so much at a time.
const PIECE: u64 = 64 * 1024;

const MALFORMED: Fault = Fault::Bad(400, "a chunk is malformed");

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

/// Takes the pieces of a body as they arrive; its error ends the reading.
pub type Sink<'a> = &'a mut dyn FnMut(&[u8]) -> io::Result<()>;

/// Takes the bodies of some requests as they arrive, so that they need not fit into memory.
pub trait Divert {
    /// Whether it takes the body of this request, and how many bytes at most.
    fn wants(&mut self, method: Method, target: &str, headers: &Headers) -> Option<u64>;
    /// Takes the next piece; a fault ends the reading.
    fn take(&mut self, piece: &[u8]) -> Result<(), Fault>;
}

/// Takes none.
impl Divert for () {
    fn wants(&mut self, _: Method, _: &str, _: &Headers) -> Option<u64> {
        None
    }
    fn take(&mut self, _: &[u8]) -> Result<(), Fault> {
        Ok(())
    }
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
        self.request_or_divert(limits, go_on, &mut ())
    }

    /// The same, but a body that `divert` wants goes there as it arrives; the request's own is then empty.
    pub fn request_or_divert(
        &mut self,
        limits: &Limits,
        go_on: impl FnOnce(&mut S) -> io::Result<()>,
        divert: &mut dyn Divert,
    ) -> Result<Request, Fault> {
        let end = self.head(limits)?;
        let text = head::head_text(&self.buffer[self.start..end])?;
        let mut lines = text.split("\r\n");
        let (method, target, minor) = head::request_line(lines.next().unwrap_or_default())?;
        let headers = head::header_lines(lines)?;
        self.start = end;
        if minor == 1 && headers.all("host").count() != 1 {
            return Err(Fault::Bad(400, "a request carries exactly one Host header"));
        }
        let framing = head::framing(&headers, minor)?.unwrap_or(Framing::Length(0));
        let diverted = divert.wants(method, &target, &headers);
        if let Framing::Length(n) = framing
            && n > diverted.unwrap_or(limits.body)
        {
            if diverted.is_some() {
                return Err(Fault::Bad(413, "the body is larger than artifacts.maxSize"));
            }
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
        let body = match diverted {
            Some(_) => self.pieces(framing, limits, divert).map(|()| Vec::new())?,
            None => self.body(framing, limits)?,
        };
        let keep_alive = head::keeps(&headers, minor);
        Ok(Request { method, target, headers, body, keep_alive, takes_chunks: minor == 1 })
    }

    /// The response to a request that was sent; interim (1xx) ones are skipped, except `101`.
    pub fn response(&mut self, limits: &Limits) -> Result<Response, Fault> {
        self.response_or_stream(limits, None)
    }

    /// The same, but a body that comes in chunks, with a status below 400, goes to
    /// `sink` chunk by chunk as it arrives; the response's own body is then empty.
    /// An error of the sink ends the reading.
    pub fn stream(&mut self, limits: &Limits, sink: Sink<'_>) -> Result<Response, Fault> {
        self.response_or_stream(limits, Some(sink))
    }

    fn response_or_stream(&mut self, limits: &Limits, sink: Option<Sink<'_>>) -> Result<Response, Fault> {
        loop {
            let end = self.head(limits)?;
            let text = head::head_text(&self.buffer[self.start..end])?;
            let mut lines = text.split("\r\n");
            let (status, minor) = head::status_line(lines.next().unwrap_or_default())?;
            let headers = head::header_lines(lines)?;
            self.start = end;
            if status == 101 {
                return Ok(Response { status, headers, body: Vec::new(), keep_alive: true });
            }
            if (100..200).contains(&status) {
                continue;
            }
            let framing = match status {
                204 | 304 => Framing::Length(0),
                _ => head::framing(&headers, minor)?.unwrap_or(Framing::Rest),
            };
            let body = match sink {
                Some(sink) if framing == Framing::Chunked && status < 400 => {
                    self.each_chunk(limits, sink)?;
                    Vec::new()
                }
                _ => self.body(framing, limits)?,
            };
            let keep_alive = head::keeps(&headers, minor) && framing != Framing::Rest;
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

    /// Hands a request's body over piece by piece; how much there may be is the taker's affair.
    fn pieces(&mut self, framing: Framing, limits: &Limits, divert: &mut dyn Divert) -> Result<(), Fault> {
        let mut pace = Pace::new(limits);
        let mut piece = Vec::new();
        match framing {
            Framing::Length(n) => self.each_piece(n, &mut piece, &mut pace, divert),
            Framing::Chunked => loop {
                let size = self.chunk_size(&mut pace)?;
                if size == 0 {
                    return self.chunk(0, &mut piece, limits, &mut pace).map(drop);
                }
                self.each_piece(size, &mut piece, &mut pace, divert)?;
                if !self.line(2, &mut pace)?.is_empty() {
                    return Err(MALFORMED);
                }
            },
            // A request has no such body.
            Framing::Rest => Ok(()),
        }
    }

    fn each_piece(
        &mut self,
        mut left: u64,
        piece: &mut Vec<u8>,
        pace: &mut Pace,
        divert: &mut dyn Divert,
    ) -> Result<(), Fault> {
        while left > 0 {
            let n = left.min(PIECE);
            piece.clear();
            self.exactly(n, piece, pace)?;
            divert.take(piece)?;
            left -= n;
        }
        Ok(())
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
        let mut pace = Pace::new(limits);
        let mut body = Vec::new();
        loop {
            let size = self.chunk_size(&mut pace)?;
            if size > limits.body.saturating_sub(body.len() as u64) {
                return Err(Fault::Bad(413, "the body is larger than transport.maxBody"));
            }
            if !self.chunk(size, &mut body, limits, &mut pace)? {
                return Ok(body);
            }
        }
    }

    /// A stream may be silent for as long as its source is; only each chunk is bounded.
    fn each_chunk(&mut self, limits: &Limits, sink: Sink<'_>) -> Result<(), Fault> {
        let mut chunk = Vec::new();
        loop {
            let mut pace = Pace::new(limits);
            let size = self.chunk_size(&mut pace)?;
            if size > limits.body {
                return Err(Fault::Bad(413, "the chunk is larger than the limit"));
            }
            chunk.clear();
            if !self.chunk(size, &mut chunk, limits, &mut pace)? {
                return Ok(());
            }
            sink(&chunk)?;
        }
    }

    /// The size that the next chunk announces; 0 for the end.
    fn chunk_size(&mut self, pace: &mut Pace) -> Result<u64, Fault> {
        let line = self.line(MAX_CHUNK_LINE, pace)?;
        let digits = line.split(';').next().unwrap_or_default().trim_end_matches([' ', '\t']);
        if digits.is_empty() || digits.len() > 15 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(MALFORMED);
        }
        u64::from_str_radix(digits, 16).map_err(|_| MALFORMED)
    }

    /// Appends a chunk of that size; false at the end, whose trailers are read and dropped.
    fn chunk(
        &mut self,
        size: u64,
        body: &mut Vec<u8>,
        limits: &Limits,
        pace: &mut Pace,
    ) -> Result<bool, Fault> {
        if size > 0 {
            self.exactly(size, body, pace)?;
            return if self.line(2, pace)?.is_empty() { Ok(true) } else { Err(MALFORMED) };
        }
        let mut trailers = 0;
        loop {
            let line = self.line(MAX_LINE, pace)?;
            if line.is_empty() {
                return Ok(false);
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

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|w| w == needle)
}
