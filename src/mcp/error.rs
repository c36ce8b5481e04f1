//! Puts what went wrong with a server into words. Knows nothing of how it was
//! noticed.

use super::jsonrpc::{INVALID_PARAMS, METHOD_NOT_FOUND};
use crate::error::{Error, Kind};
use serde_json::Value;
use serde_json::value::RawValue;
use std::time::Duration;

/// MCP 2025-11-25: URLs are to be opened first; `data.elicitations` lists them.
const URL_REQUIRED: i64 = -32042;

/// How much of a tool's or a method's own text a message repeats.
const MESSAGE_CHARS: usize = 4000;

/// Text from elsewhere, safe to show: no control characters, and not more than `limit` bytes of it.
pub(super) fn printable(text: &str, limit: usize) -> String {
    let mut out = String::with_capacity(text.len().min(limit));
    for c in text.chars() {
        if out.len() >= limit {
            out.push('…');
            break;
        }
        out.push(match c {
            '\t' => ' ',
            c if c.is_control() => '\u{fffd}',
            c => c,
        });
    }
    out
}

/// `; its stderr ends with:` and the lines, indented; nothing when there are none.
pub(super) fn quote_stderr(lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    format!("; its stderr ends with:\n  {}", lines.join("\n  "))
}

/// A request, as it is spoken of in a message.
pub(super) struct Subject<'a> {
    pub server: &'a str,
    pub method: &'a str,
    pub params: Option<&'a RawValue>,
    /// Headers that say arguments again.
    pub mirrored: &'a [(String, String)],
}

impl Subject<'_> {
    /// The tool that is called, when it is a call.
    fn tool(&self) -> Option<String> {
        #[derive(serde::Deserialize)]
        struct Named {
            name: String,
        }
        if self.method != "tools/call" {
            return None;
        }
        serde_json::from_str::<Named>(self.params?.get()).ok().map(|n| n.name)
    }

    /// Whether it must not be repeated.
    fn is_call(&self) -> bool {
        self.method == "tools/call"
    }

    pub fn name(&self) -> String {
        match self.tool() {
            Some(tool) => format!("the call of {tool}"),
            None => self.method.to_owned(),
        }
    }

    fn error(&self, kind: Kind, message: String) -> Error {
        let e = Error::new(kind, message).server(self.server);
        match self.tool() {
            Some(tool) => e.tool(tool),
            None => e,
        }
    }

    /// The server answered with a JSON-RPC error object.
    pub fn refused(&self, object: Value) -> Error {
        let code = object.get("code").and_then(Value::as_i64);
        // Some servers send the message alone.
        let text = object.get("message").unwrap_or(&object).as_str().unwrap_or("an error without a message");
        if code == Some(METHOD_NOT_FOUND)
            && let Some(lack) = self.lacks()
        {
            return self.error(Kind::NotFound, format!("the server {} {lack}", self.server)).raw(object);
        }
        let kind = match code {
            Some(INVALID_PARAMS) => Kind::Usage,
            Some(URL_REQUIRED) => return self.wants_a_visit(object),
            _ => Kind::Tool,
        };
        // The official libraries say the code in the text.
        let text = match code.and_then(|c| text.strip_prefix(&format!("MCP error {c}: "))) {
            Some(rest) => rest,
            None => text,
        };
        let code = code.map(|c| format!(" (JSON-RPC error {c})")).unwrap_or_default();
        let text: String = text.chars().take(MESSAGE_CHARS).collect();
        self.error(kind, format!("{} answered {}: {text}{code}", self.server, self.name())).raw(object)
    }

    /// What a server is without that does not know the method.
    fn lacks(&self) -> Option<&'static str> {
        Some(match self.method {
            "prompts/list" | "prompts/get" => "has no prompts",
            "resources/list" | "resources/read" => "has no resources",
            "resources/templates/list" => "has no resource templates",
            "resources/subscribe" | "resources/unsubscribe" => "does not tell when a resource changes",
            "completion/complete" => "completes no arguments",
            _ => return None,
        })
    }

    /// The server does nothing before something was opened (a browser, mostly); the call is over.
    fn wants_a_visit(&self, object: Value) -> Error {
        let mut text = format!("{} wants something opened before {}", self.server, self.name());
        for asked in object["data"]["elicitations"].as_array().into_iter().flatten() {
            for part in [&asked["message"], &asked["url"]] {
                let part = part.as_str().unwrap_or_default();
                text.push_str(&format!("\n  {}", printable(part, MESSAGE_CHARS)));
            }
        }
        self.error(Kind::InputRequired, text).raw(object).hint("open it, then make the call again")
    }

    /// The server answered with something that cannot be used; `what` continues "x".
    pub fn unfit(&self, what: &str) -> Error {
        self.error(Kind::Unavailable, format!("{} {what} for {}", self.server, self.name()))
    }

    /// The answer is over a limit.
    pub fn too_large(&self, which: &str) -> Error {
        self.error(Kind::TooLarge, format!("the answer of {} to {} {which}", self.server, self.name()))
    }

    /// The connection is gone; `reason` continues "the server x".
    pub fn broken(&self, reason: &str, sent: bool) -> Error {
        if sent && self.is_call() {
            return self
                .error(
                    Kind::OutcomeUnknown,
                    format!("the server {} {reason}\n{} had been sent", self.server, self.name()),
                )
                .hint("it was not sent again: find out whether it took effect before you repeat it");
        }
        let when = if sent { "was not answered" } else { "was not sent" };
        self.error(Kind::Unavailable, format!("{} {when}: the server {} {reason}", self.name(), self.server))
    }

    /// The caller left.
    pub fn cancelled(&self) -> Error {
        self.error(Kind::Cancelled, format!("{} to {} was cancelled", self.name(), self.server))
    }

    /// No answer came in time.
    pub fn timed_out(&self, after: Duration, sent: bool) -> Error {
        let after = seconds(after);
        let (server, name) = (self.server, self.name());
        let message = if sent {
            format!("{server} did not answer {name} within {after}; it was told to stop")
        } else {
            format!("{server} did not take {name} within {after}; it was not sent")
        };
        self.error(Kind::Timeout, message).hint(
            "give it longer with --timeout, with pool.callTimeout, or with callTimeout in the server's \"mcpx\" block",
        )
    }
}

