//! The lock: written, compared, and answering in place of servers; and what else is
//! for those who count tokens: the catalogue within a budget, and looking around.

use crate::harness::World;
use serde_json::{Value, json};

const TOOLS: &str = "tools.json";

/// A server with tools of the test's own, in a world whose lock is to be.
fn world(tools: Value) -> World {
    let world = World::new();
    let file = world.dir().join(TOOLS);
    let world = world.file(TOOLS, &tools.to_string());
    world.and_fake("fake", &["--hostile-schema", file.to_str().unwrap()])
}

fn tool(name: &str, kind: &str, about: &str) -> Value {
    json!({"name": name, "description": about, "inputSchema": {"type": "object", "properties": {"x": {"type": kind}}}})
}

fn lock(world: &World) -> Value {
    serde_json::from_slice(&std::fs::read(world.dir().join(".mcpx.lock.json")).unwrap()).unwrap()
}

#[test]
fn a_lock_is_stable_and_a_drift_is_told_with_its_path() {
    let world = world(json!([tool("one", "string", "first"), tool("two", "string", "second")]));
    world.mcpx(["check"]).status(66).stderr_has("mcpx lock").check();
    let said = world.mcpx(["lock"]).run();
    said.says(&["tools, new", "wrote", ".mcpx.lock.json"]);
    let text = std::fs::read_to_string(world.dir().join(".mcpx.lock.json")).unwrap();
    world.mcpx(["lock"]).run().says(&["unchanged", "nothing to change"]);
    assert_eq!(std::fs::read_to_string(world.dir().join(".mcpx.lock.json")).unwrap(), text);
    assert!(!text.contains(world.dir().to_str().unwrap()), "nothing of this machine is in it");
    for args in [&["check"][..], &["check", "--frozen"], &["check", "fake"]] {
        world.mcpx(args).run().says(&["locked"]);
    }
    world.write(TOOLS, &json!([tool("one", "number", "first"), tool("three", "string", "new")]).to_string());
    let drift = world.mcpx(["check"]).status(1).any_stderr().run();
    drift.says(&[
        "fake: 1 added, 1 removed, 1 changed",
        "+ three",
        "- two",
        "~ one",
        "inputSchema.properties.x.type: \"string\" -> \"number\"",
        "mcpx lock",
    ]);
    let json = world.mcpx(["--json", "check"]).status(1).any_stderr().run().json();
    assert_eq!(json["servers"][0]["drift"]["changed"][0]["changes"][0]["is"], "number", "{json}");
    let dry = world.mcpx(["lock", "--dry-run"]).run();
    dry.says(&["would write"]);
    assert_eq!(std::fs::read_to_string(world.dir().join(".mcpx.lock.json")).unwrap(), text);
    let _ = world.mcpx(["lock"]).run();
    world.mcpx(["check"]).run().says(&["locked"]);
}

