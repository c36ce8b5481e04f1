//! Carries out each operation of the table. Knows nothing of HTTP or of frames.

use super::artifacts;
use super::calling;
use super::discover;
use super::events::Event;
use super::exec;
use super::feed;
use super::offers;
use super::recording;
use super::router::{Asker, Done, Origin, Params};
use super::runs::{self, Tie};
use super::selection::{Chosen, selection};
use super::servers;
use super::sessions;
use super::state::{Current, Daemon, VERSION};
use super::unusable;
use crate::api::ops::{Id, Operation};
use crate::api::wire::{CallContext, InstanceRow, NamespaceRow, OpenRun, OpenedRun, SelectedProfiles};
use crate::api::{self, docs};
use crate::catalog::{Grant, ServerSchema};
use crate::config::{Selection, ServerDef};
use crate::error::{Error, Kind, Result};
use crate::pool::{Caller, InstanceStatus, Namespace, STILL_STARTING};
use crate::settings;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

#[derive(Deserialize)]
struct Fresh {
    #[serde(default)]
    fresh: bool,
    #[serde(default)]
    known: bool,
    #[serde(rename = "waitMs")]
    wait_ms: Option<u64>,
    #[serde(flatten)]
    chosen: Chosen,
}

#[derive(Deserialize)]
struct Wanted {
    #[serde(default, deserialize_with = "one_or_many")]
    server: Vec<String>,
    #[serde(default)]
    fresh: bool,
    #[serde(rename = "waitMs")]
    wait_ms: Option<u64>,
    #[serde(flatten)]
    chosen: Chosen,
}

#[derive(Deserialize)]
struct Refreshed {
    servers: Option<Vec<String>>,
    selection: Option<SelectedProfiles>,
}

#[derive(Deserialize)]
struct Restarted {
    server: Option<String>,
    session: Option<String>,
}

#[derive(Deserialize)]
struct OfId {
    id: String,
}

#[derive(Deserialize)]
struct OfKey {
    key: String,
}

#[derive(Deserialize)]
struct OfSession {
    session: String,
}

#[derive(Deserialize)]
struct NewSession {
    name: Option<String>,
    #[serde(rename = "ttlMs")]
    ttl_ms: Option<u64>,
}

#[derive(Deserialize)]
struct Kept {
    session: String,
    #[serde(rename = "ttlMs")]
    ttl_ms: u64,
}

#[derive(Deserialize)]
struct NewValue {
    key: String,
    value: Value,
}

#[derive(Deserialize)]
struct OfRun {
    run: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Farewell {
    drain_ms: Option<u64>,
}

#[derive(Deserialize)]
struct Resolved {
    dir: PathBuf,
}

/// A list of names; one alone needs no brackets.
pub(super) fn one_or_many<'de, D: Deserializer<'de>>(
    source: D,
) -> std::result::Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Names {
        One(String),
        Many(Vec<String>),
    }
    Names::deserialize(source).map(|names| match names {
        Names::One(name) => vec![name],
        Names::Many(names) => names,
    })
}

/// Carries out one operation. A bug in doing so is an error, and ends neither the
/// connection nor what depends on it.
pub fn perform(
    daemon: &Arc<Daemon>,
    op: &'static Operation,
    params: Params<'_>,
    asker: &Asker<'_>,
) -> Result<Done> {
    catch_unwind(AssertUnwindSafe(|| dispatch(daemon, op, params, asker))).unwrap_or_else(|_| {
        Err(Error::new(Kind::Internal, format!("{} broke off: a bug in mcpx", op.name))
            .hint("the daemon's log says where"))
    })
}

