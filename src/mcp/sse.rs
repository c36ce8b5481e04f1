//! Reads a stream of server-sent events (WHATWG HTML, "server-sent events").
//! Knows nothing of what they carry.

use std::io::{self, BufRead};
use std::time::Duration;

/// One event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Event {
    /// Its data; may be empty.
    pub data: Vec<u8>,
    /// Its id, for a later `Last-Event-ID`.
    pub id: Option<String>,
    /// How long the server wants to be left alone after the stream's end.
    pub retry: Option<Duration>,
}

/// What comes from the stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Event(Event),
    /// An event is over the limit; the rest of the stream is of no use.
    TooLarge,
    /// The stream is over. An event without its closing blank line is none.
    End,
}

pub(super) struct Events<R> {
    from: R,
    limit: usize,
    line: Vec<u8>,
    /// The last line ended with a carriage return: a line feed now belongs to it.
    after_return: bool,
    started: bool,
}

impl<R: BufRead> Events<R> {
    /// Reads events of at most `limit` bytes of data.
    pub fn new(from: R, limit: usize) -> Events<R> {
        Events { from, limit, line: Vec::new(), after_return: false, started: false }
    }

    /// The stream itself, wherever the last event ended.
    pub fn into_inner(self) -> R {
        self.from
    }

    /// Waits for the next event.
    pub fn next(&mut self) -> io::Result<Next> {
        let mut event = Event::default();
        let (mut any, mut has_data) = (false, false);
        loop {
            match self.read_line()? {
                Line::End => return Ok(Next::End),
                Line::TooLong => return Ok(Next::TooLarge),
                Line::Whole => {}
            }
            let mut line = &self.line[..];
            if !self.started {
                self.started = true;
                line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
            }
            if line.is_empty() {
                if any {
                    return Ok(Next::Event(event));
                }
                continue;
            }
            let (field, value) = match line.iter().position(|&b| b == b':') {
                Some(at) => (&line[..at], line[at + 1..].strip_prefix(b" ").unwrap_or(&line[at + 1..])),
                None => (line, &b""[..]),
            };
            match field {
                b"data" => {
                    if event.data.len() + value.len() >= self.limit {
                        return Ok(Next::TooLarge);
                    }
                    if has_data {
                        event.data.push(b'\n');
                    }
                    if event.data.is_empty() && value.len() > COPIED {
                        // The line's own memory, so that nothing big is there twice.
                        let skip = self.line.len() - value.len();
                        event.data = std::mem::take(&mut self.line);
                        event.data.drain(..skip);
                    } else {
                        event.data.extend_from_slice(value);
                    }
                    has_data = true;
                    any = true;
                }
                b"id" if !value.contains(&0) => {
                    event.id = Some(String::from_utf8_lossy(value).into_owned());
                    any = true;
                }
                b"retry" => {
                    let text = std::str::from_utf8(value).unwrap_or_default();
                    event.retry = text.parse().ok().map(Duration::from_millis);
                    any = true;
                }
                // Comments (an empty field), `event`, and what is not known.
                _ => {}
            }
        }
    }

    /// Reads one line into `self.line`, without its end.
    fn read_line(&mut self) -> io::Result<Line> {
        self.line.clear();
        loop {
            let bytes = match self.from.fill_buf() {
                Ok(bytes) => bytes,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            };
            if bytes.is_empty() {
                return Ok(Line::End);
            }
            let skip = usize::from(std::mem::take(&mut self.after_return) && bytes[0] == b'\n');
            let rest = &bytes[skip..];
            let end = line_end(rest);
            self.line.extend_from_slice(&rest[..end.unwrap_or(rest.len())]);
            self.after_return = end.is_some_and(|at| rest[at] == b'\r');
            let taken = skip + end.map_or(rest.len(), |at| at + 1);
            self.from.consume(taken);
            if end.is_some() {
                return Ok(Line::Whole);
            }
            // A field's name and blank are short.
            if self.line.len() > self.limit.saturating_add(16) {
                return Ok(Line::TooLong);
            }
        }
    }
}

/// Lines above this size are taken over instead of copied.
const COPIED: usize = 64 * 1024;

enum Line {
    Whole,
    TooLong,
    End,
}

