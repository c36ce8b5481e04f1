//! `mcpx settings`: shows settings with their sources, and sets them in a file or in the running daemon.

mod keypath;

use super::super::args::usage;
use super::super::command::{Command, Flag, Group, Rest, example};
use super::super::cx::Cx;
use super::super::out::note;
use super::super::table::{Cell, Table, Tone};
use super::super::unusable;
use crate::api::Client;
use crate::catalog::rows::cut;
use crate::config::edit::Edit;
use crate::config::{project_file, user_file};
use crate::error::{Error, Kind, Result};
use crate::settings::{self, Declared};
use crate::util::did_you_mean;
use serde_json::{Value, json};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// The command.
pub static COMMAND: Command = Command {
    name: "settings",
    group: Group::Setup,
    words: "[list [<family>] | get <key> | set <key> <value> | unset <key>]",
    count: (0, 3),
    rest: Rest::Mixed,
    summary: "Show settings with their sources, and set them",
    about: "A value is shown with its source and with everything that it displaced. --daemon asks the running daemon \
            instead of resolving the settings for a command that runs here.\n\n\
            set writes into the project's configuration file: the nearest of mcpx's own here or above, or a new \
            .mcpx.json. --persist user writes into the user's file. Comments and layout stay. --persist runtime \
            overrides the setting in the running daemon, at once and until it ends. unset takes back the same. A \
            secret is read from standard input: give - as its value.\n\n\
            A setting that is an object has members: script.profiles.ci is one of them, script.profiles.ci.net one of \
            its own. Their value is JSON where it is valid JSON, else text.\n\n\
            docs/configuration.md explains every setting.",
    flags: &[
        Flag::value("persist", "runtime|project|user", "Where to set it; the project's file by default"),
        Flag::switch("daemon", "Ask the running daemon, or set it there"),
    ],
    settings: &["preset"],
    examples: &[
        example("mcpx settings list pool", "the settings of the pool"),
        example("mcpx settings get pool.callTimeout", "one, with what it displaced"),
        example("mcpx settings set pool.callTimeout 2m --persist user", "in your own file"),
        example("mcpx settings set logging.level debug --persist runtime", "in the running daemon"),
        example("mcpx settings set script.profiles.ci.deno '[\"--allow-net\"]'", "one member of an object"),
        example("mcpx settings unset pool.callTimeout --persist user", "the default again"),
    ],
    run,
};

/// How much is read of a secret: more than any has, so that a mistaken file does not fill the memory.
const MAX_SECRET: u64 = 64 * 1024;

/// How much of a value `list` shows where no terminal says how wide it is, lest one of them widen every row.
const LONGEST: usize = 60;

/// What may follow `mcpx settings`.
const VERBS: &[&str] = &["list", "get", "set", "unset"];

/// Where a setting is set.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Persist {
    Runtime,
    Project,
    User,
}

fn run(cx: &mut Cx) -> Result<u8> {
    let words: Vec<String> = cx.inv.words()?.into_iter().map(str::to_owned).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] | ["list"] => list(cx, None),
        ["list", family] => list(cx, Some(family)),
        ["get", key] => get(cx, key),
        ["set", key, value] => set(cx, key, value),
        ["unset", key] => unset(cx, key),
        [verb, ..] if VERBS.contains(verb) => {
            let what = match *verb {
                "list" => "takes one family of settings at most",
                "set" => "needs a key and one value; quote a value with blanks",
                _ => "needs one key",
            };
            Err(usage(format!("mcpx settings {verb} {what}")).hint(super::super::help::usage(&COMMAND)))
        }
        [other, ..] => {
            let error = usage(format!("mcpx settings does not know \"{other}\""));
            let known = settings::declared(other).map(|_| format!("to see it: mcpx settings get {other}"));
            Err(match known.or_else(|| did_you_mean(other, VERBS.iter().copied())) {
                Some(hint) => error.hint(hint),
                None => error.hint(super::super::help::usage(&COMMAND)),
            })
        }
    }
}

