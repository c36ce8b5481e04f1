//! The backend of `mcpx serve`: a run in a daemon, whose channel carries what
//! programs may ask for, and connections for the rest. Finds the daemon again
//! when it has gone. Knows nothing of MCP.

use super::backend::{Asked, Backend};
use super::channel::Channel;
use super::news::{Happened, News};
use super::render::is_called;
use crate::api::ops::{Operation, Param, Place};
use crate::api::wire::{CallContext, OpenRun};
use crate::api::{Client, called, uri};
use crate::error::{Error, Kind, Result};
use crate::log;
use crate::proc::thread;
use crate::util::json_words;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::io::BufReader;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Finds the daemon, or starts one.
pub type Connect = Box<dyn Fn() -> Result<Client> + Send + Sync>;

/// A session in a daemon.
pub struct Link {
    connect: Connect,
    context: CallContext,
    live: Mutex<Option<Arc<Live>>>,
    /// Connections that nobody uses at the moment.
    idle: Mutex<Vec<Client>>,
    /// Told of what happens in the daemon.
    told: Mutex<Option<(Told, String)>>,
}

/// Told of news.
pub type Told = Arc<dyn Fn(&News) + Send + Sync>;

/// What lasts as long as the daemon does.
struct Live {
    /// The run is open for as long as this connection is.
    client: Client,
    /// The key of its session.
    session: String,
    channel: Channel,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Link {
    /// A session that begins when it is first needed.
    pub fn new(connect: Connect, context: CallContext) -> Link {
        Link {
            connect,
            context,
            live: Mutex::new(None),
            idle: Mutex::new(Vec::new()),
            told: Mutex::new(None),
        }
    }

    /// Who is told from now on of what happens in the daemon; of everything that the servers'
    /// own offers bring with them, or of changed lists alone.
    pub fn tell(&self, passthrough: bool, told: Told) {
        let kinds = News::kinds(passthrough).map(|kind| format!("&kind={kind}")).collect();
        *lock(&self.told) = Some((told, kinds));
    }

    /// The daemon and the run, begun anew when the last one is gone.
    fn live(&self) -> Result<Arc<Live>> {
        let mut live = lock(&self.live);
        if let Some(live) = live.as_ref().filter(|l| !l.channel.is_closed()) {
            return Ok(live.clone());
        }
        lock(&self.idle).clear();
        let client = (self.connect)()?;
        let run = client.open_run(&OpenRun { context: self.context.clone(), ..OpenRun::default() })?;
        let stream = UnixStream::from(client.channel(&run.run)?);
        let fail = |e: std::io::Error| {
            Error::new(Kind::Unavailable, format!("opening a channel to the daemon: {e}"))
        };
        let reader = BufReader::new(stream.try_clone().map_err(fail)?);
        self.follow(client.another()?, live.is_some());
        let session = run.session;
        let begun = Arc::new(Live { client, session, channel: Channel::open(reader, stream).map_err(fail)? });
        *live = Some(begun.clone());
        Ok(begun)
    }

    /// Passes on what happens in the daemon, for as long as that lives. In another daemon than
    /// before everything may be different.
    fn follow(&self, client: Client, another: bool) {
        let Some((told, kinds)) = lock(&self.told).clone() else { return };
        let spawned = thread::spawn("news", move || {
            if another {
                told(&News::Another);
            }
            let mut pending = Vec::new();
            let path = format!("/v1/events?follow=1{kinds}");
            // It ends with the daemon, or is not there in an older one: then there is no news.
            let outcome = client.stream("GET", &path, None, &mut |chunk| {
                pending.extend_from_slice(chunk);
                while let Some(end) = pending.iter().position(|b| *b == b'\n') {
                    let line: Vec<u8> = pending.drain(..=end).collect();
                    let Some(data) = line.strip_prefix(b"data: ") else { continue };
                    // What is no event says how many were missed.
                    let Ok(happened) = serde_json::from_slice::<Happened>(data) else { continue };
                    News::of(happened).iter().for_each(&*told);
                }
                Ok(())
            });
            if let Err(e) = outcome {
                log::debug(format_args!("following the daemon ended: {}", e.message()));
            }
        });
        if let Err(e) = spawned {
            log::warn(format_args!("hosts will not hear of changes: {e}"));
        }
    }

    /// Asks on a connection of its own, as an HTTP request.
    fn request(
        &self,
        live: &Live,
        op: &Operation,
        params: &RawValue,
        asked: &Asked<'_>,
    ) -> Result<Box<RawValue>> {
        let (target, body) = self.route(op, params, &live.session)?;
        let spare = lock(&self.idle).pop();
        let client = match spare {
            Some(client) => client,
            None => live.client.another()?,
        };
        let handle = client.shutdown_handle()?;
        let guard = asked.cancel.on_cancel(move || handle.interrupt());
        let reply = client.request(op.method.word(), &target, body.as_deref());
        drop(guard);
        let reply = reply?;
        lock(&self.idle).push(client);
        if is_called(op) {
            return called(reply);
        }
        let bad =
            |what: String| Error::new(Kind::Unavailable, format!("reading the daemon's answer: {what}"));
        let text = String::from_utf8(reply.body).map_err(|e| bad(e.to_string()))?;
        RawValue::from_string(text).map_err(|e| bad(e.to_string()))
    }

    /// Where parameters travel over HTTP.
    fn route(&self, op: &Operation, params: &RawValue, session: &str) -> Result<(String, Option<Vec<u8>>)> {
        let mut given: Map<String, Value> = serde_json::from_str(params.get()).map_err(|e| {
            Error::new(Kind::Usage, format!("the parameters of {}: {}", op.name, json_words(e)))
        })?;
        self.supply(op, &mut given, session);
        let mut target = op.path.to_owned();
        let mut query = Vec::new();
        for Param { place, field } in op.params.iter().filter(|p| p.place != Place::Body) {
            let Some(value) = given.remove(field.name) else { continue };
            let values = match value {
                Value::Array(items) => items,
                one => vec![one],
            };
            for value in values {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let text = uri::encode(&text, false);
                match place {
                    Place::Path => target = target.replace(&format!("{{{}}}", field.name), &text),
                    _ => query.push(format!("{}={text}", field.name)),
                }
            }
        }
        if !query.is_empty() {
            target = format!("{target}?{}", query.join("&"));
        }
        let body = op.params.iter().any(|p| p.place == Place::Body);
        Ok((target, body.then(|| Value::Object(given).to_string().into_bytes())))
    }

    /// Adds what the session knows and the operation takes: who calls, and the servers it works with.
    fn supply(&self, op: &Operation, given: &mut Map<String, Value>, session: &str) {
        let takes = |name: &str| op.params.iter().any(|p| p.field.name == name);
        if takes("context")
            && let Ok(mut context) = serde_json::to_value(&self.context)
        {
            // A program works with the very servers that the conversation's other calls do.
            if self.context.session.is_none() {
                context["session"] = session.into();
            }
            given.insert("context".into(), context);
        }
        let selection = self.context.selection.as_ref().and_then(|s| serde_json::to_value(s).ok());
        let Some(Value::Object(selection)) = selection else { return };
        if takes("selection") {
            given.insert("selection".into(), Value::Object(selection.clone()));
        }
        for (name, value) in selection.into_iter().filter(|(name, _)| takes(name)) {
            given.insert(name, value);
        }
    }
}

impl Backend for Link {
    fn perform(&self, op: &'static Operation, params: &RawValue, asked: &Asked<'_>) -> Result<Box<RawValue>> {
        let attempt = || {
            let live = self.live()?;
            match op.on_channel {
                true => live.channel.request(op.name, params, asked),
                false => self.request(&live, op, params, asked),
            }
        };
        match attempt() {
            // The daemon may have left since: nothing was sent to it, or only a question.
            Err(error) if error.kind() == Kind::Unavailable && !asked.cancel.is_cancelled() => {
                let gone = lock(&self.live).as_ref().is_none_or(|l| l.channel.is_closed());
                if gone && !op.mutates { attempt() } else { Err(error) }
            }
            outcome => outcome,
        }
    }

