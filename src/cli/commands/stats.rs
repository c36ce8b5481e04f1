//! `mcpx stats`: what the log comes to; no daemon is needed, unless one is named.

use super::super::args::usage;
use super::super::command::{Command, Flag, Group, Rest, example};
use super::super::cx::Cx;
use super::super::logs::Logs;
use super::super::out::note;
use super::super::progress::Progress;
use super::super::table::{Cell, Table, Tone};
use super::log::{RUN, SERVER, SESSION, SINCE, TOOL, UNTIL, asked, number};
use crate::error::Result;
use crate::observe::log::stats::{About, Show};
use crate::util::{did_you_mean, iso8601};
use serde_json::{Value, json};

/// How many rows are shown where nobody says.
const LIMIT: usize = 20;

/// The command.
pub static COMMAND: Command = Command {
    name: "stats",
    group: Group::Daemon,
    words: "[calls | servers | instances | errors | sessions | slowest | volume]",
    count: (0, 1),
    rest: Rest::Mixed,
    summary: "Count what the log holds: calls, percentiles, errors, volume",
    about: "Of calls by tool, where nothing else is named. Percentiles are exact, times are milliseconds. errors puts \
            messages together that differ in numbers, ids and paths alone.",
    flags: &[
        SINCE,
        UNTIL,
        SERVER,
        TOOL,
        SESSION,
        RUN,
        Flag::value("limit", "N", "At most N rows; 0 for all (20)"),
    ],
    settings: &[],
    examples: &[
        example("mcpx stats --since 1h", "the calls of the last hour by tool"),
        example("mcpx stats errors", "what goes wrong, the most frequent first"),
        example("mcpx --json stats slowest --server demo", "for a program"),
    ],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    let word = match cx.inv.words.first() {
        Some(word) => word.to_str().unwrap_or_default(),
        None => "calls",
    };
    let about = About::from_word(word).ok_or_else(|| {
        let words = About::ALL.map(|(_, word)| word);
        let error = usage(format!("there are no statistics of \"{word}\", but of {}", words.join(", ")));
        match did_you_mean(word, words) {
            Some(near) => error.hint(near),
            None => error,
        }
    })?;
    let asked = asked(cx)?;
    let limit = number(cx, LIMIT)?;
    let logs = Logs::open(cx)?;
    let progress = Progress::start("counting");
    let mut counted = logs.statistics(about, &asked, limit)?;
    drop(progress);
    if cx.json() {
        let mut body = json!({"ok": true});
        if let (Some(body), Some(counted)) = (body.as_object_mut(), counted.as_object_mut()) {
            body.append(counted);
        }
        cx.out.json(&body)?;
        return Ok(0);
    }
    let rows = counted["rows"].as_array().map(Vec::as_slice).unwrap_or_default();
    if rows.is_empty() {
        note("the log has nothing of that");
        return Ok(0);
    }
    let text = table(about, rows).render(cx.width(), cx.color());
    cx.out.text(&text)?;
    if let Some(more) = counted["more"].as_u64().filter(|n| *n > 0) {
        let rows = if more == 1 { "row" } else { "rows" };
        note(&format!("{more} more {rows}; --limit 0 shows all"));
    }
    Ok(0)
}

fn table(about: About, rows: &[Value]) -> Table {
    let columns = about.columns();
    let titles: Vec<&'static str> = columns.iter().map(|(_, title, _)| *title).collect();
    let mut table = Table::new(&titles);
    for row in rows {
        table.row(columns.iter().map(|(key, _, show)| cell(key, &row[*key], *show)).collect());
    }
    table
}

fn cell(key: &str, value: &Value, show: Show) -> Cell {
    let number = value.as_u64().unwrap_or(0);
    match show {
        Show::Text => Cell::new(value.as_str().unwrap_or_default()),
        Show::When => Cell::new(iso8601(number)),
        Show::Bytes => Cell::number(bytes(number)),
        Show::Ms => Cell::number(value.as_f64().map_or_else(|| "-".to_owned(), ms)),
        Show::Count if key == "errors" && number > 0 => Cell::number(number).tone(Tone::Bad),
        Show::Count => Cell::number(number),
    }
}

/// Milliseconds with as many digits as matter.
fn ms(ms: f64) -> String {
    match ms {
        ms if ms < 10.0 => format!("{ms:.2}"),
        ms if ms < 100.0 => format!("{ms:.1}"),
        ms => format!("{ms:.0}"),
    }
}

/// Bytes in the unit that leaves few digits.
fn bytes(n: u64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB"];
    let (mut size, mut unit) = (n as f64, 0);
    while size >= 1000.0 && unit + 1 < units.len() {
        (size, unit) = (size / 1000.0, unit + 1);
    }
    if unit == 0 { format!("{n} B") } else { format!("{size:.1} {}", units[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_digits_that_matter() {
        assert_eq!([0.1234, 9.5, 12.34, 1234.5].map(ms), ["0.12", "9.50", "12.3", "1234"]);
        assert_eq!([999, 1500, 2_000_000_000].map(bytes), ["999 B", "1.5 kB", "2.0 GB"]);
    }
}
