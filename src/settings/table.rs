//! Defines every setting. The order of `ALL` is the order of the documentation;
//! the defaults are in `defaults.json`, and a test holds the two together.

use super::choices::{COLOR, LEVELS, MEDIA, SCOPES, SHARING};
use super::declared::{Declared, Scope, Setting, Spec};
use super::kind::{Kind, Secret};
use serde_json::Value;
use std::time::Duration;

/// Every setting, family by family.
pub static ALL: &[&dyn Declared] = &[
    &PRESET,
    &PATHS_CONFIG_FILE,
    &PATHS_STATE,
    &PATHS_CACHE,
    &POOL_SCOPE,
    &POOL_SHARING,
    &POOL_START_TIMEOUT,
    &POOL_CALL_TIMEOUT,
    &POOL_IDLE_TIMEOUT,
    &POOL_STOP_GRACE,
    &POOL_KILL_GRACE,
    &POOL_MAX,
    &POOL_QUEUE,
    &POOL_COOL_DOWN_MIN,
    &POOL_COOL_DOWN_MAX,
    &POOL_STDERR_TAIL,
    &MCP_MAX_MESSAGE,
    &MCP_MAX_DEPTH,
    &MCP_VALIDATE_ARGUMENTS,
    &CATALOG_CACHE_TTL,
    &CATALOG_CONCURRENCY,
    &CATALOG_DESCRIBE,
    &SEARCH_LIMIT,
    &SCRIPT_RUNTIME,
    &SCRIPT_RUNTIME_ORDER,
    &SCRIPT_RUNTIMES,
    &SCRIPT_PERMISSIONS,
    &SCRIPT_PROFILES,
    &SCRIPT_TIMEOUT,
    &SCRIPT_KILL_GRACE,
    &SCRIPT_CAPTURE_LIMIT,
    &OUTPUT_JSON,
    &OUTPUT_COLOR,
    &OUTPUT_MEDIA,
    &OUTPUT_MEDIA_DIR,
    &LOGGING_LEVEL,
    &DAEMON_AUTOSTART,
    &DAEMON_ENDPOINT,
    &DAEMON_SOCKET,
    &DAEMON_KEY_GRACE,
    &DAEMON_TICK,
    &AUTOSTART_TIMEOUT,
    &AUTOSTART_IDLE_EXIT,
    &RESOLVE_DIAL_TIMEOUT,
    &TRANSPORT_BEARER_TOKEN,
    &TRANSPORT_TCP,
    &TRANSPORT_LISTEN,
    &TRANSPORT_MAX_CONNECTIONS,
    &TRANSPORT_MAX_BODY,
    &TRANSPORT_MAX_HEADER,
    &TRANSPORT_HEADER_TIMEOUT,
    &TRANSPORT_IDLE_TIMEOUT,
    &TRANSPORT_WRITE_TIMEOUT,
    &PLUMBING_STRICT_UNKNOWN_KEYS,
];

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}
const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}
const DAY: Duration = secs(86_400);
const YEAR: Duration = secs(86_400 * 365);
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const MINUTE: Duration = secs(60);
const HOUR: Duration = secs(3600);
const WEEK: Duration = secs(7 * 86_400);

/// Presets to apply, in order; a later one wins.
pub static PRESET: Setting<Vec<String>> = Setting::new(Spec {
    scope: Scope::Client,
    doc: "A preset is a named list of mcpx's own flags under `presets`. It ranks between the environment and the command line. A preset cannot select presets.",
    ..Spec::new("preset", Kind::List, "Presets to apply, in order; a later one wins")
});

/// The one configuration file to read, instead of searching.
pub static PATHS_CONFIG_FILE: Setting<String> = Setting::new(Spec {
    scope: Scope::Client,
    hot: false,
    bootstrap: true,
    flags: &["--config"],
    env: &["MCPX_CONFIG"],
    doc: "Empty: search upward from the working directory, then in the user's and the system's places. A file that is named but missing is an error.",
    ..Spec::new("paths.configFile", Kind::Path, "The one configuration file to read, instead of searching")
});

/// Where daemons keep their sockets, info files and logs.
pub static PATHS_STATE: Setting<String> = Setting::new(Spec {
    scope: Scope::Client,
    hot: false,
    bootstrap: true,
    env: &["MCPX_STATE_DIR"],
    doc: "Empty: `$XDG_STATE_HOME/mcpx`, else `~/.local/state/mcpx`.",
    ..Spec::new("paths.state", Kind::Path, "Where daemons keep their sockets, info files and logs")
});

