//! One server's definition: its fields in a configuration file, what they mean,
//! and what makes a definition unusable. A fault here is that server's own
//! problem: it never keeps the file's other servers from working.

use super::declared::Declared;
use super::expand::expand;
use super::fields::{OPTIONS, PATCHED};
use super::filter::ToolFilter;
use super::node::{Item, Node};
use super::oauth::{OAuthOptions, Written};
use super::patch::Patch;
use super::values::{Fault, Said, check_header, check_url, flag, pairs, patterns, said, texts};
use crate::error::{Error, Kind};
use crate::settings::{self, At, FromVal};
use crate::util::{self, Env};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How a server is reached.
#[derive(Clone, PartialEq, Eq)]
pub enum Transport {
    /// A program that is started, and spoken to over its stdin and stdout.
    Stdio {
        /// The program: a path, or a name to look up on PATH.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables on top of the inherited ones.
        env: Vec<(String, String)>,
        /// Its working directory, absolute, when the definition says one.
        cwd: Option<PathBuf>,
    },
    /// A server that is already there, over streamable HTTP.
    Http {
        /// Its address, `http://` or `https://`.
        url: String,
        /// Headers to send with every request.
        headers: Vec<(String, String)>,
    },
}

impl fmt::Debug for Transport {
    /// Without the values of variables and headers, and without a URL's query: they may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |pairs: &[(String, String)]| {
            pairs.iter().map(|(name, _)| format!("{name}=********")).collect::<Vec<_>>()
        };
        match self {
            Transport::Stdio { command, args, env, cwd } => f
                .debug_struct("Stdio")
                .field("command", command)
                .field("args", args)
                .field("env", &names(env))
                .field("cwd", cwd)
                .finish(),
            Transport::Http { url, headers } => f
                .debug_struct("Http")
                .field("url", &url.split('?').next().unwrap_or_default())
                .field("headers", &names(headers))
                .finish(),
        }
    }
}

/// What a server's `"mcpx"` block says; absent values come from the settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerOptions {
    /// What an instance is keyed by, instead of `pool.scope`.
    pub scope: Option<String>,
    /// `shared` or `exclusive`, instead of `pool.sharing`.
    pub sharing: Option<String>,
    /// Instead of `pool.startTimeout`.
    pub start_timeout: Option<Duration>,
    /// Instead of `pool.callTimeout`; zero is no limit.
    pub call_timeout: Option<Duration>,
    /// Instead of `pool.idleTimeout`; zero is never.
    pub idle_timeout: Option<Duration>,
    /// Instead of `pool.min`.
    pub min: Option<usize>,
    /// Instead of `pool.max`.
    pub max: Option<usize>,
    /// The revision of MCP, or `auto`, instead of `upstream.protocol`.
    pub protocol: Option<String>,
    /// Which of its tools are offered.
    pub tools: ToolFilter,
    /// Which variables of the environment it inherits; absent is all of them.
    pub inherit_env: Option<Vec<String>>,
    /// The profiles that it belongs to; none is the default set.
    pub profiles: Vec<String>,
    /// Who we are to whoever grants access to it.
    pub oauth: OAuthOptions,
}

impl ServerOptions {
    /// Takes over how the program has to be run where these options do not say;
    /// what is offered of it, and to whom, stays its own.
    fn inherit(&mut self, other: &ServerOptions) {
        self.scope = self.scope.take().or_else(|| other.scope.clone());
        self.sharing = self.sharing.take().or_else(|| other.sharing.clone());
        self.start_timeout = self.start_timeout.or(other.start_timeout);
        self.call_timeout = self.call_timeout.or(other.call_timeout);
        self.idle_timeout = self.idle_timeout.or(other.idle_timeout);
        self.min = self.min.or(other.min);
        self.max = self.max.or(other.max);
        self.protocol = self.protocol.take().or_else(|| other.protocol.clone());
        self.inherit_env = self.inherit_env.take().or_else(|| other.inherit_env.clone());
        if self.oauth == OAuthOptions::default() {
            self.oauth = other.oauth.clone();
        }
    }
}

