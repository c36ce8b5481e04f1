//! Defines what a command is: one value that help, the reference page and the
//! mistyped-name hints are all derived from. Knows nothing of what any command does.

use super::cx::Cx;
use crate::error::Result;

/// What becomes of the words after a command's first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Flags may stand anywhere; `--` ends them.
    Mixed,
    /// The first word ends mcpx's flags: all that follows belongs to the script.
    AfterFirst,
}

/// Where a command stands in the overview.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Shows what exists.
    Discover,
    /// Runs something.
    Run,
    /// Looks after the daemon.
    Daemon,
    /// Sets up, or tells about mcpx itself.
    Setup,
    /// Not shown.
    Hidden,
}

/// The groups that the overview shows, in order, with their titles.
pub const GROUPS: &[(Group, &str)] = &[
    (Group::Discover, "See what there is"),
    (Group::Run, "Run it"),
    (Group::Daemon, "Look after the daemon"),
    (Group::Setup, "Set up and find out"),
];

/// A flag that belongs to a command, on top of the settings' flags.
#[derive(Debug)]
pub struct Flag {
    /// The long name, without dashes.
    pub name: &'static str,
    /// A one-letter spelling.
    pub short: Option<char>,
    /// What its value is called in help; a flag without one is a switch.
    pub value: Option<&'static str>,
    /// The key of the setting that it gives a value to, when it is a shorter spelling of one.
    pub setting: Option<&'static str>,
    /// One line of help.
    pub help: &'static str,
}

impl Flag {
    /// A flag that is either there or not.
    pub const fn switch(name: &'static str, help: &'static str) -> Flag {
        Flag { name, short: None, value: None, setting: None, help }
    }
    /// A flag with a value.
    pub const fn value(name: &'static str, value: &'static str, help: &'static str) -> Flag {
        Flag { name, short: None, value: Some(value), setting: None, help }
    }
    /// Gives the flag a one-letter spelling.
    pub const fn short(mut self, short: char) -> Flag {
        self.short = Some(short);
        self
    }
    /// Makes the flag a spelling of a setting.
    pub const fn of(mut self, key: &'static str) -> Flag {
        self.setting = Some(key);
        self
    }
}

/// A command line that help shows, and what it does.
#[derive(Debug)]
pub struct Example {
    /// The command line, as one types it into a POSIX shell.
    pub line: &'static str,
    /// What it does.
    pub note: &'static str,
}

/// Shorthand for an [`Example`].
pub const fn example(line: &'static str, note: &'static str) -> Example {
    Example { line, note }
}

/// One command.
pub struct Command {
    /// The word that selects it.
    pub name: &'static str,
    /// Where it stands in the overview.
    pub group: Group,
    /// What follows the name and the flags, for the usage line.
    pub words: &'static str,
    /// How few and how many words it takes.
    pub count: (usize, usize),
    /// What becomes of the words after the first.
    pub rest: Rest,
    /// One line for the overview.
    pub summary: &'static str,
    /// Paragraphs for the command's own help.
    pub about: &'static str,
    /// Its own flags.
    pub flags: &'static [Flag],
    /// The keys of the settings that its users most often change.
    pub settings: &'static [&'static str],
    /// At least one.
    pub examples: &'static [Example],
    /// Does it; the returned number is the exit code.
    pub run: fn(&mut Cx) -> Result<u8>,
}

impl Command {
    /// The flag of this long name.
    pub fn flag(&self, name: &str) -> Option<&'static Flag> {
        self.flags.iter().find(|f| f.name == name)
    }
}

/// Stands for "any number" in [`Command::count`].
pub const MANY: usize = usize::MAX;
