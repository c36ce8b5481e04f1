//! Reading from a server's pipe: one line, one message; and who does it. Mostly a
//! thread of its own does. While calls come thick, the caller reads its answer
//! itself: handing it over between threads would take longer than all else that
//! is done for a call. Knows nothing of what the messages say.

use super::oversize::IdScan;
use super::peer::Peer;
use super::pending::Slot;
use crate::proc;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The buffer of a connection on which nothing big happens; one message mostly fits.
const BUFFER: usize = 8 * 1024;

/// What a pipe holds: more is never read at once.
const CHUNK: usize = 64 * 1024;

/// After an answer the thread leaves the pipe to callers for so long. A message that
/// comes without a call meanwhile waits as long.
const BRISK: Duration = Duration::from_millis(20);

/// So long a caller reads; a server that takes longer leaves time for a hand-over.
const PATIENCE: Duration = Duration::from_millis(2);

/// A server's standard output, read by one thread at a time.
pub(super) struct Reading<S> {
    lines: Mutex<Lines<S>>,
    turn: Mutex<Turn>,
    /// Wakes the thread that reads when nobody else does.
    back: Condvar,
}

#[derive(Debug)]
struct Turn {
    /// Somebody reads.
    taken: bool,
    /// Until then the thread leaves reading to callers.
    brisk: Instant,
    /// There is nothing more to read.
    ended: bool,
}

impl<S: Read + AsFd> Reading<S> {
    pub fn new(stream: S) -> Reading<S> {
        let turn = Turn { taken: false, brisk: Instant::now(), ended: false };
        Reading { lines: Mutex::new(Lines::new(stream)), turn: Mutex::new(turn), back: Condvar::new() }
    }

    /// The life of the thread that reads: to the end of the stream, whatever the lines hold.
    pub fn run(&self, peer: &Arc<Peer>, mut send: impl FnMut(Vec<u8>)) {
        loop {
            let mut turn = self.turn();
            loop {
                let left = turn.brisk.saturating_duration_since(Instant::now());
                if turn.ended {
                    return;
                }
                if !turn.taken && left.is_zero() {
                    break;
                }
                // A caller that leaves the pipe in peace wakes nobody: this looks for itself.
                let wait = left.max(PATIENCE);
                turn = self.back.wait_timeout(turn, wait).unwrap_or_else(PoisonError::into_inner).0;
            }
            turn.taken = true;
            drop(turn);
            let before = peer.pending.answered();
            let ended = !self.lines().read(peer, &mut send);
            let mut turn = self.turn();
            turn.taken = false;
            turn.ended |= ended;
            // Whoever still waits for an answer counts on this thread.
            if peer.pending.answered() != before && peer.pending.is_empty() {
                turn.brisk = Instant::now() + BRISK;
            }
        }
    }

    /// Reads what is there already, unless somebody else does. Before a call begins: what
    /// a server asked earlier is not asked because of it.
    pub fn drain(&self, peer: &Arc<Peer>, send: impl FnMut(Vec<u8>)) {
        self.read_until(peer, Instant::now(), || false, send);
    }

    /// Reads for a caller that waits for its answer, unless somebody else does: until
    /// there is something for it, or for a short while.
    pub fn help(&self, peer: &Arc<Peer>, slot: &Slot, deadline: Option<Instant>, send: impl FnMut(Vec<u8>)) {
        let until = Instant::now() + PATIENCE;
        let until = deadline.map_or(until, |deadline| until.min(deadline));
        self.read_until(peer, until, || slot.has_news(), send);
    }

    fn read_until(
        &self,
        peer: &Arc<Peer>,
        until: Instant,
        enough: impl Fn() -> bool,
        mut send: impl FnMut(Vec<u8>),
    ) {
        let mut turn = self.turn();
        if turn.taken || turn.ended {
            return;
        }
        turn.taken = true;
        drop(turn);
        let _returned = Returned(self);
        let mut ended = false;
        // A server that never stops talking is left to the thread.
        let limit = Instant::now() + PATIENCE;
        let mut lines = self.lines();
        while !ended && !enough() && Instant::now() < limit {
            let left = until.saturating_duration_since(Instant::now());
            let ready = proc::poll_readable(&[lines.stream.as_fd()], Some(left));
            if ready.is_ok_and(|ready| !ready[0]) {
                break;
            }
            ended = !lines.read(peer, &mut send);
        }
        drop(lines);
        let mut turn = self.turn();
        turn.taken = false;
        turn.ended |= ended;
        let over = turn.ended || !peer.pending.is_empty();
        turn.brisk = if over { Instant::now() } else { Instant::now() + BRISK };
        drop(turn);
        if over {
            self.back.notify_one();
        }
    }

    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lines(&self) -> MutexGuard<'_, Lines<S>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives a caller's turn back when a bug ends the caller: the server's other callers
/// would wait for ever.
struct Returned<'a, S>(&'a Reading<S>);

