//! Answers two git questions from the file system alone: which work tree a
//! directory is in, and which repository that work tree shares. Runs no git, and
//! reads of git's configuration only what the repository's own file says of its work tree.

use crate::util::Env;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A `.git` file, `commondir` and `HEAD` each hold one short line; more than
/// this is something else.
const POINTER_LIMIT: u64 = 8 * 1024;

/// How much is read of a repository's configuration, in which `core` comes first.
const CONFIG_LIMIT: u64 = 256 * 1024;

/// The repository that a directory belongs to. All paths have their links resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Repo {
    /// The top of the work tree; absent inside a bare repository or a `.git` directory.
    pub top: Option<PathBuf>,
    /// The directory that all work trees of the repository share.
    pub common: PathBuf,
}

/// What a caller's environment tells git of its repository. Paths are as the variables say them:
/// relative ones are meant from the caller's directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GitEnv {
    /// `GIT_DIR`: the repository, instead of looking for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dir: Option<PathBuf>,
    /// `GIT_WORK_TREE`: the top of the work tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_tree: Option<PathBuf>,
    /// `GIT_COMMON_DIR`: what the work trees share, where it is not as the repository says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub common_dir: Option<PathBuf>,
}

impl GitEnv {
    /// What an environment says. A variable that is set but empty says nothing here; git gives up then.
    pub fn of(env: &Env) -> GitEnv {
        let path = |name| env.get(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        GitEnv { dir: path("GIT_DIR"), work_tree: path("GIT_WORK_TREE"), common_dir: path("GIT_COMMON_DIR") }
    }
    /// Nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == GitEnv::default()
    }
}

/// The repository of `dir`, an absolute path whose links are resolved, for a caller whose
/// environment says `said`. `None` outside of any, and where a variable, or a `.git` file, points
/// to nothing: there git itself gives up rather than look further up.
pub(super) fn discover(dir: &Path, said: &GitEnv) -> Option<Repo> {
    let named = |path: &PathBuf| fs::canonicalize(dir.join(path)).ok();
    // git(1): with GIT_DIR alone the working directory is the top of the work tree.
    let (own, found) = match &said.dir {
        Some(path) => {
            let path = named(path)?;
            let own = if path.is_file() { pointed_to(&path, path.parent()?)? } else { path };
            (Some(own).filter(|own| is_git_dir(own))?, Some(dir.to_path_buf()))
        }
        None => look_up(dir)?,
    };
    let common = match &said.common_dir {
        Some(path) => named(path)?,
        None => common_of(&own)?,
    };
    let top = match &said.work_tree {
        Some(path) => Some(named(path)?),
        // A linked work tree has its own place, whatever the repository's configuration says of the first.
        None if found.is_none() || own.join("commondir").is_file() => found,
        None => match configured(&own) {
            Core { work_tree: Some(path), .. } => Some(fs::canonicalize(own.join(path)).ok()?),
            Core { bare: true, .. } => None,
            Core { .. } => found,
        },
    };
    Some(Repo { top, common })
}

/// A repository's own directory, and the top of its work tree where it has one.
///
/// Like git, the search does not cross into another file system
/// (`GIT_DISCOVERY_ACROSS_FILESYSTEM` in git's own manual).
fn look_up(dir: &Path) -> Option<(PathBuf, Option<PathBuf>)> {
    let device = fs::metadata(dir).ok()?.dev();
    for at in dir.ancestors() {
        match fs::metadata(at) {
            Ok(meta) if meta.dev() == device => {}
            _ => return None,
        }
        let dot = at.join(".git");
        if let Ok(meta) = fs::metadata(&dot) {
            if meta.is_file() {
                return Some((pointed_to(&dot, at)?, Some(at.to_path_buf())));
            }
            if is_git_dir(&dot) {
                return Some((fs::canonicalize(&dot).ok()?, Some(at.to_path_buf())));
            }
        }
        // A bare repository, or the inside of a `.git` directory.
        if is_git_dir(at) {
            return Some((at.to_path_buf(), None));
        }
    }
    None
}

/// What a repository's configuration says of its work tree.
#[derive(Debug, Default, PartialEq, Eq)]
struct Core {
    bare: bool,
    work_tree: Option<PathBuf>,
}

/// Reads `core.bare` and `core.worktree` (git-config(1), "Syntax") of the file `config`; what it includes is passed over.
fn configured(git_dir: &Path) -> Core {
    let mut text = String::new();
    let read = fs::File::open(git_dir.join("config")).ok();
    let read = read.and_then(|file| file.take(CONFIG_LIMIT).read_to_string(&mut text).ok());
    if read.is_none() {
        return Core::default();
    }
    let (mut core, mut within) = (Core::default(), false);
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            within = section.split(']').next().is_some_and(|name| name.trim().eq_ignore_ascii_case("core"));
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, "true"));
        match key.trim().to_ascii_lowercase().as_str() {
            "bare" if within => {
                let word = unquoted(value).to_ascii_lowercase();
                core.bare = matches!(word.as_str(), "true" | "yes" | "on" | "1");
            }
            "worktree" if within => core.work_tree = Some(PathBuf::from(unquoted(value))),
            _ => {}
        }
    }
    core
}

