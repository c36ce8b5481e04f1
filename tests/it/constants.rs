//! Durations, sizes and limits in the sources: each is a setting's default in
//! `defaults.json`, or a named constant that says beside it why nobody needs
//! another value, or it stands on the list below with a reason.

use crate::layers::{Source, sources};

/// Where numbers are the subject itself: the ranges of the settings, the units
/// that people type, and the demonstration server, whose numbers are its content.
const SUBJECT: [&str; 5] =
    ["settings/table", "settings/units.rs", "observe/log/when.rs", "serve/demo.rs", "serve/demo_tools.rs"];

/// What may stand in a line of its file, and why it is no setting.
const ALLOWED: &[(&str, &str, &str)] = &[
    ("api/http/mod.rs", "PATIENT: Limits", "what is taken from a daemon of our own user: whatever it sends"),
    ("pool/call.rs", "div_ceil(1_000_000)", "a conversion of units"),
    ("script/launcher.rs", "wrapping_mul(0x0100_0000_01b3)", "the prime of the FNV-1a hash"),
    (
        "api/http/read.rs",
        "Duration::from_micros(1)",
        "the system takes zero for no limit at all; this is the shortest",
    ),
    ("catalog/cache.rs", "read > 1 << 20", "the head of a file in the cache is mcpx's own and never as long"),
    ("catalog/search.rs", "u32 =", "weights of one ranking, tuned against each other"),
    ("catalog/ts/plan.rs", "NEW: usize", "a mark, not a number"),
    ("catalog/validate.rs", "SHOWN: usize", "how much of a value an error message quotes"),
    ("catalog/validate.rs", "LONGEST: usize", "how much of a value an error message quotes"),
    ("cli/commands/artifacts.rs", "UNITS:", "the units that sizes are shown in"),
    ("cli/commands/call.rs", "Duration::from_millis(1)", "the unit of the wire's timeoutMs"),
    (
        "daemon/http/mod.rs",
        "unwrap_or(0).min(1024 * 1024)",
        "how much is reserved on a peer's word; more grows as it arrives",
    ),
    (
        "daemon/peers.rs",
        "Duration::from_micros(1)",
        "the system takes zero for no limit at all; this is the shortest",
    ),
    ("mcp/error.rs", "Duration::from_secs(1)", "from here on a time is written in seconds"),
    ("mcp/http.rs", "BufReader::with_capacity(16 * 1024", "a buffer, which limits nothing"),
    ("mcp/http.rs", "QUOTED: usize", "how much of an answer an error message quotes"),
    ("mcp/stderr.rs", "QUOTED_BYTES: usize", "how much of a server's stderr an error message quotes"),
    ("mcp/reading.rs", "clamp(CHUNK, 16 << 20)", "how a buffer grows, which limits nothing"),
    ("mcp/reading.rs", "BLOCK: usize", "the block of a scan, which limits nothing"),
    ("mcp/streamable.rs", "message.min(1 << 20)", "an error's text; mcp.maxMessage bounds it besides"),
    (
        "mcp/streamable.rs",
        "reply.read(64 * 1024)",
        "the rest of an answer nobody needs, so that its connection can be used again",
    ),
    ("observe/log/tally.rs", "LONG: u32", "a mark in a number"),
    ("observe/log/text.rs", "ONES: u64", "a pattern of bits"),
    ("observe/log/text.rs", "HIGHS: u64", "a pattern of bits"),
    ("observe/log/text.rs", "QUOTE: u64", "a pattern of bits"),
    ("observe/log/text.rs", "SLASH: u64", "a pattern of bits"),
    ("script/run.rs", "vec![0; 64 * 1024]", "a buffer, which limits nothing"),
];

/// A number in a line of the sources, as the list names it.
struct Found {
    path: String,
    line: usize,
    text: String,
    /// It is a constant with a comment.
    explained: bool,
}

impl Found {
    fn is(&self, (path, part, _): &(&str, &str, &str)) -> bool {
        self.path == *path && self.text.contains(part)
    }
}

