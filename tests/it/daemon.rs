//! The daemon: one is started however many ask, it stops when told, leaves
//! nothing behind, and follows its configuration.

use crate::harness::{World, alive, signal, wait_until};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

#[test]
fn fifty_commands_at_once_start_one_daemon() {
    let world = World::fake(&[]);
    let running: Vec<_> =
        (0..50).map(|n| world.mcpx(["call", "fake.echo", &format!("text=number {n}")]).start()).collect();
    for (n, running) in running.into_iter().enumerate() {
        let output = running.wait();
        assert_eq!((output.status, output.stdout()), (0, format!("number {n}\n")), "{output}");
    }
    assert_eq!(world.daemons().len(), 1, "{:?}", world.processes());
    assert_eq!(world.infos().len(), 1);
    assert_eq!(world.started("fake").len(), 1, "a global server has one instance");
}

#[test]
fn its_files_are_private() {
    let world = World::demo();
    world.mcpx(["call", "demo.echo", "text=x"]).stdout("x\n").check();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&world.state()), 0o700);
    let info = &world.infos()[0];
    let socket = std::path::PathBuf::from(info["socket"].as_str().unwrap());
    assert_eq!(mode(&socket), 0o600);
    let file = world.state().join(format!("daemon-{}.json", info["key"].as_str().unwrap()));
    assert_eq!(mode(&file), 0o600);
    assert_eq!(info["schema"], 1);
    // The token is nowhere but in the info file.
    let token = info["token"].as_str().unwrap();
    assert!(token.len() >= 32);
    for process in world.processes() {
        assert!(!process.mentions(token), "{}", process.line());
    }
    for words in [&["status"][..], &["--json", "status"], &["daemons"], &["--json", "daemons"]] {
        assert!(!world.mcpx(words).run().stdout().contains(token));
    }
}

#[test]
fn the_tcp_port_wants_its_token() {
    let world = World::demo();
    world.mcpx(["call", "demo.echo", "text=x"]).stdout("x\n").check();
    let info = &world.infos()[0];
    let address = info["endpoint"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
    let ask = |headers: &str| {
        use std::io::{Read, Write};
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(10))).unwrap();
        write!(stream, "GET /v1/health HTTP/1.1\r\nHost: {address}\r\n{headers}Connection: close\r\n\r\n")
            .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    let token = info["token"].as_str().unwrap();
    assert!(ask(&format!("Authorization: Bearer {token}\r\n")).starts_with("HTTP/1.1 200"), "with the token");
    for headers in ["", "Authorization: Bearer wrong\r\n", &format!("Authorization: Basic {token}\r\n")] {
        let answer = ask(headers);
        assert!(answer.starts_with("HTTP/1.1 401"), "{headers:?}: {answer}");
    }
    let foreign = ask(&format!("Authorization: Bearer {token}\r\nOrigin: http://evil.example\r\n"));
    assert!(foreign.starts_with("HTTP/1.1 403"), "{foreign}");
}

#[test]
fn stop_ends_the_daemon_and_its_servers() {
    let world = World::demo().and_fake("fake", &["--fork-grandchild"]);
    world.mcpx(["call", "demo.echo", "text=x"]).stdout("x\n").check();
    world.mcpx(["call", "fake.echo", "text=x"]).stdout("x\n").check();
    assert!(world.processes().iter().any(|p| p.mentions("--be-grandchild")));
    let _ = world.mcpx(["stop"]).run();
    wait_until("everything to end", || world.processes().is_empty().then_some(()));
    assert!(world.infos().is_empty());
    // Nothing to stop is no failure, and starts nothing.
    let _ = world.mcpx(["stop"]).any_stderr().run();
    let _ = world.mcpx(["stop", "--all"]).any_stderr().run();
    assert!(world.processes().is_empty());
}

