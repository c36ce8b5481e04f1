//! The definitions of permission profiles: those in `defaults.json`, and the
//! user's own under `script.profiles`. Knows nothing of composition.

use super::runtimes::JsKind;
use crate::catalog::Grant;
use crate::error::{Error, Kind, Result};
use crate::settings::{SCRIPT_PROFILES, Settings};
use crate::util::did_you_mean;
use serde_json::{Map, Value};
use std::sync::OnceLock;

/// Other names of the built-in profiles.
pub const ALIASES: &[(&str, &str)] =
    &[("none", "all"), ("off", "all"), ("unsandboxed", "all"), ("read-net", "readnet")];

/// One profile, looked up.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Its name, as it was given.
    pub name: String,
    /// What it is for, when its definition says so.
    pub description: Option<String>,
    /// The tools that it grants; nothing when it says nothing about tools.
    pub tools: Option<Vec<Grant>>,
    rules: Rules,
}

#[derive(Clone, Debug, PartialEq)]
enum Rules {
    /// The same flags for every kind.
    Every(Vec<String>),
    /// Flags for the kinds that it lists.
    Kinds(Vec<(JsKind, Vec<String>)>),
    /// It is about tools alone.
    ToolsOnly,
}

impl Profile {
    /// Whether it permits a script everything on whichever runtime.
    pub fn permits_all(&self) -> bool {
        let Rules::Kinds(kinds) = &self.rules else { return false };
        kinds.len() == JsKind::ALL.len()
            && kinds.iter().all(|(kind, flags)| match kind {
                JsKind::Deno => flags.iter().any(|f| f == "--allow-all" || f == "-A"),
                JsKind::Bun | JsKind::Node => flags.is_empty(),
            })
    }

    /// What to tell about a name that may have been meant the other way round: no permissions at all.
    pub fn misread(&self) -> Option<String> {
        let name = &self.name;
        let doubtful = matches!(name.as_str(), "none" | "off") && self.permits_all();
        doubtful.then(|| {
            format!("permissions {name:?} means no sandbox at all; for the narrowest profile use strict")
        })
    }

    /// Whether it says nothing about what a runtime permits.
    pub fn tools_only(&self) -> bool {
        self.rules == Rules::ToolsOnly
    }

    /// Its flags for a kind, as they are written down.
    ///
    /// # Errors
    /// `Refused` when it has none for that kind.
    pub fn flags(&self, kind: JsKind) -> Result<&[String]> {
        match &self.rules {
            Rules::Every(flags) => Ok(flags),
            Rules::ToolsOnly => Ok(&[]),
            Rules::Kinds(kinds) => match kinds.iter().find(|(k, _)| *k == kind) {
                Some((_, flags)) => Ok(flags),
                None => Err(self.refusal(kind.word())),
            },
        }
    }

