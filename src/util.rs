//! Small helpers that every layer may use: an environment snapshot, digests,
//! atomic writes, identifiers, and the nearest name to a mistyped one.

pub mod base64;
#[cfg(test)]
pub mod mutate;
#[cfg(test)]
pub mod scratch;
pub mod uri;
mod words;

pub use words::json_words;

use crate::error::{Error, Kind, Result};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// A snapshot of a process's environment. Everything that depends on the
/// environment takes one of these, so that it can be tested and so that a
/// daemon and a command never disagree by accident.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Env(BTreeMap<OsString, OsString>);

impl Env {
    /// This process's environment, as it is now.
    #[allow(clippy::disallowed_methods, reason = "the one place that reads the process environment")]
    pub fn current() -> Env {
        Env(std::env::vars_os().collect())
    }
    /// An environment made of these pairs.
    pub fn from_pairs<K: Into<OsString>, V: Into<OsString>>(pairs: impl IntoIterator<Item = (K, V)>) -> Env {
        Env(pairs.into_iter().map(|(k, v)| (k.into(), v.into())).collect())
    }
    /// The variable's value; an empty one counts as set.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str)
    }
    /// The variable's value when it is set, not empty, and UTF-8.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(OsStr::to_str).filter(|v| !v.is_empty())
    }
    /// Sets a variable.
    pub fn set(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) {
        self.0.insert(name.into(), value.into());
    }
    /// Removes a variable.
    pub fn remove(&mut self, name: &str) {
        self.0.remove(OsStr::new(name));
    }
    /// All pairs, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&OsString, &OsString)> {
        self.0.iter()
    }
}

/// The first `digits` hexadecimal digits of the SHA-256 of `parts`, each of
/// which is preceded by its length, so that no two lists share a digest.
pub fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>, digits: usize) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let mut text = String::with_capacity(64);
    for byte in hash.finalize() {
        text.push(char::from_digit(u32::from(byte >> 4), 16).unwrap_or('0'));
        text.push(char::from_digit(u32::from(byte & 15), 16).unwrap_or('0'));
    }
    text.truncate(digits);
    text
}

/// The SHA-256 of a text.
pub fn sha256(text: &[u8]) -> [u8; 32] {
    Sha256::digest(text).into()
}

/// `bytes` bytes from the system's random source, in hexadecimal.
pub fn random_hex(bytes: usize) -> Result<String> {
    use std::io::Read;
    let mut buf = vec![0u8; bytes];
    fs::File::open("/dev/urandom")
        .and_then(|mut f| f.read_exact(&mut buf))
        .map_err(|e| Error::new(Kind::Unavailable, format!("reading /dev/urandom: {e}")))?;
    Ok(buf.iter().map(|b| format!("{b:02x}")).collect())
}

/// Milliseconds since 1970, UTC.
pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
}

/// A time (milliseconds since 1970) as `2026-11-30T16:39:38.123Z` (RFC 3339).
pub fn iso8601(ms: u64) -> String {
    let (secs, millis) = (ms / 1000, ms % 1000);
    let (days, rest) = (secs / 86_400, secs % 86_400);
    // Civil-from-days over 400-year eras, counted from 0000-03-01.
    let z = days as i64 + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let day = doy - (153 * mp + 2) / 5 + 1;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    let year = yoe + era * 400 + i64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{millis:03}Z",
        rest / 3600,
        rest / 60 % 60,
        rest % 60
    )
}

/// Writes a file so that a reader sees the old content or the new, never a
/// part: a temporary file beside it with `mode`, `fsync` when `durable`, then a rename.
pub fn write_atomic(path: &Path, content: &[u8], mode: u32, durable: bool) -> std::io::Result<()> {
    let written = beside(path, content, mode, durable)?;
    rename_or_remove(&written, |new| fs::rename(new, path))
}

/// As [`write_atomic`] with `fsync`, but `last_look` gets the temporary file
/// first and may prevent the rename. With `fresh` a file that is there already
/// is never replaced: `AlreadyExists`.
pub fn write_then(
    path: &Path,
    content: &[u8],
    mode: u32,
    fresh: bool,
    last_look: impl FnOnce(&Path) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let written = beside(path, content, mode, true)?;
    rename_or_remove(&written, |new| {
        last_look(new)?;
        if !fresh {
            return fs::rename(new, path);
        }
        // A rename would replace what appeared meanwhile; a link does not.
        fs::hard_link(new, path).and_then(|()| fs::remove_file(new))
    })
}

