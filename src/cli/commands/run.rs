//! `mcpx run`: runs a script from a file, or one that has a name.

use super::super::args::utf8;
use super::super::command::{Command, Group, MANY, Rest, example};
use super::super::cx::Cx;
use super::super::running;
use crate::error::Result;
use crate::script::Source;

/// The command.
pub static COMMAND: Command = Command {
    name: "run",
    group: Group::Run,
    words: "<file>|<name> [<arguments>…]",
    count: (1, MANY),
    rest: Rest::AfterFirst,
    summary: "Run a script, from a file or by its name",
    about: "The extension may be left out. A name without a path also stands for a file in .mcpx/scripts of this directory or one above it, or in the user's \
            configuration directory; mcpx scripts lists them. Everything after the script belongs to the script. What \
            it exports as default is called with the arguments, and its value printed. A script with a first line \
            such as #!/bin/sh, or with another language's extension, runs in that interpreter.",
    flags: super::exec::FLAGS,
    settings: &["script.runtimeOrder", "script.interpreter", "exec.where"],
    examples: &[
        example("mcpx run report.mjs 2026", "a file, with an argument"),
        example("mcpx run report --format json", "a named script; the flag is its own"),
        example("mcpx run --timeout 1m --dry-run report", "what would run"),
        example("mcpx run --export summary report.mjs", "another function of the same file"),
        example(
            "mcpx run --report junit.xml checks/smoke.ts",
            "in CI: passes everything through, and writes a report",
        ),
        example("mcpx run --env-file .env --env DEBUG=1 report", "with variables"),
    ],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    let script = utf8(&cx.inv.words[0], "the script's name")?.to_owned();
    // As everywhere, a bare -- only ends the flags.
    let args = cx.inv.words[1..].to_vec();
    running::run(cx, Source::Script(script), args)
}