fn dispatch(
    daemon: &Arc<Daemon>,
    op: &'static Operation,
    params: Params<'_>,
    asker: &Asker<'_>,
) -> Result<Done> {
    match (&asker.origin, &asker.held) {
        // It may open runs of its own, which are held to the same.
        // A program of such a run may be able to read the token that the daemon made for its user, and by TCP
        // nobody sees which process asks.
        (Origin::Tcp, _) if op.mutates && daemon.has_minted_token() && daemon.runs.any_held() => {
            return Err(Error::new(
                Kind::Refused,
                format!("{} is not done over TCP while a run with limits is open", op.name),
            )
            .hint("ask on the unix socket, or set transport.bearerToken"));
        }
        (Origin::Channel(_), _) if !op.on_channel && !matches!(op.id, Id::OpenRun | Id::CloseRun) => {
            return Err(Error::new(Kind::Refused, format!("{} cannot be asked by a run", op.name))
                .hint("a run's channel and token permit calls and questions"));
        }
        (_, Some(_)) if !op.on_channel && !matches!(op.id, Id::OpenRun | Id::CloseRun | Id::Channel) => {
            return Err(Error::new(
                Kind::Refused,
                format!("{} cannot be asked by what a run with limits has started", op.name),
            ));
        }
        _ => {}
    }
    match op.id {
        Id::Artifact => artifacts::show(daemon, &params.parse(op)?),
        Id::ArtifactContent => artifacts::content(daemon, &params.parse(op)?),
        Id::Artifacts => artifacts::list(daemon, &params.parse(op)?),
        Id::RemoveArtifact => artifacts::remove(daemon, &params.parse(op)?),
        Id::StoreArtifact => artifacts::store(daemon, params.parse(op)?, asker),
        Id::SweepArtifacts => artifacts::sweep(daemon),
        Id::UploadArtifact => artifacts::upload(daemon, op, params),
        Id::Call => calling::call(daemon, params.parse(op)?, asker),
        Id::Channel => match asker.origin {
            Origin::Unix(_) => {
                let run = daemon.runs.get(&params.parse::<OfRun>(op)?.run)?;
                if !asker.carried.is_empty() {
                    run.carry(asker.carried.clone());
                }
                Ok(Done::Channel(run))
            }
            _ => Err(Error::new(Kind::Refused, "a channel is opened on the unix socket")),
        },
        Id::CloseRun => close_run(daemon, &params.parse::<OfRun>(op)?.run),
        Id::Events => feed::events(daemon, params.parse(op)?, asker),
        Id::Exec => exec::exec(daemon, params.parse(op)?, asker),
        Id::Health => json_of(&health(daemon)),
        Id::Hooks => json_of(&json!({
            "hooks": daemon.logs.hooks.rows(),
            "consumers": daemon.logs.consumers.rows(),
        })),
        Id::Log => recording::records(daemon, params.parse(op)?, asker),
        Id::LogChain => recording::chain_of(daemon, &params.parse::<OfId>(op)?.id),
        Id::Metrics => Ok(recording::metrics(daemon)),
        Id::Namespaces => {
            let Fresh { fresh, known, wait_ms, chosen } = params.parse(op)?;
            let selection = selection(chosen.said(), asker);
            if known {
                return json_of(&json!({"namespaces": known_rows(daemon, &selection)}));
            }
            let wait = wait_ms.map(Duration::from_millis);
            let all = daemon.pool.namespaces_of(fresh, wait, &|server| selection.takes(server));
            json_of(&json!({"namespaces": rows(daemon, &all)}))
        }
        Id::OpenApi => json_of(&docs::openapi(VERSION)),
        Id::OpenRun => open_run(daemon, params.parse(op)?, asker),
        Id::PostLog => recording::take(daemon, params.parse(op)?),
        Id::Refresh => refresh(daemon, params.parse(op)?, asker),
        Id::Reload => reload(daemon),
        Id::Resolve => {
            let dir = params.parse::<Resolved>(op)?.dir;
            json_of(&api::resolve(&dir, &daemon.origin.env, &daemon.origin.dirs)?)
        }
        Id::Restart => {
            let wanted: Restarted = params.parse(op)?;
            if let Some(name) = &wanted.server {
                known(&daemon.current(), name)?;
            }
            if let Some(session) = &wanted.session {
                sessions::show(daemon, session)?;
            }
            let count = daemon.pool.restart(wanted.server.as_deref(), wanted.session.as_deref());
            json_of(&json!({"restarted": count}))
        }
        Id::Schemas => schemas(daemon, params.parse(op)?, asker),
        Id::Search => discover::search(daemon, params.parse(op)?, asker),
        Id::Types => discover::types(daemon, params.parse(op)?, asker),
        Id::Servers => servers::list(daemon, params.parse(op)?, asker),
        Id::PutServer => servers::put(daemon, &params.parse(op)?, asker),
        Id::DeleteServer => servers::delete(daemon, &params.parse(op)?, asker),
        Id::Sessions => json_of(&json!({"sessions": sessions::list(daemon)})),
        Id::Session => json_of(&sessions::show(daemon, &params.parse::<OfSession>(op)?.session)?),
        Id::NewSession => {
            let NewSession { name, ttl_ms } = params.parse(op)?;
            json_of(&sessions::new(daemon, name.as_deref(), ttl_ms.map(Duration::from_millis))?)
        }
        Id::KeepSession => {
            let Kept { session, ttl_ms } = params.parse(op)?;
            json_of(&sessions::keep(daemon, &session, Duration::from_millis(ttl_ms))?)
        }
        Id::EndSession => {
            let session = params.parse::<OfSession>(op)?.session;
            let stopped = sessions::end(daemon, &session)?;
            json_of(&json!({"session": session, "stopped": stopped}))
        }
        Id::Setting => json_of(&daemon.current().settings.row(&params.parse::<OfKey>(op)?.key)?),
        Id::Settings => json_of(&json!({"settings": daemon.current().settings.rows()})),
        Id::SetSetting => {
            let wanted: NewValue = params.parse(op)?;
            let value = settings::runtime_value(&wanted.key, &wanted.value)?;
            let now = daemon.current().settings.row(&value.key)?;
            unusable::check(&value.key, &now["value"], &value.value)?;
            override_setting(daemon, value.key, Some(value.value))
        }
        Id::UnsetSetting => {
            let key = settings::changeable(&params.parse::<OfKey>(op)?.key)?.key();
            override_setting(daemon, key.to_owned(), None)
        }
        Id::Shutdown => {
            match params.parse::<Farewell>(op)?.drain_ms {
                None | Some(0) => daemon.tell(Event::Shutdown("it was asked to")),
                Some(ms) => daemon.tell(Event::Drain(Duration::from_millis(ms))),
            }
            json_of(&json!({"ok": true}))
        }
        Id::Stats => recording::statistics(daemon, params.parse(op)?),
        Id::Status => json_of(&status(daemon)),
        Id::Resources => offers::list(daemon, params.parse(op)?, offers::RESOURCES, asker),
        Id::ResourceTemplates => offers::list(daemon, params.parse(op)?, offers::TEMPLATES, asker),
        Id::ReadResource => offers::read(daemon, params.parse(op)?, asker),
        Id::SubscribeResource => offers::subscribe(daemon, &params.parse(op)?, true, asker),
        Id::UnsubscribeResource => offers::subscribe(daemon, &params.parse(op)?, false, asker),
        Id::Prompts => offers::list(daemon, params.parse(op)?, offers::PROMPTS, asker),
        Id::GetPrompt => offers::prompt(daemon, params.parse(op)?, asker),
        Id::Complete => offers::complete(daemon, params.parse(op)?, asker),
        Id::Questions => calling::questions(daemon),
        Id::Question => calling::question(daemon, &params.parse(op)?),
        Id::AnswerQuestion => calling::answer(daemon, params.parse(op)?),
        Id::Tasks => calling::tasks(daemon),
        Id::Task => calling::task(daemon, &params.parse(op)?),
        Id::TaskResult => calling::result(daemon, &params.parse(op)?, asker),
        Id::CancelTask => calling::cancel(daemon, &params.parse(op)?),
    }
}

