//! Servers that others wrote, of many makers and SDKs, in each transport: each
//! starts, lists its tools, and answers one call.

use crate::harness::{Runtime, World, free_port, tools, wait_until};
use serde_json::{Value, json};
use std::process::{Child, Command, Stdio};

/// A server as a program: its name, how it starts, one call of it, and what the answer holds.
type Row = (&'static str, Value, &'static str, Value, &'static str);

/// A program of a package, run by node.
fn node(script: &str, args: &[&str]) -> Value {
    let mut all = vec![json!(tools::installed(&format!("node_modules/{script}")))];
    all.extend(args.iter().map(|arg| json!(arg)));
    json!({"command": Runtime::Node26.path(), "args": all})
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
fn eleven_servers_start_list_and_answer_over_their_pipes() {
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
        let last = block["args"][0].as_str().unwrap().rsplit("node_modules/").next().unwrap().to_owned();
        world.wait_gone(&last);
    });
}

/// A server at a port, until it is dropped.
struct Listening(Child);

impl Listening {
    fn start(script: &str, args: &[&str], port: u16) -> Listening {
        let mut command = Command::new(Runtime::Node26.path());
        command.arg(tools::installed(&format!("node_modules/{script}"))).args(args);
        command
            .env("PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Listening(command.spawn().expect("node starts"))
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn servers_answer_over_http_in_both_of_its_forms() {
    const SDK: &str = "@modelcontextprotocol/server-";
    let servers = [
        ("everything", format!("{SDK}everything/dist/index.js"), vec!["streamableHttp"], "mcp"),
        ("budget", format!("{SDK}budget-allocator/dist/index.js"), vec![], "mcp"),
        ("scenario", format!("{SDK}scenario-modeler/dist/index.js"), vec![], "mcp"),
        // The transport of 2024.
        ("hello", "mcp-hello-world/build/http.js".into(), vec![], "sse"),
    ];
    let ports = [0; 4].map(|_| free_port());
    let _running: Vec<Listening> = servers
        .iter()
        .zip(ports)
        .map(|((_, script, args, _), port)| Listening::start(script, args, port))
        .collect();
    let mut world = world();
    for ((name, .., path), port) in servers.iter().zip(ports) {
        wait_until("it to listen", || std::net::TcpStream::connect(("localhost", port)).ok());
        world = world.server(name, json!({"url": format!("http://localhost:{port}/{path}")}));
    }
    let listed = world.mcpx(["--json", "ls"]).run().json();
    let rows = programs("/");
    for (row, (name, ..)) in listed["namespaces"].as_array().unwrap().iter().zip(&servers) {
        assert!(row["name"] == **name && row["state"] == "ready", "{row}");
        let (_, _, tool, arguments, part) = rows.iter().find(|row| row.0 == *name).unwrap();
        call(&world, name, tool, arguments, part);
    }
}
