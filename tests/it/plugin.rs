//! The plugin's files: they pass a strict compiler, they keep to the tables, and
//! they get into an editor's directory and out of it again; and what the skills show works.

use crate::harness::{Runtime, World, tools};
use mcpx::script::env::{Setter, VARIABLES, variable};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

const CORE: &str = include_str!("../../src/plugin/opencode/mcpx/daemon.ts");
const SESSION: &str = include_str!("../../src/plugin/opencode/mcpx-session.ts");

#[test]
fn the_typescript_passes_the_strict_compiler() {
    let _ = tools::installed("opencode/node_modules/@opencode-ai/plugin/package.json");
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plugin/tsconfig.json");
    let output = tools::tsc().arg("-p").arg(project).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn the_core_imports_what_every_runtime_has_and_nothing_of_an_editor() {
    let imports: Vec<&str> = CORE
        .lines()
        .filter_map(|l| l.split_once(" from \""))
        .map(|(_, m)| m.trim_end_matches("\";"))
        .collect();
    for module in imports {
        let known = ["node:child_process", "node:fs", "node:http", "node:os", "node:path", "./v1.ts"];
        assert!(known.contains(&module), "{module}");
    }
    assert!(!CORE.contains("@opencode") && !CORE.contains("Bun.") && !CORE.contains("Deno."));
}

/// The names that follow `before` in a text.
fn names_after<'a>(text: &'a str, before: &str) -> BTreeSet<&'a str> {
    let ends = |rest: &'a str| {
        rest.find(|c: char| !c.is_ascii_uppercase() && !c.is_ascii_digit() && c != '_').unwrap_or(rest.len())
    };
    text.match_indices(before)
        .map(|(at, _)| &text[at + before.len()..])
        .map(|rest| &rest[..ends(rest)])
        .filter(|name| name.starts_with("MCPX_"))
        .collect()
}

#[test]
fn the_plugin_sets_what_the_table_says_and_reads_what_it_says() {
    let set = names_after(SESSION, "put(env, \"");
    let declared: BTreeSet<&str> =
        VARIABLES.iter().filter(|v| v.setters.contains(&Setter::Plugin)).map(|v| v.name).collect();
    assert_eq!(set, declared, "put(env, …) in the plugin, and the rows that name it as a setter");

    let settings: Vec<String> = mcpx::settings::ALL.iter().flat_map(|s| s.env_names()).collect();
    for text in [CORE, SESSION] {
        let read: BTreeSet<&str> =
            ["env.", "process.env."].iter().flat_map(|before| names_after(text, before)).collect();
        for name in read {
            let row = variable(name).is_some_and(|v| v.readers.contains("the plugin"));
            assert!(
                row || settings.iter().any(|s| s == name),
                "{name}: no row says that the plugin reads it"
            );
        }
    }
    let read = names_after(CORE, "env.");
    for row in VARIABLES.iter().filter(|v| v.readers.contains("the plugin")) {
        assert!(read.contains(row.name), "{} is not read by the plugin", row.name);
    }
}

#[test]
fn the_levels_are_those_of_the_table() {
    let (minimal, rest) = SESSION.split_once("if (level === \"minimal\") return;").unwrap();
    let (before, rest) = rest.split_once("if (level === \"full\" && id) {").unwrap();
    let (full, after) = rest.split_once("\n    }\n").unwrap();
    for (text, word) in [
        (minimal, "every level"),
        (before, "level standard"),
        (full, "level full"),
        (after, "level standard"),
    ] {
        for name in names_after(text, "put(env, \"") {
            let row = variable(name).unwrap();
            assert!(row.when.contains(word), "{name} is set elsewhere than at {word}: {}", row.when);
        }
    }
}

