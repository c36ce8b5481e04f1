//! What a command works with: what was typed, the environment, and (found out
//! when first asked for) the configuration, the settings and the daemon.

use super::args::Invocation;
use super::command::Flag;
use super::commands::COMMANDS;
use super::interrupt::Interrupt;
use super::out::{Out, note};
use super::progress::Progress;
use super::schemas;
use super::strays;
use crate::api::wire::{CallContext, SelectedProfiles};
use crate::api::{Boot, Client, named, without_run};
use crate::config::{self, Config, LoadOptions, Selection};
use crate::daemon::{self, Inline};
use crate::error::{Error, Kind, Result};
use crate::observe::log::Trace;
use crate::paths::Dirs;
use crate::pool::GitEnv;
use crate::settings::{self, Carried, Layers, PresetFlag, Scope, Settings, Source, Taken};
use crate::util::Env;
use std::cell::Cell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// What a command works with.
pub struct Cx {
    /// What was typed.
    pub inv: Invocation,
    /// The environment.
    pub env: Env,
    /// Standard output.
    pub out: Out,
    world: OnceLock<World>,
    /// The same with the servers of a daemon that is elsewhere.
    elsewhere: OnceLock<World>,
    /// The daemon inside this command.
    inline: OnceLock<Inline>,
    /// That a running daemon has other values than were typed was said, or is not so.
    compared: Cell<bool>,
}

/// What is found out from files.
#[derive(Clone)]
pub struct World {
    /// The working directory, absolute.
    pub cwd: PathBuf,
    /// Where mcpx keeps things.
    pub dirs: Dirs,
    /// The configuration in force here.
    pub config: Config,
    /// The settings in force here.
    pub settings: Settings,
    /// The servers to work with.
    pub selection: Selection,
    /// What presets supply for this command, in the order in which they apply.
    pub presets: Vec<PresetFlag>,
}

/// Commands that hand on to a program the signals they get, or have their own way with them.
const HANDS_SIGNALS_ON: &[&str] = &["exec", "run", "serve"];

/// Commands that work without a configuration, whatever is wrong with it.
const ALONE: &[&str] = &["demo-server", "docs", "guard", "help", "hook", "init", "plugin", "version"];

impl Cx {
    /// A context in which nothing has been looked at yet.
    pub fn new(inv: Invocation, mut env: Env, out: Out) -> Cx {
        // Decides where everything else is found, and a daemon or script that we start must agree.
        if let Some(text) = inv.setting("paths.configFile").filter(|t| !t.is_empty()) {
            // Absolute, as whoever inherits the variable may be somewhere else.
            let path = std::path::absolute(text).unwrap_or_else(|_| PathBuf::from(text));
            env.set("MCPX_CONFIG", path);
        }
        Cx {
            inv,
            env,
            out,
            world: OnceLock::new(),
            elsewhere: OnceLock::new(),
            inline: OnceLock::new(),
            compared: Cell::new(false),
        }
    }

    /// The configuration and settings, read once.
    pub fn world(&self) -> Result<&World> {
        if let Some(world) = self.world.get() {
            return Ok(world);
        }
        let world = self.look()?;
        // Said by every command, because a mistyped key is a setting that silently does nothing.
        if self.inv.command.name != "config" {
            world.config.warnings.iter().for_each(|w| note(w));
        }
        Ok(self.world.get_or_init(|| world))
    }

