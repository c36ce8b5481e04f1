//! `mcpx init`: writes a configuration to start from.

use super::super::command::{Command, Flag, Group, Rest, example};
use super::super::cx::{Cx, own_path};
use crate::error::{Error, Kind, Result};
use serde_json::json;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// What a configuration looks like, all of it commented out.
const STARTER: &str = include_str!("../starter.json");

/// The command.
pub static COMMAND: Command = Command {
    name: "init",
    group: Group::Setup,
    words: "[<directory>]",
    count: (0, 1),
    rest: Rest::Mixed,
    summary: "Write a .mcpx.json to start from",
    about: "Writes .mcpx.json into the working directory, or into the directory given. A file that is there already \
            is left alone.",
    flags: &[
        Flag::switch("demo", "Configure the demonstration server that is built into this binary"),
        Flag::switch("force", "Overwrite a file that is there already"),
    ],
    settings: &[],
    examples: &[
        example("mcpx init", "a commented starter to fill in"),
        example("mcpx init --demo", "one that works at once"),
    ],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    let dir = cx.inv.words.first().map_or(Path::new("."), Path::new);
    let path = std::path::absolute(dir)
        .map_err(|e| Error::new(Kind::Unavailable, format!("finding {}: {e}", dir.display())))?
        .join(".mcpx.json");
    let text = if cx.inv.has("demo") { demo()? } else { STARTER.to_owned() };
    write(&path, &text, cx.inv.has("force"))?;
    if cx.json() {
        cx.out.json(&json!({"ok": true, "path": path}))?;
        return Ok(0);
    }
    let next = if cx.inv.has("demo") {
        "next: mcpx ls, then mcpx call demo.echo text=hi"
    } else {
        "next: name your servers in it, then mcpx ls"
    };
    cx.out.line(&format!("wrote {}\n{next}", path.display()))?;
    Ok(0)
}

fn write(path: &Path, text: &str, force: bool) -> Result<()> {
    let shown = path.display();
    let fail = |e: std::io::Error| match e.kind() {
        ErrorKind::AlreadyExists => {
            Error::new(Kind::Usage, format!("{shown} exists already")).hint("--force overwrites it")
        }
        _ => Error::new(Kind::Unavailable, format!("writing {shown}: {e}")),
    };
    if force {
        return crate::util::write_atomic(path, text.as_bytes(), 0o644, true).map_err(fail);
    }
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o644).open(path).map_err(fail)?;
    file.write_all(text.as_bytes()).map_err(fail)
}

/// A configuration of the demonstration server alone.
fn demo() -> Result<String> {
    let exe = own_path()?;
    let exe = exe.to_str().ok_or_else(|| {
        Error::new(Kind::Unavailable, format!("the path of this binary is not UTF-8: {}", exe.display()))
            .hint("install mcpx under a path that is")
    })?;
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
        let empty = crate::config::parse(STARTER, Path::new("x")).unwrap();
        assert!(empty.value["mcpServers"].as_object().unwrap().is_empty());
        // The examples in it are complete too.
        let uncommented: Vec<&str> = STARTER
            .lines()
            .map(|line| match line.trim_start().strip_prefix("// ") {
                Some(code) if !code.starts_with(|c: char| c.is_alphabetic() || c == '$') => code,
                _ => line,
            })
            .collect();
        let full = crate::config::parse(&uncommented.join("\n"), Path::new("x")).unwrap();
        assert_eq!(full.value["mcpServers"].as_object().unwrap().len(), 2);
        let demo = crate::config::parse(&demo().unwrap(), Path::new("x")).unwrap();
        assert_eq!(demo.value["mcpServers"]["demo"]["args"][0], "demo-server");
    }
}
