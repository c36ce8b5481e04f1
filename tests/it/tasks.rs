//! Tools that a server carries out as tasks, and not otherwise: called like any
//! other, listed, cancelled, and never begun twice.

use crate::harness::{Runtime, World, tools, wait_until};
use serde_json::{Value, json};

fn world() -> World {
    World::fake(&["--tasks"])
}

fn only_task(world: &World) -> Value {
    wait_until("the task to be listed", || {
        let tasks = world.mcpx(["--json", "task"]).any_stderr().run().json();
        tasks["tasks"].as_array()?.first().cloned()
    })
}

#[test]
fn a_tool_that_is_a_task_is_called_like_any_other() {
    for runtime in [Runtime::Deno, Runtime::Bun, Runtime::Node26] {
        let world = world().with(runtime);
        world.mcpx(["call", "fake.research"]).stdout("the result of t-short\n").check();
        assert_eq!(world.received("fake", "tasks/result").len(), 1);
        let task = only_task(&world);
        assert_eq!((&task["status"], &task["tool"]), (&json!("completed"), &json!("research")), "{task}");
        let code = "const said = []; const text = await fake.research({}, { onprogress: (p) => said.push(p.message) }); return [text, said[0]]";
        let said = world.mcpx(["exec", code]).run().json();
        assert_eq!(said, json!(["the result of t-short", "step 0"]));
        assert_eq!(world.received("fake", "tools/call").len(), 2);
    }
}

#[test]
fn it_is_seen_and_cancelled_from_elsewhere() {
    let world = world();
    let running = world.mcpx(["call", "fake.research", "as=long"]).start();
    let task = only_task(&world);
    assert_eq!((&task["status"], &task["server"]), (&json!("working"), &json!("fake")), "{task}");
    let id = task["id"].as_str().unwrap();
    // The answer tells what became of it.
    let cancelled = world.mcpx(["--json", "task", "cancel", id]).run().json();
    let told = (&cancelled["task"]["status"], &cancelled["task"]["stopped"]);
    assert_eq!(told, (&json!("cancelled"), &json!(true)), "{cancelled}");
    world.mcpx(["task", "cancel", id]).stderr_has("nothing was cancelled").stdout_has("cancelled").check();
    let output = running.wait();
    assert_eq!(output.status, 130, "{output}");
    wait_until("the server to be told", || world.received("fake", "tasks/cancel").pop());
    // A time limit holds for all of it.
    let words = ["call", "--timeout", "300ms", "fake.research", "as=long"];
    world.mcpx(words).status(124).any_stderr().stdout("").check();
    wait_until("the server to be told", || (world.received("fake", "tasks/cancel").len() == 2).then_some(()));
}

#[test]
fn a_server_that_dies_with_the_task_leaves_its_outcome_unknown() {
    let world = world();
    world.mcpx(["call", "fake.research", "as=crash"]).status(76).stderr_has("not sent again").check();
    assert_eq!(world.received("fake", "tools/call").len(), 1, "it is never begun twice");
}

#[test]
fn a_task_that_wants_input_asks_in_the_usual_way() {
    let world = world();
    let output = world.mcpx(["--json", "call", "fake.research", "as=ask"]).status(75).any_stderr().run();
    let asked = output.json()["error"]["raw"]["inputRequired"].clone();
    let (id, task) = (asked["questions"][0]["id"].as_str().unwrap(), asked["callId"].as_str().unwrap());
    let _ = world.mcpx(["elicit", "answer", id, r#"{"seats":2}"#]).run();
    world.mcpx(["task", "result", task]).run().says(&["\"seats\":2"]);
}

#[test]
fn a_tool_that_may_be_a_task_is_one_where_it_is_given_long() {
    let world = World::fake(&["--tasks-optional"]);
    world.mcpx(["call", "fake.research"]).stdout("at once\n").check();
    let as_task = "the result of t-short\n";
    world.mcpx(["call", "--timeout", "1h", "fake.research"]).stdout(as_task).check();
    world.mcpx(["call", "--timeout", "0", "fake.research"]).stdout(as_task).check();
    world.mcpx(["call", "--timeout", "1m", "fake.research"]).stdout("at once\n").check();
    let world = world.setting("upstream", json!({"tasks": "always"}));
    world.mcpx(["call", "fake.research"]).stdout(as_task).check();
    let world = world.setting("upstream", json!({"tasks": "never"}));
    world.mcpx(["call", "--timeout", "1h", "fake.research"]).stdout("at once\n").check();
}

#[test]
fn the_extension_of_the_stateless_era_is_known() {
    let world = World::fake(&["--tasks", "--era", "stateless"]).with(Runtime::Deno);
    world.mcpx(["call", "fake.research"]).stdout("the result of t-short\n").check();
    let task = only_task(&world);
    assert_eq!((&task["status"], &task["tool"]), (&json!("completed"), &json!("research")), "{task}");
    let code = "const said = []; const text = await fake.research({}, { onprogress: (p) => said.push(p.message) }); return [text, said[0]]";
    assert_eq!(world.mcpx(["exec", code]).run().json(), json!(["the result of t-short", "step 0"]));
    // A failure is the call's.
    world.mcpx(["call", "fake.research", "as=fail"]).status(1).stderr_has("the job broke off").check();
    // What it wants to know is asked, answered with tasks/update, and collected.
    let output = world.mcpx(["--json", "call", "fake.research", "as=ask"]).status(75).any_stderr().run();
    let asked = output.json()["error"]["raw"]["inputRequired"].clone();
    let (id, task) = (asked["questions"][0]["id"].as_str().unwrap(), asked["callId"].as_str().unwrap());
    let _ = world.mcpx(["elicit", "answer", id, r#"{"seats":2}"#]).run();
    world.mcpx(["task", "result", task]).run().says(&["\"seats\":2"]);
    assert_eq!(world.received("fake", "tasks/update").len(), 1);
    // Who leaves has it cancelled; a server that is gone leaves its outcome unknown.
    world.mcpx(["call", "--timeout", "300ms", "fake.research", "as=long"]).status(124).any_stderr().check();
    wait_until("the server to be told", || world.received("fake", "tasks/cancel").pop());
    world.mcpx(["call", "fake.research", "as=crash"]).status(76).stderr_has("not sent again").check();
    // A server is not told of what it is not to do.
    let world = world.setting("upstream", json!({"tasks": "never"}));
    world.mcpx(["call", "fake.research"]).status(1).stderr_has("needs a client that knows tasks").check();
}

#[test]
fn a_real_server_works_on_a_task() {
    let world = World::new().server("ev", tools::npm_server("everything", &["stdio"]));
    let output = world.mcpx(["call", "ev.simulate-research-query", "topic=rivers"]).run();
    assert!(output.stdout().contains("rivers"), "{output}");
}
