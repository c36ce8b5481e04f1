//! The client against HTTP servers that answer by a script: real sockets, one
//! connection a request unless the test is about keeping it.

use super::*;
use crate::config::{ServerDef, ServerOptions, Transport};
use crate::error::{Error, Kind};
use crate::proc::thread;
use crate::settings::Settings;
use crate::util::Env;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

pub(super) const LONG: Duration = Duration::from_secs(30);

/// What a server got.
#[derive(Clone, Debug)]
pub(super) struct Got {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Value,
    connection: usize,
}

impl Got {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }
    pub(super) fn rpc(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }
    pub(super) fn id(&self) -> &Value {
        &self.body["id"]
    }
}

type Script = Arc<dyn Fn(&Got, &mut TcpStream) + Send + Sync>;

pub(super) struct Fixture {
    pub(super) url: String,
    got: Arc<Mutex<Vec<Got>>>,
}

impl Fixture {
    /// A server that does `script` for each request but the handshake and the GET stream.
    pub(super) fn new(script: impl Fn(&Got, &mut TcpStream) + Send + Sync + 'static) -> Fixture {
        Fixture::bare(move |got, stream| match (got.method.as_str(), got.rpc()) {
            ("GET", _) if got.header("last-event-id").is_none() => {
                reply(stream, "405 Method Not Allowed", "", "")
            }
            ("DELETE", _) => reply(stream, "200 OK", "", ""),
            (_, "initialize") => initialized(got, stream, "s-1"),
            (_, rpc) if rpc.starts_with("notifications/") || rpc.is_empty() && got.method == "POST" => {
                reply(stream, "202 Accepted", "", "");
            }
            _ => script(got, stream),
        })
    }

    pub(super) fn bare(script: impl Fn(&Got, &mut TcpStream) + Send + Sync + 'static) -> Fixture {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let got = Arc::new(Mutex::new(Vec::new()));
        let (script, seen): (Script, _) = (Arc::new(script), Arc::clone(&got));
        thread::spawn("fixture", move || {
            for (connection, stream) in listener.incoming().enumerate() {
                let (script, seen, stream) = (Arc::clone(&script), Arc::clone(&seen), stream.unwrap());
                thread::spawn("fixture", move || converse(connection, stream, &script, &seen)).unwrap();
            }
        })
        .unwrap();
        Fixture { url, got }
    }

    fn connect(&self) -> Result<Client, Error> {
        self.connect_in("2025-11-25")
    }

    pub(super) fn connect_in(&self, protocol: &str) -> Result<Client, Error> {
        self.connect_with(protocol, Hooks::default())
    }

    pub(super) fn connect_with(&self, protocol: &str, hooks: Hooks) -> Result<Client, Error> {
        let headers = [("X-Own", "yes"), ("Accept", "nonsense")];
        let def = ServerDef {
            alias_of: None,
            document: None,
            name: "web".into(),
            transport: Transport::Http {
                url: self.url.clone(),
                headers: headers.iter().map(|&(n, v)| (n.into(), v.into())).collect(),
            },
            enabled: true,
            description: None,
            options: ServerOptions {
                start_timeout: Some(LONG),
                protocol: Some(protocol.into()),
                ..ServerOptions::default()
            },
            source: Arc::new(PathBuf::from("/test")),
            line: 1,
            digest: String::new(),
            problem: None,
        };
        let (env, settings) = (Env::default(), Settings::defaults());
        let connect = Connect { def: &def, env: &env, settings: &settings, hooks, remembered: None };
        Client::start(connect, &Cancel::new())
    }

    pub(super) fn client(&self) -> Client {
        self.connect().unwrap()
    }

    pub(super) fn got(&self, matches: impl Fn(&Got) -> bool) -> Vec<Got> {
        self.got.lock().unwrap().iter().filter(|g| matches(g)).cloned().collect()
    }
}

