//! The near end of a channel: many requests at once over one stream, paired by
//! id, with progress and cancellation. Knows nothing of what they ask for.

use super::backend::Asked;
use crate::api::frame;
use crate::error::{Error, Kind, Result};
use crate::log;
use crate::proc::thread;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::io::{self, Read};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A channel; dropping it closes it.
pub struct Channel(Arc<Inner>);

struct Inner {
    stream: UnixStream,
    writer: Mutex<UnixStream>,
    serial: AtomicU64,
    waiting: Mutex<HashMap<u64, Sender<Heard>>>,
    closed: AtomicBool,
}

/// What comes for a request.
enum Heard {
    Progress(Value),
    Done(Result<Box<RawValue>>),
    Cancelled,
    Closed,
}

/// A frame from the daemon.
#[derive(Deserialize)]
struct Frame<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<Value>,
    progress: Option<Value>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Channel {
    /// Begins to read; both are the same stream.
    pub fn open(reader: impl Read + Send + 'static, stream: UnixStream) -> io::Result<Channel> {
        let inner = Arc::new(Inner {
            writer: Mutex::new(stream.try_clone()?),
            stream,
            serial: AtomicU64::new(1),
            waiting: Mutex::default(),
            closed: AtomicBool::new(false),
        });
        let inside = inner.clone();
        thread::spawn("channel", move || inside.read(reader))?;
        Ok(Channel(inner))
    }

    /// Whether it has ended.
    pub fn is_closed(&self) -> bool {
        self.0.closed.load(Ordering::SeqCst)
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// What the daemon answers; `Unavailable` when nothing was sent, or `OutcomeUnknown` for a call that was.
    pub fn request(&self, op: &str, params: &RawValue, asked: &Asked<'_>) -> Result<Box<RawValue>> {
        let inner = &self.0;
        let id = inner.serial.fetch_add(1, Ordering::Relaxed);
        let (send, heard) = mpsc::channel();
        lock(&inner.waiting).insert(id, send.clone());
        let _place = Waiting(inner, id);
        let closed = || Error::new(Kind::Unavailable, "the connection to the daemon broke");
        if self.is_closed() {
            return Err(closed());
        }
        let head = format!("{{\"id\":{id},\"op\":\"{op}\",\"params\":");
        let tail: &[u8] = if asked.progress.is_some() { b",\"progress\":true}" } else { b"}" };
        if frame::write(&mut *lock(&inner.writer), &[head.as_bytes(), params.get().as_bytes(), tail]).is_err()
        {
            inner.close();
            return Err(closed());
        }
        let _guard = asked.cancel.on_cancel(move || drop(send.send(Heard::Cancelled)));
        loop {
            match heard.recv() {
                Ok(Heard::Progress(report)) => {
                    if let Some(progress) = &asked.progress {
                        progress(report);
                    }
                }
                Ok(Heard::Done(outcome)) => return outcome,
                Ok(Heard::Cancelled) => {
                    let text = format!("{{\"cancel\":{id}}}");
                    let _ = frame::write(&mut *lock(&inner.writer), &[text.as_bytes()]);
                    return Err(Error::new(Kind::Cancelled, "the host cancelled it"));
                }
                Ok(Heard::Closed) | Err(_) if op == "call" => {
                    return Err(Error::new(
                        Kind::OutcomeUnknown,
                        "the connection to the daemon broke after the call was sent",
                    )
                    .hint("the call may have taken effect; it was not sent again"));
                }
                Ok(Heard::Closed) | Err(_) => return Err(closed()),
            }
        }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Somebody who waits until this is dropped.
struct Waiting<'a>(&'a Inner, u64);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        lock(&self.0.waiting).remove(&self.1);
    }
}

