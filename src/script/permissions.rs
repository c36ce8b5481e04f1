//! Permission profiles: names that stand for the flags with which a runtime
//! limits a script. Decides what can be enforced and refuses the rest; starts
//! nothing and knows nothing of where a runtime is installed.

use super::runtimes::{JsKind, Version};
use crate::error::{Error, Kind, Result};
use crate::settings::{SCRIPT_PERMISSIONS, SCRIPT_PROFILES, Settings};
use crate::util::did_you_mean;
use serde_json::{Map, Value};

/// A profile that is always there.
pub struct Builtin {
    /// Its name.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// What it allows, for people.
    pub meaning: &'static str,
    deno: &'static [&'static str],
    /// Without a list node cannot enforce it.
    node: Option<&'static [&'static str]>,
    /// bun enforces nothing, so it only takes the profile that asks for nothing.
    bun: bool,
}

/// Every built-in profile. `node_flags` turns node's list into what a given version of node takes.
pub static BUILTINS: &[Builtin] = &[
    Builtin {
        name: "all",
        aliases: &["none", "off", "unsandboxed"],
        meaning: "everything",
        deno: &["--allow-all"],
        node: Some(&[]),
        bun: true,
    },
    Builtin {
        name: "net",
        aliases: &[],
        meaning: "the network and the environment",
        deno: &["--allow-net", "--allow-env"],
        node: None,
        bun: false,
    },
    Builtin {
        name: "read",
        aliases: &[],
        meaning: "reading files, and the environment",
        deno: &["--allow-read", "--allow-env"],
        node: None,
        bun: false,
    },
    Builtin {
        name: "readnet",
        aliases: &["read-net"],
        meaning: "reading files, the network and the environment",
        deno: &["--allow-read", "--allow-net", "--allow-env"],
        node: Some(&["--permission", "--allow-fs-read=*", "--allow-net"]),
        bun: false,
    },
    Builtin {
        name: "strict",
        aliases: &[],
        meaning: "this machine's loopback address and the environment",
        deno: &["--allow-net=127.0.0.1", "--allow-env"],
        node: None,
        bun: false,
    },
];

/// What a script may do, as it was asked for: profiles by name, and raw flags.
#[derive(Clone, Debug, PartialEq)]
pub struct Permissions {
    profiles: Vec<Profile>,
    raw: Vec<String>,
}

/// One profile, looked up.
#[derive(Clone, Debug, PartialEq)]
struct Profile {
    name: String,
    rules: Rules,
}

#[derive(Clone, Debug, PartialEq)]
enum Rules {
    /// An index into [`BUILTINS`].
    Builtin(usize),
    /// The same flags for every kind.
    Every(Vec<String>),
    /// Flags for the kinds that it lists.
    Kinds(Vec<(JsKind, Vec<String>)>),
}

/// The flags that enforce the permissions on one runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// The flags, in the order in which they are given.
    pub flags: Vec<String>,
    /// Whether the script may read any file at all.
    pub allow_read: bool,
    /// Whether the runtime limits the script.
    pub sandboxed: bool,
}

impl Permissions {
    /// Reads `script.permissions` and `script.profiles`.
    ///
    /// # Errors
    /// `Usage` for an unknown profile or a value that is not one, `Config` for a definition that is none.
    pub fn from_settings(settings: &Settings) -> Result<Permissions> {
        Permissions::parse(&settings.get(&SCRIPT_PERMISSIONS), &settings.get(&SCRIPT_PROFILES))
    }

