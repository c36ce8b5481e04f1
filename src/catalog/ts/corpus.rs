//! Tests of the whole conversion on the hostile corpus under
//! `tests/fixtures/schemas`, on random schemas, and, where a TypeScript compiler is
//! installed, by that compiler.

use super::{client_dts, namespace, signature};
use crate::catalog::{ServerSchema, Tool, names};
use serde_json::{Map, Value, json};
use std::fs;
use std::path::{Path, PathBuf};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/schemas")
}

/// Every server of the corpus, in the order of the files' names.
fn corpus() -> Vec<ServerSchema> {
    let mut files: Vec<PathBuf> = fs::read_dir(fixtures())
        .expect("the fixtures are there")
        .filter_map(|e| Some(e.ok()?.path()))
        .filter(|p| p.extension().is_some_and(|e| e == "json"))
        .collect();
    files.sort();
    assert!(files.len() >= 10);
    let read = |path: &PathBuf| {
        let text = fs::read_to_string(path).expect("readable");
        let mut value: Value =
            serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let map = value.as_object_mut().expect("an object");
        map.insert("digest".into(), json!("d"));
        map.insert("fetchedAt".into(), json!(0));
        map.insert("protocol".into(), json!("2025-11-25"));
        serde_json::from_value(value).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    };
    files.iter().map(read).collect()
}

fn with_idents(schemas: &[ServerSchema]) -> Vec<(String, &ServerSchema)> {
    let idents = names::unique_idents(schemas.iter().map(|s| s.server.as_str()));
    idents.into_iter().zip(schemas).collect()
}

/// Fails unless every bracket outside strings and comments has its partner, every
/// string ends on its line, and every comment ends.
fn assert_balanced(text: &str, what: &str) {
    let mut open = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' => loop {
                match chars.next() {
                    Some('\\') => drop(chars.next()),
                    Some('"') => break,
                    Some('\n') | None => panic!("{what}: a string does not end\n{text}"),
                    _ => {}
                }
            },
            '/' if chars.peek() == Some(&'/') => while chars.next().is_some_and(|c| c != '\n') {},
            '/' if chars.peek() == Some(&'*') => {
                chars.next();
                let mut before = ' ';
                loop {
                    match chars.next() {
                        Some('/') if before == '*' => break,
                        Some(c) => before = c,
                        None => panic!("{what}: a comment does not end\n{text}"),
                    }
                }
            }
            '{' | '[' | '(' => open.push(c),
            '}' | ']' | ')' => {
                let partner = open.pop();
                let fits = matches!((partner, c), (Some('{'), '}') | (Some('['), ']') | (Some('('), ')'));
                assert!(fits, "{what}: {partner:?} closed by {c}\n{text}");
            }
            '\u{2028}' | '\u{2029}' | '\u{1b}' | '\u{202e}' | '\r' | '\0' => {
                panic!("{what}: {c:?} came through\n{text}")
            }
            _ => {}
        }
    }
    assert!(open.is_empty(), "{what}: {open:?} is left open\n{text}");
}

fn all_forms(schema: &ServerSchema, ident: &str) -> String {
    let mut out = namespace(schema, ident, false);
    out.push_str(&namespace(schema, ident, true));
    out.push_str(&client_dts(&[(ident, schema)]));
    for tool in &schema.tools {
        let line = signature(tool, ident, &names::member(&tool.name));
        assert!(!line.contains('\n'), "{line}");
        out.push_str(&line);
        out.push('\n');
    }
    out
}

#[test]
fn the_corpus_is_balanced_and_the_same_every_time() {
    let schemas = corpus();
    for (ident, schema) in with_idents(&schemas) {
        let text = all_forms(schema, &ident);
        assert_balanced(&text, &schema.server);
        // A copy lies at other addresses: nothing may depend on them.
        assert_eq!(text, all_forms(&schema.clone(), &ident), "{}", schema.server);
    }
}

