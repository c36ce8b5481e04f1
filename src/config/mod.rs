//! The configuration: where its files are, reading them (JSON with comments),
//! and the servers that they define. Knows nothing of daemons or of how a
//! server is started.

mod expand;
mod jsonc;
mod load;
mod search;
mod server;

pub use jsonc::{Document, parse};
pub use load::{Config, LoadOptions, SourceFile, load, reload};
pub use search::search_path;
pub use server::{ServerDef, ServerOptions, Transport};
