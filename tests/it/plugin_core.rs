//! The plugin's core finds the right daemon, in bun, deno and node, among real
//! daemons, sockets and state directories, and is never the thing that fails.

use crate::harness::{Runtime, World, signal, wait_until};
use serde_json::{Value, json};
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

const RUNTIMES: [Runtime; 3] = [Runtime::Bun, Runtime::Deno, Runtime::Node26];

/// What the steps came to, one value a step.
#[track_caller]
fn steps(runtime: Runtime, world: &World, options: Value, steps: &[Value]) -> Vec<Value> {
    let mut command = Command::new(runtime.path());
    match runtime {
        Runtime::Deno => command.args(["run", "--quiet", "--no-check", "--allow-all"]),
        Runtime::Bun => command.arg("run"),
        _ => command.arg("--no-warnings"),
    };
    let output = command
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plugin/find.ts"))
        .arg(json!({"options": options, "steps": steps}).to_string())
        .current_dir(world.dir())
        .env_clear()
        .envs(world.environment())
        .env("DENO_DIR", world.home().join("deno"))
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && err.is_empty(), "{runtime:?}: {}\n{out}\n{err}", output.status);
    let lines: Vec<Value> = out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(lines.len(), steps.len(), "{runtime:?}: {out}");
    lines
}

fn find(world: &World, below: &str) -> Value {
    json!({"do": "find", "dir": world.dir().join(below)})
}

#[track_caller]
fn found(runtime: Runtime, world: &World, options: Value) -> Value {
    steps(runtime, world, options, &[find(world, "")]).remove(0)
}

/// A project of its own with a daemon that runs; returns its info file.
fn daemon_in(world: &World, dir: &str) -> Value {
    let block =
        json!({"mcpServers": {"demo": {"command": env!("CARGO_BIN_EXE_mcpx"), "args": ["demo-server"]}}});
    world.write(&format!("{dir}/.mcpx.json"), &block.to_string());
    let _ = world.mcpx(["call", "demo.echo", "text=x"]).dir(dir).run();
    let path = world.dir().join(dir).canonicalize().unwrap().join(".mcpx.json");
    let mut infos = world.infos().into_iter().filter(|i| i["configPath"] == json!(path));
    infos.next().unwrap_or_else(|| panic!("no daemon of {}", path.display()))
}

#[test]
fn none_one_and_two_daemons_each_give_an_answer() {
    let world = World::new();
    for runtime in RUNTIMES {
        let none = found(runtime, &world, json!({}));
        assert_eq!((&none["rung"], &none["client"]), (&json!("none"), &json!(false)), "{none}");
        assert!(none["warning"].as_str().unwrap().contains("no mcpx daemon"), "{none}");
    }
    let a = daemon_in(&world, "a");
    symlink(world.dir().join("a"), world.dir().join("link")).unwrap();
    std::fs::create_dir_all(world.dir().join("a/deep/er")).unwrap();
    std::fs::create_dir_all(world.dir().join("else")).unwrap();
    for runtime in RUNTIMES {
        for dir in ["a", "link", "a/deep/er"] {
            let one = steps(runtime, &world, json!({}), &[find(&world, dir)]).remove(0);
            assert_eq!((&one["rung"], &one["chosen"]["key"]), (&json!("found"), &a["key"]), "{one}");
            assert!(one.get("warning").is_none(), "{one}");
        }
        // Elsewhere it is a guess, which says so.
        let guess = steps(runtime, &world, json!({}), &[find(&world, "else")]).remove(0);
        assert_eq!((&guess["rung"], &guess["client"]), (&json!("best"), &json!(true)), "{guess}");
        assert!(guess["warning"].as_str().unwrap().contains("no daemon serves"), "{guess}");
        let calls = [
            json!({"do": "call", "dir": world.dir().join("a"), "method": "health"}),
            json!({"do": "call", "dir": world.dir().join("a"), "method": "namespaces", "params": {}}),
            json!({"do": "call", "dir": world.dir().join("a"), "method": "schemas", "params": {"server": ["demo"]}}),
            json!({"do": "call", "dir": world.dir().join("a"), "method": "call", "params": {
                "server": "demo", "tool": "echo", "arguments": {"text": "über $HOME 🙂"}}}),
            json!({"do": "call", "dir": world.dir().join("a"), "method": "setting", "params": {"key": "pool.max"}}),
            json!({"do": "call", "dir": world.dir().join("a"), "method": "call", "params": {
                "server": "nobody", "tool": "x"}}),
        ];
        let said = steps(runtime, &world, json!({}), &calls);
        assert_eq!(said[0]["key"], a["key"]);
        assert_eq!(said[1]["namespaces"][0]["name"], "demo");
        assert_eq!(said[2]["schemas"][0]["server"], "demo", "{}", said[2]);
        assert_eq!(said[3]["result"]["content"][0]["text"], "über $HOME 🙂", "{}", said[3]);
        assert_eq!(said[4]["key"], "pool.max");
        assert!(
            said[5]["error"]["kind"].is_string() && said[5]["error"]["status"].as_u64() > Some(399),
            "{}",
            said[5]
        );
    }
    let b = daemon_in(&world, "b");
    for runtime in RUNTIMES {
        for (dir, wanted) in [("a", &a), ("b", &b), ("link", &a)] {
            let two = steps(runtime, &world, json!({}), &[find(&world, dir)]).remove(0);
            assert_eq!((&two["rung"], &two["chosen"]["key"]), (&json!("resolved"), &wanted["key"]), "{two}");
            assert_eq!(two["candidates"].as_array().unwrap().len(), 2);
            assert_eq!(two["candidates"][0]["key"], wanted["key"], "the nearest configuration is first");
        }
        let between = steps(runtime, &world, json!({}), &[find(&world, "else")]).remove(0);
        assert_eq!((&between["rung"], &between["ambiguous"]), (&json!("best"), &json!(true)), "{between}");
        assert_eq!(between["chosen"]["key"], b["key"], "the most recently started");
    }
}

