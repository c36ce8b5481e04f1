//! `mcpx completions`: the script that teaches a shell to complete mcpx.

use super::super::args::usage;
use super::super::command::{Command, Group, Rest, example};
use super::super::cx::Cx;
use crate::error::Result;
use crate::util::did_you_mean;
use serde_json::json;

/// The shells, and the script for each.
pub const SHELLS: &[(&str, &str)] = &[
    ("bash", include_str!("../complete/scripts/mcpx.bash")),
    ("zsh", include_str!("../complete/scripts/mcpx.zsh")),
    ("fish", include_str!("../complete/scripts/mcpx.fish")),
    ("powershell", include_str!("../complete/scripts/mcpx.ps1")),
];

/// The command.
pub static COMMAND: Command = Command {
    name: "completions",
    group: Group::Setup,
    words: "bash|zsh|fish|powershell",
    count: (1, 1),
    rest: Rest::Mixed,
    summary: "Print the completion script for a shell",
    about: "The script asks mcpx itself what may come next: commands, flags and their values, settings, namespaces, \
            tools and their arguments. Names of tools come from the schema cache; completing starts neither a daemon \
            nor a server. The script's first lines say where it goes.",
    flags: &[],
    settings: &[],
    examples: &[
        example("mcpx completions bash > ~/.local/share/bash-completion/completions/mcpx", "for bash"),
        example("mcpx completions fish > ~/.config/fish/completions/mcpx.fish", "for fish"),
    ],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    let wanted = cx.inv.words()?[0].to_owned();
    let names = || SHELLS.iter().map(|(name, _)| *name);
    let Some((shell, script)) = SHELLS.iter().find(|(name, _)| *name == wanted) else {
        let e = usage(format!("there is no completion for \"{wanted}\""));
        let all = names().collect::<Vec<_>>().join(", ");
        return Err(e.hint(did_you_mean(&wanted, names()).unwrap_or_else(|| format!("there is for {all}"))));
    };
    if cx.json() {
        cx.out.json(&json!({"ok": true, "shell": shell, "script": script}))?;
    } else {
        cx.out.text(script)?;
    }
    Ok(0)
}
