//! What of the settings in force cannot be used, with its place, and the programs of hooks and
//! consumers that are not there. Knows nothing of how it is shown.

use super::cx::{Cx, World};
use crate::daemon::unusable;
use crate::error::{Error, Kind};
use crate::observe::declared::{self, Run};
use crate::proc;
use crate::settings::{Declared, EVENTS_CONSUMERS, HOOKS, Settings};
use std::path::Path;

pub use crate::daemon::unusable::in_value;

/// What can be read and not be used of all settings in force, each with the file and line of its setting.
pub fn in_force(settings: &Settings) -> Vec<Error> {
    let mut out = Vec::new();
    for key in unusable::KEYS.map(Declared::key) {
        let Ok(row) = settings.row(key) else { continue };
        let source = row["source"].as_str().unwrap_or_default();
        out.extend(
            in_value(key, &row["value"])
                .into_iter()
                .map(|what| Error::new(Kind::Config, format!("{source}: {what}"))),
        );
    }
    out
}

/// Programs and scripts of hooks and consumers that are not there: what declares it, and why it cannot start.
pub fn missing(cx: &Cx, world: &World) -> Vec<(String, String)> {
    let mut out = Vec::new();
    let all = [
        (HOOKS.key(), declared::hooks(&world.settings)),
        (EVENTS_CONSUMERS.key(), declared::consumers(&world.settings)),
    ];
    // The daemon starts them in the directory of the nearest configuration.
    let base = world.config.layers.last().map_or(world.cwd.as_path(), |layer| layer.base());
    for (key, declared) in all {
        for (name, listener) in declared {
            let Ok(listener) = listener else { continue };
            let why = match &listener.run {
                Run::Words(words) => words.first().and_then(|program| {
                    proc::find_program(program.as_ref(), &cx.env, base).err().map(|e| e.message().to_owned())
                }),
                // A name without a place is looked for where named scripts are.
                Run::Script(script) if script.contains('/') && !base.join(Path::new(script)).exists() => {
                    Some(format!("there is no script {}", base.join(script).display()))
                }
                Run::Script(_) | Run::Shell(_) => None,
            };
            out.extend(why.map(|why| (format!("{key}.{name}"), why)));
        }
    }
    out
}
