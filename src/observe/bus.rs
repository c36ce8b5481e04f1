//! The bus: events in order, a bounded history of them, and whoever waits for
//! the next one. Publishing never waits for a reader; a reader that falls behind
//! the history learns how much it missed. Knows nothing of what events mean.

use super::kinds::{self, Kind};
use super::log::Entry;
use crate::util;
use serde::Serialize;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Something that happened.
#[derive(Clone, Debug, Serialize)]
pub struct Event {
    /// Its number on this daemon's bus, from 1 on, without gaps.
    pub seq: u64,
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// `family.what`.
    pub kind: &'static str,
    /// The server it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The session it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The resource it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// More, as the kind says; an object.
    pub data: Value,
}

impl Event {
    /// An event that is about nothing in particular yet; the bus numbers and dates it.
    pub fn new(kind: &'static Kind, data: Value) -> Event {
        Event { seq: 0, at: 0, kind: kind.word, server: None, session: None, uri: None, data }
    }
    /// About this server.
    pub fn server(mut self, name: &str) -> Event {
        self.server = Some(name.to_owned());
        self
    }
    /// Of this session; an empty name is none.
    pub fn session(mut self, key: &str) -> Event {
        self.session = (!key.is_empty()).then(|| key.to_owned());
        self
    }
    /// About this resource.
    pub fn uri(mut self, uri: &str) -> Event {
        self.uri = Some(uri.to_owned());
        self
    }
}

/// Which events are wanted; an empty list wants all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Kinds (`call.finished`) or families (`call`).
    pub kinds: Vec<String>,
    /// Servers.
    pub servers: Vec<String>,
    /// Sessions.
    pub sessions: Vec<String>,
}

impl Filter {
    /// Whether an event is wanted.
    pub fn takes(&self, event: &Event) -> bool {
        self.wants(event.kind, event.server.as_deref(), event.session.as_deref())
    }

    fn wants(&self, kind: &str, server: Option<&str>, session: Option<&str>) -> bool {
        let among = |wanted: &[String], value: Option<&str>| {
            wanted.is_empty() || value.is_some_and(|value| wanted.iter().any(|w| w == value))
        };
        let family = kind.split('.').next().unwrap_or_default();
        (self.kinds.is_empty() || self.kinds.iter().any(|k| k == kind || k == family))
            && among(&self.servers, server)
            && among(&self.sessions, session)
    }

    /// The first word among the kinds that is neither a kind nor a family.
    pub fn unknown_kind(&self) -> Option<&str> {
        let known = |word: &str| {
            kinds::of_word(word).is_some()
                || kinds::ALL.iter().any(|kind| kind.word.split('.').next() == Some(word))
        };
        self.kinds.iter().map(String::as_str).find(|word| !known(word))
    }
}

/// What a reader gets.
#[derive(Debug)]
pub struct Wait {
    /// The events, oldest first.
    pub events: Vec<Arc<Event>>,
    /// The number after which to read on.
    pub after: u64,
    /// So many events between the reader's place and the first one were forgotten.
    pub missed: u64,
    /// The bus is closed: nothing follows.
    pub closed: bool,
}

/// What a tap is told.
#[derive(Debug)]
pub enum Heard<'a> {
    /// An event as it is published, and what only the log is to know of it.
    Event(&'a Arc<Event>, Option<Value>),
    /// A record that is no event: readers of the bus never see it.
    Record(Box<Entry>),
}

