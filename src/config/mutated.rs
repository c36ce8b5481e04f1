//! Damaged configuration files: each is read or refused, and what is read is
//! what any other reader of JSON makes of it.

use super::expand::expand;
use super::import::parse_toml;
use super::jsonc::parse;
use crate::util::{Env, mutate};
use serde_json::Value;
use std::path::Path;

fn file() -> &'static Path {
    Path::new("/x/.mcpx.json")
}

/// Brackets nested less deep than any limit.
fn is_flat(text: &str) -> bool {
    text.bytes().filter(|b| matches!(b, b'{' | b'[')).count() < 32
}

/// Equal, but for the last place of a fraction: other readers are quicker there, and less exact.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (Value::Number(a), Value::Number(b)) if a.is_f64() && b.is_f64() => {
            let (a, b) = (a.as_f64().unwrap_or(0.0), b.as_f64().unwrap_or(1.0));
            (a - b).abs() <= a.abs() * 1e-12 + 1e-300
        }
        (a, b) => a == b,
    }
}

#[test]
fn mutated_files_are_read_as_others_read_them_or_refused_with_a_place() {
    let corpus: [&[u8]; 5] = [
        br#"{"mcpServers": {"demo": {"command": "mcpx", "args": ["demo-server", "h\u00fc"], "env": {"A": "${B:-c}"}}}}"#,
        b"// first\n{ \"pool\": { \"max\": 4, }, /* and */ \"x\": [1, -2.5e3, true, null,], }\r\n",
        b"\xef\xbb\xbf{\"a\": \"\\ud83d\\ude00\", \"a\": 2}",
        b"{\"nested\": [[[[{\"deep\": {}}]]]], \"empty\": \"\"}",
        include_bytes!("starter.jsonc"),
    ];
    mutate::each(&corpus, |bytes| {
        let Ok(text) = std::str::from_utf8(bytes) else { return };
        let plain = serde_json::from_str::<Value>(text).ok().filter(|_| is_flat(text));
        match (parse(text, file()), plain) {
            (Ok(read), plain) => {
                let written = serde_json::to_string(&read.value).unwrap();
                assert_eq!(parse(&written, file()).expect("what was written").value, read.value);
                if let Some(plain) = plain.filter(|_| read.duplicates.is_empty()) {
                    assert!(same(&read.value, &plain), "{} is not {plain}", read.value);
                }
            }
            (Err(e), plain) => {
                assert!(e.message().starts_with("/x/.mcpx.json:"), "{e}");
                assert!(e.message().len() < 2000, "a message shows a part: {}", e.message().len());
                assert!(!plain.is_some_and(|value| value.is_object()), "it is JSON: {e}");
            }
        }
    });
}

#[test]
fn mutated_variables_are_expanded_or_named() {
    let env = Env::from_pairs([("A", "a value"), ("B", "${A}")]);
    let corpus: [&[u8]; 4] = [b"${A}/${B:-x}/$C", b"${NONE:-${A:-${B}}}", b"${", b"$${A}}"];
    mutate::each(&corpus, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        match expand(&text, &env) {
            Ok(read) => assert!(read.len() <= text.len() * "a value".len()),
            Err(why) => assert!(!why.is_empty()),
        }
    });
}

#[test]
fn mutated_toml_is_read_or_refused() {
    let corpus: [&[u8]; 3] = [
        b"[mcp_servers.demo]\ncommand = \"mcpx\"\nargs = ['demo-server', \"h\\u00fc\"]\n",
        b"# x\n[mcp_servers.\"a b\".env]\nA = \"\"\"two\nlines\"\"\"\nn = 1_000\nf = 1e3\nt = { x = true, y = [1, 2] }\n",
        b"[[list]]\na.b = 1979-05-27T07:32:00Z\n",
    ];
    mutate::each(&corpus, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        if let Ok(read) = parse_toml(&text) {
            let written = serde_json::to_string(&read).unwrap();
            // Escaped, a character of one byte is six; repeated headers say their table once.
            assert!(written.len() <= text.len() * 8 + 16, "{written}");
        }
    });
}
