//! What scripts and tools produce and mcpx keeps: from every runtime, under every
//! profile, through every interface.

use crate::harness::{Runtime, World, tools, wait_until};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

/// The SHA-256 of `hello`.
const HELLO: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

fn list(world: &World, flags: &[&str]) -> Vec<Value> {
    let words = [&["--json", "artifacts", "list"], flags].concat();
    world.mcpx(words).run().json()["artifacts"].as_array().unwrap().clone()
}

/// Sends a request with a body of any kind; status, head and body of the answer, chunks put together.
fn http(world: &World, method: &str, target: &str, body: &[u8]) -> (u16, String, Vec<u8>) {
    let socket = world.infos()[0]["socket"].as_str().unwrap().to_owned();
    let mut stream = UnixStream::connect(socket).unwrap();
    let length = body.len();
    write!(
        stream,
        "{method} {target} HTTP/1.1\r\nHost: mcpx\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
    )
    .unwrap();
    // A daemon that refuses stops reading.
    let _ = stream.write_all(body);
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(answer[..end].to_vec()).unwrap();
    let mut rest = &answer[end + 4..];
    let mut whole = Vec::new();
    if head.contains("Transfer-Encoding: chunked") {
        loop {
            let at = rest.windows(2).position(|w| w == b"\r\n").unwrap();
            let size = usize::from_str_radix(std::str::from_utf8(&rest[..at]).unwrap(), 16).unwrap();
            if size == 0 {
                break;
            }
            whole.extend_from_slice(&rest[at + 2..at + 2 + size]);
            rest = &rest[at + 2 + size + 2..];
        }
    } else {
        whole.extend_from_slice(rest);
    }
    (head.split(' ').nth(1).unwrap().parse().unwrap(), head, whole)
}

