//! Takes records from every thread without making one wait, and has a thread
//! write them: the writer, or one that has just done its work and has time
//! ([`Journal::hold`]). What finds no room is counted, and the log itself says
//! how many those were. Knows nothing of who says what.

use super::record::{Entry, Item, level_of};
use super::redact::Redactor;
use super::store::{Rolling, Store};
use crate::log;
use crate::observe::{Heard, kinds};
use crate::util;
use serde_json::json;
use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// So many records may wait; the writer is behind by that many only when the disk stands still.
const ROOM: usize = 8192;

/// So many bytes are written at once.
const BATCH: usize = 64 * 1024;

/// Starts a thread of this name; how that is done is for the layer that has threads.
pub type Spawn = fn(&str, Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>>;

/// How much was written and lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Records in the files.
    pub written: u64,
    /// Records that found no room, or could not be written.
    pub dropped: u64,
}

/// The way into the log.
#[derive(Debug)]
pub struct Journal {
    daemon: String,
    dir: PathBuf,
    state: Mutex<State>,
    more: Condvar,
    empty: Condvar,
    files: Mutex<Files>,
    on: AtomicBool,
    written: AtomicU64,
    dropped: AtomicU64,
}

#[derive(Debug)]
struct State {
    items: VecDeque<Item>,
    /// The writer sleeps: only then is waking it worth a system call.
    asleep: bool,
    /// Somebody writes, and looks for more when that is done.
    writing: bool,
    closed: bool,
    rolling: Rolling,
    redactor: Arc<Redactor>,
}

/// What whoever writes has in hand.
#[derive(Debug)]
struct Files {
    store: Store,
    /// So many lost records the log has told of.
    told: u64,
}

thread_local! {
    /// This thread writes the record of its call itself when it has answered.
    static HOLDS: Cell<bool> = const { Cell::new(false) };
}

/// While it lives, the end of a call on this thread wakes nobody; then the thread
/// writes it, and whatever else waits, unless somebody is writing already.
#[derive(Debug)]
pub struct Hold<'a>(&'a Journal);

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        HOLDS.set(false);
        let state = self.0.lock();
        if !state.items.is_empty() && !state.writing {
            self.0.turn(state);
        }
    }
}

impl Journal {
    /// A log in this directory, of this daemon. Nothing is taken before [`Journal::start`].
    pub fn new(dir: PathBuf, daemon: String, rolling: Rolling) -> Arc<Journal> {
        let state = State {
            items: VecDeque::new(),
            asleep: false,
            writing: false,
            closed: false,
            rolling,
            redactor: Arc::default(),
        };
        Arc::new(Journal {
            daemon,
            files: Mutex::new(Files { store: Store::new(dir.clone()), told: 0 }),
            dir,
            state: Mutex::new(state),
            more: Condvar::new(),
            empty: Condvar::new(),
            on: AtomicBool::new(false),
            written: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        })
    }

    /// Starts the writer.
    ///
    /// # Errors
    /// When there is no room for a thread; then nothing is recorded.
    pub fn start(self: &Arc<Journal>, spawn: Spawn) -> io::Result<()> {
        let journal = self.clone();
        spawn("log-writer", Box::new(move || journal.write()))?;
        self.on.store(true, Ordering::Release);
        Ok(())
    }

    /// When files roll, and what is kept out of them, from now on.
    pub fn configure(&self, rolling: Rolling, redactor: Redactor) {
        let mut state = self.lock();
        state.rolling = rolling;
        state.redactor = Arc::new(redactor);
    }

    /// A text without what is kept out of the log.
    pub fn hide(&self, text: &str) -> String {
        let redactor = self.lock().redactor.clone();
        redactor.hide(text.to_owned())
    }

    /// The directory of its files.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The id of the daemon that its records carry.
    pub fn daemon(&self) -> &str {
        &self.daemon
    }

    /// How much was written and lost so far.
    pub fn counts(&self) -> Counts {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counts { written: get(&self.written), dropped: get(&self.dropped) }
    }

