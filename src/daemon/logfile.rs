//! The daemon's log file: plain lines with a time, kept below a size. Knows
//! nothing of who logs.

use crate::log::Level;
use crate::util;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A file larger than this is set aside as `.old`, so that two of them bound what a daemon leaves on disk.
const MAX_SIZE: u64 = 1024 * 1024;

/// Appends lines to a file.
#[derive(Debug)]
pub struct LogFile(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    file: File,
    size: u64,
    limit: u64,
}

impl LogFile {
    /// Opens the file for appending, or creates it (0600).
    pub fn open(path: &Path) -> io::Result<LogFile> {
        LogFile::with_limit(path, MAX_SIZE)
    }

    fn with_limit(path: &Path, limit: u64) -> io::Result<LogFile> {
        let file = append(path)?;
        let size = file.metadata()?.len();
        Ok(LogFile(Mutex::new(Inner { path: path.to_owned(), file, size, limit })))
    }

    /// Writes one line. Trouble is not reported: there is nowhere to report it to.
    pub fn line(&self, level: Level, message: &str) {
        let line = format!("{} {:5} {message}\n", util::iso8601(util::now_ms()), level.word());
        let mut inner = self.lock();
        if inner.size + line.len() as u64 > inner.limit && inner.size > 0 {
            let _ = fs::rename(&inner.path, old(&inner.path));
            if let Ok(file) = append(&inner.path) {
                inner.file = file;
            }
            // Counted from here even when it could not be set aside: a full disk is tried again later, not at each line.
            inner.size = 0;
        }
        if inner.file.write_all(line.as_bytes()).is_ok() {
            inner.size += line.len() as u64;
        }
    }

    /// Goes on under another name.
    pub fn rename(&self, path: &Path) {
        let mut inner = self.lock();
        if fs::rename(&inner.path, path).is_ok() {
            inner.path = path.to_owned();
        }
    }

    /// Where it is.
    pub fn path(&self) -> PathBuf {
        self.lock().path.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

fn old(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".old");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::scratch::Scratch;

    #[test]
    fn lines_are_appended_and_the_size_is_bounded() {
        let dir = Scratch::new("log");
        let path = dir.path("d.log");
        fs::write(&path, "before\n").unwrap();
        let log = LogFile::with_limit(&path, 300).unwrap();
        log.line(Level::Info, "hello");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("before\n") && text.ends_with("Z info  hello\n"), "{text}");
        for n in 0..20 {
            log.line(Level::Warn, &format!("line {n}"));
        }
        let (new, old) = (fs::read_to_string(&path).unwrap(), fs::read_to_string(old(&path)).unwrap());
        assert!(new.ends_with("line 19\n") && new.len() <= 300 && old.len() <= 300);
        let moved = dir.path("e.log");
        log.rename(&moved);
        log.line(Level::Info, "moved");
        assert_eq!(log.path(), moved);
        assert!(fs::read_to_string(&moved).unwrap().ends_with("moved\n"));
        assert!(!path.exists());
    }
}
