//! Defines everything that the daemon can be asked, one entry an operation. The
//! router, the channel's `op` names, the OpenAPI document and `docs/api.md` are
//! made from this table. Knows nothing of how an operation is carried out.

mod artifacts;
mod calls;
mod daemon;
mod exec;
mod observing;
mod offers;
mod questions;
mod servers;
mod sessions;
mod settings;

use super::http::Method;

/// Which operation: what the daemon matches on, so that none is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the table describes each one")]
pub enum Id {
    AnswerQuestion,
    Artifact,
    ArtifactContent,
    Artifacts,
    Call,
    CancelTask,
    Channel,
    CloseRun,
    Complete,
    DeleteServer,
    EndSession,
    Events,
    Exec,
    GetPrompt,
    Health,
    Hooks,
    KeepSession,
    Log,
    LogChain,
    Metrics,
    Namespaces,
    NewSession,
    OpenApi,
    OpenRun,
    PostLog,
    Prompts,
    PutServer,
    Question,
    Questions,
    ReadResource,
    Refresh,
    Reload,
    RemoveArtifact,
    Resolve,
    ResourceTemplates,
    Resources,
    Restart,
    Schemas,
    Search,
    Servers,
    Session,
    Sessions,
    SetSetting,
    Setting,
    Settings,
    Shutdown,
    Stats,
    Status,
    StoreArtifact,
    SubscribeResource,
    SweepArtifacts,
    Task,
    TaskResult,
    Tasks,
    Types,
    UnsetSetting,
    UnsubscribeResource,
    UploadArtifact,
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
    /// JSON, or server-sent events, as the request wants it.
    Events(&'static Record),
    /// `101`, and then frames.
    Frames,
    /// A JSON document of a published format.
    Document(&'static str),
    /// Plain text.
    Text(&'static str),
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

/// The families; their order is the order of the documentation.
static FAMILIES: &[&[Operation]] = &[
    daemon::TABLE,
    calls::TABLE,
    exec::TABLE,
    artifacts::TABLE,
    questions::TABLE,
    offers::TABLE,
    servers::TABLE,
    sessions::TABLE,
    settings::TABLE,
    observing::TABLE,
];

/// The table.
pub fn all() -> impl Iterator<Item = &'static Operation> {
    FAMILIES.iter().copied().flatten()
}

/// The operation of that name.
pub fn by_name(name: &str) -> Option<&'static Operation> {
    all().find(|o| o.name == name)
}

/// The operation that serves a method and a path, and the path's parameters as
/// they are written there (still escaped).
pub fn route<'p>(method: Method, path: &'p str) -> Result<Matched<'p>, NoRoute> {
    let mut other_method = false;
    for op in all() {
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
        for op in all() {
            assert!(names.insert(op.name), "{} is there twice", op.name);
            let path = op
                .path
                .replace("{run}", "abc")
                .replace("{key}", "abc")
                .replace("{name}", "abc")
                .replace("{session}", "abc")
                .replace("{id}", "abc");
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
        for op in all() {
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
        for op in all().filter(|o| !o.tool.is_empty()) {
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
