//! Reads `WWW-Authenticate` (RFC 9110, 11.6.1): what a server wants of a token.
//! Knows nothing of where tokens come from.

/// What a Bearer challenge says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Challenge {
    /// Where the protected resource describes itself (RFC 9728, 5.1).
    pub resource_metadata: Option<String>,
    /// The scopes that are needed.
    pub scope: Option<String>,
    /// `invalid_token`, `insufficient_scope`, …
    pub error: Option<String>,
}

/// The Bearer challenge among those of a header; an empty one when there is none.
pub fn parse(header: &str) -> Challenge {
    let mut found = Challenge::default();
    let mut bearer = false;
    for (name, value) in parameters(header) {
        let Some(value) = value else {
            // A word alone begins the challenge of another scheme.
            bearer = name.eq_ignore_ascii_case("bearer");
            continue;
        };
        if bearer {
            let place = match name.to_ascii_lowercase().as_str() {
                "resource_metadata" => &mut found.resource_metadata,
                "scope" => &mut found.scope,
                "error" => &mut found.error,
                _ => continue,
            };
            place.get_or_insert(value);
        }
    }
    found
}

/// The words of a header in order: schemes (without a value) and parameters.
fn parameters(header: &str) -> Vec<(String, Option<String>)> {
    let mut rest = header;
    let mut all = Vec::new();
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let end = rest.find([' ', '\t', ',', '=']).unwrap_or(rest.len());
        if end == 0 {
            // An equals sign without a name, or the end.
            match rest.strip_prefix('=') {
                Some(more) => rest = more,
                None => return all,
            }
            continue;
        }
        let (name, more) = rest.split_at(end);
        let after = more.trim_start_matches([' ', '\t']);
        // `Basic dGVzdA==`: what follows a scheme may end in equals signs; a parameter's value does not begin with one.
        match after.strip_prefix('=').filter(|value| !value.starts_with('=')) {
            Some(value) => {
                let (value, more) = value_of(value.trim_start_matches([' ', '\t']));
                all.push((name.to_owned(), Some(value)));
                rest = more;
            }
            None => {
                all.push((name.to_owned(), None));
                rest = after.trim_start_matches('=');
            }
        }
    }
}

/// A quoted string, or a token.
fn value_of(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([' ', '\t', ',']).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut letters = quoted.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => value.extend(letters.next().map(|(_, letter)| letter)),
            letter => value.push(letter),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &Option<String>) -> &str {
        value.as_deref().unwrap_or("-")
    }

    #[test]
    fn challenges_as_servers_write_them() {
        for (header, metadata, scope, error) in [
            ("Bearer", "-", "-", "-"),
            ("", "-", "-", "-"),
            (
                "Bearer resource_metadata=\"https://h/.well-known/x\", scope=\"a b\"",
                "https://h/.well-known/x",
                "a b",
                "-",
            ),
            ("bearer error=invalid_token,scope=\"say \\\"x\\\"\"", "-", "say \"x\"", "invalid_token"),
            ("Basic realm=\"x\", Bearer scope = one", "-", "one", "-"),
            ("Bearer scope=\"one\", Basic scope=\"other\"", "-", "one", "-"),
            ("Basic dGVzdA==, Bearer error=\"insufficient_scope\"", "-", "-", "insufficient_scope"),
            ("Bearer scope=\"unterminated", "-", "unterminated", "-"),
            ("Bearer , , error=e", "-", "-", "e"),
        ] {
            let found = parse(header);
            assert_eq!(
                (text(&found.resource_metadata), text(&found.scope), text(&found.error)),
                (metadata, scope, error),
                "{header}"
            );
        }
    }

    #[test]
    fn mutated_headers_are_read_in_one_pass() {
        let corpus: [&[u8]; 5] = [
            b"Bearer resource_metadata=\"https://h/.well-known/x\", scope=\"a b\", error=\"invalid_token\"",
            b"Basic realm=\"x, Bearer scope=\\\"no\\\"\", Bearer scope=yes",
            b"Negotiate, Basic dGVzdA==, bearer error = insufficient_scope",
            b"DPoP algs=\"ES256\", Bearer",
            b"Bearer scope=\"\\\"\\\\\",,, =x",
        ];
        crate::util::mutate::each(&corpus, |header| {
            let header = String::from_utf8_lossy(header);
            let found = parse(&header);
            let texts = [&found.resource_metadata, &found.scope, &found.error];
            assert!(texts.iter().all(|text| text.as_ref().is_none_or(|text| text.len() <= header.len())));
            let words: usize =
                parameters(&header).iter().map(|(n, v)| n.len() + v.as_ref().map_or(0, String::len)).sum();
            assert!(words <= header.len(), "each byte is taken once");
        });
    }
}
