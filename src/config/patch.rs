//! What a nearer file changes of a server that a file further away defines:
//! whether it is switched on, which of its tools are offered, its profiles and
//! its description. Knows nothing of how a server is reached: that is one
//! file's matter, so that no file can have another's program run in its own way.

use super::filter::{Patterns, ToolFilter};
use super::server::ServerDef;
use std::path::PathBuf;
use std::sync::Arc;

/// A block without a definition. A member that it does not give stays as it is further away.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Patch {
    /// `enabled`, or the contrary of `disabled`.
    pub enabled: Option<bool>,
    /// `description`.
    pub description: Option<String>,
    /// `tools`, `excludeTools` and `extraIncludeTools`, each by itself.
    pub tools: ToolFilter,
    /// `profiles`.
    pub profiles: Option<Vec<String>>,
    /// The nearest file that has such a block, and its line there.
    pub place: Option<(Arc<PathBuf>, u32)>,
}

impl Patch {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        Patch { place: None, ..self.clone() } == Patch::default()
    }

    /// Takes from a patch further away what this one does not give.
    pub fn over(&mut self, further: Patch) {
        self.enabled = self.enabled.or(further.enabled);
        self.description = self.description.take().or(further.description);
        self.profiles = self.profiles.take().or(further.profiles);
        self.tools = std::mem::take(&mut self.tools).over(further.tools);
        self.place = self.place.take().or(further.place);
    }

    /// Changes a definition.
    pub fn apply(self, def: &mut ServerDef) {
        def.enabled = self.enabled.unwrap_or(def.enabled);
        def.description = self.description.or(def.description.take());
        if let Some(profiles) = self.profiles {
            def.options.profiles = profiles;
        }
        def.options.tools = self.tools.over(std::mem::take(&mut def.options.tools));
    }

    /// Remembers the file of each filter: it is not the one of the definition.
    pub fn placed(mut self, path: &Arc<PathBuf>, line: u32) -> Patch {
        let ToolFilter { only, exclude, extra } = &mut self.tools;
        for list in [only, exclude, extra].into_iter().flatten() {
            *list = Patterns { source: Some(path.clone()), ..std::mem::take(list) };
        }
        self.place = Some((path.clone(), line));
        self
    }
}

#[cfg(test)]
mod tests {
    use crate::config::load;
    use crate::config::tests::Scratch;
    use crate::util::Env;

    #[test]
    fn nearer_blocks_change_what_is_offered_and_the_nearest_counts() {
        let scratch = Scratch::new();
        let env = Env::default();
        scratch.file(
            ".mcpx.json",
            r#"{"mcpServers": {
                "s": {"command": "x", "description": "far", "mcpx": {"tools": ["a*"], "excludeTools": ["ab"], "callTimeout": "9s"}},
                "t": {"command": "x"}
            }}"#,
        );
        scratch.file(
            "w/.mcpx.json",
            r#"{"mcpServers": {
                "s": {"mcpx": {"tools": ["b*"], "profiles": ["mid"]}, "description": "mid"},
                "t": {"mcpx": {"callTimeout": "1s", "tools": []}},
                "nobody": {"mcpx": {"tools": ["x"]}}
            }}"#,
        );
        scratch.file(
            "w/w/.mcpx.json",
            r#"{"mcpServers": {"s": {"mcpx": {"tools": ["c*"], "enabled": false}}}}"#,
        );
        let mut options = scratch.options(&env);
        let deep = scratch.path("w/w");
        options.dir = &deep;
        let config = load(&options).unwrap();
        let s = config.server("s").unwrap();
        assert!(!s.enabled && s.problem.is_none());
        assert_eq!(s.description.as_deref(), Some("mid"));
        assert_eq!(s.options.profiles, ["mid"]);
        assert_eq!(s.options.call_timeout.unwrap().as_secs(), 9);
        assert!(
            s.options.tools.offers("cx") && !s.options.tools.offers("bx") && !s.options.tools.offers("ab")
        );
        // Each filter is found where it is written.
        let file = |tool: &str| s.options.tools.withholds(tool).unwrap().source;
        assert!(file("bx").is_some_and(|p| p.ends_with("w/w/.mcpx.json")));
        assert!(file("ab").is_none(), "the definition's own file");
        // What is not a nearer file's to say makes the server unusable, rather than being passed over.
        let t = config.server("t").unwrap().problem.clone().unwrap();
        assert!(t.message().contains("mcpx.callTimeout") && t.message().contains(":3:"), "{t}");
        let nobody = config.server("nobody").unwrap().problem.clone().unwrap();
        assert!(nobody.message().contains("no file further away defines it"), "{nobody}");
    }
}
