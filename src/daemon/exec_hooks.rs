//! The hooks of one run of the exec service: commands that its caller wants run
//! before and after the program. Knows nothing of how the program runs.

use crate::error::{Error, Kind, Result};
use crate::proc::{self, Exit};
use crate::script::env;
use crate::util::Env;
use serde::Deserialize;
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

/// How much of the error a hook gets in its environment, in bytes; all of it is on its standard input.
const ERROR_BYTES: usize = 1024;

/// How much of what a hook writes to standard error is read, in bytes.
const STDERR_BYTES: u64 = 16 * 1024;

/// How long a hook that was asked to end may take.
const GRACE: Duration = Duration::from_secs(1);

/// A command: words, or a line for the shell.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Command {
    Line(String),
    Words(Vec<String>),
}

/// The hooks of one run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Hooks {
    pre: Option<Command>,
    post: Option<Command>,
    on_error: Option<Command>,
    on_success: Option<Command>,
}

/// When a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Before the program.
    Pre,
    /// After it, however it ended.
    Post,
    /// After it failed.
    OnError,
    /// After it succeeded.
    OnSuccess,
}

impl Phase {
    /// As `MCPX_HOOK_PHASE` gives it.
    pub fn word(self) -> &'static str {
        match self {
            Phase::Pre => "pre",
            Phase::Post => "post",
            Phase::OnError => "onError",
            Phase::OnSuccess => "onSuccess",
        }
    }
}

impl Hooks {
    /// Refuses what is no command.
    pub fn check(&self) -> Result<()> {
        for phase in [Phase::Pre, Phase::Post, Phase::OnError, Phase::OnSuccess] {
            let empty = match self.of(phase) {
                Some(Command::Line(line)) => line.trim().is_empty(),
                Some(Command::Words(words)) => words.first().is_none_or(String::is_empty),
                None => false,
            };
            if empty {
                return Err(Error::new(Kind::Usage, format!("hooks.{}: expected a command", phase.word())));
            }
        }
        Ok(())
    }

    fn of(&self, phase: Phase) -> Option<&Command> {
        match phase {
            Phase::Pre => self.pre.as_ref(),
            Phase::Post => self.post.as_ref(),
            Phase::OnError => self.on_error.as_ref(),
            Phase::OnSuccess => self.on_success.as_ref(),
        }
    }

    /// Runs the hook of a phase, if there is one, with `about` on its standard input; the error says what went wrong.
    pub fn run(&self, phase: Phase, about: &Value, env: &Env, limit: Duration) -> Result<(), String> {
        let Some(command) = self.of(phase) else { return Ok(()) };
        let words: Vec<OsString> = match command {
            Command::Line(line) => ["/bin/sh", "-c", line].map(OsString::from).to_vec(),
            Command::Words(words) => words.iter().map(OsString::from).collect(),
        };
        let cwd = about["cwd"].as_str().map_or(Path::new("/"), Path::new);
        let name = words.first().map(OsString::as_os_str).unwrap_or(OsStr::new(""));
        let program = proc::find_program(name, env, cwd).map_err(|e| e.message().to_owned())?;
        let child = proc::spawn(proc::Spawn {
            program,
            args: words[1..].to_vec(),
            env: environment(phase, about, env),
            cwd: Some(cwd.to_owned()),
            stdin: proc::Io::Piped,
            stdout: proc::Io::Null,
            stderr: proc::Io::Piped,
            own_group: true,
            die_with_parent: true,
            ..proc::Spawn::default()
        })
        .map_err(|e| format!("starting it: {e}"))?;
        let mut context = about.clone();
        context["phase"] = phase.word().into();
        context["point"] = "script".into();
        if let Some(mut stdin) = child.take_stdin() {
            // A hook that does not read it, or reads it slowly, holds up nothing but itself.
            let writer = proc::thread::spawn("hook-in", move || {
                let _ = stdin.write_all(format!("{context}\n").as_bytes());
            });
            drop(writer);
        }
        let stderr = child.take_stderr();
        let (said, heard) = mpsc::channel();
        let reader = proc::thread::spawn("hook-err", move || {
            let Some(mut stderr) = stderr else { return };
            let mut text = Vec::new();
            let _ = (&mut stderr).take(STDERR_BYTES).read_to_end(&mut text);
            let _ = said.send(text);
            let _ = std::io::copy(&mut stderr, &mut std::io::sink());
        });
        drop(reader);
        let exit = child.wait_timeout(limit);
        if exit.is_none() {
            child.stop(Duration::ZERO, GRACE);
            return Err(format!("it took longer than {}", crate::settings::duration_text(limit)));
        }
        match exit {
            Some(Exit::Code(0)) | None => Ok(()),
            Some(exit) => {
                let said = heard.recv_timeout(GRACE).unwrap_or_default();
                let said = one_line(&String::from_utf8_lossy(&said), ERROR_BYTES);
                let colon = if said.is_empty() { "" } else { ": " };
                Err(format!("it ended with {exit}{colon}{said}"))
            }
        }
    }
}

/// The environment of a hook: the daemon's, without what belongs to other runs, and the hook's own variables.
fn environment(phase: Phase, about: &Value, base: &Env) -> Vec<(OsString, OsString)> {
    let mut out = base.clone();
    for name in env::own_names() {
        out.remove(name);
    }
    out.set("MCPX_HOOK_PHASE", phase.word());
    out.set("MCPX_HOOK_POINT", "script");
    out.remove("MCPX_HOOK_ERROR");
    if phase == Phase::OnError {
        let error = about["error"]["message"].as_str().unwrap_or("the script failed");
        out.set("MCPX_HOOK_ERROR", one_line(error, ERROR_BYTES));
    }
    out.iter().map(|(k, v)| (k.clone(), v.clone())).collect()
}

/// A text as one line of at most so many bytes, cut at a character.
fn one_line(text: &str, bytes: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('\0', "");
    line[..line.floor_char_boundary(bytes)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_cut_at_a_character() {
        assert_eq!(one_line("a\n b\t\u{0}c ", 99), "a b c");
        let long = one_line(&"ü".repeat(600), ERROR_BYTES);
        assert_eq!((long.len(), long.chars().count()), (1024, 512));
        assert_eq!(one_line(&format!("x{}", "ü".repeat(600)), ERROR_BYTES).len(), 1023);
    }

    #[test]
    fn a_hook_is_a_line_or_words() {
        let read = |text: &str| serde_json::from_str::<Hooks>(text);
        assert!(read(r#"{"pre": "true", "onError": ["a", "b"]}"#).unwrap().check().is_ok());
        assert!(
            read(r#"{"pre": " "}"#).unwrap().check().is_err()
                && read(r#"{"post": []}"#).unwrap().check().is_err()
        );
        assert!(read(r#"{"onerror": "x"}"#).is_err(), "a misspelt phase would never run");
    }
}
