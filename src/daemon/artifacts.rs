//! The daemon's part in artifacts: who may give what, uploads that come in parts,
//! events, and the operations. Knows nothing of how they are kept.

use super::answers::{json_of, one_or_many};
use super::callers::is_confined;
use super::router::{Asker, Body, Done, Origin, Params, Response};
use super::state::Daemon;
use crate::api::ops::Operation;
use crate::api::uri;
use crate::api::wire::CallContext;
use crate::artifacts::{Artifact, Incoming, Label, Limits, Store, Swept};
use crate::error::{Error, Kind, Result};
use crate::log;
use crate::observe::{Event, kinds};
use crate::paths::Dirs;
use crate::proc;
use crate::settings;
use crate::util::{self, base64};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often the store is looked after: what is in it goes after days.
const ROUND: Duration = Duration::from_secs(600);
/// An upload whose next part does not come for so long is over.
const STALLED: Duration = Duration::from_secs(300);
/// So many uploads in parts may be under way; each is a file, and a descriptor.
const UPLOADS: usize = 128;
/// How much of a content is in memory while it is sent.
const BLOCK: usize = 64 * 1024;

/// The store, and what is on its way in.
pub struct Artifacts {
    /// What is kept.
    pub store: Store,
    uploads: Mutex<HashMap<String, Upload>>,
    looked: Mutex<Option<Instant>>,
}

/// Content that comes in parts.
struct Upload {
    incoming: Incoming,
    /// Who began it: nobody else continues it.
    owner: String,
    last: Instant,
}

/// What `storeArtifact` is given.
#[derive(Deserialize)]
pub struct Given {
    #[serde(default)]
    name: String,
    mime: Option<String>,
    text: Option<String>,
    data: Option<String>,
    path: Option<PathBuf>,
    upload: Option<String>,
    #[serde(default)]
    more: bool,
    #[serde(default)]
    context: CallContext,
}

/// Which are wanted.
#[derive(Deserialize)]
pub struct Wanted {
    #[serde(default, deserialize_with = "one_or_many")]
    run: Vec<String>,
    #[serde(default, deserialize_with = "one_or_many")]
    session: Vec<String>,
    limit: Option<usize>,
}

/// Which one is meant.
#[derive(Deserialize)]
pub struct One {
    id: String,
}

/// What an upload's query says.
#[derive(Deserialize)]
struct Named {
    #[serde(default)]
    name: String,
    mime: Option<String>,
    run: Option<String>,
    session: Option<String>,
}

impl Artifacts {
    /// Of these directories.
    pub fn new(dirs: &Dirs) -> Artifacts {
        Artifacts { store: Store::new(dirs), uploads: Mutex::default(), looked: Mutex::default() }
    }

    /// How much may be kept.
    pub fn limits(&self, daemon: &Daemon) -> Limits {
        let current = daemon.current();
        Limits {
            one: current.settings.get(&settings::ARTIFACTS_MAX_SIZE),
            quota: current.settings.get(&settings::ARTIFACTS_QUOTA),
            ttl: current.settings.get(&settings::ARTIFACTS_TTL),
        }
    }

    /// Keeps what came in, and tells of it.
    ///
    /// # Errors
    /// As [`Store::keep`].
    pub fn keep(&self, daemon: &Daemon, incoming: Incoming, label: Label) -> Result<Artifact> {
        let run = label.run.clone().filter(|run| daemon.runs.get(run).is_ok());
        if let Some(run) = &run {
            // Before it is there, so that no other daemon sweeps it in between.
            let holder = (daemon.origin.pid, daemon.origin.start_ticks);
            if let Err(e) = self.store.note_open(run, holder) {
                log::debug(format_args!("noting that run {run} is open: {e}"));
            }
        }
        let (artifact, swept) =
            self.store.keep(incoming, label, &self.limits(daemon), &|run| is_open(daemon, run))?;
        tell_swept(daemon, &swept);
        let data = about(&artifact, &["id", "name", "mime", "size", "sha256", "run"]);
        publish(daemon, &kinds::ARTIFACT_STORED, &artifact, data);
        Ok(artifact)
    }

