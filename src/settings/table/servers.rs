//! Declares the settings of the servers: the pool, the protocol, the catalogue of their tools.
#![allow(missing_docs, reason = "each entry's help says what it is")]

use super::unit::{DAY, GIB, HOUR, KIB, MIB, WEEK, YEAR, ms};
use crate::settings::choices::{LOG_LEVELS, PROTOCOLS, SCOPES, SHARING};
use crate::settings::declared::{Setting, Spec};
use crate::settings::kind::Kind;
use serde_json::Value;
use std::time::Duration;

pub static POOL_SCOPE: Setting<String> = Setting::new(
    Spec::new(
        "pool.scope",
        Kind::Enum(SCOPES),
        "What an instance of a server is keyed by, where the server does not say",
    )
    .doc("A server's own `\"mcpx\": {\"scope\": …}` comes first."),
);

pub static POOL_SHARING: Setting<String> = Setting::new(
    Spec::new(
        "pool.sharing",
        Kind::Enum(SHARING),
        "Whether an instance takes several calls at once, where the server does not say",
    )
    .doc("A server's own `\"mcpx\": {\"sharing\": …}` comes first."),
);

pub static POOL_START_TIMEOUT: Setting<Duration> = Setting::new(
    Spec::new(
        "pool.startTimeout",
        Kind::Duration(ms(100), HOUR, None),
        "How long a server may take to start and to answer `initialize`",
    )
    .doc("Per server: `\"mcpx\": {\"startTimeout\": …}`."),
);

pub static POOL_CALL_TIMEOUT: Setting<Duration> = Setting::new(
    Spec::new(
        "pool.callTimeout",
        Kind::Duration(ms(1), WEEK, Some("no limit")),
        "How long one tool call may take",
    )
    .call()
    .doc(
        "The server is told that the call was cancelled. Per server: `\"mcpx\": \
         {\"callTimeout\": …}`.",
    ),
);

pub static POOL_IDLE_TIMEOUT: Setting<Duration> = Setting::new(
    Spec::new(
        "pool.idleTimeout",
        Kind::Duration(ms(100), YEAR, Some("never")),
        "How long an unused instance is kept",
    )
    .doc("Per server: `\"mcpx\": {\"idleTimeout\": …}`."),
);

pub static POOL_STOP_GRACE: Setting<Duration> = Setting::new(
    Spec::new(
        "pool.stopGrace",
        Kind::Duration(Duration::ZERO, HOUR, None),
        "How long a server may take to leave once its stdin is closed",
    )
    .doc("SIGTERM to its process group follows."),
);

pub static POOL_KILL_GRACE: Setting<Duration> = Setting::new(
    Spec::new(
        "pool.killGrace",
        Kind::Duration(Duration::ZERO, HOUR, None),
        "How long a server may take to leave after SIGTERM",
    )
    .doc("SIGKILL to its process group follows."),
);

pub static POOL_MIN: Setting<i64> = Setting::new(
    Spec::new("pool.min", Kind::Int(0, 4096), "How many instances of a server are kept running although nobody calls")
        .doc(
            "Holds for the scopes that all callers share, `global` and `named:…`, which have one instance: 1 or more \
             starts it with the daemon, keeps it past `pool.idleTimeout`, and starts it anew when it crashes, after \
             its cool-down. Per server: `\"mcpx\": {\"min\": …}`, at most its `max`.",
        ),
);

pub static POOL_MAX: Setting<i64> = Setting::new(
    Spec::new("pool.max", Kind::Int(1, 4096), "How many instances of one server may run")
        .doc("Per server: `\"mcpx\": {\"max\": …}`."),
);

pub static POOL_QUEUE: Setting<i64> = Setting::new(
    Spec::new("pool.queue", Kind::Int(0, 1_000_000), "How many callers may wait for one instance")
        .doc("One more is refused as busy."),
);

