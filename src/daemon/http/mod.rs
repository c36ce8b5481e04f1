//! The listener over TCP, on tiny_http: the only place that names it. Every
//! request needs the bearer token, or that of a run. Knows nothing of what is asked.
//!
//! tiny_http has neither time-outs nor a word for the end of its accepting
//! thread, so: accepted sockets inherit time-outs from the listening socket; a
//! duplicate of that socket is kept, and a new server is built on it when the
//! old one stopped accepting.

mod gone;
mod guard;
mod warden;

use self::gone::Waiting;
use self::guard::{Guard, Who};
use self::warden::{Served, Warden};
use super::intake::Intake;
use super::router::{self, Answer, Asked, Asker, Origin, Response};
use super::state::Daemon;
use crate::api::http::{Divert, Fault, Headers, Method};
use crate::api::page;
use crate::api::uri;
use crate::api::wire::SETTINGS_HEADER;
use crate::error::{Error, Kind, Result};
use crate::log;
use crate::pool::Cancel;
use crate::proc;
use crate::settings::{self, Settings};
use crate::util;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tiny_http::{Request, Server};

/// So many threads wait for a request.
const WAITING: usize = 2;
/// How much of a body is read at once.
const BLOCK: usize = 16 * 1024;
/// How often a thread that waits for a request looks whether it is still needed.
const LOOK: Duration = Duration::from_secs(5);

/// An address that is listened on, before there is anybody to answer.
pub struct Bound {
    listener: TcpListener,
    /// `http://ADDRESS:PORT`.
    pub endpoint: String,
    /// The bearer token.
    pub token: String,
}

impl Bound {
    /// Listens as the settings say; none when they say not to.
    ///
    /// # Errors
    /// `Refused` for an address beyond loopback without a configured token, `Unavailable` when it cannot be had.
    pub fn new(settings: &Settings) -> Result<Option<Bound>> {
        if !settings.get(&settings::TRANSPORT_TCP) {
            return Ok(None);
        }
        let wanted = settings.get(&settings::TRANSPORT_LISTEN);
        let fail = |what: String| Error::new(Kind::Unavailable, format!("listening on {wanted}: {what}"));
        let addresses: Vec<SocketAddr> = wanted.to_socket_addrs().map_err(|e| fail(e.to_string()))?.collect();
        let configured = settings.get(&settings::TRANSPORT_BEARER_TOKEN);
        if configured.is_empty() && !addresses.iter().all(|a| a.ip().is_loopback()) {
            return Err(Error::new(
                Kind::Refused,
                format!("listening on {wanted}: it is not loopback, and transport.bearerToken is not set"),
            )
            .hint("set a token, or transport.listen to 127.0.0.1:0"));
        }
        let listener = TcpListener::bind(&addresses[..]).map_err(|e| {
            let error = fail(e.to_string());
            match e.kind() {
                io::ErrorKind::AddrInUse => error.hint(
                    "another program listens there, which may be a daemon of another configuration (mcpx daemons); \
                     --listen takes another port, 0 a free one, and --no-transport-tcp none",
                ),
                io::ErrorKind::PermissionDenied => error.hint("ports below 1024 are for root; --listen takes another"),
                io::ErrorKind::AddrNotAvailable => {
                    error.hint("no interface here has that address; transport.listen, or --listen, names another")
                }
                _ => error,
            }
        })?;
        let address = listener.local_addr().map_err(|e| fail(e.to_string()))?;
        let token = match configured.is_empty() {
            true => util::random_hex(32)?,
            false => configured.reveal().to_owned(),
        };
        Ok(Some(Bound { listener, endpoint: format!("http://{address}"), token }))
    }
}

/// A served address; dropping it ends that.
pub struct Tcp {
    daemon: Arc<Daemon>,
    shared: Arc<Shared>,
    /// The duplicate that survives a dead server.
    listener: TcpListener,
    /// A connection was waiting to be accepted at the last look.
    stuck: bool,
    /// What accepted sockets inherit.
    timeouts: Timeouts,
}

/// How long a read and a write may take.
type Timeouts = (Option<Duration>, Option<Duration>);

