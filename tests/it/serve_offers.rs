//! What servers offer besides tools, and what they say of themselves, passed
//! through to a host: resources, prompts, completion, subscriptions, log records.

use crate::harness::{Host, Runtime, World, stateless, tools, wait_until};
use serde_json::{Value, json};
use std::path::Path;

/// The everything server, and one that has nothing but tools.
fn everything() -> World {
    World::fake(&[]).server("ev", tools::npm_server("everything", &["stdio"]))
}

/// The server that the conformance suite's scenarios are passed through to.
fn fixture() -> World {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/server-fixture.mjs");
    World::new().server("fx", json!({"command": Runtime::Node22.path(), "args": [script]}))
}

fn uris(listed: &Value, list: &str, at: &str) -> Vec<String> {
    let items = listed[list].as_array().unwrap_or_else(|| panic!("no {list}: {listed}"));
    items.iter().map(|item| item[at].as_str().unwrap().to_owned()).collect()
}

#[test]
fn resources_are_listed_read_and_watched_under_uris_that_find_back() {
    let world = everything();
    let mut host = Host::start(&world, &["--passthrough"]);
    let said = host.greet("2025-11-25", json!({}));
    assert_eq!(said["capabilities"]["resources"], json!({"subscribe": true, "listChanged": true}));
    let listed = host.ask("resources/list", json!({}));
    let all = uris(&listed, "resources", "uri");
    assert!(all.len() > 3 && all.iter().all(|uri| uri.starts_with("mcpx://ev/demo://")), "{all:?}");
    assert!(listed["resources"][0].get("server").is_none() && listed["resources"][0]["name"].is_string());
    let read = host.ask("resources/read", json!({"uri": all[0]}));
    assert_eq!(read["contents"][0]["uri"], all[0]);
    assert!(read["contents"][0]["text"].as_str().unwrap().len() > 10, "{read}");
    // A template, filled in; and the server's own URI, as its tools' results have it.
    let templates = host.ask("resources/templates/list", json!({}));
    let template = uris(&templates, "resourceTemplates", "uriTemplate").remove(0);
    assert!(template.starts_with("mcpx://ev/") && template.contains("{resourceId}"), "{template}");
    let uri = template.replace("{resourceId}", "3");
    let read = host.ask("resources/read", json!({"uri": uri}));
    assert_eq!(read["contents"][0]["uri"], uri);
    let own = uri.trim_start_matches("mcpx://ev/");
    assert_eq!(host.ask("resources/read", json!({"uri": own}))["contents"][0]["uri"], own);
    // What is nowhere.
    for uri in ["mcpx://none/x://y", "mcpx://ev/nothing://there", "nothing://there"] {
        let refused = host.answer("resources/read", json!({"uri": uri}));
        assert!(refused["error"]["code"].as_i64().is_some_and(|code| code < -32000), "{refused}");
    }
    // Changes come under the URI that the host subscribed with.
    assert_eq!(host.ask("resources/subscribe", json!({"uri": all[0]})), json!({}));
    let _ = host.call("ev__toggle-subscriber-updates", json!({}));
    let heard = host.notified("notifications/resources/updated");
    assert_eq!(heard["params"]["uri"], all[0]);
    assert_eq!(host.ask("resources/unsubscribe", json!({"uri": all[0]})), json!({}));
    assert_eq!(host.answer("resources/list", json!({"cursor": "x"}))["error"]["code"], -32602);
    assert_eq!(host.end(), 0);
}

