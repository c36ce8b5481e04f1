//! The tools of all servers in one list, each under a name of its own, and the
//! way back from that name. Knows nothing of the host.

use super::backend::{Asked, Backend, params};
use super::safe_names::safe;
use crate::api::ops::{self, Operation};
use crate::error::{Error, Kind, Result};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What was listed last.
#[derive(Default)]
pub struct Upstreams {
    names: Mutex<HashMap<String, Arc<Target>>>,
}

/// A server's tool.
#[derive(Debug, PartialEq, Eq)]
pub struct Target {
    /// The server's configured name.
    pub server: String,
    /// The tool's exact name.
    pub tool: String,
}

impl Upstreams {
    /// The entries of `tools/list`: whole, but for their names. A server that cannot
    /// be read is left out: the host's other servers are not to suffer for it.
    ///
    /// # Errors
    /// When the daemon could not be asked.
    pub fn tools(&self, backend: &dyn Backend, wait: Duration, asked: &Asked<'_>) -> Result<Vec<Value>> {
        let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        let answer = backend.perform(operation("schemas")?, &params(&json!({"waitMs": wait}))?, asked)?;
        let mut answer: Value = serde_json::from_str(answer.get())
            .map_err(|e| Error::new(Kind::Internal, format!("reading the servers' tools: {e}")))?;
        let mut listed = Vec::new();
        let mut names = HashMap::new();
        for schema in answer["schemas"].as_array_mut().into_iter().flatten() {
            let server = schema["server"].as_str().unwrap_or_default().to_owned();
            let Some(Value::Array(tools)) = schema.get_mut("tools").map(Value::take) else { continue };
            for mut tool in tools {
                let Some(name) = tool["name"].as_str().map(str::to_owned) else { continue };
                let safe = safe(&server, &name);
                let target = Arc::new(Target { server: server.clone(), tool: name });
                if names.insert(safe.clone(), target).is_none() {
                    tool["name"] = safe.into();
                    listed.push(tool);
                }
            }
        }
        // Names never change their meaning, so those of others who listed stay.
        self.lock().extend(names);
        Ok(listed)
    }

    /// The tool of that name; asks the servers when nobody has listed it yet.
    ///
    /// # Errors
    /// `NotFound`, or that the daemon could not be asked.
    pub fn find(
        &self,
        name: &str,
        backend: &dyn Backend,
        wait: Duration,
        asked: &Asked<'_>,
    ) -> Result<Arc<Target>> {
        let known = self.lock().get(name).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let listed = self.tools(backend, wait, asked)?;
        self.lock().get(name).cloned().ok_or_else(|| {
            let error = Error::new(Kind::NotFound, format!("there is no tool \"{name}\""));
            let names = listed.iter().filter_map(|tool| tool["name"].as_str());
            match crate::util::did_you_mean(name, names) {
                Some(near) => error.hint(near),
                None => error.hint("tools/list has their names"),
            }
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Target>>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls a tool; the result is the server's own, whole.
///
/// # Errors
/// What the call fails with.
pub fn call(
    backend: &dyn Backend,
    target: &Target,
    arguments: Option<&RawValue>,
    asked: &Asked<'_>,
) -> Result<Box<RawValue>> {
    #[derive(serde::Serialize)]
    struct Call<'a> {
        server: &'a str,
        tool: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        arguments: Option<&'a RawValue>,
    }
    let call = Call { server: &target.server, tool: &target.tool, arguments };
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
    use super::super::testing::Played;
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
    fn a_tool_keeps_everything_but_its_name() {
        let backend = Played::answering("schemas", schemas());
        let upstreams = Upstreams::default();
        let cancel = Cancel::new();
        let asked = Asked { cancel: &cancel, progress: None };
        let listed = upstreams.tools(&backend, Duration::ZERO, &asked).unwrap();
        let names: Vec<&str> = listed.iter().map(|t| t["name"].as_str().unwrap()).collect();
        assert_eq!(names[1..], ["a__plain", "b__plain"]);
        let mut first = schemas()["schemas"][0]["tools"][0].clone();
        first["name"] = listed[0]["name"].clone();
        assert_eq!(listed[0], first);
        let target = upstreams.find(names[0], &backend, Duration::ZERO, &asked).unwrap();
        assert_eq!(*target, Target { server: "a".into(), tool: "do it".into() });
        assert_eq!(backend.count("schemas"), 1, "what was listed is known");
        let error = upstreams.find("b__plian", &backend, Duration::ZERO, &asked).unwrap_err();
        assert!(error.hint_text().unwrap().contains("b__plain"), "{error}");
        assert_eq!(backend.count("schemas"), 2);
    }
}
