//! Which records are wanted, and finding them: the newest so many, or every one
//! in order. Bytes are compared before anything is parsed. Knows nothing of who asks.

use super::journal::Spawn;
use super::line::Line;
use super::scan::{self, Piece, Snapshot, Task};
use super::text::{self, Needle, escaped, text_of};
use crate::log::Level;
use crate::observe::kinds;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex, PoisonError};

/// So many records are found at once; whoever wants more wants every one.
pub const MOST: usize = 100_000;

/// Which records are wanted. An empty list wants all.
#[derive(Clone, Debug)]
pub struct Query {
    /// Not older, in milliseconds since 1970.
    pub since: u64,
    /// Not newer.
    pub until: u64,
    /// At least this level.
    pub level: Level,
    /// Events (`call.finished`) or families of events (`call`).
    pub events: Vec<String>,
    /// Who said it.
    pub sources: Vec<String>,
    /// Servers.
    pub servers: Vec<String>,
    /// Tools, as `tool` or `server.tool`.
    pub tools: Vec<String>,
    /// Sessions.
    pub sessions: Vec<String>,
    /// Runs.
    pub runs: Vec<String>,
    /// A text that the line contains.
    pub grep: String,
    /// An id of any sort: of a daemon, instance, session, run or call, or of an editor.
    pub id: String,
}

impl Default for Query {
    /// Everything.
    fn default() -> Query {
        let all = Vec::new;
        Query {
            since: 0,
            until: u64::MAX,
            level: Level::Trace,
            events: all(),
            sources: all(),
            servers: all(),
            tools: all(),
            sessions: all(),
            runs: all(),
            grep: String::new(),
            id: String::new(),
        }
    }
}

/// A query made ready: what the bytes of a line must hold to be worth a closer look.
#[derive(Clone)]
pub(super) struct Ready {
    query: Query,
    /// A line has one of these; empty when any line may do.
    any: Vec<Needle>,
    grep: Option<Needle>,
    events: Vec<Wanted>,
}

/// An event or a family of events, as lines have it.
#[derive(Clone)]
struct Wanted {
    start: Vec<u8>,
    whole: bool,
}

impl Wanted {
    fn new(word: &str) -> Wanted {
        let whole = word.contains('.');
        let start = format!("\"{}{}", escaped(word), if whole { "\"" } else { "" });
        Wanted { start: start.into_bytes(), whole }
    }
    fn takes(&self, event: &[u8]) -> bool {
        match event.strip_prefix(&self.start[..]) {
            Some(rest) => self.whole || matches!(rest.first(), Some(b'.' | b'"')),
            None => false,
        }
    }
}

impl Query {
    /// Makes it ready.
    pub(super) fn ready(&self) -> Ready {
        let one = |text: String| Needle::new(text).into_iter().collect::<Vec<_>>();
        let valued = |key: &str, values: &[String]| -> Vec<Needle> {
            values.iter().filter_map(|v| Needle::new(format!("\"{key}\":\"{}\"", escaped(v)))).collect()
        };
        let plain_tools = self.tools.iter().all(|t| !t.contains('.'));
        // The one that leaves the least comes first.
        let choices = [
            one(escaped(&self.id)),
            valued("run", &self.runs),
            one(escaped(&self.grep)),
            valued("session", &self.sessions),
            if plain_tools { valued("tool", &self.tools) } else { Vec::new() },
            valued("server", &self.servers),
            self.events.iter().filter_map(|e| Needle::new(event_start(e))).collect(),
        ];
        let any = choices.into_iter().find(|needles| !needles.is_empty()).unwrap_or_default();
        let events = self.events.iter().map(|e| Wanted::new(e)).collect();
        Ready { query: self.clone(), any, grep: Needle::new(escaped(&self.grep)), events }
    }
}

/// How the event of a line begins that a word stands for.
fn event_start(word: &str) -> String {
    let whole = word.contains('.');
    format!("\"event\":\"{}{}", escaped(word), if whole { "\"" } else { "." })
}

