//! Inline code and files: values, errors and their lines, output, languages.

use super::*;
use serde_json::json;

#[test]
fn expressions_statements_and_values() {
    let stage = Stage::new("values");
    for js in runtimes() {
        let value = |code: &str| stage.value(&js, code);
        assert_eq!(value("1 + 1"), 2, "{js:?}");
        assert_eq!(value("({a: [1, null]});\n"), json!({"a": [1, null]}));
        assert_eq!(value("const x = 2; return x * 2"), 4);
        assert_eq!(value("// a comment\nawait Promise.resolve('text')  // and another"), "text");
        assert_eq!(value("async () => [...args]"), json!([]));
        assert_eq!(value("new Map([['a', 10n]])"), json!({"a": "10"}));
        assert_eq!(
            value("const a = {}; a.self = a; a.other = {a: 1}; return a"),
            json!({"self": "[circular]", "other": {"a": 1}})
        );
        assert_eq!(value("undefined"), Value::Null);
        assert_eq!(value("(await import('node:timers')).setTimeout(() => {}, 1)"), Value::Null);
        let document = stage.exec(&js, "emit('out'); emit({n: 1}); emit(2); 'text'");
        assert_eq!(document["result"], Value::Null, "statements have no value: {document}");
        let document = stage.exec(&js, "console.log('out'); emit({n: 1}); emit('x'); return 'text\\n'");
        assert_eq!(document["stdout"], "{\"n\":1}\n\"x\"\ntext\n", "{js:?} {document}");
        assert_eq!(
            (&document["logs"][0]["message"], &document["logs"][0]["console"]),
            (&json!("out"), &json!("log"))
        );
        assert_eq!((&document["result"], &document["results"]), (&json!("text\n"), &json!([{"n": 1}, "x"])));
        assert_eq!(document["runtime"], js.kind.word());
        assert!(document["ok"] == true && document["durationMs"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn calls_are_unwrapped_and_raw_is_reachable() {
    let stage = Stage::new("calls");
    for js in runtimes() {
        let value = |code: &str| stage.value(&js, code);
        assert_eq!(value("demo.echo({text: 'hi'})"), "hi", "{js:?}");
        assert_eq!(value("demo.echo({text: ' [1, 2] '})"), json!([1, 2]));
        assert_eq!(value("demo.echo({text: '12'})"), "12");
        assert_eq!(value("demo.echo({text: '{broken'})"), "{broken");
        assert_eq!(value("demo.add({a: 1, b: 2})"), json!({"sum": 3}));
        assert_eq!(value("demo.empty()"), Value::Null);
        assert_eq!(
            value("demo.list()"),
            json!(["a", {"b": 1}, {"type": "image", "data": "AA==", "mimeType": "image/png"}])
        );
        assert_eq!(value("(await demo.echo.raw({text: 'hi'})).content[0].type"), "text");
        assert_eq!(value("(await demo.fail().raw).isError"), true);
        assert_eq!(value("tools['my-server']['echo']({text: 'a'})"), "a");
        assert_eq!(value("my_server.echo({text: 'b'})"), "b");
        assert_eq!(
            value("typeof fetch.then + typeof tools.fetch.echo + typeof log_.echo + typeof log.info"),
            "undefinedfunctionfunctionfunction"
        );
        assert_eq!(value("const t = await demo; return typeof t.echo"), "function");
        let calls: Vec<_> = stage.peer.take().into_iter().filter(|m| m.get("op").is_some()).collect();
        assert_eq!(
            calls[0]["params"],
            json!({"server": "demo", "tool": "echo", "arguments": {"text": "hi"}})
        );
        assert!(calls.iter().any(
            |c| c["params"] == json!({"server": "my-server", "tool": "echo", "arguments": {"text": "b"}})
        ));
        assert!(
            calls.iter().any(|c| c["params"] == json!({"server": "demo", "tool": "empty"})),
            "no arguments stay absent"
        );
    }
}

#[test]
fn errors_name_the_users_own_lines() {
    let stage = Stage::new("errors");
    for js in runtimes() {
        let error = |code: &str, exit: u64| {
            let document = stage.exec(&js, code);
            assert_eq!(document["exitCode"], exit, "{js:?}: {document:#}");
            assert_eq!(document["ok"], false);
            (document["error"].clone(), document["stderr"].as_str().unwrap().to_owned())
        };
        let (e, text) = error("const a = 1;\n\nthrow new RangeError('boom')", 1);
        assert_eq!(
            (&e["name"], &e["message"], &e["line"]),
            (&json!("RangeError"), &json!("boom"), &json!(3)),
            "{js:?}"
        );
        assert!(text.starts_with("RangeError: boom\n    at <exec>:3:"), "{js:?}: {text}");
        assert!(!text.contains("mcpx-client") && !text.contains("/run/"), "{js:?}: {text}");
        let (e, _) = error("undefinedName", 1);
        assert_eq!(e["line"], 1, "{js:?}: {e}");
        let column = e["column"].as_u64().unwrap();
        assert!((1..=14).contains(&column), "{js:?}: {e}");
        let (e, text) = error("let x = 1\nlet y = ;\n", 1);
        assert_eq!((&e["name"], &e["line"]), (&json!("SyntaxError"), &json!(2)), "{js:?}: {text}");
        let (e, text) = error("async function inner() {\n  await demo.fail({})\n}\nawait inner()", 1);
        assert_eq!(
            (&e["name"], &e["message"], &e["kind"], &e["server"], &e["tool"]),
            (&json!("ToolError"), &json!("it failed"), &json!("tool"), &json!("demo"), &json!("fail")),
            "{js:?}"
        );
        assert_eq!(e["raw"]["isError"], true);
        assert_eq!(e["line"], 2, "{js:?}: {text}");
        let (e, text) = error("await demo.refused()", 77);
        assert_eq!((&e["kind"], &e["hint"]), (&json!("refused"), &json!("ask")));
        assert!(text.contains("demo.refused") && text.contains("ask"), "{text}");
        assert_eq!(error("await demo.echo('text')", 2).0["kind"], "usage");
        assert!(error("throw 'words'", 1).1.contains("words"));
        let document = stage.exec(&js, "Promise.reject(new Error('floating')); await 1");
        assert_eq!(document["exitCode"], 1, "{js:?}: {document:#}");
        let leave = if js.is_deno() { "Deno.exit(7)" } else { "process.exit(7)" };
        assert_eq!(stage.exec(&js, leave)["exitCode"], 7);
        assert_eq!(
            stage.value(&js, "try { await demo.fail() } catch (e) { return [e instanceof ToolError, e.name, e.kind, e.tool] }"),
            json!([true, "ToolError", "tool", "fail"])
        );
    }
}

#[test]
fn typescript_runs_where_the_runtime_can() {
    let stage = Stage::new("types");
    for js in runtimes() {
        let code = "interface A { n: number }\nconst a: A = {n: 3};\nreturn (a as A).n";
        let document = stage.exec(&js, code);
        if js.types {
            assert_eq!(document["result"], 3, "{js:?}: {document:#}");
            assert_eq!(stage.value(&js, "(await demo.echo({text: 'a'}) as string)"), "a");
            let document = stage.exec(&js, "const a: number = 1;\n\nthrow new Error('late')");
            assert_eq!(
                (&document["error"]["line"], &document["exitCode"]),
                (&json!(3), &json!(1)),
                "{js:?}: {document:#}"
            );
            let document = stage.exec(&js, "const a: number = 1;\nconst b: string = ;");
            assert_eq!(
                (&document["error"]["name"], &document["error"]["line"]),
                (&json!("SyntaxError"), &json!(2)),
                "{js:?}: {document:#}"
            );
        } else {
            assert_eq!(document["exitCode"], 1);
            assert!(document["stderr"].as_str().unwrap().contains("--runtime deno"), "{document:#}");
        }
    }
}

#[test]
fn modules_resolve_against_the_callers_directory() {
    let stage = Stage::new("modules");
    stage.write("lib/a.mjs", "export const a = 5;");
    stage.write(
        "node_modules/pkg/package.json",
        r#"{"name":"pkg","version":"1.0.0","type":"module","main":"i.js"}"#,
    );
    stage.write("node_modules/pkg/i.js", "export const p = 6;");
    stage.write("package.json", r#"{"dependencies":{"pkg":"1"}}"#);
    for js in runtimes() {
        let value = |code: &str| stage.value(&js, code);
        assert_eq!(value("import {a} from './lib/a.mjs'\nexport default () => a"), 5, "{js:?}");
        assert_eq!(value("(await import('./lib/a.mjs')).a"), 5);
        assert_eq!(value("import {p} from 'pkg'; export default async () => p"), 6, "{js:?}");
        assert_eq!(value("(await import('pkg')).p"), 6, "{js:?}");
        assert_eq!(
            value(
                "import tools, {demo} from 'mcpx'\nexport default () => demo.echo({text: typeof tools.x.y})"
            ),
            "function"
        );
        let document = stage
            .exec(&js, "import {a} from './lib/a.mjs'\n\nexport default () => { throw new Error('x' + a) }");
        assert!(
            document["stderr"].as_str().unwrap().starts_with("Error: x5\n    at <exec>:3:"),
            "{js:?}: {document:#}"
        );
        if js.types {
            assert_eq!(
                value("import {a} from './lib/a.mjs'\nconst n: number = a\nexport default () => n"),
                5
            );
        }
    }
}

#[test]
fn files_run_with_their_arguments_and_their_own_lines() {
    let stage = Stage::new("files");
    stage.write("job.mjs", "export default async function (a, b) { log.info('got {b}', {b}); return {a, b, args, script: paths.script, cwd: paths.cwd} }");
    stage.write(
        "plain.mjs",
        "console.log('plain', (globalThis.Deno ? Deno.args : process.argv.slice(2)).join());",
    );
    stage.write(
        "bad.mjs",
        "const a = 1;\nasync function inner() {\n  await demo.fail();\n}\nawait inner();\n",
    );
    stage.write("syntax.mjs", "let a = 1;\nlet b = ;\n");
    stage.write("typed.ts", "export default (a: string): number => a.length;");
    stage.write("old.cjs", "console.log('common', typeof demo.echo)");
    for js in runtimes() {
        let run = |name: &str| {
            let options = Options { args: vec!["one", "--two=2"], ..Options::default() };
            stage.run(&js, Source::Script(name.into()), &options)
        };
        let (_, document) = run("job.mjs").unwrap();
        let work = stage.work().canonicalize().unwrap();
        assert_eq!(
            document["result"],
            json!({"a": "one", "b": "--two=2", "args": ["one", "--two=2"], "script": work.join("job.mjs"), "cwd": stage.work()}),
            "{js:?}: {document:#}"
        );
        let record = &document["logs"][0];
        assert_eq!(
            (&record["level"], &record["message"], &record["fields"]),
            (&json!("info"), &json!("got --two=2"), &json!({"b": "--two=2"}))
        );
        assert_eq!(run("plain.mjs").unwrap().1["logs"][0]["message"], "plain one,--two=2", "{js:?}");
        assert_eq!(run("old.cjs").unwrap().1["logs"][0]["message"], "common function", "{js:?}");
        let (outcome, document) = run("bad.mjs").unwrap();
        assert_eq!(
            (outcome.exit_code, &document["error"]["kind"]),
            (1, &json!("tool")),
            "{js:?}: {document:#}"
        );
        let place = format!("at inner ({}:3:", work.join("bad.mjs").display());
        assert!(document["stderr"].as_str().unwrap().contains(&place), "{js:?}: {document:#}");
        let (_, document) = run("syntax.mjs").unwrap();
        let text = document["stderr"].as_str().unwrap();
        assert!(text.contains("syntax.mjs:2") && document["exitCode"] == 1, "{js:?}: {document:#}");
        match run("typed.ts") {
            Ok((_, document)) => assert_eq!(document["result"], 3, "{js:?}: {document:#}"),
            Err(e) => assert!(!js.types && e.exit_code() == 127 && e.to_string().contains("deno"), "{e}"),
        }
    }
}

#[test]
fn records_obey_the_level_and_plain_text_stays() {
    let stage = Stage::new("levels");
    for js in runtimes() {
        let options = Options { settings: vec![("logging.level", "warn")], ..Options::default() };
        let code = "console.error('plain'); log.info('no'); log.warn('a {x.y} {z}', {'x.y': {q: 1}}); console.error('more')";
        let (_, document) = stage.run(&js, Source::Inline(code.into()), &options).unwrap();
        let messages: Vec<&Value> =
            document["logs"].as_array().unwrap().iter().map(|l| &l["message"]).collect();
        assert_eq!(messages, ["plain", "a {\"q\":1} {z}", "more"], "{js:?}");
        assert_eq!(document["stderr"], "", "{js:?}");
    }
}

#[test]
fn large_output_is_drained_and_cut_only_when_collected() {
    let stage = Stage::new("large");
    for js in runtimes() {
        let limit = ("script.captureLimit", "64KiB");
        let options = Options { settings: vec![limit, ("script.console", "print")], ..Options::default() };
        let leave = if js.is_deno() { "Deno.exit(0)" } else { "process.exit(0)" };
        let code = format!("console.log('x'.repeat(100_000_000)); {leave}");
        let (_, document) = stage.run(&js, Source::Inline(code.as_str().into()), &options).unwrap();
        assert_eq!(document["stdout"].as_str().unwrap().len(), 64 * 1024, "{js:?}");
        assert_eq!(document["truncated"], json!(["stdout"]));
        let recorded = Options { settings: vec![limit], ..Options::default() };
        let (_, document) =
            stage.run(&js, Source::Inline(code.replace("100_", "10_").into()), &recorded).unwrap();
        assert_eq!(document["logs"][0]["message"].as_str().unwrap().len(), 64 * 1024 - 64, "{js:?}");
        assert_eq!(document["truncated"], json!(["logs"]));
        let (_, document) =
            stage.run(&js, Source::Inline("'y'.repeat(50_000_000)".into()), &options).unwrap();
        assert_eq!(document["result"].as_str().unwrap().len(), 50_000_000, "{js:?}");
    }
}

#[test]
fn time_outs_and_signals_have_their_codes() {
    let stage = Stage::new("ends");
    for js in runtimes() {
        let options = Options {
            settings: vec![("script.timeout", "300ms"), ("script.killGrace", "100ms")],
            ..Options::default()
        };
        let code = "globalThis.process?.on('SIGTERM', () => {}); setInterval(() => {}, 1000); await new Promise(() => {})";
        let (outcome, document) = stage.run(&js, Source::Inline(code.into()), &options).unwrap();
        assert_eq!((outcome.exit_code, &document["error"]["kind"]), (124, &json!("timeout")), "{js:?}");
        let kill = if js.is_deno() {
            "Deno.kill(Deno.pid, 'SIGKILL')"
        } else {
            "process.kill(process.pid, 'SIGKILL')"
        };
        let code = format!("{kill}; await new Promise(r => setTimeout(r, 10000))");
        let document = stage.exec(&js, &code);
        assert_eq!(document["exitCode"], 137, "{js:?}: {document:#}");
        assert!(document["error"]["message"].as_str().unwrap().contains("SIGKILL"));
    }
}
