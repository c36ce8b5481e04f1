//! How settings are shown, and which of them a running daemon takes: one row of
//! JSON for commands and for the daemon's interface. Secrets are masked.

use super::apply::known;
use super::declared::{Declared, Scope};
use super::kind::Val;
use super::layers::RuntimeValue;
use super::resolve::{Resolved, Settings};
use super::table::ALL;
use crate::error::{Error, Kind, Result};
use serde_json::{Value, json};

impl Settings {
    /// Every setting as a row; see `Resolved::row`.
    pub fn rows(&self) -> Vec<Value> {
        ALL.iter().zip(self.iter()).map(|(setting, row)| row.row(*setting)).collect()
    }

    /// One setting as a row.
    ///
    /// # Errors
    /// `Usage`, with the nearest key.
    pub fn row(&self, key: &str) -> Result<Value> {
        let setting = known(key)?;
        self.explain(key)
            .map(|row| row.row(setting))
            .ok_or_else(|| Error::new(Kind::Internal, format!("{key} was not resolved")))
    }
}

impl Resolved {
    /// `{key, value, text, source, displaced[{value, text, source}], default, scope, hot, secret, kind, variables[], flags[], help}`.
    fn row(&self, setting: &dyn Declared) -> Value {
        let displaced: Vec<Value> = self
            .displaced
            .iter()
            .map(|d| {
                json!({"value": d.value.to_json(), "text": d.value.text(), "source": d.source.to_string()})
            })
            .collect();
        json!({
            "key": self.key,
            "value": self.value.to_json(),
            "text": self.value.text(),
            "source": self.source.to_string(),
            "displaced": displaced,
            "default": setting.default_text(),
            "scope": setting.scope().word(),
            "hot": setting.hot(),
            "secret": setting.secret(),
            "kind": setting.kind().describe(),
            "variables": setting.env_names(),
            "flags": setting.flag_names(),
            "help": setting.help(),
        })
    }
}

/// An override for a running daemon, checked.
///
/// # Errors
/// `Usage` for an unknown key or a wrong value; `Refused` for a setting that a
/// running daemon does not take, with what to do instead.
pub fn runtime_value(key: &str, value: &Value) -> Result<RuntimeValue> {
    let setting = changeable(key)?;
    let parsed = setting.kind().parse_json(value);
    let parsed = parsed.map_err(|m| Error::new(Kind::Usage, format!("{key}: {m}")))?;
    // A relative path would be taken from wherever the daemon happens to be.
    let relative = |p: &String| !p.is_empty() && p != "-" && !p.starts_with(['/', '~']);
    let paths = match (setting.kind(), &parsed) {
        (super::Kind::Path, Val::Text(path)) => relative(path),
        (_, Val::Paths(list)) => list.iter().any(relative),
        _ => false,
    };
    if paths {
        return Err(Error::new(Kind::Usage, format!("{key}: a running daemon needs an absolute path")));
    }
    Ok(RuntimeValue { key: setting.key().to_owned(), value: value.clone() })
}

/// The setting of this key, when a running daemon takes a value for it.
///
/// # Errors
/// As [`runtime_value`].
pub fn changeable(key: &str) -> Result<&'static dyn Declared> {
    let setting = known(key)?;
    let refuse = |why: &str, hint: String| {
        Err(Error::new(Kind::Refused, format!("{key} cannot be set in a running daemon: {why}")).hint(hint))
    };
    let names = [setting.flag_names(), setting.env_names()].concat().join(" or ");
    if setting.spec().bootstrap {
        return refuse("it is needed before a configuration is read", format!("use {names} instead"));
    }
    match (setting.scope(), setting.hot()) {
        (Scope::Daemon | Scope::Call, true) => Ok(setting),
        (Scope::Daemon | Scope::Call, false) => refuse(
            "it is taken at the start",
            format!(
                "mcpx settings set {key} VALUE --persist user writes it into a file; then mcpx stop, and the next command starts a daemon that has it"
            ),
        ),
        (Scope::Client | Scope::Plugin, _) => refuse(
            &format!("it is {}", setting.scope().whose()),
            format!(
                "give the command {names}, or write it into a file: mcpx settings set {key} VALUE --persist user"
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_daemon_takes_what_is_hot_and_its_own() {
        assert_eq!(runtime_value("pool.max", &json!(3)).unwrap().key, "pool.max");
        assert_eq!(runtime_value("pool.callTimeout", &json!("3s")).unwrap().value, json!("3s"));
        for (key, value, kind, part, hint) in [
            ("pool.mx", json!(1), Kind::Usage, "no setting \"pool.mx\"", "pool.max"),
            ("pool.max", json!(0), Kind::Usage, "pool.max: must be from 1", ""),
            ("transport.listen", json!("x"), Kind::Refused, "taken at the start", "mcpx stop"),
            ("transport.bearerToken", json!("s3cret"), Kind::Refused, "taken at the start", "--persist user"),
            ("output.json", json!(true), Kind::Refused, "of the command", "--json"),
            ("paths.state", json!("/x"), Kind::Refused, "before a configuration", "MCPX_STATE_DIR"),
        ] {
            let e = runtime_value(key, &value).unwrap_err();
            assert!(e.kind() == kind && e.message().contains(part), "{e}");
            assert!(e.hint_text().unwrap_or_default().contains(hint), "{e}");
            assert!(!e.to_string().contains("s3cret"));
        }
    }

    #[test]
    fn every_setting_has_a_row_and_secrets_are_stars() {
        let env = crate::util::Env::from_pairs([("MCPX_TRANSPORT_BEARER_TOKEN", "s3cret")]);
        let settings = Settings::resolve(super::super::Layers::new(&env)).unwrap();
        let rows = settings.rows();
        assert_eq!(rows.len(), ALL.len());
        assert!(!Value::from(rows).to_string().contains("s3cret"));
        let row = settings.row("transport.bearerToken").unwrap();
        assert_eq!((row["value"].as_str(), row["secret"].as_bool()), (Some("********"), Some(true)));
        assert_eq!(row["source"], "MCPX_TRANSPORT_BEARER_TOKEN");
        assert_eq!(row["displaced"][0]["source"], "default");
    }
}
