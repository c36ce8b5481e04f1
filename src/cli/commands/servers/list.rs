//! `mcpx servers list` and `show`: the configured servers as their files have them.

use super::super::super::cx::{Cx, nothing_configured};
use super::super::super::out::note;
use super::super::super::table::{Cell, Table, Tone};
use crate::api::servers;
use crate::api::wire::ServerRow;
use crate::error::{Error, Result};
use serde_json::{Value, json};
use std::path::Path;

/// Prints every configured server.
pub fn list(cx: &mut Cx) -> Result<u8> {
    let reveal = cx.inv.has("reveal");
    let world = cx.world()?;
    let rows = servers::rows(&world.config, &world.selection, reveal);
    if cx.json() {
        cx.out.json(&json!({"ok": true, "servers": rows}))?;
        return Ok(0);
    }
    if rows.is_empty() {
        let start =
            "mcpx servers add and mcpx init make a start; mcpx servers import takes over another host's";
        note(&format!("{}\n{start}", nothing_configured(world)));
        return Ok(0);
    }
    let home = world.dirs.home.clone();
    let mut table = Table::new(&["SERVER", "STATE", "REACHED BY", "WHERE"]);
    for row in &rows {
        let (state, tone) = state(row);
        let at = format!("{}:{}", short(&row.source, home.as_deref()), row.line);
        table.row(vec![
            Cell::new(&row.name).tone(Tone::Strong),
            Cell::new(state).tone(tone),
            Cell::new(reached(row)),
            Cell::new(at).tone(Tone::Dim),
        ]);
    }
    let text = table.render(cx.width(), cx.color());
    cx.out.text(&text)?;
    Ok(0)
}

/// Prints one server.
pub fn show(cx: &mut Cx, typed: &str) -> Result<u8> {
    let reveal = cx.inv.has("reveal");
    let world = cx.world()?;
    let name = super::find(world, typed)?;
    let rows = servers::rows(&world.config, &world.selection, reveal);
    let row = rows.into_iter().find(|r| r.name == name);
    let row = row.ok_or_else(|| super::super::super::internal(format!("{name} is not configured")))?;
    if cx.json() {
        cx.out.json(&json!({"ok": true, "server": row}))?;
        return Ok(0);
    }
    let (state, _) = state(&row);
    let head = format!("{} · {state} · {}:{}", row.name, row.source.display(), row.line);
    let body = serde_json::to_string_pretty(&row.definition)
        .map_err(|e| super::super::super::internal(format!("writing JSON: {e}")))?;
    cx.out.line(&format!("{head}\n{body}"))?;
    if let Some(e) = &row.error {
        note(Error::from_json(e).message());
    }
    Ok(0)
}

/// What a row says of the server's state.
fn state(row: &ServerRow) -> (String, Tone) {
    let profiles = row.profiles.join(", ");
    match () {
        () if row.error.is_some() => ("unusable".into(), Tone::Bad),
        () if !row.enabled => ("disabled".into(), Tone::Dim),
        () if !row.selected && profiles.is_empty() => ("not selected".into(), Tone::Dim),
        () if !row.selected => (format!("profile {profiles}"), Tone::Dim),
        () if !profiles.is_empty() => (format!("on ({profiles})"), Tone::Plain),
        () => ("on".into(), Tone::Plain),
    }
}

/// How the server is reached, on one line.
fn reached(row: &ServerRow) -> String {
    if let Some(e) = &row.error {
        return Error::from_json(e).message().to_owned();
    }
    if let Some(of) = &row.alias_of {
        return format!("as {of}");
    }
    let text = |key: &str| row.definition.get(key).and_then(Value::as_str);
    if let Some(url) = ["url", "serverUrl", "httpUrl"].into_iter().find_map(text) {
        return url.to_owned();
    }
    let args = row.definition.get("args").and_then(Value::as_array).into_iter().flatten();
    let words = text("command").into_iter().chain(args.filter_map(Value::as_str));
    words.map(quoted).collect::<Vec<_>>().join(" ")
}

/// A word as one would type it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:@=,+%*".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// A path with the home directory as `~`.
fn short(path: &Path, home: Option<&Path>) -> String {
    match home.and_then(|h| path.strip_prefix(h).ok()) {
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    }
}
