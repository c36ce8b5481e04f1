//! Parses a command line against the tables of commands and settings. The
//! first of two stages: it only says what was typed, and touches neither files
//! nor processes.

use super::command::{Command, Flag, Rest};
use super::commands::COMMANDS;
use crate::error::{Error, Kind, Result};
use crate::settings::{self, ALL, FlagValue};
use crate::util::{did_you_mean, nearest};
use lexopt::Arg;
use std::ffi::{OsStr, OsString};

/// What a command line asks for.
pub enum Parsed {
    /// No command: the overview.
    Overview,
    /// `--help` with a command.
    Help(&'static Command),
    /// `--version`.
    Version,
    /// A command to run.
    Run(Invocation),
}

/// A command with everything that was typed for it.
#[derive(Clone)]
pub struct Invocation {
    /// The command.
    pub command: &'static Command,
    /// Its words, in order.
    pub words: Vec<OsString>,
    /// Its own flags, in order, each with its value.
    pub flags: Vec<(&'static Flag, Option<OsString>)>,
    /// Settings given as flags, in order.
    pub settings: Vec<FlagValue>,
    /// Whether `--` was typed.
    pub dashes: bool,
}

impl Invocation {
    /// Whether a switch of the command's own was given.
    pub fn has(&self, name: &str) -> bool {
        self.flags.iter().any(|(f, _)| f.name == name)
    }
    /// The last value of a flag of the command's own.
    pub fn value(&self, name: &str) -> Option<&OsStr> {
        self.values(name).last()
    }
    /// Every value of a flag of the command's own, in order.
    pub fn values(&self, name: &str) -> impl Iterator<Item = &OsStr> {
        self.flags.iter().filter(move |(f, _)| f.name == name).filter_map(|(_, v)| v.as_deref())
    }
    /// The last value of a flag, as text.
    pub fn text(&self, name: &str) -> Result<Option<&str>> {
        self.value(name).map(|v| utf8(v, &format!("the value of --{name}"))).transpose()
    }
    /// The last text given for a setting by a flag.
    pub fn setting(&self, key: &str) -> Option<&str> {
        self.settings.iter().rev().find(|s| s.key == key).map(|s| s.text.as_str())
    }
    /// The words as text.
    pub fn words(&self) -> Result<Vec<&str>> {
        self.words.iter().map(|w| utf8(w, "an argument")).collect()
    }
}

/// The text of something typed, which must be UTF-8.
pub fn utf8<'a>(word: &'a OsStr, what: &str) -> Result<&'a str> {
    word.to_str().ok_or_else(|| usage(format!("{what} is not UTF-8: {}", word.to_string_lossy())))
}

/// Whether `--json` was typed where it is mcpx's: for errors in the command line itself.
pub fn wants_json(argv: &[OsString]) -> bool {
    argv.iter().skip(1).take_while(|a| *a != "--").any(|a| a == "--json")
}

