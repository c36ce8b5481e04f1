//! Records of the daemon itself: its state, its sessions, its settings. Knows nothing of who answers.

use super::{ERROR, TEXTS, always, maybe};
use crate::api::ops::{Record, Shape};

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