    /// Reads a list such as `read,strict,raw:--allow-run`, with the user's own profiles at hand.
    pub fn parse(text: &str, defined: &Value) -> Result<Permissions> {
        let none = Map::new();
        let defined = match defined {
            Value::Object(map) => map,
            Value::Null => &none,
            _ => {
                return Err(Error::new(
                    Kind::Config,
                    "script.profiles: expected an object that maps names to profiles",
                ));
            }
        };
        let mut permissions = Permissions { profiles: Vec::new(), raw: Vec::new() };
        let mut rest = text.trim();
        while !rest.is_empty() {
            if let Some(raw) = rest.strip_prefix("raw:") {
                // Commas belong to the flags, so nothing can follow.
                permissions.raw = words(raw, "raw:")?;
                break;
            }
            let (word, tail) = rest.split_once(',').unwrap_or((rest, ""));
            let word = word.trim();
            if word.starts_with('-') {
                return Err(Error::new(
                    Kind::Usage,
                    format!("--permissions: {rest:?} are flags of a runtime, not names of profiles"),
                )
                .hint(format!(
                    "to hand them to the runtime as they are: --permissions '{}'",
                    {
                        let before = &text[..text.len() - rest.len()];
                        format!("{before}raw:{rest}")
                    }
                )));
            }
            if !word.is_empty() {
                permissions.profiles.push(look_up(word, defined)?);
            }
            rest = tail.trim_start();
        }
        if permissions.profiles.is_empty() && permissions.raw.is_empty() {
            return Err(Error::new(Kind::Usage, "--permissions: no profile is named")
                .hint("all is the one that permits everything"));
        }
        Ok(permissions)
    }

    /// The names that were asked for, `raw:…` included, for people.
    pub fn names(&self) -> String {
        let mut names: Vec<String> = self.profiles.iter().map(|p| p.name.clone()).collect();
        if !self.raw.is_empty() {
            names.push(format!("raw:{}", self.raw.join(" ")));
        }
        names.join(",")
    }

    /// Whether everything is permitted, whatever the runtime.
    pub fn everything(&self) -> bool {
        self.raw.is_empty() && self.profiles.iter().any(Profile::permits_all)
    }

    /// Whether the flags for node depend on its version.
    pub fn needs_node_version(&self) -> bool {
        !self.everything()
    }

    /// The flags for a runtime. `version` is needed for node, unless everything is permitted.
    ///
    /// # Errors
    /// `Refused` when the runtime cannot enforce one of the profiles.
    pub fn flags(&self, kind: JsKind, version: Option<Version>) -> Result<Flags> {
        let mut flags: Vec<String> = Vec::new();
        // A runtime whose flags only take away must not take away what `all` gives.
        let all = self.profiles.iter().any(Profile::permits_all) && kind != JsKind::Deno;
        for profile in &self.profiles {
            let own = profile.flags(kind)?;
            for flag in own.iter().filter(|_| !all) {
                let spelled = spell(flag, kind, version);
                let Some(spelled) = spelled else { continue };
                match flags.iter_mut().find(|f| key(f) == key(&spelled)) {
                    // The later one wins, in the place of the first.
                    Some(earlier) => *earlier = spelled,
                    None => flags.push(spelled),
                }
            }
        }
        if kind == JsKind::Node && !flags.is_empty() {
            self.check_node(&flags, version)?;
        }
        flags.extend(self.raw.iter().cloned());
        Ok(Flags { allow_read: allows_read(kind, &flags), sandboxed: sandboxed(kind, &flags), flags })
    }

    fn check_node(&self, flags: &[String], version: Option<Version>) -> Result<()> {
        let names = self.names();
        if !flags.iter().any(|f| is_node_switch(f)) && flags.iter().any(|f| f.starts_with("--allow-")) {
            return Err(Error::new(
                Kind::Refused,
                format!("the permissions {names} would not be enforced: node ignores --allow-… flags without --permission"),
            )
            .hint("add --permission to the profile's node flags, or put readnet before it"));
        }
        if flags.iter().any(|f| is_node_switch(f)) && version.is_some_and(|v| v.major < 20) {
            let version = version.map(|v| v.to_string()).unwrap_or_default();
            return Err(Error::new(
                Kind::Refused,
                format!("the permissions {names} cannot be enforced: node {version} has no permission model"),
            )
            .hint("use node 20 or newer, or --runtime deno"));
        }
        Ok(())
    }
}

impl Profile {
    fn permits_all(&self) -> bool {
        matches!(self.rules, Rules::Builtin(0))
    }

    /// Its flags for a kind, as they are written down.
    fn flags(&self, kind: JsKind) -> Result<Vec<String>> {
        let owned = |flags: &[&str]| flags.iter().map(|f| (*f).to_owned()).collect();
        match &self.rules {
            Rules::Every(flags) => return Ok(flags.clone()),
            Rules::Kinds(kinds) => {
                if let Some((_, flags)) = kinds.iter().find(|(k, _)| *k == kind) {
                    return Ok(flags.clone());
                }
            }
            Rules::Builtin(at) => {
                let profile = &BUILTINS[*at];
                match kind {
                    JsKind::Deno => return Ok(owned(profile.deno)),
                    JsKind::Node if profile.node.is_some() => return Ok(owned(profile.node.unwrap_or(&[]))),
                    JsKind::Bun if profile.bun => return Ok(Vec::new()),
                    JsKind::Node | JsKind::Bun => {}
                }
            }
        }
        Err(self.refusal(kind.word()))
    }

