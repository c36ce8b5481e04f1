//! What servers ask in the course of a host's request besides forms, put to the
//! host that made it: a model's words, roots; in either era on either side.

use crate::harness::{Host, Runtime, World, stateless, tools, wait_until};
use serde_json::{Value, json};
use std::path::Path;

const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// The fixture of the conformance suite, spoken to in this revision.
fn fixture(protocol: &str) -> World {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/server-fixture.mjs");
    let server = json!({"command": Runtime::Node22.path(), "args": [script], "mcpx": {"protocol": protocol}});
    World::new().server("fx", server)
}

/// What a stateless request of a host with these capabilities brings along.
fn meta(capabilities: Value) -> Value {
    let mut meta = stateless();
    meta[CAPABILITIES] = capabilities;
    meta
}

fn words(text: &str) -> Value {
    json!({"role": "assistant", "content": {"type": "text", "text": text}, "model": "m", "stopReason": "endTurn"})
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}"))
}

/// Answers what the host is asked next, which is to be this.
fn answer(host: &mut Host, method: &str, result: &Value) -> Value {
    let asked = host.notified(method);
    host.write(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}));
    asked
}

#[test]
fn a_host_with_a_model_is_asked_for_its_words() {
    for protocol in ["2025-11-25", "2026-07-28"] {
        let world = fixture(protocol);
        let mut host = Host::start(&world, &["--passthrough"]);
        host.greet("2025-11-25", json!({"sampling": {}, "roots": {}}));
        let call = json!({"name": "fx__test_sampling", "arguments": {"prompt": "Say hi"}});
        let id = host.send("tools/call", call.clone());
        let asked = answer(&mut host, "sampling/createMessage", &words("hi"));
        assert_eq!(asked["params"]["messages"][0]["content"]["text"], "Say hi", "{protocol}");
        assert_eq!(text(&host.answer_to(id)["result"]), "LLM response: hi", "{protocol}");
        // A host that refuses has the server hear of it.
        let id = host.send("tools/call", call.clone());
        let asked = host.notified("sampling/createMessage");
        host.write(&json!({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -1, "message": "no"}}));
        let refused = host.answer_to(id);
        assert!(refused.to_string().contains("refused"), "{protocol}: {refused}");
        // In the stateless era they are part of the result.
        let mut again = call.clone();
        again["_meta"] = meta(json!({"sampling": {}}));
        let asked = host.ask("tools/call", again.clone());
        let (key, request) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
        assert_eq!(request["method"], "sampling/createMessage", "{protocol}");
        again["requestState"] = asked["requestState"].clone();
        again["inputResponses"] = json!({key: words("ho")});
        assert_eq!(text(&host.ask("tools/call", again)), "LLM response: ho", "{protocol}");
        // Whoever has none is not asked.
        let mut silent = Host::greeted(&world, &["--passthrough"]);
        let refused = silent.answer("tools/call", call);
        assert!(refused.to_string().contains("sampling/createMessage"), "{protocol}: {refused}");
        assert!(
            world.mcpx(["--json", "elicit", "list"]).run().json()["questions"].as_array().unwrap().is_empty()
        );
    }
}

#[test]
fn what_a_server_asks_at_once_is_asked_at_once_and_under_its_own_keys() {
    let world = fixture("2026-07-28");
    let mut host = Host::start(&world, &["--passthrough"]);
    let able = json!({"sampling": {}, "roots": {}, "elicitation": {"form": {}}});
    let mut call = json!({"name": "fx__test_input_required_result_multiple_inputs", "arguments": {}, "_meta": meta(able.clone())});
    let asked = host.ask("tools/call", call.clone());
    let mut keys: Vec<&String> = asked["inputRequests"].as_object().unwrap().keys().collect();
    keys.sort();
    assert_eq!(keys, ["client_roots", "greeting", "user_name"]);
    // One answer is not enough: the others are asked for again.
    call["requestState"] = asked["requestState"].clone();
    call["inputResponses"] = json!({"greeting": words("hello")});
    let asked = host.ask("tools/call", call.clone());
    assert_eq!(asked["inputRequests"].as_object().unwrap().len(), 2, "{asked}");
    call["requestState"] = asked["requestState"].clone();
    let name = json!({"action": "accept", "content": {"name": "Ada"}});
    call["inputResponses"] = json!({"user_name": name, "client_roots": {"roots": [{"uri": "file:///mine"}]}});
    let done = host.ask("tools/call", call);
    for part in ["hello", "Ada", "file:///mine"] {
        assert!(text(&done).contains(part), "{done}");
    }
    // A prompt may ask as well; with a handshake the host is asked in requests.
    let mut get = json!({"name": "fx__test_input_required_result_prompt", "_meta": meta(able)});
    let asked = host.ask("prompts/get", get.clone());
    assert_eq!(asked["inputRequests"]["user_context"]["method"], "elicitation/create");
    get["requestState"] = asked["requestState"].clone();
    get["inputResponses"] = json!({"user_context": {"action": "accept", "content": {"context": "tests"}}});
    assert_eq!(host.ask("prompts/get", get)["messages"][0]["content"]["text"], "Context: tests");
    let mut old = Host::start(&world, &["--passthrough"]);
    old.greet("2025-06-18", json!({"elicitation": {}}));
    let id = old.send("prompts/get", json!({"name": "fx__test_input_required_result_prompt"}));
    answer(&mut old, "elicitation/create", &json!({"action": "accept", "content": {"context": "old"}}));
    assert_eq!(old.answer_to(id)["result"]["messages"][0]["content"]["text"], "Context: old");
    // A server hears what the host can do, and says what it lacks.
    let lacking = json!({"name": "fx__test_missing_capability", "arguments": {}, "_meta": meta(json!({}))});
    let refused = host.answer("tools/call", lacking);
    assert_eq!(refused["error"]["code"], -32021);
    assert_eq!(refused["error"]["data"]["requiredCapabilities"], json!({"sampling": {}}));
}

