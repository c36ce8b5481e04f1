//! Starts child processes, all of them from one thread that never ends: a
//! parent-death signal is sent when the *thread* that forked ends, not the
//! process. Knows nothing of what the children are for.

use super::child::Child;
use super::marks::{MARK, Mark};
use super::sys::{INHERITED_NOFILE, check};
use super::thread;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, PoisonError};

/// What one of a child's three standard descriptors is.
#[derive(Debug, Default)]
pub enum Io {
    /// `/dev/null`.
    #[default]
    Null,
    /// Ours.
    Inherit,
    /// A pipe, whose other end is taken from the [`Child`].
    Piped,
    /// This descriptor, which is ours no more.
    Fd(OwnedFd),
}

impl From<Io> for Stdio {
    fn from(io: Io) -> Stdio {
        match io {
            Io::Null => Stdio::null(),
            Io::Inherit => Stdio::inherit(),
            Io::Piped => Stdio::piped(),
            Io::Fd(fd) => Stdio::from(fd),
        }
    }
}

/// All that decides how a child starts.
#[derive(Debug, Default)]
pub struct Spawn {
    /// The file to execute; see [`find_program`](super::find_program).
    pub program: PathBuf,
    /// The arguments after the program's name.
    pub args: Vec<OsString>,
    /// The complete environment: nothing of ours is added.
    pub env: Vec<(OsString, OsString)>,
    /// The directory it starts in, instead of ours.
    pub cwd: Option<PathBuf>,
    /// Descriptor 0.
    pub stdin: Io,
    /// Descriptor 1.
    pub stdout: Io,
    /// Descriptor 2.
    pub stderr: Io,
    /// More descriptors, each with the number that the child sees it under (3
    /// or above). No other descriptor of ours reaches the child.
    pub fds: Vec<(OwnedFd, i32)>,
    /// Leads a process group of its own, which dies with it.
    pub own_group: bool,
    /// Leads a session (and so a group) of its own, without a terminal.
    pub own_session: bool,
    /// Is killed when this process ends, however that happens.
    pub die_with_parent: bool,
    /// Whatever it starts ends with it, however far that detached itself: its
    /// environment gets [`MARK`], by which all of it is found.
    pub marked: bool,
}

struct Job {
    spawn: Spawn,
    reply: Sender<io::Result<Child>>,
}

/// Starts a child and its waiter. An error says which of the program, its
/// interpreter and the working directory is missing.
pub fn spawn(spawn: Spawn) -> io::Result<Child> {
    let (reply, answer) = mpsc::channel();
    submit(Job { spawn, reply })?;
    // The sender is dropped unanswered only when starting it panicked.
    answer.recv().unwrap_or_else(|_| Err(io::Error::other("starting the process panicked")))
}

fn submit(job: Job) -> io::Result<()> {
    static SPAWNER: Mutex<Option<Sender<Job>>> = Mutex::new(None);
    let mut spawner = SPAWNER.lock().unwrap_or_else(PoisonError::into_inner);
    let sender = match &*spawner {
        Some(sender) => sender,
        None => {
            let (sender, jobs) = mpsc::channel();
            thread::spawn("spawner", move || serve(&jobs))?;
            spawner.insert(sender)
        }
    };
    sender.send(job).map_err(|_| io::Error::other("the spawner thread is gone"))
}

/// The spawner's life: as the sender sits in a static, it has no end.
fn serve(jobs: &Receiver<Job>) {
    block_signals();
    for Job { spawn, reply } in jobs {
        if let Ok(outcome) = catch_unwind(AssertUnwindSafe(|| start(spawn))) {
            let _ = reply.send(outcome);
        }
    }
}

/// Keeps our signal handlers out of the child between fork and exec, where
/// they would write into a pipe that it shares with us.
fn block_signals() {
    // SAFETY: the set is a plain value that sigfillset fills and pthread_sigmask reads.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
    }
}

/// Duplicates `fd` to the lowest free number from `least` on.
fn duplicate(fd: RawFd, least: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: fcntl with F_DUPFD_CLOEXEC takes an integer, and the new descriptor is nobody else's yet.
    unsafe { check(libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, least)).map(|fd| OwnedFd::from_raw_fd(fd)) }
}

