//! One server's definition: its fields in a configuration file, what they mean,
//! and what makes a definition unusable. A fault here is that server's own
//! problem: it never keeps the file's other servers from working.

use super::expand::expand;
use crate::error::{Error, Kind};
use crate::settings::{self, FromVal, Lines};
use crate::util::{self, Env};
use serde_json::Value;
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
    /// Instead of `pool.max`.
    pub max: Option<usize>,
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
    /// are expanded. Neither `options` nor the description is part of it: to
    /// change those restarts nothing.
    pub digest: String,
    /// Why the definition cannot be used.
    pub problem: Option<Error>,
}

/// What a block in a file turned out to be.
pub(super) enum Block {
    /// A definition.
    Server(Box<ServerDef>),
    /// No definition, only a switch over the one in a file further away.
    Switch(bool),
}

/// Where a block stands.
pub(super) struct Place<'a> {
    pub path: &'a Arc<PathBuf>,
    pub base: &'a Path,
    pub env: &'a Env,
}

/// A text, and the line that it is on.
struct Said {
    text: String,
    line: u32,
}

/// What is wrong with a block, and in which line.
type Fault = (u32, String);

/// A block's fields, as they are written.
#[derive(Default)]
struct Fields {
    command: Option<Said>,
    args: Vec<Said>,
    env: Vec<(String, Said)>,
    cwd: Option<Said>,
    url: Option<Said>,
    headers: Vec<(String, Said)>,
    enabled: Option<bool>,
    description: Option<String>,
    options: ServerOptions,
    own: Own,
}

/// What the `"mcpx"` block says of the same things as the block around it; it comes first.
#[derive(Default)]
struct Own {
    enabled: Option<bool>,
    description: Option<String>,
}

/// Reads a server's block. Never fails: what is wrong becomes the server's problem.
pub(super) fn read(name: String, block: Value, lines: &Lines, place: &Place) -> Block {
    let mut fields = Fields::default();
    let mut fault: Option<Fault> = None;
    if name.trim().is_empty() {
        fault = Some((lines.line, "its name is empty".into()));
    }
    match block {
        Value::Object(map) => {
            for ((key, value), lines) in map.into_iter().zip(&lines.children) {
                if let Err(found) = fields.take(&key, value, lines) {
                    fault.get_or_insert(found);
                }
            }
        }
        other => {
            let what = format!("its definition must be an object, not {}", settings::shape(&other));
            fault.get_or_insert((lines.line, what));
        }
    }
    let switch = fields.own.enabled.or(fields.enabled);
    if let (None, None, None, Some(on)) = (&fields.command, &fields.url, &fault, switch) {
        return Block::Switch(on);
    }
    if fault.is_none() {
        let what = match (&fields.command, &fields.url) {
            (None, None) => Some("has neither \"command\" nor \"url\""),
            (Some(_), Some(_)) => Some("has both \"command\" and \"url\"; keep one"),
            _ => None,
        };
        fault = what.map(|what| (lines.line, what.into()));
    }
    let mut digest = fields.digest_parts();
    let description = fields.own.description.take().or(fields.description.take());
    let options = std::mem::take(&mut fields.options);
    let transport = fields.transport(place, &mut digest).unwrap_or_else(|found| {
        fault.get_or_insert(found);
        Transport::Stdio { command: String::new(), args: Vec::new(), env: Vec::new(), cwd: None }
    });
    let problem = fault.map(|(line, what)| {
        let message = format!("{}:{line}: server \"{name}\": {what}", place.path.display());
        Error::new(Kind::Config, message).server(&name)
    });
    Block::Server(Box::new(ServerDef {
        transport,
        enabled: switch.unwrap_or(true),
        description,
        options,
        source: place.path.clone(),
        line: lines.line,
        digest: util::digest(digest.iter().map(Vec::as_slice), 16),
        problem,
        name,
    }))
}

impl Fields {
    /// Takes one member of the block. Members that only other hosts know are passed over.
    fn take(&mut self, key: &str, value: Value, lines: &Lines) -> Result<(), Fault> {
        let line = lines.line;
        match key {
            "command" => self.command = Some(said(key, value, line)?),
            "args" => self.args = texts(key, value, lines)?,
            "env" => self.env = pairs(key, value, lines)?,
            "cwd" => self.cwd = Some(said(key, value, line)?),
            "url" | "serverUrl" | "httpUrl" => {
                let url = said(key, value, line)?;
                if self.url.as_ref().is_some_and(|first| first.text != url.text) {
                    return Err((line, format!("{key}: another field already gives another address")));
                }
                self.url = Some(url);
            }
            "headers" => self.headers = pairs(key, value, lines)?,
            "description" => self.description = Some(text(key, value, line)?),
            "enabled" | "disabled" => {
                let on = flag(key, value, line)? == (key == "enabled");
                if self.enabled.is_some_and(|first| first != on) {
                    return Err((line, "\"enabled\" and \"disabled\" contradict each other".into()));
                }
                self.enabled = Some(on);
            }
            "mcpx" => self.own(value, lines)?,
            _ => {}
        }
        Ok(())
    }

