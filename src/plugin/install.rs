//! Writes the plugin's files below a directory, and removes them. A file that
//! somebody changed is theirs: it is never overwritten or removed unasked.

use super::{File, MANIFEST};
use crate::error::{Error, Kind, Result, system_words};
use crate::util::{digest, write_atomic};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// How long a digest is, in hexadecimal digits.
const DIGITS: usize = 64;

/// How an installed file compares with the one that this binary carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is not there.
    Missing,
    /// It is the one that this binary carries.
    Current,
    /// Another version of mcpx wrote it, and nobody changed it since.
    Outdated,
    /// Somebody changed it, or wrote another one of that name.
    Changed,
}

impl State {
    /// The state as a word.
    pub fn word(self) -> &'static str {
        match self {
            State::Missing => "missing",
            State::Current => "current",
            State::Outdated => "outdated",
            State::Changed => "changed",
        }
    }
}

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It was written.
    Wrote,
    /// It was as it should be.
    Unchanged,
    /// It was removed.
    Removed,
    /// Somebody changed it, so it stays.
    Kept,
}

impl Change {
    /// The change as a word.
    pub fn word(self) -> &'static str {
        match self {
            Change::Wrote => "wrote",
            Change::Unchanged => "unchanged",
            Change::Removed => "removed",
            Change::Kept => "kept",
        }
    }
}

/// A file and what became of it.
pub type Step = (PathBuf, Change);

/// How each file below `root` is.
///
/// # Errors
/// A file that is there and cannot be read.
pub fn status(root: &Path, files: &[File]) -> Result<Vec<(PathBuf, State)>> {
    let manifest = manifest(root);
    let of = |file: &File| Ok((root.join(file.path), state(root, file, &manifest)?));
    files.iter().map(of).collect()
}

fn state(root: &Path, file: &File, manifest: &Map<String, Value>) -> Result<State> {
    let path = root.join(file.path);
    let there = match std::fs::read(&path) {
        Ok(there) => there,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(State::Missing),
        Err(e) => return Err(trouble("reading", &path, &e)),
    };
    let written = manifest.get(file.path).and_then(Value::as_str);
    Ok(if there == file.text.as_bytes() {
        State::Current
    } else if written == Some(digest([&there[..]], DIGITS).as_str()) {
        State::Outdated
    } else {
        State::Changed
    })
}

/// Writes the files; `force` overwrites those that somebody changed.
///
/// # Errors
/// `Refused`, before anything is written, where somebody changed one.
pub fn install(root: &Path, files: &[File], force: bool) -> Result<Vec<Step>> {
    let states = status(root, files)?;
    let changed: Vec<String> = states
        .iter()
        .filter(|(_, state)| *state == State::Changed && !force)
        .map(|(path, _)| path.display().to_string())
        .collect();
    if !changed.is_empty() {
        return Err(Error::new(
            Kind::Refused,
            format!("not overwriting what somebody changed: {}", changed.join(", ")),
        )
        .hint("--force overwrites it; mcpx plugin print shows what would be written"));
    }
    let mut steps = Vec::new();
    for (file, (path, state)) in files.iter().zip(states) {
        if state == State::Current {
            steps.push((path, Change::Unchanged));
            continue;
        }
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir).map_err(|e| trouble("making", dir, &e))?;
        }
        write_atomic(&path, file.text.as_bytes(), 0o644, false).map_err(|e| trouble("writing", &path, &e))?;
        steps.push((path, Change::Wrote));
    }
    let written: Map<String, Value> =
        files.iter().map(|f| (f.path.to_owned(), digest([f.text.as_bytes()], DIGITS).into())).collect();
    let path = root.join(MANIFEST);
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir).map_err(|e| trouble("making", dir, &e))?;
    }
    let text = format!("{:#}\n", json!({"version": env!("CARGO_PKG_VERSION"), "files": written}));
    write_atomic(&path, text.as_bytes(), 0o644, false).map_err(|e| trouble("writing", &path, &e))?;
    Ok(steps)
}

