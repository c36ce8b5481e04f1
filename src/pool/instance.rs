//! One instance of a server: a small state machine, the line of callers in
//! front of it, and the leases of those who are in.
//!
//! ```text
//! Starting ──▶ Ready ──▶ Draining ──▶ Stopping ──▶ Over
//!     │          └────────────────────▲  ▲           ▲
//!     └─ fails ──────────────────────────┼───────────┘
//!     └─ retired ────────────────────────┘
//! ```
//!
//! What never happens here: the lock is never held while something is sent,
//! started or stopped; nobody enters unless `Ready`; nobody passes one who
//! waits; a phase is never left backwards; an instance that is not `Over` is
//! never missing from its server's table, so that no key has two processes.

use super::connect::{Cancel, Upstream};
use super::core::Core;
use super::scope::Key;
use super::start::stop;
use super::ticket::{Ticket, Unanswered};
use crate::config::ServerDef;
use crate::error::{Error, Kind, Result};
use crate::log;
use crate::observe::kinds;
use crate::proc;
use serde_json::json;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Where an instance is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Starting,
    Ready,
    /// Finishes what is in flight and lets nobody else in.
    Draining,
    /// Its end has begun; those who come now wait for its successor.
    Stopping,
    Over,
}

/// Why an instance ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It served the one call that it was started for.
    Served,
    /// Nobody is left who waits for its start.
    Abandoned,
    Idle,
    Restart,
    /// The configuration changed.
    Reconfigured,
    SessionEnded,
    ProcessEnded(u32),
    Shutdown,
    /// It answers nothing any more.
    Stuck,
    /// It ended by itself; the reason, which continues `server "x"`.
    Crashed(String),
}

impl std::fmt::Display for End {
    /// Continues `server "x"`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            End::Served => "was stopped after its one call",
            End::Abandoned => "was stopped because nobody waited for it any more",
            End::Idle => "was stopped because it was idle",
            End::Restart => "was restarted",
            End::Reconfigured => "was stopped because its configuration changed",
            End::SessionEnded => "was stopped because its session ended",
            End::ProcessEnded(pid) => {
                return write!(f, "was stopped because process {pid}, which it belonged to, ended");
            }
            End::Shutdown => "was stopped because the daemon is shutting down",
            End::Stuck => "was stopped because it answered neither a call nor a ping in time",
            End::Crashed(reason) => return f.write_str(reason),
        })
    }
}

impl End {
    /// Those who wait go home at once, instead of waiting for a successor.
    pub fn dismisses(&self) -> bool {
        matches!(self, End::SessionEnded | End::ProcessEnded(_) | End::Shutdown | End::Abandoned)
    }
}

/// The answer to one who waits.
enum Admission {
    Enter(Arc<dyn Upstream>),
    /// The instance ended before the caller's turn; look for its successor.
    Again,
    Refused(Error),
}

/// How a caller enters.
pub(super) struct Visit<'a> {
    /// One at a time.
    pub exclusive: bool,
    /// How many may wait.
    pub queue: usize,
    pub deadline: Option<Instant>,
    pub cancel: &'a Cancel,
    /// For a listing: how long the start may take. Absent: for a call.
    pub listing: Option<Duration>,
}

/// One instance of a server.
pub(super) struct Instance {
    pub key: Key,
    /// The definition that it was started from.
    pub def: Arc<ServerDef>,
    pub core: Arc<Core>,
    /// Breaks off the start.
    pub start: Cancel,
    /// Set once its end has begun. For those who look on without the lock.
    ending: AtomicBool,
    inner: Mutex<Inner>,
    over: Condvar,
    /// Tells the end of the process that it belongs to; see [`Instance::watch_owner`].
    owner: OnceLock<Option<proc::ExitWatch>>,
}

struct Inner {
    phase: Phase,
    upstream: Option<Arc<dyn Upstream>>,
    exclusive: bool,
    in_flight: usize,
    /// The sessions of those in flight, as far as they said so; one may be there more than once.
    callers: Vec<String>,
    line: VecDeque<Arc<Ticket<Admission>>>,
    calls: u64,
    /// It has answered something; until then it is not known to work.
    proved: bool,
    /// A ping is out.
    probing: bool,
    started: Instant,
    used: Instant,
    end: Option<End>,
    /// Why it did not start.
    failed: Option<Error>,
    last_error: Option<String>,
}

/// What `status` shows of an instance.
pub(super) struct Look {
    pub phase: Phase,
    pub upstream: Option<Arc<dyn Upstream>>,
    pub in_flight: usize,
    pub queue: usize,
    pub calls: u64,
    pub started: Instant,
    pub last_error: Option<String>,
}

