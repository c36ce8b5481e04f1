//! `mcpx artifacts`: what scripts and tools produced and mcpx keeps. Asks the daemon
//! where one runs, so that it tells of what is removed, and looks itself where none does.

use super::super::args::usage;
use super::super::command::{Command, Flag, Group, MANY, Rest, example};
use super::super::cx::Cx;
use super::super::out::note;
use super::super::table::{Cell, Table, Tone};
use super::status;
use crate::api::{Client, uri};
use crate::artifacts::{Artifact, Limits, Store};
use crate::error::{Error, Kind, Result};
use crate::proc;
use crate::settings::{self, Settings, bytes_text};
use crate::util::{did_you_mean, random_hex};
use serde::Deserialize;
use serde_json::json;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The command.
pub static COMMAND: Command = Command {
    name: "artifacts",
    group: Group::Run,
    words: "[list|get|rm|gc] [<artifact>…]",
    count: (0, MANY),
    rest: Rest::Mixed,
    summary: "What scripts and tools produced: show it, get it, remove it",
    about: "A script keeps something with artifact({ name, text }), artifact({ name, bytes }) or artifact({ path }), in \
            Python artifact(name=…, text=…); images and audio that mcpx call puts into files are kept as well. An \
            artifact is named by its id or its digest, or the beginning of one, its uri, or its name (the newest of \
            that name).\n\n\
            get writes the content to standard output, or with -o to a file; --json shows what is known of it instead. \
            rm removes artifacts, or with --run or --session all that those gave. gc removes what is older than \
            artifacts.ttl and then the oldest until artifacts.quota is kept, as the daemon does now and then; what an \
            open run gave always stays.",
    flags: &[
        Flag::value("run", "ID", "list, rm: only what this run gave; may be repeated"),
        Flag::value("session", "KEY", "list, rm: only what belongs to this session; may be repeated"),
        Flag::value(
            "output",
            "PATH",
            "get: where to; a directory takes the artifact's own name, - is standard output",
        )
        .short('o'),
    ],
    settings: &["artifacts.quota", "artifacts.ttl", "artifacts.maxSize", "artifacts.results"],
    examples: &[
        example("mcpx artifacts", "what is kept, the oldest first"),
        example("mcpx artifacts get report.pdf -o .", "the newest of that name, into this directory"),
        example("mcpx artifacts get 2cf24dba | head", "by the beginning of its digest, to a pipe"),
        example("mcpx artifacts rm --run 1f9c8a7e6d5c4b3a", "all that one run gave"),
        example("mcpx --json artifacts list --session review", "for a program"),
    ],
    run,
};

const ACTIONS: &[&str] = &["list", "get", "rm", "gc"];

/// How much of a content is in memory at once.
const BLOCK: usize = 64 * 1024;

/// Where artifacts are asked for.
enum Keeper {
    Daemon(Box<Client>),
    Here(Store),
}

#[derive(Deserialize)]
struct Listed {
    artifacts: Vec<Artifact>,
    bytes: u64,
}

#[derive(Deserialize)]
struct Swept {
    removed: Vec<Artifact>,
    freed: u64,
    left: u64,
}

fn run(cx: &mut Cx) -> Result<u8> {
    let words: Vec<String> = cx.inv.words()?.into_iter().map(str::to_owned).collect();
    let (action, rest) = words.split_first().map_or(("list", &[][..]), |(a, r)| (a.as_str(), r));
    let takes: &[&str] = match action {
        "list" | "rm" => &["run", "session"],
        "get" => &["output"],
        _ => &[],
    };
    if ACTIONS.contains(&action)
        && let Some((odd, _)) = cx.inv.flags.iter().find(|(flag, _)| !takes.contains(&flag.name))
    {
        return Err(usage(format!("mcpx artifacts {action} does not take --{}", odd.name)));
    }
    match (action, rest) {
        ("list", []) => list(cx),
        ("get", [one]) => get(cx, one),
        ("rm", wanted) => remove(cx, wanted),
        ("gc", []) => gc(cx),
        ("get", _) => {
            Err(usage("mcpx artifacts get takes one artifact").hint("mcpx artifacts list shows them"))
        }
        ("list" | "gc", _) => Err(usage(format!("mcpx artifacts {action} takes no further words"))),
        (odd, _) => {
            let near = did_you_mean(odd, ACTIONS.iter().copied());
            Err(usage(format!("mcpx artifacts cannot \"{odd}\""))
                .hint(near.unwrap_or_else(|| format!("it can {}", ACTIONS.join(", ")))))
        }
    }
}

