//! Renders the operations table: `docs/api.md` for people, an OpenAPI document
//! for programs. Knows nothing of the daemon.

use super::ops::{self, Field, Operation, Param, Place, Record, Returns, Shape};
use super::records;
use crate::error::KINDS;
use crate::observe::kinds;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// `docs/api.md`.
pub fn markdown() -> String {
    let mut out = String::from(
        "# The daemon's interface\n\n\
         Made from `src/api/ops/` by `make docs`; edit that table, not this page.\n\n\
         JSON over HTTP/1.1, on a unix socket (this user only, no token) and, where `transport.tcp` is on, on \
         loopback with `Authorization: Bearer <token>`. Both are named in `daemon-<key>.json` in the state \
         directory. Unknown fields are ignored, but an unknown parameter of a query with GET is refused with 400; a \
         missing optional field is absent, not null. Times are milliseconds since 1970.\n\n\
         The header `X-Mcpx-Settings` brings settings of the caller along, a JSON object by key: \
         `{\"pool.callTimeout\":\"30s\"}`. They hold for that request alone; with `openRun`, or where a channel is \
         opened, for the calls of that run. Only settings of the scope *call* may be in it: another setting, or a \
         wrong value, is refused with 400; an unknown key is ignored.\n\n\
         An error is `{\"error\":{\"kind\",\"message\",\"hint\"?,\"server\"?,\"tool\"?,\"raw\"?}}` with the status of its \
         kind. When the daemon is full it answers 503 with `Retry-After`.\n\n\
         | operation | request | what for |\n| --- | --- | --- |\n",
    );
    for op in ops::all() {
        let _ = writeln!(
            out,
            "| [{0}](#{1}) | `{2} {3}` | {4} |",
            op.name,
            op.name.to_lowercase(),
            op.method.word(),
            op.path,
            op.help
        );
    }
    for op in ops::all() {
        operation(&mut out, op);
    }
    out.push_str(
        "\n## The channel\n\n\
         `GET /v1/channel?run=ID` with `Connection: Upgrade` and `Upgrade: mcpx-channel` is answered with `101`; from \
         then on both sides send frames: a length (four bytes, big-endian) and as many bytes of UTF-8 JSON. Many \
         requests may be in flight, and answers come in any order. The end of the stream ends the channel and \
         cancels its calls.\n\n\
         | frame | meaning |\n| --- | --- |\n\
         | `{\"id\":N,\"op\":\"call\",\"params\":{…}}` | to the daemon: carry out an operation |\n\
         | `{\"id\":N,\"op\":\"call\",\"params\":{…},\"progress\":true}` | the same, and send progress frames |\n\
         | `{\"cancel\":N}` | to the daemon: nobody waits for N any longer |\n\
         | `{\"id\":N,\"result\":{…}}` | to the program: what the operation returns; for `call` the tool's result itself |\n\
         | `{\"id\":N,\"error\":{…}}` | to the program: it failed |\n\
         | `{\"id\":N,\"progress\":{…}}` | to the program: the server reports progress |\n\n\
         Operations on a channel: ",
    );
    let names: Vec<String> = ops::all().filter(|o| o.on_channel).map(|o| format!("`{}`", o.name)).collect();
    let _ = writeln!(out, "{}.", names.join(", "));
    out.push_str("\n## Kinds of event\n\n| kind | when, and what `data` holds |\n| --- | --- |\n");
    for kind in kinds::ALL {
        let _ = writeln!(out, "| `{}` | {} |", kind.word, kind.help);
    }
    out.push_str("\n## Kinds of error\n\n| kind | status | meaning |\n| --- | --- | --- |\n");
    for row in KINDS {
        let _ = writeln!(out, "| `{}` | {} | {} |", row.word, row.status, row.meaning);
    }
    out.push_str("\n## Records\n");
    for record in all_records() {
        let _ = write!(out, "\n### Record: `{}`\n\n", record.name);
        fields(&mut out, record.fields);
    }
    out
}

