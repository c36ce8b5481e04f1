//! An MCP server over stdio that misbehaves as its arguments say. The tests'
//! own: it shares no code with mcpx, so that no fault of mcpx hides here.
//!
//! Before the conversation:
//!   --record FILE         append to FILE one JSON line for each start, message and end
//!   --stderr TEXT         write TEXT and a newline to stderr
//!   --flood-stderr BYTES  write that many bytes to stderr, as fast as it takes them
//!   --exit-at-once CODE   exit
//!   --ignore-term         ignore SIGTERM
//!   --ignore-eof          stay when stdin ends
//!   --linger MS           stay that long when stdin ends
//!   --fork-grandchild     start a process that outlives this one and keeps its streams
//!   --setsid-grandchild   the same, in a session of its own
//! In the conversation:
//!   --slow-start MS       answer `initialize` after that time
//!   --never-initialize    never answer it
//!   --protocol REVISION   answer it with that revision
//!   --era ERA             `stateless`: know no `initialize`, and want metadata in each request;
//!                         `sticky`: know both eras, and stay with that of the first request;
//!   --ttl MS, --cache-scope SCOPE  say that of the list of tools;
//!   --listen HOW          (stateless era) be listened to, but: `refused`, not; `partly`, to lists alone;
//!                         `silent`, without a word;
//!                         anything else: know `initialize` alone, as without
//!   --garbage-first       print lines that are not JSON before the first answer
//!   --garbage-between     print one before each answer
//!   --crlf                end lines with CR LF
//!   --dribble             write each message in small pieces
//!   --duplicate-answers   send each answer to a call twice
//!   --wrong-id            send each answer to a call first under an id that nobody asked with
//!   --late-answer         answer a cancelled call all the same
//!   --ask METHOD          send a request of its own when initialized
//! What it offers:
//!   --name NAME           the name it gives itself
//!   --tools N             N more tools, `tool_0` and so on
//!   --page N              list N tools a page
//!   --loop-cursor         page without end
//!   --no-list             answer `tools/list` with an error
//!   --hostile-schema FILE more tools from a JSON array
//!   --logging             declare it; say the level that was set, as a log message of that level
//!   --tasks               declare tasks; the tool `research {steps}` is one, and nothing else
//!   --tasks-optional      the same, but it may be called plainly
//!   --list-changed        declare it; the tool `grow` adds a tool and says so
//! In a call:
//!   --crash-on-call       exit 3 in the middle of an answer
//!   --hang-on-call        never answer
//!   --huge BYTES          answer with a text of that length
//!   --image BYTES         answer with an image of that many bytes of base64
//!   --items N             answer with N content items
//!
//! Tools that are always there: echo {text}, args {…}, pid, cwd, env {name},
//! count {by?}, sleep {ms}, big {bytes}, items {n}, hang, crash {code?}, deep
//! {levels}, fail {message?}, stderr {text}, ask {method, params?}, asked, progress {steps}, visit {url}.

// The bans keep the library testable; this is a program of the tests.
#![allow(clippy::disallowed_methods)]

use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::io::{BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio, exit};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// No stray process of a broken test outlives this.
const LONGEST_LIFE: Duration = Duration::from_secs(120);

#[derive(Default)]
struct Options {
    record: Option<String>,
    stderr: Option<String>,
    flood_stderr: Option<usize>,
    exit_at_once: Option<i32>,
    ignore_term: bool,
    ignore_eof: bool,
    linger: Option<u64>,
    fork_grandchild: bool,
    setsid_grandchild: bool,
    slow_start: Option<u64>,
    never_initialize: bool,
    protocol: Option<String>,
    era: Option<String>,
    listen: Option<String>,
    ttl: Option<usize>,
    cache_scope: Option<String>,
    garbage_first: bool,
    garbage_between: bool,
    crlf: bool,
    dribble: bool,
    duplicate_answers: bool,
    wrong_id: bool,
    late_answer: bool,
    ask: Option<String>,
    name: Option<String>,
    tools: usize,
    page: Option<usize>,
    loop_cursor: bool,
    no_list: bool,
    hostile_schema: Option<String>,
    list_changed: bool,
    logging: bool,
    tasks: bool,
    tasks_optional: bool,
    crash_on_call: bool,
    hang_on_call: bool,
    huge: Option<usize>,
    image: Option<usize>,
    items: Option<usize>,
}

