//! What an id belongs to: the records of a call, a run, a session or an editor's
//! id, under the session and the daemon that they happened in, with the servers'
//! instances that took part. Knows nothing of how a tree is shown.

use super::journal::Spawn;
use super::query::{Query, newest};
use super::scan::Snapshot;
use serde::Serialize;
use serde_json::Value;
use std::collections::HashSet;
use std::io;
use std::sync::Arc;

/// So many records of one id are shown, the newest.
const RECORDS: usize = 10_000;

/// Something that has an id, and what happened in it.
#[derive(Debug, Default, Serialize)]
pub struct Node {
    /// daemon, session, run, call, or instance.
    pub kind: &'static str,
    /// The id; for an instance the server and the instance's key.
    pub id: String,
    /// The records about it itself, the oldest first.
    pub records: Vec<Value>,
    /// What happened in it, in the order of the first records.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Node>,
}

impl Node {
    /// The child of this kind and id, made when there is none.
    fn child(&mut self, kind: &'static str, id: &str) -> &mut Node {
        let at = self.children.iter().position(|n| n.kind == kind && n.id == id).unwrap_or_else(|| {
            self.children.push(Node { kind, id: id.to_owned(), ..Node::default() });
            self.children.len() - 1
        });
        &mut self.children[at]
    }
}

/// The tree of an id, a root for each daemon; empty when no record has it.
///
/// # Errors
/// When a file cannot be read.
pub fn chain(snapshot: &Arc<Snapshot>, id: &str, spawn: Spawn) -> io::Result<Vec<Node>> {
    let own = read(snapshot, &Query { id: id.to_owned(), ..Query::default() }, spawn)?;
    let Some(until) = own.last().and_then(|r| r["at"].as_u64()) else { return Ok(Vec::new()) };
    let key = |record: &Value| (text(record, "daemon"), text(record, "server"), text(record, "instance"));
    let daemons: HashSet<String> = own.iter().map(|r| text(r, "daemon")).collect();
    let runs: HashSet<String> = own.iter().map(|r| text(r, "run")).filter(|r| !r.is_empty()).collect();
    let instances: HashSet<_> = own.iter().map(key).filter(|(.., i)| !i.is_empty()).collect();
    let known: HashSet<String> = own.iter().map(Value::to_string).collect();
    // What they belong to says of itself when it began and ended.
    let events = ["daemon.started", "run.opened", "server.started"].map(str::to_owned).to_vec();
    let around = read(snapshot, &Query { until, events, ..Query::default() }, spawn)?;
    let mut all = own;
    all.extend(around.into_iter().filter(|r| {
        let part = match r["event"].as_str() {
            Some("daemon.started") => daemons.contains(&text(r, "daemon")),
            Some("run.opened") => runs.contains(&text(r, "run")),
            _ => instances.contains(&key(r)),
        };
        part && !known.contains(&r.to_string())
    }));
    all.sort_by_key(|r| r["at"].as_u64());
    let mut root = Node::default();
    for record in all {
        let daemon = root.child("daemon", &text(&record, "daemon"));
        let instance = text(&record, "instance");
        let mut node = daemon;
        if record["event"].as_str().is_some_and(|e| e.starts_with("server.")) && !instance.is_empty() {
            node.child("instance", &format!("{} {instance}", text(&record, "server"))).records.push(record);
            continue;
        }
        for kind in ["session", "run", "call"] {
            let id = text(&record, kind);
            if !id.is_empty() {
                node = node.child(kind, &id);
            }
        }
        node.records.push(record);
    }
    Ok(root.children)
}

fn read(snapshot: &Arc<Snapshot>, query: &Query, spawn: Spawn) -> io::Result<Vec<Value>> {
    let lines = newest(snapshot, query, RECORDS, spawn)?;
    Ok(lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

fn text(record: &Value, key: &str) -> String {
    record[key].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::scratch::{Scratch, thread};

    #[test]
    fn a_call_stands_under_its_run_its_session_and_its_daemon() {
        let dir = Scratch::new();
        let lines = [
            r#"{"at":1,"event":"daemon.started","daemon":"d1"}"#,
            r#"{"at":2,"event":"daemon.started","daemon":"d2"}"#,
            r#"{"at":3,"event":"run.opened","daemon":"d1","session":"s","run":"r"}"#,
            r#"{"at":4,"event":"server.started","daemon":"d1","server":"a","instance":"global"}"#,
            r#"{"at":5,"event":"call.finished","daemon":"d1","server":"a","instance":"global","session":"s","run":"r","call":"d1.1","trace":[["session_id","editor"]]}"#,
            r#"{"at":6,"event":"call.finished","daemon":"d1","server":"a","instance":"global","session":"s","run":"r","call":"d1.2"}"#,
        ];
        std::fs::write(dir.path().join("0000000000001.jsonl"), lines.join("\n") + "\n").unwrap();
        let snapshot = Arc::new(Snapshot::take(dir.path()).unwrap());
        for id in ["d1.1", "editor"] {
            let tree = chain(&snapshot, id, thread).unwrap();
            let [daemon] = tree.as_slice() else { panic!("{tree:?}") };
            assert_eq!((daemon.id.as_str(), daemon.records.len()), ("d1", 1));
            let [session, instance] = daemon.children.as_slice() else { panic!("{tree:?}") };
            assert_eq!((instance.id.as_str(), session.id.as_str()), ("a global", "s"));
            let run = &session.children[0];
            assert_eq!((run.id.as_str(), run.records[0]["at"].as_u64()), ("r", Some(3)));
            let calls: Vec<&str> = run.children.iter().map(|n| n.id.as_str()).collect();
            assert_eq!(calls, ["d1.1"]);
        }
        assert_eq!(chain(&snapshot, "r", thread).unwrap()[0].children[0].children[0].children.len(), 2);
        assert!(chain(&snapshot, "nobody", thread).unwrap().is_empty());
    }
}
