//! The table of commands, one file a command. Its order is the order of help
//! and of the reference page.

use super::command::Command;

pub mod adapter;
pub mod api;
pub mod artifacts;
pub mod auth;
pub mod call;
pub mod catalog;
pub mod check;
pub mod client;
pub mod complete;
pub mod completions;
pub mod config;
pub mod daemon;
pub mod daemons;
pub mod demo_server;
pub mod docs;
pub mod doctor;
pub mod elicit;
pub mod events;
pub mod exec;
pub mod explore;
pub mod guard;
pub mod help;
pub mod hook;
pub mod hooks;
pub mod init;
pub mod lock;
pub mod log;
pub mod ls;
pub mod man;
pub mod permissions;
pub mod plugin;
pub mod prompts;
pub mod refresh;
pub mod reload;
pub mod resolve;
pub mod resources;
pub mod restart;
pub mod run;
pub mod scripts;
pub mod search;
pub mod serve;
pub mod servers;
pub mod service;
pub mod session;
pub mod settings;
pub mod stats;
pub mod status;
pub mod stop;
pub mod task;
pub mod tools;
pub mod types;
pub mod ui;
pub mod version;

/// Every command.
pub static COMMANDS: &[&Command] = &[
    &ls::COMMAND,
    &search::COMMAND,
    &tools::COMMAND,
    &types::COMMAND,
    &resources::COMMAND,
    &prompts::COMMAND,
    &catalog::COMMAND,
    &explore::COMMAND,
    &call::COMMAND,
    &exec::COMMAND,
    &run::COMMAND,
    &elicit::COMMAND,
    &task::COMMAND,
    &scripts::COMMAND,
    &artifacts::COMMAND,
    &client::COMMAND,
    &serve::COMMAND,
    &api::COMMAND,
    &permissions::COMMAND,
    &status::COMMAND,
    &ui::COMMAND,
    &events::COMMAND,
    &log::COMMAND,
    &stats::COMMAND,
    &hooks::COMMAND,
    &session::COMMAND,
    &daemons::COMMAND,
    &daemon::COMMAND,
    &stop::COMMAND,
    &restart::COMMAND,
    &refresh::COMMAND,
    &reload::COMMAND,
    &resolve::COMMAND,
    &service::COMMAND,
    &init::COMMAND,
    &servers::COMMAND,
    &auth::COMMAND,
    &lock::COMMAND,
    &check::COMMAND,
    &config::COMMAND,
    &settings::COMMAND,
    &plugin::COMMAND,
    &hook::COMMAND,
    &doctor::COMMAND,
    &completions::COMMAND,
    &man::COMMAND,
    &version::COMMAND,
    &help::COMMAND,
    &demo_server::COMMAND,
    &adapter::COMMAND,
    &guard::COMMAND,
    &complete::COMMAND,
    &docs::COMMAND,
];
