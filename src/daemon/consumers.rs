//! Event consumers: programs that the daemon runs and feeds with events, one at a
//! time and in order. A consumer says when it is done with one; where it was is
//! kept on disk, so that it goes on there after a restart of its own. Knows nothing
//! of what events mean.

use super::child;
use super::hooks::row;
use super::state::Daemon;
use crate::log::{self, Level};
use crate::observe::declared::{self, Listener};
use crate::observe::log::{Entry, Ids};
use crate::observe::{Bus, Event};
use crate::proc::{self, Child, Io};
use crate::script::env::consumer_env;
use crate::settings::{self, Settings, duration_text};
use crate::util;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// The first wait before a consumer that ended is started again; it doubles.
const RESTART_MIN: Duration = Duration::from_millis(500);

/// How long one look for events lasts; a consumer that is to end is woken from it.
const PATIENCE: Duration = Duration::from_secs(3600);

/// How long a consumer may take to leave once its stdin has ended.
const FAREWELL: Duration = Duration::from_secs(2);

/// All consumers of a daemon.
#[derive(Default)]
pub struct Consumers(Mutex<State>);

#[derive(Default)]
struct State {
    running: Vec<Arc<Consumer>>,
    broken: Vec<(String, String)>,
    threads: Vec<Receiver<()>>,
    closed: bool,
}

/// One of them.
struct Consumer {
    listener: Listener,
    bus: Arc<Bus>,
    over: AtomicBool,
    /// Told when it is over.
    stop: Mutex<Option<Sender<()>>>,
    fares: Mutex<Fares>,
}

#[derive(Default)]
struct Fares {
    pid: Option<u32>,
    acknowledged: u64,
    starts: u64,
    last_error: String,
}

/// Where a consumer was: numbers start anew with each daemon.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Place {
    daemon: String,
    seq: u64,
}