pub static POOL_COOL_DOWN_MIN: Setting<Duration> = Setting::new(
    Spec::new(
        "pool.coolDownMin",
        Kind::Duration(Duration::ZERO, DAY, None),
        "How long a server that failed to start is left alone at first",
    )
    .doc("The time doubles with each failure, up to `pool.coolDownMax`."),
);

pub static POOL_COOL_DOWN_MAX: Setting<Duration> = Setting::new(Spec::new(
    "pool.coolDownMax",
    Kind::Duration(Duration::ZERO, DAY, None),
    "How long a server that keeps failing is left alone at most",
));

pub static POOL_STDERR_TAIL: Setting<u64> = Setting::new(Spec::new(
    "pool.stderrTail",
    Kind::Bytes(0, 16 * MIB),
    "How much of each server's latest stderr is kept, to say why it failed",
));

pub static UPSTREAM_PROTOCOL: Setting<String> = Setting::new(
    Spec::new(
        "upstream.protocol",
        Kind::Enum(PROTOCOLS),
        "Which revision of MCP servers are spoken to in, where the server does not say",
    )
    .doc(
        "A server's own `\"mcpx\": {\"protocol\": …}` comes first. A revision with `initialize` is what is \
         asked for; the server may answer with another one that mcpx knows.",
    ),
);

pub static UPSTREAM_RETRY: Setting<Duration> = Setting::new(
    Spec::new(
        "upstream.retry",
        Kind::Duration(ms(10), HOUR, None),
        "How long a server over HTTP is left alone after a stream's end, unless it says otherwise",
    )
    .doc("The time doubles while nothing comes, up to `upstream.retryMost`."),
);

pub static UPSTREAM_RETRY_MOST: Setting<Duration> = Setting::new(Spec::new(
    "upstream.retryMost",
    Kind::Duration(ms(10), DAY, None),
    "How long it is left alone at most, whatever it says",
));

pub static UPSTREAM_RESUMES: Setting<i64> = Setting::new(
    Spec::new(
        "upstream.resumes",
        Kind::Int(0, 1000),
        "How often the rest of an answer is asked for whose stream broke, before it has gone on",
    )
    .doc("This asks for events that are missing; no call is sent again."),
);

pub static UPSTREAM_ACCEPT_TIMEOUT: Setting<Duration> = Setting::new(Spec::new(
    "upstream.acceptTimeout",
    Kind::Duration(ms(10), HOUR, None),
    "How long a server over HTTP may take to accept a message that needs no answer",
));

pub static UPSTREAM_SILENCE: Setting<Duration> = Setting::new(
    Spec::new(
        "upstream.silence",
        Kind::Duration(ms(100), DAY, None),
        "How long the stream of what a server says of itself may be silent before it is begun anew",
    )
    .doc("What lies between may have forgotten a silent connection."),
);

pub static UPSTREAM_LOG_LEVEL: Setting<String> = Setting::new(
    Spec::new("upstream.logLevel", Kind::Enum(LOG_LEVELS), "From which level on servers are to send log messages").doc(
        "Said to servers that declare logging when they start; their messages are in `mcpx log` and `mcpx events`.",
    ),
);

pub static UPSTREAM_TASKS: Setting<String> = Setting::new(
    Spec::new(
        "upstream.tasks",
        Kind::Enum(&[
            ("auto", "where a call is given more time than `pool.callTimeout`"),
            ("always", "every call of such a tool"),
            ("never", "none, and no server of the stateless era is told that it may"),
        ]),
        "Whether tools that may be called as tasks of their server are",
    )
    .doc(
        "A tool that can only be called as a task always is one. In the stateless era it is the server that makes a \
         task of a call.",
    ),
);

pub static ELICIT_TIMEOUT: Setting<Duration> = Setting::new(
    Spec::new(
        "elicit.timeout",
        Kind::Duration(ms(100), WEEK, None),
        "How long a server's question waits for an answer",
    )
    .doc("Then it is cancelled. The time does not count as the call's own."),
);

