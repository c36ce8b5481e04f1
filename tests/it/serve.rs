//! `mcpx serve` over stdio, as a host has it: the tools of mcpx, the tools of the
//! servers, both eras, and every way in which a host ends.

use crate::harness::{Host, Runtime, VERSION_KEY, World, stateless, wait_until};
use serde_json::{Value, json};

/// The text of a tool's result.
fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}"))
}

#[test]
fn a_model_finds_describes_and_calls_a_tool() {
    let world = World::demo();
    let mut host = Host::start(&world, &[]);
    let greeting = host.greet("2025-06-18", json!({}));
    assert_eq!(greeting["protocolVersion"], "2025-06-18");
    assert!(greeting["instructions"].as_str().unwrap().contains("- demo"), "{greeting}");
    let names = host.tools();
    for name in
        ["mcpx_discover", "mcpx_search", "mcpx_types", "mcpx_call", "mcpx_settings_set", "mcpx_servers_add"]
    {
        assert!(names.iter().any(|n| n == name), "{name} is not among {names:?}");
    }
    assert!(!names.iter().any(|n| n.contains("shutdown") || n.contains("Run")), "{names:?}");
    let found = host.call("mcpx_discover", json!({}));
    assert!(text(&found).starts_with("demo: "), "{found}");
    assert_eq!(found["structuredContent"]["namespaces"][0]["state"], "ready");
    let found = host.call("mcpx_search", json!({"query": "add", "limit": 1}));
    assert!(text(&found).starts_with("demo.add("), "{found}");
    assert_eq!(found["structuredContent"]["hits"].as_array().unwrap().len(), 1);
    let types = host.call("mcpx_types", json!({"server": ["demo"], "brief": true}));
    assert!(text(&types).contains("add("), "{types}");
    // What a tool returns comes as it is: structured content, pictures, its own errors.
    let sum = host.call("mcpx_call", json!({"server": "demo", "tool": "add", "arguments": {"a": 2, "b": 3}}));
    assert_eq!(sum["structuredContent"], json!({"sum": 5}));
    // What happened is told as well.
    let stats = host.call("mcpx_stats", json!({"about": "calls"}));
    assert_eq!(stats["structuredContent"]["rows"][0]["tool"], "demo.add", "{stats}");
    let log = host.call("mcpx_log", json!({"event": ["call.finished"], "limit": 1}));
    let record = &log["structuredContent"]["records"][0];
    assert_eq!(record["tool"], "add", "{log}");
    let chain = host.call("mcpx_log_chain", json!({"id": record["call"]}));
    assert!(text(&chain).contains("call.finished"), "{chain}");
    let endless = host.call("mcpx_log", json!({"follow": true}));
    assert_eq!(endless["isError"], true, "{endless}");
    let picture = host.call("mcpx_call", json!({"server": "demo", "tool": "image"}));
    assert_eq!(picture["content"][0]["type"], "image");
    let failed =
        host.call("mcpx_call", json!({"server": "demo", "tool": "fail", "arguments": {"message": "no"}}));
    assert_eq!((&failed["isError"], text(&failed)), (&json!(true), "no"));
    // What mcpx refuses says why, and what to do.
    let wrong = host.call("mcpx_call", json!({"server": "demo", "tool": "ad", "arguments": {}}));
    assert_eq!(wrong["isError"], true);
    assert_eq!(wrong["_meta"]["mcpx/error"]["kind"], "not-found");
    assert!(text(&wrong).contains("add"), "{wrong}");
    assert_eq!(host.answer("tools/call", json!({"name": "mcpx_cal"}))["error"]["code"], -32602);
    assert_eq!(host.end(), 0);
}

