//! Follows the files as they grow: what was appended since the last look. Knows
//! nothing of when to look.

use super::query::Query;
use super::scan::Snapshot;
use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// How far each file has been read.
pub struct Follower {
    dir: PathBuf,
    read: HashMap<PathBuf, u64>,
}

impl Follower {
    /// Goes on behind what a snapshot has.
    pub fn after(dir: &Path, snapshot: &Snapshot) -> Follower {
        let read = snapshot.files.iter().map(|part| (part.path.clone(), part.size)).collect();
        Follower { dir: dir.to_owned(), read }
    }

    /// The records that came since the last look and are wanted, the oldest first.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn look(&mut self, query: &Query) -> io::Result<Vec<String>> {
        let ready = query.ready();
        let snapshot = Snapshot::take(&self.dir)?;
        let mut found = Vec::new();
        for part in &snapshot.files {
            let from = self.read.insert(part.path.clone(), part.size).unwrap_or(0);
            if from >= part.size {
                continue;
            }
            let mut file = &part.file;
            file.seek(SeekFrom::Start(from))?;
            let mut lines = BufReader::new(file.take(part.size - from));
            let mut line = Vec::new();
            while lines.read_until(b'\n', &mut line)? > 0 {
                let text = line.strip_suffix(b"\n").unwrap_or(&line);
                found.extend(
                    ready.takes(text).map(|line| (line.at, String::from_utf8_lossy(text).into_owned())),
                );
                line.clear();
            }
        }
        self.read.retain(|path, _| snapshot.files.iter().any(|part| part.path == *path));
        found.sort_by_key(|(at, _)| *at);
        Ok(found.into_iter().map(|(_, line)| line).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::scratch::Scratch;
    use std::io::Write;

    #[test]
    fn only_whole_and_new_lines_come() {
        let dir = Scratch::new();
        let path = dir.path().join("0000000000001.jsonl");
        std::fs::write(&path, "{\"at\":1}\n{\"at\":").unwrap();
        let mut follower = Follower::after(dir.path(), &Snapshot::take(dir.path()).unwrap());
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        assert!(follower.look(&Query::default()).unwrap().is_empty());
        file.write_all(b"3}\n{\"at\":4,\"event\":\"x.y\"}\n").unwrap();
        std::fs::write(dir.path().join("0000000000002.jsonl"), "{\"at\":2}\n").unwrap();
        assert_eq!(
            follower.look(&Query::default()).unwrap(),
            ["{\"at\":2}", "{\"at\":3}", "{\"at\":4,\"event\":\"x.y\"}"]
        );
        assert!(follower.look(&Query::default()).unwrap().is_empty());
    }
}
