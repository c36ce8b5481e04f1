//! What a server asks its client while it works (elicitation, sampling), in
//! both eras: as a request of its own, or as an `input_required` result whose
//! request is made again with the answers. Knows nothing of who answers.

use super::cancel::Cancel;
use super::client::{Client, Options, raw};
use super::error::{Subject, printable};
use super::jsonrpc::{self, METHOD_NOT_FOUND};
use super::peer;
use super::pending::Slot;
use crate::error::{Error, Kind, Result};
use crate::settings::{self, Settings};
use crate::util::glob;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, mpsc};
use std::time::Instant;

/// How often one call may be asked for input; a server that asks more is stuck.
const ROUNDS: usize = 64;

/// How much of a method's name a message repeats.
const NAMED: usize = 200;

/// Whether a client answers this method, given somebody who does.
pub(super) fn is_question(method: &str) -> bool {
    matches!(method, "elicitation/create" | "sampling/createMessage")
}

/// Whether somebody has a model for this server (`sampling.command`); if not, why not.
pub fn samples_for(settings: &Settings, server: &str) -> std::result::Result<(), &'static str> {
    if settings.get(&settings::SAMPLING_COMMAND).is_empty() {
        return Err("no handler is configured (sampling.command)");
    }
    match is_among(settings, server) {
        true => Ok(()),
        false => Err("the handler is not for this server (sampling.servers)"),
    }
}

/// Whether this server's callers may have a model (`sampling.hosts`).
pub(super) fn hosts_may_sample(settings: &Settings, server: &str) -> bool {
    settings.get(&settings::SAMPLING_HOSTS) && is_among(settings, server)
}

fn is_among(settings: &Settings, server: &str) -> bool {
    settings.get(&settings::SAMPLING_SERVERS).iter().any(|pattern| glob(pattern, server))
}

/// A result for the server, or a JSON-RPC error's code and message.
pub type Answer = std::result::Result<Value, (i64, String)>;

/// Takes a question. Runs on the thread that reads from the server: it must
/// neither wait nor use the client.
pub type Asked = Arc<dyn Fn(Question) + Send + Sync>;

/// A server's question. Dropped unanswered, it is refused.
pub struct Question {
    /// The server's configured name.
    pub server: String,
    /// `elicitation/create`, `sampling/createMessage`, or `roots/list` where the caller has roots of its own.
    pub method: String,
    /// The request's parameters.
    pub params: Value,
    /// What the server calls it, where it asks as part of a result.
    pub key: Option<String>,
    /// Others follow at once: the server waits for the answers to all of them.
    pub more: bool,
    /// Given when the server does not want the answer any more, or is gone.
    pub withdrawn: Cancel,
    reply: Option<Box<dyn FnOnce(Answer) + Send>>,
}

impl Question {
    pub(super) fn new(
        server: &str,
        method: &str,
        params: Value,
        withdrawn: Cancel,
        reply: impl FnOnce(Answer) + Send + 'static,
    ) -> Question {
        let (server, method) = (server.to_owned(), method.to_owned());
        let (key, more) = (None, false);
        Question { server, method, params, key, more, withdrawn, reply: Some(Box::new(reply)) }
    }

    /// Answers it.
    pub fn answer(mut self, answer: Answer) {
        if let Some(reply) = self.reply.take() {
            reply(answer);
        }
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        if let Some(reply) = self.reply.take() {
            reply(Err((METHOD_NOT_FOUND, format!("nobody here answers {}", self.method))));
        }
    }
}

impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question").field("server", &self.server).field("method", &self.method).finish()
    }
}

/// While it lives, the request's own time stands still.
pub(super) struct Pause(Arc<Slot>);

impl Pause {
    pub fn new(slot: &Arc<Slot>) -> Pause {
        slot.pause();
        Pause(Arc::clone(slot))
    }

    /// Whether it is this request's.
    pub fn is_of(&self, slot: &Arc<Slot>) -> bool {
        Arc::ptr_eq(&self.0, slot)
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        self.0.resume();
    }
}

/// An answer as a line with its line break.
pub(super) fn line(id: &RawValue, answer: &Answer) -> Vec<u8> {
    match answer {
        Ok(result) => jsonrpc::answer(id, result),
        Err((code, message)) => jsonrpc::refusal(id, *code, message),
    }
}

/// `InputRequiredResult`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wanted<'a> {
    #[serde(borrow, default)]
    input_requests: BTreeMap<String, Inner<'a>>,
    #[serde(borrow)]
    request_state: Option<&'a RawValue>,
}

/// One question among those of a result.
#[derive(Deserialize)]
pub(super) struct Inner<'a> {
    method: String,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

