//! Following the configuration, and being found meanwhile.

use crate::api::{daemons, info};
use crate::daemon::testing::{Running, call, eventually, one_server};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;

fn count(client: &crate::api::Client) -> u64 {
    let result: Value = serde_json::from_str(client.call(&call("count", &json!({}))).unwrap().get()).unwrap();
    result["structuredContent"].as_u64().unwrap()
}

#[test]
fn an_edit_gives_a_new_key_and_keeps_the_stateful_server() {
    let running = Running::new(&one_server(&json!({})));
    let before = running.client();
    assert_eq!(count(&before), 1);
    let old_key = before.info().key.clone();
    let old_socket = before.info().socket.clone();
    running.home.write(&one_server(&json!({"pool": {"max": 5}})).to_string());
    // No daemon has the new key; the one over the same files is asked to follow.
    let after = running.client();
    assert_ne!(after.info().key, old_key);
    assert_eq!(after.info().key, running.home.config().key);
    assert_eq!(count(&after), 2);
    assert_eq!(running.world.starts.load(Ordering::SeqCst), 1);
    // Who is connected stays, and the old names still lead here for a while.
    assert_eq!(count(&before), 3);
    assert!(old_socket.exists());
    assert_eq!(count(&before.another().unwrap()), 4);
    assert_eq!(daemons(&running.home.dirs).iter().filter(|(_, live, _)| *live).count(), 1);
}

#[test]
fn the_tick_follows_edits_and_old_names_end_after_their_grace() {
    let settings = json!({"daemon": {"tick": "20ms", "keyGrace": "100ms"}});
    let running = Running::new(&one_server(&settings));
    let old = running.daemon.current().config.key.clone();
    let mut edited = one_server(&settings);
    edited["mcpServers"]["other"] = json!({"command": "other"});
    running.home.write(&edited.to_string());
    eventually("the daemon follows", || running.daemon.current().config.key != old);
    let key = running.daemon.current().config.key.clone();
    assert_eq!(key, running.home.config().key);
    eventually("the old names are given back", || {
        !info::info_path(&running.home.dirs, &old).exists()
            && !info::socket_path(&running.home.dirs, &old).exists()
            && !info::lock_path(&running.home.dirs, &old).exists()
    });
    let health = running.client().json("GET", "/v1/health", None).unwrap();
    assert_eq!((&health["servers"], &health["key"]), (&json!(2), &json!(key)));
}

#[test]
fn an_undone_edit_takes_the_old_names_back() {
    let running = Running::new(&one_server(&json!({})));
    let first = one_server(&json!({}));
    let second = one_server(&json!({"pool": {"max": 5}}));
    let key = running.daemon.current().config.key.clone();
    for n in 0..10 {
        running.home.write(&(if n % 2 == 0 { &second } else { &first }).to_string());
        let client = running.client();
        assert_eq!(client.info().key, running.home.config().key);
        assert_eq!(count(&client), n + 1);
    }
    assert_eq!(running.daemon.current().config.key, key);
    assert_eq!(running.world.starts.load(Ordering::SeqCst), 1);
}

#[test]
fn a_broken_edit_keeps_the_last_good_configuration_and_is_told() {
    let running = Running::new(&one_server(&json!({})));
    let client = running.client();
    let key = client.info().key.clone();
    running.home.write("{\n  \"mcpServers\": {,}\n}");
    let reloaded = client.json("POST", "/v1/reload", None).unwrap();
    assert_eq!((&reloaded["changed"], &reloaded["key"]), (&json!(false), &json!(key)));
    let message = reloaded["problem"]["message"].as_str().unwrap();
    assert!(message.contains(".mcpx.json:2:"), "{message}");
    assert_eq!(count(&client), 1);
    let status = client.json("GET", "/v1/status", None).unwrap();
    assert_eq!(status["daemon"]["problem"]["message"], message);
    // A file that is gone is a broken edit too.
    std::fs::remove_file(running.home.project().join(".mcpx.json")).unwrap();
    let reloaded = client.json("POST", "/v1/reload", None).unwrap();
    assert!(reloaded["problem"]["message"].as_str().unwrap().contains("gone"));
    running.home.write(&one_server(&json!({})).to_string());
    let reloaded = client.json("POST", "/v1/reload", None).unwrap();
    assert_eq!(reloaded.get("problem"), None);
    assert_eq!(count(&client), 2);
}

#[test]
fn a_reload_says_what_was_taken_over_and_when_it_was_so_before() {
    let running = Running::new(&one_server(&json!({})));
    let client = running.client();
    assert_eq!(client.json("POST", "/v1/reload", None).unwrap().get("taken"), None);
    let other = json!({"mcpServers": {"other": {"command": "other"}}, "transport": {"tcp": false}});
    running.home.write(&other.to_string());
    // The daemon may have noticed by itself before: what was taken over is the same.
    let taken = client.json("POST", "/v1/reload", None).unwrap()["taken"].take();
    assert_eq!(taken["added"], json!(["other"]), "{taken}");
    assert_eq!(taken["removed"].as_array().unwrap().len(), 1, "{taken}");
    let again = client.json("POST", "/v1/reload", None).unwrap();
    assert_eq!((&again["changed"], &again["taken"]), (&json!(false), &taken));
    let other = json!({"mcpServers": {"other": {"command": "third"}}, "transport": {"tcp": false}});
    running.home.write(&other.to_string());
    let taken = client.json("POST", "/v1/reload", None).unwrap()["taken"].take();
    assert_eq!((&taken["changed"], &taken["added"]), (&json!(["other"]), &json!([])), "{taken}");
}

#[test]
fn a_removed_server_stops_and_a_new_one_serves() {
    let running = Running::new(&one_server(&json!({})));
    let client = running.client();
    assert_eq!(count(&client), 1);
    let other = json!({"mcpServers": {"other": {"command": "other"}}, "transport": {"tcp": false}});
    running.home.write(&other.to_string());
    let client = running.client();
    eventually("the old server stops", || running.world.live() == 0);
    let mut wanted = call("count", &json!({}));
    wanted.server = "other".into();
    client.call(&wanted).unwrap();
    assert_eq!(running.world.live(), 1);
    assert_eq!(client.json("GET", "/v1/health", None).unwrap()["servers"], 1);
}

#[test]
fn a_command_in_the_instant_of_an_edit_reaches_the_one_daemon() {
    let running = Running::new(&one_server(&json!({"daemon": {"tick": "10ms"}})));
    for n in 0..200u64 {
        running
            .home
            .write(&one_server(&json!({"daemon": {"tick": "10ms"}, "pool": {"max": n + 1}})).to_string());
        let client = running.client();
        assert_eq!(count(&client), n + 1);
    }
    assert_eq!(running.world.starts.load(Ordering::SeqCst), 1);
}

#[test]
fn a_second_daemon_for_the_same_configuration_is_refused() {
    let running = Running::new(&one_server(&json!({})));
    let key = running.daemon.current().config.key.clone();
    let error = crate::daemon::names::Names::take(&running.home.dirs, &key, "", std::time::Duration::ZERO)
        .err()
        .expect("the names are taken");
    assert!(error.message().contains("already running"), "{error}");
    assert!(running.home.find().unwrap().is_some());
}