#[test]
fn a_broken_configuration_keeps_nobody_from_its_daemon() {
    let world = World::demo();
    world.mcpx(["call", "demo.echo", "text=x"]).stdout("x\n").check();
    world.write(".mcpx.json", "{\n  \"mcpServers\": {,\n");
    let said = [".mcpx.json:2:18", "the daemon keeps its last good one"];
    world.mcpx(["status"]).any_stderr().run().says(&said).says(&["daemon ", "demo"]);
    world.mcpx(["reload"]).status(65).any_stderr().run().says(&said).says(&["goes on with its last good"]);
    world.mcpx(["stop"]).any_stderr().run().says(&said).says(&["stopped the daemon"]);
    wait_until("everything to end", || world.processes().is_empty().then_some(()));
    for command in ["status", "reload", "stop"] {
        world.mcpx([command]).status(65).stderr_has(".mcpx.json:2:18").check();
    }
}

#[test]
fn stubborn_servers_are_killed_in_the_end() {
    let world = World::fake(&["--ignore-eof", "--ignore-term", "--fork-grandchild"])
        .setting("pool", json!({"stopGrace": "200ms", "killGrace": "200ms"}));
    world.mcpx(["call", "fake.echo", "text=x"]).stdout("x\n").check();
    let _ = world.mcpx(["stop"]).run();
    wait_until("everything to end", || world.processes().is_empty().then_some(()));
}

#[test]
fn a_server_gets_the_time_to_leave_by_itself() {
    let world = World::fake(&["--linger", "300"]);
    world.mcpx(["call", "fake.echo", "text=x"]).stdout("x\n").check();
    let _ = world.mcpx(["stop"]).run();
    wait_until("everything to end", || world.processes().is_empty().then_some(()));
    let last = world.recorded("fake").pop().unwrap();
    assert_eq!(last["event"], "exit", "it ended by itself");
}

#[test]
fn a_killed_daemon_leaves_no_orphan_and_the_next_one_takes_over() {
    let world = World::fake(&["--ignore-eof", "--ignore-term", "--fork-grandchild"])
        .setting("pool", json!({"stopGrace": "200ms", "killGrace": "200ms"}));
    world.mcpx(["call", "fake.echo", "text=x"]).stdout("x\n").check();
    let daemon = world.daemons()[0].pid;
    signal(daemon, libc::SIGKILL);
    wait_until("the server to die with its daemon", || (!alive(world.started("fake")[0])).then_some(()));
    // Its socket and info file are stale now; the next command replaces them, and sweeps up the grandchild.
    world.mcpx(["call", "fake.echo", "text=again"]).stdout("again\n").check();
    assert_eq!(world.daemons().len(), 1);
    assert_ne!(world.daemons()[0].pid, daemon);
    let grandchildren = || world.processes().iter().filter(|p| p.mentions("--be-grandchild")).count();
    wait_until("the first grandchild to be swept up", || (grandchildren() == 1).then_some(()));
}

#[test]
fn a_grandchild_in_a_session_of_its_own_is_found_as_well() {
    let world = World::fake(&["--setsid-grandchild"]);
    world.mcpx(["call", "fake.echo", "text=x"]).stdout("x\n").check();
    let grandchild = || world.processes().iter().any(|p| p.mentions("--be-grandchild"));
    assert!(grandchild());
    let _ = world.mcpx(["stop"]).run();
    wait_until("the grandchild to end with its server", || (!grandchild()).then_some(()));
}

#[test]
fn a_call_in_flight_ends_as_unknown_when_the_daemon_goes() {
    let world = World::fake(&[]);
    let arrived = |n: usize| {
        wait_until("the call to arrive", || (world.received("fake", "tools/call").len() == n).then_some(()));
    };
    let running = world.mcpx(["call", "fake.hang"]).start();
    arrived(1);
    signal(world.daemons()[0].pid, libc::SIGKILL);
    let output = running.wait();
    assert_eq!(output.status, 76, "{output}");
    output.says(&["not sent again"]);

    let running = world.mcpx(["call", "fake.hang"]).start();
    arrived(2);
    let _ = world.mcpx(["restart", "fake"]).run();
    let output = running.wait();
    assert_eq!(output.status, 76, "{output}");
    output.says(&["restarted"]);

    let running = world.mcpx(["call", "fake.hang"]).start();
    arrived(3);
    let _ = world.mcpx(["stop"]).run();
    let output = running.wait();
    assert_eq!(output.status, 76, "{output}");
    assert_eq!(world.received("fake", "tools/call").len(), 3, "each was sent once");
}