impl Instance {
    pub fn new(core: Arc<Core>, key: Key, def: Arc<ServerDef>) -> Arc<Instance> {
        let now = Instant::now();
        Arc::new(Instance {
            key,
            def,
            core,
            start: Cancel::new(),
            ending: AtomicBool::new(false),
            inner: Mutex::new(Inner {
                phase: Phase::Starting,
                upstream: None,
                exclusive: false,
                in_flight: 0,
                callers: Vec::new(),
                line: VecDeque::new(),
                calls: 0,
                proved: false,
                probing: false,
                started: now,
                used: now,
                end: None,
                failed: None,
                last_error: None,
            }),
            over: Condvar::new(),
            owner: OnceLock::new(),
        })
    }

    /// Has it end as soon as the process ends that it belongs to, if it belongs to one.
    pub fn watch_owner(self: &Arc<Self>) {
        let Some((pid, ticks)) = self.key.pid else { return };
        let weak = Arc::downgrade(self);
        let ended = move || {
            if let Some(instance) = weak.upgrade() {
                instance.retire(End::ProcessEnded(pid), false);
            }
        };
        let _ = self.owner.set(proc::on_exit(pid, ticks, ended));
    }

    /// The process that it belongs to has ended, and nobody was told: for systems that do not tell.
    pub fn outlives_owner(&self) -> Option<u32> {
        let told = matches!(self.owner.get(), Some(Some(_)));
        let (pid, ticks) = self.key.pid.filter(|_| !told)?;
        (!proc::alive(pid, ticks)).then_some(pid)
    }

    /// The server runs: lets those in who wait. Gives it back when the end has begun meanwhile.
    pub fn open(&self, upstream: Arc<dyn Upstream>) -> std::result::Result<(), Arc<dyn Upstream>> {
        let mut inner = self.lock();
        if inner.phase != Phase::Starting {
            return Err(upstream);
        }
        inner.upstream = Some(upstream);
        inner.phase = Phase::Ready;
        inner.used = Instant::now();
        inner.admit();
        Ok(())
    }

    /// Waits for a turn. `None`: the instance ended before it, nothing was sent.
    ///
    /// # Errors
    /// `Busy` when too many wait, `Cancelled`, `Timeout`, or why the server did not start.
    pub fn enter(self: &Arc<Self>, visit: &Visit<'_>) -> Result<Option<Lease>> {
        self.notice_crash();
        let ticket = {
            let mut inner = self.lock();
            inner.exclusive = visit.exclusive;
            match inner.phase {
                // The start that this caller came for may fail before it is in line.
                Phase::Over | Phase::Draining => return inner.failed.clone().map_or(Ok(None), Err),
                Phase::Ready if inner.line.is_empty() && inner.has_room() => {
                    if let Some(upstream) = inner.upstream.clone() {
                        inner.in_flight += 1;
                        return Ok(Some(self.lease(upstream)));
                    }
                }
                _ => {}
            }
            if inner.line.len() >= visit.queue {
                return Err(Error::new(
                    Kind::Busy,
                    format!("{} callers wait for server \"{}\" already", inner.line.len(), self.def.name),
                )
                .hint("try again later, or raise pool.queue"));
            }
            let ticket = Ticket::new();
            inner.line.push_back(ticket.clone());
            ticket
        };
        match ticket.wait(visit.deadline, visit.cancel) {
            Ok(Admission::Enter(upstream)) => Ok(Some(self.lease(upstream))),
            Ok(Admission::Again) => Ok(None),
            Ok(Admission::Refused(error)) => Err(error),
            Err(why) => Err(self.left(&ticket, why, visit.listing)),
        }
    }

    /// Forgets one who no longer waits.
    fn left(
        self: &Arc<Self>,
        ticket: &Arc<Ticket<Admission>>,
        why: Unanswered,
        listing: Option<Duration>,
    ) -> Error {
        let mut inner = self.lock();
        inner.line.retain(|other| !Arc::ptr_eq(other, ticket));
        let starting = inner.phase == Phase::Starting;
        let abandoned = self.key.once && inner.line.is_empty() && inner.in_flight == 0;
        drop(inner);
        if abandoned {
            self.retire(End::Abandoned, false);
        }
        let what = if starting { "to start" } else { "to be free" };
        let name = &self.def.name;
        match (why, listing) {
            (Unanswered::Cancelled, _) => {
                Error::new(Kind::Cancelled, format!("cancelled while waiting for server \"{name}\" {what}"))
            }
            (Unanswered::TimedOut, Some(limit)) if starting => Error::new(
                Kind::Timeout,
                format!("server \"{name}\" did not start within {limit:?} (startTimeout)"),
            )
            .hint(
                "give it longer with pool.startTimeout, or with startTimeout in the server's \"mcpx\" block",
            ),
            (Unanswered::TimedOut, Some(limit)) => Error::new(
                Kind::Timeout,
                format!("server \"{name}\" was not free for a listing within {limit:?} (startTimeout)"),
            ),
            (Unanswered::TimedOut, None) => Error::new(
                Kind::Timeout,
                format!("timed out waiting for server \"{name}\" {what}; the call was not sent"),
            ),
        }
    }

