//! Checks the servers: whether their programs are there, whether they start and
//! how long that takes, and what is odd about their tools. Several at once, within a bound.

use super::super::cx::{Cx, World};
use super::super::progress::Progress;
use super::super::schemas;
use super::{Level, Report};
use crate::api::{Client, info};
use crate::catalog::cache::Cache;
use crate::catalog::{Tool, budget};
use crate::config::{ServerDef, Transport};
use crate::error::{Error, Kind, Result};
use crate::proc::{find_program, thread};
use crate::settings;
use serde_json::{Value, json};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

/// The servers that are to be looked at.
fn chosen(world: &World) -> impl Iterator<Item = &Arc<ServerDef>> {
    world.config.servers.iter().filter(|d| schemas::unusable(world, d).is_none())
}

/// Whether the programs are there.
pub fn programs(cx: &Cx, world: &World, report: &mut Report) {
    for def in chosen(world) {
        let Transport::Stdio { command, .. } = &def.transport else { continue };
        if let Err(e) = find_program(command.as_ref(), &cx.env, Path::new("/")) {
            let what = format!("its program {command:?} cannot be started: {}", e.message());
            let todo = format!("install it, or correct {}:{}", def.source.display(), def.line);
            report.todo(Level::Error, "server", &def.name, what, todo);
        }
    }
}

/// What one server answered, and after how long.
type Answer = (usize, Result<Value>, Duration);

/// Starts each server through the daemon, and looks at what it offers.
pub fn start(cx: &Cx, world: &World, progress: &dyn Fn(&str), report: &mut Report) -> Result<()> {
    // One whose program is not there cannot start, which was said.
    let defs: Vec<Arc<ServerDef>> =
        chosen(world).filter(|d| !report.blames("server", &d.name)).cloned().collect();
    if defs.is_empty() {
        return Ok(());
    }
    if !world.settings.get(&settings::DAEMON_AUTOSTART) && cx.running()?.is_none() {
        report.add(
            Level::Info,
            "server",
            "",
            "no server was asked: no daemon is running, and none is to be started",
        );
        return Ok(());
    }
    progress("starting the daemon");
    let client = match cx.daemon(&Progress::start("starting the daemon")) {
        Ok(client) => client,
        Err(e) => {
            report.error("daemon", "", &e);
            return Ok(());
        }
    };
    let limit = world.settings.get(&settings::DOCTOR_TIMEOUT);
    let answers = ask(world, &client, &defs, progress)?;
    let cache = Cache::new(&world.dirs.cache);
    let log = log_tail(world, &client);
    for (i, outcome, took) in answers {
        let def = &defs[i];
        let failed = outcome.and_then(|answer| {
            let rows = schemas::namespace_rows(&answer)?;
            match rows.iter().find(|r| r.name == def.name).and_then(|r| r.error.as_ref()) {
                Some(e) => Err(Error::from_json(e)),
                None => Ok(()),
            }
        });
        if let Err(e) = failed {
            // The request's limit is over: the daemon waits for the server, which alone is at fault.
            if took >= limit {
                let what = format!(
                    "the server {} did not answer within {} (doctor.timeout)",
                    def.name,
                    settings::duration_text(limit)
                );
                let todo = format!(
                    "run its command, or open its address, by hand to see what it waits for ({}:{}); if it is slow to start, raise its startTimeout and doctor.timeout",
                    def.source.display(),
                    def.line
                );
                report.todo(Level::Error, "server", &def.name, what, todo);
                continue;
            }
            report.error("server", &def.name, &e);
            continue;
        }
        let schema = cache.load(&def.name, &def.digest, Duration::MAX);
        let tools = schema.as_ref().map_or(0, |s| s.tools.len());
        let took =
            settings::duration_text(Duration::from_millis(u64::try_from(took.as_millis()).unwrap_or(0)));
        report.add(Level::Ok, "server", &def.name, format!("started and listed {tools} tools in {took}"));
        if let Some(schema) = schema {
            oddities(def, &schema.tools, report);
        }
        let noise = log.lines().rev().find(|l| l.contains(&format!("{}: no message: ", def.name)));
        if let Some((_, said)) = noise.and_then(|l| l.split_once("no message: ")) {
            report.todo(
                Level::Warning,
                "server",
                &def.name,
                format!("it prints what is no MCP message on its stdout: {said}"),
                "have it write to stderr; some hosts give up on such a server",
            );
        }
    }
    Ok(())
}

