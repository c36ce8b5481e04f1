//! Runs a script where the daemon is: sends it there, shows its output as it
//! comes, and ends with its exit code.

use super::args::usage;
use super::cx::Cx;
use super::interrupt::Interrupt;
use super::out::{complain, note};
use super::progress::Progress;
use super::running::pass_on;
use super::whole::{STDIN, whole};
use crate::error::{Error, Kind, Result, system_words};
use crate::proc::Patient;
use crate::script::{self, Faults, Fed, LogRecord, Outcome, Place, RunSpec, Source};
use crate::settings::{
    SCRIPT_PERMISSIONS, SCRIPT_RUNTIME, SCRIPT_TIMEOUT, SCRIPT_TYPECHECK, TRANSPORT_MAX_BODY,
};
use crate::util::base64;
use serde_json::{Map, Value, json};
use std::io::{self, IsTerminal};
use std::time::Instant;

/// Runs it and gives its exit code.
pub fn run(cx: &mut Cx, spec: &RunSpec, mut faults: Faults) -> Result<u8> {
    if cx.world()?.settings.get(&SCRIPT_TYPECHECK) {
        note("--typecheck: not for a script that runs where the daemon is");
    }
    let progress = Progress::start("asking the daemon");
    let client = cx.daemon(&progress)?;
    let far = client.is_remote();
    let body = faults.keep(request(cx, spec, far));
    faults.check()?;
    let mut body = body.unwrap_or_default();
    if cx.inv.has("dry-run") {
        cx.out.json(&json!({"where": "daemon", "request": masked(body)}))?;
        return Ok(0);
    }
    if cx.inv.has("stdin") {
        let bytes = whole(&mut Patient::stdin(), cx.world()?.settings.get(&TRANSPORT_MAX_BODY), STDIN)?;
        let text = String::from_utf8(bytes).map_err(|_| usage("standard input is not UTF-8"))?;
        body.insert("stdin".into(), text.into());
    }
    drop(progress);
    let handle = client.shutdown_handle()?;
    let interrupt = Interrupt::listen(move || handle.interrupt())?;
    let stopped = |e: Error| match interrupt.exit_code() {
        Some(code) => Ok(code),
        None => Err(e),
    };
    if cx.json() {
        let begun = Instant::now();
        body.insert("output".into(), "structured".into());
        let document = match client.json("POST", "/v1/exec", Some(&Value::Object(body))) {
            Ok(document) => document,
            Err(e) => {
                let code = stopped(e)?;
                // Its output ended with the connection; that it was interrupted is known here.
                let ended = Error::new(Kind::Cancelled, "the script was interrupted")
                    .hint("what it had printed is with the daemon; without --json it is shown as it comes");
                let outcome = Outcome {
                    exit_code: code,
                    duration: begun.elapsed(),
                    runtime: String::new(),
                    ended: Some(ended),
                    captured: None,
                };
                cx.out.line(&outcome.document()?)?;
                return Ok(code);
            }
        };
        let code = document["exitCode"].as_u64().and_then(|n| u8::try_from(n).ok()).unwrap_or(1);
        cx.out.line(&document.to_string())?;
        return Ok(code);
    }
    body.insert("output".into(), "stream".into());
    let text = Value::Object(body).to_string();
    let mut reading = Reading { color: cx.color() && io::stderr().is_terminal(), ..Reading::default() };
    let mut pending = Vec::new();
    let outcome = client.stream("POST", "/v1/exec", Some(text.as_bytes()), &mut |chunk| {
        pending.extend_from_slice(chunk);
        while let Some(end) = pending.iter().position(|b| *b == b'\n') {
            let line: Vec<u8> = pending.drain(..=end).collect();
            if !reading.frame(&line) {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
        }
        Ok(())
    });
    match (reading.end, outcome) {
        (Some(Ok(code)), _) => Ok(code),
        (Some(Err(e)), _) => Err(e),
        (None, Err(e)) => stopped(e),
        (None, Ok(_)) => {
            Err(Error::new(Kind::OutcomeUnknown, "the daemon's answer ended before the script did")
                .hint("the daemon may have stopped; `mcpx status` says whether it runs"))
        }
    }
}

/// The request: what is run, and what of this command's settings and flags goes along.
fn request(cx: &Cx, spec: &RunSpec, far: bool) -> Result<Map<String, Value>> {
    let world = cx.world()?;
    let context = cx.context()?;
    let mut body = Map::new();
    let mut put = |key: &str, value: Value| drop(body.insert(key.into(), value));
    match &spec.source {
        Source::Inline(code) => put("code", (&**code).into()),
        Source::Script(wanted) => {
            let local = script::Local { settings: &world.settings, env: &cx.env, dirs: &world.dirs };
            match script::place(wanted, spec, &local)? {
                // It has the same files.
                Place { path, .. } if !far => put("script", path.to_string_lossy().into()),
                Place { path, language } => {
                    let code = std::fs::read_to_string(&path).map_err(|e| {
                        let what = format!("reading the script {}: {}", path.display(), system_words(&e));
                        Error::new(Kind::NoScript, what)
                    })?;
                    put("code", code.into());
                    put("language", language.into());
                }
            }
        }
    }
    let utf8 = |text: &std::ffi::OsStr, what: &str| {
        text.to_str()
            .map(str::to_owned)
            .ok_or_else(|| usage(format!("{what} is not UTF-8, and cannot be sent")))
    };
    let mut args = Vec::new();
    for arg in &spec.args {
        args.push(Value::from(utf8(arg, "an argument")?));
    }
    put("args", args.into());
    let mut env = Map::new();
    for (name, value) in &spec.env {
        env.insert(utf8(name, "a variable's name")?, utf8(value, "a variable")?.into());
    }
    put("env", env.into());
    for (key, value) in [
        ("session", context.session),
        ("sessionId", context.session_id),
        ("parentSessionId", context.parent_session_id),
        ("export", spec.export.clone()),
    ] {
        if let Some(value) = value {
            put(key, value.into());
        }
    }
    if let Some(selection) = context.selection.as_ref().and_then(|s| serde_json::to_value(s).ok()) {
        put("context", json!({"selection": selection}));
    }
    // A directory of this machine means nothing on another one, unless somebody says so.
    if !far || cx.inv.has("cwd") {
        put("cwd", spec.cwd.to_string_lossy().into());
    }
    if spec.bare {
        put("noLauncher", true.into());
    }
    let settings = &world.settings;
    // What the files here say the daemon's files say as well, or do not.
    for (key, setting) in [("runtime", &SCRIPT_RUNTIME), ("permissions", &SCRIPT_PERMISSIONS)] {
        let value = settings.get(setting);
        if settings
            .explain(setting_key(key))
            .is_some_and(|row| row.source != crate::settings::Source::Default)
        {
            put(key, value.into());
        }
    }
    let limit = settings.get(&SCRIPT_TIMEOUT);
    put("timeoutMs", u64::try_from(limit.as_millis()).unwrap_or(u64::MAX).into());
    Ok(body)
}

fn setting_key(field: &str) -> &'static str {
    if field == "runtime" { "script.runtime" } else { "script.permissions" }
}

