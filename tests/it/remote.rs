//! A daemon that is named by its address: every command uses it and its servers,
//! scripts run here and call there, and no other daemon is ever tried.

use crate::harness::{Runtime, World, tools, wait_until};
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const TOKEN: &str = "the-token-of-a-test";

/// A world whose daemon runs, and another one that names it.
fn two(server: World, client: World) -> (World, World) {
    let server = server.env("MCPX_TRANSPORT_BEARER_TOKEN", TOKEN);
    let _ = server.mcpx(["ls"]).run();
    let endpoint = server.infos()[0]["endpoint"].as_str().unwrap().to_owned();
    let client = client.env("MCPX_DAEMON_ENDPOINT", endpoint).env("MCPX_TRANSPORT_BEARER_TOKEN", TOKEN);
    (server, client)
}

#[test]
fn every_command_uses_the_named_daemon_and_its_servers() {
    // The client's own server of that name is not the one that is meant.
    let own = World::new().server("demo", json!({"command": "/nonexistent/mcpx"}));
    let (server, client) = two(World::demo(), own);
    let _ = client.mcpx(["ls"]).stdout_has("demo").run();
    let rows = client.mcpx(["--json", "ls"]).run().json();
    assert_eq!(rows["namespaces"][0]["state"], "ready", "{rows}");
    let _ = client.mcpx(["tools", "demo"]).stdout_has("demo.echo(").run();
    let _ = client.mcpx(["--json", "tools", "demo"]).stdout_has("inputSchema").run();
    let _ = client.mcpx(["search", "echo"]).stdout_has("demo.echo").run();
    let _ = client.mcpx(["types"]).stdout_has("echo").run();
    let _ = client.mcpx(["refresh"]).stdout_has("demo").run();
    client.mcpx(["call", "demo.add", "a=1", "b=2"]).stdout("{\"sum\":3}\n").check();
    let _ = client.mcpx(["restart", "demo"]).stdout_has("stopped 1 server").run();
    let _ = client.mcpx(["reload"]).stdout_has("as it was").run();
    let pid = server.infos()[0]["pid"].clone();
    assert_eq!(client.mcpx(["--json", "status"]).run().json()["daemon"]["pid"], pid);
    let missing = client.mcpx(["call", "demi.add"]).status(64 + 5).any_stderr().output();
    assert_ne!(missing.status, 0);
    missing.says(&["demo"]);
    assert!(client.daemons().is_empty() && client.infos().is_empty());
    client.mcpx(["restart", "--daemon"]).status(2).stderr_has("where it runs").check();
    let _ = client.mcpx(["stop"]).stdout_has("stopped the daemon").run();
    wait_until("the daemon is gone", || (server.daemons().is_empty()).then_some(()));
}

#[test]
fn a_socket_can_be_named_as_well() {
    let server = World::demo();
    let _ = server.mcpx(["ls"]).run();
    let socket = server.infos()[0]["socket"].as_str().unwrap().to_owned();
    let client = World::new();
    let endpoint = format!("unix://{socket}");
    let _ = client.mcpx(["--endpoint", &endpoint, "ls"]).stdout_has("demo").run();
    client.mcpx(["--endpoint", &endpoint, "call", "demo.echo", "text=x"]).stdout("x\n").check();
    assert!(client.daemons().is_empty());
    let own = World::demo();
    own.mcpx(["--endpoint", "unix:///nonexistent/socket", "ls"])
        .status(69)
        .stderr_has("/nonexistent/socket")
        .stderr_has("daemon.endpoint names it")
        .check();
    assert!(own.daemons().is_empty());
}

#[test]
fn nobody_else_is_asked_when_the_named_daemon_does_not_answer() {
    // A port that was free a moment ago, and that nobody listens on.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let world = World::demo().env("MCPX_DAEMON_ENDPOINT", format!("http://127.0.0.1:{port}"));
    let commands: &[&[&str]] =
        &[&["ls"], &["tools"], &["call", "demo.echo", "text=x"], &["status"], &["stop"], &["reload"]];
    for words in commands {
        world
            .mcpx(*words)
            .status(69)
            .stderr_has(&format!("127.0.0.1:{port}"))
            .stderr_has("no other is tried")
            .check();
    }
    assert!(world.daemons().is_empty() && world.infos().is_empty());
    for wrong in ["ftp://127.0.0.1:1", "127.0.0.1:1", "https://me:secret@127.0.0.1:1"] {
        let output = world.mcpx(["ls"]).env("MCPX_DAEMON_ENDPOINT", wrong).status(65).any_stderr().run();
        output.says(&["daemon.endpoint"]);
        assert!(!output.says(&["http"]).to_string().contains("secret"));
    }
    assert!(world.daemons().is_empty());
}