/// Where schemas and generated clients are cached.
pub static PATHS_CACHE: Setting<String> = Setting::new(Spec {
    scope: Scope::Client,
    hot: false,
    bootstrap: true,
    env: &["MCPX_CACHE_DIR"],
    doc: "Empty: `$XDG_CACHE_HOME/mcpx`, else `~/.cache/mcpx`.",
    ..Spec::new("paths.cache", Kind::Path, "Where schemas and generated clients are cached")
});

/// What an instance of a server is keyed by, where the server does not say.
pub static POOL_SCOPE: Setting<String> = Setting::new(Spec {
    doc: "A server's own `\"mcpx\": {\"scope\": …}` comes first.",
    ..Spec::new(
        "pool.scope",
        Kind::Enum(SCOPES),
        "What an instance of a server is keyed by, where the server does not say",
    )
});

/// Whether an instance takes several calls at once, where the server does not say.
pub static POOL_SHARING: Setting<String> = Setting::new(Spec {
    doc: "A server's own `\"mcpx\": {\"sharing\": …}` comes first.",
    ..Spec::new(
        "pool.sharing",
        Kind::Enum(SHARING),
        "Whether an instance takes several calls at once, where the server does not say",
    )
});

/// How long a server may take to start and to answer `initialize`.
pub static POOL_START_TIMEOUT: Setting<Duration> = Setting::new(Spec {
    doc: "Per server: `\"mcpx\": {\"startTimeout\": …}`.",
    ..Spec::new(
        "pool.startTimeout",
        Kind::Duration(ms(100), HOUR, None),
        "How long a server may take to start and to answer `initialize`",
    )
});

/// How long one tool call may take.
pub static POOL_CALL_TIMEOUT: Setting<Duration> = Setting::new(Spec {
    scope: Scope::Call,
    doc: "The server is told that the call was cancelled. Per server: `\"mcpx\": {\"callTimeout\": …}`.",
    ..Spec::new(
        "pool.callTimeout",
        Kind::Duration(ms(1), WEEK, Some("no limit")),
        "How long one tool call may take",
    )
});

/// How long an unused instance is kept.
pub static POOL_IDLE_TIMEOUT: Setting<Duration> = Setting::new(Spec {
    doc: "Per server: `\"mcpx\": {\"idleTimeout\": …}`.",
    ..Spec::new(
        "pool.idleTimeout",
        Kind::Duration(ms(100), YEAR, Some("never")),
        "How long an unused instance is kept",
    )
});

/// How long a server may take to leave once its stdin is closed.
pub static POOL_STOP_GRACE: Setting<Duration> = Setting::new(Spec {
    doc: "SIGTERM to its process group follows.",
    ..Spec::new(
        "pool.stopGrace",
        Kind::Duration(Duration::ZERO, HOUR, None),
        "How long a server may take to leave once its stdin is closed",
    )
});

/// How long a server may take to leave after SIGTERM.
pub static POOL_KILL_GRACE: Setting<Duration> = Setting::new(Spec {
    doc: "SIGKILL to its process group follows.",
    ..Spec::new(
        "pool.killGrace",
        Kind::Duration(Duration::ZERO, HOUR, None),
        "How long a server may take to leave after SIGTERM",
    )
});

/// How many instances of one server may run.
pub static POOL_MAX: Setting<i64> = Setting::new(Spec {
    doc: "Per server: `\"mcpx\": {\"max\": …}`.",
    ..Spec::new("pool.max", Kind::Int(1, 4096), "How many instances of one server may run")
});

/// How many callers may wait for one instance.
pub static POOL_QUEUE: Setting<i64> = Setting::new(Spec {
    doc: "One more is refused as busy.",
    ..Spec::new("pool.queue", Kind::Int(0, 1_000_000), "How many callers may wait for one instance")
});

/// How long a server that failed to start is left alone at first.
pub static POOL_COOL_DOWN_MIN: Setting<Duration> = Setting::new(Spec {
    doc: "The time doubles with each failure, up to `pool.coolDownMax`.",
    ..Spec::new(
        "pool.coolDownMin",
        Kind::Duration(Duration::ZERO, DAY, None),
        "How long a server that failed to start is left alone at first",
    )
});

/// How long a server that keeps failing is left alone at most.
pub static POOL_COOL_DOWN_MAX: Setting<Duration> = Setting::new(Spec::new(
    "pool.coolDownMax",
    Kind::Duration(Duration::ZERO, DAY, None),
    "How long a server that keeps failing is left alone at most",
));

