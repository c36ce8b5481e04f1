//! The JSON records that cross the daemon's socket. camelCase; unknown fields
//! are ignored; a missing optional field is absent, not null.

use crate::catalog::Grant;
use crate::config::Selection;
use crate::observe::log::Trace;
use crate::pool::GitEnv;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::path::PathBuf;

/// The header in which the call-scoped settings of a caller travel: a JSON
/// object by key, in the syntax of a configuration file.
pub const SETTINGS_HEADER: &str = "X-Mcpx-Settings";

/// Who is calling: decides which instance of a server a call reaches.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CallContext {
    /// The session key that calls are leased under; the daemon mints one when it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The session that the host assigned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The session that spawned this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_session_id: Option<String>,
    /// The session key was minted for this call or run alone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ephemeral: bool,
    /// The caller's working directory, absolute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// What the caller's `GIT_DIR`, `GIT_WORK_TREE` and `GIT_COMMON_DIR` say.
    #[serde(skip_serializing_if = "GitEnv::is_empty")]
    pub git: GitEnv,
    /// The pid of the caller's mcpx process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The run that the call belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The servers that the caller works with; absent means all, or those of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selection: Option<SelectedProfiles>,
    /// Ids that the caller's host gave, for the log: pairs of a name and a value.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trace: Trace,
}

/// A choice among the servers, by their profiles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SelectedProfiles {
    /// The profiles whose servers are taken besides the default set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub profile: Vec<String>,
    /// The default set is left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub skip_default: bool,
    /// Every server is taken.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub all_profiles: bool,
}

impl From<&Selection> for SelectedProfiles {
    fn from(s: &Selection) -> SelectedProfiles {
        SelectedProfiles { profile: s.profiles.clone(), skip_default: s.skip_default, all_profiles: s.all }
    }
}

impl From<SelectedProfiles> for Selection {
    fn from(s: SelectedProfiles) -> Selection {
        Selection { profiles: s.profile, skip_default: s.skip_default, all: s.all_profiles }
    }
}

/// `POST /v1/call`, and the `call` operation on a channel (there without `context`, which the channel's run gives).
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallRequest {
    /// The server's configured name, or its identifier.
    pub server: String,
    /// The tool's exact name, or its identifier.
    pub tool: String,
    /// The arguments, an object; absent means `{}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Box<RawValue>>,
    /// Who is calling.
    #[serde(default)]
    pub context: CallContext,
    /// How long to wait for the answer, in milliseconds; absent means the server's own limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// What the caller answers itself when the server asks, as MCP's `ClientCapabilities`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// MCP's `_meta` of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
    /// The caller rather gets a task than waits for long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskWish>,
}

/// How a caller wants a task instead of an answer.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskWish {
    /// How long to wait for the answer before it is a task, in milliseconds.
    #[serde(default)]
    pub after_ms: u64,
    /// How long the task is kept from its beginning on, in milliseconds; `elicit.keep` after its end when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// Whose it is: said of the task again, and when the session of that key ends it is cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

/// A namespace as `ls` shows it: one configured server.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceRow {
    /// The server's configured name.
    pub name: String,
    /// The identifier that stands for it in a program.
    pub ident: String,
    /// How many tools it offers; absent while that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<usize>,
    /// About how many tokens its tools' signatures take, a line each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<usize>,
    /// One line on what it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `ready` (schemas known), `locked` (known from the lock alone), `failed` (see `error`), `disabled`, or `unknown`.
    pub state: String,
    /// Why it cannot be used: the wire form of an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<serde_json::Value>,
    /// When its schemas were read, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fetched_at: Option<u64>,
    /// The configuration file that defines it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<PathBuf>,
}

/// A configured server as `servers` shows it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerRow {
    /// Its configured name.
    pub name: String,
    /// The identifier that stands for it in a program.
    pub ident: String,
    /// It is switched on.
    pub enabled: bool,
    /// It is among those that the asker works with.
    pub selected: bool,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The server that it is under another name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alias_of: Option<String>,
    /// The profiles that it belongs to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<String>,
    /// Its block as the file has it, variables not filled in, secrets masked.
    pub definition: serde_json::Value,
    /// The configuration file that defines it.
    pub source: PathBuf,
    /// The line of its name in that file.
    pub line: u32,
    /// Why it cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<serde_json::Value>,
}