#[allow(clippy::disallowed_methods, reason = "the one place that starts processes")]
fn start(spawn: Spawn) -> io::Result<Child> {
    let Spawn { program, args, env, cwd, stdin, stdout, stderr, fds, .. } = spawn;
    let leads_group = spawn.own_group || spawn.own_session;

    // Copies above all target numbers: no source can be a target then, neither
    // its own (where dup2 would keep close-on-exec) nor one that another overwrites.
    let mut above = 3;
    for &(_, target) in &fds {
        if target < 3 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("descriptor {target} is a standard one"),
            ));
        }
        above = above.max(target + 1);
    }
    let mut moves = Vec::with_capacity(fds.len());
    let mut held = Vec::with_capacity(fds.len() * 2);
    for (fd, target) in fds {
        let copy = duplicate(fd.as_raw_fd(), above)?;
        moves.push((copy.as_raw_fd(), target));
        // std reports a failing exec through a pipe that it is about to open;
        // it must not get a number that the child overwrites.
        let plug = duplicate(copy.as_raw_fd(), target)?;
        held.extend([fd, copy, plug]);
    }

    let mut command = Command::new(&program);
    command.args(args).env_clear().envs(env).stdin(stdin).stdout(stdout).stderr(stderr);
    if let Some(cwd) = &cwd {
        command.current_dir(cwd);
    }
    if spawn.own_group && !spawn.own_session {
        command.process_group(0);
    }
    let parent = std::process::id();
    let (own_session, die_with_parent) = (spawn.own_session, spawn.die_with_parent);
    let nofile = INHERITED_NOFILE.get().copied();
    // SAFETY: the closure allocates nothing, takes no lock, and makes only system calls.
    unsafe {
        command.pre_exec(move || prepare(own_session, die_with_parent.then_some(parent), nofile, &moves));
    }
    let mark = if spawn.marked { Mark::fresh() } else { None };
    if let Some(mark) = &mark {
        command.env(MARK, mark.to_string());
    }
    let mut child =
        super::strays::forking(|| command.spawn()).map_err(|e| explain(e, &program, cwd.as_deref()))?;
    drop(held);
    let pipes = [
        child.stdin.take().map(|p| File::from(OwnedFd::from(p))),
        child.stdout.take().map(|p| File::from(OwnedFd::from(p))),
        child.stderr.take().map(|p| File::from(OwnedFd::from(p))),
    ];
    if leads_group && die_with_parent {
        super::census::started(child.id());
    }
    Child::adopt(child.id(), leads_group, mark, pipes)
}

