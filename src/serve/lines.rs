//! What the small servers over a pair of streams share: one message a line, each
//! sorted, whatever is no request answered or passed over. Knows nothing of
//! methods.

use super::era;
use super::fault::INTERNAL_ERROR;
use crate::log;
use crate::mcp::jsonrpc::{INVALID_REQUEST, PARSE_ERROR};
use serde_json::{Value, json};
use std::io::{self, BufRead, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// So much is read for the first request of a host that is going to be refused.
const GREETING: u64 = 1 << 20;

/// The server's end of the output.
pub struct Output(Mutex<Box<dyn Write + Send>>);

impl Output {
    /// Takes over a stream.
    pub fn new(stream: impl Write + Send + 'static) -> Output {
        Output(Mutex::new(Box::new(stream)))
    }

    /// Writes one message whole, so that no two mix.
    pub fn send(&self, message: &Value) -> io::Result<()> {
        let mut line = message.to_string();
        line.push('\n');
        let mut output = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        output.write_all(line.as_bytes())?;
        output.flush()
    }
}

/// What a server does with what it is asked.
pub trait Lines: Send + Sync {
    /// Where its messages go.
    fn output(&self) -> &Output;
    /// Carries out a request. An error means that the output is gone.
    fn request(self: &Arc<Self>, id: &Value, method: &str, params: &Value) -> io::Result<()>;
    /// The client does not want the answer to the request of this id any more.
    fn cancelled(&self, id: &Value);
}

/// Answers the first request with this error, for a server that cannot begin. Returns when that is written, or
/// nothing more comes.
///
/// # Errors
/// Those of reading and writing.
pub fn refuse(input: impl BufRead, output: impl Write + Send + 'static, message: &str) -> io::Result<()> {
    let output = Output::new(output);
    let mut line = Vec::new();
    // A host's greeting is small.
    let mut input = input.take(GREETING);
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let said: Value = serde_json::from_slice(&line).unwrap_or_default();
        if let (Some(id), true) = (said.get("id"), said["method"].is_string()) {
            return output.send(&failure(id, INTERNAL_ERROR, message));
        }
    }
}

/// Serves until `input` ends or the output can no longer be written, and returns the process's
/// exit code: 0, or 1 when reading failed. `largest` bounds a message, in bytes.
pub fn serve<S: Lines>(server: &Arc<S>, mut input: impl BufRead, largest: u64) -> u8 {
    let mut line = Vec::new();
    loop {
        line.clear();
        match input.by_ref().take(largest).read_until(b'\n', &mut line) {
            Ok(0) => return 0,
            Ok(_) => {}
            Err(e) => {
                log::error(format_args!("reading from the client: {e}"));
                return 1;
            }
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let sent = match serde_json::from_slice::<Value>(&line) {
            Ok(message) => take(server, &message),
            Err(e) if line.len() as u64 >= largest => {
                log::error(format_args!("a message is longer than {largest} bytes: {e}"));
                return 1;
            }
            Err(e) => server.output().send(&failure(&Value::Null, PARSE_ERROR, &format!("not JSON: {e}"))),
        };
        if sent.is_err() {
            return 0;
        }
    }
}

/// Acts on one message. An error means that the output is gone.
fn take<S: Lines>(server: &Arc<S>, message: &Value) -> io::Result<()> {
    let id = message.get("id");
    let wrong = |id: &Value, text: &str| server.output().send(&failure(id, INVALID_REQUEST, text));
    let Some(method) = message.get("method").and_then(Value::as_str) else {
        // An answer: these servers ask nothing, so there is nobody to give it to.
        if message.get("result").is_some() || message.get("error").is_some() {
            return Ok(());
        }
        return wrong(id.unwrap_or(&Value::Null), "a message is an object with a method");
    };
    let params = message.get("params").unwrap_or(&Value::Null);
    let Some(id) = id else {
        if method == "notifications/cancelled" {
            server.cancelled(&params["requestId"]);
        }
        return Ok(());
    };
    if !id.is_string() && !id.is_number() {
        return wrong(&Value::Null, "an id is a string or a number");
    }
    server.request(id, method, params)
}

/// The result of `initialize`, as which server.
pub fn initialize(params: &Value, server: &Value) -> Value {
    json!({
        "protocolVersion": era::negotiate(params["protocolVersion"].as_str().unwrap_or_default()),
        "capabilities": {"tools": {"listChanged": false}},
        "serverInfo": server,
    })
}

/// An answer.
pub fn success(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// An answer that is an error.
pub fn failure(id: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}
