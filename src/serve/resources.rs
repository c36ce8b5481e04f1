//! The resources of all servers in one list, and what hosts do with one: read
//! it, hear of its changes. Knows nothing of operations but what their table says.

use super::backend::{Asked, params};
use super::dispatch::{Ask, first_page, tagged};
use super::ears::Ears;
use super::fault::{Fault, RESOURCE_NOT_FOUND};
use super::members::Members;
use super::news::Watch;
use super::options::Options;
use super::prompts::answered;
use super::questions;
use super::session::Session;
use super::upstreams::{listed, operation};
use super::uris::{fits, unwrap, wrap};
use crate::error::{Error, Kind, Result};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{MutexGuard, PoisonError};

/// Where resources are, by their own URIs.
#[derive(Debug, Default)]
pub struct Places {
    uris: HashMap<String, Vec<String>>,
    /// Each with its server.
    templates: Vec<(String, String)>,
}

impl Places {
    /// The servers that have a resource of this URI, or may have.
    fn of(&self, uri: &str) -> Vec<String> {
        let mut servers = self.uris.get(uri).cloned().unwrap_or_default();
        if servers.is_empty() {
            servers = self.templates.iter().filter(|(t, _)| fits(t, uri)).map(|(_, s)| s.clone()).collect();
            servers.dedup();
        }
        servers
    }

    /// Everybody who listed anything.
    fn everybody(&self) -> Vec<String> {
        let listed = self.uris.values().flatten().chain(self.templates.iter().map(|(_, s)| s));
        let mut servers: Vec<String> = listed.cloned().collect();
        servers.sort();
        servers.dedup();
        servers
    }
}

/// One of the two lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// `resources/list`.
    Resources,
    /// `resources/templates/list`.
    Templates,
}

impl List {
    /// The operation, what its answer calls the list, and where an item has its URI.
    fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            List::Resources => ("resources", "resources", "uri"),
            List::Templates => ("resourceTemplates", "resourceTemplates", "uriTemplate"),
        }
    }
}

/// Answers one of the lists.
///
/// # Errors
/// A cursor; or that the daemon could not be asked.
pub fn list(session: &Session, ask: &Ask<'_>, of: List) -> Result<String, Fault> {
    first_page(ask)?;
    let (_, member, _) = of.words();
    let items = fetch(session, ask, of).map_err(|e| Fault::of(&e))?;
    Ok(ask.listed(session, json!({member: items})))
}

/// The items of a list, under URIs that tell them apart; notes where they are.
fn fetch(session: &Session, ask: &Ask<'_>, of: List) -> Result<Vec<Value>> {
    let (op, member, at) = of.words();
    let all = listed(op, member, &*session.backend, &session.options, &ask.asked())?;
    let mut places = places(session);
    let mut owners: HashMap<String, Vec<String>> = HashMap::new();
    for (server, item) in &all {
        let Some(uri) = item[at].as_str() else { continue };
        let servers = owners.entry(uri.to_owned()).or_default();
        if !servers.contains(server) {
            servers.push(server.clone());
        }
    }
    let shown = all
        .into_iter()
        .filter_map(|(server, mut item)| {
            let uri = item[at].as_str()?.to_owned();
            let alone = owners.get(&uri).is_some_and(|servers| servers.len() == 1);
            item[at] = show(&session.options, &server, &uri, alone).into();
            Some(item)
        })
        .collect();
    match of {
        List::Resources => places.uris.extend(owners),
        List::Templates => {
            for (template, servers) in owners {
                let entries = servers.into_iter().map(|server| (template.clone(), server));
                let new: Vec<_> = entries.filter(|entry| !places.templates.contains(entry)).collect();
                places.templates.extend(new);
            }
        }
    }
    Ok(shown)
}

fn places(session: &Session) -> MutexGuard<'_, Places> {
    session.upstreams.places.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A resource's URI as a host is told it.
fn show(options: &Options, server: &str, uri: &str, alone: bool) -> String {
    if options.plain && alone && unwrap(uri).is_none() { uri.to_owned() } else { wrap(server, uri) }
}

