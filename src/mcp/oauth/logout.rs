//! Ends a login: gives the tokens back where the issuer takes them, and forgets them.

use super::super::cancel::Cancel;
use super::fetch::Fetch;
use super::grant;
use super::store::Store;
use crate::config::OAuthOptions;
use crate::error::Result;
use crate::log;
use crate::settings::{self, Settings};
use crate::util::Env;

/// Ends the login that a store holds; whether there was one.
///
/// # Errors
/// When the file cannot be locked or removed. An issuer that cannot be told is only logged.
pub fn forget(
    store: &Store,
    options: &OAuthOptions,
    env: &Env,
    settings: &Settings,
    cancel: &Cancel,
) -> Result<bool> {
    let ca = settings.get(&settings::TRANSPORT_CA_FILE);
    let timeout = settings.get(&settings::OAUTH_TIMEOUT);
    let _lock = store.lock(timeout)?;
    let record = store.load();
    store.remove()?;
    let Some(tokens) = record.tokens else { return Ok(false) };
    if let (Some(endpoint), Some(mut client)) = (record.revocation_endpoint, record.client) {
        if options.client_id.as_ref() == Some(&client.id) {
            client.secret = options.client_secret.as_ref().map(|secret| secret.reveal().to_owned());
        }
        let fetch = Fetch { server: &record.server, env, ca: &ca, timeout, cancel };
        // The one that others come from first.
        for token in [tokens.refresh.as_deref(), Some(tokens.access.as_str())].into_iter().flatten() {
            if let Err(error) = grant::revoke(&fetch, &endpoint, &client, token) {
                log::warn(format_args!("the token is forgotten, but was not given back: {error}"));
                break;
            }
        }
    }
    Ok(true)
}
