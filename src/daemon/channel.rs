//! A channel: the frames of one program, many requests at once. Knows nothing
//! of who is at the other end.
//!
//! The thread that read a request carries it out itself, after another has taken
//! over reading: a program that makes one call after another waits for no
//! hand-over between threads, and a cancel frame is read while calls run.

use super::answers;
use super::detached::Early;
use super::peers::Stream;
use super::router::{Asker, Done, Origin, Params};
use super::runs::Run;
use super::state::Daemon;
use crate::api::http::Headers;
use crate::api::{frame, ops};
use crate::error::{Error, Kind, Result};
use crate::log;
use crate::pool::{Cancel, Progress};
use crate::proc;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::{HashMap, VecDeque};
use std::io::{self, BufReader, Cursor, Read};
use std::net::Shutdown;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Threads that one channel has at most; more requests than this at once wait
/// for one. Servers that answer slower than this many at a time are rare, and a
/// thread waiting for one costs some 10 kB.
const MAX_WORKERS: usize = 256;
/// Requests that wait for a thread at most; a program that sends more is told that it is too fast.
const MAX_QUEUE: usize = 4096;
/// How long a thread without work stays.
const IDLE: Duration = Duration::from_secs(5);
/// A progress report larger than this is not sent: it could fill the socket, and
/// reports come on the thread that reads the server's answers.
const MAX_PROGRESS: usize = 16 * 1024;
/// Progress reports that wait while an answer is being written; older ones give way.
const MAX_PENDING: usize = 64;

/// A frame from the program.
#[derive(Deserialize)]
struct Frame<'a> {
    id: Option<u64>,
    op: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(default)]
    progress: bool,
    cancel: Option<u64>,
}

/// A request that was read.
struct Job {
    id: u64,
    op: String,
    /// The frame, and where its parameters are in it.
    text: Vec<u8>,
    params: Range<usize>,
    progress: bool,
    cancel: Cancel,
    /// Its answer has been sent, though it goes on.
    answered: Arc<AtomicBool>,
}

struct Channel {
    daemon: Arc<Daemon>,
    run: Arc<Run>,
    stream: Stream,
    reader: Mutex<BufReader<Ahead>>,
    writer: Mutex<Stream>,
    /// Progress reports that found the writer taken.
    pending: Mutex<VecDeque<Vec<u8>>>,
    in_flight: Mutex<HashMap<u64, Cancel>>,
    team: Mutex<Team>,
    /// Wakes one thread that waits for a turn.
    turn: Condvar,
    /// Told when a thread has left.
    left: Condvar,
    dead: AtomicBool,
    /// The largest frame that is taken.
    limit: u64,
}

/// The threads of a channel.
#[derive(Default)]
struct Team {
    /// One of them reads.
    reading: bool,
    /// So many wait for a turn.
    idle: usize,
    /// So many there are.
    total: usize,
    /// Requests that wait for a thread.
    queue: VecDeque<Job>,
}

/// What was read ahead, then the stream.
type Ahead = io::Chain<Cursor<Vec<u8>>, Stream>;

/// Serves a channel until its stream ends.
pub fn serve(daemon: &Arc<Daemon>, run: Arc<Run>, stream: Stream, ahead: Vec<u8>) {
    // A program may be silent for as long as it likes; it ends with its stream.
    if stream.0.set_read_timeout(None).is_err() {
        return;
    }
    let channel = Arc::new(Channel {
        daemon: daemon.clone(),
        run: run.clone(),
        reader: Mutex::new(BufReader::new(Cursor::new(ahead).chain(stream.clone()))),
        writer: Mutex::new(stream.clone()),
        stream,
        pending: Mutex::default(),
        in_flight: Mutex::default(),
        team: Mutex::new(Team { total: 1, ..Team::default() }),
        turn: Condvar::new(),
        left: Condvar::new(),
        dead: AtomicBool::new(false),
        limit: daemon.current().limits.body,
    });
    let ending = Arc::downgrade(&channel);
    let _guard = run.ended.on_cancel(move || {
        if let Some(channel) = ending.upgrade() {
            channel.end();
        }
    });
    // A second thread from the start, so that the first request finds a successor waiting.
    lock(&channel.team).total += 1;
    Channel::spawn(&channel);
    channel.work();
    // This thread may have left as one too many: the channel lasts as long as any of them.
    channel.wait_over();
}

impl Channel {
    /// Starts a thread, which has been counted already.
    fn spawn(channel: &Arc<Channel>) -> bool {
        let inside = channel.clone();
        let outcome = proc::thread::spawn("channel", move || inside.work());
        if let Err(e) = &outcome {
            lock(&channel.team).total -= 1;
            log::warn(format_args!("a channel goes on with fewer threads: {e}"));
        }
        outcome.is_ok()
    }

    /// Takes turns at reading, and carries out requests, until the channel ends or there is nothing to do.
    fn work(self: &Arc<Channel>) {
        loop {
            let Some(job) = self.next() else { break };
            if let Some(job) = job {
                self.carry_out(job);
                continue;
            }
            if let Some(job) = self.read() {
                self.carry_out(job);
            }
        }
        let mut team = lock(&self.team);
        team.total -= 1;
        drop(team);
        self.left.notify_all();
    }

