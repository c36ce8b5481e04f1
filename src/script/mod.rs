//! What runs a script, what it may do, and what it is told: runtimes,
//! permission profiles, the generated client and launcher, the script
//! environment, the plan and its execution. Knows nothing of HTTP routes and
//! prints nothing.

mod around;
pub mod dispatch;
pub mod effects;
mod entry;
pub mod env;
pub mod env_file;
mod faults;
mod imports;
pub mod launcher;
pub mod named;
pub mod permissions;
pub mod plan;
pub mod profiles;
mod records;
pub mod run;
pub mod runtimes;
mod scan;
mod shown;
mod variables;

pub use faults::Faults;
pub use imports::parted;
pub use launcher::{Namespace, client_module, python_module};
pub use named::{NamedScript, list as named_scripts};
pub use plan::{Link, Local, Place, Plan, Prepared, RunSpec, Source, place, prepare};
pub use records::LogRecord;
pub use run::{Attended, Captured, Fed, Feed, Outcome, attend, execute};

#[cfg(test)]
mod tests;
