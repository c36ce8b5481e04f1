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

use crate::error::Error;
use crate::paths::Dirs;
use std::io;
use std::path::{Path, PathBuf};

/// The directory of the log's files: `log` in the state directory.
pub fn dir(dirs: &Dirs) -> PathBuf {
    dirs.state.join("log")
}

/// The files in a directory of a log cannot be read.
pub fn unreadable(dir: &Path, e: &io::Error) -> Error {
    Error::unreadable(format_args!("the log in {}", dir.display()), e).hint(
        "set MCPX_STATE_DIR to a directory that mcpx may read and write, or move away what stands in this one's place",
    )
}
