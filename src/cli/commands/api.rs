//! `mcpx api`: an HTTP API with an OpenAPI document as an MCP server, standing alone.

use super::super::command::{Command, Flag, Group, Rest, example};
use super::super::cx::{Cx, working_directory};
use super::super::table::{Cell, Table, Tone};
use super::adapter::limits;
use crate::adapters::{Adapter, Api};
use crate::error::{Error, Kind, Result};
use crate::proc::Patient;
use crate::serve::adapter;
use crate::settings;
use serde_json::{Value, json};
use std::sync::Arc;

/// The command.
pub static COMMAND: Command = Command {
    name: "api",
    group: Group::Run,
    words: "serve|tools <file>",
    count: (2, 2),
    rest: Rest::Mixed,
    summary: "Serve an HTTP API with an OpenAPI document over MCP",
    about: "serve speaks MCP over stdin and stdout; tools lists what would be offered. The document is OpenAPI 3.x in JSON, \
            a file or an address. Credentials come from variables of the environment, never from the command line. \
            In a configuration: \"mcpx\": {\"openapi\": {\"document\": \"petstore.json\"}}.",
    flags: &[
        Flag::value("base-url", "URL", "the server's address, instead of the document's"),
        Flag::value(
            "include",
            "PATTERNS",
            "offer only these operations: ids, tag:NAME, /path, METHOD /path; with commas between",
        ),
        Flag::value("exclude", "PATTERNS", "leave these operations out"),
        Flag::value("bearer-env", "NAME", "the variable that holds a bearer token"),
        Flag::value("basic-env", "NAME", "the variable that holds user:password"),
        Flag::value("header-env", "HEADER=NAME", "a header, and the variable that holds its value"),
    ],
    settings: &["adapters.timeout", "adapters.maxOutput", "adapters.maxDocument", "adapters.maxSchema"],
    examples: &[
        example("mcpx api tools petstore.json", "what the API offers"),
        example("mcpx api serve petstore.json --base-url http://127.0.0.1:8080 < requests.jsonl", "serve it"),
    ],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    let words = cx.inv.words()?;
    let (verb, place) = (words[0], words[1]);
    if !["serve", "tools"].contains(&verb) {
        let near = crate::util::did_you_mean(verb, ["serve", "tools"]);
        return Err(Error::new(Kind::Usage, format!("mcpx api does not know \"{verb}\""))
            .hint(near.unwrap_or_else(|| "it knows serve and tools".into())));
    }
    let declared = declared(cx, place)?;
    let world = cx.world()?;
    let limits = limits(&world.settings);
    let largest = world.settings.get(&settings::MCP_MAX_MESSAGE);
    let api = Api::read("api", &declared, &cx.env, &limits)?;
    if verb == "serve" {
        return Ok(adapter::run(Arc::new(api), Patient::stdin(), Patient::stdout(), largest));
    }
    if cx.json() {
        let body = json!({"ok": true, "baseUrl": api.base(), "tools": api.tools()});
        cx.out.json(&body)?;
        return Ok(0);
    }
    let mut table = Table::new(&["TOOL", "OPERATION", "SUMMARY"]);
    for tool in api.tools() {
        // A description ends with method and path.
        let described = tool.description.as_deref().unwrap_or_default();
        table.row(vec![
            Cell::new(&tool.name).tone(Tone::Strong),
            Cell::new(described.rsplit("\n\n").next().unwrap_or_default()),
            Cell::new(tool.title.as_deref().unwrap_or_default()).tone(Tone::Dim),
        ]);
    }
    let text = table.render(cx.width(), cx.color());
    cx.out.text(&text)?;
    Ok(0)
}

/// The flags as the declaration that they stand for.
fn declared(cx: &Cx, place: &str) -> Result<Value> {
    let lower = place.to_ascii_lowercase();
    let is_url = lower.starts_with("http://") || lower.starts_with("https://");
    let document = match is_url {
        true => place.to_owned(),
        false => working_directory()?.join(place).to_string_lossy().into_owned(),
    };
    let mut out = json!({"document": document});
    if let Some(url) = cx.inv.text("base-url")? {
        out["baseUrl"] = url.into();
    }
    for key in ["include", "exclude"] {
        if let Some(patterns) = cx.inv.text(key)? {
            out[key] = patterns.split(',').map(str::trim).filter(|p| !p.is_empty()).collect();
        }
    }
    let variable = |flag: &str, name: &str| {
        let value = cx.env.text(name).filter(|v| !v.is_empty()).map(str::to_owned);
        value.ok_or_else(|| Error::new(Kind::Usage, format!("--{flag}: the variable {name} is not set")))
    };
    for (flag, kind) in [("bearer-env", "bearer"), ("basic-env", "basic")] {
        if let Some(name) = cx.inv.text(flag)? {
            out["auth"][kind] = variable(flag, name)?.into();
        }
    }
    if let Some(both) = cx.inv.text("header-env")? {
        let Some((header, name)) = both.split_once('=') else {
            return Err(Error::new(Kind::Usage, format!("--header-env {both}: expected HEADER=NAME")));
        };
        out["auth"]["header"][header] = variable("header-env", name)?.into();
    }
    Ok(out)
}
