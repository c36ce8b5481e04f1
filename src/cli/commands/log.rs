//! `mcpx log`: the log, from its files, for which no daemon is needed, or from the daemon that is named.

use super::super::args::{usage, utf8};
use super::super::command::{Command, Flag, Group, Rest, example};
use super::super::cx::Cx;
use super::super::logs::{Asked, Logs};
use super::super::out::{Out, note};
use super::super::table::{Tone, one_line, paint};
use crate::error::{Error, Kind, Result};
use crate::log::Level;
use crate::observe::log::{MOST, Query, parse_when};
use crate::util::{did_you_mean, iso8601, now_ms};
use serde_json::{Value, json};

/// How many records are shown where nobody says.
const LIMIT: usize = 100;

/// How grave a record may be.
pub(in crate::cli) const LEVELS: &[&str] = &["trace", "debug", "info", "warn", "error"];

/// Who may have said a record.
pub(in crate::cli) const SOURCES: &[&str] = &["daemon", "server", "script", "plugin", "hook"];

// The flags that narrow the records down; `stats` has them as well.
pub(super) const SINCE: Flag =
    Flag::value("since", "TIME", "Not older: 10m or 2h ago, 2026-11-30, 2026-11-30T16:39 (UTC)");
pub(super) const UNTIL: Flag = Flag::value("until", "TIME", "Not newer");
pub(super) const SERVER: Flag = Flag::value("server", "NAME", "Only of this server; may be repeated");
pub(super) const TOOL: Flag =
    Flag::value("tool", "TOOL", "Only of this tool, as tool or server.tool; may be repeated");
pub(super) const SESSION: Flag = Flag::value("session", "KEY", "Only of this session; may be repeated");
pub(super) const RUN: Flag = Flag::value("run", "ID", "Only of this run; may be repeated");

/// The command.
pub static COMMAND: Command = Command {
    name: "log",
    group: Group::Daemon,
    words: "",
    count: (0, 0),
    rest: Rest::Mixed,
    summary: "Show the log: calls, servers' words, scripts' records, errors",
    about: "The newest records, oldest first, from the files below the state directory: of every daemon of yours, \
            running or not; where daemon.endpoint names a daemon, that one is asked for its log. Arguments and results of calls are in it only where logging.arguments says so. With \
            --json one record a line.",
    flags: &[
        SINCE,
        UNTIL,
        Flag::value("level", "LEVEL", "At least this level: debug, info, warn, error"),
        Flag::value("event", "EVENT", "Only this event (call.finished) or family (call); may be repeated"),
        Flag::value(
            "source",
            "WHO",
            "Only what daemon, server, script, plugin or hook says; may be repeated",
        ),
        SERVER,
        TOOL,
        SESSION,
        RUN,
        Flag::value("grep", "TEXT", "Only what contains this text"),
        Flag::value("limit", "N", "The newest N records; 0 for all (100)"),
        Flag::switch("follow", "Go on with what comes, until Ctrl-C").short('f'),
        Flag::value(
            "chain",
            "ID",
            "What a call, run, session or editor's id belongs to, as a tree from the daemon down",
        ),
    ],
    settings: &["logging.level", "logging.arguments"],
    examples: &[
        example("mcpx log --since 10m --level warn", "what went wrong lately"),
        example("mcpx log --event call --server demo -f", "the calls of one server as they come"),
        example("mcpx --json log --grep timeout --limit 0", "all of it, for a program"),
        example("mcpx log --event hook.failed", "each failure of a hook, and why"),
        example("mcpx log --chain d692c5a1b-1f3.7", "one call, and all that it belongs to"),
    ],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    let asked = asked(cx)?;
    let limit = number(cx, LIMIT)?;
    let json = cx.json();
    let color = cx.color();
    let logs = Logs::open(cx)?;
    if let Some(id) = cx.inv.text("chain")? {
        let tree = logs.chain(id)?;
        let roots = tree.as_array().map(Vec::as_slice).unwrap_or_default();
        if roots.is_empty() {
            return Err(Error::new(Kind::NotFound, format!("no record of the log has the id \"{id}\""))
                .hint("`mcpx --json log` shows the ids of each record: daemon, session, run, call"));
        }
        if json {
            cx.out.json(&json!({"ok": true, "tree": tree}))?;
        } else {
            roots.iter().try_for_each(|node| show_node(&mut cx.out, node, 0, color))?;
        }
        return Ok(0);
    }
    let out = &mut cx.out;
    if cx.inv.has("follow") {
        if cx.inv.has("until") {
            return Err(usage("--follow shows what comes, and --until ends before it; give one of them"));
        }
        return logs.follow(&asked, limit, &mut |line| match line {
            Some(line) => show(out, line, json, color).map(|()| !out.is_closed()),
            None => out.is_read(),
        });
    }
    let mut none = true;
    logs.lines(&asked, limit, &mut |line| {
        none = false;
        show(out, line, json, color)?;
        Ok(!out.is_closed())
    })?;
    if none && !json {
        note(&logs.nothing()?);
    }
    Ok(0)
}