struct Shared {
    guard: Guard,
    waiting: Waiting,
    warden: Warden,
    /// Servers built; a thread of an earlier one leaves when it has nothing to do.
    generation: AtomicUsize,
    closed: AtomicBool,
    broken: AtomicBool,
}

impl Tcp {
    /// Serves an address.
    pub fn start(daemon: &Arc<Daemon>, bound: Bound) -> Result<Tcp> {
        let fail = |e: io::Error| Error::new(Kind::Unavailable, format!("serving {}: {e}", bound.endpoint));
        let address = bound.listener.local_addr().map_err(fail)?;
        let current = daemon.current();
        let timeouts = (current.limits.idle, current.write_timeout);
        inherit_timeouts(&bound.listener, timeouts).map_err(fail)?;
        let tcp = Tcp {
            daemon: daemon.clone(),
            shared: Arc::new(Shared {
                guard: Guard::new(address, bound.token),
                waiting: Waiting::new(address.port()),
                warden: Warden::new(address),
                generation: AtomicUsize::new(0),
                closed: AtomicBool::new(false),
                broken: AtomicBool::new(false),
            }),
            listener: bound.listener,
            stuck: false,
            timeouts,
        };
        tcp.build()?;
        Ok(tcp)
    }

    /// Builds a server on a duplicate of the listening socket.
    fn build(&self) -> Result<()> {
        let fail = |e: String| Error::new(Kind::Unavailable, format!("serving HTTP: {e}"));
        let listener = self.listener.try_clone().map_err(|e| fail(e.to_string()))?;
        let server = Server::from_listener(listener, None).map_err(|e| fail(e.to_string()))?;
        let mine = self.shared.generation.fetch_add(1, Ordering::SeqCst) + 1;
        let worker = Arc::new(Worker {
            server,
            mine,
            idle: AtomicUsize::new(0),
            shared: self.shared.clone(),
            daemon: Arc::downgrade(&self.daemon),
        });
        for _ in 0..WAITING {
            Worker::spawn(&worker).map_err(|e| fail(e.to_string()))?;
        }
        Ok(())
    }

    /// Called on each tick: replaces a server that no longer accepts, and cancels what left callers wait for.
    pub fn look_after(&mut self) {
        self.shared.waiting.cancel_gone();
        let current = self.daemon.current();
        let most = current.settings.get(&settings::TRANSPORT_MAX_CONNECTIONS);
        let accepts = self.shared.warden.look(&current.limits, usize::try_from(most).unwrap_or(1));
        // Settings are followed: what is accepted from now on has them.
        let timeouts = (current.limits.idle, current.write_timeout);
        if timeouts != self.timeouts && inherit_timeouts(&self.listener, timeouts).is_ok() {
            self.timeouts = timeouts;
        }
        // Nobody accepts when connections wait at two looks in a row, and none was accepted in between.
        let queued =
            proc::poll_readable(&[self.listener.as_fd()], Some(Duration::ZERO)).is_ok_and(|ready| ready[0]);
        let dead = self.shared.broken.swap(false, Ordering::SeqCst) || queued && self.stuck && !accepts;
        self.stuck = queued && !dead;
        if dead && let Err(e) = self.build() {
            log::error(format_args!("{e}; trying again"));
            self.shared.broken.store(true, Ordering::SeqCst);
        }
    }
}

impl Drop for Tcp {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
    }
}

/// Sockets accepted from it inherit these: the only way to bound what tiny_http reads and writes.
/// Its accepting ends by the same bound, and is begun again on the next tick.
fn inherit_timeouts(listener: &TcpListener, (read, write): Timeouts) -> io::Result<()> {
    // The options belong to the socket; std has them on a stream only.
    let socket = TcpStream::from(OwnedFd::from(listener.try_clone()?));
    socket.set_read_timeout(read)?;
    socket.set_write_timeout(write)
}

/// A server and the threads that take requests from it.
struct Worker {
    server: Server,
    mine: usize,
    idle: AtomicUsize,
    shared: Arc<Shared>,
    daemon: Weak<Daemon>,
}

impl Worker {
    fn spawn(worker: &Arc<Worker>) -> io::Result<()> {
        let inside = worker.clone();
        worker.idle.fetch_add(1, Ordering::SeqCst);
        let spawned = proc::thread::spawn("http", move || inside.work());
        if spawned.is_err() {
            worker.idle.fetch_sub(1, Ordering::SeqCst);
        }
        spawned.map(drop)
    }

