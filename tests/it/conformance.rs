//! The official conformance suite's client scenarios: each is done with the
//! mcpx binary as a person would, by `tests/conformance/client.mjs`.

use crate::harness::{Runtime, tools};
use std::path::Path;
use std::process::Command;

/// In place of a revision: what belongs to none.
const EXTENSION: &str = "extension";

/// Scenarios that the pinned version has besides those that its revisions require: what was added
/// later, extensions, and what came before.
const FURTHER: &[(&str, &str)] = &[
    ("2025-11-25", "json-schema-2020-12-preservation"),
    ("2026-07-28", "json-schema-2020-12-preservation"),
    (EXTENSION, "auth/client-credentials-basic"),
    (EXTENSION, "auth/client-credentials-jwt"),
    (EXTENSION, "auth/enterprise-managed-authorization"),
    (EXTENSION, "auth/dpop"),
    (EXTENSION, "auth/dpop-nonce"),
    (EXTENSION, "auth/wif-jwt-bearer"),
    ("2025-03-26", "auth/2025-03-26-oauth-metadata-backcompat"),
    ("2025-03-26", "auth/2025-03-26-oauth-endpoint-fallback"),
];

/// The entries of a list in one of the suite's YAML files: `name:`, then `  - entry` lines.
fn entries(text: &str, name: &str) -> Vec<String> {
    let lines = text.lines().skip_while(|l| *l != format!("{name}:")).skip(1);
    let lines = lines.take_while(|l| l.starts_with("  ") || l.trim().is_empty() || l.starts_with('#'));
    lines.filter_map(|l| l.trim().strip_prefix("- ")).map(|l| l.trim().to_owned()).collect()
}

/// What a revision requires of a client.
fn required(revision: &str) -> Vec<String> {
    let file = format!("node_modules/@modelcontextprotocol/conformance/requirements/{revision}.yaml");
    let text = std::fs::read_to_string(tools::installed(&file)).expect("the suite's requirements");
    let all = entries(&text, "client");
    assert!(all.len() > 10, "{revision}: {all:?}");
    all
}

/// Runs a scenario; what it printed, and whether it passed.
fn scenario(revision: &str, name: &str) -> (bool, String) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let node = Runtime::Node22.path();
    let suite = tools::installed("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let client = root.join("tests/conformance/client.mjs");
    let mut command = Command::new(&node);
    command.arg(suite).args(["client", "--scenario", name]);
    if revision != EXTENSION {
        command.args(["--spec-version", revision]);
    }
    let output = command
        .arg("--command")
        .arg(format!("{} {}", node.display(), client.display()))
        .env("MCPX_BIN", env!("CARGO_BIN_EXE_mcpx"))
        .current_dir(root)
        .output()
        .expect("the suite starts");
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(!text.contains("SKIPPED: scenario"), "{revision}: {text}");
    (output.status.success() && text.contains("OVERALL: PASSED"), text)
}

fn all_pass(revision: &str, required: Vec<String>) {
    let known = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/expected-failures.yml"),
    );
    let known = entries(&known.expect("the known failures"), "client");
    let further = FURTHER.iter().filter(|(of, _)| *of == revision).map(|(_, name)| (*name).to_owned());
    let mut wrong = Vec::new();
    for name in required.into_iter().chain(further) {
        let (passed, text) = scenario(revision, &name);
        println!("{revision} {name}: {}", if passed { "passed" } else { "failed" });
        if passed == known.contains(&name) {
            wrong.push(format!("{name} (passed: {passed})\n{text}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn conformance_with_the_last_revision_that_initializes() {
    all_pass("2025-11-25", required("2025-11-25"));
}

#[test]
fn conformance_with_the_stateless_revision() {
    all_pass("2026-07-28", required("2026-07-28"));
}

#[test]
fn conformance_with_authorisation_servers_of_the_first_revision() {
    all_pass("2025-03-26", Vec::new());
}

#[test]
fn conformance_with_extensions_of_authorisation() {
    all_pass(EXTENSION, Vec::new());
}