pub(super) fn json_of(value: &impl Serialize) -> Result<Done> {
    serde_json::to_vec(value)
        .map(Done::Json)
        .map_err(|e| Error::new(Kind::Internal, format!("writing an answer: {e}")))
}

/// Has the main loop set or drop an override; answers with the setting as it is then.
fn override_setting(daemon: &Daemon, key: String, value: Option<Value>) -> Result<Done> {
    let wanted = key.clone();
    daemon.ask(|reply| Event::Override(key, value, reply))??;
    json_of(&daemon.current().settings.row(&wanted)?)
}

/// Whether who asks is a sandboxed program, or was started by one.
pub(super) fn is_confined(asker: &Asker<'_>) -> bool {
    asker.held.as_ref().is_some_and(|run| run.confined)
}

/// What a call, or a run that is opened, is held to.
pub(super) fn limits(daemon: &Daemon, context: &CallContext, asker: &Asker<'_>) -> Vec<Arc<Vec<Grant>>> {
    if let Origin::Channel(run) = &asker.origin {
        return run.limits.clone();
    }
    let mut limits = asker.held.as_ref().map(|run| run.limits.clone()).unwrap_or_default();
    if let Some(run) = context.run.as_deref().and_then(|id| daemon.runs.get(id).ok()) {
        limits.extend(run.limits.iter().cloned());
    }
    if let Some(session) = &context.session {
        limits.extend(daemon.runs.limits_of_session(session));
    }
    limits
}

