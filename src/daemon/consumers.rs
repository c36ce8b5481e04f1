//! Event consumers: programs that the daemon runs and feeds with events, one at a
//! time and in order. A consumer says when it is done with one; where it was is
//! kept on disk, so that it goes on there after a restart of its own or of the
//! daemon, with what the log has of the time between. Knows nothing of what events mean.

use super::child;
use super::hooks::row;
use super::state::Daemon;
use crate::log::{self, Level};
use crate::observe::declared::{self, Listener};
use crate::observe::log::{Entry, Ids, Snapshot, past};
use crate::observe::{Bus, Event};
use crate::proc::lock::FileLock;
use crate::proc::{self, Child, Io};
use crate::script::env::consumer_env;
use crate::settings::{self, Settings, duration_text};
use crate::util;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
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

/// So many daemons that came and went are remembered while a consumer is behind; the oldest are given up.
const DAEMONS: usize = 64;

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
    /// The number of the last event that it was done with.
    acknowledged: u64,
    /// How many it was done with.
    done: u64,
    starts: u64,
    last_error: String,
}

/// Where a consumer is: numbers start anew with each daemon.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Place {
    /// The daemon whose events it gets.
    daemon: String,
    /// It is done with this one.
    seq: u64,
    /// The daemons whose events come after those.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    then: Vec<String>,
}

impl Place {
    /// The place as it was left, continued by this daemon.
    fn resumed(saved: Option<Place>, own: &str) -> Place {
        let Some(mut place) = saved else { return Place { daemon: own.to_owned(), ..Place::default() } };
        if place.daemon != own && place.then.last().is_none_or(|last| last != own) {
            place.then.push(own.to_owned());
        }
        while place.then.len() > DAEMONS {
            (place.daemon, place.seq) = (place.then.remove(0), 0);
        }
        place
    }

    /// It is done with all of a daemon's events.
    fn next(&mut self, own: &str) {
        let next = if self.then.is_empty() { own.to_owned() } else { self.then.remove(0) };
        (self.daemon, self.seq) = (next, 0);
    }
}

/// An event from before, as a consumer gets it.
#[derive(Serialize)]
struct Replayed<'a> {
    #[serde(flatten)]
    event: &'a Event,
    daemon: &'a str,
    replayed: bool,
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
            // A daemon that this one replaces may still be feeding it.
            let lock = match FileLock::try_now(&path.with_extension("lock")) {
                Ok(Some(lock)) => Some(lock),
                Ok(None) => {
                    drop(daemon);
                    match stopped.recv_timeout(RESTART_MIN) {
                        Err(RecvTimeoutError::Timeout) => continue,
                        _ => return,
                    }
                }
                // Where no lock can be had nothing is kept either.
                Err(_) => None,
            };
            let saved = fs::read(&path).ok().and_then(|text| serde_json::from_slice::<Place>(&text).ok());
            let place = Place::resumed(saved, self.bus.daemon());
            self.keep(&place, &path);
            let before = {
                let mut fares = self.fares();
                fares.acknowledged = place.seq;
                fares.done
            };
            let outcome = self.feed(&daemon, place, &path);
            if let Some(lock) = lock {
                lock.remove();
            }
            self.fares().pid = None;
            let most = daemon.current().settings.get(&settings::EVENTS_RESTART_MAX);
            drop(daemon);
            if self.is_over() {
                return;
            }
            if let Err(why) = outcome {
                self.tell(&why);
            }
            if self.fares().done > before {
                delay = RESTART_MIN;
            }
            match stopped.recv_timeout(delay.min(most)) {
                Err(RecvTimeoutError::Timeout) => delay = delay.saturating_mul(2).min(most),
                _ => return,
            }
        }
    }

    /// Keeps where it is.
    fn keep(&self, place: &Place, path: &Path) {
        let text = serde_json::to_vec(place).unwrap_or_default();
        if let Err(e) = util::write_atomic(path, &text, 0o600, false) {
            log::warn(format_args!("keeping where the consumer \"{}\" is: {e}", self.listener.name));
        }
    }

    /// Starts it once and feeds it with what came after its place.
    fn feed(&self, daemon: &Daemon, place: Place, path: &Path) -> Result<(), String> {
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
        let mut fed = Fed { consumer: self, daemon, stdin, lines, limit, place, path, ended };
        let outcome = fed.catch_up().and_then(|caught_up| if caught_up { fed.pass_on() } else { Ok(()) });
        drop(fed);
        let exit = child.stop(FAREWELL, FAREWELL);
        match outcome {
            Err(Some(why)) => Err(why),
            // Its end says more than the pipe that broke.
            Err(None) => Err(format!("ended with {exit}")),
            Ok(()) => Ok(()),
        }
    }

    /// What its own session does is not for it: it would never come to an end.
    fn caused(&self, event: &Event) -> bool {
        event.session.as_deref() == Some(self.listener.session.as_str())
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

/// One life of a consumer.
struct Fed<'a> {
    consumer: &'a Consumer,
    daemon: &'a Daemon,
    stdin: File,
    lines: Receiver<String>,
    /// How long it may take for one event.
    limit: Duration,
    place: Place,
    path: &'a Path,
    /// It has ended.
    ended: Arc<AtomicBool>,
}

/// Why it gets no more: what it did wrong, or none when it has ended by itself.
type Broken = Option<String>;

