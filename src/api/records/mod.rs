//! Defines the shapes of what operations take and answer with, for the
//! documents made from the operations table. The types in `wire` are what is sent.

mod calls;
mod daemon;
mod observing;
mod servers;

use super::ops::{Field, Record, Shape};
pub use calls::*;
pub use daemon::*;
pub use observing::*;
pub use servers::*;

const fn always(name: &'static str, shape: Shape, help: &'static str) -> Field {
    Field { name, shape, required: true, help }
}
const fn maybe(name: &'static str, shape: Shape, help: &'static str) -> Field {
    Field { name, shape, required: false, help }
}

const TEXTS: Shape = Shape::List(&Shape::Text);

/// An error, wherever one is reported.
pub static ERROR: Record = Record {
    name: "Error",
    fields: &[
        always("kind", Shape::Text, "a stable word; see the exit codes"),
        always("message", Shape::Text, "what was being done, to what, and what went wrong"),
        maybe("hint", Shape::Text, "what to do next"),
        maybe("server", Shape::Text, "the server it happened with"),
        maybe("tool", Shape::Text, "the tool it happened with"),
        maybe("raw", Shape::Any, "the peer's own words"),
    ],
};

/// A choice among the servers.
pub static SELECTION: Record = Record {
    name: "Selection",
    fields: &[
        maybe("profile", TEXTS, "the profiles whose servers are taken besides the default set"),
        maybe("skipDefault", Shape::Boolean, "the servers that name no profile are left out"),
        maybe("allProfiles", Shape::Boolean, "every server is taken"),
    ],
};

static GIT: Record = Record {
    name: "GitEnvironment",
    fields: &[
        maybe("dir", Shape::Text, "`GIT_DIR`; a relative path is meant from `cwd`, as in the others"),
        maybe("workTree", Shape::Text, "`GIT_WORK_TREE`"),
        maybe("commonDir", Shape::Text, "`GIT_COMMON_DIR`"),
    ],
};

/// Who is calling.
pub static CONTEXT: Record = Record {
    name: "Context",
    fields: &[
        maybe("session", Shape::Text, "the session key that calls are leased under"),
        maybe("sessionId", Shape::Text, "the session that the host assigned"),
        maybe("parentSessionId", Shape::Text, "the session that spawned this one"),
        maybe("ephemeral", Shape::Boolean, "the session key was minted for this alone"),
        maybe("cwd", Shape::Text, "the caller's working directory, absolute"),
        maybe("git", Shape::Record(&GIT), "what the caller's environment tells git of its repository"),
        maybe("pid", Shape::Integer, "the pid of the caller's mcpx process"),
        maybe("run", Shape::Text, "the run that the call belongs to"),
        maybe(
            "selection",
            Shape::Record(&SELECTION),
            "the servers that the caller works with; absent: every server, or those of the run",
        ),
    ],
};

/// `closeRun` and `shutdown`.
pub static DONE: Record = Record { name: "Done", fields: &[always("ok", Shape::Boolean, "true")] };
