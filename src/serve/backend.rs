//! What the server half stands on: somebody who carries out operations of the
//! table. Knows nothing of MCP; the daemon itself is one, and a connection to
//! a daemon is another.

use crate::api::ops::Operation;
use crate::error::{Error, Kind, Result};
use crate::pool::{Cancel, Progress};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::sync::Arc;

/// How one operation is asked for.
pub struct Asked<'a> {
    /// Pulled when nobody waits for the answer any longer.
    pub cancel: &'a Cancel,
    /// Who wants to hear of progress.
    pub progress: Option<Progress>,
}

/// Carries out operations for one session.
pub trait Backend: Send + Sync {
    /// Carries out an operation with these parameters, a JSON object. What comes
    /// back is JSON; for `call` it is the tool's result itself.
    ///
    /// # Errors
    /// What the operation fails with; `Unavailable` when nobody could be asked.
    fn perform(&self, op: &'static Operation, params: &RawValue, asked: &Asked<'_>) -> Result<Box<RawValue>>;

    /// The key of the session that it asks for; none before that has begun.
    fn session(&self) -> Option<String>;

    /// Whose tasks are whose: the key of the session, or nothing where each request has one of its own.
    fn binding(&self) -> String {
        self.session().unwrap_or_default()
    }

    /// Has the session told of what has happened up to now, where nothing lies between.
    fn catch_up(&self) {}
}

/// Told of each message for the host: one line of JSON, ended by a line break.
pub trait Outlet: Send + Sync {
    /// Passes it on; false when nobody reads any longer.
    fn send(&self, line: &[u8]) -> bool;
}

/// An outlet that is shared.
pub type Out = Arc<dyn Outlet>;

/// An outlet for what nobody wants to hear.
pub fn nowhere() -> Out {
    struct Nowhere;
    impl Outlet for Nowhere {
        fn send(&self, _: &[u8]) -> bool {
            false
        }
    }
    Arc::new(Nowhere)
}

/// A value as parameters.
pub fn params(value: &impl Serialize) -> Result<Box<RawValue>> {
    to_raw_value(value).map_err(|e| Error::new(Kind::Internal, format!("writing parameters: {e}")))
}