impl Keeper {
    fn new(cx: &Cx) -> Result<Keeper> {
        let (client, _) = cx.running_anyhow()?;
        Ok(match client {
            Some(client) => Keeper::Daemon(Box::new(client)),
            None => Keeper::Here(Store::new(&cx.dirs()?)),
        })
    }

    fn list(&self, runs: &[&str], sessions: &[&str]) -> Result<Listed> {
        let mut listed = match self {
            Keeper::Daemon(client) => read(client.json("GET", "/v1/artifacts", None)?)?,
            Keeper::Here(store) => Listed { artifacts: store.list()?, bytes: store.used().unwrap_or(0) },
        };
        let among = |wanted: &[&str], value: &Option<String>| {
            wanted.is_empty() || value.as_ref().is_some_and(|value| wanted.contains(&value.as_str()))
        };
        listed.artifacts.retain(|a| among(runs, &a.run) && among(sessions, &a.session));
        Ok(listed)
    }

    fn find(&self, wanted: &str) -> Result<Artifact> {
        match self {
            Keeper::Daemon(client) => read(client.json("GET", &path(wanted, ""), None)?),
            Keeper::Here(store) => store.find(wanted),
        }
    }

    /// Hands over the content piece by piece.
    fn content(&self, artifact: &Artifact, sink: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> Result<()> {
        match self {
            Keeper::Daemon(client) => {
                client.stream("GET", &path(&artifact.id, "/content"), None, sink).map(drop)
            }
            Keeper::Here(store) => {
                let mut file = store.open(artifact)?;
                let fail = |e: io::Error| {
                    Error::new(Kind::Unavailable, format!("reading the artifact {}: {e}", artifact.id))
                };
                let mut block = vec![0; BLOCK];
                loop {
                    match file.read(&mut block) {
                        Ok(0) => return Ok(()),
                        Ok(n) => sink(&block[..n]).map_err(fail)?,
                        Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                        Err(e) => return Err(fail(e)),
                    }
                }
            }
        }
    }

    fn remove(&self, artifact: &Artifact) -> Result<()> {
        match self {
            Keeper::Daemon(client) => client.json("DELETE", &path(&artifact.id, ""), None).map(drop),
            Keeper::Here(store) => store.remove(artifact),
        }
    }

    fn gc(&self, cx: &Cx) -> Result<Swept> {
        match self {
            Keeper::Daemon(client) => read(client.json("POST", "/v1/artifacts/gc", None)?),
            Keeper::Here(store) => {
                let limits = limits(&cx.world()?.settings);
                let swept = store.gc(&limits, &|run| store.is_noted(run, &proc::alive))?;
                let removed = swept.removed.into_iter().map(|(artifact, _)| artifact).collect();
                Ok(Swept { removed, freed: swept.freed, left: swept.left })
            }
        }
    }
}

/// How much may be kept.
pub fn limits(of: &Settings) -> Limits {
    Limits {
        one: of.get(&settings::ARTIFACTS_MAX_SIZE),
        quota: of.get(&settings::ARTIFACTS_QUOTA),
        ttl: of.get(&settings::ARTIFACTS_TTL),
    }
}

fn path(wanted: &str, what: &str) -> String {
    format!("/v1/artifacts/{}{what}", uri::encode(wanted, false))
}

fn read<T: serde::de::DeserializeOwned>(answer: serde_json::Value) -> Result<T> {
    serde_json::from_value(answer)
        .map_err(|e| Error::new(Kind::Unavailable, format!("reading the daemon's answer: {e}")))
}

fn texts<'a>(cx: &'a Cx, flag: &str) -> Result<Vec<&'a str>> {
    cx.inv.values(flag).map(|value| super::super::args::utf8(value, flag)).collect()
}

fn list(cx: &mut Cx) -> Result<u8> {
    let listed = Keeper::new(cx)?.list(&texts(cx, "run")?, &texts(cx, "session")?)?;
    if cx.json() {
        cx.out.json(&json!({"ok": true, "artifacts": listed.artifacts, "bytes": listed.bytes}))?;
        return Ok(0);
    }
    if listed.artifacts.is_empty() {
        note("no artifact is kept; a script keeps one with artifact({ name, text })");
        return Ok(0);
    }
    let mut table = Table::new(&["ARTIFACT", "NAME", "SIZE", "TYPE", "AGE", "RUN", "SESSION"]);
    for artifact in &listed.artifacts {
        table.row(vec![
            Cell::new(&artifact.id).tone(Tone::Strong),
            Cell::new(&artifact.name),
            Cell::number(size_text(artifact.size)),
            Cell::new(&artifact.mime),
            Cell::number(status::since(artifact.at)),
            Cell::new(artifact.run.as_deref().unwrap_or("-")),
            Cell::new(artifact.session.as_deref().unwrap_or("-")),
        ]);
    }
    let text = table.render(cx.width(), cx.color());
    cx.out.text(&text)?;
    Ok(0)
}

