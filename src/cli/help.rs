//! Writes help from the tables of commands and settings. Knows nothing of what
//! commands do.

use super::command::{Command, Flag, GROUPS, Group};
use super::commands::COMMANDS;
use super::table::display_width;
use super::topics::TOPICS;
use crate::settings::{self, Declared};
use serde_json::{Value, json};
use std::fmt::Write;

/// Help is laid out for terminals at least this wide.
const WIDTH: usize = 80;

/// What `mcpx` alone prints.
pub fn overview() -> String {
    overview_with(&[])
}

/// The same with the plugins that were found.
pub fn overview_with(plugins: &[String]) -> String {
    let mut out = String::from(
        "mcpx puts all of your MCP servers behind one command.\n\nusage: mcpx <command> [<flags>] [<arguments>]\n",
    );
    let names = COMMANDS.iter().map(|c| c.name.len()).max().unwrap_or(0);
    for (group, title) in GROUPS {
        let _ = writeln!(out, "\n{title}");
        for c in COMMANDS.iter().filter(|c| c.group == *group) {
            let _ = writeln!(out, "  {:names$}  {}", c.name, c.summary);
        }
    }
    if !plugins.is_empty() {
        let _ = writeln!(out, "\nPlugins\n  {}", wrap(&plugins.join(", "), 2));
    }
    out.push_str("\nTopics, for mcpx help <topic>\n");
    let topics: Vec<&str> = TOPICS.iter().map(|t| t.name).collect();
    let _ = writeln!(out, "  {}", wrap(&topics.join(", "), 2));
    out.push_str(
        "\nFlags of every command\n  --json          answer in JSON\n  --config FILE   read this configuration \
         alone\n  --help          explain the command\n  --version       print the version\n\
         Every setting is a flag too: docs/configuration.md lists them.\n\nTo begin: mcpx init && mcpx ls\n",
    );
    out
}

/// What `mcpx <command> --help` prints.
pub fn command(c: &Command) -> String {
    let mut out = format!("{}.\n\n{}\n", c.summary, wrap(&usage(c), "usage: ".len()));
    for paragraph in c.about.split("\n\n").filter(|p| !p.is_empty()) {
        let _ = writeln!(out, "\n{}", wrap(paragraph, 0));
    }
    let mut rows: Vec<(String, String)> = c.flags.iter().map(|f| (spelled(f), flag_help(f))).collect();
    rows.extend(own_settings(c).map(|d| (setting_spelled(d), setting_help(d))));
    if !rows.is_empty() {
        out.push_str("\nflags:\n");
        let widest = rows.iter().map(|(s, _)| display_width(s)).max().unwrap_or(0);
        for (spelled, text) in rows {
            let pad = widest - display_width(&spelled);
            let _ = writeln!(out, "  {spelled}{:pad$}  {}", "", wrap(&text, widest + 4));
        }
    }
    out.push_str("\nexamples:\n");
    for e in c.examples {
        let _ = writeln!(out, "  {}\n      {}", e.line, e.note);
    }
    out
}

/// What `mcpx` alone is to a program: every command and topic.
pub fn overview_json() -> Value {
    let commands: Vec<Value> =
        COMMANDS.iter().filter(|c| c.group != Group::Hidden).map(|c| command_json(c)).collect();
    let topics: Vec<Value> = TOPICS.iter().map(|t| json!({"name": t.name, "summary": t.summary})).collect();
    json!({"ok": true, "version": env!("CARGO_PKG_VERSION"), "commands": commands, "topics": topics})
}

/// A command as a program reads it.
pub fn command_json(c: &Command) -> Value {
    let flags = c.flags.iter().map(|f| {
        json!({
            "name": format!("--{}", f.name), "short": f.short.map(|s| format!("-{s}")), "value": f.value,
            "setting": f.setting, "help": f.help,
        })
    });
    let settings = own_settings(c).map(
        |d| json!({"key": d.key(), "flags": d.flag_names(), "kind": d.kind().describe(), "help": d.help()}),
    );
    let group = GROUPS.iter().find(|(g, _)| *g == c.group).map(|(_, title)| *title);
    let examples = c.examples.iter().map(|e| json!({"line": e.line, "note": e.note}));
    json!({
        "name": c.name, "group": group, "summary": c.summary, "about": c.about,
        "usage": usage(c).trim_start_matches("usage: "),
        "flags": flags.collect::<Vec<_>>(), "settings": settings.collect::<Vec<_>>(),
        "examples": examples.collect::<Vec<_>>(),
    })
}

