//! `mcpx lock`: writes what every server offers into a file to be committed.

use super::super::command::{Command, Flag, Group, MANY, Rest, example};
use super::super::cx::{Cx, no_servers};
use super::super::locking;
use super::super::out::note;
use crate::catalog::lock::{Drift, Lock};
use crate::error::{Error, Result};
use crate::util::write_atomic;
use serde_json::{Value, json};

/// The command.
pub static COMMAND: Command = Command {
    name: "lock",
    group: Group::Setup,
    words: "[<namespace>…]",
    count: (0, MANY),
    rest: Rest::Mixed,
    summary: "Write what every server offers into a file to commit",
    about: "Asks every server for its tools and writes them with their schemas into .mcpx.lock.json beside the \
            project's configuration, servers by name, tools in the server's own order; a server whose tools did not change \
            stays as it is; with names only those servers, and the others stay as they are. \
            mcpx check compares servers with it. ls, search, tools, types and client work from it alone with \
            --frozen, and in place of a server that cannot be asked. Tool filters do not change what is locked.",
    flags: &[Flag::switch("dry-run", "Say what would change, and write nothing")],
    settings: &["catalog.lock", "pool.startTimeout"],
    examples: &[
        example("mcpx lock", "every server"),
        example("mcpx lock tracker", "one server anew; the others stay"),
    ],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    let wanted: Vec<String> = cx.inv.words()?.into_iter().map(str::to_owned).collect();
    let world = cx.world()?;
    if world.config.servers.is_empty() {
        return Err(no_servers(world, "there is nothing to lock"));
    }
    let path = locking::path(world);
    let old = match Lock::read(&path) {
        Ok(old) => old,
        // What cannot be understood, such as a file with a conflict in it, is written anew as a whole; with names
        // the others would be lost, and what cannot even be read may be something else.
        Err(e) if wanted.is_empty() && std::fs::read(&path).is_ok() => {
            note(&format!("{}; it is written anew", e.message()));
            None
        }
        Err(e) if wanted.is_empty() => return Err(Error::new(e.kind(), e.message())),
        Err(e) => return Err(e.hint("mcpx lock, without names, writes it anew")),
    };
    let asked = locking::ask(cx, &wanted)?;
    let mut lock = old.clone().unwrap_or_default();
    let (mut rows, mut failed) = (Vec::<Value>::new(), Vec::<(String, Error)>::new());
    let mut lines = Vec::new();
    for (server, outcome) in asked {
        match outcome {
            Ok(schema) => {
                let known = lock.servers.contains_key(&server);
                let drift = match lock.servers.get(&server) {
                    Some(locked) => Drift::between(locked, &schema),
                    None => Drift {
                        added: schema.tools.iter().map(|t| t.name.clone()).collect(),
                        ..Drift::default()
                    },
                };
                lock.take(&schema);
                let verb = match (known, drift.is_empty()) {
                    (false, _) => "new",
                    (true, true) => "unchanged",
                    (true, false) => "changed",
                };
                lines.push(format!("{server}: {} tools, {verb}", schema.tools.len()));
                rows.push(json!({"server": server, "tools": schema.tools.len(), "digest": lock.servers[&server].digest, "state": verb, "drift": drift}));
            }
            Err(e) => failed.push((server, e)),
        }
    }
    // A server that is not configured any more is not locked either.
    if wanted.is_empty() {
        lock.servers.retain(|name, _| world.config.server(name).is_some());
    }
    let dry = cx.inv.has("dry-run");
    let text = lock.text();
    let changed = old.is_none_or(|old| old.text() != text);
    if changed && !dry {
        write_atomic(&path, text.as_bytes(), 0o644, true)
            .map_err(|e| Error::unwritable(path.display(), &e))?;
    }
    let exit = failed.first().map_or(0, |(_, e)| e.exit_code());
    if cx.json() {
        let errors: Vec<Value> =
            failed.iter().map(|(s, e)| json!({"server": s, "error": e.to_json()})).collect();
        cx.out.json(&json!({
            "ok": exit == 0, "path": path, "changed": changed, "written": changed && !dry, "servers": rows, "errors": errors,
        }))?;
        return Ok(exit);
    }
    for (server, e) in &failed {
        let stays = match lock.servers.contains_key(server) {
            true => "stays as it was locked",
            false => "is not locked",
        };
        note(&format!("{server} {stays}: {}", e.message()));
    }
    let verb = match (changed, dry) {
        (false, _) => "nothing to change in",
        (true, true) => "would write",
        (true, false) => "wrote",
    };
    lines.push(format!("{verb} {}", path.display()));
    cx.out.line(&lines.join("\n"))?;
    Ok(exit)
}
