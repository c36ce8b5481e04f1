//! The record of a daemon's process groups, which outlives a daemon that is
//! killed: the next one to start ends what was left. Knows nothing of servers.

use crate::log;
use crate::paths::Dirs;
use crate::proc::{self, Group};
use crate::util;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// Removes the record when dropped.
pub struct Record(PathBuf);

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Content {
    pid: u32,
    start_ticks: u64,
    groups: Vec<Group>,
}

/// Keeps a record of this process's groups from now on.
pub fn keep(dirs: &Dirs) -> Record {
    let pid = std::process::id();
    let start_ticks = proc::start_ticks(pid).unwrap_or(0);
    let path = dirs.state.join(format!("groups-{pid}.json"));
    let record = Record(path.clone());
    proc::keep_record(move |groups| write(&path, pid, start_ticks, groups));
    record
}

fn write(path: &Path, pid: u32, start_ticks: u64, groups: &[Group]) {
    if groups.is_empty() {
        let _ = fs::remove_file(path);
        return;
    }
    let content = Content { pid, start_ticks, groups: groups.to_vec() };
    let text = serde_json::to_vec(&content).unwrap_or_default();
    // Without the record only a daemon that is killed leaves something behind.
    if let Err(e) = util::write_atomic(path, &text, 0o600, false) {
        log::debug(format_args!("writing {}: {e}", path.display()));
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
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
        let content: Option<Content> =
            fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok());
        if let Some(content) = content {
            if proc::alive(content.pid, content.start_ticks) {
                continue;
            }
            let swept = proc::sweep(&content.groups);
            if swept > 0 {
                log::warn(format_args!("ended {swept} process groups that daemon {} left", content.pid));
            }
        }
        let _ = fs::remove_file(&path);
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
        write(&living, here, 1, &[]);
        assert!(!living.exists());
    }
}
