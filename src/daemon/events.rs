//! The main loop: one closed set of events owns the daemon's life. It follows
//! the configuration, keeps the names, ends what is over, and stops. Knows
//! nothing of requests.

use super::follow::Watched;
use super::http;
use super::names::Names;
use super::recording;
use super::state::{Current, Daemon};
use crate::api::info;
use crate::config::{self, Config, LoadOptions, ServerDef};
use crate::error::{Error, Kind, Result};
use crate::log;
use crate::observe::{Event as Happened, kinds};
use crate::proc;
use crate::settings::{self, FlagValue, Layers, RuntimeValue, Settings, Taken};
use crate::util::{Env, now_ms};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// How long those who wait for an answer get to receive it when the daemon
/// stops, after the servers have been stopped.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Between two looks at whether calls are still in flight when the daemon is to stop after them.
const DRAIN_LOOK: Duration = Duration::from_millis(10);
/// The first process of a namespace, to which every orphan there is given.
const FIRST_PROCESS: u32 = 1;

/// Everything that can happen to a daemon.
pub enum Event {
    /// A setting is to have this value from now on, or its own again; the answer is whether it could be done.
    Override(String, Option<Value>, Sender<Result<()>>),
    /// The configuration is to be read again now; the answer is whether it was another.
    Reload(Sender<bool>),
    /// The daemon is to stop, and why.
    Shutdown(&'static str),
    /// The same, once the calls in flight have ended, or that long after.
    Drain(Duration),
    /// A signal arrived.
    Signal(i32),
}

/// What the main loop alone has.
pub struct Life {
    /// What is shared.
    pub daemon: Arc<Daemon>,
    /// The names in force.
    pub names: Names,
    /// Names of earlier configurations, and until when they are kept.
    pub earlier: Vec<(Names, Instant)>,
    /// The listener over TCP, if there is one.
    pub tcp: Option<http::Tcp>,
    /// The configuration files as they were when they were read.
    pub watched: Watched,
    /// The directory that relative names are taken from.
    pub dir: PathBuf,
    /// The settings that the command line gave.
    pub flags: Vec<FlagValue>,
    /// The settings that it started with: those that are taken at start alone stay at these.
    pub booted: Settings,
    /// What was set while it runs.
    pub overrides: Vec<RuntimeValue>,
    /// It says nothing of its own life.
    pub quiet: bool,
    /// Memory that is free again was given back since somebody was last served.
    pub trimmed: bool,
    /// How long calls in flight may take to end once it is to stop.
    pub drain: Duration,
    /// Applying the configuration failed for a reason outside of it: to be tried again.
    pub again: bool,
}

/// The settings for a configuration.
///
/// A daemon that a command started has that command's environment, but not its
/// wishes for its own calls: those travel with each request, and others' calls have none of them.
pub fn settings_of(
    config: &Config,
    env: &Env,
    flags: &[FlagValue],
    overrides: &[RuntimeValue],
    detached: bool,
) -> Result<Settings> {
    let of_calls =
        |key: &str| detached && settings::declared(key).is_some_and(|d| d.scope() == settings::Scope::Call);
    let mut own = env.clone();
    for setting in settings::ALL.iter().filter(|d| of_calls(d.key())) {
        setting.env_names().iter().for_each(|name| own.remove(name));
    }
    let (flags, runtime) = (flags.to_vec(), overrides.to_vec());
    let mut layers = Layers { flags, runtime, ..config.settings_layers(&own) };
    let takes = |flag: &str| match settings::flag_match(flag) {
        Some((setting, negated)) => Taken::Setting(setting, negated),
        // Of some command, or of none: the commands look at that.
        None => Taken::Elsewhere,
    };
    layers.presets = settings::expand_presets(&layers, &takes)?;
    layers.presets.retain(|entry| !entry.key.is_some_and(of_calls));
    Settings::resolve(layers)
}

/// The settings whose new value a daemon takes only when it starts anew.
fn waiting(booted: &Settings, now: &Settings) -> Vec<&'static str> {
    let of_daemon = settings::ALL.iter().filter(|d| d.scope() == settings::Scope::Daemon);
    let cold = of_daemon.filter(|d| !d.hot() && !d.spec().bootstrap).map(|d| d.key());
    let value = |settings: &Settings, key| settings.explain(key).map(|row| row.value);
    cold.filter(|key| value(booted, key) != value(now, key)).collect()
}

