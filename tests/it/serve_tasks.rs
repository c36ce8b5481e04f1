//! Calls that a host wants as tasks: with `task` in revision 2025-11-25, by the
//! tasks extension in the stateless era; whose they are, and what ends them.

use crate::harness::{Host, Runtime, World, stateless, wait_until};
use serde_json::{Value, json};

const RELATED: &str = "io.modelcontextprotocol/related-task";
const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// Calls a tool as a task; the task.
#[track_caller]
fn begin(host: &mut Host, name: &str, arguments: Value, task: Value) -> Value {
    let result = host.ask("tools/call", json!({"name": name, "arguments": arguments, "task": task}));
    assert!(result["task"]["taskId"].is_string(), "{result}");
    result["task"].clone()
}

fn of(task: &Value) -> Value {
    json!({"taskId": task["taskId"]})
}

#[track_caller]
fn code(host: &mut Host, method: &str, params: Value) -> i64 {
    let answer = host.answer(method, params);
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("{method}: {answer}"))
}

/// What a stateless request of a host that knows tasks brings along.
fn knowing(more: &Value) -> Value {
    let mut capabilities = more.clone();
    capabilities["extensions"] = json!({EXTENSION: {}});
    let mut meta = stateless();
    meta["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    meta
}

#[test]
fn a_call_goes_on_as_a_task_and_its_result_is_fetched() {
    let world = World::demo().with(Runtime::Bun);
    let mut host = Host::start(&world, &["--serve-mode", "both"]);
    let greeting = host.greet("2025-11-25", json!({}));
    let declared = json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
    assert_eq!(greeting["capabilities"]["tasks"], declared);
    let listed = host.ask("tools/list", json!({}));
    let support = |name: &str| {
        let tool = listed["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap();
        tool["execution"]["taskSupport"].clone()
    };
    for name in ["demo__slow", "mcpx_call", "mcpx_exec"] {
        assert_eq!(support(name), "optional", "{name}");
    }
    assert_eq!(support("mcpx_status"), Value::Null);
    let slow = json!({"seconds": 0.3, "steps": 2});
    for (name, arguments, text) in [
        ("demo__slow", slow.clone(), "2 steps"),
        ("mcpx_call", json!({"server": "demo", "tool": "slow", "arguments": slow}), "2 steps"),
        ("mcpx_exec", json!({"code": "await demo.slow({seconds: 0.3}); return 6 * 7"}), "42"),
    ] {
        let task = begin(&mut host, name, arguments, json!({"ttl": 100_000}));
        assert_eq!((&task["status"], &task["ttl"]), (&json!("working"), &json!(100_000)), "{name}: {task}");
        assert!(
            task["createdAt"].as_str().unwrap().ends_with('Z') && task["pollInterval"].is_u64(),
            "{task}"
        );
        let got = host.ask("tasks/get", of(&task));
        assert_eq!(got["taskId"], task["taskId"]);
        assert!(got.get("_meta").is_none(), "{got}");
        // It is waited for; and whoever comes later gets it too.
        for _ in 0..2 {
            let result = host.ask("tasks/result", of(&task));
            assert!(result["content"].to_string().contains(text), "{name}: {result}");
            assert_eq!(result["_meta"][RELATED], of(&task), "{result}");
        }
        let told = host.wait_for("the end", |m| {
            m["method"] == "notifications/tasks/status" && m["params"]["status"] == "completed"
        });
        assert_eq!(told["params"]["taskId"], task["taskId"]);
        assert_eq!(host.ask("tasks/get", of(&task))["status"], "completed");
    }
    // A program is a task of the person's too: `mcpx task result` leaves what `mcpx exec` would have.
    let code = "console.error('aside'); emit(1); throw new Error('no more')";
    let thrown = begin(&mut host, "mcpx_exec", json!({"code": code}), json!({}));
    assert_eq!(host.ask("tasks/result", of(&thrown))["isError"], true);
    let id = thrown["taskId"].as_str().unwrap();
    let _ = world.mcpx(["task", "result", id]).status(1).stderr_has("no more").run();
    let told = host.call("mcpx_task_result", json!({"id": id}));
    assert_eq!((&told["isError"], &told["content"][0]["text"]), (&json!(true), &json!("script: no more")));
    // How a tool fails is how its task does, and its result is the same.
    let failed = begin(&mut host, "demo__fail", json!({"message": "no"}), json!({}));
    assert_eq!(host.ask("tasks/result", of(&failed))["isError"], true);
    assert_eq!(host.ask("tasks/get", of(&failed))["status"], "failed");
    let missing = begin(&mut host, "mcpx_call", json!({"server": "demo", "tool": "gone"}), json!({}));
    let result = host.ask("tasks/result", of(&missing));
    assert_eq!(result["_meta"]["mcpx/error"]["kind"], "not-found", "{result}");
    assert_eq!(host.ask("tasks/list", json!({}))["tasks"].as_array().unwrap().len(), 6);
    assert_eq!(host.end(), 0);
}

#[test]
fn tasks_are_cancelled_once_and_wrong_ones_refused() {
    let world = World::fake(&[]);
    let mut host = Host::greeted(&world, &["--serve-mode", "both"]);
    let task = begin(&mut host, "fake__hang", json!({}), json!({}));
    wait_until("the call to arrive", || world.received("fake", "tools/call").pop());
    assert_eq!(host.ask("tasks/cancel", of(&task))["status"], "cancelled");
    wait_until("the server to be told", || world.received("fake", "notifications/cancelled").pop());
    assert_eq!(host.ask("tasks/get", of(&task))["status"], "cancelled");
    assert_eq!(code(&mut host, "tasks/cancel", of(&task)), -32602, "a second time");
    assert_eq!(code(&mut host, "tasks/result", of(&task)), -32600);
    for (method, params, expected) in [
        ("tasks/get", json!({"taskId": "t-000000"}), -32602),
        ("tasks/get", json!({"taskId": 7}), -32602),
        ("tasks/get", json!({}), -32602),
        ("tasks/result", json!({"taskId": ""}), -32602),
        ("tasks/cancel", json!({"taskId": "../x?y=z"}), -32602),
        ("tasks/list", json!({"cursor": "x"}), -32602),
        ("tasks/update", of(&task), -32601),
        ("tasks/nothing", of(&task), -32601),
    ] {
        assert_eq!(code(&mut host, method, params.clone()), expected, "{method} {params}");
    }
    let call = |name: &str, task: Value| json!({"name": name, "arguments": {}, "task": task});
    for wrong in [json!({"ttl": -1}), json!({"ttl": "1h"}), json!({"ttl": true}), json!([]), json!("x")] {
        assert_eq!(code(&mut host, "tools/call", call("fake__pid", wrong.clone())), -32602, "{wrong}");
    }
    assert_eq!(code(&mut host, "tools/call", call("mcpx_status", json!({}))), -32601);
    // A task is kept for no time at all by nobody, and not for ever.
    for (ttl, kept) in [(json!(0), 60_000), (json!(1e300), 3_600_000), (Value::Null, 3_600_000)] {
        let task = begin(&mut host, "fake__pid", json!({}), json!({"ttl": ttl}));
        assert_eq!(task["ttl"], kept, "{task}");
    }
    // A result that is waited for by a request that is cancelled is there for the next one.
    let task = begin(&mut host, "fake__sleep", json!({"ms": 300}), json!({}));
    let id = host.send("tasks/result", of(&task));
    host.write(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    assert!(host.ask("tasks/result", of(&task))["content"].is_array());
    // Revisions before have no tasks, and what they do not know is ignored.
    let mut old = Host::start(&world, &["--passthrough"]);
    assert!(old.greet("2025-06-18", json!({}))["capabilities"].get("tasks").is_none());
    assert!(old.ask("tools/call", call("fake__pid", json!({})))["content"].is_array());
    assert_eq!(code(&mut old, "tasks/list", json!({})), -32601);
}

#[test]
fn a_task_is_its_hosts_and_ends_with_it() {
    let world = World::fake(&[]);
    let mut host = Host::greeted(&world, &["--passthrough"]);
    let task = begin(&mut host, "fake__hang", json!({}), json!({}));
    let mut other = Host::greeted(&world, &["--passthrough"]);
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        assert_eq!(code(&mut other, method, of(&task)), -32602, "{method}");
    }
    assert_eq!(other.ask("tasks/list", json!({}))["tasks"], json!([]));
    assert_eq!(host.ask("tasks/get", of(&task))["status"], "working");
    wait_until("the call to arrive", || world.received("fake", "tools/call").pop());
    assert_eq!(host.end(), 0);
    wait_until("the server to be told", || world.received("fake", "notifications/cancelled").pop());
    // A session that was named outlives its host, and so does what it began.
    let named = || Host::greeted(&world, &["--passthrough", "--session", "mine"]);
    let mut host = named();
    let task = begin(&mut host, "fake__sleep", json!({"ms": 500}), json!({}));
    assert_eq!(host.end(), 0);
    let mut again = named();
    assert!(again.ask("tasks/result", of(&task))["content"].is_array());
    // The person at the machine sees it as any other.
    let listed = world.mcpx(["--json", "task"]).run().json();
    let id = task["taskId"].as_str().unwrap();
    assert!(listed["tasks"].as_array().unwrap().iter().any(|row| row["id"] == id), "{listed}");
    let _ = world.mcpx(["task", "result", id]).run();
}

#[test]
fn a_task_that_is_asked_something_puts_it_to_the_host() {
    let world = World::fake(&[]);
    let form = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    let ask = json!({"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": form}});
    let mut host = Host::start(&world, &["--passthrough"]);
    host.greet("2025-11-25", json!({"elicitation": {}}));
    let task = begin(&mut host, "fake__ask", ask.clone(), json!({}));
    let told = host.wait_for("the question", |m| m["params"]["status"] == "input_required");
    assert_eq!(told["params"]["statusMessage"], "Who?");
    assert_eq!(host.ask("tasks/get", of(&task))["status"], "input_required");
    let waiting = host.send("tasks/result", of(&task));
    let question = host.notified("elicitation/create");
    assert_eq!(question["params"]["_meta"][RELATED], of(&task), "{question}");
    let answer = json!({"action": "accept", "content": {"name": "Ada"}});
    host.write(&json!({"jsonrpc": "2.0", "id": question["id"], "result": answer}));
    assert!(host.answer_to(waiting)["result"].to_string().contains("Ada"));
    // Of a host that answers nothing it is not asked; somebody else can.
    let mut silent = Host::greeted(&world, &["--passthrough"]);
    let task = begin(&mut silent, "fake__ask", ask, json!({}));
    let said = wait_until("the question to be told", || {
        let task = silent.ask("tasks/get", of(&task));
        assert_eq!(task["status"], "working", "{task}");
        task["statusMessage"].as_str().map(str::to_owned)
    });
    let id = said.split_once("mcpx elicit show ").expect("how to see it").1.trim_end_matches(')').to_owned();
    let waiting = silent.send("tasks/result", of(&task));
    let _ = world.mcpx(["elicit", "answer", &id, r#"{"name":"Bob"}"#]).run();
    assert!(silent.answer_to(waiting)["result"].to_string().contains("Bob"));
}

#[test]
fn in_the_stateless_era_what_takes_its_time_becomes_a_task() {
    let world = World::fake(&[]).setting("serve", json!({"taskAfter": "50ms"}));
    let mut host = Host::start(&world, &["--serve-mode", "both"]);
    let meta = knowing(&json!({}));
    let found = host.ask("server/discover", json!({"_meta": stateless()}));
    assert_eq!(found["capabilities"]["extensions"], json!({EXTENSION: {}}));
    assert!(found["capabilities"].get("tasks").is_none(), "{found}");
    let listed = host.ask("tools/list", json!({"_meta": stateless()}));
    assert!(!listed.to_string().contains("taskSupport"), "{listed}");
    let call = |name: &str, arguments: Value, meta: &Value| json!({"name": name, "arguments": arguments, "_meta": meta});
    let hang = |meta: &Value| call("fake__hang", json!({}), meta);
    let begun = host.ask("tools/call", hang(&meta));
    assert_eq!((&begun["resultType"], &begun["status"]), (&json!("task"), &json!("working")), "{begun}");
    assert!(begun["ttlMs"].is_u64() && begun["pollIntervalMs"].is_u64() && begun.get("ttl").is_none());
    let of = |task: &Value, meta: &Value| json!({"taskId": task["taskId"], "_meta": meta});
    let got = host.ask("tasks/get", of(&begun, &meta));
    assert_eq!((&got["resultType"], &got["status"]), (&json!("complete"), &json!("working")));
    // Only who declares the extension has it.
    let refused = host.answer("tasks/get", of(&begun, &stateless()))["error"].clone();
    assert_eq!(refused["code"], -32021);
    assert_eq!(refused["data"]["requiredCapabilities"]["extensions"], json!({EXTENSION: {}}));
    let sleep = json!({"ms": 200});
    let plain = host.ask("tools/call", call("fake__sleep", sleep.clone(), &stateless()));
    assert_eq!(plain["resultType"], "complete", "{plain}");
    // Who listens hears what becomes of it.
    host.send(
        "subscriptions/listen",
        json!({"_meta": meta, "notifications": {"taskIds": [begun["taskId"], "t-000000"]}}),
    );
    let heard = host.notified("notifications/subscriptions/acknowledged");
    assert_eq!(heard["params"]["notifications"], json!({"taskIds": [begun["taskId"]]}));
    let acknowledged = host.ask("tasks/cancel", of(&begun, &meta));
    assert!(acknowledged.get("taskId").is_none() && acknowledged["resultType"] == "complete");
    let told = host.notified("notifications/tasks");
    assert_eq!(told["params"]["status"], "cancelled", "{told}");
    host.ask("tasks/cancel", of(&begun, &meta));
    assert_eq!(code(&mut host, "tasks/cancel", json!({"taskId": "t-000000", "_meta": meta})), -32602);
    for gone in ["tasks/list", "tasks/result"] {
        assert_eq!(code(&mut host, gone, of(&begun, &meta)), -32601, "{gone}");
    }
    // A result comes with the task.
    let begun = host.ask("tools/call", call("fake__sleep", sleep, &meta));
    let done = wait_until("the result", || {
        Some(host.ask("tasks/get", of(&begun, &meta))).filter(|task| task["status"] == "completed")
    });
    assert!(done["result"]["content"].is_array(), "{done}");
}

#[test]
fn a_stateless_task_is_answered_by_update() {
    let world = World::fake(&[]).setting("serve", json!({"taskAfter": 0}));
    let mut host = Host::start(&world, &["--passthrough"]);
    let meta = knowing(&json!({"elicitation": {}}));
    let form = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    let ask = json!({"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": form}});
    let begun = host.ask("tools/call", json!({"name": "fake__ask", "arguments": ask, "_meta": meta}));
    let of = |more: Value| {
        let mut params = json!({"taskId": begun["taskId"], "_meta": meta});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    };
    let asks = wait_until("the question", || {
        Some(host.ask("tasks/get", of(json!({})))).filter(|task| task["status"] == "input_required")
    });
    let (key, request) = asks["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(request["params"]["message"], "Who?");
    // What fits nothing changes nothing.
    for wrong in [
        json!({}),
        json!({"other": {"action": "accept"}}),
        json!({key: {"action": "accept", "content": {"name": 5}}}),
    ] {
        assert_eq!(host.ask("tasks/update", of(json!({"inputResponses": wrong})))["resultType"], "complete");
        assert_eq!(host.ask("tasks/get", of(json!({})))["status"], "input_required");
    }
    let answer = json!({"inputResponses": {key: {"action": "accept", "content": {"name": "Ada"}}}});
    let acknowledged = host.ask("tasks/update", of(answer.clone()));
    assert!(acknowledged.get("status").is_none(), "{acknowledged}");
    let done = wait_until("the result", || {
        Some(host.ask("tasks/get", of(json!({})))).filter(|task| task["status"] == "completed")
    });
    assert!(done["result"].to_string().contains("Ada"), "{done}");
    assert_eq!(
        host.ask("tasks/update", of(answer))["resultType"],
        "complete",
        "late, and nothing to anybody"
    );
}
