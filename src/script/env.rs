//! The script environment: the one function that builds what a script gets of
//! the variables in the table, and the page about them. Renders `docs/script-environment.md`. Reads no environment.

use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};

pub use super::variables::{Setter, VARIABLES, Variable};
use Setter::{Cli, Runner};

/// The row of a variable.
pub fn variable(name: &str) -> Option<&'static Variable> {
    VARIABLES.iter().find(|v| v.name == name)
}

/// All that a script is told: the one run that is about to start.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The exec service runs it, and not a command.
    pub served: bool,
    /// The session key of its calls.
    pub session: String,
    /// The session that the host assigned; may be empty.
    pub session_id: String,
    /// The session that spawned it; may be empty.
    pub parent_session_id: String,
    /// The key was made for this run alone.
    pub ephemeral: bool,
    /// The run's id.
    pub run: String,
    /// Nobody here can answer a server's question.
    pub report_input: bool,
    /// The daemon's HTTP endpoint, or empty.
    pub endpoint: String,
    /// The daemon's unix socket, or empty.
    pub socket: PathBuf,
    /// The token for the endpoint, or empty.
    pub token: String,
    /// The number of the inherited descriptor.
    pub channel: Option<i32>,
    /// Settings of the caller for its calls, as JSON.
    pub call_settings: Option<String>,
    /// The daemon sees this file system, and the script may have it read there.
    pub artifacts_local: bool,
    /// The directory that the caller was in; empty when the exec service was not told.
    pub cwd: PathBuf,
    /// The pid of this mcpx.
    pub pid: u32,
    /// What the runtime is started on.
    pub entry: PathBuf,
    /// The generated client.
    pub client: PathBuf,
    /// The nearest configuration file.
    pub config_path: Option<PathBuf>,
    /// The directories of named scripts, the nearest first.
    pub script_dirs: Vec<PathBuf>,
    /// The kind of runtime, or the interpreter's name.
    pub runtime: String,
    /// How an interpreter was chosen.
    pub dispatch: Option<&'static str>,
    /// The permissions allow reading files.
    pub allow_read: bool,
    /// mcpx collects the run into one document.
    pub capture: bool,
    /// The lowest level of log records.
    pub log_level: String,
    /// Which levels record a call site.
    pub log_source: String,
}

/// What a script gets on top of the environment that mcpx was started with.
pub fn script_env(run: &Run) -> Vec<(&'static str, OsString)> {
    let flag = |on: bool| OsString::from(if on { "1" } else { "0" });
    let mut env: Vec<(&'static str, OsString)> = vec![
        ("MCPX_SESSION", run.session.clone().into()),
        ("MCPX_SESSION_ID", run.session_id.clone().into()),
        ("MCPX_PARENT_SESSION_ID", run.parent_session_id.clone().into()),
        ("MCPX_EPHEMERAL", flag(run.ephemeral)),
        ("MCPX_RUN", run.run.clone().into()),
    ];
    if run.report_input {
        env.push(("MCPX_INPUT", "report".into()));
    }
    env.push(("MCPX_ENDPOINT", run.endpoint.clone().into()));
    env.push(("MCPX_SOCKET", run.socket.clone().into()));
    if let Some(number) = run.channel {
        env.push(("MCPX_CHANNEL", number.to_string().into()));
    }
    if !run.token.is_empty() {
        env.push(("MCPX_TRANSPORT_BEARER_TOKEN", run.token.clone().into()));
    }
    if let Some(settings) = &run.call_settings {
        env.push(("MCPX_SETTINGS", settings.clone().into()));
    }
    env.extend([
        ("MCPX_ARTIFACTS_LOCAL", flag(run.artifacts_local)),
        ("MCPX_CWD", run.cwd.clone().into()),
        ("MCPX_PID", run.pid.to_string().into()),
        ("MCPX_ENTRY", run.entry.clone().into()),
        ("MCPX_CLIENT", run.client.clone().into()),
        ("MCPX_CONFIG_PATH", run.config_path.clone().unwrap_or_default().into()),
        ("MCPX_SCRIPT_DIRS", joined(&run.script_dirs)),
        ("MCPX_RUNTIME", run.runtime.clone().into()),
    ]);
    if let Some(how) = run.dispatch {
        env.push(("MCPX_DISPATCH", how.into()));
    }
    if run.allow_read {
        env.push(("MCPX_ALLOW_READ", flag(true)));
    }
    if run.capture {
        env.push(("MCPX_CAPTURE", flag(true)));
    }
    env.push(("MCPX_LOG_LEVEL", run.log_level.clone().into()));
    env.push(("MCPX_LOG_SOURCE", run.log_source.clone().into()));
    if run.served {
        let sets = |name: &str| variable(name).is_some_and(|v| v.setters.iter().any(is_served));
        env.retain(|(name, value)| sets(name) && !(*name == "MCPX_CWD" && value.is_empty()));
    }
    env
}

