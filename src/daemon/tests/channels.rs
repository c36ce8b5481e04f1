//! Runs and their channels.

use crate::api::http::{Limits, Reader};
use crate::api::wire::OpenRun;
use crate::api::{Client, frame};
use crate::daemon::testing::{PATIENCE, Program, Running, call, eventually, one_server};
use crate::error::Kind;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::Write;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

fn run(client: &Client) -> String {
    client.open_run(&OpenRun::default()).unwrap().run
}

#[test]
fn calls_of_one_program_are_answered_by_id() {
    let running = Running::new(&one_server(&json!({})));
    let client = running.client();
    let opened = client.open_run(&OpenRun::default()).unwrap();
    assert!(opened.ephemeral && !opened.session.is_empty());
    assert_eq!(opened.namespaces.len(), 1);
    assert_eq!(opened.namespaces[0].ident, "fake");
    let mut program = Program::new(&client, &opened.run);
    for id in 1..=100 {
        program.call(id, "echo", &json!({"id": id}));
    }
    let mut seen = HashMap::new();
    for _ in 1..=100 {
        let answer = program.next().unwrap();
        seen.insert(
            answer["id"].as_u64().unwrap(),
            answer["result"]["structuredContent"]["id"].as_u64().unwrap(),
        );
    }
    assert_eq!(seen.len(), 100);
    assert!(seen.iter().all(|(id, said)| id == said));
    for server in [json!(["fake"]), json!("fake")] {
        program.send(&json!({"id": 7, "op": "schemas", "params": {"server": server}}));
        assert_eq!(program.next().unwrap()["result"]["schemas"][0]["tools"][0]["name"], "echo");
    }
    program.send(&json!({"id": 8, "op": "health"}));
    assert_eq!(program.next().unwrap()["result"]["name"], "mcpx");
}

#[test]
fn sixty_four_calls_wait_at_once_and_one_is_cancelled() {
    let running = Running::new(&one_server(&json!({})));
    let client = running.client();
    let mut program = Program::new(&client, &run(&client));
    for id in 1..=64 {
        program.call(id, "hold", &json!({}));
    }
    eventually("all calls are with the server", || running.world.held() == 64);
    program.send(&json!({"cancel": 17}));
    let cancelled = program.next().unwrap();
    assert_eq!((&cancelled["id"], &cancelled["error"]["kind"]), (&json!(17), &json!("cancelled")));
    // Somebody reads while all of them wait.
    program.call(100, "echo", &json!({}));
    assert_eq!(program.next().unwrap()["id"], 100);
    running.world.open_gate();
    let mut left: Vec<u64> = (0..63).map(|_| program.next().unwrap()["id"].as_u64().unwrap()).collect();
    left.sort_unstable();
    assert_eq!(left, (1..=64).filter(|id| *id != 17).collect::<Vec<u64>>());
}

#[test]
fn more_calls_than_threads_wait_for_their_turn() {
    let running = Running::new(&one_server(&json!({})));
    let client = running.client();
    let mut program = Program::new(&client, &run(&client));
    for id in 0..600 {
        program.call(id, "hold", &json!({}));
    }
    eventually("as many as there are threads", || running.world.held() >= 200);
    running.world.open_gate();
    let mut ids: Vec<u64> = (0..600).map(|_| program.next().unwrap()["id"].as_u64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..600).collect::<Vec<u64>>());
}

#[test]
fn a_program_that_ends_cancels_its_calls() {
    let running = Running::new(&one_server(&json!({})));
    let client = running.client();
    let mut program = Program::new(&client, &run(&client));
    for id in 0..10 {
        program.call(id, "hold", &json!({}));
    }
    eventually("the calls arrive", || running.world.held() == 10);
    drop(program);
    eventually("the server is told", || running.world.cancelled.load(Ordering::SeqCst) == 10);
    eventually("the places are free", || running.daemon.places.taken() == 1);
}

#[test]
fn a_run_ends_with_its_connection_or_when_it_is_closed() {
    let mut config = one_server(&json!({}));
    config["mcpServers"]["fake"]["mcpx"] = json!({"scope": "session"});
    let running = Running::new(&config);
    for close in [false, true] {
        let client = running.client();
        let id = run(&client);
        let mut program = Program::new(&client, &id);
        for n in 1..=2 {
            program.call(n, "count", &json!({}));
            // One instance for the whole run.
            assert_eq!(program.next().unwrap()["result"]["structuredContent"], n);
        }
        program.call(3, "hold", &json!({}));
        eventually("the call arrives", || running.world.held() == 1);
        if close {
            client.json("DELETE", &format!("/v1/runs/{id}"), None).unwrap();
        } else {
            drop(client);
        }
        while program.next().is_some() {}
        eventually("what the session owned is stopped", || running.world.live() == 0);
        eventually("nothing waits", || running.world.held() == 0);
        assert_eq!(running.client().channel(&id).unwrap_err().kind(), Kind::NotFound);
    }
}

