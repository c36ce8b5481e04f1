//! Declared hooks and event consumers: what they are told, and that they disturb nobody.

use crate::harness::{Runtime, World, wait_until};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The hook of this name as the daemon shows it.
fn hook(world: &World, name: &str) -> Value {
    let all = world.mcpx(["--json", "hooks"]).run().json();
    let found = all["hooks"].as_array().unwrap().iter().find(|hook| hook["name"] == name).cloned();
    found.unwrap_or_else(|| panic!("{name} is not in {all}"))
}

fn consumer(world: &World) -> Value {
    world.mcpx(["--json", "hooks"]).run().json()["consumers"][0].clone()
}

/// The variables of mcpx that a child printed.
fn own_variables(text: &str) -> BTreeMap<String, String> {
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    // The harness marks every process of a world.
    pairs
        .filter(|(name, _)| name.starts_with("MCPX_") && *name != "MCPX_TEST_WORLD")
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .collect()
}

#[test]
fn a_hook_gets_the_event_in_its_environment_and_on_its_stdin() {
    let world = World::demo().setting(
        "hooks",
        json!({
            "calls": {"events": ["call"], "servers": ["demo"], "shell": "env > env.$MCPX_HOOK_EVENT_SEQ; cat > event.$MCPX_HOOK_EVENT_SEQ"},
            "never": {"events": ["call.finished"], "servers": ["other"], "command": ["sh", "-c", "exit 1"]},
        }),
    );
    world.mcpx(["hooks"]).run().says(&["calls", "call of demo", "never"]);
    assert!(world.daemons().is_empty(), "it starts nothing");
    // What belongs to the caller does not reach the hook.
    world
        .mcpx(["call", "demo.echo", "text=x", "--session", "work"])
        .env("MCPX_PARENT_SESSION_ID", "parent")
        .env("MCPX_TRACE_IDS", r#"[["session_id","abc"]]"#)
        .stdout("x\n")
        .check();
    wait_until("the hook to have run", || {
        (hook(&world, "calls")["running"] == 0 && hook(&world, "calls")["runs"] == 1).then_some(())
    });
    let call = world.mcpx(["--json", "events", "--kind", "call"]).run().json_lines().remove(0);
    let seq = call["seq"].as_u64().unwrap();
    let read = |name: &str| std::fs::read_to_string(world.dir().join(format!("{name}.{seq}"))).unwrap();
    let seen: Value = serde_json::from_str(&read("event")).unwrap();
    assert_eq!(seen, call, "the event is what the bus has");
    let wanted: BTreeMap<String, String> = [
        ("MCPX_HOOK_NAME", "calls"),
        ("MCPX_HOOK_PHASE", "observe"),
        ("MCPX_HOOK_EVENT_KIND", "call.finished"),
        ("MCPX_HOOK_EVENT_SEQ", &seq.to_string()),
        ("MCPX_HOOK_EVENT_SERVER", "demo"),
        ("MCPX_HOOK_EVENT_SESSION", "work"),
        ("MCPX_HOOK_EVENT_URI", ""),
        ("MCPX_TRACE_IDS", r#"[["hook","calls"]]"#),
    ]
    .map(|(k, v)| (k.to_owned(), v.to_owned()))
    .into();
    assert_eq!(own_variables(&read("env")), wanted);
    assert_eq!(hook(&world, "never")["runs"], 0);
}

#[test]
fn failing_slow_and_broken_hooks_disturb_nobody_and_are_reported() {
    let world = World::demo().setting(
        "hooks",
        json!({
            "fails": {"events": ["call.finished"], "shell": "echo one >&2; echo the reason >&2; exit 3"},
            "hangs": {"events": ["call.finished"], "command": ["sleep", "1000"], "timeout": "50ms"},
            "missing": {"events": ["call.finished"], "command": ["no-such-program"]},
            "odd": {"events": ["call.finish"], "command": ["x"]},
        }),
    );
    world.mcpx(["call", "demo.echo", "text=x"]).stdout("x\n").check();
    let failed = |name: &str| {
        wait_until(&format!("{name} to have failed"), || (hook(&world, name)["failures"] == 1).then_some(()));
        hook(&world, name)["lastError"].as_str().unwrap().to_owned()
    };
    assert_eq!(failed("fails"), "ended with exit code 3: one; the reason");
    assert_eq!(failed("hangs"), "took longer than 50ms and was killed");
    assert!(failed("missing").contains("no-such-program"));
    assert!(hook(&world, "odd")["problem"].as_str().unwrap().contains("did you mean \"call.finished\""));
    world.wait_gone("1000");
    wait_until("the failures in the log", || {
        let log = world.mcpx(["--json", "log", "--event", "hook.failed"]).run().json_lines();
        (log.len() == 3).then(|| assert!(log.iter().all(|r| r["level"] == "warn" && r["source"] == "hook")))
    });
    world.mcpx(["hooks"]).run().says(&["FAILED", "the reason", "was killed"]);
    world.mcpx(["hooks", "add"]).status(2).any_stderr().check();
}

#[test]
fn what_a_hook_calls_starts_no_hook_and_an_edit_is_followed() {
    let mcpx = env!("CARGO_BIN_EXE_mcpx");
    let hooks = json!({"again": {"events": ["call"], "command": [mcpx, "call", "demo.echo", "text=hooked"]}});
    let world = World::demo().setting("hooks", hooks);
    world.mcpx(["call", "demo.echo", "text=x"]).stdout("x\n").check();
    wait_until("the hook's own call", || {
        let calls = world.mcpx(["--json", "log", "--event", "call", "--limit", "0"]).run().json_lines();
        (calls.len() == 2).then(|| assert_eq!(calls[1]["trace"], json!([["hook", "again"]])))
    });
    wait_until("the hook to end", || (hook(&world, "again")["running"] == 0).then_some(()));
    assert_eq!((&hook(&world, "again")["runs"], &hook(&world, "again")["failures"]), (&json!(1), &json!(0)));
    let world = world.setting("hooks", json!({"other": {"command": ["sh", "-c", "exit 0"]}}));
    world.mcpx(["reload"]).any_stderr().run().says(&[]);
    wait_until("the other hook to run", || (hook(&world, "other")["runs"].as_u64() > Some(0)).then_some(()));
}

#[test]
fn a_consumer_gets_events_in_order_and_goes_on_where_it_was() {
    // It dies at the second event it gets, once; what it was not done with comes again.
    let script = r#"env > env; while read -r line; do
        echo "$line" >> got
        seq=$(printf %s "$line" | tr ',' '\n' | head -n 1 | tr -dc 0-9)
        if [ "$(cat got | tr -dc '\n' | tr '\n' x)" = xx ]; then exit 7; fi
        echo "a word that is no number"
        echo "$seq"
    done; echo left >> got"#;
    let world = World::demo().setting(
        "events",
        json!({"consumers": {"c": {"events": ["call"], "command": ["sh", "-c", script], "session": "watch"}}}),
    );
    for n in 0..4 {
        world.mcpx(["call", "demo.echo", &format!("text={n}")]).stdout(&format!("{n}\n")).check();
    }
    // Its own session's calls are not for it.
    world.mcpx(["call", "demo.echo", "text=own", "--session", "watch"]).stdout("own\n").check();
    let calls = world.mcpx(["--json", "events", "--kind", "call"]).run().json_lines();
    let seqs: Vec<u64> = calls.iter().map(|c| c["seq"].as_u64().unwrap()).collect();
    wait_until("the last event to be acknowledged", || {
        (consumer(&world)["acknowledged"] == seqs[3]).then_some(())
    });
    assert_eq!(consumer(&world)["starts"], 2);
    assert_eq!(consumer(&world)["lastError"], "ended with exit code 7");
    let _ = world.mcpx(["stop"]).run();
    assert!(world.processes().is_empty());
    let got = std::fs::read_to_string(world.dir().join("got")).unwrap();
    let events: Vec<Option<u64>> = got
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).ok().and_then(|e| e["seq"].as_u64()))
        .collect();
    let wanted = [seqs[0], seqs[1], seqs[1], seqs[2], seqs[3]].map(Some);
    assert_eq!(
        events,
        [&wanted[..], &[None]].concat(),
        "in order, the unfinished one again, then the end of stdin"
    );
    let env = own_variables(&std::fs::read_to_string(world.dir().join("env")).unwrap());
    let names: Vec<&str> = env.keys().map(String::as_str).collect();
    assert_eq!(names, ["MCPX_ENDPOINT", "MCPX_SESSION", "MCPX_SESSION_ID"]);
    assert_eq!((env["MCPX_SESSION"].as_str(), env["MCPX_SESSION_ID"].as_str()), ("watch", "watch"));
    assert!(env["MCPX_ENDPOINT"].starts_with("http://127.0.0.1:"));
    world.mcpx(["--json", "log", "--event", "consumer.failed"]).run().says(&["ended with exit code 7"]);
}