/// Runs in the child between fork and exec: system calls only.
fn prepare(
    own_session: bool,
    parent: Option<u32>,
    nofile: Option<libc::rlimit>,
    moves: &[(RawFd, RawFd)],
) -> io::Result<()> {
    // SAFETY: each call takes integers, or pointers to locals that outlive it.
    unsafe {
        if own_session {
            check(libc::setsid())?;
        }
        if let Some(parent) = parent {
            check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong))?;
            // The parent may have died before the line above: then no signal comes.
            if libc::getppid() as u32 != parent {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
        }
        // Our handlers are gone after exec, but a pending signal would still
        // run one as soon as the mask opens.
        for signal in 1..32 {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &raw mut action);
            let handled = action.sa_sigaction != libc::SIG_DFL && action.sa_sigaction != libc::SIG_IGN;
            // std ignores SIGPIPE in every Rust program; a child expects it to end it.
            if handled || signal == libc::SIGPIPE {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        if let Some(limit) = nofile {
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
        // What we inherited ourselves may lack the flag. Kernels before 5.11
        // don't know the call; there it is left as it is.
        libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
        for &(from, to) in moves {
            check(libc::dup2(from, to))?;
        }
    }
    Ok(())
}

/// Names what an `ENOENT` was about: exec reports the same for three different things.
fn explain(e: io::Error, program: &std::path::Path, cwd: Option<&std::path::Path>) -> io::Error {
    let what = match cwd {
        Some(cwd) if !cwd.is_dir() => format!("the working directory {} is not a directory", cwd.display()),
        _ if e.kind() == io::ErrorKind::NotFound && program.exists() => {
            format!("{}: the interpreter in its first line was not found", program.display())
        }
        _ => format!("{}: {e}", program.display()),
    };
    io::Error::new(e.kind(), what)
}

#[cfg(test)]
mod tests {
    use super::super::{Exit, alive, poll_readable, start_ticks};
    use super::*;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::os::fd::AsFd;
    use std::path::Path;
    use std::time::{Duration, Instant};

    const LONG: Duration = Duration::from_secs(20);

    fn shell(script: &str) -> Spawn {
        Spawn {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            env: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
            stdin: Io::Piped,
            stdout: Io::Piped,
            own_group: true,
            die_with_parent: true,
            ..Spawn::default()
        }
    }

    fn output(child: &Child) -> String {
        let mut text = String::new();
        child.take_stdout().unwrap().read_to_string(&mut text).unwrap();
        text
    }

    fn first_line(child: &Child) -> String {
        let mut line = String::new();
        BufReader::new(child.take_stdout().unwrap()).read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Waits until a process that is not our child is gone.
    fn assert_gone(pid: u32, ticks: Option<u64>) {
        let deadline = Instant::now() + LONG;
        while ticks.is_some_and(|t| alive(pid, t)) {
            assert!(Instant::now() < deadline, "process {pid} is still there");
            std::thread::yield_now();
        }
    }

    #[test]
    fn exit_codes_and_signals_are_told_apart() {
        let child = spawn(shell("exit 3")).unwrap();
        assert_eq!(child.wait(), Exit::Code(3));
        assert_eq!(child.wait_timeout(Duration::ZERO), Some(Exit::Code(3)));
        let child = spawn(shell("kill -9 $$")).unwrap();
        assert_eq!(child.wait(), Exit::Signal(libc::SIGKILL));
        assert_eq!(child.wait().code(), 137);
        assert_eq!(child.wait().to_string(), "signal 9 (SIGKILL)");
        assert_eq!(Exit::Code(3).to_string(), "exit code 3");
    }

    #[test]
    fn environment_arguments_and_directory_are_exactly_those_given() {
        let mut what = shell("pwd; env; echo \"$1\"");
        what.args.extend(["sh".into(), "a b".into()]);
        what.env.push(("ONLY".into(), "this".into()));
        what.cwd = Some("/usr".into());
        let text = output(&spawn(what).unwrap());
        assert!(text.starts_with("/usr\n") && text.contains("\nONLY=this\n") && text.ends_with("\na b\n"));
        assert!(!text.contains("CARGO"), "{text}");
    }

    #[test]
    fn the_end_of_the_leader_takes_its_group_along() {
        for end in ["exit 3", "kill -9 $$"] {
            let child = spawn(shell(&format!("sleep 1000 >/dev/null & echo $!; read x; {end}"))).unwrap();
            let grandchild: u32 = first_line(&child).parse().unwrap();
            let ticks = start_ticks(grandchild);
            assert!(ticks.is_some());
            writeln!(child.take_stdin().unwrap()).unwrap();
            child.wait();
            assert_gone(grandchild, ticks);
        }
    }

    #[test]
    fn stopping_closes_stdin_first_and_kills_at_last() {
        let polite = spawn(shell("read x; exit 7")).unwrap();
        assert_eq!(polite.stop(LONG, LONG), Exit::Code(7));
        let deaf = spawn(shell("trap 'exit 9' TERM; echo ready; while :; do sleep 0.01; done")).unwrap();
        assert_eq!(first_line(&deaf), "ready");
        assert_eq!(deaf.stop(Duration::ZERO, LONG), Exit::Code(9));
        let stubborn = spawn(shell("trap '' TERM; sleep 1000 & echo $!; wait; sleep 1000")).unwrap();
        let grandchild: u32 = first_line(&stubborn).parse().unwrap();
        let ticks = start_ticks(grandchild);
        let exit = stubborn.stop(Duration::ZERO, Duration::from_millis(20));
        assert_eq!(exit, Exit::Signal(libc::SIGKILL));
        assert_gone(grandchild, ticks);
    }

    #[test]
    fn a_child_outlives_the_thread_that_asked_for_it() {
        let child = std::thread::spawn(|| spawn(shell("exec cat")).unwrap()).join().unwrap();
        child.take_stdin().unwrap().write_all(b"still here").unwrap();
        assert_eq!(output(&child), "still here");
        assert_eq!(child.wait(), Exit::Code(0));
    }

    #[test]
    fn many_threads_may_start_and_wait() {
        let threads: Vec<_> = (0..8)
            .map(|n| std::thread::spawn(move || spawn(shell(&format!("exit {n}"))).unwrap().wait()))
            .collect();
        for (n, thread) in threads.into_iter().enumerate() {
            assert_eq!(thread.join().unwrap(), Exit::Code(n as i32));
        }
    }

    #[test]
    fn listed_descriptors_arrive_under_their_numbers_and_no_others_do() {
        // One that lacks close-on-exec, as an inherited one would.
        let stray = std::fs::File::open("/etc/passwd").unwrap();
        // SAFETY: fcntl with F_DUPFD takes an integer; the copy is closed below.
        let stray = unsafe { OwnedFd::from_raw_fd(libc::fcntl(stray.as_raw_fd(), libc::F_DUPFD, 40)) };
        let mut what = shell("cat <&3; cat <&5; ls -l /proc/self/fd/ | sed 's/.*:.. //'");
        for (target, text) in [(3, "three "), (5, "five ")] {
            let (reader, mut writer) = io::pipe().unwrap();
            writer.write_all(text.as_bytes()).unwrap();
            what.fds.push((reader.into(), target));
        }
        let text = output(&spawn(what).unwrap());
        drop(stray);
        assert!(text.starts_with("three five "), "{text}");
        let listed: Vec<&str> =
            text.lines().filter_map(|l| l.split_once(" -> ")).map(|(n, _)| n.trim()).collect();
        assert!(["0", "1", "2", "3", "5"].iter().all(|n| listed.contains(n)), "{text}");
        // `ls` itself has the directory open.
        assert!(!text.contains("passwd") && listed.len() == 6, "{text}");
    }

    #[test]
    fn descriptors_may_swap_places() {
        let filled = |text: &str| {
            let (reader, mut writer) = io::pipe().unwrap();
            writer.write_all(text.as_bytes()).unwrap();
            OwnedFd::from(reader)
        };
        let (a, b) = (filled("a"), filled("b"));
        let (a_number, b_number) = (a.as_raw_fd(), b.as_raw_fd());
        let mut what = shell(&format!("cat /dev/fd/{a_number} /dev/fd/{b_number}"));
        what.fds = vec![(a, b_number), (b, a_number)];
        assert_eq!(output(&spawn(what).unwrap()), "ba");
        let own = filled("same");
        let number = own.as_raw_fd();
        let mut what = shell(&format!("cat /dev/fd/{number}"));
        what.fds = vec![(own, number)];
        assert_eq!(output(&spawn(what).unwrap()), "same");
    }

    #[test]
    fn a_failed_start_says_what_is_missing() {
        let fail = |what: Spawn| spawn(what).unwrap_err();
        let e = fail(Spawn { program: "/no/such/program".into(), ..Spawn::default() });
        assert_eq!(e.kind(), io::ErrorKind::NotFound);
        assert!(e.to_string().starts_with("/no/such/program: "), "{e}");
        let e = fail(Spawn { cwd: Some("/no/such/dir".into()), ..shell("true") });
        assert!(e.to_string().contains("working directory /no/such/dir"), "{e}");
        let dir = std::env::temp_dir().join(format!("mcpx-spawn-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let script = dir.join("script");
        crate::util::write_atomic(&script, b"#!/no/such/interpreter\n", 0o755, false).unwrap();
        let e = fail(Spawn { program: script, ..Spawn::default() });
        assert!(e.to_string().contains("interpreter"), "{e}");
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_child_has_default_signals_and_an_open_mask() {
        super::super::signals::install(&[libc::SIGWINCH]).unwrap();
        let text = output(&spawn(shell("cat /proc/self/status")).unwrap());
        let field = |name: &str| {
            let line = text.lines().find(|l| l.starts_with(name)).unwrap();
            u64::from_str_radix(line.split_ascii_whitespace().nth(1).unwrap(), 16).unwrap()
        };
        assert_eq!(field("SigBlk:"), 0);
        assert_eq!(field("SigIgn:") >> (libc::SIGPIPE - 1) & 1, 0);
    }

    #[test]
    fn a_group_and_a_session_of_its_own() {
        let leader = |what: Spawn, field: usize| {
            let child = spawn(what).unwrap();
            let text = output(&child);
            let field = text.rsplit(") ").next().unwrap().split(' ').nth(field).unwrap().to_owned();
            field == child.pid().to_string()
        };
        let stat = "read line < /proc/$$/stat; echo \"$line\"";
        assert!(leader(shell(stat), 2));
        assert!(!leader(shell(stat), 3));
        assert!(leader(Spawn { own_session: true, ..shell(stat) }, 3));
        assert!(!leader(Spawn { own_group: false, ..shell(stat) }, 2));
    }

    #[test]
    fn given_descriptors_serve_as_standard_ones_and_null_is_empty() {
        let (reader, writer) = io::pipe().unwrap();
        let what = Spawn { stdin: Io::Null, stdout: Io::Fd(writer.into()), ..shell("cat; echo done") };
        let child = spawn(what).unwrap();
        assert!(child.take_stdout().is_none());
        assert!(poll_readable(&[reader.as_fd()], Some(LONG)).unwrap()[0]);
        let mut text = String::new();
        { reader }.read_to_string(&mut text).unwrap();
        assert_eq!(text, "done\n", "and our copy of the write end is closed");
        assert!(Path::new(&format!("/proc/{}", std::process::id())).exists());
    }
}