/// Parses a command line (the program's name first).
pub fn parse(argv: Vec<OsString>) -> Result<Parsed> {
    let dashes = argv.iter().any(|word| word == "--");
    let mut parser = lexopt::Parser::from_args(argv.into_iter().skip(1));
    let mut command: Option<&'static Command> = None;
    let mut words: Vec<OsString> = Vec::new();
    let mut typed: Vec<Typed> = Vec::new();
    let (mut help, mut version) = (false, false);
    loop {
        // The argument borrows the parser, which a flag's value needs too.
        let next = match parser.next().map_err(|e| usage(e.to_string()))? {
            None => break,
            Some(Arg::Value(word)) => Next::Word(word),
            Some(Arg::Long(name)) => Next::Flag(name.to_owned(), None),
            Some(Arg::Short(letter)) => Next::Flag(letter.to_string(), Some(letter)),
        };
        match next {
            Next::Word(word) => match command {
                None => command = Some(find_command(&word)?),
                Some(c) => {
                    words.push(word);
                    if c.rest == Rest::AfterFirst {
                        words.extend(parser.raw_args().map_err(|e| usage(e.to_string()))?);
                    }
                }
            },
            Next::Flag(name, None) if name == "help" => help = true,
            Next::Flag(name, None) if name == "version" => version = true,
            Next::Flag(_, Some('h')) => help = true,
            Next::Flag(_, Some('V')) => version = true,
            Next::Flag(name, short) => {
                let (spelled, switch, negated) = arity(&name, short, command)?;
                let value = if !switch {
                    Some(parser.value().map_err(|_| usage(format!("{spelled} needs a value")))?)
                } else {
                    parser.optional_value()
                };
                if negated && value.is_some() {
                    return Err(usage(format!("{spelled} takes no value")));
                }
                typed.push(Typed { name, short, spelled, value, negated });
            }
        }
    }
    match command {
        _ if version && !help => Ok(Parsed::Version),
        Some(c) if help => Ok(Parsed::Help(c)),
        None if help || typed.is_empty() => Ok(Parsed::Overview),
        None => Err(usage("there is no command").hint("mcpx --help lists the commands")),
        Some(command) => assign(command, words, typed).map(|i| Parsed::Run(Invocation { dashes, ..i })),
    }
}

/// What a command line that begins with no command of ours asks of a plugin.
pub struct Foreign {
    /// Settings that were typed in front of its name.
    pub settings: Vec<FlagValue>,
    /// Its name, as typed.
    pub name: OsString,
    /// What follows its name; `--help` when help was asked for in front of it.
    pub args: Vec<OsString>,
}

/// The first word that is no flag, when it is no command of ours, or is behind `help`; `None` where
/// the command line is for mcpx itself to read, or to refuse.
pub fn foreign(argv: &[OsString]) -> Option<Foreign> {
    let ours = |word: &OsStr| COMMANDS.iter().any(|c| word == c.name);
    // Nearly every command line is decided by its first word.
    if argv.get(1).is_none_or(|word| word != "help" && ours(word)) {
        return None;
    }
    let mut parser = lexopt::Parser::from_args(argv.iter().skip(1).cloned());
    let (mut settings, mut help) = (Vec::new(), false);
    loop {
        let name = match parser.next().ok()?? {
            Arg::Value(word) if word == "help" && !help => {
                help = true;
                continue;
            }
            Arg::Value(name) if ours(&name) => return None,
            Arg::Value(name) => {
                let rest = parser.raw_args().ok()?;
                let args = if help { vec!["--help".into()] } else { rest.collect() };
                return Some(Foreign { settings, name, args });
            }
            Arg::Long("help") | Arg::Short('h') => {
                help = true;
                continue;
            }
            Arg::Short(_) => return None,
            Arg::Long(name) => name.to_owned(),
        };
        let (spelled, switch, negated) = arity(&name, None, None).ok()?;
        let (setting, _) = settings::flag_match(&spelled)?;
        let value = if switch { parser.optional_value() } else { Some(parser.value().ok()?) };
        let text = match value {
            Some(value) => value.to_str()?.to_owned(),
            None => (!negated).to_string(),
        };
        settings.push(FlagValue { key: setting.key().to_owned(), text, spelled });
    }
}

/// An argument, freed from the parser.
enum Next {
    Word(OsString),
    Flag(String, Option<char>),
}

/// A flag as typed, before it is known whose it is.
struct Typed {
    name: String,
    short: Option<char>,
    spelled: String,
    value: Option<OsString>,
    negated: bool,
}

