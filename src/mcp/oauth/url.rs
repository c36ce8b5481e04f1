//! The few parts of a URL that authorisation compares and builds from. Knows
//! nothing of what is fetched.

use crate::util::uri;

/// A URL of HTTP, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url<'a> {
    /// `https://host:port`, lower case, without the scheme's own port.
    pub origin: String,
    /// From the first `/`; empty when there is none.
    pub path: &'a str,
    /// Without `?`; empty when there is none.
    pub query: &'a str,
}

impl<'a> Url<'a> {
    /// Takes a URL apart; `None` when it is none of HTTP, or carries user information.
    pub fn parse(text: &'a str) -> Option<Url<'a>> {
        let (scheme, rest) = text.split_once("://")?;
        let scheme = scheme.to_ascii_lowercase();
        let own_port = match scheme.as_str() {
            "http" => ":80",
            "https" => ":443",
            _ => return None,
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let at = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(at);
        if authority.is_empty() || authority.contains('@') || authority.contains(char::is_whitespace) {
            return None;
        }
        let authority = authority.to_ascii_lowercase();
        let authority = authority.strip_suffix(own_port).unwrap_or(&authority);
        let (path, query) = uri::split(tail);
        Some(Url { origin: format!("{scheme}://{authority}"), path, query })
    }

    /// What it names is this machine.
    pub fn is_loopback(&self) -> bool {
        let host = self.origin.split_once("://").map_or("", |(_, rest)| rest);
        let host = match host.strip_prefix('[') {
            Some(six) => six.split(']').next().unwrap_or_default(),
            None => host.split(':').next().unwrap_or_default(),
        };
        host == "localhost"
            || host.ends_with(".localhost")
            || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }

    /// Nobody on the way can read or change what is exchanged with it.
    pub fn is_private(&self) -> bool {
        self.origin.starts_with("https://") || self.is_loopback()
    }

    /// The well-known document `name` of it, with its path behind the name (RFC 8414, 3.1; RFC 9728, 3.1).
    pub fn well_known(&self, name: &str) -> String {
        format!("{}/.well-known/{name}{}", self.origin, self.path.trim_end_matches('/'))
    }

    /// A token for `resource` is one for this URL: the same origin, and a path at or below its path.
    pub fn is_within(&self, resource: &Url<'_>) -> bool {
        let (own, wide) = (self.path.trim_end_matches('/'), resource.path.trim_end_matches('/'));
        self.origin == resource.origin
            && own.strip_prefix(wide).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// `name=value&…`, escaped, as forms and queries have it.
pub fn form(pairs: &[(&str, &str)]) -> String {
    let each = pairs
        .iter()
        .map(|(name, value)| format!("{}={}", uri::encode(name, false), uri::encode(value, false)));
    each.collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_url_is_made_of() {
        let url = Url::parse("HTTPS://Example.org:443/a/b?x=1#f").unwrap();
        assert_eq!((url.origin.as_str(), url.path, url.query), ("https://example.org", "/a/b", "x=1"));
        assert_eq!(Url::parse("http://h:8080").unwrap().origin, "http://h:8080");
        assert_eq!(Url::parse("http://h?q").unwrap().query, "q");
        for bad in ["", "ftp://h/", "https://", "https:///x", "h/x", "https://user@h/", "https://a b/"] {
            assert_eq!(Url::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn secrets_go_only_where_nobody_listens() {
        for (url, private) in [
            ("https://example.org/x", true),
            ("http://localhost:1/x", true),
            ("http://127.0.0.9/x", true),
            ("http://[::1]:1/x", true),
            ("http://app.localhost/x", true),
            ("http://example.org/x", false),
            ("http://localhost.example.org/x", false),
            ("http://127.0.0.1.example.org", false),
        ] {
            assert_eq!(Url::parse(url).unwrap().is_private(), private, "{url}");
        }
    }

    #[test]
    fn well_known_documents_and_resources() {
        let url = |text| Url::parse(text).unwrap();
        assert_eq!(url("https://h/t/").well_known("x"), "https://h/.well-known/x/t");
        assert_eq!(url("https://h/").well_known("x"), "https://h/.well-known/x");
        for (own, resource, within) in [
            ("https://h/mcp", "https://h/mcp", true),
            ("https://h/mcp/", "https://h/mcp", true),
            ("https://h/mcp", "https://h", true),
            ("https://h/mcp", "https://h/", true),
            ("https://h/mcpx", "https://h/mcp", false),
            ("https://h/", "https://h/mcp", false),
            ("https://h/mcp", "https://other/mcp", false),
            ("https://h/mcp", "http://h/mcp", false),
        ] {
            assert_eq!(url(own).is_within(&url(resource)), within, "{own} in {resource}");
        }
        assert_eq!(form(&[("a b", "c&d"), ("e", "")]), "a%20b=c%26d&e=");
    }
}
