//! `mcpx hooks`: the declared hooks and event consumers, and how they fare.

use super::super::args::usage;
use super::super::command::{Command, Group, Rest, example};
use super::super::cx::Cx;
use super::super::out::note;
use super::super::table::{Cell, Table, Tone};
use crate::error::Result;
use crate::observe::declared::{Declaration, consumers, hooks};
use crate::util::iso8601;
use serde_json::{Value, json};

/// The command.
pub static COMMAND: Command = Command {
    name: "hooks",
    group: Group::Daemon,
    words: "[list]",
    count: (0, 1),
    rest: Rest::Mixed,
    summary: "Show the declared hooks and event consumers, and how they fare",
    about: "A hook is a command that the daemon runs when something happens (\"hooks\" in the configuration); a \
            consumer is a program that it feeds with events in order (events.consumers). Starts nothing: without a \
            daemon it shows what is declared.",
    flags: &[],
    settings: &["hooks", "events.consumers", "events.hookTimeout"],
    examples: &[
        example("mcpx hooks", "runs, failures, the last error"),
        example("mcpx --json hooks list", "for a program"),
    ],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    if let Some(word) = cx.inv.words()?.first().filter(|word| **word != "list") {
        return Err(usage(format!("hooks has no \"{word}\"; it takes list, or nothing")));
    }
    let (client, _) = cx.running_anyhow()?;
    let all = match client {
        Some(client) => client.json("GET", "/v1/hooks", None)?,
        None => {
            let settings = &cx.world()?.settings;
            json!({"hooks": rows(&hooks(settings)), "consumers": rows(&consumers(settings))})
        }
    };
    if cx.json() {
        cx.out.json(&all)?;
        return Ok(0);
    }
    let of = |key: &str| all[key].as_array().cloned().unwrap_or_default();
    let (hooks, consumers) = (of("hooks"), of("consumers"));
    if hooks.is_empty() && consumers.is_empty() {
        note("no hook and no consumer is declared; docs/configuration.md says how");
        return Ok(0);
    }
    let mut text = String::new();
    if !hooks.is_empty() {
        let mut table =
            Table::new(&["HOOK", "EVENTS", "RUNS", "FAILED", "DROPPED", "LAST", "COMMAND", "LAST ERROR"]);
        for hook in &hooks {
            let last = hook["last"].as_u64().filter(|at| *at > 0);
            let mut cells = named(hook);
            cells.extend(
                ["runs", "failures", "dropped"].map(|key| Cell::number(hook[key].as_u64().unwrap_or(0))),
            );
            cells.extend([Cell::new(last.map(iso8601).unwrap_or_default()), command(hook), error(hook)]);
            table.row(cells);
        }
        text.push_str(&table.render(cx.width(), cx.color()));
    }
    if !consumers.is_empty() {
        if !text.is_empty() {
            text.push('\n');
        }
        let mut table = Table::new(&["CONSUMER", "EVENTS", "PID", "STARTS", "DONE", "COMMAND", "LAST ERROR"]);
        for consumer in &consumers {
            let mut cells = named(consumer);
            let pid = consumer["pid"].as_u64().map_or_else(|| "-".to_owned(), |pid| pid.to_string());
            cells.push(Cell::number(pid));
            cells.extend(
                ["starts", "acknowledged"].map(|key| Cell::number(consumer[key].as_u64().unwrap_or(0))),
            );
            cells.extend([command(consumer), error(consumer)]);
            table.row(cells);
        }
        text.push_str(&table.render(cx.width(), cx.color()));
    }
    cx.out.text(&text)?;
    Ok(0)
}

/// What is declared, without a daemon to say how it fares.
fn rows(declared: &[Declaration]) -> Vec<Value> {
    crate::daemon::declared_rows(declared)
}

fn named(row: &Value) -> Vec<Cell> {
    let list = |key: &str| {
        let words: Vec<&str> = row[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        words.join(", ")
    };
    let (events, servers) = (list("events"), list("servers"));
    let events = if events.is_empty() { "all".to_owned() } else { events };
    let events = if servers.is_empty() { events } else { format!("{events} of {servers}") };
    vec![Cell::new(row["name"].as_str().unwrap_or_default()).tone(Tone::Strong), Cell::new(events)]
}

fn command(row: &Value) -> Cell {
    Cell::new(row["command"].as_str().unwrap_or_default())
}

fn error(row: &Value) -> Cell {
    let what = row["problem"].as_str().or(row["lastError"].as_str());
    Cell::new(what.unwrap_or_default()).tone(Tone::Bad)
}
