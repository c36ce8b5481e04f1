//! What exec and run have in common: prepares the script, opens a run at the
//! daemon, carries out the plan, and shows what came of it.

use super::args::usage;
use super::cx::{Cx, World};
use super::out::{complain, note};
use super::progress::Progress;
use super::questions::{self, Attendant};
use super::remote;
use super::report::Report;
use super::schemas;
use super::script_log::ScriptLog;
use super::table::one_line;
use super::typecheck;
use crate::api::wire::OpenRun;
use crate::api::{Client, named};
use crate::error::{Error, Kind, Result};
use crate::proc::Patient;
use crate::script::{
    self, Faults, Fed, Link, Local, LogRecord, Namespace, Outcome, Plan, Prepared, RunSpec, Source,
};
use crate::settings::{DAEMON_ENDPOINT, EXEC_WHERE, SCRIPT_CAPTURE_LIMIT, SCRIPT_TYPECHECK};
use serde_json::Value;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// How many random bytes name a run that no daemon knows of.
const RUN_ID: usize = 8;

/// Runs a script and gives the exit code.
pub fn run(cx: &mut Cx, source: Source, args: Vec<OsString>) -> Result<u8> {
    let world = cx.world()?;
    let mut faults = Faults::default();
    let cwd = faults.keep(directory(cx, world)).unwrap_or_else(|| world.cwd.clone());
    let env = variables(cx, world, &mut faults);
    let spec = RunSpec {
        source,
        args,
        from: world.cwd.clone(),
        cwd,
        env,
        capture: cx.json(),
        watched: cx.inv.has("report"),
        export: cx.inv.text("export")?.map(str::to_owned),
        bare: cx.inv.has("no-launcher"),
    };
    if cx.inv.has("interactive") {
        questions::check_terminal()?;
    }
    let place = world.settings.get(&EXEC_WHERE);
    let place = if cx.inv.has("remote") { "daemon" } else { place.as_str() };
    if place == "daemon" {
        if cx.inv.has("interactive") {
            return Err(usage("--interactive asks where the script runs, which is where the daemon is")
                .hint("without it a question is printed, and mcpx elicit answers it"));
        }
        if spec.watched {
            return Err(usage("--report is written where the script runs, which is where the daemon is"));
        }
        return remote::run(cx, &spec, faults);
    }
    let new_report = |path| {
        let name = match &spec.source {
            Source::Script(name) => name.as_str(),
            Source::Inline(_) => "inline code",
        };
        Report::new(world.cwd.join(path), name, world.settings.get(&SCRIPT_CAPTURE_LIMIT))
    };
    let report = cx.inv.value("report").map(new_report).transpose()?;
    let local = Local { settings: &world.settings, env: &cx.env, dirs: &world.dirs };
    let prepared = match script::prepare(&spec, &local, faults) {
        // Nothing here can run it, but the machine that was named may.
        Err(e)
            if place == "auto"
                && is_far(world)
                && matches!(&spec.source, Source::Inline(_))
                && report.is_none() =>
        {
            if e.kind() != Kind::NoScript {
                return Err(e);
            }
            return remote::run(cx, &spec, Faults::default());
        }
        Err(e) => {
            return match report {
                Some(report) => report.finish(Err(e)).map(|outcome| outcome.exit_code),
                None => Err(e),
            };
        }
        Ok(prepared) => prepared,
    };
    if let Some(text) = prepared.misread_permissions() {
        note(&text);
    }
    if cx.inv.has("dry-run") {
        let plan = prepared.plan(offline(cx, cx.catalog()?)?);
        return show(cx, &plan);
    }
    let outcome = carry_out(cx, &spec, prepared, report.as_ref());
    let outcome = match report {
        Some(report) => report.finish(outcome)?,
        None => outcome?,
    };
    finish(cx, &outcome)
}

