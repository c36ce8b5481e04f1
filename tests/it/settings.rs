//! Settings from every place they may come from, presets, the files that hold
//! them, and what a running daemon takes.

use crate::harness::World;
use mcpx::settings::{ALL, Declared, Kind, Settings, bytes_text, duration_text};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// A value that is not the default, as one types it, and the same in a file.
fn sample(setting: &dyn Declared) -> (String, Value) {
    let default = setting.default_text();
    let text = |text: String| (text.clone(), Value::from(text));
    match setting.kind() {
        Kind::Bool => {
            let on = default != "true";
            (on.to_string(), on.into())
        }
        Kind::Int(min, max) => {
            let n = if min.to_string() == default { max } else { min };
            (n.to_string(), n.into())
        }
        Kind::Duration(min, max, _) => {
            text([max, min].into_iter().map(duration_text).find(|t| *t != default && t != "0").unwrap())
        }
        Kind::Bytes(min, max) => {
            text([max, min].into_iter().map(bytes_text).find(|t| *t != default).unwrap())
        }
        Kind::Enum(choices) => {
            let word = choices.iter().map(|(word, _)| *word).find(|w| *w != default && !w.contains('<'));
            text(word.unwrap().to_owned())
        }
        Kind::Text | Kind::Source => text("some text".into()),
        Kind::Path => text("/tmp/some/where".into()),
        Kind::List => ("one,two".into(), json!(["one", "two"])),
        Kind::Paths => ("/a:/b".into(), json!(["/a", "/b"])),
        Kind::Json => ("{\"x\":{}}".into(), json!({"x": {}})),
        Kind::Secret => text("s3cret".into()),
    }
}

/// Settings whose value decides what else is read, and so must make sense.
fn sample_in(world: &World, setting: &dyn Declared) -> (String, Value) {
    match setting.key() {
        "preset" | "catalog.profile" => ("mine".into(), json!(["mine"])),
        "paths.configFile" => {
            let path = world.dir().join("other.json").to_string_lossy().into_owned();
            (path.clone(), path.into())
        }
        "paths.state" | "paths.cache" => {
            let path = world.home().join("elsewhere").to_string_lossy().into_owned();
            (path.clone(), path.into())
        }
        _ => sample(setting),
    }
}

/// Asserts what `settings get` says.
#[track_caller]
fn shows(output: &Value, setting: &dyn Declared, text: &str, source: &str) {
    let wanted = if setting.secret() { "********" } else { text };
    assert_eq!(output["text"], wanted, "{output}");
    assert_eq!(output["source"], source, "{output}");
    assert_eq!(output["displaced"].as_array().unwrap().last().unwrap()["source"], "default", "{output}");
}

#[test]
fn every_setting_is_taken_from_a_file_from_each_variable_and_from_each_flag() {
    let mut world = World::new().file("other.json", "{}");
    let file = world.dir().join(".mcpx.json");
    let servers = json!({"a": {"command": "x", "mcpx": {"profiles": ["mine"]}}});
    let with = |key: &str, value: Value| {
        json!({"mcpServers": servers, "presets": {"mine": []}, key: value}).to_string()
    };
    let get = |world: &World, key: &str| {
        world.mcpx(["settings", "get", key, "--json"]).any_stderr().output().json()
    };
    for setting in ALL {
        let key = setting.key();
        let (typed, value) = sample_in(&world, *setting);
        // In a file, nested and with the dot.
        let (family, name) = key.split_once('.').unwrap_or((key, ""));
        let nested = if name.is_empty() { value.clone() } else { json!({name: value}) };
        for body in [with(family, nested), with(key, value)] {
            world.write(".mcpx.json", &body);
            if setting.spec().bootstrap {
                let output = world.mcpx(["settings", "get", key]).status(65).any_stderr().run();
                output.says(&[".mcpx.json:1", key, "needed before one is read", &setting.env_names()[0]]);
            } else if key != "output.json" {
                shows(&get(&world, key), *setting, &typed, &format!("{}:1", file.display()));
            }
        }
        world.write(".mcpx.json", &with("output", json!({})));
        for variable in setting.env_names() {
            world = world.env(&variable, &typed);
            if key != "output.json" {
                shows(&get(&world, key), *setting, &typed, &variable);
            }
            world = world.env(&variable, "");
        }
        assert_eq!(setting.flag_names().is_empty(), setting.secret(), "{key}");
        for flag in setting.flag_names() {
            let both = format!("{flag}={typed}");
            let output = world.mcpx(["settings", "get", key, "--json", &both]).any_stderr().output();
            if key != "output.json" {
                shows(&output.json(), *setting, &typed, &flag);
            }
        }
    }
    // What decides the form of the answer itself.
    let text = world.mcpx(["settings", "get", "output.json"]).run().stdout();
    assert!(text.starts_with("output.json = false\n  from        default\n"), "{text}");
    let answer = world.mcpx(["settings", "get", "output.json"]).env("MCPX_OUTPUT_JSON", "true").run();
    assert_eq!(answer.json()["source"], "MCPX_OUTPUT_JSON");
}

