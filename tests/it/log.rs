//! The log: what gets into it, from whom, and how it is read, with a daemon and without.

use crate::harness::{Runtime, World, wait_until};
use serde_json::{Value, json};

/// Waits until a question to the log has so many answers.
#[track_caller]
fn records(world: &World, args: &[&str], count: usize) -> Vec<Value> {
    let all: Vec<&str> = ["--json", "log"].iter().chain(args).copied().collect();
    wait_until(&format!("{count} records for {args:?}"), || {
        let found = world.mcpx(all.clone()).run().json_lines();
        (found.len() >= count).then_some(found)
    })
}

fn files(world: &World) -> Vec<std::path::PathBuf> {
    let dir = std::fs::read_dir(world.state().join("log")).unwrap();
    let mut files: Vec<_> = dir.map(|e| e.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn every_call_is_recorded_with_its_ids_and_found_without_a_daemon() {
    let world = World::demo().env("MCPX_TRACE_IDS", r#"[["session_id","abc"],["worktree","/w"]]"#);
    world.mcpx(["log"]).stdout("").stderr_has("the log is empty").check();
    world.mcpx(["call", "demo.echo", "text=x", "--session", "work"]).stdout("x\n").check();
    world.mcpx(["call", "demo.fail", "message=no"]).status(1).any_stderr().check();
    world.mcpx(["call", "demo.ech", "text=x"]).status(2).any_stderr().check();
    records(&world, &["--event", "call"], 3);
    let _ = world.mcpx(["stop"]).run();
    assert!(world.daemons().is_empty());
    let calls = records(&world, &["--event", "call.finished"], 3);
    let outcomes: Vec<&str> = calls.iter().map(|r| r["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes[..2], ["ok", "tool"]);
    let first = &calls[0];
    for (key, value) in
        [("server", "demo"), ("tool", "echo"), ("session", "work"), ("instance", "global"), ("level", "info")]
    {
        assert_eq!(first[key], value, "{first}");
    }
    assert_eq!(first["trace"], json!([["session_id", "abc"], ["worktree", "/w"]]));
    assert!(
        first["ms"].as_f64().unwrap() > 0.0 && first["sent"] == 12 && first["received"].as_u64() > Some(0)
    );
    // Neither arguments nor results are in it.
    let whole: String = files(&world).iter().map(|f| std::fs::read_to_string(f).unwrap()).collect();
    assert!(!whole.contains("\"arguments\"") && !whole.contains("\"text\":\"x\""), "{whole}");
    // Narrowed down, in every way there is.
    for (args, count) in [
        (vec!["--session", "work"], 1),
        (vec!["--event", "call", "--tool", "demo.fail"], 1),
        (vec!["--event", "call", "--level", "warn"], 2),
        (vec!["--event", "call", "--since", "1h", "--until", "now"], 3),
        (vec!["--event", "call", "--until", "2020-01-01"], 0),
        (vec!["--event", "call", "--limit", "2"], 2),
        (vec!["--event", "call", "--limit", "0"], 3),
        (vec!["--server", "nobody"], 0),
        (vec!["--grep", "daemon.started"], 1),
    ] {
        let all = ["--json", "log"].into_iter().chain(args.iter().copied());
        assert_eq!(world.mcpx(all).run().json_lines().len(), count, "{args:?}");
    }
    world.mcpx(["log", "--event", "cal"]).status(2).stderr_has("did you mean \"call").check();
    world.mcpx(["log", "--since", "soon"]).status(2).stderr_has("--since").check();
    let late = world.mcpx(["log", "--since", "5m", "--until", "10m"]).status(2).any_stderr().run();
    late.says(&["--since", "is later than --until"]);
    world.mcpx(["log", "-f", "--until", "1m"]).status(2).stderr_has("--until ends before it").check();
    world.mcpx(["log", "--level", "wrn"]).status(2).stderr_has("did you mean \"warn\"").check();
    let text = world.mcpx(["log", "--event", "call", "--session", "work"]).run();
    text.says(&["info  call.finished demo.echo ", " ms ok ", "session=work", "session_id=abc"]);
    // From the call up to the daemon that started it; by the editor's id as well.
    let call = first["call"].as_str().unwrap();
    for id in [call, "work"] {
        let tree = world.mcpx(["log", "--chain", id]).run();
        let text = tree.stdout();
        let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
        let at = |start: &str| {
            lines.iter().position(|l| l.starts_with(start)).unwrap_or_else(|| panic!("{start}: {tree}"))
        };
        assert!(at("daemon d") < at("session work") && at("session work") < at(&format!("call {call}")));
        tree.says(&["daemon.started", "instance demo global", "server.started"]);
    }
    assert_eq!(
        world.mcpx(["--json", "log", "--chain", "abc"]).run().json()["tree"].as_array().unwrap().len(),
        1
    );
    world.mcpx(["log", "--chain", "nobody"]).status(2).stderr_has("no record").check();
}

#[test]
fn scripts_servers_and_plugins_speak_in_it() {
    let world = World::demo().with(Runtime::Bun).server(
        "loud",
        json!({"command": "sh", "args": ["-c", "echo 'token=hunter22-secret on stderr' >&2; exec \"$0\" demo-server", env!("CARGO_BIN_EXE_mcpx")],
               "env": {"LOUD_TOKEN": "hunter22-secret"}}),
    );
    let code = "log.warn('n is {n}', {n: 3}); log.info('second'); await loud.echo({text: 'a'}); return 1";
    world.mcpx(["exec", code, "--session", "s1"]).any_stderr().stdout("1\n").check();
    let said = records(&world, &["--source", "script"], 2);
    assert_eq!(
        (&said[0]["level"], &said[0]["message"], &said[0]["session"]),
        (&json!("warn"), &json!("n is 3"), &json!("s1"))
    );
    assert_eq!(said[0]["data"]["fields"]["n"], 3);
    let run = said[0]["run"].as_str().unwrap();
    let of_run = records(&world, &["--run", run, "--event", "call"], 1);
    assert_eq!(of_run[0]["server"], "loud");
    let tree = world.mcpx(["log", "--chain", run]).run();
    tree.says(&["session s1", &format!("run {run}"), "script.log n is 3", "call.finished loud.echo"]);
    let stderr = records(&world, &["--event", "server.stderr", "--server", "loud"], 1);
    assert_eq!(stderr[0]["message"], "token=******** on stderr", "a secret of the configuration is hidden");
    // Collected into a document, the records are logged all the same.
    let _ = world.mcpx(["--json", "exec", "log.error('third')"]).any_stderr().run();
    records(&world, &["--source", "script", "--level", "error"], 1);
    // A plugin's, over the socket.
    let post = |body: Value| world.ask("POST", "/v1/log", Some(&body));
    assert_eq!(
        post(json!({"message": "from the editor", "session": "s1", "data": {"password": "p", "n": 1}})).0,
        200
    );
    assert_eq!(post(json!({"level": "info"})).0, 400);
    let plugin = records(&world, &["--source", "plugin"], 1);
    assert_eq!(
        (&plugin[0]["message"], &plugin[0]["data"]),
        (&json!("from the editor"), &json!({"password": "********", "n": 1}))
    );
    let (status, body) = world.ask("GET", "/v1/log?source=plugin&limit=5&since=10m", None);
    assert_eq!((status, &body["records"][0]["session"]), (200, &json!("s1")));
    assert_eq!(world.ask("GET", "/v1/log?event=nothing", None).0, 400);
}

#[test]
fn contents_are_recorded_only_where_they_are_asked_for() {
    let world = World::demo().setting("logging", json!({"arguments": true}));
    world.mcpx(["call", "demo.echo", "text=shown"]).stdout("shown\n").check();
    let call = records(&world, &["--event", "call"], 1).remove(0);
    assert_eq!(call["data"]["arguments"], json!({"text": "shown"}));
    assert!(call["data"]["result"].to_string().contains("shown"));
    // What is masked in the arguments is not told by the result.
    let _ = world
        .mcpx(["call", "demo.echo", r#"{"text":"it is hunter1","password":"hunter1"}"#])
        .any_stderr()
        .output();
    let call = records(&world, &["--event", "call"], 2).pop().unwrap();
    assert_eq!(call["data"]["arguments"]["password"], "********");
    assert!(!call.to_string().contains("hunter1"), "{call}");
    // A running daemon follows.
    let _ = world.mcpx(["settings", "set", "logging.arguments", "false"]).any_stderr().run();
    world.mcpx(["call", "demo.echo", "text=hidden"]).stdout("hidden\n").check();
    let calls = records(&world, &["--event", "call"], 3);
    assert!(calls[2].get("data").is_none(), "{}", calls[2]);
}

#[test]
fn files_roll_and_a_killed_daemon_leaves_every_record() {
    let world = World::demo().setting("logging", json!({"maxLines": 5, "keep": 3}));
    for n in 0..12 {
        world.mcpx(["call", "demo.echo", &format!("text={n}")]).stdout(&format!("{n}\n")).check();
    }
    records(&world, &["--event", "call.finished", "--tool", "echo", "--limit", "1"], 1);
    wait_until("the files to roll", || (files(&world).len() == 3).then_some(()));
    let daemon = world.daemons()[0].pid;
    let last = records(&world, &["--event", "call"], 1).pop().unwrap()["call"].clone();
    let number: u64 = last.as_str().unwrap().rsplit('.').next().unwrap().parse().unwrap();
    crate::harness::signal(daemon, libc::SIGKILL);
    world.wait_gone("daemon");
    for file in files(&world) {
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.lines().count() <= 5 && text.ends_with('\n'));
        text.lines().for_each(|line| drop(serde_json::from_str::<Value>(line).unwrap()));
    }
    // Its successor goes on, and both are told apart.
    world.mcpx(["call", "demo.echo", "text=x"]).any_stderr().stdout("x\n").check();
    wait_until("the successor's record", || {
        let newest = records(&world, &["--event", "call", "--limit", "1"], 1).remove(0);
        (newest["call"] != last)
            .then(|| assert!(newest["daemon"].is_string() && newest["seq"].as_u64() < Some(number)))
    });
}

#[test]
fn the_log_is_followed_as_it_grows() {
    let world = World::demo();
    world.mcpx(["call", "demo.echo", "text=x"]).stdout("x\n").check();
    records(&world, &["--event", "call"], 1);
    let following = world.mcpx(["--json", "log", "--follow", "--event", "call", "--limit", "1"]).start();
    let tasks = format!("/proc/{}/task", following.pid());
    wait_until("the command to listen", || {
        let mut threads = std::fs::read_dir(&tasks).unwrap();
        threads
            .any(|t| std::fs::read(t.unwrap().path().join("comm")).is_ok_and(|c| c == b"signals\n"))
            .then_some(())
    });
    for n in 0..5 {
        world.mcpx(["call", "demo.echo", &format!("text={n}")]).stdout(&format!("{n}\n")).check();
    }
    records(&world, &["--event", "call"], 6);
    following.signal(2);
    let output = following.wait();
    assert_eq!((output.status, output.json_lines().len()), (130, 6), "{output}");
}

#[test]
fn a_daemon_of_one_command_keeps_to_the_level() {
    let world = World::demo();
    let call = |level: &str| {
        world
            .mcpx(["call", "demo.echo", "text=x", "--no-daemon", "--log-level", level])
            .stdout("x\n")
            .check();
    };
    call("error");
    assert_eq!(world.mcpx(["--json", "log"]).run().json_lines(), Vec::<Value>::new());
    call("info");
    records(&world, &["--event", "call.finished"], 1);
}

#[test]
fn following_ends_when_the_reader_has_left() {
    use std::io::{BufRead, BufReader};
    let world = World::demo();
    world.mcpx(["call", "demo.echo", "text=x"]).stdout("x\n").check();
    records(&world, &["--event", "call"], 1);
    // Nothing more happens that would be written.
    let mut following = std::process::Command::new(env!("CARGO_BIN_EXE_mcpx"))
        .args(["log", "--follow", "--event", "call"])
        .env_clear()
        .envs(world.environment())
        .current_dir(world.dir())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(following.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("demo.echo"), "{line}");
    let status = wait_until("it ends", || following.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
}

#[test]
fn secrets_of_arguments_and_addresses_are_hidden_wherever_a_daemon_writes() {
    let says = "echo \"got $* and $DATABASE_URL\" >&2; exit 3";
    let world = World::new().server(
        "leaky",
        json!({"command": "sh", "args": ["-c", says, "x", "--api-key", "sekrit-one", "--password=sekrit-two"],
               "env": {"DATABASE_URL": "postgres://app:sekrit-three@db/app"}}),
    );
    let told = world.mcpx(["call", "leaky.x"]).status(69).any_stderr().run();
    told.says(&["--api-key ********", "app:********@db"]);
    for args in
        [vec!["call", "leaky.x"], vec!["--json", "call", "leaky.x"], vec!["call", "--no-daemon", "leaky.x"]]
    {
        let told = world.mcpx(args).status(69).any_stderr().run();
        assert!(!told.to_string().contains("sekrit"), "{told}");
    }
    let failed = records(&world, &["--event", "server.failed"], 1);
    let said = failed[0]["message"].as_str().unwrap();
    assert!(
        said.contains("--api-key ******** --password=********") && said.contains("app:********@db"),
        "{said}"
    );
    let _ = world.mcpx(["stop"]).run();
    let mut texts = 0;
    let mut dirs = vec![world.state()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()) {
            if entry.is_dir() {
                dirs.push(entry);
            } else if let Ok(text) = std::fs::read_to_string(&entry) {
                texts += 1;
                assert!(!text.contains("sekrit"), "{}: {text}", entry.display());
            }
        }
    }
    assert!(texts > 1, "the daemon's own lines, and the log");
}

#[test]
fn a_call_whose_daemon_was_killed_is_recorded_by_its_command() {
    let world = World::fake(&["--hang-on-call"]);
    let calling = world.mcpx(["call", "fake.echo", "text=x", "--session", "s1"]).start();
    wait_until("the call to arrive", || (!world.received("fake", "tools/call").is_empty()).then_some(()));
    crate::harness::signal(world.daemons()[0].pid, libc::SIGKILL);
    let output = calling.wait();
    assert_eq!(output.status, 76, "{output}");
    let call = records(&world, &["--event", "call", "--session", "s1"], 1).remove(0);
    for (key, value) in
        [("server", "fake"), ("tool", "echo"), ("level", "warn"), ("outcome", "outcome-unknown")]
    {
        assert_eq!(call[key], value, "{call}");
    }
    assert!(call["message"].as_str().unwrap().contains("the connection to the daemon broke"), "{call}");
    world.wait_gone("fake-mcp");
}

#[test]
fn a_log_that_cannot_be_read_is_named() {
    let world = World::demo();
    world.write("taken", "");
    let place = world.dir().join("taken");
    let world = world.env("MCPX_STATE_DIR", place.to_str().unwrap());
    let output = world.mcpx(["log"]).any_stderr().output();
    output.says(&["taken/log", "MCPX_STATE_DIR"]);
}
