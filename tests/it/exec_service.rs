//! The exec service: `POST /v1/exec`, its tool, and `--remote`.

use crate::harness::{Runtime, World, tools, wait_until};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;

/// A world whose daemon runs.
fn world() -> World {
    let world = World::demo().with(Runtime::Bun);
    world.mcpx(["refresh"]).any_stderr().run().says(&["NAMESPACE"]);
    world
}

/// Sends a request to the daemon's socket, and leaves the answer to be read.
fn send(world: &World, body: &Value, headers: &str) -> UnixStream {
    let sockets: Vec<_> = std::fs::read_dir(world.state())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "sock"))
        .collect();
    let [socket] = &sockets[..] else { panic!("one socket: {sockets:?}") };
    let mut stream = UnixStream::connect(socket).unwrap();
    let body = body.to_string();
    let head = format!(
        "POST /v1/exec HTTP/1.1\r\nHost: mcpx\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    stream
}

/// Status, head and body of an answer; chunks are put together.
fn answer(stream: UnixStream) -> (u16, String, String) {
    let mut text = String::new();
    BufReader::new(stream).read_to_string(&mut text).unwrap();
    let (head, mut body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let mut whole = String::new();
    if head.contains("Transfer-Encoding: chunked") {
        while let Some((size, rest)) = body.split_once("\r\n") {
            let size = usize::from_str_radix(size, 16).unwrap();
            whole.push_str(&rest[..size]);
            body = &rest[size + 2..];
        }
    } else {
        whole.push_str(body);
    }
    (status, head.to_owned(), whole)
}

fn exec(world: &World, body: Value) -> (u16, Value) {
    let (status, _, text) = answer(send(world, &body, ""));
    (status, serde_json::from_str(&text).unwrap())
}

#[test]
fn a_program_runs_and_its_whole_run_is_one_document() {
    let world = world();
    let code = "console.log('said'); emit(args); process.stdout.write('out\\n'); let n = ''; for await (const c of process.stdin) n += c; return [n, (await demo.add({a: 1, b: 2})).sum]";
    let (status, document) = exec(&world, json!({"code": code, "args": ["x", "y z"], "stdin": "given"}));
    assert_eq!((status, &document["result"]), (200, &json!(["given", 3])), "{document}");
    assert_eq!((&document["ok"], &document["results"]), (&json!(true), &json!([["x", "y z"]])));
    assert_eq!(document["logs"][0]["message"], "said");
    assert_eq!(document["stdout"], "[\"x\",\"y z\"]\nout\n[\"given\",3]\n");
    let (status, document) = exec(&world, json!({"code": "\nthrow new TypeError('no')"}));
    assert_eq!((status, &document["exitCode"], &document["error"]["line"]), (200, &json!(1), &json!(2)));
    let (_, document) = exec(&world, json!({"code": "while (true) {}", "timeoutMs": 300}));
    assert_eq!((&document["exitCode"], &document["error"]["kind"]), (&json!(124), &json!("timeout")));
    // As text.
    let (status, head, text) =
        answer(send(&world, &json!({"code": "process.exitCode = 3; return 'ü'", "output": "text"}), ""));
    assert_eq!((status, text.as_str()), (200, "ü\n"), "{head}");
    assert!(head.contains("X-Mcpx-Exit-Code: 3") && head.contains("text/plain"), "{head}");
    // A script that is there, and code for an interpreter.
    world.write("s.sh", "echo \"$1 from $PWD\"\n");
    let (_, document) = exec(&world, json!({"script": "s.sh", "args": ["hi"], "cwd": world.dir()}));
    assert_eq!(document["stdout"], format!("hi from {}\n", world.dir().display()), "{document}");
    world.link("python3", &tools::python());
    let python = "from mcpx import tools, args\nprint(tools.demo.add(a=2, b=2)['sum'], args)";
    let (_, document) = exec(&world, json!({"code": python, "language": "python", "args": ["a"]}));
    assert_eq!(
        (&document["stdout"], &document["runtime"]),
        (&json!("4 ['a']\n"), &json!("python3")),
        "{document}"
    );
}

#[test]
fn what_is_wrong_is_told_at_once() {
    let world = world();
    let (status, error) = exec(
        &world,
        json!({"code": "1", "cwd": "nowhere", "env": {"a=b": "x"}, "permissions": "redanet", "settings": {"pool.max": 1}, "hooks": {"pre": []}}),
    );
    let message = error["error"]["message"].as_str().unwrap();
    assert_eq!(status, 400, "{message}");
    for part in ["cwd", "a=b", "redanet", "pool.max", "hooks.pre"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    for (body, status, part) in [
        (json!({}), 400, "code or script"),
        (json!({"code": "1", "language": "cobol"}), 400, "cobol"),
        (json!({"script": "none.ts"}), 404, "none.ts"),
        (json!({"code": "1", "permissions": "strict"}), 403, "strict"),
        (json!({"code": "1", "hooks": {"onerror": "x"}}), 400, "onerror"),
    ] {
        let (got, error) = exec(&world, body);
        assert!(error["error"]["message"].as_str().unwrap().contains(part), "{error}");
        assert!(got == status || got >= 400, "{got} {error}");
    }
    let off = World::demo().with(Runtime::Bun).setting("exec", json!({"enabled": false}));
    off.mcpx(["exec", "--remote", "1"]).status(77).stderr_has("exec.enabled").check();
    off.mcpx(["exec", "1"]).stdout("1\n").check();
}

#[test]
fn a_program_is_told_what_the_table_says_and_calls_with_its_callers_settings() {
    let world = world();
    let code = "Object.fromEntries(Object.entries(process.env).filter(([k]) => k.startsWith('MCPX_')))";
    let body = json!({"code": code, "runtime": "bun", "cwd": world.dir(), "session": "s", "sessionId": "host",
        "settings": {"pool.callTimeout": "7s"}});
    let (_, document) = exec(&world, body);
    let env = &document["result"];
    let daemon = &world.daemons()[0];
    assert_eq!((&env["MCPX_SESSION"], &env["MCPX_SESSION_ID"]), (&json!("s"), &json!("host")), "{document}");
    assert_eq!(env["MCPX_SETTINGS"], "{\"pool.callTimeout\":\"7s\"}");
    assert_eq!((&env["MCPX_CWD"], &env["MCPX_PID"]), (&json!(world.dir()), &json!(daemon.pid.to_string())));
    assert_eq!((&env["MCPX_RUNTIME"], &env["MCPX_ARTIFACTS_LOCAL"]), (&json!("bun"), &json!("1")));
    for name in ["MCPX_RUN", "MCPX_SOCKET", "MCPX_ENDPOINT", "MCPX_ENTRY", "MCPX_CLIENT"] {
        assert!(env[name].as_str().is_some_and(|v| !v.is_empty()), "{name}: {env}");
    }
    // Not among those that the service sets; the token least of all.
    for name in
        ["MCPX_TRANSPORT_BEARER_TOKEN", "MCPX_INPUT", "MCPX_EPHEMERAL", "MCPX_LOG_LEVEL", "MCPX_CONFIG_PATH"]
    {
        assert!(env[name].is_null(), "{name}: {env}");
    }
    let (_, document) = exec(&world, json!({"code": "process.env.MCPX_CWD ?? 'none'"}));
    assert_eq!(document["result"], "none");
    // The settings hold for its calls.
    let slow = World::fake(&[]).with(Runtime::Bun);
    slow.mcpx(["refresh"]).any_stderr().run().says(&["NAMESPACE"]);
    let code = "try { await fake.hang({}) } catch (e) { return e.kind }";
    let (_, document) = exec(&slow, json!({"code": code, "settings": {"pool.callTimeout": "200ms"}}));
    assert_eq!(document["result"], "timeout", "{document}");
    let (_, head, text) =
        answer(send(&slow, &json!({"code": code}), "X-Mcpx-Settings: {\"pool.callTimeout\":\"200ms\"}\r\n"));
    assert!(text.contains("\"result\":\"timeout\""), "{head} {text}");
}

#[test]
fn hooks_run_around_it_and_have_their_effect() {
    let world = world();
    let log = world.dir().join("log");
    let note = format!(
        "printf '%s|%s|%s\\n' \"$MCPX_HOOK_PHASE\" \"$MCPX_HOOK_POINT\" \"${{MCPX_HOOK_ERROR-none}}\" >>{0}; cat >>{0}",
        log.display()
    );
    let hooks = json!({"pre": note, "onSuccess": note, "onError": note, "post": ["sh", "-c", note]});
    let ran = |code: &str| {
        let _ = std::fs::remove_file(&log);
        let (_, document) = exec(&world, json!({"code": code, "hooks": hooks}));
        let text = std::fs::read_to_string(&log).unwrap();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        (document, lines)
    };
    let (document, lines) = ran("return {a: 1}");
    assert_eq!((&document["ok"], &document["hooks"]), (&json!(true), &json!(null)), "{document}");
    assert_eq!(
        [&lines[0], &lines[2], &lines[4]],
        ["pre|script|none", "onSuccess|script|none", "post|script|none"]
    );
    let context: Value = serde_json::from_str(&lines[3]).unwrap();
    assert_eq!(
        (&context["result"], &context["phase"], &context["exitCode"]),
        (&json!({"a": 1}), &json!("onSuccess"), &json!(0))
    );
    let (_, lines) = ran("throw new Error('ü'.repeat(2000) + '\\nnext')");
    let error = lines[2].strip_prefix("onError|script|").unwrap();
    assert_eq!((error.len(), error.chars().last()), (1024, Some('ü')));
    let context: Value = serde_json::from_str(&lines[3]).unwrap();
    assert!(context["error"]["message"].as_str().unwrap().ends_with("\nnext"), "the whole is on stdin");
    assert!(lines[4].starts_with("post|script|none"), "{lines:?}");
    // One that says no, and one that fails afterwards.
    let (status, error) =
        exec(&world, json!({"code": "1", "hooks": {"pre": "echo 'not today' >&2; exit 1"}}));
    assert_eq!((status, &error["error"]["kind"]), (403, &json!("refused")), "{error}");
    assert!(error.to_string().contains("not today"), "{error}");
    let (_, document) = exec(&world, json!({"code": "return 1", "hooks": {"post": "exit 4"}}));
    assert_eq!(
        (&document["ok"], &document["hooks"][0]["phase"]),
        (&json!(true), &json!("post")),
        "{document}"
    );
    let slow = World::demo().with(Runtime::Bun).setting("exec", json!({"hookTimeout": "200ms"}));
    slow.mcpx(["refresh"]).any_stderr().run().says(&["NAMESPACE"]);
    let (status, error) = exec(&slow, json!({"code": "1", "hooks": {"pre": "sleep 60"}}));
    assert!(status == 403 && error.to_string().contains("longer than 200ms"), "{error}");
    assert!(!slow.processes().iter().any(|p| p.mentions("sleep 60")), "it was stopped");
}

#[test]
fn a_stream_comes_as_it_happens_and_ends_with_its_reader() {
    let world = World::fake(&[]).with(Runtime::Bun);
    world.mcpx(["refresh"]).any_stderr().run().says(&["NAMESPACE"]);
    let code = "process.stdout.write('first\\n'); console.warn('w'); await fake.hang({})";
    let mut lines = BufReader::new(send(&world, &json!({"code": code, "output": "stream"}), "")).lines();
    // What comes by two pipes comes in either order.
    let mut seen: Vec<Value> = Vec::new();
    let mut frame = |kind: &str| {
        if let Some(at) = seen.iter().position(|frame| frame["t"] == kind) {
            return seen.remove(at);
        }
        loop {
            let line = lines.next().expect("a frame").unwrap();
            let Ok(frame) = serde_json::from_str::<Value>(&line) else { continue };
            if frame["t"] == kind {
                return frame;
            }
            seen.push(frame);
        }
    };
    assert_eq!(frame("start")["runtime"], "bun");
    assert_eq!(frame("stdout")["text"], "first\n");
    assert_eq!((frame("log")["record"]["message"].clone()), "w");
    wait_until("the call to arrive", || (!world.received("fake", "tools/call").is_empty()).then_some(()));
    drop(lines);
    wait_until("the cancellation", || {
        (!world.received("fake", "notifications/cancelled").is_empty()).then_some(())
    });
    world.wait_gone("bun");
    // A document's reader may leave as well.
    let stream = send(&world, &json!({"code": "await new Promise(() => setInterval(() => {}, 1000))"}), "");
    wait_until("the program", || world.processes().iter().any(|p| p.mentions("bun")).then_some(()));
    drop(stream);
    world.wait_gone("bun");
}

#[test]
fn no_more_run_at_once_than_may() {
    let world = World::demo().with(Runtime::Bun).setting("exec", json!({"concurrency": 1}));
    world.mcpx(["refresh"]).any_stderr().run().says(&["NAMESPACE"]);
    let mut first = BufReader::new(send(
        &world,
        &json!({"code": "emit(1); await new Promise(r => setTimeout(r, 60000))", "output": "stream"}),
        "",
    ));
    let mut seen = String::new();
    while !seen.contains("\"stdout\"") {
        first.read_line(&mut seen).unwrap();
    }
    let (status, error) = exec(&world, json!({"code": "1"}));
    assert_eq!((status, &error["error"]["kind"]), (503, &json!("busy")), "{error}");
    drop(first);
    wait_until("a place", || (exec(&world, json!({"code": "1"})).0 == 200).then_some(()));
}

#[test]
fn a_run_cannot_give_itself_more_than_it_has() {
    let world = World::demo()
        .with(Runtime::Deno)
        .with(Runtime::Node22)
        .setting("script", json!({"profiles": {"few": {"tools": ["demo.echo"]}}}));
    // By its own token, in a sandbox.
    let code = "const r = await fetch(Deno.env.get('MCPX_ENDPOINT') + '/v1/exec', {method: 'POST', body: '{\"code\":\"1\"}', headers: {authorization: 'Bearer ' + Deno.env.get('MCPX_TRANSPORT_BEARER_TOKEN')}}); return [r.status, (await r.json()).error.kind]";
    world.mcpx(["exec", "--permissions", "strict", code]).stdout("[403,\"refused\"]\n").check();
    // By the daemon's own token, which a sandbox that reads everything can read.
    world.mcpx(["call", "demo.echo", "text=x"]).stdout("x\n").check();
    let info = world.state().join(format!("daemon-{}.json", world.infos()[0]["key"].as_str().unwrap()));
    let code = "const { endpoint, token } = JSON.parse(Deno.readTextFileSync('INFO')); const r = await fetch(endpoint + '/v1/exec', {method: 'POST', body: '{\"code\":\"1\"}', headers: {authorization: 'Bearer ' + token}}); return [r.status, (await r.json()).error.kind]";
    let code = code.replace("INFO", info.to_str().unwrap());
    world.mcpx(["exec", "--permissions", "readnet", &code]).stdout("[403,\"refused\"]\n").check();
    // By the socket, which node's older permission model leaves open.
    let code = "const http = process.getBuiltinModule('http'); return await new Promise((done, fail) => { const r = http.request({socketPath: process.env.MCPX_SOCKET, path: '/v1/exec', method: 'POST'}, (a) => { let t = ''; a.on('data', (c) => t += c); a.on('end', () => done([a.statusCode, JSON.parse(t).error?.kind ?? t])) }); r.on('error', fail); r.end('{\"code\":\"1\"}') })";
    let node = ["exec", "--runtime", "node", "--permissions"];
    world.mcpx(node.into_iter().chain(["readnet", code])).stdout("[403,\"refused\"]\n").check();
    world.mcpx(node.into_iter().chain(["few", code])).stdout("[403,\"refused\"]\n").check();
    // A program that the service itself runs is held to the same.
    for permissions in ["readnet", "few"] {
        let (_, document) =
            exec(&world, json!({"code": code, "runtime": "node", "permissions": permissions}));
        assert_eq!(document["result"], json!([403, "refused"]), "{permissions}: {document}");
    }
    let (_, document) = exec(&world, json!({"code": "demo.add({a: 1, b: 1})", "permissions": "few"}));
    assert_eq!(
        (&document["exitCode"], &document["error"]["kind"]),
        (&json!(77), &json!("refused")),
        "{document}"
    );
    // Without limits it may ask, as any program of the user.
    let (_, document) = exec(&world, json!({"code": code, "runtime": "node"}));
    assert_eq!(document["result"][0], 200, "{document}");
}

#[test]
fn a_script_runs_where_the_daemon_is() {
    let world =
        World::fake(&[]).with(Runtime::Bun).file("f.mjs", "export default (...a) => [a, process.cwd()]\n");
    let text = "console.log('told'); process.stderr.write('err\\n'); emit(1); log.warn('w'); return await fake.echo({text: 'x'})";
    let output = world.mcpx(["exec", "--remote", text]).stdout("1\nx\n").any_stderr().run();
    output.says(&["told\n", "err\n", "warn  w\n"]);
    world.mcpx(["exec", "--remote", "process.exit(7)"]).status(7).check();
    world.mcpx(["exec", "--remote", "\nthrow new Error('far')"]).status(1).stderr_has("at <exec>:2:").check();
    world
        .mcpx([
            "exec",
            "--exec-where",
            "daemon",
            "process.env.A + process.env.MCPX_EPHEMERAL",
            "--env",
            "A=b",
        ])
        .stdout("bundefined\n")
        .check();
    let answer = world.mcpx(["run", "--remote", "f", "--x", "y"]).run().json();
    assert_eq!(answer, json!([["--x", "y"], world.dir()]));
    world
        .mcpx([
            "exec",
            "--remote",
            "--stdin",
            "let n = ''; for await (const c of process.stdin) n += c; return n",
        ])
        .stdin("in")
        .stdout("in\n")
        .check();
    world
        .mcpx(["exec", "--remote", "--timeout", "300ms", "while (true) {}"])
        .status(124)
        .stderr_has("300ms")
        .check();
    let document = world.mcpx(["--json", "exec", "--remote", "return 5"]).run().json();
    assert_eq!((&document["result"], &document["exitCode"]), (&json!(5), &json!(0)));
    let output =
        world.mcpx(["exec", "--remote", "process.stdout.write(Buffer.from([255, 0, 10])); return"]).run();
    assert_eq!(output.stdout_bytes, [255, 0, 10], "bytes stay bytes");
    world.mcpx(["exec", "--remote", "--env", "x", "1"]).status(2).stderr_has("KEY=VALUE").check();
    let plan = world.mcpx(["exec", "--remote", "--dry-run", "--env", "S=secret", "1"]).run();
    assert!(plan.stdout().contains("\"daemon\"") && !plan.stdout().contains("secret"), "{plan}");
    // Ctrl-C ends what runs there.
    let running = world.mcpx(["exec", "--remote", "await fake.hang({})"]).any_stderr().start();
    wait_until("the call to arrive", || {
        (world.received("fake", "tools/call").iter().any(|c| c.to_string().contains("hang"))).then_some(())
    });
    running.signal(libc::SIGINT);
    let output = running.wait();
    assert_eq!(output.status, 130, "{output}");
    wait_until("the cancellation", || {
        (!world.received("fake", "notifications/cancelled").is_empty()).then_some(())
    });
    world.wait_gone("bun");
}

#[test]
fn what_a_program_logs_is_in_the_log_under_its_run() {
    let world = world();
    let code = "log.warn('told {n}', {n: 3, password: 'hidden'}); console.info('printed'); return process.env.MCPX_RUN";
    for output in ["structured", "text", "stream"] {
        let (status, _, text) =
            answer(send(&world, &json!({"code": code, "output": output, "session": output}), ""));
        assert_eq!(status, 200, "{text}");
        let records = wait_until("its records", || {
            let words = ["--json", "log", "--source", "script", "--session", output];
            let records = world.mcpx(words).run().json_lines();
            (records.len() == 2).then_some(records)
        });
        let run = records[0]["run"].as_str().unwrap();
        assert!(text.contains(run), "{output}: {text}");
        assert_eq!(
            (&records[0]["message"], &records[0]["level"]),
            (&json!("told 3"), &json!("warn")),
            "{records:?}"
        );
        assert_eq!((&records[1]["message"], &records[1]["event"]), (&json!("printed"), &json!("script.log")));
        assert!(!records[0].to_string().contains("hidden"), "{records:?}");
    }
}

#[test]
fn a_stream_tells_of_artifacts_as_they_are_kept() {
    let world = world();
    let code = "await artifact({name: 'a.txt', text: 'a'}); return 1";
    let (status, _, text) = answer(send(&world, &json!({"code": code, "output": "stream"}), ""));
    let frames: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let kinds: Vec<&str> = frames.iter().map(|f| f["t"].as_str().unwrap()).collect();
    // What the program prints comes through its pipe, and nothing orders the two.
    let orders = [["start", "artifact", "stdout", "end"], ["start", "stdout", "artifact", "end"]];
    assert!(status == 200 && orders.iter().any(|order| kinds == order), "{text}");
    let kept = &frames.iter().find(|frame| frame["t"] == "artifact").unwrap()["artifact"];
    assert_eq!((&kept["name"], &kept["run"]), (&json!("a.txt"), &frames[0]["run"]));
    // A plain run says nothing of it but what the program says.
    world.mcpx(["exec", code]).stdout("1\n").check();
    world.mcpx(["exec", "--remote", code]).stdout("1\n").check();
}
