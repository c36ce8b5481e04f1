//! What a person types and reads. Everything above the library: parses argv, prints, decides the exit code.

/// Runs one command line (the program's name first) and returns its exit code.
pub fn run(_argv: Vec<std::ffi::OsString>) -> u8 {
    2
}