impl Options {
    fn parse() -> Options {
        let mut o = Options::default();
        let mut args = std::env::args().skip(1);
        while let Some(flag) = args.next() {
            let mut value = || args.next().unwrap_or_else(|| usage(&format!("{flag} needs a value")));
            match flag.as_str() {
                "--record" => o.record = Some(value()),
                "--stderr" => o.stderr = Some(value()),
                "--flood-stderr" => o.flood_stderr = Some(number(&flag, &value())),
                "--exit-at-once" => o.exit_at_once = Some(number(&flag, &value())),
                "--ignore-term" => o.ignore_term = true,
                "--ignore-eof" => o.ignore_eof = true,
                "--linger" => o.linger = Some(number(&flag, &value())),
                "--fork-grandchild" => o.fork_grandchild = true,
                "--setsid-grandchild" => o.setsid_grandchild = true,
                "--slow-start" => o.slow_start = Some(number(&flag, &value())),
                "--never-initialize" => o.never_initialize = true,
                "--protocol" => o.protocol = Some(value()),
                "--era" => o.era = Some(value()),
                "--ttl" => o.ttl = Some(number(&flag, &value())),
                "--cache-scope" => o.cache_scope = Some(value()),
                "--listen" => o.listen = Some(value()),
                "--garbage-first" => o.garbage_first = true,
                "--garbage-between" => o.garbage_between = true,
                "--crlf" => o.crlf = true,
                "--dribble" => o.dribble = true,
                "--duplicate-answers" => o.duplicate_answers = true,
                "--wrong-id" => o.wrong_id = true,
                "--late-answer" => o.late_answer = true,
                "--ask" => o.ask = Some(value()),
                "--name" => o.name = Some(value()),
                "--tools" => o.tools = number(&flag, &value()),
                "--page" => o.page = Some(number(&flag, &value())),
                "--loop-cursor" => o.loop_cursor = true,
                "--no-list" => o.no_list = true,
                "--hostile-schema" => o.hostile_schema = Some(value()),
                "--list-changed" => o.list_changed = true,
                "--logging" => o.logging = true,
                "--tasks" => o.tasks = true,
                "--tasks-optional" => (o.tasks, o.tasks_optional) = (true, true),
                "--crash-on-call" => o.crash_on_call = true,
                "--hang-on-call" => o.hang_on_call = true,
                "--huge" => o.huge = Some(number(&flag, &value())),
                "--image" => o.image = Some(number(&flag, &value())),
                "--items" => o.items = Some(number(&flag, &value())),
                // Not for people: what a grandchild is started as.
                "--be-grandchild" => {
                    ignore(libc::SIGTERM);
                    std::thread::sleep(LONGEST_LIFE);
                    exit(0);
                }
                _ => usage(&format!("no such option: {flag}")),
            }
        }
        o
    }
}

impl Options {
    fn knows_stateless(&self) -> bool {
        matches!(self.era.as_deref(), Some("stateless" | "sticky"))
    }
}

fn usage(what: &str) -> ! {
    eprintln!("fake-mcp: {what}");
    exit(2)
}

fn number<T: std::str::FromStr>(flag: &str, text: &str) -> T {
    text.parse().unwrap_or_else(|_| usage(&format!("{flag} needs a number, not {text:?}")))
}

