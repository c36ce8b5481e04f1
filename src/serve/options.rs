//! What is served to hosts, as the settings say. Knows nothing of how.

use super::tools;
use crate::error::Error;
use crate::settings::{self, Settings};
use std::time::Duration;

/// What is served.
#[derive(Clone, Debug)]
pub struct Options {
    /// The `mcpx_*` tools.
    pub code: bool,
    /// The servers' own tools.
    pub passthrough: bool,
    /// The servers' own tools keep their names, where that is possible.
    pub plain: bool,
    /// Which of the `mcpx_*` tools, as patterns.
    pub tools: Vec<String>,
    /// What the host is told about mcpx; empty for a text of mcpx's own.
    pub instructions: String,
    /// How long a list waits for servers that start.
    pub wait: Duration,
    /// How long a host may keep a list, in the stateless era.
    pub ttl: Duration,
    /// How long a task is kept at most.
    pub task_ttl: Duration,
    /// After how long a call is a task, in the stateless era.
    pub task_after: Duration,
}

impl Options {
    /// As the settings say.
    pub fn of(settings: &Settings) -> Options {
        let mut options = Options {
            code: true,
            passthrough: false,
            plain: settings.get(&settings::SERVE_NAMES) == "plain",
            tools: settings.get(&settings::SERVE_TOOLS),
            instructions: settings.get(&settings::SERVE_INSTRUCTIONS),
            wait: settings.get(&settings::CATALOG_WAIT),
            ttl: settings.get(&settings::SERVE_LIST_TTL),
            task_ttl: settings.get(&settings::SERVE_TASK_TTL),
            task_after: settings.get(&settings::SERVE_TASK_AFTER),
        };
        // A setting has no other value than its words.
        let _ = options.set_mode(&settings.get(&settings::SERVE_MODE));
        options
    }

    /// Refuses a `serve.tools` that offers less than it says.
    ///
    /// # Errors
    /// `Usage`, with the nearest name.
    pub fn check(&self) -> Result<(), Error> {
        if self.code { tools::check(&self.tools) } else { Ok(()) }
    }

    /// Takes the tools that a word of `serve.mode` stands for.
    ///
    /// # Errors
    /// Which words there are.
    pub fn set_mode(&mut self, word: &str) -> Result<(), String> {
        (self.code, self.passthrough) = match word {
            "code" => (true, false),
            "passthrough" => (false, true),
            "both" => (true, true),
            _ => return Err(format!("mode is code, passthrough or both, not \"{word}\"")),
        };
        Ok(())
    }
}
