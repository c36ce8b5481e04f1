//! Defines everything that the daemon can be asked, one entry an operation. The
//! router, the channel's `op` names, the OpenAPI document and `docs/api.md` are
//! made from this table. Knows nothing of how an operation is carried out.

use super::http::Method;
use super::records as r;

/// Which operation: what the daemon matches on, so that none is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the table describes each one")]
pub enum Id {
    Call,
    Channel,
    CloseRun,
    DeleteServer,
    Health,
    Namespaces,
    OpenApi,
    OpenRun,
    PutServer,
    Refresh,
    Reload,
    Resolve,
    Restart,
    Schemas,
    Servers,
    SetSetting,
    Setting,
    Settings,
    Shutdown,
    Status,
    UnsetSetting,
}

/// One thing that the daemon can be asked.
#[derive(Debug)]
pub struct Operation {
    /// What the daemon matches on.
    pub id: Id,
    /// The name: `op` on a channel, `operationId` in the OpenAPI document.
    pub name: &'static str,
    /// The HTTP method.
    pub method: Method,
    /// The path; a segment in braces is a parameter.
    pub path: &'static str,
    /// What may be said, and where it travels.
    pub params: &'static [Param],
    /// What comes back.
    pub returns: Returns,
    /// It may change something: a server's state, a child process, the daemon itself.
    pub mutates: bool,
    /// It may have to wait for a server, for as long as that server's own limits allow.
    pub waits: bool,
    /// A program in a run may ask for it on its channel.
    pub on_channel: bool,
    /// Its words on the command line; empty when there is no command for it.
    pub words: &'static [&'static str],
    /// The tool of `mcpx serve` that it is, without `mcpx_`; empty when no model should ask for it.
    pub tool: &'static str,
    /// One line on what it does.
    pub help: &'static str,
    /// More, for the documentation; may be empty.
    pub doc: &'static str,
}

/// A parameter: a field, and where it travels over HTTP. On a channel all travel in `params`.
#[derive(Debug)]
pub struct Param {
    /// Where.
    pub place: Place,
    /// What.
    pub field: Field,
}

/// Where a parameter travels over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the JSON object of the body.
    Body,
    /// In the path, instead of `{name}`.
    Path,
    /// In the query; a list is repeated.
    Query,
}

/// A named value.
#[derive(Debug)]
pub struct Field {
    /// The name, camelCase.
    pub name: &'static str,
    /// What it may hold.
    pub shape: Shape,
    /// It is always there.
    pub required: bool,
    /// What it means; units.
    pub help: &'static str,
}

