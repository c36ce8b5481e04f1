//! How wide the terminal is. Knows nothing of what is written there.

use std::os::fd::RawFd;

/// Standard output, and standard error for when output goes elsewhere.
const DESCRIPTORS: [RawFd; 2] = [libc::STDOUT_FILENO, libc::STDERR_FILENO];

/// The columns of the terminal that this process writes to; `None` when it writes to none, or the terminal does not say.
pub fn terminal_width() -> Option<usize> {
    DESCRIPTORS.iter().find_map(|fd| {
        // SAFETY: an all-zero winsize is valid, and the call only writes into it; a closed descriptor is an error.
        let (outcome, size) = unsafe {
            let mut size: libc::winsize = std::mem::zeroed();
            (libc::ioctl(*fd, libc::TIOCGWINSZ, &raw mut size), size)
        };
        (outcome == 0 && size.ws_col > 0).then_some(usize::from(size.ws_col))
    })
}
