//! The form that a question asks for: its defaults, whether an answer fits it,
//! and how it is shown. Knows nothing of who asks.

use super::format;
use crate::catalog::validate;
use serde_json::{Map, Value, json};

/// The answer to a question that is accepted with this content.
///
/// # Errors
/// What does not fit, as the end of a sentence.
pub fn accepted(params: &Value, content: Option<Value>) -> Result<Value, String> {
    if params["mode"] == "url" {
        return match content {
            None => Ok(json!({"action": "accept"})),
            Some(_) => Err("it asks to open a URL, and takes no content".into()),
        };
    }
    let schema = &params["requestedSchema"];
    let mut filled = match content {
        None => Map::new(),
        Some(Value::Object(members)) => members,
        Some(_) => return Err("the content must be a JSON object".into()),
    };
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(default) = property.get("default")
            && !filled.contains_key(name)
        {
            filled.insert(name.clone(), default.clone());
        }
    }
    let content = Value::Object(filled);
    if schema.is_object() {
        validate::arguments(schema, &content)?;
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if let (Some(text), Some(wanted)) = (content[name.as_str()].as_str(), property["format"].as_str())
            && !format::has(text, wanted)
        {
            let like = format::example(wanted).unwrap_or_default();
            return Err(format!("{name} must be a {wanted} such as {like}, and is {text:?}"));
        }
    }
    Ok(json!({"action": "accept", "content": content}))
}

/// A line for each field, each beginning with a line break.
pub fn described(schema: &Value) -> String {
    let mut text = String::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let mut notes = vec![kind(property)];
        if required(schema, name) {
            notes.push("required".into());
        }
        if let Some(default) = property.get("default") {
            notes.push(format!("default {default}"));
        }
        let said = property["description"].as_str().or(property["title"].as_str()).unwrap_or_default();
        let colon = if said.is_empty() { "" } else { ": " };
        text.push_str(&format!("\n  {name} ({}){colon}{said}", notes.join(", ")));
    }
    text
}

fn required(schema: &Value, name: &str) -> bool {
    schema["required"].as_array().is_some_and(|all| all.iter().any(|n| n == name))
}

/// What a field takes, in words.
fn kind(property: &Value) -> String {
    let choices = choices(property);
    match property["type"].as_str() {
        Some("array") => format!("any of {}", choices.join(", ")),
        _ if !choices.is_empty() => format!("one of {}", choices.join(", ")),
        Some(kind) => match property["format"].as_str() {
            Some(format) => format!("{kind}, {format}"),
            None => kind.to_owned(),
        },
        None => "any".to_owned(),
    }
}

/// The values that a field may be chosen from, in each of the ways in which MCP writes them.
fn choices(property: &Value) -> Vec<String> {
    let plain = |list: &Value| list.as_array().cloned().unwrap_or_default();
    let titled = |list: &Value| plain(list).iter().map(|o| o["const"].clone()).collect::<Vec<_>>();
    let items = &property["items"];
    let all = [
        plain(&property["enum"]),
        titled(&property["oneOf"]),
        titled(&property["anyOf"]),
        plain(&items["enum"]),
        titled(&items["anyOf"]),
    ];
    all.concat().iter().map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned)).collect()
}

/// An answer that shows what is wanted: what is required, with defaults and choices where there are some.
pub fn example(schema: &Value) -> String {
    let mut members = Map::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if !required(schema, name) && property.get("default").is_some() {
            continue;
        }
        let chosen = choices(property);
        let value = match (property.get("default"), chosen.first(), property["type"].as_str()) {
            (Some(default), ..) => default.clone(),
            (None, Some(first), Some("array")) => json!([first]),
            (None, Some(first), _) => json!(first),
            (None, None, Some("boolean")) => json!(true),
            (None, None, Some("integer" | "number")) => property.get("minimum").cloned().unwrap_or(json!(1)),
            _ => json!(property["format"].as_str().and_then(format::example).unwrap_or("…")),
        };
        members.insert(name.clone(), value);
    }
    Value::Object(members).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Value {
        json!({"type": "object", "required": ["seats", "who"], "properties": {
            "who": {"type": "string", "title": "Name"},
            "seats": {"type": "integer", "minimum": 2, "description": "How many"},
            "mail": {"type": "string", "format": "email"},
            "class": {"type": "string", "enum": ["first", "second"], "default": "second"},
            "meals": {"type": "array", "items": {"anyOf": [{"const": "v", "title": "Vegan"}]}}}})
    }

    #[test]
    fn defaults_are_filled_in_and_the_rest_is_checked() {
        let params = json!({"message": "?", "requestedSchema": schema()});
        let answer = accepted(&params, Some(json!({"who": "Ada", "seats": 3}))).unwrap();
        assert_eq!(answer["content"], json!({"who": "Ada", "seats": 3, "class": "second"}));
        for wrong in [
            json!({"who": "Ada"}),
            json!({"who": 1, "seats": 3}),
            json!([]),
            json!({"who": "a", "seats": 3, "mail": "zz"}),
            json!({"who": "a", "seats": 3, "class": "third"}),
        ] {
            assert!(accepted(&params, Some(wrong.clone())).is_err(), "{wrong}");
        }
        let url = json!({"mode": "url", "url": "https://example.com/"});
        assert_eq!(accepted(&url, None).unwrap(), json!({"action": "accept"}));
        assert!(accepted(&url, Some(json!({}))).is_err());
    }

    #[test]
    fn a_form_is_shown_with_an_answer_that_fits_it() {
        let text = described(&schema());
        assert!(text.contains("\n  seats (integer, required): How many"), "{text}");
        assert!(text.contains("\n  class (one of first, second, default \"second\")"), "{text}");
        assert!(text.contains("\n  meals (any of v)"), "{text}");
        let mut example: Value = serde_json::from_str(&example(&schema())).unwrap();
        assert_eq!(example["seats"], 2);
        example["who"] = json!("Ada");
        accepted(&json!({"requestedSchema": schema()}), Some(example)).unwrap();
    }
}
