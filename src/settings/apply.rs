//! Lays the layers over the defaults, one after the other, and finds the keys
//! of files that mean nothing. A layer touches only the rows that it is given,
//! so that one setting can be resolved before the others.

use super::declared::{Declared, declared};
use super::kind::{Kind, SPLICE, Val, shape};
use super::layers::{At, FileLayer, FlagValue, Layers, PresetFlag, Source};
use super::resolve::{Displaced, Resolved};
use super::table::ALL;
use crate::error::{Error, Kind as ErrorKind, Result};
use serde_json::Value;
use std::path::Path;

/// Top-level keys of a configuration file that are content, not settings.
const CONTENT: &[&str] = &["$schema", "inputs", "mcpServers", "presets", "servers"];

/// How many unknown keys of one file are reported each by itself.
const REPORTED: usize = 20;

/// What becomes of a fault: given back it ends the matter; else the value is passed over.
pub(super) type Sink<'a> = &'a mut dyn FnMut(Error) -> Result<()>;

/// Lays all layers over the rows, the weakest first.
pub(super) fn all(rows: &mut [Resolved], layers: &Layers, sink: Sink) -> Result<()> {
    for layer in &layers.files {
        file(rows, layer, layers, sink)?;
    }
    for setting in ALL {
        match variable(rows, *setting, layers) {
            Ok(Some((name, value))) => set(rows, *setting, value, Source::Env(name)),
            Ok(None) => {}
            Err(e) => sink(e)?,
        }
    }
    for (i, entry) in layers.presets.iter().enumerate() {
        preset(rows, entry, &layers.presets[..i], layers).or_else(&mut *sink)?;
    }
    flags(rows, layers, sink)?;
    for over in &layers.runtime {
        let parsed = known(&over.key).and_then(|setting| {
            let value = setting.kind().parse_json(&over.value);
            let wrong = |m| Error::new(ErrorKind::Usage, format!("{}: {m}", over.key));
            Ok((setting, value.map_err(wrong)?))
        });
        match parsed {
            Ok((setting, value)) => set(rows, setting, value, Source::Runtime),
            Err(e) => sink(e)?,
        }
    }
    Ok(())
}

/// The setting with this key.
///
/// # Errors
/// `Usage`, with the nearest key.
pub fn known(key: &str) -> Result<&'static dyn Declared> {
    declared(key).ok_or_else(|| {
        let error = Error::new(ErrorKind::Usage, format!("there is no setting \"{key}\""));
        match crate::util::did_you_mean(key, ALL.iter().map(|d| d.key())) {
            Some(near) => error.hint(near),
            None => error,
        }
    })
}

fn wanted(rows: &[Resolved], setting: &dyn Declared) -> bool {
    rows.iter().any(|r| r.key == setting.key())
}

/// Puts a value on top of a setting's row.
fn set(rows: &mut [Resolved], setting: &dyn Declared, value: Val, source: Source) {
    let Some(row) = rows.iter_mut().find(|r| r.key == setting.key()) else { return };
    let value = match value {
        Val::Paths(list) => Val::Paths(splice(list, &row.value)),
        value => value,
    };
    let value = std::mem::replace(&mut row.value, value);
    let source = std::mem::replace(&mut row.source, source);
    row.displaced.insert(0, Displaced { value, source });
}

/// Replaces each splice mark by what was inherited.
pub(super) fn splice(list: Vec<String>, inherited: &Val) -> Vec<String> {
    let inherited: &[String] = if let Val::Paths(inherited) = inherited { inherited } else { &[] };
    let each = list.into_iter().flat_map(|e| if e == SPLICE { inherited.to_vec() } else { vec![e] });
    each.collect()
}

/// Resolves `~/` and relative paths; `base` is the directory of the place that says them.
fn anchored(kind: Kind, value: Val, base: Option<&Path>, layers: &Layers) -> Val {
    let join = |text: String| {
        let home = layers.env.get("HOME").filter(|h| !h.is_empty());
        let path = match (text.strip_prefix("~/"), home, base) {
            _ if text.is_empty() || text == SPLICE => return text,
            (Some(rest), Some(home), _) => Path::new(home).join(rest),
            (None, _, Some(base)) => base.join(&text),
            _ => return text,
        };
        path.to_str().map(str::to_owned).unwrap_or(text)
    };
    match (kind, value) {
        (Kind::Path, Val::Text(text)) => Val::Text(join(text)),
        (_, Val::Paths(list)) => Val::Paths(list.into_iter().map(join).collect()),
        (_, value) => value,
    }
}

/// A setting that a file gives, its value, and the place.
type Entry<'a> = (&'static dyn Declared, &'a Value, At);

