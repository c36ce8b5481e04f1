//! Servers as configuration: tool filters, aliases, profiles, and the commands that change and import them.

use crate::harness::{Runtime, World};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

/// The demonstration server with these options of mcpx's.
fn demo(options: Value) -> Value {
    json!({"command": env!("CARGO_BIN_EXE_mcpx"), "args": ["demo-server"], "mcpx": options})
}

/// What a command answers in JSON.
fn json(world: &World, args: &[&str]) -> Value {
    world.mcpx([&["--json"], args].concat()).any_stderr().output().json()
}

/// The names in a list of an answer's.
fn names(answer: &Value, list: &str, key: &str) -> Vec<String> {
    let rows = answer[list].as_array().unwrap_or_else(|| panic!("no {list} in {answer}"));
    rows.iter().map(|r| r[key].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_tool_filter_holds_in_every_listing_and_every_call() {
    let world = World::new()
        .server("demo", demo(json!({"tools": ["echo", "add", "/^cr/"], "excludeTools": ["c*"]})))
        .server("whole", demo(json!({})));
    let file = world.dir().join(".mcpx.json");
    // Once from the daemon and once from the warm cache.
    for _ in 0..2 {
        let ls = json(&world, &["ls"]);
        assert_eq!(ls["namespaces"][0]["tools"], 2, "{ls}");
        assert!(ls["namespaces"][1]["tools"].as_u64().unwrap() > 10);
        let mut tools = names(&json(&world, &["tools", "demo"]), "tools", "tool");
        tools.sort();
        assert_eq!(tools, ["add", "echo"]);
        assert_eq!(names(&json(&world, &["search", "counter"]), "hits", "server"), ["whole"]);
        let types = world.mcpx(["types", "demo"]).run().stdout();
        assert!(types.contains("echo(") && !types.contains("counter("), "{types}");
    }
    world.mcpx(["call", "demo.echo", "text=hi"]).stdout("hi\n").check();
    world
        .mcpx(["call", "demo.counter"])
        .status(77)
        .stderr_has("\"c*\" of \"excludeTools\"")
        .stderr_has(&file.display().to_string())
        .check();
    world.mcpx(["call", "demo.forecast", "city=x"]).status(77).stderr_has("\"tools\" offers only").check();
    world.mcpx(["call", "demo.ecko"]).status(2).stderr_has("echo").check();
    let error = json(&world, &["call", "demo.counter"]);
    assert_eq!((&error["error"]["kind"], &error["error"]["tool"]), (&json!("refused"), &json!("counter")));
    let _ = world.mcpx(["client", "-o", "c.mjs"]).any_stderr().run();
    let types = std::fs::read_to_string(world.dir().join("c.d.mts")).unwrap();
    let start = |name: &str| types.find(&format!("namespace {name} ")).expect("a namespace each");
    let filtered = &types[start("demo")..start("whole")];
    assert!(filtered.contains("echo") && !filtered.contains("counter"), "{types}");
    assert!(types[start("whole")..].contains("counter"), "{types}");
}

#[test]
fn a_change_of_a_filter_holds_at_once_and_restarts_nothing() {
    let world = World::new().server("demo", demo(json!({})));
    for n in 1..3 {
        let _ = world.mcpx(["call", "demo.counter"]).stdout_has(&n.to_string()).run();
    }
    let world = world.server("demo", demo(json!({"excludeTools": ["echo"]})));
    world
        .mcpx(["call", "demo.echo", "text=x"])
        .status(77)
        .stderr_has("\"excludeTools\" names \"echo\"")
        .check();
    let _ = world.mcpx(["call", "demo.counter"]).stdout_has("3").run();
    let world = world.server("demo", demo(json!({"excludeTools": ["/[/"]})));
    let _ = world
        .mcpx(["call", "demo.echo", "text=x"])
        .status(65)
        .stderr_has("[ without its ]")
        .any_stderr()
        .run();
}

#[test]
fn a_withheld_tool_is_no_misspelling_of_another() {
    let world = World::new().and_fake("fake", &[]).server("demo", demo(json!({"excludeTools": ["add"]})));
    world.mcpx(["call", "demo.add", "a=1", "b=2"]).status(77).stderr_has("demo.add").check();
    let row = json(&world, &["ls"]);
    assert_eq!(row["namespaces"].as_array().unwrap().len(), 2);
}

#[test]
fn an_alias_has_the_definition_and_options_of_its_own() {
    let world = World::new()
        .server("demo", demo(json!({"enabled": false})))
        .server("safe", json!({"aliasOf": "demo", "mcpx": {"tools": ["echo", "counter"]}}))
        .server("other", json!({"aliasOf": "demo"}))
        .server("lost", json!({"aliasOf": "dmeo"}));
    world.mcpx(["call", "safe.echo", "text=hi"]).stdout("hi\n").check();
    world.mcpx(["call", "safe.add", "a=1", "b=2"]).status(77).stderr_has("safe.add").check();
    let _ = world.mcpx(["call", "other.add", "a=1", "b=2"]).stdout_has("3").run();
    world.mcpx(["call", "demo.echo", "text=hi"]).status(77).stderr_has("disabled").check();
    let _ = world.mcpx(["call", "lost.echo"]).status(65).stderr_has("\"demo\"").any_stderr().run();
    // Each has instances of its own.
    let _ = world.mcpx(["call", "safe.counter"]).stdout_has("1").run();
    let _ = world.mcpx(["call", "other.counter"]).stdout_has("1").run();
}

#[test]
fn profiles_choose_among_the_servers_and_one_daemon_serves_them_all() {
    let world = World::new().with(Runtime::Deno).server("demo", demo(json!({}))).and_fake("fake", &[]);
    let record = world.record_file("fake");
    let fake = json!({
        "command": env!("CARGO_BIN_EXE_fake-mcp"),
        "args": ["--record", record],
        "mcpx": {"profiles": ["work"]},
    });
    let world = world.server("fake", fake);
    let listed = |args: &[&str]| names(&json(&world, args), "namespaces", "name");
    assert_eq!(listed(&["ls"]), ["demo"]);
    assert!(world.started("fake").is_empty(), "what is not selected is not started");
    assert_eq!(listed(&["ls", "--profile", "work"]), ["demo", "fake"]);
    assert_eq!(listed(&["ls", "--profile=work", "--skip-default"]), ["fake"]);
    assert_eq!(listed(&["ls", "--all-profiles"]), ["demo", "fake"]);
    let by_variable = world.mcpx(["--json", "ls"]).env("MCPX_PROFILE", "work,elsewhere").run().json();
    assert_eq!(names(&by_variable, "namespaces", "name"), ["demo", "fake"]);
    world.mcpx(["ls", "--skip-default"]).stderr_has("--all-profiles").check();
    world.mcpx(["ls", "--profile", "wrok"]).status(2).stderr_has("\"work\"").check();

    world.mcpx(["call", "fake.echo", "text=hi"]).status(77).stderr_has("--profile work").check();
    world.mcpx(["--profile", "work", "call", "fake.echo", "text=hi"]).stdout("hi\n").check();
    world
        .mcpx(["--skip-default", "call", "demo.echo", "text=hi"])
        .status(77)
        .stderr_has("--skip-default")
        .check();
    assert!(names(&json(&world, &["search", "echo"]), "hits", "server").iter().all(|s| s == "demo"));
    world.mcpx(["types", "fake"]).status(77).stderr_has("--profile work").check();
    let _ = world.mcpx(["refresh"]).stdout_has("demo").run();
    let keys = "return [typeof demo, typeof fake].join()";
    world.mcpx(["exec", keys]).stdout("object,undefined\n").check();
    world.mcpx(["exec", "--profile", "work", keys]).stdout("object,object\n").check();
    world.mcpx(["exec", "--all-profiles", "return await fake.echo({text: 'hi'})"]).stdout("hi\n").check();
    assert_eq!(world.daemons().len(), 1, "one daemon serves all profiles");
}

/// The text of a file below the project's directory, or of an absolute one.
fn text(world: &World, path: &str) -> String {
    std::fs::read_to_string(world.dir().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

#[test]
fn servers_are_added_and_removed_while_the_others_keep_running() {
    let config = format!(
        "// Ours.\n{{\n  \"mcpServers\": {{\n    // The first.\n    \"demo\": {{ \"command\": {:?}, \"args\": [\"demo-server\"] }},\n  }},\n}}\n",
        env!("CARGO_BIN_EXE_mcpx")
    );
    let world = World::new().config(&config);
    let _ = world.mcpx(["call", "demo.counter"]).stdout_has("1").run();
    let file = world.dir().join(".mcpx.json");
    world
        .mcpx([
            "servers",
            "add",
            "fake",
            "--env",
            "GREETING=good day",
            "--scope",
            "cwd",
            "--description",
            "a fake",
        ])
        .status(2)
        .stderr_has("needs a name")
        .check();
    let fake = env!("CARGO_BIN_EXE_fake-mcp");
    world
        .mcpx([
            "servers",
            "add",
            "fake",
            "--env",
            "GREETING=good day",
            "--scope",
            "cwd",
            "--",
            fake,
            "--name",
            "x",
        ])
        .stdout(&format!("added fake in {}\n", file.display()))
        .check();
    world.mcpx(["call", "fake.env", "name=GREETING"]).stdout("good day\n").check();
    // The daemon took the change over, and the other's process is the same.
    let _ = world.mcpx(["call", "demo.counter"]).stdout_has("2").run();
    let now = text(&world, ".mcpx.json");
    assert!(now.starts_with("// Ours.\n") && now.contains("    // The first.\n"), "{now}");
    assert!(now.contains("\"scope\": \"cwd\""), "{now}");

    world.mcpx(["servers", "add", "fake", "--", "x"]).status(2).stderr_has("--force").check();
    world.mcpx(["servers", "disable", "fake"]).stdout_has("disabled fake").check();
    world.mcpx(["call", "fake.echo", "text=a"]).status(77).stderr_has("disabled").check();
    world.mcpx(["servers", "disable", "fake"]).stdout_has("is already disabled").check();
    world.mcpx(["servers", "enable", "fkae"]).status(2).stderr_has("\"fake\"").check();
    world.mcpx(["servers", "enable", "fake"]).stdout_has("enabled fake").check();
    world.mcpx(["call", "fake.echo", "text=a"]).stdout("a\n").check();
    let answer = json(&world, &["servers", "remove", "fake"]);
    assert_eq!((&answer["change"], &answer["reloaded"]), (&json!("removed"), &json!(true)), "{answer}");
    world.mcpx(["call", "fake.echo", "text=a"]).status(2).any_stderr().check();
    let _ = world.mcpx(["call", "demo.counter"]).stdout_has("3").run();
    assert_eq!(text(&world, ".mcpx.json"), config, "nothing of the rest has changed");
    assert_eq!(world.daemons().len(), 1);
}

#[test]
fn a_server_goes_to_the_project_or_to_the_user() {
    let world = World::new();
    let user = world.home().join(".config/mcpx/config.json");
    world.write("deep/er/x", "");
    let added = |args: &[&str], dir: &str| {
        let args = [&["--json", "servers", "add"], args].concat();
        let answer = world.mcpx(args).dir(dir).any_stderr().run().json();
        (answer["path"].as_str().unwrap().to_owned(), answer["newFile"].as_bool().unwrap())
    };
    let own = world.dir().join(".mcpx.json").display().to_string();
    assert_eq!(added(&["a", "--", "x"], ""), (own.clone(), true));
    assert_eq!(
        added(&["b", "https://h.example/mcp", "--header", "A: Bearer ${T:-}"], "deep/er"),
        (own, false)
    );
    assert_eq!(added(&["c", "--user", "--", "x"], ""), (user.display().to_string(), true));
    let b = json(&world, &["servers", "show", "b"]);
    assert_eq!(b["server"]["definition"]["headers"]["A"], "Bearer ${T:-}", "{b}");
    // A nearer file hides the one further away only when told so.
    world.mcpx(["servers", "add", "c", "--", "y"]).status(2).stderr_has("config.json:").check();
    let _ = world.mcpx(["servers", "add", "--force", "c", "--", "y"]).stdout_has("added c").run();
    world.mcpx(["servers", "remove", "c"]).stdout_has(".mcpx.json").stderr_has("counts now").check();
    world.mcpx(["servers", "disable", "--project", "c"]).stdout_has("disabled c").check();
    let rows = json(&world, &["servers"]);
    assert_eq!(names(&rows, "servers", "name"), ["a", "b", "c"]);
    assert_eq!(rows["servers"][2]["enabled"], false);
    world.write("other.json", "{}");
    world.mcpx(["--config", "other.json", "servers", "add", "d", "--", "x"]).stdout_has("other.json").check();
    world
        .mcpx(["--config", "other.json", "servers", "add", "e", "--user", "--", "x"])
        .status(2)
        .stderr_has("--config")
        .check();
}

#[test]
fn what_is_wrong_with_a_new_server_is_said_and_nothing_is_written() {
    let world = World::new();
    for (args, part) in [
        (&["add", "a", "https://"][..], "names no host"),
        (&["add", "a", "https://h", "x"], "stands alone"),
        (&["add", "a", "https://h", "--env", "A=b"], "--env is for a program"),
        (&["add", "a", "--header", "A: b", "--", "x"], "--header is for an address"),
        (&["add", "a", "--env", "A", "--", "x"], "--env takes KEY=VALUE"),
        (&["add", "a", "--scope", "sesion", "--", "x"], "session"),
        (&["add", "", "--", "x"], "cannot be a server's name"),
        (&["add", "a", "--reveal", "--", "x"], "does not take --reveal"),
        (&["add", "a", "--user", "--project", "--", "x"], "contradict"),
        (&["lst"], "\"list\""),
        (&["show"], "needs one server's name"),
        (&["import"], "claude-code"),
        (&["import", "curser"], "\"cursor\""),
        (&["import", "cursor"], "no configuration of Cursor was found"),
    ] {
        let output = world.mcpx([&["servers"], args].concat()).status(2).any_stderr().run();
        assert!(output.stderr.contains(part), "{args:?}: {output}");
    }
    assert!(!world.dir().join(".mcpx.json").exists());
    let unset = world.mcpx(["servers", "add", "a", "https://h", "--header", "A: ${NOT_SET_HERE}"]);
    unset.stdout_has("added a").stderr_has("NOT_SET_HERE is not set").check();
}

#[test]
fn secrets_are_shown_to_nobody_who_does_not_ask() {
    let block = json!({
        "command": "x", "args": ["--api-key", "secret-1"], "env": {"TOKEN": "secret-2", "REF": "${REF:-}"},
    });
    let url = json!({"url": "https://h/?key=secret-3", "headers": {"Authorization": "Bearer secret-4"}});
    let world = World::new().server("a", block).server("b", url);
    for args in [&["servers"][..], &["servers", "list"], &["servers", "show", "a"], &["servers", "show", "b"]]
    {
        for json in [&[][..], &["--json"]] {
            let output = world.mcpx([json, args].concat()).run();
            assert!(!output.stdout().contains("secret-"), "{output}");
        }
    }
    world.mcpx(["servers", "show", "a"]).stdout_has("${REF:-}").check();
    world.mcpx(["servers", "show", "a", "--reveal"]).stdout_has("secret-1").stdout_has("secret-2").check();
}

/// Configurations of every host, with servers that can be taken and some that cannot.
fn hosts(world: &World) {
    let home = |path: &str| world.home().join(path).display().to_string();
    let project = world.dir().display().to_string();
    let claude = json!({
        "numStartups": 3,
        "mcpServers": {
            "cc-user": {"type": "stdio", "command": "npx", "args": ["-y", "a"], "env": {}},
            "cc-off": {"command": "x"},
            "cc-ws": {"type": "ws", "url": "ws://h"},
        },
        "projects": {
            project: {
                "mcpServers": {"cc-project": {"type": "http", "url": "https://h/mcp"}},
                "disabledMcpServers": ["cc-off"],
                "disabledMcpjsonServers": ["cc-refused"],
            },
            "/elsewhere": {"mcpServers": {"not-here": {"command": "x"}}},
        },
    });
    world.write(&home(".claude.json"), &claude.to_string());
    world.write(
        &home(".config/Claude/claude_desktop_config.json"),
        &json!({"mcpServers": {"desktop": {"command": "x", "env": {"A": "1"}}}}).to_string(),
    );
    world.write(
        ".cursor/mcp.json",
        &json!({"mcpServers": {
            "cursor": {"command": "x", "args": ["${workspaceFolder}", "${env:HOME}"]},
            "cursor-off": {"command": "x", "disabled": true},
        }})
        .to_string(),
    );
    world.write(
        ".vscode/mcp.json",
        "{ // comments are usual here\n \"inputs\": [{\"id\": \"t\"}],\n \"servers\": {\"code\": {\"type\": \"http\", \"url\": \"https://h\", \"headers\": {\"A\": \"Bearer ${input:t}\"}},}}",
    );
    world.write(
        &home(".codeium/windsurf/mcp_config.json"),
        &json!({"mcpServers": {"surf": {"serverUrl": "https://h/surf"}}}).to_string(),
    );
    world.write(
        &home(".codex/config.toml"),
        "model = \"x\"\n[mcp_servers.codex]\ncommand = \"x\"\nargs = [\"1\"]\nenabled = false\n[mcp_servers.codex.env]\nK = 'v'\n",
    );
    world.write(
        "opencode.json",
        &json!({"mcp": {"open": {"type": "local", "command": ["x", "{env:HOME}"], "environment": {"K": "v"}, "enabled": false}}})
            .to_string(),
    );
    world.write(
        &home(".gemini/settings.json"),
        &json!({"theme": "x", "mcp": {"excluded": ["gem-off"]}, "mcpServers": {
            "gem": {"httpUrl": "https://h", "timeout": 5000}, "gem-off": {"command": "x"},
        }})
        .to_string(),
    );
}

#[test]
fn every_hosts_servers_are_taken_over() {
    let world = World::new();
    hosts(&world);
    // Nothing is changed by looking.
    let dry = json(&world, &["servers", "import", "all", "--dry-run"]);
    assert!(!world.dir().join(".mcpx.json").exists() && dry["dryRun"] == true);
    let answer = json(&world, &["servers", "import", "all"]);
    let row = |name: &str| {
        let rows = answer["servers"].as_array().unwrap();
        rows.iter().find(|r| r["server"] == name).unwrap_or_else(|| panic!("{name}: {answer}")).clone()
    };
    let notes = |name: &str| row(name)["notes"].to_string();
    let count = |a: &Value| a["servers"].as_array().unwrap().iter().filter(|r| r["taken"] == true).count();
    assert_eq!((count(&dry), count(&answer)), (12, 12), "{answer}");
    assert!(row("cc-ws")["why"].as_str().unwrap().contains("ws"));
    assert!(!answer.to_string().contains("not-here"));
    assert!(notes("cursor").contains("${workspaceFolder} is filled in by the host only"));
    assert!(notes("cursor").contains("${env:HOME} is written as ${HOME}"));
    assert!(notes("code").contains("${input:t} is filled in by the host only"));
    assert!(notes("open").contains("{env:HOME} is written as ${HOME}"));

    let rows = json(&world, &["servers"]);
    let server =
        |name: &str| rows["servers"].as_array().unwrap().iter().find(|r| r["name"] == name).unwrap().clone();
    for name in ["cc-off", "cursor-off", "codex", "open", "gem-off"] {
        assert_eq!(server(name)["enabled"], false, "{name}");
        assert!(notes(name).contains("switched off"), "{name}");
    }
    assert_eq!(server("open")["definition"]["args"], json!(["${HOME}"]));
    assert_eq!(server("gem")["definition"]["mcpx"]["callTimeout"], "5s");
    assert_eq!(server("surf")["definition"]["url"], "https://h/surf");
    assert_eq!(server("cc-project")["definition"]["url"], "https://h/mcp");
    let user = std::fs::metadata(world.home().join(".config/mcpx/config.json")).unwrap();
    assert_eq!(user.permissions().mode() & 0o077, 0, "it may hold secrets");
    // The user's go to the user, the project's to the project.
    let source = |name: &str| server(name)["source"].as_str().unwrap().to_owned();
    assert!(source("codex").ends_with("config.json") && source("cursor").ends_with("p/.mcpx.json"));
    // What is not filled in is shown as what it is, and nothing else is broken by it.
    let message = server("code")["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("${input:t} is not filled in"), "{message}");

    let again = json(&world, &["servers", "import", "all"]);
    assert_eq!(count(&again), 0, "{again}");
    assert!(again["servers"][0]["why"].as_str().unwrap().contains("configured already"));
}

#[test]
fn one_file_is_taken_over_whosesoever_it_is() {
    let world = World::new().server("taken", json!({"command": "mine"}));
    world.write("some.toml", "[mcp_servers.t]\ncommand = \"x\"\n[mcp_servers.taken]\ncommand = 'theirs'\n");
    let output = world.mcpx(["servers", "import", "--from", "some.toml"]).run();
    output.says(&["took t from", "skipped taken", "--force replaces it", "took 1, skipped 1"]);
    let _ =
        world.mcpx(["servers", "import", "--from", "some.toml", "--force"]).stdout_has("took taken").run();
    assert_eq!(json(&world, &["servers", "show", "taken"])["server"]["definition"]["command"], "theirs");
    world.write("broken.toml", "[mcp_servers.t]\ncommand = x\n");
    world
        .mcpx(["servers", "import", "--from", "broken.toml"])
        .status(65)
        .stderr_has("broken.toml: line 2")
        .check();
    world.write("none.json", "{\"a\": 1}");
    world.mcpx(["servers", "import", "--from", "none.json"]).status(65).stderr_has("no servers").check();
    world.mcpx(["servers", "import", "--from", "gone.json"]).status(66).stderr_has("no such file").check();
}

#[test]
fn a_first_configuration_can_be_what_other_hosts_have() {
    let world = World::new();
    hosts(&world);
    world.write(
        ".mcp.json",
        &json!({"mcpServers": {"shared": {"command": "x"}, "cc-refused": {"command": "x"}}}).to_string(),
    );
    let output = world.mcpx(["init", "--import"]).run();
    output.says(&["wrote", "took cursor", "took codex", "skipped shared", "reads that file itself"]);
    let rows = json(&world, &["servers"]);
    assert_eq!(rows["servers"].as_array().unwrap().len(), 14, "{rows}");
    let refused = rows["servers"].as_array().unwrap().iter().find(|r| r["name"] == "cc-refused").unwrap();
    assert_eq!(refused["enabled"], false, "what the user did not trust there is not started here");
    assert!(text(&world, ".mcpx.json").starts_with("// "));
    world.mcpx(["init", "--import"]).status(2).stderr_has("exists already").check();
}

#[test]
fn what_is_neither_an_address_nor_behind_dashes_is_not_taken_for_a_program() {
    let world = World::new();
    world.mcpx(["servers", "add", "q", "ftp://h/x"]).status(2).stderr_has("not ftp://").check();
    world.mcpx(["servers", "add", "r", "someword", "x"]).status(2).stderr_has("-- someword x").check();
    let rows = json(&world, &["servers"]);
    assert_eq!(rows["servers"].as_array().unwrap().len(), 0, "{rows}");
    let _ = world.mcpx(["servers", "import", "all"]).run().says(&["looked for", "took 0"]);
}
