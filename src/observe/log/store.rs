//! The files of the log: appending lines, beginning a new file when one is full
//! or old, and removing the oldest. Several daemons may share the directory: the
//! file that one writes is locked. Knows nothing of records.

use super::text;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// How much of a file's end is read to learn the time of its last record.
const TAIL: u64 = 64 * 1024;

/// When a new file begins, and how many are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rolling {
    /// Bytes.
    pub size: u64,
    /// Lines; 0: any number.
    pub lines: u64,
    /// Milliseconds after its first record; 0: never.
    pub age: u64,
    /// So many files are kept, the one being written included.
    pub keep: usize,
}

/// Appends lines.
#[derive(Debug)]
pub(super) struct Store {
    dir: PathBuf,
    open: Option<Open>,
    /// The time of the last line, which the next one must not precede.
    last: u64,
}

#[derive(Debug)]
struct Open {
    path: PathBuf,
    file: File,
    begun: u64,
    size: u64,
    lines: u64,
}

impl Store {
    pub fn new(dir: PathBuf) -> Store {
        Store { dir, open: None, last: 0 }
    }

    /// The time that a line with this time gets, so that each file stays in order.
    pub fn in_order(&mut self, at: u64) -> u64 {
        self.last = self.last.max(at);
        self.last
    }

    /// Makes sure that there is a file to write to, which may move the clock of [`Store::in_order`].
    pub fn prepare(&mut self, now: u64, rolling: &Rolling) -> io::Result<()> {
        let fits = |open: &Open| {
            open.size < rolling.size
                && (rolling.lines == 0 || open.lines < rolling.lines)
                && (rolling.age == 0 || now.saturating_sub(open.begun) < rolling.age)
        };
        // Somebody may have removed the file, or the directory, under our feet.
        let there = |open: &Open| open.file.metadata().is_ok_and(|m| m.nlink() > 0);
        if self.open.as_ref().is_some_and(|open| fits(open) && there(open)) {
            return Ok(());
        }
        let first = self.open.take().is_none();
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
        // A daemon that has just started goes on in the file that the last one left.
        if first
            && let Some((open, last)) = self.left_behind(rolling)
            && fits(&open)
        {
            self.last = self.last.max(last);
            self.open = Some(open);
            return Ok(());
        }
        self.open = Some(self.create(now)?);
        self.prune(rolling.keep);
        Ok(())
    }

    /// Appends whole lines. What was written of them counts even after an error.
    pub fn append(&mut self, lines: &[u8], count: u64) -> io::Result<()> {
        let open = self.open.as_mut().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        if let Err(e) = open.file.write_all(lines) {
            // A part of a line may be there: the next one must not continue it.
            self.open = None;
            return Err(e);
        }
        open.size += lines.len() as u64;
        open.lines += count;
        Ok(())
    }

    /// The newest file, when nobody else writes it.
    fn left_behind(&self, rolling: &Rolling) -> Option<(Open, u64)> {
        let (begun, path) = list(&self.dir).ok()?.pop()?;
        let mut file = OpenOptions::new().read(true).append(true).open(&path).ok()?;
        file.try_lock().ok()?;
        let size = file.metadata().ok()?.len();
        let lines = if rolling.lines == 0 { 0 } else { count_lines(&file).ok()? };
        let (last, whole) = last_time(&file, size).unwrap_or((0, false));
        if !whole && size > 0 {
            // A daemon was killed while it wrote: its last record is a torn line, and stays one.
            file.write_all(b"\n").ok()?;
        }
        Some((Open { path, file, begun, size, lines }, last))
    }

    fn create(&self, now: u64) -> io::Result<Open> {
        let mut begun = now.max(self.last);
        loop {
            let path = self.dir.join(name(begun));
            let mut options = OpenOptions::new();
            match options.read(true).append(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) => {
                    // Where files cannot be locked, at worst two daemons share one.
                    let _ = file.try_lock();
                    return Ok(Open { path, file, begun, size: 0, lines: 0 });
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => begun += 1,
                Err(e) => return Err(e),
            }
        }
    }

    /// Removes the oldest files that nobody writes until so many are left.
    fn prune(&self, keep: usize) {
        let Ok(files) = list(&self.dir) else { return };
        let mut over = files.len().saturating_sub(keep.max(1));
        for (_, path) in files {
            if over == 0 {
                return;
            }
            let ours = self.open.as_ref().is_some_and(|open| open.path == path);
            let free = !ours && File::open(&path).is_ok_and(|file| file.try_lock().is_ok());
            if free && fs::remove_file(&path).is_ok() {
                over -= 1;
            }
        }
    }
}

