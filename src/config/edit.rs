//! Changes a configuration file and keeps the rest of it: comments, order,
//! layout, mode. The new text goes through a rename, and only when the file is
//! still the one that was read. Knows nothing of what the members mean.

use super::load::MAX_FILE;
use super::{jsonc, splice};
use crate::error::{Error, Kind, Result, system_words};
use crate::settings::bytes_text;
use crate::util;
use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// The mode of a new file, before the umask: like any file that an editor makes.
const NEW_MODE: u32 = 0o644;

/// The mode of a new file that may hold secrets.
const PRIVATE_MODE: u32 = 0o600;

/// The text of a new file, before anything is set in it.
const NEW_TEXT: &str = "{}\n";

/// How many links are followed to a file that does not exist yet; the system's own limit for paths.
const MAX_LINKS: usize = 40;

/// A configuration file being changed. Nothing is written before [`Edit::save`].
///
/// Two edits of files in one directory wait for one another from `open` to the end.
#[derive(Debug)]
pub struct Edit {
    /// The file itself, links followed.
    target: PathBuf,
    /// What was read; `None` when there was no file.
    original: Option<Original>,
    text: String,
    /// The mode that the file gets if it is new.
    new_mode: u32,
    /// Held for its lock, so that two commands do not take each other's change away.
    _lock: Option<File>,
}

#[derive(Debug)]
struct Original {
    digest: String,
    text: String,
    mode: u32,
    owner: (u32, u32),
}

impl Edit {
    /// Reads a file to change; one that does not exist is made by `save`.
    ///
    /// # Errors
    /// `Config` when it cannot be read, is not valid, or is no object.
    pub fn open(path: &Path) -> Result<Edit> {
        let target = follow(path);
        let lock = target.parent().and_then(|dir| File::open(dir).ok()).filter(|dir| dir.lock().is_ok());
        let original = read(&target)?;
        let text = match &original {
            // An empty file is as good as none.
            Some(original) if !original.text.trim().is_empty() => original.text.clone(),
            _ => NEW_TEXT.to_owned(),
        };
        let document = jsonc::parse(&text, &target)?;
        if !document.value.is_object() {
            let what = crate::settings::shape(&document.value);
            let message = format!("{}: a configuration must be an object, not {what}", target.display());
            return Err(Error::new(Kind::Config, message));
        }
        Ok(Edit { target, original, text, new_mode: NEW_MODE, _lock: lock })
    }

    /// The file that `save` writes, links followed.
    pub fn path(&self) -> &Path {
        &self.target
    }

    /// Whether the file exists as yet.
    pub fn exists(&self) -> bool {
        self.original.is_some()
    }

    /// Closes the file to others, if it is new: it may hold secrets.
    pub fn make_private(&mut self) {
        self.new_mode = PRIVATE_MODE;
    }

    /// The whole text as it would be written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The value that a path of keys leads to.
    pub fn get(&self, path: &[&str]) -> Option<Value> {
        let (object, index) = splice::find(&self.text, path)?;
        let (from, to) = object.members[index].value;
        jsonc::parse(&self.text[from..to], &self.target).ok().map(|d| d.value)
    }

    /// Sets the value that a path of keys leads to. A new member goes to the
    /// end of its object; objects on the way are made.
    ///
    /// # Errors
    /// `Config` when something on the way is there and is no object.
    pub fn set(&mut self, path: &[&str], value: Value) -> Result<()> {
        // What is there already is not laid out anew.
        if self.get(path).is_some_and(|old| old == value) {
            return Ok(());
        }
        match splice::set(&self.text, path, &value) {
            Ok(text) => self.take(text),
            Err(keys) => {
                let key = path[..keys.min(path.len())].join(".");
                let message = format!("{}: \"{key}\" is not an object", self.place(&path[..keys]));
                Err(Error::new(Kind::Config, message).hint("correct the file, then try again"))
            }
        }
    }

    /// Removes the member that a path of keys leads to; whether it was there.
    ///
    /// # Errors
    /// `Internal` only.
    pub fn remove(&mut self, path: &[&str]) -> Result<bool> {
        let mut removed = false;
        // A key may be there twice: to remove only the last would bring the first to life.
        while let Some((object, index)) = splice::find(&self.text, path) {
            self.take(splice::remove(&self.text, &object, index))?;
            removed = true;
        }
        Ok(removed)
    }

    /// Removes the member when it is an object with nothing in it, no comment either.
    ///
    /// # Errors
    /// `Internal` only.
    pub fn prune(&mut self, path: &[&str]) -> Result<bool> {
        let Some((object, index)) = splice::find(&self.text, path) else { return Ok(false) };
        let (from, to) = object.members[index].value;
        let inner = self.text[from..to].strip_prefix('{').and_then(|t| t.strip_suffix('}'));
        if inner.is_some_and(|inner| inner.trim().is_empty()) {
            return self.remove(path);
        }
        Ok(false)
    }

