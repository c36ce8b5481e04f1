//! Makes an HTTP request of a call: the address, the headers, the body. Knows
//! nothing of credentials, and sends nothing.

use super::operation::{Form, Operation, Parameter, Place};
use crate::util::{self, base64, uri};
use serde_json::{Map, Value};

/// A request that is ready but for the credentials.
#[derive(Debug, Default, PartialEq)]
pub struct Request {
    /// The path, encoded, to be put behind the server's address.
    pub path: String,
    /// Names and values of the query.
    pub query: Vec<(String, String)>,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// The body, if there is one.
    pub body: Option<Vec<u8>>,
}

/// The request for these arguments. The error names the argument that does not fit.
pub fn request(operation: &Operation, arguments: &Map<String, Value>) -> Result<Request, String> {
    let mut out = Request { path: operation.path.clone(), ..Request::default() };
    out.headers.push(("Accept".into(), operation.accept.clone()));
    let mut cookies: Vec<String> = Vec::new();
    for parameter in &operation.parameters {
        let Some(value) = arguments.get(&parameter.key).filter(|v| !v.is_null()) else {
            if parameter.place == Place::Path {
                return Err(format!("arguments.{}: is missing", parameter.key));
            }
            continue;
        };
        match parameter.place {
            Place::Path => {
                let text = joined(parameter, value, ",", &|text| uri::encode(text, false));
                // Whoever reads the address might take these for a way up.
                if text.is_empty() || text == "." || text == ".." {
                    let what = "is a part of the path, and cannot be empty, \".\" or \"..\"";
                    return Err(format!("arguments.{}: {what}", parameter.key));
                }
                out.path = out.path.replace(&format!("{{{}}}", parameter.name), &text);
            }
            Place::Query => query(parameter, value, &mut out.query),
            Place::Header => {
                let text = joined(parameter, value, ",", &str::to_owned);
                if text.chars().any(|c| c.is_control() && c != '\t') {
                    return Err(format!("arguments.{}: a header is one line", parameter.key));
                }
                out.headers.push((parameter.name.clone(), text));
            }
            Place::Cookie => {
                let text = joined(parameter, value, ",", &|text| uri::encode(text, false));
                cookies.push(format!("{}={text}", parameter.name));
            }
        }
    }
    if !cookies.is_empty() {
        out.headers.push(("Cookie".into(), cookies.join("; ")));
    }
    if let Some(body) = &operation.body
        && let Some(value) = arguments.get(&body.key)
    {
        let fault = |what: String| format!("arguments.{}: {what}", body.key);
        let mut media = body.media.clone();
        let bytes = match body.form {
            Form::Json => value.to_string().into_bytes(),
            Form::Text => plain(value).into_bytes(),
            Form::Bytes => bytes(value).map_err(fault)?,
            Form::Url => {
                let members = value.as_object().ok_or_else(|| fault("expected an object".into()))?;
                let mut pairs = Vec::new();
                members.iter().for_each(|(name, value)| nested(name, value, &mut pairs));
                encoded(&pairs).into_bytes()
            }
            Form::Multipart => {
                let members = value.as_object().ok_or_else(|| fault("expected an object".into()))?;
                let boundary = util::random_hex(16).map_err(|e| fault(e.message().to_owned()))?;
                media = format!("multipart/form-data; boundary={boundary}");
                multipart(members, &body.binary, &boundary).map_err(fault)?
            }
        };
        out.headers.push(("Content-Type".into(), media));
        out.body = Some(bytes);
    }
    Ok(out)
}

/// A text as it is, everything else as JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Bytes that came as base64.
fn bytes(value: &Value) -> Result<Vec<u8>, String> {
    let text = value.as_str().ok_or("expected bytes as base64")?;
    base64::decode(text).map_err(|at| format!("is not base64 at character {at}"))
}

/// Names and values as a query or a form has them.
pub fn encoded(pairs: &[(String, String)]) -> String {
    let each = pairs
        .iter()
        .map(|(name, value)| format!("{}={}", uri::encode(name, false), uri::encode(value, false)));
    each.collect::<Vec<_>>().join("&")
}

