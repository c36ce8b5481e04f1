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

pub static SCRIPT_INTERPRETER: Setting<Value> = Setting::new(
    Spec::new(
        "script.interpreter",
        Kind::Json,
        "What runs a script by its extension: `{\"rb\": \"ruby -w\"}`",
    )
    .client()
    .doc(
        "A command, or a list of its words; deno, bun and node may be named as well. A \
         script's first line outranks it. Without it: sh, bash, py, rb, pl.",
    ),
);

pub static SCRIPT_DIRS: Setting<Vec<String>> =
    Setting::new(Spec::new("script.dirs", Kind::Paths, "Further directories of named scripts").client().doc(
        "Searched after `.mcpx/scripts` here and above, and before the user's. `[\"tools\", null]` in a file \
         puts one before those of files further away; without `null` it replaces them.",
    ));

pub static SCRIPT_INHERIT_ENV: Setting<Vec<String>> = Setting::new(
    Spec::new(
        "script.inheritEnv",
        Kind::List,
        "Which variables of its environment mcpx hands on to a script; `!` before a pattern denies",
    )
    .client()
    .doc(
        "With denials alone, such as `!AWS_*`, all else is handed on. PATH, HOME, TMPDIR, and \
         what proxies, certificate bundles and mcpx itself are found by, always are. A server \
         has `\"mcpx\": {\"inheritEnv\": […]}`.",
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
    .doc(
        "Built in: all (also none, off and unsandboxed: no sandbox, everything is allowed), net, read, readnet, \
         strict. `mcpx permissions` shows what each comes to.",
    ),
);

pub static SCRIPT_PROFILES: Setting<Value> = Setting::new(
    Spec::new(
        "script.profiles",
        Kind::Json,
        "Permission profiles by name: flags for each kind of runtime, and the tools that are granted",
    )
    .client()
    .doc(
        "An object maps kinds to lists of flags, `tools` to a list such as \
         `[\"github.get_*\"]`, which the daemon enforces, and `description` to a text; \
         a text is flags for every kind. The nearest file that sets it replaces the \
         whole object, but the built-in profiles stay unless one of their names is used.",
    ),
);

const SOURCE_DOC: &str = "JavaScript: a text, a file, or a directory whose files are put together in natural order; \
     `@text:` and `@file:` say which. Scripts of other interpreters, and those that `--no-launcher` \
     starts, do without it.";

pub static SCRIPT_PREFIX: Setting<String> = Setting::new(
    Spec::new("script.prefix", Kind::Source, "What stands before every script: it sees what this declares")
        .client()
        .doc(SOURCE_DOC),
);

pub static SCRIPT_SUFFIX: Setting<String> = Setting::new(
    Spec::new(
        "script.suffix",
        Kind::Source,
        "What stands behind every script: it runs unless the script throws",
    )
    .client()
    .doc(SOURCE_DOC),
);

pub static SCRIPT_BEFORE: Setting<String> = Setting::new(
    Spec::new(
        "script.before",
        Kind::Source,
        "A program that is run, and awaited, before every script; when it throws the script does not run",
    )
    .client()
    .doc(SOURCE_DOC),
);

pub static SCRIPT_ON_SUCCESS: Setting<String> = Setting::new(
    Spec::new(
        "script.onSuccess",
        Kind::Source,
        "A program that is run with `result` after a script has succeeded; when it throws the run fails",
    )
    .client()
    .doc(SOURCE_DOC),
);

pub static SCRIPT_ON_ERROR: Setting<String> = Setting::new(
    Spec::new("script.onError", Kind::Source, "A program that is run with `error` after a script has thrown")
        .client()
        .doc(SOURCE_DOC),
);

pub static SCRIPT_CONSOLE: Setting<String> = Setting::new(
    Spec::new(
        "script.console",
        Kind::Enum(&[
            ("records", "its lines are log records, on standard error or in the document"),
            ("print", "they go where the runtime itself writes them"),
        ]),
        "What becomes of a script's console",
    )
    .client()
    .doc("Standard output then has the script's value, and what it emits, alone."),
);

pub static SCRIPT_LOG_SOURCE: Setting<String> = Setting::new(
    Spec::new(
        "script.logSource",
        Kind::Enum(&[
            ("0", "none"),
            ("debug", "all"),
            ("info", "info and above"),
            ("warn", "warn and above"),
            ("error", "errors"),
        ]),
        "Which of a script's log records say where they were made",
    )
    .client(),
);

pub static SCRIPT_TYPECHECK: Setting<bool> = Setting::new(
    Spec::new("script.typecheck", Kind::Bool, "Check a script's types before it is run")
        .client()
        .flags(&["--typecheck"])
        .doc(
            "By `deno check`, or by `tsc` of the project's `node_modules` or on PATH; the types are those of the \
             servers' schemas. bun and node check nothing themselves.",
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
