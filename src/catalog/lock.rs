//! The lock: what every server offered when a person last looked, in a file to
//! be committed. Read in place of servers that cannot be asked, and compared
//! with what they offer now. Knows nothing of how a server is asked.

use super::{ServerSchema, Tool};
use crate::error::{Error, Kind, Result};
use crate::settings::shape;
use crate::util::digest;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

/// The file's name, beside the project's configuration.
pub const FILE: &str = ".mcpx.lock.json";

/// The form of the file.
const VERSION: u32 = 1;

/// All that is locked: servers by name, in a stable order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Lock {
    /// The form of the file.
    version: u32,
    /// The servers, by name.
    pub servers: BTreeMap<String, Locked>,
}

/// What one server offered.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Locked {
    /// 16 hexadecimal digits over the tools, whatever their order and that of their schemas' members.
    pub digest: String,
    /// The revision of the protocol.
    pub protocol: String,
    /// `serverInfo` as the server gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_info: Option<Value>,
    /// Its instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Its tools in its own order, on which their names in a program depend.
    pub tools: Vec<Tool>,
}

impl Default for Lock {
    fn default() -> Lock {
        Lock { version: VERSION, servers: BTreeMap::new() }
    }
}

impl Lock {
    /// Reads a lock; `None` when there is no such file.
    ///
    /// # Errors
    /// `Unreadable`, or `Config` when it is no lock that this version knows.
    pub fn read(path: &Path) -> Result<Option<Lock>> {
        let fail = |what: String| {
            Error::new(Kind::Config, format!("reading the lock {}: {what}", path.display()))
                .hint("mcpx lock writes it anew")
        };
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Error::unreadable(format!("the lock {}", path.display()), &e)),
        };
        let lock: Lock = serde_json::from_slice(&bytes).map_err(|e| fail(e.to_string()))?;
        match lock.version {
            VERSION => Ok(Some(lock)),
            other => Err(fail(format!("its version is {other}, and this mcpx knows {VERSION}"))),
        }
    }

    /// The text of the file.
    pub fn text(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Takes over what a server offers. What is the same but for its order stays as it is.
    pub fn take(&mut self, schema: &ServerSchema) {
        let locked = Locked::of(schema);
        if self.servers.get(&schema.server).is_none_or(|old| {
            old.digest != locked.digest
                || old.protocol != locked.protocol
                || old.server_info != locked.server_info
                || old.instructions != locked.instructions
        }) {
            self.servers.insert(schema.server.clone(), locked);
        }
    }

    /// A server's schema as it was locked, for the definition of this digest.
    pub fn schema(&self, server: &str, definition: &str) -> Option<ServerSchema> {
        let locked = self.servers.get(server)?;
        Some(ServerSchema {
            server: server.to_owned(),
            digest: definition.to_owned(),
            fetched_at: 0,
            protocol: locked.protocol.clone(),
            server_info: locked.server_info.clone(),
            capabilities: None,
            instructions: locked.instructions.clone(),
            ttl_ms: None,
            private: false,
            tools: locked.tools.clone(),
        })
    }
}

impl Locked {
    /// What a schema comes to.
    pub fn of(schema: &ServerSchema) -> Locked {
        Locked {
            digest: tools_digest(&schema.tools),
            protocol: schema.protocol.clone(),
            server_info: schema.server_info.clone(),
            instructions: schema.instructions.clone(),
            tools: schema.tools.clone(),
        }
    }
}

/// 16 hexadecimal digits over tools, whatever their order.
fn tools_digest(tools: &[Tool]) -> String {
    let text = |t: &Tool| sorted(&serde_json::to_value(t).unwrap_or_default()).to_string();
    let mut texts: Vec<String> = tools.iter().map(text).collect();
    texts.sort_unstable();
    digest(texts.iter().map(|t| t.as_bytes()), 16)
}

/// The value with every object's members by name.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let by_name: BTreeMap<&String, &Value> = members.iter().collect();
            by_name.into_iter().map(|(k, v)| (k.clone(), sorted(v))).collect::<Map<_, _>>().into()
        }
        Value::Array(list) => list.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// How what a server offers differs from what was locked.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Drift {
    /// Tools that are new.
    pub added: Vec<String>,
    /// Tools that are gone.
    pub removed: Vec<String>,
    /// Tools that are another than before.
    pub changed: Vec<Changed>,
}

/// A tool that is another than before.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Changed {
    /// Its name.
    pub tool: String,
    /// Where it differs.
    pub changes: Vec<Change>,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// The way to it, with dots: `inputSchema.properties.text.type`.
    pub path: String,
    /// What was locked; absent when it is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<Value>,
    /// What it is now; absent when it is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is: Option<Value>,
}

