//! Turns (scope, caller) into the key of an instance. Two callers share an
//! instance exactly when their keys are equal. Knows nothing of servers.
//!
//! A scope that can't be resolved never falls back to a wider one: the caller
//! gets an instance of its own for the one call, and the reason.

use super::Caller;
use super::git::{self, GitEnv};
use crate::error::{Error, Kind, Result};
use crate::proc;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What an instance is keyed by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One instance for everybody.
    Global,
    /// One a repository: all its work trees share it.
    Repo,
    /// One a git work tree.
    Worktree,
    /// One a working directory.
    Cwd,
    /// One a session.
    Session,
    /// One a family: a session and those that it spawned.
    ParentSession,
    /// One a calling process; it ends when that process does.
    Pid,
    /// One a call.
    Call,
    /// One for everybody who names it.
    Named(String),
}

/// The words that [`Scope::parse`] takes, for an error's hint.
const WORDS: &[&str] =
    &["global", "repo", "worktree", "cwd", "session", "parent-session", "pid", "call", "named:<name>"];

impl Scope {
    /// Reads a scope as a configuration spells it.
    ///
    /// # Errors
    /// [`Kind::Config`] for an unknown word.
    pub fn parse(text: &str) -> Result<Scope> {
        Ok(match text {
            "global" => Scope::Global,
            "repo" => Scope::Repo,
            "worktree" => Scope::Worktree,
            "cwd" => Scope::Cwd,
            "session" => Scope::Session,
            "parent-session" => Scope::ParentSession,
            "pid" => Scope::Pid,
            "call" => Scope::Call,
            _ => match text.strip_prefix("named:") {
                Some(name) if !name.is_empty() => Scope::Named(name.to_owned()),
                _ => {
                    return Err(Error::new(Kind::Config, format!("unknown scope \"{text}\""))
                        .hint(format!("a scope is one of {}", WORDS.join(", "))));
                }
            },
        })
    }

    /// The scope as a configuration spells it.
    pub fn word(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Scope::Global => "global",
            Scope::Repo => "repo",
            Scope::Worktree => "worktree",
            Scope::Cwd => "cwd",
            Scope::Session => "session",
            Scope::ParentSession => "parent-session",
            Scope::Pid => "pid",
            Scope::Call => "call",
            Scope::Named(name) => return Cow::Owned(format!("named:{name}")),
        })
    }

    /// The key for this caller, and what was missing when it degraded to a key for one call.
    pub(super) fn key(&self, caller: &Caller) -> (Key, Option<Missing>) {
        match self.resolve(caller) {
            Ok(key) => (key, None),
            Err(missing) => (Key::call().of(caller), Some(missing)),
        }
    }

    fn resolve(&self, caller: &Caller) -> Result<Key, Missing> {
        match self {
            Scope::Global => Ok(Key::new("global")),
            Scope::Named(name) => Ok(Key::new(format!("named:{name}"))),
            Scope::Call => Ok(Key::call().of(caller)),
            Scope::Session => match &caller.session {
                session if session.is_empty() => Err(Missing::Variable("MCPX_SESSION_ID")),
                session => Ok(Key::session(session).of(caller)),
            },
            // The head of a family has no parent: what it calls itself is what its children call their parent.
            Scope::ParentSession => {
                let own = || caller.session_id.as_deref().or(Some(&caller.session));
                let head = caller.parent_session_id.as_deref().filter(|s| !s.is_empty()).or_else(own);
                match head.filter(|s| !s.is_empty()) {
                    Some(session) => Ok(Key::session(session)),
                    None => Err(Missing::Variable("MCPX_PARENT_SESSION_ID")),
                }
            }
            Scope::Pid => {
                let pid = caller.pid.ok_or(Missing::Variable("MCPX_PID"))?;
                // The start time keeps a reused pid from inheriting an instance.
                let ticks = proc::start_ticks(pid).ok_or(Missing::Process(pid))?;
                Ok(Key { pid: Some((pid, ticks)), ..Key::new(format!("pid:{pid}:{ticks}")) }.of(caller))
            }
            Scope::Cwd => {
                let dir = directory(caller)?;
                Ok(Key::place("cwd", dir.clone(), dir))
            }
            Scope::Worktree => {
                let dir = directory(caller)?;
                let top = git::discover(&dir, &caller.git)
                    .and_then(|repo| repo.top)
                    .ok_or(Missing::WorkTree(dir))?;
                Ok(Key::place("worktree", top.clone(), top))
            }
            Scope::Repo => {
                let dir = directory(caller)?;
                let repo = git::discover(&dir, &caller.git).ok_or(Missing::Repository(dir))?;
                // The first work tree is where a repository's servers run; a bare one has none.
                let home = match repo.common.file_name() {
                    Some(name) if name == ".git" => repo.common.parent().map(PathBuf::from),
                    _ => None,
                };
                Ok(Key::place("repo", repo.common.clone(), home.or(repo.top).unwrap_or(repo.common)))
            }
        }
    }
}

