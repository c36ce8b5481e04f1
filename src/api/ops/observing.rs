//! What can be seen: the log, statistics, metrics, hooks. Entries of the table, no more.

use super::super::http::Method;
use super::super::records as r;
use super::*;

const SINCE: Param = in_query(
    "since",
    Shape::Text,
    "not older: `10m` for so long ago, a date, a date with a time (UTC), or milliseconds since 1970",
);
const UNTIL: Param = in_query("until", Shape::Text, "not newer; written as `since`");
const SERVER: Param = in_query("server", Shape::List(&Shape::Text), "only of these servers");
const TOOL: Param =
    in_query("tool", Shape::List(&Shape::Text), "only of these tools, as `tool` or `server.tool`");
const SESSION: Param = in_query("session", Shape::List(&Shape::Text), "only of these sessions");
const RUN: Param = in_query("run", Shape::List(&Shape::Text), "only of these runs");

/// In the order of the documentation.
pub(super) static TABLE: &[Operation] = &[
    Operation {
        id: Id::Log,
        name: "log",
        method: Method::Get,
        path: "/v1/log",
        params: &[
            SINCE,
            UNTIL,
            in_query("level", Shape::Text, "at least this level: trace, debug, info, warn, error"),
            in_query(
                "event",
                Shape::List(&Shape::Text),
                "only these events (`call.finished`) or families of events (`call`)",
            ),
            in_query(
                "source",
                Shape::List(&Shape::Text),
                "only what these say: daemon, server, script, plugin, hook",
            ),
            SERVER,
            TOOL,
            SESSION,
            RUN,
            in_query(
                "id",
                Shape::Text,
                "only what has this id: a daemon's, an instance's, a session's, a run's, a call's, or an editor's",
            ),
            in_query("grep", Shape::Text, "only what contains this text"),
            in_query(
                "limit",
                Shape::Integer,
                "at most so many, the newest; when absent, 100; 0 for all, in one document 100,000",
            ),
            in_query(
                "lines",
                Shape::Boolean,
                "one record a line (`application/x-ndjson`), sent as they are found",
            ),
            in_query(
                "follow",
                Shape::Boolean,
                "the same, and goes on with what comes; empty lines mean nothing",
            ),
        ],
        returns: Returns::Record(&r::LOG),
        mutates: false,
        waits: false,
        on_channel: false,
        words: &["log"],
        tool: "log",
        help: "records of the log, the oldest first",
        doc: "The log is that of every daemon of this user; `daemon` in a record says which.",
    },
    Operation {
        id: Id::LogChain,
        name: "logChain",
        method: Method::Get,
        path: "/v1/log/chain",
        params: &[required(in_query(
            "id",
            Shape::Text,
            "the id of a call, a run, a session, an instance or a daemon, or one of an editor",
        ))],
        returns: Returns::Record(&r::CHAIN),
        mutates: false,
        waits: false,
        on_channel: false,
        words: &["log"],
        tool: "log_chain",
        help: "what an id belongs to, as a tree from the daemon down",
        doc: "At most the newest 10,000 records of an id; an empty tree when no record has it.",
    },
    Operation {
        id: Id::PostLog,
        name: "postLog",
        method: Method::Post,
        path: "/v1/log",
        params: &[
            body(field("level", Shape::Text, "trace, debug, info (when absent), warn or error")),
            body(field("source", Shape::Text, "who says it: plugin (when absent), script")),
            body(field("event", Shape::Text, "what kind of thing it is, `family.what`")),
            body(field("message", Shape::Text, "the text; it or `event` is needed")),
            body(field("server", Shape::Text, "the server that it is about")),
            body(field("tool", Shape::Text, "the tool that it is about")),
            body(field("session", Shape::Text, "the session it belongs to")),
            body(field("run", Shape::Text, "the run it belongs to")),
            body(field("call", Shape::Text, "the call it belongs to")),
            body(field(
                "trace",
                Shape::List(&Shape::List(&Shape::Text)),
                "ids of the editor: pairs of a name and a value",
            )),
            body(field("data", Shape::Object, "more; what its names say is secret becomes stars")),
            body(field(
                "records",
                Shape::List(&Shape::Object),
                "several records with these fields, instead of one; at most 1000",
            )),
        ],
        returns: Returns::Record(&r::DONE),
        mutates: true,
        waits: false,
        on_channel: true,
        words: &[],
        tool: "",
        help: "add a record to the log",
        doc: "It is written by the time that the log comes to it: nobody waits for the disk.",
    },
    Operation {
        id: Id::Stats,
        name: "stats",
        method: Method::Get,
        path: "/v1/stats",
        params: &[
            in_query(
                "about",
                Shape::Text,
                "calls, servers, instances, errors, sessions, slowest or volume; when absent, calls",
            ),
            SINCE,
            UNTIL,
            SERVER,
            TOOL,
            SESSION,
            RUN,
            in_query("limit", Shape::Integer, "at most so many rows; when absent, 100; 0 for all"),
        ],
        returns: Returns::Record(&r::STATS),
        mutates: false,
        waits: false,
        on_channel: false,
        words: &["stats"],
        tool: "stats",
        help: "what the log comes to: counts, exact percentiles, errors by shape",
        doc: "Times are milliseconds. The columns of a row depend on `about`.",
    },
    Operation {
        id: Id::Metrics,
        name: "metrics",
        method: Method::Get,
        path: "/v1/metrics",
        params: &[],
        returns: Returns::Text("figures of this daemon since its start, in the text format of Prometheus"),
        mutates: false,
        waits: false,
        on_channel: false,
        words: &[],
        tool: "",
        help: "figures for Prometheus",
        doc: "Over TCP it needs the bearer token, as everything does.",
    },
    Operation {
        id: Id::Hooks,
        name: "hooks",
        method: Method::Get,
        path: "/v1/hooks",
        params: &[],
        returns: Returns::Record(&r::LISTENERS),
        mutates: false,
        waits: false,
        on_channel: false,
        words: &["hooks"],
        tool: "",
        help: "the declared hooks and event consumers, and how they fare",
        doc: "",
    },
];