    fn kinds(&self) -> Vec<&'static str> {
        match &self.rules {
            Rules::Every(_) => JsKind::ALL.iter().map(|k| k.word()).collect(),
            Rules::Kinds(kinds) => kinds.iter().map(|(k, _)| k.word()).collect(),
            Rules::Builtin(at) => {
                let b = &BUILTINS[*at];
                let mut kinds = vec!["deno"];
                kinds.extend(b.node.map(|_| "node"));
                kinds.extend(b.bun.then_some("bun"));
                kinds
            }
        }
    }

    fn refusal(&self, runtime: &str) -> Error {
        let kinds = self.kinds();
        let only = if kinds.is_empty() { "nothing".to_owned() } else { kinds.join(" and ") };
        let instead = kinds.first().map_or(String::new(), |k| format!("use --runtime {k}, or "));
        Error::new(
            Kind::Refused,
            format!(
                "{runtime} cannot enforce the permission profile \"{}\": it has flags for {only}",
                self.name
            ),
        )
        .hint(format!("{instead}define script.profiles.{}.{runtime}", self.name))
    }
}

/// The refusal of permissions that an interpreter other than a JavaScript
/// runtime cannot enforce; nothing when everything is permitted.
pub fn refuse_for_interpreter(permissions: &Permissions, interpreter: &str) -> Result<()> {
    if permissions.everything() {
        return Ok(());
    }
    Err(Error::new(
        Kind::Refused,
        format!("{interpreter} cannot enforce the permissions {}", permissions.names()),
    )
    .hint("run it with --permissions all, or write the script for deno"))
}

fn look_up(word: &str, defined: &Map<String, Value>) -> Result<Profile> {
    let name = word.to_owned();
    if let Some(value) = defined.get(word) {
        return Ok(Profile { rules: defined_rules(word, value)?, name });
    }
    let found = BUILTINS.iter().position(|b| b.name == word || b.aliases.contains(&word));
    if let Some(at) = found {
        return Ok(Profile { name, rules: Rules::Builtin(at) });
    }
    let known = defined.keys().map(String::as_str).chain(BUILTINS.iter().map(|b| b.name));
    let error = Error::new(Kind::Usage, format!("there is no permission profile {word:?}"));
    Err(error.hint(match did_you_mean(word, known.clone()) {
        Some(guess) => guess,
        None => format!(
            "there are {}; define it under script.profiles.{word}",
            known.collect::<Vec<_>>().join(", ")
        ),
    }))
}

fn defined_rules(name: &str, value: &Value) -> Result<Rules> {
    let wrong = |place: &str, what: &str| {
        Err(Error::new(Kind::Config, format!("script.profiles.{name}{place}: {what}")))
    };
    match value {
        Value::String(text) => Ok(Rules::Every(words(text, &format!("script.profiles.{name}: "))?)),
        Value::Object(map) => {
            let mut kinds = Vec::new();
            for (word, flags) in map {
                let Some(kind) = JsKind::from_word(word) else {
                    return wrong(&format!(".{word}"), "expected one of deno, node, bun");
                };
                let place = format!(".{word}");
                let list = match flags {
                    Value::String(text) => words(text, &format!("script.profiles.{name}{place}: "))?,
                    Value::Array(items) => {
                        let mut list = Vec::new();
                        for item in items {
                            let Some(flag) = item.as_str() else {
                                return wrong(&place, "expected a list of flags");
                            };
                            list.push(check_flag(flag, &format!("script.profiles.{name}{place}: "))?);
                        }
                        list
                    }
                    _ => return wrong(&place, "expected a list of flags"),
                };
                kinds.push((kind, list));
            }
            Ok(Rules::Kinds(kinds))
        }
        _ => wrong("", "expected an object that maps deno, node or bun to flags, or a text of flags"),
    }
}

fn words(text: &str, place: &str) -> Result<Vec<String>> {
    text.split_whitespace().map(|w| check_flag(w, place)).collect()
}

