//! Parses the head of a message, and refuses whatever two readers could
//! understand in two ways. Reads no stream.

use super::{Fault, Headers, Method};

/// The longest single line of a head, in bytes. Nothing that mcpx sends comes
/// near; the head as a whole has its own, configurable limit.
pub(super) const MAX_LINE: usize = 16 * 1024;
/// The most header lines in one head.
const MAX_HEADERS: usize = 100;

/// How the end of a body is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// So many bytes.
    Length(u64),
    /// In chunks, each with its length.
    Chunked,
    /// Until the stream ends; only in responses.
    Rest,
}

/// The head without its last empty line.
pub(super) fn head_text(head: &[u8]) -> Result<&str, Fault> {
    let text =
        std::str::from_utf8(&head[..head.len() - 4]).map_err(|_| Fault::Bad(400, "the head is not UTF-8"))?;
    // A lone CR or LF is how one message is smuggled inside another.
    let bytes = text.as_bytes();
    for (i, b) in bytes.iter().enumerate() {
        let paired = match b {
            b'\r' => bytes.get(i + 1) == Some(&b'\n'),
            b'\n' => i > 0 && bytes[i - 1] == b'\r',
            b'\t' => true,
            _ => *b >= 0x20 && *b != 0x7f,
        };
        if !paired {
            return Err(Fault::Bad(400, "the head has a control character"));
        }
    }
    Ok(text)
}

pub(super) fn request_line(line: &str) -> Result<(Method, String, u8), Fault> {
    if line.len() > MAX_LINE {
        return Err(Fault::Bad(414, "the request's target is too long"));
    }
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(Fault::Bad(400, "the request line is not three words"));
    };
    let minor = minor_version(version)?;
    if method.is_empty() || !method.bytes().all(is_token) {
        return Err(Fault::Bad(400, "the method is not a word"));
    }
    let method = Method::from_word(method).ok_or(Fault::Bad(501, "no such method"))?;
    if !target.starts_with('/') || !target.is_ascii() {
        return Err(Fault::Bad(400, "the target is not a path"));
    }
    Ok((method, target.to_owned(), minor))
}

pub(super) fn status_line(line: &str) -> Result<(u16, u8), Fault> {
    let mut words = line.splitn(3, ' ');
    let minor = minor_version(words.next().unwrap_or_default())?;
    let status = words
        .next()
        .filter(|w| w.len() == 3 && w.bytes().all(|b| b.is_ascii_digit()))
        .and_then(|w| w.parse().ok())
        .ok_or(Fault::Bad(502, "the status is not a number"))?;
    Ok((status, minor))
}

fn minor_version(word: &str) -> Result<u8, Fault> {
    match word {
        "HTTP/1.1" => Ok(1),
        "HTTP/1.0" => Ok(0),
        w if w.starts_with("HTTP/") => Err(Fault::Bad(505, "only HTTP/1.1 and HTTP/1.0 are spoken")),
        _ => Err(Fault::Bad(400, "the version is not HTTP's")),
    }
}

pub(super) fn header_lines<'a>(lines: impl Iterator<Item = &'a str>) -> Result<Headers, Fault> {
    let mut headers = Vec::new();
    for line in lines {
        if line.len() > MAX_LINE || headers.len() == MAX_HEADERS {
            return Err(Fault::Bad(431, "a header line is too long, or there are too many"));
        }
        // This also refuses a continuation line, and a space before the colon.
        let (name, value) = line
            .split_once(':')
            .filter(|(name, _)| !name.is_empty() && name.bytes().all(is_token))
            .ok_or(Fault::Bad(400, "a header line is malformed"))?;
        headers.push((name.to_ascii_lowercase(), value.trim_matches([' ', '\t']).to_owned()));
    }
    Ok(Headers(headers))
}

pub(super) fn framing(headers: &Headers, minor: u8) -> Result<Option<Framing>, Fault> {
    let mut lengths = headers.all("content-length");
    let mut encodings = headers.all("transfer-encoding");
    match (lengths.next(), encodings.next()) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(Fault::Bad(400, "both Content-Length and Transfer-Encoding")),
        (Some(length), None) => {
            if lengths.next().is_some()
                || length.is_empty()
                || length.len() > 18
                || !length.bytes().all(|b| b.is_ascii_digit())
            {
                return Err(Fault::Bad(400, "Content-Length is not one number"));
            }
            let n = length.parse().map_err(|_| Fault::Bad(400, "Content-Length is not one number"))?;
            Ok(Some(Framing::Length(n)))
        }
        (None, Some(encoding)) => {
            if minor == 0 || encodings.next().is_some() {
                return Err(Fault::Bad(400, "Transfer-Encoding is not one word of HTTP/1.1"));
            }
            if !encoding.eq_ignore_ascii_case("chunked") {
                return Err(Fault::Bad(501, "the only transfer encoding understood is chunked"));
            }
            Ok(Some(Framing::Chunked))
        }
    }
}

pub(super) fn keeps(headers: &Headers, minor: u8) -> bool {
    if minor == 0 {
        headers.has_token("connection", "keep-alive")
    } else {
        !headers.has_token("connection", "close")
    }
}

fn is_token(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b)
}
