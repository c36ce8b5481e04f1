//! Raw access to log lines: finding bytes in large blocks, and the fields of one
//! line without building a value. Knows nothing of what the fields mean.

use std::borrow::Cow;

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// A mark in each byte of the word that equals the one that `pattern` repeats; a
/// byte above a true one may be marked as well.
#[inline(always)]
fn marks(word: u64, pattern: u64) -> u64 {
    let x = word ^ pattern;
    x.wrapping_sub(ONES) & !x & HIGHS
}

#[inline(always)]
fn word(text: &[u8], at: usize) -> Option<u64> {
    let bytes = text.get(at..at + 8)?;
    bytes.try_into().ok().map(u64::from_le_bytes)
}

/// Where a byte stands, from an offset on.
pub fn byte(text: &[u8], from: usize, wanted: u8) -> Option<usize> {
    let pattern = u64::from(wanted) * ONES;
    let mut at = from;
    while let Some(word) = word(text, at) {
        let found = marks(word, pattern);
        if found != 0 {
            // The lowest mark is always a true one.
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    text.get(at..)?.iter().position(|b| *b == wanted).map(|n| at + n)
}

/// Something to look for in large blocks.
#[derive(Clone, Debug)]
pub struct Needle {
    bytes: Vec<u8>,
    /// Its two rarest bytes: where they stand, and what they are, eight times.
    rare: [(usize, u64); 2],
}

impl Needle {
    /// Looks for these bytes; none when there are none.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Option<Needle> {
        let bytes = bytes.into();
        let mut order: Vec<usize> = (0..bytes.len()).collect();
        order.sort_by_key(|at| commonness(bytes[*at]));
        let first = *order.first()?;
        let second = order.get(1).copied().unwrap_or(first);
        let rare = [first, second].map(|at| (at, u64::from(bytes[at]) * ONES));
        Some(Needle { bytes, rare })
    }

    /// The first place from an offset on.
    pub fn find(&self, text: &[u8], from: usize) -> Option<usize> {
        let [(p, p_word), (q, q_word)] = self.rare;
        let mut at = from;
        while let (Some(a), Some(b)) = (word(text, at + p), word(text, at + q)) {
            let mut both = marks(a, p_word) & marks(b, q_word);
            while both != 0 {
                let found = at + both.trailing_zeros() as usize / 8;
                if text.get(found..).is_some_and(|rest| rest.starts_with(&self.bytes)) {
                    return Some(found);
                }
                both &= both - 1;
            }
            at += 8;
        }
        let rest = text.get(at..)?;
        rest.windows(self.bytes.len()).position(|w| w == self.bytes).map(|n| at + n)
    }

    /// Whether it is there at all.
    pub fn is_in(&self, text: &[u8]) -> bool {
        self.find(text, 0).is_some()
    }

    /// What is looked for.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// How common a byte is in lines of JSON; only the order matters.
fn commonness(byte: u8) -> u8 {
    match byte {
        b'"' => 9,
        b':' | b',' => 8,
        b'0'..=b'9' | b'e' => 7,
        b'a' | b'i' | b'l' | b'n' | b'o' | b'r' | b's' | b't' => 6,
        b'c' | b'd' | b'm' | b'u' | b'v' | b'{' | b'}' => 5,
        b'a'..=b'z' | b'.' | b'-' | b' ' => 4,
        _ => 1,
    }
}

/// Hands over each field of the JSON object on a line: its key and its value, both
/// as they are written. False when it is not a whole object.
#[inline(always)]
pub fn fields<'a>(line: &'a [u8], mut each: impl FnMut(&'a [u8], &'a [u8])) -> bool {
    let mut at = 1;
    if line.first() != Some(&b'{') {
        return false;
    }
    if line.get(1) == Some(&b'}') {
        return true;
    }
    loop {
        if line.get(at) != Some(&b'"') {
            return false;
        }
        let Some(end) = string_end(line, at) else { return false };
        let key = &line[at + 1..end - 1];
        if line.get(end) != Some(&b':') {
            return false;
        }
        let start = end + 1;
        let Some(end) = value_end(line, start) else { return false };
        each(key, &line[start..end]);
        match line.get(end) {
            Some(b',') => at = end + 1,
            Some(b'}') => return true,
            _ => return false,
        }
    }
}

/// Just behind the string that begins at `at`. Most strings of a record are short: a
/// word or two decide.
#[inline(always)]
fn string_end(line: &[u8], at: usize) -> Option<usize> {
    const QUOTE: u64 = b'"' as u64 * ONES;
    const SLASH: u64 = b'\\' as u64 * ONES;
    let mut from = at + 1;
    loop {
        let here = if let Some(word) = word(line, from) {
            // The lowest mark of either is a true one.
            let found = marks(word, QUOTE) | marks(word, SLASH);
            if found == 0 {
                from += 8;
                continue;
            }
            from + found.trailing_zeros() as usize / 8
        } else {
            from + line.get(from..)?.iter().position(|b| matches!(b, b'"' | b'\\'))?
        };
        if line[here] == b'"' {
            return Some(here + 1);
        }
        from = here + 2;
    }
}

#[inline(always)]
fn value_end(line: &[u8], at: usize) -> Option<usize> {
    match line.get(at)? {
        b'"' => string_end(line, at),
        b'{' | b'[' => {
            let (mut depth, mut here) = (0_usize, at);
            loop {
                match line.get(here)? {
                    b'"' => {
                        here = string_end(line, here)?;
                        continue;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => depth -= 1,
                    _ => {}
                }
                here += 1;
                if depth == 0 {
                    return Some(here);
                }
            }
        }
        _ => {
            let mut end = at;
            while !matches!(line.get(end)?, b',' | b'}' | b']') {
                end += 1;
            }
            (end > at).then_some(end)
        }
    }
}

/// A value as text: a string without quotes and escapes, anything else as it is written.
pub fn text_of(value: &[u8]) -> Cow<'_, str> {
    match value {
        [b'"', inner @ .., b'"'] if !inner.contains(&b'\\') => String::from_utf8_lossy(inner),
        [b'"', ..] => serde_json::from_slice::<String>(value).unwrap_or_default().into(),
        other => String::from_utf8_lossy(other),
    }
}

/// A text as it stands inside of a JSON string.
pub fn escaped(text: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap_or_default();
    quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default().to_owned()
}

/// The time of the record that a text begins with.
pub fn time_of(text: &[u8]) -> Option<u64> {
    let digits = text.strip_prefix(b"{\"at\":")?;
    let end = digits.iter().position(|b| !b.is_ascii_digit()).unwrap_or(digits.len());
    std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_needles_are_found_where_a_plain_search_finds_them() {
        // A sequence without a pattern, over few letters so that there are many near misses.
        let mut state = 7_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            b"ab\"\xe4\x00"[(state >> 24) as usize % 5]
        };
        let text: Vec<u8> = (0..3000).map(|_| next()).collect();
        for length in 1..12 {
            for _ in 0..40 {
                let wanted: Vec<u8> = (0..length).map(|_| next()).collect();
                let needle = Needle::new(wanted.clone()).unwrap();
                let mut from = 0;
                loop {
                    let plain = text[from..].windows(length).position(|w| w == wanted).map(|n| from + n);
                    assert_eq!(needle.find(&text, from), plain, "{wanted:?} from {from}");
                    let Some(found) = plain else { break };
                    from = found + 1;
                }
            }
        }
        for from in 0..200 {
            let plain = text[from..].iter().position(|b| *b == 0xe4).map(|n| from + n);
            assert_eq!(byte(&text, from, 0xe4), plain);
        }
        assert!(Needle::new("").is_none());
        assert_eq!(byte(b"abc", 9, b'a'), None);
    }

    #[test]
    fn fields_are_those_of_the_object() {
        let line = br#"{"at":12,"a":"x\"y\\","n":null,"deep":{"at":[1,{"q":"}]"}]},"last":-1.5e3}"#;
        let mut seen = Vec::new();
        assert!(fields(line, |key, value| {
            seen.push((String::from_utf8_lossy(key).into_owned(), text_of(value).into_owned()));
        }));
        let plain: Vec<(&str, &str)> = seen.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let deep = r#"{"at":[1,{"q":"}]"}]}"#;
        assert_eq!(plain, [("at", "12"), ("a", "x\"y\\"), ("n", "null"), ("deep", deep), ("last", "-1.5e3")]);
        for cut in 1..line.len() {
            assert!(!fields(&line[..cut], |_, _| {}), "cut at {cut}");
        }
        assert!(fields(b"{}", |_, _| {}) && !fields(b"[]", |_, _| {}) && !fields(b"", |_, _| {}));
        assert_eq!(time_of(line), Some(12));
        assert_eq!(time_of(b"{\"x\":1}"), None);
        assert_eq!(escaped("a\"\n"), "a\\\"\\n");
    }
}
