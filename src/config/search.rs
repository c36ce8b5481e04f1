//! Where configuration files may be, nearest first. Opens none of them.

use crate::paths::Dirs;
use std::path::{Path, PathBuf};

/// The names that are looked for in the working directory and each directory above it.
const NEAR: &[&str] = &[".mcpx.json", ".mcpx/config.json", ".mcp.json"];

/// The system's own file, the farthest of all.
const SYSTEM: &str = "/etc/mcpx/config.json";

/// Every path where a configuration file is looked for, the nearest first:
/// upward from `dir` (its links resolved), then the user's, then the system's.
/// None is in the list twice.
pub fn search_path(dir: &Path, dirs: &Dirs) -> Vec<PathBuf> {
    let real = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let mut out: Vec<PathBuf> = real.ancestors().flat_map(|d| NEAR.iter().map(|n| d.join(n))).collect();
    let home = dirs.home.as_ref().map(|h| h.canonicalize().unwrap_or_else(|_| h.clone()));
    let user = dirs.config.as_ref().map(|c| c.join("config.json"));
    let far = [user, home.map(|h| h.join(".mcpx.json")), Some(SYSTEM.into())];
    for path in far.into_iter().flatten() {
        if !out.contains(&path) {
            out.push(path);
        }
    }
    out
}
