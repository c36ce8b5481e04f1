//! How instances start, fail, end and are replaced.

use super::super::testing::*;
use super::super::{Caller, Cancel};
use crate::error::{Error, Kind};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

fn broken(why: &str) -> Error {
    Error::new(Kind::Unavailable, why)
}

#[test]
fn concurrent_callers_share_one_start_and_its_failure() {
    let s = Arc::new(Setup::new(vec![def("a")]));
    s.world.fail_next_starts("a", vec![broken("no such program")]);
    s.world.hold_starts(true);
    let threads: Vec<_> = (0..5)
        .map(|_| {
            let other = s.clone();
            thread::spawn(move || other.call("a", "echo", ""))
        })
        .collect();
    eventually("all wait for the start", || s.pool.status().first().is_some_and(|r| r.queue == 5));
    assert!(s.pool.busy());
    s.world.hold_starts(false);
    for t in threads {
        assert_eq!(t.join().unwrap().unwrap_err().message(), "no such program");
    }
    assert_eq!(s.world.starts(), 1);
}

#[test]
fn a_failure_is_repeated_with_its_cause_until_the_cool_down_is_over() {
    let s = Setup::with(vec![def("a"), def("b")], &[("pool.coolDownMin", json!("1h"))]);
    s.world.fail_next_starts("a", vec![broken("exit code 3: boom")]);
    s.call("a", "echo", "").unwrap_err();
    let again = s.call("a", "echo", "").unwrap_err();
    assert_eq!(again.kind(), Kind::Unavailable);
    assert!(
        again.message().starts_with("exit code 3: boom (server \"a\" failed once"),
        "{}",
        again.message()
    );
    assert!(again.hint_text().unwrap().contains("mcpx restart a"));
    assert_eq!(s.world.starts(), 1, "it was not started again");
    let rows = s.pool.status();
    assert_eq!((rows[0].state, rows[0].last_error.as_deref()), ("failed", Some("exit code 3: boom")));
    s.call("b", "echo", "").expect("another server is not concerned");

    assert_eq!(s.pool.restart(Some("a"), None), 0, "nothing ran");
    s.call("a", "echo", "").expect("a restart tries at once");
}

#[test]
fn what_a_server_wrote_is_not_continued_by_the_cool_down() {
    let s = Setup::with(vec![def("a")], &[("pool.coolDownMin", json!("1h"))]);
    s.world.fail_next_starts("a", vec![broken("its stderr ends with:\n  no token")]);
    s.call("a", "echo", "").unwrap_err();
    let again = s.call("a", "echo", "").unwrap_err();
    assert!(again.message().contains("no token\n(server \"a\" failed once"), "{}", again.message());
}

#[test]
fn the_cool_down_ends_by_itself() {
    let s = Setup::with(vec![def("a")], &[("pool.coolDownMin", json!("20ms"))]);
    s.world.fail_next_starts("a", vec![broken("one"), broken("two")]);
    s.call("a", "echo", "").unwrap_err();
    eventually("the second start", || s.call("a", "echo", "").unwrap_err().message() == "two");
    eventually("the third start", || s.call("a", "echo", "").is_ok());
    assert_eq!(s.world.starts(), 3);
}

#[test]
fn one_that_dies_before_it_answered_anything_counts_as_failed() {
    let s = Setup::with(vec![def("a")], &[("pool.coolDownMin", json!("1h"))]);
    s.pool.schema("a", false).unwrap();
    let next = s.next_pool(vec![def("a")]);
    // The schema is known from disk, so that the first thing asked of the server is the call.
    next.world.hold_starts(true);
    let limit = Some(Duration::from_millis(1));
    let gave_up = call(&next.pool, "a", "echo", json!({}), &caller(""), &Cancel::new(), limit);
    assert_eq!(gave_up.unwrap_err().kind(), Kind::Timeout);
    next.world.hold_starts(false);
    eventually("it is ready, and nobody came", || next.pool.status().iter().any(|r| r.state == "ready"));
    next.world.live()[0].die("exit code 1");
    eventually("it is gone", || next.pool.status().iter().all(|r| r.state == "failed"));
    let error = next.call("a", "echo", "").unwrap_err();
    assert!(error.message().contains("exit code 1"), "{}", error.message());
}

#[test]
fn a_crash_in_mid_call_is_an_unknown_outcome_and_the_next_call_gets_a_new_instance() {
    let s = Setup::with(vec![def("a")], &[("pool.coolDownMin", json!("1h"))]);
    let error = s.call("a", "crash", "").unwrap_err();
    assert_eq!(error.kind(), Kind::OutcomeUnknown);
    assert_eq!((error.server_name(), error.tool_name()), (Some("a"), Some("crash")));
    assert!(error.message().contains("exit code 7"), "{}", error.message());
    assert_eq!(s.world.starts(), 1, "it was not sent again");
    assert_eq!(s.call("a", "echo", "").unwrap()["instance"], 2);
    assert!(s.pool.status()[0].last_error.as_deref().unwrap().contains("exit code 7"));
}

