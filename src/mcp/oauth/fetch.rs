//! The few requests that authorisation makes: small documents and forms, only
//! where nobody listens, within a time. Follows redirects of a GET within its
//! origin; never repeats a POST. Knows nothing of what the documents say.

use super::super::cancel::Cancel;
use super::super::http::{self, Ask, Failure, Web};
use super::url::Url;
use crate::error::{Error, Kind, Result};
use crate::util::Env;
use serde_json::Value;
use std::time::Duration;

/// The largest answer that is read: such documents have a few kilobytes.
const MOST: usize = 1024 * 1024;
/// A redirect or two lead to a document's place; more lead in circles.
const REDIRECTS: usize = 3;

/// Makes requests on behalf of one server's authorisation.
pub struct Fetch<'a> {
    /// The server's name, for errors.
    pub server: &'a str,
    /// Proxies and certificates.
    pub env: &'a Env,
    /// `transport.caFile`.
    pub ca: &'a str,
    /// How long one request may take.
    pub timeout: Duration,
    /// Ends a request.
    pub cancel: &'a Cancel,
}

/// What came back.
pub struct Answer {
    /// The status.
    pub status: u16,
    /// `WWW-Authenticate`, joined.
    pub challenge: Option<String>,
    /// The body, as JSON; null when it is none.
    pub json: Value,
}

impl Fetch<'_> {
    /// Fetches a document.
    pub fn get(&self, url: &str) -> Result<Answer> {
        self.send("GET", url, &[], None)
    }

    /// Sends a form.
    pub fn form(&self, url: &str, pairs: &[(&str, &str)], headers: &[(String, String)]) -> Result<Answer> {
        let mut all = headers.to_vec();
        all.push(("Content-Type".into(), "application/x-www-form-urlencoded".into()));
        self.send("POST", url, &all, Some(super::url::form(pairs).into_bytes()))
    }

    /// Sends a JSON document.
    pub fn json(&self, url: &str, body: &Value, headers: &[(String, String)]) -> Result<Answer> {
        let mut all = headers.to_vec();
        all.push(("Content-Type".into(), "application/json".into()));
        self.send("POST", url, &all, Some(body.to_string().into_bytes()))
    }

    fn send(
        &self,
        method: &'static str,
        url: &str,
        headers: &[(String, String)],
        body: Option<Vec<u8>>,
    ) -> Result<Answer> {
        let mut url = url.to_owned();
        for _ in 0..=REDIRECTS {
            self.check(&url)?;
            let bad = |what: String| {
                let shown = http::shown(&url);
                Error::new(
                    Kind::Unavailable,
                    format!("authorisation for the server {}: {shown} {what}", self.server),
                )
                .server(self.server)
            };
            let web = Web::new(&url, self.env, self.ca)?;
            let lease = web.lease();
            let interrupt = lease.interrupter();
            let _guard = self.cancel.on_cancel(move || interrupt.interrupt());
            let mut all = headers.to_vec();
            if !all.iter().any(|(name, _)| name.eq_ignore_ascii_case("accept")) {
                all.push(("Accept".into(), "application/json".into()));
            }
            let timeout = Some(self.timeout);
            let ask = Ask {
                method,
                url: &url,
                headers: &all,
                body: body.as_deref(),
                timeout,
                silence: None,
                dial: None,
            };
            let mut reply = match lease.send(&ask) {
                Ok(reply) => reply,
                Err(_) if self.cancel.is_cancelled() => {
                    return Err(Error::new(Kind::Cancelled, "cancelled").server(self.server));
                }
                Err(Failure::TimedOut) => return Err(bad("did not answer in time".into())),
                Err(Failure::NotSent(why)) => return Err(bad(format!("cannot be reached: {why}"))),
                Err(Failure::Broken(why)) => return Err(bad(format!("broke the connection: {why}"))),
            };
            if body.is_none() && matches!(reply.status, 301 | 302 | 303 | 307 | 308) {
                let location = reply.header("location").unwrap_or_default().to_owned();
                let next = http::same_origin(&url, &location);
                url = next.ok_or_else(|| bad("redirects to another origin".into()))?;
                continue;
            }
            let status = reply.status;
            let challenge = reply.header("www-authenticate").map(str::to_owned);
            // A server that answers with a stream goes on and on; its status is enough.
            let text = match reply.media_type() == "text/event-stream" {
                true => None,
                false => reply.read(MOST).map_err(|e| bad(format!("broke off: {e}")))?,
            };
            let json = text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or(Value::Null);
            return Ok(Answer { status, challenge, json });
        }
        Err(super::refused(self.server, format_args!("{} redirects in circles", http::shown(&url))))
    }

    /// Refuses to ask where others could listen.
    fn check(&self, url: &str) -> Result<()> {
        match Url::parse(url) {
            Some(parsed) if parsed.is_private() => Ok(()),
            Some(_) => Err(super::refused(
                self.server,
                format_args!(
                    "{} is neither https nor on this machine; nothing was sent there",
                    http::shown(url)
                ),
            )),
            None => Err(super::refused(self.server, format_args!("{} is no URL of HTTP", http::shown(url)))),
        }
    }
}
