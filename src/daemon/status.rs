//! What the daemon says of itself and of its instances. Changes nothing.

use super::state::{Daemon, VERSION};
use crate::api::wire::InstanceRow;
use crate::pool::InstanceStatus;
use serde_json::{Value, json};

/// That the daemon is there, and which one it is.
pub(super) fn health(daemon: &Daemon) -> Value {
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

/// The daemon and its instances, as `mcpx daemon status` shows them.
pub(super) fn status(daemon: &Daemon) -> Value {
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