/// Who calls, and whether the session ends with this call.
pub(super) fn caller_of(daemon: &Daemon, context: CallContext, asker: &Asker<'_>) -> (Caller, bool) {
    if let Origin::Channel(run) = &asker.origin {
        run.touch();
        return (run.caller.clone(), false);
    }
    let run = context.run.as_deref().and_then(|id| daemon.runs.get(id).ok());
    if let Some(run) = &run {
        run.touch();
    }
    let mut caller = runs::caller(context);
    if let (true, Some(run)) = (caller.git.is_empty(), &run)
        && caller.cwd == run.caller.cwd
    {
        caller.git.clone_from(&run.caller.git);
    }
    if let (true, Some(run)) = (caller.trace.is_empty(), &run) {
        caller.trace.clone_from(&run.caller.trace);
    }
    if !caller.session.is_empty() {
        daemon.sessions.touch_of(&caller, &daemon.runs);
        return (caller, false);
    }
    // A program that a run started calls by itself: it belongs to the run.
    if let Some(run) = run {
        caller.session.clone_from(&run.caller.session);
        caller.ephemeral = run.caller.ephemeral;
        return (caller, false);
    }
    caller.session = daemon.runs.mint("call");
    caller.ephemeral = true;
    (caller, true)
}

fn open_run(daemon: &Arc<Daemon>, wanted: OpenRun, asker: &Asker<'_>) -> Result<Done> {
    let tie = match &asker.origin {
        Origin::Unix(peer) => Tie::Peer(*peer),
        Origin::Channel(run) => Tie::Within(run.id.clone()),
        Origin::Tcp => Tie::Loose,
    };
    let current = daemon.current();
    // A run inside a run may have less than that one, never more.
    let mut limits = limits(daemon, &wanted.context, asker);
    limits.extend(wanted.tools.map(Arc::new));
    let run = daemon.runs.open(wanted.context, tie, limits, wanted.confined || is_confined(asker))?;
    daemon.sessions.touch_of(&run.caller, &daemon.runs);
    run.carry(asker.carried.clone());
    if wanted.interactive {
        run.attend();
    }
    let usable =
        |server: &ServerDef| server.enabled && server.problem.is_none() && run.selection.takes(server);
    json_of(&OpenedRun {
        run: run.id.clone(),
        session: run.caller.session.clone(),
        ephemeral: run.caller.ephemeral,
        namespaces: current
            .config
            .servers
            .iter()
            .zip(&current.names)
            .filter(|(server, _)| usable(server))
            .map(|(_, names)| names.clone())
            .collect(),
        endpoint: current.endpoint.clone(),
        token: if current.endpoint.is_empty() { String::new() } else { run.token.clone() },
    })
}

fn close_run(daemon: &Daemon, id: &str) -> Result<Done> {
    daemon.runs.get(id)?;
    daemon.end_sessions(daemon.runs.close(id));
    json_of(&json!({"ok": true}))
}

fn health(daemon: &Daemon) -> Value {
    let current = daemon.current();
    json!({
        "ok": true,
        "name": "mcpx",
        "version": VERSION,
        "pid": daemon.origin.pid,
        "key": current.config.key,
        "configPath": current.config_path(),
        "startedAt": daemon.origin.started_at,
        "uptimeMs": daemon.origin.uptime_ms(),
        "servers": current.config.servers.len(),
        "sessions": daemon.runs.count().1,
        "api": 1,
    })
}

