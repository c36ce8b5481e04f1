//! `mcpx prompts`: the prompts of servers, filled in.

use super::super::args::usage;
use super::super::command::{Command, Flag, Group, MANY, Rest, example};
use super::super::cx::Cx;
use super::super::progress::Progress;
use super::super::result::printable_part;
use super::resources::{described, list, query};
use crate::catalog::names;
use crate::error::{Error, Kind, Result};
use crate::util::did_you_mean;
use serde_json::{Map, Value, json};

/// The command.
pub static COMMAND: Command = Command {
    name: "prompts",
    group: Group::Discover,
    words: "[ls|get|complete] [<name>] [<arguments>…]",
    count: (0, MANY),
    rest: Rest::Mixed,
    summary: "List the prompts of servers, and fill them in",
    about: "ls lists the prompts of all servers or of one. get fills one in with arguments, key=value each, and \
            prints its messages. complete asks the server what an argument could be, given its beginning.",
    flags: &[Flag::value("session", "KEY", "The session whose instances are asked")],
    settings: &["catalog.concurrency"],
    examples: &[
        example("mcpx prompts", "the prompts of every server"),
        example("mcpx prompts get demo.greet name=Ada", "one, filled in"),
        example("mcpx prompts complete demo.greet name A", "what the name could be"),
    ],
    run,
};

const ACTIONS: &[&str] = &["ls", "get", "complete"];

fn run(cx: &mut Cx) -> Result<u8> {
    let words: Vec<String> = cx.inv.words()?.into_iter().map(str::to_owned).collect();
    let (action, rest) = words.split_first().map_or(("ls", &[][..]), |(a, r)| (a.as_str(), r));
    match (action, rest) {
        ("ls", servers) => list(cx, servers, "/v1/prompts", "prompts", line),
        ("get", [target, given @ ..]) => {
            let mut arguments = Map::new();
            for pair in given {
                let Some((key, value)) = pair.split_once('=') else {
                    return Err(usage(format!("\"{pair}\" is no argument")).hint("arguments are key=value"));
                };
                arguments.insert(key.to_owned(), json!(value));
            }
            let answer = ask(cx, target, "/v1/prompts/get", json!({"arguments": arguments}), "name")?;
            if cx.json() {
                let mut all = answer;
                all["ok"] = json!(true);
                cx.out.json(&all)?;
                return Ok(0);
            }
            for message in answer["messages"].as_array().into_iter().flatten() {
                let role = message["role"].as_str().unwrap_or_default();
                cx.out.line(&format!("{role}: {}", printable_part(&message["content"])))?;
            }
            Ok(0)
        }
        ("complete", [target, argument, beginning @ ..]) if beginning.len() <= 1 => {
            let value = beginning.first().map_or("", String::as_str);
            let body = json!({"argument": {"name": argument, "value": value}});
            let answer = ask(cx, target, "/v1/complete", body, "ref")?;
            if answer["completion"]["values"].as_array().is_none_or(Vec::is_empty) {
                check_argument(cx, target, argument)?;
            }
            if cx.json() {
                let mut all = answer;
                all["ok"] = json!(true);
                cx.out.json(&all)?;
                return Ok(0);
            }
            let values = answer["completion"]["values"].as_array().map(Vec::as_slice).unwrap_or_default();
            for value in values {
                cx.out.line(value.as_str().unwrap_or_default())?;
            }
            Ok(0)
        }
        (known, _) if ACTIONS.contains(&known) => {
            Err(usage(format!("mcpx prompts {known} needs a prompt, such as demo.greet"))
                .hint("mcpx prompts ls shows them"))
        }
        (odd, _) => {
            let e = usage(format!("mcpx prompts cannot \"{odd}\""));
            let near = did_you_mean(odd, ACTIONS.iter().copied());
            Err(e.hint(near.unwrap_or_else(|| format!("it can {}", ACTIONS.join(", ")))))
        }
    }
}

fn line(prompt: &Value) -> String {
    let names = prompt["arguments"].as_array().into_iter().flatten();
    let names: Vec<String> = names
        .map(|a| {
            let mark = if a["required"] == true { "" } else { "?" };
            format!("{}{mark}", a["name"].as_str().unwrap_or_default())
        })
        .collect();
    described(prompt, &format!("{}({})", prompt["name"].as_str().unwrap_or_default(), names.join(", ")))
}

/// Refuses an argument that the prompt does not have: most servers complete it to nothing.
fn check_argument(cx: &Cx, target: &str, argument: &str) -> Result<()> {
    let world = cx.world()?;
    let servers: Vec<&str> = world.config.servers.iter().map(|s| s.name.as_str()).collect();
    let (server, name) = names::split_target(target, &servers)?;
    let path = format!("/v1/prompts?{}", query(cx, std::slice::from_ref(&server))?);
    let progress = Progress::start(&format!("listing the prompts of {server}"));
    let Ok(all) = cx.daemon(&progress)?.json("GET", &path, None) else { return Ok(()) };
    drop(progress);
    let prompt = all["prompts"].as_array().into_iter().flatten().find(|p| p["name"] == name.as_str());
    let Some(declared) = prompt.map(|p| p["arguments"].as_array().map(Vec::as_slice).unwrap_or_default())
    else {
        return Ok(());
    };
    let declared: Vec<&str> = declared.iter().filter_map(|a| a["name"].as_str()).collect();
    if declared.contains(&argument) {
        return Ok(());
    }
    let e = Error::new(Kind::Usage, format!("the prompt {target} has no argument \"{argument}\""))
        .server(&server);
    Err(e.hint(match (did_you_mean(argument, declared.iter().copied()), declared.is_empty()) {
        (Some(near), _) => near,
        (None, true) => "it takes none".to_owned(),
        (None, false) => format!("it has {}", declared.join(", ")),
    }))
}

/// Asks about the prompt `server.name`, which goes into the body as `how` says.
fn ask(cx: &Cx, target: &str, path: &str, mut body: Value, how: &str) -> Result<Value> {
    let world = cx.world()?;
    let servers: Vec<&str> = world.config.servers.iter().map(|s| s.name.as_str()).collect();
    let (server, name) = names::split_target(target, &servers)?;
    body["server"] = json!(server);
    body[how] = match how {
        "ref" => json!({"type": "ref/prompt", "name": name}),
        _ => json!(name),
    };
    body["context"] = serde_json::to_value(cx.context()?).unwrap_or_default();
    let progress = Progress::start(&format!("asking {server}"));
    let client = cx.daemon(&progress)?;
    let answer = client.json("POST", path, Some(&body))?;
    drop(progress);
    Ok(answer["result"].clone())
}