impl<S> Drop for Returned<'_, S> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut turn = self.0.turn.lock().unwrap_or_else(PoisonError::into_inner);
            (turn.taken, turn.brisk) = (false, Instant::now());
            drop(turn);
            self.0.back.notify_one();
        }
    }
}

/// A stream cut into lines.
struct Lines<S> {
    stream: S,
    buffer: Vec<u8>,
    /// The bytes of `buffer` before this are an unfinished line.
    filled: usize,
    /// A line over the limit: what is looked for in it, and how long it is so far.
    skipping: Option<(IdScan, u64)>,
}

impl<S: Read> Lines<S> {
    fn new(stream: S) -> Lines<S> {
        Lines { stream, buffer: vec![0; BUFFER], filled: 0, skipping: None }
    }

    /// Reads once and hands each whole line to the peer; `false` at the end of the stream.
    fn read(&mut self, peer: &Arc<Peer>, mut send: impl FnMut(Vec<u8>)) -> bool {
        let limit = peer.limits.message;
        let Lines { stream, buffer, filled, skipping } = self;
        if *filled == buffer.len() {
            let longer = buffer.len() + buffer.len().clamp(CHUNK, 16 << 20);
            buffer.resize(longer, 0);
        }
        let read = match stream.read(&mut buffer[*filled..]) {
            Ok(n) if n > 0 => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return true,
            Ok(_) | Err(_) => {
                // A last line without a line break is still a line.
                if *filled > 0 && skipping.is_none() {
                    peer.take_rest(&buffer[..*filled], send);
                }
                return false;
            }
        };
        let (mut start, mut searched, end) = (0, *filled, *filled + read);
        while let Some(at) = find_line_break(&buffer[searched..end]) {
            let line = &buffer[start..searched + at];
            if let Some((mut scan, before)) = skipping.take() {
                scan.feed(line);
                peer.overlong(scan.id(), before + line.len() as u64);
            } else if line.len() > limit {
                let mut scan = IdScan::default();
                scan.feed(line);
                peer.overlong(scan.id(), line.len() as u64);
            } else {
                peer.take(line, &mut send);
            }
            searched += at + 1;
            start = searched;
        }
        let rest = end - start;
        if skipping.is_some() || rest > limit {
            let (scan, bytes) = skipping.get_or_insert_default();
            scan.feed(&buffer[start..end]);
            *bytes += rest as u64;
            *filled = 0;
        } else {
            // Never for a line that is still growing: each part of it would move all before it.
            if start > 0 {
                buffer.copy_within(start..end, 0);
            }
            *filled = rest;
        }
        // After something big its memory goes back.
        if buffer.len() > 4 * CHUNK && *filled <= BUFFER && (start > 0 || skipping.is_some()) {
            buffer.truncate(CHUNK);
            buffer.shrink_to_fit();
        }
        true
    }
}

