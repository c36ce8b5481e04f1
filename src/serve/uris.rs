//! URIs for the resources of many servers in one list: `mcpx://SERVER/` and then
//! the resource's own, so that the way back needs no table. Knows nothing of
//! what is behind them.

use crate::api::uri::{decode, encode};

/// What such a URI begins with.
const SCHEME: &str = "mcpx://";

/// The URI, or the template of URIs, of a server's resource.
pub fn wrap(server: &str, uri: &str) -> String {
    format!("{SCHEME}{}/{uri}", encode(server, false))
}

/// The server and the resource's own URI; none when it is no such URI.
pub fn unwrap(uri: &str) -> Option<(String, &str)> {
    let (server, own) = uri.strip_prefix(SCHEME)?.split_once('/')?;
    let server = decode(server, false).filter(|server| !server.is_empty())?;
    Some((server, own))
}

/// Whether a URI may be one of a template (RFC 6570): what stands between the
/// expressions is in it, in that order.
pub fn fits(template: &str, uri: &str) -> bool {
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some((literal, expression)) = rest.split_once('{') {
        parts.push(literal);
        let Some((_, after)) = expression.split_once('}') else { return false };
        rest = after;
    }
    if parts.is_empty() {
        return template == uri;
    }
    let Some(mut left) = uri.strip_prefix(parts[0]) else { return false };
    for literal in &parts[1..] {
        let Some(at) = left.find(literal) else { return false };
        left = &left[at + literal.len()..];
    }
    left.ends_with(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_uri_finds_back() {
        for (server, uri, wrapped) in [
            ("demo", "file:///a b?c#d", "mcpx://demo/file:///a b?c#d"),
            ("My server/1", "test://x/{id}", "mcpx://My%20server%2F1/test://x/{id}"),
            ("ü", "mcpx://inner/x:y", "mcpx://%C3%BC/mcpx://inner/x:y"),
            ("a", "", "mcpx://a/"),
        ] {
            assert_eq!(wrap(server, uri), wrapped);
            assert_eq!(unwrap(wrapped), Some((server.to_owned(), uri)));
        }
        for other in ["file:///x", "mcpx://", "mcpx:///x", "mcpx://demo", "mcpx://%zz/x"] {
            assert_eq!(unwrap(other), None, "{other}");
        }
    }

    #[test]
    fn a_template_tells_which_uris_may_be_its_own() {
        for (template, uri, fit) in [
            ("test://t/{id}/data", "test://t/1/data", true),
            ("test://t/{id}/data", "test://t/1/x", false),
            ("test://t/{id}/data", "other://t/1/data", false),
            ("file:///{+path}", "file:///a/b", true),
            ("x://a{?q}", "x://a", true),
            ("x://{a}-{b}", "x://1-2", true),
            ("x://{a}-{b}", "x://12", false),
            ("x://a", "x://a", true),
            ("x://a", "x://b", false),
            ("x://{a", "x://{a", false),
        ] {
            assert_eq!(fits(template, uri), fit, "{template} {uri}");
        }
    }

    #[test]
    fn mutated_uris_find_back_and_fit_themselves() {
        let corpus: [&[u8]; 4] = [b"file:///a/{b}/c?d={e}", b"mcpx://demo/x:y", b"a{b}c{", b"{+x}"];
        crate::util::mutate::each(&corpus, |text| {
            let text = String::from_utf8_lossy(text);
            assert_eq!(unwrap(&wrap("s", &text)), Some(("s".to_owned(), &*text)));
            let _ = unwrap(&text);
            if !text.contains('{') {
                assert!(fits(&text, &text));
            }
            let _ = fits(&text, "file:///a/1/c?d=2");
        });
    }
}
