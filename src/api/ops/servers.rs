//! The servers: what they offer, how they are declared and restarted. Entries of the table, no more.

use super::super::http::Method;
use super::super::records as r;
use super::*;

pub(super) const PROFILE: Param = in_query(
    "profile",
    Shape::List(&Shape::Text),
    "the servers of these profiles besides the default set; with none of the three, every server, or those of the run",
);
pub(super) const SKIP_DEFAULT: Param =
    in_query("skipDefault", Shape::Boolean, "without the servers that name no profile");
pub(super) const ALL_PROFILES: Param =
    in_query("allProfiles", Shape::Boolean, "every server, whatever its profiles");

const KNOWN: Param = in_query(
    "known",
    Shape::Boolean,
    "ask no server: only what is known of each already, `unknown` where that is nothing",
);
const FRESH: Param =
    in_query("fresh", Shape::Boolean, "ask the servers again instead of answering from the cache");
const WAIT: Param = in_query(
    "waitMs",
    Shape::Integer,
    "how long to wait for servers that are still starting, in milliseconds; each server's `startTimeout` when absent",
);

/// In the order of the documentation.
pub(super) static TABLE: &[Operation] = &[
    Operation {
        id: Id::Namespaces,
        name: "namespaces",
        method: Method::Get,
        path: "/v1/namespaces",
        params: &[FRESH, KNOWN, WAIT, PROFILE, SKIP_DEFAULT, ALL_PROFILES],
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
        words: &["tools"],
        tool: "",
        help: "the tools of servers, with their JSON Schemas",
        doc: "Answered from the schema cache; a server is started only when the cache has nothing for its definition.",
    },
    Operation {
        id: Id::Search,
        name: "search",
        method: Method::Get,
        path: "/v1/search",
        params: &[
            required(in_query("query", Shape::Text, "words; tools that match all of them come first")),
            in_query("limit", Shape::Integer, "how many tools at most; `search.limit` when absent"),
            WAIT,
            PROFILE,
            SKIP_DEFAULT,
            ALL_PROFILES,
        ],
        returns: Returns::Record(&r::HITS),
        mutates: false,
        waits: true,
        on_channel: true,
        words: &["search"],
        tool: "search",
        help: "find tools of all servers by words, best first",
        doc: "Each comes with its signature, by which a program calls it.",
    },
    Operation {
        id: Id::Types,
        name: "types",
        method: Method::Get,
        path: "/v1/types",
        params: &[
            in_query(
                "server",
                Shape::List(&Shape::Text),
                "only these servers, by name or identifier; every enabled one that is selected when absent",
            ),
            in_query("brief", Shape::Boolean, "signatures alone, without descriptions"),
            WAIT,
            PROFILE,
            SKIP_DEFAULT,
            ALL_PROFILES,
        ],
        returns: Returns::Record(&r::TYPES),
        mutates: false,
        waits: true,
        on_channel: true,
        words: &["types"],
        tool: "types",
        help: "TypeScript declarations of servers' tools: their arguments and results",
        doc: "",
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
];
