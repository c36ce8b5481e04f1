//! Who of a session hears what: the requests that listen, the resources that
//! are watched, the calls that servers log in, and the place for what belongs
//! to no request. Knows nothing of what brings messages.

use super::backend::{Asked, Out};
use super::dispatch::Ask;
use super::era::{self, Era};
use super::news::{News, USUAL_LEVEL, Watch, is_wanted};
use super::resources;
use super::session::Session;
use super::tasks;
use crate::log;
use crate::mcp::jsonrpc;
use crate::pool::Cancel;
use crate::proc::thread;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The ears of one session.
#[derive(Default)]
pub struct Ears {
    listeners: Mutex<Vec<Listener>>,
    /// What a host of the handshake era subscribed to.
    watches: Mutex<Vec<Watch>>,
    calls: Mutex<Vec<Working>>,
    serial: AtomicU64,
    /// Where a host of the handshake era hears what belongs to no request.
    general: Mutex<Option<Out>>,
}

/// A host of the stateless era that listens.
pub struct Listener {
    /// The request's id.
    pub id: Box<RawValue>,
    /// The lists whose changes it wants to hear of, as its request names them.
    pub wanted: Value,
    /// What its request said of the host.
    pub era: Era,
    /// The resources that it wants to hear of.
    pub watches: Vec<Watch>,
    /// Where it hears.
    pub out: Out,
}

/// A request that a server works on.
struct Working {
    serial: u64,
    server: String,
    /// The lowest level of records that the request wants, in the stateless era; what the host said, in the other.
    level: Option<String>,
    stateless: bool,
    out: Out,
}