/// Runs what has been prepared.
fn carry_out(cx: &Cx, spec: &RunSpec, prepared: Prepared, report: Option<&Report>) -> Result<Outcome> {
    let world = cx.world()?;
    if world.settings.get(&SCRIPT_TYPECHECK) {
        typecheck::check(cx, spec)?;
    }
    // The run lasts as long as the client that opened it.
    let (client, link) = open(cx, world, &prepared)?;
    let client = client.map(Arc::new);
    let log = client.clone().map(|c| Arc::new(ScriptLog::new(c, &link.run, &link.session, &cx.trace())));
    let run = link.run.clone();
    let plan = prepared.plan(link);
    if cx.inv.has("explain") {
        note(&format!("{}: {}", plan.runtime_name, plan.why.join("; ")));
    }
    let color = cx.color() && std::io::stderr().is_terminal();
    let into = log.clone();
    let seen = report.map(Report::seen);
    let feed = move |piece: Fed| {
        if let (Fed::Log(record), Some(log)) = (&piece, &into) {
            log.push(record);
        }
        if let Some(seen) = &seen {
            seen.lock().unwrap_or_else(PoisonError::into_inner).keep(&piece);
        }
        pass_on(&piece, color)
    };
    let asking = match (cx.inv.has("interactive"), &client) {
        (true, Some(client)) => Some(Attendant::start(client, &run)?),
        _ => None,
    };
    let outcome = script::execute(plan, Arc::new(Mutex::new(feed)));
    drop(asking);
    // Threads that have a hand on it may be slower than the end of this process.
    let leave = || client.iter().for_each(|client| client.leave());
    let outcome = outcome.inspect_err(|_| leave())?;
    if let Some(log) = &log {
        outcome.captured.iter().flat_map(|c| &c.logs).for_each(|record| log.push(record));
        log.finish();
    }
    leave();
    Ok(outcome)
}

/// Whether the daemon that was named has an address, and so may be on another machine.
fn is_far(world: &World) -> bool {
    !world.settings.get(&DAEMON_ENDPOINT).is_empty()
}

/// The working directory of the script.
fn directory(cx: &Cx, world: &World) -> Result<PathBuf> {
    let Some(typed) = cx.inv.value("cwd") else { return Ok(world.cwd.clone()) };
    let path = world.cwd.join(typed);
    if !path.is_dir() {
        return Err(usage(format!("--cwd: {} is not a directory", path.display())));
    }
    Ok(path)
}

/// The variables of `--env-file`, then those of `--env`.
fn variables(cx: &Cx, world: &World, faults: &mut Faults) -> Vec<(OsString, OsString)> {
    let mut all = Vec::new();
    for file in cx.inv.values("env-file") {
        let path = world.cwd.join(file);
        let read = std::fs::read_to_string(&path)
            .map_err(|e| Error::unreadable(format!("the --env-file {}", path.display()), &e));
        let pairs = faults.keep(read.and_then(|text| script::env_file::parse(&text, &path)));
        all.extend(pairs.into_iter().flatten().map(|(k, v)| (k.into(), v.into())));
    }
    for pair in cx.inv.values("env") {
        let bytes = pair.as_bytes();
        match bytes.iter().position(|b| *b == b'=') {
            Some(at) if at > 0 => all.push((
                OsString::from_vec(bytes[..at].to_vec()),
                OsString::from_vec(bytes[at + 1..].to_vec()),
            )),
            _ => faults.add(usage(format!("--env takes KEY=VALUE, not {:?}", pair.to_string_lossy()))),
        }
    }
    all
}

/// Opens the run at the daemon.
fn open(cx: &Cx, world: &World, prepared: &Prepared) -> Result<(Option<Client>, Link)> {
    let link = offline(cx, world)?;
    if link.namespaces.is_empty() && !named::is_named(&world.settings) {
        // There is nothing to call, so nobody to ask.
        return Ok((None, Link { run: crate::util::random_hex(RUN_ID)?, ..link }));
    }
    let progress = Progress::start("opening the run");
    let client = cx.daemon(&progress)?;
    let opened = client.open_run(&OpenRun {
        context: cx.context()?,
        tools: prepared.grants(),
        confined: prepared.is_sandboxed(),
        interactive: cx.inv.has("interactive"),
    })?;
    let far = client.is_remote();
    let channel = if prepared.wants_channel() { Some(client.channel(&opened.run)?) } else { None };
    let namespaces =
        opened.namespaces.into_iter().map(|n| Namespace { name: n.name, ident: n.ident }).collect();
    let link = Link {
        run: opened.run,
        session: opened.session,
        ephemeral: opened.ephemeral,
        namespaces,
        ca_file: if far { world.settings.get(&crate::settings::TRANSPORT_CA_FILE) } else { String::new() },
        socket: client.info().socket.clone(),
        // Where we reached it, others do too; its own word for that may be good on its machine only.
        // Whoever makes a call waits until the question has been answered on the terminal.
        report_input: !cx.inv.has("interactive"),
        endpoint: if far { client.info().endpoint.clone() } else { opened.endpoint },
        token: opened.token,
        channel,
        ..link
    };
    Ok((Some(client), link))
}

