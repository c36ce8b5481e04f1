//! Asks a token endpoint for tokens (RFC 6749, OAuth 2.1). Knows nothing of
//! where they are kept.

use super::fetch::Fetch;
use super::refused;
use super::store::{Client, Tokens};
use crate::error::{Error, Result};
use crate::util::{self, base64};
use std::time::Duration;

/// What is shown for a token.
pub enum Grant<'a> {
    /// What a person's login came to.
    Code { code: &'a str, redirect: &'a str, verifier: &'a str },
    /// What came with an earlier token.
    Refresh(&'a str),
    /// Who we are.
    Client,
}

/// Why there are no tokens.
pub enum Failed {
    /// The endpoint says that what was shown is worth nothing (any more).
    Worthless(String),
    /// Anything else; what was shown may still be good.
    Other(Error),
}

/// Asks for tokens.
pub fn ask(
    fetch: &Fetch<'_>,
    endpoint: &str,
    client: &Client,
    grant: &Grant<'_>,
    resource: Option<&str>,
    scope: Option<&str>,
) -> std::result::Result<Tokens, Failed> {
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    match grant {
        Grant::Code { code, redirect, verifier } => pairs.extend([
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", redirect),
            ("code_verifier", verifier),
        ]),
        Grant::Refresh(token) => pairs.extend([("grant_type", "refresh_token"), ("refresh_token", token)]),
        Grant::Client => pairs.push(("grant_type", "client_credentials")),
    }
    // RFC 8707: the token is for this server, and for no other.
    pairs.extend(resource.map(|resource| ("resource", resource)));
    // A code has its scope, and a refreshed token that of its predecessor.
    pairs.extend(scope.filter(|_| matches!(grant, Grant::Client)).map(|scope| ("scope", scope)));
    let headers = prove(client, &mut pairs);
    let answer = fetch.form(endpoint, &pairs, &headers).map_err(Failed::Other)?;
    let text = |key: &str| answer.json[key].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    if answer.status != 200 {
        let code = text("error").unwrap_or_else(|| format!("HTTP {}", answer.status));
        let why = text("error_description").map(|why| format!(": {why}")).unwrap_or_default();
        let said = super::super::error::printable(&format!("{code}{why}"), 300);
        return Err(match code.as_str() {
            "invalid_grant" | "invalid_client" | "unauthorized_client" => Failed::Worthless(said),
            _ => Failed::Other(refused(fetch.server, format_args!("no token was given: {said}"))),
        });
    }
    let Some(access) = text("access_token") else {
        return Err(Failed::Other(refused(fetch.server, "the answer of the token endpoint holds no token")));
    };
    let kind = text("token_type").unwrap_or_default();
    if !kind.is_empty() && !kind.eq_ignore_ascii_case("bearer") {
        let what = format!(
            "the token is of type {}, which mcpx does not know",
            super::super::error::printable(&kind, 40)
        );
        return Err(Failed::Other(refused(fetch.server, what)));
    }
    let seconds = answer.json["expires_in"].as_u64().or_else(|| text("expires_in")?.parse().ok());
    let expires_at = seconds.map(|s| {
        let left = Duration::from_secs(s).as_millis();
        util::now_ms().saturating_add(u64::try_from(left).unwrap_or(u64::MAX))
    });
    let scope = text("scope").or_else(|| scope.map(str::to_owned));
    Ok(Tokens { access, refresh: text("refresh_token"), expires_at, scope })
}

/// Gives a token back, as well as it goes.
pub fn revoke(fetch: &Fetch<'_>, endpoint: &str, client: &Client, token: &str) -> Result<()> {
    let mut pairs = vec![("token", token)];
    let headers = prove(client, &mut pairs);
    fetch.form(endpoint, &pairs, &headers).map(drop)
}

/// Adds who we are, in the way that was agreed.
fn prove<'a>(client: &'a Client, pairs: &mut Vec<(&'a str, &'a str)>) -> Vec<(String, String)> {
    match (client.method.as_str(), client.secret.as_deref()) {
        ("client_secret_basic", Some(secret)) => {
            // RFC 6749, 2.3.1: both are form-encoded first.
            let encode = |text| crate::util::uri::encode(text, false);
            let both = format!("{}:{}", encode(&client.id), encode(secret));
            vec![("Authorization".into(), format!("Basic {}", base64::encode(both.as_bytes())))]
        }
        ("client_secret_post", Some(secret)) => {
            pairs.extend([("client_id", client.id.as_str()), ("client_secret", secret)]);
            Vec::new()
        }
        _ => {
            pairs.push(("client_id", &client.id));
            Vec::new()
        }
    }
}

/// Two lists of scopes as one, each scope once, in order.
pub fn union(a: Option<&str>, b: Option<&str>) -> Option<String> {
    let mut all: Vec<&str> = Vec::new();
    for scope in a.into_iter().chain(b).flat_map(str::split_whitespace) {
        if !all.contains(&scope) {
            all.push(scope);
        }
    }
    (!all.is_empty()).then(|| all.join(" "))
}

#[cfg(test)]
mod tests {
    use super::super::url;
    use super::*;

    #[test]
    fn scopes_are_joined_each_once() {
        assert_eq!(union(Some("a b"), Some("b  c")).as_deref(), Some("a b c"));
        assert_eq!(union(None, Some("")), None);
        assert_eq!(union(None, Some("x")).as_deref(), Some("x"));
    }

    #[test]
    fn a_secret_goes_where_was_agreed() {
        let client = |method: &str, secret: Option<&str>| Client {
            id: "a:b".into(),
            secret: secret.map(str::to_owned),
            method: method.into(),
            ..Client::default()
        };
        let proved = |client: &Client| {
            let mut pairs = Vec::new();
            let headers = prove(client, &mut pairs);
            (url::form(&pairs), headers.first().map(|(_, value)| value.clone()))
        };
        let basic = format!("Basic {}", base64::encode(b"a%3Ab:s%20t"));
        assert_eq!(proved(&client("client_secret_basic", Some("s t"))), (String::new(), Some(basic)));
        let post = "client_id=a%3Ab&client_secret=s%20t".to_owned();
        assert_eq!(proved(&client("client_secret_post", Some("s t"))), (post, None));
        for plain in [client("none", Some("s t")), client("client_secret_basic", None)] {
            assert_eq!(proved(&plain), ("client_id=a%3Ab".to_owned(), None));
        }
    }
}
