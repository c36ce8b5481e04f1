//! Carries out a plan: writes the generated files that are missing, starts the
//! program in its own process group, forwards signals, keeps the time-out, and
//! collects its output where that was asked for. Prints nothing: what appears
//! on stderr goes to the caller piece by piece.

use super::launcher::{Content, Generated};
use super::plan::{CHANNEL, Plan};
use super::records::{LogRecord, Piece, Splitter};
use crate::error::{Error, Kind, Result};
use crate::proc::{self, Exit};
use crate::util::write_atomic;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{IsTerminal, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// How long to wait for the end of the output after the script has ended: a
/// process that it left in a session of its own may hold the pipe for ever.
const DRAIN: Duration = Duration::from_secs(2);

/// Programs that hand on a signal to a process and to its group make two of one.
const SAME_INTERRUPT: Duration = Duration::from_millis(100);

/// What a log record takes besides its message, roughly.
const RECORD_ROOM: usize = 64;

/// Entries that were not written anew for so long are removed.
const KEEP_ENTRIES: Duration = Duration::from_secs(14 * 24 * 3600);

/// The exit code of a run whose reader has left: that of SIGPIPE.
const READER_LEFT: u8 = 128 + 13;

/// How a run ended.
#[derive(Debug)]
pub struct Outcome {
    /// The exit code that the command ends with: the script's own, 128+n for signal n, 124 for a time-out.
    pub exit_code: u8,
    /// How long it took.
    pub duration: Duration,
    /// deno, bun, node, or the interpreter's name.
    pub runtime: String,
    /// Why it did not end by itself: a time-out or a signal.
    pub ended: Option<Error>,
    /// What was collected, when that was asked for.
    pub captured: Option<Captured>,
}

/// What a run left, when it was collected.
#[derive(Debug, Default)]
pub struct Captured {
    /// The script's value, as JSON.
    pub result: Option<Box<RawValue>>,
    /// What it emitted, in order.
    pub results: Vec<Box<RawValue>>,
    /// The artifacts that it gave, in order.
    pub artifacts: Vec<Box<RawValue>>,
    /// Its log records, in order.
    pub logs: Vec<LogRecord>,
    /// What it threw: `{kind, name?, message, …}`.
    pub error: Option<Value>,
    /// Its stdout.
    pub stdout: Vec<u8>,
    /// Its stderr without the records.
    pub stderr: Vec<u8>,
    /// Which of the parts were cut at the limit.
    pub truncated: Vec<&'static str>,
    spent: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    ok: bool,
    exit_code: u8,
    duration_ms: f64,
    runtime: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
    results: &'a [Box<RawValue>],
    logs: &'a [LogRecord],
    artifacts: &'a [Box<RawValue>],
    stdout: std::borrow::Cow<'a, str>,
    stderr: std::borrow::Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    truncated: &'a [&'static str],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    hooks: &'a [Value],
}

impl Outcome {
    /// Why it failed, if it did: `{kind, message, …}`.
    pub fn error(&self) -> Option<Value> {
        let thrown = self.captured.as_ref().and_then(|c| c.error.as_ref());
        match (&self.ended, thrown, self.exit_code) {
            (Some(ended), ..) => Some(ended.to_json()),
            (None, Some(error), _) => Some(error.clone()),
            (None, None, 0) => None,
            (None, None, code) => {
                Some(json!({"kind": "script", "message": format!("the script ended with exit code {code}")}))
            }
        }
    }

    /// The run as one JSON document: `{ok, exitCode, durationMs, runtime, result?, results[], logs[], artifacts[], stdout, stderr, error?, truncated[]?}`.
    pub fn document(&self) -> Result<String> {
        self.document_with(&[])
    }

    /// The same with what became of hooks that failed, where there were any: `hooks[]`.
    pub fn document_with(&self, hooks: &[Value]) -> Result<String> {
        let empty = Captured::default();
        let captured = self.captured.as_ref().unwrap_or(&empty);
        let error = self.error();
        let document = Document {
            ok: self.exit_code == 0,
            exit_code: self.exit_code,
            duration_ms: (self.duration.as_secs_f64() * 1e6).round() / 1e3,
            runtime: &self.runtime,
            result: captured.result.as_deref(),
            results: &captured.results,
            logs: &captured.logs,
            artifacts: &captured.artifacts,
            stdout: String::from_utf8_lossy(&captured.stdout),
            stderr: String::from_utf8_lossy(&captured.stderr),
            error,
            truncated: &captured.truncated,
            hooks,
        };
        serde_json::to_string(&document)
            .map_err(|e| Error::new(Kind::Internal, format!("writing the document of a run: {e}")))
    }
}