/// What is known of a run without a daemon.
fn offline(cx: &Cx, world: &World) -> Result<Link> {
    let context = cx.context()?;
    let namespaces = schemas::select(world, &[])?
        .into_iter()
        .map(|n| Namespace { name: n.def.name.clone(), ident: n.ident })
        .collect();
    Ok(Link {
        ephemeral: context.session.is_none(),
        session: context.session.unwrap_or_default(),
        session_id: context.session_id.unwrap_or_default(),
        parent_session_id: context.parent_session_id.unwrap_or_default(),
        namespaces,
        config_path: world.config.path().map(Path::to_owned),
        report_input: true,
        ..Link::default()
    })
}

/// Prints the plan.
fn show(cx: &mut Cx, plan: &Plan) -> Result<u8> {
    if cx.json() {
        cx.out.json(&plan.to_json())?;
    } else {
        cx.out.text(&plan.to_string())?;
    }
    Ok(0)
}

/// Hands on what the script writes; false when its reader has left.
pub(super) fn pass_on(piece: &Fed, color: bool) -> bool {
    // Whoever wants to know has the document, the list or the log.
    if matches!(piece, Fed::Artifact(_)) {
        return true;
    }
    if let Fed::Stdout(bytes) = piece {
        return Patient::stdout().write_all(bytes).is_ok();
    }
    let mut stderr = Patient::stderr();
    let written = match piece {
        Fed::Stdout(_) | Fed::Artifact(_) => Ok(()),
        Fed::Stderr(bytes) => stderr.write_all(bytes),
        Fed::Log(record) => stderr.write_all(log_line(record, color).as_bytes()),
    };
    // A standard error that was closed from the start is no reason to end anything.
    !written.is_err_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}

/// A log record as a line: what the console printed as it stands; else the level, the message, those fields that the
/// message does not show, and the place when the record has one.
pub(super) fn log_line(record: &LogRecord, color: bool) -> String {
    let told = record.console.is_none();
    let mut line = match told {
        true => format!("{:5} {}", record.level, record.message.trim_end()),
        false => record.message.clone(),
    };
    if let Some(Value::Object(fields)) = &record.fields {
        for (key, value) in fields {
            let text = value.as_str().map_or_else(|| value.to_string(), one_line);
            if !record.message.contains(&text) {
                line.push_str(&format!(" {key}={text}"));
            }
        }
    }
    if let Some(place) = record.source.as_ref().filter(|_| told) {
        line.push_str(&format!(" ({place})"));
    }
    let code = match record.level.as_str() {
        "error" => Some("31"),
        "warn" => Some("33"),
        _ => told.then_some("2"),
    };
    if let Some(code) = code.filter(|_| color) {
        line = format!("\x1b[{code}m{line}\x1b[0m");
    }
    line.push('\n');
    line
}

/// Shows how the run ended.
fn finish(cx: &mut Cx, outcome: &Outcome) -> Result<u8> {
    if cx.json() {
        let document = outcome.document()?;
        cx.out.line(&document)?;
    } else if let Some(e) = &outcome.ended
        && !(matches!(e.kind(), Kind::Script | Kind::Cancelled) && outcome.exit_code == INTERRUPTED)
    {
        complain(e);
    }
    Ok(outcome.exit_code)
}

/// The exit code after Ctrl-C, of which nobody needs to be told.
const INTERRUPTED: u8 = 130;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_log_line_shows_what_the_message_does_not() {
        let record = |fields: Value| LogRecord {
            level: "info".into(),
            at: 0,
            message: "fetched 3".into(),
            fields: Some(fields),
            console: None,
            source: None,
        };
        assert_eq!(log_line(&record(json!({"n": 3})), false), "info  fetched 3\n");
        assert_eq!(log_line(&record(json!({"n": 3, "from": "a\nb"})), false), "info  fetched 3 from=a b\n");
        assert!(log_line(&record(json!(null)), true).starts_with("\x1b[2minfo"));
        let mut printed = LogRecord { console: Some("log".into()), ..record(json!(null)) };
        printed.source = Some("<exec>:1:1".into());
        assert_eq!(log_line(&printed, true), "fetched 3\n", "line for line what the console prints");
    }
}
