//! Renders the manual page from the tables of commands, settings and exit
//! codes, in the man macros that groff and mandoc know. Knows nothing of pagers.

use super::command::{Command, GROUPS, Group};
use super::commands::COMMANDS;
use super::help;
use crate::config;
use crate::error::KINDS;
use crate::settings::ALL;
use std::fmt::Write;

/// The page, in roff.
pub fn page() -> String {
    let mut out = String::new();
    let version = env!("CARGO_PKG_VERSION");
    let _ = writeln!(out, ".\\\" Made by mcpx man from the tables of mcpx {version}.");
    let _ = writeln!(out, ".TH MCPX 1 \"\" \"mcpx {version}\" \"User Commands\"");
    out.push_str(".SH NAME\nmcpx \\- every MCP server behind one command\n.SH SYNOPSIS\n");
    out.push_str(".B mcpx\n.I command\n.RI [ flags ]\n.RI [ arguments ]\n.SH DESCRIPTION\n");
    para(
        &mut out,
        "mcpx puts all of a machine's MCP servers behind a command and a daemon, which it starts when it is needed. \
         mcpx ls, search and types show what there is without loading it into a model's context; mcpx call runs one \
         tool; mcpx exec and mcpx run run a program against a typed client.",
    );
    para(
        &mut out,
        "Every command takes --json, --config FILE and --help, and every setting as a flag. Standard output is the \
         result; standard error is for people.",
    );
    for (group, title) in GROUPS {
        let _ = writeln!(out, ".SH {}", escaped(&title.to_uppercase()));
        COMMANDS.iter().filter(|c| c.group == *group).for_each(|c| command(&mut out, c));
    }
    settings(&mut out);
    files(&mut out);
    exit_status(&mut out);
    out
}

fn command(out: &mut String, c: &Command) {
    debug_assert!(c.group != Group::Hidden);
    let _ = writeln!(out, ".SS mcpx {}", escaped(c.name));
    para(out, &format!("{}.", c.summary));
    para(out, help::usage(c).trim_start_matches("usage: "));
    c.about.split("\n\n").filter(|p| !p.is_empty()).for_each(|p| para(out, p));
    let own = c.flags.iter().map(|f| (help::spelled(f), help::flag_help(f)));
    let settings = help::own_settings(c).map(|d| (help::setting_spelled(d), help::setting_help(d)));
    for (spelled, text) in own.chain(settings) {
        tagged(out, &spelled, &text);
    }
    for e in c.examples {
        let _ = writeln!(out, ".PP\n{}:\n.PP\n.RS 4\n.EX\n{}\n.EE\n.RE", line(e.note), line(e.line));
    }
}

fn settings(out: &mut String) {
    out.push_str(".SH SETTINGS\n");
    para(
        out,
        "default < file (the nearest last) < environment < preset < flag < runtime override. mcpx settings shows each \
         with its source.",
    );
    for d in ALL {
        let default = match d.default_text() {
            text if text.is_empty() => "empty".to_owned(),
            text if text.len() > 80 => "see mcpx config --defaults".to_owned(),
            text => text,
        };
        let names = [d.flag_names(), d.env_names()].concat().join(", ");
        let doc = if d.doc().is_empty() { String::new() } else { format!(" {}", plain(d.doc())) };
        let text =
            format!("{}.{doc} {}; default: {default}. {names}", plain(d.help()), plain(&d.kind().describe()));
        tagged(out, d.key(), &text);
    }
}

fn files(out: &mut String) {
    out.push_str(".SH FILES\n");
    for (name, what) in config::PLACES {
        tagged(out, name, what);
    }
}

fn exit_status(out: &mut String) {
    out.push_str(".SH EXIT STATUS\n");
    tagged(out, "0", "done");
    let mut rows: Vec<_> = KINDS.iter().collect();
    rows.sort_by_key(|r| (r.exit, r.word));
    for row in rows {
        tagged(out, &row.exit.to_string(), &format!("{}: {}", row.word, row.meaning));
    }
    tagged(out, "128+n", "ended by signal n");
}

/// A paragraph.
fn para(out: &mut String, text: &str) {
    let _ = writeln!(out, ".PP\n{}", line(&text.split_whitespace().collect::<Vec<_>>().join(" ")));
}

/// A word and what it means.
fn tagged(out: &mut String, tag: &str, text: &str) {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let _ = writeln!(out, ".TP\n\\fB{}\\fR\n{}", escaped(tag), line(&text));
}

/// Text without the marks of Markdown.
fn plain(text: &str) -> String {
    text.replace('`', "")
}

/// Text that may begin a line: a dot or a quote there would be a request to roff.
fn line(text: &str) -> String {
    let text = escaped(text);
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\e"),
            '-' => out.push_str("\\-"),
            '\'' => out.push_str("\\(aq"),
            '`' => out.push_str("\\(ga"),
            '^' => out.push_str("\\(ha"),
            '~' => out.push_str("\\(ti"),
            '…' => out.push_str("..."),
            // Input is taken to be ASCII; these forms stand for any character.
            c if !c.is_ascii() => {
                let _ = write!(out, "\\[u{:04X}]", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_every_command_setting_and_code_and_is_ascii() {
        let page = page();
        for c in COMMANDS.iter().filter(|c| c.group != Group::Hidden) {
            assert!(page.contains(&format!(".SS mcpx {}\n", escaped(c.name))), "{}", c.name);
            for f in c.flags {
                assert!(page.contains(&escaped(&format!("--{}", f.name))), "{} --{}", c.name, f.name);
            }
        }
        for d in ALL {
            assert!(page.contains(&format!("\\fB{}\\fR", d.key())), "{}", d.key());
            for name in d.env_names() {
                assert!(page.contains(&name), "{name}");
            }
        }
        assert!(KINDS.iter().all(|row| page.contains(&escaped(row.word))));
        assert!(page.is_ascii());
    }

    #[test]
    fn text_cannot_be_taken_for_a_request() {
        assert_eq!(line(".mcpx.json"), "\\&.mcpx.json");
        assert_eq!(line("it's a-b\\c"), "it\\(aqs a\\-b\\ec");
        assert_eq!(line("'x"), "\\(aqx");
    }
}
