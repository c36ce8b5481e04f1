//! The unix socket: accepting, one thread a connection, requests one after
//! another. Knows nothing of what they ask for.

use super::channel;
use super::intake::Intake;
use super::peers::{Peer, Stream};
use super::places::Place;
use super::router::{self, Answer, Asked, Asker, Origin, Response};
use super::runs::Run;
use super::state::Daemon;
use crate::api::http::{self, Fault, Limits, Method, Reader, Request};
use crate::error::{Error, Kind};
use crate::log;
use crate::pool::Cancel;
use crate::proc;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// So many threads wait for a connection, so that one can be served at once by
/// the thread that accepted it, while another already waits for the next.
const WAITING: usize = 2;
/// A pause when the system has no descriptor left: without one, trying again at once would only burn.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);
/// What is left unread of a request that was refused is read, up to this, before
/// the connection is closed, so that the refusal is not lost with it.
const LINGER: u64 = 64 * 1024;
/// And for so long.
const LINGERING: Duration = Duration::from_secs(1);

/// A socket that is being listened on; dropping it ends that, and leaves its connections.
pub struct Listening {
    shared: Arc<Shared>,
}

struct Shared {
    daemon: Arc<Daemon>,
    listener: UnixListener,
    waiting: AtomicUsize,
    closed: AtomicBool,
    /// A descriptor in reserve: with it a client can still be told that there is none left.
    spare: Mutex<Option<File>>,
}

impl Listening {
    /// Listens.
    pub fn start(daemon: &Arc<Daemon>, listener: UnixListener) -> io::Result<Listening> {
        let shared = Arc::new(Shared {
            daemon: daemon.clone(),
            listener,
            waiting: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            spare: Mutex::new(File::open("/dev/null").ok()),
        });
        for _ in 0..WAITING {
            Shared::spawn(&shared)?;
        }
        Ok(Listening { shared })
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        // Wakes every thread that waits in accept; std has no call for it on a listener.
        if let Ok(clone) = self.shared.listener.try_clone() {
            let _ = UnixStream::from(OwnedFd::from(clone)).shutdown(Shutdown::Both);
        }
    }
}

impl Shared {
    fn spawn(shared: &Arc<Shared>) -> io::Result<()> {
        let inside = shared.clone();
        shared.waiting.fetch_add(1, Ordering::SeqCst);
        let spawned = proc::thread::spawn("client", move || inside.accept());
        if spawned.is_err() {
            shared.waiting.fetch_sub(1, Ordering::SeqCst);
        }
        spawned.map(drop)
    }

    /// Accepts a connection, serves it, and does so again unless enough others wait.
    fn accept(self: Arc<Shared>) {
        loop {
            let accepted = self.listener.accept();
            if self.closed.load(Ordering::SeqCst) {
                break;
            }
            let stream = match accepted {
                Ok((stream, _)) => {
                    self.daemon.activity.touch();
                    stream
                }
                Err(e) => {
                    self.trouble(&e);
                    continue;
                }
            };
            // Whoever is the last to wait sees to a successor before it serves.
            if self.waiting.fetch_sub(1, Ordering::SeqCst) == 1
                && let Err(e) = Shared::spawn(&self)
            {
                // No room for a thread: this connection goes, so that accepting goes on.
                log::warn(format_args!("refusing a client: {e}"));
                self.waiting.fetch_add(1, Ordering::SeqCst);
                refuse(&stream, "the daemon has no room for another thread");
                continue;
            }
            greet(&self.daemon, stream);
            if self.waiting.fetch_add(1, Ordering::SeqCst) >= WAITING {
                break;
            }
        }
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }

    /// Accepting failed.
    fn trouble(&self, e: &io::Error) {
        // `WouldBlock`: another thread is at the reserve, below.
        if matches!(e.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted | ErrorKind::WouldBlock) {
            return;
        }
        log::warn(format_args!("accepting a client: {e}"));
        // One descriptor is kept back for this: the client is told, instead of left waiting.
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.take().is_some() && self.listener.set_nonblocking(true).is_ok() {
            let accepted = self.listener.accept();
            let _ = self.listener.set_nonblocking(false);
            if let Ok((stream, _)) = accepted {
                refuse(&stream, "the daemon has no descriptor left");
            }
        }
        std::thread::park_timeout(EXHAUSTED_PAUSE);
        *spare = File::open("/dev/null").ok();
    }
}

/// Tells a client that it cannot be served now, without waiting for it.
fn refuse(stream: &UnixStream, why: &str) {
    let error = Error::new(Kind::Busy, why).hint("try again in a moment");
    // A new connection's buffer is empty and takes this much at once.
    let _ = stream.set_nonblocking(true);
    let _ = Response::error(&error, Some(503)).write(&mut &*stream, false, true);
}

/// Serves a new connection, if there is a place for it and it is ours.
fn greet(daemon: &Arc<Daemon>, stream: UnixStream) {
    match proc::peer_uid(&stream) {
        Ok(uid) if uid == proc::uid() => {}
        Ok(uid) => return log::warn(format_args!("a client of user {uid} was turned away")),
        Err(e) => return log::warn(format_args!("a client of an unknown user was turned away: {e}")),
    }
    let Some(place) = daemon.place() else {
        return refuse(&stream, "every connection that transport.maxConnections allows is taken");
    };
    serve(daemon, stream, place);
}