fn ignore(signal: i32) {
    // SAFETY: SIG_IGN is a valid disposition and no handler runs.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

struct Fake {
    options: Options,
    output: Mutex<std::io::Stdout>,
    record: Option<Mutex<std::fs::File>>,
    count: Mutex<i64>,
    grown: Mutex<usize>,
    cancelled: (Mutex<HashSet<String>>, Condvar),
    /// How many requests of our own were sent.
    serial: Mutex<usize>,
    /// Who waits for the answer to a request of ours, by its id.
    asked: Mutex<HashMap<String, Sender<Value>>>,
    /// The answer to the request of `--ask`.
    answer: Mutex<Option<Value>>,
    /// Whether the first request was of the stateless era.
    modern: Mutex<Option<bool>>,
}

fn main() {
    let options = Options::parse();
    let record = options.record.as_ref().map(|path| {
        Mutex::new(
            std::fs::OpenOptions::new().create(true).append(true).open(path).expect("the record opens"),
        )
    });
    let fake = Arc::new(Fake {
        output: Mutex::new(std::io::stdout()),
        record,
        count: Mutex::new(0),
        grown: Mutex::new(0),
        cancelled: Default::default(),
        serial: Mutex::new(0),
        asked: Mutex::default(),
        answer: Mutex::new(None),
        modern: Mutex::new(None),
        options,
    });
    fake.note("start", Value::Null);
    let o = &fake.options;
    if let Some(text) = &o.stderr {
        eprintln!("{text}");
    }
    if let Some(code) = o.exit_at_once {
        exit(code);
    }
    if o.ignore_term {
        ignore(libc::SIGTERM);
    }
    if o.fork_grandchild || o.setsid_grandchild {
        fake.grandchild();
    }
    if let Some(bytes) = o.flood_stderr {
        std::thread::spawn(move || {
            let line = [b"flood ".repeat(170), b"\n".to_vec()].concat();
            for _ in 0..bytes / line.len() {
                let _ = std::io::stderr().write_all(&line);
            }
        });
    }
    if o.garbage_first {
        fake.print(b"Starting up...\nlistening {on: stdio}\n\n\xff\xfe\x00 not UTF-8\n[1,2\n");
    }
    fake.serve();
    fake.note("eof", Value::Null);
    if let Some(ms) = o.linger {
        std::thread::sleep(Duration::from_millis(ms));
    }
    if o.ignore_eof {
        std::thread::sleep(LONGEST_LIFE);
    }
    fake.note("exit", Value::Null);
}

impl Fake {
    fn note(&self, event: &str, message: Value) {
        if let Some(record) = &self.record {
            let line =
                format!("{}\n", json!({"pid": std::process::id(), "event": event, "message": message}));
            // One write on a file opened for appending: lines of several processes do not mix.
            record.lock().unwrap().write_all(line.as_bytes()).expect("the record is written");
        }
    }

    fn grandchild(&self) {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg("--be-grandchild").stdin(Stdio::null());
        if self.options.setsid_grandchild {
            // SAFETY: setsid is async-signal-safe and touches nothing of ours.
            unsafe {
                command.pre_exec(|| {
                    libc::setsid();
                    Ok(())
                });
            }
        }
        #[allow(clippy::zombie_processes, reason = "it is meant to outlive this process")]
        let child = command.spawn().expect("the grandchild starts");
        self.note("grandchild", json!(child.id()));
    }

    fn print(&self, bytes: &[u8]) {
        let mut output = self.output.lock().unwrap();
        // Who stopped reading wants nothing more.
        let _ = output.write_all(bytes).and_then(|()| output.flush());
    }

    fn send(&self, message: &Value) {
        let mut bytes = Vec::new();
        if self.options.garbage_between {
            bytes.extend_from_slice(b"debug: about to answer\n");
        }
        bytes.extend_from_slice(message.to_string().as_bytes());
        bytes.extend_from_slice(if self.options.crlf { b"\r\n" } else { b"\n" });
        if !self.options.dribble {
            return self.print(&bytes);
        }
        let mut output = self.output.lock().unwrap();
        for piece in bytes.chunks(7) {
            let _ = output.write_all(piece).and_then(|()| output.flush());
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    fn answer(&self, id: &Value, result: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn refuse(&self, id: &Value, code: i64, message: &str) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}));
    }

    fn serve(self: &Arc<Fake>) {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            let Ok(message) = serde_json::from_str::<Value>(&line) else {
                self.note("garbage", json!(line));
                continue;
            };
            self.note("message", message.clone());
            let Some(method) = message["method"].as_str() else {
                self.take_answer(message);
                continue;
            };
            let Some(id) = message.get("id").cloned() else {
                self.take_notification(method, &message["params"]);
                continue;
            };
            if !self.is_of_its_era(&id, method, &message["params"]) {
                continue;
            }
            match method {
                "server/discover" if self.options.knows_stateless() => self.discover(&id),
                "subscriptions/listen" if self.options.knows_stateless() => {
                    self.be_listened_to(&id, message["params"]["notifications"].clone());
                }
                "initialize" => self.initialize(&id, &message["params"]),
                "ping" => self.answer(&id, json!({})),
                "logging/setLevel" if self.options.logging => {
                    let level = &message["params"]["level"];
                    self.answer(&id, json!({}));
                    self.send(&json!({"jsonrpc": "2.0", "method": "notifications/message", "params":
                        {"level": level, "logger": "fake", "data": format!("logs from {level} on")}}));
                }
                "tasks/update" if self.options.tasks => {
                    *self.answer.lock().unwrap() = Some(message["params"]["inputResponses"].clone());
                    self.answer(&id, json!({"resultType": "complete"}));
                }
                "tasks/get" | "tasks/result" | "tasks/cancel" if self.options.tasks => {
                    let fake = Arc::clone(self);
                    let (method, task) = (method.to_owned(), message["params"]["taskId"].clone());
                    std::thread::spawn(move || fake.about_task(&id, &method, &task));
                }
                "tools/list" => self.list(&id, &message["params"]),
                "tools/call" => {
                    let fake = Arc::clone(self);
                    let params = message["params"].clone();
                    std::thread::spawn(move || fake.call(&id, &params));
                }
                _ => self.refuse(&id, -32601, &format!("no such method: {method}")),
            }
        }
    }

    /// Refuses what belongs to another era than `--era` has.
    fn is_of_its_era(&self, id: &Value, method: &str, params: &Value) -> bool {
        const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
        let modern = params["_meta"][VERSION] == "2026-07-28";
        let mut first = self.modern.lock().unwrap();
        let first = *first.get_or_insert(modern);
        let wanted = match self.options.era.as_deref() {
            Some("stateless") => true,
            Some("sticky") => first,
            _ => return true,
        };
        if wanted && method == "initialize" {
            let data = json!({"supported": ["2026-07-28"], "requested": params["protocolVersion"]});
            self.send(&json!({"jsonrpc": "2.0", "id": id, "error":
                {"code": -32022, "message": "Unsupported protocol version", "data": data}}));
        } else if wanted && !modern {
            self.refuse(id, -32602, "the metadata is missing");
        } else if !wanted && modern {
            self.refuse(id, -32600, "this server was initialized");
        } else {
            return true;
        }
        false
    }

    fn be_listened_to(&self, id: &Value, mut notifications: Value) {
        match self.options.listen.as_deref() {
            Some("refused") => return self.refuse(id, -32601, "no such method: subscriptions/listen"),
            Some("silent") => return,
            Some("partly") => drop(notifications.as_object_mut().unwrap().remove("resourceSubscriptions")),
            _ => {}
        }
        let about = json!({"io.modelcontextprotocol/subscriptionId": id});
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
            "params": {"_meta": about, "notifications": notifications}}));
    }

    fn discover(&self, id: &Value) {
        self.answer(
            id,
            json!({
                "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
                "supportedVersions": ["2026-07-28"],
                "capabilities": self.capabilities(),
                "_meta": {"io.modelcontextprotocol/serverInfo":
                    {"name": self.options.name.as_deref().unwrap_or("fake"), "version": "0"}},
            }),
        );
    }

    fn take_answer(&self, message: Value) {
        let waiting = self.asked.lock().unwrap().remove(&message["id"].to_string());
        if let Some(waiting) = waiting {
            let _ = waiting.send(message);
        }
    }

    fn take_notification(self: &Arc<Fake>, method: &str, params: &Value) {
        match method {
            "notifications/initialized" => {
                if let Some(method) = self.options.ask.clone() {
                    let fake = Arc::clone(self);
                    std::thread::spawn(move || {
                        let answer = fake.ask(&method, &json!({}));
                        *fake.answer.lock().unwrap() = Some(answer);
                    });
                }
            }
            "notifications/cancelled" => {
                self.cancelled.0.lock().unwrap().insert(params["requestId"].to_string());
                self.cancelled.1.notify_all();
            }
            _ => {}
        }
    }

    /// Sends a request of our own and waits for its answer.
    fn ask(&self, method: &str, params: &Value) -> Value {
        let (sender, receiver) = channel();
        let id = {
            let mut serial = self.serial.lock().unwrap();
            *serial += 1;
            let id = format!("fake-{serial}");
            self.asked.lock().unwrap().insert(json!(id).to_string(), sender);
            id
        };
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        receiver.recv_timeout(LONGEST_LIFE).unwrap_or_else(|_| json!({"nobody": "answered"}))
    }

    fn initialize(&self, id: &Value, params: &Value) {
        if self.options.never_initialize {
            return;
        }
        if let Some(ms) = self.options.slow_start {
            std::thread::sleep(Duration::from_millis(ms));
        }
        let asked = params["protocolVersion"].as_str().unwrap_or("2025-11-25");
        let revision = self.options.protocol.as_deref().unwrap_or(asked);
        self.answer(
            id,
            json!({
                "protocolVersion": revision,
                "capabilities": self.capabilities(),
                "serverInfo": {"name": self.options.name.as_deref().unwrap_or("fake"), "version": "0"}
            }),
        );
    }

    /// Its task is asked for four times before it is over; as `ask` it asks before it gives its result.
    fn about_task(&self, id: &Value, method: &str, task: &Value) {
        let name = task.as_str().unwrap_or_default();
        let mut count = self.count.lock().unwrap();
        if method == "tasks/get" {
            *count += 1;
        }
        let status = match name {
            "t-crash" if *count > 1 => exit(3),
            "t-long" | "t-crash" => "working",
            "t-fail" => "failed",
            "t-ask" if *count > 1 => "input_required",
            _ if *count > 3 => "completed",
            _ => "working",
        };
        let mut about = json!({"taskId": task, "status": status, "statusMessage": format!("step {count}"),
            "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": 60000, "pollInterval": 20});
        drop(count);
        if self.options.knows_stateless() {
            // The extension has other names, and the result in the task's state.
            about["resultType"] = json!("complete");
            about["pollIntervalMs"] = about.as_object_mut().unwrap().remove("pollInterval").unwrap();
            let answers = self.answer.lock().unwrap().clone();
            match (status, answers) {
                ("completed", _) => about["result"] = text(format!("the result of {name}")),
                ("input_required", None) => {
                    about["inputRequests"] = json!({"seats": {"method": "elicitation/create", "params":
                    {"message": "Which seats?", "requestedSchema": {"type": "object", "properties": {"seats": {"type": "integer"}}}}}})
                }
                ("input_required", Some(answers)) => {
                    about["status"] = json!("completed");
                    about["result"] = text(answers["seats"].to_string());
                }
                ("failed", _) => {
                    about["error"] = json!({"code": -32603, "message": "the job broke off"});
                }
                _ => {}
            }
        }
        match method {
            "tasks/result" if name == "t-ask" => {
                let asked = json!({"message": "Which seats?", "requestedSchema": {"type": "object", "properties": {"seats": {"type": "integer"}}}});
                self.answer(id, text(self.ask("elicitation/create", &asked)["result"].to_string()));
            }
            "tasks/result" => self.answer(id, text(format!("the result of {name}"))),
            _ => self.answer(id, about),
        }
    }

    fn capabilities(&self) -> Value {
        let mut capabilities = json!({"tools": {"listChanged": self.options.list_changed}});
        if self.options.logging {
            capabilities["logging"] = json!({});
        }
        if self.options.tasks {
            capabilities["tasks"] = json!({"cancel": {}, "requests": {"tools": {"call": {}}}});
        }
        capabilities
    }

    fn tools(&self) -> Vec<Value> {
        let any = || json!({"type": "object"});
        let tool = |name: &str, schema: Value| json!({"name": name, "description": format!("The fake tool {name}."), "inputSchema": schema});
        let with = |name: &str, kind: &str| json!({"type": "object", "properties": {name: {"type": kind}}, "required": [name]});
        let mut tools = vec![
            tool("echo", with("text", "string")),
            tool("args", any()),
            tool("pid", any()),
            tool("cwd", any()),
            tool("env", with("name", "string")),
            tool("count", json!({"type": "object", "properties": {"by": {"type": "integer"}}})),
            tool("sleep", with("ms", "integer")),
            tool("big", with("bytes", "integer")),
            tool("items", with("n", "integer")),
            tool("hang", any()),
            tool("crash", json!({"type": "object", "properties": {"code": {"type": "integer"}}})),
            tool("deep", with("levels", "integer")),
            tool("fail", json!({"type": "object", "properties": {"message": {"type": "string"}}})),
            tool("stderr", with("text", "string")),
            tool("ask", with("method", "string")),
            tool("asked", any()),
            tool("progress", with("steps", "integer")),
            tool("visit", with("url", "string")),
        ];
        if self.options.tasks {
            let mut research = tool("research", any());
            let support = if self.options.tasks_optional { "optional" } else { "required" };
            research["execution"] = json!({"taskSupport": support});
            tools.push(research);
        }
        if self.options.list_changed {
            tools.push(tool("grow", any()));
        }
        let grown = *self.grown.lock().unwrap();
        tools.extend((0..grown).map(|n| tool(&format!("grown_{n}"), any())));
        tools.extend((0..self.options.tools).map(|n| {
            tool(
                &format!("tool_{n}"),
                json!({"type": "object", "properties": {
                    "path": {"type": "string", "description": "Where."},
                    "limit": {"type": "integer", "minimum": 0},
                    "mode": {"enum": ["fast", "slow", n.to_string()]}
                }, "required": ["path"]}),
            )
        }));
        if let Some(file) = &self.options.hostile_schema {
            let text = std::fs::read_to_string(file).expect("the file of tools is readable");
            let more: Vec<Value> = serde_json::from_str(&text).expect("the file of tools is a JSON array");
            tools.extend(more);
        }
        tools
    }

    fn list(&self, id: &Value, params: &Value) {
        if self.options.no_list {
            return self.refuse(id, -32603, "the list is broken today");
        }
        let tools = self.tools();
        let Some(page) = self.options.page.filter(|p| *p > 0) else {
            let mut result = json!({"tools": tools});
            if let Some(ttl) = self.options.ttl {
                result["ttlMs"] = json!(ttl);
            }
            if let Some(scope) = &self.options.cache_scope {
                result["cacheScope"] = json!(scope);
            }
            return self.answer(id, result);
        };
        let from: usize = params["cursor"].as_str().and_then(|c| c.parse().ok()).unwrap_or(0);
        let shown: Vec<&Value> = tools.iter().skip(from).take(page).collect();
        let mut result = json!({"tools": shown});
        if from + page < tools.len() {
            result["nextCursor"] = json!((from + page).to_string());
        } else if self.options.loop_cursor {
            result["nextCursor"] = json!("0");
        }
        self.answer(id, result);
    }

    fn call(&self, id: &Value, params: &Value) {
        let o = &self.options;
        let name = params["name"].as_str().unwrap_or_default();
        let arguments = &params["arguments"];
        if o.crash_on_call {
            self.crash(id, 3);
        }
        if o.hang_on_call {
            return self.wait_for_cancellation(id);
        }
        if let Some(bytes) = o.image {
            let data = "eHh4".repeat(bytes / 4);
            return self
                .finish(id, json!({"content": [{"type": "image", "mimeType": "image/png", "data": data}]}));
        }
        if let Some(bytes) = o.huge {
            return self.finish(id, text("x".repeat(bytes)));
        }
        let whole = |name: &str| arguments[name].as_u64().unwrap_or_default();
        if let Some(n) = o.items {
            // Built as text: a million values take their time without optimisation.
            let mut line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[");
            for i in 0..n {
                let comma = if i == 0 { "" } else { "," };
                let _ = write!(line, "{comma}{{\"type\":\"text\",\"text\":\"item {i}\"}}");
            }
            line.push_str("]}}\n");
            return self.print(line.as_bytes());
        }
        let result = match name {
            "echo" => text(arguments["text"].as_str().unwrap_or_default().to_owned()),
            "args" => text(arguments.to_string()),
            "pid" => text(std::process::id().to_string()),
            "cwd" => {
                text(std::env::current_dir().map_or_else(|e| e.to_string(), |d| d.display().to_string()))
            }
            "env" => {
                let name = arguments["name"].as_str().unwrap_or_default();
                text(std::env::var(name).unwrap_or_else(|_| "(not set)".to_owned()))
            }
            "count" => {
                let mut count = self.count.lock().unwrap();
                *count += arguments["by"].as_i64().unwrap_or(1);
                text(count.to_string())
            }
            "sleep" => {
                if self.cancelled_within(id, Duration::from_millis(whole("ms"))) {
                    return self.answer_late(id);
                }
                text(format!("slept {} ms", whole("ms")))
            }
            "big" => text("x".repeat(whole("bytes") as usize)),
            "items" => items(whole("n") as usize),
            "hang" => return self.wait_for_cancellation(id),
            "crash" => self.crash(id, arguments["code"].as_i64().unwrap_or(3) as i32),
            "deep" => {
                let levels = whole("levels") as usize;
                let nested = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
                // Built as text: a nested value of this depth would exhaust the stack.
                return self.print(
                    format!(
                        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[],\"structuredContent\":{nested}}}}}\n"
                    )
                    .as_bytes(),
                );
            }
            "fail" => {
                let mut result = text(arguments["message"].as_str().unwrap_or("failed").to_owned());
                result["isError"] = json!(true);
                result
            }
            "stderr" => {
                eprintln!("{}", arguments["text"].as_str().unwrap_or_default());
                text(String::new())
            }
            "ask" if *self.modern.lock().unwrap() == Some(true) => match &params["inputResponses"]["q"] {
                Value::Null => {
                    let method = arguments["method"].as_str().unwrap_or("ping");
                    let asked = json!({"q": {"method": method, "params": arguments["params"]}});
                    json!({"resultType": "input_required", "inputRequests": asked, "requestState": "as it was"})
                }
                response => text(json!({"result": response, "state": params["requestState"]}).to_string()),
            },
            "ask" => {
                let method = arguments["method"].as_str().unwrap_or("ping");
                text(self.ask(method, &arguments["params"]).to_string())
            }
            "asked" => match &*self.answer.lock().unwrap() {
                Some(answer) => text(answer.to_string()),
                None => text("no answer yet".to_owned()),
            },
            "progress" => {
                let token = &params["_meta"]["progressToken"];
                for step in 1..=whole("steps") {
                    if !token.is_null() {
                        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {
                            "progressToken": token, "progress": step, "total": whole("steps"), "message": format!("at {step}")}}));
                    }
                }
                text(format!("token {token}"))
            }
            "visit" => {
                let asked = json!({"mode": "url", "elicitationId": "e-1", "url": arguments["url"], "message": "Sign in first."});
                return self.send(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32042,
                    "message": "URL elicitation required", "data": {"elicitations": [asked]}}}));
            }
            "research" if o.tasks && o.knows_stateless() => {
                const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
                let known = &params["_meta"][CAPABILITIES]["extensions"]["io.modelcontextprotocol/tasks"];
                if !known.is_object() {
                    return self.refuse(id, -32021, "this tool needs a client that knows tasks");
                }
                let name = format!("t-{}", arguments["as"].as_str().unwrap_or("short"));
                json!({"resultType": "task", "taskId": name, "status": "working", "statusMessage": "step 0",
                    "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttlMs": 60000, "pollIntervalMs": 20})
            }
            "research" if o.tasks && o.tasks_optional && params["task"].is_null() => {
                text("at once".to_owned())
            }
            "research" if o.tasks => match &params["task"] {
                Value::Null => return self.refuse(id, -32601, "research is a task, and nothing else"),
                _ => {
                    let name = format!("t-{}", arguments["as"].as_str().unwrap_or("short"));
                    json!({"task": {"taskId": name, "status": "working", "statusMessage": "step 0", "ttl": 60000,
                        "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z", "pollInterval": 20}})
                }
            },
            "grow" if o.list_changed => {
                *self.grown.lock().unwrap() += 1;
                self.send(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
                text("grown".to_owned())
            }
            _ if self.tools().iter().any(|t| t["name"] == name) => {
                text(json!({"tool": name, "arguments": arguments}).to_string())
            }
            _ => return self.refuse(id, -32602, &format!("no such tool: {name}")),
        };
        self.finish(id, result);
    }

    /// Sends the answer to a call, with the misbehaviour that was asked for.
    fn finish(&self, id: &Value, result: Value) {
        if self.options.wrong_id {
            self.answer(
                &json!(987_654),
                json!({"content": [{"type": "text", "text": "an answer for nobody"}]}),
            );
            self.answer(&Value::Null, json!({}));
        }
        if self.options.duplicate_answers {
            self.answer(id, result.clone());
        }
        self.answer(id, result);
    }

    /// Leaves in the middle of an answer.
    fn crash(&self, id: &Value, code: i32) -> ! {
        let half = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[{{\"type\":\"te");
        self.print(half.as_bytes());
        eprintln!("fake-mcp: crashing with code {code}");
        exit(code)
    }

    /// Waits until the request is cancelled; false when `limit` passed first.
    fn cancelled_within(&self, id: &Value, limit: Duration) -> bool {
        let (set, changed) = &self.cancelled;
        let key = id.to_string();
        let (mut set, _) =
            changed.wait_timeout_while(set.lock().unwrap(), limit, |set| !set.contains(&key)).unwrap();
        set.remove(&key)
    }

    fn wait_for_cancellation(&self, id: &Value) {
        if self.cancelled_within(id, LONGEST_LIFE) {
            self.answer_late(id);
        }
    }

    fn answer_late(&self, id: &Value) {
        if self.options.late_answer {
            self.answer(id, text("too late".to_owned()));
        }
    }
}

fn text(text: String) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn items(n: usize) -> Value {
    let items: Vec<Value> = (0..n).map(|i| json!({"type": "text", "text": format!("item {i}")})).collect();
    json!({"content": items})
}
