//! What a daemon that is killed leaves behind, and who ends it: a guard, a small
//! process that waits for nothing but the daemon's end, and, should that be killed
//! as well, the next daemon to start. Both go by a record of the daemon's process
//! groups and by the mark that its children carry. Knows nothing of servers.

use super::names;
use crate::log;
use crate::paths::Dirs;
use crate::proc::{self, Child, Group, Io, Spawn};
use crate::util::{self, Env};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a daemon that leaves in order waits for its guard to leave too.
const GUARD_LEAVES: Duration = Duration::from_secs(1);

/// How long a guard whose pipe has ended waits for the daemon's end to be seen.
const DAEMON_ENDS: Duration = Duration::from_secs(5);

/// Between two looks at whether the daemon has ended.
const LOOK: Duration = Duration::from_millis(1);

/// Removes the record, and sends the guard home, when dropped.
pub struct Record {
    path: PathBuf,
    guard: Arc<Guard>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Content {
    pid: u32,
    start_ticks: u64,
    groups: Vec<Group>,
}

/// Keeps a record of this process's groups from now on. The first of them brings the guard,
/// unless [`Record::post_guard`] did before.
pub fn keep(dirs: &Dirs, env: &Env) -> Record {
    let pid = std::process::id();
    let start_ticks = proc::start_ticks(pid).unwrap_or(0);
    let path = dirs.state.join(format!("groups-{pid}.json"));
    let guard = Arc::new(Guard { env: env.clone(), pid, start_ticks, ..Guard::default() });
    let record = Record { path: path.clone(), guard: guard.clone() };
    // From the start, as its first server may be there an instant before it is in a record.
    write(&path, pid, start_ticks, &[]);
    proc::keep_record(move |groups| {
        write(&path, pid, start_ticks, groups);
        if !groups.is_empty() {
            Guard::call(&guard);
        }
    });
    record
}

fn write(path: &Path, pid: u32, start_ticks: u64, groups: &[Group]) {
    let content = Content { pid, start_ticks, groups: groups.to_vec() };
    let text = serde_json::to_vec(&content).unwrap_or_default();
    // Without the record only a daemon that is killed leaves something behind.
    if let Err(e) = util::write_atomic(path, &text, 0o600, false) {
        log::debug(format_args!("writing {}: {e}", path.display()));
    }
}

impl Record {
    /// Starts the guard now, so that it is there before the first server.
    pub fn post_guard(&self) {
        self.guard.called.store(true, Ordering::Release);
        self.guard.start();
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        self.guard.dismiss();
    }
}

/// The process that ends what this one leaves, should it be killed.
#[derive(Default)]
struct Guard {
    env: Env,
    pid: u32,
    start_ticks: u64,
    called: AtomicBool,
    post: Mutex<Post>,
}

#[derive(Default)]
enum Post {
    #[default]
    Empty,
    /// It reads from this pipe, whose end it hears when the daemon ends, however that happens.
    Taken(Child, Option<File>),
    /// The daemon is leaving: none is needed.
    Closed,
}

impl Guard {
    /// Has it started, in the background. Does nothing but for the first time.
    fn call(guard: &Arc<Guard>) {
        if guard.called.swap(true, Ordering::AcqRel) {
            return;
        }
        // The spawner is who calls, and cannot wait for itself.
        let guard = guard.clone();
        let _ = proc::thread::spawn("guard", move || guard.start());
    }

    fn start(&self) {
        let mut post = self.post.lock().unwrap_or_else(PoisonError::into_inner);
        if !matches!(*post, Post::Empty) {
            return;
        }
        match self.spawn() {
            Ok(child) => {
                let pipe = child.take_stdin();
                *post = Post::Taken(child, pipe);
            }
            Err(e) => log::debug(format_args!("starting the guard: {e}; the next daemon ends what is left")),
        }
    }

    fn spawn(&self) -> std::io::Result<Child> {
        let mut env = self.env.clone();
        env.remove(proc::MARK);
        proc::spawn(Spawn {
            // The very file that runs, also when another has taken its path.
            program: proc::same_program(),
            args: vec!["guard".into(), self.pid.to_string().into(), self.start_ticks.to_string().into()],
            env: env.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
            stdin: Io::Piped,
            own_group: true,
            own_session: true,
            ..Spawn::default()
        })
    }