/// What a value may be.
#[derive(Debug)]
pub enum Shape {
    /// Any JSON value.
    Any,
    /// true or false; in a query `1`, `0`, `true`, `false`, or no value for true.
    Boolean,
    /// A whole number, not negative.
    Integer,
    /// A list.
    List(&'static Shape),
    /// Any JSON object.
    Object,
    /// An object with these fields.
    Record(&'static Record),
    /// A string.
    Text,
}

/// An object's shape, under a name.
#[derive(Debug)]
pub struct Record {
    /// The name, as a type.
    pub name: &'static str,
    /// Its fields.
    pub fields: &'static [Field],
}

/// What an operation answers with.
#[derive(Debug)]
pub enum Returns {
    /// A JSON object.
    Record(&'static Record),
    /// `101`, and then frames.
    Frames,
    /// A JSON document of a published format.
    Document(&'static str),
}

const fn field(name: &'static str, shape: Shape, help: &'static str) -> Field {
    Field { name, shape, required: false, help }
}
const fn body(field: Field) -> Param {
    Param { place: Place::Body, field }
}
const fn in_path(name: &'static str, help: &'static str) -> Param {
    Param { place: Place::Path, field: Field { name, shape: Shape::Text, required: true, help } }
}
const fn in_query(name: &'static str, shape: Shape, help: &'static str) -> Param {
    Param { place: Place::Query, field: field(name, shape, help) }
}
const fn required(mut param: Param) -> Param {
    param.field.required = true;
    param
}

const PROFILE: Param = in_query(
    "profile",
    Shape::List(&Shape::Text),
    "the servers of these profiles besides the default set; with none of the three, every server, or those of the run",
);
const SKIP_DEFAULT: Param =
    in_query("skipDefault", Shape::Boolean, "without the servers that name no profile");
const ALL_PROFILES: Param = in_query("allProfiles", Shape::Boolean, "every server, whatever its profiles");

const FRESH: Param =
    in_query("fresh", Shape::Boolean, "ask the servers again instead of answering from the cache");
const WAIT: Param = in_query(
    "waitMs",
    Shape::Integer,
    "how long to wait for servers that are still starting, in milliseconds; each server's `startTimeout` when absent",
);

/// The table; its order is the order of the documentation.
pub static OPERATIONS: &[Operation] = &[
    Operation {
        id: Id::Health,
        name: "health",
        method: Method::Get,
        path: "/v1/health",
        params: &[],
        returns: Returns::Record(&r::HEALTH),
        mutates: false,
        waits: false,
        on_channel: true,
        words: &[],
        tool: "",
        help: "whether the daemon is there, and which one it is",
        doc: "Waits for nothing and starts nothing; answers within microseconds.",
    },
    Operation {
        id: Id::Status,
        name: "status",
        method: Method::Get,
        path: "/v1/status",
        params: &[],
        returns: Returns::Record(&r::STATUS),
        mutates: false,
        waits: false,
        on_channel: true,
        words: &["status"],
        tool: "status",
        help: "the daemon and the server instances that it runs",
        doc: "",
    },
    Operation {
        id: Id::Call,
        name: "call",
        method: Method::Post,
        path: "/v1/call",
        params: &[
            required(body(field("server", Shape::Text, "the server's configured name, or its identifier"))),
            required(body(field("tool", Shape::Text, "the tool's exact name, or its identifier"))),
            body(field("arguments", Shape::Object, "the tool's arguments; `{}` when absent")),
            body(field(
                "context",
                Shape::Record(&r::CONTEXT),
                "who is calling; on a channel the run says so, and this is ignored",
            )),
            body(field(
                "timeoutMs",
                Shape::Integer,
                "how long to wait for the answer, in milliseconds; the server's own limit when absent, none when 0",
            )),
        ],
        returns: Returns::Record(&r::CALLED),
        mutates: true,
        waits: true,
        on_channel: true,
        words: &["call"],
        tool: "call",
        help: "call one tool",
        doc: "A call that may have reached its server is never sent again. A caller that goes away cancels it. \
              Without `context.session` the call has a session of its own, which ends with it. On a channel \
              the answer is the tool's result itself, and `\"progress\":true` beside `op` asks for progress frames.",
    },
    Operation {
        id: Id::Namespaces,
        name: "namespaces",
        method: Method::Get,
        path: "/v1/namespaces",
        params: &[FRESH, WAIT, PROFILE, SKIP_DEFAULT, ALL_PROFILES],
        returns: Returns::Record(&r::NAMESPACES),
        mutates: false,
        waits: true,
        on_channel: true,
        words: &["ls"],
        tool: "discover",
        help: "every configured server, with what is known of it",
        doc: "A server that cannot be used is a row with its reason, never an absence.",
    },
    Operation {
        id: Id::Schemas,
        name: "schemas",
        method: Method::Get,
        path: "/v1/schemas",
        params: &[
            in_query(
                "server",
                Shape::List(&Shape::Text),
                "only these servers, by name or identifier; every enabled one that is selected when absent",
            ),
            FRESH,
            WAIT,
            PROFILE,
            SKIP_DEFAULT,
            ALL_PROFILES,
        ],
        returns: Returns::Record(&r::SCHEMAS),
        mutates: false,
        waits: true,
        on_channel: true,
        words: &["types"],
        tool: "",
        help: "the tools of servers, with their JSON Schemas",
        doc: "Answered from the schema cache; a server is started only when the cache has nothing for its definition.",
    },
    Operation {
        id: Id::OpenRun,
        name: "openRun",
        method: Method::Post,
        path: "/v1/runs",
        params: &[
            body(field("context", Shape::Record(&r::CONTEXT), "who is running the program")),
            body(field(
                "tools",
                Shape::List(&Shape::Record(&r::GRANT)),
                "the tools that the program may call; every tool when it is absent",
            )),
        ],
        returns: Returns::Record(&r::OPENED_RUN),
        mutates: true,
        waits: false,
        on_channel: false,
        words: &[],
        tool: "",
        help: "open a run: the calls of one program",
        doc: "On the unix socket a run ends with the connection that opened it. Without `context.session` \
              it has a session of its own, and what that session owns is stopped when the run ends. With `tools`, \
              a call of any other tool in the run's name, or by a process that the run started, is refused.",
    },
    Operation {
        id: Id::CloseRun,
        name: "closeRun",
        method: Method::Delete,
        path: "/v1/runs/{run}",
        params: &[in_path("run", "the run's id")],
        returns: Returns::Record(&r::DONE),
        mutates: true,
        waits: false,
        on_channel: false,
        words: &[],
        tool: "",
        help: "close a run",
        doc: "Its calls are cancelled and its channels closed.",
    },
    Operation {
        id: Id::Channel,
        name: "channel",
        method: Method::Get,
        path: "/v1/channel",
        params: &[required(in_query("run", Shape::Text, "the run whose channel this is"))],
        returns: Returns::Frames,
        mutates: true,
        waits: true,
        on_channel: false,
        words: &[],
        tool: "",
        help: "turn the connection into a channel of a run",
        doc: "Needs `Connection: Upgrade` and `Upgrade: mcpx-channel`, on the unix socket only.",
    },
    Operation {
        id: Id::Refresh,
        name: "refresh",
        method: Method::Post,
        path: "/v1/refresh",
        params: &[
            body(field(
                "servers",
                Shape::List(&Shape::Text),
                "only these servers, by name or identifier; every enabled one that is selected when absent",
            )),
            body(field(
                "selection",
                Shape::Record(&r::SELECTION),
                "absent: every server, or those of the run",
            )),
        ],
        returns: Returns::Record(&r::NAMESPACES),
        mutates: true,
        waits: true,
        on_channel: true,
        words: &["refresh"],
        tool: "refresh",
        help: "read the servers' tools again",
        doc: "",
    },
    Operation {
        id: Id::Restart,
        name: "restart",
        method: Method::Post,
        path: "/v1/restart",
        params: &[
            body(field("server", Shape::Text, "only this server's instances; all when absent")),
            body(field("session", Shape::Text, "only this session's instances; all when absent")),
        ],
        returns: Returns::Record(&r::RESTARTED),
        mutates: true,
        waits: true,
        on_channel: true,
        words: &["restart"],
        tool: "restart",
        help: "stop server instances; the next call starts them anew",
        doc: "",
    },
    Operation {
        id: Id::Reload,
        name: "reload",
        method: Method::Post,
        path: "/v1/reload",
        params: &[],
        returns: Returns::Record(&r::RELOADED),
        mutates: true,
        waits: false,
        on_channel: true,
        words: &["reload"],
        tool: "reload",
        help: "read the configuration again now",
        doc: "Servers whose definition did not change keep their instances. With a broken configuration the \
              daemon goes on with the last good one, and `problem` says what is wrong.",
    },
    Operation {
        id: Id::Servers,
        name: "servers",
        method: Method::Get,
        path: "/v1/servers",
        params: &[PROFILE, SKIP_DEFAULT, ALL_PROFILES],
        returns: Returns::Record(&r::SERVERS),
        mutates: false,
        waits: false,
        on_channel: false,
        words: &["servers", "list"],
        tool: "servers_list",
        help: "every configured server, as its file has it",
        doc: "Secrets are stars; a text that only refers to a variable is no secret. Starts nothing.",
    },
    Operation {
        id: Id::PutServer,
        name: "putServer",
        method: Method::Put,
        path: "/v1/servers/{name}",
        params: &[
            in_path("name", "the server's configured name"),
            required(body(field("definition", Shape::Object, "its block, as in a configuration file"))),
            body(field(
                "file",
                Shape::Text,
                "which of the daemon's configuration files; the one that has the server, else the nearest, when absent",
            )),
        ],
        returns: Returns::Record(&r::CHANGED_SERVER),
        mutates: true,
        waits: false,
        on_channel: false,
        words: &["servers", "add"],
        tool: "servers_add",
        help: "add a server to a configuration file, or replace it there",
        doc: "The file keeps its comments and layout, and the daemon follows at once; servers that did not change \
              keep their instances. On the unix socket only: a definition is a program that will be started.",
    },
    Operation {
        id: Id::DeleteServer,
        name: "deleteServer",
        method: Method::Delete,
        path: "/v1/servers/{name}",
        params: &[
            in_path("name", "the server's configured name"),
            in_query(
                "file",
                Shape::Text,
                "which of the daemon's configuration files; the one that has it when absent",
            ),
        ],
        returns: Returns::Record(&r::CHANGED_SERVER),
        mutates: true,
        waits: false,
        on_channel: false,
        words: &["servers", "remove"],
        tool: "servers_remove",
        help: "remove a server from a configuration file",
        doc: "Its instances finish what is in flight, and stop. On the unix socket only.",
    },
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
    Operation {
        id: Id::Resolve,
        name: "resolve",
        method: Method::Get,
        path: "/v1/resolve",
        params: &[required(in_query("dir", Shape::Text, "an absolute directory"))],
        returns: Returns::Record(&r::RESOLVED),
        mutates: false,
        waits: false,
        on_channel: true,
        words: &["resolve"],
        tool: "",
        help: "which daemon serves a directory",
        doc: "The answer depends on the directory alone, not on the daemon that is asked.",
    },
    Operation {
        id: Id::Shutdown,
        name: "shutdown",
        method: Method::Post,
        path: "/v1/shutdown",
        params: &[],
        returns: Returns::Record(&r::DONE),
        mutates: true,
        waits: false,
        on_channel: false,
        words: &["stop"],
        tool: "",
        help: "stop the daemon and every server that it runs",
        doc: "Answers before it stops. Calls in flight are cancelled.",
    },
    Operation {
        id: Id::OpenApi,
        name: "openapi",
        method: Method::Get,
        path: "/v1/openapi.json",
        params: &[],
        returns: Returns::Document("an OpenAPI 3.1 document"),
        mutates: false,
        waits: false,
        on_channel: true,
        words: &[],
        tool: "",
        help: "this table as an OpenAPI document",
        doc: "",
    },
];

/// The operation of that name.
pub fn by_name(name: &str) -> Option<&'static Operation> {
    OPERATIONS.iter().find(|o| o.name == name)
}

/// The operation that serves a method and a path, and the path's parameters as
/// they are written there (still escaped).
pub fn route<'p>(method: Method, path: &'p str) -> Result<Matched<'p>, NoRoute> {
    let mut other_method = false;
    for op in OPERATIONS {
        if let Some(values) = matches(op.path, path) {
            if op.method == method {
                return Ok((op, values));
            }
            other_method = true;
        }
    }
    Err(if other_method { NoRoute::Method } else { NoRoute::Path })
}

/// An operation, and what its path's parameters are in a given path.
pub type Matched<'p> = (&'static Operation, Vec<(&'static str, &'p str)>);

