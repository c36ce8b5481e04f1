//! `mcpx status`: the daemon and what it runs.

use super::super::command::{Command, Group, Rest, example};
use super::super::cx::Cx;
use super::super::out::note;
use super::super::table::{Cell, Table, Tone};
use crate::api::wire::InstanceRow;
use crate::error::Result;
use crate::util::now_ms;
use serde_json::{Value, json};
use std::fmt::Write;

/// The command.
pub static COMMAND: Command = Command {
    name: "status",
    group: Group::Daemon,
    words: "",
    count: (0, 0),
    rest: Rest::Mixed,
    summary: "Show the daemon of this configuration and the servers it runs",
    about: "Starts nothing: without a daemon it says so.",
    flags: &[],
    settings: &[],
    examples: &[
        example("mcpx status", "the daemon and its servers"),
        example("mcpx --json status", "for a program"),
    ],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    let (Some(client), _) = cx.running_anyhow()? else {
        let path = cx.world()?.config.sources.first().map(|s| s.path.clone());
        if cx.json() {
            cx.out.json(&json!({"ok": true, "running": false, "configPath": path, "instances": []}))?;
        } else {
            let of = path
                .map_or_else(|| "here, without a configuration".into(), |p| format!("for {}", p.display()));
            cx.out.line(&format!("no daemon is running {of}; the next command that needs one starts it"))?;
        }
        return Ok(0);
    };
    let status = client.json("GET", "/v1/status", None)?;
    let (theirs, ours) =
        (status["daemon"]["version"].as_str().unwrap_or_default(), env!("CARGO_PKG_VERSION"));
    if theirs != ours {
        note(&format!(
            "the daemon is version {theirs}, this mcpx is {ours}; mcpx restart --daemon replaces it by one of the same"
        ));
    }
    if cx.json() {
        let mut body = json!({"ok": true, "running": true});
        if let (Some(body), Some(status)) = (body.as_object_mut(), status.as_object()) {
            body.extend(status.clone());
        }
        cx.out.json(&body)?;
        return Ok(0);
    }
    let mut text = daemon(&status["daemon"]);
    let rows = status.get("instances").cloned().unwrap_or_default();
    let rows: Vec<InstanceRow> = serde_json::from_value(rows)
        .map_err(|e| super::super::internal(format!("reading the daemon's instances: {e}")))?;
    if rows.is_empty() {
        text.push_str("\nno server is running; the next call starts the one it needs\n");
    } else {
        text.push('\n');
        text.push_str(&instances(&rows).render(cx.width(), cx.color()));
    }
    cx.out.text(&text)?;
    Ok(0)
}

/// A few lines on the daemon.
fn daemon(d: &Value) -> String {
    let word = |key: &str| d[key].as_str().unwrap_or("").to_owned();
    let number = |key: &str| d[key].as_u64().unwrap_or(0);
    let mut text = String::new();
    let _ = writeln!(
        text,
        "daemon {} · pid {} · version {} · up {}",
        word("key"),
        number("pid"),
        word("version"),
        ago(number("uptimeMs"))
    );
    for (title, key) in
        [("config", "configPath"), ("socket", "socket"), ("endpoint", "endpoint"), ("log", "log")]
    {
        if !word(key).is_empty() {
            let _ = writeln!(text, "{title:<9} {}", word(key));
        }
    }
    let _ = writeln!(text, "{:<9} {} · {} runs", "sessions", number("sessions"), number("runs"));
    if let Some(problem) = d["problem"]["message"].as_str() {
        let _ = writeln!(text, "{:<9} the last good configuration is in use: {problem}", "problem");
    }
    let restart: Vec<&str> =
        d["restart"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if !restart.is_empty() {
        let what = restart.join(", ");
        let _ = writeln!(text, "{:<9} the new value of {what} needs mcpx restart --daemon", "restart");
    }
    for warning in d["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let _ = writeln!(text, "{:<9} {warning}", "warning");
    }
    text
}

/// A table of instances.
pub fn instances(rows: &[InstanceRow]) -> Table {
    let mut table =
        Table::new(&["SERVER", "KEY", "STATE", "PID", "UP", "CALLS", "ACTIVE", "QUEUE", "LAST ERROR"]);
    for r in rows {
        let bad = r.state == "failed";
        table.row(vec![
            Cell::new(&r.server).tone(Tone::Strong),
            Cell::new(&r.key),
            Cell::new(&r.state).tone(if bad { Tone::Bad } else { Tone::Plain }),
            Cell::number(r.pid.map_or_else(|| "-".to_owned(), |p| p.to_string())),
            Cell::number(ago(r.uptime_ms)),
            Cell::number(r.calls),
            Cell::number(r.in_flight),
            Cell::number(r.queue),
            Cell::new(r.last_error.as_deref().unwrap_or("")).tone(Tone::Bad),
        ]);
    }
    table
}

/// A length of time in the two units that matter.
pub fn ago(ms: u64) -> String {
    let s = ms / 1000;
    match s {
        0..60 => format!("{s}s"),
        60..3600 => format!("{}m{:02}s", s / 60, s % 60),
        3600..86_400 => format!("{}h{:02}m", s / 3600, s / 60 % 60),
        _ => format!("{}d{:02}h", s / 86_400, s / 3600 % 24),
    }
}

/// How long ago a time (milliseconds since 1970) was.
pub fn since(ms: u64) -> String {
    ago(now_ms().saturating_sub(ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_read_well() {
        assert_eq!(
            [900, 61_000, 3_660_000, 90_000_000].map(ago),
            ["0s".to_owned(), "1m01s".into(), "1h01m".into(), "1d01h".into()]
        );
    }
}