/// Whether a line sets a duration, a size or a limit by a number in it.
fn is_inline(line: &str) -> bool {
    let digit = |text: &str| text.trim_start().starts_with(|c: char| c.is_ascii_digit());
    let durations = line
        .match_indices("Duration::from_")
        .any(|(at, _)| line[at..].split_once('(').is_some_and(|(_, argument)| digit(argument)));
    let sizes = [" * 1024", " * 1000", " << 10", " << 20", " << 30", "0_000"].iter().any(|part| {
        line.match_indices(part).any(|(at, _)| line[..at].ends_with(|c: char| c.is_ascii_digit()))
    });
    durations || sizes
}

/// Whether a line declares a constant that is a number or a duration.
fn is_constant(line: &str) -> bool {
    const TYPES: [&str; 12] =
        ["u8", "u16", "u32", "u64", "u128", "usize", "i32", "i64", "isize", "f32", "f64", "Duration"];
    let Some((before, after)) = line.split_once("const ") else { return false };
    let visible = before.trim();
    (visible.is_empty() || visible.starts_with("pub"))
        && after.split_once(": ").is_some_and(|(name, rest)| {
            name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
                && rest.split([' ', '=']).next().is_some_and(|kind| TYPES.contains(&kind))
        })
}

fn numbers(source: &Source) -> Vec<Found> {
    let path = source.path.to_string_lossy().into_owned();
    if SUBJECT.iter().any(|p| path.starts_with(p)) {
        return Vec::new();
    }
    let original: Vec<&str> = source.text.lines().collect();
    let mut found = Vec::new();
    for (i, line) in source.shipped().lines().enumerate() {
        let constant = is_constant(line);
        if !constant && !is_inline(line) {
            continue;
        }
        let commented = |line: Option<&&str>| line.is_some_and(|l| l.contains("//"));
        let above = original[..i].iter().rev().find(|l| !l.trim().starts_with("#["));
        let explained = constant && (commented(above) || commented(original.get(i)));
        found.push(Found { path: path.clone(), line: i + 1, text: line.trim().to_owned(), explained });
    }
    found
}

#[test]
fn every_duration_size_and_limit_is_a_setting_or_says_why_not() {
    let found: Vec<Found> = sources().iter().flat_map(numbers).collect();
    assert!(found.len() > 50, "the scan should find the constants of the sources, not {}", found.len());
    let unknown: Vec<String> = found
        .iter()
        .filter(|f| !f.explained && !ALLOWED.iter().any(|entry| f.is(entry)))
        .map(|f| format!("src/{}:{}: {}", f.path, f.line, f.text))
        .collect();
    assert!(
        unknown.is_empty(),
        "a number that a user may want to change belongs into defaults.json and src/settings/table; another \
         one needs a name and a comment that says why, or a line in tests/it/constants.rs:\n{}",
        unknown.join("\n")
    );
    for entry in ALLOWED {
        assert!(
            found.iter().any(|f| f.is(entry)),
            "nothing is as the list says any more: {} {}",
            entry.0,
            entry.1
        );
        assert!(entry.2.len() > 10, "{} {} needs a reason", entry.0, entry.1);
    }
}

#[test]
fn the_scan_sees_what_it_should() {
    for line in [
        "let wait = Duration::from_secs(30);",
        "read.take(64 * 1024)",
        "if n > 1 << 20 {",
        "limit(10_000)",
        "Duration::from_millis( 5 )",
    ] {
        assert!(is_inline(line), "{line}");
    }
    for line in ["Duration::from_millis(limit)", "a << 8", "x * 1024", "Duration::from_nanos(total)"] {
        assert!(!is_inline(line), "{line}");
    }
    for line in ["const A: u64 = 5;", "    pub const B_C: Duration = X;", "pub(super) const D: usize = 1;"] {
        assert!(is_constant(line), "{line}");
    }
    for line in ["const A: &str = x;", "pub const fn of(n: u64) -> u64 {", "let const_a: u64 = 1;"] {
        assert!(!is_constant(line), "{line}");
    }
}
