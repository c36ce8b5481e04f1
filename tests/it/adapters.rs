//! Command-line programs that a configuration declares as servers, through the
//! commands and scripts that a user has.

use crate::harness::{Runtime, World};
use serde_json::{Value, json};

/// A world with the declared program `sh` as server `tool`.
fn declared(tools: Value) -> World {
    World::new().server("tool", json!({"mcpx": {"program": {"command": "sh", "tools": tools}}}))
}

/// Prints its arguments, one a line, each in brackets.
fn echo() -> Value {
    json!({
        "description": "Shows what it is given",
        "args": ["-c", "for a; do echo \"[$a]\"; done", "sh", ["-n", "{count}"], {"if": "all", "then": "--all"},
                 ["-e", "{words}"], "{path}"],
        "schema": {"properties": {
            "count": {"type": "integer"}, "all": {"type": "boolean"}, "path": {"type": "string"},
            "words": {"type": "array", "items": {"type": "string"}},
        }},
        "output": "lines",
        "annotations": {"readOnlyHint": true},
    })
}

#[test]
fn a_declared_program_is_a_server_like_any_other() {
    let world = declared(json!({"echo": echo(), "fail": {"args": ["-c", "echo why >&2; exit 3"]}}));
    let listed = world.mcpx(["tools", "tool", "--json"]).run();
    listed.says(&["echo", "fail", "Shows what it is given"]);
    let given = r#"{"count":2,"all":true,"words":["a b","$(id)"],"path":"x;y"}"#;
    let output = world.mcpx(["call", "tool.echo", given, "--json"]).run();
    let lines = &output.json()["structuredContent"]["lines"];
    let wanted = json!(["[-n]", "[2]", "[--all]", "[-e]", "[a b]", "[-e]", "[$(id)]", "[x;y]"]);
    assert_eq!(*lines, wanted, "{output}");
    world
        .mcpx(["call", "tool.echo", "path=-rf"])
        .status(1)
        .any_stderr()
        .run()
        .says(&["must not begin with \"-\""]);
    world.mcpx(["call", "tool.fail"]).status(1).any_stderr().run().says(&["exit code 3", "why"]);
    let refused = world.mcpx(["call", "tool.echo", "count=many"]).status(2).any_stderr().run();
    refused.says(&["count"]);
    // Types and search see it too.
    world.mcpx(["types", "tool"]).run().says(&["echo", "count?: number", "lines: "]);
    world.mcpx(["search", "shows given"]).run().says(&["tool.echo"]);
    world.mcpx(["stop"]).stdout_has("stopped").any_stderr().check();
    assert!(world.processes().is_empty());
}

#[test]
fn scripts_use_it_with_its_types() {
    let world = declared(
        json!({"echo": echo(), "data": {"args": ["-c", "cat"], "stdin": "{text}", "output": "json"}}),
    )
    .with(Runtime::Node26);
    let code = "const {lines} = await tools.tool.echo({words: ['x']}); \
                const data = await tools.tool.data({text: '{\"a\": [1]}'}); \
                return [lines, data]";
    let output = world.mcpx(["exec", code]).any_stderr().run();
    assert_eq!(output.json(), json!([["[-e]", "[x]"], {"a": [1]}]), "{output}");
    world.mcpx(["stop"]).stdout_has("stopped").any_stderr().check();
    assert!(world.processes().is_empty());
}

#[test]
fn variables_are_filled_in_and_never_become_placeholders() {
    let tool = json!({"args": ["-c", "echo \"$1|$OWN|${MCPX_ADAPTER_DECLARATION:-none}\"", "sh", "${VALUE}"],
                      "schema": {"properties": {"x": {"type": "string"}}}});
    let world = World::new().env("VALUE", "{x}").server(
        "tool",
        json!({"env": {"OWN": "mine"}, "mcpx": {"program": {"command": "sh", "tools": {"show": tool}}}}),
    );
    // `$1` and the others are the shell's own, and no braces follow them but in the last.
    let output = world.mcpx(["call", "tool.show", "x=secret"]).any_stderr().run();
    output.says(&["{x}|mine|"]);
    world.mcpx(["stop"]).stdout_has("stopped").any_stderr().check();
}

#[test]
fn a_cancelled_or_late_call_leaves_no_process() {
    let tool = json!({"args": ["-c", "sleep 1000 & sleep 1000"]});
    let world = declared(json!({"wait": tool, "short": {"args": ["-c", "sleep 1000"], "timeout": "100ms"}}));
    world.mcpx(["call", "tool.short"]).status(1).any_stderr().run().says(&["took longer than 100ms"]);
    world.mcpx(["call", "tool.wait", "--timeout", "300ms"]).status(124).any_stderr().check();
    world.wait_gone("sleep");
    world.mcpx(["stop"]).stdout_has("stopped").any_stderr().check();
    assert!(world.processes().is_empty());
}

#[test]
fn what_is_wrong_with_a_declaration_is_said() {
    for (block, part) in [
        (json!({"mcpx": {"program": {"comand": "sh"}}}), "unknown key \"comand\"; did you mean"),
        (json!({"mcpx": {"program": {"tools": {}}}}), "mcpx.program.command: is missing"),
        (
            json!({"command": "sh", "mcpx": {"program": {"command": "sh", "tools": {}}}}),
            "cannot have \"command\"",
        ),
        (json!({"mcpx": {"program": {}, "openapi": {}}}), "has both"),
        (
            json!({"mcpx": {"program": {"command": "sh", "tools": {"t": {"args": ["{"]}}}}}),
            "tools.t.args[0]: ",
        ),
        (
            json!({"mcpx": {"program": {"command": "sh", "tools": {"t": {"args": ["${NOT_THERE}"]}}}}}),
            "NOT_THERE is not set",
        ),
        (json!({"mcpx": {"program": {"command": "no-such-thing", "tools": {"t": {}}}}}), "no-such-thing"),
        (json!({"mcpx": {"openapi": {"document": "missing.json"}}}), "missing.json"),
    ] {
        let world = World::new().server("tool", block.clone());
        let output = world.mcpx(["call", "tool.t"]).output();
        let text = format!("{output}");
        assert!(text.contains(part), "{block}: {text}");
        drop(world.mcpx(["stop"]).output());
    }
}

#[test]
fn a_server_runs_where_its_file_is_unless_it_says_otherwise() {
    let program = json!({"mcpx": {"program": {"command": "pwd", "tools": {"here": {"description": "where", "args": []}}}}});
    let world = World::new().server("where", program);
    world.link("pwd", std::path::Path::new("/bin/pwd"));
    std::fs::create_dir(world.dir().join("below")).unwrap();
    for dir in ["", "below"] {
        let output = world.mcpx(["call", "where.here"]).dir(dir).run();
        assert_eq!(output.stdout().trim(), world.dir().to_str().unwrap(), "{output}");
    }
}
