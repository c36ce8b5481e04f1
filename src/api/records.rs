//! Defines the shapes of what operations take and answer with, for the
//! documents made from the operations table. The types in `wire` are what is sent.

use super::ops::{Field, Record, Shape};

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

/// `health`.
pub static HEALTH: Record = Record {
    name: "Health",
    fields: &[
        always("ok", Shape::Boolean, "true"),
        always("name", Shape::Text, "`mcpx`"),
        always("version", Shape::Text, "mcpx's version"),
        always("pid", Shape::Integer, "the daemon's process"),
        always("key", Shape::Text, "the fingerprint of the configuration's paths and bytes"),
        always("configPath", Shape::Text, "the nearest configuration file, or empty"),
        always("startedAt", Shape::Integer, "milliseconds since 1970"),
        always("uptimeMs", Shape::Integer, "milliseconds"),
        always("servers", Shape::Integer, "how many servers are configured"),
        always("sessions", Shape::Integer, "how many sessions have open runs"),
        always("api", Shape::Integer, "the revision of this interface: 1"),
    ],
};

static DAEMON: Record = Record {
    name: "Daemon",
    fields: &[
        always("version", Shape::Text, "mcpx's version"),
        always("pid", Shape::Integer, "its process"),
        always("key", Shape::Text, "the fingerprint of the configuration's paths and bytes"),
        always("configPath", Shape::Text, "the nearest configuration file, or empty"),
        always("sources", TEXTS, "every configuration file that contributed, nearest first"),
        always("servers", TEXTS, "the configured servers"),
        always("socket", Shape::Text, "the unix socket"),
        always("endpoint", Shape::Text, "the HTTP endpoint on loopback, empty when TCP is off"),
        always("log", Shape::Text, "the daemon's log file, empty when it logs to a terminal"),
        always("startedAt", Shape::Integer, "milliseconds since 1970"),
        always("uptimeMs", Shape::Integer, "milliseconds"),
        always("sessions", Shape::Integer, "how many sessions have open runs"),
        always("runs", Shape::Integer, "how many runs are open"),
        always("connections", Shape::Integer, "how many connections are open"),
        always("detached", Shape::Boolean, "a command started it; it leaves when idle"),
        maybe("problem", Shape::Record(&ERROR), "why the configuration on disk is not the one in use"),
        maybe("restart", TEXTS, "settings whose new value needs a restart of the daemon"),
        maybe("warnings", TEXTS, "what is odd in the configuration"),
    ],
};

static INSTANCE: Record = Record {
    name: "Instance",
    fields: &[
        always("server", Shape::Text, "the server's configured name"),
        always("key", Shape::Text, "what it is keyed by: `global`, `session:<key>`, `cwd:<path>`, …"),
        always("state", Shape::Text, "`starting`, `ready`, `stopping`, `failed`"),
        maybe("protocol", Shape::Text, "the revision of MCP that it is spoken to in, once that is known"),
        maybe("pid", Shape::Integer, "the child; absent for a server over HTTP"),
        maybe("session", Shape::Text, "the session that owns it"),
        always("uptimeMs", Shape::Integer, "milliseconds since it was started"),
        always("idleMs", Shape::Integer, "milliseconds since a call was last in it; 0 while one is"),
        always("calls", Shape::Integer, "calls that it has answered"),
        always("inFlight", Shape::Integer, "calls that it is working on"),
        always("queue", Shape::Integer, "callers waiting for a place"),
        maybe("lastError", Shape::Text, "the last failure"),
        maybe("stderr", Shape::Text, "the last lines of its stderr"),
    ],
};

/// `status`.
pub static STATUS: Record = Record {
    name: "Status",
    fields: &[
        always("daemon", Shape::Record(&DAEMON), "the daemon itself"),
        always("instances", Shape::List(&Shape::Record(&INSTANCE)), "the servers' instances"),
    ],
};

