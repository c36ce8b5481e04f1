//! Renders `docs/configuration.md` from the tables of settings and of a
//! server's members, and keeps the starter file for `mcpx init`.

use super::fields::{FIELDS, Field, OPTIONS};
use super::import;
use super::regex::SUBSET;
use super::search::{NEAR, SYSTEM};
use crate::settings;
use std::fmt::Write;

/// The content of a new `.mcpx.json`: the demonstration server, and examples in comments.
pub fn starter() -> &'static str {
    include_str!("starter.jsonc")
}

/// The whole of `docs/configuration.md`.
pub fn configuration_md() -> String {
    let mut out = String::from(INTRODUCTION);
    let near = NEAR.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
    let _ = write!(
        out,
        "
1. in the working directory (its links resolved) and in each directory above it: {near};
2. `$XDG_CONFIG_HOME/mcpx/config.json`, else `~/.config/mcpx/config.json`;
3. `~/.mcpx.json`;
4. `{SYSTEM}`.
{FILES}{SERVERS}"
    );
    table(&mut out, FIELDS);
    out.push_str(OWN);
    table(&mut out, OPTIONS);
    let _ = write!(
        out,
        "{FILTERS}The expressions are a subset: {SUBSET}, groups without capture `(?:…)`, classes \
         and ranges in `[…]`, and a backslash before any other sign for the sign itself. {BOUND}{CHOICES}{COMMANDS}"
    );
    out.push_str(&import::table());
    out.push_str(PLACEHOLDERS);
    out.push_str(REST);
    out.push_str(&settings::settings_md());
    out
}

fn table(out: &mut String, fields: &[Field]) {
    out.push_str("\n| member | meaning |\n| --- | --- |\n");
    for (name, meaning) in fields {
        let _ = writeln!(out, "| `{name}` | {meaning} |");
    }
}

const INTRODUCTION: &str = "\
<!-- Written by `make docs`; change the tables in src/settings and src/config instead. -->
# Configuration

A configuration file is a JSON object. Comments (`//`, `/* */`) and trailing commas are allowed. It defines servers under `mcpServers`, the same object that other MCP hosts use, and may give settings.

```jsonc
{
  \"mcpServers\": {
    \"files\": {
      \"command\": \"npx\",
      \"args\": [\"-y\", \"@modelcontextprotocol/server-filesystem\", \"${FILES_DIR:-.}\"],
      \"mcpx\": { \"scope\": \"repo\" },
    },
    \"tracker\": {
      \"url\": \"https://tracker.example.com/mcp\",
      \"headers\": { \"Authorization\": \"Bearer ${TRACKER_TOKEN:-}\" },
    },
  },
  // Settings, by family.
  \"pool\": { \"callTimeout\": \"2m\" },
}
```

`mcpx init` writes a first one.

## Where it is looked for

Every one of these that exists contributes, the nearest first:
";

const FILES: &str = "
The nearest file wins a server by its name, and a setting by its key. `--config FILE` or `MCPX_CONFIG` reads exactly that one file instead, which must exist.

A file that belongs to somebody else (other than root), or that others may write to, is refused: it could have any command run as you. Write access for a group is accepted where the group has the user's own number, as a user-private group has.

`servers` is read in place of `mcpServers` where a file has only that.

## Servers
";

const OWN: &str = "
`${VAR}` and `${VAR:-default}` are filled in from the environment in `command`, `args`, `env`, `cwd`, `url` and `headers`; the default also stands in for an empty variable, and may itself hold variables. A variable that is not set, and any other fault in a definition, is that server's problem alone: it is shown with file and line where the server is listed, and the others work.

Members of the `mcpx` block; an unknown one makes the server unusable:
";

const FILTERS: &str = "
### Tool filters

`tools`, `excludeTools` and `extraIncludeTools` choose which of a server's tools are offered: those that `tools` names (all, without it; none, when it is empty), without those that `excludeTools` names, and in any case those that `extraIncludeTools` names.

```jsonc
{
  \"mcpServers\": {
    \"files\": {
      \"command\": \"files-server\",
      \"mcpx\": {
        \"tools\": [\"read_*\", \"list_*\", \"/^(stat|head|tail)$/\"],
        \"excludeTools\": [\"*_all\"],
        \"extraIncludeTools\": [\"read_all\"],
      },
    },
  },
}
```

