//! Servers that ask while they work: the question is printed, somebody answers
//! it, and the call's result is collected; in both eras.

use crate::harness::{Output, Runtime, World, free_port, tools, wait_until};
use serde_json::{Value, json};

/// The arguments of the fake server's tool that asks for two seats.
fn seats() -> String {
    let schema = json!({"type": "object", "required": ["seats"], "properties": {
        "seats": {"type": "integer", "minimum": 1, "description": "How many"},
        "class": {"type": "string", "enum": ["first", "second"], "default": "second"}}});
    json!({"method": "elicitation/create", "params": {"message": "Which seats?", "requestedSchema": schema}})
        .to_string()
}

/// Calls the tool that asks; what is printed of the question.
fn asked(world: &World, server: &str) -> Value {
    let tool = format!("{server}.ask");
    let output = world.mcpx(["--json", "call", &tool, &seats()]).status(75).any_stderr().run();
    let error = output.json()["error"].clone();
    assert_eq!(error["kind"], "input-required", "{output}");
    error["raw"]["inputRequired"].clone()
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("a text: {value}")).to_owned()
}

/// What the fake server was told: its tool answers with that.
fn told(output: &Output) -> Value {
    let answer: Value = serde_json::from_str(output.stdout().trim()).expect("JSON");
    answer["result"].clone()
}

