//! What is answered to a message that cannot be carried out: JSON-RPC errors,
//! and the HTTP status that goes with each. Knows nothing of how tools fail:
//! that is part of a tool's result.

use crate::error::{Error, Kind};
use crate::mcp::jsonrpc;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// JSON-RPC: a bug of the answering side.
pub const INTERNAL_ERROR: i64 = -32603;
/// MCP 2026-07-28: a header says something else than the message.
pub const HEADER_MISMATCH: i64 = -32020;
/// MCP 2026-07-28: the host did not declare what the request needs.
pub const MISSING_CAPABILITY: i64 = -32021;
/// MCP 2026-07-28: the revision is not spoken here.
pub const UNSUPPORTED_VERSION: i64 = -32022;
/// MCP up to 2025-11-25: no such resource.
pub const RESOURCE_NOT_FOUND: i64 = -32002;

/// A JSON-RPC error.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// JSON-RPC's or MCP's code.
    pub code: i64,
    /// For the host's log, and often for a model.
    pub message: String,
    /// More, as the code defines it.
    pub data: Option<Value>,
}

impl Fault {
    /// With any code.
    pub fn new(code: i64, message: impl Into<String>) -> Fault {
        Fault { code, message: message.into(), data: None }
    }
    /// The text is not JSON.
    pub fn not_json(message: impl Into<String>) -> Fault {
        Fault::new(jsonrpc::PARSE_ERROR, message)
    }
    /// The JSON is no message, or none that may come now.
    pub fn request(message: impl Into<String>) -> Fault {
        Fault::new(jsonrpc::INVALID_REQUEST, message)
    }
    /// There is no such method.
    pub fn method(method: &str) -> Fault {
        Fault::new(jsonrpc::METHOD_NOT_FOUND, format!("no such method: {method}"))
    }
    /// The parameters are wrong.
    pub fn params(message: impl Into<String>) -> Fault {
        Fault::new(jsonrpc::INVALID_PARAMS, message)
    }
    /// A bug in mcpx.
    pub fn internal(message: impl Into<String>) -> Fault {
        Fault::new(INTERNAL_ERROR, message)
    }
    /// Adds data.
    pub fn data(mut self, data: Value) -> Fault {
        self.data = Some(data);
        self
    }

    /// What an error of mcpx's is outside of a tool's result. A server's own error passes whole.
    pub fn of(error: &Error) -> Fault {
        if let Some(raw) = error.raw_value()
            && let Some(code) = raw.get("code").and_then(Value::as_i64)
        {
            let message = raw.get("message").and_then(Value::as_str).unwrap_or(error.message());
            return Fault { code, message: message.to_owned(), data: raw.get("data").cloned() };
        }
        let code = match error.kind() {
            Kind::Usage | Kind::NotFound => jsonrpc::INVALID_PARAMS,
            _ => INTERNAL_ERROR,
        };
        Fault::new(code, error.message()).data(error.to_json())
    }

    /// The error object.
    pub fn to_json(&self) -> Value {
        let mut out = json!({"code": self.code, "message": self.message});
        if let Some(data) = &self.data {
            out["data"] = data.clone();
        }
        out
    }
    /// The answer to the request of this id, or to a message whose id could not be read.
    pub fn answer(&self, id: Option<&RawValue>) -> Vec<u8> {
        jsonrpc::refusal_with(id, &self.to_json())
    }

    /// The HTTP status of an answer in the stateless era. With `initialize` every answer to a
    /// request that was understood is a 200, whatever it says.
    pub fn status(&self) -> u16 {
        match self.code {
            jsonrpc::METHOD_NOT_FOUND => 404,
            jsonrpc::PARSE_ERROR
            | jsonrpc::INVALID_REQUEST
            | jsonrpc::INVALID_PARAMS
            | HEADER_MISMATCH
            | MISSING_CAPABILITY
            | UNSUPPORTED_VERSION => 400,
            _ => 200,
        }
    }

    /// The same as the stateless era says it: there a resource that is not there is a wrong parameter.
    pub fn stateless(mut self) -> Fault {
        if self.code == RESOURCE_NOT_FOUND {
            self.code = jsonrpc::INVALID_PARAMS;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_own_error_passes_whole() {
        let raw = json!({"code": -32042, "message": "go there", "data": {"elicitations": []}});
        let fault = Fault::of(&Error::new(Kind::Tool, "the server said no").raw(raw.clone()));
        assert_eq!(fault.to_json(), raw);
        let fault = Fault::of(&Error::new(Kind::Unavailable, "gone").hint("start it"));
        assert_eq!(fault.code, INTERNAL_ERROR);
        assert_eq!(fault.data.unwrap()["hint"], "start it");
    }

    #[test]
    fn a_message_without_an_id_is_answered_under_null() {
        let line = Fault::not_json("what?").answer(None);
        let back: Value = serde_json::from_slice(&line).unwrap();
        assert_eq!((&back["id"], &back["error"]["code"]), (&Value::Null, &json!(-32700)));
        assert!(line.ends_with(b"\n"));
    }
}
