//! Settings that are changed while a daemon runs.

use crate::api::http::{Limits, Method, Reader, write_request};
use crate::daemon::testing::{Running, call, one_server};
use crate::error::Kind;
use crate::settings::{self, Carried, Layers, Settings};
use crate::util::Env;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::Duration;

#[test]
fn an_override_holds_at_once_survives_a_reload_and_restarts_nothing() {
    let running = Running::new(&one_server(&json!({"pool": {"callTimeout": "7s"}})));
    let client = running.client();
    client.call(&call("echo", &json!({}))).unwrap();
    let get = |key: &str| client.json("GET", &format!("/v1/settings/{key}"), None).unwrap();
    let row = get("pool.callTimeout");
    assert_eq!((&row["value"], &row["hot"]), (&json!("7s"), &json!(true)));
    let from_file = row["source"].clone();
    assert!(from_file.as_str().unwrap().contains("json:"), "{row}");

    let set = client.json("PUT", "/v1/settings/pool.callTimeout", Some(&json!({"value": "3s"}))).unwrap();
    assert_eq!((&set["value"], &set["source"]), (&json!("3s"), &json!("runtime")));
    assert_eq!(set["displaced"][0], json!({"value": "7s", "text": "7s", "source": from_file}));
    let current = || running.daemon.current().settings.get(&settings::POOL_CALL_TIMEOUT);
    assert_eq!(current(), Duration::from_secs(3));
    client.json("PUT", "/v1/settings/pool.callTimeout", Some(&json!({"value": "4s"}))).unwrap();
    assert_eq!(get("pool.callTimeout")["displaced"].as_array().unwrap().len(), 2);

    let mut other = one_server(&json!({"pool": {"callTimeout": "8s"}}));
    other["pool"]["max"] = json!(3);
    running.home.write(&other.to_string());
    assert_eq!(client.json("POST", "/v1/reload", None).unwrap()["changed"], true);
    assert_eq!(current(), Duration::from_secs(4));
    assert_eq!(get("pool.callTimeout")["displaced"][0]["value"], "8s");
    let unset = client.json("DELETE", "/v1/settings/pool.callTimeout", None).unwrap();
    assert_eq!((&unset["value"], current()), (&json!("8s"), Duration::from_secs(8)));
    client.json("DELETE", "/v1/settings/pool.callTimeout", None).unwrap();

    let all = client.json("GET", "/v1/settings", None).unwrap();
    assert_eq!(all["settings"].as_array().unwrap().len(), settings::ALL.len());
    client.call(&call("echo", &json!({}))).unwrap();
    assert_eq!(running.world.starts.load(Ordering::SeqCst), 1, "the server is the same all along");
}

#[test]
fn what_a_running_daemon_cannot_take_is_refused() {
    let running = Running::new(&one_server(&json!({})));
    let client = running.client();
    let put =
        |key: &str, body: Value| client.json("PUT", &format!("/v1/settings/{key}"), Some(&body)).unwrap_err();
    for (key, body, kind, part) in [
        ("transport.listen", json!({"value": "x"}), Kind::Refused, "taken at the start"),
        ("transport.bearerToken", json!({"value": "s3cret"}), Kind::Refused, "taken at the start"),
        ("output.json", json!({"value": true}), Kind::Refused, "of the command"),
        ("paths.state", json!({"value": "/x"}), Kind::Refused, "before a configuration"),
        ("pool.mx", json!({"value": 1}), Kind::Usage, "no setting \"pool.mx\""),
        ("pool.max", json!({"value": 0}), Kind::Usage, "pool.max: must be from 1"),
        ("pool.max", json!({"valu": 1}), Kind::Usage, "value"),
        ("pool.max", json!([]), Kind::Usage, "body"),
    ] {
        let e = put(key, body);
        assert!(e.kind() == kind && e.message().contains(part), "{key}: {e}");
        assert!(!e.to_string().contains("s3cret"));
    }
    assert_eq!(client.json("GET", "/v1/settings/nope", None).unwrap_err().kind(), Kind::Usage);
    assert_eq!(client.json("DELETE", "/v1/settings/output.json", None).unwrap_err().kind(), Kind::Refused);
    assert_eq!(running.daemon.current().settings.get(&settings::POOL_MAX), 32);
}

#[test]
fn what_a_request_brings_along_is_checked() {
    let running = Running::new(&one_server(&json!({})));
    for (header, status) in [
        ("{\"pool.callTimeout\":\"3s\"}", 200),
        ("{\"some.other\":1}", 200),
        ("{\"pool.max\":1}", 400),
        ("{\"pool.callTimeout\":\"3\"}", 400),
        ("[1]", 400),
    ] {
        let mut stream = running.socket();
        let line = format!("X-Mcpx-Settings: {header}\r\n");
        write_request(&mut stream, Method::Get, "/v1/health", &line, None).unwrap();
        let answer = Reader::new(stream).response(&Limits::PATIENT).unwrap();
        assert_eq!(answer.status, status, "{header}: {}", String::from_utf8_lossy(&answer.body));
    }
    let env = Env::from_pairs([("MCPX_POOL_CALL_TIMEOUT", "3s")]);
    let client = running.client();
    client.carry(&Carried::of(&Settings::resolve(Layers::new(&env)).unwrap()));
    let run = client.open_run(&Default::default()).unwrap().run;
    let carried = || running.daemon.runs.get(&run).unwrap().carried().get(&settings::POOL_CALL_TIMEOUT);
    assert_eq!(carried(), Some(Duration::from_secs(3)));
    // Another connection that opens a channel of the run says otherwise.
    let other = client.another().unwrap();
    drop(other.channel(&run).unwrap());
    assert_eq!(carried(), Some(Duration::from_secs(3)));
    assert_eq!(running.daemon.current().settings.get(&settings::POOL_CALL_TIMEOUT), Duration::from_secs(300));
}

#[test]
fn the_calls_of_others_have_nothing_of_the_command_that_started_the_daemon() {
    let home = crate::daemon::testing::Home::new(&one_server(&json!({
        "presets": {"quick": ["--pool-call-timeout=1s", "--pool-max=5", "--raw"]},
    })));
    let config = home.config();
    let env = Env::from_pairs([
        ("MCPX_POOL_CALL_TIMEOUT", "2s"),
        ("MCPX_POOL_QUEUE", "9"),
        ("MCPX_PRESET", "quick"),
    ]);
    let values = |detached| {
        let all = crate::daemon::events::settings_of(&config, &env, &[], &[], detached).unwrap();
        let timeout = all.get(&settings::POOL_CALL_TIMEOUT);
        (timeout.as_secs(), all.get(&settings::POOL_QUEUE), all.get(&settings::POOL_MAX))
    };
    assert_eq!(values(true), (300, 9, 5));
    assert_eq!(values(false), (1, 9, 5));
}
