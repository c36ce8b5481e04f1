//! What servers ask besides tools: a model's words, log levels, and that
//! something is opened first.

use crate::harness::{Runtime, World, tools, wait_until};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

/// The arguments of the fake server's tool that wants a model's words.
fn words() -> String {
    let message = json!({"role": "user", "content": {"type": "text", "text": "Name a river."}});
    json!({"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": 50}})
        .to_string()
}

/// A world with a handler: this shell script, which has the request on standard input.
fn world(script: &str) -> World {
    let world = World::fake(&[]).and_fake("new", &["--era", "stateless"]);
    let world = world.file("model", &format!("#!/bin/sh\n{script}\n"));
    let path = world.dir().join("model");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    world.link("sh", "/bin/sh".as_ref());
    world.setting("sampling", json!({"command": [path, "--fast"], "timeout": "20s"}))
}

#[test]
fn a_configured_handler_answers_for_a_model() {
    // In sh alone, since the world's PATH is empty but for it.
    let world = world(
        r#"read -r request; printf '%s' "$request" >"${0}-asked"; echo "{\"content\": {\"type\": \"text\", \"text\": \"Elbe $1\"}, \"stopReason\": \"endTurn\"}""#,
    );
    for server in ["fake", "new"] {
        let output = world.mcpx(["call", &format!("{server}.ask"), &words()]).run();
        let answer: Value = serde_json::from_str(output.stdout().trim()).unwrap();
        let result = &answer["result"];
        assert_eq!(result["content"]["text"], "Elbe --fast", "{answer}");
        assert_eq!((&result["role"], &result["model"]), (&json!("assistant"), &json!("model")));
        let asked = std::fs::read_to_string(world.dir().join("model-asked")).unwrap();
        let asked: Value = serde_json::from_str(&asked).unwrap();
        assert_eq!((&asked["server"], &asked["tool"]), (&json!(server), &json!("ask")));
        assert_eq!(asked["params"]["messages"][0]["content"]["text"], "Name a river.");
    }
    let offered = world.received("fake", "initialize").remove(0);
    assert!(offered["params"]["capabilities"]["sampling"].is_object(), "{offered}");
    let log = wait_until("the record", || {
        let log = world.mcpx(["log"]).run().stdout();
        (log.matches("answered sampling/createMessage").count() == 2).then_some(log)
    });
    assert!(!log.contains("river") && !log.contains("Elbe"), "what was said is nobody's business: {log}");
}

#[test]
fn a_handler_that_fails_is_a_refusal_that_says_why() {
    for (script, why) in [
        ("echo 'no key' >&2; exit 3", "no key"),
        ("echo Elbe", "other than JSON"),
        ("echo '{}'", "no \\\"content\\\""),
        ("sleep() { while :; do :; done; }; sleep", "sampling.timeout"),
    ] {
        let world = world(script);
        let world = match why {
            "sampling.timeout" => world.env("MCPX_SAMPLING_TIMEOUT", "300ms"),
            _ => world,
        };
        let output = world.mcpx(["call", "fake.ask", &words()]).run();
        assert!(output.stdout().contains("-32603") && output.stdout().contains(why), "{why}: {output}");
        world.mcpx(["call", "new.ask", &words()]).status(69).stderr_has("sampling.command").check();
        world.wait_gone("model");
    }
}

#[test]
fn without_a_handler_for_it_a_server_is_refused_and_was_offered_nothing() {
    let world = world("echo '{\"content\": {}}'").env("MCPX_SAMPLING_SERVERS", "n*");
    let output = world.mcpx(["call", "fake.ask", &words()]).run();
    assert!(output.stdout().contains("-32601") && output.stdout().contains("sampling.servers"), "{output}");
    let offered = world.received("fake", "initialize").remove(0);
    assert!(offered["params"]["capabilities"].get("sampling").is_none(), "{offered}");
    world.mcpx(["call", "new.ask", &words()]).run().says(&["result"]);
}

#[test]
fn a_handler_ends_with_the_call_that_wanted_it() {
    let world = world("while :; do :; done");
    let running = world.mcpx(["call", "fake.ask", &words()]).start();
    wait_until("the handler to run", || world.processes().iter().any(|p| p.mentions("--fast")).then_some(()));
    running.signal(libc::SIGINT);
    assert_eq!(running.wait().status, 130);
    world.wait_gone("--fast");
}

#[test]
fn servers_are_told_from_which_level_on_to_log() {
    let log = |world: &World| {
        wait_until("the message", || {
            let text = world.mcpx(["--json", "events", "--kind", "server.logged"]).run().stdout();
            text.contains("logs from").then_some(text)
        })
    };
    let world = World::fake(&["--logging"]);
    world.mcpx(["call", "fake.echo", "text=x"]).stdout("x\n").check();
    assert!(log(&world).contains("info"));
    let world = World::fake(&["--logging"]).setting("upstream", json!({"logLevel": "warning"}));
    world.mcpx(["call", "fake.echo", "text=x"]).stdout("x\n").check();
    assert!(log(&world).contains("warning"));
    // Nothing is said to a server that does not declare it, nor when it is off.
    let off = World::fake(&["--logging"]).setting("upstream", json!({"logLevel": "off"}));
    for world in [World::fake(&[]), off] {
        world.mcpx(["call", "fake.echo", "text=x"]).stdout("x\n").check();
        assert!(world.received("fake", "logging/setLevel").is_empty());
    }
    // In the stateless era each request says it.
    let world = World::fake(&["--era", "stateless"]);
    world.mcpx(["call", "fake.echo", "text=x"]).stdout("x\n").check();
    let call = world.received("fake", "tools/call").remove(0);
    assert_eq!(call["params"]["_meta"]["io.modelcontextprotocol/logLevel"], "info", "{call}");
}

#[test]
fn what_has_to_be_opened_first_ends_the_command_with_the_address() {
    let world = World::fake(&[]).with(Runtime::Deno);
    let words = ["call", "fake.visit", "url=https://example.invalid/sign-in"];
    let output = world.mcpx(words).status(75).any_stderr().run();
    for part in ["Sign in first.", "https://example.invalid/sign-in", "make the call again"] {
        assert!(output.stderr.contains(part), "{part}: {output}");
    }
    let error = world.mcpx(["--json", "call", "fake.visit", "url=u:x"]).status(75).any_stderr().run().json();
    assert_eq!(error["error"]["raw"]["data"]["elicitations"][0]["elicitationId"], "e-1", "{error}");
    let code = "try { await fake.visit({ url: 'u:x' }) } catch (e) { return [e.kind, e.raw.code] }";
    assert_eq!(world.mcpx(["exec", code]).run().json(), json!(["input-required", -32042]));
    world.mcpx(["exec", "await fake.visit({ url: 'u:x' })"]).status(75).stderr_has("Sign in first.").check();
    // Nothing goes on, so there is nothing to collect.
    world.mcpx(["task"]).any_stderr().stdout("").check();
}

#[test]
fn a_real_server_gets_its_words() {
    let world = World::new().server("everything", tools::npm_server("everything", &["stdio"]));
    let world = world
        .file("model", "#!/bin/sh\necho '{\"content\": {\"type\": \"text\", \"text\": \"forty-two\"}}'\n");
    let path = world.dir().join("model");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let world = world.setting("sampling", json!({"command": [path]}));
    world
        .mcpx(["call", "everything.trigger-sampling-request", "prompt=how many?"])
        .run()
        .says(&["forty-two"]);
}
