//! Comparable programs, doing the same with the same server.

use crate::scene::{Scene, resident};
use crate::table::{Row, Table};
use crate::{SLOW, installed, median};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A program to compare with: how it lists tools without help, connects, calls and leaves.
struct Peer {
    name: &'static str,
    program: PathBuf,
    cold_list: Vec<String>,
    /// Makes the next listing a first one again.
    forget: Vec<String>,
    connect: Vec<String>,
    call: Vec<String>,
    leave: Vec<String>,
}

/// Lists and calls on npm's everything server, mcpx and each peer that is installed.
pub fn compare() {
    let (Some(node), Some(everything)) = (
        installed("node_modules/node26/bin/node"),
        installed("node_modules/@modelcontextprotocol/server-everything/dist/index.js"),
    ) else {
        println!("\nno comparison: run make test-tools and make bench-tools");
        return;
    };
    let block = json!({"command": node, "args": [everything, "stdio"], "lifecycle": "keep-alive"});
    let scene = Scene::new().servers(json!({"everything": block})).with("node", &node);
    scene.write("peers.json", &json!({"mcpServers": {"everything": block}}).to_string());
    let line = format!("{} {} stdio", node.display(), everything.display());

    let mut cold = Table::new("The first list of tools of server-everything (ms)");
    let mut warm = Table::new("One warm call of server-everything (ms)");
    let mut size = Table::new("RSS of what stays in the background, without the server (MB)");
    let own_cold = median(SLOW, || {
        scene.forget();
        scene.time(&["tools", "everything"])
    });
    cold.add(Row::new("mcpx", own_cold));
    let call = ["call", "everything.echo", "message=hi"];
    let own_warm = median(crate::QUICK, || scene.time(&call));
    warm.add(Row::new("mcpx", own_warm));
    let own_size = resident(scene.daemon());
    size.add(Row::new("mcpx", own_size));
    scene.stop();

    for peer in peers(&line) {
        let once = |words: &[String]| run(&scene, &peer.program, words);
        let listed = middle(|| {
            let took = once(&peer.cold_list);
            if !peer.forget.is_empty() {
                once(&peer.forget);
            }
            took
        });
        let Some(listed) = listed else {
            println!("{}: listing failed; left out", peer.name);
            continue;
        };
        cold.add(Row::new(peer.name, listed).over(own_cold));
        let before = processes();
        if !peer.connect.is_empty() && once(&peer.connect).is_none() {
            println!("{}: connecting failed; left out", peer.name);
            continue;
        }
        if let Some(called) = middle(|| once(&peer.call)) {
            warm.add(Row::new(peer.name, called).over(own_warm));
            let stayed: f64 = processes().into_iter().filter(|pid| !before.contains(pid)).map(resident).sum();
            size.add(Row::new(peer.name, stayed).over(own_size));
        }
        once(&peer.leave);
    }
    cold.print();
    warm.print();
    size.print();
}

fn peers(line: &str) -> Vec<Peer> {
    let words = |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
    let mut found = Vec::new();
    let mut add = |name, program: Option<PathBuf>, cold_list, forget, connect, call, leave| {
        if let Some(program) = program {
            found.push(Peer { name, program, cold_list, forget, connect, call, leave });
        }
    };
    let npm = |name: &str| installed(&format!("bench/node_modules/.bin/{name}"));
    add(
        "mcporter",
        npm("mcporter"),
        words("--config peers.json list everything"),
        words("--config peers.json daemon stop"),
        vec![],
        words("--config peers.json call everything.echo message=hi"),
        words("--config peers.json daemon stop"),
    );
    add(
        "mcpc",
        npm("mcpc"),
        words("connect ./peers.json:everything @list"),
        words("close @list"),
        words("connect ./peers.json:everything @ev"),
        words("@ev tools-call echo message:=hi"),
        words("clean sessions"),
    );
    add(
        "mcpdo (inspector)",
        npm("mcpdo"),
        words("--config peers.json connect everything"),
        words("daemon stop"),
        words("--config peers.json connect everything"),
        words("tools/call echo message:=hi --connection everything"),
        words("daemon stop"),
    );
    let stdio = |rest: &str| {
        let mut all = vec!["--mcp-stdio".to_owned(), line.to_owned()];
        all.extend(words(rest));
        all
    };
    add(
        "mcp2cli",
        installed("bench/venv/bin/mcp2cli"),
        stdio("--list --refresh"),
        vec![],
        stdio("--session-start ev"),
        words("--session ev echo --message hi"),
        words("--session-stop ev"),
    );
    found
}

/// Runs a peer once; none when it failed.
fn run(scene: &Scene, program: &Path, words: &[String]) -> Option<Duration> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let start = Instant::now();
    let status = scene.program(program, &words).status().ok()?;
    status.success().then(|| start.elapsed())
}

/// The median of a few runs, in ms, the first not counted; none when one failed.
fn middle(mut once: impl FnMut() -> Option<Duration>) -> Option<f64> {
    once()?;
    let all: Option<Vec<Duration>> = (0..SLOW).map(|_| once()).collect();
    let mut all: Vec<f64> = all?.into_iter().map(|d| d.as_secs_f64() * 1000.0).collect();
    all.sort_by(f64::total_cmp);
    Some(all[all.len() / 2])
}

/// Every process that runs a program of `tests/tools` and is not the server itself.
fn processes() -> Vec<u32> {
    let tools = installed("").unwrap_or_default();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| {
            let program = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            // Python runs from outside its virtual environment; its arguments tell.
            let ours = program.starts_with(&tools) || line.starts_with(tools.as_os_str().as_encoded_bytes());
            // A bridge may name the server among its arguments; the server has it as the first.
            let first = line.split(|b| *b == 0).nth(1).unwrap_or_default();
            ours && !String::from_utf8_lossy(first).ends_with("server-everything/dist/index.js")
        })
        .collect()
}
