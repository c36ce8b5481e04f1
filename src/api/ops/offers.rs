//! What servers offer besides tools. Entries of the table, no more.

use super::super::http::Method;
use super::super::records as r;
use super::servers::{ALL_PROFILES, PROFILE, SKIP_DEFAULT};
use super::*;

const SERVERS: Param = in_query(
    "server",
    Shape::List(&Shape::Text),
    "only these servers, by name or identifier; every enabled one that is selected when absent",
);
const WAIT: Param = in_query(
    "waitMs",
    Shape::Integer,
    "how long to wait for a server, in milliseconds; until it answers when absent. One that is late is among the failures, \
     and `resource.list` or `prompt.list` tells when it has answered",
);
const SESSION: Param = in_query("session", Shape::Text, "the session whose instances are asked");
const SERVER: Field = Field {
    name: "server",
    shape: Shape::Text,
    required: true,
    help: "the server's configured name, or its identifier",
};
const URI: Field = Field { name: "uri", shape: Shape::Text, required: true, help: "the resource's URI" };
const WHOSE: Param = body(field("context", Shape::Record(&r::CONTEXT), "who is asking"));

const fn listing(
    id: Id,
    name: &'static str,
    path: &'static str,
    words: &'static [&'static str],
    tool: &'static str,
    returns: &'static Record,
    help: &'static str,
) -> Operation {
    Operation {
        id,
        name,
        method: Method::Get,
        path,
        params: &[SERVERS, SESSION, WAIT, PROFILE, SKIP_DEFAULT, ALL_PROFILES],
        returns: Returns::Record(returns),
        mutates: false,
        waits: true,
        on_channel: true,
        words,
        tool,
        help,
        doc: "All pages, as the servers list them, each item with its `server`. A server that cannot be asked is \
              among the `failures`; when it was named alone, its error is the answer.",
    }
}

/// In the order of the documentation.
pub(super) static TABLE: &[Operation] = &[
    listing(
        Id::Resources,
        "resources",
        "/v1/resources",
        &["resources", "ls"],
        "resources",
        &r::RESOURCES,
        "the resources of servers",
    ),
    listing(
        Id::ResourceTemplates,
        "resourceTemplates",
        "/v1/resources/templates",
        &["resources", "templates"],
        "resource_templates",
        &r::TEMPLATES,
        "the templates for URIs of servers' resources",
    ),
    Operation {
        id: Id::ReadResource,
        name: "readResource",
        method: Method::Get,
        path: "/v1/resources/read",
        params: &[
            Param { place: Place::Query, field: SERVER },
            Param { place: Place::Query, field: URI },
            SESSION,
            in_query(
                "input",
                Shape::Object,
                "what the caller answers itself when the server asks; see `call`",
            ),
            in_query("meta", Shape::Object, "`_meta` of the request; see `call`"),
        ],
        returns: Returns::Record(&r::CALLED),
        mutates: false,
        waits: true,
        on_channel: true,
        words: &["resources", "read"],
        tool: "read_resource",
        help: "read a resource",
        doc: "The result is `{contents: […]}`, as the server sent it.",
    },
    Operation {
        id: Id::SubscribeResource,
        name: "subscribeResource",
        method: Method::Post,
        path: "/v1/resources/subscribe",
        params: &[
            Param { place: Place::Body, field: SERVER },
            Param { place: Place::Body, field: URI },
            body(field("session", Shape::Text, "the session whose instance is to tell")),
        ],
        returns: Returns::Record(&r::DONE),
        mutates: true,
        waits: true,
        on_channel: true,
        words: &["resources", "subscribe"],
        tool: "",
        help: "have a server tell when a resource changes",
        doc: "It comes as events of kind `resource.updated`, for as long as the instance lives.",
    },
    Operation {
        id: Id::UnsubscribeResource,
        name: "unsubscribeResource",
        method: Method::Post,
        path: "/v1/resources/unsubscribe",
        params: &[
            Param { place: Place::Body, field: SERVER },
            Param { place: Place::Body, field: URI },
            body(field("session", Shape::Text, "the session whose instance tells")),
        ],
        returns: Returns::Record(&r::DONE),
        mutates: true,
        waits: true,
        on_channel: true,
        words: &["resources", "unsubscribe"],
        tool: "",
        help: "have a server tell no longer",
        doc: "",
    },
    listing(
        Id::Prompts,
        "prompts",
        "/v1/prompts",
        &["prompts", "ls"],
        "prompts",
        &r::PROMPTS,
        "the prompts of servers",
    ),
    Operation {
        id: Id::GetPrompt,
        name: "getPrompt",
        method: Method::Post,
        path: "/v1/prompts/get",
        params: &[
            Param { place: Place::Body, field: SERVER },
            required(body(field("name", Shape::Text, "the prompt's name"))),
            body(field("arguments", Shape::Object, "its arguments, texts")),
            WHOSE,
            super::calls::INPUT,
            super::calls::META,
        ],
        returns: Returns::Record(&r::CALLED),
        mutates: true,
        waits: true,
        on_channel: true,
        words: &["prompts", "get"],
        tool: "get_prompt",
        help: "get a prompt, filled in",
        doc: "The result is `{description?, messages: […]}`, as the server sent it.",
    },
    Operation {
        id: Id::Complete,
        name: "complete",
        method: Method::Post,
        path: "/v1/complete",
        params: &[
            Param { place: Place::Body, field: SERVER },
            required(body(field(
                "ref",
                Shape::Object,
                "`{type: \"ref/prompt\", name}` or `{type: \"ref/resource\", uri}`",
            ))),
            required(body(field("argument", Shape::Object, "`{name, value}`: what is being typed"))),
            body(field("arguments", Shape::Object, "the other arguments, as far as they are known")),
            WHOSE,
            super::calls::META,
        ],
        returns: Returns::Record(&r::CALLED),
        mutates: true,
        waits: true,
        on_channel: true,
        words: &["prompts", "complete"],
        tool: "complete",
        help: "what could complete an argument of a prompt or of a resource's template",
        doc: "The result is `{completion: {values: […], total?, hasMore?}}`, as the server sent it.",
    },
];