    /// Takes what a bus tells.
    pub fn hear(&self, heard: Heard<'_>) {
        match heard {
            Heard::Event(event, extra) if log::enabled(level_of(event)) => {
                // Other records may come long before the work is done, and wait for nobody.
                let held = HOLDS.get() && event.kind == kinds::CALL_FINISHED.word;
                self.push(Item::Event(event.clone(), extra), held);
            }
            Heard::Event(..) => {}
            Heard::Record(entry) => self.boxed(entry),
        }
    }

    /// Takes a record.
    pub fn entry(&self, entry: Entry) {
        self.boxed(Box::new(entry));
    }

    fn boxed(&self, entry: Box<Entry>) {
        if log::enabled(entry.level()) {
            self.push(Item::Entry(util::now_ms(), entry), false);
        }
    }

    fn push(&self, item: Item, held: bool) {
        if !self.on.load(Ordering::Acquire) {
            return;
        }
        let mut state = self.lock();
        if state.closed || state.items.len() >= ROOM {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        state.items.push_back(item);
        let wake = !held && !state.writing && std::mem::take(&mut state.asleep);
        drop(state);
        if wake {
            self.more.notify_one();
        }
    }

    /// Takes nothing more, and waits until everything is written, at most so long.
    pub fn close(&self, patience: Duration) {
        let mut state = self.lock();
        state.closed = true;
        self.more.notify_one();
        if !self.on.load(Ordering::Acquire) {
            return;
        }
        let _ = self.empty.wait_timeout_while(state, patience, |_| self.on.load(Ordering::Acquire));
    }

    /// For a thread that makes a call for somebody who waits, and has time to write
    /// once it has answered: waking the writer would cost a call more than all else
    /// that the daemon does for it.
    pub fn hold(&self) -> Hold<'_> {
        HOLDS.set(true);
        Hold(self)
    }

