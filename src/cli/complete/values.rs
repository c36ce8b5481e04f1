//! What a flag's value or a command's word may be: from the kinds of settings,
//! the configuration in force, and the schema cache. A cache that is old still
//! helps, and one that is cold says nothing.

use super::super::command::Command;
use super::super::commands::log::{LEVELS, SOURCES};
use super::super::cx::{Cx, World};
use super::super::schemas;
use super::super::topics::TOPICS;
use super::{Answer, Files, Waiting, of_setting};
use crate::artifacts::Store;
use crate::catalog::cache::Cache;
use crate::catalog::{filter, names};
use crate::config::import::HOSTS;
use crate::observe::log::Query;
use crate::script::profiles;
use crate::settings::{self, ALL, Kind};
use serde_json::Value;
use std::cell::OnceCell;
use std::time::Duration;

/// Knows what stands in the configuration here, once that is needed.
pub struct Values<'a> {
    cx: &'a Cx,
    cache: OnceCell<Cache>,
}

impl<'a> Values<'a> {
    /// Looks at nothing yet.
    pub fn new(cx: &'a Cx) -> Values<'a> {
        Values { cx, cache: OnceCell::new() }
    }

    /// What is configured; a configuration that cannot be read offers nothing.
    fn world(&self) -> Option<&'a World> {
        self.cx.world().ok()
    }

    fn cache(&self, world: &World) -> &Cache {
        self.cache.get_or_init(|| Cache::new(&world.dirs.cache))
    }

    /// The values of a flag; `prefix` is what of the word stands before the value.
    pub(super) fn of_flag(&self, flag: &Waiting, typed: &str, prefix: &str, out: &mut Answer) {
        let flag = match flag {
            Waiting::Setting(d) => return of_setting(self, *d, typed, prefix, out),
            Waiting::Own(flag) => flag,
        };
        match flag.value.unwrap_or_default() {
            "SCOPE" => of_kind(&Kind::Enum(settings::SCOPES), prefix, out),
            "SHARING" => of_kind(&Kind::Enum(settings::SHARING), prefix, out),
            "PATH" | "FILE" => out.files = Some(Files::Any),
            "DIR" | "DIRECTORY" => out.files = Some(Files::Directories),
            "LEVEL" => words(LEVELS, prefix, out),
            "WHO" => words(SOURCES, prefix, out),
            "EVENT" => Query::known_events().for_each(|word| out.add(format!("{prefix}{word}"), "")),
            "NAME" if flag.name == "server" => prefixed(prefix, out, |each| self.servers(each)),
            "TOOL" => prefixed(prefix, out, |each| self.tools(typed, each)),
            "NAME" if flag.name == "profile" => self.profiles(typed, prefix, out),
            choices if choices.contains('|') => {
                choices.split('|').for_each(|word| out.add(format!("{prefix}{word}"), ""));
            }
            _ => {}
        }
    }

    /// What a placeholder of a command's usage line stands for.
    pub(super) fn of_word(
        &self,
        name: &str,
        command: &'static Command,
        before: &[String],
        typed: &str,
        out: &mut Answer,
    ) {
        match name {
            "namespace" => self.namespaces(before, out),
            "namespace>.<tool" => self.tools(typed, out),
            "arguments" if command.name == "call" => self.arguments(before, out),
            "server" => self.servers(out),
            "name" if command.name == "run" => self.scripts(out),
            "profile" => self.profile_names(before, out),
            "artifact" => self.artifacts(out),
            "preset" => self.presets(typed, "", out),
            "command" => super::commands(out),
            "topic" => TOPICS.iter().for_each(|t| out.add(t.name, t.summary)),
            "host" => {
                HOSTS.iter().for_each(|h| out.add(h.name, h.title));
                out.add("all", "all of them");
            }
            "key" => ALL.iter().filter(|d| !d.spec().bootstrap).for_each(|d| out.add(d.key(), d.help())),
            "family" => ALL.iter().filter(|d| d.key().contains('.')).for_each(|d| out.add(d.family(), "")),
            "value" => {
                if let Some(d) = before.last().and_then(|key| settings::declared(key)) {
                    of_setting(self, d, typed, "", out);
                }
            }
            "directory" => out.files = Some(Files::Directories),
            "file" | "path" => out.files = Some(Files::Any),
            // A program to start, or a script's own arguments.
            _ if command.name == "run" || command.name == "servers" => out.files = Some(Files::Any),
            _ => {}
        }
    }

