//! Says what may come next on a command line, from the tables of commands and
//! settings, the configuration and the schema cache. Starts nothing and asks
//! nobody: it runs with every press of a key.

mod grammar;
pub mod line;
mod values;

use super::command::{Command, Flag, Group};
use super::commands::COMMANDS;
use super::cx::Cx;
use super::help;
use crate::settings::{self, Declared, Kind};
use grammar::Choice;
use values::{Values, of_kind};

/// One thing that may come next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The whole word.
    pub word: String,
    /// What it is; may be empty.
    pub about: String,
    /// More of the same word is to follow, so that no blank goes behind it.
    pub open: bool,
}

/// What may come next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The words, each of which begins with what was typed.
    pub candidates: Vec<Candidate>,
    /// The names of files may stand here too; where it says so, of directories only.
    pub files: Option<Files>,
}

/// Which names of files may stand at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Files {
    /// Of any file.
    Any,
    /// Of directories.
    Directories,
}

impl Answer {
    fn add(&mut self, word: impl Into<String>, about: impl Into<String>) {
        self.push(word.into(), about.into(), false);
    }
    fn open(&mut self, word: impl Into<String>, about: impl Into<String>) {
        self.push(word.into(), about.into(), true);
    }
    fn push(&mut self, word: String, about: String, open: bool) {
        // Control characters would end a line of the answer, or steer the terminal.
        if !word.chars().any(char::is_control) && self.candidates.iter().all(|c| c.word != word) {
            self.candidates.push(Candidate { word, about: super::table::one_line(&about), open });
        }
    }
}

/// So many letters of a setting's flag are to be typed before the many that no command lists are offered.
const HINTED: usize = 3;

/// What may stand in place of the last of these words (the program's name is not among them).
pub fn answer(cx: &Cx, words: &[String]) -> Answer {
    let Some((typed, before)) = words.split_last() else { return Answer::default() };
    let state = State::read(before);
    let values = Values::new(cx);
    let mut out = Answer::default();
    if state.lost {
        return out;
    }
    if let Some(waiting) = &state.waiting {
        values.of_flag(waiting, typed, "", &mut out);
    } else if let (false, Some((flag, value))) =
        (state.ended, typed.split_once('=').filter(|_| typed.starts_with('-')))
    {
        if let Some(found) = Waiting::of(flag, state.command) {
            values.of_flag(&found, value, &format!("{flag}="), &mut out);
        }
    } else if typed.starts_with('-') && !state.ended {
        flags(state.command, typed, &mut out);
    } else {
        match state.command {
            None => commands(&mut out),
            Some(command) => {
                for choice in grammar::after(command.words, &state.words) {
                    match choice {
                        Choice::Literal("-") => {}
                        Choice::Literal(word) => out.add(word, ""),
                        Choice::Placeholder(name) => {
                            values.of_word(name, command, &state.words, typed, &mut out)
                        }
                    }
                }
            }
        }
    }
    out.candidates.retain(|c| c.word.starts_with(typed.as_str()));
    out
}

/// What the words before say.
#[derive(Default)]
struct State {
    command: Option<&'static Command>,
    /// The command's words.
    words: Vec<String>,
    /// A flag whose value comes next.
    waiting: Option<Waiting>,
    /// No more flags are taken.
    ended: bool,
    /// There is no such command, and nothing is known of what it takes.
    lost: bool,
}

