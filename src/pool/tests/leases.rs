//! Who reaches which instance, and in which order.

use super::super::testing::*;
use super::super::{Caller, Cancel};
use crate::error::Kind;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

#[test]
fn a_shared_instance_takes_all_callers_at_once() {
    let s = Arc::new(Setup::new(vec![def("a")]));
    let threads: Vec<_> = (0..8)
        .map(|i| {
            let s = s.clone();
            thread::spawn(move || s.call("a", "hold", &format!("s{i}")).unwrap())
        })
        .collect();
    eventually("all eight are in", || s.world.held().len() == 8);
    s.world.open_gate();
    threads.into_iter().for_each(|t| drop(t.join().unwrap()));
    assert_eq!(s.world.starts(), 1);
    assert_eq!(s.world.live()[0].peak(), 8);
}

#[test]
fn an_exclusive_instance_takes_one_at_a_time_in_order() {
    let s = Arc::new(Setup::new(vec![exclusive("a")]));
    s.call("a", "echo", "").unwrap();
    let mut threads = Vec::new();
    for i in 0..5usize {
        let other = s.clone();
        threads.push(thread::spawn(move || {
            let c = Cancel::new();
            call(&other.pool, "a", "hold", json!({"i": i}), &caller("s"), &c, None).unwrap()
        }));
        // One is in, the others wait behind each other.
        eventually("the next one came", || {
            let row = &s.pool.status()[0];
            row.in_flight + row.queue == i + 1
        });
    }
    assert_eq!(s.world.held(), [json!({"i": 0})], "only the first is in");
    s.world.open_gate();
    threads.into_iter().for_each(|t| drop(t.join().unwrap()));
    let order: Vec<_> = s.world.held();
    assert_eq!(order, (0..5).map(|i| json!({"i": i})).collect::<Vec<_>>());
    assert_eq!(s.world.live()[0].peak(), 1);
}

#[test]
fn one_who_leaves_the_line_loses_the_place() {
    let s = Arc::new(Setup::new(vec![exclusive("a")]));
    let enter = |i: usize, cancel: &Cancel| {
        let (other, cancel) = (s.clone(), cancel.clone());
        let at = thread::spawn(move || {
            call(&other.pool, "a", "hold", json!({"i": i}), &caller("s"), &cancel, None)
        });
        eventually("in line", || {
            s.pool.status().first().is_some_and(|row| row.in_flight + row.queue == i + 1)
        });
        at
    };
    let leaver = Cancel::new();
    let first = enter(0, &Cancel::new());
    let second = enter(1, &leaver);
    let third = enter(2, &Cancel::new());
    leaver.cancel();
    assert_eq!(second.join().unwrap().unwrap_err().kind(), Kind::Cancelled);
    assert_eq!(s.pool.status()[0].queue, 1, "the third alone still waits");
    s.world.open_gate();
    first.join().unwrap().unwrap();
    third.join().unwrap().unwrap();
    assert_eq!(s.world.held(), [json!({"i": 0}), json!({"i": 2})], "the second was never sent");
}

#[test]
fn one_whose_time_is_up_while_waiting_is_told_that_nothing_was_sent() {
    let s = Arc::new(Setup::new(vec![exclusive("a")]));
    let other = s.clone();
    let first = thread::spawn(move || other.call("a", "hold", "s"));
    eventually("the first is in", || s.world.held().len() == 1);
    let limit = Some(Duration::from_millis(20));
    let late = call(&s.pool, "a", "hold", json!({}), &caller("s"), &Cancel::new(), limit).unwrap_err();
    assert_eq!(late.kind(), Kind::Timeout);
    assert!(late.message().contains("not sent"), "{}", late.message());
    s.world.open_gate();
    first.join().unwrap().unwrap();
    assert_eq!(s.world.held().len(), 1);
}

#[test]
fn a_full_line_is_refused() {
    let s = Arc::new(Setup::with(vec![exclusive("a")], &[("pool.queue", json!(1))]));
    s.call("a", "echo", "").unwrap();
    let threads: Vec<_> = (0..2)
        .map(|i| {
            let other = s.clone();
            let at = thread::spawn(move || other.call("a", "hold", "s"));
            eventually("in line", || s.pool.status()[0].in_flight + s.pool.status()[0].queue == i + 1);
            at
        })
        .collect();
    let refused = s.call("a", "hold", "s").unwrap_err();
    assert_eq!(refused.kind(), Kind::Busy);
    assert!(refused.hint_text().unwrap().contains("pool.queue"));
    s.world.open_gate();
    threads.into_iter().for_each(|t| drop(t.join().unwrap().unwrap()));
}

