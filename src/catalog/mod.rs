//! What servers offer, without a running server: their tools' schemas, the
//! cache of them on disk, names, search, and TypeScript made from JSON Schema.
//! Knows nothing of how a server is reached.

pub mod budget;
pub mod cache;
pub mod filter;
mod grants;
pub mod lock;
pub mod names;
pub mod refs;
pub mod rows;
pub mod search;
pub mod ts;
pub mod validate;

pub use self::grants::Grant;
pub use crate::mcp::Tool;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// All that one server offers, as it was read at one time.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerSchema {
    /// The server's configured name.
    pub server: String,
    /// The digest of the definition it was read under.
    pub digest: String,
    /// When it was read, milliseconds since 1970.
    pub fetched_at: u64,
    /// The protocol revision that was negotiated.
    pub protocol: String,
    /// `serverInfo` as the server gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_info: Option<Value>,
    /// `capabilities` as the server gave them; none where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Value>,
    /// The server's instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// How long the server said that its tools stay the same, milliseconds; 0 promises nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// The server said that its tools are for whoever asked, and nobody else.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
    /// Its tools, in its own order.
    pub tools: Vec<Tool>,
}

impl ServerSchema {
    /// Until when the server promised that this stays so, milliseconds since 1970; none when it promised nothing.
    pub fn promised_until(&self) -> Option<u64> {
        self.ttl_ms.filter(|ms| *ms > 0).map(|ms| self.fetched_at.saturating_add(ms))
    }

    /// The server's promise is over.
    pub fn has_expired(&self) -> bool {
        self.promised_until().is_some_and(|until| crate::util::now_ms() >= until)
    }
}
