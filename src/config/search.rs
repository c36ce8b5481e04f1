//! Where configuration files may be, nearest first. Opens none of them.

use crate::error::{Error, Kind, Result};
use crate::paths::Dirs;
use std::path::{Path, PathBuf};

/// The names that are looked for in the working directory and each directory above it.
pub(super) const NEAR: &[&str] = &[".mcpx.json", ".mcpx/config.json", ".mcp.json"];

/// The system's own file, the farthest of all.
pub(super) const SYSTEM: &str = "/etc/mcpx/config.json";

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

/// The project's file for changes: the nearest of mcpx's own at or above `dir`
/// that is not the user's. Where there is none it is to be made: beside the
/// nearest `.mcp.json`, else in `dir`. Other hosts' `.mcp.json` is left to them.
pub fn project_file(dir: &Path, dirs: &Dirs) -> PathBuf {
    let real = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let home = dirs.home.as_ref().map(|h| h.canonicalize().unwrap_or_else(|_| h.clone()));
    let above = || real.ancestors().filter(|d| home.as_deref() != Some(*d) || *d == real);
    let own = above().flat_map(|d| NEAR[..2].iter().map(move |n| d.join(n))).find(|f| f.is_file());
    let beside = || above().find(|d| d.join(NEAR[2]).is_file());
    own.unwrap_or_else(|| beside().unwrap_or(&real).join(NEAR[0]))
}

/// The user's file for changes: the one that is there, else the one in the
/// configuration directory, to be made.
///
/// # Errors
/// `Unavailable` when there is no home directory to look in.
pub fn user_file(dirs: &Dirs) -> Result<PathBuf> {
    let first = dirs.config.as_ref().map(|c| c.join("config.json"));
    let second = dirs.home.as_ref().map(|h| h.join(NEAR[0])).filter(|f| f.is_file());
    match (first, second) {
        (Some(first), Some(second)) => Ok(if first.is_file() { first } else { second }),
        (Some(file), None) | (None, Some(file)) => Ok(file),
        (None, None) => {
            let message = "finding the user's configuration file: neither XDG_CONFIG_HOME nor HOME is set";
            Err(Error::new(Kind::Unavailable, message).hint("set HOME, or name a file with --config"))
        }
    }
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

    #[test]
    fn a_change_goes_to_the_nearest_own_file_and_never_to_another_hosts() {
        let scratch = Scratch::new();
        let env = Env::from_pairs([("HOME", scratch.dir("home"))]);
        let dirs = Dirs::from_env(&env, 0).unwrap();
        let deep = scratch.dir("home/p/q/r");
        let project = || project_file(&deep, &dirs);
        scratch.file("home/.mcpx.json", "{}");
        assert_eq!(project(), deep.join(".mcpx.json"), "the user's file is not the project's");
        scratch.file("home/p/.mcp.json", "{}");
        assert_eq!(project(), scratch.path("home/p/.mcpx.json"));
        let own = scratch.file("home/p/q/.mcpx/config.json", "{}");
        assert_eq!(project(), own);
        let own = scratch.file("home/p/q/.mcpx.json", "{}");
        assert_eq!(project(), own);
        assert_eq!(user_file(&dirs).unwrap(), scratch.path("home/.mcpx.json"));
        let usual = scratch.file("home/.config/mcpx/config.json", "{}");
        assert_eq!(user_file(&dirs).unwrap(), usual);
        assert_eq!(project_file(&scratch.path("home"), &dirs), scratch.path("home/.mcpx.json"));
        assert!(user_file(&Dirs { home: None, config: None, ..dirs }).is_err());
    }
}