fn status(daemon: &Daemon) -> Value {
    let current = daemon.current();
    let info = current.info(&daemon.origin);
    let (runs, sessions) = daemon.runs.count();
    let mut described = json!({
        "version": VERSION,
        "pid": info.pid,
        "key": info.key,
        "configPath": info.config_path,
        "sources": info.sources,
        "servers": info.servers,
        "socket": info.socket,
        "endpoint": info.endpoint,
        "log": daemon.logs.file.as_ref().map(|l| l.path()).unwrap_or_default(),
        "startedAt": info.started_at,
        "uptimeMs": daemon.origin.uptime_ms(),
        "sessions": sessions,
        "runs": runs,
        "connections": daemon.places.taken(),
        "detached": daemon.origin.detached,
    });
    if let Some(problem) = &current.problem {
        described["problem"] = problem.to_json();
    }
    if !current.restart.is_empty() {
        described["restart"] = json!(current.restart);
    }
    let warnings: Vec<String> =
        current.config.warnings.iter().cloned().chain(daemon.pool.warnings()).collect();
    if !warnings.is_empty() {
        described["warnings"] = warnings.into();
    }
    let instances: Vec<InstanceRow> = daemon.pool.status().into_iter().map(instance).collect();
    json!({"daemon": described, "instances": instances})
}

/// An instance as it is shown.
pub(super) fn instance(status: InstanceStatus) -> InstanceRow {
    InstanceRow {
        server: status.server,
        key: status.key,
        state: status.state.into(),
        protocol: status.protocol,
        pid: status.pid,
        session: status.session,
        uptime_ms: u64::try_from(status.uptime.as_millis()).unwrap_or(u64::MAX),
        idle_ms: u64::try_from(status.idle.as_millis()).unwrap_or(u64::MAX),
        calls: status.calls,
        in_flight: status.in_flight,
        queue: status.queue,
        last_error: status.last_error,
        stderr: status.stderr,
    }
}

fn rows(daemon: &Daemon, namespaces: &[Namespace]) -> Vec<NamespaceRow> {
    let current = daemon.current();
    namespaces.iter().map(|(server, schema)| row(&current, server, schema)).collect()
}

/// The same without asking any server: what is not known yet is said to be so.
fn known_rows(daemon: &Daemon, selection: &Selection) -> Vec<NamespaceRow> {
    let current = daemon.current();
    let servers = current.config.servers.iter().filter(|server| selection.takes(server));
    let of = |server: &Arc<ServerDef>| {
        let schema = match (daemon.pool.known(&server.name), &server.problem) {
            (Some(schema), _) => Ok(schema),
            (None, Some(problem)) => Err(problem.clone()),
            (None, None) => Err(Error::new(Kind::Unavailable, "its tools are not known yet")),
        };
        let mut row = row(&current, server, &schema);
        if row.state == "failed" && server.problem.is_none() {
            (row.state, row.error) = ("unknown".into(), None);
        }
        row
    };
    servers.map(of).collect()
}

fn row(current: &Current, server: &ServerDef, schema: &Result<Arc<ServerSchema>>) -> NamespaceRow {
    let ident = current.names.iter().find(|n| n.name == server.name).map(|n| n.ident.clone());
    let mut row = NamespaceRow {
        name: server.name.clone(),
        ident: ident.unwrap_or_else(|| server.name.clone()),
        description: server.description.clone(),
        source: Some(server.source.as_path().to_owned()),
        ..NamespaceRow::default()
    };
    match schema {
        _ if !server.enabled => row.state = "disabled".into(),
        Ok(schema) => {
            row.state = "ready".into();
            row.tools = Some(schema.tools.len());
            row.fetched_at = Some(schema.fetched_at);
            row.description = row.description.or_else(|| crate::catalog::rows::about_server(schema));
        }
        Err(error) => {
            let starting = error.hint_text() == Some(STILL_STARTING);
            row.state = if starting { "starting" } else { "failed" }.into();
            row.error = Some(error.to_json());
        }
    }
    row
}