/// A flag that takes a value.
enum Waiting {
    /// A command's own.
    Own(&'static Flag),
    /// A setting's.
    Setting(&'static dyn Declared),
}

impl Waiting {
    /// The flag of this spelling, when it takes a value.
    fn of(spelled: &str, command: Option<&'static Command>) -> Option<Waiting> {
        let own = COMMANDS.iter().filter(|c| command.is_none_or(|n| n.name == c.name)).flat_map(|c| c.flags);
        let name = spelled.trim_start_matches('-');
        let mut own = own.filter(|f| match spelled.starts_with("--") {
            true => f.name == name,
            false => f.short.is_some_and(|s| name.chars().eq([s])),
        });
        match own.next() {
            Some(flag) => match flag.setting.and_then(settings::declared) {
                _ if flag.value.is_none() => None,
                Some(setting) => Some(Waiting::Setting(setting)),
                None => Some(Waiting::Own(flag)),
            },
            None => settings::flag(spelled).map(Waiting::Setting),
        }
    }
    /// Whether the value may be the next word; a switch takes one behind `=` only.
    fn takes_a_word(&self) -> bool {
        match self {
            Waiting::Own(_) => true,
            Waiting::Setting(d) => !matches!(d.kind(), Kind::Bool),
        }
    }
}

impl State {
    fn read(before: &[String]) -> State {
        let mut state = State::default();
        for word in before {
            if state.waiting.take().is_some() {
                continue;
            }
            if !state.ended && word == "--" {
                state.ended = true;
            } else if !state.ended && word.len() > 1 && word.starts_with('-') {
                let found = Waiting::of(word, state.command).filter(Waiting::takes_a_word);
                state.waiting = found.filter(|_| !word.contains('='));
            } else if let Some(command) = state.command {
                state.words.push(word.clone());
                // What follows a script's name is the script's.
                state.ended |= command.rest == super::command::Rest::AfterFirst;
            } else {
                state.command = COMMANDS.iter().find(|c| c.name == word).copied();
                if state.command.is_none() {
                    return State { lost: true, ..state };
                }
            }
        }
        state
    }
}

fn commands(out: &mut Answer) {
    for c in COMMANDS.iter().filter(|c| c.group != Group::Hidden) {
        out.add(c.name, c.summary);
    }
}

/// The command's own flags and what its users most often change; of the other settings' flags those that begin so.
fn flags(command: Option<&'static Command>, typed: &str, out: &mut Answer) {
    for flag in command.into_iter().flat_map(|c| c.flags) {
        out.add(format!("--{}", flag.name), help::flag_help(flag));
    }
    for d in command.into_iter().flat_map(help::own_settings) {
        let spelled = help::setting_spelled(d);
        out.add(spelled.split(' ').next().unwrap_or_default(), help::setting_help(d));
    }
    for (flag, about) in [
        ("--json", "Answer in JSON"),
        ("--config", "Read this configuration alone"),
        ("--help", "Explain the command"),
        ("--version", "Print the version"),
    ] {
        out.add(flag, about);
    }
    if typed.trim_start_matches('-').len() >= HINTED {
        for d in settings::ALL {
            for flag in d.flag_names() {
                if matches!(d.kind(), Kind::Bool) {
                    out.add(
                        format!("--no-{}", flag.trim_start_matches('-')),
                        format!("Turn off: {}", d.help()),
                    );
                }
                out.add(flag, d.help());
            }
        }
    }
}

/// What a setting's value may be, for whoever has only its key.
fn of_setting(values: &Values, d: &dyn Declared, typed: &str, prefix: &str, out: &mut Answer) {
    match d.key() {
        "script.permissions" => values.permissions(typed, prefix, out),
        "script.runtime" => values.runtimes(prefix, out),
        "catalog.profile" => values.profiles(typed, prefix, out),
        "preset" => values.presets(typed, prefix, out),
        _ => of_kind(&d.kind(), prefix, out),
    }
}

#[cfg(test)]
mod tests {
    use super::super::args::{Parsed, parse};
    use super::super::out::capture;
    use super::*;
    use crate::util::Env;

    fn complete(line: &str) -> Vec<String> {
        let words = line::parse(line).words;
        let Ok(Parsed::Run(inv)) = parse(vec!["mcpx".into(), "version".into()]) else { panic!("runs") };
        let config = std::env::temp_dir().join(format!("mcpx-complete-{}.json", std::process::id()));
        let text = r#"{"mcpServers": {"demo": {"command": "x"}, "two words": {"command": "x"}}, "presets": {"ci": []}}"#;
        crate::util::write_atomic(&config, text.as_bytes(), 0o600, false).unwrap();
        let env = Env::from_pairs([("HOME", "/nonexistent".into()), ("MCPX_CONFIG", config)]);
        let cx = Cx::new(inv, env, capture());
        answer(&cx, &words[1..]).candidates.into_iter().map(|c| c.word).collect()
    }

    #[test]
    fn commands_flags_and_values_come_from_the_tables() {
        assert_eq!(complete("mcpx sea"), ["search"]);
        assert!(complete("mcpx ").contains(&"call".to_owned()));
        assert!(!complete("mcpx ").contains(&"docs".to_owned()));
        assert_eq!(complete("mcpx ls --color ne"), ["never"]);
        assert_eq!(complete("mcpx ls --color=ne"), ["--color=never"]);
        assert_eq!(complete("mcpx --color a"), ["auto", "always"]);
        assert!(complete("mcpx call --").contains(&"--raw".to_owned()));
        assert!(!complete("mcpx call --").contains(&"--pool-max".to_owned()));
        assert_eq!(complete("mcpx call --pool-ma"), ["--pool-max"]);
        assert_eq!(complete("mcpx settings s"), ["set"]);
        assert_eq!(complete("mcpx settings get pool.max"), ["pool.max"]);
        assert_eq!(complete("mcpx settings set output.color n"), ["never"]);
        assert_eq!(complete("mcpx settings list tran"), ["transport"]);
        assert_eq!(complete("mcpx settings set --persist us"), ["user"]);
        assert_eq!(complete("mcpx servers add x --scope=wo"), ["--scope=worktree"]);
        assert_eq!(complete("mcpx help exi"), ["exit-codes"]);
        assert_eq!(complete("mcpx exec --permissions strict,rea"), ["strict,read", "strict,readnet"]);
        assert_eq!(complete("mcpx ls --preset "), ["ci"]);
        assert_eq!(complete("mcpx completions z"), ["zsh"]);
        assert_eq!(complete("mcpx log --level "), ["trace", "debug", "info", "warn", "error"]);
        assert_eq!(complete("mcpx log --level=wa"), ["--level=warn"]);
        assert_eq!(complete("mcpx log --source pl"), ["plugin"]);
        assert_eq!(complete("mcpx log --event call.f"), ["call.finished"]);
    }

    #[test]
    fn names_come_from_the_configuration() {
        assert_eq!(complete("mcpx tools "), ["demo", "two words"]);
        assert_eq!(complete("mcpx tools demo "), ["two words"], "what is there already is not offered again");
        assert_eq!(complete("mcpx call de"), ["demo."]);
        assert_eq!(complete("mcpx servers disable d"), ["demo"]);
        assert_eq!(complete("mcpx log --server d"), ["demo"]);
        assert_eq!(complete("mcpx stats --server=d"), ["--server=demo"]);
        assert_eq!(complete("mcpx log --tool d"), ["demo."]);
        assert!(complete("mcpx nonsense ").is_empty());
        assert!(complete("mcpx run x --").is_empty(), "a script's own words");
    }
}
