//! Makes room: what is too old goes, then the oldest until the quota is kept, and what
//! a crash has left behind. Knows nothing of settings.

use super::Artifact;
use super::store::{Limits, Store};
use crate::error::Result;
use crate::util;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::{Duration, SystemTime};

/// What belongs to nothing stays this long: it may be on its way in.
const UNSETTLED: Duration = Duration::from_secs(24 * 3600);

/// Why one went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It was older than `artifacts.ttl`.
    Expired,
    /// `artifacts.quota` had no room for it.
    Quota,
}

/// What went.
#[derive(Clone, Debug, Default)]
pub struct Swept {
    /// Which, and why, the oldest first.
    pub removed: Vec<(Artifact, Why)>,
    /// How many bytes that made free.
    pub freed: u64,
    /// How many bytes are left.
    pub left: u64,
}

impl Store {
    pub(super) fn sweep(
        &self,
        limits: &Limits,
        quota: Option<u64>,
        is_open: &dyn Fn(&str) -> bool,
    ) -> Result<Swept> {
        let all = self.list()?;
        self.sweep_debris(&all);
        let mut users: HashMap<String, usize> = HashMap::new();
        all.iter().for_each(|a| *users.entry(a.sha256.clone()).or_default() += 1);
        let mut left = self.used().unwrap_or(0);
        let mut swept = Swept::default();
        let oldest = util::now_ms().saturating_sub(u64::try_from(limits.ttl.as_millis()).unwrap_or(u64::MAX));
        for artifact in all {
            let expired = !limits.ttl.is_zero() && artifact.at < oldest;
            let full = quota.is_some_and(|quota| left > quota);
            if !expired && !full || artifact.run.as_deref().is_some_and(is_open) {
                continue;
            }
            let count = users.entry(artifact.sha256.clone()).or_insert(1);
            *count -= 1;
            let last = *count == 0;
            self.drop_one(&artifact, last)?;
            if last {
                left = left.saturating_sub(artifact.size);
                swept.freed += artifact.size;
            }
            swept.removed.push((artifact, if expired { Why::Expired } else { Why::Quota }));
        }
        swept.left = left;
        Ok(swept)
    }

    /// Removes what no artifact has, and what never became one, a day after.
    fn sweep_debris(&self, all: &[Artifact]) {
        let Some(before) = SystemTime::now().checked_sub(UNSETTLED) else { return };
        let old = |path: &std::path::Path| {
            fs::symlink_metadata(path).is_ok_and(|m| m.modified().is_ok_and(|at| at < before))
        };
        let contents: HashSet<&str> = all.iter().map(|a| a.sha256.as_str()).collect();
        let ids: HashSet<&str> = all.iter().map(|a| a.id.as_str()).collect();
        let none = HashSet::new();
        for (dir, known) in [("incoming", &none), ("blobs", &contents), ("files", &ids)] {
            for entry in fs::read_dir(self.dir(dir)).into_iter().flatten().flatten() {
                let (name, path) = (entry.file_name(), entry.path());
                if name.to_str().is_some_and(|n| known.contains(n)) || !old(&path) {
                    continue;
                }
                let _ = if dir == "files" { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            }
        }
    }
}
