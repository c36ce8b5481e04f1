//! What the configured servers offer, from the cache on disk where it is warm,
//! and from the daemon for the rest. Knows nothing of how it is shown.

use super::cx::{Cx, World};
use super::locking;
use super::progress::Progress;
use crate::api::wire::NamespaceRow;
use crate::catalog::cache::Cache;
use crate::catalog::lock::Lock;
use crate::catalog::rows::{self as catalog_rows, Row};
use crate::catalog::{ServerSchema, Tool, filter, names};
use crate::config::{ServerDef, ServerOptions, Transport};
use crate::error::{Error, Kind, Result};
use crate::settings;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// One configured server, under both its names.
pub struct Namespace<'a> {
    /// Its definition.
    pub def: &'a Arc<ServerDef>,
    /// The identifier that stands for it in a program.
    pub ident: String,
}

/// Every configured server, in the configuration's order, selected or not: the
/// identifiers must be those that the daemon gives.
pub fn namespaces(world: &World) -> Vec<Namespace<'_>> {
    let idents = names::unique_idents(world.config.servers.iter().map(|s| s.name.as_str()));
    world.config.servers.iter().zip(idents).map(|(def, ident)| Namespace { def, ident }).collect()
}

/// Those of the namespaces that `wanted` names, in its order; all of the enabled ones that are selected when it names none.
pub fn select<'a>(world: &'a World, wanted: &[&str]) -> Result<Vec<Namespace<'a>>> {
    let mut all = namespaces(world);
    if wanted.is_empty() {
        all.retain(|n| n.def.enabled && world.selection.takes(n.def));
        return Ok(all);
    }
    let servers: Vec<&str> = world.config.servers.iter().map(|s| s.name.as_str()).collect();
    let mut picked: Vec<Namespace> = Vec::new();
    for typed in wanted {
        let name = names::find_server(typed, &servers)?;
        // One that is named twice has been picked already.
        if let Some(at) = all.iter().position(|n| n.def.name == name) {
            picked.push(all.remove(at));
        }
    }
    Ok(picked)
}

/// As [`select`], where a word may also name one tool of a namespace, as `namespace.tool`: with
/// each namespace the tools that were named of it, as typed; none stands for all of them.
pub fn select_tools<'a>(world: &'a World, wanted: &[&str]) -> Result<Vec<(Namespace<'a>, Vec<String>)>> {
    let servers: Vec<&str> = world.config.servers.iter().map(|s| s.name.as_str()).collect();
    let mut named: Vec<(String, Vec<String>)> = Vec::new();
    for typed in wanted {
        let (server, tool) = match names::find_server(typed, &servers) {
            Ok(server) => (server.to_owned(), None),
            Err(e) if !typed.contains('.') => return Err(e),
            Err(_) => names::split_target(typed, &servers).map(|(server, tool)| (server, Some(tool)))?,
        };
        match (named.iter_mut().find(|(name, _)| *name == server), tool) {
            // The whole namespace has its tools in it.
            (Some((_, tools)), None) => tools.clear(),
            (Some((_, tools)), Some(tool)) if !tools.is_empty() => tools.push(tool),
            (Some(_), Some(_)) => {}
            (None, tool) => named.push((server, tool.into_iter().collect())),
        }
    }
    let names: Vec<&str> = named.iter().map(|(server, _)| server.as_str()).collect();
    let tools = |n: &Namespace| {
        named.iter().find(|(server, _)| *server == n.def.name).map(|(_, t)| t.clone()).unwrap_or_default()
    };
    Ok(select(world, &names)?
        .into_iter()
        .map(|n| {
            let tools = tools(&n);
            (n, tools)
        })
        .collect())
}

