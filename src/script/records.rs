//! Tells the client's records from everything else that a script writes to
//! stderr: a record begins with the byte 0x1e and ends with its line (the
//! framing of RFC 7464). Knows nothing of processes.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// The byte that begins a record.
const MARK: u8 = 0x1e;

/// What a script said through `log`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogRecord {
    /// `debug`, `info`, `warn` or `error`.
    pub level: String,
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// The message, with its fields filled in.
    pub message: String,
    /// The fields as they were given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields: Option<Value>,
    /// The method of the console that made it, when it was one; the message then is what the runtime would print.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub console: Option<String>,
    /// Where it was called, `file:line:column`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// One thing on a script's stderr.
#[derive(Debug)]
pub enum Piece<'a> {
    /// Bytes that are no record.
    Text(&'a [u8]),
    /// A log record.
    Log(LogRecord),
    /// The script's value.
    Result(Box<RawValue>),
    /// A value that it emitted.
    Emit(Box<RawValue>),
    /// What it gave to be kept.
    Artifact(Box<RawValue>),
    /// What it threw.
    Error(Value),
}

#[derive(Deserialize)]
#[serde(tag = "t", rename_all = "lowercase")]
enum Tag {
    Log,
    Result,
    Emit,
    Artifact,
    Error,
}

#[derive(Deserialize)]
struct Valued {
    value: Box<RawValue>,
}

#[derive(Deserialize)]
struct Failed {
    error: Value,
}

/// Splits a stream into records and text. Text is handed over as it comes, not by lines.
#[derive(Debug, Default)]
pub struct Splitter {
    /// A record that has begun.
    record: Option<Vec<u8>>,
}

impl Splitter {
    /// Takes the next bytes.
    pub fn feed(&mut self, mut bytes: &[u8], out: &mut dyn FnMut(Piece)) {
        while !bytes.is_empty() {
            if let Some(record) = &mut self.record {
                let Some(end) = bytes.iter().position(|&b| b == b'\n') else {
                    record.extend_from_slice(bytes);
                    return;
                };
                record.extend_from_slice(&bytes[..=end]);
                bytes = &bytes[end + 1..];
                let whole = self.record.take().unwrap_or_default();
                read(&whole, out);
                continue;
            }
            let mark = bytes.iter().position(|&b| b == MARK).unwrap_or(bytes.len());
            if mark > 0 {
                out(Piece::Text(&bytes[..mark]));
            }
            bytes = &bytes[mark..];
            if !bytes.is_empty() {
                self.record = Some(Vec::new());
                // The mark goes into the record, so that what is none after all is passed on whole.
                if let Some(record) = &mut self.record {
                    record.push(MARK);
                }
                bytes = &bytes[1..];
            }
        }
    }

    /// The stream has ended.
    pub fn end(&mut self, out: &mut dyn FnMut(Piece)) {
        if let Some(rest) = self.record.take() {
            read(&rest, out);
        }
    }
}

fn read(record: &[u8], out: &mut dyn FnMut(Piece)) {
    match parse(&record[1..]) {
        Some(piece) => out(piece),
        None => out(Piece::Text(record)),
    }
}

fn parse(json: &[u8]) -> Option<Piece<'static>> {
    // The tag stands first, so a large value is read once only.
    let known = [
        b"{\"t\":\"log\"".as_slice(),
        b"{\"t\":\"result\"",
        b"{\"t\":\"emit\"",
        b"{\"t\":\"artifact\"",
        b"{\"t\":\"error\"",
    ];
    let which = known.iter().position(|k| json.starts_with(k))?;
    let tag = [Tag::Log, Tag::Result, Tag::Emit, Tag::Artifact, Tag::Error].into_iter().nth(which)?;
    Some(match tag {
        Tag::Log => Piece::Log(serde_json::from_slice(json).ok()?),
        Tag::Result => Piece::Result(serde_json::from_slice::<Valued>(json).ok()?.value),
        Tag::Emit => Piece::Emit(serde_json::from_slice::<Valued>(json).ok()?.value),
        Tag::Artifact => Piece::Artifact(serde_json::from_slice::<Valued>(json).ok()?.value),
        Tag::Error => Piece::Error(serde_json::from_slice::<Failed>(json).ok()?.error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes out for an input cut into chunks of `size`.
    fn split(input: &[u8], size: usize) -> Vec<String> {
        let mut splitter = Splitter::default();
        let mut pieces: Vec<String> = Vec::new();
        let mut out = |piece: Piece| {
            let text = match piece {
                Piece::Text(text) => format!("text {}", String::from_utf8_lossy(text)),
                Piece::Log(r) => format!("log {} {} {:?}", r.level, r.message, r.fields),
                Piece::Result(v) => format!("result {v}"),
                Piece::Emit(v) => format!("emit {v}"),
                Piece::Artifact(v) => format!("artifact {v}"),
                Piece::Error(v) => format!("error {v}"),
            };
            match pieces.last_mut() {
                Some(last) if last.starts_with("text ") && text.starts_with("text ") => {
                    last.push_str(&text[5..])
                }
                _ => pieces.push(text),
            }
        };
        for chunk in input.chunks(size) {
            splitter.feed(chunk, &mut out);
        }
        splitter.end(&mut out);
        pieces
    }

    #[test]
    fn records_and_text_come_apart_however_they_are_cut() {
        let input = b"warming up...\x1e{\"t\":\"log\",\"level\":\"info\",\"at\":1,\"message\":\"m\",\"fields\":{\"n\":3}}\nplain\n\
            \x1e{\"t\":\"emit\",\"value\":[1,\"\\u001e\"]}\n\x1e{\"t\":\"result\",\"value\":\"x\"}\n\
            \x1e{\"t\":\"artifact\",\"value\":{}}\n\x1e{\"t\":\"error\",\"error\":{\"name\":\"E\"}}\n\x1enot json\n\x1e{\"t\":\"other\"}\ntail";
        let expected = [
            "text warming up...",
            "log info m Some(Object {\"n\": Number(3)})",
            "text plain\n",
            "emit [1,\"\\u001e\"]",
            "result \"x\"",
            "artifact {}",
            "error {\"name\":\"E\"}",
            "text \u{1e}not json\n\u{1e}{\"t\":\"other\"}\ntail",
        ];
        for size in [1, 2, 7, 64, 4096] {
            assert_eq!(split(input, size), expected, "chunks of {size}");
        }
    }

    #[test]
    fn a_record_without_an_end_is_not_lost() {
        assert_eq!(split(b"\x1e{\"t\":\"emit\",\"value\":1}", 3), ["emit 1"]);
        assert_eq!(split(b"\x1e{\"t\":", 3), ["text \u{1e}{\"t\":"]);
    }
}
