//! Who we are to an issuer: what the configuration says, else a document at a
//! URL that describes us, else what we have registered, else a new registration
//! (RFC 7591). Knows nothing of tokens.

use super::discover::Issuer;
use super::fetch::Fetch;
use super::refused;
use super::store::Client;
use crate::config::OAuthOptions;
use crate::error::Result;
use serde_json::json;

const BASIC: &str = "client_secret_basic";
const POST: &str = "client_secret_post";
const NONE: &str = "none";

/// What the configuration has to say.
pub struct Known<'a> {
    /// The server's own options.
    pub options: &'a OAuthOptions,
    /// Where a document that describes us is published; may be empty.
    pub document: &'a str,
}

/// The client to be at this issuer, registered with `redirect` if it has to be made.
pub fn client(
    fetch: &Fetch<'_>,
    issuer: &Issuer,
    known: &Known<'_>,
    stored: Option<&Client>,
    redirect: &str,
    scope: Option<&str>,
) -> Result<Client> {
    if let Some(client) = configured(issuer, known.options) {
        return Ok(client);
    }
    if issuer.client_id_metadata_document_supported && !known.document.is_empty() {
        let id = known.document.to_owned();
        return Ok(Client { id, method: NONE.into(), ..Client::default() });
    }
    // One made for another port does at issuers that compare the whole of it only with that port.
    if let Some(client) = stored.filter(|client| client.dynamic && client.redirect == redirect) {
        return Ok(client.clone());
    }
    let Some(endpoint) = &issuer.registration_endpoint else {
        return Err(refused(fetch.server, format_args!("{} registers nobody by itself", issuer.issuer)).hint(
            "register a client there and write its identifier into the server's definition: \"mcpx\": {\"oauth\": {\"clientId\": …}}",
        ));
    };
    register(fetch, issuer, endpoint, redirect, scope)
}

/// The client that the configuration names.
pub fn configured(issuer: &Issuer, options: &OAuthOptions) -> Option<Client> {
    let id = options.client_id.clone()?;
    let secret = options.client_secret.as_ref().map(|secret| secret.reveal().to_owned());
    let method = method(issuer, secret.is_some(), None);
    Some(Client { id, secret, method, ..Client::default() })
}

fn register(
    fetch: &Fetch<'_>,
    issuer: &Issuer,
    endpoint: &str,
    redirect: &str,
    scope: Option<&str>,
) -> Result<Client> {
    let supported = issuer.token_endpoint_auth_methods_supported.as_deref();
    // A program on a person's machine keeps no secret from that person; where none is needed none is asked for.
    let wanted = match supported {
        None => NONE,
        Some(all) => [NONE, BASIC, POST].into_iter().find(|m| all.iter().any(|a| a == m)).unwrap_or(NONE),
    };
    let mut body = json!({
        "client_name": "mcpx",
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": wanted,
        "application_type": "native",
    });
    if let Some(scope) = scope {
        body["scope"] = scope.into();
    }
    let answer = fetch.json(endpoint, &body, &[])?;
    let text = |key: &str| answer.json[key].as_str().map(str::to_owned);
    let Some(id) = text("client_id").filter(|_| matches!(answer.status, 200 | 201)) else {
        let why = text("error_description").or(text("error")).unwrap_or_default();
        let what = format!("{} did not register mcpx: HTTP {} {why}", issuer.issuer, answer.status);
        return Err(refused(fetch.server, what.trim_end()));
    };
    let secret = text("client_secret").filter(|secret| !secret.is_empty());
    let method = method(issuer, secret.is_some(), text("token_endpoint_auth_method").as_deref());
    Ok(Client { id, secret, method, redirect: redirect.to_owned(), dynamic: true })
}

/// How to say who we are: as was agreed, else the best of what the issuer takes (RFC 8414: basic when it does not say).
fn method(issuer: &Issuer, has_secret: bool, agreed: Option<&str>) -> String {
    let supported = issuer.token_endpoint_auth_methods_supported.as_deref();
    let takes = |method: &str| supported.is_none_or(|all| all.iter().any(|m| m == method));
    let chosen = match agreed {
        Some(agreed) if [BASIC, POST].contains(&agreed) && has_secret => agreed,
        Some(NONE) => NONE,
        _ if !has_secret => NONE,
        _ if takes(BASIC) => BASIC,
        _ if takes(POST) => POST,
        _ => BASIC,
    };
    chosen.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_client_says_who_it_is() {
        let takes = |methods: Option<&[&str]>| Issuer {
            token_endpoint_auth_methods_supported: methods
                .map(|all| all.iter().map(|m| (*m).to_owned()).collect()),
            ..Issuer::default()
        };
        for (methods, secret, agreed, wanted) in [
            (None, false, None, NONE),
            (None, true, None, BASIC),
            (Some(&[POST][..]), true, None, POST),
            (Some(&[POST, BASIC][..]), true, None, BASIC),
            (Some(&[BASIC][..]), true, Some(POST), POST),
            (Some(&[BASIC][..]), true, Some(NONE), NONE),
            (Some(&[BASIC][..]), false, Some(BASIC), NONE),
            (Some(&["private_key_jwt"][..]), true, None, BASIC),
        ] {
            assert_eq!(method(&takes(methods), secret, agreed), wanted, "{methods:?} {secret} {agreed:?}");
        }
    }
}