/// A word that is no flag would be taken for the script.
fn check_flag(word: &str, place: &str) -> Result<String> {
    if word.starts_with('-') && word.len() > 1 {
        return Ok(word.to_owned());
    }
    Err(Error::new(
        Kind::Usage,
        format!("{place}{word:?} is no flag, and the runtime would take it for the script"),
    )
    .hint("every entry starts with a dash; a value belongs behind an equals sign: --allow-read=/srv"))
}

fn key(flag: &str) -> &str {
    flag.split_once('=').map_or(flag, |(name, _)| name)
}

fn is_node_switch(flag: &str) -> bool {
    matches!(flag, "--permission" | "--experimental-permission")
}

/// The flag as this version of the runtime spells it; nothing when the version
/// grants what it asks for anyway and does not know the flag.
fn spell(flag: &str, kind: JsKind, version: Option<Version>) -> Option<String> {
    let (JsKind::Node, Some(v)) = (kind, version) else { return Some(flag.to_owned()) };
    if is_node_switch(flag) {
        // 22.13 and 23.5 were the first to take the flag without its prefix; 24 dropped the other.
        let plain = v >= Version::new(23, 5, 0) || (v.major == 22 && v >= Version::new(22, 13, 0));
        return Some(if plain { "--permission" } else { "--experimental-permission" }.to_owned());
    }
    // Until 25 the permission model left the network open and did not know this flag.
    if key(flag) == "--allow-net" && v.major < 25 {
        return None;
    }
    Some(flag.to_owned())
}

fn allows_read(kind: JsKind, flags: &[String]) -> bool {
    let has = |names: &[&str]| flags.iter().any(|f| names.contains(&key(f)));
    match kind {
        JsKind::Bun => true,
        JsKind::Deno => has(&["--allow-all", "-A", "--allow-read", "-R"]),
        JsKind::Node => !has(&["--permission", "--experimental-permission"]) || has(&["--allow-fs-read"]),
    }
}

