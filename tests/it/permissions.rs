//! `mcpx permissions`, and the tools that a profile grants.

use crate::harness::{Runtime, World};
use serde_json::{Value, json};

/// A world whose profile `one` grants `demo.echo` and what begins with `ad`.
fn world() -> World {
    World::demo().setting(
        "script",
        json!({"profiles": {
            "one": {"description": "to say things", "tools": ["demo.echo", "demo.ad*"]},
            "two": {"tools": ["demo.counter"], "deno": ["--allow-net", "--allow-env"]},
            "nothing": {"tools": []},
        }}),
    )
}

const RUNTIMES: [Runtime; 4] = [Runtime::Deno, Runtime::Bun, Runtime::Node22, Runtime::Node26];

#[test]
fn the_flags_of_each_runtime_are_shown_with_what_they_come_to() {
    let world = World::demo().with(Runtime::Deno).with(Runtime::Node22).with(Runtime::Bun);
    let text = world.mcpx(["permissions"]).run();
    text.says(&["all", "strict", "--allow-net=127.0.0.1", "--permission --allow-fs-read=*", "refused"]);
    let of = |args: &[&str]| {
        let all = ["--json", "permissions"].iter().chain(args);
        world.mcpx(all.copied()).run().json()["permissions"][0].clone()
    };
    let readnet = of(&["readnet"]);
    let row = |shown: &Value, name: &str| {
        let rows = shown["runtimes"].as_array().unwrap();
        rows.iter().find(|r| r["runtime"] == name).unwrap().clone()
    };
    let node = row(&readnet, "node");
    assert_eq!(
        node["flags"],
        json!(["--permission", "--allow-fs-read=*"]),
        "as this version spells it: {node}"
    );
    assert_eq!((&node["may"]["write files"], &node["may"]["read files"]), (&json!("no"), &json!("yes")));
    assert_eq!(node["notLimited"], json!(["network", "environment"]));
    let bun = row(&readnet, "bun");
    assert!(bun["refused"]["message"].as_str().unwrap().contains("readnet"), "{bun}");
    let both = of(&["read", "strict", "--runtime", "deno"]);
    assert_eq!(both["runtimes"].as_array().unwrap().len(), 1);
    assert_eq!(both["runtimes"][0]["flags"], json!(["--allow-read", "--allow-env", "--allow-net=127.0.0.1"]));
    assert_eq!(both["runtimes"][0]["may"]["network"], "only 127.0.0.1");
}

#[test]
fn what_no_runtime_asked_for_can_enforce_ends_with_77() {
    let world = World::demo().with(Runtime::Bun);
    let output = world.mcpx(["permissions", "strict", "--runtime", "bun"]).status(77).run();
    output.says(&["refused", "script.profiles.strict.bun"]);
    // All that is wrong is told at once.
    let output = world.mcpx(["permissions", "redanet", "sctrict"]).status(2).any_stderr().run();
    output.says(&["redanet", "readnet", "sctrict", "strict"]);
}

#[test]
fn explain_says_why_each_runtime_was_passed_over() {
    let world = World::demo().with(Runtime::Node26).with(Runtime::Bun);
    let output = world.mcpx(["permissions", "readnet", "--explain"]).run();
    output.says(&["auto takes node", "not deno: not on PATH", "not bun: bun cannot enforce"]);
    world
        .mcpx(["exec", "--permissions", "readnet", "--explain", "1"])
        .stdout("1\n")
        .stderr_has("not bun")
        .check();
    let output = world.mcpx(["permissions", "strict", "--explain"]).status(0).any_stderr().run();
    output.says(&["auto takes none"]);
}

#[test]
fn grants_are_enforced_on_every_runtime() {
    for runtime in RUNTIMES {
        let world = world().with(runtime);
        let code = r#"
            const out = [await demo.echo({text: "hi"}), (await demo.add({a: 1, b: 2})).sum];
            for (const call of [() => demo.counter({}), () => demo.fail({message: "x"}), () => tools.demo["get-weird.name"]({})]) {
                try { await call(); out.push("called"); } catch (e) { out.push(e.kind); }
            }
            return out;
        "#;
        let output = world.mcpx(["exec", "--permissions", "one", code]).run().json();
        assert_eq!(output, json!(["hi", 3, "refused", "refused", "refused"]), "{runtime:?}");
        let output =
            world.mcpx(["exec", "--permissions", "one", "demo.counter()"]).status(77).any_stderr().run();
        output.says(&["demo.counter", "one", "demo.echo", "script.profiles.one.tools"]);
        // The counter was never reached, and the daemon's other users are not concerned.
        world.mcpx(["call", "demo.counter"]).stdout("1\n").check();
        world
            .mcpx(["exec", "--permissions", "nothing", "demo.echo({text: 'x'})"])
            .status(77)
            .any_stderr()
            .check();
    }
}

