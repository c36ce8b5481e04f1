//! Runs scripts in every JavaScript runtime that is here, against a peer that
//! speaks the channel's frames and stands for the daemon.

mod inline;
mod peer;
mod profiles;
mod transports;

use super::runtimes::{JsKind, Search, Version, version};
use super::{Faults, Fed, Link, Local, Namespace, Outcome, RunSpec, Source, execute, prepare};
use crate::paths::Dirs;
use crate::proc;
use crate::settings::{FlagValue, Layers, Settings};
use crate::util::Env;
use peer::Peer;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// A runtime under test.
#[derive(Clone, Debug)]
struct Js {
    kind: JsKind,
    bin: PathBuf,
    /// Whether it reads TypeScript.
    types: bool,
}

/// Every runtime that is here; those that are not are named on stderr.
fn runtimes() -> Vec<Js> {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools/node_modules");
    let env = Env::current();
    let settings = Settings::defaults();
    // Nowhere to keep a version, so each node is asked.
    let search =
        Search { settings: &settings, env: &env, cwd: Path::new("/"), cache: Path::new("/dev/null/none") };
    let on_path = |name: &str| proc::find_program(name.as_ref(), &env, Path::new("/")).unwrap_or_default();
    let candidates = [
        (JsKind::Deno, "deno", tools.join("@deno/linux-x64-glibc/deno")),
        (JsKind::Bun, "bun", tools.join("@oven/bun-linux-x64/bin/bun")),
        (JsKind::Node, "node on PATH", on_path("node")),
        (JsKind::Node, "node22", tools.join("node22/bin/node")),
        (JsKind::Node, "node26", tools.join("node26/bin/node")),
    ];
    let mut found = Vec::new();
    for (kind, name, bin) in candidates {
        if !bin.is_file() {
            eprintln!("skipping {name}: it is not installed (tests/tools/install installs the pinned ones)");
            continue;
        }
        let types = kind != JsKind::Node || version(&search, &bin).unwrap() >= Version::new(22, 13, 0);
        found.push(Js { kind, bin, types });
    }
    found
}

impl Js {
    fn is_deno(&self) -> bool {
        self.kind == JsKind::Deno
    }
    fn is_bun(&self) -> bool {
        self.kind == JsKind::Bun
    }
}

/// A directory with a peer in it, which is removed at the end.
struct Stage {
    dir: PathBuf,
    peer: Peer,
}

impl Stage {
    fn new(name: &str) -> Stage {
        let dir = std::env::temp_dir().join(format!("mcpx-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(dir.join("work")).unwrap();
        let peer = Peer::start(&dir.join("s.sock"));
        Stage { dir, peer }
    }

    fn work(&self) -> PathBuf {
        self.dir.join("work")
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.work().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Runs to the end, collected, and returns the outcome with its document.
    fn run(&self, js: &Js, source: Source, options: &Options) -> crate::error::Result<(Outcome, Value)> {
        let env = Env::current();
        let dirs = Dirs {
            home: None,
            config: None,
            state: self.dir.join("state"),
            cache: self.dir.join("cache"),
            runtime: self.dir.join("runtime"),
        };
        let mut layers = Layers::new(&env);
        let bin = js.bin.to_string_lossy().into_owned();
        layers.flags.push(flag("script.runtime", &bin));
        layers.flags.extend(options.settings.iter().map(|(k, v)| flag(k, v)));
        let settings = Settings::resolve(layers).unwrap();
        let spec = RunSpec {
            source,
            args: options.args.iter().map(Into::into).collect(),
            from: self.work(),
            cwd: self.work(),
            env: Vec::new(),
            capture: true,
            watched: false,
            export: None,
            bare: false,
        };
        let prepared =
            prepare(&spec, &Local { settings: &settings, env: &env, dirs: &dirs }, Faults::default())?;
        let channel = prepared.wants_channel().then(|| self.peer.channel());
        let names = ["demo", "my-server", "fetch", "log"];
        let namespaces = names
            .iter()
            .zip(["demo", "my_server", "fetch", "log_"])
            .map(|(name, ident)| Namespace { name: (*name).into(), ident: ident.into() })
            .collect();
        let mut link = Link {
            run: "run-1".into(),
            session: "s-1".into(),
            namespaces,
            socket: self.peer.socket.clone(),
            endpoint: self.peer.endpoint.clone(),
            token: "secret-token".into(),
            channel,
            ..Link::default()
        };
        if options.http_only {
            link.channel = None;
            link.socket = PathBuf::new();
        }
        let outcome = execute(prepared.plan(link), Arc::new(Mutex::new(|_: Fed| true)))?;
        let document = serde_json::from_str(&outcome.document().unwrap()).unwrap();
        Ok((outcome, document))
    }

    /// Runs inline code and returns its document.
    fn exec(&self, js: &Js, code: &str) -> Value {
        self.run(js, Source::Inline(code.into()), &Options::default()).unwrap().1
    }

    /// Runs inline code that succeeds, and returns its value.
    fn value(&self, js: &Js, code: &str) -> Value {
        let document = self.exec(js, code);
        assert_eq!(document["exitCode"], 0, "{js:?}: {code}\n{document:#}");
        document["result"].clone()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn flag(key: &str, text: &str) -> FlagValue {
    FlagValue { key: key.into(), text: text.into(), spelled: format!("--{key}") }
}

#[derive(Default)]
struct Options {
    args: Vec<&'static str>,
    settings: Vec<(&'static str, &'static str)>,
    /// Leave HTTP as the only way to the daemon.
    http_only: bool,
}
