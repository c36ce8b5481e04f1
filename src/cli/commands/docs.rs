//! `mcpx docs`: writes or checks the generated reference pages. For those who work on mcpx.

use super::super::args::usage;
use super::super::command::{Command, Flag, Group, Rest, example};
use super::super::cx::Cx;
use super::super::docs;
use crate::error::Result;
use std::path::Path;

/// The command.
pub static COMMAND: Command = Command {
    name: "docs",
    group: Group::Hidden,
    words: "[<directory>]",
    count: (0, 1),
    rest: Rest::Mixed,
    summary: "Write or check the generated reference pages",
    about: "The directory is docs unless another is given.",
    flags: &[
        Flag::switch("write", "Write the pages that differ"),
        Flag::switch("check", "Fail when a page differs"),
    ],
    settings: &[],
    examples: &[
        example("mcpx docs --write", "rewrite docs/"),
        example("mcpx docs --check", "fail when one is out of date"),
    ],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    let dir = cx.inv.words.first().map_or(Path::new("docs"), Path::new);
    match (cx.inv.has("write"), cx.inv.has("check")) {
        (true, false) => {
            for path in docs::write(dir)? {
                cx.out.line(&format!("wrote {}", path.display()))?;
            }
        }
        (false, true) => docs::check(dir)?,
        _ => return Err(usage("say --write or --check")),
    }
    Ok(0)
}
