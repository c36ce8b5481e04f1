//! The listener over TCP.

use crate::api::http::{Limits, Reader, Source};
use crate::daemon::testing::{PATIENCE, Running, eventually, one_server};
use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::Ordering;
use std::time::Duration;

struct Tcp(TcpStream);
impl Read for Tcp {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read(buf)
    }
}
impl Source for Tcp {
    fn bound(&mut self, _: Option<Duration>) -> io::Result<()> {
        Ok(())
    }
}

fn running(more: &Value) -> Running {
    let mut config = one_server(more);
    config["transport"]["tcp"] = json!(true);
    Running::new(&config)
}

fn address(running: &Running) -> SocketAddr {
    running.daemon.current().endpoint.strip_prefix("http://").unwrap().parse().unwrap()
}

fn connect(running: &Running) -> Reader<Tcp> {
    let stream = TcpStream::connect(address(running)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    Reader::new(Tcp(stream))
}

fn ask(reader: &mut Reader<Tcp>, method: &str, path: &str, headers: &str, body: &str) -> (u16, Value) {
    let request =
        format!("{method} {path} HTTP/1.1\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len());
    reader.source_mut().0.write_all(request.as_bytes()).unwrap();
    let response = reader.response(&Limits::PATIENT).unwrap();
    (response.status, serde_json::from_slice(&response.body).unwrap_or_default())
}

fn headers(running: &Running) -> String {
    format!("Host: {}\r\nAuthorization: Bearer {}\r\n", address(running), running.daemon.current().token)
}

#[test]
fn only_the_token_opens_the_door() {
    let running = running(&json!({}));
    let good = headers(&running);
    let host = format!("Host: {}\r\n", address(&running));
    let mut reader = connect(&running);
    let (status, health) = ask(&mut reader, "GET", "/v1/health", &good, "");
    assert_eq!((status, &health["name"]), (200, &json!("mcpx")));
    let call = r#"{"server":"fake","tool":"echo","arguments":{"n":1}}"#;
    let (status, called) = ask(&mut reader, "POST", "/v1/call", &good, call);
    assert_eq!((status, &called["result"]["structuredContent"]["n"]), (200, &json!(1)));
    for (bad, wanted) in [
        (host.clone(), 401),
        (format!("{host}Authorization: Bearer wrong\r\n"), 401),
        (good.replace("Host: ", "Host: evil."), 403),
        (format!("{good}Origin: http://evil.example\r\n"), 403),
    ] {
        let (status, error) = ask(&mut connect(&running), "POST", "/v1/call", &bad, call);
        assert_eq!((status, &error["error"]["kind"]), (wanted, &json!("refused")), "{bad}");
    }
    assert_eq!(ask(&mut connect(&running), "GET", "/v1/channel?run=x", &good, "").0, 403);
    assert_eq!(ask(&mut connect(&running), "GET", "/v1/nothing", &good, "").0, 404);
}

#[test]
fn limits_hold_here_too() {
    let running = running(&json!({"transport": {"maxBody": "2KiB", "maxHeader": "2KiB"}}));
    let good = headers(&running);
    let body = format!("{{\"x\":\"{}\"}}", "y".repeat(3000));
    assert_eq!(ask(&mut connect(&running), "POST", "/v1/call", &good, &body).0, 413);
    let long = format!("{good}X: {}\r\n", "y".repeat(3000));
    assert_eq!(ask(&mut connect(&running), "GET", "/v1/health", &long, "").0, 431);
    assert_eq!(ask(&mut connect(&running), "GET", "/v1/health", &good, "").0, 200);
}

#[test]
fn a_caller_that_leaves_cancels_its_call() {
    let running = running(&json!({"daemon": {"tick": "20ms"}}));
    let mut reader = connect(&running);
    let body = r#"{"server":"fake","tool":"hold"}"#;
    let request = format!(
        "POST /v1/call HTTP/1.1\r\n{}Content-Length: {}\r\n\r\n{body}",
        headers(&running),
        body.len()
    );
    reader.source_mut().0.write_all(request.as_bytes()).unwrap();
    eventually("the call arrives", || running.world.held() == 1);
    drop(reader);
    eventually("the server is told", || running.world.cancelled.load(Ordering::SeqCst) == 1);
}

#[test]
fn accepting_that_ended_is_begun_again() {
    // The accepting thread ends by the time-out that accepted sockets are to inherit.
    let running = running(&json!({"daemon": {"tick": "20ms"}, "transport": {"idleTimeout": "100ms"}}));
    let good = headers(&running);
    let mut silent = connect(&running);
    for _ in 0..5 {
        std::thread::park_timeout(Duration::from_millis(250));
        assert_eq!(ask(&mut connect(&running), "GET", "/v1/health", &good, "").0, 200);
    }
    // And who said nothing for so long has been dropped.
    assert!(matches!(silent.source_mut().0.read(&mut [0; 1]), Ok(0) | Err(_)));
}

#[test]
fn a_run_without_a_connection_ends_when_it_is_closed_or_abandoned() {
    let running = running(&json!({"daemon": {"tick": "20ms"}}));
    let good = headers(&running);
    let (status, opened) = ask(&mut connect(&running), "POST", "/v1/runs", &good, "{}");
    assert_eq!(status, 200);
    let run = running.daemon.runs.get(opened["run"].as_str().unwrap()).unwrap();
    assert_eq!(opened["token"], run.token);
    assert_ne!(run.token, running.daemon.current().token);
    drop(run);
    assert_eq!(running.daemon.runs.count().0, 1);
    let path = format!("/v1/runs/{}", opened["run"].as_str().unwrap());
    assert_eq!(ask(&mut connect(&running), "DELETE", &path, &good, "").0, 200);
    assert_eq!(running.daemon.runs.count().0, 0);
    // Opened by a process that has since ended.
    let ended = crate::proc::spawn(crate::proc::Spawn {
        program: "/bin/cat".into(),
        stdin: crate::proc::Io::Piped,
        ..Default::default()
    })
    .unwrap();
    let body = format!("{{\"context\":{{\"pid\":{}}}}}", ended.pid());
    assert_eq!(ask(&mut connect(&running), "POST", "/v1/runs", &good, &body).0, 200);
    assert_eq!(running.daemon.runs.count().0, 1);
    drop(ended.take_stdin());
    ended.wait();
    eventually("the run is closed", || running.daemon.runs.count().0 == 0);
}

#[test]
fn a_server_is_not_configured_with_a_token_that_scripts_have() {
    let running = running(&json!({}));
    let mut reader = connect(&running);
    let body = r#"{"definition":{"command":"touch"}}"#;
    let (status, answer) = ask(&mut reader, "PUT", "/v1/servers/x", &headers(&running), body);
    assert_eq!((status, &answer["error"]["kind"]), (403, &json!("refused")), "{answer}");
    let (status, _) = ask(&mut reader, "DELETE", "/v1/servers/fake", &headers(&running), "");
    assert_eq!(status, 403);
    let (status, answer) = ask(&mut reader, "GET", "/v1/servers", &headers(&running), "");
    assert_eq!((status, answer["servers"].as_array().unwrap().len()), (200, 1));
}
