//! The `mcpx_*` tools, derived from the operations table: name, description,
//! schemas, annotations. Knows nothing of how an operation is carried out, or of
//! the tools of other servers.

use super::render::{is_called, is_passed};
use crate::api::docs::{object_schema, reach};
use crate::api::ops::{self, Field, Operation, Record, Returns};
use crate::error::{Error, Kind};
use crate::util::{did_you_mean, glob};
use serde_json::{Map, Value, json};
use std::sync::OnceLock;

/// What every derived tool's name begins with.
pub const PREFIX: &str = "mcpx_";

/// Parameters that the session gives, and a model has no word in: who calls, and
/// which servers there are for it.
const SUPPLIED: [&str; 17] = [
    "context",
    "selection",
    "profile",
    "skipDefault",
    "allProfiles",
    "waitMs",
    "session",
    "sessionId",
    "parentSessionId",
    // One answer is all that a tool has, and what runs commands around a program is the host's to decide.
    "output",
    "lines",
    "follow",
    "hooks",
    // What a host answers is what it said of itself.
    "input",
    // A host says by its own means that it wants a task.
    "task",
    "untilOver",
    // What a host says along with its request goes along.
    "meta",
];

/// Where a tool's schema has its records.
const BASE: &str = "#/$defs/";

/// A tool that is an operation.
pub struct Derived {
    /// Its name, `mcpx_` included.
    pub name: String,
    /// The operation.
    pub op: &'static Operation,
    /// The arguments' JSON Schema.
    pub input: Value,
    /// The entry of `tools/list`.
    pub listed: Value,
}

/// Every derived tool, in the order of the table.
pub fn all() -> &'static [Derived] {
    static ALL: OnceLock<Vec<Derived>> = OnceLock::new();
    ALL.get_or_init(|| ops::all().filter(|op| !op.tool.is_empty()).map(derive).collect())
}

/// Those whose name without `mcpx_` fits one of the patterns.
pub fn offered(patterns: &[String]) -> impl Iterator<Item = &'static Derived> {
    all().iter().filter(move |tool| offers(patterns, tool))
}

fn offers(patterns: &[String], tool: &Derived) -> bool {
    patterns.iter().any(|p| glob(p, tool.op.tool) || glob(p, &tool.name))
}

/// The offered tool of that name, or what to say of its absence.
pub fn find(patterns: &[String], name: &str) -> Result<&'static Derived, String> {
    if let Some(tool) = offered(patterns).find(|t| t.name == name) {
        return Ok(tool);
    }
    let mut message = format!("there is no tool \"{name}\"");
    if let Some(near) = did_you_mean(name, offered(patterns).map(|t| t.name.as_str())) {
        message = format!("{message}; {near}");
    }
    Err(message)
}

/// Refuses a pattern that offers nothing: it is misspelt.
///
/// # Errors
/// `Usage`, with the nearest name.
pub fn check(patterns: &[String]) -> Result<(), Error> {
    let idle = patterns.iter().find(|p| !all().iter().any(|tool| offers(std::slice::from_ref(p), tool)));
    let Some(pattern) = idle else { return Ok(()) };
    let error = Error::new(Kind::Usage, format!("serve.tools: mcpx has no tool \"{pattern}\""));
    let bare = pattern.strip_prefix(PREFIX).unwrap_or(pattern);
    let names = || all().iter().map(|tool| tool.op.tool);
    Err(error.hint(match did_you_mean(bare, names()) {
        Some(near) => near,
        None => {
            format!("it has {}; a star stands for any characters", names().collect::<Vec<_>>().join(", "))
        }
    }))
}

/// Whether a parameter is the session's to give.
pub fn is_supplied(field: &Field) -> bool {
    SUPPLIED.contains(&field.name)
}

fn derive(op: &'static Operation) -> Derived {
    let name = format!("{PREFIX}{}", op.tool);
    let input = schema(op.params.iter().map(|p| &p.field).filter(|f| !is_supplied(f)));
    let mut listed = json!({
        "name": name,
        "description": described(op),
        "inputSchema": input,
        "annotations": {
            "title": title(op),
            "readOnlyHint": !op.mutates,
            // A tool of another server may reach anything; the rest stays on this machine.
            "openWorldHint": is_called(op),
        },
    });
    // What a called tool returns has a shape of its own.
    if let (Returns::Record(record), false) = (&op.returns, is_called(op) || is_passed(op)) {
        listed["outputSchema"] = schema(record.fields.iter());
    }
    Derived { name, op, input, listed }
}