/// Leaves of each schema the tools that were named of it; see [`select_tools`].
///
/// # Errors
/// `NotFound` for a tool that its server does not have.
pub fn load_tools<'a>(cx: &'a Cx, wanted: &[&str]) -> Result<Vec<Known<'a, ServerSchema>>> {
    let (namespaces, named): (Vec<_>, Vec<_>) = select_tools(cx.catalog()?, wanted)?.into_iter().unzip();
    // Of a server of which one tool is wanted the others are not even read.
    let singles: HashMap<String, String> = namespaces
        .iter()
        .zip(&named)
        .filter_map(|(n, named)| match named.as_slice() {
            [tool] => Some((n.def.name.clone(), tool.clone())),
            _ => None,
        })
        .collect();
    let cached = |cache: &Cache, def: &ServerDef, ttl| {
        let one = singles.get(&def.name).and_then(|tool| filter::load_with(cache, def, ttl, tool));
        one.or_else(|| filter::load(cache, def, ttl))
    };
    let mut known = gather(cx, namespaces, cached, |schema| schema)?;
    for (k, named) in known.iter_mut().zip(named) {
        let Ok(schema) = &mut k.tools else { continue };
        if named.is_empty() {
            continue;
        }
        let keep: Vec<String> = named
            .iter()
            .map(|tool| names::find_tool(&schema.tools, tool, &k.namespace.ident).map(|t| t.name.clone()))
            .collect::<Result<_>>()?;
        schema.tools.retain(|t| keep.contains(&t.name));
    }
    Ok(known)
}

/// The schema cache, and how old its content may be.
pub fn cache(world: &World) -> (Cache, Duration) {
    (Cache::new(&world.dirs.cache), world.settings.get(&settings::CATALOG_CACHE_TTL))
}

/// Why a configured server cannot be asked at all.
pub fn unusable(world: &World, def: &ServerDef) -> Option<Error> {
    if let Some(refused) = world.selection.refuses(def) {
        return Some(refused);
    }
    if let Some(problem) = &def.problem {
        return Some(problem.clone());
    }
    (!def.enabled).then(|| {
        Error::new(Kind::Refused, format!("the server {} is disabled", def.name)).server(&def.name).hint(
            format!("set \"enabled\": true in its \"mcpx\" block, {}:{}", def.source.display(), def.line),
        )
    })
}

/// A server of a daemon that is elsewhere, as far as a definition can be had of it. Its digest is
/// nobody's, so that the cache of this machine has nothing for it.
pub fn foreign(row: &NamespaceRow, endpoint: &str) -> ServerDef {
    let problem = row.error.as_ref().filter(|_| row.state == "failed").map(Error::from_json);
    ServerDef {
        name: row.name.clone(),
        transport: Transport::Http { url: String::new(), headers: Vec::new() },
        enabled: row.state != "disabled",
        description: row.description.clone(),
        options: ServerOptions::default(),
        source: Arc::new(row.source.clone().unwrap_or_else(|| endpoint.into())),
        line: 0,
        digest: String::new(),
        alias_of: None,
        document: None,
        problem,
    }
}

/// A row for each configured server. No server is started for those that the cache knows.
pub fn rows(cx: &Cx) -> Result<Vec<NamespaceRow>> {
    let world = cx.catalog()?;
    let (cache, ttl) = cache(world);
    let lock = locking::alone(world)?;
    let mut rows = Vec::with_capacity(world.config.servers.len());
    let mut missing = 0usize;
    for Namespace { def, ident } in namespaces(world).into_iter().filter(|n| world.selection.takes(n.def)) {
        let mut row = NamespaceRow {
            name: def.name.clone(),
            ident,
            description: def.description.clone(),
            source: Some(def.source.as_ref().clone()),
            state: "unknown".into(),
            ..NamespaceRow::default()
        };
        if let Some(problem) = &def.problem {
            row.state = "failed".into();
            row.error = Some(problem.to_json());
        } else if !def.enabled {
            row.state = "disabled".into();
        } else if let Some(lock) = &lock {
            locked(lock, def, &mut row);
        } else if let Some(summary) = filter::summary(&cache, def, ttl) {
            row.state = "ready".into();
            row.tools = Some(summary.tools);
            row.description = row.description.or(summary.description);
            row.fetched_at = Some(summary.fetched_at);
            row.tokens = Some(summary.tokens);
        } else {
            missing += 1;
        }
        rows.push(row);
    }
    if missing > 0 {
        fill(cx, &mut rows, missing);
    }
    Ok(rows)
}