/// All that a declared hook is told.
#[derive(Clone, Debug, Default)]
pub struct HookRun {
    /// The hook's name.
    pub name: String,
    /// The event's kind.
    pub kind: String,
    /// Its number.
    pub seq: u64,
    /// The server that it is about; may be empty.
    pub server: String,
    /// The session that it belongs to; may be empty.
    pub session: String,
    /// The resource that it is about; may be empty.
    pub uri: String,
    /// Pairs as JSON that mark what the hook itself does.
    pub trace: String,
}

/// What a declared hook gets on top of the daemon's environment.
pub fn hook_env(hook: &HookRun) -> Vec<(&'static str, OsString)> {
    vec![
        ("MCPX_HOOK_NAME", hook.name.clone().into()),
        ("MCPX_HOOK_PHASE", "observe".into()),
        ("MCPX_HOOK_EVENT_KIND", hook.kind.clone().into()),
        ("MCPX_HOOK_EVENT_SEQ", hook.seq.to_string().into()),
        ("MCPX_HOOK_EVENT_SERVER", hook.server.clone().into()),
        ("MCPX_HOOK_EVENT_SESSION", hook.session.clone().into()),
        ("MCPX_HOOK_EVENT_URI", hook.uri.clone().into()),
        ("MCPX_TRACE_IDS", hook.trace.clone().into()),
    ]
}

/// What an event consumer gets on top of the daemon's environment.
pub fn consumer_env(session: &str, endpoint: &str) -> Vec<(&'static str, OsString)> {
    vec![
        ("MCPX_SESSION", session.into()),
        ("MCPX_SESSION_ID", session.into()),
        ("MCPX_ENDPOINT", endpoint.into()),
    ]
}

/// What a discovered plugin gets on top of the environment of the command that it became.
pub fn plugin_env(session: &str, socket: &Path) -> Vec<(&'static str, OsString)> {
    vec![("MCPX_SESSION_ID", session.into()), ("MCPX_SOCKET", socket.into())]
}

/// Whether a part sets variables of the exec service's runs.
fn is_served(setter: &Setter) -> bool {
    matches!(setter, Setter::ExecService | Runner)
}

/// The names that [`script_env`] may set. A script must not inherit one of
/// them from an outer script that this run does not set itself.
pub fn own_names() -> impl Iterator<Item = &'static str> {
    VARIABLES.iter().filter(|v| v.setters.iter().any(|s| matches!(s, Cli | Runner))).map(|v| v.name)
}

fn joined(dirs: &[impl AsRef<Path>]) -> OsString {
    let mut out = OsString::new();
    for (i, dir) in dirs.iter().enumerate() {
        if i > 0 {
            out.push(":");
        }
        out.push(dir.as_ref());
    }
    out
}

/// The whole of `docs/script-environment.md`.
pub fn markdown() -> String {
    let mut out = String::from(INTRODUCTION);
    out.push_str("| variable | set by | when | what it says | read by |\n|---|---|---|---|---|\n");
    for v in VARIABLES {
        let setters: Vec<&str> = v.setters.iter().map(|s| s.words()).collect();
        let secret = if v.secret { " **Secret:** it is never printed." } else { "" };
        let cell = |text: &str| text.replace('|', "\\|");
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {}.{secret} | {} |",
            v.name,
            setters.join("; "),
            cell(v.when),
            cell(v.meaning),
            cell(v.readers)
        );
    }
    out
}

const INTRODUCTION: &str = "\
# The script environment

<!-- Generated from src/script/env.rs by `make docs`; edit that file. -->

Settings are what a person tells mcpx. This page is the other direction: what mcpx and its editor plugin tell a
program that they start. A script learns from these variables which session it belongs to, which daemon to talk to,
and where its files are; so does an `mcpx` that the script runs, without any flag.

## All that a child gets

These variables come **on top of** the whole environment that mcpx itself was started with, and nothing of that is
filtered by default: a script also sees `SSH_AUTH_SOCK`, `GITHUB_TOKEN`, `AWS_*` and whatever else was in the shell. `script.inheritEnv`,
and `inheritEnv` in a server's `mcpx` block, can leave out what patterns such as `!AWS_*` name. The other exception is a shebang that says otherwise: `env -i` starts from nothing, `env -u NAME` leaves out one variable, and
both then get what stands below. `script.permissions` does not change any of this: it limits files, network and
processes, not the environment. Think of that before you put a secret into a shell that runs mcpx.

For deno, `NO_COLOR=1` is added where nobody sees colours: its standard error is no terminal, or `--json` collects it. It
is not added when `NO_COLOR` or `FORCE_COLOR` is there. deno colours its own reports otherwise, and has no flag against it.

Where the daemon is reached over HTTPS and `transport.caFile` names its authorities, `DENO_CERT`, `NODE_EXTRA_CA_CERTS`
or Python's `SSL_CERT_FILE` names the same file, unless the variable is there already.

For Python, `PYTHONPATH` is extended as well, so that `import mcpx` finds the client beside `MCPX_CLIENT`.

Where it happens: `Prepared::plan` in `src/script/plan.rs` puts a script's environment together, for every script that
mcpx starts; `script_env` in `src/script/env.rs` is the only place that makes the variables below.

