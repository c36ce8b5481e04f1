//! `mcpx call`: ways to give arguments, ways to get the result, and what becomes of failures.

use crate::harness::{World, tools, wait_until};
use serde_json::json;

#[test]
fn arguments_can_be_given_in_each_way() {
    let world = World::fake(&[]).file("args.json", r#"{"from":"file"}"#).file("note.txt", "a line\n");
    let call = |words: &[&str]| {
        let mut all = vec!["call", "fake.args"];
        all.extend(words);
        world.mcpx(all)
    };
    call(&[r#"{"a":[1,{"b":null}]}"#]).stdout("{\"a\":[1,{\"b\":null}]}\n").check();
    call(&["a=1", "b:=1", "c:=true", "d=", "e:=[1,2]", "f=x=y", "g=$HOME"])
        .stdout("{\"a\":\"1\",\"b\":1,\"c\":true,\"d\":\"\",\"e\":[1,2],\"f\":\"x=y\",\"g\":\"$HOME\"}\n")
        .check();
    call(&["@args.json"]).stdout("{\"from\":\"file\"}\n").check();
    call(&["-"]).stdin(r#" {"from": "stdin"} "#).stdout("{\"from\":\"stdin\"}\n").check();
    call(&[]).stdout("{}\n").check();
    // Numbers keep their digits.
    call(&[r#"{"n":12345678901234567890.125,"big":9007199254740993}"#]).run().says(&["9007199254740993"]);
}

#[test]
fn arguments_that_are_no_object_are_refused_before_anything_starts() {
    let world = World::fake(&[]).file("args.json", "{\"from\":");
    for word in ["{\"a\":", "[1]", "a:=nope", "@args.json", "word"] {
        let output = world.mcpx(["call", "fake.args", word]).status(2).any_stderr().run();
        assert!(output.stdout_bytes.is_empty(), "{output}");
        assert!(output.stderr.starts_with("mcpx: "), "{output}");
    }
    world.mcpx(["call", "fake.args", "@absent.json"]).status(66).stderr_has("absent.json").check();
    world.mcpx(["call", "fake.args", "a:=nope"]).status(2).stderr_has("a").stderr_has("JSON").check();
    assert_eq!(world.received("fake", "tools/call"), Vec::<serde_json::Value>::new());
}

#[test]
fn arguments_that_break_the_schema_are_refused_by_field() {
    let world = World::demo();
    for (words, field) in [
        (&["call", "demo.add", r#"{"a":"x","b":1}"#][..], "a"),
        (&["call", "demo.add", "b:=1"], "a"),
        (&["call", "demo.forecast", r#"{"city":"Bern","days":9}"#], "days"),
        (&["call", "demo.forecast", r#"{"city":"Bern","unit":"kelvin"}"#], "unit"),
        (
            &["call", "demo.hostile", r#"{"version":2,"tree":{"value":"x","children":[{"value":3}]}}"#],
            "tree.children[0].value",
        ),
    ] {
        let output = world.mcpx(words).status(2).any_stderr().run();
        output.says(&[field]);
        let output = world.mcpx(["--json"].iter().chain(words)).status(2).any_stderr().run();
        output.says(&["\"kind\":\"usage\"", field]);
    }
}

#[test]
fn the_result_comes_unwrapped_raw_or_as_a_document() {
    let world = World::demo();
    world.mcpx(["call", "demo.add", "a:=2", "b:=3"]).stdout("{\"sum\":5}\n").check();
    let raw = world.mcpx(["call", "--raw", "demo.add", "a:=2", "b:=3"]).run().json();
    assert_eq!(raw["structuredContent"], json!({"sum": 5}));
    assert_eq!(raw["content"][0]["type"], "text");
    let document = world.mcpx(["--json", "call", "demo.add", "a:=2", "b:=3"]).run().json();
    assert_eq!((&document["ok"], &document["result"]), (&json!(true), &json!({"sum": 5})));
}

#[test]
fn numbers_typed_as_pairs_follow_the_schema() {
    let world = World::demo();
    world.mcpx(["call", "demo.add", "a=2", "b=3"]).stdout("{\"sum\":5}\n").check();
    world.mcpx(["call", "demo.echo", "text=5"]).stdout("5\n").check();
}

#[test]
fn a_picture_goes_to_a_file_whose_path_is_printed() {
    let world = World::demo();
    let output = world.mcpx(["call", "demo.image"]).run();
    let path = std::path::PathBuf::from(output.stdout().trim());
    let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{e}\n{output}"));
    assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"), "{output}");
    assert_eq!(path.extension().unwrap(), "png");
    let raw = world.mcpx(["call", "--raw", "demo.image"]).run().json();
    assert_eq!(raw["content"][0]["mimeType"], "image/png");
}

#[test]
fn a_tool_that_reports_an_error_ends_in_1() {
    let world = World::demo();
    world.mcpx(["call", "demo.fail", "message=no luck"]).status(1).stderr_has("no luck").check();
    let output = world.mcpx(["--json", "call", "demo.fail", "message=no luck"]).status(1).any_stderr().run();
    output.says(&["\"kind\":\"tool\"", "no luck", "\"tool\":\"fail\"", "\"server\":\"demo\""]);
    let raw = world.mcpx(["call", "--raw", "demo.fail", "message=no luck"]).status(1).any_stderr().run();
    assert_eq!(raw.json()["isError"], true);
}

#[test]
fn a_mistyped_name_gets_the_nearest() {
    let world = World::demo();
    world.mcpx(["call", "dmo.echo"]).status(2).stderr_has("demo").check();
    world.mcpx(["call", "demo.ecko", "text=a"]).status(2).stderr_has("echo").check();
    world.mcpx(["cal", "demo.echo"]).status(2).stderr_has("call").check();
    world.mcpx(["call", "demo.echo", "--timeuot", "5s"]).status(2).stderr_has("--timeout").check();
}

#[test]
fn a_pair_that_the_tool_does_not_declare_is_refused_and_json_sends_it_all_the_same() {
    let world = World::demo();
    let refused = world.mcpx(["call", "demo.echo", "text=hi", "txet=ho"]).status(2).any_stderr().run();
    refused.says(&["has no argument \"txet\"", "did you mean \"text\"", "txet:=<json>"]);
    world.mcpx(["call", "demo.echo", "text=hi", "txet:=1"]).stdout("hi\n").check();
}

#[test]
fn awkward_names_are_reachable_exactly_and_as_identifiers() {
    let world = World::demo();
    for name in ["class", "get-weird.name", "get-weird-name", "1st", "tool with spaces", "ünïcode"] {
        let answer = world.mcpx(["call", &format!("demo.{name}"), "note=n"]).run().json();
        assert_eq!(answer, json!({"tool": name, "arguments": {"note": "n"}}));
    }
}

#[test]
fn fifty_megabytes_pass_whole_and_promptly() {
    let world = World::fake(&[]);
    let bytes = 50_000_000;
    let output = world.mcpx(["call", "fake.big", &format!("bytes:={bytes}")]).run();
    assert_eq!(output.stdout_bytes.len(), bytes + 1);
    assert!(output.stdout_bytes[..bytes].iter().all(|b| *b == b'x'));
    // A large argument passes as well.
    let text = "y".repeat(5_000_000);
    let output = world.mcpx(["call", "fake.echo", "-"]).stdin(json!({"text": text}).to_string()).run();
    assert_eq!(output.stdout_bytes.len(), text.len() + 1);
}

#[test]
fn many_items_keep_their_order() {
    let world = World::fake(&[]);
    let output = world.mcpx(["call", "fake.items", "n:=3000"]).run();
    let lines: Vec<String> = (0..3000).map(|n| format!("item {n}\n")).collect();
    assert_eq!(output.stdout(), lines.concat());
}

#[test]
fn calls_to_one_server_run_side_by_side() {
    let world = World::fake(&[]);
    world.mcpx(["call", "fake.echo", "text=warm"]).stdout("warm\n").check();
    let start = std::time::Instant::now();
    let running: Vec<_> = (0..8).map(|_| world.mcpx(["call", "fake.sleep", "ms:=700"]).start()).collect();
    for running in running {
        let output = running.wait();
        assert_eq!((output.status, output.stdout().as_str()), (0, "slept 700 ms\n"), "{output}");
    }
    assert!(
        start.elapsed().as_secs_f64() < 4.0,
        "one after the other would take 5.6 s: {:?}",
        start.elapsed()
    );
    assert_eq!(world.started("fake").len(), 1);
}

#[test]
fn ctrl_c_cancels_the_call_at_the_server() {
    let world = World::fake(&[]);
    let running = world.mcpx(["call", "fake.hang"]).start();
    wait_until("the call to arrive", || (!world.received("fake", "tools/call").is_empty()).then_some(()));
    running.signal(libc::SIGINT);
    let output = running.wait();
    assert_eq!(output.status, 130, "{output}");
    let sent = world.received("fake", "tools/call");
    let cancelled = wait_until("the cancellation to arrive", || {
        let all = world.received("fake", "notifications/cancelled");
        (!all.is_empty()).then_some(all)
    });
    assert_eq!(cancelled[0]["params"]["requestId"], sent[0]["id"]);
    // The server is still there, for others.
    world.mcpx(["call", "fake.echo", "text=on"]).stdout("on\n").check();
    assert_eq!(world.started("fake").len(), 1);
}

#[test]
fn a_caller_that_is_killed_cancels_its_call() {
    let world = World::fake(&[]);
    let running = world.mcpx(["call", "fake.hang"]).start();
    wait_until("the call to arrive", || (!world.received("fake", "tools/call").is_empty()).then_some(()));
    running.signal(libc::SIGKILL);
    assert_eq!(running.wait().status, -libc::SIGKILL);
    wait_until("the cancellation to arrive", || {
        (!world.received("fake", "notifications/cancelled").is_empty()).then_some(())
    });
}

#[test]
fn a_call_that_takes_too_long_ends_in_124_and_is_cancelled() {
    let world = World::fake(&["--late-answer"]);
    world.mcpx(["call", "fake.echo", "text=first"]).stdout("first\n").check();
    let output = world.mcpx(["call", "--timeout", "300ms", "fake.hang"]).status(124).any_stderr().run();
    output.says(&["fake did not answer", "hang within 300ms", "--timeout"]);
    wait_until("the cancellation to arrive", || {
        (!world.received("fake", "notifications/cancelled").is_empty()).then_some(())
    });
    // The late answer confuses nobody, and nothing was sent twice.
    world.mcpx(["call", "fake.echo", "text=next"]).stdout("next\n").check();
    assert_eq!(world.received("fake", "tools/call").len(), 3);
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let world = World::fake(&[]);
    let script = format!("{} call fake.big bytes:=5000000 | head -c 10", env!("CARGO_BIN_EXE_mcpx"));
    let output = world.sh(&script);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "xxxxxxxxxx");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn a_tool_without_its_namespace_is_found_in_the_cache() {
    let world = World::demo();
    let _ = world.mcpx(["tools"]).any_stderr().run();
    world.mcpx(["call", "add", "a=1", "b=2"]).status(2).stderr_has("did you mean \"demo.add\"?").check();
    world.mcpx(["call", "zebra"]).status(2).stderr_has("mcpx search").check();
    world.mcpx(["-v"]).status(2).stderr_has("--version").check();
}

#[test]
fn a_result_that_cannot_be_shown_is_one_document() {
    let world = World::demo();
    let words = ["--json", "call", "demo.image", "--output-media-dir", "/dev/null"];
    let output = world.mcpx(words).status(74).any_stderr().run();
    assert_eq!(output.json()["ok"], false, "{output}");
    assert_eq!(output.stdout().lines().count(), 1, "{output}");
}

#[test]
fn a_pipe_that_somebody_made_impatient_loses_nothing() {
    let world = World::demo();
    let text = "y".repeat(1 << 20);
    std::fs::write(world.dir().join("args.json"), json!({ "text": text }).to_string()).unwrap();
    let impatient =
        "import os, sys; [os.set_blocking(n, False) for n in (0, 1)]; os.execv(sys.argv[1], sys.argv[1:])";
    let line = format!(
        "cat args.json | {} -c '{impatient}' {} call demo.echo - | cat",
        tools::python().display(),
        env!("CARGO_BIN_EXE_mcpx"),
    );
    let output = world.sh(&line);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.stdout == format!("{text}\n").as_bytes(), "{} bytes", output.stdout.len());
}
