//! The operations of an OpenAPI document as tools: names, schemas, hints, and
//! what it takes to make a request of a call. Sends nothing.

use super::document::Document;
use super::filter::Filter;
use super::schema::{Piece, Schemas, Way};
use crate::mcp::Tool;
use serde_json::{Map, Value, json};
use std::collections::{BTreeSet, HashSet};

/// The methods of operations, as a document writes them and as HTTP does.
const METHODS: &[(&str, &str)] = &[
    ("get", "GET"),
    ("put", "PUT"),
    ("post", "POST"),
    ("delete", "DELETE"),
    ("patch", "PATCH"),
    ("head", "HEAD"),
];

/// The longest name of a tool that every client takes.
const NAME: usize = 64;

/// One operation.
#[derive(Debug)]
pub struct Operation {
    /// As it is offered.
    pub tool: Tool,
    /// The HTTP method.
    pub method: &'static str,
    /// The path, with its placeholders.
    pub path: String,
    /// The server that it alone has.
    pub server: Option<String>,
    /// What goes into path, query, headers and cookies.
    pub parameters: Vec<Parameter>,
    /// What goes into the body.
    pub body: Option<Body>,
    /// What kinds of answer it takes, for `Accept`.
    pub accept: String,
    /// The structured result is the answer as member `result`.
    pub wrapped: bool,
}

/// Where a parameter goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Into the path.
    Path,
    /// Into the query.
    Query,
    /// A header.
    Header,
    /// A cookie.
    Cookie,
}

/// One parameter.
#[derive(Debug)]
pub struct Parameter {
    /// The argument's name.
    pub key: String,
    /// Its own name.
    pub name: String,
    /// Where it goes.
    pub place: Place,
    /// How lists and objects are written.
    pub style: String,
    /// A list's elements are written one by one.
    pub explode: bool,
    /// It is written as JSON.
    pub json: bool,
}

/// The request's body.
#[derive(Debug)]
pub struct Body {
    /// The argument's name.
    pub key: String,
    /// Its media type.
    pub media: String,
    /// How it is written.
    pub form: Form,
    /// Members that are base64 in the arguments and bytes in the request.
    pub binary: BTreeSet<String>,
}

/// How a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// JSON.
    Json,
    /// `name=value&…`.
    Url,
    /// Parts with a boundary between them.
    Multipart,
    /// A text as it is.
    Text,
    /// Bytes, base64 in the arguments.
    Bytes,
}

/// Whether a media type is JSON.
pub fn is_json(media: &str) -> bool {
    let plain = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    plain == "application/json" || plain.ends_with("+json") || plain == "*/*" || plain == "text/json"
}

/// All operations that a filter lets through, in the order of path and method.
pub fn all(document: &Document, filter: &Filter, limit: usize) -> Vec<Operation> {
    let reader = Reader { document, schemas: Schemas::new(document), limit };
    let mut taken: HashSet<String> = HashSet::new();
    let mut out = Vec::new();
    for (path, item) in document.root["paths"].as_object().into_iter().flatten() {
        let Some(item) = document.resolve(item) else { continue };
        for (key, method) in METHODS {
            let Some(operation) = item.get(*key).filter(|o| o.is_object()) else { continue };
            let id = operation["operationId"].as_str();
            let name = name(id, method, path);
            let tags = operation["tags"].as_array().map(Vec::as_slice).unwrap_or_default();
            let tags: Vec<&str> = tags.iter().filter_map(Value::as_str).collect();
            if !filter.lets_through(&[id.unwrap_or(&name), &name], &tags, method, path) {
                continue;
            }
            let name = unique(name, &mut taken);
            out.push(reader.operation(name, path, method, item, operation));
        }
    }
    out
}

