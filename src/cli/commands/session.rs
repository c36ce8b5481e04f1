//! `mcpx session`: the sessions that last longer than one command.

use super::super::args::usage;
use super::super::command::{Command, Flag, Group, MANY, Rest, example};
use super::super::cx::Cx;
use super::super::progress::Progress;
use super::super::table::{Cell, Table, Tone};
use super::status;
use crate::api::wire::SessionRow;
use crate::api::{Client, uri};
use crate::error::{Error, Kind, Result};
use crate::settings::parse_duration;
use crate::util::{did_you_mean, now_ms};
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// The command.
pub static COMMAND: Command = Command {
    name: "session",
    group: Group::Daemon,
    words: "[list|show|new|stop|keep] [<session>…] [<time>]",
    count: (0, MANY),
    rest: Rest::Mixed,
    summary: "Show sessions, open one, keep it, end it",
    about: "A session has the servers of scope session to itself. The first command that names it with --session or \
            MCPX_SESSION_ID opens it, later ones join it, and it lasts until nobody used it for session.idleTimeout.\n\n\
            list shows all; show one, without a key that of MCPX_SESSION_ID; new opens one and prints its key; stop ends \
            it and waits until its servers are gone; keep has it stay for so long from now although nobody uses it, its \
            servers and the daemon too. Sessions live in the daemon, and end with it.",
    flags: &[
        Flag::value("name", "NAME", "new: its key, instead of one that is made"),
        Flag::value("keep", "TIME", "new: keep it for so long, used or not"),
    ],
    settings: &["session.idleTimeout", "session.keepMost", "pool.idleTimeout"],
    examples: &[
        example("mcpx session list", "who has what, and for how long"),
        example("mcpx session new", "its key goes into MCPX_SESSION_ID, or behind --session"),
        example("mcpx session new --name review --keep 2h", "one that --session review joins"),
        example("mcpx session keep review 30m", "half an hour from now"),
        example("mcpx session stop review", "stop what it runs"),
    ],
    run,
};

const ACTIONS: &[&str] = &["list", "show", "new", "stop", "keep"];

/// What others call an action.
const OTHER_WORDS: &[(&str, &str)] = &[
    ("close", "stop"),
    ("create", "new"),
    ("delete", "stop"),
    ("end", "stop"),
    ("get", "show"),
    ("kill", "stop"),
    ("ls", "list"),
    ("open", "new"),
    ("remove", "stop"),
    ("rm", "stop"),
    ("start", "new"),
];

fn run(cx: &mut Cx) -> Result<u8> {
    let words: Vec<String> = cx.inv.words()?.into_iter().map(str::to_owned).collect();
    let (action, rest) = words.split_first().map_or(("list", &[][..]), |(a, r)| (a.as_str(), r));
    if action != "new"
        && ACTIONS.contains(&action)
        && let Some((odd, _)) = cx.inv.flags.first()
    {
        return Err(usage(format!("mcpx session {action} does not take --{}", odd.name)));
    }
    match (action, rest) {
        ("list", []) => list(cx),
        ("show", []) => match cx.env.text("MCPX_SESSION_ID").filter(|own| !own.is_empty()).map(str::to_owned)
        {
            Some(own) => show(cx, &own),
            None => Err(usage("mcpx session show needs a key: MCPX_SESSION_ID is not set")),
        },
        ("show", [key]) => show(cx, key),
        ("new", []) => new(cx),
        ("stop", keys) if !keys.is_empty() => stop(cx, keys),
        ("keep", [key, ttl]) => keep(cx, key, ttl),
        (known, _) if ACTIONS.contains(&known) => {
            let what = match known {
                "list" => "takes no further words",
                "show" => "takes one key",
                "new" => "takes no further words; --name gives the session a name",
                "stop" => "needs a key",
                _ => "needs a key and a time such as 30m",
            };
            Err(usage(format!("mcpx session {known} {what}")).hint("mcpx session --help shows examples"))
        }
        (odd, _) => {
            let meant = OTHER_WORDS.iter().find(|(word, _)| *word == odd);
            let near = meant.map(|(_, action)| format!("did you mean \"{action}\"?"));
            let near = near.or_else(|| did_you_mean(odd, ACTIONS.iter().copied()));
            Err(usage(format!("mcpx session cannot \"{odd}\""))
                .hint(near.unwrap_or_else(|| format!("it can {}", ACTIONS.join(", ")))))
        }
    }
}

