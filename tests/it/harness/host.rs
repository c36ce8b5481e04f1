//! A host: `mcpx serve` at the other end of a pair of pipes, one message a line.

use super::process::{signal, wait_until};
use super::world::World;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// How long an answer may take before the test fails.
const LIMIT: Duration = Duration::from_secs(60);

/// The key of a stateless request's revision.
pub const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// A host that speaks to its server line by line.
pub struct Host {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    /// What came and nobody has asked for yet.
    early: Vec<Value>,
    serial: u64,
}

impl Host {
    /// Starts `mcpx serve` with these further arguments in a world.
    pub fn start(world: &World, args: &[&str]) -> Host {
        Host::start_with(world, args, &[])
    }

    /// The same with further variables.
    pub fn start_with(world: &World, args: &[&str], env: &[(&str, &str)]) -> Host {
        let mut child = Command::new(env!("CARGO_BIN_EXE_mcpx"))
            .arg("serve")
            .args(args)
            .current_dir(world.dir())
            .env_clear()
            .envs(world.environment())
            .envs(env.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("mcpx serve starts");
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or_else(|e| panic!("not JSON: {e}: {line}"));
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        Host { child, stdin, lines, early: Vec::new(), serial: 0 }
    }

    /// Starts it and shakes hands.
    pub fn greeted(world: &World, args: &[&str]) -> Host {
        let mut host = Host::start(world, args);
        host.greet("2025-11-25", json!({}));
        host
    }

    /// Shakes hands; the result of `initialize`.
    pub fn greet(&mut self, revision: &str, capabilities: Value) -> Value {
        let result = self.ask(
            "initialize",
            json!({"protocolVersion": revision, "capabilities": capabilities, "clientInfo": {"name": "test", "version": "1"}}),
        );
        self.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        result
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
    /// Sends it a signal.
    pub fn signal(&self, number: i32) {
        signal(self.pid(), number);
    }

    /// Writes a message.
    pub fn write(&mut self, message: &Value) {
        self.write_line(&message.to_string());
    }
    /// Writes a line.
    pub fn write_line(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(line.as_bytes()).and_then(|()| stdin.write_all(b"\n")).expect("it reads");
    }

    /// Sends a request and returns its id.
    pub fn send(&mut self, method: &str, params: Value) -> u64 {
        self.serial += 1;
        let id = self.serial;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Asks and returns the whole answer.
    #[track_caller]
    pub fn answer(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.answer_to(id)
    }

    /// The answer to a request that was sent.
    #[track_caller]
    pub fn answer_to(&mut self, id: u64) -> Value {
        self.wait_for(&format!("the answer to request {id}"), |m| m["id"] == id && m.get("method").is_none())
    }

    /// Asks and returns the result.
    #[track_caller]
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let answer = self.answer(method, params);
        assert!(answer.get("error").is_none(), "{method} failed: {answer}");
        answer["result"].clone()
    }

    /// Calls a tool; the result.
    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// The names of all tools.
    #[track_caller]
    pub fn tools(&mut self) -> Vec<String> {
        let listed = self.ask("tools/list", json!({}));
        let tools = listed["tools"].as_array().expect("a list of tools");
        tools.iter().map(|t| t["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Waits for a notification of that method.
    #[track_caller]
    pub fn notified(&mut self, method: &str) -> Value {
        self.wait_for(method, |m| m["method"] == method)
    }

    /// Waits for a message that fits.
    #[track_caller]
    pub fn wait_for(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.early.iter().position(&fits) {
            return self.early.remove(at);
        }
        loop {
            match self.lines.recv_timeout(LIMIT) {
                Ok(message) if fits(&message) => return message,
                Ok(message) => self.early.push(message),
                Err(e) => panic!("waited for {what} in vain ({e}); what came is {:?}", self.early),
            }
        }
    }

    /// What has come and was not asked for.
    pub fn rest(&mut self) -> Vec<Value> {
        self.early.extend(self.lines.try_iter());
        std::mem::take(&mut self.early)
    }

    /// Closes its stdin.
    pub fn close(&mut self) {
        self.stdin = None;
    }

    /// Closes its stdin and waits for its end; the exit code, or `-n` for a signal.
    #[track_caller]
    pub fn end(mut self) -> i32 {
        self.close();
        self.wait()
    }

    /// Waits for its end.
    #[track_caller]
    pub fn wait(&mut self) -> i32 {
        let status = wait_until("mcpx serve to end", || self.child.try_wait().expect("waiting"));
        loop {
            match self.lines.recv_timeout(LIMIT) {
                Ok(message) => self.early.push(message),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(e) => panic!("it ended, but its stdout is held open: {e}"),
            }
        }
        status.code().unwrap_or_else(|| -status.signal().unwrap_or(0))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stdin = None;
        if let Ok(None) = self.child.try_wait() {
            self.signal(libc::SIGTERM);
            let _ = self.child.wait();
        }
    }
}

/// What a stateless request brings along.
pub fn stateless() -> Value {
    json!({VERSION_KEY: "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}})
}
