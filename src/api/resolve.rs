//! Which daemon serves a directory: worked out from files alone, the same by a
//! command and by any daemon. Changes no directory and asks nobody.

use super::info;
use crate::config::{self, LoadOptions};
use crate::error::{Error, Kind, Result};
use crate::paths::Dirs;
use crate::proc;
use crate::util::Env;
use serde::Serialize;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Resolved {
    /// The unix socket of the daemon that serves it, or where it would be.
    pub socket: PathBuf,
    /// That daemon's HTTP endpoint, empty when there is none.
    pub endpoint: String,
    /// The nearest configuration file, or an empty path.
    pub config_path: PathBuf,
    /// The daemon's key.
    pub config_hash: String,
    /// That daemon is alive.
    pub running: bool,
    /// Every configuration file that contributes, nearest first.
    pub sources: Vec<PathBuf>,
}

/// Which daemon serves a directory (absolute; its links are resolved first).
///
/// # Errors
/// `Usage` when it is not absolute, not a directory or not readable, `NotFound` when
/// there is none, and what is wrong with its configuration.
pub fn resolve(dir: &Path, env: &Env, dirs: &Dirs) -> Result<Resolved> {
    let shown = dir.display();
    if !dir.is_absolute() {
        return Err(Error::new(Kind::Usage, format!("resolving \"{shown}\": it is not an absolute path")));
    }
    let real = dir.canonicalize().map_err(|e| {
        let kind = if e.kind() == ErrorKind::NotFound { Kind::NotFound } else { Kind::Usage };
        Error::new(kind, format!("resolving {shown}: {e}"))
    })?;
    if !real.is_dir() {
        return Err(Error::new(Kind::Usage, format!("resolving {shown}: it is not a directory")));
    }
    // That whoever answers was itself told of one file says nothing of this directory.
    let mut env = env.clone();
    env.remove("MCPX_CONFIG");
    let config =
        config::load(&LoadOptions { explicit: None, dir: &real, env: &env, dirs, uid: proc::uid() })?;
    let found = info::read(&info::info_path(dirs, &config.key))?.filter(|i| info::liveness(dirs, i).0);
    let running = found.is_some();
    // A long state path moves the socket: only the info file knows where it is.
    let (socket, endpoint) = match found {
        Some(info) => (info.socket, info.endpoint),
        None => (info::configured_socket(dirs, &config), String::new()),
    };
    Ok(Resolved {
        socket,
        endpoint,
        config_path: config.path().unwrap_or(Path::new("")).to_owned(),
        config_hash: config.key,
        running,
        sources: config.sources.into_iter().map(|s| s.path).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::scratch::Scratch;
    use crate::api::wire::DaemonInfo;
    use crate::util::write_atomic;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_lead_to_the_same_daemon_and_the_info_file_names_the_socket() {
        let dir = Scratch::new("resolve");
        let env = Env::from_pairs([
            ("HOME", dir.path("home")),
            ("MCPX_STATE_DIR", dir.path("state")),
            ("MCPX_CONFIG", dir.path("not-this.json")),
        ]);
        let dirs = Dirs::from_env(&env, proc::uid()).unwrap();
        for made in ["home", "state", "project/sub"] {
            fs::create_dir_all(dir.path(made)).unwrap();
        }
        fs::write(dir.path("project/.mcpx.json"), "{}").unwrap();
        symlink(dir.path("project/sub"), dir.path("link")).unwrap();
        let direct = resolve(&dir.path("project"), &env, &dirs).unwrap();
        assert!(!direct.running && direct.endpoint.is_empty());
        assert_eq!(direct.config_path, dir.path("project/.mcpx.json"));
        assert_eq!(direct.socket, info::socket_path(&dirs, &direct.config_hash));
        assert_eq!(resolve(&dir.path("link"), &env, &dirs).unwrap(), direct);
        let pid = std::process::id();
        let running = DaemonInfo {
            key: direct.config_hash.clone(),
            pid,
            start_ticks: proc::start_ticks(pid).unwrap(),
            socket: dir.path("elsewhere.sock"),
            endpoint: "http://127.0.0.1:1".into(),
            ..Default::default()
        };
        let path = info::info_path(&dirs, &direct.config_hash);
        write_atomic(&path, &serde_json::to_vec(&running).unwrap(), 0o600, false).unwrap();
        let found = resolve(&dir.path("link"), &env, &dirs).unwrap();
        assert!(found.running);
        assert_eq!(found.socket, running.socket);
        for (bad, kind) in [
            (PathBuf::from("relative"), Kind::Usage),
            (dir.path("missing"), Kind::NotFound),
            (dir.path("project/.mcpx.json"), Kind::Usage),
        ] {
            assert_eq!(resolve(&bad, &env, &dirs).unwrap_err().kind(), kind, "{bad:?}");
        }
    }
}
