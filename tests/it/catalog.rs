//! `ls`, `search`, `types` and `tools`: what they show, from the cache and without one.

use crate::harness::{World, tools, wait_until};
use serde_json::{Value, json};

/// The rows of `mcpx --json ls`.
fn rows(world: &World) -> Vec<Value> {
    let answer = world.mcpx(["--json", "ls"]).any_stderr().output().json();
    answer["namespaces"].as_array().expect("ls gives rows").clone()
}

fn row(world: &World, name: &str) -> Value {
    rows(world).into_iter().find(|r| r["name"] == name).expect("the server has a row")
}

/// So many tools the fake server has without flags.
const FAKE: usize = 18;

#[test]
fn ls_shows_each_server_and_a_warm_cache_starts_none() {
    let world = World::demo().and_fake("fake", &["--tools", "3"]);
    let first = world.mcpx(["ls"]).run();
    first.says(&["demo", "14", "fake", &(FAKE + 3).to_string()]);
    assert_eq!(world.started("fake").len(), 1);
    world.mcpx(["stop", "--all"]).any_stderr().run().says(&[]);
    world.wait_gone("fake-mcp");
    for command in [&["ls"][..], &["search", "path"], &["types", "fake"], &["tools", "fake"], &["tools"]] {
        let output = world.mcpx(command).run();
        assert!(!output.stdout_bytes.is_empty(), "{output}");
    }
    assert_eq!(world.started("fake").len(), 1, "a warm cache answers");
    assert!(world.daemons().is_empty(), "nothing needs a daemon");
}

#[test]
fn a_server_that_will_not_start_is_a_row_with_its_reason() {
    let world = World::demo()
        .and_fake("exits", &["--stderr", "cannot find my licence", "--exit-at-once", "4"])
        .server("absent", json!({"command": "no-such-program"}))
        .server("silent", json!({"command": env!("CARGO_BIN_EXE_fake-mcp"), "args": ["--never-initialize"], "mcpx": {"startTimeout": "500ms"}}))
        .server("off", json!({"command": "no-such-program", "mcpx": {"enabled": false}}));
    let output = world.mcpx(["ls"]).any_stderr().output();
    output.says(&[
        "demo",
        "exits",
        "cannot find my licence",
        "absent",
        "no-such-program",
        "PATH",
        "silent",
        "off",
    ]);
    assert!(output.seconds < 20.0, "{output}");
    assert_eq!(row(&world, "demo")["state"], "ready");
    assert_eq!(row(&world, "off")["state"], "disabled");
    for name in ["exits", "absent", "silent"] {
        assert_eq!(row(&world, name)["state"], "failed");
        assert!(row(&world, name)["error"]["message"].is_string());
    }
    world.wait_gone("--never-initialize");
}

#[test]
fn one_that_never_answers_holds_up_no_listing() {
    let world = World::demo().and_fake("silent", &["--never-initialize"]);
    for words in [&["ls"][..], &["tools"], &["search", "echo"], &["types"], &["types", "silent"]] {
        let mut all = vec!["--catalog-wait", "300ms"];
        all.extend(words);
        let output = world.mcpx(all).any_stderr().output();
        assert!(output.seconds < 15.0, "{output}");
        if words != ["search", "echo"] {
            output.says(&["still starting after 300ms", "catalog.wait"]);
        }
    }
    let answer = world.mcpx(["--json", "ls", "--catalog-wait", "300ms"]).any_stderr().output().json();
    let silent = answer["namespaces"].as_array().unwrap().iter().find(|r| r["name"] == "silent").unwrap();
    assert_eq!(silent["state"], "starting");
}

#[test]
fn broken_servers_take_one_line_of_what_a_search_says() {
    let mut world = World::demo();
    for name in ["a", "b", "c"] {
        world = world.server(name, json!({"command": "no-such-program"}));
    }
    let line = |words: &[&str]| {
        let output = world.mcpx(words).any_stderr().output();
        assert_eq!(output.status, 0, "{output}");
        output.stderr.clone()
    };
    let why = "a, b, c; mcpx ls says why\n";
    assert_eq!(line(&["search", "echo"]), format!("mcpx: 3 servers were not searched: {why}"));
    assert_eq!(line(&["tools"]), format!("mcpx: 3 servers were not listed: {why}"));
    assert_eq!(line(&["types"]), format!("mcpx: 3 servers were not described: {why}"));
}

