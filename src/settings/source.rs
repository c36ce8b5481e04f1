//! Reads a setting of the kind source: inline text, a file, or a directory
//! whose files are put together in natural order.

use super::declared::{Declared, Setting};
use super::layers::{Source, base_of};
use super::resolve::Settings;
use crate::error::{Error, Kind, Result};
use std::cmp::Ordering;
use std::fs;
use std::path::{Path, PathBuf};

impl Settings {
    /// The text that a setting of the kind source stands for. A relative path is taken from the
    /// place of the file that sets it, else from `cwd`.
    ///
    /// # Errors
    /// `Config`, with the setting and where it is set, when what it names cannot be read.
    pub fn source_text(&self, setting: &Setting<String>, cwd: &Path) -> Result<String> {
        let value = self.get(setting);
        if value.is_empty() {
            return Ok(value);
        }
        let Some(row) = self.explain(setting.key()) else { return Ok(value) };
        let base = match &row.source {
            Source::File(path, _) => base_of(path),
            _ => cwd,
        };
        read_source(&value, base)
            .map_err(|e| Error::new(Kind::Config, format!("{} ({}): {}", row.key, row.source, e.message())))
    }
}

/// The text that a value stands for. `@text:` forces inline text and `@file:`
/// a file or directory; without either, a value of one line that names an
/// existing file or directory (relative to `base`) is that, and any other is text.
///
/// # Errors
/// `Config` when a file or directory cannot be read, or is not UTF-8.
pub fn read_source(value: &str, base: &Path) -> Result<String> {
    if let Some(text) = value.strip_prefix("@text:") {
        return Ok(text.to_owned());
    }
    if let Some(path) = value.strip_prefix("@file:") {
        return read(&base.join(path));
    }
    let path = base.join(value);
    if value.is_empty() || value.contains('\n') || !path.exists() {
        return Ok(value.to_owned());
    }
    read(&path)
}

fn read(path: &Path) -> Result<String> {
    let fail =
        |path: &Path, what: String| Error::new(Kind::Config, format!("reading {}: {what}", path.display()));
    let meta = fs::metadata(path).map_err(|e| fail(path, e.to_string()))?;
    if !meta.is_dir() {
        return one(path).map_err(|e| fail(path, e));
    }
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(path).map_err(|e| fail(path, e.to_string()))? {
        let entry = entry.map_err(|e| fail(path, e.to_string()))?.path();
        // Hidden files are editors' and file managers' own; directories are not gone into.
        let hidden = entry.file_name().is_some_and(|n| n.as_encoded_bytes().starts_with(b"."));
        if !hidden && entry.is_file() {
            files.push(entry);
        }
    }
    files.sort_by(|a, b| natural(&a.to_string_lossy(), &b.to_string_lossy()));
    let mut out = String::new();
    for file in files {
        let text = one(&file).map_err(|e| fail(&file, e))?;
        out.push_str(&text);
        // The next file begins on a line of its own.
        if !text.is_empty() && !text.ends_with('\n') {
            out.push('\n');
        }
    }
    Ok(out)
}

fn one(path: &Path) -> Result<String, String> {
    let bytes = fs::read(path).map_err(|e| e.to_string())?;
    String::from_utf8(bytes).map_err(|_| "it is not valid UTF-8".into())
}

/// Compares names as people count: `2` before `10`.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        let digits = |s: &str| s.bytes().take_while(u8::is_ascii_digit).count();
        let (m, n) = (digits(a), digits(b));
        if m > 0 && n > 0 {
            let (x, y) = (a[..m].trim_start_matches('0'), b[..n].trim_start_matches('0'));
            let order = x.len().cmp(&y.len()).then_with(|| x.cmp(y)).then(m.cmp(&n));
            if order != Ordering::Equal {
                return order;
            }
            (a, b) = (&a[m..], &b[n..]);
            continue;
        }
        let (mut x, mut y) = (a.chars(), b.chars());
        match (x.next(), y.next()) {
            (Some(c), Some(d)) if c == d => (a, b) = (x.as_str(), y.as_str()),
            (c, d) => return c.cmp(&d),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_files_and_directories_are_read() {
        let dir = std::env::temp_dir().join(format!("mcpx-source-{}", std::process::id()));
        fs::create_dir_all(dir.join("d/sub")).unwrap();
        for (name, content) in [("f", "file"), ("d/10.md", "ten"), ("d/2.md", "two\n"), ("d/.hid", "no")] {
            fs::write(dir.join(name), content).unwrap();
        }
        fs::write(dir.join("bad"), [0xff]).unwrap();
        for (value, wanted) in [
            ("hello", "hello"),
            ("", ""),
            ("f", "file"),
            ("f\n", "f\n"),
            ("@text:f", "f"),
            ("@file:f", "file"),
            ("d", "two\nten\n"),
            ("@text:@file:f", "@file:f"),
        ] {
            assert_eq!(read_source(value, &dir).unwrap(), wanted, "{value}");
        }
        for (value, part) in [("@file:none", "No such file"), ("bad", "not valid UTF-8")] {
            let e = read_source(value, &dir).unwrap_err();
            assert!(e.kind() == Kind::Config && e.message().contains(part), "{e}");
        }
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn numbers_are_compared_as_numbers() {
        let mut names = ["a10", "a2", "a02", "b1", "a", "a2b", "99999999999999999999999", "1"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(names, ["1", "99999999999999999999999", "a", "a2", "a2b", "a02", "a10", "b1"]);
    }
}