#[test]
fn what_is_stale_or_anothers_is_passed_over() {
    let world = World::new();
    let a = daemon_in(&world, "a");
    let state = world.state();
    // A daemon that was killed, and what it may leave behind when its guard is killed as well.
    let gone = daemon_in(&world, "gone");
    signal(gone["pid"].as_u64().unwrap() as u32, libc::SIGKILL);
    let stale = state.join(format!("daemon-{}.json", gone["key"].as_str().unwrap()));
    wait_until("the guard to clear up", || (!stale.exists()).then_some(()));
    world.write(stale.to_str().unwrap(), &gone.to_string());
    // A socket of another user, in front of which something listens and counts.
    let foreign = state.join("daemon-00000000000000ff.sock");
    let listener = UnixListener::bind(&foreign).unwrap();
    listener.set_nonblocking(true).unwrap();
    let root = std::fs::metadata(&foreign).unwrap().uid() == 0;
    if root {
        std::os::unix::fs::chown(&foreign, Some(12345), None).unwrap();
    } else {
        println!("skipped: only root can give a socket to another user");
        std::fs::remove_file(&foreign).unwrap();
    }
    world.write(state.join("daemon-broken.json").to_str().unwrap(), "{");
    for runtime in RUNTIMES {
        let seen = steps(runtime, &world, json!({}), &[find(&world, "a")]).remove(0);
        assert_eq!((&seen["rung"], &seen["chosen"]["key"]), (&json!("found"), &a["key"]), "{seen}");
        assert_eq!(seen["candidates"].as_array().unwrap().len(), 1, "{seen}");
        let why = seen["skipped"].to_string();
        assert!(!root || why.contains("belongs to user 12345"), "{seen}");
        assert_eq!(seen["skipped"].as_array().unwrap().len(), if root { 2 } else { 1 }, "{seen}");
        assert!(listener.accept().is_err(), "another user's socket is never dialled");
        if root {
            let named = found(runtime, &world, json!({"socket": foreign}));
            assert_eq!((&named["rung"], &named["client"]), (&json!("named"), &json!(false)), "{named}");
            assert!(listener.accept().is_err(), "not even when it is named");
        }
    }
    let _ = std::fs::remove_file(&foreign);
    let _ = std::fs::remove_file(state.join("daemon-broken.json"));
    let _ = world.mcpx(["daemons", "prune"]).run();
}

