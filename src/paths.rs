//! Where mcpx keeps things: the state and cache directories, and the user's
//! home and configuration directories. Only names; nothing is created here,
//! except by [`ensure_private`].

use crate::error::{Error, Kind, Result};
use crate::util::Env;
use std::path::{Path, PathBuf};

/// The directories of one user, from an environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dirs {
    /// The home directory, when there is one.
    pub home: Option<PathBuf>,
    /// `$XDG_CONFIG_HOME/mcpx`, else `~/.config/mcpx`.
    pub config: Option<PathBuf>,
    /// `MCPX_STATE_DIR`, else `$XDG_STATE_HOME/mcpx`, else `~/.local/state/mcpx`.
    pub state: PathBuf,
    /// `MCPX_CACHE_DIR`, else `$XDG_CACHE_HOME/mcpx`, else `~/.cache/mcpx`.
    pub cache: PathBuf,
    /// Where a socket goes when the state directory's path is too long for one:
    /// `$XDG_RUNTIME_DIR/mcpx`, else `$TMPDIR/mcpx-<uid>`.
    pub runtime: PathBuf,
}

impl Dirs {
    /// Reads the directories from an environment; relative values of the XDG variables are ignored, as their specification says.
    pub fn from_env(env: &Env, uid: u32) -> Result<Dirs> {
        let absolute = |name: &str| env.get(name).map(PathBuf::from).filter(|p| p.is_absolute());
        let home = absolute("HOME");
        let tmp = absolute("TMPDIR").unwrap_or_else(|| PathBuf::from("/tmp"));
        let pick = |own: &str, xdg: &str, under: &str| {
            env.get(own)
                .filter(|v| !v.is_empty())
                .map(PathBuf::from)
                .or_else(|| absolute(xdg).map(|p| p.join("mcpx")))
                .or_else(|| home.as_ref().map(|h| h.join(under).join("mcpx")))
        };
        let missing = |what: &str, var: &str| {
            Error::new(
                Kind::Unavailable,
                format!("finding the {what} directory: neither {var} nor HOME is set"),
            )
            .hint(format!("set {var} to a directory that mcpx may write to"))
        };
        let state = pick("MCPX_STATE_DIR", "XDG_STATE_HOME", ".local/state")
            .ok_or_else(|| missing("state", "MCPX_STATE_DIR"))?;
        let cache = pick("MCPX_CACHE_DIR", "XDG_CACHE_HOME", ".cache")
            .ok_or_else(|| missing("cache", "MCPX_CACHE_DIR"))?;
        let config = absolute("XDG_CONFIG_HOME")
            .or_else(|| home.as_ref().map(|h| h.join(".config")))
            .map(|p| p.join("mcpx"));
        let runtime =
            absolute("XDG_RUNTIME_DIR").map_or_else(|| tmp.join(format!("mcpx-{uid}")), |p| p.join("mcpx"));
        Ok(Dirs { home, config, state, cache, runtime })
    }
}

/// Creates a directory of mcpx's own, and its parents, with mode 0700; one that is there stays as it is.
pub fn make_private(dir: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Creates a directory (and its parents) with mode 0700, and refuses one that is a link, not ours, or open to others.
pub fn ensure_private(dir: &Path, uid: u32) -> Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let fail = |what: String| {
        Error::new(Kind::Unavailable, format!("preparing the directory {}: {what}", dir.display()))
            .hint("set MCPX_STATE_DIR and MCPX_CACHE_DIR to directories that mcpx may write to")
    };
    make_private(dir).map_err(|e| fail(e.to_string()))?;
    let meta = std::fs::symlink_metadata(dir).map_err(|e| fail(e.to_string()))?;
    let real = if meta.file_type().is_symlink() {
        std::fs::metadata(dir).map_err(|e| fail(e.to_string()))?
    } else {
        meta
    };
    if real.uid() != uid {
        return Err(Error::new(
            Kind::Refused,
            format!(
                "the directory {} belongs to user {}, not to you (user {uid})",
                dir.display(),
                real.uid()
            ),
        )
        .hint("set MCPX_STATE_DIR and MCPX_CACHE_DIR to directories of your own"));
    }
    if real.mode() & 0o077 != 0 {
        std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o700))
            .map_err(|e| fail(format!("closing it to others: {e}")))?;
    }
    Ok(())
}
