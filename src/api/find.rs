//! Finds the daemon of a configuration, or has one started. Knows nothing of how
//! one is started, nor of what a daemon does.

use super::client::{Client, dial};
use super::info;
use super::named::{Named, where_named};
use super::remote::{Access, Remote};
use super::start::{start, start_lock};
use super::wire::DaemonInfo;
use crate::config::Config;
use crate::error::{Error, Kind, Result};
use crate::paths::{self, Dirs};
use crate::proc;
use crate::settings::{self, FlagValue, Secret, Settings};
use crate::util::Env;
use serde_json::Value;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// What is needed to find a daemon, or to start one.
pub struct Boot<'a> {
    /// The configuration as this command read it.
    pub config: &'a Config,
    /// The settings of this command.
    pub settings: &'a Settings,
    /// Where state is kept.
    pub dirs: &'a Dirs,
    /// The environment that a daemon started here gets.
    pub env: &'a Env,
    /// The mcpx binary.
    pub exe: PathBuf,
    /// The directory that the configuration was searched from, absolute.
    pub dir: &'a Path,
    /// The flags of this command; those of the daemon's go to a daemon that is started here.
    pub flags: &'a [FlagValue],
}

/// Every daemon that left an info file: what it says, whether the daemon is
/// alive, and how that is known.
pub fn daemons(dirs: &Dirs) -> Vec<(DaemonInfo, bool, String)> {
    info::list(dirs)
        .into_iter()
        // Under the names that it had before an edit a daemon is not another one.
        .filter(|(path, found)| *path == info::info_path(dirs, &found.key))
        .map(|(_, found)| {
            let (live, why) = info::liveness(dirs, &found);
            (found, live, why)
        })
        .collect()
}

impl Client {
    /// The daemon that serves the configuration, if it runs. One that serves the
    /// same files in an older state is asked to read them again.
    pub fn find(boot: &Boot) -> Result<Option<Client>> {
        if let Some(named) = named(boot)? {
            return Ok(Some(named));
        }
        if let Some(client) = by_key(boot, &boot.config.key)? {
            return Ok(Some(client));
        }
        by_sources(boot)
    }

    /// A running daemon over exactly these files, as it is: for when they can't be read.
    pub fn find_over(dirs: &Dirs, sources: &[PathBuf]) -> Option<Client> {
        let wanted = sources.iter().map(PathBuf::as_path).collect();
        over_sources(dirs, wanted).into_iter().find_map(|found| Client::connect(found).ok())
    }

    /// As [`Client::find`], and starts a daemon when there is none. `progress` is told what is being waited for.
    pub fn find_or_start(boot: &Boot, progress: &dyn Fn(&str)) -> Result<Client> {
        if let Some(client) = Client::find(boot)? {
            return Ok(client);
        }
        if !boot.settings.get(&settings::DAEMON_AUTOSTART) {
            return Err(Error::new(Kind::Unavailable, "no daemon is running for this configuration")
                .hint("start one with `mcpx daemon`, or set daemon.autostart to true"));
        }
        let timeout = boot.settings.get(&settings::AUTOSTART_TIMEOUT);
        paths::ensure_private(&boot.dirs.state, proc::uid())?;
        let lock = start_lock(boot, timeout, progress)?;
        // Whoever held the lock before may have started it.
        let outcome = match Client::find(boot) {
            Ok(Some(client)) => Ok(client),
            Ok(None) => start(boot, timeout, progress),
            Err(e) => Err(e),
        };
        lock.remove();
        outcome
    }
}

/// The daemon that a setting names, which is the only one then.
fn named(boot: &Boot) -> Result<Option<Client>> {
    let (setting, path) = match where_named(boot.settings) {
        None => return Ok(None),
        Some(Named::Http(endpoint)) => return far(boot, &endpoint).map(Some),
        Some(Named::Socket(setting, path)) => (setting, path),
    };
    match dial(&path) {
        Ok(stream) => {
            Ok(Some(Client::over(stream, DaemonInfo { schema: 1, socket: path, ..Default::default() })))
        }
        Err(e) => {
            Err(Error::new(Kind::Unavailable, format!("connecting to the daemon at {}: {e}", path.display()))
                .hint(format!(
                    "{setting} names it, so no other is tried; unset it to use this directory's own"
                )))
        }
    }
}

