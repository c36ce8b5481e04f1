//! The log: what happened, as lines of JSON in files that roll. `journal` takes
//! records without making anybody wait, `store` writes and rolls the files, `scan`
//! reads them in parallel, `query` and `chain` answer questions, `past` gives back
//! events, and `stats` counts. The files are the truth; nothing is kept beside them.

mod census;
pub mod chain;
mod follow;
mod journal;
mod line;
mod past;
mod places;
mod query;
mod record;
mod redact;
mod scan;
pub mod stats;
mod store;
mod tally;
mod template;
mod text;
mod when;

pub use follow::Follower;
pub use journal::{Counts, Journal, Spawn};
pub use past::{Past, event_of, past};
pub use query::{MOST, Query, every, newest};
pub use record::{Entry, Ids, Trace, Upto};
pub use redact::Redactor;
pub use scan::Snapshot;
pub use store::Rolling;
pub use text::text_of;
pub use when::{parse_when, round_to};

use crate::paths::Dirs;
use std::path::PathBuf;

/// The directory of the log's files: `log` in the state directory.
pub fn dir(dirs: &Dirs) -> PathBuf {
    dirs.state.join("log")
}