fn converse(connection: usize, mut stream: TcpStream, script: &Script, seen: &Mutex<Vec<Got>>) {
    let mut from = BufReader::new(stream.try_clone().unwrap());
    loop {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if from.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if line.trim().is_empty() {
                break;
            }
            lines.push(line.trim_end().to_owned());
        }
        let mut first = lines[0].split(' ').map(str::to_owned);
        let headers: Vec<(String, String)> = lines[1..]
            .iter()
            .filter_map(|l| l.split_once(": "))
            .map(|(n, v)| (n.to_owned(), v.to_owned()))
            .collect();
        let mut got = Got {
            method: first.next().unwrap(),
            path: first.next().unwrap(),
            headers,
            body: Value::Null,
            connection,
        };
        let length = got.header("content-length").map_or(0, |l| l.parse().unwrap());
        let mut body = vec![0; length];
        from.read_exact(&mut body).unwrap();
        got.body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        seen.lock().unwrap().push(got.clone());
        script(&got, &mut stream);
    }
}

pub(super) fn reply(stream: &mut TcpStream, status: &str, headers: &str, body: &str) {
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n{headers}\r\n", body.len());
    let _ = stream.write_all((head + body).as_bytes());
}

pub(super) fn json_reply(stream: &mut TcpStream, body: &Value) {
    reply(stream, "200 OK", "Content-Type: application/json; charset=utf-8\r\n", &body.to_string());
}

pub(super) fn initialized(got: &Got, stream: &mut TcpStream, session: &str) {
    let body = json!({"jsonrpc": "2.0", "id": got.id(), "result": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "web", "version": "1"}}});
    let headers = format!("Content-Type: application/json\r\nMcp-Session-Id: {session}\r\n");
    reply(stream, "200 OK", &headers, &body.to_string());
}

/// The head of an event stream, whose parts follow by [`part`] and which [`part`] of nothing ends.
pub(super) fn stream_head(stream: &mut TcpStream) {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    let _ = stream.write_all(head.as_bytes());
}

pub(super) fn part(stream: &mut TcpStream, text: &str) {
    let _ = stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes());
}

pub(super) fn call(client: &Client, tool: &str, timeout: Duration) -> Result<String, Error> {
    let cancel = Cancel::new();
    let params = RawValue::from_string(json!({"name": tool}).to_string()).unwrap();
    let options = Options::new(&cancel).timeout(timeout);
    client.request("tools/call", Some(params), options).map(|raw| raw.get().to_owned())
}

#[test]
fn headers_and_session_go_along() {
    let fixture = Fixture::new(|got, stream| {
        json_reply(stream, &json!({"jsonrpc": "2.0", "id": got.id(), "result": [1]}))
    });
    let client = fixture.client();
    assert_eq!(call(&client, "t", LONG).unwrap(), "[1]");
    assert_eq!(client.protocol(), "2025-06-18");
    client.stop();
    let first = &fixture.got(|g| g.rpc() == "initialize")[0];
    assert_eq!(first.header("accept"), Some("application/json, text/event-stream"));
    assert_eq!((first.header("mcp-session-id"), first.header("mcp-protocol-version")), (None, None));
    assert_eq!(first.header("x-own"), Some("yes"));
    let later = fixture.got(|g| g.rpc() == "tools/call" || g.rpc() == "notifications/initialized");
    assert_eq!(later.len(), 2);
    for got in later.iter().chain(&fixture.got(|g| g.method == "DELETE")) {
        assert_eq!(got.header("mcp-session-id"), Some("s-1"), "{got:?}");
        assert_eq!(got.header("mcp-protocol-version"), Some("2025-06-18"));
    }
    assert_eq!(fixture.got(|g| g.method == "DELETE").len(), 1);
    assert_eq!(call(&client, "t", LONG).unwrap_err().kind(), Kind::Unavailable);
}

#[test]
fn a_stream_may_begin_with_nothing_report_progress_and_ask() {
    let fixture = Fixture::new(|got, stream| {
        stream_head(stream);
        part(stream, "id: 1\ndata:\n\n");
        let token = &got.body["params"]["_meta"]["progressToken"];
        let progress =
            json!({"method": "notifications/progress", "params": {"progressToken": token, "progress": 5}});
        part(stream, &format!("data: {progress}\n\n"));
        part(stream, "data: {\"jsonrpc\":\"2.0\",\"id\":\"ask\",\"method\":\"ping\"}\n\n");
        part(stream, &format!("event: message\ndata: {{\"id\":{},\ndata: \"result\":7}}\n\n", got.id()));
        part(stream, "");
    });
    let client = fixture.client();
    let cancel = Cancel::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&seen);
    let progress: Arc<dyn Fn(Value) + Send + Sync> = Arc::new(move |v| into.lock().unwrap().push(v));
    let options = Options { progress: Some(progress), ..Options::new(&cancel).timeout(LONG) };
    assert_eq!(client.request("tools/call", None, options).unwrap().get(), "7");
    assert_eq!(*seen.lock().unwrap(), [json!({"progress": 5})]);
    let answer = fixture.got(|g| g.body["id"] == "ask");
    assert_eq!(answer[0].body["result"], json!({}));
}