/// One server as a configuration file defines it, variables expanded.
#[derive(Clone, Debug)]
pub struct ServerDef {
    /// Its name, unique among the servers in force.
    pub name: String,
    /// How it is reached. Not meaningful when there is a `problem`.
    pub transport: Transport,
    /// Whether it is switched on.
    pub enabled: bool,
    /// What it is for, in the configuration's words.
    pub description: Option<String>,
    /// Its own options.
    pub options: ServerOptions,
    /// The file that defines it.
    pub source: Arc<PathBuf>,
    /// The line of its name in that file.
    pub line: u32,
    /// 16 hexadecimal digits over how the server is reached, before variables
    /// are expanded. Of `options` only what it inherits and the protocol are part of it, and
    /// the description is not: to change the others restarts nothing.
    pub digest: String,
    /// The server whose definition this one has under another name.
    pub alias_of: Option<String>,
    /// The file that describes it, besides its configuration.
    pub document: Option<PathBuf>,
    /// Why the definition cannot be used.
    pub problem: Option<Error>,
}

impl ServerDef {
    /// The directory that relative names in its definition are taken from.
    pub fn base(&self) -> &Path {
        settings::base_of(&self.source)
    }

    /// Completes an alias by the server that it names, as `found` in the whole configuration.
    pub(super) fn complete(&mut self, found: Result<&ServerDef, Option<String>>) {
        let Some(of) = self.alias_of.clone() else { return };
        if self.problem.is_some() {
            return;
        }
        let what = match found {
            Ok(other) if other.alias_of.is_some() => {
                format!("aliasOf: \"{of}\" is an alias itself; name the server that it stands for")
            }
            Ok(other) => {
                self.transport = other.transport.clone();
                self.digest.clone_from(&other.digest);
                self.document.clone_from(&other.document);
                self.options.inherit(&other.options);
                self.description = self.description.take().or_else(|| other.description.clone());
                let Some(problem) = &other.problem else { return };
                format!("aliasOf: \"{of}\" cannot be used: {}", problem.message())
            }
            Err(_) if of == self.name => "aliasOf: it is an alias of itself; name another server".to_owned(),
            Err(near) => {
                let near = near.map(|n| format!("; {n}")).unwrap_or_default();
                format!("aliasOf: there is no server \"{of}\"{near}")
            }
        };
        self.problem = Some(problem(&self.source, self.line, &self.name, &what));
    }
}

/// What is wrong with a server, with its place.
fn problem(path: &Path, at: impl fmt::Display, name: &str, what: &str) -> Error {
    Error::new(Kind::Config, format!("{}:{at}: server \"{name}\": {what}", path.display())).server(name)
}

/// What a block in a file turned out to be.
pub(super) enum Block {
    /// A definition.
    Server(Box<ServerDef>),
    /// No definition, only changes to the one in a file further away.
    Patch(Box<Patch>),
}

/// Where a block stands.
pub(super) struct Place<'a> {
    pub path: &'a Arc<PathBuf>,
    pub base: &'a Path,
    pub env: &'a Env,
}

/// A block's fields, as they are written.
#[derive(Default)]
struct Fields<'a> {
    command: Option<Said<'a>>,
    args: Vec<Said<'a>>,
    env: Vec<(&'a str, Said<'a>)>,
    cwd: Option<Said<'a>>,
    url: Option<Said<'a>>,
    headers: Vec<(&'a str, Said<'a>)>,
    alias: Option<Said<'a>>,
    enabled: Option<bool>,
    description: Option<String>,
    /// What `inheritEnv` says.
    inherit: Vec<Said<'a>>,
    oauth: Written<'a>,
    /// What it is instead of something that speaks MCP.
    declared: Option<Declared>,
    /// What `protocol` says.
    protocol: Option<Said<'a>>,
    options: ServerOptions,
    own: Own,
    /// The first option that a block without a definition cannot have.
    beyond_patch: Option<(At, String)>,
}

/// What the `"mcpx"` block says of the same things as the block around it; it comes first.
#[derive(Default)]
struct Own {
    enabled: Option<bool>,
    description: Option<String>,
}

