//! The demonstration server's tools as `tools/list` gives them: a few that a
//! newcomer tries, and some with the names and schemas that clients trip over.
//! Knows nothing of what the tools do.

use serde_json::{Value, json};

/// The tools, in the two pages that `tools/list` gives them in, so that a
/// client that forgets the cursor shows it at once.
pub(super) fn pages() -> [Vec<Value>; 2] {
    [everyday(), awkward()]
}

/// A text of this file as JSON. A large `json!` would be many times its size in code; a test reads them all.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

/// A tool that takes an object of `properties`, of which `required` must be given.
fn tool(name: &str, description: &str, properties: Value, required: &[&str]) -> Value {
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    json!({"name": name, "description": description, "inputSchema": schema})
}

fn everyday() -> Vec<Value> {
    let mut add = tool(
        "add",
        "Adds two numbers.",
        json!({
            "a": {"type": "number", "description": "The first number."},
            "b": {"type": "number", "description": "The second number."}
        }),
        &["a", "b"],
    );
    add["outputSchema"] = json!({
        "type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]
    });

    let mut forecast = tool(
        "forecast",
        "Invents a weather forecast; the same city always gets the same one.",
        json!({
            "city": {"type": "string", "minLength": 1, "description": "Where."},
            "days": {"type": "integer", "minimum": 1, "maximum": 7, "default": 3, "description": "How many days."},
            "unit": {"enum": ["celsius", "fahrenheit"], "default": "celsius", "description": "Of the temperatures."}
        }),
        &["city"],
    );
    forecast["outputSchema"] = parsed(
        r##"{
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "unit": {"enum": ["celsius", "fahrenheit"]},
            "days": {"type": "array", "items": {"$ref": "#/$defs/Day"}}
        },
        "required": ["city", "unit", "days"],
        "$defs": {
            "Day": {
                "type": "object",
                "properties": {
                    "day": {"type": "integer", "minimum": 1},
                    "low": {"type": "number"},
                    "high": {"type": "number"},
                    "sky": {"enum": ["clear", "cloudy", "rain", "snow"]},
                    "rain": {"type": ["number", "null"], "description": "Millimetres; null when it stays dry."}
                },
                "required": ["day", "low", "high", "sky", "rain"],
                "additionalProperties": false
            }
        }
    }"##,
    );

    let mut list = vec![
        tool(
            "echo",
            "Answers with the text that it was given.",
            json!({"text": {"type": "string", "description": "The text."}}),
            &["text"],
        ),
        add,
        tool(
            "counter",
            "Counts up and answers with the new count; the count lives as long as the server's process.",
            json!({"by": {"type": "integer", "default": 1, "description": "How far."}}),
            &[],
        ),
        tool("image", "Answers with a small PNG picture.", json!({}), &[]),
        tool(
            "slow",
            "Takes its time, reporting progress after each step.",
            json!({
                "seconds": {"type": "number", "minimum": 0, "maximum": 3600, "default": 1, "description": "How long in all."},
                "steps": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 5, "description": "In how many steps."}
            }),
            &[],
        ),
        tool(
            "fail",
            "Reports an error.",
            json!({"message": {"type": "string", "default": "this tool always fails", "description": "What to say."}}),
            &[],
        ),
        forecast,
    ];
    for tool in &mut list {
        let keeps_state = tool["name"] == "counter";
        tool["annotations"] =
            json!({"readOnlyHint": !keeps_state, "destructiveHint": false, "openWorldHint": false});
    }
    list
}

fn awkward() -> Vec<Value> {
    let note = |what: &str| format!("Has an awkward name ({what}); answers with its name and arguments.");
    let anything = json!({"note": {"type": "string", "description": "Anything."}});
    let mut list: Vec<Value> = [
        ("class", "a reserved word"),
        ("get-weird.name", "a dash and a dot"),
        ("get-weird-name", "like another once the punctuation is gone"),
        ("1st", "starts with a digit"),
        ("tool with spaces", "spaces"),
        ("ünïcode", "letters beyond ASCII"),
    ]
    .into_iter()
    .map(|(name, what)| tool(name, &note(what), anything.clone(), &[]))
    .collect();
    list.push(hostile());
    list
}

/// One tool with what breaks naive generators: recursion, comment ends and
/// template marks in texts, quotes in enums, tuples in both spellings, property
/// names that are no identifiers, references through escaped pointers.
fn hostile() -> Value {
    parsed(
        r##"{
        "name": "hostile",
        "title": "Hostile `schema` */ ${title}",
        "description": "Has a hostile schema: */ ends a comment, /* opens one, `quotes` \"of\" 'each' kind, ${template}, \\u0041, a\u2028line separator.\nSecond line. @deprecated",
        "inputSchema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {
                "Node": {
                    "type": "object",
                    "description": "A node of a tree */",
                    "properties": {
                        "value": {"type": ["string", "null"]},
                        "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}
                    },
                    "required": ["value"],
                    "additionalProperties": false
                },
                "a/b~c d": {"type": "integer", "exclusiveMinimum": 0},
                "Loop": {"$ref": "#/$defs/Loop"}
            },
            "properties": {
                "version": {"const": 2, "description": "Must be 2."},
                "tree": {"$ref": "#/$defs/Node", "description": "Recursive */ indeed."},
                "self": {"$ref": "#"},
                "loop": {"$ref": "#/$defs/Loop"},
                "escaped": {"$ref": "#/$defs/a~1b~0c%20d"},
                "word": {"enum": ["it's", "say \"hi\"", "back`tick", "new\nline", "*/", "", null, 1, 1.5, true]},
                "maybe": {"type": ["string", "null"]},
                "any": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
                "either": {"oneOf": [
                    {"type": "object", "properties": {"kind": {"const": "a"}, "n": {"type": "number"}}, "required": ["kind", "n"]},
                    {"type": "object", "properties": {"kind": {"const": "b"}, "s": {"type": "string"}}, "required": ["kind"]}
                ]},
                "both": {"allOf": [
                    {"type": "object", "properties": {"left": {"type": "string"}}, "required": ["left"]},
                    {"type": "object", "properties": {"right": {"type": "boolean"}}}
                ]},
                "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}], "items": false, "minItems": 2},
                "oldPair": {"type": "array", "items": [{"type": "string"}, {"type": ["number", "null"]}], "additionalItems": false},
                "many": {"type": "array", "items": {"type": ["string", "null"]}},
                "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
                "open": {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": ["string", "number"]}},
                "anything": true,
                "nothing": {},
                "never": false,
                "untyped": {"description": "No type at all.", "properties": {"x": {"type": "number"}}},
                "default": {"type": "boolean", "default": false},
                "a-b": {"type": "string"},
                "1x": {"type": "string"},
                "quo\"te": {"type": "string"},
                "__proto__": {"type": "string"},
                "größe": {"type": "number", "minimum": 0}
            },
            "required": ["version"]
        }
    }"##,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_has_what_its_text_says() {
        let pages = pages();
        let all: Vec<&Value> = pages.iter().flatten().collect();
        assert!(all.iter().all(|tool| tool["inputSchema"]["type"] == "object"), "{all:?}");
        let named = |name: &str| all.iter().find(|tool| tool["name"] == name).unwrap();
        assert_eq!(named("forecast")["outputSchema"]["required"][2], "days");
        let description = named("hostile")["description"].as_str().unwrap();
        assert!(description.contains("\\u0041, a\u{2028}line separator.\nSecond"), "{description}");
    }
}
