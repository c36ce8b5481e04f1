//! What settings declare that can be read and cannot be used: hooks, consumers and permission
//! profiles. Knows nothing of how it is shown.

use super::cx::{Cx, World};
use crate::error::{Error, Kind};
use crate::observe::declared::{self, Run};
use crate::proc;
use crate::script::profiles;
use crate::settings::{Declared, EVENTS_CONSUMERS, HOOKS, SCRIPT_PROFILES, Settings};
use serde_json::Value;
use std::path::Path;

/// What is wrong with the value of a setting; nothing for any other setting.
pub fn in_value(key: &str, value: &Value) -> Vec<String> {
    let listeners = |all: Vec<declared::Declaration>| {
        all.into_iter()
            .filter_map(|(name, outcome)| Some(format!("{key}.{name} {}", outcome.err()?)))
            .collect()
    };
    match key {
        _ if key == HOOKS.key() => listeners(declared::hooks_in(value)),
        _ if key == EVENTS_CONSUMERS.key() => listeners(declared::consumers_in(value)),
        _ if key == SCRIPT_PROFILES.key() => {
            profiles::faults(value).iter().map(|e| e.message().to_owned()).collect()
        }
        _ => Vec::new(),
    }
}

/// The same of all settings in force, each with the file and line of its setting.
pub fn in_force(settings: &Settings) -> Vec<Error> {
    let mut out = Vec::new();
    for key in [HOOKS.key(), EVENTS_CONSUMERS.key(), SCRIPT_PROFILES.key()] {
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
