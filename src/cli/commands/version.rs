//! `mcpx version`.

use super::super::command::{Command, Group, Rest, example};
use super::super::cx::Cx;
use super::super::out::Out;
use crate::error::Result;
use serde_json::json;

/// The command.
pub static COMMAND: Command = Command {
    name: "version",
    group: Group::Setup,
    words: "",
    count: (0, 0),
    rest: Rest::Mixed,
    summary: "Print the version",
    about: "",
    flags: &[],
    settings: &[],
    examples: &[example("mcpx version", "the version of this binary")],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    let json = cx.json();
    print(&mut cx.out, json)?;
    Ok(0)
}

/// Prints the version.
pub fn print(out: &mut Out, json: bool) -> Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    if json {
        out.json(&json!({"ok": true, "name": "mcpx", "version": version}))
    } else {
        out.line(&format!("mcpx {version}"))
    }
}