    fn lease(self: &Arc<Self>, upstream: Arc<dyn Upstream>) -> Lease {
        Lease { instance: self.clone(), upstream, session: None }
    }

    /// Gives a place back.
    fn release(self: &Arc<Self>, session: Option<&str>) {
        let mut inner = self.lock();
        inner.in_flight -= 1;
        if let Some(at) = session.and_then(|session| inner.callers.iter().position(|c| c == session)) {
            inner.callers.swap_remove(at);
        }
        inner.used = Instant::now();
        inner.admit();
        let idle = inner.in_flight == 0;
        let drained = idle && inner.phase == Phase::Draining;
        drop(inner);
        if drained {
            self.retire(End::Reconfigured, false);
        } else if idle && self.key.once {
            self.retire(End::Served, false);
        }
    }

    /// Begins the end: at once, or, `gently`, when what is in flight is done.
    /// False when it had begun before. Returns at once; see [`Instance::wait_over`].
    pub fn retire(self: &Arc<Self>, end: End, gently: bool) -> bool {
        let mut inner = self.lock();
        let running = match inner.phase {
            Phase::Stopping | Phase::Over => return false,
            Phase::Draining if gently => return false,
            Phase::Ready if gently && inner.in_flight > 0 => {
                inner.phase = Phase::Draining;
                None
            }
            Phase::Starting => {
                inner.phase = Phase::Stopping;
                None
            }
            Phase::Ready | Phase::Draining => {
                inner.phase = Phase::Stopping;
                inner.upstream.clone()
            }
        };
        self.ending.store(true, Ordering::Release);
        let sent_home = if inner.phase == Phase::Draining || end.dismisses() {
            std::mem::take(&mut inner.line)
        } else {
            VecDeque::new()
        };
        let unproved = !inner.proved && inner.in_flight == 0;
        if let End::Crashed(reason) = &end {
            inner.last_error = Some(reason.clone());
        }
        let dismissed = end.dismisses().then(|| self.ended(&end, Kind::Cancelled));
        inner.end = Some(end.clone());
        let stopping = inner.phase == Phase::Stopping;
        drop(inner);

        if !matches!(end, End::Crashed(_)) {
            log::debug(format_args!("server \"{}\" ({}) {end}", self.def.name, self.key.text));
            self.core.publish(&kinds::SERVER_STOPPED, &self.key, json!({"why": end.to_string()}));
        }
        for ticket in sent_home {
            let _ = ticket.answer(match &dismissed {
                Some(error) => Admission::Refused(error.clone()),
                None => Admission::Again,
            });
        }
        if let End::Crashed(reason) = end {
            let error = Error::new(Kind::Unavailable, format!("server \"{}\" {reason}", self.def.name));
            self.core.note_crash(&self.key, error, unproved);
        }
        if let Some(upstream) = running {
            stop(self, upstream);
        } else if stopping {
            self.start.cancel();
        }
        true
    }

    /// The last step: leaves the table, and sends those who wait to the successor.
    pub fn finish(self: &Arc<Self>, failed: Option<Error>) {
        self.core.remove(self);
        let mut inner = self.lock();
        inner.phase = Phase::Over;
        inner.upstream = None;
        inner.failed.clone_from(&failed);
        let line = std::mem::take(&mut inner.line);
        drop(inner);
        self.over.notify_all();
        for ticket in line {
            let _ = ticket.answer(match &failed {
                Some(error) => Admission::Refused(error.clone()),
                None => Admission::Again,
            });
        }
    }