/// How much of each server's latest stderr is kept, to say why it failed.
pub static POOL_STDERR_TAIL: Setting<u64> = Setting::new(Spec::new(
    "pool.stderrTail",
    Kind::Bytes(0, 16 * MIB),
    "How much of each server's latest stderr is kept, to say why it failed",
));

/// The largest message taken from a server.
pub static MCP_MAX_MESSAGE: Setting<u64> = Setting::new(Spec {
    doc: "A larger one ends that call with `too-large`, not the server.",
    ..Spec::new("mcp.maxMessage", Kind::Bytes(64 * KIB, 16 * GIB), "The largest message taken from a server")
});

/// How deep a message from a server may be nested.
pub static MCP_MAX_DEPTH: Setting<i64> = Setting::new(Spec::new(
    "mcp.maxDepth",
    Kind::Int(8, 10_000),
    "How deep a message from a server may be nested",
));

/// Check arguments against the tool's schema before sending them.
pub static MCP_VALIDATE_ARGUMENTS: Setting<bool> = Setting::new(Spec {
    scope: Scope::Call,
    doc: "Off: the server alone judges them.",
    ..Spec::new(
        "mcp.validateArguments",
        Kind::Bool,
        "Check arguments against the tool's schema before sending them",
    )
});

/// How long a server's tools are answered from the cache on disk.
pub static CATALOG_CACHE_TTL: Setting<Duration> = Setting::new(Spec {
    scope: Scope::Client,
    doc: "0 asks the server each time; `mcpx refresh` asks at once.",
    ..Spec::new(
        "catalog.cacheTtl",
        Kind::Duration(Duration::ZERO, YEAR, None),
        "How long a server's tools are answered from the cache on disk",
    )
});

/// How many servers are asked for their tools at once.
pub static CATALOG_CONCURRENCY: Setting<i64> = Setting::new(Spec::new(
    "catalog.concurrency",
    Kind::Int(1, 256),
    "How many servers are asked for their tools at once",
));

/// How many characters of a description a listing shows.
pub static CATALOG_DESCRIBE: Setting<i64> = Setting::new(Spec {
    scope: Scope::Client,
    doc: "0 shows none.",
    ..Spec::new(
        "catalog.describe",
        Kind::Int(0, 10_000),
        "How many characters of a description a listing shows",
    )
});

/// How many results a search prints.
pub static SEARCH_LIMIT: Setting<i64> = Setting::new(Spec {
    scope: Scope::Client,
    flags: &["--limit"],
    ..Spec::new("search.limit", Kind::Int(1, 10_000), "How many results a search prints")
});

/// What runs a script: auto, deno, bun, node, a name under `script.runtimes`, or a path.
pub static SCRIPT_RUNTIME: Setting<String> = Setting::new(Spec {
    scope: Scope::Client,
    flags: &["--runtime"],
    doc: "`auto` takes the first of `script.runtimeOrder` that is installed and can enforce the permissions.",
    ..Spec::new(
        "script.runtime",
        Kind::Text,
        "What runs a script: auto, deno, bun, node, a name under `script.runtimes`, or a path",
    )
});

/// The order in which `auto` tries runtimes.
pub static SCRIPT_RUNTIME_ORDER: Setting<Vec<String>> = Setting::new(Spec {
    scope: Scope::Client,
    ..Spec::new("script.runtimeOrder", Kind::List, "The order in which `auto` tries runtimes")
});

/// Further runtimes by name: `{"kind": "deno", "bin": "/path", "args": []}`.
pub static SCRIPT_RUNTIMES: Setting<Value> = Setting::new(Spec {
    scope: Scope::Client,
    doc: "`kind` is deno, bun or node; `bin` defaults to the name; `args` go before the permission flags. The nearest file that sets it replaces the whole object.",
    ..Spec::new(
        "script.runtimes",
        Kind::Json,
        "Further runtimes by name: `{\"kind\": \"deno\", \"bin\": \"/path\", \"args\": []}`",
    )
});

/// What a script may do: profiles separated by commas, and `raw:` flags last.
pub static SCRIPT_PERMISSIONS: Setting<String> = Setting::new(Spec {
    scope: Scope::Client,
    flags: &["--permissions"],
    env: &["MCPX_PERMISSIONS"],
    doc: "Built in: all, net, read, readnet, strict.",
    ..Spec::new(
        "script.permissions",
        Kind::Text,
        "What a script may do: profiles separated by commas, and `raw:` flags last",
    )
});

