//! `/mcp` on the daemon, as a host has it: sessions for the revisions that have
//! them, none for the stateless one, and what is refused.

use crate::harness::{VERSION_KEY, World, stateless, wait_until};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

/// Longer than anything takes on a loaded machine.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

/// The daemon of a world, by its address.
struct Endpoint {
    address: String,
    token: String,
}

/// An answer, as far as it has been read.
struct Answer {
    status: u16,
    head: String,
    body: BufReader<Box<dyn Read>>,
}

impl Endpoint {
    fn of(world: &World) -> Endpoint {
        let info = world.infos().remove(0);
        let address = info["endpoint"].as_str().unwrap().trim_start_matches("http://").to_owned();
        Endpoint { address, token: info["token"].as_str().unwrap().to_owned() }
    }

    fn send(&self, line: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        // Whoever waits in vain is to hear of it.
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let token = format!("Authorization: Bearer {}\r\n", self.token);
        write_request(&mut stream, line, &self.address, &token, headers, body);
        Answer::read(Box::new(stream))
    }

    fn post(&self, headers: &[(&str, &str)], message: &Value) -> Answer {
        self.send("POST /mcp", headers, &message.to_string())
    }

    /// Asks in the stateless era, with the headers that belong to it.
    fn ask(&self, method: &str, mut params: Value) -> Answer {
        params["_meta"][VERSION_KEY] = stateless()[VERSION_KEY].clone();
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        let name = params["name"].as_str().map(str::to_owned);
        let mut headers = vec![("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
        headers.extend(name.as_deref().map(|name| ("Mcp-Name", name)));
        self.post(&headers, &json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
    }

    /// Begins a session; its id.
    fn greet(&self, path: &str) -> String {
        let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
        let answer = self.send(&format!("POST {path}"), &[], &message.to_string());
        assert_eq!(answer.status, 200, "{}", answer.head);
        answer.header("mcp-session-id").expect("a session")
    }
}

fn write_request(
    out: &mut impl Write,
    line: &str,
    host: &str,
    token: &str,
    headers: &[(&str, &str)],
    body: &str,
) {
    let mut head = format!(
        "{line} HTTP/1.1\r\nHost: {host}\r\n{token}Connection: close\r\nAccept: application/json, text/event-stream\r\n"
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if line.starts_with("POST") {
        head.push_str(&format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len()));
    }
    write!(out, "{head}\r\n{body}").unwrap();
}

impl Answer {
    fn read(stream: Box<dyn Read>) -> Answer {
        let mut body = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(body.read_line(&mut head).unwrap(), 0, "the head ends early: {head}");
        }
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_ascii_lowercase(), body }
    }
    fn header(&self, name: &str) -> Option<String> {
        let prefix = format!("{name}: ");
        self.head.lines().find_map(|l| l.strip_prefix(&prefix)).map(str::to_owned)
    }
    fn is_stream(&self) -> bool {
        self.header("content-type").is_some_and(|t| t == "text/event-stream")
    }
    /// The body as JSON.
    fn json(mut self) -> Value {
        assert!(!self.is_stream(), "{}", self.head);
        let length = self.header("content-length").unwrap().parse().unwrap();
        let mut text = vec![0; length];
        self.body.read_exact(&mut text).unwrap();
        serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&text)))
    }
    /// The next message of a stream; none at its end.
    fn event(&mut self) -> Option<Value> {
        self.event_with_id().map(|(_, message)| message)
    }
    /// The same, with the event's id, which may be empty.
    fn event_with_id(&mut self) -> Option<(String, Value)> {
        assert!(self.is_stream(), "{}", self.head);
        let mut id = String::new();
        loop {
            let mut line = String::new();
            if self.body.read_line(&mut line).unwrap_or_else(|e| panic!("reading a stream: {e}")) == 0
                || line == "0\r\n"
            {
                return None;
            }
            if let Some(own) = line.strip_prefix("id: ") {
                id = own.trim().to_owned();
            }
            // An event may be there for its id alone.
            if let Some(data) = line.strip_prefix("data: ").filter(|data| !data.trim().is_empty()) {
                return Some((id, serde_json::from_str(data).unwrap()));
            }
        }
    }
}

fn call(id: u64, name: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments}})
}

fn started(world: World) -> (World, Endpoint) {
    let _ = world.mcpx(["ls"]).run();
    let endpoint = Endpoint::of(&world);
    (world, endpoint)
}