/// Where to set it.
fn persist(cx: &Cx) -> Result<Persist> {
    let daemon = cx.inv.has("daemon");
    match cx.inv.text("persist")? {
        None if daemon => Ok(Persist::Runtime),
        None => Ok(Persist::Project),
        Some("runtime") => Ok(Persist::Runtime),
        Some(_) if daemon => {
            Err(usage("--daemon sets it in the running daemon, and --persist says otherwise"))
        }
        Some("project") => Ok(Persist::Project),
        Some("user") => Ok(Persist::User),
        Some(other) => {
            let error = usage(format!("--persist is runtime, project or user, not \"{other}\""));
            Err(match did_you_mean(other, ["runtime", "project", "user"]) {
                Some(near) => error.hint(near),
                None => error,
            })
        }
    }
}

/// The running daemon.
fn daemon(cx: &Cx) -> Result<Client> {
    cx.running()?.ok_or_else(|| {
        Error::new(Kind::Unavailable, "no daemon is running for this configuration")
            .hint("the next command that needs one starts it: mcpx ls, or mcpx daemon in the foreground")
    })
}

fn list(cx: &mut Cx, family: Option<&str>) -> Result<u8> {
    let mut rows = if cx.inv.has("daemon") {
        match daemon(cx)?.json("GET", "/v1/settings", None)?.get_mut("settings").map(Value::take) {
            Some(Value::Array(rows)) => rows,
            _ => return Err(super::super::internal("the daemon's settings are no list")),
        }
    } else {
        cx.world()?.settings.rows()
    };
    if let Some(family) = family {
        let of = |row: &Value| {
            row["key"].as_str().is_some_and(|k| k == family || k.starts_with(&format!("{family}.")))
        };
        rows.retain(of);
        if rows.is_empty() {
            let mut families: Vec<&str> = settings::ALL.iter().map(|d| d.family()).collect();
            families.dedup();
            let error = usage(format!("there is no family of settings \"{family}\""));
            return Err(match did_you_mean(family, families.iter().copied()) {
                Some(near) => error.hint(near),
                None => error.hint(format!("families: {}", families.join(", "))),
            });
        }
    }
    if cx.json() {
        cx.out.json(&json!({"ok": true, "settings": rows}))?;
        return Ok(0);
    }
    let width = cx.width();
    let mut table = Table::new(&["KEY", "VALUE", "SOURCE", "INSTEAD OF"]);
    for row in &rows {
        let tone = if row["source"] == "default" { Tone::Dim } else { Tone::Plain };
        let displaced: Vec<String> =
            displaced(row).map(|(text, source)| format!("{text} ({source})")).collect();
        let fit = |text: &str| match width {
            Some(_) => text.to_owned(),
            None => cut(text, LONGEST),
        };
        table.row(vec![
            Cell::new(text(row, "key")).tone(Tone::Strong),
            Cell::new(fit(quoted(text(row, "text")))),
            Cell::new(text(row, "source")).tone(tone),
            Cell::new(fit(&displaced.join(", "))).tone(Tone::Dim),
        ]);
    }
    let text = table.render(width, cx.color());
    cx.out.text(&text)?;
    Ok(0)
}

fn text<'a>(row: &'a Value, key: &str) -> &'a str {
    row[key].as_str().unwrap_or_default()
}

/// Nothing is shown as two quotes.
pub(super) fn quoted(text: &str) -> &str {
    if text.is_empty() { "\"\"" } else { text }
}

/// What a row displaced: text and source, the strongest first.
fn displaced(row: &Value) -> impl Iterator<Item = (&str, &str)> {
    row["displaced"].as_array().into_iter().flatten().map(|d| (quoted(text(d, "text")), text(d, "source")))
}

fn get(cx: &mut Cx, typed: &str) -> Result<u8> {
    let (setting, path) = keypath::known(typed)?;
    let key = setting.key();
    let mut row = if cx.inv.has("daemon") {
        daemon(cx)?.json("GET", &format!("/v1/settings/{key}"), None)?
    } else {
        cx.world()?.settings.row(key)?
    };
    if !path.is_empty() {
        row = keypath::member(&row, key, &path)?;
    }
    if cx.json() {
        return answer(cx, &row);
    }
    let shown = shown(&row);
    cx.out.text(&shown)?;
    Ok(0)
}

/// The row itself, as JSON.
fn answer(cx: &mut Cx, row: &Value) -> Result<u8> {
    let mut body = json!({"ok": true});
    if let (Some(body), Some(row)) = (body.as_object_mut(), row.as_object()) {
        body.extend(row.clone());
    }
    cx.out.json(&body)?;
    Ok(0)
}

