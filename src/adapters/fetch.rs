//! One HTTP exchange with limits: on time, on the size of the answer, and on
//! whether anybody still wants it. Knows nothing of what is asked.

use crate::mcp::Cancel;
use crate::mcp::http::{Ask, Failure, Web, same_origin, shown};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How many redirects are followed, all within one origin.
const REDIRECTS: usize = 5;

/// What is asked.
pub struct Question<'a> {
    /// The method, in upper case.
    pub method: &'static str,
    /// The whole address.
    pub url: String,
    /// Names and values.
    pub headers: &'a [(String, String)],
    /// The body, if there is one.
    pub body: Option<&'a [u8]>,
    /// For all of it; zero is no limit.
    pub timeout: Duration,
    /// The most bytes of the answer's body.
    pub largest: usize,
}

/// What was answered.
pub struct Answer {
    /// The address that answered, redirects followed.
    pub url: String,
    /// The HTTP status.
    pub status: u16,
    /// The media type, lower case and without parameters; may be empty.
    pub media: String,
    /// The header `Link`.
    pub link: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}

/// Asks, and reads the whole answer. The error says what went wrong, without the address's query.
pub fn exchange(web: &Arc<Web>, mut question: Question<'_>, cancel: &Cancel) -> Result<Answer, String> {
    for _ in 0..=REDIRECTS {
        let what = format!("{} {}", question.method, shown(&question.url));
        let fail = |why: &dyn std::fmt::Display| Err(format!("{what}: {why}"));
        let lease = web.lease();
        let interrupt = lease.interrupter();
        let _guard = cancel.on_cancel(move || interrupt.interrupt());
        if cancel.is_cancelled() {
            return fail(&"cancelled");
        }
        let ask = Ask {
            method: question.method,
            url: &question.url,
            headers: question.headers,
            body: question.body,
            timeout: Some(question.timeout).filter(|t| !t.is_zero()),
            silence: None,
            dial: None,
        };
        let late = format!("no answer within {:?} (\"timeout\")", question.timeout);
        let mut reply = match lease.send(&ask) {
            Ok(reply) => reply,
            Err(_) if cancel.is_cancelled() => return fail(&"cancelled; it may have had its effect"),
            Err(Failure::NotSent(why)) => return fail(&format!("could not be sent: {why}")),
            Err(Failure::Broken(why)) => return fail(&format!("broke off: {why}")),
            Err(Failure::TimedOut) => return fail(&late),
        };
        let body = match reply.read(question.largest) {
            Ok(Some(body)) => body,
            Ok(None) => {
                let limit = question.largest;
                return fail(&format!("the answer is larger than {limit} bytes"));
            }
            Err(_) if cancel.is_cancelled() => return fail(&"cancelled; it may have had its effect"),
            Err(e) if e.kind() == io::ErrorKind::TimedOut => return fail(&late),
            Err(e) => return fail(&format!("reading the answer: {e}")),
        };
        let location = reply.header("location").map(str::to_owned);
        if let (301 | 302 | 303 | 307 | 308, Some(location)) = (reply.status, &location)
            && matches!(question.method, "GET" | "HEAD")
        {
            // Another origin must not see what is meant for this one.
            match same_origin(&question.url, location) {
                Some(next) => {
                    drop(reply);
                    question.url = next;
                    continue;
                }
                None => return fail(&format!("it redirects to {}, which is another place", shown(location))),
            }
        }
        return Ok(Answer {
            status: reply.status,
            media: reply.media_type(),
            link: reply.header("link").map(str::to_owned),
            url: question.url,
            body,
        });
    }
    Err(format!("{} {}: more than {REDIRECTS} redirects", question.method, shown(&question.url)))
}
