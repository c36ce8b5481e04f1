//! The pages that tables render are current, what the README shows works, and
//! what the documentation points at exists.

use crate::harness::{Runtime, World, tools};
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// README.md and every page below `docs/`.
fn pages() -> Vec<PathBuf> {
    let mut found = vec![root().join("README.md"), root().join("CHANGELOG.md")];
    let mut dirs = vec![root().join("docs")];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|e| e == "md") {
                found.push(path);
            }
        }
    }
    found
}

/// The fenced blocks of one language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim() == format!("```{language}") {
            found.push(lines.by_ref().take_while(|l| l.trim() != "```").map(|l| format!("{l}\n")).collect());
        }
    }
    found
}

#[test]
fn the_generated_pages_are_current() {
    if let Err(e) = mcpx::cli::docs::check(&root().join("docs")) {
        panic!("{e}");
    }
}

#[test]
fn what_the_pages_point_at_exists() {
    let mut missing = Vec::new();
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        // Links, relative to the page; and files of the project in code spans.
        let prose: String = text.split('`').step_by(2).collect();
        let links = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for link in links.filter(|l| !l.contains("://") && !l.starts_with('#')) {
            let file = link.split('#').next().unwrap();
            if !page.parent().unwrap().join(file).exists() {
                missing.push(format!("{}: {link}", page.display()));
            }
        }
        for span in text.split('`').skip(1).step_by(2) {
            let ours = ["src/", "docs/", "tests/"].iter().any(|dir| span.starts_with(dir));
            let plain = !span.contains(['*', '<', ' ', '{', ':']);
            if ours && plain && !root().join(span).exists() {
                missing.push(format!("{}: {span}", page.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn the_readme_begins_with_two_commands_that_make_has() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let first = &blocks(&readme, "sh")[0];
    let makefile = std::fs::read_to_string(root().join("Makefile")).unwrap();
    let targets: Vec<&str> =
        first.lines().filter_map(|l| l.strip_prefix("make ")?.split_whitespace().next()).collect();
    assert_eq!(targets, ["demo", "test"]);
    for target in targets {
        assert!(makefile.lines().any(|l| l.starts_with(&format!("{target}:"))), "{target}");
    }
}

#[test]
fn the_tour_of_the_readme_works() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let world = World::new().with(Runtime::Deno);
    world.link("mcpx", env!("CARGO_BIN_EXE_mcpx").as_ref());
    let mut ran = 0;
    for block in blocks(&readme, "sh").iter().filter(|b| b.starts_with("mcpx ")) {
        let output = Command::new(tools::on_path("sh").unwrap())
            .args(["-e", "-c", block])
            .env_clear()
            .envs(world.environment())
            .current_dir(world.dir())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{block}\n{said}");
        assert!(!output.stdout.is_empty(), "{block}");
        ran += 1;
    }
    assert!(ran >= 2, "the README has a tour");
}

#[test]
fn the_commands_for_ci_work_and_those_of_its_jobs_parse() {
    let page = std::fs::read_to_string(root().join("docs/ci.md")).unwrap();
    let world = World::new().with(Runtime::Deno);
    world.link("mcpx", env!("CARGO_BIN_EXE_mcpx").as_ref());
    let _ = world.mcpx(["init", "--demo"]).run();
    for block in blocks(&page, "sh") {
        let output = Command::new(tools::on_path("sh").unwrap())
            .args(["-e", "-c", &block])
            .env_clear()
            .envs(world.environment())
            .current_dir(world.dir())
            .output()
            .unwrap();
        assert!(output.status.success(), "{block}\n{}", String::from_utf8_lossy(&output.stderr));
    }
    let mut jobs = 0;
    for line in blocks(&page, "yaml").iter().flat_map(|b| b.lines()) {
        let found = ["run: mcpx ", "- mcpx "].iter().find_map(|part| Some(line.find(part)? + part.len()));
        let Some(at) = found.map(|end| end - "mcpx ".len()) else { continue };
        let words = line[at..].split_whitespace().map(std::ffi::OsString::from).collect();
        assert!(matches!(mcpx::cli::args::parse(words), Ok(mcpx::cli::args::Parsed::Run(_))), "{line}");
        jobs += 1;
    }
    assert!(jobs >= 8, "{jobs}");
}

#[test]
fn the_configurations_of_the_pages_are_valid() {
    let mut seen = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for block in blocks(&text, "jsonc").iter().chain(&blocks(&text, "json")) {
            if !block.contains("mcpServers") {
                continue;
            }
            seen += 1;
            let world = World::new().env("ISSUES_TOKEN", "x").config(block);
            let output = world.mcpx(["status"]).any_stderr().output();
            assert!(!matches!(output.status, 2 | 65 | 70), "{}\n{block}\n{output}", page.display());
        }
    }
    assert!(seen > 0);
}

#[test]
fn every_example_of_the_help_is_a_command_line_that_parses() {
    let world = World::new();
    let reference = std::fs::read_to_string(root().join("docs/cli.md")).unwrap();
    let examples: Vec<&str> = reference.lines().map(str::trim).filter(|l| l.starts_with("mcpx ")).collect();
    assert!(examples.len() >= 15, "{examples:?}");
    for command in mcpx::cli::commands::COMMANDS {
        assert!(!command.examples.is_empty(), "{} has an example", command.name);
        let help = world.mcpx([command.name, "--help"]).run();
        for example in command.examples {
            assert!(help.stdout().contains(example.line.lines().next().unwrap()), "{help}");
        }
    }
}

#[test]
fn the_tests_that_the_page_on_security_names_exist() {
    let text = std::fs::read_to_string(root().join("docs/security.md")).unwrap();
    let named: Vec<&str> = text.split('`').skip(1).step_by(2).filter(|span| span.contains(".rs::")).collect();
    assert!(named.len() > 20, "the page names its tests: {named:?}");
    let mut missing = Vec::new();
    for name in named {
        let (file, test) = name.split_once("::").unwrap();
        let source = std::fs::read_to_string(root().join(file)).unwrap_or_default();
        // A test of its own, or one that a macro makes of each runtime.
        let found = source.contains(&format!("#[test]\nfn {test}()"))
            || source.contains(&format!("#[test]\n    fn {test}()"))
            || source.contains(&format!("    {test} "));
        if !found {
            missing.push(name);
        }
    }
    assert!(missing.is_empty(), "docs/security.md names tests that there are not: {missing:?}");
}
