//! Permission profiles: names that stand for the flags with which a runtime
//! limits a script. Decides what can be enforced and refuses the rest; starts
//! nothing and knows nothing of where a runtime is installed.

use super::faults::Faults;
use super::profiles::{Profile, look_up, words};
use super::runtimes::{JsKind, Version};
use crate::catalog::Grant;
use crate::error::{Error, Kind, Result};
use crate::settings::{SCRIPT_PERMISSIONS, SCRIPT_PROFILES, Settings};
use serde_json::{Map, Value};

/// What a script may do, as it was asked for: profiles by name, and raw flags.
#[derive(Clone, Debug, PartialEq)]
pub struct Permissions {
    profiles: Vec<Profile>,
    raw: Vec<String>,
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
        let mut faults = Faults::default();
        while !rest.is_empty() {
            if let Some(raw) = rest.strip_prefix("raw:") {
                // Commas belong to the flags, so nothing can follow.
                permissions.raw = faults.keep(words(raw, "raw:")).unwrap_or_default();
                break;
            }
            let (word, tail) = rest.split_once(',').unwrap_or((rest, ""));
            let word = word.trim();
            if word.starts_with('-') {
                let before = &text[..text.len() - rest.len()];
                let error = Error::new(
                    Kind::Usage,
                    format!("--permissions: {rest:?} are flags of a runtime, not names of profiles"),
                );
                faults.add(error.hint(format!(
                    "to hand them to the runtime as they are: --permissions '{before}raw:{rest}'"
                )));
                break;
            }
            if !word.is_empty() {
                permissions.profiles.extend(faults.keep(look_up(word, defined)));
            }
            rest = tail.trim_start();
        }
        faults.check()?;
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

    /// Whether everything is permitted to the script itself, whatever the
    /// runtime. What tools it may call is another matter: see [`Permissions::grants`].
    pub fn everything(&self) -> bool {
        self.raw.is_empty()
            && (self.profiles.iter().any(Profile::permits_all)
                || self.profiles.iter().all(Profile::tools_only))
    }

    /// The profiles, in the order in which they were named.
    pub fn profiles(&self) -> &[Profile] {
        &self.profiles
    }

    /// The tools that may be called: those of all profiles that say something
    /// about tools. Nothing when none does, and then every tool may be.
    pub fn grants(&self) -> Option<Vec<Grant>> {
        let mut lists = self.profiles.iter().filter_map(|p| p.tools.as_ref()).peekable();
        lists.peek()?;
        Some(lists.flatten().cloned().collect())
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
        let mut faults = Faults::default();
        for profile in &self.profiles {
            let own = faults.keep(profile.flags(kind)).unwrap_or_default();
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
        faults.check()?;
        if kind == JsKind::Deno && self.everything() && flags.is_empty() {
            // Profiles that are about tools alone leave the runtime as it is without any.
            flags.push("--allow-all".into());
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
