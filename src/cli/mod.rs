//! What a person types and reads: parses the command line against the tables
//! of commands and settings, does what it says through the layers below,
//! prints the answer, and decides the exit code.

pub mod argforms;
pub mod args;
mod argtypes;
pub mod browser;
pub mod command;
pub mod commands;
pub mod complete;
pub mod cx;
pub mod docs;
pub mod doctor;
pub mod help;
pub mod interrupt;
pub mod locking;
pub mod logs;
pub mod man;
pub mod out;
pub mod plugins;
pub mod progress;
pub mod questions;
pub mod remote;
mod report;
pub mod result;
mod running;
pub mod schemas;
mod script_log;
mod strays;
pub mod table;
pub mod topics;
pub mod typecheck;
mod unusable;
mod whole;

use crate::error::{Error, Kind};
use crate::paths::Dirs;
use crate::proc;
use crate::settings;
use crate::util::Env;
use cx::Cx;
use std::ffi::OsString;

/// Runs one command line (the program's name first) and returns its exit code.
pub fn run(argv: Vec<OsString>) -> u8 {
    let mut out = out::Out::stdout();
    let env = Env::current();
    let json_typed = args::wants_json(&argv);
    if let Some(code) = plugin(&argv, &env) {
        return finish(code, &mut out, json_typed);
    }
    let outcome = match args::parse(argv) {
        Ok(args::Parsed::Overview) if json_typed => out.json(&help::overview_json()).map(|()| 0),
        Ok(args::Parsed::Overview) => {
            let names: Vec<String> = plugins_of(&env).into_keys().collect();
            out.line(help::overview_with(&names).trim_end()).map(|()| 0)
        }
        Ok(args::Parsed::Help(command)) if json_typed => {
            let body = serde_json::json!({"ok": true, "command": help::command_json(command)});
            out.json(&body).map(|()| 0)
        }
        Ok(args::Parsed::Help(command)) => out.line(help::command(command).trim_end()).map(|()| 0),
        Ok(args::Parsed::Version) => commands::version::print(&mut out, json_typed).map(|()| 0),
        Ok(args::Parsed::Run(invocation)) => {
            let run = invocation.command.run;
            let mut cx = Cx::new(invocation, env, out);
            let outcome = cx.take_presets().and_then(|()| run(&mut cx));
            let json = cx.json();
            let code = finish(outcome, &mut cx.out, json);
            return interrupt::ended().unwrap_or(code);
        }
        Err(e) => Err(with_plugins(e, &env)),
    };
    finish(outcome, &mut out, json_typed)
}

/// Becomes the plugin that the first word names, unless it is a command of ours.
fn plugin(argv: &[OsString], env: &Env) -> Option<Result<u8, Error>> {
    let args::Foreign { settings, name, args } = args::foreign(argv)?;
    if topics::find(&name.to_string_lossy()).is_some() {
        return None;
    }
    // What was typed in front of its name reaches it as the variables that mean the same.
    let mut env = env.clone();
    for typed in settings {
        let variable = settings::declared(&typed.key)?.env_names().into_iter().next()?;
        match typed.key.as_str() {
            "paths.configFile" => env.set(&variable, std::path::absolute(&typed.text).ok()?),
            _ => env.set(&variable, typed.text),
        }
    }
    let env = &env;
    let (dirs, cwd) = (Dirs::from_env(env, proc::uid()).ok(), cx::working_directory().ok()?);
    let program = plugins::find(&name, env, dirs.as_ref(), &cwd)?;
    Some(plugins::become_it(&program, &args, env, dirs.as_ref(), &cwd))
}

/// An unknown command may be a mistyped plugin.
fn with_plugins(e: Error, env: &Env) -> Error {
    let typed = e.message().strip_prefix("there is no command \"").and_then(|rest| rest.strip_suffix('"'));
    let near = typed.and_then(|typed| {
        let names = plugins_of(env);
        crate::util::did_you_mean(typed, names.keys().map(String::as_str))
    });
    match (near, e.hint_text()) {
        (Some(near), Some("mcpx --help lists the commands")) => e.hint(near),
        _ => e,
    }
}

/// The plugins that there are.
fn plugins_of(env: &Env) -> std::collections::BTreeMap<String, std::path::PathBuf> {
    let dirs = Dirs::from_env(env, proc::uid()).ok();
    cx::working_directory().map(|cwd| plugins::all(env, dirs.as_ref(), &cwd)).unwrap_or_default()
}

/// Flushes, reports an error where it belongs, and gives the exit code.
fn finish(outcome: Result<u8, Error>, out: &mut out::Out, json: bool) -> u8 {
    let outcome = outcome.and_then(|code| out.flush().map(|()| code));
    match outcome {
        Ok(code) => code,
        // Whoever read our output has had enough; that is not a failure.
        Err(_) if out.is_closed() => 0,
        Err(e) => {
            let code = e.exit_code();
            if json {
                let body = serde_json::json!({"ok": false, "error": e.to_json()});
                let _ = out.line(&body.to_string()).and_then(|()| out.flush());
            }
            out::complain(&e);
            code
        }
    }
}

/// A bug rather than a mistake of the user's.
pub(crate) fn internal(what: impl Into<String>) -> Error {
    Error::new(Kind::Internal, what).hint("this is a bug in mcpx; please report it with the command line")
}
