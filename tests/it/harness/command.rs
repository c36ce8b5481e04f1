//! One run of mcpx: what goes in, and what must come out.

use super::process::signal;
use super::world::World;
use serde_json::Value;
use std::ffi::OsString;
use std::fmt;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long a command may take before the test fails; far beyond what any does on a slow machine.
const LIMIT: Duration = Duration::from_secs(60);

/// How long a stream may stay open after its process has ended.
const STREAM_LIMIT: Duration = Duration::from_secs(5);

/// What a stream must hold.
enum Expect {
    Anything,
    Exactly(String),
    Parts(Vec<String>),
}

impl Expect {
    fn part(&mut self, text: &str) {
        match self {
            Expect::Parts(parts) => parts.push(text.to_owned()),
            _ => *self = Expect::Parts(vec![text.to_owned()]),
        }
    }
    fn problem(&self, name: &str, text: &str) -> Option<String> {
        match self {
            Expect::Anything => None,
            Expect::Exactly(wanted) if wanted == text => None,
            Expect::Exactly(wanted) => Some(format!("{name} should be {wanted:?}")),
            Expect::Parts(parts) => {
                let missing: Vec<&String> = parts.iter().filter(|p| !text.contains(p.as_str())).collect();
                (!missing.is_empty()).then(|| format!("{name} should contain {missing:?}"))
            }
        }
    }
}

/// A command in the making. Unless told otherwise it must end with 0 and an empty stderr.
#[must_use]
pub struct Mcpx<'w> {
    world: &'w World,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    dir: PathBuf,
    stdin: Vec<u8>,
    status: i32,
    stdout: Option<Expect>,
    stderr: Expect,
    limit: Duration,
}

impl<'w> Mcpx<'w> {
    pub(super) fn new(world: &'w World, args: Vec<OsString>) -> Mcpx<'w> {
        Mcpx {
            world,
            args,
            env: Vec::new(),
            dir: world.dir(),
            stdin: Vec::new(),
            status: 0,
            stdout: None,
            stderr: Expect::Exactly(String::new()),
            limit: LIMIT,
        }
    }

    /// What is written to its stdin, which then ends.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }
    /// Sets a variable.
    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }
    /// The working directory, relative to the project's.
    pub fn dir(mut self, path: &str) -> Self {
        self.dir = self.dir.join(path);
        self
    }
    /// How long it may take.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }
    /// The exit code that it must end with; a signal `n` that ended it counts as `-n`.
    pub fn status(mut self, status: i32) -> Self {
        self.status = status;
        self
    }
    /// All that stdout must be.
    pub fn stdout(mut self, text: &str) -> Self {
        self.stdout = Some(Expect::Exactly(text.to_owned()));
        self
    }
    /// A part that stdout must contain.
    pub fn stdout_has(mut self, part: &str) -> Self {
        self.stdout.get_or_insert(Expect::Anything).part(part);
        self
    }
    /// A part that stderr must contain.
    pub fn stderr_has(mut self, part: &str) -> Self {
        self.stderr.part(part);
        self
    }
    /// Lets stderr be what it likes.
    pub fn any_stderr(mut self) -> Self {
        self.stderr = Expect::Anything;
        self
    }

    /// Runs it, compares status and stderr, and stdout where that was described, and returns all three.
    #[track_caller]
    pub fn run(self) -> Output {
        let (status, stdout, stderr) = (self.status, self.stdout.as_ref(), &self.stderr);
        let output = self.output();
        let mut problems = Vec::new();
        if output.status != status {
            problems.push(format!("the status should be {status}"));
        }
        problems.extend(stdout.and_then(|e| e.problem("stdout", &output.stdout())));
        problems.extend(stderr.problem("stderr", &output.stderr));
        assert!(problems.is_empty(), "{}\n{output}", problems.join("\n"));
        output
    }

    /// Runs it and compares all three; stdout must be empty unless it was described.
    #[track_caller]
    pub fn check(mut self) {
        self.stdout.get_or_insert(Expect::Exactly(String::new()));
        let _ = self.run();
    }

    /// Runs it and compares nothing.
    #[track_caller]
    pub fn output(&self) -> Output {
        self.launch().finish(self.limit)
    }

    /// Starts it; [`Running::finish`] waits for its end.
    #[track_caller]
    pub fn start(self) -> Running {
        self.launch()
    }