    /// Takes a request, answers it, and does so again unless enough others wait.
    fn work(self: Arc<Worker>) {
        let mut since = Instant::now();
        loop {
            match self.server.recv_timeout(LOOK) {
                Ok(Some(request)) => {
                    since = Instant::now();
                    // The last one that waits sees to a successor before it answers.
                    if self.idle.fetch_sub(1, Ordering::SeqCst) == 1 && Worker::spawn(&self).is_err() {
                        self.idle.fetch_add(1, Ordering::SeqCst);
                        let busy = Error::new(Kind::Busy, "the daemon has no room for another thread");
                        respond(request, Answer::error(&busy, None));
                        continue;
                    }
                    let Some(daemon) = self.daemon.upgrade() else { return };
                    self.serve(&daemon, request);
                    if self.idle.fetch_add(1, Ordering::SeqCst) >= WAITING {
                        break;
                    }
                }
                Ok(None) => {
                    let limits = self.daemon.upgrade().map(|d| d.current().limits.idle);
                    let Some(idle) = limits else { break };
                    let replaced = self.shared.generation.load(Ordering::SeqCst) != self.mine;
                    // What is left of an earlier server are connections that end by their time-outs.
                    if self.shared.closed.load(Ordering::SeqCst)
                        || replaced && idle.is_some_and(|idle| since.elapsed() > idle + LOOK)
                    {
                        break;
                    }
                }
                // It accepts no longer; what it has accepted is still answered.
                Err(e) => {
                    log::debug(format_args!("accepting over TCP ended and is begun again: {e}"));
                    if self.shared.generation.load(Ordering::SeqCst) == self.mine {
                        self.shared.broken.store(true, Ordering::SeqCst);
                    }
                }
            }
        }
        self.idle.fetch_sub(1, Ordering::SeqCst);
    }

    fn serve(&self, daemon: &Arc<Daemon>, mut request: Request) {
        let served = self.shared.warden.serve(request.remote_addr().copied());
        let headers = Headers(
            request
                .headers()
                .iter()
                .map(|h| (h.field.as_str().as_str().to_ascii_lowercase(), h.value.as_str().to_owned()))
                .collect(),
        );
        let further = daemon.current().settings.get(&settings::TRANSPORT_HOSTS);
        let Some(method) = Method::from_word(&request.method().to_string()) else {
            respond(request, Answer::error(&Error::new(Kind::Usage, "no such method"), Some(501)));
            return;
        };
        let path = uri::split(request.url()).0;
        // There is nothing to see on the page without a token.
        let who = match page::is_page(method, path) {
            true => self.shared.guard.check_place(&further, &headers).map(|()| Who::Looker),
            false => self.shared.guard.check(&further, &headers, |token| daemon.runs.of_token(token)),
        };
        let run = match who {
            Ok(Who::Owner) => None,
            Ok(Who::Other(run)) => Some(run),
            Ok(Who::Looker) if page::permits(method, path) => None,
            Ok(Who::Looker) => {
                let error = Error::new(Kind::Refused, format!("the page's token does not permit {path}"));
                respond(request, Answer::error(&error, Some(403)));
                return;
            }
            Err((error, status)) => {
                respond(request, Answer::error(&error, Some(status)));
                return;
            }
        };
        let carried = match router::carried(headers.get(&SETTINGS_HEADER.to_ascii_lowercase())) {
            Ok(carried) => carried,
            Err(error) => {
                respond(request, Answer::error(&error, None));
                return;
            }
        };
        let Some(_place) = daemon.place() else {
            let error =
                Error::new(Kind::Busy, "every connection that transport.maxConnections allows is taken");
            respond(request, Answer::error(&error.hint("try again in a moment"), None));
            return;
        };
        let _busy = daemon.activity.enter();
        let current = daemon.current();
        let size: usize = headers.0.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
        if size + request.url().len() > current.limits.head {
            let error = Error::new(Kind::TooLarge, "the head is larger than transport.maxHeader");
            respond(request, Answer::error(&error, Some(431)));
            return;
        }
        let limit = current.limits.body;
        drop(current);
        let mut intake = Intake::new(daemon, run.is_none());
        let read = match intake.wants(method, request.url(), &headers) {
            Some(most) => divert_body(&mut request, most, &served, &mut intake).map(|()| Vec::new()),
            None => read_body(&mut request, limit, &served),
        };
        let body = match read {
            Ok(body) => body,
            Err((error, status)) => {
                respond(request, Answer::error(&error, Some(status)));
                return;
            }
        };
        let target = request.url().to_owned();
        let cancel = Cancel::new();
        let waits = request.remote_addr().map(|peer| self.shared.waiting.add(*peer, &cancel));
        // Whoever uses its token is there still.
        run.iter().for_each(|run| run.touch());
        let (origin, carried) = match run {
            Some(run) if carried.is_empty() => (Origin::Channel(run.clone()), run.carried()),
            Some(run) => (Origin::Channel(run), carried),
            None => (Origin::Tcp, carried),
        };
        let asker = Asker {
            origin,
            held: None,
            cancel: &cancel,
            progress: None,
            carried,
            headers: &headers,
            early: None,
        };
        let asked = Asked { method, target: &target, body: &body, content: intake.into_content() };
        let answer = router::answer(daemon, &asked, &asker);
        if !respond(request, answer) {
            served.broke();
        }
        drop(waits);
    }
}

