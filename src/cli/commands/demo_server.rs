//! `mcpx demo-server`: the demonstration MCP server, over stdin and stdout.

use super::super::command::{Command, Group, Rest, example};
use super::super::cx::Cx;
use crate::error::Result;
use crate::proc::Patient;

/// The command.
pub static COMMAND: Command = Command {
    name: "demo-server",
    group: Group::Setup,
    words: "",
    count: (0, 0),
    rest: Rest::Mixed,
    summary: "Be a small MCP server to try things on, over stdin and stdout",
    about: "A server like any other: echo, add, a counter that keeps state, an image, a slow tool with progress, \
            a tool that fails, and some with awkward names and schemas. mcpx init --demo configures it.",
    flags: &[],
    settings: &[],
    examples: &[example("mcpx demo-server < requests.jsonl", "answer JSON-RPC messages, one a line")],
    run,
};

fn run(_cx: &mut Cx) -> Result<u8> {
    Ok(crate::serve::demo::run(Patient::stdin(), Patient::stdout()))
}
