//! A run's channel where the daemon is reached over HTTP: frames of the script
//! on one side, requests on the other. So a script in a sandbox needs neither a
//! permission for the network nor the token. Knows nothing of what is asked.

use super::client::{Client, Interrupter};
use super::frame;
use super::ops::{self, Operation, Place};
use super::remote::Remote;
use super::reply::Reply;
use super::uri;
use crate::error::{Error, Kind, Result};
use crate::log;
use crate::proc;
use crate::util::json_words;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// So many requests are under way at once; each takes a connection to the daemon.
const AT_ONCE: usize = 64;

/// A frame of the script.
#[derive(Deserialize)]
struct Frame<'a> {
    id: Option<u64>,
    op: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    cancel: Option<u64>,
}

struct Bridge {
    /// With the token of the run.
    remote: Mutex<Remote>,
    idle: Mutex<Vec<Client>>,
    in_flight: Mutex<HashMap<u64, Interrupter>>,
    writer: Mutex<UnixStream>,
    under_way: Mutex<usize>,
    less: Condvar,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The script's end of a channel to a daemon; `remote` carries the token of its run.
/// The bridge ends when the script closes its end.
pub(super) fn open(remote: Remote) -> Result<OwnedFd> {
    let fail = |e: io::Error| Error::new(Kind::Unavailable, format!("opening a channel for the script: {e}"));
    let (ours, theirs) = UnixStream::pair().map_err(fail)?;
    let bridge = Arc::new(Bridge {
        remote: Mutex::new(remote),
        idle: Mutex::default(),
        in_flight: Mutex::default(),
        writer: Mutex::new(ours.try_clone().map_err(fail)?),
        under_way: Mutex::new(0),
        less: Condvar::new(),
    });
    proc::thread::spawn("bridge", move || bridge.serve(ours)).map_err(fail)?;
    Ok(theirs.into())
}

impl Bridge {
    fn serve(self: Arc<Bridge>, mut stream: UnixStream) {
        loop {
            match frame::read(&mut stream, u64::from(u32::MAX)) {
                Ok(Some(text)) => self.take(text),
                Ok(None) => break,
                Err(e) => {
                    log::debug(format_args!("a script's channel ended: {e}"));
                    break;
                }
            }
        }
        // Whatever is under way is for nobody any more.
        lock(&self.in_flight).values().for_each(Interrupter::interrupt);
    }

    /// Deals with a frame; a request is carried out on a thread of its own.
    fn take(self: &Arc<Bridge>, text: Vec<u8>) {
        let parsed: std::result::Result<Frame<'_>, _> = serde_json::from_slice(&text);
        let frame = match parsed {
            Ok(frame) => frame,
            Err(e) => return self.fail(None, &Error::new(Kind::Usage, format!("reading a frame: {e}"))),
        };
        if let Some(id) = frame.cancel {
            if let Some(request) = lock(&self.in_flight).get(&id) {
                request.interrupt();
            }
            return;
        }
        let (Some(id), Some(op)) = (frame.id, frame.op) else {
            return self.fail(frame.id, &Error::new(Kind::Usage, "a frame needs id and op, or cancel"));
        };
        let asked = match ops::by_name(&op).filter(|op| op.on_channel) {
            Some(op) => request(op, frame.params).map(|(target, body)| (op, target, body)),
            None => Err(Error::new(Kind::NotFound, format!("{op} cannot be asked on a channel"))),
        };
        let (op, target, body) = match asked {
            Ok(asked) => asked,
            Err(e) => return self.fail(Some(id), &e),
        };
        let bridge = self.clone();
        let spawned =
            proc::thread::spawn("bridged", move || bridge.carry_out(id, op, &target, body.as_deref()));
        if let Err(e) = spawned {
            self.fail(Some(id), &Error::new(Kind::Busy, format!("there is no room for a thread: {e}")));
        }
    }

