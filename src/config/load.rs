//! Reads the configuration's files and puts them together: the nearest file
//! wins a server by name. Each file is read and parsed once.

use super::jsonc;
use super::node::{Item, Node};
use super::odd;
use super::patch::Patch;
use super::search::search_path;
use super::server::{self, Block, Place, ServerDef};
use crate::error::{Error, Kind, Result, system_words};
use crate::paths::Dirs;
use crate::settings::{self, FileLayer, Layers};
use crate::util::{self, Env};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The largest file that is read: far beyond any real configuration, and
/// small enough that a mistaken path cannot exhaust the memory.
pub(super) const MAX_FILE: u64 = 16 << 20;

/// What to load.
pub struct LoadOptions<'a> {
    /// The one file to read (`--config`); without it `MCPX_CONFIG`, else the search path.
    pub explicit: Option<PathBuf>,
    /// The working directory: the search goes upward from here.
    pub dir: &'a Path,
    /// The environment, for `MCPX_CONFIG` and for variables in definitions.
    pub env: &'a Env,
    /// The user's directories.
    pub dirs: &'a Dirs,
    /// The user: a file that belongs to somebody else, or that others may write, is refused.
    pub uid: u32,
}

/// One file that contributed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Its path, links resolved.
    pub path: PathBuf,
    /// SHA-256 of its bytes, in hexadecimal.
    pub digest: String,
}

/// The configuration in force.
#[derive(Clone, Debug)]
pub struct Config {
    /// The files that contributed, the nearest first.
    pub sources: Vec<SourceFile>,
    /// The daemon's key: 16 hexadecimal digits over every file's path and bytes.
    pub key: String,
    /// The servers, the nearest file's first; those that are switched off or have a problem included.
    pub servers: Vec<Arc<ServerDef>>,
    /// 16 hexadecimal digits over the names and digests of the servers that are switched on.
    pub servers_digest: String,
    /// The files' settings, the nearest last.
    pub layers: Vec<FileLayer>,
    /// What is odd about the files, a line each: unknown keys, keys given twice.
    pub warnings: Vec<String>,
}

impl Config {
    /// The server of this exact name.
    pub fn server(&self, name: &str) -> Option<&Arc<ServerDef>> {
        self.servers.iter().find(|s| s.name == name)
    }
    /// The nearest file; none when the configuration is empty.
    pub fn path(&self) -> Option<&Path> {
        self.sources.first().map(|s| s.path.as_path())
    }
    /// The files and an environment as layers of settings, without presets, flags and overrides.
    pub fn settings_layers<'a>(&self, env: &'a Env) -> Layers<'a> {
        Layers { files: self.layers.clone(), ..Layers::new(env) }
    }
}

/// Loads the configuration. No file at all is an empty configuration, unless one was named.
///
/// # Errors
/// `Config` when a file cannot be read or parsed, or the named one is missing;
/// `Refused` when a file is not the user's own. A bad server is no error here: see `ServerDef::problem`.
pub fn load(options: &LoadOptions) -> Result<Config> {
    let mut loading = Loading::default();
    loading.all(options)?;
    Ok(loading.finish(options.dirs))
}

/// As [`load`], but goes on after a fault: the configuration as far as it can be read, and
/// every fault of its files.
pub fn survey(options: &LoadOptions) -> (Config, Vec<Error>) {
    let mut loading = Loading { collected: Some(Vec::new()), ..Loading::default() };
    let ended = loading.all(options).err();
    let mut faults = loading.collected.take().unwrap_or_default();
    faults.extend(ended);
    (loading.finish(options.dirs), faults)
}

/// The files that [`load`] would read, links resolved, the nearest first. Opens none of
/// them: which daemon serves them can be told when their content can't be read.
pub fn existing(options: &LoadOptions) -> Vec<PathBuf> {
    let variable = options.env.get("MCPX_CONFIG").filter(|v| !v.is_empty());
    let named = options.explicit.clone().or_else(|| variable.map(PathBuf::from));
    let paths = match named {
        Some(path) => vec![options.dir.join(path)],
        None => search_path(options.dir, options.dirs),
    };
    paths.iter().filter_map(|p| p.canonicalize().ok()).filter(|p| p.is_file()).collect()
}

/// Reads exactly these files again, whatever else may have appeared along the
/// search path since: what a daemon does, which serves a set of files.
///
/// # Errors
/// As [`load`]; `Config` also when one of them is gone.
pub fn reload(sources: &[SourceFile], options: &LoadOptions) -> Result<Config> {
    let mut loading = Loading::default();
    for source in sources {
        if !loading.file(&source.path, options, false)? {
            let message = format!("the configuration file {} is gone", source.path.display());
            return Err(Error::new(Kind::Config, message));
        }
    }
    Ok(loading.finish(options.dirs))
}

