//! Counts what the log holds: calls by tool, server, instance or session, errors
//! by their shape, the slowest calls, and the volume over time. Percentiles are
//! exact. Knows nothing of how a report is shown.

use super::journal::Spawn;
use super::query::{Query, Ready};
use super::scan::{self, Piece, Snapshot, Task};
use super::template::template;
use super::text::{self, text_of};
use super::when::round_to;
use crate::observe::kinds;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// So many places are named for one shape of error.
const PLACES: usize = 5;

/// How a column is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// As it is.
    Text,
    /// A count.
    Count,
    /// Milliseconds.
    Ms,
    /// Bytes.
    Bytes,
    /// A time.
    When,
}

/// A column: its key in a row, its title, and how it is shown.
pub type Column = (&'static str, &'static str, Show);

/// What can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// Calls by tool.
    Calls,
    /// Calls by server, with starts and failures.
    Servers,
    /// The same by instance.
    Instances,
    /// What went wrong, by shape.
    Errors,
    /// Calls by session.
    Sessions,
    /// The calls that took longest.
    Slowest,
    /// Calls and bytes over time.
    Volume,
}

const TIMES: [Column; 5] = [
    ("p50", "P50", Show::Ms),
    ("p95", "P95", Show::Ms),
    ("p99", "P99", Show::Ms),
    ("max", "MAX", Show::Ms),
    ("total", "TOTAL", Show::Ms),
];
const COUNTS: [Column; 2] = [("calls", "CALLS", Show::Count), ("errors", "ERRORS", Show::Count)];
const STARTS: [Column; 2] = [("starts", "STARTS", Show::Count), ("failures", "FAILURES", Show::Count)];
const LAST: Column = ("last", "LAST", Show::When);