/// A row in a few lines.
fn shown(row: &Value) -> String {
    let mut out = format!(
        "{} = {}\n  from        {}\n",
        text(row, "key"),
        quoted(text(row, "text")),
        text(row, "source")
    );
    let mut title = "instead of";
    for (value, source) in displaced(row) {
        out.push_str(&format!("  {title:<10}  {value}  ({source})\n"));
        title = "";
    }
    out
}

/// A value as it is written into a file: as it was typed, where that is text there too.
fn written(setting: &dyn Declared, typed: &str) -> Result<Value> {
    let parsed = setting.kind().parse_text(typed);
    let parsed = parsed.map_err(|m| usage(format!("{}: {m}", setting.key())))?;
    use settings::Kind as K;
    Ok(match setting.kind() {
        K::Bool | K::Int(..) | K::List | K::Paths | K::Json => parsed.to_json(),
        K::Text | K::Path | K::Source | K::Secret => typed.into(),
        K::Duration(..) | K::Bytes(..) | K::Enum(_) => typed.trim().into(),
    })
}

/// A secret's value: from standard input, as others can read a command line.
fn secret(setting: &dyn Declared, typed: &str) -> Result<String> {
    if typed != "-" {
        return Err(usage(format!("{} is a secret, and others can read a command line", setting.key()))
            .hint("give - as its value, and the secret itself on standard input"));
    }
    let mut text = String::new();
    std::io::stdin()
        .lock()
        .take(MAX_SECRET)
        .read_to_string(&mut text)
        .map_err(|e| Error::unreadable("the secret from standard input", &e))?;
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}

fn set(cx: &mut Cx, key: &str, typed: &str) -> Result<u8> {
    let (setting, inside) = keypath::known(key)?;
    let persist = persist(cx)?;
    if persist == Persist::Runtime {
        // Refused here already, so that a secret is not even asked for.
        settings::changeable(setting.key())?;
        let route = format!("/v1/settings/{}", setting.key());
        let client = daemon(cx)?;
        let value = match inside.is_empty() {
            true => written(setting, typed)?,
            // The daemon's own object, with one member changed.
            false => {
                let mut whole = client.json("GET", &route, None)?["value"].take();
                keypath::put(&mut whole, setting.key(), &inside, keypath::value(typed))?;
                whole
            }
        };
        usable(setting, &inside, &value)?;
        let row = client.json("PUT", &route, Some(&json!({"value": value})))?;
        return changed(cx, row, "until the daemon ends", true);
    }
    let file = file(cx, setting, persist)?;
    let value = match (setting.secret(), inside.is_empty()) {
        (true, _) => written(setting, &secret(setting, typed)?)?,
        (false, true) => written(setting, typed)?,
        (false, false) => keypath::value(typed),
    };
    let before = if inside.is_empty() { None } else { Some(cx.look()?) };
    let mut edit = Edit::open(&file)?;
    // A file may spell a key with its dot; the same spelling is kept.
    let mut path: Vec<&str> = match edit.get(&[setting.key()]) {
        Some(_) => vec![setting.key()],
        None => setting.key().split('.').collect(),
    };
    path.extend(inside.iter().copied());
    edit.set(&path, value)?;
    let depth = path.len() - inside.len();
    usable(setting, &inside, &edit.get(&path[..depth]).unwrap_or_default())?;
    let path = edit.path().to_owned();
    let old = std::fs::read(&path).ok();
    edit.save()?;
    if setting.secret() && std::fs::metadata(&path).is_ok_and(|m| m.mode() & 0o077 != 0) {
        note(&format!("others can read the secret in {0}; close it: chmod 600 {0}", path.display()));
    }
    if let Some(before) = before {
        hidden(&before.settings.row(setting.key())?, &cx.look()?.settings.row(setting.key())?, &path);
    }
    let change = old != std::fs::read(&path).ok();
    after(cx, setting, &path, true, change)
}

/// Refuses what could be read and never be used: of what was typed, not of what was there before.
fn usable(setting: &dyn Declared, inside: &[&str], whole: &Value) -> Result<()> {
    let only = inside.first().and_then(|name| Some(json!({*name: whole.get(*name)?})));
    match unusable::in_value(setting.key(), only.as_ref().unwrap_or(whole)).first() {
        None => Ok(()),
        Some(what) => Err(usage(what.as_str())),
    }
}

