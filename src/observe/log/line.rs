//! One line of the log, read once and without building a value: where its fields
//! are, as they are written. Knows nothing of what is asked about them.

use super::text::{self, text_of};
use std::borrow::Cow;

/// The fields of a line that somebody may ask about; each may be empty.
#[derive(Default)]
pub(super) struct Line<'a> {
    pub at: u64,
    pub level: &'a [u8],
    pub source: &'a [u8],
    pub event: &'a [u8],
    pub message: &'a [u8],
    pub daemon: &'a [u8],
    pub server: &'a [u8],
    pub tool: &'a [u8],
    pub instance: &'a [u8],
    pub session: &'a [u8],
    pub run: &'a [u8],
    pub call: &'a [u8],
    pub trace: &'a [u8],
    pub ms: &'a [u8],
    pub outcome: &'a [u8],
    pub sent: &'a [u8],
    pub received: &'a [u8],
}

impl<'a> Line<'a> {
    /// The fields of a line (without its end); nothing when it is no whole record with a time.
    pub fn of(text: &'a [u8]) -> Option<Line<'a>> {
        let mut line = Line::default();
        let mut at = None;
        let whole = text::fields(text, |key, value| match key {
            b"at" => at = number(value),
            b"level" => line.level = value,
            b"source" => line.source = value,
            b"event" => line.event = value,
            b"message" => line.message = value,
            b"daemon" => line.daemon = value,
            b"server" => line.server = value,
            b"tool" => line.tool = value,
            b"instance" => line.instance = value,
            b"session" => line.session = value,
            b"run" => line.run = value,
            b"call" => line.call = value,
            b"trace" => line.trace = value,
            b"ms" => line.ms = value,
            b"outcome" => line.outcome = value,
            b"sent" => line.sent = value,
            b"received" => line.received = value,
            _ => {}
        });
        line.at = at.filter(|_| whole)?;
        Some(line)
    }
}

/// A whole number; none when it is something else, or absent.
pub(super) fn number(value: &[u8]) -> Option<u64> {
    let digit = |sum: u64, b: &u8| {
        let digit = b.is_ascii_digit().then(|| u64::from(b - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    };
    (!value.is_empty()).then(|| value.iter().try_fold(0, digit))?
}

/// A tool with its server, as they are written: `"server"."tool"`, or the server alone.
pub(super) fn place(server: &[u8], tool: &[u8]) -> String {
    let (server, tool): (Cow<str>, Cow<str>) = (text_of(server), text_of(tool));
    if tool.is_empty() { server.into_owned() } else { format!("{server}.{tool}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_its_fields_and_a_torn_one_is_none() {
        let text = br#"{"at":12,"level":"info","server":"a","tool":"t\"x","data":{"at":1},"ms":1.5}"#;
        let line = Line::of(text).unwrap();
        assert_eq!((line.at, line.level, line.ms), (12, &b"\"info\""[..], &b"1.5"[..]));
        assert_eq!(place(line.server, line.tool), "a.t\"x");
        assert_eq!(place(line.server, b""), "a");
        assert!((1..text.len()).all(|cut| Line::of(&text[..cut]).is_none()));
        assert!(Line::of(br#"{"level":"info"}"#).is_none(), "without a time");
        let numbers: [(&[u8], Option<u64>); 5] = [
            (b"0", Some(0)),
            (b"18446744073709551615", Some(u64::MAX)),
            (b"18446744073709551616", None),
            (b"", None),
            (b"-1", None),
        ];
        for (text, wanted) in numbers {
            assert_eq!(number(text), wanted);
        }
    }
}