/// The number that `--limit` says.
pub(super) fn number(cx: &Cx, otherwise: usize) -> Result<usize> {
    let Some(text) = cx.inv.text("limit")? else { return Ok(otherwise) };
    match text.parse() {
        Ok(n) if n <= MOST => Ok(n),
        Ok(_) => Err(usage(format!("--limit is at most {MOST}; 0 is no limit"))),
        Err(_) => Err(usage(format!("--limit takes a number, not \"{text}\""))),
    }
}

/// What the flags ask for, in both its forms.
pub(super) fn asked(cx: &Cx) -> Result<Asked> {
    let query = query(cx)?;
    let mut said = Vec::new();
    for flag in ["since", "until", "level", "event", "source", "server", "tool", "session", "run", "grep"] {
        for value in cx.inv.values(flag) {
            said.push((flag, utf8(value, "an argument")?.to_owned()));
        }
    }
    Ok(Asked { query, said })
}

/// What the flags ask for.
fn query(cx: &Cx) -> Result<Query> {
    let now = now_ms();
    let time = |flag: &str, otherwise: u64| match cx.inv.text(flag)? {
        Some(text) => parse_when(text, now).map_err(|why| usage(format!("--{flag}: {why}"))),
        None => Ok(otherwise),
    };
    let list = |flag: &str| -> Result<Vec<String>> {
        cx.inv.values(flag).map(|v| utf8(v, "an argument").map(str::to_owned)).collect()
    };
    let level = match cx.inv.text("level")? {
        None => Level::Trace,
        Some(word) => Level::from_word(word).ok_or_else(|| {
            let error = usage(format!("--level takes debug, info, warn or error, not \"{word}\""));
            match did_you_mean(word, LEVELS.iter().copied()) {
                Some(near) => error.hint(near),
                None => error,
            }
        })?,
    };
    let query = Query {
        since: time("since", 0)?,
        until: time("until", u64::MAX)?,
        level,
        events: list("event")?,
        sources: list("source")?,
        servers: list("server")?,
        tools: list("tool")?,
        sessions: list("session")?,
        runs: list("run")?,
        grep: cx.inv.text("grep")?.unwrap_or_default().to_owned(),
        id: String::new(),
    };
    if query.since > query.until {
        let what = format!("--since {} is later than --until {}", iso8601(query.since), iso8601(query.until));
        return Err(usage(what).hint("no record can be both; 10m means 10 minutes ago"));
    }
    if let Some(odd) = query.sources.iter().find(|word| !SOURCES.contains(&word.as_str())) {
        let error = usage(format!("--source takes {}, not \"{odd}\"", SOURCES.join(", ")));
        return Err(match did_you_mean(odd, SOURCES.iter().copied()) {
            Some(near) => error.hint(near),
            None => error,
        });
    }
    match query.unknown_event() {
        None => Ok(query),
        Some(word) => {
            let error = usage(format!("--event: there is no event \"{word}\""));
            Err(match did_you_mean(word, Query::known_events()) {
                Some(near) => error.hint(near),
                None => {
                    let mut families: Vec<&str> =
                        Query::known_events().filter_map(|word| word.split('.').next()).collect();
                    families.sort_unstable();
                    families.dedup();
                    error.hint(format!("families of events: {}", families.join(", ")))
                }
            })
        }
    }
}

