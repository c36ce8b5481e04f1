//! Bad input of each kind: a clear error, the right exit code, and no process left
//! (which every world checks when it ends).

use crate::harness::{Runtime, World, alive, signal, tools, wait_until};
use serde_json::json;
use std::time::Duration;

/// Times short enough for tests of servers that never do what they should.
fn impatient(world: World) -> World {
    world.setting(
        "pool",
        json!({"startTimeout": "800ms", "stopGrace": "200ms", "killGrace": "200ms", "coolDownMin": "10ms"}),
    )
}

#[test]
fn a_server_without_command_or_url() {
    let world = World::new().server("nothing", json!({}));
    let output = world.mcpx(["call", "nothing.x"]).status(65).any_stderr().run();
    output.says(&["nothing", "command", "url", ".mcpx.json"]);
}

#[test]
fn a_command_that_is_not_on_the_path_names_the_path() {
    let world = World::new().server("absent", json!({"command": "no-such-server"}));
    let output = world.mcpx(["call", "absent.x"]).status(69).any_stderr().run();
    output.says(&["absent", "no-such-server", world.bin().to_str().unwrap()]);
    let world = World::new().server("absent", json!({"command": "./no/such/file"}));
    world.mcpx(["call", "absent.x"]).status(69).stderr_has("./no/such/file").check();
    let world = World::new().file("plain", "text").server("plain", json!({"command": "./plain"}));
    world.mcpx(["call", "plain.x"]).status(69).stderr_has("plain").check();
}

#[test]
fn garbage_before_json_is_skipped() {
    let world = World::fake(&["--garbage-first", "--garbage-between", "--crlf"]);
    world.mcpx(["call", "fake.echo", "text=through"]).stdout("through\n").check();
}

#[test]
fn messages_in_small_pieces_and_answers_for_nobody_do_no_harm() {
    let world = World::fake(&["--dribble", "--duplicate-answers", "--wrong-id"]);
    for n in 0..3 {
        world.mcpx(["call", "fake.echo", &format!("text={n}")]).stdout(&format!("{n}\n")).check();
    }
}

#[test]
fn a_server_that_exits_at_once_shows_its_last_words() {
    let world = impatient(World::fake(&["--stderr", "licence expired", "--exit-at-once", "9"]));
    let output = world.mcpx(["call", "fake.echo", "text=x"]).status(69).any_stderr().run();
    output.says(&["fake", "9", "licence expired"]);
    assert!(output.seconds < 5.0, "{output}");
    assert!(world.received("fake", "tools/call").is_empty());
}

#[test]
fn a_server_that_never_answers_is_given_up() {
    let world = impatient(World::fake(&[
        "--never-initialize",
        "--ignore-eof",
        "--ignore-term",
        "--stderr",
        "thinking",
    ]));
    let output = world.mcpx(["call", "fake.echo", "text=x"]).any_stderr().output();
    assert!(matches!(output.status, 69 | 124), "{output}");
    output.says(&["fake", "thinking"]);
    world.wait_gone("fake-mcp");
}

#[test]
fn a_server_that_starts_slowly_is_waited_for() {
    let world = World::fake(&["--slow-start", "1500"]);
    world.mcpx(["call", "fake.echo", "text=late"]).stdout("late\n").check();
}

#[test]
fn a_server_that_dies_in_mid_call_leaves_the_outcome_unknown() {
    let world = impatient(World::fake(&[]));
    world.mcpx(["call", "fake.echo", "text=x"]).stdout("x\n").check();
    let output = world.mcpx(["call", "fake.crash", "code:=5"]).status(76).any_stderr().run();
    output.says(&["fake", "5"]);
    let output = world.mcpx(["--json", "call", "fake.crash"]).status(76).any_stderr().run();
    output.says(&["\"kind\":\"outcome-unknown\""]);
    // Each was sent once, and the next call has a new server.
    let crashes =
        world.received("fake", "tools/call").iter().filter(|m| m["params"]["name"] == "crash").count();
    assert_eq!(crashes, 2);
    world.mcpx(["call", "fake.echo", "text=back"]).stdout("back\n").check();
}