#[test]
fn a_lost_session_is_begun_again_once_and_the_refused_call_repeated() {
    for status in ["404 Not Found", "400 Bad Request"] {
        let lost = Mutex::new(true);
        let fixture = Fixture::bare(move |got, stream| match (got.method.as_str(), got.rpc()) {
            ("GET", _) => reply(stream, "405 Method Not Allowed", "", ""),
            (_, "initialize") => {
                let number = if *lost.lock().unwrap() { "old" } else { "new" };
                initialized(got, stream, number);
            }
            (_, "tools/call") if got.header("mcp-session-id") == Some("old") => {
                *lost.lock().unwrap() = false;
                reply(stream, status, "", "{\"error\":\"No valid session\"}");
            }
            (_, "tools/call") => json_reply(stream, &json!({"id": got.id(), "result": "fresh"})),
            _ => reply(stream, "202 Accepted", "", ""),
        });
        let client = fixture.client();
        assert_eq!(call(&client, "t", LONG).unwrap(), "\"fresh\"");
        assert_eq!(fixture.got(|g| g.rpc() == "initialize").len(), 2);
        assert_eq!(fixture.got(|g| g.rpc() == "tools/call").len(), 2);
        assert_eq!(call(&client, "t", LONG).unwrap(), "\"fresh\"");
        assert_eq!(fixture.got(|g| g.rpc() == "initialize").len(), 2);
    }
}

#[test]
fn a_server_that_forgets_every_session_is_not_asked_for_ever() {
    let fixture = Fixture::new(|_, stream| reply(stream, "404 Not Found", "", ""));
    let e = call(&fixture.client(), "t", LONG).unwrap_err();
    assert!(e.message().contains("does not know the session"), "{e}");
    assert_eq!(fixture.got(|g| g.rpc() == "tools/call").len(), 2);
}

#[test]
fn a_call_is_not_sent_again_when_its_answer_breaks_off() {
    let fixture = Fixture::new(|got, stream| match got.body["params"]["name"].as_str() {
        Some("drop") => stream.shutdown(std::net::Shutdown::Both).unwrap(),
        Some("half") => {
            stream_head(stream);
            part(stream, "data: {\"half\n");
            stream.shutdown(std::net::Shutdown::Both).unwrap();
        }
        Some("empty") => {
            stream_head(stream);
            part(stream, "");
        }
        Some("error") => reply(stream, "500 Internal Server Error", "", "it broke\nbadly"),
        _ => reply(stream, "200 OK", "Content-Type: text/html\r\n", "<p>"),
    });
    let client = fixture.client();
    for tool in ["drop", "half", "empty", "error", "html"] {
        let e = call(&client, tool, LONG).unwrap_err();
        assert_eq!(e.kind(), Kind::OutcomeUnknown, "{tool}: {e}");
        assert_eq!(fixture.got(|g| g.body["params"]["name"] == tool).len(), 1);
    }
    let e = call(&client, "error", LONG).unwrap_err();
    assert!(e.message().contains("HTTP 500 Internal Server Error: it broke badly"), "{e}");
}

