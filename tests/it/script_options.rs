//! What `mcpx exec` and `mcpx run` are told besides the program, and what is wrong with it.

use crate::harness::{Runtime, World};
use serde_json::json;

const RUNTIMES: [Runtime; 3] = [Runtime::Deno, Runtime::Bun, Runtime::Node26];

#[test]
fn variables_come_from_files_and_flags_and_reach_the_program() {
    let world = World::demo()
        .with(Runtime::Bun)
        .file("a.env", "# two\nA=file\nexport B='from a file'\nC=\"x\\ny\"\n")
        .file("print.sh", "printf '%s|' \"$A\" \"$B\" \"$C\" \"$D\" \"$MCPX_RUNTIME\" \"$MCPX_DISPATCH\"\n")
        .file("sub/keep", "");
    world
        .mcpx(["run", "--env-file", "a.env", "--env", "A=flag", "--env", "D=", "print.sh"])
        .stdout("flag|from a file|x\ny||sh|interpreter|")
        .check();
    let code = "[process.env.A, process.env.B, process.cwd().split('/').pop()]";
    world
        .mcpx(["exec", "--env-file", "a.env", "--env", "A=1=2", "--cwd", "sub", code])
        .stdout("[\"1=2\",\"from a file\",\"sub\"]\n")
        .check();
    // What mcpx says of the run itself cannot be replaced.
    world.mcpx(["exec", "--env", "MCPX_RUNTIME=x", "process.env.MCPX_RUNTIME"]).stdout("bun\n").check();
}

#[test]
fn all_that_is_wrong_is_told_at_once_and_nothing_starts() {
    let world = World::demo()
        .with(Runtime::Deno)
        .setting("script", json!({"profiles": {"bare": {"deno": ["/srv"]}}}))
        .file("bad.env", "A=1\nnot an assignment\n");
    let output = world
        .mcpx([
            "exec",
            "--env",
            "novalue",
            "--env-file",
            "bad.env",
            "--env-file",
            "none.env",
            "--cwd",
            "nowhere",
            "--permissions",
            "redanet,bare",
            "--runtime",
            "denno",
            "--export",
            "x",
            "Deno.writeTextFileSync('ran', '')",
        ])
        .status(2)
        .any_stderr()
        .run();
    output.says(&[
        "\"novalue\"",
        "bad.env:2",
        "none.env",
        "nowhere",
        "readnet",
        "script.profiles.bare.deno",
        "denno",
        "--export x",
    ]);
    assert!(!world.dir().join("ran").exists() && world.daemons().is_empty());
    let output = world
        .mcpx(["run", "--permissions", "sctrict", "--runtime", "/bin/sh", "none.ts"])
        .status(2)
        .any_stderr()
        .run();
    output.says(&["sctrict", "none.ts", "/bin/sh"]);
}

#[test]
fn another_export_can_be_called_and_a_missing_one_lists_those_there() {
    for runtime in RUNTIMES {
        let world = World::demo().with(runtime).file(
            "many.mjs",
            "export default () => 'default'\nexport const sum = async (a, b) => (await demo.add({a: Number(a), b: Number(b)})).sum\nexport const five = 5\n",
        );
        world.mcpx(["run", "many.mjs"]).stdout("default\n").check();
        world.mcpx(["run", "--export", "sum", "many.mjs", "20", "3"]).stdout("23\n").check();
        world.mcpx(["run", "--export", "five", "many.mjs"]).stdout("5\n").check();
        let output = world.mcpx(["run", "--export", "summ", "many.mjs"]).status(2).any_stderr().run();
        output.says(&["many.mjs", "\"summ\"", "default", "five", "sum"]);
        world.mcpx(["exec", "--export", "b", "export const b = () => 7"]).stdout("7\n").check();
    }
    let world = World::demo().file("a.sh", "echo\n");
    world.mcpx(["run", "--export", "x", "a.sh"]).status(2).stderr_has("no exports").check();
}

#[test]
fn without_the_launcher_the_program_itself_is_started() {
    for runtime in RUNTIMES {
        let world = World::demo().with(runtime).file(
            "plain.mjs",
            "export default () => { throw new Error('called') }\nconsole.log(typeof demo, process.argv.length);\nconst { demo: found } = await import(process.env.MCPX_CLIENT);\nconsole.log(await found.echo({text: 'imported'}));\n",
        );
        world.mcpx(["run", "--no-launcher", "plain.mjs", "x"]).stdout("undefined 3\nimported\n").check();
        world.mcpx(["exec", "--no-launcher", "console.log(typeof demo); 5"]).stdout("undefined\n").check();
        world
            .mcpx([
                "exec",
                "--no-launcher",
                "import { demo } from 'mcpx'; console.log(await demo.echo({text: 'x'}))",
            ])
            .stdout("x\n")
            .check();
        world.mcpx(["run", "--no-launcher", "--export", "x", "plain.mjs"]).status(2).any_stderr().check();
    }
}

