//! Looks for what is wrong, or will be: each check gives findings, each with
//! what to do. Changes nothing but what `Fix` allows. Knows nothing of how
//! findings are shown.

mod daemon;
mod local;
mod servers;

use super::cx::{Cx, World};
use super::unusable;
use crate::error::{Error, Result};
use serde::Serialize;
use std::path::PathBuf;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As it should be.
    Ok,
    /// Good to know.
    Info,
    /// May be wrong, or will be.
    Warning,
    /// Something does not work.
    Error,
}

impl Level {
    /// The level as a word.
    pub fn word(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Info => "info",
            Level::Warning => "warning",
            Level::Error => "error",
        }
    }
}

/// One thing that was found.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// How much it matters.
    pub level: Level,
    /// What was looked at: `configuration`, `files`, `daemon`, `server`, `runtime`, `network`, `disk`, `secrets`, `version`.
    pub check: &'static str,
    /// The server, runtime or file that it is about; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subject: String,
    /// What was found.
    pub what: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub todo: Option<String>,
}

/// What was found, and what was repaired.
#[derive(Default)]
pub struct Report {
    /// The findings, check by check.
    pub findings: Vec<Finding>,
    /// What `--fix` did, a line each.
    pub fixed: Vec<String>,
}

impl Report {
    fn add(
        &mut self,
        level: Level,
        check: &'static str,
        subject: impl Into<String>,
        what: impl Into<String>,
    ) {
        self.push(level, check, subject, what, None);
    }
    fn todo(
        &mut self,
        level: Level,
        check: &'static str,
        subject: impl Into<String>,
        what: impl Into<String>,
        todo: impl Into<String>,
    ) {
        self.push(level, check, subject, what, Some(todo.into()));
    }
    fn push(
        &mut self,
        level: Level,
        check: &'static str,
        subject: impl Into<String>,
        what: impl Into<String>,
        todo: Option<String>,
    ) {
        self.findings.push(Finding { level, check, subject: subject.into(), what: what.into(), todo });
    }
    fn error(&mut self, check: &'static str, subject: impl Into<String>, e: &Error) {
        let what = e.message().to_owned();
        let todo = e.hint_text().unwrap_or_else(|| fallback(check)).to_owned();
        self.push(Level::Error, check, subject, what, Some(todo));
    }
    /// Whether an error was found in this.
    fn blames(&self, check: &str, subject: &str) -> bool {
        self.findings.iter().any(|f| f.level == Level::Error && f.check == check && f.subject == subject)
    }
    /// How many findings are of a level.
    pub fn count(&self, level: Level) -> usize {
        self.findings.iter().filter(|f| f.level == level).count()
    }
}

/// What to do about an error of a check that says nothing of it itself.
fn fallback(check: &str) -> &'static str {
    match check {
        "configuration" => "correct the file that it names; mcpx config shows what is in force",
        "daemon" => "mcpx stop; the next command starts a new one",
        "server" => {
            "run its command or open its address by hand, and correct its definition; mcpx log shows what it said"
        }
        _ => "correct it, then run mcpx doctor again",
    }
}

/// What a check may do.
#[derive(Clone, Copy)]
pub struct Options {
    /// Repair what can be repaired without a loss.
    pub fix: bool,
    /// Start servers and ask them.
    pub servers: bool,
}

/// Does every check, and tells what it is at.
pub fn run(cx: &Cx, options: Options, progress: &dyn Fn(&str)) -> Result<Report> {
    let mut report = Report::default();
    progress("looking at the configuration");
    configuration(cx, &mut report)?;
    local::version(cx, &mut report)?;
    let dirs = cx.dirs()?;
    local::directories(&dirs, options.fix, &mut report);
    local::network(&cx.env, &mut report);
    daemon::all(&dirs, options.fix, &mut report);
    // What is left needs a configuration that can be read.
    let Ok(world) = cx.world() else { return Ok(report) };
    for e in unusable::in_force(&world.settings) {
        report.error("configuration", "", &e);
    }
    for (subject, why) in unusable::missing(cx, world) {
        report.todo(Level::Error, "configuration", subject, why, "correct its path, or install it");
    }
    local::disk(world, &mut report);
    local::secret_files(world, options.fix, &mut report);
    daemon::own(cx, world, &mut report);
    local::runtimes(cx, world, &mut report);
    local::secrets(cx, world, &mut report);
    servers::programs(cx, world, &mut report);
    if options.servers {
        servers::start(cx, world, progress, &mut report)?;
    }
    Ok(report)
}

fn configuration(cx: &Cx, report: &mut Report) -> Result<()> {
    const CHECK: &str = "configuration";
    let (config, faults) = cx.survey()?;
    for e in &faults {
        report.error(CHECK, "", e);
    }
    for warning in config.warnings.iter().filter(|w| !faults.iter().any(|e| e.message() == w.as_str())) {
        report.todo(Level::Warning, CHECK, "", warning, "correct the name, or remove it: it does nothing");
    }
    for def in &config.servers {
        if let Some(problem) = &def.problem {
            report.error(CHECK, &def.name, problem);
        }
    }
    match config.sources.first() {
        // One that has a fault is none of those that contribute, and there all the same.
        None if !faults.is_empty() => {}
        None => report.todo(
            Level::Warning,
            CHECK,
            "",
            "there is no configuration file here, above, or of the user",
            "mcpx init writes one; mcpx servers import all takes over what other hosts have",
        ),
        Some(nearest) if faults.is_empty() => {
            let (files, servers) = (config.sources.len(), config.servers.len());
            let s = |n: usize| if n == 1 { "" } else { "s" };
            let what = format!(
                "{files} file{}, {servers} server{}; the nearest is {}",
                s(files),
                s(servers),
                nearest.path.display()
            );
            report.add(Level::Ok, CHECK, "", what);
        }
        Some(_) => {}
    }
    Ok(())
}

/// The paths of a world's configuration files.
fn files(world: &World) -> impl Iterator<Item = &PathBuf> {
    world.config.sources.iter().map(|s| &s.path)
}
