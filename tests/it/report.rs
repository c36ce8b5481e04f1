//! The report on a script that CI systems read: read here by a parser that is not ours.

use crate::harness::{Runtime, World, tools};
use serde_json::{Value, json};
use std::process::Command;

/// The report as its parts.
fn read(world: &World) -> Value {
    let program = "import json, sys, xml.etree.ElementTree as E\n\
        s = E.parse(sys.argv[1]).getroot().find('testsuite'); c = s.find('testcase')\n\
        print(json.dumps([s.attrib, c.attrib, [[e.tag, e.attrib, e.text or ''] for e in c]]))";
    let path = world.dir().join("report.xml");
    let output = Command::new(tools::python()).args(["-c", program]).arg(&path).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no report: {said}"));
    std::fs::remove_file(path).unwrap();
    value
}

fn part<'a>(report: &'a Value, tag: &str) -> &'a Value {
    report[2].as_array().unwrap().iter().find(|p| p[0] == tag).unwrap_or(&Value::Null)
}

#[test]
fn a_report_says_how_a_script_ended_and_everything_passes_through() {
    let world = World::demo().with(Runtime::Node26);
    world.write(
        "ok.mjs",
        "process.stdout.write('a <b> & \\u0007\\n'); log.info('noted'); await demo.echo({text: 'x'})",
    );
    world.write("bad.mjs", "console.log('before'); throw new Error('it <broke>')");
    world.write("code.sh", "#!/bin/sh\necho half\necho why >&2\nexit 7\n");
    let run = |script: &str, code: i32| {
        let words = ["run", "--report", "report.xml", script];
        world.mcpx(words).status(code).any_stderr().run()
    };
    let output = run("ok.mjs", 0);
    assert_eq!(output.stdout(), "a <b> & \u{7}\n");
    output.says(&["noted"]);
    let report = read(&world);
    assert_eq!(
        (&report[0]["tests"], &report[0]["failures"], &report[0]["errors"]),
        (&json!("1"), &json!("0"), &json!("0"))
    );
    assert_eq!(report[1]["name"], "ok.mjs");
    assert!(report[1]["time"].as_str().unwrap().parse::<f64>().unwrap() > 0.0);
    assert_eq!(part(&report, "system-out")[2], "a <b> & \u{fffd}\n");
    assert!(part(&report, "system-err")[2].as_str().unwrap().contains("noted"), "{report}");
    assert!(part(&report, "failure").is_null() && part(&report, "error").is_null());

    let output = run("bad.mjs", 1);
    output.says(&["it <broke>"]);
    let report = read(&world);
    assert_eq!((&report[0]["failures"], &report[0]["errors"]), (&json!("1"), &json!("0")));
    assert!(part(&report, "failure")[2].as_str().unwrap().contains("it <broke>"), "{report}");

    let _ = run("code.sh", 7);
    let report = read(&world);
    assert!(part(&report, "failure")[1]["message"].as_str().unwrap().contains('7'), "{report}");
    assert_eq!(
        (&part(&report, "system-out")[2], &part(&report, "system-err")[2]),
        (&json!("half\n"), &json!("why\n"))
    );

    // What mcpx ended, or could not begin, is an error and no failure.
    world.write("long.sh", "#!/bin/sh\nexec sleep 600\n");
    let _ = world
        .mcpx(["run", "--report", "report.xml", "--timeout", "100ms", "long.sh"])
        .status(124)
        .any_stderr()
        .run();
    assert_eq!(part(&read(&world), "error")[1]["type"], "timeout");
    let _ = run("absent.mjs", 127);
    assert_eq!(read(&world)[0]["errors"], "1");
    // Collected into a document, it is reported all the same.
    let _ = world.mcpx(["--json", "run", "--report", "report.xml", "bad.mjs"]).status(1).any_stderr().run();
    assert!(part(&read(&world), "failure")[1]["message"].as_str().unwrap().contains("it <broke>"));
}

#[test]
fn a_report_that_cannot_be_written_is_said_before_the_script_runs() {
    let world = World::new().with(Runtime::Node26);
    world.write("s.sh", "#!/bin/sh\necho > ran\nexit 3\n");
    for wrong in ["s.sh/report.xml", "."] {
        world.mcpx(["run", "--report", wrong, "s.sh"]).status(74).stderr_has("writing the --report ").check();
        assert!(!world.dir().join("ran").exists(), "{wrong}");
    }
    // A directory that is not there yet is made.
    world.mcpx(["run", "--report", "new/deep/report.xml", "s.sh"]).status(3).check();
    assert!(world.dir().join("ran").exists() && world.dir().join("new/deep/report.xml").exists());
    world.mcpx(["exec", "--remote", "--report", "r.xml", "1"]).status(2).stderr_has("--report").check();
}