impl About {
    /// All of them with their words, in the order of the documentation.
    pub const ALL: [(About, &'static str); 7] = [
        (About::Calls, "calls"),
        (About::Servers, "servers"),
        (About::Instances, "instances"),
        (About::Errors, "errors"),
        (About::Sessions, "sessions"),
        (About::Slowest, "slowest"),
        (About::Volume, "volume"),
    ];

    /// The one that a word names.
    pub fn from_word(word: &str) -> Option<About> {
        About::ALL.iter().find(|(_, w)| *w == word).map(|(about, _)| *about)
    }

    /// The columns of its rows.
    pub fn columns(self) -> Vec<Column> {
        let parts: &[&[Column]] = match self {
            About::Calls => &[&[("tool", "TOOL", Show::Text)], &COUNTS, &TIMES],
            About::Servers => &[&[("server", "SERVER", Show::Text)], &COUNTS, &STARTS, &TIMES],
            About::Instances => &[
                &[
                    ("server", "SERVER", Show::Text),
                    ("instance", "INSTANCE", Show::Text),
                    ("daemon", "DAEMON", Show::Text),
                ],
                &COUNTS,
                &STARTS,
                &TIMES,
            ],
            About::Errors => &[&[
                ("count", "COUNT", Show::Count),
                ("kind", "KIND", Show::Text),
                ("template", "MESSAGE", Show::Text),
                ("places", "WHERE", Show::Text),
                LAST,
            ]],
            About::Sessions => &[
                &[("session", "SESSION", Show::Text)],
                &COUNTS,
                &[("tools", "TOOLS", Show::Count)],
                &TIMES,
                &[LAST],
            ],
            About::Slowest => &[&[
                ("ms", "TIME", Show::Ms),
                ("tool", "TOOL", Show::Text),
                ("outcome", "OUTCOME", Show::Text),
                ("at", "AT", Show::When),
                ("session", "SESSION", Show::Text),
                ("call", "CALL", Show::Text),
            ]],
            About::Volume => &[
                &[("from", "FROM", Show::When)],
                &COUNTS,
                &[("sent", "SENT", Show::Bytes), ("received", "RECEIVED", Show::Bytes)],
                &TIMES[..3],
            ],
        };
        parts.concat()
    }

    fn events(self) -> Vec<String> {
        let words: &[&str] = match self {
            About::Servers | About::Instances => {
                &[kinds::CALL_FINISHED.word, kinds::SERVER_STARTED.word, kinds::SERVER_FAILED.word]
            }
            About::Errors => &[
                kinds::CALL_FINISHED.word,
                kinds::SERVER_FAILED.word,
                kinds::CONFIG_BROKEN.word,
                "hook.failed",
                "consumer.failed",
            ],
            _ => &[kinds::CALL_FINISHED.word],
        };
        words.iter().map(|w| (*w).to_owned()).collect()
    }
}

/// An answer.
#[derive(Debug, Serialize)]
pub struct Report {
    /// What was asked, as a word.
    pub about: &'static str,
    /// The time of the first record that counted, in milliseconds since 1970; 0 when there was none.
    pub since: u64,
    /// The time of the last.
    pub until: u64,
    /// The rows, the most important first; volume in the order of time.
    pub rows: Vec<Value>,
    /// So many more rows there would have been.
    pub more: usize,
}

/// Counts. Of the query everything but its events and level holds; at most `limit` rows.
///
/// # Errors
/// When a file cannot be read.
pub fn report(
    snapshot: &Arc<Snapshot>,
    about: About,
    query: &Query,
    limit: usize,
    spawn: Spawn,
) -> io::Result<Report> {
    let (begun, ended) = snapshot.span();
    let (since, until) = (query.since.max(begun), query.until.min(ended));
    let ready = Query { events: about.events(), ..query.clone() }.ready();
    let step = round_to(until.saturating_sub(since));
    let counting = Arc::new(Counting { about, ready, step, limit, tally: Mutex::default() });
    scan::run(snapshot, query.since, query.until, &counting, spawn)?;
    let tally = std::mem::take(&mut *counting.tally.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(tally.report(about, limit))
}

struct Counting {
    about: About,
    ready: Ready,
    step: u64,
    limit: usize,
    tally: Mutex<Tally>,
}

impl Task for Counting {
    fn wants(&self, _: &Piece) -> bool {
        true
    }
    fn take(&self, _: &Piece, lines: &[u8]) {
        let mut own = Tally::default();
        for line in self.ready.candidates(lines) {
            if let Some(at) = self.ready.takes(line) {
                own.add(at, &Seen::of(line), self);
            }
        }
        self.tally.lock().unwrap_or_else(PoisonError::into_inner).merge(own, self.limit);
    }
}

/// What of a line counts, as it is written.
#[derive(Default)]
struct Seen<'a> {
    event: &'a [u8],
    message: &'a [u8],
    daemon: &'a [u8],
    server: &'a [u8],
    tool: &'a [u8],
    instance: &'a [u8],
    session: &'a [u8],
    call: &'a [u8],
    ms: &'a [u8],
    outcome: &'a [u8],
    sent: &'a [u8],
    received: &'a [u8],
}

impl<'a> Seen<'a> {
    fn of(line: &'a [u8]) -> Seen<'a> {
        let mut seen = Seen::default();
        text::fields(line, |key, value| match key {
            b"event" => seen.event = value,
            b"message" => seen.message = value,
            b"daemon" => seen.daemon = value,
            b"server" => seen.server = value,
            b"tool" => seen.tool = value,
            b"instance" => seen.instance = value,
            b"session" => seen.session = value,
            b"call" => seen.call = value,
            b"ms" => seen.ms = value,
            b"outcome" => seen.outcome = value,
            b"sent" => seen.sent = value,
            b"received" => seen.received = value,
            _ => {}
        });
        seen
    }
    fn place(&self) -> String {
        let (server, tool) = (text_of(self.server), text_of(self.tool));
        if tool.is_empty() { server.into_owned() } else { format!("{server}.{tool}") }
    }
}

fn number<T: std::str::FromStr>(value: &[u8]) -> Option<T> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// A duration in four bytes that sort as durations do: microseconds, or, beyond half
/// an hour, milliseconds with the highest bit set.
fn pack(ms: f64) -> u32 {
    const LONG: u32 = 1 << 31;
    let micros = (ms * 1000.0).round();
    if micros < f64::from(LONG) { micros as u32 } else { (ms.round() as u32).min(LONG - 1) | LONG }
}

fn unpack(packed: u32) -> f64 {
    if packed >> 31 == 0 { f64::from(packed) / 1000.0 } else { f64::from(packed & !(1 << 31)) }
}

#[derive(Default)]
struct Group {
    records: u64,
    calls: u64,
    errors: u64,
    times: Vec<u32>,
    total: f64,
    sent: u64,
    received: u64,
    starts: u64,
    failures: u64,
    first: u64,
    last: u64,
    places: BTreeSet<String>,
    example: String,
}

impl Group {
    fn merge(&mut self, other: Group) {
        self.records += other.records;
        self.calls += other.calls;
        self.errors += other.errors;
        self.times.extend(other.times);
        self.total += other.total;
        self.sent += other.sent;
        self.received += other.received;
        self.starts += other.starts;
        self.failures += other.failures;
        self.first = if self.first == 0 { other.first } else { self.first.min(other.first) };
        self.places.extend(other.places);
        if other.last >= self.last {
            self.example = other.example;
        }
        self.last = self.last.max(other.last);
    }

