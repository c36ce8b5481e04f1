//! `mcpx explore`: a prompt loop over the commands that show what there is.

use super::super::args::{self, Parsed};
use super::super::command::{Command, Group, Rest, example};
use super::super::complete::line;
use super::super::cx::Cx;
use super::super::out::{Out, complain, note};
use super::super::schemas;
use super::super::table::{Tone, paint};
use super::COMMANDS;
use crate::error::{Error, Result};
use crate::util::did_you_mean;
use std::ffi::OsString;
use std::io::{BufRead, IsTerminal, Write};

/// The command.
pub static COMMAND: Command = Command {
    name: "explore",
    group: Group::Discover,
    words: "",
    count: (0, 0),
    rest: Rest::Mixed,
    summary: "Look around: a prompt that prints the command behind each answer",
    about: "Each line is a command of this group without its mcpx (ls, search, tools, types, catalog …); a namespace \
            alone lists its tools, and anything else is searched for. The command that was run is printed before its \
            answer, to be used again. An empty line lists the namespaces; quit, or the end of the input, ends it. With \
            input from a pipe there is no prompt, and the exit code is that of the last line that failed.",
    flags: &[],
    settings: &["catalog.describe", "search.limit"],
    examples: &[
        example("mcpx explore", "a prompt"),
        example("printf 'ls\\ntypes demo\\n' | mcpx explore", "two answers"),
    ],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    let stdin = std::io::stdin();
    let asks = stdin.is_terminal();
    if asks {
        note("a namespace lists its tools, words are searched for; help says more, quit ends it");
    }
    let mut exit = 0;
    let mut input = stdin.lock();
    loop {
        if asks {
            let _ = write!(std::io::stderr(), "mcpx> ");
        }
        let mut typed = String::new();
        match input.read_line(&mut typed) {
            Ok(0) => break,
            Ok(_) => {}
            Err(e) => return Err(Error::unreadable("standard input", &e)),
        }
        let mut words = line::parse(typed.trim()).words;
        words.retain(|w| !w.is_empty());
        if words.first().is_some_and(|w| w == "mcpx") {
            words.remove(0);
        }
        match words.first().map(String::as_str) {
            None if !asks => continue,
            Some("quit" | "exit" | "q") => break,
            _ => {}
        }
        let outcome = answer(cx, &words);
        match outcome {
            Ok(0) => {}
            Ok(code) => exit = code,
            Err(_) if cx.out.is_closed() => return Ok(0),
            Err(e) => {
                exit = e.exit_code();
                complain(&e);
            }
        }
    }
    Ok(if asks { 0 } else { exit })
}

/// Runs what a line stands for.
fn answer(cx: &mut Cx, words: &[String]) -> Result<u8> {
    let words = meant(cx, words)?;
    let shown: Vec<String> = words.iter().map(|w| quoted(w)).collect();
    let (color, shown) = (cx.color(), format!("$ mcpx {}", shown.join(" ")));
    cx.out.line(&paint(&shown, Tone::Dim, color))?;
    cx.out.flush()?;
    let argv = std::iter::once("mcpx").chain(words.iter().map(String::as_str)).map(OsString::from).collect();
    match args::parse(argv)? {
        Parsed::Run(mut inv) => {
            // The flags that explore was given hold for every answer.
            inv.settings.splice(0..0, cx.inv.settings.iter().cloned());
            let run = inv.command.run;
            let mut inner = Cx::new(inv, cx.env.clone(), Out::stdout());
            inner.take_presets()?;
            let code = run(&mut inner)?;
            inner.out.flush()?;
            Ok(code)
        }
        Parsed::Help(command) => {
            cx.out.text(&super::super::help::command(command)).and_then(|()| cx.out.flush()).map(|()| 0)
        }
        _ => Err(args::usage("there is no command in this line")),
    }
}

/// The command that a line stands for.
fn meant(cx: &Cx, words: &[String]) -> Result<Vec<String>> {
    let Some(first) = words.first() else { return Ok(vec!["ls".into()]) };
    let all = |name: &str| std::iter::once(name.to_owned()).chain(words.iter().cloned()).collect();
    if let Some(command) = COMMANDS.iter().find(|c| c.name == first) {
        let within =
            command.group == Group::Discover && command.name != COMMAND.name || command.name == "help";
        return match within {
            true if words.len() == 1 && first == "help" => Ok(vec!["explore".into(), "--help".into()]),
            true => Ok(words.to_vec()),
            false => {
                let line: Vec<String> = words.iter().map(|word| quoted(word)).collect();
                Err(args::usage("explore only shows what there is").hint(format!("mcpx {}", line.join(" "))))
            }
        };
    }
    let world = cx.world()?;
    if schemas::namespaces(world).iter().any(|n| n.def.name == *first || n.ident == *first) {
        return Ok(all("tools"));
    }
    let names = COMMANDS.iter().filter(|c| c.group == Group::Discover).map(|c| c.name);
    match did_you_mean(first, names) {
        // One mistyped word is a command rather than something to look for.
        Some(near) if words.len() == 1 && first.len() <= 4 => {
            Err(args::usage(format!("there is no command \"{first}\" here")).hint(near))
        }
        _ => Ok(all("search")),
    }
}

/// A word as one would type it into a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:@=+,%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
