//! Resolves every setting from its layers, and remembers for each value where
//! it came from and what it displaced.

use super::declared::{Declared, Setting, declared, flag_match};
use super::kind::{FromVal, Kind, SPLICE, Val, shape};
use super::layers::{FileLayer, Layers, Source};
use super::table::{ALL, PLUMBING_STRICT_UNKNOWN_KEYS};
use crate::error::{Error, Kind as ErrorKind, Result};
use serde_json::{Map, Value};
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// The defaults, in the syntax of a configuration file.
pub(super) const DEFAULTS: &str = include_str!("../../defaults.json");

/// Top-level keys of a configuration file that are content, not settings.
const CONTENT: &[&str] = &["$schema", "inputs", "mcpServers", "presets", "servers"];

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
        for file in &layers.files {
            apply_file(&mut rows, file)?;
        }
        apply_env(&mut rows, &layers)?;
        apply_presets(&mut rows, &layers)?;
        apply_flags(&mut rows, &layers)?;
        for over in &layers.runtime {
            let setting = known(&over.key)?;
            let value = setting.kind().parse_json(&over.value);
            let value = value.map_err(|m| Error::new(ErrorKind::Usage, format!("{}: {m}", over.key)))?;
            set(&mut rows, setting, value, Source::Runtime);
        }
        let settings = Settings(Arc::new(rows));
        if !settings.get(&PLUMBING_STRICT_UNKNOWN_KEYS) {
            return Ok(settings);
        }
        match layers.files.iter().flat_map(unknown_keys).next() {
            Some(first) => Err(Error::new(ErrorKind::Config, first)
                .hint("plumbing.strictUnknownKeys is on; correct the key or turn it off")),
            None => Ok(settings),
        }
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

fn parse_defaults(text: &str) -> Result<Settings, String> {
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

fn known(key: &str) -> Result<&'static dyn Declared> {
    declared(key).ok_or_else(|| {
        let error = Error::new(ErrorKind::Usage, format!("there is no setting \"{key}\""));
        match crate::util::did_you_mean(key, ALL.iter().map(|d| d.key())) {
            Some(near) => error.hint(near),
            None => error,
        }
    })
}

/// Puts a value on top of a setting's row.
fn set(rows: &mut [Resolved], setting: &'static dyn Declared, value: Val, source: Source) {
    let Some(row) = rows.iter_mut().find(|r| r.key == setting.key()) else { return };
    let value = match (setting.kind(), value) {
        (Kind::Paths, Val::List(list)) => Val::List(splice(list, &row.value)),
        (_, value) => value,
    };
    let value = std::mem::replace(&mut row.value, value);
    let source = std::mem::replace(&mut row.source, source);
    row.displaced.insert(0, Displaced { value, source });
}

/// Replaces each splice mark by what was inherited.
fn splice(list: Vec<String>, inherited: &Val) -> Vec<String> {
    let Val::List(inherited) = inherited else { return list };
    let each = list.into_iter().flat_map(|e| if e == SPLICE { inherited.clone() } else { vec![e] });
    each.collect()
}

/// Resolves a relative path against the place that says it.
fn anchored(kind: Kind, value: Val, base: &Path) -> Val {
    let join = |text: String| {
        if text.is_empty() || text == SPLICE || text.starts_with("~/") {
            return text;
        }
        base.join(&text).to_str().map(str::to_owned).unwrap_or(text)
    };
    match (kind, value) {
        (Kind::Path, Val::Text(text)) => Val::Text(join(text)),
        (Kind::Paths, Val::List(list)) => Val::List(list.into_iter().map(join).collect()),
        (_, value) => value,
    }
}

/// Every setting that a file gives: the setting, the value, its line, and how it is spelled there.
fn entries(file: &FileLayer) -> impl Iterator<Item = (&'static dyn Declared, &Value, u32, String)> {
    let top = file.values.iter().zip(&file.lines.children);
    top.flat_map(|((key, value), lines)| {
        let mut found = Vec::new();
        if let Some(setting) = declared(key) {
            found.push((setting, value, lines.line, format!("\"{key}\"")));
        } else if let (Value::Object(inner), false) = (value, CONTENT.contains(&key.as_str())) {
            for ((name, value), lines) in inner.iter().zip(&lines.children) {
                if let Some(setting) = ALL.iter().find(|d| is_key(d.key(), key, name)) {
                    let spelled = format!("\"{name}\" in \"{key}\"");
                    found.push((*setting, value, lines.line, spelled));
                }
            }
        }
        found
    })
}

fn is_key(key: &str, family: &str, name: &str) -> bool {
    key.strip_prefix(family).and_then(|k| k.strip_prefix('.')) == Some(name)
}

