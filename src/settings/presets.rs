//! Presets: named lists of mcpx's own flags under `presets` in a configuration
//! file, and which of them a run applies. Knows no command's flags; the caller
//! says which ones the running command takes.

use super::apply::Sink;
use super::declared::Declared;
use super::kind::{Val, shape};
use super::layers::{At, FileLayer, Layers, PresetFlag, Source};
use super::resolve::Settings;
use super::table::PRESET;
use crate::error::{Error, Kind, Result};
use crate::util;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;

/// A preset as a file defines it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Its name.
    pub name: String,
    /// Its flags, in order.
    pub flags: Vec<PresetFlag>,
    /// The file that defines it.
    pub path: Arc<PathBuf>,
    /// The line of its name.
    pub line: u32,
}

/// What the running command does with a flag.
#[derive(Clone, Copy)]
pub enum Taken {
    /// It sets this setting; whether it is the `--no-` form.
    Setting(&'static dyn Declared, bool),
    /// It is one of the command's own.
    Own,
    /// Another command takes it: a preset's flag is skipped.
    Elsewhere,
    /// No command takes it: in a preset that is an error.
    Nowhere,
}

/// Every preset that the files define, by name: of the same name, the nearest file's.
///
/// # Errors
/// `Config` when a definition is not a list of flags.
pub fn defined_presets(files: &[FileLayer]) -> Result<Vec<Preset>> {
    let mut out: Vec<Preset> = Vec::new();
    for (file, name) in files.iter().rev().flat_map(names) {
        if out.iter().all(|p| p.name != name) {
            out.extend(find(std::slice::from_ref(file), name)?);
        }
    }
    out.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(out)
}

/// The flags of the presets that the layers select, in the order in which they
/// apply, without those that the running command does not take. Set
/// `Layers::presets` to them; those that are no settings are the command's.
///
/// # Errors
/// `Config` when a selected preset is wrong or unknown, or the selection in a file is;
/// `Usage` when a selection by variable or flag is.
pub fn expand_presets(layers: &Layers, takes: &dyn Fn(&str) -> Taken) -> Result<Vec<PresetFlag>> {
    expand(layers, takes, &mut Err)
}

/// As [`expand_presets`], with every fault instead of the first; those of presets that are
/// defined but not selected are among them as far as their form is wrong.
pub fn preset_faults(layers: &Layers, takes: &dyn Fn(&str) -> Taken) -> (Vec<PresetFlag>, Vec<Error>) {
    let mut faults: Vec<Error> = Vec::new();
    let mut keep = |e: Error| {
        // A preset that is selected is looked at twice.
        if !faults.iter().any(|f| f.message() == e.message()) {
            faults.push(e);
        }
        Ok(())
    };
    let flags = expand(layers, takes, &mut keep).unwrap_or_default();
    for (file, name) in layers.files.iter().rev().flat_map(names) {
        let _ = find(std::slice::from_ref(file), name).map(drop).or_else(&mut keep);
    }
    (flags, faults)
}

fn expand(layers: &Layers, takes: &dyn Fn(&str) -> Taken, sink: Sink) -> Result<Vec<PresetFlag>> {
    let chosen = Settings::resolve_one(&PRESET, layers, &mut *sink)?;
    let Val::List(selected) = &chosen.value else { return Ok(Vec::new()) };
    let mut out = Vec::new();
    for name in selected {
        let preset = match find(&layers.files, name) {
            Ok(Some(preset)) => preset,
            Ok(None) => {
                sink(unknown(name, &chosen.source, &layers.files))?;
                continue;
            }
            Err(e) => {
                sink(e)?;
                continue;
            }
        };
        for entry in preset.flags {
            match takes(&entry.flag) {
                Taken::Setting(setting, negated) => match check(setting, &entry) {
                    Ok(()) => out.push(PresetFlag { key: Some(setting.key()), negated, ..entry }),
                    Err(e) => sink(e)?,
                },
                Taken::Own => out.push(entry),
                Taken::Elsewhere => {}
                Taken::Nowhere => {
                    let error = entry.fault("mcpx has no such flag");
                    let flags: Vec<String> = super::ALL.iter().flat_map(|d| d.flag_names()).collect();
                    let near = util::did_you_mean(&entry.flag, flags.iter().map(String::as_str));
                    sink(near.map_or(error.clone(), |near| error.hint(near)))?;
                }
            }
        }
    }
    Ok(out)
}

/// The names under `presets` of one file.
fn names(file: &FileLayer) -> Vec<(&FileLayer, &str)> {
    let presets = file.values.get("presets").and_then(Value::as_object);
    presets.into_iter().flat_map(|p| p.keys()).map(|name| (file, name.as_str())).collect()
}

/// The nearest definition of a preset; the files are the nearest last.
fn find(files: &[FileLayer], name: &str) -> Result<Option<Preset>> {
    for file in files.iter().rev() {
        let path = &file.path;
        let fault =
            |at: At, what: String| Error::new(Kind::Config, format!("{}:{at}: {what}", path.display()));
        let presets = match file.values.get("presets") {
            Some(Value::Object(presets)) => presets,
            Some(other) => {
                let what = format!("presets: expected an object of lists, got {}", shape(other));
                return Err(fault(file.at(&["presets"]), what));
            }
            None => continue,
        };
        let Some(definition) = presets.get(name) else { continue };
        let at = file.at(&["presets", name]);
        let Value::Array(entries) = definition else {
            let what = format!("preset \"{name}\": expected a list of flags, got {}", shape(definition));
            return Err(fault(at, what));
        };
        let lines = file.lines.member(&file.values, "presets").and_then(|l| l.member(presets, name));
        let mut flags = Vec::with_capacity(entries.len());
        for (i, entry) in entries.iter().enumerate() {
            let at = lines.and_then(|l| l.children.get(i)).map_or(at, |l| l.at);
            let Value::String(text) = entry else {
                let what = format!("preset \"{name}\": expected a flag, got {}", shape(entry));
                return Err(fault(at, what));
            };
            if !text.starts_with('-') || text.trim_start_matches('-').is_empty() {
                let what = format!(
                    "preset \"{name}\": \"{text}\" is not a flag; each entry is one flag, with its value as --flag=value"
                );
                return Err(fault(at, what));
            }
            let (flag, value) = match text.split_once('=') {
                Some((flag, value)) => (flag, Some(value.to_owned())),
                None => (text.as_str(), None),
            };
            let (preset, flag) = (name.to_owned(), flag.to_owned());
            let path = path.clone();
            flags.push(PresetFlag { preset, flag, value, key: None, negated: false, path, at });
        }
        return Ok(Some(Preset { name: name.to_owned(), flags, path: path.clone(), line: at.line }));
    }
    Ok(None)
}

/// Refuses the flags that a preset cannot have.
fn check(setting: &dyn Declared, entry: &PresetFlag) -> Result<()> {
    if setting.key() == PRESET.key() {
        return Err(entry.fault("a preset cannot select other presets"));
    }
    if setting.spec().bootstrap {
        return Err(entry.fault("is needed before a configuration is read, so a preset cannot give it"));
    }
    Ok(())
}

fn unknown(name: &str, source: &Source, files: &[FileLayer]) -> Error {
    let kind = if matches!(source, Source::File(..)) { Kind::Config } else { Kind::Usage };
    let error = Error::new(kind, format!("{source}: there is no preset \"{name}\""));
    let mut known: Vec<&str> = files.iter().flat_map(names).map(|(_, name)| name).collect();
    known.sort_unstable();
    known.dedup();
    if let Some(near) = util::did_you_mean(name, known.iter().copied()) {
        return error.hint(near);
    }
    error.hint(match known.as_slice() {
        [] => "no configuration file in effect defines presets".into(),
        known => format!("defined: {}", known.join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use super::super::declared::flag_match;
    use super::super::tests::layer;
    use super::*;
    use crate::settings::FlagValue;
    use crate::util::Env;
    use serde_json::json;

    fn everything(flag: &str) -> Taken {
        match flag_match(flag) {
            Some((setting, negated)) => Taken::Setting(setting, negated),
            None => Taken::Nowhere,
        }
    }

    fn files() -> Vec<FileLayer> {
        let far = json!({"presets": {"ci": ["--json"], "debug": ["--log-level=debug", "--timeout=30s"]}});
        let near = json!({
            "preset": "debug",
            "presets": {"ci": ["--json", "--log-level=warn"], "empty": [], "fresh": ["--fresh"]},
        });
        vec![layer("/far", far), layer("/near", near)]
    }

    fn expand(change: &dyn Fn(&mut Layers), env: &[(&str, &str)]) -> Result<Settings> {
        let env = Env::from_pairs(env.iter().copied());
        let mut layers = Layers { files: files(), ..Layers::new(&env) };
        change(&mut layers);
        layers.presets = expand_presets(&layers, &everything)?;
        Settings::resolve(layers)
    }

    fn preset_flag(text: &str) -> Vec<FlagValue> {
        vec![FlagValue { key: "preset".into(), text: text.into(), spelled: "--preset".into() }]
    }

    fn shown(settings: &Settings, key: &str) -> String {
        let row = settings.explain(key).unwrap();
        let displaced: Vec<String> = row.displaced.iter().map(|d| d.source.to_string()).collect();
        format!("{} {} [{}]", row.value.text(), row.source, displaced.join(", "))
    }

    #[test]
    fn a_later_preset_wins_and_its_source_is_shown() {
        let s = expand(&|l| l.flags = preset_flag("ci,debug"), &[("MCPX_LOG_LEVEL", "error")]).unwrap();
        assert_eq!(
            shown(&s, "logging.level"),
            "debug preset:debug (--log-level) [preset:ci (--log-level), MCPX_LOG_LEVEL, default]"
        );
        assert_eq!(shown(&s, "output.json"), "true preset:ci (--json) [default]");
        assert_eq!(shown(&s, "script.timeout"), "30s preset:debug (--timeout) [default]");
        let s = expand(&|l| l.flags = preset_flag("debug,ci"), &[]).unwrap();
        assert!(shown(&s, "logging.level").starts_with("warn preset:ci (--log-level)"));
    }

    #[test]
    fn a_selection_follows_the_precedence_and_flags_outrank_presets() {
        let s = expand(&|_| {}, &[]).unwrap();
        assert!(shown(&s, "logging.level").starts_with("debug preset:debug"));
        assert_eq!(shown(&s, "preset"), "debug /near:2 [default]");
        let s = expand(&|_| {}, &[("MCPX_PRESET", "ci")]).unwrap();
        assert!(shown(&s, "logging.level").starts_with("warn preset:ci"));
        let explicit = FlagValue {
            key: "logging.level".into(),
            text: "trace".into(),
            spelled: "--logging-level".into(),
        };
        let s = expand(&|l| l.flags = vec![explicit.clone()], &[]).unwrap();
        assert!(shown(&s, "logging.level").starts_with("trace --logging-level [preset:debug"));
        let s = expand(&|l| l.flags = preset_flag("empty"), &[]).unwrap();
        assert_eq!(shown(&s, "logging.level"), "info default []");
    }

    #[test]
    fn flags_of_other_commands_are_skipped_and_unknown_ones_refused() {
        let env = Env::default();
        let mut layers = Layers { files: files(), ..Layers::new(&env) };
        layers.flags = preset_flag("fresh,ci");
        let takes = |flag: &str| match flag {
            "--fresh" => Taken::Own,
            "--json" => Taken::Elsewhere,
            other => everything(other),
        };
        let flags: Vec<String> =
            expand_presets(&layers, &takes).unwrap().into_iter().map(|f| f.flag).collect();
        assert_eq!(flags, ["--fresh", "--log-level"]);
        let e = expand_presets(&layers, &everything).unwrap_err();
        assert_eq!(e.message(), "/near:7: preset \"fresh\": --fresh: mcpx has no such flag");
    }

    #[test]
    fn presets_that_are_wrong_are_refused_with_their_place() {
        for (definition, part) in [
            (json!(5), "preset \"bad\": expected a list of flags, got a number"),
            (json!(["--json", 1]), "expected a flag, got a number"),
            (json!(["json"]), "\"json\" is not a flag"),
            (json!(["--"]), "\"--\" is not a flag"),
            (json!(["--log-level", "debug"]), "\"debug\" is not a flag; each entry is one flag"),
            (json!(["--log-level"]), "--log-level: needs a value: --log-level=…"),
            (json!(["--timeout=5"]), "--timeout: \"5\" has no unit"),
            (json!(["--no-json=x"]), "--no-json: takes no value"),
            (json!(["--preset=ci"]), "cannot select other presets"),
            (json!(["--config=/x"]), "before a configuration is read"),
            (json!(["--timeout=5s", "--script-timeout=6s"]), "--timeout in the same preset"),
            (json!(["--log-levle=debug"]), "no such flag"),
        ] {
            let value = json!({"presets": {"bad": definition}, "preset": ["bad"]});
            let e = expand(&|l| l.files.push(layer("/bad", value.clone())), &[]).unwrap_err();
            assert_eq!(e.kind(), Kind::Config, "{e}");
            assert!(e.message().starts_with("/bad:") && e.message().contains(part), "{e}");
        }
        let e = expand(&|l| l.files.push(layer("/bad", json!({"presets": []}))), &[]).unwrap_err();
        assert!(e.message().contains("presets: expected an object of lists, got a list"), "{e}");
    }

    #[test]
    fn an_unknown_preset_names_who_asked_for_it() {
        let e = expand(&|l| l.flags = preset_flag("ci,debgu"), &[]).unwrap_err();
        assert_eq!((e.kind(), e.message()), (Kind::Usage, "--preset: there is no preset \"debgu\""));
        assert_eq!(e.hint_text(), Some("did you mean \"debug\"?"));
        let e = expand(&|_| {}, &[("MCPX_PRESET", "zzzzzz")]).unwrap_err();
        assert_eq!(e.hint_text(), Some("defined: ci, debug, empty, fresh"));
        let e = expand(&|l| l.files.push(layer("/n", json!({"preset": ["x", "y"]}))), &[]).unwrap_err();
        assert_eq!((e.kind(), e.message()), (Kind::Config, "/n:2: there is no preset \"x\""));
    }

    #[test]
    fn all_presets_are_listed_the_nearest_of_each_name() {
        let all = defined_presets(&files()).unwrap();
        let names: Vec<(&str, usize)> = all.iter().map(|p| (p.name.as_str(), p.flags.len())).collect();
        assert_eq!(names, [("ci", 2), ("debug", 2), ("empty", 0), ("fresh", 1)]);
    }
}
