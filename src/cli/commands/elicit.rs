//! `mcpx elicit`: what servers ask, and answering it.

use super::super::args::usage;
use super::super::command::{Command, Group, MANY, Rest, example};
use super::super::cx::Cx;
use super::super::interrupt::Interrupt;
use super::super::out::note;
use super::super::questions;
use super::super::whole::{STDIN, whole};
use crate::api::{Client, uri};
use crate::error::{Error, Kind, Result};
use crate::proc::Patient;
use crate::settings::TRANSPORT_MAX_BODY;
use crate::util::did_you_mean;
use serde_json::{Value, json};
use std::io;

/// The command.
pub static COMMAND: Command = Command {
    name: "elicit",
    group: Group::Run,
    words: "[list|show|answer|decline|cancel|watch] [<id>] [<arguments>]",
    count: (0, MANY),
    rest: Rest::Mixed,
    summary: "Show what servers ask while they work, and answer it",
    about: "A server may ask for input in the middle of a call (elicitation). The call then ends with exit code 75, \
            prints the question, and goes on as a task that waits for the answer until elicit.timeout is over.\n\n\
            list shows the open questions, show one with its form, watch each one as it comes. answer accepts it with \
            the form's fields as a JSON object (- reads it from standard input; fields with a default may be left \
            out), or with nothing where the server asks to open a URL; on a terminal answer without an object asks \
            for each field. decline says no; cancel says nothing.",
    flags: &[],
    settings: &["elicit.timeout", "elicit.rules"],
    examples: &[
        example("mcpx elicit", "the open questions"),
        example("mcpx elicit answer q-3fa9c1 '{\"seats\":2}'", "accept one"),
        example("mcpx elicit decline q-3fa9c1", "say no"),
        example("mcpx elicit watch", "each question as it comes, until Ctrl-C"),
    ],
    run,
};

const ACTIONS: &[&str] = &["list", "show", "answer", "decline", "cancel", "watch"];

/// A question that cannot be found, as there is no daemon that could have it.
pub fn nothing_runs(what: &str) -> Error {
    Error::new(Kind::NotFound, format!("{what}: no daemon is running here, so nothing is open"))
}

fn run(cx: &mut Cx) -> Result<u8> {
    let words: Vec<String> = cx.inv.words()?.into_iter().map(str::to_owned).collect();
    let (action, rest) = words.split_first().map_or(("list", &[][..]), |(a, r)| (a.as_str(), r));
    let client = || cx.running_anyhow().map(|(client, _)| client);
    match (action, rest) {
        ("list", []) => {
            let open = match client()? {
                Some(client) => client.json("GET", "/v1/elicit", None)?,
                None => json!({"questions": []}),
            };
            list(cx, &open["questions"])
        }
        ("show", [id]) => {
            let client = client()?.ok_or_else(|| nothing_runs(&format!("showing {id}")))?;
            let question = client.json("GET", &path(id), None)?;
            if cx.json() {
                cx.out.json(&json!({"ok": true, "question": question}))?;
            } else {
                cx.out.line(&questions::shown(&question))?;
            }
            Ok(0)
        }
        ("answer", [id]) => {
            let client = client()?.ok_or_else(|| nothing_runs(&format!("answering {id}")))?;
            let question = client.json("GET", &path(id), None)?;
            let body = match question["mode"].as_str() {
                Some("url") => json!({"action": "accept"}),
                _ if questions::can_prompt() => questions::prompt(&question)?,
                // What has a default for everything needs no words.
                _ => json!({"action": "accept", "content": {}}),
            };
            answered(cx, &client, id, &body)
        }
        ("answer", [id, text]) => {
            let client = client()?.ok_or_else(|| nothing_runs(&format!("answering {id}")))?;
            let text = match text.as_str() {
                "-" => {
                    let most = cx.world()?.settings.get(&TRANSPORT_MAX_BODY);
                    let bytes = whole(&mut Patient::stdin(), most, STDIN)?;
                    String::from_utf8(bytes).map_err(|_| usage("standard input is not UTF-8"))?
                }
                text => text.to_owned(),
            };
            let content: Value = serde_json::from_str(&text).map_err(|e| {
                usage(format!("the answer is not JSON: {e}")).hint("such as '{\"name\":\"Ada\"}'")
            })?;
            answered(cx, &client, id, &json!({"action": "accept", "content": content}))
        }
        ("decline" | "cancel", [id]) => {
            let client = client()?.ok_or_else(|| nothing_runs(&format!("answering {id}")))?;
            answered(cx, &client, id, &json!({"action": action}))
        }
        ("watch", []) => {
            let client = client()?.ok_or_else(|| nothing_runs("watching for questions"))?;
            watch(cx, &client)
        }
        (known, _) if ACTIONS.contains(&known) => {
            let what = match known {
                "list" | "watch" => "takes no further words",
                "answer" => "needs a question and, for a form, a JSON object",
                _ => "needs one question, such as q-3fa9c1",
            };
            Err(usage(format!("mcpx elicit {known} {what}")).hint("mcpx elicit --help shows examples"))
        }
        (odd, _) => {
            let e = usage(format!("mcpx elicit cannot \"{odd}\""));
            let near = did_you_mean(odd, ACTIONS.iter().copied());
            Err(e.hint(near.unwrap_or_else(|| format!("it can {}", ACTIONS.join(", ")))))
        }
    }
}