fn show(out: &mut Out, line: &str, json: bool, color: bool) -> Result<()> {
    if json {
        return out.line(line);
    }
    match serde_json::from_str::<Value>(line) {
        Ok(record) => out.line(&text_of(&record, color)),
        // Nothing that a query finds is no JSON; were it so, it is shown as it is.
        Err(_) => out.line(line),
    }
}

/// A record as a line for a person.
fn text_of(record: &Value, color: bool) -> String {
    let word = |key: &str| record[key].as_str().unwrap_or_default();
    let level = word("level");
    let tone = match level {
        "error" => Tone::Bad,
        "warn" => Tone::Strong,
        _ => Tone::Plain,
    };
    let mut line = format!(
        "{} {}",
        paint(&iso8601(record["at"].as_u64().unwrap_or(0)), Tone::Dim, color),
        paint(&format!("{level:5}"), tone, color)
    );
    let mut push = |text: &str| {
        if !text.is_empty() {
            line.push(' ');
            line.push_str(text);
        }
    };
    match word("event") {
        "" => push(word("source")),
        event => push(event),
    }
    let place =
        [word("server"), word("tool")].into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>().join(".");
    push(&place);
    if let Some(ms) = record["ms"].as_f64() {
        push(&format!("{ms} ms"));
    }
    push(word("outcome"));
    push(&one_line(word("message")));
    for key in ["instance", "session", "run", "call"] {
        if !word(key).is_empty() {
            push(&format!("{key}={}", word(key)));
        }
    }
    for pair in record["trace"].as_array().into_iter().flatten() {
        if let (Some(name), Some(value)) = (pair[0].as_str(), pair[1].as_str()) {
            push(&format!("{}={}", one_line(name), one_line(value)));
        }
    }
    for (key, value) in record["data"].as_object().into_iter().flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        push(&format!("{key}={}", one_line(&value)));
    }
    line
}

/// A node of a chain, and what is below it.
fn show_node(out: &mut Out, node: &Value, depth: usize, color: bool) -> Result<()> {
    let indent = "  ".repeat(depth);
    let word = |key: &str| node[key].as_str().unwrap_or_default();
    let list = |key: &str| node[key].as_array().map(Vec::as_slice).unwrap_or_default();
    out.line(&format!("{indent}{} {}", word("kind"), paint(word("id"), Tone::Strong, color)))?;
    for record in list("records") {
        out.line(&format!("{indent}  {}", text_of(record, color)))?;
    }
    list("children").iter().try_for_each(|child| show_node(out, child, depth + 1, color))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_one_line() {
        let record = json!({
            "at": 0, "level": "warn", "source": "daemon", "event": "call.finished", "server": "demo", "tool": "echo",
            "ms": 1.5, "outcome": "timeout", "message": "a\nb", "session": "s", "trace": [["session_id", "x"]],
            "data": {"n": 1},
        });
        assert_eq!(
            text_of(&record, false),
            "1970-01-01T00:00:00.000Z warn  call.finished demo.echo 1.5 ms timeout a b session=s session_id=x n=1"
        );
        let plain = json!({"at": 0, "level": "info", "source": "daemon", "message": "ready"});
        assert_eq!(text_of(&plain, false), "1970-01-01T00:00:00.000Z info  daemon ready");
    }
}