    fn namespaces(&self, before: &[String], out: &mut Answer) {
        let Some(world) = self.world() else { return };
        for n in schemas::select(world, &[]).unwrap_or_default() {
            if !before.contains(&n.def.name) {
                out.add(&n.def.name, self.about(world, n.def));
            }
        }
    }

    fn about(&self, world: &World, def: &crate::config::ServerDef) -> String {
        let known = || self.cache(world).summary(&def.name, &def.digest, Duration::MAX)?.description;
        def.description.clone().or_else(known).unwrap_or_default()
    }

    fn tools(&self, typed: &str, out: &mut Answer) {
        let Some(world) = self.world() else { return };
        for n in schemas::select(world, &[]).unwrap_or_default() {
            let prefix = format!("{}.", n.def.name);
            if !typed.starts_with(&prefix) {
                out.open(&prefix, self.about(world, n.def));
                continue;
            }
            let rows = filter::load_rows(self.cache(world), n.def, Duration::MAX).unwrap_or_default();
            for row in rows {
                out.add(format!("{prefix}{}", row.name), row.sentence(ABOUT));
            }
        }
        // The only namespace that is left: its tools are what is wanted.
        let left: Vec<String> =
            out.candidates.iter().filter(|c| c.word.starts_with(typed)).map(|c| c.word.clone()).collect();
        if let [only] = left.as_slice()
            && only.len() > typed.len()
            && only.ends_with('.')
        {
            let mut deeper = Answer::default();
            self.tools(only, &mut deeper);
            deeper.candidates.retain(|c| c.word.starts_with(only.as_str()));
            if !deeper.candidates.is_empty() {
                *out = deeper;
            }
        }
    }

    /// `key=` for each argument that the tool takes and that is not given yet.
    fn arguments(&self, before: &[String], out: &mut Answer) {
        out.files = None;
        let found = (|| {
            let world = self.world()?;
            let servers: Vec<&str> = world.config.servers.iter().map(|s| s.name.as_str()).collect();
            let (server, tool) = names::split_target(before.first()?, &servers).ok()?;
            let def = world.config.server(&server)?;
            let schema = filter::load(self.cache(world), def, Duration::MAX)?;
            names::find_tool(&schema.tools, &tool, &server).ok().map(|t| t.input_schema.clone())
        })();
        let Some(schema) = found else { return };
        for (key, property) in schema["properties"].as_object().into_iter().flatten() {
            let given = |word: &String| {
                word.strip_prefix(key.as_str())
                    .is_some_and(|rest| rest.starts_with('=') || rest.starts_with(":="))
            };
            if !before[1..].iter().any(given) {
                let about = property.get("description").and_then(Value::as_str).unwrap_or_default();
                out.open(format!("{key}="), about);
            }
        }
    }

    fn servers(&self, out: &mut Answer) {
        for def in self.world().into_iter().flat_map(|w| &w.config.servers) {
            out.add(&def.name, def.description.clone().unwrap_or_default());
        }
    }

    fn scripts(&self, out: &mut Answer) {
        let Some(world) = self.world() else { return };
        let further = world.settings.get(&settings::SCRIPT_DIRS);
        for s in crate::script::named_scripts(&world.cwd, &world.dirs, &further) {
            if !s.shadowed {
                out.add(s.name, s.description.unwrap_or_default());
            }
        }
    }

    fn profile_names(&self, before: &[String], out: &mut Answer) {
        let defined = self.world().map(|w| w.settings.get(&settings::SCRIPT_PROFILES)).unwrap_or_default();
        let empty = serde_json::Map::new();
        for name in profiles::names(defined.as_object().unwrap_or(&empty)) {
            if !before.contains(&name) {
                out.add(name, "");
            }
        }
    }

    /// Permission profiles, separated by commas.
    pub(super) fn permissions(&self, typed: &str, prefix: &str, out: &mut Answer) {
        let mut each = Answer::default();
        self.profile_names(&[], &mut each);
        listed(each, typed, prefix, out);
    }

