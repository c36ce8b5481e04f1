//! Counts what the log holds: calls by tool, server, instance or session, errors
//! by their shape, the slowest calls, and the volume over time. Percentiles are
//! exact. Knows nothing of how a report is shown.

use super::census::{Census, Chosen, Numbers};
use super::journal::Spawn;
use super::query::{Query, Ready};
use super::scan::{self, Piece, Snapshot, Task};
use super::tally::Tally;
use super::when::round_to;
use crate::observe::kinds;
use serde::Serialize;
use serde_json::Value;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// So many groups are counted in full at once. Where there are more, those that will be shown are found first.
const GROUPS: usize = if cfg!(test) { 50 } else { 50_000 };

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
    let asked = Asked { about, step, limit };
    let run = |tally: Tally, most: usize| -> io::Result<(Tally, bool)> {
        let counting = Arc::new(Counting { asked, ready: ready.clone(), most, tally: Mutex::new(tally) });
        scan::run(snapshot, query.since, query.until, &counting, spawn)?;
        let mut tally = counting.tally.lock().unwrap_or_else(PoisonError::into_inner);
        let whole = tally.groups() <= most;
        Ok((std::mem::take(&mut *tally), whole))
    };
    // Whoever wants every row gets every row, at its price.
    let most = if limit > GROUPS { usize::MAX } else { GROUPS };
    let (tally, whole) = run(Tally::default(), most)?;
    if whole {
        return Ok(tally.report(about, limit));
    }
    drop(tally);
    let counting = Arc::new(Counted {
        asked,
        ready: ready.clone(),
        numbers: Numbers::default(),
        census: Mutex::default(),
    });
    scan::run(snapshot, query.since, query.until, &counting, spawn)?;
    let census = std::mem::take(&mut *counting.census.lock().unwrap_or_else(PoisonError::into_inner));
    let chosen: Arc<(Numbers, Chosen)> = Arc::new((counting.numbers.clone(), census.choose(limit)));
    Ok(run(Tally::of(&chosen), usize::MAX)?.0.report(about, limit))
}

/// What is counted, and how.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub about: About,
    /// Of volume a group is so many milliseconds.
    pub step: u64,
    /// So many of the slowest matter.
    pub limit: usize,
}

/// Counts in full, as long as there are not too many groups.
struct Counting {
    asked: Asked,
    ready: Ready,
    most: usize,
    tally: Mutex<Tally>,
}

impl Task for Counting {
    fn wants(&self, _: &Piece) -> bool {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner).groups() <= self.most
    }
    fn take(&self, _: &Piece, lines: &[u8]) {
        let mut own = self.tally.lock().unwrap_or_else(PoisonError::into_inner).another();
        for line in self.ready.candidates(lines) {
            if let Some(line) = self.ready.takes(line) {
                own.add(&line, self.asked);
            }
        }
        self.tally.lock().unwrap_or_else(PoisonError::into_inner).merge(own, self.asked.limit);
    }
}

/// Counts the records of each group and nothing else.
struct Counted {
    asked: Asked,
    ready: Ready,
    numbers: Numbers,
    census: Mutex<Census>,
}

impl Task for Counted {
    fn wants(&self, _: &Piece) -> bool {
        true
    }
    fn take(&self, _: &Piece, lines: &[u8]) {
        let (mut own, mut keys) = (Census::default(), Tally::default());
        for line in self.ready.candidates(lines) {
            if let Some(line) = self.ready.takes(line)
                && let Some(key) = keys.key(&line, self.asked)
            {
                own.count(self.numbers.of(key));
            }
        }
        self.census.lock().unwrap_or_else(PoisonError::into_inner).merge(own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::scratch::{Scratch, thread};
    use serde_json::json;
    use std::fmt::Write;

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

    #[test]
    fn of_many_groups_those_that_are_shown_are_counted_as_if_there_were_few() {
        let dir = Scratch::new();
        let mut text = String::new();
        // Some sessions have several records, most have one, and they are mixed over several pieces.
        for n in 0..3000_u64 {
            let session = if n % 5 == 0 { n % 35 } else { n * 7919 % 3000 };
            let _ = writeln!(
                text,
                "{{\"at\":{},\"event\":\"call.finished\",\"daemon\":\"d\",\"server\":\"a\",\"tool\":\"t{}\",\"instance\":\"i{session}\",\"session\":\"s{session}\",\"call\":\"d.{n}\",\"ms\":{n},\"outcome\":\"ok\"}}",
                1_000_000 + n,
                n % 9,
            );
        }
        std::fs::write(dir.path().join("0000001000000.jsonl"), text).unwrap();
        let snapshot = Arc::new(Snapshot::take(dir.path()).unwrap());
        for about in [About::Sessions, About::Instances, About::Calls] {
            let of = |limit| report(&snapshot, about, &Query::default(), limit, thread).unwrap();
            let all = of(usize::MAX);
            for limit in [1, 7, 8, 40] {
                let few = of(limit);
                let shown = limit.min(all.rows.len());
                assert_eq!(few.rows, all.rows[..shown], "{about:?} {limit}");
                assert_eq!(few.more, all.rows.len() - shown);
                assert_eq!((few.since, few.until), (all.since, all.until));
            }
        }
    }
}
