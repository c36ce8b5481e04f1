//! Servers that misbehave on purpose, over pipes and over HTTP: what they send
//! ends their own call with a word that says why, and nothing else; a call goes
//! out once; and what belongs to a server goes to no other.

use super::http_tests::{Fixture, Got, LONG, call, initialized, json_reply, part, reply, stream_head};
use super::tests::{call as call_program, serve};
use super::*;
use crate::error::Kind;
use serde_json::json;
use std::io::Write;
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Long enough for an answer that comes at once, on any machine that gets anywhere.
const SHORT: Duration = Duration::from_millis(400);

/// What a server may answer instead of an answer, with `ID` for the request's id, and what its caller hears: the
/// result, or a part of the message.
const ANSWERS: [(&str, Result<&str, &str>); 14] = [
    // Of the wrong type: passed on, for whoever knows what was asked for.
    (r#"{"jsonrpc":"2.0","id":ID,"result":"text"}"#, Ok("\"text\"")),
    (r#"{"jsonrpc":"2.0","id":ID,"result":null}"#, Ok("null")),
    (r#"{"jsonrpc":"2.0","id":ID,"error":"text"}"#, Err("text")),
    (r#"{"jsonrpc":"2.0","id":ID,"error":{"code":"x","message":7}}"#, Err("answered")),
    // Another version of JSON-RPC, members of no meaning, in any order.
    (r#"{"result":1,"more":[],"id":ID,"jsonrpc":"9"}"#, Ok("1")),
    // A batch, as 2025-03-26 has them, with what is none among it, and the same answer twice.
    (r#"[{"id":77,"result":0},[],{"id":ID,"result":1},{"id":ID,"result":2},null]"#, Ok("1")),
    // Not UTF-8, in a member and in a name.
    ("{\"id\":ID,\"result\":{\"text\":\"caf\u{0}\"}}", Ok("{\"text\":\"caf\u{fffd}\"}")),
    ("{\"\u{0}\":1,\"id\":ID,\"result\":2}", Ok("2")),
    // No JSON, but an answer: Python writes NaN, others forget a bracket or a quote.
    (r#"{"id":ID,"result":{"n":NaN}}"#, Err("no JSON")),
    (r#"{"id":ID,"result":{"n":1}"#, Err("no JSON")),
    (r#"{"id":ID,"error":{"message":"half}}"#, Err("no JSON")),
    (r#"{"id":ID,"result":01}"#, Err("no JSON")),
    // From one who could not read the request, nor therefore whose it was.
    (r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#, Err("Parse error")),
    // Both.
    (r#"{"id":ID,"result":1,"error":{"code":5,"message":"both"}}"#, Err("both")),
];

/// As it goes out: what is no UTF-8 cannot stand in the table.
fn bytes(answer: &str, id: &str) -> Vec<u8> {
    let text = answer.replace("ID", id);
    text.bytes().map(|b| if b == 0 { 0xe9 } else { b }).collect()
}

fn heard(outcome: Result<String, crate::error::Error>, expected: Result<&str, &str>, answer: &str) {
    match (outcome, expected) {
        (Ok(result), Ok(expected)) => assert_eq!(result, expected, "{answer:?}"),
        (Err(e), Err(part)) => assert!(e.message().contains(part), "{answer:?}: {e}"),
        (outcome, _) => panic!("{answer:?}: {outcome:?}"),
    }
}

#[test]
fn odd_answers_over_pipes_end_their_own_call_alone() {
    // The tool's name is the answer's number; the shell takes it from the request.
    let mut cases = String::new();
    for (n, (answer, _)) in ANSWERS.iter().enumerate() {
        let line: String = bytes(answer, "@").iter().map(|b| format!("\\{b:03o}")).collect();
        cases += &format!("*'\"t{n}\"'*) printf '{line}\\n' | LC_ALL=C sed \"s/@/$id/g\";;\n");
    }
    let client = serve(&format!("case $line in {cases} *) answer 0;; esac"));
    for (n, (answer, expected)) in ANSWERS.iter().enumerate() {
        heard(call_program(&client, &format!("t{n}")), *expected, answer);
        assert_eq!(call_program(&client, "other").unwrap(), "0");
    }
    assert!(!client.is_closed());
}

#[test]
fn odd_answers_over_http_end_their_own_call_alone() {
    for streamed in [false, true] {
        let fixture = Fixture::new(move |got, stream| {
            let name = got.body["params"]["name"].as_str().unwrap_or_default();
            let n: usize = name.strip_prefix('t').and_then(|n| n.parse().ok()).unwrap_or_default();
            let body = bytes(ANSWERS[n].0, &got.id().to_string());
            let (kind, body) = match streamed {
                true => ("text/event-stream", [b"data: ", &*body, b"\n\n"].concat()),
                false => ("application/json", body),
            };
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n", body.len());
            let _ = stream.write_all(&[head.as_bytes(), &body].concat());
        });
        let client = fixture.client();
        for (n, (answer, expected)) in ANSWERS.iter().enumerate() {
            heard(call(&client, &format!("t{n}"), LONG), *expected, answer);
        }
        assert_eq!(fixture.got(|g| g.rpc() == "tools/call").len(), ANSWERS.len());
        assert_eq!(fixture.got(|g| g.rpc() == "initialize").len(), 1);
    }
}

#[test]
fn what_a_server_prints_of_a_request_is_no_answer_to_it() {
    let client = serve(r#"say "{\"id\":$id,\"method\":\"tools/call\",\"result\":oops"; answer 1"#);
    assert_eq!(call_program(&client, "t").unwrap(), "1");
}

#[test]
fn an_answer_that_is_cut_anywhere_is_whole_or_unknown() {
    for streamed in [false, true] {
        let cut = Arc::new(Mutex::new(0));
        let at = Arc::clone(&cut);
        let fixture = Fixture::new(move |got, stream| {
            let answer = json!({"jsonrpc": "2.0", "id": got.id(), "result": {"content": []}});
            let (kind, body) = match streamed {
                true => ("text/event-stream", format!(": hello\n\nevent: message\ndata: {answer}\n\n")),
                false => ("application/json", answer.to_string()),
            };
            let whole = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(&whole.as_bytes()[..whole.len().min(*at.lock().unwrap())]);
            let _ = stream.shutdown(std::net::Shutdown::Both);
        });
        let client = fixture.client();
        let (mut calls, mut whole) = (0, 0);
        // As long as the answer is, and a little further.
        while whole < 3 {
            calls += 1;
            assert!(calls < 1000, "the answer never came");
            match call(&client, "t", LONG) {
                Ok(result) => {
                    assert_eq!(result, r#"{"content":[]}"#);
                    whole += 1;
                }
                Err(e) => {
                    assert_eq!((e.kind(), whole), (Kind::OutcomeUnknown, 0), "at {calls}: {e}");
                    assert!(e.hint_text().unwrap().contains("not sent again"), "{e}");
                }
            }
            *cut.lock().unwrap() += 1;
            assert_eq!(fixture.got(|g| g.rpc() == "tools/call").len(), calls, "sent once each");
        }
        assert!(calls > 100, "{calls}");
    }
}

#[test]
fn a_session_that_ends_in_mid_call_leaves_its_outcome_unknown_and_the_next_begins_another() {
    let sessions = Arc::new(Mutex::new(0));
    let count = Arc::clone(&sessions);
    let fixture = Fixture::bare(move |got, stream| match (got.method.as_str(), got.rpc()) {
        (_, "initialize") => {
            *count.lock().unwrap() += 1;
            initialized(got, stream, &format!("s-{}", count.lock().unwrap()));
        }
        // It works on the call, and then knows nothing of all that.
        (_, "tools/call")
            if got.header("mcp-session-id") == Some("s-1") && got.body["params"]["name"] == "first" =>
        {
            stream_head(stream);
            part(stream, "id: e-1\nretry: 5\ndata:\n\n");
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
        ("GET", _) if got.header("last-event-id").is_none() => {
            reply(stream, "405 Method Not Allowed", "", "")
        }
        ("GET", _) => reply(stream, "404 Not Found", "", "no such session"),
        (_, "tools/call") if got.header("mcp-session-id") == Some("s-1") => {
            reply(stream, "404 Not Found", "", "")
        }
        (_, "tools/call") => json_reply(stream, &json!({"id": got.id(), "result": 2})),
        _ => reply(stream, "202 Accepted", "", ""),
    });
    let client = fixture.client();
    assert_eq!(call(&client, "first", LONG).unwrap_err().kind(), Kind::OutcomeUnknown);
    assert_eq!(fixture.got(|g| g.body["params"]["name"] == "first").len(), 1);
    assert_eq!(call(&client, "second", LONG).unwrap(), "2");
    assert_eq!(*sessions.lock().unwrap(), 2);
}

/// A server that counts who comes.
fn counting() -> Fixture {
    Fixture::bare(|_, stream| reply(stream, "500 Internal Server Error", "", ""))
}

#[test]
fn nothing_follows_a_redirect_to_another_origin() {
    for status in
        ["301 Moved", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent Redirect"]
    {
        let elsewhere = counting();
        let away = elsewhere.url.clone();
        let fixture = Fixture::bare(move |got, stream| match (got.method.as_str(), got.rpc()) {
            ("POST", "initialize") => initialized(got, stream, "s"),
            // The call, the stream of its own, an answer, the end of the session.
            _ => reply(stream, status, &format!("Location: {away}\r\n"), ""),
        });
        let client = fixture.client();
        let e = call(&client, "t", LONG).unwrap_err();
        assert!(e.message().contains("which is another origin"), "{status}: {e}");
        client.stop();
        assert!(
            fixture.got(|g| g.method == "DELETE").len() == 1 && fixture.got(|g| g.method == "GET").len() == 1
        );
        assert_eq!(elsewhere.got(|_| true).len(), 0, "{status}");
        // The older transport says where messages go.
        let away = elsewhere.url.clone();
        let older = Fixture::bare(move |got, stream| match got.method.as_str() {
            "GET" => {
                stream_head(stream);
                part(stream, &format!("event: endpoint\ndata: {away}\n\n"));
            }
            _ => reply(stream, "405 Method Not Allowed", "", ""),
        });
        let _ = older.connect_in("2025-11-25").err().unwrap();
        assert_eq!(older.got(|g| g.method == "GET").len(), 1);
        assert_eq!(elsewhere.got(|_| true).len(), 0, "{status}");
    }
}

/// Sends a little for as long as somebody takes it.
fn drip(stream: &mut TcpStream, bytes: &[u8]) {
    while stream.write_all(bytes).is_ok() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_slow_drip_does_not_stretch_the_time_limit() {
    let fixture =
        Fixture::new(|got: &Got, stream: &mut TcpStream| match got.body["params"]["name"].as_str() {
            Some("head") => {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nX-Slow: ");
                drip(stream, b"x");
            }
            Some("json") => {
                let _ = stream.write_all(
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900000\r\n\r\n",
                );
                drip(stream, b" ");
            }
            Some("comments") => {
                stream_head(stream);
                drip(stream, b"3\r\n:\n\n\r\n");
            }
            Some("line") => {
                stream_head(stream);
                part(stream, "data: ");
                drip(stream, b"1\r\nx\r\n");
            }
            Some("events") => {
                stream_head(stream);
                let event =
                    "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n";
                drip(stream, format!("{:x}\r\n{event}\r\n", event.len()).as_bytes());
            }
            _ => json_reply(stream, &json!({"id": got.id(), "result": 0})),
        });
    let client = fixture.client();
    for tool in ["head", "json", "comments", "line", "events"] {
        let e = call(&client, tool, SHORT).unwrap_err();
        assert_eq!(e.kind(), Kind::Timeout, "{tool}: {e}");
        assert_eq!(fixture.got(|g| g.body["params"]["name"] == tool).len(), 1);
        assert_eq!(call(&client, "other", LONG).unwrap(), "0");
    }
    // A pipe that drips a line without an end.
    let client = serve(
        "case $line in *slow*) (for i in 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0; do printf x; sleep 0.05; done; say '') ;; *) answer 0;; esac",
    );
    let cancel = Cancel::new();
    let params = serde_json::value::to_raw_value(&json!({"name": "slow"})).unwrap();
    let e = client.request("tools/call", Some(params), Options::new(&cancel).timeout(SHORT)).unwrap_err();
    assert_eq!(e.kind(), Kind::Timeout, "{e}");
    assert_eq!(call_program(&client, "other").unwrap(), "0");
}