#[test]
fn frames_that_make_no_sense_are_answered_and_the_channel_goes_on() {
    let running = Running::new(&one_server(&json!({})));
    let client = running.client();
    let mut program = Program::new(&client, &run(&client));
    for (bytes, id, kind) in [
        (&b"not json"[..], Value::Null, "usage"),
        (b"{}", Value::Null, "usage"),
        (b"[1]", Value::Null, "usage"),
        (b"", Value::Null, "usage"),
        (b"{\"id\":\"x\",\"op\":\"health\"}", Value::Null, "usage"),
        (b"{\"id\":1}", json!(1), "usage"),
        (b"{\"id\":2,\"op\":\"helth\"}", json!(2), "not-found"),
        (b"{\"id\":3,\"op\":\"shutdown\"}", json!(3), "refused"),
        (b"{\"id\":4,\"op\":\"call\",\"params\":{\"server\":\"fake\"}}", json!(4), "usage"),
        (b"{\"id\":5,\"op\":\"call\",\"params\":7}", json!(5), "usage"),
        (
            b"{\"id\":6,\"op\":\"call\",\"params\":{\"server\":\"none\",\"tool\":\"t\"}}",
            json!(6),
            "not-found",
        ),
    ] {
        frame::write(&mut program.0, &[bytes]).unwrap();
        let answer = program.next().unwrap();
        let said = String::from_utf8_lossy(bytes);
        assert_eq!((&answer["id"], answer["error"]["kind"].as_str().unwrap()), (&id, kind), "{said}");
    }
    program.send(&json!({"cancel": 99}));
    program.call(7, "hold", &json!({}));
    eventually("the call arrives", || running.world.held() == 1);
    program.call(7, "echo", &json!({}));
    assert_eq!(program.next().unwrap()["error"]["kind"], "usage");
    running.world.open_gate();
    assert_eq!(program.next().unwrap()["id"], 7);
}

#[test]
fn a_frame_that_is_too_large_ends_the_channel_with_a_word() {
    let running = Running::new(&one_server(&json!({"transport": {"maxBody": "1KiB"}})));
    let client = running.client();
    let mut program = Program::new(&client, &run(&client));
    program.0.write_all(&2000u32.to_be_bytes()).unwrap();
    assert_eq!(program.next().unwrap()["error"]["kind"], "too-large");
    assert!(program.next().is_none());
}

#[test]
fn progress_is_reported_before_the_result_when_asked_for() {
    let running = Running::new(&one_server(&json!({})));
    let client = running.client();
    let mut program = Program::new(&client, &run(&client));
    let params = json!({"server": "fake", "tool": "report", "arguments": {"count": 5, "message": "m"}});
    program.send(&json!({"id": 1, "op": "call", "params": params, "progress": true}));
    for n in 0..5 {
        assert_eq!(program.next().unwrap(), json!({"id": 1, "progress": {"progress": n, "message": "m"}}));
    }
    assert_eq!(program.next().unwrap()["result"]["structuredContent"], "reported");
    program.send(&json!({"id": 2, "op": "call", "params": params}));
    assert_eq!(program.next().unwrap()["id"], 2);
}

#[test]
fn a_program_that_does_not_read_costs_only_itself() {
    let running = Running::new(&one_server(&json!({"transport": {"writeTimeout": "300ms"}})));
    let client = running.client();
    let mut deaf = Program::new(&client, &run(&client));
    for id in 0..8 {
        deaf.call(id, "big", &json!({"bytes": 1 << 20}));
    }
    let params = json!({"server": "fake", "tool": "report", "arguments": {"count": 2000, "message": "x".repeat(1000)}});
    deaf.send(&json!({"id": 100, "op": "call", "params": params, "progress": true}));
    let other = running.client();
    let mut reads = Program::new(&other, &run(&other));
    let begun = Instant::now();
    for id in 0..100 {
        reads.call(id, "echo", &json!({}));
        assert_eq!(reads.next().unwrap()["id"], id);
    }
    assert!(begun.elapsed() < Duration::from_secs(10));
    eventually("the deaf one is given up", || running.daemon.places.taken() == 3);
    assert!(begun.elapsed() < PATIENCE);
}

#[test]
fn a_large_result_passes_whole() {
    let running = Running::new(&one_server(&json!({})));
    let client = running.client();
    let mut program = Program::new(&client, &run(&client));
    program.call(1, "big", &json!({"bytes": 50 << 20}));
    program.call(2, "echo", &json!({}));
    let mut sizes = HashMap::new();
    for _ in 0..2 {
        let answer = program.next().unwrap();
        sizes.insert(answer["id"].as_u64().unwrap(), answer["result"]["x"].as_str().map(str::len));
    }
    assert_eq!(sizes[&1], Some(50 << 20));
}

#[test]
fn a_channel_needs_to_be_asked_for() {
    let running = Running::new(&one_server(&json!({})));
    let client = running.client();
    let id = run(&client);
    let mut stream = running.socket();
    write!(stream, "GET /v1/channel?run={id} HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
    let mut reader = Reader::new(stream);
    let response = reader.response(&Limits::PATIENT).unwrap();
    assert_eq!((response.status, response.headers.get("upgrade")), (426, Some("mcpx-channel")));
    // Frames sent along with the request are not lost.
    let request = format!(
        "GET /v1/channel?run={id} HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: mcpx-channel\r\n\r\n"
    );
    let mut wire = request.into_bytes();
    frame::write(&mut wire, &[br#"{"id":1,"op":"health"}"#]).unwrap();
    reader.source_mut().write_all(&wire).unwrap();
    assert_eq!(reader.response(&Limits::PATIENT).unwrap().status, 101);
    let (stream, ahead) = reader.into_parts();
    let text = frame::read(&mut std::io::Read::chain(&ahead[..], stream), 1 << 20).unwrap().unwrap();
    assert!(String::from_utf8(text).unwrap().starts_with("{\"id\":1,\"result\":{\"ok\":true"));
}

#[test]
fn a_bug_ends_neither_the_connection_nor_the_channel() {
    let running = Running::new(&one_server(&json!({})));
    let client = running.client();
    let mut program = Program::new(&client, &run(&client));
    program.call(1, "break", &json!({}));
    let answer = program.next().unwrap();
    assert_eq!((&answer["id"], &answer["error"]["kind"]), (&json!(1), &json!("internal")));
    assert_eq!(client.call(&call("break", &json!({}))).unwrap_err().kind(), Kind::Internal);
    program.call(2, "echo", &json!({}));
    assert_eq!(program.next().unwrap()["id"], 2);
}