#[test]
fn stale_files_do_not_stand_in_the_way() {
    let world = World::demo();
    world.mcpx(["call", "demo.echo", "text=x"]).stdout("x\n").check();
    let daemon = world.daemons()[0].pid;
    let info = world.infos().remove(0);
    signal(daemon, libc::SIGKILL);
    wait_until("everything to end", || world.processes().is_empty().then_some(()));
    let file = world.state().join(format!("daemon-{}.json", info["key"].as_str().unwrap()));
    // The pid belongs to somebody else now.
    let mut reused = info.clone();
    reused["pid"] = json!(std::process::id());
    std::fs::write(&file, reused.to_string()).unwrap();
    world.mcpx(["daemons"]).any_stderr().run().says(&[]);
    world.mcpx(["call", "demo.echo", "text=y"]).stdout("y\n").check();
    assert_eq!(world.infos().len(), 1);
    // And rubbish in the file is no reason to fail either.
    let _ = world.mcpx(["stop"]).run();
    std::fs::write(&file, "{\"schema\":").unwrap();
    world.mcpx(["call", "demo.echo", "text=z"]).stdout("z\n").check();
}

#[test]
fn status_tells_about_the_daemon_and_each_instance() {
    let world = World::demo();
    let output = world.mcpx(["status"]).any_stderr().output();
    output.says(&["no daemon"]);
    assert!(world.processes().is_empty(), "asking starts nothing");
    world.mcpx(["call", "demo.counter"]).stdout("1\n").check();
    let status = world.mcpx(["--json", "status"]).run().json();
    let rows = status["instances"].as_array().unwrap();
    assert_eq!((&rows[0]["server"], &rows[0]["state"]), (&json!("demo"), &json!("ready")), "{status}");
    assert_eq!(rows[0]["calls"], 1);
    assert!(alive(rows[0]["pid"].as_u64().unwrap() as u32));
    world.mcpx(["status"]).run().says(&["demo", "ready"]);
    let daemons = world.mcpx(["daemons"]).run();
    daemons.says(&[&world.daemons()[0].pid.to_string()]);
}

#[test]
fn restart_gives_a_server_a_new_process() {
    let world = World::demo().and_fake("fake", &[]);
    world.mcpx(["call", "demo.counter"]).stdout("1\n").check();
    world.mcpx(["call", "fake.count"]).stdout("1\n").check();
    let _ = world.mcpx(["restart", "demo"]).run();
    world.mcpx(["call", "demo.counter"]).stdout("1\n").check();
    world.mcpx(["call", "fake.count"]).stdout("2\n").check();
    let _ = world.mcpx(["restart"]).run();
    world.mcpx(["call", "fake.count"]).stdout("1\n").check();
    world.mcpx(["restart", "nope"]).status(2).stderr_has("nope").check();
}

#[test]
fn a_daemon_follows_its_configuration_without_losing_a_server() {
    let world = World::demo();
    world.mcpx(["call", "demo.counter"]).stdout("1\n").check();
    let pid = world.daemons()[0].pid;
    let world = world.and_fake("fake", &[]);
    world.mcpx(["call", "demo.counter"]).stdout("2\n").check();
    world.mcpx(["call", "fake.echo", "text=new"]).stdout("new\n").check();
    let pids: Vec<u32> = world.daemons().iter().map(|p| p.pid).collect();
    assert_eq!(pids, [pid], "the same daemon carries on");
    // A changed definition is another process.
    let world = world.server(
        "demo",
        json!({"command": env!("CARGO_BIN_EXE_mcpx"), "args": ["demo-server"], "env": {"X": "1"}}),
    );
    world.mcpx(["call", "demo.counter"]).stdout("1\n").check();
}