#[test]
fn a_daemon_without_its_info_file_or_with_a_long_path_is_still_a_daemon() {
    let long = World::new();
    let deep = long.home().join("d".repeat(90));
    let long = long.env("MCPX_STATE_DIR", &deep);
    let block =
        json!({"mcpServers": {"demo": {"command": env!("CARGO_BIN_EXE_mcpx"), "args": ["demo-server"]}}});
    long.write(".mcpx.json", &block.to_string());
    let _ = long.mcpx(["call", "demo.echo", "text=x"]).run();
    let read = |dir: &Path| {
        let mut files = std::fs::read_dir(dir).unwrap().flatten().map(|e| e.path());
        let info = |p: &std::path::PathBuf| {
            let name = p.file_name().unwrap().to_string_lossy();
            name.starts_with("daemon-") && name.ends_with(".json")
        };
        files.find(info).unwrap()
    };
    let file = read(&deep);
    let info: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let socket = info["socket"].as_str().unwrap().to_owned();
    assert!(!Path::new(&socket).starts_with(&deep), "the socket moved: {socket}");
    let aside = file.with_extension("aside");
    for runtime in RUNTIMES {
        let seen = found(runtime, &long, json!({}));
        assert_eq!((&seen["rung"], &seen["chosen"]["socket"]), (&json!("found"), &json!(socket)), "{seen}");
        std::fs::rename(&file, &aside).unwrap();
        let bare = found(runtime, &long, json!({}));
        std::fs::rename(&aside, &file).unwrap();
        assert_eq!(bare["chosen"]["socket"], json!(socket), "{bare}");
        assert_eq!(bare["chosen"]["key"], info["key"], "{bare}");
    }
    let _ = long.mcpx(["stop"]).run();
}

#[test]
fn a_daemon_that_hangs_costs_the_limit_and_no_more() {
    let world = World::new();
    let a = daemon_in(&world, "a");
    let hung = daemon_in(&world, "hung");
    let pid = hung["pid"].as_u64().unwrap() as u32;
    signal(pid, libc::SIGSTOP);
    for runtime in RUNTIMES {
        let seen =
            steps(runtime, &world, json!({"tuning": {"healthMs": 300}}), &[find(&world, "hung")]).remove(0);
        assert_eq!(seen["candidates"].as_array().unwrap().len(), 1, "{seen}");
        assert_eq!(seen["chosen"]["key"], a["key"], "{seen}");
        assert!(seen["skipped"].to_string().contains("did not answer within 300 ms"), "{seen}");
        assert!(seen["warning"].is_string(), "it is not the one of that directory: {seen}");
    }
    signal(pid, libc::SIGCONT);
}

#[test]
fn a_named_daemon_is_the_only_one() {
    let world = World::new();
    let a = daemon_in(&world, "a");
    let b = daemon_in(&world, "b");
    let refused = format!("http://127.0.0.1:{}", crate::harness::free_port());
    for runtime in RUNTIMES {
        let at = |options: Value| steps(runtime, &world, options, &[find(&world, "a")]).remove(0);
        let down = at(json!({"endpoint": refused}));
        assert_eq!((&down["rung"], &down["client"]), (&json!("named"), &json!(true)), "{down}");
        assert_eq!(down["chosen"]["endpoint"], json!(refused));
        assert!(down["warning"].as_str().unwrap().contains("does not answer"), "{down}");
        for options in [
            json!({"endpoint": b["endpoint"], "token": b["token"]}),
            // The token of a daemon of this machine is found by itself.
            json!({"endpoint": b["endpoint"]}),
            json!({"endpoint": format!("unix://{}", b["socket"].as_str().unwrap())}),
            json!({"socket": b["socket"]}),
        ] {
            let named = at(options.clone());
            assert_eq!(
                (&named["rung"], &named["chosen"]["key"]),
                (&json!("named"), &b["key"]),
                "{options} {named}"
            );
            assert!(named.get("warning").is_none(), "{named}");
        }
        let call = json!({"do": "call", "dir": world.dir(), "method": "call",
            "params": {"server": "demo", "tool": "echo", "arguments": {"text": "over TCP"}}});
        let said = steps(runtime, &world, json!({"endpoint": b["endpoint"]}), &[call]).remove(0);
        assert_eq!(said["result"]["content"][0]["text"], "over TCP", "{said}");
        let gone = at(json!({"socket": "/tmp/not-there.sock"}));
        assert_eq!((&gone["rung"], &gone["candidates"]), (&json!("named"), &json!([])), "{gone}");
    }
    assert_ne!(a["key"], b["key"]);
}

