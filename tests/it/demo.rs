//! The demonstration server over real pipes, and the demonstration that `make demo` gives.

use crate::harness::{Runtime, World};
use std::process::Command;

#[test]
fn the_demonstration_server_speaks_mcp_on_its_streams() {
    let world = World::new();
    let lines = [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"add","arguments":{"a":2,"b":3}}}"#,
        "not json",
    ];
    let output = world.mcpx(["demo-server"]).stdin(lines.join("\n")).run();
    let answers = output.json_lines();
    assert_eq!(answers.len(), 3, "{output}");
    assert_eq!(answers[0]["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(answers[1]["result"]["structuredContent"]["sum"], 5);
    assert_eq!(answers[2]["error"]["code"], -32700);
}

/// Runs `tests/demo` with a PATH of what it needs and, perhaps, a runtime.
fn demonstration(world: &World) -> (bool, String) {
    for name in ["mktemp", "mkdir", "ln", "rm", "dirname", "basename", "sed", "env", "cat", "pwd"] {
        if let Some(path) = crate::harness::tools::on_path(name) {
            world.link(name, &path);
        }
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo");
    let output = Command::new("/bin/sh")
        .arg(script)
        .arg(env!("CARGO_BIN_EXE_mcpx"))
        .env_clear()
        .envs(world.environment())
        // Must not reach the demonstration.
        .env("MCPX_OUTPUT_JSON", "true")
        .current_dir(world.dir())
        .output()
        .expect("the demonstration starts");
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.success(), text)
}

#[track_caller]
fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    }
}

#[test]
fn the_demonstration_shows_the_main_job() {
    for runtime in [Runtime::Deno, Runtime::Bun, Runtime::Node26] {
        let world = World::new().with(runtime);
        let (ok, text) = demonstration(&world);
        assert!(ok, "{text}");
        assert_has(&text, &["$ mcpx ls", "hello from mcpx", "\"sum\":42", ".png", "[2,6,12,20]", "\n11\n"]);
        assert!(world.processes().is_empty(), "{text}");
    }
}

#[test]
fn without_a_runtime_the_demonstration_says_so_and_uses_a_shell_script() {
    let world = World::new();
    let (ok, text) = demonstration(&world);
    assert!(ok, "{text}");
    assert_has(&text, &["neither deno, bun nor node", "hello from mcpx", "\n1\n11\n"]);
    assert!(!text.contains("mcpx exec '"), "{text}");
    assert!(world.processes().is_empty(), "{text}");
}

#[test]
fn the_examples_of_resources_and_prompts_do_what_they_say() {
    let world = World::demo();
    let hello = "Hello to whoever reads this from the demonstration server.";
    world.mcpx(["resources", "read", "demo", "demo://greeting"]).stdout(hello).check();
    world
        .mcpx(["prompts", "get", "demo.greet", "name=Ada"])
        .run()
        .says(&["Greet Ada in one friendly sentence."]);
    world.mcpx(["prompts", "complete", "demo.greet", "name", "A"]).stdout("Ada\nAlan\n").check();
}
