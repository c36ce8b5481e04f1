//! Declares the settings of what can be seen: the log, events, hooks and consumers.
#![allow(missing_docs, reason = "each entry's help says what it is")]

use super::unit::{DAY, GIB, HOUR, KIB, YEAR, ms, secs};
use crate::settings::choices::LEVELS;
use crate::settings::declared::{Setting, Spec};
use crate::settings::kind::Kind;
use serde_json::Value;
use std::time::Duration;

pub static LOGGING_LEVEL: Setting<String> = Setting::new(
    Spec::new("logging.level", Kind::Enum(LEVELS), "The lowest level that is logged")
        .shared()
        .flags(&["--log-level"])
        .env(&["MCPX_LOG_LEVEL"]),
);

pub static LOGGING_ARGUMENTS: Setting<bool> = Setting::new(
    Spec::new(
        "logging.arguments",
        Kind::Bool,
        "Record the arguments and results of calls in the log, which otherwise holds neither",
    )
    .doc("Long ones are cut. Secrets of the configuration, and values under names such as `password`, are stars."),
);

pub static LOGGING_MAX_SIZE: Setting<u64> = Setting::new(
    Spec::new("logging.maxSize", Kind::Bytes(4 * KIB, 64 * GIB), "How large a file of the log may grow")
        .doc("Then another begins; `logging.keep` says how many there may be."),
);

pub static LOGGING_MAX_LINES: Setting<i64> = Setting::new(
    Spec::new("logging.maxLines", Kind::Int(0, 1_000_000_000), "How many records a file of the log may hold")
        .doc("0: any number."),
);

pub static LOGGING_MAX_AGE: Setting<Duration> = Setting::new(Spec::new(
    "logging.maxAge",
    Kind::Duration(secs(1), YEAR, Some("never")),
    "How long after its first record a file of the log is ended",
));

pub static LOGGING_KEEP: Setting<i64> = Setting::new(Spec::new(
    "logging.keep",
    Kind::Int(1, 100_000),
    "How many files of the log are kept; the oldest go first",
));

pub static EVENTS_HISTORY: Setting<i64> = Setting::new(
    Spec::new(
        "events.history",
        Kind::Int(1, 1_000_000),
        "How many events a daemon remembers for who reads late",
    )
    .cold(),
);

pub static EVENTS_HEARTBEAT: Setting<Duration> = Setting::new(Spec::new(
    "events.heartbeat",
    Kind::Duration(ms(100), HOUR, None),
    "How often a stream without events says that it is still there",
));

pub static EVENTS_CONSUMERS: Setting<Value> = Setting::new(
    Spec::new("events.consumers", Kind::Json, "Programs that the daemon runs and feeds with events, by name").doc(
        "Each is an object: `script` (what `mcpx run` takes) or `command` (a list of words), `events` \
         (kinds such as `call.finished`, or families such as `call`), `servers`, `session`. It reads an event \
         a line, and writes the event's `seq` on a line of its stdout when it is done with it (a script: `emit(event.seq)`); \
         only then the next one comes. \
         The nearest file that sets it replaces the whole object.",
    ),
);

pub static EVENTS_ACK_TIMEOUT: Setting<Duration> = Setting::new(Spec::new(
    "events.ackTimeout",
    Kind::Duration(ms(10), DAY, Some("no limit")),
    "How long a consumer may take for one event before it is started anew",
));

pub static EVENTS_RESTART_MAX: Setting<Duration> = Setting::new(Spec::new(
    "events.restartMax",
    Kind::Duration(ms(100), DAY, None),
    "The longest wait before a consumer that keeps failing is started again",
));

pub static EVENTS_HOOK_CONCURRENCY: Setting<i64> = Setting::new(Spec::new(
    "events.hookConcurrency",
    Kind::Int(1, 256),
    "How many hooks run at once; the rest wait",
));

pub static EVENTS_HOOK_QUEUE: Setting<i64> = Setting::new(
    Spec::new("events.hookQueue", Kind::Int(1, 1_000_000), "How many runs of hooks may wait")
        .doc("Further ones are dropped and counted: `mcpx hooks` shows how many."),
);

pub static EVENTS_HOOK_TIMEOUT: Setting<Duration> = Setting::new(
    Spec::new("events.hookTimeout", Kind::Duration(ms(10), HOUR, None), "How long a hook may run")
        .doc("Then its process group is killed. A hook may say its own `timeout`."),
);

pub static HOOKS: Setting<Value> = Setting::new(
    Spec::new("hooks", Kind::Json, "Commands that the daemon runs when something happens, by name").doc(
        "Each is an object: `events` (kinds such as `call.finished`, or families such as `call`; absent: all), \
         `servers` (absent: any), `command` (a list of words, run without a shell) or `shell` (a text for `sh -c`), \
         and `timeout`. The event is JSON on its stdin. A hook only looks on: it can neither slow nor fail a call. \
         The nearest file that sets it replaces the whole object.",
    ),
);
