//! The table of the script environment: one row for each variable that mcpx or
//! its plugin hands to a program it starts. Builds no environment.

/// A part of mcpx that sets variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setter {
    /// `mcpx exec` and `mcpx run`.
    Cli,
    /// What starts every script, for whomever.
    Runner,
    /// The daemon's own runs: `/v1/exec` and the MCP tool of the same purpose.
    ExecService,
    /// What runs a hook that a configuration declares.
    Hooks,
    /// A program that consumes events.
    Events,
    /// The pool.
    Pool,
    /// What starts a server made from an API's description.
    DeclaredApi,
    /// The opencode plugin.
    Plugin,
    /// What loads a plugin that was discovered.
    PluginLoader,
}

impl Setter {
    /// The setter as the table shows it.
    pub fn words(self) -> &'static str {
        match self {
            Setter::Cli => "mcpx exec, mcpx run",
            Setter::Runner => "the runner (every script)",
            Setter::ExecService => "the exec service",
            Setter::Hooks => "the hook runner",
            Setter::Events => "an event consumer",
            Setter::Pool => "the pool (every server that it starts)",
            Setter::DeclaredApi => "the launcher of a declared program or API",
            Setter::Plugin => "the opencode plugin",
            Setter::PluginLoader => "the plugin loader",
        }
    }
}

/// One variable.
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// Who sets it.
    pub setters: &'static [Setter],
    /// Under which condition.
    pub when: &'static str,
    /// What it says.
    pub meaning: &'static str,
    /// Who reads it.
    pub readers: &'static str,
    /// Its value must never be printed.
    pub secret: bool,
}

const fn row(
    name: &'static str,
    setters: &'static [Setter],
    when: &'static str,
    meaning: &'static str,
    readers: &'static str,
) -> Variable {
    Variable { name, setters, when, meaning, readers, secret: false }
}

const fn secret(row: Variable) -> Variable {
    Variable { secret: true, ..row }
}

pub(super) const CLIENT: &str = "the generated client";
const COMMAND: &str = "the command";
const HOOK: &str = "the hook";

use Setter::{Cli, DeclaredApi, Events, ExecService, Hooks, Plugin, PluginLoader, Pool, Runner};

