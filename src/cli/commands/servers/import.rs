//! `mcpx servers import`: takes over the servers that another host has.

use super::super::super::args::usage;
use super::super::super::cx::{Cx, World};
use super::super::super::out::note;
use super::{announce, explicit, listener, target};
use crate::config::import::{self, Found, HOSTS, Host, Imported};
use crate::config::servers::{self, How};
use crate::config::{self, Config, ServerDef};
use crate::error::{Error, Kind, Result};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The largest file that is read; far beyond what any host writes.
const MAX_FILE: u64 = 64 << 20;

/// A file to take servers from.
pub struct Source {
    host: Option<&'static Host>,
    found: Found,
}

impl Source {
    /// Every file of every host, as seen from a directory.
    pub fn all(cx: &Cx, dir: &Path) -> Result<Vec<Source>> {
        let dirs = cx.dirs()?;
        let each = HOSTS.iter().flat_map(|host| {
            host.files(dir, &cx.env, &dirs).into_iter().map(|found| Source { host: Some(host), found })
        });
        Ok(each.collect())
    }

    fn title(&self) -> &'static str {
        self.host.map_or("file", |h| h.title)
    }

    fn servers(&self, dir: &Path) -> Result<Vec<Imported>> {
        let path = &self.found.path;
        let text = read(path)?;
        match self.host {
            Some(host) => host.read(&text, path, dir),
            None => import::read_any(&text, path, dir),
        }
    }
}

fn read(path: &Path) -> Result<String> {
    let fail = |kind, what: String| Error::new(kind, format!("reading {}: {what}", path.display()));
    let meta = std::fs::metadata(path).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => fail(Kind::Unreadable, "there is no such file".into()),
        _ => Error::unreadable(path.display(), &e),
    })?;
    if !meta.is_file() {
        return Err(fail(Kind::Unreadable, "it is not a regular file".into()));
    }
    if meta.len() > MAX_FILE {
        return Err(fail(Kind::TooLarge, "it is larger than any host's configuration".into()));
    }
    let bytes = std::fs::read(path).map_err(|e| Error::unreadable(path.display(), &e))?;
    String::from_utf8(bytes).map_err(|_| fail(Kind::Config, "the file is not valid UTF-8".into()))
}

/// What became of one server.
pub struct Row {
    name: String,
    from: PathBuf,
    host: &'static str,
    /// The file that it went to, or why it was left out.
    fate: Result<PathBuf, String>,
    notes: Vec<String>,
    block: Option<Value>,
}

impl Row {
    /// The row for a program, secrets masked.
    pub fn to_json(&self) -> Value {
        let mut row = json!({
            "server": self.name, "host": self.host, "from": self.from,
            "taken": self.fate.is_ok(), "notes": self.notes,
        });
        match &self.fate {
            Ok(path) => row["to"] = json!(path),
            Err(why) => row["why"] = why.as_str().into(),
        }
        if let Some(block) = &self.block {
            row["definition"] = servers::masked(block);
        }
        row
    }
}

/// The rows for a person.
pub fn text(rows: &[Row], dry: bool) -> String {
    let mut out = String::new();
    let verb = if dry { "would take" } else { "took" };
    for row in rows {
        let (name, from) = (&row.name, row.from.display());
        let _ = match &row.fate {
            Ok(to) => writeln!(out, "{verb} {name} from {from} into {}", to.display()),
            Err(why) => writeln!(out, "skipped {name} of {from}: {why}"),
        };
        for note in &row.notes {
            let _ = writeln!(out, "    {note}");
        }
    }
    let taken = rows.iter().filter(|r| r.fate.is_ok()).count();
    let _ = writeln!(out, "{verb} {taken}, skipped {}", rows.len() - taken);
    out
}

/// What an import is to do.
pub struct Import<'a> {
    /// The directory that it is seen from.
    pub dir: &'a Path,
    /// What is configured already.
    pub config: &'a Config,
    /// Replace what has the same name.
    pub force: bool,
    /// Change nothing.
    pub dry: bool,
}

/// Takes the servers of these files over, each into the file that `to` says.
pub fn import(
    what: &Import<'_>,
    sources: &[Source],
    to: &dyn Fn(&Found) -> Result<PathBuf>,
    strict: bool,
) -> Result<Vec<Row>> {
    let mut rows: Vec<Row> = Vec::new();
    let mut seen: HashMap<String, (PathBuf, Value)> = HashMap::new();
    for source in sources {
        let found = match source.servers(what.dir) {
            Ok(found) => found,
            Err(e) if strict => return Err(e),
            Err(e) => {
                note(e.message());
                continue;
            }
        };
        for Imported { name, block, notes } in found {
            let fate = match &block {
                Err(why) => Err(why.clone()),
                Ok(block) => settle(what, source, &name, block, &seen).map_or_else(
                    || {
                        let path = to(&source.found).map_err(|e| e.message().to_owned())?;
                        take(what, &path, &name, block, !source.found.project)
                    },
                    Err,
                ),
            };
            let block = block.ok();
            if let (Ok(_), Some(block)) = (&fate, &block) {
                seen.insert(name.clone(), (source.found.path.clone(), block.clone()));
            }
            rows.push(Row {
                name,
                from: source.found.path.clone(),
                host: source.title(),
                fate,
                notes,
                block,
            });
        }
    }
    Ok(rows)
}

