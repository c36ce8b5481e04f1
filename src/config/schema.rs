//! Renders the JSON Schema of a configuration file from the tables of settings
//! and of a server's members, for editors that check while one types.

use super::fields::{FIELDS, OPTIONS, SYNONYMS};
use super::oauth::OAUTH;
use crate::settings::{self, ALL, Declared, Kind};
use serde_json::{Map, Value, json};

/// The schema (draft-07, the one that editors know best) of a configuration file.
pub fn schema() -> Value {
    let mut root = Map::new();
    let servers = json!({
        "description": "the servers, by name",
        "type": "object",
        "additionalProperties": {"$ref": "#/definitions/server"},
    });
    root.insert("$schema".into(), json!({"type": "string"}));
    root.insert("mcpServers".into(), servers.clone());
    root.insert("servers".into(), servers);
    root.insert("inputs".into(), json!({"description": "of another host; passed over"}));
    root.insert(
        "presets".into(),
        json!({
            "description": "named lists of mcpx's own flags, one token an entry: --flag or --flag=value",
            "type": "object",
            "additionalProperties": {"type": "array", "items": {"type": "string", "pattern": "^-+[^-]"}},
        }),
    );
    for setting in ALL.iter().filter(|d| !d.spec().bootstrap) {
        let described = described(*setting);
        let Some((family, name)) = setting.key().split_once('.') else {
            root.insert(setting.key().into(), described);
            continue;
        };
        let object = root
            .entry(family)
            .or_insert_with(|| json!({"type": "object", "additionalProperties": false, "properties": {}}));
        object["properties"][name] = described.clone();
        root.insert(setting.key().into(), described);
    }
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "The configuration of mcpx",
        "type": "object",
        "properties": root,
        "additionalProperties": false,
        "definitions": {"server": server()},
    })
}

fn described(setting: &dyn Declared) -> Value {
    let mut out = of_kind(&setting.kind());
    let doc = [setting.help(), setting.doc()].join(". ");
    out["description"] = format!("{}.", doc.trim().trim_end_matches('.')).into();
    if !setting.secret() {
        let default = settings::Settings::defaults().explain(setting.key());
        out["default"] = default.map(|row| row.value.to_json()).unwrap_or_default();
    }
    out
}

