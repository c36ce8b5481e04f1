//! What was on the bus of a daemon, as far as the log has it: for who reads on after
//! that daemon has ended, or later than its bus remembers. Knows nothing of who reads.

use super::MOST;
use super::query::{Query, every};
use super::scan::Snapshot;
use crate::observe::kinds;
use crate::observe::{Event, Filter};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io;

/// What the log alone knows of an event: its readers on the bus never saw it.
const ONLY_LOGGED: &[&str] = &["arguments", "result", "error"];

/// Events that are past.
#[derive(Debug)]
pub struct Past {
    /// Those that are wanted, the oldest first; at most [`MOST`], the newest.
    pub events: Vec<Event>,
    /// How many the log does not have, wanted or not; none when nobody can tell.
    pub missed: Option<u64>,
}

/// A line of the log, as far as it is an event.
#[derive(Deserialize)]
struct Line {
    at: u64,
    #[serde(default)]
    event: String,
    daemon: String,
    #[serde(default)]
    seq: u64,
    server: Option<String>,
    session: Option<String>,
    uri: Option<String>,
    #[serde(default)]
    data: Map<String, Value>,
    #[serde(flatten)]
    more: Map<String, Value>,
}

/// An event as it was on a bus, and the bus's daemon; none for a record that is no event.
pub fn event_of(line: &str) -> Option<(String, Event)> {
    let line: Line = serde_json::from_str(line).ok()?;
    let kind = kinds::of_word(&line.event).filter(|_| line.seq > 0)?;
    let mut data = line.data;
    ONLY_LOGGED.iter().for_each(|key| drop(data.remove(*key)));
    // What a record has beside its data, and an event has in it.
    for key in ["tool", "instance", "run", "call", "ms", "outcome", "message"] {
        if let Some(value) = line.more.get(key).filter(|value| **value != json!("")) {
            data.insert(key.to_owned(), value.clone());
        }
    }
    let mut event = Event::new(kind, Value::Object(data));
    (event.seq, event.at) = (line.seq, line.at);
    (event.server, event.session, event.uri) = (line.server, line.session, line.uri);
    Some((line.daemon, event))
}

/// What a daemon's bus had after an event, up to and including another where one is named.
///
/// # Errors
/// When a file cannot be read.
pub fn past(
    snapshot: &Snapshot,
    daemon: &str,
    (after, upto): (u64, Option<u64>),
    filter: &Filter,
) -> io::Result<Past> {
    let query = Query { id: daemon.to_owned(), ..Query::default() };
    // By number: what two threads say at the same moment is written in either order.
    let mut wanted = BTreeMap::new();
    let (mut seen, mut newest, mut cut) = (0u64, 0u64, 0u64);
    let mut whole = false;
    every(snapshot, &query, &mut |line| {
        let Some((whose, event)) = event_of(line) else { return true };
        if whose != daemon || upto.is_some_and(|upto| event.seq > upto) {
            return true;
        }
        newest = newest.max(event.seq);
        whole |= event.kind == kinds::DAEMON_STOPPING.word;
        if event.seq <= after {
            return true;
        }
        seen += 1;
        if filter.takes(&event) {
            wanted.insert(event.seq, event);
            if wanted.len() > MOST {
                wanted.pop_first();
                cut += 1;
            }
        }
        true
    })?;
    let missed = match upto {
        Some(upto) => Some(upto.saturating_sub(after)),
        // Behind its last word there is nothing; a daemon that was killed may have had more to say.
        None if whole => Some(newest.saturating_sub(after)),
        None => None,
    };
    let missed = missed.map(|all| all.saturating_sub(seen) + cut);
    Ok(Past { events: wanted.into_values().collect(), missed })
}

#[cfg(test)]
mod tests {
    use super::super::{Journal, Rolling};
    use super::*;
    use crate::observe::scratch::Scratch;
    use crate::observe::{Bus, Heard};
    use std::time::Duration;

    /// A bus whose events are in a log.
    fn logged(scratch: &Scratch) -> (std::sync::Arc<Bus>, std::sync::Arc<Journal>) {
        let bus = Bus::new(2);
        let rolling = Rolling { size: 1 << 20, lines: 0, age: u64::MAX, keep: 9 };
        let journal = Journal::new(scratch.path().to_owned(), bus.daemon().to_owned(), rolling);
        journal.start(|_, f| Ok(std::thread::spawn(f))).unwrap();
        let into = journal.clone();
        bus.set_tap(Box::new(move |heard: Heard<'_>| into.hear(heard)));
        (bus, journal)
    }

    #[test]
    fn what_was_on_the_bus_comes_back_from_the_log() {
        let scratch = Scratch::new();
        let (bus, journal) = logged(&scratch);
        bus.publish(Event::new(&kinds::DAEMON_STARTED, json!({"pid": 1})));
        for n in 0..4 {
            let data = json!({"tool": "echo", "ms": 1.5, "outcome": "ok", "run": "r", "odd": n});
            let event = Event::new(&kinds::CALL_FINISHED, data).server("demo").session("s");
            bus.publish_with(event, Some(json!({"arguments": {"secret": 1}})));
        }
        let daemon = bus.daemon().to_owned();
        let calls = Filter { kinds: vec!["call".into()], ..Filter::default() };
        let read = |span, filter: &Filter| {
            past(&Snapshot::take(scratch.path()).unwrap(), &daemon, span, filter).unwrap()
        };
        bus.publish(Event::new(&kinds::DAEMON_STOPPING, json!({"why": "test"})));
        journal.close(Duration::from_secs(60));
        let all = read((2, None), &calls);
        assert_eq!(
            (all.events.iter().map(|e| e.seq).collect::<Vec<_>>(), all.missed),
            (vec![3, 4, 5], Some(0))
        );
        let event = &all.events[0];
        assert_eq!((event.server.as_deref(), event.session.as_deref()), (Some("demo"), Some("s")));
        assert_eq!(event.data, json!({"tool": "echo", "ms": 1.5, "outcome": "ok", "run": "r", "odd": 1}));
        let some = read((1, Some(3)), &Filter::default());
        assert_eq!((some.events.len(), some.missed), (2, Some(0)));
        // A log that lost something says how much, one without the end cannot.
        let file = std::fs::read_dir(scratch.path()).unwrap().flatten().map(|e| e.path()).next().unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        let lines: Vec<&str> = text.lines().filter(|l| !l.contains("\"seq\":3,")).collect();
        std::fs::write(&file, lines.join("\n") + "\n").unwrap();
        assert_eq!(read((1, None), &calls).missed, Some(1));
        assert_eq!(read((2, Some(4)), &calls).missed, Some(1));
        let lines: Vec<&str> = lines.into_iter().filter(|l| !l.contains("stopping")).collect();
        std::fs::write(&file, lines.join("\n") + "\n").unwrap();
        assert_eq!(read((1, None), &calls).missed, None);
        let other = past(&Snapshot::take(scratch.path()).unwrap(), "other", (0, None), &calls).unwrap();
        assert!(other.events.is_empty() && other.missed.is_none());
    }
}
