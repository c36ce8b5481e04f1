//! Settings of the running daemon. Entries of the table, no more.

use super::super::http::Method;
use super::super::records as r;
use super::*;

/// In the order of the documentation.
pub(super) static TABLE: &[Operation] = &[
    Operation {
        id: Id::Settings,
        name: "settings",
        method: Method::Get,
        path: "/v1/settings",
        params: &[],
        returns: Returns::Record(&r::SETTINGS),
        mutates: false,
        waits: false,
        on_channel: true,
        words: &["settings", "list"],
        tool: "settings_list",
        help: "every setting of the daemon, with its source and what it displaced",
        doc: "Secrets are stars.",
    },
    Operation {
        id: Id::Setting,
        name: "setting",
        method: Method::Get,
        path: "/v1/settings/{key}",
        params: &[in_path("key", "the setting's key, for instance `pool.callTimeout`")],
        returns: Returns::Record(&r::SETTING),
        mutates: false,
        waits: false,
        on_channel: true,
        words: &["settings", "get"],
        tool: "settings_get",
        help: "one setting of the daemon",
        doc: "",
    },
    Operation {
        id: Id::SetSetting,
        name: "setSetting",
        method: Method::Put,
        path: "/v1/settings/{key}",
        params: &[
            in_path("key", "the setting's key"),
            required(body(field("value", Shape::Any, "the value, in the syntax of a configuration file"))),
        ],
        returns: Returns::Record(&r::SETTING),
        mutates: true,
        waits: false,
        on_channel: false,
        words: &["settings", "set"],
        tool: "settings_set",
        help: "override a setting until the daemon ends",
        doc: "It takes effect at once, and no server is restarted for it. A setting that is taken at the start, \
              or that commands decide, is refused, with what to do instead.",
    },
    Operation {
        id: Id::UnsetSetting,
        name: "unsetSetting",
        method: Method::Delete,
        path: "/v1/settings/{key}",
        params: &[in_path("key", "the setting's key")],
        returns: Returns::Record(&r::SETTING),
        mutates: true,
        waits: false,
        on_channel: false,
        words: &["settings", "unset"],
        tool: "settings_unset",
        help: "end an override",
        doc: "Nothing happens when there is none.",
    },
];
