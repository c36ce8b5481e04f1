//! What lives as long as a server's definition is unchanged: the table of its
//! instances, the line of those who wait for room in it, and the cool-down
//! after failures. Knows nothing of what a call is.
//!
//! The lock here is held for look-ups and insertions alone: never while an
//! instance's own lock is taken, and never across I/O.

use super::Warnings;
use super::connect::{Asked, Cancel, Connector};
use super::instance::Instance;
use super::schema::Known;
use super::scope::Key;
use super::server::Limits;
use super::start::start;
use super::ticket::{Ticket, Unanswered};
use crate::catalog::cache::Cache;
use crate::config::ServerDef;
use crate::error::{Error, Kind, Result};
use crate::log;
use crate::observe::{Bus, Event, kinds};
use crate::settings::Settings;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// What all servers of a pool share.
pub(super) struct Shared {
    pub connector: Box<dyn Connector>,
    pub cache: Cache,
    pub warnings: Warnings,
    pub bus: Arc<Bus>,
    /// Takes what servers ask while no call is under way.
    pub asked: OnceLock<Asked>,
}

/// The lasting part of one server.
pub(super) struct Core {
    pub name: String,
    pub digest: String,
    pub shared: Arc<Shared>,
    pub(super) state: Mutex<State>,
}

/// A place in the line for room: answered with the room, or with nothing when there is reason to look again.
type RoomTicket = Arc<Ticket<Option<Room>>>;

#[derive(Default)]
pub(super) struct State {
    instances: HashMap<Cow<'static, str>, Arc<Instance>>,
    /// The definition is gone, or the pool is: nothing is started here any more.
    closed: bool,
    line: VecDeque<(Cow<'static, str>, RoomTicket)>,
    /// Places that are promised to somebody who waited.
    promised: usize,
    cooling: HashMap<Option<PathBuf>, CoolDown>,
    last_error: Option<String>,
    pub pace: Pace,
    /// What is known of its tools; see `schema.rs`.
    pub known: Option<Arc<Known>>,
    pub disk_read: bool,
    /// Counts how often private lists were forgotten.
    pub epoch: u64,
    pub listing: Option<Vec<Arc<super::schema::Listener>>>,
    pub refreshing: Option<bool>,
}

/// The durations that the background work of a server keeps to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    /// The first cool-down after a failure.
    pub cool_min: Duration,
    /// The longest.
    pub cool_max: Duration,
    /// How long a listing of its tools may take.
    pub listing: Duration,
}

/// Failures in a row, and until when nothing is started because of them.
struct CoolDown {
    failures: u32,
    until: Instant,
    /// Forgotten when nothing happened until then.
    forget: Instant,
    cause: Error,
}

/// A promised place in the table; handed on when it is not used.
pub(super) struct Room(Option<Arc<Core>>);

impl Room {
    /// Turns the promise into an entry of the table, which the caller makes under the same lock.
    fn take(mut self, state: &mut State) {
        state.promised -= 1;
        self.0 = None;
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let Some(core) = self.0.take() else { return };
        let mut state = core.lock();
        state.promised -= 1;
        core.hand_on(state);
    }
}

impl Core {
    pub fn new(def: &ServerDef, shared: Arc<Shared>) -> Arc<Core> {
        Arc::new(Core { name: def.name.clone(), digest: def.digest.clone(), shared, state: Mutex::default() })
    }

    pub fn connector(&self) -> &dyn Connector {
        &*self.shared.connector
    }

    /// Passes a warning on, once.
    pub fn warn(&self, text: String) {
        self.shared.warnings.add(text);
    }