fn operation(out: &mut String, op: &Operation) {
    let _ = write!(out, "\n## {}\n\n`{} {}`: {}.", op.name, op.method.word(), op.path, op.help);
    if !op.words.is_empty() {
        let _ = write!(out, " Command: `mcpx {}`.", op.words.join(" "));
    }
    if !op.tool.is_empty() {
        let _ = write!(out, " Tool: `mcpx_{}`.", op.tool);
    }
    out.push('\n');
    if !op.doc.is_empty() {
        let _ = write!(out, "\n{}\n", op.doc);
    }
    if !op.params.is_empty() {
        out.push_str("\n| parameter | in | type | meaning |\n| --- | --- | --- | --- |\n");
        for Param { place, field } in op.params {
            let place = match place {
                Place::Body => "body",
                Place::Path => "path",
                Place::Query => "query",
            };
            let _ = writeln!(
                out,
                "| `{}`{} | {place} | {} | {} |",
                field.name,
                if field.required { "" } else { "?" },
                shape_text(&field.shape),
                field.help
            );
        }
    }
    let returns = match &op.returns {
        Returns::Record(record) => reference(record),
        Returns::Frames => "`101`, then frames; see [the channel](#the-channel)".into(),
        Returns::Document(what) | Returns::Text(what) => (*what).into(),
        Returns::Events(record) => format!("{}, or server-sent events", reference(record)),
    };
    let _ = writeln!(out, "\nReturns {returns}.");
}

fn fields(out: &mut String, fields: &[Field]) {
    out.push_str("| field | type | meaning |\n| --- | --- | --- |\n");
    for field in fields {
        let _ = writeln!(
            out,
            "| `{}`{} | {} | {} |",
            field.name,
            if field.required { "" } else { "?" },
            shape_text(&field.shape),
            field.help
        );
    }
}

fn reference(record: &Record) -> String {
    format!("[{}](#record-{})", record.name, record.name.to_lowercase())
}

fn shape_text(shape: &Shape) -> String {
    match shape {
        Shape::Any => "any JSON".into(),
        Shape::Boolean => "boolean".into(),
        Shape::Integer => "integer".into(),
        Shape::List(inner) => format!("list of {}", shape_text(inner)),
        Shape::Object => "object".into(),
        Shape::Record(record) => reference(record),
        Shape::Text => "string".into(),
    }
}

/// Every record that the table reaches, the error first, each once, in the order of first use.
pub fn all_records() -> Vec<&'static Record> {
    let mut found = Vec::new();
    record_of(&records::ERROR, &mut found);
    for op in ops::all() {
        reach(op.params.iter().map(|p| &p.field), &mut found);
        if let Returns::Record(record) | Returns::Events(record) = &op.returns {
            record_of(record, &mut found);
        }
    }
    found
}

/// Adds the records that fields reach, each once.
pub fn reach(fields: impl IntoIterator<Item = &'static Field>, found: &mut Vec<&'static Record>) {
    fields.into_iter().for_each(|f| visit(&f.shape, found));
}

fn visit(shape: &'static Shape, found: &mut Vec<&'static Record>) {
    match shape {
        Shape::List(inner) => visit(inner, found),
        Shape::Record(record) => record_of(record, found),
        Shape::Any | Shape::Boolean | Shape::Integer | Shape::Object | Shape::Text => {}
    }
}

fn record_of(record: &'static Record, found: &mut Vec<&'static Record>) {
    if !found.iter().any(|r| std::ptr::eq(*r, record)) {
        found.push(record);
        reach(record.fields, found);
    }
}

/// The OpenAPI 3.1 document.
pub fn openapi(version: &str) -> Value {
    let mut paths = Map::new();
    for op in ops::all() {
        let entry = paths.entry(op.path).or_insert_with(|| json!({}));
        entry[op.method.word().to_lowercase()] = describe(op);
    }
    let schemas: Map<String, Value> =
        all_records().into_iter().map(|r| (r.name.to_owned(), object(r.fields))).collect();
    json!({
        "openapi": "3.1.0",
        "info": {"title": "mcpx daemon", "version": version},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    })
}