/// The usage line.
pub fn usage(c: &Command) -> String {
    let flags = if c.flags.is_empty() { "" } else { " [<flags>]" };
    let blank = if c.words.is_empty() { "" } else { " " };
    format!("usage: mcpx {}{flags}{blank}{}", c.name, c.words)
}

/// A flag as it is typed, with its value's name.
pub fn spelled(f: &Flag) -> String {
    let short = f.short.map_or_else(String::new, |s| format!("-{s}, "));
    match f.value {
        Some(value) => format!("{short}--{} {value}", f.name),
        None => format!("{short}--{}", f.name),
    }
}

/// A flag's help, with the setting that it gives a value to.
pub fn flag_help(f: &Flag) -> String {
    match f.setting {
        Some(key) => format!("{} ({key})", f.help),
        None => f.help.to_owned(),
    }
}

/// The settings that a command's users most often change.
pub fn own_settings(c: &Command) -> impl Iterator<Item = &'static dyn Declared> {
    c.settings.iter().filter_map(|key| settings::declared(key))
}

/// A setting's shortest flag, with its value's name.
pub fn setting_spelled(d: &dyn Declared) -> String {
    let flags = d.flag_names();
    let flag = flags.iter().min_by_key(|f| f.len()).map_or("", String::as_str);
    match d.kind() {
        // The form that changes something.
        settings::Kind::Bool if d.default_text() == "true" => {
            format!("--no-{}", flag.trim_start_matches('-'))
        }
        settings::Kind::Bool => flag.to_owned(),
        settings::Kind::Duration(..) => format!("{flag} DURATION"),
        settings::Kind::Bytes(..) => format!("{flag} SIZE"),
        settings::Kind::Int(..) => format!("{flag} N"),
        settings::Kind::Path => format!("{flag} PATH"),
        settings::Kind::List | settings::Kind::Paths => format!("{flag} LIST"),
        settings::Kind::Json => format!("{flag} JSON"),
        _ => format!("{flag} VALUE"),
    }
}

/// A setting's help, with its key. Beside a flag that begins with `--no-` it says that this is what the flag turns off.
pub fn setting_help(d: &dyn Declared) -> String {
    let turns_off = if setting_spelled(d).starts_with("--no-") { "Turn off: " } else { "" };
    format!("{turns_off}{} ({})", d.help(), d.key())
}

/// Breaks text at blanks; lines after the first are indented.
fn wrap(text: &str, indent: usize) -> String {
    let room = WIDTH.saturating_sub(indent).max(30);
    let (mut out, mut used) = (String::new(), 0);
    for word in text.split_whitespace() {
        let width = display_width(word);
        if used > 0 && used + 1 + width > room {
            let _ = write!(out, "\n{:indent$}", "");
            used = 0;
        }
        if used > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += width;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_overview_names_every_command_that_is_not_hidden() {
        let text = overview();
        for c in COMMANDS {
            let listed = text.contains(&format!("\n  {} ", c.name));
            assert_eq!(listed, c.group != Group::Hidden, "{}", c.name);
        }
        assert!(text.lines().all(|l| display_width(l) <= WIDTH), "{text}");
    }

    #[test]
    fn every_commands_help_has_usage_flags_and_an_example() {
        for c in COMMANDS {
            let text = command(c);
            assert!(text.contains(&format!("usage: mcpx {}", c.name)));
            assert!(text.contains("examples:\n  "), "{}", c.name);
            for f in c.flags {
                assert!(text.contains(&format!("--{}", f.name)), "{} --{}", c.name, f.name);
            }
            assert!(!c.summary.ends_with('.') && c.summary.len() <= 64, "{}: {}", c.name, c.summary);
            for line in text.lines() {
                assert!(line == line.trim_end() && display_width(line) <= 110, "{}: {line:?}", c.name);
            }
        }
    }

    #[test]
    fn a_flag_that_turns_off_says_so() {
        let call = COMMANDS.iter().find(|c| c.name == "call").unwrap();
        let text = command(call);
        let (_, after) = text.split_once("--no-mcp-validate-arguments").unwrap();
        assert!(after.trim_start().starts_with("Turn off: Check"), "{text}");
    }

    #[test]
    fn long_text_is_broken_at_blanks() {
        let text = wrap(&"word ".repeat(40), 20);
        assert!(text.lines().count() > 1);
        assert!(text.lines().skip(1).all(|l| l.starts_with(&" ".repeat(20)) && l.len() <= WIDTH));
    }
}
