//! The counts themselves: one group a tool, server, session or whatever is asked
//! for, filled line by line on several threads and put together at the end. A line
//! that falls into a group that there is costs no memory of its own but its
//! duration. Knows nothing of files.

use super::census::{Chosen, Fate, Numbers};
use super::line::{Line, number, place};
use super::places::{Names, Set};
use super::stats::{About, Asked, Report};
use super::template::template;
use super::text::text_of;
use crate::observe::kinds;
use serde_json::{Map, Value, json};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// So many places are named for one shape of error.
const PLACES: usize = 5;

/// Puts the parts of a key apart; JSON as it is written never holds it.
const APART: u8 = 0;

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
    /// Servers and tools, by their numbers.
    places: Set,
    example: String,
}

impl Group {
    /// Adds another; `numbers` says what its places are here.
    fn merge(&mut self, other: Group, numbers: &[u32]) {
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
        for place in other.places.numbers() {
            self.places.insert(numbers.get(place as usize).copied().unwrap_or(place));
        }
        if other.last >= self.last {
            self.example = other.example;
        }
        self.last = self.last.max(other.last);
    }

    /// Nearest rank: the smallest value that so many of a hundred do not exceed.
    fn times(&mut self) -> Map<String, Value> {
        let mut row = Map::new();
        if self.times.is_empty() {
            return row;
        }
        for (key, percent) in [("p50", 50), ("p95", 95), ("p99", 99), ("max", 100)] {
            let rank = (self.times.len() * percent).div_ceil(100).max(1) - 1;
            row.insert(key.into(), unpack(*self.times.select_nth_unstable(rank).1).into());
        }
        row.insert("total".into(), ((self.total * 1000.0).round() / 1000.0).into());
        row
    }
}

/// A row of the slowest, and its packed duration.
type Slow = (u32, Value);

/// What was counted so far.
#[derive(Default)]
pub(super) struct Tally {
    /// By what is asked for: its parts as they are written, put apart.
    groups: HashMap<Vec<u8>, Group>,
    slowest: Vec<Slow>,
    /// The servers and tools that groups speak of.
    names: Names,
    first: u64,
    last: u64,
    /// The groups that are to be counted, where that is not all of them.
    chosen: Option<Arc<(Numbers, Chosen)>>,
    /// Of those that are here the ones that others may push out.
    tied: BTreeSet<Vec<u8>>,
    /// The key of the line at hand.
    key: Vec<u8>,
}

impl Tally {
    /// One that counts only the groups that are chosen.
    pub fn of(chosen: &Arc<(Numbers, Chosen)>) -> Tally {
        Tally { chosen: Some(chosen.clone()), ..Tally::default() }
    }

    /// An empty one that counts the same.
    pub fn another(&self) -> Tally {
        Tally { chosen: self.chosen.clone(), ..Tally::default() }
    }

    /// How many groups it has.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// The key of the group that a line falls into, if it falls into one.
    pub fn key(&mut self, line: &Line, Asked { about, step, .. }: Asked) -> Option<&[u8]> {
        let called = is(line, kinds::CALL_FINISHED.word);
        match about {
            About::Calls => self.key_of(&[line.server, line.tool]),
            About::Servers => self.key_of(&[line.server]),
            About::Instances => self.key_of(&[line.server, line.instance, line.daemon]),
            About::Sessions => self.key_of(&[line.session]),
            About::Volume => self.key_of(&[&(line.at / step * step).to_be_bytes()]),
            About::Errors if called && line.outcome == OK => return None,
            About::Errors => {
                let shape = template(&text_of(line.message));
                self.key_of(&[if called { line.outcome } else { line.event }, shape.as_bytes()]);
            }
            About::Slowest => return None,
        }
        Some(&self.key)
    }

    /// Counts a line. Volume is by steps of time, in milliseconds; of the slowest there are at most so many.
    pub fn add(&mut self, line: &Line, asked: Asked) {
        let (at, about) = (line.at, asked.about);
        let called = is(line, kinds::CALL_FINISHED.word);
        let ms = std::str::from_utf8(line.ms).ok().and_then(|ms| ms.parse::<f64>().ok()).unwrap_or(0.0);
        let failed = called && line.outcome != OK;
        if about == About::Slowest {
            self.span(at, at);
            return self.slow(pack(ms), asked.limit, || {
                json!({
                    "ms": ms, "tool": place(line.server, line.tool), "outcome": text_of(line.outcome),
                    "at": at, "session": text_of(line.session), "call": text_of(line.call),
                })
            });
        }
        if self.key(line, asked).is_none() {
            return;
        }
        self.span(at, at);
        if !self.groups.contains_key(&self.key) {
            if self.fate(&self.key) == Fate::Left {
                return;
            }
            self.groups.insert(self.key.clone(), Group { first: at, ..Group::default() });
        }
        let Some(group) = self.groups.get_mut(&self.key) else { return };
        group.last = group.last.max(at);
        group.records += 1;
        group.starts += u64::from(is(line, kinds::SERVER_STARTED.word));
        group.failures += u64::from(is(line, kinds::SERVER_FAILED.word));
        if called {
            group.calls += 1;
            group.errors += u64::from(failed);
            group.times.push(pack(ms));
            group.total += ms;
            group.sent += number(line.sent).unwrap_or(0);
            group.received += number(line.received).unwrap_or(0);
        }
        if matches!(about, About::Sessions | About::Errors) {
            let place = keyed(&mut self.key, &[line.server, line.tool]);
            group.places.insert(self.names.number(place));
        }
        if about == About::Errors {
            group.example = text_of(line.message).into_owned();
        }
    }

    fn key_of(&mut self, parts: &[&[u8]]) {
        keyed(&mut self.key, parts);
    }

