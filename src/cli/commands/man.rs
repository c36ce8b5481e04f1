//! `mcpx man`: the manual page.

use super::super::command::{Command, Group, Rest, example};
use super::super::cx::Cx;
use super::super::man;
use crate::error::Result;
use serde_json::json;

/// The command.
pub static COMMAND: Command = Command {
    name: "man",
    group: Group::Setup,
    words: "",
    count: (0, 0),
    rest: Rest::Mixed,
    summary: "Print the manual page, in roff",
    about: "All commands with their flags, all settings, the files and the exit codes on one page.",
    flags: &[],
    settings: &[],
    examples: &[
        example("mcpx man | man -l -", "read it"),
        example("mcpx man > ~/.local/share/man/man1/mcpx.1", "put it where man looks"),
    ],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    let page = man::page();
    if cx.json() {
        cx.out.json(&json!({"ok": true, "roff": page}))?;
    } else {
        cx.out.text(&page)?;
    }
    Ok(0)
}