    /// What there is to work with: the configured servers, or those of the daemon that
    /// `daemon.endpoint` names, which are asked for once and without starting any.
    pub fn catalog(&self) -> Result<&World> {
        let world = self.world()?;
        if !named::is_elsewhere(&world.settings) {
            return Ok(world);
        }
        if let Some(elsewhere) = self.elsewhere.get() {
            return Ok(elsewhere);
        }
        let progress = Progress::start("asking the daemon for its servers");
        let client = self.daemon(&progress)?;
        let path = format!("/v1/namespaces?known=true&{}", schemas::selected(world));
        // It waits for no server, so the answer comes as soon as a connection does.
        client.set_timeout(Some(world.settings.get(&settings::DAEMON_CONNECT_TIMEOUT)));
        let rows = schemas::namespace_rows(&client.json("GET", &path, None)?)?;
        drop(progress);
        let endpoint = world.settings.get(&settings::DAEMON_ENDPOINT);
        let mut elsewhere = world.clone();
        elsewhere.config.servers =
            rows.iter().map(|row| Arc::new(schemas::foreign(row, &endpoint))).collect();
        // The daemon has selected already.
        elsewhere.selection = Selection::everything();
        Ok(self.elsewhere.get_or_init(|| elsewhere))
    }

    /// The configuration and settings as they are now, read anew.
    pub fn look(&self) -> Result<World> {
        let cwd = working_directory()?;
        let dirs = self.dirs()?;
        let uid = crate::proc::uid();
        let mut config =
            config::load(&LoadOptions { explicit: None, dir: &cwd, env: &self.env, dirs: &dirs, uid })?;
        config.warnings.extend(strays::variables(&self.env));
        let flags = self.inv.settings.clone();
        let mut layers = Layers { flags, dir: Some(cwd.clone()), ..config.settings_layers(&self.env) };
        let presets = settings::expand_presets(&layers, &|flag| self.takes(flag))?;
        layers.presets.clone_from(&presets);
        let settings = Settings::resolve(layers)?;
        let selection = selection(&config, &settings)?;
        Ok(World { cwd, dirs, config, settings, selection, presets })
    }

    /// The configuration as far as it can be read, and everything that is wrong with it, with
    /// the variables, the presets and the flags.
    pub fn survey(&self) -> Result<(Config, Vec<Error>)> {
        let (cwd, dirs) = (working_directory()?, self.dirs()?);
        let uid = crate::proc::uid();
        let options = LoadOptions { explicit: None, dir: &cwd, env: &self.env, dirs: &dirs, uid };
        let (mut config, mut faults) = config::survey(&options);
        config.warnings.extend(strays::variables(&self.env));
        let flags = self.inv.settings.clone();
        let mut layers = Layers { flags, dir: Some(cwd.clone()), ..config.settings_layers(&self.env) };
        let (presets, wrong) = settings::preset_faults(&layers, &|flag| self.takes(flag));
        layers.presets = presets;
        for e in wrong.into_iter().chain(Settings::faults(&layers)) {
            // The choice of presets is a setting, and is heard of twice.
            if !faults.iter().any(|f| f.message() == e.message()) {
                faults.push(e);
            }
        }
        Ok((config, faults))
    }

