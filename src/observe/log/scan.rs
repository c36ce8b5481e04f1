//! Reads the files in pieces, the newest first, on as many threads as help. A
//! piece is a run of whole lines whose times are known, so that those outside of
//! a span are never read. Knows nothing of what is looked for.

use super::journal::Spawn;
use super::{store, text};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The size of a piece: large enough that looking for its edges costs nothing
/// beside reading it, small enough that a few of them are little memory.
const PIECE: u64 = if cfg!(test) { 64 << 10 } else { 4 << 20 };

/// How much is read at once to find a line's end.
const PROBE: usize = 4096;

/// More threads than this wait for each other's memory.
const MOST_THREADS: usize = 4;

/// The files as they were at one moment.
#[derive(Debug)]
pub struct Snapshot {
    pub(super) files: Vec<Part>,
}

/// One file, up to the end of its last whole line.
#[derive(Debug)]
pub(super) struct Part {
    pub path: PathBuf,
    pub file: File,
    pub begun: u64,
    pub size: u64,
    pub last: u64,
}

/// A run of whole lines, and the times of its first line and of the one behind its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub file: usize,
    pub from: u64,
    pub to: u64,
    pub first: u64,
    pub last: u64,
}

/// What is done with the pieces.
pub(super) trait Task: Send + Sync {
    /// Whether a piece can still matter.
    fn wants(&self, piece: &Piece) -> bool;
    /// Takes the lines of a piece. Several threads call it.
    fn take(&self, piece: &Piece, lines: &[u8]);
}

impl Snapshot {
    /// The files of a directory; none when there is no directory.
    ///
    /// # Errors
    /// When the directory cannot be read. A file that vanished meanwhile is passed over.
    pub fn take(dir: &Path) -> io::Result<Snapshot> {
        let mut files = Vec::new();
        for (begun, path) in store::list(dir)? {
            let Ok(file) = File::open(&path) else { continue };
            let size = whole_lines(&file, file.metadata()?.len())?;
            let last = store::last_time(&file, size).map_or(begun, |(last, _)| last.max(begun));
            files.push(Part { path, file, begun, size, last });
        }
        Ok(Snapshot { files })
    }

    /// How many bytes there are.
    pub fn size(&self) -> u64 {
        self.files.iter().map(|part| part.size).sum()
    }

    /// The span of time that the records cover.
    pub fn span(&self) -> (u64, u64) {
        let begun = self.files.iter().filter(|p| p.size > 0).map(|p| p.begun).min().unwrap_or(0);
        (begun, self.files.iter().map(|p| p.last).max().unwrap_or(0))
    }

    /// The pieces that may hold something of a span (both ends included), the newest first.
    fn pieces(&self, since: u64, until: u64) -> io::Result<Vec<Piece>> {
        let mut pieces = Vec::new();
        for (index, part) in self.files.iter().enumerate() {
            if part.last < since || part.begun > until {
                continue;
            }
            let mut edges = vec![(0, part.begun)];
            while let Some((from, _)) = edges.last()
                && from + PIECE < part.size
            {
                match line_after(&part.file, from + PIECE, part.size)? {
                    Some(edge) => edges.push(edge),
                    None => break,
                }
            }
            edges.push((part.size, part.last));
            for pair in edges.windows(2) {
                let [(from, first), (to, last)] = [pair[0], pair[1]];
                if from < to && last >= since && first <= until {
                    pieces.push(Piece { file: index, from, to, first, last });
                }
            }
        }
        pieces.sort_by_key(|p| std::cmp::Reverse((p.last, p.first, p.file, p.from)));
        Ok(pieces)
    }
}

/// Hands every piece of a span (both ends included) to a task, the newest first, until it wants none.
pub(super) fn run(
    snapshot: &Arc<Snapshot>,
    since: u64,
    until: u64,
    task: &Arc<impl Task + 'static>,
    spawn: Spawn,
) -> io::Result<()> {
    let pieces = Arc::new(snapshot.pieces(since, until)?);
    let next = Arc::new(AtomicUsize::new(0));
    let work = {
        let (snapshot, pieces, task) = (snapshot.clone(), pieces.clone(), task.clone());
        move || -> io::Result<()> {
            let mut lines = Vec::new();
            while let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
                if task.wants(piece) {
                    lines.resize(usize::try_from(piece.to - piece.from).unwrap_or(0), 0);
                    snapshot.files[piece.file].file.read_exact_at(&mut lines, piece.from)?;
                    task.take(piece, &lines);
                }
            }
            Ok(())
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    let mut helpers = Vec::new();
    for _ in 1..threads.min(pieces.len()) {
        let (work, (done, outcome)) = (work.clone(), std::sync::mpsc::channel());
        let job = Box::new(move || {
            let _ = done.send(work());
        });
        // Without room for a thread it takes longer, no more.
        helpers.extend(spawn("log-scan", job).ok().map(|_| outcome));
    }
    let mut outcome = work();
    for helper in helpers {
        let lost = || Err(io::Error::other("a thread that read the log broke off"));
        outcome = outcome.and(helper.recv().unwrap_or_else(|_| lost()));
    }
    outcome
}

/// The end of the last whole line.
fn whole_lines(file: &File, size: u64) -> io::Result<u64> {
    let mut block = vec![0; PROBE];
    let mut end = size;
    while end > 0 {
        let from = end.saturating_sub(PROBE as u64);
        let part = &mut block[..usize::try_from(end - from).unwrap_or(PROBE)];
        file.read_exact_at(part, from)?;
        if let Some(at) = part.iter().rposition(|b| *b == b'\n') {
            return Ok(from + at as u64 + 1);
        }
        end = from;
    }
    Ok(0)
}

/// The first line behind an offset whose time can be read, and that time.
fn line_after(file: &File, offset: u64, size: u64) -> io::Result<Option<(u64, u64)>> {
    let mut block = vec![0; PROBE];
    let mut at = offset;
    while at < size {
        let want = usize::try_from(size - at).unwrap_or(PROBE).min(PROBE);
        file.read_exact_at(&mut block[..want], at)?;
        let Some(end) = text::byte(&block[..want], 0, b'\n') else {
            at += want as u64;
            continue;
        };
        at += end as u64 + 1;
        let mut head = [0; 32];
        let want = usize::try_from(size - at).unwrap_or(head.len()).min(head.len());
        file.read_exact_at(&mut head[..want], at)?;
        if let Some(time) = text::time_of(&head[..want]) {
            return Ok(Some((at, time)));
        }
    }
    Ok(None)
}