/// Keeps a request among those that a server works on.
struct AtWork<'a>(&'a Ears, u64);

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        lock(&self.0.calls).retain(|call| call.serial != self.1);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ears {
    /// Where the host hears from now on what belongs to no request.
    pub fn set_general(&self, out: Option<Out>) {
        *lock(&self.general) = out;
    }

    /// Has a server work on a request: what it logs meanwhile belongs to that, and comes before its answer.
    pub fn at_work<T>(session: &Session, ask: &Ask<'_>, server: &str, work: impl FnOnce() -> T) -> T {
        let ears = &session.ears;
        let serial = ears.serial.fetch_add(1, Ordering::Relaxed);
        let (stateless, level) = match &ask.era {
            Era::Stateless(envelope) => (true, envelope.level.clone()),
            Era::Handshake(_) => (false, None),
        };
        let (server, out) = (server.to_owned(), ask.out.clone());
        lock(&ears.calls).push(Working { serial, server, level, stateless, out });
        let _working = AtWork(ears, serial);
        let outcome = work();
        session.backend.catch_up();
        outcome
    }

    /// Adds one who listens.
    pub fn add(&self, listener: Listener) {
        lock(&self.listeners).push(listener);
    }
    /// Removes the one whose request has that id; what it watched.
    pub fn remove(&self, id: &RawValue) -> Vec<Watch> {
        let mut listeners = lock(&self.listeners);
        let at = listeners.iter().position(|l| l.id.get() == id.get());
        at.map(|at| listeners.remove(at).watches).unwrap_or_default()
    }

    /// Notes a subscription.
    pub fn watch(&self, watch: Watch) {
        let mut watches = lock(&self.watches);
        if !watches.contains(&watch) {
            watches.push(watch);
        }
    }
    /// Forgets a subscription, by the URI that the host knows.
    pub fn unwatch(&self, shown: &str) -> Vec<Watch> {
        let mut watches = lock(&self.watches);
        let (gone, left) = std::mem::take(&mut *watches).into_iter().partition(|w| w.shown == shown);
        *watches = left;
        gone
    }

    /// Nobody listens.
    #[cfg(test)]
    pub fn is_deaf(&self) -> bool {
        lock(&self.listeners).is_empty()
    }

    /// Everything that is watched, by whomever.
    fn watched(&self) -> Vec<Watch> {
        let mut all = lock(&self.watches).clone();
        lock(&self.listeners).iter().for_each(|l| all.extend(l.watches.iter().cloned()));
        all
    }

    /// Tells whoever wants to hear it.
    pub fn tell(session: &Arc<Session>, news: &News) {
        let ears = &session.ears;
        match news {
            News::Tools | News::Resources | News::Prompts => ears.tell_lists(session, news),
            News::Updated { server, uri, session: whose } if is_ours(session, whose.as_deref()) => {
                ears.tell_updated(session, server, uri);
            }
            News::Logged { server, record, session: whose } if is_ours(session, whose.as_deref()) => {
                ears.tell_logged(session, server, record);
            }
            News::Started { server, session: whose } if is_ours(session, whose.as_deref()) => {
                rewatch(session, ears.watched().into_iter().filter(|w| w.server == *server).collect());
            }
            News::Another => {
                for news in News::of_lists() {
                    ears.tell_lists(session, &news);
                }
                rewatch(session, ears.watched());
            }
            News::Task { id, owner } => ears.tell_task(session, id, owner),
            News::Settled { question } => session.settled(question),
            _ => {}
        }
    }

    fn tell_lists(&self, session: &Session, news: &News) {
        let Some((method, filter)) = news.of_list() else { return };
        // Who is offered tools alone has no other lists.
        if *news != News::Tools && !session.options.passthrough {
            return;
        }
        session.upstreams.forget_plain();
        for listener in lock(&self.listeners).iter() {
            if listener.wanted.get(filter).and_then(Value::as_bool) == Some(true) {
                let params = json!({"_meta": {era::SUBSCRIPTION_KEY: tag(listener)}});
                listener.out.send(&jsonrpc::notification(method, Some(&params)));
            }
        }
        self.tell_general(session, method, None);
    }

    fn tell_general(&self, session: &Session, method: &str, params: Option<&Value>) {
        let general = lock(&self.general).clone();
        if let Some(out) = general.filter(|_| session.host().revision.is_some()) {
            out.send(&jsonrpc::notification(method, params));
        }
    }

    fn tell_updated(&self, session: &Session, server: &str, uri: &str) {
        const METHOD: &str = "notifications/resources/updated";
        let is_it = |watch: &&Watch| watch.server == server && watch.uri == uri;
        for listener in lock(&self.listeners).iter() {
            for watch in listener.watches.iter().filter(is_it) {
                let params = resources::updated(watch, Some(&tag(listener)));
                listener.out.send(&jsonrpc::notification(METHOD, Some(&params)));
            }
        }
        let watches: Vec<Watch> = lock(&self.watches).iter().filter(is_it).cloned().collect();
        for watch in watches {
            self.tell_general(session, METHOD, Some(&resources::updated(&watch, None)));
        }
    }

    fn tell_task(&self, session: &Session, id: &str, owner: &str) {
        if *owner != *session.backend.binding() {
            return;
        }
        // What is told has to be asked for first: not while others wait for the list.
        let wants = |listener: &&Listener| {
            let ids = listener.wanted.get("taskIds").and_then(Value::as_array);
            ids.is_some_and(|ids| ids.iter().any(|wanted| wanted == id))
        };
        let heard = |l: &Listener| (l.era.clone(), tag(l), l.out.clone());
        let listening: Vec<_> = lock(&self.listeners).iter().filter(wants).map(heard).collect();
        for (era, tag, out) in listening {
            if let Some(line) = tasks::told(session, id, Some((era, &tag))) {
                out.send(&line);
            }
        }
        let general = lock(&self.general).clone().filter(|_| tasks::hears(session.host().revision));
        if let Some(out) = general
            && let Some(line) = tasks::told(session, id, None)
        {
            out.send(&line);
        }
    }

    fn tell_logged(&self, session: &Session, server: &str, record: &Value) {
        const METHOD: &str = "notifications/message";
        let Value::Object(record) = record else { return };
        let level = record.get("level").and_then(Value::as_str).unwrap_or(USUAL_LEVEL);
        let mut params = record.clone();
        // Many servers log here: which of them it was is part of the logger's name.
        let logger = match record.get("logger").and_then(Value::as_str) {
            Some(logger) => format!("{server}/{logger}"),
            None => server.to_owned(),
        };
        params.insert("logger".into(), logger.into());
        let params = Value::Object(params);
        let said = session.host().level;
        let lowest = said.as_deref().unwrap_or(USUAL_LEVEL);
        let calls = lock(&self.calls);
        let working = calls.iter().rev().find(|call| call.server == server);
        match working {
            Some(call) if call.stateless => {
                // Without a level none are wanted (MCP 2026-07-28).
                if call.level.as_deref().is_some_and(|lowest| is_wanted(level, lowest)) {
                    call.out.send(&jsonrpc::notification(METHOD, Some(&params)));
                }
            }
            _ if !is_wanted(level, lowest) => {}
            Some(call) => drop(call.out.send(&jsonrpc::notification(METHOD, Some(&params)))),
            None => {
                drop(calls);
                self.tell_general(session, METHOD, Some(&params));
            }
        }
    }
}

/// A request's id, as what is told on its behalf names it.
fn tag(listener: &Listener) -> Value {
    serde_json::from_str(listener.id.get()).unwrap_or_default()
}

/// Whether what belongs to a session is this one's, or nobody's in particular.
fn is_ours(session: &Session, whose: Option<&str>) -> bool {
    whose.is_none_or(|whose| session.backend.session().as_deref() == Some(whose))
}

/// Subscribes anew, in the background: a server that begins knows of no subscription.
fn rewatch(session: &Arc<Session>, watches: Vec<Watch>) {
    if watches.is_empty() {
        return;
    }
    let session = session.clone();
    let work = move || {
        let cancel = Cancel::new();
        for watch in watches {
            let asked = Asked { cancel: &cancel, progress: None };
            if let Err(e) = resources::watching(&session, &watch, true, &asked) {
                log::warn(format_args!("{} is not watched any more: {}", watch.uri, e.message()));
            }
        }
    };
    if let Err(e) = thread::spawn("rewatch", work) {
        log::warn(format_args!("resources are not watched any more: {e}"));
    }
}