#[test]
fn the_plugin_is_installed_checked_and_taken_out_again() {
    let world = World::new();
    let files = mcpx::plugin::OPENCODE.len();
    let _ = world.mcpx(["plugin", "status"]).stdout_has("project: not installed").run();
    let installed = world.mcpx(["plugin", "install", "opencode"]).run();
    assert_eq!(installed.stdout().matches("wrote").count(), files, "{installed}");
    installed.says(&["p/.opencode/plugins/mcpx-session.ts", "skills/mcpx-getting-started/SKILL.md"]);
    let again = world.mcpx(["--json", "plugin", "install", "opencode", "--project"]).run().json();
    assert!(again["files"].as_array().unwrap().iter().all(|f| f["change"] == "unchanged"), "{again}");
    let _ = world.mcpx(["plugin", "status", "--project"]).stdout_has("project: current").run();
    let _ = world.mcpx(["plugin", "list"]).stdout_has("opencode").stdout_has("project").run();
    let printed = world.mcpx(["plugin", "print", "opencode", "plugins/mcpx/daemon.ts"]).run();
    assert_eq!(printed.stdout(), CORE);

    world.write(".opencode/plugins/mcpx-session.ts", "// mine\n");
    let _ = world.mcpx(["plugin", "status"]).stdout_has("changed   ").run();
    world
        .mcpx(["plugin", "install", "opencode"])
        .status(77)
        .stderr_has("mcpx-session.ts")
        .stderr_has("--force")
        .check();
    let kept = world.mcpx(["plugin", "uninstall", "opencode"]).run();
    assert_eq!(kept.stdout().matches("removed").count(), files - 1, "{kept}");
    kept.says(&["kept"]);
    let _ = world.mcpx(["plugin", "install", "opencode", "--force"]).stdout_has("wrote").run();
    let _ = world.mcpx(["plugin", "uninstall", "opencode"]).stdout_has("removed").run();
    assert_eq!(std::fs::read_dir(world.dir().join(".opencode")).unwrap().count(), 0);

    let _ = world
        .mcpx(["plugin", "install", "opencode", "--user"])
        .stdout_has("home/.config/opencode/plugins")
        .run();
    let user = world.mcpx(["--json", "plugin", "list"]).run().json();
    assert_eq!(user["plugins"][0]["installed"][0]["place"], "user", "{user}");
    for (words, part) in [
        (&["plugin", "instal", "opencode"][..], "did you mean \"install\""),
        (&["plugin", "install", "opencod"], "did you mean \"opencode\""),
        (&["plugin", "install"], "mcpx plugin install opencode"),
        (&["plugin", "install", "opencode", "--user", "--project"], "two different places"),
        (&["plugin", "print", "opencode", "x"], "no file"),
    ] {
        world.mcpx(words).status(2).stderr_has(part).check();
    }
}

#[test]
fn every_example_of_the_skills_works() {
    for file in mcpx::plugin::OPENCODE.iter().filter(|f| f.path.ends_with(".md")) {
        let world = World::demo().with(Runtime::Bun);
        world.link("mcpx", env!("CARGO_BIN_EXE_mcpx").as_ref());
        let mut examples = 0;
        let mut lines = file.text.lines();
        let _ = world.mcpx(["call", "demo.echo", "text=x"]).run();
        while let Some(line) = lines.next() {
            if line.trim() != "```sh" {
                continue;
            }
            let script: String =
                lines.by_ref().take_while(|l| l.trim() != "```").map(|l| format!("{}\n", l.trim())).collect();
            let output = Command::new(tools::on_path("sh").unwrap())
                .args(["-e", "-c", &script])
                .env_clear()
                .envs(world.environment())
                .current_dir(world.dir())
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && said.is_empty(), "{}: {script}\n{said}", file.path);
            assert!(!output.stdout.is_empty(), "{}: {script}", file.path);
            examples += 1;
        }
        assert!(examples >= 3, "{} has {examples} examples", file.path);
    }
}

#[test]
fn the_picker_writes_the_file_that_the_plugin_reads() {
    let world = World::demo();
    let _ = world.mcpx(["call", "demo.echo", "text=x"]).run();
    let output = Command::new(Runtime::Bun.path())
        .arg("run")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plugin/picker.ts"))
        .current_dir(world.dir())
        .env_clear()
        .envs(world.environment())
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    let steps: Vec<serde_json::Value> = out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(steps[0], "found");
    assert_eq!(steps[1], "remembered", "{out}");
    assert_eq!(steps[2], "found", "it was forgotten: {out}");
}

