//! An HTTP API with an OpenAPI 3.x document as tools: reads the declaration,
//! makes a request of a call, and a result of the answer.

mod auth;
mod document;
mod filter;
mod operation;
mod request;
mod schema;

use super::fetch::{Answer, Question, exchange};
use super::{Adapter, Limits, duration, fault, known, result};
use crate::error::{Error, Kind, Result};
use crate::mcp::http::{Web, describe, same_origin, shown};
use crate::mcp::{Cancel, Tool};
use crate::util::{Env, base64, uri};
use auth::Credentials;
use document::Document;
use filter::Filter;
use operation::{Operation, Place, is_json};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The members of a declaration.
const MEMBERS: &[&str] =
    &["auth", "baseUrl", "document", "exclude", "headers", "include", "pagination", "timeout"];

/// An API and its operations.
pub struct Api {
    server: String,
    base: String,
    web: Arc<Web>,
    env: Env,
    credentials: Credentials,
    limits: Limits,
    next: Option<Next>,
    tools: Vec<Tool>,
    operations: Vec<Operation>,
}

/// Where an answer says how the next page is had.
struct Next {
    /// The JSON pointer of a value in the answer.
    pointer: String,
    /// The argument that takes it.
    parameter: String,
}

impl Api {
    /// Reads the declaration of a server, and the document that it names.
    ///
    /// # Errors
    /// `Config` when one of them cannot be used; `Unavailable` when the document cannot be had.
    pub fn read(server: &str, declared: &Value, env: &Env, limits: &Limits) -> Result<Api> {
        let wrong = |place: &str, what: &str| fault(server, &format!("openapi.{place}"), what);
        let members = declared.as_object().ok_or_else(|| fault(server, "openapi", "expected an object"))?;
        known(server, "openapi", members, MEMBERS)?;
        let text = |key: &str| match members.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(_) => Err(wrong(key, "expected a text")),
        };
        let list = |key: &str| match members.get(key) {
            None => Ok(Vec::new()),
            Some(Value::Array(list)) => {
                let each = list.iter().map(|v| v.as_str().map(str::to_owned));
                each.collect::<Option<Vec<_>>>().ok_or_else(|| wrong(key, "expected a list of texts"))
            }
            Some(_) => Err(wrong(key, "expected a list of texts")),
        };
        let place = text("document")?.ok_or_else(|| wrong("document", "expected a path or an address"))?;
        let filter = Filter { include: list("include")?, exclude: list("exclude")? };
        let credentials = Credentials::read(server, members)?;
        let next = match members.get("pagination") {
            None => None,
            Some(hint) => Some(pagination(server, hint)?),
        };
        let mut limits = limits.clone();
        if let Some(given) = members.get("timeout") {
            limits.timeout = duration(server, "openapi.timeout", given)?;
        }
        let said = text("baseUrl")?;
        let document = Document::open(place, env, &limits).map_err(|e| e.server(server))?;
        let base = match said {
            Some(base) => base.to_owned(),
            None => base_of(server, &document, &credentials)?,
        };
        let base = base.trim_end_matches('/').to_owned();
        let web = Web::new(&base, env, &limits.ca).map_err(|e| e.server(server))?;
        let operations = operation::all(&document, &filter, limits.schema);
        if operations.is_empty() {
            let what = "the document has no operation, or none that \"include\" and \"exclude\" let through";
            return Err(fault(server, "openapi", what));
        }
        let tools = operations.iter().map(|o| o.tool.clone()).collect();
        let (server, env) = (server.to_owned(), env.clone());
        Ok(Api { server, base, web, env, credentials, limits, next, tools, operations })
    }

    /// Where its requests go.
    pub fn base(&self) -> &str {
        &self.base
    }

    fn request(
        &self,
        operation: &Operation,
        arguments: &Map<String, Value>,
        cancel: &Cancel,
    ) -> std::result::Result<Value, String> {
        let mut made = request::request(operation, arguments)?;
        let base = operation.server.as_deref().unwrap_or(&self.base).trim_end_matches('/');
        // What proves who we are is for the API's own origin and for no other.
        let own = same_origin(&self.base, base).is_some();
        let other;
        let web = match own {
            true => &self.web,
            false => {
                other = Web::new(base, &self.env, &self.limits.ca).map_err(|e| e.message().to_owned())?;
                &other
            }
        };
        if own {
            self.credentials.put(&mut made);
        }
        let mut url = format!("{base}{}", made.path);
        if !made.query.is_empty() {
            url.push(if url.contains('?') { '&' } else { '?' });
            url.push_str(&request::encoded(&made.query));
        }
        let question = Question {
            method: operation.method,
            url,
            headers: &made.headers,
            body: made.body.as_deref(),
            timeout: self.limits.timeout,
            largest: self.limits.output,
        };
        let answer = exchange(web, question, cancel)?;
        Ok(self.result(operation, &answer))
    }

    fn result(&self, operation: &Operation, answer: &Answer) -> Value {
        let what = || format!("{} {}", operation.method, shown(&answer.url));
        if !(200..300).contains(&answer.status) {
            let head = describe(answer.status, "");
            let body = String::from_utf8_lossy(&answer.body);
            let body = body.trim();
            let colon = if body.is_empty() { "" } else { ":\n" };
            let mut failed = result::failed(format!("{} answered {head}{colon}{body}", what()));
            failed["_meta"] = json!({"mcpx/status": answer.status});
            return failed;
        }
        let mut out = if answer.body.is_empty() {
            result::text("")
        } else if is_json(&answer.media) {
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            match serde_json::from_slice::<Value>(&answer.body) {
                Ok(value) if operation.wrapped => result::structured(text, json!({"result": value})),
                Ok(value) => result::structured(text, result::object(value)),
                Err(e) => {
                    return result::failed(format!("{} answered JSON that is none: {e}\n{text}", what()));
                }
            }
        } else {
            content(answer)
        };
        if operation.tool.output_schema.is_some() && out.get("structuredContent").is_none() {
            let text = String::from_utf8_lossy(&answer.body);
            return result::failed(format!("{} was to answer JSON, and did not:\n{text}", what()));
        }
        if let Some(next) = self.next_page(operation, answer) {
            let text = format!("There is a next page; call again with {}", Value::Object(next.clone()));
            if let Some(content) = out["content"].as_array_mut() {
                content.push(json!({"type": "text", "text": text}));
            }
            out["_meta"] = json!({"mcpx/next": next});
        }
        out
    }

    /// The arguments that give the next page, as the answer's `Link` (RFC 8288) or the declaration's hint has it.
    fn next_page(&self, operation: &Operation, answer: &Answer) -> Option<Map<String, Value>> {
        let queried = |name: &str| {
            operation
                .parameters
                .iter()
                .find(|p| p.place == Place::Query && p.name == name)
                .map(|p| p.key.clone())
        };
        if let Some(hint) = &self.next {
            let parameter = operation.parameters.iter().find(|p| p.key == hint.parameter)?;
            let value = serde_json::from_slice::<Value>(&answer.body).ok()?;
            let cursor = value.pointer(&hint.pointer)?;
            let some = !cursor.is_null() && cursor != "" && cursor != false;
            return some.then(|| Map::from_iter([(parameter.key.clone(), cursor.clone())]));
        }
        let next = answer.link.as_deref()?.split(',').find(|link| {
            let relation = link.split(';').skip(1).map(str::trim);
            relation.into_iter().any(|p| p == "rel=\"next\"" || p == "rel=next")
        })?;
        let target = next.trim().strip_prefix('<')?.split_once('>')?.0;
        let query = target.split_once('?')?.1.split('#').next()?;
        let pairs = uri::query(query)?;
        let arguments: Map<String, Value> = pairs
            .into_iter()
            .filter_map(|(name, value)| Some((queried(&name)?, text_or_number(value))))
            .collect();
        (!arguments.is_empty()).then_some(arguments)
    }
}