/// Writes a temporary file beside `path`, and gives its name.
fn beside(path: &Path, content: &[u8], mode: u32, durable: bool) -> std::io::Result<PathBuf> {
    use std::os::unix::fs::OpenOptionsExt;
    use std::sync::atomic::{AtomicU64, Ordering};
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    let dir = path.parent().unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or(OsStr::new("file"));
    let mut temporary = OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}.{}.tmp", std::process::id(), SERIAL.fetch_add(1, Ordering::Relaxed)));
    let temporary: PathBuf = dir.join(temporary);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary)?;
    rename_or_remove(&temporary, |_| {
        file.write_all(content)?;
        if durable { file.sync_all() } else { Ok(()) }
    })?;
    Ok(temporary)
}

/// Does something with a temporary file, and removes it should that fail.
fn rename_or_remove(
    temporary: &Path,
    step: impl FnOnce(&Path) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let outcome = step(temporary);
    if outcome.is_err() {
        let _ = fs::remove_file(temporary);
    }
    outcome
}

/// The names nearest to a mistyped one, best first, at most three; empty when
/// none is near enough to be meant.
pub fn nearest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let lower = typed.to_lowercase();
    let limit = (lower.chars().count() / 3).max(1) + 1;
    let mut scored: Vec<(usize, &str)> = names
        .into_iter()
        .filter_map(|name| {
            let candidate = name.to_lowercase();
            let distance = edit_distance(&lower, &candidate);
            let contained = lower.len() >= 3
                && (candidate.contains(&lower) || lower.contains(&candidate) && candidate.len() >= 3);
            if distance <= limit.min(candidate.chars().count()) {
                Some((distance, name))
            } else if contained {
                Some((limit + 1, name))
            } else {
                None
            }
        })
        .collect();
    scored.sort();
    scored.dedup();
    scored.into_iter().take(3).map(|(_, name)| name).collect()
}

/// `did you mean "a", "b"?`, or nothing when no name is near.
pub fn did_you_mean<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let near = nearest(typed, names);
    if near.is_empty() {
        return None;
    }
    let quoted: Vec<String> = near.iter().map(|n| format!("\"{n}\"")).collect();
    Some(format!("did you mean {}?", quoted.join(", ")))
}

/// The name that a slip of the keys would make of `typed`: one or two signs apart, and not only in
/// the same word. For what is passed over in silence where it is not meant for mcpx.
pub fn mistyped<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = typed.to_lowercase();
    let limit = (lower.chars().count() / 4).clamp(1, 2);
    let near =
        names.into_iter().filter(|name| name.len().abs_diff(typed.len()) <= limit).filter_map(|name| {
            let distance = edit_distance(&lower, &name.to_lowercase());
            (distance <= limit).then_some((distance, name))
        });
    near.min().map(|(_, name)| name)
}

/// Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours.
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0usize; b.len() + 1]; a.len() + 1];
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=a.len() {
        rows[i][0] = i;
        for j in 1..=b.len() {
            let cost = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (rows[i - 1][j] + 1).min(rows[i][j - 1] + 1).min(rows[i - 1][j - 1] + cost);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

/// Whether the pattern, in which a star stands for any bytes, is the whole text.
pub fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    // Where to go on when the last star has to take one byte more.
    let mut again: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            again = Some((p + 1, t));
            p += 1;
        } else if pattern.get(p) == Some(&text[t]) {
            (p, t) = (p + 1, t + 1);
        } else if let Some((star, from)) = again {
            again = Some((star, from + 1));
            (p, t) = (star, from + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|b| *b == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rfc_3339() {
        assert_eq!(iso8601(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso8601(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(iso8601(1_796_056_778_123), "2026-11-30T16:39:38.123Z");
    }

    #[test]
    fn mistyped_names_are_completed_and_strangers_are_not() {
        let names = ["search", "status", "scripts", "types"];
        assert_eq!(nearest("serach", names), ["search"]);
        assert_eq!(nearest("stats", names), ["status"]);
        assert!(nearest("kubernetes", names).is_empty());
        assert_eq!(nearest("get-su", ["get-sum", "get-env"])[0], "get-sum");
    }

    #[test]
    fn digests_tell_the_parts_apart() {
        assert_ne!(digest([&b"ab"[..], b"c"], 16), digest([&b"a"[..], b"bc"], 16));
        assert_eq!(digest([&b""[..]], 16).len(), 16);
    }

    #[test]
    fn an_atomic_write_replaces_and_leaves_nothing_beside_it() {
        let dir = std::env::temp_dir().join(format!("mcpx-util-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let file = dir.join("f");
        write_atomic(&file, b"one", 0o600, false).unwrap();
        write_atomic(&file, b"two", 0o600, true).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"two");
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
        fs::remove_dir_all(&dir).unwrap();
    }
}
