//! What happens to a call between its caller and its server: names, arguments, schemas.

use super::super::Cancel;
use super::super::testing::*;
use crate::catalog::Tool;
use crate::config::ServerDef;
use crate::error::{Error, Kind};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;

#[test]
fn names_are_found_by_their_identifiers_too() {
    let s = Setup::new(vec![def("my-server")]);
    let n = json!({"n": 1});
    for (server, tool) in
        [("my-server", "strict-one"), ("my_server", "strict_one"), ("my-server", "strictOne")]
    {
        let answer = call(&s.pool, server, tool, n.clone(), &caller(""), &Cancel::new(), None).unwrap();
        assert_eq!(answer["params"], json!({"name": "strict-one", "arguments": {"n": 1}}));
    }
}

#[test]
fn what_is_not_there_is_named_with_its_neighbours() {
    let s = Setup::new(vec![def("search")]);
    let error = s.call("serach", "echo", "").unwrap_err();
    assert_eq!(error.kind(), Kind::NotFound);
    assert!(error.hint_text().unwrap().contains("search"), "{error}");
    let error = s.call("search", "ehco", "").unwrap_err();
    assert_eq!(error.kind(), Kind::NotFound);
    assert!(error.hint_text().unwrap().contains("echo"), "{error}");
    assert_eq!(s.pool.schema("nothing", false).unwrap_err().kind(), Kind::NotFound);
}

#[test]
fn a_server_that_cannot_be_used_says_why_and_is_not_started() {
    let mut off = def("off");
    off.enabled = false;
    let mut bad = def("bad");
    bad.problem = Some(Error::new(Kind::Config, "/etc/mcpx/config.json:3: neither command nor url"));
    let s = Setup::new(vec![off, bad, scoped("odd", "galaxy")]);
    let error = s.call("off", "echo", "").unwrap_err();
    assert_eq!(error.kind(), Kind::Refused);
    assert!(error.hint_text().unwrap().contains("\"enabled\": true"));
    assert!(s.call("bad", "echo", "").unwrap_err().message().contains("neither command nor url"));
    let error = s.call("odd", "echo", "").unwrap_err();
    assert_eq!(error.kind(), Kind::Config);
    assert!(error.message().contains("config.json:3") && error.message().contains("galaxy"), "{error}");
    assert_eq!(s.world.starts(), 0);
}

#[test]
fn arguments_that_break_the_schema_are_not_sent() {
    let s = Setup::new(vec![def("a")]);
    let wrong = |arguments| {
        call(&s.pool, "a", "strict-one", arguments, &caller(""), &Cancel::new(), None).unwrap_err()
    };
    let error = wrong(json!({"n": "x"}));
    assert_eq!(error.kind(), Kind::Usage);
    assert_eq!((error.server_name(), error.tool_name()), (Some("a"), Some("strict-one")));
    assert!(error.message().contains("a.strict-one") && error.message().contains(".n"), "{error}");
    assert_eq!(error.hint_text(), Some("`mcpx types a` shows what it takes"));
    assert!(wrong(json!([1])).message().contains("object"));
    assert_eq!(s.pool.status()[0].calls, 0);

    let lax = Setup::with(vec![def("a")], &[("mcp.validateArguments", json!(false))]);
    let n = json!({"n": "x"});
    call(&lax.pool, "a", "strict-one", n, &caller(""), &Cancel::new(), None).unwrap();
}

#[test]
fn schemas_come_from_disk_and_start_nothing() {
    let s = Setup::new(vec![def("a")]);
    let read = s.pool.schema("a", false).unwrap();
    assert_eq!(read.tools.len(), 4);
    assert_eq!(s.world.listings.load(Ordering::SeqCst), 1);
    s.pool.schema("a", false).unwrap();
    assert_eq!(s.world.listings.load(Ordering::SeqCst), 1);

    let next = s.next_pool(vec![def("a")]);
    assert_eq!(next.pool.schema("a", false).unwrap().tools.len(), 4);
    assert_eq!(next.pool.namespaces(false).len(), 1);
    assert_eq!(next.pool.known("a").unwrap().fetched_at, read.fetched_at);
    assert_eq!(next.world.starts(), 0);
    next.pool.schema("a", true).unwrap();
    assert_eq!(next.world.starts(), 1);
}

#[test]
fn what_disk_remembers_refuses_nothing_by_itself() {
    let s = Setup::new(vec![def("a")]);
    s.pool.schema("a", false).unwrap();
    let next = s.next_pool(vec![def("a")]);
    next.world.add_tool(Tool::named("newer"));
    next.call("a", "newer", "").expect("the server was asked again");
    assert_eq!(next.call("a", "newest", "").unwrap_err().kind(), Kind::NotFound);
    assert_eq!(next.world.listings.load(Ordering::SeqCst), 1, "and once was enough");
}

