//! Reads the servers that other MCP hosts have configured, and turns each into
//! a block of mcpx's own. Knows where hosts keep them and what their members
//! mean; writes nothing, and guesses nothing.

mod block;
mod hosts;
mod toml;

#[cfg(test)]
pub(super) use self::toml::parse as parse_toml;
use super::jsonc;
use crate::error::{Error, Kind, Result};
use crate::paths::Dirs;
use crate::util::{Env, did_you_mean};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A host.
pub struct Host {
    /// Its word on the command line.
    pub name: &'static str,
    /// Its name.
    pub title: &'static str,
    /// Its dialect.
    dialect: Dialect,
    /// Where it keeps servers; the first that exists of each group counts.
    places: &'static [Spot],
}

/// How a host writes servers down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    /// `mcpServers`, as most have it.
    Common,
    /// The same, and more of it below `projects`.
    ClaudeCode,
    /// `servers`, or `mcp.servers` in the user's settings.
    VsCode,
    /// TOML, `mcp_servers`.
    Codex,
    /// `mcp`, with `type`, and `command` as a list.
    OpenCode,
    /// `mcpServers`, with `httpUrl` and its own switches and filters.
    Gemini,
}

/// Where a file may be.
struct Spot {
    /// What the path is below.
    base: Base,
    path: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Base {
    Home,
    /// `$XDG_CONFIG_HOME`, else `~/.config`.
    Config,
    /// `$CODEX_HOME`, else `~/.codex`.
    Codex,
    /// The working directory or the nearest above it.
    Project,
}

const fn home(path: &'static str) -> Spot {
    Spot { base: Base::Home, path }
}
const fn config(path: &'static str) -> Spot {
    Spot { base: Base::Config, path }
}
const fn project(path: &'static str) -> Spot {
    Spot { base: Base::Project, path }
}

/// Every host, in the order of the documentation.
pub static HOSTS: &[Host] = &[
    Host {
        name: "claude-code",
        title: "Claude Code",
        dialect: Dialect::ClaudeCode,
        places: &[home(".claude.json"), project(".mcp.json")],
    },
    Host {
        name: "claude-desktop",
        title: "Claude Desktop",
        dialect: Dialect::Common,
        places: &[
            config("Claude/claude_desktop_config.json"),
            home("Library/Application Support/Claude/claude_desktop_config.json"),
        ],
    },
    Host {
        name: "cursor",
        title: "Cursor",
        dialect: Dialect::Common,
        places: &[home(".cursor/mcp.json"), project(".cursor/mcp.json")],
    },
    Host {
        name: "vscode",
        title: "VS Code",
        dialect: Dialect::VsCode,
        places: &[
            config("Code/User/mcp.json"),
            config("Code/User/settings.json"),
            home("Library/Application Support/Code/User/mcp.json"),
            home("Library/Application Support/Code/User/settings.json"),
            project(".vscode/mcp.json"),
        ],
    },
    Host {
        name: "windsurf",
        title: "Windsurf",
        dialect: Dialect::Common,
        places: &[home(".codeium/windsurf/mcp_config.json")],
    },
    Host {
        name: "codex",
        title: "Codex",
        dialect: Dialect::Codex,
        places: &[Spot { base: Base::Codex, path: "config.toml" }, project(".codex/config.toml")],
    },
    Host {
        name: "opencode",
        title: "opencode",
        dialect: Dialect::OpenCode,
        places: &[
            config("opencode/opencode.json"),
            config("opencode/opencode.jsonc"),
            project("opencode.json"),
            project("opencode.jsonc"),
        ],
    },
    Host {
        name: "gemini",
        title: "Gemini CLI",
        dialect: Dialect::Gemini,
        places: &[home(".gemini/settings.json"), project(".gemini/settings.json")],
    },
];

/// The host of this name.
///
/// # Errors
/// `Usage` with the nearest names.
pub fn host(name: &str) -> Result<&'static Host> {
    let all = || HOSTS.iter().map(|h| h.name);
    let lower = name.to_lowercase();
    HOSTS.iter().find(|h| h.name == lower).ok_or_else(|| {
        let e = Error::new(Kind::Usage, format!("mcpx does not know the host \"{name}\""));
        let known = format!("it knows {}, and all", all().collect::<Vec<_>>().join(", "));
        e.hint(did_you_mean(name, all()).unwrap_or(known))
    })
}

/// A file with servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The file.
    pub path: PathBuf,
    /// It belongs to a project, not to the user.
    pub project: bool,
}

