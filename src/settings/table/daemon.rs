//! Declares the settings of the daemon: its life, its listeners, how a command finds it.
#![allow(missing_docs, reason = "each entry's help says what it is")]

use super::unit::{DAY, GIB, HOUR, KIB, MIB, MINUTE, YEAR, ms};
use crate::settings::declared::{Setting, Spec};
use crate::settings::kind::{Kind, Secret};
use std::time::Duration;

pub static DAEMON_AUTOSTART: Setting<bool> =
    Setting::new(Spec::new("daemon.autostart", Kind::Bool, "Start a daemon when none is running").client());

pub static DAEMON_ENDPOINT: Setting<String> = Setting::new(
    Spec::new(
        "daemon.endpoint",
        Kind::Text,
        "The address of the daemon to use, instead of looking for one",
    )
    .client()
    .flags(&["--endpoint"])
    .env(&["MCPX_ENDPOINT"])
    .doc(
        "`http://host:port`, `https://host:port` or `unix:///path`. No other daemon is tried and none is started: its \
         servers are used, not those configured here. An HTTP address needs `transport.bearerToken`.",
    ),
);

pub static DAEMON_CONNECT_TIMEOUT: Setting<Duration> = Setting::new(
    Spec::new(
        "daemon.connectTimeout",
        Kind::Duration(ms(10), HOUR, None),
        "How long the daemon at `daemon.endpoint` may take to accept a connection",
    )
    .client(),
);

pub static DAEMON_INLINE: Setting<bool> = Setting::new(
    Spec::new("daemon.inline", Kind::Bool, "Be the daemon for one command, and leave nothing running behind it")
        .client()
        .flags(&["--no-daemon"])
        .doc("For places that forbid background processes. The servers that a command needs are started and stopped by it."),
);

pub static DAEMON_SOCKET: Setting<String> = Setting::new(
    Spec::new("daemon.socket", Kind::Path, "The unix socket where a daemon listens and a command connects")
        .client()
        .cold()
        .flags(&["--socket"])
        .env(&["MCPX_SOCKET"])
        .doc(
            "In a configuration file it is where the daemon of that configuration listens, started by a command or by \
             hand; each configuration needs one of its own. As a variable or a flag it is the daemon that a command uses, \
             with no other tried and none started, and where `mcpx daemon` listens. At most 100 bytes are sure to \
             fit. Empty: a name made from the configuration, in the state directory.",
        ),
);

pub static DAEMON_KEY_GRACE: Setting<Duration> = Setting::new(Spec::new(
    "daemon.keyGrace",
    Kind::Duration(Duration::ZERO, DAY, None),
    "How long a daemon keeps its old names after its configuration changed",
));

pub static DAEMON_DRAIN_TIMEOUT: Setting<Duration> = Setting::new(
    Spec::new(
        "daemon.drainTimeout",
        Kind::Duration(Duration::ZERO, HOUR, None),
        "How long `mcpx restart --daemon` lets calls in flight go on before it replaces the daemon",
    )
    .client(),
);

pub static DAEMON_TICK: Setting<Duration> = Setting::new(Spec::new(
    "daemon.tick",
    Kind::Duration(ms(10), HOUR, None),
    "How often a daemon looks for idle instances and changed configuration",
));

pub static AUTOSTART_TIMEOUT: Setting<Duration> = Setting::new(
    Spec::new(
        "autostart.timeout",
        Kind::Duration(ms(100), HOUR, None),
        "How long a command waits for a daemon that it started",
    )
    .client(),
);

pub static AUTOSTART_IDLE_EXIT: Setting<Duration> = Setting::new(
    Spec::new(
        "autostart.idleExit",
        Kind::Duration(ms(100), YEAR, Some("never")),
        "How long a daemon that a command started stays without anything to do",
    )
    .doc("A daemon in the foreground stays."),
);

pub static SESSION_IDLE_TIMEOUT: Setting<Duration> = Setting::new(
    Spec::new(
        "session.idleTimeout",
        Kind::Duration(ms(100), YEAR, Some("never")),
        "How long a session that nobody uses lasts",
    )
    .doc(
        "What it runs by then is stopped. Its instances may be stopped before, by `pool.idleTimeout`; \
         `mcpx session keep` puts off both.",
    ),
);

pub static SESSION_KEEP_MOST: Setting<Duration> = Setting::new(Spec::new(
    "session.keepMost",
    Kind::Duration(ms(1000), YEAR, None),
    "The longest time that a session may be kept for at once",
));

pub static RESOLVE_DIAL_TIMEOUT: Setting<Duration> = Setting::new(
    Spec::new(
        "resolve.dialTimeout",
        Kind::Duration(ms(1), MINUTE, None),
        "How long a daemon may take to accept a connection",
    )
    .client(),
);

pub static TRANSPORT_BEARER_TOKEN: Setting<Secret> = Setting::new(
    Spec::new("transport.bearerToken", Kind::Secret, "The token that every TCP request must carry")
        .cold()
        .doc(
            "Empty: one is made at start and kept in the daemon's info file. It has no flag, \
         because other users can read a command line.",
        ),
);

pub static TRANSPORT_TCP: Setting<bool> =
    Setting::new(Spec::new("transport.tcp", Kind::Bool, "Listen on TCP besides the unix socket").cold());

pub static TRANSPORT_LISTEN: Setting<String> = Setting::new(
    Spec::new("transport.listen", Kind::Text, "The TCP address to listen on")
        .cold()
        .flags(&["--listen"])
        .doc("Port 0 takes a free one. An address beyond loopback needs `transport.bearerToken`."),
);

pub static TRANSPORT_HOSTS: Setting<Vec<String>> = Setting::new(
    Spec::new("transport.hosts", Kind::List, "Further names under which the TCP listener may be addressed")
        .doc(
            "For a listener behind a proxy or a port mapping: what clients put into the Host header, as `host` or \
             `host:port`. Beyond loopback every IP address is one already.",
        ),
);

pub static TRANSPORT_CA_FILE: Setting<String> = Setting::new(
    Spec::new(
        "transport.caFile",
        Kind::Path,
        "A file of certificate authorities (PEM) to trust instead of the system's",
    )
    .doc("For the daemon at `daemon.endpoint`, and for MCP servers that are reached over HTTPS."),
);

pub static TRANSPORT_MAX_CONNECTIONS: Setting<i64> = Setting::new(
    Spec::new("transport.maxConnections", Kind::Int(1, 100_000), "How many connections are served at once")
        .doc("One more is answered with 503 and `Retry-After`."),
);

pub static TRANSPORT_MAX_BODY: Setting<u64> =
    Setting::new(Spec::new("transport.maxBody", Kind::Bytes(KIB, 16 * GIB), "The largest request body"));

pub static TRANSPORT_MAX_HEADER: Setting<u64> =
    Setting::new(Spec::new("transport.maxHeader", Kind::Bytes(KIB, 16 * MIB), "The largest request head"));

pub static TRANSPORT_HEADER_TIMEOUT: Setting<Duration> = Setting::new(Spec::new(
    "transport.headerTimeout",
    Kind::Duration(ms(10), HOUR, None),
    "How long a client may take to send a request's head",
));

pub static TRANSPORT_IDLE_TIMEOUT: Setting<Duration> = Setting::new(Spec::new(
    "transport.idleTimeout",
    Kind::Duration(ms(10), DAY, None),
    "How long an unused connection is kept",
));

pub static TRANSPORT_WRITE_TIMEOUT: Setting<Duration> = Setting::new(Spec::new(
    "transport.writeTimeout",
    Kind::Duration(ms(10), DAY, None),
    "How long a client may take to read the next part of a response",
));