#[test]
fn the_token_is_wanted_and_not_shown() {
    let (_server, client) = two(World::demo(), World::new());
    client
        .mcpx(["ls"])
        .env("MCPX_TRANSPORT_BEARER_TOKEN", "another-token")
        .status(77)
        .stderr_has("MCPX_TRANSPORT_BEARER_TOKEN")
        .check();
    let output = client.mcpx(["--json", "status"]).run();
    assert!(!output.to_string().contains(TOKEN), "{output}");
}

#[test]
fn a_daemon_of_ones_own_is_known_by_its_address() {
    let world = World::demo();
    let _ = world.mcpx(["ls"]).run();
    let endpoint = world.infos()[0]["endpoint"].as_str().unwrap().to_owned();
    world.mcpx(["--endpoint", &endpoint, "call", "demo.echo", "text=x"]).stdout("x\n").check();
}

#[test]
fn a_broken_connection_is_told_from_one_that_was_never_made() {
    use std::io::{Read, Write};
    let world = World::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let running = world.mcpx(["--endpoint", &endpoint, "call", "demo.echo", "text=x"]).start();
    // Answers what there is, and leaves in the middle of the call.
    let body = br#"{"namespaces":[{"name":"demo","ident":"demo","state":"ready"}]}"#;
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let mut head = Vec::new();
        let mut block = [0; 4096];
        while !head.windows(4).any(|w| w == b"\r\n\r\n") {
            let n = stream.read(&mut block).unwrap();
            assert!(n > 0);
            head.extend_from_slice(&block[..n]);
        }
        if head.starts_with(b"POST /v1/call") {
            break;
        }
        let length = body.len();
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n").unwrap();
        stream.write_all(body).unwrap();
    }
    let output = running.wait();
    assert_eq!(output.status, 76, "{output}");
    output.says(&["it was not sent again"]);
}

#[test]
fn ctrl_c_cancels_a_call_there() {
    let (server, client) = two(World::fake(&["--hang-on-call"]), World::new());
    let running = client.mcpx(["call", "fake.echo", "text=x"]).start();
    wait_until("the call is there", || (!server.received("fake", "tools/call").is_empty()).then_some(()));
    running.signal(2);
    let output = running.wait();
    assert_eq!(output.status, 130, "{output}");
    wait_until("it is cancelled", || {
        (!server.received("fake", "notifications/cancelled").is_empty()).then_some(())
    });
}

