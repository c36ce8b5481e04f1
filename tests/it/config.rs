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