/// A value in one piece: lists with `between` between elements, objects likewise.
fn joined(parameter: &Parameter, value: &Value, between: &str, encode: &dyn Fn(&str) -> String) -> String {
    if parameter.json {
        return encode(&value.to_string());
    }
    let (label, between) = match parameter.style.as_str() {
        "label" => (".".to_owned(), if parameter.explode { "." } else { between }),
        "matrix" => (format!(";{}=", parameter.name), between),
        _ => (String::new(), between),
    };
    let parts: Vec<String> = match value {
        Value::Array(list) => list.iter().map(|each| encode(&plain(each))).collect(),
        Value::Object(members) if parameter.explode => {
            members.iter().map(|(k, v)| format!("{}={}", encode(k), encode(&plain(v)))).collect()
        }
        Value::Object(members) => members.iter().flat_map(|(k, v)| [encode(k), encode(&plain(v))]).collect(),
        other => vec![encode(&plain(other))],
    };
    label + &parts.join(between)
}

/// Adds a parameter to a query in its style.
fn query(parameter: &Parameter, value: &Value, out: &mut Vec<(String, String)>) {
    let name = || parameter.name.clone();
    let between = match parameter.style.as_str() {
        "spaceDelimited" => " ",
        "pipeDelimited" => "|",
        _ => ",",
    };
    match value {
        _ if parameter.json => out.push((name(), value.to_string())),
        Value::Array(list) if parameter.explode => out.extend(list.iter().map(|each| (name(), plain(each)))),
        Value::Object(_) if parameter.style == "deepObject" => nested(&parameter.name, value, out),
        Value::Object(members) if parameter.explode => {
            out.extend(members.iter().map(|(k, v)| (k.clone(), plain(v))));
        }
        other => {
            let form = Parameter {
                key: String::new(),
                name: name(),
                style: "form".into(),
                explode: false,
                ..*parameter
            };
            out.push((name(), joined(&form, other, between, &str::to_owned)));
        }
    }
}

/// `name[member]=value`, as deep as it goes; elements of a list as `name[0]`.
fn nested(name: &str, value: &Value, out: &mut Vec<(String, String)>) {
    match value {
        Value::Object(members) => members.iter().for_each(|(k, v)| nested(&format!("{name}[{k}]"), v, out)),
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(i, v)| nested(&format!("{name}[{i}]"), v, out));
        }
        Value::Null => {}
        other => out.push((name.to_owned(), plain(other))),
    }
}

