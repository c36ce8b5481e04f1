//! Watches over the connections that tiny_http accepts and hides: ends those that
//! are idle or slow, keeps to their number, and frees those that it has forgotten.
//! Knows nothing of requests but when they begin and end.
//!
//! tiny_http gives an accepted connection to a thread that it believes to be
//! waiting, and believes so too long: of several that come at once some lie in
//! its queue until a thread has done with another connection, which may be kept
//! for minutes. A further connection makes it start a thread, which then takes
//! what lies in the queue: so one is made, and closed, for each new client.

use crate::api::http::Limits;
use crate::proc::{self, Accepted};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long the further connection may take: on loopback none does.
const NUDGE: Duration = Duration::from_millis(50);
/// What the sender of a body must keep up on average, after the first `transport.headerTimeout`, bytes a second.
const MIN_BODY_RATE: u64 = 64 * 1024;

/// The connections, as far as they are known.
pub struct Warden {
    address: SocketAddr,
    clients: Mutex<HashMap<SocketAddr, Client>>,
    /// A client that was not known has asked something.
    newcomer: AtomicBool,
    /// Descriptors in reserve: with them it can look even where none is left.
    spare: Mutex<Vec<File>>,
}

struct Client {
    since: Instant,
    doing: Doing,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// It has not asked anything yet; at the last look bytes of it lay unread, or not.
    New { unread: bool },
    /// Its body is being read; so much of it is there.
    Sends(u64),
    /// It waits for its answer, or reads it.
    Waits,
    /// It was answered.
    Rests,
    /// Its answer broke off: it would wait for the rest.
    Broke,
}

/// A request of a client, until it is dropped.
pub struct Served<'a>(&'a Warden, Option<SocketAddr>);

impl Served<'_> {
    /// So much of the body is there.
    pub fn received(&self, bytes: u64) {
        self.0.note(self.1, |client| client.doing = Doing::Sends(bytes));
    }
    /// The answer could not be written whole.
    pub fn broke(&self) {
        self.0.note(self.1, |client| client.doing = Doing::Broke);
    }
    /// The request is whole.
    pub fn whole(&self) {
        self.0.note(self.1, |client| client.doing = Doing::Waits);
    }
}

impl Drop for Served<'_> {
    fn drop(&mut self) {
        self.0.note(self.1, |client| {
            if client.doing != Doing::Broke {
                *client = Client { since: Instant::now(), doing: Doing::Rests };
            }
        });
    }
}

impl Warden {
    /// For a listener on that address.
    pub fn new(address: SocketAddr) -> Warden {
        Warden {
            address,
            clients: Mutex::default(),
            newcomer: AtomicBool::new(false),
            spare: Mutex::new(spare()),
        }
    }