/// `session`, `newSession` and `keepSession`.
pub static SESSION: Record = Record {
    name: "Session",
    fields: &[
        always("key", Shape::Text, "what `--session` and `MCPX_SESSION_ID` name it by"),
        maybe(
            "createdAt",
            Shape::Integer,
            "when it was first heard of, milliseconds since 1970; absent for one that was made for a run",
        ),
        always("idleMs", Shape::Integer, "milliseconds since it was last used"),
        maybe(
            "keptUntil",
            Shape::Integer,
            "until when it stays although nobody uses it, milliseconds since 1970",
        ),
        always("ephemeral", Shape::Boolean, "it was made for one run, and ends with it"),
        always("runs", Shape::Integer, "its open runs"),
        always("instances", Shape::List(&Shape::Record(&INSTANCE)), "what it owns"),
    ],
};

/// `sessions`.
pub static SESSIONS: Record = Record {
    name: "Sessions",
    fields: &[always("sessions", Shape::List(&Shape::Record(&SESSION)), "by key")],
};

/// `endSession`.
pub static ENDED: Record = Record {
    name: "Ended",
    fields: &[
        always("session", Shape::Text, "its key"),
        always("stopped", Shape::Integer, "how many servers were stopped"),
    ],
};

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

static NAMESPACE: Record = Record {
    name: "Namespace",
    fields: &[
        always("name", Shape::Text, "the server's configured name"),
        always("ident", Shape::Text, "the identifier that stands for it in a program"),
        maybe("tools", Shape::Integer, "how many tools it offers, once known"),
        maybe("description", Shape::Text, "one line on what it is"),
        always("state", Shape::Text, "`ready`, `starting`, `failed`, `disabled`, or `unknown`"),
        maybe("error", Shape::Record(&ERROR), "why it cannot be used"),
        maybe("fetchedAt", Shape::Integer, "when its tools were read, milliseconds since 1970"),
        maybe("source", Shape::Text, "the configuration file that defines it"),
    ],
};

/// `namespaces` and `refresh`.
pub static NAMESPACES: Record = Record {
    name: "Namespaces",
    fields: &[always(
        "namespaces",
        Shape::List(&Shape::Record(&NAMESPACE)),
        "one row a server, in the configuration's order",
    )],
};

static TOOL: Record = Record {
    name: "Tool",
    fields: &[
        always("name", Shape::Text, "the exact name"),
        maybe("title", Shape::Text, "a name for people"),
        maybe("description", Shape::Text, "what it does"),
        maybe("icons", Shape::Any, "pictures that stand for it"),
        always("inputSchema", Shape::Any, "the arguments' JSON Schema"),
        maybe("outputSchema", Shape::Any, "the structured result's JSON Schema"),
        maybe("annotations", Shape::Any, "hints such as `readOnlyHint`"),
        maybe("execution", Shape::Any, "how it is carried out, such as `taskSupport`"),
        maybe("_meta", Shape::Any, "what the server tells those who know it"),
    ],
};

static SCHEMA: Record = Record {
    name: "ServerSchema",
    fields: &[
        always("server", Shape::Text, "the server's configured name"),
        always("digest", Shape::Text, "the digest of the definition it was read under"),
        always("fetchedAt", Shape::Integer, "when it was read, milliseconds since 1970"),
        always("protocol", Shape::Text, "the protocol revision that was negotiated"),
        maybe("serverInfo", Shape::Any, "the server's own name and version"),
        maybe("capabilities", Shape::Any, "what the server says that it can do"),
        maybe("instructions", Shape::Text, "the server's instructions"),
        always("tools", Shape::List(&Shape::Record(&TOOL)), "its tools, in its own order"),
    ],
};

static SCHEMA_ERROR: Record = Record {
    name: "ServerError",
    fields: &[
        always("server", Shape::Text, "the server that was asked for"),
        always("error", Shape::Record(&ERROR), "why there is no schema"),
    ],
};

