//! Records of what was seen: events, the log, figures, and who listens. Knows nothing of who answers.

use super::{TEXTS, always, maybe};
use crate::api::ops::{Record, Shape};

/// Something that happened.
pub static EVENT: Record = Record {
    name: "Event",
    fields: &[
        always("seq", Shape::Integer, "its number on this daemon's bus, from 1 on, without gaps"),
        always("at", Shape::Integer, "when, in milliseconds since 1970"),
        always("kind", Shape::Text, "what, as `family.what`"),
        maybe("server", Shape::Text, "the server it is about"),
        maybe("session", Shape::Text, "the session it belongs to"),
        maybe("uri", Shape::Text, "the resource it is about"),
        always("data", Shape::Object, "more, as the kind has it"),
    ],
};

/// Events, as far as they are remembered.
pub static EVENTS: Record = Record {
    name: "Events",
    fields: &[
        always("events", Shape::List(&Shape::Record(&EVENT)), "oldest first"),
        always("last", Shape::Integer, "the number to go on from"),
        always("missed", Shape::Integer, "how many after `since` are forgotten"),
        always(
            "daemon",
            Shape::Text,
            "whose numbers they are: each daemon has an id, which its records in the log carry",
        ),
    ],
};

/// Records of the log.
pub static LOG: Record = Record {
    name: "Log",
    fields: &[always("records", Shape::List(&Shape::Record(&LOGGED)), "oldest first")],
};

/// One record of the log. Other fields may follow; what is empty is absent.
pub static LOGGED: Record = Record {
    name: "Logged",
    fields: &[
        always("at", Shape::Integer, "when, in milliseconds since 1970"),
        always("level", Shape::Text, "trace, debug, info, warn or error"),
        always("source", Shape::Text, "who says it: daemon, server, script, plugin, hook"),
        maybe("event", Shape::Text, "what kind of thing it is; absent for a mere text"),
        maybe("message", Shape::Text, "the text"),
        always("daemon", Shape::Text, "the id of the daemon that recorded it"),
        maybe("seq", Shape::Integer, "the number of the event on that daemon's bus"),
        maybe("server", Shape::Text, "the server"),
        maybe("tool", Shape::Text, "the tool"),
        maybe("instance", Shape::Text, "the key of the server's instance"),
        maybe("session", Shape::Text, "the session"),
        maybe("run", Shape::Text, "the run"),
        maybe("call", Shape::Text, "the call's id"),
        maybe("trace", Shape::List(&TEXTS), "ids of the editor: pairs of a name and a value"),
        maybe("ms", Shape::Any, "how long a call took, in milliseconds"),
        maybe("outcome", Shape::Text, "what became of a call: ok, or the kind of the error"),
        maybe("sent", Shape::Integer, "bytes of a call's arguments"),
        maybe("received", Shape::Integer, "bytes of its result"),
        maybe("data", Shape::Any, "more"),
    ],
};

/// What an id belongs to.
pub static CHAIN: Record = Record {
    name: "Chain",
    fields: &[always("tree", Shape::List(&Shape::Record(&LINK)), "the daemons that it happened in")],
};

/// Something that has an id, and what happened in it.
pub static LINK: Record = Record {
    name: "Link",
    fields: &[
        always("kind", Shape::Text, "daemon, session, run, call or instance"),
        always("id", Shape::Text, "the id; for an instance the server and the instance's key"),
        always("records", Shape::List(&Shape::Record(&LOGGED)), "the records about it itself, oldest first"),
        maybe("children", Shape::List(&Shape::Object), "what happened in it: the same again"),
    ],
};

/// Statistics.
pub static STATS: Record = Record {
    name: "Stats",
    fields: &[
        always("about", Shape::Text, "what was asked"),
        always("since", Shape::Integer, "the time of the first record that counted; 0 when there was none"),
        always("until", Shape::Integer, "the time of the last"),
        always("rows", Shape::List(&Shape::Object), "the most important first; volume in the order of time"),
        always("more", Shape::Integer, "how many more rows there would have been"),
    ],
};

/// Hooks and consumers.
pub static LISTENERS: Record = Record {
    name: "Listeners",
    fields: &[
        always(
            "hooks",
            Shape::List(&Shape::Record(&LISTENER)),
            "in the order of their names in the configuration",
        ),
        always("consumers", Shape::List(&Shape::Record(&CONSUMER)), "likewise"),
    ],
};

/// A declared hook.
pub static LISTENER: Record = Record {
    name: "DeclaredHook",
    fields: &[
        always("name", Shape::Text, "its name"),
        always("events", TEXTS, "the kinds or families that it wants; empty means all"),
        always("servers", TEXTS, "the servers; empty means any"),
        always("command", Shape::Text, "what is run, as one line"),
        maybe("problem", Shape::Text, "what is wrong with its declaration: it does not run"),
        maybe("runs", Shape::Integer, "how often it ran"),
        maybe("failures", Shape::Integer, "how often it failed or took too long"),
        maybe("dropped", Shape::Integer, "how many events found no room in the line"),
        maybe("running", Shape::Integer, "how many of it run now"),
        maybe("last", Shape::Integer, "when it ran last, in milliseconds since 1970; 0: never"),
        maybe("lastError", Shape::Text, "why it failed last"),
    ],
};

/// A declared consumer.
pub static CONSUMER: Record = Record {
    name: "Consumer",
    fields: &[
        always("name", Shape::Text, "its name"),
        always("events", TEXTS, "the kinds or families that it wants; empty means all"),
        always("servers", TEXTS, "the servers; empty means any"),
        always("command", Shape::Text, "what is run, as one line"),
        maybe("problem", Shape::Text, "what is wrong with its declaration: it does not run"),
        maybe("pid", Shape::Integer, "its process, while it runs"),
        maybe("acknowledged", Shape::Integer, "the number of the last event that it is done with"),
        maybe("starts", Shape::Integer, "how often it was started"),
        maybe("lastError", Shape::Text, "why it ended last"),
    ],
};
