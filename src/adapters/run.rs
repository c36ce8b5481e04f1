//! Runs a program once: stdin in, stdout and stderr out, with a limit on time
//! and on output. Nothing of it is left afterwards. Knows nothing of tools.

use crate::mcp::Cancel;
use crate::proc::{self, Exit, Io, Spawn, thread};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How much of stderr is kept: its end, where programs say what went wrong.
const STDERR_KEPT: usize = 8 * 1024;

/// How long output is waited for once the program has ended. It is in the pipe
/// already; the limit matters only when something outside its group holds the other end.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How long the program has between SIGTERM and SIGKILL.
const KILL_GRACE: Duration = Duration::from_secs(2);

/// What is to be run.
pub struct Job {
    /// The file.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// The complete environment.
    pub env: Vec<(std::ffi::OsString, std::ffi::OsString)>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// What it reads; without it, nothing.
    pub stdin: Option<String>,
    /// How long it may run; zero is no limit.
    pub timeout: Duration,
    /// How many bytes it may write to stdout.
    pub output: usize,
}

/// How it went.
pub enum Ended {
    /// By itself.
    Exited {
        /// How.
        exit: Exit,
        /// All that it wrote there.
        stdout: Vec<u8>,
        /// The end of what it wrote there.
        stderr: Vec<u8>,
    },
    /// It took too long.
    TimedOut {
        /// The end of what it wrote there.
        stderr: Vec<u8>,
    },
    /// It wrote too much.
    TooMuch,
    /// Nobody wants it any more.
    Cancelled,
}

/// What a reader has read so far.
type Read1 = Arc<Mutex<Vec<u8>>>;

/// Runs it to its end.
///
/// # Errors
/// When it cannot be started.
pub fn run(job: Job, cancel: &Cancel) -> io::Result<Ended> {
    let child = proc::spawn(Spawn {
        program: job.program,
        args: job.args.into_iter().map(Into::into).collect(),
        env: job.env,
        cwd: Some(job.cwd),
        stdin: if job.stdin.is_some() { Io::Piped } else { Io::Null },
        stdout: Io::Piped,
        stderr: Io::Piped,
        own_group: true,
        die_with_parent: true,
        ..Spawn::default()
    })?;
    let killed = child.clone();
    let _guard = cancel.on_cancel(move || killed.signal_group(libc::SIGKILL));
    let started = (|| {
        if let (Some(text), Some(mut pipe)) = (job.stdin, child.take_stdin()) {
            // A program that reads nothing closes the pipe, which is its own affair.
            thread::spawn("program-in", move || drop(pipe.write_all(text.as_bytes())))?;
        }
        let missing = || io::Error::other("a pipe is missing");
        let full = child.clone();
        let over = move || full.signal_group(libc::SIGKILL);
        let out =
            follow("program-out", child.take_stdout().ok_or_else(missing)?, Keep::Start(job.output), over)?;
        let err =
            follow("program-err", child.take_stderr().ok_or_else(missing)?, Keep::End(STDERR_KEPT), || {})?;
        Ok::<_, io::Error>((out, err))
    })();
    let ((stdout, out_done), (stderr, err_done)) = match started {
        Ok(both) => both,
        Err(e) => {
            child.signal_group(libc::SIGKILL);
            child.wait();
            return Err(e);
        }
    };
    let exit = match job.timeout {
        Duration::ZERO => Some(child.wait()),
        limit => child.wait_timeout(limit),
    };
    let timed_out = exit.is_none();
    let exit = exit.unwrap_or_else(|| child.stop(Duration::ZERO, KILL_GRACE));
    let _ = err_done.recv_timeout(LAST_WORDS);
    let too_much = matches!(out_done.recv_timeout(LAST_WORDS), Ok(true));
    let taken = |read: Read1| std::mem::take(&mut *read.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(match () {
        () if cancel.is_cancelled() => Ended::Cancelled,
        () if too_much => Ended::TooMuch,
        () if timed_out => Ended::TimedOut { stderr: taken(stderr) },
        () => Ended::Exited { exit, stdout: taken(stdout), stderr: taken(stderr) },
    })
}

/// Which part of a stream matters.
#[derive(Clone, Copy)]
enum Keep {
    /// The start; more than this is too much.
    Start(usize),
    /// The end.
    End(usize),
}

/// Reads a pipe to its end on a thread; what is received at the end says whether it was too much.
fn follow(
    name: &str,
    mut pipe: File,
    keep: Keep,
    over: impl FnOnce() + Send + 'static,
) -> io::Result<(Read1, Receiver<bool>)> {
    /// What a pipe holds: more is never read at once.
    const CHUNK: usize = 64 * 1024;
    let read: Read1 = Arc::default();
    let (done, wait) = mpsc::channel();
    let kept = Arc::clone(&read);
    thread::spawn(name, move || {
        let mut chunk = vec![0; CHUNK];
        let mut over = Some(over);
        loop {
            let n = match pipe.read(&mut chunk) {
                Ok(0) => break,
                Ok(n) => n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend_from_slice(&chunk[..n]);
            match keep {
                Keep::Start(limit) if kept.len() > limit => {
                    kept.clear();
                    if let Some(over) = over.take() {
                        over();
                    }
                    break;
                }
                Keep::End(limit) if kept.len() > 2 * limit => {
                    let cut = kept.len() - limit;
                    kept.drain(..cut);
                }
                _ => {}
            }
        }
        let _ = done.send(over.is_none());
    })?;
    Ok((read, wait))
}
