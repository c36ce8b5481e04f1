//! `mcpx exec`: runs code that was typed, or comes on standard input.

use super::super::args::{usage, utf8};
use super::super::command::{Command, Flag, Group, MANY, Rest, example};
use super::super::cx::Cx;
use super::super::running;
use super::super::whole::whole;
use crate::error::Result;
use crate::proc::Patient;
use crate::script::Source;
use crate::settings::TRANSPORT_MAX_BODY;

/// The flags that exec and run share.
pub const FLAGS: &[Flag] = &[
    Flag::value("timeout", "DURATION", "Stop the script after this long; 0 never does").of("script.timeout"),
    Flag::value("call-timeout", "DURATION", "Give up each call after this long").of("pool.callTimeout"),
    Flag::value("runtime", "NAME", "deno, bun, node, a declared runtime or a path").of("script.runtime"),
    Flag::value("permissions", "PROFILE", "What the script may do besides calling tools")
        .of("script.permissions"),
    Flag::value("session", "KEY", "The session that its calls belong to"),
    Flag::value("env", "KEY=VALUE", "Add a variable to the script's environment; may be repeated"),
    Flag::value(
        "env-file",
        "FILE",
        "Add the KEY=VALUE lines of a file; --env outranks them; may be repeated",
    ),
    Flag::value("cwd", "DIRECTORY", "Run it there"),
    Flag::value("export", "NAME", "Call this export instead of the default one"),
    Flag::switch("interactive", "Ask on the terminal what servers ask while the script runs, field by field"),
    Flag::switch("no-launcher", "Start the program itself: no globals, and its value is not printed"),
    Flag::switch("remote", "Run it where the daemon is; short for --exec-where daemon"),
    Flag::switch("stdin", "With --remote: send standard input along, once it has ended"),
    Flag::value("report", "FILE", "Write how it ended into this file, as a JUnit report"),
    Flag::switch("dry-run", "Print what would run, and run nothing"),
    Flag::switch("explain", "Say which runtime was chosen, and why"),
];

/// The command.
pub static COMMAND: Command = Command {
    name: "exec",
    group: Group::Run,
    words: "<code>|- [<arguments>…]",
    count: (1, MANY),
    rest: Rest::Mixed,
    summary: "Run code that calls tools",
    about: "Every namespace is a variable: await demo.echo({ text: \"hi\" }). A result arrives unwrapped; its raw form \
            is .raw of the same call. A tool's error throws ToolError. The value of the code is printed: that of \
            an expression, or what statements return (without return they print nothing). emit(value) prints one line of JSON at once; log.info(\"fetched {n}\", { n }) and the console write to standard error. artifact({ name, text }) keeps something for later (mcpx artifacts). Code is \
            JavaScript, or TypeScript where the runtime knows it. With - the code is read from standard input.\n\n\
            With --json the run is one document: ok, exitCode, durationMs, runtime, result, results, logs, artifacts, stdout, \
            stderr.",
    flags: FLAGS,
    settings: &["script.runtimeOrder", "exec.where"],
    examples: &[
        example("mcpx exec 'await demo.echo({ text: \"hi\" })'", "one call; its value is printed"),
        example(
            "mcpx exec 'const { sum } = await demo.add({ a: 1, b: 2 }); return sum * 2'",
            "several statements",
        ),
        example("mcpx exec - < job.js", "code from a file"),
        example(
            "mcpx --json exec --timeout 10s --permissions read 'demo.counter()'",
            "a document, within limits",
        ),
    ],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    let code = if cx.inv.words[0] == "-" {
        let most = cx.world()?.settings.get(&TRANSPORT_MAX_BODY);
        let bytes = whole(&mut Patient::stdin(), most, "the code on standard input")?;
        String::from_utf8(bytes).map_err(|_| usage("the code on standard input is not UTF-8"))?
    } else {
        utf8(&cx.inv.words[0], "the code")?.to_owned()
    };
    if code.trim().is_empty() {
        return Err(usage("there is no code to run").hint(match cx.inv.words[0] == "-" {
            true => "standard input was empty",
            false => "mcpx exec '<code>'; mcpx run <file> runs a script",
        }));
    }
    let args = cx.inv.words[1..].to_vec();
    running::run(cx, Source::Inline(code.into()), args)
}
