//! Servers that others wrote, of many makers and SDKs, in each transport: each
//! starts, lists its tools, and answers one call.
//!
//! Over pipes, from npm: everything, filesystem, memory, sequential-thinking, budget-allocator,
//! scenario-modeler, cohort-heatmap, customer-segmentation, sheet-music, system-monitor, hello-world, commands and
//! code-runner; from PyPI: time and git; and one made with each official SDK, for TypeScript and for Python.
//!
//! Over HTTP, by its own switch or variable: everything, budget-allocator, scenario-modeler, cohort-heatmap,
//! customer-segmentation, sheet-music, system-monitor and those two (streamable), hello-world, and everything and the
//! one in Python once more (the transport of 2024). (code-runner has a switch too, but answers one request in its life.)

use crate::harness::{Background, Runtime, World, free_port, tools, wait_until};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;

/// A server as a program: its name, how it starts, one call of it, and what the answer holds.
type Row = (&'static str, Value, &'static str, Value, &'static str);

/// A program of a package, run by node.
fn node(script: &str, args: &[&str]) -> Value {
    let mut all = vec![json!(tools::installed(&format!("node_modules/{script}")))];
    all.extend(args.iter().map(|arg| json!(arg)));
    json!({"command": Runtime::Node26.path(), "args": all})
}

/// A server of `tests/sdk`.
fn made(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/sdk").join(name)
}

/// All that speak over their pipes. `dir` is a directory that they may use, a git repository among others.
fn programs(dir: &str) -> Vec<Row> {
    let mut memory = tools::npm_server("memory", &[]);
    memory["env"] = json!({"MEMORY_FILE_PATH": format!("{dir}/memory.json")});
    let git = json!({"command": tools::installed("venv/bin/mcp-server-git"), "args": ["--repository", dir]});
    let thought =
        json!({"thought": "hm", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1});
    let entity = json!({"entities": [{"name": "Ada", "entityType": "person", "observations": []}]});
    vec![
        (
            "everything",
            tools::npm_server("everything", &["stdio"]),
            "echo",
            json!({"message": "hi"}),
            "Echo: hi",
        ),
        (
            "filesystem",
            tools::npm_server("filesystem", &[dir]),
            "list_directory",
            json!({"path": dir}),
            "[FILE] a.txt",
        ),
        ("memory", memory, "create_entities", entity, "Ada"),
        (
            "thinking",
            tools::npm_server("sequential-thinking", &[]),
            "sequentialthinking",
            thought,
            "\"thoughtNumber\":1",
        ),
        (
            "budget",
            tools::npm_server("budget-allocator", &["--stdio"]),
            "get-budget-data",
            json!({}),
            "presetBudgets",
        ),
        (
            "scenario",
            tools::npm_server("scenario-modeler", &["--stdio"]),
            "get-scenario-data",
            json!({}),
            "Bootstrapped",
        ),
        (
            "cohorts",
            tools::npm_server("cohort-heatmap", &["--stdio"]),
            "get-cohort-data",
            json!({}),
            "cohortId",
        ),
        (
            "segments",
            tools::npm_server("customer-segmentation", &["--stdio"]),
            "get-customer-data",
            json!({"segment": "SMB"}),
            "\"segment\":\"SMB\"",
        ),
        (
            "music",
            tools::npm_server("sheet-music", &["--stdio"]),
            "play-sheet-music",
            json!({"abcNotation": "X:1\nK:C\nCDEF|"}),
            "parsed successfully",
        ),
        (
            "monitor",
            tools::npm_server("system-monitor", &["--stdio"]),
            "get-system-info",
            json!({}),
            "hostname",
        ),
        (
            "typescript",
            json!({"command": Runtime::Node26.path(), "args": [made("server.mjs"), "stdio"]}),
            "touch",
            json!({}),
            "1",
        ),
        (
            "python",
            json!({"command": tools::installed("venv/bin/python"), "args": [made("server.py"), "stdio"]}),
            "add",
            json!({"a": 40, "b": 2}),
            "42",
        ),
        ("hello", node("mcp-hello-world/build/stdio.js", &[]), "add", json!({"a": 40, "b": 2}), "42"),
        (
            "commands",
            node("mcp-server-commands/build/index.js", &[]),
            "run_command",
            json!({"command": "echo 6$((1+1))"}),
            "62",
        ),
        (
            "code",
            node("mcp-server-code-runner/dist/cli.js", &[]),
            "run-code",
            json!({"languageId": "javascript", "code": "console.log(6 * 7)"}),
            "42",
        ),
        ("time", tools::time_server(), "get_current_time", json!({"timezone": "Asia/Tokyo"}), "Asia/Tokyo"),
        ("git", git, "git_status", json!({"repo_path": dir}), "a.txt"),
    ]
}

/// A world with what these servers themselves start.
fn world() -> World {
    // A dozen runtimes that start at once on a busy machine take their time.
    let world = World::new().file("data/a.txt", "content of a").setting("catalog", json!({"wait": "60s"}));
    world.link("node", &Runtime::Node26.path());
    world.link("git", &tools::on_path("git").expect("git on the PATH"));
    let made = Command::new("git").args(["init", "--quiet"]).current_dir(world.dir().join("data")).status();
    assert!(made.expect("git starts").success());
    world
}

/// Calls it, and looks at what its result holds, however it is written.
fn call(world: &World, server: &str, tool: &str, arguments: &Value, part: &str) {
    let output = world.mcpx(["--json", "call", &format!("{server}.{tool}"), &arguments.to_string()]).run();
    let text = output.stdout().replace("\\\"", "\"").replace("\": ", "\":");
    assert!(text.contains(part), "{server}: {part} in {output}");
}

#[test]
fn seventeen_servers_start_list_and_answer_over_their_pipes() {
    let world = world();
    let dir = world.dir().join("data").display().to_string();
    let rows = programs(&dir);
    let world = rows.iter().fold(world, |world, (name, block, ..)| world.server(name, block.clone()));
    // All at once, as a person's first look does.
    let listed = world.mcpx(["--json", "ls"]).run().json();
    for (name, _, tool, arguments, part) in &rows {
        let row = listed["namespaces"].as_array().unwrap().iter().find(|row| row["name"] == **name).unwrap();
        assert!(row["state"] == "ready" && row["tools"].as_u64() > Some(0), "{row}");
        call(&world, name, tool, arguments, part);
    }
    let status = world.mcpx(["--json", "status"]).run().json();
    assert_eq!(status["instances"].as_array().unwrap().len(), rows.len(), "{status}");
    let _ = world.mcpx(["stop"]).run();
    rows.iter().for_each(|(_, block, ..)| {
        let first = &block["args"][0].as_str().unwrap();
        let last = first.rsplit("node_modules/").next().unwrap().to_owned();
        world.wait_gone(&last);
    });
}

/// A server that listens at a port, which it is told by argument and by variable, until it is dropped.
fn listening(program: PathBuf, script: PathBuf, args: &[&str], port: u16) -> Background {
    let number = port.to_string();
    let mut command = Command::new(program);
    command.arg(script).args(args.iter().map(|arg| arg.replace("PORT", &number))).env("PORT", &number);
    Background::start(command)
}

#[test]
fn ten_servers_answer_over_http_in_both_of_its_forms() {
    const SDK: &str = "@modelcontextprotocol/server-";
    let app = |name: &str| format!("{SDK}{name}/dist/index.js");
    let servers = [
        ("everything", app("everything"), vec!["streamableHttp"], "mcp"),
        ("budget", app("budget-allocator"), vec![], "mcp"),
        ("scenario", app("scenario-modeler"), vec![], "mcp"),
        ("cohorts", app("cohort-heatmap"), vec![], "mcp"),
        ("segments", app("customer-segmentation"), vec![], "mcp"),
        ("music", app("sheet-music"), vec![], "mcp"),
        ("monitor", app("system-monitor"), vec![], "mcp"),
        ("typescript", String::new(), vec!["http", "PORT"], "mcp"),
        ("python", String::new(), vec!["streamable-http", "PORT"], "mcp"),
        // The transport of 2024.
        ("hello", "mcp-hello-world/build/http.js".into(), vec![], "sse"),
        ("everything", app("everything"), vec!["sse"], "sse"),
        ("python", String::new(), vec!["sse", "PORT"], "sse"),
    ];
    let mut world = world();
    let mut running = Vec::new();
    let mut expected = Vec::new();
    for (name, script, args, path) in servers {
        let port = free_port();
        let (program, script) = match name {
            "python" => (tools::installed("venv/bin/python"), made("server.py")),
            "typescript" => (Runtime::Node26.path(), made("server.mjs")),
            _ => (Runtime::Node26.path(), tools::installed(&format!("node_modules/{script}"))),
        };
        running.push(listening(program, script, &args, port));
        // Two of them in both forms.
        let own = if path == "sse" && name != "hello" { format!("{name}-sse") } else { name.to_owned() };
        world = world.server(&own, json!({"url": format!("http://localhost:{port}/{path}")}));
        expected.push((own, name, port));
    }
    for (own, _, port) in &expected {
        wait_until(&format!("{own} to listen"), || std::net::TcpStream::connect(("localhost", *port)).ok());
    }
    let listed = world.mcpx(["--json", "ls"]).run().json();
    let rows = programs("/");
    for (row, (own, name, _)) in listed["namespaces"].as_array().unwrap().iter().zip(&expected) {
        assert!(row["name"] == *own.as_str() && row["state"] == "ready", "{row}");
        let (_, _, tool, arguments, part) = rows.iter().find(|row| row.0 == *name).unwrap();
        call(&world, own, tool, arguments, part);
    }
    // What else the one in Python has, over HTTP.
    world.mcpx(["resources", "read", "python", "memo://note"]).run().says(&["a note"]);
    world.mcpx(["prompts", "get", "python.greet", "name=Ada"]).run().says(&["Hello, Ada!"]);
    let status = world.mcpx(["--json", "status"]).run().json();
    let instances = status["instances"].as_array().unwrap();
    let python = instances.iter().find(|row| row["server"] == "python").unwrap();
    assert_eq!(python["protocol"], "2026-07-28", "a server of the stateless era is spoken to as one");
}
