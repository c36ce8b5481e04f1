//! Declares the settings of mcpx as an MCP server.
#![allow(missing_docs, reason = "each entry's help says what it is")]

use super::unit::{DAY, GIB};
use crate::settings::choices::{NAMINGS, SERVE_MODES};
use crate::settings::declared::{Setting, Spec};
use crate::settings::kind::Kind;
use std::time::Duration;

pub static SERVE_MODE: Setting<String> = Setting::new(
    Spec::new("serve.mode", Kind::Enum(SERVE_MODES), "Which tools `mcpx serve` and `/mcp` offer to hosts")
        .shared()
        .doc("`mcpx serve --passthrough` is `passthrough`."),
);

pub static SERVE_NAMES: Setting<String> = Setting::new(
    Spec::new("serve.names", Kind::Enum(NAMINGS), "How the servers' own tools are called").shared().doc(
        "`prefixed` names are the same whatever else is configured; a plain one becomes `server__tool` as soon \
         as a second server has a tool of that name.",
    ),
);

pub static SERVE_TOOLS: Setting<Vec<String>> = Setting::new(
    Spec::new("serve.tools", Kind::List, "Which of the `mcpx_*` tools are offered")
        .shared()
        .doc("Names with or without `mcpx_`; `*` stands for any characters: `settings_*`."),
);

pub static SERVE_INSTRUCTIONS: Setting<String> = Setting::new(
    Spec::new("serve.instructions", Kind::Text, "What hosts are told about mcpx")
        .shared()
        .doc("Empty: how the `mcpx_*` tools belong together, and a line for each server."),
);

pub static SERVE_LIST_TTL: Setting<Duration> = Setting::new(
    Spec::new(
        "serve.listTtl",
        Kind::Duration(Duration::ZERO, DAY, Some("ask each time")),
        "How long a host may keep a list of tools before it asks again",
    )
    .shared()
    .doc("Told to hosts of the stateless revisions of MCP; others are told when a list has changed."),
);

pub static SERVE_HISTORY: Setting<u64> = Setting::new(
    Spec::new(
        "serve.history",
        Kind::Bytes(0, GIB),
        "How much of each stream to a host is kept for a host that lost its connection",
    )
    .shared()
    .doc("At `/mcp`, in sessions: a host that comes back with `Last-Event-ID` gets what came after that event."),
);

pub static SERVE_TASK_AFTER: Setting<Duration> = Setting::new(
    Spec::new(
        "serve.taskAfter",
        Kind::Duration(Duration::ZERO, DAY, Some("every call at once")),
        "After how long a call becomes a task",
    )
    .shared()
    .doc(
        "For hosts of the stateless revisions that know tasks: what answers sooner is answered as ever. Others say \
         themselves which call is to be a task.",
    ),
);

pub static SERVE_TASK_TTL: Setting<Duration> = Setting::new(
    Spec::new("serve.taskTtl", Kind::Duration(SHORTEST, DAY, None), "How long a host's task is kept at most")
        .shared()
        .doc(
            "From its beginning on; a host may want less. One that still works is kept until it is over, and cancelled \
             when the host's session ends.",
        ),
);

/// A host needs some time to fetch a result.
const SHORTEST: Duration = Duration::from_secs(1);