/// Reads a server's block. Never fails: what is wrong becomes the server's problem.
pub(super) fn read(name: &str, block: &Node, place: &Place) -> Block {
    let mut fields = Fields::default();
    let mut fault: Option<Fault> = None;
    if name.trim().is_empty() {
        fault = Some((block.at, "its name is empty".into()));
    }
    match &block.item {
        Item::Object(members) => {
            for (key, node) in members {
                if let Err(found) = fields.take(key, node) {
                    fault.get_or_insert(found);
                }
            }
        }
        _ => {
            let what = format!("its definition must be an object, not {}", block.shape());
            fault.get_or_insert((block.at, what));
        }
    }
    let switch = fields.own.enabled.or(fields.enabled);
    let reached = (&fields.command, &fields.url, &fields.alias);
    let nothing_said = reached == (&None, &None, &None) && fields.declared.is_none();
    if nothing_said && fault.is_none() && (switch.is_some() || !fields.defines()) {
        let patch = fields.patch(switch);
        if !patch.is_empty() {
            match &fields.beyond_patch {
                None => return Block::Patch(Box::new(patch.placed(place.path, block.at.line))),
                Some((at, key)) => {
                    let what = format!(
                        "mcpx.{key}: a block without \"command\" and \"url\" changes only {} of the server of that name further away",
                        PATCHED.join(", ")
                    );
                    fault = Some((*at, what));
                }
            }
        }
    }
    let reached = (&fields.command, &fields.url, &fields.alias);
    if fault.is_none() {
        let what = match reached {
            _ if fields.declared.is_some() => fields.beside_declared(),
            (None, None, None) => Some("has neither \"command\" nor \"url\""),
            (Some(_), Some(_), _) => Some("has both \"command\" and \"url\"; keep one"),
            (_, _, Some(_)) if fields.defines() => {
                Some("has \"aliasOf\" beside a definition of its own; keep one")
            }
            _ => None,
        };
        fault = what.map(|what| (block.at, what.into()));
    }
    let mut digest = fields.digest_parts();
    let declared =
        fields.declared.as_ref().map(|d| d.digest_parts(place.base, place.env)).unwrap_or_default();
    digest.extend(declared.iter().map(String::as_bytes));
    let description = fields.own.description.take().or(fields.description.take());
    let mut options = std::mem::take(&mut fields.options);
    match fields.oauth.options(place.env) {
        Ok(oauth) => options.oauth = oauth,
        Err(found) => drop(fault.get_or_insert(found)),
    }
    let alias_of = fields.alias.as_ref().map(|said| said.text.to_owned());
    let document = fields.declared.as_ref().and_then(|d| d.document(place.base, place.env));
    let transport = fields.transport(name, place, &mut digest).unwrap_or_else(|found| {
        fault.get_or_insert(found);
        nothing()
    });
    let problem = fault.map(|(at, what)| problem(place.path, at, name, &what));
    Block::Server(Box::new(ServerDef {
        transport,
        enabled: switch.unwrap_or(true),
        description,
        options,
        source: place.path.clone(),
        line: block.at.line,
        digest: util::digest(digest, 16),
        alias_of,
        document,
        problem,
        name: name.to_owned(),
    }))
}

/// A server that is switched on, but that no file defines.
pub(super) fn undefined(name: String, source: Arc<PathBuf>, line: u32) -> ServerDef {
    let what = "has neither \"command\" nor \"url\", and no file further away defines it";
    ServerDef {
        problem: Some(problem(&source, line, &name, what)),
        alias_of: None,
        document: None,
        transport: nothing(),
        enabled: true,
        description: None,
        options: ServerOptions::default(),
        digest: util::digest([], 16),
        source,
        line,
        name,
    }
}

/// Stands for the transport of a definition that cannot be used.
fn nothing() -> Transport {
    Transport::Stdio { command: String::new(), args: Vec::new(), env: Vec::new(), cwd: None }
}

impl<'a> Fields<'a> {
    /// Takes one member of the block. Members that only other hosts know are passed over.
    fn take(&mut self, key: &str, node: &'a Node) -> Result<(), Fault> {
        match key {
            "command" => self.command = Some(said(key, node)?),
            "args" => self.args = texts(key, node)?,
            "env" => self.env = pairs(key, node)?,
            "cwd" => self.cwd = Some(said(key, node)?),
            "url" | "serverUrl" | "httpUrl" => {
                let url = said(key, node)?;
                if self.url.as_ref().is_some_and(|first| first.text != url.text) {
                    return Err((url.at, format!("{key}: another field already gives another address")));
                }
                self.url = Some(url);
            }
            "headers" => self.headers = pairs(key, node)?,
            "aliasOf" => self.alias = Some(said(key, node)?),
            "description" => self.description = Some(said(key, node)?.text.to_owned()),
            "enabled" | "disabled" => {
                let on = flag(key, node)? == (key == "enabled");
                if self.enabled.is_some_and(|first| first != on) {
                    return Err((node.at, "\"enabled\" and \"disabled\" contradict each other".into()));
                }
                self.enabled = Some(on);
            }
            "mcpx" => self.own(node)?,
            _ => {}
        }
        Ok(())
    }

