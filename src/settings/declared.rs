//! What one entry of the settings table is, and the names that are derived
//! from its key: the variable, the flags, the file key.

use super::kind::{FromVal, Kind, Val};
use super::table::ALL;
use std::marker::PhantomData;

/// Who decides a setting, and therefore where it may be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Of the daemon: one value for everybody it serves.
    Daemon,
    /// Of the command that a person runs.
    Client,
    /// Of one call: travels with a request and holds for it alone.
    Call,
    /// Of the editor's plugin.
    Plugin,
}

impl Scope {
    /// The scope as a word: `daemon`, `client`, `call`, `plugin`.
    pub fn word(self) -> &'static str {
        match self {
            Scope::Daemon => "daemon",
            Scope::Client => "client",
            Scope::Call => "call",
            Scope::Plugin => "plugin",
        }
    }
    /// The scope as the end of a sentence: `of the daemon`.
    pub fn whose(self) -> &'static str {
        match self {
            Scope::Daemon => "of the daemon",
            Scope::Client => "of the command",
            Scope::Call => "of each call",
            Scope::Plugin => "of the editor's plugin",
        }
    }
}

/// The content of one entry. The default is not here: it is in `defaults.json`.
pub struct Spec {
    /// The key, `family.name` in camel case; every other name is derived from it.
    pub key: &'static str,
    /// What values it takes.
    pub kind: Kind,
    /// Who decides it.
    pub scope: Scope,
    /// Whether a running daemon takes a new value at once.
    pub hot: bool,
    /// Of the daemon, and of a command as well, each for itself: a command that is given another
    /// value than the daemon has is not told so.
    pub shared: bool,
    /// Needed before there is a configuration: refused in a file, and known
    /// by its declared variables and flags only.
    pub bootstrap: bool,
    /// Further flags, with dashes; a command line may say any.
    pub flags: &'static [&'static str],
    /// Further variables.
    pub env: &'static [&'static str],
    /// One line: what it sets.
    pub help: &'static str,
    /// The rest that is worth knowing; may be empty.
    pub doc: &'static str,
}

impl Spec {
    /// An entry with nothing out of the ordinary: hot, of the daemon, without further names.
    pub const fn new(key: &'static str, kind: Kind, help: &'static str) -> Spec {
        let (scope, flags, env) = (Scope::Daemon, [].as_slice(), [].as_slice());
        Spec { key, kind, scope, hot: true, shared: false, bootstrap: false, flags, env, help, doc: "" }
    }
    /// Decided by the command that a person runs.
    pub const fn client(self) -> Spec {
        Spec { scope: Scope::Client, ..self }
    }
    /// Decided by the daemon and by each command for itself.
    pub const fn shared(self) -> Spec {
        Spec { shared: true, ..self }
    }
    /// Decided by each call.
    pub const fn call(self) -> Spec {
        Spec { scope: Scope::Call, ..self }
    }
    /// Decided by the editor's plugin.
    pub const fn plugin(self) -> Spec {
        Spec { scope: Scope::Plugin, ..self }
    }
    /// Taken only at start.
    pub const fn cold(self) -> Spec {
        Spec { hot: false, ..self }
    }
    /// Needed before a configuration is read.
    pub const fn bootstrap(self) -> Spec {
        Spec { bootstrap: true, hot: false, ..self }
    }
    /// Further flags.
    pub const fn flags(self, flags: &'static [&'static str]) -> Spec {
        Spec { flags, ..self }
    }
    /// Further variables.
    pub const fn env(self, env: &'static [&'static str]) -> Spec {
        Spec { env, ..self }
    }
    /// The rest that is worth knowing.
    pub const fn doc(self, doc: &'static str) -> Spec {
        Spec { doc, ..self }
    }
}

/// One setting whose value is a `T`.
pub struct Setting<T: 'static> {
    spec: Spec,
    of: PhantomData<fn() -> T>,
}