#[test]
fn a_broken_stream_is_resumed_after_its_last_event() {
    let asked = Arc::new(Mutex::new(Value::Null));
    let fixture = Fixture::new(move |got, stream| {
        stream_head(stream);
        match got.header("last-event-id") {
            None => {
                *asked.lock().unwrap() = got.id().clone();
                part(stream, "id: e-1\nretry: 5\ndata:\n\n");
                stream.shutdown(std::net::Shutdown::Both).unwrap();
            }
            Some("e-1") => {
                part(stream, "id: e-2\ndata: {\"method\":\"notifications/message\"}\n\n");
                part(stream, "");
            }
            Some(_) => {
                let id = asked.lock().unwrap().clone();
                part(stream, &format!("data: {{\"id\":{id},\"result\":\"resumed\"}}\n\n"));
                part(stream, "");
            }
        }
    });
    assert_eq!(call(&fixture.client(), "t", LONG).unwrap(), "\"resumed\"");
    assert_eq!(fixture.got(|g| g.rpc() == "tools/call").len(), 1);
    let last: Vec<_> = fixture.got(|g| g.header("last-event-id").is_some());
    assert_eq!(last.iter().filter_map(|g| g.header("last-event-id")).collect::<Vec<_>>(), ["e-1", "e-2"]);
}

#[test]
fn a_time_out_and_a_caller_that_leaves_are_told() {
    let (tell, told) = mpsc::channel();
    let tell = Mutex::new(tell);
    let fixture = Fixture::bare(move |got, stream| match (got.method.as_str(), got.rpc()) {
        (_, "initialize") => initialized(got, stream, "s"),
        (_, "notifications/cancelled") => {
            tell.lock().unwrap().send(got.body["params"].clone()).unwrap();
            reply(stream, "202 Accepted", "", "");
        }
        (_, "tools/call") => {
            stream_head(stream);
            let note = json!({"method": "notifications/progress",
                              "params": {"progressToken": got.id(), "progress": 1}});
            part(stream, &format!("data: {note}\n\n"));
        }
        ("GET", _) => reply(stream, "405 Method Not Allowed", "", ""),
        _ => reply(stream, "202 Accepted", "", ""),
    });
    let client = fixture.client();
    let e = call(&client, "t", Duration::from_millis(100)).unwrap_err();
    assert_eq!(e.kind(), Kind::Timeout, "{e}");
    assert_eq!(told.recv_timeout(LONG).unwrap()["requestId"], 2);
    let cancel = Cancel::new();
    let inside = cancel.clone();
    let options = Options { progress: Some(Arc::new(move |_| inside.cancel())), ..Options::new(&cancel) };
    let e = client.request("tools/call", None, options).unwrap_err();
    assert_eq!(e.kind(), Kind::Cancelled);
    assert_eq!(told.recv_timeout(LONG).unwrap()["requestId"], 3);
    // And stopping ends what waits without a time-out.
    let waiting = std::thread::spawn({
        let client = client.clone();
        move || {
            let cancel = Cancel::new();
            let (begun, has_begun) = mpsc::channel();
            let begun = Mutex::new(begun);
            let stopper = std::thread::spawn({
                let client = client.clone();
                move || {
                    has_begun.recv().unwrap();
                    client.stop();
                }
            });
            let progress: Arc<dyn Fn(Value) + Send + Sync> =
                Arc::new(move |_| begun.lock().unwrap().send(()).unwrap());
            let options = Options { progress: Some(progress), ..Options::new(&cancel) };
            let e = client.request("tools/call", None, options).unwrap_err();
            stopper.join().unwrap();
            e
        }
    });
    let e = waiting.join().unwrap();
    assert_eq!(e.kind(), Kind::OutcomeUnknown);
    assert!(e.message().contains("was stopped"), "{e}");
}

#[test]
fn redirects_are_followed_at_home_only() {
    let fixture = Fixture::new(|got, stream| match got.path.as_str() {
        "/mcp" => reply(stream, "307 Temporary Redirect", "Location: /mcp/\r\n", ""),
        _ => json_reply(stream, &json!({"id": got.id(), "result": got.path})),
    });
    assert_eq!(call(&fixture.client(), "t", LONG).unwrap(), "\"/mcp/\"");
    let away = Fixture::bare(|_, stream| {
        reply(stream, "302 Found", "Location: https://elsewhere.example/login?token=x\r\n", "");
    });
    let e = away.connect().err().unwrap();
    assert!(
        e.message().contains("redirects to https://elsewhere.example/login, which is another origin"),
        "{e}"
    );
    assert_eq!(away.got.lock().unwrap().len(), 1);
    let round = Fixture::bare(|_, stream| reply(stream, "308 Permanent Redirect", "Location: /mcp\r\n", ""));
    assert!(round.connect().err().unwrap().message().contains("more than 3 times"));
}