/// Further permission profiles by name: flags for each kind of runtime.
pub static SCRIPT_PROFILES: Setting<Value> = Setting::new(Spec {
    scope: Scope::Client,
    doc: "An object maps kinds to lists of flags; a text is flags for every kind. The nearest file that sets it replaces the whole object.",
    ..Spec::new(
        "script.profiles",
        Kind::Json,
        "Further permission profiles by name: flags for each kind of runtime",
    )
});

/// How long a script may run.
pub static SCRIPT_TIMEOUT: Setting<Duration> = Setting::new(Spec {
    scope: Scope::Client,
    flags: &["--timeout"],
    ..Spec::new("script.timeout", Kind::Duration(ms(1), YEAR, Some("no limit")), "How long a script may run")
});

/// How long a script may take to leave after SIGTERM.
pub static SCRIPT_KILL_GRACE: Setting<Duration> = Setting::new(Spec {
    scope: Scope::Client,
    doc: "SIGKILL to its process group follows.",
    ..Spec::new(
        "script.killGrace",
        Kind::Duration(Duration::ZERO, HOUR, None),
        "How long a script may take to leave after SIGTERM",
    )
});

/// How much of a script's output is kept where it is collected into one document.
pub static SCRIPT_CAPTURE_LIMIT: Setting<u64> = Setting::new(Spec {
    scope: Scope::Client,
    doc: "The rest is dropped, and the document says so.",
    ..Spec::new(
        "script.captureLimit",
        Kind::Bytes(KIB, 4 * GIB),
        "How much of a script's output is kept where it is collected into one document",
    )
});

/// Print JSON.
pub static OUTPUT_JSON: Setting<bool> = Setting::new(Spec {
    scope: Scope::Client,
    flags: &["--json"],
    ..Spec::new("output.json", Kind::Bool, "Print JSON")
});

/// When to print in colour.
pub static OUTPUT_COLOR: Setting<String> = Setting::new(Spec {
    scope: Scope::Client,
    flags: &["--color"],
    ..Spec::new("output.color", Kind::Enum(COLOR), "When to print in colour")
});

/// What becomes of images and audio in a result.
pub static OUTPUT_MEDIA: Setting<String> = Setting::new(Spec {
    scope: Scope::Client,
    flags: &["--media"],
    ..Spec::new("output.media", Kind::Enum(MEDIA), "What becomes of images and audio in a result")
});

/// Where images and audio are written.
pub static OUTPUT_MEDIA_DIR: Setting<String> = Setting::new(Spec {
    scope: Scope::Client,
    doc: "Empty: a directory of the run under the cache directory.",
    ..Spec::new("output.mediaDir", Kind::Path, "Where images and audio are written")
});

/// The lowest level that is logged.
pub static LOGGING_LEVEL: Setting<String> = Setting::new(Spec {
    scope: Scope::Client,
    flags: &["--log-level"],
    env: &["MCPX_LOG_LEVEL"],
    ..Spec::new("logging.level", Kind::Enum(LEVELS), "The lowest level that is logged")
});

/// Start a daemon when none is running.
pub static DAEMON_AUTOSTART: Setting<bool> = Setting::new(Spec {
    scope: Scope::Client,
    ..Spec::new("daemon.autostart", Kind::Bool, "Start a daemon when none is running")
});

/// The HTTP address of the daemon to use, instead of looking for one.
pub static DAEMON_ENDPOINT: Setting<String> = Setting::new(Spec {
    scope: Scope::Client,
    flags: &["--endpoint"],
    doc: "For instance `http://127.0.0.1:4000`.",
    ..Spec::new(
        "daemon.endpoint",
        Kind::Text,
        "The HTTP address of the daemon to use, instead of looking for one",
    )
});

/// The unix socket where a daemon listens and a command connects.
pub static DAEMON_SOCKET: Setting<String> = Setting::new(Spec {
    scope: Scope::Client,
    hot: false,
    flags: &["--socket"],
    env: &["MCPX_SOCKET"],
    doc: "Empty: a name made from the configuration, in the state directory.",
    ..Spec::new("daemon.socket", Kind::Path, "The unix socket where a daemon listens and a command connects")
});

/// How long a daemon keeps its old names after its configuration changed.
pub static DAEMON_KEY_GRACE: Setting<Duration> = Setting::new(Spec::new(
    "daemon.keyGrace",
    Kind::Duration(Duration::ZERO, DAY, None),
    "How long a daemon keeps its old names after its configuration changed",
));

