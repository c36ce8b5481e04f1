//! Access to one server while it is used: the token that goes along, renewed
//! before and when it ends, by one process at a time. Knows nothing of messages.

use super::super::cancel::Cancel;
use super::challenge::{self, Challenge};
use super::discover::discover;
use super::fetch::Fetch;
use super::grant::{self, Failed, Grant};
use super::register::configured;
use super::store::{Record, Stamp, Store, Tokens, Wanted};
use super::{refused, wants_login};
use crate::config::OAuthOptions;
use crate::error::Result;
use crate::log;
use crate::settings::{self, Settings};
use crate::util::{self, Env};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A token that ends within this is renewed before it is used: a request takes a while to arrive.
const SOON_MS: u64 = 30_000;

/// Access to a server.
pub struct Access {
    server: String,
    url: String,
    options: OAuthOptions,
    env: Env,
    ca: String,
    store: Store,
    timeout: Duration,
    lock_timeout: Duration,
    held: Mutex<Held>,
}

/// What was last read or written.
#[derive(Default)]
struct Held {
    stamp: Stamp,
    record: Record,
}

impl Access {
    /// Access to a server of that name at that URL, with what is kept below `state`.
    pub fn new(
        server: &str,
        url: &str,
        options: &OAuthOptions,
        env: &Env,
        state: &Path,
        settings: &Settings,
    ) -> Access {
        let timeout = settings.get(&settings::OAUTH_TIMEOUT);
        Access {
            server: server.to_owned(),
            url: url.to_owned(),
            options: options.clone(),
            env: env.clone(),
            ca: settings.get(&settings::TRANSPORT_CA_FILE),
            store: Store::new(state, server, url),
            timeout,
            // Whoever holds it makes at most a handful of requests.
            lock_timeout: timeout * 4,
            held: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The record as it is now: read again only when the file is another.
    fn current(&self) -> Record {
        let stamp = self.store.stamp();
        let mut held = self.lock();
        if held.stamp != stamp {
            *held = Held { stamp, record: self.store.load() };
        }
        held.record.clone()
    }

    /// Keeps a record; one that the disk does not take is at least used until the end.
    fn keep(&self, record: Record) {
        if let Err(error) = self.store.save(&record) {
            log::warn(&error);
        }
        *self.lock() = Held { stamp: self.store.stamp(), record };
    }

    /// The token to send; none when there is none.
    pub fn bearer(&self, cancel: &Cancel) -> Option<String> {
        let tokens = self.current().tokens?;
        let ends = tokens.expires_at.is_some_and(|at| at <= util::now_ms().saturating_add(SOON_MS));
        if ends && tokens.refresh.is_some() {
            // A failure shows in the server's answer, which says more.
            if let Err(error) = self.renew(Some(&tokens.access), cancel) {
                log::debug(&error);
            }
            return self.current().tokens.map(|tokens| tokens.access);
        }
        Some(tokens.access)
    }

    /// Answers a server that refused: after `Ok` there is another token, and the
    /// same message may be sent again, since the server did nothing with it.
    ///
    /// # Errors
    /// `Refused`, and what to do, when a person has to log in; what went wrong otherwise.
    pub fn refused(
        &self,
        status: u16,
        header: Option<&str>,
        used: Option<&str>,
        cancel: &Cancel,
    ) -> Result<()> {
        let challenge = challenge::parse(header.unwrap_or_default());
        if status == 403 {
            return self.step_up(challenge, used, cancel);
        }
        let renewed = self.renew(used, cancel)?;
        if renewed {
            return Ok(());
        }
        if self.options.client_credentials {
            return self.in_own_name(&challenge, used, cancel);
        }
        let had = used.is_some();
        self.note(challenge)?;
        Err(wants_login(
            &self.server,
            match had {
                true => "the login has ended",
                false => "it wants a login",
            },
        ))
    }

    /// More scopes are wanted than the token has.
    fn step_up(&self, challenge: Challenge, used: Option<&str>, cancel: &Cancel) -> Result<()> {
        let scope = challenge.scope.clone().unwrap_or_default();
        if self.options.client_credentials {
            return self.in_own_name(&challenge, used, cancel);
        }
        self.note(challenge)?;
        let what = match scope.is_empty() {
            true => "the login does not permit this".to_owned(),
            false => format!("the login does not permit this; it needs the scope {scope}"),
        };
        Err(wants_login(&self.server, &super::super::error::printable(&what, 300)))
    }

    /// Remembers what is wanted, for the next login.
    fn note(&self, challenge: Challenge) -> Result<()> {
        let wanted = Wanted { resource_metadata: challenge.resource_metadata, scope: challenge.scope };
        if self.current().wanted.as_ref() == Some(&wanted) {
            return Ok(());
        }
        let _lock = self.store.lock(self.lock_timeout)?;
        let mut record = self.current();
        record.wanted = Some(wanted);
        self.keep(record);
        Ok(())
    }

    /// Redeems the refresh token, unless another process has done so: reading it,
    /// redeeming it and keeping what comes of it are one step. False when there is nothing to redeem.
    fn renew(&self, used: Option<&str>, cancel: &Cancel) -> Result<bool> {
        if self.current().tokens.is_none() {
            return Ok(false);
        }
        let _lock = self.store.lock(self.lock_timeout)?;
        let mut record = self.current();
        let Some(tokens) = record.tokens.clone() else { return Ok(false) };
        if used.is_some_and(|used| used != tokens.access) {
            return Ok(true);
        }
        let (Some(refresh), Some(endpoint), Some(mut client)) =
            (&tokens.refresh, &record.token_endpoint, record.client.clone())
        else {
            return Ok(false);
        };
        if self.options.client_id.as_ref() == Some(&client.id) {
            client.secret = self.options.client_secret.as_ref().map(|secret| secret.reveal().to_owned());
        }
        let (grant, resource) = (Grant::Refresh(refresh), record.resource.as_deref());
        match grant::ask(&self.fetch(cancel), endpoint, &client, &grant, resource, tokens.scope.as_deref()) {
            Ok(new) => {
                // A server that rotates sends another; one that does not means the old one to stay.
                let refresh = new.refresh.clone().or(tokens.refresh);
                record.tokens = Some(Tokens { refresh, ..new });
                self.keep(record);
                Ok(true)
            }
            Err(Failed::Worthless(why)) => {
                log::info(format_args!("the login to the server {} has ended: {why}", self.server));
                record.tokens = None;
                self.keep(record);
                Ok(false)
            }
            Err(Failed::Other(error)) => Err(error),
        }
    }

    /// A token in our own name, with the client that the configuration names.
    fn in_own_name(&self, challenge: &Challenge, used: Option<&str>, cancel: &Cancel) -> Result<()> {
        let _lock = self.store.lock(self.lock_timeout)?;
        let mut record = self.current();
        let token = record.tokens.as_ref().map(|tokens| tokens.access.as_str());
        if token.is_some() && token != used {
            return Ok(());
        }
        let fetch = self.fetch(cancel);
        let found = discover(&fetch, &self.url, challenge.resource_metadata.as_deref())?;
        let client = configured(&found.issuer, &self.options)
            .ok_or_else(|| refused(&self.server, "oauth.grant is client_credentials without a clientId"))?;
        let granted = record.tokens.as_ref().and_then(|tokens| tokens.scope.as_deref());
        let first = challenge.scope.as_deref().or(self.options.scope.as_deref());
        let scope = grant::union(granted, first);
        let endpoint = found.issuer.token_endpoint.clone();
        let resource = found.resource.as_deref();
        let tokens = grant::ask(&fetch, &endpoint, &client, &Grant::Client, resource, scope.as_deref());
        let tokens = tokens.map_err(|failed| match failed {
            Failed::Worthless(why) => refused(&self.server, format_args!("no token was given: {why}"))
                .hint("check clientId and clientSecret in the server's \"mcpx\": {\"oauth\": …}"),
            Failed::Other(error) => error,
        })?;
        record.issuer = Some(found.issuer.issuer);
        record.resource = found.resource;
        record.token_endpoint = Some(endpoint);
        record.revocation_endpoint = found.issuer.revocation_endpoint;
        // The secret stays where it is: in the configuration.
        record.client = None;
        record.tokens = Some(Tokens { refresh: None, ..tokens });
        self.keep(record);
        Ok(())
    }

    fn fetch<'a>(&'a self, cancel: &'a Cancel) -> Fetch<'a> {
        Fetch { server: &self.server, env: &self.env, ca: &self.ca, timeout: self.timeout, cancel }
    }
}
