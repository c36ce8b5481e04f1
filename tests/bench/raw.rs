//! The least that a client can do: one server over its own pipes, no library.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

/// A demonstration server, spoken to directly.
pub struct Raw {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    id: u64,
    line: String,
}

impl Raw {
    /// Starts and initializes one.
    pub fn start() -> Raw {
        let mut child = Command::new(env!("CARGO_BIN_EXE_mcpx"))
            .arg("demo-server")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the demonstration server starts");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("it has a stdout"));
        let mut raw = Raw { child, input, output, id: 0, line: String::new() };
        raw.write(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"0"}}}"#);
        raw.read();
        raw.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        raw
    }

    fn write(&mut self, message: &str) {
        let input = self.input.as_mut().expect("its stdin is open");
        input.write_all(format!("{message}\n").as_bytes()).expect("it reads");
    }

    fn read(&mut self) {
        self.line.clear();
        self.output.read_line(&mut self.line).expect("it answers");
    }

    fn ask(&mut self) {
        self.id += 1;
        let id = self.id;
        self.write(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"hi"}}}}}}"#
        ));
    }

    /// One call.
    pub fn call(&mut self) {
        self.ask();
        self.read();
    }

    /// How long `n` calls take that are sent before the first answer is read, in ms.
    pub fn timed(&mut self, n: usize) -> f64 {
        let start = Instant::now();
        for _ in 0..n {
            self.ask();
        }
        for _ in 0..n {
            self.read();
        }
        start.elapsed().as_secs_f64() * 1000.0
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}
