//! `mcpx ui`: the address of the daemon's page, and a browser at it.

use super::super::browser;
use super::super::command::{Command, Flag, Group, Rest, example};
use super::super::cx::Cx;
use super::super::progress::Progress;
use crate::api::page;
use crate::error::{Error, Kind, Result};
use crate::settings::{OAUTH_BROWSER, TRANSPORT_BEARER_TOKEN};
use serde_json::json;

/// The command.
pub static COMMAND: Command = Command {
    name: "ui",
    group: Group::Daemon,
    words: "",
    count: (0, 0),
    rest: Rest::Mixed,
    summary: "Show the daemon in a browser: sessions, calls and latency",
    about: "Prints the address of the daemon's page and, on a terminal, opens it. The page only reads: the token in the \
            address opens what the page shows and nothing else, for as long as the daemon runs (with \
            transport.bearerToken, for as long as that stays). An open page keeps the daemon from leaving when idle.",
    flags: &[Flag::switch("no-browser", "Print the address and open nothing")],
    settings: &["oauth.browser", "transport.tcp"],
    examples: &[
        example("mcpx ui", "open it"),
        example("mcpx ui --no-browser", "the address alone"),
        example("mcpx --json ui", "for a program"),
    ],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    let world = cx.world()?;
    cx.needs_lasting("without a daemon that stays there is no page")?;
    let progress = Progress::start("asking the daemon");
    let client = cx.daemon(&progress)?;
    let info = client.info();
    let own = match info.token.is_empty() {
        // A daemon that was named has no info file here.
        true => world.settings.get(&TRANSPORT_BEARER_TOKEN).reveal().to_owned(),
        false => info.token.clone(),
    };
    if info.endpoint.is_empty() {
        let error =
            Error::new(Kind::Unavailable, "showing the daemon in a browser: it has no address for one");
        return Err(error.hint("transport.tcp is false; set it to true, or see mcpx status"));
    }
    drop(progress);
    let url = page::address(&info.endpoint, &own);
    let wanted = cx.out.is_terminal() && !cx.json() && !cx.inv.has("no-browser");
    let program = world.settings.get(&OAUTH_BROWSER);
    let opened = wanted && browser::open(&program, &url, &cx.env, &world.cwd);
    if cx.json() {
        cx.out.json(&json!({"ok": true, "url": url, "opened": opened}))?;
    } else {
        cx.out.line(&url)?;
    }
    Ok(0)
}
