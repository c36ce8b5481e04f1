//! Takes in the body of an upload while it arrives, whichever listener it comes
//! to. Knows nothing of who sends it.

use super::state::Daemon;
use crate::api::http::{Divert, Fault, Headers, Method};
use crate::api::ops::{self, Id};
use crate::api::uri;
use crate::artifacts::Incoming;
use crate::error::Kind;
use crate::log;
use std::cell::Cell;

/// One request's body, if it is an upload's.
pub struct Intake<'a> {
    daemon: &'a Daemon,
    /// Who asks may upload; else the body is read as any other, and refused as the operation is.
    permitted: bool,
    content: Option<Incoming>,
}

impl<'a> Intake<'a> {
    /// For the next request of this asker.
    pub fn new(daemon: &'a Daemon, permitted: bool) -> Intake<'a> {
        Intake { daemon, permitted, content: None }
    }

    /// What was taken in.
    pub fn into_content(self) -> Cell<Option<Incoming>> {
        Cell::new(self.content)
    }
}

impl Divert for Intake<'_> {
    fn wants(&mut self, method: Method, target: &str, _: &Headers) -> Option<u64> {
        // One look at a letter for every other request.
        if method != Method::Put || !self.permitted {
            return None;
        }
        let is_upload =
            ops::route(method, uri::split(target).0).is_ok_and(|(op, _)| op.id == Id::UploadArtifact);
        if !is_upload {
            return None;
        }
        let limits = self.daemon.artifacts.limits(self.daemon);
        match self.daemon.artifacts.store.begin(&limits) {
            Ok(content) => {
                self.content = Some(content);
                Some(limits.one)
            }
            Err(e) => {
                log::warn(format_args!("taking in an artifact: {e}"));
                Some(limits.one)
            }
        }
    }

    fn take(&mut self, piece: &[u8]) -> Result<(), Fault> {
        let unwritten = Fault::Bad(503, "the artifact cannot be written; the daemon's log says why");
        let Some(content) = &mut self.content else { return Err(unwritten) };
        content.take(piece).map_err(|e| match e.kind() {
            Kind::TooLarge => Fault::Bad(413, "the artifact is larger than artifacts.maxSize"),
            _ => {
                log::warn(&e);
                unwritten
            }
        })
    }
}