/// An object's members.
type Members<'a> = Vec<(Cow<'a, str>, Node<'a>)>;

#[derive(Default)]
struct Loading {
    sources: Vec<SourceFile>,
    /// By name: where in `servers`, or how a nearer file switched it before any defined it.
    names: HashMap<String, Named>,
    servers: Vec<ServerDef>,
    /// The nearest first, until the end.
    layers: Vec<FileLayer>,
    warnings: Vec<String>,
    /// What is wrong with files, where that is not to end the loading.
    collected: Option<Vec<Error>>,
}

enum Named {
    Defined,
    /// Changed by nearer files.
    Patched(Box<Patch>),
}

impl Loading {
    /// Reads the file that was named, else those of the search path.
    fn all(&mut self, options: &LoadOptions) -> Result<()> {
        let variable = options.env.get("MCPX_CONFIG").filter(|v| !v.is_empty());
        let Some(path) = options.explicit.clone().or_else(|| variable.map(PathBuf::from)) else {
            for path in search_path(options.dir, options.dirs) {
                self.file(&path, options, true).map(drop).or_else(|e| self.fault(e))?;
            }
            return Ok(());
        };
        let path = options.dir.join(path);
        if self.file(&path, options, false)? {
            return Ok(());
        }
        let message = format!("there is no configuration file {}", path.display());
        Err(Error::new(Kind::Config, message)
            .hint("it was named by --config or MCPX_CONFIG; correct that, or write the file with mcpx init"))
    }

    /// Keeps a fault where faults are collected; else gives it back.
    fn fault(&mut self, e: Error) -> Result<()> {
        match &mut self.collected {
            Some(faults) => {
                faults.push(e);
                Ok(())
            }
            None => Err(e),
        }
    }

