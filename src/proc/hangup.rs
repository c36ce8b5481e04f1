//! Tells when the other end of a connection has gone, for any number of
//! connections at once and without reading from them. Knows nothing of what a
//! connection is for.

use super::sys::check;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// How many hang-ups one [`Hangups::wait`] returns at most.
const BATCH: usize = 64;

/// A set of watched connections. Watching costs nothing until a peer goes.
#[derive(Debug)]
pub struct Hangups(OwnedFd);

impl Hangups {
    /// An empty set.
    pub fn new() -> io::Result<Hangups> {
        // SAFETY: epoll_create1 takes a flag and returns a new descriptor.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the descriptor was just made and belongs to nobody else.
        Ok(Hangups(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Watches a connection: `token` is returned once by [`Hangups::wait`] when
    /// its peer has closed it in both directions. A peer that has only finished
    /// sending has not gone.
    pub fn add(&self, fd: impl AsFd, token: u64) -> io::Result<()> {
        // EPOLLHUP is always told; edge-triggered, so that it is told once.
        let mut event = libc::epoll_event { events: libc::EPOLLET as u32, u64: token };
        self.control(libc::EPOLL_CTL_ADD, &fd, &mut event)
    }

    /// No longer watches it. A descriptor whose last duplicate is closed is forgotten by itself.
    pub fn remove(&self, fd: impl AsFd) -> io::Result<()> {
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        self.control(libc::EPOLL_CTL_DEL, &fd, &mut event)
    }

    fn control(&self, what: i32, fd: &impl AsFd, event: &mut libc::epoll_event) -> io::Result<()> {
        let fd = fd.as_fd().as_raw_fd();
        // SAFETY: both descriptors are open while they are borrowed, and `event` is one epoll_event.
        check(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), what, fd, event) }).map(drop)
    }

    /// Waits until at least one peer has gone, and returns the tokens.
    pub fn wait(&self) -> io::Result<Vec<u64>> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; BATCH];
        loop {
            // SAFETY: the pointer and the length are those of one array, which epoll_wait fills.
            let outcome =
                check(unsafe { libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), BATCH as i32, -1) });
            match outcome {
                Ok(n) => return Ok(events[..n as usize].iter().map(|e| e.u64).collect()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_peer_that_goes_is_told_once_and_one_that_speaks_is_not() {
        let hangups = Hangups::new().unwrap();
        let (near, far) = UnixStream::pair().unwrap();
        let (other, mut speaks) = UnixStream::pair().unwrap();
        let (third, shuts) = UnixStream::pair().unwrap();
        hangups.add(&near, 7).unwrap();
        hangups.add(&other, 8).unwrap();
        hangups.add(&third, 9).unwrap();
        speaks.write_all(b"data").unwrap();
        speaks.shutdown(Shutdown::Write).unwrap();
        drop(far);
        assert_eq!(hangups.wait().unwrap(), [7]);
        shuts.shutdown(Shutdown::Both).unwrap();
        assert_eq!(hangups.wait().unwrap(), [9]);
        hangups.remove(&other).unwrap();
        let (fourth, left) = UnixStream::pair().unwrap();
        drop(speaks);
        drop(left);
        // Gone before it was watched: told as well.
        hangups.add(&fourth, 10).unwrap();
        assert_eq!(hangups.wait().unwrap(), [10]);
    }
}
