//! `mcpx plugin`: the editor's plugin that this binary carries, into an editor's
//! directory and out of it again.

use super::super::args::usage;
use super::super::command::{Command, Flag, Group, Rest, example};
use super::super::cx::{Cx, working_directory};
use super::super::plugins;
use super::super::table::{Cell, Table, Tone};
use crate::error::{Error, Kind, Result};
use crate::plugin::{self, OPENCODE, State, Step};
use crate::util::did_you_mean;
use serde_json::{Value, json};
use std::path::PathBuf;

/// The command.
pub static COMMAND: Command = Command {
    name: "plugin",
    group: Group::Setup,
    words: "[list | status | install opencode | print opencode [<file>] | uninstall opencode]",
    count: (0, 3),
    rest: Rest::Mixed,
    summary: "Put the opencode plugin into place, or take it out",
    about: "The plugin tells every shell of opencode which session it belongs to, so that session-scoped servers give \
            each agent its own, and finds the daemon without this binary. Its files and four skills are part of this \
            binary: nothing is downloaded.\n\n\
            --project (unless --user is said) is .opencode in the working directory; --user is opencode's own \
            configuration directory. A file that somebody changed is neither overwritten nor removed without --force. \
            docs/opencode-plugin.md says what the plugin does and what can be set.",
    flags: &[
        Flag::switch("project", "For the project in the working directory"),
        Flag::switch("user", "For every project of yours"),
        Flag::switch("force", "Overwrite or remove what somebody changed as well"),
    ],
    settings: &[],
    examples: &[
        example("mcpx plugin install opencode", "for this project"),
        example("mcpx plugin install opencode --user", "for every project of yours"),
        example("mcpx plugin status", "what is installed where, and whether it is current"),
        example("mcpx plugin print opencode plugins/mcpx-session.ts", "what would be written"),
        example("mcpx plugin uninstall opencode", "take it out again"),
    ],
    run,
};

const VERBS: &[&str] = &["list", "status", "install", "print", "uninstall"];
const EDITORS: &[&str] = &["opencode"];

fn run(cx: &mut Cx) -> Result<u8> {
    let words: Vec<String> = cx.inv.words()?.into_iter().map(str::to_owned).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (verb, rest) = words.split_first().map_or(("list", [].as_slice()), |(verb, rest)| (*verb, rest));
    if !VERBS.contains(&verb) {
        return Err(mistaken("mcpx plugin does not know", verb, VERBS));
    }
    match rest.first() {
        Some(editor) if !EDITORS.contains(editor) => {
            return Err(mistaken("there is no plugin for", editor, EDITORS));
        }
        None if matches!(verb, "install" | "print" | "uninstall") => {
            return Err(usage(format!("mcpx plugin {verb} needs an editor"))
                .hint(format!("mcpx plugin {verb} opencode")));
        }
        _ => {}
    }
    match (verb, rest) {
        ("list", [] | [_]) => list(cx),
        ("status", [] | [_]) => status(cx),
        ("install", [_]) => install(cx),
        ("uninstall", [_]) => uninstall(cx),
        ("print", [_, files @ ..]) if files.len() < 2 => print(cx, files.first().copied()),
        _ => {
            Err(usage(format!("mcpx plugin {verb} takes fewer words"))
                .hint(super::super::help::usage(&COMMAND)))
        }
    }
}

fn mistaken(what: &str, word: &str, known: &[&str]) -> Error {
    let error = usage(format!("{what} \"{word}\""));
    let near = did_you_mean(word, known.iter().copied());
    error.hint(near.unwrap_or_else(|| format!("it may be {}", known.join(", "))))
}

