//! What mcpx does around a script: its console, what is set to run before and
//! after it, and where errors are said to be.

use crate::harness::{Runtime, World, tools};
use serde_json::{Value, json};

const RUNTIMES: [Runtime; 4] = [Runtime::Deno, Runtime::Bun, Runtime::Node22, Runtime::Node26];

/// Prints in every way that a console has; what depends on the clock or on a terminal is left out.
const PRINTS: &str = r#"
class Point { constructor() { this.x = 1; this.m = new Map([[1, { a: 2 }]]) } }
const circle = { n: 1 }; circle.self = circle;
console.log("a", 1, true, null, undefined, 5n, Symbol("s"), -0, NaN);
console.log({ a: 1, b: "two", c: [1, { d: 3 }], e: { f: { g: { h: 1 } } } });
console.log([1, "a"], "text", new Point(), new Set([1]), new Date(0), /x/g, function foo() {}, class Q {});
console.log("%s is %d and %i %f %j %% %c styled", "x", 42, 3.7, 1.5, { a: 1 }, "color: red", "more", { b: 1 });
console.log("%o %O", [1], { c: { d: 1 } }, "100%");
console.log("%d", "abc"); console.log("%s"); console.log("%x", 1); console.log("%"); console.log("%s", null, 5n);
console.log(); console.log(""); console.log("one\ntwo"); console.log(circle); console.log("ü→😀");
console.group("outer"); console.log("in\nside"); console.group(); console.info({ deep: [1, 2] }); console.groupEnd();
console.log("still"); console.groupEnd(); console.groupEnd(); console.log("out");
console.table([{ a: 1, b: "x" }, { a: 2, c: true }]); console.table([1, "b"]); console.table("text");
console.table({ r: { x: 1 }, s: { x: 2 } }); console.table([{ a: 1, b: 2 }], ["b"]);
console.dir({ a: { b: { c: {} } } }, { depth: 0 }); console.dirxml({ a: 1 }, [2]);
console.count(); console.count("x"); console.count(); console.countReset(); console.count();
console.assert(true, "no"); console.log(new Uint8Array([1, 2]), [undefined, null, , 3], Object.create(null));
console.log(Array.from({ length: 120 }, (_, i) => i)); console.log({ get a() { return 1 }, [Symbol("k")]: 2, fn() {} });
"#;

/// The messages of a document's records of a level, a line end behind each.
fn printed(document: &Value, level: &str) -> String {
    let logs = document["logs"].as_array().unwrap();
    logs.iter()
        .filter(|l| l["level"] == level)
        .map(|l| format!("{}\n", l["message"].as_str().unwrap()))
        .collect()
}

#[test]
fn the_console_prints_the_same_recorded_or_not() {
    for runtime in RUNTIMES {
        let world = World::demo().with(runtime).file("prints.mjs", PRINTS);
        let own = world.mcpx(["run", "--no-launcher", "prints.mjs"]).run().stdout();
        assert!(own.contains("ü→😀") && own.lines().count() > 40, "{own}");
        let output = world.mcpx(["run", "prints.mjs"]).any_stderr().stdout("").run();
        assert_eq!(output.stderr, own, "{runtime:?}");
        let document = world.mcpx(["--json", "run", "prints.mjs"]).run().json();
        assert_eq!(printed(&document, "info"), own, "{runtime:?}");
        assert_eq!((&document["stdout"], &document["stderr"]), (&json!(""), &json!("")));
        world.mcpx(["run", "--script-console", "print", "prints.mjs"]).stdout(&own).check();
    }
}

#[test]
fn the_console_has_levels_and_places() {
    for runtime in RUNTIMES {
        let world = World::demo().with(runtime);
        let code = "console.debug('d'); console.log('l');\n  console.warn('w %s', 1); console.error('e');\nconsole.assert(false, 'never'); log.warn('told')";
        let output = world.mcpx(["exec", code]).any_stderr().stdout("").run();
        assert!(
            output.stderr.starts_with("l\nw 1\ne\n") && output.stderr.ends_with("warn  told\n"),
            "{output}"
        );
        let levels = |level: &str| {
            let document = world
                .mcpx(["--json", "exec", "--logging-level", level, "--script-log-source", "warn", code])
                .run()
                .json();
            let row = |l: &Value| {
                let place = l["source"].as_str().map(|s| s.rsplit_once(':').unwrap().0.to_owned());
                (l["level"].as_str().unwrap().to_owned(), place)
            };
            document["logs"].as_array().unwrap().iter().map(row).collect::<Vec<_>>()
        };
        let at = |level: &str, line| (level.to_owned(), Some(format!("<exec>:{line}")));
        let without = |level: &str| (level.to_owned(), None);
        let all =
            [without("debug"), without("info"), at("warn", 2), at("error", 2), at("error", 3), at("warn", 3)];
        assert_eq!(levels("debug"), all, "{runtime:?}");
        assert_eq!(levels("warn"), all[2..], "{runtime:?}");
        assert_eq!(levels("off"), [], "{runtime:?}");
        let column =
            world.mcpx(["--json", "exec", "--script-log-source", "info", "log.info('x')"]).run().json();
        let source = column["logs"][0]["source"].as_str().unwrap().to_owned();
        // bun names the bracket of a call, the others its beginning.
        assert!(source.starts_with("<exec>:1:") && source.len() == 10, "{runtime:?}: {source}");
    }
}