/// The servers to ask for a resource, the likeliest first, each with the resource's own URI. A URI
/// that mcpx did not make is looked for: a host may have it from a tool's result, or from a
/// template whose server kept its own.
///
/// # Errors
/// That the daemon could not be asked.
pub fn find(session: &Session, ask: &Ask<'_>, uri: &str) -> Result<Vec<(String, String)>> {
    if let Some((server, own)) = unwrap(uri) {
        return Ok(vec![(server, own.to_owned())]);
    }
    let mut servers = places(session).of(uri);
    if servers.is_empty() {
        fetch(session, ask, List::Resources)?;
        fetch(session, ask, List::Templates)?;
        let places = places(session);
        servers = places.of(uri);
        if servers.is_empty() {
            servers = places.everybody();
        }
    }
    Ok(servers.into_iter().map(|server| (server, uri.to_owned())).collect())
}

#[derive(Deserialize)]
struct OfUri {
    uri: String,
}

/// Whether another server may still have what this one does not.
fn is_elsewhere(error: &Error) -> bool {
    let code = error.raw_value().and_then(|raw| raw["code"].as_i64());
    code.is_some() || matches!(error.kind(), Kind::NotFound | Kind::Refused | Kind::Unavailable)
}

/// Does something with a resource, at the first server that can.
fn at_first<T>(
    session: &Session,
    ask: &Ask<'_>,
    uri: &str,
    attempt: impl Fn(&str, &str) -> Result<T>,
) -> Result<(T, Watch), Fault> {
    let found = find(session, ask, uri).map_err(|e| Fault::of(&e))?;
    let mut first: Option<Error> = None;
    for (server, own) in found {
        match attempt(&server, &own) {
            Ok(done) => return Ok((done, Watch { server, uri: own, shown: uri.to_owned() })),
            Err(error) if is_elsewhere(&error) => drop(first.get_or_insert(error)),
            Err(error) => return Err(Fault::of(&error)),
        }
    }
    let not_found = || Fault::new(RESOURCE_NOT_FOUND, format!("there is no resource {uri}"));
    let mut fault = match first {
        Some(error) if error.kind() == Kind::NotFound && error.raw_value().is_none() => not_found(),
        Some(error) => Fault::of(&error),
        None => not_found(),
    };
    if fault.code == RESOURCE_NOT_FOUND {
        // The server knows it under another name than the host does.
        let mut data = fault.data.take().filter(Value::is_object).unwrap_or_else(|| json!({}));
        data["uri"] = uri.into();
        fault.data = Some(data);
    }
    Err(fault)
}

/// `resources/read`.
///
/// # Errors
/// What the server answers; that no server has it.
pub fn read(session: &Session, ask: &Ask<'_>) -> Result<String, Fault> {
    let uri = ask.params::<OfUri>()?.uri;
    if let Some(first) = ask.resumed(session, None)? {
        let text = answered(questions::settle(session, ask, first, None))?;
        let server = unwrap(&uri).map(|(server, _)| server);
        let shown = server.and_then(|server| renamed(&text, &server));
        return Ok(ask.kept(&shown.unwrap_or(text)));
    }
    let input = questions::offered(session, ask);
    let (outcome, read) = at_first(session, ask, &uri, |server, own| {
        let mut given = json!({"server": server, "uri": own, "input": input});
        ask.add_meta(&mut given);
        let given = params(&given)?;
        let op = operation("readResource")?;
        Ears::at_work(session, ask, server, || {
            questions::settle(session, ask, session.backend.perform(op, &given, &ask.asked()), None)
        })
    })?;
    let mut text = answered(Ok(outcome))?;
    if read.uri != read.shown {
        text = renamed(&text, &read.server).unwrap_or(text);
    }
    Ok(ask.kept(&text))
}

/// A result whose contents have the URIs under which hosts know them; none when it is no such result.
fn renamed(result: &str, server: &str) -> Option<String> {
    let mut result = Members::read(result)?;
    let mut contents: Vec<Members> = serde_json::from_str(result.get("contents")?.get()).ok()?;
    for content in &mut contents {
        if let Some(own) = content.text("uri") {
            content.set("uri", &wrap(server, &own));
        }
    }
    result.set("contents", &contents);
    Some(result.to_string())
}

