//! Private directories for tests, removed at the end.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory of this test's own, with a short path.
pub struct Scratch(PathBuf);

impl Scratch {
    /// Creates an empty one.
    pub fn new(name: &str) -> Scratch {
        use std::os::unix::fs::DirBuilderExt;
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        let n = SERIAL.fetch_add(1, Ordering::Relaxed);
        let dir = Path::new("/tmp").join(format!("mx-{name}-{}-{n}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::DirBuilder::new().mode(0o700).create(&dir).unwrap();
        Scratch(dir)
    }
    /// A path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
