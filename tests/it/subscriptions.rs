//! Being told of changes by servers of both eras, made with the official SDK: of
//! lists, and of the resources that are watched.

use crate::harness::{Background, Host, Runtime, World, free_port, wait_until};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;

/// The server of `tests/sdk`.
fn script() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/sdk/server.mjs")
}

/// The same at a port, once it accepts connections.
fn at(port: u16) -> Background {
    let mut command = Command::new(Runtime::Node26.path());
    command.arg(script()).args(["http", &port.to_string()]);
    let server = Background::start(command);
    wait_until("the server to listen", || std::net::TcpStream::connect(("127.0.0.1", port)).ok());
    server
}

/// It in each way, by name: over pipes in both eras, and over HTTP.
fn world(port: u16) -> World {
    let pipes = |protocol: &str| json!({"command": Runtime::Node26.path(), "args": [script(), "stdio"], "mcpx": {"protocol": protocol}});
    World::new().server("old", pipes("2025-11-25")).server("new", pipes("2026-07-28")).server(
        "web",
        json!({"url": format!("http://127.0.0.1:{port}/mcp"), "mcpx": {"protocol": "2026-07-28"}}),
    )
}

/// How often each resource of a server was told of.
fn told(world: &World, server: &str, uri: &str) -> usize {
    let text = world.mcpx(["--json", "events", "--kind", "resource.updated"]).run().stdout();
    let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    events.filter(|e| e["server"] == server && (e["uri"] == uri || e["data"]["uri"] == uri)).count()
}

#[test]
fn a_watched_resource_is_told_of_in_both_eras_and_both_transports() {
    let port = free_port();
    let _server = at(port);
    let world = world(port);
    for server in ["old", "new", "web"] {
        let touch = format!("{server}.touch");
        let _ = world.mcpx(["resources", "subscribe", server, "memo://one"]).run();
        let _ = world.mcpx(["resources", "subscribe", server, "memo://two"]).run();
        let _ = world.mcpx(["call", &touch]).run();
        for uri in ["memo://one", "memo://two"] {
            wait_until("the update", || (told(&world, server, uri) == 1).then_some(()));
        }
        let _ = world.mcpx(["resources", "unsubscribe", server, "memo://one"]).run();
        let _ = world.mcpx(["call", &touch]).run();
        wait_until("the second update", || (told(&world, server, "memo://two") == 2).then_some(()));
        let one = told(&world, server, "memo://one");
        // With a handshake this server tells of everything, watched or not.
        assert!(one == 1 || server == "old", "{server} is not watched any more, and was told of {one} times");
        let _ = world.mcpx(["resources", "unsubscribe", server, "memo://two"]).run();
        let _ = world.mcpx(["resources", "unsubscribe", server, "memo://two"]).run();
    }
    let spoken = world.mcpx(["--json", "status"]).run().json();
    let protocols: Vec<&Value> =
        spoken["instances"].as_array().unwrap().iter().map(|row| &row["protocol"]).collect();
    assert_eq!(protocols.iter().filter(|p| **p == "2026-07-28").count(), 2, "{spoken}");
}

#[test]
fn a_server_that_begins_anew_is_listened_to_again() {
    let port = free_port();
    let server = at(port);
    let world = world(port).setting("upstream", json!({"retry": "20ms", "retryMost": "100ms"}));
    let _ = world.mcpx(["resources", "subscribe", "web", "memo://one"]).run();
    drop(server);
    let _server = at(port);
    // What happened while it was away is not known, so it counts as changed.
    wait_until("the return", || (told(&world, "web", "memo://one") == 1).then_some(()));
    let _ = world.mcpx(["call", "web.touch"]).run();
    wait_until("the update", || (told(&world, "web", "memo://one") == 2).then_some(()));
}

#[test]
fn lists_that_change_are_read_again() {
    let port = free_port();
    let _server = at(port);
    let world = world(port);
    for server in ["old", "new", "web"] {
        let _ = world.mcpx(["call", &format!("{server}.grow")]).run();
        wait_until(&format!("the new tool of {server}"), || {
            let tools = world.mcpx(["--json", "tools", server]).run().json();
            tools["tools"].as_array().unwrap().iter().any(|t| t["tool"] == "grown1").then_some(())
        });
        world.mcpx(["call", &format!("{server}.grown1")]).stdout("new\n").check();
    }
    for kind in ["prompt.list", "resource.list"] {
        wait_until("the other lists", || {
            world.mcpx(["--json", "events", "--kind", kind]).run().stdout().contains("\"web\"").then_some(())
        });
    }
}