#[test]
fn one_that_died_while_idle_is_started_anew() {
    let world = World::fake(&[]);
    world.mcpx(["call", "fake.count"]).stdout("1\n").check();
    signal(world.started("fake")[0], libc::SIGKILL);
    wait_until("it to die", || (!alive(world.started("fake")[0])).then_some(()));
    world.mcpx(["call", "fake.count"]).stdout("1\n").check();
    assert_eq!(world.started("fake").len(), 2);
}

#[test]
fn ctrl_c_while_a_server_starts_ends_the_command_at_once() {
    let world = World::fake(&["--never-initialize"]);
    let running = world.mcpx(["call", "fake.echo", "text=x"]).start();
    wait_until("the server to start", || (!world.received("fake", "initialize").is_empty()).then_some(()));
    running.signal(libc::SIGINT);
    let output = running.wait();
    // A shell sees 130 either way.
    assert!(matches!(output.status, 130 | -2), "{output}");
    assert!(output.seconds < 5.0, "{output}");
    assert!(world.received("fake", "tools/call").is_empty());
}

#[test]
fn one_that_dies_takes_no_other_with_it() {
    let world = impatient(World::fake(&[]).and_fake("other", &[]));
    let running = world.mcpx(["call", "other.sleep", "ms:=800"]).start();
    wait_until("the call to arrive", || (!world.received("other", "tools/call").is_empty()).then_some(()));
    world.mcpx(["call", "fake.crash"]).status(76).any_stderr().check();
    assert_eq!(running.wait().stdout(), "slept 800 ms\n");
}

#[test]
fn fifty_megabytes_by_surprise_pass_or_are_refused_by_the_limit() {
    let world = World::fake(&["--huge", "50000000"]);
    let output = world.mcpx(["call", "fake.echo", "text=x"]).run();
    assert_eq!(output.stdout_bytes.len(), 50_000_001);
    let world = impatient(World::fake(&["--huge", "50000000"])).setting("mcp", json!({"maxMessage": "1MB"}));
    let output = world.mcpx(["call", "fake.echo", "text=x"]).any_stderr().output();
    assert_eq!(output.status, 69, "{output}");
    output.says(&["fake", "mcp.maxMessage"]);
}

#[test]
fn a_line_of_a_hundred_megabytes_is_refused_without_being_kept() {
    let world = World::fake(&["--huge", "100000000"]).setting("mcp", json!({"maxMessage": "1MB"}));
    let output = world.mcpx(["call", "fake.echo", "text=x"]).any_stderr().output();
    assert_eq!(output.status, 69, "{output}");
    output.says(&["fake", "mcp.maxMessage"]);
    // The most that the daemon has ever needed, in kilobytes.
    let daemon = world.daemons().remove(0);
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid)).unwrap();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let most: u64 = most.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(most < 80_000, "{most} kB");
    let output = world.mcpx(["--json", "status"]).run().json();
    assert_eq!(output["instances"][0]["state"], "ready", "{output}");
}

#[test]
fn requests_of_the_server_are_answered() {
    for (method, expected) in [
        ("ping", "\"result\":{}"),
        ("roots/list", "\"roots\""),
        ("sampling/createMessage", "\"error\""),
        ("no/such/method", "-32601"),
    ] {
        let world = World::fake(&["--ask", method]);
        world.mcpx(["call", "fake.echo", "text=x"]).stdout("x\n").check();
        let answer = wait_until("the answer", || {
            let text = world.mcpx(["call", "fake.asked"]).run().stdout();
            (text.trim() != "no answer yet").then_some(text)
        });
        assert!(answer.contains(expected), "{method}: {answer}");
        // In the middle of a call too.
        world.mcpx(["call", "fake.ask", &format!("method={method}")]).run().says(&[expected]);
    }
}

