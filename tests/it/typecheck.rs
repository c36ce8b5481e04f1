//! `--typecheck`: the checkers that there may be, and what they say.

use crate::harness::{Runtime, World, tools};

#[test]
fn deno_checks_code_and_files_against_the_servers_types() {
    let world = World::demo()
        .with(Runtime::Deno)
        .file("good.ts", "export default async (): Promise<number> => (await demo.add({ a: 1, b: 2 })).sum\n")
        .file(
            "bad.ts",
            "const n: number = 1;\nexport default async () => {\n  const s: string = n;\n  return s;\n}\n",
        );
    world.mcpx(["exec", "--typecheck", "return (await demo.add({a: 1, b: 2})).sum"]).stdout("3\n").check();
    world.mcpx(["run", "--typecheck", "good.ts"]).stdout("3\n").check();
    let output = world
        .mcpx(["exec", "--typecheck", "emit('ran');\nawait demo.add({a: 'x', b: 2})"])
        .status(1)
        .stdout("")
        .any_stderr()
        .run();
    output.says(&["types do not fit", "<exec>:2:"]);
    let output = world.mcpx(["run", "--typecheck", "bad.ts"]).status(1).stdout("").any_stderr().run();
    output.says(&["TS2322", "bad.ts:3:"]);
}

#[test]
fn tsc_of_the_project_checks_and_nobody_is_said_to() {
    let world = World::demo().with(Runtime::Bun);
    let output = world.mcpx(["exec", "--typecheck", "return 1"]).stdout("1\n").any_stderr().run();
    output.says(&["no checker", "bun and node"]);
    world.link("node", &Runtime::Node26.path());
    let tsc = tools::installed("node_modules/typescript/bin/tsc");
    let text = format!("#!/bin/sh\nexec node {} \"$@\"\n", tsc.display());
    world.write("node_modules/.bin/tsc", &text);
    use std::os::unix::fs::PermissionsExt;
    let path = world.dir().join("node_modules/.bin/tsc");
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    world.mcpx(["exec", "--typecheck", "return (await demo.add({a: 1, b: 2})).sum"]).stdout("3\n").check();
    let output = world
        .mcpx(["exec", "--typecheck", "const n: number = 'x'; return n"])
        .status(1)
        .stdout("")
        .any_stderr()
        .run();
    output.says(&["<exec>(1,7)", "TS2322"]);
    world.write("s.sh", "echo x\n");
    world.mcpx(["run", "--typecheck", "s.sh"]).stdout("x\n").stderr_has("sh").check();
}
