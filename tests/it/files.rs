//! Files that are not there, cannot be read or cannot be written: one exit code
//! and one kind for each, whichever command takes the path.

use crate::harness::{Runtime, World};
use std::process::{Command, Stdio};

/// A world with a file where a directory is wanted (`file`), a directory where a file is wanted
/// (`dir`), and a script.
fn world() -> World {
    let world = World::demo().with(Runtime::Bun).file("file", "").file("dir/inside", "");
    world.file("s.sh", "exit 3\n")
}

/// Each ends with this code, and with that kind where it is asked for JSON; nothing is left of what is not written.
#[track_caller]
fn each(world: &World, code: i32, kind: &str, rows: &[(&[&str], &str)]) {
    for (words, part) in rows {
        world.mcpx(*words).status(code).stderr_has(part).check();
        let output = world.mcpx(["--json"].iter().chain(*words)).status(code).any_stderr().run();
        let error = &output.json()["error"];
        assert_eq!(error["kind"], kind, "{words:?}: {output}");
        let message = error["message"].as_str().unwrap();
        assert!(!message.contains("os error"), "{words:?}: {message}");
    }
}

#[test]
fn what_cannot_be_read_ends_with_66() {
    let world = world();
    let rows: &[(&[&str], &str)] = &[
        (&["call", "demo.echo", "@absent.json"], "absent.json: no such file"),
        (&["call", "demo.echo", "@dir"], "dir: is a directory"),
        (&["call", "demo.echo", "@file/x"], "file/x: not a directory"),
        (&["api", "tools", "absent.json"], "absent.json: no such file"),
        (&["api", "serve", "dir"], "dir: is a directory"),
        (&["exec", "--env-file", "absent", "1"], "absent: no such file"),
        (&["run", "--env-file", "dir", "s.sh"], "dir: is a directory"),
        (&["servers", "import", "--from", "absent.json"], "absent.json: there is no such file"),
        (&["servers", "import", "--from", "dir"], "dir: it is not a regular file"),
        (&["check"], "there is no lock"),
        (&["check", "--catalog-lock", "absent.json"], "there is no lock"),
        (&["ls", "--frozen"], "there is no lock"),
        (&["check", "--catalog-lock", "dir"], "dir: is a directory"),
    ];
    each(&world, 66, "unreadable", rows);
    world.write(".opencode", "");
    each(&world, 66, "unreadable", &[(&["plugin", "install", "opencode"], "not a directory")]);
    // The log's own place.
    let world = World::demo();
    std::fs::create_dir_all(world.state()).unwrap();
    std::fs::write(world.state().join("log"), "").unwrap();
    let rows: &[(&[&str], &str)] = &[
        (&["log"], "state/mcpx/log: not a directory"),
        (&["log", "--follow"], "reading the log"),
        (&["log", "--chain", "x"], "reading the log"),
        (&["stats"], "reading the log"),
    ];
    each(&world, 66, "unreadable", rows);
    // A daemon that serves all the same says so of its own.
    let _ = world.mcpx(["call", "demo.echo", "text=x"]).any_stderr().stdout("x\n").run();
    for path in
        ["/v1/log", "/v1/log?lines=1", "/v1/log?follow=1", "/v1/log/chain?id=x", "/v1/stats?about=calls"]
    {
        let (status, body) = world.ask("GET", path, None);
        assert_eq!((status, body["error"]["kind"].as_str()), (400, Some("unreadable")), "{path}: {body}");
    }
}

#[test]
fn what_cannot_be_written_ends_with_74() {
    let world = world();
    let script = "await artifact({ name: 'kept', text: 'kept' }); return 1";
    world.mcpx(["exec", script]).stdout("1\n").check();
    std::fs::set_permissions(
        world.dir().join(".mcpx.json"),
        std::os::unix::fs::PermissionsExt::from_mode(0o444),
    )
    .unwrap();
    let rows: &[(&[&str], &str)] = &[
        (&["init", "file"], "writing"),
        (&["init", "file", "--force"], "writing"),
        (&["init", "absent"], "no such file or directory"),
        (&["client", "-o", "file/client.mjs"], "file"),
        (&["artifacts", "get", "kept", "-o", "file/kept"], "not a directory"),
        (&["artifacts", "get", "kept", "-o", "absent/kept"], "no such file or directory"),
        (&["lock", "--catalog-lock", "absent/lock.json"], "no such file or directory"),
        (&["exec", "--report", "file/report.xml", "1"], "making its directory"),
        (&["run", "--report", "dir", "s.sh"], "it is a directory"),
        (&["call", "demo.image", "--output-media-dir", "file/media"], "creating the directory"),
        (&["settings", "set", "pool.max", "3"], "the file is read-only; nothing was changed"),
        (&["servers", "add", "new", "--", "true"], "the file is read-only; nothing was changed"),
        (&["servers", "disable", "demo"], "the file is read-only; nothing was changed"),
        (&["servers", "remove", "demo"], "the file is read-only; nothing was changed"),
    ];
    each(&world, 74, "unwritable", rows);
    for left in ["absent", "report.xml", "lock.json"] {
        assert!(!world.dir().join(left).exists(), "{left}");
    }
}

#[test]
fn a_full_standard_output_ends_with_74() {
    let world = world();
    let _ = world.mcpx(["lock"]).run();
    for words in [
        &["ls"][..],
        &["tools"],
        &["types"],
        &["search", "echo"],
        &["catalog", "--budget", "500"],
        &["call", "demo.echo", "text=x"],
        &["check"],
        &["status"],
        &["session", "list"],
        &["config"],
        &["settings"],
        &["log"],
        &["stats"],
        &["events"],
        &["completions", "bash"],
        &["man"],
        &["help", "exit-codes"],
        &["version"],
        &["--help"],
        &["--json", "ls"],
    ] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_mcpx"))
            .args(words)
            .env_clear()
            .envs(world.environment())
            .current_dir(world.dir())
            .stdin(Stdio::null())
            .stdout(full)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(74), "{words:?}: {said}");
        assert!(said.contains("writing to standard output: no space left on device"), "{words:?}: {said}");
    }
}

#[test]
fn what_decides_what_is_run_has_codes_of_its_own() {
    let world = world();
    // The configuration is whole or it is not, whatever the reason.
    world.mcpx(["--config", "absent.json", "ls"]).status(65).stderr_has("absent.json").check();
    world.mcpx(["--config", "dir", "ls"]).status(65).stderr_has("it is a directory").check();
    // A script that is not there is what a shell says of a command that is not there.
    world.mcpx(["run", "./absent.ts"]).status(127).stderr_has("absent.ts").check();
    world.mcpx(["run", "./file/absent.ts"]).status(127).stderr_has("absent.ts").check();
}