#[test]
fn a_program_that_prints_for_ever_ends_with_its_reader() {
    for runtime in RUNTIMES {
        let world = World::demo().with(runtime);
        for (console, redirect) in [("records", "2>&1 >/dev/null"), ("print", ""), ("print", "2>&1")] {
            let line = format!(
                "{{ {} exec --timeout 30s --script-console {console} 'for (let i = 0;; i++) console.log(i)' {redirect}; echo $? >status; }} | head -n 1",
                env!("CARGO_BIN_EXE_mcpx")
            );
            let output = world.sh(&line);
            assert_eq!(String::from_utf8_lossy(&output.stdout), "0\n", "{runtime:?} {console}");
            assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{runtime:?} {console}");
            let status = std::fs::read_to_string(world.dir().join("status")).unwrap();
            assert_eq!(status, "141\n", "{runtime:?} {console} {redirect}");
        }
        world.wait_gone(runtime.name());
    }
}

#[test]
fn what_a_program_prints_in_several_ways_keeps_its_order() {
    let code = r#"
        emit("first");
        if (globalThis.process?.stdout) process.stdout.write("by itself\n");
        emit("y".repeat(1 << 20));
        return "last";
    "#;
    for runtime in RUNTIMES {
        let world = World::demo().with(runtime);
        std::fs::write(world.dir().join("code"), code).unwrap();
        // Onto a pipe whose writer is not made to wait, too.
        let python = tools::python();
        let impatient = format!(
            "{} -c 'import os, sys; os.set_blocking(1, False); os.execv(sys.argv[1], sys.argv[1:])' ",
            python.display()
        );
        for before in ["", &impatient] {
            let line = format!("{before}{} exec - <code | cat", env!("CARGO_BIN_EXE_mcpx"));
            let output = world.sh(&line);
            let stdout = String::from_utf8_lossy(&output.stdout);
            let lines: Vec<&str> = stdout.lines().collect();
            assert_eq!(lines.len(), 4, "{runtime:?}: {}", String::from_utf8_lossy(&output.stderr));
            assert_eq!([lines[0], lines[1], lines[3]], ["\"first\"", "by itself", "last"], "{runtime:?}");
            assert_eq!(lines[2].len(), (1 << 20) + 2, "{runtime:?}");
        }
        world.wait_gone(runtime.name());
    }
}

#[test]
fn what_is_set_runs_around_the_script() {
    for runtime in RUNTIMES {
        let world = World::demo()
            .with(runtime)
            .file("parts/2.js", "const two = one + 1;\n")
            .file("parts/10.js", "function ten() { return two * 5 }\n")
            .file("parts/1.js", "let one = 1")
            .file("ok.mjs", "export default () => { log.info('script {n}', { n: ten() }); return 'value' }\n")
            .file("bad.ts", "export default (): number => { throw new RangeError('bad') }\n")
            .setting(
                "script",
                json!({
                    "prefix": "parts",
                    "suffix": "@text:console.log('suffix', two)",
                    "before": "const { sum } = await demo.add({a: 1, b: 2}); console.log('before', sum, typeof ten)",
                    "onSuccess": "console.log('success', result); return 'nobody sees it'",
                    "onError": "console.log('failed', error.name, error.message)",
                }),
            );
        let said = |args: &[&str]| {
            let document = world.mcpx(args.iter().copied()).any_stderr().output().json();
            (printed(&document, "info"), document)
        };
        let (text, document) =
            said(&["--json", "exec", "log.info('script {n}', {n: ten()}); return 'value'"]);
        let expected = "before 3 undefined\nscript 10\nsuffix 2\nsuccess value\n";
        assert_eq!(
            (text.as_str(), &document["result"]),
            (expected, &json!("value")),
            "{runtime:?} {document}"
        );
        let (text, document) = said(&["--json", "run", "ok.mjs"]);
        assert_eq!(
            (text.as_str(), &document["result"]),
            (expected, &json!("value")),
            "{runtime:?} {document}"
        );
        let (text, document) = said(&["--json", "exec", "\nthrow new TypeError('no')"]);
        assert_eq!(text, "before 3 undefined\nfailed TypeError no\n", "{runtime:?} {document}");
        assert_eq!(
            (&document["exitCode"], &document["error"]["line"]),
            (&json!(1), &json!(2)),
            "{runtime:?}"
        );
        let (text, document) = said(&["--json", "run", "bad.ts"]);
        assert_eq!(text, "before 3 undefined\nfailed RangeError bad\n", "{runtime:?} {document}");
        // A program of its own has none of it, nor has another interpreter.
        world.write("plain.sh", "echo plain\n");
        world.mcpx(["run", "plain.sh"]).stdout("plain\n").check();
        world.mcpx(["exec", "--no-launcher", "console.log(typeof ten)"]).stdout("undefined\n").check();
    }
}

