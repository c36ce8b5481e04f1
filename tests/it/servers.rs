//! Servers as configuration: tool filters, aliases, profiles, and the commands that change and import them.

use crate::harness::World;
use serde_json::{Value, json};

/// The demonstration server with these options of mcpx's.
fn demo(options: Value) -> Value {
    json!({"command": env!("CARGO_BIN_EXE_mcpx"), "args": ["demo-server"], "mcpx": options})
}

/// What a command answers in JSON.
fn json(world: &World, args: &[&str]) -> Value {
    world.mcpx([&["--json"], args].concat()).any_stderr().output().json()
}

/// The names in a list of an answer's.
fn names(answer: &Value, list: &str, key: &str) -> Vec<String> {
    let rows = answer[list].as_array().unwrap_or_else(|| panic!("no {list} in {answer}"));
    rows.iter().map(|r| r[key].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_tool_filter_holds_in_every_listing_and_every_call() {
    let world = World::new()
        .server("demo", demo(json!({"tools": ["echo", "add", "/^cr/"], "excludeTools": ["c*"]})))
        .server("whole", demo(json!({})));
    let file = world.dir().join(".mcpx.json");
    // Once from the daemon and once from the warm cache.
    for _ in 0..2 {
        let ls = json(&world, &["ls"]);
        assert_eq!(ls["namespaces"][0]["tools"], 2, "{ls}");
        assert!(ls["namespaces"][1]["tools"].as_u64().unwrap() > 10);
        let mut tools = names(&json(&world, &["tools", "demo"]), "tools", "tool");
        tools.sort();
        assert_eq!(tools, ["add", "echo"]);
        assert_eq!(names(&json(&world, &["search", "counter"]), "hits", "server"), ["whole"]);
        let types = world.mcpx(["types", "demo"]).run().stdout();
        assert!(types.contains("echo(") && !types.contains("counter("), "{types}");
    }
    world.mcpx(["call", "demo.echo", "text=hi"]).stdout("hi\n").check();
    world
        .mcpx(["call", "demo.counter"])
        .status(77)
        .stderr_has("\"c*\" of \"excludeTools\"")
        .stderr_has(&file.display().to_string())
        .check();
    world.mcpx(["call", "demo.forecast", "city=x"]).status(77).stderr_has("\"tools\" offers only").check();
    world.mcpx(["call", "demo.ecko"]).status(2).stderr_has("echo").check();
    let error = json(&world, &["call", "demo.counter"]);
    assert_eq!((&error["error"]["kind"], &error["error"]["tool"]), (&json!("refused"), &json!("counter")));
    let _ = world.mcpx(["client", "-o", "c.mjs"]).any_stderr().run();
    let types = std::fs::read_to_string(world.dir().join("c.d.mts")).unwrap();
    let start = |name: &str| types.find(&format!("namespace {name} ")).expect("a namespace each");
    let filtered = &types[start("demo")..start("whole")];
    assert!(filtered.contains("echo") && !filtered.contains("counter"), "{types}");
    assert!(types[start("whole")..].contains("counter"), "{types}");
}

#[test]
fn a_change_of_a_filter_holds_at_once_and_restarts_nothing() {
    let world = World::new().server("demo", demo(json!({})));
    for n in 1..3 {
        let _ = world.mcpx(["call", "demo.counter"]).stdout_has(&n.to_string()).run();
    }
    let world = world.server("demo", demo(json!({"excludeTools": ["echo"]})));
    world
        .mcpx(["call", "demo.echo", "text=x"])
        .status(77)
        .stderr_has("\"excludeTools\" names \"echo\"")
        .check();
    let _ = world.mcpx(["call", "demo.counter"]).stdout_has("3").run();
    let world = world.server("demo", demo(json!({"excludeTools": ["/[/"]})));
    let _ = world
        .mcpx(["call", "demo.echo", "text=x"])
        .status(65)
        .stderr_has("[ without its ]")
        .any_stderr()
        .run();
}

#[test]
fn a_withheld_tool_is_no_misspelling_of_another() {
    let world = World::new().and_fake("fake", &[]).server("demo", demo(json!({"excludeTools": ["add"]})));
    world.mcpx(["call", "demo.add", "a=1", "b=2"]).status(77).stderr_has("demo.add").check();
    let row = json(&world, &["ls"]);
    assert_eq!(row["namespaces"].as_array().unwrap().len(), 2);
}

#[test]
fn an_alias_has_the_definition_and_options_of_its_own() {
    let world = World::new()
        .server("demo", demo(json!({"enabled": false})))
        .server("safe", json!({"aliasOf": "demo", "mcpx": {"tools": ["echo", "counter"]}}))
        .server("other", json!({"aliasOf": "demo"}))
        .server("lost", json!({"aliasOf": "dmeo"}));
    world.mcpx(["call", "safe.echo", "text=hi"]).stdout("hi\n").check();
    world.mcpx(["call", "safe.add", "a=1", "b=2"]).status(77).stderr_has("safe.add").check();
    let _ = world.mcpx(["call", "other.add", "a=1", "b=2"]).stdout_has("3").run();
    world.mcpx(["call", "demo.echo", "text=hi"]).status(77).stderr_has("disabled").check();
    let _ = world.mcpx(["call", "lost.echo"]).status(65).stderr_has("\"demo\"").any_stderr().run();
    // Each has instances of its own.
    let _ = world.mcpx(["call", "safe.counter"]).stdout_has("1").run();
    let _ = world.mcpx(["call", "other.counter"]).stdout_has("1").run();
}

#[test]
fn profiles_choose_among_the_servers_and_one_daemon_serves_them_all() {
    let world = World::new().server("demo", demo(json!({}))).and_fake("fake", &[]);
    let record = world.record_file("fake");
    let fake = json!({
        "command": env!("CARGO_BIN_EXE_fake-mcp"),
        "args": ["--record", record],
        "mcpx": {"profiles": ["work"]},
    });
    let world = world.server("fake", fake);
    let listed = |args: &[&str]| names(&json(&world, args), "namespaces", "name");
    assert_eq!(listed(&["ls"]), ["demo"]);
    assert!(world.started("fake").is_empty(), "what is not selected is not started");
    assert_eq!(listed(&["ls", "--profile", "work"]), ["demo", "fake"]);
    assert_eq!(listed(&["ls", "--profile=work", "--skip-default"]), ["fake"]);
    assert_eq!(listed(&["ls", "--all-profiles"]), ["demo", "fake"]);
    let by_variable = world.mcpx(["--json", "ls"]).env("MCPX_PROFILE", "work,elsewhere").run().json();
    assert_eq!(names(&by_variable, "namespaces", "name"), ["demo", "fake"]);
    world.mcpx(["ls", "--profile", "wrok"]).status(2).stderr_has("\"work\"").check();

    world.mcpx(["call", "fake.echo", "text=hi"]).status(77).stderr_has("--profile work").check();
    world.mcpx(["--profile", "work", "call", "fake.echo", "text=hi"]).stdout("hi\n").check();
    world
        .mcpx(["--skip-default", "call", "demo.echo", "text=hi"])
        .status(77)
        .stderr_has("--skip-default")
        .check();
    assert!(names(&json(&world, &["search", "echo"]), "hits", "server").iter().all(|s| s == "demo"));
    world.mcpx(["types", "fake"]).status(77).stderr_has("--profile work").check();
    let _ = world.mcpx(["refresh"]).stdout_has("demo").run();
    assert_eq!(world.daemons().len(), 1, "one daemon serves all profiles");
}