#[test]
fn choices_are_remembered_as_long_as_they_say() {
    let world = World::new();
    let a = daemon_in(&world, "a");
    let b = daemon_in(&world, "b");
    let file = world.state().join("opencode-daemons.json");
    for runtime in RUNTIMES {
        let step =
            |what: &str, session: &str| json!({"do": what, "dir": world.dir().join("a"), "session": session});
        // In `a` the second best is the daemon of `b`.
        let choose = |mode: &str| {
            let mut step = step("choose", "s1");
            step["index"] = json!(1);
            step["mode"] = json!(mode);
            step
        };
        let told = steps(
            runtime,
            &world,
            json!({}),
            &[
                choose("session"),
                step("find", "s1"),
                step("find", "s2"),
                step("forget", "s1"),
                step("find", "s1"),
            ],
        );
        assert_eq!(told[0]["mode"], "session");
        assert_eq!(
            (&told[1]["rung"], &told[1]["chosen"]["key"]),
            (&json!("remembered"), &b["key"]),
            "{}",
            told[1]
        );
        assert_eq!(told[2]["chosen"]["key"], a["key"], "another session has its own");
        assert_eq!((&told[3], &told[4]["chosen"]["key"]), (&json!(true), &a["key"]));
        assert!(!file.exists(), "a session's choice is in memory");

        for mode in ["until-gone", "indefinite", "permanent"] {
            let told = steps(runtime, &world, json!({}), &[choose(mode)]);
            if mode == "permanent" {
                // A command's own setting is not the daemon's to keep; that is said, and the file keeps it.
                assert_eq!(told[0]["mode"], "indefinite", "{}", told[0]);
                assert!(told[0]["warning"].as_str().unwrap().contains("daemon.endpoint"), "{}", told[0]);
            } else {
                assert_eq!((&told[0]["mode"], told[0].get("warning")), (&json!(mode), None));
            }
            // Another process, and so another session.
            let later = steps(runtime, &world, json!({}), &[step("find", "s9")]).remove(0);
            assert_eq!(
                (&later["rung"], &later["chosen"]["key"]),
                (&json!("remembered"), &b["key"]),
                "{later}"
            );
            let other = steps(runtime, &world, json!({}), &[find(&world, "b")]).remove(0);
            assert_eq!(other["rung"], "resolved", "it is kept by directory: {other}");
        }
        let mode = std::fs::metadata(&file).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
        let kept: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        assert_eq!(kept["directories"].as_object().unwrap().len(), 1, "{kept}");
        let told =
            steps(runtime, &world, json!({}), &[step("forget", ""), step("find", ""), step("forget", "")]);
        assert_eq!((&told[0], &told[1]["rung"], &told[2]), (&json!(true), &json!("resolved"), &json!(false)));
        std::fs::remove_file(&file).unwrap();
    }
}

#[test]
fn until_gone_ends_with_the_daemon_and_indefinite_does_not() {
    for (runtime, mode) in [(Runtime::Bun, "until-gone"), (Runtime::Node26, "indefinite")] {
        let world = World::new();
        let a = daemon_in(&world, "a");
        let b = daemon_in(&world, "b");
        let choose = json!({"do": "choose", "dir": world.dir().join("a"), "index": 1, "mode": mode});
        let _ = steps(runtime, &world, json!({}), &[choose]);
        // An edit moves the daemon to other names; it is the same one.
        let block = json!({"mcpServers": {"demo": {"command": env!("CARGO_BIN_EXE_mcpx"), "args": ["demo-server"]}}, "search": {"limit": 3}});
        world.write("b/.mcpx.json", &block.to_string());
        let _ = world.mcpx(["reload"]).dir("b").run();
        let _ = std::fs::remove_file(b["socket"].as_str().unwrap());
        let seen = steps(runtime, &world, json!({}), &[find(&world, "a")]).remove(0);
        assert_eq!((&seen["rung"], &seen["chosen"]["pid"]), (&json!("remembered"), &b["pid"]), "{seen}");
        assert_ne!(seen["chosen"]["socket"], b["socket"]);

        let _ = world.mcpx(["stop"]).dir("b").run();
        let seen = steps(runtime, &world, json!({}), &[find(&world, "a"), find(&world, "a")]);
        assert_eq!(seen[0]["chosen"]["key"], a["key"], "{}", seen[0]);
        assert!(seen[0]["warning"].as_str().unwrap().contains("does not answer"), "{}", seen[0]);
        let _ = world.mcpx(["call", "demo.echo", "text=x"]).dir("b").run();
        let seen = steps(runtime, &world, json!({}), &[find(&world, "a")]).remove(0);
        let expected = if mode == "until-gone" { "resolved" } else { "remembered" };
        assert_eq!(seen["rung"], expected, "{seen}");
    }
}