/// Every setting that a file gives, nested (`"pool": {"max": 3}`) or dotted (`"pool.max": 3`).
fn entries(file: &FileLayer) -> Vec<Entry<'_>> {
    let mut found: Vec<Entry> = Vec::new();
    for ((key, value), lines) in file.values.iter().zip(&file.lines.children) {
        if let Some(setting) = declared(key) {
            found.push((setting, value, lines.at));
        } else if let (Value::Object(inner), false) = (value, CONTENT.contains(&key.as_str())) {
            for ((name, value), lines) in inner.iter().zip(&lines.children) {
                if let Some(setting) = ALL.iter().find(|d| is_key(d.key(), key, name)) {
                    found.push((*setting, value, lines.at));
                }
            }
        }
    }
    found
}

fn is_key(key: &str, family: &str, name: &str) -> bool {
    key.strip_prefix(family).and_then(|k| k.strip_prefix('.')) == Some(name)
}

fn file(rows: &mut [Resolved], file: &FileLayer, layers: &Layers, sink: Sink) -> Result<()> {
    let mut seen: Vec<(&'static str, Val, u32)> = Vec::new();
    for (setting, value, place) in entries(file) {
        let key = setting.key();
        let at = |message: String| {
            Error::new(ErrorKind::Config, format!("{}:{place}: {key}: {message}", file.path.display()))
        };
        if setting.spec().bootstrap {
            let names = [setting.env_names(), setting.flag_names()].concat().join(" or ");
            let why = "cannot be set in a configuration file, because it is needed before one is read";
            sink(at(why.into()).hint(format!("use {names} instead, and remove the line")))?;
            continue;
        }
        if !wanted(rows, setting) {
            continue;
        }
        let value = match setting.kind().parse_json(value) {
            Ok(value) => anchored(setting.kind(), value, Some(file.base()), layers),
            Err(what) => {
                sink(at(what))?;
                continue;
            }
        };
        match seen.iter().find(|(k, ..)| *k == key) {
            Some((_, other, first)) if *other != value => {
                sink(at(format!("is also set in line {first}, to another value")))?;
                continue;
            }
            Some(_) => continue,
            None => seen.push((key, value.clone(), place.line)),
        }
        set(rows, setting, value, Source::File(file.path.clone(), place.line));
    }
    Ok(())
}

/// What the environment says of a setting, and by which variable.
fn variable(rows: &[Resolved], setting: &dyn Declared, layers: &Layers) -> Result<Option<(String, Val)>> {
    if !wanted(rows, setting) {
        return Ok(None);
    }
    let mut seen: Option<(String, Val)> = None;
    for name in setting.env_names() {
        // A variable that is set but empty says nothing: scripts and editors export such.
        let Some(raw) = layers.env.get(&name).filter(|v| !v.is_empty()) else { continue };
        let at = |message: String| Error::new(ErrorKind::Usage, format!("{name}: {message}"));
        let text = raw.to_str().ok_or_else(|| at("is not valid UTF-8".into()))?;
        let value = setting.kind().parse_text(text).map_err(at)?;
        let value = anchored(setting.kind(), value, layers.dir.as_deref(), layers);
        match seen {
            Some((ref other, ref first)) if *first != value => {
                return Err(at(format!("{other} sets the same to another value")).hint("unset one of them"));
            }
            Some(_) => {}
            None => seen = Some((name, value)),
        }
    }
    Ok(seen)
}

/// One flag of a preset; `earlier` are those before it.
fn preset(rows: &mut [Resolved], entry: &PresetFlag, earlier: &[PresetFlag], layers: &Layers) -> Result<()> {
    // A flag that is no setting belongs to a command, which takes it itself.
    let Some(setting) = entry.key.and_then(declared) else { return Ok(()) };
    if !wanted(rows, setting) {
        return Ok(());
    }
    let at = |message: String| entry.fault(message);
    let value = preset_value(setting, entry).map_err(at)?;
    let same = |e: &&PresetFlag| e.preset == entry.preset && e.path == entry.path && e.key == entry.key;
    for other in earlier.iter().filter(same) {
        if positive(&other.flag) != positive(&entry.flag)
            && preset_value(setting, other).is_ok_and(|first| first != value)
        {
            return Err(at(format!("{} in the same preset sets the same to another value", other.flag)));
        }
    }
    let value = anchored(setting.kind(), value, layers.dir.as_deref(), layers);
    set(rows, setting, value, Source::Preset(entry.preset.clone(), entry.flag.clone()));
    Ok(())
}

fn preset_value(setting: &dyn Declared, entry: &PresetFlag) -> Result<Val, String> {
    let negated = entry.negated;
    let text = match (&entry.value, setting.kind()) {
        (Some(_), _) if negated => return Err("takes no value".into()),
        (Some(text), _) => text.as_str(),
        (None, Kind::Bool) if negated => "false",
        (None, Kind::Bool) => "true",
        (None, _) => return Err(format!("needs a value: {}=…", entry.flag)),
    };
    setting.kind().parse_text(text)
}

/// A flag as it is spelled, without a negation: `--json` and `--no-json` are one spelling.
fn positive(flag: &str) -> &str {
    flag.strip_prefix("--no-").or_else(|| flag.strip_prefix("--")).unwrap_or(flag)
}

fn flags(rows: &mut [Resolved], layers: &Layers, sink: Sink) -> Result<()> {
    let mut seen: Vec<(&'static dyn Declared, &str, Val)> = Vec::new();
    for flag in &layers.flags {
        match typed(rows, flag, &mut seen, layers) {
            Ok(Some((setting, value))) => seen.push((setting, &flag.spelled, value)),
            Ok(None) => {}
            Err(e) => sink(e)?,
        }
    }
    for (i, (setting, spelled, value)) in seen.iter().enumerate() {
        // Spellings that agree are one source: the last.
        if !seen[i + 1..].iter().any(|(later, ..)| later.key() == setting.key()) {
            set(rows, *setting, value.clone(), Source::Flag((*spelled).to_owned()));
        }
    }
    Ok(())
}

/// What a flag says. One of the same spelling before it counts no more.
fn typed(
    rows: &[Resolved],
    flag: &FlagValue,
    seen: &mut Vec<(&'static dyn Declared, &str, Val)>,
    layers: &Layers,
) -> Result<Option<(&'static dyn Declared, Val)>> {
    let setting = known(&flag.key)?;
    if !wanted(rows, setting) {
        return Ok(None);
    }
    let at = |message: String| Error::new(ErrorKind::Usage, format!("{}: {message}", flag.spelled));
    let value = setting.kind().parse_text(&flag.text).map_err(at)?;
    let value = anchored(setting.kind(), value, layers.dir.as_deref(), layers);
    // The same flag twice: the last wins. Two flags for one setting must agree.
    seen.retain(|(s, spelled, _)| s.key() != flag.key || positive(spelled) != positive(&flag.spelled));
    let other = seen.iter().find(|(s, _, first)| s.key() == flag.key && *first != value);
    if let Some((_, other, _)) = other {
        return Err(at(format!("{other} sets the same to another value")).hint("give one of them"));
    }
    Ok(Some((setting, value)))
}

/// A line for each key of a file that is no setting and no content, with the nearest that is.
pub fn unknown_keys(file: &FileLayer) -> Vec<String> {
    let mut out = Vec::new();
    let mut more = 0usize;
    let path = file.path.display();
    let mut unknown = |line: At, key: &str, out: &mut Vec<String>| {
        // To look for the nearest name is slow, and nobody reads a thousand lines.
        if out.len() >= REPORTED {
            more += 1;
            return;
        }
        let names: Vec<&str> = if key.contains('.') {
            ALL.iter().filter(|d| !d.spec().bootstrap).map(|d| d.key()).collect()
        } else {
            ALL.iter().map(|d| d.family()).chain(CONTENT.iter().copied()).collect()
        };
        // A setting without its family is likelier meant than a family that is spelled alike.
        let inner = |d: &&&'static dyn Declared| d.key().split_once('.').is_some_and(|(_, name)| name == key);
        let without: Vec<&str> = ALL.iter().filter(inner).map(|d| d.key()).collect();
        let near = match without.is_empty() {
            true => crate::util::nearest(key, names).into_iter().take(1).collect(),
            false => without,
        };
        let near: Vec<String> = near.iter().map(|n| format!("\"{n}\"")).collect();
        let meant = match near.is_empty() {
            true => "; mcpx settings lists the known ones".to_owned(),
            false => format!("; did you mean {}?", near.join(" or ")),
        };
        out.push(format!("{path}:{line}: unknown key \"{key}\"{meant}"));
    };
    for ((key, value), lines) in file.values.iter().zip(&file.lines.children) {
        if declared(key).is_some() || CONTENT.contains(&key.as_str()) {
            continue;
        }
        let family = ALL.iter().any(|d| d.key().contains('.') && d.family() == key);
        match value {
            Value::Object(inner) if family => {
                for (name, lines) in inner.keys().zip(&lines.children) {
                    if !ALL.iter().any(|d| is_key(d.key(), key, name)) {
                        unknown(lines.at, &format!("{key}.{name}"), &mut out);
                    }
                }
            }
            _ if family => out.push(format!(
                "{path}:{}: \"{key}\" must be an object of settings, not {}",
                lines.at,
                shape(value)
            )),
            _ if file.foreign => {}
            _ => unknown(lines.at, key, &mut out),
        }
    }
    if more > 0 {
        out.push(format!("{path}: and {more} more unknown keys"));
    }
    out
}
