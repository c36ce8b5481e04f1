//! Answers of operations as tool results: a text that a model reads for few
//! tokens, and the whole as structured content. Knows nothing of where they come from.

use crate::api::ops::{Id, Operation};
use crate::catalog::rows::one_line;
use crate::error::{Error, Kind, Result};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// How much of an error's or a description's text stands in one line of a listing.
const LINE: usize = 160;

/// A successful answer as a tool's result.
///
/// # Errors
/// `Internal`: it could not be written as JSON.
pub fn result(op: &Operation, answer: Box<RawValue>) -> Result<Box<RawValue>> {
    // What a called tool returned is the result; a task may be a program's run.
    let is_run = op.id == Id::Exec || op.id == Id::TaskResult && answer.get().starts_with("{\"ok\":");
    if is_called(op) && !is_run {
        return Ok(answer);
    }
    let parsed: Value = serde_json::from_str(answer.get()).unwrap_or_default();
    if is_run && parsed["ok"] == false {
        return failed_run(&parsed, answer.get());
    }
    let content = match op.id {
        Id::ReadResource => resource(&parsed),
        _ => {
            let text = text(op, &parsed).unwrap_or_else(|| answer.get().to_owned());
            json!([{"type": "text", "text": text}])
        }
    };
    // Every derived tool's answer is an object, as structured content has to be before 2026-07-28.
    RawValue::from_string(format!("{{\"content\":{content},\"structuredContent\":{}}}", answer.get()))
        .map_err(|e| Error::new(Kind::Internal, format!("writing a result: {e}")))
}

/// Whether an operation answers with the result of a server's tool.
pub fn is_called(op: &Operation) -> bool {
    matches!(op.id, Id::Call | Id::TaskResult)
}

/// Whether an operation answers with what a server sent, which is no tool's result.
pub fn is_passed(op: &Operation) -> bool {
    matches!(op.id, Id::ReadResource | Id::GetPrompt | Id::Complete)
}

/// What a resource holds, as content: its text as text, anything else embedded.
fn resource(answer: &Value) -> Value {
    let block = |content: &Value| match content["text"].as_str() {
        Some(text) => json!({"type": "text", "text": text}),
        None => json!({"type": "resource", "resource": content}),
    };
    answer["contents"].as_array().into_iter().flatten().map(block).collect()
}

/// A failure as a tool's result: the model is to read it and to do better.
///
/// It has no structured content: that would have to fit the tool's output schema, and hosts that
/// check drop the whole result, text and all. The error as an object is in `_meta`.
pub fn failure(error: &Error) -> String {
    let text = format!("{}: {}", error.kind().row().word, told(error));
    failed(&[&text], &error.to_json()).to_string()
}

/// A script that failed: what it threw comes first, the whole run after it.
fn failed_run(run: &Value, whole: &str) -> Result<Box<RawValue>> {
    let error = &run["error"];
    let text = format!("{}: {}", text_of(error, "kind"), told(&Error::from_json(error)));
    serde_json::value::to_raw_value(&failed(&[&text, whole], error))
        .map_err(|e| Error::new(Kind::Internal, format!("writing a result: {e}")))
}

/// Under which member of a failure's `_meta` the error is an object.
const ERROR_KEY: &str = "mcpx/error";

fn failed(texts: &[&str], error: &Value) -> Value {
    let content: Vec<Value> = texts.iter().map(|text| json!({"type": "text", "text": text})).collect();
    json!({"content": content, "isError": true, "_meta": {ERROR_KEY: error}})
}

/// The message, and on the next line what to do.
fn told(error: &Error) -> String {
    match error.hint_text() {
        Some(hint) => format!("{}\n{hint}", error.message()),
        None => error.message().to_owned(),
    }
}

/// The answer in few words, where there is a shorter form than JSON.
fn text(op: &Operation, answer: &Value) -> Option<String> {
    let rows = |key: &str| answer.get(key).and_then(Value::as_array);
    let lines = |key: &str, line: &dyn Fn(&Value) -> String, none: &str| {
        let mut lines: Vec<String> = rows(key)?.iter().map(line).collect();
        lines.extend(rows("errors").into_iter().flatten().map(missing));
        lines.extend(rows("failures").into_iter().flatten().map(failed_server));
        Some(if lines.is_empty() { none.to_owned() } else { lines.join("\n") })
    };
    match op.name {
        "namespaces" | "refresh" => lines("namespaces", &namespace, "no server is configured"),
        "search" => lines("hits", &hit, "no tool matches"),
        "types" => {
            lines("types", &|row| text_of(row, "typescript").trim_end().to_owned(), "no server is configured")
        }
        "servers" => lines("servers", &server, "no server is configured"),
        "settings" => lines("settings", &setting, "there are no settings"),
        "resources" => lines("resources", &|row| offered(row, "uri"), "no server has resources"),
        "resourceTemplates" => {
            lines("resourceTemplates", &|row| offered(row, "uriTemplate"), "no server has templates")
        }
        "prompts" => lines("prompts", &prompt, "no server has prompts"),
        "setting" | "setSetting" | "unsetSetting" => Some(setting(answer)),
        _ => None,
    }
}

fn text_of<'a>(row: &'a Value, key: &str) -> &'a str {
    row.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn why(row: &Value) -> String {
    row.get("error").map(|e| one_line(text_of(e, "message"), LINE)).unwrap_or_default()
}

