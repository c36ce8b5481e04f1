//! What a child inherits of the environment: patterns that allow and deny
//! names. Knows nothing of what is started.

use crate::util::{Env, glob};

/// Names that are inherited whatever the patterns say: without the first hardly
/// any program starts, and without the rest none gets through a proxy or trusts
/// a company's certificates. The last are mcpx's own, by which a child finds
/// the same configuration and daemon.
const ALWAYS: &[&str] = &[
    "PATH",
    "HOME",
    "TMPDIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "NODE_USE_SYSTEM_CA",
    "DENO_CERT",
    "DENO_TLS_CA_STORE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "PIP_CERT",
    "AWS_CA_BUNDLE",
    "MCPX_CONFIG",
    "MCPX_STATE_DIR",
    "MCPX_CACHE_DIR",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "XDG_RUNTIME_DIR",
];

/// The part of an environment that these patterns let through: what one of them names and none with a
/// `!` in front does. A star stands for any characters; with nothing but denials all else is let through.
pub fn inherited(patterns: &[String], env: &Env) -> Env {
    let (deny, allow): (Vec<&str>, Vec<&str>) =
        patterns.iter().map(|p| p.trim()).partition(|p| p.starts_with('!'));
    if deny.is_empty() && allow.contains(&"*") {
        return env.clone();
    }
    let everything = allow.is_empty() && !deny.is_empty();
    let mut out = Env::default();
    for (name, value) in env.iter() {
        // A name that is no text is matched by what of it is.
        let text = name.to_string_lossy();
        let allowed = everything || allow.iter().any(|p| glob(p, &text));
        let denied = deny.iter().any(|p| glob(&p[1..], &text));
        if ALWAYS.contains(&&*text) || allowed && !denied {
            out.set(name, value);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(patterns: &[&str]) -> Vec<String> {
        let names =
            ["PATH", "https_proxy", "SSL_CERT_FILE", "AWS_SECRET", "AWS_REGION", "LC_ALL", "GITHUB_TOKEN"];
        let env = Env::from_pairs(names.map(|n| (n, "x")));
        let patterns: Vec<String> = patterns.iter().map(|p| (*p).to_owned()).collect();
        let mut left: Vec<String> =
            inherited(&patterns, &env).iter().map(|(n, _)| n.to_string_lossy().into_owned()).collect();
        left.retain(|n| !["PATH", "https_proxy", "SSL_CERT_FILE"].contains(&n.as_str()));
        assert!(
            inherited(&patterns, &env).get("PATH").is_some()
                && inherited(&patterns, &env).get("SSL_CERT_FILE").is_some()
        );
        left.sort();
        left
    }

    #[test]
    fn patterns_allow_and_deny_and_what_is_needed_stays() {
        assert_eq!(left(&["*"]).len(), 4);
        assert_eq!(left(&["!*TOKEN*", "!AWS_S*"]), ["AWS_REGION", "LC_ALL"]);
        assert_eq!(left(&["AWS_*", "!AWS_SECRET", "LC_ALL"]), ["AWS_REGION", "LC_ALL"]);
        assert!(left(&[]).is_empty() && left(&["!*"]).is_empty());
        assert_eq!(left(&["!PATH", "!*_proxy"]).len(), 4);
    }
}