    /// Writes the file through a rename, with the mode that it had; whether there was anything to write.
    ///
    /// # Errors
    /// `Config` when the file changed or vanished since it was read; `Unwritable` when it is read-only, or cannot be
    /// written.
    pub fn save(self) -> Result<bool> {
        let shown = self.target.display();
        let fail = |e: &io::Error| {
            Error::new(Kind::Unwritable, format!("writing {shown}: {}; nothing was changed", system_words(e)))
        };
        if self.original.as_ref().is_some_and(|o| o.text == self.text) {
            return Ok(false);
        }
        let mode = match &self.original {
            Some(original) => {
                // A rename would replace a file that nobody may write.
                let writable = original.mode & 0o222 != 0
                    && OpenOptions::new().write(true).open(&self.target).map_or_else(
                        |e| !matches!(e.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem),
                        |_| true,
                    );
                if !writable {
                    let message = format!("writing {shown}: the file is read-only; nothing was changed");
                    let hint = format!("allow it with chmod u+w {shown}, or change the file yourself");
                    return Err(Error::new(Kind::Unwritable, message).hint(hint));
                }
                original.mode & 0o7777
            }
            None => {
                let dir = self.target.parent().unwrap_or(Path::new("."));
                fs::create_dir_all(dir).map_err(|e| fail(&e))?;
                self.new_mode
            }
        };
        let mut raced = None;
        let last_look = |new: &Path| match &self.original {
            None => Ok(()),
            Some(original) => {
                let file = File::open(new)?;
                // The umask took bits away, and a file that is root's or a group's stays so.
                let _ = fchown(&file, Some(original.owner.0), Some(original.owner.1));
                file.set_permissions(fs::Permissions::from_mode(original.mode & 0o7777))?;
                raced = changed(&self.target, &original.digest);
                if raced.is_some() { Err(io::Error::other("changed")) } else { Ok(()) }
            }
        };
        let written =
            util::write_then(&self.target, self.text.as_bytes(), mode, self.original.is_none(), last_look);
        match written {
            Ok(()) => Ok(true),
            Err(e) => {
                let appeared = self.original.is_none() && e.kind() == ErrorKind::AlreadyExists;
                let what = raced.or(appeared.then_some("another program made it meanwhile"));
                Err(what.map_or_else(
                    || fail(&e),
                    |what| {
                        let message = format!("writing {shown}: {what}; nothing was changed");
                        Error::new(Kind::Config, message).hint("look at the file, then run the command again")
                    },
                ))
            }
        }
    }

    /// Takes a new text, which must still be a document.
    fn take(&mut self, text: String) -> Result<()> {
        if let Err(e) = jsonc::parse(&text, &self.target) {
            let what = format!("changing {} would have broken it: {}", self.target.display(), e.message());
            return Err(Error::new(Kind::Internal, what));
        }
        self.text = text;
        Ok(())
    }

    /// `path:line` of a member.
    fn place(&self, path: &[&str]) -> String {
        let at = splice::find(&self.text, path).map(|(object, i)| object.members[i].start);
        let line = at.map(|at| format!(":{}", self.text[..at].matches('\n').count() + 1));
        format!("{}{}", self.target.display(), line.unwrap_or_default())
    }
}

/// Where a path leads: through every link, also when the last one leads to nothing as yet.
fn follow(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(to) = fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("/")).join(to);
    }
    let dir = path.parent().and_then(|d| d.canonicalize().ok());
    match (dir, path.file_name()) {
        (Some(dir), Some(name)) => dir.join(name),
        _ => std::path::absolute(&path).unwrap_or(path),
    }
}

/// A file's content; `None` when there is none.
fn read(path: &Path) -> Result<Option<Original>> {
    let fail = |what: String| Error::new(Kind::Config, format!("reading {}: {what}", path.display()));
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC).open(path);
    let file = match opened {
        Ok(file) => file,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(fail(system_words(&e))),
    };
    let meta = file.metadata().map_err(|e| fail(system_words(&e)))?;
    if !meta.is_file() {
        return Err(fail("it is not a regular file".into()));
    }
    if meta.len() > MAX_FILE {
        return Err(fail(format!("it is larger than {}", bytes_text(MAX_FILE))));
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(|e| fail(system_words(&e)))?;
    let digest = util::digest([bytes.as_slice()], 64);
    let text = String::from_utf8(bytes).map_err(|_| fail("the file is not valid UTF-8".into()))?;
    Ok(Some(Original { digest, text, mode: meta.mode(), owner: (meta.uid(), meta.gid()) }))
}

/// What became of the file since it was read, if anything did.
fn changed(path: &Path, digest: &str) -> Option<&'static str> {
    match fs::read(path) {
        Ok(bytes) if util::digest([bytes.as_slice()], 64) == digest => None,
        Ok(_) => Some("another program changed it meanwhile"),
        Err(_) => Some("it is gone since it was read"),
    }
}

#[cfg(test)]
mod tests;
