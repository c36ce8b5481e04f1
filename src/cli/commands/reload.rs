//! `mcpx reload`: makes the daemon read its configuration now.

use super::super::command::{Command, Group, Rest, example};
use super::super::cx::Cx;
use crate::error::{Error, Kind, Result};
use crate::util::iso8601;
use serde_json::{Value, json};

/// The command.
pub static COMMAND: Command = Command {
    name: "reload",
    group: Group::Daemon,
    words: "",
    count: (0, 0),
    rest: Rest::Mixed,
    summary: "Make the daemon read the configuration again now",
    about: "It does so by itself within a moment of an edit. Servers whose definition did not change keep running.",
    flags: &[],
    settings: &[],
    examples: &[example("mcpx reload", "do not wait for the daemon to notice")],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    let (found, broken) = cx.running_anyhow()?;
    let Some(client) = found else {
        if cx.json() {
            cx.out.json(&json!({"ok": true, "running": false, "changed": false}))?;
        } else {
            cx.out.line("no daemon is running; the next one reads the configuration as it is")?;
        }
        return Ok(0);
    };
    let answer = client.json("POST", "/v1/reload", Some(&json!({})))?;
    // What was said of the broken configuration already is the same.
    if let Some(problem) = answer.get("problem").filter(|_| broken.is_none()) {
        return Err(Error::from_json(problem));
    }
    let applied = answer.get("problem").is_none();
    if cx.json() {
        let mut body = json!({"ok": applied, "running": true});
        if let (Some(body), Some(answer)) = (body.as_object_mut(), answer.as_object()) {
            body.extend(answer.clone());
        }
        cx.out.json(&body)?;
    } else if !applied {
        cx.out.line("the daemon goes on with its last good configuration")?;
    } else if answer["changed"].as_bool() == Some(true) {
        cx.out.line(&format!("the daemon follows the new configuration{}", servers(&answer["taken"])))?;
    } else if let Some(at) = answer["taken"]["at"].as_u64() {
        // The daemon looks by itself, and may have been faster than the request.
        let at = iso8601(at);
        let time = at.get(11..19).unwrap_or(&at);
        cx.out.line(&format!("already taken over at {time} UTC{}", servers(&answer["taken"])))?;
    } else {
        cx.out.line("the configuration is as it was")?;
    }
    // What was asked for was not done, though nothing was lost.
    Ok(if applied { 0 } else { Kind::Config.row().exit })
}

/// What became of which servers, behind what is said; nothing when it was settings that changed.
fn servers(taken: &Value) -> String {
    let mut out = String::new();
    for verb in ["added", "removed", "changed"] {
        let names: Vec<&str> =
            taken[verb].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if !names.is_empty() {
            out.push_str(&format!("; {verb}: {}", names.join(", ")));
        }
    }
    out
}
