//! Where a daemon's files are, and what its info file says: names, the rule for
//! the socket's place, reading, and telling a live daemon from a stale one.
//! Changes nothing on disk, but for removing what is stale.

use super::lock::{self, FileLock};
use super::wire::DaemonInfo;
use crate::config::Config;
use crate::error::{Error, Kind, Result};
use crate::paths::Dirs;
use crate::proc;
use crate::settings::{self, Settings};
use crate::util::Env;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// The longest path that every system takes for a socket, with room to spare (108 on Linux, 104 elsewhere).
const MAX_SOCKET_PATH: usize = 100;
/// An info file is a few kilobytes; what is larger is not one.
const MAX_INFO: u64 = 1024 * 1024;

/// `daemon-<key>.json`.
pub fn info_path(dirs: &Dirs, key: &str) -> PathBuf {
    dirs.state.join(format!("daemon-{key}.json"))
}
/// `daemon-<key>.lock`, which a daemon holds for as long as it has the key.
pub fn lock_path(dirs: &Dirs, key: &str) -> PathBuf {
    dirs.state.join(format!("daemon-{key}.lock"))
}
/// `daemon-<key>.log`.
pub fn log_path(dirs: &Dirs, key: &str) -> PathBuf {
    dirs.state.join(format!("daemon-{key}.log"))
}
/// Where the daemon of a configuration listens: where its files say, else at [`socket_path`]. What
/// variables and flags say is another matter: they name the daemon that a command is to use.
pub fn configured_socket(dirs: &Dirs, config: &Config) -> PathBuf {
    let home = dirs.home.iter().map(|home| ("HOME", home.as_os_str()));
    let env = Env::from_pairs(home);
    let said = Settings::only(&settings::DAEMON_SOCKET, &config.settings_layers(&env)).unwrap_or_default();
    if said.is_empty() { socket_path(dirs, &config.key) } else { said.into() }
}
/// `daemon-<key>.sock`, in the state directory when its path fits into a socket's address, else in the runtime directory.
pub fn socket_path(dirs: &Dirs, key: &str) -> PathBuf {
    let name = format!("daemon-{key}.sock");
    let near = dirs.state.join(&name);
    if near.as_os_str().as_bytes().len() <= MAX_SOCKET_PATH { near } else { dirs.runtime.join(name) }
}

/// Reads an info file; none when there is none. One that is not this user's is refused.
pub fn read(path: &Path) -> Result<Option<DaemonInfo>> {
    let fail = |what: String| Error::new(Kind::Unavailable, format!("reading {}: {what}", path.display()));
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(e) => return Err(fail(e.to_string())),
    };
    let meta = file.metadata().map_err(|e| fail(e.to_string()))?;
    if meta.uid() != proc::uid() {
        return Err(Error::new(
            Kind::Refused,
            format!("{} belongs to user {}, not to you", path.display(), meta.uid()),
        )
        .hint("remove it, or set MCPX_STATE_DIR to a directory of your own"));
    }
    let mut text = Vec::with_capacity(meta.len().min(MAX_INFO) as usize);
    file.take(MAX_INFO).read_to_end(&mut text).map_err(|e| fail(e.to_string()))?;
    // Written by rename, so a broken one is not half of a good one: a program of
    // another kind left it, and a daemon that starts here replaces it.
    Ok(serde_json::from_slice(&text).ok())
}