/// A value of git's configuration: quotes and comments taken away, escapes resolved.
fn unquoted(value: &str) -> String {
    let (mut out, mut quoted) = (String::new(), false);
    let mut chars = value.trim().chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => quoted = !quoted,
            '#' | ';' if !quoted => break,
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some(c) => out.push(c),
                None => {}
            },
            c => out.push(c),
        }
    }
    if quoted { out } else { out.trim_end().to_owned() }
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
    fn git(dir: &Path, args: &[&str]) -> String {
        git_in(dir, args, &GitEnv::default())
    }

    #[allow(clippy::disallowed_methods, reason = "a test that compares with the real git")]
    fn git_in(dir: &Path, args: &[&str], said: &GitEnv) -> String {
        let said = [
            ("GIT_DIR", &said.dir),
            ("GIT_WORK_TREE", &said.work_tree),
            ("GIT_COMMON_DIR", &said.common_dir),
        ];
        let out = Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"])
            .args(["-c", "protocol.file.allow=always", "-c", "safe.directory=*"])
            .args(args)
            .current_dir(dir)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("HOME", dir)
            .env_remove("GIT_DIR")
            .envs(said.iter().filter_map(|(name, value)| Some((name, value.as_ref()?))))
            .stdin(Stdio::null())
            .output()
            .expect("git runs");
        assert!(out.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).trim_end().to_owned()
    }

    /// What git itself says of `dir`: the same two answers.
    fn according_to_git(dir: &Path, said: &GitEnv) -> Repo {
        let ask = |what| git_in(dir, &["rev-parse", what], said);
        // It knows the top of a work tree that is named from outside of it as well.
        let inside = ask("--is-inside-work-tree") == "true" || said.work_tree.is_some();
        let top = inside.then(|| PathBuf::from(ask("--show-toplevel")));
        let common = dir.join(ask("--git-common-dir"));
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
            let none = GitEnv::default();
            assert_eq!(discover(&dir, &none), Some(according_to_git(&dir, &none)), "{}", dir.display());
        }
        let common = |name: &str| discover(&at(name), &GitEnv::default()).unwrap().common;
        assert_eq!(common("main"), common("second"));
        assert_ne!(common("main"), common("main/sub"));
    }

    #[test]
    fn it_agrees_with_git_on_what_the_environment_and_the_configuration_say() {
        let tmp = TempDir::new("gitenv");
        let at = |name: &str| tmp.path().join(name);
        for dir in ["main", "tree/deep", "odd \"one\" # two", "moved", "moved-bare"] {
            fs::create_dir_all(at(dir)).unwrap();
        }
        git(&at("main"), &["init", "-q"]);
        git(&at("main"), &["commit", "-q", "--allow-empty", "-m", "one"]);
        git(&at("main"), &["worktree", "add", "-q", "../second", "-b", "second"]);
        git(tmp.path(), &["clone", "-q", "--bare", "main", "bare.git"]);
        git(&at("moved"), &["init", "-q"]);
        git(&at("moved-bare"), &["init", "-q"]);
        git(&at("moved-bare"), &["config", "core.bare", "true"]);
        let said = |dir: Option<&str>, tree: Option<&str>| GitEnv {
            dir: dir.map(PathBuf::from),
            work_tree: tree.map(PathBuf::from),
            common_dir: None,
        };
        let absolute = at("main/.git").to_string_lossy().into_owned();
        for (dir, said) in [
            ("tree/deep", said(Some("../../main/.git"), Some(".."))),
            ("tree/deep", said(Some(&absolute), None)),
            ("main", said(None, Some("../tree"))),
            ("bare.git", said(None, Some("../tree"))),
            ("tree", said(Some("../bare.git"), Some("."))),
            ("tree", said(Some("../second/.git"), None)),
            ("moved-bare", said(None, None)),
        ] {
            let dir = at(dir);
            assert_eq!(
                discover(&dir, &said),
                Some(according_to_git(&dir, &said)),
                "{} {said:?}",
                dir.display()
            );
        }
        for tree in ["../../tree", "../../odd \"one\" # two"] {
            git(&at("moved"), &["config", "core.worktree", tree]);
            let repo = discover(&at("moved"), &GitEnv::default()).unwrap();
            assert_eq!(
                repo.top.unwrap(),
                PathBuf::from(git(&at("moved"), &["rev-parse", "--show-toplevel"]))
            );
        }
        for nowhere in [said(Some("none"), None), said(None, Some("none"))] {
            assert_eq!(discover(&at("main"), &nowhere), None, "{nowhere:?}");
        }
    }

    #[test]
    fn what_is_no_repository_is_none() {
        let tmp = TempDir::new("nogit");
        let dir = tmp.path();
        assert_eq!(discover(dir, &GitEnv::default()), None);
        assert_eq!(discover(&dir.join("missing"), &GitEnv::default()), None);
        fs::create_dir(dir.join(".git")).unwrap();
        assert_eq!(discover(dir, &GitEnv::default()), None, "an empty .git directory");
        fs::remove_dir(dir.join(".git")).unwrap();
        fs::write(dir.join(".git"), "gitdir: /nowhere/at/all\n").unwrap();
        assert_eq!(discover(dir, &GitEnv::default()), None, "a .git file that points to nothing");
        fs::write(dir.join(".git"), "something else\n").unwrap();
        assert_eq!(discover(dir, &GitEnv::default()), None);
    }
}
