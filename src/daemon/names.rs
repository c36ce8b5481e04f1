//! The names under which a daemon is found, one set a key: its lock, its socket,
//! its info file. Taken only when nobody alive has them, and given back without
//! touching anybody else's. Knows nothing of what is served there.

use super::state::Daemon;
use super::unix::Listening;
use crate::api::info;
use crate::api::lock::FileLock;
use crate::api::wire::DaemonInfo;
use crate::error::{Error, Kind, Result};
use crate::paths::{self, Dirs};
use crate::proc;
use crate::util;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Names that are ours.
pub struct Names {
    /// The key.
    pub key: String,
    /// The socket.
    pub socket: PathBuf,
    info: PathBuf,
    /// Which file the socket is: at the end another may have its name. No file's where it is others' to remove.
    inode: (u64, u64),
    /// Held for as long as the names are ours.
    lock: FileLock,
    state: State,
}

enum State {
    /// Connections wait.
    Bound(UnixListener),
    /// Connections are served.
    Listening(#[allow(dead_code, reason = "held for its end")] Listening),
    /// Nobody can connect any more.
    Closed,
}

impl Names {
    /// Takes the names of a key: with a socket that was `chosen`, else one of the key's own. A
    /// daemon that is just stopping is waited for, so long.
    ///
    /// # Errors
    /// `Unavailable` when a live daemon has them, or a file cannot be made.
    pub fn take(dirs: &Dirs, key: &str, chosen: &str, patience: Duration) -> Result<Names> {
        let mut names = Names::unbound(dirs, key, chosen, patience)?;
        match names.socket.parent() {
            Some(dir) if !chosen.is_empty() => paths::make_private(dir).map_err(|e| {
                Error::new(Kind::Unavailable, format!("making the directory {}: {e}", dir.display()))
                    .hint("daemon.socket says that the daemon's socket is there")
            })?,
            Some(dir) if dir != dirs.state => private(dir)?,
            _ => {}
        }
        let bound = bind(&names.socket).map_err(|e| match (chosen.is_empty(), e.kind()) {
            (true, _) | (_, Kind::Refused) => e,
            (false, _) => Error::new(e.kind(), e.message()).hint(
                "daemon.socket says so; each configuration needs one of its own, at most 100 bytes long, \
                 and mcpx daemons shows who listens where",
            ),
        });
        let (listener, inode) = match bound {
            Ok(bound) => bound,
            Err(e) => {
                names.lock.remove();
                return Err(e);
            }
        };
        (names.state, names.inode) = (State::Bound(listener), inode);
        Ok(names)
    }

    /// As [`Names::take`], for a daemon that has other names: where the socket stays the same it is
    /// shared until [`Names::take_over`].
    pub fn take_beside(&self, dirs: &Dirs, key: &str, chosen: &str) -> Result<Names> {
        match Path::new(chosen) == self.socket {
            true => Names::unbound(dirs, key, chosen, Duration::ZERO),
            false => Names::take(dirs, key, chosen, Duration::ZERO),
        }
    }

    /// Takes over the socket of names that were in force, where it is the same.
    pub fn take_over(&mut self, before: &mut Names) {
        if self.socket == before.socket && matches!(self.state, State::Closed) {
            self.state = std::mem::replace(&mut before.state, State::Closed);
            self.inode = std::mem::take(&mut before.inode);
        }
    }

    /// The names of a key without a socket to serve.
    fn unbound(dirs: &Dirs, key: &str, chosen: &str, patience: Duration) -> Result<Names> {
        let socket = if chosen.is_empty() { info::socket_path(dirs, key) } else { chosen.into() };
        let info = info::info_path(dirs, key);
        let lock = lock(dirs, key, &info, patience)?;
        // With the lock held no daemon of ours is there; one that has no lock of this kind may be.
        if let Some(found) = info::read(&info)?
            && info::liveness(dirs, &found).0
            && found.start_ticks != 0
            && found.pid != std::process::id()
        {
            return Err(running(Some(&found)));
        }
        Ok(Names { key: key.to_owned(), socket, info, inode: (0, 0), lock, state: State::Closed })
    }