#[test]
fn grants_of_several_profiles_add_up() {
    let world = world().with(Runtime::Deno);
    let code = "return [(await demo.add({a: 1, b: 2})).sum, await demo.counter({})]";
    world.mcpx(["exec", "--permissions", "one,two", code]).stdout("[3,\"1\"]\n").check();
    // A profile that says nothing about tools takes nothing away.
    world.mcpx(["exec", "--permissions", "read,two", "demo.counter()"]).stdout("2\n").check();
    world
        .mcpx(["exec", "--permissions", "read,two", "demo.add({a: 1, b: 2})"])
        .status(77)
        .any_stderr()
        .check();
    let shown = world.mcpx(["--json", "permissions", "one", "two"]).run().json();
    assert_eq!(shown["permissions"][0]["tools"][2], json!({"tool": "demo.counter", "profile": "two"}));
}

#[test]
fn a_shell_script_is_held_to_the_grants_too() {
    let world = world().file(
        "t.sh",
        "#!/bin/sh\nmcpx call demo.echo text=hi\nmcpx call demo.counter; echo $?\nenv -u MCPX_RUN -u MCPX_SESSION mcpx call demo.counter; echo $?\nenv -i PATH=\"$PATH\" HOME=\"$HOME\" mcpx stop; echo $?\n",
    );
    world.link("mcpx", env!("CARGO_BIN_EXE_mcpx").as_ref());
    world
        .mcpx(["run", "--permissions", "one", "t.sh"])
        .stdout("hi\n77\n77\n77\n")
        .stderr_has("demo.counter")
        .check();
}

/// Tries every way to another tool than those granted, over the socket and over TCP.
const BREAK_OUT: &str = r#"
const { default: http } = await import("node:http");
const { MCPX_SOCKET, MCPX_ENDPOINT, MCPX_TRANSPORT_BEARER_TOKEN: token, MCPX_RUN } = process.env;
const ask = (where, method, path, body, extra) => new Promise((resolve) => {
    const headers = { "content-type": "application/json", ...extra };
    const options = where === "tcp"
        ? { host: "127.0.0.1", port: new URL(MCPX_ENDPOINT).port, headers: { ...headers, authorization: `Bearer ${token}` } }
        : { socketPath: MCPX_SOCKET, headers: { ...headers, host: "mcpx" } };
    const request = http.request({ ...options, method, path }, (response) => {
        let text = "";
        response.on("data", (part) => (text += part));
        response.on("end", () => { try { resolve([response.statusCode, JSON.parse(text)]) } catch { resolve([response.statusCode, text]) } });
    });
    request.on("error", (e) => resolve([0, e.code]));
    request.end(body && JSON.stringify(body));
});
const call = (tool, context) => ({ server: "demo", tool, arguments: { text: "x" }, context });
const seen = {};
for (const where of WAYS) {
    const note = async (what, ...request) => { const [status, body] = await ask(where, ...request); seen[`${where} ${what}`] = [status, body?.error?.kind ?? "ok"]; return body };
    await note("granted", "POST", "/v1/call", call("echo", {}));
    await note("plain", "POST", "/v1/call", call("counter", {}));
    await note("by identifier", "POST", "/v1/call", { ...call("Counter", {}), server: "Demo" });
    await note("as this run", "POST", "/v1/call", call("counter", { run: MCPX_RUN }));
    await note("as another", "POST", "/v1/call", call("counter", { session: "other", run: "none", pid: 1 }));
    await note("setting", "PUT", "/v1/settings/script.permissions", { value: "all" });
    await note("shutdown", "POST", "/v1/shutdown");
    if (where === "tcp" && DAEMONS) seen["tcp by the daemon's token"] = (await ask("tcp", "POST", "/v1/call", call("counter", {}), { authorization: `Bearer ${DAEMONS}` }))[1]?.error?.kind;
    const run = await note("a new run", "POST", "/v1/runs", { context: {}, tools: [{ tool: "*", profile: "x" }] });
    if (run?.token) seen[`${where} by its token`] = (await ask("tcp", "POST", "/v1/call", call("counter", {}), { authorization: `Bearer ${run.token}` }))[1]?.error?.kind;
    if (run?.run) await note("as the new run", "POST", "/v1/call", call("counter", { run: run.run, session: run.session }));
    await note("schemas", "GET", "/v1/schemas?server=demo");
}
return seen;
"#;

