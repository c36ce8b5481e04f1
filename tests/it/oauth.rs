//! Servers that want a login, against a real server and a real authorisation
//! server (`tests/oauth/server.mjs`), with a browser whose user agrees.

use crate::harness::{World, tools, wait_until};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A server that wants a token, with the one that grants it.
struct Guarded {
    child: Child,
    base: String,
}

impl Guarded {
    fn start(args: &[&str]) -> Guarded {
        let mut command = Command::new(node());
        command.arg(below("server.mjs")).args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut base = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut base).unwrap();
        Guarded { child, base: base.trim().to_owned() }
    }

    fn block(&self) -> Value {
        json!({"url": format!("{}/mcp", self.base)})
    }

    /// What it was asked.
    fn seen(&self, what: &str) -> Value {
        let address = self.base.strip_prefix("http://").unwrap();
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        write!(stream, "GET /seen HTTP/1.0\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let body = text.split_once("\r\n\r\n").unwrap().1;
        serde_json::from_str::<Value>(body).unwrap()[what].clone()
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn node() -> PathBuf {
    tools::installed("node_modules/node22/bin/node")
}

fn below(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oauth").join(name)
}

/// A world with that server as `guarded`, and a browser.
fn world(guarded: &Guarded, block: Value) -> World {
    let mut whole = guarded.block();
    whole.as_object_mut().unwrap().extend(block.as_object().unwrap().clone());
    let world = World::new().server("guarded", whole);
    world.link("node", &node());
    world.link("browser", &below("browser.mjs"));
    world.env("BROWSER", "browser")
}

fn stored(world: &World) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(world.state().join("oauth"));
    let files = entries.into_iter().flatten().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|e| e == "json")).collect()
}

/// Every file below a directory.
fn all_files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => found.extend(all_files(&entry.path())),
            kind if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
    found
}

#[test]
fn a_login_lasts_until_the_logout() {
    let guarded = Guarded::start(&[]);
    let world = world(&guarded, json!({})).setting("logging", json!({"level": "debug", "arguments": true}));
    world
        .mcpx(["call", "guarded.echo", "text=x"])
        .status(77)
        .any_stderr()
        .stderr_has("mcpx auth login guarded")
        .check();
    world.mcpx(["auth"]).run().says(&["guarded", "wanted"]);
    let login = world.mcpx(["auth", "login", "guarded"]).any_stderr().run();
    assert_eq!(login.status, 0, "{login}");
    login.says(&["logged in to guarded", &guarded.base]);
    world.mcpx(["call", "guarded.echo", "text=x"]).stdout("x\n").check();
    // What was asked for: this server's scope, for this server, once.
    assert_eq!(guarded.seen("scopes"), json!(["read"]));
    assert_eq!(guarded.seen("resources"), json!([format!("{}/mcp", guarded.base)]));
    // The token is in one private file and nowhere else.
    let files = stored(&world);
    assert_eq!(files.len(), 1);
    assert_eq!(std::fs::metadata(&files[0]).unwrap().permissions().mode() & 0o777, 0o600);
    let record: Value = serde_json::from_slice(&std::fs::read(&files[0]).unwrap()).unwrap();
    let token = record["tokens"]["access"].as_str().unwrap();
    let refresh = record["tokens"]["refresh"].as_str().unwrap();
    for words in [
        &["auth"][..],
        &["--json", "auth"],
        &["status"],
        &["--json", "status"],
        &["servers", "show", "guarded"],
        &["--json", "servers", "show", "guarded"],
        &["--json", "config"],
        &["doctor"],
        &["--json", "doctor"],
        &["log", "--all"],
        &["--json", "log"],
        &["--json", "events"],
        &["--json", "settings"],
        &["--json", "types", "guarded"],
    ] {
        let output = world.mcpx(words).any_stderr().output();
        for secret in [token, refresh] {
            assert!(!output.stdout().contains(secret) && !output.stderr.contains(secret), "{words:?}");
        }
    }
    assert!(world.processes().iter().all(|p| !p.mentions(token) && !p.mentions(refresh)));
    // Nor is it in any other file that mcpx wrote, the log with everything in it included.
    for file in all_files(&world.home()) {
        let bytes = std::fs::read(&file).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        assert!(
            files.contains(&file) || !text.contains(token) && !text.contains(refresh),
            "{}",
            file.display()
        );
    }
    // A second login uses the registration of the first.
    world.mcpx(["--json", "auth", "login", "guarded"]).stdout_has("\"ok\":true").any_stderr().check();
    assert_eq!(guarded.seen("registered"), 1);
    world.mcpx(["auth", "logout", "guarded"]).stdout("logged out of guarded\n").check();
    assert_eq!(guarded.seen("revoked"), 2);
    assert!(stored(&world).is_empty());
    world.mcpx(["call", "guarded.echo", "text=x"]).status(77).any_stderr().check();
    world.mcpx(["auth", "logout", "guarded"]).stdout("there was no login to guarded\n").check();
}

#[test]
fn a_rotating_token_is_never_spent_twice() {
    // Tokens that end at once: every call renews, and twelve processes with two daemons do so at the same time.
    let guarded = Guarded::start(&["--ttl", "1", "--slow", "20"]);
    let world = world(&guarded, json!({}));
    let other = json!({"mcpServers": {"guarded": guarded.block()}}).to_string();
    let world = world.file("other/.mcpx.json", &other);
    world.mcpx(["auth", "login", "guarded"]).any_stderr().stdout_has("logged in").check();
    for round in 0..3 {
        let running: Vec<_> = (0..12)
            .map(|n| {
                let command = world.mcpx(["call", "guarded.echo", &format!("text={round}.{n}")]);
                if n % 2 == 0 { command.start() } else { command.dir("other").start() }
            })
            .collect();
        for (n, running) in running.into_iter().enumerate() {
            let output = running.wait();
            assert_eq!((output.status, output.stdout()), (0, format!("{round}.{n}\n")), "{output}");
        }
    }
    assert_eq!(world.daemons().len(), 2);
    assert!(guarded.seen("refresh").as_u64().unwrap() > 0);
    assert_eq!(guarded.seen("reused"), 0);
}

