//! Integration tests: mcpx as a user has it, against real and misbehaving servers.
//! One file a feature; `harness` makes the world that a test runs in.

// The bans keep the library testable; a test is the place where processes start.
#![allow(clippy::disallowed_methods, missing_docs)]

mod harness;

mod adapters;
mod apis;
mod autostart;
mod bare;
mod big;
mod browsers;
mod call;
mod catalog;
mod completions;
mod config;
mod conformance;
mod constants;
mod daemon;
mod demo;
mod docs;
mod doctor;
mod elicit;
mod eras;
mod events;
mod exec;
mod exec_service;
mod faults;
mod hooks;
mod hostile;
mod inherit_env;
mod inline;
mod launcher;
mod layers;
mod lock;
mod log;
mod oauth;
mod orphans;
mod permissions;
mod plugin;
mod plugin_commands;
mod plugin_core;
mod plugin_opencode;
mod python;
mod real_servers;
mod remote;
mod report;
mod resources;
mod run_scripts;
mod sampling;
mod script_options;
mod serve;
mod serve_hosts;
mod serve_http;
mod serve_offers;
mod servers;
mod sessions;
mod settings;
mod soak;
mod stats;
mod terminal;
mod typecheck;
mod ui;
mod versions;
