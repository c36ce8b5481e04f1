//! `mcpx doctor`: looks for what is wrong, and says what to do.

use super::super::command::{Command, Flag, Group, Rest, example};
use super::super::cx::Cx;
use super::super::doctor::{self, Level, Options, Report};
use super::super::progress::Progress;
use super::super::table::{Tone, paint};
use crate::error::Result;
use serde_json::json;
use std::fmt::Write;

/// The command.
pub static COMMAND: Command = Command {
    name: "doctor",
    group: Group::Setup,
    words: "",
    count: (0, 0),
    rest: Rest::Mixed,
    summary: "Look for what is wrong with the setup, and say what to do",
    about: "Checks the configuration, files and their modes, daemons and their environment, that every server starts \
            and what is odd about its tools, runtimes and what each can enforce, proxies and certificates, the disk, \
            versions, and which secrets servers see. It starts the servers, through the daemon, several at once. The \
            exit code is 0 without an error, and 1 with one; with --strict a warning counts too.\n\n\
            --fix closes what is open to others in mcpx's own directories and removes what daemons that are gone left \
            behind; it changes no configuration.",
    flags: &[
        Flag::switch("fix", "Repair what can be repaired without a loss"),
        Flag::switch("strict", "Fail on a warning too"),
        Flag::switch("no-servers", "Start no server"),
        Flag::switch("verbose", "Show also what is as it should be"),
    ],
    settings: &["doctor.timeout", "doctor.concurrency", "doctor.diskFree"],
    examples: &[
        example("mcpx doctor", "what is wrong, and what to do"),
        example("mcpx doctor --fix", "and repair what can be"),
        example("mcpx --json doctor --strict", "for CI"),
    ],
    run,
};

/// The exit code where something is wrong.
const WRONG: u8 = 1;

fn run(cx: &mut Cx) -> Result<u8> {
    let options = Options { fix: cx.inv.has("fix"), servers: !cx.inv.has("no-servers") };
    let progress = Progress::start("looking around");
    let report = doctor::run(cx, options, &|text| progress.say(text))?;
    drop(progress);
    let (errors, warnings) = (report.count(Level::Error), report.count(Level::Warning));
    let wrong = errors > 0 || cx.inv.has("strict") && warnings > 0;
    let exit = if wrong { WRONG } else { 0 };
    if cx.json() {
        cx.out.json(&json!({
            "ok": !wrong, "errors": errors, "warnings": warnings, "findings": report.findings, "fixed": report.fixed,
        }))?;
        return Ok(exit);
    }
    let text = text(&report, cx.inv.has("verbose"), cx.color());
    cx.out.text(&text)?;
    Ok(exit)
}

/// The findings for a person, the worst of each check as they come.
fn text(report: &Report, verbose: bool, color: bool) -> String {
    let mut out = String::new();
    for f in &report.findings {
        if f.level == Level::Ok && !verbose {
            continue;
        }
        let tone = match f.level {
            Level::Error | Level::Warning => Tone::Bad,
            Level::Info | Level::Ok => Tone::Dim,
        };
        let word = paint(&format!("{:<7}", f.level.word()), tone, color);
        let subject = if f.subject.is_empty() { String::new() } else { format!(" {}", f.subject) };
        let _ = writeln!(out, "{word}  {}{subject}: {}", f.check, f.what.replace('\n', "\n         "));
        if let Some(todo) = &f.todo {
            let _ = writeln!(out, "         {todo}");
        }
    }
    for line in &report.fixed {
        let _ = writeln!(out, "fixed    {line}");
    }
    let count = |level, word: &str| {
        let n = report.count(level);
        format!("{n} {word}{}", if n == 1 { "" } else { "s" })
    };
    let fine = report.count(Level::Ok);
    let _ = writeln!(
        out,
        "{}, {}; {fine} checks found nothing wrong",
        count(Level::Error, "error"),
        count(Level::Warning, "warning")
    );
    out
}
