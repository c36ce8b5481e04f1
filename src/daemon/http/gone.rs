//! Callers over TCP that leave while they wait. tiny_http hides their sockets,
//! so the kernel's table of connections is read instead, while somebody waits.

use crate::pool::Cancel;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Those who wait for an answer.
pub struct Waiting {
    port: u16,
    all: Mutex<HashMap<u64, (SocketAddr, Cancel)>>,
}

/// Somebody who waits until this is dropped.
pub struct Waits<'a>(&'a Waiting, u64);

impl Waiting {
    /// Nobody, at a listener on that port.
    pub fn new(port: u16) -> Waiting {
        Waiting { port, all: Mutex::default() }
    }

    /// Adds a caller; `cancel` is pulled when it has gone.
    pub fn add(&self, peer: SocketAddr, cancel: &Cancel) -> Waits<'_> {
        use std::sync::atomic::{AtomicU64, Ordering};
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let id = SERIAL.fetch_add(1, Ordering::Relaxed);
        self.lock().insert(id, (peer, cancel.clone()));
        Waits(self, id)
    }

    /// Cancels what callers wait for that have closed their end.
    pub fn cancel_gone(&self) {
        let waiting: Vec<(SocketAddr, Cancel)> = self.lock().values().cloned().collect();
        if waiting.is_empty() {
            return;
        }
        let tables: Vec<String> = ["/proc/self/net/tcp", "/proc/self/net/tcp6"]
            .iter()
            .filter_map(|path| fs::read_to_string(path).ok())
            .collect();
        if tables.is_empty() {
            return;
        }
        let here = established(tables.iter().map(String::as_str), self.port);
        for (peer, cancel) in waiting {
            if !here.contains(&SocketAddr::new(peer.ip().to_canonical(), peer.port())) {
                cancel.cancel();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, (SocketAddr, Cancel)>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.lock().remove(&self.1);
    }
}

/// The peers of a port whose connections are open in both directions (state 01
/// of the kernel's table).
fn established<'a>(tables: impl Iterator<Item = &'a str>, port: u16) -> HashSet<SocketAddr> {
    let mut peers = HashSet::new();
    for line in tables.flat_map(|t| t.lines().skip(1)) {
        let mut words = line.split_ascii_whitespace().skip(1);
        let (Some(local), Some(remote), Some("01")) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        if let (Some(local), Some(remote)) = (address(local), address(remote))
            && local.port() == port
        {
            peers.insert(remote);
        }
    }
    peers
}

/// `0100007F:1F90`: words of 32 bits in the machine's order, and the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| {
        let digits = ip.get(at * 8..at * 8 + 8)?;
        u32::from_str_radix(digits, 16).ok().map(u32::to_ne_bytes)
    };
    let ip = match ip.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for (at, chunk) in bytes.chunks_mut(4).enumerate() {
                chunk.copy_from_slice(&word(at)?);
            }
            IpAddr::V6(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip.to_canonical(), port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_caller_that_closed_its_end_is_noticed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let stays = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (_a, stays_at) = listener.accept().unwrap();
        let leaves = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (_b, leaves_at) = listener.accept().unwrap();
        let waiting = Waiting::new(port);
        let (here, gone) = (Cancel::new(), Cancel::new());
        let _one = waiting.add(stays_at, &here);
        let two = waiting.add(leaves_at, &gone);
        waiting.cancel_gone();
        assert!(!here.is_cancelled() && !gone.is_cancelled());
        drop(leaves);
        waiting.cancel_gone();
        assert!(!here.is_cancelled() && gone.is_cancelled());
        drop(two);
        assert_eq!(waiting.lock().len(), 1);
        drop(stays);
    }

    #[test]
    fn both_kinds_of_address_are_read() {
        let v4 = u32::from_ne_bytes([127, 0, 0, 1]);
        assert_eq!(address(&format!("{v4:08X}:1F90")).unwrap().to_string(), "127.0.0.1:8080");
        let one = u32::from_ne_bytes([0, 0, 0, 1]);
        assert_eq!(address(&format!("{:024X}{one:08X}:0050", 0)).unwrap().to_string(), "[::1]:80");
        assert_eq!(address("zz"), None);
        assert_eq!(address("0100:1"), None);
    }
}
