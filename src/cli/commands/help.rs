//! `mcpx help`: the overview, a command, or a topic.

use super::super::args;
use super::super::command::{Command, Group, Rest, example};
use super::super::cx::Cx;
use super::super::help as pages;
use super::super::topics::{self, TOPICS};
use super::COMMANDS;
use crate::error::{Error, Result};
use crate::util::did_you_mean;
use serde_json::json;

/// The command.
pub static COMMAND: Command = Command {
    name: "help",
    group: Group::Setup,
    words: "[<command>|<topic>]",
    count: (0, 1),
    rest: Rest::Mixed,
    summary: "Explain mcpx, one command, or a topic",
    about: "Topics: configuration, settings, environment, exit-codes, filters, aliases, profiles, presets, scripts, \
            api. They are the pages of the documentation, made from the same tables.",
    flags: &[],
    settings: &[],
    examples: &[
        example("mcpx help", "the commands and topics"),
        example("mcpx help call", "one command, the same as mcpx call --help"),
        example("mcpx help exit-codes", "a topic"),
        example("mcpx --json help", "every command and its flags, for a program"),
    ],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    let Some(word) = cx.inv.words()?.first().map(|w| (*w).to_owned()) else {
        return overview(cx);
    };
    let command = args::find_command(word.as_ref());
    let topic = topics::find(&word);
    if command.is_err() && topic.is_none() {
        return Err(unknown(&word));
    }
    let json = cx.json();
    let (mut body, mut text) = (json!({"ok": true}), String::new());
    if let Ok(command) = command {
        body["command"] = pages::command_json(command);
        text = pages::command(command);
    }
    if let Some(topic) = topic {
        let page = (topic.text)();
        body["topic"] = json!({"name": topic.name, "summary": topic.summary, "text": page});
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&page);
    }
    if json {
        cx.out.json(&body)?
    } else {
        cx.out.text(&text)?
    }
    Ok(0)
}

fn overview(cx: &mut Cx) -> Result<u8> {
    if cx.json() {
        cx.out.json(&pages::overview_json())?;
    } else {
        cx.out.text(&pages::overview())?;
    }
    Ok(0)
}

fn unknown(word: &str) -> Error {
    let names = COMMANDS.iter().map(|c| c.name).chain(TOPICS.iter().map(|t| t.name));
    let e = args::usage(format!("there is no command or topic \"{word}\""));
    e.hint(did_you_mean(word, names).unwrap_or_else(|| "mcpx help lists both".into()))
}
