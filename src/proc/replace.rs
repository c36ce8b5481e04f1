//! Puts another program in this one's place.

use crate::util::Env;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;

/// Becomes a program: the process, its terminal and its descriptors stay, and it
/// is the program that ends with an exit code or by a signal. Returns only when
/// that cannot be done.
#[allow(clippy::disallowed_methods, reason = "nothing is spawned: this process goes on as the other program")]
pub fn replace(program: &Path, args: &[OsString], env: &Env) -> io::Error {
    std::process::Command::new(program).args(args).env_clear().envs(env.iter()).exec()
}
