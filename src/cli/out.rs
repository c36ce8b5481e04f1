//! Standard output as the commands see it: buffered, exact, and quiet when the
//! reader has gone. Also where errors go. Knows nothing of what is written.

use crate::error::{Error, Result};
use crate::proc::Patient;
use std::io::{self, IsTerminal, Write};

/// How much is gathered before it is written.
const BUFFER: usize = 64 * 1024;

/// Standard output.
pub struct Out {
    /// Not std's own handle, which would flush at each line end; none in tests.
    file: Option<Patient>,
    buffer: Vec<u8>,
    closed: bool,
    terminal: bool,
    /// In tests, what would have been written.
    #[cfg(test)]
    pub captured: Vec<u8>,
}

impl Out {
    /// This process's standard output.
    pub fn stdout() -> Out {
        let stdout = io::stdout();
        Out {
            file: Some(Patient::stdout()),
            buffer: Vec::new(),
            closed: false,
            terminal: stdout.is_terminal(),
            #[cfg(test)]
            captured: Vec::new(),
        }
    }
    /// Whether a person is looking.
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }
    /// Whether the reader has closed its end.
    pub fn is_closed(&self) -> bool {
        self.closed
    }
    /// Passes on what was gathered, and answers whether somebody still reads: for who waits for more
    /// to write, and would else not learn that the reader has left.
    pub fn is_read(&mut self) -> Result<bool> {
        self.flush()?;
        self.closed |= self.file.as_ref().is_some_and(Patient::unread);
        Ok(!self.closed)
    }
    /// Writes bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        if self.buffer.len() + bytes.len() > BUFFER {
            self.flush()?;
        }
        if bytes.len() >= BUFFER {
            return self.write(bytes);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }
    /// Writes text.
    pub fn text(&mut self, text: &str) -> Result<()> {
        self.bytes(text.as_bytes())
    }
    /// Writes text and a line end.
    pub fn line(&mut self, text: &str) -> Result<()> {
        self.text(text)?;
        self.bytes(b"\n")
    }
    /// Writes a JSON document and a line end: indented for a person, else on one line.
    pub fn json(&mut self, value: &serde_json::Value) -> Result<()> {
        let text =
            if self.terminal { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
        self.line(&text.map_err(|e| super::internal(format!("writing JSON: {e}")))?)
    }
    /// Writes what has been gathered.
    pub fn flush(&mut self) -> Result<()> {
        let buffer = std::mem::take(&mut self.buffer);
        let outcome = self.write(&buffer);
        self.buffer = buffer;
        self.buffer.clear();
        outcome
    }
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        #[cfg(test)]
        {
            if self.file.is_none() {
                self.captured.extend_from_slice(bytes);
                return Ok(());
            }
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write_all(bytes).map_err(|e| {
            self.closed = e.kind() == io::ErrorKind::BrokenPipe;
            Error::unwritable("to standard output", &e)
        })
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes(bytes).map(|()| bytes.len()).map_err(|e| io::Error::other(e.message().to_owned()))
    }
    fn flush(&mut self) -> io::Result<()> {
        Out::flush(self).map_err(|e| io::Error::other(e.message().to_owned()))
    }
}

/// Prints an error for a person. That standard error may be closed is no reason to fail.
pub fn complain(e: &Error) {
    let text = format!("mcpx: {e}\n");
    let _ = Patient::stderr().write_all(text.as_bytes());
}

/// Prints a note for a person: something to know that is not the answer and not an error.
pub fn note(text: &str) {
    let text = format!("mcpx: {text}\n");
    let _ = Patient::stderr().write_all(text.as_bytes());
}

/// An output that keeps what it is given.
#[cfg(test)]
pub fn capture() -> Out {
    Out { file: None, buffer: Vec::new(), closed: false, terminal: false, captured: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_writes_are_gathered_and_large_ones_keep_their_order() {
        let mut out = capture();
        out.text("a").unwrap();
        assert!(out.captured.is_empty());
        out.bytes(&vec![b'b'; BUFFER]).unwrap();
        out.line("c").unwrap();
        out.flush().unwrap();
        assert_eq!(out.captured.len(), BUFFER + 3);
        assert_eq!((out.captured[0], out.captured[1], out.captured[BUFFER + 1]), (b'a', b'b', b'c'));
    }

    #[test]
    fn a_closed_reader_is_told_apart() {
        let (read, write) = io::pipe().unwrap();
        drop(read);
        let mut out = capture();
        out.file = Some(std::fs::File::from(std::os::fd::OwnedFd::from(write)).into());
        out.text("x").unwrap();
        assert!(out.flush().is_err());
        assert!(out.is_closed());
    }
}
