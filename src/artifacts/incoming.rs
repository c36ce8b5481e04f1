//! An artifact on its way in: its bytes go to a file of its own, and into the digest,
//! as they come. Dropped before it is kept, it leaves nothing. Knows nothing of
//! where they come from.

use crate::error::{Error, Kind, Result};
use crate::util;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// How much of a source is in memory at once.
const BLOCK: usize = 64 * 1024;

/// Bytes that are arriving.
#[derive(Debug)]
pub struct Incoming {
    file: File,
    path: PathBuf,
    hash: Sha256,
    size: u64,
    most: u64,
}

impl Incoming {
    /// A new file in `dir`, for at most so many bytes.
    pub(super) fn begin(dir: &Path, most: u64) -> Result<Incoming> {
        let path = dir.join(util::random_hex(8)?);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let file = file.map_err(|e| unwritten(&path, &e))?;
        Ok(Incoming { file, path, hash: Sha256::new(), size: 0, most })
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// `TooLarge` for more than one artifact may have, `Unavailable` when they cannot be written.
    pub fn take(&mut self, bytes: &[u8]) -> Result<()> {
        self.size = self.size.saturating_add(bytes.len() as u64);
        if self.size > self.most {
            return Err(Error::new(
                Kind::TooLarge,
                format!(
                    "the artifact has more than {} bytes, which is all that artifacts.maxSize permits",
                    self.most
                ),
            )
            .hint("raise artifacts.maxSize"));
        }
        self.hash.update(bytes);
        self.file.write_all(bytes).map_err(|e| unwritten(&self.path, &e))
    }

    /// Takes all that a reader gives.
    ///
    /// # Errors
    /// As [`Incoming::take`]; `what` names the reader where it is what fails.
    pub fn take_all(&mut self, from: &mut dyn Read, what: &str) -> Result<()> {
        let mut block = vec![0; BLOCK];
        loop {
            match from.read(&mut block) {
                Ok(0) => return Ok(()),
                Ok(n) => self.take(&block[..n])?,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::unreadable(what, &e)),
            }
        }
    }

    /// How many bytes have come.
    pub fn size(&self) -> u64 {
        self.size
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The digest of all that came.
    pub(super) fn sha256(&self) -> String {
        self.hash.clone().finalize().iter().fold(String::with_capacity(64), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        // Gone already when it was kept.
        let _ = fs::remove_file(&self.path);
    }
}

/// The error for what could not be written.
pub(super) fn unwritten(path: &Path, e: &std::io::Error) -> Error {
    Error::unwritable(format!("the artifact {}", path.display()), e)
        .hint("mcpx artifacts gc makes room; MCPX_STATE_DIR names another place")
}
