//! Writes messages to a child's standard input without ever making a caller
//! wait for the child: what the pipe takes at once is written at once (no other
//! thread is involved), the rest by a thread that lives as long as there is
//! some. Knows nothing of what the messages say.

use super::pending::Slot;
use crate::proc::{poll_writable, set_nonblocking, thread};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Messages that may wait for a server that does not read. Callers are bounded
/// by the pool; this bounds the answers to a server that asks and never listens.
const QUEUED: usize = 4096;

/// Why a message was not taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Rejected {
    /// The server is gone, or its input was closed.
    Gone,
    /// Too many messages wait already.
    Full,
}

pub(super) struct Writer {
    name: String,
    state: Mutex<State>,
}

struct State {
    pipe: Option<Arc<File>>,
    queue: VecDeque<Outgoing>,
    /// Whether a thread is at work on the queue.
    draining: bool,
}

struct Outgoing {
    line: Vec<u8>,
    at: usize,
    slot: Option<Arc<Slot>>,
}

impl Outgoing {
    /// Writes what the pipe takes; `Ok(true)` when all of it is out.
    fn push(&mut self, mut pipe: &File) -> io::Result<bool> {
        // Said before it is true: the server may act, and end, before a write returns.
        self.mark(true);
        while self.at < self.line.len() {
            match pipe.write(&self.line[self.at..]) {
                Ok(n) => self.at += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => {
                    // The line break is no part of the message: without it a server may still act.
                    self.mark(self.at + 1 >= self.line.len());
                    return if e.kind() == io::ErrorKind::WouldBlock { Ok(false) } else { Err(e) };
                }
            }
        }
        Ok(true)
    }

    fn mark(&self, sent: bool) {
        if let Some(slot) = &self.slot {
            slot.sent.store(sent, Ordering::Release);
        }
    }
}

impl Writer {
    /// Takes over the write end of a pipe. `name` names the thread.
    pub fn new(name: &str, pipe: File) -> io::Result<Arc<Writer>> {
        set_nonblocking(&pipe)?;
        let state = State { pipe: Some(Arc::new(pipe)), queue: VecDeque::new(), draining: false };
        Ok(Arc::new(Writer { name: name.to_owned(), state: Mutex::new(state) }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends one line, in order. Returns at once; `slot.sent` tells when it is out.
    pub fn send(self: &Arc<Self>, line: Vec<u8>, slot: Option<&Arc<Slot>>) -> Result<(), Rejected> {
        let mut message = Outgoing { line, at: 0, slot: slot.cloned() };
        let mut state = self.state();
        let Some(pipe) = &state.pipe else { return Err(Rejected::Gone) };
        if state.queue.is_empty() {
            // Not I/O that could wait: the pipe is non-blocking.
            match message.push(pipe) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(_) => {
                    state.pipe = None;
                    return Err(Rejected::Gone);
                }
            }
        } else if state.queue.len() >= QUEUED {
            return Err(Rejected::Full);
        }
        state.queue.push_back(message);
        if !state.draining {
            let writer = Arc::clone(self);
            if thread::spawn(&format!("in {}", self.name), move || writer.drain()).is_err() {
                // A message that is partly out can be neither finished nor taken back.
                state.pipe = None;
                state.queue.clear();
                return Err(Rejected::Gone);
            }
            state.draining = true;
        }
        Ok(())
    }

    /// Empties the queue, waiting for the server as long as that takes.
    fn drain(&self) {
        loop {
            let pipe = {
                let mut state = self.state();
                loop {
                    let (Some(pipe), Some(message)) = (state.pipe.clone(), state.queue.front_mut()) else {
                        state.draining = false;
                        return;
                    };
                    match message.push(&pipe) {
                        Ok(true) => drop(state.queue.pop_front()),
                        Ok(false) => break pipe,
                        Err(_) => {
                            state.pipe = None;
                            state.queue.clear();
                        }
                    }
                }
            };
            let _ = poll_writable(&*pipe, None);
        }
    }

    /// Takes back the message of this slot, if nothing of it is out yet.
    pub fn retract(&self, slot: &Arc<Slot>) -> bool {
        let mut state = self.state();
        let at = state
            .queue
            .iter()
            .position(|m| m.at == 0 && m.slot.as_ref().is_some_and(|other| Arc::ptr_eq(other, slot)));
        at.and_then(|at| state.queue.remove(at)).is_some()
    }

    /// Closes the pipe; what still waits is dropped.
    pub fn close(&self) {
        let mut state = self.state();
        state.pipe = None;
        state.queue.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::pending::Pending;
    use super::*;
    use std::io::{BufRead, BufReader, PipeReader, Read};
    use std::os::fd::OwnedFd;

    fn pipe() -> (PipeReader, Arc<Writer>) {
        let (reader, writer) = io::pipe().unwrap();
        (reader, Writer::new("t", File::from(OwnedFd::from(writer))).unwrap())
    }

    fn sent(slot: &Slot) -> bool {
        slot.sent.load(Ordering::Acquire)
    }

    #[test]
    fn a_small_message_is_out_at_once() {
        let (mut reader, writer) = pipe();
        let pending = Arc::new(Pending::default());
        let waiting = pending.open(false);
        writer.send(b"one\n".to_vec(), Some(&waiting.slot)).unwrap();
        assert!(sent(&waiting.slot) && !writer.retract(&waiting.slot));
        writer.close();
        assert_eq!(writer.send(b"two\n".to_vec(), None), Err(Rejected::Gone));
        let mut all = String::new();
        reader.read_to_string(&mut all).unwrap();
        assert_eq!(all, "one\n", "and the end is seen");
    }

    #[test]
    fn what_the_pipe_does_not_take_follows_in_order_and_may_be_taken_back() {
        let (reader, writer) = pipe();
        let pending = Arc::new(Pending::default());
        let (big, second, third) = (pending.open(false), pending.open(false), pending.open(false));
        let mut line = vec![b'x'; 3_000_000];
        line.push(b'\n');
        writer.send(line.clone(), Some(&big.slot)).unwrap();
        writer.send(b"second\n".to_vec(), Some(&second.slot)).unwrap();
        writer.send(b"third\n".to_vec(), Some(&third.slot)).unwrap();
        assert!(!sent(&big.slot) && !writer.retract(&big.slot), "it has begun");
        assert!(writer.retract(&second.slot) && !writer.retract(&second.slot));
        let mut lines = BufReader::new(reader).split(b'\n');
        assert_eq!(lines.next().unwrap().unwrap().len(), 3_000_000);
        assert_eq!(lines.next().unwrap().unwrap(), b"third");
        assert!(sent(&big.slot) && !sent(&second.slot) && sent(&third.slot));
        writer.send(b"fourth\n".to_vec(), None).unwrap();
        assert_eq!(lines.next().unwrap().unwrap(), b"fourth");
    }

    #[test]
    fn a_reader_that_left_is_noticed() {
        let (reader, writer) = pipe();
        drop(reader);
        let pending = Arc::new(Pending::default());
        let waiting = pending.open(false);
        assert_eq!(writer.send(b"x\n".to_vec(), Some(&waiting.slot)), Err(Rejected::Gone));
        assert!(!sent(&waiting.slot));
    }

    #[test]
    fn a_server_that_never_reads_fills_no_memory() {
        let (reader, writer) = pipe();
        writer.send(vec![b'x'; 1 << 20], None).unwrap();
        let refused = (0..QUEUED + 1).find(|_| writer.send(b"y\n".to_vec(), None) == Err(Rejected::Full));
        assert!(refused.is_some());
        drop(reader);
    }
}
