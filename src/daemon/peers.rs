//! The connections of the unix socket while they are open: who has gone, and
//! what is cancelled then. Knows nothing of what is asked.

use crate::api::http::Source;
use crate::pool::Cancel;
use crate::proc::{self, Hangups};
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A connection that several threads hold.
#[derive(Clone, Debug)]
pub struct Stream(pub Arc<UnixStream>);

impl Read for Stream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        (&*self.0).read(buf)
    }
}

impl Write for Stream {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        (&*self.0).write(buf)
    }
    fn write_vectored(&mut self, bufs: &[io::IoSlice<'_>]) -> io::Result<usize> {
        (&*self.0).write_vectored(bufs)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Source for Stream {
    fn bound(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.0.set_read_timeout(timeout.map(|t| t.max(Duration::from_micros(1))))
    }
}

/// All open connections.
pub struct Peers {
    hangups: Hangups,
    open: Mutex<HashMap<u64, Arc<Peer>>>,
    serial: AtomicU64,
}

/// One connection.
pub struct Peer {
    /// Tells connections apart.
    pub id: u64,
    /// The connection.
    pub stream: Stream,
    gone: AtomicBool,
    /// It is to make room: nothing more is read of it than what it has sent.
    leaving: AtomicBool,
    /// It has asked something.
    known: AtomicBool,
    /// A request of it is being served, or it is a channel.
    at_work: AtomicBool,
    /// What is pulled when the peer goes.
    waiting: Mutex<Option<Cancel>>,
}

/// A connection among the open ones until it is dropped.
pub struct Joined {
    peers: Arc<Peers>,
    /// The connection.
    pub peer: Arc<Peer>,
}

impl Peers {
    /// None open; starts the thread that learns of hang-ups.
    pub fn new() -> io::Result<Arc<Peers>> {
        let peers = Arc::new(Peers {
            hangups: Hangups::new()?,
            open: Mutex::new(HashMap::new()),
            serial: AtomicU64::new(1),
        });
        let watched = peers.clone();
        proc::thread::spawn("hangups", move || {
            let peers = watched;
            // Lasts as long as the process: a daemon has no use for ending it.
            while let Ok(gone) = peers.hangups.wait() {
                for id in gone {
                    let peer = peers.lock().get(&id).cloned();
                    if let Some(peer) = peer {
                        peer.hang_up();
                    }
                }
            }
        })?;
        Ok(peers)
    }

    /// Adds a connection.
    pub fn join(self: &Arc<Peers>, stream: UnixStream) -> io::Result<Joined> {
        let id = self.serial.fetch_add(1, Ordering::Relaxed);
        let stream = Stream(Arc::new(stream));
        let peer = Arc::new(Peer {
            id,
            stream,
            gone: AtomicBool::new(false),
            leaving: AtomicBool::new(false),
            known: AtomicBool::new(false),
            at_work: AtomicBool::new(false),
            waiting: Mutex::new(None),
        });
        self.lock().insert(id, peer.clone());
        let joined = Joined { peers: self.clone(), peer };
        self.hangups.add(&*joined.peer.stream.0, id)?;
        Ok(joined)
    }

    /// Ends a connection that is not at work, so that another finds room: one that never asked
    /// anything, else the oldest, but none that `keep` says to keep. Whether room is being made.
    pub fn evict(&self, keep: impl Fn(u64) -> bool) -> bool {
        let open = self.lock();
        let (leaving, here): (Vec<_>, Vec<_>) = open
            .values()
            .filter(|peer| !peer.at_work.load(Ordering::SeqCst))
            .partition(|p| p.gone.load(Ordering::SeqCst) || p.leaving.load(Ordering::SeqCst));
        let order = |peer: &&&Arc<Peer>| (peer.known.load(Ordering::SeqCst), peer.id);
        let chosen = here.iter().filter(|peer| !keep(peer.id)).min_by_key(order).map(|peer| Arc::clone(peer));
        // Others who look for room may have ended all there are.
        let Some(peer) = chosen else { return !leaving.is_empty() };
        // Not a second time, should its thread be slow to notice.
        peer.leaving.store(true, Ordering::SeqCst);
        // Only this direction: what it has sent already is answered, and what it sends now tells it so.
        let _ = peer.stream.0.shutdown(Shutdown::Read);
        true
    }

    /// Closes them all.
    pub fn close(&self) {
        let all: Vec<Arc<Peer>> = self.lock().values().cloned().collect();
        for peer in all {
            let _ = peer.stream.0.shutdown(Shutdown::Both);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<Peer>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Peer {
    /// A request of it is whole, and is served from now on.
    pub fn begins(&self) {
        self.at_work.store(true, Ordering::SeqCst);
        self.known.store(true, Ordering::SeqCst);
    }
    /// It has its answer.
    pub fn rests(&self) {
        self.at_work.store(false, Ordering::SeqCst);
    }
    /// From now on `cancel` is pulled when the peer goes, at once when it has gone.
    pub fn waits_for(&self, cancel: &Cancel) {
        *self.lock() = Some(cancel.clone());
        if self.gone.load(Ordering::SeqCst) {
            cancel.cancel();
        }
    }
    /// The peer waits for nothing any more.
    pub fn has_its_answer(&self) {
        *self.lock() = None;
    }
    fn hang_up(&self) {
        self.gone.store(true, Ordering::SeqCst);
        let waiting = self.lock().take();
        if let Some(cancel) = waiting {
            cancel.cancel();
        }
    }
    fn lock(&self) -> MutexGuard<'_, Option<Cancel>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        let _ = self.peers.hangups.remove(&*self.peer.stream.0);
        self.peers.lock().remove(&self.peer.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn room_is_made_by_whoever_does_nothing() {
        let peers = Peers::new().unwrap();
        let pairs: Vec<_> = (0..4).map(|_| UnixStream::pair().unwrap()).collect();
        let mut joined: Vec<_> =
            pairs.iter().map(|(near, _)| peers.join(near.try_clone().unwrap()).unwrap()).collect();
        joined[0].peer.begins();
        joined[0].peer.rests();
        joined[1].peer.begins();
        // What it sends is not taken any more.
        let is_closed = |n: usize| (&pairs[n].1).write(b"x").is_err();
        let keep = joined[3].peer.id;
        assert!(peers.evict(|id| id == keep) && is_closed(2), "it never asked anything");
        assert!(peers.evict(|id| id == keep) && is_closed(0), "it rests");
        drop((joined.remove(2), joined.remove(0)));
        assert!(!peers.evict(|id| id == keep), "one is at work, the other is to be kept");
        assert!(!is_closed(1) && !is_closed(3));
    }

    #[test]
    fn what_a_peer_waits_for_is_cancelled_when_it_goes() {
        let peers = Peers::new().unwrap();
        let (near, far) = UnixStream::pair().unwrap();
        let joined = peers.join(near).unwrap();
        assert_eq!(peers.lock().len(), 1);
        let cancel = Cancel::new();
        let (send, receive) = mpsc::channel();
        let _guard = cancel.on_cancel(move || send.send(()).unwrap());
        joined.peer.waits_for(&cancel);
        assert!(!cancel.is_cancelled());
        drop(far);
        receive.recv_timeout(Duration::from_secs(10)).unwrap();
        // And what it would have waited for later.
        let late = Cancel::new();
        joined.peer.waits_for(&late);
        assert!(late.is_cancelled());
        drop(joined);
        assert!(peers.lock().is_empty());
    }
}
