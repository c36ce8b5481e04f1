//! Every permission profile on every runtime: the client works under it, and
//! what it denies is denied.

use super::*;
use serde_json::json;

/// Tries to break out, and returns what succeeded.
const ATTEMPTS: &str = r#"
const done = [];
const attempt = async (what, f) => { try { await f(); done.push(what); } catch {} };
if (globalThis.Deno) {
  await attempt("read", () => Deno.readTextFile("/etc/hostname"));
  await attempt("write", () => Deno.writeTextFile(args[0], "x"));
  await attempt("spawn", () => new Deno.Command("/bin/true").output());
  await attempt("loopback", () => Deno.connect({hostname: "127.0.0.1", port: Number(args[1])}).then(c => c.close()));
} else {
  const fs = await import("node:fs/promises");
  await attempt("read", () => fs.readFile("/etc/hostname"));
  await attempt("write", () => fs.writeFile(args[0], "x"));
  await attempt("spawn", async () => (await import("node:child_process")).execFileSync("/bin/true"));
  await attempt("worker", async () => new (await import("node:worker_threads")).Worker("1", {eval: true}));
  const net = await import("node:net");
  await attempt("loopback", () => new Promise((ok, no) => { const s = net.connect(Number(args[1]), "127.0.0.1", () => { s.destroy(); ok() }); s.on("error", no) }));
}
return [await demo.echo({text: "the client works"}), done];
"#;

#[test]
fn each_profile_denies_what_it_says_and_the_client_works() {
    let stage = Stage::new("profiles");
    let port = stage.peer.endpoint.rsplit(':').next().unwrap().to_owned();
    let port: &'static str = port.leak();
    let everything: &[&str] = &["read", "write", "spawn", "loopback"];
    let deno: &[(&str, &[&str])] = &[
        ("all", everything),
        ("net", &["loopback"]),
        ("read", &["read"]),
        ("readnet", &["read", "loopback"]),
        ("strict", &["loopback"]),
    ];
    let node: &[(&str, &[&str])] =
        &[("all", &["read", "write", "spawn", "worker", "loopback"]), ("readnet", &["read", "loopback"])];
    for js in runtimes() {
        for profile in ["all", "net", "read", "readnet", "strict"] {
            let table = if js.is_deno() { deno } else { node };
            let expected =
                table.iter().find(|(p, _)| *p == profile && (!js.is_bun() || *p == "all")).map(|(_, e)| *e);
            let target = stage.work().join("written").to_string_lossy().into_owned();
            let options = Options {
                args: vec![target.leak(), port],
                settings: vec![("script.permissions", profile)],
                ..Options::default()
            };
            for http_only in [false, true] {
                let options =
                    Options { http_only, args: options.args.clone(), settings: options.settings.clone() };
                let outcome = stage.run(&js, Source::Inline(ATTEMPTS.into()), &options);
                let Some(expected) = expected else {
                    assert_eq!(outcome.unwrap_err().exit_code(), 77, "{js:?} {profile}");
                    continue;
                };
                let (_, document) = outcome.unwrap();
                if http_only && profile == "read" {
                    // Without a descriptor nothing but the network is left, and the profile denies that.
                    assert_eq!(document["exitCode"], 77, "{document:#}");
                    assert!(document["stderr"].as_str().unwrap().contains("--allow-net="), "{document:#}");
                    continue;
                }
                assert_eq!(
                    document["result"],
                    json!(["the client works", expected]),
                    "{js:?} {profile} http {http_only}: {document:#}"
                );
            }
        }
    }
}