fn multipart(
    members: &Map<String, Value>,
    binary: &std::collections::BTreeSet<String>,
    boundary: &str,
) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    for (name, value) in members {
        let quoted = name.replace('"', "%22").replace(['\r', '\n'], " ");
        let mut head = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{quoted}\"");
        let content = if binary.contains(name) {
            head.push_str(&format!("; filename=\"{quoted}\"\r\nContent-Type: application/octet-stream"));
            bytes(value).map_err(|what| format!("{name}: {what}"))?
        } else {
            if value.is_object() || value.is_array() {
                head.push_str("\r\nContent-Type: application/json");
            }
            plain(value).into_bytes()
        };
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(b"\r\n\r\n");
        out.extend_from_slice(&content);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::super::document::Document;
    use super::super::filter::Filter;
    use super::super::operation;
    use super::*;
    use serde_json::json;

    fn of(method: &str, path: &str, operation: Value, arguments: Value) -> Result<Request, String> {
        let root = json!({"openapi": "3.0.0", "paths": {path: {method: operation}}});
        let document = Document { root, url: None };
        let all = operation::all(&document, &Filter::default(), 10_000);
        request(&all[0], arguments.as_object().unwrap())
    }

    fn parameter(name: &str, within: &str, more: Value) -> Value {
        let mut out = json!({"name": name, "in": within, "schema": {}});
        out.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        out
    }

    #[test]
    fn parameters_are_written_in_their_styles() {
        let list = json!({"parameters": [
            parameter("id", "path", json!({})), parameter("l", "query", json!({})),
            parameter("c", "query", json!({"explode": false})), parameter("p", "query", json!({"style": "pipeDelimited", "explode": false})),
            parameter("d", "query", json!({"style": "deepObject"})), parameter("X-H", "header", json!({})),
            parameter("k", "cookie", json!({})), parameter("Authorization", "header", json!({})),
        ]});
        let arguments = json!({"id": "a/b ü", "l": [1, 2], "c": ["x", "y"], "p": ["x", "y"],
            "d": {"a": {"b": 1}}, "X-H": true, "k": "v;w", "Authorization": "no"});
        let made = of("get", "/x/{id}/y", list, arguments).unwrap();
        assert_eq!(made.path, "/x/a%2Fb%20%C3%BC/y");
        let flat = encoded(&made.query);
        assert_eq!(flat, "l=1&l=2&c=x%2Cy&p=x%7Cy&d%5Ba%5D%5Bb%5D=1");
        let headers: Vec<String> = made.headers.iter().map(|(n, v)| format!("{n}: {v}")).collect();
        assert_eq!(headers, ["Accept: */*", "X-H: true", "Cookie: k=v%3Bw"]);
    }

    #[test]
    fn a_value_cannot_leave_its_place() {
        let get = || json!({"parameters": [parameter("id", "path", json!({})), parameter("H", "header", json!({}))]});
        for id in ["", ".", ".."] {
            let e = of("get", "/a/{id}", get(), json!({"id": id})).unwrap_err();
            assert!(e.contains("arguments.id"), "{e}");
        }
        assert_eq!(of("get", "/a/{id}", get(), json!({"id": "../x?y#z"})).unwrap().path, "/a/..%2Fx%3Fy%23z");
        let e = of("get", "/a/{id}", get(), json!({"id": 1, "H": "a\r\nX: y"})).unwrap_err();
        assert!(e.contains("arguments.H: a header is one line"), "{e}");
        assert!(of("get", "/a/{id}", get(), json!({})).unwrap_err().contains("missing"));
    }

    #[test]
    fn bodies_of_every_kind() {
        let post =
            |media: &str, schema: Value| json!({"requestBody": {"content": {media: {"schema": schema}}}});
        let body = |media: &str, schema: Value, value: Value| {
            let made = of("post", "/a", post(media, schema), json!({"body": value}))?;
            let kind =
                made.headers.iter().find(|(n, _)| n == "Content-Type").map(|(_, v)| v.clone()).unwrap();
            Ok::<_, String>((kind, String::from_utf8_lossy(&made.body.unwrap()).into_owned()))
        };
        let own = |a: &str, b: &str| Ok((a.to_owned(), b.to_owned()));
        assert_eq!(
            body("application/json", json!({}), json!({"a": [1]})),
            own("application/json", "{\"a\":[1]}")
        );
        assert_eq!(
            body("application/merge-patch+json", json!({}), json!(null)),
            own("application/merge-patch+json", "null")
        );
        let form = "application/x-www-form-urlencoded";
        assert_eq!(
            body(form, json!({}), json!({"a": "x y", "b": {"c": [1]}})),
            own(form, "a=x%20y&b%5Bc%5D%5B0%5D=1")
        );
        assert_eq!(body("text/csv", json!({}), json!("a,b")), own("text/csv", "a,b"));
        assert_eq!(body("image/png", json!({}), json!("aGk=")), own("image/png", "hi"));
        assert!(body("image/png", json!({}), json!("%")).unwrap_err().contains("base64"));
        let schema = json!({"type": "object", "properties": {"f": {"type": "string", "format": "binary"}, "t": {"type": "string"}}});
        let (kind, text) = body("multipart/form-data", schema, json!({"f": "aGk=", "t": "x"})).unwrap();
        let boundary = kind.strip_prefix("multipart/form-data; boundary=").unwrap();
        assert!(
            text.contains(
                "name=\"f\"; filename=\"f\"\r\nContent-Type: application/octet-stream\r\n\r\nhi\r\n"
            ),
            "{text}"
        );
        assert!(text.ends_with(&format!("name=\"t\"\r\n\r\nx\r\n--{boundary}--\r\n")), "{text}");
    }
}
