//! Resources, prompts and completion, of a real server and over both transports.

use crate::harness::{World, free_port, tools, wait_until};
use serde_json::json;

fn everything() -> World {
    World::new().server("ev", tools::npm_server("everything", &["stdio"]))
}

#[test]
fn resources_are_listed_and_read() {
    let world = everything().server("files", json!({"command": "/nonexistent/server"}));
    let all = world.mcpx(["--json", "resources"]).any_stderr().run().json();
    assert!(all["resources"].as_array().unwrap().len() > 3, "{all}");
    assert_eq!(all["resources"][0]["server"], "ev");
    assert_eq!(all["failures"][0]["server"], "files");
    let uri = all["resources"][0]["uri"].as_str().unwrap().to_owned();
    let text = world.mcpx(["resources", "read", "ev", &uri]).run().stdout();
    assert!(!text.trim().is_empty());
    let whole = world.mcpx(["--json", "resources", "read", "ev", &uri]).run().json();
    assert_eq!(whole["contents"][0]["uri"], uri);
    world.mcpx(["resources", "templates", "ev"]).run().says(&["ev", "{resourceId}"]);
    world
        .mcpx(["resources", "read", "ev", "nothing://there"])
        .any_stderr()
        .output()
        .says(&["nothing://there"]);
    world.mcpx(["resources", "ls", "files"]).status(69).stderr_has("files").check();
    world.mcpx(["resources", "raed", "ev"]).status(2).stderr_has("read").check();
}

#[test]
fn prompts_are_filled_in_and_their_arguments_completed() {
    let port = free_port();
    let _server = tools::everything_at(port, "streamableHttp");
    let world = everything().server("web", json!({"url": format!("http://127.0.0.1:{port}/mcp")}));
    world.mcpx(["prompts"]).run().says(&["ev", "web", "args-prompt(city, state?)"]);
    for server in ["ev", "web"] {
        let prompt = format!("{server}.args-prompt");
        world.mcpx(["prompts", "get", &prompt, "city=Bern", "state=BE"]).run().says(&["user:", "Bern"]);
        world.mcpx(["prompts", "get", &prompt]).any_stderr().output().says(&["city"]);
        let prompt = format!("{server}.completable-prompt");
        let values = world.mcpx(["prompts", "complete", &prompt, "department", "E"]).run().stdout();
        assert!(values.contains("Engineering"), "{values}");
    }
}

#[test]
fn a_resource_that_changes_is_an_event() {
    let world = everything();
    let all = world.mcpx(["--json", "resources", "ls", "ev"]).run().json();
    let uri = all["resources"][0]["uri"].as_str().unwrap().to_owned();
    let _ = world.mcpx(["resources", "subscribe", "ev", &uri]).run();
    let _ = world.mcpx(["call", "ev.toggle-subscriber-updates"]).run();
    wait_until("the update", || {
        let events = world.mcpx(["--json", "events", "--kind", "resource.updated"]).run().stdout();
        events.contains(&uri).then_some(())
    });
    let _ = world.mcpx(["resources", "unsubscribe", "ev", &uri]).run();
}

#[test]
fn what_a_server_logs_is_an_event() {
    let world = everything();
    let _ = world.mcpx(["call", "ev.toggle-simulated-logging"]).run();
    wait_until("a record", || {
        let events = world.mcpx(["--json", "events", "--kind", "server.logged"]).run().stdout();
        events.contains("\"level\"").then_some(())
    });
}
