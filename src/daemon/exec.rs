//! The exec service: runs a program for whoever asks, as `mcpx exec` and `mcpx run`
//! do for a person, and answers with its output as text, as one document, or
//! as a stream. Knows nothing of sockets.

use super::asks::tasks::Subject;
use super::callers;
use super::detached::detachable;
use super::exec_hooks::{Hooks, Phase};
use super::exec_stream;
use super::recording;
use super::router::{Asker, Body, Done, Origin, Response};
use super::runs::{Run, Tie};
use super::state::Daemon;
use crate::api::Client;
use crate::api::wire::{CallContext, TaskWish};
use crate::error::{Error, Kind, Result};
use crate::mcp::CancelGuard;
use crate::proc::{self, thread};
use crate::script::{
    self, Attended, Faults, Feed, Link, Local, LogRecord, Namespace, Outcome, Plan, Prepared, RunSpec, Source,
};
use crate::settings::{self, Carried, FlagValue, Layers, Settings};
use crate::util;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Extensions of the languages that code may be in besides JavaScript and TypeScript.
const LANGUAGES: &[(&str, &str)] =
    &[("python", "py"), ("sh", "sh"), ("bash", "bash"), ("ruby", "rb"), ("perl", "pl")];

/// How the output is wanted.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Output {
    /// Standard output, as it is.
    Text,
    /// One document.
    #[default]
    Structured,
    /// A frame for each piece, as it comes.
    Stream,
}

/// What is asked for.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Wanted {
    code: Option<String>,
    script: Option<String>,
    language: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    stdin: String,
    runtime: Option<String>,
    permissions: Option<String>,
    session: Option<String>,
    session_id: Option<String>,
    parent_session_id: Option<String>,
    cwd: Option<PathBuf>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    export: Option<String>,
    #[serde(default)]
    no_launcher: bool,
    timeout_ms: Option<u64>,
    #[serde(default)]
    output: Output,
    #[serde(default)]
    hooks: Hooks,
    settings: Option<Map<String, Value>>,
    task: Option<TaskWish>,
    #[serde(default)]
    context: CallContext,
}

/// How many programs run for others.
#[derive(Default)]
pub struct Slots(AtomicUsize);

/// One place among them.
pub struct Slot(Arc<Daemon>);