    /// Reads the `"mcpx"` block, in which an unknown key is an error.
    fn own(&mut self, block: &'a Node<'_>) -> Result<(), Fault> {
        let Item::Object(members) = &block.item else {
            return Err((block.at, format!("mcpx: expected an object, got {}", block.shape())));
        };
        for (key, node) in members {
            if !PATCHED.contains(&key.as_ref()) && self.beyond_patch.is_none() {
                self.beyond_patch = Some((node.at, key.as_ref().to_owned()));
            }
            let field = || format!("mcpx.{key}");
            // The values are of the kind of the setting that they stand in for.
            let parse = |setting: &dyn settings::Declared| {
                let value = setting.kind().parse_json(&node.to_value());
                value.map_err(|what| (node.at, format!("{}: {what}", field())))
            };
            let own = &mut self.options;
            match key.as_ref() {
                "scope" => own.scope = String::from_val(&parse(&settings::POOL_SCOPE)?),
                "sharing" => own.sharing = String::from_val(&parse(&settings::POOL_SHARING)?),
                "protocol" => {
                    own.protocol = String::from_val(&parse(&settings::UPSTREAM_PROTOCOL)?);
                    self.protocol = Some(said(&field(), node)?);
                }
                "startTimeout" => {
                    own.start_timeout = Duration::from_val(&parse(&settings::POOL_START_TIMEOUT)?);
                }
                "callTimeout" => {
                    own.call_timeout = Duration::from_val(&parse(&settings::POOL_CALL_TIMEOUT)?);
                }
                "idleTimeout" => {
                    own.idle_timeout = Duration::from_val(&parse(&settings::POOL_IDLE_TIMEOUT)?);
                }
                "min" => {
                    let min = i64::from_val(&parse(&settings::POOL_MIN)?);
                    own.min = min.and_then(|m| usize::try_from(m).ok());
                }
                "max" => {
                    let max = i64::from_val(&parse(&settings::POOL_MAX)?);
                    own.max = max.and_then(|m| usize::try_from(m).ok());
                }
                "inheritEnv" => {
                    let names = texts(&field(), node)?;
                    own.inherit_env = Some(names.iter().map(|n| n.text.to_owned()).collect());
                    self.inherit = names;
                }
                "oauth" => self.oauth = Written::read(node)?,
                kind if Declared::is(kind) => {
                    if self.declared.is_some() {
                        return Err((
                            node.at,
                            "has both \"mcpx.program\" and \"mcpx.openapi\"; keep one".into(),
                        ));
                    }
                    self.declared = Some(Declared::read(kind, node)?);
                }
                "tools" => own.tools.only = Some(patterns(&field(), node)?),
                "excludeTools" => own.tools.exclude = Some(patterns(&field(), node)?),
                "extraIncludeTools" => own.tools.extra = Some(patterns(&field(), node)?),
                "profiles" => {
                    let names = texts(&field(), node)?;
                    if let Some(odd) = names
                        .iter()
                        .find(|n| n.text.trim() != n.text || n.text.contains(',') || n.text.is_empty())
                    {
                        let what = format!("{}: \"{}\" cannot be a profile's name", field(), odd.text);
                        return Err((odd.at, what));
                    }
                    own.profiles = names.iter().map(|n| n.text.to_owned()).collect();
                }
                "description" => self.own.description = Some(said(&field(), node)?.text.to_owned()),
                "enabled" => self.own.enabled = Some(flag(&field(), node)?),
                _ => {
                    let near = util::did_you_mean(key, OPTIONS.iter().map(|(key, _)| *key));
                    let near = near.map(|n| format!("; {n}")).unwrap_or_default();
                    return Err((node.at, format!("mcpx: unknown key \"{key}\"{near}")));
                }
            }
        }
        Ok(())
    }

    /// What it changes, read as a block without a definition.
    fn patch(&self, enabled: Option<bool>) -> Patch {
        let own = &self.options;
        Patch {
            enabled,
            description: self.own.description.clone().or_else(|| self.description.clone()),
            tools: own.tools.clone(),
            profiles: (!own.profiles.is_empty()).then(|| own.profiles.clone()),
            place: None,
        }
    }

    /// Whether it says anything of how a server is reached.
    fn defines(&self) -> bool {
        let said = self.command.is_some() || self.url.is_some() || self.cwd.is_some();
        said || !self.args.is_empty() || !self.env.is_empty() || !self.headers.is_empty()
    }

