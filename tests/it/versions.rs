//! Daemons and commands of different versions: what both know works, the rest
//! says what to do, and no older command replaces a newer daemon.

use crate::harness::{World, alive, wait_until};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

/// A daemon of another version, as far as a command can tell: it serves the
/// world's socket, knows health and nothing else, and is this process.
struct Other {
    info: PathBuf,
    socket: PathBuf,
}

impl Other {
    fn of(world: &World, version: &'static str) -> Other {
        let key =
            world.mcpx(["--json", "config", "--plumbing"]).run().json()["key"].as_str().unwrap().to_owned();
        std::fs::create_dir_all(world.state()).unwrap();
        let socket = world.state().join(format!("daemon-{key}.sock"));
        let info = world.state().join(format!("daemon-{key}.json"));
        let listener = UnixListener::bind(&socket).unwrap();
        let pid = std::process::id();
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
        let ticks: u64 =
            stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().parse().unwrap();
        let said = json!({
            "schema": 1, "key": key, "pid": pid, "startTicks": ticks, "socket": socket, "endpoint": "",
            "version": version, "startedAt": 1, "servers": [], "sources": [], "somethingNew": {"x": 1},
        });
        std::fs::write(&info, said.to_string()).unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                std::thread::spawn(move || serve(stream, version));
            }
        });
        Other { info, socket }
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.info);
        let _ = std::fs::remove_file(&self.socket);
    }
}

fn serve(stream: UnixStream, version: &str) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
        }
        let length =
            head.lines().find_map(|l| l.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut body).unwrap();
        let path = head.split(' ').nth(1).unwrap().to_owned();
        let (status, answer): (&str, Value) = match path.as_str() {
            "/v1/health" => {
                ("200 OK", json!({"ok": true, "version": version, "pid": std::process::id(), "api": 2}))
            }
            other => (
                "404 Not Found",
                json!({"error": {"kind": "not-found", "message": format!("the daemon has no {other}")}}),
            ),
        };
        let text = answer.to_string();
        let length = text.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        if reader.get_mut().write_all(format!("{head}{text}").as_bytes()).is_err() {
            return;
        }
    }
}

#[test]
fn an_unknown_route_names_both_versions_and_what_to_do() {
    let world = World::demo();
    let _other = Other::of(&world, "0.0.1");
    world
        .mcpx(["refresh"])
        .status(69)
        .stderr_has("the daemon does not know /v1/refresh")
        .stderr_has("it is version 0.0.1, this mcpx is version")
        .stderr_has("mcpx restart --daemon")
        .check();
}

#[test]
fn an_older_command_leaves_a_newer_daemon_alone() {
    let world = World::demo();
    let other = Other::of(&world, "99.0.0");
    world.mcpx(["restart", "--daemon"]).status(77).stderr_has("99.0.0").stderr_has("--force").check();
    let _ = world.mcpx(["daemons"]).stdout_has("99.0.0").run();
    assert!(other.info.exists());
    assert!(world.daemons().is_empty());
    // With --force it is asked to leave, and this one does not know how.
    let _ = world.mcpx(["restart", "--daemon", "--force"]).status(69).stderr_has("/v1/shutdown").run();
    assert!(world.daemons().is_empty(), "never two");
}

#[test]
fn a_daemon_that_says_another_version_is_replaced() {
    let world = World::fake(&[]);
    world.mcpx(["call", "fake.echo", "text=x"]).stdout("x\n").check();
    // What it says in its file is what commands of other versions go by.
    let mut info = world.infos()[0].clone();
    let old = info["pid"].as_u64().unwrap() as u32;
    info["version"] = json!("0.0.1");
    info["somethingNew"] = json!([1]);
    let path = world.state().join(format!("daemon-{}.json", info["key"].as_str().unwrap()));
    std::fs::write(&path, info.to_string()).unwrap();
    world.mcpx(["call", "fake.echo", "text=y"]).stdout("y\n").check();
    assert_eq!(world.daemons().len(), 1, "it is good enough for what both know");
    let _ = world.mcpx(["restart", "--daemon"]).stdout_has("a new daemon runs").run();
    let new = world.infos()[0].clone();
    assert_eq!(world.infos().len(), 1);
    assert_eq!(new["key"], info["key"]);
    assert_ne!(new["pid"], info["pid"]);
    assert_eq!(new["version"], env!("CARGO_PKG_VERSION"));
    assert!(!alive(old));
}

#[test]
fn a_restart_lets_calls_in_flight_end() {
    let world = World::demo();
    world.mcpx(["call", "demo.echo", "text=x"]).stdout("x\n").check();
    let calling = world.mcpx(["call", "demo.slow", "seconds=2"]).start();
    wait_until("the call is in flight", || {
        let status = world.mcpx(["--json", "status"]).run().json();
        let rows = status["instances"].as_array().unwrap().clone();
        rows.iter().any(|r| r["inFlight"].as_u64().unwrap_or(0) > 0).then_some(())
    });
    let restarting = world.mcpx(["restart", "--daemon"]).start();
    // Commands that come meanwhile get the new one.
    world.mcpx(["call", "demo.echo", "text=during"]).stdout("during\n").check();
    let call = calling.wait();
    assert_eq!(call.status, 0, "{call}");
    let restart = restarting.wait();
    assert_eq!(restart.status, 0, "{restart}");
    // A process that was just forked looks like its parent for a moment.
    wait_until("one daemon is left", || (world.daemons().len() == 1).then_some(()));
    assert_eq!(world.infos().len(), 1);
}
