//! Declares the settings of the editor's plugin. It takes each from its own options
//! first, then from these variables, then from a configuration file of its daemon.
#![allow(missing_docs, reason = "each entry's help says what it is")]

use crate::settings::choices::{BACKENDS, ENV_LEVELS, REMEMBER, SWITCH};
use crate::settings::declared::{Setting, Spec};
use crate::settings::kind::Kind;

pub static PLUGIN_ENDPOINT: Setting<String> = Setting::new(
    Spec::new("plugin.endpoint", Kind::Text, "The address of the daemon that the plugin uses").plugin().doc(
        "`http://host:port`, or `unix:///path`. No other daemon is tried then. Empty: `MCPX_DAEMON_ENDPOINT`, \
         else `MCPX_ENDPOINT`, else the plugin looks for one.",
    ),
);

pub static PLUGIN_SOCKET: Setting<String> = Setting::new(
    Spec::new("plugin.socket", Kind::Path, "The unix socket of the daemon that the plugin uses")
        .plugin()
        .doc("No other daemon is tried then. Empty: `MCPX_SOCKET`, else the plugin looks for one."),
);

pub static PLUGIN_BIN: Setting<String> = Setting::new(
    Spec::new("plugin.bin", Kind::Text, "The mcpx that the plugin runs where it has to").plugin(),
);

pub static PLUGIN_BIN_ARGS: Setting<Vec<String>> = Setting::new(
    Spec::new("plugin.binArgs", Kind::List, "Arguments that come before all others of that mcpx").plugin(),
);

pub static PLUGIN_BACKEND: Setting<String> = Setting::new(
    Spec::new("plugin.backend", Kind::Enum(BACKENDS), "How the plugin's tools do their work").plugin(),
);

pub static PLUGIN_REMEMBER: Setting<String> = Setting::new(
    Spec::new("plugin.remember", Kind::Enum(REMEMBER), "How long the choice of a daemon is remembered")
        .plugin(),
);

pub static PLUGIN_ENV: Setting<String> = Setting::new(
    Spec::new(
        "plugin.env",
        Kind::Enum(ENV_LEVELS),
        "How much the plugin tells a shell that the editor opens",
    )
    .plugin()
    .doc("The page on the script environment has the variables of each level."),
);

pub static PLUGIN_INSTRUCTIONS: Setting<bool> = Setting::new(
    Spec::new("plugin.instructions", Kind::Bool, "Tell the model in a few lines that mcpx is there").plugin(),
);

pub static PLUGIN_TOOL_TIMING: Setting<bool> = Setting::new(
    Spec::new(
        "plugin.toolTiming",
        Kind::Bool,
        "Record in the daemon's log how long each of the editor's tools took",
    )
    .plugin()
    .doc("A record is dropped when no daemon is there for it."),
);

pub static PLUGIN_TOOLS: Setting<String> = Setting::new(
    Spec::new(
        "plugin.tools",
        Kind::Enum(SWITCH),
        "Offer the tools mcpx_discover, mcpx_exec and mcpx_observe",
    )
    .plugin()
    .doc("auto: when there is no mcpx on the PATH, so that a shell could not do the same."),
);

pub static PLUGIN_DAEMON_TOOLS: Setting<String> = Setting::new(
    Spec::new(
        "plugin.daemonTools",
        Kind::Enum(SWITCH),
        "Offer the tools mcpx_daemon_status, mcpx_daemon_select and mcpx_daemon_forget",
    )
    .plugin()
    .doc("auto: when `plugin.tools` is on, or more than one daemon was found."),
);

pub static PLUGIN_ANNOTATE: Setting<bool> = Setting::new(
    Spec::new(
        "plugin.annotate",
        Kind::Bool,
        "End a tool's result with the daemon that answered, where there were several",
    )
    .plugin(),
);

pub static PLUGIN_HEADLESS: Setting<String> = Setting::new(
    Spec::new("plugin.headless", Kind::Enum(SWITCH), "Nobody is there to read a notice")
        .plugin()
        .doc("auto: found out from how the editor runs."),
);
