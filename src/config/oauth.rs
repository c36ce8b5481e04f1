//! A server's `"mcpx": {"oauth": …}`: who mcpx is to whoever grants access to
//! it. Knows nothing of how access is had.

use super::expand::expand;
use super::node::{Item, Node};
use super::values::{Fault, Said, said};
use crate::settings::{At, Secret};
use crate::util::{self, Env};

/// The members of the block, with what they mean.
pub(super) const OAUTH: &[(&str, &str)] = &[
    ("clientId", "a client that is registered already, instead of one that mcpx registers"),
    ("clientSecret", "its secret, if it has one; best `${VARIABLE}`"),
    (
        "grant",
        "`authorization_code` (a person logs in with `mcpx auth login`) or `client_credentials` (the client itself, for CI)",
    ),
    ("scope", "the scopes to ask for, separated by spaces, besides those that the server names"),
];

/// What the block says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OAuthOptions {
    /// `false` instead of a block: a refusal is a refusal.
    pub off: bool,
    /// A client that is registered already.
    pub client_id: Option<String>,
    /// Its secret.
    pub client_secret: Option<Secret>,
    /// The scopes to ask for.
    pub scope: Option<String>,
    /// Tokens are asked for in the client's own name.
    pub client_credentials: bool,
}

/// The block as it is written.
#[derive(Default)]
pub(super) struct Written<'a> {
    off: bool,
    members: Vec<(&'a str, Said<'a>)>,
    at: At,
}

impl<'a> Written<'a> {
    /// Reads the block.
    pub fn read(node: &'a Node<'_>) -> Result<Written<'a>, Fault> {
        let at = node.at;
        let members = match &node.item {
            Item::Bool(false) => return Ok(Written { off: true, at, ..Written::default() }),
            Item::Object(members) => members,
            _ => {
                return Err((at, format!("mcpx.oauth: expected an object or false, got {}", node.shape())));
            }
        };
        let mut all = Vec::new();
        for (key, node) in members {
            let Some((key, _)) = OAUTH.iter().find(|(known, _)| known == key) else {
                let near = util::did_you_mean(key, OAUTH.iter().map(|(key, _)| *key));
                let near = near.map(|n| format!("; {n}")).unwrap_or_default();
                return Err((node.at, format!("mcpx.oauth: unknown key \"{key}\"{near}")));
            };
            let text = said(&format!("mcpx.oauth.{key}"), node)?;
            if *key == "grant" && !["authorization_code", "client_credentials"].contains(&text.text) {
                let what = format!(
                    "mcpx.oauth.grant: \"{}\" is neither authorization_code nor client_credentials",
                    text.text
                );
                return Err((text.at, what));
            }
            all.push((*key, text));
        }
        Ok(Written { off: false, members: all, at })
    }

    /// What of it decides how the server is reached, as written.
    pub fn digest_parts(&self) -> impl Iterator<Item = &'a [u8]> {
        self.members
            .iter()
            .flat_map(|(key, said)| [b"oauth".as_slice(), key.as_bytes(), said.text.as_bytes()])
    }

    /// The options, variables expanded.
    pub fn options(&self, env: &Env) -> Result<OAuthOptions, Fault> {
        let mut options = OAuthOptions { off: self.off, ..OAuthOptions::default() };
        for (key, said) in &self.members {
            let text =
                expand(said.text, env).map_err(|what| (said.at, format!("mcpx.oauth.{key}: {what}")))?;
            match *key {
                "clientId" => options.client_id = Some(text),
                "clientSecret" => options.client_secret = Some(Secret::new(text)),
                "scope" => options.scope = Some(text).filter(|scope| !scope.trim().is_empty()),
                _ => options.client_credentials = text == "client_credentials",
            }
        }
        if options.client_credentials && options.client_id.is_none() {
            return Err((self.at, "mcpx.oauth: client_credentials needs a clientId".into()));
        }
        Ok(options)
    }
}
