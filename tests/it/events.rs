//! What a daemon tells of what happens: as a list, and as a stream that goes on.

use crate::harness::{World, wait_until};
use serde_json::{Value, json};

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["kind"].as_str().unwrap()).collect()
}

#[test]
fn calls_and_their_outcomes_are_remembered_in_order() {
    let world = World::demo();
    world.mcpx(["events"]).status(69).stderr_has("no daemon is running").check();
    world.mcpx(["call", "demo.echo", "text=x", "--session", "work"]).stdout("x\n").check();
    world.mcpx(["call", "demo.fail", "message=no"]).status(1).any_stderr().check();
    let all = world.mcpx(["--json", "events"]).run().json_lines();
    assert_eq!(
        kinds(&all),
        ["daemon.started", "server.started", "tools.changed", "call.finished", "call.finished"],
        "each once, in order"
    );
    let seqs: Vec<u64> = all.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, [1, 2, 3, 4, 5]);
    let call = &all[3];
    assert_eq!((&call["server"], &call["session"]), (&"demo".into(), &"work".into()));
    assert_eq!((&call["data"]["tool"], &call["data"]["outcome"]), (&"echo".into(), &"ok".into()));
    assert!(call["data"]["ms"].as_f64().unwrap() > 0.0);
    assert_eq!(all[4]["data"]["outcome"], "tool");
    // For a person, and narrowed down.
    let calls = world.mcpx(["events", "--kind", "call", "--session", "work"]).run();
    assert_eq!(calls.stdout().lines().count(), 1, "{calls}");
    calls.says(&["call.finished", "demo work", "tool=echo", "outcome=ok"]);
    assert!(world.mcpx(["events", "--since", "4"]).run().stdout().contains("outcome=tool"));
    world.mcpx(["events", "--kind", "cal"]).status(2).stderr_has("did you mean \"call").check();
    world.mcpx(["events", "--since", "x"]).status(2).any_stderr().check();
}

#[test]
fn a_stream_goes_on_until_the_daemon_stops() {
    let world = World::demo();
    world.mcpx(["call", "demo.echo", "text=x"]).stdout("x\n").check();
    let following =
        world.mcpx(["--json", "events", "--follow", "--since", "0", "--kind", "call", "--kind", "daemon"]);
    let following = following.start();
    for n in 0..20 {
        world.mcpx(["call", "demo.echo", &format!("text={n}")]).stdout(&format!("{n}\n")).check();
    }
    let _ = world.mcpx(["stop"]).run();
    let output = following.wait();
    assert_eq!(output.status, 0, "{output}");
    let seen = output.json_lines();
    let seen = kinds(&seen);
    assert_eq!((seen.first(), seen.last()), (Some(&"daemon.started"), Some(&"daemon.stopping")));
    assert_eq!(seen.iter().filter(|kind| **kind == "call.finished").count(), 21, "{output}");
}

#[test]
fn a_reader_that_leaves_is_let_go() {
    let world = World::demo();
    world.mcpx(["call", "demo.echo", "text=x"]).stdout("x\n").check();
    let following = world.mcpx(["events", "--follow", "--since", "0"]).start();
    // It listens for signals before it asks.
    let tasks = format!("/proc/{}/task", following.pid());
    wait_until("the command to listen", || {
        let mut threads = std::fs::read_dir(&tasks).unwrap();
        threads
            .any(|t| std::fs::read(t.unwrap().path().join("comm")).is_ok_and(|c| c == b"signals\n"))
            .then_some(())
    });
    following.signal(2);
    assert_eq!(following.wait().status, 130);
    // The daemon has no request in flight then: stopping waits for nobody.
    let _ = world.mcpx(["stop"]).run();
    assert!(world.processes().is_empty());
}

#[test]
fn a_time_reaches_back_over_daemons_and_what_this_one_forgot() {
    let world = World::demo().setting("events", json!({"history": 2}));
    let say = |text: &str| {
        world.mcpx(["call", "demo.echo", &format!("text={text}")]).any_stderr().run().says(&[text]);
    };
    for n in 0..3 {
        say(&n.to_string());
    }
    let since = |more: &[&str]| {
        let words = [&["--json", "events", "--since", "1h", "--kind", "call"], more].concat();
        world.mcpx(words).run().json_lines()
    };
    let calls = wait_until("the log has the calls", || Some(since(&[])).filter(|calls| calls.len() == 3));
    assert!(calls.iter().all(|c| c["kind"] == "call.finished" && c["data"]["tool"] == "echo"), "{calls:?}");
    let seqs: Vec<u64> = calls.iter().map(|c| c["seq"].as_u64().unwrap()).collect();
    assert!(seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");
    let _ = world.mcpx(["stop"]).any_stderr().run();
    assert_eq!(since(&[]).len(), 3, "without a daemon");
    say("again");
    wait_until("the log has that one too", || Some(since(&[])).filter(|calls| calls.len() == 4));
    assert!(since(&["--server", "other"]).is_empty());
    // Another configuration's daemon has another key.
    let words = ["--json", "events", "--since", "1h"];
    let other = World::new();
    assert!(other.mcpx(words).run().json_lines().is_empty());
    world.mcpx(["events", "--since", "soon"]).status(2).stderr_has("is no time").check();
    world.mcpx(["events", "--since", "1h", "--kind", "cal"]).status(2).stderr_has("did you mean").check();
}

#[test]
fn that_nothing_is_like_what_was_asked_for_is_said() {
    let world = World::demo();
    world.mcpx(["call", "demo.echo", "text=x"]).stdout("x\n").check();
    world.mcpx(["events", "--server", "bogus"]).stdout("").stderr_has("no event").check();
    world.mcpx(["events", "--server", "bogus", "--since", "1h"]).stdout("").stderr_has("no event").check();
    world.mcpx(["--json", "events", "--server", "bogus"]).stdout("").check();
    world.mcpx(["log", "--source", "bogus"]).status(2).stderr_has("takes daemon, server, script").check();
    world.mcpx(["log", "--source", "serve"]).status(2).stderr_has("did you mean \"server\"").check();
    world.mcpx(["log", "--server", "bogus", "--limit", "0"]).stdout("").stderr_has("no record").check();
}
