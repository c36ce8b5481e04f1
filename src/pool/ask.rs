//! Requests other than calls: resources, prompts, completion. Knows nothing of
//! what is in them.

use super::connect::{Asked, Cancel, Options, Progress};
use super::instance::Lease;
use super::scope;
use super::server::Server;
use super::{Caller, Pool};
use crate::error::{Error, Kind, Result};
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Pages of one list; only ends a server that invents cursors for ever.
const PAGES: usize = 1000;

/// JSON-RPC: no such method. What a server answers that has nothing of the kind.
const METHOD_NOT_FOUND: i64 = -32601;

/// One request that is no call.
pub struct Request<'a> {
    /// The server's configured name, or its identifier.
    pub server: &'a str,
    /// Its method.
    pub method: &'a str,
    /// Its parameters.
    pub params: Option<Value>,
    /// How long it may take once the server runs; the server's `callTimeout` when absent.
    pub timeout: Option<Duration>,
    /// Pulled when the caller goes away.
    pub cancel: &'a Cancel,
    /// Who wants to hear of progress.
    pub progress: Option<Progress>,
    /// Takes what the server asks meanwhile.
    pub asked: Option<Asked>,
    /// What of that the caller answers itself, as MCP's `ClientCapabilities`.
    pub capabilities: Option<&'a Value>,
}

impl Pool {
    /// Makes a request of an instance that the caller's key leads to, and gives the
    /// result as the server sent it.
    ///
    /// # Errors
    /// As those of [`Pool::call`], but a broken connection is always `Unavailable`.
    pub fn request(&self, request: &Request<'_>, caller: &Caller) -> Result<Box<RawValue>> {
        let raw = |value: &Value| {
            to_raw_value(value).map_err(|e| Error::new(Kind::Internal, format!("writing parameters: {e}")))
        };
        let params = request.params.as_ref().map(raw).transpose()?;
        let named = |e: Error| if e.server_name().is_some() { e } else { e.server(request.server) };
        loop {
            let server = self.server(request.server)?;
            let Some(mut lease) = self.lease_for(&server, request, caller).map_err(named)? else { continue };
            lease.works_for(&caller.session);
            let timeout = request.timeout.or(server.usable()?.call_timeout);
            let options = Options {
                timeout,
                progress: request.progress.clone(),
                asked: request.asked.clone(),
                roots: Some(&|| scope::roots(caller)),
                capabilities: request.capabilities,
                ..Options::new(request.cancel)
            };
            return match lease.upstream.request(request.method, params, &options) {
                Ok(result) => {
                    lease.instance.note_answer(false);
                    Ok(result)
                }
                Err(e) => {
                    if e.kind() == Kind::Unavailable {
                        lease.instance.notice_crash();
                    }
                    Err(named(e))
                }
            };
        }
    }

    /// Whether a server may know a list's method: not where it has said of itself that it does not.
    pub fn may_offer(&self, server: &str, method: &str) -> bool {
        let capability = method.split('/').next().unwrap_or_default();
        let Ok(server) = self.server(server) else { return true };
        let Ok(limits) = server.usable() else { return true };
        let known = server.core.known(limits.ttl);
        let said = known.as_ref().and_then(|known| known.schema.capabilities.as_ref());
        said.is_none_or(|capabilities| capabilities.get(capability).is_some())
    }

    fn lease_for(
        &self,
        server: &Arc<Server>,
        request: &Request<'_>,
        caller: &Caller,
    ) -> Result<Option<Lease>> {
        let limits = server.usable()?;
        let key = match caller.session.is_empty() {
            // Nobody's: whichever instance is there.
            true => server.listing_key(&limits.scope),
            false => self.places.key(&limits.scope, caller).0,
        };
        let timeout = request.timeout.or(limits.call_timeout);
        let deadline = timeout.map(|limit| Instant::now() + limits.start_timeout + limit);
        server.lease(&key, deadline, request.cancel, None)
    }

    /// All pages of a list; `member` is what the result calls it. A server that
    /// knows nothing of the method has an empty one.
    ///
    /// # Errors
    /// As those of [`Pool::request`]; `Unavailable` for a list that never ends.
    pub fn list_all(&self, mut request: Request<'_>, member: &str, caller: &Caller) -> Result<Vec<Value>> {
        #[derive(Deserialize)]
        struct Page {
            #[serde(rename = "nextCursor")]
            next: Option<String>,
            #[serde(flatten)]
            members: serde_json::Map<String, Value>,
        }
        let bad = |what: &str| {
            let (server, method) = (request.server, request.method);
            Error::new(Kind::Unavailable, format!("{server} answered {method} with {what}")).server(server)
        };
        let (mut all, mut seen) = (Vec::new(), HashSet::new());
        for _ in 0..PAGES {
            let result = match self.request(&request, caller) {
                Err(e) if all.is_empty() && is_unknown_method(&e) => return Ok(all),
                outcome => outcome?,
            };
            let page: Page = serde_json::from_str(result.get()).map_err(|_| bad("something else"))?;
            if let Some(Value::Array(items)) =
                page.members.into_iter().find(|(k, _)| k == member).map(|(_, v)| v)
            {
                all.extend(items);
            }
            // Some servers end with an empty cursor instead of none.
            let Some(cursor) = page.next.filter(|c| !c.is_empty()) else { return Ok(all) };
            if !seen.insert(cursor.clone()) {
                return Err(bad("a cursor that it had given before; the list would never end"));
            }
            request.params = Some(json!({ "cursor": cursor }));
        }
        Err(bad("too many pages"))
    }
}

fn is_unknown_method(e: &Error) -> bool {
    e.raw_value().is_some_and(|raw| raw["code"] == METHOD_NOT_FOUND)
}
