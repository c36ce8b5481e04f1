//! Declares the settings of scripts: runtimes, permissions, limits.
#![allow(missing_docs, reason = "each entry's help says what it is")]

use super::unit::{GIB, HOUR, KIB, YEAR, ms};
use crate::settings::declared::{Setting, Spec};
use crate::settings::kind::Kind;
use serde_json::Value;
use std::time::Duration;

pub static SCRIPT_RUNTIME: Setting<String> = Setting::new(
    Spec::new(
        "script.runtime",
        Kind::Text,
        "What runs a script: auto, deno, bun, node, a name under `script.runtimes`, or a path",
    )
    .client()
    .flags(&["--runtime"])
    .doc(
        "`auto` takes the first of `script.runtimeOrder` that is installed and can \
         enforce the permissions.",
    ),
);

pub static SCRIPT_RUNTIME_ORDER: Setting<Vec<String>> = Setting::new(
    Spec::new("script.runtimeOrder", Kind::List, "The order in which `auto` tries runtimes").client(),
);

pub static SCRIPT_RUNTIMES: Setting<Value> = Setting::new(
    Spec::new(
        "script.runtimes",
        Kind::Json,
        "Further runtimes by name: `{\"kind\": \"deno\", \"bin\": \"/path\", \"args\": []}`",
    )
    .client()
    .doc(
        "`kind` is deno, bun or node; `bin` defaults to the name; `args` go before the \
         permission flags. The nearest file that sets it replaces the whole object.",
    ),
);

pub static SCRIPT_PERMISSIONS: Setting<String> = Setting::new(
    Spec::new(
        "script.permissions",
        Kind::Text,
        "What a script may do: profiles separated by commas, and `raw:` flags last",
    )
    .client()
    .flags(&["--permissions"])
    .env(&["MCPX_PERMISSIONS"])
    .doc("Built in: all (also none, off and unsandboxed: no sandbox, everything is allowed), net, read, readnet, strict."),
);

pub static SCRIPT_PROFILES: Setting<Value> = Setting::new(
    Spec::new(
        "script.profiles",
        Kind::Json,
        "Further permission profiles by name: flags for each kind of runtime",
    )
    .client()
    .doc(
        "An object maps kinds to lists of flags; a text is flags for every kind. The \
         nearest file that sets it replaces the whole object.",
    ),
);

pub static SCRIPT_TIMEOUT: Setting<Duration> = Setting::new(
    Spec::new("script.timeout", Kind::Duration(ms(1), YEAR, Some("no limit")), "How long a script may run")
        .client()
        .flags(&["--timeout"]),
);

pub static SCRIPT_KILL_GRACE: Setting<Duration> = Setting::new(
    Spec::new(
        "script.killGrace",
        Kind::Duration(Duration::ZERO, HOUR, None),
        "How long a script may take to leave after SIGTERM",
    )
    .client()
    .doc("SIGKILL to its process group follows."),
);

pub static SCRIPT_CAPTURE_LIMIT: Setting<u64> = Setting::new(
    Spec::new(
        "script.captureLimit",
        Kind::Bytes(KIB, 4 * GIB),
        "How much of a script's output is kept where it is collected into one document",
    )
    .client()
    .doc("The rest is dropped, and the document says so."),
);