    fn slow(&mut self, packed: u32, limit: usize, row: impl FnOnce() -> Value) {
        let at = self.slowest.partition_point(|(ms, _)| *ms >= packed);
        if at < limit {
            self.slowest.insert(at, (packed, row()));
            self.slowest.truncate(limit);
        }
    }

    fn span(&mut self, first: u64, last: u64) {
        if first > 0 {
            self.first = if self.first == 0 { first } else { self.first.min(first) };
        }
        self.last = self.last.max(last);
    }

    /// Adds what another thread counted.
    pub fn merge(&mut self, other: Tally, limit: usize) {
        self.span(other.first, other.last);
        let numbers = self.names.taken_in(&other.names);
        for (key, group) in other.groups {
            if self.groups.contains_key(&key) || self.makes_room(&key) {
                self.groups.entry(key).or_default().merge(group, &numbers);
            }
        }
        other.slowest.into_iter().for_each(|(packed, row)| self.slow(packed, limit, || row));
    }

    /// What becomes of a group.
    fn fate(&self, key: &[u8]) -> Fate {
        self.chosen.as_ref().map_or(Fate::Shown, |chosen| chosen.1.fate(chosen.0.of(key)))
    }

    /// Whether a group that is new here is taken in. Of those with just enough records only the first
    /// are: one that is left out stays out, as there are enough before it.
    fn makes_room(&mut self, key: &[u8]) -> bool {
        if self.fate(key) != Fate::Tied {
            return true;
        }
        let room = self.chosen.as_ref().map_or(usize::MAX, |chosen| chosen.1.room);
        if self.tied.len() >= room {
            if self.tied.last().is_none_or(|last| last.as_slice() <= key) {
                return false;
            }
            let last = self.tied.pop_last().unwrap_or_default();
            self.groups.remove(&last);
        }
        self.tied.insert(key.to_owned())
    }

    /// The rows.
    pub fn report(self, about: About, limit: usize) -> Report {
        let word = About::ALL.iter().find(|(a, _)| *a == about).map_or("", |(_, word)| word);
        let mut groups: Vec<(Vec<u8>, Group)> = self.groups.into_iter().collect();
        groups.sort_unstable_by(|a, b| {
            // Time in its order; of the rest what there is most of comes first.
            let most = if about == About::Volume { (0, 0) } else { (b.1.records, a.1.records) };
            most.0.cmp(&most.1).then_with(|| a.0.cmp(&b.0))
        });
        let over = groups.len().saturating_sub(limit);
        let left = self.chosen.as_ref().map_or(over, |chosen| chosen.1.groups().saturating_sub(limit));
        // Of a long time the latest part matters most.
        let kept = if about == About::Volume { groups.split_off(over) } else { groups };
        let mut rows: Vec<Value> =
            kept.into_iter().take(limit).map(|(key, group)| row(about, &key, group, &self.names)).collect();
        rows.extend(self.slowest.into_iter().map(|(_, row)| row));
        Report { about: word, since: self.first, until: self.last, rows, more: left }
    }
}

/// The outcome of a call that went well, as it is written.
const OK: &[u8] = b"\"ok\"";

/// Whether a line is about this event.
fn is(line: &Line, word: &str) -> bool {
    let event = line.event.strip_prefix(b"\"").and_then(|e| e.strip_suffix(b"\""));
    event == Some(word.as_bytes())
}

fn keyed<'a>(key: &'a mut Vec<u8>, parts: &[&[u8]]) -> &'a Vec<u8> {
    key.clear();
    for (n, part) in parts.iter().enumerate() {
        if n > 0 {
            key.push(APART);
        }
        key.extend_from_slice(part);
    }
    key
}

/// The place that a key of a server and a tool names.
fn place_of(key: &[u8]) -> String {
    let mut parts = key.splitn(2, |b| *b == APART);
    place(parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
}

fn row(about: About, key: &[u8], mut group: Group, names: &Names) -> Value {
    let mut parts = key.splitn(3, |b| *b == APART);
    let mut part = || text_of(parts.next().unwrap_or_default());
    let mut row = Map::new();
    let mut put = |key: &str, value: Value| row.insert(key.to_owned(), value);
    match about {
        About::Errors => {
            put("count", group.records.into());
            put("kind", part().into());
            // The rest, whatever is in it, is text already.
            let shape = key.iter().position(|b| *b == APART).map_or(key.len(), |at| at + 1);
            put("template", String::from_utf8_lossy(&key[shape..]).into());
            let more = group.places.len().saturating_sub(PLACES);
            let mut keys: Vec<&[u8]> = group.places.numbers().into_iter().map(|n| names.key(n)).collect();
            keys.sort_unstable();
            let mut places: Vec<String> = keys.into_iter().take(PLACES).map(place_of).collect();
            if more > 0 {
                places.push(format!("and {more} more"));
            }
            put("places", places.join(", ").into());
            put("example", group.example.into());
            put("first", group.first.into());
            put("last", group.last.into());
            return Value::Object(row);
        }
        About::Volume => drop(put("from", key.try_into().map_or(0, u64::from_be_bytes).into())),
        About::Calls => drop(put("tool", place_of(key).into())),
        About::Sessions => {
            put("session", part().into());
            put("tools", group.places.len().into());
        }
        About::Servers => drop(put("server", part().into())),
        About::Instances | About::Slowest => {
            put("server", part().into());
            put("instance", part().into());
            put("daemon", part().into());
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

    #[test]
    fn durations_keep_their_order_and_their_value() {
        for ms in [0.0, 0.001, 12.345, 2_147_483.647, 2_147_484.0, 90_000_000.0] {
            assert_eq!(unpack(pack(ms)), ms);
        }
        assert!(pack(2_147_483.647) < pack(2_147_484.0));
    }
}
