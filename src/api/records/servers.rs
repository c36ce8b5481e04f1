//! Records of the servers and of what they offer. Knows nothing of who answers.

use super::{ERROR, TEXTS, always, maybe};
use crate::api::ops::{Field, Record, Shape};

static NAMESPACE: Record = Record {
    name: "Namespace",
    fields: &[
        always("name", Shape::Text, "the server's configured name"),
        always("ident", Shape::Text, "the identifier that stands for it in a program"),
        maybe("tools", Shape::Integer, "how many tools it offers, once known"),
        maybe("description", Shape::Text, "one line on what it is"),
        always("state", Shape::Text, "`ready`, `starting`, `failed`, `disabled`, or `unknown`"),
        maybe("error", Shape::Record(&ERROR), "why it cannot be used"),
        maybe("fetchedAt", Shape::Integer, "when its tools were read, milliseconds since 1970"),
        maybe("source", Shape::Text, "the configuration file that defines it"),
    ],
};

/// `namespaces` and `refresh`.
pub static NAMESPACES: Record = Record {
    name: "Namespaces",
    fields: &[always(
        "namespaces",
        Shape::List(&Shape::Record(&NAMESPACE)),
        "one row a server, in the configuration's order",
    )],
};

static TOOL: Record = Record {
    name: "Tool",
    fields: &[
        always("name", Shape::Text, "the exact name"),
        maybe("title", Shape::Text, "a name for people"),
        maybe("description", Shape::Text, "what it does"),
        maybe("icons", Shape::Any, "pictures that stand for it"),
        always("inputSchema", Shape::Any, "the arguments' JSON Schema"),
        maybe("outputSchema", Shape::Any, "the structured result's JSON Schema"),
        maybe("annotations", Shape::Any, "hints such as `readOnlyHint`"),
        maybe("execution", Shape::Any, "how it is carried out, such as `taskSupport`"),
        maybe("_meta", Shape::Any, "what the server tells those who know it"),
    ],
};

static SCHEMA: Record = Record {
    name: "ServerSchema",
    fields: &[
        always("server", Shape::Text, "the server's configured name"),
        always("digest", Shape::Text, "the digest of the definition it was read under"),
        always("fetchedAt", Shape::Integer, "when it was read, milliseconds since 1970"),
        always("protocol", Shape::Text, "the protocol revision that was negotiated"),
        maybe("serverInfo", Shape::Any, "the server's own name and version"),
        maybe("capabilities", Shape::Any, "what the server says that it can do"),
        maybe("instructions", Shape::Text, "the server's instructions"),
        always("tools", Shape::List(&Shape::Record(&TOOL)), "its tools, in its own order"),
    ],
};

static SCHEMA_ERROR: Record = Record {
    name: "ServerError",
    fields: &[
        always("server", Shape::Text, "the server that was asked for"),
        always("error", Shape::Record(&ERROR), "why there is no schema"),
    ],
};

/// `schemas`.
pub static SCHEMAS: Record = Record {
    name: "Schemas",
    fields: &[
        always("schemas", Shape::List(&Shape::Record(&SCHEMA)), "one a server that could be read"),
        always("errors", Shape::List(&Shape::Record(&SCHEMA_ERROR)), "one a server that could not"),
    ],
};

static HIT: Record = Record {
    name: "Hit",
    fields: &[
        always("server", Shape::Text, "the server's configured name"),
        always("tool", Shape::Text, "the tool's exact name"),
        always("signature", Shape::Text, "how a program calls it"),
        always("description", Shape::Text, "what it does"),
        always("all", Shape::Boolean, "it matches every word"),
    ],
};

/// `search`.
pub static HITS: Record = Record {
    name: "Hits",
    fields: &[
        always("hits", Shape::List(&Shape::Record(&HIT)), "the tools, best first"),
        maybe(
            "near",
            Shape::Text,
            "the words that were searched for instead, where nothing fits those given",
        ),
        always("errors", Shape::List(&Shape::Record(&SCHEMA_ERROR)), "one a server that was not searched"),
    ],
};

static TYPESCRIPT: Record = Record {
    name: "TypeScript",
    fields: &[
        always("server", Shape::Text, "the server's configured name"),
        always("ident", Shape::Text, "the identifier that stands for it in a program"),
        always("typescript", Shape::Text, "its declarations"),
    ],
};

/// `types`.
pub static TYPES: Record = Record {
    name: "Types",
    fields: &[
        always("types", Shape::List(&Shape::Record(&TYPESCRIPT)), "one a server that could be read"),
        always("errors", Shape::List(&Shape::Record(&SCHEMA_ERROR)), "one a server that could not"),
    ],
};

pub(super) static NAMES: Record = Record {
    name: "NamespaceName",
    fields: &[
        always("name", Shape::Text, "the server's configured name"),
        always("ident", Shape::Text, "the identifier that stands for it in a program"),
    ],
};

static SERVER: Record = Record {
    name: "Server",
    fields: &[
        always("name", Shape::Text, "its configured name"),
        always("ident", Shape::Text, "the identifier that stands for it in a program"),
        always("enabled", Shape::Boolean, "it is switched on"),
        always("selected", Shape::Boolean, "it is among those that the asker works with"),
        maybe("description", Shape::Text, "what it is for"),
        maybe("aliasOf", Shape::Text, "the server that it is under another name"),
        maybe("profiles", TEXTS, "the profiles that it belongs to"),
        always("definition", Shape::Any, "its block as the file has it, secrets masked"),
        always("source", Shape::Text, "the configuration file that defines it"),
        always("line", Shape::Integer, "the line of its name in that file"),
        maybe("error", Shape::Record(&ERROR), "why it cannot be used"),
    ],
};

/// `servers`.
pub static SERVERS: Record = Record {
    name: "Servers",
    fields: &[always(
        "servers",
        Shape::List(&Shape::Record(&SERVER)),
        "one row a server, in the configuration's order",
    )],
};

/// `putServer` and `deleteServer`.
pub static CHANGED_SERVER: Record = Record {
    name: "ChangedServer",
    fields: &[
        always("server", Shape::Text, "its configured name"),
        always("path", Shape::Text, "the file"),
        always("change", Shape::Text, "`added`, `replaced`, `removed`, or `unchanged`"),
        maybe("problem", Shape::Record(&ERROR), "why the server, or the configuration, cannot be used"),
    ],
};

/// `restart`.
pub static RESTARTED: Record = Record {
    name: "Restarted",
    fields: &[always("restarted", Shape::Integer, "how many instances were stopped")],
};

static ERRORS: Shape = Shape::Record(&ERROR);
const FAILURES: Field = maybe("failures", Shape::List(&ERRORS), "servers that could not be asked, and why");

/// `resources`.
pub static RESOURCES: Record = Record {
    name: "Resources",
    fields: &[
        always("resources", Shape::List(&Shape::Object), "as the servers list them, with `server`"),
        FAILURES,
    ],
};

/// `resourceTemplates`.
pub static TEMPLATES: Record = Record {
    name: "ResourceTemplates",
    fields: &[
        always("resourceTemplates", Shape::List(&Shape::Object), "as the servers list them, with `server`"),
        FAILURES,
    ],
};

/// `prompts`.
pub static PROMPTS: Record = Record {
    name: "Prompts",
    fields: &[
        always("prompts", Shape::List(&Shape::Object), "as the servers list them, with `server`"),
        FAILURES,
    ],
};
