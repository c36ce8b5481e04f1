//! Keeps secrets out of the log: texts that are known to be secret, values under
//! names that sound so, and bearer tokens. Knows nothing of records.

use super::text::{Needle, escaped};
use serde_json::Value;

/// A secret shorter than this would hide half of every text.
const SHORTEST: usize = 6;

/// What stands instead.
const STARS: &str = "********";

/// Parts of names whose values are secret, in lower case without `_` and `-`.
const NAMES: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "authorization",
    "credential",
    "privatekey",
    "accesskey",
    "accountkey",
    "authkey",
    "encryptionkey",
    "masterkey",
    "servicekey",
    "signingkey",
    "cookie",
];

/// A variable of the environment named like this is a secret (`STRIPE_KEY`), unless it is half of a pair. An argument
/// named so in small letters is mostly none: `sort_key`, `issue_key`.
const KEY: &str = "_KEY";

/// Replaces secrets by stars.
#[derive(Debug, Default)]
pub struct Redactor {
    known: Vec<Needle>,
    bearer: Option<Needle>,
    /// Hidden where they are all of a text, however short they are.
    exact: Vec<String>,
}

/// Gathers the texts and numbers below secret names.
fn named(value: &Value, secret: bool, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            map.iter().for_each(|(key, value)| named(value, secret || Redactor::is_secret_name(key), found));
        }
        Value::Array(list) => list.iter().for_each(|value| named(value, secret, found)),
        Value::String(text) if secret && !text.is_empty() => found.push(text.clone()),
        Value::Number(number) if secret => found.push(number.to_string()),
        _ => {}
    }
}

impl Redactor {
    /// Hides these texts wherever they appear.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Redactor {
        // As they are in JSON, and as they are.
        let both = |s: &str| [escaped(s), s.to_owned()];
        let mut texts: Vec<String> =
            secrets.into_iter().filter(|s| s.len() >= SHORTEST).flat_map(both).collect();
        // The longest first, so that one that holds another is hidden whole.
        texts.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        texts.dedup();
        Redactor {
            known: texts.into_iter().filter_map(Needle::new).collect(),
            bearer: Needle::new("Bearer "),
            exact: Vec::new(),
        }
    }

    /// Whether a value of this name is secret.
    pub fn is_secret_name(name: &str) -> bool {
        let plain: String =
            name.chars().filter(|c| !matches!(c, '_' | '-')).map(|c| c.to_ascii_lowercase()).collect();
        let is_key = name.ends_with(KEY) && !name.contains("PUBLIC");
        is_key || NAMES.iter().any(|part| plain.contains(part))
    }

    /// Hides the values of secret names, at any depth.
    pub fn hide_names(value: &mut Value) {
        match value {
            Value::Object(map) => {
                for (key, value) in map.iter_mut() {
                    let holds = !matches!(value, Value::Null | Value::Bool(_));
                    if holds && Redactor::is_secret_name(key) {
                        *value = STARS.into();
                    } else {
                        Redactor::hide_names(value);
                    }
                }
            }
            Value::Array(list) => list.iter_mut().for_each(Redactor::hide_names),
            _ => {}
        }
    }

    /// Hides what stands under secret names in these arguments, wherever else it appears.
    pub fn of_arguments(arguments: &Value) -> Redactor {
        let mut found = Vec::new();
        named(arguments, false, &mut found);
        Redactor { exact: found.clone(), ..Redactor::new(found.iter().map(String::as_str)) }
    }

    /// Hides what is secret in texts and numbers at any depth.
    pub fn hide_in(&self, value: &mut Value) {
        match value {
            Value::Object(map) => map.values_mut().for_each(|value| self.hide_in(value)),
            Value::Array(list) => list.iter_mut().for_each(|value| self.hide_in(value)),
            Value::String(text) if self.exact.contains(text) => *value = STARS.into(),
            Value::String(text) => *text = self.hide(std::mem::take(text)),
            Value::Number(number) if self.exact.contains(&number.to_string()) => *value = STARS.into(),
            _ => {}
        }
    }

    /// Hides what is secret in a line of JSON.
    pub fn hide(&self, line: String) -> String {
        let mut line = line;
        for needle in &self.known {
            let mut from = 0;
            while let Some(at) = needle.find(line.as_bytes(), from) {
                line.replace_range(at..at + needle.bytes().len(), STARS);
                from = at + STARS.len();
            }
        }
        let Some(bearer) = &self.bearer else { return line };
        let mut from = 0;
        while let Some(at) = bearer.find(line.as_bytes(), from) {
            let start = at + bearer.bytes().len();
            let rest = &line.as_bytes()[start..];
            let token = |b: &u8| {
                b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~' | b'+' | b'/' | b'=')
            };
            let length = rest.iter().position(|b| !token(b)).unwrap_or(rest.len());
            if length >= SHORTEST {
                line.replace_range(start..start + length, STARS);
            }
            from = start;
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_of_secrets_are_told_from_others() {
        for name in [
            "GITHUB_TOKEN",
            "STRIPE_KEY",
            "AWS_ACCESS_KEY_ID",
            "api-key",
            "apiKey",
            "Set-Cookie",
            "signing_key",
        ] {
            assert!(Redactor::is_secret_name(name), "{name}");
        }
        for name in ["SSH_PUBLIC_KEY", "sort_key", "issueKey", "key", "KEY", "path"] {
            assert!(!Redactor::is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn secrets_become_stars_and_the_rest_stays() {
        let redactor = Redactor::new(["hunter22", "with\"quote", "hunter22-and-more", "abc"]);
        let line =
            r#"{"m":"hunter22 and hunter22-and-more, with\"quote; abc; Bearer eyJhbGci.x-y Bearer of news"}"#;
        let hidden = redactor.hide(line.to_owned());
        assert_eq!(hidden, r#"{"m":"******** and ********, ********; abc; Bearer ******** Bearer of news"}"#);
        let mut value = json!({"api_key": "k", "n": [{"X-Auth-Token": ["t"], "tokens": true}], "path": "/p"});
        Redactor::hide_names(&mut value);
        let stars = "********";
        assert_eq!(
            value,
            json!({"api_key": stars, "n": [{"X-Auth-Token": stars, "tokens": true}], "path": "/p"})
        );
    }

    #[test]
    fn what_is_secret_in_arguments_is_secret_everywhere() {
        let given =
            json!({"password": "hunter1", "auth": {"token": ["a\"quoted\"one", 7]}, "user": "someone"});
        let mut result =
            json!({"content": [{"text": given.to_string()}], "pin": 7, "n": 70, "user": "someone"});
        let redactor = Redactor::of_arguments(&given);
        redactor.hide_in(&mut result);
        let text = result.to_string();
        assert!(!text.contains("hunter1") && !text.contains("quoted"), "{text}");
        assert_eq!((&result["pin"], &result["n"]), (&json!("********"), &json!(70)));
        assert!(text.contains("someone"), "{text}");
    }
}