/// Takes over the level of the log.
pub fn set_level(settings: &Settings) {
    if let Some(level) = log::Level::from_word(&settings.get(&settings::LOGGING_LEVEL)) {
        log::set_level(level);
    }
}

impl Life {
    /// Runs until the daemon is to stop, and stops it.
    pub fn run(mut self, events: &Receiver<Event>) {
        self.daemon.pool.keep_warm();
        recording::attach(&self.daemon, self.quiet);
        let mut tick = self.tick();
        let mut next = Instant::now() + tick;
        let why = loop {
            match events.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(Event::Reload(reply)) => {
                    let changed = self.reload();
                    let _ = reply.send(changed);
                }
                Ok(Event::Override(key, value, reply)) => {
                    let _ = reply.send(self.override_setting(key, value));
                }
                Ok(Event::Shutdown(why)) => break why.to_owned(),
                Ok(Event::Drain(patience)) => {
                    self.drain = patience;
                    break "it was asked to, once its calls have ended".to_owned();
                }
                Ok(Event::Signal(libc::SIGHUP)) => {
                    self.reload();
                }
                Ok(Event::Signal(signal)) => break format!("signal {signal} arrived"),
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(why) = self.on_tick() {
                        break why;
                    }
                    tick = self.tick();
                    next = Instant::now() + tick;
                }
                Err(RecvTimeoutError::Disconnected) => break "nobody is left".to_owned(),
            }
        };
        self.stop(&why);
    }

    fn tick(&self) -> Duration {
        self.daemon.current().settings.get(&settings::DAEMON_TICK)
    }

    /// What is looked after regularly; an answer is a reason to stop.
    fn on_tick(&mut self) -> Option<String> {
        if self.again || self.watched.changed() {
            self.reload();
        }
        let current = self.daemon.current();
        self.look_after_processes(&current);
        let silent = current.settings.get(&settings::POOL_IDLE_TIMEOUT);
        self.daemon.end_sessions(self.daemon.runs.close_abandoned(silent));
        let now = Instant::now();
        self.daemon.questions.expire(now);
        self.daemon.tasks.forget(current.settings.get(&settings::ELICIT_KEEP));
        let (kept, over): (Vec<_>, Vec<_>) = self.earlier.drain(..).partition(|(_, until)| *until > now);
        self.earlier = kept;
        over.into_iter().for_each(|(names, _)| names.give_back());
        if let Some(tcp) = &mut self.tcp {
            tcp.look_after();
        }
        // Large results leave their space behind; nobody waits while it is given back.
        let still = self.daemon.activity.idle_for() >= self.tick();
        if still && !self.trimmed {
            proc::memory::trim();
        }
        self.trimmed = still;
        self.is_idle(&current).then(|| self.leave()).flatten()
    }

    /// Ends what is over, and starts what is to run.
    fn look_after_processes(&mut self, current: &Current) {
        let daemon = &self.daemon;
        daemon.sessions.expire(daemon, current.settings.get(&settings::SESSION_IDLE_TIMEOUT));
        daemon.pool.reap(&|session| daemon.sessions.is_kept(session));
        daemon.pool.keep_warm();
        // A command that was killed has taken its script with it, but not what that had started.
        proc::end_in_session("MCPX_RUN", &daemon.runs.take_closed());
        if daemon.origin.pid == FIRST_PROCESS {
            proc::reap_strays();
        }
        daemon.artifacts.look_after(daemon);
    }

    /// Nobody has needed a daemon that a command started for `autostart.idleExit`.
    fn is_idle(&self, current: &Current) -> bool {
        let limit = current.settings.get(&settings::AUTOSTART_IDLE_EXIT);
        self.daemon.origin.detached
            && !limit.is_zero()
            && self.daemon.activity.idle_for() > limit
            // A consumer is there for what happens; that it is there is no reason to stay.
            && self.daemon.runs.all(|session| self.daemon.logs.consumers.owns(session))
            && !self.daemon.sessions.any_kept()
            && !self.daemon.pool.busy()
    }

    /// Leaves, unless somebody came in while the door was being closed.
    fn leave(&mut self) -> Option<String> {
        self.names.hide();
        self.earlier.iter().for_each(|(names, _)| names.hide());
        let current = self.daemon.current();
        if self.is_idle(&current) {
            return Some("it was idle for autostart.idleExit".into());
        }
        // Whoever came in is served; so that others can follow, the names are put up again.
        self.names.close();
        let again = self.names.bind_again().and_then(|()| self.names.listen(&self.daemon));
        match again.and_then(|()| self.names.publish(&current.info(&self.daemon.origin))) {
            Ok(()) => None,
            Err(e) => Some(format!("it could not be found any more: {e}")),
        }
    }

    /// Reads the configuration again; whether it was another. With a broken one the last good one stays.
    fn reload(&mut self) -> bool {
        let before = self.daemon.current();
        self.again = false;
        self.watched = Watched::all(&before.config);
        match self.load(&before) {
            Ok(None) => {
                if before.problem.is_some() {
                    log::info("the configuration is good again");
                    self.update(&before, None);
                }
                false
            }
            Ok(Some(next)) => match self.apply(&before, next) {
                Ok(()) => true,
                Err(error) => {
                    self.again = true;
                    self.report(&before, error);
                    false
                }
            },
            Err(error) => {
                self.report(&before, error);
                false
            }
        }
    }

    /// Sets a setting while the daemon runs, or lets go of it. It holds until the daemon ends.
    fn override_setting(&mut self, key: String, value: Option<Value>) -> Result<()> {
        let mut overrides = self.overrides.clone();
        overrides.retain(|o| o.key != key);
        overrides.extend(value.map(|value| RuntimeValue { key, value }));
        let before = self.daemon.current();
        let origin = &self.daemon.origin;
        let settings = settings_of(&before.config, &origin.env, &self.flags, &overrides, origin.detached)?;
        set_level(&settings);
        self.daemon.pool.reconfigure(before.config.servers.clone(), settings.clone());
        self.daemon.pool.keep_warm();
        self.overrides = overrides;
        self.replace(&before, settings, before.problem.clone());
        Ok(())
    }

    fn publish(&self, kind: &'static kinds::Kind, data: Value) {
        self.daemon.pool.bus().publish(Happened::new(kind, data));
    }

    fn report(&self, before: &Current, error: Error) {
        if before.problem.as_ref().map(Error::message) != Some(error.message()) {
            log::error(format_args!("keeping the last good configuration: {error}"));
            self.publish(&kinds::CONFIG_BROKEN, json!({"message": error.message()}));
            self.update(before, Some(error));
        }
    }

    fn update(&self, before: &Current, problem: Option<Error>) {
        self.replace(before, before.settings.clone(), problem);
    }

    /// The same configuration, with other settings or another problem.
    fn replace(&self, before: &Current, settings: Settings, problem: Option<Error>) {
        let current = Current::new(before.config.clone(), settings);
        self.put_in_force(Current {
            socket: before.socket.clone(),
            endpoint: before.endpoint.clone(),
            token: before.token.clone(),
            restart: before.restart.clone(),
            problem,
            ..current
        });
    }

    /// From now on this holds for everybody.
    fn put_in_force(&self, current: Current) {
        let daemon = &self.daemon;
        recording::configure(&daemon.logs, daemon.pool.bus(), &current, &daemon.origin.env);
        daemon.set_current(current);
        if self.quiet {
            return;
        }
        daemon.logs.consumers.configure(daemon, &daemon.current().settings);
    }

    /// The configuration on disk, when it is another.
    fn load(&self, before: &Current) -> Result<Option<Current>> {
        let origin = &self.daemon.origin;
        let options = LoadOptions {
            explicit: None,
            dir: &self.dir,
            env: &origin.env,
            dirs: &origin.dirs,
            uid: proc::uid(),
        };
        let config = config::reload(&before.config.sources, &options)?;
        if config.key == before.config.key {
            return Ok(None);
        }
        let settings = settings_of(&config, &origin.env, &self.flags, &self.overrides, origin.detached)?;
        Ok(Some(Current {
            endpoint: before.endpoint.clone(),
            token: before.token.clone(),
            restart: waiting(&self.booted, &settings),
            ..Current::new(config, settings)
        }))
    }

    /// Puts a configuration in force under its own names; the old names are kept for a while.
    fn apply(&mut self, before: &Current, next: Current) -> Result<()> {
        let key = next.config.key.clone();
        let taken = difference(&before.config.servers, &next.config.servers);
        let mut names = match self.earlier.iter().position(|(names, _)| names.key == key) {
            // An edit that was undone: we have these names still.
            Some(at) => self.earlier.remove(at).0,
            None => {
                let chosen = next.settings.get(&settings::DAEMON_SOCKET);
                let mut names = self.names.take_beside(&self.daemon.origin.dirs, &key, &chosen)?;
                names.listen(&self.daemon)?;
                names
            }
        };
        let next = Current { socket: names.socket.clone(), ..next };
        if let Err(error) = names.publish(&next.info(&self.daemon.origin)) {
            self.earlier.push((names, Instant::now()));
            return Err(error);
        }
        set_level(&next.settings);
        let grace = next.settings.get(&settings::DAEMON_KEY_GRACE);
        self.daemon.pool.reconfigure(next.config.servers.clone(), next.settings.clone());
        // Whoever finds the old names learns from the key in the file that the daemon has moved on.
        let moved = next.info(&self.daemon.origin);
        if let Err(error) = self.names.publish(&moved) {
            log::warn(&error);
        }
        if next.restart != before.restart && !next.restart.is_empty() {
            log::warn(format_args!(
                "the new value of {} needs a restart: mcpx restart --daemon",
                next.restart.join(", ")
            ));
        }
        self.put_in_force(next);
        self.daemon.pool.keep_warm();
        names.take_over(&mut self.names);
        let old = std::mem::replace(&mut self.names, names);
        self.earlier.push((old, Instant::now() + grace));
        if let Some(file) = &self.daemon.logs.file {
            file.rename(&info::log_path(&self.daemon.origin.dirs, &key));
        }
        log::info(format_args!("following the configuration: key {} is now {key}", before.config.key));
        self.daemon.set_taken(taken);
        self.publish(&kinds::CONFIG_CHANGED, json!({"key": key}));
        Ok(())
    }

    /// Stops: nobody new, an answer for everybody who waits, no process left.
    fn stop(mut self, why: &str) {
        if !self.quiet {
            log::info(format_args!("stopping: {why}"));
        }
        self.publish(&kinds::DAEMON_STOPPING, json!({"why": why}));
        self.daemon.set_stopping();
        self.names.hide();
        self.names.close();
        for (names, _) in &mut self.earlier {
            names.hide();
            names.close();
        }
        let deadline = Instant::now() + self.drain;
        while self.daemon.pool.busy() && Instant::now() < deadline {
            std::thread::park_timeout(DRAIN_LOOK);
        }
        drop(self.tcp.take());
        self.daemon.runs.close_all();
        self.daemon.pool.shutdown();
        self.daemon.pool.bus().close();
        self.daemon.logs.hooks.close();
        self.daemon.logs.consumers.close();
        if !self.daemon.activity.wait_quiet(LAST_WORDS) {
            log::warn("stopping although somebody still waits for an answer");
        }
        self.daemon.peers.close();
        // The locks last: who takes them finds nothing left of us.
        self.earlier.into_iter().for_each(|(names, _)| names.give_back());
        self.names.give_back();
        if !self.quiet {
            log::info("stopped");
        }
        self.daemon.logs.close();
    }
}

