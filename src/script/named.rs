//! Named scripts: files in `.mcpx/scripts` of a directory or one above it, in
//! the directories of `script.dirs`, and in the user's configuration directory. Reads first lines; runs nothing.

use crate::error::{Error, Kind, Result};
use crate::paths::Dirs;
use crate::util::did_you_mean;
use serde::Serialize;
use serde_json::Value;
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The extensions of named scripts, in the order in which one wins over another in the same directory.
pub const EXTENSIONS: &[&str] = &["ts", "js", "mts", "mjs", "sh", "py"];

/// The extensions that a file in the working directory may have when its name was typed without one.
const BESIDE: &[&str] =
    &["ts", "js", "mts", "mjs", "cts", "cjs", "tsx", "jsx", "sh", "bash", "py", "rb", "pl"];

/// How much of a script is read for its description.
const HEAD: u64 = 4096;

/// A named script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NamedScript {
    /// Its name: the file's, without the extension.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// Its first comment line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// A nearer script has the same name, so this one is reached by its path only.
    pub shadowed: bool,
}

/// The directories that are searched, the nearest first; `further` is what `script.dirs` says.
pub fn directories(cwd: &Path, dirs: &Dirs, further: &[String]) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = cwd.ancestors().map(|d| d.join(".mcpx").join("scripts")).collect();
    found.extend(further.iter().map(|d| cwd.join(d)));
    found.extend(dirs.config.as_ref().map(|c| c.join("scripts")));
    let mut seen = HashSet::new();
    found.retain(|d| seen.insert(d.clone()) && d.is_dir());
    found
}

/// Every named script, by directory (the nearest first) and name.
pub fn list(cwd: &Path, dirs: &Dirs, further: &[String]) -> Vec<NamedScript> {
    let mut scripts = Vec::new();
    let mut seen = HashSet::new();
    for dir in directories(cwd, dirs, further) {
        let mut here: Vec<(String, usize, PathBuf)> = std::fs::read_dir(&dir)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| {
                let path = entry.path();
                let rank = rank(&path)?;
                Some((path.file_stem()?.to_str()?.to_owned(), rank, path))
            })
            .collect();
        here.sort();
        for (name, _, path) in here {
            let shadowed = !seen.insert(name.clone());
            scripts.push(NamedScript { description: describe(&path), name, path, shadowed });
        }
    }
    scripts
}

fn rank(path: &Path) -> Option<usize> {
    let extension = path.extension()?.to_str()?;
    EXTENSIONS.iter().position(|e| *e == extension).filter(|_| path.is_file())
}

/// Where scripts are looked for.
#[derive(Clone, Copy)]
pub struct Places<'a> {
    /// Where a path was typed.
    pub from: &'a Path,
    /// Where the script will run.
    pub cwd: &'a Path,
    /// The user's directories.
    pub dirs: &'a Dirs,
    /// `script.dirs`.
    pub further: &'a [String],
    /// `script.interpreter`.
    pub interpreters: &'a Value,
}

/// Finds what `mcpx run` was given: a path, the name of a script, or either without the extension.
/// The extensions of `script.interpreter` count as well.
///
/// # Errors
/// `NoScript` when there is neither, `Usage` when a directory has two of the name.
///
/// A path is meant from `from`, where it was typed; names are looked for from `cwd`, where the script will run.
pub fn find(wanted: &str, places: &Places) -> Result<PathBuf> {
    let &Places { from, cwd, dirs, further, interpreters } = places;
    let direct = from.join(wanted);
    // A file beats all, and what is there but is none is told by whoever reads it.
    if direct.is_file() || wanted.contains('/') && direct.exists() {
        return Ok(direct);
    }
    if let Some(one) = beside(wanted, &direct, interpreters)? {
        return Ok(one);
    }
    if wanted.contains('/') {
        return Ok(direct);
    }
    for dir in directories(cwd, dirs, further) {
        let exact = dir.join(wanted);
        if rank(&exact).is_some() {
            return Ok(exact);
        }
        let mut found = EXTENSIONS.iter().map(|e| dir.join(format!("{wanted}.{e}"))).filter(|p| p.is_file());
        if let Some(one) = only(wanted, &mut found)? {
            return Ok(one);
        }
    }
    if direct.exists() {
        return Ok(direct); // not a file: whoever reads it says what it is
    }
    let names: Vec<String> = list(cwd, dirs, further).into_iter().map(|s| s.name).collect();
    let error = Error::new(
        Kind::NoScript,
        format!(
            "there is no script {wanted}: no file of that name in {} and no named script",
            from.display()
        ),
    );
    Err(error.hint(
        did_you_mean(wanted, names.iter().map(String::as_str))
            .unwrap_or_else(|| "`mcpx scripts` lists the named ones; they live in .mcpx/scripts".into()),
    ))
}

/// The file of that name with an extension, in the working directory or at the path that was typed.
fn beside(wanted: &str, direct: &Path, interpreters: &Value) -> Result<Option<PathBuf>> {
    if direct.file_name().is_none() {
        return Ok(None);
    }
    let own = interpreters.as_object().into_iter().flat_map(|map| map.keys().map(String::as_str));
    let mut extensions: Vec<&str> = BESIDE.to_vec();
    extensions.extend(own.filter(|e| !BESIDE.contains(e)));
    let mut found = extensions.iter().map(|extension| {
        let mut path = direct.as_os_str().to_owned();
        path.push(".");
        path.push(extension);
        PathBuf::from(path)
    });
    only(wanted, &mut found.by_ref().filter(|p| p.is_file()))
}

