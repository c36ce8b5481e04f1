//! A world: directories, configuration, environment and PATH of one test.

use super::command::Mcpx;
use super::process::{self, Process, wait_until};
use super::tools::{self, Runtime};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Programs of the system that a world's PATH offers; everything else is absent.
const SYSTEM: [&str; 9] = ["sh", "env", "cat", "sleep", "head", "tr", "kill", "printf", "ls"];

/// The world of one test. Dropping it stops its daemons and fails the test when
/// a process, a socket or a temporary file is left.
#[must_use]
pub struct World {
    root: PathBuf,
    id: String,
    servers: Map<String, Value>,
    settings: Map<String, Value>,
    env: BTreeMap<OsString, OsString>,
}

impl World {
    /// An empty world: no configuration, no runtime.
    pub fn new() -> World {
        process::default_signals();
        static SERIAL: AtomicUsize = AtomicUsize::new(0);
        let id = format!("{}-{}", std::process::id(), SERIAL.fetch_add(1, Ordering::Relaxed));
        // Short, so that a socket's path fits below it.
        let root = PathBuf::from(format!("/tmp/mx{id}"));
        for dir in ["home", "p", "bin", "tmp"] {
            std::fs::create_dir_all(root.join(dir)).expect("a world's directory");
        }
        // Nothing of the developer's own environment gets in: only these.
        let mut env = BTreeMap::new();
        for (name, value) in [
            ("HOME", root.join("home").into_os_string()),
            ("TMPDIR", root.join("tmp").into_os_string()),
            ("PATH", root.join("bin").into_os_string()),
            ("LANG", "C.UTF-8".into()),
            (process::MARK, id.clone().into()),
        ] {
            env.insert(OsString::from(name), value);
        }
        let world = World { root, id, servers: Map::new(), settings: Map::new(), env };
        for name in SYSTEM {
            if let Some(path) = tools::on_path(name) {
                world.link(name, &path);
            }
        }
        world
    }

    /// A world with the demonstration server as `demo`.
    pub fn demo() -> World {
        World::new().server("demo", json!({"command": env!("CARGO_BIN_EXE_mcpx"), "args": ["demo-server"]}))
    }

    /// A world with a misbehaving server as `fake`.
    pub fn fake(args: &[&str]) -> World {
        World::new().and_fake("fake", args)
    }

    /// Adds a misbehaving server that records what it receives.
    pub fn and_fake(self, name: &str, args: &[&str]) -> World {
        let record = self.record_file(name);
        let mut all = vec![json!("--record"), json!(record)];
        all.extend(args.iter().map(|a| json!(a)));
        self.server(name, json!({"command": env!("CARGO_BIN_EXE_fake-mcp"), "args": all}))
    }

    /// Adds a server to the project's configuration.
    pub fn server(mut self, name: &str, block: Value) -> World {
        self.servers.insert(name.to_owned(), block);
        self.write_configuration();
        self
    }

    /// Adds a top-level key to the project's configuration.
    pub fn setting(mut self, key: &str, value: Value) -> World {
        self.settings.insert(key.to_owned(), value);
        self.write_configuration();
        self
    }

    /// Writes the project's configuration as this text.
    pub fn config(self, text: &str) -> World {
        self.file(".mcpx.json", text)
    }

    fn write_configuration(&self) {
        let mut all = self.settings.clone();
        all.insert("mcpServers".to_owned(), Value::Object(self.servers.clone()));
        self.write(".mcpx.json", &serde_json::to_string_pretty(&all).unwrap());
    }

    /// Writes a file; a relative path is below the project's directory.
    pub fn file(self, path: &str, text: &str) -> World {
        self.write(path, text);
        self
    }

