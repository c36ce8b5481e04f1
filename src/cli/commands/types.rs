//! `mcpx types`: TypeScript for namespaces.

use super::super::command::{Command, Flag, Group, MANY, Rest, example};
use super::super::cx::{Cx, no_servers};
use super::super::schemas;
use crate::catalog::budget::tokens;
use crate::catalog::ts;
use crate::error::Result;
use serde_json::{Value, json};

/// The command.
pub static COMMAND: Command = Command {
    name: "types",
    group: Group::Discover,
    words: "[<namespace>…]",
    count: (0, MANY),
    rest: Rest::Mixed,
    summary: "Print TypeScript declarations of namespaces",
    about: "What a script sees: each tool with the types of its arguments and of its result, made from its JSON \
            Schemas. All namespaces, or those named; a single tool as <namespace>.<tool>.",
    flags: &[Flag::switch(
        "brief",
        "Signatures alone, without descriptions; the last line says about how many tokens they take",
    )],
    settings: &["catalog.wait", "catalog.frozen"],
    examples: &[
        example("mcpx types demo", "one namespace, in full"),
        example("mcpx types demo.echo", "one tool"),
        example("mcpx types --brief demo", "in as few words as possible"),
    ],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    let wanted = cx.inv.words()?;
    let brief = cx.inv.has("brief");
    let world = cx.catalog()?;
    if world.config.servers.is_empty() {
        return Err(no_servers(world, "there are no types"));
    }
    let known = schemas::load_tools(cx, &wanted)?;
    let (mut rows, mut failed) = (Vec::<Value>::new(), Vec::<Value>::new());
    let mut missing = Vec::new();
    let (mut text, mut exit) = (String::new(), 0);
    for k in &known {
        let (name, ident) = (&k.namespace.def.name, &k.namespace.ident);
        match &k.tools {
            Ok(schema) => {
                let typescript = ts::namespace(schema, ident, brief);
                if cx.json() {
                    rows.push(json!({"server": name, "ident": ident, "typescript": typescript, "tokens": tokens(&typescript)}));
                } else {
                    if !text.is_empty() {
                        text.push('\n');
                    }
                    text.push_str(typescript.trim_end());
                    text.push('\n');
                }
            }
            Err(e) if cx.json() && !wanted.is_empty() => return Err(e.clone()),
            Err(e) if cx.json() => failed.push(json!({"server": name, "error": e.to_json()})),
            Err(e) if wanted.is_empty() => missing.push((name.as_str(), e)),
            Err(e) => {
                super::super::out::complain(e);
                exit = e.exit_code();
            }
        }
    }
    schemas::note_missing(&missing, "described");
    drop(known);
    if cx.json() {
        cx.out.json(&json!({"ok": true, "types": rows, "errors": failed}))?;
    } else {
        if brief && !text.is_empty() {
            text.push_str(&format!("// about {} tokens\n", tokens(&text)));
        }
        cx.out.text(&text)?;
    }
    Ok(exit)
}