/// The request as a dry run shows it: the values of variables may be secrets.
fn masked(mut body: Map<String, Value>) -> Value {
    if let Some(Value::Object(env)) = body.get_mut("env") {
        env.values_mut().for_each(|value| *value = "***".into());
    }
    Value::Object(body)
}

/// What has been read of a stream.
#[derive(Default)]
struct Reading {
    color: bool,
    end: Option<Result<u8>>,
}

impl Reading {
    /// Takes one line; false when nobody reads what the script prints.
    fn frame(&mut self, line: &[u8]) -> bool {
        let Ok(frame) = serde_json::from_slice::<Value>(line) else { return true };
        let bytes = || match frame["base64"].as_str() {
            Some(text) => base64::decode(text).unwrap_or_default(),
            None => frame["text"].as_str().unwrap_or_default().as_bytes().to_vec(),
        };
        match frame["t"].as_str().unwrap_or_default() {
            "stdout" => {
                let wanted = pass_on(&Fed::Stdout(&bytes()), self.color);
                return self.passed(wanted);
            }
            "stderr" => return self.passed(pass_on(&Fed::Stderr(&bytes()), self.color)),
            "log" => {
                if let Ok(record) = serde_json::from_value::<LogRecord>(frame["record"].clone()) {
                    return self.passed(pass_on(&Fed::Log(&record), self.color));
                }
            }
            "end" => {
                for hook in frame["hooks"].as_array().into_iter().flatten() {
                    let word = |key: &str| hook[key].as_str().unwrap_or_default();
                    note(&format!("the hook {} failed: {}", word("phase"), word("message")));
                }
                if !frame["error"].is_null() {
                    complain(&Error::from_json(&frame["error"]));
                }
                let code = frame["exitCode"].as_u64().and_then(|n| u8::try_from(n).ok());
                self.end = Some(Ok(code.unwrap_or(1)));
            }
            "error" => self.end = Some(Err(Error::from_json(&frame["error"]))),
            _ => {}
        }
        true
    }

    fn passed(&mut self, wanted: bool) -> bool {
        if !wanted {
            self.end = Some(Ok(READER_LEFT));
        }
        wanted
    }
}

/// The exit code of a run whose reader has left: that of SIGPIPE.
const READER_LEFT: u8 = 128 + 13;