/// Asks the daemon for the rows that are unknown; when that cannot be done they say why.
fn fill(cx: &Cx, rows: &mut [NamespaceRow], missing: usize) {
    let progress = Progress::start(&format!("reading the tools of {}", servers(missing)));
    let answer = cx.daemon(&progress).and_then(|client| {
        let world = cx.catalog()?;
        let path = format!("/v1/namespaces?waitMs={}&{}", wait(world), selected(world));
        client.json("GET", &path, None)
    });
    let parsed = answer.and_then(|v| namespace_rows(&v));
    drop(progress);
    let mut known: HashMap<String, NamespaceRow> = match parsed {
        Ok(known) => known.into_iter().map(|r| (r.name.clone(), r)).collect(),
        Err(e) => {
            for row in rows.iter_mut().filter(|r| r.state == "unknown") {
                row.error = Some(e.to_json());
            }
            HashMap::new()
        }
    };
    for row in rows.iter_mut().filter(|r| r.state == "unknown") {
        if let Some(theirs) = known.remove(&row.name) {
            let (ident, description) = (std::mem::take(&mut row.ident), row.description.take());
            *row = NamespaceRow { ident, description: description.or(theirs.description.clone()), ..theirs };
        }
    }
    let Ok(world) = cx.world() else { return };
    count_tokens(world, rows);
    let mut lock = None;
    for row in rows.iter_mut() {
        let Some(def) = world.config.server(&row.name) else { continue };
        match row.state.as_str() {
            "failed" | "unknown" if row.error.is_some() && def.problem.is_none() => {
                let lock = lock.get_or_insert_with(|| locking::instead(world));
                if let Some(lock) = lock.as_ref().filter(|l| l.servers.contains_key(&row.name)) {
                    let e = row.error.take();
                    locked(lock, def, row);
                    row.error = e;
                }
            }
            _ => {}
        }
    }
}

/// Fills in how many tokens the servers' tools take, which the daemon does not say: it has stored
/// them in the cache just now.
pub fn count_tokens(world: &World, rows: &mut [NamespaceRow]) {
    let cache = Cache::new(&world.dirs.cache);
    for row in rows.iter_mut().filter(|row| row.state == "ready" && row.tokens.is_none()) {
        let def = world.config.server(&row.name);
        row.tokens = def.and_then(|def| filter::summary(&cache, def, Duration::MAX)).map(|s| s.tokens);
    }
}

/// A row from the lock.
fn locked(lock: &Lock, def: &ServerDef, row: &mut NamespaceRow) {
    match from_lock(lock, def) {
        Ok(schema) => {
            row.state = "locked".into();
            row.tools = Some(schema.tools.len());
            row.tokens = Some(catalog_rows::tokens(&catalog_rows::rows(&schema)));
            row.description = row.description.take().or_else(|| catalog_rows::about_server(&schema));
        }
        Err(e) => {
            row.state = "failed".into();
            row.error = Some(e.to_json());
        }
    }
}

/// What is locked of a server, filtered.
fn from_lock(lock: &Lock, def: &ServerDef) -> Result<ServerSchema> {
    lock.schema(&def.name, &def.digest).map(|schema| filter::schema(def, schema)).ok_or_else(|| {
        Error::new(Kind::NotFound, format!("{} is not in the lock", def.name))
            .server(&def.name)
            .hint(format!("mcpx lock {} adds it", def.name))
    })
}

/// How long a listing waits for servers that are still starting, in milliseconds.
fn wait(world: &World) -> u128 {
    world.settings.get(&settings::CATALOG_WAIT).as_millis()
}

/// The selection, as a query says it.
pub fn selected(world: &World) -> String {
    let s = &world.selection;
    let profiles = s.profiles.iter().map(|p| format!("profile={}&", escape(p))).collect::<String>();
    format!("{profiles}skipDefault={}&allProfiles={}", s.skip_default, s.all)
}

/// The rows in an answer of the daemon's.
pub fn namespace_rows(answer: &Value) -> Result<Vec<NamespaceRow>> {
    let rows = answer.get("namespaces").cloned().unwrap_or_default();
    serde_json::from_value(rows).map_err(|e| super::internal(format!("reading the daemon's namespaces: {e}")))
}

