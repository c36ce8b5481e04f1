//! What the daemon's tests stand on: a home directory that goes away, a daemon
//! in this process, and servers that are plain values.

use super::events::{Event, Life};
use super::state::Daemon;
use super::{Options, boot};
use crate::api::scratch::Scratch;
use crate::api::wire::{CallContext, CallRequest};
use crate::api::{Boot, Client, frame};
use crate::catalog::Tool;
use crate::config::{self, Config, LoadOptions, ServerDef};
use crate::error::{Error, Kind, Result};
use crate::mcp::ToolList;
use crate::paths::Dirs;
use crate::pool::{About, Cancel, Connector, Hooks, Options as Asked, Pool, Upstream};
use crate::proc;
use crate::settings::{Layers, Settings};
use crate::util::Env;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longer than anything takes on a loaded machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for a condition.
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// A home, a project directory and a configuration.
pub struct Home {
    pub scratch: Scratch,
    pub env: Env,
    pub dirs: Dirs,
}

impl Home {
    pub fn new(config: &Value) -> Home {
        let scratch = Scratch::new("d");
        for made in ["home", "project"] {
            std::fs::create_dir(scratch.path(made)).unwrap();
        }
        let env = Env::from_pairs([
            ("HOME", scratch.path("home")),
            ("MCPX_STATE_DIR", scratch.path("s")),
            ("MCPX_CACHE_DIR", scratch.path("c")),
            ("XDG_RUNTIME_DIR", scratch.path("r")),
        ]);
        let dirs = Dirs::from_env(&env, proc::uid()).unwrap();
        let home = Home { scratch, env, dirs };
        home.write(&config.to_string());
        home
    }
    pub fn project(&self) -> PathBuf {
        self.scratch.path("project")
    }
    /// Replaces the configuration.
    pub fn write(&self, text: &str) {
        crate::util::write_atomic(&self.project().join(".mcpx.json"), text.as_bytes(), 0o600, false).unwrap();
    }
    pub fn config(&self) -> Config {
        config::load(&LoadOptions {
            explicit: None,
            dir: &self.project(),
            env: &self.env,
            dirs: &self.dirs,
            uid: proc::uid(),
        })
        .unwrap()
    }
    /// As a command does it.
    pub fn find(&self) -> Result<Option<Client>> {
        let config = self.config();
        let settings = Settings::resolve(Layers { ..config.settings_layers(&self.env) }).unwrap();
        Client::find(&Boot {
            config: &config,
            settings: &settings,
            dirs: &self.dirs,
            env: &self.env,
            exe: "/nonexistent".into(),
            dir: &self.project(),
            flags: &[],
        })
    }
    /// What is in the state directory, but for logs.
    pub fn state_files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.dirs.state).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .map(|e| e.file_name().into_string().unwrap())
            .filter(|n| !n.contains(".log") && n != "artifacts")
            .collect();
        names.sort();
        names
    }
}

/// A daemon in this process; dropping it stops it and looks at what it leaves.
pub struct Running {
    pub home: Home,
    pub daemon: Arc<Daemon>,
    pub world: Arc<World>,
    events: Sender<Event>,
    life: Option<JoinHandle<()>>,
}

/// A configuration of one server named `fake`, with more at the top level.
pub fn one_server(more: &Value) -> Value {
    let mut config = json!({"mcpServers": {"fake": {"command": "fake"}}, "transport": {"tcp": false}});
    for (key, value) in more.as_object().unwrap() {
        match config.get_mut(key).and_then(Value::as_object_mut) {
            Some(block) => block.extend(value.as_object().unwrap().clone()),
            None => config[key] = value.clone(),
        }
    }
    config
}

impl Running {
    pub fn new(config: &Value) -> Running {
        Running::at(Home::new(config), false)
    }

    pub fn at(home: Home, detached: bool) -> Running {
        let world = Arc::new(World::default());
        let (send, receive) = mpsc::channel();
        let starter = Starter(world.clone());
        let options = Options {
            explicit: None,
            dir: home.project(),
            env: home.env.clone(),
            dirs: home.dirs.clone(),
            flags: Vec::new(),
            detached,
            inline: false,
            ready: None,
            lasting: None,
            notice: Box::new(|_| {}),
            mcp: None,
        };
        let life: Life = boot(
            options,
            send.clone(),
            |logs, _, _, _| logs,
            |parts| Pool::with(parts.servers, parts.settings, parts.cache, Box::new(starter)),
        )
        .unwrap();
        let daemon = life.daemon.clone();
        let life = proc::thread::spawn("life", move || life.run(&receive)).unwrap();
        Running { home, daemon, world, events: send, life: Some(life) }
    }

    pub fn client(&self) -> Client {
        self.home.find().unwrap().expect("the daemon is found")
    }