    fn session(&self) -> Option<String> {
        lock(&self.live).as_ref().map(|live| live.session.clone())
    }

    fn binding(&self) -> String {
        // It may be asked before anything else is.
        self.live().map(|live| live.session.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::ops::by_name;
    use crate::api::wire::SelectedProfiles;
    use serde_json::json;

    #[test]
    fn parameters_travel_where_the_table_says_and_the_sessions_come_along() {
        let selection = SelectedProfiles { profile: vec!["a b".into()], ..SelectedProfiles::default() };
        let context = CallContext { selection: Some(selection), ..CallContext::default() };
        let link = Link::new(Box::new(|| Err(Error::new(Kind::Unavailable, "nobody"))), context);
        let route = |op: &str, params: Value| {
            let params = serde_json::value::to_raw_value(&params).unwrap();
            let (target, body) = link.route(by_name(op).unwrap(), &params, "own").unwrap();
            (target, body.map(|b| serde_json::from_slice::<Value>(&b).unwrap()))
        };
        assert_eq!(route("servers", json!({})), ("/v1/servers?profile=a%20b".into(), None));
        assert_eq!(
            route("setSetting", json!({"key": "a/b", "value": [1]})),
            ("/v1/settings/a%2Fb".into(), Some(json!({"value": [1]})))
        );
        assert_eq!(route("deleteServer", json!({"name": "x", "file": "f"})).0, "/v1/servers/x?file=f");
        let (_, body) = route("exec", json!({"code": "1"}));
        assert_eq!(body.unwrap()["context"]["session"], "own");
        let (_, body) = route("refresh", json!({"servers": ["x"]}));
        assert_eq!(body.unwrap(), json!({"servers": ["x"], "selection": {"profile": ["a b"]}}));
    }
}
