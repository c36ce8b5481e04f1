//! `mcpx ls`: a row for each namespace.

use super::super::command::{Command, Group, Rest, example};
use super::super::cx::{Cx, nothing_configured};
use super::super::out::note;
use super::super::schemas;
use super::super::table::{Cell, Table, Tone};
use crate::api::wire::NamespaceRow;
use crate::error::{Error, Result};
use crate::settings;
use serde_json::json;

/// The command.
pub static COMMAND: Command = Command {
    name: "ls",
    group: Group::Discover,
    words: "",
    count: (0, 0),
    rest: Rest::Mixed,
    summary: "List the namespaces: one for each configured server",
    about: "Answers from the schema cache on disk; a server is started only when the cache does not know it. \
            A server that cannot be used is a row that says why. TOKENS is about what the signatures \
            of its tools take, a line each: four letters of a word, or two signs, are counted as one.",
    flags: &[],
    settings: &["catalog.cacheTtl", "catalog.wait", "catalog.describe", "catalog.frozen"],
    examples: &[example("mcpx ls", "what there is"), example("mcpx --json ls", "the same for a program")],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    let rows = schemas::rows(cx)?;
    let world = cx.catalog()?;
    if cx.json() {
        let sources: Vec<_> = world.config.sources.iter().map(|s| &s.path).collect();
        let warnings = &world.config.warnings;
        let body = json!({"ok": true, "namespaces": rows, "sources": sources, "warnings": warnings});
        cx.out.json(&body)?;
        return Ok(0);
    }
    if rows.is_empty() && !world.config.servers.is_empty() {
        note("no server is among those selected; --all-profiles takes every one");
        return Ok(0);
    }
    if rows.is_empty() {
        let text = format!(
            "{}\nmcpx init writes a .mcpx.json to start from, with a demonstration server in it",
            nothing_configured(world)
        );
        note(&text);
        return Ok(0);
    }
    let describe = usize::try_from(world.settings.get(&settings::CATALOG_DESCRIBE)).unwrap_or(usize::MAX);
    show(cx, &rows, describe)?;
    Ok(0)
}

/// Prints the rows as a table.
pub fn show(cx: &mut Cx, rows: &[NamespaceRow], describe: usize) -> Result<()> {
    let mut table = Table::new(&["NAMESPACE", "TOOLS", "TOKENS", "DESCRIPTION"]);
    for row in rows {
        let name =
            if row.ident == row.name { row.name.clone() } else { format!("{} ({})", row.name, row.ident) };
        let tools = row.tools.map_or_else(|| "-".to_owned(), |n| n.to_string());
        let (text, tone) = describe_row(row, describe);
        let tokens = row.tokens.map_or_else(|| "-".to_owned(), |n| n.to_string());
        table.row(vec![
            Cell::new(name).tone(Tone::Strong),
            Cell::number(tools),
            Cell::number(tokens),
            Cell::new(text).tone(tone),
        ]);
    }
    let text = table.render(cx.width(), cx.color());
    cx.out.text(&text)
}

/// What a row says: the reason when there is one, else the description.
fn describe_row(row: &NamespaceRow, describe: usize) -> (String, Tone) {
    match (&row.error, row.state.as_str()) {
        (Some(e), "locked") => (format!("as it was locked: {}", Error::from_json(e).message()), Tone::Bad),
        (Some(e), state) => {
            let state = if matches!(state, "unknown" | "starting") { state } else { "failed" };
            // The hint belongs to whoever uses the server; the list only says what is wrong.
            let message = Error::from_json(e).message().to_owned();
            // That it is starting says its message already.
            (if state == "starting" { message } else { format!("{state}: {message}") }, Tone::Bad)
        }
        (None, "disabled") => ("disabled".into(), Tone::Dim),
        (None, _) => {
            let text = row.description.as_deref().unwrap_or("");
            let line = super::super::table::one_line(text);
            (super::super::table::fit(&line, describe), Tone::Plain)
        }
    }
}
