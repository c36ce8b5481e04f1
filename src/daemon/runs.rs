//! The open runs: whose calls they are, and what ends with them. Knows nothing
//! of how a run's calls arrive.

use crate::api::wire::CallContext;
use crate::catalog::{Grant, ServerSchema, Tool, names};
use crate::config::Selection;
use crate::error::{Error, Kind, Result};
use crate::observe::{Bus, Event, kinds};
use crate::pool::{Caller, Cancel};
use crate::proc;
use crate::settings::Carried;
use crate::util;
use serde_json::json;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How many closed runs are remembered between two ticks; far more than can be opened in a second.
const CLOSED_KEPT: usize = 10_000;

/// What the run is tied to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tie {
    /// This connection of the unix socket: the run ends with it.
    Peer(u64),
    /// What the daemon itself runs, and closes.
    Own,
    /// Nothing that could be watched: it ends when it is closed, with its caller's process, or by silence.
    Loose,
    /// The same, and it ends with the run of this id, whose token opened it: what a token permits ends with its run.
    Within(String),
}

/// One run.
pub struct Run {
    /// Its id.
    pub id: String,
    /// Who its calls are made for.
    pub caller: Caller,
    /// The servers that it works with.
    pub selection: Selection,
    /// Somebody answers the questions of its calls while they wait.
    attended: AtomicBool,
    /// Pulled when the run ends: its calls are cancelled and its channels closed.
    pub ended: Cancel,
    /// A token for TCP requests of this run.
    pub token: String,
    /// What may be called: each of the lists has to permit it.
    pub limits: Vec<Arc<Vec<Grant>>>,
    /// Its program runs in a sandbox, which the daemon is not to open for it.
    pub confined: bool,
    tie: Tie,
    /// The caller's process, as it was when the run was opened; the program's own for one that the daemon runs.
    process: Mutex<Option<(u32, u64)>>,
    /// The session, in the sense of setsid(2), that the caller's process was in.
    kernel_session: Option<u32>,
    /// The settings that hold for its calls.
    carried: Mutex<Carried>,
    last_used: Mutex<Instant>,
}

