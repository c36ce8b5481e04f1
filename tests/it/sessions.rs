//! Sessions: each has what is its own, lasts as long as it should, and is listed,
//! kept, recycled and ended by name.

use crate::harness::{Runtime, World, alive, signal, wait_until};
use serde_json::{Value, json};

/// A world whose server `fake` counts for each session by itself.
fn own(scope: &str) -> World {
    World::fake(&[]).and_fake("shared", &[]).setting("daemon", json!({"tick": "50ms"})).server(
        "own",
        json!({"command": env!("CARGO_BIN_EXE_fake-mcp"), "args": [], "mcpx": {"scope": scope}}),
    )
}

fn count(world: &World, session: &str) -> String {
    world.mcpx(["call", "own.count", "--session", session]).run().stdout().trim().to_owned()
}

fn pid(world: &World, session: &str) -> u32 {
    world.mcpx(["call", "own.pid", "--session", session]).run().stdout().trim().parse().unwrap()
}

fn sessions(world: &World) -> Vec<Value> {
    let answer = world.mcpx(["--json", "session", "list"]).run().json();
    answer["sessions"].as_array().unwrap().clone()
}

fn keys(world: &World) -> Vec<String> {
    sessions(world).iter().map(|s| s["key"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn without_a_daemon_there_is_no_session_and_none_is_started() {
    let world = World::demo();
    world.mcpx(["session"]).stdout_has("no daemon is running").check();
    assert_eq!(world.mcpx(["--json", "session", "list"]).run().json()["sessions"], json!([]));
    for words in [&["session", "show", "x"][..], &["session", "stop", "x"], &["session", "keep", "x", "1m"]] {
        world.mcpx(words.iter().copied()).status(2).stderr_has("no daemon is running").check();
    }
    assert!(world.daemons().is_empty());
}

#[test]
fn a_session_outlasts_the_command_and_is_joined_by_flag_or_variable() {
    let world = own("session");
    let key = world.mcpx(["session", "new"]).run().stdout().trim().to_owned();
    assert_eq!(count(&world, &key), "1");
    world.mcpx(["call", "own.count"]).env("MCPX_SESSION_ID", &key).stdout("2\n").check();
    assert_eq!(count(&world, "other"), "1");
    // Without a session a call has one of its own, which is gone with it.
    world.mcpx(["call", "own.count"]).stdout("1\n").check();
    world.mcpx(["call", "own.count"]).stdout("1\n").check();
    let shown = world.mcpx(["--json", "session", "show"]).env("MCPX_SESSION_ID", &key).run().json();
    assert_eq!((&shown["key"], &shown["ephemeral"]), (&json!(key), &json!(false)));
    assert_eq!(shown["instances"][0]["server"], "own");
    assert_eq!(shown["instances"][0]["calls"], 2);
    world.mcpx(["session", "show", &key]).stdout_has("own").check();
    let listed = keys(&world);
    assert!(listed.contains(&key) && listed.contains(&"other".to_owned()), "{listed:?}");
    world.mcpx(["session", "list"]).stdout_has("other").check();
}

#[test]
fn a_name_is_given_once_and_a_wrong_one_is_told() {
    let world = World::demo();
    world.mcpx(["session", "new", "--name", "review/1 ü"]).stdout("review/1 ü\n").check();
    world.mcpx(["session", "new", "--name", "review/1 ü"]).status(2).stderr_has("already").check();
    world.mcpx(["session", "show", "review/1 ü"]).stdout_has("review/1 ü").check();
    world.mcpx(["session", "show", "review/1 u"]).status(2).stderr_has("did you mean").check();
    world.mcpx(["session", "new", "--name", ""]).status(2).stderr_has("empty").check();
    world.mcpx(["session", "stop", "review/1 ü"]).stdout_has("ran no server").check();
    world.mcpx(["session", "stop", "review/1 ü"]).status(2).stderr_has("no session").check();
    world.mcpx(["session", "lst"]).status(2).stderr_has("list").check();
    world.mcpx(["session", "list", "--name", "x"]).status(2).stderr_has("--name").check();
    world.mcpx(["session", "keep", "a"]).status(2).stderr_has("30m").check();
}

#[test]
fn to_stop_a_session_stops_what_it_owns_and_nothing_else() {
    let world = own("session");
    let (a, b) = (pid(&world, "a"), pid(&world, "b"));
    world.mcpx(["call", "shared.count", "--session", "a"]).stdout("1\n").check();
    world.mcpx(["session", "stop", "a"]).stdout("ended the session a; 1 server was stopped\n").check();
    assert!(!alive(a), "it returns when the server is gone");
    assert!(alive(b));
    assert_eq!(keys(&world), ["b"]);
    world.mcpx(["call", "shared.count", "--session", "b"]).stdout("2\n").check();
    assert_eq!(count(&world, "a"), "1", "it is opened anew");
}

#[test]
fn restart_recycles_one_session_and_no_other() {
    let world = own("session");
    let before = (pid(&world, "a"), pid(&world, "b"));
    let shared = world.mcpx(["call", "shared.pid"]).run().stdout();
    world.mcpx(["restart", "--session", "a"]).stdout_has("stopped 1 server").check();
    let after = (pid(&world, "a"), pid(&world, "b"));
    assert_ne!(before.0, after.0);
    assert_eq!(before.1, after.1);
    world.mcpx(["call", "shared.pid"]).stdout(&shared).check();
    world.mcpx(["restart", "--session", "aa"]).status(2).stderr_has("did you mean \"a\"").check();
    let _ = world.mcpx(["stop"]).run();
    world.mcpx(["restart", "--session", "a"]).status(2).stderr_has("no daemon is running").check();
}

#[test]
fn parent_and_child_share_a_family_and_a_stranger_does_not() {
    let world = own("parent-session");
    let call = |own: &str, parent: &str| {
        let call = world.mcpx(["call", "own.count"]).env("MCPX_SESSION_ID", own);
        let call = if parent.is_empty() { call } else { call.env("MCPX_PARENT_SESSION_ID", parent) };
        call.run().stdout().trim().to_owned()
    };
    assert_eq!(call("p", ""), "1");
    assert_eq!(call("c", "p"), "2");
    assert_eq!(call("d", "p"), "3");
    assert_eq!(call("stranger", ""), "1");
    // The child's own end leaves the family's server alone.
    world.mcpx(["session", "stop", "c"]).stdout_has("ran no server").check();
    assert_eq!(call("p", ""), "4");
}

#[test]
fn an_unused_session_ends_and_a_kept_one_stays() {
    let world = own("session").setting("session", json!({"idleTimeout": "400ms", "keepMost": "1h"}));
    let (a, b) = (pid(&world, "a"), pid(&world, "b"));
    world.mcpx(["session", "keep", "b", "1h"]).stdout_has("kept").check();
    world.mcpx(["session", "keep", "b", "2h"]).status(2).stderr_has("session.keepMost").check();
    wait_until("the unused session to end", || (!alive(a)).then_some(()));
    wait_until("it to be forgotten", || (keys(&world) == ["b"]).then_some(()));
    assert!(alive(b));
    let _ = world.mcpx(["session", "keep", "b", "0"]).run();
    wait_until("the other to end as well", || (!alive(b)).then_some(()));
    wait_until("it to be forgotten", || keys(&world).is_empty().then_some(()));
}

#[test]
fn a_kept_session_outlasts_the_idle_times_of_its_servers_and_of_the_daemon() {
    let world = own("session")
        .setting("pool", json!({"idleTimeout": "200ms"}))
        .setting("autostart", json!({"idleExit": "300ms"}));
    world.mcpx(["session", "new", "--name", "kept", "--keep", "1h"]).stdout("kept\n").check();
    let kept = pid(&world, "kept");
    let daemon = world.daemons()[0].pid;
    let other = pid(&world, "other");
    wait_until("the idle server of another session to be stopped", || (!alive(other)).then_some(()));
    assert!(alive(kept) && alive(daemon));
    // Somewhat longer than all of these times together: nothing else tells that nothing happens.
    std::thread::sleep(std::time::Duration::from_millis(900));
    assert!(alive(kept) && alive(daemon));
    world.mcpx(["session", "stop", "kept"]).stdout_has("1 server").check();
    wait_until("the daemon to leave", || (!alive(daemon)).then_some(()));
}

#[test]
fn a_script_in_a_session_counts_as_use() {
    let world = own("session")
        .setting("session", json!({"idleTimeout": "200ms"}))
        .setting("pool", json!({"idleTimeout": "1h"}));
    world.write("wait.sh", "\"$MCPX\" call own.count; sleep 1; \"$MCPX\" call own.count\n");
    let run = world.mcpx(["run", "--session", "s", "./wait.sh"]).env("MCPX", env!("CARGO_BIN_EXE_mcpx"));
    run.stdout("1\n2\n").check();
    wait_until("the session to end afterwards", || keys(&world).is_empty().then_some(()));
}

#[test]
fn what_belongs_to_a_process_ends_with_it_at_once() {
    // The tick is far away: the end is told by the system.
    let world = World::new().setting("daemon", json!({"tick": "1h"})).server(
        "own",
        json!({"command": env!("CARGO_BIN_EXE_fake-mcp"), "args": [], "mcpx": {"scope": "pid"}}),
    );
    let server: u32 = world.mcpx(["call", "own.pid"]).run().stdout().trim().parse().unwrap();
    wait_until("the server to end with the command that called", || (!alive(server)).then_some(()));
    world.write("twice.sh", "\"$MCPX\" call own.count; \"$MCPX\" call own.count\n");
    // Each command is a process of its own.
    let run = world.mcpx(["run", "./twice.sh"]).env("MCPX", env!("CARGO_BIN_EXE_mcpx"));
    run.stdout("1\n1\n").check();
}

#[test]
fn a_server_with_a_minimum_is_there_before_anybody_calls_and_again_after_a_crash() {
    let fake =
        json!({"command": env!("CARGO_BIN_EXE_fake-mcp"), "args": ["--name", "warm"], "mcpx": {"min": 1}});
    let world = World::demo()
        .server("warm", fake.clone())
        .setting("pool", json!({"coolDownMin": "100ms", "idleTimeout": "100ms"}))
        .setting("daemon", json!({"tick": "50ms"}));
    let warm = || world.processes().into_iter().find(|p| p.args.last().is_some_and(|a| a == "warm"));
    // Any command that starts the daemon.
    world.mcpx(["call", "demo.echo", "text=x"]).stdout("x\n").check();
    let first = wait_until("it to be started", warm).pid;
    wait_until("what nobody needs to be stopped", || {
        let status = world.mcpx(["--json", "status"]).run().json();
        (status["instances"].as_array().unwrap().len() == 1).then_some(())
    });
    assert!(alive(first), "it is kept past the idle time");
    signal(first, libc::SIGKILL);
    wait_until("it to be started again", || warm().filter(|p| p.pid != first));
    world.mcpx(["call", "warm.count"]).stdout("1\n").check();

    let mut wrong = fake;
    wrong["mcpx"] = json!({"min": 3, "max": 2});
    let world = world.server("warm", wrong);
    world.mcpx(["call", "warm.count"]).status(65).stderr_has("min 3 is more than max 2").check();
}

#[test]
fn refresh_and_restart_try_at_once_whatever_the_cool_down() {
    let world = World::new()
        .setting("pool", json!({"coolDownMin": "1h", "coolDownMax": "1h"}))
        .server("late", json!({"command": "./late", "args": []}));
    world.mcpx(["call", "late.echo", "text=x"]).status(69).any_stderr().check();
    let install = || {
        let link = world.dir().join("late");
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_fake-mcp"), link).unwrap();
    };
    install();
    // A call waits for the cool-down, and says so.
    world.mcpx(["call", "late.echo", "text=x"]).status(69).stderr_has("mcpx restart late").check();
    world.mcpx(["refresh", "late"]).stdout_has("late").check();
    world.mcpx(["call", "late.echo", "text=x"]).stdout("x\n").check();
}

#[test]
fn a_scope_that_cannot_be_resolved_isolates_and_says_once_which_variable_would_help() {
    let world = own("repo");
    for _ in 0..3 {
        world.mcpx(["call", "own.count", "--session", "s"]).stdout("1\n").check();
    }
    let status = world.mcpx(["--json", "status"]).run().json();
    let warnings: Vec<&str> =
        status["daemon"]["warnings"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("MCPX_CWD") && warnings[0].contains("scope \"repo\""), "{warnings:?}");
}

#[test]
fn a_command_inside_a_script_leaves_no_session_behind() {
    let world = own("session").file(
        "s.sh",
        "#!/bin/sh\nmcpx call own.count\nmcpx call own.count\nmcpx run inner.sh\nmcpx call own.count\n",
    );
    world.link("mcpx", std::path::Path::new(env!("CARGO_BIN_EXE_mcpx")));
    world.write("inner.sh", "#!/bin/sh\nmcpx call own.count\n");
    // They all belong to the run, whose session ends with it.
    world.mcpx(["run", "s.sh"]).stdout("1\n2\n3\n4\n").check();
    wait_until("the run's session to end", || sessions(&world).is_empty().then_some(()));
}

/// Runs the real git.
fn git(dir: &std::path::Path, args: &[&str]) {
    let out = std::process::Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
        .args(args)
        .current_dir(dir)
        .env("HOME", dir)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .expect("git runs");
    assert!(out.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&out.stderr));
}

#[test]
fn the_repository_of_a_caller_is_the_one_that_git_takes_there() {
    let world = own("repo").with(Runtime::Node26).server(
        "tree",
        json!({"command": env!("CARGO_BIN_EXE_fake-mcp"), "args": [], "mcpx": {"scope": "worktree"}}),
    );
    for dir in ["a", "b", "tree/deep"] {
        std::fs::create_dir_all(world.dir().join(dir)).unwrap();
    }
    for dir in ["a", "b"] {
        git(&world.dir().join(dir), &["init", "-q"]);
    }
    let pid = |server: &str, dir: &str, env: &[(&str, &str)]| {
        let mut command = world.mcpx(["call", &format!("{server}.pid")]).dir(dir);
        for (name, value) in env {
            command = command.env(name, *value);
        }
        command.run().stdout()
    };
    let (a, b) = (pid("own", "a", &[]), pid("own", "b", &[]));
    assert_ne!(a, b);
    let there = [("GIT_DIR", "../../a/.git"), ("GIT_WORK_TREE", "..")];
    assert_eq!(pid("own", "tree/deep", &there), a);
    assert_eq!(pid("own", "a", &[("GIT_DIR", "../b/.git")]), b);
    // One work tree, from within it and from the repository.
    let tree = pid("tree", "tree/deep", &there);
    assert_eq!(pid("tree", "a", &[("GIT_WORK_TREE", "../tree")]), tree);
    assert_ne!(pid("tree", "a", &[]), tree);
    git(&world.dir().join("a"), &["config", "core.worktree", "../../tree"]);
    wait_until("the repository to be looked at again", || (pid("tree", "a", &[]) == tree).then_some(()));
    // A script hands it on with its calls.
    let script = world.mcpx(["exec", "return await own.pid()"]).dir("tree").env("GIT_DIR", "../b/.git").run();
    assert_eq!(script.stdout(), b);
}

#[test]
fn roots_are_where_the_caller_works() {
    let world = own("session").and_fake("new", &["--era", "stateless"]);
    std::fs::create_dir_all(world.dir().join("tree/deep")).unwrap();
    git(&world.dir().join("tree"), &["init", "-q"]);
    let top = std::fs::canonicalize(world.dir()).unwrap().join("tree");
    let (top, deep) = (format!("file://{}", top.display()), format!("file://{}/deep", top.display()));
    let roots = |server: &str, dir: &str, session: &str| -> Vec<String> {
        let method = json!({"method": "roots/list"}).to_string();
        let name = format!("{server}.ask");
        let output = world.mcpx(["call", "--session", session, &name, &method]).dir(dir).run().stdout();
        let uris = output.split("\"uri\":\"").skip(1);
        uris.map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
    };
    let both = vec![deep.clone(), top.clone()];
    // An instance that is one session's knows the directory of that session.
    assert_eq!(roots("own", "tree/deep", "a"), both);
    assert_eq!(roots("own", "tree", "b"), [top.as_str()]);
    // One that everybody shares is told nothing, as it could be told of one directory alone.
    assert!(roots("shared", "tree/deep", "a").is_empty());
    let offered = world.received("shared", "initialize").remove(0);
    assert!(offered["params"]["capabilities"]["roots"].is_null(), "{offered}");
    // In the stateless era each call says who makes it.
    assert_eq!(roots("new", "tree/deep", "a"), both);
    assert_eq!(roots("new", "tree", "b"), [top.as_str()]);
}
