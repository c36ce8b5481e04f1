//! Records of calls and runs, and of what comes of them: artifacts, questions, tasks. Knows nothing of who answers.

use super::{NAMES, TEXTS, always, maybe};
use crate::api::ops::{Field, Record, Shape};

/// `call`.
pub static CALLED: Record = Record {
    name: "Called",
    fields: &[
        always(
            "result",
            Shape::Object,
            "the tool's result as its server sent it: `content`, `structuredContent`, `isError`, …",
        ),
        maybe(
            "task",
            Shape::Record(&TASK),
            "instead, where the caller wanted a task: the call goes on as that",
        ),
    ],
};

/// `openRun`.
pub static OPENED_RUN: Record = Record {
    name: "OpenedRun",
    fields: &[
        always("run", Shape::Text, "the run's id"),
        always("session", Shape::Text, "the session key that its calls are leased under"),
        always("ephemeral", Shape::Boolean, "the key was minted for this run alone"),
        always("namespaces", Shape::List(&Shape::Record(&NAMES)), "every enabled server that is selected"),
        always("endpoint", Shape::Text, "the HTTP endpoint on loopback, empty when TCP is off"),
        always(
            "token",
            Shape::Text,
            "a bearer token for this run at the endpoint: it permits what a channel of the run does, and ends with it; empty when TCP is off",
        ),
    ],
};

/// A tool that a run may call.
pub static GRANT: Record = Record {
    name: "Grant",
    fields: &[
        always("tool", Shape::Text, "`server.tool`; a star stands for any characters"),
        always("profile", Shape::Text, "the permission profile that has it"),
    ],
};

/// Hooks of one run: each a line for the shell, or a list of words.
pub static HOOKS: Record = Record {
    name: "Hooks",
    fields: &[
        maybe("pre", Shape::Any, "before the program; when it fails or is slow the program does not run"),
        maybe("post", Shape::Any, "after it, however it ended"),
        maybe("onError", Shape::Any, "after it failed, before `post`"),
        maybe("onSuccess", Shape::Any, "after it succeeded, before `post`"),
    ],
};

static LOG_RECORD: Record = Record {
    name: "LogRecord",
    fields: &[
        always("level", Shape::Text, "debug, info, warn or error"),
        always("at", Shape::Integer, "milliseconds since 1970"),
        always("message", Shape::Text, "the message"),
        maybe("fields", Shape::Any, "the fields as they were given"),
        maybe("console", Shape::Text, "the method of the console that made it"),
        maybe("source", Shape::Text, "where it was made, `file:line:column`"),
    ],
};

static FAILED_HOOK: Record = Record {
    name: "FailedHook",
    fields: &[
        always("phase", Shape::Text, "post, onError or onSuccess"),
        always("message", Shape::Text, "what went wrong; it changes nothing about the run"),
    ],
};

/// `exec`.
pub static RAN: Record = Record {
    name: "Ran",
    fields: &[
        always("ok", Shape::Boolean, "the exit code is 0"),
        always("exitCode", Shape::Integer, "as that of `mcpx exec`"),
        always("durationMs", Shape::Any, "how long it took, in milliseconds; a number with a fraction"),
        always("runtime", Shape::Text, "deno, bun, node, or an interpreter's name"),
        maybe("result", Shape::Any, "the program's value"),
        always("results", Shape::List(&Shape::Any), "what it emitted"),
        always("logs", Shape::List(&Shape::Record(&LOG_RECORD)), "its log records"),
        always("artifacts", Shape::List(&Shape::Record(&ARTIFACT)), "the artifacts that it gave"),
        always("stdout", Shape::Text, "what it wrote to standard output"),
        always("stderr", Shape::Text, "what it wrote to standard error, without records"),
        maybe("error", Shape::Object, "why it failed: kind, message and what is known besides"),
        maybe("truncated", TEXTS, "the parts that were cut at `script.captureLimit`"),
        maybe("hooks", Shape::List(&Shape::Record(&FAILED_HOOK)), "the hooks that failed"),
    ],
};

const ARTIFACT_FIELDS: &[Field] = &[
    always("uri", Shape::Text, "`mcpx-artifact:ID`"),
    always("id", Shape::Text, "names it"),
    always("name", Shape::Text, "its file name"),
    always("mime", Shape::Text, "its media type"),
    always("size", Shape::Integer, "how many bytes it has"),
    always("sha256", Shape::Text, "the SHA-256 of its content, in hexadecimal"),
    always("at", Shape::Integer, "when it was given"),
    maybe("run", Shape::Text, "the run that gave it"),
    maybe("session", Shape::Text, "the session that it belongs to"),
    maybe("path", Shape::Text, "where its file is, for who is on the daemon's machine"),
];