/// Why a server is left out, when that is known before anything is written.
fn settle(
    what: &Import<'_>,
    source: &Source,
    name: &str,
    block: &Value,
    seen: &HashMap<String, (PathBuf, Value)>,
) -> Option<String> {
    if Imported::is_switch(block) {
        return match (seen.contains_key(name), what.config.server(name)) {
            (true, _) => None,
            (_, Some(def)) if def.enabled => None,
            (_, Some(_)) => Some("it is switched off already".into()),
            (_, None) => Some("it is only switched off there, and no file defines it".into()),
        };
    }
    let real = source.found.path.canonicalize().unwrap_or_else(|_| source.found.path.clone());
    if what.config.sources.iter().any(|s| s.path == real) {
        return Some("mcpx reads that file itself".into());
    }
    if let Some((path, other)) = seen.get(name) {
        return Some(match other == block {
            true => format!("it is the same as in {}", path.display()),
            false => format!("another server of that name was taken from {}", path.display()),
        });
    }
    let def: &ServerDef = what.config.server(name)?;
    let place = format!("{}:{}", def.source.display(), def.line);
    if servers::block(&def.source, name).ok().flatten().as_ref() == Some(block) {
        return Some(format!("it is configured already, {place}"));
    }
    (!what.force).then(|| format!("another server of that name is configured, {place}; --force replaces it"))
}

fn take(what: &Import<'_>, path: &Path, name: &str, block: &Value, private: bool) -> Result<PathBuf, String> {
    let how = How { replace: what.force, private };
    let outcome = match what.dry {
        true if Imported::is_switch(block) => Ok(path.to_owned()),
        false if Imported::is_switch(block) => servers::switch(path, name, false).map(|change| change.path),
        true => servers::check_foreign(path, name, block).map(|()| path.to_owned()),
        false => servers::put_foreign(path, name, block, how).map(|change| change.path),
    };
    outcome.map_err(|e| e.message().to_owned())
}

/// The command.
pub fn run(cx: &mut Cx, host: Option<&str>) -> Result<u8> {
    let world = cx.world()?;
    let sources = sources(cx, world, host)?;
    let what = Import {
        dir: &world.cwd,
        config: &world.config,
        force: cx.inv.has("force"),
        dry: cx.inv.has("dry-run"),
    };
    let chosen = cx.inv.has("project") || cx.inv.has("user") || explicit(cx, world).is_some();
    let fixed = if chosen { Some(target(cx, world)?) } else { None };
    let to = |found: &Found| match (&fixed, found.project) {
        (Some(path), _) => Ok(path.clone()),
        (None, true) => Ok(config::project_file(&world.cwd, &cx.env, &world.dirs)),
        (None, false) => config::user_file(&world.dirs),
    };
    let client = if what.dry { None } else { listener(cx) };
    let rows = import(&what, &sources, &to, host != Some("all"))?;
    let told = rows.iter().any(|r| r.fate.is_ok()) && announce(client);
    let dry = what.dry;
    if cx.json() {
        let rows: Vec<Value> = rows.iter().map(Row::to_json).collect();
        cx.out.json(&json!({"ok": true, "dryRun": dry, "servers": rows, "reloaded": told}))?;
    } else {
        if rows.is_empty() {
            cx.out.line(&looked_at(&sources))?;
        }
        cx.out.text(&text(&rows, dry))?;
    }
    Ok(0)
}

/// Where servers were looked for, and none found.
fn looked_at(sources: &[Source]) -> String {
    match sources {
        [] => {
            let hosts: Vec<&str> = HOSTS.iter().map(|h| h.title).collect();
            format!("no configuration of another host was found; looked for those of {}", hosts.join(", "))
        }
        found => {
            let files: Vec<String> = found.iter().map(|s| s.found.path.display().to_string()).collect();
            format!("there is no server in {}", files.join(", "))
        }
    }
}

/// The files that the words and flags name.
fn sources(cx: &Cx, world: &World, host: Option<&str>) -> Result<Vec<Source>> {
    let from = cx.inv.value("from").map(|path| world.cwd.join(path));
    let known = match host {
        Some("all") | None => None,
        Some(name) => Some(import::host(name)?),
    };
    match (host, from) {
        (Some("all"), Some(_)) => Err(usage("--from names one file, and all every host's")),
        (_, Some(path)) => Ok(vec![Source { host: known, found: Found { path, project: true } }]),
        (Some("all"), None) => Source::all(cx, &world.cwd),
        (None, None) => {
            let hosts: Vec<&str> = HOSTS.iter().map(|h| h.name).collect();
            Err(usage("mcpx servers import needs a host, or --from FILE")
                .hint(format!("hosts: {}, all", hosts.join(", "))))
        }
        (Some(_), None) => {
            let all = Source::all(cx, &world.cwd)?;
            let own = |s: &Source| s.host.map(|h| h.name) == known.map(|h| h.name);
            let own: Vec<Source> = all.into_iter().filter(own).collect();
            if own.is_empty() {
                let title = known.map_or("", |h| h.title);
                let message = format!("no configuration of {title} was found");
                return Err(Error::new(Kind::NotFound, message).hint("--from FILE names it"));
            }
            Ok(own)
        }
    }
}
