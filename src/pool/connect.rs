//! What the pool needs of a running server, as two small traits, and their
//! real implementation over `mcp`. The pool's other parts know no process, no
//! pipe and no protocol; its tests run on servers that are plain values.

use crate::catalog::Tool;
use crate::config::ServerDef;
use crate::error::{Error, Kind, Result};
use crate::settings::Settings;
use crate::util::Env;
use serde_json::Value;
use serde_json::value::RawValue;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use super::cancel::Cancel;

/// Told of each `notifications/progress` of a call, with its params.
pub type Progress = Arc<dyn Fn(Value) + Send + Sync>;

/// How a request is to be made.
#[derive(Clone)]
pub struct Ask<'a> {
    /// How long to wait for the answer; absent means for ever.
    pub timeout: Option<Duration>,
    /// Pulled when the caller goes away.
    pub cancel: &'a Cancel,
    /// Who wants to hear of progress.
    pub progress: Option<Progress>,
}

/// What a server said of itself when it was started.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// The protocol revision that was negotiated.
    pub protocol: String,
    /// `serverInfo` as the server gave it.
    pub info: Option<Value>,
    /// The server's instructions.
    pub instructions: Option<String>,
}

/// A server that runs and has been initialised. Any number of threads may use it at once.
pub trait Upstream: Send + Sync {
    /// Sends one request and waits for its result, as the server sent it.
    ///
    /// # Errors
    /// `OutcomeUnknown` when the connection broke after sending, `Unavailable` when
    /// nothing was sent, `Timeout`, `Cancelled`, and what the server itself answered.
    fn request(&self, method: &str, params: Option<Box<RawValue>>, ask: &Ask<'_>) -> Result<Box<RawValue>>;
    /// All pages of `tools/list`.
    fn list_tools(&self, ask: &Ask<'_>) -> Result<Vec<Tool>>;
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

/// What a running server may ask of the pool.
#[derive(Clone)]
pub struct Hooks {
    /// The server's list of tools changed.
    pub tools_changed: Arc<dyn Fn() + Send + Sync>,
    /// The directories that the server is to work in.
    pub roots: Arc<dyn Fn() -> Vec<PathBuf> + Send + Sync>,
}

/// Starts servers.
pub trait Connector: Send + Sync {
    /// Starts the server and initialises it within its `startTimeout`. On
    /// failure, or when `cancel` is pulled, nothing of it is left running.
    fn connect(
        &self,
        def: &ServerDef,
        settings: &Settings,
        hooks: Hooks,
        cancel: &Cancel,
    ) -> Result<Arc<dyn Upstream>>;
}

/// Starts servers as the configuration describes them.
pub(super) struct McpConnector {
    /// The environment that they inherit.
    pub env: Env,
    /// mcpx's version, which they are told.
    pub version: String,
}

impl Connector for McpConnector {
    fn connect(
        &self,
        def: &ServerDef,
        _settings: &Settings,
        _hooks: Hooks,
        _cancel: &Cancel,
    ) -> Result<Arc<dyn Upstream>> {
        let _ = (&self.env, &self.version);
        Err(Error::new(Kind::Internal, format!("server \"{}\" can't be reached yet", def.name)))
    }
}
