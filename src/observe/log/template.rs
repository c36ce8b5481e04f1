//! The shape of a message, by which errors are put together. Knows nothing of records.

/// The shape of a message: paths, addresses, ids and numbers are replaced by what they are.
pub fn template(message: &str) -> String {
    let mut out = String::with_capacity(message.len());
    let mut rest = message;
    while !rest.is_empty() {
        let inside =
            |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':' | '~' | '%' | '@');
        let length = rest.find(|c| !inside(c)).unwrap_or(rest.len());
        if length == 0 {
            let c = rest.chars().next().unwrap_or(' ');
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        }
        let (token, behind) = rest.split_at(length);
        let word = token.trim_end_matches(['.', ':']);
        out.push_str(&shape(word));
        out.push_str(&token[word.len()..]);
        rest = behind;
    }
    out
}

fn shape(word: &str) -> String {
    if word.contains("://") {
        return "<url>".into();
    }
    if word.starts_with(['/', '~']) && word.len() > 1 || word.matches('/').count() > 1 {
        return "<path>".into();
    }
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    if digits == 0 {
        return word.to_owned();
    }
    let hex = word.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    let letters = word.bytes().any(|b| b.is_ascii_alphabetic());
    if hex && letters && word.len() >= 8 || letters && word.len() >= 16 {
        return "<id>".into();
    }
    let mut out = String::new();
    let mut number = false;
    for c in word.chars() {
        match c {
            '0'..='9' => {
                if !number {
                    out.push_str("<n>");
                }
                number = true;
            }
            // Part of a number, unless something else follows.
            '.' if number => {}
            c => {
                number = false;
                out.push(c);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_one_shape_have_one_template() {
        for (message, shaped) in [
            ("timed out after 30.5s (limit 30 s)", "timed out after <n>s (limit <n> s)"),
            ("no such file: /home/me/x.txt.", "no such file: <path>."),
            ("session 3f2a9c1d-77 is gone, see http://127.0.0.1:80/a", "session <id> is gone, see <url>"),
            ("line 3: unexpected \"tok1\"", "line <n>: unexpected \"tok<n>\""),
            ("the server demo exited (exit code 2)", "the server demo exited (exit code <n>)"),
            ("ü 12 – done", "ü <n> – done"),
        ] {
            assert_eq!(template(message), shaped);
        }
    }
}