#[test]
fn settings_and_servers_are_tools_and_secrets_are_stars() {
    let world = World::demo().setting("transport", json!({"bearerToken": "hush-hush-hush-hush"}));
    let mut host = Host::greeted(&world, &[]);
    let set = host.call("mcpx_settings_set", json!({"key": "pool.callTimeout", "value": "7s"}));
    assert_eq!(text(&set), "pool.callTimeout = 7s (runtime)");
    let got = host.call("mcpx_settings_get", json!({"key": "pool.callTimeout"}));
    assert_eq!(got["structuredContent"]["value"], "7s");
    let back = host.call("mcpx_settings_unset", json!({"key": "pool.callTimeout"}));
    assert_eq!(back["structuredContent"]["source"], "default");
    let unknown = host.call("mcpx_settings_get", json!({"key": "pool.calltimeout"}));
    assert_eq!(unknown["isError"], true);
    let all = host.call("mcpx_settings_list", json!({}));
    assert!(text(&all).contains("transport.bearerToken = ***"), "{}", text(&all));
    assert!(!all.to_string().contains("hush"), "a secret is shown");
    let added = host.call(
        "mcpx_servers_add",
        json!({"name": "again", "definition": {"command": env!("CARGO_BIN_EXE_mcpx"), "args": ["demo-server"]}}),
    );
    assert_eq!(added["structuredContent"]["change"], "added");
    // The host learns that there are other servers now.
    let _ = host.notified("notifications/tools/list_changed");
    let echo =
        host.call("mcpx_call", json!({"server": "again", "tool": "echo", "arguments": {"text": "hi"}}));
    assert_eq!(text(&echo), "hi");
    let listed = host.call("mcpx_servers_list", json!({}));
    assert!(text(&listed).contains("again: enabled"), "{listed}");
    let removed = host.call("mcpx_servers_remove", json!({"name": "again"}));
    assert_eq!(removed["structuredContent"]["change"], "removed");
}

