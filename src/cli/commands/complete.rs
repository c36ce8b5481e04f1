//! `mcpx complete`: what may come next on a command line, for a shell's script.

use super::super::command::{Command, Group, MANY, Rest, example};
use super::super::complete::{Answer, Files, answer, line};
use super::super::cx::Cx;
use crate::error::Result;

/// The command.
pub static COMMAND: Command = Command {
    name: "complete",
    group: Group::Hidden,
    words: "bash|zsh|fish|powershell [<word>…]",
    count: (1, MANY),
    rest: Rest::AfterFirst,
    summary: "Say what may come next on a command line",
    about: "For the scripts that mcpx completions prints. The words are those of the command line without the \
            program's name, the last one being typed; for bash the line itself and its COMP_WORDBREAKS. The answer has \
            a line for each word, a tab and what it is; :files and :directories ask the shell for names of its own.",
    flags: &[],
    settings: &[],
    examples: &[example("mcpx complete fish call de", "what may stand in place of de")],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    // A word that is not UTF-8 is nothing that could be completed.
    let words: Vec<String> = cx.inv.words.iter().map(|w| w.to_string_lossy().into_owned()).collect();
    let text = match words[0].as_str() {
        "bash" => {
            let parsed = line::parse(words.get(1).map_or("", String::as_str));
            let breaks = words.get(2).map_or("", String::as_str);
            let Some((_, rest)) = parsed.words.split_first() else { return Ok(0) };
            let typed = rest.last().cloned().unwrap_or_default();
            bash(&answer(cx, rest), &typed, breaks, parsed.quote)
        }
        "powershell" => {
            // The number of words comes first, because an empty last one is lost on the way.
            let count = words.get(1).and_then(|n| n.parse().ok()).unwrap_or(0usize);
            let mut rest = words.get(2..).unwrap_or_default().to_vec();
            rest.resize(count.min(rest.len() + 1), String::new());
            described(&answer(cx, &rest), false)
        }
        shell => described(&answer(cx, &words[1..]), shell == "zsh"),
    };
    cx.out.text(&text)?;
    Ok(0)
}

/// A line for each candidate. zsh wants to know which of them are open: their description begins with `+`, others' with `.`.
fn described(answer: &Answer, marked: bool) -> String {
    let mut out = String::new();
    for c in &answer.candidates {
        let mark = match (marked, c.open) {
            (false, _) => "",
            (true, true) => "+",
            (true, false) => ".",
        };
        out.push_str(&format!("{}\t{mark}{}\n", c.word, c.about));
    }
    out + files(answer)
}

/// A line for each candidate, which bash inserts as it stands.
fn bash(answer: &Answer, typed: &str, breaks: &str, quote: Option<char>) -> String {
    let mut out = String::new();
    for c in &answer.candidates {
        out.push_str(&line::replacement(&c.word, typed, breaks, quote));
        out.push('\n');
    }
    if answer.candidates.iter().any(|c| c.open) {
        out.push_str(":open\n");
    }
    out + files(answer)
}

fn files(answer: &Answer) -> &'static str {
    match answer.files {
        None => "",
        Some(Files::Any) => ":files\n",
        Some(Files::Directories) => ":directories\n",
    }
}
