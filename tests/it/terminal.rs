//! What a person at a terminal sees and types: progress while a call works, and
//! the questions of servers.

use crate::harness::{Runtime, Terminal, World, wait_until};
use serde_json::json;

/// The arguments of the fake server's tool that asks for two seats.
fn seats() -> String {
    let schema = json!({"type": "object", "required": ["seats"], "properties": {
        "seats": {"type": "integer", "minimum": 1}, "class": {"type": "string", "enum": ["first", "second"]}}});
    json!({"method": "elicitation/create", "params": {"message": "Which seats?", "requestedSchema": schema}})
        .to_string()
}

#[test]
fn progress_is_shown_while_a_call_works_and_gone_after() {
    let world = World::demo();
    // Ready, so that nothing else is waited for.
    world.mcpx(["call", "demo.echo", "text=x"]).stdout("x\n").check();
    let words = ["call", "demo.slow", "seconds=0.6", "steps=3"];
    let terminal = Terminal::start(&world, &words);
    terminal.wait_for("calling demo.slow: 33 % (1 of 3)");
    let (status, stdout, shown) = terminal.finish();
    assert_eq!(status, 0, "{shown}");
    let plain = world.mcpx(words).run();
    assert_eq!(stdout, plain.stdout(), "the result is the same");
    assert!(shown.ends_with("\r\u{1b}[K"), "the line is wiped: {shown:?}");
    assert!(!shown.contains('\n') && !shown.contains("\u{1b}[3"), "one line, no colour: {shown:?}");
    let quiet = Terminal::start(&world, &["call", "--quiet", "demo.slow", "seconds=0.1", "steps=3"]);
    assert_eq!(quiet.finish().2, "");
}

#[test]
fn progress_changes_neither_errors_nor_questions_nor_large_results() {
    let world = World::fake(&[]);
    let steps = Terminal::start(&world, &["call", "fake.progress", "steps=3"]);
    let (status, stdout, shown) = steps.finish();
    // Its tool answers with the token that it was given to report with.
    let token = stdout.strip_prefix("token ").and_then(|n| n.trim().parse::<u64>().ok());
    assert!(status == 0 && token.is_some(), "{stdout}{shown}");
    world.mcpx(["call", "fake.progress", "steps=3"]).stdout("token null\n").check();
    let asks = Terminal::start(&world, &["call", "fake.ask", &seats()]);
    let (status, _, shown) = asks.finish();
    assert!(status == 75 && shown.contains("mcpx task result"), "{status} {shown}");
}

#[test]
fn a_program_waits_while_a_person_answers() {
    for runtime in [Runtime::Deno, Runtime::Bun, Runtime::Node26] {
        let world = World::fake(&[]).and_fake("other", &["--era", "stateless"]).with(runtime);
        let code = format!(
            "const asked = {}; const a = await fake.ask(asked); emit('between'); const b = await other.ask(asked); return [a, b]",
            seats()
        );
        let mut terminal = Terminal::start(&world, &["exec", "--interactive", &code]);
        terminal.wait_for("seats (integer");
        terminal.line("none");
        terminal.line("2");
        terminal.wait_for("class (first");
        terminal.line("first");
        terminal.line("y");
        terminal.wait_for_output("between");
        terminal.line("3");
        terminal.line("");
        terminal.line("n");
        let (status, stdout, shown) = terminal.finish();
        assert_eq!(status, 0, "{stdout}{shown}");
        let told = stdout.replace('\\', "").replace(char::is_whitespace, "");
        assert!(told.contains(r#""action":"accept","content":{"seats":2,"class":"first"}"#), "{stdout}");
        assert!(told.contains(r#"{"action":"decline"}"#), "{stdout}");
        assert!(shown.matches("Which seats?").count() >= 2, "{shown}");
        world.mcpx(["elicit"]).any_stderr().stdout("").check();
    }
}

#[test]
fn a_program_that_ends_takes_its_questions_along() {
    let world = World::fake(&[]).with(Runtime::Deno);
    let code = format!(
        "setInterval(() => {{ try {{ Deno.statSync('go'); Deno.exit(0) }} catch {{}} }}, 20); await fake.ask({})",
        seats()
    );
    let terminal = Terminal::start(&world, &["exec", "--interactive", &code]);
    terminal.wait_for("seats (integer");
    let world = world.file("go", "");
    let (status, _, shown) = terminal.finish();
    assert_eq!(status, 0, "{shown}");
    wait_until("the question to be gone", || {
        let open = world.mcpx(["--json", "elicit"]).run().json();
        open["questions"].as_array()?.is_empty().then_some(())
    });
}

#[test]
fn asking_needs_a_terminal_and_a_script_that_runs_here() {
    let world = World::fake(&[]).with(Runtime::Deno);
    world.mcpx(["exec", "--interactive", "1"]).status(2).stderr_has("needs a terminal").check();
    let (status, _, shown) = Terminal::start(&world, &["exec", "--interactive", "--remote", "1"]).finish();
    assert!(status == 2 && shown.contains("where the daemon is"), "{status} {shown}");
}
