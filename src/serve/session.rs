//! One host and what is known of it: its revision and capabilities, what it
//! waits for, what it listens to. Takes messages whatever brought them; knows
//! nothing of pipes or of HTTP.

use super::backend::{Backend, Out};
use super::dispatch::{self, Ask};
use super::ears::{Ears, Listener};
use super::era::{self, Era};
use super::fault::Fault;
use super::news::{News, Watch};
use super::options::Options;
use super::upstreams::Upstreams;
use crate::api::http::Headers;
use crate::mcp::jsonrpc::{self, Message};
use crate::pool::Cancel;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One host's session.
pub struct Session {
    /// What it is served.
    pub options: Options,
    /// Who carries out what it asks for.
    pub backend: Arc<dyn Backend>,
    /// The servers' tools, by the names that hosts know them under.
    pub upstreams: Arc<Upstreams>,
    host: Mutex<Host>,
    /// By the request's id as it was written: the method, and what cancels it.
    flights: Mutex<HashMap<String, (String, Cancel)>>,
    /// Who hears what.
    pub ears: Ears,
    /// What the host was asked and has not answered, by the request's id.
    asked: Mutex<HashMap<u64, Waiting>>,
    serial: AtomicU64,
    over: Cancel,
}

/// What a host of the handshake era said of itself.
#[derive(Clone, Debug, Default)]
pub struct Host {
    /// The revision that was agreed on; none before `initialize`.
    pub revision: Option<&'static str>,
    /// What it can do.
    pub capabilities: Value,
    /// The lowest level of log messages that it wants.
    pub level: Option<String>,
}

/// What becomes of a question to the host.
pub enum Heard {
    /// It answered, or refused to.
    Answer(Result<Value, Value>),
    /// Somebody else did, or nobody wants to know any longer.
    Settled,
    /// The host has gone, or cancelled what it is asked about.
    Gone,
}

/// One who waits for the host's answer.
struct Waiting {
    /// The server's question that it is asked.
    question: String,
    heard: Sender<Heard>,
}

/// A message of the host.
#[derive(Debug)]
pub enum Incoming {
    /// It waits for an answer.
    Request(Request),
    /// It does not.
    Notification {
        /// What happened.
        method: String,
        /// More on it.
        params: Option<Box<RawValue>>,
    },
    /// To be answered at once, with this.
    Bad(Vec<u8>),
}

/// A request of the host.
#[derive(Debug)]
pub struct Request {
    /// Its id, as it was written.
    pub id: Box<RawValue>,
    /// What is asked for.
    pub method: String,
    /// With what.
    pub params: Option<Box<RawValue>>,
    /// The headers that say arguments again, where it came with headers that are to be compared.
    pub mirrored: Option<Headers>,
}

/// What became of a request.
pub struct Reply {
    /// The answer; none for a request that was cancelled.
    pub line: Option<Vec<u8>>,
    /// The HTTP status that goes with it.
    pub status: u16,
}

/// A request that is being carried out; it can be cancelled until this is dropped.
pub struct Flight<'a> {
    session: &'a Session,
    key: Option<String>,
    /// Pulled when the host cancels it, or the session ends.
    pub cancel: Cancel,
}

