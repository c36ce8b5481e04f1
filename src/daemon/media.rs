//! Removes images and audio that were written where nobody asked for them to be
//! kept. Knows nothing of what is in them, or of who wrote them.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

/// How often files are looked for: they are to go after days.
const ROUND: Duration = Duration::from_secs(3600);

/// When files were last looked for.
#[derive(Debug, Default)]
pub struct Media(Option<Instant>);

impl Media {
    /// Removes what is older than `keep` (zero keeps all), once an hour however often it is called.
    pub fn look_after(&mut self, dir: &Path, keep: Duration) {
        if keep.is_zero() || self.0.is_some_and(|last| last.elapsed() < ROUND) {
            return;
        }
        self.0 = Some(Instant::now());
        remove_older(dir, SystemTime::now().checked_sub(keep));
    }
}

fn remove_older(dir: &Path, than: Option<SystemTime>) {
    let Some(than) = than else { return };
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        // Of the entry itself: a link is removed, and what it leads to is left alone.
        let Ok(meta) = entry.metadata() else { continue };
        if meta.is_file() && meta.modified().is_ok_and(|written| written < than) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::scratch::Scratch;

    #[test]
    fn old_files_go_once_a_round_and_new_ones_stay() {
        let dir = Scratch::new("media");
        let file = |name: &str, age: u64| {
            let path = dir.path(name);
            fs::write(&path, "x").unwrap();
            let written = SystemTime::now() - Duration::from_secs(age);
            fs::File::options().write(true).open(&path).unwrap().set_modified(written).unwrap();
            path
        };
        let (old, new) = (file("old.png", 100), file("new.png", 10));
        let mut media = Media::default();
        media.look_after(&dir.path(""), Duration::ZERO);
        assert!(old.exists(), "zero keeps all");
        media.look_after(&dir.path(""), Duration::from_secs(50));
        assert!(!old.exists() && new.exists());
        let later = file("later.png", 100);
        media.look_after(&dir.path(""), Duration::from_secs(50));
        assert!(later.exists(), "the next round is an hour away");
        media.look_after(&dir.path("missing"), Duration::from_secs(50));
    }
}