    fn carry_out(&self, id: u64, op: &Operation, target: &str, body: Option<&[u8]>) {
        let mut under_way = lock(&self.under_way);
        while *under_way >= AT_ONCE {
            under_way = self.less.wait(under_way).unwrap_or_else(PoisonError::into_inner);
        }
        *under_way += 1;
        drop(under_way);
        let kept = lock(&self.idle).pop();
        let client = kept.unwrap_or_else(|| Client::remote(lock(&self.remote).another()));
        let outcome = self.ask(&client, id, op, target, body);
        if outcome.is_ok() {
            lock(&self.idle).push(client);
        }
        *lock(&self.under_way) -= 1;
        self.less.notify_one();
        match outcome {
            // A call's answer is `{"result":…}`, and so is the frame's rest.
            Ok(reply) if reply.body.starts_with(b"{\"result\":") => {
                self.send(&[format!("{{\"id\":{id},").as_bytes(), &reply.body[1..]]);
            }
            Ok(reply) => self.send(&[format!("{{\"id\":{id},\"result\":").as_bytes(), &reply.body, b"}"]),
            Err(e) => self.fail(Some(id), &e),
        }
    }

    fn ask(
        &self,
        client: &Client,
        id: u64,
        op: &Operation,
        target: &str,
        body: Option<&[u8]>,
    ) -> Result<Reply> {
        lock(&self.in_flight).insert(id, client.shutdown_handle()?);
        let broken = if op.mutates { Kind::OutcomeUnknown } else { Kind::Unavailable };
        let outcome = client.exchange(op.method, target, body, broken);
        lock(&self.in_flight).remove(&id);
        outcome
    }

    fn fail(&self, id: Option<u64>, error: &Error) {
        let id = id.map(|id| format!("\"id\":{id},")).unwrap_or_default();
        self.send(&[format!("{{{id}\"error\":{}}}", error.to_json()).as_bytes()]);
    }

    fn send(&self, parts: &[&[u8]]) {
        // A script that has left needs no answer.
        let _ = frame::write(&mut *lock(&self.writer), parts);
    }
}

/// What an operation with these parameters is as a request: the target, and the body.
fn request(op: &Operation, params: Option<&RawValue>) -> Result<(String, Option<Vec<u8>>)> {
    let in_body = op.params.iter().any(|p| p.place == Place::Body);
    let elsewhere = op.params.iter().any(|p| p.place != Place::Body);
    if !elsewhere {
        let text = params.map(|p| p.get().as_bytes().to_vec());
        return Ok((op.path.to_owned(), text.or(in_body.then(|| b"{}".to_vec()))));
    }
    let mut map: Map<String, Value> = match params {
        Some(text) => serde_json::from_str(text.get()).map_err(|e| {
            Error::new(Kind::Usage, format!("reading the parameters of {}: {}", op.name, json_words(e)))
        })?,
        None => Map::new(),
    };
    let mut target = op.path.to_owned();
    let mut query = String::new();
    for param in op.params.iter().filter(|p| p.place != Place::Body) {
        let Some(value) = map.remove(param.field.name) else { continue };
        let words = match value {
            Value::Array(list) => list,
            one => vec![one],
        };
        for word in &words {
            let text = uri::encode(&word.as_str().map_or_else(|| word.to_string(), str::to_owned), false);
            if param.place == Place::Path {
                target = target.replace(&format!("{{{}}}", param.field.name), &text);
            } else {
                query.push(if query.is_empty() { '?' } else { '&' });
                query.push_str(&format!("{}={text}", param.field.name));
            }
        }
    }
    target.push_str(&query);
    let body = in_body.then(|| Value::Object(map).to_string().into_bytes());
    Ok((target, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_go_where_their_operation_has_them() {
        let request = |op: &str, params: &str| {
            let raw = RawValue::from_string(params.to_owned()).unwrap();
            let (target, body) = super::request(ops::by_name(op).unwrap(), Some(&raw)).unwrap();
            (target, body.map(|b| String::from_utf8(b).unwrap()))
        };
        let call = r#"{"server":"s","tool":"t","arguments":{"n":1.0}}"#;
        assert_eq!(request("call", call), ("/v1/call".into(), Some(call.into())));
        assert_eq!(
            request("schemas", r#"{"server":["a b","c"],"fresh":true,"unknown":1}"#),
            ("/v1/schemas?server=a%20b&server=c&fresh=true".into(), None)
        );
        assert_eq!(request("setting", r#"{"key":"pool.max"}"#).0, "/v1/settings/pool.max");
        assert_eq!(
            super::request(ops::by_name("health").unwrap(), None).unwrap(),
            ("/v1/health".into(), None)
        );
    }
}
