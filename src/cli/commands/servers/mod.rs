//! `mcpx servers`: the configured servers, and changing them in their files.

mod add;
mod change;
mod import;
mod list;

pub use import::{Import, Source, import, text as import_text};

use super::super::args::usage;
use super::super::command::{Command, Flag, Group, MANY, Rest, example};
use super::super::cx::{Cx, World};
use super::super::out::note;
use crate::api::Client;
use crate::catalog::names;
use crate::config::{self, Config};
use crate::error::{Error, Result};
use crate::util::did_you_mean;
use serde_json::json;
use std::path::PathBuf;

/// The command.
pub static COMMAND: Command = Command {
    name: "servers",
    group: Group::Setup,
    words: "[list | show|adjust|remove|enable|disable <server> | add <name> … | import <host>]",
    count: (0, MANY),
    rest: Rest::Mixed,
    summary: "Show the configured servers, add, remove, switch, import them",
    about: "list shows every configured server; show prints one as its file has it, secrets masked. add <server> takes \
            an http(s) address, or behind -- a program and its arguments. adjust changes which \
            of a server's tools are offered, its profiles and its description, in the nearest file that has it or in the \
            one chosen, which then changes the definition of a file further away. enable and disable switch a server \
            where it is configured. import <host> takes over what another host has: claude-code, claude-desktop, cursor, vscode, \
            windsurf, codex, opencode, gemini, or all of them; --from reads one file, whosesoever it is.\n\n\
            Changes go to the project's own file, the nearest .mcpx.json or .mcpx/config.json at or above the working \
            directory, made here when there is none, or with --user to the user's; adjust, remove, enable and disable go to \
            the nearest file that has the server. With --config FILE they go to that file. Comments and layout stay. \
            A running daemon takes the change over at once, and a server that did not change keeps running.",
    flags: &[
        Flag::value("env", "KEY=VALUE", "add: a variable for the program; may be repeated"),
        Flag::value("header", "'NAME: VALUE'", "add: a header for the address; may be repeated"),
        Flag::value("cwd", "DIR", "add: the program's working directory"),
        Flag::value("scope", "SCOPE", "add: what an instance is keyed by"),
        Flag::value("sharing", "SHARING", "add: shared or exclusive"),
        Flag::value("description", "TEXT", "add, adjust: what the server is for"),
        Flag::value("profile", "NAME", "add, adjust: a profile that it belongs to; may be repeated"),
        Flag::value(
            "tools",
            "PATTERNS",
            "add, adjust: offer only these tools; names, globs or /expressions/",
        ),
        Flag::value("exclude-tools", "PATTERNS", "add, adjust: do not offer these tools"),
        Flag::value("extra-include-tools", "PATTERNS", "add, adjust: offer these in any case"),
        Flag::switch("project", "Change the project's file"),
        Flag::switch("user", "Change the user's file"),
        Flag::switch("force", "add, import: replace a server of the same name"),
        Flag::switch("reveal", "list, show: do not mask secrets"),
        Flag::value("from", "FILE", "import: read this file"),
        Flag::switch("dry-run", "import: say what would be done, and change nothing"),
    ],
    settings: &[],
    examples: &[
        example("mcpx servers", "every configured server, and where it is configured"),
        example("mcpx servers add files -- npx -y @modelcontextprotocol/server-filesystem .", "a program"),
        example(
            "mcpx servers add tracker https://tracker.example.com/mcp --header 'Authorization: Bearer ${TOKEN}'",
            "an address; the variable is filled in when it is used",
        ),
        example("mcpx servers adjust tracker --tools 'get_*,list_*'", "offer only what reads"),
        example("mcpx servers disable tracker", "switch it off where it is configured"),
        example("mcpx servers import cursor --dry-run", "what would be taken over, and what would not"),
    ],
    run,
};

const ACTIONS: &[&str] = &["list", "show", "add", "adjust", "remove", "enable", "disable", "import"];

