//! The tools and prompts of all servers in one list each, every one under a name
//! of its own, and the way back from that name. Knows nothing of the host.

use super::backend::{Asked, Backend, params};
use super::options::Options;
use super::resources::Places;
use super::safe_names::{is_plain, safe};
use super::tools::PREFIX;
use crate::api::ops::{self, Operation};
use crate::error::{Error, Kind, Result};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// In a tool's input schema, what marks an argument to be said again in a header.
const MARK: &str = "\"x-mcp-header\"";

/// What was listed last.
#[derive(Default)]
pub struct Upstreams {
    tools: Mutex<HashMap<String, Arc<Target>>>,
    prompts: Mutex<HashMap<String, Arc<Target>>>,
    /// Where resources are that hosts name by their own URIs.
    pub places: Mutex<Places>,
}

/// What servers offer under names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// Tools.
    Tools,
    /// Prompts.
    Prompts,
}

impl Offer {
    fn word(self) -> &'static str {
        match self {
            Offer::Tools => "tool",
            Offer::Prompts => "prompt",
        }
    }

    /// All of them, with their servers. One that cannot be read is left out: the host's
    /// other servers are not to suffer for it.
    fn all(
        self,
        backend: &dyn Backend,
        options: &Options,
        asked: &Asked<'_>,
    ) -> Result<Vec<(String, Value)>> {
        match self {
            Offer::Prompts => listed("prompts", "prompts", backend, options, asked),
            Offer::Tools => {
                let answer = backend.perform(operation("schemas")?, &params(&waiting(options))?, asked)?;
                let mut answer: Value = serde_json::from_str(answer.get())
                    .map_err(|e| Error::new(Kind::Internal, format!("reading the servers' tools: {e}")))?;
                let mut all = Vec::new();
                for schema in answer["schemas"].as_array_mut().into_iter().flatten() {
                    let server = schema["server"].as_str().unwrap_or_default().to_owned();
                    let Some(Value::Array(tools)) = schema.get_mut("tools").map(Value::take) else {
                        continue;
                    };
                    all.extend(tools.into_iter().map(|tool| (server.clone(), tool)));
                }
                Ok(all)
            }
        }
    }
}

/// For how long a list waits for servers that start.
fn waiting(options: &Options) -> Value {
    json!({"waitMs": u64::try_from(options.wait.as_millis()).unwrap_or(u64::MAX)})
}

/// What an operation lists of every server, each item with its server.
///
/// # Errors
/// When the daemon could not be asked.
pub fn listed(
    op: &str,
    member: &str,
    backend: &dyn Backend,
    options: &Options,
    asked: &Asked<'_>,
) -> Result<Vec<(String, Value)>> {
    let answer = backend.perform(operation(op)?, &params(&waiting(options))?, asked)?;
    let mut answer: Value = serde_json::from_str(answer.get())
        .map_err(|e| Error::new(Kind::Internal, format!("reading the servers' {member}: {e}")))?;
    for failure in answer["failures"].as_array().into_iter().flatten() {
        crate::log::warn(format_args!("{op}: {}", failure["message"].as_str().unwrap_or("a server failed")));
    }
    let Some(Value::Array(items)) = answer.get_mut(member).map(Value::take) else { return Ok(Vec::new()) };
    let apart = |mut item: Value| {
        // Where it is from stands in its name, or its URI.
        let server = item.as_object_mut()?.shift_remove("server")?;
        Some((server.as_str()?.to_owned(), item))
    };
    Ok(items.into_iter().filter_map(apart).collect())
}

/// Something that a server offers under a name.
#[derive(Debug, PartialEq, Eq)]
pub struct Target {
    /// The server's configured name.
    pub server: String,
    /// The exact name there.
    pub name: String,
    /// A tool's input schema, where that marks arguments to be said again in headers.
    pub marked: Option<Value>,
}

impl Upstreams {
    /// The entries of a list: whole, but for their names.
    ///
    /// # Errors
    /// When the daemon could not be asked.
    pub fn list(
        &self,
        offer: Offer,
        backend: &dyn Backend,
        options: &Options,
        asked: &Asked<'_>,
    ) -> Result<Vec<Value>> {
        let all: Vec<(Target, Value)> = offer
            .all(backend, options, asked)?
            .into_iter()
            .filter_map(|(server, item)| {
                let name = item["name"].as_str()?.to_owned();
                let marked = &item["inputSchema"];
                let marked = marked.to_string().contains(MARK).then(|| marked.clone());
                Some((Target { server, name, marked }, item))
            })
            .collect();
        let mut shared: HashMap<String, usize> = HashMap::new();
        all.iter().for_each(|(target, _)| *shared.entry(target.name.clone()).or_default() += 1);
        let mut listed = Vec::with_capacity(all.len());
        let mut names = HashMap::with_capacity(all.len());
        for (target, mut item) in all {
            let own = &target.name;
            let plain = options.plain && is_plain(own) && !own.starts_with(PREFIX) && shared[own] == 1;
            let name = if plain { own.clone() } else { safe(&target.server, own) };
            if names.insert(name.clone(), Arc::new(target)).is_none() {
                item["name"] = name.into();
                listed.push(item);
            }
        }
        // Prefixed names never change their meaning, so those of others who listed stay.
        self.table(offer).extend(names);
        Ok(listed)
    }