fn path(id: &str) -> String {
    format!("/v1/elicit/{}", uri::encode(id, false))
}

fn list(cx: &mut Cx, open: &Value) -> Result<u8> {
    if cx.json() {
        cx.out.json(&json!({"ok": true, "questions": open}))?;
        return Ok(0);
    }
    let open = open.as_array().map(Vec::as_slice).unwrap_or_default();
    if open.is_empty() {
        note("no question is open");
    }
    for question in open {
        cx.out.line(&questions::line(question))?;
    }
    Ok(0)
}

fn answered(cx: &mut Cx, client: &Client, id: &str, body: &Value) -> Result<u8> {
    let question = client.json("POST", &path(id), Some(body))?;
    if cx.json() {
        cx.out.json(&json!({"ok": true, "question": question}))?;
        return Ok(0);
    }
    let outcome = match question["outcome"].as_str() {
        Some("accept") => "answered",
        Some("decline") => "declined",
        _ => "cancelled",
    };
    let next = match question["task"].as_str() {
        Some(task) => format!("; the result: mcpx task result {task}"),
        None => String::new(),
    };
    cx.out.line(&format!("{outcome} {id} of {}{next}", question["server"].as_str().unwrap_or_default()))?;
    Ok(0)
}

/// Shows what is open and what comes, until Ctrl-C.
fn watch(cx: &mut Cx, client: &Client) -> Result<u8> {
    let other = client.another()?;
    let handle = client.shutdown_handle()?;
    let interrupt = Interrupt::listen(move || handle.interrupt())?;
    let json = cx.json();
    let out = &mut cx.out;
    let mut shown: Vec<String> = Vec::new();
    let (mut failed, mut pending) = (None, String::new());
    let mut look = || -> Result<()> {
        let open = other.json("GET", "/v1/elicit", None)?;
        for question in open["questions"].as_array().into_iter().flatten() {
            let id = question["id"].as_str().unwrap_or_default();
            if !shown.iter().any(|known| known == id) {
                shown.push(id.to_owned());
                out.line(&if json { question.to_string() } else { questions::line(question) })?;
                out.flush()?;
            }
        }
        Ok(())
    };
    let target = "/v1/events?kind=elicit.asked&follow=1";
    // The stream begins with a comment, so that nothing is missed between the two.
    let outcome = client.stream("GET", target, None, &mut |chunk| {
        pending.push_str(&String::from_utf8_lossy(chunk));
        if pending.ends_with("\n\n") {
            pending.clear();
            if let Err(error) = look() {
                failed = Some(error);
                return Err(io::ErrorKind::BrokenPipe.into());
            }
        }
        Ok(())
    });
    match (failed, outcome) {
        (Some(error), _) => Err(error),
        (None, Err(error)) if error.kind() == Kind::Cancelled => Ok(interrupt.exit_code().unwrap_or(130)),
        (None, outcome) => outcome.map(|_| {
            note("the daemon has stopped");
            0
        }),
    }
}
