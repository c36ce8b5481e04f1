//! An MCP server that is a child process: one message a line on its standard
//! input and output. Knows nothing of what the messages say.

use super::error::quote_stderr;
use super::peer::{Peer, Said};
use super::pending::Slot;
use super::reading::Reading;
use super::stderr::Tail;
use super::writer::{Rejected, Writer};
use crate::error::{Error, Kind, Result};
use crate::observe::log::Redactor;
use crate::proc::{self, Child, Exit, Io, Spawn, find_program, thread};
use crate::util::Env;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// How long the last words of a process are waited for once it has ended.
/// They are in the pipe already; the limit matters only when a process that
/// left the group still holds the other end.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How to start the server.
pub(super) struct Program<'a> {
    pub command: &'a str,
    pub args: &'a [String],
    /// The complete environment.
    pub env: Env,
    pub cwd: Option<&'a Path>,
    /// Bytes of its standard error that are kept.
    pub stderr_tail: usize,
    /// Keeps its secrets out of what is quoted of it.
    pub redactor: Redactor,
    /// How long it has between SIGTERM and SIGKILL when it closes its output but stays.
    pub kill_grace: Duration,
}

pub(super) struct Stdio {
    child: Child,
    writer: Arc<Writer>,
    reading: Arc<Reading<File>>,
    stderr: Arc<Tail>,
    stopped: AtomicBool,
}

impl Stdio {
    /// Starts the server and the threads that read from it.
    pub fn start(program: Program, peer: &Arc<Peer>) -> Result<Stdio> {
        let server = &peer.server;
        let failed = |what: String| {
            Error::new(Kind::Unavailable, format!("starting the server {server}: {what}")).server(server)
        };
        let cwd = program.cwd.map_or_else(|| std::env::current_dir().unwrap_or("/".into()), PathBuf::from);
        let path = find_program(OsStr::new(program.command), &program.env, &cwd).map_err(|e| {
            let said = failed(e.message().to_owned());
            match e.hint_text() {
                Some(hint) => said.hint(hint),
                None => said,
            }
        })?;
        let child = proc::spawn(Spawn {
            program: path,
            args: program.args.iter().map(Into::into).collect(),
            env: program.env.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
            cwd: program.cwd.map(PathBuf::from),
            stdin: Io::Piped,
            stdout: Io::Piped,
            stderr: Io::Piped,
            own_group: true,
            die_with_parent: true,
            marked: true,
            ..Spawn::default()
        })
        .map_err(|e| failed(e.to_string()))?;
        Stdio::attach(child.clone(), program, peer).map_err(|e| {
            child.signal_group(libc::SIGKILL);
            failed(e.to_string())
        })
    }

    fn attach(child: Child, program: Program, peer: &Arc<Peer>) -> io::Result<Stdio> {
        let piped = |pipe: Option<File>| pipe.ok_or_else(|| io::Error::other("a pipe is missing"));
        let writer = Writer::new(&peer.server, piped(child.take_stdin())?)?;
        let reading = Arc::new(Reading::new(piped(child.take_stdout())?));
        let said = Arc::clone(&peer.hooks.said);
        let heard = move |line: &str| said(Said::Stderr(line));
        let stderr = piped(child.take_stderr())?;
        let stderr = Tail::follow(&peer.server, stderr, program.stderr_tail, program.redactor, heard)?;
        let ending = Ending {
            peer: Arc::clone(peer),
            writer: Arc::clone(&writer),
            child: child.clone(),
            stderr: Arc::clone(&stderr),
            kill_grace: program.kill_grace,
        };
        let late = Arc::clone(&writer);
        peer.send_late_through(move |line| drop(late.send(line, None)));
        let (reader, own) = (ending.clone(), reading.clone());
        let (still, finished) = mpsc::channel::<()>();
        thread::spawn(&format!("out {}", peer.server), move || {
            let send = |line| drop(reader.writer.send(line, None));
            own.run(&reader.peer, send);
            reader.output_ended();
            drop(still);
        })?;
        child.on_exit(move |exit| ending.process_ended(exit, &finished));
        Ok(Stdio { child, writer, reading, stderr, stopped: AtomicBool::new(false) })
    }

    pub fn send(&self, line: Vec<u8>, slot: Option<&Arc<Slot>>) -> Result<(), Rejected> {
        self.writer.send(line, slot)
    }

    /// Reads what is there already.
    pub fn drain(&self, peer: &Arc<Peer>) {
        self.reading.drain(peer, |line| drop(self.writer.send(line, None)));
    }

    /// Reads for a caller that has sent its request, for as long as that is worth it.
    pub fn help(&self, peer: &Arc<Peer>, slot: &Slot, deadline: Option<Instant>) {
        self.reading.help(peer, slot, deadline, |line| drop(self.writer.send(line, None)));
    }

    /// Takes back a message of which nothing is out yet.
    pub fn retract(&self, slot: &Arc<Slot>) -> bool {
        self.writer.retract(slot)
    }

    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    pub fn stderr(&self) -> &Tail {
        &self.stderr
    }

    /// Closes its input, waits, SIGTERM to the group, waits, SIGKILL.
    pub fn stop(&self, after_eof: Duration, after_term: Duration) {
        self.stopped.store(true, Ordering::Relaxed);
        // Before it learns of the end: later its own children are nobody's.
        let family = self.child.family();
        self.writer.close();
        self.child.stop(after_eof, after_term);
        family.end();
    }
}

impl Drop for Stdio {
    /// A connection that was forgotten leaves no process behind.
    fn drop(&mut self) {
        if !self.stopped.load(Ordering::Relaxed) {
            self.child.signal_group(libc::SIGKILL);
        }
    }
}

/// What the end of the process, or of its output, needs.
#[derive(Clone)]
struct Ending {
    peer: Arc<Peer>,
    writer: Arc<Writer>,
    child: Child,
    stderr: Arc<Tail>,
    kill_grace: Duration,
}

impl Ending {
    /// Nothing more will come: mostly because the process has ended.
    fn output_ended(&self) {
        match self.child.wait_timeout(LAST_WORDS) {
            Some(exit) => self.close(&how(exit)),
            None => {
                self.close("closed its standard output while it was running");
                self.child.stop(Duration::ZERO, self.kill_grace);
            }
        }
    }

    /// The process has ended. What it wrote before is still read, and the
    /// reader tells the end; unless a stranger keeps the pipe open.
    fn process_ended(&self, exit: Exit, reader: &Receiver<()>) {
        let _ = reader.recv_timeout(LAST_WORDS);
        self.close(&how(exit));
    }

    fn close(&self, what: &str) {
        if self.peer.closed().is_some() {
            return;
        }
        self.stderr.settle(LAST_WORDS);
        self.writer.close();
        let detail =
            format!("{}{}", self.stderr.hide(&self.peer.noise()), quote_stderr(&self.stderr.last_lines()));
        self.peer.close(what, &detail);
    }
}

fn how(exit: Exit) -> String {
    match exit {
        Exit::Code(_) => format!("exited ({exit})"),
        Exit::Signal(_) => format!("was ended by {exit}"),
    }
}