    /// What has that name; asks the servers when nobody has listed it yet.
    ///
    /// # Errors
    /// `NotFound`, or that the daemon could not be asked.
    pub fn find(
        &self,
        offer: Offer,
        name: &str,
        backend: &dyn Backend,
        options: &Options,
        asked: &Asked<'_>,
    ) -> Result<Arc<Target>> {
        let known = self.table(offer).get(name).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let listed = self.list(offer, backend, options, asked)?;
        self.table(offer).get(name).cloned().ok_or_else(|| {
            let word = offer.word();
            let error = Error::new(Kind::NotFound, format!("there is no {word} \"{name}\""));
            let names = listed.iter().filter_map(|item| item["name"].as_str());
            match crate::util::did_you_mean(name, names) {
                Some(near) => error.hint(near),
                None => error.hint(format!("{word}s/list has their names")),
            }
        })
    }

    /// The lists are others: a plain name may mean something else now. A prefixed one never does.
    pub fn forget_plain(&self) {
        for offer in [Offer::Tools, Offer::Prompts] {
            self.table(offer).retain(|name, target| *name == safe(&target.server, &target.name));
        }
        *self.places.lock().unwrap_or_else(PoisonError::into_inner) = Places::default();
    }

    fn table(&self, offer: Offer) -> MutexGuard<'_, HashMap<String, Arc<Target>>> {
        let table = match offer {
            Offer::Tools => &self.tools,
            Offer::Prompts => &self.prompts,
        };
        table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Fits a tool's schemas to the revisions before 2026-07-28, which want an object with a type at the
/// root and objects for properties. Hosts of that era drop the whole list for one tool that is
/// otherwise. What a schema means stays the same.
pub fn fit_handshake(tool: &mut Value) {
    if !tool["inputSchema"].is_object() {
        tool["inputSchema"] = json!({});
    }
    let other = |schema: &Value| schema.get("type").is_some_and(|t| t != "object");
    let Some(tool) = tool.as_object_mut() else { return };
    // The result's text says the same as a structured result that is no object.
    if tool.get("outputSchema").is_some_and(|schema| !schema.is_object() || other(schema)) {
        tool.remove("outputSchema");
    }
    for schema in ["inputSchema", "outputSchema"] {
        let Some(schema) = tool.get_mut(schema) else { continue };
        schema["type"] = "object".into();
        let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
        for property in properties.into_iter().flat_map(|p| p.values_mut()) {
            match property {
                Value::Bool(true) => *property = json!({}),
                Value::Bool(false) => *property = json!({"not": {}}),
                _ => {}
            }
        }
    }
}

/// What goes along with a call besides its arguments.
pub struct Extras {
    /// What the host answers when the server asks.
    pub input: Value,
    /// What the host says along with its request.
    pub meta: Option<Value>,
    /// How it is to be a task.
    pub task: Option<Value>,
}

/// Calls a tool; the result is the server's own, whole.
///
/// # Errors
/// What the call fails with.
pub fn call(
    backend: &dyn Backend,
    target: &Target,
    arguments: Option<&RawValue>,
    more: &Extras,
    asked: &Asked<'_>,
) -> Result<Box<RawValue>> {
    #[derive(serde::Serialize)]
    struct Call<'a> {
        server: &'a str,
        tool: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        arguments: Option<&'a RawValue>,
        input: &'a Value,
        #[serde(skip_serializing_if = "Option::is_none")]
        meta: Option<&'a Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        task: Option<&'a Value>,
    }
    let Extras { input, meta, task } = more;
    let (meta, task) = (meta.as_ref(), task.as_ref());
    let call = Call { server: &target.server, tool: &target.name, arguments, input, meta, task };
    backend.perform(operation("call")?, &params(&call)?, asked)
}