/// A daemon at an HTTP address.
fn far(boot: &Boot, endpoint: &str) -> Result<Client> {
    Remote::new(Access {
        endpoint,
        token: token_for(boot, endpoint),
        env: boot.env,
        ca: &boot.settings.get(&settings::TRANSPORT_CA_FILE),
        dial: boot.settings.get(&settings::DAEMON_CONNECT_TIMEOUT),
    })
    .map(Client::remote)
}

/// The token for an address: what is configured, else that of a daemon of ours which listens there.
fn token_for(boot: &Boot, endpoint: &str) -> Secret {
    let of_run = |name: &str| boot.env.text("MCPX_RUN").and(boot.env.text(name));
    let configured = boot.settings.get(&settings::TRANSPORT_BEARER_TOKEN);
    // The token of the run that we are part of is for that run's daemon alone.
    let of_another = of_run("MCPX_TRANSPORT_BEARER_TOKEN") == Some(configured.reveal())
        && of_run("MCPX_ENDPOINT") != Some(endpoint);
    if !configured.is_empty() && !of_another {
        return configured;
    }
    let same = |found: &DaemonInfo| found.endpoint == endpoint.trim_end_matches('/');
    let ours = info::list(boot.dirs).into_iter().map(|(_, found)| found).find(same);
    ours.map(|found| Secret::new(found.token)).unwrap_or_default()
}

/// The daemon with that key. Connecting is the check: nothing is asked.
pub(super) fn by_key(boot: &Boot, key: &str) -> Result<Option<Client>> {
    let path = info::info_path(boot.dirs, key);
    let mut last = None;
    // Twice: between reading the file and connecting the daemon may have moved.
    for _ in 0..2 {
        let Some(found) = info::read(&path)? else { return Ok(None) };
        match dial(&found.socket) {
            // It has followed an edit since it had this key. Our configuration may be older than
            // that edit, or undo it: only reading again tells.
            Ok(stream) if found.key != key => return followed(boot, Client::over(stream, found)),
            Ok(stream) => return Ok(Some(Client::over(stream, found))),
            Err(e) if e.kind() == ErrorKind::PermissionDenied => {
                return Err(Error::new(
                    Kind::Refused,
                    format!("connecting to the daemon at {}: {e}", found.socket.display()),
                ));
            }
            Err(_) if last.as_ref() == Some(&found.socket) => break,
            Err(_) => last = Some(found.socket),
        }
    }
    Ok(None)
}

/// What the live daemons over exactly these files say of themselves, the newest first.
fn over_sources(dirs: &Dirs, mut wanted: Vec<&Path>) -> Vec<DaemonInfo> {
    wanted.sort_unstable();
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut candidates: Vec<DaemonInfo> = info::list(dirs)
        .into_iter()
        .map(|(_, found)| found)
        .filter(|found| {
            let mut sources: Vec<&Path> = found.sources.iter().map(PathBuf::as_path).collect();
            sources.sort_unstable();
            sources == wanted && info::liveness(dirs, found).0
        })
        .collect();
    candidates.sort_by_key(|found| std::cmp::Reverse(found.started_at));
    candidates
}

/// A live daemon over the same set of files, asked to read them again.
fn by_sources(boot: &Boot) -> Result<Option<Client>> {
    let wanted: Vec<&Path> = boot.config.sources.iter().map(|s| s.path.as_path()).collect();
    let candidates = over_sources(boot.dirs, wanted);
    for found in candidates {
        let Ok(client) = Client::connect(found) else { continue };
        if let Some(client) = followed(boot, client)? {
            return Ok(Some(client));
        }
    }
    Ok(None)
}

/// Has a daemon read its files again, and returns it under the names that it has
/// then; none when it does not answer.
fn followed(boot: &Boot, client: Client) -> Result<Option<Client>> {
    client.set_timeout(Some(boot.settings.get(&settings::AUTOSTART_TIMEOUT)));
    let Ok(reloaded) = client.json("POST", "/v1/reload", None) else { return Ok(None) };
    client.set_timeout(None);
    // It has read files at least as new as ours, so whatever its key is now, it is the
    // one: insisting on ours could start a second daemon in a race with an edit.
    let key = reloaded.get("key").and_then(Value::as_str).unwrap_or_default();
    let now = info::read(&info::info_path(boot.dirs, key))?.filter(|now| now.pid == client.info().pid);
    if let Some(now) = now
        && let Ok(client) = Client::connect(now)
    {
        return Ok(Some(client));
    }
    Ok(Some(client))
}
