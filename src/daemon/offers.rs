//! What servers offer besides tools: resources, prompts, completion. Knows
//! nothing of HTTP or of frames.

use super::answers::{json_of, one_or_many};
use super::callers::{caller_of, limits};
use super::calling::{Asking, passed_meta};
use super::detached::detachable;
use super::router::{Asker, Done, Origin};
use super::runs::Run;
use super::selection::{Chosen, selection};
use super::state::Daemon;
use crate::api::wire::CallContext;
use crate::error::{Error, Kind, Result};
use crate::observe::Event;
use crate::observe::kinds::{PROMPT_LIST_CHANGED, RESOURCE_LIST_CHANGED};
use crate::pool::{Caller, Request, STILL_STARTING};
use crate::proc;
use crate::settings;
use crate::util::did_you_mean;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Which list is wanted of which servers.
#[derive(Deserialize)]
pub struct Listed {
    #[serde(default, deserialize_with = "one_or_many")]
    server: Vec<String>,
    session: Option<String>,
    #[serde(rename = "waitMs")]
    wait_ms: Option<u64>,
    #[serde(flatten)]
    chosen: Chosen,
}

/// One resource.
#[derive(Deserialize)]
pub struct OfUri {
    server: String,
    uri: String,
    session: Option<String>,
    #[serde(default, deserialize_with = "object_or_text")]
    input: Option<Value>,
    #[serde(default, deserialize_with = "object_or_text")]
    meta: Option<Value>,
}

/// An object; in a query it stands as text.
fn object_or_text<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Option<Value>, D::Error> {
    match Option::<Value>::deserialize(deserializer)? {
        Some(Value::String(text)) => serde_json::from_str(&text).map(Some).map_err(D::Error::custom),
        other => Ok(other),
    }
}

/// One prompt.
#[derive(Deserialize)]
pub struct Prompted {
    server: String,
    name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
    context: Option<CallContext>,
    input: Option<Value>,
    meta: Option<Value>,
}

/// What is to be completed.
#[derive(Deserialize)]
pub struct Completed {
    server: String,
    #[serde(rename = "ref")]
    reference: Value,
    argument: Value,
    #[serde(default)]
    arguments: Map<String, Value>,
    context: Option<CallContext>,
    meta: Option<Value>,
}

/// A list that servers give: its method, and what their result calls it.
pub type List = (&'static str, &'static str);

/// `resources/list`.
pub const RESOURCES: List = ("resources/list", "resources");
/// `resources/templates/list`.
pub const TEMPLATES: List = ("resources/templates/list", "resourceTemplates");
/// `prompts/list`.
pub const PROMPTS: List = ("prompts/list", "prompts");

/// Who asks, as far as an operation without a whole context says.
fn context(session: Option<String>) -> CallContext {
    CallContext { session, ..CallContext::default() }
}

/// What several servers have of one list, each item with its server. A server
/// that cannot be asked is among the failures; one that was named alone fails.
pub fn list(daemon: &Arc<Daemon>, wanted: Listed, of: List, asker: &Asker<'_>) -> Result<Done> {
    let chosen = selection(wanted.chosen.said(), asker);
    let is_named = !wanted.server.is_empty();
    let names: Vec<String> = match wanted.server.is_empty() {
        false => wanted.server,
        true => {
            let current = daemon.current();
            let usable = current.config.servers.iter().filter(|s| s.enabled && s.problem.is_none());
            // Nothing is started to hear that it has none.
            let usable = usable.filter(|s| daemon.pool.may_offer(&s.name, of.0));
            usable.filter(|s| chosen.takes(s)).map(|s| s.name.clone()).collect()
        }
    };
    let (caller, own) = caller_of(daemon, context(wanted.session), asker);
    // Nobody's own session would start an instance for this question alone.
    let caller = if own { Caller::default() } else { caller };
    let until = wanted.wait_ms.map(|ms| Instant::now() + Duration::from_millis(ms));
    let rows = each(daemon, &names, &caller, of, until, asker);
    if let (true, [(_, Err(e))]) = (is_named, rows.as_slice()) {
        return Err(e.clone());
    }
    let (mut items, mut failures) = (Vec::new(), Vec::new());
    for (server, outcome) in rows {
        match outcome {
            Ok(list) => items.extend(list.into_iter().map(|mut item| {
                if let Some(members) = item.as_object_mut() {
                    members.insert("server".into(), json!(server));
                }
                item
            })),
            Err(e) => failures.push(e.to_json()),
        }
    }
    let mut answer = json!({of.1: items});
    if !failures.is_empty() {
        answer["failures"] = failures.into();
    }
    json_of(&answer)
}