    fn kinds(&self) -> Vec<&'static str> {
        match &self.rules {
            Rules::Every(_) | Rules::ToolsOnly => JsKind::ALL.iter().map(|k| k.word()).collect(),
            Rules::Kinds(kinds) => {
                let has = |kind: &JsKind| kinds.iter().any(|(k, _)| k == kind);
                // In the order in which a hint should offer them.
                [JsKind::Deno, JsKind::Node, JsKind::Bun]
                    .iter()
                    .filter(|k| has(k))
                    .map(|k| k.word())
                    .collect()
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

/// The profiles that are there without any configuration, by name.
pub fn built_in() -> &'static Map<String, Value> {
    static BUILT_IN: OnceLock<Map<String, Value>> = OnceLock::new();
    BUILT_IN.get_or_init(|| match Settings::defaults().get(&SCRIPT_PROFILES) {
        Value::Object(map) => map,
        _ => Map::new(),
    })
}

/// The names of all profiles: the user's own, then the built-in ones that they do not replace.
pub fn names(defined: &Map<String, Value>) -> Vec<String> {
    let further = built_in().keys().filter(|name| !defined.contains_key(*name));
    defined.keys().chain(further).cloned().collect()
}

/// The profile of that name: the user's own, else a built-in one.
///
/// # Errors
/// `Usage` for an unknown name, `Config` for a definition that is none.
pub fn look_up(word: &str, defined: &Map<String, Value>) -> Result<Profile> {
    let real = ALIASES.iter().find(|(alias, _)| *alias == word).map_or(word, |(_, name)| name);
    let value = defined.get(word).or_else(|| defined.get(real)).or_else(|| built_in().get(real));
    if let Some(value) = value {
        return read(word, value);
    }
    let known = names(defined);
    let error = Error::new(Kind::Usage, format!("there is no permission profile {word:?}"));
    let guess = did_you_mean(word, known.iter().map(String::as_str));
    let guess = guess.map_or(String::new(), |guess| format!("{guess} "));
    Err(error.hint(format!("{guess}there are {}; define it under script.profiles.{word}", known.join(", "))))
}

/// What is wrong with the profiles that a value of `script.profiles` defines.
pub fn faults(value: &Value) -> Vec<Error> {
    value.as_object().into_iter().flatten().filter_map(|(name, value)| read(name, value).err()).collect()
}

fn read(name: &str, value: &Value) -> Result<Profile> {
    let wrong = |place: &str, what: &str| {
        Err(Error::new(Kind::Config, format!("script.profiles.{name}{place}: {what}")))
    };
    let mut profile =
        Profile { name: name.to_owned(), description: None, tools: None, rules: Rules::ToolsOnly };
    let map = match value {
        Value::String(text) => {
            profile.rules = Rules::Every(words(text, &format!("script.profiles.{name}: "))?);
            return Ok(profile);
        }
        Value::Object(map) => map,
        _ => return wrong("", "expected an object that maps deno, node or bun to flags, or a text of flags"),
    };
    let mut kinds = Vec::new();
    for (key, value) in map {
        let place = format!(".{key}");
        match (key.as_str(), value) {
            ("description", Value::String(text)) => profile.description = Some(text.clone()),
            ("description", _) => return wrong(&place, "expected a text"),
            ("tools", Value::Array(items)) => {
                let mut grants = Vec::new();
                for item in items {
                    let Some(text) = item.as_str() else {
                        return wrong(&place, "expected a list of tools, such as [\"github.get_*\"]");
                    };
                    match Grant::new(text, name) {
                        Ok(grant) => grants.push(grant),
                        Err(what) => return wrong(&place, &what),
                    }
                }
                profile.tools = Some(grants);
            }
            ("tools", _) => return wrong(&place, "expected a list of tools, such as [\"github.get_*\"]"),
            (word, flags) => {
                let Some(kind) = JsKind::from_word(word) else {
                    return wrong(&place, "expected one of deno, node, bun, tools, description");
                };
                let place = format!("script.profiles.{name}{place}: ");
                let list = match flags {
                    Value::String(text) => words(text, &place)?,
                    Value::Array(items) => items
                        .iter()
                        .map(|item| match item.as_str() {
                            Some(flag) => check_flag(flag, &place),
                            None => Err(Error::new(Kind::Config, format!("{place}expected a list of flags"))),
                        })
                        .collect::<Result<_>>()?,
                    _ => return wrong(&format!(".{word}"), "expected a list of flags"),
                };
                kinds.push((kind, list));
            }
        }
    }
    if !kinds.is_empty() || profile.tools.is_none() {
        profile.rules = Rules::Kinds(kinds);
    }
    Ok(profile)
}

/// The flags in a text.
pub fn words(text: &str, place: &str) -> Result<Vec<String>> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_built_in_profile_is_one_and_says_what_it_is_for() {
        for (name, value) in built_in() {
            let profile = read(name, value).unwrap();
            assert!(profile.description.is_some() && profile.flags(JsKind::Deno).is_ok(), "{name}");
            assert_eq!(profile.permits_all(), name == "all", "{name}");
        }
        for (alias, name) in ALIASES {
            assert!(built_in().contains_key(*name) && !built_in().contains_key(*alias), "{alias}");
        }
    }

    #[test]
    fn a_name_that_sounds_like_no_permissions_is_pointed_out() {
        let of = |name: &str| look_up(name, &Map::new()).unwrap().misread();
        assert!(of("none").unwrap().contains("\"none\" means no sandbox at all"));
        assert!(of("off").is_some() && of("all").is_none() && of("unsandboxed").is_none());
        let hint = look_up("stric", &Map::new()).unwrap_err();
        let hint = hint.hint_text().unwrap();
        assert!(hint.contains("did you mean") && built_in().keys().all(|n| hint.contains(n)), "{hint}");
    }

    #[test]
    fn tools_are_granted_by_patterns_and_leave_the_runtime_alone() {
        let defined = json!({
            "gh": {"tools": ["github.get_*"]},
            "both": {"tools": ["demo.echo"], "deno": ["--allow-read"]},
            "bad": {"tools": ["github"]}, "odd": {"tools": "a.b"}, "none": {"deno": []},
        });
        let of = |name: &str| look_up(name, defined.as_object().unwrap());
        let gh = of("gh").unwrap();
        assert!(gh.tools_only() && gh.flags(JsKind::Bun).unwrap().is_empty());
        assert_eq!(gh.tools.unwrap()[0].pattern(), "github.get_*");
        let both = of("both").unwrap();
        assert!(!both.tools_only() && both.flags(JsKind::Bun).is_err());
        assert!(of("bad").unwrap_err().message().contains("script.profiles.bad.tools"));
        assert_eq!(of("odd").unwrap_err().exit_code(), 65);
        assert!(!of("none").unwrap().tools_only(), "the user's own comes before an alias");
    }
}
