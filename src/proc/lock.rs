//! Exclusive locks on files, which end with their holder however it ends, and
//! whose files can be removed. Knows nothing of what they protect.

use crate::proc;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// A held lock; dropping it releases it, and leaves the file.
#[derive(Debug)]
pub struct FileLock {
    file: File,
    path: PathBuf,
}

impl FileLock {
    /// Takes the lock if nobody holds it.
    pub fn try_now(path: &Path) -> io::Result<Option<FileLock>> {
        loop {
            let file = open(path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(e)) => return Err(e),
            }
            if still_there(&file, path) {
                return Ok(Some(FileLock { file, path: path.to_owned() }));
            }
        }
    }

    /// Waits for the lock, at most so long; none when it is still held then.
    pub fn wait(path: &Path, timeout: Duration) -> io::Result<Option<FileLock>> {
        if let Some(lock) = FileLock::try_now(path)? {
            return Ok(Some(lock));
        }
        let deadline = Instant::now() + timeout;
        loop {
            // A lock can only be awaited without end: a thread does that, and is
            // left behind when the time is up. It lets go of what it gets too late.
            let file = open(path)?;
            let (send, receive) = mpsc::channel();
            proc::thread::spawn("lock", move || {
                let outcome = file.lock().map(|()| file);
                let _ = send.send(outcome);
            })?;
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(outcome) = receive.recv_timeout(left) else { return Ok(None) };
            let file = outcome?;
            if still_there(&file, path) {
                return Ok(Some(FileLock { file, path: path.to_owned() }));
            }
        }
    }

    /// Releases the lock and removes its file.
    pub fn remove(self) {
        // Removed while held: whoever waits for it finds its file gone, and opens a new one.
        if still_there(&self.file, &self.path) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether somebody holds the lock; a file that is not there is not held.
pub fn is_held(path: &Path) -> bool {
    let Ok(file) = OpenOptions::new().read(true).open(path) else { return false };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Whether the path still names the file that was locked.
fn still_there(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::util::scratch::Scratch;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn one_holder_at_a_time_even_when_files_are_removed() {
        let dir = Scratch::new("lock");
        let path = dir.path("a.lock");
        let inside = Arc::new(AtomicUsize::new(0));
        let entered = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let (path, inside, entered) = (path.clone(), inside.clone(), entered.clone());
                proc::thread::spawn("holder", move || {
                    for _ in 0..20 {
                        let lock = FileLock::wait(&path, Duration::from_secs(60)).unwrap().unwrap();
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        std::thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        entered.fetch_add(1, Ordering::SeqCst);
                        lock.remove();
                    }
                })
                .unwrap()
            })
            .collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
        assert_eq!(entered.load(Ordering::SeqCst), 160);
        assert!(!path.exists());
    }

    #[test]
    fn a_held_lock_is_seen_and_waiting_for_it_ends() {
        let dir = Scratch::new("lock");
        let path = dir.path("a.lock");
        assert!(!is_held(&path));
        let lock = FileLock::try_now(&path).unwrap().unwrap();
        assert!(is_held(&path));
        assert!(FileLock::try_now(&path).unwrap().is_none());
        assert!(FileLock::wait(&path, Duration::from_millis(30)).unwrap().is_none());
        drop(lock);
        assert!(FileLock::wait(&path, Duration::from_secs(60)).unwrap().is_some());
    }
}