#[test]
fn brief_is_one_line_a_tool_and_costs_fewer_tokens() {
    use crate::catalog::budget::tokens;
    for schema in corpus().iter().filter(|s| s.server == "dialects") {
        let (full, brief) = (namespace(schema, "d", false), namespace(schema, "d", true));
        assert!(tokens(&brief) < tokens(&full) * 9 / 10);
        for tool in &schema.tools {
            let start = format!("  {}(", tool.name);
            assert_eq!(brief.lines().filter(|l| l.starts_with(&start)).count(), 1, "{}", tool.name);
        }
    }
}

/// xorshift64*: the same numbers on every machine and in every run.
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % below
    }
    fn pick<'v, T>(&mut self, list: &'v [T]) -> &'v T {
        &list[self.next(list.len())]
    }
}

const WORDS: &[&str] = &[
    "a",
    "b-c",
    "",
    "class",
    "*/",
    "\"",
    "\\",
    "\n",
    "\u{2028}",
    "größe",
    "__proto__",
    "$ref",
    "Node",
    "1",
    "`${x}`",
    "//",
    "type",
    "\u{1b}[2J",
    "😀",
    "@ts-ignore",
];

/// A value that looks like a schema, more or less.
fn weird(r: &mut Random, depth: usize) -> Value {
    if depth == 0 || r.next(12) == 0 {
        return match r.next(8) {
            0 => Value::Null,
            1 => json!(r.next(2) == 0),
            2 => json!(r.next(1000) as f64 / 8.0 - 60.0),
            3 => json!(*r.pick(WORDS)),
            4 => json!([]),
            5 => {
                json!({"type": *r.pick(&["string", "number", "integer", "boolean", "null", "array", "object", "odd"])})
            }
            6 => {
                json!({"$ref": *r.pick(&["#", "#/$defs/a", "#/$defs/b-c", "#/$defs/*~1", "#/properties/a", "#Node", "http://x.example/*/"])})
            }
            _ => json!({"const": *r.pick(WORDS)}),
        };
    }
    let mut map = Map::new();
    for _ in 0..=r.next(4) {
        let key = *r.pick(&[
            "type",
            "properties",
            "items",
            "prefixItems",
            "anyOf",
            "oneOf",
            "allOf",
            "enum",
            "const",
            "$ref",
            "required",
            "additionalProperties",
            "patternProperties",
            "description",
            "nullable",
            "not",
            "minItems",
            "$defs",
            "additionalItems",
            "default",
            "$anchor",
            "pattern",
            "if",
            "$schema",
            "maxItems",
        ]);
        let many = |r: &mut Random| -> Vec<Value> { (0..r.next(4)).map(|_| weird(r, depth - 1)).collect() };
        let named = |r: &mut Random| -> Map<String, Value> {
            (0..r.next(4)).map(|_| ((*r.pick(WORDS)).to_owned(), weird(r, depth - 1))).collect()
        };
        let value = match key {
            "type" => match r.next(4) {
                0 => json!(["object", *r.pick(&["null", "string", "array"])]),
                1 => weird(r, 0),
                _ => json!(*r.pick(&["object", "array", "string", "integer"])),
            },
            "properties" | "patternProperties" | "$defs" => Value::Object(named(r)),
            "prefixItems" | "anyOf" | "oneOf" | "allOf" | "enum" => Value::Array(many(r)),
            "items" if r.next(3) == 0 => Value::Array(many(r)),
            "required" => json!([*r.pick(WORDS), *r.pick(WORDS)]),
            "$ref" => json!(*r.pick(&["#", "#/$defs/a", "#/$defs/class", "#/properties/a", "#/nowhere", ""])),
            "description" | "default" | "pattern" | "$anchor" => json!(*r.pick(WORDS)),
            "minItems" | "maxItems" => json!(r.next(4)),
            "nullable" => json!(true),
            "$schema" => json!(*r.pick(&["http://json-schema.org/draft-07/schema#", "x"])),
            _ => weird(r, depth - 1),
        };
        map.insert(key.to_owned(), value);
    }
    Value::Object(map)
}

