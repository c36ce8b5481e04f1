//! Calls, and the runs that make them. Entries of the table, no more.

use super::super::http::Method;
use super::super::records as r;
use super::*;

/// What a caller answers.
pub(super) const INPUT: Param = body(field(
    "input",
    Shape::Object,
    "what the caller answers itself when the server asks, as MCP's `ClientCapabilities` (`elicitation`, `sampling`, \
     `roots`); said to servers of the stateless era, and questions for it that only the caller can answer are among \
     those of the task",
));

/// What a caller says along with its request.
pub(super) const META: Param = body(field(
    "meta",
    Shape::Object,
    "MCP's `_meta` of the request, such as `traceparent`; the protocol's own keys (`progressToken`, \
     `io.modelcontextprotocol/…`) are mcpx's to say and are left out",
));

/// The caller rather gets a task than waits for long.
pub(super) const TASK: Param = body(field(
    "task",
    Shape::Record(&r::TASK_WISH),
    "answer with `{task}` instead, once it takes longer than `afterMs`, and go on with it; see `tasks`",
));

/// In the order of the documentation.
pub(super) static TABLE: &[Operation] = &[
    Operation {
        id: Id::Call,
        name: "call",
        method: Method::Post,
        path: "/v1/call",
        params: &[
            required(body(field("server", Shape::Text, "the server's configured name, or its identifier"))),
            required(body(field("tool", Shape::Text, "the tool's exact name, or its identifier"))),
            body(field("arguments", Shape::Object, "the tool's arguments; `{}` when absent")),
            body(field(
                "context",
                Shape::Record(&r::CONTEXT),
                "who is calling; on a channel the run says so, and this is ignored",
            )),
            body(field(
                "timeoutMs",
                Shape::Integer,
                "how long to wait for the answer, in milliseconds; the server's own limit when absent, none when 0",
            )),
            INPUT,
            META,
            TASK,
        ],
        returns: Returns::Record(&r::CALLED),
        mutates: true,
        waits: true,
        on_channel: true,
        words: &["call"],
        tool: "call",
        help: "call one tool",
        doc: "A call that may have reached its server is never sent again. A caller that goes away cancels it. \
              With the header `X-Mcpx-Input: report`, and always on a channel, a server that asks something makes the \
              answer `202` with `inputRequired`, on a channel an error of kind `input-required`; the call goes on as \
              the task `callId`. Without it the call waits for the answer. With `X-Mcpx-Progress: report` as well, an answer before which the server \
              reports progress is lines of `application/x-ndjson`: `{\"progress\":…}` each time, then the body as it would have been. \
              Without `context.session` the call has a session of its own, which ends with it. On a channel \
              the answer is the tool's result itself, and `\"progress\":true` beside `op` asks for progress frames.",
    },
    Operation {
        id: Id::OpenRun,
        name: "openRun",
        method: Method::Post,
        path: "/v1/runs",
        params: &[
            body(field("context", Shape::Record(&r::CONTEXT), "who is running the program")),
            body(field(
                "tools",
                Shape::List(&Shape::Record(&r::GRANT)),
                "the tools that the program may call; every tool when it is absent",
            )),
            body(field(
                "interactive",
                Shape::Boolean,
                "somebody answers what servers ask while the run goes on: its calls wait for that",
            )),
        ],
        returns: Returns::Record(&r::OPENED_RUN),
        mutates: true,
        waits: false,
        on_channel: false,
        words: &[],
        tool: "",
        help: "open a run: the calls of one program",
        doc: "On the unix socket a run ends with the connection that opened it. Without `context.session` \
              it has a session of its own, and what that session owns is stopped when the run ends. With `tools`, \
              a call of any other tool in the run's name, or by a process that the run started, is refused.",
    },
    Operation {
        id: Id::CloseRun,
        name: "closeRun",
        method: Method::Delete,
        path: "/v1/runs/{run}",
        params: &[in_path("run", "the run's id")],
        returns: Returns::Record(&r::DONE),
        mutates: true,
        waits: false,
        on_channel: false,
        words: &[],
        tool: "",
        help: "close a run",
        doc: "Its calls are cancelled and its channels closed.",
    },
    Operation {
        id: Id::Channel,
        name: "channel",
        method: Method::Get,
        path: "/v1/channel",
        params: &[required(in_query("run", Shape::Text, "the run whose channel this is"))],
        returns: Returns::Frames,
        mutates: true,
        waits: true,
        on_channel: false,
        words: &[],
        tool: "",
        help: "turn the connection into a channel of a run",
        doc: "Needs `Connection: Upgrade` and `Upgrade: mcpx-channel`, on the unix socket only.",
    },
];
