//! `mcpx resources`: what servers have to read.

use super::super::args::usage;
use super::super::command::{Command, Flag, Group, MANY, Rest, example};
use super::super::cx::Cx;
use super::super::out::note;
use super::super::progress::Progress;
use super::super::schemas;
use crate::api::{Client, uri};
use crate::error::{Error, Kind, Result};
use crate::util::{base64, did_you_mean};
use serde_json::{Value, json};

/// The command.
pub static COMMAND: Command = Command {
    name: "resources",
    group: Group::Discover,
    words: "[ls|templates|read|subscribe|unsubscribe] [<namespace>] [<address>]",
    count: (0, MANY),
    rest: Rest::Mixed,
    summary: "List the resources of servers, and read them",
    about: "ls lists the resources of all servers or of one; templates the patterns of URIs that a server fills in by \
            itself. read prints one: its text, or the bytes of a blob, as they are. subscribe has the server tell when \
            it changes, which mcpx events --kind resource shows.",
    flags: &[Flag::value("session", "KEY", "The session whose instances are asked")],
    settings: &["catalog.concurrency"],
    examples: &[
        example("mcpx resources", "the resources of every server"),
        example("mcpx resources templates demo", "the patterns of one server"),
        example("mcpx resources read demo demo://greeting", "one resource's content"),
    ],
    run,
};

const ACTIONS: &[&str] = &["ls", "templates", "read", "subscribe", "unsubscribe"];

fn run(cx: &mut Cx) -> Result<u8> {
    let words: Vec<String> = cx.inv.words()?.into_iter().map(str::to_owned).collect();
    let (action, rest) = words.split_first().map_or(("ls", &[][..]), |(a, r)| (a.as_str(), r));
    match (action, rest) {
        ("ls", servers) => list(cx, servers, "/v1/resources", "resources", line),
        ("templates", servers) => list(cx, servers, "/v1/resources/templates", "resourceTemplates", template),
        ("read", [server, address]) => read(cx, server, address),
        ("subscribe" | "unsubscribe", [server, address]) => {
            let session = cx.inv.text("session")?.map(str::to_owned);
            let progress = Progress::start(&format!("asking {server}"));
            let client = cx.daemon(&progress)?;
            let mut body = json!({"server": server, "uri": address});
            if let Some(session) = session {
                body["session"] = json!(session);
            }
            let answer = client.json("POST", &format!("/v1/resources/{action}"), Some(&body))?;
            drop(progress);
            if cx.json() {
                cx.out.json(&answer)?;
            } else {
                cx.out.line(&format!("{action}d: {address}"))?;
            }
            Ok(0)
        }
        (known, _) if ACTIONS.contains(&known) => {
            Err(usage(format!("mcpx resources {known} needs a namespace and a URI"))
                .hint("mcpx resources ls shows both"))
        }
        (odd, _) => {
            let e = usage(format!("mcpx resources cannot \"{odd}\""));
            if cx.catalog().is_ok_and(|world| schemas::select(world, &[odd]).is_ok()) {
                return Err(e.hint(format!("to list those of the namespace: mcpx resources ls {odd}")));
            }
            let near = did_you_mean(odd, ACTIONS.iter().copied());
            Err(e.hint(near.unwrap_or_else(|| format!("it can {}", ACTIONS.join(", ")))))
        }
    }
}

/// The query that names servers, as one typed them, and what was typed otherwise.
pub fn query(cx: &Cx, servers: &[String]) -> Result<String> {
    let world = cx.world()?;
    let wanted: Vec<&str> = servers.iter().map(String::as_str).collect();
    let named: Vec<String> = match wanted.is_empty() {
        true => Vec::new(),
        false => schemas::select(world, &wanted)?.iter().map(|n| n.def.name.clone()).collect(),
    };
    let mut query: Vec<String> = named.iter().map(|n| format!("server={}", uri::encode(n, false))).collect();
    if let Some(session) = cx.inv.text("session")? {
        query.push(format!("session={}", uri::encode(session, false)));
    }
    if named.is_empty() {
        let chosen = &world.selection;
        query.extend(chosen.profiles.iter().map(|p| format!("profile={}", uri::encode(p, false))));
        query.extend(chosen.skip_default.then(|| "skipDefault=1".to_owned()));
        query.extend(chosen.all.then(|| "allProfiles=1".to_owned()));
    }
    Ok(query.join("&"))
}

/// Prints one list of servers, a line an item; a failure of some is noted.
pub fn list(
    cx: &mut Cx,
    servers: &[String],
    path: &str,
    member: &str,
    line: fn(&Value) -> String,
) -> Result<u8> {
    let query = query(cx, servers)?;
    let progress = Progress::start(&format!("listing {member}"));
    let client = cx.daemon(&progress)?;
    let answer = client.json("GET", &format!("{path}?{query}"), None)?;
    drop(progress);
    if cx.json() {
        let mut all = answer;
        all["ok"] = json!(true);
        cx.out.json(&all)?;
        return Ok(0);
    }
    let items = answer[member].as_array().map(Vec::as_slice).unwrap_or_default();
    if items.is_empty() {
        let what = if member == "resourceTemplates" { "resource templates" } else { member };
        note(&match servers {
            [server] => format!("the server {server} has no {what}"),
            _ => "there are none".to_owned(),
        });
    }
    for item in items {
        cx.out.line(&line(item))?;
    }
    for failure in answer["failures"].as_array().into_iter().flatten() {
        note(failure["message"].as_str().unwrap_or_default());
    }
    Ok(0)
}

fn line(resource: &Value) -> String {
    described(resource, resource["uri"].as_str().unwrap_or_default())
}

fn template(template: &Value) -> String {
    described(template, template["uriTemplate"].as_str().unwrap_or_default())
}

/// `server  what  name – the first line of the description`.
pub fn described(item: &Value, what: &str) -> String {
    let word = |key: &str| item[key].as_str().unwrap_or_default();
    let title = if word("title").is_empty() { word("name") } else { word("title") };
    let mut line = format!("{}  {what}  {title}", word("server"));
    if let Some(first) = word("description").lines().next().filter(|l| !l.is_empty()) {
        line.push_str(&format!(" – {first}"));
    }
    line
}

fn read(cx: &mut Cx, server: &str, address: &str) -> Result<u8> {
    let world = cx.world()?;
    let name = schemas::select(world, &[server])?.first().map_or(server.to_owned(), |n| n.def.name.clone());
    let mut path = format!(
        "/v1/resources/read?server={}&uri={}",
        uri::encode(&name, false),
        uri::encode(address, false)
    );
    if let Some(session) = cx.inv.text("session")? {
        path.push_str(&format!("&session={}", uri::encode(session, false)));
    }
    let progress = Progress::start(&format!("reading {address}"));
    let client: Client = cx.daemon(&progress)?;
    let answer = client.json("GET", &path, None)?;
    drop(progress);
    if cx.json() {
        cx.out.json(&json!({"ok": true, "contents": answer["result"]["contents"]}))?;
        return Ok(0);
    }
    for content in answer["result"]["contents"].as_array().into_iter().flatten() {
        if let Some(text) = content["text"].as_str() {
            cx.out.text(text)?;
        } else if let Some(blob) = content["blob"].as_str() {
            let bytes = base64::decode(blob).map_err(|at| {
                Error::new(Kind::Unavailable, format!("the blob of {address} is no base64 at character {at}"))
            })?;
            cx.out.bytes(&bytes)?;
        }
    }
    Ok(0)
}
