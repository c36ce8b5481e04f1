//! Single system calls, made safe: users, signals to others, liveness of a
//! process, polling, limits. Knows nothing of our own children.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The effective user that this process runs as.
pub fn uid() -> u32 {
    // SAFETY: geteuid takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// Whether this process may write to a path, as far as rights and the file system's own state (read-only) go.
pub fn may_write(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the path is a string that ends in a zero, and the call only reads it.
    unsafe { check(libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::W_OK, libc::AT_EACCESS)).map(drop) }
}

/// How many bytes an unprivileged user may still write to the file system of a path.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut stat = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: the path is a string that ends in a zero, and the call fills the structure in when it succeeds.
    let stat = unsafe {
        check(libc::statvfs(path.as_ptr(), stat.as_mut_ptr()))?;
        stat.assume_init()
    };
    // The widths of the fields differ from system to system.
    #[allow(clippy::useless_conversion, clippy::unnecessary_cast, reason = "u32 on macOS")]
    let (blocks, size) = (stat.f_bavail as u64, stat.f_frsize as u64);
    Ok(blocks.saturating_mul(size))
}

/// Turns the `-1` of a system call into `errno`.
pub(super) fn check(outcome: libc::c_int) -> io::Result<libc::c_int> {
    if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(outcome) }
}

fn target(pid: u32) -> io::Result<libc::pid_t> {
    // 0 and negative numbers mean groups to kill(2), and -1 means everybody.
    match libc::pid_t::try_from(pid) {
        Ok(pid) if pid > 0 => Ok(pid),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{pid} is not a process id"))),
    }
}

/// Sends a signal to one process. A pid may have been reused: compare
/// [`start_ticks`] first, or use a [`Child`](super::Child), which cannot be mistaken.
pub fn kill(pid: u32, signal: i32) -> io::Result<()> {
    let pid = target(pid)?;
    // SAFETY: kill takes two integers; `pid` is positive, so it names one process.
    check(unsafe { libc::kill(pid, signal) }).map(drop)
}

/// Sends a signal to every process of the group that `leader` leads or led.
pub fn kill_group(leader: u32, signal: i32) -> io::Result<()> {
    let leader = target(leader)?;
    if leader == 1 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "-1 is not a process group"));
    }
    // SAFETY: kill takes two integers; `-leader` is below -1, so it names one group.
    check(unsafe { libc::kill(-leader, signal) }).map(drop)
}

/// What `/proc/<pid>/stat` says of a process.
struct Stat {
    state: u8,
    parent: u32,
    session: u32,
    started: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the name in brackets, which may itself hold brackets and blanks.
    let close = text.iter().rposition(|&b| b == b')')?;
    let rest = std::str::from_utf8(text.get(close + 2..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    // Fields 4, 6 and 22 of the line; the state is field 3.
    let parent = fields.next()?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    let started = fields.nth(15)?.parse().ok()?;
    Some(Stat { state, parent, session, started })
}

/// When a process started, in clock ticks since boot; together with its pid
/// this names a process once and for all (until the next boot). `None` when there is none.
pub fn start_ticks(pid: u32) -> Option<u64> {
    stat(pid).map(|stat| stat.started)
}

/// The session, in the sense of setsid(2), that a process is in.
pub fn session(pid: u32) -> Option<u32> {
    stat(pid).map(|stat| stat.session)
}

/// [`start_ticks`] and `session` in one look.
pub fn ticks_and_session(pid: u32) -> Option<(u64, u32)> {
    stat(pid).map(|stat| (stat.started, stat.session))
}

/// Whether the process that had this pid and start time is still running (a zombie is not).
pub fn alive(pid: u32, start_ticks: u64) -> bool {
    stat(pid).is_some_and(|s| s.started == start_ticks && s.state != b'Z' && s.state != b'X')
}

/// The parent of a process, the parent of that, and so on, up to the first process.
pub fn ancestors(pid: u32) -> impl Iterator<Item = u32> {
    // The table may change while it is read; so many steps are enough for any tree that is one.
    let parent = |pid: &u32| stat(*pid).map(|stat| stat.parent).filter(|p| *p > 0);
    std::iter::successors(parent(&pid), parent).take(256)
}

/// The user at the other end of a unix socket, as the kernel recorded it when the connection was made.
pub fn peer_uid(stream: &UnixStream) -> io::Result<u32> {
    credentials(stream).map(|who| who.uid)
}

/// The process at the other end of a unix socket, as the kernel recorded it when the connection was
/// made; 0 when it is one that this system's process table does not show us.
pub fn peer_pid(stream: &UnixStream) -> io::Result<u32> {
    credentials(stream).map(|who| u32::try_from(who.pid).unwrap_or(0))
}

fn credentials(stream: &UnixStream) -> io::Result<libc::ucred> {
    let mut who = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the buffer is a ucred, its length is passed along, and the
    // descriptor is open for as long as `stream` is borrowed.
    check(unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut who).cast(),
            &raw mut length,
        )
    })?;
    Ok(who)
}

