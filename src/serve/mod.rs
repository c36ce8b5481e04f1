//! mcpx as an MCP server: one dispatcher over sessions that know nothing of
//! what brings their messages, the tools that it derives from the operations
//! table, the tools of all servers under names of its own. Also the
//! demonstration server. Knows nothing of the command line.

pub mod adapter;
mod address;
mod backend;
mod calls;
mod channel;
pub mod demo;
mod demo_offers;
mod demo_tools;
mod dispatch;
mod ears;
mod era;
mod fault;
mod greeting;
mod headers;
mod hearing;
mod http;
pub mod lines;
mod link;
mod listening;
mod members;
mod news;
mod options;
mod prompts;
mod questions;
mod render;
mod resources;
mod safe_names;
mod session;
pub mod stdio;
mod streams;
mod tasks;
#[cfg(test)]
mod testing;
mod tools;
mod upstreams;
mod uris;

pub use backend::Backend;
pub use http::endpoint;
pub use link::{Connect, Link};
pub use options::Options;
pub use session::Session;
pub use upstreams::Upstreams;
