//! How a command starts the daemon it needs: what goes along, what does not, and
//! what is said where it cannot be.

use crate::harness::World;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

#[test]
fn flags_and_presets_of_the_daemon_reach_the_one_that_is_started() {
    let world = World::demo().setting("presets", json!({"small": ["--pool-max=7"]}));
    world
        .mcpx(["--pool-idle-timeout", "77s", "--preset", "small", "call", "demo.echo", "text=x"])
        .stdout("x\n")
        .check();
    let setting = |key: &str| {
        let rows = world.mcpx(["--json", "--pool-idle-timeout", "77s", "status"]).run();
        drop(rows);
        let info = world.infos()[0].clone();
        ask(info["socket"].as_str().unwrap(), &format!("/v1/settings/{key}"))["text"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(setting("pool.idleTimeout"), "1m17s");
    assert_eq!(setting("pool.max"), "7");
    // One that runs keeps what it has, and that is said once.
    let other = world.mcpx(["--pool-idle-timeout", "88s", "call", "demo.echo", "text=x"]).any_stderr().run();
    other.says(&["keeps pool.idleTimeout at 1m17s", "mcpx restart --daemon --pool-idle-timeout 1m28s"]);
    assert_eq!(other.stdout(), "x\n");
    world.mcpx(["--pool-idle-timeout", "77s", "call", "demo.echo", "text=x"]).stdout("x\n").check();
    let _ = world.mcpx(["restart", "--daemon", "--pool-idle-timeout", "88s"]).run();
    assert_eq!(setting("pool.idleTimeout"), "1m28s");
}

/// What a daemon answers on its socket.
fn ask(socket: &str, path: &str) -> serde_json::Value {
    use std::io::{Read, Write};
    let mut stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: mcpx\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[test]
fn the_daemon_is_detached() {
    let world = World::demo();
    world.mcpx(["call", "demo.echo", "text=x"]).stdout("x\n").check();
    let pid = world.daemons()[0].pid;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    assert_eq!(fields[3], pid.to_string(), "a session of its own");
    assert_eq!(fields[4], "0", "no terminal");
    assert_eq!(std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap(), Path::new("/"));
    for fd in [0, 2] {
        assert_eq!(std::fs::read_link(format!("/proc/{pid}/fd/{fd}")).unwrap(), Path::new("/dev/null"));
    }
    // Of what the command had open it has nothing: a directory is what the test leaves open for it.
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    for fd in open {
        let to = std::fs::read_link(fd.path()).unwrap_or_default();
        assert!(!to.starts_with(world.dir()), "{}", to.display());
    }
}

#[test]
fn without_a_home_it_says_what_to_set() {
    let world = World::demo();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_mcpx"));
    command.args(["call", "demo.echo", "text=x"]).current_dir(world.dir()).env_clear();
    command.envs(world.environment()).env_remove("HOME");
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(69), "{said}");
    assert!(said.contains("MCPX_STATE_DIR"), "{said}");
    // And with that it works.
    let (state, cache) = (world.state(), world.cache());
    let output = command.env("MCPX_STATE_DIR", &state).env("MCPX_CACHE_DIR", &cache).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "x\n");
}

#[test]
fn a_home_that_cannot_be_written_says_what_to_set() {
    // root may write anywhere, but not below what is no directory.
    let world = World::demo();
    world.write("file", "");
    let home = world.dir().join("file/home");
    let output = world.mcpx(["call", "demo.echo", "text=x"]).env("HOME", home).status(69).any_stderr().run();
    output.says(&["file/home", "MCPX_STATE_DIR"]);
    let state = world.dir().join("s");
    let again = world.mcpx(["call", "demo.echo", "text=x"]).env("HOME", world.dir().join("file/home"));
    let cache = world.dir().join("c");
    again.env("MCPX_STATE_DIR", &state).env("MCPX_CACHE_DIR", &cache).stdout("x\n").any_stderr().check();
    let mode = std::fs::metadata(&state).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o700);
    let stop = world.mcpx(["stop", "--all"]).env("HOME", world.dir().join("file/home"));
    let _ = stop.env("MCPX_STATE_DIR", &state).env("MCPX_CACHE_DIR", &cache).any_stderr().run();
}