    /// Ends uploads that nobody continues, and sweeps the store now and then.
    pub fn look_after(&self, daemon: &Daemon) {
        self.uploads().retain(|_, upload| upload.last.elapsed() < STALLED);
        self.tidy(daemon);
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        if looked.is_some_and(|at| at.elapsed() < ROUND) {
            return;
        }
        *looked = Some(Instant::now());
        drop(looked);
        match self.gc(daemon) {
            Ok(swept) if !swept.removed.is_empty() => {
                log::info(format_args!(
                    "{} artifacts were removed, {} bytes",
                    swept.removed.len(),
                    swept.freed
                ));
            }
            Ok(_) => {}
            Err(e) => log::warn(format_args!("sweeping the artifacts: {e}")),
        }
    }

    /// Takes back what was noted of runs that are over.
    fn tidy(&self, daemon: &Daemon) {
        let ours = (daemon.origin.pid, daemon.origin.start_ticks);
        self.store.tidy_open(ours, &|run| daemon.runs.get(run).is_ok(), &proc::alive);
    }

    fn gc(&self, daemon: &Daemon) -> Result<Swept> {
        self.tidy(daemon);
        let swept = self.store.gc(&self.limits(daemon), &|run| is_open(daemon, run))?;
        tell_swept(daemon, &swept);
        Ok(swept)
    }