    /// Reads the `"mcpx"` block, in which an unknown key is an error.
    fn own(&mut self, value: Value, lines: &Lines) -> Result<(), Fault> {
        let Value::Object(map) = value else {
            return Err((lines.line, format!("mcpx: expected an object, got {}", settings::shape(&value))));
        };
        for ((key, value), lines) in map.into_iter().zip(&lines.children) {
            let line = lines.line;
            let field = format!("mcpx.{key}");
            // The values are of the kind of the setting that they stand in for.
            let parse = |setting: &dyn settings::Declared| {
                setting.kind().parse_json(&value).map_err(|what| (line, format!("{field}: {what}")))
            };
            let own = &mut self.options;
            match key.as_str() {
                "scope" => own.scope = String::from_val(&parse(&settings::POOL_SCOPE)?),
                "sharing" => own.sharing = String::from_val(&parse(&settings::POOL_SHARING)?),
                "startTimeout" => {
                    own.start_timeout = Duration::from_val(&parse(&settings::POOL_START_TIMEOUT)?);
                }
                "callTimeout" => {
                    own.call_timeout = Duration::from_val(&parse(&settings::POOL_CALL_TIMEOUT)?);
                }
                "idleTimeout" => {
                    own.idle_timeout = Duration::from_val(&parse(&settings::POOL_IDLE_TIMEOUT)?);
                }
                "max" => {
                    let max = i64::from_val(&parse(&settings::POOL_MAX)?);
                    own.max = max.and_then(|m| usize::try_from(m).ok());
                }
                "description" => self.own.description = Some(text(&field, value, line)?),
                "enabled" => self.own.enabled = Some(flag(&field, value, line)?),
                _ => {
                    let near = util::did_you_mean(&key, OPTIONS.iter().copied());
                    let near = near.map(|n| format!("; {n}")).unwrap_or_default();
                    return Err((line, format!("mcpx: unknown key \"{key}\"{near}")));
                }
            }
        }
        Ok(())
    }

    /// What the digest is over: how the server is reached, as written.
    fn digest_parts(&self) -> Vec<Vec<u8>> {
        let mut parts: Vec<Vec<u8>> = Vec::new();
        let mut one = |tag: &str, said: &Option<Said>| {
            if let Some(said) = said {
                parts.push(tag.into());
                parts.push(said.text.clone().into());
            }
        };
        one("command", &self.command);
        one("url", &self.url);
        one("cwd", &self.cwd);
        parts.push("args".into());
        parts.extend(self.args.iter().map(|a| a.text.clone().into()));
        for (tag, list) in [("env", &self.env), ("headers", &self.headers)] {
            parts.push(tag.into());
            let mut sorted: Vec<(&String, &String)> = list.iter().map(|(k, v)| (k, &v.text)).collect();
            sorted.sort();
            for (key, value) in sorted {
                parts.push(key.clone().into());
                parts.push(value.clone().into());
            }
        }
        parts
    }

