//! Carries out each operation of the table. Knows nothing of HTTP or of frames.

use super::artifacts;
use super::callers::{is_confined, limits};
use super::calling;
use super::discover;
use super::events::Event;
use super::exec;
use super::feed;
use super::namespaces;
use super::offers;
use super::recording;
use super::router::{Asker, Done, Origin, Params};
use super::runs::Tie;
use super::servers;
use super::sessions;
use super::state::{Daemon, VERSION};
use super::status;
use super::unusable;
use crate::api::ops::{Id, Operation};
use crate::api::wire::{OpenRun, OpenedRun};
use crate::api::{self, docs};
use crate::config::ServerDef;
use crate::error::{Error, Kind, Result};
use crate::settings;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

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
        Id::Health => json_of(&status::health(daemon)),
        Id::Hooks => json_of(&json!({
            "hooks": daemon.logs.hooks.rows(),
            "consumers": daemon.logs.consumers.rows(),
        })),
        Id::Log => recording::records(daemon, params.parse(op)?, asker),
        Id::LogChain => recording::chain_of(daemon, &params.parse::<OfId>(op)?.id),
        Id::Metrics => Ok(recording::metrics(daemon)),
        Id::Namespaces => namespaces::list(daemon, params.parse(op)?, asker),
        Id::OpenApi => json_of(&docs::openapi(VERSION)),
        Id::OpenRun => open_run(daemon, params.parse(op)?, asker),
        Id::PostLog => recording::take(daemon, params.parse(op)?),
        Id::Refresh => namespaces::refresh(daemon, params.parse(op)?, asker),
        Id::Reload => reload(daemon),
        Id::Resolve => {
            let dir = params.parse::<Resolved>(op)?.dir;
            json_of(&api::resolve(&dir, &daemon.origin.env, &daemon.origin.dirs)?)
        }
        Id::Restart => {
            let wanted: Restarted = params.parse(op)?;
            if let Some(name) = &wanted.server {
                namespaces::known(&daemon.current(), name)?;
            }
            if let Some(session) = &wanted.session {
                sessions::show(daemon, session)?;
            }
            let count = daemon.pool.restart(wanted.server.as_deref(), wanted.session.as_deref());
            json_of(&json!({"restarted": count}))
        }
        Id::Schemas => namespaces::schemas(daemon, params.parse(op)?, asker),
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
        Id::Status => json_of(&status::status(daemon)),
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
