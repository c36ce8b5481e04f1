//! An OpenAPI document: having it, finding things in it, and the addresses of
//! its servers. Knows nothing of what its operations become.

use super::super::Limits;
use super::super::fetch::{Question, exchange};
use crate::error::{Error, Kind, Result};
use crate::mcp::Cancel;
use crate::mcp::http::{Web, describe, shown};
use crate::util::Env;
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// How many references may lead to each other before there is something else.
const CHAIN: usize = 32;

/// A document, and where it is from.
#[derive(Debug)]
pub struct Document {
    /// Its content.
    pub root: Value,
    /// Its address; none when it is a file.
    pub url: Option<String>,
}

impl Document {
    /// Reads a file or fetches an address.
    ///
    /// # Errors
    /// `Unavailable` when it cannot be had; `Config` when it is no OpenAPI 3.x document in JSON.
    pub fn open(place: &str, env: &Env, limits: &Limits) -> Result<Document> {
        let lower = place.to_ascii_lowercase();
        let is_url = lower.starts_with("http://") || lower.starts_with("https://");
        let (bytes, url) = match is_url {
            true => fetched(place, env, limits).map(|(bytes, url)| (bytes, Some(url)))?,
            false => (read(Path::new(place), limits)?, None),
        };
        let shown = if is_url { shown(place) } else { place.to_owned() };
        let root = parse(&bytes, &shown)?;
        Ok(Document { root, url })
    }

    /// What a value is when it is a reference into this document: what that leads to.
    pub fn resolve<'d>(&'d self, mut value: &'d Value) -> Option<&'d Value> {
        for _ in 0..CHAIN {
            let Some(reference) = value.get("$ref").and_then(Value::as_str) else { return Some(value) };
            value = self.find(reference)?;
        }
        None
    }

    /// What a reference `#/…` leads to.
    pub fn find(&self, reference: &str) -> Option<&Value> {
        let pointer = reference.strip_prefix('#')?;
        let plain = self.root.pointer(pointer);
        plain.or_else(|| self.root.pointer(&crate::util::uri::decode(pointer, false)?))
    }

    /// The address of the first of a list of `servers`, absolute where it can be.
    pub fn server(&self, servers: Option<&Value>) -> Option<String> {
        let first = servers?.as_array()?.first()?;
        let mut url = first["url"].as_str()?.to_owned();
        for (name, variable) in first["variables"].as_object().into_iter().flatten() {
            let default = variable["default"].as_str().unwrap_or_default();
            url = url.replace(&format!("{{{name}}}"), default);
        }
        Some(self.absolute(&url))
    }

    /// An address relative to the document's own.
    pub fn absolute(&self, url: &str) -> String {
        let Some(own) = &self.url else { return url.to_owned() };
        if url.contains("://") {
            return url.to_owned();
        }
        let own = own.split(['?', '#']).next().unwrap_or_default();
        let host = own.find("://").map_or(0, |at| at + 3);
        let root = own[host..].find('/').map_or(own.len(), |at| host + at);
        if let Some(rest) = url.strip_prefix("//") {
            return format!("{}//{rest}", &own[..host.saturating_sub(2)]);
        }
        match url.starts_with('/') {
            true => format!("{}{url}", &own[..root]),
            false => {
                let dir = own[root..].rfind('/').map_or(own.len(), |at| root + at);
                let mut base = own[..dir].to_owned();
                let mut rest = url.trim_start_matches("./");
                while let Some(up) = rest.strip_prefix("../") {
                    base.truncate(base[root..].rfind('/').map_or(root, |at| root + at));
                    rest = up;
                }
                format!("{base}/{rest}")
            }
        }
    }
}

fn read(path: &Path, limits: &Limits) -> Result<Vec<u8>> {
    let what = format!("the OpenAPI document {}", path.display());
    let file = File::open(path).map_err(|e| Error::unreadable(&what, &e))?;
    let mut bytes = Vec::new();
    let most = limits.document as u64;
    file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(|e| Error::unreadable(&what, &e))?;
    match bytes.len() > limits.document {
        true => Err(Error::new(Kind::TooLarge, format!("reading {what}: it is larger than {most} bytes"))
            .hint("adapters.maxDocument is the limit")),
        false => Ok(bytes),
    }
}

