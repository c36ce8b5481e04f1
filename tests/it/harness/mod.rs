//! What a test stands on: a [`World`] with directories, an environment and a
//! PATH of its own, commands whose stdout, stderr and status are compared, and
//! the certainty that no process and no socket outlives it.

mod command;
mod host;
mod process;
mod terminal;
pub mod tools;
mod world;

pub use command::Output;
pub use host::{Host, VERSION_KEY, stateless};
pub use process::{Background, alive, free_port, signal, wait_until};
pub use terminal::Terminal;
pub use tools::Runtime;
pub use world::World;