/// Every info file of the state directory that can be read, with its path, by path.
pub fn list(dirs: &Dirs) -> Vec<(PathBuf, DaemonInfo)> {
    let Ok(entries) = std::fs::read_dir(&dirs.state) else { return Vec::new() };
    let mut found: Vec<(PathBuf, DaemonInfo)> = entries
        .flatten()
        .filter(|e| {
            let name = e.file_name();
            let name = name.as_bytes();
            name.starts_with(b"daemon-") && name.ends_with(b".json")
        })
        .filter_map(|e| Some((e.path(), read(&e.path()).ok()??)))
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

/// Whether the daemon that wrote this is running still, and how that is known.
pub fn liveness(dirs: &Dirs, info: &DaemonInfo) -> (bool, String) {
    let pid = info.pid;
    if info.start_ticks == 0 {
        // It had no /proc to read its start time from; its lock tells.
        return match lock::is_held(&lock_path(dirs, &info.key)) {
            true => (true, format!("process {pid} holds its lock")),
            false => (false, "nobody holds its lock".into()),
        };
    }
    if proc::alive(pid, info.start_ticks) {
        return (true, format!("process {pid} is running"));
    }
    match proc::start_ticks(pid) {
        Some(ticks) if ticks != info.start_ticks => (false, format!("process {pid} is another one now")),
        _ => (false, format!("process {pid} is gone")),
    }
}

/// Removes what a daemon that is gone left under a key, and returns the paths: under its lock, which
/// a live one holds, so that one that is just taking its place keeps its own. With `of` only what
/// that process (pid, start ticks) left, which is known to be gone. What cannot be read as an info
/// file of ours stays, and so does a log.
pub fn clear(dirs: &Dirs, key: &str, of: Option<(u32, u64)>) -> Vec<PathBuf> {
    let path = lock_path(dirs, key);
    let locked = path.exists();
    let Ok(Some(lock)) = FileLock::try_now(&path) else { return Vec::new() };
    // Looked at only now that nobody else can change it.
    let file = info_path(dirs, key);
    let said = read(&file).ok().flatten();
    let gone = match (of, &said) {
        (Some(of), said) => said.as_ref().is_some_and(|said| (said.pid, said.start_ticks) == of),
        // Without start ticks only the lock tells, which is ours now.
        (None, Some(said)) => said.start_ticks == 0 || !liveness(dirs, said).0,
        (None, None) => !file.exists(),
    };
    let mut removed = Vec::new();
    if gone {
        let said = said.map(|said| said.socket).filter(|socket| socket.is_absolute());
        let sockets = [said, Some(socket_path(dirs, key))].into_iter().flatten();
        // A name that was chosen may be that of another daemon by now.
        for file in sockets.filter(|socket| is_abandoned(socket)).chain([file]).collect::<Vec<_>>() {
            if std::fs::remove_file(&file).is_ok() {
                removed.push(file);
            }
        }
    }
    lock.remove();
    removed.extend((locked && gone).then_some(path));
    removed
}

/// Whether there is a socket of ours that nobody listens on.
fn is_abandoned(socket: &Path) -> bool {
    let ours = |m: std::fs::Metadata| m.file_type().is_socket() && m.uid() == proc::uid();
    std::fs::symlink_metadata(socket).is_ok_and(ours)
        && UnixStream::connect(socket).is_err_and(|e| e.kind() == ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::scratch::Scratch;
    use crate::util::write_atomic;

    fn dirs(state: &Path) -> Dirs {
        let env = Env::from_pairs([("MCPX_STATE_DIR", state), ("HOME", Path::new("/nonexistent"))]);
        Dirs::from_env(&env, proc::uid()).unwrap()
    }

    #[test]
    fn a_socket_that_would_not_fit_moves() {
        let short = dirs(Path::new("/tmp/s"));
        assert_eq!(socket_path(&short, "0123456789abcdef"), Path::new("/tmp/s/daemon-0123456789abcdef.sock"));
        // "/daemon-…16….sock" is 29 bytes long.
        let fits = dirs(Path::new(&format!("/{}", "x".repeat(70))));
        assert!(socket_path(&fits, "0123456789abcdef").starts_with(&fits.state));
        let long = dirs(Path::new(&format!("/{}", "x".repeat(71))));
        assert!(socket_path(&long, "0123456789abcdef").starts_with(&long.runtime));
    }

    #[test]
    fn live_and_stale_are_told_apart() {
        let dir = Scratch::new("info");
        let dirs = dirs(&dir.path("s"));
        std::fs::create_dir(&dirs.state).unwrap();
        let pid = std::process::id();
        let mut info = DaemonInfo {
            key: "k".into(),
            pid,
            start_ticks: proc::start_ticks(pid).unwrap(),
            ..Default::default()
        };
        assert!(liveness(&dirs, &info).0);
        info.start_ticks += 1;
        let (live, why) = liveness(&dirs, &info);
        assert!(!live && why.contains("another"), "{why}");
        info.pid = u32::MAX;
        let (live, why) = liveness(&dirs, &info);
        assert!(!live && why.contains("gone"), "{why}");
        info.start_ticks = 0;
        assert!(!liveness(&dirs, &info).0);
        let _lock = lock::FileLock::try_now(&lock_path(&dirs, "k")).unwrap().unwrap();
        assert!(liveness(&dirs, &info).0);
    }

    #[test]
    fn info_files_are_listed_and_others_passed_over() {
        let dir = Scratch::new("info");
        let dirs = dirs(&dir.path(""));
        let info = DaemonInfo { key: "a".into(), pid: 7, ..Default::default() };
        let text = serde_json::to_vec(&info).unwrap();
        write_atomic(&info_path(&dirs, "a"), &text, 0o600, false).unwrap();
        write_atomic(&info_path(&dirs, "broken"), b"{", 0o600, false).unwrap();
        write_atomic(&dirs.state.join("other.json"), &text, 0o600, false).unwrap();
        let found = list(&dirs);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].1.pid, 7);
        assert!(read(&info_path(&dirs, "none")).unwrap().is_none());
    }
}
