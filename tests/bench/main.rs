//! Prints what mcpx costs: medians on this machine, beside the budgets, beside
//! the same work without mcpx, and beside comparable programs where
//! `make bench-tools` has installed them. Writes nothing outside a temporary directory,
//! unless it is told to keep the page.

// A program of the tests, not of mcpx.
#![allow(clippy::disallowed_methods)]

mod growth;
mod peers;
mod raw;
mod scene;
mod table;

use raw::Raw;
use scene::Scene;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use table::{Row, Table};

/// Calls that a median is taken over.
const QUICK: usize = 41;
/// The same for what takes a second each.
const SLOW: usize = 5;

fn main() {
    // `cargo bench` passes `--bench`; a word chooses the parts to run.
    let mut wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    // `write` keeps what is printed as docs/benchmarks.md.
    let write = wanted.iter().position(|w| w == "write").map(|at| wanted.remove(at)).is_some();
    let parts: [(&str, fn()); 6] = [
        ("commands", commands),
        ("programs", programs),
        ("size", size),
        ("large", large),
        ("growth", growth::measure),
        ("peers", peers::compare),
    ];
    if let Some(unknown) = wanted.iter().find(|w| !parts.iter().any(|(name, _)| name == w)) {
        let names: Vec<&str> = parts.iter().map(|(name, _)| *name).collect();
        eprintln!("bench: no part is called {unknown}; there are {}", names.join(", "));
        std::process::exit(2);
    }
    for (name, part) in parts {
        if wanted.is_empty() || wanted.iter().any(|w| w == name) {
            part();
        }
    }
    if write {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/benchmarks.md");
        let mut page = format!("{}{}", preface(), table::page());
        if let Some(picture) = growth::picture() {
            let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/benchmarks.svg");
            std::fs::write(beside, picture).expect("docs/benchmarks.svg");
            page.push_str(
                "\n![Cost by servers, tools, sessions, callers at once and MB of log](benchmarks.svg)\n",
            );
        }
        std::fs::write(path, page).expect("docs/benchmarks.md");
        println!("\nwrote {path}");
    }
}

/// What was measured, where and when.
fn preface() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let model = info
        .lines()
        .find_map(|l| l.strip_prefix("model name"))
        .unwrap_or("")
        .trim_start_matches(['\t', ':', ' ']);
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let kernel = read("/proc/sys/kernel/osrelease");
    let load = read("/proc/loadavg");
    let load = load.split(' ').next().unwrap_or("");
    // The scheduling policy is the 41st field (proc(5)); the name before may hold anything, so it is counted from behind it.
    let stat = read("/proc/self/stat");
    let policy = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(38));
    let alone = match policy {
        Some("1" | "2") => {
            ", under the round-robin scheduling class (`chrt -r`), so that other programs hardly interfere"
        }
        _ => "",
    };
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_millis());
    let day = mcpx::util::iso8601(u64::try_from(now).unwrap_or(0));
    format!(
        "# Benchmarks\n\nWritten by `make bench-docs` on {}, mcpx {}, Linux {}, {cores} × {model}, load {load} at the end{alone}. \
         Medians; the ratio is to the same without mcpx, or of the other program to mcpx.\n",
        day.split('T').next().unwrap_or(""),
        env!("CARGO_PKG_VERSION"),
        kernel.trim(),
    )
}

