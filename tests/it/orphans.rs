//! Not one process is left, whoever is killed, in whatever order, at whatever
//! moment. (Every world checks the same when it ends.)

use crate::harness::tools::on_path;
use crate::harness::{Runtime, World, alive, signal, wait_until};
use serde_json::json;
use std::time::{Duration, Instant};

/// Servers that leave only when they are killed, with helpers in and out of their group.
const STUBBORN: &[&str] = &["--ignore-eof", "--ignore-term", "--fork-grandchild"];
/// One whose helper leads a session of its own, as a browser does.
const ESCAPING: &[&str] = &["--ignore-eof", "--ignore-term", "--setsid-grandchild"];

fn hasty(world: World) -> World {
    world.setting("pool", json!({"stopGrace": "100ms", "killGrace": "100ms", "coolDownMin": "10ms"}))
}

fn helpers(world: &World) -> usize {
    world.processes().iter().filter(|p| p.mentions("--be-grandchild")).count()
}

#[track_caller]
fn nothing_is_left(world: &World) {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let left = world.processes();
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "left after 10 s: {left:#?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn helpers_end_with_a_server_that_crashes() {
    for args in [STUBBORN, ESCAPING] {
        let world = hasty(World::fake(args));
        world.mcpx(["call", "fake.echo", "text=x"]).stdout("x\n").check();
        assert_eq!(helpers(&world), 1);
        world.mcpx(["call", "fake.crash"]).status(76).any_stderr().check();
        wait_until("the helper to end", || (helpers(&world) == 0).then_some(()));
        signal(world.started("fake")[0], 0);
        world.mcpx(["call", "fake.echo", "text=x"]).stdout("x\n").check();
        signal(*world.started("fake").last().unwrap(), libc::SIGKILL);
        wait_until("the second helper to end", || (helpers(&world) == 0).then_some(()));
    }
}

#[test]
fn a_killed_daemon_leaves_nothing_and_nobody_has_to_come_for_that() {
    for args in [STUBBORN, ESCAPING] {
        let world = hasty(World::fake(args));
        world.mcpx(["call", "fake.echo", "text=x"]).stdout("x\n").check();
        assert_eq!(helpers(&world), 1);
        signal(world.daemons()[0].pid, libc::SIGKILL);
        nothing_is_left(&world);
        wait_until("its names to be removed", || world.infos().is_empty().then_some(()));
    }
}

#[test]
fn with_its_guard_killed_first_the_next_daemon_ends_what_is_left() {
    let world = hasty(World::fake(ESCAPING));
    world.mcpx(["call", "fake.echo", "text=x"]).stdout("x\n").check();
    let guard = wait_until("the guard", || {
        world.processes().into_iter().find(|p| p.args.iter().any(|a| a == "guard"))
    });
    let daemon = world.daemons()[0].pid;
    signal(guard.pid, libc::SIGKILL);
    wait_until("the guard to end", || (!alive(guard.pid)).then_some(()));
    signal(daemon, libc::SIGKILL);
    wait_until("the daemon to end", || (!alive(daemon)).then_some(()));
    assert_eq!(helpers(&world), 1, "nobody is there to end it");
    world.mcpx(["call", "fake.echo", "text=y"]).stdout("y\n").check();
    wait_until("the first helper to end", || (helpers(&world) == 1).then_some(()));
}