impl Flight<'_> {
    /// Leaves the request registered until [`Session::left`] is called with its id.
    pub fn keep(mut self) -> Cancel {
        self.key = None;
        self.cancel.clone()
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        if let Some(key) = &self.key {
            lock(&self.session.flights).remove(key);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    /// A session that nothing is known of yet.
    pub fn new(options: Options, backend: Arc<dyn Backend>, upstreams: Arc<Upstreams>) -> Session {
        Session {
            options,
            backend,
            upstreams,
            host: Mutex::default(),
            flights: Mutex::default(),
            ears: Ears::default(),
            asked: Mutex::default(),
            serial: AtomicU64::new(1),
            over: Cancel::new(),
        }
    }

    /// What the host said of itself.
    pub fn host(&self) -> Host {
        lock(&self.host).clone()
    }
    /// Notes what the host says of itself.
    pub fn know(&self, change: impl FnOnce(&mut Host)) {
        change(&mut lock(&self.host));
    }
    /// Reads a line, or a body: one message, or (in 2025-03-26 and before) a batch of them.
    pub fn read(&self, text: &[u8]) -> Vec<Incoming> {
        let first = text.iter().find(|b| !b.is_ascii_whitespace());
        let batch = first == Some(&b'[');
        // Batches came in with JSON-RPC and went with 2025-06-18.
        if batch && self.host().revision.is_none_or(|r| r > era::UNSAID) {
            let fault = if serde_json::from_slice::<IgnoredAny>(text).is_ok() {
                Fault::request("batches are no part of this revision of the protocol")
            } else {
                Fault::not_json("the message is not JSON")
            };
            return vec![Incoming::Bad(fault.answer(None))];
        }
        let mut all = Vec::new();
        let good = jsonrpc::read(text, |message| match message {
            Message::Request { id, method, params } => {
                if !matches!(id.get().as_bytes().first(), Some(b'"' | b'-' | b'0'..=b'9')) {
                    let fault = Fault::request("an id is a string or a number");
                    return all.push(Incoming::Bad(fault.answer(None)));
                }
                all.push(Incoming::Request(Request {
                    id: id.to_owned(),
                    method: method.into_owned(),
                    params: params.map(ToOwned::to_owned),
                    mirrored: None,
                }));
            }
            Message::Notification { method, params } => all.push(Incoming::Notification {
                method: method.into_owned(),
                params: params.map(ToOwned::to_owned),
            }),
            Message::Answer { id, outcome } => {
                let parsed = |raw: &RawValue| serde_json::from_str(raw.get()).unwrap_or_default();
                let waiting = lock(&self.asked).remove(&id);
                // One that nobody waits for is late, or made up.
                if let Some(waiting) = waiting {
                    let _ = waiting.heard.send(Heard::Answer(outcome.map(parsed).map_err(parsed)));
                }
            }
        });
        if !good && let Some(fault) = what_is_wrong(text) {
            all.push(Incoming::Bad(fault.answer(None)));
        }
        all
    }

    /// Registers a request as being carried out.
    ///
    /// # Errors
    /// Another one of that id is; or the session is over.
    pub fn enter(&self, request: &Request) -> Result<Flight<'_>, Fault> {
        let key = request.id.get().to_owned();
        let mut flights = lock(&self.flights);
        if self.over.is_cancelled() {
            return Err(Fault::internal("the session is over"));
        }
        if flights.contains_key(&key) {
            return Err(Fault::request(format!(
                "{key} is the id of a request that is still being carried out"
            )));
        }
        let cancel = Cancel::new();
        flights.insert(key.clone(), (request.method.clone(), cancel.clone()));
        Ok(Flight { session: self, key: Some(key), cancel })
    }

    /// A request that was kept registered is over.
    pub fn left(&self, id: &RawValue) {
        lock(&self.flights).remove(id.get());
    }

    /// Carries out a request. `out` takes what belongs to it and comes before its answer.
    pub fn answer(&self, request: &Request, cancel: &Cancel, out: &Out) -> Reply {
        let meta = era::meta(request.params.as_deref());
        let era = match self.era(&request.method, meta.as_ref()) {
            Ok(era) => era,
            Err(fault) => {
                return Reply { status: fault.status(), line: Some(fault.answer(Some(&request.id))) };
            }
        };
        let ask = Ask { era, request, meta, cancel, out };
        self.finish(&ask, dispatch::request(self, &ask))
    }

    fn finish(&self, ask: &Ask<'_>, outcome: Result<String, Fault>) -> Reply {
        if ask.cancel.is_cancelled() {
            // MCP: a request that was cancelled is not answered.
            return Reply { line: None, status: 202 };
        }
        let id = &ask.request.id;
        match outcome {
            Ok(result) => Reply { line: Some(jsonrpc::answer_text(id, &result)), status: 200 },
            Err(fault) if ask.era.is_stateless() => {
                let fault = fault.stateless();
                Reply { status: fault.status(), line: Some(fault.answer(Some(id))) }
            }
            Err(fault) => Reply { status: 200, line: Some(fault.answer(Some(id))) },
        }
    }

    /// In which way a request is made.
    fn era(&self, method: &str, meta: Option<&Map<String, Value>>) -> Result<Era, Fault> {
        if era::claimed(meta).is_some() || method == "server/discover" {
            return era::envelope(meta).map(Era::Stateless);
        }
        if method == "initialize" || method == "ping" {
            return Ok(Era::Handshake(self.host().revision.unwrap_or(era::HANDSHAKE[0])));
        }
        match self.host().revision {
            Some(revision) => Ok(Era::Handshake(revision)),
            None => Err(Fault::params(format!(
                "{method} came before initialize, and without params._meta[\"{}\"]",
                era::VERSION_KEY
            ))),
        }
    }

    /// Takes a notification.
    pub fn notice(&self, method: &str, params: Option<&RawValue>) {
        #[derive(serde::Deserialize)]
        struct Cancelled<'a> {
            #[serde(borrow, rename = "requestId")]
            id: &'a RawValue,
        }
        // What is not known may be ignored; so may a request that is over, or never was.
        if method == "notifications/cancelled"
            && let Some(cancelled) = params.and_then(|p| serde_json::from_str::<Cancelled>(p.get()).ok())
        {
            let flight = lock(&self.flights).get(cancelled.id.get()).cloned();
            if let Some((_, cancel)) = flight {
                cancel.cancel();
            }
        }
    }

    /// Asks the host in the course of a request of its own, and waits for the answer. `question` is
    /// the id of the server's question, which others may answer meanwhile.
    pub fn ask_host(&self, ask: &Ask<'_>, question: &str, method: &str, params: &Value) -> Heard {
        let id = self.serial.fetch_add(1, Ordering::Relaxed);
        let (send, heard) = std::sync::mpsc::channel();
        lock(&self.asked).insert(id, Waiting { question: question.to_owned(), heard: send.clone() });
        let over = send.clone();
        let _left = ask.cancel.on_cancel(move || {
            let _ = send.send(Heard::Gone);
        });
        let _over = self.over.on_cancel(move || {
            let _ = over.send(Heard::Gone);
        });
        let params = serde_json::value::to_raw_value(params).ok();
        let asked = ask.out.send(&jsonrpc::request(id, method, params.as_deref(), false, &[]));
        let outcome = if asked { heard.recv().unwrap_or(Heard::Gone) } else { Heard::Gone };
        lock(&self.asked).remove(&id);
        if !matches!(outcome, Heard::Answer(_)) {
            // The host need not go on asking its user.
            let reason = match outcome {
                Heard::Settled => "it needs no answer any more",
                _ => "the call was cancelled",
            };
            let cancelled = json!({"requestId": id, "reason": reason});
            ask.out.send(&jsonrpc::notification("notifications/cancelled", Some(&cancelled)));
        }
        outcome
    }

    /// A server's question is over: the host need not answer it.
    pub fn settled(&self, question: &str) {
        for waiting in lock(&self.asked).values().filter(|w| w.question == question) {
            let _ = waiting.heard.send(Heard::Settled);
        }
    }

    /// Has a request hear news until it is cancelled or the session ends; what it watched.
    pub fn listen(&self, ask: &Ask<'_>, wanted: Value, watches: Vec<Watch>) -> Vec<Watch> {
        let (send, wake) = std::sync::mpsc::channel::<()>();
        let id = ask.request.id.clone();
        let (era, out) = (ask.era.clone(), ask.out.clone());
        self.ears.add(Listener { id: id.clone(), wanted, era, watches, out });
        let ended = send.clone();
        let _left = ask.cancel.on_cancel(move || {
            let _ = send.send(());
        });
        let _over = self.over.on_cancel(move || {
            let _ = ended.send(());
        });
        let _ = wake.recv();
        self.ears.remove(&id)
    }

    /// Tells whoever wants to hear it.
    pub fn tell(self: &Arc<Self>, news: &News) {
        Ears::tell(self, news);
    }

    /// Cancels every call and ends every listening: nobody will hear of it. What only reads may
    /// still be answered.
    pub fn hang_up_calls(&self) {
        self.cancel_where(|method| method == "tools/call" || method == "subscriptions/listen");
    }

    /// Ends it: listeners are told, the rest is cancelled.
    pub fn end(&self) {
        self.over.cancel();
        self.ears.set_general(None);
        self.cancel_where(|_| true);
    }

    fn cancel_where(&self, which: impl Fn(&str) -> bool) {
        let flights = lock(&self.flights);
        let all: Vec<Cancel> = flights.values().filter(|f| which(&f.0)).map(|f| f.1.clone()).collect();
        drop(flights);
        all.iter().for_each(Cancel::cancel);
    }
}