/// The caller's working directory with its links resolved.
fn directory(caller: &Caller) -> Result<PathBuf, Missing> {
    let dir = caller.cwd.as_deref().filter(|d| d.is_absolute()).ok_or(Missing::Variable("MCPX_CWD"))?;
    fs::canonicalize(dir).map_err(|_| Missing::Directory(dir.to_path_buf()))
}

/// How long a resolved directory is taken to be where it was: long enough for
/// a script that calls in a row, too short for a person to move a repository.
const PLACE_KEPT: Duration = Duration::from_millis(500);

/// How many resolved directories are kept.
const PLACES_KEPT: usize = 256;

/// Keys by place that were resolved a moment ago: asking the file system takes
/// twenty times longer than all the rest of a call. What could not be resolved is not kept.
#[derive(Default)]
pub(super) struct Places(Mutex<HashMap<(u8, PathBuf), (Instant, Key)>>);

impl Places {
    /// The same as [`Scope::key`].
    pub fn key(&self, scope: &Scope, caller: &Caller) -> (Key, Option<Missing>) {
        let kind = match scope {
            Scope::Cwd => 0,
            Scope::Worktree => 1,
            Scope::Repo => 2,
            _ => return scope.key(caller),
        };
        let Some(cwd) = caller.cwd.clone().filter(|_| caller.git.is_empty()) else {
            return scope.key(caller);
        };
        let at = (kind, cwd);
        if let Some((when, key)) = self.lock().get(&at)
            && when.elapsed() < PLACE_KEPT
        {
            return (key.clone(), None);
        }
        let (key, missing) = scope.key(caller);
        if missing.is_none() {
            let mut kept = self.lock();
            if kept.len() >= PLACES_KEPT {
                kept.retain(|_, (when, _)| when.elapsed() < PLACE_KEPT);
            }
            if kept.len() < PLACES_KEPT {
                kept.insert(at, (Instant::now(), key.clone()));
            }
        }
        (key, missing)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(u8, PathBuf), (Instant, Key)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a scope could not be resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// The caller did not say something that this variable would have told.
    Variable(&'static str),
    /// The caller's directory can't be reached.
    Directory(PathBuf),
    /// The directory is in no git work tree.
    WorkTree(PathBuf),
    /// The directory is in no git repository.
    Repository(PathBuf),
    /// The caller's process is gone, or not visible from here.
    Process(u32),
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Missing::Variable(name) => write!(f, "the caller did not give one; set {name}"),
            Missing::Directory(dir) => write!(f, "MCPX_CWD names {}, which can't be reached", dir.display()),
            Missing::WorkTree(dir) => {
                write!(f, "MCPX_CWD names {}, which is in no git work tree", dir.display())
            }
            Missing::Repository(dir) => {
                write!(f, "MCPX_CWD names {}, which is in no git repository", dir.display())
            }
            Missing::Process(pid) => write!(f, "MCPX_PID names process {pid}, which is not running here"),
        }
    }
}

/// The key of an instance within its server, and what ends it.
#[derive(Clone, Debug)]
pub(super) struct Key {
    /// What is compared, and what `status` shows: `global`, `session:<key>`, `cwd:<path>`, …
    pub text: Cow<'static, str>,
    /// The session that owns the instance.
    pub session: Option<String>,
    /// The process whose end is the instance's: pid and start time in clock ticks since boot.
    pub pid: Option<(u32, u64)>,
    /// The instance serves one call and stops.
    pub once: bool,
    /// The directory that the key stands for, where a server without a directory of its own runs.
    pub place: Option<PathBuf>,
    /// Where its one caller was, and what git was told there; absent where callers of several places share the key.
    caller: Option<(PathBuf, GitEnv)>,
}

/// Where a caller works, as MCP's roots: its directory, and the top of the git work tree around it.
pub(super) fn roots(caller: &Caller) -> Vec<PathBuf> {
    caller.cwd.as_deref().map(|cwd| around(cwd, &caller.git)).unwrap_or_default()
}

fn around(cwd: &Path, git: &GitEnv) -> Vec<PathBuf> {
    let Some(dir) = Some(cwd).filter(|d| d.is_absolute()).and_then(|d| fs::canonicalize(d).ok()) else {
        return Vec::new();
    };
    let top = git::discover(&dir, git).and_then(|repo| repo.top).filter(|top| *top != dir);
    std::iter::once(dir).chain(top).collect()
}

impl Key {
    fn new(text: impl Into<Cow<'static, str>>) -> Key {
        Key { text: text.into(), session: None, pid: None, once: false, place: None, caller: None }
    }