#[test]
fn a_flood_on_stderr_blocks_nobody() {
    let world = World::fake(&["--flood-stderr", "20000000"]);
    world.mcpx(["call", "fake.echo", "text=x"]).stdout("x\n").check();
    let status = world.mcpx(["--json", "status"]).run();
    assert!(status.stdout_bytes.len() < 200_000, "only the tail is kept");
}

#[test]
fn an_answer_too_deep_is_an_error_and_not_a_crash() {
    let world = impatient(World::fake(&[]));
    let output = world.mcpx(["call", "fake.deep", "levels:=100000"]).any_stderr().output();
    assert!(output.status > 0 && output.status < 128, "{output}");
    world.mcpx(["call", "fake.echo", "text=still there"]).stdout("still there\n").check();
}

#[test]
fn a_broken_list_of_tools_says_so() {
    let world = impatient(World::fake(&["--no-list"]));
    world.mcpx(["ls"]).any_stderr().output().says(&["fake", "the list is broken today"]);
}

#[test]
fn an_unknown_revision_is_told() {
    let world = World::fake(&["--protocol", "1999-01-01"]);
    let output = world.mcpx(["call", "fake.echo", "text=x"]).status(69).any_stderr().run();
    output.says(&["fake", "1999-01-01"]);
}

#[test]
fn a_script_that_never_ends_is_ended_by_its_limit() {
    for runtime in [Runtime::Deno, Runtime::Bun, Runtime::Node26] {
        let world = World::demo().with(runtime);
        let output = world
            .mcpx(["exec", "--timeout", "1s", "await new Promise(() => setInterval(() => {}, 1000))"])
            .status(124)
            .any_stderr()
            .run();
        assert!(output.seconds < 10.0, "{output}");
        // One that ignores the polite signal as well.
        let code = "process.on('SIGTERM', () => {}); process.on('SIGINT', () => {}); await new Promise(() => setInterval(() => {}, 1000))";
        let output = world.mcpx(["exec", "--timeout", "1s", code]).status(124).any_stderr().run();
        assert!(output.seconds < 15.0, "{output}");
    }
}

#[test]
fn a_script_that_prints_a_hundred_megabytes_is_passed_whole() {
    for runtime in [Runtime::Deno, Runtime::Bun, Runtime::Node26] {
        let world = World::demo().with(runtime);
        let code = "const line = 'x'.repeat(999999) + '\\n'; for (let i = 0; i < 100; i++) await new Promise((r) => process.stdout.write(line, r));";
        let output = world.mcpx(["exec", code]).run();
        assert_eq!(output.stdout_bytes.len(), 100_000_000, "{runtime:?}");
    }
    // The document keeps a bounded part and says so.
    let world = World::demo().with(Runtime::Bun);
    let code = "const line = 'x'.repeat(999999) + '\\n'; for (let i = 0; i < 100; i++) await new Promise((r) => process.stdout.write(line, r)); return 5";
    let document = world.mcpx(["--json", "exec", code]).any_stderr().run();
    assert!(document.stdout_bytes.len() < 40_000_000);
    assert_eq!(document.json()["result"], 5);
}

#[test]
fn a_script_that_is_killed_ends_in_128_and_the_signal() {
    for runtime in [Runtime::Deno, Runtime::Bun, Runtime::Node26] {
        let world = World::demo().with(runtime);
        let output = world
            .mcpx(["exec", "process.kill(process.pid, 'SIGKILL'); await new Promise(() => {})"])
            .any_stderr()
            .output();
        assert_eq!(output.status, 128 + libc::SIGKILL, "{output}");
    }
}

#[test]
fn a_killed_command_takes_its_script_with_it() {
    for runtime in [Runtime::Deno, Runtime::Bun, Runtime::Node26] {
        let world = World::fake(&[]).with(runtime);
        let running = world.mcpx(["exec", "await fake.hang({})"]).start();
        wait_until("the call to arrive", || (!world.received("fake", "tools/call").is_empty()).then_some(()));
        running.signal(libc::SIGKILL);
        let _ = running.wait();
        wait_until("the script to die", || {
            (!world.processes().iter().any(|p| p.args[0].ends_with(runtime.name()))).then_some(())
        });
    }
}

