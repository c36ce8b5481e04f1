//! Who asks for something: as whom a call is made, and what it is held to. Knows
//! nothing of what is asked.

use super::router::{Asker, Origin};
use super::runs;
use super::state::Daemon;
use crate::api::wire::CallContext;
use crate::catalog::Grant;
use crate::pool::Caller;
use std::sync::Arc;

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
