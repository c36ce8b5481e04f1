//! Which file a command changes when it is told to change the project's or the
//! user's configuration. Opens none of them.

use super::search::{NEAR, search_path};
use crate::error::{Error, Kind, Result};
use crate::paths::Dirs;
use crate::util::Env;
use std::path::{Path, PathBuf};

/// The project's file: the one that `MCPX_CONFIG` names, else the nearest of
/// mcpx's own that exists in `dir` or above it (but not the user's), else `.mcpx.json` in `dir`.
pub fn project_file(dir: &Path, env: &Env, dirs: &Dirs) -> PathBuf {
    if let Some(named) = env.get("MCPX_CONFIG").filter(|v| !v.is_empty()) {
        return dir.join(named);
    }
    let real = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let home = dirs.home.as_ref().map(|h| h.canonicalize().unwrap_or_else(|_| h.clone()));
    let walk = search_path(&real, dirs).into_iter().take(real.ancestors().count() * NEAR.len());
    let users = |path: &Path| {
        // What is in the home directory itself is the user's, unless one stands right there.
        home.as_deref().is_some_and(|h| {
            real != h && (path.parent() == Some(h) || path.parent() == Some(&h.join(".mcpx")))
        })
    };
    let foreign = |path: &Path| path.file_name().is_some_and(|n| n == ".mcp.json");
    let found = walk.filter(|path| !users(path) && !foreign(path)).find(|path| path.exists());
    found.unwrap_or_else(|| real.join(NEAR[0]))
}

/// The user's file: of those that are looked for, the first that exists, else `config.json` in the user's directory.
///
/// # Errors
/// `Unavailable` when there is no home directory.
pub fn user_file(dirs: &Dirs) -> Result<PathBuf> {
    let own = dirs.config.as_ref().map(|c| c.join("config.json"));
    let home = dirs.home.as_ref().map(|h| h.join(".mcpx.json"));
    let found = own.iter().chain(&home).find(|path| path.exists()).cloned();
    found.or(own).ok_or_else(|| {
        Error::new(Kind::Unavailable, "finding the user's configuration file: HOME is not set")
            .hint("set HOME, or name the file with --config")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::Scratch;

    #[test]
    fn the_nearest_own_file_is_the_projects_and_the_homes_is_the_users() {
        let scratch = Scratch::new();
        let home = scratch.dir("home");
        let deep = scratch.dir("home/a/b");
        let mut env = Env::from_pairs([("HOME", &home)]);
        let dirs = Dirs::from_env(&env, 0).unwrap();
        let project = |dir: &Path, env: &Env| project_file(dir, env, &dirs);
        let user = |dirs| user_file(dirs).unwrap();
        assert_eq!(user(&dirs), home.join(".config/mcpx/config.json"));
        assert_eq!(project(&deep, &env), deep.join(".mcpx.json"));
        scratch.file("home/.mcpx.json", "{}");
        scratch.file("home/.mcpx/config.json", "{}");
        scratch.file("home/a/b/.mcp.json", "{}");
        assert_eq!(user(&dirs), home.join(".mcpx.json"));
        assert_eq!(project(&deep, &env), deep.join(".mcpx.json"));
        assert_eq!(project(&home, &env), home.join(".mcpx.json"));
        scratch.file("home/a/.mcpx/config.json", "{}");
        scratch.file("home/.config/mcpx/config.json", "{}");
        assert_eq!(project(&deep, &env), home.join("a/.mcpx/config.json"));
        assert_eq!(user(&dirs), home.join(".config/mcpx/config.json"));
        env.set("MCPX_CONFIG", "x.json");
        assert_eq!(project(&deep, &env), deep.join("x.json"));
    }
}
