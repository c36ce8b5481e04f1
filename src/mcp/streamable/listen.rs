//! What a server says of itself, whenever it likes: a stream that is kept open
//! beside the requests. Knows nothing of what is in it.

use super::super::http::{Ask, Failure, Lease, Reply};
use super::super::mirror;
use super::super::sse::{Events, Next};
use super::{Streamable, interrupt_on, lock};
use crate::log;
use crate::proc::thread;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// How long a start waits for the stream to be there. Most servers answer within a millisecond; some say nothing
/// before they have something to say.
const OPENING: Duration = Duration::from_millis(250);

/// Asks for the stream, after the event with this id.
type Open = dyn Fn(&Streamable, &Lease, Option<&str>) -> Result<Reply, Failure>;

impl Streamable {
    /// Listens to what the server says of itself, for this session and on a
    /// thread of its own, if the server offers that.
    pub fn listen(self: &Arc<Self>) {
        // In the older transport the one stream is open already.
        if self.endpoint().is_some() {
            return;
        }
        let silence = self.peer.limits.streams.silence;
        let opened =
            self.hear_with(move |http, lease, last_event| http.get(lease, last_event, None, Some(silence)));
        // What a server asks in the middle of a call may come on this stream; one that is not there loses it.
        let _ = opened.recv_timeout(OPENING);
    }

    /// The same in the stateless era, where one request is answered by all that
    /// the server has to tell, and is made again when the answer ends.
    pub fn listen_statelessly(self: &Arc<Self>, method: &'static str, line: Vec<u8>) {
        let _ = self.hear_with(move |http, lease, _| {
            let session = http.along(&http.closing);
            let mut headers = http.headers(&session, "application/json, text/event-stream", None);
            headers.push(("Content-Type".into(), "application/json".into()));
            headers.extend(mirror::of_request(method, None));
            let body = Some(line.trim_ascii_end());
            let (method, silence) = ("POST", Some(http.peer.limits.streams.silence));
            lease.send(&Ask {
                method,
                url: &http.url,
                headers: &headers,
                body,
                timeout: None,
                silence,
                dial: None,
            })
        });
    }

    /// Begins to listen; what is returned hears of the first answer, or of the end.
    fn hear_with(
        self: &Arc<Self>,
        open: impl Fn(&Streamable, &Lease, Option<&str>) -> Result<Reply, Failure> + Send + 'static,
    ) -> mpsc::Receiver<()> {
        let (opened, first) = mpsc::channel();
        let http = Arc::clone(self);
        let number = lock(&self.session).number;
        if let Err(e) =
            thread::spawn(&format!("sse {}", self.peer.server), move || http.hear(number, &open, opened))
        {
            log::warn(format_args!("not listening to {}: {e}", self.peer.server));
        }
        first
    }

    fn hear(self: &Arc<Self>, number: u64, open: &Open, opened: mpsc::Sender<()>) {
        let (wake, woken) = mpsc::channel();
        let _guard = self.closing.on_cancel(move || {
            let _ = wake.send(());
        });
        let streams = self.peer.limits.streams;
        let (mut last_event, mut retry) = (None, streams.retry);
        while !self.closing.is_cancelled() && lock(&self.session).number == number {
            let lease = self.web.lease();
            let _guard = interrupt_on(&self.closing, lease.interrupter());
            let answer = open(self, &lease, last_event.as_deref());
            let _ = opened.send(());
            match answer {
                Ok(reply) if reply.status == 200 && reply.media_type() == "text/event-stream" => {
                    let mut events = Events::new(reply.body, self.peer.limits.message);
                    let mut heard = false;
                    while let Ok(Next::Event(event)) = events.next() {
                        heard = true;
                        last_event = event.id.or(last_event);
                        retry = event.retry.unwrap_or(retry).min(streams.retry_most);
                        self.peer.take(&event.data, |line| self.notify(line));
                    }
                    if !heard {
                        retry = (retry * 2).min(streams.retry_most);
                    }
                }
                // It offers none (405), or knows the session no more.
                Ok(_) => return,
                Err(_) => retry = (retry * 2).min(streams.retry_most),
            }
            if woken.recv_timeout(retry).is_ok() {
                return;
            }
        }
    }
}
