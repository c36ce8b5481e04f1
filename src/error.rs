//! Defines the one error type, and the table from which stable words, exit
//! codes and HTTP statuses are derived. Knows nothing of where an error came from.

use serde_json::{Map, Value};
use std::fmt;
use std::io;

/// What sort of failure an [`Error`] is; the row of [`KINDS`] it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Too many requests at once; try again.
    Busy,
    /// The caller went away or pressed Ctrl-C.
    Cancelled,
    /// The configuration is invalid.
    Config,
    /// A server asked a question that nobody here can answer.
    InputRequired,
    /// A bug in mcpx.
    Internal,
    /// No such namespace, tool, session or route.
    NotFound,
    /// No such script or interpreter.
    NoScript,
    /// The connection broke after a call was sent.
    OutcomeUnknown,
    /// A permission profile, tool filter, file's ownership or authorisation forbids it.
    Refused,
    /// The script threw.
    Script,
    /// A limit was exceeded.
    TooLarge,
    /// A time-out expired.
    Timeout,
    /// The tool reported an error.
    Tool,
    /// No daemon or server could be reached or started.
    Unavailable,
    /// A file or standard input is not there or cannot be read.
    Unreadable,
    /// A file or standard output cannot be written.
    Unwritable,
    /// The command line or the arguments are wrong.
    Usage,
}

/// One row of [`KINDS`].
pub struct KindRow {
    /// The variant.
    pub kind: Kind,
    /// The stable word: `error.kind` on the wire, `ToolError.kind` in a script.
    pub word: &'static str,
    /// The exit code of a command that ends with it.
    pub exit: u8,
    /// The HTTP status of a response that carries it.
    pub status: u16,
    /// What it means, for the documentation.
    pub meaning: &'static str,
}

/// Every kind of failure, in alphabetical order of its word.
pub static KINDS: &[KindRow] = &[
    row(Kind::Busy, "busy", 69, 503, "too many requests at once; try again"),
    row(Kind::Cancelled, "cancelled", 130, 499, "the caller went away or pressed Ctrl-C"),
    row(Kind::Config, "config", 65, 422, "the configuration is invalid"),
    row(
        Kind::InputRequired,
        "input-required",
        75,
        202,
        "a server asked a question that nobody here can answer",
    ),
    row(Kind::Internal, "internal", 70, 500, "a bug in mcpx"),
    row(Kind::NoScript, "no-script", 127, 404, "no such script or interpreter"),
    row(Kind::NotFound, "not-found", 2, 404, "no such namespace, tool, session or route"),
    row(
        Kind::OutcomeUnknown,
        "outcome-unknown",
        76,
        502,
        "the connection broke after a call was sent; it was not sent again",
    ),
    row(
        Kind::Refused,
        "refused",
        77,
        403,
        "a permission profile, tool filter, file's ownership or authorisation forbids it",
    ),
    row(Kind::Script, "script", 1, 500, "the script threw"),
    row(Kind::Timeout, "timeout", 124, 504, "a time-out expired"),
    row(Kind::TooLarge, "too-large", 69, 413, "a message exceeds a limit"),
    row(Kind::Tool, "tool", 1, 200, "the tool reported an error"),
    row(Kind::Unavailable, "unavailable", 69, 502, "no daemon or server could be reached or started"),
    row(Kind::Unreadable, "unreadable", 66, 400, "a file or standard input is not there or cannot be read"),
    row(Kind::Unwritable, "unwritable", 74, 500, "a file or standard output cannot be written"),
    row(Kind::Usage, "usage", 2, 400, "the command line or the arguments are wrong"),
];

const fn row(kind: Kind, word: &'static str, exit: u8, status: u16, meaning: &'static str) -> KindRow {
    KindRow { kind, word, exit, status, meaning }
}

impl Kind {
    /// The kind's row in [`KINDS`].
    pub fn row(self) -> &'static KindRow {
        KINDS.iter().find(|r| r.kind == self).expect("every kind has a row")
    }
    /// The kind whose stable word this is.
    pub fn from_word(word: &str) -> Option<Kind> {
        KINDS.iter().find(|r| r.word == word).map(|r| r.kind)
    }
}

/// An error as a person and a program both read it: what was being done, to
/// what, what went wrong (`message`), and what to do next (`hint`).
#[derive(Clone, Debug)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    kind: Kind,
    message: String,
    hint: Option<String>,
    server: Option<String>,
    tool: Option<String>,
    raw: Option<Value>,
}

