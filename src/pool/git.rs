//! Answers two git questions from the file system alone: which work tree a
//! directory is in, and which repository that work tree shares. Runs no git,
//! reads no git configuration, and knows nothing of the caller's `GIT_DIR`.

use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A `.git` file, `commondir` and `HEAD` each hold one short line; more than
/// this is something else.
const POINTER_LIMIT: u64 = 8 * 1024;

/// The repository that a directory belongs to. All paths have their links resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Repo {
    /// The top of the work tree; absent inside a bare repository or a `.git` directory.
    pub top: Option<PathBuf>,
    /// The directory that all work trees of the repository share.
    pub common: PathBuf,
}

/// The repository of `dir`, an absolute path whose links are resolved. `None`
/// outside of any, and where a `.git` file points to nothing: there git itself
/// gives up rather than look further up.
///
/// Like git, the search does not cross into another file system
/// (`GIT_DISCOVERY_ACROSS_FILESYSTEM` in git's own manual).
pub(super) fn discover(dir: &Path) -> Option<Repo> {
    let device = fs::metadata(dir).ok()?.dev();
    for at in dir.ancestors() {
        match fs::metadata(at) {
            Ok(meta) if meta.dev() == device => {}
            _ => return None,
        }
        let dot = at.join(".git");
        if let Ok(meta) = fs::metadata(&dot) {
            if meta.is_file() {
                let own = pointed_to(&dot, at)?;
                return Some(Repo { top: Some(at.to_path_buf()), common: common_of(&own)? });
            }
            if is_git_dir(&dot) {
                let own = fs::canonicalize(&dot).ok()?;
                return Some(Repo { top: Some(at.to_path_buf()), common: common_of(&own)? });
            }
        }
        // A bare repository, or the inside of a `.git` directory.
        if is_git_dir(at) {
            return Some(Repo { top: None, common: common_of(at)? });
        }
    }
    None
}

/// What a `.git` file names: `gitdir: <path>`, relative to where the file is.
fn pointed_to(file: &Path, base: &Path) -> Option<PathBuf> {
    let text = read_line(file)?;
    let target = fs::canonicalize(base.join(text.strip_prefix("gitdir:")?.trim_start())).ok()?;
    is_git_dir(&target).then_some(target)
}

/// The directory that `git_dir` shares with the other work trees of its repository.
fn common_of(git_dir: &Path) -> Option<PathBuf> {
    match read_line(&git_dir.join("commondir")) {
        Some(text) => fs::canonicalize(git_dir.join(text)).ok(),
        None => Some(git_dir.to_path_buf()),
    }
}

/// What git asks of a directory before it takes it for a repository: a HEAD
/// that names a branch or a commit, and objects and refs of its own or in the common directory.
fn is_git_dir(dir: &Path) -> bool {
    let Some(head) = read_line(&dir.join("HEAD")) else { return false };
    let named = head.strip_prefix("ref:").is_some_and(|name| name.trim_start().starts_with("refs/"));
    let commit = head.len() >= 40 && head.bytes().all(|b| b.is_ascii_hexdigit());
    if !named && !commit {
        return false;
    }
    dir.join("commondir").is_file() || dir.join("objects").is_dir() && dir.join("refs").is_dir()
}

/// The content of a small file without its line end; `None` when it is missing, empty, too long or not UTF-8.
fn read_line(path: &Path) -> Option<String> {
    let mut text = String::new();
    fs::File::open(path).ok()?.take(POINTER_LIMIT + 1).read_to_string(&mut text).ok()?;
    let line = text.trim_end_matches(['\n', '\r']);
    (!line.is_empty() && text.len() as u64 <= POINTER_LIMIT).then(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::testing::TempDir;
    use super::*;
    use std::process::{Command, Stdio};

    /// Runs git where these tests compare with it.
    #[allow(clippy::disallowed_methods, reason = "a test that compares with the real git")]
    fn git(dir: &Path, args: &[&str]) -> String {
        let out = Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"])
            .args(["-c", "protocol.file.allow=always", "-c", "safe.directory=*"])
            .args(args)
            .current_dir(dir)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("HOME", dir)
            .env_remove("GIT_DIR")
            .stdin(Stdio::null())
            .output()
            .expect("git runs");
        assert!(out.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).trim_end().to_owned()
    }

    /// What git itself says of `dir`: the same two answers.
    fn according_to_git(dir: &Path) -> Repo {
        let inside = git(dir, &["rev-parse", "--is-inside-work-tree"]) == "true";
        let top = inside.then(|| PathBuf::from(git(dir, &["rev-parse", "--show-toplevel"])));
        let common = dir.join(git(dir, &["rev-parse", "--git-common-dir"]));
        Repo { top, common: fs::canonicalize(common).unwrap() }
    }

    #[test]
    fn it_agrees_with_git() {
        let tmp = TempDir::new("git");
        let at = |name: &str| tmp.path().join(name);
        fs::create_dir_all(at("main/deep/er")).unwrap();
        git(&at("main"), &["init", "-q"]);
        git(&at("main"), &["commit", "-q", "--allow-empty", "-m", "one"]);
        git(&at("main"), &["worktree", "add", "-q", "../second", "-b", "second"]);
        git(&at("main"), &["worktree", "add", "-q", "--detach", "../detached"]);
        git(tmp.path(), &["clone", "-q", "--bare", "main", "bare.git"]);
        git(&at("bare.git"), &["worktree", "add", "-q", "../of-bare", "-b", "b"]);
        git(&at("main"), &["submodule", "--quiet", "add", &at("bare.git").to_string_lossy(), "sub"]);
        git(tmp.path(), &["init", "-q", "--separate-git-dir", "elsewhere.git", "separate"]);
        fs::create_dir_all(at("second/inner")).unwrap();
        fs::create_dir_all(at("main/sub/inner")).unwrap();

        for dir in [
            "main",
            "main/deep/er",
            "second",
            "second/inner",
            "detached",
            "main/sub",
            "main/sub/inner",
            "bare.git",
            "bare.git/refs",
            "of-bare",
            "separate",
            "main/.git",
            "main/.git/hooks",
        ] {
            let dir = at(dir);
            assert_eq!(discover(&dir), Some(according_to_git(&dir)), "{}", dir.display());
        }
        assert_eq!(discover(&at("main")).unwrap().common, discover(&at("second")).unwrap().common);
        assert_ne!(discover(&at("main")).unwrap().common, discover(&at("main/sub")).unwrap().common);
    }

    #[test]
    fn what_is_no_repository_is_none() {
        let tmp = TempDir::new("nogit");
        let dir = tmp.path();
        assert_eq!(discover(dir), None);
        assert_eq!(discover(&dir.join("missing")), None);
        fs::create_dir(dir.join(".git")).unwrap();
        assert_eq!(discover(dir), None, "an empty .git directory");
        fs::remove_dir(dir.join(".git")).unwrap();
        fs::write(dir.join(".git"), "gitdir: /nowhere/at/all\n").unwrap();
        assert_eq!(discover(dir), None, "a .git file that points to nothing");
        fs::write(dir.join(".git"), "something else\n").unwrap();
        assert_eq!(discover(dir), None);
    }
}