    /// Writes a file; a relative path is below the project's directory.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.dir().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).expect("a directory for a file");
        std::fs::write(&path, text).expect("a file");
    }

    /// Sets a variable for every command.
    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> World {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Puts a runtime on the PATH.
    pub fn with(self, runtime: Runtime) -> World {
        self.link(runtime.name(), &runtime.path());
        self
    }

    /// Puts a program on the PATH.
    pub fn link(&self, name: &str, program: &Path) {
        let link = self.root.join("bin").join(name);
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(program, link).expect("a link on the world's PATH");
    }

    /// The project's directory, in which commands run.
    pub fn dir(&self) -> PathBuf {
        self.root.join("p")
    }
    /// The home directory.
    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }
    /// The state directory.
    pub fn state(&self) -> PathBuf {
        self.home().join(".local/state/mcpx")
    }
    /// The cache directory.
    pub fn cache(&self) -> PathBuf {
        self.home().join(".cache/mcpx")
    }
    /// The one directory on the PATH.
    pub fn bin(&self) -> PathBuf {
        self.root.join("bin")
    }

    /// The environment of its commands.
    pub fn environment(&self) -> &BTreeMap<OsString, OsString> {
        &self.env
    }

    /// What a shell makes of a line, where commands run and with their environment.
    pub fn sh(&self, line: &str) -> std::process::Output {
        let mut shell = std::process::Command::new("/bin/sh");
        shell.args(["-c", line]).current_dir(self.dir()).env_clear().envs(self.environment());
        shell.output().expect("a shell starts")
    }

    /// A command to run.
    pub fn mcpx<I, S>(&self, args: I) -> Mcpx<'_>
    where
        I: IntoIterator<Item = S>,
        S: Into<OsString>,
    {
        Mcpx::new(self, args.into_iter().map(Into::into).collect())
    }

    /// The living processes of this world.
    pub fn processes(&self) -> Vec<Process> {
        process::marked(&self.id)
    }

    /// The living daemons of this world.
    pub fn daemons(&self) -> Vec<Process> {
        self.processes()
            .into_iter()
            .filter(|p| p.args[0].ends_with("mcpx") && p.args.iter().any(|a| a == "daemon"))
            .collect()
    }

    /// Waits until no process of this world mentions the text.
    #[track_caller]
    pub fn wait_gone(&self, text: &str) {
        wait_until(&format!("every process with {text:?} to end"), || {
            (!self.processes().iter().any(|p| p.mentions(text))).then_some(())
        });
    }

    /// The info files of daemons, as JSON.
    pub fn infos(&self) -> Vec<Value> {
        files(&self.state())
            .into_iter()
            .filter(|p| {
                let name = p.file_name().unwrap_or_default().to_string_lossy();
                name.starts_with("daemon-") && name.ends_with(".json")
            })
            .filter_map(|p| serde_json::from_slice(&std::fs::read(p).ok()?).ok())
            .collect()
    }

    /// Asks the one running daemon on its unix socket: the status, and the body as text.
    #[track_caller]
    pub fn ask_text(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, String) {
        let infos = self.infos();
        let [info] = infos.as_slice() else { panic!("there is not one daemon: {infos:?}") };
        let mut stream = UnixStream::connect(info["socket"].as_str().unwrap()).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        let body = body.map(Value::to_string).unwrap_or_default();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// The same with the body as JSON.
    #[track_caller]
    pub fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let (status, text) = self.ask_text(method, path, body);
        (status, serde_json::from_str(&text).unwrap())
    }

    /// Where a misbehaving server writes its record.
    pub fn record_file(&self, server: &str) -> PathBuf {
        self.root.join(format!("{server}.record"))
    }

    /// What a misbehaving server recorded: `{pid, event, message}` each.
    pub fn recorded(&self, server: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.record_file(server)).unwrap_or_default();
        // A line that is being written at this moment is not counted yet.
        text.split_inclusive('\n')
            .filter(|l| l.ends_with('\n'))
            .map(|l| serde_json::from_str(l).unwrap())
            .collect()
    }

    /// The messages of one method that a misbehaving server received.
    pub fn received(&self, server: &str, method: &str) -> Vec<Value> {
        self.recorded(server)
            .into_iter()
            .filter(|r| r["event"] == "message" && r["message"]["method"] == method)
            .map(|r| r["message"].clone())
            .collect()
    }

    /// The pids under which a misbehaving server was started, in order.
    pub fn started(&self, server: &str) -> Vec<u32> {
        let starts = self.recorded(server).into_iter().filter(|r| r["event"] == "start");
        starts.map(|r| r["pid"].as_u64().unwrap() as u32).collect()
    }

    /// Stops every daemon of this world and says what is left that should not be.
    fn end(&mut self) -> Vec<String> {
        let mut problems = Vec::new();
        if !self.infos().is_empty() || !self.daemons().is_empty() {
            let stopped = self.mcpx(["stop", "--all"]).output();
            if stopped.status != 0 {
                problems.push(format!("`mcpx stop --all` failed:\n{stopped}"));
            }
        }
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(8);
        while !self.processes().is_empty() && std::time::Instant::now() < deadline {
            std::thread::sleep(std::time::Duration::from_millis(3));
        }
        for process in self.processes() {
            problems.push(format!("a process is left: {}", process.line()));
            process::signal(process.pid, libc::SIGKILL);
        }
        for file in [self.state(), self.cache(), self.root.join("tmp")].iter().flat_map(|d| files(d)) {
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let stale = name.ends_with(".sock")
                || name.ends_with(".tmp")
                || name.starts_with("daemon-") && name.ends_with(".json");
            if stale {
                problems.push(format!("a file is left: {}", file.display()));
            }
        }
        problems
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let problems = self.end();
        let _ = std::fs::remove_dir_all(&self.root);
        if problems.is_empty() {
            return;
        }
        let text = problems.join("\n");
        if std::thread::panicking() {
            eprintln!("after the failure above: {text}");
        } else {
            panic!("{text}");
        }
    }
}

/// Every file below a directory, sockets included; none when it does not exist.
fn files(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    entries
        .flatten()
        .flat_map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => files(&entry.path()),
            _ => vec![entry.path()],
        })
        .collect()
}