/// Where the line ends. `contains` on bytes is a memchr.
fn line_end(bytes: &[u8]) -> Option<usize> {
    let mut before = 0;
    for block in bytes.chunks(256) {
        if block.contains(&b'\n') || block.contains(&b'\r') {
            return block.iter().position(|b| matches!(b, b'\n' | b'\r')).map(|at| before + at);
        }
        before += block.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufReader, Read};

    /// Gives its bytes in pieces of at most `n`.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let n = self.1.min(self.0.len()).min(buffer.len());
            buffer[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    fn data(text: &str, limit: usize) -> Vec<String> {
        let mut all: Vec<Vec<String>> = [1, 2, 3, 1000]
            .iter()
            .map(|&n| {
                let mut events = Events::new(BufReader::new(Pieces(text.as_bytes(), n)), limit);
                let mut seen = Vec::new();
                loop {
                    match events.next().unwrap() {
                        Next::Event(e) => {
                            let retry = e.retry.map(|r| format!(" {r:?}")).unwrap_or_default();
                            let id = e.id.map(|id| format!("#{id} ")).unwrap_or_default();
                            seen.push(format!("{id}{}{retry}", String::from_utf8(e.data).unwrap()));
                        }
                        Next::TooLarge => {
                            seen.push("too large".into());
                            return seen;
                        }
                        Next::End => return seen,
                    }
                }
            })
            .collect();
        assert!(all.windows(2).all(|w| w[0] == w[1]), "{all:?}");
        all.remove(0)
    }

    #[test]
    fn events_are_read_however_they_are_cut_and_ended() {
        assert_eq!(data("data: a\n\ndata:b\ndata:  c\n\n", 100), ["a", "b\n c"]);
        assert_eq!(data("data: a\r\n\r\ndata: b\r\rdata: c\n\n", 100), ["a", "b", "c"]);
        assert_eq!(data("\u{feff}data: a\n\n: comment\n\nevent: message\ndata\n\n", 100), ["a", ""]);
    }

    #[test]
    fn ids_and_retries_come_along_and_the_unfinished_does_not() {
        assert_eq!(data("id: 7\nretry: 250\ndata:\n\ndata: x\nid: 8\n\n", 100), ["#7  250ms", "#8 x"]);
        assert_eq!(data("data: whole\n\ndata: half\n", 100), ["whole"]);
        assert_eq!(data("retry: soon\nid: a\0b\n\n", 100), [""]);
    }

    #[test]
    fn what_is_over_the_limit_is_said() {
        let text = format!("data: small\n\ndata: {}\n\n", "x".repeat(500));
        assert_eq!(data(&text, 100), ["small", "too large"]);
        assert_eq!(data(&"data: 123456789\n".repeat(20), 100), ["too large"]);
        let big = format!("data: {}\ndata: y\n\n", "x".repeat(COPIED * 2));
        assert_eq!(data(&big, 1 << 20), [format!("{}\ny", "x".repeat(COPIED * 2))]);
    }

    #[test]
    fn mutated_streams_give_the_same_events_however_they_are_cut() {
        let corpus: [&[u8]; 5] = [
            b"event: message\nid: 4\ndata: {\"jsonrpc\":\"2.0\"}\n\n",
            b"\xef\xbb\xbf: hello\r\nretry: 1500\r\ndata\r\ndata: a\r\ndata:  b\r\n\r\n",
            b"data: one\rdata: two\r\rid: \0\ndata: x\n\n",
            b"data: {\"a\":[1,2]}\n\n\n\ndata: last",
            b"id\nretry: x\nunknown: y\ndata:\n\n",
        ];
        fn events<R: BufRead>(from: R) -> (Vec<Event>, bool) {
            let (mut all, mut events) = (Vec::new(), Events::new(from, 4096));
            loop {
                match events.next().expect("bytes in memory") {
                    Next::Event(event) => all.push(event),
                    end => return (all, end == Next::End),
                }
            }
        }
        crate::util::mutate::each(&corpus, |stream| {
            let whole = events(stream);
            let mut pieces = crate::util::mutate::Pieces::new(stream);
            let cut = events(std::io::BufReader::with_capacity(16, &mut pieces));
            assert_eq!(whole, cut);
            assert!(pieces.reads <= 2 * stream.len() + 2, "nothing is read twice");
            assert!(whole.0.iter().map(|event| event.data.len()).sum::<usize>() <= stream.len());
            assert!(whole.0.iter().all(|event| event.data.len() <= 4096));
        });
    }
}
