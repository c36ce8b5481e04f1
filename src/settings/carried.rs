//! The values that travel with a request and hold for it alone: those of the
//! settings that each call decides. Knows nothing of how they travel.

use super::declared::{Declared, Scope, Setting, declared};
use super::kind::{FromVal, Val};
use super::layers::Source;
use super::resolve::Settings;
use super::table::ALL;
use crate::error::{Error, Kind, Result};
use serde_json::{Map, Value};

/// Call-scoped values, by key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Carried(Vec<(&'static str, Val)>);

impl Carried {
    /// What a caller's own variables, presets and flags say of the settings that
    /// each call decides. What its files say the daemon reads itself.
    pub fn of(settings: &Settings) -> Carried {
        let own = |source: &Source| matches!(source, Source::Env(_) | Source::Preset(..) | Source::Flag(_));
        let each = ALL.iter().zip(settings.iter());
        let taken = each.filter(|(d, row)| d.scope() == Scope::Call && own(&row.source));
        Carried(taken.map(|(_, row)| (row.key, row.value.clone())).collect())
    }

    /// Reads what [`Carried::text`] wrote. A key that is no setting is passed
    /// over, as it may be one of a later version.
    ///
    /// # Errors
    /// `Usage` when it is no JSON object, a setting in it is not one that a call
    /// decides, or a value is wrong.
    pub fn parse(text: &str) -> Result<Carried> {
        let wrong = |what: String| Error::new(Kind::Usage, what);
        let map: Map<String, Value> =
            serde_json::from_str(text).map_err(|e| wrong(format!("expected a JSON object: {e}")))?;
        let mut out = Vec::new();
        for (key, value) in &map {
            let Some(setting) = declared(key) else { continue };
            if setting.scope() != Scope::Call {
                let what = format!("{key} cannot be given with a request: it is {}", setting.scope().whose());
                return Err(wrong(what).hint(format!("only these can: {}", keys())));
            }
            let value = setting.kind().parse_json(value).map_err(|m| wrong(format!("{key}: {m}")))?;
            out.push((setting.key(), value));
        }
        Ok(Carried(out))
    }

    /// The values as one line of ASCII: a JSON object; `None` when there are none.
    pub fn text(&self) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        let map: Map<String, Value> =
            self.0.iter().map(|(key, value)| ((*key).to_owned(), value.to_json())).collect();
        let mut out = String::new();
        for unit in Value::Object(map).to_string().encode_utf16() {
            match u8::try_from(unit).ok().filter(u8::is_ascii) {
                Some(byte) => out.push(char::from(byte)),
                None => out.push_str(&format!("\\u{unit:04x}")),
            }
        }
        Some(out)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of a setting, when it is among them.
    pub fn get<T: FromVal>(&self, setting: &Setting<T>) -> Option<T> {
        let (_, value) = self.0.iter().find(|(key, _)| *key == setting.key())?;
        T::from_val(value)
    }
}

/// The keys that may travel with a request, separated by commas.
fn keys() -> String {
    let keys: Vec<&str> = ALL.iter().filter(|d| d.scope() == Scope::Call).map(|d| d.key()).collect();
    keys.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::*;
    use super::Carried;
    use crate::util::Env;
    use std::time::Duration;

    #[test]
    fn what_the_caller_says_travels_and_nothing_else() {
        let env = Env::from_pairs([("MCPX_POOL_CALL_TIMEOUT", "3s"), ("MCPX_POOL_MAX", "2")]);
        let settings = Settings::resolve(Layers::new(&env)).unwrap();
        let carried = Carried::of(&settings);
        let text = carried.text().unwrap();
        assert_eq!(text, "{\"pool.callTimeout\":\"3s\"}");
        let back = Carried::parse(&text).unwrap();
        assert_eq!(back, carried);
        assert_eq!(back.get(&POOL_CALL_TIMEOUT), Some(Duration::from_secs(3)));
        assert_eq!(back.get(&MCP_VALIDATE_ARGUMENTS), None);
        assert_eq!(Carried::of(&Settings::defaults()).text(), None);
    }

    #[test]
    fn what_does_not_belong_there_is_refused() {
        for (text, part) in [
            ("[]", "expected a JSON object"),
            ("{", "expected a JSON object"),
            ("{\"pool.max\": 3}", "pool.max cannot be given with a request: it is of the daemon"),
            ("{\"output.json\": true}", "it is of the command"),
            ("{\"pool.callTimeout\": \"5\"}", "pool.callTimeout: \"5\" has no unit"),
            ("{\"mcp.validateArguments\": 1}", "mcp.validateArguments: expected true or false"),
        ] {
            let e = Carried::parse(text).unwrap_err();
            assert!(e.kind() == crate::error::Kind::Usage && e.message().contains(part), "{e}");
        }
        assert_eq!(Carried::parse("{\"pool.ofTomorrow\": 1}").unwrap(), Carried::default());
    }
}