#[test]
fn an_instance_that_died_while_idle_is_replaced_without_anybody_noticing() {
    let s = Setup::new(vec![def("a")]);
    s.call("a", "echo", "").unwrap();
    s.world.live()[0].die("exit code 0");
    assert_eq!(s.call("a", "echo", "").unwrap()["instance"], 2);
}

#[test]
fn a_restart_answers_what_is_in_flight_and_recycles_one_session() {
    let s = Arc::new(Setup::new(vec![scoped("a", "session")]));
    s.call("a", "echo", "one").unwrap();
    s.call("a", "echo", "two").unwrap();
    let other = s.clone();
    let held = thread::spawn(move || other.call("a", "hold", "one"));
    eventually("the call is in", || s.world.held().len() == 1);
    assert_eq!(s.pool.restart(Some("a"), Some("one")), 1);
    let error = held.join().unwrap().unwrap_err();
    assert_eq!(error.kind(), Kind::OutcomeUnknown);
    assert!(error.message().contains("was restarted"), "{}", error.message());
    assert_eq!(s.call("a", "echo", "two").unwrap()["instance"], 2, "the other session keeps its own");
    assert_eq!(s.call("a", "echo", "one").unwrap()["instance"], 3);
}

#[test]
fn those_who_wait_through_a_restart_reach_the_successor() {
    let s = Arc::new(Setup::new(vec![exclusive("a")]));
    s.call("a", "echo", "").unwrap();
    let hold = || {
        let other = s.clone();
        thread::spawn(move || other.call("a", "hold", ""))
    };
    let first = hold();
    eventually("the first is in", || s.world.held().len() == 1);
    let second = hold();
    eventually("the second waits", || s.pool.status()[0].queue == 1);
    s.pool.restart(None, None);
    assert_eq!(first.join().unwrap().unwrap_err().kind(), Kind::OutcomeUnknown);
    s.world.open_gate();
    second.join().unwrap().expect("it was never sent to the first instance");
    assert_eq!(s.world.starts(), 2);
}

#[test]
fn the_end_of_a_session_answers_its_calls() {
    let s = Arc::new(Setup::new(vec![scoped("a", "session")]));
    let other = s.clone();
    let held = thread::spawn(move || other.call("a", "hold", "one"));
    eventually("the call is in", || s.world.held().len() == 1);
    s.pool.end_session("two");
    assert!(!held.is_finished() && s.world.live().len() == 1);
    s.pool.end_session("one");
    assert!(held.join().unwrap().unwrap_err().message().contains("its session ended"));
    eventually("nothing is left", || s.pool.status().is_empty());
}

#[test]
fn a_straggler_of_a_run_that_ended_leaves_nothing_behind() {
    let s = Setup::new(vec![scoped("a", "session")]);
    let run = Caller { ephemeral: true, ..caller("run") };
    let echo = || call(&s.pool, "a", "echo", json!({}), &run, &Cancel::new(), None);
    echo().unwrap();
    s.pool.end_session("run");
    assert!(echo().unwrap_err().message().contains("its session ended"));
    eventually("nothing is left", || s.world.live().is_empty() && s.pool.status().is_empty());
    // A session with a name may be taken up again.
    s.pool.end_session("named");
    s.call("a", "echo", "named").unwrap();
}

#[test]
fn what_is_idle_is_reaped_and_what_works_is_not() {
    let s = Arc::new(Setup::with(vec![def("a"), def("b")], &[("pool.idleTimeout", json!("100ms"))]));
    s.call("a", "echo", "").unwrap();
    let other = s.clone();
    let held = thread::spawn(move || other.call("b", "hold", ""));
    eventually("the call is in", || s.world.held().len() == 1);
    eventually("the idle one is gone", || {
        s.pool.reap(&|_| false);
        s.world.live().iter().all(|f| f.server == "b")
    });
    assert!(!held.is_finished());
    s.world.open_gate();
    held.join().unwrap().unwrap();
}

#[test]
fn an_instance_of_a_process_ends_with_it() {
    let s = Setup::new(vec![scoped("a", "pid")]);
    let me = Caller { pid: Some(std::process::id()), ..Caller::default() };
    call(&s.pool, "a", "echo", json!({}), &me, &Cancel::new(), None).unwrap();
    s.pool.reap(&|_| false);
    assert_eq!(s.pool.status()[0].state, "ready");

    let mut child = short_process();
    let other = Caller { pid: Some(child.id()), ..Caller::default() };
    call(&s.pool, "a", "echo", json!({}), &other, &Cancel::new(), None).unwrap();
    assert_eq!(s.world.live().len(), 2);
    drop(child.stdin.take());
    child.wait().unwrap();
    eventually("its instance is gone", || {
        s.pool.reap(&|_| false);
        s.world.live().len() == 1
    });
}

