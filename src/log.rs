//! What mcpx says while it works: one line a message, with a level, handed to
//! the sink that the command installed (stderr for a command, a file for a
//! daemon). Knows neither; without a sink a message goes nowhere.

use std::fmt;
use std::sync::RwLock;
use std::sync::atomic::{AtomicU8, Ordering};

/// How much a message matters, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// Everything.
    Trace,
    /// What helps to find a fault.
    Debug,
    /// What happened.
    Info,
    /// What may be wrong.
    Warn,
    /// What is wrong.
    Error,
    /// Nothing; no message has this level.
    Off,
}

/// The levels with their words, as the setting `logging.level` has them.
const LEVELS: &[(Level, &str)] = &[
    (Level::Trace, "trace"),
    (Level::Debug, "debug"),
    (Level::Info, "info"),
    (Level::Warn, "warn"),
    (Level::Error, "error"),
    (Level::Off, "off"),
];

impl Level {
    /// The level as a word.
    pub fn word(self) -> &'static str {
        LEVELS.iter().find(|(level, _)| *level == self).map_or("", |(_, word)| word)
    }
    /// The level that a word names.
    pub fn from_word(word: &str) -> Option<Level> {
        LEVELS.iter().find(|(_, w)| *w == word).map(|(level, _)| *level)
    }
}

/// Takes messages; called from any thread, one message at a time or several at once.
pub type Sink = Box<dyn Fn(Level, &str) + Send + Sync>;

static LOWEST: AtomicU8 = AtomicU8::new(Level::Info as u8);
static SINK: RwLock<Option<Sink>> = RwLock::new(None);

/// Sets the lowest level that is passed on; `Info` at first.
pub fn set_level(level: Level) {
    LOWEST.store(level as u8, Ordering::Relaxed);
}

/// Installs the sink; it replaces an earlier one.
pub fn set_sink(sink: Sink) {
    // A sink that panicked has left nothing half done that a reader could see.
    *SINK.write().unwrap_or_else(|e| e.into_inner()) = Some(sink);
}

/// Whether a message of this level would be passed on: ask before building a costly one.
pub fn enabled(level: Level) -> bool {
    level < Level::Off && level as u8 >= LOWEST.load(Ordering::Relaxed)
}

/// Passes a message on: lower case, without the program's name and without a secret.
pub fn log(level: Level, message: impl fmt::Display) {
    if !enabled(level) {
        return;
    }
    if let Some(sink) = SINK.read().unwrap_or_else(|e| e.into_inner()).as_ref() {
        sink(level, &one_line(&message.to_string()));
    }
}

/// Says what is wrong.
pub fn error(message: impl fmt::Display) {
    log(Level::Error, message);
}
/// Says what may be wrong.
pub fn warn(message: impl fmt::Display) {
    log(Level::Warn, message);
}
/// Says what happened.
pub fn info(message: impl fmt::Display) {
    log(Level::Info, message);
}
/// Says what helps to find a fault.
pub fn debug(message: impl fmt::Display) {
    log(Level::Debug, message);
}

/// A message on one line, and without what could drive a terminal: much of it
/// is other programs' output. Line breaks become `; `.
pub fn one_line(message: &str) -> String {
    let mut out = String::with_capacity(message.len());
    for line in message.lines().map(str::trim_end).filter(|l| !l.is_empty()) {
        if !out.is_empty() {
            out.push_str("; ");
        }
        out.extend(line.chars().map(|c| match c {
            '\t' => ' ',
            c if c.is_control() => '\u{fffd}',
            c => c,
        }));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn messages_at_or_above_the_level_reach_the_sink_in_one_line() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let into = seen.clone();
        set_sink(Box::new(move |level, text| {
            // Other tests of this process may log as well.
            if text.starts_with("log-test") {
                into.lock().unwrap().push(format!("{} {text}", level.word()));
            }
        }));
        debug("log-test: too low");
        log(Level::Off, "log-test: no message has this level");
        warn("log-test: a\n\n\tb\u{1b}[31m\n");
        assert_eq!(*seen.lock().unwrap(), ["warn log-test: a;  b\u{fffd}[31m"]);
        assert!(!enabled(Level::Debug) && enabled(Level::Error));
    }

    #[test]
    fn words_name_levels() {
        for (level, word) in LEVELS {
            assert_eq!(Level::from_word(word), Some(*level));
        }
        assert_eq!(Level::from_word("loud"), None);
    }
}
