//! Completion and the manual page: what mcpx answers to the shells' scripts, and the scripts in the
//! shells themselves. Nothing that completes may start a daemon or a server.

use crate::harness::{Runtime, World, tools};
use serde_json::json;
use std::path::Path;
use std::process::{Command, Stdio};

/// A world whose schema cache is warm, and in which nothing runs any more.
fn warm() -> World {
    let world = World::demo().server("other", json!({"command": "/nowhere"}));
    world.link("mcpx", Path::new(env!("CARGO_BIN_EXE_mcpx")));
    let _ = world.mcpx(["tools", "demo"]).run();
    let _ = world.mcpx(["stop", "--all"]).run();
    world
}

/// Runs a shell in the world's directory; `None`, said aloud, where there is no such shell.
fn shell(world: &World, name: &str, args: &[&str]) -> Option<String> {
    let Some(program) = tools::on_path(name) else {
        eprintln!("skipped: there is no {name} on this machine");
        return None;
    };
    // zsh starts another one of itself.
    world.link(name, &program);
    let output = Command::new(program)
        .args(args)
        .env_clear()
        .envs(world.environment())
        .env("TERM", "dumb")
        .current_dir(world.dir())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} {args:?}: {said}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn words(world: &World, line: &[&str]) -> Vec<String> {
    let output = world.mcpx(["complete", "fish"].iter().chain(line).copied()).run();
    output.stdout().lines().map(|l| l.split('\t').next().unwrap().to_owned()).collect()
}

#[test]
fn names_of_tools_and_their_arguments_come_from_the_cache_and_nothing_is_started() {
    let world = warm();
    assert_eq!(words(&world, &["call", "demo.ec"]), ["demo.echo"]);
    // The only namespace that is left gives its tools at once.
    assert!(words(&world, &["call", "de"]).contains(&"demo.echo".to_owned()));
    assert_eq!(words(&world, &["call", "o"]), ["other."], "whose cache is cold");
    assert_eq!(words(&world, &["call", "demo.add", ""]), ["a=", "b="]);
    assert_eq!(words(&world, &["call", "demo.add", "a=1", ""]), ["b="]);
    assert_eq!(words(&world, &["tools", "demo", ""]), ["other"]);
    assert_eq!(words(&world, &["log", "--tool", "demo.ec"]), ["demo.echo"]);
    assert_eq!(words(&world, &["stats", "--tool=demo.ec"]), ["--tool=demo.echo"]);
    let described = world.mcpx(["complete", "fish", "call", "demo.ec"]).run();
    assert!(described.stdout().starts_with("demo.echo\t") && described.stdout().len() > 20, "{described}");
    assert!(world.processes().is_empty(), "completing starts nothing: {:?}", world.processes());
    // A configuration that cannot be read still leaves commands and flags.
    world.write(".mcpx.json", "{ oops");
    assert_eq!(words(&world, &["sea"]), ["search"]);
    assert!(words(&world, &["call", ""]).is_empty());
}