/// A server whose tools have random schemas.
fn random_server(seed: u64, tools: usize) -> ServerSchema {
    let mut r = Random(seed | 1);
    let tool = |i: usize, r: &mut Random| {
        let mut schema = weird(r, 5);
        if let Some(map) = schema.as_object_mut() {
            let defs: Map<String, Value> =
                ["a", "b-c", "*/", "class"].iter().map(|n| ((*n).to_owned(), weird(r, 4))).collect();
            map.entry("$defs").or_insert(Value::Object(defs));
        }
        Tool {
            description: Some((*r.pick(WORDS)).to_owned()),
            input_schema: schema,
            output_schema: (r.next(3) == 0).then(|| weird(r, 4)),
            ..Tool::named(&format!("{}{i}", r.pick(WORDS)))
        }
    };
    ServerSchema {
        ttl_ms: None,
        private: false,
        server: format!("random{seed}"),
        digest: "d".into(),
        fetched_at: 0,
        protocol: String::new(),
        server_info: None,
        capabilities: None,
        instructions: None,
        tools: (0..tools).map(|i| tool(i, &mut r)).collect(),
    }
}

#[test]
fn random_schemas_never_break_it() {
    for seed in 1..=60 {
        let schema = random_server(seed * 7919, 12);
        let text = all_forms(&schema, "r");
        assert_balanced(&text, &schema.server);
        assert_eq!(text, all_forms(&schema.clone(), "r"));
        for tool in &schema.tools {
            // Whatever it says, it must not take the process down.
            let _ =
                crate::catalog::validate::arguments(&tool.input_schema, &json!({"a": [1, {"b-c": null}]}));
        }
    }
}

#[test]
fn mutated_schemas_become_types_of_a_bounded_size() {
    let corpus: [&[u8]; 5] = [
        br##"{"type":"object","properties":{"a":{"type":["string","null"],"description":"a */ b"},"b-c":{"$ref":"#/$defs/n"}},"required":["a"],"$defs":{"n":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/n"}}}}}}"##,
        br#"{"anyOf":[{"const":1},{"enum":["x","y",null]},{"type":"array","prefixItems":[{"type":"integer"}],"items":false}]}"#,
        br#"{"allOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"a":{"minLength":1}},"required":["a"]}],"additionalProperties":{"type":"number"}}"#,
        br##"{"definitions":{"a":{"$ref":"#/definitions/b"},"b":{"$ref":"#/definitions/a"}},"$ref":"#/definitions/a"}"##,
        br#"{"if":{"properties":{"k":{"const":"x"}}},"then":{"required":["y"]},"patternProperties":{"^(a+)+$":{"type":"boolean"}}}"#,
    ];
    crate::util::mutate::each(&corpus, |bytes| {
        let Ok(schema) = serde_json::from_slice::<Value>(bytes) else { return };
        let mut server = random_server(1, 0);
        server.tools.push(Tool { input_schema: schema.clone(), ..Tool::named("t") });
        let text = all_forms(&server, "m");
        assert_balanced(&text, "mutated");
        assert_eq!(text, all_forms(&server.clone(), "m"));
        // Five forms of it, indented, with documentation; never what its references multiply to.
        assert!(
            text.len() < 100_000 + 100 * bytes.len(),
            "{} bytes of types from {}",
            text.len(),
            bytes.len()
        );
        let _ = crate::catalog::validate::arguments(
            &schema,
            &json!({"a": "aaaaaaaaaaaaaaaaaaaaaaaaaaaa!", "k": "x"}),
        );
    });
}

#[test]
fn depth_needs_no_more_stack_than_the_daemons_threads_have() {
    let mut schemas = corpus();
    let mut nested = json!({"type": "string"});
    for i in 0..400 {
        nested = match i % 4 {
            0 => json!({"properties": {"d": nested, "e": {"$ref": "#"}}}),
            1 => json!({"anyOf": [nested, {"type": "null"}]}),
            2 => json!({"type": "array", "items": nested}),
            _ => json!({"allOf": [nested, {"required": ["d"]}]}),
        };
    }
    let mut deep = random_server(5, 1);
    deep.tools[0].input_schema = nested;
    schemas.push(deep);
    let run = move || {
        let texts = schemas.iter().map(|s| all_forms(s, "x").len()).collect::<Vec<_>>();
        // Dropping the value is the caller's affair, and needs more stack than this thread has.
        std::mem::forget(schemas);
        texts
    };
    #[allow(clippy::disallowed_methods, reason = "the test needs a thread of a known stack")]
    let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(run).expect("a thread");
    assert!(thread.join().expect("no overflow").iter().all(|n| *n > 0));
}

