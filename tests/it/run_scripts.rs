//! `mcpx run` and `mcpx scripts`: files, named scripts, arguments, and other interpreters.

use crate::harness::{Runtime, World};
use serde_json::json;

fn world() -> World {
    World::demo().with(Runtime::Deno)
}

#[test]
fn a_file_runs_with_its_arguments() {
    let world = world().file(
        "sum.js",
        "// Adds its arguments.\nexport default async function (...args) { return (await demo.add({a: Number(args[0]), b: Number(args[1])})).sum }\n",
    );
    world.mcpx(["run", "sum.js", "2", "40"]).stdout("42\n").check();
    world.mcpx(["run", "./sum.js", "2", "40"]).stdout("42\n").check();
    // Flags after the script are the script's.
    let world = world.file("args.mjs", "export default (...args) => args\n");
    let args = world.mcpx(["run", "args.mjs", "--json", "-x", "--", "a b"]).run().json();
    assert_eq!(args, json!(["--json", "-x", "--", "a b"]));
}

#[test]
fn the_client_can_be_imported() {
    for runtime in [Runtime::Deno, Runtime::Bun, Runtime::Node26] {
        let world = World::demo().with(runtime).file(
            "a.mjs",
            "const { default: tools, demo } = await import(process.env.MCPX_CLIENT);\nemit([await demo.echo({text: 'a'}), (await tools.demo.add({a: 1, b: 2})).sum]);\n",
        );
        world.mcpx(["run", "a.mjs"]).stdout("[\"a\",3]\n").check();
    }
}

#[test]
fn a_file_that_imports_the_client_by_its_name_is_told_of_the_globals() {
    for runtime in [Runtime::Deno, Runtime::Bun, Runtime::Node26] {
        let world = World::demo().with(runtime).file("a.mjs", "import tools from 'mcpx';\n");
        world.mcpx(["run", "a.mjs"]).status(1).stderr_has("mcpx client -o <path>").check();
    }
}

#[test]
fn named_scripts_are_found_upward_and_the_nearest_wins() {
    let world = world()
        .file(".mcpx/scripts/hello.js", "// Greets from the top.\nexport default () => 'top'\n")
        .file(".mcpx/scripts/only.ts", "/** Only at the top. */\nexport default (): string => 'only'\n")
        .file("sub/.mcpx/scripts/hello.mjs", "// Greets from below.\nexport default () => 'below'\n");
    let user = world.home().join(".config/mcpx/scripts/mine.js");
    world.write(user.to_str().unwrap(), "// The user's own.\nexport default () => 'mine'\n");
    world.mcpx(["run", "hello"]).stdout("top\n").check();
    world.mcpx(["run", "hello"]).dir("sub").stdout("below\n").check();
    world.mcpx(["run", "only"]).dir("sub").stdout("only\n").check();
    world.mcpx(["run", "mine"]).stdout("mine\n").check();
    let text = world.mcpx(["scripts"]).dir("sub").run();
    text.says(&[
        "hello",
        "Greets from below.",
        "only",
        "Only at the top.",
        "mine",
        "The user's own.",
        "shadowed",
    ]);
    let rows = world.mcpx(["--json", "scripts"]).dir("sub").run().json();
    assert!(rows.to_string().contains("hello"), "{rows}");
}

#[test]
fn an_extension_may_be_left_out_where_one_file_has_the_name() {
    let world = world()
        .file("plain.mjs", "export default () => 'here'\n")
        .file("dir/other.ts", "export default (): string => 'below'\n")
        .file("odd.rb2", "")
        .setting("script", json!({"interpreter": {"rb2": "cat"}}))
        .file(".mcpx/scripts/plain.js", "export default () => 'named'\n");
    world.mcpx(["run", "plain"]).stdout("here\n").check();
    world.mcpx(["run", "plain", "--flag"]).dir("dir").stdout("named\n").check();
    world.mcpx(["run", "dir/other"]).stdout("below\n").check();
    world.mcpx(["run", "--cwd", "dir", "plain"]).stdout("here\n").check();
    world.mcpx(["run", "odd"]).stdout("").check();
    for name in ["foo.ts", "foo.js"] {
        world.write(name, "");
    }
    let output = world.mcpx(["run", "foo"]).status(2).any_stderr().run();
    output.says(&["foo.ts", "foo.js", "extension"]);
    assert!(world.daemons().len() <= 1);
}

#[test]
fn a_script_that_does_not_exist_gets_the_nearest_and_127() {
    let world = world().file(".mcpx/scripts/report.js", "export default () => 1\n");
    let output = world.mcpx(["run", "reprot"]).status(127).any_stderr().run();
    output.says(&["report"]);
    world.mcpx(["run", "./absent.ts"]).status(127).stderr_has("absent.ts").check();
}

#[test]
fn a_script_of_another_language_runs_by_its_first_line() {
    let world = world().file(
        "greet.sh",
        "#!/bin/sh\nmcpx call demo.echo text=\"hi $1\"\necho \"session ${MCPX_SESSION:+known}\"\n",
    );
    world.link("mcpx", env!("CARGO_BIN_EXE_mcpx").as_ref());
    world.mcpx(["run", "greet.sh", "there"]).stdout("hi there\nsession known\n").check();
    let world = world.file("three.sh", "#!/bin/sh\nexit 3\n");
    world.mcpx(["run", "three.sh"]).status(3).check();
    let world = world.file("absent.py", "#!/usr/bin/env no-such-interpreter\n");
    world.mcpx(["run", "absent.py"]).status(127).stderr_has("no-such-interpreter").check();
}

#[test]
fn a_script_keeps_its_working_directory_and_environment() {
    let world = world().file("sub/where.mjs", "export default () => [process.cwd(), process.env.GIVEN]\n");
    let answer = world.mcpx(["run", "where.mjs"]).dir("sub").env("GIVEN", "value").run().json();
    assert_eq!(answer, json!([world.dir().join("sub"), "value"]));
}

#[test]
fn a_checked_in_client_runs_on_its_own() {
    let world = world();
    let _ = world.mcpx(["client", "-o", "client/mcpx.ts"]).any_stderr().run();
    let world = world.file(
        "use.mjs",
        "import tools from \"./client/mcpx.ts\";\nemit(await tools.demo.echo({text: 'checked in'}));\n",
    );
    world.mcpx(["run", "use.mjs"]).stdout("\"checked in\"\n").check();
}
