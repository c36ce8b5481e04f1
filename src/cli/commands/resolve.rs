//! `mcpx resolve`: which daemon serves a directory.

use super::super::command::{Command, Group, Rest, example};
use super::super::cx::Cx;
use crate::api;
use crate::error::{Error, Kind, Result};
use serde_json::json;
use std::path::Path;

/// The command.
pub static COMMAND: Command = Command {
    name: "resolve",
    group: Group::Daemon,
    words: "[<directory>]",
    count: (0, 1),
    rest: Rest::Mixed,
    summary: "Show which daemon serves a directory, without starting it",
    about: "Prints the socket, the endpoint, the configuration and whether the daemon runs, for this directory or \
            the one given. The answer depends on the directory alone, so --config has no part in it.",
    flags: &[],
    settings: &[],
    examples: &[
        example("mcpx resolve", "for the working directory"),
        example("mcpx --json resolve /srv/project", "for another one, for a program"),
    ],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    let dir = cx.inv.words.first().map_or(Path::new("."), Path::new);
    let dir = std::path::absolute(dir)
        .map_err(|e| Error::new(Kind::Unavailable, format!("finding {}: {e}", dir.display())))?;
    let answer = api::resolve(&dir, &cx.env, &cx.dirs()?)?;
    let mut value =
        serde_json::to_value(&answer).map_err(|e| super::super::internal(format!("writing JSON: {e}")))?;
    if cx.json() {
        let mut body = json!({"ok": true});
        if let (Some(body), Some(answer)) = (body.as_object_mut(), value.as_object_mut()) {
            body.append(answer);
        }
        cx.out.json(&body)?;
        return Ok(0);
    }
    let word = |key: &str| value[key].as_str().filter(|t| !t.is_empty()).unwrap_or("-").to_owned();
    let running = if value["running"].as_bool() == Some(true) { "yes" } else { "no" };
    let text = format!(
        "running   {running}\nsocket    {}\nendpoint  {}\nconfig    {}\nkey       {}\n",
        word("socket"),
        word("endpoint"),
        word("configPath"),
        word("configHash")
    );
    cx.out.text(&text)?;
    Ok(0)
}