impl<T> Setting<T> {
    /// Declares a setting; it exists once it is also listed in `ALL` and has a default.
    pub const fn new(spec: Spec) -> Setting<T> {
        Setting { spec, of: PhantomData }
    }
}

/// A setting without its type, as the table lists it.
pub trait Declared: Sync {
    /// The entry.
    fn spec(&self) -> &Spec;
    /// Whether `val` is of the type that the setting is declared with.
    fn holds(&self, val: &Val) -> bool;

    /// The key: `pool.callTimeout`.
    fn key(&self) -> &'static str {
        self.spec().key
    }
    /// What values it takes.
    fn kind(&self) -> Kind {
        self.spec().kind
    }
    /// Who decides it.
    fn scope(&self) -> Scope {
        self.spec().scope
    }
    /// Whether a running daemon takes a new value at once.
    fn hot(&self) -> bool {
        self.spec().hot
    }
    /// One line: what it sets.
    fn help(&self) -> &'static str {
        self.spec().help
    }
    /// The rest that is worth knowing; may be empty.
    fn doc(&self) -> &'static str {
        self.spec().doc
    }
    /// Whether the value must never be shown.
    fn secret(&self) -> bool {
        matches!(self.spec().kind, Kind::Secret)
    }
    /// The part of the key before the dot; the whole key when it has none.
    fn family(&self) -> &'static str {
        let key = self.key();
        key.split_once('.').map_or(key, |(family, _)| family)
    }
    /// Every variable that sets it, the derived one first: `MCPX_POOL_CALL_TIMEOUT`.
    fn env_names(&self) -> Vec<String> {
        let spec = self.spec();
        let derived = (!spec.bootstrap).then(|| format!("MCPX_{}", snake(spec.key, '_', true)));
        derived.into_iter().chain(spec.env.iter().map(|s| (*s).to_owned())).collect()
    }
    /// Every flag that sets it, the derived one first: `--pool-call-timeout`.
    /// A secret has none, because other users can read a command line.
    fn flag_names(&self) -> Vec<String> {
        let spec = self.spec();
        if self.secret() {
            return Vec::new();
        }
        let derived = (!spec.bootstrap).then(|| format!("--{}", snake(spec.key, '-', false)));
        derived.into_iter().chain(spec.flags.iter().map(|s| (*s).to_owned())).collect()
    }
    /// The default, as a person would type it.
    fn default_text(&self) -> String {
        super::Settings::defaults().explain(self.key()).map(|r| r.value.text()).unwrap_or_default()
    }
}

impl<T: FromVal> Declared for Setting<T> {
    fn spec(&self) -> &Spec {
        &self.spec
    }
    fn holds(&self, val: &Val) -> bool {
        T::from_val(val).is_some()
    }
}

/// `pool.callTimeout` as `pool-call-timeout` or `POOL_CALL_TIMEOUT`.
fn snake(key: &str, separator: char, upper: bool) -> String {
    let mut out = String::with_capacity(key.len() + 4);
    for c in key.chars() {
        if c == '.' {
            out.push(separator);
        } else if c.is_ascii_uppercase() {
            out.push(separator);
            out.push(if upper { c } else { c.to_ascii_lowercase() });
        } else {
            out.push(if upper { c.to_ascii_uppercase() } else { c });
        }
    }
    out
}

/// The setting with this key.
pub fn declared(key: &str) -> Option<&'static dyn Declared> {
    ALL.iter().find(|d| d.key() == key).copied()
}

/// The setting that a variable sets.
pub fn variable(name: &str) -> Option<&'static dyn Declared> {
    let derived = name.strip_prefix("MCPX_");
    ALL.iter()
        .find(|d| {
            let spec = d.spec();
            spec.env.contains(&name) || !spec.bootstrap && derived.is_some_and(|n| shouted(n, spec.key))
        })
        .copied()
}