#[test]
fn two_directories_have_two_daemons() {
    let world = World::demo();
    world.write(
        "other/.mcpx.json",
        &json!({"mcpServers": {"fake": {"command": env!("CARGO_BIN_EXE_fake-mcp")}}}).to_string(),
    );
    world.mcpx(["call", "demo.counter"]).stdout("1\n").check();
    world.mcpx(["call", "fake.echo", "text=x"]).dir("other").stdout("x\n").check();
    world.mcpx(["call", "demo.counter"]).dir("other").stdout("1\n").check();
    assert_eq!(world.daemons().len(), 2);
    // A directory below shares its daemon.
    std::fs::create_dir(world.dir().join("below")).unwrap();
    world.mcpx(["call", "demo.counter"]).dir("below").stdout("2\n").check();
    let _ = world.mcpx(["stop"]).dir("other").run();
    wait_until("one daemon to end", || (world.daemons().len() == 1).then_some(()));
    let _ = world.mcpx(["stop", "--all"]).run();
    wait_until("the other to end", || world.daemons().is_empty().then_some(()));
}

#[test]
fn a_session_scoped_server_is_one_a_session() {
    let world = World::new()
        .server("fake", json!({"command": env!("CARGO_BIN_EXE_fake-mcp"), "mcpx": {"scope": "session"}}));
    let count = |session: &str| world.mcpx(["call", "--session", session, "fake.count"]).run().stdout();
    assert_eq!(
        (count("a"), count("a"), count("b"), count("a")),
        ("1\n".into(), "2\n".into(), "1\n".into(), "3\n".into())
    );
    // Without a session each call has its own, which does not outlive it.
    assert_eq!(world.mcpx(["call", "fake.count"]).run().stdout(), "1\n");
    assert_eq!(world.mcpx(["call", "fake.count"]).run().stdout(), "1\n");
    wait_until("only the two sessions' instances to be left", || {
        (world.processes().iter().filter(|p| p.mentions("fake-mcp")).count() == 2).then_some(())
    });
}

#[test]
fn an_idle_daemon_leaves_by_itself() {
    let world = World::demo().setting("autostart", json!({"idleExit": "300ms"}));
    world.mcpx(["call", "demo.echo", "text=x"]).stdout("x\n").check();
    wait_until("the daemon to leave", || world.processes().is_empty().then_some(()));
    assert!(world.infos().is_empty());
}

#[test]
fn one_in_the_foreground_stays_until_it_is_told() {
    let world = World::demo().setting("autostart", json!({"idleExit": "100ms"}));
    let running = world.mcpx(["daemon"]).start();
    wait_until("it to be ready", || (!world.infos().is_empty()).then_some(()));
    world.mcpx(["call", "demo.counter"]).stdout("1\n").check();
    assert_eq!(world.daemons().len(), 1);
    world.mcpx(["call", "demo.counter"]).stdout("2\n").check();
    // A second one over the same configuration is refused.
    world.mcpx(["daemon"]).status(69).stderr_has(&running.pid().to_string()).check();
    running.signal(libc::SIGTERM);
    let output = running.wait();
    assert_eq!(output.status, 0, "{output}");
    assert!(world.infos().is_empty());
    // Ctrl-C is how one ends it in front of it: no failure either.
    let running = world.mcpx(["daemon"]).start();
    wait_until("it to be ready", || (!world.infos().is_empty()).then_some(()));
    running.signal(libc::SIGINT);
    assert_eq!(running.wait().status, 0);
}

