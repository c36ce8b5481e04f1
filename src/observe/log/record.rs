//! One record of the log, and the line that it becomes. Knows nothing of files.

use crate::log::Level;
use crate::observe::{Event, kinds};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Ids that come from outside, such as an editor's: pairs of a name and a value.
pub type Trace = Vec<(String, String)>;

/// The ids of what a record happened in; each may be empty.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Ids {
    /// The server's configured name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub server: String,
    /// The tool's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tool: String,
    /// The key of the server's instance.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub instance: String,
    /// The session key.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub session: String,
    /// The run's id.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub run: String,
    /// The call's id.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub call: String,
    /// Ids of the editor.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trace: Trace,
}

/// A record that is no event.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Entry {
    /// trace, debug, info, warn or error; anything else counts as info.
    pub level: String,
    /// Who says it: daemon, server, script, plugin, hook.
    pub source: String,
    /// What kind of thing it is, `family.what`; may be empty.
    pub event: String,
    /// The text.
    pub message: String,
    /// What it happened in.
    #[serde(flatten)]
    pub ids: Ids,
    /// More; absent when null.
    pub data: Value,
}

impl Entry {
    /// A text of somebody.
    pub fn new(level: Level, source: &str, message: impl Into<String>) -> Entry {
        let (level, source) = (level.word().to_owned(), source.to_owned());
        Entry { level, source, message: message.into(), ..Entry::default() }
    }
    /// The level; info when it is none.
    pub fn level(&self) -> Level {
        Level::from_word(&self.level).filter(|l| *l != Level::Off).unwrap_or(Level::Info)
    }
}

/// Texts longer than this are cut before they are recorded.
#[derive(Clone, Copy, Debug)]
pub struct Upto(pub usize);

impl Upto {
    /// The text, or its beginning up to a whole character with an ellipsis.
    pub fn cut(self, text: &str) -> String {
        if text.len() <= self.0 {
            return text.to_owned();
        }
        let end = (0..=self.0).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        format!("{}…", &text[..end])
    }
}

/// What waits to be written.
#[derive(Debug)]
pub(super) enum Item {
    /// Something that happened, and what of it the bus does not tell.
    Event(Arc<Event>, Option<Value>),
    /// A record, and when it was said.
    Entry(u64, Box<Entry>),
}

impl Item {
    pub fn at(&self) -> u64 {
        match self {
            Item::Event(event, _) => event.at,
            Item::Entry(at, _) => *at,
        }
    }
    /// The line, without its end. `at` instead of its own time, so that a file stays in order.
    pub fn line(self, at: u64, daemon: &str) -> String {
        match self {
            Item::Entry(_, entry) => {
                let level = entry.level();
                Line {
                    at,
                    level: level.word(),
                    source: &entry.source,
                    event: &entry.event,
                    message: &entry.message,
                    daemon,
                    ids: Some(&entry.ids),
                    ..Line::default()
                }
                .text(&entry.data)
            }
            Item::Event(event, extra) => line_of(&event, extra, at, daemon),
        }
    }
}

/// The level of an event's record.
pub(super) fn level_of(event: &Event) -> Level {
    let kind = event.kind;
    if kind == kinds::CALL_FINISHED.word {
        return if event.data["outcome"] == "ok" { Level::Info } else { Level::Warn };
    }
    if kind == kinds::CONFIG_BROKEN.word || kind == kinds::SERVER_FAILED.word {
        return Level::Error;
    }
    Level::Info
}

fn line_of(event: &Event, extra: Option<Value>, at: u64, daemon: &str) -> String {
    let mut more = match &event.data {
        Value::Object(map) => map.clone(),
        _ => Map::new(),
    };
    if let Some(Value::Object(extra)) = extra {
        more.extend(extra);
    }
    let mut text = |key: &str| match more.remove(key) {
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
        None => String::new(),
    };
    let mut ids = Ids {
        server: event.server.clone().unwrap_or_default(),
        tool: text("tool"),
        instance: text("instance"),
        session: event.session.clone().unwrap_or_default(),
        run: text("run"),
        call: text("call"),
        trace: Vec::new(),
    };
    let (message, outcome) = (text("message"), text("outcome"));
    ids.trace = more.remove("trace").and_then(|t| serde_json::from_value(t).ok()).unwrap_or_default();
    let mut number = |key: &str| more.remove(key);
    let (ms, sent, received) = (number("ms"), number("sent"), number("received"));
    let uri = event.uri.as_deref().unwrap_or_default();
    let line = Line {
        at,
        level: level_of(event).word(),
        source: if event.kind.starts_with("server.") { "server" } else { "daemon" },
        event: event.kind,
        message: &message,
        daemon,
        ids: Some(&ids),
        seq: event.seq,
        uri,
        ms,
        outcome: &outcome,
        sent,
        received,
        data: None,
    };
    line.text(&Value::Object(more))
}

/// A line. `at` comes first: readers look for a time without reading the rest.
#[derive(Default, Serialize)]
struct Line<'a> {
    at: u64,
    level: &'a str,
    source: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    event: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    message: &'a str,
    daemon: &'a str,
    #[serde(skip_serializing_if = "is_none")]
    seq: u64,
    #[serde(flatten)]
    ids: Option<&'a Ids>,
    #[serde(skip_serializing_if = "str::is_empty")]
    uri: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ms: Option<Value>,
    #[serde(skip_serializing_if = "str::is_empty")]
    outcome: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    sent: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    received: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a Value>,
}

fn is_none(seq: &u64) -> bool {
    *seq == 0
}

impl Line<'_> {
    fn text(self, data: &Value) -> String {
        let empty = match data {
            Value::Null => true,
            Value::Object(map) => map.is_empty(),
            _ => false,
        };
        let line = Line { data: (!empty).then_some(data), ..self };
        // No value of ours fails to become JSON.
        serde_json::to_string(&line).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_event_becomes_a_flat_line() {
        let data =
            json!({"tool": "echo", "ms": 1.5, "outcome": "timeout", "run": "r", "call": "d.1", "odd": 1});
        let mut event = Event::new(&kinds::CALL_FINISHED, data).server("demo").session("work");
        event.seq = 7;
        let extra = json!({"trace": [["session_id", "abc"]], "arguments": {"a": 1}, "message": "late"});
        let line = Item::Event(Arc::new(event), Some(extra)).line(42, "d");
        let wanted = json!({
            "at": 42, "level": "warn", "source": "daemon", "event": "call.finished", "message": "late",
            "daemon": "d", "seq": 7, "server": "demo", "tool": "echo", "session": "work", "run": "r", "call": "d.1",
            "trace": [["session_id", "abc"]], "ms": 1.5, "outcome": "timeout",
            "data": {"odd": 1, "arguments": {"a": 1}},
        });
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), wanted);
        assert!(line.starts_with("{\"at\":42,\"level\":\"warn\""));
    }

    #[test]
    fn a_record_from_outside_is_read_leniently() {
        let given =
            json!({"level": "loud", "source": "plugin", "message": "m", "session": "s", "unknown": 1});
        let entry: Entry = serde_json::from_value(given).unwrap();
        assert_eq!(entry.level(), Level::Info);
        let line = Item::Entry(1, Box::new(entry)).line(1, "d");
        assert_eq!(
            line,
            r#"{"at":1,"level":"info","source":"plugin","message":"m","daemon":"d","session":"s"}"#
        );
        assert_eq!(Upto(2).cut("aé"), "a…");
        assert_eq!(Upto(3).cut("aé"), "aé");
    }
}
