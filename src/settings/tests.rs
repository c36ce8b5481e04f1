//! Tests of the resolution: layers, conflicts, unknown keys, paths.

use super::resolve::{DEFAULTS, parse_defaults};
use super::*;
use crate::error::Kind as ErrorKind;
use crate::util::Env;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// A file layer whose member number `i` of each object is on line `i + 2` of its own object.
pub fn layer(path: &str, value: Value) -> FileLayer {
    fn lines(value: &Value, line: u32) -> Lines {
        let children = match value {
            Value::Object(m) => m.values().zip(line + 1..).map(|(v, l)| lines(v, l)).collect(),
            Value::Array(a) => a.iter().zip(line + 1..).map(|(v, l)| lines(v, l)).collect(),
            _ => Vec::new(),
        };
        Lines { at: At { line, column: 0 }, children }
    }
    let lines = lines(&value, 1);
    let Value::Object(values) = value else { panic!("an object") };
    FileLayer { path: Arc::new(path.into()), values, lines, foreign: false }
}

fn flag(key: &str, text: &str, spelled: &str) -> FlagValue {
    FlagValue { key: key.into(), text: text.into(), spelled: spelled.into() }
}

#[test]
fn every_setting_has_a_default_of_its_type_and_every_default_a_setting() {
    let settings = parse_defaults(DEFAULTS).unwrap();
    assert_eq!(settings.iter().count(), ALL.len());
    let mut keys = Vec::new();
    let root: serde_json::Map<String, Value> = serde_json::from_str(DEFAULTS).unwrap();
    for (family, value) in &root {
        match value {
            Value::Object(inner) => keys.extend(inner.keys().map(|n| format!("{family}.{n}"))),
            _ => keys.push(family.clone()),
        }
    }
    for key in keys {
        assert!(declared(&key).is_some(), "defaults.json has {key}, which is no setting");
    }
    assert_eq!(settings.get(&POOL_CALL_TIMEOUT), Duration::from_secs(300));
    assert_eq!(settings.get(&MCP_MAX_MESSAGE), 256_000_000);
    assert_eq!(settings.get(&SCRIPT_RUNTIME_ORDER), ["deno", "bun", "node"]);
    assert_eq!(settings.get(&SCRIPT_RUNTIMES), json!({}));
    assert!(settings.get(&TRANSPORT_BEARER_TOKEN).is_empty());
}

#[test]
fn a_stronger_layer_wins_and_each_displaced_value_is_remembered() {
    let env = Env::from_pairs([("MCPX_POOL_MAX", "5")]);
    let mut layers = Layers::new(&env);
    layers.files =
        vec![layer("/far", json!({"pool": {"max": 2}})), layer("/near", json!({"pool": {"max": 3}}))];
    layers.presets = vec![PresetFlag {
        preset: "ci".into(),
        flag: "--pool-max".into(),
        value: Some("6".into()),
        key: Some("pool.max"),
        negated: false,
        path: Arc::new("/near".into()),
        at: At { line: 9, column: 0 },
    }];
    layers.flags = vec![flag("pool.max", "7", "--pool-max"), flag("pool.max", "8", "--pool-max")];
    layers.runtime = vec![RuntimeValue { key: "pool.max".into(), value: json!(9) }];
    let got = Settings::resolve(layers).unwrap().explain("pool.max").unwrap();
    assert_eq!(got.value, Val::Int(9));
    assert_eq!(got.source, Source::Runtime);
    let displaced: Vec<String> =
        got.displaced.iter().map(|d| format!("{} {}", d.value.text(), d.source)).collect();
    assert_eq!(
        displaced,
        [
            "8 --pool-max",
            "6 preset:ci (--pool-max)",
            "5 MCPX_POOL_MAX",
            "3 /near:3",
            "2 /far:3",
            "32 default"
        ]
    );
}