/// How the flag is spelled, whether it is a switch, and whether it is a switch's `--no-` form. A flag
/// means the same in every place, so this needs no command; but which command it belongs to may be typed later.
fn arity(name: &str, short: Option<char>, command: Option<&Command>) -> Result<(String, bool, bool)> {
    if let Some(letter) = short {
        let spelled = format!("-{letter}");
        return match own_flags(command).find(|f| f.short == Some(letter)) {
            Some(f) => Ok((spelled, f.value.is_none(), false)),
            None if letter == 'v' => Err(usage(format!("there is no flag {spelled}"))
                .hint("--version (-V) prints the version; put -- before words that begin with a dash")),
            None => Err(usage(format!("there is no flag {spelled}"))
                .hint("put -- before words that begin with a dash; mcpx --help lists the flags")),
        };
    }
    let spelled = format!("--{name}");
    if let Some(f) = own_flags(command).find(|f| f.name == name) {
        return Ok((spelled, f.value.is_none(), false));
    }
    match settings::flag_match(&spelled) {
        Some((setting, negated)) => Ok((spelled, matches!(setting.kind(), settings::Kind::Bool), negated)),
        None => Err(unknown_flag(&spelled, command)),
    }
}

/// The command's flags, or every command's while that is not known.
fn own_flags(command: Option<&Command>) -> impl Iterator<Item = &'static Flag> {
    let name = command.map(|c| c.name);
    COMMANDS.iter().filter(move |c| name.is_none_or(|n| n == c.name)).flat_map(|c| c.flags)
}

fn unknown_flag(spelled: &str, command: Option<&Command>) -> Error {
    let own: Vec<&str> = own_flags(command).map(|f| f.name).chain(["help", "version"]).collect();
    let typed = spelled.trim_start_matches('-');
    // A command's own flags and the short spellings are likelier meant than one of the many settings.
    let short = ALL.iter().flat_map(|d| d.spec().flags).map(|f| f.trim_start_matches('-'));
    let mut near: Vec<String> =
        nearest(typed, own.into_iter().chain(short)).into_iter().map(str::to_owned).collect();
    if near.is_empty() {
        let all: Vec<String> = ALL.iter().flat_map(|d| d.flag_names()).collect();
        near = nearest(typed, all.iter().map(|f| f.trim_start_matches('-')))
            .into_iter()
            .map(str::to_owned)
            .collect();
    }
    let whose = command.map_or_else(|| "mcpx".to_owned(), |c| format!("mcpx {}", c.name));
    let e = usage(format!("{whose} has no flag {spelled}"));
    match near.as_slice() {
        [] => e.hint(format!("{whose} --help lists its flags; put -- before words that begin with a dash")),
        near => {
            let near: Vec<String> = near.iter().map(|n| format!("--{n}")).collect();
            e.hint(format!("did you mean {}?", near.join(", ")))
        }
    }
}

/// Gives each flag to the command or to a setting, and checks the number of words.
fn assign(command: &'static Command, words: Vec<OsString>, typed: Vec<Typed>) -> Result<Invocation> {
    let mut flags = Vec::new();
    let mut settings = Vec::new();
    for t in typed {
        let own = match t.short {
            Some(letter) => command.flags.iter().find(|f| f.short == Some(letter)),
            None => command.flag(&t.name),
        };
        let key = match own {
            Some(Flag { setting: Some(key), .. }) => key,
            Some(flag) => {
                if flag.value.is_none() && t.value.is_some() {
                    return Err(usage(format!("{} takes no value", t.spelled)));
                }
                flags.push((flag, t.value));
                continue;
            }
            None => match settings::flag_match(&t.spelled) {
                Some((setting, _)) => setting.key(),
                None => return Err(unknown_flag(&t.spelled, Some(command))),
            },
        };
        let text = match &t.value {
            Some(value) => utf8(value, &format!("the value of {}", t.spelled))?.to_owned(),
            None => (!t.negated).to_string(),
        };
        settings.push(FlagValue { key: key.to_owned(), text, spelled: t.spelled });
    }
    let (least, most) = command.count;
    let called = format!("mcpx {} {}", command.name, command.words);
    let help = || format!("usage: {}; mcpx {} --help shows examples", called.trim_end(), command.name);
    if words.len() < least {
        return Err(usage(format!("mcpx {} needs {}", command.name, command.words)).hint(help()));
    }
    if let Some(extra) = words.get(most) {
        let extra = extra.to_string_lossy();
        return Err(
            usage(format!("mcpx {} does not know what to do with {extra:?}", command.name)).hint(help())
        );
    }
    Ok(Invocation { command, words, flags, settings, dashes: false })
}

