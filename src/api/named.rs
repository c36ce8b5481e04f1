//! Whether the settings name a daemon, and where that one is. Connects to nothing.

use crate::settings::{self, Settings, Source};
use std::path::PathBuf;

/// Where a setting says that the daemon is.
pub(super) enum Named {
    /// At a unix socket, by that setting.
    Socket(&'static str, PathBuf),
    /// At an HTTP address.
    Http(String),
}

/// The setting that decides, if one does: of `daemon.socket` and `daemon.endpoint` the one
/// that was said closer to the command. A socket in a file is where that configuration's own daemon
/// listens, which is found and started like any other.
pub(super) fn where_named(settings: &Settings) -> Option<Named> {
    const FILE: u8 = 1; // a rank, below which nobody said anything
    let rank = |key: &str| {
        let said = settings.explain(key).filter(|r| !r.value.text().is_empty());
        said.map(|r| match r.source {
            Source::Default => 0,
            Source::File(..) => FILE,
            Source::Env(_) => 2,
            Source::Preset(..) => 3,
            Source::Flag(_) => 4,
            Source::Runtime => 5,
        })
    };
    let socket = rank("daemon.socket").filter(|rank| *rank > FILE);
    let endpoint = rank("daemon.endpoint");
    // A script is told both; the socket is the nearer way.
    if socket.is_some() && socket >= endpoint {
        return Some(Named::Socket("daemon.socket", settings.get(&settings::DAEMON_SOCKET).into()));
    }
    endpoint?;
    let endpoint = settings.get(&settings::DAEMON_ENDPOINT);
    Some(match endpoint.strip_prefix("unix://") {
        Some(path) => Named::Socket("daemon.endpoint", path.into()),
        None => Named::Http(endpoint),
    })
}

/// Whether the settings name a daemon whose servers are to be used instead of those
/// configured here, and perhaps on another machine.
pub fn is_elsewhere(settings: &Settings) -> bool {
    matches!(where_named(settings), Some(Named::Http(_) | Named::Socket("daemon.endpoint", _)))
}

/// Whether the settings name a daemon, so that none is looked for.
pub fn is_named(settings: &Settings) -> bool {
    where_named(settings).is_some()
}

/// Whether the settings name a daemon that is reached over HTTP.
pub fn is_far(settings: &Settings) -> bool {
    matches!(where_named(settings), Some(Named::Http(_)))
}
