//! What is on its way to a host over HTTP: messages with numbers, kept for a
//! while after they were written, so that a host that lost its connection gets
//! the rest on another (MCP up to 2025-11-25: `Last-Event-ID`). Knows nothing of
//! sessions.

use super::backend::Outlet;
use super::session::Reply;
use crate::api::http::Chunked;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// So many streams that are over are kept at most, however little is in them.
const KEPT: usize = 32;

/// Messages for one stream.
pub struct Stream {
    /// Names it in the ids of its events; none where a stream cannot be taken up again.
    name: Option<String>,
    /// So many bytes of what has been written are kept.
    room: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    kept: VecDeque<(u64, Vec<u8>)>,
    bytes: usize,
    /// The number of the newest message; the first has 1.
    last: u64,
    /// The number of the newest message that was written to a connection.
    written: u64,
    /// It was begun as a stream: an answer comes as a message.
    begun: bool,
    /// The answer, when it came before anything else.
    reply: Option<Reply>,
    over: bool,
    /// Counts those who read it; the newest takes over.
    reader: u64,
    /// Somebody reads it.
    attached: bool,
}

/// What comes first.
pub enum First {
    /// The answer, and nothing else.
    Reply(Reply),
    /// Something that makes a stream of it, if only that it takes its time.
    Stream,
}

enum Next {
    Message(u64, Vec<u8>),
    Silence,
    End,
}

impl Stream {
    /// An empty one.
    pub fn new(name: Option<String>, room: u64) -> Arc<Stream> {
        let stream = Stream::unread(name, room);
        // Whoever is to read it is on the way.
        stream.lock().attached = true;
        stream
    }