#[test]
fn frozen_wants_the_lock_to_cover_everything() {
    let world = World::demo();
    let _ = world.mcpx(["lock"]).run();
    let world = world.and_fake("fake", &[]);
    let remark = world.mcpx(["check"]).any_stderr().run();
    remark.says(&["fake: is not in the lock"]);
    world.mcpx(["check", "--frozen"]).status(1).any_stderr().run().says(&["fake: is not in the lock"]);
    let _ = world.mcpx(["lock", "fake"]).run();
    assert_eq!(lock(&world)["servers"].as_object().unwrap().keys().collect::<Vec<_>>(), ["demo", "fake"]);
    world.mcpx(["check", "--frozen"]).run().says(&["2 servers"]);
    world.write(".mcpx.json", r#"{"mcpServers": {"dead": {"command": "/nowhere/at/all"}}}"#);
    world.mcpx(["check", "--frozen"]).status(1).any_stderr().run().says(&["dead: is not in the lock"]);
    let remarks = world.mcpx(["check"]).any_stderr().run();
    remarks.says(&[
        "0 servers are",
        "dead: is not in the lock",
        "demo: is in the lock, and configured no more",
    ]);
    // One that is locked and cannot be asked is a failure, whatever else is fine.
    // A server that cannot be asked keeps what was locked of it.
    world.write(".mcpx.json", r#"{"mcpServers": {"demo": {"command": "/nowhere/at/all"}}}"#);
    world.mcpx(["check"]).status(69).any_stderr().run().says(&["demo: could not be asked"]);
    let failed = world.mcpx(["lock"]).any_stderr().output();
    assert!(failed.status != 0, "{failed}");
    assert!(lock(&world)["servers"]["demo"]["tools"].as_array().unwrap().len() > 5);
}

#[test]
fn the_lock_alone_lists_searches_and_types_without_a_server() {
    let world = World::demo();
    let _ = world.mcpx(["lock"]).run();
    let types = world.mcpx(["types", "demo"]).run().stdout();
    let _ = world.mcpx(["stop", "--all"]).run();
    // Neither the cache nor the server is there any more.
    std::fs::remove_dir_all(world.cache()).unwrap();
    world.write(".mcpx.json", r#"{"mcpServers": {"demo": {"command": "/nowhere/at/all"}}}"#);
    assert_eq!(world.mcpx(["types", "demo", "--frozen"]).run().stdout(), types);
    let rows = world.mcpx(["--json", "ls", "--frozen"]).run().json();
    assert_eq!(
        (&rows["namespaces"][0]["state"], &rows["namespaces"][0]["tools"]),
        (&json!("locked"), &json!(14))
    );
    world.mcpx(["search", "echo"]).env("MCPX_CATALOG_FROZEN", "true").run().says(&["demo.echo"]);
    world.mcpx(["tools", "--frozen", "demo"]).run().says(&["demo.echo"]);
    let _ = world.mcpx(["client", "--frozen", "-o", "c.mjs"]).run();
    assert!(std::fs::read_to_string(world.dir().join("c.d.mts")).unwrap().contains("echo"));
    assert!(world.processes().is_empty(), "nothing was started: {:?}", world.processes());
    // Without being told so, the lock stands in for a server that cannot be asked, and says so.
    let fallen = world.mcpx(["types", "demo"]).any_stderr().run();
    fallen.says(&["demo is shown as it was locked"]);
    assert_eq!(fallen.stdout(), types);
    world.mcpx(["ls"]).any_stderr().run().says(&["as it was locked"]);
    // A filter holds for what is locked too.
    world.write(
        ".mcpx.json",
        r#"{"mcpServers": {"demo": {"command": "/nowhere/at/all", "mcpx": {"tools": ["echo"]}}}}"#,
    );
    let rows = world.mcpx(["--json", "ls", "--frozen"]).run().json();
    assert_eq!(rows["namespaces"][0]["tools"], 1);
    std::fs::remove_file(world.dir().join(".mcpx.lock.json")).unwrap();
    world.mcpx(["ls", "--frozen"]).status(66).stderr_has("mcpx lock").check();
}

#[test]
fn a_catalogue_keeps_its_budget_and_says_what_it_left_out() {
    let world = World::demo().and_fake("fake", &["--tools", "40"]);
    for budget in ["150", "400", "100000"] {
        let body = world.mcpx(["--json", "catalog", "--budget", budget]).run().json();
        assert!(body["tokens"].as_u64().unwrap() <= budget.parse().unwrap(), "{body}");
        let text = body["text"].as_str().unwrap();
        assert!(text.contains("// demo, 14 tools") && text.contains("// fake, "), "{text}");
        let left = body["left"].as_u64().unwrap();
        assert_eq!(left > 0, budget != "100000", "{body}");
        assert_eq!(text.contains("more: mcpx tools fake"), left > 0, "{text}");
        assert_eq!(world.mcpx(["catalog", "--budget", budget]).run().stdout(), text);
    }
    let rows = world.mcpx(["--json", "ls"]).run().json();
    assert!(rows["namespaces"].as_array().unwrap().iter().all(|r| r["tokens"].as_u64() > Some(50)), "{rows}");
    let brief = world.mcpx(["types", "--brief", "demo"]).run();
    assert!(brief.stdout().lines().last().unwrap().starts_with("// about "), "{brief}");
    let typed = world.mcpx(["--json", "types", "--brief", "demo"]).run().json();
    assert!(typed["types"][0]["tokens"].as_u64() > Some(50), "{typed}");
}

#[test]
fn looking_around_prints_the_command_behind_each_answer() {
    let world = World::demo();
    let lines = "\nls\ndemo\nmcpx types demo --brief\necho text\nhelp\n";
    let output = world.mcpx(["explore"]).stdin(lines).run();
    for line in
        ["$ mcpx ls\n", "$ mcpx tools demo\n", "$ mcpx types demo --brief\n", "$ mcpx search echo text\n"]
    {
        assert!(output.stdout().contains(line), "{line}{output}");
    }
    output.says(&["demo.echo", "DESCRIPTION", "declare const demo"]);
    let refused = world.mcpx(["explore"]).stdin("stop --all\nls\n").status(2).any_stderr().run();
    refused.says(&["explore only shows what there is", "mcpx stop --all", "$ mcpx ls"]);
}

#[test]
fn a_lock_with_a_conflict_in_it_is_written_anew_and_said_by_who_reads_it() {
    let world = world(json!([tool("one", "string", "first")]));
    world.write(".mcpx.lock.json", "<<<<<<< ours\n{");
    world.mcpx(["check"]).status(65).stderr_has("mcpx lock writes it anew").check();
    world.mcpx(["lock", "fake"]).status(65).stderr_has("without names").check();
    world.mcpx(["lock"]).stdout_has("wrote").stderr_has("it is written anew").check();
    let tools = lock(&world)["servers"]["fake"]["tools"].take();
    assert!(tools.as_array().unwrap().iter().any(|tool| tool["name"] == "one"), "{tools}");
    world.mcpx(["check"]).stdout_has("locked").check();
}
