//! What the C library's allocator keeps of memory that is free again. Knows
//! nothing of who used it.

/// How many heaps threads share. Each keeps what it once needed; two are enough
/// where threads mostly wait.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const HEAPS: libc::c_int = 2;

/// Bounds the allocator's heaps; to be called before threads are started.
/// Does nothing where the C library has no such thing.
pub fn share_heaps() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it only sets a number within the allocator.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, HEAPS);
    }
}

/// Gives free memory back to the system. It takes as long as walking the free
/// parts does, so it is for when nobody waits.
pub fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: the allocator may be asked this at any time, from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_in_use_stays() {
        super::share_heaps();
        let kept: Vec<Vec<u8>> = (0..64u8).map(|n| vec![n; 10_000]).collect();
        drop(vec![1u8; 5_000_000]);
        super::trim();
        assert!(kept.iter().enumerate().all(|(n, part)| part.iter().all(|b| usize::from(*b) == n)));
    }
}
