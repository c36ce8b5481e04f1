//! The frames of a channel: a length (four bytes, big-endian) and as many bytes
//! of UTF-8 JSON. Knows nothing of what they say.

use super::http::write_parts;
use std::io::{self, ErrorKind, Read, Write};

/// A frame's buffer starts no larger than this, whatever length was announced.
const FRAME_START: usize = 64 * 1024;

/// Reads one frame; none when the stream ends between frames. A frame longer
/// than `max` bytes is an error of kind `InvalidData`, after which the stream is useless.
pub fn read(stream: &mut impl Read, max: u64) -> io::Result<Option<Vec<u8>>> {
    let mut header = [0u8; 4];
    let mut have = 0;
    while have < header.len() {
        match stream.read(&mut header[have..]) {
            Ok(0) if have == 0 => return Ok(None),
            Ok(0) => return Err(io::Error::new(ErrorKind::UnexpectedEof, "inside a frame's length")),
            Ok(n) => have += n,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    let length = u32::from_be_bytes(header);
    if u64::from(length) > max {
        return Err(io::Error::new(
            ErrorKind::InvalidData,
            format!("a frame of {length} bytes is too large"),
        ));
    }
    let length = length as usize;
    let mut body = Vec::with_capacity(length.min(FRAME_START));
    let got = stream.take(length as u64).read_to_end(&mut body)?;
    if got != length {
        return Err(io::Error::new(ErrorKind::UnexpectedEof, "inside a frame"));
    }
    Ok(Some(body))
}

/// Writes one frame made of these parts, in one system call where the stream takes it.
pub fn write(stream: &mut impl Write, parts: &[&[u8]]) -> io::Result<()> {
    let length: usize = parts.iter().map(|p| p.len()).sum();
    let header = u32::try_from(length)
        .map_err(|_| io::Error::new(ErrorKind::InvalidData, "a frame holds less than 4 GiB"))?
        .to_be_bytes();
    let mut all: Vec<&[u8]> = Vec::with_capacity(parts.len() + 1);
    all.push(&header);
    all.extend_from_slice(parts);
    write_parts(stream, &all)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte a read.
    struct Drip<'a>(&'a [u8]);
    impl Read for Drip<'_> {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            let n = self.0.len().min(1).min(buf.len());
            buf[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    #[test]
    fn frames_survive_any_split() {
        let mut wire = Vec::new();
        write(&mut wire, &[b"{\"a\":", b"", b"1}"]).unwrap();
        write(&mut wire, &[b""]).unwrap();
        let mut drip = Drip(&wire);
        assert_eq!(read(&mut drip, 100).unwrap().unwrap(), b"{\"a\":1}");
        assert_eq!(read(&mut drip, 100).unwrap().unwrap(), b"");
        assert!(read(&mut drip, 100).unwrap().is_none());
    }

    #[test]
    fn a_cut_or_oversized_frame_is_an_error() {
        let mut wire = Vec::new();
        write(&mut wire, &[b"hello"]).unwrap();
        for cut in 1..wire.len() {
            let e = read(&mut Drip(&wire[..cut]), 100).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::UnexpectedEof, "cut at {cut}");
        }
        assert_eq!(read(&mut &wire[..], 4).unwrap_err().kind(), ErrorKind::InvalidData);
        // An announced 4 GiB costs no memory.
        assert_eq!(
            read(&mut &b"\xff\xff\xff\xffx"[..], u64::MAX).unwrap_err().kind(),
            ErrorKind::UnexpectedEof
        );
    }

    #[test]
    fn mutated_frames_never_give_more_than_came() {
        let mut two = Vec::new();
        write(&mut two, &[b"{\"id\":1,\"op\":\"call\"}"]).unwrap();
        write(&mut two, &[b"{\"cancel\":1}"]).unwrap();
        crate::util::mutate::each(&[&two, b"\0\0\0\0\0\0\0\x01x", b"\xff\xff\xff\xff{"], |wire| {
            let mut pieces = crate::util::mutate::Pieces::new(wire);
            let (mut frames, mut again) = (0, Vec::new());
            while let Ok(Some(frame)) = read(&mut pieces, 1 << 20) {
                write(&mut again, &[&frame]).unwrap();
                frames += 1;
            }
            assert!(wire.starts_with(&again), "{frames} frames are what they were");
        });
    }
}
