//! Everything that ends instances, and what `status` shows of them. Each of
//! these is safe to call at any time from any thread.

use super::Pool;
use super::connect::Cancel;
use super::core::Core;
use super::instance::{End, Instance, Phase};
use super::server::{Limits, Server, Servers};
use crate::config::ServerDef;
use crate::settings::{self, Settings};
use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How much longer than its graces a stop may take before the pool no longer
/// waits for it: time for the kernel to reap, on a loaded machine.
const STOP_MARGIN: Duration = Duration::from_secs(5);

/// What `status` shows of an instance.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InstanceStatus {
    /// The server's configured name.
    pub server: String,
    /// What the instance is keyed by: `global`, `session:<key>`, `cwd:<path>`, …; empty in a row of state `failed`.
    pub key: String,
    /// `starting`, `ready`, `stopping`, or `failed`: not running, and in its cool-down.
    pub state: &'static str,
    /// The protocol revision that it is spoken to in, once that is known.
    pub protocol: Option<String>,
    /// The child's pid; absent for a server over HTTP.
    pub pid: Option<u32>,
    /// The session that owns it.
    pub session: Option<String>,
    /// Since it was started.
    pub uptime: Duration,
    /// Since a call was last in it; zero while one is.
    pub idle: Duration,
    /// Calls that it has answered.
    pub calls: u64,
    /// Calls that it is working on.
    pub in_flight: usize,
    /// Callers waiting for a place.
    pub queue: usize,
    /// The last failure.
    pub last_error: Option<String>,
    /// The last lines of its stderr.
    pub stderr: Option<String>,
}

impl Pool {
    /// Stops instances and returns, when they are gone, how many there were;
    /// the next call starts anew, cool-down or not. Only those of `server`
    /// (name or identifier), and only those that `session` owns, where given.
    /// Calls in flight get an error that says so; those that wait go to the successor.
    pub fn restart(&self, server: Option<&str>, session: Option<&str>) -> usize {
        let servers = match server {
            Some(name) => self.server(name).into_iter().collect(),
            None => self.servers_and_settings().0,
        };
        let mut ended = Vec::new();
        for server in servers {
            server.core.forgive();
            server.core.forget_private();
            for instance in server.core.instances() {
                let owned = session.is_none_or(|s| instance.key.session.as_deref() == Some(s));
                if owned && instance.retire(End::Restart, false) {
                    ended.push(instance);
                }
            }
        }
        self.wait(&ended);
        ended.len()
    }

    /// Ends what the session owns, in the background. What its calls share with others stays.
    pub fn end_session(&self, session: &str) {
        // First, so that a call on its way either sees this or is seen below.
        self.ended.add(session);
        for instance in self.instances() {
            if instance.key.session.as_deref() == Some(session) {
                instance.retire(End::SessionEnded, false);
            }
        }
    }

    /// The same for those that ask for it, and returns, when all is gone, how many there were.
    pub fn stop_session(&self, session: &str) -> usize {
        let mut ended = Vec::new();
        for instance in self.instances() {
            if instance.key.session.as_deref() == Some(session) && instance.retire(End::SessionEnded, false) {
                ended.push(instance);
            }
        }
        self.wait(&ended);
        ended.len()
    }

    /// Ends, in the background, what was idle for long, what belongs to a
    /// process that is gone, and what has died unnoticed. Call it about once a second.
    /// What belongs to a session that is `kept` is never idle for too long.
    pub fn reap(&self, kept: &dyn Fn(&str) -> bool) {
        let (servers, _) = self.servers_and_settings();
        for server in &servers {
            server.core.tidy();
            let limits = server.usable().ok();
            let idle = limits.map_or(Duration::ZERO, |limits| limits.idle_timeout);
            let warm = limits.and_then(Limits::warm);
            for instance in server.core.instances() {
                instance.notice_crash();
                let stays = || {
                    warm.as_ref().is_some_and(|key| key.text == instance.key.text)
                        || instance.key.session.as_deref().is_some_and(kept)
                };
                if let Some(pid) = instance.outlives_owner() {
                    instance.retire(End::ProcessEnded(pid), false);
                } else if !idle.is_zero() && instance.is_idle_for(idle) && !stays() {
                    instance.retire(End::Idle, false);
                }
            }
        }
        self.lock().leaving.retain(|core| !core.is_empty());
    }

    /// Starts, in the background, what is to run although nobody calls and does not,
    /// unless it is in its cool-down. Call it about once a second.
    pub fn keep_warm(&self) {
        let (servers, _) = self.servers_and_settings();
        for server in &servers {
            let Ok(limits) = server.usable() else { continue };
            let Some(key) = limits.warm() else { continue };
            // Does not wait: without room there is nothing to do now, and a failed start is told to its callers.
            let now = Some(Instant::now());
            let _ = server.core.instance(&key, &server.def, limits, &server.settings, now, &Cancel::new());
        }
    }

    /// Forgets that these servers (all, where none is named) have failed: what is asked of them next is tried at once.
    pub fn forgive(&self, servers: Option<&[String]>) {
        let all = self.servers_and_settings().0;
        let wanted = |s: &&Arc<Server>| servers.is_none_or(|names| names.contains(&s.def.name));
        all.iter().filter(wanted).for_each(|server| server.core.forgive());
    }