    /// Says that files may be hidden here or above, once. Of the user's own directory nothing is
    /// said, as of git's: a service often has somebody else's HOME.
    fn hidden(&mut self, dir: &Path, options: &LoadOptions) {
        let here = options.dir.canonicalize().unwrap_or_else(|_| options.dir.to_owned());
        let project = if dir.ends_with(".mcpx") { dir.parent().unwrap_or(dir) } else { dir };
        let warning = format!(
            "{} may not be looked into: a configuration in it or below is passed over",
            dir.display()
        );
        if here.starts_with(project) && !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Reads one file; `false` when there is none. One that is only `looked_for` may be hidden.
    fn file(&mut self, path: &Path, options: &LoadOptions, looked_for: bool) -> Result<bool> {
        let bytes = match read(path, options.uid, looked_for)? {
            Found::File(bytes) => bytes,
            Found::Nothing => return Ok(false),
            Found::Behind(dir) => {
                self.hidden(&dir, options);
                return Ok(false);
            }
        };
        let real = Arc::new(path.canonicalize().unwrap_or_else(|_| path.to_owned()));
        // Two names of the search path may be links to one file.
        if self.sources.iter().any(|s| s.path == *real) {
            return Ok(true);
        }
        let text = std::str::from_utf8(&bytes).map_err(|e| {
            let line = bytes[..e.valid_up_to()].iter().filter(|b| **b == b'\n').count() + 1;
            Error::new(Kind::Config, format!("{}:{line}: the file is not valid UTF-8", real.display()))
        })?;
        let document = jsonc::tree(text, &real)?;
        self.sources
            .push(SourceFile { path: real.as_ref().clone(), digest: util::digest([bytes.as_slice()], 64) });
        let at = document.root.at;
        let Item::Object(mut members) = document.root.item else {
            let what = document.root.shape();
            let message = format!("{}: a configuration must be an object, not {what}", real.display());
            return Err(Error::new(Kind::Config, message));
        };
        for (key, at) in document.duplicates {
            let place = real.display();
            self.warnings.push(format!("{place}:{at}: \"{key}\" is given twice; the last one counts"));
        }
        let servers = self.take_servers(&mut members, &real)?;
        let rest = Node { item: Item::Object(members), at };
        let foreign = path.file_name().is_some_and(|n| n == ".mcp.json");
        let Value::Object(values) = rest.to_value() else { return Ok(true) };
        let layer = FileLayer { path: real, values, lines: rest.lines(), foreign };
        self.servers(servers, &layer, options.env);
        self.warnings.extend(settings::unknown_keys(&layer));
        self.layers.push(layer);
        Ok(true)
    }

    /// Moves the servers out of a file's object.
    fn take_servers<'a>(&mut self, members: &mut Members<'a>, path: &Path) -> Result<Members<'a>> {
        let place = path.display();
        let position = |members: &Members, wanted: &str| members.iter().position(|(key, _)| key == wanted);
        // `servers` is another host's name for the same object.
        let (ours, theirs) = (position(members, "mcpServers"), position(members, "servers"));
        if let (Some(_), Some(theirs)) = (ours, theirs) {
            let at = members[theirs].1.at;
            self.warnings.push(format!("{place}:{at}: \"servers\" is ignored beside \"mcpServers\""));
        }
        let Some(index) = ours.or(theirs) else { return Ok(Members::new()) };
        let (key, node) = members.remove(index);
        let (at, what) = (node.at, node.shape());
        match node.item {
            Item::Object(servers) => Ok(servers),
            _ => {
                let message = format!("{place}:{at}: \"{key}\" must be an object, not {what}");
                self.fault(Error::new(Kind::Config, message)).map(|()| Members::new())
            }
        }
    }

    /// Takes in the servers of a file, as far as no nearer one has them.
    fn servers(&mut self, servers: Members, layer: &FileLayer, env: &Env) {
        let place = Place { path: &layer.path, base: layer.base(), env };
        self.servers.reserve(servers.len());
        for (name, block) in servers {
            if matches!(self.names.get(name.as_ref()), Some(Named::Defined)) {
                continue;
            }
            let name = name.into_owned();
            let file = layer.path.display();
            self.warnings.extend(odd::members(&name, &block).iter().map(|line| format!("{file}:{line}")));
            match server::read(&name, &block, &place) {
                Block::Patch(patch) => match self.names.get_mut(&name) {
                    Some(Named::Patched(nearer)) => nearer.over(*patch),
                    _ => drop(self.names.insert(name, Named::Patched(patch))),
                },
                Block::Server(mut def) => {
                    if let Some(Named::Patched(patch)) = self.names.insert(name, Named::Defined) {
                        patch.apply(&mut def);
                    }
                    self.servers.push(*def);
                }
            }
        }
    }

    /// A server that is changed, and not switched off, but defined nowhere is shown with its problem.
    fn undefined(&mut self) {
        let mut missing: Vec<ServerDef> = Vec::new();
        for (name, named) in self.names.drain() {
            if let Named::Patched(patch) = named
                && patch.enabled != Some(false)
                && let Some((path, line)) = patch.place
            {
                missing.push(server::undefined(name, path, line));
            }
        }
        missing.sort_by(|a, b| a.name.cmp(&b.name));
        self.servers.extend(missing);
    }

    /// Completes the aliases, which may name a server of any file.
    fn aliases(&mut self) {
        for at in 0..self.servers.len() {
            let Some(of) = self.servers[at].alias_of.clone() else { continue };
            let mut alias = self.servers[at].clone();
            let others = || self.servers.iter().filter(|s| s.name != alias.name);
            let found = others().find(|s| s.name == of);
            let near = || util::did_you_mean(&of, others().map(|s| s.name.as_str()));
            let found = found.ok_or_else(near);
            alias.complete(found);
            self.servers[at] = alias;
        }
    }

    fn finish(mut self, dirs: &Dirs) -> Config {
        self.undefined();
        self.aliases();
        let key = if self.sources.is_empty() {
            // Nothing contributed: the place where the user's file would be tells users apart.
            let place = dirs.config.as_deref().unwrap_or(Path::new(""));
            util::digest([&b""[..], place.as_os_str().as_encoded_bytes()], 16)
        } else {
            let parts = self
                .sources
                .iter()
                .flat_map(|s| [s.path.as_os_str().as_encoded_bytes(), s.digest.as_bytes()]);
            // A document that a server is made of is as good as a part of the file.
            let described = self.servers.iter().filter(|s| s.document.is_some());
            util::digest(parts.chain(described.map(|s| s.digest.as_bytes())), 16)
        };
        let mut on: Vec<&ServerDef> = self.servers.iter().filter(|s| s.enabled).collect();
        on.sort_by(|a, b| a.name.cmp(&b.name));
        let servers_digest =
            util::digest(on.iter().flat_map(|s| [s.name.as_bytes(), s.digest.as_bytes()]), 16);
        self.layers.reverse();
        Config {
            sources: self.sources,
            key,
            servers: self.servers.into_iter().map(Arc::new).collect(),
            servers_digest,
            layers: self.layers,
            warnings: self.warnings,
        }
    }
}