/// The command of this name; when there is none, what was probably meant.
pub fn find_command(word: &OsStr) -> Result<&'static Command> {
    let text = word.to_string_lossy();
    if let Some(c) = COMMANDS.iter().find(|c| c.name == text) {
        return Ok(c);
    }
    let names = COMMANDS.iter().filter(|c| c.group != super::command::Group::Hidden).map(|c| c.name);
    let e = usage(format!("there is no command {text:?}"));
    Err(match did_you_mean(&text, names) {
        Some(near) => e.hint(near),
        None if text.contains('.') && !text.contains(['/', ' ']) => {
            e.hint(format!("to call a tool: mcpx call {text}"))
        }
        None => e.hint("mcpx --help lists the commands"),
    })
}

/// A mistake in the command line.
pub fn usage(message: impl Into<String>) -> Error {
    Error::new(Kind::Usage, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::complete::line;

    fn argv(words: &[&str]) -> Vec<OsString> {
        ["mcpx"].iter().chain(words).map(OsString::from).collect()
    }
    fn run(words: &[&str]) -> Invocation {
        match parse(argv(words)) {
            Ok(Parsed::Run(i)) => i,
            Ok(_) => panic!("{words:?} runs nothing"),
            Err(e) => panic!("{words:?}: {e}"),
        }
    }
    fn refused(words: &[&str]) -> String {
        match parse(argv(words)) {
            Err(e) => {
                assert_eq!(e.exit_code(), 2, "{words:?}");
                e.to_string()
            }
            Ok(_) => panic!("{words:?} was accepted"),
        }
    }

    #[test]
    fn nothing_and_help_show_the_overview() {
        assert!(matches!(parse(argv(&[])), Ok(Parsed::Overview)));
        assert!(matches!(parse(argv(&["--help"])), Ok(Parsed::Overview)));
        assert!(matches!(parse(argv(&["-h"])), Ok(Parsed::Overview)));
        assert!(matches!(parse(argv(&["call", "--help"])), Ok(Parsed::Help(c)) if c.name == "call"));
        assert!(matches!(parse(argv(&["-V"])), Ok(Parsed::Version)));
        assert!(refused(&["--json"]).contains("no command"));
    }

    #[test]
    fn the_usage_of_a_command_without_words_has_no_gap() {
        let Err(extra) = parse(argv(&["version", "extra"])) else { panic!("a word too many was accepted") };
        assert_eq!(extra.hint_text(), Some("usage: mcpx version; mcpx version --help shows examples"));
    }

    #[test]
    fn flags_stand_before_and_after_the_command() {
        for words in [&["--json", "ls"][..], &["ls", "--json"], &["--json=true", "ls"]] {
            assert_eq!(run(words).setting("output.json"), Some("true"), "{words:?}");
        }
        assert_eq!(run(&["ls", "--no-json"]).setting("output.json"), Some("false"));
        assert_eq!(run(&["--config", "x.json", "ls"]).setting("paths.configFile"), Some("x.json"));
    }

    #[test]
    fn a_commands_own_spelling_wins_wherever_it_stands() {
        assert_eq!(run(&["call", "a.b", "--timeout", "5s"]).setting("pool.callTimeout"), Some("5s"));
        for words in [&["exec", "1", "--timeout", "5s"][..], &["--timeout=5s", "exec", "1"]] {
            let i = run(words);
            assert_eq!(i.setting("script.timeout"), Some("5s"), "{words:?}");
            assert_eq!(i.setting("pool.callTimeout"), None, "{words:?}");
        }
    }

    #[test]
    fn a_scripts_words_are_left_alone() {
        let i = run(&["run", "--timeout", "1s", "job", "--json", "-x", "--", "--timeout=9"]);
        assert_eq!(i.words, ["job", "--json", "-x", "--", "--timeout=9"]);
        assert_eq!(i.setting("script.timeout"), Some("1s"));
        assert_eq!(i.setting("output.json"), None);
    }

    #[test]
    fn a_calls_words_may_hold_anything_after_the_dashes() {
        let i = run(&["call", "a.b", "--raw", "x=-1", "empty=", "--", "--y=1"]);
        assert_eq!(i.words, ["a.b", "x=-1", "empty=", "--y=1"]);
        assert!(i.has("raw"));
        assert_eq!(run(&["call", "a.b", "-"]).words, ["a.b", "-"]);
        assert_eq!(
            run(&["call", "a.b", "x:=1", "y=a:=b", "z=$HOME"]).words[1..],
            ["x:=1", "y=a:=b", "z=$HOME"]
        );
    }

    #[test]
    fn mistakes_get_the_nearest_name() {
        assert!(refused(&["serach", "x"]).contains("\"search\""));
        assert!(refused(&["ls", "--jsn"]).contains("--json"));
        assert!(refused(&["call", "a.b", "--timout", "1s"]).contains("--timeout"));
        assert!(refused(&["demo.echo"]).contains("mcpx call demo.echo"));
        assert!(refused(&["call", "a.b", "-5"]).contains("-- before"));
        assert!(refused(&["ls", "--timeout"]).contains("needs a value"));
        assert!(refused(&["call"]).contains("<namespace>.<tool>"));
        assert!(refused(&["version", "1"]).contains("\"1\""));
        assert!(refused(&["ls", "--raw"]).contains("mcpx ls has no flag --raw"));
        assert!(refused(&["--raw", "ls"]).contains("mcpx ls has no flag --raw"));
        assert!(refused(&["call", "a.b", "--raw=yes"]).contains("takes no value"));
    }

    #[test]
    fn a_flag_takes_a_value_everywhere_or_nowhere() {
        for c in COMMANDS {
            for f in c.flags {
                let switch = f.value.is_none();
                for (other, g) in COMMANDS.iter().flat_map(|c| c.flags.iter().map(move |g| (c, g))) {
                    if g.name == f.name || (g.short.is_some() && g.short == f.short) {
                        assert_eq!(
                            g.value.is_none(),
                            switch,
                            "--{} of {} and {}",
                            f.name,
                            c.name,
                            other.name
                        );
                    }
                }
                if let Some(setting) = settings::flag(&format!("--{}", f.name)) {
                    let bare = matches!(setting.kind(), settings::Kind::Bool);
                    assert_eq!(bare, switch, "--{} of {} and the setting {}", f.name, c.name, setting.key());
                }
                if let Some(key) = f.setting {
                    assert!(settings::declared(key).is_some(), "{}: there is no setting {key}", c.name);
                }
            }
            for key in c.settings {
                let setting =
                    settings::declared(key).unwrap_or_else(|| panic!("{}: no setting {key}", c.name));
                assert!(!setting.flag_names().is_empty(), "{}: {key} has no flag to show", c.name);
            }
        }
    }

    #[test]
    fn every_example_parses_and_every_command_has_one() {
        for c in COMMANDS {
            assert!(!c.examples.is_empty(), "{} has no example", c.name);
            for e in c.examples {
                // What follows a pipe or a redirection is the shell's; what precedes a pipe feeds it.
                let typed = e.line.rsplit(" | ").find(|part| part.contains("mcpx ")).unwrap_or(e.line);
                let parsed = line::parse(typed);
                assert!(parsed.quote.is_none(), "an open quote in {typed:?}");
                let mut words = parsed.words;
                if let Some(at) = words.iter().position(|w| w == ">" || w == "<") {
                    words.truncate(at);
                }
                assert_eq!(words[0], "mcpx", "{}", e.line);
                let words: Vec<&str> = words[1..].iter().map(String::as_str).collect();
                assert_eq!(run(&words).command.name, c.name, "{}", e.line);
            }
        }
    }
}
