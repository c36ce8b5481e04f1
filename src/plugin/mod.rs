//! The editor's plugin as this binary carries it: which files there are, and
//! putting them into an editor's directory or taking them out again. Knows nothing
//! of daemons; what the files do is in TypeScript beside this.

mod install;

pub use install::{Change, State, Step, install, status, uninstall};

/// A file of the plugin's.
#[derive(Debug)]
pub struct File {
    /// Where it goes, below the editor's configuration directory.
    pub path: &'static str,
    /// What it holds.
    pub text: &'static str,
}

macro_rules! file {
    ($path:literal, $source:literal) => {
        File { path: $path, text: include_str!($source) }
    };
}

/// What `mcpx plugin install opencode` installs. The editor loads what is directly
/// below `plugins` and ends in `.ts`, and no other file.
pub static OPENCODE: &[File] = &[
    file!("plugins/mcpx-session.ts", "opencode/mcpx-session.ts"),
    file!("plugins/mcpx-tui.tsx", "opencode/mcpx-tui.tsx"),
    file!("plugins/mcpx/daemon.ts", "opencode/mcpx/daemon.ts"),
    file!("plugins/mcpx/v1.ts", "opencode/mcpx/v1.ts"),
    file!("skills/mcpx-getting-started/SKILL.md", "skills/getting-started.md"),
    file!("skills/mcpx-choosing-a-daemon/SKILL.md", "skills/choosing-a-daemon.md"),
    file!("skills/mcpx-stateful-servers/SKILL.md", "skills/stateful-servers.md"),
    file!("skills/mcpx-log/SKILL.md", "skills/log.md"),
];

/// Which of the installed files were written by which version: so that an upgrade
/// replaces what nobody touched.
pub const MANIFEST: &str = "plugins/mcpx/installed.json";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_are_small_and_say_what_they_are() {
        let size: usize = OPENCODE.iter().map(|f| f.text.len()).sum();
        assert!(size < 120 * 1024, "{size} bytes are carried by every binary");
        for file in OPENCODE {
            let name = file.path.rsplit('/').nth(1).unwrap();
            match file.path.ends_with(".md") {
                true => {
                    assert!(file.text.starts_with(&format!("---\nname: {name}\ndescription: ")), "{name}")
                }
                false => assert!(file.text.starts_with("// "), "{}", file.path),
            }
        }
    }
}