    /// The writer's life.
    fn write(&self) {
        loop {
            let mut state = self.lock();
            while state.writing || (state.items.is_empty() && !state.closed) {
                state.asleep = true;
                state = self.more.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            state.asleep = false;
            if state.items.is_empty() {
                break;
            }
            self.turn(state);
        }
        self.on.store(false, Ordering::Release);
        drop(self.lock());
        self.empty.notify_all();
    }

    /// Writes what waits now. What comes meanwhile is for the writer.
    fn turn(&self, mut state: MutexGuard<'_, State>) {
        state.writing = true;
        let items = std::mem::take(&mut state.items);
        let (rolling, redactor) = (state.rolling.clone(), state.redactor.clone());
        drop(state);
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let mut items = items.into_iter().peekable();
        while items.peek().is_some() {
            self.batch(&mut items, &mut files, &rolling, &redactor);
        }
        drop(files);
        let mut state = self.lock();
        state.writing = false;
        let wake = (!state.items.is_empty() || state.closed) && std::mem::take(&mut state.asleep);
        drop(state);
        if wake {
            self.more.notify_one();
        }
    }

    /// Writes as many records as go at once.
    fn batch(
        &self,
        items: &mut dyn Iterator<Item = Item>,
        files: &mut Files,
        rolling: &Rolling,
        redactor: &Redactor,
    ) {
        let Files { store, told } = files;
        let mut text = String::new();
        let mut count = 0;
        let ready = store.prepare(util::now_ms(), rolling);
        let dropped = self.dropped.load(Ordering::Relaxed);
        if dropped > *told && ready.is_ok() {
            let lost = Entry {
                event: "log.dropped".into(),
                data: json!({"records": dropped - *told}),
                ..Entry::new(log::Level::Warn, "daemon", format!("{} records were lost", dropped - *told))
            };
            *told = dropped;
            let at = store.in_order(util::now_ms());
            text.push_str(&Item::Entry(at, Box::new(lost)).line(at, &self.daemon));
            text.push('\n');
        }
        // Rolled by lines, a file must not get more than it may have at once.
        let most = if rolling.lines == 0 { u64::MAX } else { 1 };
        for item in items {
            let at = store.in_order(item.at());
            text.push_str(&redactor.hide(item.line(at, &self.daemon)));
            text.push('\n');
            count += 1;
            if text.len() >= BATCH || count >= most {
                break;
            }
        }
        match ready.and_then(|()| store.append(text.as_bytes(), count)) {
            Ok(()) => self.written.fetch_add(count, Ordering::Relaxed),
            Err(_) => self.dropped.fetch_add(count, Ordering::Relaxed),
        };
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::super::store::list;
    use super::*;
    use crate::log::Level;
    use crate::observe::Event;
    use crate::observe::scratch::{Scratch, thread};
    use serde_json::Value;

    const ROLLING: Rolling = Rolling { size: 1 << 20, lines: 0, age: 0, keep: 3 };
    const LONG: Duration = Duration::from_secs(60);

    fn lines(dir: &Path) -> Vec<Value> {
        let files = list(dir).unwrap();
        let texts = files.iter().map(|(_, path)| std::fs::read_to_string(path).unwrap());
        texts
            .flat_map(|t| t.lines().map(|l| serde_json::from_str(l).unwrap()).collect::<Vec<Value>>())
            .collect()
    }

    #[test]
    fn records_of_many_threads_arrive_whole_and_in_order_without_secrets() {
        let dir = Scratch::new();
        let journal = Journal::new(dir.path().join("log"), "d1".into(), ROLLING);
        journal.entry(Entry::new(Level::Info, "daemon", "before the start: not taken"));
        journal.start(thread).unwrap();
        journal.configure(ROLLING, Redactor::new(["hunter22"]));
        std::thread::scope(|scope| {
            for n in 0..8 {
                let journal = &journal;
                scope.spawn(move || {
                    for i in 0..100 {
                        journal.entry(Entry::new(Level::Warn, "script", format!("{n}.{i} hunter22")));
                    }
                });
            }
        });
        journal.close(LONG);
        journal.entry(Entry::new(Level::Info, "daemon", "after the end"));
        let lines = lines(journal.dir());
        assert_eq!((lines.len(), journal.counts().written), (800, 800));
        assert!(lines.is_sorted_by_key(|line| line["at"].as_u64().unwrap()));
        assert!(
            lines
                .iter()
                .all(|l| l["message"].as_str().unwrap().ends_with(" ********") && l["daemon"] == "d1")
        );
    }

    #[test]
    fn a_thread_that_holds_its_records_writes_them_itself_when_it_is_done() {
        let dir = Scratch::new();
        let journal = Journal::new(dir.path().join("log"), "d1".into(), ROLLING);
        journal.start(thread).unwrap();
        while !journal.lock().asleep {
            std::thread::yield_now();
        }
        let call = || {
            let mut event = Event::new(&kinds::CALL_FINISHED, json!({"outcome": "ok"}));
            event.at = util::now_ms();
            journal.hear(Heard::Event(&Arc::new(event), None));
        };
        let hold = journal.hold();
        (0..3).for_each(|_| call());
        assert!(journal.lock().asleep, "the writer was woken");
        drop(hold);
        assert_eq!(lines(journal.dir()).len(), 3);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let _hold = journal.hold();
                        call();
                    }
                });
                scope.spawn(|| {
                    (0..200).for_each(|_| journal.entry(Entry::new(Level::Warn, "server", "else")));
                });
            }
        });
        journal.close(LONG);
        let lines = lines(journal.dir());
        assert_eq!(lines.len(), 1603);
        assert!(lines.is_sorted_by_key(|line| line["at"].as_u64().unwrap()));
    }

    #[test]
    fn what_cannot_be_written_is_counted_and_told_later() {
        let dir = Scratch::new();
        // A file where the directory should be.
        let place = dir.path().join("log");
        std::fs::write(&place, "").unwrap();
        let journal = Journal::new(place.clone(), "d1".into(), ROLLING);
        journal.start(thread).unwrap();
        journal.entry(Entry::new(Level::Warn, "daemon", "lost"));
        while journal.counts().dropped == 0 {
            std::thread::yield_now();
        }
        std::fs::remove_file(&place).unwrap();
        journal.entry(Entry::new(Level::Warn, "daemon", "kept"));
        journal.close(LONG);
        let lines = lines(&place);
        assert_eq!((&lines[0]["event"], &lines[0]["data"]["records"]), (&json!("log.dropped"), &json!(1)));
        assert_eq!(lines[1]["message"], "kept");
    }
}
