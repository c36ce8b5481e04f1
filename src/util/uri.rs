//! Splits and joins the parts of a request's target: path, query, percent
//! escapes. Knows nothing of which paths exist.

/// Splits a target into its path and its query (empty when there is none).
pub fn split(target: &str) -> (&str, &str) {
    target.split_once('?').unwrap_or((target, ""))
}

/// The decoded pairs of a query, in order; a name without `=` has an empty value.
/// None when an escape is broken or the result is not UTF-8.
pub fn query(text: &str) -> Option<Vec<(String, String)>> {
    text.split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode(name, true)?, decode(value, true)?))
        })
        .collect()
}

/// Undoes percent escapes; in a query, `+` is a space.
pub fn decode(text: &str, in_query: bool) -> Option<String> {
    let digit = |b: Option<&u8>| b.and_then(|b| char::from(*b).to_digit(16));
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        match bytes[i] {
            b'%' => {
                let (high, low) = (digit(bytes.get(i + 1))?, digit(bytes.get(i + 2))?);
                out.push((high * 16 + low) as u8);
                i += 3;
            }
            b'+' if in_query => {
                out.push(b' ');
                i += 1;
            }
            b => {
                out.push(b);
                i += 1;
            }
        }
    }
    String::from_utf8(out).ok()
}

/// Escapes everything but letters, digits and `-._~` (and `/` where `slashes` may stay).
pub fn encode(text: &str, slashes: bool) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(text.len());
    for b in text.bytes() {
        if b.is_ascii_alphanumeric() || b"-._~".contains(&b) || (slashes && b == b'/') {
            out.push(char::from(b));
        } else {
            let _ = write!(out, "%{b:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_decodes_to_itself() {
        for text in ["", "/a b/ü&=%+?#", "plain", "日本"] {
            assert_eq!(decode(&encode(text, false), true).as_deref(), Some(text));
            assert_eq!(decode(&encode(text, true), false).as_deref(), Some(text));
        }
    }

    #[test]
    fn a_query_keeps_order_and_repeats() {
        let (path, rest) = split("/v1/schemas?server=a&server=b%20c&fresh");
        assert_eq!(path, "/v1/schemas");
        let pairs = query(rest).unwrap();
        let flat: Vec<(&str, &str)> = pairs.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(flat, [("server", "a"), ("server", "b c"), ("fresh", "")]);
    }

    #[test]
    fn broken_escapes_are_refused() {
        for bad in ["%", "%2", "%zz", "%ff", "a=%c3%28"] {
            assert_eq!(query(bad), None, "{bad}");
        }
    }

    #[test]
    fn mutated_texts_decode_to_no_more_than_themselves() {
        let corpus: [&[u8]; 4] = [b"/v1/a%20b?x=1&y=%c3%bc+z", b"%", b"%zz%ff", "ü/?&=+#".as_bytes()];
        super::super::mutate::each(&corpus, |text| {
            let text = String::from_utf8_lossy(text);
            for slashes in [false, true] {
                assert_eq!(decode(&encode(&text, slashes), false).as_deref(), Some(&*text));
            }
            assert!(decode(&text, true).is_none_or(|plain| plain.len() <= text.len()));
            let (path, rest) = split(&text);
            let pairs = query(rest).unwrap_or_default();
            let sum: usize = pairs.iter().map(|(name, value)| name.len() + value.len()).sum();
            assert!(path.len() + sum <= text.len());
        });
    }
}
