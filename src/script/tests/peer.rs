//! A stand-in for the daemon: the channel on a unix socket and on connected
//! pairs, and `POST /v1/call` on TCP.

use crate::proc::thread;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// What the peer saw, in order.
pub type Seen = Arc<Mutex<Vec<Value>>>;

pub struct Peer {
    pub socket: PathBuf,
    pub endpoint: String,
    pub seen: Seen,
}

impl Peer {
    pub fn start(socket: &Path) -> Peer {
        let seen = Seen::default();
        let unix = UnixListener::bind(socket).unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", tcp.local_addr().unwrap());
        let shared = seen.clone();
        thread::spawn("peer-unix", move || {
            for stream in unix.incoming().flatten() {
                let seen = shared.clone();
                thread::spawn("peer", move || upgrade(stream, &seen)).unwrap();
            }
        })
        .unwrap();
        let shared = seen.clone();
        thread::spawn("peer-tcp", move || {
            for stream in tcp.incoming().flatten() {
                let seen = shared.clone();
                thread::spawn("peer", move || {
                    let mut reader = BufReader::new(stream.try_clone().unwrap());
                    while http(&mut reader, &mut &stream, &seen).is_some() {}
                })
                .unwrap();
            }
        })
        .unwrap();
        Peer { socket: socket.to_owned(), endpoint, seen }
    }

    /// A channel that is upgraded already, as a script inherits it.
    pub fn channel(&self) -> OwnedFd {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let seen = self.seen.clone();
        thread::spawn("peer", move || frames(ours, &seen)).unwrap();
        theirs.into()
    }

    pub fn take(&self) -> Vec<Value> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

/// Reads a request's head and body.
fn request(reader: &mut impl BufRead) -> Option<(String, HashMap<String, String>, Vec<u8>)> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
    let mut headers = HashMap::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok().filter(|n| *n > 0)?;
        let Some((name, value)) = header.split_once(':') else { break };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|l| l.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((line, headers, body))
}

fn upgrade(stream: UnixStream, seen: &Seen) {
    let mut reader = BufReader::with_capacity(1, stream.try_clone().unwrap());
    let Some((line, headers, _)) = request(&mut reader) else { return };
    assert_eq!(headers["upgrade"], "mcpx-channel");
    assert!(line.starts_with("GET /v1/channel?run=run-1 HTTP/1.1"), "{line}");
    seen.lock().unwrap().push(json!({"upgrade": line.trim()}));
    let answer = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: mcpx-channel\r\n\r\n";
    (&stream).write_all(answer.as_bytes()).unwrap();
    frames(stream, seen);
}

fn frames(mut stream: UnixStream, seen: &Seen) {
    let out = Arc::new(Mutex::new(stream.try_clone().unwrap()));
    let mut length = [0; 4];
    while stream.read_exact(&mut length).is_ok() {
        let mut body = vec![0; u32::from_be_bytes(length) as usize];
        stream.read_exact(&mut body).unwrap();
        let message: Value = serde_json::from_slice(&body).unwrap();
        seen.lock().unwrap().push(message.clone());
        let send_text = |text: String| {
            let mut out = out.lock().unwrap();
            let _ = out.write_all(&(text.len() as u32).to_be_bytes());
            let _ = out.write_all(text.as_bytes());
        };
        let send = |value: Value| send_text(value.to_string());
        let id = &message["id"];
        if message.get("cancel").is_some() {
            continue;
        }
        match message["params"]["tool"].as_str() {
            Some("never") => {}
            Some("leave") => return stream.shutdown(std::net::Shutdown::Both).unwrap(),
            Some("slow") => {
                for n in 1..=2 {
                    send(json!({"id": id, "progress": {"progress": n, "total": 2}}));
                }
                send(json!({"id": id, "result": text("slowly")}));
            }
            // Made as text: an unoptimised serializer takes seconds for it.
            Some("big") => {
                let size = message["params"]["arguments"]["size"].as_u64().unwrap() as usize;
                let text = "x".repeat(size);
                send_text(format!(
                    r#"{{"id":{id},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
                ));
            }
            _ => match answer(&message["params"]) {
                Ok(result) => send(json!({"id": id, "result": result})),
                Err(error) => send(json!({"id": id, "error": error})),
            },
        }
    }
}

fn http(reader: &mut impl BufRead, out: &mut impl Write, seen: &Seen) -> Option<()> {
    let (line, headers, body) = request(reader)?;
    let body: Value = serde_json::from_slice(&body).unwrap();
    seen.lock().unwrap().push(json!({"http": line.trim(), "headers": headers, "body": body}));
    let (status, answer) = if headers.get("authorization").map(String::as_str) != Some("Bearer secret-token")
    {
        (403, json!({"error": {"kind": "refused", "message": "no token"}}))
    } else {
        match answer(&body) {
            Ok(result) => (200, json!({"result": result})),
            Err(error) => (400, json!({"error": error})),
        }
    };
    let text = answer.to_string();
    write!(
        out,
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{text}",
        text.len()
    )
    .ok()
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// The tools of the peer.
fn answer(params: &Value) -> Result<Value, Value> {
    let arguments = &params["arguments"];
    Ok(match params["tool"].as_str().unwrap() {
        "echo" => text(arguments["text"].as_str().unwrap_or("nothing")),
        "add" => {
            json!({"content": [], "structuredContent": {"sum": arguments["a"].as_i64().unwrap() + arguments["b"].as_i64().unwrap()}})
        }
        "list" => {
            json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "{\"b\":1}"}, {"type": "image", "data": "AA==", "mimeType": "image/png"}]})
        }
        "empty" => json!({"content": []}),
        "fail" => json!({"isError": true, "content": [{"type": "text", "text": "it failed"}]}),
        "refused" => {
            return Err(
                json!({"kind": "refused", "message": "not allowed", "hint": "ask", "server": "demo", "tool": "refused"}),
            );
        }
        other => {
            return Err(
                json!({"kind": "not-found", "message": format!("no tool {other} on {}", params["server"])}),
            );
        }
    })
}
