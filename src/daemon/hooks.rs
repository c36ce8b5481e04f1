//! The declared-hook runner: runs a command for each event that its hook wants, so
//! many at once, each for so long. A hook looks on: whoever publishes an event
//! does no more than put it into a line. Knows nothing of what events mean.

use super::child;
use super::state::Daemon;
use crate::log::{self, Level};
use crate::observe::declared::{self, Declaration, Listener};
use crate::observe::log::{Entry, Ids};
use crate::observe::{Bus, Event};
use crate::proc::{self, Child, Exit, Io};
use crate::script::env::{HookRun, hook_env};
use crate::settings::{self, Settings, duration_text};
use crate::util;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

/// How much of a hook's stderr a failure quotes.
const QUOTED: usize = 500;

/// What a pipe holds at least: so much is written without waiting for its reader.
const PIPE: usize = 16 * 1024;

/// How long the last words of a hook are waited for once it has ended.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// How long a daemon that stops waits for hooks that run or wait.
const LAST_HOOKS: Duration = Duration::from_secs(2);

/// The name in a trace that marks what a hook does: it starts no hook.
const MARK: &str = "hook";

/// One hook, and how it fares.
struct Hook {
    listener: Listener,
    fares: Mutex<Fares>,
}

#[derive(Clone, Default)]
struct Fares {
    runs: u64,
    failures: u64,
    dropped: u64,
    running: u64,
    last: u64,
    last_error: String,
}

struct State {
    hooks: Vec<Arc<Hook>>,
    broken: Vec<(String, String)>,
    line: VecDeque<(Arc<Hook>, Arc<Event>)>,
    room: usize,
    limit: usize,
    timeout: Duration,
    workers: usize,
    running: Vec<Child>,
    closed: bool,
}

/// All hooks.
pub struct Hooks {
    /// There is a hook; looked at for each event, so that without one nothing is done.
    any: AtomicBool,
    state: Mutex<State>,
    more: Condvar,
    quiet: Condvar,
    daemon: OnceLock<Weak<Daemon>>,
}

impl Hooks {
    /// None yet.
    pub fn new() -> Arc<Hooks> {
        let state = State {
            hooks: Vec::new(),
            broken: Vec::new(),
            line: VecDeque::new(),
            room: 0,
            limit: 0,
            timeout: Duration::ZERO,
            workers: 0,
            running: Vec::new(),
            closed: false,
        };
        Arc::new(Hooks {
            any: AtomicBool::new(false),
            state: Mutex::new(state),
            more: Condvar::new(),
            quiet: Condvar::new(),
            daemon: OnceLock::new(),
        })
    }

    /// Runs what is declared for this daemon from now on.
    pub fn attach(&self, daemon: &Arc<Daemon>) {
        let _ = self.daemon.set(Arc::downgrade(daemon));
        drop(self.lock());
        self.more.notify_all();
    }

    /// Takes over what the settings declare. A hook that stays keeps its figures.
    pub fn configure(self: &Arc<Hooks>, settings: &Settings) {
        let size = |n: i64| usize::try_from(n).unwrap_or(1);
        let declared = declared::hooks(settings);
        let mut state = self.lock();
        let before = std::mem::take(&mut state.hooks);
        state.broken.clear();
        for (name, outcome) in declared {
            match outcome {
                Ok(listener) => {
                    let kept = before.iter().find(|hook| hook.listener == listener).cloned();
                    let fresh = || Arc::new(Hook { listener, fares: Mutex::default() });
                    state.hooks.push(kept.unwrap_or_else(fresh));
                }
                Err(why) => {
                    log::warn(format_args!("the hook \"{name}\" {why}: it does not run"));
                    state.broken.push((name, why));
                }
            }
        }
        state.room = size(settings.get(&settings::EVENTS_HOOK_QUEUE));
        state.limit = size(settings.get(&settings::EVENTS_HOOK_CONCURRENCY));
        state.timeout = settings.get(&settings::EVENTS_HOOK_TIMEOUT);
        let any = !state.hooks.is_empty() && !state.closed;
        self.any.store(any, Ordering::Release);
        while any && state.workers < state.limit {
            let hooks = self.clone();
            if proc::thread::spawn("hook", move || hooks.work()).is_err() {
                break;
            }
            state.workers += 1;
        }
        drop(state);
        self.more.notify_all();
    }