    /// Waits for a turn: a request, or (the inner `None`) reading. The outer
    /// `None`: this thread is not needed any more.
    fn next(&self) -> Option<Option<Job>> {
        let mut team = lock(&self.team);
        loop {
            if self.dead.load(Ordering::SeqCst) {
                return None;
            }
            if let Some(job) = team.queue.pop_front() {
                return Some(Some(job));
            }
            if !team.reading {
                team.reading = true;
                return Some(None);
            }
            team.idle += 1;
            let (back, timed_out) =
                self.turn.wait_timeout(team, IDLE).unwrap_or_else(PoisonError::into_inner);
            team = back;
            team.idle -= 1;
            // Somebody reads, and a successor for them waits: enough.
            if timed_out.timed_out() && team.reading && team.queue.is_empty() && team.idle > 0 {
                return None;
            }
        }
    }

    /// Reads frames until one is a request for this thread to carry out; nobody reads after that
    /// but the successor who was woken. None when the stream ended.
    fn read(self: &Arc<Channel>) -> Option<Job> {
        loop {
            let frame = frame::read(&mut *lock(&self.reader), self.limit);
            let text = match frame {
                Ok(Some(text)) => text,
                Ok(None) => return self.ended(None),
                Err(e) => return self.ended(Some(e)),
            };
            let Some(job) = self.sort(text) else { continue };
            let mut team = lock(&self.team);
            if team.idle > 0 {
                team.reading = false;
                drop(team);
                self.turn.notify_one();
                return Some(job);
            }
            if team.total < MAX_WORKERS {
                team.total += 1;
                team.reading = false;
                drop(team);
                if Channel::spawn(self) {
                    return Some(job);
                }
                team = lock(&self.team);
                // Whoever finished meanwhile may have begun to read: then all is well.
                if team.reading {
                    return Some(job);
                }
                team.reading = true;
            }
            if team.queue.len() < MAX_QUEUE {
                team.queue.push_back(job);
                drop(team);
                // Somebody may have become idle between the two looks.
                self.turn.notify_one();
            } else {
                drop(team);
                self.finish(job.id);
                let error = Error::new(Kind::Busy, "too many requests are waiting on this channel");
                self.send_error(Some(job.id), &error);
            }
        }
    }

    /// Deals with a frame that is no request; a request is registered as in flight.
    fn sort(&self, text: Vec<u8>) -> Option<Job> {
        let parsed: std::result::Result<Frame<'_>, _> = serde_json::from_slice(&text);
        let frame = match parsed {
            Ok(frame) => frame,
            Err(e) => {
                self.send_error(None, &Error::new(Kind::Usage, format!("reading a frame: {e}")));
                return None;
            }
        };
        if let Some(id) = frame.cancel {
            let cancel = lock(&self.in_flight).get(&id).cloned();
            if let Some(cancel) = cancel {
                cancel.cancel();
            }
            return None;
        }
        let (Some(id), Some(op)) = (frame.id, frame.op) else {
            self.send_error(frame.id, &Error::new(Kind::Usage, "a frame needs id and op, or cancel"));
            return None;
        };
        let params = frame.params.map_or(0..0, |p| within(&text, p.get()));
        let progress = frame.progress;
        let cancel = Cancel::new();
        let mut in_flight = lock(&self.in_flight);
        if in_flight.contains_key(&id) {
            drop(in_flight);
            let error = Error::new(Kind::Usage, format!("{id} is the id of a request that is in flight"));
            self.send_error(None, &error);
            return None;
        }
        in_flight.insert(id, cancel.clone());
        Some(Job { id, op, params, progress, text, cancel, answered: Arc::default() })
    }

    fn carry_out(self: &Arc<Channel>, job: Job) {
        if self.dead.load(Ordering::SeqCst) {
            job.cancel.cancel();
        }
        let daemon = self.daemon.clone();
        let _busy = daemon.activity.enter();
        // What is recorded of it is written after its answer.
        let _records = daemon.logs.journal.hold();
        let outcome = self.perform(&job);
        // Whoever takes it out of the table answers it.
        let open = lock(&self.in_flight).remove(&job.id).is_some();
        let id = job.id;
        if job.answered.load(Ordering::SeqCst) || !open {
            return;
        }
        drop(job);
        let head = format!("{{\"id\":{id},\"result\":");
        match outcome {
            Ok(Done::Json(text)) => self.send(&[head.as_bytes(), &text, b"}"]),
            Ok(Done::Tool(result)) => self.send(&[head.as_bytes(), result.get().as_bytes(), b"}"]),
            Ok(Done::Channel(_) | Done::Response(_)) => {
                let error = Error::new(Kind::Internal, "a channel carries JSON, and no other channel");
                self.send_error(Some(id), &error);
            }
            Err(error) => self.send_error(Some(id), &error),
        }
    }

