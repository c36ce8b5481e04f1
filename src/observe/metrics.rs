//! Figures of a running daemon, counted as things happen, in the text format of
//! Prometheus (exposition format 0.0.4). Knows nothing of who asks.

use super::bus::Event;
use super::kinds;
use crate::error::Kind;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

/// The upper bounds of the histogram's buckets, in seconds: from a call that costs
/// nothing to one that people wait for.
const BUCKETS: [f64; 12] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0, 60.0];

/// Names that nothing has are not counted by name: who asks for a new one each time must not fill the memory.
const UNKNOWN: &str = "";

#[derive(Debug, Default)]
struct Latency {
    buckets: [u64; BUCKETS.len()],
    count: u64,
    sum: f64,
}

#[derive(Debug, Default)]
struct State {
    calls: BTreeMap<(String, String, String), u64>,
    latency: BTreeMap<String, Latency>,
    events: BTreeMap<&'static str, u64>,
}

/// What was counted.
#[derive(Debug, Default)]
pub struct Metrics(Mutex<State>);

/// Values of one name: labels, and the number.
pub type Values = Vec<(Vec<(&'static str, String)>, f64)>;

impl Metrics {
    /// Counts an event.
    pub fn count(&self, event: &Event) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *state.events.entry(event.kind).or_default() += 1;
        if event.kind != kinds::CALL_FINISHED.word {
            return;
        }
        let text = |key: &str| event.data[key].as_str().unwrap_or_default();
        let (mut server, mut tool) = (event.server.as_deref().unwrap_or_default(), text("tool"));
        let outcome = text("outcome");
        if outcome == Kind::NotFound.row().word {
            (server, tool) = (UNKNOWN, UNKNOWN);
        }
        let key = (server.to_owned(), tool.to_owned(), outcome.to_owned());
        *state.calls.entry(key).or_default() += 1;
        let seconds = event.data["ms"].as_f64().unwrap_or(0.0) / 1000.0;
        if !state.latency.contains_key(server) {
            state.latency.insert(server.to_owned(), Latency::default());
        }
        if let Some(latency) = state.latency.get_mut(server) {
            latency.count += 1;
            latency.sum += seconds;
            for (bucket, bound) in latency.buckets.iter_mut().zip(BUCKETS) {
                *bucket += u64::from(seconds <= bound);
            }
        }
    }

    /// The figures as text.
    pub fn text(&self) -> String {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = String::new();
        let calls: Values = state
            .calls
            .iter()
            .map(|((server, tool, outcome), n)| {
                let labels =
                    vec![("server", server.clone()), ("tool", tool.clone()), ("outcome", outcome.clone())];
                (labels, *n as f64)
            })
            .collect();
        family(&mut out, "mcpx_calls_total", "counter", "Tool calls by outcome", &calls);
        let name = "mcpx_call_duration_seconds";
        let _ = writeln!(out, "# HELP {name} How long tool calls took\n# TYPE {name} histogram");
        for (server, latency) in &state.latency {
            let server = quoted(server);
            for (bound, n) in BUCKETS.iter().zip(latency.buckets) {
                let _ = writeln!(out, "{name}_bucket{{server={server},le=\"{bound}\"}} {n}");
            }
            let Latency { count, sum, .. } = latency;
            let _ = writeln!(out, "{name}_bucket{{server={server},le=\"+Inf\"}} {count}");
            let _ =
                writeln!(out, "{name}_sum{{server={server}}} {sum}\n{name}_count{{server={server}}} {count}");
        }
        let events: Values =
            state.events.iter().map(|(kind, n)| (vec![("kind", (*kind).to_owned())], *n as f64)).collect();
        family(&mut out, "mcpx_events_by_kind_total", "counter", "Events by kind", &events);
        out
    }
}

/// Writes one name with its values.
pub fn family(out: &mut String, name: &str, kind: &str, help: &str, values: &Values) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
    for (labels, value) in values {
        let labels: Vec<String> =
            labels.iter().map(|(key, text)| format!("{key}={}", quoted(text))).collect();
        let braces = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(out, "{name}{braces} {value}");
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn calls_are_counted_and_timed() {
        let metrics = Metrics::default();
        for (server, tool, ms, outcome) in [
            ("a", "t", 0.4, "ok"),
            ("a", "t", 3.0, "ok"),
            ("a\"", "x", 1.0, "timeout"),
            ("?", "??", 0.1, "not_found"),
        ] {
            let outcome = if outcome == "not_found" { Kind::NotFound.row().word } else { outcome };
            let data = json!({"tool": tool, "ms": ms, "outcome": outcome});
            metrics.count(&Event::new(&kinds::CALL_FINISHED, data).server(server));
        }
        let text = metrics.text();
        for line in [
            "mcpx_calls_total{server=\"a\",tool=\"t\",outcome=\"ok\"} 2",
            "mcpx_calls_total{server=\"a\\\"\",tool=\"x\",outcome=\"timeout\"} 1",
            "mcpx_call_duration_seconds_bucket{server=\"a\",le=\"0.0005\"} 1",
            "mcpx_call_duration_seconds_bucket{server=\"a\",le=\"0.005\"} 2",
            "mcpx_call_duration_seconds_bucket{server=\"a\",le=\"+Inf\"} 2",
            "mcpx_call_duration_seconds_count{server=\"a\"} 2",
            "mcpx_events_by_kind_total{kind=\"call.finished\"} 4",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in:\n{text}");
        }
        assert!(!text.contains("??"), "names that nothing has are not kept");
    }
}
