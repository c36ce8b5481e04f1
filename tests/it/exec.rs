//! `mcpx exec` in every runtime: how a program sees the tools, and what comes out.

use crate::harness::{Runtime, World, tools, wait_until};
use serde_json::json;

/// Makes each function a test of every runtime that this machine has.
macro_rules! in_each_runtime {
    ($($test:ident)*) => {
        mod deno {
            $(#[test] fn $test() { super::$test(super::Runtime::Deno) })*
        }
        mod bun {
            $(#[test] fn $test() { super::$test(super::Runtime::Bun) })*
        }
        mod node_22 {
            $(#[test] fn $test() { super::$test(super::Runtime::Node22) })*
        }
        mod node_26 {
            $(#[test] fn $test() { super::$test(super::Runtime::Node26) })*
        }
        mod node_of_the_machine {
            $(#[test] fn $test() {
                if super::tools::system_node().is_some() {
                    super::$test(super::Runtime::SystemNode)
                }
            })*
        }
    };
}

in_each_runtime! {
    a_program_calls_tools_and_prints_what_it_returns
    a_program_may_have_any_form
    names_and_paths_beyond_ascii_work
    awkward_names_are_functions
    a_tool_that_fails_throws
    an_error_in_the_program_ends_in_1
    an_error_says_what_to_do_where_javascript_does_not
    output_that_cannot_be_written_is_no_success
    the_program_can_come_on_stdin
    calls_run_side_by_side
    logs_go_to_stderr_and_emitted_values_to_stdout
    the_document_holds_the_whole_run
    a_time_limit_ends_the_program_and_its_call
    ctrl_c_ends_the_program_and_its_call
    a_state_is_kept_between_programs
    typescript_runs_where_the_runtime_can
    large_results_pass_whole
    stdin_belongs_to_the_program
    progress_reaches_the_program
    what_is_thrown_late_is_reported_like_the_rest
    a_program_that_never_waits_ends_with_its_reader
    a_second_interrupt_ends_a_program_that_ignores_the_first
}

fn what_is_thrown_late_is_reported_like_the_rest(runtime: Runtime) {
    let world = demo(runtime);
    for code in [
        "\nPromise.reject(new TypeError('late'));\nawait new Promise(r => setTimeout(r, 2000))",
        "\nsetTimeout(() => { throw new TypeError('late') }, 1);\nreturn undefined",
    ] {
        let output = world.mcpx(["exec", code]).status(1).any_stderr().run();
        assert!(output.stderr.starts_with("TypeError: late\n    at <exec>:2:"), "{output}");
        assert_eq!(output.stderr.lines().count(), 2, "{output}");
        let document = world.mcpx(["--json", "exec", code]).status(1).any_stderr().run().json();
        assert_eq!(document["error"]["line"], json!(2), "{document}");
    }
    let handled = match runtime {
        Runtime::Deno => "addEventListener('unhandledrejection', e => { e.preventDefault(); emit('own') });",
        _ => "process.on('unhandledRejection', () => emit('own'));",
    };
    let code = format!("{handled} Promise.reject(1); await new Promise(r => setTimeout(r, 20))");
    world.mcpx(["exec", &code]).stdout("\"own\"\n").check();
}

fn a_program_that_never_waits_ends_with_its_reader(runtime: Runtime) {
    use std::io::{BufRead, BufReader};
    let world = demo(runtime);
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_mcpx"))
        .args(["exec", "--timeout", "20s", "for (let i = 0;; i++) emit(i)"])
        .current_dir(world.dir())
        .env_clear()
        .envs(world.environment())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((line.as_str(), output.status.code()), ("0\n", Some(141)));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

fn a_second_interrupt_ends_a_program_that_ignores_the_first(runtime: Runtime) {
    let world = World::fake(&[]).with(runtime);
    let ignore = match runtime {
        Runtime::Deno => "Deno.addSignalListener('SIGINT', () => {});",
        _ => "process.on('SIGINT', () => {});",
    };
    let code =
        format!("{ignore} await Promise.all([fake.hang({{}}), new Promise(r => setTimeout(r, 60000))])");
    let running = world.mcpx(["exec", &code]).any_stderr().start();
    wait_until("the call to arrive", || (!world.received("fake", "tools/call").is_empty()).then_some(()));
    let pid = running.pid();
    let ended = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    };
    wait_until("the end", || {
        running.signal(libc::SIGINT);
        ended(pid).then_some(())
    });
    assert_eq!(running.wait().status, 130);
}

fn demo(runtime: Runtime) -> World {
    World::demo().with(runtime)
}

fn a_program_calls_tools_and_prints_what_it_returns(runtime: Runtime) {
    let world = demo(runtime);
    world.mcpx(["exec", r#"return await demo.echo({text: "hi"})"#]).stdout("hi\n").check();
    world.mcpx(["exec", "return (await demo.add({a: 2, b: 3})).sum"]).stdout("5\n").check();
    world.mcpx(["exec", "return await demo.add({a: 2, b: 3})"]).stdout("{\"sum\":5}\n").check();
    // An expression is a program.
    world.mcpx(["exec", r#"demo.echo({text: "short"})"#]).stdout("short\n").check();
    world.mcpx(["exec", "await demo.echo({text: 'quiet'});"]).run().says(&[]);
    // Several statements, nothing returned: nothing printed but what it prints itself.
    world.mcpx(["exec", "const x = await demo.add({a: 1, b: 1}); emit(x.sum)"]).stdout("2\n").check();
    world
        .mcpx([
            "exec",
            "const r = await demo.add({a: 1, b: 1}).raw; return r.structuredContent.sum + r.content.length",
        ])
        .stdout("3\n")
        .check();
}

fn a_program_may_have_any_form(runtime: Runtime) {
    let world = demo(runtime);
    for (code, stdout) in [
        ("1 + 1", "2\n"),
        ("\"text\"", "text\n"),
        ("({a: 1})", "{\"a\":1}\n"),
        ("null", "null\n"),
        ("// only a comment", ""),
        ("return undefined", ""),
        ("return 1 // and a comment", "1\n"),
        ("demo.echo({text: 'with a semicolon'});", "with a semicolon\n"),
        ("() => demo.echo({text: 'a function'})", "a function\n"),
        ("export default async (...a) => a.length", "0\n"),
        ("return 'ends with a line end\\n'", "ends with a line end\n"),
        ("return 'ü→😀'", "ü→😀\n"),
        ("return [1, undefined, NaN]", "[1,null,null]\n"),
        ("return new Date(0)", "\"1970-01-01T00:00:00.000Z\"\n"),
        ("const a = {}; a.self = a; return a", "{\"self\":\"[circular]\"}\n"),
        ("import { sep } from 'node:path'; sep", "/\n"),
        ("import { sep } from 'node:path'\nconst twice = sep + sep\nreturn twice", "//\n"),
        (
            "import tools, { demo as d } from 'mcpx'\n(await d.add({a: 1, b: 1})).sum + (await tools.demo.add({a: 1, b: 1})).sum",
            "4\n",
        ),
        ("import { join, sep as s } from 'node:path'; export default () => join('a', 'b') + s", "a/b/\n"),
        (
            "for (const x of await Promise.all([1, 2].map((n) => demo.add({a: n, b: n})))) emit(x.sum)",
            "2\n4\n",
        ),
    ] {
        world.mcpx(["exec", code]).stdout(stdout).check();
    }
    world
        .mcpx(["exec", "export default (...a) => a", "--", "--flag", "b c"])
        .stdout("[\"--flag\",\"b c\"]\n")
        .check();
    world.mcpx(["exec", "process.exitCode = 3; return"]).status(3).check();
    world.mcpx(["exec", "throw 'a text'"]).status(1).stderr_has("a text").check();
    world
        .mcpx(["exec", "Promise.reject(new Error('nobody waits'))"])
        .status(1)
        .stderr_has("nobody waits")
        .check();
}

fn names_and_paths_beyond_ascii_work(runtime: Runtime) {
    let world = World::new().and_fake("größe", &[]).with(runtime);
    let cache = world.home().join("Käse 😀");
    world.write("Straße/été.mjs", "export default async () => await größe.echo({text: '→'})\n");
    for command in [
        world.mcpx(["exec", "return await größe.echo({text: '→'})"]),
        world.mcpx(["run", "Straße/été.mjs"]),
        world.mcpx(["run", "été.mjs"]).dir("Straße"),
    ] {
        command.env("MCPX_CACHE_DIR", cache.clone()).stdout("→\n").check();
    }
}

fn awkward_names_are_functions(runtime: Runtime) {
    let world = demo(runtime);
    let code = r#"
        const names = [];
        names.push((await demo["get-weird.name"]({note: "a"})).tool);
        names.push((await demo["get-weird-name"]({note: "a"})).tool);
        names.push((await demo["1st"]({})).tool);
        names.push((await demo.class({})).tool);
        names.push((await demo["tool with spaces"]({})).tool);
        names.push((await demo["ünïcode"]({note: "ü"})).arguments.note);
        return names;
    "#;
    let names = world.mcpx(["exec", code]).run().json();
    assert_eq!(names, json!(["get-weird.name", "get-weird-name", "1st", "class", "tool with spaces", "ü"]));
}

fn a_tool_that_fails_throws(runtime: Runtime) {
    let world = demo(runtime);
    let code = r#"
        try {
            await demo.fail({message: "on purpose"});
            return "did not throw";
        } catch (e) {
            return [e instanceof ToolError, e.name, e.server, e.tool, e.kind, e.message, e.raw.isError];
        }
    "#;
    let caught = world.mcpx(["exec", code]).run().json();
    assert_eq!(caught, json!([true, "ToolError", "demo", "fail", "tool", "on purpose", true]));
    world
        .mcpx(["exec", "await demo.fail({message: 'uncaught one'})"])
        .status(1)
        .stderr_has("uncaught one")
        .check();
    let code = "try { await demo.nope({}) } catch (e) { return [e.kind, e.message] }";
    let caught = world.mcpx(["exec", code]).run();
    caught.says(&["nope"]);
    let code = "try { await demo.add({a: 'x', b: 1}) } catch (e) { return [e.kind, e.message] }";
    world.mcpx(["exec", code]).run().says(&["usage", "a"]);
}

fn an_error_in_the_program_ends_in_1(runtime: Runtime) {
    let world = demo(runtime);
    world.mcpx(["exec", "throw new Error('thrown here')"]).status(1).stderr_has("thrown here").check();
    world.mcpx(["exec", "const = 5"]).status(1).any_stderr().run().says(&["SyntaxError"]);
    world.mcpx(["exec", "process.exit(7)"]).status(7).any_stderr().check();
    world.mcpx(["exec", "undefinedName()"]).status(1).stderr_has("undefinedName").check();
}

fn an_error_says_what_to_do_where_javascript_does_not(runtime: Runtime) {
    let world = demo(runtime);
    world
        .mcpx(["exec", "await dmo.echo({text: 'x'})"])
        .status(1)
        .stderr_has("did you mean \"demo\"?")
        .check();
    let document = world.mcpx(["--json", "exec", "dmo.echo({})"]).status(1).any_stderr().run().json();
    assert!(document["error"]["hint"].to_string().contains("demo"), "{document}");
    let module = "export const a = 1; return a";
    world.mcpx(["exec", module]).status(1).stderr_has("write export default <value>").check();
    let never = "await new Promise(() => {})";
    let output = world.mcpx(["exec", never]).status(1).any_stderr().run();
    output.says(&["Error: the script ended while it still waited for a promise that nothing will settle"]);
    assert!(!output.to_string().contains("globalThis"), "no line of mcpx's own is shown: {output}");
    world.write("never.mjs", &format!("{never};\nexport default 1;\n"));
    let said = match runtime {
        // A module that awaits at its top: deno knows the very place.
        Runtime::Deno => "never.mjs:1:1",
        _ => "a promise that nothing will settle",
    };
    world.mcpx(["run", "never.mjs"]).status(1).stderr_has(said).check();
    for empty in ["", " \n"] {
        world.mcpx(["exec", empty]).status(2).stderr_has("there is no code to run").check();
    }
    world.mcpx(["exec", "process.exit(13)"]).status(13).check();
}

fn output_that_cannot_be_written_is_no_success(runtime: Runtime) {
    let world = demo(runtime);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_mcpx"))
        .args(["exec", "return 1"])
        .current_dir(world.dir())
        .env_clear()
        .envs(world.environment())
        .stdout(full)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.to_lowercase().contains("no space left"), "{stderr}");
}

fn the_program_can_come_on_stdin(runtime: Runtime) {
    let world = demo(runtime);
    world
        .mcpx(["exec", "-"])
        .stdin("return (await demo.echo({text: 'from stdin'}))")
        .stdout("from stdin\n")
        .check();
}

fn calls_run_side_by_side(runtime: Runtime) {
    let world = World::fake(&[]).with(runtime);
    let code = "const t = Date.now(); await Promise.all(Array.from({length: 20}, () => fake.sleep({ms: 300}))); return Date.now() - t";
    let took = world.mcpx(["exec", code]).run().json().as_f64().unwrap();
    assert!(took < 3000.0, "one after the other would take 6 s: {took} ms");
}

fn logs_go_to_stderr_and_emitted_values_to_stdout(runtime: Runtime) {
    let world = demo(runtime);
    let code = r#"
        log.info("fetched {n}", {n: 3});
        emit({a: 1});
        emit("two");
        log.debug("hidden");
        log.error("bad");
    "#;
    let output = world.mcpx(["exec", code]).any_stderr().run();
    assert_eq!(output.stdout(), "{\"a\":1}\n\"two\"\n", "{output}");
    assert!(output.stderr.contains("fetched 3") && output.stderr.contains("bad"), "{output}");
    assert!(!output.stderr.contains("hidden"), "{output}");
}

fn the_document_holds_the_whole_run(runtime: Runtime) {
    let world = demo(runtime);
    let code = "console.log('printed', {a: 1}); console.error('an error'); process.stdout.write('written\\n'); log.info('n is {n}', {n: 1}); emit(7); return (await demo.add({a: 1, b: 1})).sum";
    let document = world.mcpx(["--json", "exec", code]).any_stderr().run().json();
    assert_eq!(document["ok"], true, "{document}");
    assert_eq!(document["exitCode"], 0);
    assert_eq!(document["result"], 2);
    assert_eq!(document["results"], json!([7]));
    assert_eq!(document["runtime"], runtime.name());
    assert!(document["durationMs"].as_f64().unwrap() > 0.0);
    assert_eq!(document["stdout"], "written\n7\n2\n", "{document}");
    let logs: Vec<_> = document["logs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|l| (&l["level"], &l["console"], &l["message"]))
        .collect();
    assert_eq!(logs[1], (&json!("error"), &json!("error"), &json!("an error")), "{document}");
    assert_eq!(logs[2], (&json!("info"), &json!(null), &json!("n is 1")), "{document}");
    assert!(logs[0].2.as_str().unwrap().starts_with("printed {"), "{document}");
    let failed = world.mcpx(["--json", "exec", "throw new Error('no')"]).status(1).any_stderr().run().json();
    assert_eq!((&failed["ok"], &failed["exitCode"]), (&json!(false), &json!(1)), "{failed}");
    assert!(failed.to_string().contains("no"));
}

fn a_time_limit_ends_the_program_and_its_call(runtime: Runtime) {
    let world = World::fake(&[]).with(runtime);
    world
        .mcpx(["exec", "--timeout", "1500ms", "await fake.hang({})"])
        .status(124)
        .stderr_has("--timeout")
        .check();
    wait_until("the cancellation to arrive", || {
        (!world.received("fake", "notifications/cancelled").is_empty()).then_some(())
    });
    world.mcpx(["exec", "--timeout", "500ms", "while (true) {}"]).status(124).any_stderr().check();
    world.wait_gone(runtime.name());
}

fn ctrl_c_ends_the_program_and_its_call(runtime: Runtime) {
    let world = World::fake(&[]).with(runtime);
    let running = world.mcpx(["exec", "await fake.hang({})"]).start();
    wait_until("the call to arrive", || (!world.received("fake", "tools/call").is_empty()).then_some(()));
    running.signal(libc::SIGINT);
    let output = running.wait();
    assert_eq!(output.status, 130, "{output}");
    wait_until("the cancellation to arrive", || {
        (!world.received("fake", "notifications/cancelled").is_empty()).then_some(())
    });
    world.wait_gone(runtime.name());
    for place in ["local", "daemon"] {
        let so_far = world.received("fake", "tools/call").len();
        let words = ["--json", "exec", "--exec-where", place, "await fake.hang({})"];
        let running = world.mcpx(words).any_stderr().start();
        wait_until("the call", || (world.received("fake", "tools/call").len() > so_far).then_some(()));
        running.signal(libc::SIGINT);
        let output = running.wait();
        let document = output.json();
        let told = (&document["ok"], &document["exitCode"], &document["error"]["kind"]);
        assert_eq!(told, (&json!(false), &json!(130), &json!("cancelled")), "{place}: {output}");
        world.wait_gone(runtime.name());
    }
}

fn a_state_is_kept_between_programs(runtime: Runtime) {
    let world = demo(runtime);
    world.mcpx(["exec", "return await demo.counter({})"]).stdout("1\n").check();
    world.mcpx(["exec", "return await demo.counter({by: 4})"]).stdout("5\n").check();
    world.mcpx(["call", "demo.counter"]).stdout("6\n").check();
}

fn typescript_runs_where_the_runtime_can(runtime: Runtime) {
    let world = demo(runtime);
    let code = "const sum: number = (await demo.add({a: 1, b: 2})).sum; return sum as number";
    if runtime.types() {
        world.mcpx(["exec", code]).stdout("3\n").check();
    } else {
        // Said plainly, with what would help.
        let output = world.mcpx(["exec", code]).any_stderr().output();
        assert_ne!(output.status, 0, "{output}");
        output.says(&["TypeScript"]);
    }
}

fn large_results_pass_whole(runtime: Runtime) {
    let world = World::fake(&[]).with(runtime);
    let code = "return (await fake.big({bytes: 50000000})).length";
    world.mcpx(["exec", code]).stdout("50000000\n").check();
    // What is printed to a pipe is not cut.
    let output = world.mcpx(["exec", "return 'z'.repeat(3000000)"]).run();
    assert_eq!(output.stdout_bytes.len(), 3_000_001);
    let output = world
        .mcpx(["exec", "--script-console", "print", "console.log('z'.repeat(3000000)); process.exit(0)"])
        .any_stderr()
        .output();
    // A runtime that is told to exit may cut its own output; what arrived is passed on.
    assert_eq!(output.status, 0, "{}", output.stderr);
}

fn stdin_belongs_to_the_program(runtime: Runtime) {
    let world = demo(runtime);
    let code = "let n = 0; for await (const chunk of process.stdin) n += chunk.length; return n";
    world.mcpx(["exec", code]).stdin("12345").stdout("5\n").check();
}

fn progress_reaches_the_program(runtime: Runtime) {
    let world = demo(runtime);
    let code = "const seen = []; await demo.slow({seconds: 0.1, steps: 3}, {onprogress: (p) => seen.push(p.progress)}); return seen";
    world.mcpx(["exec", code]).stdout("[1,2,3]\n").check();
}

#[test]
fn many_programs_run_at_once() {
    let world = World::fake(&[]).with(Runtime::Bun);
    let running: Vec<_> = (0..24)
        .map(|n| {
            world
                .mcpx(["exec".to_owned(), format!("return await fake.echo({{text: 'program {n}'}})")])
                .start()
        })
        .collect();
    for (n, running) in running.into_iter().enumerate() {
        let output = running.wait();
        assert_eq!((output.status, output.stdout()), (0, format!("program {n}\n")), "{output}");
    }
    assert_eq!(world.daemons().len(), 1);
}

#[test]
fn what_a_program_started_in_its_own_session_ends_with_it() {
    let world = World::new()
        .server("fake", json!({"command": env!("CARGO_BIN_EXE_fake-mcp"), "mcpx": {"scope": "session"}}))
        .with(Runtime::Bun);
    let pid = world
        .mcpx(["exec", "return [await fake.count({}), await fake.count({}), await fake.pid({})]"])
        .run()
        .json();
    assert_eq!((&pid[0], &pid[1]), (&json!("1"), &json!("2")), "one instance for the whole program");
    wait_until("its instance to end", || {
        (!world.processes().iter().any(|p| p.mentions("fake-mcp"))).then_some(())
    });
}

#[test]
fn the_first_runtime_of_the_order_is_taken() {
    let world = World::demo().with(Runtime::Node26).with(Runtime::Bun);
    let document = world.mcpx(["--json", "exec", "return 1"]).run().json();
    assert_eq!(document["runtime"], "bun");
    let world = world.with(Runtime::Deno);
    let document = world.mcpx(["--json", "exec", "return 1"]).run().json();
    assert_eq!(document["runtime"], "deno");
    let document = world.mcpx(["--json", "exec", "--runtime", "node", "return 1"]).run().json();
    assert_eq!(document["runtime"], "node");
}

#[test]
fn without_a_runtime_it_says_which_would_do() {
    let world = World::demo();
    let output = world.mcpx(["exec", "return 1"]).status(127).any_stderr().run();
    output.says(&["deno", "bun", "node"]);
}

#[test]
fn a_profile_is_enforced_by_the_runtime() {
    let world = World::demo().with(Runtime::Deno);
    let code = "try { Deno.writeTextFileSync('out.txt', 'x'); return 'wrote' } catch (e) { return e.name }";
    world.mcpx(["exec", "--permissions", "read", code]).stdout("NotCapable\n").check();
    world.mcpx(["exec", code]).stdout("wrote\n").check();
    // Tools work under each of them.
    for profile in ["net", "read", "readnet", "strict"] {
        world
            .mcpx(["exec", "--permissions", profile, "return await demo.echo({text: 'in the sandbox'})"])
            .stdout("in the sandbox\n")
            .check();
    }
    let world = World::demo().with(Runtime::Bun);
    world.mcpx(["exec", "--permissions", "strict", "return 1"]).status(77).stderr_has("strict").check();
    let world = World::demo().with(Runtime::Node26);
    world
        .mcpx(["exec", "--permissions", "readnet", "return await demo.echo({text: 'in node'})"])
        .stdout("in node\n")
        .check();
    world.mcpx(["exec", "--permissions", "read", "return 1"]).status(77).stderr_has("read").check();
}

#[test]
fn permissions_none_is_said_to_mean_everything() {
    let world = World::demo().with(Runtime::Deno);
    let told = "permissions \"none\" means no sandbox at all; for the narrowest profile use strict";
    world.mcpx(["exec", "--permissions", "none", "return 1"]).stdout("1\n").stderr_has(told).check();
    world
        .mcpx(["exec", "--permissions", "none", "--dry-run", "1"])
        .stderr_has(told)
        .run()
        .says(&["--allow-all"]);
    world.mcpx(["exec", "--permissions", "all", "return 1"]).stdout("1\n").check();
}

#[test]
fn deno_does_not_colour_what_no_terminal_shows() {
    let world = World::demo().with(Runtime::Deno);
    let code = "return [Deno.noColor, Deno.env.get('NO_COLOR')]";
    world.mcpx(["exec", code]).stdout("[true,\"1\"]\n").check();
    world.mcpx(["exec", "--env", "FORCE_COLOR=1", code]).stdout("[false,null]\n").check();
}

#[test]
fn a_dry_run_prints_the_plan_and_runs_nothing() {
    let world = World::demo().with(Runtime::Deno);
    let output = world.mcpx(["exec", "--dry-run", "Deno.writeTextFileSync('ran.txt', 'x')"]).run();
    output.says(&["deno", "run", "--allow-all"]);
    assert!(!world.dir().join("ran.txt").exists());
}