    /// Begins to serve connections.
    pub fn listen(&mut self, daemon: &Arc<Daemon>) -> Result<()> {
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Bound(listener) => {
                let listening = Listening::start(daemon, listener).map_err(|e| {
                    Error::new(Kind::Unavailable, format!("serving {}: {e}", self.socket.display()))
                })?;
                self.state = State::Listening(listening);
            }
            other => self.state = other,
        }
        Ok(())
    }

    /// Writes the info file: from now on the daemon is found.
    pub fn publish(&self, info: &DaemonInfo) -> Result<()> {
        let text = serde_json::to_vec_pretty(info)
            .map_err(|e| Error::new(Kind::Internal, format!("writing the info file: {e}")))?;
        util::write_atomic(&self.info, &text, 0o600, false).map_err(|e| {
            Error::new(Kind::Unavailable, format!("writing {}: {e}", self.info.display())).hint(
                "make room there, or set MCPX_STATE_DIR to a directory that can be written; \
                 a command with --no-daemon needs neither",
            )
        })
    }

    /// Removes the files, so that nobody new finds the daemon; who is connected stays, and so does the lock.
    pub fn hide(&self) {
        let ours = info::read(&self.info).ok().flatten().is_some_and(|i| i.pid == std::process::id());
        if ours {
            let _ = fs::remove_file(&self.info);
        }
        if let Ok(meta) = fs::symlink_metadata(&self.socket)
            && (meta.dev(), meta.ino()) == self.inode
        {
            let _ = fs::remove_file(&self.socket);
        }
    }

    /// Binds the socket again after [`Names::hide`], for a daemon that stays after all.
    pub fn bind_again(&mut self) -> Result<()> {
        let (listener, inode) = bind(&self.socket)?;
        self.inode = inode;
        self.state = State::Bound(listener);
        Ok(())
    }

    /// Nobody new is served.
    pub fn close(&mut self) {
        self.state = State::Closed;
    }

    /// Gives the names back.
    pub fn give_back(mut self) {
        self.hide();
        self.close();
        self.lock.remove();
    }
}

/// Removes what a daemon that was killed left of its names, unless somebody has taken them over.
pub fn remove_of(dirs: &Dirs, pid: u32, start_ticks: u64) {
    for (path, found) in info::list(dirs) {
        // The file's name has the key: in the file is the one that the daemon had moved on to.
        let name = path.file_stem().and_then(|n| n.to_str());
        if let Some(key) = name.and_then(|n| n.strip_prefix("daemon-"))
            && (found.pid, found.start_ticks) == (pid, start_ticks)
        {
            info::clear(dirs, key, Some((pid, start_ticks)));
        }
    }
}

/// Binds a socket whose place is free, or taken by one that nobody serves.
fn bind(socket: &Path) -> Result<(UnixListener, (u64, u64))> {
    let fail =
        |what: &str, e: io::Error| Error::new(Kind::Unavailable, format!("{what} {}: {e}", socket.display()));
    match fs::symlink_metadata(socket) {
        Ok(meta) if meta.file_type().is_socket() => {
            if UnixStream::connect(socket).is_ok() {
                return Err(running(None));
            }
            fs::remove_file(socket).map_err(|e| fail("removing the stale socket", e))?;
        }
        Ok(_) => {
            return Err(Error::new(
                Kind::Refused,
                format!("{} is in the place of the daemon's socket and is not one", socket.display()),
            )
            .hint("move it away"));
        }
        Err(_) => {}
    }
    let listener = UnixListener::bind(socket).map_err(|e| fail("listening on", e))?;
    fs::set_permissions(socket, fs::Permissions::from_mode(0o600))
        .map_err(|e| fail("closing to others", e))?;
    let meta = fs::symlink_metadata(socket).map_err(|e| fail("looking at", e))?;
    Ok((listener, (meta.dev(), meta.ino())))
}

