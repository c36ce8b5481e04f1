//! Tests of the checks on arguments.

use super::*;
use serde_json::json;

fn ok(schema: Value, args: Value) {
    assert_eq!(arguments(&schema, &args), Ok(()), "{schema} {args}");
}
fn err(schema: Value, args: Value, message: &str) {
    assert_eq!(arguments(&schema, &args), Err(message.to_owned()), "{schema} {args}");
}
fn prop(schema: Value) -> Value {
    json!({"type": "object", "properties": {"x": schema}})
}

#[test]
fn the_path_of_a_fault_is_named() {
    let schema = json!({"type":"object","properties":{"items":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"a-b":{"type":"boolean"}}}}}});
    err(
        schema.clone(),
        json!({"items":[{},{},{"name":5,"a-b":1}]}),
        "arguments.items[2].name: expected a string, got a number; arguments.items[2][\"a-b\"]: expected a boolean, got a number",
    );
    ok(schema, json!({"items":[{},{"name":"x"}],"more":1}));
    err(json!({}), json!([1]), "arguments: expected an object, got an array");
    ok(json!({}), json!({"a":1}));
    ok(json!(null), json!({"a":1}));
    ok(json!(true), json!({}));
    err(json!(false), json!({}), "arguments: nothing is allowed here");
}

#[test]
fn types_and_whole_numbers() {
    ok(prop(json!({"type":"integer"})), json!({"x":1.0}));
    ok(prop(json!({"type":"integer"})), json!({"x":1e300}));
    err(prop(json!({"type":"integer"})), json!({"x":1.5}), "arguments.x: expected an integer, got 1.5");
    err(prop(json!({"type":"integer"})), json!({"x":"1"}), "arguments.x: expected an integer, got a string");
    err(
        prop(json!({"type":["string","null","array"]})),
        json!({"x":{}}),
        "arguments.x: expected a string, null or an array, got an object",
    );
    ok(prop(json!({"type":["string","null"]})), json!({"x":null}));
    ok(prop(json!({"type":"string","nullable":true})), json!({"x":null}));
    ok(prop(json!({"type":"file"})), json!({"x":3}));
    ok(prop(json!({"type":["file","string"]})), json!({"x":3}));
    ok(prop(json!({"type":7})), json!({"x":3}));
    err(prop(json!({"type":"object"})), json!({"x":null}), "arguments.x: expected an object, got null");
}

#[test]
fn missing_and_unknown_arguments() {
    let schema = json!({"type":"object","properties":{"name":{},"size":{}},"required":["name","size",3],"additionalProperties":false});
    err(schema.clone(), json!({}), "arguments: missing \"name\" and \"size\"");
    err(
        schema.clone(),
        json!({"name":1,"size":2,"nmae":3}),
        "arguments: unknown \"nmae\", did you mean \"name\"?",
    );
    err(
        schema.clone(),
        json!({"name":1,"size":2,"zzzzzzz":3}),
        "arguments: unknown \"zzzzzzz\", known are \"name\" and \"size\"",
    );
    err(json!({"additionalProperties":false}), json!({"q":1}), "arguments: unknown \"q\", none are expected");
    ok(
        json!({"properties":{"a":{}},"patternProperties":{"^x":{}},"additionalProperties":false}),
        json!({"xy":1}),
    );
    err(
        json!({"additionalProperties":{"type":"number"}}),
        json!({"q":"1"}),
        "arguments.q: expected a number, got a string",
    );
    ok(json!({"type":"object","required":true}), json!({}));
    err(json!({"minProperties":1}), json!({}), "arguments: expected at least 1 property, got 0");
}

#[test]
fn enums_and_constants() {
    let colors = prop(json!({"enum":["red","green",null,3]}));
    ok(colors.clone(), json!({"x":null}));
    ok(colors.clone(), json!({"x":3.0}));
    err(
        colors.clone(),
        json!({"x":"gren"}),
        "arguments.x: expected one of \"red\", \"green\", null, 3, got \"gren\", did you mean \"green\"?",
    );
    err(prop(json!({"const":"a"})), json!({"x":"b"}), "arguments.x: expected \"a\", got \"b\"");
    ok(prop(json!({"const":{"a":[1]}})), json!({"x":{"a":[1.0]}}));
    err(
        prop(json!({"enum":[]})),
        json!({"x":1}),
        "arguments.x: expected nothing (the schema allows no value), got 1",
    );
    let many: Vec<String> = (0..500).map(|i| format!("value-{i}")).collect();
    let e = arguments(&prop(json!({"enum":many})), &json!({"x":"q".repeat(1000)})).unwrap_err();
    assert!(e.len() < 400 && e.contains("488 more"), "{e}");
}

#[test]
fn limits_of_size() {
    err(prop(json!({"minimum":1})), json!({"x":0}), "arguments.x: expected at least 1, got 0");
    err(prop(json!({"maximum":1.5})), json!({"x":2}), "arguments.x: expected at most 1.5, got 2");
    err(prop(json!({"exclusiveMinimum":1})), json!({"x":1}), "arguments.x: expected more than 1, got 1");
    err(
        prop(json!({"maximum":1,"exclusiveMaximum":true})),
        json!({"x":1}),
        "arguments.x: expected less than 1, got 1",
    );
    ok(prop(json!({"minimum":1,"exclusiveMinimum":false})), json!({"x":1}));
    ok(prop(json!({"minimum":10})), json!({"x":"1"}));
    ok(prop(json!({"exclusiveMinimum":9007199254740992u64})), json!({"x":9007199254740993u64}));
    err(prop(json!({"minLength":2})), json!({"x":"é"}), "arguments.x: expected at least 2 characters, got 1");
    ok(prop(json!({"maxLength":1})), json!({"x":"é"}));
    err(prop(json!({"maxItems":1})), json!({"x":[1,2]}), "arguments.x: expected at most 1 item, got 2");
    err(prop(json!({"minItems":1})), json!({"x":[]}), "arguments.x: expected at least 1 item, got 0");
}

