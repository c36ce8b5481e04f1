//! What a script and a server inherit of the environment, as real children see it.

use crate::harness::{Runtime, World};
use serde_json::json;

fn print_env(world: &World) -> String {
    let secret = [
        ("AWS_SECRET", "a"),
        ("GITHUB_TOKEN", "g"),
        ("LC_ALL", "C"),
        ("HTTPS_PROXY", "http://p"),
        ("NODE_EXTRA_CA_CERTS", "/ca"),
    ];
    let mut command = world.mcpx(["run", "env.sh"]);
    for (name, value) in secret {
        command = command.env(name, value);
    }
    command.any_stderr().run().stdout().to_owned()
}

#[test]
fn a_script_inherits_everything_unless_told_otherwise() {
    let world = World::demo().file("env.sh", "env\n");
    let all = print_env(&world);
    for name in ["AWS_SECRET=a", "GITHUB_TOKEN=g", "LC_ALL=C", "HTTPS_PROXY=", "MCPX_SESSION=", "PATH="] {
        assert!(all.contains(name), "{name}: {all}");
    }
    let world = World::demo()
        .file("env.sh", "env\n")
        .setting("script", json!({"inheritEnv": ["!AWS_*", "!*TOKEN*"]}));
    let some = print_env(&world);
    assert!(
        !some.contains("AWS_SECRET") && !some.contains("GITHUB_TOKEN") && some.contains("LC_ALL=C"),
        "{some}"
    );
    let world = World::demo().file("env.sh", "env\n").setting("script", json!({"inheritEnv": []}));
    let least = print_env(&world);
    assert!(!least.contains("AWS_SECRET") && !least.contains("LC_ALL"), "{least}");
    for name in ["PATH=", "HOME=", "HTTPS_PROXY=", "NODE_EXTRA_CA_CERTS=", "MCPX_SESSION=", "MCPX_SOCKET="] {
        assert!(least.contains(name), "{name}: {least}");
    }
}

#[test]
fn the_client_works_with_the_least_environment() {
    for runtime in [Runtime::Deno, Runtime::Bun, Runtime::Node26] {
        let world = World::demo().with(runtime).setting("script", json!({"inheritEnv": []}));
        world
            .mcpx(["exec", "[process.env.SECRET ?? 'none', await demo.echo({text: 'works'})]"])
            .env("SECRET", "x")
            .stdout("[\"none\",\"works\"]\n")
            .check();
    }
}

#[test]
fn a_server_inherits_what_its_block_says() {
    let print = |inherit: serde_json::Value| {
        let world = World::new().env("AWS_SECRET", "a").env("LC_ALL", "C").server(
            "s",
            json!({"command": "sh", "args": ["-c", "env >&2"], "env": {"OWN": "1"}, "mcpx": inherit}),
        );
        world.mcpx(["call", "s.x"]).status(69).any_stderr().run().stderr
    };
    let all = print(json!({}));
    assert!(all.contains("AWS_SECRET=a") && all.contains("OWN=1"), "{all}");
    let least = print(json!({"inheritEnv": ["!AWS_*"]}));
    assert!(
        !least.contains("AWS_SECRET") && least.contains("OWN=1") && least.contains("LC_ALL=C"),
        "{least}"
    );
}
