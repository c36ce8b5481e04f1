//! The two eras of the protocol: which one a server is spoken to in, what is
//! remembered of that, and that nobody notices.

use crate::harness::{World, tools, wait_until};
use serde_json::json;

/// The methods that a fake server was sent, process by process.
fn sent(world: &World, name: &str) -> Vec<Vec<String>> {
    let mut processes: Vec<(u64, Vec<String>)> = Vec::new();
    for line in world.recorded(name) {
        let pid = line["pid"].as_u64().unwrap();
        if line["event"] == "start" {
            processes.push((pid, Vec::new()));
        }
        if let Some(method) = line["message"]["method"].as_str() {
            let of = processes.iter_mut().rev().find(|(p, _)| *p == pid).expect("a process that started");
            of.1.push(method.to_owned());
        }
    }
    processes.into_iter().map(|(_, methods)| methods).collect()
}

#[test]
fn a_stateless_server_is_found_out_once_and_remembered() {
    let world = World::fake(&["--era", "stateless"]);
    world.mcpx(["call", "fake.echo", "text=hi"]).stdout("hi\n").check();
    // An unknown server is greeted as most are; this one refuses that, and gets another process.
    let first = sent(&world, "fake");
    assert_eq!(first[0], ["initialize"]);
    assert_eq!(first[1], ["server/discover", "tools/list", "tools/call"]);
    assert_eq!(first.len(), 2);
    let _ = world.mcpx(["stop"]).run();
    world.mcpx(["call", "fake.echo", "text=again"]).stdout("again\n").check();
    let later = &sent(&world, "fake")[2..];
    assert_eq!(later, [["server/discover", "tools/call"]], "the next start does not try the other way");
}

#[test]
fn an_ordinary_server_hears_nothing_of_it() {
    let world = World::fake(&[]);
    world.mcpx(["call", "fake.echo", "text=hi"]).stdout("hi\n").check();
    let expected = ["initialize", "notifications/initialized", "tools/list", "tools/call"];
    assert_eq!(sent(&world, "fake"), [expected]);
}

#[test]
fn a_server_that_changed_its_era_is_found_out_again() {
    let world = World::new();
    let era = world.dir().join("era");
    world.write("era", "stateless");
    let script = format!(
        "exec {} --record {} --era $(cat {})",
        env!("CARGO_BIN_EXE_fake-mcp"),
        world.record_file("fake").display(),
        era.display()
    );
    let world = world.server("fake", json!({"command": "sh", "args": ["-c", script]}));
    world.mcpx(["call", "fake.echo", "text=new"]).stdout("new\n").check();
    let _ = world.mcpx(["stop"]).run();
    world.write("era", "initialize");
    world.mcpx(["call", "fake.echo", "text=old"]).stdout("old\n").check();
    let all = sent(&world, "fake");
    assert_eq!(all[2], ["server/discover"], "{all:?}");
    assert_eq!(all[3][0], "initialize", "{all:?}");
}

#[test]
fn the_configuration_may_say_which_era_it_is() {
    let world = World::new().and_fake("fake", &["--era", "sticky"]);
    let record = world.record_file("pinned");
    let block = json!({"command": env!("CARGO_BIN_EXE_fake-mcp"),
        "args": ["--record", record, "--era", "sticky"], "mcpx": {"protocol": "2026-07-28"}});
    let world = world.server("pinned", block);
    world.mcpx(["call", "fake.echo", "text=a"]).stdout("a\n").check();
    world.mcpx(["call", "pinned.echo", "text=b"]).stdout("b\n").check();
    assert_eq!(sent(&world, "fake")[0][0], "initialize");
    assert_eq!(sent(&world, "pinned")[0], ["server/discover", "tools/list", "tools/call"]);

    let world = World::fake(&[]).setting("upstream", json!({"protocol": "2026-07-28"}));
    let output = world.mcpx(["call", "fake.echo", "text=a"]).status(69).any_stderr().run();
    assert!(output.stderr.contains("server/discover"), "{output}");
    let world = World::fake(&[]).setting("upstream", json!({"protocol": "2027-01-01"}));
    world.mcpx(["call", "fake.echo", "text=a"]).status(65).stderr_has("upstream.protocol").check();
}

#[test]
fn a_real_python_server_speaks_both_and_stays_with_one() {
    let mut modern = tools::time_server();
    modern["mcpx"] = json!({"protocol": "2026-07-28"});
    let world = World::new().server("time", tools::time_server()).server("modern", modern);
    for server in ["time", "modern"] {
        let tool = format!("{server}.get_current_time");
        world.mcpx(["call", &tool, "timezone=Asia/Tokyo"]).run().says(&["Asia/Tokyo"]);
    }
    let rows = world.mcpx(["--json", "status"]).run().json()["instances"].clone();
    let protocol = |name: &str| {
        rows.as_array().unwrap().iter().find(|r| r["server"] == name).unwrap()["protocol"].clone()
    };
    assert_eq!((protocol("time"), protocol("modern")), (json!("2025-11-25"), json!("2026-07-28")));
}

#[test]
fn schemas_and_calls_are_the_same_in_both() {
    let world = World::fake(&["--era", "stateless", "--tools", "3"]).and_fake("old", &["--tools", "3"]);
    let signatures = |server: &str| {
        let rows = world.mcpx(["--json", "tools", server]).run().json()["tools"].clone();
        rows.as_array().unwrap().iter().map(|t| t["inputSchema"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(signatures("fake"), signatures("old"));
    for server in ["fake", "old"] {
        let call = format!("{server}.fail");
        world.mcpx(["call", &call, "message=no"]).status(1).any_stderr().run().says(&["no"]);
        let call = format!("{server}.hang");
        world.mcpx(["--timeout", "200ms", "call", &call]).status(124).any_stderr().check();
    }
    wait_until("the cancellation", || world.received("fake", "notifications/cancelled").pop());
}