#[test]
fn a_value_shows_its_source_and_everything_that_it_displaced() {
    let world = World::new()
        .file("../home/.mcpx.json", "{\"pool\": {\"max\": 2}}")
        .config("{\n  \"presets\": {\"p\": [\"--pool-max=5\"]},\n  \"pool\": {\"max\": 3}\n}")
        .env("MCPX_POOL_MAX", "4")
        .env("MCPX_PRESET", "p");
    let row = world.mcpx(["settings", "get", "pool.max", "--pool-max=6", "--json"]).run().json();
    let near = format!("{}:3", world.dir().join(".mcpx.json").display());
    let far = format!("{}:1", world.home().join(".mcpx.json").display());
    let sources: Vec<&str> =
        row["displaced"].as_array().unwrap().iter().map(|d| d["source"].as_str().unwrap()).collect();
    assert_eq!(row["source"], "--pool-max");
    assert_eq!(sources, ["preset:p (--pool-max)", "MCPX_POOL_MAX", &near, &far, "default"]);
    let text = world.mcpx(["settings", "get", "pool.max", "--pool-max", "6"]).run();
    text.says(&["pool.max = 6", "from        --pool-max", "instead of  5  (preset:p (--pool-max))", &far]);
    let list = world.mcpx(["settings", "list", "pool"]).run();
    list.says(&["KEY", "INSTEAD OF", "pool.max", "4 (MCPX_POOL_MAX)", "pool.callTimeout"]);
    assert!(!list.stdout().contains("script.timeout"));
    let all = world.mcpx(["settings", "--json"]).run().json();
    assert_eq!(all["settings"].as_array().unwrap().len(), ALL.len());
}

#[test]
fn a_bad_value_names_its_place_whatever_its_kind() {
    let cases: &[(&str, Value, &str, &str)] = &[
        ("mcp.validateArguments", json!("maybe"), "maybe", "neither true nor false"),
        ("pool.max", json!(0), "0", "must be from 1 to 4096"),
        ("pool.max", json!("many"), "many", "not a whole number"),
        ("pool.max", json!(99_999_999_999_999_999_999.0), "99999999999999999999", "not a whole number"),
        ("pool.callTimeout", json!("5"), "5", "has no unit"),
        ("pool.callTimeout", json!("5 parsecs"), "5 parsecs", "not a unit of time"),
        ("pool.callTimeout", json!("-1s"), "-1s", "cannot be negative"),
        ("pool.callTimeout", json!("99999d"), "99999d", "must be from"),
        ("transport.maxBody", json!("64K"), "64K", "1000 or 1024"),
        ("transport.maxBody", json!("1B"), "1B", "must be from"),
        ("pool.sharing", json!("shred"), "shred", "did you mean \"shared\""),
        ("script.runtimeOrder", json!("a,,b"), "a,,b", "element 2 is empty"),
        ("script.runtimes", json!("[]"), "[]", "expected a JSON object"),
        ("script.runtimes", json!("{"), "{", "JSON"),
    ];
    for (key, value, typed, part) in cases {
        let (family, name) = key.split_once('.').unwrap();
        let world =
            World::new().config(&format!("{{\n  \"{family}\": {{\n    \"{name}\": {value}\n  }}\n}}"));
        let place = format!("{}:3:5: {key}", world.dir().join(".mcpx.json").display());
        let output = world.mcpx(["settings", "get", key]).status(65).any_stderr().run();
        output.says(&[&place, part]);
        world.write(".mcpx.json", "{}");
        let setting = mcpx::settings::declared(key).unwrap();
        let variable = &setting.env_names()[0];
        let output = world.mcpx(["settings", "get", key]).env(variable, *typed).status(2).any_stderr().run();
        output.says(&[&format!("{variable}: "), part]);
        let flag = &setting.flag_names()[0];
        let output =
            world.mcpx(["settings", "get", key, &format!("{flag}={typed}")]).status(2).any_stderr().run();
        output.says(&[&format!("{flag}: "), part]);
    }
    // Wrong types, which only a file can have.
    for (key, value, part) in [
        ("pool.max", json!([3]), "got a list"),
        ("pool.callTimeout", json!({}), "got an object"),
        ("output.color", json!(null), "got null"),
        ("preset", json!([1]), "element 1 is a number"),
        ("transport.bearerToken", json!(7), "got a number"),
    ] {
        let world = World::new().config(&json!({key: value}).to_string());
        let output = world.mcpx(["settings", "list"]).status(65).any_stderr().run();
        output.says(&[".mcpx.json:1:", key, part]);
    }
    let world = World::new();
    let bytes = OsString::from_vec(vec![b'5', 0xff, b's']);
    let output = world.mcpx(["ls"]).env("MCPX_POOL_CALL_TIMEOUT", bytes).status(2).any_stderr().run();
    output.says(&["MCPX_POOL_CALL_TIMEOUT: is not valid UTF-8"]);
    let output = world.mcpx(["settings", "get", "pool.mx"]).status(2).any_stderr().run();
    output.says(&["no setting \"pool.mx\"", "did you mean \"pool.max\""]);
}