    /// Gives the command those of its own flags that presets supply. What was typed wins over them.
    pub fn take_presets(&mut self) -> Result<()> {
        let command = self.inv.command;
        if ALONE.contains(&command.name) || command.flags.iter().all(|f| f.setting.is_some()) {
            return Ok(());
        }
        // What is wrong with the configuration is for the command to say, should it need one.
        let Ok(world) = self.world() else { return Ok(()) };
        let mut given: Vec<(&'static Flag, Option<OsString>)> = Vec::new();
        for entry in world.presets.iter().filter(|e| e.key.is_none()) {
            let Some(flag) = own_flag(&self.inv, &entry.flag) else { continue };
            match (flag.value, &entry.value) {
                (Some(what), None) => {
                    return Err(entry.fault(format!("needs a value: {}={what}", entry.flag)));
                }
                (None, Some(_)) => return Err(entry.fault("takes no value")),
                _ if self.inv.flags.iter().any(|(f, _)| f.name == flag.name) => {}
                (_, value) => given.push((flag, value.as_ref().map(OsString::from))),
            }
        }
        self.inv.flags.splice(0..0, given);
        Ok(())
    }

    /// What a preset's flag is to the running command.
    fn takes(&self, flag: &str) -> Taken {
        // The command's own spelling comes first, as on the command line.
        if let Some(own) = own_flag(&self.inv, flag) {
            return match own.setting.and_then(settings::declared) {
                Some(setting) => Taken::Setting(setting, false),
                None => Taken::Own,
            };
        }
        let name = flag.trim_start_matches('-');
        match (settings::flag_match(flag), COMMANDS.iter().any(|c| c.flag(name).is_some())) {
            (Some((setting, negated)), _) => Taken::Setting(setting, negated),
            (None, true) => Taken::Elsewhere,
            (None, false) => Taken::Nowhere,
        }
    }

    /// Where mcpx keeps things.
    pub fn dirs(&self) -> Result<Dirs> {
        Dirs::from_env(&self.env, crate::proc::uid())
    }

    /// Whether the answer is to be JSON. Before the settings are known, what was typed decides.
    pub fn json(&self) -> bool {
        match self.world.get() {
            Some(world) => world.settings.get(&settings::OUTPUT_JSON),
            None => {
                let typed = self.inv.setting("output.json").or(self.env.text("MCPX_OUTPUT_JSON"));
                typed.is_some_and(|t| !matches!(t, "false" | "0" | "no" | "off"))
            }
        }
    }

    /// Whether to colour standard output.
    pub fn color(&self) -> bool {
        let choice = self.world.get().map(|w| w.settings.get(&settings::OUTPUT_COLOR));
        match choice.as_deref() {
            Some("always") => true,
            Some("never") => false,
            _ => {
                let plain = self.env.text("NO_COLOR").is_some() || self.env.text("TERM") == Some("dumb");
                self.out.is_terminal() && !plain
            }
        }
    }

    /// How wide the terminal is; `None` when standard output is none, and nothing is to be cut.
    pub fn width(&self) -> Option<usize> {
        if !self.out.is_terminal() {
            return None;
        }
        let typed = self.env.text("COLUMNS").and_then(|c| c.parse().ok()).filter(|w| *w > 0);
        typed.or_else(crate::proc::terminal_width).or(Some(FALLBACK_WIDTH))
    }

    /// The daemon of this configuration, if one is running.
    pub fn running(&self) -> Result<Option<Client>> {
        let world = self.world()?;
        let client = match self.is_inline(world) {
            true => self.inline.get().map(|inline| Client::connect(inline.info().clone())).transpose()?,
            false => Client::find(&self.boot(world)?)?,
        };
        if let Some(client) = &client {
            client.carry(&Carried::of(&world.settings));
        }
        Ok(client)
    }

    /// The daemon of this configuration, if one is running; where the configuration is broken,
    /// the one that serves its files, with what is wrong: it keeps the last good one.
    ///
    /// # Errors
    /// What is wrong with the configuration, when no daemon serves its files.
    pub fn running_anyhow(&self) -> Result<(Option<Client>, Option<Error>)> {
        let broken = match self.world() {
            Ok(_) => return Ok((self.running()?, None)),
            Err(e) if e.kind() == Kind::Config => e,
            Err(e) => return Err(e),
        };
        let (cwd, dirs) = (working_directory()?, self.dirs()?);
        let uid = crate::proc::uid();
        let options = LoadOptions { explicit: None, dir: &cwd, env: &self.env, dirs: &dirs, uid };
        let Some(client) = Client::find_over(&dirs, &config::existing(&options)) else { return Err(broken) };
        // The line and its caret are for the command that needs the configuration.
        let what = broken.message().lines().next().unwrap_or_default();
        note(&format!("the configuration is broken: {what}; the daemon keeps its last good one"));
        Ok((Some(client), Some(broken)))
    }

    /// The daemon of this configuration, started if need be.
    pub fn daemon(&self, progress: &Progress) -> Result<Client> {
        let world = self.world()?;
        let client = match self.is_inline(world) {
            true => self.inline(world)?,
            false => Client::find_or_start(&self.boot(world)?, &|text| progress.say(text))?,
        };
        client.carry(&Carried::of(&world.settings));
        self.compare(world, &client);
        Ok(client)
    }

    /// The daemon that `daemon.endpoint` names, and its address, for what is otherwise read from this
    /// machine's files and needs no configuration.
    ///
    /// # Errors
    /// When it does not answer; what is wrong with the configuration, where that hides which one is meant.
    pub fn named_elsewhere(&self, progress: &Progress) -> Result<Option<(Client, String)>> {
        match self.world() {
            Ok(world) if named::is_elsewhere(&world.settings) => {
                Ok(Some((self.daemon(progress)?, world.settings.get(&settings::DAEMON_ENDPOINT))))
            }
            Ok(_) => Ok(None),
            Err(e) => {
                let said = self.inv.setting("daemon.endpoint").is_some()
                    || self.env.text("MCPX_DAEMON_ENDPOINT").is_some_and(|text| !text.is_empty());
                if said { Err(e) } else { Ok(None) }
            }
        }
    }

    /// This command is its own daemon. One that is named is used all the same.
    fn is_inline(&self, world: &World) -> bool {
        world.settings.get(&settings::DAEMON_INLINE) && !named::is_named(&world.settings)
    }

    /// For what would end with this command if it were its own daemon.
    ///
    /// # Errors
    /// `Usage` where the command is to be its own daemon.
    pub fn needs_lasting(&self, why: &str) -> Result<()> {
        if !self.is_inline(self.world()?) {
            return Ok(());
        }
        Err(super::args::usage(format!("mcpx {}: {why}", self.inv.command.name))
            .hint("leave --no-daemon out; where a file or a variable says it: --no-daemon=false"))
    }

    /// A connection to the daemon inside this command, which is started by the first.
    fn inline(&self, world: &World) -> Result<Client> {
        if self.inline.get().is_none() {
            let inline = Inline::start(daemon::Options {
                explicit: self.env.text("MCPX_CONFIG").map(PathBuf::from),
                dir: world.cwd.clone(),
                env: without_run(&self.env),
                dirs: world.dirs.clone(),
                flags: self.inv.settings.clone(),
                detached: false,
                inline: true,
                ready: None,
                lasting: None,
                notice: Box::new(note),
                // There is no listener that it could be asked on.
                mcp: None,
            })?;
            // What starts a program hands signals on to it, and ends when it has ended.
            if !HANDS_SIGNALS_ON.contains(&self.inv.command.name) {
                Interrupt::ending(inline.stopper())?;
            }
            let _ = self.inline.set(inline);
        }
        let inline =
            self.inline.get().ok_or_else(|| super::internal("there is no daemon in this command"))?;
        self.compared.set(true);
        Client::connect(inline.info().clone())
    }

    /// Says, once, which of the daemon's settings that were typed, or that a preset supplies, a
    /// daemon that runs already has at another value: it keeps its own.
    fn compare(&self, world: &World, client: &Client) {
        if self.compared.replace(true) || client.is_first() {
            return;
        }
        // Those that are the command's own as well were meant for it.
        let of_daemon = |key: &str| {
            settings::declared(key).is_some_and(|d| d.scope() == Scope::Daemon && !d.spec().shared)
        };
        let typed = self.inv.settings.iter().map(|f| (f.key.as_str(), f.spelled.clone()));
        let preset =
            world.presets.iter().filter_map(|p| Some((p.key?, format!("{} of preset {}", p.flag, p.preset))));
        for (key, said) in typed.chain(preset).filter(|(key, _)| of_daemon(key)) {
            let Some(ours) = world.settings.explain(key) else { continue };
            let Ok(theirs) = client.json("GET", &format!("/v1/settings/{key}"), None) else { continue };
            if theirs["value"] != ours.value.to_json() {
                let now = theirs["text"].as_str().unwrap_or_default();
                note(&format!(
                    "the daemon that is running keeps {key} at {now}: {said} is for one that is started (mcpx restart \
                     --daemon {} {}, or mcpx settings for a running one)",
                    said.split(' ').next().unwrap_or_default(),
                    ours.value.text()
                ));
            }
        }
    }

    fn boot<'a>(&'a self, world: &'a World) -> Result<Boot<'a>> {
        Ok(Boot {
            config: &world.config,
            settings: &world.settings,
            dirs: &world.dirs,
            env: &self.env,
            exe: own_path()?,
            dir: &world.cwd,
            flags: &self.inv.settings,
        })
    }

    /// Who is calling: the session is `--session`, else the host's, else that of the run that we are
    /// part of, else none, so that the daemon mints one.
    pub fn context(&self) -> Result<CallContext> {
        let inherited = |name: &str| self.env.text(name).map(str::to_owned);
        let typed = self.inv.text("session")?.map(str::to_owned);
        if typed.as_deref() == Some("") {
            return Err(
                super::args::usage("--session is empty").hint("leave it out for a session of its own")
            );
        }
        let session_id = inherited("MCPX_SESSION_ID");
        let far = named::is_far(&self.world()?.settings);
        Ok(CallContext {
            session: typed.or_else(|| session_id.clone()).or_else(|| inherited("MCPX_SESSION")),
            session_id,
            parent_session_id: inherited("MCPX_PARENT_SESSION_ID"),
            ephemeral: false,
            cwd: Some(self.world()?.cwd.clone()),
            // On another machine these are somebody else's.
            git: if far { GitEnv::default() } else { GitEnv::of(&self.env) },
            pid: (!far).then(std::process::id),
            run: inherited("MCPX_RUN"),
            selection: Some(SelectedProfiles::from(&self.world()?.selection)),
            trace: self.trace(),
        })
    }

    /// The ids that the editor gave: `MCPX_TRACE_IDS`, and its id of this one tool call.
    /// What is not as the table of variables says is left out: it is only for the log.
    pub fn trace(&self) -> Trace {
        let given = self.env.text("MCPX_TRACE_IDS").and_then(|text| serde_json::from_str(text).ok());
        let mut trace: Trace = given.unwrap_or_default();
        if let Some(call) = self.env.text("MCPX_CALL_ID") {
            trace.push(("call_id".into(), call.to_owned()));
        }
        trace
    }
}

/// The servers that the settings choose. A profile that nobody has is a mistake where it was
/// typed for this command; elsewhere it may be meant for other directories.
fn selection(config: &Config, settings: &Settings) -> Result<Selection> {
    let selection = Selection {
        profiles: settings.get(&settings::CATALOG_PROFILE),
        skip_default: settings.get(&settings::CATALOG_SKIP_DEFAULT),
        all: settings.get(&settings::CATALOG_ALL_PROFILES),
    };
    let typed = settings.explain("catalog.profile").is_some_and(|r| matches!(r.source, Source::Flag(_)));
    let known: Vec<&str> =
        config.servers.iter().flat_map(|s| &s.options.profiles).map(String::as_str).collect();
    match selection.profiles.iter().find(|p| typed && *p != "default" && !known.contains(&p.as_str())) {
        None => Ok(selection),
        Some(odd) => {
            let e = super::args::usage(format!("no server here belongs to the profile \"{odd}\""));
            Err(match crate::util::did_you_mean(odd, known) {
                Some(near) => e.hint(near),
                None => e.hint("a server names its profiles in \"mcpx\": {\"profiles\": [\"…\"]}"),
            })
        }
    }
}

/// The flag of the command's own that is spelled so, with its dashes.
fn own_flag(inv: &Invocation, spelled: &str) -> Option<&'static Flag> {
    match spelled.strip_prefix("--") {
        Some(name) => inv.command.flag(name),
        None => {
            let letter = spelled.strip_prefix('-')?;
            inv.command.flags.iter().find(|f| f.short.is_some_and(|s| letter.chars().eq([s])))
        }
    }
}