/// The parameters of a request that is made again, and how long it stood still for that.
pub(super) struct Again {
    pub params: Box<RawValue>,
    pub paused: std::time::Duration,
}

impl Client {
    /// Gets what an `input_required` result wants to know: the request's
    /// parameters with the answers in them.
    pub(super) fn supply(
        &self,
        subject: &Subject,
        result: &RawValue,
        round: usize,
        options: &Options,
    ) -> Result<Again> {
        let peer = &self.0.peer;
        let bad = |what: String| {
            Error::new(Kind::Unavailable, format!("{} answered {}: {what}", peer.server, subject.name()))
                .server(&peer.server)
        };
        if !matches!(subject.method, "tools/call" | "resources/read" | "prompts/get") {
            return Err(bad("it wants input, which this method cannot take".into()));
        }
        if round >= ROUNDS {
            return Err(bad(format!("it wants input again and again, more than {ROUNDS} times")));
        }
        let wanted: Wanted = serde_json::from_str(result.get())
            .map_err(|e| bad(format!("it wants input, but of a kind that cannot be read: {e}")))?;
        let began = Instant::now();
        let answers = self.answers(&wanted.input_requests, subject, options)?;
        let mut members: BTreeMap<String, Box<RawValue>> = match subject.params {
            Some(params) => serde_json::from_str(params.get())
                .map_err(|e| Error::new(Kind::Internal, format!("reading a request's parameters: {e}")))?,
            None => BTreeMap::new(),
        };
        members.insert("inputResponses".into(), raw(&Value::Object(answers))?);
        // That of an earlier round is nothing to this one.
        members.remove("requestState");
        if let Some(state) = wanted.request_state {
            members.insert("requestState".into(), state.to_owned());
        }
        let params = serde_json::value::to_raw_value(&members)
            .map_err(|e| Error::new(Kind::Internal, format!("writing parameters: {e}")))?;
        Ok(Again { params, paused: began.elapsed() })
    }

    /// An answer to each.
    pub(super) fn answers(
        &self,
        wanted: &BTreeMap<String, Inner<'_>>,
        subject: &Subject,
        options: &Options,
    ) -> Result<Map<String, Value>> {
        let own = &self.0.peer;
        // Nothing comes through it when the caller has left.
        let (send, receive) = mpsc::channel::<Option<(String, Answer)>>();
        let (mut answers, mut open) = (Map::new(), 0);
        let withdrawn = Cancel::new();
        let asked = options.asked.as_ref().or(own.hooks.asked.as_ref());
        // Whoever says what it answers may have roots of its own.
        let theirs = options.capabilities.is_some_and(|own| own["roots"].is_object());
        let is_asked = |method: &str| is_question(method) || method == "roots/list" && theirs;
        let mut left = wanted.values().filter(|r| is_asked(&r.method)).count();
        for (key, request) in wanted {
            let params = request.params.and_then(|p| serde_json::from_str(p.get()).ok()).unwrap_or_default();
            match (request.method.as_str(), asked) {
                (method, Some(asked)) if is_asked(method) => {
                    let (send, inner) = (send.clone(), key.clone());
                    open += 1;
                    left -= 1;
                    let reply = move |answer| drop(send.send(Some((inner, answer))));
                    let mut question = Question::new(&own.server, method, params, withdrawn.clone(), reply);
                    (question.key, question.more) = (Some(key.clone()), left > 0);
                    asked(question);
                }
                ("roots/list", _) => {
                    let roots = options.roots.map_or_else(|| own.roots(), |roots| peer::roots(&roots()));
                    answers.insert(key.clone(), roots);
                }
                (method, _) => return Err(unanswered(subject, method, "mcpx does not offer it")),
            }
        }
        let (inner, wake) = (withdrawn.clone(), send);
        let _guard = options.cancel.on_cancel(move || {
            inner.cancel();
            let _ = wake.send(None);
        });
        while open > 0 {
            let Ok(Some((key, answer))) = receive.recv() else { return Err(subject.cancelled()) };
            open -= 1;
            let method = wanted.get(&key).map_or("", |r| r.method.as_str());
            let answer = answer.map_err(|(_, why)| unanswered(subject, method, &why))?;
            answers.insert(key, answer);
        }
        Ok(answers)
    }
}

/// The server cannot go on without this.
fn unanswered(subject: &Subject, method: &str, why: &str) -> Error {
    let (server, method) = (subject.server, printable(method, NAMED));
    Error::new(
        Kind::Unavailable,
        format!("{server} wants {method} before it goes on with {}: {why}", subject.name()),
    )
    .server(server)
}
