//! A machine that lacks something: `/proc`, or room on a disk. Both are made in a mount
//! namespace, where that is allowed; else these tests say that they were skipped.

use crate::harness::{World, tools::on_path, wait_until};
use std::path::Path;
use std::process::Command;

/// Runs a shell script in a mount namespace of its own, and gives what it printed, stderr included.
/// `None` where no such namespace can be made.
fn apart(world: &World, script: &str) -> Option<String> {
    let unshare = on_path("unshare")?;
    let tools = [
        ("MOUNT", on_path("mount")?),
        ("CAT", on_path("cat")?),
        ("RM", on_path("rm")?),
        ("ECHO", on_path("echo")?),
    ];
    let run = |flags: &[&str], script: &str| {
        Command::new(&unshare)
            .args(flags)
            .args(["sh", "-c", &format!("exec 2>&1; {script}")])
            .env_clear()
            .envs(world.environment())
            .envs(tools.iter().map(|(name, path)| (name, path)))
            .env("MCPX", env!("CARGO_BIN_EXE_mcpx"))
            .current_dir(world.dir())
            .output()
            .expect("unshare runs")
    };
    // As root without a user namespace of its own; for others with one.
    let allowed = [&["--mount"][..], &["--user", "--map-root-user", "--mount"]]
        .into_iter()
        .find(|flags| run(flags, "\"$MOUNT\" -t tmpfs none /mnt").status.success());
    let Some(flags) = allowed else {
        eprintln!("skipped: no mount namespace can be made here");
        return None;
    };
    let output = run(flags, script);
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Each line of a script's output that is the answer to a marked command: `name: text`.
#[track_caller]
fn says(said: &str, lines: &[&str]) {
    for line in lines {
        assert!(said.lines().any(|l| l.starts_with(line)), "no line is {line:?}:\n{said}");
    }
}

#[track_caller]
fn nothing_is_left(world: &World) {
    wait_until("everything to end", || world.processes().is_empty().then_some(()));
    wait_until("the daemon's files to be gone", || world.infos().is_empty().then_some(()));
}

#[test]
fn without_proc_everything_that_does_not_need_it_works() {
    let world = World::demo().file("s.sh", "#!/bin/sh\n\"$MCPX\" call demo.counter\n");
    let script = r#"
        "$MOUNT" -t tmpfs none /proc || exit 1
        test -e /proc/self && echo "proc is still there"
        "$MCPX" call demo.counter
        "$MCPX" call demo.counter
        "$MCPX" run s.sh
        "$MCPX" daemons | "$CAT"
        "$MCPX" status
        "$MCPX" --json session list
        "$MCPX" call demo.counter --no-daemon
        "$MCPX" doctor --no-servers > doctor; echo "doctor: $?"
        echo '{"mcpServers": {"demo": {"command": "'"$MCPX"'", "args": ["demo-server"]}, "own": {"mcpx": {"program": {"command": "'"$ECHO"'", "tools": {"say": {"args": ["said"]}}}}}}}' > .mcpx.json
        "$MCPX" call demo.counter
        "$MCPX" call own.say
        "$MCPX" stop; echo "stop: $?""#;
    let Some(said) = apart(&world, script) else { return };
    assert!(!said.contains("proc is still there"), "{said}");
    let numbers: Vec<&str> = said.lines().filter(|l| l.len() == 1).collect();
    // One daemon for all of them but for the one that wanted none.
    assert_eq!(numbers, ["1", "2", "3", "1", "4"], "{said}");
    says(&said, &["KEY ", "demo ", "{\"ok\":true,\"sessions\":[]}", "doctor: 0", "said", "stop: 0"]);
    assert_eq!(said.matches(" live ").count(), 1, "{said}");
    nothing_is_left(&world);
}

/// Fills what is left of a small file system at `full`.
const FILL: &str = r#""$CAT" /dev/zero > full/zero 2> /dev/null"#;

#[test]
fn a_full_disk_for_state_is_said_and_no_daemon_is_needed() {
    let world = World::demo();
    std::fs::create_dir(world.dir().join("full")).unwrap();
    let script = format!(
        r#""$MOUNT" -t tmpfs -o size=64k,mode=700 none full || exit 1
        export MCPX_STATE_DIR="$PWD/full"
        {FILL}
        "$MCPX" call demo.counter; echo "call: $?"
        "$MCPX" call demo.counter --no-daemon; echo "alone: $?"
        "$MCPX" doctor --no-servers"#
    );
    let Some(said) = apart(&world, &script) else { return };
    for part in ["No space left", "MCPX_STATE_DIR", "--no-daemon", "call: 69\n1\nalone: 0", "make room"] {
        assert!(said.contains(part), "{part:?} is not in\n{said}");
    }
    nothing_is_left(&world);
}

#[test]
fn a_disk_that_fills_up_meanwhile_stops_no_call() {
    let world = World::demo().file("edited.json", &edited());
    std::fs::create_dir(world.dir().join("full")).unwrap();
    let script = format!(
        r#""$MOUNT" -t tmpfs -o size=256k,mode=700 none full || exit 1
        export MCPX_STATE_DIR="$PWD/full"
        "$MCPX" call demo.counter
        {FILL}
        "$MCPX" call demo.counter
        "$MCPX" call demo.counter
        "$CAT" edited.json > .mcpx.json
        "$MCPX" call demo.counter
        "$MCPX" status > status; "$CAT" status
        "$RM" full/zero
        "$MCPX" call demo.counter
        "$MCPX" call more.echo text=there
        "$MCPX" stop; echo "stop: $?""#
    );
    let Some(said) = apart(&world, &script) else { return };
    let numbers: Vec<&str> = said.lines().filter(|l| l.len() == 1).collect();
    assert_eq!(numbers, ["1", "2", "3", "4", "5"], "the server was never lost: {said}");
    assert!(
        said.contains("the last good configuration is in use") && said.contains("No space left"),
        "{said}"
    );
    says(&said, &["there", "stop: 0"]);
    nothing_is_left(&world);
}

#[test]
fn a_full_disk_for_the_cache_costs_only_the_cache() {
    let world = World::demo();
    std::fs::create_dir(world.dir().join("full")).unwrap();
    let script = format!(
        r#""$MOUNT" -t tmpfs -o size=64k,mode=700 none full || exit 1
        export MCPX_CACHE_DIR="$PWD/full"
        {FILL}
        "$MCPX" call demo.counter
        "$MCPX" ls
        "$MCPX" status
        "$MCPX" exec 1; echo "exec: $?"
        "$MCPX" stop"#
    );
    let Some(said) = apart(&world, &script) else { return };
    says(&said, &["1", "demo ", "warning   keeping the schemas of server \"demo\" on disk: No space left"]);
    nothing_is_left(&world);
}

fn edited() -> String {
    let server =
        serde_json::json!({"command": Path::new(env!("CARGO_BIN_EXE_mcpx")), "args": ["demo-server"]});
    serde_json::json!({"mcpServers": {"demo": server, "more": server}}).to_string()
}