#[test]
fn a_question_that_somebody_else_answers_is_taken_back() {
    let world = fixture("2025-11-25");
    let mut host = Host::start(&world, &["--passthrough"]);
    host.greet("2025-11-25", json!({"elicitation": {}}));
    let id = host.send("tools/call", json!({"name": "fx__test_streaming_elicitation", "arguments": {}}));
    let asked = host.notified("elicitation/create");
    let open = wait_until("the question", || {
        let listed = world.mcpx(["--json", "elicit", "list"]).run().json();
        listed["questions"][0]["id"].as_str().map(str::to_owned)
    });
    let _ = world.mcpx(["elicit", "answer", &open, r#"{"name": "Eve"}"#]).run();
    let taken_back = host.notified("notifications/cancelled");
    assert_eq!(taken_back["params"]["requestId"], asked["id"]);
    assert!(text(&host.answer_to(id)["result"]).contains("Eve"));
    // A host that cancels its call takes the question from everybody.
    let id = host.send("tools/call", json!({"name": "fx__test_streaming_elicitation", "arguments": {}}));
    let asked = host.notified("elicitation/create");
    host.write(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    assert_eq!(host.notified("notifications/cancelled")["params"]["requestId"], asked["id"]);
    wait_until("the question to be gone", || {
        let listed = world.mcpx(["--json", "elicit", "list"]).run().json();
        listed["questions"].as_array().unwrap().is_empty().then_some(())
    });
}

#[test]
fn servers_that_ask_what_there_is_are_told_where_the_setting_says_so() {
    let world = World::new().server("ev", tools::npm_server("everything", &["stdio"]));
    let mut host = Host::start(&world, &["--passthrough"]);
    host.greet("2025-11-25", json!({"sampling": {}}));
    assert!(!host.tools().iter().any(|name| name == "ev__trigger-sampling-request"));
    let world = World::new()
        .server("ev", tools::npm_server("everything", &["stdio"]))
        .setting("sampling", json!({"hosts": true}));
    let mut host = Host::start(&world, &["--passthrough"]);
    host.greet("2025-11-25", json!({"sampling": {}}));
    assert!(host.tools().iter().any(|name| name == "ev__trigger-sampling-request"), "{:?}", host.tools());
    let call = json!({"name": "ev__trigger-sampling-request", "arguments": {"prompt": "x", "maxTokens": 5}});
    let id = host.send("tools/call", call);
    answer(&mut host, "sampling/createMessage", &words("forty-two"));
    assert!(host.answer_to(id).to_string().contains("forty-two"));
}

#[test]
fn an_answer_that_does_not_fit_ends_the_question_and_not_the_call() {
    let world = World::fake(&[]);
    let mut host = Host::start(&world, &["--passthrough"]);
    host.greet("2025-11-25", json!({"elicitation": {"form": {}, "url": {}}}));
    let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    let form = json!({"message": "How many?", "requestedSchema": schema});
    let url =
        json!({"message": "Open it", "mode": "url", "url": "https://example.com/", "elicitationId": "e"});
    for (params, said, heard) in [
        (form, json!({"action": "accept", "content": {"n": "five"}}), "cancel"),
        // A URL has no form to fill in; that some hosts send an empty one changes nothing.
        (url, json!({"action": "accept", "content": {}}), "accept"),
    ] {
        let arguments = json!({"method": "elicitation/create", "params": params});
        let id = host.send("tools/call", json!({"name": "fake__ask", "arguments": arguments}));
        answer(&mut host, "elicitation/create", &said);
        let result = &host.answer_to(id)["result"];
        assert!(text(result).contains(&format!("\"action\":\"{heard}\"")), "{result}");
        let open = world.mcpx(["--json", "elicit", "list"]).run().json();
        assert_eq!(open["questions"], json!([]));
    }
}
