//! (being built) Streamable HTTP.

use super::cancel::Cancel;
use super::error::Subject;
use super::peer::Peer;
use super::pending::{Event, Slot};
use crate::error::{Error, Kind, Result};
use crate::util::Env;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) struct Streamable;

pub(super) enum Exchange {
    Over(Event),
    SessionLost(u64),
}

impl Streamable {
    pub fn new(_: &str, _: &[(String, String)], _: &Env, peer: &Arc<Peer>) -> Result<Arc<Streamable>> {
        Err(Error::new(Kind::Unavailable, "HTTP servers are not supported yet").server(&peer.server))
    }
    pub fn set_protocol(&self, _: &str) {}
    pub fn listen(self: &Arc<Self>) {}
    pub fn notify(self: &Arc<Self>, _: Vec<u8>) {}
    pub fn stop(&self, _: Duration) {}
    pub fn renew(&self, _: u64, again: impl FnOnce() -> Result<()>) -> Result<()> {
        again()
    }
    pub fn exchange(
        self: &Arc<Self>,
        _: &Subject,
        _: &[u8],
        _: &Arc<Slot>,
        _: Option<Instant>,
        _: &Cancel,
        _: &mut dyn FnMut() -> Option<Event>,
    ) -> Result<Exchange> {
        Ok(Exchange::SessionLost(0))
    }
}
