//! What the daemon can be asked, as a table, and how to ask it: operations,
//! wire records, HTTP, the blocking client. Knows nothing of how the daemon answers.

mod bridge;
pub mod client;
pub mod docs;
pub mod find;
pub mod frame;
pub mod http;
pub mod info;
pub mod named;
pub mod ops;
pub mod page;
pub mod records;
pub mod remote;
pub mod reply;
mod resolve;
pub mod servers;
mod start;
pub mod typescript;
pub mod wire;

pub use crate::proc::lock;
#[cfg(test)]
pub use crate::util::scratch;
pub use crate::util::uri;
pub use client::{Client, Interrupter};
pub use find::{Boot, daemons};
pub use reply::{Reply, called};
pub use resolve::{Resolved, resolve};
pub use start::without_run;