/// A list of each server, several at once, in the order of the names.
fn each(
    daemon: &Arc<Daemon>,
    names: &[String],
    caller: &Caller,
    (method, member): List,
    until: Option<Instant>,
    asker: &Asker<'_>,
) -> Vec<(String, Result<Vec<Value>>)> {
    let ask = move |daemon: &Daemon, server: &str, caller: &Caller, cancel: &crate::pool::Cancel| {
        let request = Request {
            server,
            method,
            params: None,
            timeout: None,
            cancel,
            progress: None,
            asked: None,
            capabilities: None,
        };
        daemon.pool.list_all(request, member, caller)
    };
    let at_once = usize::try_from(daemon.current().settings.get(&settings::CATALOG_CONCURRENCY)).unwrap_or(1);
    let mut rows = Vec::new();
    for batch in names.chunks(at_once.max(1)) {
        let (send, receive) = mpsc::channel();
        for (at, name) in batch.iter().enumerate() {
            let (send, daemon, name) = (send.clone(), daemon.clone(), name.clone());
            let (caller, cancel) = (caller.clone(), asker.cancel.clone());
            let work = move || {
                let outcome = ask(&daemon, &name, &caller, &cancel);
                // Nobody has waited so long: whoever listed hears that there is more.
                if let Err(mpsc::SendError((_, Ok(_)))) = send.send((at, outcome)) {
                    let kind =
                        if method == PROMPTS.0 { &PROMPT_LIST_CHANGED } else { &RESOURCE_LIST_CHANGED };
                    daemon.pool.bus().publish(Event::new(kind, json!({})).server(&name));
                }
            };
            if batch.len() == 1 && until.is_none() {
                work();
            } else if let Err(e) = proc::thread::spawn("list", work) {
                crate::log::warn(format_args!("asking a server: {e}"));
            }
        }
        drop(send);
        let mut answers = Vec::new();
        let late = loop {
            let news = match until {
                Some(until) => receive.recv_timeout(until.saturating_duration_since(Instant::now())),
                None => receive.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match news {
                Ok(answer) => answers.push(answer),
                Err(error) => break error == RecvTimeoutError::Timeout,
            }
        };
        let missing = |name: &String| {
            Err(match late {
                true => Error::new(Kind::Unavailable, format!("{name} has not answered {method} yet"))
                    .hint(STILL_STARTING),
                false => Error::new(Kind::Busy, "no thread could be started to ask it"),
            }
            .server(name))
        };
        for (at, name) in batch.iter().enumerate() {
            let found = answers.iter().position(|(of, _)| *of == at);
            let outcome = found.map_or_else(|| missing(name), |found| answers.swap_remove(found).1);
            rows.push((name.clone(), outcome));
        }
    }
    rows
}

/// One request of one server.
struct One<'a> {
    server: &'a str,
    method: &'static str,
    params: Value,
    /// What the caller answers itself when the server asks.
    input: Option<&'a Value>,
}

/// One request whose result passes as the server sent it.
fn ask(daemon: &Arc<Daemon>, one: One<'_>, context: CallContext, asker: &Asker<'_>) -> Result<Box<RawValue>> {
    let One { server, method, params, input } = one;
    let chosen = selection(context.selection.clone(), asker);
    if !chosen.all
        && let Some(refused) = chosen.refuses(&*daemon.pool.definition(server)?)
    {
        return Err(refused);
    }
    if !limits(daemon, &context, asker).is_empty() {
        return Err(Error::new(
            Kind::Refused,
            format!("this run may call the tools that it was granted, and not {method}"),
        )
        .server(server)
        .hint("a permission profile without \"tools\" does not limit it"));
    }
    let (caller, own) = caller_of(daemon, context, asker);
    let asking = Asking::new(daemon, ("request", server, method), &caller, asker, input.cloned());
    let request = Request {
        server,
        method,
        params: Some(params),
        timeout: None,
        cancel: asker.cancel,
        progress: asker.progress.clone(),
        asked: Some(asking.handler()),
        capabilities: input,
    };
    let outcome = daemon.pool.request(&request, &caller);
    asking.over(daemon, &outcome);
    if own {
        daemon.pool.end_session(&caller.session);
    }
    outcome
}

/// Parameters, with what their caller says along with them.
fn with_meta(mut params: Value, meta: Option<Value>) -> Value {
    if let Some(meta) = passed_meta(meta) {
        params["_meta"] = meta;
    }
    params
}

/// Reads a resource.
pub fn read(daemon: &Arc<Daemon>, of: OfUri, asker: &Asker<'_>) -> Result<Done> {
    let inner = daemon.clone();
    detachable(daemon, asker, None, move |asker| {
        let params = with_meta(json!({"uri": of.uri}), of.meta);
        let one = One { server: &of.server, method: "resources/read", params, input: of.input.as_ref() };
        ask(&inner, one, context(of.session), asker)
    })
}

