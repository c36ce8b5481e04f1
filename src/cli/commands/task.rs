//! `mcpx task`: calls that go on although the command that made them is over.

use super::super::args::usage;
use super::super::command::{Command, Flag, Group, MANY, Rest, example};
use super::super::cx::Cx;
use super::super::interrupt::Interrupt;
use super::super::out::note;
use super::super::progress::Progress;
use super::call;
use super::elicit::nothing_runs;
use crate::api::uri;
use crate::error::{Error, Kind, Result};
use crate::util::{did_you_mean, iso8601};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The command.
pub static COMMAND: Command = Command {
    name: "task",
    group: Group::Run,
    words: "[list|show|result|cancel] [<id>]",
    count: (0, MANY),
    rest: Rest::Mixed,
    summary: "Show calls that wait for an answer, and collect their results",
    about: "A call whose server asks something goes on as a task after its command has ended with exit code 75. \
            list shows all tasks, show one with the questions that it waits for. result waits until the call is \
            over and prints what mcpx call would have printed, with the same exit code; should the server ask again, \
            it ends with 75 again. Results are kept for elicit.keep. What hosts of mcpx serve \
            began as tasks is here too; the result of a program is its output and its exit code. cancel has the server stop.",
    flags: &[
        Flag::switch("raw", "result: print the MCP envelope as the server sent it"),
        Flag::value("media", "file|inline", "result: what becomes of images, audio and blobs")
            .of("output.media"),
    ],
    settings: &["elicit.keep", "output.mediaDir"],
    examples: &[
        example("mcpx task", "every task"),
        example("mcpx task result t-77c1d0", "wait for it and print the result"),
        example("mcpx task cancel t-77c1d0", "have it stop"),
    ],
    run,
};

const ACTIONS: &[&str] = &["list", "show", "result", "cancel"];

fn run(cx: &mut Cx) -> Result<u8> {
    let words: Vec<String> = cx.inv.words()?.into_iter().map(str::to_owned).collect();
    let (action, rest) = words.split_first().map_or(("list", &[][..]), |(a, r)| (a.as_str(), r));
    let client = || cx.running_anyhow().map(|(client, _)| client);
    let path = |id: &str| format!("/v1/tasks/{}", uri::encode(id, false));
    match (action, rest) {
        ("list", []) => {
            let all = match client()? {
                Some(client) => client.json("GET", "/v1/tasks", None)?,
                None => json!({"tasks": []}),
            };
            list(cx, &all["tasks"])
        }
        ("show" | "cancel", [id]) => {
            let client = client()?.ok_or_else(|| nothing_runs(&format!("task {id}")))?;
            let method = if action == "show" { "GET" } else { "DELETE" };
            let task = client.json(method, &path(id), None)?;
            if cx.json() {
                cx.out.json(&json!({"ok": true, "task": task}))?;
                return Ok(0);
            }
            cx.out.line(&line(&task))?;
            if task["stopped"] == false {
                note(&format!("nothing was cancelled: {id} was over already"));
            }
            for question in task["questions"].as_array().into_iter().flatten() {
                cx.out.line(&super::super::questions::shown(question))?;
            }
            Ok(0)
        }
        ("result", [id]) => {
            let client = client()?.ok_or_else(|| nothing_runs(&format!("the result of {id}")))?;
            let task = client.json("GET", &path(id), None)?;
            let name = |key: &str| task[key].as_str().unwrap_or_default().to_owned();
            let progress = Progress::start(&format!("waiting for {}.{}", name("server"), name("tool")));
            let handle = client.shutdown_handle()?;
            let interrupt = Interrupt::listen(move || handle.interrupt())?;
            let outcome = client.task_result(id);
            drop(progress);
            if let Some(code) = interrupt.exit_code() {
                note(&format!("interrupted; {id} goes on"));
                return Ok(code);
            }
            match task["op"].as_str() {
                Some("exec") => show_run(cx, &outcome?),
                _ => call::show(cx, &outcome?, &name("server"), &name("tool")),
            }
        }
        (known, _) if ACTIONS.contains(&known) => {
            let what =
                if known == "list" { "takes no further words" } else { "needs one task, such as t-77c1d0" };
            Err(usage(format!("mcpx task {known} {what}")).hint("mcpx task --help shows examples"))
        }
        (odd, _) => {
            let e = usage(format!("mcpx task cannot \"{odd}\""));
            let near = did_you_mean(odd, ACTIONS.iter().copied());
            Err(e.hint(near.unwrap_or_else(|| format!("it can {}", ACTIONS.join(", ")))))
        }
    }
}

/// A program's run as `mcpx exec` would have left it: its output, and its exit code.
fn show_run(cx: &mut Cx, document: &RawValue) -> Result<u8> {
    let run: Value = serde_json::from_str(document.get())
        .map_err(|e| Error::new(Kind::Internal, format!("reading the run of a task: {e}")))?;
    if cx.json() {
        cx.out.json(&run)?;
    } else {
        let text = |key: &str| run[key].as_str().unwrap_or_default();
        cx.out.text(text("stdout"))?;
        let stderr = text("stderr").trim_end();
        let message = run["error"]["message"].as_str();
        if let Some(said) = Some(stderr).filter(|said| !said.is_empty()).or(message) {
            note(said);
        }
    }
    Ok(run["exitCode"].as_u64().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

fn list(cx: &mut Cx, all: &Value) -> Result<u8> {
    if cx.json() {
        cx.out.json(&json!({"ok": true, "tasks": all}))?;
        return Ok(0);
    }
    let all = all.as_array().map(Vec::as_slice).unwrap_or_default();
    if all.is_empty() {
        note("there is no task");
    }
    for task in all {
        cx.out.line(&line(task))?;
    }
    Ok(0)
}

fn line(task: &Value) -> String {
    let word = |key: &str| task[key].as_str().unwrap_or_default();
    let mut line = format!(
        "{}  {:14}  {}  {}.{}",
        word("id"),
        word("status"),
        iso8601(task["createdAt"].as_u64().unwrap_or(0)),
        word("server"),
        word("tool")
    );
    if let Some(why) = task["message"].as_str() {
        line.push_str("  ");
        line.push_str(why.lines().next().unwrap_or_default());
    }
    line
}
