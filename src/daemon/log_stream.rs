//! The log as it is read over HTTP one record a line: what there is, and, where
//! that is asked for, what comes. Knows nothing of what records mean.

use super::router::Response;
use super::state::Daemon;
use crate::api::http::{Chunked, LINES};
use crate::mcp::Cancel;
use crate::observe::log::{Follower, MOST, Query, Snapshot, every, newest};
use crate::proc::thread;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How often the files are looked at for what came: fast enough for a person, and next to nothing to do.
const LOOK: Duration = Duration::from_millis(200);

/// So many bytes of records are sent at once.
const BATCH: usize = 64 * 1024;

/// Which records are sent, and how.
pub struct Wish {
    /// Which.
    pub query: Query,
    /// The newest so many; 0: every one.
    pub limit: usize,
    /// Goes on with what comes. An empty line says that nothing did.
    pub follow: bool,
    /// How often something is sent at least while it goes on.
    pub heartbeat: Duration,
}

/// The records as a response that is made while it is sent. It ends with the
/// daemon, or when the asker leaves.
///
/// # Errors
/// When the log cannot be read; once the response has begun, that breaks it off.
pub fn response(daemon: &Arc<Daemon>, wish: Wish, cancel: Cancel) -> io::Result<Response> {
    let snapshot = Arc::new(Snapshot::take(daemon.logs.journal.dir())?);
    let daemon = daemon.clone();
    let producer = move |out: &mut Chunked<'_>| {
        let dir = daemon.logs.journal.dir();
        let (left, leaving) = mpsc::channel();
        let _guard = cancel.on_cancel(move || {
            let _ = left.send(());
        });
        let mut lines = Lines { out, text: Vec::new() };
        first(&snapshot, &wish, &mut lines)?;
        if !wish.follow {
            return lines.flush();
        }
        // Something at once, so that the reader knows that it is being served.
        lines.still_here()?;
        follow(dir, &snapshot, &wish, &mut lines, &leaving, &|| daemon.is_stopping())
    };
    Ok(Response::stream(LINES, Box::new(producer)))
}

/// Sends what there is.
fn first(snapshot: &Arc<Snapshot>, wish: &Wish, lines: &mut Lines<'_, '_>) -> io::Result<()> {
    // What is sent as it is found needs no memory, and so has no limit.
    if wish.limit == 0 && !wish.follow {
        let mut sent = Ok(());
        every(snapshot, &wish.query, &mut |line| {
            sent = lines.line(line);
            sent.is_ok()
        })?;
        return sent;
    }
    let limit = if wish.limit == 0 { MOST } else { wish.limit };
    newest(snapshot, &wish.query, limit, thread::spawn)?.iter().try_for_each(|line| lines.line(line))
}

/// Sends what comes.
fn follow(
    dir: &Path,
    snapshot: &Snapshot,
    wish: &Wish,
    lines: &mut Lines<'_, '_>,
    leaving: &Receiver<()>,
    over: &dyn Fn() -> bool,
) -> io::Result<()> {
    let mut follower = Follower::after(dir, snapshot);
    let mut said = Instant::now();
    loop {
        if leaving.recv_timeout(LOOK) != Err(RecvTimeoutError::Timeout) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        // Seen before the look, so that what was written until then is shown.
        let last = over();
        for line in follower.look(&wish.query)? {
            lines.line(&line)?;
            said = Instant::now();
        }
        lines.flush()?;
        if last {
            return Ok(());
        }
        if said.elapsed() >= wish.heartbeat {
            lines.still_here()?;
            said = Instant::now();
        }
    }
}

/// Lines on their way, several in a chunk.
struct Lines<'a, 'b> {
    out: &'a mut Chunked<'b>,
    text: Vec<u8>,
}

impl Lines<'_, '_> {
    fn line(&mut self, line: &str) -> io::Result<()> {
        self.text.extend_from_slice(line.as_bytes());
        self.text.push(b'\n');
        if self.text.len() >= BATCH { self.flush() } else { Ok(()) }
    }

    fn still_here(&mut self) -> io::Result<()> {
        self.text.push(b'\n');
        self.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        let sent = self.out.send(&self.text);
        self.text.clear();
        sent
    }
}