#[test]
fn an_orderly_stop_leaves_nothing_by_the_time_it_returns() {
    for args in [STUBBORN, ESCAPING] {
        let world = hasty(World::fake(args));
        world.mcpx(["call", "fake.echo", "text=x"]).stdout("x\n").check();
        let _ = world.mcpx(["stop"]).run();
        let left = world.processes();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// Those who take part in a call of a script.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Party {
    Daemon,
    Command,
    Script,
    Server,
}

#[test]
fn whoever_is_killed_in_whatever_order_nothing_stays() {
    use Party::{Command, Daemon, Script, Server};
    // Each first, and each before and after each other one, in six rounds.
    let orders = [
        [Daemon, Command, Script, Server],
        [Command, Server, Daemon, Script],
        [Script, Daemon, Server, Command],
        [Server, Script, Command, Daemon],
        [Server, Daemon, Script, Command],
        [Command, Script, Server, Daemon],
    ];
    for order in orders {
        let world = hasty(World::fake(ESCAPING)).with(Runtime::Bun);
        let running = world.mcpx(["exec", "await fake.hang({})"]).any_stderr().start();
        wait_until("the call to arrive", || (!world.received("fake", "tools/call").is_empty()).then_some(()));
        let script = world.processes().into_iter().find(|p| p.parent == running.pid());
        let script = script.expect("the script runs").pid;
        let daemon = world.daemons()[0].pid;
        let server = world.started("fake")[0];
        for party in order {
            match party {
                Daemon => signal(daemon, libc::SIGKILL),
                Command => running.signal(libc::SIGKILL),
                // Those that have ended already may have given their number away.
                Script if alive(running.pid()) && alive(script) => signal(script, libc::SIGKILL),
                Server if alive(daemon) && alive(server) => signal(server, libc::SIGKILL),
                Script | Server => {}
            }
        }
        let _ = running.wait();
        nothing_is_left(&world);
    }
}

#[test]
fn a_daemon_that_is_killed_while_a_server_starts_leaves_nothing() {
    for args in
        [&["--never-initialize", "--setsid-grandchild"][..], &["--slow-start", "300", "--ignore-term"]]
    {
        let world = hasty(World::fake(args));
        let running = world.mcpx(["call", "fake.echo", "text=x"]).any_stderr().start();
        wait_until("the server to start", || (!world.started("fake").is_empty()).then_some(()));
        let daemon = world.daemons()[0].pid;
        signal(daemon, libc::SIGKILL);
        let first = || world.processes().into_iter().filter(|p| p.mentions("fake-mcp") && p.parent != daemon);
        // What only asks may have found, or started, another daemon by then.
        let _ = running.wait();
        let _ = world.mcpx(["stop"]).run();
        wait_until("what the first daemon had started to end", || first().next().is_none().then_some(()));
        nothing_is_left(&world);
    }
}

#[test]
fn a_daemon_that_is_killed_while_it_stops_leaves_nothing() {
    let world = World::fake(ESCAPING).setting("pool", json!({"stopGrace": "20s", "killGrace": "20s"}));
    world.mcpx(["call", "fake.echo", "text=x"]).stdout("x\n").check();
    let daemon = world.daemons()[0].pid;
    let stopping = world.mcpx(["stop"]).any_stderr().start();
    wait_until("the daemon to have begun", || world.infos().is_empty().then_some(()));
    signal(daemon, libc::SIGKILL);
    let _ = stopping.wait();
    nothing_is_left(&world);
}

#[test]
fn what_a_script_started_ends_with_a_command_that_is_killed() {
    let world = World::fake(&[]);
    world.write("spawn.sh", "exec >/dev/null 2>&1; sleep 1001 & \"$SETSID\" sleep 1002 & wait\n");
    let setsid = on_path("setsid").expect("setsid is a part of util-linux");
    let running = world.mcpx(["run", "./spawn.sh"]).env("SETSID", setsid).any_stderr().start();
    let sleeper = |text: &str| world.processes().into_iter().find(|p| p.mentions(text) && p.args.len() == 2);
    wait_until("both to run", || sleeper("1001").and(sleeper("1002")));
    running.signal(libc::SIGKILL);
    let _ = running.wait();
    wait_until("the one in the script's session to end", || sleeper("1001").is_none().then_some(()));
    // Whoever makes a session for a process means it to stay.
    let detached = sleeper("1002").expect("the one in a session of its own stays");
    signal(detached.pid, libc::SIGKILL);
}

#[test]
fn a_process_is_let_go_by_taking_its_mark_away() {
    let world = hasty(World::new());
    let fake = env!("CARGO_BIN_EXE_fake-mcp");
    let setsid = on_path("setsid").expect("setsid is a part of util-linux");
    let line = format!("env -u MCPX_INSTANCE '{}' sleep 1003 & exec '{fake}'", setsid.display());
    let world = world.server("fake", json!({"command": "sh", "args": ["-c", line]}));
    world.mcpx(["call", "fake.echo", "text=x"]).stdout("x\n").check();
    world.mcpx(["call", "fake.env", "name=MCPX_INSTANCE"]).stdout_has(".").check();
    world.mcpx(["call", "fake.crash"]).status(76).any_stderr().check();
    let sleeper = || world.processes().into_iter().find(|p| p.mentions("1003"));
    world.mcpx(["call", "fake.echo", "text=x"]).stdout("x\n").check();
    let let_go = sleeper().expect("it was let go");
    for process in world.processes().into_iter().filter(|p| p.mentions("1003")) {
        signal(process.pid, libc::SIGKILL);
    }
    assert!(let_go.pid > 1);
}

#[test]
fn as_the_first_process_of_a_container_it_reaps_what_others_leave() {
    let Some(unshare) = on_path("unshare") else {
        eprintln!("skipped: there is no unshare here");
        return;
    };
    let world = hasty(World::fake(ESCAPING));
    let alone = |line: &str| {
        let mut command = std::process::Command::new(&unshare);
        command
            .args([
                "--user",
                "--map-root-user",
                "--pid",
                "--fork",
                "--mount-proc",
                "--kill-child",
                "sh",
                "-c",
                line,
            ])
            .env_clear()
            .envs(world.environment())
            .env("MCPX", env!("CARGO_BIN_EXE_mcpx"))
            .current_dir(world.dir());
        command.output().expect("unshare runs")
    };
    let tried = alone("true");
    if !tried.status.success() {
        eprintln!("skipped: no namespace can be made here: {}", String::from_utf8_lossy(&tried.stderr));
        return;
    }
    // The first process there is the daemon: what the shell beside it leaves becomes its child.
    let work = "(until \"$MCPX\" call fake.echo text=up; do sleep 0.05; done; \
                (sh -c 'sleep 0.1 & exec true'); \"$MCPX\" call fake.crash; sleep 1.5; \
                zombies=0; for s in /proc/[0-9]*/stat; do read -r line < \"$s\" && case \"$line\" in *') Z '*) zombies=$((zombies+1));; esac; done; \
                echo \"zombies $zombies\" > result; \"$MCPX\" stop) > out 2>&1 & exec \"$MCPX\" daemon";
    let output = alone(work);
    let result = std::fs::read_to_string(world.dir().join("result")).unwrap_or_default();
    let out = std::fs::read_to_string(world.dir().join("out")).unwrap_or_default();
    assert_eq!(result, "zombies 0\n", "{out}{}", String::from_utf8_lossy(&output.stderr));
    assert!(out.contains("up\n"), "{out}");
    nothing_is_left(&world);
}