A variable of this table that an outer script got and that this run does not set is removed, so that a script inside a
script never takes the outer one's `MCPX_DISPATCH` or `MCPX_CHANNEL` for its own.

## Configuration is not here

A variable here is a fact about one run, handed from a parent to a child. What a person can choose is a setting, with a
key, a flag and a variable of its own: see the page on configuration. A few names are both, and the table says so: they
are written for a child, and a child that is mcpx reads them as the settings they name.

## The variables

";

#[cfg(test)]
mod tests {
    use super::super::variables::CLIENT;
    use super::*;
    use std::collections::HashSet;

    fn full() -> Run {
        Run {
            report_input: true,
            channel: Some(3),
            token: "t".into(),
            call_settings: Some("{}".into()),
            dispatch: Some("shebang"),
            allow_read: true,
            capture: true,
            ..Run::default()
        }
    }

    #[test]
    fn the_function_sets_exactly_what_the_table_says_it_sets() {
        let set: HashSet<&str> = script_env(&full()).into_iter().map(|(name, _)| name).collect();
        let declared: HashSet<&str> = own_names().collect();
        assert_eq!(set, declared);
        let least: HashSet<&str> = script_env(&Run::default()).into_iter().map(|(name, _)| name).collect();
        for name in set.difference(&least) {
            let when = variable(name).unwrap().when;
            assert!(!when.starts_with("always") || *name == "MCPX_INPUT", "{name}: {when}");
        }
    }

    #[test]
    fn hooks_consumers_and_plugins_get_exactly_what_the_table_says() {
        let of = |setter: Setter| -> HashSet<&str> {
            VARIABLES.iter().filter(|v| v.setters.contains(&setter)).map(|v| v.name).collect()
        };
        let hook: HashSet<&str> = hook_env(&HookRun::default()).into_iter().map(|(name, _)| name).collect();
        assert_eq!(hook, of(Setter::Hooks));
        let consumer: HashSet<&str> = consumer_env("", "").into_iter().map(|(name, _)| name).collect();
        assert_eq!(consumer, of(Setter::Events));
        let plugin: HashSet<&str> = plugin_env("", Path::new("")).into_iter().map(|(name, _)| name).collect();
        assert_eq!(plugin, of(Setter::PluginLoader));
    }

    #[test]
    fn a_run_of_the_exec_service_gets_its_own_rows() {
        let run = Run { served: true, cwd: "/w".into(), ..full() };
        let set: HashSet<&str> = script_env(&run).into_iter().map(|(name, _)| name).collect();
        let declared =
            VARIABLES.iter().filter(|v| v.setters.iter().any(is_served) && !v.name.contains("_HOOK_"));
        assert_eq!(set, declared.map(|v| v.name).collect());
        assert!(!set.contains("MCPX_TRANSPORT_BEARER_TOKEN") && set.contains("MCPX_SETTINGS"));
        let without = Run { cwd: PathBuf::new(), ..run };
        assert!(!script_env(&without).iter().any(|(name, _)| *name == "MCPX_CWD"));
    }

    #[test]
    fn names_are_unique_and_few_are_secret() {
        let names: HashSet<&str> = VARIABLES.iter().map(|v| v.name).collect();
        assert_eq!(names.len(), VARIABLES.len());
        let secret: Vec<&str> = VARIABLES.iter().filter(|v| v.secret).map(|v| v.name).collect();
        assert_eq!(secret, ["MCPX_TRANSPORT_BEARER_TOKEN", crate::config::declared::VARIABLE]);
    }

    #[test]
    fn the_client_reads_what_the_table_says_it_reads() {
        let source = [
            include_str!("client/link.mjs"),
            include_str!("client/tools.mjs"),
            include_str!("client/artifact.mjs"),
            include_str!("client/launcher.mjs"),
        ]
        .concat();
        let mut read: HashSet<&str> = HashSet::new();
        for (at, _) in source.match_indices("MCPX_") {
            let end = source[at..].find(|c: char| !c.is_ascii_uppercase() && !c.is_ascii_digit() && c != '_');
            read.insert(&source[at..end.map_or(source.len(), |e| at + e)]);
        }
        for name in &read {
            let row = variable(name).unwrap_or_else(|| panic!("{name} is in no row"));
            assert!(row.readers.contains(CLIENT), "{name}: the column \"read by\" does not name the client");
        }
        // The client asks the runtime itself what it is.
        let later = ["MCPX_RUNTIME"];
        for row in VARIABLES.iter().filter(|v| v.readers.contains(CLIENT) && !later.contains(&v.name)) {
            assert!(read.contains(row.name), "{} is not read by the client", row.name);
        }
    }

    #[test]
    fn the_page_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/script-environment.md");
        let found = std::fs::read_to_string(path).unwrap_or_default();
        assert!(found == markdown(), "{path} is not what the table gives: run `make docs`");
    }

    #[test]
    fn the_places_that_the_page_names_are_still_there() {
        assert!(include_str!("plan.rs").contains("pub fn plan("));
        assert!(include_str!("env.rs").contains("pub fn script_env("));
    }
}
