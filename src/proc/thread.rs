//! Starts threads: each one has a name and a small stack, and a panic in it
//! ends that thread alone. Knows nothing of what they do.

use crate::log;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{Builder, JoinHandle};

/// Enough for the deepest thing that a thread of mcpx does (serde_json stops at
/// 128 levels), and small enough that hundreds of threads are no burden.
const STACK: usize = 256 * 1024;

/// Starts a thread with a 256 KiB stack; the kernel shows the first 15 bytes
/// of its name. A panic in `f` is logged and goes no further. Dropping
/// the handle detaches the thread. Fails only when the system has no room for
/// another thread.
pub fn spawn(name: &str, f: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    spawn_sized(name, STACK, f)
}

/// The same with a stack of `bytes`, for code that is known to recurse.
#[allow(clippy::disallowed_methods, reason = "the one place that starts threads")]
pub fn spawn_sized(
    name: &str,
    bytes: usize,
    f: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    Builder::new().name(name.to_owned()).stack_size(bytes).spawn(move || {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(f)) {
            let said = panic.downcast_ref::<&str>().copied();
            let said = said.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
            let thread = std::thread::current();
            let name = thread.name().unwrap_or_default();
            log::error(format_args!("the thread \"{name}\" panicked: {}", said.unwrap_or("no message")));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_stays_in_its_thread_and_the_name_is_kept() {
        let (send, receive) = std::sync::mpsc::channel();
        let handle = spawn("room 7", move || {
            send.send(std::thread::current().name().map(str::to_owned)).unwrap();
            std::panic::resume_unwind(Box::new("quietly"));
        })
        .unwrap();
        assert_eq!(receive.recv().unwrap().as_deref(), Some("room 7"));
        assert!(handle.join().is_ok());
    }
}