/// One server of another host's.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// Its name.
    pub name: String,
    /// The block for mcpx, or why there is none.
    pub block: std::result::Result<Value, String>,
    /// What the user should know of it.
    pub notes: Vec<String>,
}

impl Imported {
    /// Whether it defines nothing, and only switches off what another file defines.
    pub fn is_switch(block: &Value) -> bool {
        *block == block::off_switch()
    }
}

/// The table of hosts for the documentation: `name | title | files`, a line each.
pub(super) fn table() -> String {
    let mut out = String::from("\n| host | word | where its servers are |\n| --- | --- | --- |\n");
    for host in HOSTS {
        let places: Vec<String> = host.places.iter().map(|spot| format!("`{}`", spot.shown())).collect();
        out.push_str(&format!("| {} | `{}` | {} |\n", host.title, host.name, places.join(", ")));
    }
    out
}

impl Spot {
    fn shown(&self) -> String {
        match self.base {
            Base::Home => format!("~/{}", self.path),
            Base::Config => format!("~/.config/{}", self.path),
            Base::Codex => format!("~/.codex/{}", self.path),
            Base::Project => self.path.to_owned(),
        }
    }
}

impl Host {
    /// The host's files that exist, as seen from a directory.
    pub fn files(&self, dir: &Path, env: &Env, dirs: &Dirs) -> Vec<Found> {
        let config = dirs.config.as_deref().and_then(Path::parent);
        let home = dirs.home.as_deref();
        let codex = env.get("CODEX_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
        let codex = codex.or_else(|| home.map(|h| h.join(".codex")));
        let mut out: Vec<Found> = Vec::new();
        for spot in self.places {
            let path = match spot.base {
                Base::Home => home.map(|h| h.join(spot.path)),
                Base::Config => config.map(|c| c.join(spot.path)),
                Base::Codex => codex.as_ref().map(|c| c.join(spot.path)),
                Base::Project => dir.ancestors().map(|d| d.join(spot.path)).find(|f| f.is_file()),
            };
            let Some(path) = path.filter(|p| p.is_file()) else { continue };
            // On the way up from a project the user's own file may be met once more.
            if !out.iter().any(|f| f.path == path) {
                out.push(Found { path, project: spot.base == Base::Project });
            }
        }
        out
    }

    /// The servers in a text of the host's; `dir` is the directory that project-bound ones must belong to.
    ///
    /// # Errors
    /// `Config` when it cannot be read as what the host writes.
    pub fn read(&self, text: &str, path: &Path, dir: &Path) -> Result<Vec<Imported>> {
        let value = document(text, path, self.dialect == Dialect::Codex)?;
        Ok(hosts::servers(self.dialect, &value, dir))
    }
}

/// Reads a file whosesoever it is, by what is in it.
///
/// # Errors
/// `Config` when it cannot be read, or holds no servers that any host would write.
pub fn read_any(text: &str, path: &Path, dir: &Path) -> Result<Vec<Imported>> {
    let is_toml = path.extension().is_some_and(|e| e == "toml");
    let value = document(text, path, is_toml)?;
    let has = |key: &str| value.get(key).is_some_and(Value::is_object);
    let dialect = match () {
        () if is_toml => Dialect::Codex,
        () if has("mcpServers") && has("projects") => Dialect::ClaudeCode,
        () if has("mcpServers") && path.parent().is_some_and(|d| d.ends_with(".gemini")) => Dialect::Gemini,
        () if has("mcpServers") => Dialect::Common,
        () if has("servers") || value["mcp"]["servers"].is_object() => Dialect::VsCode,
        () if has("mcp") => Dialect::OpenCode,
        () => {
            let message = format!("{} has no servers that mcpx knows how to read", path.display());
            let hint = "it looks for mcpServers, servers, mcp.servers, mcp, and in TOML for mcp_servers";
            return Err(Error::new(Kind::Config, message).hint(hint));
        }
    };
    Ok(hosts::servers(dialect, &value, dir))
}

fn document(text: &str, path: &Path, is_toml: bool) -> Result<Value> {
    let value = match is_toml {
        true => toml::parse(text).map(Value::Object).map_err(|what| {
            Error::new(Kind::Config, format!("{}: {what}", path.display()))
                .hint("mcpx reads the part of TOML that such files use")
        })?,
        false => jsonc::parse(text, path)?.value,
    };
    match value.is_object() {
        true => Ok(value),
        false => Err(Error::new(Kind::Config, format!("{}: expected an object", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::Scratch;
    use serde_json::json;

    fn names(all: &[Imported]) -> Vec<&str> {
        all.iter().map(|s| s.name.as_str()).collect()
    }

    #[test]
    fn files_are_found_where_each_host_keeps_them() {
        let scratch = Scratch::new();
        let home = scratch.dir("home");
        let deep = scratch.dir("home/p/deep");
        let mut env = Env::from_pairs([("HOME", &home)]);
        let dirs = Dirs::from_env(&env, 0).unwrap();
        for file in [
            "home/.cursor/mcp.json",
            "home/p/.cursor/mcp.json",
            "home/.config/Code/User/settings.json",
            "home/.codex/config.toml",
            "home/codex/config.toml",
        ] {
            scratch.file(file, "{}");
        }
        let files = |name: &str, env: &Env| {
            let found = host(name).unwrap().files(&deep, env, &dirs);
            found.into_iter().map(|f| (f.path, f.project)).collect::<Vec<_>>()
        };
        assert_eq!(
            files("cursor", &env),
            [(home.join(".cursor/mcp.json"), false), (home.join("p/.cursor/mcp.json"), true)]
        );
        assert_eq!(files("vscode", &env), [(home.join(".config/Code/User/settings.json"), false)]);
        assert_eq!(files("codex", &env)[0], (home.join(".codex/config.toml"), false));
        env.set("CODEX_HOME", home.join("codex"));
        assert_eq!(files("codex", &env)[0], (home.join("codex/config.toml"), false));
        assert!(files("gemini", &env).is_empty());
        assert!(host("curser").err().unwrap().to_string().contains("\"cursor\""));
        assert_eq!(host("VSCode").ok().unwrap().name, "vscode");
    }

    #[test]
    fn a_file_is_known_by_what_is_in_it() {
        let read = |name: &str, text: &str| read_any(text, Path::new(name), Path::new("/p"));
        let server = json!({"s": {"command": "x"}});
        for (name, value) in [
            ("a.json", json!({"mcpServers": server})),
            ("a.json", json!({"servers": server})),
            ("settings.json", json!({"editor.x": 1, "mcp": {"servers": server}})),
            ("a.json", json!({"mcp": {"s": {"type": "local", "command": ["x"]}}})),
            ("a.json", json!({"mcpServers": {}, "projects": {"/p": {"mcpServers": server}}})),
        ] {
            let read = read(name, &value.to_string()).unwrap();
            assert_eq!(names(&read), ["s"], "{value}");
            assert_eq!(read[0].block, Ok(json!({"command": "x"})), "{value}");
        }
        assert_eq!(names(&read("a.toml", "[mcp_servers.s]\ncommand = 'x'").unwrap()), ["s"]);
        for (name, text) in [("a.json", "{}"), ("a.json", "[]"), ("a.json", "{"), ("a.toml", "a = ")] {
            assert_eq!(read(name, text).unwrap_err().exit_code(), 65, "{text}");
        }
    }

    #[test]
    fn what_a_host_has_switched_off_stays_so() {
        let claude = json!({
            "mcpServers": {"user": {"command": "x"}, "both": {"command": "far"}},
            "projects": {
                "/p": {
                    "mcpServers": {"both": {"command": "near"}},
                    "disabledMcpServers": ["user"],
                    "disabledMcpjsonServers": ["shared"],
                },
                "/p/q": {"mcpServers": {"not": {"command": "x"}}},
            },
        });
        let read = host("claude-code").ok().unwrap();
        let read = read.read(&claude.to_string(), Path::new("c"), Path::new("/p/deep")).unwrap();
        assert_eq!(names(&read), ["both", "user", "shared"]);
        assert_eq!(read[0].block, Ok(json!({"command": "near"})));
        assert_eq!(read[1].block, Ok(json!({"command": "x", "enabled": false})));
        assert!(Imported::is_switch(read[2].block.as_ref().unwrap()));
        let gemini = json!({
            "mcp": {"allowed": ["a"]}, "mcpServers": {"a": {"command": "x"}, "b": {"command": "x"}},
        });
        let read = host("gemini").ok().unwrap();
        let read = read.read(&gemini.to_string(), Path::new("c"), Path::new("/")).unwrap();
        let off: Vec<bool> = read.iter().map(|s| s.block.as_ref().unwrap()["enabled"] == false).collect();
        assert_eq!(off, [false, true]);
    }
}
