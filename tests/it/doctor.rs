//! `mcpx doctor`: what it finds, what it says to do, what it repairs, and what it leaves alone.

use crate::harness::{Runtime, World};
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

/// The findings of a run whose exit code must be this.
fn findings(world: &World, args: &[&str], status: i32) -> Vec<Value> {
    let args = ["--json", "doctor"].iter().chain(args).copied();
    let body = world.mcpx(args).status(status).any_stderr().run().json();
    assert_eq!(body["ok"], status == 0, "{body}");
    body["findings"].as_array().unwrap().clone()
}

/// The finding of a check that says this.
#[track_caller]
fn find<'a>(all: &'a [Value], check: &str, part: &str) -> &'a Value {
    let fits = |f: &&Value| f["check"] == check && f["what"].as_str().unwrap().contains(part);
    all.iter().find(fits).unwrap_or_else(|| panic!("no {check} finding says {part:?}: {all:#?}"))
}

#[test]
fn a_sound_setup_is_said_to_be_sound() {
    let world = World::demo().with(Runtime::Deno).env("GITHUB_TOKEN", "hunter2");
    let output = world.mcpx(["doctor", "--verbose"]).run();
    output.says(&[
        "0 errors",
        "started and listed 14 tools",
        "GITHUB_TOKEN",
        "deno at",
        "are free for state",
    ]);
    assert!(!output.stdout().contains("hunter2"), "names, never values: {output}");
    let all = findings(&world, &[], 0);
    let secrets = find(&all, "secrets", "GITHUB_TOKEN");
    assert!(secrets["level"] == "info" && secrets["todo"].as_str().unwrap().contains("inheritEnv"));
    find(&all, "daemon", "answers");
    assert!(find(&all, "runtime", "deno")["what"].as_str().unwrap().contains("strict"));
}

#[test]
fn every_fault_has_a_level_and_what_to_do() {
    let world = World::demo()
        .server("absent", json!({"command": "no-such-program-at-all"}))
        .and_fake("loud", &["--garbage-first"])
        .server("typo", json!({"command": "x", "mcpx": {"scop": "session"}}))
        .setting("pool", json!({"callTimeuot": "5s"}))
        .env("NODE_EXTRA_CA_CERTS", "/nowhere/ca.pem")
        .env("HTTPS_PROXY", "http://user:hunter2@proxy.example.com:3128");
    let output = world.mcpx(["doctor"]).status(1).any_stderr().run();
    assert!(!output.stdout().contains("hunter2"), "{output}");
    let all = findings(&world, &[], 1);
    let absent = all.iter().filter(|f| f["subject"] == "absent" && f["level"] == "error");
    assert_eq!(absent.count(), 1, "one fault is one finding: {all:#?}");
    for (check, part, level) in [
        ("server", "no-such-program-at-all", "error"),
        ("configuration", "unknown key \"scop\"", "error"),
        ("configuration", "did you mean \"pool.callTimeout\"", "warning"),
        ("server", "no MCP message on its stdout", "warning"),
        ("network", "/nowhere/ca.pem", "warning"),
        ("network", "through the proxy proxy.example.com:3128", "info"),
        ("runtime", "no JavaScript runtime", "warning"),
    ] {
        assert_eq!(find(&all, check, part)["level"], level, "{part}");
    }
    assert!(
        all.iter()
            .filter(|f| f["level"] == "warning")
            .all(|f| f["todo"].is_string() || f["what"].as_str().unwrap().starts_with("tools ")),
        "{all:#?}"
    );
    // Started by hand: without servers, and a warning alone is no failure unless that is asked for.
    let world = World::demo();
    findings(&world, &["--no-servers"], 0);
    assert!(world.processes().is_empty(), "{:?}", world.processes());
    findings(&world, &["--no-servers", "--strict"], 1);
    let world = World::new().config("{ oops");
    let all = findings(&world, &[], 1);
    find(&all, "configuration", "expected a key");
    // The file is there: that there is none would be wrong.
    assert!(!all.iter().any(|f| f["what"].as_str().unwrap().contains("no configuration file")), "{all:#?}");
}

#[test]
fn fix_closes_what_is_open_and_prunes_what_is_stale_and_nothing_else() {
    let world = World::demo();
    let _ = world.mcpx(["call", "demo.echo", "text=x"]).run();
    let info = fs::read_dir(world.state()).unwrap().flatten().map(|e| e.path());
    // Beside it is what is known of its children.
    let named = |p: &std::path::PathBuf| {
        let name = p.file_name().unwrap().to_string_lossy();
        name.starts_with("daemon-") && name.ends_with(".json")
    };
    let info = info.filter(named).collect::<Vec<_>>().remove(0);
    let kept = fs::read(&info).unwrap();
    let _ = world.mcpx(["stop", "--all"]).run();
    world.wait_gone("daemon");
    // As after a kill -9: the file is there, the process is not.
    fs::write(&info, kept).unwrap();
    fs::set_permissions(world.state(), Permissions::from_mode(0o755)).unwrap();
    let all = findings(&world, &["--no-servers"], 0);
    assert_eq!(find(&all, "files", "open to others")["level"], "warning");
    assert_eq!(find(&all, "daemon", "left its files")["level"], "warning");
    let before = fs::read(world.dir().join(".mcpx.json")).unwrap();
    let fixed = world.mcpx(["--json", "doctor", "--fix", "--no-servers"]).any_stderr().run().json();
    assert!(fixed["fixed"].as_array().unwrap().len() >= 2, "{fixed}");
    assert!(!info.exists());
    assert_eq!(fs::metadata(world.state()).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(fs::read(world.dir().join(".mcpx.json")).unwrap(), before);
    let all = findings(&world, &["--no-servers"], 0);
    assert!(!all.iter().any(|f| f["what"].as_str().unwrap().contains("open to others")), "{all:#?}");
}

#[test]
fn a_daemon_with_another_environment_is_told() {
    let world = World::demo();
    let _ = world.mcpx(["call", "demo.echo", "text=x"]).run();
    let path = format!("{}:/opt/tools/bin", world.bin().display());
    let output = world.mcpx(["--json", "doctor", "--no-servers"]).env("PATH", path).any_stderr().run().json();
    let all = output["findings"].as_array().unwrap().clone();
    let found = find(&all, "daemon", "/opt/tools/bin");
    assert_eq!(found["level"], "warning");
    assert!(found["todo"].as_str().unwrap().contains("mcpx stop"));
}

#[test]
fn a_server_that_hangs_is_blamed_itself_and_each_fault_has_something_to_do() {
    let world = World::demo()
        .server("hang", json!({"command": "/bin/sleep", "args": ["100"]}))
        .server("gone", json!({"command": "/no/such/program"}))
        .server("closed", json!({"url": "http://127.0.0.1:1/mcp"}));
    let report =
        world.mcpx(["--json", "doctor", "--doctor-timeout", "1s"]).status(1).any_stderr().run().json();
    let findings = report["findings"].as_array().unwrap();
    let of = |name: &str| findings.iter().find(|f| f["subject"] == name).unwrap();
    let what = of("hang")["what"].as_str().unwrap();
    assert!(what.contains("the server hang did not answer within 1s"), "{report}");
    for finding in findings.iter().filter(|f| f["level"] == "error" || f["level"] == "warning") {
        assert!(finding["todo"].as_str().is_some_and(|todo| !todo.is_empty()), "{finding}");
    }
    assert_eq!((&of("gone")["level"], &of("closed")["level"]), (&json!("error"), &json!("error")));
}
