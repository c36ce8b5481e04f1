//! Where configuration files may be, nearest first. Opens none of them.

use crate::paths::Dirs;
use std::path::{Path, PathBuf};

/// The names that are looked for in the working directory and each directory above it.
pub(super) const NEAR: &[&str] = &[".mcpx.json", ".mcpx/config.json", ".mcp.json"];

/// The system's own file, the farthest of all.
pub(super) const SYSTEM: &str = "/etc/mcpx/config.json";

/// Where files are, for the manual.
pub const PLACES: &[(&str, &str)] = &[
    (
        ".mcpx.json, .mcpx/config.json, .mcp.json",
        "configuration of the working directory, and of each above it",
    ),
    ("~/.config/mcpx/config.json, ~/.mcpx.json", "the user's configuration ($XDG_CONFIG_HOME)"),
    (SYSTEM, "the system's configuration"),
    (".mcpx/scripts, ~/.config/mcpx/scripts", "named scripts"),
    ("~/.local/state/mcpx", "the daemons' info files, sockets and logs ($MCPX_STATE_DIR, $XDG_STATE_HOME)"),
    (
        "~/.cache/mcpx",
        "schemas and generated clients, which can be deleted ($MCPX_CACHE_DIR, $XDG_CACHE_HOME)",
    ),
];

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::Scratch;
    use crate::util::Env;

    #[test]
    fn the_search_goes_upward_then_to_the_user_then_to_the_system() {
        let scratch = Scratch::new();
        let home = scratch.dir("home");
        let project = scratch.dir("home/a/b");
        std::os::unix::fs::symlink(&project, scratch.path("link")).unwrap();
        let env = Env::from_pairs([("HOME", &home)]);
        let dirs = Dirs::from_env(&env, 0).unwrap();
        let found = search_path(&scratch.path("link"), &dirs);
        let near: Vec<_> =
            found[..9].iter().map(|p| p.strip_prefix(&home).unwrap().to_str().unwrap()).collect();
        assert_eq!(
            near,
            [
                "a/b/.mcpx.json",
                "a/b/.mcpx/config.json",
                "a/b/.mcp.json",
                "a/.mcpx.json",
                "a/.mcpx/config.json",
                "a/.mcp.json",
                ".mcpx.json",
                ".mcpx/config.json",
                ".mcp.json",
            ]
        );
        let far: Vec<_> = found[found.len() - 2..].to_vec();
        // The home directory is on the walk: its file is not looked for again.
        assert_eq!(far, [home.join(".config/mcpx/config.json"), PathBuf::from(SYSTEM)]);
        let other = search_path(Path::new("/"), &dirs);
        assert_eq!(other.len(), 6);
        assert_eq!(other[4], home.join(".mcpx.json"));
    }
}