    /// The instance of this key, started when there is none. `None`: the
    /// server's definition changed meanwhile; look the server up again.
    ///
    /// # Errors
    /// The cause of the last failure during its cool-down; `Busy` when `pool.max`
    /// instances run and none of them is about to end; `Cancelled`, `Timeout`.
    pub fn instance(
        self: &Arc<Self>,
        key: &Key,
        def: &Arc<ServerDef>,
        limits: &Limits,
        settings: &Settings,
        deadline: Option<Instant>,
        cancel: &Cancel,
    ) -> Result<Option<Arc<Instance>>> {
        let mut room: Option<Room> = None;
        loop {
            let mut state = self.lock();
            if state.closed {
                return Ok(None);
            }
            state.pace = limits.pace;
            if let Some(instance) = state.instances.get(&key.text) {
                return Ok(Some(instance.clone()));
            }
            state.cool(&self.name, key)?;
            if room.is_some() || state.instances.len() + state.promised < limits.max {
                let instance = Instance::new(self.clone(), key.clone(), def.clone());
                state.instances.insert(key.text.clone(), instance.clone());
                if let Some(room) = room.take() {
                    room.take(&mut state);
                }
                // Others who wait for this very instance need no place of their own.
                let mine = state.take_waiting(&key.text);
                drop(state);
                for ticket in mine {
                    let _ = ticket.answer(None);
                }
                instance.watch_owner();
                start(&instance, settings.clone());
                return Ok(Some(instance));
            }
            if !state.instances.values().any(|i| i.key.once || i.is_ending())
                || state.line.len() >= limits.queue
            {
                return Err(self.full(limits));
            }
            let ticket = Ticket::new();
            state.line.push_back((key.text.clone(), ticket.clone()));
            drop(state);
            match ticket.wait(deadline, cancel) {
                Ok(place) => room = place,
                Err(why) => {
                    self.lock().line.retain(|(_, other)| !Arc::ptr_eq(other, &ticket));
                    return Err(self.gave_up(why, limits));
                }
            }
        }
    }

    fn full(&self, limits: &Limits) -> Error {
        Error::new(
            Kind::Busy,
            format!("server \"{}\" has {} instances already and none is about to end", self.name, limits.max),
        )
        .hint("end a session, or raise pool.max or the server's own \"max\"")
    }

    fn gave_up(&self, why: Unanswered, limits: &Limits) -> Error {
        let what =
            format!("while waiting for one of the {} instances of server \"{}\"", limits.max, self.name);
        match why {
            Unanswered::Cancelled => Error::new(Kind::Cancelled, format!("cancelled {what}")),
            Unanswered::TimedOut => {
                Error::new(Kind::Timeout, format!("timed out {what}; the call was not sent"))
                    .hint("raise pool.max or the server's own \"max\"")
            }
        }
    }

    /// Takes an instance out of the table; it must be over.
    pub fn remove(self: &Arc<Self>, instance: &Arc<Instance>) {
        let mut state = self.lock();
        if state.instances.get(&instance.key.text).is_some_and(|i| Arc::ptr_eq(i, instance)) {
            state.instances.remove(&instance.key.text);
            self.hand_on(state);
        }
    }

    /// Offers one free place to those who wait, in order.
    fn hand_on(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        let Some((_, ticket)) = state.line.pop_front() else { return };
        state.promised += 1;
        drop(state);
        // When the one at the front has left, the returned `Room` is dropped, which offers it to the next.
        drop(ticket.answer(Some(Room(Some(self.clone())))));
    }

    /// All instances, in no order.
    pub fn instances(&self) -> Vec<Arc<Instance>> {
        self.lock().instances.values().cloned().collect()
    }

    /// Starts nothing from now on; returns what runs.
    pub fn close(&self) -> Vec<Arc<Instance>> {
        let mut state = self.lock();
        state.closed = true;
        let line = std::mem::take(&mut state.line);
        let instances = state.instances.values().cloned().collect();
        drop(state);
        for (_, ticket) in line {
            let _ = ticket.answer(None);
        }
        instances
    }

    /// Nothing runs here.
    pub fn is_empty(&self) -> bool {
        self.lock().instances.is_empty()
    }