    #[track_caller]
    fn launch(&self) -> Running {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcpx"));
        command
            .args(&self.args)
            .current_dir(&self.dir)
            .env_clear()
            .envs(self.world.environment())
            .envs(self.env.iter().map(|(k, v)| (k, v)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("mcpx starts");
        let mut stdin = child.stdin.take().unwrap();
        let bytes = self.stdin.clone();
        // On a thread, so that a command that does not read cannot block the test.
        std::thread::spawn(move || {
            let _ = stdin.write_all(&bytes);
        });
        let line: Vec<String> = self.args.iter().map(|a| a.to_string_lossy().into_owned()).collect();
        Running {
            line: format!("mcpx {}", line.join(" ")),
            stdout: Some(drain(child.stdout.take().unwrap())),
            stderr: Some(drain(child.stderr.take().unwrap())),
            child,
        }
    }
}

/// Reads a stream to its end on a thread.
fn drain(mut stream: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let _ = sender.send(bytes);
    });
    receiver
}

/// A command at work.
pub struct Running {
    line: String,
    child: Child,
    stdout: Option<Receiver<Vec<u8>>>,
    stderr: Option<Receiver<Vec<u8>>>,
}

impl Running {
    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
    /// Sends it a signal.
    pub fn signal(&self, number: i32) {
        signal(self.child.id(), number);
    }
    /// Waits for its end.
    #[track_caller]
    pub fn wait(self) -> Output {
        self.finish(LIMIT)
    }

    #[track_caller]
    fn finish(mut self, limit: Duration) -> Output {
        let start = Instant::now();
        let mut late = false;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("waiting for mcpx") {
                break status;
            }
            if start.elapsed() > limit {
                late = true;
                self.signal(libc::SIGKILL);
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        let seconds = start.elapsed().as_secs_f64();
        let mut held = Vec::new();
        let mut take = |name: &str, stream: &mut Option<Receiver<Vec<u8>>>| {
            let stream = stream.take().expect("a stream is taken once");
            stream.recv_timeout(STREAM_LIMIT).unwrap_or_else(|e| {
                if e == RecvTimeoutError::Timeout {
                    held.push(name.to_owned());
                }
                Vec::new()
            })
        };
        let output = Output {
            line: self.line.clone(),
            status: code(status),
            stdout_bytes: take("stdout", &mut self.stdout),
            stderr: String::from_utf8_lossy(&take("stderr", &mut self.stderr)).into_owned(),
            seconds,
        };
        assert!(!late, "it did not end within {limit:?}\n{output}");
        assert!(
            held.is_empty(),
            "it ended, but something it started still holds its {}\n{output}",
            held.join(" and ")
        );
        output
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Only when a test failed between start and wait.
        if let Ok(None) = self.child.try_wait() {
            self.signal(libc::SIGKILL);
            let _ = self.child.wait();
        }
    }
}

fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| -status.signal().unwrap_or(0))
}

/// What a run gave.
#[derive(Debug)]
#[must_use]
pub struct Output {
    line: String,
    /// The exit code, or `-n` when signal `n` ended it.
    pub status: i32,
    /// All of stdout.
    pub stdout_bytes: Vec<u8>,
    /// All of stderr.
    pub stderr: String,
    /// How long it took.
    pub seconds: f64,
}

impl Output {
    /// stdout as text.
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.stdout_bytes).into_owned()
    }
    /// stdout as one JSON document.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout_bytes)
            .unwrap_or_else(|e| panic!("stdout is not JSON: {e}\n{self}"))
    }
    /// stdout as one JSON document a line.
    #[track_caller]
    pub fn json_lines(&self) -> Vec<Value> {
        let text = self.stdout();
        text.lines()
            .map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("not JSON: {e}: {l}")))
            .collect()
    }
    /// Fails unless stderr and stdout together contain each of these.
    #[track_caller]
    pub fn says(&self, parts: &[&str]) -> &Output {
        let text = format!("{}{}", self.stderr, self.stdout());
        for part in parts {
            assert!(text.contains(part), "it should say {part:?}\n{self}");
        }
        self
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stdout = self.stdout();
        let shown: String = stdout.chars().take(4000).collect();
        let cut = if shown.len() < stdout.len() { "…" } else { "" };
        write!(
            f,
            "command: {}\nstatus: {} after {:.2} s\nstdout: {shown}{cut}\nstderr: {}",
            self.line, self.status, self.seconds, self.stderr
        )
    }
}