/// Has a server tell of changes to a resource, or no longer.
pub fn subscribe(daemon: &Arc<Daemon>, of: &OfUri, on: bool, asker: &Asker<'_>) -> Result<Done> {
    let method = if on { "resources/subscribe" } else { "resources/unsubscribe" };
    let session = of.session.clone();
    // With a session of its own the instance would end at once, and tell nothing.
    let session = session.or_else(|| Some("subscriptions".to_owned()));
    let done = || json_of(&json!({"ok": true}));
    let server = daemon.pool.definition(&of.server)?.name.clone();
    let (key, holder) = ((server, of.uri.clone()), Holder::of(&asker.origin, session.as_deref()));
    if !on && !daemon.watches.leave(&key, &holder) {
        return done();
    }
    let one = One { server: &of.server, method, params: json!({"uri": of.uri}), input: None };
    ask(daemon, one, context(session), asker)?;
    if on {
        daemon.watches.join(key, holder);
    }
    done()
}

/// Who wants to be told of which resource of which server: as long as anybody does,
/// a server that others share with them is not told to stop.
#[derive(Default)]
pub struct Watches(Mutex<HashMap<(String, String), Vec<Holder>>>);

/// One who wants to be told.
enum Holder {
    /// For as long as it is open.
    Run(Weak<Run>),
    /// Until it says otherwise.
    Session(String),
}

impl Holder {
    fn of(origin: &Origin, session: Option<&str>) -> Holder {
        match origin {
            Origin::Channel(run) => Holder::Run(Arc::downgrade(run)),
            _ => Holder::Session(session.unwrap_or_default().to_owned()),
        }
    }
    fn is(&self, other: &Holder) -> bool {
        match (self, other) {
            (Holder::Run(a), Holder::Run(b)) => a.ptr_eq(b),
            (Holder::Session(a), Holder::Session(b)) => a == b,
            _ => false,
        }
    }
    fn is_there(&self) -> bool {
        match self {
            Holder::Run(run) => run.upgrade().is_some_and(|run| !run.ended.is_cancelled()),
            Holder::Session(_) => true,
        }
    }
}

impl Watches {
    fn join(&self, key: (String, String), holder: Holder) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let holders = all.entry(key).or_default();
        holders.retain(|other| other.is_there() && !other.is(&holder));
        holders.push(holder);
    }

    /// Whether nobody is left.
    fn leave(&self, key: &(String, String), holder: &Holder) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(holders) = all.get_mut(key) {
            holders.retain(|other| other.is_there() && !other.is(holder));
        }
        let empty = all.get(key).is_none_or(Vec::is_empty);
        if empty {
            all.remove(key);
        }
        empty
    }
}

/// Gets a prompt.
pub fn prompt(daemon: &Arc<Daemon>, of: Prompted, asker: &Asker<'_>) -> Result<Done> {
    let inner = daemon.clone();
    detachable(daemon, asker, None, move |asker| {
        let params = with_meta(json!({"name": of.name, "arguments": of.arguments}), of.meta);
        let one = One { server: &of.server, method: "prompts/get", params, input: of.input.as_ref() };
        let outcome = ask(&inner, one, of.context.unwrap_or_default(), asker);
        outcome.map_err(|e| misnamed(&inner, &of.server, &of.name, e, asker))
    })
}

/// Completes an argument.
pub fn complete(daemon: &Arc<Daemon>, of: Completed, asker: &Asker<'_>) -> Result<Done> {
    let mut params = with_meta(json!({"ref": of.reference, "argument": of.argument}), of.meta);
    if !of.arguments.is_empty() {
        params["context"] = json!({"arguments": of.arguments});
    }
    let one = One { server: &of.server, method: "completion/complete", params, input: None };
    let outcome = ask(daemon, one, of.context.unwrap_or_default(), asker).map(Done::Tool);
    match (of.reference["type"].as_str(), of.reference["name"].as_str()) {
        (Some("ref/prompt"), Some(name)) => outcome.map_err(|e| misnamed(daemon, &of.server, name, e, asker)),
        _ => outcome,
    }
}

/// A refusal about a prompt: servers have many words for a name that they do not know.
fn misnamed(daemon: &Arc<Daemon>, server: &str, name: &str, e: Error, asker: &Asker<'_>) -> Error {
    // Only what the server itself said may be about the name.
    let refused = e.raw_value().is_some_and(|raw| raw.get("code").is_some());
    if !refused || !matches!(e.kind(), Kind::Usage | Kind::Tool) {
        return e;
    }
    let rows = each(daemon, &[server.to_owned()], &Caller::default(), PROMPTS, None, asker);
    let Some((_, Ok(prompts))) = rows.into_iter().next() else { return e };
    let names: Vec<&str> = prompts.iter().filter_map(|p| p["name"].as_str()).collect();
    if names.contains(&name) {
        return e;
    }
    let unknown = Error::new(Kind::NotFound, format!("{server} has no prompt \"{name}\"")).server(server);
    unknown.hint(
        did_you_mean(name, names.iter().copied())
            .unwrap_or_else(|| format!("`mcpx prompts ls {server}` lists those that it has")),
    )
}