/// The setting that a flag (with its dashes, without a value) sets.
pub fn flag(name: &str) -> Option<&'static dyn Declared> {
    // Names are compared without building them: a command line is parsed on every run.
    let long = name.strip_prefix("--");
    ALL.iter()
        .find(|d| {
            let spec = d.spec();
            if d.secret() {
                return false;
            }
            spec.flags.contains(&name) || !spec.bootstrap && long.is_some_and(|l| spelled(l, spec.key))
        })
        .copied()
}

/// The setting that a flag sets, and whether the flag is the negation
/// (`--no-mcp-validate-arguments`) of a bool's.
pub fn flag_match(name: &str) -> Option<(&'static dyn Declared, bool)> {
    if let Some(found) = flag(name) {
        return Some((found, false));
    }
    let positive = format!("--{}", name.strip_prefix("--no-")?);
    flag(&positive).filter(|d| matches!(d.kind(), Kind::Bool)).map(|d| (d, true))
}

/// Whether `long` is the derived flag of `key`, without allocating.
fn spelled(long: &str, key: &str) -> bool {
    let mut typed = long.bytes();
    for c in key.bytes() {
        let ok = match c {
            b'.' => typed.next() == Some(b'-'),
            b'A'..=b'Z' => typed.next() == Some(b'-') && typed.next() == Some(c.to_ascii_lowercase()),
            _ => typed.next() == Some(c),
        };
        if !ok {
            return false;
        }
    }
    typed.next().is_none()
}

/// Whether `name` is the end of `key`'s derived variable, without allocating.
fn shouted(name: &str, key: &str) -> bool {
    let mut typed = name.bytes();
    for c in key.bytes() {
        let ok = match c {
            b'.' => typed.next() == Some(b'_'),
            b'A'..=b'Z' => typed.next() == Some(b'_') && typed.next() == Some(c),
            _ => typed.next() == Some(c.to_ascii_uppercase()),
        };
        if !ok {
            return false;
        }
    }
    typed.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::super::*;

    #[test]
    fn names_are_derived_from_the_key() {
        assert_eq!(POOL_CALL_TIMEOUT.env_names(), ["MCPX_POOL_CALL_TIMEOUT"]);
        assert_eq!(POOL_CALL_TIMEOUT.flag_names(), ["--pool-call-timeout"]);
        assert_eq!(SCRIPT_TIMEOUT.flag_names(), ["--script-timeout", "--timeout"]);
        assert_eq!(SCRIPT_PERMISSIONS.env_names(), ["MCPX_SCRIPT_PERMISSIONS", "MCPX_PERMISSIONS"]);
        assert_eq!(PATHS_CONFIG_FILE.env_names(), ["MCPX_CONFIG"]);
        assert_eq!(PATHS_CONFIG_FILE.flag_names(), ["--config"]);
        assert_eq!(PRESET.env_names(), ["MCPX_PRESET"]);
        assert!(TRANSPORT_BEARER_TOKEN.flag_names().is_empty());
    }

    #[test]
    fn every_flag_finds_its_setting_and_no_two_settings_share_a_name() {
        let (mut flags, mut vars, mut keys) = (Vec::new(), Vec::new(), Vec::new());
        for setting in ALL {
            keys.push(setting.key().to_owned());
            vars.extend(setting.env_names());
            for name in setting.flag_names() {
                assert_eq!(flag(&name).map(|d| d.key()), Some(setting.key()), "{name}");
                flags.push(name);
            }
            assert!(!setting.help().is_empty() && !setting.help().ends_with('.'), "{}", setting.key());
        }
        for mut names in [flags, vars, keys] {
            let all = names.len();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), all);
        }
        assert!(flag("--transport-bearer-token").is_none());
        assert!(flag("--poolcalltimeout").is_none() && flag("pool-call-timeout").is_none());
        assert!(flag_match("--no-output-json").is_some_and(|(d, no)| no && d.key() == "output.json"));
        assert!(flag_match("--no-json").is_some_and(|(d, no)| no && d.key() == "output.json"));
        assert!(flag_match("--no-pool-max").is_none());
    }
}