#[test]
fn bash_completes() {
    let world = warm();
    let complete = |line: &str| {
        // As bash calls it: the words broken at COMP_WORDBREAKS, and the line with the cursor.
        let script = format!(
            r#"source <(mcpx completions bash)
               complete -p mcpx >/dev/null || exit 9
               compopt() {{ :; }}
               COMP_LINE={line:?} COMP_POINT=${{#COMP_LINE}}
               read -ra COMP_WORDS <<<"${{COMP_LINE//[=:]/ & }}"
               [[ $COMP_LINE == *[\ =] ]] && COMP_WORDS+=("")
               COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
               _mcpx
               printf '%s\n' "${{COMPREPLY[@]}}""#
        );
        let said = shell(&world, "bash", &["--norc", "--noprofile", "-c", &script])?;
        Some(said.lines().filter(|l| !l.is_empty()).map(str::to_owned).collect::<Vec<_>>())
    };
    let Some(found) = complete("mcpx sea") else { return };
    assert_eq!(found, ["search"]);
    assert_eq!(complete("mcpx call demo.ec").unwrap(), ["demo.echo"]);
    assert_eq!(complete("mcpx ls --color=ne").unwrap(), ["never"], "bash replaces what is behind the =");
    assert_eq!(complete("mcpx settings get pool.callT").unwrap(), ["pool.callTimeout"]);
    world.write("arguments.txt", "x");
    assert_eq!(complete("mcpx --config arg").unwrap(), ["arguments.txt"]);
    assert!(world.processes().is_empty());
}

#[test]
fn fish_completes() {
    let world = warm();
    let complete = |line: &str| {
        let script = format!("mcpx completions fish | source; complete -C {line:?}");
        let said = shell(&world, "fish", &["--no-config", "-c", &script])?;
        Some(said.lines().map(|l| l.split('\t').next().unwrap().to_owned()).collect::<Vec<_>>())
    };
    let Some(found) = complete("mcpx sea") else { return };
    assert_eq!(found, ["search"]);
    assert_eq!(complete("mcpx call demo.ec").unwrap(), ["demo.echo"]);
    assert_eq!(complete("mcpx ls --color=ne").unwrap(), ["--color=never"]);
    assert!(complete("mcpx call --").unwrap().contains(&"--raw".to_owned()));
    world.write("arguments.txt", "x");
    assert_eq!(complete("mcpx --config arg").unwrap(), ["arguments.txt"]);
}

#[test]
fn zsh_completes() {
    let world = warm();
    // A real line editor on a terminal of zsh's own making; the widget's result is the line itself.
    let complete = |line: &str| {
        let script = format!(
            r#"zmodload zsh/zpty || exit 0
               zpty z zsh -f -i
               zpty -w z 'PS1= PS2= RPS1=; unsetopt zle_bracketed_paste 2>/dev/null; autoload -Uz compinit; compinit -D -u; source <(mcpx completions zsh); show() {{ print -r -- "<<$BUFFER>>"; zle kill-whole-line }}; zle -N show; bindkey "^X" show; print REA""DY'
               zpty -r z out '*READY*' || exit 1
               zpty -w -n z $'{line}\t\x18'
               zpty -r z out '*<<*>>*' || exit 1
               print -r -- "$out"
               zpty -d z"#
        );
        let said = shell(&world, "zsh", &["-f", "-c", &script])?;
        let (_, after) = said.rsplit_once("<<").unwrap_or_else(|| panic!("{line}: {said}"));
        Some(after.split(">>").next().unwrap().trim_end().to_owned())
    };
    let Some(found) = complete("mcpx sea") else { return };
    assert_eq!(found, "mcpx search");
    assert_eq!(complete("mcpx call demo.ec").unwrap(), "mcpx call demo.echo");
    assert_eq!(complete("mcpx ls --color=ne").unwrap(), "mcpx ls --color=never");
    assert_eq!(complete("mcpx settings get pool.callT").unwrap(), "mcpx settings get pool.callTimeout");
}

/// What a grammar of PowerShell says of a script: its faults, and the commands that it calls.
fn parsed(script: &str) -> (Vec<String>, Vec<String>) {
    use std::io::Write;
    let grammar = tools::installed("node_modules/@vscode/tree-sitter-wasm/wasm");
    let mut child = Command::new(Runtime::Node22.path())
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shells/powershell.cjs"))
        .arg(grammar)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let list = |key: &str| serde_json::from_value(said[key].clone()).unwrap();
    (list("faults"), list("commands"))
}

#[test]
fn the_script_for_powershell_is_powershell() {
    let script = World::new().mcpx(["completions", "powershell"]).run().stdout();
    let (faults, commands) = parsed(&script);
    assert_eq!(faults, Vec::<String>::new());
    for command in ["Register-ArgumentCompleter", "Where-Object", "Select-Object"] {
        assert!(commands.iter().any(|c| c == command), "{command}: {commands:?}");
    }
    // The grammar would have found a fault.
    for (part, instead) in [
        ("ForEach-Object {", "ForEach-Object"),
        ("'ParameterValue'", "'ParameterValue"),
        ("elseif (", "elseif"),
    ] {
        assert!(script.contains(part), "{part}");
        assert_ne!(parsed(&script.replacen(part, instead, 1)).0, Vec::<String>::new(), "{part}");
    }
}

#[test]
fn every_shell_has_a_script_that_says_where_it_goes() {
    let world = World::new();
    for (shell, part) in [
        ("bash", "bash-completion/completions"),
        ("zsh", "#compdef mcpx"),
        ("fish", "fish/completions"),
        ("powershell", "Register-ArgumentCompleter"),
    ] {
        let script = world.mcpx(["completions", shell]).run();
        assert!(
            script.stdout().contains(part) && script.stdout().contains(&format!("complete {shell}")),
            "{script}"
        );
    }
    world.mcpx(["completions", "bsh"]).status(2).stderr_has("did you mean \"bash\"").check();
    // What powershell's script passes: the number of words, because it loses an empty last one.
    let output = world.mcpx(["complete", "powershell", "2", "settings"]).run();
    assert!(output.stdout().lines().any(|l| l.starts_with("list\t")), "{output}");
}

#[test]
fn the_manual_page_is_one_that_groff_formats_without_a_warning() {
    let world = World::new();
    let page = world.mcpx(["man"]).run();
    assert!(page.stdout().contains(".TH MCPX 1"));
    let Some(groff) = tools::on_path("groff") else {
        eprintln!("skipped: there is no groff on this machine");
        return;
    };
    let path = world.dir().join("mcpx.1");
    std::fs::write(&path, page.stdout()).unwrap();
    let output = Command::new(groff)
        .args(["-man", "-Tascii", "-ww", "-z"])
        .arg(&path)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}