#[test]
fn refusals_say_what_to_do() {
    let status = |status: &'static str, headers: &'static str, body: &'static str| {
        Fixture::bare(move |_, stream| reply(stream, status, headers, body)).connect().err().unwrap()
    };
    let e = status("401 Unauthorized", "WWW-Authenticate: Bearer\r\n", "");
    assert_eq!((e.kind(), e.exit_code()), (Kind::Refused, 77));
    assert!(e.hint_text().unwrap().contains("Authorization"));
    let e = status("404 Not Found", "", "no such page");
    assert_eq!(e.kind(), Kind::Unavailable);
    assert!(e.message().ends_with("answered HTTP 404 Not Found: no such page"), "{e}");
    assert!(e.hint_text().unwrap().contains("MCP endpoint"));
    let e = status("429 Too Many Requests", "Retry-After: 7\r\n", "");
    assert!(e.kind() == Kind::Busy && e.hint_text().unwrap().contains("for 7"), "{e}");
    let e = status(
        "400 Bad Request",
        "",
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32022,"message":"too old"}}"#,
    );
    assert!(e.kind() == Kind::Unavailable && e.message().contains("too old (JSON-RPC error -32022)"), "{e}");
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let gone = Fixture { url: format!("http://me:secret@{nobody}/mcp?key=secret"), got: Arc::default() };
    let e = gone.connect().err().unwrap();
    assert_eq!(e.kind(), Kind::Unavailable);
    assert!(e.message().contains(&format!("at http://{nobody}/mcp cannot be reached: ")), "{e}");
    assert!(!e.to_string().contains("secret"), "{e}");
    let odd = Fixture { url: "ftp://x/".into(), got: Arc::default() };
    assert_eq!(odd.connect().err().unwrap().kind(), Kind::Config);
}

#[test]
fn a_stream_of_its_own_is_listened_to_and_asked_back() {
    let (tell, told) = mpsc::channel();
    let tell = Mutex::new(tell);
    let fixture = Fixture::bare(move |got, stream| match (got.method.as_str(), got.rpc()) {
        ("GET", _) => {
            tell.lock().unwrap().send(format!("get {:?}", got.header("last-event-id"))).unwrap();
            stream_head(stream);
            part(stream, "id: 4\nretry: 5\ndata: {\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"ping\"}\n\n");
            part(stream, "");
        }
        (_, "initialize") => initialized(got, stream, "s"),
        _ => {
            if got.id() == 77 {
                tell.lock().unwrap().send("pong".into()).unwrap();
            }
            reply(stream, "202 Accepted", "", "");
        }
    });
    let client = fixture.client();
    for expected in ["get None", "pong", "get Some(\"4\")", "pong"] {
        assert_eq!(told.recv_timeout(LONG).unwrap(), expected);
    }
    client.stop();
}

#[test]
fn connections_are_kept() {
    let fixture = Fixture::new(|got, stream| {
        stream_head(stream);
        part(stream, &format!("data: {{\"id\":{},\"result\":1}}\n\n", got.id()));
        part(stream, "");
    });
    let client = fixture.client();
    for _ in 0..20 {
        call(&client, "t", LONG).unwrap();
    }
    let calls = fixture.got(|g| g.rpc() == "tools/call");
    let mut connections: Vec<_> = calls.iter().map(|g| g.connection).collect();
    connections.dedup();
    connections.sort();
    connections.dedup();
    assert!(connections.len() <= 4, "{connections:?}");
}

#[test]
fn big_answers_pass_and_bigger_ones_end_their_call() {
    let fixture = Fixture::new(|got, stream| {
        let text = "x".repeat(5_000_000);
        let answer = json!({"id": got.id(), "result": text});
        if got.body["params"]["name"] == "json" {
            return json_reply(stream, &answer);
        }
        stream_head(stream);
        part(stream, &format!("data: {answer}\n\n"));
        part(stream, "");
    });
    let client = fixture.client();
    for tool in ["json", "sse"] {
        assert_eq!(call(&client, tool, LONG).unwrap().len(), 5_000_002);
    }
}
