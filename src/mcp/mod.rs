//! The Model Context Protocol, as its client: JSON-RPC, over a child's pipes or
//! over streamable HTTP. Knows nothing of pools, of scripts, or of routes.

mod ask;
mod cancel;
mod client;
mod era;
mod error;
#[cfg(test)]
mod hostile_tests;
pub mod http;
#[cfg(test)]
mod http_tests;
pub(crate) mod jsonrpc;
mod mirror;
pub mod oauth;
mod oversize;
mod peer;
mod pending;
mod reading;
mod sse;
mod start;
#[cfg(test)]
mod stateless_tests;
mod stderr;
mod stdio;
mod streamable;
mod subscribe;
mod task;
#[cfg(test)]
mod tests;
mod tool;
mod writer;

pub use ask::{Answer, Asked, Question, samples_for};
pub use cancel::{Cancel, CancelGuard};
pub use client::{Client, Options};
pub(crate) use era::is_stateless;
pub(crate) use mirror::of_call as mirrored;
pub use peer::{Hooks, Noticed, Said};
pub use start::Connect;
pub use task::{is_task_only, may_be_task};
pub use tool::{Tool, ToolList};
