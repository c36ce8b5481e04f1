//! Turns what was asked for into a plan: a plain value that says which program
//! runs with which arguments, environment and directory, and that can be
//! printed. Preparing needs no daemon and tells what is wrong; nothing here
//! starts anything, and all that is made is the directory for generated files.

use super::around::Around;
use super::dispatch::{self, EnvChange, Target};
use super::entry::{self, Entry, Inline, Scene};
use super::env::{self, Run, script_env};
use super::faults::Faults;
use super::launcher::{self, Generated, Namespace};
use super::named;
use super::permissions::{self, Permissions};
use super::runtimes::{self, JsKind, Language, Runtime, Search};
use crate::catalog::Grant;
use crate::config::inherit::inherited;
use crate::error::{Error, Kind, Result};
use crate::log;
use crate::paths::Dirs;
use crate::proc;
use crate::settings::{
    LOGGING_LEVEL, SCRIPT_CAPTURE_LIMIT, SCRIPT_DIRS, SCRIPT_INHERIT_ENV, SCRIPT_INTERPRETER,
    SCRIPT_KILL_GRACE, SCRIPT_LOG_SOURCE, SCRIPT_RUNTIME, SCRIPT_TIMEOUT, Settings,
};
use crate::util::Env;
use std::ffi::{OsStr, OsString};
use std::fs::DirBuilder;
use std::io::IsTerminal;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The number under which a script inherits its channel.
pub const CHANNEL: i32 = 3;

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Code, as it was typed or came from stdin.
    Inline(Arc<str>),
    /// A path or the name of a named script, as it was typed.
    Script(String),
}

/// What was asked for.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// What to run.
    pub source: Source,
    /// The script's own arguments.
    pub args: Vec<OsString>,
    /// Where the script's path is meant from, absolute.
    pub from: PathBuf,
    /// The working directory of the script, absolute.
    pub cwd: PathBuf,
    /// Variables on top of the inherited environment (`--env`); the script environment outranks them.
    pub env: Vec<(OsString, OsString)>,
    /// Collect everything into one document instead of passing it through.
    pub capture: bool,
    /// Pass the output through, and have it heard on the way.
    pub watched: bool,
    /// The export to call instead of the default one.
    pub export: Option<String>,
    /// Start the program itself, without what makes tools global and prints its value.
    pub bare: bool,
}

/// What a preparation looks at.
#[derive(Clone, Copy)]
pub struct Local<'a> {
    /// The settings.
    pub settings: &'a Settings,
    /// The environment that mcpx was started with.
    pub env: &'a Env,
    /// The user's directories.
    pub dirs: &'a Dirs,
}

/// What the daemon and the caller know of a run that was opened.
#[derive(Debug, Default)]
pub struct Link {
    /// The run's id.
    pub run: String,
    /// The session key.
    pub session: String,
    /// The key was made for this run alone.
    pub ephemeral: bool,
    /// The session that the host assigned; may be empty.
    pub session_id: String,
    /// The session that spawned it; may be empty.
    pub parent_session_id: String,
    /// The namespaces, in the configuration's order.
    pub namespaces: Vec<Namespace>,
    /// The daemon's unix socket; empty when it is on another machine.
    pub socket: PathBuf,
    /// The daemon's HTTP endpoint; empty when it has none.
    pub endpoint: String,
    /// The token for the endpoint; empty when it has none.
    pub token: String,
    /// The authorities by which the endpoint is known, where they are not the system's; may be empty.
    pub ca_file: String,
    /// The nearest configuration file.
    pub config_path: Option<PathBuf>,
    /// A connection that was upgraded to a channel, where [`Prepared::wants_channel`] says so.
    pub channel: Option<OwnedFd>,
    /// Settings of the caller for its calls, as JSON.
    pub call_settings: Option<String>,
    /// Nobody here can answer a server's question.
    pub report_input: bool,
    /// Set by the exec service: the directory that its caller named, if it named one.
    pub served: Option<PathBuf>,
}