#[test]
fn a_session_begins_serves_and_ends() {
    let counter =
        json!({"command": env!("CARGO_BIN_EXE_mcpx"), "args": ["demo-server"], "mcpx": {"scope": "session"}});
    let (world, endpoint) = started(World::new().server("demo", counter));
    let (one, two) = (endpoint.greet("/mcp?mode=passthrough"), endpoint.greet("/mcp?mode=passthrough"));
    assert_ne!(one, two);
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(endpoint.post(&[("Mcp-Session-Id", &one)], &note).status, 202);
    let count = |session: &str| {
        let answer = endpoint.post(
            &[("Mcp-Session-Id", session), ("MCP-Protocol-Version", "2025-11-25")],
            &call(1, "demo__counter", json!({})),
        );
        answer.json()["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!((count(&one), count(&one), count(&two)), ("1".into(), "2".into(), "1".into()));
    // Progress makes a stream of the answer.
    let mut slow = call(2, "demo__slow", json!({"seconds": 0.05, "steps": 2}));
    slow["params"]["_meta"] = json!({"progressToken": "p"});
    let mut answer = endpoint.post(&[("Mcp-Session-Id", &one)], &slow);
    for step in 1..=2 {
        let report = answer.event().unwrap();
        assert_eq!(
            (&report["params"]["progressToken"], &report["params"]["progress"]),
            (&json!("p"), &json!(step))
        );
    }
    assert_eq!(answer.event().unwrap()["id"], 2);
    assert_eq!(answer.event(), None);
    // What belongs to no request comes on a stream of its own.
    let mut stream = endpoint.send("GET /mcp", &[("Mcp-Session-Id", &one)], "");
    assert_eq!(stream.status, 200);
    world.write("extra.txt", "");
    let _ = world
        .mcpx(["servers", "add", "more", "--", env!("CARGO_BIN_EXE_mcpx"), "demo-server"])
        .any_stderr()
        .run();
    assert_eq!(stream.event().unwrap()["method"], "notifications/tools/list_changed");
    // The session's servers end with it.
    assert_eq!(endpoint.send("DELETE /mcp", &[("Mcp-Session-Id", &one)], "").status, 204);
    // Its stream ends with it; the other lists may have been others too.
    while let Some(news) = stream.event() {
        assert!(news["method"].as_str().unwrap().ends_with("/list_changed"), "{news}");
    }
    let gone = endpoint.post(&[("Mcp-Session-Id", &one)], &call(3, "demo__counter", json!({})));
    assert_eq!(gone.status, 404);
    assert_eq!(count(&two), "2");
    assert_eq!(endpoint.send("DELETE /mcp", &[("Mcp-Session-Id", &two)], "").status, 204);
    wait_until("the sessions' servers to end", || {
        (!world.processes().iter().any(|p| p.args.iter().any(|a| a == "demo-server"))).then_some(())
    });
}

#[test]
fn a_host_that_lost_its_connection_gets_the_rest() {
    let (world, endpoint) = started(World::fake(&["--list-changed"]));
    let session = endpoint.greet("/mcp?mode=passthrough");
    let of = [("Mcp-Session-Id", session.as_str())];
    let mut steps = call(5, "fake__progress", json!({"steps": 3}));
    steps["params"]["_meta"] = json!({"progressToken": "p"});
    let mut answer = endpoint.post(&of, &steps);
    let (first, report) = answer.event_with_id().unwrap();
    assert_eq!(report["params"]["progress"], 1);
    // The connection goes, the call goes on: the rest is had on another, and had again.
    drop(answer);
    for _ in 0..2 {
        let mut rest = endpoint.send("GET /mcp", &[of[0], ("Last-Event-ID", &first)], "");
        assert_eq!(rest.status, 200);
        assert_eq!(rest.event().unwrap()["params"]["progress"], 2);
        assert_eq!(rest.event().unwrap()["params"]["progress"], 3);
        assert_eq!(rest.event().unwrap()["id"], 5);
        assert_eq!(rest.event(), None);
    }
    assert_eq!(world.received("fake", "tools/call").len(), 1, "nothing is asked twice");
    // So is what belongs to no request; a second stream takes over from the first.
    let mut general = endpoint.send("GET /mcp", &of, "");
    let _ = endpoint.post(&of, &call(6, "fake__grow", json!({}))).json();
    let (id, news) = general.event_with_id().unwrap();
    assert_eq!(news["method"], "notifications/tools/list_changed");
    assert!(id.starts_with("g-"), "{id}");
    let mut again = endpoint.send("GET /mcp", &[of[0], ("Last-Event-ID", "g-0")], "");
    assert_eq!(again.event_with_id().unwrap().0, "g-1");
    while general.event().is_some() {}
    // What is not kept, or never was.
    let lost = endpoint.send("GET /mcp", &[of[0], ("Last-Event-ID", "999-1")], "");
    assert_eq!(lost.status, 400);
    assert!(lost.json()["error"]["message"].as_str().unwrap().contains("serve.history"));
    assert_eq!(endpoint.send("DELETE /mcp", &of, "").status, 204);
    while again.event().is_some() {}
}

#[test]
fn a_stateless_request_is_served_by_itself() {
    let (world, endpoint) = started(World::demo());
    let found = endpoint.ask("server/discover", json!({})).json();
    assert_eq!(found["result"]["supportedVersions"], json!(["2026-07-28"]));
    let arguments = json!({"server": "demo", "tool": "add", "arguments": {"a": 1, "b": 2}});
    let sum = endpoint.ask("tools/call", json!({"name": "mcpx_call", "arguments": arguments})).json();
    assert_eq!(
        (&sum["result"]["structuredContent"], &sum["result"]["resultType"]),
        (&json!({"sum": 3}), &json!("complete"))
    );
    // Listening: acknowledged first, then what was asked for, until the host leaves.
    let mut heard =
        endpoint.ask("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    assert_eq!(heard.event().unwrap()["method"], "notifications/subscriptions/acknowledged");
    world.write(".mcpx.json", r#"{"mcpServers": {}}"#);
    let _ = world.mcpx(["reload"]).run();
    let news = heard.event().unwrap();
    assert_eq!(news["method"], "notifications/tools/list_changed");
    assert_eq!(news["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
    drop(heard);
    // A daemon that stops tells those who listen.
    let mut heard =
        endpoint.ask("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    assert!(heard.event().is_some());
    let _ = world.mcpx(["stop"]).run();
    assert_eq!(heard.event().unwrap()["result"]["resultType"], "complete");
    assert_eq!(heard.event(), None);
}

#[test]
fn what_a_server_logs_comes_before_the_answer() {
    let script =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/server-fixture.mjs");
    let fixture = json!({"command": crate::harness::Runtime::Node22.path(), "args": [script]});
    let serve = json!({"mode": "passthrough"});
    let (_world, endpoint) = started(World::new().server("fx", fixture).setting("serve", serve));
    let data = ["Tool execution started", "Tool processing data", "Tool execution completed"];
    let call_it = |meta: Value| {
        endpoint
            .ask("tools/call", json!({"name": "fx__test_tool_with_logging", "arguments": {}, "_meta": meta}))
    };
    // Nobody who did not ask for it is told.
    assert_eq!(call_it(json!({})).json()["result"]["resultType"], "complete");
    assert_eq!(call_it(json!({"io.modelcontextprotocol/logLevel": "error"})).json()["id"], 1);
    let mut heard = call_it(json!({"io.modelcontextprotocol/logLevel": "info"}));
    for data in data {
        let record = heard.event().unwrap();
        assert_eq!(record["method"], "notifications/message");
        assert_eq!(record["params"], json!({"level": "info", "logger": "fx", "data": data}));
    }
    assert_eq!(heard.event().unwrap()["id"], 1);
    assert_eq!(heard.event(), None);
    // With a handshake they come on the call's own stream too, unless the host wants less.
    let session = endpoint.greet("/mcp");
    let of = [("Mcp-Session-Id", session.as_str())];
    let mut heard = endpoint.post(&of, &call(1, "fx__test_tool_with_logging", json!({})));
    for data in data {
        assert_eq!(heard.event().unwrap()["params"]["data"], data);
    }
    assert_eq!(heard.event().unwrap()["id"], 1);
    let level =
        json!({"jsonrpc": "2.0", "id": 2, "method": "logging/setLevel", "params": {"level": "warning"}});
    assert_eq!(endpoint.post(&of, &level).json()["result"], json!({}));
    assert_eq!(endpoint.post(&of, &call(3, "fx__test_tool_with_logging", json!({}))).json()["id"], 3);
    // Resources and prompts are named by headers too.
    let meta = json!({"uri": "mcpx://fx/test://static-text", "_meta": stateless()});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": meta});
    let with = |name: &str| {
        let headers =
            [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "resources/read"), ("Mcp-Name", name)];
        endpoint.post(&headers, &message).json()
    };
    let read = with("mcpx://fx/test://static-text");
    assert_eq!(read["result"]["contents"][0]["uri"], "mcpx://fx/test://static-text", "{read}");
    assert_eq!(with("test://static-text")["error"]["code"], -32020);
}

#[test]
fn a_host_that_leaves_cancels_a_stateless_call() {
    let (world, endpoint) = started(World::fake(&[]));
    let params = json!({"name": "fake__hang", "arguments": {}, "_meta": {"progressToken": 1}});
    let mut params = params;
    params["_meta"][VERSION_KEY] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let mut stream = TcpStream::connect(&endpoint.address).unwrap();
    let token = format!("Authorization: Bearer {}\r\n", endpoint.token);
    let headers =
        [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "fake__hang")];
    write_request(&mut stream, "POST /mcp?mode=passthrough", &endpoint.address, &token, &headers, &message);
    wait_until("the call to reach the server", || {
        (!world.received("fake", "tools/call").is_empty()).then_some(())
    });
    drop(stream);
    wait_until("the server to be told", || {
        (!world.received("fake", "notifications/cancelled").is_empty()).then_some(())
    });
}

#[test]
fn what_is_wrong_is_refused_as_the_protocol_says() {
    let (_world, endpoint) = started(World::demo());
    let meta = stateless();
    let list = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {"_meta": meta}});
    let version = ("MCP-Protocol-Version", "2026-07-28");
    let mut unknown = list.clone();
    unknown["params"]["_meta"][VERSION_KEY] = "v9".into();
    let mut bare = list.clone();
    bare["params"] = json!({});
    let mut nothing = list.clone();
    nothing["method"] = "no/such".into();
    for (headers, message, status, code) in [
        (&[version][..], &list, 400, -32020),
        (&[version, ("Mcp-Method", "prompts/list")], &list, 400, -32020),
        (&[("Mcp-Method", "tools/list")], &list, 400, -32020),
        (&[("MCP-Protocol-Version", "2025-11-25"), ("Mcp-Method", "tools/list")], &list, 400, -32020),
        (&[("MCP-Protocol-Version", "v9"), ("Mcp-Method", "tools/list")], &unknown, 400, -32022),
        (&[version, ("Mcp-Method", "tools/list")], &bare, 400, -32602),
        (&[version, ("Mcp-Method", "no/such")], &nothing, 404, -32601),
    ] {
        let answer = endpoint.post(headers, message);
        assert_eq!(answer.status, status, "{headers:?}");
        let answer = answer.json();
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &json!(7)), "{headers:?}");
    }
    // Without a session, with one that is none, in a revision that is none, in no JSON.
    assert_eq!(endpoint.post(&[], &bare).status, 400);
    assert_eq!(endpoint.post(&[("Mcp-Session-Id", "none")], &bare).status, 404);
    let session = endpoint.greet("/mcp");
    let of = [("Mcp-Session-Id", session.as_str())];
    assert_eq!(endpoint.post(&[of[0], ("MCP-Protocol-Version", "1.0")], &bare).status, 400);
    assert_eq!(endpoint.send("POST /mcp", &[], "{").json()["error"]["code"], -32700);
    assert_eq!(endpoint.send("POST /mcp", &of, "[]").status, 400);
    assert_eq!(endpoint.send("PUT /mcp", &of, "").status, 405);
    assert_eq!(endpoint.send("POST /mcp?mode=x", &[], &list.to_string()).status, 400);
    // A page in a browser, and whoever has no token, get nothing.
    assert_eq!(endpoint.post(&[of[0], ("Origin", "http://evil.example")], &bare).status, 403);
    let other = Endpoint { address: endpoint.address.clone(), token: "wrong".into() };
    assert_eq!(other.post(&of, &bare).status, 401);
}

#[test]
fn the_unix_socket_serves_it_too_and_sessions_do_not_cross_over() {
    let (world, endpoint) = started(World::demo());
    let session = endpoint.greet("/mcp");
    let socket = world.infos()[0]["socket"].as_str().unwrap().to_owned();
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let local = |headers: &[(&str, &str)], body: &str| {
        let mut stream = UnixStream::connect(&socket).unwrap();
        write_request(&mut stream, "POST /mcp", "mcpx", "", headers, body);
        Answer::read(Box::new(stream))
    };
    assert_eq!(local(&[("Mcp-Session-Id", &session)], &list).status, 404);
    let greeting = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}});
    let own = local(&[], &greeting.to_string()).header("mcp-session-id").unwrap();
    let listed = local(&[("Mcp-Session-Id", &own)], &list).json();
    assert!(listed["result"]["tools"].as_array().unwrap().len() > 10);
    // Changing which programs run is for the socket alone.
    let remove = call(2, "mcpx_servers_remove", json!({"name": "demo"}));
    let refused = endpoint.post(&[("Mcp-Session-Id", &session)], &remove).json();
    assert_eq!(refused["result"]["_meta"]["mcpx/error"]["kind"], "refused", "{refused}");
    let removed = local(&[("Mcp-Session-Id", &own)], &remove.to_string()).json();
    assert_eq!(removed["result"]["structuredContent"]["change"], "removed", "{removed}");
}