/// Runs a plan to its end. `feed` gets stderr when the output is passed through and the client
/// sends records, and both when they are watched; else they go where those of mcpx go.
///
/// # Errors
/// `Unavailable` when a generated file cannot be written, `NoScript` when the program cannot be started.
pub fn execute(mut plan: Plan, feed: Feed) -> Result<Outcome> {
    let fresh = write_files(&plan.files)?;
    let started = Instant::now();
    // On a terminal the script stays in our group: only the foreground group may
    // read from it, and Ctrl-C and Ctrl-Z then reach both of us as they should.
    let interactive = std::io::stdin().is_terminal();
    let heard = plan.capture || plan.watched;
    let piped = heard || plan.records;
    let child = proc::spawn(proc::Spawn {
        program: plan.program.clone(),
        args: std::mem::take(&mut plan.argv),
        env: std::mem::take(&mut plan.env),
        cwd: Some(plan.cwd.clone()),
        stdin: proc::Io::Inherit,
        stdout: if heard { proc::Io::Piped } else { proc::Io::Inherit },
        stderr: if piped { proc::Io::Piped } else { proc::Io::Inherit },
        fds: plan.channel.take().map(|fd| (fd, CHANNEL)).into_iter().collect(),
        own_group: !interactive,
        own_session: false,
        die_with_parent: true,
        marked: false,
    })
    .map_err(|e| Error::new(Kind::NoScript, format!("starting the script: {e}")))?;
    let signals = forward_signals(&child, interactive, plan.kill_grace)?;
    let captured = plan.capture.then(|| Arc::new(Mutex::new(Captured::default())));
    let left = Arc::new(AtomicBool::new(false));
    let readers = read_output(&child, &plan, Some(feed), &left, &captured)?;
    let (exit, late) = wait(&child, plan.timeout, plan.kill_grace);
    drain(readers);
    let duration = started.elapsed();
    if fresh {
        sweep(&plan.entry);
    }
    let (exit_code, ended) = conclude(exit, plan.timeout.filter(|_| late), &left, &signals);
    let captured = captured.map(|c| std::mem::take(&mut *c.lock().unwrap_or_else(PoisonError::into_inner)));
    Ok(Outcome { exit_code, duration, runtime: plan.runtime, ended, captured })
}

