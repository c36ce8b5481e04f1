//! Resolves every setting from its layers, and remembers for each value where
//! it came from and what it displaced.

use super::apply::{self, unknown_keys};
use super::declared::{Declared, Setting};
use super::kind::{FromVal, Val};
use super::layers::{Layers, Source};
use super::table::{ALL, PLUMBING_STRICT_UNKNOWN_KEYS};
use crate::error::{Error, Kind as ErrorKind, Result};
use serde_json::{Map, Value};
use std::sync::{Arc, OnceLock};

/// The defaults, in the syntax of a configuration file.
pub(super) const DEFAULTS: &str = include_str!("../../defaults.json");

/// The defaults, in the syntax of a configuration file, as they are embedded.
pub fn defaults_json() -> &'static str {
    DEFAULTS
}

/// A value that another one outranked.
#[derive(Clone, Debug, PartialEq)]
pub struct Displaced {
    /// The value.
    pub value: Val,
    /// Where it was set.
    pub source: Source,
}

/// A setting's value, where it came from, and what it displaced (the strongest first).
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// The setting's key.
    pub key: &'static str,
    /// The value in force.
    pub value: Val,
    /// Where it was set.
    pub source: Source,
    /// What it displaced, the strongest first; the default is last.
    pub displaced: Vec<Displaced>,
}

/// All settings, resolved. Cheap to clone and to share.
#[derive(Clone)]
pub struct Settings(Arc<Vec<Resolved>>);

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter().map(|r| (r.key, r.value.text()))).finish()
    }
}

impl Settings {
    /// The defaults alone.
    pub fn defaults() -> Settings {
        static CACHE: OnceLock<Settings> = OnceLock::new();
        CACHE.get_or_init(|| parse_defaults(DEFAULTS).expect("a test parses defaults.json")).clone()
    }

    /// Resolves the layers: default < file (nearest last) < environment < preset < flag < runtime override.
    ///
    /// # Errors
    /// `Config` for a value in a file or preset, `Usage` for a variable or flag; both name the place.
    pub fn resolve(layers: Layers) -> Result<Settings> {
        let mut rows = Settings::defaults().0.as_ref().clone();
        apply::all(&mut rows, &layers, &mut Err)?;
        let settings = Settings(Arc::new(rows));
        if !settings.get(&PLUMBING_STRICT_UNKNOWN_KEYS) {
            return Ok(settings);
        }
        match layers.files.iter().flat_map(unknown_keys).next() {
            Some(first) => Err(strict(first)),
            None => Ok(settings),
        }
    }

    /// Everything that keeps these layers from being resolved, not only the first of it.
    pub fn faults(layers: &Layers) -> Vec<Error> {
        let mut rows = Settings::defaults().0.as_ref().clone();
        let mut faults = Vec::new();
        // A sink that gives nothing back lets nothing end it.
        let _ = apply::all(&mut rows, layers, &mut |e| {
            faults.push(e);
            Ok(())
        });
        if Settings(Arc::new(rows)).get(&PLUMBING_STRICT_UNKNOWN_KEYS) {
            let unknown = layers.files.iter().flat_map(unknown_keys);
            faults.extend(unknown.map(strict));
        }
        faults
    }

    /// Resolves one setting, without a look at the others.
    pub(super) fn resolve_one(
        setting: &'static dyn Declared,
        layers: &Layers,
        sink: apply::Sink,
    ) -> Result<Resolved> {
        let mut rows: Vec<Resolved> = Settings::defaults().explain(setting.key()).into_iter().collect();
        apply::all(&mut rows, layers, sink)?;
        Ok(rows.remove(0))
    }

    /// The value of one setting by these layers, whatever is wrong with the others.
    ///
    /// # Errors
    /// As [`Settings::resolve`], of this setting alone.
    pub fn only<T: FromVal>(setting: &'static Setting<T>, layers: &Layers) -> Result<T> {
        let row = Settings::resolve_one(setting, layers, &mut Err)?;
        Ok(T::from_val(&row.value).expect("a test resolves every setting with its type"))
    }

    /// The value of a setting.
    pub fn get<T: FromVal>(&self, setting: &Setting<T>) -> T {
        let wanted: *const Setting<T> = setting;
        // A pointer comparison is enough: every setting is one static, and a test finds each in the table.
        let row = ALL.iter().position(|d| std::ptr::addr_eq(*d as *const dyn Declared, wanted));
        let row = row.and_then(|i| self.0.get(i));
        row.and_then(|r| T::from_val(&r.value)).expect("a test resolves every setting with its type")
    }

    /// The value of the setting with this key, its source, and what it displaced.
    pub fn explain(&self, key: &str) -> Option<Resolved> {
        self.0.iter().find(|r| r.key == key).cloned()
    }

    /// Every setting, in the order of the table.
    pub fn iter(&self) -> impl Iterator<Item = &Resolved> {
        self.0.iter()
    }
}

/// An unknown key where there may be none.
fn strict(line: String) -> Error {
    Error::new(ErrorKind::Config, line)
        .hint("plumbing.strictUnknownKeys is on; correct the key or turn it off")
}

pub(super) fn parse_defaults(text: &str) -> Result<Settings, String> {
    let root: Map<String, Value> = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let mut rows = Vec::with_capacity(ALL.len());
    for setting in ALL {
        let (key, mut at) = (setting.key(), Some(&root));
        let (family, name) = key.split_once('.').unwrap_or(("", key));
        if !family.is_empty() {
            at = root.get(family).and_then(Value::as_object);
        }
        let value = at.and_then(|m| m.get(name)).ok_or_else(|| format!("{key} has no default"))?;
        let value = setting.kind().parse_json(value).map_err(|m| format!("{key}: {m}"))?;
        if !setting.holds(&value) {
            return Err(format!("{key} is declared with another type than its kind's"));
        }
        rows.push(Resolved { key, value, source: Source::Default, displaced: Vec::new() });
    }
    Ok(Settings(Arc::new(rows)))
}