/// The servers that were asked for, by configured name; an unknown one is an error row.
fn wanted(
    current: &Current,
    asked: &[String],
    selection: &Selection,
) -> Vec<Result<String, (String, Error)>> {
    if asked.is_empty() {
        let enabled = current.config.servers.iter().filter(|s| s.enabled && selection.takes(s));
        return enabled.map(|s| Ok(s.name.clone())).collect();
    }
    let one = |name: &String| {
        let known = known(current, name)?;
        match current.config.server(&known).and_then(|server| selection.refuses(server)) {
            Some(refused) => Err(refused),
            None => Ok(known),
        }
    };
    asked.iter().map(|name| one(name).map_err(|e| (name.clone(), e))).collect()
}

/// The configured name that a name or identifier stands for.
fn known(current: &Current, name: &str) -> Result<String> {
    let exact = current.names.iter().find(|n| n.name == name);
    if let Some(found) = exact.or_else(|| current.names.iter().find(|n| n.ident == name)) {
        return Ok(found.name.clone());
    }
    let names: Vec<&str> = current.names.iter().map(|n| n.name.as_str()).collect();
    crate::catalog::names::find_server(name, &names).map(str::to_owned)
}

fn schemas(daemon: &Arc<Daemon>, asked: Wanted, asker: &Asker<'_>) -> Result<Done> {
    #[derive(Serialize)]
    struct Schemas<'a> {
        schemas: Vec<&'a ServerSchema>,
        errors: Vec<Value>,
    }
    let selection = selection(asked.chosen.said(), asker);
    let wait = asked.wait_ms.map(Duration::from_millis);
    let all = each_schema(daemon, &asked.server, asked.fresh, wait, &selection);
    let mut out = Schemas { schemas: Vec::new(), errors: Vec::new() };
    for (name, outcome) in &all {
        match outcome {
            Ok(schema) => out.schemas.push(schema),
            Err(error) => out.errors.push(json!({"server": name, "error": error.to_json()})),
        }
    }
    json_of(&out)
}

pub(super) type Named = (String, Result<Arc<ServerSchema>>);

/// The schemas of the servers that were asked for, in that order; several are read at once.
pub(super) fn each_schema(
    daemon: &Arc<Daemon>,
    asked: &[String],
    fresh: bool,
    wait: Option<Duration>,
    selection: &Selection,
) -> Vec<Named> {
    let wanted = wanted(&daemon.current(), asked, selection);
    let names: Vec<String> = wanted.iter().flatten().cloned().collect();
    let mut schemas = daemon.pool.schemas(&names, fresh, wait).into_iter();
    let named = |one| match one {
        Err((name, error)) => Some((name, Err(error))),
        Ok(name) => Some((name, schemas.next()?)),
    };
    wanted.into_iter().filter_map(named).collect()
}

fn refresh(daemon: &Arc<Daemon>, wanted: Refreshed, asker: &Asker<'_>) -> Result<Done> {
    let selection = selection(wanted.selection, asker);
    let Some(asked) = wanted.servers.filter(|s| !s.is_empty()) else {
        // Somebody wants it tried now, whatever went wrong before.
        daemon.pool.forgive(None);
        let all = daemon.pool.namespaces_of(true, None, &|server| selection.takes(server));
        return json_of(&json!({"namespaces": rows(daemon, &all)}));
    };
    let current = daemon.current();
    let named = asked.iter().map(|name| known(&current, name)).collect::<Result<Vec<_>>>()?;
    daemon.pool.forgive(Some(&named));
    let rows: Vec<NamespaceRow> = each_schema(daemon, &asked, true, None, &selection)
        .iter()
        .filter_map(|(name, schema)| Some(row(&current, current.config.server(name)?, schema)))
        .collect();
    json_of(&json!({"namespaces": rows}))
}

fn reload(daemon: &Daemon) -> Result<Done> {
    let changed = daemon.ask(Event::Reload)?;
    let current = daemon.current();
    let mut out = json!({
        "key": current.config.key,
        "changed": changed,
        "socket": current.socket,
    });
    if let Some(taken) = daemon.taken() {
        out["taken"] = taken;
    }
    if let Some(problem) = &current.problem {
        out["problem"] = problem.to_json();
    }
    json_of(&out)
}