    /// Takes over another configuration. Servers whose definition is unchanged
    /// keep their instances; the others finish what is in flight and stop.
    pub fn reconfigure(&self, defs: Vec<Arc<ServerDef>>, settings: Settings) {
        let mut servers = self.lock();
        let next = Servers::new(defs, settings, &self.shared, Some(&servers));
        let before = std::mem::replace(&mut *servers, next);
        let stays = |core: &Arc<Core>| servers.list.iter().any(|s| Arc::ptr_eq(&s.core, core));
        let gone: Vec<Arc<Core>> =
            before.list.iter().map(|s| s.core.clone()).filter(|core| !stays(core)).collect();
        servers.leaving.extend(gone.iter().cloned());
        drop(servers);
        for core in gone {
            for instance in core.close() {
                instance.retire(End::Reconfigured, true);
            }
        }
    }

    /// Stops everything, in parallel, and starts nothing any more. Calls in
    /// flight get an error that says so. Returns when all is gone, at most
    /// the two graces of a stop and a little later.
    pub fn shutdown(&self) {
        let cores = {
            let mut servers = self.lock();
            servers.closed = true;
            servers.cores()
        };
        let instances: Vec<Arc<Instance>> = cores.iter().flat_map(|core| core.close()).collect();
        for instance in &instances {
            instance.retire(End::Shutdown, false);
        }
        self.wait(&instances);
    }

    /// A call is in flight or waits, or a server is starting.
    pub fn busy(&self) -> bool {
        self.instances().iter().any(|instance| {
            let look = instance.look();
            look.in_flight > 0 || look.queue > 0 || look.phase == Phase::Starting
        })
    }

    /// All instances, by server and key, and a row for each server that failed and is in its cool-down.
    pub fn status(&self) -> Vec<InstanceStatus> {
        let cores = self.lock().cores();
        let mut rows = Vec::new();
        for core in cores {
            let (trouble, cooling) = core.trouble();
            let instances = core.instances();
            if instances.is_empty() && cooling {
                rows.push(InstanceStatus {
                    server: core.name.clone(),
                    state: "failed",
                    last_error: trouble,
                    ..InstanceStatus::default()
                });
                continue;
            }
            let mut running: Vec<_> = instances.iter().map(|i| row(&core, i, trouble.as_ref())).collect();
            running.sort_by(|a, b| a.key.cmp(&b.key));
            rows.extend(running);
        }
        rows
    }

    fn instances(&self) -> Vec<Arc<Instance>> {
        let cores = self.lock().cores();
        cores.iter().flat_map(|core| core.instances()).collect()
    }

    /// Waits for instances whose end has begun.
    fn wait(&self, instances: &[Arc<Instance>]) {
        let settings = self.lock().settings.clone();
        let graces = settings.get(&settings::POOL_STOP_GRACE) + settings.get(&settings::POOL_KILL_GRACE);
        let deadline = Instant::now() + graces + STOP_MARGIN;
        for instance in instances {
            if !instance.wait_over(deadline) {
                self.shared.warnings.add(format!("server \"{}\" did not stop in time", instance.def.name));
            }
        }
    }
}

/// How many ended sessions are remembered: long enough for the calls that were on their way.
const ENDED_KEPT: usize = 1024;

/// The sessions that ended last. A key that was minted for one run never comes
/// back, so a call that still carries it must not leave an instance behind.
#[derive(Default)]
pub(super) struct Ended(Mutex<(HashSet<String>, VecDeque<String>)>);

impl Ended {
    fn add(&self, session: &str) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.0.insert(session.to_owned()) {
            kept.1.push_back(session.to_owned());
        }
        if kept.1.len() > ENDED_KEPT
            && let Some(oldest) = kept.1.pop_front()
        {
            kept.0.remove(&oldest);
        }
    }

    pub fn contains(&self, session: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0.contains(session)
    }
}

impl Servers {
    /// The lasting parts of all servers, earlier ones included.
    fn cores(&self) -> Vec<Arc<Core>> {
        self.list.iter().map(|s: &Arc<Server>| s.core.clone()).chain(self.leaving.iter().cloned()).collect()
    }
}

fn row(core: &Core, instance: &Arc<Instance>, trouble: Option<&String>) -> InstanceStatus {
    let look = instance.look();
    InstanceStatus {
        server: core.name.clone(),
        key: instance.key.text.to_string(),
        state: match look.phase {
            Phase::Starting => "starting",
            Phase::Ready => "ready",
            Phase::Draining | Phase::Stopping | Phase::Over => "stopping",
        },
        protocol: look.upstream.as_ref().map(|u| u.about().protocol),
        pid: look.upstream.as_ref().and_then(|u| u.pid()),
        session: instance.key.session.clone(),
        uptime: look.started.elapsed(),
        idle: instance.idle(),
        calls: look.calls,
        in_flight: look.in_flight,
        queue: look.queue,
        last_error: look.last_error.or_else(|| trouble.cloned()),
        stderr: look.upstream.map(|u| u.stderr_tail()).filter(|text| !text.is_empty()),
    }
}
