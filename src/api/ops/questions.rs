//! Servers' questions, and the calls that wait for their answers. Entries of the table, no more.

use super::super::http::Method;
use super::super::records as r;
use super::*;

const QUESTION: Param = in_path("id", "the question's id");
const TASK: Param = in_path("id", "the task's id");

/// In the order of the documentation.
pub(super) static TABLE: &[Operation] = &[
    Operation {
        id: Id::Questions,
        name: "questions",
        method: Method::Get,
        path: "/v1/elicit",
        params: &[],
        returns: Returns::Record(&r::QUESTIONS),
        mutates: false,
        waits: false,
        on_channel: false,
        words: &["elicit", "list"],
        tool: "questions",
        help: "what servers ask and nobody has answered yet",
        doc: "",
    },
    Operation {
        id: Id::Question,
        name: "question",
        method: Method::Get,
        path: "/v1/elicit/{id}",
        params: &[QUESTION],
        returns: Returns::Record(&r::QUESTION),
        mutates: false,
        waits: false,
        on_channel: false,
        words: &["elicit", "show"],
        tool: "",
        help: "one open question",
        doc: "",
    },
    Operation {
        id: Id::AnswerQuestion,
        name: "answerQuestion",
        method: Method::Post,
        path: "/v1/elicit/{id}",
        params: &[
            QUESTION,
            required(body(field("action", Shape::Text, "`accept`, `decline` or `cancel`"))),
            body(field(
                "content",
                Shape::Object,
                "the fields, where a form is accepted; those with a default may be left out",
            )),
            body(field(
                "result",
                Shape::Object,
                "MCP's result of the request, where no form and no URL is asked for and it is accepted",
            )),
        ],
        returns: Returns::Record(&r::QUESTION),
        mutates: true,
        waits: false,
        on_channel: false,
        words: &["elicit", "answer"],
        tool: "answer",
        help: "answer a question",
        doc: "Content that does not fit what was asked is refused, and the question stays open. Of two who answer \
              at once one gets `not-found`.",
    },
    Operation {
        id: Id::Tasks,
        name: "tasks",
        method: Method::Get,
        path: "/v1/tasks",
        params: &[],
        returns: Returns::Record(&r::TASKS),
        mutates: false,
        waits: false,
        on_channel: false,
        words: &["task", "list"],
        tool: "tasks",
        help: "the calls that go on although their caller was answered",
        doc: "A call goes on as a task when its server asks something, or because its caller wanted that (`task` of \
              `call` and of `exec`). A result is kept for `elicit.keep` after it came, or for as long as was wanted. \
              What an `owner` wanted is cancelled when the session of that key ends.",
    },
    Operation {
        id: Id::Task,
        name: "task",
        method: Method::Get,
        path: "/v1/tasks/{id}",
        params: &[TASK],
        returns: Returns::Record(&r::TASK),
        mutates: false,
        waits: false,
        on_channel: false,
        words: &["task", "show"],
        tool: "",
        help: "one task, with the questions that it waits for",
        doc: "",
    },
    Operation {
        id: Id::TaskResult,
        name: "taskResult",
        method: Method::Get,
        path: "/v1/tasks/{id}/result",
        params: &[
            TASK,
            in_query(
                "waitMs",
                Shape::Integer,
                "how long to wait for it, in milliseconds; until it is there when absent",
            ),
            in_query("untilOver", Shape::Boolean, "wait on while the server asks: somebody else answers"),
        ],
        returns: Returns::Record(&r::CALLED),
        mutates: false,
        waits: true,
        on_channel: false,
        words: &["task", "result"],
        tool: "task_result",
        help: "the result of a task's call",
        doc: "Answers as the operation does that the task is: with the result, with the error, or with `202` and `inputRequired` when the \
              server asks something; `timeout` when it is not over within `waitMs`.",
    },
    Operation {
        id: Id::CancelTask,
        name: "cancelTask",
        method: Method::Delete,
        path: "/v1/tasks/{id}",
        params: &[TASK],
        returns: Returns::Record(&r::TASK),
        mutates: true,
        waits: false,
        on_channel: false,
        words: &["task", "cancel"],
        tool: "",
        help: "have a task stop",
        doc: "Its server is told; what the call had done already stays done.",
    },
];
