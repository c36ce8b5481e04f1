//! Knows which process groups of ours are running, tells whoever keeps a record
//! of them, and ends those that a dead process left behind. A parent-death signal
//! reaches children, not grandchildren: these are found by their group.

use super::sys::{kill_group, start_ticks};
use serde::{Deserialize, Serialize};
use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A process group that a child of ours leads, or led.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// The leader's pid, which is the group's number.
    pub leader: u32,
    /// When the leader started, in ticks since boot.
    pub start_ticks: u64,
}

type Keeper = Box<dyn Fn(&[Group]) + Send>;

/// The running groups; only kept once somebody keeps a record.
static RUNNING: Mutex<(Vec<Group>, Option<Keeper>)> = Mutex::new((Vec::new(), None));

fn running() -> MutexGuard<'static, (Vec<Group>, Option<Keeper>)> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on `keep` is called with all running groups whenever one starts or
/// has ended, before anybody else learns of it.
pub fn keep_record(keep: impl Fn(&[Group]) + Send + 'static) {
    running().1 = Some(Box::new(keep));
}

pub(super) fn started(leader: u32) {
    let mut running = running();
    let (groups, Some(keep)) = &mut *running else { return };
    if let Some(start_ticks) = start_ticks(leader) {
        groups.push(Group { leader, start_ticks });
        keep(groups);
    }
}

pub(super) fn ended(leader: u32) {
    let mut running = running();
    let (groups, Some(keep)) = &mut *running else { return };
    let before = groups.len();
    groups.retain(|g| g.leader != leader);
    if groups.len() != before {
        keep(groups);
    }
}

/// Kills what is left of groups whose parent has died, and returns how many
/// there were. A number that belongs to somebody else by now is left alone.
pub fn sweep(left: &[Group]) -> usize {
    if left.is_empty() {
        return 0;
    }
    let members = members();
    let left_over = left.iter().filter(|group| {
        // A process with the leader's pid and another start is somebody else's leader.
        let reused = start_ticks(group.leader).is_some_and(|ticks| ticks != group.start_ticks);
        // No member of a group is older than its leader.
        !reused && members.iter().any(|(g, ticks)| *g == group.leader && *ticks >= group.start_ticks)
    });
    left_over.filter(|group| kill_group(group.leader, libc::SIGKILL).is_ok()).count()
}

/// The group and the start time of every process that is not a zombie.
fn members() -> Vec<(u32, u64)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(group_of).collect()
}

fn group_of(pid: u32) -> Option<(u32, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may hold brackets and blanks itself; the state comes after it.
    let mut fields = text.get(text.rfind(')')? + 2..)?.split_ascii_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    let group = fields.nth(1)?.parse().ok()?;
    // Field 22 of the line; the group is field 5.
    Some((group, fields.nth(16)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::super::{Io, Spawn, alive, spawn};
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::time::{Duration, Instant};

    #[test]
    fn groups_are_known_while_they_run() {
        let (send, receive) = std::sync::mpsc::channel();
        keep_record(move |groups| {
            let _ = send.send(groups.to_vec());
        });
        let child = spawn(Spawn {
            program: "/bin/cat".into(),
            stdin: Io::Piped,
            own_group: true,
            die_with_parent: true,
            ..Spawn::default()
        })
        .unwrap();
        // Other tests of this process start and end children as well.
        let record = || receive.recv_timeout(Duration::from_secs(20)).unwrap();
        let ours = |groups: &[Group]| groups.iter().find(|g| g.leader == child.pid()).copied();
        let group = loop {
            if let Some(group) = ours(&record()) {
                break group;
            }
        };
        assert_eq!(Some(group.start_ticks), start_ticks(child.pid()));
        drop(child.take_stdin());
        while ours(&record()).is_some() {}
        running().1 = None;
    }

    #[test]
    fn what_a_dead_leader_left_is_killed_and_nobody_else() {
        // The shell hands over a group of its own whose leader ends at once.
        let child = spawn(Spawn {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), "setsid sh -c 'sleep 1000 & echo $$ $!' & wait; cat".into()],
            env: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
            stdin: Io::Piped,
            stdout: Io::Piped,
            own_group: true,
            die_with_parent: true,
            ..Spawn::default()
        })
        .unwrap();
        let mut line = String::new();
        BufReader::new(child.take_stdout().unwrap()).read_line(&mut line).unwrap();
        let pids: Vec<u32> = line.split_whitespace().map(|w| w.parse().unwrap()).collect();
        let (leader, member) = (pids[0], pids[1]);
        let ticks = start_ticks(member).unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        while start_ticks(leader).is_some() {
            assert!(Instant::now() < deadline, "the leader stays");
            std::thread::yield_now();
        }
        assert_eq!(sweep(&[]), 0);
        assert_eq!(sweep(&[Group { leader, start_ticks: ticks + 1 }]), 0, "older than that leader");
        let here = std::process::id();
        let reused = Group { leader: here, start_ticks: start_ticks(here).unwrap() - 1 };
        assert_eq!(sweep(&[reused]), 0, "the number is somebody else's now");
        assert!(alive(member, ticks));
        assert_eq!(sweep(&[Group { leader, start_ticks: ticks.saturating_sub(100) }]), 1);
        while alive(member, ticks) {
            assert!(Instant::now() < deadline, "the member stays");
            std::thread::yield_now();
        }
        child.stop(Duration::from_secs(5), Duration::from_secs(5));
    }
}
