//! HTTP APIs with an OpenAPI document as servers, against a real HTTP server.

use crate::harness::{Runtime, World};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// `tests/api/server.mjs`, running.
struct Notes {
    child: Child,
    base: String,
}

impl Notes {
    fn start() -> Notes {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/api/server.mjs");
        let mut command = Command::new(Runtime::Node26.path());
        command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut base = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut base).unwrap();
        Notes { child, base: base.trim().to_owned() }
    }

    fn get(&self, path: &str) -> Value {
        let mut stream = TcpStream::connect(self.base.strip_prefix("http://").unwrap()).unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\nHost: x\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    /// The requests since the start.
    fn seen(&self) -> Vec<Value> {
        self.get("/seen").as_array().unwrap().clone()
    }

    /// A world with it as server `notes`; the members go into the declaration.
    fn world(&self, more: Value) -> World {
        let mut declaration = json!({"document": format!("{}/openapi.json", self.base)});
        declaration.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        World::new().server("notes", json!({"mcpx": {"openapi": declaration}}))
    }
}

impl Drop for Notes {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

#[test]
fn operations_are_tools() {
    let notes = Notes::start();
    let world = notes.world(json!({})).with(Runtime::Node26);
    let listed = world.mcpx(["tools", "notes", "--json"]).run().json();
    let find = |name: &str| {
        let all = listed["tools"].as_array().expect("tools").iter();
        all.clone().find(|tool| tool["tool"] == name).unwrap_or_else(|| panic!("{name}: {listed}")).clone()
    };
    assert_eq!(find("notes_remove")["annotations"]["destructiveHint"], true);
    assert_eq!(find("notes_list")["annotations"]["readOnlyHint"], true);
    find("get_picture");
    let code = "const made = await tools.notes.notes_add({body: {text: 'second'}}); \
                const {result} = await tools.notes.notes_list({tag: ['a', 'b']}); \
                const one = await tools.notes.notes_get({id: made.id}); \
                await tools.notes.notes_remove({id: made.id}); \
                return [made, result.length, one.text]";
    let output = world.mcpx(["exec", code]).any_stderr().run();
    assert_eq!(output.json(), json!([{"id": 2, "text": "second"}, 2, "second"]), "{output}");
    let asked: Vec<String> =
        notes.seen().iter().map(|r| format!("{} {}", r["method"], r["url"]).replace('"', "")).collect();
    assert_eq!(asked, ["POST /notes", "GET /notes?tag=a&tag=b", "GET /notes/2", "DELETE /notes/2"]);
    world
        .mcpx(["call", "notes.notes_get", "id:=9"])
        .status(1)
        .any_stderr()
        .run()
        .says(&["404 Not Found", "no such note"]);
    world.mcpx(["call", "notes.notes_add", r#"{"body":{}}"#]).status(2).any_stderr().run().says(&["text"]);
    let page = world.mcpx(["call", "notes.notes_list", "--json"]).run();
    page.says(&[r#"There is a next page; call again with {\"page\":2}"#]);
    world.mcpx(["types", "notes"]).run().says(&["about?: ", "text: string"]);
    world.mcpx(["stop"]).stdout_has("stopped").any_stderr().check();
    assert!(world.processes().is_empty());
}

#[test]
fn credentials_go_to_their_own_origin_only() {
    let notes = Notes::start();
    let auth =
        json!({"auth": {"bearer": "${NOTES_TOKEN}", "header": {"X-Key": "k1"}, "query": {"api_key": "k2"}}});
    let world = notes.world(auth).env("NOTES_TOKEN", "t0p-secret");
    world.mcpx(["call", "notes.near"]).stdout_has("{").check();
    world.mcpx(["call", "notes.away"]).status(1).any_stderr().run().says(&["another place"]);
    world.mcpx(["call", "notes.other"]).stdout_has("{").check();
    let seen = notes.seen();
    assert_eq!(seen.len(), 4, "{seen:?}");
    for request in &seen[..3] {
        assert_eq!(request["authorization"], "Bearer t0p-secret", "{request}");
        assert_eq!(request["key"], "k1");
    }
    assert_eq!(seen[0]["url"], "/near?api_key=k2");
    let other = &seen[3];
    assert!(other["host"].as_str().unwrap().starts_with("localhost:"), "{other}");
    assert_eq!(
        (&other["authorization"], &other["key"], &other["url"]),
        (&Value::Null, &Value::Null, &json!("/other"))
    );
    // What a failure says does not have them.
    let failed = world.mcpx(["call", "notes.notes_get", "id:=9"]).status(1).output();
    assert!(!failed.to_string().contains("t0p-secret") && !failed.to_string().contains("k2"), "{failed}");
    world.mcpx(["stop"]).stdout_has("stopped").any_stderr().check();
}

#[test]
fn a_document_from_elsewhere_does_not_decide_where_credentials_go() {
    let notes = Notes::start();
    let elsewhere = format!("{}/openapi.json", notes.base.replace("127.0.0.1", "localhost"));
    let world = notes.world(json!({"document": elsewhere, "auth": {"bearer": "x"}}));
    world.mcpx(["call", "notes.near"]).output().says(&["another place", "baseUrl"]);
    drop(world.mcpx(["stop"]).output());
    let world = notes.world(json!({"document": elsewhere, "auth": {"bearer": "x"}, "baseUrl": notes.base}));
    world.mcpx(["call", "notes.near"]).stdout_has("{").check();
    world.mcpx(["stop"]).stdout_has("stopped").any_stderr().check();
}

#[test]
fn filters_limits_and_time_outs() {
    let notes = Notes::start();
    let more = json!({"include": ["tag:notes", "large", "slow", "GET /picture"], "exclude": ["POST"], "timeout": "300ms"});
    let world = notes.world(more).setting("adapters", json!({"maxOutput": "10KB"})).with(Runtime::Node26);
    let listed = world.mcpx(["tools", "notes", "--json"]).run();
    listed.says(&["notes_list", "large", "slow", "get_picture"]);
    assert!(!listed.stdout().contains("notes_add") && !listed.stdout().contains("notes_get"), "{listed}");
    world.mcpx(["call", "notes.large"]).status(1).any_stderr().run().says(&["larger than 10000 bytes"]);
    world.mcpx(["call", "notes.slow"]).status(1).any_stderr().run().says(&["no answer within 300ms"]);
    let picture = world.mcpx(["call", "notes.get_picture", "--json"]).run();
    picture.says(&["image/png"]);
    world.mcpx(["stop"]).stdout_has("stopped").any_stderr().check();
}

#[test]
fn an_edit_of_the_document_replaces_the_server() {
    let notes = Notes::start();
    let mut document = notes.get("/openapi.json");
    let world = World::new()
        .file("notes.json", &document.to_string())
        .server("notes", json!({"mcpx": {"openapi": {"document": "notes.json"}}}));
    world.mcpx(["call", "notes.near"]).stdout_has("{").check();
    document["paths"]["/near"]["get"]["operationId"] = "renamed".into();
    world.write("notes.json", &document.to_string());
    world.mcpx(["call", "notes.renamed"]).any_stderr().run().says(&["first"]);
    drop(world.mcpx(["stop", "--all"]).output());
    world.wait_gone("adapter");
}

#[test]
fn the_child_has_the_digest_of_its_declaration() {
    let notes = Notes::start();
    let world = notes.world(json!({}));
    world.mcpx(["call", "notes.near"]).stdout_has("{").check();
    let child = world
        .processes()
        .into_iter()
        .find(|p| p.args.iter().any(|a| a == "adapter"))
        .expect("the adapter runs");
    let environment = std::fs::read(format!("/proc/{}/environ", child.pid)).unwrap();
    let environment = String::from_utf8_lossy(&environment);
    let digest = environment
        .split('\0')
        .find_map(|v| v.strip_prefix("MCPX_API_DECLARATION_SHA256="))
        .expect("a digest");
    assert!(digest.len() == 64 && digest.bytes().all(|b| b.is_ascii_hexdigit()), "{digest}");
    world.mcpx(["stop"]).stdout_has("stopped").any_stderr().check();
}

#[test]
fn it_stands_alone_too() {
    let notes = Notes::start();
    let world = World::new().env("KEY", "abc").file("openapi.json", &notes.get("/openapi.json").to_string());
    world.mcpx(["api", "tools", "openapi.json"]).run().says(&["notes_list", "GET /notes", "List notes"]);
    let lines = [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
        "nonsense",
    ];
    let args = ["api", "serve", "openapi.json", "--exclude", "tag:danger,slow", "--bearer-env", "KEY"];
    let answers = world.mcpx(args).stdin(lines.join("\n")).run().json_lines();
    assert_eq!(answers[0]["result"]["protocolVersion"], "2025-06-18");
    let tools = answers[1]["result"]["tools"].as_array().unwrap();
    assert!(tools.iter().all(|t| t["name"] != "notes_remove") && tools.len() == 9, "{tools:?}");
    assert_eq!(answers[2]["error"]["code"], -32700);
    let args = ["api", "serve", "openapi.json", "--bearer-env", "NOT_SET"];
    world.mcpx(args).status(2).stderr_has("NOT_SET is not set").check();
    world.file_is_refused("a.yaml", "openapi: 3.0.0\n", "YAML");
    world.file_is_refused("b.json", "{\"swagger\": \"2.0\"}", "Swagger 2.0");
}

impl World {
    /// A document that cannot be used, and what is said of it.
    fn file_is_refused(&self, name: &str, text: &str, part: &str) {
        self.write(name, text);
        self.mcpx(["api", "tools", name]).status(65).stderr_has(part).check();
    }
}

#[test]
fn a_large_document_is_served_whole() {
    const OPERATIONS: usize = 2000;
    // So many schemas lead to each other.
    const GROUP: usize = 5;
    let mut paths = serde_json::Map::new();
    let mut schemas = serde_json::Map::new();
    for n in 0..OPERATIONS {
        let next = format!("#/components/schemas/S{}", n / GROUP * GROUP + (n + 1) % GROUP);
        schemas.insert(
            format!("S{n}"),
            json!({"type": "object", "properties": {"a": {"type": "string", "description": "x".repeat(50)}, "next": {"$ref": next}}}),
        );
        let schema = json!({"$ref": format!("#/components/schemas/S{n}")});
        paths.insert(
            format!("/r{n}/{{id}}"),
            json!({"post": {"operationId": format!("op{n}"), "summary": format!("Operation {n}"),
                "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}],
                "requestBody": {"content": {"application/json": {"schema": schema}}},
                "responses": {"200": {"description": "ok", "content": {"application/json": {"schema": schema}}}}}}),
        );
    }
    let document = json!({"openapi": "3.1.0", "info": {}, "servers": [{"url": "http://127.0.0.1:9"}],
        "paths": paths, "components": {"schemas": schemas}});
    let world = World::new()
        .file("large.json", &document.to_string())
        .server("large", json!({"mcpx": {"openapi": {"document": "large.json"}}}))
        .setting("catalog", json!({"wait": "2m"}))
        .setting("pool", json!({"startTimeout": "2m"}));
    let start = Instant::now();
    let listed = world.mcpx(["api", "tools", "large.json", "--json"]).run().json();
    println!("{OPERATIONS} operations listed alone in {:?}", start.elapsed());
    let tools = listed["tools"].as_array().unwrap();
    assert_eq!(tools.len(), OPERATIONS);
    assert!(tools.iter().all(|tool| tool["inputSchema"].to_string().len() < 50_000));
    let start = Instant::now();
    world.mcpx(["tools", "large", "--json"]).run().says(&["op0", "op1999"]);
    println!("{OPERATIONS} operations through the daemon in {:?}", start.elapsed());
    world.mcpx(["stop"]).stdout_has("stopped").any_stderr().check();
    assert!(world.processes().is_empty());
}

#[test]
fn a_pagination_hint_says_how_the_next_page_is_had() {
    let notes = Notes::start();
    let world = notes.world(json!({"pagination": {"next": "/meta/next", "parameter": "cursor"}}));
    let first = world.mcpx(["call", "--json", "notes.paged"]).run();
    first.says(&[r#"There is a next page; call again with {\"cursor\":\"c/2\"}"#]);
    assert_eq!(first.json()["_meta"]["mcpx/next"], json!({"cursor": "c/2"}), "{first}");
    let last = world.mcpx(["call", "--json", "notes.paged", "cursor=c/2"]).run();
    assert_eq!(last.json()["result"]["items"], json!([2]), "{last}");
    assert!(!last.stdout().contains("next page") && last.json()["_meta"].is_null(), "{last}");
    assert_eq!(notes.seen().last().unwrap()["url"], "/paged?cursor=c%2F2");
    // An operation without that parameter has no next page, whatever its answer holds.
    let other = world.mcpx(["call", "--json", "notes.notes_get", "id:=1"]).run();
    assert!(!other.stdout().contains("next page"), "{other}");
    for (hint, part) in [
        (json!({"next": "meta.next", "parameter": "c"}), "JSON pointer"),
        (json!({"next": "/n"}), "pagination.parameter"),
        (json!({"next": "/n", "parameter": "c", "pages": 3}), "pages"),
        (json!("/n"), "expected an object"),
    ] {
        let wrong = notes.world(json!({"pagination": hint}));
        let output = wrong.mcpx(["call", "notes.near"]).output();
        assert!(output.status != 0 && output.to_string().contains(part), "{part}: {output}");
        drop(wrong.mcpx(["stop"]).output());
    }
    world.mcpx(["stop"]).stdout_has("stopped").any_stderr().check();
}

#[test]
fn what_proves_who_we_are_is_shown_nowhere() {
    let notes = Notes::start();
    let world = notes.world(json!({
        "auth": {"bearer": "b-s3cret", "header": {"X-Key": "h-s3cret"}, "query": {"api_key": "q-s3cret"}},
        "headers": {"X-More": "m-s3cret", "X-Named": "${NOTES_TOKEN}"},
    }));
    let world = world.env("NOTES_TOKEN", "n-s3cret");
    world.mcpx(["call", "notes.near"]).stdout_has("{").check();
    for words in [
        &["servers", "list"][..],
        &["servers", "show", "notes"],
        &["--json", "servers", "list"],
        &["--json", "servers", "show", "notes"],
        &["status"],
        &["--json", "status"],
        &["--json", "config", "show"],
        &["--json", "log"],
    ] {
        let output = world.mcpx(words).output();
        assert!(!output.to_string().contains("s3cret"), "{words:?}: {output}");
    }
    let (_, listed) = world.ask_text("GET", "/v1/servers", None);
    assert!(!listed.contains("s3cret") && listed.contains("NOTES_TOKEN"), "{listed}");
    let shown = world.mcpx(["--json", "servers", "show", "notes"]).run().stdout();
    assert!(shown.contains("${NOTES_TOKEN}") && shown.contains("X-Key"), "{shown}");
    world.mcpx(["stop"]).stdout_has("stopped").any_stderr().check();
}