    /// Nearest rank: the smallest value that so many of a hundred do not exceed.
    fn times(&mut self) -> Map<String, Value> {
        self.times.sort_unstable();
        let mut row = Map::new();
        if self.times.is_empty() {
            return row;
        }
        let rank = |percent: usize| (self.times.len() * percent).div_ceil(100).max(1) - 1;
        for (key, percent) in [("p50", 50), ("p95", 95), ("p99", 99), ("max", 100)] {
            row.insert(key.into(), unpack(self.times[rank(percent)]).into());
        }
        row.insert("total".into(), ((self.total * 1000.0).round() / 1000.0).into());
        row
    }
}

/// A row of the slowest, and its packed duration.
type Slow = (u32, Value);

#[derive(Default)]
struct Tally {
    groups: HashMap<[String; 3], Group>,
    slowest: Vec<Slow>,
    first: u64,
    last: u64,
}

impl Tally {
    fn add(&mut self, at: u64, seen: &Seen, of: &Counting) {
        let called = text_of(seen.event) == kinds::CALL_FINISHED.word;
        let ms = number::<f64>(seen.ms).unwrap_or(0.0);
        let failed = called && seen.outcome != b"\"ok\"";
        let own = |value: &[u8]| text_of(value).into_owned();
        let key = match of.about {
            About::Calls => [seen.place(), String::new(), String::new()],
            About::Servers => [own(seen.server), String::new(), String::new()],
            About::Instances => [own(seen.server), own(seen.instance), own(seen.daemon)],
            About::Sessions => [own(seen.session), String::new(), String::new()],
            About::Volume => [format!("{:020}", at / of.step * of.step), String::new(), String::new()],
            About::Errors if called && !failed => return,
            About::Errors => {
                let kind = if called { own(seen.outcome) } else { own(seen.event) };
                [kind, template(&text_of(seen.message)), String::new()]
            }
            About::Slowest => {
                let row = json!({
                    "ms": ms, "tool": seen.place(), "outcome": text_of(seen.outcome), "at": at,
                    "session": text_of(seen.session), "call": text_of(seen.call),
                });
                self.slow((pack(ms), row), of.limit);
                self.span(at, at);
                return;
            }
        };
        self.span(at, at);
        let group = self.groups.entry(key).or_default();
        group.first = if group.first == 0 { at } else { group.first };
        group.last = group.last.max(at);
        group.records += 1;
        match &*text_of(seen.event) {
            word if word == kinds::SERVER_STARTED.word => group.starts += 1,
            word if word == kinds::SERVER_FAILED.word => group.failures += 1,
            _ => {}
        }
        if called {
            group.calls += 1;
            group.errors += u64::from(failed);
            group.times.push(pack(ms));
            group.total += ms;
            group.sent += number::<u64>(seen.sent).unwrap_or(0);
            group.received += number::<u64>(seen.received).unwrap_or(0);
        }
        match of.about {
            About::Sessions => {
                group.places.insert(seen.place());
            }
            About::Errors => {
                group.places.insert(seen.place());
                group.example = own(seen.message);
            }
            _ => {}
        }
    }