/// A tool's name: the operation's id, else method and path, in letters that every client takes.
fn name(id: Option<&str>, method: &str, path: &str) -> String {
    let made = format!("{}_{path}", method.to_ascii_lowercase());
    let text = id.map(str::trim).filter(|id| !id.is_empty()).unwrap_or(&made);
    let mut out = String::new();
    for c in text.chars() {
        let safe = c.is_ascii_alphanumeric() || c == '-' || c == '_';
        match safe {
            true => out.push(c),
            false if out.is_empty() || out.ends_with('_') => {}
            false => out.push('_'),
        }
    }
    out.truncate(NAME);
    let out = out.trim_matches('_').to_owned();
    if out.is_empty() { method.to_ascii_lowercase() } else { out }
}

fn unique(name: String, taken: &mut HashSet<String>) -> String {
    let mut out = name.clone();
    let mut number = 2;
    while !taken.insert(out.clone()) {
        let end = format!("_{number}");
        out = format!("{}{end}", &name[..name.len().min(NAME - end.len())]);
        number += 1;
    }
    out
}

struct Reader<'d> {
    document: &'d Document,
    schemas: Schemas<'d>,
    limit: usize,
}

impl Reader<'_> {
    fn operation(
        &self,
        name: String,
        path: &str,
        method: &'static str,
        item: &Value,
        operation: &Value,
    ) -> Operation {
        let mut input = Input::default();
        let parameters = self.parameters(item, operation, &mut input);
        let body = operation.get("requestBody").and_then(|body| self.document.resolve(body));
        let body = body.and_then(|body| self.body(body, &mut input));
        let (definitions, _) = self.schemas.definitions(&input.refs, Way::In, self.limit);
        let mut schema = json!({
            "type": "object",
            "properties": input.properties,
            "additionalProperties": false,
        });
        if !input.required.is_empty() {
            schema["required"] = input.required.into();
        }
        if !definitions.is_empty() {
            schema["$defs"] = definitions.into();
        }
        let (accept, output) = self.output(operation);
        let (output_schema, wrapped) = match output {
            Some((schema, wrapped)) => (Some(schema), wrapped),
            None => (None, false),
        };
        let servers = operation.get("servers").or_else(|| item.get("servers"));
        let tool = Tool {
            title: operation["summary"].as_str().map(str::to_owned),
            description: Some(description(operation, method, path)),
            input_schema: schema,
            output_schema,
            annotations: Some(hints(method)),
            ..Tool::named(&name)
        };
        let server = self.document.server(servers);
        Operation { tool, method, path: path.to_owned(), server, parameters, body, accept, wrapped }
    }

    /// The parameters of an operation; those of its path come first, and it may replace them.
    fn parameters(&self, item: &Value, operation: &Value, input: &mut Input) -> Vec<Parameter> {
        let mut found: Vec<&Value> = Vec::new();
        for list in [&item["parameters"], &operation["parameters"]] {
            for parameter in list.as_array().into_iter().flatten() {
                let Some(parameter) = self.document.resolve(parameter) else { continue };
                let same =
                    |other: &&Value| other["name"] == parameter["name"] && other["in"] == parameter["in"];
                match found.iter().position(same) {
                    Some(at) => found[at] = parameter,
                    None => found.push(parameter),
                }
            }
        }
        found.into_iter().filter_map(|parameter| self.parameter(parameter, input)).collect()
    }

    fn parameter(&self, parameter: &Value, input: &mut Input) -> Option<Parameter> {
        let name = parameter["name"].as_str()?;
        let within = parameter["in"].as_str()?;
        let (place, style) = match within {
            "path" => (Place::Path, "simple"),
            "query" => (Place::Query, "form"),
            "header" => (Place::Header, "simple"),
            "cookie" => (Place::Cookie, "form"),
            _ => return None,
        };
        // The specification has these three ignored: they follow from the body and from authentication.
        let fixed = ["accept", "content-type", "authorization"];
        if place == Place::Header && fixed.contains(&name.to_ascii_lowercase().as_str()) {
            return None;
        }
        let content = parameter["content"].as_object().and_then(|content| content.iter().next());
        let schema = content.map_or(&parameter["schema"], |(_, media)| &media["schema"]);
        let required = place == Place::Path || parameter["required"] == true;
        let key = input.add(
            name,
            within,
            required,
            self.schemas.convert(schema, Way::In),
            &parameter["description"],
        );
        let style = parameter["style"].as_str().unwrap_or(style).to_owned();
        let explode = parameter["explode"].as_bool().unwrap_or(style == "form");
        let json = content.is_some_and(|(media, _)| is_json(media));
        Some(Parameter { key, name: name.to_owned(), place, style, explode, json })
    }

    fn body(&self, body: &Value, input: &mut Input) -> Option<Body> {
        let content = body["content"].as_object()?;
        let form = |media: &str| {
            let plain = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
            match plain.as_str() {
                _ if is_json(&plain) => Form::Json,
                "application/x-www-form-urlencoded" => Form::Url,
                "multipart/form-data" => Form::Multipart,
                "application/xml" | "application/yaml" | "application/graphql" => Form::Text,
                text if text.starts_with("text/") || text.ends_with("+xml") => Form::Text,
                _ => Form::Bytes,
            }
        };
        let order = [Form::Json, Form::Url, Form::Multipart, Form::Text, Form::Bytes];
        let best = |(media, _): &(&String, &Value)| order.iter().position(|f| *f == form(media));
        let (media, described) = content.iter().min_by_key(best)?;
        let form = form(media);
        let mut binary = BTreeSet::new();
        let piece = match form {
            Form::Json | Form::Url => self.schemas.convert(&described["schema"], Way::In),
            Form::Multipart => {
                let schema = self.document.resolve(&described["schema"]).unwrap_or(&Value::Null);
                let mut piece = self.schemas.convert(schema, Way::In);
                for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                    if property["format"] == "binary" || property.get("contentMediaType").is_some() {
                        binary.insert(name.clone());
                        piece.schema["properties"][name] = base64_text();
                    }
                }
                piece
            }
            Form::Text => Piece { schema: json!({"type": "string"}), ..Piece::default() },
            Form::Bytes => Piece { schema: base64_text(), ..Piece::default() },
        };
        let media = if media == "*/*" { "application/json".to_owned() } else { media.clone() };
        let key = input.add("body", "request", body["required"] == true, piece, &body["description"]);
        Some(Body { key, media, form, binary })
    }

    /// What an operation answers: for `Accept`, and a schema where one is sure. A client may
    /// refuse a result that is not as its schema says, so that one which fits only some
    /// answers is none.
    fn output(&self, operation: &Value) -> (String, Option<(Value, bool)>) {
        let responses = operation["responses"].as_object();
        let good = responses.into_iter().flatten().filter(|(status, _)| status.starts_with('2'));
        let good: Vec<&Value> = good.filter_map(|(_, response)| self.document.resolve(response)).collect();
        let mut kinds: BTreeSet<&str> = BTreeSet::new();
        let mut schemas: Vec<Option<&Value>> = Vec::new();
        for response in &good {
            let content = response["content"].as_object();
            let media: Vec<&String> = content.into_iter().flatten().map(|(media, _)| media).collect();
            kinds.extend(media.iter().map(|m| m.as_str()));
            let json = content.into_iter().flatten().find(|(media, _)| is_json(media));
            schemas
                .push(json.filter(|_| media.len() == 1).and_then(|(_, described)| described.get("schema")));
        }
        let json = kinds.iter().find(|kind| is_json(kind));
        let accept = json.map_or_else(|| "*/*".to_owned(), |kind| format!("{kind}, */*;q=0.5"));
        let Some(Some(first)) = schemas.first() else { return (accept, None) };
        if schemas.iter().any(|other| *other != Some(first)) {
            return (accept, None);
        }
        let piece = self.schemas.convert(first, Way::Out);
        let (definitions, whole) = self.schemas.definitions(&piece.refs, Way::Out, self.limit);
        if !whole || piece.schema.to_string().len() > self.limit {
            return (accept, None);
        }
        let wrapped = !self.is_object(first);
        let mut schema = match wrapped {
            true => json!({"type": "object", "required": ["result"], "properties": {"result": piece.schema}}),
            // MCP wants the word "object" at the root, where a reference does not say it.
            false if piece.schema.get("$ref").is_some() => json!({"type": "object", "allOf": [piece.schema]}),
            false => piece.schema,
        };
        schema["type"] = "object".into();
        if !definitions.is_empty() {
            schema["$defs"] = definitions.into();
        }
        (accept, Some((schema, wrapped)))
    }

    /// Whether values of a schema are objects and nothing else.
    fn is_object(&self, schema: &Value) -> bool {
        let Some(schema) = self.document.resolve(schema) else { return false };
        schema["nullable"] != true
            && (schema["type"] == "object"
                || (schema.get("type").is_none() && schema.get("properties").is_some()))
    }
}

