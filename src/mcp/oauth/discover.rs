//! Finds out who grants access to a server: its own metadata (RFC 9728), then
//! the issuer's (RFC 8414, OpenID Connect Discovery), each only believed when it
//! is about what was asked. Servers of 2025-03-26 have no metadata of their own:
//! their origin is the issuer. Knows nothing of tokens.

use super::fetch::Fetch;
use super::refused;
use super::url::Url;
use crate::error::Result;
use crate::util::json_words;
use serde::Deserialize;
use serde_json::Value;

/// What a protected resource says of itself, as far as it is needed.
#[derive(Debug, Deserialize)]
struct Resource {
    resource: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
    scopes_supported: Option<Vec<String>>,
}

/// What an issuer says of itself, as far as it is needed (RFC 8414, section 2).
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Issuer {
    /// Its name.
    pub issuer: String,
    /// Where a person grants access.
    #[serde(default)]
    pub authorization_endpoint: String,
    /// Where tokens are had.
    #[serde(default)]
    pub token_endpoint: String,
    /// Where clients register.
    pub registration_endpoint: Option<String>,
    /// Where tokens are given back.
    pub revocation_endpoint: Option<String>,
    /// All its scopes.
    pub scopes_supported: Option<Vec<String>>,
    /// How clients may say who they are.
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// What a grant can be bound with.
    pub code_challenge_methods_supported: Option<Vec<String>>,
    /// It says in its answers that it was it (RFC 9207).
    #[serde(default)]
    pub authorization_response_iss_parameter_supported: bool,
    /// A URL that describes the client is an identifier of it.
    #[serde(default)]
    pub client_id_metadata_document_supported: bool,
    /// It has no metadata; its endpoints are where revision 2025-03-26 has them.
    #[serde(skip)]
    pub assumed: bool,
}

/// Where access to a server is had.
#[derive(Clone, Debug)]
pub struct Found {
    /// Who grants it.
    pub issuer: Issuer,
    /// To what, word for word; none for a server without metadata.
    pub resource: Option<String>,
    /// The scopes that the server has.
    pub scopes: Option<Vec<String>>,
}

/// Finds who grants access to the server at `url`. `hint` is what its challenge said of its metadata.
pub fn discover(fetch: &Fetch<'_>, url: &str, hint: Option<&str>) -> Result<Found> {
    let at = parse(fetch, url)?;
    let Some(resource) = resource(fetch, url, &at, hint)? else {
        return Ok(Found { issuer: of_origin(fetch, &at)?, resource: None, scopes: None });
    };
    let about = Url::parse(&resource.resource);
    if !about.is_some_and(|about| at.is_within(&about)) {
        let what = format!("its metadata are about {}, which is something else", resource.resource);
        return Err(refused(fetch.server, what));
    }
    let Some(name) = resource.authorization_servers.first() else {
        return Err(refused(fetch.server, "its metadata name nobody who grants access"));
    };
    let issuer = issuer(fetch, name)?.ok_or_else(|| {
        refused(fetch.server, format_args!("{name}, which is said to grant access, has no metadata"))
    })?;
    Ok(Found { issuer, resource: Some(resource.resource), scopes: resource.scopes_supported })
}

fn parse<'u>(fetch: &Fetch<'_>, url: &'u str) -> Result<Url<'u>> {
    Url::parse(url).ok_or_else(|| refused(fetch.server, "its URL cannot be read"))
}

/// The server's own metadata: where it said, else at the place for its path, else at that for its origin.
fn resource(fetch: &Fetch<'_>, url: &str, at: &Url<'_>, hint: Option<&str>) -> Result<Option<Resource>> {
    const NAME: &str = "oauth-protected-resource";
    let origin = Url { path: "", ..at.clone() };
    let places = match hint {
        Some(hint) => vec![hint.to_owned()],
        None => {
            let mut places = vec![at.well_known(NAME), origin.well_known(NAME)];
            places.dedup();
            places
        }
    };
    for place in places {
        let answer = fetch.get(&place)?;
        if answer.status == 200 {
            let read = serde_json::from_value(answer.json);
            let what = |e: serde_json::Error| {
                refused(fetch.server, format_args!("the metadata of {url} cannot be read: {}", json_words(e)))
            };
            return read.map(Some).map_err(what);
        }
        if hint.is_some() || answer.status >= 500 {
            let what = format!("its metadata cannot be had: {place} answered HTTP {}", answer.status);
            return Err(refused(fetch.server, what));
        }
    }
    Ok(None)
}

/// An issuer's metadata, at the places that RFC 8414 and OpenID Connect have for them, in the order that MCP asks for.
fn issuer(fetch: &Fetch<'_>, name: &str) -> Result<Option<Issuer>> {
    let at = parse(fetch, name)?;
    let mut places = vec![at.well_known("oauth-authorization-server"), at.well_known("openid-configuration")];
    let path = at.path.trim_end_matches('/');
    if !path.is_empty() {
        places.push(format!("{}{path}/.well-known/openid-configuration", at.origin));
    }
    for place in places {
        let answer = fetch.get(&place)?;
        if answer.status == 200 {
            return read(fetch, answer.json, name).map(Some);
        }
        if answer.status >= 500 {
            let what = format!("{place} answered HTTP {}", answer.status);
            return Err(refused(fetch.server, what));
        }
    }
    Ok(None)
}

/// Believes metadata only when they are those of the issuer that was asked (RFC 8414, 3.3).
fn read(fetch: &Fetch<'_>, json: Value, name: &str) -> Result<Issuer> {
    let found: Issuer = serde_json::from_value(json).map_err(|e| {
        refused(fetch.server, format_args!("the metadata of {name} cannot be read: {}", json_words(e)))
    })?;
    if found.issuer != name {
        let what = format!("{name} says of itself that it is {}; nothing was sent there", found.issuer);
        return Err(refused(fetch.server, what));
    }
    if found.token_endpoint.is_empty() {
        return Err(refused(fetch.server, format_args!("{name} does not say where tokens are had")));
    }
    Ok(found)
}

/// Revision 2025-03-26: the origin is the issuer, and without metadata its endpoints have fixed places.
fn of_origin(fetch: &Fetch<'_>, at: &Url<'_>) -> Result<Issuer> {
    let origin = Url { path: "", query: "", ..at.clone() };
    let answer = fetch.get(&origin.well_known("oauth-authorization-server"))?;
    if answer.status == 200 {
        // It may write itself with the slash that its origin ends in.
        let slashed = format!("{}/", origin.origin);
        let name = if answer.json["issuer"] == slashed.as_str() { &slashed } else { &origin.origin };
        return read(fetch, answer.json, name);
    }
    let place = |path: &str| format!("{}{path}", origin.origin);
    Ok(Issuer {
        issuer: origin.origin.clone(),
        authorization_endpoint: place("/authorize"),
        token_endpoint: place("/token"),
        registration_endpoint: Some(place("/register")),
        assumed: true,
        ..Issuer::default()
    })
}