    /// An empty one that perhaps nobody will read.
    pub fn unread(name: Option<String>, room: u64) -> Arc<Stream> {
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        Arc::new(Stream { name, room, state: Mutex::default(), changed: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, state: &mut State, line: &[u8]) {
        state.last += 1;
        state.bytes += line.len();
        state.kept.push_back((state.last, line.to_vec()));
        // What nobody has been sent yet stays for whoever reads; without a reader, only as much as there is room for.
        let free = |state: &State| {
            state.kept.len() > 1
                && state.kept.front().is_some_and(|(n, _)| *n <= state.written || !state.attached)
        };
        while state.bytes > self.room && free(state) {
            if let Some((_, gone)) = state.kept.pop_front() {
                state.bytes -= gone.len();
            }
        }
    }

    /// The answer has come; nothing follows, and no second answer.
    pub fn finish(&self, reply: Reply) {
        let mut state = self.lock();
        if state.over {
            return;
        }
        if !state.begun && state.last == 0 {
            state.reply = Some(reply);
        } else if let Some(line) = &reply.line {
            self.push(&mut state, line);
        }
        state.over = true;
        drop(state);
        self.changed.notify_all();
    }

    /// Waits for what comes first, but not for long.
    pub fn first(&self, patience: Duration) -> First {
        let quiet = |state: &mut State| state.last == 0 && !state.over;
        let state = self.lock();
        let waited = self.changed.wait_timeout_while(state, patience, quiet);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        match state.reply.take() {
            Some(reply) => First::Reply(reply),
            None => {
                state.begun = true;
                First::Stream
            }
        }
    }

    /// Whoever read it so far does so no longer.
    fn attach(&self) -> u64 {
        let mut state = self.lock();
        state.reader += 1;
        state.attached = true;
        let reader = state.reader;
        drop(state);
        self.changed.notify_all();
        reader
    }

    fn next(&self, after: u64, reader: u64, patience: Duration) -> Next {
        let deadline = Instant::now() + patience;
        let mut state = self.lock();
        loop {
            if state.reader != reader {
                return Next::End;
            }
            if let Some((n, line)) = state.kept.iter().find(|(n, _)| *n > after) {
                return Next::Message(*n, line.clone());
            }
            if state.over {
                return Next::End;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Next::Silence;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Writes what comes after a message, and a comment when nothing does, until the end, or
    /// until somebody else reads it.
    ///
    /// # Errors
    /// The connection's.
    pub fn pour(
        &self,
        out: &mut Chunked<'_>,
        mut after: u64,
        heartbeat: Duration,
        wanted: impl Fn() -> bool,
    ) -> io::Result<()> {
        let reader = self.attach();
        let outcome = loop {
            match self.next(after, reader, heartbeat) {
                Next::Message(n, line) => {
                    if let Err(e) = out.send(&self.event(n, &line)) {
                        break Err(e);
                    }
                    after = n;
                    let mut state = self.lock();
                    state.written = state.written.max(n);
                }
                Next::Silence if wanted() => {
                    if let Err(e) = out.send(b": still here\n\n") {
                        break Err(e);
                    }
                }
                _ => break Ok(()),
            }
        };
        let mut state = self.lock();
        state.attached &= state.reader != reader;
        outcome
    }

    /// The first event of a stream that takes its time: an id to come back with.
    pub fn greeting(&self) -> Vec<u8> {
        match &self.name {
            Some(name) => format!("id: {name}-0\ndata: \n\n").into_bytes(),
            None => b": here\n\n".to_vec(),
        }
    }

    /// The number of the newest message.
    pub fn last(&self) -> u64 {
        self.lock().last
    }

    /// Whether anybody has ever read it.
    pub fn was_read(&self) -> bool {
        self.lock().reader > 0
    }

    /// A message as a server-sent event.
    pub fn event(&self, n: u64, line: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(line.len() + 48);
        if let Some(name) = &self.name {
            out.extend_from_slice(format!("id: {name}-{n}\n").as_bytes());
        }
        out.extend_from_slice(b"event: message\ndata: ");
        out.extend_from_slice(line.trim_ascii_end());
        out.extend_from_slice(b"\n\n");
        out
    }
}

impl Outlet for Stream {
    fn send(&self, line: &[u8]) -> bool {
        let mut state = self.lock();
        if state.over {
            return false;
        }
        self.push(&mut state, line);
        drop(state);
        self.changed.notify_all();
        true
    }
}

/// The stream and the number that an event's id names.
pub fn parse(id: &str) -> Option<(&str, u64)> {
    let (name, n) = id.trim().rsplit_once('-')?;
    Some((name, n.parse().ok()?))
}

/// The streams of a session that can be taken up again.
#[derive(Default)]
pub struct Streams(Mutex<VecDeque<Arc<Stream>>>);

impl Streams {
    /// Adds one; of those that are over, the oldest give way.
    pub fn add(&self, stream: Arc<Stream>) {
        let room = stream.room;
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push_back(stream);
        let (mut count, mut bytes) = (0, 0);
        // From the newest on: what is beyond the room is among the oldest.
        let keep: Vec<bool> = all
            .iter()
            .rev()
            .map(|stream| {
                let state = stream.lock();
                if !state.over {
                    return true;
                }
                count += 1;
                bytes += state.bytes;
                count <= KEPT && bytes <= room
            })
            .collect();
        let mut keep = keep.into_iter().rev();
        all.retain(|_| keep.next().unwrap_or(true));
    }

    /// The one of that name.
    pub fn find(&self, name: &str) -> Option<Arc<Stream>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().find(|stream| stream.name.as_deref() == Some(name)).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a reader after this number gets without waiting.
    fn after(stream: &Stream, n: u64) -> Vec<u64> {
        let (reader, mut at, mut got) = (stream.attach(), n, Vec::new());
        while let Next::Message(n, _) = stream.next(at, reader, Duration::ZERO) {
            (at, _) = (n, got.push(n));
        }
        stream.lock().attached = false;
        got
    }

    fn reply(text: &[u8]) -> Reply {
        Reply { line: Some(text.to_vec()), status: 200 }
    }

    #[test]
    fn what_was_written_is_kept_for_as_long_as_there_is_room() {
        let stream = Stream::unread(Some("a".into()), 10);
        for _ in 0..3 {
            assert!(stream.send(b"12345"));
        }
        assert_eq!(after(&stream, 0), [2, 3], "nobody read the first, and there was no room");
        assert_eq!(after(&stream, 2), [3]);
        stream.attach();
        for _ in 0..3 {
            assert!(stream.send(b"12345"));
        }
        assert_eq!(stream.lock().kept.len(), 5, "a reader gets everything");
        stream.lock().written = 6;
        stream.finish(reply(b"1"));
        assert_eq!(after(&stream, 0), [6, 7]);
        assert!(!stream.send(b"late"));
        assert_eq!(stream.event(7, b"{}\n"), b"id: a-7\nevent: message\ndata: {}\n\n");
        assert_eq!(Stream::new(None, 1).event(7, b"{}"), b"event: message\ndata: {}\n\n");
    }

    #[test]
    fn an_answer_alone_is_no_stream() {
        let stream = Stream::new(None, 10);
        stream.finish(reply(b"x"));
        assert!(matches!(stream.first(Duration::ZERO), First::Reply(r) if r.line.as_deref() == Some(b"x")));
        let slow = Stream::new(None, 10);
        assert!(matches!(slow.first(Duration::ZERO), First::Stream));
        slow.finish(reply(b"x"));
        assert_eq!(after(&slow, 0), [1]);
        let talks = Stream::new(None, 10);
        talks.send(b"x");
        talks.finish(reply(b"y"));
        assert!(matches!(talks.first(Duration::ZERO), First::Stream));
        assert_eq!(after(&talks, 0), [1, 2]);
    }

    #[test]
    fn old_streams_give_way_and_those_at_work_stay() {
        let streams = Streams::default();
        let add = |name: &str, over: bool| {
            let stream = Stream::new(Some(name.into()), 10);
            stream.send(b"1234");
            if over {
                stream.finish(reply(b"12"));
            }
            streams.add(stream);
        };
        add("working", false);
        for name in ["one", "two", "three"] {
            add(name, true);
        }
        assert!(streams.find("working").is_some() && streams.find("three").is_some());
        assert!(streams.find("one").is_none() && streams.find("two").is_none());
        assert_eq!(parse("a-b-7"), Some(("a-b", 7)));
        assert_eq!((parse("7"), parse("a-x")), (None, None));
    }
}