fn sandboxed(kind: JsKind, flags: &[String]) -> bool {
    match kind {
        JsKind::Bun => false,
        JsKind::Deno => !flags.iter().any(|f| matches!(f.as_str(), "--allow-all" | "-A")),
        JsKind::Node => flags.iter().any(|f| is_node_switch(f)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn flags(text: &str, kind: JsKind) -> Vec<String> {
        let version = (kind == JsKind::Node).then_some(Version::new(26, 1, 0));
        Permissions::parse(text, &json!({})).unwrap().flags(kind, version).unwrap().flags
    }

    fn refusal(text: &str, kind: JsKind) -> Error {
        Permissions::parse(text, &json!({})).unwrap().flags(kind, Some(Version::new(26, 1, 0))).unwrap_err()
    }

    #[test]
    fn built_in_profiles_have_the_documented_flags() {
        let deno = [
            ("all", "--allow-all"),
            ("unsandboxed", "--allow-all"),
            ("net", "--allow-net --allow-env"),
            ("read", "--allow-read --allow-env"),
            ("read-net", "--allow-read --allow-net --allow-env"),
            ("strict", "--allow-net=127.0.0.1 --allow-env"),
        ];
        for (name, expected) in deno {
            assert_eq!(flags(name, JsKind::Deno).join(" "), expected, "{name}");
        }
        assert!(flags("all", JsKind::Bun).is_empty() && flags("off", JsKind::Node).is_empty());
        for name in ["net", "read", "readnet", "strict"] {
            let e = refusal(name, JsKind::Bun);
            assert_eq!(e.exit_code(), 77);
            assert!(e.message().contains(&format!("\"{name}\"")) && e.message().contains("bun"), "{e}");
            assert!(e.to_string().contains(&format!("script.profiles.{name}.bun")), "{e}");
        }
        for name in ["net", "read", "strict"] {
            assert!(refusal(name, JsKind::Node).to_string().contains("--runtime deno"));
        }
    }

    #[test]
    fn readnet_means_the_same_on_every_version_of_node() {
        let p = Permissions::parse("readnet", &json!({})).unwrap();
        let on = |major, minor| {
            p.flags(JsKind::Node, Some(Version::new(major, minor, 0))).map(|f| f.flags.join(" "))
        };
        assert_eq!(on(20, 20).unwrap(), "--experimental-permission --allow-fs-read=*");
        assert_eq!(on(22, 12).unwrap(), "--experimental-permission --allow-fs-read=*");
        assert_eq!(on(22, 13).unwrap(), "--permission --allow-fs-read=*");
        assert_eq!(on(23, 4).unwrap(), "--experimental-permission --allow-fs-read=*");
        assert_eq!(on(24, 0).unwrap(), "--permission --allow-fs-read=*");
        assert_eq!(on(25, 0).unwrap(), "--permission --allow-fs-read=* --allow-net");
        assert_eq!(on(18, 20).unwrap_err().exit_code(), 77);
    }

    #[test]
    fn composition_unites_and_the_later_value_wins_in_the_first_place() {
        assert_eq!(
            flags("read,strict", JsKind::Deno).join(" "),
            "--allow-read --allow-env --allow-net=127.0.0.1"
        );
        assert_eq!(flags("strict,net", JsKind::Deno).join(" "), "--allow-net --allow-env");
        assert_eq!(
            flags("strict,raw:--allow-read=/a,/b --allow-write=/tmp", JsKind::Deno).join(" "),
            "--allow-net=127.0.0.1 --allow-env --allow-read=/a,/b --allow-write=/tmp"
        );
        assert_eq!(refusal("readnet,strict", JsKind::Node).exit_code(), 77);
        assert!(flags("all,readnet", JsKind::Node).is_empty(), "all is not narrowed by what follows it");
    }

    #[test]
    fn own_profiles_replace_built_in_ones() {
        let defined = json!({
            "strict": {"deno": ["--allow-net=localhost"]},
            "tmp": {"deno": ["--allow-write=/tmp"], "node": "--permission --allow-fs-write=/tmp"},
            "loose": {"node": ["--allow-fs-write=/tmp"]},
            "mine": "--allow-read=/srv --allow-env",
            "bare": {"deno": ["/srv"]},
            "odd": {"ruby": []},
        });
        let flags = |text: &str, kind| {
            Permissions::parse(text, &defined)?
                .flags(kind, Some(Version::new(24, 0, 0)))
                .map(|f| f.flags.join(" "))
        };
        assert_eq!(
            flags("strict,mine", JsKind::Deno).unwrap(),
            "--allow-net=localhost --allow-read=/srv --allow-env"
        );
        assert_eq!(flags("tmp", JsKind::Node).unwrap(), "--permission --allow-fs-write=/tmp");
        assert!(flags("loose", JsKind::Node).unwrap_err().message().contains("--permission"));
        assert_eq!(
            flags("readnet,loose", JsKind::Node).unwrap(),
            "--permission --allow-fs-read=* --allow-fs-write=/tmp"
        );
        assert_eq!(flags("mine", JsKind::Bun).unwrap(), "--allow-read=/srv --allow-env");
        assert!(flags("bare", JsKind::Deno).unwrap_err().message().contains("script.profiles.bare.deno"));
        assert_eq!(flags("odd", JsKind::Deno).unwrap_err().exit_code(), 65);
    }

    #[test]
    fn what_is_no_profile_is_refused_with_the_right_spelling() {
        let fail = |text: &str| Permissions::parse(text, &json!({})).unwrap_err().to_string();
        assert!(fail("--allow-read=/a,/b").contains("'raw:--allow-read=/a,/b'"));
        assert!(fail("read,--allow-write").contains("'read,raw:--allow-write'"));
        assert!(fail("redanet").contains("readnet"));
        assert!(fail("raw:/srv").contains("no flag"));
        assert!(fail(" , ").contains("no profile"));
    }

    #[test]
    fn reading_and_sandboxes_are_told_from_the_flags() {
        let of = |text: &str, kind| {
            let f = Permissions::parse(text, &json!({}))
                .unwrap()
                .flags(kind, Some(Version::new(26, 0, 0)))
                .unwrap();
            (f.allow_read, f.sandboxed)
        };
        assert_eq!(of("all", JsKind::Deno), (true, false));
        assert_eq!(of("read", JsKind::Deno), (true, true));
        assert_eq!(of("strict", JsKind::Deno), (false, true));
        assert_eq!(of("readnet", JsKind::Node), (true, true));
        assert_eq!(of("all", JsKind::Bun), (true, false));
    }
}
