//! JSON-RPC 2.0 as MCP uses it: reads the envelope of a message without
//! looking into what it carries, and writes messages of one line each. Both
//! ends of a conversation use it. Knows nothing of any method.

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// JSON-RPC: the text is no JSON.
pub(crate) const PARSE_ERROR: i64 = -32700;
/// JSON-RPC: the JSON is no message.
pub(crate) const INVALID_REQUEST: i64 = -32600;
/// JSON-RPC: no such method.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
/// JSON-RPC: the parameters are wrong.
pub(crate) const INVALID_PARAMS: i64 = -32602;

/// The envelope of one message; everything in it borrows from the line.
#[derive(Debug, Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// Tells a member that is `null` from one that is missing.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(from: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// What a message is.
#[derive(Debug)]
pub(crate) enum Message<'a> {
    /// A call of ours to answer; the id is echoed as it came, number or string.
    Request { id: &'a RawValue, method: Cow<'a, str>, params: Option<&'a RawValue> },
    /// Something to know.
    Notification { method: Cow<'a, str>, params: Option<&'a RawValue> },
    /// The answer to the request that had this id.
    Answer { id: u64, outcome: Result<&'a RawValue, &'a RawValue> },
}

/// Reads one message, or a batch of them (revision 2025-03-26), and passes on
/// each one that is well formed. Returns whether all were.
pub(crate) fn read<'a>(line: &'a [u8], mut each: impl FnMut(Message<'a>)) -> bool {
    let first = line.iter().position(|b| !b.is_ascii_whitespace());
    match first.map(|at| line[at]) {
        Some(b'{') => read_one(line).map(each).is_some(),
        Some(b'[') => {
            let Ok(batch) = serde_json::from_slice::<Vec<&RawValue>>(line) else { return false };
            let mut all = !batch.is_empty();
            for one in batch {
                match read_one(one.get().as_bytes()) {
                    Some(message) => each(message),
                    None => all = false,
                }
            }
            all
        }
        _ => false,
    }
}

fn read_one(text: &[u8]) -> Option<Message<'_>> {
    // Serde would take an array for a struct as well.
    if !text.trim_ascii_start().starts_with(b"{") {
        return None;
    }
    let envelope: Envelope = serde_json::from_slice(text).ok()?;
    match envelope {
        Envelope { method: Some(method), id: Some(id), params, .. } => {
            Some(Message::Request { id, method, params })
        }
        Envelope { method: Some(method), id: None, params, .. } => {
            Some(Message::Notification { method, params })
        }
        Envelope { id: Some(id), result, error, .. } => {
            // Some servers send the other one along as null.
            let outcome = match (result, error) {
                (_, Some(error)) if error.get() != "null" => Err(error),
                (Some(result), _) => Ok(result),
                (None, _) => return None,
            };
            Some(Message::Answer { id: id.get().parse().ok()?, outcome })
        }
        _ => None,
    }
}