#[test]
fn sessions_do_not_share_and_families_do() {
    let s = Setup::new(vec![scoped("mine", "session"), scoped("ours", "parent-session"), def("all")]);
    let id = |server: &str, caller: &Caller| {
        let answer = call(&s.pool, server, "echo", json!({}), caller, &Cancel::new(), None).unwrap();
        answer["instance"].as_u64().unwrap()
    };
    let parent = Caller { session_id: Some("p".into()), ..caller("p") };
    let child = Caller { session_id: Some("c".into()), parent_session_id: Some("p".into()), ..caller("c") };
    assert_eq!(id("mine", &parent), id("mine", &parent));
    assert_ne!(id("mine", &parent), id("mine", &child));
    assert_eq!(id("ours", &parent), id("ours", &child));
    assert_eq!(id("all", &parent), id("all", &child));
    assert_eq!(s.world.starts(), 4);

    s.pool.end_session("c");
    eventually("the child's own instance is gone", || s.world.live().len() == 3);
    assert_eq!(id("ours", &child), id("ours", &parent), "what it shared is still there");
    s.pool.end_session("p");
    eventually("the family's instance is gone, the common one stays", || {
        s.world.live().iter().map(|f| f.server.as_str()).collect::<Vec<_>>() == ["all"]
    });
}

#[test]
fn an_unresolved_scope_gives_each_call_its_own_instance_and_warns_once() {
    let s = Setup::new(vec![scoped("a", "session")]);
    let one = s.call("a", "echo", "").unwrap();
    let two = s.call("a", "echo", "").unwrap();
    assert_ne!(one["instance"], two["instance"]);
    eventually("both are gone", || s.world.live().is_empty() && s.pool.status().is_empty());
    let warnings = s.pool.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("MCPX_SESSION_ID"), "{warnings:?}");
}

#[test]
fn a_server_keyed_by_place_runs_there() {
    let s = Setup::new(vec![scoped("a", "cwd")]);
    let here = Caller { cwd: Some(s.tmp.path().to_path_buf()), ..Caller::default() };
    call(&s.pool, "a", "echo", json!({}), &here, &Cancel::new(), None).unwrap();
    let fake = &s.world.live()[0];
    assert_eq!(fake.cwd.as_deref(), Some(s.tmp.path()));
    assert_eq!((fake.hooks.roots)(), [s.tmp.path().to_path_buf()]);
}

#[test]
fn too_many_sessions_are_refused_and_too_many_calls_wait() {
    let s = Arc::new(Setup::with(
        vec![scoped("mine", "session"), scoped("once", "call")],
        &[("pool.max", json!(2))],
    ));
    s.call("mine", "echo", "s1").unwrap();
    s.call("mine", "echo", "s2").unwrap();
    let refused = s.call("mine", "echo", "s3").unwrap_err();
    assert_eq!(refused.kind(), Kind::Busy);
    assert!(refused.hint_text().unwrap().contains("pool.max"));

    let threads: Vec<_> = (0..6)
        .map(|_| {
            let other = s.clone();
            thread::spawn(move || other.call("once", "hold", "").unwrap())
        })
        .collect();
    eventually("two are in", || s.world.held().len() == 2);
    assert_eq!(s.world.live().iter().filter(|f| f.server == "once").count(), 2);
    s.world.open_gate();
    threads.into_iter().for_each(|t| drop(t.join().unwrap()));
    assert_eq!(s.world.held().len(), 6);
    eventually("none is left", || s.world.live().iter().all(|f| f.server == "mine"));
}

#[test]
fn many_threads_each_get_their_own_answers() {
    let servers = vec![def("a"), exclusive("b"), scoped("c", "session")];
    let s = Arc::new(Setup::with(servers, &[("pool.max", json!(64))]));
    let threads: Vec<_> = (0..64)
        .map(|i| {
            let s = s.clone();
            thread::spawn(move || {
                let who = caller(&format!("s{i}"));
                for n in 0..100 {
                    let server = ["a", "b", "c"][(i + n) % 3];
                    let arguments = json!({"i": i, "n": n});
                    let answer =
                        call(&s.pool, server, "echo", arguments.clone(), &who, &Cancel::new(), None).unwrap();
                    assert_eq!(answer["params"], json!({"name": "echo", "arguments": arguments}));
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
    let live = s.world.live();
    assert_eq!(live.iter().filter(|f| f.server == "a").count(), 1);
    assert_eq!(live.iter().filter(|f| f.server == "b").count(), 1);
    assert_eq!(live.iter().filter(|f| f.server == "c").count(), 64);
    assert!(live.iter().filter(|f| f.server == "b").all(|f| f.peak() == 1));
    let rows = s.pool.status();
    assert_eq!(rows.iter().map(|r| r.calls).sum::<u64>(), 6400);
    assert!(rows.iter().all(|r| r.in_flight == 0 && r.queue == 0));
    assert!(!s.pool.busy());
    assert_eq!(s.world.listings.load(Ordering::SeqCst), 3, "each server was listed once");
    s.pool.shutdown();
    assert!(s.world.live().is_empty());
}