    pub fn socket(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.daemon.current().socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Waits until it has stopped by itself.
    pub fn wait(&mut self) {
        let life = self.life.take().unwrap();
        eventually("the daemon stops", || life.is_finished());
        life.join().unwrap();
    }

    pub fn stop(&mut self) {
        if self.life.is_some() {
            let _ = self.events.send(Event::Shutdown("the test is over"));
            self.wait();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.world.open_gate();
        self.stop();
        if !std::thread::panicking() {
            eventually("every thread has left", || Arc::strong_count(&self.daemon) == 1);
            assert_eq!(self.home.state_files(), Vec::<String>::new(), "files are left");
            assert_eq!(self.world.live(), 0, "servers are left");
        }
    }
}

/// A call of the fake server.
pub fn call(tool: &str, arguments: &Value) -> CallRequest {
    CallRequest {
        server: "fake".into(),
        tool: tool.into(),
        arguments: Some(to_raw_value(arguments).unwrap()),
        context: CallContext::default(),
        timeout_ms: None,
        input: None,
        meta: None,
        task: None,
    }
}

/// A channel as a program uses it.
pub struct Program(pub UnixStream);

impl Program {
    pub fn new(client: &Client, run: &str) -> Program {
        let stream = UnixStream::from(client.channel(run).unwrap());
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Program(stream)
    }
    pub fn send(&mut self, frame: &Value) {
        frame::write(&mut self.0, &[frame.to_string().as_bytes()]).unwrap();
    }
    pub fn call(&mut self, id: u64, tool: &str, arguments: &Value) {
        let params = json!({"server": "fake", "tool": tool, "arguments": arguments});
        self.send(&json!({"id": id, "op": "call", "params": params}));
    }
    /// The next frame; none when the channel has ended.
    pub fn next(&mut self) -> Option<Value> {
        let text = frame::read(&mut self.0, u64::MAX).ok()??;
        Some(serde_json::from_slice(&text).unwrap())
    }
}

/// All servers of one test.
#[derive(Default)]
pub struct World {
    pub starts: AtomicUsize,
    live: AtomicUsize,
    /// Calls of `hold` that wait.
    pub held: AtomicUsize,
    /// Calls that were cancelled.
    pub cancelled: AtomicUsize,
    gate: Mutex<bool>,
    changed: Condvar,
}

impl World {
    pub fn live(&self) -> usize {
        self.live.load(Ordering::SeqCst)
    }
    pub fn held(&self) -> usize {
        self.held.load(Ordering::SeqCst)
    }
    pub fn open_gate(&self) {
        *self.gate.lock().unwrap() = true;
        self.changed.notify_all();
    }
}

struct Starter(Arc<World>);

impl Connector for Starter {
    fn connect(
        &self,
        _: &ServerDef,
        _: &Settings,
        _: Hooks,
        _: Option<&str>,
        _: &Cancel,
    ) -> Result<Arc<dyn Upstream>> {
        self.0.starts.fetch_add(1, Ordering::SeqCst);
        self.0.live.fetch_add(1, Ordering::SeqCst);
        Ok(Arc::new(Fake {
            world: self.0.clone(),
            closed: AtomicBool::new(false),
            calls: AtomicUsize::new(0),
        }))
    }
}

struct Fake {
    world: Arc<World>,
    closed: AtomicBool,
    calls: AtomicUsize,
}

impl Fake {
    /// Waits until the gate opens, or nobody waits for it any more.
    fn hold(&self, ask: &Asked<'_>) -> Result<()> {
        let world = self.world.clone();
        let _guard = ask.cancel.on_cancel(move || world.changed.notify_all());
        self.world.held.fetch_add(1, Ordering::SeqCst);
        let deadline = Instant::now() + PATIENCE;
        let mut open = self.world.gate.lock().unwrap();
        let outcome = loop {
            if ask.cancel.is_cancelled() {
                self.world.cancelled.fetch_add(1, Ordering::SeqCst);
                break Err(Error::new(Kind::Cancelled, "cancelled"));
            }
            if self.is_closed() {
                break Err(Error::new(Kind::OutcomeUnknown, "the server is gone"));
            }
            if *open || Instant::now() > deadline {
                break Ok(());
            }
            // A cancel may come between the look and the wait, so none is long.
            open = self.world.changed.wait_timeout(open, Duration::from_millis(5)).unwrap().0;
        };
        self.world.held.fetch_sub(1, Ordering::SeqCst);
        outcome
    }
}

impl Upstream for Fake {
    fn request(&self, _: &str, params: Option<Box<RawValue>>, ask: &Asked<'_>) -> Result<Box<RawValue>> {
        let params: Value = serde_json::from_str(params.unwrap().get()).unwrap();
        let arguments = &params["arguments"];
        let number = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        let value = match params["name"].as_str().unwrap() {
            "hold" => {
                self.hold(ask)?;
                json!("held")
            }
            "big" => {
                let size = usize::try_from(arguments["bytes"].as_u64().unwrap()).unwrap();
                return Ok(RawValue::from_string(format!(
                    "{{\"content\":[],\"x\":\"{}\"}}",
                    "x".repeat(size)
                ))
                .unwrap());
            }
            "report" => {
                for n in 0..arguments["count"].as_u64().unwrap() {
                    if let Some(progress) = &ask.progress {
                        progress(json!({"progress": n, "message": arguments["message"]}));
                    }
                }
                json!("reported")
            }
            "count" => json!(number),
            "break" => panic!("a test breaks off"),
            "fail" => return Err(Error::new(Kind::Tool, "it failed")),
            _ => arguments.clone(),
        };
        Ok(to_raw_value(&json!({"content": [], "structuredContent": value})).unwrap())
    }
    fn list_tools(&self, _: &Asked<'_>) -> Result<ToolList> {
        let names = ["echo", "hold", "big", "report", "count", "fail", "break"];
        Ok(ToolList { tools: names.map(Tool::named).to_vec(), ..ToolList::default() })
    }
    fn about(&self) -> About {
        About { protocol: "2025-11-25".into(), info: Some(json!({"title": "A fake"})), ..About::default() }
    }
    fn pid(&self) -> Option<u32> {
        None
    }
    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }
    fn closed_reason(&self) -> Option<String> {
        self.is_closed().then(|| "stopped".into())
    }
    fn stderr_tail(&self) -> String {
        String::new()
    }
    fn ping(&self, _: Duration) -> Result<()> {
        Ok(())
    }
    fn stop(&self) {
        if !self.closed.swap(true, Ordering::SeqCst) {
            self.world.live.fetch_sub(1, Ordering::SeqCst);
        }
        self.world.changed.notify_all();
    }
    fn on_close(&self, _: Box<dyn FnOnce(String) + Send>) {}
}