/// What is at a path.
enum Found {
    /// No file.
    Nothing,
    /// A directory that may not be looked into, and behind it perhaps a file.
    Behind(PathBuf),
    /// A file, and its bytes.
    File(Vec<u8>),
}

/// The directory on the way to a path that may not be looked into; the first, from the root.
fn closed(path: &Path) -> Option<PathBuf> {
    let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
    above.reverse();
    let denied = |dir: &&&Path| {
        fs::symlink_metadata(dir.join(".")).is_err_and(|e| e.kind() == ErrorKind::PermissionDenied)
    };
    above.iter().find(denied).map(|dir| dir.to_path_buf())
}

/// What a file holds. One that is only looked for may be hidden.
fn read(path: &Path, uid: u32, looked_for: bool) -> Result<Found> {
    let fail = |kind: Kind, what: String| {
        Error::new(kind, format!("reading the configuration file {}: {what}", path.display()))
    };
    // Without O_NONBLOCK a named pipe in place of the file would wait for a writer.
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC).open(path);
    let file: File = match opened {
        Ok(file) => file,
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Found::Nothing);
        }
        // Whether there is one behind a directory that we may not look into nobody can tell.
        Err(e) if looked_for && e.kind() == ErrorKind::PermissionDenied => match closed(path) {
            Some(dir) => return Ok(Found::Behind(dir)),
            None => return Err(fail(Kind::Config, system_words(&e))),
        },
        Err(e) => return Err(fail(Kind::Config, system_words(&e))),
    };
    let meta = file.metadata().map_err(|e| fail(Kind::Config, system_words(&e)))?;
    if meta.is_dir() {
        return Err(fail(Kind::Config, "it is a directory".into()));
    }
    if !meta.is_file() {
        return Err(fail(Kind::Config, "it is not a regular file".into()));
    }
    check_owner(path, uid, meta.uid(), meta.gid(), meta.mode())?;
    if meta.len() > MAX_FILE {
        return Err(fail(Kind::Config, format!("it is larger than {}", settings::bytes_text(MAX_FILE))));
    }
    let mut bytes = Vec::with_capacity(meta.len() as usize + 1);
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(|e| fail(Kind::Config, system_words(&e)))?;
    Ok(Found::File(bytes))
}

/// Refuses a file through which somebody else could have commands run as this user.
fn check_owner(path: &Path, uid: u32, owner: u32, group: u32, mode: u32) -> Result<()> {
    let refuse = |what: String, hint: String| {
        let message = format!("refusing the configuration file {}: {what}", path.display());
        Err(Error::new(Kind::Refused, message).hint(hint))
    };
    let shown = path.display();
    if owner != uid && owner != 0 {
        let what = format!("it belongs to user {owner}, not to you (user {uid}) or root");
        return refuse(what, format!("read it, then take it over: chown {uid} {shown}"));
    }
    if mode & 0o002 != 0 {
        return refuse("everybody may write to it".into(), format!("close it: chmod go-w {shown}"));
    }
    // A user-private group has its user's number and no other member; a umask of 002 is usual with it.
    if mode & 0o020 != 0 && group != owner {
        return refuse(format!("group {group} may write to it"), format!("close it: chmod g-w {shown}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_must_be_ours_or_roots_and_closed_to_others() {
        let path = Path::new("/f");
        for (uid, owner, group, mode, part) in [
            (1000, 1000, 1000, 0o644, None),
            (1000, 0, 0, 0o644, None),
            (1000, 1000, 1000, 0o664, None),
            (1000, 0, 0, 0o664, None),
            (1000, 1001, 1001, 0o600, Some("belongs to user 1001, not to you (user 1000)")),
            (0, 1000, 1000, 0o644, Some("belongs to user 1000, not to you (user 0)")),
            (1000, 1000, 50, 0o664, Some("group 50 may write")),
            (1000, 0, 1000, 0o664, Some("group 1000 may write")),
            (1000, 1000, 1000, 0o646, Some("everybody may write")),
        ] {
            let outcome = check_owner(path, uid, owner, group, mode);
            match part {
                None => assert!(outcome.is_ok(), "{owner} {mode:o}"),
                Some(part) => {
                    let e = outcome.unwrap_err();
                    assert_eq!(e.kind(), Kind::Refused);
                    assert!(e.message().contains(part) && e.hint_text().is_some(), "{e}");
                }
            }
        }
    }
}