#[test]
fn a_host_of_the_stateless_era_reads_and_watches_too() {
    let world = everything();
    let mut host = Host::start(&world, &["--passthrough"]);
    let found = host.ask("server/discover", json!({"_meta": stateless()}));
    assert!(found["capabilities"]["prompts"].is_object(), "{found}");
    let listed = host.ask("resources/list", json!({"_meta": stateless()}));
    assert!(listed["ttlMs"].is_u64() && listed["resultType"] == "complete", "{listed}");
    let uri = uris(&listed, "resources", "uri").remove(0);
    let read = host.ask("resources/read", json!({"uri": uri, "_meta": stateless()}));
    assert_eq!((&read["resultType"], &read["cacheScope"]), (&json!("complete"), &json!("private")));
    let wanted = json!({"promptsListChanged": true, "resourceSubscriptions": [uri, "mcpx://none/x"]});
    let id = host.send("subscriptions/listen", json!({"_meta": stateless(), "notifications": wanted}));
    let heard = host.notified("notifications/subscriptions/acknowledged");
    let honoured = json!({"promptsListChanged": true, "resourceSubscriptions": [uri]});
    assert_eq!(heard["params"]["notifications"], honoured);
    let call = json!({"name": "ev__toggle-subscriber-updates", "arguments": {}, "_meta": stateless()});
    let _ = host.ask("tools/call", call);
    let heard = host.notified("notifications/resources/updated");
    assert_eq!(heard["params"]["uri"], uri);
    assert_eq!(heard["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
    // These went with the handshake.
    for gone in ["resources/subscribe", "resources/unsubscribe", "logging/setLevel"] {
        let refused = host.answer(gone, json!({"uri": uri, "level": "info", "_meta": stateless()}));
        assert_eq!(refused["error"]["code"], -32601, "{gone}");
    }
    assert_eq!(host.end(), 0);
}

#[test]
fn prompts_are_got_and_completed_under_the_hosts_names() {
    let world = everything();
    let mut host = Host::greeted(&world, &["--passthrough"]);
    let listed = host.ask("prompts/list", json!({}));
    let prompts = listed["prompts"].as_array().unwrap();
    let args = prompts.iter().find(|p| p["name"] == "ev__args-prompt").unwrap_or_else(|| panic!("{listed}"));
    assert_eq!(args["arguments"][0]["name"], "city");
    let got = host
        .ask("prompts/get", json!({"name": "ev__args-prompt", "arguments": {"city": "Bern", "state": "BE"}}));
    assert!(got["messages"][0]["content"]["text"].as_str().unwrap().contains("Bern"), "{got}");
    let unknown = host.answer("prompts/get", json!({"name": "ev__arg-prompt"}));
    assert_eq!(unknown["error"]["code"], -32602);
    assert!(unknown["error"]["message"].as_str().unwrap().contains("ev__args-prompt"), "{unknown}");
    let complete = |host: &mut Host, reference: Value, name: &str, value: &str| {
        let argument = json!({"name": name, "value": value});
        host.ask("completion/complete", json!({"ref": reference, "argument": argument}))
    };
    let reference = json!({"type": "ref/prompt", "name": "ev__completable-prompt"});
    let found = complete(&mut host, reference, "department", "E");
    assert!(found["completion"]["values"].as_array().unwrap().contains(&json!("Engineering")), "{found}");
    let templates = host.ask("resources/templates/list", json!({}));
    let template = uris(&templates, "resourceTemplates", "uriTemplate").remove(0);
    let found = complete(&mut host, json!({"type": "ref/resource", "uri": template}), "resourceId", "1");
    assert_eq!(found["completion"]["values"], json!(["1"]), "{found}");
    // A host that is offered mcpx's own tools alone has none of these.
    let mut code = Host::greeted(&world, &[]);
    assert_eq!(code.answer("prompts/list", json!({}))["error"]["code"], -32601);
}

#[test]
fn what_a_server_logs_in_a_call_reaches_the_host_that_called() {
    let world = fixture();
    let (mut one, mut two) =
        (Host::greeted(&world, &["--passthrough"]), Host::start(&world, &["--passthrough"]));
    two.greet("2025-06-18", json!({}));
    assert_eq!(two.ask("logging/setLevel", json!({"level": "debug"})), json!({}));
    assert_eq!(two.answer("logging/setLevel", json!({"level": "loud"}))["error"]["code"], -32602);
    let _ = two.ask("tools/list", json!({}));
    let _ = one.call("fx__test_tool_with_logging", json!({}));
    for data in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        let heard = one.notified("notifications/message");
        assert_eq!(heard["params"], json!({"level": "info", "logger": "fx", "data": data}));
    }
    // The other one hears of its own call, and first of that: nothing of the first host's came to it.
    let _ = two.call("fx__test_logging_tool", json!({}));
    assert_eq!(two.notified("notifications/message")["params"]["data"], "logged");
    // Below the level that a host wants is nothing to it; what it wants again comes first.
    let _ = one.ask("logging/setLevel", json!({"level": "error"}));
    let _ = one.call("fx__test_tool_with_logging", json!({}));
    let _ = one.ask("logging/setLevel", json!({"level": "info"}));
    let _ = one.call("fx__test_logging_tool", json!({}));
    let heard = one.wait_for("the next record", |m| {
        m["method"] == "notifications/message" && m["params"]["data"] != "Tool execution completed"
    });
    assert_eq!(heard["params"]["data"], "logged", "{heard}");
    let _ = one.call("fx__test_trigger_tool_change", json!({}));
    let _ = two.notified("notifications/tools/list_changed");
}

#[test]
fn nothing_is_started_to_hear_that_it_has_no_resources() {
    let world = World::fake(&[]);
    let mut host = Host::greeted(&world, &["--passthrough"]);
    let _ = host.ask("tools/list", json!({}));
    let _ = world.mcpx(["stop"]).run();
    wait_until("the server to end", || {
        (!world.processes().iter().any(|p| p.args[0].ends_with("fake-mcp"))).then_some(())
    });
    assert_eq!(host.ask("resources/list", json!({}))["resources"], json!([]));
    assert_eq!(host.ask("prompts/list", json!({}))["prompts"], json!([]));
    assert!(!world.processes().iter().any(|p| p.args[0].ends_with("fake-mcp")));
}

#[test]
fn what_a_result_names_can_be_read_here() {
    let world = everything();
    let mut host = Host::greeted(&world, &["--passthrough"]);
    let linked = host.call("ev__get-resource-links", json!({"count": 2}));
    let links: Vec<&str> =
        linked["content"].as_array().unwrap().iter().filter_map(|c| c["uri"].as_str()).collect();
    assert_eq!(links.len(), 2, "{linked}");
    for uri in links {
        assert!(uri.starts_with("mcpx://ev/demo://"), "{uri}");
        assert_eq!(host.ask("resources/read", json!({"uri": uri}))["contents"][0]["uri"], uri);
    }
    let embedded = json!({"resourceType": "Text", "resourceId": 1});
    let embedded = host.call("ev__get-resource-reference", embedded);
    let of = |content: &Value| content["resource"]["uri"].as_str().map(str::to_owned);
    let uri = embedded["content"].as_array().unwrap().iter().find_map(of).expect("a resource");
    assert!(
        host.ask("resources/read", json!({"uri": uri}))["contents"].is_array()
            && uri.starts_with("mcpx://ev/")
    );
    let prompt =
        json!({"name": "ev__resource-prompt", "arguments": {"resourceType": "Text", "resourceId": "1"}});
    let prompt = host.ask("prompts/get", prompt);
    let uri =
        prompt["messages"].as_array().unwrap().iter().find_map(|m| of(&m["content"])).expect("a resource");
    assert!(
        host.ask("resources/read", json!({"uri": uri}))["contents"].is_array()
            && uri.starts_with("mcpx://ev/")
    );
    // With the tools of mcpx a model names the server itself, and the server's own URI is what it takes.
    let mut model = Host::greeted(&world, &["--serve-mode", "both"]);
    let mut alone = Host::greeted(&world, &[]);
    let call = json!({"server": "ev", "tool": "get-resource-links", "arguments": {"count": 1}});
    let link = |result: Value| {
        let all = result["content"].as_array().unwrap();
        all.iter().find_map(|c| c["uri"].as_str()).expect("a link").to_owned()
    };
    let (own, here) = (link(alone.call("mcpx_call", call.clone())), link(model.call("mcpx_call", call)));
    assert_eq!(here, format!("mcpx://ev/{own}"));
    for uri in [own, here] {
        let read = model.call("mcpx_read_resource", json!({"server": "ev", "uri": uri}));
        assert!(read["content"][0].is_object() && read["isError"] != true, "{read}");
    }
}

#[test]
fn a_model_finds_resources_and_prompts_too() {
    let world = everything();
    let mut host = Host::greeted(&world, &[]);
    let text = |result: &Value| result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    let resources = host.call("mcpx_resources", json!({}));
    assert!(text(&resources).starts_with("ev: demo://"), "{resources}");
    assert_eq!(resources["structuredContent"]["resources"][0]["server"], "ev");
    let uri = &resources["structuredContent"]["resources"][0]["uri"];
    assert!(text(&host.call("mcpx_read_resource", json!({"server": "ev", "uri": uri}))).len() > 10);
    assert!(text(&host.call("mcpx_resource_templates", json!({"server": ["ev"]}))).contains("{resourceId}"));
    let prompts = host.call("mcpx_prompts", json!({}));
    assert!(text(&prompts).contains("ev: args-prompt(city, state?)"), "{prompts}");
    let got = json!({"server": "ev", "name": "args-prompt", "arguments": {"city": "Paris"}});
    assert!(host.call("mcpx_get_prompt", got).to_string().contains("Paris"));
    let argument = json!({"name": "department", "value": "E"});
    let of = json!({"type": "ref/prompt", "name": "completable-prompt"});
    let completed = host.call("mcpx_complete", json!({"server": "ev", "ref": of, "argument": argument}));
    assert!(completed["structuredContent"]["completion"]["values"].is_array(), "{completed}");
    let failed = host.call("mcpx_read_resource", json!({"server": "ev", "uri": "no://where"}));
    assert_eq!(failed["isError"], true, "{failed}");
}

#[test]
fn what_a_host_says_along_with_its_request_goes_along() {
    let world = World::fake(&[]);
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let said = json!({"traceparent": trace, "example.org/k": [1.5], "progressToken": "mine",
        "io.modelcontextprotocol/related-task": {"taskId": "x"}});
    let kept = json!({"traceparent": trace, "example.org/k": [1.5]});
    let mut host = Host::greeted(&world, &["--serve-mode", "both"]);
    let call = json!({"server": "fake", "tool": "pid"});
    host.ask("tools/call", json!({"name": "fake__pid", "_meta": said}));
    host.ask("tools/call", json!({"name": "mcpx_call", "arguments": call, "_meta": said}));
    let mut stateless_host = Host::start(&world, &["--passthrough"]);
    let mut meta = stateless();
    meta.as_object_mut().unwrap().extend(said.as_object().unwrap().clone());
    stateless_host.ask("tools/call", json!({"name": "fake__pid", "_meta": meta}));
    host.ask("tools/call", json!({"name": "fake__pid"}));
    let received = world.received("fake", "tools/call");
    for call in &received[..3] {
        let mut meta = call["params"]["_meta"].clone();
        // One of mcpx's own, where the host wants progress.
        meta.as_object_mut().unwrap().remove("progressToken");
        assert_eq!(meta, kept);
        assert_ne!(call["params"]["_meta"]["progressToken"], "mine");
    }
    assert!(received[3]["params"].get("_meta").is_none(), "{}", received[3]);
}

#[test]
fn a_list_does_not_wait_for_a_server_that_starts_slowly() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/server-fixture.mjs");
    let world = World::new().setting("catalog", json!({"wait": "100ms"}));
    let go = world.dir().join("go");
    let wait = "while [ ! -e \"$1\" ]; do sleep 0.05; done; exec \"$2\" \"$3\"";
    let server =
        json!({"command": "/bin/sh", "args": ["-c", wait, "sh", go, Runtime::Node22.path(), script]});
    let world = world.server("fx", server);
    let mut host = Host::greeted(&world, &["--passthrough"]);
    for (method, list) in [("prompts/list", "prompts"), ("resources/list", "resources")] {
        assert_eq!(host.ask(method, json!({}))[list], json!([]), "{method}");
    }
    world.write("go", "");
    for (method, list) in [("prompts/list", "prompts"), ("resources/list", "resources")] {
        let _ = host.notified(&format!("notifications/{list}/list_changed"));
        let listed = wait_until("the list to be whole", || {
            Some(host.ask(method, json!({}))).filter(|listed| listed[list] != json!([]))
        });
        assert!(listed[list].as_array().unwrap().len() > 1, "{listed}");
    }
}
