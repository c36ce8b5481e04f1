//! The daemon's page: who gets it, what its token opens, and how it looks in a real browser.

use crate::harness::tools::{installed, on_path};
use crate::harness::{Runtime, World, signal};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The address of the page, and the token in it.
fn address(world: &World) -> (String, String) {
    let url = world.mcpx(["ui"]).run().stdout().trim().to_owned();
    let (address, token) = url.split_once("/ui#token=").expect("an address with a token");
    (address.strip_prefix("http://").unwrap().to_owned(), token.to_owned())
}

/// One request over TCP; gives the whole answer.
fn ask(address: &str, line: &str, headers: &str) -> String {
    let host = if headers.contains("Host:") { String::new() } else { format!("Host: {address}\r\n") };
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(stream, "{line} HTTP/1.1\r\n{host}{headers}Connection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn the_page_needs_no_token_and_its_token_only_looks() {
    let world = World::demo();
    let (address, token) = address(&world);
    let info = &world.infos()[0];
    let own = info["token"].as_str().unwrap();
    assert_ne!(own, token);
    let page = ask(&address, "GET /ui", "");
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("<!doctype html>"), "{page}");
    for part in
        ["default-src 'none'", "script-src 'sha256-", "X-Frame-Options: DENY", "Referrer-Policy: no-referrer"]
    {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains(own) && !page.contains(&token));
    // What guards everything guards the page as well.
    for headers in ["Origin: http://evil.example\r\n", "Host: evil.example\r\n"] {
        assert!(ask(&address, "GET /ui", headers).starts_with("HTTP/1.1 403"), "{headers}");
    }
    assert!(ask(&address, "POST /ui", "").starts_with("HTTP/1.1 401"));
    let bearer = format!("Authorization: Bearer {token}\r\n");
    for path in ["/v1/status", "/v1/servers", "/v1/sessions", "/v1/events", "/v1/health"] {
        assert!(ask(&address, &format!("GET {path}"), "").starts_with("HTTP/1.1 401"), "{path}");
        assert!(ask(&address, &format!("GET {path}"), &bearer).starts_with("HTTP/1.1 200"), "{path}");
    }
    for line in [
        "POST /v1/shutdown",
        "POST /v1/call",
        "POST /v1/exec",
        "POST /v1/sessions",
        "DELETE /v1/servers/demo",
        "GET /v1/settings",
        "GET /v1/namespaces",
        "POST /mcp",
    ] {
        let answer = ask(&address, line, &format!("{bearer}Content-Length: 0\r\n"));
        assert!(answer.starts_with("HTTP/1.1 403"), "{line}: {answer}");
    }
    let mut socket = UnixStream::connect(info["socket"].as_str().unwrap()).unwrap();
    socket.write_all(b"GET /ui HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200") && text.contains("<!doctype html>"));
    let shown = world.mcpx(["--json", "ui"]).run().json();
    assert_eq!(
        shown,
        json!({"ok": true, "url": format!("http://{address}/ui#token={token}"), "opened": false})
    );
}

#[test]
fn without_an_address_there_is_no_page() {
    let world = World::demo().setting("transport.tcp", json!(false));
    world.mcpx(["ui"]).status(69).stderr_has("transport.tcp").check();
}

/// The browser itself, not the script that packages put in front of it.
fn chromium() -> Option<PathBuf> {
    let real = PathBuf::from("/usr/lib/chromium/chromium");
    let found = Some(real).filter(|p| p.is_file()).or_else(|| on_path("chromium"));
    if found.is_none() {
        eprintln!("skipped: there is no chromium here (apt-get install chromium)");
    }
    found
}

/// The program that drives the browser; a test that fails takes both along.
struct Driver(Child);

impl Drop for Driver {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            signal(self.0.id(), libc::SIGTERM);
            let _ = self.0.wait();
        }
    }
}

#[test]
fn a_browser_shows_what_happens() {
    let Some(chromium) = chromium() else { return };
    let markup = "<img src=x onerror='window.dangerous=1'><script>window.dangerous=1</script>";
    let demo = json!({"command": env!("CARGO_BIN_EXE_mcpx"), "args": ["demo-server"], "mcpx": {"description": markup}});
    let world = World::new().server("demo", demo);
    world.mcpx(["call", "demo.echo", "text=x"]).stdout("x\n").check();
    world.mcpx(["call", "demo.fail", "message=no"]).status(1).any_stderr().check();
    let url = world.mcpx(["ui"]).run().stdout().trim().to_owned();
    let picture = world.dir().join("page.png");
    let driver = Command::new(Runtime::Node26.path())
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/ui.mjs"))
        .args([installed("node_modules"), chromium, PathBuf::from(&url), picture.clone()])
        .env("TMPDIR", world.dir())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut driver = Driver(driver.unwrap());
    let mut lines = BufReader::new(driver.0.stdout.take().unwrap()).lines();
    let mut next = |step: &str| -> Value {
        let line = lines.next().unwrap_or_else(|| panic!("the browser ended before {step}")).unwrap();
        let seen: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(seen["step"], step, "{seen}");
        seen
    };
    let live = next("live");
    assert_eq!(live["url"], url.split('#').next().unwrap(), "the token has left the address bar");
    let servers = live["servers"].as_str().unwrap();
    assert!(servers.contains("demo") && servers.contains("onerror"), "markup is text: {servers}");
    // A call that lasts until the page has shown it.
    let slow = world.mcpx(["call", "demo.slow", "seconds:=3600"]).any_stderr().start();
    driver.0.stdin.take().unwrap().write_all(b"\n").unwrap();
    next("in flight");
    slow.signal(2);
    assert_eq!(slow.wait().status, 130);
    let over = next("over");
    assert_eq!((over["dots"].as_u64(), over["crosses"].as_u64()), (Some(1), Some(1)), "a path a kind");
    assert_eq!((&over["images"], &over["dangerous"]), (&json!(0), &Value::Null));
    assert!(over["tools"].as_str().unwrap().contains("demo.echo"), "{over}");
    let again = next("again");
    assert_eq!(again["wrong"], json!([]), "neither an error nor a breach of the policy");
    let own = url.split("/ui").next().unwrap();
    for request in again["asked"].as_array().unwrap() {
        let at = request["url"].as_str().unwrap();
        assert!(at.starts_with(own) && !at.contains("token"), "{at}");
        assert_eq!((&request["method"], &request["origin"]), (&json!("GET"), &Value::Null), "{at}");
    }
    assert_eq!(next("locked")["shown"], false);
    assert!(driver.0.wait().unwrap().success());
    assert!(std::fs::metadata(&picture).unwrap().len() > 10_000, "a picture of it");
}
