//! What listens to events by declaration: hooks and consumers, as the settings
//! describe them. Starts nothing.

use super::bus::Filter;
use crate::settings::{self, Settings, parse_duration};
use crate::util::did_you_mean;
use serde_json::{Map, Value};
use std::time::Duration;

/// What is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Run {
    /// A program and its arguments.
    Words(Vec<String>),
    /// A text for `sh -c`.
    Shell(String),
    /// What `mcpx run` takes.
    Script(String),
}

impl Run {
    /// It as one line, for a person.
    pub fn text(&self) -> String {
        match self {
            Run::Words(words) => words.join(" "),
            Run::Shell(text) => format!("sh -c {text}"),
            Run::Script(script) => format!("mcpx run {script}"),
        }
    }
}

/// A hook or a consumer.
#[derive(Clone, Debug, PartialEq)]
pub struct Listener {
    /// Its name.
    pub name: String,
    /// Which events it gets.
    pub filter: Filter,
    /// What is run.
    pub run: Run,
    /// How long it may take for one event, where it says so itself.
    pub timeout: Option<Duration>,
    /// The session of a consumer's calls.
    pub session: String,
}

/// A declaration: what it comes to, or what is wrong with it.
pub type Declaration = (String, Result<Listener, String>);

const HOOK: &[&str] = &["events", "servers", "command", "shell", "timeout"];
const CONSUMER: &[&str] = &["events", "servers", "command", "script", "session", "timeout"];

/// The declared hooks, by name.
pub fn hooks(settings: &Settings) -> Vec<Declaration> {
    hooks_in(&settings.get(&settings::HOOKS))
}

/// The hooks that a value of `hooks` declares, by name.
pub fn hooks_in(value: &Value) -> Vec<Declaration> {
    all(value, HOOK)
}

/// The declared consumers, by name.
pub fn consumers(settings: &Settings) -> Vec<Declaration> {
    consumers_in(&settings.get(&settings::EVENTS_CONSUMERS))
}

/// The consumers that a value of `events.consumers` declares, by name.
pub fn consumers_in(value: &Value) -> Vec<Declaration> {
    all(value, CONSUMER)
}

fn all(value: &Value, fields: &[&str]) -> Vec<Declaration> {
    let each = |(name, value): (&String, &Value)| {
        let outcome = match value {
            Value::Object(map) => listener(name, map, fields),
            _ => Err("is no object".into()),
        };
        (name.clone(), outcome)
    };
    value.as_object().into_iter().flatten().map(each).collect()
}

fn listener(name: &str, map: &Map<String, Value>, fields: &[&str]) -> Result<Listener, String> {
    if let Some(odd) = map.keys().find(|key| !fields.contains(&key.as_str())) {
        let near = did_you_mean(odd, fields.iter().copied()).map(|n| format!("; {n}")).unwrap_or_default();
        return Err(format!("has an unknown field \"{odd}\"{near}"));
    }
    let list = |key: &str| -> Result<Vec<String>, String> {
        match map.get(key) {
            None => Ok(Vec::new()),
            Some(Value::String(one)) if key != "command" => Ok(vec![one.clone()]),
            Some(Value::Array(list)) => {
                let text = |v: &Value| {
                    v.as_str()
                        .map(str::to_owned)
                        .ok_or_else(|| format!("\"{key}\" holds something that is no text"))
                };
                list.iter().map(text).collect()
            }
            Some(_) if key == "command" => {
                Err("\"command\" is a list of words; \"shell\" takes a text".into())
            }
            Some(_) => Err(format!("\"{key}\" is neither a text nor a list of texts")),
        }
    };
    let text = |key: &str| match map.get(key) {
        None => Ok(None),
        Some(Value::String(text)) if !text.is_empty() => Ok(Some(text.clone())),
        Some(_) => Err(format!("\"{key}\" is no text, or an empty one")),
    };
    let filter = Filter { kinds: list("events")?, servers: list("servers")?, sessions: Vec::new() };
    if let Some(word) = filter.unknown_kind() {
        let known = super::kinds::ALL.iter().map(|kind| kind.word);
        let near = did_you_mean(word, known).map(|n| format!("; {n}")).unwrap_or_default();
        return Err(format!("names the kind of event \"{word}\", which there is not{near}"));
    }
    let words = list("command")?;
    let ways: Vec<Run> = [
        (!words.is_empty()).then_some(Run::Words(words)),
        text("shell")?.map(Run::Shell),
        text("script")?.map(Run::Script),
    ]
    .into_iter()
    .flatten()
    .collect();
    let other = fields.iter().find(|f| matches!(**f, "shell" | "script")).copied().unwrap_or_default();
    let [run] = <[Run; 1]>::try_from(ways).map_err(|ways| match ways.len() {
        0 => format!("needs \"command\" or \"{other}\""),
        _ => format!("has both \"command\" and \"{other}\""),
    })?;
    let timeout = text("timeout")?.map(|t| parse_duration(&t).map_err(|why| format!("\"timeout\": {why}")));
    let session = text("session")?.unwrap_or_else(|| format!("consumer-{name}"));
    Ok(Listener { name: name.to_owned(), filter, run, timeout: timeout.transpose()?, session })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn declarations_are_read_and_their_mistakes_named() {
        let read = |value: Value| all(&json!({ "n": value }), HOOK).remove(0).1;
        let hook = read(
            json!({"events": ["call", "server.failed"], "servers": "a", "command": ["x", "y z"], "timeout": "2s"}),
        );
        let hook = hook.unwrap();
        assert_eq!((hook.filter.kinds.len(), &hook.filter.servers), (2, &vec!["a".to_owned()]));
        assert_eq!((hook.run.text(), hook.timeout), ("x y z".into(), Some(Duration::from_secs(2))));
        assert_eq!(read(json!({"shell": "a | b"})).unwrap().run, Run::Shell("a | b".into()));
        for (value, part) in [
            (json!("x"), "no object"),
            (json!({}), "needs \"command\" or \"shell\""),
            (json!({"command": []}), "needs \"command\""),
            (json!({"command": "ls -l"}), "list of words"),
            (json!({"command": ["x"], "shell": "y"}), "has both"),
            (json!({"comand": ["x"]}), "did you mean \"command\""),
            (json!({"command": ["x"], "events": ["call.finish"]}), "did you mean \"call.finished\""),
            (json!({"command": ["x"], "events": 3}), "neither a text nor a list"),
            (json!({"command": [3]}), "no text"),
            (json!({"command": ["x"], "timeout": "soon"}), "\"timeout\""),
            (json!({"script": "x"}), "unknown field"),
        ] {
            let message = read(value.clone()).unwrap_err();
            assert!(message.contains(part), "{value}: {message}");
        }
        let consumer = all(&json!({"c": {"script": "s.ts"}}), CONSUMER).remove(0).1.unwrap();
        assert_eq!((consumer.run, consumer.session), (Run::Script("s.ts".into()), "consumer-c".into()));
    }
}
