//! Where this very program is, and what to start to have it once more; also on a
//! machine without `/proc`. Knows nothing of what it is started for.

use std::io;
use std::path::{Path, PathBuf};

/// The link to what this process runs; it still leads there after the file was replaced.
pub(super) const LINK: &str = "/proc/self/exe";

/// The path of this program.
///
/// # Errors
/// Where neither `/proc` nor the kernel's word at the start tells.
pub fn own_program() -> io::Result<PathBuf> {
    std::env::current_exe().or_else(|e| match executed_as() {
        Some(path) if path.is_absolute() => Ok(path),
        // As it was started, which is right for as long as nobody has left that directory.
        Some(path) => std::env::current_dir().map(|dir| dir.join(path)).and_then(|path| path.canonicalize()),
        None => Err(e),
    })
}

/// What to start to have this very program again, even when another file has taken its path.
pub fn same_program() -> PathBuf {
    match Path::new(LINK).exists() {
        true => LINK.into(),
        false => own_program().unwrap_or_else(|_| LINK.into()),
    }
}

/// The path that was given to execve(2), from the process's auxiliary vector (getauxval(3)).
#[cfg(target_os = "linux")]
fn executed_as() -> Option<PathBuf> {
    use std::ffi::{CStr, OsStr};
    use std::os::unix::ffi::OsStrExt;
    // SAFETY: getauxval takes a number; what it gives for AT_EXECFN is 0 or the address of a string
    // that ends in a zero, and that the kernel put there for as long as the process lives.
    let path = unsafe {
        let at = libc::getauxval(libc::AT_EXECFN) as *const libc::c_char;
        (!at.is_null()).then(|| CStr::from_ptr(at))
    }?;
    Some(PathBuf::from(OsStr::from_bytes(path.to_bytes()))).filter(|path| !path.as_os_str().is_empty())
}

#[cfg(not(target_os = "linux"))]
fn executed_as() -> Option<PathBuf> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_word_is_the_same_as_that_of_proc() {
        let told = std::env::current_dir().unwrap().join(executed_as().unwrap()).canonicalize().unwrap();
        assert_eq!(told, own_program().unwrap().canonicalize().unwrap());
        assert!(same_program().exists());
    }
}