#[test]
fn every_runtime_gives_text_bytes_and_paths() {
    for runtime in [Runtime::Deno, Runtime::Bun, Runtime::Node22, Runtime::Node26] {
        let world = World::demo().with(runtime).file("in/data.csv", "a,b\n");
        let code = "const t = await artifact({name: 'a.txt', text: 'hello'}); \
                    const b = await artifact({name: 'b.bin', bytes: new Uint8Array([1, 2, 255]), mime: 'odd/thing'}); \
                    const p = await artifact({path: 'in/data.csv'}); \
                    const s = await artifact({name: 'blob.png', bytes: new Blob(['x'])}); \
                    const e = await artifact({name: 'empty', bytes: new ArrayBuffer(0)}); \
                    return [t, b, p, s, e]";
        let document = world.mcpx(["--json", "exec", code]).run().json();
        let result = document["result"].as_array().unwrap_or_else(|| panic!("{document}"));
        let name = runtime.name();
        let of = |at: usize, key: &str| result[at][key].clone();
        assert_eq!(
            (of(0, "sha256"), of(0, "size"), of(0, "mime")),
            (json!(HELLO), json!(5), json!("text/plain")),
            "{name}"
        );
        assert_eq!((of(1, "size"), of(1, "mime")), (json!(3), json!("odd/thing")), "{name}");
        assert_eq!((of(2, "name"), of(2, "mime")), (json!("data.csv"), json!("text/csv")), "{name}");
        assert_eq!((of(3, "mime"), of(4, "size")), (json!("image/png"), json!(0)), "{name}");
        for (at, content) in [(1, &[1, 2, 255][..]), (2, b"a,b\n"), (3, b"x"), (4, b"")] {
            let path = result[at]["path"].as_str().unwrap();
            assert_eq!(std::fs::read(path).unwrap(), content, "{name} {path}");
            assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        // The document tells of them, and so do the list and the log.
        assert_eq!(document["artifacts"], document["result"], "{name}");
        let run = of(0, "run");
        assert_eq!(list(&world, &["--run", run.as_str().unwrap()]).len(), 5, "{name}");
        assert!(list(&world, &["--run", "other"]).is_empty());
        let wrong = world.mcpx(["exec", "await artifact({name: 'x'})"]).status(2);
        wrong.stderr_has("expected one of path, bytes and text").check();
    }
}

#[test]
fn a_sandboxed_script_gives_without_a_permission_and_reads_only_with_one() {
    // The strictest that each runtime enforces.
    for (runtime, profile, reads) in [
        (Runtime::Deno, "strict", false),
        (Runtime::Deno, "read", true),
        (Runtime::Node22, "readnet", true),
        (Runtime::Node26, "readnet", true),
    ] {
        let world = World::demo().with(runtime).file("f.txt", "hello").file("secret", "s");
        let name = format!("{} {profile}", runtime.name());
        let big = "const big = new Uint8Array(700000).fill(7); \
                   const a = await artifact({name: 'big', bytes: big}); \
                   const t = await artifact({name: 't', text: 'hello'}); return [a.size, t.sha256]";
        let document = world.mcpx(["--json", "exec", "--permissions", profile, big]).run().json();
        assert_eq!(document["result"], json!([700_000, HELLO]), "{name}: {document}");
        let path = ["--json", "exec", "--permissions", profile, "(await artifact({path: 'f.txt'})).sha256"];
        let document = world.mcpx(path).status(if reads { 0 } else { 77 }).any_stderr().run().json();
        if reads {
            assert_eq!(document["result"], HELLO, "{name}");
        } else {
            assert_eq!(document["error"]["kind"], "refused", "{name}");
        }
    }
    // The daemon is no way round the sandbox: it takes no path from there, whatever the script says of itself.
    let world = World::demo().with(Runtime::Deno).file("secret", "s");
    let secret = world.dir().join("secret");
    let code = format!(
        "Deno.env.set('MCPX_ARTIFACTS_LOCAL', '1'); await artifact({{path: {:?}}})",
        secret.display().to_string()
    );
    let raw = world.mcpx(["--json", "exec", "--permissions", "strict", &code]);
    let document = raw.status(77).any_stderr().run().json();
    assert_eq!(document["error"]["kind"], "refused", "{document}");
    assert!(list(&world, &[]).iter().all(|a| a["name"] != "secret"));
}

#[test]
fn python_gives_as_well() {
    let world = World::demo();
    world.link("python3", &tools::python());
    world.write("data.json", "{}");
    world.write(
        "give.py",
        "from mcpx import artifact\nimport io, json\n\
         a = artifact(name='a.txt', text='hello')\nb = artifact(path='data.json')\n\
         c = artifact(name='big', bytes=io.BytesIO(b'x' * 600000))\nd = artifact(name='e', bytes=b'')\n\
         print(json.dumps([a, b, c, d]))\n\
         try:\n    artifact(name='x')\nexcept Exception as e:\n    print(e.kind)\n",
    );
    let document = world.mcpx(["--json", "run", "give.py"]).run().json();
    let stdout = document["stdout"].as_str().unwrap();
    let (first, second) = stdout.split_once('\n').unwrap();
    let given: Value = serde_json::from_str(first).unwrap();
    assert_eq!((&given[0]["sha256"], &given[1]["mime"]), (&json!(HELLO), &json!("application/json")));
    assert_eq!((&given[2]["size"], &given[3]["size"]), (&json!(600_000), &json!(0)));
    assert_eq!(second, "usage\n");
    assert_eq!(document["artifacts"], given);
}

#[test]
fn a_remote_script_sends_bytes() {
    let world = World::demo().with(Runtime::Bun).file("f.txt", "hello");
    let _ = world.mcpx(["refresh"]).any_stderr().run();
    let info = &world.infos()[0];
    let (endpoint, token) = (info["endpoint"].as_str().unwrap(), info["token"].as_str().unwrap());
    let code = "[process.env.MCPX_ARTIFACTS_LOCAL, (await artifact({path: 'f.txt'})).sha256]";
    let remote = world
        .mcpx(["--json", "exec", "--daemon-endpoint", endpoint, code])
        .env("MCPX_TRANSPORT_BEARER_TOKEN", token);
    let document = remote.any_stderr().run().json();
    assert_eq!(document["result"], json!(["0", HELLO]), "{document}");
}

#[test]
fn what_is_kept_is_shown_got_and_removed_with_a_daemon_and_without() {
    let world = World::demo().with(Runtime::Bun);
    let code = "await artifact({name: '../../up/a.txt', text: 'hello'}); \
                await artifact({name: 'b.bin', bytes: new Uint8Array([0, 255])})";
    let _ = world.mcpx(["exec", "--session", "s1", code]).any_stderr().run();
    for with_daemon in [true, false] {
        if !with_daemon {
            let _ = world.mcpx(["stop"]).any_stderr().run();
        }
        world.mcpx(["artifacts"]).run().says(&["ARTIFACT", "a.txt", "text/plain", "5 B", "s1"]);
        let all = list(&world, &["--session", "s1"]);
        assert_eq!(all.len(), 2, "{all:?}");
        world.mcpx(["artifacts", "get", "a.txt"]).stdout("hello").check();
        world.mcpx(["artifacts", "get", &HELLO[..8]]).stdout("hello").check();
        world.mcpx(["artifacts", "get", all[0]["uri"].as_str().unwrap(), "-o", "-"]).stdout("hello").check();
        let b = all[1]["id"].as_str().unwrap();
        let _ = world.mcpx(["artifacts", "get", b, "-o", "."]).any_stderr().run();
        assert_eq!(std::fs::read(world.dir().join("b.bin")).unwrap(), [0, 255]);
        let known = world.mcpx(["--json", "artifacts", "get", b]).run().json();
        assert_eq!(known["artifact"]["id"], b);
        world.mcpx(["artifacts", "get", "a.tx"]).status(2).stderr_has("a.txt").check();
        world.mcpx(["artifacts", "get", "../../etc/passwd"]).status(2).stderr_has("no artifact").check();
        let _ = world.mcpx(["artifacts", "gc"]).any_stderr().run();
        assert_eq!(list(&world, &[]).len(), 2, "what is new stays");
    }
    world.mcpx(["artifacts", "rm"]).status(2).stderr_has("--run").check();
    world.mcpx(["artifacts", "rm", "a.txt", "none"]).status(2).stderr_has("none").check();
    assert_eq!(list(&world, &[]).len(), 2, "a mistyped one removes nothing");
    world.mcpx(["artifacts", "rm", "a.txt"]).stdout_has("removed").check();
    world.mcpx(["artifacts", "rm", "--session", "s1"]).stdout_has("b.bin").check();
    assert!(list(&world, &[]).is_empty());
    world.mcpx(["artifacts", "lst"]).status(2).stderr_has("list").check();
}

#[test]
fn a_large_body_goes_to_the_disk_as_it_comes() {
    // Far more than a body may have that has to fit into memory.
    let world = World::demo().setting("transport", json!({"maxBody": "64KiB"}));
    let _ = world.mcpx(["refresh"]).any_stderr().run();
    let body: Vec<u8> = (0..8_000_000u32).map(|n| (n % 251) as u8).collect();
    let (status, _, answer) = http(&world, "PUT", "/v1/artifacts?name=..%2Fbig.dat&run=r9", &body);
    let stored: Value = serde_json::from_slice(&answer).unwrap();
    let artifact = &stored["artifact"];
    assert_eq!(
        (status, &artifact["size"], &artifact["name"]),
        (200, &json!(8_000_000), &json!("big.dat")),
        "{stored}"
    );
    let id = artifact["id"].as_str().unwrap();
    let (status, head, content) = http(&world, "GET", &format!("/v1/artifacts/{id}/content"), b"");
    assert_eq!((status, content.len()), (200, body.len()), "{head}");
    assert!(
        content == body && head.contains("application/octet-stream") && head.contains("attachment"),
        "{head}"
    );
    let (status, _, answer) = http(&world, "DELETE", &format!("/v1/artifacts/{id}"), b"");
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&answer));
    assert_eq!(http(&world, "GET", &format!("/v1/artifacts/{id}/content"), b"").0, 404);
    // In parts; a part that belongs to nothing is refused.
    let post = |body: Value| {
        let (status, _, answer) = http(&world, "POST", "/v1/artifacts", body.to_string().as_bytes());
        (status, serde_json::from_slice::<Value>(&answer).unwrap())
    };
    let (_, begun) = post(json!({"name": "p", "data": "aGVs", "more": true}));
    let (status, done) = post(json!({"name": "p", "data": "bG8=", "upload": begun["upload"]}));
    assert_eq!((status, &done["artifact"]["sha256"]), (200, &json!(HELLO)), "{done}");
    assert_eq!(post(json!({"data": "", "upload": begun["upload"]})).0, 404);
    for (wrong, part) in [
        (json!({"name": "x"}), "one of"),
        (json!({"text": "a", "data": "b"}), "one of"),
        (json!({"data": "*"}), "base64"),
        (json!({"path": "relative"}), "absolute"),
        (json!({"path": "/dev/zero"}), "regular"),
        (json!({"path": "/nonexistent"}), "nonexistent"),
        (json!({"text": "a", "more": true}), "parts"),
    ] {
        let (status, error) = post(wrong.clone());
        let message = error["error"]["message"].as_str().unwrap();
        assert!(status == 400 && message.contains(part), "{wrong}: {status} {message}");
    }
}