/// A namespace with what was asked of it, or the reason why that is not known.
pub struct Known<'a, T> {
    /// The namespace.
    pub namespace: Namespace<'a>,
    /// What it offers.
    pub tools: Result<T>,
}

/// The tools of these namespaces with their schemas: from the cache, else from the daemon in one request.
pub fn load<'a>(cx: &'a Cx, namespaces: Vec<Namespace<'a>>) -> Result<Vec<Known<'a, ServerSchema>>> {
    gather(cx, namespaces, filter::load, |schema| schema)
}

/// The same without the schemas: a light row for each tool.
pub fn load_rows<'a>(cx: &'a Cx, namespaces: Vec<Namespace<'a>>) -> Result<Vec<Known<'a, Vec<Row>>>> {
    gather(cx, namespaces, filter::load_rows, |schema| catalog_rows::rows(&schema))
}

fn gather<'a, T>(
    cx: &'a Cx,
    namespaces: Vec<Namespace<'a>>,
    cached: impl Fn(&Cache, &ServerDef, Duration) -> Option<T>,
    of: impl Fn(ServerSchema) -> T,
) -> Result<Vec<Known<'a, T>>> {
    let world = cx.catalog()?;
    let (cache, ttl) = cache(world);
    let lock = locking::alone(world)?;
    let mut known: Vec<Known<T>> = Vec::with_capacity(namespaces.len());
    let mut missing: Vec<usize> = Vec::new();
    for namespace in namespaces {
        let def = namespace.def;
        let tools = match unusable(world, def) {
            Some(e) => Err(e),
            None if lock.is_some() => {
                lock.as_ref().map_or_else(|| Err(unknown(def)), |lock| from_lock(lock, def).map(&of))
            }
            None => cached(&cache, def, ttl).ok_or_else(|| {
                missing.push(known.len());
                unknown(def)
            }),
        };
        known.push(Known { namespace, tools });
    }
    if missing.is_empty() {
        return Ok(known);
    }
    let names: Vec<&str> = missing.iter().map(|i| known[*i].namespace.def.name.as_str()).collect();
    let answer = ask(cx, &names, Some(wait(world)));
    let mut instead = None;
    for i in missing {
        let def = known[i].namespace.def;
        let found = match &answer {
            Ok(answer) => pick(answer, &def.name),
            Err(e) => Err(e.clone()),
        };
        known[i].tools = found.map(&of).or_else(|e| {
            // What was locked is better than nothing, and is said to be that.
            let lock = instead.get_or_insert_with(|| locking::instead(world));
            let schema = lock.as_ref().and_then(|lock| from_lock(lock, def).ok()).ok_or(e.clone())?;
            super::out::note(&format!(
                "{} is shown as it was locked: {}",
                def.name,
                super::table::one_line(e.message())
            ));
            Ok(of(schema))
        });
    }
    Ok(known)
}

fn unknown(def: &ServerDef) -> Error {
    Error::new(Kind::Unavailable, format!("the tools of {} are not known", def.name)).server(&def.name)
}

/// Notes in one line which servers could not be asked; why is for `mcpx ls` to say, unless there is but one.
pub fn note_missing(missing: &[(&str, &Error)], done: &str) {
    if let Some(line) = missing_line(missing, done) {
        super::out::note(&line);
    }
}

/// How many names of servers such a line has; the others are a number.
const NAMED: usize = 5;

fn missing_line(missing: &[(&str, &Error)], done: &str) -> Option<String> {
    match missing {
        [] => None,
        [(server, e)] => Some(format!("{server} was not {done}: {}", super::table::one_line(e.message()))),
        many => {
            let names: Vec<&str> = many.iter().take(NAMED).map(|(server, _)| *server).collect();
            let more = match many.len().saturating_sub(NAMED) {
                0 => String::new(),
                n => format!(" and {n} more"),
            };
            let (count, names) = (many.len(), names.join(", "));
            Some(format!("{count} servers were not {done}: {names}{more}; mcpx ls says why"))
        }
    }
}

