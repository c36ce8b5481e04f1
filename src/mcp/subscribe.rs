//! Being told of changes by a server of the stateless era (`subscriptions/listen`,
//! MCP 2026-07-28): one long request for its lists, another for all resources that
//! are watched. Knows nothing of who wants to hear of them.

use super::cancel::Cancel;
use super::client::{Client, Link, Options, raw};
use super::era::Stamp;
use super::error::Subject;
use super::jsonrpc::{self, METHOD_NOT_FOUND};
use super::peer::Peer;
use super::pending::{Event, Outcome, Pending};
use crate::error::{Error, Kind, Result};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Instant;

/// The one method by which changes are told.
pub(super) const METHOD: &str = "subscriptions/listen";

/// What is watched on one connection.
#[derive(Default)]
pub(super) struct Watched {
    uris: BTreeSet<String>,
    /// Counts the sets that were asked for: the latest one that was acknowledged stays.
    last: u64,
    open: Option<(u64, Listening)>,
}

impl Watched {
    /// The server tells of it already.
    fn is_told(&self, uri: &str) -> bool {
        self.open.as_ref().is_some_and(|(_, open)| open.uris.contains(uri))
    }
}

/// A request to be told that has been acknowledged.
struct Listening {
    id: u64,
    uris: BTreeSet<String>,
    over: Cancel,
}

/// A request to be told, as it is made and made again.
pub(super) struct Wish {
    /// `SubscriptionFilter`.
    notifications: Value,
    params: Box<RawValue>,
    stamp: Arc<Stamp>,
    pending: Arc<Pending>,
    /// The id of the first.
    pub first: u64,
}

impl Wish {
    fn new(peer: &Peer, notifications: Value, stamp: &Arc<Stamp>, first: u64) -> Result<Wish> {
        let params = raw(&json!({ "notifications": notifications }))?;
        let (stamp, pending) = (Arc::clone(stamp), Arc::clone(&peer.pending));
        Ok(Wish { notifications, params, stamp, pending, first })
    }

    /// The request: with its first id, else with one that was never used.
    pub fn line(&self, again: bool) -> Vec<u8> {
        let id = if again { self.pending.id() } else { self.first };
        jsonrpc::request(id, METHOD, Some(&self.params), false, &self.stamp)
    }

    /// Nobody has told what changed while nobody listened: it counts as changed.
    pub fn missed(&self, peer: &Peer) {
        for (key, method) in [
            ("toolsListChanged", "notifications/tools/list_changed"),
            ("promptsListChanged", "notifications/prompts/list_changed"),
            ("resourcesListChanged", "notifications/resources/list_changed"),
        ] {
            if self.notifications[key] == true {
                peer.notice(method, None);
            }
        }
        for uri in self.notifications["resourceSubscriptions"].as_array().into_iter().flatten() {
            if let Ok(params) = raw(&json!({ "uri": uri })) {
                peer.notice("notifications/resources/updated", Some(&params));
            }
        }
    }

    /// It will not be acknowledged any more.
    pub fn given_up(&self, why: &str) {
        self.pending.finish(self.first, Outcome::Broken(why.to_owned()));
    }
}

/// Whether this method watches a resource, or watches it no longer.
pub(super) fn watching(method: &str) -> Option<bool> {
    match method {
        "resources/subscribe" => Some(true),
        "resources/unsubscribe" => Some(false),
        _ => None,
    }
}

impl Client {
    /// Asks to be told of changes to lists, for as long as the connection lasts. The
    /// answer, which comes at the end, is of no use.
    pub(super) fn listen(&self, notifications: Value, stamp: &Arc<Stamp>) -> Result<()> {
        let peer = &self.0.peer;
        let wish = Wish::new(peer, notifications, stamp, peer.pending.id())?;
        match &self.0.link {
            Link::Stdio(stdio) => drop(stdio.send(wish.line(false), None)),
            Link::Http(http) => http.listen_statelessly(wish, Cancel::new()),
        }
        Ok(())
    }

