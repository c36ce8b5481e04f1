//! The plugin in a real opencode, driven by a model whose answers a test writes.

use crate::harness::{Runtime, World, tools, wait_until};
use mcpx::script::env::{Setter, VARIABLES};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Runs the editor over what the model is to do, and gives what came of it.
#[track_caller]
fn opencode(world: &World, reply: &str, runs: &[Value]) -> Value {
    let task = json!({
        "opencode": tools::installed("opencode/node_modules/opencode-linux-x64/bin/opencode"),
        "reply": reply, "runs": runs,
    });
    let output = Command::new(Runtime::Bun.path())
        .arg("run")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plugin/opencode.ts"))
        .arg(task.to_string())
        .current_dir(world.dir())
        .env_clear()
        .envs(world.environment())
        .env("SHELL", "/bin/sh")
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
    serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}\n{out}\n{err}"))
}

/// A project with the plugin and a daemon that runs; its configuration says this of the plugin.
fn project(world: &World, dir: &str, plugin: Value) {
    let demo =
        json!({"command": env!("CARGO_BIN_EXE_mcpx"), "args": ["demo-server"], "mcpx": {"scope": "session"}});
    let config = json!({"plugin": plugin, "mcpServers": {"demo": demo}});
    world.write(&format!("{dir}/.mcpx.json"), &config.to_string());
    let _ = world.mcpx(["plugin", "install", "opencode"]).dir(dir).run();
    let _ = world.mcpx(["refresh"]).dir(dir).run();
}

fn bash(command: &str) -> Value {
    json!({"name": "bash", "args": {"command": command, "description": "what the test wants"}})
}

fn run(world: &World, dir: &str, steps: Value) -> Value {
    json!({"dir": world.dir().join(dir), "steps": steps})
}

fn output(answer: &Value, run: usize, call: usize) -> String {
    let call = &answer["results"][run]["calls"][call];
    call["output"].as_str().unwrap_or_else(|| panic!("{call}\n{answer:#}")).to_owned()
}

/// The JSON at the head of a tool's answer; behind it may stand which daemon gave it.
fn document(text: &str) -> Value {
    let first = serde_json::Deserializer::from_str(text).into_iter().next();
    first.and_then(Result::ok).unwrap_or_else(|| panic!("no JSON: {text}"))
}

