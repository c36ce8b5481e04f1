//! `mcpx permissions`: what a permission profile comes to on each runtime.

use super::super::command::{Command, Flag, Group, MANY, Rest, example};
use super::super::cx::{Cx, World};
use crate::catalog::Grant;
use crate::error::{Error, Kind, Result};
use crate::script::effects::{self, Effects, Limit};
use crate::script::permissions::{Flags, Permissions};
use crate::script::profiles;
use crate::script::runtimes::{self, JsKind, Language, Search, Version};
use crate::settings::{SCRIPT_PERMISSIONS, SCRIPT_PROFILES, SCRIPT_RUNTIME, SCRIPT_RUNTIME_ORDER};
use serde_json::{Value, json};
use std::fmt::Write;

/// The command.
pub static COMMAND: Command = Command {
    name: "permissions",
    group: Group::Run,
    words: "[<profile>…]",
    count: (0, MANY),
    rest: Rest::Mixed,
    summary: "Show what permission profiles come to on each runtime",
    about: "For the profiles named, taken together, or else for each one there is: the exact flags that every kind \
            of runtime gets, and what they permit. What a runtime cannot deny is marked as not limited; a profile \
            that a runtime cannot enforce is refused there. Tools that a profile grants are enforced by the daemon, \
            on every runtime.",
    flags: &[
        Flag::value("runtime", "NAME", "Only this one: deno, bun, node, a declared runtime or a path")
            .of("script.runtime"),
        Flag::switch(
            "explain",
            "Say also which runtime auto would take for a file of JavaScript, and why not another",
        ),
    ],
    settings: &["script.permissions", "script.runtimeOrder"],
    examples: &[
        example("mcpx permissions", "every profile"),
        example("mcpx permissions read strict", "the two together"),
        example("mcpx permissions strict --runtime node", "whether one runtime can enforce it"),
        example("mcpx permissions readnet --explain", "which runtime would run a script under it"),
    ],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    let wanted = cx.inv.words()?.join(",");
    let explain = cx.inv.has("explain");
    let world = cx.world()?;
    let defined = world.settings.get(&SCRIPT_PROFILES);
    let texts = match wanted.as_str() {
        "" => profiles::names(defined.as_object().unwrap_or(&serde_json::Map::new())),
        text => vec![text.to_owned()],
    };
    let search =
        Search { settings: &world.settings, env: &cx.env, cwd: &world.cwd, cache: &world.dirs.cache };
    let mut shown = Vec::new();
    for text in &texts {
        let permissions = Permissions::parse(text, &defined)?;
        let on =
            subjects(world, &search)?.into_iter().map(|subject| Row::new(subject, &permissions)).collect();
        let choice = explain.then(|| runtimes::choose(&search, &permissions, Language::JavaScript));
        shown.push(Shown { permissions, rows: on, choice });
    }
    // A script that was meant to run with it could not.
    let refused = |s: &Shown| !wanted.is_empty() && s.rows.iter().all(|r| r.outcome.is_err());
    let exit = if shown.iter().any(refused) { Kind::Refused.row().exit } else { 0 };
    let default = world.settings.get(&SCRIPT_PERMISSIONS);
    if cx.json() {
        let all: Vec<Value> = shown.iter().map(Shown::to_json).collect();
        cx.out.json(&json!({"ok": exit == 0, "default": default, "permissions": all}))?;
    } else {
        let text: Vec<String> = shown.iter().map(|s| s.text(&default)).collect();
        cx.out.text(&text.join("\n"))?;
    }
    Ok(exit)
}

/// A runtime that flags are shown for.
struct Subject {
    kind: JsKind,
    name: String,
    /// Where it is and which version; nothing when it is not installed.
    found: Option<(std::path::PathBuf, Option<Version>)>,
}

/// The runtime that was named, or one of each kind.
fn subjects(world: &World, search: &Search) -> Result<Vec<Subject>> {
    let named = world.settings.get(&SCRIPT_RUNTIME);
    let versioned = |runtime: runtimes::Runtime| {
        // Only node's flags depend on its version.
        let version = match runtime.kind {
            JsKind::Node => Some(runtimes::version(search, &runtime.bin)?),
            JsKind::Deno | JsKind::Bun => None,
        };
        Ok::<_, Error>(Subject {
            kind: runtime.kind,
            name: runtime.name,
            found: Some((runtime.bin, version)),
        })
    };
    if named != "auto" && !named.is_empty() {
        return Ok(vec![versioned(runtimes::resolve(search, &named)?)?]);
    }
    let mut names = world.settings.get(&SCRIPT_RUNTIME_ORDER);
    for kind in JsKind::ALL {
        if !names.iter().any(|n| n == kind.word()) {
            names.push(kind.word().to_owned());
        }
    }
    let mut all = Vec::new();
    for name in names {
        match (runtimes::resolve(search, &name).and_then(versioned), JsKind::from_word(&name)) {
            (Ok(subject), _) => all.push(subject),
            (Err(e), None) => return Err(e),
            (Err(_), Some(kind)) => all.push(Subject { kind, name, found: None }),
        }
    }
    Ok(all)
}

/// What permissions come to on one runtime.
struct Row {
    subject: Subject,
    outcome: Result<(Flags, Effects)>,
}

