//! `mcpx config`: what configuration is in effect here, and where each value comes from.

use super::super::args::usage;
use super::super::command::{Command, Flag, Group, Rest, example};
use super::super::cx::{Cx, World};
use super::super::out::note;
use super::super::unusable;
use super::settings::quoted;
use crate::config::{Config, schema, search_path};
use crate::error::{Error, Kind, Result};
use crate::settings::{self, Resolved, Source};
use serde_json::{Value, json};
use std::fmt::Write;

/// The command.
pub static COMMAND: Command = Command {
    name: "config",
    group: Group::Setup,
    words: "",
    count: (0, 0),
    rest: Rest::Mixed,
    summary: "Show which configuration is in effect here, and its faults",
    about: "Without a flag: the files that contribute, their servers and presets, every unknown key with the nearest \
            known one, and everything that is wrong, hooks and servers that cannot be used included, each with file, line and column; \
            with a fault the exit code is 65 \
            (2 for a variable or a flag). With plumbing.strictUnknownKeys an unknown key is an error, exit code 65.",
    flags: &[
        Flag::switch("path", "Only the path of the nearest file"),
        Flag::switch("sources", "Every value that is not the default, by where it comes from"),
        Flag::switch("defaults", "The defaults, as a configuration file"),
        Flag::switch("schema", "The JSON Schema of a configuration file, for an editor"),
        Flag::switch("plumbing", "Where things are kept and looked for, and the key of the daemon"),
    ],
    settings: &["preset", "plumbing.strictUnknownKeys"],
    examples: &[
        example("mcpx config", "what is in effect here"),
        example("mcpx config --sources --preset ci", "where each value comes from"),
        example(
            "mcpx config --schema > mcpx.schema.json",
            "for an editor; \"$schema\" in a file may name it",
        ),
    ],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    let given: Vec<&str> = cx.inv.flags.iter().map(|(f, _)| f.name).collect();
    if let [first, second, ..] = given.as_slice()
        && first != second
    {
        return Err(usage(format!("--{first} and --{second} ask for different things")));
    }
    match given.first().copied() {
        Some("path") => path(cx),
        Some("sources") => sources(cx),
        Some("defaults") => {
            cx.out.text(settings::defaults_json())?;
            Ok(0)
        }
        Some("schema") => {
            let text = serde_json::to_string_pretty(&schema());
            let text = text.map_err(|e| super::super::internal(format!("writing JSON: {e}")))?;
            cx.out.line(&text)?;
            Ok(0)
        }
        Some("plumbing") => plumbing(cx),
        _ => overview(cx),
    }
}

fn path(cx: &mut Cx) -> Result<u8> {
    let files: Vec<_> = cx.world()?.config.sources.iter().map(|s| s.path.clone()).collect();
    let Some(nearest) = files.first() else {
        let error = Error::new(Kind::NotFound, "there is no configuration file here, above, or of the user");
        return Err(error.hint("mcpx init writes one; mcpx config --plumbing lists where one is looked for"));
    };
    if cx.json() {
        cx.out.json(&json!({"ok": true, "path": nearest, "files": files}))?;
    } else {
        cx.out.line(&nearest.to_string_lossy())?;
    }
    Ok(0)
}

/// The presets that are in effect, in their order.
fn selected(world: &World) -> Vec<String> {
    world.settings.get(&settings::PRESET)
}

