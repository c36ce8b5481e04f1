//! Answers that need nobody: the rules of `elicit.rules`. Knows nothing of
//! what was asked but who asks.

use crate::error::{Error, Kind, Result};
use crate::util::glob;
use serde_json::Value;

/// What a rule says.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Accept, with this content over the defaults.
    Accept(Option<Value>),
    /// Say no.
    Decline,
    /// Say nothing.
    Cancel,
}

/// The rule for a question of this server, in a call of this tool: the longest
/// pattern that fits `server.tool`, or `server`.
///
/// # Errors
/// `Config`, when the rule cannot be read.
pub fn verdict(rules: &Value, server: &str, tool: Option<&str>) -> Result<Option<Verdict>> {
    let whole = tool.map(|tool| format!("{server}.{tool}"));
    let fits =
        |pattern: &str| glob(pattern, server) || whole.as_deref().is_some_and(|whole| glob(pattern, whole));
    let fitting = rules.as_object().into_iter().flatten().filter(|(pattern, _)| fits(pattern));
    let Some((pattern, rule)) = fitting.max_by_key(|(pattern, _)| pattern.len()) else { return Ok(None) };
    let verdict = read(rule);
    verdict.map(Some).map_err(|what| Error::new(Kind::Config, format!("elicit.rules: \"{pattern}\": {what}")))
}

fn read(rule: &Value) -> std::result::Result<Verdict, String> {
    let (word, content) = match rule {
        Value::String(word) => (word.as_str(), None),
        Value::Object(members) => {
            let word = members.get("action").and_then(Value::as_str).unwrap_or_default();
            (word, members.get("content").cloned())
        }
        _ => ("", None),
    };
    match word {
        "accept" => Ok(Verdict::Accept(content)),
        "decline" => Ok(Verdict::Decline),
        "cancel" => Ok(Verdict::Cancel),
        _ => Err("must be accept, decline or cancel, or an object with one of them as \"action\"".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_longest_pattern_decides() {
        let rules = json!({"*": "decline", "git*": "cancel",
            "github.create_*": {"action": "accept", "content": {"sure": true}}});
        let of = |server, tool| verdict(&rules, server, tool).unwrap();
        assert_eq!(of("files", Some("read")), Some(Verdict::Decline));
        assert_eq!(of("github", None), Some(Verdict::Cancel));
        let accepted = Verdict::Accept(Some(json!({"sure": true})));
        assert_eq!(of("github", Some("create_issue")), Some(accepted));
        assert_eq!(verdict(&json!({}), "files", None).unwrap(), None);
    }

    #[test]
    fn a_rule_that_cannot_be_read_is_named() {
        for odd in [json!({"a": "yes"}), json!({"a": 1}), json!({"a": {"content": {}}})] {
            assert!(verdict(&odd, "a", None).unwrap_err().message().contains("\"a\""), "{odd}");
        }
    }
}
