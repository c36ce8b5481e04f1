//! What the demonstration server offers besides tools: a resource, a template for
//! more of them, and a prompt whose argument can be completed. Knows nothing of
//! how messages travel.

use crate::mcp::jsonrpc::INVALID_PARAMS;
use serde_json::{Value, json};

/// Of the resources: <https://modelcontextprotocol.io>, "Resources", "Error Handling".
const RESOURCE_NOT_FOUND: i64 = -32002;

const GREETING: &str = "demo://greeting";

/// Whom a completion proposes.
const NAMES: [&str; 6] = ["Ada", "Alan", "Barbara", "Edsger", "Grace", "Katherine"];

/// What the server says of these in its capabilities.
pub(super) fn capabilities() -> [(&'static str, Value); 3] {
    [("resources", json!({})), ("prompts", json!({})), ("completions", json!({}))]
}

/// Answers a method of these: the result, or the code and the text of an error. None: another method.
pub(super) fn answer(method: &str, params: &Value) -> Option<Result<Value, (i64, String)>> {
    let answer = match method {
        "resources/list" => Ok(json!({"resources": [{
            "uri": GREETING, "name": "greeting", "title": "A greeting",
            "description": "A line of text.", "mimeType": "text/plain",
        }]})),
        "resources/templates/list" => Ok(json!({"resourceTemplates": [{
            "uriTemplate": format!("{GREETING}/{{name}}"), "name": "greeting for somebody",
            "description": "A line of text for whom you name.", "mimeType": "text/plain",
        }]})),
        "resources/read" => read(params["uri"].as_str().unwrap_or_default()),
        "prompts/list" => Ok(json!({"prompts": [{
            "name": "greet", "title": "Greet somebody", "description": "Asks for a greeting in one sentence.",
            "arguments": [{"name": "name", "description": "Whom to greet.", "required": true}],
        }]})),
        "prompts/get" => get(params),
        "completion/complete" => complete(params),
        _ => return None,
    };
    Some(answer)
}

fn read(uri: &str) -> Result<Value, (i64, String)> {
    let name = match uri.strip_prefix(GREETING) {
        Some("") => "whoever reads this",
        Some(rest) => rest.strip_prefix('/').filter(|name| !name.is_empty()).unwrap_or_default(),
        None => "",
    };
    if name.is_empty() {
        return Err((RESOURCE_NOT_FOUND, format!("there is no resource {uri}")));
    }
    let text = format!("Hello to {name} from the demonstration server.");
    Ok(json!({"contents": [{"uri": uri, "mimeType": "text/plain", "text": text}]}))
}

fn get(params: &Value) -> Result<Value, (i64, String)> {
    if params["name"] != "greet" {
        return Err((INVALID_PARAMS, format!("there is no prompt {}", params["name"])));
    }
    let Some(name) = params["arguments"]["name"].as_str().filter(|name| !name.is_empty()) else {
        return Err((INVALID_PARAMS, "the prompt greet needs its argument name".into()));
    };
    let text = format!("Greet {name} in one friendly sentence.");
    Ok(json!({
        "description": "Asks for a greeting in one sentence.",
        "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
    }))
}

fn complete(params: &Value) -> Result<Value, (i64, String)> {
    let begun = params["argument"]["value"].as_str().unwrap_or_default().to_lowercase();
    let of = &params["ref"];
    let known = of["name"] == "greet" || of["uri"].as_str().is_some_and(|uri| uri.starts_with(GREETING));
    if !known || params["argument"]["name"] != "name" {
        return Err((INVALID_PARAMS, "there is nothing of that name to complete".into()));
    }
    let values: Vec<&str> =
        NAMES.into_iter().filter(|name| name.to_lowercase().starts_with(&begun)).collect();
    Ok(json!({"completion": {"values": values, "total": values.len(), "hasMore": false}}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_listed_can_be_had_and_the_rest_is_refused() {
        let ask = |method: &str, params: Value| answer(method, &params).unwrap();
        let uri = ask("resources/list", json!({})).unwrap()["resources"][0]["uri"].clone();
        let read = ask("resources/read", json!({"uri": uri})).unwrap();
        assert!(read["contents"][0]["text"].as_str().unwrap().starts_with("Hello"));
        let read = ask("resources/read", json!({"uri": "demo://greeting/Ada"})).unwrap();
        assert!(read["contents"][0]["text"].as_str().unwrap().contains("Ada"));
        for uri in ["demo://greeting/", "demo://greetings", "x", ""] {
            assert_eq!(
                ask("resources/read", json!({"uri": uri})).unwrap_err().0,
                RESOURCE_NOT_FOUND,
                "{uri}"
            );
        }
        let greet = json!({"name": "greet", "arguments": {"name": "Ada"}});
        let text = &ask("prompts/get", greet).unwrap()["messages"][0]["content"]["text"];
        assert_eq!(text, "Greet Ada in one friendly sentence.");
        assert!(ask("prompts/get", json!({"name": "greet"})).is_err());
        assert!(ask("prompts/get", json!({"name": "grete", "arguments": {"name": "Ada"}})).is_err());
        let part = |name: &str| json!({"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": name, "value": "a"}});
        let found = ask("completion/complete", part("name")).unwrap();
        assert_eq!(found["completion"]["values"], json!(["Ada", "Alan"]));
        assert!(ask("completion/complete", part("nope")).is_err());
        assert!(answer("tools/list", &json!({})).is_none());
    }
}
