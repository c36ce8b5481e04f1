//! Finds members of a server's block that do nothing and were probably meant to:
//! mistyped names, and options that stand beside the `"mcpx"` block. A member that
//! only other hosts know is none of them.

use super::fields::{FIELDS, OPTIONS, SYNONYMS};
use super::node::{Item, Node};
use crate::util;

/// What other hosts have in a server's block, in some version of theirs. Not looked at further,
/// though it may be near to a name of ours or be an option's.
const OTHERS: &[&str] = &[
    "alwaysAllow",
    "auth",
    "autoApprove",
    "bearer_token_env_var",
    "disabledTools",
    "enabledTools",
    "enabled_tools",
    "env_vars",
    "envFile",
    "environment",
    "excludeTools",
    "gallery",
    "http_headers",
    "icon",
    "id",
    "includeTools",
    "metadata",
    "name",
    "oauth",
    "startup_timeout_sec",
    "timeout",
    "tool_timeout_sec",
    "tools",
    "transport",
    "trust",
    "type",
    "version",
];

/// Words that people write for a member, and which are no misspelling of it.
const MEANT: &[(&str, &str)] = &[
    ("arguments", "args"),
    ("cmd", "command"),
    ("dir", "cwd"),
    ("endpoint", "url"),
    ("params", "args"),
    ("workingDirectory", "cwd"),
];

/// A line for each such member of a server's block. It begins with the place in the file, as `line:column`;
/// whose file that is, the caller knows.
pub(super) fn members(server: &str, block: &Node) -> Vec<String> {
    let Item::Object(members) = &block.item else { return Vec::new() };
    let ours = |key: &str| FIELDS.iter().any(|(name, _)| *name == key) || SYNONYMS.contains(&key);
    let unknown = members.iter().filter(|(key, _)| !ours(key) && !OTHERS.contains(&key.as_ref()));
    unknown
        .filter_map(|(key, node)| {
            let what = match OPTIONS.iter().any(|(name, _)| *name == key) {
                true => format!("\"{key}\" does nothing here; it belongs into the server's \"mcpx\" block"),
                false => {
                    let meant = MEANT.iter().find(|(word, _)| *word == key).map(|(_, name)| *name);
                    let names = FIELDS.iter().map(|(name, _)| *name).chain(SYNONYMS.iter().copied());
                    let near = meant.or_else(|| util::mistyped(key, names))?;
                    format!("unknown key \"{key}\"; did you mean \"{near}\"?")
                }
            };
            Some(format!("{}: server \"{server}\": {what}", node.at))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::jsonc;
    use super::*;
    use std::path::Path;

    fn of(block: &str) -> Vec<String> {
        members("a", &jsonc::tree(block, Path::new("f")).unwrap().root)
    }

    #[test]
    fn what_is_mistyped_is_named_and_what_others_know_is_not() {
        for (key, part) in [
            ("comand", "did you mean \"command\"?"),
            ("cmd", "did you mean \"command\"?"),
            ("enbaled", "did you mean \"enabled\"?"),
            ("Headers", "did you mean \"headers\"?"),
            ("callTimeout", "belongs into the server's \"mcpx\" block"),
        ] {
            let found = of(&format!("{{\n  \"{key}\": 1}}"));
            assert!(found.len() == 1 && found[0].starts_with("2:"), "{found:?}");
            assert!(found[0].contains(part) && found[0].contains(key), "{found:?}");
        }
        assert_eq!(
            of(r#"{"type": "stdio", "timeout": 5, "id": 1, "somethingElse": 1, "command": "x"}"#),
            [""; 0]
        );
    }
}