impl Slot {
    /// Takes a place.
    ///
    /// # Errors
    /// `Busy` when all are taken.
    fn take(daemon: &Arc<Daemon>, settings: &Settings) -> Result<Slot> {
        let most = usize::try_from(settings.get(&settings::EXEC_CONCURRENCY)).unwrap_or(usize::MAX);
        let taken = &daemon.exec.0;
        match taken.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| (n < most).then_some(n + 1)) {
            Ok(_) => Ok(Slot(daemon.clone())),
            Err(_) => Err(Error::new(Kind::Busy, format!("{most} programs run here already"))
                .hint("try again in a moment; exec.concurrency sets how many there may be")),
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.exec.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A run that is closed when its program is done with, however that comes about.
struct Opened {
    daemon: Arc<Daemon>,
    run: Arc<Run>,
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.daemon.end_sessions(self.daemon.runs.close(&self.run.id));
    }
}

/// A program that is ready to run.
pub struct Job {
    plan: Plan,
    hooks: Hooks,
    stdin: Vec<u8>,
    about: Value,
    settings: Settings,
    opened: Opened,
    _slot: Slot,
}

/// What became of it.
pub struct Ended {
    /// How the program ended.
    pub outcome: Outcome,
    /// The hooks that failed: `{phase, message}`.
    pub hooks: Vec<Value>,
}

/// Runs a program and answers with its output.
///
/// # Errors
/// `Refused` when the service is off or a `pre` hook says no, `Busy` when there is no place,
/// and what is wrong with the program, all of it at once.
pub fn exec(daemon: &Arc<Daemon>, mut wanted: Wanted, asker: &Asker<'_>) -> Result<Done> {
    let output = wanted.output;
    let job = prepare(daemon, &mut wanted, asker)?;
    if output == Output::Stream {
        let heartbeat = job.settings.get(&settings::EVENTS_HEARTBEAT);
        return Ok(Done::Response(exec_stream::response(job, asker.cancel.clone(), heartbeat)));
    }
    if let Some(wish) = wanted.task.take().filter(|_| output == Output::Structured) {
        return as_task(daemon, job, wish, asker);
    }
    let Ended { outcome, hooks } = run(job, asker.cancel, None)?;
    if output == Output::Structured {
        return Ok(Done::Json(outcome.document_with(&hooks)?.into_bytes()));
    }
    let captured = outcome.captured.unwrap_or_default();
    let mut text = captured.stdout;
    if outcome.exit_code != 0 {
        text.extend(captured.stderr);
        if let Some(ended) = &outcome.ended {
            text.extend(format!("{ended}\n").into_bytes());
        }
    }
    let mut response = Response::json(200, Vec::new());
    response.media = Some("text/plain; charset=utf-8");
    response.headers = format!("X-Mcpx-Exit-Code: {}\r\n", outcome.exit_code);
    response.body = Body::Whole(text);
    Ok(Done::Response(response))
}

/// Runs a program for somebody who rather gets a task than waits for long.
fn as_task(daemon: &Arc<Daemon>, job: Job, wish: TaskWish, asker: &Asker<'_>) -> Result<Done> {
    let inside = daemon.clone();
    let done = detachable(daemon, asker, Some(wish), move |asker| {
        let subject = Subject {
            op: "exec",
            server: "mcpx".to_owned(),
            tool: "exec".to_owned(),
            session: job.opened.run.caller.session.clone(),
            cancel: asker.cancel.clone(),
        };
        if let Some(early) = &asker.early {
            early.enter(&inside, subject);
        }
        let outcome = run(job, asker.cancel, None).and_then(|ended| {
            let document = ended.outcome.document_with(&ended.hooks)?;
            RawValue::from_string(document).map_err(|e| Error::new(Kind::Internal, e.to_string()))
        });
        let task = asker.early.as_ref().and_then(|early| early.over());
        if let Some(session) = task.and_then(|task| inside.tasks.finish(&task, outcome.clone())) {
            inside.pool.end_session(&session);
        }
        outcome
    })?;
    Ok(match done {
        // In time: the answer is the document itself.
        Done::Tool(document) => Done::Json(String::from(Box::<str>::from(document)).into_bytes()),
        other => other,
    })
}

/// Finds out all that can be known before anything starts, and opens the run.
fn prepare(daemon: &Arc<Daemon>, wanted: &mut Wanted, asker: &Asker<'_>) -> Result<Job> {
    let settings = settings_for(daemon, wanted)?;
    if !settings.get(&settings::EXEC_ENABLED) {
        return Err(Error::new(
            Kind::Refused,
            "this daemon runs no programs for others: exec.enabled is off",
        ));
    }
    // A token that nobody configured is for programs of this user, and a sandboxed one may be able
    // to read it; by TCP nobody sees which process asks, so it must not be a way out of the sandbox.
    if daemon.has_minted_token() && matches!(asker.origin, Origin::Tcp) {
        return Err(Error::new(
            Kind::Refused,
            "over TCP programs are run only for who brings a configured token",
        )
        .hint("ask on the unix socket, or set transport.bearerToken"));
    }
    let slot = Slot::take(daemon, &settings)?;
    let mut faults = Faults::default();
    let named = wanted.cwd.take().or_else(|| wanted.context.cwd.as_ref().map(PathBuf::from));
    let cwd = match &named {
        Some(dir) if dir.is_absolute() && dir.is_dir() => dir.clone(),
        Some(dir) => {
            let message = format!("cwd: {} is not a directory here, by an absolute path", dir.display());
            faults.add(Error::new(Kind::Usage, message));
            home(daemon)
        }
        None => home(daemon),
    };
    let carried = faults.keep(carried(wanted.settings.take(), asker)).unwrap_or_default();
    let dirs = &daemon.origin.dirs;
    let source = faults.keep(source(wanted, &dirs.cache));
    for name in wanted.env.keys().filter(|name| name.is_empty() || name.contains(['=', '\0'])) {
        faults.add(Error::new(Kind::Usage, format!("env: {name:?} is no name of a variable")));
    }
    faults.keep(wanted.hooks.check());
    let Some(source) = source else {
        return Err(faults
            .check()
            .err()
            .unwrap_or_else(|| Error::new(Kind::Internal, "a program without a source")));
    };
    let spec = RunSpec {
        source,
        args: wanted.args.iter().map(Into::into).collect(),
        from: cwd.clone(),
        cwd,
        env: wanted.env.iter().map(|(k, v)| (k.into(), v.into())).collect(),
        capture: wanted.output != Output::Stream,
        watched: false,
        export: wanted.export.take(),
        bare: wanted.no_launcher,
    };
    let local = Local { settings: &settings, env: &daemon.origin.env, dirs };
    let prepared = script::prepare(&spec, &local, faults)?;
    let opened = open(daemon, wanted, &prepared, &carried, asker)?;
    let link = link(daemon, &opened.run, &prepared, &carried, named)?;
    let plan = prepared.plan(link);
    let about = json!({
        "run": opened.run.id,
        "session": opened.run.caller.session,
        "runtime": plan.runtime,
        "permissions": plan.permissions,
        "script": plan.script,
        "code": wanted.code,
        "args": wanted.args,
        "cwd": plan.cwd,
    });
    Ok(Job {
        plan,
        hooks: std::mem::take(&mut wanted.hooks),
        stdin: std::mem::take(&mut wanted.stdin).into_bytes(),
        about,
        settings,
        opened,
        _slot: slot,
    })
}

/// Where a program runs whose caller is nowhere: beside the configuration.
fn home(daemon: &Daemon) -> PathBuf {
    let current = daemon.current();
    let beside = current.config_path().parent().map(Path::to_owned).filter(|dir| dir.is_dir());
    beside.or_else(|| daemon.origin.dirs.home.clone()).unwrap_or_else(|| PathBuf::from("/"))
}

/// The daemon's settings with what this request says of runtime, permissions and time.
fn settings_for(daemon: &Daemon, wanted: &Wanted) -> Result<Settings> {
    let current = daemon.current();
    let mut flags = Vec::new();
    let mut flag = |key: &str, name: &str, text: Option<String>| {
        flags.extend(text.map(|text| FlagValue { key: key.into(), text, spelled: name.into() }));
    };
    flag("script.runtime", "runtime", wanted.runtime.clone());
    flag("script.permissions", "permissions", wanted.permissions.clone());
    let limit = wanted.timeout_ms.map(|ms| if ms == 0 { "0".to_owned() } else { format!("{ms}ms") });
    let limit = limit.or_else(|| {
        let limit = current.settings.get(&settings::EXEC_TIMEOUT);
        Some(if limit.is_zero() { "0".into() } else { settings::duration_text(limit) })
    });
    flag("script.timeout", "timeoutMs", limit);
    let layers = Layers { flags, ..current.config.settings_layers(&daemon.origin.env) };
    Settings::resolve(layers)
}

/// The call settings of the request's header, and those of its body, which come first.
fn carried(said: Option<Map<String, Value>>, asker: &Asker<'_>) -> Result<Carried> {
    let Some(said) = said else { return Ok(asker.carried.clone()) };
    let mut all: Map<String, Value> =
        asker.carried.text().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    all.extend(said);
    Carried::parse(&Value::Object(all).to_string())
        .map_err(|e| Error::new(Kind::Usage, format!("settings: {}", e.message())))
}

/// The program: code, a script by path or name, or code in a language that takes a file.
fn source(wanted: &Wanted, cache: &Path) -> Result<Source> {
    let usage = |what: String| Err(Error::new(Kind::Usage, what));
    let code = match (&wanted.code, &wanted.script) {
        (Some(code), None) => code,
        (None, Some(script)) if wanted.language.is_none() => return Ok(Source::Script(script.clone())),
        (None, Some(_)) => return usage("language: a script's extension or first line says it".into()),
        _ => return usage("expected either code or script".into()),
    };
    let language = wanted.language.as_deref().unwrap_or("javascript");
    if matches!(language, "javascript" | "js" | "typescript" | "ts") {
        return Ok(Source::Inline(code.as_str().into()));
    }
    let known = LANGUAGES.iter().find(|(name, extension)| *name == language || *extension == language);
    let Some((_, extension)) = known else {
        let names: Vec<&str> = LANGUAGES.iter().map(|(name, _)| *name).collect();
        return usage(format!("language: {language:?} is not javascript, typescript, {}", names.join(", ")));
    };
    let name = format!("{}.{extension}", util::digest([code.as_bytes()], 16));
    let path = cache.join("run").join(name);
    let written = crate::paths::make_private(&cache.join("run"))
        .and_then(|()| util::write_atomic(&path, code.as_bytes(), 0o600, false));
    match written {
        Ok(()) => Ok(Source::Script(path.to_string_lossy().into_owned())),
        Err(e) => Err(Error::unwritable(path.display(), &e)),
    }
}

/// Opens the run. It may do what its asker may, and no more: it is held to all that holds the asker.
fn open(
    daemon: &Arc<Daemon>,
    wanted: &mut Wanted,
    prepared: &Prepared,
    carried: &Carried,
    asker: &Asker<'_>,
) -> Result<Opened> {
    let mut context = std::mem::take(&mut wanted.context);
    context.session = wanted.session.take().or(context.session);
    context.session_id = wanted.session_id.take().or(context.session_id);
    context.parent_session_id = wanted.parent_session_id.take().or(context.parent_session_id);
    // Its process is the program itself, once that runs.
    context.pid = None;
    let mut limits = callers::limits(daemon, &context, asker);
    limits.extend(prepared.grants().map(Arc::new));
    let run = daemon.runs.open(context, Tie::Own, limits, prepared.is_sandboxed())?;
    run.carry(carried.clone());
    Ok(Opened { daemon: daemon.clone(), run })
}

/// What the program is told.
fn link(
    daemon: &Daemon,
    run: &Run,
    prepared: &Prepared,
    carried: &Carried,
    named: Option<PathBuf>,
) -> Result<Link> {
    let current = daemon.current();
    let usable = |name: &str| {
        let server = current.config.server(name);
        server.is_some_and(|s| s.enabled && s.problem.is_none() && run.selection.takes(s))
    };
    let namespaces = current.names.iter().filter(|n| usable(&n.name));
    let channel = match prepared.wants_channel() {
        true => Some(Client::connect(current.info(&daemon.origin))?.channel(&run.id)?),
        false => None,
    };
    Ok(Link {
        run: run.id.clone(),
        session: run.caller.session.clone(),
        ephemeral: run.caller.ephemeral,
        session_id: run.caller.session_id.clone().unwrap_or_default(),
        parent_session_id: run.caller.parent_session_id.clone().unwrap_or_default(),
        namespaces: namespaces.map(|n| Namespace { name: n.name.clone(), ident: n.ident.clone() }).collect(),
        socket: current.socket.clone(),
        endpoint: current.endpoint.clone(),
        // Not the daemon's own, and its own is not needed: the socket is here.
        token: String::new(),
        config_path: current.config.path().map(Path::to_owned),
        channel,
        call_settings: carried.text(),
        report_input: true,
        served: Some(named.unwrap_or_default()),
        ..Link::default()
    })
}

/// Runs it, with its hooks around it. It ends when `cancel` is pulled.
pub fn run(job: Job, cancel: &crate::pool::Cancel, feed: Option<Feed>) -> Result<Ended> {
    let Job { plan, hooks, stdin, about, settings, opened, _slot } = job;
    let limit = settings.get(&settings::EXEC_HOOK_TIMEOUT);
    let env = &opened.daemon.origin.env;
    hooks.run(Phase::Pre, &about, env, limit).map_err(|what| {
        Error::new(Kind::Refused, format!("the pre hook refused the run: {what}")).hint(
            "a pre hook that ends with anything but 0, or takes too long, keeps the program from starting",
        )
    })?;
    let grace = plan.kill_grace;
    let mut guard: Option<CancelGuard> = None;
    let mut started = |child: &proc::Child| {
        opened.run.started(child.pid());
        let child = child.clone();
        guard = Some(cancel.on_cancel(move || end(&child, grace)));
    };
    let outcome = script::attend(plan, Attended { stdin, feed, started: &mut started })?;
    drop(guard);
    let logged = outcome.captured.iter().flat_map(|c| &c.logs);
    logged.for_each(|record| recording::script(&opened.daemon, &opened.run, record));
    let mut about = about;
    about["exitCode"] = outcome.exit_code.into();
    about["durationMs"] = ((outcome.duration.as_secs_f64() * 1e6).round() / 1e3).into();
    let captured = outcome.captured.as_ref();
    if let Some(result) = captured.and_then(|c| c.result.as_ref()) {
        about["result"] = serde_json::from_str(result.get()).unwrap_or_default();
    }
    let mut phases = vec![Phase::OnSuccess, Phase::Post];
    if let Some(error) = outcome.error() {
        about["error"] = error;
        phases[0] = Phase::OnError;
    }
    let mut failed = Vec::new();
    for phase in phases {
        if let Err(what) = hooks.run(phase, &about, env, limit) {
            failed.push(json!({"phase": phase.word(), "message": what}));
        }
    }
    Ok(Ended { outcome, hooks: failed })
}

/// Asks a program to end, and kills it when it stays.
fn end(child: &proc::Child, grace: Duration) {
    child.signal_group(libc::SIGTERM);
    let child = child.clone();
    let killer = thread::spawn("exec-killer", move || {
        if child.wait_timeout(grace).is_none() {
            child.signal_group(libc::SIGKILL);
        }
    });
    drop(killer);
}

impl Job {
    /// Records what its program says.
    pub fn recorder(&self) -> impl Fn(&LogRecord) + Send + 'static {
        let (daemon, run) = (self.opened.daemon.clone(), self.opened.run.clone());
        move |record| recording::script(&daemon, &run, record)
    }

    /// What is told of it at the beginning of a stream: `{run, session, runtime, permissions, …}`.
    pub fn about(&self) -> &Value {
        &self.about
    }
}