/// The variables of mcpx that a shell showed.
fn variables(text: &str) -> BTreeMap<String, String> {
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    let ours = pairs.filter(|(name, _)| name.starts_with("MCPX_") && *name != "MCPX_TEST_WORLD");
    ours.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// What the table says of a level: the variables that are always set there, and those that may be.
fn level(words: &[&str]) -> (BTreeSet<&'static str>, BTreeSet<&'static str>) {
    let of = VARIABLES.iter().filter(|v| v.setters.contains(&Setter::Plugin));
    let of: Vec<_> = of.filter(|v| words.iter().any(|word| v.when.contains(word))).collect();
    let sure = of.iter().filter(|v| !v.when.contains("when there is a") && !v.when.contains("parent"));
    (sure.map(|v| v.name).collect(), of.iter().map(|v| v.name).collect())
}

#[test]
fn a_shell_of_the_editor_gets_what_the_table_says_and_each_session_its_own_server() {
    let world = World::new().with(Runtime::Bun);
    for (name, path) in
        [("mcpx", env!("CARGO_BIN_EXE_mcpx").into()), ("git", tools::on_path("git").expect("git"))]
    {
        let path: std::path::PathBuf = path;
        world.link(name, &path);
    }
    for level in ["minimal", "standard", "full"] {
        project(&world, level, json!({"env": level, "tools": "on", "headless": "off"}));
    }
    let git = ["init", "-q", "full"];
    assert!(Command::new("git").args(git).current_dir(world.dir()).status().unwrap().success());
    let mut child = run(&world, "full", json!([bash("env")]));
    child["parent"] = json!(2);
    let mut again = run(&world, "standard", json!([bash("mcpx exec 'return await demo.counter()'")]));
    again["again"] = json!(1);
    let count = "mcpx call demo.counter";
    let answer = opencode(
        &world,
        "once",
        &[
            run(&world, "minimal", json!([bash("env")])),
            run(&world, "standard", json!([bash("env"), bash(count), bash(count)])),
            run(&world, "full", json!([bash("env")])),
            child,
            run(
                &world,
                "standard",
                json!([bash(count), bash("env"), {"name": "mcpx_exec", "args": {"code": "return await demo.counter()"}}]),
            ),
            again,
        ],
    );
    let session = |run: usize| answer["results"][run]["session"].as_str().unwrap().to_owned();

    let minimal = variables(&output(&answer, 0, 0));
    assert_eq!(minimal.into_iter().collect::<Vec<_>>(), [("MCPX_SESSION_ID".to_owned(), session(0))]);

    let standard = variables(&output(&answer, 1, 0));
    let names: BTreeSet<&str> = standard.keys().map(String::as_str).collect();
    let (sure, may) = level(&["every level", "standard"]);
    assert!(names.is_superset(&sure) && names.is_subset(&may), "{names:?}\n{sure:?}");
    assert_eq!(standard["MCPX_SESSION_ID"], session(1));
    assert_eq!(standard["MCPX_HARNESS"], "opencode");
    assert_eq!(standard["MCPX_HARNESS_VERSION"], "1.18.33");
    assert_eq!(standard["MCPX_HARNESS_PID"], answer["pid"].to_string());
    let dir = world.dir().join("standard").canonicalize().unwrap();
    assert_eq!(Path::new(&standard["MCPX_OPENCODE_DIRECTORY"]), dir);
    let infos = world.infos();
    let own = infos.iter().find(|i| i["configPath"] == json!(dir.join(".mcpx.json"))).unwrap();
    assert_eq!(standard["MCPX_DAEMON_ENDPOINT"], format!("unix://{}", own["socket"].as_str().unwrap()));

    let full = variables(&output(&answer, 2, 0));
    let names: BTreeSet<&str> = full.keys().map(String::as_str).collect();
    let (sure, may) = level(&["every level", "standard", "full"]);
    assert!(names.is_superset(&sure) && names.is_subset(&may), "{names:?}\n{sure:?}");
    assert_eq!((full["MCPX_WORKTREE_NAME"].as_str(), full["MCPX_SESSION_DEPTH"].as_str()), ("full", "0"));
    let below = variables(&output(&answer, 3, 0));
    let names: BTreeSet<&str> = below.keys().map(String::as_str).collect();
    assert_eq!(names, may, "a session with a parent has them all");
    assert_eq!((&below["MCPX_PARENT_SESSION_ID"], below["MCPX_SESSION_DEPTH"].as_str()), (&session(2), "1"));
    let trace: Vec<(String, String)> = serde_json::from_str(&below["MCPX_TRACE_IDS"]).unwrap();
    for pair in
        [("session_id", session(3)), ("parent_session_id", session(2)), ("ancestor_session_id", session(2))]
    {
        assert!(trace.contains(&(pair.0.to_owned(), pair.1.clone())), "{trace:?}");
    }
    assert!(
        below["MCPX_SESSION_AGE_MS"].parse::<u64>().is_ok() && below["MCPX_SESSION_CREATED"].contains('T')
    );

    // Two sessions, two servers; and what runs inside the shell belongs to its session.
    let counted: Vec<String> =
        [(1, 1), (1, 2), (4, 0), (5, 0)].iter().map(|(r, c)| output(&answer, *r, *c)).collect();
    let counted: Vec<&str> = counted.iter().map(|c| c.trim()).collect();
    assert_eq!(counted, ["1", "2", "1", "3"], "{answer:#}");
    assert_ne!(session(1), session(4));
    let other = variables(&output(&answer, 4, 1));
    assert_eq!(other["MCPX_SESSION_ID"], session(4));
    assert!(other["MCPX_SHELL_SEQ"].parse::<u32>().unwrap() > standard["MCPX_SHELL_SEQ"].parse().unwrap());
    let said = output(&answer, 4, 2);
    assert!(said.starts_with('2'), "the tool is of the same session: {said}");
    assert!(said.contains("standard/.mcpx.json"), "there was a choice, so it says who answered: {said}");
    assert_eq!(answer["toasts"], json!([]), "nothing was odd");
}

#[test]
fn the_tools_need_no_binary_and_a_choice_is_confirmed_and_remembered() {
    let world = World::new().with(Runtime::Bun).env("MCPX_PLUGIN_HEADLESS", "off");
    project(&world, "c", json!({"backend": "cli", "tools": "on", "bin": env!("CARGO_BIN_EXE_mcpx")}));
    project(&world, "a", json!({}));
    project(&world, "b", json!({}));
    std::fs::create_dir_all(world.dir().join("between")).unwrap();
    let _ = world.mcpx(["plugin", "install", "opencode"]).dir("between").run();
    assert!(!world.bin().join("mcpx").exists(), "there is no mcpx on the PATH");
    let tool = |name: &str, args: Value| json!({"name": name, "args": args});
    let answer = opencode(
        &world,
        "always",
        &[
            run(
                &world,
                "a",
                json!([
                    tool("mcpx_discover", json!({})),
                    tool("mcpx_discover", json!({"query": "counter"})),
                    tool("mcpx_discover", json!({"server": "demo"})),
                    tool("mcpx_observe", json!({"what": "events"})),
                    tool("mcpx_observe", json!({"what": "status"})),
                    tool("mcpx_exec", json!({"code": "return 6 * 7"})),
                    tool("mcpx_exec", json!({"code": "return await demo.echo({text: 'seen'})"})),
                    tool("mcpx_observe", json!({"what": "log", "server": "demo", "since": "1h"})),
                    tool("mcpx_observe", json!({"what": "stats", "about": "slowest", "limit": 1})),
                ]),
            ),
            run(
                &world,
                "between",
                json!([
                    bash("env"),
                    bash("env"),
                    tool("mcpx_daemon_status", json!({})),
                    tool("mcpx_daemon_select", json!({"index": 7})),
                    tool("mcpx_daemon_select", json!({"index": 1})),
                    tool("mcpx_daemon_status", json!({})),
                ]),
            ),
            run(
                &world,
                "c",
                json!([
                    tool("mcpx_observe", json!({"what": "log", "server": "demo"})),
                    tool("mcpx_observe", json!({"what": "stats"})),
                ]),
            ),
        ],
    );
    assert!(output(&answer, 0, 0).starts_with("demo  14 tools"), "{answer:#}");
    assert!(output(&answer, 0, 1).contains("demo.counter"), "{answer:#}");
    assert!(output(&answer, 0, 2).contains("counter"), "{answer:#}");
    assert!(output(&answer, 0, 3).contains("daemon.started"), "{answer:#}");
    assert!(output(&answer, 0, 4).contains("a/.mcpx.json"), "{answer:#}");
    assert!(output(&answer, 0, 5).starts_with("42"), "{answer:#}");
    // The real log, and what it comes to; the same with the binary alone.
    for log in [output(&answer, 0, 7), output(&answer, 2, 0)] {
        let log = document(&log);
        let call = log["records"].as_array().unwrap().iter().find(|r| r["event"] == "call.finished");
        assert_eq!(call.unwrap_or_else(|| panic!("{log:#}"))["tool"], "echo", "{log:#}");
    }
    let stats = document(&output(&answer, 0, 8));
    assert_eq!((&stats["about"], stats["rows"].as_array().unwrap().len()), (&json!("slowest"), 1), "{stats}");
    assert!(output(&answer, 2, 1).contains("demo.echo"), "{answer:#}");
    // And how long the editor's own tools took is in it, under the editor's session.
    let timed: Vec<Value> = wait_until("the tools' times to be in the log", || {
        let log =
            world.mcpx(["--json", "log", "--event", "tool.finished", "--limit", "0"]).any_stderr().run();
        let rows = log.json_lines();
        (rows.iter().filter(|r| r["tool"] == "mcpx_exec").count() >= 2).then_some(rows)
    });
    for row in &timed {
        assert!(row["source"] == "plugin" && row["session"].is_string() && row["call"].is_string(), "{row}");
        assert!(
            row["data"]["ms"].as_f64().is_some_and(|ms| ms > 0.0) || row["ms"].as_f64().is_some(),
            "{row}"
        );
    }

    let listed = output(&answer, 1, 2);
    assert!(listed.contains("0  ") && listed.contains("1  ") && listed.contains("a guess"), "{listed}");
    let wrong = answer["results"][1]["calls"][3]["error"].as_str().unwrap();
    assert!(wrong.contains("there is no daemon 7"), "{wrong}");
    let asked = answer["asked"].as_array().unwrap();
    assert_eq!(asked.len(), 1, "{asked:?}");
    // The most recently started is the first, so the second is that of `a`.
    let config = world.dir().canonicalize().unwrap().join("a/.mcpx.json");
    assert_eq!(asked[0]["metadata"]["config"], json!(config), "the person sees what is chosen");
    let now = output(&answer, 1, 5);
    assert!(now.contains("it was chosen"), "{now}");
    let file = std::fs::read(world.state().join("opencode-daemons.json")).expect("always remembers");
    let kept: Value = serde_json::from_slice(&file).unwrap();
    let (dir, choice) = kept["directories"].as_object().unwrap().iter().next().unwrap();
    assert!(dir.ends_with("/between"), "{kept}");
    assert_eq!((&choice["mode"], &choice["configPath"]), (&json!("indefinite"), &json!(config)));
    // A guess is not passed on to mcpx in a shell, which knows better.
    assert!(!output(&answer, 1, 1).contains("MCPX_DAEMON_ENDPOINT"), "{answer:#}");
    // Somebody is there to read, so it was said: once in the session, and perhaps at the start, before anybody listened.
    let said: Vec<&str> =
        answer["toasts"].as_array().unwrap().iter().map(|t| t["message"].as_str().unwrap()).collect();
    assert!((1..=2).contains(&said.len()), "{said:?}");
    assert!(said.iter().all(|m| m.contains("no daemon serves")), "{said:?}");
}