/// Every variable, in the order of the documentation.
pub static VARIABLES: &[Variable] = &[
    row(
        "MCPX_SESSION",
        &[Cli, ExecService, Events],
        "always",
        "the session key under which this run's calls are leased: `--session`, else `MCPX_SESSION_ID`, else one made for the run",
        "the generated client, which sends it with each call over HTTP",
    ),
    row(
        "MCPX_SESSION_ID",
        &[Cli, ExecService, Events, Plugin, PluginLoader],
        "exec and run pass on what they were given, which may be empty; the plugin sets it at every level; for a consumer it is its session",
        "the session that the host assigned; unlike `MCPX_SESSION` it stays the same from one command to the next, so session-scoped servers are keyed by it",
        "mcpx inside the script or shell, as its session when there is no `--session`; the generated client",
    ),
    row(
        "MCPX_PARENT_SESSION_ID",
        &[Cli, Plugin],
        "exec and run pass on what they were given, which may be empty; the plugin at level full, when there is a parent",
        "the session that spawned this one, so that an agent and its subagents can share a server",
        "mcpx inside the script or shell; the generated client, for the scope parent-session",
    ),
    row(
        "MCPX_EPHEMERAL",
        &[Cli],
        "always",
        "1 when the session key was made for this run alone, so that what it owns may be stopped when the run ends; else 0",
        CLIENT,
    ),
    row(
        "MCPX_RUN",
        &[Cli, ExecService],
        "always",
        "the id of this run, which groups what it leaves behind",
        "the generated client, which binds its channel to it",
    ),
    row(
        "MCPX_INPUT",
        &[Cli],
        "always, but not when mcpx serve collects the output",
        "`report`: nobody in this run can answer a server's question, so a call that asks one ends with exit code 75 and the question instead of waiting until it expires",
        "the generated client, which sends it as `X-Mcpx-Input`",
    ),
    row("MCPX_HOOK_NAME", &[Hooks], "always", "the declared name of the hook", HOOK),
    row(
        "MCPX_HOOK_PHASE",
        &[Hooks, ExecService],
        "always",
        "the hook's phase: `observe` for a declared hook; pre, post, onError or onSuccess for a hook of one call",
        HOOK,
    ),
    row(
        "MCPX_HOOK_POINT",
        &[ExecService],
        "always",
        "the point that the hook is attached to: `script`",
        HOOK,
    ),
    row(
        "MCPX_HOOK_ERROR",
        &[ExecService],
        "only for a hook that runs because the script failed; at most 1024 bytes",
        "the error in one line; the whole context is JSON on stdin",
        HOOK,
    ),
    row(
        "MCPX_HOOK_EVENT_KIND",
        &[Hooks],
        "always",
        "the kind of the event; the whole event is JSON on stdin",
        HOOK,
    ),
    row("MCPX_HOOK_EVENT_SEQ", &[Hooks], "always", "the event's number on the daemon's bus", HOOK),
    row(
        "MCPX_HOOK_EVENT_SERVER",
        &[Hooks],
        "empty when the event names no server",
        "the server that the event is about",
        HOOK,
    ),
    row(
        "MCPX_HOOK_EVENT_SESSION",
        &[Hooks],
        "empty when the event belongs to no session",
        "the session that the event belongs to",
        HOOK,
    ),
    row(
        "MCPX_HOOK_EVENT_URI",
        &[Hooks],
        "empty when the event names no resource",
        "the resource that the event is about",
        HOOK,
    ),
    row(
        "MCPX_ENDPOINT",
        &[Cli, ExecService, Events],
        "always; empty when the daemon has no TCP listener",
        "the daemon's HTTP endpoint",
        "the generated client; mcpx inside the script, where the daemon is on another machine; the plugin, after `MCPX_DAEMON_ENDPOINT`; also the setting daemon.endpoint",
    ),
    row(
        "MCPX_SOCKET",
        &[Cli, ExecService, PluginLoader],
        "empty when the daemon is on another machine",
        "the daemon's unix socket; set by hand it says where a daemon binds and a client dials",
        "the generated client; mcpx inside the script or shell; the plugin; also the setting daemon.socket",
    ),
    row(
        "MCPX_CHANNEL",
        &[Runner],
        "only when the runtime can adopt a descriptor: node, and deno in a sandbox",
        "the number of a connected descriptor over which the client reaches the daemon without a permission; the client removes it from the environment",
        CLIENT,
    ),
    secret(row(
        "MCPX_TRANSPORT_BEARER_TOKEN",
        &[Cli],
        "whenever the daemon listens on TCP, with transport.bearerToken or without",
        "a token of this run for the daemon's HTTP endpoint: it permits what the run's channel permits and ends with the run; it is in no generated file",
        "the generated client; mcpx inside the script or shell; the plugin; also the setting transport.bearerToken",
    )),
    row(
        "MCPX_SETTINGS",
        &[Cli, ExecService],
        "only when the caller sent settings for its calls, such as pool.callTimeout",
        "those settings as JSON, so that the client asks the same for the calls that it makes",
        "the generated client, which sends it as `X-Mcpx-Settings`",
    ),
    row(
        "MCPX_ARTIFACTS_LOCAL",
        &[Cli, ExecService],
        "always",
        "1 when the daemon sees the files that the script may read, so that `artifact({path})` hands over the path; 0 on another machine and in a sandbox, where the bytes are sent",
        CLIENT,
    ),
    row(
        "MCPX_CWD",
        &[Cli, ExecService],
        "the exec service only when the caller said where it was",
        "the directory that mcpx was called from",
        "the generated client (`paths.cwd`, and the scope cwd)",
    ),
    row(
        "MCPX_PID",
        &[Cli, ExecService],
        "always",
        "the pid of the mcpx that started the script",
        "the generated client, for the scope pid",
    ),
    row(
        "MCPX_ENTRY",
        &[Runner],
        "always",
        "the file that the runtime was started on: the generated entry, or the script itself where nothing is generated",
        "the generated client (`paths.entry`)",
    ),
    row(
        "MCPX_CLIENT",
        &[Runner],
        "always",
        "the generated client module; for a script in Python, `mcpx.py`",
        "the generated client (`paths.client`)",
    ),
    row(
        "MCPX_CONFIG_PATH",
        &[Cli],
        "always; empty when there is no configuration file",
        "the nearest configuration file in force",
        "the generated client (`paths.config`)",
    ),
    row(
        "MCPX_SCRIPT_DIRS",
        &[Cli],
        "always",
        "the directories of named scripts, the nearest first, separated by colons",
        "the generated client (`paths.scriptDirs`)",
    ),
    row(
        crate::proc::MARK,
        &[Pool],
        "always",
        "which instance of which daemon the server is: `<pid>.<start>.<number>`. When the instance ends, so does whatever else carries its value, however it detached itself; `env -u MCPX_INSTANCE` lets a process go",
        "the pool, in /proc, to end what a server has left",
    ),
    secret(row(
        crate::config::declared::VARIABLE,
        &[DeclaredApi],
        "a program or an API is declared as a server",
        "the declaration as JSON, variables filled in. A declared program does not get it",
        "`mcpx adapter serve`",
    )),
    row(
        crate::config::declared::DIGEST,
        &[DeclaredApi],
        "always",
        "the digest of the declaration and of the document's state, so that a server which was started for an older one is replaced",
        "the pool, as a part of a server's definition",
    ),
    row(
        "MCPX_RUNTIME",
        &[Runner],
        "always",
        "deno, bun or node; the interpreter's name (sh, python3) where another one runs the script",
        "the generated client; a script that is not JavaScript",
    ),
    row(
        "MCPX_DISPATCH",
        &[Runner],
        "only when the script is not run by a JavaScript runtime",
        "how the interpreter was chosen: `shebang`, or `interpreter` (by the file's name)",
        "the script",
    ),
    row(
        "MCPX_ALLOW_READ",
        &[Runner],
        "only when the permissions allow reading files",
        "1: the client's file helpers may read; without it they refuse and name the permission",
        CLIENT,
    ),
    row(
        "MCPX_CAPTURE",
        &[Runner],
        "only when mcpx collects the run into one document (`--json`)",
        "1: the client also reports the result, what was emitted and the error as records on stderr",
        CLIENT,
    ),
    row(
        "MCPX_LOG_LEVEL",
        &[Cli],
        "always",
        "the lowest level that the script's `log` keeps",
        "the generated client; mcpx inside the script or shell; also the setting logging.level",
    ),
    row(
        "MCPX_LOG_SOURCE",
        &[Cli],
        "always",
        "the levels that record where they were called: a level for that one and above, 0 for none",
        CLIENT,
    ),
    row(
        "MCPX_DAEMON_ENDPOINT",
        &[Plugin],
        "at level standard and above, once the plugin has chosen a daemon",
        "the daemon of this editor session, so that mcpx in a shell talks to the same one",
        "mcpx inside the script or shell; the plugin; also the setting daemon.endpoint",
    ),
    row(
        "MCPX_TRACE_IDS",
        &[Plugin, Hooks],
        "at level standard and above, when there is anything to say; for a hook its name, so that its own calls start no hooks",
        "pairs as JSON, such as `[[\"session_id\",\"abc\"],[\"worktree\",\"/p\"]]`; at level full with the parent session and all its ancestors",
        "mcpx inside the script or shell, which puts them on each log record",
    ),
    row(
        "MCPX_CALL_ID",
        &[Plugin],
        "at level standard and above",
        "the editor's id of this tool call",
        COMMAND,
    ),
    row(
        "MCPX_OPENCODE_CWD",
        &[Plugin],
        "at level standard and above",
        "the directory that the command runs in, not always the project's root",
        COMMAND,
    ),
    row(
        "MCPX_OPENCODE_DIRECTORY",
        &[Plugin],
        "at level standard and above",
        "the project directory that the editor opened",
        COMMAND,
    ),
    row(
        "MCPX_OPENCODE_WORKTREE",
        &[Plugin],
        "at level standard and above",
        "the project's worktree",
        COMMAND,
    ),
    row(
        "MCPX_WORKTREE_NAME",
        &[Plugin],
        "at level standard and above, when there is a worktree",
        "the last part of the worktree's path",
        COMMAND,
    ),
    row(
        "MCPX_PROJECT_ID",
        &[Plugin],
        "at level standard and above",
        "the editor's id of the project",
        COMMAND,
    ),
    row("MCPX_HARNESS", &[Plugin], "at level standard and above", "`opencode`", COMMAND),
    row("MCPX_HARNESS_VERSION", &[Plugin], "at level standard and above", "the editor's version", COMMAND),
    row("MCPX_HARNESS_PID", &[Plugin], "at level standard and above", "the editor's pid", COMMAND),
    row("MCPX_HARNESS_STARTED", &[Plugin], "at level standard and above", "when the plugin started", COMMAND),
    row(
        "MCPX_SHELL_SEQ",
        &[Plugin],
        "at level standard and above",
        "how many shell commands this editor process has run",
        COMMAND,
    ),
    row("MCPX_SESSION_TITLE", &[Plugin], "at level full", "the session's title", COMMAND),
    row("MCPX_SESSION_DIRECTORY", &[Plugin], "at level full", "the session's directory", COMMAND),
    row(
        "MCPX_SESSION_VERSION",
        &[Plugin],
        "at level full",
        "the editor's version that made the session",
        COMMAND,
    ),
    row("MCPX_SESSION_DEPTH", &[Plugin], "at level full", "how many ancestors the session has", COMMAND),
    row(
        "MCPX_SESSION_CREATED",
        &[Plugin],
        "at level full, when known",
        "when the session was made, ISO 8601",
        COMMAND,
    ),
    row(
        "MCPX_SESSION_AGE_MS",
        &[Plugin],
        "at level full, when known",
        "the session's age when the command started, in milliseconds",
        COMMAND,
    ),
];
