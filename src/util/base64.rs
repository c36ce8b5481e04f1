//! Base64 (RFC 4648): decodes both alphabets, padding optional, line ends
//! ignored, as images, audio and blobs arrive in it; encodes into either alphabet.

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Encodes with padding, as in an Authorization header.
pub fn encode(bytes: &[u8]) -> String {
    let mut out = letters(bytes, STANDARD);
    while !out.len().is_multiple_of(4) {
        out.push('=');
    }
    out
}

/// Encodes for a URL, without padding (RFC 7636, appendix A).
pub fn encode_url(bytes: &[u8]) -> String {
    letters(bytes, URL)
}

fn letters(bytes: &[u8], alphabet: &[u8; 64]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let held =
            chunk.iter().fold(0u32, |held, byte| held << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for at in 0..=chunk.len() {
            let letter = alphabet[(held >> (18 - 6 * at) & 63) as usize];
            out.push(char::from(letter));
        }
    }
    out
}

/// The bytes that `text` stands for; the offset of the first character that cannot be base64 otherwise.
pub fn decode(text: &str) -> Result<Vec<u8>, usize> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 3);
    let (mut bits, mut held, mut ended) = (0u32, 0u32, false);
    for (at, byte) in text.bytes().enumerate() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'=' => {
                ended = true;
                continue;
            }
            b'\r' | b'\n' | b' ' | b'\t' => continue,
            _ => return Err(at),
        };
        if ended {
            return Err(at);
        }
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held & 0xff) as u8);
        }
    }
    // Six bits left over are a lone character, which encodes nothing.
    if held == 6 { Err(text.len()) } else { Ok(out) }
}

#[cfg(test)]
mod tests {
    use super::{decode, encode, encode_url};

    #[test]
    fn the_vectors_of_the_rfc() {
        for (text, plain) in [
            ("", ""),
            ("Zg==", "f"),
            ("Zm8=", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYg==", "foob"),
            ("Zm9vYmE", "fooba"),
            ("Zm9v\r\nYmFy", "foobar"),
        ] {
            assert_eq!(decode(text).unwrap(), plain.as_bytes(), "{text}");
        }
        for (plain, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(encode(plain.as_bytes()), text);
            assert_eq!(encode_url(plain.as_bytes()), text.trim_end_matches('='));
        }
        assert_eq!((encode(&[0xfb, 0xff]), encode_url(&[0xfb, 0xff])), ("+/8=".into(), "-_8".into()));
        assert_eq!(decode("-_8=").unwrap(), [0xfb, 0xff]);
        assert_eq!(decode("+/8=").unwrap(), [0xfb, 0xff]);
    }

    #[test]
    fn what_is_not_base64_is_refused_where_it_stands() {
        assert_eq!(decode("Zm9*"), Err(3));
        assert_eq!(decode("Zg==Zg=="), Err(4));
        assert_eq!(decode("Z"), Err(1));
        assert!(decode("Zm9\u{e9}").is_err());
    }
}