#[test]
fn a_socket_that_the_configuration_names_is_where_its_daemon_listens() {
    let daemon = json!({"socket": "run/m.sock", "tick": "20ms", "keyGrace": "50ms"});
    let world = World::demo().setting("daemon", daemon.clone());
    let socket = world.dir().join("run/m.sock");
    let resolved = |world: &World| world.mcpx(["--json", "resolve"]).run().json();
    assert_eq!(resolved(&world)["socket"], json!(socket));
    world.mcpx(["call", "demo.counter"]).stdout("1\n").check();
    assert_eq!(resolved(&world)["running"], true);
    assert_eq!(world.infos()[0]["socket"], json!(socket));
    // Where a variable names it, it is that one and no other.
    let elsewhere = World::new().env("MCPX_SOCKET", &socket);
    assert_eq!(elsewhere.mcpx(["--json", "status"]).run().json()["daemon"]["socket"], json!(socket));
    // An edit gives it another key, and the same socket and servers.
    let world = world.and_fake("fake", &[]);
    world.mcpx(["call", "demo.counter"]).stdout("2\n").check();
    wait_until("the earlier names to end", || (world.infos().len() == 1).then_some(()));
    world.mcpx(["call", "demo.counter"]).stdout("3\n").check();
    assert_eq!(resolved(&world)["socket"], json!(socket));
    // Another configuration cannot have it too.
    let second = World::demo().setting("daemon", json!({"socket": socket}));
    second.mcpx(["call", "demo.echo", "text=x"]).status(69).stderr_has("one of its own").check();
    // It moves when the file says so, and goes with the daemon.
    let world = world.setting("daemon", json!({"tick": "20ms", "keyGrace": "50ms"}));
    world.mcpx(["call", "demo.counter"]).stdout("4\n").check();
    wait_until("the socket to be given back", || (!socket.exists()).then_some(()));
    let world = world.setting("daemon", daemon);
    world.mcpx(["call", "demo.counter"]).stdout("5\n").check();
    assert!(socket.exists());
    let _ = world.mcpx(["stop"]).run();
    assert!(!socket.exists());
    // By hand.
    let running = world.mcpx(["daemon", "--socket", "hand.sock"]).start();
    let hand = world.dir().join("hand.sock");
    wait_until("it to listen there", || hand.exists().then_some(()));
    world.mcpx(["call", "demo.counter", "--socket", "hand.sock"]).stdout("1\n").check();
    running.signal(libc::SIGTERM);
    assert_eq!(running.wait().status, 0);
    assert!(!hand.exists());
}

#[test]
fn a_socket_left_by_a_daemon_that_was_killed_is_taken_again_and_pruned() {
    let world = World::demo().setting("daemon", json!({"socket": "m.sock"}));
    let socket = world.dir().join("m.sock");
    let kill = || {
        let pid = world.daemons()[0].pid;
        signal(pid, libc::SIGKILL);
        wait_until("everything to be gone", || world.processes().is_empty().then_some(()));
    };
    world.mcpx(["call", "demo.counter"]).stdout("1\n").check();
    kill();
    world.mcpx(["call", "demo.counter"]).stdout("1\n").check();
    kill();
    let said = world.mcpx(["--json", "daemons", "prune"]).run().json();
    assert!(!socket.exists() && world.infos().is_empty(), "{said}");
}

#[test]
fn what_a_daemon_takes_only_at_start_is_said_to_need_a_restart() {
    let world = World::demo().setting("daemon", json!({"tick": "20ms"}));
    world.mcpx(["call", "demo.counter"]).stdout("1\n").check();
    let status = |world: &World| world.mcpx(["--json", "status"]).run().json()["daemon"].clone();
    assert!(status(&world).get("restart").is_none());
    let before = world.infos()[0]["endpoint"].clone();
    let world = world.setting("transport", json!({"listen": "127.0.0.2:0", "writeTimeout": "20s"}));
    world.mcpx(["call", "demo.counter"]).stdout("2\n").check();
    assert_eq!(status(&world)["restart"], json!(["transport.listen"]), "the other holds already");
    assert_eq!(world.infos()[0]["endpoint"], before);
    world.mcpx(["status"]).stdout_has("transport.listen needs mcpx restart --daemon").check();
    wait_until("the log to say so", || {
        let log = world.mcpx(["log", "--grep", "needs a restart"]).any_stderr().run().stdout();
        log.contains("transport.listen").then_some(())
    });
    let _ = world.mcpx(["restart", "--daemon"]).any_stderr().run();
    assert!(status(&world).get("restart").is_none());
    assert!(world.infos()[0]["endpoint"].as_str().unwrap().starts_with("http://127.0.0.2:"));
    // Undone before a restart, nothing waits for one.
    let world = world.setting("transport", json!({"tcp": false}));
    let _ = world.mcpx(["reload"]).run();
    assert_eq!(
        world.mcpx(["--json", "status"]).run().json()["daemon"]["restart"],
        json!(["transport.tcp", "transport.listen"])
    );
    let world = world.setting("transport", json!({"listen": "127.0.0.2:0"}));
    let _ = world.mcpx(["reload"]).run();
    assert!(status(&world).get("restart").is_none());
}