fn apply_file(rows: &mut [Resolved], file: &FileLayer) -> Result<()> {
    let mut seen: Vec<(&'static str, Val, u32)> = Vec::new();
    for (setting, value, line, _) in entries(file) {
        let key = setting.key();
        let at = |message: String| {
            Error::new(ErrorKind::Config, format!("{}:{line}: {key}: {message}", file.path.display()))
        };
        if setting.spec().bootstrap {
            let names = [setting.env_names(), setting.flag_names()].concat().join(" or ");
            return Err(at(
                "cannot be set in a configuration file, because it is needed before one is read".into()
            )
            .hint(format!("use {names} instead, and remove the line")));
        }
        let value = setting.kind().parse_json(value).map_err(at)?;
        let value = anchored(setting.kind(), value, file.base());
        match seen.iter().find(|(k, ..)| *k == key) {
            Some((_, other, first)) if *other != value => {
                return Err(at(format!("is also set in line {first}, to another value")));
            }
            Some(_) => continue,
            None => seen.push((key, value.clone(), line)),
        }
        set(rows, setting, value, Source::File(file.path.clone(), line));
    }
    Ok(())
}

fn apply_env(rows: &mut [Resolved], layers: &Layers) -> Result<()> {
    for setting in ALL {
        let mut seen: Option<(String, Val)> = None;
        for name in setting.env_names() {
            // A variable that is set but empty says nothing: scripts and editors export such.
            let Some(raw) = layers.env.get(&name).filter(|v| !v.is_empty()) else { continue };
            let at = |message: String| Error::new(ErrorKind::Usage, format!("{name}: {message}"));
            let text = raw.to_str().ok_or_else(|| at("is not valid UTF-8".into()))?;
            let value = setting.kind().parse_text(text).map_err(at)?;
            match seen {
                Some((ref other, ref first)) if *first != value => {
                    return Err(
                        at(format!("{other} sets the same to another value")).hint("unset one of them")
                    );
                }
                Some(_) => {}
                None => seen = Some((name, value)),
            }
        }
        if let Some((name, value)) = seen {
            set(rows, *setting, value, Source::Env(name));
        }
    }
    Ok(())
}

fn apply_presets(rows: &mut [Resolved], layers: &Layers) -> Result<()> {
    for entry in &layers.presets {
        // A flag that is no setting belongs to a command, which takes it itself.
        let Some((setting, negated)) = flag_match(&entry.flag) else { continue };
        let place =
            format!("{}:{}: preset {}: {}", entry.path.display(), entry.line, entry.preset, entry.flag);
        let at = |message: String| Error::new(ErrorKind::Config, format!("{place}: {message}"));
        let text = match (&entry.value, setting.kind(), negated) {
            (Some(_), _, true) => return Err(at("takes no value".into())),
            (Some(text), _, false) => text.as_str(),
            (None, Kind::Bool, negated) => {
                if negated {
                    "false"
                } else {
                    "true"
                }
            }
            (None, ..) => return Err(at(format!("needs a value: {}=…", entry.flag))),
        };
        let value = setting.kind().parse_text(text).map_err(at)?;
        set(rows, setting, value, Source::Preset(entry.preset.clone(), entry.flag.clone()));
    }
    Ok(())
}

fn apply_flags(rows: &mut [Resolved], layers: &Layers) -> Result<()> {
    let mut seen: Vec<(&str, &str, Val)> = Vec::new();
    for flag in &layers.flags {
        let setting = known(&flag.key)?;
        let at = |message: String| Error::new(ErrorKind::Usage, format!("{}: {message}", flag.spelled));
        let value = setting.kind().parse_text(&flag.text).map_err(at)?;
        // The same flag twice: the last wins. Two flags for one setting must agree.
        seen.retain(|(key, spelled, _)| *key != flag.key || *spelled != flag.spelled);
        let other = seen.iter().find(|(key, _, first)| *key == flag.key && *first != value);
        if let Some((_, other, _)) = other {
            return Err(at(format!("{other} sets the same to another value")).hint("give one of them"));
        }
        seen.push((&flag.key, &flag.spelled, value));
    }
    for (key, spelled, value) in seen {
        set(rows, known(key)?, value, Source::Flag(spelled.to_owned()));
    }
    Ok(())
}

/// A line for each key of a file that is no setting and no content, with the nearest that is.
pub fn unknown_keys(file: &FileLayer) -> Vec<String> {
    let mut out = Vec::new();
    let unknown = |line: u32, key: &str| {
        let names = ALL.iter().filter(|d| !d.spec().bootstrap).map(|d| d.key()).chain(["mcpServers"]);
        let near = crate::util::nearest(key, names).first().map(|n| format!("; did you mean \"{n}\"?"));
        let near = near.unwrap_or_default();
        format!("{}:{line}: unknown key \"{key}\"{near}", file.path.display())
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
                        out.push(unknown(lines.line, &format!("{key}.{name}")));
                    }
                }
            }
            _ if family => out.push(format!(
                "{}:{}: \"{key}\" must be an object of settings, not {}",
                file.path.display(),
                lines.line,
                shape(value)
            )),
            _ if file.foreign => {}
            _ => out.push(unknown(lines.line, key)),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::*;
    use super::{DEFAULTS, parse_defaults};
    use crate::error::Kind as ErrorKind;
    use crate::util::Env;
    use serde_json::{Value, json};
    use std::sync::Arc;
    use std::time::Duration;

    /// A file layer whose member number `i` of each object is on line `i + 2` of its own object.
    fn layer(path: &str, value: Value) -> FileLayer {
        fn lines(value: &Value, line: u32) -> Lines {
            let children = match value {
                Value::Object(m) => m.values().zip(line + 1..).map(|(v, l)| lines(v, l)).collect(),
                Value::Array(a) => a.iter().zip(line + 1..).map(|(v, l)| lines(v, l)).collect(),
                _ => Vec::new(),
            };
            Lines { line, children }
        }
        let lines = lines(&value, 1);
        let Value::Object(values) = value else { panic!("an object") };
        FileLayer { path: Arc::new(path.into()), values, lines, foreign: false }
    }

    fn flag(key: &str, text: &str, spelled: &str) -> FlagValue {
        FlagValue { key: key.into(), text: text.into(), spelled: spelled.into() }
    }

    #[test]
    fn every_setting_has_a_default_of_its_type_and_every_default_a_setting() {
        let settings = parse_defaults(DEFAULTS).unwrap();
        assert_eq!(settings.iter().count(), ALL.len());
        let mut keys = Vec::new();
        let root: serde_json::Map<String, Value> = serde_json::from_str(DEFAULTS).unwrap();
        for (family, value) in &root {
            match value {
                Value::Object(inner) => keys.extend(inner.keys().map(|n| format!("{family}.{n}"))),
                _ => keys.push(family.clone()),
            }
        }
        for key in keys {
            assert!(declared(&key).is_some(), "defaults.json has {key}, which is no setting");
        }
        assert_eq!(settings.get(&POOL_CALL_TIMEOUT), Duration::from_secs(300));
        assert_eq!(settings.get(&MCP_MAX_MESSAGE), 256_000_000);
        assert_eq!(settings.get(&SCRIPT_RUNTIME_ORDER), ["deno", "bun", "node"]);
        assert_eq!(settings.get(&SCRIPT_RUNTIMES), json!({}));
        assert!(settings.get(&TRANSPORT_BEARER_TOKEN).is_empty());
    }

    #[test]
    fn a_stronger_layer_wins_and_each_displaced_value_is_remembered() {
        let env = Env::from_pairs([("MCPX_POOL_MAX", "5")]);
        let mut layers = Layers::new(&env);
        layers.files =
            vec![layer("/far", json!({"pool": {"max": 2}})), layer("/near", json!({"pool": {"max": 3}}))];
        layers.presets = vec![PresetFlag {
            preset: "ci".into(),
            flag: "--pool-max".into(),
            value: Some("6".into()),
            path: Arc::new("/near".into()),
            line: 9,
        }];
        layers.flags = vec![flag("pool.max", "7", "--pool-max"), flag("pool.max", "8", "--pool-max")];
        layers.runtime = vec![RuntimeValue { key: "pool.max".into(), value: json!(9) }];
        let got = Settings::resolve(layers).unwrap().explain("pool.max").unwrap();
        assert_eq!(got.value, Val::Int(9));
        assert_eq!(got.source, Source::Runtime);
        let displaced: Vec<String> =
            got.displaced.iter().map(|d| format!("{} {}", d.value.text(), d.source)).collect();
        assert_eq!(
            displaced,
            [
                "8 --pool-max",
                "6 preset:ci (--pool-max)",
                "5 MCPX_POOL_MAX",
                "3 /near:3",
                "2 /far:3",
                "32 default"
            ]
        );
    }

    #[test]
    fn values_that_are_wrong_name_their_place() {
        let fail = |change: &dyn Fn(&mut Layers), env: &Env| {
            let mut layers = Layers::new(env);
            change(&mut layers);
            Settings::resolve(layers).unwrap_err()
        };
        let none = Env::default();
        let e = fail(&|l| l.files = vec![layer("/f", json!({"pool": {"max": 0}}))], &none);
        assert_eq!(
            (e.kind(), e.message()),
            (ErrorKind::Config, "/f:3: pool.max: must be from 1 to 4096, not 0")
        );
        let e = fail(&|_| {}, &Env::from_pairs([("MCPX_OUTPUT_COLOR", "pink")]));
        assert_eq!(e.kind(), ErrorKind::Usage);
        assert!(
            e.message().starts_with("MCPX_OUTPUT_COLOR: \"pink\" is not one of auto, always, never"),
            "{e}"
        );
        let e = fail(&|l| l.flags = vec![flag("script.timeout", "30", "--timeout")], &none);
        assert!(e.message().starts_with("--timeout: \"30\" has no unit"), "{e}");
        let e = fail(&|l| l.runtime = vec![RuntimeValue { key: "pool.mx".into(), value: json!(1) }], &none);
        assert!(e.hint_text().is_some_and(|h| h.contains("pool.max")), "{e}");
        assert!(e.message().contains("no setting \"pool.mx\""), "{e}");
    }
}
