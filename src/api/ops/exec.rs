//! The exec service. An entry of the table, no more.

use super::super::http::Method;
use super::super::records as r;
use super::*;

/// In the order of the documentation.
pub(super) static TABLE: &[Operation] = &[Operation {
    id: Id::Exec,
    name: "exec",
    method: Method::Post,
    path: "/v1/exec",
    params: &[
        body(field("code", Shape::Text, "the program; this or `script`")),
        body(field("script", Shape::Text, "a file's path, or the name of a script, where the daemon is")),
        body(field(
            "language",
            Shape::Text,
            "what the code is written in: `javascript` (which may be TypeScript), `python`, `sh`, `bash`, `ruby` or `perl`",
        )),
        body(field("args", Shape::List(&Shape::Text), "the program's arguments")),
        body(field("stdin", Shape::Text, "its standard input; empty when absent")),
        body(field("runtime", Shape::Text, "`script.runtime` for this run")),
        body(field("permissions", Shape::Text, "`script.permissions` for this run")),
        body(field("session", Shape::Text, "the session key of its calls; one of its own when absent")),
        body(field("sessionId", Shape::Text, "the session that the host assigned")),
        body(field("parentSessionId", Shape::Text, "the session that spawned that one")),
        body(field(
            "cwd",
            Shape::Text,
            "its working directory, absolute; beside the configuration when absent",
        )),
        body(field("env", Shape::Object, "variables on top of the daemon's environment")),
        body(field("export", Shape::Text, "the export to call instead of the default one")),
        body(field(
            "noLauncher",
            Shape::Boolean,
            "start the program itself, without what makes tools global",
        )),
        body(field(
            "timeoutMs",
            Shape::Integer,
            "how long it may run, in milliseconds; `exec.timeout` when absent, without a limit when 0",
        )),
        body(field("output", Shape::Text, "`structured` (when absent), `text` or `stream`")),
        body(field("hooks", Shape::Record(&r::HOOKS), "commands to run before and after it")),
        body(field("settings", Shape::Object, "call settings, as in the header `X-Mcpx-Settings`")),
        body(field("context", Shape::Record(&r::CONTEXT), "who asks, instead of single fields")),
        super::calls::TASK,
    ],
    returns: Returns::Record(&r::RAN),
    mutates: true,
    waits: true,
    on_channel: false,
    words: &["exec", "run"],
    tool: "exec",
    help: "run a program that calls tools",
    doc: "Every namespace is a global: `await demo.echo({text: \"hi\"})`; the value of an expression, or what \
          statements `return`, is the result. With `output` \"text\" the answer is standard output as text, and the \
          header `X-Mcpx-Exit-Code`; with \"stream\" it is a JSON object a line as things happen: `start`, `stdout`, \
          `stderr`, `log`, `artifact`, and `end` with the exit code. A caller that goes away ends the program and all that it \
          started. No run may ask for this, nor what a run with limits has started: a program cannot give itself \
          more than it has. At most `exec.concurrency` run at once.",
}];
