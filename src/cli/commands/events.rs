//! `mcpx events`: what happened in the daemon, and what happens.

use super::super::args::usage;
use super::super::command::{Command, Flag, Group, Rest, example};
use super::super::cx::Cx;
use super::super::interrupt::Interrupt;
use super::super::out::{Out, note};
use crate::api::uri;
use crate::error::{Error, Kind, Result};
use crate::util::iso8601;
use serde_json::Value;
use std::io;

/// The command.
pub static COMMAND: Command = Command {
    name: "events",
    group: Group::Daemon,
    words: "",
    count: (0, 0),
    rest: Rest::Mixed,
    summary: "Show what happened in the daemon: calls, servers, runs, and more",
    about: "What the daemon remembers (events.history), oldest first; with --follow what comes, until Ctrl-C. With \
            --json one event a line. Starts nothing.",
    flags: &[
        Flag::switch("follow", "Go on with what happens from now on"),
        Flag::value("kind", "KIND", "Only this kind (call.finished) or family (call); may be repeated"),
        Flag::value("server", "NAME", "Only what is about this server; may be repeated"),
        Flag::value("session", "KEY", "Only what belongs to this session; may be repeated"),
        Flag::value(
            "since",
            "N",
            "Only what came after event N; with --follow, first what is remembered after it",
        ),
    ],
    settings: &[],
    examples: &[
        example("mcpx events", "everything that is remembered"),
        example("mcpx events --kind call --server demo", "the calls of one server"),
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
    if let Some(since) = cx.inv.text("since")? {
        let number: u64 = since
            .parse()
            .map_err(|_| usage(format!("--since takes the number of an event, not \"{since}\"")))?;
        query.push_str(&format!("&since={number}"));
    }
    let (Some(client), _) = cx.running_anyhow()? else {
        return Err(Error::new(Kind::Unavailable, "no daemon is running here, so nothing happens")
            .hint("any command that needs one starts it: `mcpx refresh`, for instance"));
    };
    if !cx.inv.has("follow") {
        let path = format!("/v1/events?{}", query.trim_start_matches('&'));
        let answer = client.json("GET", &path, None)?;
        let json = cx.json();
        for event in answer["events"].as_array().into_iter().flatten() {
            show(&mut cx.out, event, json)?;
        }
        if let Some(missed) = answer["missed"].as_u64().filter(|n| *n > 0) {
            note(&format!("{missed} earlier events are forgotten"));
        }
        return Ok(0);
    }
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
        Ok(())
    });
    match (failed, outcome) {
        (Some(error), _) => Err(error),
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