#[test]
fn tuples_in_both_spellings() {
    let new = prop(json!({"prefixItems":[{"type":"string"}],"items":{"type":"number"}}));
    ok(new.clone(), json!({"x":["a",1,2]}));
    err(new, json!({"x":["a",1,"b"]}), "arguments.x[2]: expected a number, got a string");
    let old = prop(json!({"items":[{"type":"string"}],"additionalItems":false}));
    ok(old.clone(), json!({"x":["a"]}));
    ok(old.clone(), json!({"x":[]}));
    err(old, json!({"x":["a",1]}), "arguments.x: expected at most 1 item, got 2");
    // In draft-07 `prefixItems` means nothing.
    let mixed = json!({"$schema":"http://json-schema.org/draft-07/schema#","properties":{"x":{"prefixItems":[{"type":"string"}]}}});
    ok(mixed, json!({"x":[1]}));
}

#[test]
fn unions_tell_the_nearest_branch() {
    let either =
        prop(json!({"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}},{"type":"null"}]}));
    ok(either.clone(), json!({"x":null}));
    err(either.clone(), json!({"x":{}}), "arguments.x: expected a string, an array or null, got an object");
    err(either, json!({"x":["a",2]}), "arguments.x[1]: expected a string, got a number");
    let shapes = prop(json!({"oneOf":[
        {"type":"object","properties":{"kind":{"const":"circle"},"r":{"type":"number"}},"required":["kind","r"]},
        {"type":"object","properties":{"kind":{"const":"box"},"w":{"type":"number"}},"required":["kind","w"]},
    ]}));
    ok(shapes.clone(), json!({"x":{"kind":"box","w":1}}));
    err(shapes.clone(), json!({"x":{"kind":"box"}}), "arguments.x: missing \"w\"");
    // Both branches fit as far as is checked: not refused.
    ok(prop(json!({"oneOf":[{"pattern":"^a"},{"pattern":"^b"}]})), json!({"x":"b"}));
    err(
        prop(json!({"allOf":[{"type":"number"},{"minimum":3}]})),
        json!({"x":1}),
        "arguments.x: expected at least 3, got 1",
    );
    err(
        json!({"type":"object","properties":{"a":{},"b":{}},"anyOf":[{"required":["a"]},{"required":["b"]}]}),
        json!({"c":1}),
        "arguments: missing \"a\"",
    );
    ok(prop(json!({"not":{"type":"string"}})), json!({"x":"a"}));
    ok(prop(json!({"if":{},"then":false})), json!({"x":"a"}));
}

#[test]
fn references_recursion_and_old_siblings() {
    let tree = json!({"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"v":{"type":"number"},"kids":{"type":"array","items":{"$ref":"#/$defs/node"}}},"required":["v"]}}});
    ok(tree.clone(), json!({"v":1,"kids":[{"v":2,"kids":[]}]}));
    err(tree, json!({"v":1,"kids":[{"v":2,"kids":[{}]}]}), "arguments.kids[0].kids[0]: missing \"v\"");
    for looping in [
        json!({"$ref":"#"}),
        json!({"allOf":[{"$ref":"#"},{"$ref":"#"}]}),
        json!({"anyOf":[{"$ref":"#"},{"$ref":"#"},{"$ref":"#"}],"oneOf":[{"$ref":"#"},{"$ref":"#"}]}),
        json!({"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}),
    ] {
        ok(looping, json!({"a":1}));
    }
    ok(prop(json!({"$ref":"https://example.com/x.json"})), json!({"x":1}));
    let sibling =
        json!({"properties":{"x":{"$ref":"#/$defs/s","maxLength":1}},"$defs":{"s":{"type":"string"}}});
    err(sibling.clone(), json!({"x":"ab"}), "arguments.x: expected at most 1 character, got 2");
    let mut old = sibling;
    old["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    ok(old, json!({"x":"ab"}));
}

#[test]
fn a_hostile_schema_takes_neither_the_stack_nor_the_day() {
    // Every level doubles the branches, none of which accepts; on a stack as small as the daemon's.
    let schema = json!({"properties":{"x":{"$ref":"#/$defs/a"}},"$defs":{"a":{"allOf":[
        {"anyOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}]},{"type":"string"}]}}});
    let mut value = json!(1);
    for _ in 0..100 {
        value = json!({"x": value, "y": [1]});
    }
    let nested = json!({"properties":{"x":{"$ref":"#"},"y":{"items":{"type":"number"}}}});
    let run = move || {
        let _ = arguments(&schema, &json!({"x":1}));
        arguments(&nested, &value)
    };
    #[allow(clippy::disallowed_methods, reason = "the test needs a thread of a known stack")]
    let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(run).unwrap();
    assert_eq!(thread.join().unwrap(), Ok(()));
}
