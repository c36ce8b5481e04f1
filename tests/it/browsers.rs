//! Real browsers, each a session's own: Chromium from the system's packages, driven
//! headless through a real MCP server, over pages that this test serves itself.

use crate::harness::tools::{installed, on_path};
use crate::harness::{Runtime, World, signal};
use serde_json::json;
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A browser takes its time on a machine that does much else.
const LIMIT: Duration = Duration::from_secs(120);

/// The browser itself, not the script that packages put in front of it.
fn chromium() -> Option<PathBuf> {
    let real = PathBuf::from("/usr/lib/chromium/chromium");
    let found = Some(real).filter(|p| p.is_file()).or_else(|| on_path("chromium"));
    if found.is_none() {
        eprintln!("skipped: there is no chromium here (apt-get install chromium)");
    }
    found
}

/// Serves a page for every path, whose title is the path, on a port of its own.
fn pages() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut line = String::new();
                let _ = reader.read_line(&mut line);
                let path = line.split(' ').nth(1).unwrap_or("/").trim_start_matches('/').to_owned();
                while reader.read_line(&mut line).is_ok_and(|n| n > 2) {}
                let body = format!("<!doctype html><title>{path}</title><h1 id=h>page {path}</h1>");
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close";
                let _ = write!(&stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            });
        }
    });
    address
}

fn world(scope: &str, chromium: &PathBuf) -> World {
    let world = World::new().with(Runtime::Bun);
    // The server keeps sockets of its own there, which it leaves behind when it is killed.
    let own = world.dir();
    let block = json!({
        "command": Runtime::Node26.path(),
        "args": [
            installed("node_modules/@playwright/mcp/cli.js"), "--headless", "--isolated", "--no-sandbox",
            "--executable-path", chromium, "--output-dir", own,
        ],
        "env": {"PATH": "/usr/bin:/bin", "TMPDIR": own},
        "mcpx": {"scope": scope},
    });
    world.server("browser", block)
}

/// Runs one command that makes the browser of a session do something.
fn exec(world: &World, own: &str, parent: &str, code: &str) -> String {
    let command = world.mcpx(["exec", code]).env("MCPX_SESSION_ID", own).limit(LIMIT).any_stderr();
    let command = if parent.is_empty() { command } else { command.env("MCPX_PARENT_SESSION_ID", parent) };
    command.run().stdout()
}

fn open(world: &World, session: &str, url: &str) {
    let code = format!("await browser.browser_navigate({{url: '{url}'}})");
    let _ = exec(world, session, "", &code);
}

/// What the page in a session's browser says of itself: its title, and how often it was counted here.
const LOOK: &str = "const r = await browser.browser_evaluate({function: '() => { window.n = (window.n || 0) + 1; return document.title + \":\" + window.n; }'}); \
                    return JSON.stringify(r)";

#[track_caller]
fn sees(world: &World, session: &str, parent: &str, what: &str) {
    let seen = exec(world, session, parent, LOOK);
    assert!(seen.contains(what), "session {session} should see {what}: {seen}");
}

/// The processes below one, by pid and start, as far as /proc tells: none of those may stay.
fn family(root: u32) -> HashSet<(u32, u64)> {
    let all: Vec<(u32, u32, u64)> = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|e| stat(e.file_name().to_str()?.parse().ok()?))
        .collect();
    let mut family: HashSet<(u32, u64)> = all.iter().filter(|p| p.0 == root).map(|p| (p.0, p.2)).collect();
    loop {
        let pids: HashSet<u32> = family.iter().map(|p| p.0).collect();
        let more: Vec<_> = all.iter().filter(|p| pids.contains(&p.1) && !pids.contains(&p.0)).collect();
        if more.is_empty() {
            return family;
        }
        family.extend(more.iter().map(|p| (p.0, p.2)));
    }
}

/// The pid, the parent and the start of a process that has not ended.
fn stat(pid: u32) -> Option<(u32, u32, u64)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    (fields[0] != "Z").then_some(())?;
    Some((pid, fields[1].parse().ok()?, fields[19].parse().ok()?))
}

/// The process of a session's server.
fn server(world: &World, session: &str) -> u32 {
    let shown = world.mcpx(["--json", "session", "show", session]).run().json();
    shown["instances"][0]["pid"].as_u64().unwrap() as u32
}

#[track_caller]
fn all_gone(family: &HashSet<(u32, u64)>, within: Duration) {
    let deadline = Instant::now() + within;
    loop {
        let left: Vec<_> =
            family.iter().filter(|(pid, start)| stat(*pid).is_some_and(|p| p.2 == *start)).collect();
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "processes of the browser are left: {left:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn two_sessions_drive_a_browser_each_and_nothing_of_them_stays() {
    let Some(chromium) = chromium() else { return };
    let pages = pages();
    let world = world("session", &chromium);
    // Both at once.
    std::thread::scope(|scope| {
        for session in ["one", "two"] {
            let (world, url) = (&world, format!("{pages}/{session}"));
            scope.spawn(move || open(world, session, &url));
        }
    });
    // Commands of their own, in turns: the page, and what was counted in it, is still there.
    for round in 1..=2 {
        for session in ["one", "two"] {
            sees(&world, session, "", &format!("{session}:{round}"));
        }
    }
    let (one, two) = (family(server(&world, "one")), family(server(&world, "two")));
    assert!(one.len() > 3 && two.len() > 3, "a browser is several processes: {one:?} {two:?}");
    assert!(one.is_disjoint(&two));
    let _ = world.mcpx(["session", "stop", "one"]).limit(LIMIT).run();
    all_gone(&one, Duration::ZERO);
    sees(&world, "two", "", "two:3");
    let two = family(server(&world, "two"));
    let _ = world.mcpx(["stop"]).limit(LIMIT).run();
    all_gone(&two, Duration::ZERO);
}

#[test]
fn a_parent_and_its_child_share_a_browser_and_a_killed_daemon_leaves_none() {
    let Some(chromium) = chromium() else { return };
    let pages = pages();
    let world = world("parent-session", &chromium);
    open(&world, "parent", &format!("{pages}/family"));
    sees(&world, "parent", "", "family:1");
    sees(&world, "child", "parent", "family:2");
    sees(&world, "parent", "", "family:3");
    let family = family(server(&world, "parent"));
    assert!(family.len() > 3, "{family:?}");
    signal(world.daemons()[0].pid, libc::SIGKILL);
    all_gone(&family, Duration::from_secs(10));
}
