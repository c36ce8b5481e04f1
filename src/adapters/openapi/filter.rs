//! Which operations of a document are offered: patterns for ids, tags and paths.

use crate::util::glob;

/// What to take and what to leave out.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// One of them must fit, unless there is none.
    pub include: Vec<String>,
    /// None of them may.
    pub exclude: Vec<String>,
}

impl Filter {
    /// Whether an operation is offered. `names` are its id and its tool's name.
    pub fn lets_through(&self, names: &[&str], tags: &[&str], method: &str, path: &str) -> bool {
        let fits = |pattern: &String| fits(pattern, names, tags, method, path);
        (self.include.is_empty() || self.include.iter().any(fits)) && !self.exclude.iter().any(fits)
    }
}

/// `tag:name`, `/path`, `METHOD /path`, `METHOD`, or an id; stars stand for anything.
fn fits(pattern: &str, names: &[&str], tags: &[&str], method: &str, path: &str) -> bool {
    if let Some(tag) = pattern.strip_prefix("tag:") {
        return tags.iter().any(|each| glob(tag, each));
    }
    if pattern.starts_with('/') {
        return glob(pattern, path);
    }
    if let Some((wanted, rest)) = pattern.split_once(' ') {
        let method_fits = wanted == "*" || wanted.eq_ignore_ascii_case(method);
        return method_fits && glob(rest.trim(), path);
    }
    let is_method = ["GET", "PUT", "POST", "DELETE", "PATCH", "HEAD"].contains(&pattern);
    if is_method { pattern == method } else { names.iter().any(|name| glob(pattern, name)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_tags_methods_and_paths() {
        let fits = |pattern: &str| {
            fits(pattern, &["repos/list", "repos_list"], &["repos", "org x"], "GET", "/orgs/{o}/repos")
        };
        for good in [
            "repos/*",
            "repos_list",
            "tag:repos",
            "tag:org*",
            "/orgs/*",
            "GET /orgs/*",
            "get /*",
            "* /orgs/*",
            "GET",
            "*",
        ] {
            assert!(fits(good), "{good}");
        }
        for bad in ["repo", "tag:rep", "/org", "POST /orgs/*", "POST", "DELETE"] {
            assert!(!fits(bad), "{bad}");
        }
        let filter = Filter { include: vec!["GET".into()], exclude: vec!["tag:secret".into()] };
        assert!(filter.lets_through(&["a"], &[], "GET", "/"));
        assert!(!filter.lets_through(&["a"], &["secret"], "GET", "/"));
        assert!(!filter.lets_through(&["a"], &[], "POST", "/"));
    }
}