impl Row {
    fn new(subject: Subject, permissions: &Permissions) -> Row {
        let version = subject.found.as_ref().and_then(|(_, version)| *version);
        let outcome = permissions.flags(subject.kind, version).map(|flags| {
            let effects = effects::of(subject.kind, version, &flags.flags);
            (flags, effects)
        });
        Row { subject, outcome }
    }

    fn to_json(&self) -> Value {
        let mut row = json!({"runtime": self.subject.name, "kind": self.subject.kind.word(), "installed": self.subject.found.is_some()});
        if let Some((bin, version)) = &self.subject.found {
            row["bin"] = json!(bin);
            if let Some(version) = version {
                row["version"] = version.to_string().into();
            }
        }
        match &self.outcome {
            Ok((flags, effects)) => {
                row["flags"] = json!(flags.flags);
                row["sandboxed"] = flags.sandboxed.into();
                row["may"] = effects
                    .each()
                    .iter()
                    .map(|(what, limit)| ((*what).to_owned(), json!(limit.words())))
                    .collect::<serde_json::Map<_, _>>()
                    .into();
                let open = effects
                    .each()
                    .iter()
                    .filter(|(_, l)| **l == Limit::Unlimited)
                    .map(|(w, _)| *w)
                    .collect::<Vec<_>>();
                row["notLimited"] = json!(open);
            }
            Err(e) => row["refused"] = e.to_json(),
        }
        row
    }

    fn text(&self) -> String {
        let mut out = format!("  {}", self.subject.name);
        match &self.subject.found {
            Some((_, Some(version))) => out.push_str(&format!(" {version}")),
            Some((_, None)) => {}
            None => out.push_str(" (not installed)"),
        }
        match &self.outcome {
            Err(e) => {
                out.push_str(&format!(": refused\n    {}\n", e.message()));
                if let Some(hint) = e.hint_text() {
                    out.push_str(&format!("    {hint}\n"));
                }
            }
            Ok((flags, effects)) => {
                let list = if flags.flags.is_empty() { "no flags".to_owned() } else { flags.flags.join(" ") };
                out.push_str(&format!(": {list}\n"));
                let with = |wanted: &Limit| {
                    let names =
                        effects.each().into_iter().filter(|(_, l)| *l == wanted).map(|(what, _)| what);
                    names.collect::<Vec<_>>().join(", ")
                };
                for (title, names) in [
                    ("permits", with(&Limit::All)),
                    ("denies", with(&Limit::None)),
                    ("does not limit", with(&Limit::Unlimited)),
                ] {
                    if !names.is_empty() {
                        out.push_str(&format!("    {title}: {names}\n"));
                    }
                }
                for (what, limit) in effects.each() {
                    if let Limit::Within(values) = limit {
                        out.push_str(&format!("    {what}: only {values}\n"));
                    }
                }
            }
        }
        out
    }
}

/// One set of permissions.
struct Shown {
    permissions: Permissions,
    rows: Vec<Row>,
    choice: Option<Result<runtimes::Runtime>>,
}

impl Shown {
    fn to_json(&self) -> Value {
        let mut out = json!({
            "profiles": self.permissions.names(),
            "runtimes": self.rows.iter().map(Row::to_json).collect::<Vec<_>>(),
        });
        if let Some(meaning) = self.meaning() {
            out["description"] = meaning.into();
        }
        if let Some(grants) = self.permissions.grants() {
            out["tools"] = json!(grants);
        }
        match &self.choice {
            Some(Ok(runtime)) => {
                let skipped: Vec<Value> =
                    runtime.skipped.iter().map(|(name, why)| json!({"runtime": name, "why": why})).collect();
                out["auto"] = json!({"runtime": runtime.name, "why": runtime.why, "passedOver": skipped});
            }
            Some(Err(e)) => out["auto"] = json!({"error": e.to_json()}),
            None => {}
        }
        out
    }

    fn meaning(&self) -> Option<String> {
        let all: Vec<&str> =
            self.permissions.profiles().iter().filter_map(|p| p.description.as_deref()).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    fn text(&self, default: &str) -> String {
        let names = self.permissions.names();
        let mut out = names.clone();
        if names == default {
            out.push_str(" (script.permissions)");
        }
        if let Some(meaning) = self.meaning() {
            let _ = write!(out, ": {meaning}");
        }
        out.push('\n');
        if let Some(grants) = self.permissions.grants() {
            let patterns: Vec<&str> = grants.iter().map(Grant::pattern).collect();
            let list = if patterns.is_empty() { "none".to_owned() } else { patterns.join(", ") };
            let _ = writeln!(out, "  tools, on every runtime: {list}");
        }
        for row in &self.rows {
            out.push_str(&row.text());
        }
        match &self.choice {
            Some(Ok(runtime)) => {
                let _ = writeln!(out, "  auto takes {}: {}", runtime.name, runtime.why);
                for (name, why) in &runtime.skipped {
                    let _ = writeln!(out, "    not {name}: {why}");
                }
            }
            Some(Err(e)) => {
                let _ = writeln!(out, "  auto takes none: {}", e.message());
            }
            None => {}
        }
        out
    }
}