/// Hears of everything, on the thread that it happens on. It must neither wait nor use the bus.
pub type Tap = Box<dyn Fn(Heard<'_>) + Send + Sync>;

/// The bus of one daemon.
pub struct Bus {
    state: Mutex<State>,
    more: Condvar,
    tap: OnceLock<Tap>,
    detailed: AtomicBool,
    daemon: String,
    serial: AtomicU64,
}

/// An event as it is remembered. Thousands are, and mostly nobody asks for them: its
/// data is text, which takes a fifth of what the value does.
struct Past {
    seq: u64,
    at: u64,
    kind: &'static str,
    server: Option<Box<str>>,
    session: Option<Box<str>>,
    uri: Option<Box<str>>,
    data: Box<str>,
}

impl Past {
    fn of(event: &Event, data: Box<str>) -> Past {
        let own = |text: &Option<String>| text.as_deref().map(Box::from);
        Past {
            seq: event.seq,
            at: event.at,
            kind: event.kind,
            server: own(&event.server),
            session: own(&event.session),
            uri: own(&event.uri),
            data,
        }
    }

    fn event(&self) -> Arc<Event> {
        let own = |text: &Option<Box<str>>| text.as_deref().map(str::to_owned);
        Arc::new(Event {
            seq: self.seq,
            at: self.at,
            kind: self.kind,
            server: own(&self.server),
            session: own(&self.session),
            uri: own(&self.uri),
            data: serde_json::from_str(&self.data).unwrap_or_default(),
        })
    }
}

struct State {
    history: VecDeque<Past>,
    room: usize,
    last: u64,
    closed: bool,
    /// So many readers wait: waking nobody would still be a system call for each event.
    waiting: usize,
}

impl Bus {
    /// A bus that remembers so many events.
    pub fn new(room: usize) -> Arc<Bus> {
        let state = State { history: VecDeque::new(), room: room.max(1), last: 0, closed: false, waiting: 0 };
        // A process and the moment it began: short enough to be typed.
        let daemon = format!("d{:x}-{:x}", util::now_ms() / 1000, std::process::id());
        let (tap, detailed, serial) = (OnceLock::new(), AtomicBool::new(false), AtomicU64::new(0));
        Arc::new(Bus { state: Mutex::new(state), more: Condvar::new(), tap, detailed, daemon, serial })
    }

    /// Has every event seen by this from now on; the first one stays.
    pub fn set_tap(&self, tap: Tap) {
        let _ = self.tap.set(tap);
    }

    /// Says whether the log wants the contents of calls.
    pub fn set_detailed(&self, on: bool) {
        self.detailed.store(on, Ordering::Relaxed);
    }

    /// Whether the log wants the contents of calls.
    pub fn is_detailed(&self) -> bool {
        self.detailed.load(Ordering::Relaxed)
    }

    /// Adds an event.
    pub fn publish(&self, event: Event) {
        self.publish_with(event, None);
    }

    /// Adds an event; what else there is goes to the log alone.
    pub fn publish_with(&self, mut event: Event, extra: Option<Value>) {
        event.at = util::now_ms();
        let data = event.data.to_string().into();
        let mut state = self.lock();
        if state.closed {
            return;
        }
        state.last += 1;
        event.seq = state.last;
        if state.history.len() >= state.room {
            state.history.pop_front();
        }
        state.history.push_back(Past::of(&event, data));
        let wanted = state.waiting > 0;
        drop(state);
        if wanted {
            self.more.notify_all();
        }
        if let Some(tap) = self.tap.get() {
            tap(Heard::Event(&Arc::new(event), extra));
        }
    }

    /// Tells the log alone.
    pub fn record(&self, entry: Entry) {
        if let Some(tap) = self.tap.get() {
            tap(Heard::Record(Box::new(entry)));
        }
    }

    /// The id of this daemon among all that write a log: it never comes twice on one machine.
    pub fn daemon(&self) -> &str {
        &self.daemon
    }

    /// The next id of its kind, such as that of a call: `<daemon>.<number>`.
    pub fn mint(&self) -> String {
        format!("{}.{}", self.daemon, self.serial.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// The number of the newest event; 0 before the first.
    pub fn last(&self) -> u64 {
        self.lock().last
    }

    /// How many events are remembered from now on.
    pub fn remember(&self, room: usize) {
        let mut state = self.lock();
        state.room = room.max(1);
        while state.history.len() > state.room {
            state.history.pop_front();
        }
    }

    /// What came after an event, at most so many, as far as it is remembered; waits
    /// for something wanted for at most so long, or until the reader has gone (see
    /// [`Bus::stir`]). A number that lies ahead (of another daemon's bus) counts as none.
    pub fn read(
        &self,
        after: u64,
        filter: &Filter,
        most: usize,
        patience: Duration,
        gone: &dyn Fn() -> bool,
    ) -> Wait {
        let deadline = Instant::now() + patience;
        let mut state = self.lock();
        let mut after = if after > state.last { 0 } else { after };
        let mut missed = 0;
        loop {
            let oldest = state.last + 1 - state.history.len() as u64;
            missed += oldest.saturating_sub(after + 1);
            after = after.max(oldest - 1);
            let mut events = Vec::new();
            let skip = usize::try_from(after + 1 - oldest).unwrap_or(usize::MAX);
            for past in state.history.iter().skip(skip) {
                if events.len() >= most {
                    break;
                }
                after = past.seq;
                if filter.wants(past.kind, past.server.as_deref(), past.session.as_deref()) {
                    events.push(past.event());
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if !events.is_empty() || missed > 0 || state.closed || left.is_zero() || gone() {
                return Wait { events, after, missed, closed: state.closed };
            }
            state.waiting += 1;
            state = self.more.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            state.waiting -= 1;
        }
    }

    /// Ends it: readers get what is left and learn that nothing follows.
    pub fn close(&self) {
        self.lock().closed = true;
        self.more.notify_all();
    }

    /// Wakes readers, so that they look whether they are still wanted.
    pub fn stir(&self) {
        self.more.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const SOON: Duration = Duration::ZERO;
    const LONG: Duration = Duration::from_secs(60);

    fn call(bus: &Bus, server: &str, session: &str) {
        bus.publish(
            Event::new(&kinds::CALL_FINISHED, json!({"tool": "echo"})).server(server).session(session),
        );
    }

    fn seqs(wait: &Wait) -> Vec<u64> {
        wait.events.iter().map(|event| event.seq).collect()
    }

    #[test]
    fn a_reader_goes_on_where_it_was_and_learns_what_it_missed() {
        let bus = Bus::new(3);
        let all = Filter::default();
        assert!(bus.read(0, &all, 10, SOON, &|| false).events.is_empty());
        (0..3).for_each(|_| call(&bus, "a", ""));
        let first = bus.read(0, &all, 2, SOON, &|| false);
        assert_eq!(first.events[0].data, json!({"tool": "echo"}), "what was said comes back");
        assert_eq!((seqs(&first), first.after, first.missed), (vec![1, 2], 2, 0));
        assert_eq!(seqs(&bus.read(first.after, &all, 10, SOON, &|| false)), [3]);
        (0..3).for_each(|_| call(&bus, "a", ""));
        let late = bus.read(first.after, &all, 10, SOON, &|| false);
        assert_eq!((seqs(&late), late.missed), (vec![4, 5, 6], 1));
        // A number of another bus.
        assert_eq!(seqs(&bus.read(900, &all, 10, SOON, &|| false)), [4, 5, 6]);
        bus.remember(1);
        assert_eq!(seqs(&bus.read(5, &all, 10, SOON, &|| false)), [6]);
    }

    #[test]
    fn what_is_not_wanted_is_passed_over() {
        let bus = Bus::new(10);
        call(&bus, "a", "one");
        call(&bus, "b", "two");
        bus.publish(Event::new(&kinds::CONFIG_CHANGED, json!({"key": "k"})));
        let of = |kinds: &[&str], servers: &[&str], sessions: &[&str]| {
            let own = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect();
            Filter { kinds: own(kinds), servers: own(servers), sessions: own(sessions) }
        };
        let read = |filter: &Filter| seqs(&bus.read(0, filter, 10, SOON, &|| false));
        assert_eq!(read(&of(&["call"], &[], &[])), [1, 2]);
        assert_eq!(read(&of(&["config.changed", "call.finished"], &[], &[])), [1, 2, 3]);
        assert_eq!(read(&of(&[], &["b"], &[])), [2]);
        assert_eq!(read(&of(&[], &[], &["one"])), [1]);
        assert_eq!(of(&["call", "cal"], &[], &[]).unknown_kind(), Some("cal"));
    }

    #[test]
    fn a_waiting_reader_is_woken_by_what_it_wants_and_by_the_end() {
        let bus = Bus::new(10);
        let (inside, filter) = (bus.clone(), Filter { servers: vec!["b".into()], ..Filter::default() });
        let reader = std::thread::spawn(move || {
            let first = inside.read(0, &filter, 10, LONG, &|| false);
            let end = inside.read(first.after, &filter, 10, LONG, &|| false);
            (seqs(&first), end.closed)
        });
        call(&bus, "a", "");
        call(&bus, "b", "");
        while bus.last() < 2 {}
        bus.close();
        let (first, closed) = reader.join().unwrap();
        assert_eq!(first, [2]);
        assert!(closed);
        call(&bus, "b", "");
        assert_eq!(bus.last(), 2, "a closed bus takes nothing");
    }
}