/// `1796056778123.jsonl`: the time of its first record, in as many digits as sort by themselves until the year 2286.
fn name(begun: u64) -> String {
    format!("{begun:013}.jsonl")
}

/// The files of a directory with the times that they began at, the oldest first; none when there is no directory.
pub(super) fn list(dir: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e),
    };
    let mut files = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        let stem = path.file_name().and_then(|n| n.to_str()).and_then(|n| n.strip_suffix(".jsonl"));
        if let Some(begun) = stem.and_then(|s| s.parse().ok()) {
            files.push((begun, path));
        }
    }
    files.sort();
    Ok(files)
}

/// The time of the last whole record, and whether the file ends with its line's end.
pub(super) fn last_time(file: &File, size: u64) -> Option<(u64, bool)> {
    let from = size.saturating_sub(TAIL);
    let mut tail = vec![0; usize::try_from(size - from).ok()?];
    file.read_exact_at(&mut tail, from).ok()?;
    let whole = tail.last() == Some(&b'\n');
    let mut times = tail.rsplit(|b| *b == b'\n').filter_map(text::time_of);
    Some((times.next().unwrap_or(0), whole))
}

fn count_lines(file: &File) -> io::Result<u64> {
    let mut block = vec![0; TAIL as usize];
    let (mut lines, mut at) = (0, 0);
    loop {
        let read = file.read_at(&mut block, at)?;
        if read == 0 {
            return Ok(lines);
        }
        at += read as u64;
        lines += block[..read].iter().filter(|b| **b == b'\n').count() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::scratch::Scratch;

    const ROOMY: Rolling = Rolling { size: 1 << 20, lines: 0, age: 0, keep: 3 };

    fn write(store: &mut Store, now: u64, rolling: &Rolling) {
        store.prepare(now, rolling).unwrap();
        let at = store.in_order(now);
        store.append(format!("{{\"at\":{at}}}\n").as_bytes(), 1).unwrap();
    }

    fn contents(dir: &Path) -> Vec<String> {
        list(dir).unwrap().iter().map(|(_, path)| fs::read_to_string(path).unwrap()).collect()
    }

    #[test]
    fn a_file_is_rolled_by_size_lines_and_age_and_the_oldest_go() {
        let dir = Scratch::new();
        let by_lines = Rolling { lines: 2, ..ROOMY };
        let mut store = Store::new(dir.path().into());
        (1..=5).for_each(|n| write(&mut store, n, &by_lines));
        let one = |n: u64| format!("{{\"at\":{n}}}\n");
        assert_eq!(contents(dir.path()), [one(1) + &one(2), one(3) + &one(4), one(5)]);
        write(&mut store, 100, &Rolling { age: 50, ..ROOMY });
        write(&mut store, 101, &Rolling { size: 5, ..ROOMY });
        assert_eq!(contents(dir.path()), [one(5), one(100), one(101)]);
        // A clock that was set back does not put lines out of order.
        write(&mut store, 7, &ROOMY);
        assert_eq!(contents(dir.path())[2], one(101) + &one(101));
    }

    #[test]
    fn a_successor_goes_on_behind_a_torn_line_and_others_files_are_left_alone() {
        let dir = Scratch::new();
        let mut first = Store::new(dir.path().into());
        write(&mut first, 10, &ROOMY);
        // The first one lives: the second begins its own, and removes none that is in use.
        let mut second = Store::new(dir.path().into());
        write(&mut second, 10, &Rolling { keep: 1, ..ROOMY });
        assert_eq!(contents(dir.path()), ["{\"at\":10}\n", "{\"at\":10}\n"]);
        second.open.as_mut().unwrap().file.write_all(b"{\"at\":12,\"mess").unwrap();
        drop(second);
        let mut third = Store::new(dir.path().into());
        write(&mut third, 11, &ROOMY);
        assert_eq!(contents(dir.path())[1], "{\"at\":10}\n{\"at\":12,\"mess\n{\"at\":12}\n");
        // Who removes everything loses what was there, and nothing that follows.
        fs::remove_dir_all(dir.path()).unwrap();
        write(&mut third, 20, &ROOMY);
        assert_eq!(contents(dir.path()), ["{\"at\":20}\n"]);
        drop(first);
    }
}