    /// Expands variables and resolves relative paths. A definition that depends
    /// on its file's directory has the directory in its digest.
    fn transport(self, place: &Place, digest: &mut Vec<Vec<u8>>) -> Result<Transport, Fault> {
        let fill = |field: &str, said: Said| {
            expand(&said.text, place.env).map_err(|what| (said.line, format!("{field}: {what}")))
        };
        let fill_pairs = |field: &str, pairs: Vec<(String, Said)>| {
            let each = pairs.into_iter().map(|(k, v)| {
                let value = fill(&format!("{field}.{k}"), v)?;
                Ok((k, value))
            });
            each.collect::<Result<Vec<_>, Fault>>()
        };
        if let Some(said) = self.url {
            let line = said.line;
            let url = fill("url", said)?;
            check_url(&url).map_err(|what| (line, format!("url: {what}")))?;
            let lines: Vec<u32> = self.headers.iter().map(|(_, v)| v.line).collect();
            let headers = fill_pairs("headers", self.headers)?;
            for ((name, value), line) in headers.iter().zip(lines) {
                check_header(name, value).map_err(|what| (line, format!("headers.{name}: {what}")))?;
            }
            return Ok(Transport::Http { url, headers });
        }
        let mut relative = false;
        let mut anchor = |path: &str| {
            relative |= !path.starts_with('/');
            place.base.join(path)
        };
        let mut command = String::new();
        if let Some(said) = self.command {
            let line = said.line;
            command = fill("command", said)?;
            if command.trim().is_empty() {
                return Err((line, "command: is empty".into()));
            }
            if command.contains('/') {
                command = anchor(&command).to_string_lossy().into_owned();
            }
        }
        let mut args = Vec::with_capacity(self.args.len());
        for (i, said) in self.args.into_iter().enumerate() {
            args.push(fill(&format!("args[{i}]"), said)?);
        }
        let env = fill_pairs("env", self.env)?;
        let cwd = match self.cwd {
            Some(said) => Some(anchor(&fill("cwd", said)?)),
            None => None,
        };
        if relative {
            digest.push(place.base.as_os_str().as_encoded_bytes().to_vec());
        }
        Ok(Transport::Stdio { command, args, env, cwd })
    }
}

/// The keys of an `"mcpx"` block.
pub(super) const OPTIONS: &[&str] =
    &["callTimeout", "description", "enabled", "idleTimeout", "max", "scope", "sharing", "startTimeout"];

fn text(field: &str, value: Value, line: u32) -> Result<String, Fault> {
    match value {
        Value::String(text) if text.contains('\0') => {
            Err((line, format!("{field}: must not contain a NUL character")))
        }
        Value::String(text) => Ok(text),
        Value::Array(_) if field == "command" => {
            Err((line, "command: expected a text, got a list; put what follows into \"args\"".into()))
        }
        other => Err((line, format!("{field}: expected a text, got {}", settings::shape(&other)))),
    }
}

fn said(field: &str, value: Value, line: u32) -> Result<Said, Fault> {
    Ok(Said { text: text(field, value, line)?, line })
}

fn flag(field: &str, value: Value, line: u32) -> Result<bool, Fault> {
    match value {
        Value::Bool(on) => Ok(on),
        other => Err((line, format!("{field}: expected true or false, got {}", settings::shape(&other)))),
    }
}

fn texts(field: &str, value: Value, lines: &Lines) -> Result<Vec<Said>, Fault> {
    let Value::Array(list) = value else {
        return Err((lines.line, format!("{field}: expected a list, got {}", settings::shape(&value))));
    };
    let each = list.into_iter().zip(&lines.children).enumerate();
    each.map(|(i, (value, lines))| match value {
        // A text needs no field name unless it is wrong: this is the common way.
        Value::String(text) if !text.contains('\0') => Ok(Said { text, line: lines.line }),
        other => said(&format!("{field}[{i}]"), other, lines.line),
    })
    .collect()
}

fn pairs(field: &str, value: Value, lines: &Lines) -> Result<Vec<(String, Said)>, Fault> {
    let Value::Object(map) = value else {
        return Err((lines.line, format!("{field}: expected an object, got {}", settings::shape(&value))));
    };
    let each = map.into_iter().zip(&lines.children);
    each.map(|((key, value), lines)| {
        if key.is_empty() || key.contains(['=', '\0']) {
            return Err((lines.line, format!("{field}: \"{}\" cannot be a name", key.escape_debug())));
        }
        let said = said(&format!("{field}.{key}"), value, lines.line)?;
        Ok((key, said))
    })
    .collect()
}

fn check_url(url: &str) -> Result<(), String> {
    let lower = url.to_ascii_lowercase();
    let rest = lower.strip_prefix("http://").or_else(|| lower.strip_prefix("https://"));
    match rest {
        None => Err("must begin with http:// or https://".into()),
        Some(rest) if rest.is_empty() || rest.starts_with(['/', '?', '#', ':']) => {
            Err("names no host".into())
        }
        Some(_) if url.chars().any(|c| c.is_whitespace() || c.is_control()) => {
            Err("must not contain spaces or control characters".into())
        }
        Some(_) => Ok(()),
    }
}

/// Checks a header against RFC 9110 (a name is a token; a value has no control characters).
fn check_header(name: &str, value: &str) -> Result<(), String> {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if !name.bytes().all(token) {
        return Err("is no name of a header".into());
    }
    if value.chars().any(|c| c.is_control() && c != '\t') {
        return Err("its value must be one line, without control characters".into());
    }
    Ok(())
}
