//! Where the runtimes and servers are that `tests/tools/install` brings.

use super::process::{Background, wait_until};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A JavaScript runtime that tests run scripts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    Deno,
    Bun,
    Node22,
    Node26,
    /// The machine's own node, whatever its version.
    SystemNode,
}

impl Runtime {
    /// The name that mcpx finds it under.
    pub fn name(self) -> &'static str {
        match self {
            Runtime::Deno => "deno",
            Runtime::Bun => "bun",
            _ => "node",
        }
    }
    /// The binary.
    pub fn path(self) -> PathBuf {
        match self {
            Runtime::Deno => installed("node_modules/@deno/linux-x64-glibc/deno"),
            Runtime::Bun => installed("node_modules/@oven/bun-linux-x64/bin/bun"),
            Runtime::Node22 => installed("node_modules/node22/bin/node"),
            Runtime::Node26 => installed("node_modules/node26/bin/node"),
            Runtime::SystemNode => system_node().expect("the machine has a node").0,
        }
    }
    /// Whether it runs a file of TypeScript.
    pub fn types(self) -> bool {
        match self {
            Runtime::SystemNode => system_node().is_some_and(|(_, major)| major >= 22),
            _ => true,
        }
    }
}

/// The machine's own node (18 or later) and its major version.
pub fn system_node() -> Option<(PathBuf, u32)> {
    static FOUND: OnceLock<Option<(PathBuf, u32)>> = OnceLock::new();
    FOUND
        .get_or_init(|| {
            let path = on_path("node")?;
            let output = Command::new(&path).arg("--version").output().ok()?;
            let text = String::from_utf8(output.stdout).ok()?;
            let major = text.trim().strip_prefix('v')?.split('.').next()?.parse().ok()?;
            (major >= 18).then_some((path, major))
        })
        .clone()
}

/// A program on the PATH that the tests themselves were started with.
pub fn on_path(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).map(|d| d.join(name)).find(|p| p.is_file())
}

/// A file below `tests/tools`, which must be there.
#[track_caller]
pub fn installed(below: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools").join(below);
    assert!(path.exists(), "{} is missing: run tests/tools/install (make test does)", path.display());
    path
}

/// The TypeScript compiler.
pub fn tsc() -> Command {
    let mut command = Command::new(Runtime::Node26.path());
    command.arg(installed("node_modules/typescript/bin/tsc"));
    command
}

/// A configuration block for one of the official npm servers (`everything`, `filesystem`, `memory`).
pub fn npm_server(name: &str, args: &[&str]) -> Value {
    let script = installed(&format!("node_modules/@modelcontextprotocol/server-{name}/dist/index.js"));
    let mut all = vec![json!(script)];
    all.extend(args.iter().map(|a| json!(a)));
    json!({"command": Runtime::Node26.path(), "args": all})
}

/// The everything server at a port, over `streamableHttp` or `sse`, once it accepts connections.
pub fn everything_at(port: u16, transport: &str) -> Background {
    let script = installed("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let mut command = Command::new(Runtime::Node26.path());
    command.arg(script).arg(transport).env("PORT", port.to_string());
    let server = Background::start(command);
    wait_until("the server to listen", || std::net::TcpStream::connect(("127.0.0.1", port)).ok());
    server
}

/// A configuration block for the Python server that tells the time.
pub fn time_server() -> Value {
    json!({"command": installed("venv/bin/mcp-server-time"), "args": ["--local-timezone", "Europe/Zurich"]})
}

/// A real Python; a version manager's shim on the PATH is asked for it.
pub fn python() -> PathBuf {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND
        .get_or_init(|| {
            let shim = on_path("python3").expect("python3 on the PATH");
            let output = Command::new(shim).args(["-c", "import sys; print(sys.executable)"]).output();
            let text = String::from_utf8(output.expect("python3 starts").stdout).expect("a path");
            PathBuf::from(text.trim())
        })
        .clone()
}