#[test]
fn two_spellings_of_one_setting_must_agree() {
    let world = World::new();
    for (args, env, part) in [
        (&["--timeout=1s", "--script-timeout=2s"][..], "", "--timeout sets the same to another value"),
        (&[], "net", "sets the same to another value"),
    ] {
        let mut command = vec!["settings", "get", "script.timeout"];
        command.extend(args);
        let output = world
            .mcpx(command)
            .env("MCPX_PERMISSIONS", "all")
            .env("MCPX_SCRIPT_PERMISSIONS", env)
            .status(2)
            .any_stderr()
            .run();
        output.says(&[part]);
    }
    let twice = [
        "settings",
        "get",
        "script.timeout",
        "--timeout=1s",
        "--timeout=2s",
        "--script-timeout=2s",
        "--json",
    ];
    assert_eq!(world.mcpx(twice).run().json()["text"], "2s");
    world.write(".mcpx.json", "{\n\"pool\": {\"max\": 3},\n\"pool.max\": 4}");
    let output = world.mcpx(["settings", "list"]).status(65).any_stderr().run();
    output.says(&[".mcpx.json:3:1: pool.max: is also set in line 2, to another value"]);
}

fn with_presets() -> World {
    World::demo().setting(
        "presets",
        json!({
            "ci": ["--json", "--log-level=warn"],
            "debug": ["--log-level=debug", "--timeout=30s"],
            "raw": ["--raw", "--follow-nothing=1"],
            "envelope": ["--raw"],
        }),
    )
}

#[test]
fn presets_follow_their_rules() {
    let world = with_presets();
    let level = |args: &[&str]| {
        let row = world.mcpx([&["settings", "get", "logging.level", "--json"], args].concat()).run().json();
        (row["text"].as_str().unwrap().to_owned(), row["source"].as_str().unwrap().to_owned())
    };
    let is = |text: &str, source: &str| (text.to_owned(), source.to_owned());
    assert_eq!(level(&["--preset", "ci"]), is("warn", "preset:ci (--log-level)"));
    assert_eq!(level(&["--preset=ci,debug"]), is("debug", "preset:debug (--log-level)"));
    assert_eq!(level(&["--preset=debug,ci"]), is("warn", "preset:ci (--log-level)"));
    assert_eq!(level(&["--preset=ci", "--log-level=error"]), is("error", "--log-level"));
    // --json of a preset is as good as typed.
    let row = world.mcpx(["settings", "get", "output.json"]).env("MCPX_PRESET", "ci").run().json();
    assert_eq!(row["source"], "preset:ci (--json)");
    let sources = world.mcpx(["config", "--sources", "--preset", "debug"]).run();
    sources.says(&[
        "FROM PRESET\n",
        "logging.level = debug  preset:debug (--log-level), instead of info (default)",
    ]);
    // The same flag means to each command what that command means by it.
    sources.says(&["script.timeout = 30s  preset:debug (--timeout)"]);
    let limited = world.setting("preset", json!("debug")).mcpx(["config"]).run();
    limited.says(&["presets   ci, debug, envelope, raw; in effect: debug"]);
}

#[test]
fn a_preset_gives_a_command_its_own_flags_and_skips_those_of_others() {
    let world = with_presets();
    let call = |args: &[&str]| world.mcpx([&["call", "demo.echo", "text=hi"], args].concat()).run().stdout();
    assert_eq!(call(&[]), "hi\n");
    assert!(call(&["--preset=envelope"]).contains("\"content\""));
    // `ls` has no --raw: skipped.
    let _ = world.mcpx(["ls", "--preset=envelope"]).run();
    // `call` means the time of the call, `exec` that of the script.
    let slow = ["call", "demo.slow", "seconds=20", "--preset=quick"];
    let world = world.setting("presets", json!({"quick": ["--timeout=200ms"]}));
    world.mcpx(slow).status(124).any_stderr().run().says(&["did not answer"]);
}

