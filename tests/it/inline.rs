//! `--no-daemon`: one command is its own daemon, and nothing is left behind it
//! however it ends, but for the log and the artifacts.

use crate::harness::{Runtime, World, signal, wait_until};
use serde_json::json;
use std::path::Path;

/// Nothing of a daemon is there: no process, and no file but the cache and the log.
fn nothing_is_left(world: &World) {
    wait_until("no process is left", || world.processes().is_empty().then_some(()));
    let state: Vec<_> = std::fs::read_dir(world.state())
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "log" && name != "artifacts")
        .collect();
    assert!(state.is_empty(), "{state:?}");
    let left: Vec<_> =
        std::fs::read_dir(world.home().parent().unwrap().join("tmp")).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn commands_leave_nothing_behind() {
    let world = World::demo().and_fake("fake", &["--fork-grandchild"]).env("MCPX_DAEMON_INLINE", "true");
    let _ = world.mcpx(["ls"]).stdout_has("demo").stdout_has("fake").run();
    nothing_is_left(&world);
    world.mcpx(["call", "demo.echo", "text=x"]).stdout("x\n").check();
    world.mcpx(["call", "fake.echo", "text=y"]).stdout("y\n").check();
    nothing_is_left(&world);
    let _ = world.mcpx(["refresh"]).stdout_has("demo").run();
    let _ = world.mcpx(["status"]).stdout_has("no daemon is running").run();
    let _ = world.mcpx(["call", "demo.fail", "message=no"]).status(1).any_stderr().run();
    nothing_is_left(&world);
}

#[test]
fn the_short_flag_ignores_a_daemon_that_runs() {
    let world = World::fake(&[]);
    world.mcpx(["call", "fake.echo", "text=x"]).stdout("x\n").check();
    world.mcpx(["--no-daemon", "call", "fake.echo", "text=y"]).stdout("y\n").check();
    assert_eq!(world.started("fake").len(), 2, "a server of its own");
    assert_eq!(world.daemons().len(), 1, "and the daemon stays");
}

#[test]
fn scripts_run_in_every_runtime() {
    for runtime in [Runtime::Deno, Runtime::Bun, Runtime::Node22] {
        let world = World::demo().with(runtime);
        let code = "const all = await Promise.all([1, 2, 3].map((n) => demo.add({ a: n, b: 1 })));\n\
                    return all.map((r) => r.sum).join()";
        let words = ["exec", "--no-daemon", "--runtime", runtime.name(), code];
        world.mcpx(words).stdout("2,3,4\n").any_stderr().check();
        nothing_is_left(&world);
    }
}

#[test]
fn a_program_with_limited_tools_has_no_more_of_them() {
    let world = World::demo().with(Runtime::Deno);
    let code = "try { await demo.add({ a: 1, b: 1 }) } catch (e) { return e.kind }";
    let world =
        world.setting("script", serde_json::json!({"profiles": {"little": {"tools": ["demo.echo"]}}}));
    let words = ["exec", "--no-daemon", "--permissions", "little", code];
    world.mcpx(words).stdout("refused\n").any_stderr().check();
    nothing_is_left(&world);
}

#[test]
fn an_mcpx_inside_the_script_uses_the_same_daemon() {
    let world = World::fake(&[]);
    world.link("mcpx", Path::new(env!("CARGO_BIN_EXE_mcpx")));
    world.write("x.sh", "#!/bin/sh\nmcpx call fake.echo text=1\nmcpx call fake.echo text=2\n");
    world.mcpx(["run", "--no-daemon", "x.sh"]).stdout("1\n2\n").any_stderr().check();
    assert_eq!(world.started("fake").len(), 1);
    nothing_is_left(&world);
}

#[test]
fn signals_leave_nothing_behind() {
    for (number, status) in [(libc::SIGINT, 130), (libc::SIGTERM, 143), (libc::SIGHUP, 129)] {
        for words in [&["call", "fake.echo", "text=x"][..], &["refresh"]] {
            let args: &[&str] = if words[0] == "call" {
                &["--hang-on-call", "--fork-grandchild"]
            } else {
                &["--never-initialize", "--fork-grandchild"]
            };
            let world = World::fake(args).env("MCPX_DAEMON_INLINE", "true");
            let running = world.mcpx(words).start();
            wait_until("the server is at work", || {
                let calls = !world.received("fake", "tools/call").is_empty();
                let started = words[0] != "call" && !world.started("fake").is_empty();
                (calls || started).then_some(())
            });
            running.signal(number);
            let output = running.wait();
            assert_eq!(output.status, status, "{words:?}: {output}");
            nothing_is_left(&world);
        }
    }
}

#[test]
fn ctrl_c_ends_a_script_and_its_servers() {
    let world = World::fake(&["--hang-on-call"]).with(Runtime::Node22).env("MCPX_DAEMON_INLINE", "true");
    let running = world.mcpx(["exec", "await fake.echo({ text: 'x' })"]).start();
    wait_until("the call is there", || (!world.received("fake", "tools/call").is_empty()).then_some(()));
    running.signal(libc::SIGINT);
    assert_eq!(running.wait().status, 130);
    nothing_is_left(&world);
}

#[test]
fn one_that_is_killed_leaves_no_process_and_the_next_one_tidies_up() {
    let world = World::fake(&["--hang-on-call", "--fork-grandchild"]).env("MCPX_DAEMON_INLINE", "true");
    let running = world.mcpx(["call", "fake.echo", "text=x"]).start();
    wait_until("the call is there", || (!world.received("fake", "tools/call").is_empty()).then_some(()));
    signal(running.pid(), libc::SIGKILL);
    assert_eq!(running.wait().status, -9);
    let _ = world.mcpx(["refresh"]).output();
    nothing_is_left(&world);
}

#[test]
fn hooks_run_and_the_log_and_artifacts_stay() {
    let world = World::demo()
        .with(Runtime::Bun)
        .env("MCPX_DAEMON_INLINE", "true")
        .setting("hooks", json!({"h": {"events": ["call"], "command": ["sh", "-c", "cat > hooked"]}}));
    world.mcpx(["call", "demo.echo", "text=x"]).stdout("x\n").check();
    let hooked = std::fs::read_to_string(world.dir().join("hooked")).unwrap();
    assert!(hooked.contains("call.finished") && hooked.contains("echo"), "{hooked}");
    let code = "log.info('said so'); return (await artifact({ name: 'kept.txt', text: 'kept' })).path";
    let output = world.mcpx(["--json", "exec", code]).run().json();
    assert!(output["result"].as_str().is_some_and(|path| path.ends_with("kept.txt")), "{output}");
    nothing_is_left(&world);
    world.mcpx(["artifacts", "get", "kept.txt"]).stdout("kept").check();
    let logged = world.mcpx(["--json", "log"]).run().stdout();
    for part in ["call.finished", "artifact.stored", "said so", "run.opened"] {
        assert!(logged.contains(part), "{part}: {logged}");
    }
    let world = world.setting("events", json!({"consumers": {"c": {"command": ["cat"]}}}));
    let consumed = world.mcpx(["call", "demo.echo", "text=y"]).stdout("y\n");
    consumed.stderr_has("consumers do not run with --no-daemon").check();
}

#[test]
fn what_would_end_with_the_command_is_refused() {
    let world = World::demo();
    world.mcpx(["--no-daemon", "ui", "--no-browser"]).status(2).stderr_has("there is no page").check();
    world.mcpx(["--no-daemon", "session", "new"]).status(2).stderr_has("ends with this command").check();
    nothing_is_left(&world);
}
