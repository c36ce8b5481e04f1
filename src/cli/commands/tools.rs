//! `mcpx tools`: a line for each tool.

use super::super::command::{Command, Group, MANY, Rest, example};
use super::super::cx::{Cx, no_servers};
use super::super::out::note;
use super::super::schemas;
use super::super::table::{Cell, Table, Tone, paint};
use crate::catalog::names;
use crate::catalog::rows::{self, Row};
use crate::error::{Error, Result};
use crate::settings;
use serde_json::{Value, json};

/// The command.
pub static COMMAND: Command = Command {
    name: "tools",
    group: Group::Discover,
    words: "[<namespace>…]",
    count: (0, MANY),
    rest: Rest::Mixed,
    summary: "List tools, each with its signature",
    about: "All of them, or those named: whole namespaces, or single tools as <namespace>.<tool>.",
    flags: &[],
    settings: &["catalog.describe", "catalog.wait"],
    examples: &[
        example("mcpx tools", "every tool there is"),
        example("mcpx tools demo", "those of one namespace"),
        example("mcpx tools demo.echo", "one of them"),
        example("mcpx --json tools demo", "with their JSON Schemas, for a program"),
    ],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    let wanted = cx.inv.words()?;
    let world = cx.catalog()?;
    if world.config.servers.is_empty() {
        return Err(no_servers(world, "there are no tools"));
    }
    let picked = schemas::select_tools(world, &wanted)?;
    if cx.json() {
        return json(cx);
    }
    let (picked, only): (Vec<_>, Vec<_>) = picked.into_iter().unzip();
    let describe = usize::try_from(world.settings.get(&settings::CATALOG_DESCRIBE)).unwrap_or(usize::MAX);
    let mut failed: Vec<(String, Error)> = Vec::new();
    let mut lines: Vec<(String, String)> = Vec::new();
    for (k, only) in schemas::load_rows(cx, picked)?.into_iter().zip(only) {
        match k.tools {
            Ok(rows) => {
                let ident = &k.namespace.ident;
                let mut keep = Vec::new();
                for tool in &only {
                    keep.push(names::find_named(rows.iter().map(|r| r.name.as_str()), tool, ident)?);
                }
                let shown = rows.into_iter().enumerate();
                for (_, row) in shown.filter(|(at, _)| only.is_empty() || keep.contains(at)) {
                    let call = format!("{}.{}", k.namespace.ident, row.signature);
                    lines.push((call, named(&row, describe)));
                }
            }
            Err(e) => failed.push((k.namespace.def.name.clone(), e)),
        }
    }
    if wanted.is_empty() {
        let missing: Vec<(&str, &Error)> = failed.iter().map(|(server, e)| (server.as_str(), e)).collect();
        schemas::note_missing(&missing, "listed");
    } else {
        failed.iter().for_each(|(server, e)| note(&format!("{server}: {}", e.message())));
    }
    let text = listing(cx, &lines);
    // A namespace that was asked for and cannot be shown is a failure; among all of them it is a remark.
    let exit = failed.first().filter(|_| !wanted.is_empty()).map_or(0, |(_, e)| e.exit_code());
    cx.out.text(&text)?;
    Ok(exit)
}

/// Signatures with descriptions: in two columns on a terminal, else a line each, as long as it takes.
pub fn listing(cx: &Cx, lines: &[(String, String)]) -> String {
    let width = cx.width();
    if width.is_some() {
        let mut table = Table::new(&["TOOL", "DESCRIPTION"]);
        for (call, text) in lines {
            table.row(vec![Cell::new(call).tone(Tone::Strong), Cell::new(text)]);
        }
        return if lines.is_empty() { String::new() } else { table.render(width, cx.color()) };
    }
    let mut out = String::new();
    for (call, text) in lines {
        out.push_str(&paint(call, Tone::Strong, cx.color()));
        if !text.is_empty() {
            out.push_str(" // ");
            out.push_str(text);
        }
        out.push('\n');
    }
    out
}

/// The description, behind the exact name where a program has to write another one.
fn named(row: &Row, describe: usize) -> String {
    let text = row.sentence(describe);
    let member = row.signature.split('(').next().unwrap_or_default();
    if member == row.name { text } else { format!("[{}] {text}", row.name).trim_end().to_owned() }
}

/// The tools in full, for a program.
fn json(cx: &mut Cx) -> Result<u8> {
    let wanted = cx.inv.words()?;
    let known = schemas::load_tools(cx, &wanted)?;
    let (mut found, mut failed) = (Vec::<Value>::new(), Vec::<Value>::new());
    for k in &known {
        let (server, ident) = (&k.namespace.def.name, &k.namespace.ident);
        let schema = match &k.tools {
            Ok(schema) => schema,
            Err(e) if !wanted.is_empty() => return Err(e.clone()),
            Err(e) => {
                failed.push(json!({"server": server, "error": e.to_json()}));
                continue;
            }
        };
        let members = names::unique_members(schema.tools.iter().map(|t| t.name.as_str()));
        let lines = rows::rows(schema);
        for ((tool, member), line) in schema.tools.iter().zip(members).zip(lines) {
            let mut row = json!({
                "server": server, "ident": ident, "tool": tool.name, "member": member,
                "signature": format!("{ident}.{}", line.signature),
            });
            // The tool's own fields under MCP's names; its name is there already.
            if let (Some(row), Ok(Value::Object(fields))) = (row.as_object_mut(), serde_json::to_value(tool))
            {
                row.extend(fields.into_iter().filter(|(key, _)| key != "name"));
            }
            found.push(row);
        }
    }
    drop(known);
    cx.out.json(&json!({"ok": true, "tools": found, "errors": failed}))?;
    Ok(0)
}
