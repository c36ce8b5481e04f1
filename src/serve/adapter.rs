//! An adapter as an MCP server over a pair of streams: one message a line,
//! answers in any order. Knows nothing of what the adapter does.

use super::fault::INTERNAL_ERROR;
use super::lines::{self, Lines, Output, failure, success};
use crate::adapters::Adapter;
use crate::catalog::validate;
use crate::mcp::Cancel;
use crate::mcp::jsonrpc::{INVALID_PARAMS, METHOD_NOT_FOUND};
use crate::proc::thread;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Calls that are carried out at once. Each has a thread, and a program or a connection.
const MOST: usize = 256;

/// Tools of one page. A page of large schemas stays well below what a client takes as one message.
const PAGE: usize = 200;

/// Serves until `input` ends or `output` can no longer be written, and returns
/// the process's exit code: 0, or 1 when reading failed. `largest` bounds a
/// message, in bytes. Calls that are still working then are cancelled.
pub fn run(
    adapter: Arc<dyn Adapter>,
    input: impl BufRead,
    output: impl Write + Send + 'static,
    largest: u64,
) -> u8 {
    let server = Arc::new(Server { adapter, output: Output::new(output), working: Mutex::default() });
    let code = lines::serve(&server, input, largest);
    // Whatever a call has started ends before we do.
    let left: Vec<Cancel> = lock(&server.working).drain().map(|(_, cancel)| cancel).collect();
    left.iter().for_each(Cancel::cancel);
    code
}

/// What the threads of one server share.
struct Server {
    adapter: Arc<dyn Adapter>,
    output: Output,
    /// The calls at work, by their request's id as JSON text.
    working: Mutex<HashMap<String, Cancel>>,
}

/// A poisoned lock still holds a value that is good: each is written in one step.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lines for Server {
    fn output(&self) -> &Output {
        &self.output
    }

    fn request(self: &Arc<Server>, id: &Value, method: &str, params: &Value) -> std::io::Result<()> {
        let answer = match method {
            "initialize" => {
                let own = json!({"name": self.adapter.name(), "version": env!("CARGO_PKG_VERSION")});
                success(id, lines::initialize(params, &own))
            }
            "ping" => success(id, json!({})),
            "tools/list" => self.list(id, params),
            "tools/call" => return self.call(id, params),
            _ => failure(id, METHOD_NOT_FOUND, &format!("no such method: {method}")),
        };
        self.output.send(&answer)
    }

    fn cancelled(&self, id: &Value) {
        let call = lock(&self.working).remove(&id.to_string());
        if let Some(cancel) = call {
            cancel.cancel();
        }
    }
}

impl Server {
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
            return self.output.send(&wrong("params.name: the tool's name is missing"));
        };
        let Some(tool) = self.adapter.tools().iter().find(|tool| tool.name == name) else {
            return self.output.send(&wrong(&format!("no such tool: {name}")));
        };
        let arguments = match &params["arguments"] {
            Value::Null => Map::new(),
            Value::Object(given) => given.clone(),
            _ => return self.output.send(&wrong("params.arguments: expected an object")),
        };
        if let Err(what) = validate::arguments(&tool.input_schema, &Value::Object(arguments.clone())) {
            // An error of the tool's own, as the protocol wants since 2025-11-25: a model can mend it.
            let refusal = json!({"content": [{"type": "text", "text": what}], "isError": true});
            return self.output.send(&success(id, refusal));
        }
        let cancel = Cancel::new();
        let key = id.to_string();
        {
            let mut working = lock(&self.working);
            if working.len() >= MOST {
                drop(working);
                return self.output.send(&failure(
                    id,
                    INTERNAL_ERROR,
                    &format!("{MOST} calls are at work already"),
                ));
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
                let _ = server.output.send(&success(&asked, result));
            }
        });
        if let Err(e) = spawned {
            lock(&self.working).remove(&key);
            return self.output.send(&failure(id, INTERNAL_ERROR, &format!("starting a thread: {e}")));
        }
        Ok(())
    }
}
