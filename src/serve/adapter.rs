//! An adapter as an MCP server over a pair of streams: one message a line,
//! answers in any order. Knows nothing of what the adapter does.

use crate::adapters::Adapter;
use crate::catalog::validate;
use crate::log;
use crate::mcp::Cancel;
use crate::proc::thread;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::io::{BufRead, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The revisions of the protocol that begin with `initialize`, newest first.
const REVISIONS: [&str; 5] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07"];

/// JSON-RPC 2.0: what came is no JSON.
const PARSE_ERROR: i64 = -32700;
/// JSON-RPC 2.0: it is no request.
const INVALID_REQUEST: i64 = -32600;
/// JSON-RPC 2.0: there is no such method.
const METHOD_NOT_FOUND: i64 = -32601;
/// JSON-RPC 2.0: the method cannot do with these.
const INVALID_PARAMS: i64 = -32602;
/// JSON-RPC 2.0: it is not the request's fault.
const INTERNAL_ERROR: i64 = -32603;

/// Calls that are carried out at once. Each has a thread, and a program or a connection.
const MOST: usize = 256;

/// Tools of one page. A page of large schemas stays well below what a client takes as one message.
const PAGE: usize = 200;

/// Serves until `input` ends or `output` can no longer be written, and returns
/// the process's exit code: 0, or 1 when reading failed. `largest` bounds a
/// message, in bytes. Calls that are still working then are cancelled.
pub fn run(
    adapter: Arc<dyn Adapter>,
    mut input: impl BufRead,
    output: impl Write + Send + 'static,
    largest: u64,
) -> u8 {
    let server =
        Arc::new(Server { adapter, output: Mutex::new(Box::new(output)), working: Mutex::default() });
    let mut line = Vec::new();
    let code = loop {
        line.clear();
        match input.by_ref().take(largest).read_until(b'\n', &mut line) {
            Ok(0) => break 0,
            Ok(_) => {}
            Err(e) => {
                log::error(format_args!("reading from the client: {e}"));
                break 1;
            }
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let sent = match serde_json::from_slice::<Value>(&line) {
            Ok(message) => server.take(&message),
            Err(e) if line.len() as u64 >= largest => {
                log::error(format_args!("a message is longer than {largest} bytes: {e}"));
                break 1;
            }
            Err(e) => server.send(&failure(&Value::Null, PARSE_ERROR, &format!("not JSON: {e}"))),
        };
        if sent.is_err() {
            break 0;
        }
    };
    // Whatever a call has started ends before we do.
    let left: Vec<Cancel> = lock(&server.working).drain().map(|(_, cancel)| cancel).collect();
    left.iter().for_each(Cancel::cancel);
    code
}

/// What the threads of one server share.
struct Server {
    adapter: Arc<dyn Adapter>,
    output: Mutex<Box<dyn Write + Send>>,
    /// The calls at work, by their request's id as JSON text.
    working: Mutex<HashMap<String, Cancel>>,
}

/// A poisoned lock still holds a value that is good: each is written in one step.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Server {
    /// Writes one message whole, so that no two mix.
    fn send(&self, message: &Value) -> std::io::Result<()> {
        let mut line = message.to_string();
        line.push('\n');
        let mut output = lock(&self.output);
        output.write_all(line.as_bytes())?;
        output.flush()
    }

    /// Acts on one message. An error means that the output is gone.
    fn take(self: &Arc<Server>, message: &Value) -> std::io::Result<()> {
        let id = message.get("id");
        let Some(method) = message.get("method").and_then(Value::as_str) else {
            // An answer: this server asks nothing, so there is nobody to give it to.
            if message.get("result").is_some() || message.get("error").is_some() {
                return Ok(());
            }
            let text = "a message is an object with a method";
            return self.send(&failure(id.unwrap_or(&Value::Null), INVALID_REQUEST, text));
        };
        let params = message.get("params").unwrap_or(&Value::Null);
        let Some(id) = id else {
            if method == "notifications/cancelled"
                && let Some(cancel) = lock(&self.working).remove(&params["requestId"].to_string())
            {
                cancel.cancel();
            }
            return Ok(());
        };
        if !id.is_string() && !id.is_number() {
            return self.send(&failure(&Value::Null, INVALID_REQUEST, "an id is a string or a number"));
        }
        match method {
            "initialize" => self.send(&success(id, self.initialize(params))),
            "ping" => self.send(&success(id, json!({}))),
            "tools/list" => self.send(&self.list(id, params)),
            "tools/call" => self.call(id, params),
            _ => self.send(&failure(id, METHOD_NOT_FOUND, &format!("no such method: {method}"))),
        }
    }

    fn initialize(&self, params: &Value) -> Value {
        let asked = params["protocolVersion"].as_str().unwrap_or_default();
        let revision = REVISIONS.into_iter().find(|r| *r == asked).unwrap_or(REVISIONS[0]);
        json!({
            "protocolVersion": revision,
            "capabilities": {"tools": {"listChanged": false}},
            "serverInfo": {"name": self.adapter.name(), "version": env!("CARGO_PKG_VERSION")},
        })
    }

    /// One page; the cursor is the number of the first tool on it.
    fn list(&self, id: &Value, params: &Value) -> Value {
        let tools = self.adapter.tools();
        let start = match &params["cursor"] {
            Value::Null => Some(0),
            cursor => cursor.as_str().and_then(|c| c.parse::<usize>().ok()).filter(|at| *at < tools.len()),
        };
        let Some(start) = start else {
            return failure(id, INVALID_PARAMS, &format!("no such cursor: {}", params["cursor"]));
        };
        let end = tools.len().min(start.saturating_add(PAGE));
        let mut page = json!({"tools": tools[start..end]});
        if end < tools.len() {
            page["nextCursor"] = end.to_string().into();
        }
        success(id, page)
    }

    /// Starts a call on a thread of its own, so that the others go on.
    fn call(self: &Arc<Server>, id: &Value, params: &Value) -> std::io::Result<()> {
        let wrong = |text: &str| failure(id, INVALID_PARAMS, text);
        let Some(name) = params["name"].as_str() else {
            return self.send(&wrong("params.name: the tool's name is missing"));
        };
        let Some(tool) = self.adapter.tools().iter().find(|tool| tool.name == name) else {
            return self.send(&wrong(&format!("no such tool: {name}")));
        };
        let arguments = match &params["arguments"] {
            Value::Null => Map::new(),
            Value::Object(given) => given.clone(),
            _ => return self.send(&wrong("params.arguments: expected an object")),
        };
        if let Err(what) = validate::arguments(&tool.input_schema, &Value::Object(arguments.clone())) {
            // An error of the tool's own, as the protocol wants since 2025-11-25: a model can mend it.
            let refusal = json!({"content": [{"type": "text", "text": what}], "isError": true});
            return self.send(&success(id, refusal));
        }
        let cancel = Cancel::new();
        let key = id.to_string();
        {
            let mut working = lock(&self.working);
            if working.len() >= MOST {
                drop(working);
                return self.send(&failure(id, INTERNAL_ERROR, &format!("{MOST} calls are at work already")));
            }
            working.insert(key.clone(), cancel.clone());
        }
        let (server, asked, name) = (Arc::clone(self), id.clone(), name.to_owned());
        let at = key.clone();
        let spawned = thread::spawn("adapter-call", move || {
            let result = server.adapter.call(&name, &arguments, &cancel);
            // A cancelled request gets no answer. A failed write shows in the reader's loop too.
            if !cancel.is_cancelled() {
                lock(&server.working).remove(&at);
                let _ = server.send(&success(&asked, result));
            }
        });
        if let Err(e) = spawned {
            lock(&self.working).remove(&key);
            return self.send(&failure(id, INTERNAL_ERROR, &format!("starting a thread: {e}")));
        }
        Ok(())
    }
}

fn success(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn failure(id: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}
