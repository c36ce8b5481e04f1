//! `mcpx serve`: be an MCP server for a host, over stdin and stdout.

use super::super::args::usage;
use super::super::command::{Command, Flag, Group, Rest, example};
use super::super::cx::Cx;
use super::super::out::Out;
use super::super::progress::Progress;
use crate::error::Result;
use crate::proc::Patient;
use crate::serve::{self, Connect, Link, Options, Session, Upstreams};
use crate::settings;
use std::io::{self, IsTerminal};
use std::sync::Arc;

/// The command.
pub static COMMAND: Command = Command {
    name: "serve",
    group: Group::Run,
    words: "",
    count: (0, 0),
    rest: Rest::Mixed,
    summary: "Be an MCP server for an editor or agent, over stdin and stdout",
    about: "One MCP server in a host's configuration instead of all of them. It offers a few mcpx_* tools that find, \
            describe and call the tools of every server; with --passthrough the servers' own tools instead, as \
            server__tool. Both eras of the protocol are spoken: initialize (2024-10-07 to 2025-11-25) and the \
            stateless 2026-07-28. One conversation is one session: servers of session scope are its own, and end \
            with it. The daemon offers the same at /mcp.",
    flags: &[
        Flag::switch("passthrough", "Offer the servers' own tools instead of mcpx_*"),
        Flag::value("session", "KEY", "The session that the calls belong to"),
    ],
    settings: &["serve.mode", "serve.tools", "catalog.profile", "transport.maxBody"],
    examples: &[
        example("mcpx serve", "what a host is told to start: claude mcp add mcpx -- mcpx serve"),
        example("mcpx serve --passthrough --profile work", "the servers' own tools, of one profile"),
    ],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    let options = match options(cx) {
        Ok(options) => options,
        Err(e) => {
            // A host shows its user what it is answered, and hardly ever what was said on stderr.
            if !io::stdin().is_terminal() {
                let _ = serve::lines::refuse(Patient::stdin(), Patient::stdout(), &format!("mcpx: {e}"));
            }
            return Err(e);
        }
    };
    let world = cx.world()?;
    let largest = world.settings.get(&settings::TRANSPORT_MAX_BODY);
    let (inv, env) = (cx.inv.clone(), cx.env.clone());
    // The configuration is read again each time: the daemon may have gone because it changed.
    let connect: Connect = Box::new(move || {
        let cx = Cx::new(inv.clone(), env.clone(), Out::stdout());
        cx.daemon(&Progress::start("connecting to the daemon"))
    });
    let (link, passthrough) = (Arc::new(Link::new(connect, cx.context()?)), options.passthrough);
    let session = Arc::new(Session::new(options, link.clone(), Arc::new(Upstreams::default())));
    let told = Arc::downgrade(&session);
    link.tell(
        passthrough,
        Arc::new(move |news| {
            if let Some(session) = told.upgrade() {
                session.tell(news);
            }
        }),
    );
    Ok(serve::stdio::run(&session, Patient::stdin(), Patient::stdout(), largest))
}

/// What is offered, as configuration and flags say.
fn options(cx: &Cx) -> Result<Options> {
    let mut options = Options::of(&cx.world()?.settings);
    if cx.inv.has("passthrough") {
        // A file may say otherwise, which the flag is there to outrank; the same command line may not.
        if let Some(mode) = cx.inv.setting("serve.mode").filter(|mode| *mode != "passthrough") {
            return Err(usage(format!("--passthrough and --serve-mode {mode} contradict each other"))
                .hint("--passthrough is short for --serve-mode passthrough; --serve-mode both offers mcpx_* as well"));
        }
        (options.code, options.passthrough) = (false, true);
    }
    options.check()?;
    Ok(options)
}
