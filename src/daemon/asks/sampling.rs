//! A server's request for a model's words (`sampling/createMessage`): the
//! command that the settings name answers it. Knows nothing of models.

use super::super::child;
use super::super::state::Daemon;
use super::{About, NOT_OFFERED};
use crate::adapters::run::{Ended, Job, run};
use crate::error::{Error, Kind, Result};
use crate::log::{Level, one_line};
use crate::mcp::{Cancel, Question, samples_for};
use crate::observe::log::{Entry, Ids};
use crate::proc::{self, Exit, find_program};
use crate::settings::{self, Settings, duration_text};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The method.
pub const METHOD: &str = "sampling/createMessage";

/// JSON-RPC: something went wrong inside.
const FAILED: i64 = -32603;

/// How many characters of what a handler writes to stderr a failure repeats.
const QUOTED: usize = 500;

/// Answers a request without waiting: on a thread of its own, or with a refusal. `call`: what ends the call
/// that wants it.
pub fn begin(daemon: &Arc<Daemon>, question: Question, about: About, call: Option<&Cancel>) {
    let settings = daemon.current().settings.clone();
    if let Err(why) = samples_for(&settings, &question.server) {
        question.answer(Err((NOT_OFFERED, format!("mcpx does not answer {METHOD}: {why}"))));
        return;
    }
    let most = usize::try_from(settings.get(&settings::SAMPLING_CONCURRENCY)).unwrap_or(1);
    let Some(place) = Place::take(&daemon.questions.sampling, most) else {
        let why = format!("{most} requests for a model are being answered (sampling.concurrency)");
        question.answer(Err((FAILED, why)));
        return;
    };
    let daemon = daemon.clone();
    let withdrawn = question.withdrawn.clone();
    let guard = call.map(|call| call.on_cancel(move || withdrawn.cancel()));
    // With no room for a thread the question is dropped, and so refused.
    let _ = proc::thread::spawn("sampling", move || {
        let _busy = daemon.activity.enter();
        let begun = Instant::now();
        let outcome = ask(&daemon, &settings, &question, &about);
        drop((place, guard));
        record(&daemon, &question, &about, &outcome, begun.elapsed());
        question.answer(outcome.map_err(|e| (FAILED, e.to_string())));
    });
}

/// A place among those that are answered at once.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(taken: &Arc<AtomicUsize>, most: usize) -> Option<Place> {
        let place = Place(taken.clone());
        // Given back by the drop when there was no room.
        (taken.fetch_add(1, Ordering::SeqCst) < most).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Runs the command with the request on its standard input; what it prints is the result.
fn ask(daemon: &Daemon, settings: &Settings, question: &Question, about: &About) -> Result<Value> {
    let command = settings.get(&settings::SAMPLING_COMMAND);
    let name = command.first().map(String::as_str).unwrap_or_default();
    let fail = |what: String| Error::new(Kind::Unavailable, format!("sampling.command ({name}) {what}"));
    let (env, cwd) = child::surroundings(daemon);
    let mut request = json!({"method": METHOD, "server": question.server, "params": question.params});
    if let Some(tool) = &about.tool {
        request["tool"] = json!(tool);
    }
    let limit = settings.get(&settings::SAMPLING_TIMEOUT);
    let job = Job {
        program: find_program(OsStr::new(name), &env, &cwd)?,
        args: command[1..].to_vec(),
        env: env.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
        cwd,
        stdin: Some(format!("{request}\n")),
        timeout: limit,
        output: usize::try_from(settings.get(&settings::ADAPTERS_MAX_OUTPUT)).unwrap_or(usize::MAX),
    };
    let cancel: &Cancel = &question.withdrawn;
    let printed = match run(job, cancel).map_err(|e| fail(format!("could not be started: {e}")))? {
        Ended::Exited { exit: Exit::Code(0), stdout, .. } => stdout,
        Ended::Exited { exit, stderr, .. } => {
            return Err(fail(format!("ended with {exit}{}", words(&stderr))));
        }
        Ended::TimedOut { stderr } => {
            let limit = duration_text(limit);
            return Err(fail(format!("took longer than {limit} (sampling.timeout){}", words(&stderr))));
        }
        Ended::TooMuch => return Err(fail("printed more than adapters.maxOutput".into())),
        Ended::Cancelled => return Err(Error::new(Kind::Cancelled, "nobody wants it any more")),
    };
    finished(&printed, name).map_err(fail)
}

/// MCP's `CreateMessageResult`; of what it has to hold, a handler may leave out what goes without saying.
fn finished(printed: &[u8], name: &str) -> std::result::Result<Value, String> {
    let mut result: Value =
        serde_json::from_slice(printed).map_err(|e| format!("printed something other than JSON: {e}"))?;
    if !result["content"].is_object() && !result["content"].is_array() {
        return Err("printed no \"content\", such as {\"type\": \"text\", \"text\": \"…\"}".into());
    }
    let file = Path::new(name).file_name().unwrap_or_default().to_string_lossy();
    for (member, value) in [("role", "assistant"), ("model", &*file)] {
        if !result[member].is_string() {
            result[member] = json!(value);
        }
    }
    Ok(result)
}

fn words(stderr: &[u8]) -> String {
    let text = one_line(String::from_utf8_lossy(stderr).trim());
    let from = text.char_indices().rev().nth(QUOTED).map_or(0, |(at, _)| at);
    if text.is_empty() { text } else { format!(": {}", &text[from..]) }
}

/// That it happened goes into the log; what was said does not.
fn record(daemon: &Daemon, question: &Question, about: &About, outcome: &Result<Value>, took: Duration) {
    let ids = Ids { server: question.server.clone(), session: about.session.clone(), ..Ids::default() };
    let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let mut data = json!({"tool": about.tool, "ok": outcome.is_ok(), "durationMs": ms});
    let (level, text) = match outcome {
        Ok(result) => {
            data["model"] = result["model"].clone();
            (Level::Info, format!("answered {METHOD} of {}", question.server))
        }
        Err(e) => (Level::Warn, format!("answering {METHOD} of {}: {e}", question.server)),
    };
    let event = "sampling.answered".to_owned();
    daemon.pool.bus().record(Entry { event, ids, data, ..Entry::new(level, "sampling", text) });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_needs_its_content_and_gets_the_rest() {
        let printed = br#"{"content": {"type": "text", "text": "hi"}}"#;
        let result = finished(printed, "/usr/bin/say").unwrap();
        assert_eq!((&result["role"], &result["model"]), (&json!("assistant"), &json!("say")));
        let own = br#"{"role": "user", "model": "m", "content": [], "stopReason": "endTurn"}"#;
        assert_eq!(finished(own, "x").unwrap(), serde_json::from_slice::<Value>(own).unwrap());
        assert!(finished(b"hi", "x").unwrap_err().contains("JSON"));
        assert!(finished(b"{\"content\": \"hi\"}", "x").unwrap_err().contains("content"));
        assert!(finished(b"[]", "x").is_err());
    }

    #[test]
    fn places_are_given_back() {
        let taken = Arc::default();
        let one = Place::take(&taken, 1);
        assert!(one.is_some() && Place::take(&taken, 1).is_none());
        drop(one);
        assert!(Place::take(&taken, 1).is_some());
    }

    #[test]
    fn a_failure_quotes_the_end_of_what_was_written() {
        assert_eq!(words(b" \n"), "");
        assert_eq!(words(b"a\nb"), ": a; b");
        let long = "ä".repeat(2000);
        assert!(words(long.as_bytes()).chars().count() <= QUOTED + 3);
    }
}
