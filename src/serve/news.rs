//! What happens behind mcpx and hosts may want to hear: lists that are others
//! now, resources that changed, records that servers log. Knows nothing of how
//! a host is reached.

use serde::Deserialize;
use serde_json::Value;

/// The levels of log records, lowest first (RFC 5424's words, as MCP has them).
pub const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// The lowest level that a host gets that never said which it wants.
pub const USUAL_LEVEL: &str = "info";

/// Something that hosts may want to hear of.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// The list of tools is another.
    Tools,
    /// The lists of resources and of their templates are others.
    Resources,
    /// The list of prompts is another.
    Prompts,
    /// The daemon is another than before, and everything may be.
    Another,
    /// A resource that somebody subscribed to changed.
    Updated {
        /// The server's configured name.
        server: String,
        /// The resource's own URI.
        uri: String,
        /// The session that the server's instance belongs to alone.
        session: Option<String>,
    },
    /// A server logs something.
    Logged {
        /// The server's configured name.
        server: String,
        /// `{level, logger?, data}`, as the server sent it.
        record: Value,
        /// The session in whose call it did; none when it was nobody's.
        session: Option<String>,
    },
    /// An instance of a server has begun: it knows nothing of what was asked of the one before.
    Started {
        /// The server's configured name.
        server: String,
        /// The session that the instance belongs to alone.
        session: Option<String>,
    },
    /// A task is another than before.
    Task {
        /// Its id.
        id: String,
        /// Whose it is.
        owner: String,
    },
    /// A question of a server's is over, whoever answered it.
    Settled {
        /// The question's id.
        question: String,
    },
}

/// As much of an event as is news.
#[derive(Debug, Default, Deserialize)]
pub struct Happened {
    /// `family.what`.
    pub kind: String,
    /// The server it is about.
    pub server: Option<String>,
    /// The session it belongs to.
    pub session: Option<String>,
    /// The resource it is about.
    pub uri: Option<String>,
    /// More, as the kind says.
    #[serde(default)]
    pub data: Value,
}

/// What every host may hear of.
const OF_ALL: [&str; 3] = ["tools.changed", "config.changed", "task.changed"];

/// What those may besides who are offered more than tools.
const OF_OFFERS: [&str; 6] =
    ["resource.list", "prompt.list", "resource.updated", "server.logged", "server.started", "elicit.closed"];

impl News {
    /// The kinds of the daemon's events that are news; fewer where the servers' own offers are not passed on.
    pub fn kinds(passthrough: bool) -> impl Iterator<Item = &'static str> {
        OF_ALL.into_iter().chain(OF_OFFERS.into_iter().filter(move |_| passthrough))
    }

    /// Every list may be another.
    pub fn of_lists() -> [News; 3] {
        [News::Tools, News::Resources, News::Prompts]
    }

    /// What an event means for hosts.
    pub fn of(event: Happened) -> Vec<News> {
        let Happened { kind, server, session, uri, data } = event;
        let server = server.unwrap_or_default();
        match kind.as_str() {
            "tools.changed" => vec![News::Tools],
            "config.changed" => News::of_lists().into(),
            "resource.list" => vec![News::Resources],
            "prompt.list" => vec![News::Prompts],
            "resource.updated" => {
                vec![News::Updated { server, uri: uri.unwrap_or_default(), session }]
            }
            "server.logged" => vec![News::Logged { server, record: data, session }],
            "server.started" => vec![News::Started { server, session }],
            "task.changed" => match (data["task"].as_str(), data["owner"].as_str()) {
                (Some(id), Some(owner)) => vec![News::Task { id: id.to_owned(), owner: owner.to_owned() }],
                _ => Vec::new(),
            },
            "elicit.closed" => match data["question"].as_str() {
                Some(question) => vec![News::Settled { question: question.to_owned() }],
                None => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    /// The notification that a list is another, and its name in the filter of
    /// `subscriptions/listen`; none for what is no list.
    pub fn of_list(&self) -> Option<(&'static str, &'static str)> {
        match self {
            News::Tools => Some(("notifications/tools/list_changed", "toolsListChanged")),
            News::Resources => Some(("notifications/resources/list_changed", "resourcesListChanged")),
            News::Prompts => Some(("notifications/prompts/list_changed", "promptsListChanged")),
            _ => None,
        }
    }
}

/// Whether a record of this level is wanted by somebody who wants `lowest` and above. One of a
/// level that is none counts as the lowest.
pub fn is_wanted(level: &str, lowest: &str) -> bool {
    let place = |level: &str| LEVELS.iter().position(|l| *l == level).unwrap_or(0);
    place(level) >= place(lowest)
}

/// A resource that a host wants to hear of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    /// The server's configured name.
    pub server: String,
    /// The resource's own URI.
    pub uri: String,
    /// The URI under which the host knows it.
    pub shown: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_kinds_of_news_are_kinds_of_events() {
        assert_eq!(News::kinds(false).count(), 3);
        for kind in News::kinds(true) {
            assert!(crate::observe::kinds::of_word(kind).is_some(), "{kind}");
            let event = json!({"seq": 1, "at": 2, "kind": kind, "server": "s", "uri": "u", "data": {"question": "q", "task": "t", "owner": ""}});
            assert!(!News::of(serde_json::from_value(event).unwrap()).is_empty(), "{kind}");
        }
        assert!(News::of(Happened { kind: "call.finished".into(), ..Happened::default() }).is_empty());
    }

    #[test]
    fn levels_are_compared_by_rank() {
        assert!(is_wanted("error", "warning") && is_wanted("debug", "debug") && is_wanted("alert", "info"));
        assert!(!is_wanted("info", "notice") && !is_wanted("loud", "info") && is_wanted("loud", "debug"));
    }
}
