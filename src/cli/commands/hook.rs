//! `mcpx hook`: what a shell evaluates so that its terminal has a session and a daemon.

use super::super::args::usage;
use super::super::command::{Command, Flag, Group, Rest, example};
use super::super::cx::{Cx, own_path, working_directory};
use crate::api;
use crate::error::Result;
use crate::proc;
use crate::util::did_you_mean;
use serde_json::json;
use std::path::{Path, PathBuf};

/// The command.
pub static COMMAND: Command = Command {
    name: "hook",
    group: Group::Setup,
    words: "bash|zsh|fish",
    count: (1, 1),
    rest: Rest::Mixed,
    summary: "Print what gives a terminal a session and a daemon of its own",
    about: "Evaluated in a shell's start-up file it sets MCPX_SESSION_ID, the same in every shell of one terminal, so \
            that session-scoped servers stay the same from one command to the next; and MCPX_DAEMON_ENDPOINT, the daemon \
            of the directory, where one runs. At each prompt the shell itself checks whether the directory changed or \
            the daemon's socket is gone, and only then asks again.\n\n\
            A shell that an editor opened has its session and daemon already: nothing is printed for it but a comment.",
    flags: &[Flag::switch("daemon", "Only the daemon: what the hook itself asks for")],
    settings: &[],
    examples: &[
        example("mcpx hook bash", "for ~/.bashrc, as eval \"$(mcpx hook bash)\"; zsh alike, in ~/.zshrc"),
        example("mcpx hook fish | source", "in ~/.config/fish/config.fish"),
    ],
    run,
};

const SHELLS: &[&str] = &["bash", "zsh", "fish"];
/// How the sessions that this command makes begin.
const MARK: &str = "term-";

fn run(cx: &mut Cx) -> Result<u8> {
    let shell = cx.inv.words()?.first().copied().unwrap_or_default().to_owned();
    if !SHELLS.contains(&shell.as_str()) {
        let error = usage(format!("there is no hook for \"{shell}\""));
        return Err(error.hint(
            did_you_mean(&shell, SHELLS.iter().copied())
                .unwrap_or_else(|| "it may be bash, zsh or fish".into()),
        ));
    }
    let given = cx.env.text("MCPX_SESSION_ID").filter(|id| !id.starts_with(MARK)).map(str::to_owned);
    // A daemon that was named by hand is left alone; our own names are all of one form.
    let named = cx.env.text("MCPX_DAEMON_ENDPOINT").is_some_and(|e| !is_ours(e));
    let socket = if given.is_some() || named { None } else { socket(cx) };
    if cx.json() {
        let session = given.clone().unwrap_or_else(session);
        cx.out.json(&json!({"ok": true, "shell": shell, "session": session, "socket": socket}))?;
        return Ok(0);
    }
    let text = if let Some(given) = given {
        format!("# the session is {} already\n", given.replace(|c: char| c.is_control(), " "))
    } else if cx.inv.has("daemon") {
        if named { String::new() } else { daemon(&shell, socket.as_deref()) }
    } else {
        whole(&shell, &own_path()?)
    };
    cx.out.text(&text)?;
    Ok(0)
}

/// Whether an address is one that a daemon gave itself.
fn is_ours(endpoint: &str) -> bool {
    let name = endpoint.strip_prefix("unix://").and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    name.strip_prefix("daemon-")
        .and_then(|rest| rest.strip_suffix(".sock"))
        .is_some_and(|key| key.len() == 16 && key.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// The socket of the daemon that serves the working directory, where one runs.
fn socket(cx: &Cx) -> Option<PathBuf> {
    // What is wrong with a configuration is for the commands to say that need it.
    let resolved = api::resolve(&working_directory().ok()?, &cx.env, &cx.dirs().ok()?).ok()?;
    resolved.running.then_some(resolved.socket)
}

/// The same for every shell of one terminal: its leader, and when that was started.
fn session() -> String {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let leader = fields.split_whitespace().nth(3).and_then(|f| f.parse().ok()).filter(|pid| *pid > 0);
    let leader = leader.unwrap_or_else(std::os::unix::process::parent_id);
    format!("{MARK}{leader}-{}", proc::start_ticks(leader).unwrap_or_default())
}

/// A word that every shell here reads as it stands.
fn quoted(text: &str, shell: &str) -> String {
    match shell {
        "fish" => format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'")),
        _ => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// What sets the daemon, or unsets it.
fn daemon(shell: &str, socket: Option<&Path>) -> String {
    let path = socket.map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    let (path_word, endpoint) = (quoted(&path, shell), quoted(&format!("unix://{path}"), shell));
    match (shell, path.is_empty()) {
        ("fish", true) => "set -g _mcpx_socket ''\nset -e MCPX_DAEMON_ENDPOINT\n".into(),
        ("fish", false) => {
            format!("set -g _mcpx_socket {path_word}\nset -gx MCPX_DAEMON_ENDPOINT {endpoint}\n")
        }
        (_, true) => "_mcpx_socket=\nunset MCPX_DAEMON_ENDPOINT\n".into(),
        (_, false) => format!("_mcpx_socket={path_word}\nexport MCPX_DAEMON_ENDPOINT={endpoint}\n"),
    }
}

/// The whole hook.
fn whole(shell: &str, exe: &Path) -> String {
    let exe = quoted(&exe.to_string_lossy(), shell);
    let session = session();
    if shell == "fish" {
        return format!(
            "set -gx MCPX_SESSION_ID {session}\n\
             function _mcpx_daemon --on-event fish_prompt\n  \
               if test \"$PWD\" = \"$_mcpx_pwd\"\n    \
                 if test -z \"$_mcpx_socket\"; or test -S \"$_mcpx_socket\"\n      return\n    end\n  \
               end\n  \
               set -g _mcpx_pwd $PWD\n  \
               command {exe} hook fish --daemon | source\n\
             end\n\
             _mcpx_daemon\n"
        );
    }
    let at_prompt = match shell {
        "zsh" => "autoload -Uz add-zsh-hook && add-zsh-hook precmd _mcpx_daemon",
        _ => {
            "case \";${PROMPT_COMMAND:-};\" in\n  *_mcpx_daemon*) ;;\n  \
             *) PROMPT_COMMAND=\"_mcpx_daemon${PROMPT_COMMAND:+;$PROMPT_COMMAND}\" ;;\nesac"
        }
    };
    format!(
        "export MCPX_SESSION_ID={session}\n\
         _mcpx_daemon() {{\n  \
           local code=$?\n  \
           if [ \"$PWD\" != \"${{_mcpx_pwd:-}}\" ] || {{ [ -n \"${{_mcpx_socket:-}}\" ] && [ ! -S \"$_mcpx_socket\" ]; }}; then\n    \
             _mcpx_pwd=$PWD\n    \
             eval \"$(command {exe} hook {shell} --daemon)\"\n  \
           fi\n  \
           return $code\n\
         }}\n\
         {at_prompt}\n\
         _mcpx_daemon\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_daemons_own_address_is_taken_for_ours() {
        assert!(is_ours("unix:///home/u/.local/state/mcpx/daemon-0123456789abcdef.sock"));
        for named in ["unix:///run/mine.sock", "http://127.0.0.1:1", "unix:///x/daemon-1.sock", ""] {
            assert!(!is_ours(named), "{named}");
        }
    }

    #[test]
    fn a_path_with_a_quote_stays_one_word() {
        assert_eq!(quoted("a'b", "bash"), "'a'\\''b'");
        assert_eq!(quoted("a'b\\c", "fish"), "'a\\'b\\\\c'");
    }
}
