//! `mcpx check`: compares what the servers offer with the lock.

use super::super::command::{Command, Flag, Group, MANY, Rest, example};
use super::super::cx::Cx;
use super::super::locking;
use super::super::out::note;
use crate::catalog::lock::{Drift, Lock};
use crate::error::{Error, Result};
use serde_json::{Value, json};
use std::fmt::Write;

/// The command.
pub static COMMAND: Command = Command {
    name: "check",
    group: Group::Setup,
    words: "[<namespace>…]",
    count: (0, MANY),
    rest: Rest::Mixed,
    summary: "Compare what the servers offer with the lock",
    about: "Asks every server for its tools and prints how they differ from .mcpx.lock.json: tools that are new, gone, \
            or changed, with the way to each difference in the schema. The exit code is 0 when nothing differs, 1 when \
            something does, and 69 (or the server's own code) when a server could not be asked. With --frozen a server \
            that is not in the lock, and one in it that is configured no more, count as differences; without, they are \
            remarks.",
    flags: &[Flag::switch("frozen", "The lock must cover exactly the servers that are configured")
        .of("catalog.frozen")],
    settings: &["catalog.lock", "pool.startTimeout"],
    examples: &[
        example("mcpx check", "every server that is in the lock"),
        example("mcpx --json check --frozen", "for CI: exactly what was locked"),
    ],
    run,
};

/// The exit code where something differs, as of `diff`.
const DIFFERS: u8 = 1;

fn run(cx: &mut Cx) -> Result<u8> {
    let wanted: Vec<String> = cx.inv.words()?.into_iter().map(str::to_owned).collect();
    let world = cx.world()?;
    let frozen = locking::frozen(world);
    let path = locking::path(world);
    let lock = Lock::read(&path)?.ok_or_else(|| locking::missing(&path))?;
    let asked = locking::ask(cx, &wanted)?;
    let mut rows: Vec<Value> = Vec::new();
    let (mut text, mut differs, mut failed) = (String::new(), false, None::<Error>);
    for (server, outcome) in asked {
        let Some(locked) = lock.servers.get(&server) else {
            differs |= frozen;
            rows.push(json!({"server": server, "state": "not-locked"}));
            remark(frozen, &format!("{server}: is not in the lock; mcpx lock {server} adds it"), &mut text);
            continue;
        };
        match outcome {
            Ok(schema) => {
                let drift = Drift::between(locked, &schema);
                let state = if drift.is_empty() { "same" } else { "drifted" };
                if !drift.is_empty() {
                    differs = true;
                    let Drift { added, removed, changed } = &drift;
                    let _ = writeln!(
                        text,
                        "{server}: {} added, {} removed, {} changed",
                        added.len(),
                        removed.len(),
                        changed.len()
                    );
                    drift.lines().iter().for_each(|line| {
                        let _ = writeln!(text, "  {line}");
                    });
                }
                rows.push(json!({"server": server, "state": state, "drift": drift}));
            }
            Err(e) => {
                rows.push(json!({"server": server, "state": "failed", "error": e.to_json()}));
                let _ = writeln!(text, "{server}: could not be asked: {}", e.message());
                failed.get_or_insert(e);
            }
        }
    }
    for name in lock.servers.keys().filter(|n| wanted.is_empty() && world.config.server(n).is_none()) {
        differs |= frozen;
        rows.push(json!({"server": name, "state": "not-configured"}));
        remark(
            frozen,
            &format!("{name}: is in the lock, and configured no more; mcpx lock removes it"),
            &mut text,
        );
    }
    let exit = match (&failed, differs) {
        (Some(e), _) => e.exit_code(),
        (None, true) => DIFFERS,
        (None, false) => 0,
    };
    if cx.json() {
        cx.out.json(&json!({"ok": exit == 0, "path": path, "frozen": frozen, "servers": rows}))?;
        return Ok(exit);
    }
    if exit == 0 {
        let same = rows.iter().filter(|r| r["state"] == "same").count();
        let (s, are) = if same == 1 { ("", "is as it was") } else { ("s", "are as they were") };
        let _ = writeln!(text, "{same} server{s} {are} locked");
    }
    cx.out.text(&text)?;
    if differs {
        note("to accept what is offered now: mcpx lock");
    }
    Ok(exit)
}

/// A difference where the lock is to cover everything, else a remark.
fn remark(frozen: bool, line: &str, text: &mut String) {
    match frozen {
        true => text.push_str(&format!("{line}\n")),
        false => note(line),
    }
}
