//! mcpx as an MCP server over a pair of streams: one message a line, answers in
//! any order. Knows nothing of what is asked.

use super::backend::{Out, Outlet};
use super::fault::Fault;
use super::session::{Incoming, Request, Session};
use crate::log;
use crate::proc::thread;
use std::io::{self, BufRead, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Requests that are carried out at once. Each has a thread; a host that sends
/// more is answered that it is too fast, which none has been seen to be.
const MOST: usize = 512;
/// What was asked is still answered when the host has closed its end, as it is
/// when requests come from a file; but what takes longer than this is cancelled.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Serves until `input` ends or `output` can no longer be written, and returns the
/// process's exit code: 0, or 1 when reading failed. `largest` bounds a message, in bytes.
pub fn run(
    session: &Arc<Session>,
    mut input: impl BufRead,
    output: impl Write + Send + 'static,
    largest: u64,
) -> u8 {
    let writer = Arc::new(Writer { stream: Mutex::new(Box::new(output)), gone: AtomicBool::new(false) });
    let out: Out = writer.clone();
    session.ears.set_general(Some(out.clone()));
    let working = Arc::new(Working::default());
    let mut line = Vec::new();
    let code = loop {
        match next(&mut input, &mut line, largest) {
            Ok(Line::Whole) => {}
            Ok(Line::TooLong(bytes)) => {
                let fault = Fault::request(format!(
                    "the message has {bytes} bytes, more than the {largest} that transport.maxBody allows"
                ));
                out.send(&fault.answer(None));
                continue;
            }
            Ok(Line::End) => break 0,
            Err(e) => {
                log::error(format_args!("reading from the host: {e}"));
                break 1;
            }
        }
        if writer.gone.load(Ordering::SeqCst) {
            break 0;
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        for incoming in session.read(&line) {
            match incoming {
                Incoming::Request(request) => begin(session, request, &out, &working),
                Incoming::Notification { method, params } => session.notice(&method, params.as_deref()),
                Incoming::Bad(answer) => drop(out.send(&answer)),
            }
        }
    };
    // Calls too: what was asked before the end is answered or refused, never the one or the other by chance.
    working.wait(LAST_WORDS);
    session.hang_up_calls();
    working.wait(LAST_WORDS);
    session.end();
    code
}

/// What was read.
enum Line {
    Whole,
    /// So many bytes, which were not kept.
    TooLong(u64),
    End,
}

/// Reads a line without its end; one over the limit is read to its end and dropped.
fn next(input: &mut impl BufRead, line: &mut Vec<u8>, largest: u64) -> io::Result<Line> {
    line.clear();
    let mut length = 0u64;
    loop {
        let chunk = match input.fill_buf() {
            Ok(chunk) => chunk,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        let end = chunk.iter().position(|b| *b == b'\n');
        let part = &chunk[..end.unwrap_or(chunk.len())];
        length += part.len() as u64;
        if length <= largest {
            line.extend_from_slice(part);
        } else {
            *line = Vec::new();
        }
        let (used, over) = (part.len() + usize::from(end.is_some()), end.is_some() || chunk.is_empty());
        let at_end = chunk.is_empty() && length == 0;
        input.consume(used);
        if at_end {
            return Ok(Line::End);
        }
        if over {
            return Ok(if length > largest { Line::TooLong(length) } else { Line::Whole });
        }
    }
}

/// Carries out a request on a thread of its own, so that a cancellation can be read meanwhile.
/// `initialize` is not overtaken by what follows it.
fn begin(session: &Arc<Session>, request: Request, out: &Out, working: &Arc<Working>) {
    if request.method == "initialize" {
        return answer(session, &request, out);
    }
    let Some(place) = Place::take(working) else {
        let fault =
            Fault::internal(format!("{MOST} requests are being carried out; this one is one too many"));
        out.send(&fault.answer(Some(&request.id)));
        return;
    };
    let id = request.id.clone();
    let (inside, there) = (session.clone(), out.clone());
    let spawned = thread::spawn("serve", move || {
        answer(&inside, &request, &there);
        drop(place);
    });
    if let Err(e) = spawned {
        out.send(&Fault::internal(format!("starting a thread: {e}")).answer(Some(&id)));
    }
}

fn answer(session: &Session, request: &Request, out: &Out) {
    let line = match session.enter(request) {
        Ok(flight) => session.answer(request, &flight.cancel, out).line,
        Err(fault) => Some(fault.answer(Some(&request.id))),
    };
    if let Some(line) = line {
        out.send(&line);
    }
}

/// The host's end of the output.
struct Writer {
    stream: Mutex<Box<dyn Write + Send>>,
    gone: AtomicBool,
}

impl Outlet for Writer {
    fn send(&self, line: &[u8]) -> bool {
        // One at a time, so that no two messages mix.
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        let written = stream.write_all(line).and_then(|()| stream.flush());
        if let Err(e) = written
            && !self.gone.swap(true, Ordering::SeqCst)
        {
            log::debug(format_args!("the host reads no longer: {e}"));
        }
        !self.gone.load(Ordering::SeqCst)
    }
}

/// How many requests are being carried out.
#[derive(Default)]
struct Working {
    count: AtomicUsize,
    lock: Mutex<()>,
    changed: Condvar,
}

impl Working {
    /// Waits until none is, but not for long.
    fn wait(&self, limit: Duration) {
        let until = Instant::now() + limit;
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        while self.count.load(Ordering::SeqCst) > 0 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            guard = self.changed.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// A request's place among them.
struct Place(Arc<Working>);

impl Place {
    fn take(working: &Arc<Working>) -> Option<Place> {
        let before = working.count.fetch_add(1, Ordering::SeqCst);
        let place = Place(working.clone());
        (before < MOST).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _guard = self.0.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.count.fetch_sub(1, Ordering::SeqCst);
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Played, session};
    use super::*;
    use serde_json::Value;

    /// What was written.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);
    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn talk(input: &[u8], largest: u64) -> Vec<Value> {
        let kept = Kept::default();
        let session = Arc::new(session(Played::default()));
        assert_eq!(run(&session, input, kept.clone(), largest), 0);
        let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
    }

    #[test]
    fn requests_from_a_file_are_answered_before_it_ends() {
        let lines = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\"}}\n\n \r\n{\"jsonrpc\":\"2.0\",\"id\":\"l\",\"method\":\"tools/list\"}\nnonsense\n{\"id\":3,\"method\":\"ping\"}";
        let mut answers = talk(lines, 10_000);
        answers.sort_by_key(|a| a["id"].to_string());
        let ids: Vec<String> = answers.iter().map(|a| a["id"].to_string()).collect();
        assert_eq!(ids, ["\"l\"", "1", "3", "null"]);
        assert!(answers[0]["result"]["tools"].is_array());
        assert_eq!(answers[3]["error"]["code"], -32700);
    }

    #[test]
    fn an_overlong_line_is_refused_and_the_next_one_read() {
        let mut lines = format!("{{\"id\":1,\"method\":\"{}\"}}\n", "x".repeat(500)).into_bytes();
        lines.extend_from_slice(b"{\"id\":2,\"method\":\"ping\"}\n");
        let answers = talk(&lines, 100);
        assert_eq!(answers.len(), 2);
        assert!(
            answers[0]["error"]["message"].as_str().unwrap().contains("transport.maxBody"),
            "{answers:?}"
        );
        assert_eq!(answers[1]["id"], 2);
    }

    #[test]
    fn a_host_that_reads_no_longer_ends_it() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let session = Arc::new(session(Played::default()));
        let endless = "nonsense\n".repeat(1000);
        assert_eq!(run(&session, endless.as_bytes(), Closed, 100), 0);
    }
}
