//! What a server says of itself, whenever it likes: a stream that is kept open
//! beside the requests. Knows nothing of what is in it.

use super::super::cancel::Cancel;
use super::super::http::{self, Failure, Lease, Reply};
use super::super::mirror;
use super::super::sse::{Events, Next};
use super::super::subscribe::{METHOD, Wish};
use super::{Limit, Streamable, interrupt_on, lock};
use crate::log;
use crate::proc::thread;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// How long a start waits for the stream to be there. Most servers answer within a millisecond; some say nothing
/// before they have something to say.
const OPENING: Duration = Duration::from_millis(250);

/// How much of an answer that is no stream is read: a refusal is short.
const REFUSAL: usize = 64 * 1024;

/// A stream that is begun again whenever it ends.
trait Stream: Send + 'static {
    /// Asks for it, after the event with this id.
    fn open(&self, http: &Streamable, lease: &Lease, last_event: Option<&str>) -> Result<Reply, Failure>;
    /// An attempt came to nothing; there will be another.
    fn failed(&self, _http: &Streamable, _why: &str) {}
    /// It was refused in a way that makes another attempt useless.
    fn refused(&self, _http: &Streamable, _reply: Reply) {}
    /// The first event has come after it was begun again.
    fn resumed(&self, _http: &Streamable) {}
    /// It is not begun again.
    fn over(&self, _http: &Streamable, _why: &str) {}
}

/// The stream of a session, by GET.
struct Unasked;

impl Stream for Unasked {
    fn open(&self, http: &Streamable, lease: &Lease, last_event: Option<&str>) -> Result<Reply, Failure> {
        http.get(lease, last_event, None, Some(http.peer.limits.streams.silence))
    }
}

/// One request that is answered by all that the server has to tell.
struct Asked {
    wish: Wish,
    made: AtomicBool,
}

impl Stream for Asked {
    fn open(&self, http: &Streamable, lease: &Lease, _: Option<&str>) -> Result<Reply, Failure> {
        let line = self.wish.line(self.made.swap(true, Ordering::Relaxed));
        let session = http.along(&http.closing);
        let said = mirror::of_request(METHOD, None);
        let silence = Some(http.peer.limits.streams.silence);
        http.post(lease, &session, &http.url, &line, &said, Limit { whole: None, silence })
    }

    fn failed(&self, http: &Streamable, why: &str) {
        // Whoever waits for the first is told; what was acknowledged before goes on.
        self.over(http, why);
    }

    fn refused(&self, http: &Streamable, mut reply: Reply) {
        let status = reply.status;
        let body = reply.read(REFUSAL).ok().flatten().unwrap_or_default();
        // A JSON-RPC error finds whoever waits by its id.
        http.peer.take(&body, |line| http.notify(line));
        let said = http::describe(status, &String::from_utf8_lossy(&body));
        self.over(http, &format!("answered HTTP {said}"));
    }

    fn resumed(&self, http: &Streamable) {
        self.wish.missed(&http.peer);
    }

    fn over(&self, http: &Streamable, why: &str) {
        self.wish.given_up(&format!("at {} {why}", http::shown(&http.url)));
    }
}

impl Streamable {
    /// Listens to what the server says of itself, for this session and on a
    /// thread of its own, if the server offers that.
    pub fn listen(self: &Arc<Self>) {
        // In the older transport the one stream is open already.
        if self.endpoint().is_some() {
            return;
        }
        let opened = self.hear_with(Unasked, self.closing.clone());
        // What a server asks in the middle of a call may come on this stream; one that is not there loses it.
        let _ = opened.recv_timeout(OPENING);
    }

    /// The same in the stateless era, where one request is answered by all that
    /// the server has to tell, and is made again when the answer ends, until it is over.
    pub fn listen_statelessly(self: &Arc<Self>, wish: Wish, over: Cancel) {
        let opened = self.hear_with(Asked { wish, made: AtomicBool::new(false) }, over);
        // What changes before the server listens is not told; whoever reads a list after this misses nothing.
        let _ = opened.recv_timeout(OPENING);
    }

    /// Begins to listen; what is returned hears of the first answer, or of the end.
    fn hear_with(self: &Arc<Self>, stream: impl Stream, over: Cancel) -> mpsc::Receiver<()> {
        let (opened, first) = mpsc::channel();
        let http = Arc::clone(self);
        let number = lock(&self.session).number;
        let work = move || {
            let ended = over.clone();
            let _guard = http.closing.on_cancel(move || ended.cancel());
            http.hear(number, &stream, &over, opened);
            stream.over(&http, "ended what it had to tell");
        };
        if let Err(e) = thread::spawn(&format!("sse {}", self.peer.server), work) {
            log::warn(format_args!("not listening to {}: {e}", self.peer.server));
        }
        first
    }

    fn hear(self: &Arc<Self>, number: u64, stream: &impl Stream, over: &Cancel, opened: mpsc::Sender<()>) {
        let (wake, woken) = mpsc::channel();
        let _guard = over.on_cancel(move || {
            let _ = wake.send(());
        });
        let streams = self.peer.limits.streams;
        let (mut last_event, mut retry, mut streamed) = (None, streams.retry, false);
        while !over.is_cancelled() && lock(&self.session).number == number {
            let lease = self.web.lease();
            let _guard = interrupt_on(over, lease.interrupter());
            let answer = stream.open(self, &lease, last_event.as_deref());
            let _ = opened.send(());
            match answer {
                Ok(reply) if reply.status == 200 && reply.media_type() == "text/event-stream" => {
                    let mut events = Events::new(reply.body, self.peer.limits.message);
                    let mut heard = false;
                    while let Ok(Next::Event(event)) = events.next() {
                        last_event = event.id.or(last_event);
                        retry = event.retry.unwrap_or(retry).min(streams.retry_most);
                        self.peer.take(&event.data, |line| self.notify(line));
                        if !std::mem::replace(&mut heard, true) && std::mem::replace(&mut streamed, true) {
                            stream.resumed(self);
                        }
                    }
                    if !heard {
                        retry = (retry * 2).min(streams.retry_most);
                    }
                }
                // It is there, and busy or about to be: what stands before it says so.
                Ok(reply) if matches!(reply.status, 429 | 502..=504) => {
                    stream.failed(self, &format!("answered HTTP {}", reply.status));
                    retry = (retry * 2).min(streams.retry_most);
                }
                // It offers none (405), or knows the session no more.
                Ok(reply) => return stream.refused(self, reply),
                Err(failure) => {
                    stream.failed(self, &failure.to_string());
                    retry = (retry * 2).min(streams.retry_most);
                }
            }
            if woken.recv_timeout(retry).is_ok() {
                return;
            }
        }
    }
}