    fn slow(&mut self, row: Slow, limit: usize) {
        let at = self.slowest.partition_point(|(ms, _)| *ms >= row.0);
        if at < limit {
            self.slowest.insert(at, row);
            self.slowest.truncate(limit);
        }
    }

    fn span(&mut self, first: u64, last: u64) {
        if first > 0 {
            self.first = if self.first == 0 { first } else { self.first.min(first) };
        }
        self.last = self.last.max(last);
    }

    fn merge(&mut self, other: Tally, limit: usize) {
        self.span(other.first, other.last);
        for (key, group) in other.groups {
            self.groups.entry(key).or_default().merge(group);
        }
        other.slowest.into_iter().for_each(|row| self.slow(row, limit));
    }

    fn report(self, about: About, limit: usize) -> Report {
        let word = About::ALL.iter().find(|(a, _)| *a == about).map_or("", |(_, word)| word);
        let mut groups: Vec<([String; 3], Group)> = self.groups.into_iter().collect();
        match about {
            About::Volume => groups.sort_by(|a, b| a.0.cmp(&b.0)),
            _ => groups.sort_by(|a, b| (b.1.records, &a.0).cmp(&(a.1.records, &b.0))),
        }
        let over = groups.len().saturating_sub(limit);
        // Of a long time the latest part matters most.
        let kept = if about == About::Volume { groups.split_off(over) } else { groups };
        let mut rows: Vec<Value> =
            kept.into_iter().take(limit).map(|(key, group)| row(about, key, group)).collect();
        rows.extend(self.slowest.into_iter().map(|(_, row)| row));
        Report { about: word, since: self.first, until: self.last, rows, more: over }
    }
}

fn row(about: About, key: [String; 3], mut group: Group) -> Value {
    let [a, b, c] = key;
    let mut row = Map::new();
    let mut put = |key: &str, value: Value| row.insert(key.to_owned(), value);
    match about {
        About::Errors => {
            put("count", group.records.into());
            put("kind", a.into());
            put("template", b.into());
            let more = group.places.len().saturating_sub(PLACES);
            let mut places: Vec<&str> = group.places.iter().take(PLACES).map(String::as_str).collect();
            let rest = format!("and {more} more");
            if more > 0 {
                places.push(&rest);
            }
            put("places", places.join(", ").into());
            put("example", group.example.into());
            put("first", group.first.into());
            put("last", group.last.into());
            return Value::Object(row);
        }
        About::Volume => drop(put("from", a.parse::<u64>().unwrap_or(0).into())),
        About::Calls => drop(put("tool", a.into())),
        About::Sessions => {
            put("session", a.into());
            put("tools", group.places.len().into());
        }
        About::Servers => drop(put("server", a.into())),
        _ => {
            put("server", a.into());
            put("instance", b.into());
            put("daemon", c.into());
        }
    }
    put("calls", group.calls.into());
    put("errors", group.errors.into());
    if matches!(about, About::Servers | About::Instances) {
        put("starts", group.starts.into());
        put("failures", group.failures.into());
    }
    put("sent", group.sent.into());
    put("received", group.received.into());
    put("first", group.first.into());
    put("last", group.last.into());
    row.extend(group.times());
    Value::Object(row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::scratch::{Scratch, thread};
    use std::fmt::Write;

    #[test]
    fn durations_keep_their_order_and_their_value() {
        for ms in [0.0, 0.001, 12.345, 2_147_483.647, 2_147_484.0, 90_000_000.0] {
            assert_eq!(unpack(pack(ms)), ms);
        }
        assert!(pack(2_147_483.647) < pack(2_147_484.0));
    }

    fn rows(snapshot: &Arc<Snapshot>, word: &str) -> Vec<Value> {
        report(snapshot, About::from_word(word).unwrap(), &Query::default(), 10, thread).unwrap().rows
    }

    #[test]
    fn a_log_is_counted_exactly() {
        let dir = Scratch::new();
        let mut text = String::new();
        for n in 1..=1000_u64 {
            let (tool, outcome) = if n % 100 == 0 { ("bad", "timeout") } else { ("good", "ok") };
            let message =
                if n % 100 == 0 { format!("\"message\":\"no answer after {n} ms\",") } else { String::new() };
            let _ = writeln!(
                text,
                "{{\"at\":{},\"event\":\"call.finished\",{message}\"daemon\":\"d\",\"server\":\"a\",\"tool\":\"{tool}\",\"instance\":\"global\",\"session\":\"s{}\",\"call\":\"d.{n}\",\"ms\":{n},\"outcome\":\"{outcome}\",\"sent\":2,\"received\":3}}",
                1_000_000 + n * 1000,
                n % 2
            );
        }
        text.push_str("{\"at\":3000000,\"event\":\"server.started\",\"daemon\":\"d\",\"server\":\"a\",\"instance\":\"global\"}\n");
        text.push_str("{\"at\":3000001,\"event\":\"server.failed\",\"message\":\"exit code 3\",\"daemon\":\"d\",\"server\":\"b\",\"instance\":\"global\"}\n");
        std::fs::write(dir.path().join("0000001000000.jsonl"), text).unwrap();
        let snapshot = Arc::new(Snapshot::take(dir.path()).unwrap());
        let calls = rows(&snapshot, "calls");
        assert_eq!(
            (&calls[0]["tool"], &calls[0]["calls"], &calls[0]["errors"]),
            (&json!("a.good"), &json!(990), &json!(0))
        );
        let bad = &calls[1];
        assert_eq!((&bad["p50"], &bad["p95"], &bad["max"]), (&json!(500.0), &json!(1000.0), &json!(1000.0)));
        let servers = rows(&snapshot, "servers");
        let a = &servers[0];
        assert_eq!((&a["p50"], &a["p95"], &a["p99"]), (&json!(500.0), &json!(950.0), &json!(990.0)));
        assert_eq!(
            (&a["starts"], &a["failures"], &servers[1]["failures"]),
            (&json!(1), &json!(0), &json!(1))
        );
        assert_eq!(rows(&snapshot, "instances")[0]["instance"], "global");
        let errors = rows(&snapshot, "errors");
        assert_eq!((&errors[0]["count"], &errors[0]["kind"]), (&json!(10), &json!("timeout")));
        assert_eq!(
            (&errors[0]["template"], &errors[0]["example"]),
            (&json!("no answer after <n> ms"), &json!("no answer after 1000 ms"))
        );
        assert_eq!(
            (&errors[1]["count"], &errors[1]["kind"], &errors[1]["places"]),
            (&json!(1), &json!("server.failed"), &json!("b"))
        );
        let sessions = rows(&snapshot, "sessions");
        assert_eq!((&sessions[0]["calls"], &sessions[0]["tools"]), (&json!(500), &json!(2)));
        let slowest: Vec<f64> =
            rows(&snapshot, "slowest").iter().map(|r| r["ms"].as_f64().unwrap()).collect();
        assert_eq!(slowest, (0..10).map(|n| 1000.0 - f64::from(n)).collect::<Vec<_>>());
        let volume = rows(&snapshot, "volume");
        let sum = |key: &str| volume.iter().map(|r| r[key].as_u64().unwrap()).sum::<u64>();
        assert_eq!(
            (sum("calls"), sum("sent")),
            (561, 1122),
            "the last ten minutes, of which one is not over"
        );
        for (about, word) in About::ALL {
            let first = &rows(&snapshot, word)[0];
            let absent: Vec<&str> =
                about.columns().iter().map(|c| c.0).filter(|key| first.get(key).is_none()).collect();
            assert_eq!(absent, Vec::<&str>::new(), "{word}");
        }
    }
}
