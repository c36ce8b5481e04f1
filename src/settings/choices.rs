//! The words that the enumerations among the settings take, each with its meaning.

use super::kind::Choice;

/// What an instance can be keyed by.
pub const SCOPES: &[Choice] = &[
    ("global", "one for everybody"),
    ("repo", "one for each git repository, its worktrees included"),
    ("worktree", "one for each git worktree"),
    ("cwd", "one for each working directory"),
    ("session", "one for each session"),
    ("parent-session", "one for a session and those that it spawned"),
    ("pid", "one for each process that calls"),
    ("call", "one for each call"),
    ("named:<x>", "one for everybody who gives this name"),
];

/// Whether an instance is shared.
pub const SHARING: &[Choice] = &[
    ("shared", "any number of calls at once"),
    ("exclusive", "one call at a time; the rest queue in order"),
];

/// Which revision of the protocol servers are spoken to in.
pub const PROTOCOLS: &[Choice] = &[
    ("auto", "what the server speaks; remembered, and found out again when it fails"),
    ("2026-07-28", "the stateless revision"),
    ("2025-11-25", "with `initialize`, as are those before it"),
    ("2025-06-18", "with `initialize`"),
    ("2025-03-26", "with `initialize`"),
    ("2024-11-05", "with `initialize`"),
    ("2024-10-07", "with `initialize`"),
];

/// The levels of MCP's log messages (RFC 5424).
pub const LOG_LEVELS: &[Choice] = &[
    ("off", "nothing is said to servers"),
    ("debug", "everything"),
    ("info", "what happens"),
    ("notice", "what matters of it"),
    ("warning", "what may go wrong"),
    ("error", "what went wrong"),
    ("critical", "what must be seen to"),
    ("alert", "what must be seen to at once"),
    ("emergency", "that nothing works any more"),
];

/// When to print in colour.
pub const COLOR: &[Choice] =
    &[("auto", "on a terminal, unless NO_COLOR is set"), ("always", "always"), ("never", "never")];

/// What becomes of images, audio and blobs in a result.
pub const RESULTS: &[Choice] = &[
    ("inline", "they stay as the server sent them"),
    ("reference", "they are kept as artifacts, and a `resource_link` stands in their place"),
];

/// What becomes of images and audio.
pub const MEDIA: &[Choice] = &[
    ("file", "each is written to a file, and its path is printed"),
    ("inline", "left in the result as base64"),
];

/// What the editor's plugin does its work with.
pub const BACKENDS: &[Choice] = &[
    ("auto", "the daemon, and the mcpx binary where the daemon cannot"),
    ("v1", "the daemon alone: for a machine without the binary"),
    ("cli", "the mcpx binary alone"),
];

/// How long the plugin remembers which daemon was chosen.
pub const REMEMBER: &[Choice] = &[
    ("session", "as long as the session, in memory"),
    ("until-gone", "until that daemon ends"),
    ("indefinite", "until it is forgotten; another daemon of the same configuration takes its place"),
    ("permanent", "as the daemon's own setting; where it cannot be that, as indefinite"),
];

/// How much the plugin tells a shell.
pub const ENV_LEVELS: &[Choice] = &[
    ("minimal", "the session alone"),
    ("standard", "what is known without asking, and the daemon"),
    ("full", "that, and what one look-up a session gives"),
];

/// On, off, or as it fits.
pub const SWITCH: &[Choice] = &[("auto", "as it fits"), ("on", "always"), ("off", "never")];

/// What hosts are offered.
pub const SERVE_MODES: &[Choice] = &[
    ("code", "the `mcpx_*` tools: few, however many servers there are"),
    ("passthrough", "the servers' own tools, as `server__tool`"),
    ("both", "both"),
];

/// How the tools of servers are called in one list.
pub const NAMINGS: &[Choice] = &[
    ("prefixed", "`server__tool`"),
    ("plain", "the tool's own name, where only one server has it and every host takes it"),
];

/// Levels of a log record, lowest first.
pub const LEVELS: &[Choice] = &[
    ("trace", "everything"),
    ("debug", "what helps to find a fault"),
    ("info", "what happened"),
    ("warn", "what may be wrong"),
    ("error", "what is wrong"),
    ("off", "nothing"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Level;

    #[test]
    fn the_levels_are_those_of_the_log() {
        let words = LEVELS.iter().map(|(word, _)| *word);
        assert!(words.clone().all(|w| Level::from_word(w).is_some_and(|l| l.word() == w)));
        assert_eq!(words.map(|w| Level::from_word(w).unwrap()).max(), Some(Level::Off));
        assert_eq!(LEVELS.len(), Level::Off as usize + 1);
    }
}