/// The working directory, absolute.
pub fn working_directory() -> Result<PathBuf> {
    std::env::current_dir()
        .map_err(|e| Error::new(Kind::Unavailable, format!("finding the working directory: {e}")))
}

/// What to say when no server is configured.
pub fn no_servers(world: &World, what: &str) -> Error {
    let e = Error::new(Kind::NotFound, format!("{what}: {}", nothing_configured(world)));
    e.hint("mcpx init writes a .mcpx.json to start from, with a demonstration server in it")
}

/// Why there are no namespaces, as the end of a sentence.
pub fn nothing_configured(world: &World) -> String {
    match world.config.sources.first() {
        None => format!("no configuration was found for {}", world.cwd.display()),
        Some(source) => format!("{} configures no server", source.path.display()),
    }
}

/// This binary's own path.
pub fn own_path() -> Result<PathBuf> {
    let path = crate::proc::own_program().map_err(|e| {
        Error::new(Kind::Unavailable, format!("finding the path of this binary: {e}"))
            .hint("mount /proc, or start mcpx by its absolute path")
    })?;
    // After an upgrade in place Linux appends a mark to the old binary's path; the new one is where it was.
    match path.to_str().and_then(|p| p.strip_suffix(" (deleted)")) {
        Some(upgraded) if Path::new(upgraded).exists() => Ok(PathBuf::from(upgraded)),
        _ => Ok(path),
    }
}