    /// The same as that of an instance which only this caller uses.
    fn of(self, caller: &Caller) -> Key {
        Key { caller: caller.cwd.clone().map(|cwd| (cwd, caller.git.clone())), ..self }
    }

    /// The directories that the instance's server is to work in. Looks at the file system.
    pub fn roots(&self) -> Vec<PathBuf> {
        match (&self.place, &self.caller) {
            (Some(place), _) => vec![place.clone()],
            (None, Some((cwd, git))) => around(cwd, git),
            (None, None) => Vec::new(),
        }
    }

    fn session(session: &str) -> Key {
        Key { session: Some(session.to_owned()), ..Key::new(format!("session:{session}")) }
    }

    fn place(word: &str, shown: PathBuf, place: PathBuf) -> Key {
        Key { place: Some(place), ..Key::new(format!("{word}:{}", shown.display())) }
    }

    /// A key that nobody else has or will have.
    pub(super) fn call() -> Key {
        static SERIAL: AtomicU64 = AtomicU64::new(1);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        Key { once: true, ..Key::new(format!("call:{serial}")) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::TempDir;
    use super::*;

    fn key(scope: &str, caller: &Caller) -> String {
        let (key, missing) = Scope::parse(scope).unwrap().key(caller);
        assert_eq!(missing, None, "{scope}");
        key.text.into_owned()
    }

    #[test]
    fn every_word_is_read_back() {
        for word in
            ["global", "repo", "worktree", "cwd", "session", "parent-session", "pid", "call", "named:x"]
        {
            assert_eq!(Scope::parse(word).unwrap().word(), word);
        }
        for wrong in ["", "named:", "Session", "tree"] {
            assert_eq!(Scope::parse(wrong).unwrap_err().kind(), Kind::Config, "{wrong}");
        }
    }

    #[test]
    fn a_session_and_its_children_are_one_family() {
        let parent = Caller { session: "p".into(), session_id: Some("p".into()), ..Caller::default() };
        let child = Caller {
            session: "c".into(),
            session_id: Some("c".into()),
            parent_session_id: Some("p".into()),
            ..Caller::default()
        };
        assert_eq!(key("parent-session", &parent), key("parent-session", &child));
        assert_ne!(key("session", &parent), key("session", &child));
        assert_eq!(key("named:x", &parent), key("named:x", &child));
        assert_ne!(key("call", &parent), key("call", &parent));
    }

    #[test]
    fn directories_are_compared_with_their_links_resolved() {
        let tmp = TempDir::new("scope");
        let real = tmp.path().join("real");
        fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, tmp.path().join("link")).unwrap();
        let at = |name: &str| Caller { cwd: Some(tmp.path().join(name)), ..Caller::default() };
        assert_eq!(key("cwd", &at("real")), key("cwd", &at("link")));
        assert_eq!(key("cwd", &at("link")), format!("cwd:{}", real.display()));
    }

    #[test]
    fn a_place_is_remembered_and_a_missing_one_is_not() {
        let tmp = TempDir::new("places");
        let places = Places::default();
        let at = |name: &str| Caller { cwd: Some(tmp.path().join(name)), ..Caller::default() };
        assert!(places.key(&Scope::Cwd, &at("later")).1.is_some());
        fs::create_dir(tmp.path().join("later")).unwrap();
        let (first, missing) = places.key(&Scope::Cwd, &at("later"));
        assert_eq!(missing, None);
        assert_eq!(places.key(&Scope::Cwd, &at("later")).0.text, first.text);
        assert!(places.key(&Scope::Worktree, &at("later")).1.is_some(), "another question");
    }

    #[test]
    fn a_process_is_told_by_its_start_time_too() {
        let me = Caller { pid: Some(std::process::id()), ..Caller::default() };
        let text = key("pid", &me);
        assert!(text.starts_with(&format!("pid:{}:", std::process::id())), "{text}");
    }

    #[test]
    fn what_cannot_be_resolved_is_isolated_and_says_what_is_missing() {
        let nobody = Caller::default();
        let tmp = TempDir::new("unscoped");
        let outside = Caller { cwd: Some(tmp.path().to_path_buf()), ..Caller::default() };
        for (scope, caller, word) in [
            ("session", &nobody, "MCPX_SESSION_ID"),
            ("parent-session", &nobody, "MCPX_PARENT_SESSION_ID"),
            ("cwd", &nobody, "MCPX_CWD"),
            ("pid", &nobody, "MCPX_PID"),
            ("repo", &outside, "no git repository"),
            ("worktree", &outside, "no git work tree"),
        ] {
            let scope = Scope::parse(scope).unwrap();
            let (one, missing) = scope.key(caller);
            let (two, _) = scope.key(caller);
            assert!(missing.unwrap().to_string().contains(word), "{scope:?}");
            assert!(one.once && two.once);
            assert_ne!(one.text, two.text, "{scope:?} must not be shared");
        }
    }
}
