//! `mcpx scripts`: the scripts that have a name.

use super::super::command::{Command, Group, Rest, example};
use super::super::cx::Cx;
use super::super::table::{Cell, Table, Tone};
use crate::error::Result;
use crate::script;
use crate::settings;
use serde_json::json;

/// The command.
pub static COMMAND: Command = Command {
    name: "scripts",
    group: Group::Run,
    words: "",
    count: (0, 0),
    rest: Rest::Mixed,
    summary: "List the scripts that mcpx run knows by name",
    about: "Files in .mcpx/scripts of this directory and those above it, then of the user's configuration directory. \
            The nearest wins a name; the others are shadowed, and run by their path.",
    flags: &[],
    settings: &[],
    examples: &[example("mcpx scripts", "names and first comment lines")],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    let world = cx.world()?;
    let found = script::named_scripts(&world.cwd, &world.dirs, &world.settings.get(&settings::SCRIPT_DIRS));
    if cx.json() {
        cx.out.json(&json!({"ok": true, "scripts": found}))?;
        return Ok(0);
    }
    if found.is_empty() {
        super::super::out::note("there are no named scripts; they are files in .mcpx/scripts");
        return Ok(0);
    }
    let mut table = Table::new(&["NAME", "DESCRIPTION", "FILE"]);
    for s in &found {
        let path = s.path.strip_prefix(&world.cwd).unwrap_or(&s.path);
        let file = format!("{}{}", path.display(), if s.shadowed { " (shadowed)" } else { "" });
        let tone = if s.shadowed { Tone::Dim } else { Tone::Strong };
        table.row(vec![
            Cell::new(&s.name).tone(tone),
            Cell::new(s.description.as_deref().unwrap_or("")),
            Cell::new(file).tone(Tone::Dim),
        ]);
    }
    let text = table.render(cx.width(), cx.color());
    cx.out.text(&text)?;
    Ok(0)
}