#[test]
fn a_script_that_ignores_sigterm_is_killed_after_the_grace() {
    let world = World::fake(&[]).with(Runtime::Node26);
    let code = "process.on('SIGTERM', () => {}); await fake.hang({})";
    let running = world.mcpx(["exec", "--script-kill-grace", "300ms", code]).start();
    wait_until("the call to arrive", || (!world.received("fake", "tools/call").is_empty()).then_some(()));
    running.signal(libc::SIGTERM);
    let output = running.wait();
    assert_eq!(output.status, 128 + libc::SIGKILL, "{output}");
    world.wait_gone(Runtime::Node26.name());
}

#[test]
fn children_of_a_script_end_with_its_limit() {
    let world = World::demo().with(Runtime::Bun);
    let code = "const { spawn } = await import('node:child_process'); spawn('sleep', ['1000'], {stdio: 'ignore'}); await new Promise(() => setInterval(() => {}, 1000))";
    world.mcpx(["exec", "--timeout", "1s", code]).status(124).any_stderr().check();
    world.wait_gone("1000");
}

#[test]
fn many_callers_that_leave_free_their_places() {
    let world = World::fake(&[]);
    let running: Vec<_> = (0..20).map(|_| world.mcpx(["call", "fake.hang"]).start()).collect();
    wait_until("the calls to arrive", || (world.received("fake", "tools/call").len() == 20).then_some(()));
    for running in &running {
        running.signal(libc::SIGTERM);
    }
    for running in running {
        let output = running.wait();
        assert_eq!(output.status, 128 + libc::SIGTERM, "{output}");
    }
    wait_until("all to be cancelled", || {
        (world.received("fake", "notifications/cancelled").len() == 20).then_some(())
    });
    world.mcpx(["call", "fake.echo", "text=free"]).limit(Duration::from_secs(10)).stdout("free\n").check();
}

/// Runs a line of shell in a world; `$MCPX` is the binary.
fn shell(world: &World, line: &str) -> (i32, String, String) {
    let output = std::process::Command::new("/bin/sh")
        .args(["-c", line])
        .env_clear()
        .envs(world.environment())
        .env("MCPX", env!("CARGO_BIN_EXE_mcpx"))
        .current_dir(world.dir())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

#[test]
fn an_output_that_takes_nothing_more_is_told() {
    let world = World::demo().with(Runtime::Bun);
    for command in ["ls", "call demo.echo text=x", "types demo"] {
        let (status, _, stderr) = shell(&world, &format!("\"$MCPX\" {command} >/dev/full"));
        assert_eq!(status, 74, "{command}: {stderr}");
        assert!(stderr.contains("no space left"), "{command}: {stderr}");
    }
}

#[test]
fn missing_standard_streams_do_no_harm() {
    let world = World::demo().with(Runtime::Deno);
    let (status, stdout, stderr) = shell(&world, "\"$MCPX\" call demo.echo text=x <&- 2>&-");
    assert_eq!((status, stdout.as_str(), stderr.as_str()), (0, "x\n", ""));
    let (status, stdout, _) = shell(&world, "\"$MCPX\" exec 'return await demo.echo({text: 1 + \"\"})' <&-");
    assert_eq!((status, stdout.as_str()), (0, "1\n"));
}

#[test]
fn a_daemon_without_descriptors_turns_callers_away_and_recovers() {
    let world = World::fake(&[]);
    // Hard and soft, so that the daemon cannot raise it.
    let (status, stdout, stderr) = shell(&world, "ulimit -n 40; \"$MCPX\" call fake.count");
    assert_eq!((status, stdout.as_str()), (0, "1\n"), "{stderr}");
    let running: Vec<_> = (0..60).map(|_| world.mcpx(["call", "fake.sleep", "ms:=1000"]).start()).collect();
    let mut served = 0;
    for running in running {
        let output = running.wait();
        match output.status {
            0 => served += 1,
            69 => {
                output.says(&["try again"]);
            }
            _ => panic!("{output}"),
        }
    }
    assert!(served > 0);
    world.mcpx(["call", "fake.count"]).stdout("2\n").check();
    assert_eq!(world.started("fake").len(), 1);
}

/// A server each of whose tools answers with something that is no tool's result.
const MALFORMED: &str = r#"
const results = { list: { content: "notalist" }, text: "hello" };
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const answers = {
    initialize: () => ({ result: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "odd", version: "1" } } }),
    "tools/list": () => ({ result: { tools: Object.keys(results).map((name) => ({ name, inputSchema: { type: "object" } })) } }),
    "tools/call": () => ({ result: results[params.name] }),
  };
  const answer = answers[method]?.() ?? { error: { code: -32601, message: "no" } };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
});
"#;

