//! `mcpx tools`: a line for each tool.

use super::super::command::{Command, Group, MANY, Rest, example};
use super::super::cx::{Cx, no_servers};
use super::super::out::note;
use super::super::schemas;
use super::super::table::{Cell, Table, Tone, fit, one_line};
use crate::catalog::{names, ts};
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
    about: "All of them, or those of the namespaces named.",
    flags: &[],
    settings: &["catalog.describe"],
    examples: &[
        example("mcpx tools", "every tool there is"),
        example("mcpx tools demo", "those of one namespace"),
        example("mcpx --json tools demo", "with their JSON Schemas, for a program"),
    ],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    let wanted = cx.inv.words()?;
    let world = cx.world()?;
    if world.config.servers.is_empty() {
        return Err(no_servers(world, "there are no tools"));
    }
    let known = schemas::load(cx, schemas::select(world, &wanted)?)?;
    let describe = usize::try_from(world.settings.get(&settings::CATALOG_DESCRIBE)).unwrap_or(usize::MAX);
    let (mut rows, mut failed) = (Vec::<Value>::new(), Vec::<Value>::new());
    let mut first_error: Option<Error> = None;
    let mut table = Table::new(&["TOOL", "DESCRIPTION"]);
    for k in &known {
        let (name, ident) = (&k.namespace.def.name, &k.namespace.ident);
        let schema = match &k.schema {
            Ok(schema) => schema,
            Err(e) => {
                if cx.json() {
                    failed.push(json!({"server": name, "error": e.to_json()}));
                } else {
                    note(&format!("{name}: {}", e.message()));
                }
                first_error.get_or_insert(e.clone());
                continue;
            }
        };
        let members = names::unique_members(schema.tools.iter().map(|t| t.name.as_str()));
        for (tool, member) in schema.tools.iter().zip(members) {
            let signature = ts::signature(tool, ident, &member);
            if cx.json() {
                rows.push(json!({
                    "server": name, "ident": ident, "tool": tool.name, "member": member, "signature": signature,
                    "title": tool.title, "description": tool.description, "inputSchema": tool.input_schema,
                    "outputSchema": tool.output_schema, "annotations": tool.annotations,
                }));
            } else {
                let description = tool.description.as_deref().or(tool.title.as_deref());
                let description = short(description, describe);
                table.row(vec![Cell::new(signature).tone(Tone::Strong), Cell::new(description)]);
            }
        }
    }
    let text = table.render(cx.width(), cx.color());
    // A namespace that was asked for by name and cannot be shown is a failure; among all of them it is a remark.
    let failure = first_error.filter(|_| !wanted.is_empty());
    drop(known);
    if cx.json() {
        if let Some(e) = failure {
            return Err(e);
        }
        cx.out.json(&json!({"ok": true, "tools": rows, "errors": failed}))?;
        return Ok(0);
    }
    cx.out.text(&text)?;
    Ok(failure.map_or(0, |e| e.exit_code()))
}

/// The first part of a description, on one line.
pub fn short(description: Option<&str>, describe: usize) -> String {
    fit(&one_line(description.unwrap_or("")), describe)
}