/// Shows everything that is wrong, and the files that it was found in. The exit code is the first fault's.
fn faults(cx: &mut Cx, config: &Config, faults: &[Error]) -> Result<u8> {
    let exit = faults.first().map_or(0, Error::exit_code);
    let unusable = config.servers.iter().filter_map(|s| s.problem.as_ref());
    if cx.json() {
        cx.out.json(&json!({
            "ok": false,
            "files": config.sources.iter().map(|s| json!({"path": s.path, "digest": s.digest})).collect::<Vec<_>>(),
            "faults": faults.iter().map(Error::to_json).collect::<Vec<_>>(),
            "problems": unusable.map(Error::to_json).collect::<Vec<_>>(),
            "warnings": config.warnings,
        }))?;
        return Ok(exit);
    }
    let mut text = String::new();
    if !config.sources.is_empty() {
        text.push_str("FILES, the nearest first\n");
        lines(&mut text, config.sources.iter().map(|s| s.path.display().to_string()));
        text.push('\n');
    }
    text.push_str("FAULTS\n");
    let shown = |e: &Error| {
        let hint = e.hint_text().map(|h| format!("\n    {h}")).unwrap_or_default();
        format!("{}{hint}", e.message().replace('\n', "\n  "))
    };
    lines(&mut text, faults.iter().map(shown));
    let problems: Vec<String> = unusable.map(|e| e.message().to_owned()).collect();
    let mut warnings = config.warnings.clone();
    warnings.retain(|w| !faults.iter().any(|e| e.message() == w));
    for (title, each) in [("PROBLEMS", problems), ("WARNINGS", warnings)] {
        if !each.is_empty() {
            let _ = writeln!(text, "\n{title}");
            lines(&mut text, each.into_iter());
        }
    }
    cx.out.text(&text)?;
    let (n, s) = (faults.len(), if faults.len() == 1 { "" } else { "s" });
    note(&format!("the configuration has {n} fault{s}; no other command works here until they are gone"));
    Ok(exit)
}

fn overview(cx: &mut Cx) -> Result<u8> {
    if cx.world().is_err() {
        let (config, found) = cx.survey()?;
        if !found.is_empty() {
            return faults(cx, &config, &found);
        }
    }
    let world = cx.world()?;
    let config = &world.config;
    let presets = settings::defined_presets(&config.layers)?;
    let chosen = selected(world);
    let changed = world.settings.iter().filter(|row| row.source != Source::Default).count();
    let faulty: Vec<_> = config.servers.iter().filter_map(|s| Some((s, s.problem.as_ref()?))).collect();
    let unusable = unusable::in_force(&world.settings);
    let off = config.servers.iter().filter(|s| !s.enabled).count();
    // What cannot be used is no hindrance to anything else, and a fault all the same.
    let exit = faulty.iter().map(|(_, e)| *e).chain(&unusable).map(Error::exit_code).next().unwrap_or(0);
    if cx.json() {
        let described: Vec<Value> = presets
            .iter()
            .map(|p| {
                let flags: Vec<String> = p
                    .flags
                    .iter()
                    .map(|f| f.value.as_ref().map_or_else(|| f.flag.clone(), |v| format!("{}={v}", f.flag)))
                    .collect();
                json!({"name": p.name, "flags": flags, "path": p.path.as_path(), "line": p.line, "selected": chosen.contains(&p.name)})
            })
            .collect();
        let body = json!({
            "ok": exit == 0,
            "files": config.sources.iter().map(|s| json!({"path": s.path, "digest": s.digest})).collect::<Vec<_>>(),
            "key": config.key,
            "serversDigest": config.servers_digest,
            "servers": config.servers.iter().map(|s| json!({
                "name": s.name, "enabled": s.enabled, "path": s.source.as_path(), "line": s.line,
                "problem": s.problem.as_ref().map(Error::to_json),
            })).collect::<Vec<_>>(),
            "presets": described,
            "problems": unusable.iter().map(Error::to_json).collect::<Vec<_>>(),
            "warnings": config.warnings,
            "settings": changed,
        });
        cx.out.json(&body)?;
        return Ok(exit);
    }
    let mut text = String::new();
    match config.sources.as_slice() {
        [] => text.push_str("no configuration file; mcpx init writes one\n"),
        files => {
            text.push_str("FILES, the nearest first\n");
            lines(&mut text, files.iter().map(|s| s.path.display().to_string()));
        }
    }
    let _ = write!(text, "\nservers   {}", config.servers.len());
    for (count, what) in [(off, "switched off"), (faulty.len(), "cannot be used")] {
        if count > 0 {
            let _ = write!(text, ", {count} {what}");
        }
    }
    let names: Vec<&str> = presets.iter().map(|p| p.name.as_str()).collect();
    let _ = write!(text, "\npresets   {}", if names.is_empty() { "none".into() } else { names.join(", ") });
    if !chosen.is_empty() {
        let _ = write!(text, "; in effect: {}", chosen.join(", "));
    }
    let _ = writeln!(text, "\nsettings  {changed} not at their default; mcpx config --sources lists them");
    if !faulty.is_empty() || !unusable.is_empty() {
        text.push_str("\nPROBLEMS\n");
        let each = faulty.iter().map(|(_, e)| *e).chain(&unusable);
        lines(&mut text, each.map(|e| e.message().to_owned()));
    }
    if !config.warnings.is_empty() {
        text.push_str("\nWARNINGS\n");
        lines(&mut text, config.warnings.iter().cloned());
    }
    cx.out.text(&text)?;
    Ok(exit)
}