/// What runs the script.
#[derive(Clone, Debug)]
enum Runner {
    Js { runtime: Runtime, language: Language },
    Other { program: PathBuf, args: Vec<OsString>, how: &'static str },
}

/// A run that could start as soon as a daemon has opened it: everything that
/// can be known without one has been found and checked.
#[derive(Clone, Debug)]
pub struct Prepared {
    spec: RunSpec,
    runner: Runner,
    permissions: Permissions,
    inline: Option<Inline>,
    script: Option<PathBuf>,
    change: EnvChange,
    base: Env,
    cache: PathBuf,
    around: Around,
    script_dirs: Vec<PathBuf>,
    log_level: String,
    log_source: String,
    timeout: Option<Duration>,
    kill_grace: Duration,
    capture_limit: u64,
}

/// Finds the script, its runtime and its permissions.
///
/// # Errors
/// Whatever is wrong with them, and `faults` that were found before, all at once,
/// with the exit code of the first.
pub fn prepare(spec: &RunSpec, local: &Local, mut faults: Faults) -> Result<Prepared> {
    let Local { settings, env, dirs } = *local;
    let permissions = faults.keep(Permissions::from_settings(settings));
    let (mut inline, mut script, mut change) = (None, None, EnvChange::default());
    let found = match &spec.source {
        Source::Inline(code) => {
            let code = Inline::new(code);
            let language = if code.is_module() { Language::InlineModule } else { Language::Inline };
            inline = Some(code);
            Ok(Target::Js { language, prefer: None })
        }
        Source::Script(wanted) => {
            let interpreters = settings.get(&SCRIPT_INTERPRETER);
            let places = named::Places {
                from: &spec.from,
                cwd: &spec.cwd,
                dirs,
                further: &settings.get(&SCRIPT_DIRS),
                interpreters: &interpreters,
            };
            named::find(wanted, &places).and_then(|path| {
                let path = dispatch::absolute(&path);
                let (target, asked) = dispatch::inspect(&path, &interpreters)?;
                script = Some(path);
                change = asked;
                Ok(target)
            })
        }
    };
    let target = faults.keep(found);
    let wanted = settings.get(&SCRIPT_RUNTIME);
    let search = Search { settings, env, cwd: &spec.cwd, cache: &dirs.cache };
    if permissions.is_none() && wanted != "auto" && matches!(target, None | Some(Target::Js { .. })) {
        // Nothing is known of the flags, but whether there is such a runtime is.
        faults.keep(runtimes::resolve(&search, &wanted));
    }
    if let Some(target) = &target {
        faults.keep(check_export(spec, target));
    }
    let around = Around::read(settings, &spec.cwd, &mut faults);
    let (Some(permissions), Some(target)) = (permissions, target) else {
        faults.check()?;
        return Err(Error::new(Kind::Internal, "a script without a fault could not be prepared"));
    };
    let runner = faults.keep(runner(spec, local, &search, &permissions, target));
    faults.check()?;
    let Some(runner) = runner else {
        return Err(Error::new(Kind::Internal, "a runtime without a fault could not be found"));
    };
    let timeout = settings.get(&SCRIPT_TIMEOUT);
    Ok(Prepared {
        spec: spec.clone(),
        runner,
        permissions,
        inline,
        script,
        change,
        base: inherited(&settings.get(&SCRIPT_INHERIT_ENV), env),
        cache: writable(dirs),
        around,
        script_dirs: named::directories(&spec.cwd, dirs, &settings.get(&SCRIPT_DIRS)),
        log_level: settings.get(&LOGGING_LEVEL),
        log_source: settings.get(&SCRIPT_LOG_SOURCE),
        timeout: (!timeout.is_zero()).then_some(timeout),
        kill_grace: settings.get(&SCRIPT_KILL_GRACE),
        capture_limit: settings.get(&SCRIPT_CAPTURE_LIMIT),
    })
}

/// A script that was found, and the language that its file is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, absolute.
    pub path: PathBuf,
    /// `javascript`, or the name of the interpreter that its first line or extension stands for.
    pub language: String,
}

/// Finds a script without preparing it: for a machine that has what runs it.
///
/// # Errors
/// As [`prepare`], for the script alone.
pub fn place(wanted: &str, spec: &RunSpec, local: &Local) -> Result<Place> {
    let interpreters = local.settings.get(&SCRIPT_INTERPRETER);
    let places = named::Places {
        from: &spec.from,
        cwd: &spec.cwd,
        dirs: local.dirs,
        further: &local.settings.get(&SCRIPT_DIRS),
        interpreters: &interpreters,
    };
    let path = dispatch::absolute(&named::find(wanted, &places)?);
    let language = match dispatch::inspect(&path, &interpreters)?.0 {
        Target::Js { .. } => "javascript".to_owned(),
        Target::Interpreter { program, .. } => match dispatch::interpreter_name(Path::new(&program)) {
            name if name.starts_with("python") => "python".to_owned(),
            name => name,
        },
    };
    Ok(Place { path, language })
}