impl Ready {
    /// The fields of a line (without its end), when it is wanted.
    pub fn takes<'a>(&self, text: &'a [u8]) -> Option<Line<'a>> {
        let query = &self.query;
        if self.grep.as_ref().is_some_and(|needle| !needle.is_in(text)) {
            return None;
        }
        let line = Line::of(text)?;
        if line.at < query.since || line.at > query.until {
            return None;
        }
        let among = |wanted: &[String], value: &[u8]| {
            wanted.is_empty() || {
                let value = text_of(value);
                wanted.iter().any(|w| *w == value)
            }
        };
        let level = query.level == Level::Trace
            || Level::from_word(&text_of(line.level)).is_some_and(|level| level >= query.level);
        let event = self.events.is_empty() || self.events.iter().any(|wanted| wanted.takes(line.event));
        let wanted = level
            && event
            && among(&query.sources, line.source)
            && among(&query.servers, line.server)
            && among(&query.sessions, line.session)
            && among(&query.runs, line.run)
            && (query.tools.is_empty() || self.takes_tool(&line))
            && (query.id.is_empty() || self.takes_id(&line));
        wanted.then_some(line)
    }

    fn takes_tool(&self, line: &Line) -> bool {
        let (server, tool) = (text_of(line.server), text_of(line.tool));
        self.query.tools.iter().any(|t| {
            *t == *tool || t.strip_suffix(&*tool).and_then(|t| t.strip_suffix('.')) == Some(&*server)
        })
    }

    fn takes_id(&self, line: &Line) -> bool {
        let id = &self.query.id;
        let ids = [line.daemon, line.instance, line.session, line.run, line.call];
        let pairs = || serde_json::from_slice::<Vec<(String, String)>>(line.trace).unwrap_or_default();
        ids.iter().any(|value| text_of(value) == *id)
            || !line.trace.is_empty() && pairs().iter().any(|(_, value)| value == id)
    }

    /// The lines of a block that are worth a closer look, in order.
    pub fn candidates<'a>(&self, block: &'a [u8]) -> Vec<&'a [u8]> {
        let mut found: Vec<(usize, usize)> = Vec::new();
        if self.any.is_empty() {
            let mut from = 0;
            while let Some(end) = text::byte(block, from, b'\n') {
                found.push((from, end));
                from = end + 1;
            }
        }
        for needle in &self.any {
            let mut from = 0;
            while let Some(at) = needle.find(block, from) {
                let start = block[..at].iter().rposition(|b| *b == b'\n').map_or(0, |n| n + 1);
                let Some(end) = text::byte(block, at, b'\n') else { break };
                found.push((start, end));
                from = end + 1;
            }
        }
        if self.any.len() > 1 {
            found.sort_unstable();
            found.dedup();
        }
        found.into_iter().map(|(start, end)| &block[start..end]).collect()
    }
}

/// A record that was found: its time, where it stands among those of the same time, and its line.
type Found = Reverse<(u64, usize, u64, Vec<u8>)>;

struct Newest {
    ready: Ready,
    limit: usize,
    best: Mutex<BinaryHeap<Found>>,
}

impl Task for Newest {
    fn wants(&self, piece: &Piece) -> bool {
        let best = self.best.lock().unwrap_or_else(PoisonError::into_inner);
        best.len() < self.limit || best.peek().is_some_and(|oldest| piece.last >= oldest.0.0)
    }

    fn take(&self, piece: &Piece, lines: &[u8]) {
        let mut found: Vec<Found> = Vec::new();
        for line in self.ready.candidates(lines).into_iter().rev() {
            if found.len() >= self.limit {
                break;
            }
            if let Some(Line { at, .. }) = self.ready.takes(line) {
                let offset = line.as_ptr() as usize - lines.as_ptr() as usize;
                found.push(Reverse((at, piece.file, piece.from + offset as u64, line.to_owned())));
            }
        }
        let mut best = self.best.lock().unwrap_or_else(PoisonError::into_inner);
        for record in found {
            best.push(record);
            if best.len() > self.limit {
                best.pop();
            }
        }
    }
}