/// Why nothing serves a method and a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoute {
    /// The path exists, with another method.
    Method,
    /// No such path.
    Path,
}

fn matches<'p>(pattern: &'static str, path: &'p str) -> Option<Vec<(&'static str, &'p str)>> {
    if !pattern.contains('{') {
        return (pattern == path).then(Vec::new);
    }
    let (mut wanted, mut given) = (pattern.split('/'), path.split('/'));
    let mut values = Vec::new();
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return Some(values),
            (Some(w), Some(g)) => match w.strip_prefix('{').and_then(|w| w.strip_suffix('}')) {
                Some(name) if !g.is_empty() => values.push((name, g)),
                None if w == g => {}
                _ => return None,
            },
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_and_routes_are_unique_and_route_to_themselves() {
        let mut names = HashSet::new();
        for op in OPERATIONS {
            assert!(names.insert(op.name), "{} is there twice", op.name);
            let path = op.path.replace("{run}", "abc").replace("{key}", "abc").replace("{name}", "abc");
            let (found, values) = route(op.method, &path).unwrap();
            assert_eq!(found.id, op.id);
            let declared = op.params.iter().filter(|p| p.place == Place::Path).count();
            assert_eq!(values.len(), declared, "{}", op.name);
            assert!(op.path.starts_with("/v1/"));
            assert!(std::ptr::eq(by_name(op.name).unwrap(), op));
        }
    }

    #[test]
    fn a_body_needs_a_method_that_has_one() {
        for op in OPERATIONS {
            let has_body = op.params.iter().any(|p| p.place == Place::Body);
            assert!(!has_body || matches!(op.method, Method::Post | Method::Put), "{}", op.name);
            assert!(
                op.mutates || op.method == Method::Get,
                "{}: only what changes nothing is a GET",
                op.name
            );
        }
    }

    #[test]
    fn tools_have_names_of_their_own() {
        let mut names = HashSet::new();
        for op in OPERATIONS.iter().filter(|o| !o.tool.is_empty()) {
            assert!(names.insert(op.tool), "{} is there twice", op.tool);
            assert!(op.tool.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{}", op.tool);
            assert!(matches!(op.returns, Returns::Record(_)), "{} has a result to show", op.name);
        }
        assert!(names.contains("call"));
    }

    #[test]
    fn what_is_not_in_the_table_is_not_routed() {
        assert_eq!(route(Method::Get, "/v1/call").unwrap_err(), NoRoute::Method);
        for path in
            ["/", "/v1", "/v1/", "/v1/health/", "/v1/runs/", "/v1/runs/a/b", "/v2/health", "//v1/health"]
        {
            assert_eq!(route(Method::Delete, path).unwrap_err(), NoRoute::Path, "{path}");
        }
    }
}
