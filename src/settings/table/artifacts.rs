//! Declares the settings of what is kept of scripts and tools.
#![allow(missing_docs, reason = "each entry's help says what it is")]

use super::unit::{GIB, KIB, YEAR};
use crate::settings::choices::RESULTS;
use crate::settings::declared::{Setting, Spec};
use crate::settings::kind::Kind;
use std::time::Duration;

pub static ARTIFACTS_MAX_SIZE: Setting<u64> = Setting::new(Spec::new(
    "artifacts.maxSize",
    Kind::Bytes(KIB, 1024 * GIB),
    "How large one artifact may be",
));

pub static ARTIFACTS_QUOTA: Setting<u64> = Setting::new(
    Spec::new("artifacts.quota", Kind::Bytes(0, 1024 * GIB), "How large all artifacts may be together").doc(
        "0: any size. The oldest give way to new ones, but never those of a run that is open; what does not fit even \
         so is refused. The same content counts once.",
    ),
);

pub static ARTIFACTS_TTL: Setting<Duration> = Setting::new(
    Spec::new("artifacts.ttl", Kind::Duration(Duration::ZERO, YEAR, None), "How long an artifact is kept")
        .doc("0 keeps all. Images and audio that `mcpx call` put into files are artifacts too."),
);

pub static ARTIFACTS_RESULTS: Setting<String> = Setting::new(
    Spec::new(
        "artifacts.results",
        Kind::Enum(RESULTS),
        "What becomes of images, audio and blobs in the result of a call",
    )
    .call()
    .doc(
        "What is smaller than `artifacts.resultsFrom` stays in the result in any case. For `mcpx call` itself see \
         `output.media`.",
    ),
);

pub static ARTIFACTS_RESULTS_FROM: Setting<u64> = Setting::new(
    Spec::new(
        "artifacts.resultsFrom",
        Kind::Bytes(0, GIB),
        "How large an image, audio or blob must be for `artifacts.results` to take it out of a result",
    )
    .call(),
);