/// Why a text is no message; none when nobody needs to be told.
fn what_is_wrong(text: &[u8]) -> Option<Fault> {
    let value: Value = match serde_json::from_slice(text) {
        Ok(value) => value,
        Err(e) => return Some(Fault::not_json(format!("the message is not JSON: {e}"))),
    };
    // An answer, though none that fits: answering it would go back and forth for ever.
    if value.get("result").is_some() || value.get("error").is_some() {
        return None;
    }
    Some(Fault::request("a message is an object with a method"))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Heard, Played, session};
    use super::*;

    fn kinds(session: &Session, text: &str) -> Vec<String> {
        let kind = |i: Incoming| match i {
            Incoming::Request(r) => format!("request {} {}", r.id, r.method),
            Incoming::Notification { method, .. } => format!("notification {method}"),
            Incoming::Bad(line) => {
                let answer: Value = serde_json::from_slice(&line).unwrap();
                format!("bad {} {}", answer["id"], answer["error"]["code"])
            }
        };
        session.read(text.as_bytes()).into_iter().map(kind).collect()
    }

    #[test]
    fn each_line_is_sorted_and_a_bad_one_is_answered() {
        let session = session(Played::default());
        for (line, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, &["request 1 ping"][..]),
            (r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#, &["request \"a\" ping"]),
            (r#"{"jsonrpc":"2.0","method":"x"}"#, &["notification x"]),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, &["bad null -32600"]),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, &["bad null -32600"]),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, &[]),
            (r#"{"jsonrpc":"2.0","id":"x","error":{}}"#, &[]),
            ("{", &["bad null -32700"]),
            ("nonsense", &["bad null -32700"]),
            ("[1", &["bad null -32700"]),
            ("17", &["bad null -32600"]),
            ("{}", &["bad null -32600"]),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, &["bad null -32600"]),
        ] {
            assert_eq!(kinds(&session, line), expected, "{line}");
        }
        session.know(|host| host.revision = Some("2025-03-26"));
        let batch = r#"[{"id":1,"method":"ping"},{"method":"x"},3]"#;
        assert_eq!(kinds(&session, batch), ["request 1 ping", "notification x", "bad null -32600"]);
        assert_eq!(kinds(&session, "[]"), ["bad null -32600"]);
        assert!(!session.read(b"{\"id\":1,\"method\":\"\xff\"}").is_empty(), "invalid UTF-8 is answered");
    }

    #[test]
    fn news_reach_who_wants_them() {
        let session = Arc::new(session(Played::default()));
        let (general, listening) = (Arc::new(Heard::default()), Arc::new(Heard::default()));
        session.ears.set_general(Some(general.clone()));
        session.tell(&News::Tools);
        assert!(general.0.lock().unwrap().is_empty(), "before initialize nobody is told");
        session.know(|host| host.revision = Some("2025-11-25"));
        let request = crate::serve::testing::request(
            "subscriptions/listen",
            &json!({"_meta": crate::serve::testing::meta(), "notifications": {"toolsListChanged": true, "x": 1}}),
        );
        let (inside, out): (_, Out) = (session.clone(), listening.clone());
        let listener = crate::proc::thread::spawn("listener", move || {
            let reply = inside.answer(&request, &Cancel::new(), &out);
            let answer: Value = serde_json::from_slice(&reply.line.unwrap()).unwrap();
            assert_eq!(answer["result"]["_meta"][era::SUBSCRIPTION_KEY], 1);
        })
        .unwrap();
        while session.ears.is_deaf() {
            std::thread::yield_now();
        }
        session.tell(&News::Tools);
        session.end();
        listener.join().unwrap();
        assert_eq!(general.0.lock().unwrap()[0]["method"], "notifications/tools/list_changed");
        let heard = listening.0.lock().unwrap();
        assert_eq!(heard[0]["method"], "notifications/subscriptions/acknowledged");
        assert_eq!(heard[0]["params"]["notifications"], json!({"toolsListChanged": true}));
        assert_eq!(heard[1]["method"], "notifications/tools/list_changed");
        assert_eq!(heard[1]["params"]["_meta"][era::SUBSCRIPTION_KEY], 1);
    }

    #[test]
    fn an_id_is_taken_once_and_cancelled_by_its_name() {
        let session = session(Played::default());
        let request = Request {
            id: RawValue::from_string("7".into()).unwrap(),
            method: "x".into(),
            params: None,
            mirrored: None,
        };
        let flight = session.enter(&request).unwrap();
        assert_eq!(session.enter(&request).err().unwrap().code, -32600);
        let cancel = |id: &str| {
            let params = RawValue::from_string(format!("{{\"requestId\":{id}}}")).unwrap();
            session.notice("notifications/cancelled", Some(&params));
        };
        cancel("8");
        cancel("\"7\"");
        session.notice("notifications/cancelled", None);
        assert!(!flight.cancel.is_cancelled());
        cancel("7");
        assert!(flight.cancel.is_cancelled());
        drop(flight);
        drop(session.enter(&request).unwrap());
        session.end();
        assert!(session.enter(&request).is_err());
    }
}
