//! Notices that configuration files changed, by looking at them. Reads none of them.

use crate::config::{Config, SourceFile};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// A file that was written this short a time ago may be written again without
/// its times showing it: it counts as changed until it is older.
const RACY: Duration = Duration::from_millis(100);

/// The state of a set of files.
#[derive(Debug)]
pub struct Watched(Vec<(PathBuf, Option<Stamp>)>);

/// What changes when a file is written, replaced, or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    dev: u64,
    ino: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    racy: bool,
}

impl Watched {
    /// The files as they are now. Take this before they are read.
    pub fn now(sources: &[SourceFile]) -> Watched {
        Watched(sources.iter().map(|s| (s.path.clone(), stamp(&s.path))).collect())
    }

    /// Those, and the documents of servers that are declared.
    pub fn all(config: &Config) -> Watched {
        let mut watched = Watched::now(&config.sources);
        let documents = config.servers.iter().filter_map(|def| def.document.clone());
        watched.0.extend(documents.map(|path| {
            let now = stamp(&path);
            (path, now)
        }));
        watched
    }

    /// Whether one of them may be another than it was.
    pub fn changed(&self) -> bool {
        self.0.iter().any(|(path, then)| {
            then.as_ref().is_some_and(|s| s.racy) || {
                let now = stamp(path).map(|s| Stamp { racy: false, ..s });
                now != *then
            }
        })
    }
}

fn stamp(path: &std::path::Path) -> Option<Stamp> {
    let meta = fs::metadata(path).ok()?;
    let age = meta.modified().ok().and_then(|m| SystemTime::now().duration_since(m).ok());
    Some(Stamp {
        dev: meta.dev(),
        ino: meta.ino(),
        size: meta.size(),
        modified: (meta.mtime(), meta.mtime_nsec()),
        changed: (meta.ctime(), meta.ctime_nsec()),
        racy: age.is_some_and(|age| age < RACY),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::scratch::Scratch;
    use std::fs::File;

    #[test]
    fn edits_replacements_and_removals_are_noticed() {
        let dir = Scratch::new("follow");
        let path = dir.path("c.json");
        let sources = [SourceFile { path: path.clone(), digest: String::new() }];
        let write = |text: &str| {
            fs::write(&path, text).unwrap();
            let old = SystemTime::now() - Duration::from_secs(60);
            File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
        };
        write("{}");
        let watched = Watched::now(&sources);
        assert!(!watched.changed());
        write("[]");
        assert!(watched.changed(), "the same size and modification time, but a later change");
        let watched = Watched::now(&sources);
        fs::write(dir.path("new"), "[]").unwrap();
        fs::rename(dir.path("new"), &path).unwrap();
        assert!(watched.changed());
        write("{}");
        let watched = Watched::now(&sources);
        fs::remove_file(&path).unwrap();
        assert!(watched.changed());
        let gone = Watched::now(&sources);
        assert!(!gone.changed());
        fs::write(&path, "{}").unwrap();
        assert!(gone.changed());
        assert!(Watched::now(&sources).changed(), "just written: to be looked at again");
    }
}
