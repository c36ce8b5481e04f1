//! What settings declare that can be read and cannot be used: hooks, consumers and permission
//! profiles. Knows nothing of where a value comes from.

use crate::error::{Error, Kind, Result};
use crate::observe::declared;
use crate::script::profiles;
use crate::settings::{Declared, EVENTS_CONSUMERS, HOOKS, SCRIPT_PROFILES};
use serde_json::Value;

/// The settings whose values can be so.
pub const KEYS: [&dyn Declared; 3] = [&HOOKS, &EVENTS_CONSUMERS, &SCRIPT_PROFILES];

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

/// Refuses a new value for what could never be used in it and was not in the old one.
///
/// # Errors
/// `Usage`, with the first fault.
pub(super) fn check(key: &str, old: &Value, new: &Value) -> Result<()> {
    let before = in_value(key, old);
    match in_value(key, new).into_iter().find(|fault| !before.contains(fault)) {
        None => Ok(()),
        Some(fault) => Err(Error::new(Kind::Usage, fault)),
    }
}
