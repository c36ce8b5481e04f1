//! Where values come from: the files, variables, presets, flags and runtime
//! overrides that a resolution is given, and the source that each value keeps.

use crate::error::{Error, Kind};
use crate::util::Env;
use serde_json::{Map, Value};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A place in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct At {
    /// The line, counted from 1; 0 when unknown.
    pub line: u32,
    /// The character in it, counted from 1; 0 when unknown.
    pub column: u32,
}

impl fmt::Display for At {
    /// `line:column`, or the line alone where the column is unknown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.column {
            0 => write!(f, "{}", self.line),
            column => write!(f, "{}:{column}", self.line),
        }
    }
}

/// The place of each value of a JSON document, in a tree of the same shape:
/// the children of an object are in the order of its map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// Where the value's key is (the value itself, in a list).
    pub at: At,
    /// The lines of the members or elements.
    pub children: Vec<Lines>,
}

impl Lines {
    /// The lines of one member of `map`, which these lines belong to.
    pub fn member(&self, map: &Map<String, Value>, key: &str) -> Option<&Lines> {
        self.children.get(map.keys().position(|k| k == key)?)
    }
}

/// One configuration file, read.
#[derive(Clone, Debug, Default)]
pub struct FileLayer {
    /// The file's path, links resolved.
    pub path: Arc<PathBuf>,
    /// Its top-level object, without the servers.
    pub values: Map<String, Value>,
    /// The lines of `values`.
    pub lines: Lines,
    /// Whether it is another host's file (`.mcp.json`), whose other top-level keys are not ours to judge.
    pub foreign: bool,
}

impl FileLayer {
    /// The place of the member that a path of keys leads to, or of the last one that exists.
    pub fn at(&self, path: &[&str]) -> At {
        let (mut lines, mut map) = (&self.lines, Some(&self.values));
        for key in path {
            let Some((inner, child)) = map.and_then(|m| Some((m.get(*key)?, lines.member(m, key)?))) else {
                break;
            };
            (lines, map) = (child, inner.as_object());
        }
        lines.at
    }
    /// The directory that relative paths in the file are taken from: the
    /// file's own, or, for `.mcpx/config.json`, the one that holds `.mcpx`.
    pub fn base(&self) -> &Path {
        base_of(&self.path)
    }
}

/// See [`FileLayer::base`].
pub fn base_of(path: &Path) -> &Path {
    let dir = path.parent().unwrap_or(Path::new("/"));
    if dir.file_name().is_some_and(|n| n == ".mcpx") { dir.parent().unwrap_or(dir) } else { dir }
}

/// A flag of the command line that sets a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlagValue {
    /// The setting's key.
    pub key: String,
    /// The value as typed; `true` for a bool's bare flag.
    pub text: String,
    /// The flag as typed, with dashes, without the value: `--timeout`.
    pub spelled: String,
}

/// A flag that a preset supplies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PresetFlag {
    /// The preset's name.
    pub preset: String,
    /// The flag, with dashes, without the value.
    pub flag: String,
    /// The value; absent for a bare flag.
    pub value: Option<String>,
    /// The setting that it sets for the running command; none for a flag of the command's own.
    pub key: Option<&'static str>,
    /// It is the `--no-` form.
    pub negated: bool,
    /// The file that defines the preset.
    pub path: Arc<PathBuf>,
    /// Where the entry is.
    pub at: At,
}

impl PresetFlag {
    /// An error about this entry.
    pub fn fault(&self, message: impl fmt::Display) -> Error {
        let (path, at) = (self.path.display(), self.at);
        let message = format!("{path}:{at}: preset \"{}\": {}: {message}", self.preset, self.flag);
        Error::new(Kind::Config, message)
    }
}

/// A value set while the daemon runs, or sent along with one call.
#[derive(Clone, Debug, PartialEq)]
pub struct RuntimeValue {
    /// The setting's key.
    pub key: String,
    /// The value, in the syntax of a configuration file.
    pub value: Value,
}

/// All that a resolution takes into account; a later field outranks an earlier one.
#[derive(Clone, Debug)]
pub struct Layers<'a> {
    /// Configuration files, the nearest last.
    pub files: Vec<FileLayer>,
    /// The environment.
    pub env: &'a Env,
    /// What presets supply, in the order in which they apply.
    pub presets: Vec<PresetFlag>,
    /// The command line, in its order.
    pub flags: Vec<FlagValue>,
    /// Overrides of a running daemon, in their order.
    pub runtime: Vec<RuntimeValue>,
    /// The directory that relative paths in variables and flags are taken
    /// from; without it they stay relative.
    pub dir: Option<PathBuf>,
}

impl<'a> Layers<'a> {
    /// Layers with an environment and nothing else.
    pub fn new(env: &'a Env) -> Layers<'a> {
        let (files, presets, flags, runtime) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Layers { files, env, presets, flags, runtime, dir: None }
    }
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// `defaults.json`.
    Default,
    /// A configuration file, and the line in it.
    File(Arc<PathBuf>, u32),
    /// A variable.
    Env(String),
    /// A preset, and the flag in it.
    Preset(String, String),
    /// A flag, as typed.
    Flag(String),
    /// An override of a running daemon.
    Runtime,
}

impl fmt::Display for Source {
    /// `default`, `/p/.mcpx.json:12`, `MCPX_POOL_MAX`, `preset:ci (--log-level)`, `--pool-max`, `runtime`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Default => f.write_str("default"),
            Source::File(path, line) => write!(f, "{}:{line}", path.display()),
            Source::Env(name) => f.write_str(name),
            Source::Preset(preset, flag) => write!(f, "preset:{preset} ({flag})"),
            Source::Flag(flag) => f.write_str(flag),
            Source::Runtime => f.write_str("runtime"),
        }
    }
}