/// A result whose links and embedded resources have URIs that the host can read here. What is on the
/// web it reads there (MCP, resources, "https://"), and what mcpx made itself it has already.
pub fn linked(session: &Session, server: &str, result: &str) -> Option<String> {
    if !session.options.passthrough || !result.contains("\"resource") {
        return None;
    }
    let mut result = Members::read(result)?;
    let (member, within) = match result.get("content") {
        Some(_) => ("content", None),
        None => ("messages", Some("content")),
    };
    let mut blocks: Vec<Members> = serde_json::from_str(result.get(member)?.get()).ok()?;
    let mut changed = false;
    for block in &mut blocks {
        changed |= match within {
            None => relink(session, server, block),
            Some(within) => {
                let inner = block.get(within).and_then(|inner| Members::read(inner.get()));
                inner.is_some_and(|mut inner| {
                    let changed = relink(session, server, &mut inner);
                    block.set(within, &inner);
                    changed
                })
            }
        };
    }
    result.set(member, &blocks);
    changed.then(|| result.to_string())
}

/// In a link's `_meta`: what it names is an artifact, and no server's.
const ARTIFACT: &str = "mcpx/artifact";

/// Gives a block of content that names a resource the URI that the host knows; whether it was another.
fn relink(session: &Session, server: &str, block: &mut Members) -> bool {
    let shown = |named: &Members| {
        let uri = named.text("uri")?;
        let elsewhere = ["http:", "https:", "data:"].iter().any(|scheme| uri.starts_with(scheme));
        let alone = places(session).uris.get(&uri).is_none_or(|servers| servers.iter().all(|s| s == server));
        Some(show(&session.options, server, &uri, alone)).filter(|shown| !elsewhere && *shown != uri)
    };
    match block.text("type").as_deref() {
        Some("resource_link") if block.get("_meta").is_none_or(|meta| !meta.get().contains(ARTIFACT)) => {
            shown(block).map(|uri| block.set("uri", &uri)).is_some()
        }
        Some("resource") => {
            let resource = block.get("resource").and_then(|resource| Members::read(resource.get()));
            let Some(mut resource) = resource else { return false };
            let Some(uri) = shown(&resource) else { return false };
            resource.set("uri", &uri);
            block.set("resource", &resource);
            true
        }
        _ => false,
    }
}

/// `resources/subscribe` and `resources/unsubscribe`.
///
/// # Errors
/// What the server answers; that no server has it.
pub fn subscribe(session: &Session, ask: &Ask<'_>, on: bool) -> Result<String, Fault> {
    let uri = ask.params::<OfUri>()?.uri;
    if !on {
        // What is not watched is not the server's to stop.
        for watch in session.ears.unwatch(&uri) {
            watching(session, &watch, false, &ask.asked()).map_err(|e| Fault::of(&e))?;
        }
        return Ok(ask.result(json!({})));
    }
    let watch = watch(session, ask, &uri)?;
    session.ears.watch(watch);
    Ok(ask.result(json!({})))
}

/// Has a server tell of a resource.
///
/// # Errors
/// What the server answers; that no server has it.
pub fn watch(session: &Session, ask: &Ask<'_>, uri: &str) -> Result<Watch, Fault> {
    let begin = |server: &str, own: &str| {
        let watch = Watch { server: server.to_owned(), uri: own.to_owned(), shown: uri.to_owned() };
        watching(session, &watch, true, &ask.asked())
    };
    at_first(session, ask, uri, begin).map(|((), watch)| watch)
}

/// Tells a server that its resource is watched, or no longer.
///
/// # Errors
/// What the server answers.
pub fn watching(session: &Session, watch: &Watch, on: bool, asked: &Asked<'_>) -> Result<()> {
    let op = operation(if on { "subscribeResource" } else { "unsubscribeResource" })?;
    let given = params(&json!({"server": watch.server, "uri": watch.uri}))?;
    session.backend.perform(op, &given, asked).map(|_: Box<RawValue>| ())
}

