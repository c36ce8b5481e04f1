//! How cost grows with the number of servers and of parallel callers, as a table and as a picture.

use crate::scene::Scene;
use crate::table::{Row, Table};
use crate::{SLOW, median};
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::process::Child;
use std::sync::Mutex;
use std::time::Instant;

/// Numbers of servers.
const SERVERS: [usize; 4] = [1, 10, 100, 1000];
/// Numbers of commands at once.
const CALLERS: [usize; 4] = [1, 4, 16, 64];

/// A line of a picture: its name, and points of (how many, milliseconds).
type Line = (&'static str, Vec<(f64, f64)>);

/// What was measured, for the picture.
static LINES: Mutex<Vec<Line>> = Mutex::new(Vec::new());

/// Measures.
pub fn measure() {
    let mut table = Table::new("Growth (ms)");
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
    table.print();
    let mut lines = LINES.lock().expect("one thread");
    lines.extend([
        ("tools, by servers", list),
        ("call, by servers", warm),
        ("call, by commands at once", callers),
    ]);
}

/// The picture, both axes logarithmic; none when nothing was measured.
pub fn picture() -> Option<String> {
    let lines = LINES.lock().expect("one thread");
    if lines.is_empty() {
        return None;
    }
    let most = lines.iter().flat_map(|(_, points)| points).map(|p| p.1).fold(10.0, f64::max);
    let top = most.log10().ceil();
    let x = |many: f64| 60.0 + many.log10() / 3.0 * 500.0;
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
    for many in [1.0, 10.0, 100.0, 1000.0] {
        let _ = writeln!(svg, "<text x=\"{:.1}\" y=\"284\" text-anchor=\"middle\">{many}</text>", x(many));
    }
    for (at, ((name, points), color)) in lines.iter().zip(["#3b6fe0", "#b0561c", "#1a8f5a"]).enumerate() {
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