fn running(found: Option<&DaemonInfo>) -> Error {
    let which = found.map(|i| format!(" (process {}, version {})", i.pid, i.version)).unwrap_or_default();
    Error::new(Kind::Unavailable, format!("a daemon is already running for this configuration{which}"))
        .hint("`mcpx status` shows it; `mcpx stop` stops it")
}

fn lock(dirs: &Dirs, key: &str, info: &Path, patience: Duration) -> Result<FileLock> {
    let path = info::lock_path(dirs, key);
    let fail = |e: io::Error| {
        Error::new(Kind::Unavailable, format!("locking {}: {e}", path.display()))
            .hint("set MCPX_STATE_DIR to a directory that mcpx may write to and lock files in")
    };
    if let Some(lock) = FileLock::try_now(&path).map_err(fail)? {
        return Ok(lock);
    }
    let found = info::read(info)?;
    let answers = found.as_ref().is_some_and(|i| UnixStream::connect(&i.socket).is_ok());
    if !answers && let Some(lock) = FileLock::wait(&path, patience).map_err(fail)? {
        return Ok(lock);
    }
    Err(running(found.as_ref()))
}

/// The runtime directory may be in a place that others write to, so it is
/// checked to be ours and not a link before anything is put there.
pub fn private(dir: &Path) -> Result<()> {
    paths::ensure_private(dir, proc::uid())?;
    let refused = |what: &str| {
        Err(Error::new(Kind::Refused, format!("the directory {} {what}", dir.display()))
            .hint("set XDG_RUNTIME_DIR or MCPX_STATE_DIR to a directory of your own with a short path"))
    };
    match fs::symlink_metadata(dir) {
        Ok(meta) if meta.file_type().is_symlink() => refused("is a link"),
        Ok(meta) if meta.uid() != proc::uid() => refused("is not yours"),
        Ok(_) => Ok(()),
        Err(e) => refused(&e.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::scratch::Scratch;
    use crate::util::Env;

    fn dirs(state: &Path, runtime: &Path) -> Dirs {
        let env = Env::from_pairs([("MCPX_STATE_DIR", state), ("HOME", state), ("XDG_RUNTIME_DIR", runtime)]);
        let dirs = Dirs::from_env(&env, proc::uid()).unwrap();
        paths::ensure_private(&dirs.state, proc::uid()).unwrap();
        dirs
    }
    fn take(dirs: &Dirs) -> Result<Names> {
        Names::take(dirs, "k", "", Duration::from_millis(20))
    }
    fn refusal(dirs: &Dirs) -> Error {
        take(dirs).err().expect("the names cannot be taken")
    }
    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn names_are_taken_once_and_leave_nothing_behind() {
        let dir = Scratch::new("names");
        let dirs = dirs(&dir.path("s"), &dir.path("r"));
        let names = take(&dirs).unwrap();
        let us = DaemonInfo { key: "k".into(), pid: std::process::id(), ..Default::default() };
        names.publish(&us).unwrap();
        assert_eq!((mode(&names.socket), mode(&names.info)), (0o600, 0o600));
        let error = refusal(&dirs);
        assert!(error.message().contains("already running"), "{error}");
        names.give_back();
        assert_eq!(fs::read_dir(&dirs.state).unwrap().count(), 0);
    }

    #[test]
    fn what_a_dead_daemon_left_is_replaced_and_what_a_live_one_has_is_not() {
        let dir = Scratch::new("names");
        let dirs = dirs(&dir.path("s"), &dir.path("r"));
        let socket = info::socket_path(&dirs, "k");
        drop(UnixListener::bind(&socket).unwrap());
        let mut other =
            DaemonInfo { pid: u32::MAX, start_ticks: 1, socket: socket.clone(), ..Default::default() };
        let write = |info: &DaemonInfo| {
            util::write_atomic(
                &info::info_path(&dirs, "k"),
                &serde_json::to_vec(info).unwrap(),
                0o600,
                false,
            )
            .unwrap();
        };
        write(&other);
        take(&dirs).unwrap().give_back();
        // Process 1 is alive, and its info file is kept.
        other.pid = 1;
        other.start_ticks = proc::start_ticks(1).unwrap();
        write(&other);
        assert!(take(&dirs).is_err());
        assert!(info::read(&info::info_path(&dirs, "k")).unwrap().is_some());
        fs::remove_file(info::info_path(&dirs, "k")).unwrap();
        // Somebody answers there without an info file.
        let answering = UnixListener::bind(&socket).unwrap();
        assert!(take(&dirs).is_err());
        assert!(socket.exists());
        drop(answering);
        // And what is not a socket is not ours to remove.
        fs::remove_file(&socket).unwrap();
        fs::write(&socket, "mine").unwrap();
        assert_eq!(refusal(&dirs).kind(), Kind::Refused);
        assert_eq!(fs::read(&socket).unwrap(), b"mine");
    }

    #[test]
    fn a_socket_that_was_chosen_is_bound_and_moves_to_the_next_names_with_its_clients() {
        let dir = Scratch::new("names");
        let dirs = dirs(&dir.path("s"), &dir.path("r"));
        let chosen = dir.path("new/fixed.sock");
        let chosen = chosen.to_str().unwrap();
        let mut first = Names::take(&dirs, "k", chosen, Duration::ZERO).unwrap();
        assert_eq!((first.socket.to_str(), mode(&first.socket)), (Some(chosen), 0o600));
        // Another configuration with the same socket is told whose it is.
        let error = Names::take(&dirs, "other", chosen, Duration::ZERO).err().unwrap();
        assert!(error.hint_text().unwrap().contains("one of its own"), "{error}");
        assert!(!info::lock_path(&dirs, "other").exists());
        let mut second = first.take_beside(&dirs, "k2", chosen).unwrap();
        second.take_over(&mut first);
        first.give_back();
        assert!(UnixStream::connect(chosen).is_ok(), "the socket outlives the names that it had");
        let third = second.take_beside(&dirs, "k3", "").unwrap();
        assert!(third.socket.starts_with(&dirs.state) && third.socket.exists());
        third.give_back();
        second.give_back();
        assert!(!Path::new(chosen).exists());
        assert_eq!(fs::read_dir(&dirs.state).unwrap().count(), 0);
    }

    #[test]
    fn another_daemons_files_are_left_alone_at_the_end() {
        let dir = Scratch::new("names");
        let dirs = dirs(&dir.path("s"), &dir.path("r"));
        let names = take(&dirs).unwrap();
        let (socket, path) = (names.socket.clone(), names.info.clone());
        fs::remove_file(&socket).unwrap();
        let _successor = UnixListener::bind(&socket).unwrap();
        let other = DaemonInfo { pid: 1, ..Default::default() };
        util::write_atomic(&path, &serde_json::to_vec(&other).unwrap(), 0o600, false).unwrap();
        names.give_back();
        assert!(socket.exists() && path.exists());
    }

    #[test]
    fn a_long_state_path_moves_the_socket_to_a_directory_of_ours() {
        let dir = Scratch::new("names");
        let long = dir.path(&"x".repeat(90));
        let dirs = dirs(&long, &dir.path("r"));
        let names = take(&dirs).unwrap();
        assert!(names.socket.starts_with(dir.path("r/mcpx")));
        assert_eq!(mode(&dir.path("r/mcpx")), 0o700);
        names.give_back();
        // A link in its place is refused.
        fs::remove_dir(dir.path("r/mcpx")).unwrap();
        fs::create_dir(dir.path("elsewhere")).unwrap();
        fs::set_permissions(dir.path("elsewhere"), fs::Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::symlink(dir.path("elsewhere"), dir.path("r/mcpx")).unwrap();
        assert_eq!(refusal(&dirs).kind(), Kind::Refused);
        assert_eq!(fs::read_dir(dir.path("elsewhere")).unwrap().count(), 0);
    }
}