/// `poll(2)`, resumed after interruptions; `None` waits for ever.
fn poll(entries: &mut [libc::pollfd], timeout: Option<Duration>) -> io::Result<usize> {
    // A time-out too far away to be a date is none.
    let deadline = timeout.and_then(|t| Instant::now().checked_add(t));
    loop {
        let wait = match deadline {
            None => -1,
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                // Rounded up, so that a short time-out does not spin.
                i32::try_from(left.as_micros().div_ceil(1000)).unwrap_or(i32::MAX)
            }
        };
        // SAFETY: the pointer and the length are those of one slice, which poll only writes `revents` of.
        match check(unsafe { libc::poll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, wait) }) {
            Ok(0) if deadline.is_some_and(|d| Instant::now() < d) => {}
            Ok(ready) => return Ok(ready as usize),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

fn entry(fd: RawFd, events: i16) -> libc::pollfd {
    libc::pollfd { fd, events, revents: 0 }
}

/// Waits until at least one of the descriptors can be read (data, end of file
/// or an error), and says which; all `false` after the time-out. `None` waits for ever.
pub fn poll_readable(fds: &[BorrowedFd<'_>], timeout: Option<Duration>) -> io::Result<Vec<bool>> {
    let mut entries: Vec<_> = fds.iter().map(|fd| entry(fd.as_raw_fd(), libc::POLLIN)).collect();
    poll(&mut entries, timeout)?;
    Ok(entries.iter().map(|e| e.revents != 0).collect())
}

/// Whether nobody will ever read what is written to the descriptor: the other end of a pipe was closed.
pub fn unread(fd: BorrowedFd<'_>) -> bool {
    let mut entries = [entry(fd.as_raw_fd(), 0)];
    poll(&mut entries, Some(Duration::ZERO)).is_ok() && entries[0].revents & libc::POLLERR != 0
}

/// Waits until the descriptor takes more data, or its reader is gone; `false` after the time-out.
pub fn poll_writable(fd: impl AsFd, timeout: Option<Duration>) -> io::Result<bool> {
    let mut entries = [entry(fd.as_fd().as_raw_fd(), libc::POLLOUT)];
    Ok(poll(&mut entries, timeout)? > 0)
}

/// Whether the other end of a connection has gone, or has at least ended what
/// it sends. Returns at once and reads nothing.
pub fn peer_closed(stream: &UnixStream) -> bool {
    let mut entries = [entry(stream.as_raw_fd(), libc::POLLRDHUP)];
    matches!(poll(&mut entries, Some(Duration::ZERO)), Ok(1..))
}

/// Makes reads and writes on the descriptor's open file return `WouldBlock`
/// instead of waiting. The flag belongs to the open file: for a pipe that is
/// one end of it, never the peer's end.
pub fn set_nonblocking(fd: impl AsFd) -> io::Result<()> {
    let fd = fd.as_fd().as_raw_fd();
    // SAFETY: fcntl with F_GETFL takes no pointer.
    let flags = check(unsafe { libc::fcntl(fd, libc::F_GETFL) })?;
    // SAFETY: fcntl with F_SETFL takes an integer.
    check(unsafe { libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) }).map(drop)
}

/// The limit on open descriptors as this process found it, once [`raise_nofile`] changed it.
pub(super) static INHERITED_NOFILE: OnceLock<libc::rlimit> = OnceLock::new();

/// Raises the soft limit on open descriptors to the hard one, and returns what
/// it is now. Children get the limit that we were started with: programs that
/// use select(2) break on descriptors above 1023.
pub fn raise_nofile() -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: getrlimit writes one rlimit, which `limit` is.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    let before = *INHERITED_NOFILE.get_or_init(|| limit);
    limit.rlim_cur = before.rlim_max;
    // SAFETY: setrlimit reads one rlimit.
    check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) })?;
    Ok(limit.rlim_cur)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_cannot_be_written_is_told_with_the_reason() {
        assert!(may_write(&std::env::temp_dir()).is_ok());
        let missing = may_write(Path::new("/no/such/dir")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn this_process_is_alive_under_its_own_start_time_only() {
        let pid = std::process::id();
        let started = start_ticks(pid).unwrap();
        assert!(alive(pid, started));
        assert!(!alive(pid, started + 1));
        assert_eq!(start_ticks(u32::MAX), None);
    }

    #[test]
    fn numbers_that_would_mean_groups_or_everybody_are_refused() {
        for pid in [0, u32::MAX, 1 << 31] {
            assert_eq!(kill(pid, 0).unwrap_err().kind(), io::ErrorKind::InvalidInput);
            assert_eq!(kill_group(pid, 0).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
        assert_eq!(kill_group(1, 0).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert!(kill(std::process::id(), 0).is_ok());
    }

    #[test]
    fn a_socket_knows_its_peer_and_sees_it_leave() {
        let (here, there) = UnixStream::pair().unwrap();
        assert_eq!(peer_uid(&here).unwrap(), uid());
        assert_eq!(peer_pid(&here).unwrap(), std::process::id());
        let parent = std::os::unix::process::parent_id();
        assert_eq!(ancestors(std::process::id()).next(), Some(parent).filter(|p| *p > 0));
        assert!(!peer_closed(&here));
        (&there).write_all(b"x").unwrap();
        assert!(!peer_closed(&here), "unread data is no end");
        drop(there);
        assert!(peer_closed(&here));
    }

    #[test]
    fn polling_tells_which_and_honours_the_time_out() {
        let (a, b) = UnixStream::pair().unwrap();
        let (c, _d) = UnixStream::pair().unwrap();
        let before = Instant::now();
        let wait = Some(Duration::from_millis(20));
        assert_eq!(poll_readable(&[a.as_fd(), c.as_fd()], wait).unwrap(), [false, false]);
        assert!(before.elapsed() >= Duration::from_millis(20));
        (&b).write_all(b"x").unwrap();
        assert_eq!(poll_readable(&[a.as_fd(), c.as_fd()], None).unwrap(), [true, false]);
        assert!(poll_writable(&a, None).unwrap());
    }

    #[test]
    fn a_full_pipe_would_block_instead_of_waiting() {
        let (_reader, mut writer) = io::pipe().unwrap();
        set_nonblocking(&writer).unwrap();
        let block = vec![0; 1 << 16];
        let refused = (0..1000).find_map(|_| writer.write(&block).err());
        assert_eq!(refused.map(|e| e.kind()), Some(io::ErrorKind::WouldBlock));
        assert!(!poll_writable(&writer, Some(Duration::ZERO)).unwrap());
    }
}