/// The operation of that name.
///
/// # Errors
/// `Internal`: the table lost it.
pub fn operation(name: &str) -> Result<&'static Operation> {
    ops::by_name(name).ok_or_else(|| Error::new(Kind::Internal, format!("there is no operation {name}")))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Played, options};
    use super::*;
    use crate::pool::Cancel;

    fn schemas() -> Value {
        json!({"schemas": [
            {"server": "a", "tools": [
                {"name": "do it", "title": "T", "inputSchema": {"type": "object"}, "_meta": {"k": 1},
                 "icons": [{"src": "data:,"}], "outputSchema": {"type": "object"}},
                {"name": "plain", "inputSchema": {"type": "object"}},
            ]},
            {"server": "b", "tools": [{"name": "plain", "inputSchema": {}}]},
        ], "errors": [{"server": "c", "error": {"kind": "unavailable", "message": "no"}}]})
    }

    #[test]
    fn schemas_are_fit_to_hosts_that_want_objects() {
        let fit = |mut tool: Value| {
            fit_handshake(&mut tool);
            tool
        };
        assert_eq!(fit(json!({"name": "a"}))["inputSchema"], json!({"type": "object"}));
        let loose = json!({"inputSchema": {"properties": {"a": true, "b": false, "c": {"type": "string"}}}});
        let wanted = json!({"a": {}, "b": {"not": {}}, "c": {"type": "string"}});
        assert_eq!(fit(loose)["inputSchema"], json!({"type": "object", "properties": wanted}));
        let list = json!({"inputSchema": {"type": "object"}, "outputSchema": {"type": "array"}});
        assert_eq!(fit(list), json!({"inputSchema": {"type": "object"}}));
        let sound = json!({"inputSchema": {"type": "object", "$defs": {"x": true}}, "outputSchema": {"type": "object"}});
        assert_eq!(fit(sound.clone()), sound);
    }

    #[test]
    fn a_plain_name_is_kept_where_it_is_one() {
        let backend = Played::answering("schemas", schemas());
        let cancel = Cancel::new();
        let asked = Asked { cancel: &cancel, progress: None };
        let mut plain = options();
        plain.plain = true;
        let listed = Upstreams::default().list(Offer::Tools, &backend, &plain, &asked).unwrap();
        let names: Vec<&str> = listed.iter().map(|t| t["name"].as_str().unwrap()).collect();
        assert_eq!(names[1..], ["a__plain", "b__plain"], "two servers have it");
        assert!(names[0].starts_with("a__do_it_"), "{names:?}");
        let one = json!({"schemas": [{"server": "a", "tools": [{"name": "only"}, {"name": "mcpx_call"}]}]});
        let backend = Played::answering("schemas", one);
        let listed = Upstreams::default().list(Offer::Tools, &backend, &plain, &asked).unwrap();
        assert_eq!((&listed[0]["name"], &listed[1]["name"]), (&json!("only"), &json!("a__mcpx_call")));
    }

    #[test]
    fn a_tool_keeps_everything_but_its_name() {
        let backend = Played::answering("schemas", schemas());
        let upstreams = Upstreams::default();
        let cancel = Cancel::new();
        let asked = Asked { cancel: &cancel, progress: None };
        let listed = upstreams.list(Offer::Tools, &backend, &options(), &asked).unwrap();
        let names: Vec<&str> = listed.iter().map(|t| t["name"].as_str().unwrap()).collect();
        assert_eq!(names[1..], ["a__plain", "b__plain"]);
        let mut first = schemas()["schemas"][0]["tools"][0].clone();
        first["name"] = listed[0]["name"].clone();
        assert_eq!(listed[0], first);
        let target = upstreams.find(Offer::Tools, names[0], &backend, &options(), &asked).unwrap();
        assert_eq!(*target, Target { server: "a".into(), name: "do it".into(), marked: None });
        assert_eq!(backend.count("schemas"), 1, "what was listed is known");
        let error = upstreams.find(Offer::Tools, "b__plian", &backend, &options(), &asked).unwrap_err();
        assert!(error.hint_text().unwrap().contains("b__plain"), "{error}");
        assert_eq!(backend.count("schemas"), 2);
    }

    #[test]
    fn prompts_lose_nothing_but_their_server() {
        let prompts = json!({"prompts": [
            {"server": "a", "name": "p", "title": "T", "arguments": [{"name": "x"}]},
            {"server": "b", "name": "p"},
        ], "failures": [{"message": "c is gone"}]});
        let backend = Played::answering("prompts", prompts);
        let cancel = Cancel::new();
        let asked = Asked { cancel: &cancel, progress: None };
        let upstreams = Upstreams::default();
        let found = upstreams.find(Offer::Prompts, "b__p", &backend, &options(), &asked).unwrap();
        assert_eq!(*found, Target { server: "b".into(), name: "p".into(), marked: None });
        let listed = upstreams.list(Offer::Prompts, &backend, &options(), &asked).unwrap();
        assert_eq!(listed[0], json!({"name": "a__p", "title": "T", "arguments": [{"name": "x"}]}));
        let error = upstreams.find(Offer::Prompts, "a__q", &backend, &options(), &asked).unwrap_err();
        assert!(error.message().contains("no prompt \"a__q\""), "{error}");
    }
}