/// How often a daemon looks for idle instances and changed configuration.
pub static DAEMON_TICK: Setting<Duration> = Setting::new(Spec {
    hot: false,
    ..Spec::new(
        "daemon.tick",
        Kind::Duration(ms(10), HOUR, None),
        "How often a daemon looks for idle instances and changed configuration",
    )
});

/// How long a command waits for a daemon that it started.
pub static AUTOSTART_TIMEOUT: Setting<Duration> = Setting::new(Spec {
    scope: Scope::Client,
    ..Spec::new(
        "autostart.timeout",
        Kind::Duration(ms(100), HOUR, None),
        "How long a command waits for a daemon that it started",
    )
});

/// How long a daemon that a command started stays without anything to do.
pub static AUTOSTART_IDLE_EXIT: Setting<Duration> = Setting::new(Spec {
    doc: "A daemon in the foreground stays.",
    ..Spec::new(
        "autostart.idleExit",
        Kind::Duration(ms(100), YEAR, Some("never")),
        "How long a daemon that a command started stays without anything to do",
    )
});

/// How long a daemon may take to accept a connection.
pub static RESOLVE_DIAL_TIMEOUT: Setting<Duration> = Setting::new(Spec {
    scope: Scope::Client,
    ..Spec::new(
        "resolve.dialTimeout",
        Kind::Duration(ms(1), MINUTE, None),
        "How long a daemon may take to accept a connection",
    )
});

/// The token that every TCP request must carry.
pub static TRANSPORT_BEARER_TOKEN: Setting<Secret> = Setting::new(Spec {
    hot: false,
    doc: "Empty: one is made at start and kept in the daemon's info file. It has no flag, because other users can read a command line.",
    ..Spec::new("transport.bearerToken", Kind::Secret, "The token that every TCP request must carry")
});

/// Listen on TCP besides the unix socket.
pub static TRANSPORT_TCP: Setting<bool> = Setting::new(Spec {
    hot: false,
    ..Spec::new("transport.tcp", Kind::Bool, "Listen on TCP besides the unix socket")
});

/// The TCP address to listen on.
pub static TRANSPORT_LISTEN: Setting<String> = Setting::new(Spec {
    hot: false,
    flags: &["--listen"],
    doc: "Port 0 takes a free one. An address beyond loopback needs `transport.bearerToken`.",
    ..Spec::new("transport.listen", Kind::Text, "The TCP address to listen on")
});

/// How many connections are served at once.
pub static TRANSPORT_MAX_CONNECTIONS: Setting<i64> = Setting::new(Spec {
    hot: false,
    doc: "One more is answered with 503 and `Retry-After`.",
    ..Spec::new("transport.maxConnections", Kind::Int(1, 100_000), "How many connections are served at once")
});

/// The largest request body.
pub static TRANSPORT_MAX_BODY: Setting<u64> =
    Setting::new(Spec::new("transport.maxBody", Kind::Bytes(KIB, 16 * GIB), "The largest request body"));

/// The largest request head.
pub static TRANSPORT_MAX_HEADER: Setting<u64> =
    Setting::new(Spec::new("transport.maxHeader", Kind::Bytes(KIB, 16 * MIB), "The largest request head"));

/// How long a client may take to send a request's head.
pub static TRANSPORT_HEADER_TIMEOUT: Setting<Duration> = Setting::new(Spec::new(
    "transport.headerTimeout",
    Kind::Duration(ms(10), HOUR, None),
    "How long a client may take to send a request's head",
));

/// How long an unused connection is kept.
pub static TRANSPORT_IDLE_TIMEOUT: Setting<Duration> = Setting::new(Spec::new(
    "transport.idleTimeout",
    Kind::Duration(ms(10), DAY, None),
    "How long an unused connection is kept",
));

/// How long a client may take to read the next part of a response.
pub static TRANSPORT_WRITE_TIMEOUT: Setting<Duration> = Setting::new(Spec::new(
    "transport.writeTimeout",
    Kind::Duration(ms(10), DAY, None),
    "How long a client may take to read the next part of a response",
));

/// Refuse a configuration file that has an unknown key, instead of warning.
pub static PLUMBING_STRICT_UNKNOWN_KEYS: Setting<bool> = Setting::new(Spec {
    scope: Scope::Client,
    ..Spec::new(
        "plumbing.strictUnknownKeys",
        Kind::Bool,
        "Refuse a configuration file that has an unknown key, instead of warning",
    )
});