    /// Runtimes.
    pub(super) fn runtimes(&self, prefix: &str, out: &mut Answer) {
        let declared = self.world().map(|w| w.settings.get(&settings::SCRIPT_RUNTIMES)).unwrap_or_default();
        out.add(format!("{prefix}auto"), "the first that is installed and can enforce the permissions");
        for name in ["deno", "bun", "node"] {
            out.add(format!("{prefix}{name}"), "");
        }
        for name in declared.as_object().into_iter().flat_map(|d| d.keys()) {
            out.add(format!("{prefix}{name}"), "declared under script.runtimes");
        }
    }

    /// Profiles of servers, separated by commas.
    pub(super) fn profiles(&self, typed: &str, prefix: &str, out: &mut Answer) {
        let mut each = Answer::default();
        for def in self.world().into_iter().flat_map(|w| &w.config.servers) {
            def.options.profiles.iter().for_each(|p| each.add(p, ""));
        }
        listed(each, typed, prefix, out);
    }

    /// Presets, separated by commas.
    fn artifacts(&self, out: &mut Answer) {
        let Ok(dirs) = self.cx.dirs() else { return };
        for artifact in Store::new(&dirs).list().unwrap_or_default().into_iter().rev() {
            out.add(artifact.id, artifact.name);
        }
    }

    pub(super) fn presets(&self, typed: &str, prefix: &str, out: &mut Answer) {
        let mut each = Answer::default();
        let defined = self.world().and_then(|w| settings::defined_presets(&w.config.layers).ok());
        for preset in defined.unwrap_or_default() {
            let flags: Vec<&str> = preset.flags.iter().map(|f| f.flag.as_str()).collect();
            each.add(preset.name, flags.join(" "));
        }
        listed(each, typed, prefix, out);
    }
}

/// How much of a description is shown beside a candidate.
const ABOUT: usize = 60;

/// Names of which several stand in a word: the last one is being typed, and those before it are not offered again.
fn listed(each: Answer, typed: &str, prefix: &str, out: &mut Answer) {
    let (before, _) = typed.rsplit_once(',').map_or(("", typed), |(before, last)| (before, last));
    let before = if before.is_empty() { String::new() } else { format!("{before},") };
    for c in each.candidates {
        if !before.split(',').any(|word| word == c.word) {
            out.add(format!("{prefix}{before}{}", c.word), c.about);
        }
    }
}

/// Candidates for a flag's value, behind what of the word stands before it.
fn prefixed(prefix: &str, out: &mut Answer, fill: impl FnOnce(&mut Answer)) {
    let mut each = Answer::default();
    fill(&mut each);
    each.candidates.into_iter().for_each(|c| out.push(format!("{prefix}{}", c.word), c.about, c.open));
}

/// Words that a table lists.
fn words(all: &[&str], prefix: &str, out: &mut Answer) {
    all.iter().for_each(|word| out.add(format!("{prefix}{word}"), ""));
}

/// What a value of a kind may be.
pub(super) fn of_kind(kind: &Kind, prefix: &str, out: &mut Answer) {
    match kind {
        Kind::Bool => ["true", "false"].iter().for_each(|w| out.add(format!("{prefix}{w}"), "")),
        Kind::Enum(choices) => {
            for (word, about) in *choices {
                match word.strip_suffix("<x>") {
                    Some(begin) => out.open(format!("{prefix}{begin}"), *about),
                    None => out.add(format!("{prefix}{word}"), *about),
                }
            }
        }
        Kind::Path | Kind::Paths | Kind::Source => out.files = Some(Files::Any),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::commands::COMMANDS;

    #[test]
    fn every_placeholder_of_a_usage_line_is_known_or_free() {
        // What a person makes up, of which nothing can be offered.
        const FREE: &[&str] =
            &["word", "code", "arguments", "program", "address", "session", "time", "pid", "start"];
        const KNOWN: &[&str] = &[
            "namespace",
            "namespace>.<tool",
            "server",
            "name",
            "profile",
            "preset",
            "artifact",
            "command",
            "topic",
            "host",
            "key",
            "family",
            "value",
            "directory",
            "file",
            "path",
            "shell",
            "id",
        ];
        for c in COMMANDS {
            for part in c.words.split('<').skip(1).filter_map(|p| p.split('>').next()) {
                let known = FREE.contains(&part) || KNOWN.contains(&part) || part == "tool";
                assert!(known, "{}: <{part}>", c.name);
            }
        }
    }
}