/// The arguments of a tool as they are gathered.
#[derive(Default)]
struct Input {
    properties: Map<String, Value>,
    required: Vec<Value>,
    refs: BTreeSet<String>,
}

impl Input {
    /// Adds an argument under its own name, or, where that is taken, under one with its place.
    fn add(&mut self, name: &str, within: &str, required: bool, piece: Piece, description: &Value) -> String {
        let mut key = name.to_owned();
        while self.properties.contains_key(&key) {
            key = format!("{within}_{key}");
        }
        let mut schema = if piece.schema.is_object() { piece.schema } else { json!({}) };
        if let (Some(text), None) = (description.as_str(), schema.get("description")) {
            schema["description"] = text.into();
        }
        self.refs.extend(piece.refs);
        self.properties.insert(key.clone(), schema);
        if required {
            self.required.push(key.clone().into());
        }
        key
    }
}

fn base64_text() -> Value {
    json!({"type": "string", "contentEncoding": "base64", "description": "bytes as base64"})
}

fn description(operation: &Value, method: &str, path: &str) -> String {
    let texts = [&operation["summary"], &operation["description"]];
    let mut parts: Vec<String> = Vec::new();
    for text in texts.iter().filter_map(|text| text.as_str()).map(str::trim).filter(|text| !text.is_empty()) {
        if !parts.iter().any(|part| part == text) {
            parts.push(text.to_owned());
        }
    }
    if operation["deprecated"] == true {
        parts.push("Deprecated.".into());
    }
    parts.push(format!("{method} {path}"));
    parts.join("\n\n")
}

/// What a method says of an operation (RFC 9110, 9.2).
fn hints(method: &str) -> Value {
    let read_only = matches!(method, "GET" | "HEAD");
    let mut hints = json!({"readOnlyHint": read_only, "openWorldHint": true});
    if !read_only {
        hints["destructiveHint"] = matches!(method, "DELETE" | "PUT" | "PATCH").into();
        hints["idempotentHint"] = matches!(method, "DELETE" | "PUT").into();
    }
    hints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_and_unique() {
        for (id, wanted) in [
            (Some("repos/list-for-org"), "repos_list-for-org"),
            (Some("  "), "get_pets_id"),
            (None, "get_pets_id"),
            (Some("日本"), "get"),
            (Some("a..b  c"), "a_b_c"),
        ] {
            assert_eq!(name(id, "GET", "/pets/{id}"), wanted, "{id:?}");
        }
        let mut taken = HashSet::new();
        let long = name(Some(&"x".repeat(100)), "GET", "/");
        assert_eq!(long.len(), NAME);
        assert_eq!(unique(long.clone(), &mut taken), long);
        let second = unique(long.clone(), &mut taken);
        assert!(second.len() == NAME && second.ends_with("x_2"), "{second}");
    }
}
