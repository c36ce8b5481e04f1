//! Resources, prompts and completion, of a real server and over both transports.

use crate::harness::{Runtime, World, free_port, tools, wait_until};
use serde_json::json;

fn everything() -> World {
    World::new().server("ev", tools::npm_server("everything", &["stdio"]))
}

#[test]
fn resources_are_listed_and_read() {
    let world = everything().server("files", json!({"command": "/nonexistent/server"}));
    let all = world.mcpx(["--json", "resources"]).any_stderr().run().json();
    assert!(all["resources"].as_array().unwrap().len() > 3, "{all}");
    assert_eq!(all["resources"][0]["server"], "ev");
    assert_eq!(all["failures"][0]["server"], "files");
    let uri = all["resources"][0]["uri"].as_str().unwrap().to_owned();
    let text = world.mcpx(["resources", "read", "ev", &uri]).run().stdout();
    assert!(!text.trim().is_empty());
    let whole = world.mcpx(["--json", "resources", "read", "ev", &uri]).run().json();
    assert_eq!(whole["contents"][0]["uri"], uri);
    world.mcpx(["resources", "templates", "ev"]).run().says(&["ev", "{resourceId}"]);
    world
        .mcpx(["resources", "read", "ev", "nothing://there"])
        .any_stderr()
        .output()
        .says(&["nothing://there"]);
    world.mcpx(["resources", "ls", "files"]).status(69).stderr_has("files").check();
    world.mcpx(["resources", "raed", "ev"]).status(2).stderr_has("read").check();
}

#[test]
fn prompts_are_filled_in_and_their_arguments_completed() {
    let port = free_port();
    let _server = tools::everything_at(port, "streamableHttp");
    let world = everything().server("web", json!({"url": format!("http://127.0.0.1:{port}/mcp")}));
    world.mcpx(["prompts"]).run().says(&["ev", "web", "args-prompt(city, state?)"]);
    for server in ["ev", "web"] {
        let prompt = format!("{server}.args-prompt");
        world.mcpx(["prompts", "get", &prompt, "city=Bern", "state=BE"]).run().says(&["user:", "Bern"]);
        world.mcpx(["prompts", "get", &prompt]).any_stderr().output().says(&["city"]);
        let prompt = format!("{server}.completable-prompt");
        let values = world.mcpx(["prompts", "complete", &prompt, "department", "E"]).run().stdout();
        assert!(values.contains("Engineering"), "{values}");
    }
}

#[test]
fn a_resource_that_changes_is_an_event() {
    let world = everything();
    let all = world.mcpx(["--json", "resources", "ls", "ev"]).run().json();
    let uri = all["resources"][0]["uri"].as_str().unwrap().to_owned();
    let _ = world.mcpx(["resources", "subscribe", "ev", &uri]).run();
    let _ = world.mcpx(["call", "ev.toggle-subscriber-updates"]).run();
    wait_until("the update", || {
        let events = world.mcpx(["--json", "events", "--kind", "resource.updated"]).run().stdout();
        events.contains(&uri).then_some(())
    });
    let _ = world.mcpx(["resources", "unsubscribe", "ev", &uri]).run();
}

#[test]
fn what_a_server_logs_is_an_event() {
    let world = everything();
    let _ = world.mcpx(["call", "ev.toggle-simulated-logging"]).run();
    wait_until("a record", || {
        let events = world.mcpx(["--json", "events", "--kind", "server.logged"]).run().stdout();
        events.contains("\"level\"").then_some(())
    });
}

#[test]
fn a_script_reads_resources_and_gets_prompts() {
    let code = "const all = await ev.$resources.list(); const [first] = await ev.$resources.read(all[0].uri); \
        const [template] = await ev.$resources.templates(); const names = (await ev.$prompts.list()).map((p) => p.name); \
        const prompt = await ev.$prompts.get('args-prompt', { city: 'Bern' }); \
        let kind; try { await ev.$resources.read('nothing://there') } catch (e) { kind = [e.name, e.server] } \
        return [first.uri === all[0].uri, typeof template.uriTemplate, names.includes('args-prompt'), prompt.messages[0].content.text, kind]";
    let expect = |found: serde_json::Value, how: &str| {
        let text = found[3].as_str().unwrap_or_default();
        assert!(text.contains("Bern"), "{how}: {found}");
        let rest = [&found[0], &found[1], &found[2], &found[4]];
        assert_eq!(
            rest,
            [&json!(true), &json!("string"), &json!(true), &json!(["ToolError", "ev"])],
            "{how}"
        );
    };
    for runtime in [Runtime::Deno, Runtime::Bun, Runtime::Node26] {
        let world = everything().with(runtime);
        expect(world.mcpx(["exec", code]).run().json(), &format!("{runtime:?}"));
    }
    // Without the socket it asks over HTTP.
    let world = everything().with(Runtime::Bun);
    let code = format!("delete process.env.MCPX_SOCKET; {code}");
    expect(world.mcpx(["exec", &code]).run().json(), "http");
}

#[test]
fn a_python_program_reads_resources_and_gets_prompts() {
    let world = everything();
    world.link("python3", &tools::python());
    let world = world.file(
        "r.py",
        "from mcpx import resources, prompts, ToolError, emit\n\
         all = resources('ev').list()\n\
         emit(resources('ev').read(all[0]['uri'])[0]['uri'] == all[0]['uri'])\n\
         emit(len(resources('ev').templates()) > 0)\n\
         emit('args-prompt' in [p['name'] for p in prompts('ev').list()])\n\
         emit('Bern' in prompts('ev').get('args-prompt', {'city': 'Bern'})['messages'][0]['content']['text'])\n\
         try:\n    resources('ev').read('nothing://there')\n\
         except ToolError as e:\n    emit([e.server, e.tool])\n",
    );
    world.mcpx(["run", "r.py"]).stdout("true\ntrue\ntrue\ntrue\n[\"ev\",null]\n").check();
}

#[test]
fn a_wrong_name_is_helped_and_a_server_without_any_says_so() {
    let world = World::demo().server("ev", tools::npm_server("everything", &["stdio"]));
    world
        .mcpx(["prompts", "get", "ev.simple-promt"])
        .status(2)
        .stderr_has("ev has no prompt \"simple-promt\"")
        .stderr_has("did you mean \"simple-prompt\"?")
        .check();
    world
        .mcpx(["prompts", "complete", "ev.completable-prompt", "departmant", "E"])
        .status(2)
        .stderr_has("has no argument \"departmant\"")
        .stderr_has("did you mean \"department\"?")
        .check();
    let world = World::fake(&[]);
    for what in ["prompts", "resources"] {
        let says = format!("the server fake has no {what}");
        world.mcpx([what, "ls", "fake"]).stdout("").stderr_has(&says).check();
    }
    world.mcpx(["prompts", "get", "fake.x"]).status(2).stderr_has("the server fake has no prompts").check();
}