fn list(cx: &mut Cx) -> Result<u8> {
    let (client, _) = cx.running_anyhow()?;
    let rows: Vec<SessionRow> = match &client {
        Some(client) => read(client.json("GET", "/v1/sessions", None)?["sessions"].take())?,
        None => Vec::new(),
    };
    if cx.json() {
        cx.out.json(&json!({"ok": true, "sessions": rows}))?;
        return Ok(0);
    }
    if rows.is_empty() {
        let why = if client.is_none() {
            "no daemon is running, so there is no session"
        } else {
            "there is no session"
        };
        cx.out.line(&format!("{why}; --session NAME opens one, and so does mcpx session new"))?;
        return Ok(0);
    }
    let mut table = Table::new(&["SESSION", "SERVERS", "RUNS", "IDLE", "KEPT FOR", "FOR ONE RUN"]);
    for row in &rows {
        let servers: Vec<&str> = row.instances.iter().map(|i| i.server.as_str()).collect();
        table.row(vec![
            Cell::new(&row.key).tone(Tone::Strong),
            Cell::new(if servers.is_empty() { "-".to_owned() } else { servers.join(", ") }),
            Cell::number(row.runs),
            Cell::number(status::ago(row.idle_ms)),
            Cell::number(row.kept_until.map_or_else(|| "-".to_owned(), left)),
            Cell::new(if row.ephemeral { "yes" } else { "" }),
        ]);
    }
    let text = table.render(cx.width(), cx.color());
    cx.out.text(&text)?;
    Ok(0)
}

fn show(cx: &mut Cx, key: &str) -> Result<u8> {
    let answer = running(cx, key)?.json("GET", &path(key, ""), None)?;
    answered(cx, answer)
}

/// Shows one session, as its row came.
fn answered(cx: &mut Cx, answer: Value) -> Result<u8> {
    if cx.json() {
        cx.out.json(&with_ok(answer))?;
        return Ok(0);
    }
    let row: SessionRow = read(answer)?;
    let mut text = String::new();
    let _ = writeln!(text, "session   {}", row.key);
    if let Some(at) = row.created_at {
        let _ = writeln!(text, "open      {}", status::since(at));
    }
    let _ = writeln!(text, "idle      {} · {} runs", status::ago(row.idle_ms), row.runs);
    if let Some(until) = row.kept_until {
        let _ = writeln!(text, "kept      for {}", left(until));
    }
    if row.instances.is_empty() {
        text.push_str("\nit owns no server; the next call of it to one of scope session starts it\n");
    } else {
        text.push('\n');
        text.push_str(&status::instances(&row.instances).render(cx.width(), cx.color()));
    }
    cx.out.text(&text)?;
    Ok(0)
}

fn new(cx: &mut Cx) -> Result<u8> {
    cx.needs_lasting("without a daemon that stays a session ends with this command")?;
    let mut body = Map::new();
    if let Some(name) = cx.inv.text("name")? {
        body.insert("name".into(), name.into());
    }
    if let Some(ttl) = cx.inv.text("keep")? {
        body.insert("ttlMs".into(), millis(ttl, "--keep")?.into());
    }
    let progress = Progress::start("opening a session");
    let answer = cx.daemon(&progress)?.json("POST", "/v1/sessions", Some(&body.into()))?;
    drop(progress);
    if cx.json() {
        cx.out.json(&with_ok(answer))?;
    } else {
        // The key alone, for $(…).
        cx.out.line(&read::<SessionRow>(answer)?.key)?;
    }
    Ok(0)
}

fn stop(cx: &mut Cx, keys: &[String]) -> Result<u8> {
    let client = running(cx, &keys[0])?;
    let progress = Progress::start("waiting for the session's servers to stop");
    let mut stopped = Vec::new();
    for key in keys {
        stopped.push(client.json("DELETE", &path(key, ""), None)?);
    }
    drop(progress);
    if cx.json() {
        cx.out.json(&json!({"ok": true, "sessions": stopped}))?;
        return Ok(0);
    }
    for (key, answer) in keys.iter().zip(stopped) {
        let servers = match answer["stopped"].as_u64().unwrap_or(0) {
            0 => "it ran no server".to_owned(),
            1 => "1 server was stopped".to_owned(),
            n => format!("{n} servers were stopped"),
        };
        cx.out.line(&format!("ended the session {key}; {servers}"))?;
    }
    Ok(0)
}

fn keep(cx: &mut Cx, key: &str, ttl: &str) -> Result<u8> {
    let body = json!({"ttlMs": millis(ttl, "the time")?});
    let answer = running(cx, key)?.json("POST", &path(key, "/keep"), Some(&body))?;
    answered(cx, answer)
}

/// The daemon, which must be there: without one there is no session.
pub(super) fn running(cx: &Cx, key: &str) -> Result<Client> {
    cx.running_anyhow()?.0.ok_or_else(|| {
        Error::new(Kind::NotFound, format!("there is no session \"{key}\": no daemon is running"))
            .hint("mcpx session new opens one, and so does a call with --session")
    })
}

fn path(key: &str, more: &str) -> String {
    format!("/v1/sessions/{}{more}", uri::encode(key, false))
}

fn millis(text: &str, what: &str) -> Result<u64> {
    let time = parse_duration(text).map_err(|e| usage(format!("{what} {e}")))?;
    Ok(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// How much time is left until then.
fn left(at: u64) -> String {
    status::ago(at.saturating_sub(now_ms()))
}

fn with_ok(mut answer: Value) -> Value {
    answer["ok"] = true.into();
    answer
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> Result<T> {
    serde_json::from_value(value)
        .map_err(|e| super::super::internal(format!("reading the daemon's sessions: {e}")))
}