/// The one that was found, if it is one.
fn only(wanted: &str, found: &mut dyn Iterator<Item = PathBuf>) -> Result<Option<PathBuf>> {
    let Some(one) = found.next() else { return Ok(None) };
    let others: Vec<String> = found.map(|p| p.display().to_string()).collect();
    if others.is_empty() {
        return Ok(Some(one));
    }
    let message = format!("{wanted} may be {} or {}", one.display(), others.join(" or "));
    Err(Error::new(Kind::Usage, message).hint("name one with its extension, or remove the other"))
}

/// The first comment line that says something.
fn describe(path: &Path) -> Option<String> {
    let file = std::fs::File::open(path).ok()?;
    for line in BufReader::new(file.take(HEAD)).split(b'\n').map_while(Result::ok).take(20) {
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_start_matches('\u{feff}').trim();
        let skip = line.is_empty()
            || line.starts_with("#!")
            || line == "/**"
            || line == "/*"
            || line == "\"use strict\";";
        if skip || line.starts_with("// @") || line.starts_with("# -*-") {
            continue;
        }
        let text = ["//", "/**", "/*", "*", "#", "\"\"\""].iter().find_map(|mark| line.strip_prefix(mark));
        let text = text?
            .trim_start_matches(['/', '*', '#'])
            .trim_end_matches("*/")
            .trim_end_matches("\"\"\"")
            .trim();
        if !text.is_empty() {
            return Some(text.to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_wins_and_the_other_is_marked() {
        let root = std::env::temp_dir().join(format!("mcpx-named-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&root);
        let (near, far, user) =
            (root.join("a/b/.mcpx/scripts"), root.join("a/.mcpx/scripts"), root.join("config/scripts"));
        for dir in [&near, &far, &user] {
            std::fs::create_dir_all(dir).unwrap();
        }
        std::fs::write(near.join("sync.ts"), "#!/usr/bin/env deno\n\n// Copies issues.\nlet a = 1;\n")
            .unwrap();
        std::fs::write(far.join("sync.sh"), "# older\n").unwrap();
        std::fs::write(far.join("report.py"), "#!/usr/bin/python3\n\"\"\"Counts.\"\"\"\n").unwrap();
        std::fs::write(far.join("notes.txt"), "no script").unwrap();
        std::fs::write(user.join("tidy.mjs"), "/**\n * Tidies up.\n */\n").unwrap();
        std::fs::write(user.join("mute.js"), "let a = 1; // not this\n").unwrap();
        let dirs = Dirs {
            home: None,
            config: Some(root.join("config")),
            state: root.clone(),
            cache: root.clone(),
            runtime: root.clone(),
        };
        let cwd = root.join("a/b");
        let rows: Vec<_> = list(&cwd, &dirs, &[])
            .into_iter()
            .map(|s| (s.name, s.description.unwrap_or_default(), s.shadowed))
            .collect();
        let row =
            |name: &str, description: &str, shadowed| (name.to_owned(), description.to_owned(), shadowed);
        assert_eq!(
            rows,
            [
                row("sync", "Copies issues.", false),
                row("report", "Counts.", false),
                row("sync", "older", true),
                row("mute", "", false),
                row("tidy", "Tidies up.", false),
            ]
        );
        let none = Value::Null;
        fn at<'a>(cwd: &'a Path, dirs: &'a Dirs, further: &'a [String], own: &'a Value) -> Places<'a> {
            Places { from: cwd, cwd, dirs, further, interpreters: own }
        }
        assert_eq!(find("sync", &at(&cwd, &dirs, &[], &none)).unwrap(), near.join("sync.ts"));
        assert_eq!(find("sync.sh", &at(&cwd, &dirs, &[], &none)).unwrap(), far.join("sync.sh"));
        assert_eq!(find("./x.ts", &at(&cwd, &dirs, &[], &none)).unwrap(), cwd.join("./x.ts"));
        std::fs::write(cwd.join("sync"), "echo").unwrap();
        assert_eq!(
            find("sync", &at(&cwd, &dirs, &[], &none)).unwrap(),
            cwd.join("sync"),
            "a file in the directory comes first"
        );
        let more = root.join("more");
        std::fs::create_dir_all(&more).unwrap();
        for name in ["tidy.sh", "extra.sh"] {
            std::fs::write(more.join(name), "echo").unwrap();
        }
        let further = [more.to_str().unwrap().to_owned(), "absent".to_owned()];
        assert_eq!(find("extra", &at(&cwd, &dirs, &further, &none)).unwrap(), more.join("extra.sh"));
        assert_eq!(
            find("tidy", &at(&cwd, &dirs, &further, &none)).unwrap(),
            more.join("tidy.sh"),
            "before the user's"
        );
        assert_eq!(directories(&cwd, &dirs, &further).len(), 4);
        let e = find("sink", &at(&cwd, &dirs, &[], &none)).unwrap_err();
        assert_eq!(e.exit_code(), 127);
        assert!(e.to_string().contains("\"sync\""), "{e}");
        std::fs::write(cwd.join("here.rb2"), "").unwrap();
        assert!(find("here", &at(&cwd, &dirs, &[], &none)).is_err());
        let own = serde_json::json!({"rb2": "ruby"});
        assert_eq!(find("here", &at(&cwd, &dirs, &[], &own)).unwrap(), cwd.join("here.rb2"));
        std::fs::write(cwd.join("here.tsx"), "").unwrap();
        let e = find("./here", &at(&cwd, &dirs, &[], &own)).unwrap_err();
        assert!(e.message().contains("here.tsx or ") && e.message().ends_with("here.rb2"), "{e}");
        std::fs::write(near.join("sync.js"), "").unwrap();
        std::fs::remove_file(cwd.join("sync")).unwrap();
        assert!(find("sync", &at(&cwd, &dirs, &[], &none)).unwrap_err().message().contains("sync.js"));
        std::fs::remove_dir_all(&root).unwrap();
    }
}
