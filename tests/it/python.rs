//! The client for Python, in a real Python: calls, errors, session.

use crate::harness::{World, tools};
use serde_json::json;

/// A world with Python on its path.
fn world() -> World {
    let world = World::demo();
    world.link("python3", &tools::python());
    world
}

#[test]
fn a_script_in_python_calls_tools() {
    let world = world().file(
        "a.py",
        r#"from mcpx import tools, args, emit, log
print(tools.demo.echo(text="hi ü→😀"), args)
print(tools["demo"]["add"]({"a": 1, "b": 2})["sum"])
print(tools.demo.add.raw(a=1, b=2)["structuredContent"])
print(tools.demo["get-weird.name"]({"note": "x"})["tool"], tools.demo.class_()["tool"])
emit({"a": [1, None]})
log.info("read {n} rows", n=3)
log.warn("lost {n} of {of}", {"n": 1}, of=4)
log.debug("hidden")
"#,
    );
    world
        .mcpx(["run", "a.py", "one", "two"])
        .stdout("hi ü→😀 ['one', 'two']\n3\n{'sum': 3}\nget-weird.name class\n{\"a\":[1,null]}\n")
        .stderr_has("info  read 3 rows\n")
        .stderr_has("warn  lost 1 of 4\n")
        .check();
}

#[test]
fn errors_have_a_kind_and_end_the_program_with_its_code() {
    let world = world().file(
        "e.py",
        r#"from mcpx import tools, ToolError
for call in (
    lambda: tools.demo.fail(message="on purpose"),
    lambda: tools.demo.add(a="x", b=1),
    lambda: tools.demo.nope(),
    lambda: tools.nowhere.echo(),
    lambda: tools.demo.echo(text=object()),
    lambda: tools.demo.echo("hi"),
    lambda: tools.demo.add(a=float("nan"), b=1),
):
    try:
        print(call())
    except ToolError as e:
        print(e.kind, e.server, e.tool, bool(e.raw))
"#,
    );
    world
        .mcpx(["run", "e.py"])
        .stdout("tool demo fail True\nusage demo add False\nnot-found demo nope False\nnot-found nowhere echo False\nusage demo echo False\nusage None None False\nusage demo add False\n")
        .check();
    let world = world.file(
        "u.py",
        "import atexit\natexit.register(print, 'at the end')\nfrom mcpx import tools\ntools.demo.nope()\n",
    );
    let code = world.mcpx(["call", "demo.nope"]).any_stderr().output().status;
    let output = world.mcpx(["run", "u.py"]).status(code).any_stderr().run();
    output.says(&["Traceback", "u.py", "demo.nope", "at the end"]);
    let document = world.mcpx(["--json", "run", "u.py"]).status(code).any_stderr().run().json();
    assert_eq!(
        (&document["ok"], &document["error"]["kind"]),
        (&json!(false), &json!("not-found")),
        "{document}"
    );
}

#[test]
fn the_client_is_standard_python_3_8() {
    let world = world();
    let _ = world.mcpx(["client", "--language", "python", "-o", "mcpx.py"]).any_stderr().run();
    let check = r#"
import ast, sys
tree = ast.parse(open("mcpx.py").read(), "mcpx.py", feature_version=(3, 8))
names = set()
for node in ast.walk(tree):
    if isinstance(node, ast.Import):
        names.update(alias.name.split(".")[0] for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "relative"
        names.add(node.module.split(".")[0])
    # Later than 3.8 though the grammar has it: `list[int]`, `a | b` of types outside annotations, str.removeprefix.
    elif isinstance(node, ast.Attribute):
        assert node.attr not in ("removeprefix", "removesuffix", "pairwise"), ast.dump(node)
later = {"tomllib", "zoneinfo", "graphlib"}
assert names and not later & names, names
foreign = names - set(sys.stdlib_module_names)
assert not foreign, foreign
try:
    ast.parse("match 1:\n  case 1: pass", feature_version=(3, 8))
except SyntaxError:
    print("checked", len(names) > 3)
"#;
    let output = std::process::Command::new(tools::python())
        .args(["-W", "error", "-c", check])
        .current_dir(world.dir())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "checked True\n", "{output:?}");
}

#[test]
fn the_session_and_the_grants_are_those_of_the_run() {
    let world = World::new()
        .server("fake", json!({"command": env!("CARGO_BIN_EXE_fake-mcp"), "mcpx": {"scope": "session"}}))
        .setting("script", json!({"profiles": {"p": {"tools": ["fake.count"]}}}))
        .file("s.py", "from mcpx import tools\nprint(tools.fake.count(), tools.fake.count())\nprint(tools.fake.echo(text='x'))\n");
    world.link("python3", &tools::python());
    world.mcpx(["run", "s.py"]).stdout("1 2\nx\n").check();
    world.mcpx(["run", "--session", "mine", "s.py"]).stdout("1 2\nx\n").check();
    world.mcpx(["run", "--session", "mine", "s.py"]).stdout("3 4\nx\n").check();
    world.mcpx(["run", "--permissions", "p", "s.py"]).status(77).stdout("1 2\n").any_stderr().check();
}

#[test]
fn threads_forks_and_the_endpoint_work_and_other_paths_stay() {
    let world = world().file("lib/other.py", "name = 'other'\n").file(
        "t.py",
        r#"import os, concurrent.futures, other, mcpx
assert os.path.samefile(os.environ["MCPX_CLIENT"], mcpx.__file__), mcpx.__file__
tools = mcpx.tools
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    print(sum(r["sum"] for r in pool.map(lambda n: tools.demo.add(a=n, b=1), range(50))), flush=True)
if os.fork() == 0:
    print("child", tools.demo.echo(text="c"), flush=True)
    os._exit(0)
os.wait()
print("parent", tools.demo.echo(text="p"), flush=True)
del os.environ["MCPX_SOCKET"]
mcpx._connections.kept = None
print("tcp", tools.demo.echo(text="t"), other.name)
"#,
    );
    world
        .mcpx(["run", "t.py"])
        .env("PYTHONPATH", world.dir().join("lib"))
        .stdout("1275\nchild c\nparent p\ntcp t other\n")
        .check();
}

#[test]
fn the_client_can_be_checked_in() {
    let world = world().file("use.py", "#!/usr/bin/env -S python3 -I\nimport os, sys\nsys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'lib'))\nimport client\nprint(client.tools.demo.echo(text='checked in'))\n");
    world
        .mcpx(["client", "--language", "python", "-o", "lib/client.py"])
        .stdout("wrote lib/client.py\n")
        .check();
    world.mcpx(["run", "use.py"]).stdout("checked in\n").check();
    world.mcpx(["client", "--language", "python", "-o", "lib/client.js"]).status(2).stderr_has(".py").check();
    world.mcpx(["client", "--language", "cobol"]).status(2).stderr_has("cobol").check();
}