/// The newest records that are wanted, at most so many (and at most [`MOST`]), the oldest first.
///
/// # Errors
/// When a file cannot be read.
pub fn newest(
    snapshot: &Arc<Snapshot>,
    query: &Query,
    limit: usize,
    spawn: Spawn,
) -> io::Result<Vec<String>> {
    let limit = limit.min(MOST);
    let task = Arc::new(Newest { ready: query.ready(), limit, best: Mutex::default() });
    if limit > 0 {
        scan::run(snapshot, query.since, query.until, &task, spawn)?;
    }
    let best = std::mem::take(&mut *task.best.lock().unwrap_or_else(PoisonError::into_inner));
    let mut all: Vec<_> = best.into_iter().map(|Reverse(record)| record).collect();
    all.sort_unstable();
    Ok(all.into_iter().map(|(.., line)| String::from_utf8_lossy(&line).into_owned()).collect())
}

/// Every record that is wanted, the oldest first, one at a time, until the receiver has enough (`false`).
///
/// # Errors
/// When a file cannot be read.
pub fn every(snapshot: &Snapshot, query: &Query, each: &mut dyn FnMut(&str) -> bool) -> io::Result<()> {
    let ready = query.ready();
    let mut sources = Vec::new();
    for part in &snapshot.files {
        if part.last < query.since || part.begun > query.until {
            continue;
        }
        let mut file = &part.file;
        file.seek(SeekFrom::Start(0))?;
        sources.push(BufReader::new(file.take(part.size)));
    }
    let mut heads = BinaryHeap::new();
    for (index, source) in sources.iter_mut().enumerate() {
        heads.extend(wanted(source, &ready)?.map(|(at, line)| Reverse((at, index, line))));
    }
    while let Some(Reverse((_, index, line))) = heads.pop() {
        if !each(&String::from_utf8_lossy(&line)) {
            return Ok(());
        }
        heads.extend(wanted(&mut sources[index], &ready)?.map(|(at, line)| Reverse((at, index, line))));
    }
    Ok(())
}

/// The next line of a file that is wanted.
fn wanted(source: &mut impl BufRead, ready: &Ready) -> io::Result<Option<(u64, Vec<u8>)>> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if source.read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        if (ready.any.is_empty() || ready.any.iter().any(|needle| needle.is_in(&line)))
            && let Some(Line { at, .. }) = ready.takes(&line)
        {
            return Ok(Some((at, line)));
        }
    }
}

/// The first word among the events that names neither an event nor a family; other parts of
/// mcpx record events that are on no bus, and those are known as well.
pub(super) fn unknown_event(events: &[String]) -> Option<&str> {
    let known = |word: &str| {
        let mut all = kinds::ALL.iter().map(|kind| kind.word).chain(OWN.iter().copied());
        all.any(|kind| kind == word || kind.split('.').next() == Some(word))
    };
    events.iter().map(String::as_str).find(|word| !known(word))
}

/// Events that only the log has.
pub(super) const OWN: &[&str] =
    &["log.dropped", "server.stderr", "script.log", "tool.finished", "hook.failed", "consumer.failed"];