#[test]
fn values_that_are_wrong_name_their_place() {
    let fail = |change: &dyn Fn(&mut Layers), env: &Env| {
        let mut layers = Layers::new(env);
        change(&mut layers);
        Settings::resolve(layers).unwrap_err()
    };
    let none = Env::default();
    let e = fail(&|l| l.files = vec![layer("/f", json!({"pool": {"max": 0}}))], &none);
    assert_eq!((e.kind(), e.message()), (ErrorKind::Config, "/f:3: pool.max: must be from 1 to 4096, not 0"));
    let e = fail(&|_| {}, &Env::from_pairs([("MCPX_OUTPUT_COLOR", "pink")]));
    assert_eq!(e.kind(), ErrorKind::Usage);
    assert!(e.message().starts_with("MCPX_OUTPUT_COLOR: \"pink\" is not one of auto, always, never"), "{e}");
    let e = fail(&|l| l.flags = vec![flag("script.timeout", "30", "--timeout")], &none);
    assert!(e.message().starts_with("--timeout: \"30\" has no unit"), "{e}");
    let e = fail(&|l| l.runtime = vec![RuntimeValue { key: "pool.mx".into(), value: json!(1) }], &none);
    assert!(e.hint_text().is_some_and(|h| h.contains("pool.max")), "{e}");
    assert!(e.message().contains("no setting \"pool.mx\""), "{e}");
}
fn resolve(env: &Env, change: impl Fn(&mut Layers)) -> crate::error::Result<Settings> {
    let mut layers = Layers::new(env);
    change(&mut layers);
    Settings::resolve(layers)
}

#[test]
fn two_spellings_at_one_level_must_agree() {
    let none = Env::default();
    let file = |value: Value| resolve(&none, move |l| l.files = vec![layer("/f", value.clone())]);
    let e = file(json!({"pool.max": 4, "pool": {"max": 5}})).unwrap_err();
    assert_eq!(e.message(), "/f:4: pool.max: is also set in line 2, to another value");
    let s = file(json!({"pool.max": 4, "pool": {"max": 4}})).unwrap();
    assert_eq!(s.explain("pool.max").unwrap().displaced.len(), 1);

    let env = |a: &str, b: &str| {
        let env = Env::from_pairs([("MCPX_SCRIPT_PERMISSIONS", a), ("MCPX_PERMISSIONS", b)]);
        resolve(&env, |_| {})
    };
    let e = env("net", "read").unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Usage);
    assert_eq!(e.message(), "MCPX_PERMISSIONS: MCPX_SCRIPT_PERMISSIONS sets the same to another value");
    assert_eq!(env("net", "net").unwrap().get(&SCRIPT_PERMISSIONS), "net");
    assert_eq!(env("", "read").unwrap().get(&SCRIPT_PERMISSIONS), "read");

    let flags = |given: &[(&str, &str)]| {
        let flags: Vec<FlagValue> = given.iter().map(|(s, t)| flag("script.timeout", t, s)).collect();
        resolve(&none, move |l| l.flags = flags.clone())
    };
    let e = flags(&[("--timeout", "1s"), ("--script-timeout", "2s")]).unwrap_err();
    assert_eq!(e.message(), "--script-timeout: --timeout sets the same to another value");
    let s = flags(&[("--timeout", "1s"), ("--timeout", "2s"), ("--script-timeout", "2000ms")]).unwrap();
    let row = s.explain("script.timeout").unwrap();
    assert_eq!((row.source.to_string(), row.displaced.len()), ("--script-timeout".into(), 1));
    let json = |given: &[(&str, &str)]| {
        let flags: Vec<FlagValue> = given.iter().map(|(s, t)| flag("output.json", t, s)).collect();
        resolve(&none, move |l| l.flags = flags.clone()).unwrap().get(&OUTPUT_JSON)
    };
    assert!(!json(&[("--json", "true"), ("--no-json", "false")]));
    assert!(json(&[("--no-json", "false"), ("--json", "true")]));
}

#[test]
fn bootstrap_settings_are_refused_in_a_file_with_the_reason() {
    let none = Env::default();
    for key in ["configFile", "state", "cache"] {
        let e = resolve(&none, |l| l.files = vec![layer("/f", json!({"paths": {key: "/x"}}))]);
        let e = e.unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Config);
        assert!(e.message().starts_with(&format!("/f:3: paths.{key}: cannot be set")), "{e}");
        assert!(e.hint_text().is_some_and(|h| h.contains("MCPX_")), "{e}");
    }
    let env = Env::from_pairs([("MCPX_STATE_DIR", "/s"), ("MCPX_PATHS_STATE", "/other")]);
    assert_eq!(resolve(&env, |_| {}).unwrap().get(&PATHS_STATE), "/s");
}