impl Fed<'_> {
    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Passes on, from the log, what daemons before this one had for it; false when it is to end before that is done.
    fn catch_up(&mut self) -> Result<bool, Broken> {
        let own = self.consumer.bus.daemon().to_owned();
        while self.place.daemon != own {
            if !self.replay(None)? {
                return Ok(false);
            }
            self.place.next(&own);
            self.consumer.keep(&self.place, self.path);
        }
        Ok(true)
    }

    /// Passes on, from the log, what comes after its place, up to an event where one is named.
    fn replay(&mut self, upto: Option<u64>) -> Result<bool, Broken> {
        let whose = self.place.daemon.clone();
        let span = (self.place.seq, upto);
        let found = Snapshot::take(self.daemon.logs.journal.dir())
            .and_then(|snapshot| past(&snapshot, &whose, span, &self.consumer.listener.filter));
        let (events, missed) = match found {
            Ok(found) => (found.events, found.missed),
            Err(e) => {
                let name = &self.consumer.listener.name;
                log::warn(format_args!("looking in the log for what the consumer \"{name}\" missed: {e}"));
                (Vec::new(), upto.map(|upto| upto.saturating_sub(span.0)))
            }
        };
        if missed != Some(0) {
            send(&mut self.stdin, &json!({"missed": missed, "daemon": whose}))?;
        }
        for event in events.iter().filter(|event| !self.consumer.caused(event)) {
            if self.consumer.is_over() {
                return Ok(false);
            }
            send(&mut self.stdin, &Replayed { event, daemon: &whose, replayed: true })?;
            self.done_with(event.seq)?;
        }
        Ok(true)
    }

    /// Passes events on, one by one, as they come.
    fn pass_on(&mut self) -> Result<(), Broken> {
        let consumer = self.consumer;
        let mut after = self.place.seq;
        loop {
            let gone = || consumer.is_over() || self.has_ended();
            let read = consumer.bus.read(after, &consumer.listener.filter, 1, PATIENCE, &gone);
            if self.has_ended() {
                return Err(None);
            }
            if read.missed > 0 {
                // The bus remembers less than the log.
                let upto = after + read.missed;
                self.place.seq = after;
                if !self.replay(Some(upto))? {
                    return Ok(());
                }
            }
            after = read.after;
            for event in read.events.iter().filter(|event| !consumer.caused(event)) {
                send(&mut self.stdin, &**event)?;
                self.done_with(event.seq)?;
            }
            if consumer.is_over() && !self.daemon.is_stopping() || read.closed && read.events.is_empty() {
                return Ok(());
            }
        }
    }

    /// Waits until it says that it is done with an event, and keeps that.
    fn done_with(&mut self, seq: u64) -> Result<(), Broken> {
        self.acknowledged(seq)?;
        let mut fares = self.consumer.fares();
        fares.acknowledged = seq;
        fares.done += 1;
        drop(fares);
        self.place.seq = seq;
        self.consumer.keep(&self.place, self.path);
        Ok(())
    }

    /// Waits for the line that says that it is done with an event.
    fn acknowledged(&self, seq: u64) -> Result<(), Broken> {
        let deadline = std::time::Instant::now() + self.limit;
        loop {
            let left = deadline.saturating_duration_since(std::time::Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if line.trim().parse::<u64>().is_ok_and(|n| n >= seq) => return Ok(()),
                Ok(line) => self.consumer.say(Level::Debug, line),
                Err(RecvTimeoutError::Disconnected) => return Err(None),
                Err(RecvTimeoutError::Timeout) => {
                    let limit = duration_text(self.limit);
                    return Err(Some(format!("did not write {seq} within {limit} (events.ackTimeout)")));
                }
            }
        }
    }
}

fn entry(name: &str, session: &str, level: Level, message: String) -> Entry {
    let ids = Ids { session: session.to_owned(), ..Ids::default() };
    Entry { ids, data: json!({"consumer": name}), ..Entry::new(level, "script", message) }
}

/// Writes a line; a pipe that nobody reads any more means that it has ended.
fn send(stdin: &mut File, value: &impl Serialize) -> Result<(), Broken> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_leads_from_daemon_to_daemon() {
        let place = |daemon: &str, seq, then: &[&str]| Place {
            daemon: daemon.into(),
            seq,
            then: then.iter().map(|d| (*d).to_owned()).collect(),
        };
        assert_eq!(Place::resumed(None, "b"), place("b", 0, &[]));
        assert_eq!(Place::resumed(Some(place("b", 7, &[])), "b"), place("b", 7, &[]));
        let mut behind = Place::resumed(Some(place("a", 7, &[])), "b");
        assert_eq!(behind, place("a", 7, &["b"]));
        // Its own restart adds nothing; another daemon is added behind.
        behind = Place::resumed(Some(behind), "b");
        behind = Place::resumed(Some(behind), "c");
        assert_eq!(behind, place("a", 7, &["b", "c"]));
        behind.next("c");
        assert_eq!(behind, place("b", 0, &["c"]));
        behind.next("c");
        assert_eq!(behind, place("c", 0, &[]));
        let many = (0..100).fold(place("a", 7, &[]), |place, n| Place::resumed(Some(place), &n.to_string()));
        assert_eq!((many.then.len(), many.seq), (DAEMONS, 0));
    }
}