#[test]
fn a_consumer_may_be_a_script_that_calls_tools() {
    let world = World::demo().with(Runtime::Bun).file(
        "watch.ts",
        "import { createInterface } from 'node:readline';\n\
         for await (const line of createInterface({ input: process.stdin })) {\n\
           const event = JSON.parse(line);\n\
           await demo.echo({ text: `saw ${event.data.tool}` });\n\
           emit(event.seq);\n\
         }\n",
    );
    let world =
        world.setting("events", json!({"consumers": {"w": {"events": ["call"], "script": "./watch.ts"}}}));
    world.mcpx(["call", "demo.add", "a=1", "b=2"]).any_stderr().run().says(&["3"]);
    let calls =
        || world.mcpx(["--json", "log", "--event", "call", "--session", "consumer-w"]).run().json_lines();
    wait_until("the script's own call", || (calls().len() == 1).then_some(()));
    wait_until("its acknowledgement", || (consumer(&world)["acknowledged"].as_u64() > Some(0)).then_some(()));
    assert_eq!(calls()[0]["run"].as_str().map(str::len), Some(16));
    assert!(consumer(&world).get("lastError").is_none(), "{}", consumer(&world));
    let _ = world.mcpx(["stop"]).run();
    world.wait_gone("watch.ts");
}

