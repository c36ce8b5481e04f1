//! The bus as it is read over HTTP: a list of what is remembered, or a stream of
//! server-sent events that goes on. Knows nothing of what the events mean.

use super::answers::{json_of, one_or_many};
use super::router::{Asker, Done, Response};
use super::state::Daemon;
use crate::api::http::Chunked;
use crate::error::{Error, Kind, Result};
use crate::observe::{Bus, Event, Filter, kinds};
use crate::settings;
use crate::util;
use serde::Deserialize;
use serde_json::json;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// So many events go into one chunk, so that a reader that catches up needs few.
const BATCH: usize = 256;

/// What is asked for.
#[derive(Deserialize)]
pub struct Wanted {
    #[serde(default, deserialize_with = "one_or_many")]
    kind: Vec<String>,
    #[serde(default, deserialize_with = "one_or_many")]
    server: Vec<String>,
    #[serde(default, deserialize_with = "one_or_many")]
    session: Vec<String>,
    since: Option<u64>,
    #[serde(default)]
    follow: bool,
}

/// Answers with what is remembered, or with a stream.
///
/// # Errors
/// `Usage` for a kind that there is not.
pub fn events(daemon: &Arc<Daemon>, wanted: Wanted, asker: &Asker<'_>) -> Result<Done> {
    let filter = Filter { kinds: wanted.kind, servers: wanted.server, sessions: wanted.session };
    if let Some(word) = filter.unknown_kind() {
        let error = Error::new(Kind::Usage, format!("there is no kind of event \"{word}\""));
        let known = kinds::ALL.iter().map(|kind| kind.word);
        return Err(match util::did_you_mean(word, known) {
            Some(hint) => error.hint(hint),
            None => error.hint("docs/api.md lists them"),
        });
    }
    let bus = daemon.pool.bus().clone();
    if !wanted.follow {
        let read = bus.read(wanted.since.unwrap_or(0), &filter, usize::MAX, Duration::ZERO, &|| true);
        let missed = if wanted.since.is_some() { read.missed } else { 0 };
        let events: Vec<&Event> = read.events.iter().map(|event| &**event).collect();
        return json_of(
            &json!({"events": events, "last": read.after, "missed": missed, "daemon": bus.daemon()}),
        );
    }
    // A client that lost its stream says where it was (WHATWG HTML, 9.2).
    let resumed = asker.headers.get("last-event-id").and_then(|id| id.trim().parse().ok());
    let after = resumed.or(wanted.since).unwrap_or_else(|| bus.last());
    let heartbeat = daemon.current().settings.get(&settings::EVENTS_HEARTBEAT);
    let cancel = asker.cancel.clone();
    let producer = move |out: &mut Chunked<'_>| {
        let waiting = bus.clone();
        let _guard = cancel.on_cancel(move || waiting.stir());
        follow(&bus, after, &filter, heartbeat, &|| cancel.is_cancelled(), out)
    };
    Ok(Done::Response(Response::stream("text/event-stream", Box::new(producer))))
}

fn follow(
    bus: &Bus,
    mut after: u64,
    filter: &Filter,
    heartbeat: Duration,
    gone: &dyn Fn() -> bool,
    out: &mut Chunked<'_>,
) -> io::Result<()> {
    // Something at once, so that the reader knows that it is being served.
    out.send(b": events\n\n")?;
    loop {
        let read = bus.read(after, filter, BATCH, heartbeat, gone);
        if gone() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        after = read.after;
        let mut text = String::new();
        if read.missed > 0 {
            text.push_str(&format!("event: missed\ndata: {{\"missed\":{}}}\n\n", read.missed));
        }
        read.events.iter().for_each(|event| write(event, &mut text));
        if text.is_empty() {
            text.push_str(": still here\n\n");
        }
        out.send(text.as_bytes())?;
        if read.closed && read.events.len() < BATCH {
            return Ok(());
        }
    }
}

fn write(event: &Event, text: &mut String) {
    // JSON on one line: no value of ours fails to become it.
    let data = serde_json::to_string(event).unwrap_or_default();
    text.push_str(&format!("id: {}\nevent: {}\ndata: {data}\n\n", event.seq, event.kind));
}