#[test]
fn limits_hold_and_events_tell() {
    let limits = json!({"maxSize": "40KB", "quota": "60KB"});
    let world = World::demo().with(Runtime::Bun).setting("artifacts", limits);
    let give = |name: &str, size: u32, fill: u8| {
        format!("await artifact({{name: '{name}', bytes: new Uint8Array({size}).fill({fill})}})")
    };
    world.mcpx(["exec", &give("huge", 40_001, 1)]).status(69).stderr_has("artifacts.maxSize").check();
    let (status, _, answer) = http(&world, "PUT", "/v1/artifacts", &vec![0; 45_000]);
    assert_eq!(status, 413, "{}", String::from_utf8_lossy(&answer));
    let _ = world.mcpx(["exec", &give("one", 36_000, 1)]).any_stderr().run();
    let _ = world.mcpx(["exec", &give("two", 36_000, 2)]).any_stderr().run();
    let names =
        || list(&world, &[]).iter().map(|a| a["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(names(), ["two"], "the oldest gave way");
    // What an open run gave stays, so that the next does not fit.
    let both = format!("{}; {}", give("three", 36_000, 3), give("four", 36_000, 4));
    world.mcpx(["exec", &both]).status(69).stderr_has("artifacts.quota").check();
    assert_eq!(names(), ["three"]);
    let _ = world.mcpx(["artifacts", "rm", "three"]).run();
    let events = world.mcpx(["--json", "events", "--kind", "artifact"]).run().stdout();
    let word = |kind: &str| events.matches(&format!("\"{kind}\"")).count();
    assert_eq!((word("artifact.stored"), word("artifact.removed")), (3, 3), "{events}");
    assert!(
        events.contains("\"why\":\"quota\"")
            && events.contains("\"why\":\"asked\"")
            && events.contains("mcpx-artifact:")
    );
    // The log has them under their run.
    let run = serde_json::from_str::<Value>(events.lines().next().unwrap()).unwrap();
    let run = run["data"]["run"].as_str().unwrap_or_else(|| panic!("{events}")).to_owned();
    let chain = wait_until("the log has it", || {
        let chain = world.mcpx(["--json", "log", "--chain", &run]).run().stdout();
        chain.contains("artifact.stored").then_some(chain)
    });
    assert!(chain.contains("\"name\":\"one\""), "{chain}");
}

#[test]
fn media_of_a_call_is_kept_and_goes_with_the_store() {
    let everything = tools::npm_server("everything", &["stdio"]);
    let world = World::new().server("everything", everything).with(Runtime::Bun);
    let document = world.mcpx(["--json", "call", "everything.get-tiny-image"]).any_stderr().run().json();
    let image =
        document["content"].as_array().unwrap().iter().find(|b| b["type"] == "image").unwrap().clone();
    let path = image["path"].as_str().unwrap_or_else(|| panic!("{document}"));
    assert!(path.ends_with(".png") && std::path::Path::new(path).starts_with(world.state()), "{path}");
    assert_eq!(&std::fs::read(path).unwrap()[1..4], b"PNG");
    let kept = list(&world, &[]);
    assert_eq!((&kept[0]["uri"], &kept[0]["mime"]), (&image["uri"], &json!("image/png")));
    // A second call of the same keeps no second file.
    world.mcpx(["call", "everything.get-tiny-image"]).any_stderr().run().says(&[path]);
    let _ = world.mcpx(["artifacts", "rm", image["uri"].as_str().unwrap()]).run();
    assert!(!std::path::Path::new(path).exists());
}

#[test]
fn images_in_results_become_references_where_that_is_wanted() {
    let world = World::new()
        .server("everything", tools::npm_server("everything", &["stdio"]))
        .with(Runtime::Bun)
        .setting("artifacts", json!({"results": "reference", "resultsFrom": "1KB"}));
    let code = "await everything.get_tiny_image.raw()";
    let document = world.mcpx(["--json", "exec", code]).run().json();
    let content = document["result"]["content"].as_array().unwrap_or_else(|| panic!("{document}"));
    let link = content.iter().find(|b| b["type"] == "resource_link").unwrap_or_else(|| panic!("{document}"));
    assert!(content.iter().all(|b| b["type"] != "image"), "{document}");
    assert_eq!((&link["mimeType"], &link["name"]), (&json!("image/png"), &json!("get_tiny_image.png")));
    let path = link["_meta"]["mcpx/artifact"]["path"].as_str().unwrap();
    let bytes = std::fs::read(path).unwrap();
    assert_eq!((bytes.len() as u64, &bytes[1..4]), (link["size"].as_u64().unwrap(), &b"PNG"[..]));
    let kept = list(&world, &["--run", list(&world, &[])[0]["run"].as_str().unwrap()]);
    assert_eq!(kept[0]["uri"], link["uri"]);
    // A caller that wants it otherwise says so.
    let inline = world.mcpx(["--json", "exec", "--artifacts-results", "inline", code]).run().json();
    assert!(inline["result"]["content"].as_array().unwrap().iter().any(|b| b["type"] == "image"), "{inline}");
}

#[test]
fn tcp_takes_uploads_with_the_token_and_no_paths() {
    let world = World::demo().setting("artifacts", json!({"maxSize": "40KB"}));
    let _ = world.mcpx(["refresh"]).any_stderr().run();
    let info = &world.infos()[0];
    let address = info["endpoint"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
    let token = info["token"].as_str().unwrap();
    let send = |method: &str, target: &str, headers: &str, body: &[u8]| {
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        write!(stream, "{method} {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}\r\n")
            .unwrap();
        let _ = stream.write_all(body);
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let authorized = |length: usize| format!("Authorization: Bearer {token}\r\nContent-Length: {length}\r\n");
    let put = "/v1/artifacts?name=t.bin";
    let stored = send("PUT", put, &authorized(30_000), &[7; 30_000]);
    assert!(stored.starts_with("HTTP/1.1 200") && stored.contains("\"size\":30000"), "{stored}");
    let chunks = b"5\r\nhello\r\n0\r\n\r\n";
    let headers = format!("Authorization: Bearer {token}\r\nTransfer-Encoding: chunked\r\n");
    assert!(send("PUT", put, &headers, chunks).contains(HELLO));
    assert!(send("PUT", put, &authorized(41_000), &[7; 41_000]).starts_with("HTTP/1.1 413"));
    assert!(send("PUT", put, "Content-Length: 1\r\n", b"x").starts_with("HTTP/1.1 401"));
    // Who is on the other end of TCP may be on another machine.
    let body = json!({"path": world.dir().join(".mcpx.json")}).to_string();
    let refused = send("POST", "/v1/artifacts", &authorized(body.len()), body.as_bytes());
    assert!(refused.starts_with("HTTP/1.1 403") && refused.contains("a path is not taken"), "{refused}");
    let kept = list(&world, &[]);
    assert_eq!(kept.len(), 2, "{kept:?}");
}
