//! The sessions at `/mcp` that hear news, and the one thread that reads the
//! daemon's events for all of them. Knows nothing of HTTP.

use super::news::{Happened, News};
use super::session::Session;
use crate::daemon::mcp_endpoint::Desk;
use crate::log;
use crate::observe::{Bus, Event, Filter};
use crate::proc::thread;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Who hears news.
#[derive(Default)]
pub struct Hearing {
    sessions: Mutex<Vec<Weak<Session>>>,
    /// What somebody reads for them, since the first of them came.
    bus: OnceLock<Arc<Bus>>,
    /// The last event that was told. Held while telling, so that the order stays.
    after: Mutex<u64>,
}

impl Hearing {
    /// Has a session hear news. The first one has somebody read the daemon's events.
    pub fn add(self: &Arc<Self>, desk: &Desk<'_>, session: &Arc<Session>) {
        let hearing = self;
        let mut sessions = lock(&hearing.sessions);
        sessions.retain(|s| s.strong_count() > 0);
        sessions.push(Arc::downgrade(session));
        drop(sessions);
        let bus = desk.bus();
        // Under the lock, so that what happens from now on is told.
        let mut after = lock(&hearing.after);
        if hearing.bus.get().is_some() {
            return;
        }
        *after = bus.last();
        let (weak, waiting) = (Arc::downgrade(hearing), bus.clone());
        match thread::spawn("mcp-news", move || follow(&waiting, &weak)) {
            Ok(_) => drop(hearing.bus.set(bus)),
            Err(e) => log::warn(format_args!("hosts will not hear of changes: {e}")),
        }
    }

    /// Tells everybody what has happened up to now.
    pub fn catch_up(&self) {
        let Some(bus) = self.bus.get() else { return };
        let mut after = lock(&self.after);
        if *after == bus.last() {
            return;
        }
        let filter = Filter { kinds: News::kinds(true).map(str::to_owned).collect(), ..Filter::default() };
        let sessions: Vec<Arc<Session>> = lock(&self.sessions).iter().filter_map(Weak::upgrade).collect();
        loop {
            let read = bus.read(*after, &filter, BATCH, Duration::ZERO, &|| false);
            *after = read.after;
            if read.events.is_empty() {
                return;
            }
            for news in read.events.iter().flat_map(|event| News::of(happened(event))) {
                sessions.iter().for_each(|session| session.tell(&news));
            }
        }
    }
}

/// An event as news are read from it.
fn happened(event: &Event) -> Happened {
    Happened {
        kind: event.kind.to_owned(),
        server: event.server.clone(),
        session: event.session.clone(),
        uri: event.uri.clone(),
        data: event.data.clone(),
    }
}

/// How long the reader of events waits before it looks whether anybody is left.
const LOOK: Duration = Duration::from_secs(30);
/// So many events are read at a time.
const BATCH: usize = 256;

/// Tells every session what happens, until the daemon stops.
fn follow(bus: &Bus, all: &Weak<Hearing>) {
    let filter = Filter { kinds: News::kinds(true).map(str::to_owned).collect(), ..Filter::default() };
    let mut after = bus.last();
    loop {
        let read = bus.read(after, &filter, BATCH, LOOK, &|| false);
        after = read.after;
        let Some(all) = all.upgrade() else { return };
        all.catch_up();
        if read.closed {
            return;
        }
    }
}
