//! Requests on the unix socket: answers, limits, and clients that misbehave.

use crate::api::docs;
use crate::api::http::{Limits, Reader};
use crate::api::ops::{self, Returns};
use crate::api::wire::{CallContext, OpenRun};
use crate::daemon::testing::{PATIENCE, Running, call, eventually, one_server};
use crate::error::Kind;
use crate::proc;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

fn status_of(stream: UnixStream) -> u16 {
    Reader::new(stream).response(&Limits::PATIENT).unwrap().status
}

#[test]
fn every_answer_has_the_fields_that_the_table_promises() {
    let running = Running::new(&one_server(&json!({})));
    let client = running.client();
    for op in ops::all() {
        let (Returns::Record(record) | Returns::Events(record)) = &op.returns else { continue };
        let (path, body) = match op.name {
            "call" => (op.path.to_owned(), Some(json!({"server": "fake", "tool": "echo"}))),
            "closeRun" => {
                let run = client.open_run(&OpenRun::default()).unwrap().run;
                (op.path.replace("{run}", &run), None)
            }
            "setting" | "unsetSetting" => (op.path.replace("{key}", "pool.max"), None),
            "setSetting" => (op.path.replace("{key}", "pool.max"), Some(json!({"value": 3}))),
            "putServer" => {
                (op.path.replace("{name}", "new"), Some(json!({"definition": {"command": "fake"}})))
            }
            "deleteServer" => (op.path.replace("{name}", "new"), None),
            "storeArtifact" => (op.path.to_owned(), Some(json!({"name": "kept", "text": "kept"}))),
            "artifact" | "removeArtifact" => (op.path.replace("{id}", "kept"), None),
            "postLog" => (op.path.to_owned(), Some(json!({"message": "said"}))),
            "stats" => (format!("{}?about=calls", op.path), None),
            "logChain" => (format!("{}?id=x", op.path), None),
            "session" | "keepSession" | "endSession" => {
                let body = json!({"name": op.name});
                client.json("POST", "/v1/sessions", Some(&body)).unwrap();
                let keep = (op.name == "keepSession").then(|| json!({"ttlMs": 1000}));
                (op.path.replace("{session}", op.name), keep)
            }
            "resolve" => (format!("{}?dir=/tmp", op.path), None),
            "search" => (format!("{}?query=echo", op.path), None),
            "shutdown" => continue,
            // It needs a runtime.
            "exec" => continue,
            // These need a server that asks, or has more than tools; the integration tests have one.
            "question" | "answerQuestion" | "task" | "taskResult" | "cancelTask" => continue,
            "resources" | "resourceTemplates" | "prompts" | "readResource" | "getPrompt" | "complete" => {
                continue;
            }
            "subscribeResource" | "unsubscribeResource" => continue,
            _ => (op.path.to_owned(), None),
        };
        let answer = client.json(op.method.word(), &path, body.as_ref()).unwrap();
        let fields = answer.as_object().unwrap();
        for field in record.fields.iter().filter(|f| f.required) {
            assert!(fields.contains_key(field.name), "{} lacks {}", op.name, field.name);
        }
        for name in fields.keys() {
            assert!(
                record.fields.iter().any(|f| f.name == name),
                "{} has {name}, which no table knows",
                op.name
            );
        }
    }
    let document = client.json("GET", "/v1/openapi.json", None).unwrap();
    assert_eq!(document, docs::openapi(env!("CARGO_PKG_VERSION")));
}

#[test]
fn what_cannot_be_answered_says_why() {
    let running = Running::new(&one_server(&json!({})));
    let client = running.client();
    for (method, path, kind) in [
        ("GET", "/v1/nothing", Kind::NotFound),
        ("GET", "/v1/call", Kind::Usage),
        ("GET", "/v1/namespaces?fresh=perhaps", Kind::Usage),
        ("GET", "/v1/resolve", Kind::Usage),
        ("GET", "/v1/resolve?dir=relative", Kind::Usage),
        ("GET", "/v1/resolve?dir=/nonexistent", Kind::NotFound),
        ("DELETE", "/v1/runs/none", Kind::NotFound),
        ("GET", "/v1/channel?run=none", Kind::NotFound),
        ("POST", "/v1/call", Kind::Usage),
    ] {
        assert_eq!(client.request(method, path, None).unwrap_err().kind(), kind, "{method} {path}");
    }
    assert_eq!(client.call(&call("fail", &json!({}))).unwrap_err().kind(), Kind::Tool);
    assert_eq!(client.call(&call("ecko", &json!({}))).unwrap_err().kind(), Kind::NotFound);
    let error = client.json("POST", "/v1/restart", Some(&json!({"server": "fale"}))).unwrap_err();
    assert!(error.hint_text().is_some_and(|h| h.contains("fake")), "{error}");
    // And the connection is still good.
    assert_eq!(client.json("GET", "/v1/health", None).unwrap()["ok"], true);
}