/// `schemas`.
pub static SCHEMAS: Record = Record {
    name: "Schemas",
    fields: &[
        always("schemas", Shape::List(&Shape::Record(&SCHEMA)), "one a server that could be read"),
        always("errors", Shape::List(&Shape::Record(&SCHEMA_ERROR)), "one a server that could not"),
    ],
};

static HIT: Record = Record {
    name: "Hit",
    fields: &[
        always("server", Shape::Text, "the server's configured name"),
        always("tool", Shape::Text, "the tool's exact name"),
        always("signature", Shape::Text, "how a program calls it"),
        always("description", Shape::Text, "what it does"),
        always("all", Shape::Boolean, "it matches every word"),
    ],
};

/// `search`.
pub static HITS: Record = Record {
    name: "Hits",
    fields: &[
        always("hits", Shape::List(&Shape::Record(&HIT)), "the tools, best first"),
        maybe(
            "near",
            Shape::Text,
            "the words that were searched for instead, where nothing fits those given",
        ),
        always("errors", Shape::List(&Shape::Record(&SCHEMA_ERROR)), "one a server that was not searched"),
    ],
};

static TYPESCRIPT: Record = Record {
    name: "TypeScript",
    fields: &[
        always("server", Shape::Text, "the server's configured name"),
        always("ident", Shape::Text, "the identifier that stands for it in a program"),
        always("typescript", Shape::Text, "its declarations"),
    ],
};

/// `types`.
pub static TYPES: Record = Record {
    name: "Types",
    fields: &[
        always("types", Shape::List(&Shape::Record(&TYPESCRIPT)), "one a server that could be read"),
        always("errors", Shape::List(&Shape::Record(&SCHEMA_ERROR)), "one a server that could not"),
    ],
};