    /// What stands beside a declaration, and cannot.
    fn beside_declared(&self) -> Option<&'static str> {
        let other = self.command.is_some() || self.url.is_some() || self.alias.is_some();
        (other || !self.args.is_empty() || !self.headers.is_empty()).then_some(
            "is declared in its \"mcpx\" block, and cannot have \"command\", \"args\", \"url\", \"headers\" or \"aliasOf\" beside it",
        )
    }

    /// What the digest is over: how the server is reached, as written. Each
    /// part follows a tag that says how many parts belong together, so that no
    /// two definitions give the same parts.
    fn digest_parts(&self) -> Vec<&'a [u8]> {
        let mut parts: Vec<&'a [u8]> = Vec::with_capacity(16);
        for (tag, said) in [("command", &self.command), ("url", &self.url), ("cwd", &self.cwd)] {
            if let Some(said) = said {
                parts.extend([tag.as_bytes(), said.text.as_bytes()]);
            }
        }
        parts.extend(self.args.iter().flat_map(|a| [b"arg".as_slice(), a.text.as_bytes()]));
        if self.options.inherit_env.is_some() {
            parts.extend(
                std::iter::once(b"inherit".as_slice()).chain(self.inherit.iter().map(|p| p.text.as_bytes())),
            );
        }
        parts.extend(self.oauth.digest_parts());
        if let Some(protocol) = &self.protocol {
            parts.extend([b"protocol".as_slice(), protocol.text.as_bytes()]);
        }
        for (tag, list) in [("env", &self.env), ("header", &self.headers)] {
            let mut sorted: Vec<(&'a str, &'a str)> = list.iter().map(|(k, v)| (*k, v.text)).collect();
            sorted.sort_unstable();
            parts.extend(sorted.into_iter().flat_map(|(k, v)| [tag.as_bytes(), k.as_bytes(), v.as_bytes()]));
        }
        parts
    }

    /// Expands variables and resolves relative paths. A definition that depends
    /// on its file's directory has the directory in its digest.
    fn transport(
        self,
        name: &str,
        place: &Place<'a>,
        digest: &mut Vec<&'a [u8]>,
    ) -> Result<Transport, Fault> {
        let fill = |said: &Said, field: &dyn Fn() -> String| {
            expand(said.text, place.env).map_err(|what| (said.at, format!("{}: {what}", field())))
        };
        let fill_pairs = |field: &str, pairs: &[(&str, Said)]| {
            let each = pairs.iter().map(|(k, v)| {
                let value = fill(v, &|| format!("{field}.{k}"))?;
                Ok(((*k).to_owned(), value))
            });
            each.collect::<Result<Vec<_>, Fault>>()
        };
        if let Some(said) = self.url {
            let url = fill(&said, &|| "url".into())?;
            check_url(&url).map_err(|what| (said.at, format!("url: {what}")))?;
            let headers = fill_pairs("headers", &self.headers)?;
            for ((name, value), (_, said)) in headers.iter().zip(&self.headers) {
                check_header(name, value).map_err(|what| (said.at, format!("headers.{name}: {what}")))?;
            }
            return Ok(Transport::Http { url, headers });
        }
        let mut relative = false;
        let anchor = |path: &str, relative: &mut bool| {
            *relative |= !path.starts_with('/');
            place.base.join(path)
        };
        let mut command = String::new();
        if let Some(said) = self.command {
            command = fill(&said, &|| "command".into())?;
            if command.trim().is_empty() {
                return Err((said.at, "command: is empty".into()));
            }
            if command.contains('/') {
                command = anchor(&command, &mut relative).to_string_lossy().into_owned();
            }
        }
        let mut args = Vec::with_capacity(self.args.len());
        for (i, said) in self.args.iter().enumerate() {
            args.push(fill(said, &|| format!("args[{i}]"))?);
        }
        let mut env = fill_pairs("env", &self.env)?;
        if let Some(declared) = self.declared {
            let ready = declared.ready(name, place.base, place.env)?;
            (command, args) = (ready.command, ready.args);
            env.extend(ready.env);
            relative |= ready.relative;
        }
        let cwd = match self.cwd {
            Some(said) => Some(anchor(&fill(&said, &|| "cwd".into())?, &mut relative)),
            None => None,
        };
        if relative {
            digest.extend([b"base".as_slice(), place.base.as_os_str().as_encoded_bytes()]);
        }
        Ok(Transport::Stdio { command, args, env, cwd })
    }
}