#[test]
fn a_call_without_a_session_has_one_that_ends_with_it() {
    let mut config = one_server(&json!({}));
    config["mcpServers"]["fake"]["mcpx"] = json!({"scope": "session"});
    let running = Running::new(&config);
    let client = running.client();
    client.call(&call("count", &json!({}))).unwrap();
    client.call(&call("count", &json!({}))).unwrap();
    assert_eq!(running.world.starts.load(Ordering::SeqCst), 2);
    eventually("the instances end with their calls", || running.world.live() == 0);
    let mut named = call("count", &json!({}));
    named.context = CallContext { session: Some("s".into()), ..Default::default() };
    for n in 1..=3 {
        let result: Value = serde_json::from_str(client.call(&named).unwrap().get()).unwrap();
        assert_eq!(result["structuredContent"], n);
    }
    assert_eq!(running.world.live(), 1);
    let restarted = client.json("POST", "/v1/restart", Some(&json!({"session": "s"}))).unwrap();
    assert_eq!(restarted["restarted"], 1);
}

#[test]
fn a_client_that_leaves_cancels_its_call() {
    let running = Running::new(&one_server(&json!({})));
    let client = running.client();
    let handle = client.shutdown_handle().unwrap();
    let waits = proc::thread::spawn("caller", move || {
        assert_eq!(client.call(&call("hold", &json!({}))).unwrap_err().kind(), Kind::Cancelled);
    })
    .unwrap();
    eventually("the call arrives", || running.world.held() == 1);
    handle.interrupt();
    waits.join().unwrap();
    eventually("the server is told", || running.world.cancelled.load(Ordering::SeqCst) == 1);
    eventually("the place is free", || running.daemon.activity.in_flight() == 0);
}

