//! Where what is known of a server's authorisation is kept: one private file a
//! server, written whole, under a lock that all processes respect. Knows nothing
//! of how it came to be known.

use crate::error::{Error, Kind, Result};
use crate::paths;
use crate::proc;
use crate::proc::lock::FileLock;
use crate::util;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// All that is known. Every field may be absent: a file of another version still reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Record {
    /// The server's name.
    pub server: String,
    /// Its URL.
    pub url: String,
    /// Who grants access.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// What access is granted to, word for word as the server's metadata say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// Where tokens are had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_endpoint: Option<String>,
    /// Where tokens are given back (RFC 7009).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revocation_endpoint: Option<String>,
    /// Who we are to the issuer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<Client>,
    /// What we have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// What the server asked for the last time that it refused us.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wanted: Option<Wanted>,
}

/// A registration with an issuer.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Client {
    /// The identifier.
    pub id: String,
    /// The secret, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// How the token endpoint is told who asks: `none`, `client_secret_basic` or `client_secret_post`.
    pub method: String,
    /// Where a login ends; empty when any port of this machine will do.
    pub redirect: String,
    /// It was made by dynamic registration, and can be made anew.
    pub dynamic: bool,
}

/// Tokens as the issuer gave them.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Tokens {
    /// The access token.
    pub access: String,
    /// The refresh token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh: Option<String>,
    /// When the access token ends, milliseconds since 1970; absent when the issuer did not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
    /// What was granted, or asked for where the issuer did not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
}

/// What a server asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Wanted {
    /// Where it describes itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_metadata: Option<String>,
    /// The scopes that were missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("id", &self.id).field("method", &self.method).finish_non_exhaustive()
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens")
            .field("expires_at", &self.expires_at)
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

/// The file of one server.
#[derive(Clone, Debug)]
pub struct Store {
    server: String,
    url: String,
    path: PathBuf,
}

/// Tells whether a file is still the one that was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp(Option<(u64, i64, i64)>);

impl Store {
    /// The store of a server with that name at that URL, below the state directory.
    pub fn new(state: &Path, server: &str, url: &str) -> Store {
        let name = util::digest([server.as_bytes(), url.as_bytes()], 16);
        Store {
            server: server.to_owned(),
            url: url.to_owned(),
            path: state.join("oauth").join(format!("{name}.json")),
        }
    }

    /// Which file it is, for people.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What would tell another content; costs one look at the file.
    pub fn stamp(&self) -> Stamp {
        let meta = std::fs::metadata(&self.path).ok();
        Stamp(meta.map(|m| (m.ino(), m.mtime(), m.mtime_nsec())))
    }

    /// What is kept; an empty record when there is none. A file that cannot be read as one counts as none.
    pub fn load(&self) -> Record {
        let text = std::fs::read(&self.path).unwrap_or_default();
        let mut record: Record = serde_json::from_slice(&text).unwrap_or_default();
        record.server.clone_from(&self.server);
        record.url.clone_from(&self.url);
        record
    }

    /// Keeps a record. Call it with the lock held.
    pub fn save(&self, record: &Record) -> Result<()> {
        let fail = |e: String| {
            Error::new(
                Kind::Unavailable,
                format!("keeping the authorisation in {}: {e}", self.path.display()),
            )
            .server(&self.server)
        };
        self.prepare()?;
        let mut text = serde_json::to_string_pretty(record).map_err(|e| fail(e.to_string()))?;
        text.push('\n');
        util::write_atomic(&self.path, text.as_bytes(), 0o600, true).map_err(|e| fail(e.to_string()))
    }

    /// Removes what is kept. Call it with the lock held.
    pub fn remove(&self) -> Result<()> {
        match std::fs::remove_file(&self.path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::new(Kind::Unavailable, format!("removing {}: {e}", self.path.display())))
            }
            _ => Ok(()),
        }
    }

    /// Waits until no other process reads, redeems and writes.
    pub fn lock(&self, patience: Duration) -> Result<FileLock> {
        let path = self.path.with_extension("lock");
        let fail = |what: String| {
            Error::new(Kind::Unavailable, format!("locking {}: {what}", path.display())).server(&self.server)
        };
        self.prepare()?;
        FileLock::wait(&path, patience)
            .map_err(|e| fail(e.to_string()))?
            .ok_or_else(|| fail("another process of mcpx has held it for too long".into()))
    }

    fn prepare(&self) -> Result<()> {
        match self.path.parent() {
            Some(dir) => paths::ensure_private(dir, proc::uid()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::util::scratch::Scratch;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_record_comes_back_and_is_private() {
        let dir = Scratch::new("oauth");
        let store = Store::new(&dir.path("s"), "a", "https://h/mcp");
        assert_eq!(
            store.load(),
            Record { server: "a".into(), url: "https://h/mcp".into(), ..Record::default() }
        );
        let before = store.stamp();
        let mut record = store.load();
        record.tokens = Some(Tokens { access: "secret-1".into(), ..Tokens::default() });
        record.client =
            Some(Client { id: "me".into(), secret: Some("secret-2".into()), ..Client::default() });
        let lock = store.lock(Duration::from_secs(10)).unwrap();
        store.save(&record).unwrap();
        drop(lock);
        assert_ne!(store.stamp(), before);
        assert_eq!(store.load(), record);
        assert_eq!(std::fs::metadata(store.path()).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!format!("{record:?}").contains("secret"), "{record:?}");
        // Another server's file is another one, and a broken file is no login.
        assert_ne!(Store::new(&dir.path("s"), "b", "https://h/mcp").path(), store.path());
        std::fs::write(store.path(), "{\"tokens\":").unwrap();
        assert_eq!(store.load().tokens, None);
        store.remove().unwrap();
        store.remove().unwrap();
        assert_eq!(store.stamp(), Stamp::default());
    }
}
