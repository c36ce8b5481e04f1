//! What the pool needs of a running server, as two small traits, and their
//! real implementation over `mcp`. The pool's other parts know no process, no
//! pipe and no protocol; its tests run on servers that are plain values.

use crate::config::ServerDef;
use crate::error::Result;
use crate::mcp::{Client, Connect, ToolList};
use crate::settings::Settings;
use crate::util::Env;
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::Duration;

pub use crate::mcp::{Asked, Cancel, Hooks, Options, Said};

/// What a server said of itself when it was started.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// The protocol revision that was negotiated.
    pub protocol: String,
    /// `serverInfo` as the server gave it.
    pub info: Option<Value>,
    /// `capabilities` as the server gave them.
    pub capabilities: Option<Value>,
    /// The server's instructions.
    pub instructions: Option<String>,
}

/// Told of each `notifications/progress` of a call, with its params.
pub type Progress = Arc<dyn Fn(Value) + Send + Sync>;

/// A server that runs and has been initialised. Any number of threads may use it at once.
pub trait Upstream: Send + Sync {
    /// Sends one request and waits for its result, as the server sent it.
    ///
    /// # Errors
    /// `OutcomeUnknown` when the connection broke after sending, `Unavailable` when
    /// nothing was sent, `Timeout`, `Cancelled`, and what the server itself answered.
    fn request(
        &self,
        method: &str,
        params: Option<Box<RawValue>>,
        options: &Options<'_>,
    ) -> Result<Box<RawValue>>;
    /// Makes a `tools/call` whose parameters ask for a task, and waits for the result of that task.
    ///
    /// # Errors
    /// As those of [`Upstream::request`]; `OutcomeUnknown` once the task had begun.
    fn call_as_task(&self, params: Box<RawValue>, options: &Options<'_>) -> Result<Box<RawValue>> {
        self.request("tools/call", Some(params), options)
    }
    /// All pages of `tools/list`.
    fn list_tools(&self, options: &Options<'_>) -> Result<ToolList>;
    /// What it said of itself.
    fn about(&self) -> About;
    /// Its process, when it is one of ours.
    fn pid(&self) -> Option<u32>;
    /// The connection is gone; nothing can be sent any more.
    fn is_closed(&self) -> bool;
    /// Why it is gone, with the last lines of stderr.
    fn closed_reason(&self) -> Option<String>;
    /// The last lines of stderr.
    fn stderr_tail(&self) -> String;
    /// Asks for a sign of life.
    fn ping(&self, limit: Duration) -> Result<()>;
    /// Ends it within the configured graces; what is in flight fails. Returns when it is gone.
    fn stop(&self);
    /// Calls `f` once with the reason when the connection is gone, at once when it is so already.
    fn on_close(&self, f: Box<dyn FnOnce(String) + Send>);
}

/// Starts servers.
pub trait Connector: Send + Sync {
    /// Starts the server and initialises it within its `startTimeout`. On
    /// failure, or when `cancel` is pulled, nothing of it is left running.
    /// `remembered` is the protocol revision that it spoke the last time.
    fn connect(
        &self,
        def: &ServerDef,
        settings: &Settings,
        hooks: Hooks,
        remembered: Option<&str>,
        cancel: &Cancel,
    ) -> Result<Arc<dyn Upstream>>;
}

/// Starts servers as the configuration describes them.
pub(super) struct McpConnector {
    /// The environment that they inherit.
    pub env: Env,
}

impl Connector for McpConnector {
    fn connect(
        &self,
        def: &ServerDef,
        settings: &Settings,
        hooks: Hooks,
        remembered: Option<&str>,
        cancel: &Cancel,
    ) -> Result<Arc<dyn Upstream>> {
        let connect = Connect { def, env: &self.env, settings, hooks, remembered };
        let client = Client::start(connect, cancel)?;
        Ok(Arc::new(client))
    }
}

impl Upstream for Client {
    fn request(
        &self,
        method: &str,
        params: Option<Box<RawValue>>,
        options: &Options<'_>,
    ) -> Result<Box<RawValue>> {
        Client::request(self, method, params, options.clone())
    }

    fn call_as_task(&self, params: Box<RawValue>, options: &Options<'_>) -> Result<Box<RawValue>> {
        Client::call_as_task(self, params, options)
    }

    fn list_tools(&self, options: &Options<'_>) -> Result<ToolList> {
        Client::list_tools(self, options)
    }

    fn about(&self) -> About {
        About {
            protocol: self.protocol(),
            info: self.server_info(),
            capabilities: Some(self.capabilities()).filter(Value::is_object),
            instructions: self.instructions(),
        }
    }

    fn pid(&self) -> Option<u32> {
        Client::pid(self)
    }

    fn is_closed(&self) -> bool {
        Client::is_closed(self)
    }

    fn closed_reason(&self) -> Option<String> {
        Client::closed_reason(self)
    }

    fn stderr_tail(&self) -> String {
        Client::stderr_tail(self)
    }

    fn ping(&self, limit: Duration) -> Result<()> {
        Client::ping(self, limit)
    }

    fn stop(&self) {
        Client::stop(self);
    }

    fn on_close(&self, f: Box<dyn FnOnce(String) + Send>) {
        Client::on_close(self, f);
    }
}