#[test]
fn a_client_that_only_finished_sending_gets_its_answer() {
    let running = Running::new(&one_server(&json!({})));
    let mut stream = running.socket();
    let body = r#"{"server":"fake","tool":"hold"}"#;
    write!(stream, "POST /v1/call HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n{body}", body.len())
        .unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    eventually("the call arrives", || running.world.held() == 1);
    running.world.open_gate();
    assert_eq!(status_of(stream), 200);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let running = Running::new(&one_server(&json!({})));
    let mut stream = running.socket();
    let body = r#"{"server":"fake","tool":"echo","arguments":{"n":7}}"#;
    let requests = format!(
        "GET /v1/health HTTP/1.1\r\nHost: h\r\n\r\n\
         POST /v1/call HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n{body}\
         GET /v1/status HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(requests.as_bytes()).unwrap();
    let mut reader = Reader::new(stream);
    let mut next = || {
        let response = reader.response(&Limits::PATIENT).unwrap();
        serde_json::from_slice::<Value>(&response.body).unwrap()
    };
    assert_eq!(next()["name"], "mcpx");
    assert_eq!(next()["result"]["structuredContent"]["n"], 7);
    assert_eq!(next()["daemon"]["connections"], 1);
    assert!(reader.response(&Limits::PATIENT).is_err());
}

#[test]
fn hostile_bytes_are_refused_and_harm_nobody() {
    let running = Running::new(&one_server(&json!({"transport": {"headerTimeout": "100ms"}})));
    for (bytes, wanted) in [
        (&b"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n"[..], 400),
        (b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        (b"GET /v1/health HTTP/1.1\r\nHost", 408),
        (b"POST /v1/call HTTP/1.1\r\nHost: h\r\nContent-Length: 9999999999999\r\n\r\n", 413),
        (b"POST /v1/call HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n{", 408),
    ] {
        for split in [1, bytes.len() / 2, bytes.len() - 1] {
            let mut stream = running.socket();
            stream.write_all(&bytes[..split]).unwrap();
            // The first part may have been enough to be refused for.
            let _ = stream.write_all(&bytes[split..]);
            let status = status_of(stream);
            assert_eq!(status, wanted, "{:?}", String::from_utf8_lossy(bytes));
        }
    }
    assert_eq!(running.client().json("GET", "/v1/health", None).unwrap()["ok"], true);
}

#[test]
fn slow_and_silent_clients_are_dropped_and_hold_up_nobody() {
    let limits =
        json!({"transport": {"headerTimeout": "200ms", "idleTimeout": "200ms", "maxConnections": 100}});
    let running = Running::new(&one_server(&limits));
    let mut slow: Vec<UnixStream> = (0..40).map(|_| running.socket()).collect();
    for (n, stream) in slow.iter_mut().enumerate() {
        let sent: &[u8] =
            [&b""[..], b"GET /v1/hea", b"POST /v1/call HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n{"]
                [n % 3];
        stream.write_all(sent).unwrap();
    }
    let begun = Instant::now();
    assert_eq!(running.client().json("GET", "/v1/health", None).unwrap()["ok"], true);
    assert!(begun.elapsed() < Duration::from_secs(5));
    for mut stream in slow {
        // Refused or closed; in any case it ends.
        let _ = stream.read_to_end(&mut Vec::new());
    }
    eventually("their places are free", || running.daemon.places.taken() == 0);
}

#[test]
fn one_connection_too_many_is_told_to_come_back() {
    let running = Running::new(&one_server(&json!({"transport": {"maxConnections": 2}})));
    let (first, second) = (running.client(), running.client());
    // What does nothing would make room; a connection that holds a run does not.
    for client in [&first, &second] {
        client.open_run(&OpenRun::default()).unwrap();
    }
    let response = Reader::new(running.socket()).response(&Limits::PATIENT).unwrap();
    assert_eq!((response.status, response.headers.get("retry-after")), (503, Some("1")));
    let refused = running.client().json("GET", "/v1/health", None).unwrap_err();
    assert_eq!(refused.kind(), Kind::Busy);
    drop(second);
    eventually("a place is free", || running.daemon.places.taken() == 1);
    running.client().json("GET", "/v1/health", None).unwrap();
    first.json("GET", "/v1/health", None).unwrap();
}

#[test]
fn many_clients_at_once_are_all_answered() {
    let running = Running::new(&one_server(&json!({})));
    let threads: Vec<_> = (0..40)
        .map(|n| {
            let client = running.client();
            proc::thread::spawn("caller", move || {
                for m in 0..20 {
                    let result = client.call(&call("echo", &json!({"n": n, "m": m}))).unwrap();
                    let result: Value = serde_json::from_str(result.get()).unwrap();
                    assert_eq!(result["structuredContent"], json!({"n": n, "m": m}));
                }
            })
            .unwrap()
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
    eventually("their places are free", || running.daemon.places.taken() == 0);
}

#[test]
fn a_large_result_and_large_arguments_pass_whole() {
    let running = Running::new(&one_server(&json!({})));
    let client = running.client();
    let size = 50 << 20;
    let result = client.call(&call("big", &json!({"bytes": size}))).unwrap();
    assert!(result.get().len() > size && result.get().ends_with("xx\"}"));
    drop(result);
    let text = "y".repeat(20 << 20);
    let result = client.call(&call("echo", &json!({"text": text}))).unwrap();
    assert!(result.get().len() > text.len());
}

#[test]
fn stopping_answers_who_waits_and_leaves_nothing() {
    let mut running = Running::new(&one_server(&json!({})));
    let client = running.client();
    let waits = proc::thread::spawn("caller", move || {
        let error = client.call(&call("hold", &json!({}))).unwrap_err();
        assert!(!error.message().contains("broke"), "{error}");
    })
    .unwrap();
    eventually("the call arrives", || running.world.held() == 1);
    let other = running.client();
    assert_eq!(other.json("POST", "/v1/shutdown", None).unwrap()["ok"], true);
    running.wait();
    waits.join().unwrap();
    assert!(running.home.find().unwrap().is_none());
}

#[test]
fn an_idle_daemon_that_a_command_started_leaves() {
    let home = crate::daemon::testing::Home::new(&one_server(
        &json!({"autostart": {"idleExit": "300ms"}, "daemon": {"tick": "20ms"}}),
    ));
    let mut running = Running::at(home, true);
    // A run keeps it, whether it calls or not.
    let client = running.client();
    client.open_run(&OpenRun::default()).unwrap();
    std::thread::park_timeout(Duration::from_millis(600));
    assert_eq!(client.json("GET", "/v1/health", None).unwrap()["sessions"], 1);
    drop(client);
    let begun = Instant::now();
    running.wait();
    assert!(begun.elapsed() < PATIENCE);
}

#[test]
fn resolving_many_directories_at_once_mixes_none_up() {
    let running = Running::new(&one_server(&json!({})));
    let holding = running.client();
    let handle = holding.shutdown_handle().unwrap();
    let waits = proc::thread::spawn("caller", move || {
        assert!(holding.call(&call("hold", &json!({}))).is_err());
    })
    .unwrap();
    let threads: Vec<_> = (0..20)
        .map(|n| {
            let dir = running.home.scratch.path(&format!("p{n}"));
            std::fs::create_dir_all(dir.join("sub")).unwrap();
            std::fs::write(dir.join(".mcpx.json"), format!("{{\"pool\":{{\"max\":{}}}}}", n + 1)).unwrap();
            let client = running.client();
            proc::thread::spawn("resolver", move || {
                for sub in ["", "/sub"].into_iter().cycle().take(10) {
                    let path = format!("/v1/resolve?dir={}{sub}", dir.display());
                    let answer = client.json("GET", &path, None).unwrap();
                    assert_eq!(
                        answer["configPath"].as_str().unwrap(),
                        dir.join(".mcpx.json").to_str().unwrap()
                    );
                    assert_eq!(answer["running"], false);
                }
            })
            .unwrap()
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
    let here = format!("/v1/resolve?dir={}", running.home.project().display());
    let answer = running.client().json("GET", &here, None).unwrap();
    assert_eq!(
        (&answer["running"], &answer["configHash"]),
        (&json!(true), &json!(running.home.config().key))
    );
    eventually("the call arrived", || running.world.held() == 1);
    handle.interrupt();
    waits.join().unwrap();
}