#[test]
fn a_question_ends_the_command_and_its_answer_lets_the_call_go_on() {
    let world = World::fake(&[]).and_fake("new", &["--era", "stateless"]);
    for server in ["fake", "new"] {
        let asked = asked(&world, server);
        let (id, task) = (word(&asked["questions"][0]["id"]), word(&asked["callId"]));
        assert_eq!(asked["questions"][0]["message"], "Which seats?");
        let text = word(&asked["text"]);
        for part in ["Which seats?", "seats (integer, required): How many", &id, "mcpx task result", &task] {
            assert!(text.contains(part), "{part} in {text}");
        }
        world.mcpx(["elicit"]).run().says(&[&id, &format!("{server}.ask"), "Which seats?"]);
        world.mcpx(["elicit", "show", &id]).run().says(&["\"minimum\": 1"]);
        world.mcpx(["task"]).run().says(&[&task, "input_required"]);
        // What does not fit is refused, and the question stays.
        world.mcpx(["elicit", "answer", &id, r#"{"seats":0}"#]).status(2).stderr_has("seats").check();
        world.mcpx(["elicit", "answer", &id, r#"{"seats":2}"#]).run().says(&["answered", &task]);
        let output = world.mcpx(["task", "result", &task]).run();
        let expected = json!({"action": "accept", "content": {"seats": 2, "class": "second"}});
        assert_eq!(told(&output), expected);
        // A result may be collected again; the question cannot be answered again.
        assert_eq!(told(&world.mcpx(["task", "result", &task]).run()), expected);
        world.mcpx(["elicit", "decline", &id]).status(2).stderr_has(&id).check();
        world.mcpx(["task"]).run().says(&[&task, "completed"]);
    }
}

#[test]
fn declining_cancelling_and_silence_are_told_apart() {
    let world = World::fake(&[]).setting("elicit", json!({"timeout": "3s"}));
    for action in ["decline", "cancel"] {
        let asked = asked(&world, "fake");
        let (id, task) = (word(&asked["questions"][0]["id"]), word(&asked["callId"]));
        let _ = world.mcpx(["elicit", action, &id]).run();
        assert_eq!(told(&world.mcpx(["task", "result", &task]).run()), json!({"action": action}));
    }
    let task = word(&asked(&world, "fake")["callId"]);
    // With nobody there it would say again what is asked.
    world.mcpx(["task", "result", &task]).status(75).stderr_has("Which seats?").check();
    wait_until("its time to be over", || {
        let open = world.mcpx(["--json", "elicit"]).run().json();
        open["questions"].as_array().unwrap().is_empty().then_some(())
    });
    assert_eq!(told(&world.mcpx(["task", "result", &task]).run()), json!({"action": "cancel"}));
    let events = world.mcpx(["events", "--kind", "elicit.closed"]).run().stdout();
    for outcome in ["decline", "cancel", "expired"] {
        assert!(events.contains(outcome), "{outcome} in {events}");
    }
}

#[test]
fn rules_answer_without_anybody() {
    let rules =
        json!({"*": "decline", "fake.ask": {"action": "accept", "content": {"seats": 4}}, "c*": "cancel"});
    let world = World::fake(&[]).and_fake("other", &[]).and_fake("calm", &["--era", "stateless"]);
    let world = world.setting("elicit", json!({"rules": rules}));
    let of = |server: &str| told(&world.mcpx(["call", &format!("{server}.ask"), &seats()]).run());
    assert_eq!(of("fake"), json!({"action": "accept", "content": {"seats": 4, "class": "second"}}));
    assert_eq!(of("other"), json!({"action": "decline"}));
    assert_eq!(of("calm"), json!({"action": "cancel"}));
    world.mcpx(["elicit"]).any_stderr().stdout("").check();
}

#[test]
fn a_program_ends_with_the_question_and_its_call_goes_on() {
    for runtime in [Runtime::Deno, Runtime::Bun, Runtime::Node26] {
        // A session of its own, and a server that belongs to it: it has to stay for the answer.
        let mut block = json!({"command": env!("CARGO_BIN_EXE_fake-mcp"), "args": []});
        block["mcpx"] = json!({"scope": "session"});
        let world = World::new().server("fake", block).with(runtime);
        let code = format!("return await fake.ask({})", seats());
        let output = world.mcpx(["exec", &code]).status(75).any_stderr().run();
        assert!(output.stderr.contains("Which seats?"), "{output}");
        let tasks = world.mcpx(["--json", "task"]).run().json();
        let task = word(&tasks["tasks"][0]["id"]);
        let questions = world.mcpx(["--json", "elicit"]).run().json();
        let id = word(&questions["questions"][0]["id"]);
        world.mcpx(["elicit", "answer", &id, r#"{"seats":1,"class":"first"}"#]).run().says(&[&task]);
        let output = world.mcpx(["task", "result", &task]).run();
        assert_eq!(told(&output)["content"], json!({"seats": 1, "class": "first"}));
        // Then nothing keeps the session any more.
        world.wait_gone("fake-mcp");
    }
}

#[test]
fn a_caught_question_is_an_error_with_its_kind() {
    let world = World::fake(&[]).with(Runtime::Deno);
    let code = format!(
        "try {{ await fake.ask({}) }} catch (e) {{ return [e.kind, e.raw.inputRequired.questions.length] }}",
        seats()
    );
    assert_eq!(world.mcpx(["exec", &code]).run().json(), json!(["input-required", 1]));
    let task = word(&world.mcpx(["--json", "task"]).run().json()["tasks"][0]["id"]);
    let _ = world.mcpx(["task", "cancel", &task]).run();
    wait_until("the server to be told", || world.received("fake", "notifications/cancelled").pop());
    world.mcpx(["task", "result", &task]).status(130).any_stderr().check();
    world.mcpx(["elicit"]).any_stderr().stdout("").check();
}

#[test]
fn what_cannot_be_answered_here_is_refused_at_once() {
    let world = World::fake(&[]).and_fake("new", &["--era", "stateless"]);
    let arguments = json!({"method": "sampling/createMessage", "params": {"messages": []}}).to_string();
    let output = world.mcpx(["call", "fake.ask", &arguments]).run();
    assert!(output.stdout().contains("-32601") && output.stdout().contains("sampling"), "{output}");
    world.mcpx(["call", "new.ask", &arguments]).status(69).stderr_has("sampling/createMessage").check();
    let roots = json!({"method": "roots/list"}).to_string();
    world.mcpx(["call", "new.ask", &roots]).run().says(&["roots"]);
}

#[test]
fn a_question_outside_of_any_call_waits_to_be_found() {
    let world = World::fake(&["--ask", "elicitation/create"]);
    world.mcpx(["call", "fake.echo", "text=x"]).stdout("x\n").check();
    let question = wait_until("the question", || {
        world.mcpx(["--json", "elicit"]).run().json()["questions"].as_array().unwrap().first().cloned()
    });
    assert_eq!((&question["server"], &question["tool"]), (&json!("fake"), &Value::Null));
    let _ = world.mcpx(["elicit", "cancel", &word(&question["id"])]).run();
    let told = wait_until("the answer", || {
        let text = world.mcpx(["call", "fake.asked"]).run().stdout();
        (text.trim() != "no answer yet").then_some(text)
    });
    assert!(told.contains("\"action\":\"cancel\""), "{told}");
}

#[test]
fn a_real_server_asks_over_http_and_over_its_pipe() {
    let port = free_port();
    let _server = tools::everything_at(port, "streamableHttp");
    let world = World::new()
        .server("web", json!({"url": format!("http://127.0.0.1:{port}/mcp")}))
        .server("pipe", tools::npm_server("everything", &["stdio"]));
    for server in ["web", "pipe"] {
        let tool = format!("{server}.trigger-elicitation-request");
        let output = world.mcpx(["--json", "call", &tool]).status(75).any_stderr().run();
        let asked = output.json()["error"]["raw"]["inputRequired"].clone();
        let question = &asked["questions"][0];
        assert!(question["schema"]["properties"].is_object(), "{question}");
        let (id, task) = (word(&question["id"]), word(&asked["callId"]));
        let _ = world.mcpx(["elicit", "decline", &id]).run();
        world.mcpx(["task", "result", &task]).run().says(&["declin"]);
    }
}

#[test]
fn mistyped_words_get_help() {
    let world = World::fake(&[]);
    world.mcpx(["elicit", "anwser"]).status(2).stderr_has("answer").check();
    world.mcpx(["elicit", "answer", "q-0"]).status(2).stderr_has("no daemon is running").check();
    let asked = asked(&world, "fake");
    let id = word(&asked["questions"][0]["id"]);
    world.mcpx(["elicit", "show", "q-0"]).status(2).stderr_has(&id).check();
    world.mcpx(["elicit", "answer", &id, "{"]).status(2).stderr_has("not JSON").check();
    world.mcpx(["task", "result", "t-0"]).status(2).stderr_has("t-0").check();
    world.mcpx(["call", "--interactive", "fake.echo", "text=x"]).status(2).stderr_has("terminal").check();
}

#[test]
fn a_question_without_a_daemon_does_not_promise_that_it_can_be_answered() {
    let world = World::fake(&[]);
    let command = ["--json", "--no-daemon", "call", "fake.ask", &seats()];
    let said = world.mcpx(command).status(75).any_stderr().run().json()["error"]["message"].to_string();
    assert!(said.contains("Which seats?") && said.contains("--interactive"), "{said}");
    assert!(!said.contains("mcpx elicit") && !said.contains("mcpx task"), "{said}");
}