/// A process that ends when its stdin does.
#[allow(clippy::disallowed_methods, reason = "a process to watch")]
fn short_process() -> std::process::Child {
    let piped = std::process::Stdio::piped();
    std::process::Command::new("cat").stdin(piped).stdout(std::process::Stdio::null()).spawn().unwrap()
}

#[test]
fn a_timeout_leaves_an_instance_that_answers_pings() {
    let s = Setup::new(vec![def("a")]);
    s.call("a", "echo", "").unwrap();
    let time_out = || {
        let limit = Some(Duration::from_millis(5));
        call(&s.pool, "a", "hold", json!({}), &caller(""), &Cancel::new(), limit).unwrap_err()
    };
    assert_eq!(time_out().kind(), Kind::Timeout);
    eventually("it was pinged", || s.world.pings.load(Ordering::SeqCst) == 1);
    assert_eq!(s.call("a", "echo", "").unwrap()["instance"], 1);

    s.world.be_deaf(true);
    eventually("the deaf one is gone", || {
        time_out();
        s.world.live().iter().all(|f| f.id > 1)
    });
    s.world.be_deaf(false);
    eventually("a new one answers", || s.call("a", "echo", "").is_ok());
}

#[test]
fn a_new_configuration_keeps_what_did_not_change() {
    let s = Arc::new(Setup::new(vec![def("a"), def("b"), def("c")]));
    for server in ["a", "b", "c"] {
        s.call(server, "echo", "").unwrap();
    }
    let other = s.clone();
    let held = thread::spawn(move || other.call("b", "hold", ""));
    eventually("the call is in", || s.world.held().len() == 1);

    let changed = crate::config::ServerDef { digest: "another".into(), ..def("b") };
    let kept = crate::config::ServerDef { description: Some("new words".into()), ..def("a") };
    s.pool.reconfigure(vec![kept, changed].into_iter().map(Arc::new).collect(), settings(&[]));

    assert_eq!(s.call("a", "echo", "").unwrap()["instance"], 1, "unchanged: kept");
    assert_eq!(s.call("b", "echo", "").unwrap()["instance"], 4, "changed: a new one");
    assert_eq!(s.call("c", "echo", "").unwrap_err().kind(), Kind::NotFound);
    assert!(!held.is_finished(), "what is in flight is finished first");
    s.world.open_gate();
    held.join().unwrap().unwrap();
    eventually("the old ones are gone", || {
        s.pool.reap(&|_| false);
        s.world.live().iter().map(|f| f.id).collect::<Vec<_>>() == [1, 4] && s.pool.status().len() == 2
    });
}

#[test]
fn a_shutdown_answers_everybody_and_leaves_nothing() {
    let s = Arc::new(Setup::new(vec![def("a"), exclusive("b"), def("c")]));
    s.call("c", "echo", "").unwrap();
    let begin = |server: &'static str| {
        let other = s.clone();
        thread::spawn(move || other.call(server, "hold", ""))
    };
    let (flying, first) = (begin("a"), begin("b"));
    eventually("two are in", || s.world.held().len() == 2);
    let waiting = begin("b");
    eventually("one waits", || s.pool.status().iter().any(|r| r.queue == 1));
    s.pool.shutdown();
    for (call, kind) in
        [(flying, Kind::OutcomeUnknown), (first, Kind::OutcomeUnknown), (waiting, Kind::Cancelled)]
    {
        let error = call.join().unwrap().unwrap_err();
        assert_eq!(error.kind(), kind, "{}", error.message());
        assert!(error.message().contains("shutting down"), "{}", error.message());
    }
    assert!(s.world.live().is_empty());
    assert_eq!(s.call("a", "echo", "").unwrap_err().kind(), Kind::Unavailable);
    assert_eq!(s.world.starts(), 3);
}

#[test]
fn a_shutdown_breaks_off_a_start() {
    let s = Arc::new(Setup::new(vec![def("a")]));
    s.world.hold_starts(true);
    let other = s.clone();
    let waiting = thread::spawn(move || other.call("a", "echo", ""));
    eventually("it is starting", || s.world.starts() == 1);
    s.pool.shutdown();
    assert!(waiting.join().unwrap().is_err());
    assert!(s.pool.status().is_empty() && s.world.live().is_empty());
}

#[test]
fn a_dropped_pool_leaves_nothing() {
    let s = Setup::new(vec![def("a")]);
    s.call("a", "echo", "").unwrap();
    let Setup { pool, world, .. } = s;
    drop(pool);
    assert!(world.live().is_empty());
}