#[test]
fn a_consumer_is_told_by_the_next_daemon_what_it_was_not_done_with() {
    // Until it may go on it dies at the first event it gets.
    let script = r#"while read -r line; do
        [ -e go ] || exit 3
        echo "$line" >> got
        printf %s "$line" | tr ',' '\n' | head -n 1 | tr -dc 0-9
        echo
    done"#;
    let world = World::demo().setting(
        "events",
        json!({"restartMax": "100ms", "history": 3, "consumers": {"c": {"events": ["call"], "command": ["sh", "-c", script]}}}),
    );
    // More than the bus remembers.
    let say =
        |text: &str| world.mcpx(["call", "demo.echo", &format!("text={text}")]).any_stderr().run().stdout();
    for n in 0..5 {
        assert_eq!(say(&n.to_string()), format!("{n}\n"));
    }
    let _ = world.mcpx(["stop"]).any_stderr().run();
    // A daemon in between, for which it does nothing either.
    say("between");
    let _ = world.mcpx(["stop"]).any_stderr().run();
    world.write("go", "");
    say("last");
    let got = || std::fs::read_to_string(world.dir().join("got")).unwrap_or_default();
    let events = wait_until("all of it", || {
        let lines: Vec<Value> = got().lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        let calls: Vec<Value> = lines.into_iter().filter(|l| l.get("seq").is_some()).collect();
        (calls.len() >= 7).then_some(calls)
    });
    let daemons: Vec<&str> = events.iter().map(|e| e["daemon"].as_str().unwrap_or("own")).collect();
    assert_eq!(events.len(), 7, "{events:?}");
    assert!(daemons[..5].iter().all(|d| *d == daemons[0]) && daemons[5] != daemons[0] && daemons[5] != "own");
    assert_eq!(daemons[6], "own");
    assert!(
        events[..6].iter().all(|e| e["replayed"] == true) && events[6].get("replayed").is_none(),
        "{events:?}"
    );
    assert!(events.iter().all(|e| e["kind"] == "call.finished" && e["data"]["tool"] == "echo"), "{events:?}");
    let seqs: Vec<u64> = events[..5].iter().map(|e| e["seq"].as_u64().unwrap()).collect();
    assert!(seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");
    // The log had all of it.
    assert!(!got().contains("missed"), "{}", got());
    // What it is done with does not come again.
    let _ = world.mcpx(["stop"]).any_stderr().run();
    say("more");
    wait_until("the next one", || got().lines().filter(|l| l.contains("\"seq\"")).nth(7).map(drop));
    assert_eq!(got().lines().filter(|l| l.contains("\"seq\"")).count(), 8, "{}", got());
}