/// `artifact` and `removeArtifact`.
pub static ARTIFACT: Record = Record { name: "Artifact", fields: ARTIFACT_FIELDS };

/// `artifacts`.
pub static ARTIFACTS: Record = Record {
    name: "Artifacts",
    fields: &[
        always("artifacts", Shape::List(&Shape::Record(&ARTIFACT)), "the oldest first"),
        always("bytes", Shape::Integer, "how many bytes all content has, each counted once"),
    ],
};

/// `storeArtifact` and `uploadArtifact`.
pub static STORED: Record = Record {
    name: "Stored",
    fields: &[
        maybe("artifact", Shape::Record(&ARTIFACT), "what is kept; absent while more is to come"),
        maybe("upload", Shape::Text, "what the next part is to name"),
    ],
};

/// `sweepArtifacts`.
pub static SWEPT: Record = Record {
    name: "Swept",
    fields: &[
        always("removed", Shape::List(&Shape::Record(&ARTIFACT)), "what went, the oldest first"),
        always("freed", Shape::Integer, "how many bytes that made free"),
        always("left", Shape::Integer, "how many bytes are left"),
    ],
};

/// A server's question.
pub static QUESTION: Record = Record {
    name: "Question",
    fields: &[
        always("id", Shape::Text, "names it"),
        always("server", Shape::Text, "who asks"),
        maybe("tool", Shape::Text, "the tool whose call asks"),
        maybe("run", Shape::Text, "the run whose program made the call"),
        maybe("task", Shape::Text, "the task that goes on once it is answered"),
        maybe("session", Shape::Text, "the session of that call"),
        always(
            "mode",
            Shape::Text,
            "`form`, `url` when something is to be opened, `request` when only the program that made the call can answer",
        ),
        maybe("method", Shape::Text, "the request's method, where it is no elicitation"),
        maybe("params", Shape::Object, "the request's parameters, where it is no elicitation"),
        maybe("key", Shape::Text, "the server's own name for it among those that it asks at once"),
        always("message", Shape::Text, "what is asked"),
        maybe("schema", Shape::Object, "the form, as a JSON Schema"),
        maybe("url", Shape::Text, "what is to be opened"),
        maybe("elicitationId", Shape::Text, "the server's own name for it"),
        always("askedAt", Shape::Integer, "when, milliseconds since 1970"),
        always("expiresAt", Shape::Integer, "when it is cancelled unanswered, milliseconds since 1970"),
        maybe("outcome", Shape::Text, "`accept`, `decline` or `cancel`, once it is answered"),
    ],
};

/// `questions`.
pub static QUESTIONS: Record = Record {
    name: "Questions",
    fields: &[always("questions", Shape::List(&Shape::Record(&QUESTION)), "the open ones, oldest first")],
};

/// How a caller wants a task.
pub static TASK_WISH: Record = Record {
    name: "TaskWish",
    fields: &[
        maybe("afterMs", Shape::Integer, "how long to wait for the answer first; at once a task when absent"),
        maybe(
            "ttlMs",
            Shape::Integer,
            "how long it is kept from its beginning on; what works is kept in any case",
        ),
        maybe("owner", Shape::Text, "whose it is: the key of a session, or anything; said of the task again"),
    ],
};

/// A call that goes on although its caller was answered.
pub static TASK: Record = Record {
    name: "Task",
    fields: &[
        always("id", Shape::Text, "names it; the `callId` of `inputRequired`"),
        always("op", Shape::Text, "`call`, `exec`, or `request` for what else a server is asked"),
        always("server", Shape::Text, "who works on it"),
        always("tool", Shape::Text, "the tool that was called"),
        maybe("owner", Shape::Text, "whose it is, where somebody wanted a task"),
        maybe("session", Shape::Text, "the session that it belongs to"),
        always("status", Shape::Text, "working, input_required, completed, failed or cancelled"),
        always("createdAt", Shape::Integer, "milliseconds since 1970"),
        maybe("finishedAt", Shape::Integer, "milliseconds since 1970"),
        always("updatedAt", Shape::Integer, "when it changed last, milliseconds since 1970"),
        maybe("ttlMs", Shape::Integer, "how long it is kept from its beginning on, where that was said"),
        maybe(
            "isError",
            Shape::Boolean,
            "where somebody wanted it: what came of it says that it is an error",
        ),
        maybe("message", Shape::Text, "why it failed, or how far it says that it is"),
        maybe("questions", Shape::List(&Shape::Record(&QUESTION)), "what its server waits to be told"),
        maybe("stopped", Shape::Boolean, "after `cancelTask`: false when it was over already"),
    ],
};

/// `tasks`.
pub static TASKS: Record =
    Record { name: "Tasks", fields: &[always("tasks", Shape::List(&Shape::Record(&TASK)), "oldest first")] };