    /// A start failed: nothing of the same place is started for a while.
    pub fn note_failure(&self, key: &Key, cause: Error) {
        log::warn(format_args!("server \"{}\" ({}) did not start: {}", self.name, key.text, cause.message()));
        self.publish(&kinds::SERVER_FAILED, key, json!({"message": cause.message()}));
        let mut state = self.lock();
        let Pace { cool_min, cool_max, .. } = state.pace;
        state.last_error = Some(cause.message().to_owned());
        let now = Instant::now();
        let entry = state.cooling.entry(key.place.clone()).or_insert_with(|| CoolDown {
            failures: 0,
            until: now,
            forget: now,
            cause: cause.clone(),
        });
        entry.failures = entry.failures.saturating_add(1);
        let delay = delay_after(entry.failures, cool_min, cool_max);
        entry.until = now + delay;
        entry.forget = now + delay + cool_max;
        entry.cause = cause;
    }

    /// An instance ended by itself. One that never answered anything counts as a failed start.
    pub fn note_crash(&self, key: &Key, cause: Error, unproved: bool) {
        if unproved {
            self.note_failure(key, cause);
            return;
        }
        log::warn(cause.message());
        self.publish(&kinds::SERVER_FAILED, key, json!({"message": cause.message()}));
        self.lock().last_error = Some(cause.message().to_owned());
    }

    /// Publishes an event about one of the instances.
    pub fn publish(&self, kind: &'static kinds::Kind, key: &Key, mut data: Value) {
        data["instance"] = key.text.as_ref().into();
        let session = key.session.as_deref().unwrap_or_default();
        self.shared.bus.publish(Event::new(kind, data).server(&self.name).session(session));
    }

    /// An instance answered for the first time.
    pub fn note_success(&self, key: &Key) {
        self.lock().cooling.remove(&key.place);
    }

    /// Forgets all failures: the next call tries at once.
    pub fn forgive(&self) {
        self.lock().cooling.clear();
    }

    /// Forgets failures that are long past.
    pub fn tidy(&self) {
        let now = Instant::now();
        self.lock().cooling.retain(|_, cool| cool.forget > now);
    }

    /// What went wrong last, and whether a cool-down is on.
    pub fn trouble(&self) -> (Option<String>, bool) {
        let state = self.lock();
        let now = Instant::now();
        (state.last_error.clone(), state.cooling.values().any(|c| c.until > now))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Fails during the cool-down of this key's place.
    fn cool(&self, server: &str, key: &Key) -> Result<()> {
        let Some(cool) = self.cooling.get(&key.place) else { return Ok(()) };
        let left = cool.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        let times = match cool.failures {
            1 => "once".to_owned(),
            n => format!("{n} times in a row"),
        };
        let cause = &cool.cause;
        // What a server wrote to stderr ends a message, and is not to be continued.
        let between = if cause.message().contains('\n') { '\n' } else { ' ' };
        let mut error = Error::new(
            cause.kind(),
            format!(
                "{}{between}(server \"{server}\" failed {times}; it is not started again for {:.1} s)",
                cause.message(),
                left.as_secs_f64()
            ),
        );
        if let Some(raw) = cause.raw_value() {
            error = error.raw(raw.clone());
        }
        Err(error.hint(match cause.hint_text() {
            Some(hint) => hint.to_owned(),
            None => format!("`mcpx restart {server}` tries again at once"),
        }))
    }

    fn take_waiting(&mut self, key: &str) -> Vec<RoomTicket> {
        let (mine, others) = std::mem::take(&mut self.line).into_iter().partition(|(text, _)| text == key);
        self.line = others;
        let mine: VecDeque<(Cow<'static, str>, _)> = mine;
        mine.into_iter().map(|(_, ticket)| ticket).collect()
    }
}

/// The cool-down after so many failures in a row: doubles from `min`, up to `max`.
fn delay_after(failures: u32, min: Duration, max: Duration) -> Duration {
    let doubled = 1u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
    min.checked_mul(doubled).map_or(max, |d| d.min(max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cool_down_doubles_up_to_its_limit() {
        let (min, max) = (Duration::from_secs(1), Duration::from_secs(30));
        let seconds: Vec<u64> = (1..=7).map(|n| delay_after(n, min, max).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(delay_after(u32::MAX, min, max), max);
        assert_eq!(delay_after(9, Duration::ZERO, max), Duration::ZERO);
    }
}