    fn uploads(&self) -> MutexGuard<'_, HashMap<String, Upload>> {
        self.uploads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_open(daemon: &Daemon, run: &str) -> bool {
    // What this daemon noted of its own runs it knows better.
    let other = |pid, ticks| pid != daemon.origin.pid && proc::alive(pid, ticks);
    daemon.runs.get(run).is_ok() || daemon.artifacts.store.is_noted(run, &other)
}

fn tell_swept(daemon: &Daemon, swept: &Swept) {
    for (artifact, why) in &swept.removed {
        tell_removed(daemon, artifact, why.word());
    }
}

fn tell_removed(daemon: &Daemon, artifact: &Artifact, why: &str) {
    let mut data = about(artifact, &["id", "name", "size", "run"]);
    data.insert("why".into(), why.into());
    publish(daemon, &kinds::ARTIFACT_REMOVED, artifact, data);
}

fn about(artifact: &Artifact, fields: &[&str]) -> Map<String, Value> {
    let Ok(Value::Object(mut all)) = serde_json::to_value(artifact) else { return Map::new() };
    all.retain(|key, _| fields.contains(&key.as_str()));
    all
}

fn publish(daemon: &Daemon, kind: &'static kinds::Kind, artifact: &Artifact, data: Map<String, Value>) {
    let session = artifact.session.as_deref().unwrap_or_default();
    daemon.pool.bus().publish(Event::new(kind, Value::Object(data)).session(session).uri(&artifact.uri));
}

/// The run and the session that something is given by.
fn giver(daemon: &Daemon, context: &CallContext, asker: &Asker<'_>) -> (Option<String>, Option<String>) {
    let of = |run: &super::runs::Run| (Some(run.id.clone()), Some(run.caller.session.clone()));
    // A run does not give in the name of another.
    match (&asker.origin, &asker.held) {
        (Origin::Channel(run), _) | (_, Some(run)) => return of(run),
        _ => {}
    }
    match context.run.as_deref().map(|id| daemon.runs.get(id)) {
        Some(Ok(run)) => of(&run),
        _ => (context.run.clone(), context.session.clone()),
    }
}

/// Takes something in: whole, or the next part of it.
///
/// # Errors
/// `Usage` for what makes no sense, `Refused` for a path from who may not read it, and as [`Store::keep`].
pub fn store(daemon: &Daemon, given: Given, asker: &Asker<'_>) -> Result<Done> {
    let usage = |what: &str| Error::new(Kind::Usage, format!("storeArtifact: {what}"));
    let (run, session) = giver(daemon, &given.context, asker);
    let owner = run.clone().or_else(|| session.clone()).unwrap_or_default();
    let artifacts = &daemon.artifacts;
    let sources = [given.text.is_some(), given.data.is_some(), given.path.is_some()];
    if sources.iter().filter(|s| **s).count() != 1 {
        return Err(usage("expected one of text, data and path"));
    }
    if (given.more || given.upload.is_some()) && given.data.is_none() {
        return Err(usage("only data comes in parts"));
    }
    let mut incoming = match &given.upload {
        None => artifacts.store.begin(&artifacts.limits(daemon))?,
        // Taken out while it is written to: two parts at once would be in no order.
        Some(id) => match artifacts.uploads().remove(id) {
            Some(upload) if upload.owner == owner => upload.incoming,
            Some(upload) => {
                artifacts.uploads().insert(id.clone(), upload);
                return Err(no_upload(id));
            }
            None => return Err(no_upload(id)),
        },
    };
    let mut name = given.name;
    if let Some(text) = &given.text {
        incoming.take(text.as_bytes())?;
    }
    if let Some(data) = &given.data {
        let bytes =
            base64::decode(data).map_err(|at| usage(&format!("data is not base64 at character {at}")))?;
        incoming.take(&bytes)?;
    }
    if let Some(path) = &given.path {
        if !shares_files(asker) {
            return Err(Error::new(
                Kind::Refused,
                format!("storing {}: a path is not taken from here, but its bytes are", path.display()),
            )
            .hint("send the content as data; the clients do so where MCPX_ARTIFACTS_LOCAL is 0"));
        }
        incoming.take_all(&mut open_file(path)?, &path.display().to_string())?;
        if name.is_empty() {
            name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        }
    }
    if given.more {
        let mut uploads = artifacts.uploads();
        if uploads.len() >= UPLOADS {
            return Err(Error::new(Kind::Busy, format!("{UPLOADS} artifacts are being uploaded already"))
                .hint("try again in a moment"));
        }
        let id = match given.upload {
            Some(id) => id,
            None => util::random_hex(8)?,
        };
        uploads.insert(id.clone(), Upload { incoming, owner, last: Instant::now() });
        return json_of(&json!({"upload": id}));
    }
    let mime = given.mime.or_else(|| given.text.is_some().then(|| text_type(&name)).flatten());
    let artifact = artifacts.keep(daemon, incoming, Label { name, mime, run, session })?;
    json_of(&json!({"artifact": artifact}))
}

fn no_upload(id: &str) -> Error {
    Error::new(Kind::NotFound, format!("there is no upload \"{id}\""))
        .hint("an upload ends when its next part does not come for five minutes; begin it again")
}

/// What a text is whose name does not say.
fn text_type(name: &str) -> Option<String> {
    let known = crate::artifacts::media_type(None, name);
    (known == "application/octet-stream").then(|| "text/plain; charset=utf-8".to_owned())
}

/// Whether who asks could read the daemon's files itself.
fn shares_files(asker: &Asker<'_>) -> bool {
    match &asker.origin {
        Origin::Channel(run) => run.shares_files(),
        Origin::Unix(_) => !is_confined(asker),
        Origin::Tcp => false,
    }
}

/// A regular file; what is none may never end, or never begin.
fn open_file(path: &Path) -> Result<File> {
    let fail = |what: String| Error::new(Kind::Usage, format!("storing {}: {what}", path.display()));
    if !path.is_absolute() {
        return Err(fail("the path is not absolute".into()));
    }
    // Opening a pipe that nobody writes to would wait.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = file.map_err(|e| fail(e.to_string()))?;
    let meta = file.metadata().map_err(|e| fail(e.to_string()))?;
    if meta.is_file() { Ok(file) } else { Err(fail("it is no regular file".into())) }
}

/// Keeps what was uploaded as the body of a request.
///
/// # Errors
/// As [`Store::keep`].
pub fn upload(daemon: &Daemon, op: &'static Operation, params: Params<'_>) -> Result<Done> {
    let (said, incoming) = match params {
        Params::Content(map, incoming) => (Params::Map(map).parse::<Named>(op)?, incoming),
        _ => {
            return Err(Error::new(Kind::Unavailable, "the artifact could not be written")
                .hint("the daemon's log says why"));
        }
    };
    let Named { name, mime, run, session } = said;
    let session = match run.as_deref().map(|id| daemon.runs.get(id)) {
        Some(Ok(run)) => Some(run.caller.session.clone()),
        _ => session,
    };
    let artifact = daemon.artifacts.keep(daemon, incoming, Label { name, mime, run, session })?;
    json_of(&json!({"artifact": artifact}))
}

/// What is kept.
///
/// # Errors
/// When the store cannot be read.
pub fn list(daemon: &Daemon, wanted: &Wanted) -> Result<Done> {
    let store = &daemon.artifacts.store;
    let mut all = store.list()?;
    let among = |wanted: &[String], value: &Option<String>| {
        wanted.is_empty() || value.as_ref().is_some_and(|value| wanted.contains(value))
    };
    all.retain(|a| among(&wanted.run, &a.run) && among(&wanted.session, &a.session));
    let skip = all.len().saturating_sub(wanted.limit.unwrap_or(usize::MAX));
    json_of(&json!({"artifacts": &all[skip..], "bytes": store.used().unwrap_or(0)}))
}

/// One of them.
///
/// # Errors
/// As [`Store::find`].
pub fn show(daemon: &Daemon, wanted: &One) -> Result<Done> {
    json_of(&daemon.artifacts.store.find(&wanted.id)?)
}

/// Its content, as it is read.
///
/// # Errors
/// As [`Store::find`] and [`Store::open`].
pub fn content(daemon: &Daemon, wanted: &One) -> Result<Done> {
    let artifact = daemon.artifacts.store.find(&wanted.id)?;
    let mut file = daemon.artifacts.store.open(&artifact)?;
    let mut response = Response::json(200, Vec::new());
    response.media = None;
    // Never shown in place: what a tool made may be a page with a program in it.
    response.headers = format!(
        "Content-Type: {}\r\nContent-Disposition: attachment; filename*=UTF-8''{}\r\n\
         X-Content-Type-Options: nosniff\r\nETag: \"{}\"\r\n",
        artifact.mime,
        uri::encode(&artifact.name, false),
        artifact.sha256
    );
    response.body = Body::Stream(Box::new(move |out| {
        let mut block = vec![0; BLOCK];
        loop {
            match file.read(&mut block) {
                Ok(0) => return Ok(()),
                Ok(n) => out.send(&block[..n])?,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }));
    Ok(Done::Response(response))
}

/// Removes one.
///
/// # Errors
/// As [`Store::find`] and [`Store::remove`].
pub fn remove(daemon: &Daemon, wanted: &One) -> Result<Done> {
    let store = &daemon.artifacts.store;
    let mut artifact = store.find(&wanted.id)?;
    store.remove(&artifact)?;
    tell_removed(daemon, &artifact, "asked");
    artifact.path = None;
    json_of(&artifact)
}

/// Makes room.
///
/// # Errors
/// When the store cannot be read.
pub fn sweep(daemon: &Daemon) -> Result<Done> {
    let Swept { removed, freed, left } = daemon.artifacts.gc(daemon)?;
    let removed: Vec<Artifact> =
        removed.into_iter().map(|(artifact, _)| Artifact { path: None, ..artifact }).collect();
    json_of(&json!({"removed": removed, "freed": freed, "left": left}))
}
