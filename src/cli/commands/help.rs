//! `mcpx help`.

use super::super::args;
use super::super::command::{Command, Group, Rest, example};
use super::super::cx::Cx;
use super::super::help as pages;
use crate::error::Result;

/// The command.
pub static COMMAND: Command = Command {
    name: "help",
    group: Group::Setup,
    words: "[<command>]",
    count: (0, 1),
    rest: Rest::Mixed,
    summary: "Explain mcpx, or one command",
    about: "",
    flags: &[],
    settings: &[],
    examples: &[
        example("mcpx help", "the commands"),
        example("mcpx help call", "one command, the same as mcpx call --help"),
    ],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    let page = match cx.inv.words.first() {
        Some(word) => pages::command(args::find_command(word)?),
        None => pages::overview(),
    };
    cx.out.text(&page)?;
    Ok(0)
}
