//! What of a server's definition looks like a secret: hidden where the definition is
//! shown, and kept out of the log. Knows nothing of files.

use super::server::Transport;
use crate::observe::log::Redactor;
use crate::util::Env;
use serde_json::Value;

/// What stands for a secret.
pub(super) const MASK: &str = "********";

/// A block as it may be shown: values of variables and headers, and what looks
/// like a secret in arguments and in an address, are masked. A text that only
/// refers to a variable (`${TOKEN}`) tells nothing, and stays.
pub fn masked(block: &Value) -> Value {
    let mut block = block.clone();
    let Some(members) = block.as_object_mut() else { return block };
    for (key, value) in members {
        match (key.as_str(), value) {
            ("env" | "headers", Value::Object(pairs)) => pairs.values_mut().for_each(mask_text),
            ("env" | "headers", other) => mask_text(other),
            ("mcpx", Value::Object(own)) => {
                if let Some(secret) = own.get_mut("oauth").and_then(|oauth| oauth.get_mut("clientSecret")) {
                    mask_text(secret);
                }
                for (kind, value) in own.iter_mut() {
                    super::declared::mask(kind, value, &mask_text);
                }
            }
            ("args", Value::Array(args)) => mask_args(args),
            ("url" | "serverUrl" | "httpUrl", Value::String(url)) => *url = mask_url(url),
            _ => {}
        }
    }
    block
}

fn mask_text(value: &mut Value) {
    let refers = value.as_str().is_some_and(only_variables);
    if !refers {
        *value = MASK.into();
    }
}

/// `${A}` and texts made of such, with at most a word such as `Bearer` before.
fn only_variables(text: &str) -> bool {
    let text = ["Bearer ", "Basic ", "token "].iter().find_map(|p| text.strip_prefix(p)).unwrap_or(text);
    let name = |n: &str| !n.is_empty() && n.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let inner = text.strip_prefix("${").and_then(|t| t.strip_suffix('}'));
    text.is_empty() || inner.is_some_and(|n| name(n.strip_suffix(":-").unwrap_or(n)))
}

/// Whether a flag's or parameter's name speaks of a secret.
fn secretive(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [
        "token",
        "secret",
        "password",
        "passwd",
        "apikey",
        "api-key",
        "api_key",
        "access-key",
        "credential",
        "auth",
    ]
    .iter()
    .any(|word| name.contains(word))
        || name.ends_with("key")
}

fn mask_args(args: &mut [Value]) {
    let mut follows = false;
    for arg in args {
        let Some(text) = arg.as_str() else { continue };
        let is_flag = text.starts_with('-');
        if std::mem::replace(&mut follows, false) && !is_flag {
            mask_text(arg);
            continue;
        }
        match text.split_once('=') {
            Some((name, value)) if secretive(name) && !only_variables(value) => {
                *arg = format!("{name}={MASK}").into();
            }
            Some(_) => {}
            None => follows = is_flag && secretive(text),
        }
        if let Some(text) = arg.as_str().filter(|t| t.starts_with("http://") || t.starts_with("https://")) {
            *arg = mask_url(text).into();
        }
    }
}

/// What looks like a secret in a server's arguments and address; in its variables and headers their names say so.
pub fn of(transport: &Transport) -> Vec<&str> {
    let mut found = Vec::new();
    match transport {
        Transport::Stdio { args, .. } => {
            let mut follows = false;
            for arg in args {
                let is_flag = arg.starts_with('-');
                if std::mem::replace(&mut follows, false) && !is_flag {
                    found.push(arg.as_str());
                    continue;
                }
                match arg.split_once('=') {
                    Some((name, value)) if secretive(name) => found.push(value),
                    Some(_) => {}
                    None => follows = is_flag && secretive(arg),
                }
                found.extend(of_url(arg));
            }
        }
        Transport::Http { url, .. } => found.extend(of_url(url)),
    }
    found
}

/// Whatever of a server's definition is secret: values of variables and headers whose names say so, and
/// what looks like it in addresses, arguments and values.
pub fn of_definition(transport: &Transport) -> Vec<&str> {
    let pairs = match transport {
        Transport::Stdio { env, .. } => env,
        Transport::Http { headers, .. } => headers,
    };
    let named = pairs.iter().flat_map(|(name, value)| of_variable(name, value));
    named.chain(of(transport)).collect()
}

/// What is secret of a variable's or header's value, by the name, or as a part of an address in it: where
/// a database is, and how one gets in, is often one variable.
pub fn of_variable<'a>(name: &str, value: &'a str) -> Vec<&'a str> {
    let whole = Redactor::is_secret_name(name).then(|| value.trim_start_matches("Bearer "));
    whole.into_iter().chain(of_url(value)).collect()
}

/// The same of a whole environment.
pub fn of_env(env: &Env) -> Vec<&str> {
    let texts = env.iter().filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
    texts.flat_map(|(name, value)| of_variable(name, value)).collect()
}

/// The password of an address, and the values of its query that are secret by their names.
pub fn of_url(url: &str) -> Vec<&str> {
    let Some((_, rest)) = url.split_once("://") else { return Vec::new() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let password = rest[..end].rsplit_once('@').and_then(|(user, _)| user.split_once(':')).map(|(_, p)| p);
    let query = rest.split_once('?').map_or("", |(_, query)| query);
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    password.into_iter().chain(pairs.filter(|(name, _)| secretive(name)).map(|(_, value)| value)).collect()
}

/// An address without the password before its host and without the values of its query.
fn mask_url(url: &str) -> String {
    let (base, query) = url.split_once('?').map_or((url, None), |(b, q)| (b, Some(q)));
    let mut out = match base.split_once("://") {
        Some((scheme, rest)) => {
            let end = rest.find('/').unwrap_or(rest.len());
            match rest[..end].rfind('@') {
                Some(at) => format!("{scheme}://{MASK}{}", &rest[at..]),
                None => base.to_owned(),
            }
        }
        None => base.to_owned(),
    };
    if let Some(query) = query {
        let pairs = query.split('&').map(|pair| match pair.split_once('=') {
            Some((name, value)) if !only_variables(value) => format!("{name}={MASK}"),
            _ => pair.to_owned(),
        });
        out.push('?');
        out.push_str(&pairs.collect::<Vec<_>>().join("&"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_a_definition_are_known_by_what_stands_before_them() {
        let args = |words: &[&str]| Transport::Stdio {
            command: "x".into(),
            args: words.iter().map(|w| (*w).to_owned()).collect(),
            env: Vec::new(),
            cwd: None,
        };
        let program = args(&[
            "run",
            "--api-key",
            "one",
            "--password=two",
            "--token",
            "--fast",
            "plain",
            "x=y",
            "https://me:three@h/p",
        ]);
        assert_eq!(of(&program), ["one", "two", "three"]);
        let far =
            Transport::Http { url: "https://h/mcp?access_token=four&page=5".into(), headers: Vec::new() };
        assert_eq!(of(&far), ["four"]);
        assert_eq!(of_url("postgres://app:s3cret@db:5432/app"), ["s3cret"]);
        assert_eq!(of_url("http://h:1/a@b:c"), Vec::<&str>::new());
    }
}
