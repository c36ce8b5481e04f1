//! Where the configuration comes from, what it may hold, and how its faults are told.

use crate::harness::World;
use serde_json::json;

#[test]
fn init_writes_a_configuration_that_works_and_spares_one_that_exists() {
    let world = World::new();
    world.link("mcpx", env!("CARGO_BIN_EXE_mcpx").as_ref());
    let _ = world.mcpx(["init", "--demo"]).run();
    let text = std::fs::read_to_string(world.dir().join(".mcpx.json")).unwrap();
    let _ = world.mcpx(["call", "demo.echo", r#"{"text":"hi"}"#]).stdout("hi\n").run();
    world.mcpx(["init"]).status(2).stderr_has(".mcpx.json").check();
    assert_eq!(std::fs::read_to_string(world.dir().join(".mcpx.json")).unwrap(), text);
}

#[test]
fn a_syntax_error_names_file_line_and_column_and_shows_the_line() {
    let world = World::new().config("{\n  \"mcpServers\": {\n    \"a\": {\"command\" \"x\"}\n  }\n}\n");
    let file = world.dir().join(".mcpx.json");
    for command in [&["ls"][..], &["call", "a.b"], &["status"], &["search", "x"]] {
        let output = world.mcpx(command).status(65).any_stderr().run();
        output.says(&[&format!("{}:3:21", file.display()), "    \"a\": {\"command\" \"x\"}"]);
        let caret = output.stderr.lines().find(|l| l.trim_end().ends_with('^'));
        assert!(caret.is_some(), "a caret should show the place\n{output}");
    }
    let output = world.mcpx(["--json", "ls"]).status(65).any_stderr().run();
    output.says(&["\"kind\":\"config\""]);
}

#[test]
fn comments_and_trailing_commas_are_welcome() {
    let world = World::new().config(&format!(
        "// a comment\n{{ /* another */ \"mcpServers\": {{ \"demo\": {{ \"command\": {:?}, \"args\": [\"demo-server\",], }}, }}, }}\n",
        env!("CARGO_BIN_EXE_mcpx")
    ));
    world.mcpx(["call", "demo.echo", "text=hi // no comment"]).stdout("hi // no comment\n").check();
}

#[test]
fn one_unusable_server_is_a_row_and_spares_the_others() {
    let world = World::demo()
        .server("empty", json!({"args": ["x"]}))
        .server("both", json!({"command": "x", "url": "http://127.0.0.1:1/"}))
        .server("unset", json!({"command": "x", "env": {"TOKEN": "${MCPX_NO_SUCH_VARIABLE}"}}))
        .server("typo", json!({"command": "x", "mcpx": {"scop": "session"}}));
    let rows = world.mcpx(["--json", "ls"]).any_stderr().output().json();
    let row = |name: &str| {
        let rows = rows["namespaces"].as_array().unwrap();
        rows.iter()
            .find(|r| r["name"] == name)
            .unwrap_or_else(|| panic!("no row for {name}: {rows:?}"))
            .clone()
    };
    assert_eq!(row("demo")["state"], "ready");
    for (name, part) in
        [("empty", "command"), ("both", "url"), ("unset", "MCPX_NO_SUCH_VARIABLE"), ("typo", "scop")]
    {
        assert_eq!(row(name)["state"], "failed", "{name}");
        let message = row(name)["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert!(message.contains(part), "{name}: {message}");
        let output = world.mcpx(["call", &format!("{name}.x")]).status(65).any_stderr().run();
        output.says(&[part, name, ".mcpx.json"]);
    }
    let text = world.mcpx(["ls"]).any_stderr().output();
    text.says(&["demo", "empty", "MCPX_NO_SUCH_VARIABLE"]);
    world.mcpx(["call", "demo.echo", "text=hi"]).stdout("hi\n").check();
}

#[test]
fn variables_expand_where_they_may() {
    let world = World::new()
        .and_fake("fake", &[])
        .env("GREETING", "good day")
        .server(
            "fake",
            json!({
                "command": "${FAKE:-/nowhere}",
                "env": {"A": "${GREETING}!", "B": "${UNSET_HERE:-default value}", "C": "${EMPTY_HERE:-used when empty}", "D": "$HOME $$ costs 5$"},
                "cwd": "${WHERE}"
            }),
        )
        .env("FAKE", env!("CARGO_BIN_EXE_fake-mcp"))
        .env("EMPTY_HERE", "")
        .env("WHERE", "/usr");
    world.mcpx(["call", "fake.env", "name=A"]).stdout("good day!\n").check();
    world.mcpx(["call", "fake.env", "name=B"]).stdout("default value\n").check();
    world.mcpx(["call", "fake.env", "name=D"]).stdout("$HOME $$ costs 5$\n").check();
    world.mcpx(["call", "fake.cwd"]).stdout("/usr\n").check();
}

#[test]
fn the_nearest_file_wins_a_server_by_name_and_all_contribute() {
    let world = World::demo();
    let fake = |name: &str| json!({"command": env!("CARGO_BIN_EXE_fake-mcp"), "args": ["--name", name]});
    world.write("deep/.mcp.json", &json!({"mcpServers": {"near": fake("near")}}).to_string());
    world.write("deep/er/.mcpx/config.json", &json!({"mcpServers": {"demo": fake("nearest")}}).to_string());
    let user = world.home().join(".config/mcpx/config.json");
    world.write(
        user.to_str().unwrap(),
        &json!({"mcpServers": {"user": fake("user"), "near": fake("far")}}).to_string(),
    );

    let names = |dir: &str| -> Vec<(String, String)> {
        let rows = world.mcpx(["--json", "ls"]).dir(dir).run().json();
        rows["namespaces"]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| {
                let source = r["source"].as_str().unwrap_or_default();
                let source = source.strip_prefix(world.dir().to_str().unwrap()).unwrap_or("~");
                (r["name"].as_str().unwrap().to_owned(), source.to_owned())
            })
            .collect()
    };
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    let mut deepest = names("deep/er");
    deepest.sort();
    assert_eq!(
        deepest,
        [pair("demo", "/deep/er/.mcpx/config.json"), pair("near", "/deep/.mcp.json"), pair("user", "~")]
    );
    let mut top = names("");
    top.sort();
    assert_eq!(top, [pair("demo", "/.mcpx.json"), pair("near", "~"), pair("user", "~")]);
    // The same name is another program further down.
    world.mcpx(["call", "demo.echo", "text=hi"]).dir("deep/er").stdout("hi\n").check();
    world.mcpx(["call", "demo.pid"]).status(2).any_stderr().check();
}

#[test]
fn an_explicit_file_is_the_only_one() {
    let world = World::demo();
    world.write(
        "other.json",
        &json!({"mcpServers": {"other": {"command": env!("CARGO_BIN_EXE_fake-mcp")}}}).to_string(),
    );
    for command in [
        world.mcpx(["--config", "other.json", "call", "other.echo", "text=a"]),
        world.mcpx(["call", "other.echo", "text=a"]).env("MCPX_CONFIG", "other.json"),
    ] {
        command.stdout("a\n").check();
    }
    world
        .mcpx(["--config", "other.json", "call", "demo.echo", "text=a"])
        .status(2)
        .stderr_has("demo")
        .check();
    world.mcpx(["--config", "absent.json", "ls"]).status(65).stderr_has("absent.json").check();
}

#[test]
fn a_directory_without_any_configuration_says_what_to_do() {
    let world = World::new();
    let output = world.mcpx(["ls"]).any_stderr().output();
    output.says(&["mcpx init"]);
    let output = world.mcpx(["call", "demo.echo"]).status(2).any_stderr().run();
    output.says(&["mcpx init"]);
}

#[test]
fn a_file_that_others_may_write_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::demo();
    let file = world.dir().join(".mcpx.json");
    for mode in [0o666, 0o646, 0o662] {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let output = world.mcpx(["call", "demo.echo", "text=x"]).status(77).any_stderr().run();
        output.says(&[file.to_str().unwrap(), "chmod"]);
    }
    assert!(world.processes().is_empty());
}

#[test]
fn the_settings_block_is_checked() {
    let world = World::demo().setting("pool", json!({"callTimeout": "soon"}));
    let output = world.mcpx(["ls"]).status(65).any_stderr().run();
    output.says(&["pool.callTimeout", ".mcpx.json"]);
    let world = World::demo().setting("pool", json!({"callTimeuot": "5s"}));
    world.mcpx(["ls"]).any_stderr().output().says(&["callTimeout", "callTimeuot"]);
}

#[test]
fn config_tells_every_fault_at_once_each_with_its_place() {
    let world = World::new().config(
        "{\n  \"pool\": { \"max\": 0, \"callTimeout\": \"soon\" },\n  \"paths\": { \"state\": \"/x\" },\n  \"preset\": [\"odd\"],\n  \"presets\": {\n    \"worse\": 3,\n    \"odd\": [\"--no-such-flag\", \"--log-level=loud\"]\n  }\n}\n",
    );
    world.write("deep/.mcpx.json", "{ \"pool\": { \"max\" 3 } }");
    let output =
        world.mcpx(["config"]).dir("deep").env("MCPX_SEARCH_LIMIT", "many").status(65).any_stderr().run();
    output.says(&[
        "deep/.mcpx.json:1:19: expected : after the key",
        ".mcpx.json:2:13: pool.max: must be from 1 to 4096, not 0",
        ".mcpx.json:2:23: pool.callTimeout: ",
        ".mcpx.json:3:14: paths.state: cannot be set in a configuration file",
        ".mcpx.json:6:5: preset \"worse\": expected a list of flags",
        ".mcpx.json:7:13: preset \"odd\": --no-such-flag: mcpx has no such flag",
        ".mcpx.json:7:31: preset \"odd\": --log-level: \"loud\" is not one of",
        "MCPX_SEARCH_LIMIT: \"many\" is not a whole number",
        "8 faults",
    ]);
    let json = world
        .mcpx(["--json", "config"])
        .dir("deep")
        .env("MCPX_SEARCH_LIMIT", "many")
        .status(65)
        .any_stderr()
        .run()
        .json();
    assert_eq!(json["faults"].as_array().unwrap().len(), 8, "{json}");
    assert!(json["faults"].as_array().unwrap().iter().all(|f| f["kind"] == "config" || f["kind"] == "usage"));
    // With strict keys each unknown one is a fault too.
    let world = World::new().config("{\"plumbing\": {\"strictUnknownKeys\": true},\n\"a\": 1,\n\"b\": 2}");
    let output = world.mcpx(["config"]).status(65).any_stderr().run();
    output.says(&[".mcpx.json:2:1: unknown key \"a\"", ".mcpx.json:3:1: unknown key \"b\"", "2 faults"]);
}

#[test]
fn a_nearer_file_changes_what_is_offered_of_a_server_further_away() {
    let world = World::new();
    let user = world.home().join(".config/mcpx/config.json");
    let block =
        json!({"mcpServers": {"demo": {"command": env!("CARGO_BIN_EXE_mcpx"), "args": ["demo-server"]}}});
    world.write(user.to_str().unwrap(), &block.to_string());
    let tools = || {
        let rows = world.mcpx(["--json", "tools", "demo"]).run().json();
        let rows = rows["tools"].as_array().unwrap().clone();
        rows.iter().map(|t| t["tool"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let all = tools().len();
    assert!(all > 2 && tools().contains(&"echo".to_owned()));
    // Without a file here the nearest one that has the server is changed: the user's.
    world.write(".mcpx.json", "{\n  // ours\n}\n");
    let said = world.mcpx(["servers", "adjust", "demo", "--project", "--exclude-tools", "echo"]).run();
    said.says(&["adjusted demo in", "/p/.mcpx.json"]);
    assert_eq!(tools().len(), all - 1);
    let refused = world.mcpx(["call", "demo.echo", "text=x"]).status(77).any_stderr().run();
    refused.says(&["\"excludeTools\" names \"echo\"", "/p/.mcpx.json:"]);
    let text = std::fs::read_to_string(world.dir().join(".mcpx.json")).unwrap();
    assert!(text.contains("// ours"), "{text}");
    world
        .mcpx(["servers", "adjust", "demo", "--project", "--extra-include-tools", "echo"])
        .stdout_has("adjusted")
        .run()
        .says(&[]);
    world.mcpx(["call", "demo.echo", "text=x"]).stdout("x\n").check();
    world
        .mcpx(["servers", "adjust", "demo", "--tools", "/(/"])
        .status(2)
        .stderr_has("nothing was changed")
        .check();
    world.mcpx(["servers", "adjust", "demo"]).status(2).stderr_has("--exclude-tools").check();
    // A command, an address and how it is run belong to the file that defines it.
    world.write(".mcpx.json", r#"{"mcpServers": {"demo": {"mcpx": {"tools": [], "inheritEnv": ["*"]}}}}"#);
    world.mcpx(["call", "demo.echo", "text=x"]).status(65).stderr_has("mcpx.inheritEnv").check();
}

#[test]
fn a_server_is_added_with_filters_that_hold() {
    let world = World::new().config("{}");
    let program = env!("CARGO_BIN_EXE_mcpx");
    let add = [
        "servers",
        "add",
        "demo",
        "--tools",
        "echo,add*",
        "--tools",
        "/^sl(ow|eep)/",
        "--exclude-tools",
        "add",
        "--",
    ];
    let _ = world.mcpx(add.iter().copied().chain([program, "demo-server"])).stdout_has("added demo").run();
    let block = world.mcpx(["--json", "servers", "show", "demo"]).run().json();
    assert_eq!(block["server"]["definition"]["mcpx"]["tools"], json!(["echo", "add*", "/^sl(ow|eep)/"]));
    assert_eq!(block["server"]["definition"]["mcpx"]["excludeTools"], json!(["add"]));
    world.mcpx(["call", "demo.echo", "text=x"]).stdout("x\n").check();
    world.mcpx(["call", "demo.add", "a=1", "b=2"]).status(77).any_stderr().run().says(&["excludeTools"]);
}

/// Runs mcpx as somebody to whom modes mean something; nothing, said aloud, where that cannot be.
fn as_somebody(world: &World, dir: &std::path::Path, words: &[&str]) -> Option<(Option<i32>, String)> {
    use std::os::unix::fs::PermissionsExt;
    // SAFETY: asks a number.
    let root = unsafe { libc::geteuid() } == 0;
    let mut command = if root {
        let Some(setpriv) = crate::harness::tools::on_path("setpriv") else {
            println!("skipped: root reads every file, and there is no setpriv to become somebody else");
            return None;
        };
        for open in ["", "home"] {
            let open = world.home().parent().unwrap().join(open);
            std::fs::set_permissions(open, PermissionsExt::from_mode(0o777)).unwrap();
        }
        let mut command = std::process::Command::new(setpriv);
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(env!("CARGO_BIN_EXE_mcpx"));
        command
    } else {
        std::process::Command::new(env!("CARGO_BIN_EXE_mcpx"))
    };
    let output = command.args(words).current_dir(dir).env_clear().envs(world.environment()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some((output.status.code(), text(&output.stdout) + &text(&output.stderr)))
}

#[test]
fn a_configuration_that_may_not_be_read_is_named_and_one_that_may_be_hidden_is_said() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new().file("deep/x", "").file("deep/.mcpx/config.json", "{}");
    let mode = |path: &str, mode: u32| {
        std::fs::set_permissions(world.dir().join(path), PermissionsExt::from_mode(mode)).unwrap();
    };
    let deep = world.dir().join("deep");
    mode("", 0o755);
    mode("deep", 0o755);
    // A directory of files that may not be looked into: nobody knows what is in it.
    mode("deep/.mcpx", 0o000);
    let Some((status, said)) = as_somebody(&world, &deep, &["config"]) else { return };
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("deep/.mcpx may not be looked into"), "{said}");
    assert_eq!(said.matches("may not be looked into").count(), 1, "{said}");
    // The one that is named must be read.
    let (status, said) = as_somebody(&world, &deep, &["--config", ".mcpx/config.json", "ls"]).unwrap();
    assert!(status == Some(65) && said.contains("config.json: permission denied"), "{status:?} {said}");
    mode("deep/.mcpx", 0o755);
    // A file that is there and may not be read is no file that is not there.
    mode("deep/.mcpx/config.json", 0o000);
    let (status, said) = as_somebody(&world, &deep, &["ls"]).unwrap();
    assert!(
        status == Some(65) && said.contains("deep/.mcpx/config.json: permission denied"),
        "{status:?} {said}"
    );
    mode("deep/.mcpx/config.json", 0o644);
    mode("", 0o755);
}