/// One server's tools. This is for a call, which waits as long as the server may take to start.
fn one(cx: &Cx, def: &ServerDef) -> Result<ServerSchema> {
    let world = cx.catalog()?;
    let (cache, ttl) = cache(world);
    if let (None, Some(lock)) = (unusable(world, def), locking::alone(world)?) {
        return from_lock(&lock, def);
    }
    match unusable(world, def) {
        Some(e) => Err(e),
        None => match filter::load(&cache, def, ttl) {
            Some(schema) => Ok(schema),
            None => ask(cx, &[&def.name], None).and_then(|answer| pick(&answer, &def.name)),
        },
    }
}

/// One tool of a server, by any of its names.
pub fn one_tool(cx: &Cx, def: &ServerDef, tool: &str) -> Result<Tool> {
    let world = cx.catalog()?;
    if unusable(world, def).is_none() && locking::alone(world)?.is_none() {
        let (cache, ttl) = cache(world);
        if let Some(known) = filter::load_tool(&cache, def, ttl, tool) {
            return Ok(known);
        }
    }
    let schema = one(cx, def)?;
    names::find_tool(&schema.tools, tool, &def.name).cloned()
}

/// What the daemon knows, or finds out, of these servers; within `wait` milliseconds, if that is given.
fn ask(cx: &Cx, servers_by_name: &[&str], wait: Option<u128>) -> Result<Value> {
    let progress = Progress::start(&format!("reading the tools of {}", servers(servers_by_name.len())));
    let client = cx.daemon(&progress)?;
    let mut query: Vec<String> = servers_by_name.iter().map(|n| format!("server={}", escape(n))).collect();
    query.extend(wait.map(|ms| format!("waitMs={ms}")));
    client.json("GET", &format!("/v1/schemas?{}", query.join("&")), None)
}

fn pick(answer: &Value, name: &str) -> Result<ServerSchema> {
    let named = |list: &str| {
        let rows = answer.get(list).and_then(Value::as_array).into_iter().flatten();
        rows.into_iter().find(|row| row.get("server").and_then(Value::as_str) == Some(name))
    };
    if let Some(schema) = named("schemas") {
        return serde_json::from_value(schema.clone())
            .map_err(|e| super::internal(format!("reading the daemon's schema of {name}: {e}")));
    }
    match named("errors").and_then(|row| row.get("error")) {
        Some(e) => Err(Error::from_json(e)),
        None => Err(Error::new(Kind::Unavailable, format!("the daemon knows no server {name}"))
            .hint("mcpx reload makes it read the configuration again")),
    }
}

/// A text as part of a query (RFC 3986): all but the unreserved characters escaped.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

fn servers(n: usize) -> String {
    if n == 1 { "1 server".into() } else { format!("{n} servers") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_are_escaped_for_a_query() {
        assert_eq!(escape("a b&c=ü/~"), "a%20b%26c%3D%C3%BC%2F~");
    }

    #[test]
    fn those_that_are_missing_take_one_line() {
        let e = Error::new(Kind::Unavailable, "it ended\nwith a word");
        let line = |names: &[&'static str]| {
            let missing: Vec<_> = names.iter().map(|n| (*n, &e)).collect();
            missing_line(&missing, "searched")
        };
        assert_eq!(line(&[]), None);
        assert_eq!(line(&["a"]).unwrap(), "a was not searched: it ended with a word");
        assert_eq!(line(&["a", "b"]).unwrap(), "2 servers were not searched: a, b; mcpx ls says why");
        let seven = line(&["a", "b", "c", "d", "e", "f", "g"]).unwrap();
        assert_eq!(seven, "7 servers were not searched: a, b, c, d, e and 2 more; mcpx ls says why");
    }

    #[test]
    fn an_answer_gives_the_schema_or_the_reason() {
        let answer = json!({
            "schemas": [{"server":"a","digest":"d","fetchedAt":1,"protocol":"p","tools":[]}],
            "errors": [{"server":"b","error":{"kind":"timeout","message":"too slow"}}]
        });
        assert_eq!(pick(&answer, "a").unwrap().digest, "d");
        assert_eq!(pick(&answer, "b").unwrap_err().kind(), Kind::Timeout);
        assert!(pick(&answer, "c").unwrap_err().message().contains("no server c"));
    }
}
