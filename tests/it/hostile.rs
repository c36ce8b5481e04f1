//! Clients that are slow, silent, rude or far too many: the daemon outlives
//! them, on its socket and over TCP, and goes on serving others.

use crate::harness::{World, wait_until};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long anything may take that only has to happen at all.
const LONG: Duration = Duration::from_secs(40);

/// A connection of either kind.
trait Wire: Read + Write + Send + 'static {
    fn patience(&self, timeout: Duration);
    fn half_close(&self);
}

impl Wire for UnixStream {
    fn patience(&self, timeout: Duration) {
        self.set_read_timeout(Some(timeout)).unwrap();
    }
    fn half_close(&self) {
        self.shutdown(std::net::Shutdown::Write).unwrap();
    }
}

impl Wire for TcpStream {
    fn patience(&self, timeout: Duration) {
        self.set_read_timeout(Some(timeout)).unwrap();
    }
    fn half_close(&self) {
        self.shutdown(std::net::Shutdown::Write).unwrap();
    }
}

/// A world with its daemon running, and the two ways to it.
struct Target {
    world: World,
    socket: PathBuf,
    address: String,
    token: String,
}

impl Target {
    fn new(world: World, transport: Value) -> Target {
        let world = world.setting("transport", transport).setting("daemon", json!({"tick": "50ms"}));
        world.mcpx(["call", "fake.echo", "text=first"]).stdout("first\n").check();
        let info = world.infos()[0].clone();
        let text = |key: &str| info[key].as_str().unwrap().to_owned();
        let address = text("endpoint").strip_prefix("http://").unwrap().to_owned();
        Target { socket: text("socket").into(), address, token: text("token"), world }
    }
    fn wire(&self, tcp: bool) -> Option<Box<dyn Wire>> {
        Some(match tcp {
            true => Box::new(TcpStream::connect(&self.address).ok()?),
            false => Box::new(UnixStream::connect(&self.socket).ok()?),
        })
    }
    /// The head of a request, without the empty line that ends it.
    fn head(&self, request: &str) -> String {
        format!("{request} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n", self.address, self.token)
    }
    /// Others are served, over either way, by the same daemon and its same server.
    fn serves(&self, what: &str) {
        let endpoint = format!("http://{}", self.address);
        let text = format!("text={what}");
        self.world.mcpx(["call", "fake.echo", &text]).stdout(&format!("{what}\n")).check();
        let far = ["--endpoint", &endpoint, "call", "fake.echo", &text];
        self.world.mcpx(far).stdout(&format!("{what}\n")).check();
        assert_eq!(self.world.daemons().len(), 1);
        assert_eq!(self.world.started("fake").len(), 1);
    }
}

/// Waits until the daemon has ended a connection; what it said before is returned.
fn until_ended(wire: &mut dyn Wire) -> String {
    wire.patience(LONG);
    let mut said = Vec::new();
    let begun = Instant::now();
    // A reset ends it as well.
    if let Err(e) = wire.read_to_end(&mut said) {
        assert_eq!(e.kind(), std::io::ErrorKind::ConnectionReset, "after {:?}", begun.elapsed());
    }
    String::from_utf8_lossy(&said).into_owned()
}

fn may_open(files: u64) {
    // SAFETY: both calls take a valid structure of this function's own.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit), 0);
        if limit.rlim_cur < files {
            limit.rlim_cur = limit.rlim_max.min(files);
            assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit), 0);
        }
    }
}

#[test]
fn two_thousand_idle_connections_keep_nobody_out() {
    may_open(6000);
    for tcp in [false, true] {
        let target = Target::new(World::fake(&[]), json!({"maxConnections": 64}));
        let mut idle: Vec<Box<dyn Wire>> = (0..2000).filter_map(|_| target.wire(tcp)).collect();
        assert!(idle.len() > 1500, "only {} connections were taken", idle.len());
        println!("over tcp: {tcp}");
        target.serves("meanwhile");
        // Those beyond the limit are sent away, the oldest first.
        let first = until_ended(&mut *idle[0]);
        assert!(first.is_empty() || first.contains("503"), "{first}");
        target.serves("later");
        drop(idle);
        target.serves("after");
    }
}

#[test]
fn heads_that_trickle_are_given_up() {
    for tcp in [false, true] {
        let target = Target::new(World::fake(&[]), json!({"headerTimeout": "300ms", "idleTimeout": "1s"}));
        let mut slow: Vec<_> = (0..40).map(|_| target.wire(tcp).unwrap()).collect();
        for wire in &mut slow {
            wire.write_all(target.head("GET /v1/health").as_bytes()).unwrap();
        }
        target.serves("meanwhile");
        // One of them goes on sending a little, for as long as it is let.
        let mut one = slow.pop().unwrap();
        let begun = Instant::now();
        while one.write_all(b"x").is_ok() {
            assert!(begun.elapsed() < LONG, "a head may take for ever");
            std::thread::sleep(Duration::from_millis(20));
        }
        for wire in &mut slow {
            let said = until_ended(&mut **wire);
            assert!(said.is_empty() || said.contains(" 408 "), "{said}");
        }
        target.serves("after");
    }
}

