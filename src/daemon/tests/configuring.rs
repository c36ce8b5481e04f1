//! The servers as configuration: filters, profiles, and changing them over the interface.

use crate::api::wire::{CallContext, OpenRun, SelectedProfiles};
use crate::daemon::testing::{Program, Running, call, one_server};
use crate::error::Kind;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;

fn count(client: &crate::api::Client) -> Value {
    let result: Value = serde_json::from_str(client.call(&call("count", &json!({}))).unwrap().get()).unwrap();
    result["structuredContent"].clone()
}

fn names(rows: &Value) -> Vec<&str> {
    rows.as_array().unwrap().iter().map(|r| r["name"].as_str().unwrap()).collect()
}

#[test]
fn servers_are_added_and_removed_and_the_others_keep_running() {
    let running = Running::new(&one_server(&json!({})));
    let client = running.client();
    let before = count(&client);
    let added = client
        .json(
            "PUT",
            "/v1/servers/a%20b",
            Some(&json!({"definition": {"command": "fake", "env": {"K": "secret"}}})),
        )
        .unwrap();
    assert_eq!(added["change"], "added");
    let listed = client.json("GET", "/v1/servers", None).unwrap();
    assert_eq!(names(&listed["servers"]), ["fake", "a b"]);
    assert!(!listed.to_string().contains("secret"), "{listed}");
    let again =
        client.json("PUT", "/v1/servers/a%20b", Some(&json!({"definition": {"command": "other"}}))).unwrap();
    assert_eq!(again["change"], "replaced");
    let gone = client.json("DELETE", "/v1/servers/a%20b", None).unwrap();
    assert_eq!(gone["change"], "removed");
    for (method, path, body, kind) in [
        ("DELETE", "/v1/servers/a%20b", None, Kind::NotFound),
        ("PUT", "/v1/servers/x", Some(json!({"definition": {"args": []}})), Kind::Usage),
        ("PUT", "/v1/servers/x", Some(json!({})), Kind::Usage),
        (
            "PUT",
            "/v1/servers/x",
            Some(json!({"definition": {"command": "x"}, "file": "/etc/passwd"})),
            Kind::NotFound,
        ),
    ] {
        let e = client.json(method, path, body.as_ref()).unwrap_err();
        assert_eq!(e.kind(), kind, "{method} {path}: {e}");
    }
    assert_ne!(count(&client), before);
    assert_eq!(running.world.starts.load(Ordering::SeqCst), 1, "the first server was not restarted");
}

#[test]
fn a_selection_travels_with_calls_runs_and_listings() {
    let mut config = one_server(&json!({}));
    config["mcpServers"]["work"] = json!({"command": "fake", "mcpx": {"profiles": ["work"]}});
    let running = Running::new(&config);
    let client = running.client();
    let listed = |query: &str| {
        let answer = client.json("GET", &format!("/v1/namespaces{query}"), None).unwrap();
        names(&answer["namespaces"]).join(" ")
    };
    assert_eq!(listed(""), "fake work", "nothing said: everything");
    assert_eq!(listed("?allProfiles=0"), "fake");
    assert_eq!(listed("?profile=work&skipDefault"), "work");
    let with = |selection: Option<SelectedProfiles>| {
        let mut call = call("echo", &json!({}));
        call.server = "work".into();
        call.context.selection = selection;
        client.call(&call)
    };
    assert!(with(None).is_ok());
    assert!(with(Some(SelectedProfiles { profile: vec!["work".into()], ..Default::default() })).is_ok());
    let e = with(Some(SelectedProfiles::default())).unwrap_err();
    assert!(e.kind() == Kind::Refused && e.hint_text().unwrap().contains("--profile work"), "{e}");

    // A run's selection holds for everything that its program asks for.
    let context = CallContext { selection: Some(SelectedProfiles::default()), ..Default::default() };
    let opener = running.client();
    let opened = opener.open_run(&OpenRun { context, ..OpenRun::default() }).unwrap();
    assert_eq!(opened.namespaces.iter().map(|n| n.name.as_str()).collect::<Vec<_>>(), ["fake"]);
    let mut program = Program::new(&opener, &opened.run);
    program.send(&json!({"id": 1, "op": "namespaces"}));
    assert_eq!(names(&program.next().unwrap()["result"]["namespaces"]), ["fake"]);
    program.send(&json!({"id": 2, "op": "call", "params": {"server": "work", "tool": "echo"}}));
    assert_eq!(program.next().unwrap()["error"]["kind"], "refused");
    // A server is not configured from within a run.
    program
        .send(&json!({"id": 3, "op": "putServer", "params": {"name": "x", "definition": {"command": "x"}}}));
    assert_eq!(program.next().unwrap()["error"]["kind"], "refused");
}