    /// Tells it that there is nothing to do, and waits until it has left.
    fn dismiss(&self) {
        let mut post = self.post.lock().unwrap_or_else(PoisonError::into_inner);
        if let Post::Taken(child, pipe) = std::mem::replace(&mut *post, Post::Closed) {
            let _ = pipe.map(|mut pipe| pipe.write_all(b"."));
            child.wait_timeout(GUARD_LEAVES);
        }
    }
}

/// Is the guard of a daemon: returns when that has ended and nothing of it is left.
/// `pipe` holds a byte when it has left in order, and only ends when it was killed.
pub fn guard(dirs: &Dirs, pid: u32, start_ticks: u64, mut pipe: impl Read) {
    if !matches!(pipe.read(&mut [0]), Ok(0)) {
        return;
    }
    let deadline = Instant::now() + DAEMON_ENDS;
    while proc::alive(pid, start_ticks) {
        if Instant::now() >= deadline {
            return;
        }
        // The kernel closes what a process had open before it is gone.
        std::thread::sleep(LOOK);
    }
    let path = dirs.state.join(format!("groups-{pid}.json"));
    let left = read(&path).filter(|c| (c.pid, c.start_ticks) == (pid, start_ticks));
    proc::sweep(left.as_ref().map(|c| c.groups.as_slice()).unwrap_or_default());
    proc::end_marked_by(pid, start_ticks);
    if left.is_some() {
        let _ = fs::remove_file(&path);
    }
    names::remove_of(dirs, pid, start_ticks);
    remove_temporary(&dirs.state, |writer| writer == pid);
}

fn read(path: &Path) -> Option<Content> {
    fs::read(path).ok().and_then(|text| serde_json::from_slice(&text).ok())
}

/// Ends what daemons left that are no more.
pub fn sweep(dirs: &Dirs) {
    sweep_in(&dirs.state);
}

/// The same for the records in one directory.
pub fn sweep_in(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if !name.to_str().is_some_and(|n| n.starts_with("groups-") && n.ends_with(".json")) {
            continue;
        }
        let path = entry.path();
        if let Some(content) = read(&path) {
            let Content { pid, start_ticks, groups } = content;
            if proc::alive(pid, start_ticks) {
                continue;
            }
            let ended = proc::sweep(&groups) + proc::end_marked_by(pid, start_ticks);
            if ended > 0 {
                log::warn(format_args!("ended {ended} processes and groups that daemon {pid} left"));
            }
        }
        let _ = fs::remove_file(&path);
    }
    remove_temporary(dir, |writer| proc::start_ticks(writer).is_none());
}

/// Removes half-written files of those who will not finish them; see [`util::write_atomic`] for their names.
fn remove_temporary(dir: &Path, of: impl Fn(u32) -> bool) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let writer = name.to_str().filter(|n| n.starts_with('.')).and_then(|n| {
            let (rest, _serial) = n.strip_suffix(".tmp")?.rsplit_once('.')?;
            rest.rsplit_once('.')?.1.parse().ok()
        });
        if writer.is_some_and(&of) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::scratch::Scratch;
    use crate::util::Env;

    #[test]
    fn records_of_the_living_are_kept_and_others_removed() {
        let dir = Scratch::new("left");
        let env = Env::from_pairs([("MCPX_STATE_DIR", dir.path("")), ("HOME", dir.path(""))]);
        let dirs = Dirs::from_env(&env, proc::uid()).unwrap();
        let here = std::process::id();
        let group = Group { leader: u32::MAX >> 1, start_ticks: 1 };
        let living = dir.path("groups-1.json");
        write(&living, here, proc::start_ticks(here).unwrap(), &[group]);
        let dead = dir.path("groups-2.json");
        write(&dead, here, 1, &[group]);
        let broken = dir.path("groups-3.json");
        fs::write(&broken, "{").unwrap();
        fs::write(dir.path("daemon-x.json"), "{}").unwrap();
        sweep(&dirs);
        assert!(living.exists() && !dead.exists() && !broken.exists() && dir.path("daemon-x.json").exists());
    }

    #[test]
    fn half_written_files_of_the_dead_are_removed() {
        let dir = Scratch::new("left");
        let here = std::process::id();
        let (ours, dead) = (format!(".a.json.{here}.0.tmp"), format!(".a.json.{}.12.tmp", u32::MAX >> 1));
        for name in [ours.as_str(), &dead, "a.tmp", ".b.tmp"] {
            fs::write(dir.path(name), "{").unwrap();
        }
        remove_temporary(&dir.path(""), |pid| proc::start_ticks(pid).is_none());
        let left = |name: &str| dir.path(name).exists();
        assert!(left(&ours) && !left(&dead) && left("a.tmp") && left(".b.tmp"));
    }

    #[test]
    fn a_guard_that_is_sent_home_touches_nothing() {
        let dir = Scratch::new("left");
        let env = Env::from_pairs([("MCPX_STATE_DIR", dir.path("")), ("HOME", dir.path(""))]);
        let dirs = Dirs::from_env(&env, proc::uid()).unwrap();
        let record = dir.path("groups-7.json");
        write(&record, 7, 1, &[Group { leader: u32::MAX >> 1, start_ticks: 1 }]);
        guard(&dirs, 7, 1, &b"."[..]);
        assert!(record.exists());
        guard(&dirs, 7, 2, &b""[..]);
        assert!(record.exists(), "another daemon of that number");
        guard(&dirs, 7, 1, &b""[..]);
        assert!(!record.exists());
    }
}
