//! Keeps what scripts and tools produce: files by their content, under the state
//! directory, each listed with its name, its run and its session. Any process of
//! this user may use it, several at once. Knows nothing of who gives them, of HTTP, or
//! of processes.

mod incoming;
mod name;
mod store;
mod sweep;
#[cfg(test)]
mod tests;

pub use self::incoming::Incoming;
pub use self::name::{clean as clean_name, extension, media_type};
pub use self::store::{Label, Limits, Store};
pub use self::sweep::{Swept, Why};

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What every artifact's `uri` begins with; its id follows.
pub const SCHEME: &str = "mcpx-artifact:";

/// One artifact: content, and under which name which run gave it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    /// `mcpx-artifact:ID`.
    pub uri: String,
    /// 16 hexadecimal digits: the same content under the same name from the same run is the same artifact.
    pub id: String,
    /// A file name; never a path.
    pub name: String,
    /// Its media type.
    pub mime: String,
    /// How many bytes it has.
    pub size: u64,
    /// The SHA-256 of the content, in hexadecimal.
    pub sha256: String,
    /// When it was given, in milliseconds since 1970.
    pub at: u64,
    /// The run that gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The session that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Where the file is, for who shares this file system. Not written down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
}