/// Says which members of an object are out of force now: a file's object stands in place of that
/// of a file further away, and is not merged with it.
fn hidden(before: &Value, now: &Value, path: &std::path::Path) {
    // What is built in stays beside it.
    if before["source"] == "default" {
        return;
    }
    let names = |row: &Value| -> Vec<String> {
        row["value"].as_object().map(|o| o.keys().cloned().collect()).unwrap_or_default()
    };
    let left = names(now);
    let gone: Vec<String> = names(before).into_iter().filter(|name| !left.contains(name)).collect();
    if !gone.is_empty() {
        note(&format!(
            "{} of {} is out of force here now: {} has an object of its own",
            gone.join(", "),
            text(before, "source"),
            path.display()
        ));
    }
}

fn unset(cx: &mut Cx, key: &str) -> Result<u8> {
    let (setting, inside) = keypath::known(key)?;
    let persist = persist(cx)?;
    if persist == Persist::Runtime {
        let (client, route) = (daemon(cx)?, format!("/v1/settings/{}", setting.key()));
        let before = client.json("GET", &route, None)?;
        // Of an object one member is taken back; with its last the whole is.
        let row = match keypath::without(&before, &inside) {
            Some(rest) => client.json("PUT", &route, Some(&json!({"value": rest})))?,
            None => client.json("DELETE", &route, None)?,
        };
        let change = ["source", "value"].iter().any(|member| before[member] != row[member]);
        return changed(cx, row, "in the daemon", change);
    }
    let file = file(cx, setting, persist)?;
    let mut edit = Edit::open(&file)?;
    let mut removed = false;
    if edit.exists() {
        let nested: Vec<&str> = setting.key().split('.').collect();
        for spelled in [vec![setting.key()], nested] {
            let path = [spelled.as_slice(), inside.as_slice()].concat();
            if edit.remove(&path)? {
                removed = true;
                // What is left empty by it goes too, from the inside.
                for length in (1..path.len()).rev() {
                    edit.prune(&path[..length])?;
                }
            }
        }
    }
    let path = edit.path().to_owned();
    if !removed {
        note(&format!("{} does not set {key}", path.display()));
    } else {
        edit.save()?;
    }
    after(cx, setting, &path, false, removed)
}

/// The file to change.
fn file(cx: &Cx, setting: &dyn Declared, persist: Persist) -> Result<PathBuf> {
    if setting.spec().bootstrap {
        let names = [setting.flag_names(), setting.env_names()].concat().join(" or ");
        let what = format!("{} cannot be set in a configuration file", setting.key());
        return Err(usage(format!("{what}, because it is needed before one is read"))
            .hint(format!("use {names} instead")));
    }
    let dirs = cx.dirs()?;
    match persist {
        Persist::User => user_file(&dirs),
        _ => Ok(project_file(&super::super::cx::working_directory()?, &cx.env, &dirs)),
    }
}

/// Says what is in force now that a file was changed, which need not be what was set.
fn after(cx: &mut Cx, setting: &dyn Declared, path: &std::path::Path, set: bool, change: bool) -> Result<u8> {
    let world = cx.look().map_err(|e| {
        let what =
            format!("{} was changed, but the configuration has a fault: {}", path.display(), e.message());
        Error::new(e.kind(), what)
    })?;
    let mut row = world.settings.row(setting.key())?;
    let source = text(&row, "source").to_owned();
    let ours = source.starts_with(&format!("{}:", path.display()));
    if set && !ours {
        let reads = world.config.sources.iter().any(|s| s.path == path);
        note(&match reads {
            true => format!(
                "{} is {} all the same: {source} outranks the file",
                setting.key(),
                text(&row, "text")
            ),
            false => format!("{} is not among the files that count here", path.display()),
        });
    }
    row["path"] = json!(path);
    changed(cx, row, &format!("in {}", path.display()), change)
}

/// Prints a setting that was changed, or was so already.
fn changed(cx: &mut Cx, mut row: Value, place: &str, change: bool) -> Result<u8> {
    if cx.json() {
        row["changed"] = change.into();
        return answer(cx, &row);
    }
    let verb = if change { "changed" } else { "nothing to change" };
    let head = format!("{verb} {place}\n{}", shown(&row));
    cx.out.text(&head)?;
    Ok(0)
}
