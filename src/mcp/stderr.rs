//! Keeps the latest part of what a child writes to its standard error, to say
//! why it failed. Knows nothing of the child.

use crate::observe::log::Redactor;
use crate::proc::thread;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How much of it a message quotes: enough for a stack trace's first cause.
const QUOTED_LINES: usize = 12;
const QUOTED_BYTES: usize = 1500;

/// The latest bytes of a stream.
#[derive(Debug)]
pub(super) struct Tail {
    limit: usize,
    redactor: Redactor,
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    bytes: VecDeque<u8>,
    cut: bool,
    ended: bool,
}

impl Tail {
    /// Starts a thread that reads the stream to its end and keeps the last `limit` bytes; `heard` gets each line.
    /// What the redactor hides is in no text that it gives.
    pub fn follow(
        server: &str,
        mut stream: File,
        limit: usize,
        redactor: Redactor,
        heard: impl Fn(&str) + Send + 'static,
    ) -> io::Result<Arc<Tail>> {
        let tail = Arc::new(Tail { limit, redactor, state: Mutex::default(), ended: Condvar::new() });
        let kept = Arc::clone(&tail);
        thread::spawn(&format!("err {server}"), move || {
            let mut buffer = [0; 4096];
            let mut lines = Lines::default();
            loop {
                match stream.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(n) => {
                        kept.push(&buffer[..n]);
                        lines.feed(&buffer[..n], &heard);
                    }
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
            lines.end(&heard);
            kept.state().ended = true;
            kept.ended.notify_all();
        })?;
        Ok(tail)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, bytes: &[u8]) {
        let mut state = self.state();
        let latest = &bytes[bytes.len().saturating_sub(self.limit)..];
        let over = (state.bytes.len() + latest.len()).saturating_sub(self.limit);
        state.cut |= over > 0 || latest.len() < bytes.len();
        state.bytes.drain(..over);
        state.bytes.extend(latest);
    }

    /// Waits for the stream's end, so that the last words are in; but not for
    /// long: a stranger may hold the other end.
    pub fn settle(&self, at_most: Duration) {
        let deadline = Instant::now() + at_most;
        let mut state = self.state();
        while !state.ended {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self.ended.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// What is kept, beginning with a whole line.
    pub fn text(&self) -> String {
        let state = self.state();
        let bytes: Vec<u8> = state.bytes.iter().copied().collect();
        let whole = match bytes.iter().position(|&b| b == b'\n') {
            Some(end) if state.cut && end + 1 < bytes.len() => &bytes[end + 1..],
            _ => &bytes[..],
        };
        self.hide(&String::from_utf8_lossy(whole))
    }

    /// A text of the child's without its secrets.
    pub fn hide(&self, text: &str) -> String {
        self.redactor.hide(text.to_owned())
    }

    /// The last lines, to be quoted in a message; empty when there are none.
    pub fn last_lines(&self) -> Vec<String> {
        let text = self.text();
        let mut room = QUOTED_BYTES;
        let mut lines: Vec<String> = text
            .lines()
            .rev()
            .map(str::trim_end)
            .filter(|line| !line.is_empty())
            .take(QUOTED_LINES)
            .take_while(|line| {
                let fits = room > 0;
                room = room.saturating_sub(line.len());
                fits
            })
            .map(|line| super::error::printable(line, QUOTED_BYTES))
            .collect();
        lines.reverse();
        lines
    }
}

/// A line that is longer than this is handed over in parts.
const LONGEST_LINE: usize = 4096;

/// Cuts a stream into lines.
#[derive(Default)]
struct Lines(Vec<u8>);

impl Lines {
    fn feed(&mut self, bytes: &[u8], heard: &dyn Fn(&str)) {
        for part in bytes.split_inclusive(|b| *b == b'\n') {
            self.0.extend_from_slice(part);
            if part.ends_with(b"\n") || self.0.len() >= LONGEST_LINE {
                self.end(heard);
            }
        }
    }
    fn end(&mut self, heard: &dyn Fn(&str)) {
        let text = String::from_utf8_lossy(&self.0);
        let line = text.trim_end();
        if !line.is_empty() {
            heard(line);
        }
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::OwnedFd;

    fn tail(limit: usize, text: &[u8]) -> Arc<Tail> {
        let (reader, mut writer) = io::pipe().unwrap();
        let tail =
            Tail::follow("t", File::from(OwnedFd::from(reader)), limit, Redactor::new(["hunter22"]), |_| {})
                .unwrap();
        writer.write_all(text).unwrap();
        drop(writer);
        tail.settle(Duration::from_secs(20));
        tail
    }

    #[test]
    fn only_the_latest_whole_lines_are_kept() {
        assert_eq!(tail(100, b"one\ntwo\n").text(), "one\ntwo\n");
        assert_eq!(tail(10, b"one\ntwo\nthree\n").text(), "three\n");
        assert_eq!(tail(4, b"abcdefgh").text(), "efgh");
        assert_eq!(tail(0, b"abc").text(), "");
        let long = "x".repeat(100_000) + "\nend\n";
        assert_eq!(tail(16, long.as_bytes()).text(), "end\n");
    }

    #[test]
    fn quotes_are_few_and_safe_to_print() {
        let lines = tail(100_000, b"a\n\n\x1b[31mred\x1b[0m\n\xff\n").last_lines();
        assert_eq!(lines, ["a", "\u{fffd}[31mred\u{fffd}[0m", "\u{fffd}"]);
        assert_eq!(tail(100, b"token is hunter22\n").last_lines(), ["token is ********"]);
        assert_eq!(tail(100, b"token is hunter22\n").text(), "token is ********\n");
        let many: String = (0..100).map(|n| format!("line {n}\n")).collect();
        let lines = tail(100_000, many.as_bytes()).last_lines();
        assert_eq!(lines.len(), QUOTED_LINES);
        assert_eq!(lines.last().unwrap(), "line 99");
    }

    #[test]
    fn a_stream_is_heard_line_by_line() {
        let (reader, mut writer) = io::pipe().unwrap();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&lines);
        let heard = move |line: &str| into.lock().unwrap().push(line.to_owned());
        let tail =
            Tail::follow("t", File::from(OwnedFd::from(reader)), 10, Redactor::default(), heard).unwrap();
        let long = "x".repeat(LONGEST_LINE + 1);
        for part in ["one\r\n\ntw", "o\n", &long, "\nlast"] {
            writer.write_all(part.as_bytes()).unwrap();
        }
        drop(writer);
        tail.settle(Duration::from_secs(20));
        let heard = lines.lock().unwrap();
        assert_eq!(
            (heard[0].as_str(), heard[1].as_str(), heard.last().unwrap().as_str()),
            ("one", "two", "last")
        );
        assert_eq!(heard[2..heard.len() - 1].concat(), long);
    }
}