/// What is wrong with a body, and the status that says so.
type Unread = (Error, u16);

fn read_body(request: &mut Request, limit: u64, served: &Served<'_>) -> std::result::Result<Vec<u8>, Unread> {
    let mut body = Vec::with_capacity(request.body_length().unwrap_or(0).min(1024 * 1024));
    each_block(request, (limit, "transport.maxBody"), served, &mut |block| {
        body.extend_from_slice(block);
        Ok(())
    })?;
    Ok(body)
}

/// A body that goes elsewhere as it arrives.
fn divert_body(
    request: &mut Request,
    limit: u64,
    served: &Served<'_>,
    into: &mut dyn Divert,
) -> std::result::Result<(), Unread> {
    each_block(request, (limit, "artifacts.maxSize"), served, &mut |block| {
        into.take(block).map_err(|fault| match fault {
            Fault::Bad(413, what) => (Error::new(Kind::TooLarge, what), 413),
            Fault::Bad(status, what) => (Error::new(Kind::Unavailable, what), status),
            _ => (Error::new(Kind::Internal, "taking in the body broke off"), 500),
        })
    })
}

fn each_block(
    request: &mut Request,
    (limit, setting): (u64, &str),
    served: &Served<'_>,
    take: &mut dyn FnMut(&[u8]) -> std::result::Result<(), Unread>,
) -> std::result::Result<(), Unread> {
    let too_large = || (Error::new(Kind::TooLarge, format!("the body is larger than {setting}")), 413);
    let announced = request.body_length().unwrap_or(0);
    if announced as u64 > limit {
        return Err(too_large());
    }
    let mut reader = request.as_reader().take(limit.saturating_add(1));
    let mut block = [0; BLOCK];
    let mut size = 0;
    loop {
        match reader.read(&mut block) {
            Ok(0) => break,
            Ok(n) => {
                size += n as u64;
                if size > limit {
                    return Err(too_large());
                }
                take(&block[..n])?;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err((Error::new(Kind::Usage, format!("reading the body: {e}")), 400)),
        }
        served.received(size);
    }
    served.whole();
    if size < announced as u64 {
        return Err((Error::new(Kind::Usage, "the body is shorter than announced"), 400));
    }
    Ok(())
}

/// Whether the answer was written whole.
fn respond(request: Request, answer: Answer) -> bool {
    let response = match answer {
        Answer::Response(response) => response,
        Answer::Channel(_) => {
            let error = Error::new(Kind::Refused, "a channel is opened on the unix socket");
            Response::error(&error, Some(403))
        }
    };
    let framed = *request.http_version() >= tiny_http::HTTPVersion(1, 1);
    let mut out = request.into_writer();
    // A caller that left is noticed here at the latest, and needs no answer.
    response.write(&mut out, true, framed).is_ok() & out.flush().is_ok()
}