#[test]
fn what_is_no_tools_result_is_the_same_error_everywhere() {
    let odd = json!({"command": Runtime::Node22.path(), "args": ["-e", MALFORMED]});
    let mut world = World::new().server("odd", odd);
    world.link("python3", &tools::python());
    for (tool, why) in [("list", "array of"), ("text", "not a tool's result")] {
        let output = world.mcpx(["--json", "call", &format!("odd.{tool}")]).status(69).any_stderr().run();
        let error = &output.json()["error"];
        assert_eq!(error["kind"], "unavailable", "{output}");
        assert!(error["message"].as_str().unwrap().contains(why), "{output}");
        assert!(!output.stdout().contains("struct "), "a type of ours: {output}");
    }
    let code = "const all = []; for (const tool of ['list', 'text']) { try { all.push(await odd[tool]({})) } catch (e) \
        { all.push(e.name, e.kind, e.server, e.tool, (await odd[tool]({}).raw) !== undefined) } } return all";
    let expected = json!([
        "ToolError",
        "unavailable",
        "odd",
        "list",
        true,
        "ToolError",
        "unavailable",
        "odd",
        "text",
        true
    ]);
    for runtime in [Runtime::Deno, Runtime::Bun, Runtime::Node22] {
        world = world.with(runtime);
        assert_eq!(world.mcpx(["exec", "--runtime", runtime.name(), code]).run().json(), expected);
    }
    world.mcpx(["exec", "odd.text({})"]).status(69).any_stderr().stdout("").check();
    world.write(
        "odd.py",
        "from mcpx import tools, ToolError\nfor name in ('list', 'text'):\n    try:\n        print(tools.odd[name]())\n    \
         except ToolError as e:\n        print(e.kind, e.server, e.tool)\n",
    );
    world.mcpx(["run", "odd.py"]).stdout("unavailable odd list\nunavailable odd text\n").check();
}

#[test]
fn input_without_an_end_is_refused_at_the_limit() {
    let world = World::demo().setting("transport", json!({"maxBody": "64KiB"}));
    let endless = vec![b' '; 1 << 20];
    for words in [&["call", "demo.echo", "-"][..], &["exec", "-"], &["exec", "--remote", "--stdin", "1"]] {
        world.mcpx(words).stdin(endless.clone()).status(69).stderr_has("transport.maxBody").check();
    }
    world.mcpx(["call", "demo.echo", "@/dev/zero"]).status(69).stderr_has("more than 65536 bytes").check();
}

#[test]
fn no_message_names_a_type_of_ours() {
    let world = World::demo();
    let _ = world.mcpx(["ls"]).run();
    for (path, body) in [
        ("/v1/call", json!([])),
        ("/v1/call", json!({"server": "demo", "tool": "echo", "context": 1})),
        ("/v1/exec", json!({"code": "1", "hooks": "x"})),
        ("/v1/prompts/get", json!({"server": "demo", "name": "greet", "context": [1, {}]})),
    ] {
        let (status, answer) = world.ask_text("POST", path, Some(&body));
        assert_eq!(status, 400, "{answer}");
        assert!(!answer.contains("struct ") && answer.contains("expected "), "{body}: {answer}");
    }
}
