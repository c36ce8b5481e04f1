//! `mcpx events`: what happened in the daemon, and what happens.

use super::super::args::usage;
use super::super::command::{Command, Flag, Group, Rest, example};
use super::super::cx::Cx;
use super::super::interrupt::Interrupt;
use super::super::logs::{Asked, Logs};
use super::super::out::{Out, note};
use crate::api::{Client, uri};
use crate::error::{Error, Kind, Result};
use crate::observe::log::{Query, event_of, parse_when};
use crate::observe::{Filter, kinds};
use crate::util::{did_you_mean, iso8601, now_ms};
use serde_json::Value;
use std::collections::HashSet;
use std::io;

/// A number of so many digits is a time in milliseconds, as everywhere; no bus has counted that far.
const TIME_DIGITS: usize = 12;

/// What is said where nothing is shown.
const NOTHING: &str = "no event that is remembered is like that";

/// The command.
pub static COMMAND: Command = Command {
    name: "events",
    group: Group::Daemon,
    words: "",
    count: (0, 0),
    rest: Rest::Mixed,
    summary: "Show what happened in the daemon: calls, servers, runs, and more",
    about: "What the daemon remembers (events.history), oldest first; with --follow what comes, until Ctrl-C. With \
            --json one event a line. --since takes the number of an event, or a time: then what earlier daemons of this \
            configuration had, or this one has forgotten, comes from the log. Starts nothing.",
    flags: &[
        Flag::switch("follow", "Go on with what happens from now on"),
        Flag::value("kind", "KIND", "Only this kind (call.finished) or family (call); may be repeated"),
        Flag::value("server", "NAME", "Only what is about this server; may be repeated"),
        Flag::value("session", "KEY", "Only what belongs to this session; may be repeated"),
        Flag::value(
            "since",
            "N|TIME",
            "Only what came after event N, or after a time (10m, 2026-11-30), from the log where the daemon forgot it",
        ),
    ],
    settings: &[],
    examples: &[
        example("mcpx events", "everything that is remembered"),
        example("mcpx events --kind call --server demo", "the calls of one server"),
        example(
            "mcpx events --since 2h --kind call",
            "two hours of calls, also those of daemons that have ended",
        ),
        example("mcpx --json events --follow --since 0", "all of it and what follows, for a program"),
    ],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    let mut query = String::new();
    for name in ["kind", "server", "session"] {
        for value in cx.inv.values(name) {
            let value = super::super::args::utf8(value, "an argument")?;
            query.push_str(&format!("&{name}={}", uri::encode(value, false)));
        }
    }
    // Numbers as large as times are times.
    let number = |text: &str| text.parse::<u64>().ok().filter(|_| text.len() < TIME_DIGITS);
    if let Some(since) = cx.inv.text("since")?.map(str::to_owned) {
        match number(&since) {
            Some(number) => query.push_str(&format!("&since={number}")),
            None => return after(cx, &since, &query),
        }
    }
    let (Some(client), _) = cx.running_anyhow()? else {
        return Err(Error::new(Kind::Unavailable, "no daemon is running here, so nothing happens")
            .hint("any command that needs one starts it: `mcpx refresh`, for instance"));
    };
    if cx.inv.has("follow") {
        return follow(cx, &client, &query);
    }
    {
        let path = format!("/v1/events?{}", query.trim_start_matches('&'));
        let answer = client.json("GET", &path, None)?;
        let json = cx.json();
        let events = answer["events"].as_array().map(Vec::as_slice).unwrap_or_default();
        for event in events {
            show(&mut cx.out, event, json)?;
        }
        if events.is_empty() && !json {
            note(NOTHING);
        }
        if let Some(missed) = answer["missed"].as_u64().filter(|n| *n > 0) {
            note(&format!("{missed} earlier events are forgotten; --since with a time looks in the log"));
        }
    }
    Ok(0)
}

