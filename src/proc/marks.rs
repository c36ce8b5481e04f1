//! Finds processes by a variable in the environment that they were started with.
//! Unlike a parent, a group or a session, that is nothing a program leaves by
//! accident: whatever a marked child starts is marked too, however it detaches.
//! One that takes the variable out of a process's environment lets that process go.
//!
//! Sees Linux's /proc, and there only what is this user's, and in this process
//! namespace. Elsewhere it finds nothing, and groups and parents are all there is.

use super::family::Family;
use super::sys::{alive, kill, start_ticks, uid};
use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The variable that marks a child and all that it starts.
pub const MARK: &str = "MCPX_INSTANCE";

/// How long killed processes are waited for. A kill takes effect at once but for
/// a process in an uninterruptible wait, which nothing can hurry.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long a process that was just started is given to have an environment: while
/// it executes a program it shows none.
const SETTLING: Duration = Duration::from_millis(100);

/// What counts as just started, in clock ticks (the kernel shows 100 a second, whatever it counts in).
const RECENT: u64 = 100;

/// Between two looks at whether they are gone.
const LOOK: Duration = Duration::from_millis(1);

/// The mark of one child: who started it, and which of its children it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark(String);

impl Mark {
    /// A mark that no other child has or will have until the next boot. `None` where there is no /proc.
    pub fn fresh() -> Option<Mark> {
        static SERIAL: AtomicU64 = AtomicU64::new(1);
        static OURS: OnceLock<Option<String>> = OnceLock::new();
        let ours = OURS.get_or_init(|| {
            let pid = std::process::id();
            start_ticks(pid).map(|ticks| all_of(pid, ticks))
        });
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        ours.as_ref().map(|ours| Mark(format!("{ours}{serial}")))
    }

    /// Kills whatever carries this mark, and waits until it is gone.
    pub fn end(&self) -> usize {
        end_where(|pair| value_of(pair, MARK) == Some(self.0.as_bytes()))
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How the marks of a process's children begin.
fn all_of(pid: u32, start_ticks: u64) -> String {
    format!("{pid}.{start_ticks}.")
}

/// Kills whatever a process that is no more had marked, and returns how many processes that were.
pub fn end_marked_by(pid: u32, start_ticks: u64) -> usize {
    let prefix = all_of(pid, start_ticks);
    end_where(|pair| value_of(pair, MARK).is_some_and(|v| v.starts_with(prefix.as_bytes())))
}

/// Kills what was started with one of these values of a variable and is still in
/// the session (of setsid(2)) that stands beside it. One that leads or joined
/// another session was meant to stay.
pub fn end_in_session(variable: &str, values: &[(String, u32)]) -> usize {
    if values.is_empty() {
        return 0;
    }
    let member = |pid: u32, environment: &[u8]| {
        let value = environment.split(|b| *b == 0).find_map(|pair| value_of(pair, variable));
        value.is_some_and(|value| {
            values.iter().any(|(wanted, session)| {
                wanted.as_bytes() == value && super::sys::session(pid) == Some(*session)
            })
        })
    };
    end_all(&member, false)
}

fn end_where(wanted: impl Fn(&[u8]) -> bool) -> usize {
    end_all(&|_, environment| environment.split(|b| *b == 0).any(&wanted), true)
}

/// Kills, until none is found any more: a process may start another while it is looked for.
fn end_all(wanted: &dyn Fn(u32, &[u8]) -> bool, with_family: bool) -> usize {
    let began = Instant::now();
    let mut ended = HashSet::new();
    loop {
        let (found, unsettled) = find(wanted);
        for &(pid, ticks) in &found {
            // One that may not be looked at (it changed its user) is reached through its parent.
            let family = if with_family { Family::of(pid) } else { Family::default() };
            if alive(pid, ticks) && kill(pid, libc::SIGKILL).is_ok() {
                ended.insert((pid, ticks));
            }
            family.end();
        }
        let patience = match (found.is_empty(), unsettled) {
            (true, false) => return ended.len(),
            (true, true) => SETTLING,
            (false, _) => PATIENCE,
        };
        if began.elapsed() >= patience {
            return ended.len();
        }
        std::thread::sleep(LOOK);
    }
}

/// The living processes of this user and namespace, this one excepted, whose environment fits;
/// and whether there is one that has none yet.
fn find(wanted: &dyn Fn(u32, &[u8]) -> bool) -> (Vec<(u32, u64)>, bool) {
    let Ok(entries) = fs::read_dir("/proc") else { return (Vec::new(), false) };
    let (user, here) = (uid(), std::process::id());
    let recent = recent_ticks();
    let (mut found, mut unsettled) = (Vec::new(), false);
    for entry in entries.flatten() {
        let name = entry.file_name();
        // Most of what is in /proc is no process: looked at before it is made a string.
        if !name.as_bytes().first().is_some_and(u8::is_ascii_digit) {
            continue;
        }
        let Some(pid) = name.to_str().and_then(|n| n.parse::<u32>().ok()).filter(|pid| *pid != here) else {
            continue;
        };
        if !entry.metadata().is_ok_and(|m| m.uid() == user) {
            continue;
        }
        let Some(ticks) = start_ticks(pid) else { continue };
        let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else { continue };
        if environment.is_empty() {
            // So it is with one that has ended and was not reaped, and with the kernel's own, which executes no file.
            let young = recent.is_some_and(|recent| ticks >= recent) && alive(pid, ticks);
            unsettled |= young && fs::read_link(format!("/proc/{pid}/exe")).is_ok();
        } else if wanted(pid, &environment) && same_namespace(pid) {
            found.push((pid, ticks));
        }
    }
    (found, unsettled)
}

/// Processes that started since then are young.
fn recent_ticks() -> Option<u64> {
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let seconds: f64 = uptime.split_ascii_whitespace().next()?.parse().ok()?;
    Some(((seconds * 100.0) as u64).saturating_sub(RECENT))
}

fn value_of<'a>(pair: &'a [u8], name: &str) -> Option<&'a [u8]> {
    pair.strip_prefix(name.as_bytes())?.strip_prefix(b"=")
}