#[test]
fn a_runtime_that_is_none_is_told_from_one_that_is_missing() {
    let world = World::demo().with(Runtime::Bun).file("dir/bun/keep", "").file("plain/node", "text\n");
    for (runtime, says) in [
        ("dir/bun", "a directory"),
        ("./plain/node", "execut"),
        ("./none/deno", "none/deno"),
        ("sh", "does not know"),
        ("bunn", "\"bun\""),
    ] {
        world.mcpx(["exec", "--runtime", runtime, "1"]).any_stderr().output().says(&[says]);
        let output = world.mcpx(["exec", "--runtime", runtime, "1"]).any_stderr().output();
        assert!([2, 69, 127].contains(&output.status), "{runtime}: {output}");
    }
    assert!(world.daemons().is_empty());
}

#[test]
fn a_script_that_may_not_be_read_says_so() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new().with(Runtime::Bun).file("secret.mjs", "export default 1\n");
    let path = world.dir().join("secret.mjs");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o000)).unwrap();
    // SAFETY: asks a number.
    if unsafe { libc::geteuid() } != 0 {
        let output = world.mcpx(["run", "secret.mjs"]).status(127).any_stderr().run();
        output.says(&["secret.mjs", "ermission denied"]);
        return;
    }
    // To root every file is readable, so somebody else has to try.
    let Some(setpriv) = crate::harness::tools::on_path("setpriv") else {
        return println!("skipped: root reads every file, and there is no setpriv to become somebody else");
    };
    for dir in ["", "home", "p"] {
        let dir = world.home().parent().unwrap().join(dir);
        std::fs::set_permissions(dir, PermissionsExt::from_mode(0o777)).unwrap();
    }
    let output = std::process::Command::new(setpriv)
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(env!("CARGO_BIN_EXE_mcpx"))
        .args(["run", "secret.mjs"])
        .current_dir(world.dir())
        .env_clear()
        .envs(world.environment())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("secret.mjs") && text.contains("ermission denied"), "{:?} {text}", output.status);
    assert_eq!(output.status.code(), Some(127), "{text}");
}

#[test]
fn an_interpreter_is_named_by_extension() {
    let world = World::demo()
        .with(Runtime::Bun)
        .setting(
            "script",
            json!({"interpreter": {"txt": "cat -A", "zz": ["sh", "-e"], "js": "bun", "bad": 5}}),
        )
        .file("a.txt", "a\tb\n")
        .file("b.zz", "false\necho unreached\n")
        .file("c.js", "export default () => process.env.MCPX_RUNTIME\n")
        .file("d.bad", "")
        .file("e.txt", "#!/bin/sh\necho \"first line $MCPX_DISPATCH\"\n");
    world.mcpx(["run", "a.txt"]).stdout("a^Ib$\n").check();
    world.mcpx(["run", "b.zz"]).status(1).stdout("").check();
    world.mcpx(["run", "c.js"]).stdout("bun\n").check();
    world.mcpx(["run", "d.bad"]).status(65).stderr_has("script.interpreter.bad").check();
    world.mcpx(["run", "e.txt"]).stdout("first line shebang\n").check();
}

#[test]
fn what_is_no_script_is_refused_with_what_it_is() {
    let world = World::demo().with(Runtime::Bun).file("dir/keep", "");
    let path = world.dir();
    std::fs::write(path.join("binary.js"), b"// \xff\xfe\n").unwrap();
    world.write("long.sh", &format!("#!/{}sh\n", "bin/../".repeat(60)));
    world.write("crlf.sh", "#!/bin/sh\r\nprintf ok # \r\n");
    world.write("bom.mjs", "\u{feff}export default () => 'bom'\n");
    world.write(".mcpx/scripts/two.ts", "");
    world.write(".mcpx/scripts/two.js", "");
    let fifo = std::ffi::CString::new(path.join("pipe.js").to_str().unwrap()).unwrap();
    // SAFETY: a terminated path and a mode.
    assert_eq!(unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) }, 0);
    for (script, status, says) in [
        ("pipe.js", 2, "a pipe"),
        ("./dir", 2, "a directory"),
        ("binary.js", 2, "UTF-8"),
        ("long.sh", 2, "255"),
        ("two", 2, "two.js"),
        ("none.mjs", 127, "none.mjs"),
    ] {
        world.mcpx(["run", script]).status(status).stderr_has(says).check();
    }
    world.mcpx(["run", "crlf.sh"]).stdout("ok").check();
    world.mcpx(["run", "bom.mjs"]).stdout("bom\n").check();
    world.write("large.mjs", &format!("/*{}*/\nexport default () => 'large'\n", "x".repeat(50_000_000)));
    world.mcpx(["run", "large.mjs"]).stdout("large\n").check();
}
