//! Reads what the daemon answers: results, errors, lines of progress. Knows nothing
//! of the connection that they come by.

use super::http;
use crate::error::{Error, Kind, Result};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

/// A successful answer.
#[derive(Debug)]
pub struct Reply {
    /// The HTTP status, below 400.
    pub status: u16,
    /// The body, JSON.
    pub body: Vec<u8>,
}

/// Whether an error says that there is no such route, rather than no such thing. A daemon of any
/// version says it with these words ([`NO_ROUTE`]), or in none that are ours.
pub(super) fn lacks_route(error: &Error) -> bool {
    error.message().starts_with(NO_ROUTE)
        || error.message().contains(" does not take ")
        || error.message().starts_with(NOT_OURS)
}

/// How a daemon begins to say that it has no such route.
pub const NO_ROUTE: &str = "the daemon has no /";
/// How an answer is told of that holds no error of ours.
const NOT_OURS: &str = "the daemon answered ";

/// The error in a body, or one made of the status.
pub(super) fn reported(status: u16, body: &[u8]) -> Error {
    let parsed: Option<Value> = serde_json::from_slice(body).ok();
    match parsed.as_ref().and_then(|v| v.get("error")) {
        Some(error) => Error::from_json(error),
        None => Error::new(Kind::Unavailable, format!("{NOT_OURS}{status} {}", http::reason(status))),
    }
}

/// The body of an answer.
pub(super) fn from_json<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    serde_json::from_slice(body)
        .map_err(|e| Error::new(Kind::Unavailable, format!("reading the daemon's answer: {e}")))
}

/// The result of a call, unless its server asks something: then the error is
/// [`Kind::InputRequired`], with what is asked as `raw`.
pub fn called(reply: Reply) -> Result<Box<RawValue>> {
    if reply.status != Kind::InputRequired.row().status {
        return unwrap_result(reply.body);
    }
    let body: Value = from_json(&reply.body)?;
    let said = |name: &str| body["inputRequired"][name].as_str().unwrap_or_default().to_owned();
    let error = Error::new(Kind::InputRequired, said("text")).server(said("server")).tool(said("tool"));
    Err(error.raw(body))
}

/// An answer that may begin with lines of progress.
pub(super) struct Reports<'a> {
    /// What has come and is no whole line of progress.
    held: Vec<u8>,
    report: &'a mut dyn FnMut(&Value),
}

impl<'a> Reports<'a> {
    /// Hands each line of progress to `report`.
    pub(super) fn to(report: &'a mut dyn FnMut(&Value)) -> Reports<'a> {
        Reports { held: Vec::new(), report }
    }

    /// Takes what has come of the body.
    pub(super) fn take(&mut self, chunk: &[u8]) {
        const REPORT: &[u8] = b"{\"progress\":";
        self.held.extend_from_slice(chunk);
        // A result that is being gathered is not looked through: it may be large.
        while self.held.starts_with(b"\n") || self.held.starts_with(REPORT) {
            let Some(end) = self.held.iter().position(|b| *b == b'\n') else { return };
            let line: Vec<u8> = self.held.drain(..=end).collect();
            if let Ok(line) = serde_json::from_slice::<Value>(&line) {
                (self.report)(&line["progress"]);
            }
        }
    }

    /// What the call came to, as if it had been answered at once.
    pub(super) fn finish(self, reply: Reply) -> Result<Reply> {
        match &self.held[..] {
            [] => Ok(reply),
            held if held.starts_with(b"{\"error\":") => Err(reported(reply.status, held)),
            held if held.starts_with(b"{\"inputRequired\":") => {
                Ok(Reply { status: Kind::InputRequired.row().status, body: self.held })
            }
            _ => Ok(Reply { body: self.held, ..reply }),
        }
    }
}

/// Takes `{"result":…}` apart without copying a large result.
fn unwrap_result(mut body: Vec<u8>) -> Result<Box<RawValue>> {
    const OPEN: &[u8] = b"{\"result\":";
    if body.starts_with(OPEN) && body.ends_with(b"}") {
        body.truncate(body.len() - 1);
        body.drain(..OPEN.len());
        // The inner text is checked as one value: `1},{"x":2` is none.
        if let Ok(text) = String::from_utf8(body)
            && let Ok(result) = RawValue::from_string(text)
        {
            return Ok(result);
        }
        return Err(Error::new(Kind::Unavailable, "reading the daemon's answer: its result is not JSON"));
    }
    #[derive(serde::Deserialize)]
    struct Called {
        result: Box<RawValue>,
    }
    from_json::<Called>(&body).map(|c| c.result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_that_is_not_one_value_is_refused() {
        assert_eq!(unwrap_result(b"{\"result\":{}}".to_vec()).unwrap().get(), "{}");
        assert_eq!(unwrap_result(b" { \"result\" : 1 }".to_vec()).unwrap().get(), "1");
        for bad in [&b"{\"result\":}"[..], b"{\"result\":1},{\"x\":2}", b"{\"result\":1", b"", b"{}"] {
            assert!(unwrap_result(bad.to_vec()).is_err(), "{:?}", String::from_utf8_lossy(bad));
        }
    }
}
