//! The standard descriptors, whoever else has made them ones that do not wait:
//! that flag belongs to the open file, which a program shares with whatever
//! started it. Knows nothing of what is read or written.

use super::sys::{poll_readable, poll_writable, unread};
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

/// A duplicate of a standard descriptor that waits for data or room where the descriptor itself would not.
/// One that is closed reads as empty and takes everything, as std has it.
#[derive(Debug)]
pub struct Patient(Option<File>);

impl From<File> for Patient {
    fn from(file: File) -> Patient {
        Patient(Some(file))
    }
}

impl Patient {
    fn of(fd: BorrowedFd<'_>) -> Patient {
        Patient(fd.try_clone_to_owned().ok().map(File::from))
    }

    /// Standard output, without a buffer.
    pub fn stdout() -> Patient {
        Patient::of(io::stdout().as_fd())
    }

    /// Standard error, without a buffer.
    pub fn stderr() -> Patient {
        Patient::of(io::stderr().as_fd())
    }

    /// Standard input, for whoever reads all of it: what is read ahead is lost to everybody else.
    pub fn stdin() -> BufReader<Patient> {
        BufReader::new(Patient::of(io::stdin().as_fd()))
    }

    /// Whether nobody will ever read what is written: the other end of a pipe was closed.
    pub fn unread(&self) -> bool {
        self.0.as_ref().is_some_and(|file| unread(file.as_fd()))
    }
}

impl Read for Patient {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some(file) = &mut self.0 else { return Ok(0) };
        loop {
            match file.read(into) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => drop(poll_readable(&[file.as_fd()], None)?),
                outcome => return outcome,
            }
        }
    }
}

impl Write for Patient {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(file) = &mut self.0 else { return Ok(bytes.len()) };
        loop {
            match file.write(bytes) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => drop(poll_writable(&*file, None)?),
                outcome => return outcome,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{set_nonblocking, thread};
    use super::*;
    use std::os::fd::OwnedFd;

    #[test]
    fn what_does_not_wait_is_waited_for() {
        let (reader, writer) = io::pipe().unwrap();
        set_nonblocking(&reader).unwrap();
        set_nonblocking(&writer).unwrap();
        let mut reader = Patient(Some(File::from(OwnedFd::from(reader))));
        let mut writer = Patient(Some(File::from(OwnedFd::from(writer))));
        let sent = vec![b'x'; 1 << 20];
        let expected = sent.clone();
        thread::spawn("writer", move || writer.write_all(&sent).unwrap()).unwrap();
        let mut read = Vec::new();
        reader.read_to_end(&mut read).unwrap();
        assert!(read == expected);
    }
}