fn run(cx: &mut Cx) -> Result<u8> {
    let words: Vec<String> = cx.inv.words()?.into_iter().map(str::to_owned).collect();
    let (action, rest) = words.split_first().map_or(("list", &[][..]), |(a, r)| (a.as_str(), r));
    if cx.inv.has("project") && cx.inv.has("user") {
        return Err(usage("--project and --user contradict each other"));
    }
    check_flags(cx, action)?;
    match (action, rest) {
        ("list", []) => list::list(cx),
        ("show", [name]) => list::show(cx, name),
        ("add", [name, what @ ..]) if !what.is_empty() => add::add(cx, name, what),
        ("adjust", [name]) => change::adjust(cx, name),
        ("remove", [name]) => change::remove(cx, name),
        ("enable", [name]) => change::switch(cx, name, true),
        ("disable", [name]) => change::switch(cx, name, false),
        ("import", rest) if rest.len() <= 1 => import::run(cx, rest.first().map(String::as_str)),
        (known, _) if ACTIONS.contains(&known) => {
            let what = match known {
                "list" => "takes no further words",
                "add" => "needs a name, and then an address or -- and a program",
                "import" => "takes one host",
                _ => "needs one server's name",
            };
            Err(usage(format!("mcpx servers {known} {what}")).hint("mcpx servers --help shows examples"))
        }
        (odd, _) => {
            let e = usage(format!("mcpx servers cannot \"{odd}\""));
            let near = did_you_mean(odd, ACTIONS.iter().copied());
            Err(e.hint(near.unwrap_or_else(|| format!("it can {}", ACTIONS.join(", ")))))
        }
    }
}

/// A flag that the action has no use for is a mistake, not to be passed over.
fn check_flags(cx: &Cx, action: &str) -> Result<()> {
    let file: &[&str] = &["project", "user"];
    let own: &[&str] = match action {
        "list" | "show" => return only(cx, action, &["reveal"]),
        "add" => &[
            "env",
            "header",
            "cwd",
            "scope",
            "sharing",
            "description",
            "profile",
            "tools",
            "exclude-tools",
            "extra-include-tools",
            "force",
        ],
        "adjust" => &["description", "profile", "tools", "exclude-tools", "extra-include-tools"],
        "import" => &["force", "from", "dry-run"],
        _ => &[],
    };
    only(cx, action, &[own, file].concat())
}

fn only(cx: &Cx, action: &str, allowed: &[&str]) -> Result<()> {
    match cx.inv.flags.iter().find(|(f, _)| !allowed.contains(&f.name)) {
        None => Ok(()),
        Some((odd, _)) => Err(usage(format!("mcpx servers {action} does not take --{}", odd.name))),
    }
}

/// The file that a new server goes to.
pub(super) fn target(cx: &Cx, world: &World) -> Result<PathBuf> {
    let (project, user) = (cx.inv.has("project"), cx.inv.has("user"));
    if let Some(named) = explicit(cx, world) {
        return match project || user {
            false => Ok(named),
            true => Err(usage(
                "--project and --user do not go with --config (or MCPX_CONFIG), which names the file",
            )),
        };
    }
    if user {
        config::user_file(&world.dirs)
    } else {
        Ok(config::project_file(&world.cwd, &cx.env, &world.dirs))
    }
}

/// The one configuration file that is in force, when one was named.
pub(super) fn explicit(cx: &Cx, world: &World) -> Option<PathBuf> {
    cx.env.get("MCPX_CONFIG").filter(|v| !v.is_empty()).map(|path| world.cwd.join(path))
}

/// The configured name that was meant.
fn find(world: &World, typed: &str) -> Result<String> {
    let all: Vec<&str> = world.config.servers.iter().map(|s| s.name.as_str()).collect();
    names::find_server(typed, &all).map(str::to_owned)
}

/// The daemon that is to hear of a change; ask before the change, as it is found by the files as they were.
fn listener(cx: &Cx) -> Option<Client> {
    // A daemon that cannot be reached now will look at the files by itself.
    cx.running().ok().flatten()
}

/// Has the daemon take over a change; whether there was one to do it.
fn announce(client: Option<Client>) -> bool {
    let Some(client) = client else { return false };
    match client.json("POST", "/v1/reload", Some(&json!({}))) {
        Ok(answer) => {
            if let Some(problem) = answer.get("problem") {
                note(&format!("the daemon goes on as before: {}", Error::from_json(problem).message()));
            }
            true
        }
        Err(e) => {
            note(&format!("the daemon could not be told: {}", e.message()));
            false
        }
    }
}

/// The configuration as it is after a change.
fn afterwards(cx: &Cx) -> Result<Config> {
    Ok(cx.look()?.config)
}