A pattern is a tool's whole name; a glob, in which `*` stands for any text and `?` for one character; or a regular expression between slashes, which is looked for anywhere in the name (`/…/i` ignores the case of ASCII letters). Names are the server's own, exact.

";

const BOUND: &str = "Matching takes time in proportion to the length of the name, whatever the expression.

A tool that is not offered is missing from every listing, search, count, type and client alike, and a call that names it is refused with exit code 77, the filter and its file. A change of a filter restarts nothing.
";

const CHOICES: &str = "
### Aliases

`\"aliasOf\": \"other\"` in place of `command` and `url` makes a server that is reached as `other` is, under another name and with instances of its own. `scope`, `sharing`, `min`, `max` and the time-outs hold for it as well where it does not give its own; tool filters, profiles and `enabled` do not. The other server may be in another file, and may be switched off.

A server that asks for its roots is told where its caller works: the directory, and the git work tree around it. An instance of a scope that stands for a place has that place; one that a session, a process or a call has to itself has where that was when it started; one that several may share from several places (`global`, `named:…`, `parent-session`) is not told that there are roots, unless it speaks the stateless revision, in which each request has its own caller.

### From a nearer file

A block without `command`, `url` and `aliasOf` changes the server of that name that a file further away defines: `enabled` (or `disabled`), `description`, `profiles`, `tools`, `excludeTools` and `extraIncludeTools`, each by itself; of two such blocks the nearer one counts. Every other option belongs to the file that says how the server is reached, and is refused there. `mcpx servers adjust` writes such a block.

```jsonc
{
  \"mcpServers\": {
    \"tracker\": { \"mcpx\": { \"excludeTools\": [\"delete_*\"] } },
  },
}
```

### Profiles

`\"profiles\": [\"work\"]` in a server's `mcpx` block takes it out of the default set: commands work with it only when `--profile work`, `MCPX_PROFILE=work` or the setting `catalog.profile` says so. `\"profiles\": [\"work\", \"default\"]` keeps it in the default set as well. `--profile` adds to the default set; `--skip-default` leaves the default set out; `--all-profiles` takes every server.

```jsonc
{
  \"mcpServers\": {
    \"tracker\": { \"url\": \"https://tracker.example.com/mcp\", \"mcpx\": { \"profiles\": [\"work\"] } },
    \"tracker-readonly\": { \"aliasOf\": \"tracker\", \"mcpx\": { \"tools\": [\"get_*\", \"list_*\"] } },
  },
}
```

One daemon serves all profiles. It knows every server; the selection travels with each request (`selection` in a call's or a run's context, the parameters of a listing), so that two commands with different profiles never start two daemons. A request that selects nothing gets every server. What is not selected is not listed, not searched and not started; a call that names it is refused with exit code 77 and the flag that would add it.
";

const COMMANDS: &str = "
### Changing and importing them

`mcpx servers add`, `adjust`, `remove`, `enable` and `disable` change a file and keep its comments and layout; a running daemon follows at once, and servers that did not change keep running. `mcpx servers import HOST` (or `all`) takes over what other hosts have, `mcpx servers import --from FILE` what one file has, and `mcpx init --import` writes a first file from all of them. What belongs to the user goes to the user's file, what belongs to the project to the project's. Each server is reported as taken or skipped, with the reason; `--dry-run` changes nothing. What is switched off there stays so.
";

const PLACEHOLDERS: &str = "
`${env:NAME}`, opencode's `{env:NAME}` and Gemini's `$NAME` are written as `${NAME}`, and reported. Placeholders that only the host fills in (`${input:token}`, `${workspaceFolder}`, `{file:…}`) are kept as they are and reported: put what they stand for in their place. Members without a counterpart are reported and left out.
";

const REST: &str = "
## Settings

A setting can be given in a file, by a variable, in a preset, by a flag, and to a running daemon. Each outranks those before it:

default < file (the nearest last) < environment < preset < flag < runtime override

In a file, `pool.callTimeout` is `\"pool\": { \"callTimeout\": \"2m\" }`, or `\"pool.callTimeout\": \"2m\"`. A variable that is set but empty says nothing. A flag of the kind true or false needs no value, and `--no-` before its name means false. Two spellings of one setting in one place must agree.

- A duration is `250ms`, `30s`, `1h30m` or `0`; units: d, h, m, s, ms, us, ns.
- A size is `65536`, `64KiB` (1024) or `16MB` (1000).
- A list is a JSON array, or text separated by commas.
- A path may begin with `~/`. A relative one is taken from the directory of the file that says it; for `.mcpx/config.json` that is the directory that holds `.mcpx`.

