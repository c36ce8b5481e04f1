//! Sessions: opening, showing, keeping and ending them. Entries of the table, no more.

use super::super::http::Method;
use super::super::records as r;
use super::*;

const KEY: Param = in_path("session", "the session's key");

/// In the order of the documentation.
pub(super) static TABLE: &[Operation] = &[
    Operation {
        id: Id::Sessions,
        name: "sessions",
        method: Method::Get,
        path: "/v1/sessions",
        params: &[],
        returns: Returns::Record(&r::SESSIONS),
        mutates: false,
        waits: false,
        on_channel: false,
        words: &["session", "list"],
        tool: "session_list",
        help: "every session, and what it owns",
        doc: "A session is there from its first use, or from `newSession`, until it was unused for \
              `session.idleTimeout`. Those that were made for one run are listed while they own something.",
    },
    Operation {
        id: Id::Session,
        name: "session",
        method: Method::Get,
        path: "/v1/sessions/{session}",
        params: &[KEY],
        returns: Returns::Record(&r::SESSION),
        mutates: false,
        waits: false,
        on_channel: false,
        words: &["session", "show"],
        tool: "session_show",
        help: "one session",
        doc: "",
    },
    Operation {
        id: Id::NewSession,
        name: "newSession",
        method: Method::Post,
        path: "/v1/sessions",
        params: &[
            body(field("name", Shape::Text, "its key; when absent one is made that nobody else has")),
            body(field(
                "ttlMs",
                Shape::Integer,
                "how long it is kept although nobody uses it, in milliseconds",
            )),
        ],
        returns: Returns::Record(&r::SESSION),
        mutates: true,
        waits: false,
        on_channel: false,
        words: &["session", "new"],
        tool: "session_new",
        help: "open a session that lasts longer than a run",
        doc: "Nobody needs to: a session is opened by the first call that names it. This refuses a name that is taken.",
    },
    Operation {
        id: Id::KeepSession,
        name: "keepSession",
        method: Method::Post,
        path: "/v1/sessions/{session}/keep",
        params: &[
            KEY,
            required(body(field("ttlMs", Shape::Integer, "how long from now, in milliseconds; 0 no longer"))),
        ],
        returns: Returns::Record(&r::SESSION),
        mutates: true,
        waits: false,
        on_channel: false,
        words: &["session", "keep"],
        tool: "session_keep",
        help: "keep a session and what it owns, used or not",
        doc: "Until then neither `session.idleTimeout` nor `pool.idleTimeout` ends anything of it, and the daemon \
              does not leave for `autostart.idleExit`. At most `session.keepMost`.",
    },
    Operation {
        id: Id::EndSession,
        name: "endSession",
        method: Method::Delete,
        path: "/v1/sessions/{session}",
        params: &[KEY],
        returns: Returns::Record(&r::ENDED),
        mutates: true,
        waits: true,
        on_channel: false,
        words: &["session", "stop"],
        tool: "session_stop",
        help: "end a session: stop what it owns",
        doc: "Answers when that is gone. Calls in flight there get an error that says so. What its calls share with \
              others stays. A later call that names it opens it anew.",
    },
];
