//! Servers that others wrote: npm's everything, filesystem and memory, and a Python one.

use crate::harness::{Runtime, World, free_port, tools, wait_until};
use serde_json::json;

#[test]
fn the_everything_server_answers_in_each_way() {
    let world =
        World::new().server("everything", tools::npm_server("everything", &["stdio"])).with(Runtime::Deno);
    world.mcpx(["ls"]).run().says(&["everything"]);
    world.mcpx(["call", "everything.echo", "message=hi"]).stdout("Echo: hi\n").check();
    world.mcpx(["call", "everything.get-sum", "a=2", "b=3"]).run().says(&["5"]);
    world.mcpx(["exec", "return await everything['get-sum']({a: 20, b: 22})"]).run().says(&["42"]);
    let types = world.mcpx(["types", "everything"]).run().stdout();
    assert!(types.contains("get-sum") || types.contains("getSum") || types.contains("get_sum"), "{types}");
    let weather = world.mcpx(["call", "everything.get-structured-content", "location=New York"]).run().json();
    assert!(weather["temperature"].is_number(), "{weather}");
    let image = world.mcpx(["call", "everything.get-tiny-image"]).run();
    let path = image.stdout().lines().find(|l| l.ends_with(".png")).expect("a path of a picture").to_owned();
    assert!(std::fs::read(path).unwrap().starts_with(b"\x89PNG"));
    // It asks for roots at the start and would stay for a minute unanswered.
    let start = std::time::Instant::now();
    let _ = world.mcpx(["stop"]).run();
    world.wait_gone("server-everything");
    assert!(start.elapsed().as_secs() < 10);
}

#[test]
fn the_filesystem_server_reads_and_writes() {
    let world = World::new();
    let dir = world.dir().join("data");
    let world = world
        .file("data/a.txt", "content of a")
        .server("files", tools::npm_server("filesystem", &[dir.to_str().unwrap()]));
    let path = dir.join("a.txt");
    world
        .mcpx(["call", "files.read_text_file", &format!("path={}", path.display())])
        .run()
        .says(&["content of a"]);
    let arguments = json!({"path": dir.join("b.txt"), "content": "ünïcode \"quoted\"\n"});
    let _ = world.mcpx(["call", "files.write_file", &arguments.to_string()]).run();
    assert_eq!(std::fs::read_to_string(dir.join("b.txt")).unwrap(), "ünïcode \"quoted\"\n");
    let output =
        world.mcpx(["call", "files.read_text_file", "path=/etc/passwd"]).status(1).any_stderr().run();
    output.says(&["denied"]);
}

#[test]
fn the_memory_server_remembers_across_programs() {
    let world = World::new();
    let file = world.dir().join("memory.json");
    let mut block = tools::npm_server("memory", &[]);
    block["env"] = json!({"MEMORY_FILE_PATH": file});
    let world = world.server("memory", block).with(Runtime::Bun);
    let code = "await memory.create_entities({entities: [{name: 'Ada', entityType: 'person', observations: ['counts']}]}); return 'made'";
    world.mcpx(["exec", code]).stdout("made\n").check();
    let graph = world.mcpx(["exec", "return await memory.read_graph({})"]).run().json();
    assert_eq!(graph["entities"][0]["name"], "Ada");
}

#[test]
fn the_python_server_tells_the_time() {
    let world = World::new().server("time", tools::time_server()).with(Runtime::Node26);
    world.mcpx(["ls"]).run().says(&["time", "2"]);
    world.mcpx(["call", "time.get_current_time", "timezone=Asia/Tokyo"]).run().says(&["Asia/Tokyo"]);
    let answer = world.mcpx(["exec", "return await time.convert_time({source_timezone: 'UTC', time: '12:00', target_timezone: 'Asia/Tokyo'})"]).run().json();
    assert_eq!(answer["time_difference"], "+9.0h", "{answer}");
}

