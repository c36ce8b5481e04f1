//! Input that is needed whole, read up to a limit: a pipe or a device may have
//! no end. Knows nothing of what it is for.

use crate::error::{Error, Kind, Result};
use std::io::Read;

/// What standard input is called in messages.
pub const STDIN: &str = "standard input";

/// All that `from` has, which messages call `what`.
///
/// # Errors
/// `TooLarge` as soon as it is more than `most` bytes, the value of `transport.maxBody`: what is
/// read goes to the daemon, which takes no more. `Unreadable` when it cannot be.
pub fn whole(from: &mut dyn Read, most: u64, what: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = from.take(most.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|e| Error::unreadable(what, &e))?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > most {
        return Err(Error::new(Kind::TooLarge, format!("{what} has more than {most} bytes"))
            .hint("transport.maxBody (--transport-max-body) sets the limit"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_refused_at_the_limit() {
        assert_eq!(whole(&mut &b"abc"[..], 3, STDIN).unwrap(), b"abc");
        let mut endless = std::io::repeat(0);
        let e = whole(&mut endless, 1 << 16, STDIN).unwrap_err();
        assert_eq!((e.kind(), e.message()), (Kind::TooLarge, "standard input has more than 65536 bytes"));
    }
}