    /// Hears of an event, and of what only the log is to know of it. Never waits.
    pub fn hear(&self, event: &Arc<Event>, extra: Option<&Value>) {
        if !self.any.load(Ordering::Acquire) || extra.is_some_and(is_of_a_hook) {
            return;
        }
        let mut state = self.lock();
        let wanted: Vec<Arc<Hook>> =
            state.hooks.iter().filter(|hook| hook.listener.filter.takes(event)).cloned().collect();
        for hook in wanted {
            if state.line.len() < state.room {
                state.line.push_back((hook, event.clone()));
                self.more.notify_one();
            } else {
                hook.fares().dropped += 1;
            }
        }
    }

    /// Each hook as a record: what it is, and how it fares.
    pub fn rows(&self) -> Vec<Value> {
        let state = self.lock();
        let sound = state.hooks.iter().map(|hook| {
            let fares = hook.fares().clone();
            let mut row = row(&hook.listener.name, Ok(&hook.listener));
            for (key, value) in [
                ("runs", fares.runs),
                ("failures", fares.failures),
                ("dropped", fares.dropped),
                ("running", fares.running),
                ("last", fares.last),
            ] {
                row[key] = value.into();
            }
            if !fares.last_error.is_empty() {
                row["lastError"] = fares.last_error.into();
            }
            row
        });
        let broken = state.broken.iter().map(|(name, why)| row(name, Err(why)));
        sound.chain(broken).collect()
    }

    /// Takes no more events; gives what waits and runs a little time, and ends the rest.
    pub fn close(&self) {
        self.any.store(false, Ordering::Release);
        let mut state = self.lock();
        if state.workers == 0 {
            state.closed = true;
            return;
        }
        let busy = |state: &mut State| !state.line.is_empty() || !state.running.is_empty();
        state =
            self.quiet.wait_timeout_while(state, LAST_HOOKS, busy).unwrap_or_else(PoisonError::into_inner).0;
        state.closed = true;
        state.line.clear();
        state.running.iter().for_each(|child| child.signal_group(libc::SIGKILL));
        self.more.notify_all();
        let left = |state: &mut State| state.workers > 0;
        drop(self.quiet.wait_timeout_while(state, LAST_HOOKS, left));
    }