#[test]
fn a_server_that_tells_of_nothing_says_so() {
    let world = World::fake(&["--era", "stateless", "--listen", "refused"])
        .and_fake("partly", &["--era", "stateless", "--listen", "partly"])
        .and_fake("silent", &["--era", "stateless", "--listen", "silent"])
        .setting("pool", json!({"callTimeout": "300ms"}));
    for server in ["fake", "partly"] {
        world
            .mcpx(["resources", "subscribe", server, "memo://one"])
            .status(2)
            .stderr_has("does not tell when a resource changes")
            .check();
    }
    world.mcpx(["resources", "subscribe", "silent", "memo://one"]).status(124).any_stderr().check();
    // Nobody waits for the silent one any more, and it knows.
    wait_until("the word that it is over", || world.received("silent", "notifications/cancelled").pop());
}

#[test]
fn a_host_watches_resources_of_a_stateless_server_too() {
    let port = free_port();
    let _server = at(port);
    let world = world(port);
    let mut host = Host::greeted(&world, &["--passthrough"]);
    for server in ["new", "web"] {
        let uri = format!("mcpx://{server}/memo://two");
        assert_eq!(host.ask("resources/subscribe", json!({"uri": uri})), json!({}));
        let _ = host.call(&format!("{server}__touch"), json!({}));
        assert_eq!(host.notified("notifications/resources/updated")["params"]["uri"], uri);
    }
    assert_eq!(host.end(), 0);
}

/// How often a fake server was asked for its tools.
fn listed(world: &World, server: &str) -> usize {
    world.received(server, "tools/list").len()
}

#[test]
fn a_list_is_as_old_as_its_server_lets_it_become() {
    let promising = |ms| ["--era", "stateless", "--ttl", ms];
    let world = World::fake(&promising("1"))
        .and_fake("lasting", &promising("3600000"))
        .and_fake("unsaid", &promising("0"));
    for _ in 0..3 {
        let _ = world.mcpx(["ls"]).run();
    }
    assert!(listed(&world, "fake") >= 3, "asked each time");
    assert_eq!((listed(&world, "lasting"), listed(&world, "unsaid")), (1, 1));
    // A program's call does not wait for that.
    let before = listed(&world, "fake");
    let call = json!({"server": "fake", "tool": "echo", "arguments": {"text": "hi"}});
    let (_, said) = world.ask("POST", "/v1/call", Some(&call));
    assert_eq!(said["result"]["content"][0]["text"], "hi", "{said}");
    assert_eq!(listed(&world, "fake"), before);
    // Before a tool is said not to be there, the server is asked, unless it gave its word.
    for (server, asked) in [("fake", 1), ("unsaid", 1), ("lasting", 0)] {
        let before = listed(&world, server);
        let call = json!({"server": server, "tool": "nothing_like_it"});
        assert_eq!(world.ask("POST", "/v1/call", Some(&call)).1["error"]["kind"], "not-found");
        assert_eq!(listed(&world, server) - before, asked, "{server}");
    }
}

#[test]
fn a_tool_that_nobody_was_told_of_is_found_when_it_is_called() {
    let port = free_port();
    let _server = at(port);
    let world = world(port);
    let _ = world.mcpx(["call", "web.grow_silently"]).run();
    world.mcpx(["call", "web.grown1"]).stdout("new\n").check();
}

#[test]
fn a_private_list_is_read_anew_by_another_daemon_and_after_a_restart() {
    let args = ["--era", "stateless", "--ttl", "3600000", "--cache-scope"];
    let world = World::fake(&[&args[..], &["private"]].concat())
        .and_fake("public", &[&args[..], &["public"]].concat());
    let _ = world.mcpx(["ls"]).run();
    let _ = world.mcpx(["stop"]).run();
    for server in ["public", "fake"] {
        world.mcpx(["call", &format!("{server}.echo"), "text=hi"]).stdout("hi\n").check();
    }
    wait_until("the list", || (listed(&world, "fake") == 2).then_some(()));
    assert_eq!(listed(&world, "public"), 1);
    let _ = world.mcpx(["restart"]).run();
    let _ = world.mcpx(["ls"]).run();
    assert_eq!((listed(&world, "fake"), listed(&world, "public")), (3, 1));
}