    /// A request has begun to arrive.
    pub fn serve(&self, peer: Option<SocketAddr>) -> Served<'_> {
        let begun = Client { since: Instant::now(), doing: Doing::Sends(0) };
        let known = peer.map(|peer| self.lock().insert(peer, begun));
        // Others may have come with it, and lie in the queue.
        if let Some(None | Some(Client { doing: Doing::New { .. }, .. })) = known {
            self.newcomer.store(true, Ordering::Relaxed);
            self.nudge();
        }
        Served(self, peer)
    }

    /// Looks at every connection; more than `most` are not kept, and half of them
    /// where the process has no descriptor left. Whether somebody new has been accepted
    /// since the last look.
    pub fn look(&self, limits: &Limits, most: usize) -> bool {
        if let Some(new) = self.keep(limits, most) {
            return new;
        }
        let mut reserve = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        reserve.clear();
        let held = self.lock().len();
        let new = self.keep(limits, held / 2);
        *reserve = spare();
        new.unwrap_or(false)
    }

    /// The same; none when it could not look.
    fn keep(&self, limits: &Limits, most: usize) -> Option<bool> {
        let now = Instant::now();
        let mut here: HashSet<SocketAddr> = HashSet::new();
        let (mut forgotten, mut new) = (false, self.newcomer.swap(false, Ordering::Relaxed));
        let count = proc::each_accepted(self.address.port(), &mut |connection: &Accepted| {
            let peer = connection.peer();
            here.insert(peer);
            let unread = connection.has_unread();
            let mut clients = self.lock();
            new |= !clients.contains_key(&peer);
            let client =
                clients.entry(peer).or_insert(Client { since: now, doing: Doing::New { unread: false } });
            if is_over(client, now, limits) {
                connection.end();
            } else if let Doing::New { unread: before } = client.doing {
                forgotten |= before && unread;
                client.doing = Doing::New { unread };
            }
        });
        let count = count.ok()?;
        let mut clients = self.lock();
        clients.retain(|peer, _| here.contains(peer));
        let mut spare: Vec<(Instant, SocketAddr)> = Vec::new();
        if count > most {
            let idle = clients.iter().filter(|(_, c)| matches!(c.doing, Doing::New { .. } | Doing::Rests));
            spare.extend(idle.map(|(peer, client)| (client.since, *peer)));
        }
        drop(clients);
        if forgotten {
            self.nudge();
        }
        if spare.is_empty() {
            return Some(new);
        }
        spare.sort_unstable();
        let over: HashSet<SocketAddr> = spare.into_iter().take(count - most).map(|(_, peer)| peer).collect();
        let _ = proc::each_accepted(self.address.port(), &mut |connection: &Accepted| {
            if over.contains(&connection.peer()) {
                connection.end();
            }
        });
        Some(new)
    }

    /// Makes tiny_http start a thread, which takes what lies in its queue.
    fn nudge(&self) {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(match address.ip() {
                IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        drop(TcpStream::connect_timeout(&address, NUDGE));
    }

    fn note(&self, peer: Option<SocketAddr>, change: impl FnOnce(&mut Client)) {
        let Some(peer) = peer else { return };
        if let Some(client) = self.lock().get_mut(&peer) {
            change(client);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SocketAddr, Client>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One to list descriptors by, and one for each in turn.
fn spare() -> Vec<File> {
    (0..2).filter_map(|_| File::open("/dev/null").ok()).collect()
}

/// Whether a client took longer than it may, whatever it sent meanwhile.
fn is_over(client: &Client, now: Instant, limits: &Limits) -> bool {
    let for_so_long = now.saturating_duration_since(client.since);
    let limit = match client.doing {
        Doing::New { .. } | Doing::Rests => limits.idle,
        Doing::Sends(bytes) => {
            limits.head_timeout.map(|t| t + Duration::from_millis(bytes.saturating_mul(1000) / MIN_BODY_RATE))
        }
        Doing::Waits => None,
        Doing::Broke => Some(Duration::ZERO),
    };
    limit.is_some_and(|limit| for_so_long > limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpListener;

    const LIMITS: Limits = Limits {
        head: 1024,
        body: 1024,
        idle: Some(Duration::from_secs(300)),
        head_timeout: Some(Duration::from_secs(10)),
    };

    fn is_closed(mut client: &TcpStream) -> bool {
        client.set_nonblocking(true).unwrap();
        matches!(client.read(&mut [0]), Ok(0))
    }

    #[test]
    fn the_oldest_idle_connections_go_when_there_are_too_many() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let warden = Warden::new(listener.local_addr().unwrap());
        let clients: Vec<TcpStream> =
            (0..4).map(|_| TcpStream::connect(listener.local_addr().unwrap()).unwrap()).collect();
        let served: Vec<_> = clients.iter().map(|_| listener.accept().unwrap()).collect();
        let _busy = warden.serve(Some(served[0].1));
        drop(warden.serve(Some(served[1].1)));
        drop(warden.serve(Some(served[2].1)));
        drop(warden.serve(Some(served[3].1)));
        warden.look(&LIMITS, 2);
        let closed: Vec<bool> = clients.iter().map(is_closed).collect();
        assert_eq!(closed, [false, true, true, false]);
        drop(served);
        warden.look(&LIMITS, 2);
        assert!(warden.lock().is_empty(), "what is closed is forgotten");
    }

    #[test]
    fn slowness_is_measured_by_what_a_client_does() {
        let now = Instant::now();
        let ago = |seconds| now.checked_sub(Duration::from_secs(seconds)).unwrap();
        let over = |doing, seconds| is_over(&Client { since: ago(seconds), doing }, now, &LIMITS);
        assert!(!over(Doing::New { unread: false }, 299) && over(Doing::New { unread: true }, 301));
        assert!(!over(Doing::Rests, 299) && over(Doing::Rests, 301));
        assert!(!over(Doing::Sends(0), 9) && over(Doing::Sends(0), 11));
        assert!(!over(Doing::Sends(10 * MIN_BODY_RATE), 19), "what came earns time");
        assert!(!over(Doing::Waits, 1000), "an answer takes as long as it takes");
    }
}