/// What a shell says after it evaluated the hook.
fn shell(world: &World, shell: &Path, script: &str) -> String {
    let output = Command::new(tools::on_path("setsid").expect("setsid"))
        .arg(shell)
        .args(["-c", script])
        .env_clear()
        .envs(world.environment())
        .current_dir(world.dir())
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && err.is_empty(), "{script}\n{err}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_terminal_has_a_session_and_the_daemon_of_its_directory() {
    let world = World::new();
    world.link("mcpx", env!("CARGO_BIN_EXE_mcpx").as_ref());
    let demo = serde_json::json!({"mcpServers": {"demo": {"command": env!("CARGO_BIN_EXE_mcpx"), "args": ["demo-server"], "mcpx": {"scope": "session"}}}});
    world.write("a/.mcpx.json", &demo.to_string());
    world.write("b/.mcpx.json", &format!(" {demo}"));
    let _ = world.mcpx(["ls"]).dir("a").run();
    let a = world.infos()[0]["socket"].as_str().unwrap().to_owned();
    for name in ["bash", "zsh", "fish"] {
        let Some(path) = tools::on_path(name) else {
            println!("skipped: {name} is not installed");
            continue;
        };
        let (hook, prompt, session) = match name {
            "fish" => ("mcpx hook fish | source", "_mcpx_daemon", "(mcpx --json hook fish)"),
            "zsh" => ("eval \"$(mcpx hook zsh)\"", "_mcpx_daemon", "\"$(mcpx --json hook zsh)\""),
            _ => ("eval \"$(mcpx hook bash)\"", "eval \"$PROMPT_COMMAND\"", "\"$(mcpx --json hook bash)\""),
        };
        let script = format!(
            "cd a\n{hook}\n{hook}\necho $MCPX_SESSION_ID\necho $MCPX_DAEMON_ENDPOINT\nmcpx call demo.counter\nmcpx call demo.counter\n\
             cd ../b\n{prompt}\necho \"b:$MCPX_DAEMON_ENDPOINT\"\ncd ../a\n{prompt}\necho $MCPX_DAEMON_ENDPOINT\necho {session}\n"
        );
        let said = shell(&world, &path, &script);
        let lines: Vec<&str> = said.lines().collect();
        assert!(lines[0].starts_with("term-"), "{said}");
        let expected = format!("unix://{a}");
        assert_eq!(lines[1..6], [&expected, "1", "2", "b:", &expected], "{name}: {said}");
        assert!(lines[6].contains(lines[0]), "the same in every command of the terminal: {said}");
        // Another terminal is another session.
        let other = shell(&world, &path, &format!("{hook}\necho $MCPX_SESSION_ID\n"));
        assert_ne!(other.trim(), lines[0]);
        // An editor's shell has a session already, and a daemon that was named stays.
        let given = shell(
            &world,
            &path,
            &match name {
                "fish" => format!(
                    "set -gx MCPX_SESSION_ID ses_1; cd a\n{hook}\necho $MCPX_SESSION_ID $MCPX_DAEMON_ENDPOINT\n"
                ),
                _ => format!(
                    "export MCPX_SESSION_ID=ses_1; cd a\n{hook}\necho $MCPX_SESSION_ID $MCPX_DAEMON_ENDPOINT\n"
                ),
            },
        );
        assert_eq!(given.trim(), "ses_1");
        let named = shell(
            &world,
            &path,
            &match name {
                "fish" => format!(
                    "set -gx MCPX_DAEMON_ENDPOINT unix:///run/mine.sock; cd a\n{hook}\necho $MCPX_DAEMON_ENDPOINT\n"
                ),
                _ => format!(
                    "export MCPX_DAEMON_ENDPOINT=unix:///run/mine.sock; cd a\n{hook}\necho $MCPX_DAEMON_ENDPOINT\n"
                ),
            },
        );
        assert_eq!(named.trim(), "unix:///run/mine.sock");
    }
    world.mcpx(["hook", "tcsh"]).status(2).stderr_has("no hook for").check();
}
