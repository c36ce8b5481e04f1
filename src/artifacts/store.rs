//! The store. Content is one file a digest; an artifact is a hard link to it under
//! its own name, and a record that says which run gave it. There is no index that
//! could be wrong, and no lock: every step is one system call that happens or does not,
//! and an artifact whose content was swept away meanwhile still has it by its own link.

use super::incoming::{Incoming, unwritten};
use super::sweep::{Swept, Why};
use super::{Artifact, SCHEME, name};
use crate::error::{Error, Kind, Result, system_words};
use crate::paths::{Dirs, make_private};
use crate::util;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The digits of an id.
const ID_DIGITS: usize = 16;
/// A beginning of an id or digest that is shorter is a name.
const LEAST_DIGITS: usize = 4;

/// How much may be kept.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The bytes of one artifact.
    pub one: u64,
    /// The bytes of all; 0 for any number.
    pub quota: u64,
    /// How long one stays; zero for ever.
    pub ttl: Duration,
}

/// What an artifact is to be listed with.
#[derive(Clone, Debug, Default)]
pub struct Label {
    /// Its name as it was given; it is cleaned.
    pub name: String,
    /// Its media type, when it was given.
    pub mime: Option<String>,
    /// The run that gives it.
    pub run: Option<String>,
    /// The session that it belongs to.
    pub session: Option<String>,
}

/// All artifacts of one state directory.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
}

impl Store {
    /// The store of these directories. Nothing is made before there is something to keep.
    pub fn new(dirs: &Dirs) -> Store {
        Store { root: dirs.state.join("artifacts") }
    }

    pub(super) fn dir(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }
    pub(super) fn blob(&self, sha256: &str) -> PathBuf {
        self.dir("blobs").join(sha256)
    }
    fn record(&self, id: &str) -> PathBuf {
        self.dir("entries").join(format!("{id}.json"))
    }
    pub(super) fn own_dir(&self, id: &str) -> PathBuf {
        self.dir("files").join(id)
    }

    /// Begins to take one in.
    ///
    /// # Errors
    /// `Unavailable` when the directory cannot be written to.
    pub fn begin(&self, limits: &Limits) -> Result<Incoming> {
        let dir = self.dir("incoming");
        make_private(&dir).map_err(|e| unwritten(&dir, &e))?;
        Incoming::begin(&dir, limits.one)
    }

    /// Keeps what came in. Artifacts that are too old, or the oldest ones that the quota has no
    /// room for, give way; never one of a run that `is_open`.
    ///
    /// # Errors
    /// `TooLarge` when the quota has no room even so, `Unavailable` when it cannot be written.
    pub fn keep(
        &self,
        incoming: Incoming,
        label: Label,
        limits: &Limits,
        is_open: &dyn Fn(&str) -> bool,
    ) -> Result<(Artifact, Swept)> {
        let sha256 = incoming.sha256();
        let mut swept = Swept::default();
        if limits.quota > 0 && !self.blob(&sha256).exists() {
            let used = self.used().map_err(|e| unwritten(&self.root, &e))?;
            let size = incoming.size();
            if used.saturating_add(size) > limits.quota {
                let room = Limits { quota: limits.quota.saturating_sub(size), ..*limits };
                swept =
                    if size > limits.quota { swept } else { self.sweep(&room, Some(room.quota), is_open)? };
                if size > limits.quota || swept.left > room.quota {
                    return Err(Error::new(
                        Kind::TooLarge,
                        format!(
                            "the artifact's {size} bytes do not fit: artifacts.quota is {} bytes, and open runs \
                             have what is left of it",
                            limits.quota
                        ),
                    )
                    .hint("raise artifacts.quota, or remove some: mcpx artifacts rm"));
                }
            }
        }
        let artifact = self.place(&incoming, &sha256, label)?;
        Ok((artifact, swept))
    }

    fn place(&self, incoming: &Incoming, sha256: &str, label: Label) -> Result<Artifact> {
        let otherwise = format!("artifact.{}", name::extension(label.mime.as_deref().unwrap_or_default()));
        let name = name::clean(&label.name, &otherwise);
        let mime = name::media_type(label.mime.as_deref(), &name);
        let (run, session) = (label.run.filter(|r| !r.is_empty()), label.session.filter(|s| !s.is_empty()));
        let group = run.as_deref().or(session.as_deref()).unwrap_or_default();
        let id = util::digest([sha256.as_bytes(), group.as_bytes(), name.as_bytes()], ID_DIGITS);
        let own = self.own_dir(&id).join(&name);
        self.place_content(incoming, &self.blob(sha256), &own).map_err(|e| unwritten(&own, &e))?;
        let (uri, at) = (format!("{SCHEME}{id}"), util::now_ms());
        let size = incoming.size();
        let sha256 = sha256.to_owned();
        let mut artifact = Artifact { uri, id, name, mime, size, sha256, at, run, session, path: None };
        let text = serde_json::to_vec(&artifact)
            .map_err(|e| Error::new(Kind::Internal, format!("writing an artifact's record: {e}")))?;
        let record = self.record(&artifact.id);
        let written = make_private(&self.dir("entries"))
            .and_then(|()| util::write_atomic(&record, &text, 0o600, false));
        written.map_err(|e| unwritten(&record, &e))?;
        artifact.path = Some(own);
        Ok(artifact)
    }