/// Finds what runs the script.
fn runner(
    spec: &RunSpec,
    local: &Local,
    search: &Search,
    permissions: &Permissions,
    target: Target,
) -> Result<Runner> {
    let Local { settings, env, .. } = *local;
    match target {
        Target::Js { language, prefer } => {
            let prefer = prefer.filter(|_| settings.get(&SCRIPT_RUNTIME) == "auto");
            let runtime = prefer
                .and_then(|kind| runtimes::named(search, kind, permissions, language))
                .map_or_else(|| runtimes::choose(search, permissions, language), Ok)?;
            Ok(Runner::Js { runtime, language })
        }
        Target::Interpreter { program, args, how } => {
            let found = proc::find_program(&program, env, &spec.cwd).map_err(|e| {
                let error = Error::new(Kind::NoScript, format!("the script's interpreter: {}", e.message()));
                match e.hint_text() {
                    Some(hint) => error.hint(hint),
                    None => error,
                }
            })?;
            permissions::refuse_for_interpreter(permissions, &dispatch::interpreter_name(&found))?;
            Ok(Runner::Other { program: found, args, how })
        }
    }
}

/// Only a module of JavaScript has exports, and only the launcher calls one.
fn check_export(spec: &RunSpec, target: &Target) -> Result<()> {
    let Some(name) = &spec.export else { return Ok(()) };
    let wrong = |what: &str| Err(Error::new(Kind::Usage, format!("--export {name}: {what}")));
    match target {
        _ if spec.bare => wrong("--no-launcher leaves nobody to call it"),
        Target::Js { language: Language::Inline, .. } => wrong("the code exports nothing"),
        Target::Js { .. } => Ok(()),
        Target::Interpreter { program, .. } => {
            wrong(&format!("a script that {} runs has no exports", program.to_string_lossy()))
        }
    }
}

/// The variable by which a runtime learns of further authorities.
fn trust_variable(runtime: &str, python: bool) -> Option<&'static str> {
    match runtime {
        "deno" => Some("DENO_CERT"),
        "node" | "bun" => Some("NODE_EXTRA_CA_CERTS"),
        _ => python.then_some("SSL_CERT_FILE"),
    }
}

/// Where generated files go: under the cache directory, or under the runtime
/// directory where that one cannot be written, as on a read-only file system.
fn writable(dirs: &Dirs) -> PathBuf {
    let base = dirs.cache.clone();
    let run = base.join("run");
    let probe = || {
        if !run.is_dir() {
            DirBuilder::new().recursive(true).mode(0o700).create(&run)?;
        }
        proc::may_write(&run)
    };
    let Err(e) = probe() else { return base };
    let instead = dirs.runtime.join("cache");
    log::warn(format_args!(
        "the cache directory {} cannot be written ({e}); generated files go to {}",
        base.display(),
        instead.display()
    ));
    instead
}

impl Prepared {
    /// Whether the script's client uses an inherited channel, which the caller then opens.
    pub fn wants_channel(&self) -> bool {
        match &self.runner {
            // Without a sandbox deno reaches the socket by its path in less time than
            // it takes to load what adopts a descriptor.
            Runner::Js { runtime, .. } => match runtime.kind {
                JsKind::Bun => false,
                JsKind::Deno => runtime.permissions.sandboxed,
                JsKind::Node => true,
            },
            Runner::Other { .. } => false,
        }
    }

    /// What to tell about permissions whose name may have been meant the other way round.
    pub fn misread_permissions(&self) -> Option<String> {
        self.permissions.profiles().iter().find_map(|p| p.misread())
    }

    /// The runtime enforces limits on the script.
    pub fn is_sandboxed(&self) -> bool {
        matches!(&self.runner, Runner::Js { runtime, .. } if runtime.permissions.sandboxed)
    }

    /// The tools that the run may call; nothing when it may call all.
    pub fn grants(&self) -> Option<Vec<Grant>> {
        self.permissions.grants()
    }

