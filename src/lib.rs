//! mcpx: all of a machine's MCP servers behind one command and one local daemon.
//!
//! The modules are layers; each names only those below it (a test checks every
//! `use crate::`). From the top: `cli`, `plugin`, `serve`, `daemon`, `api`, `script`,
//! `pool`, `catalog`, `adapters`, `mcp`, `proc`, `config`, `observe`,
//! `settings`, and the common `error`, `log`, `paths` and `util`.

// The bans of clippy.toml hold for what ships; a unit test may start a thread.
#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod adapters;
pub mod api;
pub mod artifacts;
pub mod catalog;
pub mod cli;
pub mod config;
pub mod daemon;
pub mod error;
pub mod log;
pub mod mcp;
pub mod observe;
pub mod paths;
pub mod plugin;
pub mod pool;
pub mod proc;
pub mod script;
pub mod serve;
pub mod settings;
pub mod util;

/// Runs one command line (the program's name first) and returns its exit code.
pub fn run(argv: Vec<std::ffi::OsString>) -> u8 {
    cli::run(argv)
}
