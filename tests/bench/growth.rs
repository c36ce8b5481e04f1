//! How cost grows with servers, tools, sessions, callers at once and the size of the log, as tables and as a picture.

use crate::scene::Scene;
use crate::table::{Row, Table};
use crate::{QUICK, SLOW, median};
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::process::Child;
use std::sync::Mutex;
use std::time::Instant;

/// Numbers of servers.
const SERVERS: [usize; 4] = [1, 10, 100, 1000];
/// Numbers of tools of one server.
const TOOLS: [usize; 5] = [10, 100, 1000, 10_000, 50_000];
/// Numbers of sessions that there are.
const SESSIONS: [usize; 4] = [1, 10, 100, 1000];
/// Sizes of the log, in MB.
const LOG: [usize; 4] = [1, 10, 100, 1000];
/// Numbers of commands at once.
const CALLERS: [usize; 4] = [1, 4, 16, 64];

/// The picture goes up to so many, as a power of ten.
const WIDE: f64 = 4.7;
/// One color a line.
const COLORS: [&str; 9] =
    ["#3b6fe0", "#b0561c", "#1a8f5a", "#8a3fb5", "#c22f4f", "#0f8a9d", "#7a6a12", "#55606e", "#d07fae"];

/// A line of a picture: its name, and points of (how many, milliseconds).
type Line = (&'static str, Vec<(f64, f64)>);

/// What was measured, for the picture.
static LINES: Mutex<Vec<Line>> = Mutex::new(Vec::new());

/// Measures.
pub fn measure() {
    type Part = fn(&mut Table) -> Vec<Line>;
    let parts: [(&str, Part); 5] = [
        ("Growth by servers (ms)", servers),
        ("Growth by tools (ms)", tools),
        ("Growth by sessions (ms)", sessions),
        ("Growth by commands at once (ms)", callers),
        ("Growth by the size of the log (ms)", log),
    ];
    for (title, part) in parts {
        let mut table = Table::new(title);
        let lines = part(&mut table);
        table.print();
        LINES.lock().expect("one thread").extend(lines);
    }
}

fn servers(table: &mut Table) -> Vec<Line> {
    let (mut list, mut warm) = (Vec::new(), Vec::new());
    for many in SERVERS {
        let servers: Map<String, Value> = (0..many)
            .map(|n| {
                let block =
                    json!({"command": env!("CARGO_BIN_EXE_fake-mcp"), "args": ["--name", format!("n{n}")]});
                (format!("server{n}"), block)
            })
            .collect();
        let scene = Scene::new().servers(Value::Object(servers));
        // One server runs and is known; the others are only there.
        scene.time(&["call", "server0.echo", "text=hi"]);
        let ms = median(SLOW, || scene.time(&["tools", "server0"]));
        table.add(Row::new(format!("tools of one, {many} servers configured"), ms));
        list.push((many as f64, ms));
        let ms = median(SLOW, || scene.time(&["call", "server0.echo", "text=hi"]));
        table.add(Row::new(format!("call, warm, {many} servers configured"), ms));
        warm.push((many as f64, ms));
    }
    vec![("tools, by servers", list), ("call, by servers", warm)]
}

fn tools(table: &mut Table) -> Vec<Line> {
    let (mut types, mut search, mut call) = (Vec::new(), Vec::new(), Vec::new());
    for many in TOOLS {
        let fake = json!({"command": env!("CARGO_BIN_EXE_fake-mcp"), "args": ["--tools", many.to_string()]});
        let scene = Scene::new().servers(json!({"big": fake}));
        scene.time(&["ls"]);
        for (words, what, line) in [
            (["types", "big.echo"].as_slice(), "types of one", &mut types),
            (&["search", "tool_7"], "search", &mut search),
            (&["call", "big.echo", "text=hi"], "call, warm", &mut call),
        ] {
            let ms = median(SLOW, || scene.time(words));
            table.add(Row::new(format!("{what}, a server with {many} tools"), ms));
            line.push((many as f64, ms));
        }
    }
    vec![("types of one, by tools", types), ("search, by tools", search), ("call, by tools", call)]
}

fn sessions(table: &mut Table) -> Vec<Line> {
    let scene = Scene::new().demo();
    let (mut line, mut there) = (Vec::new(), 0);
    for many in SESSIONS {
        while there < many {
            there += 1;
            scene.time(&["session", "new", "--name", &format!("s{there}")]);
        }
        let ms = median(QUICK, || scene.time(&["call", "--session", "s1", "demo.echo", "text=hi"]));
        table.add(Row::new(format!("call, warm, {many} sessions"), ms));
        line.push((many as f64, ms));
    }
    vec![("call, by sessions", line)]
}

fn callers(table: &mut Table) -> Vec<Line> {
    let scene = Scene::new().demo();
    let mut callers = Vec::new();
    for many in CALLERS {
        let ms = median(SLOW, || {
            let begun = Instant::now();
            let all: Vec<Child> = (0..many)
                .map(|_| scene.command(&["call", "demo.echo", "text=hi"]).spawn().expect("mcpx starts"))
                .collect();
            for mut one in all {
                assert!(one.wait().expect("its end").success());
            }
            begun.elapsed() / u32::try_from(many).unwrap_or(1)
        });
        table.add(Row::new(format!("call, warm, {many} commands at once, each"), ms));
        callers.push((many as f64, ms));
    }
    vec![("call, by commands at once", callers)]
}

/// A log of so many megabytes, in files of the size that they have by default.
fn fill(dir: &std::path::Path, megabytes: usize) {
    const FILE: usize = 16_000_000;
    let _ = std::fs::remove_dir_all(dir);
    std::fs::create_dir_all(dir).expect("a directory");
    let (mut at, mut n, mut left) = (1_790_000_000_000_u64, 0_u64, megabytes * 1_000_000);
    while left > 0 {
        let path = dir.join(format!("{at:013}.jsonl"));
        let size = left.min(FILE);
        let mut text = String::with_capacity(size + 512);
        while text.len() < size {
            n += 1;
            at += n % 4;
            let _ = writeln!(
                text,
                "{{\"at\":{at},\"level\":\"info\",\"source\":\"daemon\",\"event\":\"call.finished\",\"daemon\":\"d65-1f3\",\
                 \"seq\":{n},\"server\":\"server{}\",\"tool\":\"tool_{}\",\"instance\":\"global\",\"session\":\"s{}\",\
                 \"run\":\"80fd3fc009176b8c\",\"call\":\"d65-1f3.{n}\",\"ms\":{}.{},\"outcome\":\"ok\",\"sent\":13,\"received\":41}}",
                n % 12,
                n % 37,
                n / 1000,
                n * 7919 % 90,
                n % 10,
            );
        }
        std::fs::write(path, text).expect("a log file");
        left -= size;
    }
}

fn log(table: &mut Table) -> Vec<Line> {
    let scene = Scene::new().demo();
    let (mut newest, mut stats) = (Vec::new(), Vec::new());
    for megabytes in LOG {
        fill(&scene.state().join("log"), megabytes);
        for (words, what, line) in [
            (["log", "--limit", "20"].as_slice(), "the newest 20 records", &mut newest),
            (&["stats", "calls"], "stats calls", &mut stats),
        ] {
            let ms = median(SLOW, || scene.time(words));
            table.add(Row::new(format!("{what}, {megabytes} MB of log"), ms));
            line.push((megabytes as f64, ms));
        }
    }
    vec![("log, by MB of log", newest), ("stats, by MB of log", stats)]
}

/// The picture, both axes logarithmic; none when nothing was measured.
pub fn picture() -> Option<String> {
    let lines = LINES.lock().expect("one thread");
    if lines.is_empty() {
        return None;
    }
    let most = lines.iter().flat_map(|(_, points)| points).map(|p| p.1).fold(10.0, f64::max);
    let top = most.log10().ceil();
    let x = |many: f64| 60.0 + many.log10() / WIDE * 500.0;
    let y = |ms: f64| 20.0 + (top - ms.max(0.1).log10()) / (top + 1.0) * 240.0;
    let mut svg = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 760 300\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"760\" height=\"300\" fill=\"#fff\"/>\n",
    );
    for power in -1..=top as i32 {
        let (ms, at) = (10f64.powi(power), y(10f64.powi(power)));
        let _ = writeln!(
            svg,
            "<path d=\"M60 {at:.1}H560\" stroke=\"#ddd\"/><text x=\"52\" y=\"{:.1}\" text-anchor=\"end\">{ms} ms</text>",
            at + 4.0
        );
    }
    for many in [1.0, 10.0, 100.0, 1000.0, 10_000.0] {
        let _ = writeln!(svg, "<text x=\"{:.1}\" y=\"284\" text-anchor=\"middle\">{many}</text>", x(many));
    }
    for (at, ((name, points), color)) in lines.iter().zip(COLORS).enumerate() {
        let path: Vec<String> =
            points.iter().map(|(many, ms)| format!("{:.1} {:.1}", x(*many), y(*ms))).collect();
        let _ = writeln!(
            svg,
            "<path d=\"M{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>",
            path.join("L")
        );
        // Named beside the picture: lines may end in the same place.
        let _ = writeln!(svg, "<text x=\"576\" y=\"{}\" fill=\"{color}\">— {name}</text>", 40 + 20 * at);
    }
    svg.push_str("</svg>\n");
    Some(svg)
}
