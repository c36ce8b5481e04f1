//! A child process that was started: its pipes, its end, and how to stop it.
//! Knows nothing of how it came to be.

use super::family::Family;
use super::marks::Mark;
use super::sys::{check, kill, kill_group};
use super::thread;
use std::fmt;
use std::fs::File;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this status.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

impl Exit {
    /// The exit code that a shell would report: `128 + n` for a signal.
    pub fn code(self) -> u8 {
        match self {
            Exit::Code(code) => code as u8,
            Exit::Signal(signal) => (128 + signal) as u8,
        }
    }
}

impl fmt::Display for Exit {
    /// `exit code 3`, or `signal 9 (SIGKILL)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let signal = match *self {
            Exit::Code(code) => return write!(f, "exit code {code}"),
            Exit::Signal(signal) => signal,
        };
        write!(f, "signal {signal}")?;
        let name = match signal {
            libc::SIGHUP => "SIGHUP",
            libc::SIGINT => "SIGINT",
            libc::SIGQUIT => "SIGQUIT",
            libc::SIGILL => "SIGILL",
            libc::SIGTRAP => "SIGTRAP",
            libc::SIGABRT => "SIGABRT",
            libc::SIGBUS => "SIGBUS",
            libc::SIGFPE => "SIGFPE",
            libc::SIGKILL => "SIGKILL",
            libc::SIGUSR1 => "SIGUSR1",
            libc::SIGSEGV => "SIGSEGV",
            libc::SIGUSR2 => "SIGUSR2",
            libc::SIGPIPE => "SIGPIPE",
            libc::SIGALRM => "SIGALRM",
            libc::SIGTERM => "SIGTERM",
            libc::SIGXCPU => "SIGXCPU",
            libc::SIGSYS => "SIGSYS",
            _ => return Ok(()),
        };
        write!(f, " ({name})")
    }
}

/// A child process. Clones are the same child. It is reaped as soon as it
/// ends, whatever its owner does, and what is left of its process group is
/// killed then. Dropping the last clone does not end it.
#[derive(Clone)]
pub struct Child(Arc<Inner>);

impl fmt::Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child").field("pid", &self.0.pid).field("exit", &*self.0.exit()).finish()
    }
}

type Listener = Box<dyn FnOnce(Exit) + Send>;

struct Inner {
    pid: u32,
    leads_group: bool,
    mark: Option<Mark>,
    pipes: Mutex<[Option<File>; 3]>,
    /// Set in the same critical section in which the child is reaped, so that
    /// whoever holds the lock and sees `None` may still use the pid.
    exit: Mutex<Option<Exit>>,
    ended: Condvar,
    listeners: Mutex<Vec<Listener>>,
}

impl Inner {
    fn exit(&self) -> MutexGuard<'_, Option<Exit>> {
        self.exit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn signal(&self, signal: i32) -> io::Result<()> {
        if self.leads_group { kill_group(self.pid, signal) } else { kill(self.pid, signal) }
    }

    /// Waits for the end. The order matters: first the end is seen without
    /// reaping, then the rest of the group is killed while the pid (and with
    /// it the group's number) is still ours, then the child is reaped.
    fn watch(&self) {
        let id = self.pid as libc::id_t;
        loop {
            // SAFETY: an all-zero siginfo is valid, and waitid writes one.
            let outcome = unsafe {
                let mut info: libc::siginfo_t = std::mem::zeroed();
                check(libc::waitid(libc::P_PID, id, &raw mut info, libc::WEXITED | libc::WNOWAIT))
            };
            match outcome {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                _ => break,
            }
        }
        // What has left the group is ended before anybody hears of the end, and without
        // the lock: a look at every process of the machine takes milliseconds.
        if self.leads_group {
            let _ = kill_group(self.pid, libc::SIGKILL);
        }
        if let Some(mark) = &self.mark {
            mark.end();
        }
        let mut exit = self.exit();
        super::census::ended(self.pid);
        let how = reap(self.pid);
        super::strays::forget(self.pid);
        *exit = Some(how);
        self.ended.notify_all();
        // Whoever comes with a listener from now on finds the exit.
        let listeners = std::mem::take(&mut *self.listeners());
        drop(exit);
        for listener in listeners {
            listener(how);
        }
    }