pub static ELICIT_KEEP: Setting<Duration> = Setting::new(
    Spec::new(
        "elicit.keep",
        Kind::Duration(ms(100), WEEK, None),
        "How long the result of a call that went on as a task is kept",
    )
    .doc("`mcpx task result` collects it, any number of times."),
);

pub static ELICIT_RULES: Setting<Value> = Setting::new(
    Spec::new("elicit.rules", Kind::Json, "Answers to servers' questions that need nobody, for CI").doc(
        "An object maps patterns for `server` or `server.tool` to `accept`, `decline` or `cancel`, or to \
         `{\"action\": \"accept\", \"content\": {…}}`; the longest pattern that fits decides. Accepted fields \
         that `content` lacks get the defaults of the form; where that does not fit the form it is declined.",
    ),
);

pub static SAMPLING_COMMAND: Setting<Vec<String>> = Setting::new(
    Spec::new("sampling.command", Kind::List, "The program, with its arguments, that has a model for servers which ask").doc(
        "It gets `{method, server, tool?, params}` as JSON on standard input, with the parameters of MCP's \
         `sampling/createMessage`, and prints its result: `content`, and perhaps `role`, `model` and `stopReason`. \
         Any other exit code than 0 is a refusal. Empty: such requests are refused. Servers that start from then on are told.",
    ),
);

pub static SAMPLING_SERVERS: Setting<Vec<String>> = Setting::new(Spec::new(
    "sampling.servers",
    Kind::List,
    "The servers whose requests it gets, as patterns; others are refused",
));

pub static SAMPLING_HOSTS: Setting<bool> = Setting::new(
    Spec::new("sampling.hosts", Kind::Bool, "Servers are told that there is a model even without a command").doc(
        "Hosts that mcpx serves may have one: a request that comes in the course of a host's call is put to that host, \
         where it said that it takes such. Others are refused, and a server that was told may not have another way. \
         Servers of the stateless era are told with each call, and need no such setting. `sampling.servers` holds here too.",
    ),
);

pub static SAMPLING_TIMEOUT: Setting<Duration> = Setting::new(
    Spec::new(
        "sampling.timeout",
        Kind::Duration(ms(100), DAY, Some("no limit")),
        "How long it may take for one request",
    )
    .doc("The time does not count as the call's own."),
);

pub static SAMPLING_CONCURRENCY: Setting<i64> = Setting::new(Spec::new(
    "sampling.concurrency",
    Kind::Int(1, 1000),
    "How many requests are answered at once; more are refused",
));

pub static MCP_MAX_MESSAGE: Setting<u64> = Setting::new(
    Spec::new("mcp.maxMessage", Kind::Bytes(64 * KIB, 16 * GIB), "The largest message taken from a server")
        .doc("A larger one ends that call with `too-large`, not the server."),
);

pub static MCP_MAX_DEPTH: Setting<i64> = Setting::new(Spec::new(
    "mcp.maxDepth",
    Kind::Int(8, 10_000),
    "How deep a message from a server may be nested",
));

pub static MCP_VALIDATE_ARGUMENTS: Setting<bool> = Setting::new(
    Spec::new(
        "mcp.validateArguments",
        Kind::Bool,
        "Check arguments against the tool's schema before sending them",
    )
    .call()
    .doc("Off: the server alone judges them."),
);

pub static OAUTH_CLIENT_METADATA_URL: Setting<String> = Setting::new(
    Spec::new(
        "oauth.clientMetadataUrl",
        Kind::Text,
        "The https address of a document that describes this client to whoever grants access",
    )
    .doc("Empty: mcpx registers itself where it has to. See the draft *OAuth Client ID Metadata Document*."),
);

pub static OAUTH_CALLBACK_PORT: Setting<i64> = Setting::new(
    Spec::new(
        "oauth.callbackPort",
        Kind::Int(0, 65_535),
        "The port of 127.0.0.1 where a login in a browser ends",
    )
    .client()
    .doc("0 takes a free one."),
);