#[test]
fn a_server_over_http_is_one_like_any_other() {
    let port = free_port();
    let server = tools::everything_at(port, "streamableHttp");
    let world = World::new()
        .server("web", json!({"url": format!("http://127.0.0.1:{port}/mcp")}))
        .server("gone", json!({"url": format!("http://127.0.0.1:{}/mcp", free_port())}))
        .with(Runtime::Deno);
    world.mcpx(["ls"]).any_stderr().output().says(&["web", "15", "gone", "refused"]);
    world.mcpx(["call", "web.echo", "message=hi"]).stdout("Echo: hi\n").check();
    let code = "return await Promise.all([1, 2, 3].map((n) => web.echo({message: `${n}`})))";
    let answer = world.mcpx(["exec", code]).run().json();
    assert_eq!(answer, json!(["Echo: 1", "Echo: 2", "Echo: 3"]));
    world.mcpx(["call", "gone.x"]).status(69).stderr_has("gone").check();

    // A call that it is working on when it dies may have had an effect.
    let code = "await web.triggerLongRunningOperation({duration: 60, steps: 60}, \
        {onprogress: () => Deno.writeTextFileSync('begun', '')})";
    let running = world.mcpx(["exec", code]).start();
    // In flight it is before it is sent; once it tells how far it is, the server has it.
    wait_until("the server to work on it", || world.dir().join("begun").exists().then_some(()));
    drop(server);
    let output = running.wait();
    assert_eq!(output.status, 76, "{output}");

    // Another process on the same port knows nothing of the old session.
    let _server = tools::everything_at(port, "streamableHttp");
    wait_until("calls to reach it", || {
        let output = world.mcpx(["call", "web.echo", "message=back"]).output();
        (output.stdout() == "Echo: back\n").then_some(())
    });
}

#[test]
fn all_of_them_stand_side_by_side() {
    let world = World::new();
    let dir = world.dir();
    let world = world
        .server("everything", tools::npm_server("everything", &["stdio"]))
        .server("files", tools::npm_server("filesystem", &[dir.to_str().unwrap()]))
        .server("memory", tools::npm_server("memory", &[]))
        .server("time", tools::time_server())
        .with(Runtime::Deno);
    let rows = world.mcpx(["--json", "ls"]).run().json().to_string();
    assert_eq!(rows.matches("\"ready\"").count(), 4, "{rows}");
    let code = "const [a, b] = await Promise.all([everything.echo({message: 'x'}), files.list_allowed_directories({})]); return [a, b]";
    world.mcpx(["exec", code]).run().says(&["Echo: x"]);
    world.mcpx(["search", "timezone"]).run().says(&["convert_time"]);
}

#[test]
fn a_server_of_the_older_transport_is_found_out() {
    let port = free_port();
    let server = tools::everything_at(port, "sse");
    let world = World::new()
        .server("old", json!({"url": format!("http://127.0.0.1:{port}/sse")}))
        .with(Runtime::Deno);
    world.mcpx(["call", "old.echo", "message=hi"]).stdout("Echo: hi\n").check();
    let code = "return await Promise.all([1, 2, 3].map((n) => old.echo({message: `${n}`})))";
    let answer = world.mcpx(["exec", code]).run().json();
    assert_eq!(answer, json!(["Echo: 1", "Echo: 2", "Echo: 3"]));
    world.mcpx(["resources", "ls", "old"]).run().says(&["old"]);
    // A call that it is working on when it dies may have had an effect.
    let running =
        world.mcpx(["call", "old.trigger-long-running-operation", "duration:=60", "steps:=60"]).start();
    wait_until("the call to be in flight", || {
        let status = world.mcpx(["--json", "status"]).run().json();
        status["instances"].as_array()?.iter().any(|r| r["inFlight"] == 1).then_some(())
    });
    drop(server);
    let output = running.wait();
    assert_eq!(output.status, 76, "{output}");
}
