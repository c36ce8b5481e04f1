//! What the pool's tests stand on: a directory that goes away, and servers
//! that are plain values. A `World` sees every server that was started.

use super::connect::{About, Cancel, Connector, Hooks, Options, Upstream};
use super::{Call, Caller, Pool};
use crate::catalog::Tool;
use crate::catalog::cache::Cache;
use crate::config::{ServerDef, ServerOptions, Transport};
use crate::error::{Error, Kind, Result};
use crate::mcp::ToolList;
use crate::settings::{Layers, RuntimeValue, Settings};
use crate::util::{self, Env};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// A limit that only a test that hangs reaches.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// A new directory with its links resolved, removed at the end.
pub(super) struct TempDir(PathBuf);

impl TempDir {
    pub fn new(name: &str) -> TempDir {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("mcpx-pool-{name}-{}-{serial}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        TempDir(dir.canonicalize().unwrap())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Waits for a condition; panics when it does not come.
pub(super) fn eventually(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// All servers of one test.
#[derive(Default)]
pub(super) struct World {
    state: Mutex<State>,
    changed: Condvar,
    pub starts: AtomicUsize,
    pub listings: AtomicUsize,
    pub pings: AtomicUsize,
}

#[derive(Default)]
struct State {
    /// Errors of the next starts of a server.
    failing: HashMap<String, Vec<Error>>,
    /// Starts wait until this is false.
    starts_held: bool,
    /// `hold` returns while this is true.
    gate: bool,
    /// Pings are answered.
    deaf: bool,
    /// The arguments of `hold`, in the order in which they came.
    held: Vec<Value>,
    live: Vec<Arc<Fake>>,
    tools: Vec<Tool>,
    version: u32,
}

impl World {
    pub fn new() -> Arc<World> {
        let world = World::default();
        {
            let mut state = world.lock();
            state.tools = vec![Tool::named("echo"), Tool::named("hold"), Tool::named("crash"), strict_tool()];
        }
        Arc::new(world)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn change(&self, f: impl FnOnce(&mut State)) {
        f(&mut self.lock());
        self.changed.notify_all();
    }

    pub fn fail_next_starts(&self, server: &str, errors: Vec<Error>) {
        self.change(|s| drop(s.failing.insert(server.to_owned(), errors)));
    }

    pub fn hold_starts(&self, held: bool) {
        self.change(|s| s.starts_held = held);
    }

    pub fn open_gate(&self) {
        self.change(|s| s.gate = true);
    }

    pub fn be_deaf(&self, deaf: bool) {
        self.change(|s| s.deaf = deaf);
    }

    pub fn add_tool(&self, tool: Tool) {
        self.change(|s| s.tools.push(tool));
    }

    pub fn held(&self) -> Vec<Value> {
        self.lock().held.clone()
    }

    pub fn live(&self) -> Vec<Arc<Fake>> {
        self.lock().live.clone()
    }

    pub fn starts(&self) -> usize {
        self.starts.load(Ordering::SeqCst)
    }
}

fn strict_tool() -> Tool {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    Tool { input_schema: schema, ..Tool::named("strict-one") }
}

/// A server that is a plain value.
pub(super) struct Fake {
    world: Arc<World>,
    pub id: usize,
    pub server: String,
    pub cwd: Option<PathBuf>,
    pub hooks: Hooks,
    state: Mutex<FakeState>,
}

#[derive(Default)]
struct FakeState {
    closed: Option<String>,
    listeners: Vec<Box<dyn FnOnce(String) + Send>>,
    in_flight: usize,
    peak: usize,
}

impl Fake {
    pub fn peak(&self) -> usize {
        self.state.lock().unwrap().peak
    }

    /// Ends as a process does that dies.
    pub fn die(&self, reason: &str) {
        self.world.change(|s| s.live.retain(|f| f.id != self.id));
        let listeners = {
            let mut state = self.state.lock().unwrap();
            state.closed.get_or_insert_with(|| reason.to_owned());
            std::mem::take(&mut state.listeners)
        };
        self.world.changed.notify_all();
        listeners.into_iter().for_each(|f| f(reason.to_owned()));
    }

    fn gone(&self) -> Option<Error> {
        self.closed_reason()
            .map(|reason| Error::new(Kind::OutcomeUnknown, format!("connection lost: {reason}")))
    }

    fn hold(&self, arguments: Value, options: &Options<'_>) -> Result<Value> {
        let world = self.world.clone();
        let _guard = options.cancel.on_cancel(move || world.change(|_| ()));
        let deadline = Instant::now() + options.timeout.unwrap_or(PATIENCE);
        self.world.change(|s| s.held.push(arguments));
        let mut state = self.world.lock();
        loop {
            if state.gate {
                return Ok(json!("held"));
            }
            drop(state);
            if let Some(error) = self.gone() {
                return Err(error);
            }
            if options.cancel.is_cancelled() {
                return Err(Error::new(Kind::Cancelled, "cancelled"));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Error::new(Kind::Timeout, "no answer"));
            }
            state = self.world.lock();
            // A short step, because closing changes another lock than this one.
            state = self.world.changed.wait_timeout(state, left.min(Duration::from_millis(5))).unwrap().0;
        }
    }
}

impl Upstream for Fake {
    fn request(
        &self,
        method: &str,
        params: Option<Box<RawValue>>,
        options: &Options<'_>,
    ) -> Result<Box<RawValue>> {
        assert_eq!(method, "tools/call");
        let params: Value = serde_json::from_str(params.expect("params").get()).unwrap();
        {
            let mut state = self.state.lock().unwrap();
            if state.closed.is_some() {
                return Err(Error::new(Kind::Unavailable, "the connection is closed"));
            }
            state.in_flight += 1;
            state.peak = state.peak.max(state.in_flight);
        }
        let text = match params["name"].as_str().unwrap() {
            "hold" => self.hold(params["arguments"].clone(), options),
            "crash" => {
                self.die("exit code 7");
                Err(self.gone().unwrap())
            }
            _ => Ok(json!({"instance": self.id, "params": params})),
        };
        self.state.lock().unwrap().in_flight -= 1;
        text.map(|t| to_raw_value(&json!({"content": [], "structuredContent": t})).unwrap())
    }

    fn list_tools(&self, _options: &Options<'_>) -> Result<ToolList> {
        self.world.listings.fetch_add(1, Ordering::SeqCst);
        let tools = self.world.lock().tools.clone();
        Ok(ToolList { tools, ..ToolList::default() })
    }

    fn about(&self) -> About {
        let info = Some(json!({"name": self.server, "version": self.world.lock().version}));
        About { protocol: "2025-11-25".into(), info, ..About::default() }
    }

    fn pid(&self) -> Option<u32> {
        Some(self.id as u32)
    }

    fn is_closed(&self) -> bool {
        self.state.lock().unwrap().closed.is_some()
    }

    fn closed_reason(&self) -> Option<String> {
        self.state.lock().unwrap().closed.clone()
    }

    fn stderr_tail(&self) -> String {
        "a line".into()
    }

    fn ping(&self, _limit: Duration) -> Result<()> {
        self.world.pings.fetch_add(1, Ordering::SeqCst);
        if self.world.lock().deaf { Err(Error::new(Kind::Timeout, "no pong")) } else { Ok(()) }
    }

    fn stop(&self) {
        self.die("stopped");
    }

    fn on_close(&self, f: Box<dyn FnOnce(String) + Send>) {
        let mut state = self.state.lock().unwrap();
        match state.closed.clone() {
            Some(reason) => {
                drop(state);
                f(reason);
            }
            None => state.listeners.push(f),
        }
    }
}

/// Starts fakes.
pub(super) struct Starter(pub Arc<World>);

impl Connector for Starter {
    fn connect(
        &self,
        def: &ServerDef,
        _settings: &Settings,
        hooks: Hooks,
        _remembered: Option<&str>,
        cancel: &Cancel,
    ) -> Result<Arc<dyn Upstream>> {
        let id = self.0.starts.fetch_add(1, Ordering::SeqCst) + 1;
        let world = self.0.clone();
        let _guard = cancel.on_cancel(move || world.change(|_| ()));
        let mut state = self.0.lock();
        while state.starts_held && !cancel.is_cancelled() {
            state = self.0.changed.wait_timeout(state, Duration::from_millis(5)).unwrap().0;
        }
        if cancel.is_cancelled() {
            return Err(Error::new(Kind::Cancelled, "the start was cancelled"));
        }
        if let Some(errors) = state.failing.get_mut(&def.name)
            && !errors.is_empty()
        {
            return Err(errors.remove(0));
        }
        let cwd = match &def.transport {
            Transport::Stdio { cwd, .. } => cwd.clone(),
            Transport::Http { .. } => None,
        };
        let fake = Arc::new(Fake {
            world: self.0.clone(),
            id,
            server: def.name.clone(),
            cwd,
            hooks,
            state: Mutex::default(),
        });
        state.live.push(fake.clone());
        Ok(fake)
    }
}

/// A definition of a server.
pub(super) fn def(name: &str) -> ServerDef {
    let command = format!("run-{name}");
    ServerDef {
        alias_of: None,
        document: None,
        name: name.into(),
        digest: util::digest([command.as_bytes()], 16),
        transport: Transport::Stdio { command, args: vec![], env: vec![], cwd: None },
        enabled: true,
        description: None,
        options: ServerOptions::default(),
        source: Arc::new(PathBuf::from("/etc/mcpx/config.json")),
        line: 3,
        problem: None,
    }
}

/// The same with a scope.
pub(super) fn scoped(name: &str, scope: &str) -> ServerDef {
    ServerDef {
        options: ServerOptions { scope: Some(scope.into()), ..ServerOptions::default() },
        ..def(name)
    }
}

/// The same, for one caller at a time.
pub(super) fn exclusive(name: &str) -> ServerDef {
    let options = ServerOptions { sharing: Some("exclusive".into()), ..ServerOptions::default() };
    ServerDef { options, ..def(name) }
}

/// A pool of fakes with some settings changed, its world, and its cache's directory.
pub(super) struct Setup {
    pub pool: Arc<Pool>,
    pub world: Arc<World>,
    pub tmp: TempDir,
}

impl Setup {
    pub fn new(defs: Vec<ServerDef>) -> Setup {
        Setup::with(defs, &[])
    }

    pub fn with(defs: Vec<ServerDef>, changes: &[(&str, Value)]) -> Setup {
        let (world, tmp) = (World::new(), TempDir::new("cache"));
        let defs = defs.into_iter().map(Arc::new).collect();
        let pool =
            Pool::with(defs, settings(changes), Cache::new(tmp.path()), Box::new(Starter(world.clone())));
        Setup { pool, world, tmp }
    }

    /// Another pool over the same disk, and other servers.
    pub fn next_pool(&self, defs: Vec<ServerDef>) -> Setup {
        let (world, tmp) = (World::new(), TempDir::new("unused"));
        let defs = defs.into_iter().map(Arc::new).collect();
        let cache = Cache::new(self.tmp.path());
        let pool = Pool::with(defs, settings(&[]), cache, Box::new(Starter(world.clone())));
        Setup { pool, world, tmp }
    }

    pub fn call(&self, server: &str, tool: &str, session: &str) -> Result<Value> {
        call(&self.pool, server, tool, json!({}), &caller(session), &Cancel::new(), None)
    }
}

pub(super) fn settings(changes: &[(&str, Value)]) -> Settings {
    let env = Env::default();
    let mut layers = Layers::new(&env);
    layers.runtime = changes
        .iter()
        .map(|(key, value)| RuntimeValue { key: (*key).into(), value: value.clone() })
        .collect();
    Settings::resolve(layers).unwrap()
}

pub(super) fn caller(session: &str) -> Caller {
    Caller { session: session.into(), ..Caller::default() }
}

pub(super) fn call(
    pool: &Pool,
    server: &str,
    tool: &str,
    arguments: Value,
    caller: &Caller,
    cancel: &Cancel,
    timeout: Option<Duration>,
) -> Result<Value> {
    let arguments = Some(to_raw_value(&arguments).unwrap());
    let result = pool.call(
        Call {
            server,
            tool,
            arguments,
            timeout,
            call_timeout: None,
            validate: None,
            permit: None,
            cancel,
            progress: None,
            asked: None,
            capabilities: None,
            meta: None,
            began: None,
        },
        caller,
    )?;
    let result: Value = serde_json::from_str(result.get()).unwrap();
    Ok(result["structuredContent"].clone())
}
