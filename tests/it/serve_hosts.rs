//! Other people's hosts and judges: the official SDKs, the inspector, and the
//! server scenarios of the conformance suite.

use crate::harness::{Runtime, World, tools};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::{Command, Output};

fn script(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/conformance").join(name)
}

/// Runs node with a world's environment.
fn node(world: &World, args: &[&str], env: &[(&str, &str)]) -> Output {
    Command::new(Runtime::Node22.path())
        .args(args)
        .current_dir(world.dir())
        .env_clear()
        .envs(world.environment())
        .env("MCPX_BIN", env!("CARGO_BIN_EXE_mcpx"))
        .envs(env.iter().copied())
        .output()
        .expect("node starts")
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn the_official_clients_drive_it_in_both_eras() {
    let fixture = json!({"command": Runtime::Node22.path(), "args": [script("server-fixture.mjs")]});
    let world = World::demo().with(Runtime::Bun).server("fx", fixture);
    let _ = world.mcpx(["ls"]).run();
    let daemon = world.infos().remove(0);
    let url = format!("{}/mcp?mode=both", daemon["endpoint"].as_str().unwrap());
    let token = daemon["token"].as_str().unwrap();
    let hosts = script("server-hosts.mjs");
    for way in ["stdio-old", "stdio-new", "http-old", "http-new"] {
        let output = node(&world, &[hosts.to_str().unwrap(), way, &url], &[("MCPX_TOKEN", token)]);
        assert!(output.status.success(), "{way}: {}", said(&output));
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(found["server"]["name"], "mcpx", "{way}: {found}");
        let names = found["names"].as_array().unwrap();
        assert!(names.contains(&json!("mcpx_call")) && names.contains(&json!("demo__add")), "{way}: {found}");
        let revision = if way.ends_with("new") { "2026-07-28" } else { "handshake" };
        assert_eq!(found["revision"], revision, "{way}");
        // The last report and the answer come at once, and a host may see the answer first.
        assert_eq!(found["progress"][0], 1, "{way}");
        assert_eq!(found["sum"], json!({"sum": 5}), "{way}");
        // By HTTP with a token that nobody configured, programs are not run.
        let thrown = if way.starts_with("stdio") { "script: no more" } else { "refused: " };
        for (at, text) in
            ["not-found: there is no namespace \"nowhere\"", thrown, "usage: "].iter().enumerate()
        {
            let failed = &found["failed"][at];
            assert_eq!(failed[0], true, "{way}: {found}");
            assert!(failed[1].as_str().unwrap().starts_with(text), "{way}: {found}");
        }
        assert_eq!(found["pid"], "number", "{way}");
        let has = |list: &str, item: &str| found["offered"][list].as_array().unwrap().contains(&json!(item));
        assert!(has("resources", "mcpx://fx/test://static-text"), "{way}: {found}");
        assert!(has("templates", "mcpx://fx/test://template/{id}/data"), "{way}: {found}");
        assert!(has("prompts", "fx__test_prompt_with_image"), "{way}: {found}");
        assert_eq!(found["read"]["uri"], "mcpx://fx/test://template/7/data", "{way}");
        assert!(found["read"]["text"].as_str().unwrap().contains("Data for ID: 7"), "{way}: {found}");
        assert_eq!(found["prompt"], "Prompt with arguments: arg1='a', arg2='b'", "{way}");
        assert_eq!(found["completed"], json!(["paris", "park", "party"]), "{way}");
        assert_eq!(found["sampled"], "LLM response: my words", "{way}");
        assert_eq!(found["model"], json!(["fine", "fine", "fine", "fine", "fine"]), "{way}");
        if way.ends_with("old") {
            let task = &found["task"];
            assert_eq!(
                (&task["begun"], &task["ended"][0]),
                (&json!("taskCreated"), &json!("result")),
                "{way}: {task}"
            );
            assert!(task["ended"][1].as_str().unwrap().contains("2 steps"), "{way}: {task}");
            assert_eq!(task["listed"], json!(["completed"]), "{way}");
        }
    }
}

#[test]
fn the_inspector_drives_it() {
    let world = World::demo();
    let inspector =
        tools::installed("node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js");
    let inspect = |args: &[&str]| {
        let mut all = vec![inspector.to_str().unwrap(), "--cli", env!("CARGO_BIN_EXE_mcpx"), "serve"];
        all.extend(args);
        let output = node(&world, &all, &[]);
        assert!(output.status.success(), "{args:?}: {}", said(&output));
        serde_json::from_slice::<Value>(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", said(&output)))
    };
    let listed = inspect(&["--method", "tools/list"]);
    assert!(listed["tools"].as_array().unwrap().iter().any(|t| t["name"] == "mcpx_call"), "{listed}");
    let found = inspect(&["--method", "tools/call", "--tool-name", "mcpx_search", "--tool-arg", "query=add"]);
    assert!(found["content"][0]["text"].as_str().unwrap().contains("demo.add"), "{found}");
    let world = World::new().server("ev", tools::npm_server("everything", &["stdio"]));
    let inspect = |args: &[&str]| {
        let mut all = vec![inspector.to_str().unwrap(), "--cli", env!("CARGO_BIN_EXE_mcpx"), "serve"];
        all.push("--passthrough");
        all.extend(args);
        let output = node(&world, &all, &[]);
        assert!(output.status.success(), "{args:?}: {}", said(&output));
        serde_json::from_slice::<Value>(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", said(&output)))
    };
    let listed = inspect(&["--method", "resources/list"]);
    let uri = listed["resources"][0]["uri"].as_str().unwrap();
    assert!(uri.starts_with("mcpx://ev/"), "{listed}");
    let read = inspect(&["--method", "resources/read", "--uri", uri]);
    assert_eq!(read["contents"][0]["uri"], uri);
    let listed = inspect(&["--method", "prompts/list"]);
    assert!(listed["prompts"].as_array().unwrap().iter().any(|p| p["name"] == "ev__args-prompt"), "{listed}");
    let got = inspect(&["--method", "prompts/get", "--prompt-name", "ev__simple-prompt"]);
    assert!(got["messages"][0]["content"]["text"].is_string(), "{got}");
}

#[test]
fn the_conformance_suite_finds_what_is_expected_and_no_more() {
    let world = World::new();
    let runner = script("server.mjs");
    let output = node(&world, &[runner.to_str().unwrap(), "2025-11-25", "2026-07-28"], &[]);
    assert!(output.status.success(), "{}", said(&output));
}
