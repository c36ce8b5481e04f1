//! The configuration: where its files are, reading them (JSON with comments),
//! changing them, and the servers that they define. Knows nothing of daemons or of how a
//! server is started.

pub mod declared;
mod docs;
pub mod edit;
mod expand;
mod fields;
mod filter;
pub mod import;
pub mod inherit;
mod jsonc;
mod load;
#[cfg(test)]
mod mutated;
mod node;
mod oauth;
mod odd;
mod patch;
mod places;
mod profiles;
mod regex;
mod render;
mod schema;
mod search;
pub mod secrets;

mod server;
pub mod servers;
mod splice;
#[cfg(test)]
mod tests;
mod values;

pub use docs::{configuration_md, starter};
pub use filter::{Pattern, Patterns, ToolFilter, Withheld};
pub use jsonc::parse;
pub use load::{Config, LoadOptions, SourceFile, existing, load, reload, survey};
pub use node::Document;
pub use oauth::OAuthOptions;
pub use places::{project_file, user_file};
pub use profiles::Selection;
pub use schema::schema;
pub use search::{PLACES, search_path};
pub use server::{ServerDef, ServerOptions, Transport};