impl Consumers {
    /// Starts what the settings declare, and ends what they declare no longer.
    pub fn configure(&self, daemon: &Arc<Daemon>, settings: &Settings) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        let before = std::mem::take(&mut state.running);
        state.broken.clear();
        for (name, outcome) in declared::consumers(settings) {
            match outcome {
                Ok(listener) => {
                    let kept = before.iter().find(|c| c.listener == listener).cloned();
                    let started = kept.or_else(|| {
                        let (consumer, end) = Consumer::start(daemon, listener)?;
                        state.threads.push(end);
                        Some(consumer)
                    });
                    state.running.extend(started);
                }
                Err(why) => {
                    log::warn(format_args!("the consumer \"{name}\" {why}: it does not run"));
                    state.broken.push((name, why));
                }
            }
        }
        let gone: Vec<_> =
            before.iter().filter(|c| !state.running.iter().any(|s| Arc::ptr_eq(s, c))).collect();
        gone.into_iter().for_each(|consumer| consumer.end());
    }

    /// Each as a record.
    pub fn rows(&self) -> Vec<Value> {
        let state = self.lock();
        let sound = state.running.iter().map(|consumer| {
            let fares = consumer.fares();
            let mut row = row(&consumer.listener.name, Ok(&consumer.listener));
            row["acknowledged"] = fares.acknowledged.into();
            row["starts"] = fares.starts.into();
            if let Some(pid) = fares.pid {
                row["pid"] = pid.into();
            }
            if !fares.last_error.is_empty() {
                row["lastError"] = fares.last_error.as_str().into();
            }
            row
        });
        sound.chain(state.broken.iter().map(|(name, why)| row(name, Err(why)))).collect()
    }

    /// Whether a session is that of a consumer.
    pub fn owns(&self, session: &str) -> bool {
        self.lock().running.iter().any(|consumer| consumer.listener.session == session)
    }

    /// The bus is closed: waits until each has had the last events and has left.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let threads = std::mem::take(&mut state.threads);
        let running = std::mem::take(&mut state.running);
        drop(state);
        running.iter().for_each(|consumer| consumer.end());
        for end in threads {
            let _ = end.recv_timeout(FAREWELL * 2);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Consumer {
    fn start(daemon: &Arc<Daemon>, listener: Listener) -> Option<(Arc<Consumer>, Receiver<()>)> {
        let (stop, stopped) = mpsc::channel();
        let (done, end) = mpsc::channel();
        let consumer = Arc::new(Consumer {
            listener,
            bus: daemon.pool.bus().clone(),
            over: AtomicBool::new(false),
            stop: Mutex::new(Some(stop)),
            fares: Mutex::default(),
        });
        let (own, daemon) = (consumer.clone(), Arc::downgrade(daemon));
        let life = move || {
            own.live(&daemon, &stopped);
            drop(done);
        };
        match proc::thread::spawn("consumer", life) {
            Ok(_) => Some((consumer, end)),
            Err(e) => {
                log::warn(format_args!("the consumer \"{}\" was not started: {e}", consumer.listener.name));
                None
            }
        }
    }

    /// Ends it; its thread follows.
    fn end(&self) {
        self.over.store(true, Ordering::Release);
        drop(self.stop.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.bus.stir();
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Starts it again and again, until it is over.
    fn live(&self, daemon: &Weak<Daemon>, stopped: &Receiver<()>) {
        let mut delay = RESTART_MIN;
        while let Some(daemon) = daemon.upgrade() {
            let path = place_of(&daemon, &self.listener.name);
            let saved = fs::read(&path).ok().and_then(|text| serde_json::from_slice::<Place>(&text).ok());
            let seq = saved.filter(|p| p.daemon == self.bus.daemon()).map_or(0, |p| p.seq);
            self.fares().acknowledged = seq;
            let outcome = self.feed(&daemon, seq, &path);
            self.fares().pid = None;
            let most = daemon.current().settings.get(&settings::EVENTS_RESTART_MAX);
            drop(daemon);
            if self.is_over() {
                return;
            }
            if let Err(why) = outcome {
                self.tell(&why);
            }
            if self.fares().acknowledged > seq {
                delay = RESTART_MIN;
            }
            match stopped.recv_timeout(delay.min(most)) {
                Err(RecvTimeoutError::Timeout) => delay = delay.saturating_mul(2).min(most),
                _ => return,
            }
        }
    }

    /// Starts it once and feeds it with what came after an event.
    fn feed(&self, daemon: &Daemon, after: u64, path: &std::path::Path) -> Result<(), String> {
        let current = daemon.current();
        let own = consumer_env(&self.listener.session, &current.endpoint);
        let limit = self.listener.timeout.unwrap_or(current.settings.get(&settings::EVENTS_ACK_TIMEOUT));
        let limit = if limit.is_zero() { PATIENCE } else { limit };
        drop(current);
        let child = child::start(daemon, &self.listener.run, own, Io::Piped)
            .map_err(|e| format!("could not be started: {}", e.message()))?;
        {
            let mut fares = self.fares();
            fares.starts += 1;
            fares.pid = Some(child.pid());
        }
        let ended = Arc::new(AtomicBool::new(false));
        let (flag, bus) = (ended.clone(), self.bus.clone());
        child.on_exit(move |_| {
            flag.store(true, Ordering::Release);
            bus.stir();
        });
        let lines = self.listen(&child)?;
        let stdin = child.take_stdin().ok_or("has no stdin")?;
        let outcome = self.pass_on(daemon, stdin, &lines, (after, limit), path, &ended);
        let exit = child.stop(FAREWELL, FAREWELL);
        match outcome {
            Err(Some(why)) => Err(why),
            // Its end says more than the pipe that broke.
            Err(None) => Err(format!("ended with {exit}")),
            Ok(()) => Ok(()),
        }
    }

    /// Passes events on, one by one. `Err(None)`: it has ended by itself.
    fn pass_on(
        &self,
        daemon: &Daemon,
        mut stdin: File,
        lines: &Receiver<String>,
        (mut after, limit): (u64, Duration),
        path: &std::path::Path,
        ended: &AtomicBool,
    ) -> Result<(), Option<String>> {
        let filter = &self.listener.filter;
        loop {
            let gone = || self.is_over() || ended.load(Ordering::Acquire);
            let read = self.bus.read(after, filter, 1, PATIENCE, &gone);
            if ended.load(Ordering::Acquire) {
                return Err(None);
            }
            after = read.after;
            if read.missed > 0 {
                send(&mut stdin, &json!({"missed": read.missed}))?;
            }
            for event in read.events.iter().filter(|event| !self.caused(event)) {
                send(&mut stdin, &**event)?;
                self.acknowledged(lines, event.seq, limit)?;
                self.fares().acknowledged = event.seq;
                let place = Place { daemon: self.bus.daemon().to_owned(), seq: event.seq };
                let text = serde_json::to_vec(&place).unwrap_or_default();
                if let Err(e) = util::write_atomic(path, &text, 0o600, false) {
                    log::warn(format_args!("keeping where the consumer \"{}\" is: {e}", self.listener.name));
                }
            }
            if self.is_over() && !daemon.is_stopping() || read.closed && read.events.is_empty() {
                return Ok(());
            }
        }
    }

    /// What its own session does is not for it: it would never come to an end.
    fn caused(&self, event: &Event) -> bool {
        event.session.as_deref() == Some(self.listener.session.as_str())
    }

    /// Waits for the line that says that it is done with an event.
    fn acknowledged(
        &self,
        lines: &Receiver<String>,
        seq: u64,
        limit: Duration,
    ) -> Result<(), Option<String>> {
        let deadline = std::time::Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(std::time::Instant::now());
            match lines.recv_timeout(left) {
                Ok(line) if line.trim().parse::<u64>().is_ok_and(|n| n >= seq) => return Ok(()),
                Ok(line) => self.say(Level::Debug, line),
                Err(RecvTimeoutError::Disconnected) => return Err(None),
                Err(RecvTimeoutError::Timeout) => {
                    let limit = duration_text(limit);
                    return Err(Some(format!("did not write {seq} within {limit} (events.ackTimeout)")));
                }
            }
        }
    }

    /// Reads what it writes: lines of stdout come, lines of stderr are logged.
    fn listen(self: &Consumer, child: &Child) -> Result<Receiver<String>, String> {
        let fail = |e: std::io::Error| format!("could not be listened to: {e}");
        let (send, lines) = mpsc::channel();
        if let Some(stdout) = child.take_stdout() {
            let read = move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    if send.send(line).is_err() {
                        return;
                    }
                }
            };
            proc::thread::spawn("consumer-out", read).map_err(fail)?;
        }
        if let Some(stderr) = child.take_stderr() {
            let (bus, name, session) =
                (self.bus.clone(), self.listener.name.clone(), self.listener.session.clone());
            let read = move || {
                for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                    bus.record(entry(&name, &session, Level::Info, line));
                }
            };
            proc::thread::spawn("consumer-err", read).map_err(fail)?;
        }
        Ok(lines)
    }

    fn say(&self, level: Level, message: String) {
        self.bus.record(entry(&self.listener.name, &self.listener.session, level, message));
    }

    fn tell(&self, why: &str) {
        self.fares().last_error = why.to_owned();
        let name = &self.listener.name;
        let failed =
            entry(name, &self.listener.session, Level::Warn, format!("the consumer \"{name}\" {why}"));
        self.bus.record(Entry { event: "consumer.failed".into(), ..failed });
    }

    fn fares(&self) -> MutexGuard<'_, Fares> {
        self.fares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn entry(name: &str, session: &str, level: Level, message: String) -> Entry {
    let ids = Ids { session: session.to_owned(), ..Ids::default() };
    Entry { ids, data: json!({"consumer": name}), ..Entry::new(level, "script", message) }
}

/// Writes a line; a pipe that nobody reads any more means that it has ended.
fn send(stdin: &mut File, value: &impl Serialize) -> Result<(), Option<String>> {
    let mut line = serde_json::to_vec(value).unwrap_or_default();
    line.push(b'\n');
    stdin.write_all(&line).map_err(|_| None)
}

/// The file that says where a consumer is: of one name, and of one set of configuration files.
fn place_of(daemon: &Daemon, name: &str) -> PathBuf {
    let current = daemon.current();
    let sources = current.config.sources.iter().map(|s| s.path.as_os_str().as_bytes());
    let digest = util::digest(sources.chain([name.as_bytes()]), 16);
    daemon.origin.dirs.state.join(format!("consumer-{digest}.json"))
}
