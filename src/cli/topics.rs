//! What `mcpx help <topic>` shows: pages and parts of pages that the tables
//! render. Knows nothing of any command but its name.

use super::docs;
use crate::settings::ALL;
use std::fmt::Write;

/// Something that `mcpx help` explains besides the commands.
pub struct Topic {
    /// The word that selects it. It may be a command's too: then both are shown.
    pub name: &'static str,
    /// One line for the overview.
    pub summary: &'static str,
    /// Renders it, in Markdown.
    pub text: fn() -> String,
}

/// Every topic, in the order in which they are listed.
pub static TOPICS: &[Topic] = &[
    topic("configuration", "configuration files: where they are found, and all they may hold", configuration),
    topic("settings", "every setting with its default, variable and flag", settings),
    topic("environment", "the variables that mcpx reads, and those that a script gets", environment),
    topic("exit-codes", "what each exit code and kind of error means", docs::exit_codes),
    topic("filters", "which tools of a server are offered", || part("### Tool filters")),
    topic("aliases", "one server under two names", || part("### Aliases")),
    topic("profiles", "sets of servers to work with", || part("### Profiles")),
    topic("presets", "named lists of flags", || part("### Presets")),
    topic("scripts", "writing a script: the client, its errors, its limits", || SCRIPTS.into()),
    topic("api", "the daemon's interface over HTTP", crate::api::docs::markdown),
];

/// The page is written by hand, and read by people on the web too.
const SCRIPTS: &str = include_str!("../../docs/scripts.md");

const fn topic(name: &'static str, summary: &'static str, text: fn() -> String) -> Topic {
    Topic { name, summary, text }
}

/// The topic of this name.
pub fn find(name: &str) -> Option<&'static Topic> {
    TOPICS.iter().find(|t| t.name == name)
}

fn configuration() -> String {
    crate::config::configuration_md()
}

/// The part of the configuration's page under a heading, up to the next one of its rank or above.
fn part(heading: &str) -> String {
    let page = crate::config::configuration_md();
    let rank = heading.bytes().take_while(|b| *b == b'#').count();
    let Some(start) = page.find(&format!("\n{heading}\n")) else { return String::new() };
    let text = &page[start + 1..];
    let mut out = String::new();
    for (i, line) in text.lines().enumerate() {
        let marks = line.bytes().take_while(|b| *b == b'#').count();
        if i > 0 && (1..=rank).contains(&marks) && line[marks..].starts_with(' ') {
            break;
        }
        let _ = writeln!(out, "{line}");
    }
    out.trim_end().to_owned() + "\n"
}

/// A few lines for each setting.
fn settings() -> String {
    let mut out = String::from(
        "# Settings\n\ndefault < file (the nearest last) < environment < preset < flag < runtime override; \
         mcpx settings shows the values here with their sources\n",
    );
    for setting in ALL {
        let default = match setting.default_text() {
            text if text.is_empty() => "empty".to_owned(),
            text if text.len() > LONG => "see mcpx config --defaults".to_owned(),
            text => text,
        };
        let names = [setting.env_names(), setting.flag_names()].concat().join(", ");
        let _ = write!(
            out,
            "\n{} = {default}\n    {}; {}\n    {names}\n",
            setting.key(),
            setting.help(),
            setting.kind().describe()
        );
    }
    out
}

/// A default that is longer is a table of its own.
const LONG: usize = 80;

fn environment() -> String {
    let mut out = String::from("# Variables that mcpx reads\n\n");
    for setting in ALL {
        let _ = writeln!(out, "- {}: {} ({})", setting.env_names().join(", "), setting.help(), setting.key());
    }
    out.push('\n');
    out.push_str(&crate::script::env::markdown());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_topic_says_something_and_ends_where_it_should() {
        let named = super::super::commands::help::COMMAND.about;
        for t in TOPICS {
            assert!(named.contains(t.name), "the command's help names {}", t.name);
            let text = (t.text)();
            assert!(text.len() > 200 && text.ends_with('\n'), "{}: {text}", t.name);
            assert!(!t.summary.ends_with('.'), "{}", t.name);
        }
        let presets = part("### Presets");
        assert!(presets.contains("--preset ci,debug") && !presets.contains("## All settings"), "{presets}");
        for setting in ALL {
            let all = settings() + &environment();
            assert!(setting.env_names().iter().all(|n| all.contains(n)), "{}", setting.key());
        }
    }
}