#[test]
fn what_keeps_a_daemon_from_starting_says_what_to_do() {
    let world = World::demo();
    world.mcpx(["daemon", "--dir", "/no/such/place"]).status(2).stderr_has("does not exist").check();
    world.mcpx(["daemon", "--dir", "/dev/null"]).status(2).stderr_has("is not a directory").check();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = world.mcpx(["daemon", "--listen", &address]).status(69).any_stderr().run();
    output.says(&[&address, "--listen takes another port"]);
}

#[test]
fn a_state_directory_that_cannot_be_written_is_named() {
    let world = World::demo().file("file", "not a directory");
    let path = world.dir().join("file/state");
    let output = world
        .mcpx(["call", "demo.echo", "text=x"])
        .env("MCPX_STATE_DIR", path.clone())
        .status(69)
        .any_stderr()
        .run();
    output.says(&[path.to_str().unwrap()]);
}

#[test]
fn a_long_path_still_finds_room_for_a_socket() {
    let world = World::demo();
    let long = world.home().join("x".repeat(120));
    world.mcpx(["call", "demo.counter"]).env("MCPX_STATE_DIR", long.clone()).stdout("1\n").check();
    world.mcpx(["call", "demo.counter"]).env("MCPX_STATE_DIR", long.clone()).stdout("2\n").check();
    let _ = world.mcpx(["stop"]).env("MCPX_STATE_DIR", long).run();
    wait_until("everything to end", || world.processes().is_empty().then_some(()));
}

#[test]
fn listening_beyond_loopback_needs_a_token_and_is_then_named_by_address() {
    let world = World::demo().env("MCPX_TRANSPORT_LISTEN", "0.0.0.0:0");
    world.mcpx(["call", "demo.echo", "text=x"]).status(77).stderr_has("transport.bearerToken").check();
    let world = world.env("MCPX_TRANSPORT_BEARER_TOKEN", "a-token-of-ones-own");
    world.mcpx(["call", "demo.echo", "text=x"]).stdout("x\n").check();
    let port = world.infos()[0]["endpoint"].as_str().unwrap().rsplit(':').next().unwrap().to_owned();
    let at = |host: &str| format!("http://{host}:{port}");
    world.mcpx(["--endpoint", &at("127.0.0.1"), "call", "demo.echo", "text=y"]).stdout("y\n").check();
    world
        .mcpx(["--endpoint", &at("localhost"), "call", "demo.echo", "text=y"])
        .status(77)
        .stderr_has("transport.hosts")
        .check();
}

#[test]
fn a_service_is_written_and_removed() {
    let world = World::demo();
    let printed = world.mcpx(["service", "print", "--manager", "systemd"]).run().stdout();
    assert!(printed.contains("ExecStart=") && printed.contains("daemon --dir"), "{printed}");
    let agent = world.mcpx(["service", "print", "--manager", "launchd"]).run().stdout();
    assert!(agent.starts_with("<?xml") && agent.contains("<string>daemon</string>"), "{agent}");
    // No manager is on this world's PATH: the file is written, and it says what to run.
    let output = world
        .mcpx(["--json", "service", "install", "--manager", "systemd"])
        .status(69)
        .stderr_has("systemctl --user daemon-reload")
        .run();
    let path = std::path::PathBuf::from(output.json()["path"].as_str().unwrap());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), printed);
    let _ = world.mcpx(["service", "uninstall", "--manager", "systemd"]).status(69).any_stderr().run();
    assert!(!path.exists());
    let again = world.mcpx(["service", "uninstall"]).output();
    assert_ne!(again.status, 0, "{again}");
    world.mcpx(["service", "instal"]).status(2).stderr_has("install").check();
}