#[test]
fn unknown_keys_are_reported_with_the_nearest() {
    let file = layer(
        "/f",
        json!({
            "mcpServers": {"pool": {}}, "presets": {"pol": []}, "$schema": "x",
            "pool": {"callTimout": "1s", "max": 3}, "mcpServer": {}, "search": 5, "weather": {}
        }),
    );
    assert_eq!(
        unknown_keys(&file),
        [
            "/f:6: unknown key \"pool.callTimout\"; did you mean \"pool.callTimeout\"?",
            "/f:6: unknown key \"mcpServer\"; did you mean \"mcpServers\"?",
            "/f:7: \"search\" must be an object of settings, not a number",
            "/f:8: unknown key \"weather\"; mcpx settings lists the known ones",
        ]
    );
    let foreign = FileLayer { foreign: true, ..file.clone() };
    assert_eq!(unknown_keys(&foreign).len(), 2);

    let none = Env::default();
    assert!(resolve(&none, |l| l.files = vec![file.clone()]).is_ok());
    let strict = flag("plumbing.strictUnknownKeys", "true", "--plumbing-strict-unknown-keys");
    let e = resolve(&none, |l| {
        l.files = vec![file.clone()];
        l.flags = vec![strict.clone()];
    });
    assert!(e.unwrap_err().message().contains("pool.callTimout"));
}

#[test]
fn ten_thousand_unknown_keys_are_a_summary() {
    let many: serde_json::Map<String, Value> = (0..10_000).map(|i| (format!("key{i}"), json!(i))).collect();
    let lines = unknown_keys(&layer("/f", Value::Object(many)));
    assert_eq!(lines.len(), 21);
    assert_eq!(lines[20], "/f: and 9980 more unknown keys");
}

#[test]
fn a_variable_that_is_not_utf_8_is_refused_and_an_empty_one_says_nothing() {
    use std::os::unix::ffi::OsStringExt;
    let mut env = Env::default();
    env.set("MCPX_POOL_MAX", std::ffi::OsString::from_vec(vec![b'3', 0xff]));
    let e = resolve(&env, |_| {}).unwrap_err();
    assert_eq!((e.kind(), e.message()), (ErrorKind::Usage, "MCPX_POOL_MAX: is not valid UTF-8"));
    env.set("MCPX_POOL_MAX", "");
    assert_eq!(resolve(&env, |_| {}).unwrap().explain("pool.max").unwrap().source, Source::Default);
}

#[test]
fn paths_are_taken_from_the_place_that_says_them() {
    let env = Env::from_pairs([("HOME", "/home/u"), ("MCPX_SOCKET", "run/s.sock")]);
    let s = resolve(&env, |l| {
        l.files = vec![layer("/p/.mcpx/config.json", json!({"output": {"mediaDir": "media"}}))];
        l.dir = Some("/srv".into());
    });
    let s = s.unwrap();
    assert_eq!(s.get(&OUTPUT_MEDIA_DIR), "/p/media");
    assert_eq!(s.get(&DAEMON_SOCKET), "/srv/run/s.sock");
    let s = resolve(&env, |l| l.flags = vec![flag("output.mediaDir", "~/m", "--output-media-dir")]);
    let s = s.unwrap();
    assert_eq!(s.get(&OUTPUT_MEDIA_DIR), "/home/u/m");
    assert_eq!(s.get(&DAEMON_SOCKET), "run/s.sock");
    assert_eq!(s.get(&OUTPUT_COLOR), "auto");
}

#[test]
fn objects_are_replaced_whole_and_secrets_stay_masked() {
    let env = Env::from_pairs([("MCPX_TRANSPORT_BEARER_TOKEN", "hunter2")]);
    let s = resolve(&env, |l| {
        l.files = vec![
            layer(
                "/far",
                json!({"script": {"profiles": {"a": "--x"}}, "transport": {"bearerToken": "old2"}}),
            ),
            layer("/near", json!({"script": {"profiles": {"b": {"deno": []}}}})),
        ];
    });
    let s = s.unwrap();
    assert_eq!(s.get(&SCRIPT_PROFILES), json!({"b": {"deno": []}}));
    assert_eq!(s.get(&TRANSPORT_BEARER_TOKEN).reveal(), "hunter2");
    let shown = format!("{s:?} {:?}", s.explain("transport.bearerToken").unwrap());
    assert!(shown.contains("********") && !shown.contains("hunter2") && !shown.contains("old2"), "{shown}");
}

#[test]
fn a_paths_value_splices_in_what_it_displaces() {
    // No setting is a list of paths yet, so the layers are laid by hand.
    let inherited = Val::Paths(vec!["/a".into(), "/b".into()]);
    let list = |v: Value| match Kind::Paths.parse_json(&v).unwrap() {
        Val::Paths(list) => super::apply::splice(list, &inherited),
        other => panic!("{other:?}"),
    };
    assert_eq!(list(json!(["/c", null, "/d"])), ["/c", "/a", "/b", "/d"]);
    assert_eq!(list(json!("/c:-")), ["/c", "/a", "/b"]);
    assert_eq!(list(json!(["./-"])), ["./-"]);
}