    /// Waits until nothing of it is left, or until `deadline`.
    pub fn wait_over(&self, deadline: Instant) -> bool {
        let mut inner = self.lock();
        while inner.phase != Phase::Over {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            inner = self.over.wait_timeout(inner, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// The sessions whose requests it works on.
    pub fn callers(&self) -> Vec<String> {
        let mut callers = self.lock().callers.clone();
        callers.sort();
        callers.dedup();
        callers
    }

    /// A server that ended is retired by whoever notices first.
    pub fn notice_crash(self: &Arc<Self>) {
        let Some(upstream) = self.upstream() else { return };
        if upstream.is_closed() {
            let reason = upstream.closed_reason().unwrap_or_else(|| "closed its connection".into());
            self.retire(End::Crashed(reason), false);
        }
    }

    /// Asks for a sign of life after a call timed out, in the background, and
    /// ends the instance when neither a pong nor any other answer comes within `limit`.
    pub fn probe(self: &Arc<Self>, limit: Duration) {
        let mut inner = self.lock();
        let Some(upstream) = inner.upstream.clone() else { return };
        if std::mem::replace(&mut inner.probing, true) {
            return;
        }
        let answers = inner.calls;
        drop(inner);
        let instance = self.clone();
        let _ = proc::thread::spawn("pool-ping", move || {
            let silent = upstream.ping(limit).is_err();
            let mut inner = instance.lock();
            inner.probing = false;
            let stuck = silent && inner.calls == answers && !upstream.is_closed();
            drop(inner);
            if stuck {
                instance.retire(End::Stuck, false);
            }
        });
    }

    /// Notes that the server answered a call or a listing.
    pub fn note_answer(&self, is_call: bool) {
        let mut inner = self.lock();
        inner.calls += u64::from(is_call);
        let first = !std::mem::replace(&mut inner.proved, true);
        drop(inner);
        if first {
            self.core.note_success(&self.key);
        }
    }

    /// Notes what went wrong, for `status`.
    pub fn note_error(&self, message: &str) {
        self.lock().last_error = Some(message.to_owned());
    }

    /// Why its end has begun, if it has.
    pub fn end(&self) -> Option<End> {
        let inner = self.lock();
        if inner.phase == Phase::Draining { None } else { inner.end.clone() }
    }

    /// Why it was ended, unless it ended by itself.
    pub fn deliberate_end(&self) -> Option<End> {
        self.end().filter(|end| !matches!(end, End::Crashed(_)))
    }

    /// Its end has begun. May be behind the truth by an instant.
    pub fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Acquire)
    }

    /// The running server, while there is one.
    pub fn upstream(&self) -> Option<Arc<dyn Upstream>> {
        self.lock().upstream.clone()
    }

    /// The error of a caller whom the instance's end concerns.
    pub fn ended(&self, end: &End, kind: Kind) -> Error {
        let name = &self.def.name;
        if kind != Kind::OutcomeUnknown {
            return Error::new(kind, format!("server \"{name}\" {end} before the call was sent"));
        }
        Error::new(kind, format!("server \"{name}\" {end} while a call was in flight"))
            .hint("the call was not sent again: find out whether it took effect before you repeat it")
    }

    /// A snapshot for `status` and for reaping.
    pub fn look(&self) -> Look {
        let inner = self.lock();
        Look {
            phase: inner.phase,
            upstream: inner.upstream.clone(),
            in_flight: inner.in_flight,
            queue: inner.line.len(),
            calls: inner.calls,
            started: inner.started,
            last_error: inner.last_error.clone(),
        }
    }

    /// How long nobody has been in; zero while somebody is, or waits, and while it starts.
    pub fn idle(&self) -> Duration {
        let inner = self.lock();
        let busy = inner.phase == Phase::Starting || inner.in_flight > 0 || !inner.line.is_empty();
        if busy { Duration::ZERO } else { inner.used.elapsed() }
    }

    /// Nobody is in, nobody waits, and nobody was for `limit`.
    pub fn is_idle_for(&self, limit: Duration) -> bool {
        let inner = self.lock();
        inner.phase == Phase::Ready
            && inner.in_flight == 0
            && inner.line.is_empty()
            && inner.used.elapsed() >= limit
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn has_room(&self) -> bool {
        !self.exclusive || self.in_flight == 0
    }

    /// Lets in those whose turn it is, in order. The ticket's lock is the only one taken under this one.
    fn admit(&mut self) {
        while self.phase == Phase::Ready && self.has_room() {
            let Some(upstream) = self.upstream.clone() else { return };
            let Some(ticket) = self.line.pop_front() else { return };
            if ticket.answer(Admission::Enter(upstream)).is_ok() {
                self.in_flight += 1;
            }
        }
    }
}

/// The right to use an instance; given back when it is dropped.
pub(super) struct Lease {
    pub instance: Arc<Instance>,
    pub upstream: Arc<dyn Upstream>,
    session: Option<String>,
}

impl Lease {
    /// Says whose request the instance works on while this lasts.
    pub fn works_for(&mut self, session: &str) {
        if !session.is_empty() && self.session.is_none() {
            self.instance.lock().callers.push(session.to_owned());
            self.session = Some(session.to_owned());
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.instance.release(self.session.as_deref());
    }
}