#[test]
fn stale_daemons_are_listed_with_the_reason_and_pruned() {
    let world = World::fake(&[]);
    world.mcpx(["call", "fake.echo", "text=x"]).stdout("x\n").check();
    let live = world.infos()[0].clone();
    let row = world.mcpx(["--json", "daemons"]).run().json()["daemons"][0].clone();
    assert_eq!(
        (&row["live"], &row["answers"], &row["sessions"]),
        (&json!(true), &json!(true), &json!(0)),
        "{row}"
    );
    // One that was killed, with the names that it had before an edit.
    let mut gone = live.clone();
    gone["pid"] = json!(u32::MAX >> 2);
    gone["key"] = json!("0123456789abcdef");
    for name in ["0123456789abcdef", "fedcba9876543210"] {
        std::fs::write(world.state().join(format!("daemon-{name}.json")), gone.to_string()).unwrap();
        drop(
            std::os::unix::net::UnixListener::bind(world.state().join(format!("daemon-{name}.sock")))
                .unwrap(),
        );
        std::fs::write(world.state().join(format!("daemon-{name}.lock")), "").unwrap();
    }
    let _ = world.mcpx(["daemons"]).stdout_has("stale: process").run();
    let removed = world.mcpx(["--json", "daemons", "prune"]).run().json()["removed"].clone();
    assert_eq!(removed.as_array().unwrap().len(), 6, "{removed}");
    assert_eq!(world.mcpx(["daemons", "prune"]).run().stdout(), "nothing is stale\n");
    assert_eq!(world.infos(), [live]);
    world.mcpx(["call", "fake.echo", "text=y"]).stdout("y\n").check();
    assert_eq!(world.started("fake").len(), 1);
}

#[test]
fn two_hundred_directories_are_resolved_at_once_while_calls_are_in_flight() {
    let world = World::fake(&[]);
    world.mcpx(["call", "fake.echo", "text=x"]).stdout("x\n").check();
    let busy: Vec<_> = (0..4).map(|_| world.mcpx(["call", "fake.sleep", "ms:=3000"]).start()).collect();
    let info = world.infos()[0].clone();
    let socket = std::path::PathBuf::from(info["socket"].as_str().unwrap());
    for n in 0..200 {
        world.write(&format!("d{n}/.mcpx.json"), &format!("{{\"mcpServers\":{{}},\"x{n}\":1}}"));
    }
    let asking: Vec<_> = (0..200)
        .map(|n| {
            let (socket, dir) = (socket.clone(), world.dir().join(format!("d{n}/")));
            std::thread::spawn(move || {
                use std::io::{Read, Write};
                let mut stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
                let path = dir.to_str().unwrap();
                write!(stream, "GET /v1/resolve?dir={path} HTTP/1.1\r\nHost: m\r\nConnection: close\r\n\r\n")
                    .unwrap();
                let mut text = String::new();
                stream.read_to_string(&mut text).unwrap();
                let body: serde_json::Value =
                    serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap();
                assert_eq!(body["configPath"], dir.join(".mcpx.json").to_str().unwrap(), "{body}");
                assert_eq!(body["running"], false);
                body["configHash"].as_str().unwrap().to_owned()
            })
        })
        .collect();
    let keys: std::collections::HashSet<String> = asking.into_iter().map(|t| t.join().unwrap()).collect();
    assert_eq!(keys.len(), 200, "each has a key of its own");
    assert!(!keys.contains(info["key"].as_str().unwrap()));
    for running in busy {
        let output = running.wait();
        assert_eq!(output.status, 0, "{output}");
    }
    let own = world.mcpx(["--json", "resolve"]).run().json();
    assert_eq!((&own["ok"], &own["running"]), (&json!(true), &json!(true)));
}

#[test]
fn two_hundred_edits_and_calls_reach_one_daemon_with_its_old_server() {
    let world = World::fake(&[]);
    world.mcpx(["call", "fake.count"]).stdout("1\n").check();
    let path = world.dir().join(".mcpx.json");
    let before = std::fs::read_to_string(&path).unwrap();
    for n in 2..=201 {
        let edited = before.trim_end().trim_end_matches('}').to_owned()
            + &format!(",\"script\":{{\"timeout\":\"{n}s\"}}}}");
        std::fs::write(&path, edited).unwrap();
        world.mcpx(["call", "fake.count"]).stdout(&format!("{n}\n")).check();
    }
    assert_eq!((world.daemons().len(), world.started("fake").len()), (1, 1));
}