#[test]
fn no_other_way_to_the_daemon_leads_around_the_grants() {
    for (runtime, profile, ways) in [
        (Runtime::Bun, "one", json!(["unix", "tcp"])),
        (Runtime::Node22, "one", json!(["unix", "tcp"])),
        // A sandbox with the network, which reaches the endpoint but not the socket.
        (Runtime::Deno, "one,strict", json!(["tcp"])),
    ] {
        let world = world().with(runtime);
        world.mcpx(["call", "demo.echo", "text=x"]).stdout("x\n").check();
        // It is in a file that a program without a sandbox can read.
        let token = world.infos()[0]["token"].clone();
        let code = BREAK_OUT.replace("WAYS", &ways.to_string()).replace("DAEMONS", &token.to_string());
        let seen = world.mcpx(["exec", "--permissions", profile, &code]).run().json();
        for (what, outcome) in seen.as_object().unwrap() {
            let fine = match what.split_once(' ').unwrap().1 {
                "granted" | "schemas" => outcome[0] == 200 && outcome[1] == "ok",
                // A run inside the run, which is held to the same: below.
                "a new run" => outcome[0] == 200,
                "by its token" | "by the daemon's token" => outcome == "refused",
                "setting" | "shutdown" => outcome[1] == "refused",
                "by identifier" => outcome[1] == "refused" || outcome[1] == "not-found",
                _ => outcome == &json!([403, "refused"]),
            };
            assert!(fine, "{runtime:?}: {what}: {outcome}");
        }
        world.mcpx(["call", "demo.counter"]).stdout("1\n").check();
    }
}

#[test]
fn a_runs_token_permits_no_more_than_its_channel_and_ends_with_it() {
    let world = World::demo().with(Runtime::Deno);
    let code = r#"
        const { MCPX_ENDPOINT, MCPX_TRANSPORT_BEARER_TOKEN: token } = process.env;
        const ask = async (method, path, body) => (await fetch(MCPX_ENDPOINT + path, { method, body: body && JSON.stringify(body), headers: { authorization: `Bearer ${token}` } })).status;
        const run = async () => {
            const options = { method: "POST", body: "{}", headers: { authorization: `Bearer ${token}` } };
            return (await (await fetch(MCPX_ENDPOINT + "/v1/runs", options)).json()).token;
        };
        return [token, MCPX_ENDPOINT, await ask("POST", "/v1/call", { server: "demo", tool: "counter" }), await ask("POST", "/v1/shutdown"), await run(), await ask("PUT", "/v1/settings/pool.max", { value: 1 }), await ask("GET", "/v1/health")];
    "#;
    let seen = world.mcpx(["exec", "--permissions", "net", code]).run().json();
    let inner = seen[4].as_str().expect("a run inside the run").to_owned();
    let statuses = [&seen[2], &seen[3], &seen[5], &seen[6]].map(|s| s.as_u64().unwrap());
    assert_eq!(statuses, [200, 403, 403, 200]);
    let info = &world.infos()[0];
    assert_ne!(seen[0], info["token"], "a script is not told the daemon's own token");
    let endpoint = info["endpoint"].as_str().unwrap().trim_start_matches("http://");
    let status = |token: &str| {
        use std::io::{Read, Write};
        let mut stream = std::net::TcpStream::connect(endpoint).unwrap();
        write!(stream, "GET /v1/health HTTP/1.1\r\nHost: {endpoint}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!(status(info["token"].as_str().unwrap()), "200");
    assert_eq!(status(seen[0].as_str().unwrap()), "401", "its run has ended");
    assert_eq!(status(&inner), "401", "and so has the one that it opened");
}
