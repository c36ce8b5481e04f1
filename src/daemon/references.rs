//! Takes images, audio and blobs out of a tool's result, and puts links to artifacts
//! in their place. What a result says besides stays as its server wrote it. Knows
//! nothing of how the result was come by.

use super::state::Daemon;
use crate::artifacts::{Artifact, Label, extension};
use crate::error::Result;
use crate::log;
use crate::util::base64;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Who called what: names the artifacts, and says whose they are.
pub struct Called<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// The run.
    pub run: Option<String>,
    /// The session.
    pub session: Option<String>,
}

/// The result with links instead of what is as large as `from` bytes or larger. What cannot be
/// kept stays in the result, and the log says why: the call has happened.
pub fn replaced(daemon: &Daemon, result: Box<RawValue>, called: &Called<'_>, from: u64) -> Box<RawValue> {
    // Most results have none of it, and are not read.
    let text = result.get();
    if !["\"data\"", "\"blob\""].iter().any(|key| text.contains(key)) {
        return result;
    }
    let Ok(Value::Object(mut whole)) = serde_json::from_str::<Value>(text) else { return result };
    let Some(Value::Array(content)) = whole.get_mut("content") else { return result };
    let mut changed = false;
    for block in content {
        let Some((data, mime, name)) = media(block, called.tool, from) else { continue };
        match keep(daemon, &data, &mime, name, called) {
            Ok(artifact) => {
                *block = link(block, &artifact);
                changed = true;
            }
            Err(e) => {
                log::warn(format_args!("an image, audio or blob of {} stays in its result: {e}", called.tool))
            }
        }
    }
    match changed.then(|| serde_json::value::to_raw_value(&whole)) {
        Some(Ok(raw)) => raw,
        _ => result,
    }
}

/// The base64, media type and name of a block that is to go.
fn media(block: &Value, tool: &str, from: u64) -> Option<(String, String, String)> {
    let (holder, key) = match block["type"].as_str()? {
        "image" | "audio" => (block, "data"),
        "resource" => (&block["resource"], "blob"),
        _ => return None,
    };
    let data = holder[key].as_str()?;
    // Four characters are three bytes.
    if (data.len() as u64) / 4 * 3 < from {
        return None;
    }
    let mime = holder["mimeType"].as_str().unwrap_or("application/octet-stream");
    let of_uri = holder["uri"].as_str().and_then(|uri| uri.split(['?', '#']).next()?.rsplit('/').next());
    let name = of_uri.filter(|name| !name.is_empty()).map(str::to_owned);
    Some((data.to_owned(), mime.to_owned(), name.unwrap_or_else(|| format!("{tool}.{}", extension(mime)))))
}

fn keep(daemon: &Daemon, data: &str, mime: &str, name: String, called: &Called<'_>) -> Result<Artifact> {
    let bytes = base64::decode(data).map_err(|at| {
        crate::error::Error::new(
            crate::error::Kind::Unavailable,
            format!("it is not base64 at character {at}"),
        )
    })?;
    let artifacts = &daemon.artifacts;
    let mut incoming = artifacts.store.begin(&artifacts.limits(daemon))?;
    incoming.take(&bytes)?;
    let label =
        Label { name, mime: Some(mime.to_owned()), run: called.run.clone(), session: called.session.clone() };
    artifacts.keep(daemon, incoming, label)
}

/// A `resource_link` (MCP 2025-06-18, server/tools), which every host knows, with what more is known in `_meta`.
fn link(block: &Value, artifact: &Artifact) -> Value {
    let mut out = json!({
        "type": "resource_link",
        "uri": artifact.uri,
        "name": artifact.name,
        "mimeType": artifact.mime,
        "size": artifact.size,
    });
    if let Some(annotations) = block.get("annotations") {
        out["annotations"] = annotations.clone();
    }
    let mut meta = match block.get("_meta") {
        Some(Value::Object(meta)) => meta.clone(),
        _ => Map::new(),
    };
    meta.insert(
        "mcpx/artifact".into(),
        json!({"sha256": artifact.sha256, "path": artifact.path, "was": block["type"]}),
    );
    out["_meta"] = Value::Object(meta);
    out
}
