//! Declares the settings of the exec service, and of where a script runs.
#![allow(missing_docs, reason = "each entry's help says what it is")]

use super::unit::{HOUR, YEAR, ms};
use crate::settings::declared::{Setting, Spec};
use crate::settings::kind::Kind;
use std::time::Duration;

pub static EXEC_WHERE: Setting<String> = Setting::new(
    Spec::new(
        "exec.where",
        Kind::Enum(&[
            ("auto", "here, unless the daemon has an address and no runtime here can run the script"),
            ("local", "here"),
            ("daemon", "where the daemon is"),
        ]),
        "Where `mcpx exec` and `mcpx run` run a script",
    )
    .client()
    .doc("`--remote` is short for `daemon`."),
);

pub static EXEC_ENABLED: Setting<bool> = Setting::new(
    Spec::new("exec.enabled", Kind::Bool, "Whether a daemon runs programs for those who may ask it")
        .doc("Such a program may do what the daemon's user may, unless its permissions limit it."),
);

pub static EXEC_CONCURRENCY: Setting<i64> = Setting::new(Spec::new(
    "exec.concurrency",
    Kind::Int(1, 4096),
    "How many programs a daemon runs at once; further ones are refused",
));

pub static EXEC_TIMEOUT: Setting<Duration> = Setting::new(Spec::new(
    "exec.timeout",
    Kind::Duration(ms(1), YEAR, Some("no limit")),
    "How long a program may run that a daemon was asked to run without a limit",
));

pub static EXEC_HOOK_TIMEOUT: Setting<Duration> = Setting::new(
    Spec::new(
        "exec.hookTimeout",
        Kind::Duration(ms(1), HOUR, None),
        "How long a hook of a program that a daemon runs may take",
    )
    .doc("Then it is stopped, and counts as failed."),
);