/// `POST /v1/runs`: opens a run. On the unix socket it lives as long as the connection that opened it, or until `DELETE /v1/runs/{run}`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OpenRun {
    /// Who is calling; `session` absent means that the daemon mints an ephemeral key.
    pub context: CallContext,
    /// The tools that the run may call; absent means every tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Grant>>,
    /// The program runs in a sandbox.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confined: bool,
    /// Somebody answers what servers ask while the run goes on: its calls wait for that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interactive: bool,
}

/// The answer to `POST /v1/runs`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenedRun {
    /// The run's id.
    pub run: String,
    /// The session key that its calls are leased under.
    pub session: String,
    /// The key was minted for this run alone.
    pub ephemeral: bool,
    /// Every enabled namespace that is selected, in the configuration's order.
    pub namespaces: Vec<NamespaceName>,
    /// The daemon's HTTP endpoint, `http://127.0.0.1:PORT`, empty when TCP is off.
    pub endpoint: String,
    /// A bearer token for TCP requests of this run: it permits what a channel of the run permits, and ends with it. Empty when TCP is off.
    pub token: String,
}

/// A namespace's two names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceName {
    /// The server's configured name.
    pub name: String,
    /// The identifier that stands for it in a program.
    pub ident: String,
}

/// An instance of a server, as `status` shows it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InstanceRow {
    /// The server's configured name.
    pub server: String,
    /// What the instance is keyed by: `global`, `session:<key>`, `cwd:<path>`, …
    pub key: String,
    /// `starting`, `ready`, `stopping`, `failed`.
    pub state: String,
    /// The revision of MCP that it is spoken to in, once that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// The child's pid; absent for a server over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The session that owns it, if one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Milliseconds since it was started.
    pub uptime_ms: u64,
    /// Milliseconds since a call was last in it; 0 while one is.
    pub idle_ms: u64,
    /// Calls that it has answered.
    pub calls: u64,
    /// Calls that it is working on.
    pub in_flight: usize,
    /// Callers waiting for a place.
    pub queue: usize,
    /// The last failure, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// The last lines of its stderr.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
}

/// A session.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionRow {
    /// Its key: what `--session` and `MCPX_SESSION_ID` name it by.
    pub key: String,
    /// When it was first heard of, milliseconds since 1970; absent for one that was made for a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<u64>,
    /// Milliseconds since it was last used.
    pub idle_ms: u64,
    /// Until when it stays although nobody uses it, milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_until: Option<u64>,
    /// It was made for one run, and ends with it.
    pub ephemeral: bool,
    /// Its open runs.
    pub runs: usize,
    /// What it owns.
    pub instances: Vec<InstanceRow>,
}

/// `daemon-<key>.json` in the state directory (design: identity of a daemon), mode 0600.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DaemonInfo {
    /// The format's version: 1.
    pub schema: u32,
    /// The daemon's key: the fingerprint of its configuration's paths and bytes.
    pub key: String,
    /// Its process.
    pub pid: u32,
    /// The process's start time in clock ticks since boot; tells a reused pid.
    pub start_ticks: u64,
    /// The unix socket's path.
    pub socket: PathBuf,
    /// `http://127.0.0.1:PORT`, or empty when TCP is off.
    pub endpoint: String,
    /// The bearer token for `endpoint`.
    pub token: String,
    /// The nearest configuration file, or empty.
    pub config_path: PathBuf,
    /// Every configuration file that contributed, nearest first.
    pub sources: Vec<PathBuf>,
    /// The digest of the server definitions, which the schema cache uses.
    pub servers_digest: String,
    /// mcpx's version.
    pub version: String,
    /// When it started, milliseconds since 1970.
    pub started_at: u64,
    /// The configured servers' names.
    pub servers: Vec<String>,
}