/// How wide a terminal is that does not say.
const FALLBACK_WIDTH: usize = 80;

#[cfg(test)]
mod tests {
    use super::super::args::{Parsed, parse};
    use super::super::out::capture;
    use super::*;

    fn cx(words: &[&str], env: &[(&str, &str)]) -> Cx {
        let argv = ["mcpx"].iter().chain(words).map(std::ffi::OsString::from).collect();
        let Ok(Parsed::Run(inv)) = parse(argv) else { panic!("{words:?} runs nothing") };
        // Nothing of the developer's own configuration takes part.
        let mut env = Env::from_pairs(env.iter().copied());
        env.set("HOME", "/nonexistent");
        env.set("MCPX_CONFIG", concat!(env!("CARGO_MANIFEST_DIR"), "/src/config/starter.jsonc"));
        Cx::new(inv, env, capture())
    }

    #[test]
    fn the_session_is_the_flags_then_the_hosts_then_the_runs() {
        let host = [("MCPX_SESSION_ID", "host"), ("MCPX_SESSION", "run")];
        let session = |words: &[&str], env: &[(&str, &str)]| cx(words, env).context().unwrap().session;
        assert_eq!(session(&["call", "a.b", "--session", "typed"], &host).as_deref(), Some("typed"));
        assert_eq!(session(&["call", "a.b"], &host).as_deref(), Some("host"));
        let run = [("MCPX_SESSION_ID", ""), ("MCPX_SESSION", "run")];
        assert_eq!(session(&["call", "a.b"], &run).as_deref(), Some("run"));
        assert_eq!(session(&["call", "a.b"], &[]), None);
        assert!(cx(&["call", "a.b", "--session", ""], &[]).context().is_err());
    }

    #[test]
    fn flags_outrank_the_environment_and_reach_whoever_inherits_it() {
        let cx = cx(&["ls", "--json", "--config", "x.json"], &[("MCPX_OUTPUT_JSON", "false")]);
        assert!(cx.json());
        let inherited = PathBuf::from(cx.env.get("MCPX_CONFIG").unwrap());
        assert!(inherited.is_absolute() && inherited.ends_with("x.json"), "{inherited:?}");
        // A file that is named must be there.
        assert_eq!(cx.world().err().unwrap().exit_code(), 65);
    }
}
