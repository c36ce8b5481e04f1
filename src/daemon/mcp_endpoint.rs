//! The place of `/mcp` in the daemon: whoever serves it is given from above, and
//! gets a seat for each session, from which operations can be asked. Knows
//! nothing of MCP.

use super::answers;
use super::callers::{is_confined, limits};
use super::detached::INPUT_HEADER;
use super::router::Body;
use super::router::{Asker, Done, Origin, Params};
use super::runs::{Run, Tie};
use super::state::Daemon;
use crate::api::http::Headers;
use crate::api::ops::Operation;
use crate::api::wire::{CallContext, SelectedProfiles};
use crate::api::{Reply, called};
use crate::error::{Error, Kind, Result};
use crate::mcp::CancelGuard;
use crate::observe::Bus;
use crate::pool::{Cancel, Progress};
use crate::settings::Settings;
use serde_json::value::RawValue;
use std::sync::{Arc, Weak};

pub use super::router::{Asked as HttpRequest, Response};

/// The path.
pub const PATH: &str = "/mcp";

/// Serves [`PATH`].
pub trait Endpoint: Send + Sync {
    /// Answers a request. `query` is what follows the path.
    fn answer(&self, desk: &Desk<'_>, request: &HttpRequest<'_>, query: &str) -> Response;
}

/// What is known of one request, and the daemon that it came to.
pub struct Desk<'a> {
    daemon: &'a Arc<Daemon>,
    asker: &'a Asker<'a>,
}

/// A session's place in the daemon: a run, and where its requests come from.
pub struct Seat {
    /// The daemon outlives no seat: it ends its sessions when it stops.
    daemon: Weak<Daemon>,
    run: Arc<Run>,
    origin: Origin,
    held: Option<Arc<Run>>,
    /// The run was opened for the session and ends with it.
    own: bool,
}

impl<'a> Desk<'a> {
    pub(super) fn new(daemon: &'a Arc<Daemon>, asker: &'a Asker<'a>) -> Desk<'a> {
        Desk { daemon, asker }
    }
    /// The request's header lines.
    pub fn headers(&self) -> &Headers {
        self.asker.headers
    }
    /// Pulled when whoever asked has gone.
    pub fn cancel(&self) -> &Cancel {
        self.asker.cancel
    }
    /// The settings in force.
    pub fn settings(&self) -> Settings {
        self.daemon.current().settings.clone()
    }
    /// What happens in the daemon.
    pub fn bus(&self) -> Arc<Bus> {
        self.daemon.pool.bus().clone()
    }

    /// A seat for a session; what asks with a run's token gets that run's.
    ///
    /// # Errors
    /// Those of opening a run.
    pub fn seat(&self, session: Option<String>, selection: SelectedProfiles) -> Result<Seat> {
        let (run, own) = match &self.asker.origin {
            Origin::Channel(run) => (run.clone(), false),
            _ => {
                let context = CallContext { session, selection: Some(selection), ..CallContext::default() };
                let limits = limits(self.daemon, &context, self.asker);
                let run = self.daemon.runs.open(context, Tie::Loose, limits, is_confined(self.asker))?;
                run.carry(self.asker.carried.clone());
                (run, true)
            }
        };
        let (origin, held) = (self.asker.origin.clone(), self.asker.held.clone());
        Ok(Seat { daemon: Arc::downgrade(self.daemon), run, origin, held, own })
    }

    /// Whether a request comes from where the seat's session began: what is permitted there is not everywhere.
    pub fn may_use(&self, seat: &Seat) -> bool {
        match (&self.asker.origin, &seat.origin) {
            (Origin::Unix(_), Origin::Unix(_)) | (Origin::Tcp, Origin::Tcp) => true,
            (Origin::Channel(a), Origin::Channel(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl Seat {
    /// Carries out an operation in the session's name.
    ///
    /// # Errors
    /// Those of the operation; `Unavailable` when the daemon has stopped.
    pub fn perform(
        &self,
        op: &'static Operation,
        params: &RawValue,
        cancel: &Cancel,
        progress: Option<Progress>,
    ) -> Result<Box<RawValue>> {
        let daemon =
            self.daemon.upgrade().ok_or_else(|| Error::new(Kind::Unavailable, "the daemon has stopped"))?;
        self.run.touch();
        // What programs may ask is asked as by a program of the run, the rest as by whoever came.
        let origin = if op.on_channel { Origin::Channel(self.run.clone()) } else { self.origin.clone() };
        // A host that cannot answer a server's question can still tell of it.
        let headers = Headers(vec![(INPUT_HEADER.to_owned(), "report".to_owned())]);
        let (carried, held) = (self.run.carried(), self.held.clone());
        let asker = Asker { origin, held, cancel, progress, carried, headers: &headers, early: None };
        let done = answers::perform(&daemon, op, Params::Json(params.get().as_bytes()), &asker)?;
        match done {
            Done::Tool(result) => Ok(result),
            Done::Response(Response { status, body: Body::Whole(body), .. })
                if status == Kind::InputRequired.row().status =>
            {
                called(Reply { status, body })
            }
            Done::Json(text) => {
                let text = String::from_utf8(text).map_err(|e| Error::new(Kind::Internal, e.to_string()))?;
                RawValue::from_string(text).map_err(|e| Error::new(Kind::Internal, e.to_string()))
            }
            _ => Err(Error::new(Kind::Refused, format!("{} has no answer that a tool could have", op.name))),
        }
    }

    /// The key of the session that its calls belong to.
    pub fn session(&self) -> &str {
        &self.run.caller.session
    }

    /// Whether its run is still open; says that somebody uses it.
    pub fn is_open(&self) -> bool {
        self.run.touch();
        self.is_open_still()
    }

    /// Whether its run is still open.
    pub fn is_open_still(&self) -> bool {
        !self.run.ended.is_cancelled()
    }

    /// Runs `f` when its run ends.
    pub fn on_end(&self, f: impl FnOnce() + Send + 'static) -> CancelGuard {
        self.run.ended.on_cancel(f)
    }

    /// Ends the session, and what is its own.
    pub fn leave(&self) {
        if let Some(daemon) = self.daemon.upgrade().filter(|_| self.own) {
            daemon.end_sessions(daemon.runs.close(&self.run.id));
        }
    }
}