macro_rules! in_each_runtime {
    ($($name:ident $runtime:ident)*) => {
        $(#[test] fn $name() { scripts_run_here_and_call_there(Runtime::$runtime) })*
    };
}

in_each_runtime! {
    deno_scripts_run_here_and_call_there Deno
    bun_scripts_run_here_and_call_there Bun
    node_22_scripts_run_here_and_call_there Node22
    node_26_scripts_run_here_and_call_there Node26
}

const SCRIPT: &str = "
const env = (name) => globalThis.Deno ? Deno.env.get(name) : process.env[name];
const all = await Promise.all(Array.from({ length: 20 }, (_, n) => demo.add({ a: n, b: 1 }).then((r) => r.sum)));
let failed;
try { await demo.fail({ message: 'no' }) } catch (e) { failed = e.kind }
return {
  all,
  failed,
  socket: env('MCPX_SOCKET'),
  endpoint: env('MCPX_ENDPOINT'),
  local: env('MCPX_ARTIFACTS_LOCAL'),
  cwd: env('MCPX_CWD'),
  token: env('MCPX_TRANSPORT_BEARER_TOKEN'),
};";

fn scripts_run_here_and_call_there(runtime: Runtime) {
    let (server, client) = two(World::demo(), World::new().with(runtime));
    let endpoint = server.infos()[0]["endpoint"].as_str().unwrap().to_owned();
    let output = client.mcpx(["exec", "--runtime", runtime.name(), SCRIPT]).any_stderr().run();
    let said = output.json();
    let wanted: Vec<i32> = (1..=20).collect();
    assert_eq!(said["all"], json!(wanted), "{said}");
    assert_eq!(said["failed"], "tool", "{said}");
    assert_eq!((&said["socket"], &said["local"]), (&json!(""), &json!("0")), "{said}");
    assert_eq!(said["endpoint"], endpoint.as_str());
    assert_eq!(said["cwd"], client.dir().to_str().unwrap());
    // A token of its own, which is good for this run alone.
    let token = said["token"].as_str().unwrap();
    assert!(token.len() >= 32 && token != TOKEN);
    let _ = client.mcpx(["ls"]).env("MCPX_TRANSPORT_BEARER_TOKEN", token).status(77).any_stderr().run();
    let status = client.mcpx(["--json", "status"]).run().json();
    assert_eq!(status["daemon"]["runs"], 0, "the run was closed: {status}");
    // A sandbox needs no network for it.
    if runtime == Runtime::Deno {
        let code = "return (await demo.add({ a: 20, b: 22 })).sum";
        let words = ["exec", "--runtime", runtime.name(), "--permissions", "read", code];
        let _ = client.mcpx(words).stdout("42\n").any_stderr().run();
    }
    assert!(client.daemons().is_empty());
}

#[test]
fn an_mcpx_inside_a_script_reaches_the_same_daemon() {
    let (_server, client) = two(World::demo(), World::new().with(Runtime::Node22));
    client.link("mcpx", Path::new(env!("CARGO_BIN_EXE_mcpx")));
    client.write("inner.sh", "#!/bin/sh\nmcpx ls\nmcpx call demo.echo text=inner\n");
    let _ = client.mcpx(["run", "inner.sh"]).stdout_has("demo").stdout_has("inner\n").any_stderr().run();
    client.write(
        "outer.sh",
        "#!/bin/sh\nunset MCPX_DAEMON_ENDPOINT\nmcpx exec 'return (await demo.add({a:1,b:1})).sum'\n",
    );
    let _ = client.mcpx(["run", "outer.sh"]).stdout("2\n").any_stderr().run();
    assert!(client.daemons().is_empty());
}

#[test]
fn python_calls_there_as_well() {
    let (_server, client) = two(World::demo(), World::new());
    client.link("python3", &tools::python());
    client.write("x.py", "from mcpx import tools\nprint(tools.demo.add(a=1, b=2))\n");
    let output = client.mcpx(["run", "x.py"]).any_stderr().output();
    assert!(output.stdout().contains('3'), "{output}");
}

/// A proxy that ends TLS in front of a daemon, with a certificate of the tests' own authority.
struct Tls(Child, u16);

impl Tls {
    fn before(endpoint: &str) -> Tls {
        let port = endpoint.rsplit(':').next().unwrap();
        let mut child = Command::new(Runtime::Node22.path())
            .args([tls("proxy.mjs").as_os_str(), port.as_ref()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Tls(child, line.trim().parse().unwrap())
    }
}

impl Drop for Tls {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn tls(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/tls").join(name)
}

#[test]
fn certificates_are_checked_against_the_named_authorities() {
    let client = World::new().with(Runtime::Deno).with(Runtime::Bun).with(Runtime::Node22);
    let (server, client) = two(World::demo().env("MCPX_TRANSPORT_HOSTS", "localhost"), client);
    let proxy = Tls::before(server.infos()[0]["endpoint"].as_str().unwrap());
    let client = client.env("MCPX_DAEMON_ENDPOINT", format!("https://localhost:{}", proxy.1));
    client.mcpx(["ls"]).status(69).stderr_has("not trusted").stderr_has("transport.caFile").check();
    client
        .mcpx(["ls"])
        .env("MCPX_TRANSPORT_CA_FILE", "/nonexistent.pem")
        .status(65)
        .stderr_has("/nonexistent.pem")
        .check();
    let client = client.env("MCPX_TRANSPORT_CA_FILE", tls("authority.pem"));
    client.mcpx(["call", "demo.echo", "text=safe"]).stdout("safe\n").check();
    for runtime in ["deno", "bun", "node"] {
        let code = "return (await demo.add({ a: 1, b: 1 })).sum";
        let _ = client.mcpx(["exec", "--runtime", runtime, code]).stdout("2\n").any_stderr().run();
    }
    // The certificate is for another name.
    let client = client.env("MCPX_DAEMON_ENDPOINT", format!("https://127.0.0.2:{}", proxy.1));
    let _ = client.mcpx(["ls"]).status(69).any_stderr().run();
}

#[test]
fn the_log_and_what_it_comes_to_are_those_of_the_named_daemon() {
    // A log of its own, which is not the one that is asked for.
    let own = World::demo();
    own.mcpx(["call", "demo.echo", "text=own", "--session", "own"]).stdout("own\n").check();
    let _ = own.mcpx(["stop"]).run();
    let (server, client) = two(World::demo(), own);
    for n in 0..3 {
        let text = format!("{n}\n");
        client.mcpx(["call", "demo.echo", &format!("text={n}"), "--session", "there"]).stdout(&text).check();
    }
    client.mcpx(["call", "demo.fail", "message=no"]).status(1).any_stderr().check();
    let log = |words: &[&str]| {
        let all = ["--json", "log"].into_iter().chain(words.iter().copied());
        client.mcpx(all).run().json_lines()
    };
    wait_until("the calls are in the log", || (log(&["--event", "call.finished"]).len() == 4).then_some(()));
    for (words, count) in [
        (vec!["--event", "call.finished", "--limit", "2"], 2),
        (vec!["--event", "call.finished", "--limit", "0"], 4),
        (vec!["--event", "call", "--session", "there", "--session", "own"], 3),
        (vec!["--event", "call", "--tool", "demo.fail", "--level", "warn"], 1),
        (vec!["--event", "call", "--until", "2020-01-01"], 0),
        (vec!["--source", "daemon", "--since", "1h", "--grep", "daemon.started"], 1),
    ] {
        assert_eq!(log(&words).len(), count, "{words:?}");
    }
    // What it says is what it says where it runs.
    for words in [
        vec!["log", "--event", "call"],
        vec!["--json", "log", "--event", "call", "--limit", "0"],
        vec!["log", "--chain", "there"],
        vec!["--json", "log", "--chain", "there"],
        vec!["stats"],
        vec!["--json", "stats", "slowest", "--limit", "2"],
        vec!["stats", "errors", "--since", "1h"],
        vec!["stats", "sessions", "--limit", "0"],
    ] {
        let here = server.mcpx(words.clone()).run().stdout();
        assert_eq!(client.mcpx(words.clone()).run().stdout(), here, "{words:?}");
        assert!(here.contains("demo") || here.contains("there"), "{words:?}: {here}");
    }
    let _ = client.mcpx(["stats", "--limit", "1"]).stderr_has("1 more row; --limit 0 shows all").run();
    let endpoint = server.infos()[0]["endpoint"].as_str().unwrap().to_owned();
    let nothing = format!("no record of the log is like that ({endpoint})");
    client.mcpx(["log", "--server", "nobody"]).stdout("").stderr_has(&nothing).check();
    client.mcpx(["log", "--chain", "own"]).status(2).stderr_has("no record").check();
    let started = client.mcpx(["--json", "events", "--since", "1h", "--kind", "daemon.started"]).run();
    assert_eq!(started.json_lines().len(), 1, "{started}");
    // Followed, it shows a record when it comes, and ends with the daemon or by Ctrl-C.
    let follow = |limit: &str| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_mcpx"))
            .args(["--json", "log", "--follow", "--event", "call.finished", "--limit", limit])
            .env_clear()
            .envs(client.environment())
            .current_dir(client.dir())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        (child, lines.map(Result::unwrap))
    };
    let (mut following, mut lines) = follow("1");
    assert!(lines.next().unwrap().contains("\"tool\":\"fail\""));
    client.mcpx(["call", "demo.echo", "text=later"]).stdout("later\n").check();
    assert!(lines.next().unwrap().contains("\"tool\":\"echo\""));
    crate::harness::signal(following.id(), libc::SIGINT);
    assert_eq!(following.wait().unwrap().code(), Some(130));
    let (following, mut lines) = follow("100");
    assert!(lines.next().is_some());
    let _ = server.mcpx(["stop"]).run();
    assert_eq!(lines.count(), 4);
    let output = following.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "mcpx: the daemon has stopped\n");
    assert_eq!(output.status.code(), Some(0));
    client.mcpx(["log"]).status(69).stderr_has("no other is tried").check();
    client.mcpx(["stats"]).status(69).stderr_has("no other is tried").check();
}
