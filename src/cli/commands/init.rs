//! `mcpx init`: writes a configuration to start from.

use super::super::command::{Command, Flag, Group, Rest, example};
use super::super::cx::{Cx, own_path};
use super::servers;
use crate::config::{self, LoadOptions};
use crate::error::{Error, Kind, Result};
use crate::proc::find_program;
use crate::util::Env;
use serde_json::json;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The command.
pub static COMMAND: Command = Command {
    name: "init",
    group: Group::Setup,
    words: "[<directory>]",
    count: (0, 1),
    rest: Rest::Mixed,
    summary: "Write a .mcpx.json to start from",
    about: "Writes .mcpx.json into the working directory, or into the directory given. A file that is there already \
            is left alone. The starter offers the demonstration server, shows in comments how others are written, and \
            may be checked in; --demo writes nothing but the demonstration server, with this binary's own path; --import \
            writes what other hosts (Claude Code, Cursor, VS Code and so on) have configured for the user and here.",
    flags: &[
        Flag::switch("demo", "Configure the demonstration server alone, by this binary's own path"),
        Flag::switch("import", "Take over the servers that other hosts have"),
        Flag::switch("force", "Overwrite a file that is there already"),
    ],
    settings: &[],
    examples: &[
        example("mcpx init", "a commented starter that works at once"),
        example("mcpx init --demo", "the demonstration server alone"),
        example("mcpx init --import", "what other hosts have; mcpx servers import does more"),
    ],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    let dir = cx.inv.words.first().map_or(Path::new("."), Path::new);
    let path = std::path::absolute(dir)
        .map_err(|e| Error::new(Kind::Unavailable, format!("finding {}: {e}", dir.display())))?
        .join(".mcpx.json");
    if cx.inv.has("import") {
        return import(cx, &path);
    }
    let text = if cx.inv.has("demo") { demo()? } else { starter(&cx.env)? };
    write(&path, &text, cx.inv.has("force"))?;
    if cx.json() {
        cx.out.json(&json!({"ok": true, "path": path}))?;
        return Ok(0);
    }
    let next = "next: mcpx ls, then mcpx call demo.echo text=hi";
    cx.out.line(&format!("wrote {}\n{next}", path.display()))?;
    Ok(0)
}

/// Writes what other hosts have.
fn import(cx: &mut Cx, path: &Path) -> Result<u8> {
    if cx.inv.has("demo") {
        return Err(super::super::args::usage("--demo and --import contradict each other"));
    }
    let dir = path.parent().unwrap_or(Path::new("/"));
    write(path, IMPORTED, cx.inv.has("force"))?;
    let (dirs, uid) = (cx.dirs()?, crate::proc::uid());
    // With the new file in it, which hides nothing yet.
    let config = config::load(&LoadOptions { explicit: None, dir, env: &cx.env, dirs: &dirs, uid })?;
    let what = servers::Import { dir, config: &config, force: false, dry: false };
    let sources = servers::Source::all(cx, dir)?;
    let rows = servers::import(&what, &sources, &|_| Ok(path.to_owned()), false)?;
    if cx.json() {
        let rows: Vec<_> = rows.iter().map(|row| row.to_json()).collect();
        cx.out.json(&json!({"ok": true, "path": path, "servers": rows}))?;
    } else {
        let text = servers::import_text(&rows, false);
        cx.out.text(&format!("wrote {}\n{text}", path.display()))?;
    }
    Ok(0)
}

/// What a file is before servers are imported into it.
const IMPORTED: &str = "// The MCP servers that mcpx offers here, taken over from other hosts.\n{\n  \"mcpServers\": {\n  },\n}\n";

fn write(path: &Path, text: &str, force: bool) -> Result<()> {
    let shown = path.display();
    let fail = |e: std::io::Error| match e.kind() {
        ErrorKind::AlreadyExists => {
            Error::new(Kind::Usage, format!("{shown} exists already")).hint("--force overwrites it")
        }
        _ => Error::unwritable(path.display(), &e),
    };
    if force {
        return crate::util::write_atomic(path, text.as_bytes(), 0o644, true).map_err(fail);
    }
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o644).open(path).map_err(fail)?;
    file.write_all(text.as_bytes()).map_err(fail)
}

/// The starter. Where this binary is not on PATH it is named by its path, so that the starter works here.
fn starter(env: &Env) -> Result<String> {
    let text = crate::config::starter();
    if find_program("mcpx".as_ref(), env, Path::new("/")).is_ok() {
        return Ok(text.to_owned());
    }
    let path = serde_json::Value::from(own_path_text()?).to_string();
    Ok(text.replacen("\"command\": \"mcpx\"", &format!("\"command\": {path}"), 1))
}

/// This binary's own path, for a configuration.
fn own_path_text() -> Result<String> {
    let exe = own_path()?;
    exe.to_str().map(str::to_owned).ok_or_else(|| {
        Error::new(Kind::Unavailable, format!("the path of this binary is not UTF-8: {}", exe.display()))
            .hint("install mcpx under a path that is")
    })
}

/// A configuration of the demonstration server alone.
fn demo() -> Result<String> {
    let exe = own_path_text()?;
    let body = json!({
        "mcpServers": {
            "demo": {
                "command": exe,
                "args": ["demo-server"],
                "mcpx": {"description": "a demonstration server, built into mcpx"}
            }
        }
    });
    serde_json::to_string_pretty(&body)
        .map(|t| t + "\n")
        .map_err(|e| super::super::internal(format!("writing JSON: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_never_overwritten_unless_told() {
        let dir = std::env::temp_dir().join(format!("mcpx-init-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let file = dir.join(".mcpx.json");
        write(&file, "one", false).unwrap();
        let e = write(&file, "two", false).unwrap_err();
        assert_eq!(e.exit_code(), 2);
        assert!(e.to_string().contains("--force"));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "one");
        write(&file, "two", true).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "two");
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn what_is_written_is_a_configuration() {
        // No mcpx is on this PATH, so the starter names the binary itself.
        let env = Env::from_pairs([("PATH", "/nonexistent")]);
        let starter = crate::config::parse(&starter(&env).unwrap(), Path::new("x")).unwrap();
        let command = starter.value["mcpServers"]["demo"]["command"].as_str().unwrap();
        assert!(Path::new(command).is_absolute(), "{command}");
        let demo = crate::config::parse(&demo().unwrap(), Path::new("x")).unwrap();
        assert_eq!(demo.value["mcpServers"]["demo"]["args"][0], "demo-server");
    }
}