/// The units that sizes are shown in to a person.
const UNITS: [(&str, u64); 3] = [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1000)];

/// A size for a person, to three digits or so.
fn size_text(bytes: u64) -> String {
    match UNITS.iter().find(|(_, unit)| bytes >= *unit) {
        Some((word, unit)) => format!("{:.1} {word}", bytes as f64 / *unit as f64),
        None => format!("{bytes} B"),
    }
}

fn get(cx: &mut Cx, wanted: &str) -> Result<u8> {
    let keeper = Keeper::new(cx)?;
    let artifact = keeper.find(wanted)?;
    let output = cx.inv.value("output").map(PathBuf::from);
    if let Some(output) = output.filter(|output| output != Path::new("-")) {
        let target = if output.is_dir() { output.join(&artifact.name) } else { output };
        write_file(&keeper, &artifact, &target)?;
        match cx.json() {
            true => cx.out.json(&json!({"ok": true, "artifact": artifact, "written": target}))?,
            false => note(&format!("{} bytes are in {}", artifact.size, target.display())),
        }
        return Ok(0);
    }
    if cx.json() {
        cx.out.json(&json!({"ok": true, "artifact": artifact}))?;
        return Ok(0);
    }
    let asked = cx.inv.value("output").is_some();
    if cx.out.is_terminal() && !asked && !artifact.mime.starts_with("text/") {
        return Err(usage(format!("{} is {}, which a terminal does not show", artifact.name, artifact.mime))
            .hint("-o FILE writes it to a file, -o - to the terminal all the same"));
    }
    let out = &mut cx.out;
    let outcome = keeper.content(&artifact, &mut |piece| {
        out.bytes(piece).map_err(|e| io::Error::other(e.message().to_owned()))
    });
    // Whoever closed the pipe has enough.
    if outcome.is_err() && out.is_closed() {
        return Ok(0);
    }
    outcome?;
    out.flush()?;
    Ok(0)
}

/// Writes a file that is either whole or not there.
fn write_file(keeper: &Keeper, artifact: &Artifact, target: &Path) -> Result<()> {
    let fail = |e: io::Error| Error::unwritable(target.display(), &e);
    let mut name = std::ffi::OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(format!(".{}", random_hex(4)?));
    let beside = target.with_file_name(name);
    let mut file: File = OpenOptions::new().write(true).create_new(true).open(&beside).map_err(fail)?;
    let outcome = keeper
        .content(artifact, &mut |piece| file.write_all(piece))
        .and_then(|()| fs::rename(&beside, target).map_err(fail));
    if outcome.is_err() {
        let _ = fs::remove_file(&beside);
    }
    outcome
}

fn remove(cx: &mut Cx, wanted: &[String]) -> Result<u8> {
    let (runs, sessions) = (texts(cx, "run")?, texts(cx, "session")?);
    let by_group = !runs.is_empty() || !sessions.is_empty();
    if wanted.is_empty() != by_group {
        return Err(usage("mcpx artifacts rm takes artifacts, or --run or --session")
            .hint("mcpx artifacts list shows them; mcpx artifacts gc removes what is old"));
    }
    let keeper = Keeper::new(cx)?;
    let all = match by_group {
        true => keeper.list(&runs, &sessions)?.artifacts,
        // All are found before the first goes, so that a mistyped one removes nothing.
        false => wanted.iter().map(|one| keeper.find(one)).collect::<Result<_>>()?,
    };
    for artifact in &all {
        keeper.remove(artifact)?;
    }
    told(cx, &all, json!({}))
}

fn gc(cx: &mut Cx) -> Result<u8> {
    let swept = Keeper::new(cx)?.gc(cx)?;
    if !cx.json() {
        note(&format!("{} freed, {} left", bytes_text(swept.freed), bytes_text(swept.left)));
    }
    told(cx, &swept.removed, json!({"freed": swept.freed, "left": swept.left}))
}

fn told(cx: &mut Cx, removed: &[Artifact], more: serde_json::Value) -> Result<u8> {
    if cx.json() {
        let mut all = json!({"ok": true, "removed": removed});
        for (key, value) in more.as_object().into_iter().flatten() {
            all[key] = value.clone();
        }
        cx.out.json(&all)?;
        return Ok(0);
    }
    for artifact in removed {
        cx.out.line(&format!("removed {} {}", artifact.id, artifact.name))?;
    }
    if removed.is_empty() {
        note("nothing was removed");
    }
    Ok(0)
}
