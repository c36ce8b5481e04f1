//! The TCP connections that this process has accepted, for a library that keeps
//! them to itself. Knows nothing of what they are for.

use super::sys::check;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// Where the system lists a process's own descriptors.
const OWN: &str = "/dev/fd";

/// A connection that was accepted, by a descriptor of our own beside its owner's.
pub struct Accepted(TcpStream, SocketAddr);

impl Accepted {
    /// The other end.
    pub fn peer(&self) -> SocketAddr {
        self.1
    }
    /// Bytes are waiting that nobody has read, or its end.
    pub fn has_unread(&self) -> bool {
        use std::os::fd::AsFd;
        super::poll_readable(&[self.0.as_fd()], Some(std::time::Duration::ZERO)).is_ok_and(|ready| ready[0])
    }
    /// Ends it: whoever reads from it finds its end.
    pub fn end(&self) {
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

/// Hands over each connection that this process has on a local TCP port, and
/// says how many there are.
///
/// # Errors
/// Where the system does not list a process's descriptors, or none is left to look with.
pub fn each_accepted(port: u16, f: &mut dyn FnMut(&Accepted)) -> io::Result<usize> {
    let mut count = 0;
    for entry in std::fs::read_dir(OWN)? {
        let Some(fd) = entry?.file_name().to_str().and_then(|n| n.parse::<RawFd>().ok()) else { continue };
        if !is_local_port(fd, port) {
            continue;
        }
        let Ok(own) = duplicate(fd) else { continue };
        // Only now that it is ours is it certain to stay what it is: the number may have changed hands.
        let stream = TcpStream::from(own);
        let here = stream.local_addr().is_ok_and(|a| a.port() == port);
        if let (true, Ok(peer)) = (here, stream.peer_addr()) {
            count += 1;
            f(&Accepted(stream, peer));
        }
    }
    Ok(count)
}

/// Whether a descriptor, whatever it is, is a socket of that local port.
fn is_local_port(fd: RawFd, port: u16) -> bool {
    // SAFETY: an all-zero address is valid, the length is that of the buffer, and a number that
    // is no socket makes the call fail.
    unsafe {
        let mut address: libc::sockaddr_storage = std::mem::zeroed();
        let mut length = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        if libc::getsockname(fd, (&raw mut address).cast(), &raw mut length) != 0 {
            return false;
        }
        let family = libc::c_int::from(address.ss_family);
        // The port is in the same place in both kinds of address.
        let found = (*(&raw const address).cast::<libc::sockaddr_in>()).sin_port;
        (family == libc::AF_INET || family == libc::AF_INET6) && u16::from_be(found) == port
    }
}

fn duplicate(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the call takes any number, and what it returns is a new descriptor that nobody else owns.
    unsafe {
        let new = libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0);
        check(new)?;
        Ok(OwnedFd::from_raw_fd(new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    #[test]
    fn accepted_connections_are_found_and_can_be_ended() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(each_accepted(port, &mut |_| panic!("there is none")).unwrap(), 0);
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (mut served, peer) = listener.accept().unwrap();
        let mut seen = Vec::new();
        let count = each_accepted(port, &mut |c| seen.push((c.peer(), c.has_unread()))).unwrap();
        assert_eq!((count, seen), (1, vec![(peer, false)]));
        client.write_all(b"x").unwrap();
        let mut unread = false;
        while !unread {
            each_accepted(port, &mut |c| unread = c.has_unread()).unwrap();
        }
        each_accepted(port, &mut |c| c.end()).unwrap();
        let mut rest = Vec::new();
        served.read_to_end(&mut rest).unwrap();
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
    }
}