/// Removes the files that nobody changed (with `force` the others too), and the directories that are empty then.
///
/// # Errors
/// A file that cannot be removed.
pub fn uninstall(root: &Path, files: &[File], force: bool) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    for (path, state) in status(root, files)? {
        match state {
            State::Missing => {}
            State::Changed if !force => steps.push((path, Change::Kept)),
            _ => {
                std::fs::remove_file(&path).map_err(|e| trouble("removing", &path, &e))?;
                steps.push((path, Change::Removed));
            }
        }
    }
    // Ours whatever it holds; without it what was kept counts as somebody's own.
    let _ = std::fs::remove_file(root.join(MANIFEST));
    for path in files.iter().map(|f| f.path).chain([MANIFEST]) {
        // Fails on what is not empty, which is what it is for.
        let mut dir = root.join(path);
        while dir.pop() && dir != root && std::fs::remove_dir(&dir).is_ok() {}
    }
    Ok(steps)
}

/// The digests of the files as they were written.
fn manifest(root: &Path) -> Map<String, Value> {
    let text = std::fs::read(root.join(MANIFEST)).unwrap_or_default();
    let mut read: Value = serde_json::from_slice(&text).unwrap_or_default();
    match read.get_mut("files").map(Value::take) {
        Some(Value::Object(files)) => files,
        _ => Map::new(),
    }
}

fn trouble(doing: &str, path: &Path, e: &std::io::Error) -> Error {
    let kind = if doing == "reading" { Kind::Unreadable } else { Kind::Unwritable };
    Error::new(kind, format!("{doing} {}: {}", path.display(), system_words(e)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: &[File] =
        &[File { path: "plugins/a.ts", text: "a\n" }, File { path: "skills/b/S.md", text: "b\n" }];
    const NEWER: &[File] =
        &[File { path: "plugins/a.ts", text: "a2\n" }, File { path: "skills/b/S.md", text: "b\n" }];

    #[test]
    fn an_upgrade_replaces_what_nobody_touched() {
        let root = std::env::temp_dir().join(format!("mcpx-install-{}", std::process::id()));
        let changes = |steps: Vec<Step>| steps.into_iter().map(|s| s.1).collect::<Vec<_>>();
        let states = |files| status(&root, files).unwrap().into_iter().map(|s| s.1).collect::<Vec<_>>();
        assert_eq!(states(FILES), [State::Missing; 2]);
        assert_eq!(changes(install(&root, FILES, false).unwrap()), [Change::Wrote; 2]);
        assert_eq!(changes(install(&root, FILES, false).unwrap()), [Change::Unchanged; 2]);
        assert_eq!(states(NEWER), [State::Outdated, State::Current]);
        assert_eq!(changes(install(&root, NEWER, false).unwrap()), [Change::Wrote, Change::Unchanged]);

        std::fs::write(root.join("plugins/a.ts"), "mine\n").unwrap();
        assert_eq!(states(NEWER), [State::Changed, State::Current]);
        std::fs::remove_file(root.join("skills/b/S.md")).unwrap();
        let refused = install(&root, NEWER, false).unwrap_err();
        assert_eq!(refused.kind(), Kind::Refused);
        assert!(refused.message().contains("plugins/a.ts"), "{refused}");
        assert!(!root.join("skills/b/S.md").exists(), "nothing was written");
        assert_eq!(changes(install(&root, NEWER, true).unwrap()), [Change::Wrote; 2]);

        std::fs::write(root.join("plugins/a.ts"), "mine\n").unwrap();
        assert_eq!(changes(uninstall(&root, NEWER, false).unwrap()), [Change::Kept, Change::Removed]);
        assert!(root.join("plugins/a.ts").exists() && !root.join("skills").exists());
        assert_eq!(changes(uninstall(&root, NEWER, true).unwrap()), [Change::Removed]);
        assert!(!root.join("plugins").exists());
        std::fs::remove_dir_all(&root).unwrap();
    }
}
