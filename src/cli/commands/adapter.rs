//! `mcpx adapter`: what the daemon starts for a program or an API that the configuration declares.

use super::super::command::{Command, Group, Rest, example};
use super::super::cx::{Cx, working_directory};
use crate::adapters::{self, Limits, VARIABLE};
use crate::error::{Error, Kind, Result};
use crate::proc::Patient;
use crate::serve::adapter;
use crate::settings::{self, Settings};

/// The command.
pub static COMMAND: Command = Command {
    name: "adapter",
    group: Group::Hidden,
    words: "serve",
    count: (1, 1),
    rest: Rest::Mixed,
    summary: "Serve a declared program or API over MCP",
    about: "The daemon starts this for a server whose \"mcpx\" block has \"program\" or \"openapi\". \
            It takes the declaration from MCPX_ADAPTER_DECLARATION.",
    flags: &[],
    settings: &["adapters.timeout", "adapters.maxOutput"],
    examples: &[example("mcpx adapter serve < requests.jsonl", "answer JSON-RPC messages, one a line")],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    if cx.inv.words()? != ["serve"] {
        return Err(Error::new(Kind::Usage, "mcpx adapter knows only \"serve\""));
    }
    let Some(text) = cx.env.text(VARIABLE) else {
        let what = format!("{VARIABLE} is not set: there is no declaration to serve");
        return Err(Error::new(Kind::Usage, what)
            .hint("the daemon sets it for the servers that a configuration declares"));
    };
    let world = cx.world()?;
    let limits = limits(&world.settings);
    let largest = world.settings.get(&settings::MCP_MAX_MESSAGE);
    let adapter = adapters::declared(text, &cx.env, &working_directory()?, &limits)?;
    Ok(adapter::run(adapter, Patient::stdin(), Patient::stdout(), largest))
}

/// What the settings say of every adapter.
pub fn limits(settings: &Settings) -> Limits {
    let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    Limits {
        output: size(settings.get(&settings::ADAPTERS_MAX_OUTPUT)),
        document: size(settings.get(&settings::ADAPTERS_MAX_DOCUMENT)),
        schema: size(settings.get(&settings::ADAPTERS_MAX_SCHEMA)),
        timeout: settings.get(&settings::ADAPTERS_TIMEOUT),
        ca: settings.get(&settings::TRANSPORT_CA_FILE),
    }
}