/// The result of anything here that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of `kind`. The message is lower case, one or two lines, without the program's name.
    pub fn new(kind: Kind, message: impl Into<String>) -> Error {
        Error(Box::new(Inner {
            kind,
            message: message.into(),
            hint: None,
            server: None,
            tool: None,
            raw: None,
        }))
    }
    /// What was to be read, which messages call `what`, cannot be.
    pub fn unreadable(what: impl fmt::Display, e: &io::Error) -> Error {
        Error::new(Kind::Unreadable, format!("reading {what}: {}", system_words(e)))
    }
    /// What was to be written, which messages call `what`, cannot be.
    pub fn unwritable(what: impl fmt::Display, e: &io::Error) -> Error {
        Error::new(Kind::Unwritable, format!("writing {what}: {}", system_words(e)))
    }
    /// Adds what to do next.
    pub fn hint(mut self, hint: impl Into<String>) -> Error {
        self.0.hint = Some(hint.into());
        self
    }
    /// Adds the server it happened with.
    pub fn server(mut self, server: impl Into<String>) -> Error {
        self.0.server = Some(server.into());
        self
    }
    /// Adds the tool it happened with.
    pub fn tool(mut self, tool: impl Into<String>) -> Error {
        self.0.tool = Some(tool.into());
        self
    }
    /// Adds the peer's own words: the envelope of a tool's error, or a JSON-RPC error object.
    pub fn raw(mut self, raw: Value) -> Error {
        self.0.raw = Some(raw);
        self
    }
    /// What sort of failure it is.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }
    /// The message alone.
    pub fn message(&self) -> &str {
        &self.0.message
    }
    /// What to do next, when that is known.
    pub fn hint_text(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }
    /// The server it happened with.
    pub fn server_name(&self) -> Option<&str> {
        self.0.server.as_deref()
    }
    /// The tool it happened with.
    pub fn tool_name(&self) -> Option<&str> {
        self.0.tool.as_deref()
    }
    /// The peer's own words.
    pub fn raw_value(&self) -> Option<&Value> {
        self.0.raw.as_ref()
    }
    /// The exit code of a command that ends with this error.
    pub fn exit_code(&self) -> u8 {
        self.0.kind.row().exit
    }
    /// The wire form: `{"kind","message","hint"?,"server"?,"tool"?,"raw"?}`, without the outer `error` key.
    pub fn to_json(&self) -> Value {
        let mut m = Map::new();
        m.insert("kind".into(), self.0.kind.row().word.into());
        m.insert("message".into(), self.0.message.clone().into());
        for (k, v) in [("hint", &self.0.hint), ("server", &self.0.server), ("tool", &self.0.tool)] {
            if let Some(v) = v {
                m.insert(k.into(), v.clone().into());
            }
        }
        if let Some(raw) = &self.0.raw {
            m.insert("raw".into(), raw.clone());
        }
        Value::Object(m)
    }
    /// Reads the wire form; an unknown kind becomes [`Kind::Internal`].
    pub fn from_json(v: &Value) -> Error {
        let text = |k: &str| v.get(k).and_then(Value::as_str).map(str::to_owned);
        Error(Box::new(Inner {
            kind: text("kind").and_then(|w| Kind::from_word(&w)).unwrap_or(Kind::Internal),
            message: text("message").unwrap_or_else(|| "an error without a message".into()),
            hint: text("hint"),
            server: text("server"),
            tool: text("tool"),
            raw: v.get("raw").cloned(),
        }))
    }
}

/// An operating system's error in its own words, without the code.
pub fn system_words(e: &io::Error) -> String {
    let text = e.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}

impl fmt::Display for Error {
    /// The message, and the hint on a second line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if let Some(hint) = &self.0.hint {
            write!(f, "\n{hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_complete_and_reversible() {
        assert!(KINDS.windows(2).all(|w| w[0].word < w[1].word));
        for row in KINDS {
            assert_eq!(Kind::from_word(row.word), Some(row.kind));
            assert_eq!(row.kind.row().word, row.word);
        }
    }

    #[test]
    fn an_error_survives_the_wire() {
        let e = Error::new(Kind::Tool, "it failed")
            .hint("try b")
            .server("s")
            .tool("t")
            .raw(serde_json::json!({"a":1}));
        let back = Error::from_json(&e.to_json());
        assert_eq!(back.to_json(), e.to_json());
        assert_eq!(back.exit_code(), 1);
    }
}
