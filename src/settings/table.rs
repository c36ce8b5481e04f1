//! Defines every setting. The order of `ALL` is the order of the documentation;
//! the defaults are in `defaults.json`, and a test holds the two together.

mod adapters;
mod artifacts;
mod daemon;
mod exec;
mod general;
mod observing;
mod plugin;
mod scripts;
mod serve;
mod servers;

use super::declared::Declared;
pub use adapters::*;
pub use artifacts::*;
pub use daemon::*;
pub use exec::*;
pub use general::*;
pub use observing::*;
pub use plugin::*;
pub use scripts::*;
pub use serve::*;
pub use servers::*;

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
    &POOL_MIN,
    &POOL_MAX,
    &POOL_QUEUE,
    &POOL_COOL_DOWN_MIN,
    &POOL_COOL_DOWN_MAX,
    &POOL_STDERR_TAIL,
    &UPSTREAM_PROTOCOL,
    &UPSTREAM_RETRY,
    &UPSTREAM_RETRY_MOST,
    &UPSTREAM_RESUMES,
    &UPSTREAM_ACCEPT_TIMEOUT,
    &UPSTREAM_SILENCE,
    &UPSTREAM_LOG_LEVEL,
    &UPSTREAM_TASKS,
    &MCP_MAX_MESSAGE,
    &MCP_MAX_DEPTH,
    &MCP_VALIDATE_ARGUMENTS,
    &ADAPTERS_TIMEOUT,
    &ADAPTERS_MAX_OUTPUT,
    &ADAPTERS_MAX_DOCUMENT,
    &ADAPTERS_MAX_SCHEMA,
    &OAUTH_CLIENT_METADATA_URL,
    &OAUTH_CALLBACK_PORT,
    &OAUTH_BROWSER,
    &OAUTH_LOGIN_TIMEOUT,
    &OAUTH_TIMEOUT,
    &ELICIT_TIMEOUT,
    &ELICIT_KEEP,
    &ELICIT_RULES,
    &SAMPLING_COMMAND,
    &SAMPLING_SERVERS,
    &SAMPLING_HOSTS,
    &SAMPLING_TIMEOUT,
    &SAMPLING_CONCURRENCY,
    &CATALOG_CACHE_TTL,
    &CATALOG_CONCURRENCY,
    &CATALOG_DESCRIBE,
    &CATALOG_WAIT,
    &CATALOG_LOCK,
    &CATALOG_FROZEN,
    &CATALOG_BUDGET,
    &CATALOG_PROFILE,
    &CATALOG_SKIP_DEFAULT,
    &CATALOG_ALL_PROFILES,
    &SEARCH_LIMIT,
    &SCRIPT_RUNTIME,
    &SCRIPT_RUNTIME_ORDER,
    &SCRIPT_RUNTIMES,
    &SCRIPT_INTERPRETER,
    &SCRIPT_DIRS,
    &SCRIPT_INHERIT_ENV,
    &SCRIPT_PERMISSIONS,
    &SCRIPT_PROFILES,
    &SCRIPT_PREFIX,
    &SCRIPT_SUFFIX,
    &SCRIPT_BEFORE,
    &SCRIPT_ON_SUCCESS,
    &SCRIPT_ON_ERROR,
    &SCRIPT_CONSOLE,
    &SCRIPT_LOG_SOURCE,
    &SCRIPT_TYPECHECK,
    &SCRIPT_TIMEOUT,
    &SCRIPT_KILL_GRACE,
    &SCRIPT_CAPTURE_LIMIT,
    &SERVE_MODE,
    &SERVE_NAMES,
    &SERVE_TOOLS,
    &SERVE_INSTRUCTIONS,
    &SERVE_LIST_TTL,
    &SERVE_HISTORY,
    &SERVE_TASK_AFTER,
    &SERVE_TASK_TTL,
    &EXEC_WHERE,
    &EXEC_ENABLED,
    &EXEC_CONCURRENCY,
    &EXEC_TIMEOUT,
    &EXEC_HOOK_TIMEOUT,
    &ARTIFACTS_MAX_SIZE,
    &ARTIFACTS_QUOTA,
    &ARTIFACTS_TTL,
    &ARTIFACTS_RESULTS,
    &ARTIFACTS_RESULTS_FROM,
    &OUTPUT_JSON,
    &OUTPUT_COLOR,
    &OUTPUT_MEDIA,
    &OUTPUT_MEDIA_DIR,
    &LOGGING_LEVEL,
    &LOGGING_ARGUMENTS,
    &LOGGING_MAX_SIZE,
    &LOGGING_MAX_LINES,
    &LOGGING_MAX_AGE,
    &LOGGING_KEEP,
    &EVENTS_HISTORY,
    &EVENTS_HEARTBEAT,
    &EVENTS_CONSUMERS,
    &EVENTS_ACK_TIMEOUT,
    &EVENTS_RESTART_MAX,
    &EVENTS_HOOK_CONCURRENCY,
    &EVENTS_HOOK_QUEUE,
    &EVENTS_HOOK_TIMEOUT,
    &HOOKS,
    &COMMANDS_DIRS,
    &DOCTOR_TIMEOUT,
    &DOCTOR_CONCURRENCY,
    &DOCTOR_DISK_FREE,
    &DAEMON_AUTOSTART,
    &DAEMON_ENDPOINT,
    &DAEMON_CONNECT_TIMEOUT,
    &DAEMON_INLINE,
    &DAEMON_SOCKET,
    &DAEMON_KEY_GRACE,
    &DAEMON_DRAIN_TIMEOUT,
    &DAEMON_TICK,
    &AUTOSTART_TIMEOUT,
    &AUTOSTART_IDLE_EXIT,
    &SESSION_IDLE_TIMEOUT,
    &SESSION_KEEP_MOST,
    &RESOLVE_DIAL_TIMEOUT,
    &TRANSPORT_BEARER_TOKEN,
    &TRANSPORT_TCP,
    &TRANSPORT_LISTEN,
    &TRANSPORT_HOSTS,
    &TRANSPORT_CA_FILE,
    &TRANSPORT_MAX_CONNECTIONS,
    &TRANSPORT_MAX_BODY,
    &TRANSPORT_MAX_HEADER,
    &TRANSPORT_HEADER_TIMEOUT,
    &TRANSPORT_IDLE_TIMEOUT,
    &TRANSPORT_WRITE_TIMEOUT,
    &PLUGIN_ENDPOINT,
    &PLUGIN_SOCKET,
    &PLUGIN_BIN,
    &PLUGIN_BIN_ARGS,
    &PLUGIN_BACKEND,
    &PLUGIN_REMEMBER,
    &PLUGIN_ENV,
    &PLUGIN_INSTRUCTIONS,
    &PLUGIN_TOOL_TIMING,
    &PLUGIN_TOOLS,
    &PLUGIN_DAEMON_TOOLS,
    &PLUGIN_ANNOTATE,
    &PLUGIN_HEADLESS,
    &PLUMBING_STRICT_UNKNOWN_KEYS,
];

/// Constants and units that the ranges are written in.
mod unit {
    use std::time::Duration;

    pub(super) const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }
    pub(super) const fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }
    pub(super) const DAY: Duration = secs(86_400);
    pub(super) const YEAR: Duration = secs(86_400 * 365);
    pub(super) const KIB: u64 = 1 << 10;
    pub(super) const MIB: u64 = 1 << 20;
    pub(super) const GIB: u64 = 1 << 30;
    pub(super) const MINUTE: Duration = secs(60);
    pub(super) const HOUR: Duration = secs(3600);
    pub(super) const WEEK: Duration = secs(7 * 86_400);
}