/// In another namespace the numbers in a mark mean other processes.
fn same_namespace(pid: u32) -> bool {
    static OURS: OnceLock<Option<PathBuf>> = OnceLock::new();
    let ours = OURS.get_or_init(|| fs::read_link("/proc/self/ns/pid").ok());
    match (ours, fs::read_link(format!("/proc/{pid}/ns/pid"))) {
        (Some(ours), Ok(theirs)) => *ours == theirs,
        (None, _) => true,
        (_, Err(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Child, Io, Spawn, spawn};
    use super::*;
    use std::io::{BufRead, BufReader};

    const LONG: Duration = Duration::from_secs(20);

    fn shell(script: &str) -> Spawn {
        Spawn {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            env: vec![("PATH".into(), "/usr/bin:/bin".into())],
            stdin: Io::Piped,
            stdout: Io::Piped,
            own_group: true,
            die_with_parent: true,
            marked: true,
            ..Spawn::default()
        }
    }

    /// What a line of its output says: a pid, with its start.
    fn reported(child: &Child) -> (u32, u64) {
        let mut line = String::new();
        BufReader::new(child.take_stdout().unwrap()).read_line(&mut line).unwrap();
        let pid: u32 = line.trim().parse().unwrap();
        (pid, start_ticks(pid).unwrap())
    }

    #[test]
    fn one_that_left_everything_behind_ends_with_the_child_that_crashed() {
        // Neither its parent, nor its group, nor its session leads back to the child.
        let child = spawn(shell("(setsid sh -c 'echo $$; exec sleep 1000' &) ; cat >/dev/null")).unwrap();
        let (stray, ticks) = reported(&child);
        kill(child.pid(), libc::SIGKILL).unwrap();
        child.wait();
        assert!(!alive(stray, ticks), "it is there after the end was told");
    }

    #[test]
    fn one_whose_mark_was_taken_off_is_let_go() {
        let script = format!("(env -u {MARK} setsid sh -c 'echo $$; exec sleep 1000' &) ; cat >/dev/null");
        let child = spawn(shell(&script)).unwrap();
        let (stray, ticks) = reported(&child);
        kill(child.pid(), libc::SIGKILL).unwrap();
        child.wait();
        assert!(alive(stray, ticks), "it was let go");
        kill(stray, libc::SIGKILL).unwrap();
    }

    #[test]
    fn what_another_process_marked_is_found_by_who_that_was() {
        let mut what = shell("echo $$; exec sleep 1000");
        what.marked = false;
        // A pid that cannot be: nobody else's marks can begin so.
        let theirs = u32::MAX - std::process::id();
        what.env.push((MARK.into(), format!("{theirs}.5.1").into()));
        let child = spawn(what).unwrap();
        let (pid, ticks) = reported(&child);
        assert_eq!(end_marked_by(theirs, 6), 0);
        assert!(alive(pid, ticks));
        assert_eq!(end_marked_by(theirs, 5), 1);
        assert!(child.wait_timeout(LONG).is_some());
    }

    #[test]
    fn a_session_of_its_own_spares_a_process() {
        let mut what = shell("setsid sh -c 'echo $$; exec sleep 1000' & sleep 1000 & wait");
        what.marked = false;
        let value = format!("test-{}", std::process::id());
        what.env.push(("MARKS_TEST".into(), value.clone().into()));
        let child = spawn(what).unwrap();
        let (own, ticks) = reported(&child);
        let session = super::super::sys::session(child.pid()).unwrap();
        assert!(end_in_session("MARKS_TEST", &[(value, session)]) >= 1);
        assert!(child.wait_timeout(LONG).is_some());
        assert!(alive(own, ticks));
        kill(own, libc::SIGKILL).unwrap();
    }
}