/// The editor's directories: the project's, and the user's.
fn places(cx: &Cx) -> Result<[(&'static str, PathBuf); 2]> {
    let of = |name: &str| cx.env.get(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let user = of("OPENCODE_CONFIG_DIR")
        .or_else(|| of("XDG_CONFIG_HOME").map(|p| p.join("opencode")))
        .or_else(|| of("HOME").map(|p| p.join(".config/opencode")));
    let user = user.ok_or_else(|| {
        Error::new(Kind::Unavailable, "finding opencode's directory: HOME is not set").hint("set HOME")
    })?;
    Ok([("project", working_directory()?.join(".opencode")), ("user", user)])
}

/// The directory that the flags choose.
fn place(cx: &Cx) -> Result<PathBuf> {
    if cx.inv.has("project") && cx.inv.has("user") {
        return Err(usage("--project and --user are two different places; say one of them"));
    }
    let [(_, project), (_, user)] = places(cx)?;
    Ok(if cx.inv.has("user") { user } else { project })
}

/// How the plugin is as a whole: as its worst file.
fn overall(states: &[(PathBuf, State)]) -> &'static str {
    let any = |wanted| states.iter().any(|(_, state)| *state == wanted);
    match () {
        () if states.iter().all(|(_, state)| *state == State::Missing) => "not installed",
        () if any(State::Changed) => "changed",
        () if any(State::Missing) => "incomplete",
        () if any(State::Outdated) => "outdated",
        () => "current",
    }
}

fn list(cx: &mut Cx) -> Result<u8> {
    let mut installed = Vec::new();
    for (place, root) in places(cx)? {
        let state = overall(&plugin::status(&root, OPENCODE)?);
        if state != "not installed" {
            installed.push(json!({"place": place, "path": root, "state": state}));
        }
    }
    let found = plugins::all(&cx.env, Some(&cx.dirs()?), &working_directory()?);
    if cx.json() {
        let mut rows = vec![json!({"name": "opencode", "kind": "editor", "installed": installed})];
        rows.extend(found.iter().map(|(name, path)| json!({"name": name, "kind": "command", "path": path})));
        cx.out.json(&json!({"ok": true, "plugins": rows}))?;
        return Ok(0);
    }
    let places: Vec<&str> = installed.iter().filter_map(|i| i["place"].as_str()).collect();
    let mut table = Table::new(&["PLUGIN", "KIND", "WHERE"]);
    let places = if places.is_empty() { "-".to_owned() } else { places.join(", ") };
    table.row(vec![Cell::new("opencode").tone(Tone::Strong), Cell::new("editor"), Cell::new(places)]);
    for (name, path) in &found {
        let path = Cell::new(path.display().to_string());
        table.row(vec![Cell::new(name).tone(Tone::Strong), Cell::new("command"), path]);
    }
    let text = table.render(cx.width(), cx.color());
    cx.out.text(&text)?;
    Ok(0)
}

fn status(cx: &mut Cx) -> Result<u8> {
    let mut rows = Vec::new();
    for (place, root) in places(cx)? {
        let chosen = ["project", "user"].iter().all(|flag| !cx.inv.has(flag)) || cx.inv.has(place);
        if chosen {
            let states = plugin::status(&root, OPENCODE)?;
            rows.push((place, root, states));
        }
    }
    if cx.json() {
        let rows: Vec<Value> = rows
            .iter()
            .map(|(place, root, states)| {
                let file = |(path, state): &(PathBuf, State)| json!({"path": path, "state": state.word()});
                let files: Vec<Value> = states.iter().map(file).collect();
                json!({"place": place, "path": root, "state": overall(states), "files": files})
            })
            .collect();
        cx.out.json(&json!({"ok": true, "editor": "opencode", "places": rows}))?;
        return Ok(0);
    }
    for (place, root, states) in &rows {
        cx.out.line(&format!("{place}: {} in {}", overall(states), root.display()))?;
        for (path, state) in
            states.iter().filter(|(_, s)| overall(states) != "not installed" && *s != State::Current)
        {
            cx.out.line(&format!("  {:<9} {}", state.word(), path.display()))?;
        }
    }
    Ok(0)
}

fn install(cx: &mut Cx) -> Result<u8> {
    let root = place(cx)?;
    let steps = plugin::install(&root, OPENCODE, cx.inv.has("force"))?;
    report(cx, &root, &steps)?;
    if !cx.json() {
        cx.out.line("opencode takes it up when it starts next")?;
    }
    Ok(0)
}

fn uninstall(cx: &mut Cx) -> Result<u8> {
    let root = place(cx)?;
    let steps = plugin::uninstall(&root, OPENCODE, cx.inv.has("force"))?;
    report(cx, &root, &steps)?;
    if steps.is_empty() && !cx.json() {
        cx.out.line(&format!("nothing of it is in {}", root.display()))?;
    }
    Ok(0)
}

fn report(cx: &mut Cx, root: &std::path::Path, steps: &[Step]) -> Result<()> {
    if cx.json() {
        let files: Vec<Value> =
            steps.iter().map(|(path, change)| json!({"path": path, "change": change.word()})).collect();
        return cx.out.json(&json!({"ok": true, "path": root, "files": files}));
    }
    for (path, change) in steps {
        cx.out.line(&format!("{:<9} {}", change.word(), path.display()))?;
    }
    Ok(())
}

fn print(cx: &mut Cx, wanted: Option<&str>) -> Result<u8> {
    let files: Vec<&plugin::File> = OPENCODE.iter().filter(|f| wanted.is_none_or(|w| w == f.path)).collect();
    if let (Some(wanted), []) = (wanted, files.as_slice()) {
        let known: Vec<&str> = OPENCODE.iter().map(|f| f.path).collect();
        return Err(mistaken("the plugin has no file", wanted, &known));
    }
    if cx.json() {
        let files: Vec<Value> = files.iter().map(|f| json!({"path": f.path, "text": f.text})).collect();
        cx.out.json(&json!({"ok": true, "files": files}))?;
        return Ok(0);
    }
    for file in &files {
        if wanted.is_none() {
            cx.out.line(&format!("==> {} <==", file.path))?;
        }
        cx.out.text(file.text)?;
    }
    Ok(0)
}