impl Drift {
    /// Compares what was locked with what is offered. The order of tools and of members does not count.
    pub fn between(locked: &Locked, schema: &ServerSchema) -> Drift {
        let now = Locked::of(schema);
        let mut drift = Drift::default();
        let named = |tools: &[Tool]| -> BTreeMap<String, Value> {
            tools.iter().map(|t| (t.name.clone(), serde_json::to_value(t).unwrap_or_default())).collect()
        };
        let (was, is) = (named(&locked.tools), named(&now.tools));
        drift.added = is.keys().filter(|name| !was.contains_key(*name)).cloned().collect();
        for (name, before) in &was {
            match is.get(name) {
                None => drift.removed.push(name.clone()),
                Some(after) => {
                    let mut changes = Vec::new();
                    compare("", Some(before), Some(after), &mut changes);
                    if !changes.is_empty() {
                        drift.changed.push(Changed { tool: name.clone(), changes });
                    }
                }
            }
        }
        drift
    }

    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }

    /// A line for each difference.
    pub fn lines(&self) -> Vec<String> {
        let mut out: Vec<String> = self.added.iter().map(|t| format!("+ {t}")).collect();
        out.extend(self.removed.iter().map(|t| format!("- {t}")));
        for changed in &self.changed {
            out.push(format!("~ {}", changed.tool));
            for Change { path, was, is } in &changed.changes {
                out.push(match (was, is) {
                    (Some(was), Some(is)) => format!("    {path}: {} -> {}", shown(was), shown(is)),
                    (None, Some(is)) => format!("    {path}: new, {}", shown(is)),
                    (Some(was), None) => format!("    {path}: gone, was {}", shown(was)),
                    (None, None) => continue,
                });
            }
        }
        out
    }
}

/// Notes where two values differ, as deep as both are objects or lists of one length.
fn compare(path: &str, was: Option<&Value>, is: Option<&Value>, out: &mut Vec<Change>) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match (was, is) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            keys.into_iter().for_each(|key| compare(&below(key), a.get(key), b.get(key), out));
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) if a.len() == b.len() => {
            for (i, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{path}[{i}]"), Some(a), Some(b), out);
            }
        }
        (a, b) if a == b => {}
        (a, b) => out.push(Change { path: path.to_owned(), was: a.cloned(), is: b.cloned() }),
    }
}

/// How much of a value a line of a difference shows.
const SHOWN: usize = 60;

fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) | Value::Array(_) if value.to_string().len() > SHOWN => shape(value).to_owned(),
        other => super::rows::cut(&other.to_string(), SHOWN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema(tools: Value) -> ServerSchema {
        serde_json::from_value(json!({
            "server": "s", "digest": "d", "fetchedAt": 1, "protocol": "p", "tools": tools,
        }))
        .unwrap()
    }

    #[test]
    fn order_does_not_count_and_every_difference_has_its_path() {
        let before = schema(json!([
            {"name": "b", "inputSchema": {"type": "object", "properties": {"x": {"type": "string"}, "y": {}}}},
            {"name": "a", "description": "one", "inputSchema": {}},
            {"name": "gone", "inputSchema": {}},
        ]));
        let mut lock = Lock::default();
        lock.take(&before);
        let locked = &lock.servers["s"];
        assert_eq!(locked.tools.iter().map(|t| t.name.as_str()).collect::<Vec<_>>(), ["b", "a", "gone"]);
        let same = schema(json!([
            {"name": "gone", "inputSchema": {}},
            {"name": "a", "inputSchema": {}, "description": "one"},
            {"name": "b", "inputSchema": {"properties": {"y": {}, "x": {"type": "string"}}, "type": "object"}},
        ]));
        assert!(Drift::between(locked, &same).is_empty());
        assert_eq!(Locked::of(&same).digest, locked.digest);
        let mut again = lock.clone();
        again.take(&same);
        assert_eq!(again.text(), lock.text(), "the file stays as it is");
        let after = schema(json!([
            {"name": "a", "description": "two", "inputSchema": {}},
            {"name": "b", "inputSchema": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}},
            {"name": "new", "inputSchema": {}},
        ]));
        let drift = Drift::between(locked, &after);
        assert_eq!(
            drift.lines(),
            [
                "+ new",
                "- gone",
                "~ a",
                "    description: \"one\" -> \"two\"",
                "~ b",
                "    inputSchema.properties.x.type: \"string\" -> \"number\"",
                "    inputSchema.properties.y: gone, was {}",
                "    inputSchema.required: new, [\"x\"]",
            ]
        );
        assert_ne!(Locked::of(&after).digest, locked.digest);
    }

    #[test]
    fn what_is_no_lock_is_said() {
        let dir = std::env::temp_dir().join(format!("mcpx-lock-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join(FILE);
        assert!(Lock::read(&path).unwrap().is_none());
        for bad in ["{", "[]", "{\"version\": 9, \"servers\": {}}"] {
            crate::util::write_atomic(&path, bad.as_bytes(), 0o644, false).unwrap();
            let e = Lock::read(&path).unwrap_err();
            assert!(e.exit_code() == 65 && e.hint_text().unwrap().contains("mcpx lock"), "{e}");
        }
        let mut lock = Lock::default();
        lock.take(&schema(json!([{"name": "a", "inputSchema": {}}])));
        crate::util::write_atomic(&path, lock.text().as_bytes(), 0o644, false).unwrap();
        let back = Lock::read(&path).unwrap().unwrap();
        assert_eq!(back.text(), lock.text());
        assert_eq!(back.schema("s", "other").unwrap().digest, "other");
        assert!(back.schema("t", "d").is_none());
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
