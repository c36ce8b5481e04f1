//! `mcpx guard`: what a daemon starts beside itself, to end what it leaves should it be killed.

use super::super::args::usage;
use super::super::command::{Command, Group, Rest, example};
use super::super::cx::Cx;
use crate::daemon;
use crate::error::Result;

/// The command.
pub static COMMAND: Command = Command {
    name: "guard",
    group: Group::Hidden,
    words: "<pid> <start>",
    count: (2, 2),
    rest: Rest::Mixed,
    summary: "Wait for a daemon's end, and end what it left",
    about: "Not for people: a daemon starts it together with its first server. It waits on its standard input; \
            when that ends without a word the daemon was killed, and whatever its servers have started is ended.",
    flags: &[],
    settings: &[],
    examples: &[example(
        "mcpx guard 4711 123456",
        "the daemon's process, and when it started in ticks since boot",
    )],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    let words = cx.inv.words()?;
    let number = |at: usize| words[at].parse::<u64>();
    let (Ok(pid), Ok(ticks)) = (number(0), number(1)) else {
        return Err(usage("guard takes a process id and its start time"));
    };
    let pid = u32::try_from(pid).map_err(|_| usage("guard takes a process id"))?;
    daemon::guard(&cx.dirs()?, pid, ticks, std::io::stdin());
    Ok(0)
}