/// What came after a time: from the log, then from the daemon, if one is running.
fn after(cx: &mut Cx, since: &str, query: &str) -> Result<u8> {
    let since = parse_when(since, now_ms()).map_err(|why| usage(format!("--since: {why}")))?;
    let client = cx.running_anyhow()?.0;
    let path = format!("/v1/events?since=0{query}");
    let answer = client.as_ref().map(|client| client.json("GET", &path, None)).transpose()?;
    let list = |flag: &str| -> Result<Vec<String>> {
        cx.inv.values(flag).map(|v| super::super::args::utf8(v, "an argument").map(str::to_owned)).collect()
    };
    let filter = Filter { kinds: list("kind")?, servers: list("server")?, sessions: list("session")? };
    if let Some(word) = filter.unknown_kind() {
        let error = usage(format!("there is no kind of event \"{word}\""));
        let near = did_you_mean(word, kinds::ALL.iter().map(|kind| kind.word));
        return Err(near.map_or(error.clone(), |near| error.hint(near)));
    }
    let logs = Logs::open(cx)?;
    // The daemons of this configuration: they say which one they serve when they start, and when that changes.
    let key = match &logs {
        Logs::Files(..) => cx.world().map(|world| world.config.key.clone()).ok(),
        Logs::Daemon(client, _) => client.json("GET", "/v1/health", None)?["key"].as_str().map(str::to_owned),
    };
    let ours = daemons_of(&logs, key.as_deref())?;
    let own = answer.as_ref().and_then(|a| a["daemon"].as_str()).unwrap_or_default().to_owned();
    let remembered = answer.as_ref().and_then(|a| a["missed"].as_u64()).unwrap_or(0);
    let json = cx.json();
    let mut none = true;
    let out = &mut cx.out;
    let mut words = events_asked(filter.kinds.clone());
    words.query.since = since;
    words.said.push(("since", since.to_string()));
    logs.lines(&words, 0, &mut |line| {
        let Some((daemon, event)) = event_of(line) else { return Ok(true) };
        let wanted = if daemon == own { event.seq <= remembered } else { ours.contains(&daemon) };
        if wanted && filter.takes(&event) {
            let mut row = serde_json::to_value(&event).unwrap_or_default();
            row["daemon"] = daemon.into();
            none = false;
            show(out, &row, json)?;
        }
        Ok(!out.is_closed())
    })?;
    let rest = answer.as_ref().and_then(|a| a["events"].as_array()).map(Vec::as_slice).unwrap_or_default();
    for event in rest {
        if event["at"].as_u64().is_some_and(|at| at >= since) {
            none = false;
            show(&mut cx.out, event, json)?;
        }
    }
    let Some((client, answer)) = client.zip(answer.as_ref()) else {
        if none && !json {
            note(NOTHING);
        }
        return Ok(0);
    };
    if none && !json && !cx.inv.has("follow") {
        note(NOTHING);
    }
    match cx.inv.has("follow") {
        true => follow(cx, &client, &format!("{query}&since={}", answer["last"])),
        false => Ok(0),
    }
}

/// The ids of the daemons that served a configuration.
fn daemons_of(logs: &Logs, key: Option<&str>) -> Result<HashSet<String>> {
    let mut found = HashSet::new();
    let asked =
        events_asked([kinds::DAEMON_STARTED.word, kinds::CONFIG_CHANGED.word].map(str::to_owned).into());
    logs.lines(&asked, 0, &mut |line| {
        if let Some((daemon, event)) = event_of(line)
            && key.is_some_and(|key| event.data["key"] == key)
        {
            found.insert(daemon);
        }
        Ok(true)
    })?;
    Ok(found)
}

/// Asks the log for these kinds of events.
fn events_asked(kinds: Vec<String>) -> Asked {
    let said = kinds.iter().map(|kind| ("event", kind.clone())).collect();
    Asked { query: Query { events: kinds, ..Query::default() }, said }
}

/// What happens from now on, until Ctrl-C.
fn follow(cx: &mut Cx, client: &Client, query: &str) -> Result<u8> {
    let handle = client.shutdown_handle()?;
    let interrupt = Interrupt::listen(move || handle.interrupt())?;
    let json = cx.json();
    let out = &mut cx.out;
    let mut pending = String::new();
    let mut failed = None;
    let outcome = client.stream("GET", &format!("/v1/events?follow=1{query}"), None, &mut |chunk| {
        pending.push_str(&String::from_utf8_lossy(chunk));
        while let Some(end) = pending.find("\n\n") {
            let block: String = pending.drain(..end + 2).collect();
            if let Err(error) = block_of(out, &block, json) {
                failed = Some(error);
                return Err(io::ErrorKind::BrokenPipe.into());
            }
        }
        // A reader that has left is noticed at the next sign of life, were nothing to happen.
        match out.is_read() {
            Ok(true) => Ok(()),
            Ok(false) => Err(io::ErrorKind::BrokenPipe.into()),
            Err(error) => {
                failed = Some(error);
                Err(io::ErrorKind::BrokenPipe.into())
            }
        }
    });
    match (failed, outcome) {
        (Some(error), _) => Err(error),
        (None, Err(_)) if out.is_closed() => Ok(0),
        (None, Err(error)) if error.kind() == Kind::Cancelled => Ok(interrupt.exit_code().unwrap_or(130)),
        (None, outcome) => outcome.map(|_| {
            note("the daemon has stopped");
            0
        }),
    }
}

/// One block of the stream: an event, a comment, or word of forgotten events.
fn block_of(out: &mut Out, block: &str, json: bool) -> Result<()> {
    let Some(data) = block.lines().find_map(|line| line.strip_prefix("data: ")) else { return Ok(()) };
    let Ok(event) = serde_json::from_str::<Value>(data) else { return Ok(()) };
    match event["missed"].as_u64() {
        Some(missed) => note(&format!("{missed} events were forgotten before they could be read")),
        None => show(out, &event, json)?,
    }
    Ok(())
}

fn show(out: &mut Out, event: &Value, json: bool) -> Result<()> {
    if json {
        out.line(&event.to_string())?;
    } else {
        let word = |key: &str| event[key].as_str().unwrap_or_default();
        let mut line = format!("{} {:16}", iso8601(event["at"].as_u64().unwrap_or(0)), word("kind"));
        for part in [word("server"), word("session"), word("uri")].into_iter().filter(|p| !p.is_empty()) {
            line.push(' ');
            line.push_str(part);
        }
        for (key, value) in event["data"].as_object().into_iter().flatten() {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            line.push_str(&format!(" {key}={}", crate::log::one_line(&value)));
        }
        out.line(&line)?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use crate::observe::kinds;

    #[test]
    fn the_widest_kind_fits_its_column() {
        assert!(kinds::ALL.iter().all(|kind| kind.word.len() <= 16));
    }
}