#[test]
fn a_namespace_of_a_thousand_tools_is_written() {
    let mut schema = random_server(1, 0);
    for i in 0..1000 {
        let node = json!({"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/Node"}}, format!("p{i}"): {"type": "string", "description": "Some words."}}});
        schema.tools.push(Tool {
            input_schema: json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}}),
            ..Tool::named(&format!("tool_{i}"))
        });
    }
    assert!(client_dts(&[("big", &schema)]).len() > 100_000);
}

/// Where `npm ci` in `tests/tools` puts the compiler, or `MCPX_TEST_TSC` for another one.
fn compiler() -> Option<PathBuf> {
    #[allow(clippy::disallowed_methods, reason = "tests may be pointed at another compiler")]
    let other = std::env::var_os("MCPX_TEST_TSC").map(PathBuf::from);
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools/node_modules/.bin/tsc");
    other.or(Some(own)).filter(|p| p.exists())
}

/// Writes what is generated for the corpus and some random servers into a
/// directory, as modules that the compiler is then run on.
fn write_modules(dir: &Path) {
    let mut schemas = corpus();
    let write = |name: String, text: &str| fs::write(dir.join(name), text).expect("a temporary file");
    for (i, (ident, schema)) in with_idents(&schemas).iter().enumerate() {
        // Each as `mcpx types` prints it, and several namespaces in one file.
        for (form, brief) in [("full", false), ("brief", true)] {
            write(format!("{form}{i}.ts"), &format!("{}export {{}};\n", namespace(schema, ident, brief)));
        }
    }
    let all: String = with_idents(&schemas).iter().map(|(i, s)| namespace(s, i, false)).collect();
    write("all.ts".into(), &format!("{all}export {{}};\n"));
    let extra = std::env::var("MCPX_TEST_RANDOM").ok().and_then(|n| n.parse().ok()).unwrap_or(12);
    schemas.extend((1..=extra).map(|seed| random_server(seed * 104_729, 12)));
    write("client.d.ts".into(), &client_dts(&with_idents(&schemas)));
    let empty: [(&str, &ServerSchema); 0] = [];
    write("none.ts".into(), &client_dts(&empty).replace("declare global {", "declare namespace Nothing {"));
    fs::copy(fixtures().join("behaviour.ts"), dir.join("behaviour.ts")).expect("the behaviour test");
}

#[test]
fn the_compiler_accepts_everything_and_the_types_behave() {
    let dir = std::env::temp_dir().join(format!("mcpx-tsc-{}", std::process::id()));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("a temporary directory");
    write_modules(&dir);
    // Without a compiler the texts above were at least written; `make test` installs it.
    if let Some(tsc) = compiler() {
        let files = fs::read_dir(&dir).expect("just made").filter_map(|e| Some(e.ok()?.path()));
        #[allow(clippy::disallowed_methods, reason = "the layer that starts processes is above this one")]
        let output = std::process::Command::new(&tsc)
            .args(["--strict", "--noEmit", "--target", "es2022", "--module", "esnext"])
            .args(["--moduleResolution", "bundler", "--skipLibCheck", "false", "--pretty", "false"])
            .args(files)
            // Away from any project whose types would come in by themselves.
            .current_dir(&dir)
            .output()
            .expect("tsc runs");
        let said = String::from_utf8_lossy(&output.stdout);
        let shown: Vec<&str> = said.lines().take(40).collect();
        assert!(output.status.success(), "{} in {}\n{}", tsc.display(), dir.display(), shown.join("\n"));
    }
    fs::remove_dir_all(&dir).expect("removed");
}