/// What a run says, piece by piece.
#[derive(Debug)]
pub enum Fed<'a> {
    /// Standard output.
    Stdout(&'a [u8]),
    /// Standard error, without records.
    Stderr(&'a [u8]),
    /// A log record.
    Log(&'a LogRecord),
    /// The reference to something that it gave to be kept.
    Artifact(&'a RawValue),
}

/// Takes what a run says; called from other threads, one at a time. False when nobody reads it any
/// more, which ends the run.
pub type Feed = Arc<Mutex<dyn FnMut(Fed) -> bool + Send>>;

/// How a run is attended that belongs to no terminal.
pub struct Attended<'a> {
    /// Its standard input.
    pub stdin: Vec<u8>,
    /// Takes its output as it comes, when the plan does not collect it.
    pub feed: Option<Feed>,
    /// Is shown the process once it runs, and keeps what ends it when nobody wants it any more.
    pub started: &'a mut dyn FnMut(&proc::Child),
}

/// Runs a plan for somebody who is not this process's own user: in a process group of its
/// own, without a terminal and without this process's signals.
///
/// # Errors
/// As [`execute`].
pub fn attend(mut plan: Plan, attended: Attended) -> Result<Outcome> {
    let fresh = write_files(&plan.files)?;
    let started = Instant::now();
    let child = proc::spawn(proc::Spawn {
        program: plan.program.clone(),
        args: std::mem::take(&mut plan.argv),
        env: std::mem::take(&mut plan.env),
        cwd: Some(plan.cwd.clone()),
        stdin: proc::Io::Piped,
        stdout: proc::Io::Piped,
        stderr: proc::Io::Piped,
        fds: plan.channel.take().map(|fd| (fd, CHANNEL)).into_iter().collect(),
        own_group: true,
        own_session: false,
        die_with_parent: true,
        marked: false,
    })
    .map_err(|e| Error::new(Kind::NoScript, format!("starting the script: {e}")))?;
    (attended.started)(&child);
    let fail = |e| Error::new(Kind::Unavailable, format!("starting a thread: {e}"));
    if let Some(mut stdin) = child.take_stdin() {
        let bytes = attended.stdin;
        // A script that does not read it breaks the pipe, which is its right.
        proc::thread::spawn("script-in", move || drop(stdin.write_all(&bytes))).map_err(fail)?;
    }
    let captured = plan.capture.then(|| Arc::new(Mutex::new(Captured::default())));
    let left = Arc::new(AtomicBool::new(false));
    let readers = read_output(&child, &plan, attended.feed, &left, &captured)?;
    let (exit, late) = wait(&child, plan.timeout, plan.kill_grace);
    drain(readers);
    if fresh {
        sweep(&plan.entry);
    }
    let (exit_code, ended) = conclude(exit, plan.timeout.filter(|_| late), &left, &Forwarded::default());
    let captured = captured.map(|c| std::mem::take(&mut *c.lock().unwrap_or_else(PoisonError::into_inner)));
    Ok(Outcome { exit_code, duration: started.elapsed(), runtime: plan.runtime, ended, captured })
}

/// Reads what is piped of a script's output: into `captured` where the run is collected, else to `feed`.
fn read_output(
    child: &proc::Child,
    plan: &Plan,
    feed: Option<Feed>,
    left: &Arc<AtomicBool>,
    captured: &Option<Arc<Mutex<Captured>>>,
) -> Result<Vec<Reader>> {
    let leave = {
        let (left, child, grace) = (left.clone(), child.clone(), plan.kill_grace);
        move || {
            if !left.swap(true, Ordering::Relaxed) {
                end_within(&child, grace);
            }
        }
    };
    let fed = move |feed: &Option<Feed>, piece: Fed| match feed {
        Some(feed) => (feed.lock().unwrap_or_else(PoisonError::into_inner))(piece),
        None => true,
    };
    let mut readers = Vec::new();
    if let Some(stdout) = child.take_stdout() {
        let (captured, limit, feed, leave) =
            (captured.clone(), plan.capture_limit, feed.clone(), leave.clone());
        readers.push(reader("script-out", stdout, move |bytes| match &captured {
            Some(captured) => {
                let captured = &mut *captured.lock().unwrap_or_else(PoisonError::into_inner);
                keep(&mut captured.stdout, bytes, limit, "stdout", &mut captured.truncated);
            }
            None if bytes.is_empty() || fed(&feed, Fed::Stdout(bytes)) => {}
            None => leave(),
        })?);
    }
    if let Some(stderr) = child.take_stderr() {
        let sink = move |piece: Fed| fed(&feed, piece);
        readers.push(read_stderr(stderr, sink, leave, captured.clone(), plan.capture_limit)?);
    }
    Ok(readers)
}

/// Waits for the end of the output.
fn drain(readers: Vec<Reader>) {
    let deadline = Instant::now() + DRAIN;
    for Reader { end, busy } in readers {
        let mut left = deadline.saturating_duration_since(Instant::now());
        // What has arrived is taken in whole, however long that takes.
        while end.recv_timeout(left) == Err(RecvTimeoutError::Timeout) && busy.load(Ordering::Relaxed) {
            left = DRAIN;
        }
    }
}

/// The exit code, and why the script did not end by itself; `late` is the limit that it exceeded.
fn conclude(
    exit: Exit,
    late: Option<Duration>,
    left: &AtomicBool,
    signals: &Forwarded,
) -> (u8, Option<Error>) {
    if let Some(limit) = late {
        let limit = crate::settings::duration_text(limit);
        let message = format!("the script was still running after {limit} and was stopped");
        return (124, Some(Error::new(Kind::Timeout, message).hint("--timeout sets the limit; 0 is none")));
    }
    let asked = signals.latest.load(Ordering::Relaxed);
    match exit {
        Exit::Signal(_) if left.load(Ordering::Relaxed) => (READER_LEFT, None),
        Exit::Signal(libc::SIGKILL) if signals.given_up.load(Ordering::Relaxed) => {
            let exit = Exit::Signal(libc::SIGINT);
            (exit.code(), Some(Error::new(Kind::Cancelled, "the script ignored an interrupt and was killed")))
        }
        // Some runtimes catch the signal and end with its code.
        _ if asked != 0 && exit.code() == Exit::Signal(asked).code() => {
            (exit.code(), Some(Error::new(Kind::Cancelled, "the script was interrupted")))
        }
        Exit::Signal(_) => {
            (exit.code(), Some(Error::new(Kind::Script, format!("the script was ended by {exit}"))))
        }
        _ => (exit.code(), None),
    }
}

/// Waits for the end; true when the time-out brought it about.
fn wait(child: &proc::Child, timeout: Option<Duration>, grace: Duration) -> (Exit, bool) {
    let Some(timeout) = timeout else { return (child.wait(), false) };
    if let Some(exit) = child.wait_timeout(timeout) {
        return (exit, false);
    }
    child.signal_group(libc::SIGTERM);
    if let Some(exit) = child.wait_timeout(grace) {
        return (exit, true);
    }
    child.signal_group(libc::SIGKILL);
    (child.wait(), true)
}

/// What this process was told while the script ran.
#[derive(Default)]
struct Forwarded {
    /// The signal that came last; 0 for none.
    latest: AtomicI32,
    /// Asking again did not help, and the script was killed.
    given_up: AtomicBool,
}

/// Hands on what asks this process to end. On a terminal Ctrl-C has reached the
/// script already. A script that stays in spite of SIGTERM is killed after `grace`,
/// and one that stays in spite of SIGINT by the second of them, which the flag tells.
fn forward_signals(child: &proc::Child, interactive: bool, grace: Duration) -> Result<Arc<Forwarded>> {
    let forward = |e| Error::new(Kind::Internal, format!("forwarding signals: {e}"));
    let signals = proc::signals::install(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP]).map_err(forward)?;
    let child = child.clone();
    let forwarded = Arc::new(Forwarded::default());
    let seen = forwarded.clone();
    proc::thread::spawn("script-signals", move || {
        let mut doomed = false;
        let mut interrupted: Option<Instant> = None;
        loop {
            let signal = signals.recv();
            seen.latest.store(signal, Ordering::Relaxed);
            if signal == libc::SIGINT {
                let first = *interrupted.get_or_insert_with(Instant::now);
                if first.elapsed() > SAME_INTERRUPT {
                    seen.given_up.store(true, Ordering::Relaxed);
                    child.signal_group(libc::SIGKILL);
                    continue;
                }
            }
            if !(interactive && signal == libc::SIGINT) {
                child.signal_group(signal);
            }
            if signal == libc::SIGTERM && !doomed {
                doomed = kill_after(&child, grace);
            }
        }
    })
    .map_err(forward)?;
    Ok(forwarded)
}

/// Asks a script to end, and makes it when it stays.
fn end_within(child: &proc::Child, grace: Duration) {
    child.signal_group(libc::SIGTERM);
    kill_after(child, grace);
}

/// Kills a script that is still there after `grace`.
fn kill_after(child: &proc::Child, grace: Duration) -> bool {
    let child = child.clone();
    proc::thread::spawn("script-killer", move || {
        if child.wait_timeout(grace).is_none() {
            child.signal_group(libc::SIGKILL);
        }
    })
    .is_ok()
}

/// A thread that reads a stream.
struct Reader {
    /// Hears of the stream's end.
    end: Receiver<()>,
    /// It is taking in what it has read.
    busy: Arc<AtomicBool>,
}

/// Reads a stream to its end in a thread.
fn reader(name: &str, mut file: File, mut take: impl FnMut(&[u8]) + Send + 'static) -> Result<Reader> {
    let (done, end) = mpsc::channel();
    let busy = Arc::new(AtomicBool::new(false));
    let taking = busy.clone();
    proc::thread::spawn(name, move || {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => {
                    taking.store(true, Ordering::Relaxed);
                    take(&buffer[..count]);
                    taking.store(false, Ordering::Relaxed);
                }
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        take(&[]);
        let _ = done.send(());
    })
    .map_err(|e| Error::new(Kind::Unavailable, format!("starting a thread: {e}")))?;
    Ok(Reader { end, busy })
}

fn read_stderr(
    file: File,
    sink: impl Fn(Fed) -> bool + Send + 'static,
    leave: impl Fn() + Send + 'static,
    captured: Option<Arc<Mutex<Captured>>>,
    limit: u64,
) -> Result<Reader> {
    let mut splitter = Splitter::default();
    reader("script-err", file, move |bytes| {
        let mut out = |piece: Piece| {
            if let Some(captured) = &captured {
                return captured.lock().unwrap_or_else(PoisonError::into_inner).take(piece, limit);
            }
            let wanted = match piece {
                Piece::Text(text) => sink(Fed::Stderr(text)),
                Piece::Log(record) => sink(Fed::Log(&record)),
                Piece::Artifact(value) => sink(Fed::Artifact(&value)),
                // Only a run that is collected sends those.
                Piece::Result(_) | Piece::Emit(_) | Piece::Error(_) => true,
            };
            if !wanted {
                leave();
            }
        };
        if bytes.is_empty() { splitter.end(&mut out) } else { splitter.feed(bytes, &mut out) }
    })
}

impl Captured {
    fn take(&mut self, piece: Piece, limit: u64) {
        match piece {
            Piece::Text(text) => keep(&mut self.stderr, text, limit, "stderr", &mut self.truncated),
            // Whole, however large: it is what the run is for.
            Piece::Result(value) => self.result = Some(value),
            Piece::Error(error) => self.error = Some(error),
            Piece::Emit(value) => {
                if self.room(value.get().len(), limit, "results") {
                    self.results.push(value);
                }
            }
            Piece::Artifact(value) => {
                if self.room(value.get().len(), limit, "artifacts") {
                    self.artifacts.push(value);
                }
            }
            Piece::Log(mut record) => {
                // The first that does not fit is cut, like other output.
                let left = usize::try_from(limit).unwrap_or(usize::MAX).saturating_sub(self.spent);
                if left > RECORD_ROOM && !self.room(record.message.len() + RECORD_ROOM, limit, "logs") {
                    record.message.truncate(record.message.floor_char_boundary(left - RECORD_ROOM));
                    self.logs.push(record);
                } else if left > RECORD_ROOM {
                    self.logs.push(record);
                } else {
                    mark(&mut self.truncated, "logs");
                }
            }
        }
    }

    fn room(&mut self, size: usize, limit: u64, part: &'static str) -> bool {
        self.spent += size;
        let room = self.spent as u64 <= limit;
        if !room {
            mark(&mut self.truncated, part);
        }
        room
    }
}

fn keep(kept: &mut Vec<u8>, bytes: &[u8], limit: u64, part: &'static str, truncated: &mut Vec<&'static str>) {
    let room = usize::try_from(limit).unwrap_or(usize::MAX).saturating_sub(kept.len());
    kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
    if bytes.len() > room {
        mark(truncated, part);
    }
}

fn mark(truncated: &mut Vec<&'static str>, part: &'static str) {
    if !truncated.contains(&part) {
        truncated.push(part);
    }
}

/// Writes what is not there yet. True when something was written.
fn write_files(files: &[Generated]) -> Result<bool> {
    let mut fresh = false;
    for Generated { path, content } in files {
        if path.symlink_metadata().is_ok() {
            continue;
        }
        fresh = true;
        write_file(path, content).map_err(|e| {
            Error::unwritable(path.display(), &e)
                .hint("MCPX_CACHE_DIR names the directory for generated files")
        })?;
    }
    Ok(fresh)
}

fn write_file(path: &Path, content: &Content) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    let dir = path.parent().unwrap_or(Path::new("/"));
    if !dir.is_dir() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    match content {
        Content::Link(target) => match std::os::unix::fs::symlink(target, path) {
            // Another run was quicker, and its link is the same.
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            other => other,
        },
        content => write_atomic(path, content.text().unwrap_or_default().as_bytes(), 0o600, false),
    }
}

/// Now and then removes entries that nobody has needed for long.
fn sweep(entry: &Path) {
    let name = entry.file_name().unwrap_or_default().as_encoded_bytes();
    // One new entry in sixteen pays for it: names are digests.
    if name.first() != Some(&b'0') {
        return;
    }
    let Some(dir) = entry.ancestors().find(|d| d.ends_with("run")) else { return };
    let Some(limit) = SystemTime::now().checked_sub(KEEP_ENTRIES) else { return };
    for old in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let stale = old.metadata().and_then(|m| m.modified()).is_ok_and(|at| at < limit);
        if stale {
            let path = old.path();
            let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
        }
    }
}
