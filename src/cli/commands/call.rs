//! `mcpx call`: calls one tool.

use super::super::argforms::Forms;
use super::super::args::{usage, utf8};
use super::super::command::{Command, Flag, Group, MANY, Rest, example};
use super::super::cx::{Cx, World, no_servers};
use super::super::interrupt::Interrupt;
use super::super::progress::{self, Progress};
use super::super::questions;
use super::super::result::{Envelope, Media, Way};
use super::super::schemas;
use super::artifacts;
use crate::api::Client;
use crate::api::wire::CallRequest;
use crate::artifacts::Store;
use crate::catalog::{filter, names};
use crate::error::{Error, Kind, Result};
use crate::proc::Patient;
use crate::settings::{self, Source};
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The command.
pub static COMMAND: Command = Command {
    name: "call",
    group: Group::Run,
    words: "<namespace>.<tool> [<arguments>…]",
    count: (1, MANY),
    rest: Rest::Mixed,
    summary: "Call one tool and print its result",
    about: "Arguments are one JSON object, or @<file> that holds one, or - for one on standard input; or pairs: \
            key=value is text, unless the tool's schema wants a number, a boolean, a list or an object; key:=json is \
            JSON as it stands. Pairs may follow an object and win over it. Words that begin with dashes go behind --.\n\n\
            The result is printed unwrapped: structured content as JSON, else text; images, audio and blobs are \
            written to files whose paths are printed. A tool's own error goes to standard error, with exit code 1. \
            A call that may have reached its server is never sent again; Ctrl-C cancels it.\n\n\
            On a terminal, what the server reports of its progress is shown on standard error while it works.\n\n\
            A server that asks for input ends it with exit code 75, the question, and how to answer it; the call \
            goes on meanwhile, and mcpx task result collects what comes of it.",
    flags: &[
        Flag::switch("quiet", "Show no progress on the terminal"),
        Flag::switch("interactive", "Ask on the terminal what the server asks, field by field"),
        Flag::switch("raw", "Print the MCP envelope as the server sent it"),
        Flag::value("media", "file|inline", "What becomes of images, audio and blobs").of("output.media"),
        Flag::value("timeout", "DURATION", "Give up after this long; 0 waits for ever")
            .of("pool.callTimeout"),
        Flag::value("session", "KEY", "The session that the call belongs to"),
    ],
    settings: &["output.mediaDir", "mcp.validateArguments"],
    examples: &[
        example("mcpx call demo.echo '{\"text\":\"hi\"}'", "with a JSON object"),
        example("mcpx call demo.add a=1 b=2", "with pairs; the schema says that these are numbers"),
        example("mcpx call demo.add a:=1 b:=2.5", "with JSON values"),
        example("echo '{\"text\":\"hi\"}' | mcpx call demo.echo -", "with an object on standard input"),
        example("mcpx call --raw demo.add @arguments.json", "with a file, printing the envelope"),
    ],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    let target = utf8(&cx.inv.words[0], "the tool's name")?.to_owned();
    if cx.inv.has("interactive") {
        questions::check_terminal()?;
    }
    let forms = Forms::parse(&cx.inv.words[1..])?;
    let world = cx.catalog()?;
    if world.config.servers.is_empty() {
        return Err(no_servers(world, &format!("calling {target}")));
    }
    let servers: Vec<&str> = world.config.servers.iter().map(|s| s.name.as_str()).collect();
    let (server, tool) = names::split_target(&target, &servers).map_err(|e| suggest(world, &target, e))?;
    let def = world.config.server(&server).cloned();
    let def = def.ok_or_else(|| super::super::internal(format!("{server} is not configured")))?;
    if let Some(problem) = schemas::unusable(world, &def) {
        return Err(problem);
    }
    let schema = match forms.need_schema() {
        // Should the tools not be known, the call itself will say why.
        true => schemas::one_tool(cx, &def, &tool).ok().map(|tool| tool.input_schema),
        false => None,
    };
    let arguments = {
        let most = world.settings.get(&settings::TRANSPORT_MAX_BODY);
        forms.build(schema.as_ref(), &mut Patient::stdin(), most)?
    };
    let request = CallRequest {
        server,
        tool,
        arguments,
        context: cx.context()?,
        timeout_ms: timeout_ms(world)?,
        input: None,
        meta: None,
        task: None,
    };
    let what = format!("calling {}.{}", request.server, request.tool);
    let progress = if cx.inv.has("quiet") { Progress::none() } else { Progress::start(&what) };
    let mut report = |said: &Value| progress.report(&format!("{what}: {}", progress::reported(said)));
    let mut client = cx.daemon(&progress)?;
    let handle = Arc::new(Mutex::new(client.shutdown_handle()?));
    let current = handle.clone();
    // The daemon sees the connection close, and cancels the call.
    let interrupt =
        Interrupt::listen(move || current.lock().unwrap_or_else(PoisonError::into_inner).interrupt())?;
    // Where nobody looks nothing is asked for.
    let mut call = |client: &Client| match progress.is_shown() {
        true => client.call_telling(&request, Some(&mut report)),
        false => client.call(&request),
    };
    let begun = Instant::now();
    let mut outcome = call(&client);
    // The daemon ended before it had read the call: another one may be asked.
    if outcome.is_err() && client.lost_unsent() && !client.is_remote() && interrupt.exit_code().is_none() {
        client = cx.daemon(&progress)?;
        *handle.lock().unwrap_or_else(PoisonError::into_inner) = client.shutdown_handle()?;
        outcome = call(&client);
    }
    drop(progress);
    if let Some(code) = interrupt.exit_code() {
        if cx.json() {
            let e = Error::new(Kind::Cancelled, format!("calling {target}: interrupted"));
            let body = serde_json::json!({"ok": false, "error": e.to_json()});
            cx.out.json(&body)?;
        }
        super::super::out::note(&format!("interrupted; the call of {target} was cancelled"));
        return Ok(code);
    }
    // A server's end is told by the daemon, and recorded there.
    if let Err(e) = &outcome
        && e.kind() == Kind::OutcomeUnknown
        && e.server_name().is_none()
        && !client.is_remote()
    {
        let world = cx.world()?;
        crate::daemon::lost(&world.dirs, &world.settings, &request, begun.elapsed(), e);
    }
    let outcome = match cx.inv.has("interactive") {
        true => questions::converse(&client, outcome),
        false => outcome,
    };
    show(cx, &outcome?, &request.server, &request.tool)
}