#[test]
fn bodies_that_trickle_are_given_up() {
    for tcp in [false, true] {
        let target = Target::new(World::fake(&[]), json!({"headerTimeout": "300ms", "idleTimeout": "60s"}));
        let mut slow = target.wire(tcp).unwrap();
        let head = target.head("POST /v1/call") + "Content-Length: 100000\r\n\r\n{";
        slow.write_all(head.as_bytes()).unwrap();
        target.serves("meanwhile");
        let begun = Instant::now();
        while slow.write_all(b" ").is_ok() {
            assert!(begun.elapsed() < LONG, "a body may take for ever");
            std::thread::sleep(Duration::from_millis(20));
        }
        target.serves("after");
    }
}

#[test]
fn a_half_closed_connection_is_answered_or_ends_its_call() {
    for tcp in [false, true] {
        let target = Target::new(World::fake(&[]), json!({}));
        let mut wire = target.wire(tcp).unwrap();
        // On the socket a client that has only finished sending is told from one that left; over TCP nobody can.
        let ms = if tcp { 600_000 } else { 300 };
        let body = json!({"server": "fake", "tool": "sleep", "arguments": {"ms": ms}}).to_string();
        let head = target.head("POST /v1/call") + &format!("Content-Length: {}\r\n\r\n{body}", body.len());
        wire.write_all(head.as_bytes()).unwrap();
        let calls = || target.world.received("fake", "tools/call").len();
        wait_until("the call is there", || (calls() > 1).then_some(()));
        wire.half_close();
        let said = until_ended(&mut *wire);
        if tcp {
            let told = || !target.world.received("fake", "notifications/cancelled").is_empty();
            wait_until("the server to be told", || told().then_some(()));
        } else {
            assert!(said.starts_with("HTTP/1.1 200"), "{said}");
        }
        target.serves("after");
    }
}

#[test]
fn a_client_that_stops_reading_is_given_up() {
    for tcp in [false, true] {
        let world = World::fake(&[]).and_fake("big", &["--huge", "30000000"]);
        let target = Target::new(world, json!({"writeTimeout": "300ms", "idleTimeout": "60s"}));
        let mut wire = target.wire(tcp).unwrap();
        let body = r#"{"server":"big","tool":"echo","arguments":{"text":""}}"#;
        let head = target.head("POST /v1/call") + &format!("Content-Length: {}\r\n\r\n{body}", body.len());
        wire.write_all(head.as_bytes()).unwrap();
        // The answer has begun, and is not read on.
        wire.patience(LONG);
        let mut start = [0; 12];
        wire.read_exact(&mut start).unwrap();
        assert_eq!(&start, b"HTTP/1.1 200");
        target.serves("meanwhile");
        let said = until_ended_slowly(&mut *wire, &target);
        assert!(said < 30_000_000, "the whole answer came: {said}");
        target.serves("after");
    }
}

/// Waits, without reading, until the daemon has no connection but the asker's; then counts what had been sent.
fn until_ended_slowly(wire: &mut dyn Wire, target: &Target) -> usize {
    wait_until("the connection is given up", || {
        let status = target.world.mcpx(["--json", "status"]).run().json();
        (status["daemon"]["connections"] == 1).then_some(())
    });
    let mut rest = Vec::new();
    let _ = wire.read_to_end(&mut rest);
    rest.len()
}

#[test]
fn many_clients_at_once_over_tcp_are_all_answered() {
    let target = Target::new(World::fake(&[]), json!({}));
    // All are connected, and kept, before the first one asks: none may depend on another's end.
    for _ in 0..20 {
        let mut wires: Vec<_> = (0..30).map(|_| target.wire(true).unwrap()).collect();
        let head = target.head("GET /v1/health") + "\r\n";
        for wire in &mut wires {
            wire.patience(LONG);
            wire.write_all(head.as_bytes()).unwrap();
        }
        for wire in &mut wires {
            let mut start = [0; 12];
            wire.read_exact(&mut start).unwrap();
            assert_eq!(&start, b"HTTP/1.1 200");
        }
    }
}

#[test]
fn a_daemon_without_descriptors_serves_tcp_again_once_it_has_some() {
    let world = World::fake(&[]).setting("daemon", json!({"tick": "50ms"}));
    let script = "ulimit -n 60; exec \"$MCPX\" call fake.echo text=first";
    world.write("start.sh", &format!("#!/bin/sh\nMCPX={}\n{script}\n", env!("CARGO_BIN_EXE_mcpx")));
    let mut command = std::process::Command::new("/bin/sh");
    command.arg(world.dir().join("start.sh")).current_dir(world.dir()).env_clear().envs(world.environment());
    assert!(command.status().unwrap().success());
    let info = world.infos()[0].clone();
    let address = info["endpoint"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
    let crowd: Vec<_> = (0..100).filter_map(|_| TcpStream::connect(&address).ok()).collect();
    // More than it has descriptors for: it has none left, and lives.
    let endpoint = format!("http://{address}");
    let _ = world.mcpx(["--endpoint", &endpoint, "call", "fake.echo", "text=x"]).output();
    drop(crowd);
    wait_until("it serves again", || {
        let output = world.mcpx(["--endpoint", &endpoint, "call", "fake.echo", "text=x"]).output();
        (output.status == 0).then_some(())
    });
    world.mcpx(["call", "fake.echo", "text=y"]).stdout("y\n").check();
    assert_eq!(world.started("fake").len(), 1);
}