#[test]
fn what_fails_around_the_script_fails_the_run() {
    for runtime in RUNTIMES {
        let world = World::demo().with(runtime);
        let failing = |flag: &str, text: &str, code: &str| {
            let output = world.mcpx([
                "exec",
                flag,
                text,
                "--script-on-error",
                "console.log('seen', error.message)",
                code,
            ]);
            output.status(1).stdout("").any_stderr().run().stderr
        };
        let text =
            failing("--script-before", "\nlet a: number = 1; throw new Error('early')", "console.log('ran')");
        assert!(text.starts_with("seen early\nError: early\n    at <before>:2:"), "{runtime:?}: {text}");
        let text =
            failing("--script-on-success", "\n\nthrow new Error('late')", "console.log('ran'); return 5");
        assert!(
            text.starts_with("ran\nseen late\nError: late\n    at <onSuccess>:3:"),
            "{runtime:?}: {text}"
        );
        let text = failing("--script-suffix", "\nnope()", "return 5");
        assert!(text.contains("\n    at <suffix>:2:"), "{runtime:?}: {text}");
        let text = failing("--script-prefix", "let a;\nlet b = ;", "return 5");
        assert!(text.contains("SyntaxError") && text.contains("<prefix>"), "{runtime:?}: {text}");
        // What handles the error and fails as well does not hide it.
        let output = world
            .mcpx(["exec", "--script-on-error", "\nthrow new Error('second')", "throw new Error('first')"])
            .status(1)
            .any_stderr()
            .run();
        output.says(&["onError: Error: second", "at <onError>:2:", "Error: first", "at <exec>:1:"]);
    }
    let world = World::demo().with(Runtime::Bun).setting("script", json!({"prefix": "@file:none.js"}));
    let output = world.mcpx(["exec", "--env", "x", "1"]).status(2).any_stderr().run();
    output.says(&["script.prefix", ".mcpx.json:", "none.js", "--env"]);
}

#[test]
fn errors_are_in_the_users_own_lines() {
    let file = "const a = 1;\nfunction inner() {\n  throw new Error('in ' + a + helper());\n}\nexport default async () => {\n  await null;\n  inner();\n};\n";
    let typed = file.replace("const a = 1;", "interface A { n: number }\nconst a: number = 1;");
    for runtime in RUNTIMES {
        let world = World::demo()
            .with(runtime)
            .file("f.mjs", file)
            .file("f.ts", &typed)
            .file("prefix.js", "\n\nfunction helper() {\n  if (globalThis.deep) throw new Error('helper');\n  return '';\n}\n")
            .setting("script", json!({"prefix": "@file:prefix.js"}));
        for (name, thrown, called) in [("f.mjs", 3, 7), ("f.ts", 4, 8)] {
            let path = world.dir().join(name);
            let text = world.mcpx(["run", name]).status(1).any_stderr().run().stderr;
            let lines: Vec<&str> = text.lines().collect();
            assert_eq!(lines[0], "Error: in 1", "{runtime:?}: {text}");
            let at = |line: usize, row| lines[line].contains(&format!("{}:{row}:", path.display()));
            assert!(at(1, thrown) && at(2, called) && lines.len() == 3, "{runtime:?}: {text}");
            let output = world.mcpx([
                "exec",
                &format!(
                    "const {{ default: f }} = await import('./{name}');\nglobalThis.deep = 1;\nawait f()"
                ),
            ]);
            let text = output.status(1).any_stderr().run().stderr;
            assert!(text.starts_with("Error: helper\n    at helper (<prefix>:4:"), "{runtime:?}: {text}");
            assert!(text.lines().any(|l| l.contains("<exec>:3:")), "{runtime:?}: {text}");
        }
        for code in [
            "\n\nthrow new Error('x')",
            "const a: number = 1\nlet b: string\nthrow new Error('x')",
            "import { sep } from 'node:path'\nimport os from 'node:os'\nthrow new Error('x' + sep[9] + os.none)",
            "export const a = 1\n\nthrow new Error('x')",
            "\n\nsetTimeout(() => { throw new Error('x') }, 1)\nawait new Promise(r => setTimeout(r, 5000))",
        ] {
            let text = world.mcpx(["exec", code]).status(1).any_stderr().run().stderr;
            assert!(text.lines().nth(1).is_some_and(|l| l.contains("<exec>:3:")), "{runtime:?}: {text}");
        }
        let text = world.mcpx(["exec", "\nimport { nope } from 'node:path'\nnope()"]);
        let text = text.status(1).any_stderr().run().stderr;
        assert!(text.contains("\"nope\"") && text.contains("<exec>:2:1"), "{runtime:?}: {text}");
    }
}