/// The schema of an object with these fields, and with the records that they reach.
fn schema(fields: impl Iterator<Item = &'static Field> + Clone) -> Value {
    let mut out = object_schema(fields.clone(), BASE);
    let mut records: Vec<&'static Record> = Vec::new();
    reach(fields, &mut records);
    if !records.is_empty() {
        let defs: Map<String, Value> =
            records.iter().map(|r| (r.name.to_owned(), object_schema(r.fields, BASE))).collect();
        out["$defs"] = Value::Object(defs);
    }
    out
}

fn described(op: &Operation) -> String {
    let mut out = sentence(op.help);
    if !op.doc.is_empty() {
        out.push(' ');
        out.push_str(op.doc);
    }
    out
}

/// The help as a sentence.
fn sentence(help: &str) -> String {
    let mut chars = help.chars();
    let first = chars.next().map(|c| c.to_uppercase().collect::<String>()).unwrap_or_default();
    format!("{first}{}.", chars.as_str().trim_end_matches('.'))
}

fn title(op: &Operation) -> String {
    format!("mcpx {}", op.tool.replace('_', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tool_is_whole() {
        assert!(all().len() > 10);
        for tool in all() {
            assert!(tool.name.len() <= 64, "{}", tool.name);
            let listed = &tool.listed;
            assert_eq!(listed["inputSchema"]["type"], "object", "{}", tool.name);
            assert!(listed["description"].as_str().unwrap().ends_with(['.', '`', ')']), "{}", tool.name);
            for schema in [&listed["inputSchema"], &listed["outputSchema"]] {
                references_resolve(schema, schema, &tool.name);
            }
            let properties = listed["inputSchema"]["properties"].as_object().unwrap();
            for name in SUPPLIED {
                assert!(!properties.contains_key(name), "{} asks for {name}", tool.name);
            }
        }
    }

    fn references_resolve(root: &Value, at: &Value, tool: &str) {
        if let Some(target) = at.get("$ref").and_then(Value::as_str) {
            assert!(root.pointer(target.trim_start_matches('#')).is_some(), "{tool}: {target}");
        }
        match at {
            Value::Object(map) => map.values().for_each(|v| references_resolve(root, v, tool)),
            Value::Array(items) => items.iter().for_each(|v| references_resolve(root, v, tool)),
            _ => {}
        }
    }

    #[test]
    fn what_the_session_gives_exists() {
        for name in SUPPLIED {
            let known = ops::all().any(|op| op.params.iter().any(|p| p.field.name == name));
            assert!(known, "no operation takes {name} any more");
        }
    }

    #[test]
    fn hints_and_names_follow_the_table() {
        let everything = ["*".to_owned()];
        let tool = |name: &str| find(&everything, name).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(tool("mcpx_settings_list").listed["annotations"]["readOnlyHint"], true);
        assert_eq!(tool("mcpx_settings_set").listed["annotations"]["readOnlyHint"], false);
        assert_eq!(tool("mcpx_call").input["required"], json!(["server", "tool"]));
        assert!(tool("mcpx_call").listed.get("outputSchema").is_none());
        assert!(tool("mcpx_status").listed["outputSchema"]["$defs"]["Daemon"].is_object());
        assert!(find(&everything, "mcpx_cal").err().unwrap().contains("mcpx_call"));
        let few = ["settings_*".to_owned(), "mcpx_call".to_owned()];
        let names: Vec<&str> = offered(&few).map(|t| t.name.as_str()).collect();
        assert!(names.contains(&"mcpx_call") && names.contains(&"mcpx_settings_get"), "{names:?}");
        assert!(!names.contains(&"mcpx_status"), "{names:?}");
        assert!(check(&few).is_ok() && check(&everything).is_ok() && check(&[]).is_ok());
        for (wrong, near) in [("serch", "search"), ("mcpx_cal", "call"), ("nothing_*", "discover")] {
            let error = check(&["call".into(), wrong.into()]).unwrap_err();
            assert_eq!(error.kind(), Kind::Usage);
            assert!(error.hint_text().unwrap().contains(near), "{wrong}: {error:?}");
        }
    }
}