impl Query {
    /// The first word among the events that names none.
    pub fn unknown_event(&self) -> Option<&str> {
        unknown_event(&self.events)
    }
    /// Every event that the log may have.
    pub fn known_events() -> impl Iterator<Item = &'static str> {
        kinds::ALL.iter().map(|kind| kind.word).chain(OWN.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::scratch::{Scratch, thread};
    use std::fmt::Write;

    /// Three files, two of which overlap in time; a torn line in one.
    fn filled() -> (Scratch, Arc<Snapshot>) {
        let dir = Scratch::new();
        let mut texts = [String::new(), String::new(), String::new()];
        for n in 0..6000_u64 {
            let at = 1_000_000 + n;
            let to = if n < 2000 { 0 } else { 1 + (n % 2) as usize };
            let level = if n % 1000 == 7 { "warn" } else { "info" };
            let (server, session) = (["a", "b", "with\\\"quote"][n as usize % 3], n / 100);
            let _ = writeln!(
                texts[to],
                "{{\"at\":{at},\"level\":\"{level}\",\"source\":\"daemon\",\"event\":\"call.finished\",\"daemon\":\"d\",\"server\":\"{server}\",\"tool\":\"t{}\",\"session\":\"s{session}\",\"call\":\"d.{n}\",\"ms\":{}.5}}",
                n % 7,
                n % 50
            );
            if n == 1000 {
                texts[to].push_str("{\"at\":1001000,\"torn\n");
            }
        }
        texts[2].push_str("{\"at\":2000000,\"level\":\"info\",\"half");
        for (begun, text) in [1_000_000, 1_002_000, 1_002_001].into_iter().zip(&texts) {
            std::fs::write(dir.path().join(format!("{begun:013}.jsonl")), text).unwrap();
        }
        let snapshot = Arc::new(Snapshot::take(dir.path()).unwrap());
        (dir, snapshot)
    }

    fn both(snapshot: &Arc<Snapshot>, query: &Query) -> Vec<String> {
        let mut all = Vec::new();
        every(snapshot, query, &mut |line| {
            all.push(line.to_owned());
            true
        })
        .unwrap();
        assert_eq!(newest(snapshot, query, MOST, thread).unwrap(), all, "{query:?}");
        let few = newest(snapshot, query, 5, thread).unwrap();
        assert_eq!(few, all[all.len().saturating_sub(5)..], "{query:?}");
        all
    }

    #[test]
    fn every_way_of_asking_finds_the_same() {
        let (_dir, snapshot) = filled();
        let own = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        let count = |query: Query| both(&snapshot, &query).len();
        assert_eq!(count(Query::default()), 6000);
        assert_eq!(count(Query { level: Level::Warn, ..Query::default() }), 6);
        assert_eq!(count(Query { servers: own(&["with\"quote"]), ..Query::default() }), 2000);
        assert_eq!(count(Query { servers: own(&["a", "b"]), ..Query::default() }), 4000);
        assert_eq!(count(Query { sessions: own(&["s59"]), ..Query::default() }), 100);
        assert_eq!(count(Query { tools: own(&["a.t3"]), ..Query::default() }), 286);
        assert_eq!(count(Query { tools: own(&["t3"]), level: Level::Warn, ..Query::default() }), 1);
        assert_eq!(count(Query { id: "d.17".into(), ..Query::default() }), 1);
        assert_eq!(count(Query { grep: "\"ms\":7.5".into(), ..Query::default() }), 0, "a text, not JSON");
        assert_eq!(count(Query { grep: "finished".into(), ..Query::default() }), 6000);
        assert_eq!(
            count(Query { events: own(&["call"]), since: 1_000_010, until: 1_000_019, ..Query::default() }),
            10
        );
        assert_eq!(count(Query { events: own(&["call.finished", "run"]), ..Query::default() }), 6000);
        assert_eq!(count(Query { events: own(&["run"]), ..Query::default() }), 0);
        assert_eq!(count(Query { since: 1_005_990, ..Query::default() }), 10);
        assert_eq!(snapshot.span(), (1_000_000, 1_005_999));
        let odd = Query { events: own(&["call", "cal"]), ..Query::default() };
        assert_eq!(odd.unknown_event(), Some("cal"));
    }

    #[test]
    fn nothing_is_found_where_nothing_is() {
        let dir = Scratch::new();
        let snapshot = Arc::new(Snapshot::take(&dir.path().join("none")).unwrap());
        assert!(both(&snapshot, &Query::default()).is_empty());
    }
}