impl Inner {
    fn read(&self, mut reader: impl Read) {
        // What is large is the daemon's to bound: it is a process of our own user.
        while let Ok(Some(text)) = frame::read(&mut reader, u64::MAX) {
            let frame: Frame<'_> = match serde_json::from_slice(&text) {
                Ok(frame) => frame,
                Err(e) => {
                    log::warn(format_args!("a frame of the daemon's that cannot be read: {e}"));
                    continue;
                }
            };
            let heard = match frame {
                Frame { progress: Some(report), .. } => Heard::Progress(report),
                Frame { error: Some(error), .. } => Heard::Done(Err(Error::from_json(&error))),
                Frame { result: Some(result), .. } => Heard::Done(Ok(result.to_owned())),
                _ => continue,
            };
            let Some(id) = frame.id else { continue };
            if let Some(waiting) = lock(&self.waiting).get(&id) {
                let _ = waiting.send(heard);
            }
        }
        self.close();
    }

    fn close(&self) {
        if self.closed.swap(true, Ordering::SeqCst) {
            return;
        }
        let _ = self.stream.shutdown(Shutdown::Both);
        for (_, waiting) in lock(&self.waiting).drain() {
            let _ = waiting.send(Heard::Closed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::Cancel;
    use serde_json::json;

    fn pair() -> (Arc<Channel>, UnixStream) {
        let (near, far) = UnixStream::pair().unwrap();
        (Arc::new(Channel::open(near.try_clone().unwrap(), near).unwrap()), far)
    }
    fn read(far: &mut UnixStream) -> Value {
        serde_json::from_slice(&frame::read(far, 1000).unwrap().unwrap()).unwrap()
    }
    fn write(far: &mut UnixStream, value: &Value) {
        frame::write(far, &[value.to_string().as_bytes()]).unwrap();
    }
    fn params() -> Box<RawValue> {
        RawValue::from_string("{\"a\": 1.0}".into()).unwrap()
    }

    #[test]
    fn answers_are_paired_with_progress_before_them() {
        let (channel, mut far) = pair();
        let peer = thread::spawn("peer", move || {
            let asked = read(&mut far);
            assert_eq!(asked, json!({"id": 1, "op": "call", "params": {"a": 1.0}, "progress": true}));
            write(&mut far, &json!({"id": 9, "result": {}}));
            write(&mut far, &json!({"id": 1, "progress": {"progress": 1}}));
            write(&mut far, &json!({"id": 1, "result": {"ok": 1}}));
            read(&mut far);
            write(&mut far, &json!({"id": 2, "error": {"kind": "not-found", "message": "no"}}));
        })
        .unwrap();
        let reports = Arc::new(Mutex::new(Vec::new()));
        let (kept, cancel) = (reports.clone(), Cancel::new());
        let asked =
            Asked { cancel: &cancel, progress: Some(Arc::new(move |r| kept.lock().unwrap().push(r))) };
        assert_eq!(channel.request("call", &params(), &asked).unwrap().get(), r#"{"ok":1}"#);
        assert_eq!(*reports.lock().unwrap(), [json!({"progress": 1})]);
        let asked = Asked { cancel: &cancel, progress: None };
        assert_eq!(channel.request("call", &params(), &asked).unwrap_err().kind(), Kind::NotFound);
        peer.join().unwrap();
    }

    #[test]
    fn a_cancelled_request_tells_the_daemon_and_a_broken_one_is_unknown() {
        let (channel, mut far) = pair();
        let cancel = Cancel::new();
        let pulled = cancel.clone();
        let peer = thread::spawn("peer", move || {
            read(&mut far);
            pulled.cancel();
            assert_eq!(read(&mut far), json!({"cancel": 1}));
            read(&mut far);
        })
        .unwrap();
        let asked = Asked { cancel: &cancel, progress: None };
        assert_eq!(channel.request("call", &params(), &asked).unwrap_err().kind(), Kind::Cancelled);
        let asked = Asked { cancel: &Cancel::new(), progress: None };
        assert_eq!(channel.request("call", &params(), &asked).unwrap_err().kind(), Kind::OutcomeUnknown);
        peer.join().unwrap();
        assert!(channel.is_closed());
        assert_eq!(channel.request("status", &params(), &asked).unwrap_err().kind(), Kind::Unavailable);
    }
}