/// Appends JSON as part of one line. A line break inside JSON can only be
/// white space: within strings it is escaped.
fn push_json(line: &mut Vec<u8>, json: &str) {
    let start = line.len();
    line.extend_from_slice(json.as_bytes());
    for byte in &mut line[start..] {
        if matches!(*byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}

fn push_text(line: &mut Vec<u8>, text: &str) {
    // Writing a str into memory cannot fail.
    let _ = serde_json::to_writer(line, text);
}

/// A request, as a line with its line break. With `progress` the parameters
/// (an object, or none) also ask for progress under the request's own id; what
/// is in `stamp` goes into their `_meta`.
pub(crate) fn request(
    id: u64,
    method: &str,
    params: Option<&RawValue>,
    progress: bool,
    stamp: &[(&'static str, Box<RawValue>)],
) -> Vec<u8> {
    let with_meta;
    let params = if progress || !stamp.is_empty() {
        with_meta = add_meta(params, progress.then_some(id), stamp);
        with_meta.as_deref().or(params.map(RawValue::get))
    } else {
        params.map(RawValue::get)
    };
    let mut line = Vec::with_capacity(64 + method.len() + params.map_or(0, str::len));
    line.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    line.extend_from_slice(id.to_string().as_bytes());
    line.extend_from_slice(b",\"method\":");
    push_text(&mut line, method);
    finish(line, params)
}

/// A notification, as a line with its line break.
pub(crate) fn notification(method: &str, params: Option<&Value>) -> Vec<u8> {
    let mut line = b"{\"jsonrpc\":\"2.0\",\"method\":".to_vec();
    push_text(&mut line, method);
    finish(line, params.map(Value::to_string).as_deref())
}

fn finish(mut line: Vec<u8>, params: Option<&str>) -> Vec<u8> {
    if let Some(params) = params {
        line.extend_from_slice(b",\"params\":");
        push_json(&mut line, params);
    }
    line.extend_from_slice(b"}\n");
    line
}

/// Puts a `progressToken` and a stamp into the parameters' `_meta`; nothing when they are no object.
fn add_meta(
    params: Option<&RawValue>,
    token: Option<u64>,
    stamp: &[(&'static str, Box<RawValue>)],
) -> Option<String> {
    let mut members: BTreeMap<Cow<str>, &RawValue> = match params {
        Some(params) => serde_json::from_str(params.get()).ok()?,
        None => BTreeMap::new(),
    };
    let mut meta: BTreeMap<Cow<str>, &RawValue> = match members.get("_meta") {
        Some(meta) => serde_json::from_str(meta.get()).ok()?,
        None => BTreeMap::new(),
    };
    meta.extend(stamp.iter().map(|(key, value)| (Cow::Borrowed(*key), &**value)));
    let token = token.and_then(|token| serde_json::value::to_raw_value(&token).ok());
    if let Some(token) = &token {
        meta.insert("progressToken".into(), token);
    }
    let meta = serde_json::value::to_raw_value(&meta).ok()?;
    members.insert("_meta".into(), &meta);
    serde_json::to_string(&members).ok()
}

/// An answer, as a line with its line break.
pub(crate) fn answer(id: &RawValue, result: &Value) -> Vec<u8> {
    answer_text(id, &result.to_string())
}

/// An answer whose result is JSON text already, which is copied and not looked at.
pub(crate) fn answer_text(id: &RawValue, result: &str) -> Vec<u8> {
    respond(id.get(), "result", result)
}

/// A refusal, as a line with its line break.
pub(crate) fn refusal(id: &RawValue, code: i64, message: &str) -> Vec<u8> {
    refusal_with(Some(id), &serde_json::json!({ "code": code, "message": message }))
}

/// A refusal with an error object of one's own; without an id for what had none that could be read.
pub(crate) fn refusal_with(id: Option<&RawValue>, error: &Value) -> Vec<u8> {
    respond(id.map_or("null", RawValue::get), "error", &error.to_string())
}

fn respond(id: &str, member: &str, value: &str) -> Vec<u8> {
    let mut line = Vec::with_capacity(48 + id.len() + value.len());
    line.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    push_json(&mut line, id);
    line.extend_from_slice(b",\"");
    line.extend_from_slice(member.as_bytes());
    line.extend_from_slice(b"\":");
    push_json(&mut line, value);
    line.extend_from_slice(b"}\n");
    line
}

/// Whether JSON is nested deeper than `limit`.
pub(crate) fn deeper_than(json: &str, limit: usize) -> bool {
    // Most JSON has fewer brackets than the limit allows levels, and counting
    // bytes is many times faster than following them.
    if json.bytes().filter(|b| matches!(b, b'{' | b'[')).count() <= limit {
        return false;
    }
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for byte in json.bytes() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(line: &str) -> (Vec<String>, bool) {
        let mut seen = Vec::new();
        let good = read(line.as_bytes(), |message| {
            seen.push(match message {
                Message::Request { id, method, .. } => format!("request {} {method}", id.get()),
                Message::Notification { method, params } => {
                    format!("notification {method} {}", params.map_or("-", RawValue::get))
                }
                Message::Answer { id, outcome: Ok(result) } => format!("result {id} {}", result.get()),
                Message::Answer { id, outcome: Err(error) } => format!("error {id} {}", error.get()),
            });
        });
        (seen, good)
    }

    fn one(line: &str) -> String {
        let (mut seen, good) = kinds(line);
        assert!(good && seen.len() == 1, "{line}: {seen:?}");
        seen.remove(0)
    }

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.into()).unwrap()
    }

    #[test]
    fn each_kind_is_told_from_the_others() {
        assert_eq!(one(r#"{"jsonrpc":"2.0","id":"a-1","method":"ping"}"#), r#"request "a-1" ping"#);
        assert_eq!(one(r#"{"id":7,"method":"roots\/list","params":{}}"#), "request 7 roots/list");
        assert_eq!(one(r#"{"method":"x","params":{"a": 1}}"#), r#"notification x {"a": 1}"#);
        assert_eq!(one(" {\"result\":{ \"a\":[1] },\"id\":3}\r"), r#"result 3 { "a":[1] }"#);
        assert_eq!(one(r#"{"id":3,"error":{"code":1}}"#), r#"error 3 {"code":1}"#);
        assert_eq!(one(r#"{"id":3,"result":null}"#), "result 3 null");
        assert_eq!(one(r#"{"id":3,"result":{},"error":null}"#), "result 3 {}");
        assert_eq!(one(r#"{"id":3,"result":null,"error":{"code":1}}"#), r#"error 3 {"code":1}"#);
    }

    #[test]
    fn a_batch_passes_on_what_is_good() {
        let (seen, good) = kinds(r#"[{"method":"a"},17,{"id":1,"result":2},[1]]"#);
        assert_eq!(seen, ["notification a -", "result 1 2"]);
        assert!(!good);
        assert!(kinds(r#"[{"method":"a"}]"#).1);
    }

    #[test]
    fn what_is_no_message_is_only_reported() {
        for line in [
            "",
            "Server listening on stdio",
            "{",
            "[]",
            "null",
            "{}",
            r#"{"id":1}"#,
            r#"{"id":"1","result":{}}"#,
            r#"{"id":-1,"result":{}}"#,
            r#"{"id":null,"error":{}}"#,
            r#"{"id":1,"result":{}} trailing"#,
            r#"{"id":1,"id":1,"result":{}}"#,
            "[\"2.0\",1,\"x\"]",
        ] {
            assert_eq!(kinds(line), (vec![], false), "{line}");
        }
        assert!(!read(b"{\"id\":1,\"result\":\"\xff\"}", |_| panic!("not UTF-8")));
    }

    #[test]
    fn nesting_ends_nothing_and_is_measured() {
        let deep = format!(r#"{{"id":1,"result":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
        assert!(read(deep.as_bytes(), |m| {
            let Message::Answer { outcome: Ok(result), .. } = m else { panic!() };
            assert!(deeper_than(result.get(), 128));
        }));
        assert!(!deeper_than(r#"[{"a":["[[[[[[\"[[["]}]"#, 3));
        assert!(deeper_than(r#"[{"a":["[[[[[[\"[[["]}]"#, 2));
        assert!(!deeper_than("[[],[],[],[]]", 2));
    }

    #[test]
    fn what_is_written_is_one_line_each() {
        let params = raw("{\n  \"name\": \"a\\nb\",\r\n\t\"arguments\": {\"x\": 1.0}\n}");
        let line = String::from_utf8(request(5, "tools/call", Some(&params), false, &[])).unwrap();
        assert_eq!(line.matches('\n').count(), 1);
        assert!(line.ends_with("}\n") && !line.contains('\r'));
        let back: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(back["params"], serde_json::from_str::<Value>(params.get()).unwrap());
        assert!(line.contains("1.0"), "numbers keep their spelling: {line}");
        let line = String::from_utf8(request(5, "ping", None, false, &[])).unwrap();
        assert_eq!(line, "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}\n");
        let line = String::from_utf8(refusal(&raw("\"x\""), METHOD_NOT_FOUND, "no \"it\"")).unwrap();
        let back: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(back["id"], "x");
        assert_eq!(back["error"]["code"], METHOD_NOT_FOUND);
        let line = notification("notifications/cancelled", Some(&serde_json::json!({"requestId": 5})));
        assert!(line.ends_with(b"\"params\":{\"requestId\":5}}\n"));
    }

    #[test]
    fn a_progress_token_joins_what_is_there() {
        let params = raw(r#"{"name":"t","_meta":{"k":1},"arguments":{"big":1e400}}"#);
        let line = request(9, "tools/call", Some(&params), true, &[]);
        let text = String::from_utf8(line).unwrap();
        assert!(text.contains(r#""_meta":{"k":1,"progressToken":9}"#), "{text}");
        assert!(text.contains(r#""arguments":{"big":1e400}"#), "{text}");
        let text = String::from_utf8(request(9, "x", None, true, &[])).unwrap();
        assert!(text.contains(r#""params":{"_meta":{"progressToken":9}}"#), "{text}");
        let text = String::from_utf8(request(9, "x", Some(&raw("[1]")), true, &[])).unwrap();
        assert!(text.contains(r#""params":[1]"#), "{text}");
    }

    #[test]
    fn a_stamp_replaces_what_the_caller_wrote() {
        let params = raw(r#"{"name":"t","_meta":{"k":1,"v":"old"}}"#);
        let stamp = [("v", raw(r#"{"new":1.0}"#))];
        let text = String::from_utf8(request(9, "x", Some(&params), false, &stamp)).unwrap();
        assert!(text.contains(r#""_meta":{"k":1,"v":{"new":1.0}}"#), "{text}");
    }

    #[test]
    fn mutated_lines_are_messages_or_none_and_what_is_read_can_be_written() {
        let corpus: [&[u8]; 6] = [
            br#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"h\u00fc \\n"}]}}"#,
            br#"{"jsonrpc":"2.0","id":"s-1","method":"roots/list"}"#,
            br#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":0.5}}"#,
            br#"{"jsonrpc":"2.0","id":8,"error":{"code":-32601,"message":"no such method","data":null}}"#,
            br#"[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","method":"x"}]"#,
            b" {\"id\":null,\"result\":null,\"id\":2} ",
        ];
        crate::util::mutate::each(&corpus, |line| {
            let mut carried = 0;
            read(line, |message| {
                let part = match &message {
                    Message::Request { id, method, params } => {
                        let echoed = answer(id, &serde_json::json!({}));
                        assert!(echoed.ends_with(b"\n") && serde_json::from_slice::<Value>(&echoed).is_ok());
                        method.len() + params.map_or(0, |p| p.get().len())
                    }
                    Message::Notification { method, params } => {
                        method.len() + params.map_or(0, |p| p.get().len())
                    }
                    Message::Answer { outcome, .. } => {
                        outcome.map_or_else(|e| e.get().len(), |r| r.get().len())
                    }
                };
                carried += part;
                if let Message::Request { method, params, .. } | Message::Notification { method, params } =
                    message
                {
                    let again = request(1, &method, params, true, &[]);
                    assert_eq!(again.iter().filter(|b| **b == b'\n').count(), 1, "one line");
                    let mut same = false;
                    read(&again, |m| same = matches!(m, Message::Request { method: m, .. } if m == method));
                    assert!(same, "{}", String::from_utf8_lossy(&again));
                }
            });
            // Escapes aside, which only shrink, what is read was there.
            assert!(carried <= line.len());
            if let Ok(text) = std::str::from_utf8(line) {
                assert!(!deeper_than(text, text.len()));
            }
        });
    }
}
