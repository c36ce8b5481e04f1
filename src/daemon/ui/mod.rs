//! The page for a browser: one file, and the headers that keep it to itself. It
//! holds no data; what it shows it asks for as anybody does. Knows nothing of sockets.

use super::router::{Body, Response};
use crate::util;
use crate::util::base64;

const PAGE: &str = include_str!("page.html");

/// The page. It loads nothing, runs its own script and no other, and cannot be framed.
pub fn page() -> Response {
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; img-src data:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        hash(inside("script")),
        hash(inside("style")),
    );
    let headers = format!(
        "Content-Security-Policy: {policy}\r\nX-Frame-Options: DENY\r\nX-Content-Type-Options: nosniff\r\n\
         Referrer-Policy: no-referrer\r\nCross-Origin-Opener-Policy: same-origin\r\n\
         Cross-Origin-Resource-Policy: same-origin\r\nCache-Control: no-store\r\n"
    );
    Response {
        status: 200,
        media: Some("text/html; charset=utf-8"),
        headers,
        body: Body::Whole(PAGE.as_bytes().to_vec()),
    }
}

/// What stands between the only tag of that name and its end.
fn inside(tag: &str) -> &'static str {
    let begin = PAGE.split_once(&format!("<{tag}>")).map_or("", |(_, rest)| rest);
    begin.split_once(&format!("</{tag}>")).map_or("", |(text, _)| text)
}

/// As a policy names a text (Content Security Policy Level 3, 2.3.1).
fn hash(text: &str) -> String {
    format!("sha256-{}", base64::encode(&util::sha256(text.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The most that the page may be, in bytes.
    const BUDGET: usize = 25_000;

    #[test]
    fn the_page_is_small_and_whole() {
        assert!(PAGE.len() < BUDGET, "{} bytes", PAGE.len());
        for tag in ["script", "style"] {
            assert_eq!(PAGE.matches(&format!("<{tag}")).count(), 1, "one {tag}, which the policy names");
            assert!(inside(tag).len() > 100);
        }
        // Nothing is loaded, and the policy forbids what stands in attributes.
        for absent in ["src=", " style=", " onclick=", " onload=", "@import", "url(", "//cdn", "innerHTML"] {
            assert!(!PAGE.contains(absent), "{absent}");
        }
        let addresses: Vec<&str> = PAGE.split("http").skip(1).filter(|rest| rest.contains("://")).collect();
        let foreign = addresses.iter().filter(|rest| {
            rest.starts_with("://") && !rest.starts_with("://www.w3.org/2000/svg") || rest.starts_with("s://")
        });
        assert_eq!(foreign.count(), 0);
    }

    #[test]
    fn the_policy_names_the_script_and_the_style() {
        let headers = page().headers;
        assert!(headers.contains("default-src 'none'") && headers.ends_with("\r\n"));
        assert!(headers.contains(&hash(inside("script"))) && headers.contains(&hash(inside("style"))));
    }
}