#[test]
fn a_changed_list_is_read_again_and_kept() {
    let s = Setup::new(vec![def("a")]);
    s.call("a", "echo", "").unwrap();
    s.world.add_tool(Tool::named("newer"));
    (s.world.live()[0].hooks.tools_changed)();
    eventually("the new tool is known", || s.pool.known("a").unwrap().tools.len() == 5);
    eventually("and on disk", || {
        s.next_pool(vec![def("a")]).pool.known("a").is_some_and(|schema| schema.tools.len() == 5)
    });
}

#[test]
fn a_listing_has_a_row_for_every_server() {
    let mut off = def("off");
    off.enabled = false;
    let mut defs = vec![def("broken"), off];
    defs.extend((0..20).map(|i| def(&format!("s{i}"))));
    let s = Setup::new(defs);
    s.world.fail_next_starts("broken", vec![Error::new(Kind::Unavailable, "no such program")]);
    let rows = s.pool.namespaces(false);
    let names: Vec<&str> = rows.iter().map(|(def, _)| def.name.as_str()).collect();
    assert_eq!(names.len(), 22);
    assert_eq!(&names[..3], ["broken", "off", "s0"]);
    assert_eq!(rows[0].1.as_ref().unwrap_err().message(), "no such program");
    assert_eq!(rows[0].1.as_ref().unwrap_err().server_name(), Some("broken"));
    assert_eq!(rows[1].1.as_ref().unwrap_err().kind(), Kind::Refused);
    assert!(rows[2..].iter().all(|(_, schema)| schema.is_ok()));
}

#[test]
fn one_that_hangs_is_a_row_after_its_start_timeout() {
    let mut hangs = def("hangs");
    hangs.options.start_timeout = Some(std::time::Duration::from_millis(50));
    let s = Setup::new(vec![hangs]);
    s.world.hold_starts(true);
    let rows = s.pool.namespaces(false);
    let error = rows[0].1.as_ref().unwrap_err();
    assert_eq!(error.kind(), Kind::Timeout);
    assert_eq!(error.message(), "server \"hangs\" did not start within 50ms (startTimeout)");
    s.world.hold_starts(false);
}

#[test]
fn a_listing_that_does_not_wait_leaves_the_start_to_go_on() {
    let s = Setup::new(vec![def("cached"), def("slow")]);
    s.pool.schema("cached", false).unwrap();
    s.world.hold_starts(true);
    let wait = Some(std::time::Duration::from_millis(20));
    let rows = s.pool.namespaces_of(false, wait, &|_| true);
    assert!(rows[0].1.is_ok());
    let error = rows[1].1.as_ref().unwrap_err();
    assert_eq!((error.kind(), error.server_name()), (Kind::Timeout, Some("slow")));
    assert!(error.message().starts_with("still starting after 20ms"), "{error}");
    assert!(error.message().contains("catalog.wait"), "{error}");
    let named = s.pool.schemas(&["slow".into(), "none".into(), "cached".into()], false, wait);
    assert!(named[0].as_ref().unwrap_err().message().starts_with("still starting"));
    assert_eq!(named[1].as_ref().unwrap_err().kind(), Kind::NotFound);
    assert!(named[2].is_ok());
    s.world.hold_starts(false);
    eventually("what it offers is kept", || s.next_pool(vec![def("slow")]).pool.known("slow").is_some());
    assert_eq!(s.world.starts(), 2, "nothing was started twice");
}

#[test]
fn a_listing_starts_nothing_during_the_cool_down() {
    let s = Setup::with(
        vec![def("broken")],
        &[("pool.coolDownMin", json!("1h")), ("pool.coolDownMax", json!("1h"))],
    );
    s.world.fail_next_starts("broken", vec![Error::new(Kind::Unavailable, "no such program")]);
    for _ in 0..3 {
        let rows = s.pool.namespaces(false);
        assert!(rows[0].1.as_ref().unwrap_err().message().starts_with("no such program"));
    }
    assert_eq!(s.world.starts(), 1);
}

#[test]
fn a_listing_asks_an_instance_of_its_own_where_none_is_common() {
    let s = Setup::new(vec![scoped("a", "session")]);
    s.pool.schema("a", true).unwrap();
    eventually("it is gone", || s.world.live().is_empty());
    s.call("a", "echo", "one").unwrap();
    s.pool.schema("a", true).unwrap();
    assert_eq!(s.world.starts(), 2, "a free instance was asked");
}

#[test]
fn a_reload_over_the_same_definition_keeps_what_is_known() {
    let s = Setup::new(vec![def("a")]);
    s.pool.schema("a", false).unwrap();
    let again = ServerDef { enabled: true, ..def("a") };
    s.pool.reconfigure(vec![Arc::new(again)], settings(&[("pool.sharing", json!("exclusive"))]));
    s.call("a", "echo", "").unwrap();
    assert_eq!((s.world.starts(), s.world.listings.load(Ordering::SeqCst)), (1, 1));
}