    fn perform(self: &Arc<Channel>, job: &Job) -> Result<Done> {
        let op = ops::by_name(&job.op).ok_or_else(|| {
            let error = Error::new(Kind::NotFound, format!("there is no operation \"{}\"", job.op));
            match crate::util::did_you_mean(&job.op, ops::all().map(|o| o.name)) {
                Some(hint) => error.hint(hint),
                None => error,
            }
        })?;
        let progress = job.progress.then(|| self.reporter(job.id));
        let (origin, carried) = (Origin::Channel(self.run.clone()), self.run.carried());
        static NONE: Headers = Headers(Vec::new());
        let early = (!self.run.is_attended()).then(|| self.early(job));
        let asker =
            Asker { origin, held: None, cancel: &job.cancel, progress, carried, headers: &NONE, early };
        answers::perform(&self.daemon, op, Params::Json(&job.text[job.params.clone()]), &asker)
    }

    /// Answers a request before it is over: what it does then goes on, whatever becomes of the channel.
    fn early(self: &Arc<Channel>, job: &Job) -> Arc<Early> {
        let (channel, id, answered) = (Arc::downgrade(self), job.id, job.answered.clone());
        Early::new(Box::new(move |error| {
            let Some(channel) = channel.upgrade() else { return false };
            if answered.swap(true, Ordering::SeqCst) || lock(&channel.in_flight).remove(&id).is_none() {
                return false;
            }
            channel.send_error(Some(id), error);
            true
        }))
    }

    /// Sends progress reports for as long as the request is in flight.
    fn reporter(self: &Arc<Channel>, id: u64) -> Progress {
        let channel = Arc::downgrade(self);
        Arc::new(move |report: Value| {
            let Some(channel) = channel.upgrade() else { return };
            let text = format!("{{\"id\":{id},\"progress\":{report}}}").into_bytes();
            if text.len() <= MAX_PROGRESS && lock(&channel.in_flight).contains_key(&id) {
                channel.report(text);
            }
        })
    }

    fn finish(&self, id: u64) {
        lock(&self.in_flight).remove(&id);
    }

    fn send_error(&self, id: Option<u64>, error: &Error) {
        let id = id.map_or_else(|| "null".to_owned(), |id| id.to_string());
        let text = format!("{{\"id\":{id},\"error\":{}}}", error.to_json());
        self.send(&[text.as_bytes()]);
    }

    /// Writes a frame. A program that does not read is given up after `transport.writeTimeout`.
    fn send(&self, parts: &[&[u8]]) {
        if self.dead.load(Ordering::SeqCst) {
            return;
        }
        let outcome = frame::write(&mut *lock(&self.writer), parts);
        if let Err(e) = outcome {
            if !self.dead.load(Ordering::SeqCst) {
                log::debug(format_args!("writing to run {}: {e}", self.run.id));
            }
            self.end();
            return;
        }
        self.flush_reports();
    }

    /// Sends a progress report if that does not wait: the caller reads answers for others too.
    fn report(&self, text: Vec<u8>) {
        let mut pending = lock(&self.pending);
        if pending.len() == MAX_PENDING {
            pending.pop_front();
        }
        pending.push_back(text);
        drop(pending);
        self.flush_reports();
    }

    /// Writes the reports that wait, unless somebody else is writing, who then does it.
    fn flush_reports(&self) {
        loop {
            if lock(&self.pending).is_empty() {
                return;
            }
            let Ok(mut writer) = self.writer.try_lock() else { return };
            let room = proc::poll_writable(&*writer.0, Some(Duration::ZERO)).unwrap_or(false);
            let next = lock(&self.pending).pop_front();
            match next {
                Some(text) if room && frame::write(&mut *writer, &[&text]).is_ok() => {}
                // A report that finds no room is worth nothing later.
                _ => {}
            }
        }
    }

    /// The stream ended: nobody waits for the answers any more.
    fn ended(&self, e: Option<io::Error>) -> Option<Job> {
        if let Some(e) = e
            && !self.dead.load(Ordering::SeqCst)
        {
            log::debug(format_args!("reading from run {}: {e}", self.run.id));
            if e.kind() == io::ErrorKind::InvalidData {
                self.send_error(None, &Error::new(Kind::TooLarge, format!("{e}; see transport.maxBody")));
            }
        }
        self.end();
        None
    }

    /// Ends the channel: cancels what is in flight and closes the stream.
    fn end(&self) {
        self.dead.store(true, Ordering::SeqCst);
        let _ = self.stream.0.shutdown(Shutdown::Both);
        let all: Vec<Cancel> = lock(&self.in_flight).values().cloned().collect();
        all.iter().for_each(Cancel::cancel);
        lock(&self.team).queue.clear();
        self.turn.notify_all();
    }

    /// Waits until the last thread has left.
    fn wait_over(&self) {
        let mut team = lock(&self.team);
        while team.total > 0 {
            team = self.left.wait(team).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Where `part`, which was read out of `text`, is in it.
fn within(text: &[u8], part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - text.as_ptr() as usize;
    start..start + part.len()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