/// Adds lines, indented.
fn lines(text: &mut String, each: impl Iterator<Item = String>) {
    for line in each {
        let _ = writeln!(text, "  {line}");
    }
}

fn sources(cx: &mut Cx) -> Result<u8> {
    let world = cx.world()?;
    let rows: Vec<&Resolved> = world.settings.iter().collect();
    let mut parts: Vec<(String, Vec<&Resolved>)> = Vec::new();
    // The weakest first, as they were laid over one another.
    for file in world.config.sources.iter().rev() {
        let of = |r: &&&Resolved| matches!(&r.source, Source::File(path, _) if path.as_path() == file.path);
        parts.push((format!("FROM FILE {}", file.path.display()), rows.iter().filter(of).copied().collect()));
    }
    type Chosen = fn(&Source) -> bool;
    let titles: [(&str, Chosen); 3] = [
        ("FROM ENVIRONMENT", |s| matches!(s, Source::Env(_))),
        ("FROM PRESET", |s| matches!(s, Source::Preset(..))),
        ("FROM FLAG", |s| matches!(s, Source::Flag(_))),
    ];
    for (title, is) in titles {
        parts.push((title.to_owned(), rows.iter().filter(|r| is(&r.source)).copied().collect()));
    }
    parts.retain(|(_, rows)| !rows.is_empty());
    if cx.json() {
        let mut out = Vec::new();
        for (title, rows) in &parts {
            let rows = rows.iter().map(|r| world.settings.row(r.key)).collect::<Result<Vec<Value>>>()?;
            out.push(json!({"from": title.trim_start_matches("FROM ").to_lowercase(), "settings": rows}));
        }
        cx.out.json(&json!({"ok": true, "sources": out}))?;
        return Ok(0);
    }
    let mut text = String::new();
    for (title, rows) in &parts {
        let blank = if text.is_empty() { "" } else { "\n" };
        let _ = writeln!(text, "{blank}{title}");
        for row in rows {
            let displaced: Vec<String> =
                row.displaced.iter().map(|d| format!("{} ({})", quoted(&d.value.text()), d.source)).collect();
            let _ = writeln!(
                text,
                "  {} = {}  {}, instead of {}",
                row.key,
                quoted(&row.value.text()),
                row.source,
                displaced.join(", ")
            );
        }
    }
    if text.is_empty() {
        text.push_str("every setting is at its default; mcpx config --defaults prints them\n");
    }
    cx.out.text(&text)?;
    Ok(0)
}

fn plumbing(cx: &mut Cx) -> Result<u8> {
    let world = cx.world()?;
    let looked = search_path(&world.cwd, &world.dirs);
    let family = |row: &&Resolved| row.key.starts_with("plumbing.");
    let own: Vec<&Resolved> = world.settings.iter().filter(family).collect();
    let places =
        [("state", &world.dirs.state), ("cache", &world.dirs.cache), ("runtime", &world.dirs.runtime)];
    let body = json!({
        "ok": true,
        "key": world.config.key,
        "serversDigest": world.config.servers_digest,
        "state": world.dirs.state,
        "cache": world.dirs.cache,
        "runtime": world.dirs.runtime,
        "searched": looked,
        "settings": own.iter().map(|r| world.settings.row(r.key)).collect::<Result<Vec<Value>>>()?,
    });
    let mut text =
        format!("key            {}\nservers digest {}\n", world.config.key, world.config.servers_digest);
    for (name, path) in places {
        let _ = writeln!(text, "{name:<14} {}", path.display());
    }
    text.push_str("\nSEARCHED, the nearest first\n");
    for path in &looked {
        let there = if path.exists() { "" } else { "  (none)" };
        let _ = writeln!(text, "  {}{there}", path.display());
    }
    text.push_str("\nSETTINGS\n");
    lines(&mut text, own.iter().map(|r| format!("{} = {}  {}", r.key, r.value.text(), r.source)));
    if cx.json() {
        cx.out.json(&body)?;
    } else {
        cx.out.text(&text)?;
    }
    Ok(0)
}
