//! A pseudo-terminal (pty(7)) with a command at it, as a person sits there.

use super::World;
use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long anything may take that a test waits for.
const LIMIT: Duration = Duration::from_secs(60);

/// A command whose standard input and standard error are a terminal; its standard output is a pipe.
pub struct Terminal {
    child: Child,
    master: File,
    shown: Arc<Mutex<Vec<u8>>>,
    stdout: Arc<Mutex<Vec<u8>>>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Terminal {
    /// Starts mcpx with these words in a world.
    pub fn start(world: &World, words: &[&str]) -> Terminal {
        let master = OpenOptions::new().read(true).write(true).open("/dev/ptmx").expect("a terminal");
        let mut name = [0; 64];
        // SAFETY: the descriptor is a terminal's master, and the buffer as long as it is said to be.
        let outcome = unsafe {
            libc::unlockpt(master.as_raw_fd())
                | libc::ptsname_r(master.as_raw_fd(), name.as_mut_ptr(), name.len())
        };
        assert_eq!(outcome, 0, "the other end of a terminal");
        // SAFETY: ptsname_r has written a terminated name.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_str().unwrap().to_owned();
        let slave = OpenOptions::new().read(true).write(true).open(name).expect("the other end");
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcpx"));
        command.args(words).current_dir(world.dir()).env_clear().envs(world.environment());
        command.stdin(Stdio::from(slave.try_clone().unwrap())).stderr(Stdio::from(slave));
        let mut child = command.stdout(Stdio::piped()).spawn().expect("mcpx starts");
        // Its own copies of the other end would keep the terminal open.
        drop(command);
        let (shown, stdout) = (Arc::default(), Arc::default());
        let threads = vec![
            copy(master.try_clone().unwrap(), Arc::clone(&shown)),
            copy(child.stdout.take().unwrap(), Arc::clone(&stdout)),
        ];
        Terminal { child, master, shown, stdout, threads }
    }

    /// What the terminal has shown so far.
    pub fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    /// Waits until it shows this.
    #[track_caller]
    pub fn wait_for(&self, part: &str) {
        self.wait("the terminal should show", part, |seen| seen.shown());
    }

    /// Waits until this is on standard output.
    #[track_caller]
    pub fn wait_for_output(&self, part: &str) {
        self.wait("standard output should hold", part, |seen| {
            String::from_utf8_lossy(&seen.stdout.lock().unwrap()).into_owned()
        });
    }

    #[track_caller]
    fn wait(&self, what: &str, part: &str, text: impl Fn(&Terminal) -> String) {
        let start = Instant::now();
        while !text(self).contains(part) {
            assert!(start.elapsed() < LIMIT, "{what} {part:?}: {:?}", text(self));
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Types a line.
    pub fn line(&mut self, text: &str) {
        self.master.write_all(format!("{text}\n").as_bytes()).unwrap();
    }

    /// Waits for the end: the exit code, standard output, and all that was shown.
    #[track_caller]
    pub fn finish(mut self) -> (i32, String, String) {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status.code().unwrap_or(-1);
            }
            if start.elapsed() > LIMIT {
                let _ = self.child.kill();
                let _ = self.child.wait();
                panic!("it did not end: {:?}", self.shown());
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
        let stdout = String::from_utf8_lossy(&self.stdout.lock().unwrap()).into_owned();
        (status, stdout, self.shown())
    }
}

/// Gathers a stream on a thread. A terminal whose other end is closed is an error, which is its end.
fn copy(mut from: impl Read + Send + 'static, into: Arc<Mutex<Vec<u8>>>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let mut block = [0; 4096];
        while let Ok(n) = from.read(&mut block) {
            if n == 0 {
                break;
            }
            into.lock().unwrap().extend_from_slice(&block[..n]);
        }
    })
}