/// Serves a connection until it ends.
fn serve(daemon: &Arc<Daemon>, stream: UnixStream, _place: Place) {
    let _ = stream.set_write_timeout(daemon.current().write_timeout);
    let joined = match daemon.peers.join(stream) {
        Ok(joined) => joined,
        Err(e) => return log::warn(format_args!("watching a client: {e}")),
    };
    let peer = joined.peer.clone();
    let _runs = Runs(daemon, peer.id);
    let held = proc::peer_pid(&peer.stream.0).ok().and_then(|pid| daemon.runs.holding(pid));
    let mut reader = Reader::new(peer.stream.clone());
    loop {
        let current = daemon.current();
        let mut intake = Intake::new(daemon, held.is_none());
        let go_on = |s: &mut Stream| io::Write::write_all(s, b"HTTP/1.1 100 Continue\r\n\r\n");
        let request = match reader.request_or_divert(&current.limits, go_on, &mut intake) {
            Ok(request) => request,
            Err(fault) => {
                turn_down(&mut reader, &current.limits, &fault);
                break;
            }
        };
        // What is no longer in force is not kept alive by a waiting connection.
        drop(current);
        let wants_channel = request.headers.has_token("connection", "upgrade")
            && request.headers.has_token("upgrade", "mcpx-channel");
        peer.begins();
        let busy = daemon.activity.enter();
        // The answer to HEAD would need to lack its body; nothing here takes HEAD, and closing tells where it ends.
        let keep = request.keep_alive && request.method != Method::Head && !daemon.is_stopping();
        let framed = request.takes_chunks;
        match answer(daemon, &peer, &held, request, intake) {
            Answer::Response(response) => {
                let sent = response.write(reader.source_mut(), keep, framed);
                peer.has_its_answer();
                if !sent.unwrap_or(false) {
                    break;
                }
            }
            Answer::Channel(run) if wants_channel => {
                drop(busy);
                peer.has_its_answer();
                let (mut stream, ahead) = reader.into_parts();
                const SWITCH: &[u8] =
                    b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: mcpx-channel\r\n\r\n";
                if http::write_parts(&mut stream, &[SWITCH]).is_ok() {
                    channel::serve(daemon, run, stream, ahead);
                }
                break;
            }
            Answer::Channel(_) => {
                let error =
                    Error::new(Kind::Usage, "a channel needs Connection: Upgrade and Upgrade: mcpx-channel");
                let mut response = Response::error(&error, Some(426));
                response.headers.push_str("Upgrade: mcpx-channel\r\n");
                let sent = response.write(reader.source_mut(), keep, framed);
                peer.has_its_answer();
                if !sent.unwrap_or(false) {
                    break;
                }
            }
        }
        peer.rests();
    }
}

/// Ends the runs of a connection, however its thread ends.
struct Runs<'a>(&'a Daemon, u64);

impl Drop for Runs<'_> {
    fn drop(&mut self) {
        self.0.end_sessions(self.0.runs.close_tied(self.1));
    }
}

/// The peer waits for what comes of it until [`Peer::has_its_answer`] is called.
fn answer(
    daemon: &Arc<Daemon>,
    peer: &Arc<Peer>,
    held: &Option<Arc<Run>>,
    request: Request,
    intake: Intake<'_>,
) -> Answer {
    let carried = match router::carried(request.headers.get("x-mcpx-settings")) {
        Ok(carried) => carried,
        Err(error) => return Answer::error(&error, None),
    };
    let cancel = Cancel::new();
    peer.waits_for(&cancel);
    let origin = Origin::Unix(peer.id);
    let Request { method, target, headers, body, .. } = &request;
    let asker =
        Asker { origin, held: held.clone(), cancel: &cancel, progress: None, carried, headers, early: None };
    let content = intake.into_content();
    router::answer(daemon, &Asked { method: *method, target, body, content }, &asker)
}

/// Answers what could not be read as a request.
fn turn_down(reader: &mut Reader<Stream>, limits: &Limits, fault: &Fault) {
    let Fault::Bad(status, what) = fault else { return };
    let kind = match status {
        408 => Kind::Timeout,
        413 | 414 | 431 => Kind::TooLarge,
        _ => Kind::Usage,
    };
    let response = Response::error(&Error::new(kind, *what), Some(*status));
    if response.write(reader.source_mut(), false, true).is_ok() {
        linger(reader.source_mut(), limits);
    }
}

fn linger(stream: &mut Stream, limits: &Limits) {
    let _ = stream.0.shutdown(Shutdown::Write);
    let patience = limits.head_timeout.map_or(LINGERING, |t| t.min(LINGERING));
    let (mut left, deadline) = (LINGER, Instant::now() + patience);
    let mut block = [0; 4096];
    // For all of it, not for each read: who trickles is not waited for.
    while left > 0 {
        let wait = deadline.saturating_duration_since(Instant::now());
        if wait.is_zero() || stream.0.set_read_timeout(Some(wait)).is_err() {
            break;
        }
        match io::Read::read(stream, &mut block) {
            Ok(n) if n > 0 => left = left.saturating_sub(n as u64),
            _ => break,
        }
    }
}