fn describe(op: &Operation) -> Value {
    let mut out = Map::new();
    out.insert("operationId".into(), op.name.into());
    out.insert("summary".into(), op.help.into());
    if !op.doc.is_empty() {
        out.insert("description".into(), op.doc.into());
    }
    let parameters: Vec<Value> = op
        .params
        .iter()
        .filter(|p| p.place != Place::Body)
        .map(|p| {
            json!({
                "name": p.field.name,
                "in": if p.place == Place::Path { "path" } else { "query" },
                "required": p.field.required,
                "description": p.field.help,
                "schema": schema(&p.field.shape),
            })
        })
        .collect();
    if !parameters.is_empty() {
        out.insert("parameters".into(), parameters.into());
    }
    let body: Vec<&Field> = op.params.iter().filter(|p| p.place == Place::Body).map(|p| &p.field).collect();
    if !body.is_empty() {
        out.insert(
            "requestBody".into(),
            json!({
                "required": body.iter().any(|f| f.required),
                "content": {"application/json": {"schema": object(body)}},
            }),
        );
    }
    let (status, success) = match &op.returns {
        Returns::Record(record) => ("200", content(&json!({"$ref": pointer(record)}), op.help)),
        Returns::Events(record) => {
            let mut answer = content(&json!({"$ref": pointer(record)}), op.help);
            answer["content"]["text/event-stream"] = json!({"schema": {"type": "string"}});
            ("200", answer)
        }
        Returns::Frames => ("101", json!({"description": "frames follow"})),
        Returns::Document(what) => ("200", content(&json!({"type": "object"}), what)),
        Returns::Text(what) => {
            let text = json!({"text/plain": {"schema": {"type": "string"}}});
            ("200", json!({"description": what, "content": text}))
        }
    };
    let mut responses = Map::new();
    responses.insert(status.into(), success);
    let failure = json!({
        "type": "object",
        "required": ["error"],
        "properties": {"error": {"$ref": pointer(&records::ERROR)}},
    });
    responses.insert("default".into(), content(&failure, "it failed"));
    out.insert("responses".into(), responses.into());
    Value::Object(out)
}

fn content(schema: &Value, description: &str) -> Value {
    json!({"description": description, "content": {"application/json": {"schema": schema}}})
}

/// Where an OpenAPI document has its records.
const COMPONENTS: &str = "#/components/schemas/";

fn pointer(record: &Record) -> String {
    format!("{COMPONENTS}{}", record.name)
}

fn object<'a>(fields: impl IntoIterator<Item = &'a Field>) -> Value {
    object_schema(fields, COMPONENTS)
}

/// The JSON Schema of an object with these fields; `base` is where in the document the schemas of
/// records are, each under its name.
pub fn object_schema<'a>(fields: impl IntoIterator<Item = &'a Field>, base: &str) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for field in fields {
        let mut described = schema_at(&field.shape, base);
        described["description"] = field.help.into();
        properties.insert(field.name.into(), described);
        if field.required {
            required.push(Value::from(field.name));
        }
    }
    let mut out = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        out["required"] = required.into();
    }
    out
}

fn schema(shape: &Shape) -> Value {
    schema_at(shape, COMPONENTS)
}

fn schema_at(shape: &Shape, base: &str) -> Value {
    match shape {
        Shape::Any => json!({}),
        Shape::Boolean => json!({"type": "boolean"}),
        Shape::Integer => json!({"type": "integer", "minimum": 0}),
        Shape::List(inner) => json!({"type": "array", "items": schema_at(inner, base)}),
        Shape::Object => json!({"type": "object"}),
        Shape::Record(record) => json!({"$ref": format!("{base}{}", record.name)}),
        Shape::Text => json!({"type": "string"}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_page_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/api.md");
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(committed == markdown(), "docs/api.md is not what the table gives: run `make docs`");
    }

    #[test]
    fn every_reference_in_the_openapi_document_resolves() {
        let document = openapi("1");
        let mut stack = vec![&document];
        let mut seen = 0;
        while let Some(value) = stack.pop() {
            if let Some(target) = value.get("$ref").and_then(Value::as_str) {
                assert!(document.pointer(target.trim_start_matches('#')).is_some(), "{target}");
                seen += 1;
            }
            match value {
                Value::Object(map) => stack.extend(map.values()),
                Value::Array(items) => stack.extend(items),
                _ => {}
            }
        }
        assert!(seen > ops::all().count());
        let ids: usize =
            document["paths"].as_object().unwrap().values().map(|p| p.as_object().unwrap().len()).sum();
        assert_eq!(ids, ops::all().count());
    }

    #[test]
    fn record_names_are_unique() {
        let mut names: Vec<&str> = all_records().iter().map(|r| r.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
