//! A grant: a pattern over `server.tool` that permits calls. Knows nothing of
//! who is granted what.

use crate::util::glob;
use serde::{Deserialize, Serialize};

/// One grant, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// `server.tool`; a star stands for any characters.
    tool: String,
    /// The profile that has it.
    profile: String,
}

impl Grant {
    /// Reads a pattern such as `github.get_*`; `*` alone is every tool.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    pub fn new(pattern: &str, profile: &str) -> Result<Grant, String> {
        let whole =
            pattern.split_once('.').is_some_and(|(server, tool)| !server.is_empty() && !tool.is_empty());
        if !whole && pattern != "*" {
            return Err(format!(
                "{pattern:?} names no tools: expected server.tool, such as github.get_* or github.*"
            ));
        }
        Ok(Grant { tool: pattern.to_owned(), profile: profile.to_owned() })
    }

    /// The pattern.
    pub fn pattern(&self) -> &str {
        &self.tool
    }

    /// The profile that has it.
    pub fn profile(&self) -> &str {
        &self.profile
    }

    /// Whether it permits this tool, both by the names that their owners gave them.
    pub fn permits(&self, server: &str, tool: &str) -> bool {
        if self.tool == "*" {
            return true;
        }
        // A server's own name may have dots, so that any of the pattern's may be the one between.
        self.tool
            .match_indices('.')
            .any(|(at, _)| glob(&self.tool[..at], server) && glob(&self.tool[at + 1..], tool))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything_and_the_rest_for_itself() {
        let permits =
            |pattern: &str, server: &str, tool: &str| Grant::new(pattern, "p").unwrap().permits(server, tool);
        assert!(permits("github.get_*", "github", "get_issue") && permits("github.get_*", "github", "get_"));
        assert!(
            !permits("github.get_*", "github", "forget_it") && !permits("github.get_*", "gitlab", "get_x")
        );
        assert!(!permits("github.get", "github", "get_x") && !permits("github.get", "github", "Get"));
        assert!(permits("*", "a", "b") && permits("*.b", "a", "b") && permits("a.*", "a", "b.c"));
        assert!(
            permits("a.b.c", "a.b", "c")
                && permits("a.*b*d", "a", "xbcbd")
                && !permits("a.*b*d", "a", "xbcb")
        );
        for bad in ["github", "", ".", "a.", ".b"] {
            assert!(Grant::new(bad, "p").is_err(), "{bad}");
        }
    }
}
