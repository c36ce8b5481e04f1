//! `mcpx reload`: makes the daemon read its configuration now.

use super::super::command::{Command, Group, Rest, example};
use super::super::cx::Cx;
use crate::error::{Error, Result};
use serde_json::json;

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
    if cx.json() {
        let mut body = json!({"ok": true, "running": true});
        if let (Some(body), Some(answer)) = (body.as_object_mut(), answer.as_object()) {
            body.extend(answer.clone());
        }
        cx.out.json(&body)?;
    } else if answer.get("problem").is_some() {
        cx.out.line("the daemon goes on with its last good configuration")?;
    } else if answer["changed"].as_bool() == Some(true) {
        cx.out.line("the daemon follows the new configuration")?;
    } else {
        cx.out.line("the configuration is as it was")?;
    }
    Ok(0)
}
