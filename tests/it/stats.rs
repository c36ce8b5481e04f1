//! Statistics of the log, and the figures of a running daemon.

use crate::harness::{World, wait_until};
use serde_json::json;

#[test]
fn calls_errors_and_volume_are_counted_from_the_files() {
    let world = World::demo();
    world.mcpx(["stats"]).stdout("").stderr_has("nothing of that").check();
    for n in 0..4 {
        world
            .mcpx(["call", "demo.echo", &format!("text={n}"), "--session", "a"])
            .stdout(&format!("{n}\n"))
            .check();
    }
    world.mcpx(["call", "demo.fail", "message=no", "--session", "b"]).status(1).any_stderr().check();
    // Whose message quotes the arguments, which are not for the log.
    world.mcpx(["call", "demo.add", "{\"a\":\"s3cret\"}"]).status(2).any_stderr().check();
    for tool in ["nope1", "nope22"] {
        let _ = world.mcpx(["call", &format!("demo.{tool}")]).output();
    }
    let rows = |words: &[&str]| {
        let all = ["--json", "stats"].iter().chain(words).copied();
        world.mcpx(all.collect::<Vec<_>>()).run().json()["rows"].as_array().unwrap().clone()
    };
    wait_until("eight calls to be counted", || {
        (rows(&["servers"]).iter().map(|r| r["calls"].as_u64().unwrap()).sum::<u64>() == 8).then_some(())
    });
    let (status, text) = world.ask_text("GET", "/v1/metrics", None);
    assert_eq!(status, 200);
    assert!(text.contains("mcpx_calls_total{server=\"demo\",tool=\"echo\",outcome=\"ok\"} 4\n"), "{text}");
    assert!(text.contains("mcpx_call_duration_seconds_count{server=\"demo\"} "), "{text}");
    assert!(
        text.contains(&format!("mcpx_build_info{{version=\"{}\"}} 1\n", env!("CARGO_PKG_VERSION"))),
        "{text}"
    );
    well_formed(&text);
    assert!(text.contains("mcpx_instances{server=\"demo\",state=\"ready\"} 1\n"), "{text}");
    let (_, over_http) = world.ask("GET", "/v1/stats?about=calls&limit=1", None);
    assert_eq!(over_http["rows"][0]["tool"], "demo.echo");
    assert_eq!(world.ask("GET", "/v1/stats?about=weather", None).0, 400);
    assert_eq!(world.ask("GET", "/v1/stats?limit=1", None).1, over_http, "calls, as with the command");
    let (status, odd) = world.ask("GET", "/v1/log?sevrer=demo", None);
    assert_eq!(status, 400);
    assert!(odd["error"]["hint"].as_str().unwrap().contains("\"server\""), "{odd}");
    let _ = world.mcpx(["stop"]).run();
    assert_eq!(world.mcpx(["--json", "stats"]).run().json()["ok"], true);
    let calls = rows(&["calls"]);
    let echo = &calls[0];
    assert_eq!((&echo["tool"], &echo["calls"], &echo["errors"]), (&json!("demo.echo"), &json!(4), &json!(0)));
    assert!(echo["p50"].as_f64() <= echo["p95"].as_f64() && echo["p95"].as_f64() <= echo["max"].as_f64());
    assert_eq!(rows(&["sessions", "--session", "a"])[0]["calls"], 4);
    assert_eq!(rows(&["slowest", "--limit", "3"]).len(), 3);
    assert_eq!(rows(&["servers"])[0]["starts"], 1);
    let errors = rows(&["errors"]);
    // Two messages that differ in a number are one error.
    assert!(
        errors.iter().any(|e| e["count"] == 2 && e["template"].as_str().unwrap().contains("nope<n>")),
        "{errors:?}"
    );
    assert!(errors.iter().all(|e| e["template"] != ""), "{errors:?}");
    let volume = rows(&["volume"]);
    assert_eq!(volume.iter().map(|r| r["calls"].as_u64().unwrap()).sum::<u64>(), 8);
    world.mcpx(["stats"]).run().says(&["TOOL", "P99", "demo.echo"]);
    world.mcpx(["stats", "call"]).status(2).stderr_has("did you mean \"calls\"").check();
}

/// Holds figures to the text format of Prometheus (0.0.4): a help and a type before each family, its samples together,
/// no sample twice, counters that end in `_total`, buckets that only grow and end with the count.
fn well_formed(text: &str) {
    assert!(text.ends_with('\n'));
    let (mut kinds, mut helped) = (std::collections::BTreeMap::new(), Vec::new());
    let (mut seen, mut order) = (std::collections::BTreeSet::new(), Vec::<String>::new());
    let mut buckets: Option<(String, f64)> = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            helped.push(rest.split(' ').next().unwrap().to_owned());
            continue;
        }
        if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            assert!(helped.last().is_some_and(|h| h == name), "{name} has no help before its type");
            assert!(kinds.insert(name.to_owned(), kind.to_owned()).is_none(), "{name} is declared twice");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            continue;
        }
        let (sample, value) = line.rsplit_once(' ').unwrap();
        let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
        assert!(seen.insert(sample.to_owned()), "{sample} is there twice");
        let name = sample.split('{').next().unwrap();
        let parts = ["_bucket", "_sum", "_count"];
        let base =
            parts.iter().find_map(|end| name.strip_suffix(end)).filter(|base| kinds.contains_key(*base));
        let family = base.unwrap_or(name);
        let kind = kinds.get(family).unwrap_or_else(|| panic!("{name} has no type"));
        assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
        if order.last().is_none_or(|last| last != family) {
            assert!(!order.contains(&family.to_owned()), "the samples of {family} are not together");
            order.push(family.to_owned());
        }
        if kind != "histogram" {
            continue;
        }
        let labels =
            sample.split_once('{').map(|(_, l)| l.split("le=").next().unwrap().trim_end_matches([',', '}']));
        let of = format!("{family}{}", labels.unwrap_or_default());
        if name.ends_with("_bucket") {
            let before = buckets.as_ref().filter(|(series, _)| *series == of).map_or(0.0, |(_, n)| *n);
            assert!(value >= before, "{line}");
            buckets = Some((of, value));
        } else if name.ends_with("_count") {
            assert_eq!(buckets, Some((of, value)), "the last bucket has all: {line}");
        }
    }
    assert!(order.len() > 5, "{order:?}");
}