#[test]
fn more_scopes_are_asked_for_when_a_call_needs_them() {
    let guarded = Guarded::start(&["--scope-for-call", "write"]);
    let world = world(&guarded, json!({}));
    world.mcpx(["auth", "login", "guarded"]).any_stderr().stdout_has("for read").check();
    world.mcpx(["tools", "guarded"]).run().says(&["echo"]);
    world.mcpx(["call", "guarded.echo", "text=x"]).status(77).stderr_has("needs the scope write").check();
    world.mcpx(["auth", "login", "guarded"]).any_stderr().stdout_has("for read write").check();
    world.mcpx(["call", "guarded.echo", "text=x"]).stdout("x\n").check();
    assert_eq!(guarded.seen("scopes"), json!(["read", "read write"]));
    assert_eq!(guarded.seen("calls"), 1, "a call that was refused was not carried out");
}

#[test]
fn a_client_of_its_own_needs_no_login() {
    let guarded = Guarded::start(&["--client", "robot:s3cret", "--ttl", "1"]);
    let oauth =
        json!({"clientId": "robot", "clientSecret": "${ROBOT_SECRET}", "grant": "client_credentials"});
    let world = world(&guarded, json!({"mcpx": {"oauth": oauth}})).env("ROBOT_SECRET", "s3cret");
    world.mcpx(["call", "guarded.echo", "text=x"]).stdout("x\n").check();
    wait_until("the token to end", || {
        world.mcpx(["call", "guarded.echo", "text=y"]).stdout("y\n").check();
        (guarded.seen("client").as_u64().unwrap() > 1).then_some(())
    });
    // The secret stays where it was.
    for file in stored(&world) {
        assert!(!std::fs::read_to_string(file).unwrap().contains("s3cret"));
    }
    let wrong = world.env("ROBOT_SECRET", "wrong");
    let _ = wrong.mcpx(["auth", "logout", "guarded"]).run();
    let _ = wrong.mcpx(["stop"]).run();
    wrong.mcpx(["call", "guarded.echo", "text=x"]).status(77).stderr_has("invalid_client").check();
}

#[test]
fn what_is_not_as_it_must_be_is_refused_and_nothing_is_kept() {
    for (args, why) in [
        (&["--deny"][..], "access_denied"),
        (&["--iss", "https://evil.example"], "comes from https://evil.example"),
        (&["--issuer", "https://evil.example"], "says of itself that it is https://evil.example"),
        (&["--no-pkce"], "PKCE"),
        (&["--resource", "https://evil.example/mcp"], "are about https://evil.example/mcp"),
        (&["--no-register"], "registers nobody"),
    ] {
        let guarded = Guarded::start(args);
        let world = world(&guarded, json!({}));
        world.mcpx(["auth", "login", "guarded"]).status(77).stderr_has(why).check();
        for file in stored(&world) {
            assert!(!std::fs::read_to_string(file).unwrap().contains("access"), "{args:?}");
        }
        assert_eq!(guarded.seen("code"), 0, "{args:?}");
    }
}

#[test]
fn without_a_browser_the_address_is_opened_elsewhere_and_its_end_pasted() {
    let guarded = Guarded::start(&[]);
    let world = world(&guarded, json!({}));
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcpx"));
    command.args(["auth", "login", "guarded", "--paste"]).current_dir(world.dir());
    command.env_clear().envs(world.environment());
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let address = loop {
        let mut line = String::new();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "an address is shown");
        if line.starts_with("http") {
            break line.trim().to_owned();
        }
    };
    // The browser is elsewhere: it learns the last address, and cannot go there.
    let target = address.strip_prefix(&guarded.base).unwrap();
    let mut stream = std::net::TcpStream::connect(guarded.base.strip_prefix("http://").unwrap()).unwrap();
    write!(stream, "GET {target} HTTP/1.0\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let end = text.lines().find_map(|line| line.strip_prefix("Location: ")).unwrap();
    writeln!(child.stdin.take().unwrap(), "{end}").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    world.mcpx(["call", "guarded.echo", "text=x"]).stdout("x\n").check();
}

#[test]
fn what_needs_no_login_says_so() {
    let guarded = Guarded::start(&[]);
    let world = world(&guarded, json!({"headers": {"Authorization": "Bearer nothing"}}))
        .server("demo", json!({"command": env!("CARGO_BIN_EXE_mcpx"), "args": ["demo-server"]}));
    // A header of its own is the user's business.
    world.mcpx(["call", "guarded.echo", "text=x"]).status(77).stderr_has("401").check();
    world.mcpx(["auth"]).run().says(&["by header"]);
    world.mcpx(["auth", "login", "demo"]).status(2).stderr_has("needs no login").check();
    world.mcpx(["auth", "login", "guardd"]).status(2).stderr_has("did you mean \"guarded\"").check();
    world.mcpx(["auth", "login"]).status(2).any_stderr().check();
    world.mcpx(["auth", "lgin", "x"]).status(2).stderr_has("did you mean \"login\"").check();
}