/// Asks the daemon about each server, so many at once.
fn ask(
    world: &World,
    client: &Client,
    defs: &[Arc<ServerDef>],
    progress: &dyn Fn(&str),
) -> Result<Vec<Answer>> {
    let at_once =
        usize::try_from(world.settings.get(&settings::DOCTOR_CONCURRENCY)).unwrap_or(1).min(defs.len());
    let limit = world.settings.get(&settings::DOCTOR_TIMEOUT);
    let queue: Arc<Mutex<Vec<(usize, String)>>> =
        Arc::new(Mutex::new(defs.iter().map(|d| d.name.clone()).enumerate().rev().collect()));
    let (send, receive) = mpsc::channel::<Answer>();
    for _ in 0..at_once {
        let (queue, send, client) = (Arc::clone(&queue), send.clone(), client.another()?);
        client.set_timeout(Some(limit));
        let work = move || {
            loop {
                let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop();
                let Some((i, name)) = next else { return };
                let start = Instant::now();
                let outcome = client.json("POST", "/v1/refresh", Some(&json!({"servers": [name]})));
                if send.send((i, outcome, start.elapsed())).is_err() {
                    return;
                }
            }
        };
        thread::spawn("doctor", work)
            .map_err(|e| Error::new(Kind::Unavailable, format!("starting a thread: {e}")))?;
    }
    drop(send);
    let mut answers: Vec<Answer> = Vec::with_capacity(defs.len());
    progress(&format!("starting {} servers", defs.len()));
    for answer in receive {
        answers.push(answer);
        progress(&format!("starting servers, {} of {} have answered", answers.len(), defs.len()));
    }
    answers.sort_by_key(|(i, ..)| *i);
    Ok(answers)
}

/// A tool whose schema alone takes so many tokens crowds a model's context.
const HEAVY: usize = 4000;

/// What is odd about tools: it makes them hard to use, or breaks other hosts.
fn oddities(def: &ServerDef, tools: &[Tool], report: &mut Report) {
    let listed = |names: Vec<&str>| {
        let more = names.len().saturating_sub(5);
        let first = names.iter().take(5).copied().collect::<Vec<_>>().join(", ");
        if more > 0 { format!("{first} and {more} more") } else { first }
    };
    let named = |odd: &dyn Fn(&Tool) -> bool| -> Vec<&str> {
        tools.iter().filter(|t| odd(t)).map(|t| t.name.as_str()).collect()
    };
    let mut seen = std::collections::HashSet::new();
    let twice: Vec<&str> = tools.iter().map(|t| t.name.as_str()).filter(|n| !seen.insert(*n)).collect();
    let checks: [(Vec<&str>, &str, Level, &str); 4] = [
        (
            twice,
            "are listed twice",
            Level::Warning,
            "have the server give each a name of its own: only one can be called",
        ),
        (
            named(&|t| t.input_schema.get("type").and_then(Value::as_str) != Some("object")),
            "have an input schema that is not of the type object",
            Level::Warning,
            "have the server say \"type\": \"object\" in it; some hosts refuse all of a server's tools over one",
        ),
        (
            named(&|t| t.description.as_deref().unwrap_or("").trim().is_empty()),
            "have no description, so that nobody finds them",
            Level::Info,
            "have the server describe them",
        ),
        (
            named(&|t| budget::tokens(&t.input_schema.to_string()) > HEAVY),
            "have schemas of several thousand tokens",
            Level::Info,
            "have the server shorten them",
        ),
    ];
    for (names, what, level, todo) in checks {
        if !names.is_empty() {
            report.todo(level, "server", &def.name, format!("tools {what}: {}", listed(names)), todo);
        }
    }
}

/// How much of the daemon's log is looked at.
const LOG_TAIL: u64 = 256 * 1024;

/// The end of the daemon's log.
fn log_tail(world: &World, client: &Client) -> String {
    let path = info::log_path(&world.dirs, &client.info().key);
    let Ok(mut file) = std::fs::File::open(path) else { return String::new() };
    let length = file.metadata().map_or(0, |m| m.len());
    let mut bytes = Vec::new();
    let _ = file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL)));
    let _ = file.take(LOG_TAIL).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}