/// The error of a daemon whose parts could not be started.
pub fn no_thread(what: &str, e: &std::io::Error) -> Error {
    Error::new(Kind::Unavailable, format!("starting the daemon's {what}: {e}"))
}

/// The servers of which one list has another definition than the other, and the time of this look.
fn difference(before: &[Arc<ServerDef>], now: &[Arc<ServerDef>]) -> Value {
    let without = |list: &[Arc<ServerDef>], others: &[Arc<ServerDef>]| -> Vec<String> {
        list.iter().filter(|a| others.iter().all(|b| a.name != b.name)).map(|a| a.name.clone()).collect()
    };
    // The place in its file is no part of what a server is.
    let same = |a: &ServerDef, b: &ServerDef| {
        let problem = |def: &ServerDef| def.problem.as_ref().map(|e| e.message().to_owned());
        a.digest == b.digest
            && (a.enabled, &a.description, &a.options) == (b.enabled, &b.description, &b.options)
            && a.alias_of == b.alias_of
            && problem(a) == problem(b)
    };
    let changed: Vec<&str> = now
        .iter()
        .filter(|a| before.iter().any(|b| a.name == b.name && !same(a, b)))
        .map(|a| a.name.as_str())
        .collect();
    json!({"at": now_ms(), "added": without(now, before), "removed": without(before, now), "changed": changed})
}