#[test]
fn a_start_that_times_out_in_a_listing_is_not_called_a_call() {
    let world = World::demo().server(
        "silent",
        json!({"command": env!("CARGO_BIN_EXE_fake-mcp"), "args": ["--never-initialize"], "mcpx": {"startTimeout": "300ms"}}),
    );
    let output = world.mcpx(["ls"]).any_stderr().output();
    output.says(&["silent", "300ms", "startTimeout"]);
    assert!(!output.to_string().contains("the call"), "{output}");
}

#[test]
fn search_ranks_names_before_descriptions_and_needs_all_words_first() {
    let world = World::demo();
    let hits = |words: &[&str]| -> Vec<String> {
        let mut all = vec!["--json", "search"];
        all.extend(words);
        let answer = world.mcpx(all).run().json();
        let hits = answer["hits"].as_array().expect("search gives hits").clone();
        hits.iter().map(|h| h["tool"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(hits(&["echo"])[0], "echo");
    assert_eq!(hits(&["count"])[0], "counter");
    assert_eq!(hits(&["weather", "city"])[0], "forecast");
    assert!(hits(&["demo"]).len() > 5, "the namespace counts too");
    // No tool has both words; then either does.
    let either = hits(&["echo", "picture"]);
    assert!(either.contains(&"echo".to_owned()) && either.contains(&"image".to_owned()), "{either:?}");
    world.mcpx(["search", "zebra"]).any_stderr().output().says(&["zebra"]);
    world.mcpx(["search", "add", "numbers"]).stdout_has("add").run().says(&["demo"]);
}

#[test]
fn types_print_signatures_and_name_the_nearest_namespace() {
    let world = World::demo();
    let text = world.mcpx(["types", "demo"]).run().stdout();
    for part in ["echo(", "text: string", "sum: number", "forecast(", "\"celsius\" | \"fahrenheit\""] {
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    }
    assert_eq!(world.mcpx(["types", "demo"]).run().stdout(), text, "the same each time");
    world.mcpx(["types", "dmo"]).status(2).stderr_has("demo").check();
}

#[test]
fn the_generated_client_satisfies_the_compiler() {
    let world = World::demo().and_fake("odd-name.x", &[]).and_fake("class", &[]);
    let _ = world.mcpx(["client", "-o", "client/mcpx.ts"]).any_stderr().run();
    let written: Vec<_> =
        std::fs::read_dir(world.dir().join("client")).unwrap().flatten().map(|e| e.path()).collect();
    assert!(!written.is_empty());
    world.write(
        "use.ts",
        r#"import tools, { demo } from "./client/mcpx.ts";
const sum: number = (await demo.add({ a: 1, b: 2 })).sum;
const sky: "clear" | "cloudy" | "rain" | "snow" = (await tools.demo.forecast({ city: "Bern" })).days[0]!.sky;
await demo.hostile({ version: 2, tree: { value: null, children: [{ value: "x" }] }, pair: ["a", 1] });
await demo.class({});
// @ts-expect-error a is missing
await demo.add({ b: 2 });
// @ts-expect-error not one of the units
await demo.forecast({ city: "x", unit: "kelvin" });
// @ts-expect-error must be 2
await demo.hostile({ version: 3 });
export { sum, sky };
"#,
    );
    world.write("package.json", r#"{"type": "module"}"#);
    let output = tools::tsc()
        .args([
            "--noEmit",
            "--strict",
            "--target",
            "es2022",
            "--module",
            "nodenext",
            "--moduleResolution",
            "nodenext",
        ])
        .args([
            "--allowImportingTsExtensions",
            "--noUncheckedIndexedAccess",
            "--skipLibCheck",
            "false",
            "use.ts",
        ])
        .current_dir(world.dir())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}\n{written:?}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn tools_lists_one_namespace_or_all() {
    let world = World::demo().and_fake("fake", &[]);
    world.mcpx(["tools", "demo"]).stdout_has("demo.echo(").stdout_has("demo.get_weird_name(").run().says(&[]);
    let all = world.mcpx(["tools"]).run().stdout();
    assert!(all.contains("forecast") && all.contains("progress"), "{all}");
    world.mcpx(["tools", "fak"]).status(2).stderr_has("fake").check();
    let json = world.mcpx(["--json", "tools", "demo"]).run().json();
    assert!(json.to_string().contains("inputSchema"), "{json}");
}

#[test]
fn one_tool_can_be_named_where_a_namespace_can() {
    let world = World::demo().and_fake("fake", &[]);
    let types = world.mcpx(["types", "demo.echo"]).run().stdout();
    assert!(types.contains("echo(") && !types.contains("add("), "{types}");
    let two = world.mcpx(["tools", "demo.echo", "demo.get_weird_name"]).run().stdout();
    assert!(two.lines().count() == 2 && two.contains("demo.get_weird_name("), "{two}");
    let whole = world.mcpx(["tools", "demo.echo", "demo"]).run().stdout();
    assert!(whole.contains("demo.add("), "the namespace has its tools in it: {whole}");
    let json = world.mcpx(["--json", "tools", "demo.echo"]).run().json();
    assert_eq!(json["tools"].as_array().unwrap().len(), 1, "{json}");
    world.mcpx(["tools", "demo.ecko"]).status(2).stderr_has("did you mean \"echo\"").check();
    world.mcpx(["types", "dmo.echo"]).status(2).stderr_has("demo").check();
}

#[test]
fn every_page_of_tools_is_read_and_an_endless_list_ends() {
    let world = World::fake(&["--tools", "250", "--page", "7"]);
    assert_eq!(row(&world, "fake")["tools"], FAKE + 250);
    let world = World::fake(&["--page", "5", "--loop-cursor"]);
    // Whether it becomes a row of tools or of a reason: it ends, and says which server.
    let output = world.mcpx(["ls"]).any_stderr().output();
    output.says(&["fake"]);
    assert!(output.seconds < 20.0, "{output}");
}

#[test]
fn a_change_of_the_tools_is_seen() {
    let world = World::fake(&["--list-changed"]);
    assert_eq!(row(&world, "fake")["tools"], FAKE + 1);
    world.mcpx(["call", "fake.grow"]).stdout("grown\n").check();
    wait_until("the new tool to be listed", || (row(&world, "fake")["tools"] == FAKE + 2).then_some(()));
    let _ = world.mcpx(["call", "fake.grown_0"]).run();
}

#[test]
fn refresh_reads_anew() {
    let world = World::new();
    let file = world.dir().join("tools.json");
    let world = world
        .file("tools.json", r#"[{"name":"one","inputSchema":{"type":"object"}}]"#)
        .and_fake("fake", &["--hostile-schema", file.to_str().unwrap()]);
    assert_eq!(row(&world, "fake")["tools"], FAKE + 1);
    world.write(
        "tools.json",
        r#"[{"name":"one","inputSchema":{"type":"object"}},{"name":"two","inputSchema":{"type":"object"}}]"#,
    );
    let _ = world.mcpx(["refresh"]).any_stderr().run();
    assert_eq!(row(&world, "fake")["tools"], FAKE + 2);
    world.mcpx(["call", "fake.two"]).run().says(&["two"]);
}

#[test]
fn a_damaged_cache_is_read_anew() {
    let world = World::demo();
    assert_eq!(row(&world, "demo")["state"], "ready");
    let mut damaged = 0;
    let mut dirs = vec![world.cache()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            if entry.path().is_dir() {
                dirs.push(entry.path());
            } else {
                let half = std::fs::read(entry.path()).unwrap();
                std::fs::write(entry.path(), &half[..half.len() / 2]).unwrap();
                damaged += 1;
            }
        }
    }
    assert!(damaged > 0);
    assert_eq!(row(&world, "demo")["tools"], 14);
}

#[test]
fn two_hundred_servers_with_five_thousand_tools_come_from_the_cache_at_once() {
    let mut world = World::new();
    for n in 0..200 {
        world = world.server(
            &format!("server{n}"),
            json!({"command": env!("CARGO_BIN_EXE_fake-mcp"), "args": ["--tools", "8", "--name", format!("s{n}")]}),
        );
    }
    let cold =
        world.mcpx(["--json", "ls", "--catalog-wait", "2m"]).limit(std::time::Duration::from_secs(120)).run();
    assert_eq!(cold.json().to_string().matches("\"ready\"").count(), 200);
    let _ = world.mcpx(["stop"]).run();
    let warm = world.mcpx(["ls"]).run();
    assert_eq!(warm.stdout().lines().count(), 201, "{warm}");
    let found = world.mcpx(["--json", "search", "tool_7"]).run();
    found.says(&["tool_7"]);
    assert!(
        world.processes().is_empty(),
        "neither a daemon nor a server was needed: {:?}",
        world.processes()
    );
}

#[test]
fn refresh_counts_tokens_as_ls_does() {
    let world = World::demo();
    let tokens = |command: &str| {
        let answer = world.mcpx(["--json", command]).run().json();
        answer["namespaces"][0]["tokens"].as_u64().unwrap()
    };
    let fresh = tokens("refresh");
    assert!(fresh > 0);
    assert_eq!(fresh, tokens("ls"));
}
