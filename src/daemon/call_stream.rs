//! A call's answer as it comes: the server's reports of progress, then what
//! the call came to. Knows nothing of how calls are carried out.

use super::asks::tasks::Task;
use super::router::{Response, error_body};
use crate::api::http::Chunked;
use crate::error::{Error, Result};
use crate::mcp::CancelGuard;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// Reports that wait for a slow reader; further ones are dropped, since the next one tells all.
pub const AHEAD: usize = 64;

/// The media type of JSON objects on lines of their own.
const MEDIA: &str = "application/x-ndjson";

/// What is heard of a call on another thread.
pub enum News {
    /// Its server reports progress: MCP's `{progress, total?, message?}`.
    Progress(Value),
    /// It is known what is carried out, and perhaps the task that it is.
    Ready(Option<Arc<Task>>),
    /// It is over.
    Done(Result<Box<RawValue>>),
    /// Its server asks something, and it goes on as a task: the error says what.
    Asked(Error),
}

/// A response that begins with a report: lines of `{"progress":…}`, then the very body that the call would have
/// had as an answer, `{"result":…}`, `{"error":…}` or `{"inputRequired":…}`. An empty line says that it goes on.
/// `guard` ends the call should the asker leave; it is dropped when that is nothing to the call any more.
pub fn response(first: Value, news: Receiver<News>, guard: CancelGuard, heartbeat: Duration) -> Response {
    let producer = move |out: &mut Chunked<'_>| produce(first, &news, guard, heartbeat, out);
    Response::stream(MEDIA, Box::new(producer))
}

fn produce(
    first: Value,
    news: &Receiver<News>,
    guard: CancelGuard,
    heartbeat: Duration,
    out: &mut Chunked<'_>,
) -> io::Result<()> {
    let mut next = Ok(News::Progress(first));
    loop {
        match next {
            Ok(News::Progress(report)) => {
                out.send(format!("{}\n", json!({"progress": report})).as_bytes())?
            }
            Ok(News::Ready(_)) => {}
            Err(RecvTimeoutError::Timeout) => out.send(b"\n")?,
            Ok(News::Done(Ok(result))) => {
                out.send(b"{\"result\":")?;
                out.send(result.get().as_bytes())?;
                return out.send(b"}");
            }
            Ok(News::Done(Err(error))) => return out.send(&error_body(&error)),
            Ok(News::Asked(error)) => {
                drop(guard);
                return out.send(error.raw_value().map(Value::to_string).unwrap_or_default().as_bytes());
            }
            // Its thread broke off: an answer without an end says that nobody knows what came of it.
            Err(RecvTimeoutError::Disconnected) => return Err(io::ErrorKind::BrokenPipe.into()),
        }
        next = news.recv_timeout(heartbeat);
    }
}
