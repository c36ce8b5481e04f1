//! The client in the stateless era, against servers over HTTP that answer by a
//! script and over pipes that are small shell scripts.

use super::http_tests::{Fixture, Got, LONG, call, json_reply, part, reply, stream_head};
use super::*;
use crate::error::Kind;
use serde_json::{Value, json};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

const AUTO: &str = "auto";
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

fn result(got: &Got, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": got.id(), "result": result})
}

fn discovered(got: &Got, stream: &mut TcpStream, capabilities: Value) {
    let said = json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "capabilities": capabilities,
        "supportedVersions": ["2026-07-28"], "instructions": "be brief",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "web", "version": "2"}}});
    json_reply(stream, &result(got, said));
}

/// A server of the stateless era that does `script` for what is no greeting.
fn modern(script: impl Fn(&Got, &mut TcpStream) + Send + Sync + 'static) -> Fixture {
    Fixture::bare(move |got, stream| match got.rpc() {
        "server/discover" => discovered(got, stream, json!({"tools": {}})),
        _ => script(got, stream),
    })
}

#[test]
fn each_request_says_all_of_itself_and_nothing_else_is_sent() {
    let fixture = modern(|got, stream| json_reply(stream, &result(got, json!({"content": []}))));
    let client = fixture.connect_in(AUTO).unwrap();
    assert_eq!(call(&client, "a b", LONG).unwrap(), r#"{"content":[]}"#);
    assert_eq!(
        (client.protocol().as_str(), client.instructions().as_deref()),
        ("2026-07-28", Some("be brief"))
    );
    assert_eq!(client.server_info().unwrap()["version"], "2");
    client.ping(LONG).unwrap();
    client.stop();
    let all = fixture.got(|_| true);
    assert_eq!(
        all.iter().map(Got::rpc).collect::<Vec<_>>(),
        ["server/discover", "tools/call", "server/discover"]
    );
    for got in &all {
        assert_eq!(got.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(got.header("mcp-method"), Some(got.rpc()));
        let meta = &got.body["params"]["_meta"];
        assert_eq!(meta[VERSION], "2026-07-28");
        let able = json!({"roots": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
        assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], able);
        assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "mcpx");
    }
    assert_eq!((all[0].header("mcp-name"), all[1].header("mcp-name")), (None, Some("a b")));
}

#[test]
fn an_older_server_is_asked_once_and_then_greeted_in_its_way() {
    // In each of the ways in which older servers refuse what they do not know.
    let refusals: [fn(&Got, &mut TcpStream); 5] = [
        |got, stream| {
            json_reply(
                stream,
                &json!({"jsonrpc": "2.0", "id": got.id(), "error": {"code": -32601, "message": "?"}}),
            );
        },
        |_, stream| reply(stream, "400 Bad Request", "", "No valid session ID provided"),
        |_, stream| reply(stream, "404 Not Found", "", ""),
        |_, stream| reply(stream, "500 Internal Server Error", "", ""),
        |got, stream| json_reply(stream, &result(got, json!({}))),
    ];
    for refusal in refusals {
        let fixture = Fixture::new(move |got, stream| match got.rpc() {
            "server/discover" => refusal(got, stream),
            _ => json_reply(stream, &result(got, json!({"content": []}))),
        });
        let client = fixture.connect_in(AUTO).unwrap();
        assert_eq!(client.protocol(), "2025-06-18");
        call(&client, "t", LONG).unwrap();
        client.stop();
        let first = &fixture.got(|g| g.rpc() == "initialize")[0];
        assert_eq!(first.header("mcp-protocol-version"), None);
        assert!(first.body["params"].get("_meta").is_none());
    }
    let shut = Fixture::bare(|_, stream| reply(stream, "401 Unauthorized", "", ""));
    assert_eq!(shut.connect_in(AUTO).err().unwrap().kind(), Kind::Refused);
    assert_eq!(shut.got(|_| true).len(), 1, "a closed door is not knocked at twice");
}

#[test]
fn a_server_that_refuses_a_version_it_speaks_is_asked_again() {
    let count = AtomicUsize::new(0);
    let fixture = Fixture::bare(move |got, stream| match count.fetch_add(1, Ordering::SeqCst) {
        0 => {
            let error = json!({"code": -32022, "message": "no", "data": {"supported": ["2026-07-28"]}});
            let body = json!({"jsonrpc": "2.0", "id": got.id(), "error": error}).to_string();
            reply(stream, "400 Bad Request", "Content-Type: application/json\r\n", &body);
        }
        _ => discovered(got, stream, json!({})),
    });
    assert_eq!(fixture.connect_in(AUTO).unwrap().protocol(), "2026-07-28");
}

/// Wants input twice, with a state in the first round alone.
fn asks_twice(got: &Got, stream: &mut TcpStream) {
    let params = &got.body["params"];
    let question = |key: &str| json!({key: {"method": "elicitation/create", "params": {"message": key}}});
    let said = match (&params["inputResponses"]["one"], &params["inputResponses"]["two"]) {
        (Value::Null, Value::Null) => {
            json!({"resultType": "input_required", "inputRequests": question("one"), "requestState": "s"})
        }
        (_, Value::Null) => json!({"resultType": "input_required", "inputRequests": question("two")}),
        _ => json!({"resultType": "complete", "content": []}),
    };
    json_reply(stream, &result(got, said));
}

#[test]
fn a_server_gets_the_input_that_it_wants() {
    let fixture = modern(asks_twice);
    let client = fixture.connect_in(AUTO).unwrap();
    let cancel = Cancel::new();
    let asked: Asked = Arc::new(|question| {
        let said = json!({"action": "accept", "content": {"to": question.params["message"]}});
        question.answer(Ok(said));
    });
    let params = serde_json::value::to_raw_value(&json!({"name": "t", "arguments": {"n": 1}})).unwrap();
    let options = Options { asked: Some(asked), ..Options::new(&cancel).timeout(LONG) };
    client.request("tools/call", Some(params), options).unwrap();
    let rounds = fixture.got(|g| g.rpc() == "tools/call");
    let (one, two) = (&rounds[1].body["params"], &rounds[2].body["params"]);
    assert_eq!(one["requestState"], "s");
    assert_eq!(one["inputResponses"], json!({"one": {"action": "accept", "content": {"to": "one"}}}));
    assert_eq!(two["inputResponses"], json!({"two": {"action": "accept", "content": {"to": "two"}}}));
    assert!(two.get("requestState").is_none());
    assert!(rounds.iter().all(|r| r.body["params"]["arguments"]["n"] == 1));
    let ids: std::collections::HashSet<_> = rounds.iter().map(|r| r.id().to_string()).collect();
    assert_eq!(ids.len(), 3);
}

#[test]
fn a_caller_that_leaves_takes_its_question_back() {
    let fixture = modern(asks_twice);
    let client = fixture.connect_in(AUTO).unwrap();
    let cancel = Cancel::new();
    let held = Arc::new(Mutex::new(None));
    let (inside, keep) = (cancel.clone(), held.clone());
    let asked: Asked = Arc::new(move |question| {
        *keep.lock().unwrap() = Some(question);
        inside.cancel();
    });
    let options = Options { asked: Some(asked), ..Options::new(&cancel).timeout(LONG) };
    let params = serde_json::value::to_raw_value(&json!({"name": "t"})).unwrap();
    let error = client.request("tools/call", Some(params), options).unwrap_err();
    assert_eq!(error.kind(), Kind::Cancelled);
    let question = held.lock().unwrap().take().unwrap();
    assert!(question.withdrawn.is_cancelled());
    question.answer(Ok(json!({"action": "accept"})));
    // With nobody to ask, the server cannot go on.
    let error = call(&client, "t", LONG).unwrap_err();
    assert!(error.message().contains("wants elicitation/create"), "{error}");
}

#[test]
fn results_of_other_types_are_not_taken_for_results() {
    let fixture = modern(|got, stream| json_reply(stream, &result(got, json!({"resultType": "later"}))));
    let client = fixture.connect_in(AUTO).unwrap();
    let error = call(&client, "t", LONG).unwrap_err();
    assert!(error.message().contains("\"later\""), "{error}");
}

#[test]
fn a_stream_that_breaks_is_not_taken_up_and_the_call_not_repeated() {
    let fixture = modern(|_, stream| {
        stream_head(stream);
        part(stream, "id: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n");
        let _ = stream.shutdown(std::net::Shutdown::Both);
    });
    let client = fixture.connect_in(AUTO).unwrap();
    assert_eq!(call(&client, "t", LONG).unwrap_err().kind(), Kind::OutcomeUnknown);
    assert_eq!(fixture.got(|g| g.rpc() == "tools/call").len(), 1);
    assert_eq!(fixture.got(|g| g.method == "GET").len(), 0);
}

#[test]
fn changes_are_listened_to_by_one_long_request() {
    let (send, receive) = mpsc::channel::<()>();
    let receive = Mutex::new(receive);
    let fixture = Fixture::bare(move |got, stream| match got.rpc() {
        "server/discover" => discovered(got, stream, json!({"tools": {"listChanged": true}, "prompts": {}})),
        _ => {
            stream_head(stream);
            let _ = receive.lock().unwrap().recv_timeout(LONG);
            part(stream, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n");
        }
    });
    let (changed, heard) = mpsc::channel();
    let hooks = Hooks { tools_changed: Arc::new(move || changed.send(()).unwrap()), ..Hooks::default() };
    let client = fixture.connect_with(AUTO, hooks).unwrap();
    send.send(()).unwrap();
    heard.recv_timeout(LONG).unwrap();
    let listening = &fixture.got(|g| g.rpc() == "subscriptions/listen")[0];
    assert_eq!(listening.body["params"]["notifications"], json!({"toolsListChanged": true}));
    assert_eq!(listening.header("mcp-method"), Some("subscriptions/listen"));
    client.stop();
}

#[test]
fn tools_whose_headers_break_the_rules_are_left_out() {
    let fixture = modern(|got, stream| {
        let marked = |name: &str| json!({"properties": {"p": {"type": "string", "x-mcp-header": name}}});
        let tools = json!([{"name": "good", "inputSchema": marked("Region")},
            {"name": "bad", "inputSchema": marked("a b")}]);
        json_reply(stream, &result(got, json!({"tools": tools})));
    });
    let client = fixture.connect_in(AUTO).unwrap();
    let tools = client.list_tools(&Options::new(&Cancel::new()).timeout(LONG)).unwrap().tools;
    assert_eq!(tools.iter().map(|t| t.name.as_str()).collect::<Vec<_>>(), ["good"]);
    let mirrored = [("Mcp-Param-Region".to_owned(), "eu".to_owned())];
    let cancel = Cancel::new();
    let options = Options { mirrored: &mirrored, ..Options::new(&cancel).timeout(LONG) };
    let _ = client.request("tools/call", None, options);
    assert_eq!(fixture.got(|g| g.rpc() == "tools/call")[0].header("mcp-param-region"), Some("eu"));
}

#[test]
fn a_question_about_a_task_that_is_cut_is_asked_again_and_the_call_is_not() {
    let asked = AtomicUsize::new(0);
    let fixture = modern(move |got, stream| match got.rpc() {
        "tools/call" => {
            let task = json!({"resultType": "task", "taskId": "t 1", "status": "working", "pollIntervalMs": 1,
                "createdAt": "", "lastUpdatedAt": "", "ttlMs": null});
            json_reply(stream, &result(got, task));
        }
        _ if asked.fetch_add(1, Ordering::SeqCst) < 2 => drop(stream.shutdown(std::net::Shutdown::Both)),
        _ => {
            let done = json!({"resultType": "complete", "taskId": "t 1", "status": "completed",
                "result": {"content": []}, "createdAt": "", "lastUpdatedAt": "", "ttlMs": null});
            json_reply(stream, &result(got, done));
        }
    });
    let client = fixture.connect_in(AUTO).unwrap();
    assert_eq!(call(&client, "t", LONG).unwrap(), r#"{"content":[]}"#);
    assert_eq!(fixture.got(|g| g.rpc() == "tools/call").len(), 1);
    let questions = fixture.got(|g| g.rpc() == "tasks/get");
    assert_eq!((questions.len(), questions[0].header("mcp-name")), (3, Some("t 1")));
    client.stop();
}