    /// Completes the plan with what the daemon said.
    pub fn plan(self, link: Link) -> Plan {
        let python = matches!(&self.runner, Runner::Other { program, .. } if dispatch::is_python(program));
        let client = match python {
            true => launcher::python_client(&self.cache),
            false => launcher::client(&self.cache, &link.namespaces),
        };
        let sandboxed = self.is_sandboxed();
        let channel = link.channel;
        let mut files = Vec::new();
        let (program, mut argv, entry) = match &self.runner {
            Runner::Js { runtime, language } => {
                let mut argv = runtime.argv(*language);
                let anchor = self.script.as_deref().and_then(Path::parent).unwrap_or(&self.spec.cwd);
                let imports = self.inline.as_ref().is_none_or(Inline::imports);
                if runtime.kind == JsKind::Deno && imports {
                    // Behind `run --quiet --no-check`.
                    argv.splice(3..3, entry::deno_project_flags(anchor).into_iter().map(OsString::from));
                }
                let started = match (&self.inline, &self.script) {
                    (Some(inline), _) if self.spec.bare => {
                        entry::bare_entry(&self.cache, &client.path, inline, &self.spec.cwd, runtime.kind)
                    }
                    (None, Some(script)) if self.spec.bare => {
                        Entry { path: script.clone(), files: Vec::new() }
                    }
                    (Some(inline), _) => entry::inline_entry(
                        inline,
                        &Scene {
                            cache: &self.cache,
                            client: &client,
                            cwd: &self.spec.cwd,
                            kind: runtime.kind,
                            version: runtime.version,
                            export: self.spec.export.as_deref(),
                            around: &self.around,
                        },
                    ),
                    (None, script) => entry::file_entry(
                        &self.cache,
                        &client.path,
                        script.as_deref().unwrap_or(Path::new("")),
                        self.spec.export.as_deref(),
                        &self.around,
                    ),
                };
                if runtime.kind == JsKind::Node && runtime.permissions.sandboxed {
                    argv.extend(self.readable(runtime, &client.path, &started.path));
                }
                files.push(client.clone());
                files.extend(started.files);
                argv.push(started.path.clone().into());
                (runtime.bin.clone(), argv, started.path)
            }
            Runner::Other { program, args, .. } => {
                let script = self.script.clone().unwrap_or_default();
                files.extend(python.then(|| client.clone()));
                let mut argv = args.clone();
                argv.push(script.clone().into());
                (program.clone(), argv, script)
            }
        };
        argv.extend(self.spec.args.iter().cloned());
        let (runtime, dispatch, allow_read) = match &self.runner {
            Runner::Js { runtime, .. } => {
                (runtime.kind.word().to_owned(), None, runtime.permissions.allow_read)
            }
            Runner::Other { program, how, .. } => (dispatch::interpreter_name(program), Some(*how), true),
        };
        let run = Run {
            session: link.session,
            session_id: link.session_id,
            parent_session_id: link.parent_session_id,
            ephemeral: link.ephemeral,
            run: link.run,
            report_input: link.report_input,
            endpoint: link.endpoint,
            artifacts_local: !link.socket.as_os_str().is_empty() && !sandboxed,
            socket: link.socket,
            token: link.token,
            channel: channel.as_ref().map(|_| CHANNEL),
            call_settings: link.call_settings,
            cwd: match &link.served {
                Some(named) => named.clone(),
                None => self.spec.cwd.clone(),
            },
            served: link.served.is_some(),
            pid: std::process::id(),
            entry: entry.clone(),
            client: client.path.clone(),
            config_path: link.config_path,
            script_dirs: self.script_dirs,
            runtime,
            dispatch,
            allow_read,
            capture: self.spec.capture,
            log_level: self.log_level,
            log_source: self.log_source,
        };
        let added = script_env(&run);
        let mut environment = self.change.apply(&self.base);
        for name in env::own_names() {
            environment.remove(name);
        }
        for (name, value) in &self.spec.env {
            environment.set(name, value);
        }
        for (name, value) in &added {
            environment.set(*name, value);
        }
        // deno colours its reports even for a pipe, and no flag of it says otherwise.
        let colored = |name: &str| environment.get(name).is_some();
        if run.runtime == "deno"
            && (self.spec.capture || !std::io::stderr().is_terminal())
            && !colored("NO_COLOR")
            && !colored("FORCE_COLOR")
        {
            environment.set("NO_COLOR", "1");
        }
        if let Some(name) = trust_variable(&run.runtime, python).filter(|_| !link.ca_file.is_empty())
            && environment.get(name).is_none()
        {
            environment.set(name, &link.ca_file);
        }
        if let Some(dir) = client.path.parent().filter(|_| python) {
            environment.set("PYTHONPATH", search_first(dir, environment.get("PYTHONPATH")));
        }
        Plan {
            why: self.runner.why(),
            runtime: run.runtime,
            runtime_name: self.runner.name(),
            records: matches!(self.runner, Runner::Js { .. }),
            permissions: self.permissions.names(),
            permission_flags: match &self.runner {
                Runner::Js { runtime, .. } => runtime.permissions.flags.clone(),
                Runner::Other { .. } => Vec::new(),
            },
            dispatch,
            program,
            argv,
            cwd: self.spec.cwd,
            added,
            env: environment.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
            script: self.script,
            entry,
            files,
            channel,
            capture: self.spec.capture,
            watched: self.spec.watched,
            timeout: self.timeout,
            kill_grace: self.kill_grace,
            capture_limit: self.capture_limit,
        }
    }

