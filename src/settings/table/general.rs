//! Declares the settings of what every command needs: presets, paths, output.
#![allow(missing_docs, reason = "each entry's help says what it is")]

use super::unit::{GIB, HOUR, ms};
use crate::settings::choices::{COLOR, MEDIA};
use crate::settings::declared::{Setting, Spec};
use crate::settings::kind::Kind;
use std::time::Duration;

pub static PRESET: Setting<Vec<String>> = Setting::new(
    Spec::new("preset", Kind::List, "Presets to apply, in order; a later one wins").client().doc(
        "A preset is a named list of mcpx's own flags under `presets`. It ranks between \
         the environment and the command line. A preset cannot select presets.",
    ),
);

pub static PATHS_CONFIG_FILE: Setting<String> = Setting::new(
    Spec::new("paths.configFile", Kind::Path, "The one configuration file to read, instead of searching")
        .client()
        .bootstrap()
        .flags(&["--config"])
        .env(&["MCPX_CONFIG"])
        .doc(
            "Empty: search upward from the working directory, then in the user's and the \
         system's places. A file that is named but missing is an error.",
        ),
);

pub static PATHS_STATE: Setting<String> = Setting::new(
    Spec::new("paths.state", Kind::Path, "Where daemons keep their sockets, info files and logs")
        .client()
        .bootstrap()
        .flags(&["--state-dir"])
        .env(&["MCPX_STATE_DIR"])
        .doc("Empty: `$XDG_STATE_HOME/mcpx`, else `~/.local/state/mcpx`."),
);

pub static PATHS_CACHE: Setting<String> = Setting::new(
    Spec::new("paths.cache", Kind::Path, "Where schemas and generated clients are cached")
        .client()
        .bootstrap()
        .flags(&["--cache-dir"])
        .env(&["MCPX_CACHE_DIR"])
        .doc("Empty: `$XDG_CACHE_HOME/mcpx`, else `~/.cache/mcpx`."),
);

pub static OUTPUT_JSON: Setting<bool> =
    Setting::new(Spec::new("output.json", Kind::Bool, "Print JSON").client().flags(&["--json"]));

pub static OUTPUT_COLOR: Setting<String> = Setting::new(
    Spec::new("output.color", Kind::Enum(COLOR), "When to print in colour").client().flags(&["--color"]),
);

pub static OUTPUT_MEDIA: Setting<String> = Setting::new(
    Spec::new("output.media", Kind::Enum(MEDIA), "What becomes of images and audio in a result")
        .client()
        .flags(&["--media"]),
);

pub static OUTPUT_MEDIA_DIR: Setting<String> = Setting::new(
    Spec::new("output.mediaDir", Kind::Path, "Where images and audio are written")
        .client()
        .doc("Empty: they become artifacts, with a path in the state directory, and go when those do. What is written to a directory of yours is never removed."),
);

pub static DOCTOR_TIMEOUT: Setting<Duration> = Setting::new(
    Spec::new(
        "doctor.timeout",
        Kind::Duration(ms(100), HOUR, None),
        "How long `mcpx doctor` waits for one server",
    )
    .client(),
);

pub static DOCTOR_CONCURRENCY: Setting<i64> = Setting::new(
    Spec::new("doctor.concurrency", Kind::Int(1, 64), "How many servers `mcpx doctor` starts at once")
        .client(),
);

pub static DOCTOR_DISK_FREE: Setting<u64> = Setting::new(
    Spec::new("doctor.diskFree", Kind::Bytes(0, 1024 * GIB), "How much room on the disk `mcpx doctor` wants")
        .client(),
);

pub static PLUMBING_STRICT_UNKNOWN_KEYS: Setting<bool> = Setting::new(
    Spec::new(
        "plumbing.strictUnknownKeys",
        Kind::Bool,
        "Refuse a configuration file that has an unknown key, instead of warning",
    )
    .client(),
);

pub static COMMANDS_DIRS: Setting<Vec<String>> =
    Setting::new(Spec::new("commands.dirs", Kind::Paths, "Further directories of programs that are commands").client().doc(
        "An executable `mcpx-NAME` in one of them is `mcpx NAME`. Searched after `plugins` below mcpx's configuration \
         directory, and before PATH; a command of mcpx's own is never replaced. `[\"tools\", null]` in a file puts one \
         before those of files further away.",
    ));
