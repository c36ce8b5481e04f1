//! Makes the reference pages from the tables, writes them, and tells which of
//! those on disk are out of date.

use super::command::{Command, GROUPS, Group};
use super::commands::COMMANDS;
use super::help;
use crate::error::{Error, KINDS, Kind, Result};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// How the pages are rewritten.
const REMEDY: &str = "make docs rewrites it (mcpx docs --write)";

/// A generated page.
pub struct Page {
    /// Its path, from `docs/`; a source file that a table renders begins with `../src/`.
    pub name: &'static str,
    /// Its text.
    pub text: String,
}

/// Every generated page.
pub fn pages() -> Vec<Page> {
    vec![
        Page { name: "api.md", text: crate::api::docs::markdown() },
        Page { name: "cli.md", text: cli() },
        Page { name: "configuration.md", text: crate::config::configuration_md() },
        Page { name: "exit-codes.md", text: exit_codes() },
        Page { name: "script-environment.md", text: crate::script::env::markdown() },
        Page { name: "../src/plugin/opencode/mcpx/v1.ts", text: crate::api::typescript::module() },
    ]
}

/// Writes the pages that differ; returns their paths.
pub fn write(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut written = Vec::new();
    for page in pages() {
        let path = dir.join(page.name);
        if std::fs::read(&path).is_ok_and(|now| now == page.text.as_bytes()) {
            continue;
        }
        crate::util::write_atomic(&path, page.text.as_bytes(), 0o644, false)
            .map_err(|e| Error::unwritable(path.display(), &e))?;
        written.push(path);
    }
    Ok(written)
}

/// Compares the pages on disk with what the tables say; the error names the first line that differs.
pub fn check(dir: &Path) -> Result<()> {
    for page in pages() {
        let path = dir.join(page.name);
        let now = std::fs::read_to_string(&path).map_err(|e| {
            Error::new(Kind::NotFound, format!("reading {}: {e}", path.display())).hint(REMEDY)
        })?;
        if now != page.text {
            let line = 1 + now.lines().zip(page.text.lines()).take_while(|(a, b)| a == b).count();
            let message = format!("{} is out of date from line {line}", path.display());
            return Err(Error::new(Kind::Usage, message).hint(REMEDY));
        }
    }
    Ok(())
}

/// `docs/cli.md`.
pub fn cli() -> String {
    let mut out = String::from(
        "# The command line\n\nMade from the tables in `src/cli/commands/` by `make docs`; edit those, not this \
         page.\n\nEvery command takes `--json`, `--config FILE` and `--help`, and every setting as a flag (see \
         [configuration.md](configuration.md)). The exit codes are in [exit-codes.md](exit-codes.md).\n",
    );
    for (group, title) in GROUPS {
        let _ = write!(out, "\n## {title}\n\n| command | what for |\n| --- | --- |\n");
        for c in COMMANDS.iter().filter(|c| c.group == *group) {
            let _ = writeln!(out, "| [`mcpx {0}`](#mcpx-{0}) | {1} |", c.name, c.summary);
        }
    }
    for c in COMMANDS.iter().filter(|c| c.group != Group::Hidden) {
        section(&mut out, c);
    }
    out
}

fn section(out: &mut String, c: &Command) {
    let usage = help::usage(c);
    let usage = usage.trim_start_matches("usage: ");
    let _ = write!(out, "\n## mcpx {}\n\n{}.\n\n    {usage}\n", c.name, c.summary);
    for paragraph in c.about.split("\n\n").filter(|p| !p.is_empty()) {
        let _ = write!(out, "\n{paragraph}\n");
    }
    let own = c.flags.iter().map(|f| (help::spelled(f), help::flag_help(f)));
    let settings = help::own_settings(c).map(|d| (help::setting_spelled(d), help::setting_help(d)));
    let rows: Vec<(String, String)> = own.chain(settings).collect();
    if !rows.is_empty() {
        out.push_str("\n| flag | what for |\n| --- | --- |\n");
        for (spelled, text) in rows {
            let _ = writeln!(out, "| `{}` | {} |", cell(&spelled), cell(&text));
        }
    }
    out.push_str("\n```sh\n");
    for e in c.examples {
        let _ = writeln!(out, "# {}\n{}", e.note, e.line);
    }
    out.push_str("```\n");
}

/// `docs/exit-codes.md`.
pub fn exit_codes() -> String {
    let mut out = String::from(
        "# Exit codes\n\nMade from the table in `src/error.rs` by `make docs`; edit that, not this page.\n\nWith \
         `--json` an error is `{\"ok\":false,\"error\":{\"kind\",\"message\",\"hint\"?,…}}` on standard output; its \
         `kind` is one of these words, as it is over HTTP and in a script's `ToolError.kind`.\n\n\
         | exit code | kind | meaning |\n| --- | --- | --- |\n| 0 | | done |\n",
    );
    let mut rows: Vec<_> = KINDS.iter().collect();
    rows.sort_by_key(|r| (r.exit, r.word));
    for row in rows {
        let _ = writeln!(out, "| {} | `{}` | {} |", row.exit, row.word, cell(row.meaning));
    }
    out.push_str(
        "| 128+n | | ended by signal n: 129 for SIGHUP, 130 for SIGINT (Ctrl-C), 143 for SIGTERM |\n\n\
         `mcpx exec` and `mcpx run` pass a script's own exit code through.\n",
    );
    out
}

/// Text for a cell of a Markdown table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_in_the_repository_are_current() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
        if let Err(e) = check(&dir) {
            panic!("{e}");
        }
    }

    #[test]
    fn pages_are_written_once_and_then_found_current() {
        let root = std::env::temp_dir().join(format!("mcpx-docs-{}", std::process::id()));
        let dir = root.join("docs");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::create_dir_all(root.join("src/plugin/opencode/mcpx")).unwrap();
        assert_eq!(write(&dir).unwrap().len(), pages().len());
        assert!(write(&dir).unwrap().is_empty());
        check(&dir).unwrap();
        std::fs::write(dir.join("cli.md"), cli().replacen("command", "comand", 1)).unwrap();
        let e = check(&dir).unwrap_err();
        assert!(e.message().contains("cli.md is out of date from line"), "{e}");
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn every_kind_and_every_command_is_documented() {
        let codes = exit_codes();
        for row in KINDS {
            assert!(codes.contains(&format!("| {} | `{}` |", row.exit, row.word)));
        }
        let text = cli();
        for c in COMMANDS.iter().filter(|c| c.group != Group::Hidden) {
            assert!(text.contains(&format!("\n## mcpx {}\n", c.name)));
        }
    }
}
