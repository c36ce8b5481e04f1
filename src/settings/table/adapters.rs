//! Declares the settings of the servers that mcpx makes of programs and of HTTP APIs.
#![allow(missing_docs, reason = "each entry's help says what it is")]

use super::unit::{GIB, KIB, WEEK, ms};
use crate::settings::declared::{Setting, Spec};
use crate::settings::kind::Kind;
use std::time::Duration;

pub static ADAPTERS_TIMEOUT: Setting<Duration> = Setting::new(
    Spec::new(
        "adapters.timeout",
        Kind::Duration(ms(1), WEEK, Some("no limit")),
        "How long one run of a declared program, or one request to a declared API, may take",
    )
    .doc("A declaration's own `timeout` comes first. The call itself ends with `pool.callTimeout` in any case."),
);

pub static ADAPTERS_MAX_OUTPUT: Setting<u64> = Setting::new(Spec::new(
    "adapters.maxOutput",
    Kind::Bytes(KIB, GIB),
    "How much a declared program may write, or a declared API may answer, in one call",
));

pub static ADAPTERS_MAX_DOCUMENT: Setting<u64> = Setting::new(Spec::new(
    "adapters.maxDocument",
    Kind::Bytes(KIB, GIB),
    "How large an OpenAPI document may be",
));

pub static ADAPTERS_MAX_SCHEMA: Setting<u64> = Setting::new(
    Spec::new(
        "adapters.maxSchema",
        Kind::Bytes(KIB, GIB),
        "How large the schemas that one operation of a declared API refers to may get together",
    )
    .doc(
        "What lies deeper in the arguments then takes any value, and a larger result has no schema. Some APIs describe \
         half of themselves in each operation.",
    ),
);
