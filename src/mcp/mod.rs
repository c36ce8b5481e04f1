//! The Model Context Protocol, as its client: JSON-RPC, over a child's pipes or
//! over streamable HTTP. Knows nothing of pools, of scripts, or of routes.

mod cancel;
mod client;
mod error;
mod http;
#[cfg(test)]
mod http_tests;
mod jsonrpc;
pub mod oauth;
mod oversize;
mod peer;
mod pending;
mod sse;
mod start;
mod stderr;
mod stdio;
mod streamable;
#[cfg(test)]
mod tests;
mod tool;
mod writer;

pub use cancel::{Cancel, CancelGuard};
pub use client::{Client, Options};
pub use peer::Hooks;
pub use start::Connect;
pub use tool::Tool;