    /// Puts the content in its place, unless it is there, and the artifact's own name beside it.
    fn place_content(&self, incoming: &Incoming, blob: &Path, own: &Path) -> io::Result<()> {
        for dir in [blob.parent(), own.parent()].into_iter().flatten() {
            make_private(dir)?;
        }
        // A file of another length was cut by a crash, or by somebody's hand.
        let there = fs::symlink_metadata(blob).is_ok_and(|m| m.is_file() && m.len() == incoming.size());
        if there && link(blob, own).is_ok() {
            return Ok(());
        }
        fs::rename(incoming.path(), blob)?;
        link(blob, own)
    }

    /// Every artifact, the oldest first.
    ///
    /// # Errors
    /// `Unavailable` when the directory cannot be read; that there is none is an empty list.
    pub fn list(&self) -> Result<Vec<Artifact>> {
        let dir = self.dir("entries");
        let entries = match fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => {
                return Err(Error::unreadable(dir.display(), &e));
            }
        };
        let ids = entries.flatten().filter_map(|entry| {
            let file = entry.file_name();
            file.to_str().and_then(|f| f.strip_suffix(".json")).filter(|id| is_id(id)).map(str::to_owned)
        });
        // One that goes meanwhile is not there.
        let mut all: Vec<Artifact> = ids.filter_map(|id| self.read(&id)).collect();
        all.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
        Ok(all)
    }

    fn read(&self, id: &str) -> Option<Artifact> {
        let text = fs::read(self.record(id)).ok()?;
        let mut artifact: Artifact = serde_json::from_slice(&text).ok()?;
        // A record is only a file: neither the id nor the name in it may lead elsewhere.
        if artifact.id != id
            || artifact.name != name::clean(&artifact.name, "artifact")
            || !is_sha(&artifact.sha256)
        {
            return None;
        }
        artifact.path = Some(self.own_dir(id).join(&artifact.name));
        Some(artifact)
    }

    /// The artifact that is meant: by its uri, its id or digest or their beginning, or its name (the newest of that name).
    ///
    /// # Errors
    /// `NotFound` when there is none, `Usage` when a beginning fits several.
    pub fn find(&self, wanted: &str) -> Result<Artifact> {
        let word = wanted.strip_prefix(SCHEME).unwrap_or(wanted);
        if is_id(word)
            && let Some(artifact) = self.read(word)
        {
            return Ok(artifact);
        }
        let all = self.list()?;
        let hex = word.len() >= LEAST_DIGITS && word.bytes().all(|b| b.is_ascii_hexdigit());
        let lower = word.to_ascii_lowercase();
        let by_digits = |a: &&Artifact| hex && (a.id.starts_with(&lower) || a.sha256.starts_with(&lower));
        let fitting: Vec<&Artifact> = all.iter().filter(by_digits).collect();
        let same = |a: &&Artifact, b: &&Artifact| a.sha256 == b.sha256;
        match fitting.as_slice() {
            [] => {}
            // The same content under several names: the newest stands for it.
            [first, rest @ ..] if rest.iter().all(|a| same(a, first)) => {
                return Ok((*rest.last().unwrap_or(first)).clone());
            }
            several => {
                let ids: Vec<&str> = several.iter().map(|a| a.id.as_str()).collect();
                return Err(Error::new(
                    Kind::Usage,
                    format!("\"{wanted}\" is the beginning of several artifacts"),
                )
                .hint(format!("they are {}", ids.join(", "))));
            }
        }
        if let Some(artifact) = all.iter().rev().find(|a| a.name == word) {
            return Ok(artifact.clone());
        }
        let error = Error::new(Kind::NotFound, format!("there is no artifact \"{wanted}\""));
        Err(match util::did_you_mean(word, all.iter().map(|a| a.name.as_str())) {
            Some(hint) => error.hint(hint),
            None => error.hint("mcpx artifacts list shows them"),
        })
    }

    /// Its content.
    ///
    /// # Errors
    /// `NotFound` when it has gone meanwhile, `Unreadable` when it is not whole.
    pub fn open(&self, artifact: &Artifact) -> Result<File> {
        let own = self.own_dir(&artifact.id).join(&artifact.name);
        let file = File::open(&own).or_else(|_| File::open(self.blob(&artifact.sha256)));
        let size = |file: &File| file.metadata().map(|m| m.len());
        match file.and_then(|file| Ok((size(&file)?, file))) {
            Ok((size, file)) if size == artifact.size => Ok(file),
            Ok((size, _)) => Err(Error::new(
                Kind::Unreadable,
                format!(
                    "the artifact {} is damaged: it has {size} bytes instead of {}",
                    artifact.id, artifact.size
                ),
            )
            .hint("somebody wrote to its file, or the machine stopped while it was written")),
            Err(e) if e.kind() == ErrorKind::NotFound => Err(Error::new(
                Kind::NotFound,
                format!("the content of the artifact {} is gone", artifact.id),
            )),
            Err(e) => Err(Error::unreadable(own.display(), &e)),
        }
    }

    /// Removes one; its content too, when no other has the same.
    ///
    /// # Errors
    /// `Unwritable` when it cannot be removed.
    pub fn remove(&self, artifact: &Artifact) -> Result<()> {
        let last = !self.list()?.iter().any(|a| a.sha256 == artifact.sha256 && a.id != artifact.id);
        self.drop_one(artifact, last)
    }

    pub(super) fn drop_one(&self, artifact: &Artifact, with_content: bool) -> Result<()> {
        let record = self.record(&artifact.id);
        // The record first: what is not listed is swept up later if this breaks off.
        let gone = |outcome: io::Result<()>| match outcome {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        };
        gone(fs::remove_file(&record))
            .and_then(|()| gone(fs::remove_dir_all(self.own_dir(&artifact.id))))
            .and_then(
                |()| if with_content { gone(fs::remove_file(self.blob(&artifact.sha256))) } else { Ok(()) },
            )
            .map_err(|e| {
                let what = format!("removing the artifact {}: {}", artifact.id, system_words(&e));
                Error::new(Kind::Unwritable, what)
            })
    }

    /// How many bytes all content has.
    pub fn used(&self) -> io::Result<u64> {
        match fs::read_dir(self.dir("blobs")) {
            Ok(entries) => Ok(entries.flatten().filter_map(|e| e.metadata().ok()).map(|m| m.len()).sum()),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(0),
            Err(e) => Err(e),
        }
    }

    /// Notes that a run is open, and in which process (with when that began), so that no other process sweeps what it gave.
    ///
    /// # Errors
    /// When the note cannot be written.
    pub fn note_open(&self, run: &str, holder: (u32, u64)) -> io::Result<()> {
        let path = self.dir("open").join(mark(run));
        if path.exists() {
            return Ok(());
        }
        make_private(&self.dir("open"))?;
        util::write_atomic(&path, format!("{} {} {run}", holder.0, holder.1).as_bytes(), 0o600, false)
    }

    /// Removes the notes of runs that are over: those of `ours` that are not open, and those of processes that are gone.
    pub fn tidy_open(
        &self,
        ours: (u32, u64),
        is_open: &dyn Fn(&str) -> bool,
        alive: &dyn Fn(u32, u64) -> bool,
    ) {
        for entry in fs::read_dir(self.dir("open")).into_iter().flatten().flatten() {
            let stays = match note_in(&entry.path()) {
                Some((holder, run)) if holder == ours => is_open(&run),
                Some(((pid, ticks), _)) => alive(pid, ticks),
                None => false,
            };
            if !stays {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Whether another process has noted that this run is open, and still lives.
    pub fn is_noted(&self, run: &str, alive: &dyn Fn(u32, u64) -> bool) -> bool {
        note_in(&self.dir("open").join(mark(run))).is_some_and(|((pid, ticks), _)| alive(pid, ticks))
    }

    /// Removes what is too old, then the oldest until the quota is kept; never what a run that `is_open` gave.
    ///
    /// # Errors
    /// `Unavailable` when the store cannot be read.
    pub fn gc(&self, limits: &Limits, is_open: &dyn Fn(&str) -> bool) -> Result<Swept> {
        self.sweep(limits, (limits.quota > 0).then_some(limits.quota), is_open)
    }
}

/// A run's name as that of a file: a run is named by whoever calls.
fn mark(run: &str) -> String {
    util::digest([run.as_bytes()], ID_DIGITS)
}

/// Who noted that a run is open, and which.
fn note_in(path: &Path) -> Option<((u32, u64), String)> {
    let text = fs::read_to_string(path).ok()?;
    let mut parts = text.splitn(3, ' ');
    let holder = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    Some((holder, parts.next()?.to_owned()))
}

/// A second name for a file; a copy where the file system has no such thing.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {
            // Its own, from before; it may be an older one that was cut.
            let same = fs::metadata(from)?.len() == fs::metadata(to)?.len();
            if same { Ok(()) } else { fs::remove_file(to).and_then(|()| fs::hard_link(from, to)) }
        }
        Err(e)
            if matches!(
                e.kind(),
                ErrorKind::PermissionDenied | ErrorKind::Unsupported | ErrorKind::TooManyLinks
            ) =>
        {
            fs::copy(from, to).map(drop)
        }
        other => other,
    }
}

fn is_id(text: &str) -> bool {
    text.len() == ID_DIGITS && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

fn is_sha(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

impl Why {
    /// The word for it in events and on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Why::Expired => "expired",
            Why::Quota => "quota",
        }
    }
}