/// A duration as a person says it: `250ms`, `1.5s`, `300s`.
pub(super) fn seconds(duration: Duration) -> String {
    if duration < Duration::from_secs(1) {
        return format!("{}ms", duration.as_millis());
    }
    format!("{}s", duration.as_millis() as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.into()).unwrap()
    }

    #[test]
    fn a_sent_call_has_an_unknown_outcome_and_nothing_else_has() {
        let params = raw(r#"{"name":"write","arguments":{}}"#);
        let call = Subject { server: "s", method: "tools/call", params: Some(&params), mirrored: &[] };
        let list = Subject { server: "s", method: "tools/list", params: None, mirrored: &[] };
        let e = call.broken("exited (exit code 1)", true);
        assert_eq!((e.kind(), e.tool_name()), (Kind::OutcomeUnknown, Some("write")));
        assert!(e.message().starts_with("the server s exited (exit code 1)"), "{e}");
        assert_eq!(call.broken("exited", false).kind(), Kind::Unavailable);
        assert_eq!(list.broken("exited", true).kind(), Kind::Unavailable);
    }

    #[test]
    fn refusals_keep_the_servers_own_words() {
        let call = Subject { server: "s", method: "tools/list", params: None, mirrored: &[] };
        let e = call.refused(json!({"code": -32602, "message": "bad cursor", "data": 1}));
        assert_eq!(e.kind(), Kind::Usage);
        assert_eq!(e.message(), "s answered tools/list: bad cursor (JSON-RPC error -32602)");
        assert_eq!(e.raw_value().unwrap()["data"], 1);
        assert_eq!(call.refused(json!("odd")).kind(), Kind::Tool);
        let twice = call.refused(json!({"code": -32602, "message": "MCP error -32602: bad cursor"}));
        assert_eq!(twice.message(), "s answered tools/list: bad cursor (JSON-RPC error -32602)");
        let prompts = Subject { server: "s", method: "prompts/list", params: None, mirrored: &[] };
        let e = prompts.refused(json!({"code": -32601, "message": "Method not found"}));
        assert_eq!((e.kind(), e.message()), (Kind::NotFound, "the server s has no prompts"));
        assert_eq!(e.raw_value().unwrap()["code"], -32601);
    }

    #[test]
    fn what_is_shown_cannot_drive_a_terminal() {
        assert_eq!(printable("a\x1b[2J\tb", 100), "a\u{fffd}[2J b");
        assert_eq!(printable("abcdef", 3), "abc…");
        assert_eq!(seconds(Duration::from_millis(1500)), "1.5s");
        assert_eq!(seconds(Duration::from_secs(300)), "300s");
        assert_eq!(seconds(Duration::from_millis(20)), "20ms");
    }
}