pub static OAUTH_BROWSER: Setting<String> = Setting::new(
    Spec::new("oauth.browser", Kind::Text, "The program that `mcpx auth login` opens an address with")
        .client()
        .env(&["BROWSER"])
        .doc("Empty: `xdg-open`, or `open` on macOS. The address is its one argument; `none` opens nothing."),
);

pub static OAUTH_LOGIN_TIMEOUT: Setting<Duration> = Setting::new(
    Spec::new(
        "oauth.loginTimeout",
        Kind::Duration(ms(100), DAY, None),
        "How long a person may take to log in",
    )
    .client(),
);

pub static OAUTH_TIMEOUT: Setting<Duration> = Setting::new(Spec::new(
    "oauth.timeout",
    Kind::Duration(ms(100), HOUR, None),
    "How long one request to whoever grants access may take",
));

pub static CATALOG_CACHE_TTL: Setting<Duration> = Setting::new(
    Spec::new(
        "catalog.cacheTtl",
        Kind::Duration(Duration::ZERO, YEAR, None),
        "How long a server's tools are answered from the cache on disk",
    )
    .doc("0 asks the server each time; `mcpx refresh` asks at once."),
);

pub static CATALOG_CONCURRENCY: Setting<i64> = Setting::new(Spec::new(
    "catalog.concurrency",
    Kind::Int(1, 256),
    "How many servers are asked for their tools at once",
));

pub static CATALOG_DESCRIBE: Setting<i64> = Setting::new(
    Spec::new(
        "catalog.describe",
        Kind::Int(0, 10_000),
        "How many characters of a description a listing shows",
    )
    .client()
    .doc("0 shows none."),
);

pub static CATALOG_WAIT: Setting<Duration> = Setting::new(
    Spec::new(
        "catalog.wait",
        Kind::Duration(Duration::ZERO, HOUR, None),
        "How long a listing waits for servers that are still starting",
    )
    .client()
    .doc(
        "They go on starting; the next listing has their tools. `mcpx refresh` and `mcpx call` wait longer.",
    ),
);

pub static CATALOG_LOCK: Setting<String> = Setting::new(
    Spec::new("catalog.lock", Kind::Path, "The file in which `mcpx lock` writes what every server offers")
        .client()
        .doc("Empty: `.mcpx.lock.json` beside the nearest configuration file."),
);

pub static CATALOG_FROZEN: Setting<bool> = Setting::new(
    Spec::new("catalog.frozen", Kind::Bool, "List, search and type from the lock alone, and ask no server")
        .client()
        .flags(&["--frozen"])
        .doc("For `mcpx check` it means that the lock must cover exactly the servers that are configured."),
);

pub static CATALOG_BUDGET: Setting<i64> = Setting::new(
    Spec::new("catalog.budget", Kind::Int(1, 10_000_000), "How many tokens `mcpx catalog` may take")
        .client()
        .flags(&["--budget"])
        .doc("An estimate: about four letters of a word, or two signs, make one."),
);

pub static CATALOG_PROFILE: Setting<Vec<String>> = Setting::new(
    Spec::new("catalog.profile", Kind::List, "Profiles whose servers are taken besides the default set")
        .client()
        .flags(&["--profile"])
        .env(&["MCPX_PROFILE"])
        .doc("A server names its profiles in `\"mcpx\": {\"profiles\": […]}`."),
);

pub static CATALOG_SKIP_DEFAULT: Setting<bool> = Setting::new(
    Spec::new("catalog.skipDefault", Kind::Bool, "Leave out the servers that name no profile")
        .client()
        .flags(&["--skip-default"]),
);

pub static CATALOG_ALL_PROFILES: Setting<bool> = Setting::new(
    Spec::new("catalog.allProfiles", Kind::Bool, "Take every server, whatever its profiles")
        .client()
        .flags(&["--all-profiles"]),
);

pub static SEARCH_LIMIT: Setting<i64> = Setting::new(
    Spec::new("search.limit", Kind::Int(1, 10_000), "How many results a search prints")
        .client()
        .flags(&["--limit"]),
);
