//! The older HTTP+SSE transport (revision 2024-11-05): one stream carries all
//! that the server says, its first event names where messages are posted.
//! Knows nothing of what is in them.

use super::super::http::{self, Failure};
use super::super::pending::{Event, Slot};
use super::super::sse::{Events, Next};
use super::{Exchange, Limit, Session, Streamable, Tick, interrupt_on, left, lock};
use crate::error::{Kind, Result};
use crate::proc::thread;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

/// A request without a limit looks that often at whether it is over, which it is told anyway.
const LOOK: Duration = Duration::from_secs(3600);

/// What the server answers to a posted message, beside the stream, is of no use.
const ACCEPTED: usize = 64 * 1024;

impl Streamable {
    /// Where messages are posted, when the server speaks the older transport.
    pub(super) fn endpoint(&self) -> Option<String> {
        lock(&self.endpoint).clone()
    }

    /// Opens the stream of a server of the older transport, and waits until it
    /// says where messages go.
    ///
    /// # Errors
    /// `Unavailable` when it is no such server, `Timeout`.
    pub fn open_older(self: &Arc<Self>, deadline: Instant) -> Result<()> {
        let (tell, told) = mpsc::channel();
        let http = Arc::clone(self);
        let name = format!("sse {}", self.peer.server);
        thread::spawn(&name, move || http.hear_older(&tell))
            .map_err(|e| self.unusable(Kind::Unavailable, format!("cannot be listened to: {e}")))?;
        match told.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Ok(endpoint)) => {
                *lock(&self.endpoint) = Some(endpoint);
                Ok(())
            }
            Ok(Err(what)) => Err(self.unusable(Kind::Unavailable, what)),
            Err(_) => Err(self.unusable(Kind::Timeout, "did not say where messages go".into())),
        }
    }

    /// Reads the stream to its end, which is the end of the connection.
    fn hear_older(self: &Arc<Self>, tell: &Sender<std::result::Result<String, String>>) {
        let lease = self.web.lease();
        let _guard = interrupt_on(&self.closing, lease.interrupter());
        let reply = match self.get(&lease, None, None, None) {
            Ok(reply) if reply.status == 200 && reply.media_type() == "text/event-stream" => reply,
            Ok(reply) => return drop(tell.send(Err(format!("answered HTTP {} to a GET", reply.status)))),
            Err(failure) => return drop(tell.send(Err(format!("has no event stream: {failure:?}")))),
        };
        let mut events = Events::new(reply.body, self.peer.limits.message);
        let mut named = false;
        while let Ok(Next::Event(event)) = events.next() {
            if named {
                self.peer.take(&event.data, |line| self.notify(line));
                continue;
            }
            let text = String::from_utf8_lossy(&event.data).trim().to_owned();
            // Messages carry what the configuration's headers hold: never to another origin.
            let Some(endpoint) = http::same_origin(&self.url, &text) else {
                let shown = http::shown(&text);
                return drop(
                    tell.send(Err(format!("wants messages at \"{shown}\", which is another origin"))),
                );
            };
            named = tell.send(Ok(endpoint)).is_ok();
        }
        // Nothing when the connection was ended here.
        self.peer.close("closed its event stream", "");
    }

    /// Posts a request, and waits for its answer on the stream.
    pub(super) fn exchange_older(
        &self,
        endpoint: &str,
        line: &[u8],
        slot: &Slot,
        deadline: Option<Instant>,
        tick: Tick,
    ) -> Result<Exchange> {
        let lease = self.web.lease();
        let session = Session { token: self.token(&self.closing), ..Session::default() };
        let sent = self.post(&lease, &session, endpoint, line, &[], Limit::of(left(deadline)));
        slot.sent.store(!matches!(sent, Err(Failure::NotSent(_))), Ordering::Release);
        let mut reply = match sent {
            Ok(reply) => reply,
            Err(failure) => return Ok(Exchange::Over(self.failed(failure, tick))),
        };
        if !(200..300).contains(&reply.status) {
            let body = reply.read(ACCEPTED).ok().flatten().unwrap_or_default();
            let said = http::describe(reply.status, &String::from_utf8_lossy(&body));
            return Err(self.unusable(Kind::Unavailable, format!("answered HTTP {said}")));
        }
        drop(reply.read(ACCEPTED));
        drop((reply, lease));
        loop {
            let until = deadline.unwrap_or_else(|| Instant::now() + LOOK);
            match (tick(until), deadline) {
                (Some(event), _) => return Ok(Exchange::Over(event)),
                (None, Some(_)) => return Ok(Exchange::Over(Event::TimedOut)),
                (None, None) => {}
            }
        }
    }
}
