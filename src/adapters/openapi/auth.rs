//! What proves to an API who we are. Never printed, and put into requests for
//! the API's own origin alone.

use super::super::{fault, known};
use super::request::Request;
use crate::error::Result;
use crate::util::base64;
use serde_json::{Map, Value};
use std::fmt;

/// Headers and parts of the query that go with every request.
#[derive(Default)]
pub struct Credentials {
    headers: Vec<(String, String)>,
    query: Vec<(String, String)>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials({} headers, {} in the query)", self.headers.len(), self.query.len())
    }
}

impl Credentials {
    /// Reads `auth` and `headers` of a declaration.
    pub fn read(server: &str, members: &Map<String, Value>) -> Result<Credentials> {
        let mut out = Credentials::default();
        if let Some(headers) = members.get("headers") {
            out.headers.extend(pairs(server, "openapi.headers", headers)?);
        }
        let Some(auth) = members.get("auth") else { return Ok(out) };
        let place = "openapi.auth";
        let auth = auth.as_object().ok_or_else(|| fault(server, place, "expected an object"))?;
        known(server, place, auth, &["basic", "bearer", "header", "query"])?;
        for (kind, value) in auth {
            let place = format!("{place}.{kind}");
            let text = || value.as_str().ok_or_else(|| fault(server, &place, "expected a text"));
            let authorization = |value: String| ("Authorization".to_owned(), value);
            match kind.as_str() {
                "bearer" => out.headers.push(authorization(format!("Bearer {}", text()?.trim()))),
                "basic" => {
                    let both = text()?;
                    if !both.contains(':') {
                        return Err(fault(server, &place, "expected user:password"));
                    }
                    out.headers.push(authorization(format!("Basic {}", base64::encode(both.as_bytes()))));
                }
                "header" => out.headers.extend(pairs(server, &place, value)?),
                _ => out.query.extend(pairs(server, &place, value)?),
            }
        }
        Ok(out)
    }

    /// Whether there is nothing to be kept from anybody.
    pub fn is_empty(&self) -> bool {
        self.headers.is_empty() && self.query.is_empty()
    }

    /// Puts them into a request; an argument of the same name does not replace them.
    pub fn put(&self, request: &mut Request) {
        request
            .headers
            .retain(|(name, _)| !self.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name)));
        request.headers.extend(self.headers.iter().cloned());
        request.query.retain(|(name, _)| !self.query.iter().any(|(own, _)| own == name));
        request.query.extend(self.query.iter().cloned());
    }
}

fn pairs(server: &str, place: &str, value: &Value) -> Result<Vec<(String, String)>> {
    let members = value.as_object().ok_or_else(|| fault(server, place, "expected an object of texts"))?;
    let each = members.iter().map(|(name, value)| {
        let value =
            value.as_str().ok_or_else(|| fault(server, &format!("{place}.{name}"), "expected a text"))?;
        if name.is_empty() || [name.as_str(), value].iter().any(|t| t.chars().any(char::is_control)) {
            return Err(fault(server, &format!("{place}.{name}"), "must be one line"));
        }
        Ok((name.clone(), value.to_owned()))
    });
    each.collect()
}