#[test]
fn a_stateless_host_needs_no_handshake() {
    let world = World::demo();
    let mut host = Host::start(&world, &[]);
    let found = host.ask("server/discover", json!({"_meta": stateless()}));
    assert_eq!(found["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(found["resultType"], "complete");
    let listed = host.ask("tools/list", json!({"_meta": stateless()}));
    assert!(listed["ttlMs"].is_u64() && listed["cacheScope"] == "private", "{listed}");
    let call = json!({"name": "mcpx_call", "arguments": {"server": "demo", "tool": "add", "arguments": {"a": 1, "b": 1}}, "_meta": stateless()});
    let sum = host.ask("tools/call", call);
    assert_eq!((&sum["structuredContent"], &sum["resultType"]), (&json!({"sum": 2}), &json!("complete")));
    assert_eq!(host.answer("tools/list", json!({}))["error"]["code"], -32602);
    assert_eq!(host.answer("ping", json!({"_meta": stateless()}))["error"]["code"], -32601);
    let mut other = stateless();
    other[VERSION_KEY] = "2031-01-01".into();
    let refused = host.answer("tools/list", json!({"_meta": other}));
    assert_eq!(refused["error"]["code"], -32022);
    assert_eq!(refused["error"]["data"], json!({"supported": ["2026-07-28"], "requested": "2031-01-01"}));
    // It listens until it says that it does not any more.
    let id = host.send(
        "subscriptions/listen",
        json!({"_meta": stateless(), "notifications": {"toolsListChanged": true}}),
    );
    let heard = host.notified("notifications/subscriptions/acknowledged");
    assert_eq!(heard["params"]["notifications"], json!({"toolsListChanged": true}));
    world.write(".mcpx.json", r#"{"mcpServers": {}}"#);
    let heard = host.notified("notifications/tools/list_changed");
    assert_eq!(heard["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
    host.write(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    assert_eq!(host.end(), 0);
}

#[test]
fn a_misspelt_selection_of_tools_is_refused() {
    let world = World::demo();
    let serve = |tools: &str| world.mcpx(["serve", "--serve-tools", tools]).stdin("");
    serve("search,cal").status(2).stderr_has("serve.tools").stderr_has("call").check();
    let _ = serve("search,settings_*").run();
}

#[test]
fn a_mode_that_the_same_command_line_contradicts_is_refused() {
    let world = World::demo().setting("serve", json!({"mode": "code"}));
    for mode in ["code", "both"] {
        let words = ["serve", "--passthrough", "--serve-mode", mode];
        world.mcpx(words).status(2).stderr_has("contradict").check();
    }
    let words = ["serve", "--passthrough", "--serve-mode", "passthrough"];
    world.mcpx(words).stdin("").check();
    // The configuration is outranked.
    world.mcpx(["serve", "--passthrough"]).stdin("").check();
}

#[test]
fn a_script_that_fails_is_an_error() {
    let world = World::demo().with(Runtime::Bun);
    let mut host = Host::start(&world, &[]);
    let _ = host.greet("2025-06-18", json!({}));
    for (code, says) in [
        ("emit(1); throw new Error('no more')", "script: no more"),
        ("await demo.fail({message: 'on purpose'})", "tool: on purpose"),
    ] {
        let failed = host.call("mcpx_exec", json!({"code": code}));
        assert_eq!(failed["isError"], true, "{failed}");
        assert!(text(&failed).starts_with(says), "{failed}");
        assert!(failed.get("structuredContent").is_none(), "{failed}");
        let run: Value = serde_json::from_str(failed["content"][1]["text"].as_str().unwrap()).unwrap();
        assert_eq!((&run["ok"], &run["exitCode"]), (&json!(false), &json!(1)), "{failed}");
    }
    assert_eq!(host.end(), 0);
}

#[test]
fn a_script_works_with_the_servers_of_the_conversation() {
    let demo =
        json!({"command": env!("CARGO_BIN_EXE_mcpx"), "args": ["demo-server"], "mcpx": {"scope": "session"}});
    let world = World::new().server("demo", demo).with(Runtime::Bun);
    for args in [&[][..], &["--session", "mine"]] {
        let mut host = Host::greeted(&world, args);
        let count = json!({"server": "demo", "tool": "counter", "arguments": {}});
        let once = host.call("mcpx_call", count.clone());
        let twice = host.call("mcpx_exec", json!({"code": "return await demo.counter()"}));
        let thrice = host.call("mcpx_call", count);
        assert_ne!(text(&once), text(&thrice));
        let said = twice["structuredContent"]["result"].to_string();
        assert!(said.contains('2') && text(&thrice).contains('3'), "{once} {twice} {thrice}");
        assert_eq!(host.end(), 0);
    }
}

#[test]
fn the_servers_own_tools_pass_through_whole() {
    let world = World::demo().and_fake("fake one", &["--tools", "1"]);
    let mut host = Host::greeted(&world, &["--passthrough"]);
    let listed = host.ask("tools/list", json!({}));
    let tools = listed["tools"].as_array().unwrap();
    let tool = |name: &str| tools.iter().find(|t| t["name"] == name).unwrap_or_else(|| panic!("no {name}"));
    assert!(tool("demo__add")["outputSchema"].is_object(), "{}", tool("demo__add"));
    assert!(tools.iter().all(|t| {
        let name = t["name"].as_str().unwrap();
        name.len() <= 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
    }));
    let mut names: Vec<&str> = tools.iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert!(!names.iter().any(|n| n.starts_with("mcpx_")), "{names:?}");
    let echo = names
        .iter()
        .find(|n| n.starts_with("fake_one__echo_"))
        .expect("a name that was made safe")
        .to_string();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    assert_eq!(text(&host.call(&echo, json!({"text": "hi"}))), "hi");
    let sum = host.call("demo__add", json!({"a": 2, "b": 3}));
    assert_eq!(sum["structuredContent"], json!({"sum": 5}));
    let failed = host.call("demo__fail", json!({"message": "no"}));
    assert_eq!((&failed["isError"], text(&failed)), (&json!(true), "no"));
    let wrong = host.call("demo__add", json!({"a": "x"}));
    assert_eq!(wrong["_meta"]["mcpx/error"]["kind"], "usage");
    let unknown = host.answer("tools/call", json!({"name": "demo__ad"}));
    assert_eq!(unknown["error"]["code"], -32602);
    assert!(unknown["error"]["message"].as_str().unwrap().contains("demo__add"), "{unknown}");
    // Names hold in another session, also for a host that has listed nothing.
    let mut other = Host::greeted(&world, &["--passthrough"]);
    assert_eq!(text(&other.call(&echo, json!({"text": "ho"}))), "ho");
}

#[test]
fn progress_and_cancellation_pass_through() {
    let world = World::fake(&[]);
    let mut host = Host::greeted(&world, &["--passthrough"]);
    let call =
        json!({"name": "fake__progress", "arguments": {"steps": 3}, "_meta": {"progressToken": "p-1"}});
    let _ = host.ask("tools/call", call);
    let reports: Vec<Value> = (0..3).map(|_| host.notified("notifications/progress")).collect();
    assert!(reports.iter().all(|r| r["params"]["progressToken"] == "p-1"), "{reports:?}");
    assert!(reports[0]["params"]["progress"].is_number());
    // A call that the host cancels is not answered, and its server is told.
    let id = host.send("tools/call", json!({"name": "fake__hang", "arguments": {}}));
    wait_until("the call to reach the server", || {
        world.received("fake", "tools/call").iter().any(|m| m["params"]["name"] == "hang").then_some(())
    });
    host.write(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    wait_until("the server to be told", || {
        (!world.received("fake", "notifications/cancelled").is_empty()).then_some(())
    });
    // Ids that nobody knows are nobody's.
    for params in [json!({"requestId": 999}), json!({"requestId": "x"}), json!({}), json!(null)] {
        host.write(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
    }
    assert_eq!(text(&host.call("fake__echo", json!({"text": "still here"}))), "still here");
    assert!(!host.rest().iter().any(|m| m["id"] == id), "a cancelled request is not answered");
}

#[test]
fn each_conversation_is_a_session_that_ends_with_it() {
    let world = World::new().server(
        "demo",
        json!({"command": env!("CARGO_BIN_EXE_mcpx"), "args": ["demo-server"], "mcpx": {"scope": "session"}}),
    );
    let mut one = Host::greeted(&world, &["--passthrough"]);
    let mut two = Host::greeted(&world, &["--passthrough"]);
    let count = |host: &mut Host| text(&host.call("demo__counter", json!({}))).to_owned();
    assert_eq!((count(&mut one), count(&mut one), count(&mut two)), ("1".into(), "2".into(), "1".into()));
    let running = |world: &World| {
        world.processes().iter().filter(|p| p.args.iter().any(|a| a == "demo-server")).count()
    };
    assert!(running(&world) >= 2);
    assert_eq!((one.end(), two.end()), (0, 0));
    world.wait_gone("demo-server");
    // A session that the host names is its own to keep.
    let mut named = Host::greeted(&world, &["--passthrough", "--session", "s1"]);
    assert_eq!(count(&mut named), "1");
    drop(named);
    let mut again = Host::start_with(&world, &["--passthrough"], &[("MCPX_SESSION_ID", "s1")]);
    again.greet("2025-11-25", json!({}));
    assert_eq!(count(&mut again), "2");
}

#[test]
fn a_host_that_leaves_in_the_middle_of_a_call_cancels_it() {
    for leave in [None, Some(libc::SIGTERM), Some(libc::SIGKILL)] {
        let world = World::fake(&[]);
        let mut host = Host::greeted(&world, &["--passthrough"]);
        let id = host.send("tools/call", json!({"name": "fake__hang", "arguments": {}}));
        wait_until("the call to reach the server", || {
            (!world.received("fake", "tools/call").is_empty()).then_some(())
        });
        match leave {
            None => host.close(),
            Some(number) => host.signal(number),
        }
        let code = host.wait();
        assert_eq!(code, leave.map_or(0, |number| -number));
        assert!(!host.rest().iter().any(|m| m["id"] == id));
        wait_until("the server to be told", || {
            (!world.received("fake", "notifications/cancelled").is_empty()).then_some(())
        });
    }
}

#[test]
fn a_daemon_that_goes_is_replaced() {
    let world = World::demo();
    let mut host = Host::greeted(&world, &["--passthrough"]);
    assert_eq!(text(&host.call("demo__echo", json!({"text": "one"}))), "one");
    let _ = world.mcpx(["stop"]).run();
    assert_eq!(text(&host.call("demo__echo", json!({"text": "two"}))), "two");
    let daemon = world.daemons().first().expect("a daemon").pid;
    crate::harness::signal(daemon, libc::SIGKILL);
    world.wait_gone("daemon");
    assert!(host.tools().contains(&"demo__echo".to_owned()));
}

#[test]
fn a_servers_question_is_put_to_a_host_that_answers() {
    let world = World::fake(&[]);
    let form = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    let ask = json!({"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": form}});
    // As a request of its own, where hands were shaken.
    let mut host = Host::start(&world, &["--passthrough"]);
    host.greet("2025-06-18", json!({"elicitation": {}}));
    let id = host.send("tools/call", json!({"name": "fake__ask", "arguments": ask}));
    let question = host.notified("elicitation/create");
    assert_eq!(question["params"], json!({"message": "Who?", "requestedSchema": form}));
    let answer = json!({"action": "accept", "content": {"name": "Ada"}});
    host.write(&json!({"jsonrpc": "2.0", "id": question["id"], "result": answer}));
    assert!(host.answer_to(id)["result"].to_string().contains("Ada"));
    // As part of the result, in the stateless era.
    let mut stateless_host = Host::start(&world, &["--passthrough"]);
    let mut meta = stateless();
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {}});
    let mut call = json!({"name": "fake__ask", "arguments": ask, "_meta": meta});
    let asked = stateless_host.ask("tools/call", call.clone());
    assert_eq!(asked["resultType"], "input_required");
    let (key, request) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(
        (&request["method"], &request["params"]["message"]),
        (&json!("elicitation/create"), &json!("Who?"))
    );
    call["requestState"] = asked["requestState"].clone();
    // What does not fit is asked again.
    call["inputResponses"] =
        json!({key: {"action": "accept", "content": {"name": 5}}, "other": {"action": "accept"}});
    assert_eq!(stateless_host.ask("tools/call", call.clone())["resultType"], "input_required");
    call["inputResponses"] = json!({key: {"action": "accept", "content": {"name": "Bob"}}});
    let done = stateless_host.ask("tools/call", call.clone());
    assert_eq!(done["resultType"], "complete");
    assert!(done.to_string().contains("Bob"), "{done}");
    call["requestState"] = "made up".into();
    assert_eq!(stateless_host.answer("tools/call", call)["error"]["code"], -32602);
    // A host that answers no questions is told of it, and how it can be answered.
    let mut silent = Host::greeted(&world, &["--passthrough"]);
    let told = silent.call("fake__ask", ask);
    assert_eq!(
        (&told["isError"], &told["_meta"]["mcpx/error"]["kind"]),
        (&json!(true), &json!("input-required"))
    );
    assert!(text(&told).contains("mcpx elicit answer"), "{told}");
}

#[test]
fn a_list_that_changes_is_told() {
    let world = World::fake(&["--list-changed"]);
    let mut host = Host::greeted(&world, &["--passthrough"]);
    let before = host.tools().len();
    let _ = host.rest();
    let _ = host.call("fake__grow", json!({}));
    let _ = host.notified("notifications/tools/list_changed");
    // That may have been the one about the first look at the server.
    while host.tools().len() != before + 1 {
        let _ = host.notified("notifications/tools/list_changed");
    }
}

#[test]
fn profiles_filters_and_modes_decide_what_is_offered() {
    let demo =
        |mcpx: Value| json!({"command": env!("CARGO_BIN_EXE_mcpx"), "args": ["demo-server"], "mcpx": mcpx});
    let world = World::new()
        .server("plain", demo(json!({"tools": ["echo", "add"]})))
        .server("work", demo(json!({"profiles": ["work"], "tools": ["echo"]})));
    let names = |args: &[&str]| {
        let mut all = Host::greeted(&world, args).tools();
        all.sort();
        all
    };
    assert_eq!(names(&["--passthrough"]), ["plain__add", "plain__echo"]);
    assert_eq!(names(&["--passthrough", "--profile", "work"]), ["plain__add", "plain__echo", "work__echo"]);
    assert_eq!(names(&["--passthrough", "--profile", "work", "--skip-default"]), ["work__echo"]);
    assert_eq!(names(&["--serve-tools", "call,settings_*"]).len(), 5);
    let both = names(&["--serve-mode", "both", "--serve-tools", "call"]);
    assert_eq!(both, ["mcpx_call", "plain__add", "plain__echo"]);
    // A server that is not selected is not there for mcpx_call either.
    let mut host = Host::greeted(&world, &[]);
    let refused =
        host.call("mcpx_call", json!({"server": "work", "tool": "echo", "arguments": {"text": "x"}}));
    assert_eq!(refused["isError"], true, "{refused}");
    let listed = host.call("mcpx_servers_list", json!({}));
    assert_eq!(listed["structuredContent"]["servers"].as_array().unwrap().len(), 2);
}

#[test]
fn bad_input_is_answered_and_goes_no_further() {
    let world = World::demo();
    let mut host = Host::start(&world, &["--transport-max-body", "64KiB"]);
    for (line, code) in [
        ("nonsense", -32700),
        ("{\"jsonrpc\":\"2.0\",\"id\":1", -32700),
        ("[]", -32600),
        ("17", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"ping\"}", -32600),
        ("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", -32600),
    ] {
        host.write_line(line);
        let answer = host.wait_for(line, |m| m["error"].is_object());
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(code)), "{line}");
    }
    host.write_line(&format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{}\"}}", "x".repeat(100_000)));
    let answer = host.wait_for("a refusal", |m| m["error"].is_object());
    assert!(answer["error"]["message"].as_str().unwrap().contains("transport.maxBody"), "{answer}");
    for line in [
        "",
        "   ",
        "\r",
        "{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{}}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"x\"}",
    ] {
        host.write_line(line);
    }
    assert_eq!(host.answer("tools/list", json!({}))["error"]["code"], -32602, "before initialize");
    assert_eq!(host.answer("initialize", json!({"protocolVersion": 1}))["error"]["code"], -32602);
    assert_eq!(host.greet("1999-01-01", json!({}))["protocolVersion"], "2025-11-25");
    for (method, params, code) in [
        ("no/such", json!({}), -32601),
        ("resources/list", json!({}), -32601),
        ("tools/call", json!({}), -32602),
        ("tools/call", json!({"name": "mcpx_status", "arguments": "x"}), -32602),
        ("tools/list", json!({"cursor": "x"}), -32602),
        ("server/discover", json!({}), -32602),
    ] {
        assert_eq!(host.answer(method, params)["error"]["code"], code, "{method}");
    }
    // In the revision that has batches each message of one is answered.
    let mut old = Host::start(&world, &[]);
    old.greet("2025-03-26", json!({}));
    old.write_line(r#"[{"jsonrpc":"2.0","id":"a","method":"ping"},{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":"b","method":"ping"}]"#);
    for id in ["a", "b"] {
        assert_eq!(old.wait_for(id, |m| m["id"] == id)["result"], json!({}));
    }
    assert_eq!(host.end(), 0);
}

#[test]
fn what_was_asked_before_the_end_of_input_is_answered() {
    let world = World::demo();
    let mut input = vec![
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
        }}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ];
    for id in 1..=5 {
        let arguments = json!({"server": "demo", "tool": "add", "arguments": {"a": id, "b": 1}});
        let params = json!({"name": "mcpx_call", "arguments": arguments});
        input.push(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    }
    let input: String = input.iter().map(|message| format!("{message}\n")).collect();
    let lines = world.mcpx(["serve"]).stdin(input).any_stderr().run().json_lines();
    let mut answered: Vec<u64> = lines.iter().filter_map(|line| line["id"].as_u64()).collect();
    answered.sort_unstable();
    assert_eq!(answered, [0, 1, 2, 3, 4, 5]);
    assert!(lines.iter().all(|line| line["result"]["isError"] != true && line.get("error").is_none()));
}

#[test]
fn a_host_is_answered_why_there_is_nothing_to_serve() {
    let world = World::demo().config("{\"mcpServers\": [");
    let greeting = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}});
    let line = format!("{greeting}\n");
    let output = world.mcpx(["serve"]).stdin(line).status(65).any_stderr().run();
    let answer = output.json();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32603)));
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("never closed") && message.contains(".mcpx.json"), "{message}");
    world.mcpx(["serve"]).stdin("").status(65).any_stderr().stdout("").check();
}