    /// A worker's life.
    fn work(&self) {
        let mut state = self.lock();
        loop {
            if state.closed || state.workers > state.limit || state.hooks.is_empty() && state.line.is_empty()
            {
                break;
            }
            // Until it is attached, events only wait.
            let next = if self.daemon.get().is_some() { state.line.pop_front() } else { None };
            let Some((hook, event)) = next else {
                state = self.more.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let limit = hook.listener.timeout.unwrap_or(state.timeout);
            drop(state);
            if let Some(daemon) = self.daemon.get().and_then(Weak::upgrade) {
                self.run(&daemon, &hook, &event, limit);
            }
            state = self.lock();
            self.quiet.notify_all();
        }
        state.workers -= 1;
        drop(state);
        self.quiet.notify_all();
    }

    fn run(&self, daemon: &Daemon, hook: &Hook, event: &Event, limit: Duration) {
        {
            let mut fares = hook.fares();
            fares.runs += 1;
            fares.running += 1;
            fares.last = util::now_ms();
        }
        let outcome = self.attempt(daemon, hook, event, limit);
        let mut fares = hook.fares();
        fares.running -= 1;
        if let Err(why) = outcome {
            fares.failures += 1;
            fares.last_error.clone_from(&why);
            drop(fares);
            tell(daemon.pool.bus(), &hook.listener.name, event, &why);
        }
    }

    fn attempt(&self, daemon: &Daemon, hook: &Hook, event: &Event, limit: Duration) -> Result<(), String> {
        let name = &hook.listener.name;
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let own = hook_env(&HookRun {
            name: name.clone(),
            kind: event.kind.to_owned(),
            seq: event.seq,
            server: text(&event.server),
            session: text(&event.session),
            uri: text(&event.uri),
            trace: json!([[MARK, name]]).to_string(),
        });
        let child = child::start(daemon, &hook.listener.run, own, Io::Null)
            .map_err(|e| format!("could not be started: {}", e.message()))?;
        self.lock().running.push(child.clone());
        let outcome = feed_and_wait(&child, event, limit);
        self.lock().running.retain(|other| other.pid() != child.pid());
        outcome
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hook {
    fn fares(&self) -> MutexGuard<'_, Fares> {
        self.fares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A hook or consumer as a record, without how it fares.
pub fn row(name: &str, of: Result<&Listener, &String>) -> Value {
    match of {
        Ok(listener) => json!({
            "name": name,
            "events": listener.filter.kinds,
            "servers": listener.filter.servers,
            "command": listener.run.text(),
        }),
        Err(why) => json!({"name": name, "events": [], "servers": [], "command": "", "problem": why}),
    }
}

/// The rows of declarations that no daemon runs.
pub fn rows(declared: &[Declaration]) -> Vec<Value> {
    declared.iter().map(|(name, outcome)| row(name, outcome.as_ref())).collect()
}

/// Whether an event comes from what a hook did.
fn is_of_a_hook(extra: &Value) -> bool {
    extra["trace"].as_array().is_some_and(|pairs| pairs.iter().any(|pair| pair[0] == MARK))
}

fn tell(bus: &Bus, name: &str, event: &Event, why: &str) {
    let ids = Ids {
        server: event.server.clone().unwrap_or_default(),
        session: event.session.clone().unwrap_or_default(),
        ..Ids::default()
    };
    bus.record(Entry {
        event: "hook.failed".into(),
        ids,
        data: json!({"hook": name, "kind": event.kind, "seq": event.seq}),
        ..Entry::new(Level::Warn, "hook", format!("the hook \"{name}\" {why}"))
    });
}

/// Hands the event over and waits for the end, at most so long.
fn feed_and_wait(child: &Child, event: &Event, limit: Duration) -> Result<(), String> {
    let begun = Instant::now();
    let mut line = serde_json::to_vec(event).unwrap_or_default();
    line.push(b'\n');
    if let Some(mut stdin) = child.take_stdin() {
        // A hook need not read. What fits into the pipe is written at once.
        let small = line.len() < PIPE;
        let mut write = move || drop(stdin.write_all(&line));
        if small {
            write();
        } else {
            drop(proc::thread::spawn("hook-in", write));
        }
    }
    let (said, words) = mpsc::channel();
    if let Some(mut stderr) = child.take_stderr() {
        let _ = proc::thread::spawn("hook-err", move || {
            let (mut kept, mut block) = (Vec::new(), [0; 4096]);
            while let Ok(n) = stderr.read(&mut block) {
                if n == 0 {
                    break;
                }
                kept.extend_from_slice(&block[..n]);
                let over = kept.len().saturating_sub(QUOTED);
                kept.drain(..over);
            }
            let _ = said.send(String::from_utf8_lossy(&kept).into_owned());
        });
    }
    let what = match child.wait_timeout(limit.saturating_sub(begun.elapsed())) {
        Some(Exit::Code(0)) => return Ok(()),
        Some(exit) => format!("ended with {exit}"),
        None => {
            child.signal_group(libc::SIGKILL);
            child.wait();
            format!("took longer than {} and was killed", duration_text(limit))
        }
    };
    let words = words.recv_timeout(LAST_WORDS).unwrap_or_default();
    let words = log::one_line(words.trim());
    Err(if words.is_empty() { what } else { format!("{what}: {words}") })
}