/// Prints a tool's result; the exit code.
pub fn show(cx: &mut Cx, result: &RawValue, server: &str, tool: &str) -> Result<u8> {
    let envelope = Envelope::read(result);
    if cx.inv.has("raw") {
        cx.out.line(result.get())?;
        return Ok(u8::from(envelope.is_ok_and(|e| e.is_error == Some(true))));
    }
    let envelope = envelope?;
    if envelope.is_error == Some(true) {
        return Err(envelope.into_error(result, server, tool));
    }
    let media = media(cx, tool)?;
    if cx.json() {
        envelope.document(&mut cx.out, &media, server, tool)?;
    } else {
        envelope.print(&mut cx.out, &media)?;
    }
    Ok(0)
}

/// Names the tools of that very name that the cache knows, where the namespace was left out.
fn suggest(world: &World, target: &str, e: Error) -> Error {
    if e.kind() != Kind::Usage || e.server_name().is_some() {
        return e;
    }
    let (cache, ttl) = schemas::cache(world);
    let offers = |n: &schemas::Namespace| {
        let rows = filter::load_rows(&cache, n.def, ttl);
        rows.is_some_and(|rows| rows.iter().any(|row| row.name == target))
    };
    let usable = schemas::namespaces(world).into_iter().filter(|n| schemas::unusable(world, n.def).is_none());
    let found: Vec<String> = usable.filter(offers).map(|n| format!("\"{}.{target}\"", n.ident)).collect();
    match found.is_empty() {
        true => e,
        false => e.hint(format!("did you mean {}?", found.join(" or "))),
    }
}

/// The caller's own time limit in milliseconds; without one the server's or the daemon's holds.
fn timeout_ms(world: &World) -> Result<Option<u64>> {
    let limit = world.settings.get(&settings::POOL_CALL_TIMEOUT);
    let ours = world
        .settings
        .explain("pool.callTimeout")
        .is_some_and(|r| matches!(r.source, Source::Flag(_) | Source::Env(_) | Source::Preset(..)));
    if !ours {
        return Ok(None);
    }
    if limit > Duration::ZERO && limit < Duration::from_millis(1) {
        return Err(usage("a time-out is at least 1ms, or 0 for none"));
    }
    Ok(Some(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)))
}

/// Where this command puts images, audio and blobs.
fn media(cx: &Cx, tool: &str) -> Result<Media> {
    let world = cx.catalog()?;
    let stem = names::member(tool);
    if world.settings.get(&settings::OUTPUT_MEDIA) == "inline" {
        return Ok(Media { way: Way::Inline, stem });
    }
    let dir = world.settings.get(&settings::OUTPUT_MEDIA_DIR);
    if !dir.is_empty() {
        return Ok(Media { way: Way::Dir(world.cwd.join(dir)), stem });
    }
    let limits = artifacts::limits(&world.settings);
    let context = cx.context()?;
    let of = (context.run, context.session);
    Ok(Media { way: Way::Kept { store: Store::new(&world.dirs), limits, of }, stem })
}
