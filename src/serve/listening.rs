//! `subscriptions/listen` of the stateless era: what a host wants to hear, as
//! far as it can be had. Knows nothing of how it is told.

use super::backend::Asked;
use super::dispatch::{Ask, tagged};
use super::fault::Fault;
use super::news::{News, Watch};
use super::resources;
use super::session::Session;
use super::tasks;
use crate::mcp::jsonrpc;
use crate::pool::Cancel;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Tells until whoever listens has gone.
///
/// # Errors
/// Parameters that are none.
pub fn listen(session: &Session, ask: &Ask<'_>) -> Result<String, Fault> {
    #[derive(Deserialize)]
    struct Params {
        notifications: Map<String, Value>,
    }
    let wanted = ask.params::<Params>()?.notifications;
    // Only what was asked for and can be had.
    let mut honoured = Map::new();
    for (_, filter) in News::of_lists().iter().filter_map(News::of_list) {
        let can = session.options.passthrough || filter == "toolsListChanged";
        if can && wanted.get(filter) == Some(&Value::Bool(true)) {
            honoured.insert(filter.into(), true.into());
        }
    }
    let uris = wanted.get("resourceSubscriptions").and_then(Value::as_array);
    let uris = uris.filter(|_| session.options.passthrough).into_iter().flatten().filter_map(Value::as_str);
    let watches: Vec<Watch> = uris.filter_map(|uri| resources::watch(session, ask, uri).ok()).collect();
    if !watches.is_empty() {
        let shown: Vec<&str> = watches.iter().map(|watch| watch.shown.as_str()).collect();
        honoured.insert("resourceSubscriptions".into(), json!(shown));
    }
    let ids = wanted.get("taskIds").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let ids = tasks::named(session, ask, ids);
    if !ids.is_empty() {
        honoured.insert("taskIds".into(), json!(ids));
    }
    let tag: Value = serde_json::from_str(ask.request.id.get()).unwrap_or_default();
    let acknowledged = json!({"notifications": honoured, "_meta": tagged(&tag)});
    ask.out.send(&jsonrpc::notification("notifications/subscriptions/acknowledged", Some(&acknowledged)));
    if !honoured.is_empty() {
        let watched = session.listen(ask, Value::Object(honoured), watches);
        // Whoever asked has gone; what was asked of servers for it goes too.
        let cancel = Cancel::new();
        for watch in watched {
            let asked = Asked { cancel: &cancel, progress: None };
            let _ = resources::watching(session, &watch, false, &asked);
        }
    }
    Ok(ask.result(json!({"_meta": tagged(&tag)})))
}
