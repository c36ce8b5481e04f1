//! The output of a run as it comes: one JSON object a line. Knows nothing of
//! how the run is prepared.

use super::exec::{self, Ended, Job};
use super::router::Response;
use crate::api::http::{Chunked, LINES};
use crate::error::{Error, Kind, Result};
use crate::pool::Cancel;
use crate::proc::thread;
use crate::script::Fed;
use crate::util::base64;
use serde_json::{Value, json};
use std::io;
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How many frames wait for a slow reader; then the program waits as well.
const AHEAD: usize = 64;

/// A run as a response that is made while it is sent.
///
/// First `{"t":"start","run",…}`, then `stdout` and `stderr` with `text`, or with `base64` for what is not UTF-8, and
/// `log` with a record, `artifact` with the reference to what was kept; last `end` with `exitCode`, `durationMs` and
/// perhaps `error` and `hooks`, or `error` alone for a run that could not start. An empty line says that it goes on.
pub fn response(job: Job, cancel: Cancel, heartbeat: Duration) -> Response {
    let producer = move |out: &mut Chunked<'_>| produce(job, &cancel, heartbeat, out);
    Response::stream(LINES, Box::new(producer))
}

fn produce(job: Job, cancel: &Cancel, heartbeat: Duration, out: &mut Chunked<'_>) -> io::Result<()> {
    let mut start = job.about().clone();
    start["t"] = "start".into();
    if let Some(start) = start.as_object_mut() {
        start.remove("code");
    }
    let line = |frame: &Value| format!("{frame}\n").into_bytes();
    out.send(&line(&start))?;
    let (frames, received) = mpsc::sync_channel::<Value>(AHEAD);
    let ending = cancel.clone();
    thread::spawn("exec", move || {
        let outcome = feed(job, &ending, frames.clone());
        let last = match outcome {
            Ok(Ended { outcome, hooks }) => {
                let mut end = json!({
                    "t": "end",
                    "exitCode": outcome.exit_code,
                    "durationMs": (outcome.duration.as_secs_f64() * 1e6).round() / 1e3,
                });
                if let Some(error) = outcome.ended {
                    end["error"] = error.to_json();
                }
                if !hooks.is_empty() {
                    end["hooks"] = hooks.into();
                }
                end
            }
            Err(error) => json!({"t": "error", "error": error.to_json()}),
        };
        let _ = frames.send(last);
    })?;
    loop {
        let sent = match received.recv_timeout(heartbeat) {
            Ok(frame) => out.send(&line(&frame)),
            Err(RecvTimeoutError::Timeout) => out.send(b"\n"),
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        };
        if let Err(e) = sent {
            cancel.cancel();
            return Err(e);
        }
    }
}

/// Runs the job, and makes frames of what it says.
fn feed(job: Job, cancel: &Cancel, frames: SyncSender<Value>) -> Result<Ended> {
    let mut text = [Pending::default(), Pending::default()];
    let recorded = job.recorder();
    let take = move |fed: Fed| {
        let (stream, bytes, pending) = match fed {
            Fed::Log(record) => {
                recorded(record);
                let record = serde_json::to_value(record).unwrap_or_default();
                return frames.send(json!({"t": "log", "record": record})).is_ok();
            }
            Fed::Artifact(artifact) => {
                return frames.send(json!({"t": "artifact", "artifact": artifact})).is_ok();
            }
            Fed::Stdout(bytes) => ("stdout", bytes, &mut text[0]),
            Fed::Stderr(bytes) => ("stderr", bytes, &mut text[1]),
        };
        pending.split(bytes, &mut |piece| {
            let frame = match std::str::from_utf8(piece) {
                Ok(text) => json!({"t": stream, "text": text}),
                Err(_) => json!({"t": stream, "base64": base64::encode(piece)}),
            };
            frames.send(frame).is_ok()
        })
    };
    if cancel.is_cancelled() {
        return Err(Error::new(Kind::Cancelled, "the caller has left"));
    }
    exec::run(job, cancel, Some(Arc::new(Mutex::new(take))))
}

/// The beginning of a character whose end has not come yet.
#[derive(Default)]
struct Pending(Vec<u8>);

impl Pending {
    /// Hands on what is whole. What is no beginning of a character is handed on as well, and so are the last bytes of
    /// a stream, which come with the next ones or, when it has ended, alone.
    fn split(&mut self, bytes: &[u8], out: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        self.0.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.0) {
            Err(e) if e.error_len().is_none() && !bytes.is_empty() => e.valid_up_to(),
            _ => self.0.len(),
        };
        let rest = self.0.split_off(whole);
        let piece = std::mem::replace(&mut self.0, rest);
        piece.is_empty() || out(&piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_not_cut_and_other_bytes_are_not_kept_back() {
        let mut pending = Pending::default();
        let mut seen: Vec<Vec<u8>> = Vec::new();
        for part in [&b"a\xc3"[..], b"\xbc\xf0\x9f", b"\x98\x80\xff", b"b\xe2", b""] {
            assert!(pending.split(part, &mut |piece| {
                seen.push(piece.to_vec());
                true
            }));
        }
        assert_eq!(seen, [&b"a"[..], "ü".as_bytes(), b"\xf0\x9f\x98\x80\xff", b"b", b"\xe2"]);
    }
}
