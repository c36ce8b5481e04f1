//! What is run around a script: the texts of `script.before`, `prefix`,
//! `suffix`, `onSuccess` and `onError`, and what becomes of its console.
//! Reads them; runs nothing.

use super::faults::Faults;
use crate::settings::{
    SCRIPT_BEFORE, SCRIPT_CONSOLE, SCRIPT_ON_ERROR, SCRIPT_ON_SUCCESS, SCRIPT_PREFIX, SCRIPT_SUFFIX, Setting,
    Settings,
};
use serde_json::{Map, Value};
use std::path::Path;

/// Everything that has a text, and how the launcher calls it.
static TEXTS: [(&str, &Setting<String>); 5] = [
    ("before", &SCRIPT_BEFORE),
    ("prefix", &SCRIPT_PREFIX),
    ("suffix", &SCRIPT_SUFFIX),
    ("onSuccess", &SCRIPT_ON_SUCCESS),
    ("onError", &SCRIPT_ON_ERROR),
];

/// What the launcher is told of it; most scripts have nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Around(Map<String, Value>);

impl Around {
    /// Reads the settings' texts; `cwd` is where relative paths of flags and variables are taken from.
    pub fn read(settings: &Settings, cwd: &Path, faults: &mut Faults) -> Around {
        let mut out = Map::new();
        for (name, setting) in TEXTS {
            let Some(text) = faults.keep(settings.source_text(setting, cwd)) else { continue };
            let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
            if !text.trim().is_empty() {
                out.insert(name.into(), text.into());
            }
        }
        if settings.get(&SCRIPT_CONSOLE) == "print" {
            out.insert("plain".into(), true.into());
        }
        Around(out)
    }

    /// The same with the statements that stand for a code's imports.
    pub fn with_imports(&self, imports: &str) -> Around {
        let mut out = self.clone();
        out.0.insert("imports".into(), imports.into());
        out
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As a literal of JavaScript.
    pub fn literal(&self) -> String {
        Value::Object(self.0.clone()).to_string()
    }
}