/// `name: could not be read: why`.
fn missing(row: &Value) -> String {
    format!("// {} is missing: {}", text_of(row, "server"), why(row))
}

/// The same of an operation whose failures are the errors themselves.
fn failed_server(error: &Value) -> String {
    format!("// {} is missing: {}", text_of(error, "server"), one_line(text_of(error, "message"), LINE))
}

/// `server: uri`, and what it is.
fn offered(row: &Value, uri: &str) -> String {
    described(format!("{}: {}", text_of(row, "server"), text_of(row, uri)), row)
}

/// `server: name(argument, optional?)`, and what it is.
fn prompt(row: &Value) -> String {
    let argument = |argument: &Value| {
        let mark = if argument["required"] == true { "" } else { "?" };
        format!("{}{mark}", text_of(argument, "name"))
    };
    let arguments: Vec<String> = row["arguments"].as_array().into_iter().flatten().map(argument).collect();
    described(format!("{}: {}({})", text_of(row, "server"), text_of(row, "name"), arguments.join(", ")), row)
}

fn described(mut line: String, row: &Value) -> String {
    let about = one_line(text_of(row, "description"), LINE);
    if !about.is_empty() {
        line.push_str(" // ");
        line.push_str(&about);
    }
    line
}

fn namespace(row: &Value) -> String {
    let ident = text_of(row, "ident");
    match row.get("tools").and_then(Value::as_u64) {
        Some(n) => described(format!("{ident}: {n} tool{}", if n == 1 { "" } else { "s" }), row),
        None if row.get("error").is_some() => {
            format!("{ident}: {}: {}", text_of(row, "state"), why(row))
        }
        None => described(format!("{ident}: {}", text_of(row, "state")), row),
    }
}

fn hit(row: &Value) -> String {
    described(text_of(row, "signature").to_owned(), row)
}

fn server(row: &Value) -> String {
    let state = match row.get("enabled").and_then(Value::as_bool) {
        Some(false) => "disabled",
        _ if row.get("error").is_some() => "unusable",
        _ => "enabled",
    };
    let at = format!("{}:{}", text_of(row, "source"), row.get("line").and_then(Value::as_u64).unwrap_or(0));
    let mut line = described(format!("{}: {state}, {at}", text_of(row, "name")), row);
    let why = why(row);
    if !why.is_empty() {
        line.push_str(": ");
        line.push_str(&why);
    }
    line
}

fn setting(row: &Value) -> String {
    format!("{} = {} ({})", text_of(row, "key"), text_of(row, "text"), text_of(row, "source"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::ops::by_name;

    fn shown(op: &str, answer: &Value) -> Value {
        let raw = serde_json::value::to_raw_value(answer).unwrap();
        serde_json::from_str(result(by_name(op).unwrap(), raw).unwrap().get()).unwrap()
    }

    #[test]
    fn a_listing_is_a_line_each_and_whole_besides() {
        let answer = json!({"namespaces": [
            {"name": "demo", "ident": "demo", "tools": 1, "state": "ready", "description": "a\nb"},
            {"name": "x", "ident": "x", "state": "failed", "error": {"message": "it ended"}},
            {"name": "y", "ident": "y", "state": "disabled"},
        ]});
        let result = shown("namespaces", &answer);
        assert_eq!(result["content"][0]["text"], "demo: 1 tool // a b\nx: failed: it ended\ny: disabled");
        assert_eq!(result["structuredContent"], answer);
        let none = shown("namespaces", &json!({"namespaces": []}));
        assert_eq!(none["content"][0]["text"], "no server is configured");
    }

    #[test]
    fn a_called_tools_result_is_the_result() {
        let answer =
            json!({"content": [{"type": "image", "data": "", "mimeType": "image/png"}], "isError": true});
        assert_eq!(shown("call", &answer), answer);
    }

    #[test]
    fn what_has_no_short_form_is_json() {
        let result = shown("restart", &json!({"restarted": 2}));
        assert_eq!(result["content"][0]["text"], r#"{"restarted":2}"#);
    }

    #[test]
    fn a_failure_says_its_kind_and_what_to_do() {
        let error = Error::new(Kind::NotFound, "there is no server \"x\"").hint("did you mean \"y\"?");
        let result: Value = serde_json::from_str(&failure(&error)).unwrap();
        assert_eq!(result["isError"], true);
        assert_eq!(result["content"][0]["text"], "not-found: there is no server \"x\"\ndid you mean \"y\"?");
        assert_eq!(result["_meta"]["mcpx/error"]["kind"], "not-found");
        assert!(result.get("structuredContent").is_none(), "{result}");
    }

    #[test]
    fn a_script_that_failed_is_an_error_with_its_message_first() {
        let run = json!({"ok": false, "exitCode": 1, "stdout": "so far", "error":
            {"kind": "script", "name": "Error", "message": "no more"}});
        let result = shown("exec", &run);
        assert_eq!(result["isError"], true);
        assert_eq!(result["content"][0]["text"], "script: no more");
        assert!(result["content"][1]["text"].as_str().unwrap().contains("so far"), "{result}");
        assert_eq!(result["_meta"]["mcpx/error"], run["error"]);
        assert!(result.get("structuredContent").is_none(), "{result}");
        let fine = shown("exec", &json!({"ok": true, "exitCode": 0}));
        assert!(fine.get("isError").is_none() && fine["structuredContent"]["ok"] == true, "{fine}");
    }
}