/// What a value of a kind may be. Whether a number lies in a unit's range only
/// mcpx itself can tell; its shape is checked here.
fn of_kind(kind: &Kind) -> Value {
    match kind {
        Kind::Bool => json!({"type": "boolean"}),
        Kind::Int(min, max) => json!({"type": "integer", "minimum": min, "maximum": max}),
        Kind::Duration(..) => json!({"anyOf": [
            {"type": "string", "pattern": "^ *(0|([0-9]+(\\.[0-9]+)?(d|h|m|s|ms|us|ns))+) *$"},
            {"type": "integer", "minimum": 0, "maximum": 0},
        ]}),
        Kind::Bytes(min, max) => json!({"anyOf": [
            {"type": "string", "pattern": "^ *[0-9]+(\\.[0-9]+)? *([KkMmGgTt]?[Ii]?[Bb])? *$"},
            {"type": "integer", "minimum": min, "maximum": max},
        ]}),
        Kind::Enum(choices) => {
            let (open, fixed): (Vec<_>, Vec<_>) = choices.iter().partition(|(word, _)| word.ends_with("<x>"));
            let words: Vec<&str> = fixed.iter().map(|(word, _)| *word).collect();
            let mut each = vec![json!({"enum": words})];
            each.extend(open.iter().map(|(word, _)| {
                json!({"type": "string", "pattern": format!("^{}.", word.trim_end_matches("<x>"))})
            }));
            if each.len() == 1 { each.remove(0) } else { json!({"anyOf": each}) }
        }
        Kind::Text | Kind::Path | Kind::Source | Kind::Secret => json!({"type": "string"}),
        Kind::List => json!({"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]}),
        Kind::Paths => json!({"anyOf": [
            {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
            {"type": "string"},
        ]}),
        Kind::Json => json!({"type": "object"}),
    }
}

/// A server's block. Members of other hosts are allowed in it, and not in its `mcpx` block.
fn server() -> Value {
    let (text, flag) = (json!({"type": "string"}), json!({"type": "boolean"}));
    let texts = json!({"type": "array", "items": text});
    let pairs = json!({"type": "object", "additionalProperties": text});
    let member = |name: &str, meaning: &str| {
        let mut shape = match name {
            "command" | "cwd" | "url" | "serverUrl" | "httpUrl" | "description" | "aliasOf" => text.clone(),
            "args" | "tools" | "excludeTools" | "extraIncludeTools" | "profiles" => texts.clone(),
            "env" | "headers" => pairs.clone(),
            "oauth" => oauth(&text),
            "enabled" | "disabled" => flag.clone(),
            _ => match ALL.iter().find(|d| d.family() == "pool" && d.key().ends_with(&format!(".{name}"))) {
                Some(setting) => of_kind(&setting.kind()),
                None => json!({}),
            },
        };
        shape["description"] = meaning.replace('`', "").into();
        shape
    };
    let mut options = Map::new();
    for (name, meaning) in OPTIONS {
        options.insert((*name).into(), member(name, meaning));
    }
    let mut fields = Map::new();
    for (name, meaning) in FIELDS.iter().filter(|(name, _)| *name != "mcpx") {
        fields.insert((*name).into(), member(name, meaning));
    }
    for name in SYNONYMS {
        fields.insert((*name).into(), member(name, "another host's name for the same"));
    }
    fields.insert(
        "mcpx".into(),
        json!({
            "description": "options of mcpx's own",
            "type": "object",
            "additionalProperties": false,
            "properties": options,
        }),
    );
    json!({"type": "object", "properties": fields})
}

/// What an `oauth` block may hold.
fn oauth(text: &Value) -> Value {
    let mut members = Map::new();
    for (name, meaning) in OAUTH {
        let mut shape = text.clone();
        if *name == "grant" {
            shape["enum"] = json!(["authorization_code", "client_credentials"]);
        }
        shape["description"] = meaning.replace('`', "").into();
        members.insert((*name).into(), shape);
    }
    let block = json!({"type": "object", "additionalProperties": false, "properties": members});
    json!({"anyOf": [{"const": false}, block]})
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a value passes, as far as this module's own schemas go.
    fn passes(schema: &Value, value: &Value, root: &Value) -> bool {
        if let Some(target) = schema["$ref"].as_str() {
            return passes(root.pointer(&target[1..]).unwrap(), value, root);
        }
        if let Some(any) = schema["anyOf"].as_array() {
            return any.iter().any(|s| passes(s, value, root));
        }
        let kind = match schema["type"].as_str() {
            Some("object") => value.is_object(),
            Some("array") => value.is_array(),
            Some("string") => value.is_string(),
            Some("boolean") => value.is_boolean(),
            Some("integer") => value.is_i64() || value.is_u64(),
            Some("null") => value.is_null(),
            _ => true,
        };
        let within = |n: i64| {
            schema["minimum"].as_i64().is_none_or(|m| n >= m)
                && schema["maximum"].as_i64().is_none_or(|m| n <= m)
        };
        kind && value.as_i64().is_none_or(within)
            && schema["enum"].as_array().is_none_or(|words| words.contains(value))
            && value.as_array().is_none_or(|l| l.iter().all(|v| passes(&schema["items"], v, root)))
            && value.as_object().is_none_or(|object| {
                object.iter().all(|(key, value)| match schema["properties"].get(key) {
                    Some(own) => passes(own, value, root),
                    None => match &schema["additionalProperties"] {
                        Value::Bool(open) => *open,
                        other => passes(other, value, root),
                    },
                })
            })
    }

    fn accepts(value: &Value) -> bool {
        let schema = schema();
        passes(&schema, value, &schema)
    }

    #[test]
    fn the_defaults_and_the_examples_pass_and_mistakes_do_not() {
        let mut defaults: Value = serde_json::from_str(settings::defaults_json()).unwrap();
        defaults.as_object_mut().unwrap().remove("paths");
        assert!(accepts(&defaults));
        for example in super::super::configuration_md().split("```jsonc\n").skip(1) {
            let text = example.split("```").next().unwrap();
            let value = super::super::parse(text, std::path::Path::new("example")).unwrap().value;
            assert!(accepts(&value), "{text}");
        }
        for wrong in [
            json!({"pol": {}}),
            json!({"pool": {"mx": 1}}),
            json!({"pool": {"max": 0}}),
            json!({"pool": {"max": "three"}}),
            json!({"pool.max": 0}),
            json!({"pool": {"sharing": "some"}}),
            json!({"pool": {"callTimeout": 5}}),
            json!({"paths": {"state": "/x"}}),
            json!({"output": {"json": 1}}),
            json!({"presets": {"ci": "--json"}}),
            json!({"mcpServers": {"a": {"args": "x"}}}),
            json!({"mcpServers": {"a": {"mcpx": {"scop": "repo"}}}}),
            json!({"mcpServers": {"a": {"mcpx": {"max": 0}}}}),
        ] {
            assert!(!accepts(&wrong), "{wrong}");
        }
        assert!(accepts(
            &json!({"mcpServers": {"a": {"command": "x", "type": "stdio", "mcpx": {"max": 2}}}})
        ));
    }

    #[test]
    fn every_setting_that_a_file_may_give_and_every_member_is_in_it() {
        let schema = schema();
        for setting in ALL.iter().filter(|d| !d.spec().bootstrap) {
            let nested = format!("/properties/{}", setting.key().replace('.', "/properties/"));
            assert!(schema.pointer(&nested).is_some(), "{nested}");
            assert!(schema["properties"].get(setting.key()).is_some());
        }
        let server = &schema["definitions"]["server"]["properties"];
        assert!(FIELDS.iter().all(|(name, _)| server.get(name).is_some()));
        assert!(OPTIONS.iter().all(|(name, _)| server["mcpx"]["properties"].get(name).is_some()));
    }
}