fn fetched(url: &str, env: &Env, limits: &Limits) -> Result<(Vec<u8>, String)> {
    let fail = |what: String| {
        Error::new(Kind::Unavailable, format!("fetching the OpenAPI document {}: {what}", shown(url)))
    };
    let web = Web::new(url, env, &limits.ca)?;
    let headers = [("Accept".to_owned(), "application/json".to_owned())];
    let question = Question {
        method: "GET",
        url: url.to_owned(),
        headers: &headers,
        body: None,
        timeout: limits.timeout,
        largest: limits.document,
    };
    let answer = exchange(&web, question, &Cancel::new()).map_err(fail)?;
    match answer.status {
        200 => Ok((answer.body, answer.url)),
        status => {
            Err(fail(format!("it answered {}", describe(status, &String::from_utf8_lossy(&answer.body)))))
        }
    }
}

fn parse(bytes: &[u8], shown: &str) -> Result<Value> {
    let fail = |what: String| Error::new(Kind::Config, format!("the OpenAPI document {shown} {what}"));
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let first = bytes.iter().find(|b| !b.is_ascii_whitespace());
    if first.is_some_and(|b| *b != b'{') {
        return Err(fail("is not JSON".into())
            .hint("mcpx reads no YAML: convert it once, such as with `yq -o=json` or `npx js-yaml`"));
    }
    let root: Value = serde_json::from_slice(bytes).map_err(|e| fail(format!("is not JSON: {e}")))?;
    let version = root["openapi"].as_str().unwrap_or_default();
    if version.starts_with("3.") {
        return Ok(root);
    }
    let hint = "convert it, such as with `npx swagger2openapi`";
    match root.get("swagger") {
        Some(_) => Err(fail("is a Swagger 2.0 document; mcpx reads OpenAPI 3.x".into()).hint(hint)),
        None => Err(fail("does not say that it is OpenAPI 3.x: the member \"openapi\" is missing".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn addresses_are_relative_to_the_document() {
        let root = json!({"openapi": "3.0.0"});
        let at = Document { root: root.clone(), url: Some("https://h:1/a/b/spec.json?x=/y".into()) };
        for (url, wanted) in [
            ("/v1", "https://h:1/v1"),
            ("v1", "https://h:1/a/b/v1"),
            ("./v1/", "https://h:1/a/b/v1/"),
            ("../v1", "https://h:1/a/v1"),
            ("../../../v1", "https://h:1/v1"),
            ("http://other/x", "http://other/x"),
            ("//other/x", "https://other/x"),
        ] {
            assert_eq!(at.absolute(url), wanted, "{url}");
        }
        let servers = json!([{"url": "https://{r}.h/{v}", "variables": {"r": {"default": "eu"}, "v": {"default": "v2"}}}]);
        assert_eq!(Document { root, url: None }.server(Some(&servers)).as_deref(), Some("https://eu.h/v2"));
    }

    #[test]
    fn references_that_lead_in_a_circle_lead_nowhere() {
        let root =
            json!({"a": {"$ref": "#/b"}, "b": {"$ref": "#/a"}, "c": {"$ref": "#/d~1e"}, "d/e": {"x": 1}});
        let document = Document { root, url: None };
        assert_eq!(document.resolve(&document.root["a"]), None);
        assert_eq!(document.resolve(&document.root["c"]), Some(&json!({"x": 1})));
        assert_eq!(document.resolve(&json!({"$ref": "other.json#/x"})), None);
    }

    #[test]
    fn what_is_no_such_document_is_said() {
        for (text, part) in [
            ("openapi: 3.0.0\n", "is not JSON"),
            ("{\"openapi\": ", "is not JSON: "),
            ("{\"swagger\": \"2.0\"}", "Swagger 2.0"),
            ("{}", "\"openapi\" is missing"),
        ] {
            let e = parse(text.as_bytes(), "x.yaml").unwrap_err();
            assert!(e.message().contains(part), "{text}: {}", e.message());
        }
        assert!(parse(b"\xef\xbb\xbf {\"openapi\": \"3.1.0\"}", "x").is_ok());
    }
}
