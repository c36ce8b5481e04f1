//! Big results pass whole: fifty megabytes of base64 and a million small items, by
//! each way out: `call`, `exec`, `/v1/call`, a pipe. (Fifty megabytes of text are
//! in `call.rs` and `exec.rs`.)

use crate::harness::{Runtime, World};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

const ITEMS: usize = 1_000_000;
const BASE64: usize = 50_000_000;
/// Far beyond what a loaded machine takes without optimisation.
const LIMIT: Duration = Duration::from_secs(240);

/// Asks the daemon of a world for a call, over its socket; the body of its answer.
fn ask(world: &World, body: &Value) -> Vec<u8> {
    let info = world.infos().remove(0);
    let mut stream = UnixStream::connect(info["socket"].as_str().unwrap()).unwrap();
    let body = body.to_string();
    let head = "POST /v1/call HTTP/1.1\r\nHost: mcpx\r\nContent-Type: application/json\r\nConnection: close";
    write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert!(line.contains(" 200 "), "{line}");
    while line != "\r\n" {
        line.clear();
        reader.read_line(&mut line).unwrap();
    }
    let mut answer = Vec::new();
    reader.read_to_end(&mut answer).unwrap();
    answer
}

#[test]
fn a_million_items_pass_whole_and_in_order() {
    let world = World::fake(&["--items", &ITEMS.to_string()]).with(Runtime::Bun);
    let output = world.mcpx(["call", "fake.echo", "text=x"]).limit(LIMIT).run();
    let text = output.stdout();
    let mut lines = text.lines();
    for n in 0..ITEMS {
        let line = lines.next().unwrap_or_default();
        assert!(line.strip_prefix("item ").is_some_and(|l| l.parse() == Ok(n)), "line {n} is {line:?}");
    }
    assert_eq!(lines.next(), None);

    let answer = ask(&world, &json!({"server": "fake", "tool": "echo", "arguments": {"text": "x"}}));
    let answer = String::from_utf8(answer).unwrap();
    assert_eq!(answer.matches("\"item ").count(), ITEMS);
    assert!(answer.contains("\"item 999999\""));

    let code = "const all = await fake.echo({text: 'x'}); return [JSON.stringify(all).split('item ').length - 1, JSON.stringify(all).includes('item 999999')]";
    let output = world.mcpx(["exec", code]).limit(LIMIT).run();
    assert_eq!(output.json(), json!([ITEMS, true]));
}

#[test]
fn fifty_megabytes_of_base64_pass_whole() {
    let world = World::fake(&["--image", &BASE64.to_string()]).with(Runtime::Bun);
    // Written to a file, decoded.
    let dir = world.dir().join("media");
    let output = world.mcpx(["call", "fake.echo", "text=x"]).env("MCPX_OUTPUT_MEDIA_DIR", &dir).run();
    let files: Vec<_> = std::fs::read_dir(&dir).unwrap().flatten().collect();
    assert_eq!(files.len(), 1, "{output}");
    let written = std::fs::read(files[0].path()).unwrap();
    assert_eq!(written.len(), BASE64 / 4 * 3);
    assert!(written.iter().all(|b| *b == b'x'));

    // As it came.
    let document = world.mcpx(["--json", "call", "--media", "inline", "fake.echo", "text=x"]).run().json();
    assert_eq!(document["content"][0]["data"].as_str().unwrap().len(), BASE64);
    let answer = ask(&world, &json!({"server": "fake", "tool": "echo", "arguments": {"text": "x"}}));
    assert!(answer.len() > BASE64);

    let code = "const r = await fake.echo({text: 'x'}); return JSON.stringify(r).length >= 50000000";
    world.mcpx(["exec", code]).stdout("true\n").check();
}