impl Run {
    /// Notes that somebody uses it.
    pub fn touch(&self) {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
    /// Has these settings hold for its calls from now on.
    pub fn carry(&self, carried: Carried) {
        *self.carried.lock().unwrap_or_else(PoisonError::into_inner) = carried;
    }
    /// Has its calls wait from now on when servers ask: somebody answers.
    pub fn attend(&self) {
        self.attended.store(true, Ordering::Relaxed);
    }
    /// Whether somebody answers the questions of its calls while they wait.
    pub fn is_attended(&self) -> bool {
        self.attended.load(Ordering::Relaxed)
    }
    /// The settings that hold for its calls.
    pub fn carried(&self) -> Carried {
        self.carried.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
    /// The program of a run that the daemon itself runs has started.
    pub fn started(&self, pid: u32) {
        let process = proc::start_ticks(pid).map(|ticks| (pid, ticks));
        *self.process.lock().unwrap_or_else(PoisonError::into_inner) = process;
    }
    /// Its program sees the files that the daemon sees, and is kept from none of them: it came by the socket, or the daemon runs it.
    pub fn shares_files(&self) -> bool {
        matches!(self.tie, Tie::Peer(_) | Tie::Own) && !self.confined
    }
    fn process(&self) -> Option<(u32, u64)> {
        *self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn unused_for(&self) -> Duration {
        self.last_used.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }
}

/// All open runs.
pub struct Runs {
    open: Mutex<HashMap<String, Arc<Run>>>,
    /// Those that were closed lately, by id, with the kernel's session that they ran in.
    closed: Mutex<Vec<(String, u32)>>,
    /// Tells this daemon's keys from another's.
    seed: String,
    serial: AtomicU64,
    bus: Arc<Bus>,
}

impl Runs {
    /// None open.
    pub fn new(bus: Arc<Bus>) -> Result<Runs> {
        let (seed, serial) = (util::random_hex(4)?, AtomicU64::new(1));
        Ok(Runs { open: Mutex::default(), closed: Mutex::default(), seed, serial, bus })
    }

    /// A session key that nobody else has.
    pub fn mint(&self, what: &str) -> String {
        format!("{what}-{}-{}", self.seed, self.serial.fetch_add(1, Ordering::Relaxed))
    }

    /// Opens a run; without a session it gets one of its own.
    pub fn open(
        &self,
        context: CallContext,
        tie: Tie,
        limits: Vec<Arc<Vec<Grant>>>,
        confined: bool,
    ) -> Result<Arc<Run>> {
        // Unguessable: whoever knows it may open the run's channel.
        let id = util::random_hex(8)?;
        let selection = context.selection.clone().map_or_else(Selection::everything, Selection::from);
        let mut caller = caller(context);
        if caller.session.is_empty() {
            caller.session = self.mint("run");
            caller.ephemeral = true;
        }
        caller.run = Some(id.clone());
        let known = caller.pid.and_then(|pid| Some((pid, proc::ticks_and_session(pid)?)));
        let process = known.map(|(pid, (ticks, _))| (pid, ticks));
        let run = Arc::new(Run {
            id: id.clone(),
            caller,
            selection,
            attended: AtomicBool::new(false),
            ended: Cancel::new(),
            token: util::random_hex(32)?,
            limits,
            tie,
            confined,
            process: Mutex::new(process),
            kernel_session: known.map(|(_, (_, session))| session),
            carried: Mutex::default(),
            last_used: Mutex::new(Instant::now()),
        });
        self.lock().insert(id, run.clone());
        self.publish(&kinds::RUN_OPENED, &run);
        Ok(run)
    }

    fn publish(&self, kind: &'static kinds::Kind, run: &Run) {
        let trace = &run.caller.trace;
        let extra = (!trace.is_empty()).then(|| json!({"trace": trace}));
        let event = Event::new(kind, json!({"run": run.id})).session(&run.caller.session);
        self.bus.publish_with(event, extra);
    }

    /// The open run of that id.
    pub fn get(&self, id: &str) -> Result<Arc<Run>> {
        self.lock().get(id).cloned().ok_or_else(|| {
            Error::new(Kind::NotFound, format!("no run \"{id}\" is open"))
                .hint("a run ends with the connection that opened it")
        })
    }

    /// The open run that has this token.
    pub fn of_token(&self, token: &str) -> Option<Arc<Run>> {
        // Digests, because how long their comparison takes tells nothing of the token.
        let digest = |token: &str| util::digest([token.as_bytes()], 64);
        let given = digest(token);
        self.lock().values().find(|run| digest(&run.token) == given).cloned()
    }

    /// Whether a run with limits or in a sandbox is open.
    pub fn any_held(&self) -> bool {
        self.lock().values().any(|run| !run.limits.is_empty() || run.confined)
    }

    /// The open run with limits or in a sandbox to which a process belongs: one that the run's own process started, by however many steps.
    pub fn holding(&self, pid: u32) -> Option<Arc<Run>> {
        let held = |run: &&Arc<Run>| !run.limits.is_empty() || run.confined;
        let limited: Vec<Arc<Run>> = self.lock().values().filter(held).cloned().collect();
        if limited.is_empty() {
            return None;
        }
        std::iter::once(pid).chain(proc::ancestors(pid)).find_map(|above| {
            limited
                .iter()
                // Whoever opened a run is not held to it; the program of one that the daemon runs is.
                .filter(|run| above != pid || run.tie == Tie::Own)
                .find(|run| run.process().is_some_and(|(pid, ticks)| pid == above && proc::alive(pid, ticks)))
                .cloned()
        })
    }

    /// The limits of the session that was made for a run.
    pub fn limits_of_session(&self, session: &str) -> Vec<Arc<Vec<Grant>>> {
        let open = self.lock();
        let of = open.values().filter(|r| r.caller.ephemeral && r.caller.session == session);
        of.flat_map(|r| r.limits.iter().cloned()).collect()
    }

    /// Whether a session was made for a run that is open, and ends with it.
    pub fn is_of_a_run(&self, session: &str) -> bool {
        self.lock().values().any(|r| r.caller.ephemeral && r.caller.session == session)
    }

    /// Closes a run, and those that its token has opened; the sessions that end with them.
    pub fn close(&self, id: &str) -> Vec<String> {
        let Some(run) = self.lock().remove(id) else { return Vec::new() };
        run.ended.cancel();
        if let Some(session) = run.kernel_session {
            let mut closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
            // Whoever does not take them is not interested.
            if closed.len() < CLOSED_KEPT {
                closed.push((run.id.clone(), session));
            }
        }
        self.publish(&kinds::RUN_CLOSED, &run);
        let mut ended = self.close_where(|other| matches!(&other.tie, Tie::Within(outer) if outer == id));
        ended.extend(run.caller.ephemeral.then(|| run.caller.session.clone()));
        ended
    }

    /// A run ends with this connection.
    pub fn is_tied(&self, peer: u64) -> bool {
        self.lock().values().any(|run| run.tie == Tie::Peer(peer))
    }

    /// The runs that were closed since this was last asked: the values of `MCPX_RUN` that their
    /// programs had, each with the kernel's session that its caller was in.
    pub fn take_closed(&self) -> Vec<(String, u32)> {
        std::mem::take(&mut *self.closed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How many runs each session has open.
    pub fn by_session(&self) -> HashMap<String, usize> {
        let mut counts = HashMap::new();
        for run in self.lock().values() {
            *counts.entry(run.caller.session.clone()).or_default() += 1;
        }
        counts
    }

    /// Closes what is tied to a connection; the sessions that end with it.
    pub fn close_tied(&self, peer: u64) -> Vec<String> {
        self.close_where(|run| run.tie == Tie::Peer(peer))
    }

    /// Closes loose runs whose process is gone, or that nobody used for so long.
    pub fn close_abandoned(&self, idle: Duration) -> Vec<String> {
        self.close_where(|run| {
            matches!(run.tie, Tie::Loose | Tie::Within(_))
                && (run.process().is_some_and(|(pid, ticks)| !proc::alive(pid, ticks))
                    || !idle.is_zero() && run.unused_for() > idle)
        })
    }

    /// Closes every run.
    pub fn close_all(&self) -> Vec<String> {
        self.close_where(|_| true)
    }

    fn close_where(&self, which: impl Fn(&Run) -> bool) -> Vec<String> {
        let all: Vec<Arc<Run>> = self.lock().values().cloned().collect();
        all.iter().filter(|run| which(run)).flat_map(|run| self.close(&run.id)).collect()
    }

    /// Whether the session of every open run is of this sort.
    pub fn all(&self, sort: impl Fn(&str) -> bool) -> bool {
        self.lock().values().all(|run| sort(&run.caller.session))
    }

    /// How many runs are open, and how many sessions they belong to.
    pub fn count(&self) -> (usize, usize) {
        let open = self.lock();
        let sessions: HashSet<&str> = open.values().map(|r| r.caller.session.as_str()).collect();
        (open.len(), sessions.len())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Run>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Refuses a tool that one of the lists does not grant.
///
/// `server` is the identifier that stands for the server in a program.
///
/// # Errors
/// `Refused`, with the profiles and what they do grant.
pub fn check(limits: &[Arc<Vec<Grant>>], server: &str, schema: &ServerSchema, tool: &Tool) -> Result<()> {
    for grants in limits {
        if grants.iter().any(|g| g.permits(&schema.server, &tool.name)) {
            continue;
        }
        // A grant may also be written as programs write the call.
        let idents = names::unique_idents(schema.tools.iter().map(|t| t.name.as_str()));
        let at = schema.tools.iter().position(|t| t.name == tool.name);
        let ident = at.and_then(|at| idents.get(at));
        if ident.is_some_and(|ident| grants.iter().any(|g| g.permits(server, ident))) {
            continue;
        }
        let mut profiles: Vec<&str> = Vec::new();
        for grant in grants.iter() {
            if !profiles.contains(&grant.profile()) {
                profiles.push(grant.profile());
            }
        }
        let patterns: Vec<&str> = grants.iter().map(Grant::pattern).collect();
        let who = match profiles.as_slice() {
            [] => "its permission profile grants no tool".to_owned(),
            names => {
                let plural = if names.len() == 1 { "" } else { "s" };
                let grant = if names.len() == 1 { "grants" } else { "grant" };
                format!("the permission profile{plural} {} {grant} {}", names.join(", "), patterns.join(", "))
            }
        };
        let error = Error::new(
            Kind::Refused,
            format!("this run may not call {}.{}: {who}", schema.server, tool.name),
        );
        let profile = profiles.first().copied().unwrap_or("<profile>");
        return Err(error
            .server(&schema.server)
            .tool(&tool.name)
            .hint(format!("add \"{}.{}\" to script.profiles.{profile}.tools", schema.server, tool.name)));
    }
    Ok(())
}

/// The caller that a context describes; its session may be empty.
pub fn caller(context: CallContext) -> Caller {
    Caller {
        session: context.session.unwrap_or_default(),
        session_id: context.session_id,
        parent_session_id: context.parent_session_id,
        ephemeral: context.ephemeral,
        cwd: context.cwd,
        git: context.git,
        pid: context.pid,
        run: context.run,
        trace: context.trace,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_a_session_gets_one_that_ends_with_it() {
        let runs = Runs::new(Bus::new(8)).unwrap();
        let a = runs.open(CallContext::default(), Tie::Peer(1), Vec::new(), false).unwrap();
        let b = runs.open(CallContext::default(), Tie::Peer(1), Vec::new(), false).unwrap();
        assert!(a.caller.ephemeral && a.caller.session != b.caller.session && a.id != b.id);
        let named = CallContext { session: Some("s".into()), ..Default::default() };
        let c = runs.open(named, Tie::Peer(2), Vec::new(), false).unwrap();
        assert!(!c.caller.ephemeral);
        assert_eq!(runs.count(), (3, 3));
        let mut ended = runs.close_tied(1);
        ended.sort();
        let mut wanted = [a.caller.session.clone(), b.caller.session.clone()];
        wanted.sort();
        assert_eq!(ended, wanted);
        assert!(a.ended.is_cancelled() && !c.ended.is_cancelled());
        assert!(runs.get(&a.id).is_err());
        assert!(runs.close(&c.id).is_empty());
        assert!(runs.close(&c.id).is_empty());
        assert_eq!(runs.count(), (0, 0));
    }

    #[test]
    fn a_loose_run_ends_with_its_process_or_by_silence() {
        let runs = Runs::new(Bus::new(8)).unwrap();
        let mine = CallContext { pid: Some(std::process::id()), ..Default::default() };
        let run = runs.open(mine, Tie::Loose, Vec::new(), false).unwrap();
        assert!(runs.close_abandoned(Duration::ZERO).is_empty());
        assert!(runs.close_abandoned(Duration::from_secs(60)).is_empty());
        std::thread::park_timeout(Duration::from_millis(2));
        assert_eq!(runs.close_abandoned(Duration::from_millis(1)), std::slice::from_ref(&run.caller.session));
        let gone = Run { process: Mutex::new(Some((std::process::id(), 0))), ..unshared(&runs) };
        let id = gone.id.clone();
        runs.lock().insert(id, Arc::new(gone));
        assert_eq!(runs.close_abandoned(Duration::ZERO).len(), 1);
    }

    fn unshared(runs: &Runs) -> Run {
        let run = runs.open(CallContext::default(), Tie::Loose, Vec::new(), false).unwrap();
        runs.lock().remove(&run.id);
        Arc::into_inner(run).unwrap()
    }
}