/// What a resource's change is to somebody who watches it.
pub fn updated(watch: &Watch, tag: Option<&Value>) -> Value {
    let mut out = json!({"uri": watch.shown});
    if let Some(tag) = tag {
        out["_meta"] = tagged(tag);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Played, ask_in, meta, session_of};
    use super::*;

    fn offering(plain: bool) -> Session {
        let played = Played::answering(
            "resources",
            json!({"resources": [
                {"server": "a", "uri": "x://1", "name": "one", "annotations": {"priority": 1}},
                {"server": "a", "uri": "x://2", "name": "two"},
                {"server": "b", "uri": "x://2", "name": "two"},
            ]}),
        )
        .and(
            "resourceTemplates",
            json!({"resourceTemplates": [{"server": "b", "uriTemplate": "t://{id}", "name": "t"}]}),
        )
        .and("readResource", json!({"contents": [{"uri": "x://1", "text": "1"}], "_meta": {"k": 1}}));
        let session = session_of(played, |o| (o.code, o.passthrough, o.plain) = (false, true, plain));
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
        assert!(ask_in(&session, "initialize", &hello)["result"]["capabilities"]["resources"].is_object());
        session
    }

    #[test]
    fn resources_are_listed_under_uris_that_find_back() {
        let session = offering(false);
        let listed = ask_in(&session, "resources/list", &json!({}))["result"]["resources"].clone();
        assert_eq!(
            listed[0],
            json!({"uri": "mcpx://a/x://1", "name": "one", "annotations": {"priority": 1}})
        );
        assert_eq!(
            (&listed[1]["uri"], &listed[2]["uri"]),
            (&json!("mcpx://a/x://2"), &json!("mcpx://b/x://2"))
        );
        let templates = ask_in(&session, "resources/templates/list", &json!({}))["result"].clone();
        assert_eq!(templates["resourceTemplates"][0]["uriTemplate"], "mcpx://b/t://{id}");
        let read = ask_in(&session, "resources/read", &json!({"uri": "mcpx://a/x://1"}))["result"].clone();
        assert_eq!(read, json!({"contents": [{"uri": "mcpx://a/x://1", "text": "1"}], "_meta": {"k": 1}}));
        // The server's own URI is looked for, and comes back as it was asked for.
        let read = ask_in(&session, "resources/read", &json!({"uri": "x://1"}))["result"].clone();
        assert_eq!(read["contents"][0]["uri"], "x://1");
        let stateless = ask_in(&session, "resources/read", &json!({"uri": "x://1", "_meta": meta()}));
        let stateless = &stateless["result"];
        assert_eq!(
            (&stateless["resultType"], &stateless["cacheScope"]),
            (&json!("complete"), &json!("private"))
        );
        assert!(stateless["ttlMs"].is_u64(), "{stateless}");
    }

    #[test]
    fn plain_uris_stay_where_there_is_one_owner() {
        let session = offering(true);
        let listed = ask_in(&session, "resources/list", &json!({}))["result"]["resources"].clone();
        assert_eq!((&listed[0]["uri"], &listed[1]["uri"]), (&json!("x://1"), &json!("mcpx://a/x://2")));
        let request = crate::serve::testing::request("resources/read", &json!({}));
        let (cancel, out) = (crate::pool::Cancel::new(), crate::serve::testing::Heard::out());
        let ask = Ask {
            era: super::super::era::Era::Handshake("2025-11-25"),
            request: &request,
            meta: None,
            cancel: &cancel,
            out: &out,
        };
        let servers = |uri: &str| -> Vec<String> {
            find(&session, &ask, uri).unwrap().into_iter().map(|(server, _)| server).collect()
        };
        assert_eq!(servers("x://1"), ["a"]);
        assert_eq!(servers("x://2"), ["a", "b"]);
        assert_eq!(servers("t://7"), ["b"]);
        assert_eq!(servers("other://"), ["a", "b"], "whoever has resources may have it");
        assert_eq!(servers("mcpx://c/x://1"), ["c"]);
    }

    #[test]
    fn what_is_nowhere_is_not_found_under_the_hosts_name() {
        let error = Error::new(Kind::NotFound, "there is no server \"z\"");
        let session = session_of(Played::failing(error), |o| (o.code, o.passthrough) = (false, true));
        session.know(|host| host.revision = Some("2025-11-25"));
        let fault = ask_in(&session, "resources/read", &json!({"uri": "mcpx://z/x"}))["error"].clone();
        assert_eq!((&fault["code"], &fault["data"]["uri"]), (&json!(-32002), &json!("mcpx://z/x")));
        let fault = ask_in(&session, "resources/read", &json!({"uri": "mcpx://z/x", "_meta": meta()}));
        assert_eq!(fault["error"]["code"], -32602);
    }
}
