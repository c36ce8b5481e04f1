//! The processes below a child, those included that have left its group: a
//! browser leads a group of its own, and would outlive the server that started it.
//! Knows nothing of who the child is.

use super::sys::{alive, kill, start_ticks};
use std::collections::HashSet;
use std::fs;

/// The descendants of a process at one moment.
#[derive(Debug, Default)]
pub struct Family(Vec<(u32, u64)>);

impl Family {
    /// All descendants of a process that is still there. On a kernel that does
    /// not list children it is empty, and groups are all there is.
    pub(super) fn of(pid: u32) -> Family {
        let mut seen = HashSet::from([pid]);
        let mut members = Vec::new();
        let mut parents = vec![pid];
        while let Some(parent) = parents.pop() {
            for child in children(parent) {
                if seen.insert(child)
                    && let Some(ticks) = start_ticks(child)
                {
                    members.push((child, ticks));
                    parents.push(child);
                }
            }
        }
        Family(members)
    }

    /// Kills those that are still running, now that their ancestor has ended.
    pub fn end(self) {
        for (pid, ticks) in self.0 {
            if alive(pid, ticks) {
                let _ = kill(pid, libc::SIGKILL);
            }
        }
    }
}

/// The children of every thread of a process.
fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists = threads.flatten().filter_map(|t| fs::read_to_string(t.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_ascii_whitespace().filter_map(|c| c.parse().ok()).collect::<Vec<u32>>())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Io, Spawn, spawn};
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::time::{Duration, Instant};

    #[test]
    fn one_that_left_the_group_ends_with_its_ancestor() {
        let script = "setsid sh -c 'echo $$; exec sleep 1000' & cat >/dev/null";
        let child = spawn(Spawn {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            env: vec![("PATH".into(), "/usr/bin:/bin".into())],
            stdin: Io::Piped,
            stdout: Io::Piped,
            own_group: true,
            die_with_parent: true,
            ..Spawn::default()
        })
        .unwrap();
        let mut line = String::new();
        BufReader::new(child.take_stdout().unwrap()).read_line(&mut line).unwrap();
        let stray: u32 = line.trim().parse().unwrap();
        let ticks = start_ticks(stray).unwrap();
        child.stop(Duration::from_secs(20), Duration::ZERO);
        let deadline = Instant::now() + Duration::from_secs(20);
        while alive(stray, ticks) {
            assert!(Instant::now() < deadline, "it outlived the server that started it");
            std::thread::yield_now();
        }
    }
}