Unknown keys are reported with the nearest known one; with `plumbing.strictUnknownKeys` they are errors.

`mcpx settings` shows every value with its source and what it displaced, and sets one in the project's or the user's file, whose comments and layout stay. `mcpx config` shows the files in effect; `mcpx config --sources` lists what is not at its default by where it comes from; `mcpx config --schema` prints a JSON Schema for an editor, which a file may name under `\"$schema\"`.

A running daemon takes a new value of a setting that says so at once: from an edited file, or, until it ends, from `mcpx settings set KEY VALUE --persist runtime`. A setting of each call that a variable, a preset or a flag gives to a command holds for that command's calls alone.

### Presets

A preset is a named list of mcpx's own flags, one token an entry:

```jsonc
{
  \"presets\": {
    \"ci\": [\"--json\", \"--log-level=warn\"],
    \"debug\": [\"--log-level=debug\", \"--timeout=30s\"],
  },
}
```

`--preset ci,debug`, `MCPX_PRESET` or `\"preset\"` in a file selects presets. They apply in that order, and a later one wins. A flag on the command line wins over every preset. Flags that the running command does not take are skipped, because one preset is meant to serve several commands. A preset cannot select presets. Of two presets of one name, the nearest file's counts.

## All settings
";

const SERVERS: &str = "
A server has a `command` or a `url`. Members that only other hosts know (`type`, for instance) are passed over.
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::{Scratch, load_text};
    use crate::config::{Transport, load};
    use crate::settings::Settings;
    use crate::util::Env;

    #[test]
    fn the_documentation_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/configuration.md");
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert!(written == configuration_md(), "docs/configuration.md is not current; run: make docs");
    }

    #[test]
    fn every_example_of_the_documentation_loads() {
        let text = configuration_md();
        let examples: Vec<&str> =
            text.split("```jsonc\n").skip(1).filter_map(|e| e.split("```").next()).collect();
        assert_eq!(examples.len(), 5);
        for example in examples {
            let config = load_text(example);
            assert!(config.warnings.is_empty(), "{:?}", config.warnings);
            // What a nearer file changes is defined in another one.
            let alone = |e: &crate::error::Error| e.message().contains("no file further away defines it");
            let fine = |s: &std::sync::Arc<crate::config::ServerDef>| s.problem.as_ref().is_none_or(alone);
            assert!(config.servers.iter().all(fine), "{:?}", config.servers);
            let env = Env::default();
            let layers = config.settings_layers(&env);
            assert!(settings::defined_presets(&layers.files).is_ok());
            Settings::resolve(layers).unwrap();
        }
    }

    #[test]
    fn the_starter_offers_the_demonstration_server_and_its_examples_are_valid() {
        let config = load_text(starter());
        assert_eq!(config.servers.len(), 1);
        assert!(config.warnings.is_empty());
        let demo = config.server("demo").unwrap();
        assert!(demo.enabled && demo.problem.is_none());
        assert!(
            matches!(&demo.transport, Transport::Stdio { command, args, .. } if command == "mcpx" && args == &["demo-server"])
        );

        // The examples in its comments are valid as well.
        let uncommented: String = starter()
            .lines()
            .map(|l| {
                l.trim_start()
                    .strip_prefix("// ")
                    .filter(|l| l.trim_start().starts_with(['"', '}']))
                    .unwrap_or(l)
            })
            .filter(|l| !l.contains("Try: "))
            .fold(String::new(), |all, line| all + line + "\n");
        let scratch = Scratch::new();
        scratch.file("w/.mcpx.json", &uncommented);
        let env = Env::from_pairs([("EXAMPLE_TOKEN", "a"), ("TRACKER_TOKEN", "b")]);
        let config = load(&scratch.options(&env)).unwrap();
        let names: Vec<&str> = config.servers.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["demo", "files", "tracker"]);
        // What a nearer file changes is defined in another one.
        let alone = |e: &crate::error::Error| e.message().contains("no file further away defines it");
        let fine = |s: &std::sync::Arc<crate::config::ServerDef>| s.problem.as_ref().is_none_or(alone);
        assert!(config.servers.iter().all(fine), "{:?}", config.servers);
        assert!(config.layers[0].values.contains_key("pool") && config.warnings.is_empty());
    }
}