    /// `resources/subscribe` and `resources/unsubscribe`, which the stateless era does not
    /// have: the one request that names all watched resources is made again, and the one
    /// before ends once that is acknowledged, so that nothing is missed in between.
    ///
    /// Errors: `NotFound` when the server tells of no resource, or not of this one; those of [`Client::request`].
    pub(super) fn watch(
        &self,
        on: bool,
        subject: &Subject,
        stamp: &Arc<Stamp>,
        deadline: Option<Instant>,
        options: &Options,
    ) -> Result<Box<RawValue>> {
        #[derive(Deserialize)]
        struct OfUri {
            uri: String,
        }
        let uri = subject.params.and_then(|params| serde_json::from_str::<OfUri>(params.get()).ok());
        let Some(OfUri { uri }) = uri else {
            return Err(Error::new(Kind::Usage, format!("{} without a uri", subject.method)));
        };
        let done = || raw(&json!({}));
        let (number, wanted) = {
            let mut watched = self.watched();
            let changed = if on { watched.uris.insert(uri.clone()) } else { watched.uris.remove(&uri) };
            if !changed && (!on || watched.is_told(&uri)) {
                return done();
            }
            watched.last += 1;
            (watched.last, watched.uris.clone())
        };
        if wanted.is_empty() {
            self.replace(number, None);
            return done();
        }
        let outcome =
            self.listening(wanted, subject, stamp, deadline, options).and_then(|(listening, said)| {
                if on && !is_told(&said, &uri) {
                    self.end_listening(&listening);
                    return Err(
                        subject.refused(json!({"code": METHOD_NOT_FOUND, "message": "not acknowledged"}))
                    );
                }
                self.replace(number, Some(listening));
                done()
            });
        if on && outcome.is_err() {
            let mut watched = self.watched();
            if !watched.is_told(&uri) {
                watched.uris.remove(&uri);
            }
        }
        outcome
    }

    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.0.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The request with this number takes the place of the one before; one that was overtaken ends.
    fn replace(&self, number: u64, listening: Option<Listening>) {
        let old = {
            let mut watched = self.watched();
            let overtaken = match &watched.open {
                Some((open, _)) => *open > number,
                None => listening.is_some() && watched.uris.is_empty(),
            };
            match overtaken {
                true => listening,
                false => {
                    std::mem::replace(&mut watched.open, listening.map(|new| (number, new))).map(|(_, l)| l)
                }
            }
        };
        if let Some(old) = old {
            self.end_listening(&old);
        }
    }

    fn end_listening(&self, old: &Listening) {
        // Over HTTP the end of the exchange is the word.
        old.over.cancel();
        if let Link::Stdio(stdio) = &self.0.link {
            let params = json!({ "requestId": old.id });
            drop(stdio.send(jsonrpc::notification("notifications/cancelled", Some(&params)), None));
        }
    }

    /// Asks to be told of these resources, and waits until the server says of which it will.
    fn listening(
        &self,
        uris: BTreeSet<String>,
        subject: &Subject,
        stamp: &Arc<Stamp>,
        deadline: Option<Instant>,
        options: &Options,
    ) -> Result<(Listening, Box<RawValue>)> {
        let peer = &self.0.peer;
        let waiting = peer.pending.open_for(false, None, None);
        let slot = &waiting.slot;
        if let Some(closed) = peer.closed() {
            return Err(subject.broken(&closed.reason(), false));
        }
        let wish = Wish::new(peer, json!({ "resourceSubscriptions": uris }), stamp, slot.id)?;
        let listening = Listening { id: slot.id, uris, over: Cancel::new() };
        let cancelled = Arc::clone(slot);
        let _guard = options.cancel.on_cancel(move || cancelled.finish(Outcome::Cancelled));
        match &self.0.link {
            Link::Stdio(stdio) => match stdio.send(wish.line(false), Some(slot)) {
                Ok(()) => stdio.help(peer, slot, deadline),
                Err(_) => return Err(subject.broken("takes no more messages", false)),
            },
            Link::Http(http) => {
                slot.sent.store(true, Ordering::Release);
                http.listen_statelessly(wish, listening.over.clone());
            }
        }
        let refused = match slot.wait(deadline) {
            Event::Done(Outcome::Result(said)) => return Ok((listening, said)),
            Event::Done(Outcome::Error(object)) => subject.refused(object),
            Event::Done(Outcome::TooLarge(which)) => subject.too_large(&which),
            Event::Done(Outcome::Broken(reason)) => {
                subject.broken(&reason, slot.sent.load(Ordering::Acquire))
            }
            Event::Done(Outcome::Cancelled) => subject.cancelled(),
            Event::TimedOut | Event::Progress(_) => subject.timed_out(options.limit(), true),
        };
        self.end_listening(&listening);
        Err(refused)
    }
}

/// Whether an acknowledgement is of this resource too.
fn is_told(said: &RawValue, uri: &str) -> bool {
    let said: Value = serde_json::from_str(said.get()).unwrap_or_default();
    let told = said["notifications"]["resourceSubscriptions"].as_array();
    told.is_some_and(|all| all.iter().any(|one| one == uri))
}