static NAMES: Record = Record {
    name: "NamespaceName",
    fields: &[
        always("name", Shape::Text, "the server's configured name"),
        always("ident", Shape::Text, "the identifier that stands for it in a program"),
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

/// `closeRun` and `shutdown`.
pub static DONE: Record = Record { name: "Done", fields: &[always("ok", Shape::Boolean, "true")] };

static SERVER: Record = Record {
    name: "Server",
    fields: &[
        always("name", Shape::Text, "its configured name"),
        always("ident", Shape::Text, "the identifier that stands for it in a program"),
        always("enabled", Shape::Boolean, "it is switched on"),
        always("selected", Shape::Boolean, "it is among those that the asker works with"),
        maybe("description", Shape::Text, "what it is for"),
        maybe("aliasOf", Shape::Text, "the server that it is under another name"),
        maybe("profiles", TEXTS, "the profiles that it belongs to"),
        always("definition", Shape::Any, "its block as the file has it, secrets masked"),
        always("source", Shape::Text, "the configuration file that defines it"),
        always("line", Shape::Integer, "the line of its name in that file"),
        maybe("error", Shape::Record(&ERROR), "why it cannot be used"),
    ],
};

/// `servers`.
pub static SERVERS: Record = Record {
    name: "Servers",
    fields: &[always(
        "servers",
        Shape::List(&Shape::Record(&SERVER)),
        "one row a server, in the configuration's order",
    )],
};

/// `putServer` and `deleteServer`.
pub static CHANGED_SERVER: Record = Record {
    name: "ChangedServer",
    fields: &[
        always("server", Shape::Text, "its configured name"),
        always("path", Shape::Text, "the file"),
        always("change", Shape::Text, "`added`, `replaced`, `removed`, or `unchanged`"),
        maybe("problem", Shape::Record(&ERROR), "why the server, or the configuration, cannot be used"),
    ],
};

/// `restart`.
pub static RESTARTED: Record = Record {
    name: "Restarted",
    fields: &[always("restarted", Shape::Integer, "how many instances were stopped")],
};

static TAKEN: Record = Record {
    name: "Taken",
    fields: &[
        always("at", Shape::Integer, "when, in milliseconds since 1970"),
        always("added", TEXTS, "servers that are new"),
        always("removed", TEXTS, "servers that are gone"),
        always("changed", TEXTS, "servers that are defined in another way"),
    ],
};

/// `reload`.
pub static RELOADED: Record = Record {
    name: "Reloaded",
    fields: &[
        always("key", Shape::Text, "the daemon's key now"),
        always("changed", Shape::Boolean, "the configuration was another than before"),
        maybe(
            "taken",
            Shape::Record(&TAKEN),
            "what the last change came to, which may have been noticed before",
        ),
        always("socket", Shape::Text, "the unix socket now"),
        maybe("problem", Shape::Record(&ERROR), "why the configuration on disk is not the one in use"),
    ],
};

static DISPLACED: Record = Record {
    name: "Displaced",
    fields: &[
        always("value", Shape::Any, "the value that was outranked"),
        always("text", Shape::Text, "the same as one types it"),
        always("source", Shape::Text, "where it is set"),
    ],
};

/// `setting`, `setSetting` and `unsetSetting`.
pub static SETTING: Record = Record {
    name: "Setting",
    fields: &[
        always("key", Shape::Text, "its key"),
        always("value", Shape::Any, "the value in force, in the syntax of a configuration file"),
        always("text", Shape::Text, "the same as one types it"),
        always(
            "source",
            Shape::Text,
            "where it is set: `default`, `FILE:LINE`, a variable, `preset:NAME (FLAG)`, a flag, `runtime`",
        ),
        always("displaced", Shape::List(&Shape::Record(&DISPLACED)), "what it outranks, the strongest first"),
        always("default", Shape::Text, "the default as one types it"),
        always("scope", Shape::Text, "`daemon`, `client`, `call` or `plugin`: who decides it"),
        always("hot", Shape::Boolean, "a running daemon takes a new value at once"),
        always("secret", Shape::Boolean, "the value is never shown"),
        always("kind", Shape::Text, "what values it takes"),
        always("variables", TEXTS, "the variables that set it"),
        always("flags", TEXTS, "the flags that set it"),
        always("help", Shape::Text, "what it sets"),
    ],
};

/// `settings`.
pub static SETTINGS: Record = Record {
    name: "Settings",
    fields: &[always("settings", Shape::List(&Shape::Record(&SETTING)), "one row a setting")],
};

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

/// `resolve`.
pub static RESOLVED: Record = Record {
    name: "Resolved",
    fields: &[
        always("socket", Shape::Text, "the unix socket of the daemon that serves it, or where it would be"),
        always("endpoint", Shape::Text, "that daemon's HTTP endpoint, empty when there is none"),
        always("configPath", Shape::Text, "the nearest configuration file, or empty"),
        always("configHash", Shape::Text, "the daemon's key"),
        always("running", Shape::Boolean, "that daemon is alive"),
        always("sources", TEXTS, "every configuration file that contributes, nearest first"),
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

static ERRORS: Shape = Shape::Record(&ERROR);
const FAILURES: Field = maybe("failures", Shape::List(&ERRORS), "servers that could not be asked, and why");

/// `resources`.
pub static RESOURCES: Record = Record {
    name: "Resources",
    fields: &[
        always("resources", Shape::List(&Shape::Object), "as the servers list them, with `server`"),
        FAILURES,
    ],
};

/// `resourceTemplates`.
pub static TEMPLATES: Record = Record {
    name: "ResourceTemplates",
    fields: &[
        always("resourceTemplates", Shape::List(&Shape::Object), "as the servers list them, with `server`"),
        FAILURES,
    ],
};

/// `prompts`.
pub static PROMPTS: Record = Record {
    name: "Prompts",
    fields: &[
        always("prompts", Shape::List(&Shape::Object), "as the servers list them, with `server`"),
        FAILURES,
    ],
};
