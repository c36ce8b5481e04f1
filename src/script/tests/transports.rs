//! The ways to the daemon: an inherited descriptor, a socket, HTTP.

use super::*;
use serde_json::json;

#[test]
fn many_calls_at_once_and_a_script_ends_by_itself() {
    let stage = Stage::new("many");
    for js in runtimes() {
        let code = "const all = await Promise.all(Array.from({length: 1000}, (_, i) => demo.echo({text: 'n' + i})));\n\
            return all.every((t, i) => t === 'n' + i) && all.length";
        assert_eq!(stage.value(&js, code), 1000, "{js:?}");
        let way = stage.peer.take();
        let upgraded = way.iter().any(|m| m.get("upgrade").is_some());
        assert_eq!(upgraded, js.is_bun() || js.is_deno(), "{js:?} took another way");
        let code =
            "let n = 0; for (let i = 0; i < 300; i++) n += (await demo.add({a: i, b: 1})).sum; return n";
        assert_eq!(stage.value(&js, code), 45150);
        stage.peer.take();
    }
}

#[test]
fn a_large_result_arrives_whole() {
    let stage = Stage::new("whole");
    for js in runtimes() {
        let code = "const [a, b] = await Promise.all([demo.big({size: 50_000_000}), demo.echo({text: 'x'.repeat(3_000_000)})]); return [a.length, b.length, a[49_999_999]]";
        assert_eq!(stage.value(&js, code), json!([50_000_000, 3_000_000, "x"]), "{js:?}");
    }
}

#[test]
fn progress_cancellation_and_time_outs_travel() {
    let stage = Stage::new("progress");
    for js in runtimes() {
        let code = "const seen = []; const r = await demo.slow({}, {onprogress: p => seen.push(p.progress), timeoutMs: 5000}); return [r, seen]";
        assert_eq!(stage.value(&js, code), json!(["slowly", [1, 2]]), "{js:?}");
        let sent = stage.peer.take().into_iter().find(|m| m.get("op").is_some()).unwrap();
        assert_eq!((&sent["progress"], &sent["params"]["timeoutMs"]), (&json!(true), &json!(5000)));
        let code = "const stop = new AbortController();\n\
            const call = demo.never({}, {signal: stop.signal});\n\
            await demo.echo({text: 'sent'});\n\
            stop.abort(new Error('enough'));\n\
            const why = await call.catch(e => e.message);\n\
            const early = await demo.echo({}, {signal: stop.signal}).catch(e => e.message);\n\
            return [why, early, await demo.echo({text: 'still'})]";
        assert_eq!(stage.value(&js, code), json!(["enough", "enough", "still"]), "{js:?}");
        let seen = stage.peer.take();
        let never = seen.iter().find(|m| m["params"]["tool"] == "never").unwrap();
        assert!(seen.iter().any(|m| m["cancel"] == never["id"]), "{js:?}: {seen:?}");
    }
}

#[test]
fn a_connection_that_breaks_leaves_the_outcome_unknown() {
    let stage = Stage::new("breaks");
    for js in runtimes() {
        let document = stage.exec(&js, "await demo.leave()");
        assert_eq!(
            (&document["exitCode"], &document["error"]["kind"]),
            (&json!(76), &json!("outcome-unknown")),
            "{js:?}: {document:#}"
        );
        let calls = stage.peer.take().into_iter().filter(|m| m["params"]["tool"] == "leave").count();
        assert_eq!(calls, 1, "a call is never sent twice");
    }
}

#[test]
fn http_serves_where_nothing_else_does() {
    let stage = Stage::new("http");
    for js in runtimes() {
        let options = Options { http_only: true, ..Options::default() };
        let run = |code: &str| stage.run(&js, Source::Inline(code.into()), &options).unwrap().1;
        assert_eq!(run("demo.echo({text: 'over http'})")["result"], "over http", "{js:?}");
        let seen = stage.peer.take();
        assert_eq!(seen[0]["http"], "POST /v1/call HTTP/1.1");
        assert_eq!(seen[0]["body"]["context"]["session"], "s-1");
        assert_eq!(seen[0]["body"]["context"]["run"], "run-1");
        assert_eq!(run("await demo.fail()")["error"]["message"], "it failed");
        assert_eq!(run("await demo.refused()")["exitCode"], 77);
        let code =
            "(await Promise.all(Array.from({length: 200}, (_, i) => demo.echo({text: 'n' + i})))).length";
        assert_eq!(run(code)["result"], 200, "{js:?}");
    }
}