#[test]
fn the_binary_is_a_late_rung_and_never_one_for_v1() {
    let world = World::new();
    let a = daemon_in(&world, "a");
    // A state directory that the plugin does not know of, and the binary does.
    let script = format!(
        "#!/bin/sh\nMCPX_STATE_DIR={} exec {} \"$@\"\n",
        world.state().display(),
        env!("CARGO_BIN_EXE_mcpx")
    );
    let bin = world.bin().join("other-mcpx");
    std::fs::write(&bin, script).unwrap();
    std::fs::set_permissions(&bin, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut environment = world.environment().clone();
    environment.insert("MCPX_STATE_DIR".into(), world.home().join("elsewhere").into());
    for runtime in RUNTIMES {
        let elsewhere = |options: Value| {
            let mut command = Command::new(runtime.path());
            match runtime {
                Runtime::Deno => command.args(["run", "--quiet", "--no-check", "--allow-all"]),
                Runtime::Bun => command.arg("run"),
                _ => command.arg("--no-warnings"),
            };
            let output = command
                .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plugin/find.ts"))
                .arg(json!({"options": options, "steps": [find(&world, "a")]}).to_string())
                .env_clear()
                .envs(&environment)
                .env("DENO_DIR", world.home().join("deno"))
                .output()
                .unwrap();
            serde_json::from_slice::<Value>(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
        };
        let seen = elsewhere(json!({"bin": "other-mcpx"}));
        assert_eq!((&seen["rung"], &seen["chosen"]["key"]), (&json!("binary"), &a["key"]), "{seen}");
        for options in [json!({"bin": "other-mcpx", "backend": "v1"}), json!({"bin": "not-there"})] {
            let seen = elsewhere(options);
            assert_eq!((&seen["rung"], &seen["client"]), (&json!("none"), &json!(false)), "{seen}");
        }
    }
}

#[test]
fn options_come_before_variables_and_those_before_defaults() {
    let world = World::new();
    let defaults: Value = serde_json::from_str(mcpx::settings::defaults_json()).unwrap();
    let settings =
        |options: Value, env: Value| json!({"do": "settings", "dir": "/", "options": options, "env": env});
    for runtime in RUNTIMES {
        let told = steps(
            runtime,
            &world,
            json!({}),
            &[
                settings(json!({}), json!({})),
                settings(
                    json!({"env": "full", "tools": true}),
                    json!({"MCPX_PLUGIN_ENV": "minimal", "MCPX_PLUGIN_BIN_ARGS": "-a, -b", "MCPX_PLUGIN_TOOL_TIMING": "0"}),
                ),
                settings(
                    json!({"env": "most"}),
                    json!({"MCPX_PLUGIN_ENV": "minimal", "MCPX_PLUGIN_HEADLESS": "yes"}),
                ),
            ],
        );
        assert_eq!(told[0]["settings"], defaults["plugin"]);
        let two = &told[1]["settings"];
        assert_eq!(
            (&two["env"], &two["tools"], &two["binArgs"], &two["toolTiming"]),
            (&json!("full"), &json!("on"), &json!(["-a", "-b"]), &json!(false))
        );
        assert_eq!(
            (&told[2]["settings"]["env"], &told[2]["settings"]["headless"]),
            (&json!("minimal"), &json!("on"))
        );
        assert!(told[2]["problems"][0].as_str().unwrap().contains("minimal, standard, full"), "{}", told[2]);
    }
}

#[test]
fn the_log_is_read_counted_and_written_to_over_v1() {
    let world = World::demo();
    world.mcpx(["call", "demo.echo", "text=x"]).stdout("x\n").check();
    let call = |method: &str, params: Value| json!({"do": "call", "dir": world.dir(), "method": method, "params": params});
    for (n, runtime) in RUNTIMES.into_iter().enumerate() {
        let tool = format!("tool-{n}");
        let record = json!({
            "source": "plugin", "event": "tool.finished", "tool": tool, "session": "s", "call": "c",
            "data": {"ms": 12.5, "harness": "test"},
        });
        let answers = steps(
            runtime,
            &world,
            json!({}),
            &[
                call("postLog", record),
                call("stats", json!({"about": "calls", "server": ["demo"]})),
                call("log", json!({"event": ["call"], "server": ["demo"], "since": "1h", "limit": 5})),
                call("log", json!({"limit": "many"})),
            ],
        );
        assert!(answers[0].get("error").is_none(), "{runtime:?}: {}", answers[0]);
        let (stats, log) = (&answers[1], &answers[2]);
        assert_eq!((&stats["rows"][0]["tool"], &stats["rows"][0]["calls"]), (&json!("demo.echo"), &json!(1)));
        assert_eq!(log["records"][0]["tool"], "echo", "{runtime:?}: {log}");
        assert_eq!(answers[3]["error"]["status"], 400, "{runtime:?}: {}", answers[3]);
        // What was written is found by everybody.
        let found = wait_until("the record", || {
            let log = world.mcpx(["--json", "log", "--tool", &tool]).any_stderr().run().json_lines();
            log.first().cloned()
        });
        assert_eq!(
            (&found["event"], &found["source"]),
            (&json!("tool.finished"), &json!("plugin")),
            "{found}"
        );
        assert_eq!(found["session"], "s");
    }
}