/// Where the first line break is. `contains` on bytes is a memchr; a big
/// message is searched at memory speed.
fn find_line_break(bytes: &[u8]) -> Option<usize> {
    const BLOCK: usize = 256;
    let mut before = 0;
    for block in bytes.chunks(BLOCK) {
        if block.contains(&b'\n') {
            return block.iter().position(|&b| b == b'\n').map(|at| before + at);
        }
        before += block.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::peer::{Hooks, Limits, Streams};
    use super::super::pending::{Event, Outcome};
    use super::*;
    use std::io::{PipeReader, Write, pipe};

    const LONG: Duration = Duration::from_secs(60);

    fn peer() -> Arc<Peer> {
        let wait = Duration::from_secs(1);
        let streams = Streams { retry: wait, retry_most: wait, resumes: 1, accept: wait, silence: wait };
        Peer::new("demo", Limits { message: 1 << 20, depth: 100, streams }, Hooks::default())
    }

    fn answer(id: u64) -> Vec<u8> {
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{id}}}\n").into_bytes()
    }

    fn result(slot: &Slot) -> String {
        match slot.wait(Some(Instant::now() + LONG)) {
            Event::Done(Outcome::Result(result)) => result.get().to_owned(),
            Event::Done(other) => format!("{other:?}"),
            Event::Progress(_) | Event::TimedOut => "nothing".into(),
        }
    }

    /// A thread that reads, as for a server.
    fn thread(reading: &Arc<Reading<PipeReader>>, peer: &Arc<Peer>) -> std::thread::JoinHandle<()> {
        let (reading, peer) = (reading.clone(), peer.clone());
        std::thread::spawn(move || reading.run(&peer, drop))
    }

    #[test]
    fn a_caller_reads_its_answer_and_leaves_the_rest_of_a_line() {
        let (out, mut into) = pipe().unwrap();
        let (reading, peer) = (Reading::new(out), peer());
        let waiting = peer.pending.open(false);
        into.write_all(&[answer(waiting.slot.id), b"{\"jsonrpc\"".to_vec()].concat()).unwrap();
        reading.help(&peer, &waiting.slot, None, drop);
        assert!(waiting.slot.has_news(), "nobody but the caller reads here");
        assert_eq!(result(&waiting.slot), "1");
        let next = peer.pending.open(false);
        into.write_all(&answer(next.slot.id)[10..]).unwrap();
        reading.help(&peer, &next.slot, None, drop);
        assert_eq!(result(&next.slot), "2");
        assert!(!reading.turn().ended);
    }

    #[test]
    fn what_came_before_a_call_is_read_before_it() {
        let (out, mut into) = pipe().unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (noticed, peer) = (heard.clone(), peer());
        let hooks = Hooks {
            noticed: Arc::new(move |method, _| noticed.lock().unwrap().push(method.to_owned())),
            ..Hooks::default()
        };
        let peer = Peer::new("demo", peer.limits, hooks);
        let reading = Reading::new(out);
        reading.drain(&peer, drop);
        into.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n")
            .unwrap();
        reading.drain(&peer, drop);
        assert_eq!(*heard.lock().unwrap(), ["notifications/message"]);
    }

    #[test]
    fn answers_that_take_longer_or_belong_to_others_come_through_the_thread() {
        let (out, mut into) = pipe().unwrap();
        let (reading, peer) = (Arc::new(Reading::new(out)), peer());
        let [slow, other] = [(); 2].map(|()| peer.pending.open(false));
        // Long past its patience it still has no answer.
        reading.help(&peer, &slow.slot, None, drop);
        assert!(!slow.slot.has_news());
        let own = thread(&reading, &peer);
        into.write_all(&answer(other.slot.id)).unwrap();
        assert_eq!(result(&other.slot), "2");
        into.write_all(&answer(slow.slot.id)).unwrap();
        assert_eq!(result(&slow.slot), "1");
        drop(into);
        own.join().unwrap();
    }

    #[test]
    fn many_callers_and_the_thread_lose_no_answer() {
        let (out, into) = pipe().unwrap();
        let (reading, peer, into) = (Arc::new(Reading::new(out)), peer(), Mutex::new(into));
        let own = thread(&reading, &peer);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let waiting = peer.pending.open(false);
                        into.lock().unwrap().write_all(&answer(waiting.slot.id)).unwrap();
                        reading.help(&peer, &waiting.slot, None, drop);
                        assert_eq!(result(&waiting.slot), waiting.slot.id.to_string());
                    }
                });
            }
        });
        drop(into);
        own.join().unwrap();
    }

    #[test]
    fn a_caller_that_a_bug_ends_gives_its_turn_back() {
        let (out, mut into) = pipe().unwrap();
        let (reading, peer) = (Arc::new(Reading::new(out)), peer());
        let [broken, other] = [(); 2].map(|()| peer.pending.open(false));
        into.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":\"s\",\"method\":\"ping\"}\n").unwrap();
        let bug = std::panic::AssertUnwindSafe(|| {
            reading.help(&peer, &broken.slot, None, |_| panic!("a bug of the test"));
        });
        assert!(std::panic::catch_unwind(bug).is_err());
        let own = thread(&reading, &peer);
        into.write_all(&answer(other.slot.id)).unwrap();
        assert_eq!(result(&other.slot), "2");
        drop(into);
        own.join().unwrap();
    }

    #[test]
    fn an_end_that_a_caller_reads_ends_the_thread() {
        let (out, into) = pipe().unwrap();
        let (reading, peer) = (Arc::new(Reading::new(out)), peer());
        let waiting = peer.pending.open(false);
        drop(into);
        reading.help(&peer, &waiting.slot, None, drop);
        thread(&reading, &peer).join().unwrap();
    }
}