/// The median, in milliseconds, of what `once` takes; the first run is not counted.
pub fn median(runs: usize, mut once: impl FnMut() -> Duration) -> f64 {
    once();
    let mut all: Vec<f64> = (0..runs).map(|_| once().as_secs_f64() * 1000.0).collect();
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// The medians of several things that are measured in turns, so that whatever
/// else the machine does meets them alike.
pub fn medians<const N: usize>(runs: usize, mut things: [&mut dyn FnMut() -> Duration; N]) -> [f64; N] {
    let mut all: [Vec<f64>; N] = std::array::from_fn(|_| Vec::with_capacity(runs));
    for run in 0..=runs {
        for (thing, all) in things.iter_mut().zip(&mut all) {
            let took = thing().as_secs_f64() * 1000.0;
            // The first of each fills caches.
            if run > 0 {
                all.push(took);
            }
        }
    }
    all.map(|mut one| {
        one.sort_by(f64::total_cmp);
        one[one.len() / 2]
    })
}

fn commands() {
    let scene = Scene::new().demo();
    let mut table = Table::new("Commands, whole process (ms)");
    let [nothing, version] =
        medians(QUICK, [&mut || scene.time_program("true", &[]), &mut || scene.time(&["--version"])]);
    table.add(Row::new("starting any program (true)", nothing));
    table.add(Row::new("mcpx --version", version));
    let cold = median(SLOW, || {
        scene.forget();
        scene.time(&["ls"])
    });
    table.add(Row::new("ls, cold: no cache, no daemon", cold));
    table.add(Row::new("ls, warm", median(QUICK, || scene.time(&["ls"]))).budget(3.0));
    table.add(Row::new("search, warm", median(QUICK, || scene.time(&["search", "add"]))));
    table.add(Row::new("types, warm", median(QUICK, || scene.time(&["types", "demo"]))));
    let cold = median(SLOW, || {
        scene.stop();
        scene.time(&["call", "demo.echo", "text=hi"])
    });
    table.add(Row::new("call, cold: no daemon", cold));
    let warm = median(QUICK, || scene.time(&["call", "demo.echo", "text=hi"]));
    table.add(Row::new("call, warm", warm).budget(4.0));
    table.print();
}

/// A program that measures its own calls: `[one, in a row, at once]` in ms a call.
const MEASURE: &str = r#"
const ms = () => performance.now();
let t = ms();
await demo.echo({ text: "hi" });
const one = ms() - t;
const each = [];
for (let i = 0; i < 1000; i++) { t = ms(); await demo.echo({ text: "hi" }); each.push(ms() - t); }
each.sort((a, b) => a - b);
const rounds = [];
for (let r = 0; r < 21; r++) { t = ms(); await Promise.all(Array.from({ length: 64 }, () => demo.echo({ text: "hi" }))); rounds.push((ms() - t) / 64); }
rounds.sort((a, b) => a - b);
return [one, each[500], rounds[10]];
"#;

fn programs() {
    let mut raw = Raw::start();
    raw.call();
    let row = {
        let mut all: Vec<f64> = (0..1000).map(|_| raw.timed(1)).collect();
        all.sort_by(f64::total_cmp);
        all[500]
    };
    let at_once = {
        let mut all: Vec<f64> = (0..21).map(|_| raw.timed(64) / 64.0).collect();
        all.sort_by(f64::total_cmp);
        all[10]
    };
    drop(raw);
    let mut calls = Table::new("A tool call, over the same server (ms a call)");
    calls.add(Row::new("raw stdio, in a row", row));
    calls.add(Row::new("raw stdio, 64 at once", at_once));

    let mut starts = Table::new("Programs, whole process (ms)");
    for (name, path) in scene::runtimes() {
        let scene = Scene::new().demo().with(name, &path);
        let runtime = name.trim_end_matches(|c: char| c.is_ascii_digit());
        scene.write("bare.mjs", "console.log(1)\n");
        let bare_words: &[&str] = match runtime {
            "deno" => &["run", "--quiet", "--no-check", "--allow-all", "bare.mjs"],
            "bun" => &["run", "bare.mjs"],
            _ => &["--no-warnings", "bare.mjs"],
        };
        let [bare, exec, calling] = medians(
            QUICK,
            [
                &mut || scene.time_program(runtime, bare_words),
                &mut || scene.time(&["exec", "return 1"]),
                &mut || scene.time(&["exec", "return await demo.echo({text: 'hi'})"]),
            ],
        );
        starts.add(Row::new(format!("{name}, bare"), bare));
        starts.add(Row::new(format!("{name}, mcpx exec"), exec).over(bare).extra_budget(6.0));
        starts.add(Row::new(format!("{name}, mcpx exec with one call"), calling).over(bare));

        let answer: Value = serde_json::from_str(&scene.output(&["exec", MEASURE])).expect("three numbers");
        let number = |n: usize| answer[n].as_f64().unwrap_or(f64::NAN);
        calls.add(Row::new(format!("{name}, the first"), number(0)));
        calls.add(Row::new(format!("{name}, 1,000 in a row"), number(1)).over(row).extra_budget(0.15));
        calls.add(Row::new(format!("{name}, 64 at once"), number(2)).over(at_once));
    }
    starts.print();
    calls.print();
}

fn size() {
    let mut table = Table::new("Size (MB)");
    let binary = std::fs::metadata(env!("CARGO_BIN_EXE_mcpx")).expect("the binary is there").len();
    table.add(Row::new("the binary (stripped; static under `make bench`)", binary as f64 / 1e6).budget(5.0));
    let scene = Scene::new().demo();
    scene.time(&["call", "demo.echo", "text=hi"]);
    // A client that waits for its answer has all in memory that it ever needs.
    let mut client =
        scene.command(&["call", "demo.slow", "seconds:=2", "steps:=1"]).spawn().expect("mcpx starts");
    let deadline = Instant::now() + Duration::from_secs(1);
    let mut peak = 0.0_f64;
    while Instant::now() < deadline {
        peak = peak.max(scene::resident(client.id()));
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = client.wait();
    table.add(Row::new("RSS of a client that waits", peak));
    let daemon = scene.daemon();
    table.add(Row::new("RSS of the daemon, one server", scene::resident(daemon)).budget(6.0));
    for _ in 0..1000 {
        scene.time(&["call", "demo.echo", "text=hi"]);
    }
    table.add(Row::new("RSS of the daemon after 1,000 calls", scene::resident(daemon)).budget(6.0));
    table.print();
}

fn large() {
    let servers: serde_json::Map<String, Value> = (0..200)
        .map(|n| {
            let block = json!({"command": env!("CARGO_BIN_EXE_fake-mcp"), "args": ["--tools", "8", "--name", format!("n{n}")]});
            (format!("server{n}"), block)
        })
        .collect();
    let scene = Scene::new().servers(Value::Object(servers));
    let mut table = Table::new("200 servers with 25 tools each (ms)");
    let start = Instant::now();
    scene.time(&["ls"]);
    table.add(Row::new("ls, cold: each server started once", start.elapsed().as_secs_f64() * 1000.0));
    scene.stop();
    table.add(Row::new("ls, from the cache", median(QUICK, || scene.time(&["ls"]))));
    table.add(Row::new("search, from the cache", median(QUICK, || scene.time(&["search", "tool_7"]))));
    table
        .add(Row::new("types of one, from the cache", median(QUICK, || scene.time(&["types", "server150"]))));
    table.add(Row::new("call, warm", median(QUICK, || scene.time(&["call", "server150.echo", "text=hi"]))));
    table.print();
}

/// A file below `tests/tools`, when it is installed.
pub fn installed(below: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/tools").join(below);
    path.exists().then_some(path)
}