#[test]
fn presets_that_are_wrong_are_refused() {
    let world = with_presets();
    for (args, env, status, parts) in [
        (&["--preset=cj"][..], "", 2, &["--preset: there is no preset \"cj\"", "did you mean \"ci\""][..]),
        (
            &[],
            "nothing-like-it",
            2,
            &["MCPX_PRESET: there is no preset", "defined: ci, debug, envelope, raw"],
        ),
        (&["--preset=raw"], "", 65, &[".mcpx.json:", "preset \"raw\": --follow-nothing", "no such flag"]),
    ] {
        let command = [&["settings", "list"], args].concat();
        let output = world.mcpx(command).env("MCPX_PRESET", env).status(status).any_stderr().run();
        output.says(parts);
    }
    for (entries, part) in [
        (json!(["--preset=ci"]), "a preset cannot select other presets"),
        (json!(["--config=x"]), "needed before a configuration is read"),
        (json!(["--log-level", "debug"]), "each entry is one flag"),
        (json!(["--log-level"]), "needs a value"),
        (json!(["--pool-max=0"]), "must be from 1"),
        (json!("--json"), "expected a list of flags"),
        (json!(["--persist"]), "needs a value: --persist="),
        (json!(["--daemon=1"]), "takes no value"),
    ] {
        let world = World::new().config(&json!({"presets": {"bad": entries}}).to_string());
        let output = world.mcpx(["settings", "list", "--preset=bad"]).status(65).any_stderr().run();
        output.says(&[".mcpx.json:1:", "\"bad\"", part]);
        // Until it is selected it harms nobody.
        let _ = world.mcpx(["settings", "get", "pool.max"]).run();
    }
}

#[test]
fn a_file_is_changed_where_it_should_be_and_nowhere_else() {
    let text = "// mine\n{\n    \"pool\": { \"max\": 3 }, // few\n    \"output.color\": \"never\",\n}\n";
    let world = World::new().config(text);
    let file = world.dir().join(".mcpx.json");
    let read = |path: &PathBuf| std::fs::read_to_string(path).unwrap();
    let set = world.mcpx(["settings", "set", "pool.max", "7"]).run();
    set.says(&[&format!("changed in {}", file.display()), "pool.max = 7", "instead of  32  (default)"]);
    assert_eq!(read(&file), text.replace("\"max\": 3", "\"max\": 7"));
    let _ = world.mcpx(["settings", "set", "output.color", "always"]).run();
    let _ = world.mcpx(["settings", "set", "script.timeout", "90s"]).run();
    let row = world.mcpx(["settings", "get", "script.timeout", "--json"]).run().json();
    assert_eq!((&row["text"], &row["source"]), (&json!("1m30s"), &json!(format!("{}:6", file.display()))));
    let wanted = text
        .replace("\"max\": 3", "\"max\": 7")
        .replace("never", "always")
        .replace("\"always\",\n", "\"always\",\n    \"script\": {\n        \"timeout\": \"90s\",\n    },\n");
    assert_eq!(read(&file), wanted);
    for key in ["script.timeout", "output.color", "pool.max"] {
        let _ = world.mcpx(["settings", "unset", key]).run();
    }
    assert_eq!(read(&file), "// mine\n{}\n");
    let _ = world.mcpx(["settings", "unset", "pool.max"]).stderr_has("does not set pool.max").run();

    // The user's own file is made, and what outranks it is said.
    let user = world.home().join(".config/mcpx/config.json");
    let _ = world.mcpx(["settings", "set", "pool.max", "9", "--persist", "user"]).run();
    assert_eq!(read(&user), "{\n  \"pool\": {\n    \"max\": 9\n  }\n}\n");
    let outranked = world.mcpx(["settings", "set", "pool.max", "10", "--persist=user"]);
    let _ = outranked
        .env("MCPX_POOL_MAX", "4")
        .stderr_has("pool.max is 4 all the same: MCPX_POOL_MAX outranks")
        .run();
    for (args, part) in [
        (&["set", "paths.state", "/x"][..], "needed before one is read"),
        (&["set", "pool.max", "0"], "pool.max: must be from 1"),
        (&["set", "pool.max"], "usage: mcpx settings"),
        (&["set", "pool.max", "1", "--persist", "usr"], "did you mean \"user\""),
        (&["set", "transport.bearerToken", "s3cret"], "on standard input"),
        (&["pool.max"], "mcpx settings get pool.max"),
        (&["lst"], "did you mean \"list\""),
        (&["list", "pol"], "did you mean \"pool\""),
    ] {
        let output = world.mcpx([&["settings"], args].concat()).status(2).any_stderr().run();
        output.says(&[part]);
    }
    assert_eq!(read(&file), "// mine\n{}\n");
}