/// A number where a text is one as JSON would write it: arguments are checked against their types.
fn text_or_number(text: String) -> Value {
    match text.parse::<i64>() {
        Ok(number) if number.to_string() == text => number.into(),
        _ => text.into(),
    }
}

/// An answer that is not JSON: text, pictures and sounds as such, the rest as bytes.
fn content(answer: &Answer) -> Value {
    let media = answer.media.as_str();
    let data = || base64::encode(&answer.body);
    let one = |content: Value| json!({"content": [content]});
    match media.split('/').next() {
        Some("image") if media != "image/svg+xml" => {
            one(json!({"type": "image", "data": data(), "mimeType": media}))
        }
        Some("audio") => one(json!({"type": "audio", "data": data(), "mimeType": media})),
        _ => match std::str::from_utf8(&answer.body) {
            Ok(text) => result::text(text),
            Err(_) => {
                let resource = json!({"uri": shown(&answer.url), "mimeType": media, "blob": data()});
                one(json!({"type": "resource", "resource": resource}))
            }
        },
    }
}

/// The server that a document names.
fn base_of(server: &str, document: &Document, credentials: &Credentials) -> Result<String> {
    let said = document.server(document.root.get("servers"));
    // Without servers the specification has "/", which is where the document came from.
    let base = said.unwrap_or_else(|| document.absolute("/"));
    let hint = "say \"baseUrl\" beside \"document\"";
    if !base.contains("://") {
        let what = format!("the document names no whole address of its server, but \"{base}\"");
        return Err(fault(server, "openapi", what).hint(hint));
    }
    if let Some(own) = &document.url
        && !credentials.is_empty()
        && same_origin(own, &base).is_none()
    {
        let what = format!(
            "the document at {} names {} as its server, which is another place; credentials are not sent there unasked",
            shown(own),
            shown(&base)
        );
        return Err(Error::new(Kind::Config, format!("server \"{server}\": {what}"))
            .server(server)
            .hint(hint));
    }
    Ok(base)
}

fn pagination(server: &str, hint: &Value) -> Result<Next> {
    let place = "openapi.pagination";
    let members = hint.as_object().ok_or_else(|| fault(server, place, "expected an object"))?;
    known(server, place, members, &["next", "parameter"])?;
    let text = |key: &str| {
        let text = members.get(key).and_then(Value::as_str).filter(|t| !t.is_empty());
        text.map(str::to_owned).ok_or_else(|| fault(server, &format!("{place}.{key}"), "expected a text"))
    };
    let (pointer, parameter) = (text("next")?, text("parameter")?);
    if !pointer.starts_with('/') {
        return Err(fault(
            server,
            &format!("{place}.next"),
            "expected a JSON pointer such as \"/meta/next\"",
        ));
    }
    Ok(Next { pointer, parameter })
}

impl Adapter for Api {
    fn name(&self) -> &str {
        &self.server
    }

    fn tools(&self) -> &[Tool] {
        &self.tools
    }

    fn call(&self, tool: &str, arguments: &Map<String, Value>, cancel: &Cancel) -> Value {
        let Some(operation) = self.operations.iter().find(|o| o.tool.name == tool) else {
            return result::failed(format!("no such tool: {tool}"));
        };
        self.request(operation, arguments, cancel).unwrap_or_else(result::failed)
    }
}