    fn listeners(&self) -> MutexGuard<'_, Vec<Listener>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn reap(pid: u32) -> Exit {
    let mut status = 0;
    loop {
        // SAFETY: waitpid writes one integer.
        match check(unsafe { libc::waitpid(pid as libc::pid_t, &raw mut status, 0) }) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Exit::Code(-1), // reaped by somebody else: the end is sure, the status is lost
            Ok(_) if libc::WIFSIGNALED(status) => return Exit::Signal(libc::WTERMSIG(status)),
            Ok(_) => return Exit::Code(libc::WEXITSTATUS(status)),
        }
    }
}

impl Child {
    /// Takes over a process that was just forked, and starts its waiter.
    pub(super) fn adopt(
        pid: u32,
        leads_group: bool,
        mark: Option<Mark>,
        pipes: [Option<File>; 3],
    ) -> io::Result<Child> {
        let inner = Arc::new(Inner {
            pid,
            leads_group,
            mark,
            pipes: Mutex::new(pipes),
            exit: Mutex::new(None),
            ended: Condvar::new(),
            listeners: Mutex::default(),
        });
        let watched = Arc::clone(&inner);
        if let Err(e) = thread::spawn(&format!("wait-{pid}"), move || watched.watch()) {
            // Nobody would reap it: better no child than a zombie.
            let _ = inner.signal(libc::SIGKILL);
            reap(pid);
            super::strays::forget(pid);
            return Err(e);
        }
        Ok(Child(inner))
    }

    /// Its process id, also when it has ended.
    pub fn pid(&self) -> u32 {
        self.0.pid
    }

    fn take(&self, which: usize) -> Option<File> {
        self.0.pipes.lock().unwrap_or_else(PoisonError::into_inner)[which].take()
    }

    /// Our end of its standard input; once, and only if it was [`Io::Piped`](super::Io::Piped).
    pub fn take_stdin(&self) -> Option<File> {
        self.take(0)
    }
    /// Our end of its standard output; once.
    pub fn take_stdout(&self) -> Option<File> {
        self.take(1)
    }
    /// Our end of its standard error; once.
    pub fn take_stderr(&self) -> Option<File> {
        self.take(2)
    }

    /// Waits for its end. Any number of threads may.
    pub fn wait(&self) -> Exit {
        let mut exit = self.0.exit();
        loop {
            if let Some(exit) = *exit {
                return exit;
            }
            exit = self.0.ended.wait(exit).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits at most so long for its end; zero looks without waiting.
    pub fn wait_timeout(&self, timeout: Duration) -> Option<Exit> {
        let Some(deadline) = Instant::now().checked_add(timeout) else {
            return Some(self.wait());
        };
        let mut exit = self.0.exit();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if exit.is_some() || left.is_zero() {
                return *exit;
            }
            exit = self.0.ended.wait_timeout(exit, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Runs `listener` once it has ended, on the thread that waits for it (at
    /// once, on this one, when it has ended already). That thread has nothing
    /// else to do by then: the listener may take its time.
    pub fn on_exit(&self, listener: impl FnOnce(Exit) + Send + 'static) {
        let exit = self.0.exit();
        match *exit {
            None => self.0.listeners().push(Box::new(listener)),
            Some(how) => {
                drop(exit);
                listener(how);
            }
        }
    }

    /// Sends a signal to its group (to the child alone when it leads none).
    /// Does nothing once it has been reaped: the number may be somebody else's by then.
    pub fn signal_group(&self, signal: i32) {
        let exit = self.0.exit();
        if exit.is_none() {
            let _ = self.0.signal(signal);
        }
    }

    /// The processes below it at this moment; none once it has ended.
    pub fn family(&self) -> Family {
        let exit = self.0.exit();
        if exit.is_none() { Family::of(self.pid()) } else { Family::default() }
    }

    /// Ends it: closes its standard input (unless that was taken: then its
    /// taker has to), waits, sends SIGTERM to the group, waits, sends SIGKILL.
    /// What it had started beyond its group is killed at the end.
    pub fn stop(&self, after_eof: Duration, after_term: Duration) -> Exit {
        let family = self.family();
        let exit = self.end(after_eof, after_term);
        family.end();
        exit
    }

    fn end(&self, after_eof: Duration, after_term: Duration) -> Exit {
        drop(self.take_stdin());
        if let Some(exit) = self.wait_timeout(after_eof) {
            return exit;
        }
        self.signal_group(libc::SIGTERM);
        if let Some(exit) = self.wait_timeout(after_term) {
            return exit;
        }
        self.signal_group(libc::SIGKILL);
        self.wait()
    }
}