#[test]
fn a_secret_is_read_from_stdin_and_never_shown() {
    let world = World::new();
    let set = ["settings", "set", "transport.bearerToken", "-", "--persist", "user", "--json"];
    let output = world.mcpx(set).stdin("s3cret\n").any_stderr().run();
    assert_eq!(output.json()["value"], "********");
    output.says(&["others can read the secret"]);
    let user = world.home().join(".config/mcpx/config.json");
    assert!(std::fs::read_to_string(user).unwrap().contains("\"s3cret\""));
    for args in [&["settings"][..], &["settings", "--json"], &["config", "--sources"], &["config", "--json"]]
    {
        let output = world.mcpx(args).run();
        assert!(!output.stdout().contains("s3cret"), "{output}");
    }
}

#[test]
fn links_modes_and_read_only_files_are_respected() {
    let world = World::new().file("real/c.json", "{}");
    let real = world.dir().join("real/c.json");
    std::fs::set_permissions(&real, PermissionsExt::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink("real/c.json", world.dir().join(".mcpx.json")).unwrap();
    let _ = world.mcpx(["settings", "set", "pool.max", "7"]).run();
    assert!(world.dir().join(".mcpx.json").is_symlink());
    assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::set_permissions(&real, PermissionsExt::from_mode(0o400)).unwrap();
    let before = std::fs::read(&real).unwrap();
    let output = world.mcpx(["settings", "set", "pool.max", "8"]).status(74).any_stderr().run();
    output.says(&["real/c.json: the file is read-only; nothing was changed", "chmod u+w"]);
    assert_eq!(std::fs::read(&real).unwrap(), before);
    // A file with a fault is not written over, and one whose value is wrong can be put right.
    std::fs::set_permissions(&real, PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::write(&real, "{\"pool\": {\"max\": 0}").unwrap();
    let _ = world
        .mcpx(["settings", "set", "pool.max", "8"])
        .status(65)
        .stderr_has("c.json:1:1: this { is never closed")
        .any_stderr()
        .run();
    std::fs::write(&real, "{\"pool\": {\"max\": 0}}").unwrap();
    let _ = world.mcpx(["settings", "set", "pool.max", "8"]).run();
    assert_eq!(std::fs::read_to_string(&real).unwrap(), "{\"pool\": {\"max\": 8}}");
}

#[test]
fn ten_thousand_keys_are_read_and_changed() {
    let keys: String = (0..10_000).map(|i| format!("  \"key{i}\": {i},\n")).collect();
    let world = World::new().config(&format!("{{\n{keys}  \"pool\": {{\"max\": 3}}\n}}\n"));
    let output = world.mcpx(["settings", "set", "pool.max", "4"]).any_stderr().run();
    output.says(&["pool.max = 4", "unknown key \"key0\"", "more unknown keys"]);
    let text = std::fs::read_to_string(world.dir().join(".mcpx.json")).unwrap();
    assert!(text.ends_with("  \"key9999\": 9999,\n  \"pool\": {\"max\": 4}\n}\n"));
    assert!(output.stderr.lines().count() < 50, "{output}");
}

#[test]
fn a_running_daemon_takes_hot_settings_and_refuses_cold_ones() {
    let world = World::demo();
    let daemon = |args: &[&str]| world.mcpx([&["settings"], args].concat());
    let _ = daemon(&["get", "pool.max", "--daemon"])
        .status(69)
        .stderr_has("no daemon is running")
        .any_stderr()
        .run();
    let _ = world.mcpx(["call", "demo.counter"]).run();
    let set = daemon(&["set", "pool.callTimeout", "200ms", "--persist", "runtime"]).run();
    set.says(&["changed until the daemon ends", "pool.callTimeout = 200ms", "from        runtime"]);
    let row = daemon(&["get", "pool.callTimeout", "--daemon", "--json"]).run().json();
    assert_eq!((&row["source"], &row["displaced"][0]["text"]), (&json!("runtime"), &json!("5m")));
    // At once, and for everybody.
    let _ = world.mcpx(["call", "demo.slow", "seconds=20"]).status(124).any_stderr().run();
    let _ = daemon(&["list", "--daemon"]).stdout_has("runtime").run();
    // It is the daemon's, not a command's.
    assert_eq!(daemon(&["get", "pool.callTimeout", "--json"]).run().json()["source"], "default");
    let unset = daemon(&["unset", "pool.callTimeout", "--daemon"]).run();
    unset.says(&["pool.callTimeout = 5m", "from        default"]);
    for (key, value, status, parts) in [
        ("transport.listen", "127.0.0.1:1", 77, &["taken at the start", "mcpx stop"][..]),
        ("output.json", "true", 77, &["of the command", "--json"]),
        ("pool.max", "0", 2, &["must be from 1"]),
        ("transport.bearerToken", "-", 77, &["taken at the start"]),
    ] {
        let output = daemon(&["set", key, value, "--daemon"]).status(status).any_stderr().run();
        output.says(parts);
    }
    // The server kept running all along: what it counts goes on.
    assert_eq!(world.mcpx(["call", "demo.counter"]).run().stdout().trim(), "2");
}

#[test]
fn a_callers_settings_hold_for_its_own_calls_alone() {
    let world = World::demo();
    let slow = || world.mcpx(["call", "demo.slow", "seconds=0.6"]);
    // This one starts the daemon, which takes nothing of it.
    let _ = slow().env("MCPX_POOL_CALL_TIMEOUT", "200ms").status(124).any_stderr().run();
    let _ = slow().run();
    let bad = || world.mcpx(["call", "demo.add", "{\"a\":\"x\",\"b\":1}"]);
    let _ = bad().status(2).stderr_has("expected number").any_stderr().run();
    let unchecked = bad().env("MCPX_MCP_VALIDATE_ARGUMENTS", "false").status(1).any_stderr().run();
    assert!(!unchecked.stderr.contains("`mcpx types demo` shows"), "{unchecked}");
    let _ = bad().status(2).any_stderr().run();
}

#[test]
fn a_programs_calls_have_the_settings_of_the_command_that_ran_it() {
    let world = World::demo().with(crate::harness::Runtime::Deno);
    let code = "await demo.slow({seconds: 20})";
    let run = |args: &[&str]| world.mcpx([&["exec"], args, &[code]].concat()).status(124).any_stderr().run();
    run(&["--call-timeout", "200ms"]).says(&["200ms"]);
    run(&["--pool-call-timeout", "300ms"]).says(&["300ms"]);
}

#[test]
fn the_configuration_is_shown() {
    let world = World::demo().setting("presets", json!({"ci": ["--json"]})).env("MCPX_POOL_MAX", "4");
    let file = world.dir().join(".mcpx.json");
    let overview = world.mcpx(["config"]).run();
    overview.says(&[
        &file.to_string_lossy(),
        "servers   1\n",
        "presets   ci\n",
        "settings  1 not at their default",
    ]);
    let body = world.mcpx(["config", "--json"]).run().json();
    assert_eq!(
        (&body["servers"][0]["name"], &body["presets"][0]["flags"]),
        (&json!("demo"), &json!(["--json"]))
    );
    world.mcpx(["config", "--path"]).stdout(&format!("{}\n", file.display())).check();
    let sources = world.mcpx(["config", "--sources"]).run().stdout();
    assert_eq!(sources, "FROM ENVIRONMENT\n  pool.max = 4  MCPX_POOL_MAX, instead of 32 (default)\n");
    let defaults = world.mcpx(["config", "--defaults"]).run().json();
    assert_eq!(defaults["pool"]["callTimeout"], "5m");
    let plumbing = world.mcpx(["config", "--plumbing"]).run();
    plumbing.says(&[
        "state",
        "SEARCHED",
        &file.to_string_lossy(),
        "/etc/mcpx/config.json",
        "plumbing.strictUnknownKeys",
    ]);
    let schema = world.mcpx(["config", "--schema"]).run().json();
    assert_eq!(schema["properties"]["pool"]["properties"]["max"]["maximum"], 4096);
    let _ = world
        .mcpx(["config", "--path", "--schema"])
        .status(2)
        .stderr_has("ask for different things")
        .any_stderr()
        .run();
    std::fs::remove_file(&file).unwrap();
    let _ = world.mcpx(["config", "--path"]).status(2).stderr_has("mcpx init").any_stderr().run();
    let _ = world.mcpx(["config"]).stdout_has("no configuration file").run();
}

#[test]
fn the_schema_accepts_what_is_valid_and_nothing_that_is_misspelt() {
    let schema = World::new().mcpx(["config", "--schema"]).run().json();
    let check = |value: &Value| mcpx::catalog::validate::arguments(&schema, value);
    let mut defaults: Value = serde_json::from_str(mcpx::settings::defaults_json()).unwrap();
    defaults.as_object_mut().unwrap().remove("paths");
    check(&defaults).unwrap();
    for setting in ALL.iter().filter(|d| !d.spec().bootstrap) {
        let (_, value) = sample(*setting);
        check(&json!({setting.key(): value})).unwrap_or_else(|e| panic!("{}: {e}", setting.key()));
    }
    for wrong in [json!({"pool": {"mx": 1}}), json!({"poll": {}}), json!({"pool": {"max": 0}})] {
        assert!(check(&wrong).is_err(), "{wrong}");
    }
    assert_eq!(Settings::defaults().iter().count(), ALL.len());
}

#[test]
fn unknown_keys_are_told_with_the_nearest_and_refused_where_that_is_wanted() {
    let text =
        "{\n  \"pol\": {},\n  \"pool\": {\n    \"mx\": 1\n  },\n  \"presets\": {\"ci\": [\"--json\"]}\n}";
    let world = World::new().config(text);
    let output = world.mcpx(["config"]).run();
    output.says(&["WARNINGS", ".mcpx.json:2:3: unknown key \"pol\"; did you mean \"pool\"?"]);
    output.says(&[".mcpx.json:4:5: unknown key \"pool.mx\"; did you mean \"pool.max\"?"]);
    assert!(!output.stdout().contains("\"presets\"") && !output.stdout().contains("\"ci\""), "{output}");
    let strict = world.mcpx(["config", "--plumbing-strict-unknown-keys"]).status(65).any_stderr().run();
    strict.says(&[".mcpx.json:2:3: unknown key \"pol\"", "plumbing.strictUnknownKeys is on"]);
}

#[test]
fn a_member_of_a_setting_that_is_an_object_is_set_shown_and_unset_by_its_path() {
    let world = World::demo().file("../home/.config/mcpx/config.json", "{}");
    let set = |words: &[&str]| world.mcpx([&["settings"], words].concat()).any_stderr().run();
    set(&["set", "script.profiles.ci.deno", "[\"--allow-env\"]"]).says(&["script.profiles ="]);
    set(&["set", "script.profiles.ci.description", "for CI"]).says(&["for CI"]);
    let file = || -> Value {
        serde_json::from_slice(&std::fs::read(world.dir().join(".mcpx.json")).unwrap()).unwrap()
    };
    let ci = json!({"deno": ["--allow-env"], "description": "for CI"});
    assert_eq!(file()["script"]["profiles"]["ci"], ci);
    // It is one: the profile is known, and it holds.
    world.mcpx(["permissions"]).run().says(&["ci", "for CI"]);
    let row = world.mcpx(["--json", "settings", "get", "script.profiles.ci"]).run().json();
    assert_eq!((&row["key"], &row["value"]), (&json!("script.profiles.ci"), &ci), "{row}");
    world
        .mcpx(["settings", "get", "script.profiles.ci.description"])
        .run()
        .says(&[".mcpx.json:", "= for CI"]);
    world.mcpx(["settings", "get", "script.profiles.cj"]).status(2).stderr_has("did you mean \"ci\"").check();
    world.mcpx(["settings", "get", "pool.max.x"]).status(2).stderr_has("pool.max").check();
    // A nearer file's object stands in place of one further away: said, not left to be found out.
    let user = ["--persist", "user"];
    let _ = set(&[&["set", "script.interpreter.foo", "foo -x"][..], &user].concat());
    set(&["set", "script.interpreter.bar", "bar"]).says(&["foo of ", "is out of force here now"]);
    let _ = set(&["unset", "script.interpreter.bar"]);
    world.mcpx(["settings", "get", "script.interpreter.foo"]).run().says(&["= foo -x"]);
    let _ = set(&["unset", "script.profiles.ci.description"]);
    let _ = set(&["unset", "script.profiles.ci"]);
    assert!(file().get("script").is_none(), "what is left empty goes too: {}", file());
    // In a running daemon.
    world.mcpx(["call", "demo.echo", "text=x"]).stdout("x\n").check();
    let hook = "{\"events\":[\"call\"],\"shell\":\"true\"}";
    let _ = set(&["set", "hooks.note", hook, "--persist", "runtime"]);
    let row = world.mcpx(["--json", "settings", "get", "hooks.note", "--daemon"]).run().json();
    assert_eq!((&row["value"]["shell"], &row["source"]), (&json!("true"), &json!("runtime")), "{row}");
    // One member is taken back, and with the last the whole.
    let _ = set(&["set", "hooks.second", hook, "--persist", "runtime"]);
    let _ =
        world.mcpx(["settings", "unset", "hooks.note", "--persist", "runtime"]).stdout_has("changed").run();
    let hooks = || world.mcpx(["--json", "settings", "get", "hooks", "--daemon"]).run().json();
    assert_eq!(hooks()["value"].as_object().unwrap().keys().collect::<Vec<_>>(), ["second"]);
    let _ = world.mcpx(["settings", "unset", "hooks.second", "--daemon"]).stdout_has("changed").run();
    assert_eq!(hooks()["source"], "default", "{}", hooks());
    let _ =
        world.mcpx(["settings", "unset", "hooks.second", "--daemon"]).stdout_has("nothing to change").run();
    // What could never be used is refused there as well.
    let put = |value| world.ask("PUT", "/v1/settings/hooks", Some(&json!({"value": value})));
    let (status, body) = put(json!({"note": {"event": ["call"], "command": ["true"]}}));
    assert_eq!((status, &body["error"]["kind"]), (400, &json!("usage")), "{body}");
    assert!(body["error"]["message"].as_str().unwrap().starts_with("hooks.note "), "{body}");
    assert_eq!(put(json!({"note": {"events": ["call"], "command": ["true"]}})).0, 200);
}

#[test]
fn a_mistyped_name_that_would_do_nothing_is_said_once() {
    let world = World::new()
        .config("{\"mcpServers\": {\n\"a\": {\"comand\": \"x\", \"type\": \"stdio\"},\n\"b\": {\"command\": \"x\", \"scope\": \"session\"}},\n\"callTimeout\": \"5s\"}")
        .env("MCPX_POOL_MAXX", "3");
    let output = world.mcpx(["servers"]).any_stderr().output();
    let said = output.stderr.clone();
    for line in [
        ".mcpx.json:2:7: server \"a\": unknown key \"comand\"; did you mean \"command\"?",
        "server \"b\": \"scope\" does nothing here; it belongs into the server's \"mcpx\" block",
        ".mcpx.json:4:1: unknown key \"callTimeout\"; did you mean \"pool.callTimeout\"",
        "MCPX_POOL_MAXX is no variable of mcpx; did you mean MCPX_POOL_MAX?",
    ] {
        assert_eq!(said.matches(line).count(), 1, "{line:?} in\n{said}");
    }
    assert!(!said.contains("stdio"), "{said}");
    let findings = world.mcpx(["--json", "doctor", "--no-servers"]).status(1).any_stderr().run().json();
    assert!(findings["findings"].to_string().contains("MCPX_POOL_MAXX"), "{findings}");
}

#[test]
fn what_is_so_already_is_no_change() {
    let world = World::new();
    let json = |args: &[&str]| {
        let args = [&["--json", "settings"], args].concat();
        world.mcpx(args).any_stderr().run().json()["changed"].clone()
    };
    assert_eq!(json(&["set", "pool.max", "7"]), true);
    assert_eq!(json(&["set", "pool.max", "7"]), false);
    assert_eq!(json(&["unset", "pool.max"]), true);
    assert_eq!(json(&["unset", "pool.max"]), false);
    let again = world.mcpx(["settings", "unset", "pool.max"]).any_stderr().run();
    assert!(again.stdout().starts_with("nothing to change in "), "{again}");
    world.mcpx(["settings", "get"]).status(2).stderr_has("settings get needs one key").check();
}

#[test]
fn a_long_value_widens_no_row_and_built_in_profiles_stay() {
    let world = World::new();
    let list = world.mcpx(["settings", "list"]).run();
    let widest = list.stdout().lines().map(|line| line.chars().count()).max().unwrap();
    assert!(widest < 250, "{widest}: {list}");
    let whole = world.mcpx(["--json", "settings", "list", "script"]).run().stdout();
    assert!(whole.contains("--allow-read"), "{whole}");
    // A profile of one's own takes none of those that are built in away, and nothing says so.
    world
        .mcpx(["settings", "set", "script.profiles.ci.deno", "[\"--allow-net\"]"])
        .stdout_has("changed in")
        .check();
    world.mcpx(["settings", "get", "script.profiles.read"]).stdout_has("--allow-read").check();
    world.mcpx(["settings", "get", "script.profiles.ci.deno"]).stdout_has("--allow-net").check();
    world.mcpx(["settings", "get", "script.profiles.none"]).status(2).any_stderr().check();
}

#[test]
fn what_could_never_be_used_is_refused_and_told() {
    let world = World::new();
    for (key, value, what) in [
        ("hooks", r#"{"h":{"event":["call"],"command":["true"]}}"#, "unknown field"),
        ("hooks.h.command", "true", "list of words"),
        ("script.profiles.zz.deno", "5", "list of flags"),
        ("script.profiles.ci.bogus", "1", "expected one of deno"),
        ("events.consumers.c.session", "s", "needs"),
    ] {
        world.mcpx(["settings", "set", key, value]).status(2).stderr_has(what).check();
    }
    assert!(!world.dir().join(".mcpx.json").exists());
    world.write(
        ".mcpx.json",
        r#"{
  "hooks": {"bad": {"event": ["call"]}, "gone": {"command": ["no-such-program-at-all"]}},
  "events": {"consumers": {"c": {"script": "./none.ts"}}},
  "script": {"profiles": {"zz": {"deno": 5}}}
}"#,
    );
    assert_eq!(world.mcpx(["--json", "config"]).status(65).run().json()["ok"], false);
    world.mcpx(["config"]).status(65).run().says(&[
        "PROBLEMS",
        ".mcpx.json:2: hooks.bad has",
        ".mcpx.json:4: script.profiles.zz.deno",
    ]);
    let doctor = world.mcpx(["doctor", "--no-servers"]).any_stderr().output();
    doctor.says(&["hooks.bad", "no-such-program-at-all", "none.ts", "script.profiles.zz"]);
    // What is wrong already keeps nobody from setting another.
    world.mcpx(["settings", "set", "script.profiles.ci.deno", "[]"]).stdout_has("changed in").check();
}