    /// Under node's permission model even the files that it is started on must be readable.
    fn readable(&self, runtime: &Runtime, client: &Path, entry: &Path) -> Vec<OsString> {
        if runtime.permissions.flags.iter().any(|f| f == "--allow-fs-read=*") {
            return Vec::new();
        }
        let own = [Some(client), entry.parent(), self.script.as_deref()];
        own.into_iter()
            .flatten()
            .map(|path| {
                let mut flag = OsString::from("--allow-fs-read=");
                flag.push(path);
                flag
            })
            .collect()
    }
}

/// A search path with one directory before the others.
fn search_first(dir: &Path, others: Option<&OsStr>) -> OsString {
    let mut path = dir.as_os_str().to_owned();
    if let Some(others) = others.filter(|o| !o.is_empty()) {
        path.push(":");
        path.push(others);
    }
    path
}

impl Runner {
    fn name(&self) -> String {
        match self {
            Runner::Js { runtime, .. } => runtime.name.clone(),
            Runner::Other { program, .. } => dispatch::interpreter_name(program),
        }
    }
    fn why(&self) -> Vec<String> {
        match self {
            Runner::Js { runtime, .. } => {
                let skipped = runtime.skipped.iter().map(|(name, why)| format!("not {name}: {why}"));
                std::iter::once(runtime.why.clone()).chain(skipped).collect()
            }
            Runner::Other { how: "shebang", .. } => vec!["the script's first line names it".into()],
            Runner::Other { .. } => vec!["the script's extension stands for it".into()],
        }
    }
}

/// A run, ready to start.
#[derive(Debug)]
pub struct Plan {
    /// deno, bun or node; or the interpreter's name.
    pub runtime: String,
    /// The runtime's own name: as declared under `script.runtimes`, else the same.
    pub runtime_name: String,
    /// Why that one: the reason, and those passed over.
    pub why: Vec<String>,
    /// The client in the script sends records on stderr.
    pub records: bool,
    /// The permissions by name.
    pub permissions: String,
    /// The flags that enforce them.
    pub permission_flags: Vec<String>,
    /// How an interpreter was chosen; nothing for JavaScript.
    pub dispatch: Option<&'static str>,
    /// The program.
    pub program: PathBuf,
    /// Its arguments, without its own name.
    pub argv: Vec<OsString>,
    /// The working directory.
    pub cwd: PathBuf,
    /// What is added to the environment.
    pub added: Vec<(&'static str, OsString)>,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// The script's own file; nothing for inline code.
    pub script: Option<PathBuf>,
    /// What the program is started on.
    pub entry: PathBuf,
    /// Files that have to be there first.
    pub files: Vec<Generated>,
    /// The connection that the script inherits as [`CHANNEL`].
    pub channel: Option<OwnedFd>,
    /// Collect everything into one document.
    pub capture: bool,
    /// Pass the output through, and have it heard on the way.
    pub watched: bool,
    /// How long it may run.
    pub timeout: Option<Duration>,
    /// How long it may take to leave after SIGTERM.
    pub kill_grace: Duration,
    /// How much of its output is kept when it is collected, in bytes.
    pub capture_limit: u64,
}
