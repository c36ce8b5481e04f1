//! The binary: hands the arguments to the library and exits with its code.

fn main() -> std::process::ExitCode {
    std::process::ExitCode::from(mcpx::run(std::env::args_os().collect()))
}
